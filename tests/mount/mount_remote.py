#!/usr/bin/python3
"""Files behind a URL, from the server of the tests: what is read, how often the server is asked, and who learns of secrets."""
import contextlib
import errno
import itertools
import json
import os
import re
import subprocess
import time
import unittest

import h5py
import numpy

import object_server
from injectlib import Injector, available
from mountlib import H5FS, Mount, main, read, refusal, write
from object_server import ObjectServer, redirect, status, whole
from remotelib import KEPT, MIB, SECRET, Case, fetcher_of

with open(H5FS, "rb") as binary:
    SANITIZED = b"__asan_init" in binary.read()  # what is freed stays in its memory


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

    def test_kerchunk_of_many_chunks(self):
        """It is the local one with another URL, and the program that prints it never has all of it in memory."""
        path = self.file("served", "many.h5")
        with h5py.File(path, "w", libver="latest") as f:
            how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            how.set_chunk((4,))
            how.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            h5py.h5d.create(f.id, b"d", h5py.h5t.STD_I8LE, h5py.h5s.create_simple((3 * 10**6,), (h5py.h5s.UNLIMITED,)), how)
        local = self.command("--kerchunk", path).stdout
        with self.serve() as server:
            run = self.start(H5FS, "--kerchunk", "-o", "remote_cache=4M,index_cache=4M", server.url("many.h5"), stdout=subprocess.PIPE)
            pieces, peak = [], 0
            while piece := run.stdout.read(MIB):
                pieces.append(piece)
                with contextlib.suppress(FileNotFoundError, TypeError):  # it has ended
                    peak = max(peak, int(re.search(rb"VmHWM:\s+(\d+)", read(f"/proc/{run.pid}/status"))[1]) << 10)
            self.assertEqual(run.wait(), 0)
            remote = b"".join(pieces).decode()
            self.assertEqual(remote.count('"d/'), 750_000 + 2)
            self.assertEqual(remote.replace(server.url("many.h5"), "file://" + os.path.realpath(path)), local)
        if not SANITIZED:
            self.assertTrue(0 < peak < len(remote) * 3 // 4, (peak, len(remote)))

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


class Processes(Case):
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
                            (errno.EPERM, "kill", os.getpid(), 0), (errno.EPERM, "tgkill", os.getpid(), os.getpid(), 0),
                            (0, "tgkill", fetcher, fetcher, 0), *(((errno.ENOSYS, "clone3", bytes(64), 64), (errno.EPERM, "clone", 0, 0, 0, 0, 0),
                                (errno.EPERM, "fork"), (errno.EPERM, "execve", b"/none", 0, 0), (errno.EPERM, "bind", -1, 0, 0)) if kept else ()),
                            (errno.EPERM, "fchmodat", -100, os.fsencode(self.file("served", "victim")), 0o600)):
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
        write(self.file("fields"), f"# a comment\nX-Token: {SECRET}\n\nX-Blank:\ta b\tc \u00e9\r\nX-Last:7".encode())
        with self.serve() as server, Mount(server.url("x.h5"), "-f", options=f"http_header=@{self.file('fields')}") as m:
            self.block(m, 3)
            self.assertEqual({r.headers["X-Token"] for r in server.requests}, {SECRET})
            self.assertEqual({(r.headers["X-Blank"], r.headers["X-Last"]) for r in server.requests}, {("a b\tc \u00c3\u00a9", "7")})
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


class Library(Case):
    """libcurl is loaded when there is a URL."""

    def without_it(self, *arguments):
        """What h5fs says where the file of the library has no bytes."""
        script = """set -e
            for library in $(ldconfig -p | sed -n 's/.*libcurl[^ ]*[.]so.* => //p'); do mount --bind /dev/null "$library"; done
            exec "$@" """
        return subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", H5FS, *arguments], capture_output=True, text=True)

    def test_only_for_urls(self):
        with self.serve() as server, Mount(self.path) as local, Mount(server.url("x.h5")) as remote:
            for m, uses in (local, False), (remote, True):
                self.assertEqual("libcurl" in read(f"/proc/{m.daemon}/maps").decode(), uses)

    def test_without_it(self):
        run = self.without_it("-V")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("libcurl none: no URLs\n", run.stdout)
        self.assertEqual(self.without_it("--list", self.path).returncode, 0)
        with self.serve() as server:
            run = self.without_it("--list", server.url("x.h5"))
            self.assertEqual(server.requests, [])
        self.assertEqual(run.returncode, 6, run.stderr)
        self.assertRegex(run.stderr, "URLs need libcurl: .*libcurl.so.4: ")


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

    def test_connections(self):
        """As many as allowed, and no more."""
        for most in 1, 3:
            with self.subTest(most), self.serve(delay=.02) as server, Mount(server.url("x.h5"), options=f"remote_connections={most}") as m:
                self.assertEqual(read(m.at("big")), self.big.tobytes())
                ends = sorted([(r.began, 1) for r in server.requests] + [(r.ended or float("inf"), -1) for r in server.requests])
                self.assertEqual(max(itertools.accumulate(step for _, step in ends)), most)
                self.assertEqual(server.count.connections, most)

    def test_late_read(self):
        """A read that comes after those behind it, as threads of the kernel's reading ahead may be late, ends no reading in order."""
        with h5py.File(self.file("served", "l.h5"), "w") as f:
            f.create_dataset("d", (80 * MIB,), "u1")[-1:] = 1
        with self.serve() as server, Mount(server.url("l.h5")) as m, open(m.at("d"), "rb", buffering=0) as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            for place in 0, 3, 5.5, 1, 7.5:
                os.pread(f.fileno(), 4096, int(place * MIB))
            end = time.monotonic() + 10
            while server.furthest() < 60 * MIB:
                self.assertLess(time.monotonic(), end, f"only {server.furthest()} bytes were asked for ahead")
                time.sleep(.01)

    def test_leaves_ahead(self):
        """After one read from the begin, leaves of the index are asked for, which lie 2 MiB apart: many, but not all, nor many chunks."""
        with h5py.File(self.file("served", "l.h5"), "w") as f:
            how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            how.set_chunk((32 << 10,))
            how.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            how.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
            h5py.h5d.create(f.id, b"d", h5py.h5t.STD_U8LE, h5py.h5s.create_simple((240 * MIB,)), how)
        with self.serve() as server, Mount(server.url("l.h5")) as m, open(m.at("d"), "rb", buffering=0) as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            os.pread(f.fileno(), 256 << 10, 0)
            end = time.monotonic() + 10
            while 28 not in (asked := self.leaves(server)):
                self.assertLess(time.monotonic(), end, f"only the leaves {sorted(asked)} were asked for ahead")
                time.sleep(.01)
            self.assertFalse(asked & set(range(60, 100)), asked)
            self.assertLess(server.count.bytes, 60 * MIB)

    def leaves(self, server):
        """The numbers of those that may be in what was asked for."""
        return {int(r.range[6:].partition("-")[0]) // (2 * MIB) for r in list(server.requests) if r.range}

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

    def test_chunk_amid_many(self):
        """From block to block of the index, whatever its kind."""
        values = numpy.arange(16 * 30_000, dtype="<i4")
        for version, maximum in (("earliest", None), ("latest", None), ("latest", values.shape)):
            with h5py.File(self.file("served", "m.h5"), "w", libver=version) as f:
                f.create_dataset("d", data=values, chunks=(16,), maxshape=(maximum,) if maximum is None else maximum)
            with self.subTest(version, maximum=maximum), self.serve(delay=0.02) as server, Mount(server.url("m.h5")) as m:
                with open(m.at("d"), "rb", buffering=0) as f:
                    self.assertEqual(os.pread(f.fileno(), 4096, values.nbytes // 2), values.tobytes()[values.nbytes // 2:][:4096])
                    self.assertLessEqual(server.round_trips(), 6)

    def find(self, name, count):
        """Lists all of a file, which has so many datasets, by a new mount; what that took."""
        with self.serve(delay=0.02) as server, Mount(server.url(name)) as m:
            self.assertEqual(server.count.requests, 1)
            found = subprocess.run(["find", m.path, "-type", "f", "-size", "+0"], capture_output=True, text=True, check=True).stdout
            self.assertEqual(found.count("\n"), count)
            return server.count, server.round_trips()

    def test_listing(self):
        """1,000 headers among their data, in symbol tables and in dense storage."""
        for version in "earliest", "latest":
            with h5py.File(self.file("served", "l.h5"), "w", libver=version) as f:
                for i in range(1000):
                    f[f"g/d{i}"] = numpy.full(2000, i)
            with self.subTest(version):
                count, trips = self.find("l.h5", 1000)
                self.assertLessEqual(count.requests, 25)
                self.assertLessEqual(trips, 7)

    def test_listing_of_headers_far_apart(self):
        """The data are too much to come with the headers."""
        with h5py.File(self.file("served", "l.h5"), "w") as f:
            for i in range(50):
                f.create_dataset(f"d{i}", (1 << 20,), "u1", chunks=(1 << 20,))[:] = i
        count, trips = self.find("l.h5", 50)
        self.assertLess(count.bytes, 36 * MIB)
        self.assertLess(trips, 14)  # 7 on an idle machine, and each header alone would take 50

    def test_nested_groups(self):
        for version in "earliest", "latest":
            with h5py.File(self.file("served", "n.h5"), "w", libver=version) as f:
                for i in range(300):
                    f[f"g{i // 100}/h{i // 10 % 10}/d{i}"] = numpy.full(2000, i)
            with self.subTest(version):
                count, trips = self.find("n.h5", 300)
                self.assertLessEqual(count.requests, 12)
                self.assertLessEqual(trips, 8)


if __name__ == "__main__":
    main()
