"""Files with what libhdf5 2 has brought, made by the newest libhdf5: PYTHON newest_files.py OUTPUT_FOLDER

Runs in the judge sid (contrib/judges). h5py does not know all of these types, so the library itself is called.

types.h5     bfloat16, FP8, FP6 and FP4: every value, contiguous and compressed, and as attributes; complex numbers of each size
huge.h5      chunks of 5 GiB. Nearly all of them is a hole of the file
indexes.h5   each chunk index with layout version 5, for chunks of 4 GiB
filtered.h5  each that chunks with filters can have
virtual.h5   virtual datasets whose mappings name the same source again and again, in source.h5 and in the file itself
default.h5   what h5py makes without any wish
repacked.h5  the same, and types_repacked.h5 all types, as h5repack makes them anew

expected.json  file -> path -> what libhdf5 reads: "bytes" in hexadecimal, "values", "shape"; of attributes the same, as PATH@NAME.
               "at": the bytes at some offsets of a dataset that is too large for the rest.
"""
import ctypes
import json
import os
import subprocess
import sys

import h5py
import numpy

os.chdir(sys.argv[1])
LIBRARY = next(line.split()[-1] for line in open("/proc/self/maps") if "/libhdf5" in line and "_hl" not in line)
lib = ctypes.CDLL(LIBRARY)
expected = {}
GIB = 1 << 30
UNLIMITED = h5py.h5s.UNLIMITED
ALL = DEFAULT = 0  # H5S_ALL, H5P_DEFAULT
FLOATS = {"bfloat16_le": "H5T_FLOAT_BFLOAT16LE", "bfloat16_be": "H5T_FLOAT_BFLOAT16BE", "f8e4m3": "H5T_FLOAT_F8E4M3", "f8e5m2": "H5T_FLOAT_F8E5M2",
          "f6e2m3": "H5T_FLOAT_F6E2M3", "f6e3m2": "H5T_FLOAT_F6E3M2", "f4e2m1": "H5T_FLOAT_F4E2M1"}
COMPLEX = {f"complex_f{bits}{order}": f"H5T_COMPLEX_IEEE_F{bits}{order.upper()}" for bits in (16, 32, 64) for order in ("le", "be")}


def call(name, *arguments):
    """A function of libhdf5. Arguments that are of fewer than 64 bits are in the lower ones."""
    function = getattr(lib, name)
    function.restype = ctypes.c_int64 if "create" in name else ctypes.c_int32
    result = function(*(ctypes.c_int64(a) if isinstance(a, int) else a for a in arguments))
    assert result >= 0, name
    return result


def number(name):
    """A type that the library defines."""
    return ctypes.c_int64.in_dll(lib, name + "_g").value


def size_of(datatype):
    lib.H5Tget_size.restype = ctypes.c_size_t
    return lib.H5Tget_size(ctypes.c_int64(datatype))


def converted(datatype, stored, fraction=None):
    """The values as libhdf5 converts them: numbers in their shortest form, complex ones as pairs of them.

    fraction: bits of the fraction of a format without infinities. libhdf5 takes its largest exponent for that of infinities and NaN, so
    such a value is twice what the exponent before it stands for."""
    complex_class = 11
    is_complex = lib.H5Tget_class(ctypes.c_int64(datatype)) == complex_class
    to = number("H5T_NATIVE_DOUBLE_COMPLEX" if is_complex else "H5T_NATIVE_DOUBLE")
    width, values = size_of(datatype), []

    def one(element):
        buffer = ctypes.create_string_buffer(element, 16)
        call("H5Tconvert", datatype, to, 1, buffer, None, DEFAULT)
        return numpy.frombuffer(buffer.raw, "c16" if is_complex else "f8", 1)[0]

    for at in range(0, len(stored), width):
        element = stored[at:at + width]
        value = one(element)
        if fraction and not numpy.isfinite(value):
            value = 2 * one(bytes([element[0] - (1 << fraction)]))
        values.append([repr(value.real.item()), repr(value.imag.item())] if is_complex else repr(value.item()))
    return values


def put(f, name, datatype, stored, chunk=None, fraction=None):
    """A dataset of one dimension, and an attribute `a` of up to 64 of its values, of a type that h5py may not know."""
    n, width = len(stored) // size_of(datatype), size_of(datatype)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if chunk:
        plist.set_chunk((chunk,))
        plist.set_shuffle()
        plist.set_deflate(6)
    space = h5py.h5s.create_simple((n,))
    dataset = call("H5Dcreate2", f.id.id, name.encode(), datatype, space.id, DEFAULT, plist.id, DEFAULT)
    call("H5Dwrite", dataset, datatype, ALL, ALL, DEFAULT, stored)
    some = stored[:64 * width]
    space = h5py.h5s.create_simple((len(some) // width,))
    attribute = call("H5Acreate2", dataset, b"a", datatype, space.id, DEFAULT, DEFAULT)
    call("H5Awrite", attribute, datatype, some)
    call("H5Aclose", attribute)
    back = ctypes.create_string_buffer(len(stored))
    call("H5Dread", dataset, datatype, ALL, ALL, DEFAULT, back)
    call("H5Dclose", dataset)
    file = expected.setdefault(f.filename, {})
    file[name] = {"bytes": back.raw.hex(), "shape": str(n)}
    file[name + "@a"] = {"bytes": some.hex(), "values": converted(datatype, some, fraction)}
    if not chunk and not name.startswith("complex"):
        file[name]["values"] = converted(datatype, back.raw, fraction)


def types():
    with h5py.File("types.h5", "w", libver="latest") as f:
        for name, library_name in FLOATS.items():
            datatype = number(library_name)
            n = {"f6": 64, "f4": 16}.get(name[:2], 256 ** size_of(datatype))
            stored = numpy.arange(n).astype("u1" if n <= 256 else "<u2").tobytes()
            fraction = None if name.startswith(("bfloat16", "f8e5m2")) else int(name[-1])
            put(f, name, datatype, stored, None, fraction)
            put(f, name + "_chunks", datatype, stored, max(n // 5, 8), fraction)
        for name, library_name in COMPLEX.items():
            part = numpy.dtype(("<" if name.endswith("le") else ">") + f"f{int(name[9:11]) // 8}")
            # libhdf5 loses the other part of a number that has an infinite one.
            numbers = numpy.array([0, -0.0, 1.5, -2.25, 0.1, 1e-5, 65504, 3, 0, numpy.inf, 0, -numpy.inf, 4, 5] * 4).astype(part)
            put(f, name, number(library_name), numbers.tobytes())
            put(f, name + "_chunks", number(library_name), numbers.tobytes(), 10)
        put(f, "complex_bfloat16", call("H5Tcomplex_create", number("H5T_FLOAT_BFLOAT16LE")), numpy.arange(16200, 16264, dtype="<u2").tobytes())
        put(f, "complex_f8e4m3", call("H5Tcomplex_create", number("H5T_FLOAT_F8E4M3")), bytes(i for i in range(256) if i & 0x78 != 0x78))


def huge():
    """Chunks of 5 GiB in which some bytes are written; no fill value is."""
    side, at = 5 * GIB, {}
    with h5py.File("huge.h5", "w", libver="latest") as f:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((side,))
        plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        dataset = h5py.Dataset(h5py.h5d.create(f.id, b"bytes", h5py.h5t.NATIVE_UINT8, h5py.h5s.create_simple((2 * side,)), plist))
        starts = 0, 4 * GIB - 3, 5 * GIB - 4, 10 * GIB - 7
        for start in starts:
            dataset[start:start + 7] = numpy.arange(1, 8, dtype="u1")
    with h5py.File("huge.h5") as f:
        for start in starts:
            at[str(start)] = f["bytes"][start:start + 7].tobytes().hex()
    expected["huge.h5"] = {"bytes": {"at": at, "shape": str(2 * side)}}


def of_h5py(path):
    """What h5py reads of a file."""
    def add(name, dataset):
        if isinstance(dataset, h5py.Dataset):
            file[name] = {"bytes": dataset[()].tobytes().hex(), "shape": ",".join(map(str, dataset.shape))}
    with h5py.File(path) as f:
        file = expected.setdefault(path, {})
        f.visititems(add)


def indexes():
    """A few bytes written in the last of one or two chunks of 4 GiB, with each chunk index."""
    side = 4 * GIB
    file = expected["indexes.h5"] = {}
    # The first two have their chunks from the beginning: libhdf5 writes nothing to a single chunk of 4 GiB that it has not yet.
    early, later = h5py.h5d.ALLOC_TIME_EARLY, h5py.h5d.ALLOC_TIME_INCR
    with h5py.File("indexes.h5", "w", libver="latest") as f:
        for name, rows, maximum, when in (("single", 1, (1, side), early), ("implicit", 2, (2, side), early), ("farray", 2, (2, side), later),
                                          ("earray", 2, (UNLIMITED, side), later), ("btree2", 2, (UNLIMITED, UNLIMITED), later)):
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_chunk((1, side))
            plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
            plist.set_alloc_time(when)
            space = h5py.h5s.create_simple((rows, side), maximum)
            h5py.Dataset(h5py.h5d.create(f.id, name.encode(), h5py.h5t.NATIVE_UINT8, space, plist))[-1, -5:] = numpy.arange(1, 6, dtype="u1")
    with h5py.File("indexes.h5") as f:
        for name, dataset in f.items():
            last = dataset[-1, -5:].tobytes()
            assert last == bytes(range(1, 6)), name
            file[name] = {"at": {"0": dataset[0, :5].tobytes().hex(), str(dataset.size - 5): last.hex()},
                          "shape": ",".join(map(str, dataset.shape)), "index": name}


def filtered():
    with h5py.File("filtered.h5", "w", libver="latest") as f:
        for name, chunks, maximum in (("single", (30, 8), (30, 8)), ("farray", (4, 3), (30, 8)), ("earray", (4, 3), (None, 8)), ("btree2", (4, 3), (None, None))):
            f.create_dataset(name, data=numpy.arange(240, dtype="<i4").reshape(30, 8), chunks=chunks, maxshape=maximum, compression="gzip", fletcher32=True)
    of_h5py("filtered.h5")
    for name, facts in expected["filtered.h5"].items():
        facts["index"] = name


def virtual():
    """Mappings of one file and of one dataset, so that names are shared in the heap block of version 1."""
    with h5py.File("source.h5", "w", libver="latest") as f:
        f["rows"] = numpy.arange(40 * 8, dtype="<i4").reshape(40, 8)
        f["others"] = -f["rows"][()]
    with h5py.File("virtual.h5", "w", libver="latest") as f:
        f["own"] = numpy.arange(1000, 1000 + 40 * 8, dtype="<i4").reshape(40, 8)
        for name, sources in (("one", [("source.h5", "rows")]), ("pairs", [("source.h5", "rows"), ("source.h5", "others")]),
                              ("mixed", [("source.h5", "rows"), (".", "own"), ("missing.h5", "rows")])):
            layout = h5py.VirtualLayout((40, 8), "<i4")
            for i in range(40):
                layout[i] = h5py.VirtualSource(*sources[i % len(sources)], shape=(40, 8))[39 - i]
            f.create_virtual_dataset(name, layout, fillvalue=-7)
    of_h5py("virtual.h5")
    expected["virtual.h5"].pop("own")


def default():
    with h5py.File("default.h5", "w") as f:
        f["plain"] = numpy.arange(100, dtype="<i4")
        f["group/scalar"] = 2.5
        f.create_dataset("group/rows", data=numpy.arange(600, dtype="<i2").reshape(200, 3), maxshape=(None, 3), chunks=(16, 3), compression="gzip", shuffle=True, fletcher32=True)
        f["group/complex"] = numpy.array([1 + 2j, -0.5j])
        f["group/complex"].attrs["z"] = numpy.array([1 - 1j, 0.25j])
        f["group/half"] = numpy.array([1, 0.1], "<f2")
        of_h5py("default.h5")


def repacked():
    """What the tools write is what they have read."""
    subprocess.run(["h5repack", "-l", "group/rows:CHUNK=30x2", "-f", "group/rows:SHUF", "-f", "group/rows:GZIP=2", "default.h5", "repacked.h5"],
                   check=True)
    subprocess.run(["h5repack", "-L", "types.h5", "types_repacked.h5"], check=True)
    of_h5py("repacked.h5")
    assert expected["repacked.h5"] == expected["default.h5"]
    expected["types_repacked.h5"] = expected["types.h5"]


types()
huge()
indexes()
filtered()
virtual()
default()
repacked()
with open("expected.json", "w") as out:
    json.dump(expected, out)
