#!/usr/bin/python3
"""Small files that ask for much memory, much time, or the attention of a terminal: what they get is bounded."""
import concurrent.futures
import errno
import os
import re
import struct
import subprocess
import threading
import time
import unittest

import h5py
import numpy

from mountlib import H5FS, Mount, MountCase, lookup3, main, patch, read

HOSTILE = os.path.join(os.environ.get("H5FS_CONFORMANCE", ""), "found", "hostile")
MIB = 1 << 20
with open(H5FS, "rb") as binary:
    SANITIZED = b"__asan_init" in binary.read() or b"__tsan_init" in binary.read()  # its memory is another one


def hostile(name):
    """The path of a file that was found to do harm; the test is skipped where the collection is not installed."""
    path = os.path.join(HOSTILE, name)
    if not os.path.exists(path):
        raise unittest.SkipTest(f"no {path}")
    return path


def error_of(function, *arguments):
    """The errno of what fails; 0 if it does not."""
    try:
        function(*arguments)
    except OSError as e:
        return e.errno
    return 0


def command(*arguments, seconds=60, memory=None):
    """Exit status, standard output and error of h5fs, and the seconds of processor time that it took; the most memory
    that it had must be below `memory`."""
    run = subprocess.Popen([H5FS, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    killer = threading.Timer(seconds, run.kill)
    killer.start()
    with run.stdout, run.stderr:
        out, said = run.stdout.read(), run.stderr.read()
    _, status, usage = os.wait4(run.pid, 0)
    killer.cancel()
    run.returncode = os.waitstatus_to_exitcode(status)
    if run.returncode == -9:
        raise AssertionError(f"h5fs {' '.join(arguments)} took over {seconds} s: {said!r}")
    if memory and not SANITIZED and usage.ru_maxrss << 10 > memory:
        raise AssertionError(f"h5fs {' '.join(arguments)} had {usage.ru_maxrss} KiB of memory")
    return run.returncode, out, said, usage.ru_utime + usage.ru_stime


class Terminal(MountCase):
    """What a file says reaches the log, and so a terminal, only as characters that are shown."""

    def assertHarmless(self, said):
        self.assertNotRegex(said, rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|(?<![\xc2-\xf4\x80-\xbf])[\x80-\x9f]")

    def test_names_in_the_log(self):
        for command_name in "--list", "--check":
            said = command(command_name, hostile("log-c1-control.h5"))[2]
            self.assertHarmless(said)
            self.assertIn(rb"\302\23331mEVIL" if command_name == "--list" else b"", said)

    def test_names_that_are_no_text(self):
        path = self.file("names.h5")
        with h5py.File(path, "w") as f:
            f.create_dataset("d", data=numpy.zeros(8), chunks=(8,), compression="gzip")
        patch(path, struct.pack("<HH", 1, 8) + b"\1\0\1\0deflate\0", struct.pack("<HH", 511, 8) + b"\0\0\1\0\x9bm\xc2\x9b\x1b[m\0")
        with Mount(path, "-f") as m:
            self.assertErrno(errno.ENOTSUP, read, m.at("d"))
            with open(m.log, "rb") as f:
                said = f.read()
            self.assertHarmless(said)
            self.assertIn(rb"\233m\302\233\033[m", said)


def read_ends(path):
    """Reads the first and the last MiB of a file; how many bytes it has, and its last one."""
    with open(path, "rb", buffering=0) as f:
        size = os.fstat(f.fileno()).st_size
        f.read(MIB)
        return size, os.pread(f.fileno(), MIB, max(size - MIB, 0))[-1:]


class Memory(MountCase):
    """However many ask for large things at once: all that they take stays within the budgets of the caches."""
    CACHE, INDEX_CACHE = 64 * MIB, 16 * MIB
    OPTIONS = f"cache={CACHE},index_cache={INDEX_CACHE},max_work=0"
    BESIDE = 64 * MIB  # beside the budgets
    READERS = 64
    ELEMENTS = 1 << 18

    def peak(self, m):
        """The most memory that the daemon ever had."""
        with open(f"/proc/{m.daemon}/status") as f:
            return int(re.search(r"VmHWM:\s+(\d+)", f.read())[1]) << 10

    def assertModest(self, m):
        if not SANITIZED:
            self.assertLess(self.peak(m), self.CACHE + self.INDEX_CACHE + self.BESIDE)

    def in_threads(self, functions):
        """What the functions return, each called by a thread of its own, all of them at once."""
        with concurrent.futures.ThreadPoolExecutor(len(functions)) as pool:
            return [future.result() for future in [pool.submit(f) for f in functions]]

    def make(self):
        """Of each kind eight, for two readers each. The attributes are empty strings: their text is short."""
        path = self.file("large.h5")
        with h5py.File(path, "w", libver="latest") as f:
            for i in range(8):
                f.create_dataset(f"attribute{i}", data=0).attrs["big"] = numpy.zeros(self.ELEMENTS, f"S{12 * MIB // self.ELEMENTS}")
                f.create_dataset(f"chunk{i}", (12 * MIB,), "u1", chunks=(12 * MIB,), compression="gzip", fillvalue=i + 1)[0] = 0
                f.create_dataset(f"text{i}", (2,), h5py.string_dtype())[:] = ["x" * (10 * MIB), str(i)]
        return path

    def addresses(self, m):
        """Bytes of address space that the daemon ever had."""
        with open(f"/proc/{m.daemon}/status") as f:
            return int(re.search(r"VmPeak:\s+(\d+)", f.read())[1]) << 10

    def test_an_element_that_is_large(self):
        """Nothing of it is stored: no memory is taken for it, neither to remove it nor for a line that is to become one."""
        path, gib = self.file("element.h5"), 1 << 30
        element = numpy.dtype({"names": ["v", "end"], "formats": [h5py.vlen_dtype("u1"), "u1"], "offsets": [0, 3 * gib // 2], "itemsize": 3 * gib // 2 + 1})
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("d", (0,), element, maxshape=(None,), chunks=(1,))
            f.create_dataset("e", (1,), element)
        with Mount(path, options="rw") as m:
            before = self.addresses(m)
            with open(m.at("d"), "ab", buffering=0) as f:
                self.assertEqual(error_of(f.write, b'{"v":[1],"end":2}\n'), errno.EFBIG)
            os.unlink(m.at("e"))
            root = m.open("", os.O_RDONLY)
            os.fsync(root)
            os.close(root)
            self.assertEqual(os.listdir(m.at()), ["d"])
            if not SANITIZED:
                self.assertLess(self.addresses(m) - before, gib)

    def make_headers(self):
        """Attributes in the headers of their objects, which thus are large."""
        path = self.file("headers.h5")
        with h5py.File(path, "w", libver="earliest") as f:
            for i in range(8):
                group = f.create_group(f"header{i}")
                for k in range(160):
                    group.attrs[f"a{k}"] = numpy.bytes_(b"%d" % i * 60000)
        return path

    def test_of_many_readers(self):
        """Attributes, chunks and texts, all at once."""
        with Mount(self.make(), options=self.OPTIONS) as m:
            functions = []
            for i in range(8):
                functions += 2 * [lambda i=i: read_ends(m.at(".h5fs", "attrs", f"attribute{i}", "big"))]
                functions += 2 * [lambda i=i: read_ends(m.at(f"chunk{i}"))]
                functions += 2 * [lambda i=i: read_ends(m.at(f"text{i}"))]
                functions += 2 * [lambda i=i: os.listxattr(m.at(f"attribute{i}"))]
            self.assertEqual(len(functions), self.READERS)
            found = self.in_threads(functions)
            self.assertModest(m)
        for i in range(8):
            self.assertEqual(found[8 * i], (3 * self.ELEMENTS + 1, b"]"))
            self.assertEqual(found[8 * i + 2], (12 * MIB, bytes([i + 1])))
            self.assertEqual(found[8 * i + 4], (10 * MIB + 3, b"\n"))
            self.assertNotIn("user.big", found[8 * i + 6])
            self.assertEqual(found[8 * i:8 * i + 8:2], found[8 * i + 1:8 * i + 8:2])

    def test_of_many_headers(self):
        with Mount(self.make_headers(), options=self.OPTIONS) as m:
            functions = []
            for i in range(8):
                functions += 4 * [lambda i=i: len(os.listxattr(m.at(f"header{i}")))]
                functions += 2 * [lambda i=i: len(read(m.at(".h5fs", "json", f"header{i}", ".json")))]
                functions += 2 * [lambda i=i: os.getxattr(m.at(f"header{i}"), "h5fs.raw.a159")]
            self.assertEqual(len(functions), self.READERS)
            found = self.in_threads(functions)
            for i in range(8):
                self.assertEqual(found[8 * i + 6:8 * i + 8], 2 * [b"%d" % i * 60000])
            self.assertModest(m)

    def test_one_attribute_that_is_mostly_hole(self):
        """240 MiB that take 8 KiB of the disk, for twenty readers."""
        path = self.file("sparse.h5")
        with h5py.File(path, "w", libver="latest") as f:
            for i in range(10):
                f.attrs[f"s{i}"] = i
            f.attrs.create("big", numpy.zeros(240 * MIB, "u1"))
        subprocess.run(["fallocate", "-d", path], check=True)
        with Mount(path, options=self.OPTIONS) as m:
            # More than all requests together may take.
            for number in self.in_threads(20 * [lambda: error_of(read_ends, m.at(".h5fs", "attrs", "big"))]):
                self.assertEqual(number, errno.EFBIG)
            self.assertEqual(os.getxattr(m.path, "user.s3"), b"3")
            self.assertModest(m)


class Work(MountCase):
    """Work that a file asks for ends: by itself, by max_work, or when nobody waits for it any more."""
    SECONDS = 20  # of processor time: far more than it should take, and far less than it would without a bound

    def assertQuick(self, *arguments):
        status, out, said, seconds = command(*arguments)
        self.assertLess(seconds, self.SECONDS, (out, said))
        return status, out, said

    def test_many_floats_of_large_exponents(self):
        path = hostile("slow-float-uninterruptible.h5")
        with Mount(path, options="max_work=1") as m:
            begin = time.monotonic()
            self.assertIn(error_of(read_ends, m.at("slow")), (0, errno.EFBIG))
            self.assertIn(error_of(os.getxattr, m.path, "user.slowattr"), (errno.EFBIG, errno.E2BIG, errno.ERANGE))
            self.assertLess(time.monotonic() - begin, 2 * self.SECONDS)
        status, out, said = self.assertQuick("--check", "-o", "max_work=1", path)
        self.assertIn(status, (0, 6), (out, said))

    def test_interrupted(self):
        """The one who waits for a long text is gone at once when killed."""
        with Mount(hostile("slow-float-uninterruptible.h5"), options="max_work=0") as m:
            reader = subprocess.Popen(["cat", m.at("slow")], stdout=subprocess.DEVNULL)
            time.sleep(0.5)
            reader.kill()
            reader.wait(timeout=30)
            self.assertTrue(os.stat(m.path))

    def test_fuzz_finding(self):
        self.assertQuick("--check", hostile("timeout-c1fd4506fc7754cd9c05c7b19822de25fb2d1411"))
        self.assertQuick("--list", hostile("timeout-c1fd4506fc7754cd9c05c7b19822de25fb2d1411"))

    def test_check_of_dimensions_beyond_their_maximum(self):
        status, out, _ = self.assertQuick("--check", hostile("check-hang.h5"))
        self.assertIn(status, (0, 4, 6))
        self.assertIn(b"4 chunks decoded", out)

    def test_check_of_chunks_far_apart(self):
        """Chunks among 2^50 places, in every index that can have so many."""
        path = self.file("far.h5")
        far = 2**50
        with h5py.File(path, "w", libver="latest") as f:
            for name, maxshape in (("earray", (None, 4)), ("rows", (far, None)), ("tree", (None, None))):
                d = f.create_dataset(name, (far, 4), "i4", chunks=(1, 4), maxshape=maxshape, compression="gzip")
                d[3] = 7
                if name == "tree":
                    d[2**31] = 7
        status, out, said = self.assertQuick("--check", path)
        self.assertEqual((status, said), (0, b""), out)
        self.assertIn(b"4 chunks decoded", out)
        self.assertQuick("--list", path)


class Journal(MountCase):
    """A journal that is nearly all hole: 1 GiB that takes 8 KiB of the disk, with parts by the million."""
    MEMORY = 128 * MIB

    @staticmethod
    def hash(data):
        """Of a journal's header: two lookup3 hashes."""
        return struct.pack("<II", lookup3(data), lookup3(data, 0xFFFFFFFF))

    def make(self, path, **counts):
        header = b"h5fs-jnl" + struct.pack("<II", 1, 0) + bytes([7] * 16)
        record = struct.pack("<Q", 1 << 30) + bytes([7] * 16) + struct.pack("<QQ", 1, counts.get("size", 2048))
        record += struct.pack("<IIII", *(counts.get(name, 0) for name in ("patches", "extents", "objects")), 0)
        with open(path + ".h5fs-journal", "wb") as f:
            f.write((header + self.hash(header)).ljust(512, b"\0") + b"h5fs-rec" + bytes(8) + record)
            f.truncate(512 + (1 << 30))

    def test_of_holes(self):
        path = self.file("x.h5")
        with h5py.File(path, "w") as f:
            f["d"] = range(100)
        for counts in ({"patches": 60_000_000}, {"extents": 40_000_000}, {"objects": 130_000_000}, {"patches": 1},
                       {"patches": 60_000_000, "size": 1 << 62}):
            with self.subTest(counts=counts):
                self.make(path, **counts)
                status, out, said, seconds = command("--list", path, memory=self.MEMORY)
                self.assertEqual((status, out.split()[:2]), (0, [b"/", b"/d"]))
                self.assertIn(b"journal", said)
                self.assertLess(seconds, 5)


class Holes(MountCase):
    """What is not stored costs nothing, and is as long as it is."""

    def test_terabytes_of_holes(self):
        path = self.file("sparse.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("text", (2**36,), h5py.string_dtype(), chunks=(2**16,))
            f.create_dataset("img", (2**17, 2**17), "u1", chunks=(1024, 1024)).attrs["CLASS"] = numpy.bytes_("IMAGE")
            f.create_dataset("csv", (2**34,), "f8", chunks=(2**16,))
        os.truncate(path, 2**40)
        with Mount(path, options="max_work=1") as m:
            begin = time.monotonic()
            self.assertEqual(os.stat(m.at("text")).st_size, 2**36)
            self.assertEqual(os.stat(m.at(".h5fs", "csv", "csv.csv")).st_size, len("value\n") + 2 * 2**34)
            with open(m.at(".h5fs", "csv", "csv.csv"), "rb") as f:
                self.assertEqual(f.read(10), b"value\n0\n0\n")
                f.seek(2**35)
                self.assertEqual(f.read(6), b"0\n0\n0\n")
            error_of(os.stat, m.at(".h5fs", "png", "img.png"))
            self.assertEqual(os.stat(m.at("img")).st_blocks, 1)
            self.assertLess(time.monotonic() - begin, 30)

    def test_between_what_is_stored(self):
        """The text is that of a dataset without holes."""
        path, n = self.file("between.h5"), 60000
        stored = [(0, 100), (9000, 9100), (30000, 30500), (59000, n)]
        values, lines = numpy.full(n, 5, "i4"), [b"fill"] * n
        with h5py.File(path, "w") as f:
            numbers = f.create_dataset("numbers", (n,), "i4", chunks=(100,), fillvalue=5)
            wide = f.create_dataset("wide", (n // 4, 4), "i4", chunks=(25, 4), fillvalue=5)
            texts = f.create_dataset("texts", (n,), h5py.string_dtype(), chunks=(100,))
            for begin, end in stored:
                values[begin:end] = numpy.arange(begin, end) * 1001
                lines[begin:end] = [b"%d" % i * (i % 7) for i in range(begin, end)]
                numbers[begin:end] = values[begin:end]
                wide[begin // 4:end // 4] = values[begin:end].reshape(-1, 4)
                texts[begin:end] = lines[begin:end]
        lines = [b"" if line == b"fill" else line for line in lines]
        rows = b"".join(b"%d,%d,%d,%d\n" % tuple(row) for row in values.reshape(-1, 4))
        expected = {(".h5fs", "csv", "numbers.csv"): b"value\n" + b"".join(b"%d\n" % v for v in values),
                    (".h5fs", "csv", "wide.csv"): b"0,1,2,3\n" + rows,
                    ("texts",): b"".join(line + b"\n" for line in lines)}
        with Mount(path) as m:
            for name, content in expected.items():
                self.assertEqual(read(m.at(*name)), content, name)
                with open(m.at(*name), "rb", buffering=0) as f:
                    for at in range(0, len(content), 7919):
                        f.seek(at)
                        self.assertEqual(f.read(50), content[at:at + 50], (name, at))


if __name__ == "__main__":
    main()
