"""Rows about many small things that are read: datasets of 160 bytes, attributes of one value."""
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
    count = groups * ATTRIBUTES
    return bench.interleave({"h5fs": lambda: in_mount(bench, path, "getfattr -R -d .", count), "libhdf5": lambda: dumped(path, count, "-A")})
