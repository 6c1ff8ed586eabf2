#!/usr/bin/python3
"""Files behind a URL whose server, network or fetcher fails: what becomes of the mount, and of who reads."""
import errno
import os
import shutil
import signal
import subprocess
import time

import object_server
from mountlib import Mount, main, read, refusal, write
from object_server import hang, header, redirect, reset, short, status, whole
from remotelib import AGAIN, MIB, Case, fetcher_of


class Refused(Case):
    def check(self, expected, said, url, options=None):
        code, text = refusal(url, options=options)
        self.assertEqual(code, expected, text)
        self.assertRegex(text, rf"\Ah5fs: [^\n]*{said}[^\n]*\n\Z")

    def test_by_the_server(self):
        write(self.file("served", "text"), b"no HDF5 file\n" * 1000)
        write(self.file("served", "empty"), b"")
        with self.serve() as server:
            for fault, expected, said in (
                    (status(404), 13, "x.h5: not found"), (status(410), 13, "not found"), (status(401), 14, "no permission"),
                    (status(403), 14, "x.h5: no permission"), (whole(), 15, "no ranges"), (status(400), 16, "HTTP 400"),
                    (header("Content-Range", "bytes 1-1048576/9000000"), 16, "another range"),
                    (header("Content-Range", "bytes 0-1048575/*"), 16, "another range"),
                    (header("Content-Range", "bytes 0-1048575/99999999999999999999"), 16, "another range"),
                    (header("Content-Range", None), 16, "another range"), (header("Content-Length", "7"), 16, "another range"),
                    (short(1000), 16, ""), (reset(-1), 16, ""), (status(503), 16, "HTTP 503"), (hang(), 16, ""),
                    (header("X-Long", "x" * 70000), 16, ""),
                    (redirect("file:///etc/passwd"), 16, "redirect"), (redirect("/x.h5"), 16, "redirect"),
                    (status(302), 16, "redirect"), (object_server.raw(b"HTTP/1.1 nonsense\r\n\r\n"), 16, "")):
                server.rules.clear()
                server.on("", fault, None)
                with self.subTest(said, expected=expected):
                    self.check(expected, said, server.url("x.h5"), "remote_tries=1,remote_timeout=1")
            server.rules.clear()
            self.check(3, "not an HDF5 file", server.url("text"))
            self.check(3, "not an HDF5 file", server.url("empty"))
            server.on("", whole(), None)
            self.check(15, "larger than remote_whole", server.url("x.h5"), "remote_whole=1M")

    def test_without_a_server(self):
        with self.serve() as server:
            url = server.url("x.h5")
        self.check(16, "[Cc]onnect", url)
        self.check(16, "resolve", "http://no-such-host.invalid/x.h5")

    def test_by_the_command_line(self):
        for expected, said, url, options in (
                (8, "only be read", "http://127.0.0.1:1/x.h5", "rw"), (8, "only be read", "http://127.0.0.1:1/x.h5", "create"),
                (2, "swmr", "http://127.0.0.1:1/x.h5", "swmr"), (2, "netrc", "http://me:password@127.0.0.1:1/x.h5", None),
                (2, "no file", "http://127.0.0.1:1", None), (2, "no file", "https://127.0.0.1/", None),
                (2, "no server", "http:///x.h5", None), (2, "blanks", "http://127.0.0.1:1/x y.h5", None),
                (2, "@FILE", "http://127.0.0.1:1/x.h5", "http_header=X: y"),
                (2, "URL", self.path, "http_header=@/dev/null"),
                (3, "http_header", "http://127.0.0.1:1/x.h5", "http_header=@/no/file")):
            with self.subTest(url, options=options):
                self.check(expected, said, url, options)


class Faults(Case):
    def test_that_pass(self):
        """After these a try succeeds."""
        faults = [status(503), status(429, {"Retry-After": "1"}), status(408), status(500), short(0), short(1000), short(MIB - 1), reset(0),
                  reset(300_000), reset(-1), hang(), whole(), header("Content-Range", "bytes 0-9/100"), header("Content-Range", "x"), header("Content-Length", "10"),
                  object_server.raw(b"HTTP/1.1 206 \r\n\r\n"), object_server.raw(b"")]
        with self.serve() as server:
            for first in range(0, len(faults), 6):
                server.rules.clear()
                with Mount(server.url("x.h5"), options=AGAIN) as m:
                    for block, fault in enumerate(faults[first:first + 6], 1):
                        with self.subTest(first + block - 1):
                            server.on("", fault)
                            before = server.count.requests
                            self.block(m, block)
                            self.assertEqual(server.count.requests, before + 2)

    def test_that_stay(self):
        """Reads fail in the end, and the next ones try anew."""
        with self.serve() as server, Mount(server.url("x.h5"), options=AGAIN) as m:
            for i, fault in enumerate([status(503), status(404), status(403), short(0), status(301)]):
                server.on("", fault, None)
                with self.subTest(i):
                    self.assertErrno(errno.EIO, self.block, m, 1 + i)
                server.rules.clear()
                self.block(m, 1 + i)

    def test_another_version(self):
        """Nothing is shown of another version, and nothing more of the first one."""
        other = read(self.path)[:-MIB] + bytes(MIB)

        def changes(server):
            shutil.copy2(self.path, self.file("kept"))
            write(self.path, other)

        def hides_it(server):
            """The server does not heed If-Match."""
            changes(server)
            server.on("", ignore_match, None)

        def ignore_match(handler):
            del handler.headers["If-Match"]

        def has_another_tag(server):
            server.on("", header("ETag", '"another"'), None)

        for change in changes, hides_it, has_another_tag:
            with self.subTest(change.__name__), self.serve() as server, Mount(server.url("x.h5"), options=AGAIN) as m:
                self.block(m, 2)
                change(server)
                self.assertErrno(errno.ESTALE, self.block, m, 6)
                server.rules.clear()
                if change is not has_another_tag:
                    shutil.copy2(self.file("kept"), self.path)
                self.assertErrno(errno.ESTALE, self.block, m, 5)
                asked = server.count.requests
                for name in "big", "rows":
                    self.assertErrno(errno.ESTALE, read, m.at(name))
                self.assertErrno(errno.ESTALE, self.block, m, 7)
                self.assertEqual(server.count.requests, asked)

    def test_without_tags(self):
        """The date and the size tell, too."""
        with self.serve() as server:
            server.on("", header("ETag", None), None)
            with Mount(server.url("x.h5"), options=AGAIN) as m:
                self.block(m, 2)
                os.utime(self.path, (1, 1))
                self.assertErrno(errno.ESTALE, self.block, m, 6)

    def test_weak_tags_are_not_asked_for(self):
        with self.serve() as server:
            server.on("", header("ETag", 'W/"weak"'), None)
            with Mount(server.url("x.h5")) as m:
                self.block(m, 2)
            self.assertFalse([r for r in server.requests if "If-Match" in r.headers])

    def test_interrupted_reader(self):
        with self.serve() as server, Mount(server.url("x.h5")) as m:
            server.on("", hang(), None)
            reader = subprocess.Popen(["tail", "-c", "1000", m.at("big")], stdout=subprocess.DEVNULL)
            end = time.monotonic() + 30
            while server.count.requests < 2 and time.monotonic() < end:
                time.sleep(.01)
            reader.send_signal(signal.SIGINT)
            self.assertEqual(reader.wait(10), -signal.SIGINT)

    def test_unmount_while_reading(self):
        """The daemon ends although nobody answers."""
        with self.serve() as server, Mount(server.url("x.h5")) as m:
            server.on("", hang(), None)
            reader = subprocess.Popen(["cat", m.at("rows")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(reader.wait)
            end = time.monotonic() + 30
            while server.count.requests < 2 and time.monotonic() < end:
                time.sleep(.01)
            os.kill(m.daemon, signal.SIGTERM)
            self.assertEqual(m.wait(), 0)


class Processes(Case):
    def test_fetcher_that_dies(self):
        with self.serve() as server, Mount(server.url("x.h5")) as m:
            self.block(m, 2)
            server.on("", hang(), None)
            reader = subprocess.Popen(["cat", m.at("rows")], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            end = time.monotonic() + 30
            while server.count.requests < 3 and time.monotonic() < end:
                time.sleep(.01)
            os.kill(fetcher_of(m.daemon), signal.SIGKILL)
            self.assertIn("Input/output error", reader.communicate(timeout=10)[1])
            self.assertErrno(errno.EIO, self.block, m, 7)
            self.assertEqual(sorted(os.listdir(m.path)), ["big", "group", "rows"])

    def test_daemon_that_dies(self):
        with self.serve() as server, Mount(server.url("x.h5")) as m:
            fetcher = fetcher_of(m.daemon)
            m.kill()
            self.assertFalse(os.path.exists(f"/proc/{fetcher}"))

    def test_signals_to_the_fetcher(self):
        with self.serve() as server, Mount(server.url("x.h5")) as m:
            for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
                os.kill(fetcher_of(m.daemon), number)
            self.block(m, 5)


if __name__ == "__main__":
    main()
