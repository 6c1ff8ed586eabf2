"""The same work by h5py, where that is what h5fs is compared with. Prints seconds, as the programs in C do.

    h5py_side.py whole FILE                 (LZF, which libhdf5 has from h5py)
    h5py_side.py append FILE SOURCE COUNT   a row each
    h5py_side.py lines FILE SOURCE COUNT BATCH      so many lines at once
    h5py_side.py create FILE FOLDER         a dataset for each file of the folder
    h5py_side.py remove FILE FOLDER         that is done, and then removed
    h5py_side.py all FILE                   reads all datasets of all groups
    h5py_side.py dask FILE                  (deflated, by dask's threads)
    h5py_side.py zarr FOLDER                the same from a Zarr group, without h5py
    h5py_side.py walk URL DRIVER            all datasets; DRIVER: fsspec, or ros3, which is libhdf5's own
    h5py_side.py remote URL DRIVER DATASET  a whole dataset"""
import os
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


def greatest(dataset):
    """Seconds that dask's threads take to read a dataset, with no work on the values to speak of."""
    import dask.array

    start = time.perf_counter()
    blocks = dask.array.from_array(dataset, chunks=tuple(4 * n for n in dataset.chunks))
    blocks.max().compute(scheduler="threads")
    return time.perf_counter() - start


def dask(path):
    with h5py.File(path) as f:
        return greatest(f["data"])


def zarr(folder):
    import zarr as library

    return greatest(library.open_consolidated(folder, mode="r")["data"])


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


def lines(path, source, count, batch):
    with open(source, "rb") as f:
        text = f.read().splitlines()[:int(count)]
    start = time.perf_counter()
    with h5py.File(path, "r+") as f:
        dataset = f["lines"]
        for i in range(0, len(text), int(batch)):
            dataset.resize(min(i + int(batch), len(text)), 0)
            dataset[i:] = text[i:i + int(batch)]
    return time.perf_counter() - start


def create(path, source):
    start = time.perf_counter()
    with h5py.File(path, "w") as f:
        for folder, _, names in os.walk(source):
            group = f.require_group(os.path.relpath(folder, source))
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    group.create_dataset(name, data=numpy.frombuffer(file.read(), "u1"), maxshape=(None,), chunks=(1024,))
    return time.perf_counter() - start


def all_datasets(path):
    start = time.perf_counter()
    with h5py.File(path) as f:
        for group in f.values():
            for dataset in group.values():
                dataset[()]
    return time.perf_counter() - start


def remove(path, source):
    create(path, source)
    start = time.perf_counter()
    with h5py.File(path, "r+") as f:
        for folder in list(f):
            for name in list(f[folder]):
                del f[folder][name]
            del f[folder]
    return time.perf_counter() - start


def open_url(url, driver):
    if driver == "ros3":
        return h5py.File(url, "r", driver="ros3")
    import fsspec  # Debian's python3-fsspec with python3-aiohttp

    return h5py.File(fsspec.open(url).open(), "r")


def walk(url, driver):
    """What find looks at: the sizes of all datasets."""
    start = time.perf_counter()
    with open_url(url, driver) as f:
        f.visititems(lambda _, item: getattr(item, "shape", None))
    return time.perf_counter() - start


def remote(url, driver, name):
    start = time.perf_counter()
    with open_url(url, driver) as f:
        dataset = f[name]
        dataset.read_direct(numpy.empty(dataset.shape, dataset.dtype))
    return time.perf_counter() - start


print({"walk": walk, "remote": remote, "whole": whole, "append": append, "lines": lines, "create": create, "remove": remove, "all": all_datasets, "dask": dask,
       "zarr": zarr}[sys.argv[1]](*sys.argv[2:]))
