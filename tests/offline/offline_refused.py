#!/usr/bin/python3
"""h5fs --check finds what some version of libhdf5 refuses, or comes to harm over, though h5fs reads it. Each file is built byte by byte, as a
sound one and as one that breaks a single rule. Where the newest libhdf5 is there (contrib/judges) it must agree."""
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import judges
from h5bytes import (ATTRIBUTE, ATTRIBUTE_INFO, DATASPACE, DATATYPE, FILL, GROUP_INFO, LAYOUT, LINK_INFO, NIL,
                     REFERENCE_COUNT, UNDEF, UNLIMITED, File, attribute, fill_value, integer, padded)

H5FS = os.environ.get("H5FS", "src/h5fs")
DAMAGED = 4


def messages(file, *more):
    """Of a dataset of 4 numbers, and what is given."""
    data = file.put(bytes(range(16)))
    return [(DATASPACE, file.dataspace((4,))), (DATATYPE, integer(4)), (FILL, fill_value()),
            (LAYOUT, file.contiguous(data, 16)), *more]


def one_dataset(file, header):
    return file.finish(file.group([file.link(b"d", header)]))


class Refused(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="h5fs-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def check(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as f:
            f.write(content)
        run = subprocess.run([H5FS, "--check", path], capture_output=True, text=True, timeout=60)
        listed = subprocess.run([H5FS, "--list", path], capture_output=True, text=True, timeout=60)
        self.assertEqual((listed.returncode, listed.stderr), (0, ""), name)
        return path, run.returncode, run.stdout + run.stderr

    def newest(self, path):
        """What the newest libhdf5 refuses of the file; None: nobody is there to ask."""
        if judges.bench.newer is None:
            judges.bench.open()
        if not judges.bench.newer:
            print("the newest libhdf5 is not there: contrib/judges make", file=sys.stderr)
            return None
        try:
            found = judges.bench.newer[0].ask(path, True)
        except judges.Died as died:
            return [str(died)]
        return [f"{key}: {value}" for key, value in found.items() if str(value).startswith(judges.judge_walk.REFUSED)]

    def case(self, sound, broken, said, agrees=True):
        """agrees: the newest libhdf5 refuses it at once; else it is another version that does, or only some changes show it."""
        path, status, text = self.check("sound.h5", sound)
        self.assertEqual(status, 0, text)
        self.assertFalse(self.newest(path))
        path, status, text = self.check("broken.h5", broken)
        self.assertEqual(status, DAMAGED, text)
        self.assertRegex(text, said)
        refused = self.newest(path) if agrees else None
        self.assertTrue(refused is None or refused)

    # ---- object headers ----

    def header2(self, *more, **how):
        file = File()
        return one_dataset(file, file.header2(messages(file, *more), **how))

    def test_gap_beside_nil(self):
        self.case(self.header2(gap=3), self.header2((NIL, bytes(9)), gap=3), "/d: .*a gap of 3 bytes in a chunk that has NIL")

    def test_gap_in_a_later_chunk(self):
        def build(*nil):
            file = File()
            first = messages(file)
            return one_dataset(file, file.header2(first[:2], [*first[2:], *nil], gap=2))

        self.case(build(), build((NIL, bytes(9))), "/d: .*a gap of 2 bytes in a chunk that has NIL")

    def test_nil_messages_too_large_for_one(self):
        def build(second):
            return self.header2((NIL, bytes(40_000)), (NIL, bytes(second)), width=2)

        self.case(build(25_531), build(25_532), "/d: .*adjacent NIL messages of 65536 bytes", agrees=False)

    def test_attribute_info_of_another_order(self):
        def build(flags):
            file = File()
            info = bytes([0, flags]) + (b"\0\0" if flags & 1 else b"") + file.offset(UNDEF) + file.offset(UNDEF)
            value = attribute(b"a", integer(1), file.dataspace(()), b"x")
            return one_dataset(file, file.header2(messages(file, (ATTRIBUTE_INFO, info), (ATTRIBUTE, value)), flags=4))

        self.case(build(1), build(0), "/d: .*of the order of its attributes")

    # ---- chunks ----

    def chunks(self, fill, *stored):
        """Of a dataset of 6 numbers, which can grow, in chunks of 4."""
        file = File()
        keys = [struct.pack("<IIQQ", 16, 0, 4 * i, 0) for i in stored] + [struct.pack("<IIQQ", 0, 0, 8, 0)]
        tree = file.btree1(1, keys, [file.put(bytes(16)) for _ in stored], 32)
        return one_dataset(file, file.header2([
            (DATASPACE, file.dataspace((6,), (UNLIMITED,))), (DATATYPE, integer(4)), (FILL, fill),
            (LAYOUT, file.chunked3(tree, (4,), 4))]))

    def test_early_allocation_without_a_chunk(self):
        early, incremental = bytes([3, 0x09]), bytes([3, 0x0b])
        self.case(self.chunks(incremental, 0), self.chunks(early, 0), "/d: .*only 1 are stored, but with early allocation")
        self.case(self.chunks(early, 0, 1), self.chunks(early, 1), "/d: .*only 1 are stored, but with early allocation",
                  agrees=False)

    # ---- global heaps ----

    def heap(self, change=lambda heap: None, rest=None):
        """An attribute of variable-length strings in a collection of 4,096 bytes, or of its objects and `rest` bytes more."""
        file = File()
        at = file.global_heap([b"some", b"words"])
        if rest is not None:
            del file.data[at + 16 + 2 * 24 + rest:]
            struct.pack_into("<Q", file.data, at + 8, 16 + 2 * 24 + rest)
        heap = memoryview(file.data)[at:]
        change(heap)
        heap.release()
        values = file.vlen_element(at, 1, 4) + file.vlen_element(at, 2, 5)
        info = b"\0\0" + file.offset(UNDEF) + file.offset(UNDEF)
        strings = attribute(b"a", file.vlen_string(), file.dataspace((2,)), values)
        return one_dataset(file, file.header2(messages(file, (ATTRIBUTE_INFO, info), (ATTRIBUTE, strings))))

    def test_collection_that_is_too_small(self):
        self.case(self.heap(), self.heap(rest=0), "/d: .*global heap collection: a size of 64 bytes")

    def test_free_space_that_is_not_all_the_rest(self):
        def less(heap):
            struct.pack_into("<Q", heap, 64 + 8, 4096 - 64 - 8)

        self.case(self.heap(), self.heap(less), "/d: .*free space of 4024 bytes, not 4032", agrees=False)

    def test_free_space_of_zeros(self):
        """libhdf5 goes round and round: it is not asked."""
        def zeros(heap):
            heap[64:80] = bytes(16)

        self.case(self.heap(), self.heap(zeros), "/d: .*free space of 0 bytes, not 4032", agrees=False)

    # ---- names of old groups ----

    def free_list(self, head, *fields):
        """A group whose heap has room for two free blocks behind the names; fields: offset in the segment, value."""
        file = File(superblock=0)
        dataset = file.header1(messages(file), references=2)
        root, table = file.old_group([(b"d", dataset, None), (b"f" * 71, dataset, None)])
        heap = table[1]
        segment = struct.unpack_from("<Q", file.data, heap + 24)[0]
        struct.pack_into("<Q", file.data, heap + 16, head)
        for at, value in fields:
            struct.pack_into("<Q", file.data, segment + at, value)
        return file.finish(root, scratch=table)

    def test_free_blocks_of_a_local_heap(self):
        size = 8 + 8 + 72
        sound = self.free_list(1)
        self.case(sound, self.free_list(UNDEF), "/: .*a list of free blocks that leads nowhere")
        self.case(sound, self.free_list(0), "/: .*a free block that is none")
        self.case(sound, self.free_list(size), "/: .*a list of free blocks that leads nowhere")
        # In the middle of the longer name: what h5fs reads of it is another name, and no matter here.
        inside = self.free_list(32, (32, 1), (40, 16))
        self.case(inside, self.free_list(32, (32, 0), (40, 16)), "/: .*a free block that is none")
        self.case(inside, self.free_list(32, (32, 1), (40, 64)), "/: .*a free block that is none")

    # ---- headers of version 1 ----

    def header1(self, change=lambda data, at: None, *more):
        file = File(superblock=0)
        at = file.header1(messages(file, *more))
        change(file.data, at)
        root, table = file.old_group([(b"d", at, None)])
        return file.finish(root, scratch=table)

    def test_version_1_counts_too_few(self):
        def fewer(data, at):
            struct.pack_into("<H", data, at + 2, struct.unpack_from("<H", data, at + 2)[0] - 1)

        self.case(self.header1(), self.header1(fewer), "/d: .*4 messages in the first chunk, but 3 in all")

    def test_version_1_with_a_reference_count(self):
        self.case(self.header1(), self.header1(lambda data, at: None, (REFERENCE_COUNT, padded(b"\0\1\0\0\0"))),
                  "/d: .*reference count message", agrees=False)


if __name__ == "__main__":
    from mountlib import main
    main()
