#!/usr/bin/python3
"""All that lies below a prefix of an object store, as one folder: h5fs s3://BUCKET/PREFIX/ MNT."""
import errno
import json
import os
import stat
import time

import h5py
import numpy

import object_server
from mountfacts import facts_of_tree
from mountlib import Mount, MountFailed, main, read, refusal, write
from object_server import raw, reset, status
from remotelib import AGAIN, SECRET, Case

KEYS = object_server.Keys("AKIDEXAMPLE", SECRET + "/+=", None, "eu-test-1")
ENV = {**{name: "" for name in os.environ if name.startswith("AWS_")}, "AWS_REGION": KEYS.region, "AWS_ACCESS_KEY_ID": KEYS.access,
       "AWS_SECRET_ACCESS_KEY": KEYS.secret, "AWS_CONFIG_FILE": "/no/file", "AWS_SHARED_CREDENTIALS_FILE": "/no/file"}
SOON = 60  # seconds
MIB = 1 << 20


def make(path, number):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with h5py.File(path, "w", libver="latest") as f:
        f["a/x"] = numpy.arange(number, number + 1000, dtype="<i8")
        f.create_dataset("c", data=numpy.arange(10000), chunks=(100,), compression="gzip")
        f["a"].attrs["number"] = number
        f["soft"] = h5py.SoftLink("/a/x")
    os.utime(path, (1e9 + number, 1e9 + number))
    return path


def replace(path, number):
    """Another object takes its place at once."""
    os.replace(make(path + ".new", number), path)


def numbers(number):
    return numpy.arange(number, number + 1000, dtype="<i8").tobytes()


def listing(items, more=""):
    """The fault that answers with such a page."""
    body = f"<ListBucketResult><IsTruncated>{'true' if more else 'false'}</IsTruncated>{more}{items}</ListBucketResult>"
    return status(200, {"Content-Type": "application/xml"}, body.encode())


class Prefix(Case):
    LIST = "list-type=2"

    def setUp(self):
        super().setUp()
        os.mkdir(self.at())

    def at(self, *names):
        return self.file("served", "bucket", *names)

    def url(self, below="run/"):
        return f"s3://bucket/{below}"

    def mount(self, server, below="run/", options="", **more):
        return Mount(self.url(below), "-f", options=f"s3_endpoint={server.url()[:-1]}{options}", env=ENV, **more)

    def refused(self, server, below="run/", options=""):
        with self.assertRaises(MountFailed) as caught, self.mount(server, below, options):
            pass
        self.assertEqual(caught.exception.said.count("\n"), 1, caught.exception.said)
        return caught.exception.status, caught.exception.said

    def stats(self, m):
        return json.loads(os.getxattr(m.path, "h5fs.stats"))

    def until(self, condition):
        """What it gives at last."""
        end = time.monotonic() + SOON
        while not (found := condition()):
            self.assertLess(time.monotonic(), end)
            time.sleep(.02)
        return found

    def await_closed(self, m):
        self.until(lambda: not self.stats(m)["open_files"])


class Trees(Prefix):
    def test_each_object_is_what_its_own_mount_shows(self):
        names = "run/one.h5", "run/deep/er/two.nc", "run/deep/a b+c=(\u00e9)~%20.h5"
        for number, name in enumerate(names):
            make(self.at(name), number)
        with h5py.File(self.at("run/links.h5"), "w") as f:
            f["beneath"] = h5py.ExternalLink("deep/er/two.nc", "/a")
            f["above"] = h5py.ExternalLink("../other.h5", "/a")
        with h5py.File(self.at("run/deep/links.h5"), "w", userblock_size=1024) as f:
            f["beneath"] = h5py.ExternalLink("er/two.nc", "/a")
        make(self.at("other.h5"), 9)
        with self.serve(keys=KEYS, page=2) as server:
            with self.mount(server) as m:
                self.assertEqual(sorted(os.listdir(m.path)), ["deep", "links.h5", "one.h5"])
                self.assertEqual(sorted(os.listdir(m.at("deep"))), ["a b+c=(\u00e9)~%20.h5", "er", "links.h5"])
                for name in names:
                    with Mount(self.at(name), point=self.file("own")) as own:
                        self.assertEqual(facts_of_tree(m.at(name[4:])), facts_of_tree(own.path), name)
                self.assertEqual(read(m.at("links.h5/beneath/x")), numbers(1))
                self.assertEqual(read(m.at("deep/links.h5/beneath/x")), numbers(1))
                self.assertErrno(errno.ENOENT, os.listdir, m.at("links.h5/above"))
                self.assertFalse([r for r in server.requests if "other" in r.target])
                self.assertEqual(read(m.at("one.h5/.h5fs/attrs/a/number")), b"0")
                url = json.loads(read(m.at("deep/er/two.nc/.h5fs/kerchunk.json")))["refs"]["c/0"][0]
                self.assertEqual(url, self.url("run/deep/er/two.nc"))
                with os.scandir(m.path) as entries:
                    self.assertEqual({e.name: e.inode() for e in entries}, {n: os.stat(m.at(n)).st_ino for n in ("deep", "links.h5", "one.h5")})
                self.assertErrno(errno.EROFS, write, m.at("new"), b"")
                self.assertErrno(errno.ENOENT, os.stat, m.at("deep/nothing.h5"))
                self.assertErrno(errno.ENOENT, os.stat, m.at("nothing/more"))
                self.assertNotIn(SECRET, m.said())
            for below in "", "run/deep/":
                with self.mount(server, below) as m:
                    self.assertEqual(read(m.at(f"{'run/deep/' if not below else ''}er/two.nc/a/x")), numbers(1))
            with Mount("s3://bucket", options=f"s3_endpoint={server.url()}", env=ENV) as m:
                self.assertEqual(sorted(os.listdir(m.path)), ["other.h5", "run"])

    def test_other_objects_are_plain_files(self):
        big = numpy.random.default_rng(2).bytes(20 << 20)
        os.mkdir(self.at("run"))
        for name, data in ("big", big), ("old.mat", b"MATLAB 5.0"), ("empty.h5", b""), ("empty", b""), ("odd", bytes(513)), ("named.data", SECRET.encode()):
            write(self.at("run", name), data)
        os.utime(self.at("run/big"), (1e9, 1e9))
        make(self.at("run/wanted.data"), 1)
        with self.serve(keys=KEYS) as server, self.mount(server) as m:
            with os.scandir(m.path) as entries:
                self.assertEqual({e.name for e in entries if e.is_file()}, {"big", "empty", "empty.h5", "named.data", "odd", "old.mat", "wanted.data"})
            self.assertEqual([os.stat(m.at(name)).st_blocks for name in ("empty", "old.mat", "odd", "big")], [0, 1, 2, len(big) // 512])
            st = os.stat(m.at("big"))
            self.assertEqual((stat.filemode(st.st_mode), st.st_size, st.st_mtime, st.st_nlink), ("-r--r--r--", len(big), 1e9, 1))
            for name in "empty", "empty.h5", "old.mat", "named.data", "wanted.data":
                self.assertEqual(read(m.at(name)), read(self.at("run", name)), name)
            with open(m.at("big"), "rb") as f:
                self.assertEqual(os.pread(f.fileno(), 1000, 15 << 20), big[15 << 20:][:1000])
                self.assertEqual(os.lseek(f.fileno(), 5, os.SEEK_HOLE), len(big))
                self.assertErrno(errno.ENXIO, os.lseek, f.fileno(), len(big), os.SEEK_DATA)
            server.forget()
            self.assertEqual(read(m.at("big")), big)
            self.assertLessEqual(server.count.requests, 25)
            self.assertLess(server.count.bytes, 1.2 * len(big))
            self.assertErrno(errno.EINVAL, os.readlink, m.at("big"))
            self.assertEqual(os.listxattr(m.at("big")), [])
            self.assertEqual(os.statvfs(m.path).f_namemax, 255)
        with self.serve(keys=KEYS) as server, self.mount(server, options=",match=*.DATA:big") as m:
            self.assertEqual(read(m.at("wanted.data/a/x")), numbers(1))
            self.assertTrue(os.path.isfile(m.at("big")))

    def test_what_comes_next_of_an_object(self):
        """It is asked for ahead of who reads in order, and of nobody else."""
        os.mkdir(self.at("run"))
        with open(self.at("run/big"), "wb") as f:
            f.truncate(80 * MIB)
        with self.serve(keys=KEYS) as server, self.mount(server) as m, open(m.at("big"), "rb", buffering=0) as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            for place in 70, 20, 60, 10, 50, 30:
                os.pread(f.fileno(), 4096, place * MIB)
            self.assertLess(server.furthest(), 72 * MIB)
            self.assertLess(server.count.bytes, 10 * MIB)
            server.forget()
            for place in 0, 2, 5, 8:
                os.pread(f.fileno(), 4096, place * MIB)
            self.until(lambda: server.furthest() > 40 * MIB)

    def test_a_folder_hides_an_object_of_its_name(self):
        make(self.at("run/both/x.h5"), 1)
        write(self.at("run/both-and"), b"comes before it")
        parts = "<Contents><Key>run/both</Key><ETag>e</ETag><Size>5</Size></Contents>", "<CommonPrefixes><Prefix>run/both/</Prefix></CommonPrefixes>"
        with self.serve(keys=KEYS) as server:
            def is_there_when_asked_for(m):
                """True: the mount has asked for the name, as it does when its listing is too old."""
                self.assertTrue(os.path.isdir(m.at("both")))
                return any("both" in r.target for r in server.requests)

            def asked_for_an_object(m):
                self.assertTrue(os.path.isfile(m.at("both-and")))
                return [r for r in server.requests if "both-and" in r.target]

            with self.mount(server) as m:
                self.until(lambda: is_there_when_asked_for(m))
                self.assertEqual(len(self.until(lambda: asked_for_an_object(m))), 1, "all keys of that name came at once")
            for items in parts, parts[::-1]:
                with self.mount(server) as m:
                    server.on(self.LIST + ".*both", listing("".join(items)), times=None)
                    server.forget()
                    self.until(lambda: is_there_when_asked_for(m))

    def test_keys_that_are_no_names(self):
        objects = {"run/a": b"an object", "run/a/b": b"in the folder", "run/": b"", "run/x//y": b"1", "run//z": b"2", "run/./p": b"3", "run/../q": b"4",
                   "run/..": b"5", "run/.": b"6", "run/" + "l" * 256: b"7", "run/" + "l" * 255: b"long", "run/empty/": b"", "run/ space ": b"8",
                   "run/line\nfeed\t&<>\"'": b"9", "run/nul\0.h5": b"10", "run/%41": b"11", "other": b"12", "run0": b"13", "run/\u00e9": b"14"}
        shown = {"a", "x", "l" * 255, "empty", " space ", "line\nfeed\t&<>\"'", "%41", "\u00e9"}
        with self.serve(keys=KEYS, page=3) as server:
            server.objects.update({f"/bucket/{key}": data for key, data in objects.items()})
            with self.mount(server) as m:
                self.assertEqual(set(os.listdir(m.path)), shown)
                self.assertEqual(os.listdir(m.at("a")), ["b"])
                self.assertEqual((os.listdir(m.at("x")), os.listdir(m.at("empty"))), ([], []))
                for name in shown - {"a", "x", "empty"}:
                    self.assertEqual(read(m.at(name)), objects["run/" + name], name)
                self.assertErrno(errno.ENAMETOOLONG, os.stat, m.at("l" * 256))
            # The same of names that were not listed before.
            with self.mount(server, "") as m:
                for name in shown:
                    self.assertEqual(os.path.isdir(m.at("run", name)), name in ("a", "x", "empty"), name)
                self.assertEqual(read(m.at("run/a/b")), b"in the folder")

    def test_many_objects_are_listed_without_opening_any(self):
        counts, seconds = (4000, 40000), []
        for count in counts:
            with self.serve(keys=KEYS) as server:
                server.objects.update({f"/bucket/run/{number:06}.h5": b"" for number in range(count)})
                with self.mount(server) as m:
                    server.forget()
                    names = os.listdir(m.path)
                    seconds.append(float(read(f"/proc/{m.daemon}/stat").rpartition(b")")[2].split()[11]))
                    self.assertEqual(len(set(names)), count)
                    self.assertLessEqual(server.count.requests, count // 1000)
                    self.assertTrue(all(self.LIST in r.target for r in server.requests))
                    server.forget()
                    self.assertEqual(sum(os.stat(m.at(name)).st_size for name in names[:300]), 0)
                    self.assertLessEqual(server.count.requests, 2 * (count // 1000 + 1))
                    self.assertEqual(self.stats(m)["opened"], 0)
        self.assertLess(seconds[1], 20 * max(seconds[0], 10))

    def test_objects_are_closed(self):
        for number in range(70):
            make(self.at(f"run/{number}.h5"), number)
        with self.serve(keys=KEYS) as server, self.mount(server, options=",open_files=2") as m:
            for _ in range(2):
                for number in range(70):
                    self.assertEqual(read(m.at(f"{number}.h5/a/x")), numbers(number))
                    self.assertLessEqual(self.stats(m)["open_files"], 2)
            with open(m.at("0.h5/a/x"), "rb"), open(m.at("1.h5/a/x"), "rb"):
                self.assertErrno(errno.ENFILE, os.listdir, m.at("2.h5"))
            self.await_closed(m)
            self.assertEqual(read(m.at("5.h5/a/x")), numbers(5))
            self.assertGreater(self.stats(m)["remote"]["requests"], 70)


class Changes(Prefix):
    def setUp(self):
        super().setUp()
        for number in 1, 2:
            make(self.at(f"run/{number}.h5"), number)
        write(self.at("run/plain"), b"1" * 3000000)
        self.one, self.two = (numpy.random.default_rng(seed).bytes(12 << 20) for seed in (3, 4))
        for data, name in (self.one, "run/big.h5"), (self.two, "new.h5"):
            with h5py.File(self.at(name), "w") as f:
                f["big"] = numpy.frombuffer(data, "u1")

    def test_an_object_is_replaced(self):
        with self.serve(keys=KEYS) as server, self.mount(server) as m:
            self.assertEqual(read(m.at("1.h5/a/x")), numbers(1))
            inode = os.stat(m.at("1.h5")).st_ino
            with open(m.at("plain"), "rb", buffering=0) as plain, open(m.at("big.h5/big"), "rb", buffering=0) as big:
                self.assertEqual(os.pread(plain.fileno(), 10, 0), b"1" * 10)
                self.assertEqual(os.pread(big.fileno(), 1000, 0), self.one[:1000])
                replace(self.at("run/1.h5"), 7)
                write(self.at("run/plain"), b"2" * 2000000)
                os.replace(self.at("new.h5"), self.at("run/big.h5"))
                self.assertErrno(errno.ESTALE, os.pread, plain.fileno(), 10, 2500000)
                self.assertErrno(errno.ESTALE, os.pread, big.fileno(), 1000, 11 << 20)
            self.until(lambda: read_or_none(m.at("big.h5/big")) == self.two)
            self.until(lambda: os.stat(m.at("1.h5")).st_ino != inode)
            self.assertEqual(read(m.at("1.h5/a/x")), numbers(7))
            self.until(lambda: os.stat(m.at("plain")).st_size == 2000000)
            self.assertEqual(read(m.at("plain")), b"2" * 2000000)
            self.assertEqual(read(m.at("2.h5/a/x")), numbers(2))

    def test_it_is_replaced_between_listing_and_opening(self):
        """What was listed a moment ago is another version than the one that is opened, which is noticed at once."""
        with self.serve(keys=KEYS) as server, self.mount(server) as m:
            os.listdir(m.path)
            self.assertEqual(os.stat(m.at("plain")).st_size, 3000000)
            write(self.at("run/plain"), b"3" * 1000)
            replace(self.at("run/1.h5"), 7)
            with open(m.at("plain"), "rb") as f:
                self.assertEqual(os.fstat(f.fileno()).st_size, 1000)
                self.assertEqual(f.read(), b"3" * 1000)
            self.assertEqual(read(m.at("1.h5/a/x")), numbers(7))

    def test_objects_come_and_go(self):
        with self.serve(keys=KEYS) as server, self.mount(server) as m:
            self.assertEqual(read(m.at("1.h5/a/x")), numbers(1))
            os.listdir(m.path)
            os.unlink(self.at("run/2.h5"))
            os.unlink(self.at("run/plain"))
            # They were listed a moment ago.
            self.assertErrno(errno.ENOENT, os.stat, m.at("2.h5"))
            self.assertErrno(errno.ENOENT, read, m.at("plain"))
            make(self.at("run/sub/3.h5"), 3)
            self.until(lambda: os.path.exists(m.at("sub/3.h5")))
            self.assertEqual(read(m.at("sub/3.h5/a/x")), numbers(3))
            self.until(lambda: sorted(os.listdir(m.path)) == ["1.h5", "big.h5", "sub"])


class Faults(Prefix):
    def setUp(self):
        super().setUp()
        for name in "good", "secret", "sick":
            make(self.at(f"run/{name}.h5"), 1)
        write(self.at("run/plain"), b"plain")
        write(self.at("run/damaged.h5"), read(self.at("run/good.h5"))[:60])

    def test_one_object_fails_alone(self):
        write(self.at("run/revisions.h5"), b"ONIONEOF" + bytes(100))  # all of it is in another file
        with self.serve(keys=KEYS) as server, self.mount(server, options="," + AGAIN) as m:
            server.on("(secret.h5|plain)$", status(403), times=None)
            self.assertEqual(len(os.listdir(m.path)), 6)
            self.assertTrue(os.path.isdir(m.at("secret.h5")))
            self.assertErrno(errno.EACCES, os.listdir, m.at("secret.h5"))
            self.assertErrno(errno.EACCES, read, m.at("plain"))
            for name in "damaged.h5", "revisions.h5":
                self.assertTrue(os.path.isdir(m.at(name)))
                with self.assertRaises(OSError):
                    os.listdir(m.at(name))
            server.on("sick.h5$", status(503), times=6)
            self.assertErrno(errno.EIO, os.listdir, m.at("sick.h5"))
            self.assertEqual(read(m.at("good.h5/a/x")), numbers(1))
            self.until(lambda: read_or_none(m.at("sick.h5/a/x")) == numbers(1))

    def test_a_network_that_goes_away(self):
        with self.serve(keys=KEYS) as server, self.mount(server, options="," + AGAIN) as m:
            self.assertEqual(read(m.at("good.h5/a/x")), numbers(1))
            self.assertEqual(len(os.listdir(m.path)), 5)
            with server.away():
                self.until(lambda: fails(os.listdir, m.path) == errno.EIO)
                # The first look-ups ask for one name each, a later one for the whole listing.
                for name in "sick.h5", "secret.h5", "plain":
                    self.assertErrno(errno.EIO, os.stat, m.at(name))
            self.until(lambda: read_or_none(m.at("sick.h5/a/x")) == numbers(1))
            self.assertEqual(len(os.listdir(m.path)), 5)

    def test_a_page_is_asked_for_again(self):
        with self.serve(keys=KEYS, page=2) as server:
            server.on(self.LIST, status(503), times=1)
            server.on(self.LIST, reset(40), times=1)
            with self.mount(server, options="," + AGAIN) as m:
                self.assertEqual(len(os.listdir(m.path)), 5)

    def test_the_mount_is_refused(self):
        wrong = KEYS._replace(secret="another")
        with self.serve(keys=KEYS) as server:
            self.assertEqual(self.refused(server, "nothing/")[0], 13)
            server.on(self.LIST, status(403, body=b"<Error><Code>AccessDenied</Code></Error>"))
            code, said = self.refused(server)
            self.assertEqual(code, 14)
            self.assertIn("AccessDenied", said)
            self.assertEqual(refusal("s3://none/", "-o", f"s3_endpoint={server.url()}", env=ENV)[0], 13)
            code, said = self.refused(server, options=",rw")
            self.assertEqual(code, 8)
            self.assertIn("can only be read", said)
        with self.serve(keys=wrong) as server:
            self.assertEqual(self.refused(server)[0], 14)
        for arguments in (["--list", "s3://bucket/run/"], ["--check", "s3://bucket"], ["s3://bucket/run?x/", self.file("mnt")]):
            self.assertEqual(self.command(*arguments).returncode, 2, arguments)

    def test_answers_that_are_no_listing(self):
        entry = "<Contents><Key>run/a</Key><Size>1</Size></Contents>"
        faults = [listing("<Contents><Key>elsewhere</Key><Size>1</Size></Contents>"), listing("<Contents><Key>run/a</Key></Contents>"),
                  listing("<Contents><Key>run/a</Key><Size>-1</Size></Contents>"), listing(entry, "<NextContinuationToken></NextContinuationToken>"),
                  listing("<CommonPrefixes><Prefix>run/a</Prefix></CommonPrefixes>"), status(200, body=b"<html></html>"), status(200, body=b""),
                  status(200, body=b"<!DOCTYPE a [<!ENTITY b 'c'>]><ListBucketResult/>"), status(200, body=b"<ListBucketResult>" + b" " * (9 << 20)),
                  status(206, {"Content-Range": "bytes 0-4/5"}, b"bytes"), status(416, {"Content-Range": "bytes */0"}, b""), status(304, body=b""),
                  raw(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx")]
        with self.serve(keys=KEYS) as server:
            for number, fault in enumerate(faults):
                with self.subTest(number):
                    server.on(self.LIST, fault, times=1)
                    self.assertIn(self.refused(server, options=",remote_tries=1")[0], (15, 16))
            server.on(self.LIST, listing(entry + entry), times=1)
            with self.mount(server) as m:
                self.assertEqual(os.listdir(m.path), ["a"])


def fails(function, *arguments):
    """The errno with which it fails; None: it does not."""
    try:
        function(*arguments)
    except OSError as e:
        return e.errno
    return None


def read_or_none(path):
    try:
        return read(path)
    except OSError:
        return None


if __name__ == "__main__":
    main()
