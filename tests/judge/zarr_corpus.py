#!/usr/bin/python3
"""Compares the Zarr views and kerchunk.json of each file with h5py: zarr_corpus.py FILE...

What h5py cannot read is passed over. H5FS in the environment names the binary. The last line is `N passed, N failed, N passed over`."""
import os
import sys
import unittest
import warnings

import h5py
import zarr

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import zarrlib
from mountlib import Mount, become_reaper

LARGEST = 1 << 26  # bytes of a dataset, so that a corpus takes minutes

warnings.simplefilter("ignore")


def compare_views(f, options=None):
    with Mount(f.filename, options=options) as m:
        group = zarr.open_consolidated(m.at(".h5fs/zarr"), mode="r")
        zarrlib.compare(unittest.TestCase(), f, group, m.at(".h5fs/zarr3"))
        with open(m.at(".h5fs/kerchunk.json")) as text:
            return text.read()


def readable(path):
    try:
        with h5py.File(path, "r") as f:
            for name, dataset in zarrlib.datasets(f):
                if dataset.size and dataset.nbytes > LARGEST:
                    return False
                if zarrlib.is_shown(dataset):
                    zarrlib.values(dataset)
                zarrlib.attributes(dataset)
    except Exception:  # whatever h5py or NumPy has against it
        return False
    return True


become_reaper()
counts = {"passed": 0, "failed": 0, "passed over": 0}
for path in sys.argv[1:]:
    what = "passed over"
    if readable(path):
        try:
            with h5py.File(path, "r") as f:
                compare_views(f, "zarr_chunks=decoded")
                zarrlib.compare(unittest.TestCase(), f, zarrlib.references(compare_views(f)), left_out=True)
            what = "passed"
        except Exception as error:
            print(f"{path}: {type(error).__name__}: {str(error)[:300]}")
            what = "failed"
    counts[what] += 1
print(", ".join(f"{count} {what}" for what, count in counts.items()))
sys.exit(bool(counts["failed"]))
