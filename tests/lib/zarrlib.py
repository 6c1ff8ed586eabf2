"""What judges the Zarr views: a comparison with h5py, and a reader of version 3, written from its specification, that takes nothing which it does
not know."""
import base64
import collections.abc
import itertools
import json
import math
import os

import fsspec
import h5py
import numcodecs
import numpy
import zarr

HIDDEN = {"REFERENCE_LIST", "DIMENSION_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_NCProperties", "_nc3_strict"}
BARE = b"This is a netCDF dimension but not a netCDF variable"


def datasets(group, path="", above=()):
    """(path, dataset) of all that the links of a group lead to, but for those that lead back."""
    for name in group:
        if isinstance(name, bytes) or "\\" in name:  # Zarr has no names that are not UTF-8; zarr-python takes a backslash for a slash
            continue
        try:
            found = group[name]
        except (KeyError, OSError, RuntimeError):
            continue
        inner = f"{path}/{name}" if path else name
        if isinstance(found, h5py.Dataset):
            yield inner, found
        elif isinstance(found, h5py.Group) and not any(found == one for one in above + (group,)):
            yield from datasets(found, inner, above + (group,))


def escaped(path):
    names = {".zgroup", ".zattrs", ".zarray", ".zmetadata"}
    return "/".join("%2E" + name[1:] if name in names else name for name in path.split("/"))


def is_usual(kind):
    """Whether all numbers of the type have a format of NumPy's. (h5py converts others.)"""
    if isinstance(kind, h5py.h5t.TypeCompoundID):
        return all(is_usual(kind.get_member_type(i)) for i in range(kind.get_nmembers()))
    if isinstance(kind, (h5py.h5t.TypeArrayID, h5py.h5t.TypeEnumID)):
        return is_usual(kind.get_super())
    if isinstance(kind, h5py.h5t.TypeIntegerID):
        return kind.get_precision() == 8 * kind.get_size()
    if isinstance(kind, h5py.h5t.TypeFloatID):
        return (kind.get_size(), kind.get_fields()[2], kind.get_precision()) in ((2, 5, 16), (4, 8, 32), (8, 11, 64))
    return True


def is_shown(dataset):
    """Whether Zarr has an array for it."""
    if dataset.shape is None:
        return False
    if "NAME" in dataset.attrs and dataset.attrs.get_id("NAME").dtype.kind == "S":
        name = dataset.attrs["NAME"]
        if (name.encode() if isinstance(name, str) else bytes(name)).startswith(BARE):
            return False
    kind = dataset.dtype
    if h5py.check_string_dtype(kind) and kind.kind == "O":
        return True
    return not kind.hasobject and is_usual(dataset.id.get_type())


def values(dataset):
    if dataset.dtype.kind == "O":
        return dataset.asstr(errors="replace")[...]
    data = dataset[...]
    # To h5py, opaque bytes may be of a type that their tag names.
    return data.view(f"V{data.itemsize}") if isinstance(dataset.id.get_type(), h5py.h5t.TypeOpaqueID) else data


def length(scale):
    """Of the dimension, which is unlimited: that of the longest dataset that has it."""
    users = scale.attrs["REFERENCE_LIST"] if "REFERENCE_LIST" in scale.attrs else []
    return max([scale.shape[0]] + [scale.file[reference].shape[i] for reference, i in users])


def extended(dataset, data):
    """The elements as netCDF-4 shows them: up to the length of each unlimited dimension."""
    shape = list(data.shape)
    for i, most in enumerate(dataset.maxshape):
        scales = [dataset] if dataset.ndim == 1 and h5py.h5ds.is_scale(dataset.id) else list(dataset.dims[i].values())
        if most is None and scales and scales[0].maxshape == (None,):
            shape[i] = max(shape[i], length(scales[0]))
    if tuple(shape) == data.shape:
        return data
    whole = numpy.full(shape, "" if data.dtype.kind == "O" else dataset.fillvalue, data.dtype)
    whole[tuple(map(slice, data.shape))] = data
    return whole


def plain(value):
    """An attribute as JSON has it."""
    if isinstance(value, h5py.Empty):
        return "" if value.dtype.kind == "S" else None
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        value = value.ravel()[0] if value.size == 1 else value
        value = value.astype("f8") if value.dtype == numpy.dtype("longdouble") else value
        value = value.tolist()
    if isinstance(value, bytes):
        return value.rstrip(b"\0").decode(errors="surrogateescape")
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, complex):
        return [value.real, value.imag]
    return value


def attributes(thing):
    """Those that the views show."""
    found = {}
    scale = thing.attrs.get("CLASS") in (b"DIMENSION_SCALE", "DIMENSION_SCALE")
    for name in thing.attrs:
        kind = thing.attrs.get_id(name).dtype
        if name in HIDDEN or (scale and name in ("CLASS", "NAME")) or (kind.kind == "V" and not kind.subdtype) or h5py.check_ref_dtype(kind) \
                or (kind.hasobject and not h5py.check_string_dtype(kind)):
            continue
        found[name] = plain(thing.attrs[name])
    return found


def same(a, b):
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b):
        return True
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


class Array3:
    """An array of version 3."""

    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "zarr.json")) as f:
            self.meta = dict(json.load(f))
        meta = dict(self.meta)
        assert meta.pop("zarr_format") == 3 and meta.pop("node_type") == "array", meta
        self.attributes = meta.pop("attributes")
        self.shape = tuple(meta.pop("shape"))
        grid = meta.pop("chunk_grid")
        assert set(grid) == {"name", "configuration"} and grid["name"] == "regular", grid
        self.chunks = tuple(grid["configuration"]["chunk_shape"])
        assert len(self.chunks) == len(self.shape) and all(n > 0 for n in self.chunks), grid
        assert meta.pop("chunk_key_encoding") == {"name": "default", "configuration": {"separator": "/"}}
        self.names = meta.pop("dimension_names")
        assert len(self.names) == len(self.shape)
        self.dtype, self.fill = self.type_of(meta.pop("data_type"), meta.pop("fill_value"))
        first, *self.codecs = meta.pop("codecs")
        self.strings = first["name"] == "vlen-utf8"
        assert self.strings == (self.dtype == object), first
        if not self.strings:
            assert first["name"] == "bytes" and set(first) <= {"name", "configuration"}, first
            endian = first.get("configuration", {}).get("endian")
            assert endian in ((None,) if self.dtype.itemsize == 1 or self.dtype.kind == "S" else ("little", "big")), first
            self.dtype = self.dtype.newbyteorder({"big": ">"}.get(endian, "<"))
        assert not meta, meta

    def type_of(self, name, fill):
        if isinstance(name, dict):
            assert name["name"] == "null_terminated_bytes" and set(name) == {"name", "configuration"}, name
            return numpy.dtype(f"S{name['configuration']['length_bytes']}"), base64.b64decode(fill)
        if name == "string":
            assert isinstance(fill, str)
            return numpy.dtype(object), fill
        kind = numpy.dtype(name)
        assert kind.name == name
        if kind.kind == "b":
            assert isinstance(fill, bool)
        elif kind.kind in "iu":
            assert isinstance(fill, int)
        elif kind.kind == "c":
            fill = complex(*map(float, fill))
        else:
            assert not isinstance(fill, str) or fill in ("NaN", "Infinity", "-Infinity")
            fill = float(fill)
        return kind, fill

    def decode(self, data):
        for codec in reversed(self.codecs):
            name, values = codec["name"], codec["configuration"]
            name = name[10:] if name.startswith("numcodecs.") else name
            if name == "blosc":
                values = dict(values, shuffle=("noshuffle", "shuffle", "bitshuffle").index(values["shuffle"]))
                del values["typesize"]
            if name == "zstd":
                values = {"level": values["level"]}
            data = numcodecs.get_codec(dict(values, id=name)).decode(data)
        if self.strings:
            return numcodecs.VLenUTF8().decode(data).reshape(self.chunks)
        return numpy.frombuffer(data, self.dtype).reshape(self.chunks)

    def read(self):
        whole = numpy.full(self.shape, self.fill, self.dtype)
        for at in itertools.product(*(range(-(-n // c)) for n, c in zip(self.shape, self.chunks))):
            try:
                with open(os.path.join(self.folder, "c", *map(str, at)), "rb") as f:
                    chunk = self.decode(f.read())
            except FileNotFoundError:
                continue
            inside = tuple(slice(i * c, min(n, (i + 1) * c)) for i, c, n in zip(at, self.chunks, self.shape))
            whole[inside] = chunk[tuple(slice(0, s.stop - s.start) for s in inside)]
        return whole


def compare_fields(got, expected, path):
    """Structures may differ in what lies between their members."""
    for field in expected.dtype.names or ():
        if expected[field].dtype.names:
            compare_fields(got[field], expected[field], f"{path} {field}")
        else:
            numpy.testing.assert_array_equal(got[field], expected[field], f"{path} {field}")


class References(collections.abc.MutableMapping):
    """What fsspec makes of a reference file. (The mapping of fsspec 2022.11 fails if one of several chunks is missing.)"""

    def __init__(self, text):
        self.fs = fsspec.filesystem("reference", fo=json.loads(text))

    def __getitem__(self, key):
        if key not in self.fs.references:
            raise KeyError(key)
        return self.fs.cat_file(key)

    def __iter__(self):
        return iter(self.fs.references)

    def __len__(self):
        return len(self.fs.references)

    def __setitem__(self, key, value):
        raise TypeError

    __delitem__ = __setitem__


def references(text):
    """The Zarr group that a reference file describes."""
    return zarr.open(References(text), mode="r")


def compare(case, file, group, folder3=None, left_out=False):
    """All that h5py finds in the file is in the Zarr group, and nothing else; *folder3*: that of version 3, too. *left_out*: arrays
    may be missing. Returns how many arrays there are."""
    count, shown = 0, set()
    for path, dataset in datasets(file):
        name = escaped(path)
        if not is_shown(dataset):
            case.assertNotIn(name, group, path)
            continue
        if left_out and name not in group:
            continue
        array = group[name]
        count += 1
        shown.add(name)
        expected = extended(dataset, values(dataset))
        got = array[...]
        case.assertEqual(got.shape, expected.shape, path)
        if expected.dtype.kind != "V":
            case.assertEqual(got.dtype, expected.dtype, path)
            numpy.testing.assert_array_equal(got, expected, path)
        compare_fields(got, expected, path)
        found = dict(array.attrs)
        case.assertEqual(len(found.pop("_ARRAY_DIMENSIONS")), len(got.shape), path)
        wanted = attributes(dataset)
        case.assertEqual(set(found), set(wanted), path)
        for key, value in wanted.items():
            case.assertTrue(same(found[key], value), (path, key, found[key], value))
        if folder3 and expected.dtype.kind != "V":
            other = Array3(os.path.join(folder3, name))
            numpy.testing.assert_array_equal(other.read(), expected, path)
    return count
