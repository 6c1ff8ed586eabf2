#!/usr/bin/python3
"""Files below .h5fs that programs write become datasets: arrays as NumPy saves them, tables in CSV, texts
of attributes."""
import csv
import errno
import io
import os
import subprocess

import h5py
import numpy
import pandas

from mountlib import H5FS, Mount, WriteCase, main, read, write

NESTED = numpy.dtype([("id", "<i4"), ("at", [("x", ">f8"), ("y", "<f4", (2,))]), ("name", "S5")], align=True)
RANDOM = numpy.random.default_rng(1)


def some(dtype, shape, order="C"):
    """An array of that type with random contents."""
    dtype = numpy.dtype(dtype)
    if dtype == bool:
        return numpy.array(RANDOM.integers(0, 2, shape), bool, order=order)
    if dtype.kind in "fc":
        return numpy.array(RANDOM.random(shape), dtype, order=order)
    if dtype.kind == "S":
        return numpy.array(RANDOM.integers(10**6, 10**7, shape), order=order).astype(dtype)
    if dtype.names:
        array = numpy.zeros(shape, dtype, order=order)
        for name in dtype.names:
            array[name] = some(array[name].dtype, array[name].shape)
        return array
    return numpy.asarray(RANDOM.integers(0, 100, shape), order=order).astype(dtype)


ARRAYS = {
    **{name.strip("<>|"): some(name, (7, 5)) for name in ("|i1", "|u1", "<i2", "<u4", "<i8", "<f2", "<f4", "<f8", "<c8", "<c16")},
    "big endian": some(">i8", (3, 2)), "big floats": some(">f4", 9), "boolean": some(bool, (4, 4)),
    "strings": some("S9", (3, 3)), "compound": some(NESTED, 6), "scalar": numpy.array(3.25), "one compound": some(NESTED, ()),
    "empty": numpy.zeros((0, 4), "<i4"), "no columns": numpy.zeros((4, 0), "<i4"),
    "fortran": some("<f8", (70, 33), "F"), "fortran 4": some("<i4", (5, 6, 7, 8), "F"), "fortran 1": some("<i4", 9, "F"),
    "fortran rows": some("|u1", (3, 300_000), "F"), "fortran compound": some(NESTED, (4, 5), "F"),
    "bytes": numpy.array([b"\0\1\2", b"abc"], "V3"), "cube": some("<f4", (2, 3, 4)), "several chunks": some("<f8", (3000, 100)),
    "ünïcode": some([("é", "<i4"), ("\u4e2d", "<f8")], 3),
}


def npy(array, version=None):
    out = io.BytesIO()
    numpy.lib.format.write_array(out, array, version)
    return out.getvalue()


def header(text, version=1, pad=True):
    body = text.encode() + (b" " * (-(11 + len(text)) % 64) if pad else b"") + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + len(body).to_bytes(2 if version == 1 else 4, "little") + body


GOOD = "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }"
DATA = bytes(range(12))
BAD = {
    "nothing of it": b"hello, world",
    "another version": b"\x93NUMPY\x04\0" + npy(numpy.zeros(3))[8:],
    "a cut signature": b"\x93NUM",
    "a cut header": npy(numpy.zeros(3))[:50],
    "no elements": header(GOOD),
    "an element less": header(GOOD) + DATA[:8],
    "a byte less": header(GOOD) + DATA[:11],
    "a byte more": header(GOOD) + DATA + b"x",
    "a huge header": b"\x93NUMPY\x02\0\xff\xff\xff\xff" + b" " * 100,
    "no text": header("\0" * 20) + DATA,
    "no dictionary": header("[1, 2]") + DATA,
    "no shape": header("{'descr': '<i4', 'fortran_order': False}") + DATA,
    "one key more": header(GOOD[:-1] + "'more': 1}") + DATA,
    "a shape below 0": header(GOOD.replace("(3,)", "(-3,)")) + DATA,
    "a shape of text": header(GOOD.replace("(3,)", "('3',)")) + DATA,
    "a shape beyond 2^64": header(GOOD.replace("(3,)", "(4294967296, 4294967296, 4294967296)")) + DATA,
    "33 dimensions": header(GOOD.replace("(3,)", "(" + "1," * 33 + ")")) + DATA,
    "no order": header(GOOD.replace("False", "0")) + DATA,
    "objects": header(GOOD.replace("<i4", "|O")) + DATA,
    "times": header(GOOD.replace("<i4", "<M8[ns]")) + DATA,
    "UTF-32": header(GOOD.replace("<i4", "<U1")) + DATA,
    "an unknown type": header(GOOD.replace("<i4", "q")) + DATA,
    "a call": header("__import__('os').system('x')") + DATA,
    "a string that does not end": header("{'descr': '<i4") + DATA,
    "deep": header("(" * 5000, pad=False) + DATA,
}


def write_whole(name, data):
    """Writes the file; an error of close counts, too."""
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        while data:
            data = data[os.write(fd, data):]
    finally:
        os.close(fd)


class SourceCase(WriteCase):
    def refused(self, name, data):
        """Writing or closing it fails with EINVAL."""
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        codes = []
        for call in (lambda: os.write(fd, data), lambda: os.fsync(fd), lambda: os.close(fd)):
            try:
                call()
            except OSError as e:
                codes.append(e.errno)
        self.assertEqual(set(codes), {errno.EINVAL}, data[:100])
        self.assertGreaterEqual(len(codes), 2, data[:100])

    def assertSound(self, path):
        self.assertEqual(subprocess.run([H5FS, "--check", path], capture_output=True, check=False).returncode, 0)


class Arrays(SourceCase):
    def same(self, found, expected, name):
        self.assertEqual((found.dtype, found.shape), (expected.dtype, expected.shape), name)
        if expected.dtype.names:  # but for what lies between the members
            for member in expected.dtype.names:
                self.same(found[member], expected[member], name)
        else:
            self.assertEqual(found.tobytes(), expected.tobytes(), name)

    def test_what_numpy_saves(self):
        path = self.file("a.h5")
        with Mount(path, options="create") as m:
            os.mkdir(m.at("run"))
            for name, array in ARRAYS.items():
                numpy.save(m.at(f".h5fs/npy/run/{name}.npy"), array)
                self.same(numpy.load(m.at(f".h5fs/npy/run/{name}.npy")), array, name)
            self.assertEqual(sorted(os.listdir(m.at("run"))), sorted(ARRAYS))
        with h5py.File(path, "r") as f:
            for name, array in ARRAYS.items():
                found = f["run"][name]
                self.assertEqual(found.shape, array.shape, name)
                self.assertEqual(found.maxshape[:1], (None,) if array.ndim and array.shape[1:].count(0) == 0 else found.shape[:1], name)
                if array.dtype.kind != "V" or array.dtype.names:
                    self.same(numpy.array(found[()]).astype(array.dtype), array, name)
        self.assertSound(path)

    def test_versions_and_writers(self):
        path = self.file("v.h5")
        array = some("<f4", (50, 20))
        wide = numpy.zeros(2, [(f"a member with a long name, {i}", "<i4") for i in range(3000)])
        with Mount(path, options="create") as m:
            for version in (1, 2, 3):
                write(self.file("v.npy"), npy(array, (version, 0)))
                self.shell('cp "$1" "$2"', self.file("v.npy"), m.at(f".h5fs/npy/cp{version}.npy"))
                self.shell('cat "$1" > "$2"', self.file("v.npy"), m.at(f".h5fs/npy/cat{version}.npy"))
                self.shell('dd if="$1" of="$2" bs=7 status=none', self.file("v.npy"), m.at(f".h5fs/npy/dd{version}.npy"))
                self.shell('rsync --inplace "$1" "$2"', self.file("v.npy"), m.at(f".h5fs/npy/rsync{version}.npy"))
            self.shell('{ head -c 300 "$1"; tail -c +301 "$1"; } > "$2" 2>/dev/null || true', self.file("v.npy"), m.at(".h5fs/npy/two.npy"))
            # No object header holds such a type.
            self.assertErrno(errno.E2BIG, numpy.save, m.at(".h5fs/npy/wide.npy"), wide)
            self.assertEqual(len(os.listdir(m.path)), 13)
            for name in os.listdir(m.path):
                self.same(numpy.load(m.at(f".h5fs/npy/{name}.npy")), array, name)

    def test_listed_at_once(self):
        """Also if the kernel knows the directory without it."""
        path = self.file("listed.h5")
        with h5py.File(path, "w") as f:
            f.create_group("run")
        with Mount(path, options="rw") as m:
            for i in range(10):
                before = os.listdir(m.at("run"))
                self.assertEqual(os.listdir(m.at("run")), before)
                self.assertFalse(os.path.exists(m.at(f"run/a{i}")))
                write(m.at(f".h5fs/npy/run/a{i}.npy"), npy(numpy.arange(i)))
                self.assertTrue(os.path.exists(m.at(f"run/a{i}")))
                self.assertEqual(sorted(os.listdir(m.at("run"))), sorted([*before, f"a{i}"]))

    def test_members_that_are_arrays_and_single_values(self):
        path = self.file("m.h5")
        rows = some(numpy.dtype([("id", "<u2"), ("m", "<i4", (2, 3)), ("word", "S3", 2), ("end", "i1")]), 9)
        rows["word"] = [b"a,b", b""]
        first = {"rows": rows, "row": rows[3], "number": numpy.float32(2.5), "opaque": numpy.array([b"\0\xff", b"\x12\xab"], "V2"),
                 "grown": numpy.int16(1)}
        with h5py.File(path, "w", libver="latest") as f:
            for name, data in first.items():
                f[name] = data
        with Mount(path, options="rw") as m:
            for name in first:
                write_whole(m.at(f".h5fs/csv/{name}.csv"), read(m.at(f".h5fs/csv/{name}.csv")))
            write_whole(m.at(".h5fs/csv/number.csv"), b"value\n3.5\n")
            write_whole(m.at(".h5fs/csv/grown.csv"), b"value\n1\n2\n")
            head = b"id,m[0][0],m[0][1],m[0][2],m[1][0],m[1][1],m[1][2],word[0],word[1],end\n"
            write_whole(m.at(".h5fs/csv/row.csv"), head + b"1,2,3,4,5,6,7,x,y,8\n")
            # Another order is another type.
            write_whole(m.at(".h5fs/csv/swapped.csv"), b"m[1],m[0]\n1,2\n")
            with open(m.at(".h5fs/lines/opaque"), "r+b", buffering=0) as f:
                f.truncate(0)
                f.write(b"0102\nfffe\n")
        with h5py.File(path) as f:
            numpy.testing.assert_array_equal(f["rows"][...], rows)
            self.assertEqual((f["rows"].dtype, f["row"].dtype, f["row"].shape), (rows.dtype, rows.dtype, ()))
            self.assertEqual(f["row"][()].tolist()[0::3], (1, 8))
            numpy.testing.assert_array_equal(f["row"]["m"], [[2, 3, 4], [5, 6, 7]])
            self.assertEqual((f["number"].dtype, f["number"].shape, f["number"][()]), ("<f4", (), 3.5))
            self.assertEqual((f["grown"].dtype, f["grown"].shape), ("<i8", (2,)))
            self.assertEqual(f["swapped"].dtype.names, ("m[1]", "m[0]"))
            self.assertEqual(f["opaque"][...].tobytes(), b"\1\2\xff\xfe")
        self.assertSound(path)

    def test_over_what_is_there(self):
        path = self.file("o.h5")
        with h5py.File(path, "w", libver="latest") as f:
            d = f.create_dataset("d", data=some("<f4", (10, 4)), maxshape=(None, 4), chunks=(3, 4), compression=1)
            d.attrs["unit"] = "K"
            f["same"] = d
            f["fixed"] = some("<i4", 6)
        longer, fixed = some("<f4", (25, 4)), some("<i4", 6)
        with Mount(path, options="rw") as m:
            before = os.open(m.at("d"), os.O_RDONLY)
            numpy.save(m.at(".h5fs/npy/d.npy"), longer)
            numpy.save(m.at(".h5fs/npy/fixed.npy"), fixed)
            self.assertEqual(os.pread(before, 1 << 20, 0), longer.tobytes())
            os.close(before)
            self.same(numpy.load(m.at(".h5fs/npy/same.npy")), longer, "d")
            for bad in BAD.values():
                self.refused(m.at(".h5fs/npy/d.npy"), bad)
            self.same(numpy.load(m.at(".h5fs/npy/d.npy")), longer, "d")
        with h5py.File(path, "r") as f:
            self.same(f["same"][...], longer, "d")
            self.same(f["fixed"][...], fixed, "fixed")
            self.assertEqual((f["d"].attrs["unit"], f["d"].chunks, f["d"].compression), ("K", (3, 4), "gzip"))

    def test_the_type_stays(self):
        """A type of which NumPy sees only a part is kept."""
        path = self.file("t.h5")
        types = {"enum": h5py.enum_dtype({"red": 1, "blue": 2}, basetype=">i2"), "text": h5py.string_dtype("utf-8", 6), "opaque": "V3",
                 "array": numpy.dtype(("<u8", (2, 3))), "mixed": [("c", h5py.enum_dtype({"a": 0})), ("s", h5py.string_dtype("utf-8", 3))]}
        with h5py.File(path, "w") as f:
            for name, dtype in types.items():
                f.create_dataset(name, (3,), dtype, maxshape=(None,))
            f["committed"] = numpy.dtype([("a", "<i4")])
            f.create_dataset("typed", (3,), f["committed"], maxshape=(None,))
        with Mount(path, options="rw") as m:
            before = {name: (os.getxattr(m.at(name), "h5fs.type"), os.getxattr(m.at(name), "h5fs.maxshape")) for name in [*types, "typed"]}
            for name in before:
                array = numpy.load(m.at(f".h5fs/npy/{name}.npy"))
                for count in 3, 7:  # as many rows, and more
                    shape = (count, *array.shape[1:])
                    new = numpy.frombuffer(b"\1" * (numpy.prod(shape) * array.dtype.itemsize), array.dtype).reshape(shape)
                    numpy.save(m.at(f".h5fs/npy/{name}.npy"), new)
                    self.assertEqual((os.getxattr(m.at(name), "h5fs.type"), os.getxattr(m.at(name), "h5fs.maxshape")), before[name])
                    self.assertEqual(read(m.at(name)), new.tobytes())
        with h5py.File(path, "r") as f:
            self.assertEqual([f[name].shape for name in before], [(7,)] * len(before))
            self.assertEqual(f["typed"].id.get_type().committed(), True)
        self.assertSound(path)

    def test_another_type_or_shape(self):
        """Attributes and names stay, all else is as the file says."""
        arrays = [some("<i2", (4, 5)), some("<f8", (2000, 90)), numpy.array(7), some(NESTED, 3), some("S3", (2, 2)), some("<f8", (9, 8, 7), "F")]
        for style in (dict(libver="earliest"), dict(libver="latest")):
            path = self.file(style["libver"] + ".h5")
            with h5py.File(path, "w", **style) as f:
                f.create_dataset("chunked", data=some("<f4", (100, 40)), maxshape=(None, 40), chunks=(3, 40), compression=1)
                f.create_dataset("fixed", data=some("<f4", (100, 40)), chunks=(30, 7), shuffle=True)
                f["contiguous"], f["scalar"], f["text"] = some("<i4", 60), 5, b"text"
                for name in list(f):
                    f[name].attrs["unit"] = "K"
                    f["other " + name] = f[name]
            with Mount(path, options="rw") as m:
                names = [name for name in os.listdir(m.path) if not name.startswith("other")]
                for array in arrays:
                    for name in names:
                        fd = os.open(m.at(name), os.O_RDONLY)
                        numpy.save(m.at(f".h5fs/npy/{name}.npy"), array)
                        self.same(numpy.load(m.at(f".h5fs/npy/other {name}.npy")), array, name)
                        expected = numpy.ascontiguousarray(array).tobytes()
                        self.assertEqual(os.pread(fd, len(expected) + 1, 0), expected)
                        os.close(fd)
                for name in names[1:]:
                    numpy.save(m.at(f".h5fs/npy/{name}.npy"), arrays[0])
            with h5py.File(path, "r+") as f:
                for name in names:
                    array = arrays[0] if name in names[1:] else arrays[-1]
                    self.same(f["other " + name][...], array, name)
                    self.assertEqual((f[name].attrs["unit"], f[name], h5py.h5o.get_info(f[name].id).rc), ("K", f["other " + name], 2))
                    f[name].resize(50, 0)
            self.assertSound(path)

    def test_bad_files(self):
        path = self.file("b.h5")
        with Mount(path, options="create") as m:
            write(m.at("there"), b"x" * 100)
            os.sync()
            for i, data in enumerate(BAD.values()):
                self.refused(m.at(f".h5fs/npy/bad{i}.npy"), data)
            self.assertEqual(os.listdir(m.path), ["there"])
            self.assertEqual(read(m.at("there")), b"x" * 100)
        with h5py.File(path, "r") as f:
            self.assertEqual(list(f), ["there"])
        self.assertSound(path)

    def test_what_else_is_refused(self):
        path = self.file("e.h5")
        with Mount(path, options="create") as m:
            folder = m.at(".h5fs/npy/")
            numpy.save(folder + "a.npy", numpy.arange(5))
            for name, flags, number in (("b.txt", os.O_WRONLY, errno.EINVAL), (".npy", os.O_WRONLY, errno.EINVAL),
                                        ("b.npy", os.O_RDWR, errno.EPERM), ("a.npy", os.O_RDWR, errno.EPERM),
                                        ("%2Ea.npy", os.O_WRONLY, errno.EINVAL), ("n" * 252 + ".npy", os.O_WRONLY, errno.ENAMETOOLONG)):
                with self.subTest(name, flags=flags):
                    self.assertErrno(number, os.open, folder + name, flags | os.O_CREAT)
            for name in ("json/a.json", "png/a.png", "json/b.json", "png/b.png"):
                self.assertErrno(errno.EPERM, os.open, m.at(".h5fs", name), os.O_WRONLY | os.O_CREAT)
            self.assertErrno(errno.EPERM, os.unlink, folder + "a.npy")
            self.assertErrno(errno.EPERM, os.mkdir, folder + "d")
            fd = os.open(folder + "c.npy", os.O_WRONLY | os.O_CREAT)
            os.write(fd, npy(numpy.arange(5)))
            self.assertErrno(errno.EOPNOTSUPP, os.pwrite, fd, b"x", 0)
            self.assertEqual(os.listdir(m.path), ["a"])
            os.fsync(fd)
            self.assertEqual(sorted(os.listdir(m.path)), ["a", "c"])
            self.assertErrno(errno.EINVAL, os.write, fd, b"x")
            os.close(fd)
            # Somebody else takes the name meanwhile.
            fd = os.open(folder + "taken.npy", os.O_WRONLY | os.O_CREAT)
            os.write(fd, npy(numpy.arange(5)))
            os.mkdir(m.at("taken"))
            self.assertErrno(errno.EEXIST, os.fsync, fd)
            os.rmdir(m.at("taken"))
            os.close(fd)
            self.assertEqual(sorted(os.listdir(m.path)), ["a", "c", "taken"])
            # The group is removed meanwhile.
            os.mkdir(m.at("gone"))
            fd = os.open(folder + "gone/a.npy", os.O_WRONLY | os.O_CREAT)
            os.rmdir(m.at("gone"))
            os.write(fd, npy(numpy.arange(5)))
            self.assertErrno(errno.ENOENT, os.close, fd)
        with Mount(path) as m:
            self.assertErrno(errno.EROFS, os.open, m.at(".h5fs/npy/x.npy"), os.O_WRONLY | os.O_CREAT)
        self.assertSound(path)

    def test_killed(self):
        path = self.file("k.h5")
        with Mount(path, options="create") as m:
            numpy.save(m.at(".h5fs/npy/whole.npy"), numpy.arange(5))
            part = os.open(m.at(".h5fs/npy/part.npy"), os.O_WRONLY | os.O_CREAT)
            os.write(part, npy(numpy.arange(1000))[:-8])
            root = os.open(m.path, os.O_RDONLY)
            os.fsync(root)
            m.kill()
        with Mount(path, options="rw") as m:
            self.assertEqual(os.listdir(m.path), ["whole"])
        with h5py.File(path, "r") as f:
            self.assertEqual(f["whole"][...].tolist(), list(range(5)))


TABLES = {
    # text: the columns' types, and the rows as tuples
    b"a,b,c\n1,2.5,x\n-3,4,yy\n": ("<i8 <f8 S2", [(1, 2.5, b"x"), (-3, 4, b"yy")]),
    b"a,b\r\n1,2\r\n3,4\r\n": ("<i8 <i8", [(1, 2), (3, 4)]),
    b"a,b\r1,2\r3,4": ("<i8 <i8", [(1, 2), (3, 4)]),
    b"\xef\xbb\xbfa\n1\n": ("<i8", [(1,)]),
    b'a,b\n"x, y","say ""hi"""\n"two\nlines",""\n': ("S9 S8", [(b"x, y", b'say "hi"'), (b"two\nlines", b"")]),
    b'"a b","c""d"\n1,2\n': ("<i8 <i8", [(1, 2)]),
    b"n,e\n1,\n,2\n": ("<f8 <f8", [(1, float("nan")), (float("nan"), 2)]),
    b"n\nNaN\ninf\n-inf\n1e300\n": ("<f8", [(float("nan"),), (float("inf"),), (float("-inf"),), (1e300,)]),
    b"n,m\n 1, 2 \n3 ,4.5\n": ("<i8 <f8", [(1, 2), (3, 4.5)]),
    b"n,m\n9223372036854775807,-9223372036854775808\n1,2\n": ("<i8 <i8", [(2**63 - 1, -(2**63)), (1, 2)]),
    b"n\n9223372036854775808\n1\n": ("<f8", [(2.0**63,), (1,)]),
    b"n\n0x10\n": ("S4", [(b"0x10",)]),
    b"n\n1\n\n\n2\n": ("<i8", [(1,), (2,)]),
    b"a,b\n": ("S1 S1", []),
    b"a,b": ("S1 S1", []),
    "größe,单位\n1,µm\n2,\n".encode(): ("<i8 S3", [(1, "µm".encode()), (2, b"")]),
    b",x\n0,1\n1,2\n": ("<i8 <i8", [(0, 1), (1, 2)]),
    b'a,b\n1,x"y\n': ("<i8 S3", [(1, b'x"y')]),
}

BAD_TABLES = [b"a,b\n1\n", b"a,b\n1,2,3\n", b'a\n"x\n', b'a\n"x"y\n', b"a,a\n1,2\n", b"a\nx\0y\n", b"a\n\xff\n", b"\xff\n1\n",
              b"\n\n", b"a\0,b\n1,2\n"]


class Tables(SourceCase):
    def assertTable(self, dataset, text, types, rows):
        self.assertEqual([dataset.dtype[i].str.lstrip("|") for i in range(len(dataset.dtype))], types.split(), text)
        self.assertEqual(dataset.shape, (len(rows),), text)
        for found, row in zip(dataset[...].tolist(), rows):
            self.assertEqual(repr(found), repr(tuple(type(v)(w) for v, w in zip(found, row))), text)

    def test_types_and_forms(self):
        path = self.file("t.h5")
        with Mount(path, options="create") as m:
            for i, text in enumerate(TABLES):
                write_whole(m.at(f".h5fs/csv/t{i}.csv"), text)
            # What the view shows becomes the same again.
            for i in range(len(TABLES)):
                write_whole(m.at(f".h5fs/csv/again{i}.csv"), read(m.at(f".h5fs/csv/t{i}.csv")))
        with h5py.File(path, "r") as f:
            for i, (text, (types, rows)) in enumerate(TABLES.items()):
                self.assertTable(f[f"t{i}"], text, types, rows)
                self.assertTable(f[f"again{i}"], text, types, rows)
            names = [name.encode() for name in f[f"t{len(TABLES) - 2}"].dtype.names]
            self.assertEqual(names, [b"0", b"x"])
        self.assertSound(path)

    def test_arrays(self):
        path = self.file("a.h5")
        with Mount(path, options="create") as m:
            for name, array in {"line": some("<i8", 9), "grid": some("<f8", (6, 3)), "mixed": some("<i8", (3, 2)) / 2}.items():
                numpy.save(m.at(f".h5fs/npy/{name}.npy"), array)
                write_whole(m.at(f".h5fs/csv/again {name}.csv"), read(m.at(f".h5fs/csv/{name}.csv")))
                again = numpy.load(m.at(f".h5fs/npy/again {name}.npy"))
                self.assertEqual((again.dtype, again.tolist()), (array.dtype, array.tolist()))
        self.assertSound(path)

    def test_over_what_is_there(self):
        path = self.file("o.h5")
        rows = numpy.array([(1, 2.5, b"ab"), (3, 4.5, b"c")], [("id", "<u2"), ("x", "<f4"), ("name", "S4")])
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("d", data=rows, maxshape=(None,), chunks=(4,)).attrs["unit"] = "K"
        with Mount(path, options="rw") as m:
            self.shell('sed s/ab/xyz/ "$1" > "$2"; cp "$2" "$1"', m.at(".h5fs/csv/d.csv"), self.file("new.csv"))
            self.assertEqual(read(m.at("d")), rows.tobytes().replace(b"ab\0", b"xyz"))
            for bad in BAD_TABLES:
                self.refused(m.at(".h5fs/csv/d.csv"), bad)
            self.assertEqual(read(m.at("d")), rows.tobytes().replace(b"ab\0", b"xyz"))
            write_whole(m.at(".h5fs/csv/d.csv"), b"id,x,name\n70000,1.5,a longer name\n")
        with h5py.File(path, "r") as f:
            self.assertTable(f["d"], "d", "<i8 <f8 S13", [(70000, 1.5, b"a longer name")])
            self.assertEqual(f["d"].attrs["unit"], "K")
        self.assertSound(path)

    def test_what_old_values_owned_is_free(self):
        path = self.file("v.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("d", data=["a line of some length, number %d" % i for i in range(20000)], dtype=h5py.string_dtype())
        size = os.stat(path).st_size
        with Mount(path, options="rw") as m:
            write_whole(m.at(".h5fs/csv/d.csv"), b"n\n1\n")
            for i in range(10):
                fd = os.open(m.at(f"new{i}"), os.O_WRONLY | os.O_CREAT)
                os.write(fd, bytes(100000))
                os.fsync(fd)
                os.close(fd)
        self.assertLess(os.stat(path).st_size, size + 600_000)
        self.assertSound(path)

    def test_programs(self):
        path = self.file("p.h5")
        with Mount(path, options="create") as m:
            with open(m.at(".h5fs/csv/python.csv"), "w", newline="", encoding="utf8") as out:
                csv.writer(out).writerows([["n", "text"], [1, "a,b"], [2, 'c"d\n']])
            self.shell('{ echo n,m; cat /dev/null; (echo 1,2.5); (echo 3,x); } > "$1"', m.at(".h5fs/csv/shell.csv"))
            self.shell('seq 300000 | awk "BEGIN { print \\"i,root,word\\" } { print \\$1 \\",\\" sqrt(\\$1) \\",w\\" \\$1 % 100 }" > "$1"', m.at(".h5fs/csv/awk.csv"))
            self.assertEqual(self.shell('awk -F, "{ n += \\$1 } END { printf \\"%.0f\\", n }" "$1"', m.at(".h5fs/csv/awk.csv")), "45000150000")
        with h5py.File(path, "r") as f:
            self.assertTable(f["python"], "python", "<i8 S4", [(1, b"a,b"), (2, b'c"d\n')])
            self.assertTable(f["shell"], "shell", "<i8 S3", [(1, b"2.5"), (3, b"x")])
            self.assertEqual((len(f["awk"]), f["awk"].dtype.names, f["awk"][299999]["word"]), (300000, ("i", "root", "word"), b"w0"))
        self.assertSound(path)

    def test_bad_tables(self):
        path = self.file("b.h5")
        with Mount(path, options="create") as m:
            for i, text in enumerate(BAD_TABLES):
                self.assertErrno(errno.EINVAL, write_whole, m.at(f".h5fs/csv/bad{i}.csv"), text)
            self.assertErrno(errno.E2BIG, write_whole, m.at(".h5fs/csv/wide.csv"), b",".join(b"a%d" % i for i in range(9000)))
            self.assertEqual(os.listdir(m.path), [])
        self.assertSound(path)


class Attributes(SourceCase):
    TEXTS = {  # what is written: what h5py finds
        b"hello": "hello", b"hello\n": "hello", b"5": numpy.int64(5), b"0.5\n": numpy.float64(0.5), b"[1,2,3]": [1, 2, 3], b"": "",
        b"two\nlines\n": "two\nlines", "größe".encode(): "größe", b"[1, 2]": "[1, 2]", b"x" * 100_000: "x" * 100_000,
        b"[" + b",".join(b"%d" % i for i in range(30_000)) + b"]": list(range(30_000)),
    }

    def test_new_and_old(self):
        path = self.file("a.h5")
        with Mount(path, options="create") as m:
            os.mkdir(m.at("g"))
            write(m.at("g/d"), b"data")
            for i, text in enumerate(self.TEXTS):
                for folder in ("g", "g/d"):
                    write_whole(m.at(f".h5fs/attrs/{folder}/a{i}"), text)
                    self.assertEqual(read(m.at(f".h5fs/attrs/{folder}/a{i}")), text[:-1] if text[-1:] == b"\n" else text)
            write_whole(m.at(".h5fs/attrs/g/d%~attr"), b"7")
            self.assertErrno(errno.EISDIR, os.open, m.at(".h5fs/attrs/g/d"), os.O_WRONLY)
            for i in range(2):
                self.shell('sed s/hello/bye/ "$1" > "$2"; cp "$2" "$1"', m.at(f".h5fs/attrs/g/a{i}"), self.file("text"))
            self.shell('echo 17 > "$1"', m.at(".h5fs/attrs/g/a2"))
            self.shell(': > "$1"', m.at(".h5fs/attrs/g/empty"))
            self.assertErrno(errno.EINVAL, write_whole, m.at(".h5fs/attrs/g/a3"), b"no number")
            self.assertErrno(errno.EINVAL, write_whole, m.at(".h5fs/attrs/g/a4"), b"[1,2]")
            self.assertErrno(errno.EINVAL, os.open, m.at(".h5fs/attrs/g/%2Ea"), os.O_WRONLY | os.O_CREAT)
            self.assertErrno(errno.EPERM, os.open, m.at(".h5fs/attrs/g/a0"), os.O_RDWR)
        with h5py.File(path, "r") as f:
            for folder in ("g", "g/d"):
                for i, expected in enumerate(self.TEXTS.values()):
                    if folder == "g" and i < 3:
                        expected = ["bye", "bye", 17][i]
                    found = f[folder].attrs[f"a{i}"]
                    self.assertEqual(found.tolist() if isinstance(expected, list) else found, expected, i)
            self.assertEqual((f["g"].attrs["d"], f["g"].attrs["empty"]), (7, ""))
        self.assertSound(path)

    def test_old_headers(self):
        """A header of version 1 holds no attribute of 64 KiB."""
        path = self.file("o.h5")
        h5py.File(path, "w").close()
        with Mount(path, options="rw") as m:
            self.assertErrno(errno.E2BIG, write_whole, m.at(".h5fs/attrs/large"), b"[" + b",".join([b"1"] * 10_000) + b"]")
            write_whole(m.at(".h5fs/attrs/small"), b"[" + b",".join([b"1"] * 1000) + b"]")
        with h5py.File(path, "r") as f:
            self.assertEqual({name: len(value) for name, value in f.attrs.items()}, {"small": 1000})


class Programs(SourceCase):
    """Programs that rewrite a file make another one beside it, and rename that."""

    def make(self):
        path = self.file("p.h5")
        with h5py.File(path, "w", libver="latest") as f:
            rows = numpy.array([(1, 2.5, b"ab"), (3, 4.5, b"c")], [("id", "<u2"), ("x", "<f4"), ("name", "S4")])
            d = f.create_dataset("run/table", data=rows, maxshape=(None,), chunks=(4,))
            d.attrs["unit"], d.attrs["count"] = numpy.bytes_("kelvin"), numpy.uint8(7)
            f["run/numbers"] = numpy.arange(5, dtype=">u2")
            f["run/text"] = ["a", "b"]
        return path

    def in_views(self, m, script):
        run = subprocess.run(["bash", "-ec", script], cwd=m.at(".h5fs"), capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""), script)
        return run.stdout

    def test_programs_that_rewrite(self):
        path, table = self.make(), "csv/run/table.csv"
        with Mount(path, options="rw") as m:
            self.in_views(m, f"sed -i s/ab/xyz/ {table}; sed -i.bak s/xyz/wxyz/ {table}; cat {table}.bak; rm {table}.bak")
            self.in_views(m, f"awk -F, -v OFS=, 'NR > 1 {{ $1 *= 2 }} 1' {table} > csv/run/.new; mv csv/run/.new {table}")
            self.assertEqual(read(m.at(".h5fs", table)), b"id,x,name\n2,2.5,wxyz\n6,4.5,c\n")
            self.in_views(m, f"(head -1 {table}; tail -n +2 {table} | sort -rn) > csv/run/sorted; mv csv/run/sorted {table}")
            self.in_views(m, "sed -i s/kelvin/K/ attrs/run/table/unit; sed -i s/7/8/ attrs/run/table/count; sed -i 's/^0$/9/' lines/run/numbers")
            self.in_views(m, "jq -n '[1,2]' -c > attrs/run/table/list; sort -rn -o lines/run/numbers lines/run/numbers; rm attrs/run/table/list")
            for how in "yes", "no", "auto":
                for name in table, "attrs/run/table/unit", "lines/run/numbers":
                    command = {"c": "%s/wxyz/vim/e", "a": "s/.*/" + how, "l": "%s/9/8/e"}[name[0]]
                    self.in_views(m, f"vim.tiny -u NONE -es -N -c 'set backupskip= writebackup backupcopy={how}' -c '{command}' -c wq {name}")
            self.in_views(m, f"! sed -i s/2/x/ lines/run/numbers 2> /dev/null; ! sed -i s/2.5/2.5,3/ {table} 2> /dev/null")
            self.assertEqual(sorted(os.listdir(m.path)), ["run"])
            self.assertEqual(sorted(os.listdir(m.at(".h5fs/attrs/run/table"))), ["count", "unit"])
        with h5py.File(path, "r") as f:
            self.assertEqual([f["run/table"].dtype[i].str for i in range(3)], ["<u2", "<f4", "|S4"])
            self.assertEqual(f["run/table"][...].tolist(), [(6, 4.5, b"c"), (2, 2.5, b"vim")])
            self.assertEqual((f["run/table"].chunks, f["run/table"].attrs["count"], f["run/table"].attrs["count"].dtype), ((4,), 8, numpy.uint8))
            self.assertEqual(f["run/table"].attrs["unit"], b"auto")
            self.assertEqual((f["run/numbers"].dtype.str, f["run/numbers"][...].tolist()), (">u2", [8, 4, 3, 2, 1]))
        self.assertSound(path)

    def test_moves(self):
        path = self.make()
        with Mount(path, options="rw") as m:
            arrays = [some("<f8", (3, 4)), some("<i4", 5)]
            numpy.save(m.at(".h5fs/npy/run/new.npy"), arrays[0])
            self.in_views(m, "mv npy/run/new.npy npy/run/table.npy; mv npy/run/numbers.npy npy/moved.npy")
            with open(m.at("plain"), "wb") as out:
                numpy.save(out, arrays[1])
            self.in_views(m, "mv ../plain npy/run/made.npy; cp npy/moved.npy npy/run/.copy; mv npy/run/.copy ../bytes")
            self.same(numpy.load(m.at("bytes")), numpy.arange(5, dtype=">u2"))
            with open(m.at("plain"), "wb") as out:
                out.write(npy(arrays[1])[:-1])
            for to in "npy/run/made.npy", "npy/run/other.npy", "csv/run/made.csv":
                self.assertErrno(errno.EINVAL, os.rename, m.at("plain"), m.at(".h5fs", to))
            for name in "csv/a.txt", "csv/a.csv.d/x", "npy/a.npz", "json/sedabc":
                with self.assertRaises(OSError):
                    os.open(m.at(".h5fs", name), os.O_RDWR | os.O_CREAT)
            self.assertErrno(errno.EPERM, os.rename, m.at(".h5fs/npy/run/made.npy"), m.at(".h5fs/csv/run/made.csv"))
            self.assertErrno(errno.EPERM, os.unlink, m.at(".h5fs/csv/run/table.csv"))
            self.assertEqual(read(m.at("plain")), npy(arrays[1])[:-1])
            self.assertEqual([sorted(os.listdir(m.at(name))) for name in (".", "run")], [["bytes", "moved", "plain", "run"], ["made", "table", "text"]])
        with h5py.File(path, "r") as f:
            self.same(f["run/table"][...], arrays[0])
            self.same(f["run/made"][...], arrays[1])
            self.assertEqual((f["moved"].dtype.str, f["run/table"].attrs["count"]), (">u2", 7))
        self.assertSound(path)

    def same(self, found, expected):
        self.assertEqual((found.dtype, found.tolist()), (expected.dtype, expected.tolist()))

    def test_pandas(self):
        path = self.make()
        frame = pandas.DataFrame({"n": [1, 2, 3], "x": [0.5, float("nan"), 1e300], "word": ["a", "b, c", 'd"e\nf']})
        with Mount(path, options="rw") as m:
            for name in "csv/new.csv", "csv/run/table.csv":
                frame.to_csv(m.at(".h5fs", name), index=False)
                pandas.testing.assert_frame_equal(pandas.read_csv(m.at(".h5fs", name)), frame)
            frame.to_csv(m.at(".h5fs/csv/windows.csv"), index=False, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
            pandas.testing.assert_frame_equal(pandas.read_csv(m.at(".h5fs/csv/windows.csv")), frame)
            frame.to_csv(m.at(".h5fs/csv/index.csv"))
            pandas.testing.assert_frame_equal(pandas.read_csv(m.at(".h5fs/csv/index.csv"), index_col=0), frame, check_names=False)
        with h5py.File(path, "r") as f:
            for name in "new", "run/table", "windows":
                self.assertEqual([f[name].dtype[i].str for i in range(3)], ["<i8", "<f8", "|S5"])
                self.assertEqual(f[name]["word"].tolist(), [b"a", b"b, c", b'd"e\nf'])
        self.assertSound(path)


if __name__ == "__main__":
    main()
