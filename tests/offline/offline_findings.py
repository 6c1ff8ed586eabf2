#!/usr/bin/python3
"""h5fs --check: findings that no checksum leads to, what is too much to look at, and which space counts as used. offline_check.py changes bytes
of all structures."""
import os
import re
import shutil
import struct
import subprocess
import tempfile
import unittest
import zlib

import h5py
import numpy

from mountlib import lookup3

H5FS = os.environ.get("H5FS", "src/h5fs")
SOUND, DAMAGED, UNSUPPORTED = 0, 4, 6
TEXT = h5py.string_dtype()
PIECE = 1 << 18  # bytes that are searched for values at once


class Findings(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="h5fs-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "x.h5")

    def file(self, libver="earliest", **how):
        return h5py.File(self.path, "w", libver=libver, **how)

    def content(self):
        with open(self.path, "rb") as f:
            return bytearray(f.read())

    def check(self, content=None, status=SOUND):
        """What is said of the file, or of it with that content."""
        if content is not None:
            with open(self.path, "wb") as f:
                f.write(content)
        run = subprocess.run([H5FS, "--check", self.path], capture_output=True, text=True, errors="replace", timeout=60)
        self.assertEqual((run.returncode, run.stderr), (status, ""), run.stdout)
        return run.stdout

    def unused(self, content=None):
        return int(re.search(r"; nothing refers to (\d+) bytes", self.check(content))[1])

    def test_each_finding_is_told_once(self):
        with self.file() as f:
            f["group/data"] = [1]
        content = self.content()
        places = [at.start() for at in re.finditer(b"HEAP|SNOD|TREE", content)]
        self.assertEqual(len(places), 6)
        for place in places:
            damaged = bytearray(content)
            damaged[place] ^= 0xFF
            said = self.check(damaged, DAMAGED).splitlines()
            self.assertEqual(len(said), 2, said)
            self.assertRegex(said[0], "^/(group)?: ")
            self.assertIn(": 1 damaged;", said[1])

    # ---- counts of values ----

    def test_values_that_several_refer_to(self):
        """A count of 0 says nothing, as libhdf5 writes it; one that is too low is damage."""
        with self.file() as f:
            f["words"] = numpy.array(["first", "other"], TEXT)
            at = f["words"].id.get_offset()
        content = self.content()
        place = content.index(b"first") - 16  # index, count, reserved, size
        index, *rest = struct.unpack_from("<HHIQ", content, place)
        self.assertEqual(rest, [0, 0, 5])
        for uses in 1, 2:
            if uses == 2:
                content[at + 16:at + 32] = content[at:at + 16]
            for count in range(4):
                struct.pack_into("<H", content, place + 2, count)
                with self.subTest(uses=uses, count=count):
                    said = self.check(content, DAMAGED if 0 < count < uses else SOUND)
                    told = f"global heap: object {index} counts {count} values that refer to it, but there "
                    self.assertEqual(told + "are more" in said, 0 < count < uses)
                    self.assertEqual(told + "is one" in said, count > 1 == uses)
                    self.assertEqual("1 counts that are too high" in said, count > 1 == uses)
                    self.assertEqual("is not certain" in said, 0 < count < uses)

    def test_a_fill_value(self):
        """What it refers to is counted once, and damage in it told once, however many parts of the dataset are not stored; and it does not hide
        damage in other values."""
        with self.file() as f:
            d = f.create_dataset("words", (12,), TEXT, chunks=(2,), fillvalue="nothing")
            d[2:4] = "pair"
            d[6:8] = "more"
            offset = d.id.get_chunk_info(1).byte_offset
        content = self.content()
        heap, place = content.index(b"GCOL"), content.index(b"nothing") - 16
        index, *rest = struct.unpack_from("<HHIQ", content, place)
        self.assertEqual(rest, [0, 0, 7])
        struct.pack_into("<H", content, place + 2, 1)
        self.assertIn(": no damage found; nothing", self.check(content))
        value = struct.pack("<IQ", 7, heap)
        at = content.index(value + struct.pack("<I", index)) + len(value)
        struct.pack_into("<I", content, at, 77)
        said = self.check(content, DAMAGED).splitlines()
        self.assertEqual(len(said), 2, said)
        self.assertRegex(said[0], "^/words: global heap collection: no object 77 at address")
        self.assertIn(": 1 damaged;", said[1])
        struct.pack_into("<I", content, offset + 12, 78)
        said = self.check(content, DAMAGED).splitlines()
        self.assertEqual(len(said), 3, said)
        self.assertRegex(said[1], "^/words: global heap collection: no object 78 at address")

    def test_lists_that_are_not_there(self):
        """Nobody knows which texts they have; the others are verified all the same."""
        with self.file() as f:
            d = f.create_dataset("lists", (3,), h5py.vlen_dtype(TEXT))
            for i in range(3):
                d[i] = numpy.array(["a", "text"], TEXT)
            at = d.id.get_offset()
        content = self.content()
        self.check(content)
        for i in 0, 2:
            struct.pack_into("<I", content, at + 16 * i + 12, 77 + i)
        said = self.check(content, DAMAGED).splitlines()
        self.assertEqual(len(said), 3, said)
        for i in 0, 1:
            self.assertRegex(said[i], f"^/lists: global heap collection: no object {77 + 2 * i} at address")
        self.assertIn(": 2 damaged; how many bytes nothing refers to is not certain", said[2])

    def test_text_behind_much_text(self):
        """The texts of two values are longer together than the longest text that is looked at; each of them is not."""
        with self.file() as f:
            d = f.create_dataset("pairs", (2,), numpy.dtype([("long", TEXT), ("short", TEXT)]))
            for i in range(2):
                d[i] = ("\1" * (7 << 20), "text")
            at = d.id.get_offset()
        content = self.content()
        self.check(content)
        struct.pack_into("<I", content, at + 32 + 16 + 12, 77)
        self.assertRegex(self.check(content, DAMAGED), "^/pairs: global heap collection: no object 77 at address")

    # ---- objects ----

    def test_an_index_that_does_not_find_an_attribute(self):
        with self.file("latest") as f:
            for i in range(20):
                f.attrs[f"attribute {i}"] = i
        content = self.content()
        leaf = content.index(b"BTLF")
        # A record: ID of 8 bytes, flags, order of creation, hash; the node's checksum is behind 20 of them.
        end = leaf + 6 + 20 * 17
        self.assertEqual(struct.unpack_from("<I", content, end)[0], lookup3(bytes(content[leaf:end])))
        content[leaf + 6 + 13] ^= 1
        struct.pack_into("<I", content, end, lookup3(bytes(content[leaf:end])))
        said = self.check(content, DAMAGED)
        self.assertRegex(said, r"^/: attributes: the index does not find the attribute attribute \d+ at address \d+\n")

    def test_committed_datatypes(self):
        """One with an unknown class; and what has no datatype is no object."""
        with self.file() as f:
            f["type"] = numpy.dtype("<f4")
            address = h5py.h5o.get_info(f["type"].id).addr
        content = self.content()
        message = address + 16  # type, size, flags, body
        self.assertEqual((content[message], content[message + 8]), (3, 0x11))
        content[message + 8] = 0x1f
        self.assertRegex(self.check(content, DAMAGED), f"^/type: datatype message: unknown class at address {message + 16}\n")
        content[message] = 0
        self.assertIn(f"/type: object header: of no known kind of object at address {address}\n", self.check(content, DAMAGED))

    # ---- what is too much ----

    def test_a_text_that_is_too_long(self):
        """What comes behind it is verified all the same."""
        with self.file() as f:
            f["words"] = numpy.array(["\x01" * ((1 << 26) // 6 + 1), "next", "last"], TEXT)
            at = f["words"].id.get_offset()
        content = self.content()
        self.check()
        struct.pack_into("<I", content, at + 32 + 12, 77)  # the index of the last one
        self.assertRegex(self.check(content, DAMAGED), "^/words: global heap collection: no object 77 at address")

    def test_elements_that_a_filter_makes_of_nothing(self):
        """Of a few bytes, so many elements are not all looked at."""
        with self.file("latest") as f:
            for name, elements in ("less", 1 << 20), ("more", (1 << 20) + 1):
                dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                dcpl.set_chunk((elements,))
                dcpl.set_deflate(9)
                dcpl.set_deflate(9)
                d = h5py.h5d.create(f.id, name.encode(), h5py.h5t.py_create(TEXT, logical=True), h5py.h5s.create_simple((elements,)), dcpl)
                d.write_direct_chunk((0,), zlib.compress(zlib.compress(bytes(16 * elements), 9), 9))
        said = self.check(status=UNSUPPORTED)
        self.assertRegex(said, rf"^/more: values from element {1 << 20} on at address \d+\n[^\n]*\n$")

    # ---- space ----

    def test_what_lies_behind_the_stated_end(self):
        """As while a program writes the file: it is no damage, and nobody knows what is unused."""
        with self.file() as f:
            f["data"] = numpy.arange(1000)
            end = f["data"].id.get_offset() + 8000
        content = self.content()
        self.assertEqual(struct.unpack_from("<Q", content, 40), (end,))
        self.assertEqual(self.unused(), self.unused(content + bytes(100)))
        for less in 1, 8000, 9000:
            struct.pack_into("<Q", content, 40, end - less)
            self.assertIn("no damage found; how many bytes nothing refers to is not certain", self.check(content), less)

    def test_space_of_the_file_itself(self):
        """A dataset that lies in the extension of the superblock."""
        with self.file("latest", fs_strategy="page", fs_page_size=4096) as f:
            d = f.create_dataset("data", data=numpy.arange(4, dtype="u1"))
            offset, address = d.id.get_offset(), h5py.h5o.get_info(d.id).addr
        content = self.content()
        self.check()
        extension, = struct.unpack_from("<Q", content, 20)
        place = content.index(struct.pack("<Q", offset), address)
        struct.pack_into("<Q", content, place, extension + 1)
        self.fix_header(content, address)
        self.assertIn(f"(space): space of the object at {address} is also that of the file's own structures at address {extension + 1}\n",
                      self.check(content, DAMAGED))

    def fix_header(self, content, header):
        """Gives an object header of version 2 its checksum."""
        flags = content[header + 5]
        at = header + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
        width = 1 << (flags & 3)
        end = at + width + int.from_bytes(content[at:at + width], "little")
        struct.pack_into("<I", content, end, lookup3(bytes(content[header:end])))

    def make_unused(self, size):
        """A dataset of that size is removed. Returns where it was, and how many unused bytes come before it."""
        with self.file() as f:
            # Nobody knows all references of elements that are too many to look at.
            f.create_dataset("endless", (1 << 61,), TEXT, chunks=(10,), maxshape=(None,))
            f["kept"] = numpy.zeros(1000, "u1")
            f["gone"] = numpy.zeros(size, "u1")
            place, before = f["gone"].id.get_offset(), f["kept"].id.get_offset() + 1000
            f["behind"] = numpy.zeros(1000, "u1")
            del f["gone"]
        return place, place - before

    def test_what_looks_like_values(self):
        """Bytes that begin as a collection does, of which nobody knows the size, count as used up to the next use; wherever the search
        reads on."""
        begin, gap = self.make_unused(2 * PIECE)
        # The last part that is searched has no more than a signature.
        size = 2 * (PIECE - 3) + 4 - gap
        self.assertEqual(self.make_unused(size), (begin, gap))
        content, unused, border = self.content(), self.unused(), PIECE - gap
        for at in (0, *range(border - 5, border + 2), size - 5, size - 4):
            with self.subTest(at):
                content[begin + at:begin + at + 4] = b"GCOL"
                self.assertEqual(unused - self.unused(content), size - at)
                content[begin + at:begin + at + 4] = bytes(4)


if __name__ == "__main__":
    unittest.main()
