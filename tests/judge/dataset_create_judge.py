"""Judges by libhdf5 what tests/unit/check_dataset_create.c has made.

    dataset_create_judge.py written|empty FILE EXPECTED
    dataset_create_judge.py states FOLDER COUNT

Exits with 1 and says what is wrong. A line of EXPECTED has name, rank (-1: null), whether there is a fill value, shape|maximum|chunk|, filters
and type. All elements have the fill value; where FILE is `written`, all but the last row have a pattern. FILE is then changed by libhdf5, in all
ways, and judged again. FOLDER has files state-*.h5, as a kill leaves them: each name that is there leads to a sound dataset, and in the last one
there are COUNT."""

import glob
import json
import sys

import h5py
import numpy as np

IDS = {"deflate": 1, "shuffle": 2, "fletcher32": 3, "bzip2": 307, "lzf": 32000, "blosc": 32001, "lz4": 32004, "bitshuffle": 32008, "zstd": 32015,
       "szip": 4, "nbit": 5, "scaleoffset": 6, "lzo": 305, "vbz": 32020}
OWN = 1, 2, 3, 4, 5, 6, 32000  # h5py has these filters itself


def dims(text):
    return tuple(None if n == "-1" else int(n) for n in text.split(",")) if text else ()


def dtype(text):
    if text == "vlen str":
        return h5py.string_dtype()
    if text.startswith("["):
        return np.dtype([tuple(tuple(x) if isinstance(x, list) else x for x in member) for member in json.loads(text)])
    return np.dtype(text)


class Expected:
    def __init__(self, line):
        self.name, rank, fill, shapes, filters, kind = line.rstrip("\n").split(" ", 5)
        self.rank = int(rank)
        self.filled = int(fill)
        self.shape, self.max, self.chunk = (dims(text) for text in shapes.split("|")[:3])
        self.filters = [] if filters == "-" else [f.split("(")[0] for f in filters.split(",")]
        self.dtype = dtype(kind)
        self.words = kind == "vlen str"
        self.byte = 1 if kind == "|b1" else ord("f")

    def data(self, written):
        size = self.dtype.itemsize
        count = int(np.prod(self.shape, dtype=int))
        data = np.full(count * size, self.byte if self.filled else 0, "u1")
        if written and count:
            n = (count - count // self.shape[0] if self.shape else count) * size
            data[:n] = np.arange(n) % 2 if self.dtype == bool else 33 + np.arange(n) % 89
        return data.view(self.dtype).reshape(self.shape)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def can_decode(d):
    plist = d.id.get_create_plist()
    return all(plist.get_filter(i)[0] in OWN for i in range(plist.get_nfilters()))


def look(d, e, written):
    plist = d.id.get_create_plist()
    assert d.dtype == e.dtype or e.words, (e.name, d.dtype)
    if e.rank < 0:
        assert d.shape is None
        return
    assert d.shape == e.shape and d.maxshape == e.max and (d.chunks or ()) == e.chunk, (e.name, d.shape, d.maxshape, d.chunks)
    assert [plist.get_filter(i)[0] for i in range(plist.get_nfilters())] == [IDS[f] for f in e.filters], e.name
    assert len(d.attrs) == 0
    if e.words:
        assert list(d[...]) == [b""] * e.shape[0]
    elif can_decode(d):
        assert same(d[...], e.data(written)), e.name


def change(d):
    """Returns what there is now."""
    if d.shape is None or not can_decode(d):
        return None
    for i, most in enumerate(d.maxshape):
        if most is None or most > d.shape[i]:
            d.resize(d.shape[i] + 1, i)
    if h5py.check_string_dtype(d.dtype) and d.dtype.kind == "O":
        d[...] = ["word %d" % i for i in range(len(d))]
        return d[...]
    rng = np.random.default_rng(len(d.name))
    n = d.size * d.dtype.itemsize
    data = (np.arange(n) % 2 if d.dtype == bool else rng.integers(33, 120, n)).astype("u1").view(d.dtype).reshape(d.shape)
    d[...] = data
    if d.maxshape and d.maxshape[0] is None:
        d.resize(d.shape[0] + 1000, 0)
        assert same(d[: data.shape[0]], data), d.name
        d.resize(data.shape[0], 0)
    d.attrs["note"] = "x" * 300
    d.attrs["other"] = np.arange(5)
    return data


def judge(path, expected, written):
    with h5py.File(path, "r") as f:
        assert sorted(f) == sorted(e.name for e in expected)
        for e in expected:
            look(f[e.name], e, written)
    with h5py.File(path, "r+") as f:
        now = {e.name: change(f[e.name]) for e in expected}
        for name in list(now)[::3]:
            f.copy(name, name + "-copy")
            del f[name]
            f.move(name + "-copy", name)
    with h5py.File(path, "r") as f:
        for name, data in now.items():
            if data is not None:
                assert same(f[name][...], data) if data.dtype != object else list(f[name][...]) == list(data), name


def judge_states(folder, count):
    states = sorted(glob.glob(folder + "/state-*.h5"))
    for path in states:
        with h5py.File(path, "r") as f:
            for d in f.values():
                if can_decode(d):
                    d[()]
            found = len(f)
    assert found == count, found


if sys.argv[1] == "states":
    judge_states(sys.argv[2], int(sys.argv[3]))
else:
    with open(sys.argv[3]) as lines:
        judge(sys.argv[2], [Expected(line) for line in lines], sys.argv[1] == "written")
