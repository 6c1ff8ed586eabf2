#!/usr/bin/python3
"""A file and its journal that are copied one after the other from a living mount: recovery leaves the copy whole."""
import os
import shutil
import subprocess

import h5py
import numpy

from mountlib import H5FS, Mount, WriteCase, main

INT = numpy.dtype("<i4")
APPEND = os.O_WRONLY | os.O_APPEND


class CopiedPair(WriteCase):
    def make(self, libver):
        path = self.file(f"living-{libver}.h5")
        with h5py.File(path, "w", libver=libver) as f:
            data = numpy.arange(4000, dtype=INT).reshape(400, 10)
            for name, options in (("deflated", {"compression": "gzip"}), ("plain", {})):
                f.create_dataset(name, data=data, maxshape=(None, 10), chunks=(100, 10), **options)
            f.create_dataset("late", (500,), INT)
        return path

    def overwrite(self, m, i):
        fd = m.open("deflated", os.O_WRONLY)
        os.pwrite(fd, self.noise(i, 500), 0)
        os.fsync(fd)

    def append(self, m, i):
        """To a chunk that has room, and beyond it."""
        fd = m.open("plain", APPEND)
        os.write(fd, self.noise(i, 10 * (30 if i % 3 else 130)))
        os.fsync(fd)

    def first_write(self, m, _):
        fd = m.open("late", os.O_WRONLY)
        os.write(fd, self.noise(1, 500))
        os.fsync(fd)

    def everything(self, m, i):
        for change in self.overwrite, self.append:
            change(m, i)

    @staticmethod
    def noise(seed, count):
        return numpy.random.default_rng(seed).integers(0, 1 << 20, count).astype(INT).tobytes()

    def contents(self, path):
        with h5py.File(path) as f:
            return {name: f[name][()].tobytes() for name in f}

    def copy_and_recover(self, path, m, change, i):
        copy = self.file("copy.h5")
        shutil.copy(path, copy)
        before = self.contents(copy)
        change(m, i)
        shutil.copy(path + ".h5fs-journal", copy + ".h5fs-journal")
        told = subprocess.run([H5FS, "--recover", copy], capture_output=True, text=True)
        self.assertTrue(self.contents(copy) == before, told.stdout + told.stderr)
        checked = subprocess.run([H5FS, "--check", copy], capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stdout)
        for name in os.listdir(self.folder):
            if name.startswith("copy.h5"):
                os.unlink(self.file(name))

    def test_a_commit_between(self):
        for libver in "earliest", "latest":
            for change in self.overwrite, self.append, self.first_write, self.everything:
                with self.subTest(libver=libver, change=change.__name__):
                    path = self.make(libver)
                    with Mount(path, options="rw") as m:
                        for i in range(1 if change == self.first_write else 8):
                            self.copy_and_recover(path, m, change, i)
                        m.close_all()

    def test_an_object_that_is_damaged(self):
        """What another program has left so is not written: the journal is kept for whoever mends the file."""
        path, copy = self.make("latest"), self.file("copy.h5")
        with h5py.File(path) as f:
            at = h5py.h5o.get_info(f["plain"].id).addr
        with Mount(path, options="rw") as m:
            shutil.copy(path, copy)
            self.append(m, 0)
            shutil.copy(path + ".h5fs-journal", copy + ".h5fs-journal")
            m.close_all()
        with open(copy, "r+b") as f:
            f.seek(at + 10)
            byte = f.read(1)[0]
            f.seek(at + 10)
            f.write(bytes([byte ^ 1]))
        with open(copy, "rb") as f:
            before = f.read()
        names = sorted(os.listdir(self.folder))
        told = subprocess.run([H5FS, "--recover", copy], capture_output=True, text=True)
        self.assertEqual(told.returncode, 4, told.stdout + told.stderr)
        self.assertIn("an object that a stale journal names: ", told.stderr)
        self.assertEqual(told.stdout, "")
        self.assertEqual(sorted(os.listdir(self.folder)), names)
        with open(copy, "rb") as f:
            self.assertEqual(f.read(), before)


if __name__ == "__main__":
    main()
