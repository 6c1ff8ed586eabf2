"""Judges by libhdf5 what tests/unit/check_header_insert.c and check_header_faults.c have made of a file of tests/fixtures/header_edit.py.

    header_insert_judge.py ORIGINAL EDITED MODEL
    header_insert_judge.py FOLDER COMMITS

First form: MODEL names the attributes that were added, one a line: dataset, name, number of bytes, first byte, difference of two bytes. Exits with 1 and
says what is wrong. EDITED is then changed by libhdf5, and judged again.

Second form: FOLDER has files state-COMMIT-NUMBER.h5, as a kill leaves them in one of the commits. Each dataset is as in the first of them or
as in the last."""

import glob
import sys

import h5py
import numpy as np


def attributes(dataset):
    return {name: np.asarray(dataset.attrs[name]).tobytes() if isinstance(dataset.attrs[name], np.ndarray) else dataset.attrs[name]
            for name in dataset.attrs}


def all_attributes(path, names=None):
    with h5py.File(path, "r") as f:
        return {name: attributes(f[name]) for name in names or f if not name.startswith("filler")}


def judge_states(folder, commits):
    for commit in range(commits):
        states = sorted(glob.glob("%s/state-%d-*.h5" % (folder, commit)))
        first, last = all_attributes(states[0]), all_attributes(states[-1])
        changed = [name for name in first if first[name] != last[name]]
        assert len(changed) > 4, changed
        for path in states[1:-1]:
            found = all_attributes(path, changed + sorted(first)[::20])
            assert all(found[name] in (first[name], last[name]) for name in found), path


def judge():
    with h5py.File(edited, "r") as f:
        for name, (values, attrs) in want.items():
            assert np.array_equal(f[name][...], values), name
            found = attributes(f[name])
            assert len(f[name].attrs) == len(attrs), "%s: %d attributes, not %d" % (name, len(f[name].attrs), len(attrs))
            for attribute in attrs.keys() | found.keys():
                assert found.get(attribute) == attrs.get(attribute), "%s: attribute %s" % (name, attribute)


if len(sys.argv) == 3:
    judge_states(sys.argv[1], int(sys.argv[2]))
    sys.exit()

original, edited, model = sys.argv[1:]
with h5py.File(original, "r") as f:
    want = {name: (f[name][...], attributes(f[name])) for name in f if not name.startswith("filler")}
for line in open(model):
    name, attribute, *numbers = line.split()
    size, first, step = map(int, numbers)
    want[name][1][attribute] = ((first + np.arange(size) * step) % 256).astype("u1").tobytes()
judge()

with h5py.File(edited, "r+") as f:
    for i, (name, (values, attrs)) in enumerate(want.items()):
        dataset = f[name]
        for old in sorted(attrs)[i % 3::2]:
            del dataset.attrs[old]
            del attrs[old]
        for k in range(i % 4):
            dataset.attrs["more%d" % k] = attrs["more%d" % k] = "m" * (i * (k + 7) % 500 + 1)
judge()
