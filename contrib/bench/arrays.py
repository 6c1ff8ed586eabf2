"""Rows about arrays: one in NumPy's format becomes a dataset, beside a raw append of as many bytes; a deflated dataset is read through the Zarr
view by dask."""
import os
import shutil
import time

import h5py

from processes import Mount

PIECE = 1 << 20


def copy(source, target, flags):
    """Seconds that writing takes, and closing."""
    with open(source, "rb", buffering=0) as data:
        pieces = [data.read(PIECE) for _ in range(-(-os.path.getsize(source) // PIECE))]
    begin = time.monotonic()
    fd = os.open(target, os.O_WRONLY | flags)
    for piece in pieces:
        os.write(fd, piece)
    os.close(fd)
    return time.monotonic() - begin


def zarr_dask(bench, chunks):
    path = bench.data.file("deflate-farray.h5")
    with h5py.File(path) as f:
        size = f["data"].size * f["data"].dtype.itemsize

    def in_mount(options):
        with bench.h5fs(path, options) as m:
            return size / bench.h5py("zarr", m.at(".h5fs/zarr"))

    plain = bench.scratch + "-zarr"
    shutil.rmtree(plain, ignore_errors=True)
    with bench.h5fs(path) as m:
        shutil.copytree(m.at(".h5fs/zarr"), plain)

    def in_bindfs():
        with Mount(["bindfs", "-f", plain], f"{bench.point}-bindfs") as m:
            return size / bench.h5py("zarr", m.path)

    try:
        return bench.interleave({"h5fs": lambda: in_mount(f"zarr_chunks={chunks}"), "libhdf5": lambda: size / bench.h5py("dask", path), "limit": in_bindfs})
    finally:
        shutil.rmtree(plain)


def npy(bench):
    raw, array, new = bench.data.file("field.raw"), bench.data.file("field.npy"), bench.scratch + "-arrays.h5"
    side = bench.data.side

    def make():
        with h5py.File(new, "w", libver="latest") as f:
            rows = max(1, -(-(64 << 10) // (4 * side)))  # as h5fs chooses them
            f.create_dataset("rows", (0, side), "<f4", maxshape=(None, side), chunks=(rows, side))
        os.sync()

    def in_mount(source, name, flags):
        make()
        with bench.h5fs(new, "rw,sync=fsync") as m:
            elapsed = copy(source, m.at(name), flags)
        with h5py.File(new) as f:
            dataset = f["new" if "npy" in name else "rows"]
            assert dataset.shape == (side, side) and dataset[side - 1, side - 1], name
        os.unlink(new)
        return os.path.getsize(raw) / elapsed

    return bench.interleave({"h5fs": lambda: in_mount(array, ".h5fs/npy/new.npy", os.O_CREAT | os.O_TRUNC),
                             "limit": lambda: in_mount(raw, "rows", os.O_APPEND)})
