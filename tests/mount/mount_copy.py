#!/usr/bin/python3
"""rsync -aHX, cp -a and h5fs --extract give the tree of the mount, in a plain folder; and copies into other mounts."""
import os
import shutil
import subprocess
import unittest

import h5py
import numpy

from copytree import copy_differences, describe_tree, xattr_folder
from mountlib import H5FS, Mount, MountCase, main


class SampleCase(MountCase):
    def sample(self, libver):
        path = self.file(f"kinds-{libver}.h5")
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


@unittest.skipUnless(shutil.which("rsync"), "rsync is not installed")
@unittest.skipUnless(xattr_folder(), "no file system here takes user xattrs of 60,000 bytes")
class Copies(SampleCase):
    def test_copies(self):
        for libver in ("earliest", "latest"):
            path = self.sample(libver)
            with self.subTest(libver=libver), Mount(path) as m:
                tree = describe_tree(m.path)
                self.assertEqual(len(tree), 25)
                self.assertEqual(len(tree[b"scalar"]["xattrs"]), 6)
                self.assertEqual(copy_differences(m.path, path, xattr_folder()), [])
                self.assertEqual(tree[b"chunked"]["same as"], tree[b"group/inner/hard"]["same as"])


@unittest.skipUnless(shutil.which("rsync"), "rsync is not installed")
class CopiesIntoMounts(SampleCase):
    def tree(self, m):
        """As describe_tree(), without what a mount does not keep."""
        tree = describe_tree(m.path)
        for entry in tree.values():
            entry.pop("mode", None)
            entry.pop("mtime", None)
        return tree

    def copy(self, program, source, target):
        command = {"cp": ["cp", "-a"], "rsync": ["rsync", "-aHX", "--size-only", "--stats"]}[program]
        run = subprocess.run([*command, source.at("."), target.path], capture_output=True, text=True, check=False, env=dict(os.environ, LC_ALL="C"))
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return run.stdout

    def test_there_and_back(self):
        """From one mount to another, and from that to a third: the two copies are equal, also for h5diff."""
        for libver, program in ("earliest", "cp"), ("latest", "rsync"):
            path = self.sample(libver)
            with h5py.File(path, "r+", libver=libver) as f:
                del f["x" * 300]  # its name is cut, so it cannot be made
            copies = [self.file(f"{name}-{libver}.h5") for name in ("one", "two")]
            h5py.File(copies[1], "w", libver=libver).close()
            with self.subTest(libver=libver), Mount(path) as m, Mount(copies[0], options="create") as one, Mount(copies[1], options="rw") as two:
                for source, target in (m, one), (one, two):
                    self.copy(program, source, target)
                    self.assertEqual(self.tree(source), self.tree(target))
                    if program == "rsync":
                        again = self.copy(program, source, target)
                        self.assertIn("Number of regular files transferred: 0", again)
                        self.assertIn("Number of created files: 0", again)
                    self.assertEqual(self.tree(source), self.tree(target))
            with self.subTest(libver=libver, judge="h5diff"):
                run = subprocess.run(["h5diff", "-c", *copies], capture_output=True, text=True, check=False)
                said = [line for line in run.stdout.splitlines() if "is an empty dataset" not in line]
                self.assertEqual((run.returncode, said, run.stderr), (0, [], ""))
            with self.subTest(libver=libver, judge="check"):
                for copy in copies:
                    checked = subprocess.run([H5FS, "--check", copy], capture_output=True, text=True, check=False)
                    self.assertEqual(checked.returncode, 0, checked.stdout)


if __name__ == "__main__":
    main()
