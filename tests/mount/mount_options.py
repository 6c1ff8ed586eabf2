#!/usr/bin/python3
"""Mount options: owner and modes, order of listing, raw attributes."""
import json
import os
import stat
import struct
import time
import unittest

import h5py
import numpy

from mountlib import H5FS, Mount, MountCase, main, of_threads, refusal


class Options(MountCase):
    def setUp(self):
        super().setUp()
        self.path = self.file("options.h5")
        with h5py.File(self.path, "w") as f:
            g = f.create_group("g", track_order=True)
            for name in ("zebra", "ant", "mouse"):
                g[name] = [1.5, 2.5]
            g["zebra"].attrs["double"] = 0.5
            g["zebra"].attrs.create("big", [1, 2], dtype=">i2")
            g["zebra"].attrs["text"] = "caf\u00e9"
            g["zebra"].attrs["fixed"] = h5py.Empty("<i4")
            g["link"] = h5py.SoftLink("ant")

    def assertOwner(self, path, uid, gid, mode):
        st = os.lstat(path)
        self.assertEqual((st.st_uid, st.st_gid, oct(stat.S_IMODE(st.st_mode))), (uid, gid, oct(mode)), path)

    def test_defaults(self):
        with Mount(self.path) as m:
            for name, mode in ((".", 0o555), ("g", 0o555), ("g/zebra", 0o444)):
                self.assertOwner(m.at(name), os.getuid(), os.getgid(), mode)

    @unittest.skipIf(os.geteuid(), "only root mounts for others")
    def test_who_mounts_is_the_owner(self):
        self.let_all_mount()
        with Mount(self.path, "--ruid=1234", "--rgid=2345", "--keep-groups", H5FS, program="setpriv", options="allow_other") as m:
            self.assertOwner(m.at("g/zebra"), 1234, 2345, 0o444)

    def test_owner_and_masks(self):
        with Mount(self.path, options="uid=1234,gid=2345,fmask=0137,dmask=0027") as m:
            for name, mode in ((".", 0o550), ("g", 0o550), ("g/zebra", 0o440)):
                self.assertOwner(m.at(name), 1234, 2345, mode)

    def test_order(self):
        for options, expected in ((None, ["ant", "link", "mouse", "zebra"]), ("order=name", ["ant", "link", "mouse", "zebra"]),
                                  ("order=creation", ["zebra", "ant", "mouse", "link"])):
            with self.subTest(options=options), Mount(self.path, options=options) as m:
                self.assertEqual(os.listdir(m.at("g")), expected)

    def test_attributes(self):
        values = {"text": {"double": b"0.5", "text": "caf\u00e9".encode(), "fixed": b""},
                  "raw": {"double": struct.pack("<d", 0.5), "big": struct.pack(">2h", 1, 2), "fixed": b""}}
        for option, expected in values.items():
            with self.subTest(option=option), Mount(self.path, options=f"xattr={option}") as m:
                zebra = m.at("g/zebra")
                for name, value in expected.items():
                    self.assertEqual(os.getxattr(zebra, f"user.{name}"), value, name)
                if option == "text":
                    self.assertEqual(json.loads(os.getxattr(zebra, "user.big")), [1, 2])
                self.assertEqual(os.getxattr(zebra, "h5fs.raw.big"), struct.pack(">2h", 1, 2))
                self.assertEqual(os.getxattr(zebra, "h5fs.type.big"), b"(2,)>i2")

    def test_several_options_at_once(self):
        with Mount(self.path, "-o", "uid=1,ro", options="gid=2,order=creation") as m:
            self.assertOwner(m.at("g"), 1, 2, 0o555)
            self.assertEqual(os.listdir(m.at("g"))[0], "zebra")

    def test_small_caches(self):
        """The least budget still serves."""
        with Mount(self.path, options="index_cache=0,cache=0") as m:
            with open(m.at("g/zebra"), "rb") as f:
                self.assertEqual(f.read(), struct.pack("<2d", 1.5, 2.5))

    def test_workers(self):
        """A thread per worker, once there is work for several; none with 0."""
        path = self.file("chunks.h5")
        with h5py.File(path, "w") as f:
            f.create_dataset("d", data=numpy.arange(256).reshape(64, 4), chunks=(4, 4), compression="gzip")
            expected = f["d"][:].tobytes()
        for workers in (0, 1, 3):
            with self.subTest(workers=workers), Mount(path, options=f"workers={workers}") as m:
                with open(m.at("d"), "rb") as f:
                    self.assertEqual(f.read(), expected)
                # They have been started; each names itself when it first runs.
                end = time.monotonic() + 60
                while of_threads(m.daemon, "comm").count("h5fs-worker\n") < workers and time.monotonic() < end:
                    time.sleep(0.01)
                self.assertEqual(of_threads(m.daemon, "comm").count("h5fs-worker\n"), workers)

    def test_wrong_workers(self):
        for workers in ("x", "-1", "65", ""):
            with self.subTest(workers=workers):
                self.assertEqual(refusal(self.path, options=f"workers={workers}")[0], 2)


if __name__ == "__main__":
    main()
