#!/usr/bin/python3
"""lseek(SEEK_HOLE), lseek(SEEK_DATA), and programs that copy by them."""
import errno
import mmap
import os
import subprocess

import h5py
import numpy as np

from mountlib import Mount, MountCase, main, read

CHUNK = 8192  # bytes
HUGE = 1 << 40


def seek(fd, offset, how):
    """lseek(); None where there is no more data."""
    try:
        return os.lseek(fd, offset, how)
    except OSError as e:
        if e.errno != errno.ENXIO:
            raise
        return None


def pieces(fd):
    """[(begin, end)] of data."""
    found, at = [], 0
    while (begin := seek(fd, at, os.SEEK_DATA)) is not None:
        at = seek(fd, begin, os.SEEK_HOLE)
        found.append((begin, at))
    return found


class Holes(MountCase):
    def make(self, **options):
        """A file with chunks 2, 3 and 6 of ten in "d", and others."""
        path = self.file("holes.h5")
        with h5py.File(path, "w", libver="latest") as f:
            d = f.create_dataset("d", (10 * CHUNK,), "u1", chunks=(CHUNK,), maxshape=(None,), **options)
            for i in 2, 3, 6:
                d[i * CHUNK:(i + 1) * CHUNK] = i
            f.create_dataset("fill", (10 * CHUNK,), "u1", chunks=(CHUNK,), fillvalue=9)
            f.create_dataset("none", (10 * CHUNK,), "u1", chunks=(CHUNK,))
            f.create_dataset("contiguous", (10 * CHUNK,), "u1")
            f["text"] = np.array(["a" * CHUNK], object)
            f["empty"] = np.zeros(0)
            huge = f.create_dataset("huge", (HUGE // CHUNK, CHUNK), "u1", chunks=(256, CHUNK))
            huge[HUGE // CHUNK // 2] = 5
        return path

    def test_where(self):
        for options in {}, {"compression": "gzip"}:
            with Mount(self.make(**options)) as m:
                def data(name):
                    return pieces(m.open(name, os.O_RDONLY))
                self.assertEqual(data("d"), [(2 * CHUNK, 4 * CHUNK), (6 * CHUNK, 7 * CHUNK)])
                self.assertEqual(data("none"), [])
                self.assertEqual(data("contiguous"), [])
                self.assertEqual(data("fill"), [(0, 10 * CHUNK)])
                self.assertEqual(data("text"), [(0, CHUNK + 1)])
                self.assertEqual(data("empty"), [])
                begin = HUGE // CHUNK // 2 // 256 * 256 * CHUNK
                self.assertEqual(data("huge"), [(begin, begin + 256 * CHUNK)])
                fd = m.open("d", os.O_RDONLY)
                self.assertEqual(seek(fd, 3 * CHUNK + 5, os.SEEK_DATA), 3 * CHUNK + 5)
                self.assertEqual(seek(fd, 8 * CHUNK + 5, os.SEEK_HOLE), 8 * CHUNK + 5)
                for offset in 10 * CHUNK, 10 * CHUNK + 1:
                    self.assertIsNone(seek(fd, offset, os.SEEK_DATA))
                    self.assertIsNone(seek(fd, offset, os.SEEK_HOLE))

    def test_copies(self):
        path = self.make()
        out = os.path.join(os.path.dirname(path), "out")
        with Mount(path) as m:
            for name in "d", "none", "fill", "contiguous":
                for sparse in "auto", "always", "never":
                    subprocess.run(["cp", f"--sparse={sparse}", m.at(name), out], check=True)
                    self.assertEqual(read(out), read(m.at(name)), (name, sparse))
                    os.unlink(out)
            # a terabyte, of which two megabytes are there
            for sparse in "auto", "always":
                subprocess.run(["cp", f"--sparse={sparse}", m.at("huge"), out], check=True)
                self.check_huge(out)
                os.unlink(out)
            subprocess.run(["tar", "-cSf", out, "-C", m.path, "d", "none", "huge"], check=True)
            self.assertLess(os.stat(out).st_size, 300 * CHUNK)
            folder = out + ".d"
            os.mkdir(folder)
            subprocess.run(["tar", "-xSf", out, "-C", folder], check=True)
            for name in "d", "none":
                self.assertEqual(read(os.path.join(folder, name)), read(m.at(name)), name)
            self.check_huge(os.path.join(folder, "huge"))

    def check_huge(self, path):
        with open(path, "rb") as f:
            self.assertEqual(os.fstat(f.fileno()).st_size, HUGE)
            f.seek(HUGE // 2 - CHUNK)
            self.assertEqual(f.read(3 * CHUNK), bytes(CHUNK) + b"\5" * CHUNK + bytes(CHUNK))

    def test_written(self):
        with Mount(self.make(compression="gzip"), options="rw") as m:
            reader, writer = m.open("d", os.O_RDONLY), m.open("d", os.O_WRONLY)
            before = pieces(reader)
            self.assertEqual(len(before), 2)
            os.pwrite(writer, b"x", 8 * CHUNK + 7)
            self.assertEqual(pieces(reader), before + [(8 * CHUNK, 9 * CHUNK)])
            os.lseek(writer, 0, os.SEEK_END)
            os.pwrite(writer, b"y" * 10, 10 * CHUNK)
            self.assertEqual(pieces(reader), before + [(8 * CHUNK, 9 * CHUNK), (10 * CHUNK, 10 * CHUNK + 10)])
            # who has it mapped may have changed pages of which the kernel tells later
            both = m.open("none", os.O_RDWR)
            reader = m.open("none", os.O_RDONLY)
            with mmap.mmap(both, 10 * CHUNK) as memory:
                os.close(both)
                memory[5 * CHUNK] = 1
                at = seek(reader, 4 * CHUNK, os.SEEK_DATA)
                self.assertLessEqual(at, 5 * CHUNK)
                self.assertGreater(seek(reader, at, os.SEEK_HOLE), 5 * CHUNK)
            self.assertEqual(read(m.at("none"))[5 * CHUNK], 1)


if __name__ == "__main__":
    main()
