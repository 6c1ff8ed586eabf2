#!/usr/bin/python3
"""Filter 32020, VBZ, which libhdf5 lacks: what others have stored is read, and rows are added."""
import os

import h5py
import numpy

import vbz
from mountlib import Mount, MountCase, main, read

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


if __name__ == "__main__":
    main()
