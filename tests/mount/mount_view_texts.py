#!/usr/bin/python3
"""The views below .h5fs that are text: csv and json read what h5py says, attributes are files."""
import csv
import errno
import io
import json
import os
import random

import h5py
import numpy

from mountlib import Mount, main, read
from viewlib import ViewCase, tree


class Json(ViewCase):
    def load(self, m, name):
        text = read(m.at(f".h5fs/json/{name}.json"))
        self.assertEqual(os.stat(m.at(f".h5fs/json/{name}.json")).st_size, len(text))
        return json.loads(text)

    def make(self):
        path = self.file("meta.h5")
        with h5py.File(path, "w", libver="latest") as f:
            d = f.create_dataset("group/d", (6, 8), "<i4", maxshape=(None, 8), chunks=(4, 4), compression="gzip",
                                 compression_opts=4, shuffle=True, fillvalue=7)
            d[:4] = 1
            d.attrs["units"] = "m\u00b2 \"quoted\"\n"
            d.attrs["range"] = numpy.array([[1.5, numpy.nan], [-numpy.inf, 0.1]])
            d.attrs["long"] = numpy.arange(300000)
            d.attrs["empty"] = h5py.Empty("f4")
            d.attrs["words"] = ["a", "b"]
            d.attrs["to"] = f["group"].ref
            d.attrs["pair"] = numpy.array((1, 2.5), [("a", "i4"), ("b", "f8")])
            f["scalar"] = 2.5
            f["null"] = h5py.Empty("f4")
            f["text"] = ["one", "two"]
            f["type"] = numpy.dtype([("a", "<i2"), ("b", "<f4")])
            f["records"] = numpy.zeros(3, [("a", "<i2"), ("b", "<f4")])
            f["group"].attrs["what"] = 5
            f.attrs["title"] = "all of it"
            f["group/up"] = h5py.SoftLink("/")
            f["group/here"] = h5py.SoftLink(".")
            f["group/beside"] = h5py.SoftLink("d")
        return path

    def test_what_h5py_says(self):
        path = self.make()
        with Mount(path) as m, h5py.File(path) as f:
            d = self.load(m, "group/d")
            o = f["group/d"]
            self.assertEqual((d["class"], d["dtype"], d["type"]), ("dataset", "<i4", "H5T_STD_I32LE"))
            self.assertEqual(tuple(d["shape"]), o.shape)
            self.assertEqual(tuple(d["maxshape"]), o.maxshape)
            self.assertEqual(tuple(d["chunks"]), o.chunks)
            self.assertEqual((d["layout"], d["index"], d["fill"]), ("chunked", "earray", 7))
            filters = o.id.get_create_plist()
            for i, shown in enumerate(d["filters"]):
                number, _, values, name = filters.get_filter(i)
                self.assertEqual((shown["id"], tuple(shown["values"]), shown["name"]), (number, values, name.decode()))
            self.assertEqual([shown["name"] for shown in d["filters"]], ["shuffle", "deflate"])
            self.assertEqual(d["storage"], o.id.get_storage_size())
            self.assertEqual(d["size"], o.nbytes)
            self.assertEqual(d["address"], h5py.h5o.get_info(o.id).addr)
            attributes = d["attributes"]
            self.assertEqual(set(attributes), set(o.attrs))
            self.assertEqual(attributes["units"], o.attrs["units"])
            self.assertEqual(attributes["range"], [[1.5, "NaN"], ["-Infinity", 0.1]])
            self.assertEqual((attributes["long"], d["omitted"]), (None, ["long"]))
            self.assertEqual((attributes["empty"], attributes["words"], attributes["to"]), (None, ["a", "b"], "/group"))
            self.assertEqual(attributes["pair"], {"a": 1, "b": 2.5})
            self.assertEqual(d["attribute_types"]["range"], "(2,2)<f8")

    def test_every_kind_of_object(self):
        path = self.make()
        with Mount(path) as m, h5py.File(path) as f:
            self.assertEqual(tree(m.at(".h5fs/json")), {
                ".json", "group/", "group.json", "group/d.json", "scalar.json", "null.json", "text.json", "type.json",
                "records.json", "group/up -> ..", "group/up.json -> ../.json", "group/here -> .",
                "group/here.json -> .json", "group/beside.json -> d.json"})
            self.assertEqual(self.load(m, "")["attributes"], {"title": "all of it"})
            self.assertEqual(self.load(m, "group"), self.load(m, "group/here"))
            self.assertEqual(self.load(m, "group")["class"], "group")
            self.assertEqual(self.load(m, "group")["attributes"]["what"], f["group"].attrs["what"])
            self.assertEqual(self.load(m, "group/up")["attributes"]["title"], "all of it")
            self.assertEqual(self.load(m, "group/beside"), self.load(m, "group/d"))
            self.assertEqual((self.load(m, "scalar")["shape"], self.load(m, "null")["shape"]), ([], None))
            self.assertEqual(self.load(m, "type")["class"], "datatype")
            for name in ("type", "records"):
                self.assertEqual(self.load(m, name)["dtype"], [["a", "<i2"], ["b", "<f4"]])
            self.assertEqual(self.load(m, "text")["layout"], "contiguous")
            self.assertRanges(m.at(".h5fs/json/group/d.json"), read(m.at(".h5fs/json/group/d.json")))


class Attrs(ViewCase):
    def make(self):
        path = self.file("attrs.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f["group/d"] = [1, 2]
            f["group/link"] = h5py.SoftLink("d")
            f["group/other"] = h5py.SoftLink("/type")
            f["type"] = numpy.dtype("i4")
            f.attrs["title"] = "at the root"
            f["type"].attrs["of"] = "a type"
            a = f["group/d"].attrs
            a["units"] = "m"
            a["long"] = numpy.arange(20000, dtype="<f8").reshape(10, 50, 40) / 7
            a["big text"] = "x" * 1000000
            a["words"] = numpy.array([["a", "b,\""], ["\u00e4", ""]], dtype=h5py.string_dtype())
            a["none"] = h5py.Empty("f4")
            a["no elements"] = numpy.zeros((2, 0, 3))
            a["one"] = numpy.array([5])
            a["cube"] = numpy.arange(8).reshape(2, 2, 2)
            a["a/b"] = 1
            a["."] = 2
            a["n" * 300] = 3
            f["group"].attrs["d"] = "beside the dataset"
            f["group"].attrs["free"] = 6
        return path

    def test_any_size(self):
        path = self.make()
        with Mount(path) as m, h5py.File(path) as f:
            folder = m.at(".h5fs/attrs/group/d")
            a = f["group/d"].attrs
            self.assertEqual(read(os.path.join(folder, "units")), b"m")
            self.assertEqual(read(os.path.join(folder, "big text")), b"x" * 1000000)
            self.assertEqual(json.loads(read(os.path.join(folder, "long"))), a["long"].tolist())
            self.assertGreater(os.stat(os.path.join(folder, "long")).st_size, 1 << 18)
            self.assertErrno(errno.E2BIG, os.getxattr, m.at("group/d"), "user.long")
            for name in ("units", "words", "none", "no elements", "one", "cube"):
                self.assertEqual(read(os.path.join(folder, name)), os.getxattr(m.at("group/d"), "user." + name), name)
            self.assertEqual(read(os.path.join(folder, "a%2Fb")), b"1")
            self.assertEqual(read(os.path.join(folder, "%2E")), b"2")
            long, = (name for name in os.listdir(folder) if name.startswith("nnn"))
            self.assertEqual((read(os.path.join(folder, long)), "%~" in long), (b"3", True))
            self.assertEqual(len(os.listdir(folder)), len(a))
            for name in ("long", "big text", "words", "cube"):
                self.assertRanges(os.path.join(folder, name), read(os.path.join(folder, name)))

    def test_tree(self):
        with Mount(self.make()) as m:
            self.assertEqual({name for name in tree(m.at(".h5fs/attrs")) if "group/d/" not in name or name[-1] == "/"}, {
                "title", "type/", "type/of", "group/", "group/d/", "group/d%~attr", "group/free", "group/link -> d",
                "group/other -> ../type"})
            self.assertEqual(read(m.at(".h5fs/attrs/group/d%~attr")), b"beside the dataset")
            self.assertEqual(read(m.at(".h5fs/attrs/group/link/units")), b"m")
            for name in ("free%~attr", "d/missing", "d/units/x", "d/d", "d/a%2fb", "d/units.json"):
                self.assertFalse(os.path.lexists(m.at(".h5fs/attrs/group", name)), name)
            self.assertEqual(os.listxattr(m.at(".h5fs/attrs/group/d/units")), [])
            self.assertIn("user.units", os.listxattr(m.at(".h5fs/attrs/group/d")))
            self.assertErrno(errno.EROFS, os.open, m.at(".h5fs/attrs/group/d/units"), os.O_RDWR)
            self.assertErrno(errno.ENOTDIR, os.listdir, m.at(".h5fs/attrs/group/d/units"))

    def test_hostile_shapes(self):
        """Dimensions of no elements that would make brackets without end."""
        path = self.file("hostile.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f["d"] = 1
            space = h5py.h5s.create_simple((1 << 60, 0))
            h5py.h5a.create(f["d"].id, b"bad", h5py.h5t.NATIVE_INT32, space)
            f["d"].attrs["good"] = 1
        with Mount(path) as m:
            self.assertErrno(errno.EFBIG, read, m.at(".h5fs/attrs/d/bad"))
            self.assertEqual(read(m.at(".h5fs/attrs/d/good")), b"1")
            self.assertEqual(json.loads(read(m.at(".h5fs/json/d.json")))["attributes"], {"bad": None, "good": 1})


class Csv(ViewCase):
    def rows(self, m, name):
        """The header, and the other lines."""
        text = read(m.at(f".h5fs/csv/{name}.csv"))
        self.assertEqual(os.stat(m.at(f".h5fs/csv/{name}.csv")).st_size, len(text))
        found = list(csv.reader(io.StringIO(text.decode(), newline="")))
        return found[0], found[1:]

    def make(self):
        pick = numpy.random.default_rng(3)
        data = {"ints": pick.integers(-2**63, 2**63 - 1, 5000), "bytes": pick.integers(0, 255, (300, 7), "u1"),
                "be": pick.integers(-1000, 1000, (40, 3)).astype(">i2"), "doubles": pick.normal(size=(700, 11)) * 1e10,
                "floats": pick.normal(size=3000).astype("<f4"), "halves": pick.normal(size=300).astype(">f2"),
                "odd": numpy.array([numpy.nan, numpy.inf, -numpy.inf, 0.0, -0.0, 5e-324, 1.7976931348623157e308, 0.1]),
                "wide": pick.integers(0, 9, (2, 60000), "i1"), "flags": numpy.array([True, False, True])}
        path = self.file("csv.h5")
        words = ["plain", "", "a,b", 'say "so"', '"', "two\nlines", "r\r\n", "\u00e4\u65e5", " spaces "]
        with h5py.File(path, "w", libver="latest") as f:
            for name, array in data.items():
                f[name] = array
            f["chunked"] = f["doubles"][()]
            f.create_dataset("packed", data=data["doubles"], chunks=(64, 3), compression="gzip")
            f["words"] = words
            f["fixed"] = numpy.array([word.encode() for word in words], "S20")
            f["table of words"] = numpy.array([words[:4], words[4:8]], dtype=h5py.string_dtype())
            f["records"] = numpy.array([(1, 2.5, b"x,y", [1, 2], (3, 4.5)), (-1, 0.1, b"", [3, 4], (5, 6))],
                                       [("a", "<i4"), ("b, \"c\"", "<f8"), ("s", "S5"), ("v", "<i2", 2),
                                        ("n", [("p", "i1"), ("q", "<f4")])])
            f["complex"] = numpy.array([1 + 2j, 3 - 0.5j])
            f["enum"] = numpy.array([0, 1, 5], h5py.enum_dtype({"RED": 0, "GREEN": 1}, basetype="i1"))
            f["no rows"] = numpy.zeros((0, 3))
            f["no columns"] = numpy.zeros((3, 0))
            f["nothing"] = numpy.zeros(0)
            f["scalar"], f["cube"], f["null"] = 5, numpy.zeros((2, 2, 2)), h5py.Empty("f4")
        return path, data, words

    def test_numbers(self):
        path, data, _ = self.make()
        with Mount(path) as m:
            for name, array in data.items():
                with self.subTest(name=name):
                    head, rows = self.rows(m, name)
                    self.assertEqual(head, ["value"] if array.ndim == 1 else [str(i) for i in range(array.shape[1])])
                    if name == "flags":
                        self.assertEqual(rows, [["TRUE"], ["FALSE"], ["TRUE"]])
                        continue
                    back = numpy.array(rows, array.dtype if array.dtype.kind == "f" else object)
                    if array.dtype.kind != "f":
                        back = back.astype(int).astype(array.dtype)
                    numpy.testing.assert_array_equal(back.reshape(array.shape), array)
                    self.assertEqual(back.reshape(array.shape).tobytes(), array.tobytes())
            loaded = numpy.loadtxt(m.at(".h5fs/csv/packed.csv"), delimiter=",", skiprows=1)
            numpy.testing.assert_array_equal(loaded, data["doubles"])

    def test_strings_and_records(self):
        path, _, words = self.make()
        with Mount(path) as m:
            for name in ("words", "fixed"):
                head, rows = self.rows(m, name)
                self.assertEqual((head, [row for row, in rows]), (["value"], words))
            self.assertEqual(self.rows(m, "table of words")[1], [words[:4], words[4:8]])
            head, rows = self.rows(m, "records")
            self.assertEqual(head, ["a", 'b, "c"', "s", "v[0]", "v[1]", "n"])
            self.assertEqual(rows, [["1", "2.5", "x,y", "1", "2", '{"p":3,"q":4.5}'], ["-1", "0.1", "", "3", "4", '{"p":5,"q":6}']])
            self.assertEqual(self.rows(m, "complex"), (["r", "i"], [["1", "2"], ["3", "-0.5"]]))
            self.assertEqual(self.rows(m, "enum")[1], [["RED"], ["GREEN"], ["5"]])
            self.assertEqual(self.rows(m, "no rows"), (["0", "1", "2"], []))
            self.assertEqual(read(m.at(".h5fs/csv/no columns.csv")), b"")
            self.assertEqual(self.rows(m, "nothing"), (["value"], []))
            self.assertEqual(self.rows(m, "scalar"), (["value"], [["5"]]))
            self.assertFalse(os.path.exists(m.at(".h5fs/csv/null.csv")))
            self.assertEqual(os.listdir(m.at(".h5fs/csv/cube")), ["0000.csv", "0001.csv"])

    def test_ranges(self):
        path, _, _ = self.make()
        with Mount(path) as m:
            for name in os.listdir(m.at(".h5fs/csv")):
                if name == "cube":
                    continue
                whole = read(m.at(".h5fs/csv", name))
                self.assertRanges(m.at(".h5fs/csv", name), whole)

    def test_hostile_shapes(self):
        """Text that would take for ever is refused, or not there."""
        path = self.file("hostile.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("long", (1 << 50,), "<i4", chunks=(1 << 16,))
            f.create_dataset("wide", (0, 1 << 50), "<i4", chunks=(1, 1 << 16), maxshape=(None, 1 << 50))
        with Mount(path) as m:
            self.assertEqual(os.listdir(m.at(".h5fs/csv")), ["long.csv"])
            self.assertEqual(os.stat(m.at(".h5fs/csv/long.csv")).st_size, 1)
            self.assertErrno(errno.EOVERFLOW, read, m.at(".h5fs/csv/long.csv"))

    def test_what_is_written_shows(self):
        path = self.file("write.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("d", data=numpy.arange(3), maxshape=(None,), chunks=(4,))
        with Mount(path, options="rw") as m:
            kept = m.open(".h5fs/csv/d.csv", os.O_RDONLY)
            for i in range(3, 12):
                with open(m.at("d"), "ab", buffering=0) as f:
                    f.write(numpy.int64(i).tobytes())
                self.assertEqual(self.rows(m, "d")[1], [[str(k)] for k in range(i + 1)])
                self.assertEqual(os.pread(kept, 1 << 20, 0), read(m.at(".h5fs/csv/d.csv")))
            with open(m.at("d"), "r+b", buffering=0) as f:
                f.write(numpy.int64(7).tobytes())
            self.assertEqual(self.rows(m, "d")[1][0], ["7"])


if __name__ == "__main__":
    main()
