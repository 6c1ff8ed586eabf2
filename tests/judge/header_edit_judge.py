"""Judges by libhdf5 what tests/unit/check_header_edit.c has made of a file of tests/fixtures/header_edit.py.

    header_edit_judge.py ORIGINAL EDITED ROUNDS

Exits with 1 and says what is wrong. EDITED is then changed by libhdf5, and judged again."""

import sys

import h5py
import numpy as np

original, edited, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])


def expected(name, dataset):
    kind = name[0]
    if kind == "a":
        return np.arange(4 + rounds) + rounds
    if kind == "b":
        return np.arange(5) + 1000 * rounds
    if kind == "c":
        return np.full(dataset.shape, 7 + rounds)
    return np.concatenate([np.arange(12).reshape(4, 3), np.zeros((rounds, 3))])


def attributes(dataset):
    return {name: dataset.attrs[name] for name in dataset.attrs}


def judge(expectations, attrs):
    with h5py.File(edited, "r") as f:
        for name, values in expectations.items():
            found = f[name][...]
            assert np.array_equal(found, values), "%s: %s, not %s" % (name, found, values)
            assert attributes(f[name]) == attrs[name], "%s: attributes" % name


with h5py.File(original, "r") as f:
    names = [name for name in f if not name.startswith("filler")]
    want = {name: expected(name, f[name]) for name in names}
    attrs = {name: attributes(f[name]) for name in names}
assert len(names) > 100
judge(want, attrs)

with h5py.File(edited, "r+") as f:
    for i, name in enumerate(names):
        dataset = f[name]
        for old in sorted(attrs[name])[:i % 4]:
            del dataset.attrs[old]
            del attrs[name][old]
        dataset.attrs["more"] = attrs[name]["more"] = "m" * (i * 7 % 500 + 1)
        if name[0] == "d":
            dataset.resize(20, axis=0)
            dataset[15:] = i
            grown = np.zeros((20, 3))
            grown[:want[name].shape[0]] = want[name]
            grown[15:] = i
            want[name] = grown
        else:
            dataset[0] = 99
            want[name][0] = 99
        if name[0] == "a":
            dataset.resize(8, axis=0)
            want[name] = np.concatenate([want[name], dataset[want[name].shape[0]:]])
judge(want, attrs)
