#!/usr/bin/python3
"""The disk cache: what was fetched once is not fetched again, and whatever becomes of its files, no wrong byte is read."""
import contextlib
import glob
import json
import os
import random
import re
import shutil
import signal
import subprocess
import unittest

import h5py
import numpy

from injectlib import Injector, available
from mountlib import H5FS, Mount, MountCase, main, own_children, read, refusal, write
from object_server import Keys, ObjectServer, header, redirect, reset, status

MIB = 1 << 20
BLOCK = 16 << 10
MAP = 4096  # where the map of blocks begins
SIZE = 4 * MIB  # of the dataset
ROUNDS = int(os.environ.get("H5FS_DISK_ROUNDS", "4"))
SAID = subprocess.run([H5FS, "-V"], capture_output=True, text=True, check=True).stdout
CONFINED = re.search(r"sandbox: no new privileges, Landlock .*, seccomp\n", SAID)
SECRET = "a-secret-that-must-not-be-kept"


def make(path, seed):
    """A file whose dataset begins at some odd place; its bytes."""
    data = numpy.random.default_rng(seed).integers(0, 1 << 60, SIZE // 8, "<i8")
    with h5py.File(path, "w", libver="latest") as f:
        f["data"] = data
    return data.tobytes()


def tagged(tag):
    """A server that gives all files the same entity tag."""
    def fault(handler):
        if handler.headers["If-None-Match"] == tag:
            handler.answer(304, {"ETag": tag}, None)
            return True
        del handler.headers["If-Match"]
        handler.changed["ETag"] = tag
        return False
    return fault


def fetcher_of(daemon):
    fetcher, = (pid for pid in own_children(daemon) if read(f"/proc/{pid}/comm") == b"h5fs-fetcher\n")
    return fetcher


@unittest.skipIf("libcurl none" in SAID, "built without libcurl")
class Case(MountCase):
    def setUp(self):
        super().setUp()
        os.mkdir(self.file("served"))
        self.path = self.file("served", "x.h5")
        self.data = make(self.path, 1)
        self.cache = self.file("cache")

    @contextlib.contextmanager
    def serve(self, **options):
        with ObjectServer(self.file("served"), **options) as server:
            yield server
        self.assertEqual(server.wrong, [])

    def mount(self, url, *arguments, options="", **others):
        return Mount(url, *arguments, options=f"disk_cache={self.cache}{options}", **others)

    def stored(self):
        return sorted(glob.glob(self.file("cache", "h5fs-*")))

    def used(self):
        return sum(os.stat(path).st_blocks for path in self.stored()) * 512

    def assertFetched(self, first, server):
        """After these answers there were some with bytes."""
        statuses = [r.status for r in server.requests]
        self.assertEqual(statuses[:len(first)], first)
        self.assertEqual(set(statuses[len(first):]), {206})

    def check(self, url, *arguments, data=None, **others):
        """Mounts and reads all; what the daemon said, and its statistics."""
        with self.mount(url, *arguments, **others) as m:
            self.assertTrue(read(m.at("data")) == (data or self.data))
            return m.said(), json.loads(os.getxattr(m.path, "h5fs.stats"))["remote"]


class Again(Case):
    def test_second_mount(self):
        """One request, whose answer has no body."""
        os.umask(os.umask(0o022))
        with self.serve() as server:
            self.assertEqual(self.check(server.url("x.h5"))[1]["disk"], 0)
            self.assertGreater(server.count.bytes, SIZE)
            for _ in range(2):
                server.forget()
                said, statistics = self.check(server.url("x.h5"), "-f")
                self.assertEqual(said, "")
                self.assertEqual(server.count[:2], (1, 0))
                self.assertEqual([r.status for r in server.requests], [304])
                self.assertEqual((statistics["requests"], statistics["bytes"]), (1, 0))
                self.assertGreaterEqual(statistics["disk"], SIZE)
        self.assertEqual(os.stat(self.cache).st_mode & 0o777, 0o700)
        self.assertEqual([os.stat(path).st_mode & 0o777 for path in self.stored()], [0o600])
        self.assertEqual(os.listdir(self.cache), [os.path.basename(path) for path in self.stored()])

    def test_commands(self):
        with self.serve() as server:
            for requests in None, 1:
                server.forget()
                for command in "--list", "--check":
                    subprocess.run([H5FS, command, "-o", f"disk_cache={self.cache}", server.url("x.h5")], check=True, capture_output=True)
            self.assertEqual([r.status for r in server.requests], [304, 304])

    def test_parts(self):
        """What an earlier mount has not read is fetched, and nothing else."""
        with self.serve() as server:
            with self.mount(server.url("x.h5")) as m, open(m.at("data"), "rb") as f:
                self.assertEqual(os.pread(f.fileno(), 100, SIZE - 100), self.data[-100:])
            before = server.count.bytes
            server.forget()
            self.check(server.url("x.h5"))
            self.assertEqual(server.count.bytes, os.stat(self.path).st_size - before)
            server.forget()
            self.check(server.url("x.h5"))
            self.assertEqual(server.count[:2], (1, 0))

    def test_blocks_at_the_end_of_a_request(self):
        """Only what is missing before them is asked for."""
        with self.serve() as server:
            self.check(server.url("x.h5"))
            path, = self.stored()
            with open(path, "r+b") as f:
                f.seek(MAP + 8 * (MIB // BLOCK + 3))
                f.write(bytes(8 * 5))  # five blocks of the second mebibyte
            server.forget()
            self.check(server.url("x.h5"))
            self.assertEqual(server.requests[0].range, f"bytes=0-{MIB - 1}")
            fetched = sorted(tuple(map(int, re.findall(r"\d+", r.range))) for r in server.requests[1:])  # in one piece, or in several
            self.assertEqual((fetched[0][0], fetched[-1][1]), (MIB + 3 * BLOCK, MIB + 8 * BLOCK - 1))
            self.assertEqual(server.count.bytes, 5 * BLOCK)

    def test_signed_urls(self):
        """Signatures differ with each mount, and are kept nowhere. Other parameters tell files apart."""
        make(self.file("served", "other.h5"), 2)
        with self.serve() as server:
            first = f"?X-Amz-Date=1&X-Amz-Signature={SECRET}&id=7"
            self.check(server.url("x.h5") + first)
            for query, known in (("?X-Amz-Date=2&id=7&X-Amz-Signature=other", True), ("?id=7", True), ("?id=8", False), ("", False),
                                  ("?token=" + SECRET, False)):
                server.forget()
                self.check(server.url("x.h5") + query)
                with self.subTest(query):
                    self.assertEqual(server.count.requests == 1, known)
            for path in self.stored():
                self.assertNotIn(SECRET.encode(), read(path) + os.fsencode(path))

    def test_another_version(self):
        with self.serve() as server:
            self.check(server.url("x.h5"))
            data = make(self.path, 2)
            for fetched in True, False, False:
                server.forget()
                self.check(server.url("x.h5"), data=data)
                self.assertEqual(server.count.bytes > SIZE, fetched)
            self.assertEqual(len(self.stored()), 2)

    def test_version_that_changes_meanwhile(self):
        """What is here is of one version; what is not is not mixed with it."""
        with self.serve() as server:
            with self.mount(server.url("x.h5")) as m, open(m.at("data"), "rb") as f:
                os.pread(f.fileno(), 100, 2 * MIB)
            with self.mount(server.url("x.h5")) as m, open(m.at("data"), "rb") as f:
                make(self.path, 2)
                self.assertEqual(os.pread(f.fileno(), 100, 2 * MIB), self.data[2 * MIB:2 * MIB + 100])
                with self.assertRaises(OSError):
                    os.pread(f.fileno(), 100, SIZE - 100)

    def test_what_is_not_kept(self):
        """Without a strong tag nobody knows whether two answers are of the same bytes."""
        for fault in header("ETag", None), header("ETag", 'W/"1"'), header("Cache-Control", "private, No-Store"):
            with self.serve() as server:
                server.on("", fault, None)
                self.check(server.url("x.h5"))
                server.forget()
                self.check(server.url("x.h5"))
                self.assertGreater(server.count.bytes, SIZE)
            self.assertEqual(self.stored(), [])

    def test_answers_without_a_tag(self):
        """Of an open file: nobody knows for sure of which version they are."""
        with self.serve() as server:
            server.on("", lambda _: False)
            server.on("", header("ETag", None), None)
            self.check(server.url("x.h5"))
            server.rules.clear()
            server.forget()
            self.check(server.url("x.h5"))
            self.assertFetched([304], server)

    def test_redirects(self):
        """Tags are those of the place where the file is."""
        other = make(self.file("served", "other.h5"), 2)
        with self.serve() as server:
            server.on("h5", tagged('"1"'), None)
            for place, data, fetched in (("x", self.data, True), ("x", self.data, False), ("other", other, True), ("other", other, False),
                                         ("x", self.data, False)):
                server.rules[:0] = [[lambda r: r.path == "/latest", redirect(f"/{place}.h5", 302), None]]
                server.forget()
                self.check(server.url("latest"), data=data)
                self.assertEqual(server.count.bytes > SIZE, fetched)

    def test_redirect_that_changes_meanwhile(self):
        """What comes from another place is not kept as if it were of the first one."""
        make(self.file("served", "other.h5"), 2)
        with self.serve() as server:
            server.on("^/latest", redirect("/x.h5?X-Amz-Date=1", 302))
            server.on("h5", tagged('"1"'), 2)
            with self.mount(server.url("latest")) as m, open(m.at("data"), "rb") as f:
                os.pread(f.fileno(), 100, MIB)
                server.on("h5.X-Amz-Date=1", status(403))
                server.on("^/latest", redirect("/x.h5?X-Amz-Date=2", 302))
                server.on("h5", tagged('"1"'))
                os.pread(f.fileno(), 100, 3 * MIB)
                server.on("h5.X-Amz-Date=2", status(403))
                server.on("^/latest", redirect("/other.h5", 302))
                server.on("", tagged('"1"'), None)
                os.pread(f.fileno(), 100, 2 * MIB)
            server.rules[:0] = [[lambda r: r.path == "/latest", redirect("/x.h5", 302), None]]
            server.forget()
            self.check(server.url("latest"))
            self.assertFetched([302, 304], server)

    def test_object_store(self):
        keys = Keys("AKIDEXAMPLE", "key/+=", None, "eu-test-1")
        env = {"AWS_ACCESS_KEY_ID": keys.access, "AWS_SECRET_ACCESS_KEY": keys.secret, "AWS_REGION": keys.region, "AWS_PROFILE": "", "AWS_SESSION_TOKEN": "",
               "AWS_CONFIG_FILE": "/no/file", "AWS_SHARED_CREDENTIALS_FILE": "/no/file"}
        os.mkdir(self.file("served", "bucket"))
        os.link(self.path, self.file("served", "bucket", "x.h5"))
        with self.serve(keys=keys) as server:
            for _ in range(2):
                server.forget()
                self.check("s3://bucket/x.h5", options=f",s3_endpoint={server.url()}", env=env)
            self.assertEqual([r.status for r in server.requests], [304])

    def test_server_that_confirms_another_file(self):
        def confirm(handler):
            if "If-None-Match" not in handler.headers:
                return False
            handler.answer(304, {"ETag": '"another"'}, None)
            return True

        with self.serve() as server:
            self.check(server.url("x.h5"))
            server.on("", confirm, None)
            server.forget()
            self.check(server.url("x.h5"))
            self.assertFetched([304], server)

    def test_faults_of_the_server(self):
        with self.serve() as server:
            self.check(server.url("x.h5"))
            for fault in status(503), reset(-1):
                server.on("", fault)
                server.forget()
                self.check(server.url("x.h5"))
                self.assertEqual((server.count.requests, server.requests[1].status), (2, 304))
            server.on("", status(403), None)
            self.assertEqual(refusal(server.url("x.h5"), options=f"disk_cache={self.cache}")[0], 14)


class Shared(Case):
    def test_two_mounts_at_once(self):
        """What one fetches, the other has."""
        with self.serve(delay=.01) as server, self.mount(server.url("x.h5")) as a, self.mount(server.url("x.h5")) as b:
            readers = [subprocess.Popen(["cat", m.at("data")], stdout=subprocess.PIPE) for m in (a, b, a, b)]
            for reader in readers:
                self.assertTrue(reader.communicate()[0] == self.data)
            server.forget()
            self.check(server.url("x.h5"))
            self.assertEqual(server.count.requests, 1)
        with self.serve() as server, self.mount(server.url("x.h5")) as a, self.mount(server.url("x.h5")) as b:
            read(a.at("data"))
            server.forget()
            self.assertTrue(read(b.at("data")) == self.data)
            self.assertEqual(server.count.requests, 0)
        self.assertEqual(len(self.stored()), 2)

    def test_processes_that_are_killed(self):
        """At any moment: what the next mount reads is right."""
        chance = random.Random(7)
        with self.serve(rate=20 * MIB) as server:
            for i in range(ROUNDS):
                with self.mount(server.url("x.h5")) as m:
                    reader = subprocess.Popen(["cat", m.at("data")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        reader.wait(chance.random() * .15)
                    if i % 2:
                        os.kill(fetcher_of(m.daemon), signal.SIGKILL)
                    else:
                        m.kill()
                    reader.wait()
                said, _ = self.check(server.url("x.h5"), "-f")
                self.assertEqual(said, "")
                server.forget()
                self.check(server.url("x.h5"))
                self.assertEqual(server.count.requests, 1)
                for path in self.stored():
                    os.unlink(path)

    def test_budget(self):
        """The file that was not used for longest goes first; one in use stays."""
        for i in range(7):
            shutil.copy(self.path, self.file("served", f"{i}.h5"))
        room = f",disk_cache_size={3 * SIZE + MIB}"
        with self.serve() as server:
            self.check(server.url("0.h5"), options=room)
            write(self.file("cache", "mine"), bytes(MIB))
            first, = self.stored()
            self.check(server.url("1.h5"), options=room)
            second, = set(self.stored()) - {first}
            for i in 0, 2, 3:
                self.check(server.url(f"{i}.h5"), options=room)
            self.assertIn(first, self.stored())
            self.assertNotIn(second, self.stored())
            with self.mount(server.url("0.h5"), options=room) as m:
                for i in 4, 5, 6:
                    self.check(server.url(f"{i}.h5"), options=room)
                    self.assertLessEqual(self.used(), 3 * SIZE + MIB)
                self.assertIn(first, self.stored())
                server.forget()
                self.assertTrue(read(m.at("data")) == self.data)
                self.assertEqual(server.count.requests, 0)
            self.check(server.url("6.h5"), options=room)
            self.assertEqual(server.count.requests, 1)
        self.assertTrue(os.path.exists(self.file("cache", "mine")))

    def test_budget_within_a_second(self):
        for i in range(4):
            shutil.copy(self.path, self.file("served", f"{i}.h5"))
        room = f",disk_cache_size={3 * SIZE + MIB}"
        files = []
        with self.serve() as server:
            for i in range(3):
                self.check(server.url(f"{i}.h5"), options=room)
                files += set(self.stored()) - set(files)
            for path, ns in zip(files, (300, 100, 200)):
                os.utime(path, ns=(10**18 + ns, 10**18 + ns))
            self.check(server.url("3.h5"), options=room)
            self.assertEqual([os.path.exists(path) for path in files], [True, False, True])

    def test_budget_for_less_than_the_file(self):
        with self.serve() as server:
            for size in MIB, 2 * MIB, 1:
                self.check(server.url("x.h5"), options=f",disk_cache_size={size}")
                self.assertLessEqual(self.used(), size)
                for path in self.stored():
                    os.unlink(path)


class Damaged(Case):
    """Whatever becomes of a file of the cache, what is read is right; the log says that it was thrown away."""

    def setUp(self):
        super().setUp()
        self.server = self.enterContext(self.serve())
        self.url = self.server.url("x.h5")
        self.check(self.url)
        self.kept, = self.stored()
        shutil.copy(self.kept, self.file("copy"))

    def blocks(self):
        return -(-os.stat(self.path).st_size // BLOCK)

    def bad(self, damage, said="thrown away"):
        """Does the damage, and mounts."""
        shutil.rmtree(self.kept, ignore_errors=True) if os.path.isdir(self.kept) and not os.path.islink(self.kept) else os.unlink(self.kept)
        shutil.copy(self.file("copy"), self.kept)
        os.chmod(self.kept, 0o600)
        damage()
        text, _ = self.check(self.url, "-f")
        self.assertRegex(text, rf"\Ah5fs: disk cache: h5fs-[0-9a-f]{{32}}-[0-9a-f]{{32}}: [^\n]*{said}\n\Z")

    def recovered(self):
        """All is as it was before the damage, once another mount has read all."""
        self.assertEqual(self.check(self.url, "-f")[0], "")
        self.server.forget()
        self.check(self.url)
        self.assertEqual(self.server.count.requests, 1)

    def change(self, offset, data=None):
        def damage():
            with open(self.kept, "r+b") as f:
                f.seek(offset)
                old = f.read(1)
                f.seek(offset)
                f.write(data or bytes([old[0] ^ 0x10]))
        return damage

    def test_bytes(self):
        """check_disk_cache changes each bit of a header."""
        data = (MAP + 8 * self.blocks() + BLOCK - 1) // BLOCK * BLOCK
        end = os.stat(self.kept).st_size
        for offset in 8, 508, MAP, MAP + 8 * self.blocks() - 1, data, data + 2 * MIB + 77, end - 1:
            with self.subTest(offset):
                self.bad(self.change(offset))
        self.recovered()

    def test_torn_blocks(self):
        """A map that reached the disk before its blocks, as after a power failure; blocks at another place."""
        content = read(self.kept)
        data = (MAP + 8 * self.blocks() + BLOCK - 1) // BLOCK * BLOCK
        first, last = content[data:data + BLOCK], content[data + 100 * BLOCK:data + 101 * BLOCK]
        for offset, piece in ((data, bytes(BLOCK)), (data + 101 * BLOCK, bytes(4096)), (data + MIB, last), (data + 100 * BLOCK, first), (MAP, content[MAP + 8:MAP + 16])):
            with self.subTest(offset):
                self.bad(self.change(offset, piece))
        self.recovered()

    def test_lengths(self):
        for size in 0, 511, MAP + 10, os.stat(self.kept).st_size - 1, os.stat(self.kept).st_size + 1:
            with self.subTest(size):
                self.bad(lambda: os.truncate(self.kept, size))
        self.recovered()

    def test_files_that_changed_places(self):
        """Also if their entity tags and sizes are the same."""
        other = make(self.file("served", "y.h5"), 9)
        self.server.on("", tagged('"1"'), None)
        os.unlink(self.kept)
        for name, data in ("x.h5", self.data), ("y.h5", other):
            self.check(self.server.url(name), data=data)
        x, y = self.stored()
        os.rename(x, self.file("x"))
        os.rename(y, x)
        os.rename(self.file("x"), y)
        for name, data in ("x.h5", self.data), ("y.h5", other):
            self.assertIn("thrown away", self.check(self.server.url(name), "-f", data=data)[0])
            self.assertEqual(self.check(self.server.url(name), "-f", data=data)[0], "")

    def test_other_size_with_the_same_tag(self):
        def forgetful(handler):
            del handler.headers["If-None-Match"]
            return tagged('"1"')(handler)

        self.server.on("", tagged('"1"'), None)
        self.check(self.url)
        with h5py.File(self.path, "r+") as f:
            f["more"] = numpy.arange(1000)
        self.server.rules.clear()
        self.server.on("", forgetful, None)
        self.assertIn("another file has the same entity tag", self.check(self.url, "-f")[0])

    def test_what_is_no_file_of_ours(self):
        write(self.file("victim"), read(self.kept))
        before = os.stat(self.file("victim"))

        def instead(function, *arguments):
            def damage():
                os.unlink(self.kept)
                function(*arguments)
            return damage

        self.bad(instead(os.symlink, self.file("victim"), self.kept))
        self.bad(instead(os.symlink, "/etc/passwd", self.kept))
        self.bad(instead(os.symlink, "nowhere", self.kept))
        self.bad(instead(os.mkfifo, self.kept))
        self.bad(instead(os.link, self.file("victim"), self.kept))
        self.bad(instead(write, self.kept, os.urandom(100_000)))
        self.bad(lambda: os.chmod(self.kept, 0o620))
        if os.geteuid() == 0:
            self.bad(lambda: os.chown(self.kept, 12345, 12345))
        self.recovered()
        after = os.stat(self.file("victim"))
        self.assertEqual((before.st_mtime_ns, before.st_size, before.st_nlink), (after.st_mtime_ns, after.st_size, after.st_nlink))

    def test_folder_instead(self):
        os.unlink(self.kept)
        os.mkdir(self.kept)
        for _ in range(2):
            self.assertRegex(self.check(self.url, "-f")[0], "not used, and cannot be removed")

    def test_damage_while_it_is_read(self):
        """Of what is read afterwards."""
        with self.mount(self.url, "-f") as m:
            with open(m.at("data"), "rb") as f:
                os.pread(f.fileno(), 10, 0)
                self.change(os.stat(self.kept).st_size - 5 * BLOCK)()
                self.assertTrue(f.read() == self.data)
            self.assertIn("thrown away", m.said())
        self.assertEqual(self.check(self.url, "-f")[0], "")


class Place(Case):
    """The folder itself."""

    def refused(self, said, options, expected=18):
        with self.serve() as server:
            code, text = refusal(server.url("x.h5"), options=options)
            self.assertEqual(code, expected, text)
            self.assertRegex(text, rf"\Ah5fs: [^\n]*{said}[^\n]*\n\Z")
            self.assertEqual(server.count.requests, 0)

    def test_that_cannot_be_used(self):
        write(self.file("text"), b"")
        os.mkdir(self.file("folder"))
        os.symlink("folder", self.file("link"))
        for name, said in (("text", "Not a directory"), ("link", "symbolic link"), ("no/folder", "No such file")):
            self.refused(f"disk_cache={self.file(name)}: .*{said}", f"disk_cache={self.file(name)}")
        self.refused("disk_cache=/proc: ", "disk_cache=/proc")
        self.assertEqual(os.listdir(self.file("folder")), [])

    def test_command_line(self):
        code, said = refusal(self.path, options=f"disk_cache={self.cache}")
        self.assertEqual((code, "only for a file behind a URL" in said), (2, True), said)
        for options in "disk_cache_size=1M", f"disk_cache={self.cache},disk_cache_size=0", f"disk_cache={self.cache},disk_cache_size=x":
            self.refused("disk_cache_size", options, 2)
        self.assertFalse(os.path.exists(self.cache))

    def test_full_disk(self):
        """Reads go on; what is there is used."""
        os.mkdir(self.cache)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2M", "none", self.cache], check=False, capture_output=True)
        if mounted.returncode:
            self.skipTest("a file system cannot be mounted here")
        try:
            with self.serve() as server:
                self.assertRegex(self.check(server.url("x.h5"), "-f")[0], r"\Ah5fs: disk cache: nothing more is stored: No space left on device\n\Z")
                before = server.count.bytes
                server.forget()
                self.check(server.url("x.h5"))
                self.assertLessEqual(server.count.bytes, before - MIB)
                shutil.copy(self.path, self.file("served", "y.h5"))
                self.assertIn("No space", self.check(server.url("y.h5"), "-f")[0])
        finally:
            subprocess.run(["umount", self.cache], check=True)

    def test_folder_that_goes(self):
        """While it is used."""
        with self.serve() as server, self.mount(server.url("x.h5")) as m:
            shutil.rmtree(self.cache)
            self.assertTrue(read(m.at("data")) == self.data)
        with self.serve() as server:
            self.check(server.url("x.h5"))
            self.assertEqual(len(self.stored()), 1)

    @unittest.skipUnless(CONFINED and available(), "no full sandbox here, or system calls cannot be put into processes")
    def test_sandbox(self):
        """The folder is all that the fetcher can write."""
        with self.serve() as server, self.mount(server.url("x.h5")) as m:
            with Injector(fetcher_of(m.daemon)) as inside:
                for name in "served", "cache":
                    got = inside.call("openat", -100, os.fsencode(self.file(name, "new")), os.O_WRONLY | os.O_CREAT, 0o600)
                    self.assertEqual(got > 0, name == "cache", (name, got))
            self.assertTrue(read(m.at("data")) == self.data)


if __name__ == "__main__":
    main()
