#!/usr/bin/python3
"""Filters that libhdf5 lacks: what others have stored is read, and rows are added. VBZ (32020); those that only clear bits before
they store (32022, 32023, 32032), so that nothing is to decode; Snappy (32003) and JPEG (32019); fpzip (32014); Blosc2 (32026), which only newer
PyTables have."""
import io
import os
import subprocess

import h5py
import numpy

import vbz
from mountlib import H5FS, Mount, MountCase, main, read
from PIL import Image

try:
    import tables  # noqa: F401: registers blosc2 from 3.8 on
except ImportError:
    pass

DATA = os.environ["H5FS_TEST_DATA"]
FOUND = os.path.join(os.environ.get("H5FS_CONFORMANCE", ""), "found", "read")
VALUES = ((0, 2, 1, 1), (1, 2, 1, 1), (0, 1, 1, 1), (1, 1, 1, 1), (1, 1, 0, 3), (0, 4, 1, 1), (0, 2, 0, 0), (0, 2, 1), (0, 2, 1, 1, 1), (0, 0, 0, 1))


class Vbz(MountCase):
    def signal(self, values, n, seed):
        dtype = f"<i{values[1] or 2}"
        steps = numpy.random.default_rng(seed).integers(-90, 91, n)
        steps[::50] = 40000
        return numpy.cumsum(steps).astype(dtype)

    def test_rows(self):
        if not vbz.zstandard:
            self.skipTest("no python3-zstandard")
        path = self.file("signals.h5")
        with h5py.File(path, "w", libver="latest") as f:
            for i, values in enumerate(VALUES):
                array = self.signal(values, 100, i)
                plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                plist.set_chunk((64,))
                plist.set_filter(vbz.ID, h5py.h5z.FLAG_OPTIONAL, values)
                dataset = h5py.h5d.create(f.id, b"d%d" % i, h5py.h5t.py_create(array.dtype),
                                          h5py.h5s.create_simple((100,), (h5py.h5s.UNLIMITED,)), plist)
                padded = numpy.pad(array, (0, 28))
                for at in 0, 64:
                    dataset.write_direct_chunk((at,), vbz.encode(values, padded[at:at + 64].tobytes()))
        with Mount(path, options="rw") as m:
            for i, values in enumerate(VALUES):
                with self.subTest(values=values):
                    self.assertEqual(read(m.at(f"d{i}")), self.signal(values, 100, i).tobytes())
                    self.assertEqual(os.getxattr(m.at(f"d{i}"), "h5fs.filters"), b"vbz")
                    with open(m.at(f"d{i}"), "ab") as f:
                        f.write(self.signal(values, 300, i)[100:].tobytes())
        with h5py.File(path) as f, Mount(path) as m:
            for i, values in enumerate(VALUES):
                with self.subTest(values=values):
                    expected = self.signal(values, 300, i)
                    expected[:100] = self.signal(values, 100, i)
                    chunks = [f[f"d{i}"].id.read_direct_chunk((at,)) for at in range(0, 300, 64)]
                    self.assertEqual({mask for mask, _ in chunks}, {0})
                    got = b"".join(vbz.decode(values, chunk) for _, chunk in chunks)
                    self.assertEqual(got[:expected.nbytes], expected.tobytes())
                    self.assertEqual(read(m.at(f"d{i}")), expected.tobytes())

    def test_found(self):
        """Both versions have the values of the file that was deflated."""
        if not os.path.isdir(FOUND):
            self.skipTest(f"no {FOUND}")
        with h5py.File(os.path.join(FOUND, "multi_fast5_zip.fast5")) as f:
            signals = {f"{name}/Raw/Signal": f[name]["Raw/Signal"][()].tobytes() for name in f}
        self.assertEqual(len(signals), 10)
        for name in ("multi_fast5_vbz.fast5", "multi_fast5_vbz_v1.fast5"):
            path = self.file(name)
            with open(path, "wb") as f:
                f.write(read(os.path.join(FOUND, name)))
            with self.subTest(name=name):
                with Mount(path, options="rw") as m:
                    for where, signal in signals.items():
                        self.assertEqual(read(m.at(where)), signal)
                        fd = m.open(where, os.O_WRONLY)
                        os.pwrite(fd, signal[200:300], 400)
                        os.close(fd)
                with Mount(path) as m:
                    for where, signal in signals.items():
                        self.assertEqual(read(m.at(where)), signal[:400] + signal[200:300] + signal[500:])


def stored(f, name, number, values, array, chunks, encode):
    """A dataset whose whole chunks the function has encoded."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(chunks)
    plist.set_filter(number, h5py.h5z.FLAG_OPTIONAL, values)
    space = h5py.h5s.create_simple(array.shape, (h5py.h5s.UNLIMITED, *array.shape[1:]))
    dataset = h5py.h5d.create(f.id, name.encode(), h5py.h5t.py_create(array.dtype), space, plist)
    for at in numpy.ndindex(*(n // c for n, c in zip(array.shape, chunks))):
        begin = tuple(i * c for i, c in zip(at, chunks))
        part = array[tuple(slice(b, b + c) for b, c in zip(begin, chunks))]
        dataset.write_direct_chunk(begin, encode(numpy.ascontiguousarray(part)))


def snappy(array):
    """As Snappy stores what it finds no repetition in: the size, and pieces of up to 60 bytes, each behind 4 times its size less 1."""
    data, n = array.tobytes(), array.nbytes
    size = bytes([n & 127 | 128, n >> 7]) if n > 127 else bytes([n])
    return size + b"".join(bytes([len(data[at:at + 60]) - 1 << 2]) + data[at:at + 60] for at in range(0, n, 60))


def jpeg(array):
    out = io.BytesIO()
    Image.fromarray(array[0]).save(out, "JPEG", quality=90)
    return out.getvalue()


class Others(MountCase):
    def list_of(self, path):
        return subprocess.run([H5FS, "--list", path], capture_output=True, text=True, check=True).stdout

    def test_nothing_to_decode(self):
        path = self.file("cleared.h5")
        array = numpy.linspace(-3, 300, 60, dtype="<f4").reshape(20, 3)
        array.view("<u4")[...] &= 0xffffe000
        filters = {"bitgroom": (32022, (3, 4, 0, 0, 0)), "granular-bitround": (32023, (3, 4, 0, 0, 0)), "bitround": (32032, (10, 4, 0, 0, 0))}
        with h5py.File(path, "w") as f:
            for name, (number, values) in filters.items():
                stored(f, name, number, values, array, (5, 3), lambda part: part.tobytes())
        listed = self.list_of(path)
        with Mount(path) as m:
            for name in filters:
                self.assertEqual(read(m.at(name)), array.tobytes())
                self.assertEqual(os.getxattr(m.at(name), "h5fs.filters"), name.encode())
                self.assertIn(f"/{name}  <f4  (20,3)  chunked(5,3)  {name}", listed)

    def test_images_and_snappy(self):
        path = self.file("others.h5")
        array = numpy.arange(600, dtype="<i2").reshape(30, 20)
        waves = (127 + 100 * numpy.sin(numpy.arange(3600) / 40)).astype("u1").reshape(3, 30, 40)
        with h5py.File(path, "w") as f:
            stored(f, "snappy", 32003, (), array, (10, 20), snappy)
            stored(f, "jpeg", 32019, (90, 40, 30, 0), waves, (1, 30, 40), jpeg)
        listed = self.list_of(path)
        self.assertIn("/snappy  <i2  (30,20)  chunked(10,20)  snappy", listed)
        self.assertIn("/jpeg  |u1  (3,30,40)  chunked(1,30,40)  jpeg", listed)
        decoded = b"".join(numpy.asarray(Image.open(io.BytesIO(jpeg(waves[i:i + 1])))).tobytes() for i in range(3))
        with Mount(path, options="rw") as m:
            self.assertEqual(read(m.at("snappy")), array.tobytes())
            self.assertEqual(read(m.at("jpeg")), decoded)
            with open(m.at("snappy"), "ab") as f:
                f.write(array[:7].tobytes())
        with Mount(path) as m:
            self.assertEqual(read(m.at("snappy")), array.tobytes() + array[:7].tobytes())


class Fpzip(MountCase):
    def samples(self):
        """Name, client values, and a chunk as fpzip's library has stored it and reads it (tests/fixtures/filter_libs.py)."""
        with open(os.path.join(DATA, "filter_libs.list")) as f:
            for name, number, *values in map(str.split, f):
                if int(number) == 32014 and not name.endswith("_big"):
                    yield name, tuple(map(int, values)), *(read(os.path.join(DATA, f"filter_{name}.{end}")) for end in ("in", "out"))

    def test_rows(self):
        samples = list(self.samples())
        if not samples:
            self.skipTest("the fixtures were made without libfpzip-dev")
        path, expected = self.file("fpzip.h5"), {}
        with h5py.File(path, "w") as f:
            for name, values, chunk, numbers in samples:
                array = numpy.frombuffer(numbers, "<f" + name.split("_")[1][1])
                stored(f, name, 32014, values, array, array.shape, lambda part, chunk=chunk: chunk)
                expected[name] = array
        with Mount(path, options="rw") as m:
            for name, array in expected.items():
                with self.subTest(name=name):
                    self.assertEqual(os.getxattr(m.at(name), "h5fs.filters"), b"fpzip")
                    self.assertEqual(read(m.at(name)), array.tobytes())
                    with open(m.at(name), "ab") as f:
                        f.write(array.tobytes())
                    self.assertEqual(read(m.at(name)), 2 * array.tobytes())
        with h5py.File(path) as f:
            for name, _, chunk, _ in samples:
                with self.subTest(name=name):
                    mask, ours = f[name].id.read_direct_chunk(expected[name].shape)
                    self.assertEqual(mask, 0)
                    if not name.endswith("_arrays"):  # the library's two arrays are one to the mount
                        self.assertEqual(ours, chunk)


class Blosc2(MountCase):
    """contrib/check-releases runs it in a Debian that has the library and PyTables with it."""

    def test_rows(self):
        if not h5py.h5z.filter_avail(32026):
            self.skipTest("python3-tables is older than 3.8")
        path = self.file("blosc2.h5")
        arrays = {"line": numpy.arange(5000, dtype="<i4"), "plane": numpy.arange(4200, dtype="<f8").reshape(60, 70),
                  "cube": numpy.arange(6000, dtype="<i2").reshape(50, 10, 12), "large": numpy.arange(900_000, dtype="<i4").reshape(900, 1000)}
        chunks = {"line": (1000,), "plane": (25, 33), "cube": (7, 5, 6), "large": (450, 700)}
        with tables.open_file(path, "w") as f:
            for i, (name, array) in enumerate(arrays.items()):
                compressor = ("blosclz", "lz4", "zlib", "zstd")[i]
                f.create_earray("/", name, obj=array, chunkshape=chunks[name], filters=tables.Filters(5, f"blosc2:{compressor}"))
        with Mount(path, options="rw") as m:
            for name, array in arrays.items():
                with self.subTest(name=name):
                    self.assertEqual(os.getxattr(m.at(name), "h5fs.filters"), b"blosc2")
                    self.assertEqual(read(m.at(name)), array.tobytes())
                    with open(m.at(name), "ab") as f:
                        f.write(array[::-1].tobytes())
        with tables.open_file(path) as f:
            for name, array in arrays.items():
                with self.subTest(name=name):
                    both = numpy.concatenate([array, array[::-1]])
                    numpy.testing.assert_array_equal(f.root[name][...], both)
                    numpy.testing.assert_array_equal(f.root[name][len(array) - 3:len(array) + 5], both[len(array) - 3:len(array) + 5])


if __name__ == "__main__":
    main()
