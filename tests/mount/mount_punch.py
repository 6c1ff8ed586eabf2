#!/usr/bin/python3
"""Holes that are punched into files of the mount (fallocate -p): the fill value, and space that is given up."""
import os
import subprocess
import time

import h5py
import numpy

import judges
from mountlib import Mount, MountCase, main

SHAPES = {
    "contiguous": ((3000, 40), dict()),
    "filled": ((3000, 40), dict(fillvalue=9)),
    "compact": ((50, 40), dict(layout="compact")),
    "fixed": ((3000, 40), dict(chunks=(70, 13))),
    "array": ((3000, 40), dict(chunks=(70, 40), maxshape=(None, 40))),
    "packed": ((3000, 40), dict(chunks=(70, 13), maxshape=(None, 40), compression=1, fillvalue=7)),
    "tree": ((3000, 40), dict(chunks=(70, 13), maxshape=(None, None))),
    "single": ((300, 40), dict(chunks=(300, 40), compression=1)),
}


def punch(path, offset, n):
    subprocess.run(["fallocate", "-p", "-o", str(offset), "-l", str(n), path], check=True)


def set_fill(values, offset, n, fill):
    values.reshape(-1).view("u1")[offset:offset + n] = numpy.resize(numpy.array([fill], "<i4").view("u1"), n + 4)[offset % 4:offset % 4 + n]


class Punch(MountCase):
    def create(self, **style):
        path = self.file("punch.h5")
        random = numpy.random.default_rng(1)
        values = {}
        with h5py.File(path, "w", **style) as f:
            for name, (shape, how) in SHAPES.items():
                values[name] = random.integers(0, 1 << 31, shape, "<i4")
                if how.get("layout"):
                    create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                    create.set_layout(h5py.h5d.COMPACT)
                    h5py.h5d.create(f.id, name.encode(), h5py.h5t.STD_I32LE, h5py.h5s.create_simple(shape), create)
                    f[name][...] = values[name]
                else:
                    f.create_dataset(name, data=values[name], **how)
        return path, values

    def test_against_a_model(self):
        for libver in "earliest", "latest":
            path, values = self.create(libver=libver)
            random = numpy.random.default_rng(2)
            for _ in range(3):
                with Mount(path, options="rw") as m:
                    for name, array in values.items():
                        size, fill = array.nbytes, SHAPES[name][1].get("fillvalue", 0)
                        for i in range(6):
                            offset = int(random.integers(0, size))
                            n = int(random.integers(1, size if i % 2 else 3000))
                            punch(m.at(name), offset, n)
                            set_fill(array, offset, min(n, size - offset), fill)
                            if i % 3 == 1:
                                with open(m.at(name), "r+b", buffering=0) as f:
                                    os.pwrite(f.fileno(), b"\1\2\3\4" * 100, 4 * 500)
                                array.reshape(-1)[500:600] = 0x04030201
                            with open(m.at(name), "rb") as f:
                                self.assertTrue(f.read() == array.tobytes(), (libver, name, i))
                with judges.File(path) as f:
                    for name, array in values.items():
                        self.assertTrue((f[name][()] == array).all(), (libver, name))
                with h5py.File(path, "r+") as f:  # libhdf5 goes on
                    for name, array in values.items():
                        array[7:90:3] = 5
                        f[name][7:90:3] = 5

    def test_space(self):
        """All of a dataset is punched: the file takes less room, and is as large as before at most."""
        path = self.file("space.h5")
        content = numpy.random.default_rng(3).integers(0, 256, 4 << 20, "u1")
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("chunks", data=content, chunks=(1 << 16,))
            f.create_dataset("packed", data=content, chunks=(1 << 16,), compression=1)
            f.create_dataset("contiguous", data=content)
            f["behind"] = numpy.arange(10)
        os.sync()
        before = os.stat(path).st_blocks * 512
        self.assertGreater(before, 12 << 20)
        with Mount(path, options="rw") as m:
            for name in "chunks", "packed", "contiguous":
                punch(m.at(name), 0, 5 << 20)
            until = time.monotonic() + 30
            while os.stat(path).st_blocks * 512 > 1 << 20 and time.monotonic() < until:
                time.sleep(0.1)
            self.assertLess(os.stat(path).st_blocks * 512, 1 << 20)
            for name in "chunks", "packed":
                self.assertEqual(os.getxattr(m.at(name), "h5fs.storage"), b"0")
        with judges.File(path) as f:
            for name in "chunks", "packed", "contiguous":
                self.assertFalse(f[name][()].any())

    def test_what_is_refused(self):
        path, values = self.create(libver="latest")
        with Mount(path, options="rw") as m:
            fd = m.open("array", os.O_RDWR)
            for mode in [], ["-n"], ["-z"], ["-c"], ["-i"]:
                run = subprocess.run(["fallocate", *mode, "-o", "0", "-l", "4096", m.at("array")], capture_output=True, text=True)
                self.assertEqual(run.returncode, 1)
                self.assertRegex(run.stderr, "not supported|unsupported")
            os.close(fd)
            # Behind the end there is nothing to punch.
            punch(m.at("array"), values["array"].nbytes, 1000)
            punch(m.at("array"), values["array"].nbytes - 4, 1 << 60)
            values["array"][-1, -1] = 0
        with judges.File(path) as f:
            for name, array in values.items():
                self.assertTrue((f[name][()] == array).all(), name)


if __name__ == "__main__":
    main()
