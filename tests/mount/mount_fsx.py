#!/usr/bin/python3
"""Datasets as files under random reads, writes, truncations and maps, each compared with a model in memory; and fio's own
verification. A dataset of bytes with one dimension is a file like any other; with longer rows whatever grows or
shrinks it is whole rows. Files that the mount makes, which are datasets without a declared type, are compared with files in a plain
folder. H5FS_FSX says how many operations (2,000 for each dataset)."""
import contextlib
import fcntl
import mmap
import os
import random
import subprocess

import h5py
import numpy

import judges
from mountlib import H5FS, Mount, MountCase, main, read
from posixlib import KEEP_SIZE, PUNCH_HOLE, fallocate

OPERATIONS = int(os.environ.get("H5FS_FSX", "2000"))
LARGEST = 300_000  # bytes of a dataset

DATASETS = {
    "bytes": dict(dtype="u1", maxshape=(None,), chunks=(4096,)),
    "bytes_odd": dict(dtype="u1", maxshape=(None,), chunks=(1009,)),
    "bytes_deflate": dict(dtype="u1", maxshape=(None,), chunks=(5000,), compression="gzip", shuffle=True),
    "bytes_fletcher": dict(dtype="u1", maxshape=(None,), chunks=(3000,), fletcher32=True),
    "rows": dict(dtype="<i4", shape=(0, 6), maxshape=(None, 6), chunks=(100, 6)),
    "rows_lzf": dict(dtype="<i4", shape=(0, 6), maxshape=(None, 6), chunks=(64, 4), compression="lzf"),
    "planes": dict(dtype="<f8", shape=(0, 3, 5), maxshape=(None, None, 5), chunks=(7, 2, 5), compression="gzip"),
    "fixed": dict(dtype="u1", shape=(100_000,)),
    "fixed_chunks": dict(dtype="u1", shape=(100_000,), chunks=(777,), compression="gzip"),
}


class Model:
    """One dataset as a file, opened once for all."""

    def __init__(self, case, path, name, row, fixed, seed):
        self.case, self.path, self.name, self.row, self.fixed = case, path, name, row, fixed
        self.random = random.Random(seed)
        self.fd = os.open(path, os.O_RDWR)
        self.content = bytearray(os.fstat(self.fd).st_size)

    def close(self):
        os.close(self.fd)

    def grow(self, size):
        self.content.extend(bytes(max(0, size - len(self.content))))

    def whole(self, n):
        return n - n % self.row

    def place(self):
        """Where and how long: what does not end inside a new row."""
        limit = len(self.content) if self.fixed else LARGEST
        at = self.random.randrange(0, min(limit, len(self.content) + 2 * self.row + 5000))
        n = self.random.choice([1, 10, 100, 1000, 10_000, 70_000])
        n = min(self.random.randint(1, n), limit - at)
        if at + n > len(self.content):
            end = self.whole(at + n)
            n = end - at
        return at, n

    def write(self):
        at, n = self.place()
        if n <= 0:
            return
        data = self.random.randbytes(n)
        self.grow(at + n)
        self.content[at:at + n] = data
        self.case.assertEqual(os.pwrite(self.fd, data, at), n)

    def append(self):
        n = self.row * self.random.choice([1, 2, 3, 50])
        if self.fixed or len(self.content) + n > LARGEST:
            return
        data = self.random.randbytes(n)
        self.content += data
        with open(self.path, "ab", buffering=0) as f:
            cut = self.random.randint(0, n)
            f.write(data[:cut])
            f.write(data[cut:])

    def read(self):
        at = self.random.randrange(0, len(self.content) + 1)
        n = self.random.choice([1, 100, 5000, 100_000])
        self.case.assertEqual(os.pread(self.fd, n, at), self.content[at:at + n], f"{n} bytes at {at}")

    def truncate(self):
        if self.fixed:
            return
        size = self.whole(self.random.randrange(0, LARGEST // 2))
        del self.content[size:]
        self.grow(size)
        if self.random.random() < .5:
            os.ftruncate(self.fd, size)
        else:
            os.truncate(self.path, size)

    def map_read(self):
        if self.content:
            with mmap.mmap(self.fd, 0, access=mmap.ACCESS_READ) as mapped:
                at = self.random.randrange(0, len(mapped))
                self.case.assertEqual(mapped[at:at + 9000], self.content[at:at + 9000])

    def map_write(self):
        if self.content:
            with mmap.mmap(self.fd, 0, mmap.MAP_SHARED) as mapped:
                at = self.random.randrange(0, len(mapped))
                data = self.random.randbytes(min(self.random.randint(1, 9000), len(mapped) - at))
                mapped[at:at + len(data)] = data
                self.content[at:at + len(data)] = data
                mapped.flush()

    def stat(self):
        self.case.assertEqual(os.stat(self.path).st_size, len(self.content))

    def sync(self):
        os.fsync(self.fd)

    def reopen(self):
        os.close(self.fd)
        self.fd = os.open(self.path, os.O_RDWR)

    def step(self):
        operation = self.random.choices(
            [self.write, self.append, self.read, self.truncate, self.map_read, self.map_write, self.stat, self.sync,
             self.reopen], [30, 15, 30, 3, 8, 8, 8, 2, 2])[0]
        operation()


class Twins:
    """A file in a mount and one in a plain folder, with which the same is done."""

    def __init__(self, case, name, folders, dice):
        self.case, self.name, self.folders, self.dice = case, name, folders, dice
        self.fds = []

    def open(self, flags):
        self.close()
        self.fds = [os.open(os.path.join(folder, self.name), flags, 0o644) for folder in self.folders]

    def close(self):
        for fd in self.fds:
            os.close(fd)
        self.fds = []

    def both(self, function):
        """What it returns for both files is the same."""
        found = [function(fd) for fd in self.fds]
        self.case.assertTrue(found[0] == found[1], f"{self.name}: {function.__name__}: {str(found[0])[:60]}, not {str(found[1])[:60]}")
        return found[0]

    def whole(self):
        return self.both(lambda fd: os.pread(fd, 2 * LARGEST, 0))

    def place(self):
        at = self.dice.randrange(int(10 ** self.dice.uniform(0, 5.4)))
        return at, int(10 ** self.dice.uniform(0, 4.7))

    def write(self):
        at, n = self.place()
        data = self.dice.choice((self.dice.randbytes(n), b"x" * n))
        self.both(lambda fd: os.pwrite(fd, data, at))

    def append(self):
        data = self.dice.randbytes(self.place()[1] // 4)
        if os.fstat(self.fds[0]).st_size < LARGEST:
            self.both(lambda fd: os.lseek(fd, 0, os.SEEK_END))
            self.both(lambda fd: os.write(fd, data))

    def read(self):
        at, n = self.place()
        self.both(lambda fd: os.pread(fd, n, at))

    def truncate(self):
        size = self.dice.choice((0, self.place()[0], self.place()[0]))
        self.both(lambda fd: os.ftruncate(fd, size))

    def punch(self):
        at, n = self.place()
        self.both(lambda fd: fallocate(fd, PUNCH_HOLE | KEEP_SIZE, at, n))

    def map(self):
        size = self.both(lambda fd: os.fstat(fd).st_size)
        if not size:
            return
        at, n = self.place()
        at %= size
        data = self.dice.randbytes(min(n, size - at))

        def change(fd):
            with mmap.mmap(fd, 0) as mapped:
                found = mapped[at // 2:at // 2 + 9000]
                mapped[at:at + len(data)] = data
                if len(data) % 2:
                    mapped.flush()
                return found
        self.both(change)

    def copy(self):
        at, n = self.place()
        to = self.place()[0]
        appends = fcntl.fcntl(self.fds[0], fcntl.F_GETFL) & os.O_APPEND
        if not appends and (at + n <= to or to + n <= at):
            self.both(lambda fd: os.copy_file_range(fd, fd, n, at, to))

    def sync(self):
        self.both(os.fsync)

    def seek(self):
        """What SEEK_DATA passes over is zeros."""
        with contextlib.suppress(OSError):
            data = os.lseek(self.fds[0], 0, os.SEEK_DATA)
            self.case.assertEqual(os.pread(self.fds[1], data, 0), bytes(data))

    def reopen(self):
        if self.dice.random() < .5:
            for folder in self.folders:
                os.rename(os.path.join(folder, self.name), os.path.join(folder, self.name + "'"))
            self.name += "'"
        self.open(self.dice.choice((os.O_RDWR, os.O_RDWR, os.O_RDWR | os.O_APPEND, os.O_RDWR | os.O_TRUNC)))

    def step(self):
        self.dice.choices([self.write, self.append, self.read, self.truncate, self.punch, self.map, self.copy, self.sync, self.seek,
                           self.reopen, self.whole], [30, 15, 30, 5, 5, 10, 3, 2, 3, 3, 3])[0]()


class NewFiles(MountCase):
    def test_twins(self):
        for style, how in {"earliest": dict(libver="earliest"), "latest": dict(libver="latest"), "create": None, "filters": None}.items():
            path, model = self.file(f"{style}.h5"), self.file(style)
            os.mkdir(model)
            if how:
                h5py.File(path, "w", **how).close()
            options = "rw" if how else "create"
            options += ",filters=shuffle,deflate(1)" if style == "filters" else ""
            dice = random.Random(style)
            with self.subTest(style=style):
                for part in range(3):
                    with Mount(path, options=options) as m:
                        self.work(m, model, dice, part)
                with judges.File(path) as f:
                    self.assertEqual(sorted(f), sorted(os.listdir(model)))
                    for name in f:
                        self.assertTrue(bytes(f[name][...]) == read(os.path.join(model, name)), name)
                checked = subprocess.run([H5FS, "--check", path], capture_output=True, text=True, check=False)
                self.assertEqual(checked.returncode, 0, checked.stdout)

    def work(self, m, model, dice, part):
        """Goes on with the files of earlier parts, and with a new one; one of them loses its name meanwhile."""
        names = os.listdir(model) + [f"new{part}"]
        self.assertEqual(sorted(os.listdir(m.path)), sorted(os.listdir(model)))
        files = [Twins(self, name, (m.path, model), dice) for name in names]
        try:
            for twins in files:
                twins.open(os.O_CREAT | os.O_RDWR)
            for _ in range(OPERATIONS // 4):
                dice.choice(files).step()
            lost = dice.choice(files)
            for folder in lost.folders:
                os.unlink(os.path.join(folder, lost.name))
            for _ in range(20):
                dice.choice([lost.write, lost.read, lost.truncate, lost.map, lost.sync])()
            for twins in files:
                twins.whole()
        finally:
            for twins in files:
                twins.close()


class Fsx(MountCase):
    def make(self):
        path = self.file("fsx.h5")
        for libver in ("earliest", "latest"):
            with h5py.File(path, "a" if os.path.exists(path) else "w", libver=(libver, "latest")) as f:
                for name, how in DATASETS.items():
                    f.create_dataset(f"{libver}_{name}", **dict(dict(shape=(0,)), **how))
        return path

    def test_like_fsx(self):
        path = self.make()
        with h5py.File(path) as f:
            rows = {name: int(numpy.prod(d.shape[1:], initial=d.dtype.itemsize)) for name, d in f.items()}
        models = {}
        with Mount(path, options="rw") as m:
            for name, row in rows.items():
                model = models[name] = Model(self, m.at(name), name, row, "fixed" in name, name)
                with self.subTest(name):
                    for number in range(OPERATIONS):
                        model.number = number
                        model.step()
                        if number % 100 == 0:
                            model.case.assertEqual(os.pread(model.fd, LARGEST + 1, 0), model.content, f"operation {number}")
                model.close()
        with Mount(path) as m:
            for name, model in models.items():
                with self.subTest(name, mount="second"), open(m.at(name), "rb") as f:
                    self.assertTrue(f.read() == model.content)
        with judges.File(path) as f:
            for name, model in models.items():
                with self.subTest(name, judge="h5py"):
                    self.assertTrue(f[name][()].tobytes() == model.content)

    def test_fio_verifies(self):
        path = self.file("fio.h5")
        size = 8 << 20
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("contiguous", (size,), "u1")
            f.create_dataset("chunked", (size,), "u1", chunks=(1 << 16,))
            f.create_dataset("deflate", (size,), "u1", chunks=(1 << 18,), compression=1)
            f.create_dataset("growing", (0,), "u1", chunks=(1 << 16,), maxshape=(None,))
        with Mount(path, options="rw") as m:
            for name in ("contiguous", "chunked", "deflate", "growing"):
                for pattern in ("randwrite", "write"):
                    if name == "growing":
                        os.truncate(m.at(name), size)
                    subprocess.run(["fio", "--name=verify", f"--filename={m.at(name)}", f"--rw={pattern}", "--bs=512-64k",
                                    f"--size={size}", "--verify=crc32c", "--do_verify=1", "--verify_fatal=1", "--allow_file_create=0",
                                    "--end_fsync=1", "--ioengine=psync", "--randrepeat=1"],
                                   check=True, stdout=subprocess.DEVNULL, cwd=self.folder)
            contents = {name: open(m.at(name), "rb").read() for name in os.listdir(m.path)}
        with judges.File(path) as f:
            for name, content in contents.items():
                self.assertTrue(f[name][()].tobytes() == content, name)


if __name__ == "__main__":
    main()
