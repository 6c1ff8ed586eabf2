#!/usr/bin/python3
"""Filters as others' plugins have them: those of the HDF Group's collection, in WebAssembly (contrib/h5wasm). A mount shows of what they have
written what they read themselves; and they read what a mount has written."""
import json
import os
import subprocess
import unittest

import numpy

from mountlib import Mount, MountCase, main, read, write
from remotelib import SAID

HERE = os.path.dirname(os.path.abspath(__file__))
CONTRIB, SCRIPT = os.path.join(HERE, "../../contrib/h5wasm"), os.path.join(HERE, "../judge/h5wasm.mjs")
PACKAGES = subprocess.run([CONTRIB, "folder"], capture_output=True, text=True, check=False).stdout.strip()
BUILT_IN = SAID[SAID.index("filters:"):].splitlines()[0].split()
DTYPES = {"u1": "B", "<i2": "h", "<i4": "i", "<i8": "q", "<f4": "f", "<f8": "d"}
LZF, BLOSC, LZ4, BITSHUFFLE, ZSTD, BZIP2, BLOSC2 = 32000, 32001, 32004, 32008, 32015, 307, 32026
ZFP, JPEG, BITGROOM, GRANULAR = 32013, 32019, 32022, 32023


def ask(task):
    run = subprocess.run(["node", SCRIPT, PACKAGES], input=json.dumps(task), capture_output=True, text=True, check=False)
    if run.returncode:
        raise AssertionError(run.stdout + run.stderr)


def steps(shape, dtype, seed=1):
    """Numbers that all filters compress: h5wasm makes every filter mandatory."""
    n = int(numpy.prod(shape))
    return numpy.repeat(numpy.cumsum(numpy.random.default_rng(seed).integers(-3, 5, n)) + 40, 4)[:n].astype(dtype).reshape(shape)


def picture(rows, columns, kind):
    """Waves: grey, of one hue, or in other directions for each colour."""
    y, x = numpy.mgrid[:rows, :columns]
    if kind == "colour":
        return numpy.stack([127 + 100 * numpy.sin(x / (9 + 3 * c) + y / (7 + 5 * c)) for c in range(3)], -1).astype("u1")
    grey = (127 + 50 * numpy.sin(x / 9 + y / 7)).astype("u1")
    return grey if kind == "grey" else grey[..., None] + numpy.array([50, 0, 20], "u1")


@unittest.skipUnless(PACKAGES, "contrib/h5wasm make")
class Plugins(MountCase):
    def setUp(self):
        super().setUp()
        self.path, self.cases = self.file("plugins.h5"), {}

    def add(self, name, array, chunks, number, options, filter_name):
        if filter_name in BUILT_IN:
            self.cases[name] = array, chunks, number, list(options), filter_name
        else:
            print(f"{filter_name} is not built in: {name} is not tested")

    def write(self):
        """They write all cases; rows can be added."""
        task = {"file": self.path, "write": []}
        for name, (array, chunks, number, options, _) in self.cases.items():
            write(self.file(name), array.tobytes())
            task["write"].append({"name": name, "dtype": DTYPES[array.dtype.str.replace("|", "")], "shape": array.shape,
                                  "maxshape": [None, *array.shape[1:]], "chunks": chunks, "compression": number,
                                  "compression_opts": options, "data": self.file(name)})
        ask(task)

    def theirs(self):
        """What they read."""
        ask({"file": self.path, "read": {name: self.file(name) for name in self.cases}})
        return {name: read(self.file(name)) for name in self.cases}

    def add_lossless(self):
        for number, filter_name, all_options in (
            (LZF, "lzf", ([],)),
            (BZIP2, "bzip2", ([9], [1])),
            (LZ4, "lz4", ([], [1000])),
            (ZSTD, "zstd", ([], [1], [19])),
            (BITSHUFFLE, "bitshuffle", ([0, 0], [64, 0], [0, 2], [8, 2], [0, 3, 5], [64, 3, 1])),
            # Without zlib, of which that plugin lacks a function.
            (BLOSC, "blosc", [[0, 0, 0, 0, 5, shuffle, compressor] for shuffle in range(3) for compressor in (0, 1, 2, 5)]),
            (BLOSC2, "blosc2", [[0, 0, 0, 0, 5, shuffle, compressor] for shuffle in range(3) for compressor in (0, 1, 2, 4, 5)]),
        ):
            for options in all_options:
                for dtype in ("u1", "<i4", "<f8") if len(all_options) < 7 else ("<i2",):
                    name = "_".join(map(str, (filter_name, dtype.strip("<"), *options)))
                    self.add(name, steps((47, 60), dtype), (20, 33), number, options, filter_name)

    def test_lossless(self):
        self.add_lossless()
        self.write()
        with Mount(self.path, options="rw") as m:
            for name, (array, *_, filter_name) in self.cases.items():
                with self.subTest(name=name):
                    self.assertEqual(os.getxattr(m.at(name), "h5fs.filters").split(b"(")[0], filter_name.encode())
                    self.assertEqual(read(m.at(name)), array.tobytes())
                    with open(m.at(name), "r+b") as f:
                        f.write(array[30:].tobytes())
                        f.seek(0, os.SEEK_END)
                        f.write(array[:15].tobytes())
            self.assertEqual(m.said(), "")
        theirs = self.theirs()
        for name, (array, *_) in self.cases.items():
            expected = numpy.concatenate([array[30:], array[17:], array[:15]])
            self.assertEqual(theirs[name], expected.tobytes(), name)

    def test_lossy_numbers(self):
        for dtype in "<f4", "<f8":
            size = int(dtype[2])
            for digits in 3, 7:
                self.add(f"bitgroom_{size}_{digits}", steps((47, 60), dtype) / 7, (20, 33), BITGROOM, (digits, size, 0, 0, 0), "bitgroom")
                self.add(f"granular_{size}_{digits}", steps((47, 60), dtype) / 7, (20, 33), GRANULAR, (digits, size, 0, 0, 0),
                         "granular-bitround")
        # The plugin lacks functions for other types and modes.
        self.add("zfp_precision", steps((47, 60), "<f4"), (20, 33), ZFP, (2, 0, 12, 0), "zfp")
        for dtype in "<f4", "<i4", "<i8":
            self.add(f"zfp_rate_{dtype[1:]}", steps((47, 60), dtype), (20, 33), ZFP, (1, 0, 0, 0x40200000), "zfp")  # 8.0
        self.write()
        theirs, exact = self.theirs(), 0
        with Mount(self.path) as m:
            for name, (array, *_) in self.cases.items():
                with self.subTest(name=name):
                    ours = read(m.at(name))
                    self.assertEqual(ours, theirs[name])
                    self.assertLess(abs(numpy.frombuffer(ours, array.dtype) - array.ravel()).mean(), 2)
                    exact += ours == array.tobytes()
        self.assertLess(exact, len(self.cases) / 2)

    def test_pictures(self):
        for quality in 1, 50, 90, 100:
            for rows, columns in (64, 48), (37, 51), (8, 8), (1, 1):
                for kind in "grey", "hue", "colour":
                    array = numpy.stack([numpy.roll(picture(rows, columns, kind), 3 * i, 0) for i in range(3)])
                    self.add(f"{kind}_{quality}_{rows}_{columns}", array, (1, *array.shape[1:]), JPEG,
                             (quality, columns, rows, int(array.ndim == 4)), "jpeg")
        if not self.cases:
            self.skipTest("built without libjpeg")
        self.write()
        self.check_pictures()
        # The other way.
        with Mount(self.path, options="rw") as m:
            for name, (array, *_) in self.cases.items():
                with open(m.at(name), "ab") as f:
                    f.write(array[::-1].tobytes())
            self.assertEqual(m.said(), "")
        self.cases = {name: (numpy.concatenate([array, array[::-1]]), *more) for name, (array, *more) in self.cases.items()}
        self.check_pictures()

    def check_pictures(self):
        """The plugin's libjpeg interpolates colours in another way than libjpeg-turbo, from half as many lines and columns. Grey, and a hue that
        is the same everywhere, are the same."""
        theirs = self.theirs()
        with Mount(self.path) as m:
            for name, (array, _, _, (quality, *_), _) in self.cases.items():
                with self.subTest(name=name):
                    ours = numpy.frombuffer(read(m.at(name)), "u1").reshape(array.shape).astype(int)
                    other = numpy.frombuffer(theirs[name], "u1").reshape(array.shape)
                    self.assertLess(abs(ours - other).mean(), 4 if name.startswith("colour") else 1e-9)
                    self.assertLess(abs(ours - array).mean(), 30 if quality == 1 else 8)


if __name__ == "__main__":
    main()
