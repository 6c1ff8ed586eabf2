#!/usr/bin/python3
"""Files behind a URL whose server, network or fetcher fails: what becomes of the mount, and of who reads."""
import collections
import concurrent.futures
import contextlib
import email.utils
import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import h5py

from mountlib import H5FS, Mount, main, read, reap, refusal, write
from object_server import ObjectServer, endless, hang, header, raw, redirect, reset, short, slow, status, whole
from remotelib import AGAIN, MIB, Case, fetcher_of

PIECE = b"--x\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-9/10\r\n\r\n0123456789\r\n--x--\r\n"  # as if several ranges were asked for
MULTIPART = b"HTTP/1.1 206 Partial Content\r\nContent-Type: multipart/byteranges; boundary=x\r\nContent-Length: %d\r\n\r\n%s" % (len(PIECE), PIECE)


class Refused(Case):
    def check(self, expected, said, url, options=None, env=None):
        code, text = refusal(url, options=options, env=env)
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
                    (redirect("ftp://127.0.0.1/x.h5"), 16, "redirect"), (redirect("http://me:pw@127.0.0.1:1/x.h5"), 16, "redirect"),
                    (redirect("http://127.0.0.1:1/x.h5"), 16, "[Cc]onnect"), (redirect("//"), 16, ""), (redirect("x" * 9000), 16, "redirect"),
                    (status(302), 16, "redirect"), (status(204), 16, "HTTP 204"), (status(304), 16, "HTTP 304"),
                    (status(407), 14, "no permission"), (status(412), 16, "HTTP 412"), (status(416), 15, "416"),
                    (status(429, {"Retry-After": "99999"}), 16, "HTTP 429"), (header("Content-Encoding", "gzip"), 15, "encoded"),
                    (header("Content-Range", "bytes 0-8/9, bytes 0-8/9"), 16, "another range"),
                    (header("Content-Range", "bytes -5-8/9"), 16, "another range"),
                    (header("Content-Range", "bytes 9-1/10"), 16, "another range"), (header("Content-Length", "-1"), 16, ""),
                    (raw(MULTIPART), 16, "another range")):
                server.rules.clear()
                server.on("", fault, None)
                with self.subTest(said, expected=expected):
                    self.check(expected, said, server.url("x.h5"), "remote_tries=1,remote_timeout=1")
            server.rules.clear()
            self.check(3, "not an HDF5 file", server.url("text"))
            self.check(3, "not an HDF5 file", server.url("empty"))
            server.on("", whole(), None)
            self.check(15, "larger than remote_whole", server.url("x.h5"), "remote_whole=1M")

    def test_by_no_web_server(self):
        """What comes is no HTTP, or is without end."""
        head = b"HTTP/1.1 206 Partial Content\r\n"
        ranged = head + b"Content-Range: bytes 0-1048575/9000000\r\n"
        faults = (
            (raw(b"HTTP/1.1 nonsense\r\n\r\n"), ""), (raw(b"hello\n" * 1000), ""), (raw(b"\x89HDF\r\n\x1a\n" + bytes(MIB)), ""),
            (raw(b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\n"), ""), (raw(ranged + b"X: a\0b\r\n\r\n" + bytes(MIB)), ""),
            (raw(ranged + b"Content-Range: bytes 0-1048575/9000001\r\n\r\n" + bytes(MIB)), "another range"),
            (raw(ranged + b"Content-Length: 1048576\r\nContent-Length: 7\r\n\r\n" + bytes(MIB)), ""),
            (raw(ranged + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n" + bytes(MIB)), ""),
            (raw(ranged + b"ETag: \"a\"\r\nETag: \"b\"\r\n\r\n" + bytes(MIB)), "another range"),
            (raw(ranged + b"Content-Encoding: gzip\r\n\r\n" + bytes(MIB)), "encoded"),
            (endless(head, b"X: y\r\n"), ""), (endless(head + b"X: ", b"y" * 65536), ""),
            (endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), ""), (endless(b"HTTP/1.1 404 No\r\n\r\n", b"x" * 65536), "not found"),
            (endless(ranged + b"\r\n", b"x" * 65536), ""), (endless(head + b"Content-Range: bytes 0-9/10\r\n\r\n", b"x" * 65536), ""),
            (endless(ranged + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n"), ""),
            (slow(2), "too slow"))
        with self.serve() as server, concurrent.futures.ThreadPoolExecutor(len(faults)) as together:
            for i, (fault, _) in enumerate(faults):
                server.on(rf"\?{i}$", fault, None)
            runs = together.map(lambda i: self.command("--list", "-o", "remote_tries=1,remote_timeout=1", f"{server.url('x.h5')}?{i}"), range(len(faults)))
            for i, ((_, said), run) in enumerate(zip(faults, runs)):
                with self.subTest(i, said=said):
                    self.assertEqual((run.returncode, run.stdout), ({"not found": 13, "encoded": 15}.get(said, 16), ""), run.stderr)
                    self.assertRegex(run.stderr, rf"\Ah5fs: [^\n]*{said}[^\n]*\n\Z")

    def test_commands(self):
        """They end as a mount does; nothing behind a URL is written. A fault amid the file is one of the network, not of the file."""
        with self.serve() as server:
            for command in "--reclaim", "--recover":
                self.assertEqual(self.command(command, server.url("x.h5")).returncode, 8)
            self.assertEqual(server.requests, [])
            for command in "--list", "--check":
                for fault, expected in (status(404), 13), (status(403), 14), (whole(), 15), (status(503), 16):
                    server.rules.clear()
                    server.on("", fault, None)
                    with self.subTest(command, expected=expected):
                        run = self.command(command, "-o", "remote_tries=1", server.url("x.h5"))
                        self.assertEqual((run.returncode, run.stdout, run.stderr.count("\n")), (expected, "", 1), run)
            server.rules.clear()
            server.on(lambda request: not request.range.startswith("bytes=0-"), status(503), None)
            run = self.command("--check", "-o", "remote_tries=1", server.url("x.h5"))
            self.assertEqual(run.returncode, 16)
            self.assertIn("HTTP 503", run.stdout)
            self.assertIn("not all of it could be fetched", run.stderr)

    def test_certificates(self):
        for tls in "another host", "expired":
            with self.subTest(tls), self.serve(tls=tls) as server:
                self.check(17, "certificate", server.url("x.h5"), env={"CURL_CA_BUNDLE": server.certificate})
                self.assertEqual(server.count.requests, 0)
        with self.serve() as server:
            self.check(16, "", server.url("x.h5").replace("http:", "https:"), "remote_tries=1,remote_timeout=1")
        with self.serve(tls=True) as server, ObjectServer(self.file("served")) as other:
            server.on("", redirect(other.url("x.h5")))
            self.check(16, "redirect", server.url("x.h5"), env={"CURL_CA_BUNDLE": server.certificate})
            self.assertEqual(other.count.requests, 0)

    def test_without_a_server(self):
        with self.serve() as server:
            url = server.url("x.h5")
        self.check(16, "[Cc]onnect", url)
        self.check(16, "resolve", "http://no-such-host.invalid/x.h5")

    def test_by_a_proxy(self):
        with self.serve() as proxy:
            for fault, expected, there in (None, 16, None), (status(407), 14, proxy.url()), (status(502), 16, proxy.url()):
                proxy.on("", fault, None)
                with self.subTest(there, expected=expected):
                    self.check(expected, "", "http://192.0.2.1/x.h5", "remote_tries=1",
                               env={"http_proxy": there or "http://127.0.0.1:1", "no_proxy": ""})
                proxy.rules.clear()

    def test_by_the_command_line(self):
        for expected, said, url, options in (
                (8, "only be read", "http://127.0.0.1:1/x.h5", "rw"), (8, "only be read", "http://127.0.0.1:1/x.h5", "create"),
                (2, "swmr", "http://127.0.0.1:1/x.h5", "swmr"), (2, "netrc", "http://me:password@127.0.0.1:1/x.h5", None),
                (2, "no file", "http://127.0.0.1:1", None), (2, "no file", "https://127.0.0.1/", None),
                (2, "no server", "http:///x.h5", None), (2, "no bucket", "s3://a b/x.h5", None), (2, "no bucket", "s3://../x.h5", None), (2, "blanks", "http://127.0.0.1:1/x y.h5", None),
                (2, "@FILE", "http://127.0.0.1:1/x.h5", "http_header=X: y"),
                (2, "remote_tries", "http://127.0.0.1:1/x.h5", "remote_tries=0"),
                (2, "remote_timeout", "http://127.0.0.1:1/x.h5", "remote_timeout=0"),
                (2, "URL", self.path, "http_header=@/dev/null"),
                (3, "http_header", "http://127.0.0.1:1/x.h5", "http_header=@/no/file")):
            with self.subTest(url, options=options):
                self.check(expected, said, url, options)

    def test_the_file_of_header_lines(self):
        file, url = self.file("fields"), "http://127.0.0.1:1/x.h5"
        for lines in b"X", b": x", b"X y: z", b"X\ty: z", b"X: y\nX: \x01", b"X: \x1f", b"X: " + bytes([9]) + b"y\nX :y", b"#\nX: " + b"y" * (64 << 10):
            write(file, lines)
            with self.subTest(lines[:20]):
                self.check(3, "the file of http_header= is not made of lines NAME: VALUE", url, f"http_header=@{file}")
        for name in "/dev/null", os.path.dirname(file):
            self.check(3, "http_header= names no regular file", url, f"http_header=@{name}")


class Faults(Case):
    def test_that_pass(self):
        """After these a try succeeds."""
        faults = [status(503), status(429, {"Retry-After": "1"}), status(408), status(500), short(0), short(1000), short(MIB - 1), reset(0),
                  reset(300_000), reset(-1), hang(), whole(), header("Content-Range", "bytes 0-9/100"), header("Content-Range", "x"), header("Content-Length", "10"),
                  raw(b"HTTP/1.1 206 \r\n\r\n"), raw(b"")]
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

    def test_redirects(self):
        """Each kind; a place that cannot be reached any more is looked up anew."""
        with self.serve() as server, ObjectServer(self.file("served")) as other:
            for code in 301, 302, 303, 307, 308:
                server.rules.clear()
                server.on("^/x.h5", redirect(f"/{code}", code), None)
                server.on("^/3", redirect(other.url("x.h5"), code), 1)
                with self.subTest(code), Mount(server.url("x.h5"), options=AGAIN) as m:
                    self.block(m, 1)
            server.rules.clear()
            server.on("", redirect(other.url("x.h5")))
            with Mount(server.url("x.h5"), options=AGAIN) as m, other.away():
                self.block(m, 1)

    def test_dates_and_seconds(self):
        """Retry-After in both forms; a date that is over, and nonsense, ask for no pause."""
        later = email.utils.formatdate(time.time() + 2.5, usegmt=True)
        with self.serve() as server, Mount(server.url("x.h5"), options=AGAIN) as m:
            for block, (value, least, most) in enumerate(((later, 0.9, 10), ("1", 1, 10), ("Mon, 23 Nov 2020 09:00:00 GMT", 0, 0.9),
                                                          ("soon", 0, 0.9), ("-5", 0, 0.9)), 1):
                with self.subTest(value):
                    server.on("", status(503, {"Retry-After": value}))
                    server.forget()
                    self.block(m, 7 - block)
                    first, second = server.requests
                    self.assertTrue(least <= second.began - first.began < most, second.began - first.began)

    def test_trickle(self):
        """What comes too slowly has failed, but what has come is kept."""
        with self.serve() as server, Mount(server.url("x.h5"), options="remote_tries=2,remote_timeout=1") as m:
            server.on("", slow(4000))
            self.block(m, 1)
            self.assertEqual(len(server.requests), 3)
            self.assertGreater(int(re.match(r"bytes=(\d+)-", server.requests[2].range)[1]), MIB)

    def test_that_stay(self):
        """Reads fail in the end, and the next ones try anew. Backwards, nothing is read ahead."""
        with self.serve() as server, Mount(server.url("x.h5"), options=AGAIN) as m:
            for i, fault in enumerate([status(503), status(404), status(403), short(0), status(301)]):
                server.on("", fault, None)
                with self.subTest(i):
                    self.assertErrno(errno.EIO, self.block, m, 6 - i)
                server.rules.clear()
                self.block(m, 6 - i)

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

    def test_version_that_changes_amid_a_read(self):
        """A read that is joined of several answers fails if one of them is of another version, whichever it is."""
        for odd in (lambda r: not r.range.startswith("bytes=5"), lambda r: r.range.startswith("bytes=5"), lambda r: r.range.endswith("3")):
            with self.serve() as server, Mount(server.url("x.h5"), options=AGAIN) as m:
                server.on(lambda request, odd=odd: not request.range.startswith("bytes=0-") and odd(request), header("ETag", '"another"'), None)
                got = b""
                with self.assertRaises(OSError) as caught, open(m.at("big"), "rb", buffering=0) as f:
                    while True:
                        got += f.read(MIB) or self.fail("all was read")
                self.assertEqual(caught.exception.errno, errno.ESTALE)
                self.assertEqual(got, self.big.tobytes()[:len(got)])

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

    def test_interrupted_readers(self):
        """Whatever waits for a server, Ctrl-C ends it."""
        for names in ("deep", "big", "pad"), [f"deep/far{i}" for i in range(4)]:
            with h5py.File(self.file("served", "far.h5"), "a", libver="latest") as f:
                for name in names:
                    f[f"{name}/data"] = self.big if names[0] == "deep" else [1]
                    f[name].attrs["a"] = 1
        with self.serve() as server, Mount(server.url("far.h5")) as m:
            server.on("", hang(), None)
            get = "import os, signal, sys; signal.signal(2, signal.SIG_DFL); os.getxattr(sys.argv[1], 'user.a')"
            waiting = [self.start(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for command in (
                ("tail", "-c", "4000000", m.at("big", "data")), ("stat", m.at("deep", "far0")), ("ls", m.at("deep", "far1")), ("find", m.at("deep", "far2")),
                (sys.executable, "-S", "-c", get, m.at("deep", "far3")), (H5FS, "--list", server.url("x.h5")),
                (H5FS, "--check", server.url("x.h5")), (H5FS, server.url("x.h5"), self.file("point")))]
            self.await_requests(server, 5)  # several wait for the same bytes
            for process in waiting:
                self.assertIsNone(process.poll(), process.args)
                process.send_signal(signal.SIGINT)
            for process in waiting:
                self.assertEqual(process.wait(10), -signal.SIGINT, process.args)
            self.assertFalse(os.path.exists(self.file("point")))

    def has_all(self, m):
        """Whether all of `big` can be read."""
        with contextlib.suppress(OSError):
            self.assertEqual(read(m.at("big")), self.big.tobytes())
            return True
        return False

    def test_network_that_goes_and_comes_back(self):
        """Reads fail, and nobody waits longer than for one row of tries; then all is as before."""
        for fault in None, hang():
            with self.subTest(fault), self.serve() as server, Mount(server.url("x.h5"), options=AGAIN) as m:
                os.listdir(m.path)
                server.forget()
                server.on("", fault, None)
                with contextlib.nullcontext() if fault else server.away():
                    readers = [self.start("cat", m.at("big"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(3)]
                    for reader in readers:
                        self.assertIn("Input/output error", reader.communicate(timeout=60)[1])
                    self.assertEqual(sorted(os.listdir(m.path)), ["big", "group", "rows"])
                tries = collections.Counter(r.range for r in server.requests)
                self.assertLessEqual(max(tries.values(), default=0), 3, tries)
                server.rules.clear()
                end = time.monotonic() + 30
                while not self.has_all(m) and time.monotonic() < end:
                    time.sleep(.05)
                self.assertTrue(self.has_all(m))

    def test_unmount_while_reading(self):
        """The daemon ends although nobody answers."""
        with self.serve() as server, Mount(server.url("x.h5")) as m:
            server.on("", hang(), None)
            self.start("cat", m.at("rows"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.await_requests(server, 2)
            os.kill(m.daemon, signal.SIGTERM)
            self.assertEqual(m.wait(), 0)


class Processes(Case):
    def test_fetcher_that_dies(self):
        with self.serve() as server, Mount(server.url("x.h5")) as m:
            self.block(m, 2)
            server.on("", hang(), None)
            reader = self.start("cat", m.at("rows"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            self.await_requests(server, 3)
            os.kill(fetcher_of(m.daemon), signal.SIGKILL)
            self.assertIn("Input/output error", reader.communicate(timeout=10)[1])
            self.assertErrno(errno.EIO, self.block, m, 7)
            self.assertEqual(sorted(os.listdir(m.path)), ["big", "group", "rows"])

    def test_daemon_that_dies(self):
        with self.serve() as server, Mount(server.url("x.h5")) as m:
            fetcher = fetcher_of(m.daemon)
            m.kill()
            self.assertFalse(os.path.exists(f"/proc/{fetcher}"))

    def test_fetcher_that_stops(self):
        """Readers wait until it goes on, or is not waited for any more."""
        with self.serve() as server, Mount(server.url("x.h5")) as m:
            fetcher = fetcher_of(m.daemon)
            os.kill(fetcher, signal.SIGSTOP)
            readers = [self.start("cat", m.at("big"), stdout=subprocess.PIPE) for _ in range(2)]
            interrupted = self.start("tail", "-c", "10", m.at("big"))
            interrupted.send_signal(signal.SIGINT)
            self.assertEqual(interrupted.wait(10), -signal.SIGINT)
            os.kill(fetcher, signal.SIGCONT)
            for reader in readers:
                self.assertEqual(reader.communicate()[0], self.big.tobytes())
            os.kill(fetcher, signal.SIGSTOP)
            m.unmount()
            self.assertEqual(m.wait(), 0)
            os.kill(fetcher, signal.SIGCONT)
            self.assertEqual(reap(fetcher, 10), 0)

    def test_signals_to_the_fetcher(self):
        with self.serve() as server, Mount(server.url("x.h5")) as m:
            for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
                os.kill(fetcher_of(m.daemon), number)
            self.block(m, 5)


if __name__ == "__main__":
    main()
