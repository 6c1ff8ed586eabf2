#!/usr/bin/python3
"""rsync -aHX and cp -a of a mount give the same tree."""
import os
import shutil
import unittest

import h5py
import numpy

from copytree import copy_differences, describe_tree, xattr_folder
from mountlib import Mount, MountCase, main


@unittest.skipUnless(shutil.which("rsync"), "rsync is not installed")
@unittest.skipUnless(xattr_folder(), "no file system here takes user xattrs of 60,000 bytes")
class Copies(MountCase):
    def sample(self, libver):
        path = self.file("kinds.h5")
        text = h5py.string_dtype()
        with h5py.File(path, "w", libver=libver) as f:
            f["contiguous"] = numpy.arange(100_000, dtype=">f8")
            f.create_dataset("chunked", data=numpy.arange(60_000).reshape(300, 200), chunks=(64, 64), compression="gzip")
            f.create_dataset("holes", (1000, 1000), "<i4", chunks=(100, 100))[500:600] = 1
            f.create_dataset("filled", (100, 100), "<i4", chunks=(10, 10), fillvalue=9)
            f["scalar"] = 3.5
            f["null"] = h5py.Empty("<f4")
            f["none"] = numpy.zeros((0, 5))
            f["strings"] = numpy.array(["one", "", "drei\nvier", "\u00e9"], dtype=object)
            f["fixed"] = numpy.array([b"abc", b"de"])
            lists = f.create_dataset("vlen", (3,), h5py.vlen_dtype("<i4"))
            for i in range(3):
                lists[i] = numpy.arange(i)
            f["compound"] = numpy.zeros(5, [("a", "<i4"), ("b", "S3"), ("c", "<f8", (2,))])
            f["mixed"] = numpy.array([("x", 1)], [("name", text), ("n", "<i4")])
            f["references"] = numpy.array([f["scalar"].ref, f.ref], h5py.ref_dtype)
            f["type"] = numpy.dtype("<i2")
            g = f.create_group("group/inner")
            g["hard"] = f["chunked"]
            g["up"] = f["group"]
            g["soft"] = h5py.SoftLink("/scalar")
            g["dangling"] = h5py.SoftLink("/no/such/thing")
            g["external"] = h5py.ExternalLink("no-such-file.h5", "/x")
            f["a%2Fb"] = 1
            f["x" * 300] = 2
            f[b"\xff\xfe"] = 3
            for target in (f, g, f["scalar"], f["type"], f["strings"]):
                target.attrs["number"] = 1.25
                target.attrs["text"] = "two\nlines"
                target.attrs["array"] = numpy.arange(6).reshape(2, 3)
                target.attrs["empty"] = ""
                target.attrs["long"] = numpy.bytes_(b"y" * 20_000)
                target.attrs["slash/name"] = [True, False]
        # Not now: rsync leaves the time of a folder as it is where only the fraction of the second differs.
        os.utime(path, ns=(1_000_000_000_123_456_789,) * 2)
        return path

    def test_copies(self):
        for libver in ("earliest", "latest"):
            with self.subTest(libver=libver), Mount(self.sample(libver)) as m:
                tree = describe_tree(m.path)
                self.assertEqual(len(tree), 25)
                self.assertEqual(len(tree[b"scalar"]["xattrs"]), 6)
                self.assertEqual(copy_differences(m.path, xattr_folder()), [])
                self.assertEqual(tree[b"chunked"]["same as"], tree[b"group/inner/hard"]["same as"])


if __name__ == "__main__":
    main()
