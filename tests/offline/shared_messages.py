#!/usr/bin/python3
"""Objects are removed from files that share messages: the indexes of shared messages count what they count if libhdf5 removes
the same objects, and libhdf5 makes and removes such objects afterwards."""
import ctypes
import os
import shutil
import subprocess
import tempfile
import unittest

import h5py
import numpy

from libhdf5 import call, hid
from mountlib import lookup3

SHELL = os.environ.get("H5FS_VFS_SHELL", "tests/lib/vfs_shell")
H5FS = os.environ.get("H5FS", "src/h5fs")
DATASPACE, DATATYPE, FILL, PIPELINE, ATTRIBUTE = (1 << n for n in (1, 3, 5, 11, 12))
FILES = {  # the types of messages in each index; most messages of a list, least of a B-tree
    "one list": ([DATASPACE | DATATYPE | FILL | PIPELINE | ATTRIBUTE], 50, 40),
    "several lists": ([DATATYPE, DATASPACE | FILL | PIPELINE, ATTRIBUTE], 50, 40),
    "attributes alone": ([ATTRIBUTE], 50, 40),
    "parts of attributes": ([DATATYPE | DATASPACE], 50, 40),
    "B-trees": ([DATATYPE | ATTRIBUTE, DATASPACE | FILL | PIPELINE], 0, 0),
    "a B-tree of several nodes": ([DATASPACE | DATATYPE | FILL | PIPELINE | ATTRIBUTE], 0, 0),
}


def make(path, indexes, list_max, btree_min, objects):
    fcpl, fapl = h5py.h5p.create(h5py.h5p.FILE_CREATE), h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    call("H5Pset_shared_mesg_nindexes", hid(fcpl.id), ctypes.c_uint(len(indexes)))
    for i, types in enumerate(indexes):
        call("H5Pset_shared_mesg_index", hid(fcpl.id), ctypes.c_uint(i), ctypes.c_uint(types), ctypes.c_uint(0))
    call("H5Pset_shared_mesg_phase_change", hid(fcpl.id), ctypes.c_uint(list_max), ctypes.c_uint(btree_min))
    fapl.set_libver_bounds(h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST)
    with h5py.File(h5py.h5f.create(path.encode(), h5py.h5f.ACC_TRUNC, fcpl, fapl)) as f:
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


class Table:
    """The shared message table of a file: `number` reads one, `indexes` are the places of its indexes."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        self.indexes, at = [], self.data.index(b"SMTB") + 4
        while self.data[at:at + 1] == b"\0" and self.number(at + 2, 2):
            self.indexes.append(at)
            at += 30

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


class SharedMessages(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="h5fs-shared-")
        self.addCleanup(shutil.rmtree, self.folder)

    def shell(self, path, *lines):
        run = subprocess.run([SHELL, path], input="".join("\t".join(line) + "\n" for line in lines), capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual({line.split()[0] for line in run.stdout.splitlines()}, {"0"}, run.stdout)

    def check(self, path):
        run = subprocess.run([H5FS, "--check", path], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("no damage found; ", run.stdout)

    def remove(self, ours, theirs, *names):
        self.shell(ours, *(("unlink", name) for name in names))
        with h5py.File(theirs, "r+", libver="latest") as f:
            for name in names:
                del f[name]
        self.assertEqual(records(ours), records(theirs), names)
        self.assertEqual(messages(ours), messages(theirs), names)
        self.check(ours)

    def test_removed_objects(self):
        for name, (indexes, list_max, btree_min) in FILES.items():
            ours, theirs = os.path.join(self.folder, "ours.h5"), os.path.join(self.folder, "theirs.h5")
            objects = 40 if "nodes" in name else 6
            make(ours, indexes, list_max, btree_min, objects)
            shutil.copy(ours, theirs)
            with self.subTest(file=name):
                self.remove(ours, theirs, "d0")
                self.remove(ours, theirs, "alone")
                self.remove(ours, theirs, *(f"d{i}" for i in range(2, objects, 2)))
                # Other objects come where the removed ones were.
                self.shell(ours, *(line for i in range(12) for line in (("mkdir", f"g{i}"), ("commit",))))
                with h5py.File(ours, "r+", libver="latest") as f:
                    for i in range(0, objects, 2):
                        add(f, i)
                    f.create_dataset("alone", (7,), "<f8", chunks=(7,), maxshape=(None,), fillvalue=-1.5, compression=9)
                    for key in "d1", "d2", "alone", "many":
                        del f[key]
                self.check(ours)
                with h5py.File(ours) as f:
                    self.assertEqual(f["d3"][...].tolist(), list(range(11)))
                    self.assertEqual(f["d3"].attrs["half"].tolist(), [1] * 3)

    def test_wrong_counts(self):
        """A count that is too low is damage; one that is too high only costs space."""
        indexes, list_max, btree_min = FILES["parts of attributes"]
        path = os.path.join(self.folder, "f.h5")
        make(path, indexes, list_max, btree_min, 6)
        with open(path, "rb") as f:
            data = bytearray(f.read())
        at = data.index(b"SMTB") + 4
        messages, records = int.from_bytes(data[at + 12:at + 14], "little"), int.from_bytes(data[at + 14:at + 22], "little") + 4
        used = next(record for record in range(records, records + 17 * messages, 17) if not data[record] and data[record + 5] > 1)
        for by, status, said in (1, 0, ", 1 counts that are too high"), (-2, 4, "1 damaged"):
            data[used + 5] += by
            end = records + 17 * messages
            data[end:end + 4] = lookup3(bytes(data[records - 4:end])).to_bytes(4, "little")
            with open(path, "wb") as f:
                f.write(data)
            run = subprocess.run([H5FS, "--check", path], capture_output=True, text=True)
            self.assertEqual(run.returncode, status, run.stdout)
            self.assertIn(said, run.stdout)
            self.assertRegex(run.stdout, "shared message: counts [0-9]+ uses, but there are")

    def test_removed_attributes(self):
        """Of messages that are not shared themselves, but parts of which are."""
        indexes, list_max, btree_min = FILES["parts of attributes"]
        ours, theirs = os.path.join(self.folder, "ours.h5"), os.path.join(self.folder, "theirs.h5")
        make(ours, indexes, list_max, btree_min, 6)
        shutil.copy(ours, theirs)
        self.shell(ours, ("remove", "d0", "user.same"), ("remove", "d1", "user.half"), ("remove", "many", "user.a3"))
        with h5py.File(theirs, "r+", libver="latest") as f:
            del f["d0"].attrs["same"], f["d1"].attrs["half"], f["many"].attrs["a3"]
        self.assertEqual(records(ours), records(theirs))
        self.assertEqual(messages(ours), messages(theirs))
        self.shell(ours, ("set", "d2", "h5fs.type.half", "(3,)<f4"), ("set", "many", "h5fs.type.a4", "(3,)<f4"))
        with h5py.File(theirs, "r+", libver="latest") as f:
            del f["d2"].attrs["half"], f["many"].attrs["a4"]
        self.assertEqual(records(ours), records(theirs))
        self.assertEqual(messages(ours), messages(theirs))


if __name__ == "__main__":
    unittest.main(verbosity=2)
