"""Rows about many small things: datasets of 160 bytes and attributes of one value that are read, rows of some bytes that are appended."""
import os

import h5py
import numpy

from processes import timed

DATASETS = 100  # in each group
BYTES = 160  # of each dataset
ATTRIBUTES = 8  # of each group


def make_datasets(path, count):
    with h5py.File(path, "w") as f:
        for i in range(count):
            f[f"group{i // DATASETS}/dataset{i}"] = numpy.arange(BYTES / 8)


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


def in_bare(bench, tree, command, count):
    """The same of a bare daemon's tree."""
    with bench.bare_tree(**tree) as m:
        return count / timed("sh", "-c", f"cd '{m.path}' && {command}")


def dumped(path, count, *options):
    return count / timed("h5dump", *options, path)


def read_all(bench, command, libhdf5):
    """libhdf5: its side, of a path and the number of datasets."""
    path, count = bench.data.file("small_datasets.h5"), bench.data.small_files
    tree = {"directories": count // DATASETS, "files": DATASETS, "size": BYTES}
    return bench.interleave({"h5fs": lambda: in_mount(bench, path, command, count), "libhdf5": lambda: libhdf5(path, count),
                             "limit": lambda: in_bare(bench, tree, command, count)})


def cat(bench):
    return read_all(bench, "find . -type f -print0 | xargs -0 cat", lambda path, count: count / bench.h5py("all", path))


def tar(bench):
    return read_all(bench, "tar cf - . | cat", dumped)


def getfattr(bench):
    path, groups = bench.data.file("small_attributes.h5"), bench.data.small_files // 5
    count, command = groups * ATTRIBUTES, "getfattr -R -d ."
    tree = {"directories": groups, "attributes": ATTRIBUTES}
    return bench.interleave({"h5fs": lambda: in_mount(bench, path, command, count), "libhdf5": lambda: dumped(path, count, "-A"),
                             "limit": lambda: in_bare(bench, tree, command, count)})


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
