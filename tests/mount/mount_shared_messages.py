#!/usr/bin/python3
"""Objects of files that share messages change in a mount: rows are appended, shapes and attributes change, objects are renamed and go.
What changed is the object's own, what did not is shared as before, and nobody counts wrongly: libhdf5 changes the same objects again, and
when it has removed all of them, no index has a record left."""
import os
import shutil
import subprocess

import h5py
import numpy

import judges
from mountlib import H5FS, Mount, WriteCase, main
from shared_tables import FILES, ROWS, add_growing, make, messages, records

SOME = "one list", "parts of attributes", "B-trees", "a B-tree of several nodes"


class SharedMessages(WriteCase):
    def make(self, name):
        indexes, list_max, btree_min = FILES[name]
        path = self.file(name.replace(" ", "_") + ".h5")
        make(path, indexes, list_max, btree_min, 40 if "nodes" in name else 6)
        with h5py.File(path, "r+", libver="latest") as f:
            add_growing(f)
        return path

    def check(self, path):
        run = subprocess.run([H5FS, "--check", path], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("no damage found; ", run.stdout)
        self.assertNotIn("uses, but there are", run.stdout)

    def check_removal(self, path):
        """libhdf5 removes all, so that nothing is counted any more."""
        copy = self.file("removed.h5")
        shutil.copy(path, copy)
        with h5py.File(copy, "r+", libver="latest") as f:
            for name in f:
                del f[name]
        self.assertEqual((records(copy), set(messages(copy))), ([], {0}))

    def assertRead(self, path, **expected):
        """By each libhdf5 that judges, and by h5dump. They may not change shapes: libhdf5 damages the header of a dataset whose dataspace
        is shared, and then the new one is not."""
        with judges.File(path, append=False) as f:
            for name, array in expected.items():
                numpy.testing.assert_array_equal(f[name][...], array, name)
        for name, array in expected.items():
            self.assertEqual(self.dump(path, name), array.tobytes(), name)

    @staticmethod
    def append(m, name, array):
        with open(m.at(name), "ab") as f:
            f.write(array.tobytes())

    def test_rows(self):
        for name in SOME:
            with self.subTest(file=name):
                path = self.make(name)
                before = records(path)
                with Mount(path, options="rw") as m:
                    self.append(m, ROWS[0], numpy.array([70, 71], "<i4"))
                    self.append(m, ROWS[1], numpy.array([80], "<i4"))
                    self.append(m, "empty", numpy.array([1.5, 2.5, 3.5, 4.5, 5.5]))
                    os.truncate(m.at(ROWS[2]), 4 * 4)
                    os.setxattr(m.at("plane"), "h5fs.shape", b"4,2")
                    self.assertEqual(m.said(), "")
                expected = {ROWS[0]: numpy.append(numpy.arange(7), [70, 71]).astype("<i4"),
                            ROWS[1]: numpy.append(numpy.arange(7) + 1, [80]).astype("<i4"),
                            ROWS[2]: numpy.arange(4, dtype="<i4") + 2, ROWS[3]: numpy.arange(7, dtype="<i4") + 3,
                            "empty": numpy.arange(5) + 1.5,
                            "plane": numpy.array([[0, 1], [5, 6], [10, 11], [0, 0]], "<u2")}
                self.assertRead(path, **expected)
                self.check(path)
                self.assertNotEqual(records(path), before)
                self.check_removal(path)
                # libhdf5 gives shapes to what is the dataset's own; then a mount does again.
                with h5py.File(path, "r+", libver="latest") as f:
                    for row in ROWS[:3]:
                        f[row].resize((9,))
                        f[row][7:] = 5
                with Mount(path, options="rw") as m:
                    for row in ROWS[:3]:
                        self.append(m, row, numpy.array([6], "<i4"))
                with h5py.File(path) as f:
                    for row in ROWS[:3]:
                        self.assertEqual(f[row][7:].tolist(), [5, 5, 6])
                self.check(path)
                self.check_removal(path)

    def test_attributes(self):
        for name in SOME:
            with self.subTest(file=name):
                path = self.make(name)
                with Mount(path, options="rw") as m:
                    os.setxattr(m.at("d0"), "user.same", b"[" + b",".join(b"%d" % i for i in range(5, 25)) + b"]")
                    os.setxattr(m.at("d1"), "user.own", b"17")
                    os.setxattr(m.at("d2"), "h5fs.type.half", b"(3,)<f4")
                    os.setxattr(m.at("d2"), "user.new", b"some text")
                    os.removexattr(m.at("d3"), "user.same")
                    os.removexattr(m.at("d3"), "user.half")
                    os.removexattr(m.at("d4"), "user.own")
                    os.setxattr(m.at("many"), "user.a3", b"[7,8]")
                    os.removexattr(m.at("many"), "user.a4")
                    os.setxattr(m.at("many"), "h5fs.type.a5", b"(4,)<f4")
                    for i in range(9):
                        os.setxattr(m.at("alone"), f"user.n{i}", b"%d" % i)
                    os.setxattr(m.at("alone"), "user.x", b"[" + b",".join([b"9"] * 33) + b"]")
                    self.assertEqual(m.said(), "")
                self.check(path)
                with h5py.File(path) as f:
                    self.assertEqual(f["d0"].attrs["same"].tolist(), list(range(5, 25)))
                    self.assertEqual(f["d1"].attrs["own"], 17)
                    self.assertEqual(f["d2"].attrs["half"].dtype, "<f4")
                    self.assertEqual(f["d2"].attrs["half"].tolist(), [1, 1, 1])
                    self.assertEqual((list(f["d3"].attrs), sorted(f["d4"].attrs)), (["own"], ["half", "same"]))
                    self.assertEqual(f["d4"].attrs["same"].tolist(), list(range(20)))
                    self.assertEqual(f["many"].attrs["a3"].tolist(), [7, 8])
                    self.assertEqual(sorted(f["many"].attrs), sorted(f"a{i}" for i in range(12) if i != 4))
                    self.assertEqual(f["many"].attrs["a5"].dtype, "<f4")
                    for i in 0, 1, 2, 6, 7, 8, 9, 10, 11:
                        self.assertEqual(f["many"].attrs[f"a{i}"].tolist(), list(range(i % 3 + 2)))
                    self.assertEqual([f["alone"].attrs[f"n{i}"] for i in range(9)], list(range(9)))
                    self.assertEqual(f["alone"].attrs["x"].tolist(), [9] * 33)
                self.check_removal(path)
                self.assertRead(path)
                with h5py.File(path, "r+", libver="latest") as f:
                    for key in "d0", "d2", "alone", "many":
                        for attribute in list(f[key].attrs)[::2]:
                            f[key].attrs[attribute] = numpy.arange(20)
                        for attribute in list(f[key].attrs)[1::2]:
                            del f[key].attrs[attribute]
                self.check(path)
                self.check_removal(path)

    def test_objects(self):
        """Names, contents that are replaced, other chunks, and objects that go after they have changed."""
        for name in SOME:
            with self.subTest(file=name):
                path = self.make(name)
                with Mount(path, options="rw") as m:
                    os.rename(m.at("d0"), m.at("many/moved"))
                    os.mkdir(m.at("new"))
                    with open(m.at("new/plain"), "wb") as f:
                        f.write(b"abc" * 99)
                    self.append(m, ROWS[3], numpy.array([1, 2, 3], "<i4"))
                    os.setxattr(m.at("d5"), "user.same", b"[" + b",".join([b"4"] * 20) + b"]")
                    numpy.save(m.at(f".h5fs/npy/{ROWS[1]}.npy"), numpy.arange(12.0).reshape(4, 3))
                    with open(m.at(ROWS[2]), "wb") as f:
                        f.write(numpy.arange(30, dtype="<i4").tobytes())
                    self.assertEqual(m.said(), "")
                self.assertRead(path, **{ROWS[1]: numpy.arange(12.0).reshape(4, 3),
                                         ROWS[2]: numpy.arange(30, dtype="<i4")})
                self.check(path)
                self.check_removal(path)
                with Mount(path, options="rw") as m:
                    for gone in ROWS[3], ROWS[1], "d5", "d1", "alone", "many/moved":
                        os.unlink(m.at(gone))
                    self.assertEqual(m.said(), "")
                self.assertRead(path, **{ROWS[0]: numpy.arange(7, dtype="<i4")})
                self.check(path)
                self.check_removal(path)


if __name__ == "__main__":
    main()
