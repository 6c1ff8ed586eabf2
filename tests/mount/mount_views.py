#!/usr/bin/python3
"""The tree below .h5fs, and its views as arrays and pictures: NumPy and an image library read what h5py says."""
import errno
import json
import os
import random
import struct
import subprocess
import zlib

import h5py
import numpy
from PIL import Image

from mountlib import Mount, MountCase, main, read
from viewlib import ViewCase, tree

VIEWS = ["attrs", "csv", "json", "kerchunk.json", "lines", "npy", "png", "svg", "zarr", "zarr3"]


class Tree(ViewCase):
    def make(self):
        path = self.file("tree.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f["top"] = numpy.arange(4)
            f["text"] = ["a", "b"]
            group = f.create_group("group")
            group["inside"] = numpy.arange(3.0)
            group["up"] = h5py.SoftLink("/top")
            group["beside"] = h5py.SoftLink("inside")
            group["root"] = h5py.SoftLink("/")
            group["cycle"] = f["/"]
            group["nowhere"] = h5py.SoftLink("/missing")
            group["words"] = h5py.SoftLink("/text")
            group["deep/deeper"] = 5
            group["deep/long way"] = h5py.SoftLink("//./group//deep/./deeper/.")
            f["same"] = f["top"]
            f["way"] = h5py.SoftLink("group")
            f.create_group("folder.npy")["x.npy"] = 1
            f["to.npy"] = h5py.SoftLink("folder.npy/x.npy")
            f["to folder.npy"] = h5py.SoftLink("folder.npy")
            f["%2E%2E"] = 2
            f["a%2Enpy"] = 3
            f["type"] = numpy.dtype("<i2")
            for n in (250, 252, 255, 300):
                f["n" * n] = n
            f.create_group("g" * 250 + ".npy")["x"] = 1
        return path

    def test_names_and_links(self):
        with Mount(self.make()) as m:
            long = {name for name in os.listdir(m.at(".h5fs/npy")) if len(name) > 200}
            self.assertEqual(tree(m.at(".h5fs/npy")) - {name for name in tree(m.at(".h5fs/npy")) if len(name) > 200}, {
                "top.npy", "same.npy", "group/", "group/inside.npy", "group/up.npy -> ../top.npy",
                "group/beside.npy -> inside.npy", "group/root -> ..", "group/cycle -> ..", "group/deep/",
                "group/deep/deeper.npy", "group/deep/long way.npy -> ../../group/deep/deeper.npy", "way -> group",
                "folder%2Enpy/", "folder%2Enpy/x.npy.npy", "to.npy.npy -> folder%2Enpy/x.npy.npy",
                "to folder%2Enpy -> folder%2Enpy", "%252E%252E.npy", "a%252Enpy.npy"})
            self.assertEqual(len(long), 5)
            for name in long:
                self.assertLessEqual(len(name), 255)
                path = m.at(".h5fs/npy", name)
                if name[0] == "g":
                    self.assertEqual(numpy.load(os.path.join(path, "x.npy")), 1)
                    self.assertNotEqual(name[-4:], ".npy")
                else:
                    self.assertIn(numpy.load(path), (250, 252, 255, 300))
            self.assertEqual(sum("%~" in name for name in long), 4)
            for name in ("group/up", "group/beside", "group/deep/long way", "way/beside", "to.npy"):
                self.assertTrue(os.path.samefile(m.at(".h5fs/npy", name + ".npy"),
                                                 os.path.realpath(m.at(".h5fs/npy", name + ".npy"))))
            self.assertTrue(os.path.samefile(m.at(".h5fs/npy/top.npy"), m.at(".h5fs/npy/same.npy")))
            self.assertEqual(os.stat(m.at(".h5fs/npy/top.npy")).st_nlink, 2)
            for name in ("text.npy", "top", "type.npy", "group.npy", "folder.npy", "group/nowhere.npy", ".npy",
                         "top.npy.npy", "group/words.npy"):
                self.assertFalse(os.path.lexists(m.at(".h5fs/npy", name)), name)

    def test_a_group_alone(self):
        with Mount(self.make(), options="subdir=/group") as m:
            self.assertEqual(tree(m.at(".h5fs/npy")), {
                "inside.npy", "up.npy", "beside.npy -> inside.npy", "deep/", "deep/deeper.npy", "deep/long way.npy"}
                | {name for name in tree(m.at(".h5fs/npy")) if name.startswith(("root/", "cycle/"))})
            self.assertEqual(numpy.load(m.at(".h5fs/npy/up.npy")).tolist(), [0, 1, 2, 3])
            self.assertEqual(numpy.load(m.at(".h5fs/npy/deep/long way.npy")), 5)
            self.assertEqual(json.loads(read(m.at(".h5fs/json/.json")))["class"], "group")

    def test_inodes(self):
        with Mount(self.make()) as m:
            for folder, folders, files in os.walk(m.path):
                self.assertNotIn(".h5fs", folders, folder)
            seen = {}
            for start in [m.path] + [m.at(".h5fs")]:
                for folder, folders, files in os.walk(start):
                    for name in folders + files:
                        path = os.path.join(folder, name)
                        if not os.path.islink(path):
                            seen.setdefault(os.lstat(path).st_ino, set()).add(path)
            for paths in seen.values():
                same = {(os.stat(path).st_mode, os.getxattr(path, "h5fs.address"), os.path.relpath(path, m.path).split("/")[1])
                        for path in paths if len(paths) > 1 and ".h5fs" in path}
                self.assertLessEqual(len(same), 1, paths)
            self.assertGreater(len(seen), 30)

    def test_hidden(self):
        path = self.make()
        with Mount(path) as m:
            self.assertNotIn(".h5fs", os.listdir(m.path))
            found = subprocess.run(["find", m.path], capture_output=True, text=True, check=True).stdout
            self.assertNotIn(".h5fs", found)
            self.assertEqual(sorted(os.listdir(m.at(".h5fs"))), sorted(VIEWS))
            self.assertEqual(os.listdir(m.at("%2Eh5fs")), os.listdir(m.at(".h5fs")))
            self.assertFalse(os.path.exists(m.at("group/.h5fs")))
            self.assertFalse(os.path.exists(m.at(".h5fs/.h5fs")))
            self.assertFalse(os.path.exists(m.at(".h5fs/npy/.h5fs")))
            self.assertTrue(os.path.samefile(m.at(".h5fs/npy/.."), m.at(".h5fs")))
            self.assertTrue(os.path.samefile(m.at(".h5fs/.."), m.path))
            self.assertEqual(os.listxattr(m.at(".h5fs")), [])
            self.assertErrno(errno.ENODATA, os.getxattr, m.at(".h5fs"), "h5fs.class")
            self.assertEqual(os.getxattr(m.at(".h5fs/npy/top.npy"), "h5fs.shape"), b"4")

    def test_a_link_of_that_name(self):
        """It is the user's; the views are beside it."""
        path = self.file("own.h5")
        with h5py.File(path, "w") as f:
            f[".h5fs/x"] = [1, 2]
        with Mount(path) as m:
            self.assertEqual(os.listdir(m.path), [".h5fs"])
            self.assertEqual(os.listdir(m.at(".h5fs")), ["x"])
            self.assertEqual(numpy.load(m.at("%2Eh5fs/npy/.h5fs/x.npy")).tolist(), [1, 2])

    def test_read_only(self):
        """Views that no file can become."""
        path = self.make()
        for options, code in ((None, errno.EROFS), ("rw", errno.EPERM)):
            with Mount(path, options=options) as m, self.subTest(options=options):
                file, folder = m.at(".h5fs/json/top.json"), m.at(".h5fs/json/group")
                self.assertEqual(os.stat(file).st_mode & 0o777, 0o444)
                for directory in (folder, m.at(".h5fs"), m.at(".h5fs/json")):
                    self.assertEqual(os.stat(directory).st_mode & 0o777, 0o555)
                    self.assertErrno(code, os.mkdir, os.path.join(directory, "new"))
                    self.assertErrno(code, open, os.path.join(directory, "new"), "wb")
                self.assertErrno(code, os.open, file, os.O_WRONLY)
                self.assertErrno(code, os.truncate, file, 0)
                self.assertErrno(code, os.unlink, file)
                self.assertErrno(errno.EISDIR, os.open, m.at(".h5fs"), os.O_WRONLY)

    def test_external_link(self):
        with h5py.File(self.file("other.h5"), "w") as f:
            f["group/x"] = [5, 6]
            f["group/soft"] = h5py.SoftLink("/group/x")
        with h5py.File(self.file("main.h5"), "w") as f:
            f["out"] = h5py.ExternalLink("other.h5", "/group")
            f["x"] = h5py.ExternalLink("other.h5", "/group/x")
            f["through"] = h5py.SoftLink("/out/x")
            f["gone"] = h5py.ExternalLink("missing.h5", "/x")
        with Mount(self.file("main.h5")) as m:
            self.assertEqual(tree(m.at(".h5fs/npy")),
                             {"out/", "out/x.npy", "out/soft.npy", "x.npy", "through.npy -> out/x.npy"})
            for name in ("x", "out/x", "out/soft", "through"):
                self.assertEqual(numpy.load(m.at(f".h5fs/npy/{name}.npy")).tolist(), [5, 6])

    def test_a_damaged_neighbour(self):
        path = self.file("damaged.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f["good"] = [1, 2]
            f["bad"] = [3, 4]
            address = h5py.h5o.get_info(f["bad"].id).addr
        with open(path, "r+b") as f:
            f.seek(address + 8)
            f.write(b"\xff\xff")
        with Mount(path) as m:
            self.assertEqual(os.listdir(m.at(".h5fs/npy")), ["good.npy"])
            self.assertFalse(os.path.exists(m.at(".h5fs/npy/bad.npy")))

    def test_what_is_written_shows(self):
        path = self.file("write.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("d", data=numpy.arange(9), maxshape=(None,), chunks=(4,))
        with Mount(path, options="rw") as m:
            view = m.at(".h5fs/npy/d.npy")
            kept = m.open(".h5fs/npy/d.npy", os.O_RDONLY)
            self.assertEqual(numpy.load(view).tolist(), list(range(9)))
            for i in range(9, 15):
                with open(m.at("d"), "ab", buffering=0) as f:
                    f.write(numpy.int64(i).tobytes())
                self.assertEqual(numpy.load(view).tolist(), list(range(i + 1)))
                self.assertEqual(os.pread(kept, 1 << 20, 0), read(view))
            with open(m.at("d"), "r+b", buffering=0) as f:
                f.write(numpy.int64(77).tobytes())
            self.assertEqual(numpy.load(view)[0], 77)


class Npy(ViewCase):
    def load(self, m, name, **options):
        return numpy.load(m.at(f".h5fs/npy/{name}.npy"), **options)

    def make(self):
        color = h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 42}, basetype=">i2")
        nested = numpy.dtype([("a", "i1"), ("b", [("x", ">f4"), ("y", "<u2", (2, 3))], 2), ("s", "S5")])
        padded = numpy.dtype({"names": ["late", "early"], "formats": ["<i4", "<f8"], "offsets": [20, 4], "itemsize": 32})
        pick = numpy.random.default_rng(5)
        data = {name.replace(">", "be "): pick.integers(-100, 100, (7, 5)).astype(name)
                for name in ("i1", "<i2", ">i4", "<i8", "f2", "<f4", ">f8", "c8", ">c16", "?")}
        data |= {name.replace(">", "be "): pick.integers(0, 100, (7, 5)).astype(name) for name in ("u1", "<u2", ">u4", "u8")}
        data["strings"] = numpy.array([b"one", b"two two", b""], "S9")
        data["opaque"] = numpy.frombuffer(bytes(range(24)), "V8")
        data["enum"] = numpy.array([0, 1, 42], color)
        data["nested"] = numpy.frombuffer(pick.bytes(3 * nested.itemsize), nested)
        data["padded"] = numpy.frombuffer(pick.integers(0, 100, 3 * 8, dtype="<i4").tobytes(), padded)
        data["array"] = numpy.arange(24, dtype="<i4").reshape(2, 3, 4)
        data["scalar"] = numpy.float64(2.5)
        data["empty"] = numpy.zeros((0, 3), "<f4")
        data["compressed"] = pick.integers(0, 9, (300, 500), dtype="<i4")
        data["umlaut"] = numpy.array([(1, 2)], [("gr\u00f6\u00dfe", "<i4"), ("\u65e5'\"\\ \n", "<i4")])
        data["wide"] = numpy.zeros(2, [(f"{i:06}", "S12") for i in range(3500)])
        path = self.file("types.h5")
        with h5py.File(path, "w", libver="latest") as f:
            for name, array in data.items():
                if name == "array":
                    f.create_dataset(name, (2,), numpy.dtype(("<i4", (3, 4))))[...] = array
                elif name == "compressed":
                    f.create_dataset(name, data=array, chunks=(30, 50), compression="gzip", shuffle=True)
                else:
                    f[name] = array
            f["vlen"] = ["a", "b"]
            f.create_dataset("sequence", (2,), h5py.vlen_dtype("i4"))
            f["reference"] = f["scalar"].ref
            f["null"] = h5py.Empty("f4")
        return path, data

    def test_strings_that_end_with_spaces(self):
        """As libhdf5 gives them to NumPy: without the spaces; but h5fs.raw has what is stored."""
        self.check_padding(h5py.h5t.STR_SPACEPAD, b" ")

    def test_strings_that_end_at_a_nul(self):
        """Behind it any bytes may be stored; libhdf5 gives none of them to NumPy."""
        self.check_padding(h5py.h5t.STR_NULLTERM, b"\0")

    def check_padding(self, padding, pad):
        path = self.file("padded.h5")
        kind = h5py.h5t.C_S1.copy()
        kind.set_size(6)
        kind.set_strpad(padding)
        record = h5py.h5t.create(h5py.h5t.COMPOUND, 20)
        for name, at, member in ((b"n", 0, h5py.h5t.STD_I16LE), (b"s", 2, kind), (b"two", 8, h5py.h5t.array_create(kind, (2,)))):
            record.insert(name, at, member)
        words = [w.replace(b" ", pad) for w in (b"one   ", b"two  x", b"      ", b"a b   ", b"sixsi ")] * 3000
        with h5py.File(path, "w") as f:
            for name, dtype, data in (("words", kind, b"".join(words)),
                                      ("records", record, b"".join(b"  " + w + w[::-1] + w for w in words))):
                space = h5py.h5s.create_simple((len(words),))
                d = h5py.h5d.create(f.id, name.encode(), dtype, space)
                d.write(h5py.h5s.ALL, h5py.h5s.ALL, numpy.frombuffer(data, f"V{dtype.get_size()}"), dtype)
            a = h5py.h5a.create(f.id, b"word", kind, h5py.h5s.create(h5py.h5s.SCALAR))
            a.write(numpy.frombuffer(b"ab" + 4 * pad, "V6"), kind)
        with Mount(path) as m, h5py.File(path) as f:
            for name in ("words", "records"):
                expected = f[name][()]
                for mode in (None, "r"):
                    loaded = self.load(m, name, mmap_mode=mode)
                    self.assertEqual(loaded.tobytes(), expected.tobytes())
                    del loaded  # a mapped file keeps the mount busy
                whole = read(m.at(f".h5fs/npy/{name}.npy"))
                fd = m.open(f".h5fs/npy/{name}.npy", os.O_RDONLY | os.O_DIRECT)
                for at in range(len(whole) - 300, len(whole) - 260):
                    self.assertEqual(os.pread(fd, 33, at), whole[at:at + 33])
            self.assertEqual(os.getxattr(m.path, "user.word"), b"ab")
            self.assertEqual(os.getxattr(m.path, "h5fs.raw.word"), b"ab" + 4 * pad)
            self.assertEqual(read(m.at("words")), b"".join(words))

    def test_types(self):
        path, data = self.make()
        unordered = {"names": ["late", "early"], "formats": ["<i4", "<f8"], "offsets": [20, 4], "itemsize": 32}
        with Mount(path) as m, h5py.File(path) as f:
            self.assertEqual(sorted(os.listdir(m.at(".h5fs/npy"))), sorted(name + ".npy" for name in data))
            for name, array in data.items():
                for mode in (None, "r"):
                    with self.subTest(name=name, mode=mode):
                        loaded = self.load(m, name, mmap_mode=mode, max_header_size=1 << 20)
                        expected = numpy.asarray(f[name][()])
                        if name == "padded":  # NPY knows only members in the order of their offsets
                            expected = expected.view(numpy.dtype({key: [values[1], values[0]] if key != "itemsize" else values
                                                                  for key, values in unordered.items()}))
                        self.assertEqual(loaded.shape, expected.shape)
                        self.assertEqual(loaded.dtype, expected.dtype)
                        self.assertEqual(loaded.tobytes(), expected.tobytes())
                        self.assertEqual(isinstance(loaded, numpy.memmap), bool(mode))
                        del loaded  # or it keeps the mount busy
                whole = read(m.at(f".h5fs/npy/{name}.npy"))
                self.assertEqual(whole[:6], b"\x93NUMPY")
                self.assertEqual((len(whole) - expected.nbytes) % 64, 0)
                self.assertRanges(m.at(f".h5fs/npy/{name}.npy"), whole)
            for name, version in (("scalar", 1), ("umlaut", 3), ("wide", 2)):
                self.assertEqual(read(m.at(f".h5fs/npy/{name}.npy"))[6], version, name)

    def test_dimensions_that_overflow(self):
        path = self.file("huge.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("most", ((1 << 60) - 32,), "<i8", chunks=(1 << 16,))
            f.create_dataset("more", (1 << 60,), "<i8", chunks=(1 << 16,))
            f.create_dataset("overflow", (1 << 40, 1 << 40), "<i8", chunks=(1 << 8, 1 << 8))
        with Mount(path) as m:
            for name in ("more", "overflow"):
                self.assertEqual(os.stat(m.at(f".h5fs/npy/{name}.npy")).st_size, 1)
                self.assertErrno(errno.EOVERFLOW, read, m.at(f".h5fs/npy/{name}.npy"))
            fd = m.open(".h5fs/npy/most.npy", os.O_RDONLY)
            size = os.fstat(fd).st_size
            self.assertEqual(size, 8 * ((1 << 60) - 32) + 128)
            self.assertEqual(os.pread(fd, 64, size - 8), bytes(8))


class Png(ViewCase):
    def make(self):
        pick = numpy.random.default_rng(9)
        data = {"grey": pick.integers(0, 256, (300, 701), "u1"), "colours": pick.integers(0, 256, (90, 130, 3), "u1"),
                "alpha": pick.integers(0, 256, (41, 33, 4), "u1"), "dot": numpy.array([[200]], "u1"),
                "tall": pick.integers(0, 256, (70000, 1), "u1"), "long": pick.integers(0, 256, (2, 140000), "u1")}
        scaled = {"mask": pick.integers(0, 2, (50, 61)).astype(bool), "i1": pick.integers(-128, 128, (64, 65), "i1"),
                  "<u2": pick.integers(100, 4000, (64, 65), "<u2"), ">i2": pick.integers(-3000, 3000, (331, 333)).astype(">i2"),
                  "<i4": pick.integers(-2**31, 2**31 - 1, (20, 30), "<i4"), "u8": pick.integers(0, 2**63, (20, 30), "u8"),
                  "f2": pick.normal(size=(31, 20)).astype("f2"), ">f4": pick.normal(size=(311, 200)).astype(">f4"),
                  "f8": pick.normal(size=(40, 41)), "most": pick.choice([-1.7e308, 0, 1.7e308], (30, 40)),
                  "constant": numpy.full((5, 6), 7.5), "nan": numpy.full((3, 4), numpy.nan),
                  "levels": pick.integers(0, 3, (9, 9)).astype(h5py.enum_dtype({"A": 0, "B": 1, "C": 2}, basetype="<i2"))}
        scaled["gaps"] = numpy.where(scaled["f8"] > 1, numpy.nan, scaled["f8"])
        scaled["gaps"][0, :3] = scaled["constant"][0, :3] = numpy.inf, -numpy.inf, numpy.nan
        scaled["deep colours"] = pick.normal(size=(50, 60, 3))
        path = self.file("pictures.h5")
        with h5py.File(path, "w", libver="latest") as f:
            for name, array in (data | scaled).items():
                f[name] = array
            f.create_dataset("packed", data=data["grey"], chunks=(64, 64), compression="gzip", shuffle=True)
            f["no rows"] = numpy.zeros((0, 5))
            f["line"], f["cube"], f["words"] = numpy.zeros(5), numpy.zeros((4, 4, 5)), [["a", "b"]]
            f["records"] = numpy.zeros((4, 4), [("a", "i4"), ("b", "i4")])
        data["packed"] = data["grey"]
        return path, data, scaled

    def expected(self, array):
        """By the rule of the man page."""
        if array.dtype == bool:
            return array * numpy.uint8(255)
        most, kind = (255, "u1") if array.dtype.itemsize == 1 else (65535, "u2")
        values = array.astype("f8")
        finite = values[numpy.isfinite(values)]
        low, high = (finite.min(), finite.max()) if finite.size else (0, 0)
        has_gaps = array.dtype.kind == "f" and array.ndim == 2
        if has_gaps and finite.size:
            low, high = (numpy.percentile(finite, share, method=method) for share, method in ((2, "lower"), (98, "higher")))
        with numpy.errstate(invalid="ignore"):
            part = numpy.clip((values / 2 - low / 2) / (high / 2 - low / 2), 0, 1) if high > low else values * 0
        part[numpy.isnan(values) | (values == -numpy.inf)] = 0
        part[values == numpy.inf] = 1
        samples = numpy.floor(has_gaps + part * (most - has_gaps) + 0.5)
        return numpy.where(numpy.isnan(values) & has_gaps, 0, samples).astype(kind)

    def decode(self, data):
        """Samples of a PNG without compression, from its chunks alone: what an image library makes 8 bits of."""
        at, stream, kinds = 8, b"", []
        while at < len(data):
            n, kind = struct.unpack_from(">I4s", data, at)
            body = data[at + 8:at + 8 + n]
            self.assertEqual(struct.unpack_from(">I", data, at + 8 + n)[0], zlib.crc32(kind + body))
            if kind == b"IHDR":
                width, height, depth, colour = struct.unpack(">IIBB", body[:10])
            elif kind == b"IDAT":
                stream += body
            kinds.append(kind)
            at += 12 + n
        self.assertEqual((kinds[0], kinds[-1], at), (b"IHDR", b"IEND", len(data)))
        channels = {0: 1, 2: 3, 6: 4}[colour]
        rows = numpy.frombuffer(zlib.decompress(stream), "u1").reshape(height, -1)
        self.assertFalse(rows[:, 0].any())
        samples = numpy.ascontiguousarray(rows[:, 1:]).view(">u2" if depth == 16 else "u1")
        return samples.reshape((height, width) if channels == 1 else (height, width, channels))

    def test_pictures(self):
        path, data, scaled = self.make()
        with Mount(path) as m, numpy.errstate(invalid="ignore", over="ignore"):
            self.assertEqual(sorted(os.listdir(m.at(".h5fs/png"))),
                             sorted([*(name + ".png" for name in [*data, *scaled, "no rows"]), "cube"]))
            self.assertEqual(read(m.at(".h5fs/png/no rows.png")), b"")
            for name, array in (data | scaled).items():
                with self.subTest(name=name):
                    view = m.at(f".h5fs/png/{name}.png")
                    wanted = array if name in data else self.expected(array)
                    whole = read(view)
                    self.assertRanges(view, whole)
                    numpy.testing.assert_array_equal(self.decode(whole), wanted)
                    with Image.open(view) as image:
                        if wanted.dtype == "u1" or wanted.ndim == 2:
                            numpy.testing.assert_array_equal(numpy.asarray(image), wanted)
                        else:
                            self.assertEqual(image.size, wanted.shape[1::-1])

    def test_hostile_shapes(self):
        path = self.file("hostile.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("wide", (2, 1 << 40), "u1", chunks=(1, 1 << 16))
            f.create_dataset("overflow", (1 << 33, 1 << 33), "u1", chunks=(1 << 8, 1 << 8))
            f.create_dataset("many", (1 << 30, 1 << 30), "u1", chunks=(1 << 8, 1 << 8))
        with Mount(path) as m:
            for name in ("wide", "overflow", "many"):
                self.assertEqual(os.stat(m.at(f".h5fs/png/{name}.png")).st_size, 1)
                self.assertErrno(errno.EOVERFLOW, read, m.at(f".h5fs/png/{name}.png"))


class Memory(MountCase):
    def test_large_datasets(self):
        """What a mount needs to read the views of 200 MB stays far below that."""
        path = self.file("large.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("d", (5000, 40000), "u1", chunks=(100, 4000), fillvalue=3)[::1000] = 5
            f.create_dataset("column", (200000,), "<i4", chunks=(10000,), compression="gzip")[::10] = 123456
            f["d"].attrs["long"] = numpy.arange(200000)
        # What AddressSanitizer keeps of freed memory is not the mount's.
        with Mount(path, options="cache=4M,index_cache=4M", env={"ASAN_OPTIONS": "quarantine_size_mb=1"}) as m:
            def most():
                with open(f"/proc/{m.daemon}/status") as f:
                    return next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))

            read(m.at("column"))
            before = most()
            for name in ("npy/d.npy", "png/d.png", "csv/column.csv", "json/d.json", "attrs/d/long"):
                with open(m.at(".h5fs", name), "rb") as f:
                    size = sum(len(part) for part in iter(lambda: f.read(1 << 20), b""))
                self.assertEqual(size, os.stat(m.at(".h5fs", name)).st_size)
            self.assertLess(most() - before, 60000, "KiB")


if __name__ == "__main__":
    main()
