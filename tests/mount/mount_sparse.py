#!/usr/bin/python3
"""Sparse data (structured chunks) are written: elements are defined and erased, rows come and go. A model says what must be there; a walker
of the bytes (tests/lib/sparse_walker.py) reads the file again."""
import ctypes
import errno
import itertools
import json
import os
import random
import shutil
import struct
import subprocess

import numpy as np

import sparse_walker
from mountlib import H5FS, Mount, MountCase, main, read

DATA = os.environ["H5FS_TEST_DATA"]
SPARSE = os.path.join(os.environ.get("H5FS_CONFORMANCE", ""), "sparse")
INDEXES = "single", "fixed", "extensible", "btree"
PUNCH = 3  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
libc = ctypes.CDLL(None, use_errno=True)


def punch(fd, offset, n):
    if libc.fallocate(fd, PUNCH, ctypes.c_long(offset), ctypes.c_long(n)):
        raise OSError(ctypes.get_errno(), "fallocate")


def pieces(fd):
    """[(begin, end)] of data."""
    found, at = [], 0
    while True:
        try:
            begin = os.lseek(fd, at, os.SEEK_DATA)
        except OSError as e:
            if e.errno != errno.ENXIO:
                raise
            return found
        at = os.lseek(fd, begin, os.SEEK_HOLE)
        found.append((begin, at))


class Model:
    """The bytes of a dataset, and which elements are defined."""

    def __init__(self, d, fill):
        self.maxdims, self.element = d.maxdims, d.element
        self.fill = np.frombuffer(fill, "u1")
        self.bytes = np.empty((*d.dims, d.element), "u1")
        self.bytes[...] = self.fill
        self.defined = np.zeros(d.dims, bool)
        self.outside = {at for chunk in d.chunks.values() for at in chunk.outside}  # as another program has left it
        for at, value in d.defined.items():
            self.bytes[at] = np.frombuffer(value, "u1")
            self.defined[at] = True

    def row(self):
        return self.bytes[:1].size if len(self.bytes) else int(np.prod(self.bytes.shape[1:]))

    def write(self, offset, data):
        self.bytes.reshape(-1)[offset:offset + len(data)] = np.frombuffer(data, "u1")
        first, end = offset // self.element, -(-(offset + len(data)) // self.element)
        self.defined.reshape(-1)[first:end] = True

    def erase(self, offset, n):
        flat = self.bytes.reshape(-1)
        flat[offset:offset + n] = np.resize(self.fill, len(flat))[offset:offset + n]
        first, end = -(-offset // self.element), (offset + n) // self.element
        if first < end:
            self.defined.reshape(-1)[first:end] = False

    def reshape(self, dims):
        old = self.bytes, self.defined
        self.bytes = np.empty((*dims, self.element), "u1")
        self.bytes[...] = self.fill
        self.defined = np.zeros(dims, bool)
        common = tuple(slice(0, min(a, b)) for a, b in zip(dims, old[1].shape))
        self.bytes[common], self.defined[common] = old[0][common], old[1][common]

    def append(self, data):
        at, row = self.bytes.size, self.row()
        self.reshape((len(self.bytes) + len(data) // row, *self.defined.shape[1:]))
        self.write(at, data)

    def pieces(self):
        """[(begin, end)] of defined elements."""
        edges = np.flatnonzero(np.diff(np.concatenate(([0], self.defined.reshape(-1), [0])).astype("i1"))) * self.element
        return list(zip(edges[::2].tolist(), edges[1::2].tolist()))


class Sparse(MountCase):
    def copy(self, name):
        path = self.file("sparse.h5")
        shutil.copy(f"{DATA}/structured_{name}.h5", path)
        os.chmod(path, 0o644)
        return path

    def model(self, path, fill=bytes(4)):
        return Model(sparse_walker.walk(path), fill)

    def assertMounted(self, m, model, what):
        fd = m.open("sparse", os.O_RDONLY)
        self.assertEqual(read(m.at("sparse")), model.bytes.tobytes(), what)
        # Holes read as zeros, so with another fill value there are none.
        whole = [(0, model.bytes.size)] if model.bytes.size else []
        self.assertEqual(pieces(fd), whole if model.fill.any() else model.pieces(), what)
        os.close(fd)

    def assertStored(self, path, model, what=None):
        d = sparse_walker.walk(path)
        self.assertEqual(d.dims, model.defined.shape, what)
        expected = {tuple(at): model.bytes[tuple(at)].tobytes() for at in np.argwhere(model.defined).tolist()}
        self.assertEqual(d.defined, expected, what)
        for scaled, chunk in d.chunks.items():
            self.assertLessEqual(set(chunk.outside), model.outside, what)
            self.assertTrue(all(s * c < n for s, c, n in zip(scaled, d.chunk, d.dims)), what)
        done = subprocess.run([H5FS, "--check", path], capture_output=True, text=True, check=False)
        self.assertIn("no damage", done.stdout, what)
        return d

    # ---- one thing at a time ----

    def test_defined_elements(self):
        path = self.copy("fixed_early")
        before = self.model(path)
        with Mount(path, options="rw") as m:
            fd = m.open("sparse", os.O_WRONLY)
            for offset, data in (0, b"abcd"), (401, b"x"), (800, b"0123456789"), (1136, bytes(8)):
                os.pwrite(fd, data, offset)
                before.write(offset, data)
            self.assertMounted(m, before, "written")
            punch(fd, 400, 4)
            punch(fd, 803, 6)  # a whole element, and parts of two
            before.erase(400, 4)
            before.erase(803, 6)
            self.assertMounted(m, before, "erased")
        self.assertStored(path, before)

    def test_a_chunk_without_elements_is_not_stored(self):
        for index in INDEXES:
            path = self.copy(f"{index}_early_filtered")
            model = self.model(path)
            with self.subTest(index=index), Mount(path, options="rw") as m:
                fd = m.open("sparse", os.O_WRONLY)
                for at in range(0, model.bytes.size, 100):  # piece by piece, so no chunk goes as a whole
                    n = min(100, model.bytes.size - at)
                    punch(fd, at, n)
                    model.erase(at, n)
                self.assertEqual(pieces(m.open("sparse", os.O_RDONLY)), [])
            # Only chunks that had elements outside of the dataset are left.
            self.assertTrue(all(chunk.outside for chunk in self.assertStored(path, model).chunks.values()))
            with Mount(path, options="rw") as m:
                fd = m.open("sparse", os.O_WRONLY)
                os.pwrite(fd, b"wxyz", 8)
                model.write(8, b"wxyz")
            self.assertStored(path, model)

    def test_what_is_written_has_the_form_of_the_prototype(self):
        """All its chunks are blocks of version 1, or all; the values of section 1 are in row-major order."""
        path = self.copy("btree_early")
        with Mount(path, options="rw") as m:
            fd = m.open("sparse", os.O_WRONLY)
            punch(fd, 0, os.fstat(fd).st_size)
            row = 30 * 4
            for i in range(4):
                os.pwrite(fd, struct.pack("<5I", *range(i * 5, i * 5 + 5)), i * row)  # chunk 0,0
            for i in 0, 1, 3:
                os.pwrite(fd, struct.pack("<2I", i, i), i * row + 24)  # chunk 0,1, columns 1 and 2
        d = sparse_walker.walk(path)
        self.assertEqual({s: c.selection for s, c in d.chunks.items()}, {(0, 0): "all", (0, 1): "blocks1"})
        chunk = d.chunks[0, 1]
        stored = d.data[chunk.address:chunk.address + chunk.size]
        space = b"\2\2\0\1" + struct.pack("<QQ", 4, 5)
        blocks = struct.pack("<6I", 2, 1, 0, 8 + 2 * 16, 2, 2) + struct.pack("<8I", 0, 1, 1, 2, 3, 1, 3, 2)
        self.assertEqual(stored[:chunk.offset - 4], b"\1\0\x08" + struct.pack("<I", len(space)) + space + blocks)
        self.assertEqual(stored[chunk.offset:], struct.pack("<6I", 0, 0, 1, 1, 3, 3))

    def test_files_of_another_writer(self):
        listing = os.path.join(SPARSE, "values.json")
        if not os.path.exists(listing):
            self.skipTest(f"no {listing}")
        for name, about in json.loads(read(listing)).items():
            path = self.file(name)
            shutil.copy(os.path.join(SPARSE, name), path)
            model = self.model(path, struct.pack("<i", about["fill"]))
            version = sparse_walker.walk(path).version
            with self.subTest(name=name), Mount(path, options="rw") as m:
                fd = m.open("sparse", os.O_WRONLY)
                for at in range(0, model.bytes.size, 28):
                    os.pwrite(fd, b"4bytes to nine"[:9], at)
                    model.write(at, b"4bytes to nine"[:9])
                    punch(fd, at + 4, 4)
                    model.erase(at + 4, 4)
                self.assertMounted(m, model, name)
            self.assertEqual(self.assertStored(path, model).version, version)

    def test_what_cannot_be_written(self):
        path = self.copy("bad_three_sections")
        with Mount(path, options="rw") as m:
            self.assertErrno(errno.ENOTSUP, os.open, m.at("sparse"), os.O_WRONLY)
        path = self.copy("extensible_now")
        with Mount(path, options="rw,swmr") as m:
            self.assertErrno(errno.ENOTSUP, os.open, m.at("sparse"), os.O_WRONLY)

    def test_an_empty_dataset_stays_sparse(self):
        path = self.copy("extensible_early")
        with Mount(path, options="rw") as m:
            os.setxattr(m.at("sparse"), "h5fs.shape", b"0,0")
            self.assertErrno(errno.EBUSY, os.setxattr, m.at("sparse"), "h5fs.dtype", b"<f8")
            os.setxattr(m.at("sparse"), "h5fs.shape", b"3,7")
            self.assertErrno(errno.EINVAL, os.setxattr, m.at("sparse"), "h5fs.shape", b"3,7,2")
            self.assertEqual(os.getxattr(m.at("sparse"), "h5fs.layout"), b"structured")
            os.pwrite(m.open("sparse", os.O_WRONLY), b"abcd", 4)
        d = sparse_walker.walk(path)
        self.assertEqual((d.dims, d.defined), ((3, 7), {(0, 1): b"abcd"}))

    def test_a_new_index_has_the_version_of_the_prototype(self):
        """New contents begin without an index; the old one has version 0."""
        path = self.copy("fixed_wide10")
        with Mount(path, options="rw") as m:
            os.setxattr(m.at("sparse"), "h5fs.shape", b"20,30")
            with open(m.at("sparse"), "wb", buffering=0) as f:
                f.write(b"abcd")
                f.truncate(20 * 30 * 4)
        d = sparse_walker.walk(path)
        self.assertEqual((d.version, d.defined), (1, {(0, 0): b"abcd"}))

    # ---- copies ----

    def test_copies(self):
        """What cp copies is what is defined, to a plain file and back."""
        for sparse, filtered in itertools.product(("auto", "always"), ("", "_filtered")):
            path, plain = self.copy(f"large{filtered}"), self.file("plain")
            model = self.model(path)
            # cp --sparse=always takes zeros for a hole
            model.bytes[model.defined] |= 1
            with self.subTest(sparse=sparse, filtered=filtered), Mount(path, options="rw") as m:
                fd = m.open("sparse", os.O_WRONLY)
                for begin, end in model.pieces():
                    os.pwrite(fd, model.bytes.reshape(-1)[begin:end].tobytes(), begin)
                subprocess.run(["cp", f"--sparse={sparse}", m.at("sparse"), plain], check=True)
                self.assertEqual(read(plain), model.bytes.tobytes())
                other = self.file("other.h5")
                shutil.copy(f"{DATA}/structured_large.h5", other)
                os.chmod(other, 0o644)
                with Mount(other, options="rw") as n:
                    subprocess.run(["cp", f"--sparse={sparse}", m.at("sparse"), n.at("sparse")], check=True)
                    self.assertEqual(read(n.at("sparse")), model.bytes.tobytes())
                self.assertStored(other, model)

    def test_copies_to_a_dataset_that_grows(self):
        """Gaps are no elements, neither inside of a row nor at its end."""
        path, other = self.copy("large"), self.file("other.h5")
        shutil.copy(f"{DATA}/structured_btree_early_filtered.h5", other)
        os.chmod(other, 0o644)
        model = self.model(path)
        model.bytes[model.defined] |= 1
        with Mount(path, options="rw") as m, Mount(other, options="rw") as n:
            os.setxattr(n.at("sparse"), "h5fs.shape", b"3,60")
            fd = m.open("sparse", os.O_WRONLY)
            for begin, end in model.pieces():
                os.pwrite(fd, model.bytes.reshape(-1)[begin:end].tobytes(), begin)
            punch(fd, 39 * 240 + 80, 160)
            model.erase(39 * 240 + 80, 160)
            subprocess.run(["cp", "--sparse=always", m.at("sparse"), n.at("sparse")], check=True)
            self.assertEqual(os.getxattr(n.at("sparse"), "h5fs.shape"), b"40,60")
            self.assertMounted(n, model, "copied")
        self.assertStored(other, model)

    # ---- anything ----

    def step(self, dice, m, model):
        """One random change. What it was."""
        fd, size, row = m.open("sparse", os.O_WRONLY), model.bytes.size, model.row()
        grows = model.maxdims[0] > len(model.bytes)
        kind = dice.choice(["write"] * 6 + ["elements"] * 3 + ["erase"] * 4 + ["append"] * 3 * grows + ["rows", "shape", "replace", "sync"])
        if kind in ("write", "elements") and size:
            at = dice.randrange(size)
            n = dice.randrange(1, min(size - at, dice.choice((1, 8, 60, 900))) + 1)
            if kind == "elements":
                at -= at % 4
                n += -n % 4
            data = dice.randbytes(n)
            os.pwrite(fd, data, at)
            model.write(at, data)
        elif kind == "erase" and size:
            at = dice.randrange(size)
            n = dice.randrange(1, min(size - at, dice.choice((8, 100, 2000))) + 1)
            punch(fd, at, n)
            model.erase(at, n)
        elif kind == "append":
            n = dice.randrange(1, min(7, model.maxdims[0] - len(model.bytes) + 1))
            data = dice.randbytes(n * row)
            with open(m.at("sparse"), "ab", buffering=0) as f:
                f.write(data)
            model.append(data)
        elif kind == "rows" and len(set(model.maxdims)) + len(model.maxdims) and model.maxdims != model.defined.shape:
            rows = dice.randrange(1, min(model.maxdims[0], len(model.bytes) + 6) + 1)
            os.ftruncate(fd, rows * row)
            model.reshape((rows, *model.defined.shape[1:]))
        elif kind == "shape" and model.maxdims != model.defined.shape and not self.edges:
            dims = [dice.randrange(1, min(most, n + 5) + 1) for n, most in zip(model.defined.shape, model.maxdims)]
            os.setxattr(m.at("sparse"), "h5fs.shape", ",".join(map(str, dims)).encode())
            model.reshape(tuple(dims))
        elif kind == "replace" and model.maxdims == model.defined.shape:
            model.erase(0, size)
            cut = os.open(m.at("sparse"), os.O_WRONLY | os.O_TRUNC)
            for at in sorted(dice.randrange(size) for _ in range(3)):
                data = dice.randbytes(min(10, size - at))
                os.pwrite(cut, data, at)
                model.write(at, data)
            os.ftruncate(cut, size)
            os.close(cut)
        elif kind == "sync":
            os.fsync(fd)
        os.close(fd)
        return kind

    def play(self, name, fill, seed, steps):
        dice, path, done = random.Random(seed), self.copy(name), []
        model = self.model(path, fill)
        self.edges = name == "edges"
        for _ in range(3):
            with Mount(path, options="rw") as m:
                for _ in range(steps):
                    done.append(self.step(dice, m, model))
                    if dice.random() < .3:
                        self.assertMounted(m, model, done)
            self.assertStored(path, model, done)

    def test_anything(self):
        for index, early, filtered in itertools.product(INDEXES, ("now", "early"), ("", "_filtered")):
            with self.subTest(index=index, early=early, filtered=filtered):
                self.play(f"{index}_{early}{filtered}", bytes(4) if early == "early" else b"\x09\x08\x07\x06", 1, 15)
        for name in ("pages", "pages_filtered", "edges", "kind5_deep", "btree_four_filtered", "extensible_wide01", "fixed_wide10"):
            with self.subTest(name=name):
                self.play(name, self.fill_of(name), 2, 12)

    def fill_of(self, name):
        d = sparse_walker.walk(f"{DATA}/structured_{name}.h5")
        dense = np.frombuffer(read(f"{DATA}/structured_{name}.bin"), "u1").reshape(*d.dims, d.element)
        free = np.argwhere(~Model(d, bytes(d.element)).defined)
        return dense[tuple(free[0])].tobytes() if len(free) else bytes(d.element)


if __name__ == "__main__":
    main()
