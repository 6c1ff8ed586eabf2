"""Rows about many small things: datasets of 160 bytes and attributes of one value that are read, rows of some bytes that are appended."""
import os

import h5py
import numpy

from processes import timed

DATASETS = 100  # in each group
ATTRIBUTES = 8  # of each group


def make_datasets(path, count):
    with h5py.File(path, "w") as f:
        for i in range(count):
            f[f"group{i // DATASETS}/dataset{i}"] = numpy.arange(20.0)


def make_attributes(path, groups):
    with h5py.File(path, "w") as f:
        for i in range(groups):
            attributes = f.create_group(f"group{i}").attrs
            for j in range(ATTRIBUTES):
                attributes[f"attribute{j}"] = "some text" if j % 2 else j


def in_mount(bench, path, command, count):
    """How many a second; `command` is for a shell in the folder of the mount."""
    with bench.h5fs(path) as m:
        return count / timed("sh", "-c", f"cd '{m.path}' && {command}")


def dumped(path, count, *options):
    return count / timed("h5dump", *options, path)


def cat(bench):
    path, count = bench.data.file("small_datasets.h5"), bench.data.small_files
    return bench.interleave({"h5fs": lambda: in_mount(bench, path, "find . -type f -print0 | xargs -0 cat", count),
                             "libhdf5": lambda: count / bench.h5py("all", path)})


def tar(bench):
    path, count = bench.data.file("small_datasets.h5"), bench.data.small_files
    return bench.interleave({"h5fs": lambda: in_mount(bench, path, "tar cf - . | cat", count), "libhdf5": lambda: dumped(path, count)})


def getfattr(bench):
    path, groups = bench.data.file("small_attributes.h5"), bench.data.small_files // 5
    count, command = groups * ATTRIBUTES, "getfattr -R -d ."

    def in_bare():
        with bench.bare_tree(groups, ATTRIBUTES) as m:
            return count / timed("sh", "-c", f"cd '{m.path}' && {command}")

    return bench.interleave({"h5fs": lambda: in_mount(bench, path, command, count),
                             "libhdf5": lambda: dumped(path, count, "-A"), "limit": in_bare})


def appended(bench, dtype, row, write):
    """Rows a second that `write(path)` appends, which returns how many, and seconds: to a dataset and to the file of a bare daemon."""
    new = bench.scratch + "-small.h5"

    def in_h5fs():
        with h5py.File(new, "w", libver="latest") as f:
            f.create_dataset("data", (0, *row), dtype, maxshape=(None, *row), chunks=(4096, *row))
        os.sync()
        with bench.h5fs(new, "rw,sync=fsync") as m:
            rows, elapsed = write(m.at("data"))
        with h5py.File(new) as f:
            assert len(f["data"]) == rows, f"{len(f['data'])} rows of {rows}"
        os.unlink(new)
        return rows / elapsed

    def in_bare():
        with open(bench.scratch, "wb"):
            os.sync()
        with bench.bare(bench.scratch) as m:
            rows, elapsed = write(m.at("data"))
        return rows / elapsed

    return bench.interleave({"h5fs": in_h5fs, "limit": in_bare})


def append_numbers(bench):
    raw, count = bench.data.file("field.raw"), 2 * bench.data.small_files
    return appended(bench, "<f8", (), lambda path: (count, bench.files("append", path, raw, 8, count, "none")))


def append_in_shell(bench):
    raw, count = bench.data.file("field.raw"), max(20, bench.data.small_files // 50)
    loop = f"for i in $(seq {count}); do head -c 128 '{raw}' >> \"$0\"; done"
    return appended(bench, "<f4", (32,), lambda path: (count, timed("sh", "-c", loop, path)))
