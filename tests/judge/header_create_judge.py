"""Judges by libhdf5 what tests/unit/check_header_create.c has made.

    header_create_judge.py FILE
    header_create_judge.py --states FOLDER COUNT

Exits with 1 and says what is wrong. FILE is then changed by libhdf5, in all ways, and judged again. FOLDER has files state-*.h5, as a kill leaves
them: each name that is there leads to a sound object, and in the last one there are COUNT."""

import glob
import sys

import h5py
import numpy as np

LARGE = np.arange(15000)


def expected(name):
    if name.startswith("large"):
        return LARGE
    return np.arange(5) if name.startswith("compact") else np.zeros(5)


def look(f):
    for name, item in f.items():
        assert len(item.attrs) == 0
        if isinstance(item, h5py.Group):
            assert name.startswith("group") and len(item) == 0
        else:
            assert item.dtype == "<i4" and np.array_equal(item[...], expected(name)), name


def judge_states(folder, count):
    states = sorted(glob.glob(folder + "/state-*.h5"))
    assert len(states) > 3
    for path in states:
        with h5py.File(path, "r") as f:
            look(f)
            found = len(f)
    assert found == count, found


def change(f, want):
    for name in "group0", "large2", "chunked4":
        f.copy(name, "copy")
        del f["copy"]
    for i, name in enumerate(f):
        item = f[name]
        for k in range(20):
            item.attrs["a%d" % k] = "x" * (10 * k)
        for k in range(i, 20, 2):
            del item.attrs["a%d" % k]
        if isinstance(item, h5py.Group):
            for k in range(12):
                item.create_group("sub%d" % k)
            for k in range(i % 3, 12):
                del item["sub%d" % k]
            want[name] = i % 3
        else:
            if item.chunks:
                item.resize(1000, axis=0)
            item[...] = np.arange(len(item)) * 3
            want[name] = len(item)
    for name in "group5", "compact5", "large5", "contiguous5", "chunked5":
        f.move(name, name + "b")
        del f[name + "b"], want[name]


def look_again(f, want):
    assert set(f) == set(want), set(f) ^ set(want)
    for name, n in want.items():
        item = f[name]
        assert all(item.attrs[a] == "x" * (10 * int(a[1:])) for a in item.attrs) and len(item.attrs) >= 10
        assert len(item) == n
        if isinstance(item, h5py.Dataset):
            assert np.array_equal(item[...], np.arange(n) * 3), name


if sys.argv[1] == "--states":
    judge_states(sys.argv[2], int(sys.argv[3]))
    sys.exit()
with h5py.File(sys.argv[1], "r") as f:
    assert len(f) == 30, list(f)
    look(f)
want = {}
with h5py.File(sys.argv[1], "r+") as f:
    change(f, want)
with h5py.File(sys.argv[1], "r") as f:
    look_again(f, want)
