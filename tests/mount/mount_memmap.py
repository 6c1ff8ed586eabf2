#!/usr/bin/python3
"""numpy.memmap and mmap of datasets, compressed and chunked ones too."""
import mmap
import os
import random

import h5py
import numpy

from mountlib import Mount, MountCase, main


class MemoryMaps(MountCase):
    def setUp(self):
        super().setUp()
        self.path = self.file("map.h5")
        values = numpy.random.default_rng(1).normal(size=(300, 401)).round(2)
        with h5py.File(self.path, "w") as f:
            f.create_dataset("compressed", data=values, chunks=(37, 50), compression="gzip", shuffle=True)
            f.create_dataset("big-endian", data=values.astype(">f4"), chunks=(64, 64))
            f.create_dataset("contiguous", data=(values * 100).astype("<i4"))
            f.create_dataset("compound", data=numpy.zeros(100, [("a", "<i4"), ("b", "<f8")]), chunks=(7,))
        with h5py.File(self.path) as f:
            self.expected = {name: dataset[()] for name, dataset in f.items()}

    def test_numpy_memmap(self):
        with Mount(self.path) as m:
            for name, array in self.expected.items():
                mapped = numpy.memmap(m.at(name), dtype=array.dtype, mode="r", shape=array.shape)
                numpy.testing.assert_array_equal(mapped, array, name)
                del mapped

    def test_random_pages(self):
        with Mount(self.path) as m:
            for name, array in self.expected.items():
                content = array.tobytes()
                with open(m.at(name), "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                    self.assertEqual(len(mapped), len(content))
                    pages = list(range(0, len(content), mmap.PAGESIZE))
                    random.Random(1).shuffle(pages)
                    for at in pages:
                        self.assertTrue(mapped[at:at + 100] == content[at:at + 100], f"{name} at {at}")

    def test_a_map_and_reads_agree(self):
        with Mount(self.path) as m, open(m.at("compressed"), "rb") as f:
            with mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                for at in range(0, len(mapped), 99_991):
                    self.assertEqual(os.pread(f.fileno(), 1000, at), mapped[at:at + 1000])

    def test_fromfile_by_the_property(self):
        with Mount(self.path) as m:
            for name in ("compressed", "big-endian", "contiguous"):
                dtype = os.getxattr(m.at(name), "h5fs.dtype").decode()
                shape = [int(n) for n in os.getxattr(m.at(name), "h5fs.shape").decode().split(",")]
                array = numpy.fromfile(m.at(name), dtype).reshape(shape)
                self.assertEqual(array.dtype, self.expected[name].dtype)
                numpy.testing.assert_array_equal(array, self.expected[name], name)


if __name__ == "__main__":
    main()
