#!/usr/bin/python3
"""The worked example h5ex_d_chunk.h5: rebuilt byte for byte, valid for libhdf5, and shown as its structures say."""
import hashlib
import os
import shutil
import struct
import subprocess
import unittest

import h5py

import make_worked_example as example
from mountlib import Mount, MountCase, main, read, write

SHA256 = "f027cf273877b8d84016a9733f36803c58651c717be948af7110c72f10d3786b"  # of the published dump's bytes
ROWS = ["0, 1, 0, 0, 1, 0, 0, 1", "1, 1, 0, 1, 1, 0, 1, 1", "0, 0, 0, 0, 0, 0, 0, 0",
        "0, 1, 0, 0, 1, 0, 0, 1", "1, 1, 0, 1, 1, 0, 1, 1", "0, 0, 0, 0, 0, 0, 0, 0"]  # as h5dump printed it
CONTENT = b"".join(struct.pack("<8i", *map(int, row.split(", "))) for row in ROWS)


class WorkedExample(MountCase):
    def setUp(self):
        super().setUp()
        self.path = self.file("h5ex_d_chunk.h5")
        write(self.path, example.worked_example())

    def test_bytes(self):
        self.assertEqual(os.path.getsize(self.path), 4272)
        self.assertEqual(hashlib.sha256(read(self.path)).hexdigest(), SHA256)

    @unittest.skipUnless(shutil.which("h5dump"), "h5dump is not installed")
    def test_h5dump(self):
        said = subprocess.run(["h5dump", self.path], capture_output=True, text=True, check=True).stdout
        for i, row in enumerate(ROWS):
            self.assertIn(f"({i},0): {row}", said)

    def test_h5py(self):
        with h5py.File(self.path) as f:
            self.assertEqual(f["DS1"].chunks, (4, 4))
            self.assertEqual(f["DS1"][()].astype("<i4").tobytes(), CONTENT)

    def test_mount(self):
        with Mount(self.path) as m:
            self.assertEqual(os.listdir(m.path), ["DS1"])
            self.assertEqual(read(m.at("DS1")), CONTENT)
            st = os.stat(m.at("DS1"))
            self.assertEqual((st.st_size, st.st_nlink), (192, 1))
            self.assertEqual(int(st.st_mtime), int(os.stat(self.path).st_mtime))
            expected = {"class": "dataset", "dtype": "<i4", "type": "H5T_STD_I32LE", "shape": "6,8", "maxshape": "6,8",
                        "layout": "chunked", "chunks": "4,4", "index": "btree1", "filters": "", "fill": "",
                        "storage": "256", "format": "raw", "address": "800", "mtime": "1268919404"}
            for name, value in expected.items():
                with self.subTest(name=name):
                    self.assertEqual(os.getxattr(m.at("DS1"), f"h5fs.{name}").decode(), value)
            self.assertEqual(os.getxattr(m.path, "h5fs.superblock"), b"0")
            self.assertEqual(os.listxattr(m.at("DS1")), [])
            with open(m.at("DS1"), "rb") as f:
                for offset in range(0, 192, 7):
                    for size in (1, 4, 33, 200):
                        self.assertEqual(os.pread(f.fileno(), size, offset), CONTENT[offset:offset + size])


if __name__ == "__main__":
    main()
