"""The rows of the table: what each measures, on which sides, and what it must reach.

A side gives a speed (work a second, so that more is better) for each call; the sides of a row are called in turn."""
import os
import subprocess
import sys
import time
from dataclasses import dataclass

import h5py
import numpy

import remote
import small
from arrays import npy, zarr_dask
from data import CHUNK, RANDOM_READ, ROW
from lines import lines
from names import copying
from processes import Mount, run, seconds, timed, unmount

MIB = 1 << 20
HERE = os.path.dirname(os.path.abspath(__file__))
BUDGETS = (256, 64), (32, 8)  # MiB: cache, index_cache
ALLOWANCE = 64  # MiB beyond them
BEST_READAHEAD = 2048  # KiB: with less, and with more, the bare daemon is slower


class Bench:
    """Where things are, and how a side is started."""

    def __init__(self, folder, data, h5fs, other, programs):
        self.data = data
        self.h5fs_program = h5fs
        self.other_program = other  # another h5fs, to be compared with this one; None: none
        self.programs = programs
        self.point = os.path.join(folder, "mnt")
        self.scratch = os.path.join(folder, "scratch")
        self.readahead = None
        self.checked = set()

    def program(self, name):
        return os.path.join(self.programs, name)

    def files(self, *arguments):
        return seconds(self.program("files"), *arguments)

    def libhdf5(self, *arguments):
        return seconds(self.program("libhdf5"), *arguments)

    def h5py(self, *arguments):
        return seconds(sys.executable, os.path.join(HERE, "h5py_side.py"), *arguments)

    def h5fs(self, path, options=""):
        return Mount([self.h5fs_program, "-f", *(["-o", options] if options else []), path], f"{self.point}-h5fs")

    def bare(self, path):
        return Mount([self.program("bare"), "-f", path], f"{self.point}-bare")

    def bare_tree(self, directories, attributes=0, files=0, size=0):
        return Mount([self.program("bare_tree"), *map(str, (directories, attributes, files, size))], f"{self.point}-bare")

    def squashfuse(self, path):
        return Mount(["squashfuse_ll", "-f", path], f"{self.point}-squashfuse")

    def interleave(self, sides):
        """The speeds of each side, one a round; more rounds if they are short. The order is turned round each time, since what ran before may
        leave the machine faster or slower."""
        start = time.perf_counter()
        speeds = {name: [side()] for name, side in sides.items()}
        once = time.perf_counter() - start
        if self.other_program:
            sides = {**sides, "other": lambda: self.by_other(sides["h5fs"])}
            try:
                speeds["other"] = [sides["other"]()]
            except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
                print(f"the other h5fs cannot do that: {error}", file=sys.stderr)
                del sides["other"]
        order = list(sides)
        for _ in range(6 if once < 2 else 4 if once < 6 else 2):
            order.reverse()
            for name in order:
                speeds[name].append(sides[name]())
        return speeds

    def by_other(self, side):
        """What the side gives with the other h5fs."""
        ours, self.h5fs_program = self.h5fs_program, self.other_program
        try:
            return side()
        finally:
            self.h5fs_program = ours

    # The same call of `files`, cold in FUSE: a mount of its own each time.

    def in_h5fs(self, path, what, *arguments, options=""):
        with self.h5fs(path, options) as m:
            self.readahead = m.readahead()
            return self.files(what, m.at("data"), *arguments)

    def in_bare(self, path, what, *arguments):
        with self.bare(path) as m:
            m.readahead(max(self.readahead, BEST_READAHEAD))
            return self.files(what, m.at("data"), *arguments)


def warm(*paths):
    for path in paths:
        with open(path, "rb", buffering=0) as f:
            while f.read(MIB):
                pass


def check_equal(path, expected):
    """What is read through a mount against the bytes that libhdf5 was given."""
    with open(path, "rb", buffering=0) as a, open(expected, "rb", buffering=0) as b:
        at = 0
        while (piece := b.read(MIB)):
            if a.read(MIB) != piece:
                raise AssertionError(f"{path} differs from {expected} after byte {at}")
            at += len(piece)
        if a.read(1):
            raise AssertionError(f"{path} is longer than {expected}")


def check_dataset(bench, path, raw):
    """A mount and libhdf5 (where that takes no minute) give the same bytes."""
    warm(path, raw)
    if path in bench.checked:
        return
    bench.checked.add(path)
    with bench.h5fs(path) as m:
        check_equal(m.at("data"), raw)
    if "tiny" not in path:
        with h5py.File(path) as f:
            numpy.testing.assert_array_equal(f["data"][...].reshape(-1).view("u1"), numpy.memmap(raw, "u1", "r"))


# Reading whole datasets.

def inflate(bench, path):
    """Inflating the chunks of a dataset, and nothing else, on all cores."""
    places, size = bench.data.chunk_places(path)
    return seconds(bench.program("inflate"), path, places, size, os.cpu_count())


def whole(name, raw="field.raw", readers=1, libhdf5=("whole", 1), options=""):
    """Of deflated chunks the limit is to inflate them and then to hand them over."""
    def measure(bench):
        path, plain = bench.data.file(name), bench.data.file(raw)
        check_dataset(bench, path, plain)
        size = os.path.getsize(plain)
        sides = {"h5fs": lambda: size / bench.in_h5fs(path, "whole", readers, options=options)}
        if libhdf5[0] == "h5py":
            sides["libhdf5"] = lambda: size / bench.h5py("whole", path)
        else:
            sides["libhdf5"] = lambda: size / bench.libhdf5(libhdf5[0], path, libhdf5[1])
        inflating = (lambda: inflate(bench, path)) if bench.data.is_deflated(path) else lambda: 0
        sides["limit"] = lambda: size / (inflating() + bench.in_bare(plain, "whole", readers))
        return bench.interleave(sides)
    return measure


def second_read(bench):
    path, plain = bench.data.file("contiguous.h5"), bench.data.file("field.raw")
    check_dataset(bench, path, plain)
    size = os.path.getsize(plain)
    with bench.h5fs(path) as m:
        bench.files("whole", m.at("data"), 1)
        return bench.interleave({"h5fs": lambda: size / bench.files("whole", m.at("data"), 1),
                           "limit": lambda: size / bench.files("whole", plain, 1)})


def random_reads(offsets):
    def measure(bench):
        path, plain = bench.data.file("deflate-farray.h5"), bench.data.file("field.raw")
        check_dataset(bench, path, plain)
        places = offsets(bench.data)
        with open(places) as f:
            count = sum(1 for _ in f)
        return bench.interleave({"h5fs": lambda: count / bench.in_h5fs(path, "random", places, RANDOM_READ),
                           "libhdf5": lambda: count / bench.libhdf5("random", path, places, RANDOM_READ),
                           "limit": lambda: count / bench.in_bare(plain, "random", places, RANDOM_READ)})
    return measure


def first_byte(bench):
    path = bench.data.file("many.h5")
    middle = bench.data.many_chunks // 2 * 16
    warm(path)
    with bench.h5fs(path) as m, open(m.at("data"), "rb") as f:
        f.seek(middle)
        assert f.read(16) == numpy.arange(middle // 4, middle // 4 + 4, dtype="<i4").tobytes()

    def mounted(command, file, offset):
        point = bench.point + "-first"
        unmount(point)
        os.makedirs(point, exist_ok=True)
        try:
            return 1 / bench.files("first", f"{point}/data", offset, point, command, file, point)
        finally:
            unmount(point)

    return bench.interleave({"h5fs": lambda: mounted(bench.h5fs_program, path, middle),
                       "libhdf5": lambda: 1 / timed(bench.program("libhdf5"), "first", path, str(middle)),
                       "limit": lambda: mounted(bench.program("bare"), bench.data.file("field.raw"), 0)})


# Listing.

def listing(*command, h5ls=False):
    def measure(bench):
        path, squashed = bench.data.file("tree.h5"), bench.data.file("tree.squashfs")
        warm(path, squashed)

        def cold(mount):
            with mount as m:
                return 1 / timed(*command, m.path)

        with bench.h5fs(path) as m:
            found = run("find", m.path, "-type", "f").count("\n")
            assert found == bench.data.objects, f"{found} files of {bench.data.objects}"
        sides = {"h5fs": lambda: cold(bench.h5fs(path)), "limit": lambda: cold(bench.squashfuse(squashed))}
        if h5ls:
            sides["libhdf5"] = lambda: 1 / timed("h5ls", "-r", path)
        return bench.interleave(sides)
    return measure


# Appending.

def check_appended(path, raw, rows):
    """What was appended is the source, from its start again where that ends."""
    source = numpy.fromfile(raw, "<f4").reshape(-1, ROW // 4)
    with h5py.File(path) as f:
        assert f["data"].shape[0] == rows, f"{f['data'].shape[0]} rows of {rows}"
        numpy.testing.assert_array_equal(f["data"][...], source[numpy.arange(rows) % len(source)])


def append(rows_a_write, sync, deflated=False, against="C"):
    def measure(bench):
        raw = bench.data.file("field.raw")
        new = bench.scratch + ".h5"
        if sync == "each":
            writes = bench.data.synced_rows
        else:
            writes = bench.data.rows if rows_a_write == 1 else os.path.getsize(raw) // (rows_a_write * ROW)
        arguments = raw, rows_a_write * ROW, writes, sync
        checked = set()

        def speed(elapsed, count=writes):
            return count * (1 if rows_a_write == 1 else rows_a_write * ROW) / elapsed

        def prepare():
            bench.data.empty(new, deflated)
            os.sync()

        def finish(name, elapsed, count=writes):
            if name not in checked:
                check_appended(new, raw, count * rows_a_write)
                checked.add(name)
            os.unlink(new)
            return speed(elapsed, count)

        def in_h5fs():
            prepare()
            with bench.h5fs(new, "rw,sync=fsync") as m:
                elapsed = bench.files("append", m.at("data"), *arguments)
            return finish("h5fs", elapsed)

        def in_libhdf5():
            prepare()
            return finish("libhdf5", bench.libhdf5("append", new, raw, rows_a_write, writes, sync))

        def in_h5py():
            prepare()
            return finish("h5py", bench.h5py("append", new, raw, writes // 2), writes // 2)

        def in_bare():
            with open(bench.scratch, "wb"):
                os.sync()
            with bench.bare(bench.scratch) as m:
                return speed(bench.files("append", m.at("data"), *arguments))

        def in_file():
            with open(bench.scratch, "wb"):
                os.sync()
            return speed(bench.files("append", bench.scratch, *arguments))

        return bench.interleave({"h5fs": in_h5fs, "libhdf5": in_h5py if against == "h5py" else in_libhdf5,
                           "limit": in_file if sync == "each" else in_bare})
    return measure


# Memory.

def memory(bench):
    """The mount that comes nearest to, or goes farthest beyond, what it may take."""
    files, new, raw = bench.program("files"), bench.scratch + ".h5", bench.data.file("field.raw")
    writes = os.path.getsize(raw) // MIB
    peaks = []
    for cache, index_cache in BUDGETS:
        def take(name, options, *command):
            with bench.h5fs(name, f"{options}cache={cache}M,index_cache={index_cache}M") as m:
                run(*[str(word).replace("MOUNT", m.path) for word in command], stdout=subprocess.DEVNULL)
            peaks.append((m.peak / MIB, cache + index_cache + ALLOWANCE))

        for name in "deflate-farray.h5", "tiny.h5", "many.h5":
            take(bench.data.file(name), "", files, "whole", "MOUNT/data", 4)
        take(bench.data.file("tree.h5"), "", "ls", "-lR", "MOUNT")
        bench.data.empty(new, True)
        take(new, "rw,", files, "append", "MOUNT/data", raw, MIB, writes, "none")
        os.unlink(new)
    peak, allowed = max(peaks, key=lambda p: p[0] / p[1])
    return {"h5fs": [1 / peak], "limit": [1 / allowed]}


@dataclass
class Row:
    key: str
    title: str
    unit: str
    measure: callable
    need: tuple = ()  # side and ratio, or "ms" and at most how many
    names: str = ""  # what the sides are where they are not libhdf5 in C and the bare daemon


DECODING = "limit: inflating, then the bare daemon"
ROWS = [
    Row("contiguous", "contiguous, whole", "GB/s", whole("contiguous.h5"), ("limit", 0.85)),
    Row("second-read", "again, from the kernel's cache", "GB/s", second_read, ("limit", 0.9), "limit: plain file"),
    Row("chunks", "chunks 256x256, no filter", "GB/s", whole("chunks.h5"), ("limit", 0.85)),
    Row("deflate-farray", "shuffle + deflate 4, fixed array", "GB/s", whole("deflate-farray.h5"), ("limit", 1.0), DECODING),
    Row("deflate-earray", "- extensible array", "GB/s", whole("deflate-earray.h5"), ("limit", 1.0), DECODING),
    Row("deflate-btree1", "- version-1 B-tree", "GB/s", whole("deflate-btree1.h5"), ("limit", 1.0), DECODING),
    Row("deflate-btree2", "- B-tree v2", "GB/s", whole("deflate-btree2.h5"), ("limit", 1.0), DECODING),
    Row("cube", "400^3 int16 in chunks of 20^3, shuffle + deflate 4", "GB/s", whole("cube.h5", "cube.raw"), ("libhdf5", 3), DECODING),
    Row("cube-limit", "- against the limit", "GB/s", whole("cube.h5", "cube.raw"), ("limit", 0.9), DECODING),
    Row("short-rows", "int16 in chunks of 8x103x103, no filter", "GB/s", whole("slabs.h5", "slabs.raw"), ("limit", 0.85)),
    Row("lzf", "shuffle + LZF", "GB/s", whole("lzf.h5", libhdf5=("h5py",)), (), "libhdf5: h5py"),
    Row("tiny-chunks", "2 million chunks of 16 int32", "MB/s",
        whole("tiny.h5", "tiny.raw", libhdf5=("rows", MIB // 4)), ("libhdf5", 20)),
    Row("band", "deflate, 32 rows a read", "GB/s", whole("deflate-farray.h5", libhdf5=("rows", 32)), (), DECODING),
    Row("random-first", "random 4 KiB, each chunk once", "reads/s", random_reads(lambda d: d.first_touch_offsets()),
        ("libhdf5", 1.5)),
    Row("random-many", "random 4 KiB, 4000 reads", "reads/s", random_reads(lambda d: d.random_offsets(4000)),
        ("libhdf5", 1.5)),
    Row("find", "find, 90,000 objects", "s", listing("find", h5ls=True), ("libhdf5", 3), "h5ls -r; squashfuse"),
    Row("ls", "ls -lR, 90,000 objects", "s", listing("ls", "-lR"), ("limit", 1.0), "limit: squashfuse"),
    Row("cat-small", "cat of 10,000 datasets of 160 bytes", "datasets/s", small.cat, ("libhdf5", 1.5),
        "libhdf5: h5py; limit: a bare daemon"),
    Row("tar-small", "tar of them", "datasets/s", small.tar, ("libhdf5", 1.0), "libhdf5: h5dump; limit: a bare daemon"),
    Row("getfattr", "getfattr -R -d, 2,000 groups of 8 attributes", "attributes/s", small.getfattr, ("limit", 1 / 1.2),
        "libhdf5: h5dump -A; limit: a bare daemon"),
    Row("first-byte", "first byte amid 10 million chunks", "ms", first_byte, ("ms", 30)),
    Row("readers-1", "deflate, 1 reader", "GB/s", whole("deflate-farray.h5"), (), DECODING),
    Row("readers-2", "deflate, 2 readers", "GB/s", whole("deflate-farray.h5", readers=2, libhdf5=("whole", 2)), (),
        DECODING),
    Row("readers-4", "deflate, 4 readers", "GB/s", whole("deflate-farray.h5", readers=4, libhdf5=("whole", 4)), (),
        DECODING),
    *(Row(f"workers-{n}", f"deflate, {n} workers", "GB/s", whole("deflate-farray.h5", options=f"workers={n}"), (), DECODING)
      for n in (1, 2, 4, 8, 16)),
    Row("append-8", "append 8 bytes a write", "rows/s", small.append_numbers, ("limit", 0.9)),
    Row("append-shell", "200 x head -c 128 >> in a shell", "rows/s", small.append_in_shell, ("limit", 0.8)),
    Row("append-1M", "append 1 MiB writes", "MB/s", append(1024, "none"), ("libhdf5", 1.0)),
    Row("append-1M-durable", "- durable", "MB/s", append(1024, "end"), ("libhdf5", 1.0)),
    Row("append-1M-deflate", "- deflated", "MB/s", append(1024, "none", True), ("libhdf5", 1.0)),
    Row("append-1M-deflate-durable", "- deflated, durable", "MB/s", append(1024, "end", True), ("libhdf5", 1.0)),
    Row("append-1K-h5py", "append 1 KiB rows, against h5py", "rows/s", append(1, "none", against="h5py"), ("libhdf5", 2),
        "libhdf5: h5py"),
    Row("append-1K-C", "- against C", "rows/s", append(1, "none")),
    Row("append-1K-durable", "- durable", "rows/s", append(1, "end")),
    Row("append-1K-deflate", "- deflated", "rows/s", append(1, "none", True)),
    Row("append-1K-deflate-durable", "- deflated, durable", "rows/s", append(1, "end", True)),
    Row("fsync", "append 1 KiB rows, fsync each", "rows/s", append(1, "each"), ("limit", 0.1), "limit: plain file"),
    Row("lines", "append 1,000,000 lines, 1 MB a write", "rows/s", lines(True), ("libhdf5", 3), "libhdf5: h5py, 1,000 at once"),
    Row("line-writes", "- a line a write", "rows/s", lines(False), ("limit", 0.97), "limit: rows of raw data"),  # rows against rows are 0.95 to 1.02
    Row("npy", "an array below .h5fs/npy", "GB/s", npy, ("limit", 0.8), "limit: a raw append"),
    Row("zarr-dask", "deflated, .h5fs/zarr by dask's threads", "GB/s", lambda bench: zarr_dask(bench, "stored"), ("libhdf5", 1.0),
        "libhdf5: h5py by dask's threads; limit: the same tree by bindfs"),
    Row("zarr-dask-decoded", "- with zarr_chunks=decoded", "GB/s", lambda bench: zarr_dask(bench, "decoded"), ("libhdf5", 1.0),
        "libhdf5: h5py by dask's threads; limit: the tree of stored chunks by bindfs"),
    Row("cp-small", "cp -r, 10,000 files of 1 KiB", "files/s", copying(False), ("limit", 0.8), "libhdf5: h5py; limit: bindfs"),
    Row("rm-small", "rm -r of them", "files/s", copying(True), ("limit", 0.8), "libhdf5: h5py; limit: bindfs"),
    Row("remote-ls", "URL: mount, ls of the root; one round trip", "ms", remote.list_root, ("ms", 150)),
    Row("remote-find", "URL: find, 1,000 datasets; 40 requests", "ms", remote.find, ("ms", 3000), "libhdf5: h5py over fsspec"),
    Row("remote-find-ros3", "- against libhdf5's own driver", "ms", remote.find_against("ros3"), (),
        "libhdf5: ros3"),
    Row("remote-find-rclone", "- against h5fs on rclone mount", "ms", remote.find_against("rclone"), (),
        "libhdf5: h5fs on rclone mount"),
    Row("remote-middle", "URL: 4 KiB amid 2 million chunks, extensible array; 6 round trips", "ms", remote.middle("tiny.h5")),
    Row("remote-middle-btree1", "- version-1 B-tree", "ms", remote.middle("remote_btree1.h5")),
    Row("remote-column", "URL: one of five columns, 40 M float32, deflated; 300 requests", "MB/s",
        remote.whole("remote_columns.h5", "column2", 300), ("limit", 0.9), "libhdf5: h5py over fsspec; limit: curl, 32 at once"),
    Row("remote-column-slow", "- a server ten times as slow", "MB/s", remote.whole("remote_columns.h5", "column2", 300, slow=10), ("limit", 0.9),
        "limit: curl, 32 at once"),
    Row("remote-column-slow-64", "- against curl by as many connections", "MB/s",
        remote.whole("remote_columns.h5", "column2", 300, slow=10, parallel=64), (), "limit: curl, 64 at once"),
    Row("remote-column-slow-32", "- both by 32", "MB/s",
        remote.whole("remote_columns.h5", "column2", 300, options="remote_connections=32", slow=10), (), "limit: curl, 32 at once"),
    Row("remote-contiguous", "URL: contiguous 1 GiB", "MB/s", remote.whole("remote_contiguous.h5", "data"), ("limit", 0.9),
        "libhdf5: h5py over fsspec; limit: curl, 32 at once"),
    Row("remote-contiguous-slow", "- a server ten times as slow", "MB/s", remote.whole("remote_contiguous.h5", "data", slow=10), ("limit", 0.9),
        "limit: curl, 32 at once"),
    Row("remote-contiguous-slow-64", "- against curl by as many connections", "MB/s",
        remote.whole("remote_contiguous.h5", "data", slow=10, parallel=64), (), "limit: curl, 64 at once"),
    Row("remote-contiguous-slow-32", "- both by 32", "MB/s",
        remote.whole("remote_contiguous.h5", "data", options="remote_connections=32", slow=10), (), "limit: curl, 32 at once"),
    Row("remote-again", "URL: again, from the disk cache; one request", "ms", remote.again),
    Row("memory", "peak memory, budgets + 64 MiB", "MiB", memory, ("limit", 1.0), "limit: what it may take"),
]
