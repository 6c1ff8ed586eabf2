#!/usr/bin/python3
"""Files behind URLs of servers that others wrote: nginx, and OpenStack Swift with its S3 interface."""
import errno
import hashlib
import os
import shutil

import h5py
import numpy

from mountlib import Mount, MountCase, main, read, refusal
from other_servers import Nginx, Swift


class Servers(MountCase):
    def setUp(self):
        super().setUp()
        os.mkdir(self.file("served"))
        self.path = self.file("served", "a b+c=d.h5")
        rng = numpy.random.default_rng(4)
        with h5py.File(self.path, "w", libver="latest") as f:
            f.create_dataset("rows", data=rng.integers(0, 99, (3000, 400), "<i4"), chunks=(100, 100), compression="gzip", maxshape=(None, 400))
            f["plain"] = rng.integers(0, 1 << 60, 1 << 19, "<i8")
            f["group/small"] = [1.5]
            f["group"].attrs["unit"] = "m"

    def needs(self, server):
        if not shutil.which(server.needs) and "CI" not in os.environ:
            self.skipTest(f"there is no {server.needs}: contrib/install-deps servers")

    def check(self, m):
        with Mount(self.path, point=self.file("local")) as local:
            for name in "rows", "plain", "group/small":
                self.assertEqual(hashlib.sha256(read(m.at(name))).digest(), hashlib.sha256(read(local.at(name))).digest())
            self.assertEqual(os.getxattr(m.at("group"), "user.unit"), b"m")

    def test_nginx(self):
        self.needs(Nginx)
        with Nginx(self.file("served")) as server:
            with Mount(server.url("a b+c=d.h5")) as m:
                self.check(m)
            with Mount(server.url("a b+c=d.h5")) as m:
                # nginx answers 412 once the file is another one.
                os.utime(self.path, (1e9, 1e9))
                self.assertErrno(errno.ESTALE, read, m.at("plain"))
            self.assertEqual(refusal(server.url("nothing.h5"))[0], 13)

    def test_swift(self):
        self.needs(Swift)
        keys = {"AWS_ACCESS_KEY_ID": Swift.keys.access, "AWS_SECRET_ACCESS_KEY": Swift.keys.secret, "AWS_REGION": Swift.keys.region}
        with Swift() as server:
            with open(self.path, "rb") as f:
                server.put("folder/a b+c=d.h5", f.read())
            endpoint = f"s3_endpoint=http://127.0.0.1:{server.port}"
            url = f"s3://{server.bucket}/folder/a b+c=d.h5"
            with Mount(url, options=endpoint, env={**os.environ, **keys}) as m:
                self.check(m)
            # The server names its region.
            with Mount(url, options=endpoint, env={**os.environ, **keys, "AWS_REGION": "eu-wrong-1"}) as m:
                self.assertEqual(len(read(m.at("plain"))), 8 << 19)
            # Its listings, with names that it encodes.
            server.put("folder/deep/a b+c=d.txt", b"text")
            with Mount(f"s3://{server.bucket}/folder/", options=endpoint, env={**os.environ, **keys}) as m:
                self.assertEqual(sorted(os.listdir(m.path)), ["a b+c=d.h5", "deep"])
                self.assertEqual(read(m.at("deep/a b+c=d.txt")), b"text")
                self.assertEqual(len(read(m.at("a b+c=d.h5/plain"))), 8 << 19)
                self.assertErrno(errno.ENOENT, os.stat, m.at("nothing"))
            wrong = {**os.environ, **keys, "AWS_SECRET_ACCESS_KEY": "wrong"}
            self.assertEqual(refusal(url, "-o", endpoint, env=wrong)[0], 14)
            self.assertEqual(refusal(f"s3://{server.bucket}/", "-o", endpoint, env=wrong)[0], 14)
            self.assertEqual(refusal(f"s3://{server.bucket}/nothing.h5", "-o", endpoint, env={**os.environ, **keys})[0], 13)


if __name__ == "__main__":
    main()
