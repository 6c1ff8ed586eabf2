#!/usr/bin/python3
"""Objects are removed from files that share messages: the indexes of shared messages count what they count if libhdf5 removes
the same objects, and libhdf5 makes and removes such objects afterwards."""
import os
import shutil
import subprocess
import tempfile
import unittest

import h5py
import numpy

from mountlib import lookup3, write
from shared_tables import ATTRIBUTE, FILES, Table, add, create, make, messages, records

SHELL = os.environ.get("H5FS_VFS_SHELL", "tests/lib/vfs_shell")
H5FS = os.environ.get("H5FS", "src/h5fs")

TYPED = [f"typed{i}" for i in range(6)]


def add_typed(f):
    """Objects with attributes of two committed datatypes, `kept` and one that has no name any more. The first object has the messages that
    the others share; each has one of its own, too; the last two have dense storage."""
    f["kept"], f["last"] = numpy.dtype("<i4"), numpy.dtype("<f8")
    kept, last = f["kept"], f["last"]
    for i, name in enumerate(TYPED):
        attrs = f.create_dataset(name, data=numpy.arange(3, dtype="<i4"), dtype=kept).attrs
        attrs.create("same", numpy.arange(20), dtype=kept)
        attrs.create("own", numpy.arange(20) + i + 1, dtype=kept)
        attrs.create("last", numpy.arange(20), dtype=last)
        for k in range(12 if i > 3 else 0):
            attrs.create(f"a{k}", numpy.arange(20 + k % 3), dtype=kept)
    del f["last"]


def set_least_size(path, size):
    """Smaller messages are not shared."""
    table = Table(path)
    data, (at,) = bytearray(table.data), table.indexes
    data[at + 4:at + 8] = size.to_bytes(4, "little")
    data[at + 30:at + 34] = lookup3(bytes(data[at - 4:at + 30])).to_bytes(4, "little")
    write(path, data)


def make_tracked(path):
    """Three datasets with an equal attribute of a committed datatype: in the header of the first, of which the index knows, and in the heap
    for the others. libhdf5 does not leave attributes in headers so, but other messages."""
    create(path, *FILES["attributes alone"]).close()
    for size, names in (10_000, ["first"]), (0, ["second", "third"]):
        set_least_size(path, size)
        with h5py.File(path, "r+", libver="latest") as f:
            if "kept" not in f:
                f["kept"] = numpy.dtype("<i4")
            for name in names:
                f.create_dataset(name, data=[1, 2]).attrs.create("typed", numpy.arange(3), dtype=f["kept"])
    with h5py.File(path) as f:
        header = h5py.h5o.get_info(f["first"].id).addr
    table = Table(path)
    data, (at,) = bytearray(table.data), table.indexes
    name = data.index(b"typed\0", header)
    assert data[header:header + 6] == b"OHDR\2\5"  # two bytes of size; messages have six bytes before them
    end = header + 8 + int.from_bytes(data[header + 6:header + 8], "little")
    assert name < end and data[name - 15] == 12
    data[name - 12] |= 0x40  # the index knows of it
    data[end:end + 4] = lookup3(bytes(data[header:end])).to_bytes(4, "little")
    messages, records = table.number(at + 12, 2), table.number(at + 14, 8)
    assert messages == 1 and data[records + 4] == 0 and data[records + 9] == 2
    data[records + 9] += 1
    data[records + 21:records + 25] = lookup3(bytes(data[records:records + 21])).to_bytes(4, "little")
    write(path, data)


def uses_of_kept(path):
    with h5py.File(path) as f:
        return h5py.h5o.get_info(f["kept"].id).rc


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

    def test_other_sizes_of_addresses(self):
        """A record of an index has room for an address, or for what a heap needs, if that is more."""
        for sizes in (2, 4), (4, 4), (4, 8):
            for name, (indexes, list_max, btree_min) in FILES.items():
                with self.subTest(file=name, sizes=sizes):
                    ours = os.path.join(self.folder, "ours.h5")
                    make(ours, indexes, list_max, btree_min, 6, sizes)
                    self.check(ours)
                    self.shell(ours, *(("unlink", name) for name in ("d0", "d2", "alone")))
                    self.check(ours)
                    with h5py.File(ours, "r+", libver="latest") as f:
                        self.assertEqual(f["d3"][...].tolist(), list(range(11)))
                        self.assertEqual(f["d3"].attrs["same"].tolist(), list(range(20)))
                        add(f, 0)
                        for key in "d0", "d1", "d3", "many":
                            del f[key]
                    self.check(ours)

    def test_committed_types(self):
        """Attributes that objects share use their datatype once, whoever has them; it goes with the last of them."""
        for name, (indexes, list_max, btree_min) in FILES.items():
            if not any(types & ATTRIBUTE for types in indexes):
                continue
            with self.subTest(file=name):
                ours, theirs = os.path.join(self.folder, "ours.h5"), os.path.join(self.folder, "theirs.h5")
                make(ours, indexes, list_max, btree_min, 6)
                with h5py.File(ours, "r+", libver="latest") as f:
                    add_typed(f)
                shutil.copy(ours, theirs)
                first, left = uses_of_kept(ours), list(TYPED)
                for gone in ("typed0",), ("typed1", "typed4"), ("typed2",), ("typed3", "typed5"):
                    for attribute in ("same", "own") if gone == ("typed2",) else ():
                        self.shell(ours, ("remove", "typed2", f"user.{attribute}"))
                        with h5py.File(theirs, "r+", libver="latest") as f:
                            del f["typed2"].attrs[attribute]
                        self.assertEqual(uses_of_kept(ours), uses_of_kept(theirs), attribute)
                    self.remove(ours, theirs, *gone)
                    self.assertEqual(uses_of_kept(ours), uses_of_kept(theirs), gone)
                    left = [name for name in left if name not in gone]
                    with h5py.File(ours) as f:
                        for name in left:
                            for attribute in "same", "last":
                                self.assertEqual(f[name].attrs[attribute].tolist(), list(range(20)))
                self.assertGreater(first, 6)
                self.assertEqual(uses_of_kept(ours), 1)

    def test_a_committed_type_of_a_message_in_a_header(self):
        ours, theirs = os.path.join(self.folder, "ours.h5"), os.path.join(self.folder, "theirs.h5")
        for order in ("first", "second", "third"), ("second", "first", "third"), ("third", "second", "first"):
            make_tracked(ours)
            shutil.copy(ours, theirs)
            before = uses_of_kept(ours)
            for i, name in enumerate(order):
                self.remove(ours, theirs, name)
                self.assertEqual(uses_of_kept(ours), uses_of_kept(theirs), (order, name))
                self.assertEqual(uses_of_kept(ours), before - (i == 2), (order, name))

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
