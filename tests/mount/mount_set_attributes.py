#!/usr/bin/python3
"""Attributes are set, made and removed in a mount, in every storage form, and libhdf5 reads them and goes on."""
import errno
import json
import os
import random

import h5py
import numpy

import judges
from mountlib import Mount, MountCase, main, read, write

STYLES = {  # how the files are made that attributes are set in
    "earliest": dict(libver="earliest"),
    "latest": dict(libver="latest"),
    "ordered": dict(libver="latest", track_order=True),
    "v108": dict(libver=("earliest", "v108")),
}

COMPOUND = numpy.dtype([("a", "<i4"), ("b", "<f8", (2,)), ("s", "S4")])
ENUM = h5py.enum_dtype({"red": 1, "green": 7}, basetype="i2")


def make(path, attributes=20, **how):
    with h5py.File(path, "w", **how) as f:
        f["d"] = numpy.arange(10)
        f["group/inner"] = 1.5
        f["named"] = numpy.dtype("<f4")
        for i in range(attributes):
            f["group"].attrs[f"a{i:02}"] = i
        return path


def attributes_of(h5):
    """Of all objects: name, value as our text should be. h5: h5py.File"""
    found = {}
    for name in "/", "d", "group", "group/inner", "named":
        found[name] = {}
        for key in h5[name].attrs:
            value = h5[name].attrs[key]
            if isinstance(value, str):
                found[name][key] = value
            elif isinstance(value, numpy.ndarray):
                found[name][key] = json.dumps(value.tolist(), separators=(",", ":"), ensure_ascii=False)
            else:
                found[name][key] = json.dumps(value.item())
    return found


class SetAttributes(MountCase):
    def assertText(self, path, name, text):
        self.assertEqual(os.getxattr(path, f"user.{name}"), text.encode())

    def test_an_attribute_keeps_its_type_and_shape(self):
        values = {  # value in the file; texts that it takes; texts that it does not
            "i1": (numpy.int8(1), ["-128", "127"], ["128", "1.5", "x", "[1]", ""]),
            "u8": (numpy.uint64(1), ["18446744073709551615", "0"], ["-1", "18446744073709551616"]),
            "be": (numpy.array(3, ">i4"), ["-70000"], ["2147483648"]),
            "f4": (numpy.float32(0), ["0.1", "NaN", "-Infinity", "1e+20"], ["nothing", '[0.5]']),
            "f8": (numpy.array([1.5, 2]), ["[0.1,3]", '["NaN",0]'], ["[1]", "[1,2,3]", "1", "[1,[2]]"]),
            "two": (numpy.zeros((2, 2), "<i2"), ["[[1,2],[3,-4]]"], ["[1,2,3,4]", "[[1,2],[3]]"]),
            "s4": (numpy.bytes_(b"abc"), ["xyz", "", "a b"], ["too long"]),
            "text": ("some text", ["another, and longer, ä\n", "", "5", "[1,2]"], []),
            "texts": (numpy.array(["a", "bc"], h5py.string_dtype()), ['["x","a longer one"]', '["",""]'], ["x", '["x"]']),
            "enum": (numpy.array(7, ENUM), ["red", "green"], ["blue"]),
            "bool": (True, ["FALSE", "TRUE"], ["maybe"]),
            "compound": (numpy.array((1, (2, 3), b"x"), COMPOUND), ['{"a":-5,"b":[0.5,1e+30],"s":"yz"}'], ['{"c":1}', "[1]", "{"]),
            "opaque": (numpy.void(b"\1\2\3"), ["00ff10"], ["00ff", "zz00ff"]),
            "vlen": (None, ["[1,2,3]", "[]"], ["1", '["a"]']),
        }
        for style, how in STYLES.items():
            path = self.file(f"types-{style}.h5")
            with h5py.File(path, "w", **how) as f:
                f["d"] = 0
                for name, (value, _, _) in values.items():
                    if name == "vlen":
                        a = numpy.empty((), object)
                        a[()] = numpy.array([4], "<i4")
                        f["d"].attrs.create(name, a, dtype=h5py.vlen_dtype("<i4"))
                    else:
                        f["d"].attrs[name] = value
                types = {name: f["d"].attrs.get_id(name).get_type().encode() for name in values}
            for round in range(2):
                with Mount(path, options="rw") as m, self.subTest(style=style, round=round):
                    for name, (_, good, bad) in values.items():
                        for text in good:
                            os.setxattr(m.at("d"), f"user.{name}", text.encode())
                            self.assertText(m.at("d"), name, text)
                        for text in bad:
                            with self.subTest(name=name, text=text):
                                self.assertErrno(errno.EINVAL, os.setxattr, m.at("d"), f"user.{name}", text.encode())
                        self.assertText(m.at("d"), name, good[-1])
                with judges.File(path) as f, self.subTest(style=style):
                    self.assertEqual({name: f["d"].attrs.get_id(name).get_type().encode() for name in values}, types)
                    self.assertEqual(f["d"].attrs["u8"], 0)
                    self.assertEqual(f["d"].attrs["be"], -70000)
                    self.assertEqual(f["d"].attrs["two"].tolist(), [[1, 2], [3, -4]])
                    self.assertEqual(f["d"].attrs["text"], "[1,2]")
                    self.assertEqual(f["d"].attrs["texts"].tolist(), ["", ""])
                    self.assertEqual(f["d"].attrs["compound"].tolist()[0], -5)

    def test_a_new_attribute_reads_back_as_it_was_set(self):
        texts = {"5": "<i8", "-3": "<i8", "0.5": "<f8", "1e+30": "<f8", "[1,2]": "(2,)<i8", "[[0.5,1.5],[2.5,3.5]]": "(2, 2)<f8",
                 "5 ": "vlen str", "05": "vlen str", "hello": "vlen str", "": "vlen str", "[1, 2]": "vlen str",
                 "ä€": "vlen str", '{"a":1}': "vlen str", "[1,[2]]": "vlen str", "TRUE": "vlen str",
                 "x" * 30000: "vlen str", "99999999999999999999": None}
        for style, how in STYLES.items():
            path = make(self.file(f"new-{style}.h5"), attributes=0, **how)
            with Mount(path, options="rw") as m, self.subTest(style=style):
                for i, (text, kind) in enumerate(texts.items()):
                    for at in m.path, m.at("d"), m.at("group"), m.at("named"):
                        os.setxattr(at, f"user.n{i}", text.encode())
                        self.assertText(at, f"n{i}", text)
                    if kind:
                        self.assertEqual(os.getxattr(m.at("d"), f"h5fs.type.n{i}").decode().replace(" ", ""), kind.replace(" ", ""))
            with Mount(path) as m, self.subTest(style=style):
                for i, text in enumerate(texts):
                    self.assertText(m.at("group"), f"n{i}", text)
                self.assertEqual(len(os.listxattr(m.at("d"))), len(texts))
            with judges.File(path) as f, self.subTest(style=style):
                self.assertEqual(len(f["named"].attrs), len(texts))
                self.assertEqual(f["d"].attrs["n0"], 5)
                self.assertEqual(f["d"].attrs["n4"].tolist(), [1, 2])
                self.assertEqual(f["group"].attrs["n8"], "hello")

    def test_bytes_and_references(self):
        path = self.file("bytes.h5")
        with h5py.File(path, "w") as f:
            f["a/b c"] = 1
            f["d"] = 0
            f["d"].attrs["ref"] = f["d"].ref
            f["d"].attrs["n"] = numpy.int32(7)
            f["d"].attrs["s"] = "text"
        with Mount(path, options="rw") as m:
            os.setxattr(m.at("d"), "user.ref", b"/a/b c")
            self.assertText(m.at("d"), "ref", "/a/b c")
            self.assertErrno(errno.EINVAL, os.setxattr, m.at("d"), "user.ref", b"/nowhere")
            os.setxattr(m.at("d"), "h5fs.raw.n", b"\1\0\0\1")
            self.assertText(m.at("d"), "n", "16777217")
            self.assertErrno(errno.EINVAL, os.setxattr, m.at("d"), "h5fs.raw.n", b"\1")
            self.assertErrno(errno.EINVAL, os.setxattr, m.at("d"), "h5fs.raw.s", bytes(16))
            self.assertErrno(errno.ENODATA, os.setxattr, m.at("d"), "h5fs.raw.missing", b"1")
        with Mount(path, options="rw,xattr=raw") as m:
            os.setxattr(m.at("d"), "user.n", b"\2\0\0\0")
            os.setxattr(m.at("d"), "user.new", b"\0\1\xff")
            self.assertEqual(os.getxattr(m.at("d"), "user.new"), b"\0\1\xff")
        with judges.File(path) as f:
            self.assertEqual(f[f["d"].attrs["ref"]].name, "/a/b c")
            self.assertEqual(f["d"].attrs["n"], 2)
            self.assertEqual(f["d"].attrs["new"].tolist(), [0, 1, 255])

    def test_types_are_set(self):
        new = {"<f4": "0", "(3,)<i4": "[0,0,0]", "S10": "", "vlen str": "", "(2,)vlen str": '["",""]', "|b1": "FALSE",
               "<c16": '{"r":0,"i":0}', '[["a","<i4"],["b","S4"]]': '{"a":0,"b":""}', "(2,2)>u2": "[[0,0],[0,0]]"}
        shown = {"|b1": "|i1", "<c16": '[["r","<f8"],["i","<f8"]]'}
        good = [  # the text that makes an attribute; types that it can be converted to, and what it is then
            ("5", ["<i4", "|u1", "<f8", ">f4", "S4", "vlen str", "<i8"]),
            ("0.5", ["<f4", "<f2", "S3", "<f8"]),
            ("0.1", ["<f4", "<f8"]),
            ("[1,2]", ["(2,)<i4", "vlen str", "(2,)<f4", "S5", "(2,)|i1"]),
            ('["a","bcd"]', ["(2,)S3", "(2,)vlen str", "vlen str"]),
            ("a text", ["S6", "S20", "vlen str"]),
            ("", ["S4", "vlen str", "S1"]),
            ('{"a":3,"b":"x"}', ['[["a","<i4"],["b","S4"]]', "vlen str"]),
        ]
        bad = [("300", ["|u1", "S2", "(1,)<i4", "f9", ""]), ("-1", ["<u8"]), ("0.5", ["<i8", "S2"]), ("0.123456789", ["<f4"]),
               ("[1,2]", ["<i4", "(3,)<i8", "(2,1)<i8"]), ("a text", ["S5", "<i8", "nonsense"]), ("", ["<i8", "(2,)S1"]), ("9007199254740993", ["<f8"])]
        for style, how in STYLES.items():
            path = make(self.file(f"set-types-{style}.h5"), attributes=12, **how)
            with Mount(path, options="rw") as m, self.subTest(style=style):
                for i, (kind, text) in enumerate(new.items()):
                    os.setxattr(m.at("d"), f"h5fs.type.new{i}", kind.encode())
                    got = os.getxattr(m.at("d"), f"h5fs.type.new{i}").decode()
                    self.assertEqual(got.replace(" ", ""), shown.get(kind, kind).replace(" ", ""))
                    self.assertText(m.at("d"), f"new{i}", text)
                for at in m.at("d"), m.at("group"):
                    for text, kinds in good:
                        os.setxattr(at, "user.x", text.encode())
                        for kind in kinds:
                            with self.subTest(text=text, kind=kind):
                                os.setxattr(at, "h5fs.type.x", kind.encode())
                                self.assertText(at, "x", text)
                                got = os.getxattr(at, "h5fs.type.x").decode()
                                self.assertEqual(got.replace(" ", ""), kind.replace(" ", ""))
                        os.removexattr(at, "user.x")
                    for text, kinds in bad:
                        os.setxattr(at, "user.x", text.encode())
                        before = os.getxattr(at, "h5fs.type.x")
                        for kind in kinds:
                            with self.subTest(text=text, kind=kind):
                                self.assertErrno(errno.EINVAL, os.setxattr, at, "h5fs.type.x", kind.encode())
                                self.assertText(at, "x", text)
                                self.assertEqual(os.getxattr(at, "h5fs.type.x"), before)
                        os.removexattr(at, "user.x")
                self.assertErrno(errno.EEXIST, os.setxattr, m.at("d"), "h5fs.type.new0", b"<f8", os.XATTR_CREATE)
                self.assertErrno(errno.ENODATA, os.setxattr, m.at("d"), "h5fs.type.none", b"<f8", os.XATTR_REPLACE)
                self.assertErrno(errno.EPERM, os.removexattr, m.at("d"), "h5fs.type.new0")
                os.setxattr(m.at("d"), "user.new1", b"[1,2,3]")
                os.setxattr(m.at("d"), "h5fs.type.new1", b"(3,)<f8")
            with judges.File(path) as f, self.subTest(style=style):
                self.assertEqual(f["d"].attrs["new0"].dtype, numpy.dtype("<f4"))
                self.assertEqual(f["d"].attrs["new1"].tolist(), [1.0, 2.0, 3.0])
                self.assertEqual(f["d"].attrs["new3"], "")
                self.assertEqual(f["d"].attrs["new4"].tolist(), ["", ""])

    def test_a_committed_type_counts_who_has_it(self):
        for style, how in STYLES.items():
            path = make(self.file(f"{style}.h5"), **how)
            with h5py.File(path, "r+") as f:
                for item in f["d"], f["group"]:
                    for name in "converted", "removed", "set":
                        item.attrs.create(name, 1, dtype=f["named"])
                self.assertEqual(h5py.h5o.get_info(f["named"].id).rc, 7)
            with Mount(path, options="rw") as m:
                for name in "d", "group":
                    os.setxattr(m.at(name), "h5fs.type.converted", b"<i8")
                    os.removexattr(m.at(name), "user.removed")
                    os.setxattr(m.at(name), "user.set", b"2")
                self.assertEqual(os.stat(m.at("named")).st_nlink, 3)
            with judges.File(path) as f, self.subTest(style):
                self.assertEqual(h5py.h5o.get_info(f["named"].id).rc, 3)
                self.assertEqual((f["d"].attrs["converted"], f["d"].attrs["set"]), (1, 2))

    def test_large_attributes(self):
        """Over 64 KiB of bytes an attribute is no message of a header any more."""
        numbers = "[" + ",".join(["7"] * 30000) + "]"
        for style, how in STYLES.items():
            path = make(self.file(f"large-{style}.h5"), attributes=3, **how)
            with Mount(path, options="rw") as m, self.subTest(style=style):
                for at in m.at("d"), m.at("group"):
                    os.setxattr(at, "user.text", b"x" * 65536)
                    if style in ("earliest", "v108"):  # version 1 of headers
                        self.assertErrno(errno.E2BIG, os.setxattr, at, "user.numbers", numbers.encode())
                        continue
                    os.setxattr(at, "user.numbers", numbers.encode())
                    os.setxattr(at, "user.numbers", numbers.replace("7", "8").encode())
                    self.assertText(at, "numbers", numbers.replace("7", "8"))
            with judges.File(path) as f, self.subTest(style=style):
                self.assertEqual(f["group"].attrs["text"], "x" * 65536)
                if style not in ("earliest", "v108"):
                    self.assertEqual(f["group"].attrs["numbers"].tolist(), [8] * 30000)
                    self.assertEqual(f["d"].attrs["numbers"].tolist(), [8] * 30000)
                self.assertEqual(f["group"].attrs["a02"], 2)

    def test_flags_and_names(self):
        path = make(self.file("flags.h5"))
        with Mount(path, options="rw") as m:
            at = m.at("group")
            self.assertErrno(errno.EEXIST, os.setxattr, at, "user.a01", b"5", os.XATTR_CREATE)
            self.assertErrno(errno.ENODATA, os.setxattr, at, "user.none", b"5", os.XATTR_REPLACE)
            os.setxattr(at, "user.a01", b"5", os.XATTR_REPLACE)
            os.setxattr(at, "user.made", b"5", os.XATTR_CREATE)
            os.removexattr(at, "user.made")
            self.assertErrno(errno.ENODATA, os.removexattr, at, "user.made")
            for name in "h5fs.class", "h5fs.address", "h5fs.nonsense":
                self.assertErrno(errno.EPERM, os.setxattr, at, name, b"1")
                self.assertErrno(errno.EPERM, os.removexattr, at, name)
            self.assertErrno(errno.ENOTSUP, os.setxattr, at, "security.x", b"1")
            self.assertErrno(errno.ENOTSUP, os.setxattr, at, "trusted.x", b"1")
            long = "user." + "n" * 250
            os.setxattr(at, long, b"long")
            self.assertEqual(os.getxattr(at, long), b"long")
            self.assertErrno(errno.EPERM, os.setxattr, m.at(".h5fs"), "user.x", b"1")
            self.assertErrno(errno.EPERM, os.setxattr, m.at(".h5fs/json/group.json"), "user.x", b"1")
        with judges.File(path) as f:
            self.assertEqual(f["group"].attrs["a01"], 5)
            self.assertEqual(f["group"].attrs["n" * 250], "long")
            self.assertNotIn("made", f["group"].attrs)

    def test_what_cannot_be_changed(self):
        path, other = make(self.file("refused.h5"), libver="latest"), make(self.file("other.h5"))
        with h5py.File(path, "r+") as f:
            f["away"] = h5py.ExternalLink("other.h5", "/d")
        before = read(path), read(other)
        with Mount(path) as m:
            self.assertErrno(errno.EROFS, os.setxattr, m.at("d"), "user.a", b"1")
            self.assertErrno(errno.EROFS, os.removexattr, m.at("group"), "user.a01")
        with Mount(path, options="rw") as m:
            self.assertErrno(errno.EROFS, os.setxattr, m.at("away"), "user.a", b"1")
        with Mount(path, options="rw,swmr") as m:
            self.assertErrno(errno.EPERM, os.setxattr, m.at("d"), "user.a", b"1")
            self.assertErrno(errno.EPERM, os.removexattr, m.at("group"), "user.a01")
        self.assertEqual((read(path), read(other)), before)

    def test_views_follow_at_once(self):
        path = make(self.file("views.h5"))
        with Mount(path, options="rw") as m:
            os.setxattr(m.at("d"), "user.units", b"km")
            document = json.loads(read(m.at(".h5fs/json/d.json")))
            self.assertIn("km", json.dumps(document))
            os.setxattr(m.at("d"), "user.units", b"miles")
            self.assertIn("miles", json.dumps(json.loads(read(m.at(".h5fs/json/d.json")))))
            self.assertEqual(read(m.at(".h5fs/attrs/d/units")).strip(), b"miles")
            self.assertIn("user.units", os.listxattr(m.at("d")))
            os.removexattr(m.at("d"), "user.units")
            self.assertEqual(os.listxattr(m.at("d")), [])
            self.assertFalse(os.path.exists(m.at(".h5fs/attrs/d/units")))

    def test_attributes_and_rows_of_one_dataset(self):
        """The header changes while rows wait for their commit, and the other way round."""
        for style, how in STYLES.items():
            path = self.file(f"rows-{style}.h5")
            with h5py.File(path, "w", **how) as f:
                f.create_dataset("rows", (0, 4), maxshape=(None, 4), chunks=(8, 4), dtype="<i4")
            with Mount(path, options="rw") as m, self.subTest(style=style):
                with open(m.at("rows"), "ab", buffering=0) as f:
                    for i in range(30):
                        f.write(numpy.arange(4 * i, 4 * i + 4, dtype="<i4").tobytes())
                        os.setxattr(m.at("rows"), f"user.row{i}", str(i).encode())
                        if i % 7 == 3:
                            os.fsync(f.fileno())
                        if i % 5 == 4:
                            os.removexattr(m.at("rows"), f"user.row{i - 2}")
            with judges.File(path) as f, self.subTest(style=style):
                self.assertEqual(f["rows"][...].ravel().tolist(), list(range(120)))
                self.assertEqual(sorted(f["rows"].attrs), sorted(f"row{i}" for i in range(30) if i % 5 != 2))

    def test_synced_attributes_survive_a_kill(self):
        for style, how in STYLES.items():
            path = make(self.file(f"kill-{style}.h5"), **how)
            expected = {}
            for round in range(3):
                with Mount(path, options="rw") as m:
                    for i in range(10):
                        name, text = f"k{round}{i}", "text " * (1 + 7 * i)
                        os.setxattr(m.at("group"), f"user.{name}", text.encode())
                        expected[name] = text
                    os.removexattr(m.at("group"), f"user.a{round:02}")
                    folder = os.open(m.at("group"), os.O_RDONLY)
                    os.fsync(folder)
                    os.close(folder)
                    os.setxattr(m.at("group"), "user.later", str(round).encode())
                    m.kill()
                with judges.File(path) as f, self.subTest(style=style, round=round):
                    found = {name: f["group"].attrs[name] for name in f["group"].attrs if name.startswith("k")}
                    self.assertEqual(found, expected)
                    self.assertNotIn(f"a{round:02}", f["group"].attrs)

    def test_random_changes(self):
        seed = int(os.environ.get("H5FS_SEED", "20"))
        for style, how in STYLES.items():
            dice = random.Random(f"{seed} {style}")
            path = make(self.file(f"random-{style}.h5"), attributes=dice.choice((0, 3, 12)), **how)
            with h5py.File(path, "r") as f:
                model = attributes_of(f)
            for round in range(6):
                with Mount(path, options="rw") as m, self.subTest(style=style, round=round, seed=seed):
                    for _ in range(40):
                        self.change(m, model, dice)
                    for name, attributes in model.items():
                        got = {key[5:]: os.getxattr(m.at(name) if name != "/" else m.path, key).decode()
                               for key in os.listxattr(m.at(name) if name != "/" else m.path)}
                        self.assertEqual(got, attributes, name)
                with judges.File(path) as f, self.subTest(style=style, round=round, seed=seed):
                    self.assertEqual(attributes_of(f), model)
                with h5py.File(path, "r+") as f:  # libhdf5 goes on with what we have left
                    name = dice.choice(sorted(model))
                    f[name].attrs[f"theirs{round}"] = round
                    model[name][f"theirs{round}"] = str(round)
                    if len(model[name]) > 3:
                        gone = dice.choice(sorted(model[name]))
                        del f[name].attrs[gone]
                        del model[name][gone]

    def change(self, m, model, dice):
        name = dice.choice(sorted(model))
        at, attributes = m.at(name) if name != "/" else m.path, model[name]
        if attributes and dice.random() < 0.35:
            key = dice.choice(sorted(attributes))
            os.removexattr(at, f"user.{key}")
            del attributes[key]
        elif attributes and dice.random() < 0.3:
            key = dice.choice(sorted(attributes))
            try:
                text = str(dice.randrange(1000))
                os.setxattr(at, f"user.{key}", text.encode())
                attributes[key] = text
            except OSError as e:  # an array, or a float that prints otherwise
                self.assertEqual(e.errno, errno.EINVAL)
                self.assertEqual(attributes[key][0], "[")
        else:
            key = f"k{dice.randrange(60)}"
            if key not in attributes:
                text = dice.choice(("7", "[1,2,3]", "a text", "long " * dice.randrange(1, 900)))
                os.setxattr(at, f"user.{key}", text.encode())
                attributes[key] = text


main()
