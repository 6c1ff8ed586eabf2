#!/usr/bin/python3
"""Eight readers, a listing and one who asks for attributes at once, and on a mount for writing an appender: all that they get is compared
with what h5py wrote.

H5FS_LOAD_SECONDS says how long, all mounts together (10; `make soak`: a minute). Under ThreadSanitizer (configure --enable-tsan) the daemon's
report fails the test."""
import os
import random
import stat
import sys
import time
import traceback

import h5py
import numpy

import judges
from mountlib import Mount, MountCase, main

SECONDS = float(os.environ.get("H5FS_LOAD_SECONDS", "10"))
READERS = 8
WIDTH = 6  # of a row that is appended: row i is i, i + 1, ...
ROW = 4 * WIDTH
GROWING = {
    "plain": dict(chunks=(50, WIDTH)),
    "deflate": dict(chunks=(64, 4), compression=1),
    "narrow": dict(chunks=(1, WIDTH)),
}
# What is not cached comes to the daemon.
SMALL_CACHES = "cache=2M,index_cache=1M,workers=2"


def rows(begin, end):
    return (numpy.arange(begin, end)[:, None] + numpy.arange(WIDTH)[None, :]).astype("<i4")


class Truth:
    """What the file holds, by path: contents of files, sorted names of folders, attributes, targets of links."""

    def __init__(self, path):
        self.files, self.folders, self.links = {}, {"": []}, {}
        self.attributes = {}
        rng = numpy.random.default_rng(6)
        with h5py.File(path, "w", libver="latest") as f:
            for name, how in dict(contiguous={}, compressed=dict(chunks=(100, 64), compression=1, shuffle=True),
                                  checked=dict(chunks=(999, 50), fletcher32=True),
                                  tiny=dict(chunks=(40, 8), compression="lzf")).items():
                data = numpy.cumsum(rng.integers(-3, 4, (2000, 256), "i4"), 0).astype("<i4")
                self.add(f, name, data.tobytes(), f.create_dataset(name, data=data, **how))
            words = [f"line {i} " + "x" * int(rng.integers(200)) for i in range(3000)]
            self.add(f, "lines", "".join(w + "\n" for w in words).encode(),
                     f.create_dataset("lines", data=words, dtype=h5py.string_dtype(), chunks=(256,)))
            lists = f.create_dataset("lists", (300,), h5py.vlen_dtype("<i4"))
            for i in range(300):
                lists[i] = range(i % 20)
            text = "".join(f"[{','.join(map(str, range(i % 20)))}]\n" for i in range(300))
            self.add(f, "lists", text.encode(), lists)
            for i in range(12):
                group = f.create_group(f"group{i}", track_order=bool(i % 2))
                self.folders[""].append(f"group{i}")
                self.folders[f"group{i}"] = []
                self.attributes[f"group{i}"] = {}
                for k in range(5 + 20 * (i % 3)):
                    d = group.create_dataset(f"d{k}", data=numpy.arange(k))
                    self.add(f, f"group{i}/d{k}", numpy.arange(k).tobytes(), d)
                group["link"] = h5py.SoftLink("/compressed")
                self.folders[f"group{i}"].append("link")
                self.links[f"group{i}/link"] = "../compressed"
            for path, attributes in self.attributes.items():
                for k in range(len(path) % 3 * 6):
                    f[path].attrs[f"a{k}"] = k
                    f[path].attrs[f"t{k}"] = f"text {k} of {path}"
                    attributes[f"user.a{k}"] = str(k).encode()
                    attributes[f"user.t{k}"] = f"text {k} of {path}".encode()
            f.create_group("growing")
            for name, how in GROWING.items():
                f["growing"].create_dataset(name, (0, WIDTH), "<i4", maxshape=(None, WIDTH), **how)
        self.folders[""].append("growing")
        for names in self.folders.values():
            names.sort()

    def add(self, f, path, content, dataset):
        folder, _, name = path.rpartition("/")
        self.folders[folder].append(name)
        self.files[path] = content
        self.attributes[path] = {}
        assert f[path] == dataset


def equal(got, expected, what):
    if got != expected:
        raise AssertionError(f"{what}: {got[:80]!r}... instead of {expected[:80]!r}...")


class Work:
    """One process of the load: self.step() again and again."""

    def __init__(self, mount, truth, seed):
        self.mount, self.truth, self.random = mount, truth, random.Random(seed)

    def at(self, path):
        return os.path.join(self.mount, path)


class Reader(Work):
    """Whole files in order, and pieces of them anywhere; without the kernel's cache, or with it."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.seen = dict.fromkeys(GROWING, 0)

    def step(self):
        path = self.random.choice(sorted(self.truth.files))
        content = self.truth.files[path]
        fd = os.open(self.at(path), os.O_RDONLY | (os.O_DIRECT if self.random.random() < 0.7 else 0))
        try:
            if self.random.random() < 0.3:
                equal(b"".join(iter(lambda: os.read(fd, 1 << 17), b"")), content, path)
            for _ in range(10):
                offset, n = self.random.randrange(len(content) + 1), self.random.randrange(1 << 16)
                equal(os.pread(fd, n, offset), content[offset:offset + n], f"{path} from {offset}")
        finally:
            os.close(fd)
        self.follow(self.random.choice(sorted(GROWING)))

    def follow(self, name):
        """Rows are there as a whole, with what was appended, and none vanishes."""
        with open(self.at("growing/" + name), "rb", buffering=0) as f:
            n = os.fstat(f.fileno()).st_size
            begin = max(0, self.seen[name] - 10 * ROW)
            if n < self.seen[name] or n % ROW:
                raise AssertionError(f"{name} has {n} bytes, and had {self.seen[name]}")
            f.seek(begin)
            content = f.read(min(n - begin, 1 << 20))
        content = content[:len(content) // ROW * ROW]
        equal(content, rows(begin // ROW, (begin + len(content)) // ROW).tobytes(), f"{name} from {begin}")
        self.seen[name] = max(self.seen[name], begin + len(content))


class Lister(Work):
    def step(self):
        folder = self.random.choice(sorted(self.truth.folders))
        names = sorted(entry.name for entry in os.scandir(self.at(folder)))
        equal(names, self.truth.folders[folder], folder)
        for name in self.random.sample(names, len(names) // 2):
            path = f"{folder}/{name}" if folder else name
            st = os.lstat(self.at(path))
            if path in self.truth.files:
                equal([stat.S_IFMT(st.st_mode), st.st_size], [stat.S_IFREG, len(self.truth.files[path])], path)
            elif path in self.truth.links:
                equal(os.readlink(self.at(path)), self.truth.links[path], path)
            else:
                equal([stat.S_IFMT(st.st_mode)], [stat.S_IFDIR], path)


class Asker(Work):
    """Of attributes and properties."""

    def step(self):
        path = self.random.choice(sorted(self.truth.attributes))
        attributes = self.truth.attributes[path]
        equal(sorted(os.listxattr(self.at(path))), sorted(attributes), path)
        for name, value in self.random.sample(sorted(attributes.items()), len(attributes) // 2):
            equal(os.getxattr(self.at(path), name), value, f"{path} {name}")
        kind = b"dataset" if path in self.truth.files else b"group"
        equal(os.getxattr(self.at(path), "h5fs.class"), kind, path)
        equal(os.getxattr(self.at(path), "h5fs.info")[:1], b"{", path)


class Appender(Work):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.rows = dict.fromkeys(GROWING, 0)

    def step(self):
        name = self.random.choice(sorted(GROWING))
        n = self.random.choice((1, 3, 60, 500))
        with open(self.at("growing/" + name), "ab", buffering=0) as f:
            written = f.write(rows(self.rows[name], self.rows[name] + n).tobytes())
            equal([written], [n * ROW], name)
            if self.random.random() < 0.1:
                os.fsync(f.fileno())
        self.rows[name] += n
        time.sleep(0.001)  # so that it does not only grow


def start(work, end, result):
    """A process that works until the end; what it has to tell goes to the file."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        steps = 0
        while time.monotonic() < end or not steps:
            work.step()
            steps += 1
        with open(result, "w") as f:
            print(steps, *getattr(work, "rows", {}).values(), file=f)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


class Load(MountCase):
    def load(self, options, writable=False):
        path = self.file("load.h5")
        truth = Truth(path)
        with Mount(path, options=options) as m:
            works = [Reader(m.path, truth, i) for i in range(READERS)] + [Lister(m.path, truth, 8), Asker(m.path, truth, 9)]
            if writable:
                works.append(Appender(m.path, truth, 10))
            end = time.monotonic() + SECONDS / 3
            results = [self.file(f"result{i}") for i in range(len(works))]
            pids = [start(work, end, result) for work, result in zip(works, results)]
            statuses = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
            self.assertEqual(statuses, [0] * len(works))
        steps = [list(map(int, open(result).read().split())) for result in results]
        print(f"{options}: {sum(n for n, *_ in steps)} steps, {steps[-1][1:]} rows", file=sys.stderr)
        with judges.File(path) as f:
            for name, n in zip(GROWING, steps[-1][1:] or [0] * len(GROWING)):
                numpy.testing.assert_array_equal(f["growing"][name][...], rows(0, n), name)
            for name in "contiguous", "compressed", "checked", "tiny":
                self.assertEqual(f[name][...].tobytes(), truth.files[name])

    def test_reading(self):
        self.load(SMALL_CACHES)

    def test_reading_without_the_kernels_caches(self):
        self.load(SMALL_CACHES + ",locking=no")

    def test_reading_while_somebody_appends(self):
        self.load(SMALL_CACHES + ",rw", writable=True)


if __name__ == "__main__":
    main()
