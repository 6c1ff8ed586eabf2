#!/usr/bin/python3
"""Datasets of structured chunks, through the mount."""
import errno
import itertools
import json
import os
import struct

from mountlib import Mount, MountCase, main, read

DATA = os.environ["H5FS_TEST_DATA"]
SPARSE = os.path.join(os.environ.get("H5FS_CONFORMANCE", ""), "sparse")


class Structured(MountCase):
    def test_content(self):
        for name in ("single_now", "fixed_early_filtered", "extensible_now_filtered", "btree_early"):
            path = f"{DATA}/structured_{name}"
            with self.subTest(name=name), Mount(path + ".h5") as m:
                self.assertEqual(read(m.at("sparse")), read(path + ".bin"))
                self.assertEqual(os.stat(m.at("sparse")).st_size, os.path.getsize(path + ".bin"))

    def test_properties(self):
        with Mount(f"{DATA}/structured_extensible_now_filtered.h5") as m:
            path = m.at("sparse")
            expected = {"layout": "structured", "shape": "9,170", "maxshape": "12,inf", "dtype": "<u4"}
            for name, value in expected.items():
                with self.subTest(name=name):
                    self.assertEqual(os.getxattr(path, f"h5fs.{name}").decode(), value)
            for name in "chunks", "index", "filters":
                with self.subTest(name=name):
                    self.assertErrno(errno.ENODATA, os.getxattr, path, f"h5fs.{name}")

    def test_sections_that_are_not_supported(self):
        with Mount(f"{DATA}/structured_bad_three_sections.h5") as m:
            self.assertEqual(os.getxattr(m.at("sparse"), "h5fs.shape"), b"20")
            self.assertEqual(os.stat(m.at("sparse")).st_size, 80)
            with open(m.at("sparse"), "rb", buffering=0) as f:
                self.assertErrno(errno.ENOTSUP, f.read, 10)

    def test_another_writer(self):
        listing = os.path.join(SPARSE, "values.json")
        if not os.path.exists(listing):
            self.skipTest(f"no {listing}")
        for name, about in json.loads(read(listing)).items():
            defined = about["defined"]
            values = [defined.get(",".join(map(str, at)), about["fill"])
                      for at in itertools.product(*map(range, about["dims"]))]
            with self.subTest(name=name), Mount(os.path.join(SPARSE, name)) as m:
                self.assertEqual(read(m.at("sparse")), struct.pack(f"<{len(values)}i", *values))
                self.assertEqual(int(os.getxattr(m.at("sparse"), "h5fs.storage")),
                                 sum(chunk["size"] for chunk in about["chunks"]))


if __name__ == "__main__":
    main()
