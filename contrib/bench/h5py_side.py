"""The same work by h5py, where that is what h5fs is compared with. Prints seconds, as the programs in C do.

    h5py_side.py whole FILE                 (LZF, which libhdf5 has from h5py)
    h5py_side.py append FILE SOURCE COUNT   a row each"""
import sys
import time

import h5py
import numpy


def whole(path):
    start = time.perf_counter()
    with h5py.File(path) as f:
        dataset = f["data"]
        dataset.read_direct(numpy.empty(dataset.shape, dataset.dtype))
    return time.perf_counter() - start


def append(path, source, count):
    with h5py.File(path, "r") as f:
        width = f["data"].shape[1]
    rows = numpy.fromfile(source, "<f4", int(count) * width).reshape(-1, width)
    start = time.perf_counter()
    with h5py.File(path, "r+") as f:
        dataset = f["data"]
        for i, row in enumerate(rows):
            dataset.resize(i + 1, 0)
            dataset[i] = row
    return time.perf_counter() - start


print({"whole": whole, "append": append}[sys.argv[1]](*sys.argv[2:]))
