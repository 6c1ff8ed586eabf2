#!/usr/bin/python3
"""Other files that a file behind a URL names: they are looked for beside the URL, never on the local disk."""
import contextlib
import errno
import os
import re
import unittest

import h5py
import numpy

from mountlib import H5FS, Mount, MountFailed, main, read, write
from object_server import redirect, whole
from remotelib import MIB, Case


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

    def test_names(self):
        """A name is a path beneath the folder of the URL, whatever it looks like; nobody else is asked, and the query is for one file."""
        names = {  # of a link: what the server is asked for, None: nothing
            "file:///etc/passwd": "/sub/file%3A/etc/passwd", "http://192.0.2.1/x.h5": "/sub/http%3A/192.0.2.1/x.h5",
            "s3://bucket/x.h5": "/sub/s3%3A/bucket/x.h5", "a%20b%2f.h5": "/sub/a%2520b%252f.h5", "q?x=1&y.h5": "/sub/q%3Fx%3D1%26y.h5",
            "h#1.h5": "/sub/h%231.h5", "../x.h5": None, "a/../../x.h5": None, "/../x.h5": "/sub/x.h5", "//host/y.h5": "/sub/y.h5",
            "a//./b.h5": "/sub/a/b.h5", "..\\x.h5": "/sub/..%5Cx.h5", "%2e%2e/x.h5": "/sub/%252e%252e/x.h5", "/etc/passwd": "/sub/passwd",
            "a/../c.h5": "/sub/c.h5", "\u00e9\r\n.h5": "/sub/%C3%A9%0D%0A.h5", "x\\..\\..": "/sub/x%5C..%5C..", "ma in.h5": None}
        with h5py.File(self.file("served", "sub", "ma in.h5"), "w") as f:
            f["d"] = [5]
            for i, name in enumerate(names):
                f[f"l{i}"] = h5py.ExternalLink(name, "/d")
        for name in "q?x=1&y.h5", "h#1.h5", "a%20b%2f.h5", "c.h5":
            os.link(self.file("served", "sub", "other \u00e9.h5"), self.file("served", "sub", name))
        with self.serve() as other, self.serve() as server:
            server.on("secret", redirect(other.url("sub/ma in.h5")), None)  # others are beside what the user has named
            with Mount(server.url("sub/ma in.h5") + "?secret=1") as m:
                for i, (name, target) in enumerate(names.items()):
                    with self.subTest(name):
                        server.forget()
                        there = os.path.exists(m.at(f"l{i}"))
                        self.assertEqual(there, name in ("q?x=1&y.h5", "h#1.h5", "a%20b%2f.h5", "a/../c.h5", "ma in.h5"))
                        self.assertEqual({r.target for r in server.requests}, {target} - {None})
            self.assertEqual({(r.path, r.query) for r in other.requests}, {("/sub/ma in.h5", "")})

    def test_keys(self):
        """Those of an object store are no paths: nothing is taken out of them."""
        with self.serve() as server:
            with self.assertRaises(MountFailed), Mount("s3://bucket//a/./b//../x y.h5", options=f"s3_anonymous,s3_endpoint={server.url()[:-1]}"):
                pass
            self.assertEqual([r.target for r in server.requests], ["/bucket//a/./b//../x%20y.h5"])

    def test_files_that_come_whole(self):
        """All of them have as much room as one has."""
        for name in "a.h5", "b.h5":
            write(self.file("served", name), read(self.path) + bytes(3 * MIB))
        with h5py.File(self.file("served", "main.h5"), "a") as f:
            for name in "a.h5", "b.h5":
                f[name] = h5py.ExternalLink(name, "/rows")
        with self.serve() as server:
            server.on("", whole(), None)
            with Mount(server.url("main.h5"), options="remote_whole=16M") as m:
                self.assertEqual(sum(os.path.exists(m.at(name)) for name in ("a.h5", "b.h5")), 1)

    @unittest.skipIf(os.geteuid(), "fusermount3 mounts for root alone under strace")
    def test_system_calls(self):
        """All that both processes do, from the begin on: the one that parses makes no socket to the outside and runs no program;
        the one that fetches opens nothing but what tells it names, certificates and passwords."""
        write(self.file(".netrc"), b"machine elsewhere login me password secret\n")
        write(self.file("fields"), b"X-Token: 1\n")
        write(self.file("traced"), f"#!/bin/sh\nexec strace -f -o {self.file('log')} -e trace=%network,%process,prctl,%file {H5FS} \"$@\"\n".encode())
        os.chmod(self.file("traced"), 0o755)
        with self.serve(tls=True) as server:
            env = {"CURL_CA_BUNDLE": server.certificate, "HOME": self.folder, "ASAN_OPTIONS": "detect_leaks=0", "LSAN_OPTIONS": "detect_leaks=0"}
            with Mount(server.url("main.h5", host="localhost"), "-f", options=f"http_header=@{self.file('fields')}", env=env,
                       program=self.file("traced")) as m:
                for name in "link", "raw", "virtual", "out", "local", "raw out":
                    with contextlib.suppress(OSError):
                        read(m.at(name))
            own = {server.certificate, self.file(".netrc"), self.file("fields")}
        calls = self.calls_of_both()
        for call in calls["parses"]:
            self.assertNotRegex(call, r"^socket\((?!AF_UNIX)|^(connect|sendto|sendmsg|bind)\(.*AF_INET|^execveat\(")
            self.assertNotIn(self.file("outside.h5"), call)
        opened = {name for call in calls["fetches"] for name in re.findall(r'^open(?:at|at2)?\((?:AT_FDCWD, )?"([^"]*)".* = \d+$', call)}
        self.assertTrue(own <= opened, opened)
        allowed = ("/etc/", "/usr/", "/lib", "/run/", "/proc/self", "/sys/", "/dev/null", "/dev/urandom")
        self.assertEqual([name for name in opened - own if not (name + "/").startswith(allowed)], [])
        self.assertTrue([call for call in calls["fetches"] if call.startswith("socket(AF_INET")])
        self.assertFalse([call for call in calls["fetches"] if call.startswith("exec")])

    def calls_of_both(self):
        """By the log of strace, in which each process and thread begins with a line of the one that has made it."""
        lines = [line.split(None, 1) for line in read(self.file("log")).decode(errors="replace").splitlines()]
        parents = {}
        for pid, call in lines:
            child = re.match(r"(?:clone3?|v?fork|<\.\.\. (?:clone3?|v?fork) resumed>).* = (\d+)$", call)
            if child:
                parents[child[1]] = pid
        fetcher, = (pid for pid, call in lines if call.startswith('prctl(PR_SET_NAME, "h5fs-fetcher"'))
        parser = parents[fetcher]
        kinds = {}
        for pid in {pid for pid, _ in lines}:
            chain = [pid]
            while chain[-1] in parents:
                chain.append(parents[chain[-1]])
            kinds[pid] = "fetches" if fetcher in chain else "parses"
        run = [re.match(r'execve\("([^"]*)"', call)[1] for _, call in lines if call.startswith("execve(") and call.endswith("= 0")]
        self.assertEqual({os.path.basename(name) for name in run} - {"fusermount3", "mount", "umount"}, {"h5fs"}, run)
        self.assertEqual(len([name for name in run if name.endswith("h5fs")]), 1, run)
        runs = {pid for pid, call in lines if call.startswith("execve(") and pid != parser}  # fusermount3, and what mounts
        return {kind: [call for pid, call in lines if kinds[pid] == kind and not runs & {pid, parents.get(pid)}] for kind in ("parses", "fetches")}

    def test_none(self):
        with self.serve() as server, Mount(server.url("main.h5"), options="external=none") as m:
            self.assertErrno(errno.EACCES, read, m.at("raw"))
            self.assertErrno(errno.ENOENT, os.stat, m.at("link"))
            self.assertEqual({r.path for r in server.requests}, {"/main.h5"})


if __name__ == "__main__":
    main()
