#!/usr/bin/python3
"""Chunks that are stored with fewer bytes than they have, or more: what lies inside the dataset is what counts."""
import errno
import os
import subprocess
import unittest
import zlib

# From 2.2 on libhdf5 refuses chunks that stay short, so this machine's own judges alone.
os.environ["H5FS_JUDGES"] = "/none"

import h5py
import numpy

from mountlib import H5FS, Mount, WriteCase, main, read

FOUND = os.path.join(os.environ.get("H5FS_CONFORMANCE", ""), "found", "read")
# Filters, and how they encode; "skipped": the mask says that none did.
DEFLATE, SHUFFLE = (1, (4,)), (2, (4,))
STORED = {"plain": ([], bytes), "deflate": ([DEFLATE], zlib.compress), "skipped": ([DEFLATE], bytes)}
# libhdf5 2.2 ends with a failed assertion over chunks that are short, as far as it does not refuse them.
WRITES_SHORT = h5py.version.hdf5_version_tuple < (2,)


def shuffled(data):
    return zlib.compress(numpy.frombuffer(data, "u1").reshape(-1, 4).T.tobytes())


def checked(path):
    return subprocess.run([H5FS, "--check", path], capture_output=True, text=True, check=False)


def stored(dataset):
    """Its bytes, without what h5py makes of them."""
    values = numpy.empty(dataset.shape, f"V{dataset.id.get_type().get_size()}")
    dataset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, values, dataset.id.get_type())
    return values.tobytes()


class Short(WriteCase):
    def create(self, f, name, array, chunk, filters, maxshape=None):
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk(chunk)
        plist.set_fill_value(numpy.array(7, array.dtype))
        for number, values in filters:
            plist.set_filter(number, h5py.h5z.FLAG_OPTIONAL, values)
        unlimited = h5py.h5s.UNLIMITED
        space = h5py.h5s.create_simple(array.shape, tuple(unlimited if n is None else n for n in maxshape or array.shape))
        return h5py.h5d.create(f.id, name.encode(), h5py.h5t.py_create(array.dtype), space, plist)

    def fill(self, f, name, array, chunk, kind, maxshape=None, more=b""):
        """Each chunk without the rows of dimension 0 that lie outside, and then `more`."""
        filters, encode = STORED[kind] if isinstance(kind, str) else kind
        dataset = self.create(f, name, array, chunk, filters, maxshape)
        padded = numpy.zeros([-(-n // c) * c for n, c in zip(array.shape, chunk)], array.dtype)
        padded[tuple(slice(n) for n in array.shape)] = array
        for at in numpy.ndindex(*[n // c for n, c in zip(padded.shape, chunk)]):
            first = tuple(i * c for i, c in zip(at, chunk))
            box = padded[tuple(slice(i, i + c) for i, c in zip(first, chunk))][:array.shape[0] - first[0]]
            dataset.write_direct_chunk(first, encode(box.tobytes() + more), kind == "skipped")

    def kinds(self):
        """Every index, and ways to encode: (name, libver, maxshape, kind)."""
        for libver, maxshape in (("earliest", (None, 6)), ("earliest", (10, 6)), ("latest", (None, 6)), ("latest", (None, None)),
                                 ("latest", (10, 6))):
            for kind in STORED:
                # Newer indexes have no room for the size of a chunk without filters, and newer libraries write no such chunk.
                if kind != "plain" or (libver == "earliest" and WRITES_SHORT):
                    yield f"{libver}-{maxshape[0]}-{maxshape[1]}-{kind}", libver, maxshape, kind

    def test_reading(self):
        array = numpy.arange(1, 61, dtype="<i4").reshape(10, 6)
        for name, libver, maxshape, kind in self.kinds():
            path = self.file(name + ".h5")
            with h5py.File(path, "w", libver=libver) as f:
                self.fill(f, "wide", array, (4, 4), kind, maxshape)
                self.fill(f, "rows", array, (4, 6), kind, maxshape)
                self.fill(f, "one", array, (16, 6), kind, (maxshape[0] and 20, 6))
            with self.subTest(name=name):
                self.assertStored(path, wide=array, rows=array, one=array)
                self.assertEqual(checked(path).returncode, 0, checked(path).stdout)

    def test_chains(self):
        """A shuffle of other lengths has other planes; a checksum stands behind fewer bytes."""
        array = numpy.arange(1000, 1070, dtype="<i4")
        path = self.file("chains.h5")
        with h5py.File(path, "w") as f:
            for chunk in ((32,), (64,), (100,)):
                self.fill(f, f"shuffled{chunk[0]}", array, chunk, ([SHUFFLE, DEFLATE], shuffled), (None,))
            for more in (b"1234", bytes(1000), bytes(200000)):
                self.fill(f, f"more{len(more)}", array, (64,), ([SHUFFLE, DEFLATE], shuffled), more=more)
                self.fill(f, f"raw{len(more)}", array, (64,), "deflate", more=more)
                self.fill(f, f"skipped{len(more)}", array, (64,), "skipped", more=more)
            names = list(f)
        with Mount(path) as m:
            for name in names:
                with self.subTest(name=name):
                    self.assertEqual(read(m.at(name)), array.tobytes())
        self.assertEqual(checked(path).returncode, 0, checked(path).stdout)

    def test_bytes_that_are_missing(self):
        """Those elements alone are damaged. Past the page cache, which asks for whole pages."""
        array = numpy.arange(3000, dtype="<i4")
        path = self.file("missing.h5")
        with h5py.File(path, "w") as f:
            for kind, (filters, encode) in STORED.items():
                dataset = self.create(f, kind, array, (1500,), filters, (None,))
                dataset.write_direct_chunk((0,), encode(array[:1400].tobytes()), kind == "skipped")
                dataset.write_direct_chunk((1500,), encode(array[1500:].tobytes()), kind == "skipped")
        for options in ("ro", "rw"):
            with Mount(path, options=options) as m:
                for kind in STORED:
                    with self.subTest(kind=kind, options=options):
                        fd = m.open(kind, os.O_RDONLY | os.O_DIRECT)
                        self.assertEqual(os.pread(fd, 5600, 0), array[:1400].tobytes())
                        self.assertEqual(os.pread(fd, 6000, 6000), array[1500:].tobytes())
                        for n, at in ((4, 5600), (8, 5596), (400, 5600), (5604, 0), (4, 5996)):
                            self.assertErrno(errno.EUCLEAN, os.pread, fd, n, at)
        run = checked(path)
        self.assertEqual(run.returncode, 4)
        self.assertEqual(run.stdout.count("chunk: 5600 bytes are stored of 6000"), 3, run.stdout)

    def test_what_is_missing_is_not_made_up(self):
        """A write beside it is refused; one of the whole chunk heals it."""
        array = numpy.arange(3000, dtype="<i4")
        for kind, (filters, encode) in STORED.items():
            path = self.file(kind + ".h5")
            with h5py.File(path, "w") as f:
                dataset = self.create(f, "d", array, (1500,), filters, (None,))
                dataset.write_direct_chunk((0,), encode(array[:1400].tobytes()), kind == "skipped")
                dataset.write_direct_chunk((1500,), encode(array[1500:].tobytes()), kind == "skipped")
            with self.subTest(kind=kind), Mount(path, options="rw") as m:
                fd = m.open("d", os.O_WRONLY)
                self.assertErrno(errno.EUCLEAN, os.pwrite, fd, b"abcd", 40)
                self.assertEqual(os.pwrite(fd, array[:1500].tobytes(), 0), 6000)
                os.close(fd)
            with self.subTest(kind=kind):
                self.assertStored(path, d=array)

    def test_appending(self):
        """The last chunk gets all of its space: the first new row shares it with those that were there."""
        array = numpy.arange(1, 61, dtype="<i4").reshape(10, 6)
        rows = numpy.arange(100, 136, dtype="<i4").reshape(6, 6)
        for name, libver, maxshape, kind in self.kinds():
            if maxshape[0]:
                continue
            path = self.file(name + ".h5")
            with h5py.File(path, "w", libver=libver) as f:
                self.fill(f, "wide", array, (4, 4), kind, maxshape)
                self.fill(f, "one", array, (16, 6), kind, (None, 6))
                self.fill(f, "grown", array, (16, 6), kind, (None, 6))
                self.fill(f, "whole", array, (16, 6), kind, (None, 6))
                self.fill(f, "cut", array, (4, 6), kind, (None, 6))
            with self.subTest(name=name):
                with Mount(path, options="rw") as m:
                    for dataset in ("wide", "one"):
                        for row in rows:
                            with open(m.at(dataset), "ab") as f:
                                f.write(row.tobytes())
                    os.truncate(m.at("grown"), 15 * 24)
                    with open(m.at("whole"), "ab") as f:
                        f.write(rows.tobytes())
                    os.truncate(m.at("cut"), 9 * 24)
                    os.truncate(m.at("cut"), 11 * 24)
                both = numpy.concatenate([array, rows])
                grown = numpy.concatenate([array, numpy.full((5, 6), 7, "<i4")])
                cut = numpy.concatenate([array[:9], numpy.full((2, 6), 7, "<i4")])
                self.assertStored(path, wide=both, one=both, grown=grown, whole=both, cut=cut)
                self.assertEqual(checked(path).returncode, 0, checked(path).stdout)

    def test_overwriting(self):
        array = numpy.arange(1, 61, dtype="<i4").reshape(10, 6)
        for name, libver, maxshape, kind in self.kinds():
            path = self.file(name + ".h5")
            with h5py.File(path, "w", libver=libver) as f:
                self.fill(f, "d", array, (4, 4), kind, maxshape)
            changed = array.copy()
            changed[9, 1:3] = 1000, 1001
            with self.subTest(name=name):
                with Mount(path, options="rw") as m:
                    fd = m.open("d", os.O_WRONLY)
                    os.pwrite(fd, changed[9, 1:3].tobytes(), 9 * 24 + 4)
                    os.close(fd)
                self.assertStored(path, d=changed)

    def test_large_chunks_without_filters(self):
        """Of more than a MiB: written where they lie, so widened in the file."""
        array = numpy.arange(400_000, dtype="<i4")
        path = self.file("large.h5")
        with h5py.File(path, "w") as f:
            self.fill(f, "d", array, (500_000,), "plain", (None,))
            self.assertEqual(f["d"].id.get_storage_size(), array.nbytes)
        with Mount(path, options="rw") as m:
            with open(m.at("d"), "ab") as f:
                f.write(array[:1000].tobytes())
        with h5py.File(path) as f:
            self.assertEqual(f["d"].id.get_storage_size(), 2_000_000)
        self.assertStored(path, d=numpy.concatenate([array, array[:1000]]))


class Found(WriteCase):
    """Files of other software."""

    def setUp(self):
        super().setUp()
        if not os.path.isdir(FOUND):
            self.skipTest(f"no {FOUND}")

    def found(self, name):
        path = self.file(name)
        with open(path, "wb") as f:
            f.write(read(os.path.join(FOUND, name)))
        return path

    @unittest.skipUnless(WRITES_SHORT, "this libhdf5 does not read chunks that are short")
    def test_as_libhdf5_reads_them(self):
        for name in ("short-last-chunk.fast5", "short-last-chunk-compound.fast5", "short1d.h5", "short_nofilter.h5", "long1d.h5"):
            path, count = self.found(name), 0
            with self.subTest(name=name), h5py.File(path) as f, Mount(path) as m:
                datasets = []
                f.visititems(lambda where, o, found=datasets: found.append(where) if isinstance(o, h5py.Dataset) else None)
                for where in datasets:
                    if f[where].dtype.kind != "O":
                        self.assertEqual(read(m.at(where)), stored(f[where]), where)
                        count += 1
                self.assertGreaterEqual(count, 1)
                self.assertEqual(checked(path).returncode, 0, checked(path).stdout)

    def test_short_in_the_middle(self):
        path = self.found("short_mid.h5")
        self.assertIn("/x: chunk: 5 bytes are stored of 8", checked(path).stdout)
        with Mount(path) as m:
            fd = m.open("x", os.O_RDONLY | os.O_DIRECT)
            self.assertEqual(os.pread(fd, 5, 0) + os.pread(fd, 100, 8), bytes((*range(5), *range(8, 16))))
            for at in 5, 6, 7:
                self.assertErrno(errno.EUCLEAN, os.pread, fd, 1, at)

    def test_rows_behind_them(self):
        path = self.found("short_nofilter.h5")
        with Mount(path, options="rw") as m:
            fd = m.open("x", os.O_WRONLY)
            self.assertEqual(os.pwrite(fd, b"\x63", 9), 1)
            os.close(fd)
        self.assertStored(path, x=numpy.array([*range(9), 99], "u1"))


if __name__ == "__main__":
    main()
