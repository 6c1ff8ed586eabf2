#!/usr/bin/python3
"""h5fs.shape of datasets that have data: all dimensions change as h5py's resize() changes them. Datasets that were emptied are declared anew."""
import errno
import os
import random
import subprocess

import h5py
import numpy as np

import judges
from mountlib import H5FS, Mount, WriteCase, main, read, write

SEQUENCES = int(os.environ.get("H5FS_SHAPE_SEQUENCES", "24"))
STEPS = 12
NONE = None


def kinds(draw):
    """Name, shape, maximum, and what create_dataset() is told: each index, with filters and without."""
    for name, shape, most, chunks in (("fixed", (9, 11), (20, 17), (4, 3)), ("implicit", (9, 11), (20, 17), (4, 3)), ("early", (9, 11), (NONE, 17), (4, 3)),
                                      ("single", (9, 11), (9, 11), (9, 11)), ("rows", (9, 11), (NONE, 17), (4, 3)), ("columns", (9, 11), (20, NONE), (4, 3)),
                                      ("both", (9, 11), (NONE, NONE), (4, 3)), ("cube", (5, 4, 6), (9, NONE, 12), (2, 3, 4)), ("nothing", (0, 5), (NONE, NONE), (4, 3)),
                                      ("large", (3, 40), (NONE, 60), (2, 50)), ("line", (30,), (NONE,), (4,))):
        for filtered in (False, True):
            if filtered and name == "implicit":
                continue
            yield name + "-filtered" * filtered, name, shape, most, chunks, dict(filtered=filtered, fill=draw.choice([None, 7]))


def make(f, name, kind, shape, most, chunks, filtered, fill):
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    how.set_chunk(chunks)
    if kind in ("implicit", "early"):
        how.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    if fill is not None:
        how.set_fill_value(np.array(fill, "<i4"))
    if filtered:
        how.set_shuffle()
        how.set_deflate(1)
        how.set_fletcher32()
    space = h5py.h5s.create_simple(shape, tuple(h5py.h5s.UNLIMITED if n is None else n for n in most))
    d = h5py.Dataset(h5py.h5d.create(f.id, name.encode(), h5py.h5t.STD_I32LE, space, how))
    d[...] = np.arange(d.size).reshape(shape) + 100
    return d


class Shapes(WriteCase):
    def any_shape(self, draw, now, most):
        """Mostly near the present shape, so that chunks at the edges matter."""
        shape = list(now)
        for i in draw.sample(range(len(now)), draw.randint(1, len(now))):
            top = most[i] if most[i] is not None else now[i] + 8
            shape[i] = draw.choice([0, 1, top, now[i]] + [draw.randint(0, top)] * 4 + [max(0, min(top, now[i] + draw.randint(-3, 3)))] * 4)
        return tuple(shape)

    @staticmethod
    def resized(array, shape, fill):
        """As H5Dset_extent: what is in both shapes stays."""
        new = np.full(shape, fill, "<i4")
        both = tuple(slice(0, min(pair)) for pair in zip(array.shape, shape))
        new[both] = array[both]
        return new

    def step(self, draw, m, name, most, fill):
        shape = self.any_shape(draw, self.model[name].shape, most)
        os.setxattr(m.at(name), "h5fs.shape", ",".join(map(str, shape)).encode())
        self.model[name] = expected = self.resized(self.model[name], shape, fill)
        found = np.frombuffer(read(m.at(name)), "<i4").reshape(shape)
        np.testing.assert_array_equal(found, expected, f"{name} {shape}")
        if expected.size and draw.randrange(2):
            expected[...] = np.arange(expected.size).reshape(shape) + draw.randrange(1 << 20)
            with open(m.at(name), "r+b") as file:
                file.write(expected.tobytes())

    def judge(self, path, cases):
        """libhdf5 finds the elements; what it then makes larger has nothing that a chunk has left behind. Version 1.10 itself damages a
        dataset with a single chunk and filters that it makes smaller or larger."""
        with judges.File(path) as f:
            for name, *_ in cases:
                np.testing.assert_array_equal(f[name][...], self.model[name], name)
        with h5py.File(path, "r+") as f:
            for name, _, _, most, _, options in cases:
                if name == "single-filtered":
                    continue
                shape = tuple(n + 9 if top is None else top for n, top in zip(self.model[name].shape, most))
                f[name].resize(shape)
                np.testing.assert_array_equal(f[name][...], self.resized(self.model[name], shape, options["fill"] or 0), name)

    def one(self, seed, libver):
        draw = random.Random(seed)
        path = self.file(f"{seed}.h5")
        cases = draw.sample(list(kinds(draw)), 8)
        self.model = {}
        with h5py.File(path, "w", libver=libver) as f:
            for name, kind, shape, most, chunks, options in cases:
                self.model[name] = make(f, name, kind, shape, most, chunks, **options)[...]
        for _ in range(2):
            with Mount(path, "-f", options="rw") as m:
                for _ in range(STEPS // 2):
                    for name, _, _, most, _, options in cases:
                        self.step(draw, m, name, most, options["fill"] or 0)
        self.judge(path, cases)
        done = subprocess.run([H5FS, "--check", path], capture_output=True, text=True, check=False)
        self.assertIn("no damage", done.stdout)

    def test_sequences(self):
        for seed in range(1, SEQUENCES + 1):
            self.one(seed, ("earliest", "latest", ("v108", "v108"), "latest")[seed % 4])

    def test_chunks_that_go_are_freed(self):
        for libver in "earliest", "latest":
            path = self.file("space.h5")
            with h5py.File(path, "w", libver=libver) as f:
                for name, most in ("rows", (None, 1000)), ("both", (None, None)), ("fixed", (1000, 1000)):
                    f.create_dataset(name, data=np.random.default_rng(1).integers(0, 256, (1000, 1000), "u1"), maxshape=most, chunks=(100, 100))
            with Mount(path, options="rw") as m:
                for name in "rows", "both", "fixed":
                    os.setxattr(m.at(name), "h5fs.shape", b"1000,150")
                    self.assertEqual(os.getxattr(m.at(name), "h5fs.storage"), b"200000")
                    os.setxattr(m.at(name), "h5fs.shape", b"1000,1000")
                    self.assertEqual(os.getxattr(m.at(name), "h5fs.storage"), b"200000")
            self.assertLess(os.stat(path).st_blocks * 512, 850_000)

    def test_columns_of_many_chunks(self):
        """The last dimension grows so far that each index has all its levels: an extensible array, in which it comes first, and a B-tree."""
        path, columns = self.file("far.h5"), (1, 7, 700, 40, 801)
        model = {name: np.arange(3, dtype="<i4").reshape(3, 1) for name in ("array", "array-filtered", "tree", "cube")}
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("array", data=model["array"], maxshape=(3, None), chunks=(2, 1))
            f.create_dataset("array-filtered", data=model["array"], maxshape=(3, None), chunks=(2, 1), shuffle=True, compression=1)
            f.create_dataset("tree", data=model["tree"], maxshape=(None, None), chunks=(2, 1))
            f.create_dataset("cube", data=model["cube"].reshape(3, 1, 1), maxshape=(5, None, 2), chunks=(2, 1, 1))
        with Mount(path, options="rw") as m:
            for last in columns[1:]:
                for name in model:
                    shape = (3, last) + (1,) * (name == "cube")
                    os.setxattr(m.at(name), "h5fs.shape", ",".join(map(str, shape)).encode())
                    model[name] = self.resized(model[name], (3, last), 0)
                    self.assertEqual(read(m.at(name)), model[name].tobytes())
                    model[name][:, ::3] += last
                    model[name][2, -1] = 5
                    with open(m.at(name), "r+b") as file:
                        file.write(model[name].tobytes())
            for name, index in ("array", b"earray"), ("array-filtered", b"earray"), ("tree", b"btree2"), ("cube", b"earray"):
                self.assertEqual(os.getxattr(m.at(name), "h5fs.index"), index)
        model["cube"] = model["cube"].reshape(3, -1, 1)
        self.assertStored(path, **model)

    def test_rows_cannot_be_added_where_another_dimension_is_unlimited(self):
        path = self.file("columns.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("d", data=np.arange(20, dtype="<i4").reshape(4, 5), maxshape=(4, None), chunks=(2, 3))
        with Mount(path, "-f", options="rw") as m:
            fd = m.open("d", os.O_WRONLY | os.O_APPEND)
            self.assertErrno(errno.EFBIG, os.write, fd, bytes(20))
            os.setxattr(m.at("d"), "h5fs.shape", b"4,7")
            self.assertEqual(os.stat(m.at("d")).st_size, 4 * 7 * 4)
            self.assertIn("only dimension 0 grows by writing, and it is at its maximum; dimension 1 grows if h5fs.shape is set", m.said())

    def test_large_and_sparse(self):
        """What is not stored takes no time."""
        path = self.file("sparse.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("big", (1 << 30, 1 << 30), "u1", maxshape=(None, 1 << 40), chunks=(1 << 10, 1 << 10))[5, 6] = 7
            f.create_dataset("tree", (1 << 30, 1 << 30), "u1", maxshape=(None, None), chunks=(1 << 10, 1 << 10))[5, 6] = 7
            f["chunk"] = h5py.Empty("u1")
        with Mount(path, options="rw") as m:
            for name in "big", "tree":
                for shape in b"10,1073741823", b"100,8", b"1073741824,1073741824":
                    os.setxattr(m.at(name), "h5fs.shape", shape)
                    self.assertEqual(os.getxattr(m.at(name), "h5fs.shape"), shape)
        with judges.File(path) as f:
            self.assertEqual([f["big"][5, 6], f["tree"][5, 6]], [7, 7])

    def test_chunks_larger_than_memory_shall_have(self):
        path = self.file("chunk.h5")
        data = np.arange(1100 * 1100, dtype="<i4").reshape(1100, 1100)
        with h5py.File(path, "w") as f:
            f.create_dataset("d", data=data, maxshape=(None, None), chunks=(1100, 1100), fillvalue=3)
        with Mount(path, options="rw") as m:
            os.setxattr(m.at("d"), "h5fs.shape", b"1000,700")
            os.setxattr(m.at("d"), "h5fs.shape", b"1200,1100")
        expected = np.full((1200, 1100), 3, "<i4")
        expected[:1000, :700] = data[:1000, :700]
        self.assertStored(path, d=expected)

    def test_refused(self):
        path = self.file("refused.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f["contiguous"] = np.arange(12).reshape(3, 4)
            d = f.create_dataset("d", data=np.arange(12, dtype="<i4").reshape(3, 4), maxshape=(None, 6), chunks=(2, 2))
            d.attrs["x"] = 1
        with Mount(path, options="rw") as m:
            for name, shape, number in (("d", "3,7", errno.EINVAL), ("d", "3", errno.EINVAL), ("d", "3,4,5", errno.EINVAL), ("d", "3,-1", errno.EINVAL),
                                        ("d", "", errno.EINVAL), ("d", "9223372036854775807,6", errno.EINVAL), ("contiguous", "3,3", errno.EPERM),
                                        ("contiguous", "3,5", errno.EINVAL)):
                self.assertErrno(number, os.setxattr, m.at(name), "h5fs.shape", shape.encode())
            os.setxattr(m.at("contiguous"), "h5fs.shape", b"3,4")
            fd = os.open(m.at("d"), os.O_WRONLY | os.O_APPEND)
            os.write(fd, b"123")
            self.assertErrno(errno.EBUSY, os.setxattr, m.at("d"), "h5fs.shape", b"3,5")
            os.setxattr(m.at("d"), "h5fs.shape", b"2,4")
            self.assertErrno(errno.EINVAL, os.close, fd)
        self.assertStored(path, d=np.arange(8, dtype="<i4").reshape(2, 4))

    def test_killed(self):
        """At any instant the dataset has one of the shapes, and its elements."""
        for seed, libver in enumerate(["earliest", "latest"] * 3):
            path = self.file(f"killed-{seed}.h5")
            data = np.arange(10_000, dtype="<i4").reshape(100, 100)
            with h5py.File(path, "w", libver=libver) as f:
                f.create_dataset("d", data=data, maxshape=(None, None), chunks=(7, 9), compression="gzip" if seed % 3 else None)
            with Mount(path, options="rw") as m:
                os.setxattr(m.at("d"), "h5fs.shape", b"100,50")
                os.setxattr(m.at("d"), "h5fs.shape", b"60,90")
                m.kill()
            expected = np.zeros((60, 90), "<i4")
            expected[:, :50] = data[:60, :50]
            with judges.File(path) as f:
                d = f["d"]
                self.assertIn(d.shape, ((60, 90), (60, 50)))
                np.testing.assert_array_equal(d[...], expected[:, :d.shape[1]])


class DeclaredAnew(WriteCase):
    def test_emptied(self):
        for libver in "earliest", "latest":
            path = self.file("emptied.h5")
            with h5py.File(path, "w", libver=libver) as f:
                f.create_dataset("rows", data=np.arange(3000, dtype="<i4").reshape(300, 10), maxshape=(None, 10), chunks=(3, 5), compression="gzip")
                f.create_dataset("fixed", data=np.arange(3000, dtype="<i4").reshape(300, 10), chunks=(3, 5))
                f.create_dataset("tree", data=np.arange(3000, dtype="<i4").reshape(300, 10), maxshape=(None, None), chunks=(3, 5))
                how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                how.set_chunk((3, 5))
                how.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
                h5py.h5d.create(f.id, b"early", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((30, 10), (60, 10)), how)
                f["rows"].attrs["note"] = "stays"
            names = "rows", "fixed", "tree", "early"
            with Mount(path, "-f", options="rw") as m:
                for name in names:
                    self.assertErrno(errno.EBUSY, os.setxattr, m.at(name), "h5fs.dtype", b"<f8")
                    os.truncate(m.at(name), 40)
                    self.assertErrno(errno.EBUSY, os.setxattr, m.at(name), "h5fs.dtype", b"<f8")
                    os.truncate(m.at(name), 0)
                    # The shape alone is changed as that of any dataset.
                    os.setxattr(m.at(name), "h5fs.shape", b"0,4")
                    self.assertEqual(os.getxattr(m.at(name), "h5fs.chunks"), b"3,5")
                    os.setxattr(m.at(name), "h5fs.info", b'{"dtype":"<f8","shape":"0,2","maxshape":"inf,2","filters":"shuffle,deflate(4)"}')
                    write(m.at(name), np.arange(20.0).tobytes())
            with judges.File(path) as f:
                for name in names:
                    np.testing.assert_array_equal(f[name][...], np.arange(20.0).reshape(10, 2))
                    self.assertEqual(f[name].compression, "gzip")
                self.assertEqual(f["rows"].attrs["note"], "stays")
            done = subprocess.run([H5FS, "--check", path], capture_output=True, text=True, check=False)
            self.assertIn("no damage", done.stdout)

    def test_plain_files(self):
        """`: > file` and then it is something else."""
        path = self.file("plain.h5")
        with Mount(path, options="create") as m:
            write(m.at("a"), b"x" * 100_000)
            self.assertErrno(errno.EBUSY, os.setxattr, m.at("a"), "h5fs.dtype", b"<i4")
            self.shell(': > "$1"; setfattr -n h5fs.dtype -v "<i4" "$1"; printf 12345678 >> "$1"', m.at("a"))
            write(m.at("two"), b"x" * 10)
            os.link(m.at("two"), m.at("names"))
            os.truncate(m.at("two"), 0)
            self.assertErrno(errno.EBUSY, os.setxattr, m.at("two"), "h5fs.dtype", b"<i4")
        self.assertStored(path, a=np.frombuffer(b"12345678", "<i4"))


main()
