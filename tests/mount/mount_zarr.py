#!/usr/bin/python3
"""The Zarr views: zarr, xarray and dask read what h5py and netCDF4 say, and chunks are the stored bytes."""
import errno
import json
import os
import subprocess
import warnings

import dask
import fsspec
import h5py
import netCDF4
import numcodecs
import numpy
import tables
import xarray
import zarr

import zarrlib
from mountlib import Mount, main, read
from viewlib import ViewCase

warnings.simplefilter("ignore")
with open(os.environ.get("H5FS", "src/h5fs"), "rb") as binary:
    SANITIZED = b"__asan_init" in binary.read()  # what is freed stays in its memory


class Zarr(ViewCase):
    def check(self, path, **attributes):
        with h5py.File(path) as f, Mount(path) as m:
            group = zarr.open_consolidated(m.at(".h5fs/zarr"), mode="r")
            count = zarrlib.compare(self, f, group, m.at(".h5fs/zarr3"))
            self.assertEqual(zarrlib.compare(self, f, zarrlib.references(read(m.at(".h5fs/kerchunk.json")))), count)
            wanted = zarrlib.attributes(f)
            found = dict(group.attrs)
            self.assertEqual(set(found), set(wanted))
            for name, value in wanted.items():
                self.assertTrue(zarrlib.same(found[name], value), (name, found[name], value))
        with h5py.File(path) as f, Mount(path, options="zarr_chunks=decoded") as m:
            group = zarr.open_consolidated(m.at(".h5fs/zarr"), mode="r")
            self.assertEqual(zarrlib.compare(self, f, group, m.at(".h5fs/zarr3")), count)
        return count

    def test_types(self):
        path = self.file("types.h5")
        pick = numpy.random.default_rng(1)
        with h5py.File(path, "w", libver="latest") as f:
            for kind in ("i1", "<i2", ">i4", "<i8", "u1", ">u2", "<u4", ">u8", "<f2", ">f4", "<f8", "<c8", ">c16"):
                f[f"numbers/{kind}"] = pick.integers(0, 100, (3, 4)).astype(kind)
            f["scalar"] = 2.5
            f["none"] = h5py.Empty("f4")
            f["no rows"] = numpy.zeros((0, 3))
            f["bool"] = [True, False]
            f["strings"] = numpy.array([b"a", b"bc", b"\xff"])
            spaces = h5py.h5t.C_S1.copy()
            spaces.set_size(5)
            spaces.set_strpad(h5py.h5t.STR_SPACEPAD)
            h5py.h5d.create(f.id, b"spaces", spaces, h5py.h5s.create_simple((3,)))
            f["spaces"][...] = [b"a", b" bc", b""]
            ended = h5py.h5t.C_S1.copy()
            ended.set_size(5)
            how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            how.set_chunk((3,))
            h5py.h5d.create(f.id, b"ended", ended, h5py.h5s.create_simple((3,)), how)
            f["ended"].id.write_direct_chunk((0,), b"ab\0xyabcd\0\0rest")  # anything may follow the end of a string
            f["text"] = ["", "a", "b\u00e9\u4e2d", "x" * 3000]
            f.create_dataset("texts", data=numpy.array([str(i) for i in range(35)], object).reshape(5, 7),
                             dtype=h5py.string_dtype(), chunks=(2, 3), compression=1)
            f["word"] = "hello"
            f["enum"] = numpy.array([1, 2, 2], h5py.enum_dtype({"A": 1, "B": 2}, "i2"))
            f["array"] = numpy.zeros(3, numpy.dtype(("<f4", (2, 5))))
            f["opaque"] = numpy.array([b"abc", b"xyz"]).view("V3")
            f["table"] = numpy.array([(1, 2.5, [1, 2], (3,), b"xy")] * 9, numpy.dtype(
                [("a", "i1"), ("b", ">f8"), ("c", "<i2", (2,)), ("d", [("e", "<u4")]), ("s", "S3")], align=True))
            f["references"] = numpy.array([f["bool"].ref], h5py.ref_dtype)
            f.create_dataset("ragged", (2,), h5py.vlen_dtype("i4"))
            f["type"] = numpy.dtype("f8")
            f["rows"] = pick.random((700, 50, 11))
            f["large rows"] = numpy.arange(3 * 5 * 200000, dtype="u1").reshape(3, 5, 200000)
            for name, value in {"nan": numpy.nan, "inf": [numpy.inf, -numpy.inf, 1.5], "whole": 2.0, "single": numpy.float32(0.1), "half": numpy.array([0.1, 1e-7], "f2"), "int": 3, "one": [7],
                                "text": "a\u00e9", "bytes": numpy.bytes_(b"fixed"), "texts": ["a", "b"], "matrix": [[1, 2], [3, 4]],
                                "flag": True, "complex": 4.25 - 3j, "complexes": numpy.array([1, 0.1j], ">c8"), "empty": h5py.Empty("S1"), "ref": f["bool"].ref, "big": 2**63 + 5}.items():
                f.attrs[name] = f["rows"].attrs[name] = value
            f.attrs["long"] = numpy.array([[1, -2.5], [0.1, 1e300]], "longdouble")
            f.attrs["long words"] = numpy.array([numpy.nan, numpy.inf, -numpy.inf], "longdouble")
            f.attrs["nothing"] = numpy.zeros((0, 2))
            f.attrs.create("arrays", numpy.arange(12, dtype="<i4").reshape(2, 2, 3), dtype=numpy.dtype(("<i4", (2, 3))))
        self.assertEqual(self.check(path), 28)
        with Mount(path) as m:
            # A whole number has a point, else it would be an integer.
            self.assertIn(b"1.0", read(m.at(".h5fs/zarr/.zattrs")).partition(b'"long"')[2].partition(b"]")[0])

    def test_text_that_is_not_utf8(self):
        """Each byte of it is U+FFFD."""
        path = self.file("bad.h5")
        with h5py.File(path, "w") as f:
            f.create_dataset("bad", data=numpy.array([b"a\xffb\xe4\xb8", b"\x80"], object), dtype=h5py.string_dtype())
        with Mount(path) as m:
            self.assertEqual(list(zarr.open(m.at(".h5fs/zarr/bad"), mode="r")[...]), ["a\ufffdb\ufffd\ufffd", "\ufffd"])

    def test_filters(self):
        """Chunks are passed on where Zarr has the filters; else they are decoded."""
        path = self.file("filters.h5")
        data = numpy.random.default_rng(2).integers(0, 9, (50, 70))
        known = {"deflate": dict(compression=4), "shuffle": dict(shuffle=True), "both": dict(shuffle=True, compression=1),
                 "sum": dict(fletcher32=True), "all": dict(shuffle=True, compression=9, fletcher32=True),
                 "bz2": dict(compression=307, compression_opts=(9,)), "blosc": dict(compression=32001), "none": {}}
        unknown = {"lzf": dict(compression="lzf"), "szip": dict(scaleoffset=0), "lz4": dict(compression=32004), "bitshuffle": dict(compression=32008)}
        with h5py.File(path, "w") as f:
            for name, how in {**known, **unknown}.items():
                f.create_dataset(name, data=data, chunks=(16, 16), **how)
        self.check(path)
        with h5py.File(path, "r+") as f:
            how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            how.set_chunk((50, 70))
            how.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, (3,))
            h5py.h5d.create(f.id, b"zstd", h5py.h5t.NATIVE_INT64, h5py.h5s.create_simple((50, 70)), how)
            f["zstd"].id.write_direct_chunk((0, 0), numcodecs.Zstd(3).encode(data))
        with h5py.File(path) as f, Mount(path) as m:
            numpy.testing.assert_array_equal(zarr.open(m.at(".h5fs/zarr/zstd"), mode="r")[...], data)
            numpy.testing.assert_array_equal(zarrlib.Array3(m.at(".h5fs/zarr3/zstd")).read(), data)
            self.assertEqual(read(m.at(".h5fs/zarr/zstd/0.0")), f["zstd"].id.read_direct_chunk((0, 0))[1])
            for name in {**known, **unknown}:
                meta = json.loads(read(m.at(".h5fs/zarr", name, ".zarray")))
                self.assertEqual(bool(meta["compressor"] or meta["filters"]), name in known and name not in ("none", "sum"), meta)
                stored = f[name].id.read_direct_chunk((16, 64))[1]
                if f[name].fletcher32:
                    stored = stored[:-4]
                if name in known:
                    self.assertEqual(read(m.at(".h5fs/zarr", name, "1.4")), stored, name)
                else:
                    self.assertEqual(os.stat(m.at(".h5fs/zarr", name, "1.4")).st_size, 16 * 16 * 8, name)

    def test_chunks_without_a_filter(self):
        """A chunk whose mask leaves a filter out is encoded as the others are."""
        path = self.file("masks.h5")
        data = numpy.arange(64 * 3, dtype="<i4").reshape(3, 64)
        with h5py.File(path, "w") as f:
            for name, how in {"shuffled": dict(shuffle=True, compression=4), "summed": dict(fletcher32=True), "lzf": dict(compression="lzf")}.items():
                d = f.create_dataset(name, (3, 64), "<i4", chunks=(1, 64), **how)
                d[0] = data[0]
                d.id.write_direct_chunk((1, 0), data[1].tobytes(), 3)
                d.id.write_direct_chunk((2, 0), data[2].tobytes(), 1 if name != "shuffled" else 3)
        self.assertEqual(self.check(path), 3)

    def test_decoded_chunks(self):
        """With zarr_chunks=decoded no chunk is as it is stored, and small ones are joined to rows of about 1 MiB that cut none of them."""
        path = self.file("decoded.h5")
        how = dict(shuffle=True, compression=4)
        shapes = {  # of the dataset and of its chunks; of those that are shown
            "large": ((300, 300), (200, 100), (200, 100)), "rows": ((1100, 512), (100, 20), (500, 512)), "all": ((70, 50), (16, 16), (70, 50)),
            "band": ((200, 4096), (100, 50), (100, 4096)), "wide": ((150, 40000), (60, 30), (60, 30)), "planes": ((3, 600, 512), (1, 50, 40), (1, 500, 512)),
            "deep": ((4, 600, 512), (2, 50, 40), (2, 50, 40)), "empty": ((0, 5), (7, 5), (7, 5))}
        with h5py.File(path, "w") as f:
            for i, (name, (shape, chunk, _)) in enumerate(shapes.items()):
                f.create_dataset(name, data=numpy.arange(numpy.prod(shape), dtype="<i4").reshape(shape) % (1000 + i), chunks=chunk, maxshape=(None, 5) if name == "empty" else None, **how)
            f.create_dataset("hole", (1000, 300), "i2", chunks=(10, 10), fillvalue=5, **how)[400, 7] = 6
            f.create_dataset("sparse", (2**31, 1024), "i4", chunks=(8, 8), fillvalue=5, **how)[400, 7] = 6
        kerchunk = self.run_kerchunk(path).stdout
        with h5py.File(path) as f, Mount(path, options="zarr_chunks=decoded") as m:
            for name, (_, _, shown) in shapes.items():
                meta = json.loads(read(m.at(".h5fs/zarr", name, ".zarray")))
                self.assertEqual((meta["compressor"], meta["filters"]), (None, None))
                numpy.testing.assert_array_equal(zarr.open(m.at(".h5fs/zarr", name), mode="r")[...], f[name][...])
                numpy.testing.assert_array_equal(zarrlib.Array3(m.at(".h5fs/zarr3", name)).read(), f[name][...])
                if name != "empty":
                    self.assertEqual(tuple(meta["chunks"]), shown, name)
                    first = f[name][tuple(slice(n) for n in shown)]
                    self.assertEqual(read(m.at(".h5fs/zarr", name, ".".join("0" * len(shown)))), first.tobytes(), name)
            self.assertEqual(read(m.at(".h5fs/zarr/hole/0.0")), f["hole"][:].tobytes())
            self.assertEqual(zarrlib.Array3(m.at(".h5fs/zarr3/hole")).read().tobytes(), f["hole"][:].tobytes())
            # There would be too many chunks, with nothing in nearly all of them.
            self.assertEqual(json.loads(read(m.at(".h5fs/zarr/sparse/.zarray")))["chunks"], [8, 8])
            self.assertEqual(zarr.open(m.at(".h5fs/zarr/sparse"), mode="r")[400:402, 7].tolist(), [6, 5])
            self.assertEqual(read(m.at(".h5fs/kerchunk.json")), kerchunk)

    def test_fill_values(self):
        path = self.file("fill.h5")
        fills = {"default": ("f8", None), "seven": ("i4", 7), "nan": (">f4", numpy.nan), "inf": ("f8", -numpy.inf), "word": ("S4", b"ab"),
                 "complex": ("c8", 1 - 2j), "bool": ("?", True), "texts": (h5py.string_dtype(), None), "pair": ([("a", "i4"), ("b", "f8")], (1, 2.5)),
                 "unsigned": ("u8", 2**64 - 1)}
        with h5py.File(path, "w") as f:
            for name, (kind, fill) in fills.items():
                kind = kind if isinstance(kind, type(h5py.string_dtype())) else numpy.dtype(kind)
                d = f.create_dataset(name, (10, 10), kind, chunks=(3, 4), fillvalue=None if fill is None else numpy.array(fill, kind)[()])
                if name != "texts":
                    d[4, 5] = numpy.zeros((), kind)[()]
                f.create_dataset(f"{name} whole", data=numpy.zeros(3, kind) if name != "texts" else ["a"], dtype=kind, fillvalue=d.fillvalue if fill is not None else None)
                f.create_dataset(f"{name} never", (5,), kind, fillvalue=d.fillvalue if fill is not None else None)
            for name in "seven", "seven whole":
                f[name].attrs["_FillValue"] = numpy.int32(7)
            f["seven never"].attrs["_FillValue"] = numpy.int32(8)
        self.check(path)
        with h5py.File(path, "a") as f:
            f.create_dataset("very many", (2**21, 3), "i4", chunks=(1, 3))[5] = 1
        with Mount(path) as m:
            group = zarr.open(m.at(".h5fs/zarr"), mode="r")
            self.assertEqual(sorted(os.listdir(m.at(".h5fs/zarr/seven"))), [".zarray", ".zattrs", "1.1"])
            self.assertEqual(os.listdir(m.at(".h5fs/zarr3/seven/c")), ["1"])
            self.assertErrno(errno.ENOENT, os.stat, m.at(".h5fs/zarr/seven/0.0"))
            for bad in ("1", "1.1.0", "01.1", "4.0", "1.", ".1", "1.3", "99999999999999999999.1", "zarr.json", "c"):
                self.assertErrno(errno.ENOENT, os.stat, m.at(".h5fs/zarr/seven", bad))
            for bad in ("d", "c/01", "c/4", "c/1/3", "c/1/1/1", "c/0/0", "0.0"):
                self.assertFalse(os.path.exists(m.at(".h5fs/zarr3/seven", bad)), bad)
            self.assertEqual(group["seven"].fill_value, 7)
            self.assertEqual(group["seven whole"].fill_value, 7)
            self.assertEqual(group["very many"].fill_value, 0)
            self.assertEqual(os.listdir(m.at(".h5fs/zarr/very many")), [".zarray", ".zattrs", "5.0"])
            # xarray would take it for missing data, so there is none, and each chunk is a file.
            for name in "default", "unsigned", "unsigned whole", "unsigned never", "seven never":
                self.assertIsNone(group[name].fill_value, name)
            self.assertEqual(len(os.listdir(m.at(".h5fs/zarr/default"))), 2 + 4 * 3)
            self.assertEqual(read(m.at(".h5fs/zarr/unsigned/0.0")), b"\xff" * 8 * 3 * 4)
            refs = zarrlib.references(read(m.at(".h5fs/kerchunk.json")))
            self.assertIsNone(refs["unsigned never"].fill_value)
            self.assertEqual(refs["seven"].fill_value, 7)

    def make_netcdf(self, path):
        pick = numpy.random.default_rng(3)
        with netCDF4.Dataset(path, "w") as f:
            for name, n in {"time": None, "y": 20, "x": 30, "corner": 2}.items():
                f.createDimension(name, n)
            time = f.createVariable("time", "f8", ("time",))
            time.units, time.calendar = "hours since 2001-01-01", "standard"
            time[:] = numpy.arange(0, 70, 10)
            for name, n in {"y": 20, "x": 30}.items():
                f.createVariable(name, "i4", (name,))[:] = numpy.arange(n)
            f.createVariable("lat", "f4", ("y", "x"))[:] = pick.random((20, 30))
            temp = f.createVariable("temp", "f4", ("time", "y", "x"), zlib=True, chunksizes=(2, 8, 16), fill_value=-999)
            temp[:] = numpy.ma.masked_less(pick.random((7, 20, 30)), 0.1)
            temp.coordinates, temp.units = "lat", "K"
            packed = f.createVariable("packed", "i2", ("time", "x"), zlib=True, fletcher32=True)
            packed.scale_factor, packed.add_offset = numpy.float32(0.5), 2.0
            packed[:] = numpy.arange(210).reshape(7, 30)
            f.createVariable("names", str, ("y",))[:] = numpy.array([f"n{i}" for i in range(20)], object)
            f.createVariable("letters", "S1", ("y", "corner"))[:] = b"q"
            f.createVariable("bounds", "f8", ("x", "corner"))[:] = pick.random((30, 2))
            f.createVariable("unwritten", "i4", ("y",))
            # It has the name of a dimension, but another one, too: netCDF-4 writes the numbers of its dimensions.
            f.createDimension("both", 4)
            f.createVariable("both", "i4", ("both", "corner"))[:] = numpy.arange(8).reshape(4, 2)
            group = f.createGroup("inner")
            group.createDimension("z", 3)
            group.createVariable("w", "f8", ("z", "x"))[:] = 1.5
            f.title, f.number = "a test", numpy.int16(5)

    def test_netcdf(self):
        path = self.file("a.nc")
        self.make_netcdf(path)
        self.check(path)
        with Mount(path) as m, dask.config.set(scheduler="threads", num_workers=4):
            for group in None, "inner":
                # xarray refuses a variable of two dimensions that has the name of one.
                with xarray.open_dataset(path, group=group, drop_variables="both") as expected:
                    got = xarray.open_zarr(m.at(".h5fs/zarr"), group=group, drop_variables="both")
                    self.assertTrue(any(v.chunks for v in got.variables.values()))
                    xarray.testing.assert_identical(got.load(), expected.load())
            mean = xarray.open_zarr(m.at(".h5fs/zarr"), drop_variables="both")["temp"].mean("time").values
            with xarray.open_dataset(path, drop_variables="both") as expected:
                numpy.testing.assert_allclose(mean, expected["temp"].mean("time"), rtol=1e-5)
            with xarray.open_dataset(path, drop_variables="both") as expected:
                refs = fsspec.filesystem("reference", fo=m.at(".h5fs/kerchunk.json")).get_mapper("")
                got = xarray.open_zarr(refs, consolidated=False, drop_variables="both")
                xarray.testing.assert_identical(got.load(), expected.load())
            self.assertEqual(zarr.open(m.at(".h5fs/zarr/both"), mode="r").attrs["_ARRAY_DIMENSIONS"], ["both", "corner"])
            self.assertNotIn("corner", os.listdir(m.at(".h5fs/zarr")))

    def test_other_programs(self):
        """PyTables; MATLAB, whose files have a block before the superblock."""
        path = self.file("tables.h5")
        with tables.open_file(path, "w") as f:
            f.create_array("/", "plain", numpy.arange(6).reshape(2, 3), "a title")
            f.create_carray("/", "chunked", obj=numpy.arange(5000.0), filters=tables.Filters(5, "zlib", shuffle=True))
            f.create_carray("/", "blosc", obj=numpy.arange(5000), filters=tables.Filters(5, "blosc:lz4"))
            table = f.create_table("/group", "table", numpy.array([(1, 2.0, b"x")] * 40, "i4,f8,S5"), createparents=True)
            table.cols.f0.create_index()
        self.assertGreaterEqual(self.check(path), 4)
        path = self.file("matlab.mat")
        with h5py.File(path, "w", userblock_size=512) as f:
            f.create_dataset("a", data=numpy.random.rand(4, 5), chunks=(2, 5), compression=3).attrs["MATLAB_class"] = numpy.bytes_("double")
            f["text"] = numpy.array([[104], [105]], "u2")
            f["text"].attrs["MATLAB_int_decode"] = 2
            f["#refs#/a"] = [1.0]
            f["cell"] = numpy.array([[f["#refs#/a"].ref]], h5py.ref_dtype)
        with open(path, "r+b") as f:
            f.write(b"MATLAB 7.3 MAT-file".ljust(512))
        self.assertEqual(self.check(path), 3)

    def run_kerchunk(self, *arguments):
        return subprocess.run([os.environ["H5FS"], "--kerchunk", *arguments], capture_output=True, check=True)

    def test_kerchunk(self):
        """The file is the same whoever makes it and however it is read; each reference is to the bytes of a chunk."""
        path = self.file("k \u00e9.h5")
        with h5py.File(path, "w", userblock_size=1024) as f:
            d = f.create_dataset("many", (10**6, 9000), "u1", chunks=(1, 1), maxshape=(None, None))
            d[:60, :100] = numpy.arange(6000).reshape(60, 100)
            f["odd"] = numpy.arange(300001, dtype="f8")
            f["group/\u4e2d"] = [1]
            f["group/\U0001d11e"] = [2]
            f.create_dataset("group/lzf", data=numpy.arange(9), chunks=(3,), compression="lzf")
            f.create_dataset("left out", data=numpy.zeros(400000), compression="lzf")
            f.attrs["text"] = "\u00e9 \"\\ \uffff \U00010000 \U0010ffff"
        run = self.run_kerchunk(path)
        self.assertIn(b"left out is left out: its chunks are not stored as Zarr has them", run.stderr)
        with h5py.File(path) as f, open(path, "rb") as raw, Mount(path) as m:
            self.assertRanges(m.at(".h5fs/kerchunk.json"), run.stdout)
            self.assertEqual(read(m.at(".h5fs/kerchunk.json")), run.stdout)
            refs = json.loads(run.stdout)["refs"]
            self.assertEqual(sum(name.startswith("many/") for name in refs), 6002)
            self.assertFalse([name for name in refs if name.startswith("left")])
            for name in "many/0.0", "many/59.99", "many/7.80":
                url, offset, size = refs[name]
                self.assertEqual((url, size), ("file://" + os.path.realpath(path), 1))
                raw.seek(offset)
                self.assertEqual(raw.read(size)[0], f["many"][tuple(map(int, name[5:].split(".")))])
            group = zarrlib.references(run.stdout)
            for name in "odd", "group/\u4e2d", "group/\U0001d11e", "group/lzf":
                numpy.testing.assert_array_equal(group[name][...], f[name][...])
            self.assertEqual(group.attrs["text"], f.attrs["text"])
            # The chunks of odd need not end with the dataset, but with the file.
            for url, offset, size in (ref for ref in refs.values() if isinstance(ref, list)):
                self.assertLessEqual(offset + size, os.path.getsize(path))
        for given, shown in (("s3://bucket/k.h5", "s3://bucket/k.h5"), ("https://host/k.h5?secret=1#x", "https://host/k.h5"), ("k.h5", "k.h5")):
            self.assertEqual(json.loads(self.run_kerchunk("-o", f"kerchunk_url={given}", path).stdout)["refs"]["odd/0"][0], shown)

    def test_kerchunk_of_many_chunks(self):
        """Its text is made as it is printed: ten times the chunks take no more memory."""
        path, peaks = self.file("many.h5"), []
        for count in 10**5, 10**6:
            with h5py.File(path, "w", libver="latest") as f:
                how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                how.set_chunk((4,))
                how.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
                h5py.h5d.create(f.id, b"d", h5py.h5t.STD_I8LE, h5py.h5s.create_simple((4 * count,)), how)
            with subprocess.Popen([os.environ["H5FS"], "--kerchunk", "-o", "max_work=0", path], stdout=subprocess.PIPE) as run:
                found = tail = 0
                while piece := run.stdout.read(1 << 20):
                    found += piece.count(b'"d/')
                    tail = piece[-3:]
                _, status, usage = os.wait4(run.pid, 0)
                run.returncode = os.waitstatus_to_exitcode(status)
            # A key may lie over two pieces.
            self.assertEqual((run.returncode, tail), (0, b"}}\n"))
            self.assertAlmostEqual(found, count, delta=count // 100)
            peaks.append(usage.ru_maxrss)
        if not SANITIZED:
            self.assertLess(peaks[1], peaks[0] + (16 << 10))

    def test_links(self):
        with h5py.File(self.file("other.h5"), "w") as f:
            f["inner/x"] = [5, 6]
            f["inner/back"] = h5py.SoftLink("/inner")
        path = self.file("links.h5")
        with h5py.File(path, "w") as f:
            f["a/d"] = numpy.arange(3)
            f["a/up"] = h5py.SoftLink("/")
            f["a/round"] = f["/"]
            f["soft"] = h5py.SoftLink("/a/d")
            f["way"] = h5py.SoftLink("a")
            f["hard"] = f["a/d"]
            f["out"] = h5py.ExternalLink("other.h5", "/inner")
            f["nowhere"] = h5py.SoftLink("/missing")
            for name in (".zgroup", ".zarray", ".zmetadata", "zarr.json", "0.0", "c"):
                f[f"names/{name}"] = [1]
        with Mount(path) as m:
            everything = {"a", "a/d", "soft", "way", "way/d", "hard", "out", "out/x", "names", "names/0.0", "names/c"}
            for view, special in ("zarr", {"%2Ezgroup", "%2Ezarray", "%2Ezmetadata", "zarr%2Ejson"}), \
                                 ("zarr3", {"%2Ezgroup", "%2Ezarray", "%2Ezmetadata", "zarr%2Ejson"}):
                names = {f"names/{name}" for name in special} | everything
                found = {os.path.relpath(folder, m.at(".h5fs", view)) for folder, _, files in os.walk(m.at(".h5fs", view))
                         if {".zgroup", ".zarray", "zarr.json"} & set(files)} - {"."}
                self.assertEqual(found, names, view)
                if view == "zarr":
                    meta = json.loads(read(m.at(".h5fs/zarr/.zmetadata")))["metadata"]
                    known = {os.path.dirname(name) for name in meta} - {""}
                else:
                    known = set(json.loads(read(m.at(".h5fs/zarr3/zarr.json")))["consolidated_metadata"]["metadata"])
                self.assertEqual(known, names, view)
            self.assertEqual(zarr.open(m.at(".h5fs/zarr"), mode="r")["out/x"][:].tolist(), [5, 6])
            self.assertErrno(errno.EROFS, os.mkdir, m.at(".h5fs/zarr/new"))

    def test_long_paths(self):
        """An object whose path is too long is left out, and no other one."""
        path, name = self.file("long.h5"), "d" * 200
        with h5py.File(path, "w") as f:
            group = f
            for _ in range(25):
                group = group.create_group(name)
                group["e"] = [1]
            f["z"] = [1]
        groups = {"/".join([name] * n) for n in range(1, 21)}  # of 4096 bytes at most
        wanted = groups | {f"{group}/e" for group in groups} | {"z"}
        with Mount(path) as m:
            meta = json.loads(read(m.at(".h5fs/zarr/.zmetadata")))["metadata"]
            self.assertEqual({os.path.dirname(name) for name in meta} - {""}, wanted)
            self.assertEqual(set(json.loads(read(m.at(".h5fs/zarr3/zarr.json")))["consolidated_metadata"]["metadata"]), wanted)
            self.assertEqual({os.path.dirname(name) for name in json.loads(read(m.at(".h5fs/kerchunk.json")))["refs"]} - {""}, wanted)

    def test_many_chunks(self):
        """A listing has all of them, whatever the order in which it is read."""
        path = self.file("many.h5")
        with h5py.File(path, "w", libver="latest") as f:
            d = f.create_dataset("d", (60, 10**6), "u1", chunks=(1, 1), maxshape=(None, None))
            picked = {(i, j) for i in range(0, 60, 7) for j in numpy.random.default_rng(4).integers(0, 10**6, 300).tolist()}
            for i, j in picked:
                d[i, j] = 1
        with Mount(path) as m:
            names = [f"{i}.{j}" for i, j in sorted(picked)]
            self.assertEqual(os.listdir(m.at(".h5fs/zarr/d")), [".zarray", ".zattrs"] + names)
            self.assertEqual(os.listdir(m.at(".h5fs/zarr3/d/c")), [str(i) for i in range(0, 60, 7)])
            self.assertEqual(os.listdir(m.at(".h5fs/zarr3/d/c/7")), [str(j) for i, j in sorted(picked) if i == 7])
            self.assertEqual(read(m.at(".h5fs/zarr/d", names[-1])), b"\1")

    def test_requests(self):
        """A look-up tells the size of a chunk that is passed on, so that opening it asks for nothing more."""
        path = self.file("requests.h5")
        with h5py.File(path, "w") as f:
            for name, how in {"stored": dict(compression=3), "plain": {}, "decoded": dict(compression="lzf")}.items():
                f.create_dataset(name, data=numpy.arange(4000.0), chunks=(1000,), **how)
            f["rows"] = numpy.arange(10**6, dtype="i4")
            f.create_dataset("text", data=["a", "b"], chunks=(1,))  # takes work
        with Mount(path, "-f", "-d") as m:
            asked = []
            for name in "stored", "plain", "decoded", "rows", "text":
                os.stat(m.at(".h5fs/zarr", name))
                before = m.said().count("opcode: GETATTR")
                for i in range(2):
                    chunk = m.at(".h5fs/zarr", name, str(i))
                    self.assertEqual(os.stat(chunk).st_size, len(read(chunk)))
                asked.append(m.said().count("opcode: GETATTR") - before)
        self.assertEqual(asked, [0, 0, 0, 0, 2])

    def test_writable(self):
        """In a mount for writing the view is that of the file as it is."""
        path = self.file("w.h5")
        with h5py.File(path, "w") as f:
            f.create_dataset("d", data=numpy.arange(12, dtype="i4").reshape(4, 3), maxshape=(None, 3), chunks=(4, 3), compression=4)
        with Mount(path, options="rw") as m:
            group = zarr.open(m.at(".h5fs/zarr"), mode="r")
            self.assertEqual(group["d"][...].tolist(), numpy.arange(12).reshape(4, 3).tolist())
            with open(m.at("d"), "ab") as f:
                f.write(numpy.arange(12, 18, dtype="i4").tobytes())
            self.assertEqual(zarr.open(m.at(".h5fs/zarr"), mode="r")["d"][...].tolist(), numpy.arange(18).reshape(6, 3).tolist())
            os.setxattr(m.at("d"), "user.unit", b"m")
            self.assertEqual(zarr.open(m.at(".h5fs/zarr"), mode="r")["d"].attrs["unit"], "m")
            os.mkdir(m.at("new"))
            self.assertIn("new", os.listdir(m.at(".h5fs/zarr")))
            for act, *names in ((os.mkdir, "x"), (os.unlink, "d/0.0"), (os.unlink, ".zmetadata"), (os.rmdir, "new"), (os.rename, "d", "e"),
                                (os.rename, "d/0.0", "d/1.0"), (open, "d/5.5", "wb"), (open, "d/.zattrs", "r+b"), (os.rename, "new", "x")):
                arguments = [m.at(".h5fs/zarr", names[0])] + [name if act is open else m.at(".h5fs/zarr", name) for name in names[1:]]
                self.assertErrno(errno.EPERM, act, *arguments)
            self.assertEqual(sorted(os.listdir(m.path)), ["d", "new"])


if __name__ == "__main__":
    main()
