#!/usr/bin/python3
"""netCDF-4 files by xarray: through the Zarr views and kerchunk.json it shows what it shows by netCDF's own library."""
import os
import unittest
import warnings
import zlib

import dask
import h5py
import netCDF4
import numpy
import xarray

import zarrlib
from mountlib import Mount, main, read
from viewlib import ViewCase

warnings.simplefilter("ignore")
CORPUS = os.path.join(os.environ.get("H5FS_CONFORMANCE", ""), "corpus")
# Real files: of satellites, climate models and reanalyses, of dimensions without variables, of groups, of unwritten data.
REAL = ("Unidata_netcdf4-python/test/20171025_2056.Cloud_Top_Height.nc", "fsspec_kerchunk/tests/air.nc",
        "NCAS-CMS_pyfive/tests/data/noy_AERmonZ_UKESM1-0-LL_piControl_r1i1p1f2_gnz_200001-200012.nc", "gauteh_hidefix/tests/data/jan.nc4",
        "Unidata_netcdf-c/unit_test/nctest_netcdf4_classic.nc", "Unidata_netcdf-c/ncdump/ref_no_ncproperty.nc",
        "OPENDAP_bes/modules/fileout_netcdf/data/nc4_group_atomic_puredim_2d_unlimited_comp.nc",
        "dopplershift_netcdf-java/dap4/d4tests/src/test/data/resources/testfiles/test_zerodim.nc",
        "lesserwhirls_netcdf-java/cdm-test/src/test/data/thredds/public/testdata/group.test2.nc")


def groups(path):
    with netCDF4.Dataset(path) as f:
        todo, found = [f], []
        while todo:
            group = todo.pop()
            found.append(group.path.strip("/") or None)
            todo.extend(group.groups.values())
    return found


class Xarray(ViewCase):
    def check(self, path, chunks="auto"):
        """Returns what xarray shows through the view."""
        shown = {}
        with Mount(path) as m, dask.config.set(scheduler="threads", num_workers=4):
            refs = zarrlib.References(read(m.at(".h5fs/kerchunk.json")))
            for group in groups(path):
                with xarray.open_dataset(path, engine="netcdf4", group=group) as expected:
                    got = shown[group] = xarray.open_zarr(m.at(".h5fs/zarr"), group=group, chunks=chunks)
                    self.assertEqual(list(map(str, got.dims)), [name for name in map(str, got.dims) if name in expected.dims])
                    xarray.testing.assert_identical(got.load(), expected.load())
                    for name in expected.variables:
                        self.assertEqual(got[name].dtype, expected[name].dtype, name)
                    xarray.testing.assert_identical(xarray.open_zarr(refs, group=group, consolidated=False).load(), expected)
        with h5py.File(path) as f, Mount(path) as m:
            zarrlib.compare(self, f, zarrlib.zarr.open(m.at(".h5fs/zarr"), mode="r"), m.at(".h5fs/zarr3"))
        return shown

    @unittest.skipUnless(os.path.isdir(CORPUS), "H5FS_CONFORMANCE names no folder with a corpus")
    def test_real_files(self):
        for name in REAL:
            with self.subTest(name):
                self.check(os.path.join(CORPUS, name))

    def test_times(self):
        """Calendars, bounds, packed values, coordinates of two dimensions; in chunks of dask that are not the file's."""
        path = self.file("times.nc")
        pick = numpy.random.default_rng(5)
        with netCDF4.Dataset(path, "w") as f:
            for name, n in {"time": None, "day": 40, "y": 12, "x": 17, "edge": 2}.items():
                f.createDimension(name, n)
            for name, unit, calendar in (("time", "seconds since 1970-01-01 00:00:00", "gregorian"), ("day", "days since 2000-02-27", "noleap")):
                v = f.createVariable(name, "f8", (name,), zlib=True)
                v.units, v.calendar, v.bounds = unit, calendar, name + "_edges"
                v[:] = numpy.arange(40) * 7.25
                f.createVariable(name + "_edges", "f8", (name, "edge"))[:] = pick.random((40, 2)) * 100
            f.createVariable("lat", "f8", ("y", "x"), zlib=True, chunksizes=(5, 5))[:] = pick.random((12, 17))
            f.createVariable("lon", "f4", ("y", "x"), fill_value=numpy.nan)[:] = pick.random((12, 17))
            for name, kind, how in (("t", "i2", dict(zlib=True, shuffle=True, fill_value=-32767)), ("q", "f4", dict(fletcher32=True)), ("n", "u1", dict(zlib=True, fill_value=255)),
                                    ("z", "i8", dict(compression="zstd" if f.has_zstd_filter() else None)), ("b", ">f8", dict(endian="big"))):
                v = f.createVariable(name, kind, ("time", "y", "x"), chunksizes=(7, 5, 17), **how)
                v.coordinates = "lat lon"
                if name == "t":
                    v.scale_factor, v.add_offset, v.missing_value = numpy.float64(0.01), numpy.float64(273.15), numpy.int16(-1)
                    v.valid_range = numpy.array([0, 9], "i2")
                    v[:] = numpy.ma.masked_less(280 + pick.random((40, 12, 17)), 280.1)
                else:
                    v[:] = pick.integers(0, 200, (40, 12, 17))
            f.createVariable("crs", "i4", ()).grid_mapping_name = "latitude_longitude"
            f.createVariable("word", str, ("edge",))[:] = numpy.array(["\u00e9t\u00e9", ""], object)
            f.Conventions, f.numbers, f.text = "CF-1.8", numpy.arange(3.5), "\u4e2d"
        shown = self.check(path, {"time": 9, "x": 4})[None]
        self.assertEqual(str(shown.time.dtype), "datetime64[ns]")
        self.assertLessEqual({"lat", "lon", "time", "day"}, set(shown.coords))

    def test_unlimited(self):
        """A variable that is shorter than its dimension ends with fill values, however its last chunk is stored."""
        path = self.file("short.nc")
        pick = numpy.random.default_rng(6)
        with netCDF4.Dataset(path, "w") as f:
            for name, n in {"time": None, "record": None, "unused": None, "x": 5}.items():
                f.createDimension(name, n)
            time = f.createVariable("time", "f8", ("time",), fill_value=-1.0)
            time.units = "days since 2020-01-01"
            time[:] = numpy.arange(6)  # and the dimension is longer
            for name, n, how in (("whole", 23, {}), ("marked", 9, dict(fill_value=-5)), ("packed", 11, dict(zlib=True, shuffle=True, fletcher32=True)),
                                 ("zipped", 9, dict(zlib=True, shuffle=False)), ("aligned", 12, dict(zlib=True)), ("never", 0, dict(zlib=True))):
                v = f.createVariable(name, "i4", ("time", "x"), chunksizes=(4, 3), **how)
                if n:
                    v[:n] = pick.integers(1, 1000, (n, 5))
            f.createVariable("text", str, ("time",), chunksizes=(4,))[:3] = numpy.array(["a", "\u00e9", "c"], object)
            f.createVariable("records", "i2", ("record",))[:] = range(10)
            inner = f.createGroup("inner")
            inner.createVariable("here", "f8", ("record",), zlib=True)[:4] = 2.5
        with h5py.File(path, "r+") as f:
            # A program that does not fill the chunk behind the end: nothing of these bytes is of the variable.
            for name, encode in ("marked", bytes), ("zipped", zlib.compress):
                raw = numpy.full((4, 3), 77, "i4")
                raw[:1] = f[name][8:, :3]
                f[name].id.write_direct_chunk((8, 0), encode(raw.tobytes()))
        shown = self.check(path)
        self.assertEqual(dict(shown[None].sizes), {"time": 23, "record": 10, "x": 5})
        self.assertEqual(dict(shown["inner"].sizes), {"record": 10})
        self.assertEqual(str(shown[None].never.dtype), "int32")
        self.assertTrue(numpy.isnan(shown[None].marked.values[9:]).all())

    def test_short_in_two_dimensions(self):
        """(netCDF's library leaves what it shows there to chance.)"""
        path = self.file("two.nc")
        with netCDF4.Dataset(path, "w") as f:
            for name in "a", "b":
                f.createDimension(name, None)
                f.createVariable(name, "i4", (name,))[:] = range(9)
            f.createVariable("short", "f4", ("a", "b"), chunksizes=(4, 4), zlib=True)[:5, :3] = 1.5
        wanted = numpy.full((9, 9), netCDF4.default_fillvals["f4"], "f4")
        wanted[:5, :3] = 1.5
        with Mount(path) as m:
            numpy.testing.assert_array_equal(xarray.open_zarr(m.at(".h5fs/zarr")).short.values, wanted)
            numpy.testing.assert_array_equal(zarrlib.Array3(m.at(".h5fs/zarr3/short")).read(), wanted)

    def test_what_no_longer_has_the_scale(self):
        """HDF5 leaves a dataset that was removed in the scale's list, as the address of whatever comes to lie there."""
        path = self.file("stale.h5")
        with h5py.File(path, "w") as f:
            for name, n in ("scale", 4), ("short", 2), ("long", 6), ("other", 1), ("stale", 9), ("bare", 9):
                f.create_dataset(name, data=numpy.arange(n), chunks=(2,), maxshape=(None,))
            f["scale"].make_scale("scale")
            f["other"].make_scale("other")
            for name in "short", "long", "stale", "bare":
                f[name].dims[0].attach_scale(f["scale"])
            for name in "stale", "bare":
                del f[name].attrs["DIMENSION_LIST"]
            f["stale"].dims[0].attach_scale(f["other"])
        with Mount(path) as m:
            found = xarray.open_zarr(m.at(".h5fs/zarr"))
            self.assertEqual(dict(found.sizes), {"scale": 6, "other": 9, "phony_dim_9": 9})
            self.assertEqual(found.short.values.tolist(), [0, 1, 0, 0, 0, 0])

    def test_scale_of_a_later_dimension(self):
        path = self.file("later.h5")
        with h5py.File(path, "w") as f:
            for name, shape in ("scale", (2,)), ("short", (3,)), ("two", (3, 8)):
                f.create_dataset(name, data=numpy.ones(shape), chunks=(2,) * len(shape), maxshape=(None,) * len(shape))
            f["scale"].make_scale("scale")
            f["short"].dims[0].attach_scale(f["scale"])
            f["two"].dims[1].attach_scale(f["scale"])
        with Mount(path) as m:
            found = xarray.open_zarr(m.at(".h5fs/zarr"))
            self.assertEqual(dict(found.sizes), {"scale": 8, "phony_dim_3": 3})
            self.assertEqual(found.short.values.tolist(), [1] * 3 + [0] * 5)

    def test_large_short_variable(self):
        """In kerchunk.json chunks that cross the end are part of the text. If they are too large for that, the variable keeps its own length."""
        path = self.file("large.nc")
        with netCDF4.Dataset(path, "w") as f:
            f.createDimension("time", None)
            f.createDimension("x", 2**18)
            f.createVariable("short", "i4", ("time", "x"), chunksizes=(3, 2**17))[:4] = 7
            f.createVariable("long", "i1", ("time",))[:] = range(20)
        with Mount(path) as m:
            with xarray.open_dataset(path) as expected:
                xarray.testing.assert_identical(xarray.open_zarr(m.at(".h5fs/zarr")).load(), expected.load())
            got = zarrlib.references(read(m.at(".h5fs/kerchunk.json")))["short"]
            self.assertEqual((got.shape, got.attrs["_ARRAY_DIMENSIONS"]), ((4, 2**18), ["phony_dim_4", "x"]))
            self.assertTrue((got[...] == 7).all())


if __name__ == "__main__":
    main()
