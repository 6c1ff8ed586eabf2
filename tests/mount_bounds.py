#!/usr/bin/python3
"""Small files that ask for much memory, much time, or the attention of a terminal: what they get is bounded."""
import concurrent.futures
import errno
import os
import re
import resource
import struct
import subprocess
import time
import unittest

import h5py
import numpy

from mountlib import H5FS, Mount, MountCase, main, patch, read

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


def command(*arguments, seconds=60):
    """Exit status, standard output and error of h5fs, the seconds of processor time and the most memory it took."""
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.Popen([H5FS, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, said = run.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        run.kill()
        out, said = run.communicate()
        raise AssertionError(f"h5fs {' '.join(arguments)} took over {seconds} s: {said!r}") from None
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return run.returncode, out, said, end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime


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
    CACHE, INDEX_CACHE = 96 * MIB, 32 * MIB
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
                f.create_dataset(f"attribute{i}", data=0).attrs["big"] = numpy.zeros(self.ELEMENTS, f"S{16 * MIB // self.ELEMENTS}")
                f.create_dataset(f"chunk{i}", (24 * MIB,), "u1", chunks=(24 * MIB,), compression="gzip", fillvalue=i + 1)[0] = 0
                f.create_dataset(f"text{i}", (2,), h5py.string_dtype())[:] = ["x" * (20 * MIB), str(i)]
        return path

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
            self.assertEqual(found[8 * i + 2], (24 * MIB, bytes([i + 1])))
            self.assertEqual(found[8 * i + 4], (20 * MIB + 3, b"\n"))
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


if __name__ == "__main__":
    main()
