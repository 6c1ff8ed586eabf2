#!/usr/bin/python3
"""Datasets in which nothing is stored are declared by their properties h5fs.*, in any order."""
import errno
import itertools
import json
import os
import re
import subprocess

import h5py
import numpy

import judges
from mountlib import Mount, MountCase, main, patch, read, write

LIBVERS = "earliest", "latest"


def make(path, libver):
    """Empty datasets, as a mount makes them, and some that cannot be declared."""
    with h5py.File(path, "w", libver=libver) as f:
        for i in range(130):
            f.create_dataset(f"d{i}", (0,), "u1", maxshape=(None,), chunks=(4096,))
        f.create_dataset("fixed", (10,), "<i2")
        f.create_dataset("limited", (5, 3), "<i2", maxshape=(10, 3), chunks=(2, 3), compression="gzip")
        f["data"] = numpy.arange(10)
        f.create_dataset("rows", data=numpy.arange(10), maxshape=(20,))
        f["two"] = f.create_dataset("names", (0,), "u1", maxshape=(None,))
        f.create_group("group")
    return path


def declare(m, name, **what):
    for key, text in what.items():
        os.setxattr(m.at(name), f"h5fs.{key}", text.encode())


def properties(m, name):
    return json.loads(os.getxattr(m.at(name), "h5fs.info"))


class Declare(MountCase):
    def assertInfo(self, m, name, **expected):
        info = properties(m, name)
        self.assertEqual({key: info.get(key) for key in expected}, expected)

    def test_what_is_not_said_is_chosen(self):
        cases = {  # what is said; what follows
            "rows": (dict(dtype="<f4", shape="0,512,512"), dict(maxshape="inf,512,512", chunks="1,512,512", layout="chunked")),
            "small": (dict(dtype="<f8"), dict(shape="0", maxshape="inf", chunks="8192")),
            "fixed": (dict(shape="3,4", maxshape="3,4"), dict(dtype="|u1", layout="contiguous")),
            "fixed chunks": (dict(shape="3,4", maxshape="3,4", chunks="3,2"), dict(layout="chunked", chunks="3,2")),
            "fixed filters": (dict(shape="3,4", maxshape="3,4", filters="deflate"), dict(layout="chunked", filters="deflate(4)")),
            "scalar": (dict(shape="", dtype="<i4"), dict(layout="contiguous", shape="")),
            "null": (dict(shape="null", dtype="<i4"), dict(layout="contiguous", shape="null")),
            "table": (dict(dtype='[["a","<i4"],["b","<f8"]]', fill='{"a":1,"b":0.5}'), dict(fill='{"a":1,"b":0.5}')),
            "text": (dict(dtype="vlen str", shape="5"), dict(dtype="object", format="lines", shape="5", maxshape="inf")),
            "wide": (dict(dtype="<f8", shape="0,1000000"), dict(chunks="1,131072")),
        }
        for libver in LIBVERS:
            path = make(self.file(f"{libver}.h5"), libver)
            with Mount(path, options="rw") as m:
                for i, (said, expected) in enumerate(cases.values()):
                    declare(m, f"d{i}", **said)
                    self.assertInfo(m, f"d{i}", **{k: v for k, v in said.items() if k not in expected}, **expected)
            with judges.File(path) as f:
                for i, (said, expected) in enumerate(cases.values()):
                    d = f[f"d{i}"]
                    if "maxshape" in expected:
                        most = tuple(None if n == "inf" else int(n) for n in expected["maxshape"].split(","))
                        self.assertEqual(tuple(d.maxshape), most)

    def test_any_order(self):
        said = dict(dtype="<i4", shape="4,6", maxshape="8,inf", chunks="2,3", fill="-7")
        for libver in LIBVERS:
            path = make(self.file(f"{libver}.h5"), libver)
            with Mount(path, options="rw") as m:
                for i, order in enumerate(itertools.permutations(said)):
                    declare(m, f"d{i}", **{key: said[key] for key in order})
                    self.assertInfo(m, f"d{i}", **said)
                declare(m, "d121", info=json.dumps(properties(m, "d0")))
                self.assertInfo(m, "d121", **said)
            with judges.File(path) as f:
                for name in "d0", "d77", "d121":
                    numpy.testing.assert_array_equal(f[name][...], numpy.full((4, 6), -7))
            with h5py.File(path, "r+") as f:
                f["d0"].resize((8, 20))
                f["d0"][...] = 5
                self.assertEqual(f["d0"][7, 19], 5)

    def test_rows_follow(self):
        for libver in LIBVERS:
            path = make(self.file(f"{libver}.h5"), libver)
            data = numpy.arange(3 * 512 * 512, dtype="<f4").reshape(3, 512, 512)
            with Mount(path, options="rw") as m:
                declare(m, "d0", info='{"dtype":"<f4","shape":"0,512,512","filters":"shuffle,deflate(4)"}')
                with open(m.at("d0"), "ab") as f:
                    f.write(data.tobytes())
                with open(m.at("d1"), "ab") as f:  # declared while it is open
                    declare(m, "d1", dtype="<i8")
                    f.write(b"x" * 24)
                for key in "dtype", "chunks", "filters", "fill", "maxshape":
                    self.assertErrno(errno.EBUSY, os.setxattr, m.at("d0"), f"h5fs.{key}", b"|u1")
                self.assertEqual(read(m.at("d0")), data.tobytes())
            with judges.File(path) as f:
                numpy.testing.assert_array_equal(f["d0"][...], data)
                self.assertEqual(f["d1"].shape, (3,))

    def test_shape_at_any_time(self):
        path = make(self.file("a.h5"), "latest")
        with Mount(path, options="rw") as m:
            declare(m, "rows", shape="15")
            self.assertEqual(os.stat(m.at("rows")).st_size, 15 * 8)
            declare(m, "rows", shape="4")
            for text in "21", "4,1", "", "x", "-1", "inf":
                self.assertErrno(errno.EINVAL, os.setxattr, m.at("rows"), "h5fs.shape", text.encode())
        with judges.File(path) as f:
            self.assertEqual(list(f["rows"][...]), [0, 1, 2, 3])

    def test_a_maximum_of_the_same_size(self):
        """It stays if the dataset shrinks, and so does the index, which has as many elements as chunks can be."""
        for libver in LIBVERS:
            path = make(self.file(f"{libver}.h5"), libver)
            with Mount(path, options="rw") as m:
                declare(m, "d0", dtype="<i4", shape="4", maxshape="4", chunks="1")
                declare(m, "d1", dtype="<i4", shape="4,3", maxshape="4,3", chunks="2,2")
                for name, row in ("d0", 1), ("d1", 3):
                    write(m.at("new"), numpy.arange(4 * row, dtype="<i4").tobytes())
                    os.rename(m.at("new"), m.at(name))
                    os.truncate(m.at(name), 4 * row)
                    os.truncate(m.at(name), 4 * row * 3)
                self.assertInfo(m, "d1", shape="3,3", maxshape="4,3")
            with judges.File(path) as f:
                self.assertEqual((f["d0"].maxshape, f["d1"].maxshape), ((4,), (4, 3)))
                self.assertEqual(list(f["d0"][...]), [0, 0, 0])
                self.assertEqual(f["d1"][...].tolist(), [[0, 1, 2], [0, 0, 0], [0, 0, 0]])

    def test_the_largest_maximum(self):
        path = make(self.file("a.h5"), "latest")
        with Mount(path, options="rw") as m:
            declare(m, "d0", dtype="<i4", shape="1", maxshape=str(2**63 - 1), chunks="1024")
            self.assertInfo(m, "d0", shape="1", maxshape=str(2**63 - 1))
        with judges.File(path) as f:
            self.assertEqual(f["d0"].maxshape, (2**63 - 1,))

    def test_a_maximum_that_is_not_stored(self):
        """Such a dataset keeps its size: its maximum would change with it."""
        path = self.file("none.h5")
        with h5py.File(path, "w", libver="earliest") as f:
            f.create_dataset("d", data=numpy.arange(7, dtype="<i4"), maxshape=(9,), chunks=(2,))
        space = b"\1\1%c" + bytes(5) + (7).to_bytes(8, "little")
        patch(path, space % 1, space % 0)
        with h5py.File(path) as f:
            self.assertEqual(f["d"].maxshape, (7,))
        with Mount(path, options="rw") as m:
            self.assertErrno(errno.EPERM, os.truncate, m.at("d"), 8)
            self.assertErrno(errno.EINVAL, os.setxattr, m.at("d"), "h5fs.shape", b"8")
            with open(m.at("d"), "r+b") as f:
                f.write(b"\1" * 28)
        with judges.File(path) as f:
            self.assertEqual(list(f["d"][...]), [0x01010101] * 7)

    def test_nothing_is_remembered_of_a_removed_file(self):
        """A new file in its place is as it was not declared."""
        for libver in LIBVERS:
            path = make(self.file(f"{libver}.h5"), libver)
            with Mount(path, options="rw") as m:
                addresses, root = set(), m.open("", os.O_RDONLY)
                for _ in range(9):
                    write(m.at("new"), b"")
                    addresses.add(os.getxattr(m.at("new"), "h5fs.address"))
                    declare(m, "new", shape="3")
                    self.assertInfo(m, "new", dtype="|u1", fill="")
                    declare(m, "new", dtype="<i4", fill="7")
                    os.unlink(m.at("new"))
                    os.fsync(root)
                self.assertLess(len(addresses), 9, "no address was used again")

    def test_shapes_within_the_maximum_leave_it(self):
        for libver in LIBVERS:
            path = make(self.file(f"{libver}.h5"), libver)
            with Mount(path, options="rw") as m:
                for shape in "7,3", "2,3", "10,3":
                    declare(m, "limited", shape=shape)
                    self.assertInfo(m, "limited", shape=shape, maxshape="10,3")
                for shape, most in ("5", "inf"), ("4,6", "inf,6"), ("3,4", "inf,4"), ("2", "inf"):
                    declare(m, "d0", shape=shape)
                    self.assertInfo(m, "d0", shape=shape, maxshape=most)
            with judges.File(path) as f:
                self.assertEqual((f["limited"].shape, f["limited"].maxshape), ((10, 3), (10, 3)))

    def test_data_settle_what_it_is(self):
        with Mount(self.file("new.h5"), options="create") as m:
            os.close(m.open("new", os.O_CREAT | os.O_WRONLY))
            for name, said in {"dtype": "u1", "shape": "4,4,1", "chunks": "4,2,1"}.items():
                declare(m, "new", **{name: said})
            with open(m.at("new"), "r+b") as f:
                f.write(bytes(range(1, 17)))
            for shape in "4,1,1", "0,1,1", "90,1,1", "1,4,1":
                declare(m, "new", shape=shape)
                self.assertInfo(m, "new", shape=shape, maxshape="inf,4,1", chunks="4,2,1")

    def test_what_is_refused(self):
        path = make(self.file("a.h5"), "latest")
        nonsense = {
            "dtype": ("", "<i3", "nothing", "<i4 "),
            "shape": ("x", "1,", ",1", "-1", "inf", "1,,2", "9223372036854775807,2", ",".join("1" * 33)),
            "maxshape": ("x", "0,", "in", "5,inf,", "9223372036854775808", "99999999999999999999"),
            "chunks": ("0", "x", "4294967296"),
            "filters": ("deflate(99)", "deflate,", "deflate(x)"),
            "info": ("", "5", "[]", '{"x":1}', '{"shape":[1]}', '{"shape":"x"}', '{"shape":null}'),
        }
        with Mount(path, options="rw") as m:
            before = properties(m, "d0")
            for key, texts in nonsense.items():
                for text in texts:
                    with self.subTest(key, text=text):
                        self.assertErrno(errno.EINVAL, os.setxattr, m.at("d0"), f"h5fs.{key}", text.encode())
            self.assertErrno(errno.ENOTSUP, os.setxattr, m.at("d0"), "h5fs.filters", b"zfp")
            self.assertErrno(errno.EPERM, os.setxattr, m.at("d0"), "h5fs.layout", b"chunked")
            self.assertErrno(errno.EPERM, os.setxattr, m.at("d0"), "h5fs.nothing", b"x")
            self.assertErrno(errno.EPERM, os.setxattr, m.at("group"), "h5fs.dtype", b"<i4")
            for name in "data", "names", "two":
                self.assertErrno(errno.EBUSY, os.setxattr, m.at(name), "h5fs.dtype", b"<i4")
            self.assertEqual(properties(m, "d0"), before)
        with Mount(path) as m:
            self.assertErrno(errno.EROFS, os.setxattr, m.at("d0"), "h5fs.dtype", b"<i4")

    def test_what_is_there_stays(self):
        path = make(self.file("a.h5"), "earliest")
        with Mount(path, options="rw") as m:
            declare(m, "limited", fill="3")
            self.assertInfo(m, "limited", shape="5,3", maxshape="10,3", chunks="2,3", filters="deflate(4)", fill="3")
            declare(m, "fixed", dtype="<f8")
            self.assertInfo(m, "fixed", shape="10", maxshape="10", layout="contiguous", dtype="<f8")
            write(m.at("d5"), b"")
            os.setxattr(m.at("fixed"), "user.units", b"km")
        with judges.File(path) as f:
            self.assertEqual(f["limited"][4, 2], 3)
            self.assertEqual(f["fixed"].attrs["units"], "km")

    def test_comments(self):
        for libver in LIBVERS:
            path = make(self.file(f"{libver}.h5"), libver)
            with Mount(path, options="rw") as m:
                for name in "data", "group", "d0":
                    for text in "a comment", "a longer one " * 20, "x", "":
                        declare(m, name, comment=text)
                        self.assertEqual(os.getxattr(m.at(name), "h5fs.comment"), text.encode())
                    declare(m, name, comment=name)
            with judges.File(path) as f:
                self.assertEqual(len(f["data"]), 10)
            listing = subprocess.run(["h5ls", "-v", path], capture_output=True, text=True, check=True).stdout
            for name in "data", "group", "d0":
                self.assertIn(f'"{name}"', re.findall(r"Comment: *(.*)", listing))


main()
