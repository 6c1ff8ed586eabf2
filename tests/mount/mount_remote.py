#!/usr/bin/python3
"""Files behind a URL, from the server of the tests: what is read, how often the server is asked, and what becomes of the faults of
servers and networks."""
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

import h5py
import numpy

import object_server
from injectlib import Injector, available
from mountlib import Mount, main, read, refusal, write
from object_server import ObjectServer, hang, header, redirect, reset, short, status, whole
from remotelib import MIB, SAID, SECRET, Case, fetcher_of

KEPT = re.search(r"sandbox: no new privileges, Landlock .*, seccomp\n", SAID)
AGAIN = "remote_tries=3,remote_timeout=1"


class Same(Case):
    def test_all_that_a_local_mount_shows(self):
        with self.serve() as server, Mount(server.url("x.h5")) as m:
            self.assertEqual(sorted(os.listdir(m.path)), ["big", "group", "rows"])
            self.assertEqual(server.count[:2], (1, MIB))
            self.assertEqual(read(m.at("rows")), self.rows.tobytes())
            self.assertEqual(read(m.at("big")), self.big.tobytes())
            self.assertEqual(os.getxattr(m.at("group"), "user.answer"), b"42")
            self.assertEqual(int(os.stat(m.at("big")).st_mtime), int(os.stat(self.path).st_mtime))
            self.assertLess(server.count.bytes, os.stat(self.path).st_size + 3 * MIB)
            self.assertErrno(errno.EROFS, os.mkdir, m.at("new"))

    def test_commands(self):
        with self.serve() as server:
            for command in "--list", "--check":
                local, remote = (self.command(command, file) for file in (self.path, server.url("x.h5")))
                self.assertEqual((remote.returncode, remote.stderr), (0, ""))
                self.assertEqual(remote.stdout.replace(server.url("x.h5"), self.path), local.stdout)

    def test_tls(self):
        with self.serve(tls=True) as server:
            code, said = refusal(server.url("x.h5"))
            self.assertEqual(code, 17, said)
            for host in "127.0.0.1", "localhost":
                with Mount(server.url("x.h5", host=host), env={"CURL_CA_BUNDLE": server.certificate}) as m:
                    self.block(m, 3)

    def test_server_without_ranges(self):
        with self.serve() as server:
            server.on("", whole(), None)
            with Mount(server.url("x.h5"), options="remote_whole=32M") as m:
                self.assertEqual(read(m.at("big")), self.big.tobytes())
                self.assertEqual(read(m.at("rows")), self.rows.tobytes())
            self.assertEqual(server.count.requests, 1)

    def test_small_cache(self):
        """What does not fit makes room; several read at once."""
        with self.serve() as server, Mount(server.url("x.h5"), options="remote_cache=1M") as m:
            readers = [subprocess.Popen(["sha256sum", m.at("big")], stdout=subprocess.PIPE) for _ in range(4)]
            self.assertEqual(len({r.communicate()[0] for r in readers}), 1)
            self.assertEqual(read(m.at("big")), self.big.tobytes())

    def test_without_a_mount_point(self):
        with self.serve() as server, Mount(server.url("x.h5") + "?key=v/al.ue", named=False, folder=self.folder, point=self.file("x")) as m:
            self.block(m, 1)


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

    def test_who_has_which_sockets(self):
        with self.serve() as server, Mount(server.url("x.h5")) as m:
            self.block(m, 4)
            links = [os.readlink(f"/proc/{m.daemon}/fd/{fd}") for fd in os.listdir(f"/proc/{m.daemon}/fd")]
            local = {line.split()[6] for line in read("/proc/net/unix").decode().splitlines()[1:]}
            sockets = [re.fullmatch(r"socket:\[(\d+)\]", link)[1] for link in links if link.startswith("socket")]
            self.assertTrue(sockets)
            self.assertLessEqual(set(sockets), local)
            fetcher = fetcher_of(m.daemon)
            files = [os.readlink(f"/proc/{fetcher}/fd/{fd}") for fd in os.listdir(f"/proc/{fetcher}/fd")]
            self.assertFalse([f for f in files if f.startswith("/") and f != "/dev/null"], files)


    @unittest.skipUnless(KEPT and available(), "no full sandbox here, or system calls cannot be put into processes")
    def test_sandbox_of_the_fetcher(self):
        for options, kept in ((None, True), ("sandbox=no", False)):
            with self.subTest(options), self.serve() as server, Mount(server.url("x.h5"), options=options) as m:
                fetcher = fetcher_of(m.daemon)
                with Injector(fetcher) as inside:
                    for number, name, *arguments in (
                            (errno.EACCES, "openat", -100, os.fsencode(self.path), os.O_RDONLY, 0),
                            (errno.EACCES, "openat", -100, os.fsencode(self.file("new")), os.O_WRONLY | os.O_CREAT, 0o600),
                            (errno.EACCES, "unlinkat", -100, os.fsencode(self.file("served", "victim")), 0),
                            (errno.EPERM, "kill", os.getpid(), 0)):
                        write(self.file("served", "victim"), b"")
                        got = inside.call(name, *arguments)
                        self.assertEqual(got, -number if kept else max(0, got), (name, arguments))
                self.block(m, 3)


class Secrets(Case):
    def seen(self, m):
        """What others can see of the daemon: its command line, its environment, the list of mounts; and what it has said."""
        return read(f"/proc/{m.daemon}/cmdline") + read(f"/proc/{m.daemon}/environ") + read("/proc/self/mountinfo") + \
            m.said().encode() + read(f"/proc/{fetcher_of(m.daemon)}/cmdline")

    def test_header_lines(self):
        write(self.file("fields"), f"# a comment\nX-Token: {SECRET}\n\n".encode())
        with self.serve() as server, Mount(server.url("x.h5"), "-f", options=f"http_header=@{self.file('fields')}") as m:
            self.block(m, 3)
            self.assertEqual({r.headers["X-Token"] for r in server.requests}, {SECRET})
            self.assertNotIn(SECRET.encode(), self.seen(m))

    def test_environment_and_query(self):
        with self.serve() as server:
            env = {"AWS_SECRET_ACCESS_KEY": SECRET, "no_proxy": "*", "https_proxy": f"http://me:{SECRET}@nowhere.invalid"}
            with Mount(server.url("x.h5") + "?signature=" + SECRET, "-f", env=env) as m:
                self.block(m, 3)
                self.assertEqual({r.query for r in server.requests}, {"signature=" + SECRET})
                server.on("", status(503), None)
                self.assertNotIn(SECRET.encode(), self.seen(m))

    def test_redirects(self):
        """They are followed and remembered; what is for one server goes to no other one."""
        write(self.file("fields"), f"Authorization: Bearer {SECRET}\n".encode())
        other = self.enterContext(ObjectServer(self.file("served")))
        first = self.enterContext(ObjectServer(self.file("served")))
        first.on("/x.h5", redirect("/moved?to=here", 307), None)
        first.on("/moved", redirect(other.url("x.h5")), None)
        with Mount(first.url("x.h5"), options=f"http_header=@{self.file('fields')}") as m:
            self.block(m, 3)
            self.block(m, 5)
        self.assertEqual([r.path for r in first.requests], ["/x.h5", "/moved"])
        self.assertEqual({r.headers["Authorization"] for r in first.requests}, {"Bearer " + SECRET})
        self.assertEqual(other.wrong, [])
        self.assertEqual(other.count.requests, 3)

    def test_place_that_ends(self):
        """A place that was remembered may refuse later; the URL leads to the next one."""
        with self.serve() as server:
            server.on("/x.h5$", redirect("/x.h5?1"))
            server.on("/x.h5$", redirect("/x.h5?2"))
            with Mount(server.url("x.h5")) as m:
                server.on(r"\?1", status(403), None)
                self.block(m, 3)
            self.assertEqual([r.query for r in server.requests], ["", "1", "1", "", "2"])

    def test_netrc(self):
        write(self.file(".netrc"), f"machine 127.0.0.1 login me password {SECRET}\n".encode())
        with ObjectServer(self.file("served")) as server, Mount(server.url("x.h5"), env={"HOME": self.folder}):
            self.assertRegex(server.requests[0].headers["Authorization"], "^Basic ")


class Together(Case):
    """What will be read is asked for before it is read, in few requests that run side by side."""

    def read_all(self, name, path, server):
        """Bytes of a file, the requests for them, and how many of these were waited for one after another."""
        with Mount(server.url(name), options="workers=2") as m:
            server.forget()
            data = read(m.at(path))
            end = time.monotonic() + 10
            while True:  # the last requests may still be under way
                said = json.loads(os.getxattr(m.path, "h5fs.stats"))["remote"]
                if said["requests"] == server.count.requests + 1 or time.monotonic() > end:
                    break
                time.sleep(.01)
            self.assertEqual((said["requests"], said["bytes"]), (server.count.requests + 1, server.count.bytes + MIB))
            self.assertLess(said["unused"], server.count.bytes / 4 + MIB)
            return data, server.count, server.round_trips()

    def test_contiguous(self):
        with self.serve(delay=0.02) as server:
            data, count, trips = self.read_all("x.h5", "big", server)
        self.assertEqual(data, self.big.tobytes())
        self.assertLess(trips, 6)
        self.assertLess(count.requests, 14)

    def test_scattered_chunks(self):
        """Each index of chunks, with other data between the chunks."""
        rng = numpy.random.default_rng(2)
        chunks = [rng.integers(0, 1 << 50, 4000, "<i8") for _ in range(200)]
        for version, maximum in (("earliest", 200 * 4000), ("latest", 200 * 4000), ("latest", None)):
            with h5py.File(self.file("served", "c.h5"), "w", libver=version) as f:
                d = f.create_dataset("d", (200 * 4000,), "<i8", chunks=(4000,), compression=1, maxshape=(maximum,))
                other = f.create_dataset("other", (200, 500), "<i8", chunks=(1, 500))
                for i, chunk in enumerate(chunks):
                    d[4000 * i:4000 * (i + 1)] = chunk
                    other[i] = i + 1
                stored = d.id.get_storage_size()
            with self.subTest(version, maximum=maximum), self.serve(delay=0.02) as server:
                data, count, trips = self.read_all("c.h5", "d", server)
                self.assertEqual(data, numpy.concatenate(chunks).tobytes())
                self.assertLess(count.bytes, 1.3 * stored + MIB)
                self.assertLess(count.requests, 50)
                self.assertLess(trips, 11)

    def test_chunk_far_away(self):
        """One chunk alone: its exact bytes."""
        with self.serve() as server, Mount(server.url("x.h5")) as m:
            server.forget()
            with open(m.at("rows"), "rb") as f:
                self.assertEqual(f.read(4), self.rows.tobytes()[:4])
            self.assertLess(server.count.bytes, 2 * MIB)

    def test_listing(self):
        """Headers that lie far from each other, in symbol tables and in dense storage."""
        for version in "earliest", "latest":
            with h5py.File(self.file("served", "l.h5"), "w", libver=version) as f:
                for i in range(60):
                    f[f"g/d{i}"] = numpy.full(9000, i)
            with self.subTest(version), self.serve(delay=0.02) as server, Mount(server.url("l.h5")) as m:
                server.forget()
                self.assertEqual(len([os.stat(m.at("g", name)).st_size for name in os.listdir(m.at("g"))]), 60)
                self.assertLess(server.round_trips(), 8)


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
