#!/usr/bin/python3
"""Compact datasets in a mount for writing: wherever their object headers lie, what shows as writable is."""
import os
import shutil
import stat
import subprocess
import warnings

import h5py
import numpy

from mountlib import H5FS, Mount, WriteCase, main

FOUND = os.path.join(os.environ.get("H5FS_CONFORMANCE", ""), "found", "read")


def compact(group, name, array):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.COMPACT)
    if len(name) % 2:
        plist.set_attr_creation_order(h5py.h5p.CRT_ORDER_TRACKED)
    dataset = h5py.h5d.create(group.id, name.encode(), h5py.h5t.py_create(array.dtype),
                              h5py.h5s.create_simple(array.shape), plist)
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, array)
    return h5py.Dataset(dataset)


def compacts(f):
    found = []
    f.visititems(lambda name, o: found.append(name) if isinstance(o, h5py.Dataset)
                 and o.id.get_create_plist().get_layout() == h5py.h5d.COMPACT else None)
    return found


class Compact(WriteCase):
    def overwrite(self, path, byte):
        """All bytes of all compact datasets."""
        with h5py.File(path) as f:
            names = compacts(f)
            attributes = {name: {key: f[name].attrs[key] for key in f[name].attrs} for name in f}
        with Mount(path, "-f", options="rw,sync=fsync") as m:
            for name in names:
                size = os.stat(m.at(name)).st_size
                self.assertEqual(oct(os.stat(m.at(name)).st_mode), "0o100644", name)
                fd = m.open(name, os.O_WRONLY)
                self.assertEqual(os.write(fd, bytes([byte]) * size), size)
                os.close(fd)
            self.assertEqual(m.said(), "")
        with h5py.File(path) as f:
            for name in names:
                self.assertEqual(set(self.stored(f[name])), {byte}, name)
            for name, values in attributes.items():
                self.assertEqual(list(f[name].attrs), list(values))
                for key, value in values.items():
                    numpy.testing.assert_array_equal(f[name].attrs[key], value)
        run = subprocess.run([H5FS, "--check", path], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout)
        return names

    @staticmethod
    def stored(dataset):
        values = numpy.empty(dataset.shape, f"V{dataset.id.get_type().get_size()}")
        dataset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, values, dataset.id.get_type())
        return values.tobytes()

    def make(self, libver):
        path = self.file(f"{libver}.h5")
        with h5py.File(path, "w", libver=libver) as f:
            for i in range(150):
                d = compact(f, "c" + "x" * (i % 2) + f"{i:03}", numpy.arange(1 + i % 21, dtype="u1" if i % 3 else "<u4"))
                for j in range(i % 4):
                    d.attrs[f"a{j}"] = numpy.arange(i % 13)
                if i % 5 == 0:
                    # A message that is gone leaves space behind.
                    d.attrs["gone"] = numpy.arange(i % 7 + 1)
                    del d.attrs["gone"]
        return path

    def test_headers_across_pages(self):
        for libver in ("earliest", "v108", "latest"):
            with self.subTest(libver=libver):
                path = self.make(libver)
                for byte in 65, 66:  # once more, where the first round has put them
                    self.assertEqual(len(self.overwrite(path, byte)), 150)
                with h5py.File(path, "r+", libver=libver) as f:
                    for name in f:
                        f[name].attrs["more"] = numpy.arange(20)
                        f[name][...] = 7
                self.overwrite(path, 67)

    def test_a_shared_message(self):
        """What cannot be written is 0444 from the start; a dataspace in the file's heap of shared messages keeps nobody from writing."""
        path = self.file("shared.h5")
        shutil.copy(os.path.join(os.environ.get("H5FS_TEST_DATA", "tests/data"), "object_shared.h5"), path)
        with Mount(path, options="rw") as m:
            for name in os.listdir(m.path):
                if not os.path.isfile(m.at(name)):
                    continue
                writable = stat.S_IMODE(os.stat(m.at(name)).st_mode) == 0o644
                with self.subTest(name=name):
                    try:
                        os.close(os.open(m.at(name), os.O_WRONLY))
                        opened = True
                    except PermissionError:
                        opened = False
                    self.assertEqual(opened, writable)

    def test_a_filter_that_does_not_encode(self):
        path = self.file("filter.h5")
        with h5py.File(path, "w") as f:
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_chunk((4,))
            plist.set_filter(32900, h5py.h5z.FLAG_OPTIONAL, (1,))
            h5py.h5d.create(f.id, b"strange", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((8,)), plist)
        with Mount(path, options="rw") as m:
            self.assertEqual(oct(os.stat(m.at("strange")).st_mode), "0o100444")

    def test_found(self):
        if not os.path.isdir(FOUND):
            self.skipTest(f"no {FOUND}")
        for name, count in (("rw-eperm-compact.hdf5", 39), ("compact_straddle.h5", 300), ("compact_new.h5", 4), ("compact_old.h5", 4)):
            path = self.file(name)
            shutil.copyfile(os.path.join(FOUND, name), path)
            with self.subTest(name=name), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for byte in 65, 66:
                    self.assertEqual(len(self.overwrite(path, byte)), count)


if __name__ == "__main__":
    main()
