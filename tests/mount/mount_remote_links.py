#!/usr/bin/python3
"""Other files that a file behind a URL names: they are looked for beside the URL, never on the local disk."""
import errno
import os

import h5py
import numpy

from mountlib import Mount, main, read, write
from remotelib import Case


class Beside(Case):
    """Other files that the file names are looked for beside the URL."""

    def setUp(self):
        super().setUp()
        os.mkdir(self.file("served", "sub"))
        with h5py.File(self.file("served", "sub", "other é.h5"), "w") as f:
            f["d"] = [1, 2, 3]
            f["back"] = h5py.ExternalLink("../main.h5", "/d")
        with h5py.File(self.file("outside.h5"), "w") as f:
            f["d"] = [7]
        write(self.file("served", "raw"), numpy.arange(8, dtype="<i8").tobytes())
        with h5py.File(self.file("served", "main.h5"), "w") as f:
            f["d"] = [5]
            for name, target in {"link": "sub/other é.h5", "absolute": "/elsewhere/x.h5", "self": "main.h5", "missing": "none.h5",
                                 "out": "../outside.h5", "local": self.file("outside.h5")}.items():
                f[name] = h5py.ExternalLink(target, "/group/small" if name == "absolute" else "/d")
            f.create_dataset("raw", (8,), "<i8", external=[("raw", 0, 64)])
            f.create_dataset("raw out", (8,), "<i8", external=[("../outside.h5", 0, 64)])
            layout = h5py.VirtualLayout((3,), "<i8")
            layout[:] = h5py.VirtualSource("sub/other é.h5", "d", (3,), "<i8")
            f.create_virtual_dataset("virtual", layout)

    def test_others(self):
        with self.serve() as server, Mount(server.url("main.h5")) as m:
            for name, values in {"link": [1, 2, 3], "absolute": range(1000), "self": [5], "virtual": [1, 2, 3], "raw": range(8)}.items():
                self.assertEqual(read(m.at(name)), numpy.array(values, "<i8").tobytes(), name)
            self.assertEqual(os.readlink(m.at("missing"))[:8], "extlink:")
            for name in "out", "local":
                self.assertErrno(errno.ENOENT, os.stat, m.at(name))
            self.assertErrno(errno.EACCES, read, m.at("raw out"))
            asked = {r.path for r in server.requests}
            self.assertEqual(asked, {"/main.h5", "/sub/other é.h5", "/x.h5", "/raw", "/none.h5", "/outside.h5"})
            self.assertEqual(len([r for r in server.requests if r.path == "/raw"]), 1)

    def test_none(self):
        with self.serve() as server, Mount(server.url("main.h5"), options="external=none") as m:
            self.assertErrno(errno.EACCES, read, m.at("raw"))
            self.assertErrno(errno.ENOENT, os.stat, m.at("link"))
            self.assertEqual({r.path for r in server.requests}, {"/main.h5"})


if __name__ == "__main__":
    main()
