#!/usr/bin/python3
"""What the header of an extensible array says of its blocks, after appends: the same as after those of libhdf5. Nobody who reads needs it."""
import struct

import h5py
import numpy

from mountlib import Mount, WriteCase, main, read

# Chunks, each of one row: in the index block, in the first data blocks, behind the first super block, in paged data blocks.
COUNTS = 1, 4, 5, 20, 21, 84, 85, 500, 6000, 40_000
STATISTICS = "super blocks", "their bytes", "data blocks", "their bytes", "largest index", "elements of blocks that are there"


def statistics(path):
    """The six numbers of the header (File Format, The Extensible Array Index)."""
    data = read(path)
    at = data.index(b"EAHD")
    assert data.find(b"EAHD", at + 1) < 0
    return dict(zip(enumerate(STATISTICS), struct.unpack_from("<6Q", data, at + 12)))


class ArrayHeader(WriteCase):
    def create(self, name, **filters):
        path = self.file(name)
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("d", (0,), "<i4", maxshape=(None,), chunks=(1,), **filters)
        return path

    def test_after_appends(self):
        for filters in {}, {"fletcher32": True}:
            theirs, ours = self.create("theirs.h5", **filters), self.create("ours.h5", **filters)
            for before, count in zip((0, *COUNTS), COUNTS):
                rows = numpy.arange(before, count, dtype="<i4")
                with h5py.File(theirs, "r+", libver="latest") as f:
                    f["d"].resize((count,))
                    f["d"][before:] = rows
                with Mount(ours, options="rw") as m, open(m.at("d"), "ab") as f:
                    f.write(rows.tobytes())
                with self.subTest(count=count, **filters):
                    self.assertEqual(statistics(ours), statistics(theirs))


if __name__ == "__main__":
    main()
