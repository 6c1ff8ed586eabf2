#!/usr/bin/python3
"""Lines become values of every class, libhdf5 reads them, and what the mount shows becomes the same values again; lines that are no values
are refused."""
import errno
import json
import os
import random
import subprocess

import h5py
import numpy

import judges
import libhdf5
from mountlib import Mount, WriteCase, main, read, write
from textlib import EVERY, EVERY_TYPE, append, bad_lines, line, of, random_text_kind, strings

KINDS = int(os.environ.get("H5FS_TEXT_KINDS", 40))
BAD = int(os.environ.get("H5FS_TEXT_BAD", 1000))


class Bad(WriteCase):
    def test_bad_lines(self):
        path, rng = self.file("bad.h5"), random.Random(1)
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("every", (0,), EVERY_TYPE, maxshape=(None,))
            strings(f, "log")
        lines = bad_lines(rng, BAD)
        good = json.dumps({name: value for name, (_, value, _) in EVERY.items()}).encode() + b"\n"
        with Mount(path, "-f", options="rw") as m:
            self.assertEqual(append(m.at("every"), good), len(good))
            shown = read(m.at("every"))
            fd = os.open(m.at("every"), os.O_WRONLY | os.O_APPEND)
            log = open(m.log, errors="replace")
            for text, member in lines:
                with self.subTest(text=text[:200], member=member):
                    self.assertErrno(errno.EINVAL, os.write, fd, text + b"\n")
                    said = log.read()
                    self.assertRegex(said, "^[^\n]*/every, address [0-9]*: refused: line 2: [^\n]*\n$")
                    if member:
                        self.assertTrue("JSON, byte" in said or f'member "{member}": ' in said, said)
            self.assertEqual(append(m.at("every"), good), len(good))
            self.assertErrno(errno.EINVAL, append, m.at("log"), b"a\0b\n")
            os.close(fd)
            self.assertEqual(read(m.at("every")), 2 * shown)
            log.close()
        with judges.File(path) as f:
            self.assertEqual((f["every"].shape, f["log"].shape), ((2,), (0,)))


class Values(WriteCase):
    """.h5fs/lines: strings of fixed length, and numbers, a value a line."""
    def test_a_value_is_a_line(self):
        path = self.file("values.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("g/words", data=numpy.array([b"a", b"bcd"], "S5"), maxshape=(None,))
            f.create_dataset("table", data=numpy.arange(6.0).reshape(2, 3) / 4)
            f.create_dataset("counts", data=numpy.arange(3, dtype=">u2"), maxshape=(None,), chunks=(2,), compression="gzip")
            f["one"], f["name"] = 42, numpy.bytes_("abc")
            f.create_dataset("colors", (0,), h5py.enum_dtype({"red": 1, "blue": 2}), maxshape=(None,))
            f["compound"], f["vlen"] = numpy.zeros(2, [("a", "i4")]), "x"
        with Mount(path) as m:
            self.assertEqual(sorted(os.listdir(m.at(".h5fs/lines"))), ["colors", "counts", "g", "name", "one", "table"])
            shown = {name: read(m.at(".h5fs/lines", name)) for name in ("g/words", "table", "counts", "one", "name", "colors")}
            self.assertEqual(shown, {"g/words": b"a\nbcd\n", "table": b"0\n0.25\n0.5\n0.75\n1\n1.25\n", "counts": b"0\n1\n2\n", "one": b"42\n",
                                     "name": b"abc\n", "colors": b""})
            self.assertEqual(os.stat(m.at(".h5fs/lines/one")).st_mode & 0o777, 0o444)
            self.assertErrno(errno.EROFS, os.open, m.at(".h5fs/lines/one"), os.O_WRONLY)
        with Mount(path, options="rw") as m:
            lines = m.at(".h5fs/lines")
            self.assertEqual(os.stat(lines + "/one").st_mode & 0o777, 0o644)
            script = "echo new >> g/words; printf '7\\n65535\\n' >> counts; seq 6 > table; echo -43 > one; echo x > name; " \
                "printf 'red\\nblue\\n1\\n' >> colors; sort -ro g/words g/words"
            subprocess.run(["bash", "-ec", script], cwd=lines, check=True)
            for name, text in (("g/words", b"longer\n"), ("counts", b"65536\n"), ("counts", b"\n"), ("colors", b"green\n"), ("g/words", b"a\0\n")):
                self.assertErrno(errno.EINVAL, append, os.path.join(lines, name), text)
            fd = os.open(lines + "/table", os.O_WRONLY | os.O_TRUNC)
            os.write(fd, b"1\n2\n")
            self.assertErrno(errno.EINVAL, os.close, fd)
            for name in os.listdir(lines):
                if name != "g":
                    text = read(os.path.join(lines, name))
                    write(os.path.join(lines, name), text)
                    self.assertEqual(read(os.path.join(lines, name)), text)
            self.assertEqual(read(m.at("g/words")), b"new\0\0bcd\0\0a\0\0\0\0")
        with judges.File(path) as f:
            self.assertEqual(f["g/words"][:].tolist(), [b"new", b"bcd", b"a"])
            self.assertEqual(f["table"][:].tolist(), [[1, 2, 3], [4, 5, 6]])
            self.assertEqual((f["counts"][:].tolist(), f["one"][()], f["name"][()]), ([0, 1, 2, 7, 65535], -43, b"x"))
            self.assertEqual(f["colors"][:].tolist(), [1, 2, 1])


class FillValues(WriteCase):
    def test_no_element_shares_what_the_fill_value_owns(self):
        path = self.file("fill.h5")
        with h5py.File(path, "w") as f:
            f.create_dataset("d", (2,), h5py.string_dtype(), maxshape=(None,), chunks=(8,), fillvalue="the fill value")
            f.create_dataset("table", (1, 2), h5py.string_dtype(), maxshape=(None, 9), chunks=(2, 2), fillvalue="x")[...] = "y"
        with Mount(path, options="rw") as m:
            self.assertEqual(read(m.at("d")), b"the fill value\n" * 2)
            append(m.at("d"), b"x\ny\n")
            self.assertErrno(errno.ENOTSUP, os.setxattr, m.at("d"), "h5fs.shape", b"9")
            for shape in b"1,3", b"2,2":
                self.assertErrno(errno.ENOTSUP, os.setxattr, m.at("table"), "h5fs.shape", shape)
            os.setxattr(m.at("table"), "h5fs.shape", b"1,1")
            self.assertEqual(read(m.at("table")), b"y\n")
            write(m.at("d"), b"new\n")
            self.assertEqual(read(m.at("d")), b"new\n")
        with h5py.File(path, "r+") as f:
            self.assertEqual((f["d"].fillvalue, list(f["d"])), (b"the fill value", [b"new"]))
            f["d"].resize((20,))
            for i in range(20):  # what an element owns goes when it is overwritten
                f["d"][i] = str(i)
        with judges.File(path) as f:
            self.assertEqual((f["d"].fillvalue, list(f["d"])), (b"the fill value", [b"%d" % i for i in range(20)]))


class Contents(WriteCase):
    def test_random_contents_of_every_class(self):
        rng = random.Random(int(os.environ.get("H5FS_TEXT_SEED", 1)))
        path, kinds = self.file("random.h5"), [random_text_kind(rng) for _ in range(KINDS)]
        values = []
        with h5py.File(path, "w", libver="latest") as f:
            for i, kind in enumerate(kinds):
                f.create_dataset(f"d{i}", (0,), kind.dtype, maxshape=(None,), chunks=(rng.choice([1, 3, 10]),),
                                 compression=rng.choice([None, "gzip"]))
        with Mount(path, options="rw") as m:
            for i, kind in enumerate(kinds):
                is_lines = os.getxattr(m.at(f"d{i}"), "h5fs.format") == b"lines"
                values.append([kind.make(rng) for _ in range(rng.randint(0, 25))])
                text = b"".join(v.encode() + b"\n" if is_lines else line(rng, v) for v in values[i])
                with open(m.at(f"d{i}"), "ab", 0) as out:
                    while text:  # in pieces of any size
                        text = text[out.write(text[:rng.choice([1, 7, 100, 10000])]):]
        self.check_random(path, kinds, values)
        with Mount(path, options="rw") as m:  # what the mount shows, written back
            shown = [read(m.at(f"d{i}")) for i in range(len(kinds))]
            for i, text in enumerate(shown):
                write(m.at(f"d{i}"), text)
            self.assertEqual([read(m.at(f"d{i}")) if text else b"" for i, text in enumerate(shown)], shown)
        self.check_random(path, kinds, values)

    def fixed_types(self):
        """Types that NumPy does not have, too."""
        h5t, types = h5py.h5t, {"long double": h5py.h5t.NATIVE_LDOUBLE, "bits": h5py.h5t.STD_B32BE, "array": h5py.h5t.array_create(h5py.h5t.STD_U64BE, (2, 3))}
        for order in h5t.ORDER_LE, h5t.ORDER_BE:
            for name, (size, exponent, bias) in {"half": (2, 5, 15), "bfloat": (2, 8, 127), "single": (4, 8, 127), "double": (8, 11, 1023)}.items():
                real, fraction = h5t.IEEE_F64LE.copy(), 8 * size - 1 - exponent
                real.set_fields(8 * size - 1, fraction, exponent, 0, fraction)
                real.set_precision(8 * size)
                real.set_size(size)
                real.set_ebias(bias)
                real.set_order(order)
                types[f"{name} {order}"] = real
            for size in 1, 2, 3, 5, 8:
                for base in h5t.STD_I64LE, h5t.STD_U64LE:
                    whole = base.copy()
                    whole.set_precision(8 * size)
                    whole.set_size(size)
                    whole.set_order(order)
                    types[f"integer {size} {base.get_sign()} {order}"] = whole
        for padding in h5t.STR_NULLTERM, h5t.STR_NULLPAD, h5t.STR_SPACEPAD:
            types[f"string {padding}"] = h5t.C_S1.copy()
            types[f"string {padding}"].set_size(6)
            types[f"string {padding}"].set_strpad(padding)
        types["enum"] = h5t.enum_create(h5t.STD_I16BE)
        types["enum"].enum_insert("größe".encode(), 300)
        types["enum"].enum_insert(b"two words", -2)
        types["padded"] = h5t.create(h5t.COMPOUND, 24)
        for name, offset, part in (("a", 1, h5t.STD_I8LE), ("b", 8, h5t.IEEE_F64BE), ("c", 19, h5t.STD_U16BE)):
            types["padded"].insert(name.encode(), offset, part)
        return types

    def element(self, rng, name, size):
        if name.startswith("string"):
            text = bytes(rng.choice(b'abc,"') for _ in range(rng.randint(0, 5)))
            return text.ljust(size, b" " if name.endswith(str(h5py.h5t.STR_SPACEPAD)) else b"\0")
        data = bytearray(rng.choice([rng.randbytes(size), bytes(rng.choice((0, 1, 127, 128)) for _ in range(size))]))
        if name == "long double":
            data[7] |= 128  # else it is no number
            data[8] |= 1
            data[10:] = bytes(size - 10)
        return bytes(data)

    def test_each_fixed_class_comes_back(self):
        """What the mount shows becomes the same bytes again, alone and inside of text."""
        rng, path, types = random.Random(int(os.environ.get("H5FS_TEXT_SEED", 1))), self.file("fixed.h5"), self.fixed_types()
        with h5py.File(path, "w", libver="latest") as f:
            for name, kind in types.items():
                size, space = kind.get_size(), h5py.h5s.create_simple((50,))
                beside = h5py.h5t.create(h5py.h5t.COMPOUND, 16 + size)
                beside.insert(b"list", 0, h5py.h5t.vlen_create(h5py.h5t.STD_I8LE))
                beside.insert(b"value", 16, kind)
                data = [self.element(rng, name, size) for _ in range(50)]
                for where, stored, rows in (name, kind, data), (f"{name}, text", beside, [bytes(16) + row for row in data]):
                    d = h5py.h5d.create(f.id, where.encode(), stored, space)
                    libhdf5.call("H5Dwrite", libhdf5.hid(d.id), libhdf5.hid(stored.id), *[libhdf5.hid(0)] * 3, b"".join(rows))
        with Mount(path, options="rw") as m:
            for name in types:
                raw = read(m.at(name))
                for file in f".h5fs/lines/{name}", f".h5fs/csv/{name}.csv", f".h5fs/npy/{name}.npy", f"{name}, text":
                    if not os.path.exists(m.at(file)):
                        continue
                    with self.subTest(file=file):
                        shown = read(m.at(file))
                        write(m.at(file), shown)
                        self.assertEqual(read(m.at(file)), shown)
                        found, size = read(m.at(name)), len(raw) // 50
                        if file.startswith(".h5fs/lines"):  # a NaN has one of many forms
                            for i, line_of in enumerate(shown.splitlines()):
                                if line_of != b"NaN":
                                    self.assertEqual(found[i * size:][:size], raw[i * size:][:size], line_of)
                        elif "npy" in file and name != f"string {h5py.h5t.STR_SPACEPAD}":
                            self.assertEqual(found, raw)
                        write(m.at(name), raw)
        judges.agree(path)

    def test_values_inside_values(self):
        """Those that h5py cannot read, h5dump prints."""
        h5t, string = h5py.h5t, h5py.h5t.py_create(h5py.string_dtype(), logical=True)
        inner = h5t.create(h5t.COMPOUND, 64)
        for name, offset, part in (("s", 0, string), ("v", 16, h5t.vlen_create(h5t.STD_I16BE)), ("two", 32, h5t.array_create(string, (2,)))):
            inner.insert(name.encode(), offset, part)
        types = {"lists": h5t.vlen_create(h5t.vlen_create(h5t.STD_I32LE)), "words": h5t.vlen_create(string), "deep": h5t.vlen_create(inner),
                 "array": h5t.array_create(h5t.vlen_create(h5t.STD_U8LE), (2, 2)), "links": h5t.vlen_create(h5t.STD_REF_OBJ)}
        lines = {"lists": [[[1, 2], [], [3]], [], [[70000]]], "words": [["north", ""], [], ["south"] * 30],
                 "deep": [[{"s": "east", "v": [1, -2], "two": ["p", "q"]}, {"s": "", "v": [], "two": ["", "west"]}], []],
                 "array": [[[[1], []], [[2, 3], [255]]]], "links": [["/words", None, "/"], []]}
        path = self.file("nested.h5")
        with h5py.File(path, "w") as f:
            for name, made in types.items():
                plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                plist.set_chunk((2,))
                h5py.h5d.create(f.id, name.encode(), made, h5py.h5s.create_simple((0,), (h5py.h5s.UNLIMITED,)), plist)
        for _ in range(2):
            with Mount(path, options="rw") as m:
                for name, values in lines.items():
                    write(m.at(name), b"".join(json.dumps(v).encode() + b"\n" for v in values))
                    self.assertEqual([json.loads(text) for text in read(m.at(name)).splitlines()], values)
                    write(m.at(name), read(m.at(name)))
            dumps = {name: subprocess.run(["h5dump", "-d", name, "-y", "-w", "0", path], check=True, capture_output=True, text=True).stdout
                     for name in types}
            self.assertIn("((1, 2), (), (3)), (), ((70000))", dumps["lists"])
            self.assertRegex(" ".join(dumps["words"].split()), r'\("north", NULL\), \(\), \("south", "south"')
            self.assertRegex(" ".join(dumps["deep"].split()), r'"east", \(1, -2\), \[ "p", "q" \]')
            self.assertRegex(" ".join(dumps["array"].split()), r"\[ \(1\), \(\), \(2, 3\), \(255\) \]")
            subprocess.run([os.environ["H5FS"], "--check", path], check=True, capture_output=True)

    def check_random(self, path, kinds, values):
        with judges.File(path) as f:
            for i, kind in enumerate(kinds):
                with self.subTest(i=i, dtype=kind.dtype):
                    self.assertEqual([of(v) for v in f[f"d{i}"][:]], [kind.model(v) for v in values[i]])


if __name__ == "__main__":
    main()
