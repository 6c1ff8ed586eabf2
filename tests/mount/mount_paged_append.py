#!/usr/bin/python3
"""A row a chunk, through the extensible array's paged data blocks: past chunk 131,060, where they begin, and past 262,132, where
they get larger. The index looks like the one that libhdf5 makes; libhdf5 reads all, appends more itself, and the mount appends after it."""
import contextlib
import errno
import os
import shutil
import struct
import subprocess
import sys
import tempfile

import h5py
import numpy

import judges
from mountlib import Mount, MountCase, main, read

COMPARE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "judge", "index_structure.py")
PAGED, LARGER = 131_060, 262_132
END = PAGED + 3000  # of the file that libhdf5 has made
HOW = {"plain": {}, "deflate": dict(compression=1)}


WIDTH = 8  # of a row, so that a chunk is worth compressing
PIECE = 100  # rows that libhdf5 reads or writes at once: more of them take it longer each


def values(begin, end):
    return numpy.repeat(numpy.arange(begin, end, dtype="<i4"), WIDTH).reshape(-1, WIDTH)


def pieces(begin, end):
    return [(at, min(end, at + PIECE)) for at in range(begin, end, PIECE)]


class Paged(MountCase):
    @classmethod
    def setUpClass(cls):
        """libhdf5 takes long for so many chunks."""
        folder = tempfile.mkdtemp(prefix="h5fs-test-")
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.theirs = cls.make_in(folder, "theirs.h5")
        cls.libhdf5_appends(cls.theirs, 0, END)

    def make(self, name):
        return self.make_in(self.folder, name)

    @staticmethod
    def make_in(folder, name):
        path = os.path.join(folder, name)
        with h5py.File(path, "w", libver="latest") as f:
            for dataset, how in HOW.items():
                f.create_dataset(dataset, (0, WIDTH), "<i4", maxshape=(None, WIDTH), chunks=(1, WIDTH), **how)
        return path

    def append(self, path, steps):
        """Through the mount, an open file for each step."""
        with Mount(path, options="rw") as m:
            for begin, end in steps:
                for dataset in HOW:
                    with open(m.at(dataset), "ab") as f:
                        f.write(values(begin, end).tobytes())
                    self.assertEqual(os.stat(m.at(dataset)).st_size, 4 * WIDTH * end)
            for dataset in HOW:
                begin = max(0, steps[0][0] - 200)
                with open(m.at(dataset), "rb") as f:
                    f.seek(4 * WIDTH * begin)
                    self.assertTrue(f.read() == values(begin, steps[-1][1]).tobytes(), dataset)

    @staticmethod
    def libhdf5_appends(path, begin, end):
        with h5py.File(path, "r+", libver="latest") as f:
            for dataset in HOW:
                d = f[dataset]
                d.resize(end, 0)
                for piece in pieces(begin, end):
                    d[slice(*piece)] = values(*piece)

    def assert_libhdf5_reads(self, path, end, *seams):
        """All rows, or those around each seam."""
        parts = [(max(0, at - 200), min(end, at + 200)) for at in (0, *seams, end)] if seams else pieces(0, end)
        with judges.File(path) as f:
            for dataset in HOW:
                self.assertEqual(f[dataset].shape, (end, WIDTH))
                for part in parts:
                    self.assertTrue(numpy.array_equal(f[dataset][slice(*part)], values(*part)), (dataset, part))

    def test_past_paged_blocks(self):
        path = self.make("paged.h5")
        crossing = [(PAGED + i, PAGED + i + 1) for i in range(-3, 12)]
        self.append(path, [(0, 70_000), (70_000, PAGED - 3), *crossing, (PAGED + 12, END)])
        self.check_index(path)
        self.libhdf5_appends(path, END, END + 1500)
        self.append(path, [(END + 1500, END + 1501)])
        self.libhdf5_appends(path, END + 1501, LARGER - 10)
        self.append(path, [*((i, i + 1) for i in range(LARGER - 10, LARGER + 10)), (LARGER + 10, LARGER + 1500)])
        self.assert_libhdf5_reads(path, LARGER + 1500, PAGED, END, END + 1500, LARGER)
        self.libhdf5_appends(path, LARGER + 1500, LARGER + 3000)
        end = LARGER + 3000
        self.append(path, [(end, end + 1)])
        self.assert_libhdf5_reads(path, end + 1)
        for dataset in HOW:
            with self.subTest(dataset):
                said = subprocess.run(["h5dump", "-d", f"/{dataset}", "-s", f"{end - 1},0", "-c", "2,1", path], check=True,
                                      stdout=subprocess.PIPE, text=True).stdout
                self.assertIn(f"({end - 1},0): {end - 1},", said)
                self.assertIn(f"({end},0): {end}", said)

    def check_index(self, ours):
        """As libhdf5 makes it."""
        for dataset in HOW:
            for what in [], ["--values"]:
                with self.subTest(dataset=dataset, what=what):
                    compared = subprocess.run([sys.executable, COMPARE, *what, ours, dataset, self.theirs, dataset],
                                              stdout=subprocess.PIPE, text=True)
                    self.assertEqual(compared.stdout, "")
                    self.assertEqual(compared.returncode, 0)

    def test_a_damaged_page_stays_one(self):
        """No new checksum makes it a sound one."""
        path, end = self.file("damaged.h5"), END
        shutil.copyfile(self.theirs, path)
        with h5py.File(path) as f:
            address = f["plain"].id.get_chunk_info_by_coord((END - 100, 0)).byte_offset
        content = read(path)
        at = content.index(struct.pack("<Q", address))
        page = content[:at + 2] + bytes([content[at + 2] ^ 1]) + content[at + 3:]
        with open(path, "wb") as f:
            f.write(page)
        with Mount(path, options="rw") as m:
            fd = os.open(m.at("plain"), os.O_WRONLY | os.O_APPEND)
            try:
                self.assertErrno(errno.EUCLEAN, self.append_and_sync, fd, values(end, end + 1).tobytes())
            finally:
                with contextlib.suppress(OSError):
                    os.close(fd)
            with open(m.at("deflate"), "ab") as f:
                f.write(values(end, end + 1).tobytes())
        self.assertEqual(read(path)[at - 4:at + 8 * 50], page[at - 4:at + 8 * 50])
        with judges.File(path) as f:
            self.assertTrue(numpy.array_equal(f["deflate"][end - 10:], values(end - 10, end + 1)))
            for part in (0, 1000), (PAGED - 1000, PAGED):
                self.assertTrue(numpy.array_equal(f["plain"][slice(*part)], values(*part)))
            with self.assertRaises(OSError):
                f["plain"][END - 100]

    @staticmethod
    def append_and_sync(fd, data):
        os.write(fd, data)
        os.fsync(fd)


if __name__ == "__main__":
    main()
