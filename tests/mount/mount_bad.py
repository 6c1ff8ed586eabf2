#!/usr/bin/python3
"""Files that ask for more than a mount gives: an error for what does so, no harm to the rest, memory within its bound."""
import bz2
import errno
import os
import re
import struct
import threading
import zlib

import h5py
import numpy

from mountlib import H5FS, Mount, MountCase, main, read, refusal

try:
    import zstandard
except ImportError:
    zstandard = None

MIB = 1 << 20
MEMORY_MAX = 1 << 30  # of the daemon, whatever is mounted with the default options
FILTERS = {"deflate": 1, "shuffle": 2, "fletcher32": 3, "nbit": 5, "scaleoffset": 6, "bzip2": 307, "lzf": 32000, "blosc": 32001,
           "lz4": 32004, "zstd": 32015}
with open(H5FS, "rb") as binary:
    SANITIZED = b"__asan_init" in binary.read()  # its memory is another one


class BadCase(MountCase):
    def assertModest(self, m):
        """The most memory that the daemon ever had."""
        with open(f"/proc/{m.daemon}/status") as f:
            peak = int(re.search(r"VmHWM:\s+(\d+)", f.read())[1]) << 10
        if not SANITIZED:
            self.assertLess(peak, MEMORY_MAX)

    def assertSaidOnce(self, m, what):
        self.assertEqual(len(re.findall(what, m.said())), 1, m.said())

    def chunked(self, group, name, shape, chunk, filters, stored, dtype="u1", mask=0):
        """A dataset of these filters, (number, values), each of whose chunks is the same stored bytes."""
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk(chunk)
        for number, values in filters:
            # Optional, so that libhdf5 needs none of them; it refuses its own without their parameters.
            plist.set_filter(number, h5py.h5z.FLAG_OPTIONAL, values)
        space = h5py.h5s.create_simple(shape)
        dataset = h5py.h5d.create(group.id, name.encode(), h5py.h5t.py_create(numpy.dtype(dtype)), space, plist)
        if stored is not None:
            for at in range(0, shape[0], chunk[0]):
                dataset.write_direct_chunk((at,) + (0,) * (len(shape) - 1), stored, mask)
        return dataset


class MaxChunk(BadCase):
    def setUp(self):
        super().setUp()
        self.path = self.file("chunks.h5")
        with h5py.File(self.path, "w") as f:
            for name, size in (("large", MIB), ("small", MIB // 2)):
                f.create_dataset(name, data=numpy.arange(size, dtype="u1"), chunks=(size,), compression="gzip", shuffle=True)
            f.create_dataset("plain", data=numpy.arange(2 * MIB, dtype="u1"), chunks=(2 * MIB,))
            self.expected = {name: f[name][()].tobytes() for name in f}

    def test_larger_chunks_are_refused(self):
        with Mount(self.path, "-f", options="max_chunk=512K") as m:
            self.assertErrno(errno.EFBIG, read, m.at("large"))
            self.assertRegex(m.said(), r"(?s)1048576 bytes.*max_chunk")
            self.assertEqual(read(m.at("small")), self.expected["small"])
            # What is read where it lies is not decoded.
            self.assertEqual(read(m.at("plain")), self.expected["plain"])
            self.assertEqual(os.stat(m.at("large")).st_size, MIB)

    def test_one_line_for_one_request(self):
        with Mount(self.path, "-f", options="max_chunk=512K") as m:
            fd = m.open("large", os.O_RDONLY | os.O_DIRECT)
            self.assertErrno(errno.EFBIG, os.pread, fd, 4096, 0)
            os.close(fd)
            self.assertSaidOnce(m, "max_chunk")

    def test_at_the_limit(self):
        for option in ("max_chunk=1M", "max_chunk=1048576", "max_chunk=1G", "cache=0", None):
            with self.subTest(option=option), Mount(self.path, options=option) as m:
                for name, expected in self.expected.items():
                    self.assertEqual(read(m.at(name)), expected)

    def test_writing(self):
        with Mount(self.path, options="rw,max_chunk=512K") as m:
            self.assertErrno(errno.EFBIG, os.open, m.at("large"), os.O_WRONLY)
            with open(m.at("small"), "r+b") as f:
                f.write(b"new")
        with h5py.File(self.path) as f:
            self.assertEqual(f["small"][:4].tobytes(), b"new\3")
            self.assertEqual(f["large"][()].tobytes(), self.expected["large"])

    def test_wrong_values(self):
        for value in ("", "x", "0", "-1", "2G", "1025M", "1T", "99999999999999999999"):
            with self.subTest(value=value):
                status, said = refusal(self.path, options=f"max_chunk={value}")
                self.assertEqual(status, 2)
                self.assertIn("max_chunk", said)


class Filters(BadCase):
    def test_chains(self):
        """As many filters as the format numbers, and one more."""
        path = self.file("chains.h5")
        data = bytes(range(256)) * 16
        stored = data
        for i in range(32):
            stored = zlib.compress(stored, 1)
        with h5py.File(path, "w") as f:
            self.chunked(f, "good", (4096,), (4096,), [(FILTERS["deflate"], (1,))] * 32, stored)
            self.chunked(f, "bad", (4096,), (4096,), [(FILTERS["deflate"], (1,))] * 32, stored)
            at = h5py.h5o.get_info(f["bad"].id).addr
        with open(path, "r+b") as f:
            content = f.read()
            place = content.index(b"\1\x20\0\0\0\0\0\0\1\0", at)  # a pipeline message of version 1 with 32 filters
            f.seek(place + 1)
            f.write(b"\x21")
        with Mount(path) as m:
            self.assertEqual(read(m.at("good")), data)
            self.assertErrno(errno.EUCLEAN, read, m.at("bad"))

    def test_long_chains_of_large_chunks(self):
        """Each filter of a chain has all its bytes to go through: so many are refused of a chunk near the limit."""
        path = self.file("chains.h5")
        with h5py.File(path, "w") as f:
            for name, count in (("few", 8), ("many", 32)):
                self.chunked(f, name, (MIB,), (MIB,), [(FILTERS["shuffle"], (4,))] * count, bytes(MIB))
        with Mount(path, options="max_chunk=1M") as m:
            self.assertEqual(read(m.at("few")), bytes(MIB))
            self.assertErrno(errno.EFBIG, read, m.at("many"))


def blosc_stream(size):
    """A header of zeros that are stored run by run: as c-blosc makes them of one byte that is repeated."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((size,))
    plist.set_filter(FILTERS["blosc"], h5py.h5z.FLAG_MANDATORY, (0, 0, 1, size, 9, 0, 1))
    with h5py.File("blosc", "w", driver="core", backing_store=False, rdcc_nbytes=0) as f:
        space = h5py.h5s.create_simple((size,))
        dataset = h5py.h5d.create(f.id, b"d", h5py.h5t.NATIVE_UINT8, space, plist)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, numpy.zeros(size, "u1"))
        return dataset.read_direct_chunk((0,))[1]


def lz4_run(n):
    """An LZ4 block of n zeros: one literal, then a match that overlaps itself, then five literals."""
    match = n - 6 - 4
    return b"\x1f\0\1\0" + b"\xff" * ((match - 15) // 255) + bytes([(match - 15) % 255]) + b"\x50" + bytes(5)


def bombs(size):
    """Name, filters, stored bytes: of so many zeros."""
    yield "deflate", [(1, (9,))], zlib.compress(bytes(size), 9)
    yield "twice", [(1, (9,)), (1, (9,))], zlib.compress(zlib.compress(bytes(size), 9), 9)
    yield "shuffled", [(2, (4,)), (1, (9,))], zlib.compress(bytes(size), 9)
    yield "bzip2", [(307, (9,))], bz2.compress(bytes(size))
    yield "lz4", [(32004, ())], struct.pack(">QI", size, size) + (lambda b: struct.pack(">I", len(b)) + b)(lz4_run(size))
    yield "scaleoffset", None, struct.pack("<IB", 0, 8).ljust(21, b"\0")
    if zstandard:
        yield "zstd", [(32015, (3,))], zstandard.ZstdCompressor().compress(bytes(size))
    if h5py.h5z.filter_avail(FILTERS["blosc"]):
        yield "blosc", [(32001, (0, 0, 1, size, 9, 0, 1))], blosc_stream(size)


class Bombs(BadCase):
    SIZE = (16 if SANITIZED else 128) * MIB  # of a chunk, a few of which fit into the memory that there may be

    def test_all_at_once(self):
        """A few KiB become chunks of a size that is allowed, too many to be there at once."""
        path = self.file("bombs.h5")
        names = []
        with h5py.File(path, "w", libver="latest") as f:
            for name, filters, stored in bombs(self.SIZE):
                if filters:
                    self.chunked(f, name, (2 * self.SIZE,), (self.SIZE,), filters, stored)
                else:
                    f.create_dataset(name, (2 * self.SIZE,), "u1", chunks=(self.SIZE,), scaleoffset=True)
                    for at in 0, self.SIZE:
                        f[name].id.write_direct_chunk((at,), stored)
                names.append(name)
        self.assertLess(os.path.getsize(path), 8 * MIB)
        wrong = []

        def look(name):
            with open(m.at(name), "rb", buffering=0) as f:
                for at in self.SIZE // 2, self.SIZE + self.SIZE // 2, 0:
                    if any(os.pread(f.fileno(), 4096, at)):
                        wrong.append(name)

        with Mount(path) as m:
            threads = [threading.Thread(target=look, args=(name,)) for name in names]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            self.assertEqual(wrong, [])
            self.assertModest(m)

    def test_more_than_the_chunk(self):
        """A stream that goes on behind the chunk's last byte: the rest is ignored, up to what may be decoded."""
        path = self.file("long.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f["good"] = numpy.arange(10)
            for name, filters, stored in bombs(MIB):
                if filters:
                    self.chunked(f, name, (1024,), (1024,), filters, stored)
            names = [name for name in f if name != "good"]
        for options, readable in ((None, True), ("max_chunk=512K", False)):
            with Mount(path, options=options) as m:
                for name in names:
                    with self.subTest(name=name, options=options):
                        if readable:
                            self.assertEqual(read(m.at(name)), bytes(1024))
                        else:
                            self.assertErrno(errno.EUCLEAN, read, m.at(name))
                self.assertEqual(len(read(m.at("good"))), 80)

    def test_four_gigabytes_in_a_kilobyte(self):
        path = self.file("huge.h5")
        with h5py.File(path, "w", libver="latest") as f:
            chunk = (1 << 32) - 1
            for name, filters in (("deflate", [(1, (9,))]), ("shuffle", [(2, (4,))]), ("none", [])):
                self.chunked(f, name, (chunk,), (chunk,), filters, None if not filters else b"x" * 100)
        with Mount(path) as m:
            for name in "deflate", "shuffle":
                fd = m.open(name, os.O_RDONLY)
                self.assertErrno(errno.EFBIG, os.pread, fd, 10, 1 << 31)
            fd = m.open("none", os.O_RDONLY)
            self.assertEqual(os.pread(fd, 10, 1 << 31), bytes(10))
            self.assertModest(m)


class Work(BadCase):
    """What a few bytes of a file can ask for."""

    def test_lines_without_end(self):
        path = self.file("endless.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("some", (1 << 16,), h5py.string_dtype(), chunks=(1 << 12,))
            # Its elements are in another file, which is all hole.
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_external(b"hole", 0, 16 << 34)
            text = h5py.h5t.py_create(h5py.string_dtype(), logical=True)
            h5py.h5d.create(f.id, b"endless", text, h5py.h5s.create_simple((1 << 34,)), plist)
        with open(self.file("hole"), "wb") as f:
            f.truncate(16 << 34)
        with Mount(path, "-f", options="max_work=1") as m:
            # Why a size is not known is told when the file is read, which an empty one is not: its name must not fail.
            self.assertEqual(os.stat(m.at("endless")).st_size, 1)
            for _ in range(20):  # of a failure that is remembered
                self.assertErrno(errno.EFBIG, read, m.at("endless"))
            self.assertIn("max_work", m.said())
            self.assertEqual(read(m.at("some")), b"\n" * (1 << 16))
            self.assertModest(m)
        with Mount(path, options="max_work=0") as m:
            self.assertEqual(read(m.at("some")), b"\n" * (1 << 16))

    def test_writing_has_no_bound(self):
        """What a user writes is work as well, and is done: here a chunk for each byte."""
        path = self.file("chunks.h5")
        with h5py.File(path, "w", libver="v110") as f:
            f.create_dataset("d", (0,), "u1", maxshape=(None,), chunks=(1,))
        data = os.urandom((1 << 18) if SANITIZED else (1 << 19))
        with Mount(path, options="rw,max_work=1") as m:
            fd = m.open("d", os.O_WRONLY | os.O_APPEND)
            self.assertEqual(os.write(fd, data), len(data))
            os.close(fd)
            self.assertEqual(read(m.at("d")), data)

    def test_one_value_many_times(self):
        """A long sequence that is stored once, and that many elements refer to; each of these is a line."""
        path = self.file("same.h5")
        with h5py.File(path, "w") as f:
            d = f.create_dataset("d", (20_000,), h5py.vlen_dtype("u1"), chunks=(20_000,))
            d[0] = numpy.full(1 << 20, 200, "u1")
            element = f["d"].id.read_direct_chunk((0,))[1][:16]
            d.id.write_direct_chunk((0,), element * 20_000)
            f["other"] = 1
        with Mount(path, options="max_work=1") as m:
            self.assertErrno(errno.EFBIG, read, m.at("d"))
            self.assertEqual(len(read(m.at("other"))), 8)
            self.assertModest(m)

    def test_sequences_of_sequences(self):
        """Each refers to an object that has ten of the next kind, and is the same one: 10^20 numbers."""
        path = self.file("nested.h5")
        with h5py.File(path, "w") as f:
            kind = h5py.h5t.STD_U8LE
            for _ in range(20):
                kind = h5py.h5t.vlen_create(kind)
            space = h5py.h5s.create_simple((3,))
            h5py.h5d.create(f.id, b"d", kind, space)
            f["heap"] = numpy.array(["x" * 160], dtype=object)
            offset = f["heap"].id.get_offset()
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            nested = h5py.h5d.create(f.id, b"nested", kind, space, plist).get_offset()
            f["other"] = 1
        content = bytearray(read(path))
        _, collection, index = struct.unpack_from("<IQI", content, offset)
        element = struct.pack("<IQI", 10, collection, index)
        text = content.index(b"x" * 160)
        content[text:text + 160] = element * 10
        content[nested:nested + 48] = element * 3
        with open(path, "wb") as f:
            f.write(content)
        with Mount(path, "-f", options="max_work=1") as m:
            self.assertErrno(errno.EFBIG, read, m.at("nested"))
            self.assertEqual(len(read(m.at("other"))), 8)
            self.assertModest(m)

    def test_huge_elements(self):
        """An element of 4 GiB as text, and an attribute's text."""
        path = self.file("elements.h5")
        with h5py.File(path, "w", libver="latest") as f:
            many = numpy.dtype([("s", h5py.string_dtype()), ("a", "V1000000000")])
            f.create_dataset("d", (2,), many, chunks=(1,))
            f.create_dataset("fill", (3, 1 << 30, 1 << 20), h5py.vlen_dtype("<i4"), chunks=(1, 1 << 10, 1))
            f["other"] = 1
        with Mount(path, options="max_work=1") as m:
            self.assertErrno(errno.EFBIG, read, m.at("d"))
            self.assertEqual(os.stat(m.at("fill")).st_size, 3 * len("[]\n") << 50)
            self.assertEqual(len(read(m.at("other"))), 8)
            self.assertModest(m)

    def test_wrong_values(self):
        for value in "", "x", "-1", "1.5", "65536":
            with self.subTest(value=value):
                self.assertEqual(refusal(self.path(), options=f"max_work={value}")[0], 2)

    def path(self):
        path = self.file("any.h5")
        with h5py.File(path, "w"):
            pass
        return path


if __name__ == "__main__":
    main()
