"""Rows about text: lines are added to a dataset of strings."""
import os

import h5py

from data import LINE

BATCH = 1000  # lines that h5py assigns at once
MANY = 50_000  # lines of a write


def empty(path):
    with h5py.File(path, "w", libver="latest") as f:
        f.create_dataset("lines", (0,), h5py.string_dtype(), maxshape=(None,), chunks=(4096,))
        f.create_dataset("rows", (0,), f"S{LINE}", maxshape=(None,), chunks=(4096,))
    os.sync()


def check(path, name, count):
    with h5py.File(path) as f:
        assert f[name].shape == (count,) and f[name][count - 1].strip().endswith(str(count - 1).encode()), (name, f[name].shape)


def lines(many):
    """Against h5py, if many lines are written at once; else a line a write, against rows of raw data that are as long."""
    def measure(bench):
        text, new = bench.data.file("lines.txt"), bench.scratch + "-lines.h5"
        count = bench.data.lines if many else bench.data.lines // 100
        bytes_a_write = MANY * LINE if many else LINE
        writes = count * LINE // bytes_a_write

        def in_mount(name):
            empty(new)
            with bench.h5fs(new, "rw,sync=fsync") as m:
                elapsed = bench.files("append", m.at(name), text, bytes_a_write, writes, "none")
            check(new, name, writes * bytes_a_write // LINE)
            os.unlink(new)
            return count / elapsed

        def in_h5py():
            empty(new)
            elapsed = bench.h5py("lines", new, text, count, BATCH)
            check(new, "lines", count)
            os.unlink(new)
            return count / elapsed

        other = {"libhdf5": in_h5py} if many else {"limit": lambda: in_mount("rows")}
        return bench.interleave({"h5fs": lambda: in_mount("lines"), **other})
    return measure
