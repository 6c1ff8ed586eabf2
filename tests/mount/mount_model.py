#!/usr/bin/python3
"""Datasets of random shapes, types, chunks, filters and indexes are written through mounts at random, each beside a model
in memory: append, overwrite, write across the end and beyond it, truncate, fsync, close, mount anew. The mount must show
the model at any time; a mount for reading and libhdf5 must find it at the end.

H5FS_MODEL_SEQUENCES  how many datasets (2,000); a sequence of 10 to 20 operations on each
H5FS_MODEL_SEED       of the first file; each file has its own, which a failure names ("random": another one every time)
"""
import errno
import os
import random

import h5py
import numpy as np

import judges
from libhdf5 import call, hid
from mountlib import Mount, MountCase, main, read

SEQUENCES = int(os.environ.get("H5FS_MODEL_SEQUENCES", "2000"))
SEED = os.environ.get("H5FS_MODEL_SEED", "1")
A_FILE = 50  # datasets
LARGEST = 30_000  # bytes that a dataset grows to
LZF = 32000

TYPES = [np.dtype(t) for t in ("u1", "i1", "<i2", ">u2", "<i4", ">i4", "<u8", "<f4", ">f8", "S3", "V5")]
TYPES += [np.dtype([("a", "<i2"), ("b", ">f8"), ("c", "S3")]), np.dtype([("x", "<i4", (2, 2)), ("y", "u1")])]


class Described(random.Random):
    """Draws datasets."""

    def below(self, n):
        return self.randrange(n)

    def chance(self, percent):
        return self.randrange(100) < percent

    def bytes(self, n):
        """Noise, or what can be compressed."""
        return self.randbytes(n) if self.chance(40) else (self.randbytes(self.randint(1, 9)) * n)[:n]

    def dims(self):
        rank = self.choice([1, 1, 2, 2, 2, 3])
        return (self.choice([0, 1, self.below(8), self.below(30)]), *(self.randint(1, 9) for _ in range(rank - 1)))

    def most(self, dims):
        if self.chance(10):
            return dims[:1] + tuple(None if self.chance(20) else d for d in dims[1:])
        first = None if self.chance(75) else dims[0] + self.below(30)
        return (first, *(self.choice([d, d, d, d, d, d, None, d + self.below(5)]) for d in dims[1:]))

    def chunk(self, dims, most):
        if self.chance(2):
            return (self.randint(1, 1 << 21) if most[0] is None else dims[0] or 1, *dims[1:])
        if self.chance(10) and dims[0]:
            return dims
        return tuple(min(self.choice([1, self.randint(1, 6), self.randint(1, 40), d or 1]), m or 99) or 1
                     for d, m in zip(dims, most))

    def filters(self, dcpl, dtype):
        if self.chance(35):
            return
        number = dtype.kind in "iuf"
        scale = self.chance(8) and dtype.kind in "iu"
        if scale:
            dcpl.set_scaleoffset(h5py.h5z.SO_INT, 0)
        if self.chance(30):
            dcpl.set_shuffle()
        which = self.below(10)
        if which < 5:
            dcpl.set_deflate(self.below(10))
        elif which < 7:
            dcpl.set_filter(LZF, h5py.h5z.FLAG_OPTIONAL, ())
        elif which < 8 and number and not scale:
            dcpl.set_szip(self.choice([h5py.h5z.SZIP_EC_OPTION_MASK, h5py.h5z.SZIP_NN_OPTION_MASK]), self.choice([4, 8, 32]))
        if self.chance(20):
            dcpl.set_fletcher32()

    def plist(self, dims, most, dtype, new):
        """The creation properties, and the maximum dimensions that they allow."""
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        if self.chance(50):
            dcpl.set_fill_value(np.frombuffer(self.randbytes(dtype.itemsize), dtype).reshape(()))
        if self.chance(10):
            dcpl.set_fill_time(self.choice([h5py.h5d.FILL_TIME_ALLOC, h5py.h5d.FILL_TIME_IFSET, h5py.h5d.FILL_TIME_NEVER]))
        if self.chance(12) or (not dims[0] and self.chance(2)):
            return dcpl, dims  # contiguous
        if self.chance(8) and int(np.prod(dims)) * dtype.itemsize > 12:
            # The layout message of less in a new object header may lie where it cannot be changed safely.
            dcpl.set_layout(h5py.h5d.COMPACT)
            return dcpl, dims
        chunk = self.chunk(dims, most)
        dcpl.set_chunk(chunk)
        if int(np.prod(chunk)) * dtype.itemsize < 1 << 17:
            if self.chance(10):
                dcpl.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            self.filters(dcpl, dtype)
        if new and self.chance(15):
            call("H5Pset_chunk_opts", hid(dcpl.id), 2)
        return dcpl, most


class Model:
    """A dataset as a file."""

    def __init__(self, case, draw, file, name, new):
        self.case, self.draw, self.name = case, draw, name
        self.fd, self.said, self.path = None, [], None
        dtype, dims = draw.choice(TYPES), draw.dims()
        while True:
            try:
                dcpl, most = draw.plist(dims, draw.most(dims), dtype, new)
                space = h5py.h5s.create_simple(dims, tuple(h5py.h5s.UNLIMITED if m is None else m for m in most))
                d = h5py.Dataset(h5py.h5d.create(file.id, name.encode(), h5py.h5t.py_create(dtype), space, dcpl))
                break
            except (ValueError, OSError, RuntimeError):
                continue  # libhdf5 does not take every combination
        self.row = int(np.prod(dims[1:])) * dtype.itemsize
        if draw.chance(60) and dims[0]:
            at = draw.below(dims[0])
            n = draw.randint(1, dims[0] - at)
            part = np.frombuffer(draw.bytes(n * self.row), f"V{dtype.itemsize}").reshape(n, *dims[1:])
            space.select_hyperslab((at,) + (0,) * (len(dims) - 1), part.shape)
            d.id.write(h5py.h5s.create_simple(part.shape), space, part, d.id.get_type())
        # What libhdf5 leaves unwritten beside it may be anything.
        self.content = bytearray(self.stored(file))
        self.resizable = d.chunks is not None
        self.most = None if self.resizable and most[0] is None else most[0] * self.row  # bytes
        fill = np.zeros((), dtype)
        dcpl = d.id.get_create_plist()
        if dcpl.get_fill_time() != h5py.h5d.FILL_TIME_NEVER and dcpl.fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED:
            dcpl.get_fill_value(fill)
        self.fill = fill.tobytes()
        filters = [dcpl.get_filter(i)[0] for i in range(dcpl.get_nfilters())]
        self.what = f"{name} {dtype} {d.shape} of {d.maxshape} in {d.chunks} {filters}"

    def stored(self, file):
        """The bytes as libhdf5 finds them."""
        d = file[self.name].id
        raw = np.zeros(d.shape, f"V{d.get_type().get_size()}")
        if raw.size:
            d.read(h5py.h5s.ALL, h5py.h5s.ALL, raw, d.get_type())
        return raw.tobytes()

    def compare(self, found, what):
        if found == self.content:
            return
        at = next((i for i, (a, b) in enumerate(zip(found, self.content)) if a != b), None)
        raise AssertionError(f"{what}: {len(found)} bytes, not {len(self.content)}" if at is None else
                             f"{what}: byte {at} of {len(found)}, row {at // self.row}")

    # ---- descriptors

    def open(self):
        if self.fd is None:
            self.fd = os.open(self.path, os.O_RDWR)
        return self.fd

    def close(self):
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None

    # ---- operations

    def grow(self, size):
        """Rows of the fill value."""
        more = size - len(self.content)
        self.content += (self.fill * (more // len(self.fill) + 1))[:max(0, more)]

    def put(self, at, data):
        """What a write at this place does; how many bytes of it."""
        room = len(data) if self.most is None else max(0, self.most - at)
        data = data[:room]
        if data:
            self.grow(at)
            self.content[at:at + len(data)] = data
        return len(data)

    def write_at(self, at, data):
        self.said.append(f"write {len(data)} at {at}")
        if not data:
            return
        n = self.put(at, data)
        if n:
            self.case.assertEqual(os.pwrite(self.open(), data, at), n)
        else:
            self.case.assertErrno(errno.EFBIG, os.pwrite, self.open(), data, at)

    def some_rows(self):
        """How many, so that the dataset stays small."""
        room = max(0, LARGEST - len(self.content)) // self.row
        return min(room, self.draw.choice([1, 1, 1, 2, 3, self.draw.below(10), self.draw.below(60)]))

    def append(self):
        data = self.draw.bytes(self.some_rows() * self.row)
        if self.draw.chance(30):
            self.write_at(len(self.content), data)
            return
        cuts = sorted(self.draw.below(len(data) + 1) for _ in range(self.draw.below(3)))
        self.said.append(f"append {len(data)} in pieces {cuts}")
        room = len(data) if self.most is None else min(len(data), max(0, self.most - len(self.content)))
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            for begin, end in zip([0] + cuts, cuts + [len(data)]):
                n = max(0, min(end, room) - begin)
                if n or begin == end:
                    self.case.assertEqual(os.write(fd, data[begin:end]), n)
                else:
                    self.case.assertErrno(errno.EFBIG, os.write, fd, data[begin:end])
        finally:
            os.close(fd)
        self.content += data[:room]

    def overwrite(self):
        if self.content:
            at = self.draw.below(len(self.content))
            self.write_at(at, self.draw.bytes(min(len(self.content) - at, self.draw.choice([1, 5, 100, 3000, LARGEST]))))

    def across(self):
        """Over the end, or from beyond it: to the end of a row."""
        at = self.draw.below(len(self.content) + 1)
        if self.draw.chance(50):
            at = len(self.content) + self.draw.below(1 + max(0, LARGEST - len(self.content)) // 2)
        end = max(len(self.content), at) + 1 + self.draw.below(1 + 5 * self.row)
        end += -end % self.row
        if self.resizable or at < len(self.content):
            self.write_at(at, self.draw.bytes(end - at))

    def truncate(self):
        size = self.row * self.draw.choice([0, self.draw.below(40), len(self.content) // self.row // 2,
                                            max(0, len(self.content) // self.row - 1)])
        size = min(size, LARGEST // self.row * self.row)
        if self.row > 1 and self.draw.chance(5):
            size += self.draw.randint(1, self.row - 1)
        self.said.append(f"truncate {size}")
        expected = 0
        if size == len(self.content):
            pass
        elif not self.resizable:
            expected = errno.EPERM
        elif size % self.row:
            expected = errno.EINVAL
        elif self.most is not None and size > self.most:
            expected = errno.EFBIG
        # To cut a descriptor to nothing begins new contents, as `replace` does.
        what = self.open() if self.draw.chance(50) and (self.resizable or size) else self.path
        if expected:
            self.case.assertErrno(expected, os.truncate, what, size)
            return
        os.truncate(what, size)
        del self.content[size:]
        self.grow(size)

    def empty(self):
        """Opened as shells do for `>`."""
        if self.content and (not self.resizable or len(self.content) == self.most):
            self.replace()
            return
        if not self.resizable:
            return
        self.said.append("O_TRUNC")
        os.close(os.open(self.path, os.O_WRONLY | os.O_TRUNC))
        del self.content[:]
        self.write_at(0, self.draw.bytes(self.some_rows() * self.row))

    def replace(self):
        """The same with a dataset that keeps its size: the contents change all at once, or not at all."""
        data = self.draw.bytes(len(self.content) - self.draw.chance(30))
        cuts = sorted(self.draw.below(len(data) + 1) for _ in range(self.draw.below(3)))
        self.said.append(f"replace by {len(data)} in pieces {cuts}")
        fd = os.open(self.path, os.O_RDWR | os.O_TRUNC)
        for begin, end in zip([0] + cuts, cuts + [len(data)]):
            self.case.assertEqual(os.write(fd, data[begin:end]), end - begin)
        self.case.assertEqual(os.pread(fd, LARGEST, 0), data[:LARGEST])
        self.compare(read(self.path), "before it is replaced")
        if len(data) != len(self.content):
            self.case.assertErrno(errno.EINVAL, os.close, fd)
            return
        os.close(fd)
        self.content[:] = data

    def incomplete(self):
        """A part of a row vanishes."""
        if self.row == 1 or (self.most is not None and len(self.content) >= self.most):
            return
        n = self.draw.randint(1, self.row - 1)
        self.said.append(f"incomplete {n}")
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        self.case.assertEqual(os.write(fd, bytes(n)), n)
        self.case.assertErrno(errno.EINVAL, os.close, fd)

    def look(self):
        at = self.draw.below(len(self.content) + 1)
        n = self.draw.choice([1, 100, LARGEST])
        self.said.append(f"read {n} at {at}")
        self.case.assertEqual(os.pread(self.open(), n, at), self.content[at:at + n])

    def sync(self):
        self.said.append("fsync")
        os.fsync(self.open())

    def stat(self):
        self.said.append("stat")
        self.case.assertEqual(os.stat(self.path).st_size, len(self.content))

    def shut(self):
        self.said.append("close")
        self.close()

    def step(self):
        self.draw.choices([self.append, self.overwrite, self.across, self.truncate, self.empty, self.incomplete, self.look,
                           self.sync, self.stat, self.shut], [30, 18, 8, 9, 4, 2, 15, 2, 4, 8])[0]()


class Models(MountCase):
    def one_file(self, seed, count):
        draw = Described(seed)
        libver = draw.choice(["earliest", "earliest", "v108", "v110", "v110", "v110", "latest"])
        path = self.file(f"{seed}.h5")
        with h5py.File(path, "w", libver=libver if libver in ("earliest", "latest") else (libver, libver)) as f:
            models = [Model(self, draw, f, f"d{i}", libver in ("v110", "latest")) for i in range(count)]
        steps = [model for model in models for _ in range(draw.randint(10, 20))]
        draw.shuffle(steps)
        model = None
        try:
            for part in range(3):
                with Mount(path, "-f", options="rw" + draw.choice(["", "", ",sync=fsync"])) as m:
                    for model in models:
                        model.path = m.at(model.name)
                    try:
                        for model in steps[part::3]:
                            model.step()
                        for model in models:
                            model.said.append("read all")
                            model.compare(read(model.path), "in the mount")
                    except (AssertionError, OSError):
                        model.said.append(m.said())
                        raise
                    finally:
                        for other in models:
                            other.close()
                for model in models:
                    model.said.append("mount anew")
            with Mount(path) as m:
                for model in models:
                    model.compare(read(m.at(model.name)), "in a mount for reading")
            with judges.File(path) as f:
                for model in models:
                    model.compare(model.stored(f), "in libhdf5")
        except Exception as e:
            raise AssertionError(f"H5FS_MODEL_SEED={seed} ({libver}): {model.what}\n"
                                 f"{'; '.join(model.said)}\n{type(e).__name__}: {e}") from e
        os.unlink(path)

    def test_models(self):
        first = random.SystemRandom().randrange(1 << 30) if SEED == "random" else int(SEED)
        files = -(-SEQUENCES // A_FILE)
        print(f"{SEQUENCES} sequences, seeds {first} to {first + files - 1}")
        for i in range(files):
            with self.subTest(seed=first + i):
                self.one_file(first + i, min(A_FILE, SEQUENCES - i * A_FILE))


if __name__ == "__main__":
    main()
