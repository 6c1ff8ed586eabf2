#!/usr/bin/python3
"""Writes h5ex_d_chunk.h5, a public example file of the HDF Group, byte for byte from what its structures mean.

    make_worked_example.py FILE

One dataset DS1 of 6 x 8 int32 in four chunks of 4 x 4; superblock 0, symbol table, version 1 headers and B-trees."""
import struct
import sys

UNDEF = 2 ** 64 - 1

# Where everything lies.
ROOT_HEADER, ROOT_BTREE, ROOT_HEAP, HEAP_DATA = 0x60, 0x88, 0x2a8, 0x2c8
DATASET_HEADER, SYMBOL_NODE, CHUNK_BTREE, CHUNKS, END = 0x320, 0x430, 0x578, 0xfb0, 0x10b0

LEAF_K, INTERNAL_K, CHUNK_K = 4, 16, 32  # the last one is the library's default, which superblock 0 does not store
ROWS, COLUMNS, CHUNK = 6, 8, 4
VALUES = [[0, 1, 0, 0, 1, 0, 0, 1],
          [1, 1, 0, 1, 1, 0, 1, 1],
          [0, 0, 0, 0, 0, 0, 0, 0]] * 2


def symbol_table_entry(name_offset, header, cache_type=0, scratch=b""):
    return struct.pack("<QQII16s", name_offset, header, cache_type, 0, scratch)


def superblock():
    return b"".join([
        b"\x89HDF\r\n\x1a\n",
        bytes([0, 0, 0, 0, 0]),  # versions: superblock, free space, root entry, reserved, shared header messages
        bytes([8, 8, 0]),  # sizes of offsets and of lengths, reserved
        struct.pack("<HHI", LEAF_K, INTERNAL_K, 0),  # ..., consistency flags
        struct.pack("<QQQQ", 0, UNDEF, END, UNDEF),  # base, free space, end of file, driver information
        symbol_table_entry(0, ROOT_HEADER, 1, struct.pack("<QQ", ROOT_BTREE, ROOT_HEAP)),
    ])


def message(kind, flags, body):
    return struct.pack("<HHB3x", kind, len(body), flags) + body


def object_header(messages):
    body = b"".join(messages)
    return struct.pack("<BxHII4x", 1, len(messages), 1, len(body)) + body


def root_header():
    return object_header([message(0x11, 0, struct.pack("<QQ", ROOT_BTREE, ROOT_HEAP))])


def group_btree():
    used = struct.pack("<QQQ", 0, SYMBOL_NODE, 8)  # key: the empty name; child; key: offset of "DS1" in the heap
    node = struct.pack("<4sBBHQQ", b"TREE", 0, 0, 1, UNDEF, UNDEF) + used
    return node.ljust(24 + (2 * INTERNAL_K + 1) * 8 + 2 * INTERNAL_K * 8, b"\0")


def local_heap():
    data = b"\0" * 8 + b"DS1".ljust(8, b"\0")  # offset 0 is the empty name, 8 the dataset's
    free = struct.pack("<QQ", 1, 88 - len(data))  # the last free block, of that size
    return struct.pack("<4sB3xQQQ", b"HEAP", 0, 88, len(data), HEAP_DATA) + (data + free).ljust(88, b"\0")


def dataset_header():
    return object_header([
        message(0x05, 1, bytes([2, 3, 2, 1]) + struct.pack("<I", 0)),  # fill value: incremental, if set, defined, default
        message(0x03, 1, struct.pack("<BBBBIHH4x", 0x10, 0x08, 0, 0, 4, 0, 32)),  # int32, signed, little-endian
        message(0x01, 0, struct.pack("<BBB5xQQ", 1, 2, 0, ROWS, COLUMNS)),
        message(0x08, 1, struct.pack("<BBBQIII", 3, 2, 3, CHUNK_BTREE, CHUNK, CHUNK, 4).ljust(24, b"\0")),
        message(0x12, 0, struct.pack("<B3xI", 1, 0x4ba22c6c)),  # modified 2010-03-18
        message(0x00, 0, bytes(128)),
    ])


def symbol_table_node():
    node = struct.pack("<4sBxH", b"SNOD", 1, 1) + symbol_table_entry(8, DATASET_HEADER)
    return node.ljust(8 + 2 * LEAF_K * 40, b"\0")


def chunk_offsets():
    return [(row, column) for row in range(0, ROWS, CHUNK) for column in range(0, COLUMNS, CHUNK)]


def chunk_btree():
    node = struct.pack("<4sBBHQQ", b"TREE", 1, 0, len(chunk_offsets()), UNDEF, UNDEF)
    size = CHUNK * CHUNK * 4
    for i, (row, column) in enumerate(chunk_offsets()):
        node += struct.pack("<IIQQQ", size, 0, row, column, 0) + struct.pack("<Q", CHUNKS + i * size)
    node += struct.pack("<IIQQQ", 0, 0, CHUNK, CHUNK, 4)  # the key behind the last chunk
    return node.ljust(24 + (2 * CHUNK_K + 1) * 32 + 2 * CHUNK_K * 8, b"\0")


def chunks():
    """Edge chunks are stored whole: rows beyond the dataset hold zeros."""
    rows = VALUES + [[0] * COLUMNS] * (2 * CHUNK - ROWS)
    return b"".join(struct.pack("<4i", *rows[row + i][column:column + CHUNK])
                    for row, column in chunk_offsets() for i in range(CHUNK))


def worked_example():
    file = b""
    for address, part in ((0, superblock()), (ROOT_HEADER, root_header()), (ROOT_BTREE, group_btree()),
                          (ROOT_HEAP, local_heap()), (DATASET_HEADER, dataset_header()),
                          (SYMBOL_NODE, symbol_table_node()), (CHUNK_BTREE, chunk_btree()), (CHUNKS, chunks())):
        if len(file) != address:
            raise AssertionError(f"the part for address {address:#x} would lie at {len(file):#x}")
        file += part
    return file


if __name__ == "__main__":
    with open(sys.argv[1], "wb") as out:
        out.write(worked_example())
