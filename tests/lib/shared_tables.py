"""Files that share messages of object headers, for tests that change them; and what the indexes of shared messages in them say."""
import ctypes

import h5py
import numpy

from libhdf5 import call, hid

DATASPACE, DATATYPE, FILL, PIPELINE, ATTRIBUTE = (1 << n for n in (1, 3, 5, 11, 12))
FILES = {  # the types of messages in each index; most messages of a list, least of a B-tree
    "one list": ([DATASPACE | DATATYPE | FILL | PIPELINE | ATTRIBUTE], 50, 40),
    "several lists": ([DATATYPE, DATASPACE | FILL | PIPELINE, ATTRIBUTE], 50, 40),
    "attributes alone": ([ATTRIBUTE], 50, 40),
    "parts of attributes": ([DATATYPE | DATASPACE], 50, 40),
    "B-trees": ([DATATYPE | ATTRIBUTE, DATASPACE | FILL | PIPELINE], 0, 0),
    "a B-tree of several nodes": ([DATASPACE | DATATYPE | FILL | PIPELINE | ATTRIBUTE], 0, 0),
}


def create(path, indexes, list_max, btree_min, sizes=(8, 8)):
    """A new file that shares messages. `sizes`: bytes of its addresses, and of its lengths."""
    fcpl, fapl = h5py.h5p.create(h5py.h5p.FILE_CREATE), h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    fcpl.set_sizes(*sizes)
    call("H5Pset_shared_mesg_nindexes", hid(fcpl.id), ctypes.c_uint(len(indexes)))
    for i, types in enumerate(indexes):
        call("H5Pset_shared_mesg_index", hid(fcpl.id), ctypes.c_uint(i), ctypes.c_uint(types), ctypes.c_uint(0))
    call("H5Pset_shared_mesg_phase_change", hid(fcpl.id), ctypes.c_uint(list_max), ctypes.c_uint(btree_min))
    fapl.set_libver_bounds(h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST)
    return h5py.File(h5py.h5f.create(path.encode(), h5py.h5f.ACC_TRUNC, fcpl, fapl))


def make(path, indexes, list_max, btree_min, objects, sizes=(8, 8)):
    with create(path, indexes, list_max, btree_min, sizes) as f:
        for i in range(objects):
            add(f, i)
        # What no other object has stays in its header.
        alone = f.create_dataset("alone", (7,), "<f8", chunks=(7,), maxshape=(None,), fillvalue=-1.5, compression=9)
        alone.attrs["x"] = numpy.arange(33)
        f.create_group("many")
        for i in range(12):  # dense
            f["many"].attrs[f"a{i}"] = numpy.arange(i % 3 + 2)


def add(f, i):
    d = f.create_dataset(f"d{i}", data=numpy.arange(10 + i // 2, dtype="<i4"), chunks=(5,), fillvalue=3, compression=1)
    d.attrs["same"] = numpy.arange(20)
    d.attrs["own"] = i
    d.attrs["half"] = numpy.full(3, i // 2, "<i2")


ROWS = [f"rows {i}" for i in range(4)]


def add_growing(f):
    """Datasets that can have other shapes. Those of `ROWS` share a dataspace, but for the first, whose header an index leads to."""
    for i, name in enumerate(ROWS):
        d = f.create_dataset(name, data=numpy.arange(7, dtype="<i4") + i, maxshape=(None,), chunks=(4,), fillvalue=3, compression=1)
        d.attrs["same"] = numpy.arange(20)
        d.attrs["own"] = i
    f.create_dataset("plane", data=numpy.arange(15, dtype="<u2").reshape(3, 5), maxshape=(None, None), chunks=(2, 3))
    f.create_dataset("empty", (0,), "<f8", maxshape=(None,), chunks=(4,))


class Table:
    """The shared message table of a file: `number` reads one, `indexes` are the places of its indexes."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        extension, at = self.number(20, 8), self.data.index(b"SMTB")
        head = self.data[extension:extension + 512]
        # It may have moved: the extension has a message with its address, and with the number of indexes.
        while at.to_bytes(8, "little") not in head:
            at = self.data.index(b"SMTB", at + 1)
        count = head[head.index(at.to_bytes(8, "little")) + 8]
        self.indexes = [at + 4 + 30 * i for i in range(count)]

    def number(self, at, n):
        return int.from_bytes(self.data[at:at + n], "little")


def messages(path):
    """How many messages the heap of each index has."""
    table = Table(path)
    heaps = [table.number(at + 22, 8) for at in table.indexes]
    return [0 if heap == (1 << 64) - 1 else table.number(heap + 70, 8) for heap in heaps]


def records(path):
    """Of all indexes: hash, and how often the message is used; 0: it is in an object header."""
    table, found = Table(path), []
    data, number = table.data, table.number
    for at in table.indexes:
        messages, index = number(at + 12, 2), number(at + 14, 8)
        if index == (1 << 64) - 1:
            pass
        elif not data[at + 1]:
            assert data[index:index + 4] == b"SMLI"
            found += [data[index + 4 + 17 * i:index + 21 + 17 * i] for i in range(messages)]
        else:
            assert number(index + 16 + 8 + 2, 8) == messages, "the table and the tree count differently"
            found += tree(data, number(index + 16, 8), number(index + 24, 2), number(index + 12, 2))
    return sorted((r[1:5].hex(), 0 if r[0] else int.from_bytes(r[5:9], "little")) for r in found)


def tree(data, node, count, depth):
    """The records of a version 2 B-tree whose nodes have 512 bytes."""
    found = [data[node + 6 + 17 * i:node + 23 + 17 * i] for i in range(count)]
    at = node + 6 + 17 * count
    for _ in range(count + 1 if depth else 0):
        width = 1 if depth == 1 else 2  # bytes of the number of all records below, which the format leaves out above leaves
        child = int.from_bytes(data[at:at + 8], "little")
        found += tree(data, child, data[at + 8], depth - 1)
        at += 8 + 1 + (width if depth > 1 else 0)
    return found
