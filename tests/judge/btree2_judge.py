"""libhdf5 reads what was written through a version 2 B-tree, and goes on writing: FILE DATASET EXPECTED [SEED]

EXPECTED has a line for each chunk (one number of 4 bytes): coordinates, value; the others hold 0. With SEED it then
adds, shrinks and grows the dataset, and reads it again."""
import random
import struct
import sys

import h5py
import numpy as np


def check(path, name, model):
    with h5py.File(path) as file:
        values = file[name][...]
    assert values.shape == model.shape, (values.shape, model.shape)
    wrong = np.argwhere(values != model)
    assert not len(wrong), (len(wrong), wrong[0], values[tuple(wrong[0])], model[tuple(wrong[0])])


def resized(model, shape):
    new = np.zeros(shape, model.dtype)
    both = tuple(slice(0, min(a, b)) for a, b in zip(model.shape, shape))
    new[both] = model[both]
    return new


def change(path, name, model, seed):
    choose = random.Random(seed)
    value = 1_000_000
    with h5py.File(path, "r+", libver="latest") as file:
        dataset = file[name]
        for _ in range(6):
            shape = tuple(max(1, n + choose.randrange(-n // 3, n // 3 + 2)) if n > 1 else n for n in model.shape)
            dataset.resize(shape)
            model = resized(model, shape)
            for _ in range(choose.randrange(400)):
                at = tuple(choose.randrange(n) for n in shape)
                value += 1
                model[at] = value
                dataset.id.write_direct_chunk(at, struct.pack("<i", value), 1 if dataset.compression else 0)
    return model


def main():
    path, name, expected, *seed = sys.argv[1:]
    with h5py.File(path) as file:
        model = np.zeros(file[name].shape, "<i4")
    with open(expected) as lines:
        for line in lines:
            *at, value = map(int, line.split())
            model[tuple(at)] = value
    check(path, name, model)
    if seed:
        check(path, name, change(path, name, model, int(seed[0])))


main()
