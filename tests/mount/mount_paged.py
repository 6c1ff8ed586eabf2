#!/usr/bin/python3
"""140,000 chunks of one element each: array indexes with pages, deep B-trees; filtered and not, with and without gaps."""
import os

import h5py
import numpy

from mountlib import Mount, MountCase, main, read

CHUNKS = 140_000
SLAB = 1400
VALUES = numpy.arange(CHUNKS, dtype="<i4") * 7919 + 1


class Paged(MountCase):
    def check(self, index, libver="latest", **create):
        path = self.file("paged.h5")
        shape = create.pop("shape", (CHUNKS,))
        with h5py.File(path, "w", libver=libver) as f:
            full = f.create_dataset("full", shape, "<i4", **create)
            for first in range(0, CHUNKS, SLAB):  # libhdf5 keeps a list of the chunks of each transfer
                full[first:first + SLAB] = VALUES.reshape(shape)[first:first + SLAB]
            gaps = f.create_dataset("gaps", shape, "<i4", fillvalue=-7, **create)
            filled = numpy.full(CHUNKS, -7, "<i4")
            for first, last in ((0, 3), (1500, 1501), (70_000, 73_000), (CHUNKS - 1, CHUNKS)):
                filled[first:last] = VALUES[first:last]
                gaps[first:last] = VALUES[first:last].reshape(gaps[first:last].shape)
        expected = VALUES.tobytes(), filled.tobytes()
        with Mount(path) as m:
            self.assertEqual(os.getxattr(m.at("full"), "h5fs.index").decode(), index)
            for name, content in zip(("full", "gaps"), expected):
                self.assertTrue(read(m.at(name)) == content, name)
                with open(m.at(name), "rb") as f:  # backwards, so that nothing is read ahead
                    for element in range(CHUNKS - 1, 0, -CHUNKS // 200):
                        self.assertEqual(os.pread(f.fileno(), 4, 4 * element), content[4 * element:4 * element + 4])

    def test_fixed_array(self):
        self.check("farray", chunks=(1,))

    def test_fixed_array_filtered(self):
        self.check("farray", chunks=(1,), compression="gzip")

    def test_extensible_array(self):
        self.check("earray", chunks=(1,), maxshape=(None,))

    def test_extensible_array_filtered(self):
        self.check("earray", chunks=(1,), maxshape=(None,), compression="gzip", shuffle=True)

    def test_btree2(self):
        self.check("btree2", shape=(CHUNKS, 1), chunks=(1, 1), maxshape=(None, None))

    def test_btree2_filtered(self):
        self.check("btree2", shape=(CHUNKS, 1), chunks=(1, 1), maxshape=(None, None), fletcher32=True)

    def test_btree1(self):
        self.check("btree1", libver="earliest", chunks=(1,), maxshape=(None,))

    def test_btree1_filtered(self):
        self.check("btree1", libver="earliest", chunks=(1,), compression="gzip")


if __name__ == "__main__":
    main()
