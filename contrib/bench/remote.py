"""Rows about files behind a URL. The server of the tests answers after 60 ms and sends 50 MB/s on each connection; requests, bytes and
round trips that wait for one another are counted, and are a part of what a row must reach."""
import contextlib
import os
import subprocess
import sys
import tempfile
import time

import h5py
import numpy

from processes import Mount, run, timed

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/judge"))
from object_server import ObjectServer

DELAY = 0.06  # seconds
RATE = 50e6  # bytes a second and connection
PARALLEL = 32  # requests that curl has under way if a row does not say how many; h5fs has up to 64
PIECE = 8 << 20  # bytes of each
NEAR = 256 << 10  # bytes between extents that are read in one piece
LEAF = 10_000  # elements of a chunk of a column: 35 kB deflated


def make_group(path, count):
    """Datasets as h5py writes them, of ten numbers each."""
    with h5py.File(path, "w") as f:
        for i in range(count):
            f[f"group/dataset{i:04}"] = numpy.arange(10.0)


def make_btree1(path, chunks):
    with h5py.File(path, "w", libver="earliest") as f:
        f.create_dataset("data", data=numpy.arange(chunks * 16, dtype="<i4"), chunks=(16,))


def make_contiguous(path, size):
    """Bytes that lie together, as h5py writes them."""
    block = numpy.random.default_rng(9).integers(0, 256, 64 << 20, "u1")
    with h5py.File(path, "w") as f:
        data = f.create_dataset("data", (size,), "u1")
        for at in range(0, size, len(block)):
            data[at:at + len(block)] = block[:size - at]


def make_columns(path, count):
    """Five columns, each written 16 chunks at a time."""
    rng = numpy.random.default_rng(8)
    step = 16 * LEAF
    with h5py.File(path, "w") as f:
        columns = [f.create_dataset(f"column{i}", (count,), "<f4", chunks=(LEAF,), compression=1, shuffle=True) for i in range(5)]
        for at in range(0, count, step):
            for column in columns:
                column[at:at + step] = rng.standard_normal(min(step, count - at), "f4")


CONTENTS = {}  # of the file that was served last: reading it is no part of what is measured


@contextlib.contextmanager
def served(path, friendly=False, slow=1):
    with ObjectServer(os.path.dirname(path), delay=DELAY * slow, rate=RATE / slow, friendly=friendly) as server:
        if path not in CONTENTS:
            CONTENTS.clear()
        server.contents = CONTENTS
        server.content("/" + os.path.basename(path))
        yield server, server.url(os.path.basename(path))


def mounted(bench, url, options=""):
    return Mount([bench.h5fs_program, "-f", *(["-o", options] if options else []), url], f"{bench.point}-remote")


class Limits:
    """What one round of a row may ask of the server."""

    def __init__(self, requests=None, trips=None, bytes=None):
        self.requests, self.trips, self.bytes = requests, trips, bytes

    def check(self, server):
        count, trips = server.count, server.round_trips()
        text = f"{count.requests} requests, {count.bytes} bytes, {trips} round trips"
        print("  " + text, file=sys.stderr)
        for got, most in (count.requests, self.requests), (trips, self.trips), (count.bytes, self.bytes):
            if most is not None and got > most:
                raise AssertionError(f"{text}: more than {most}")


def cold(bench, path, limits, work, options="", slow=1):
    """Seconds of mounting and working, by a new mount on a server that nobody has asked yet."""
    with served(path, slow=slow) as (server, url):
        start = time.perf_counter()
        with mounted(bench, url, options) as m:
            work(m)
            seconds = time.perf_counter() - start
            limits.check(server)
        return seconds


def curl(url, extents, parallel=PARALLEL):
    """Seconds that curl takes for pieces of a file, many at once."""
    with tempfile.NamedTemporaryFile("w") as config:
        config.write("next\n".join(f'url = "{url}"\nrange = "{begin}-{end - 1}"\noutput = "/dev/null"\n' for begin, end in extents))
        config.flush()
        return timed("curl", "--no-progress-meter", "--parallel", "--parallel-immediate", "--parallel-max", str(parallel), "--config", config.name)


def joined(extents):
    """Extents (begin, size) as pieces that begin and end: neighbours together, long ones apart."""
    pieces = []
    for begin, size in sorted(extents):
        if pieces and begin - pieces[-1][1] <= NEAR and begin + size - pieces[-1][0] <= PIECE:
            pieces[-1][1] = begin + size
        else:
            pieces.append([begin, begin + size])
    return pieces


def list_root(bench):
    path = bench.data.file("remote_columns.h5")
    return bench.interleave({"h5fs": lambda: 1 / cold(bench, path, Limits(trips=1), lambda m: os.listdir(m.path))})


def list_all(m):
    run("find", m.path, "-size", "+1")


def find(bench):
    path = bench.data.file("remote_group.h5")
    return bench.interleave({"h5fs": lambda: 1 / cold(bench, path, Limits(requests=40), list_all),
                             "libhdf5": lambda: 1 / in_h5py(bench, path, "walk", "fsspec")})


# Other ways to read a file behind a URL.

def in_h5py(bench, path, what, driver, *arguments):
    with served(path, friendly=driver == "ros3") as (_, url):
        return bench.h5py(what, url, driver, *arguments)


def over_rclone(bench, path, work):
    """Seconds of mounting and working on a mount of `rclone mount`, with a local h5fs above it."""
    with served(path, friendly=True) as (_, url):
        folder, _, name = url.rpartition("/")
        command = ["rclone", "mount", "--read-only", "--vfs-cache-mode", "off", f":http,url='{folder}':"]
        start = time.perf_counter()
        with Mount(command, f"{bench.point}-rclone") as far:
            with Mount([bench.h5fs_program, "-f", "-o", "locking=no", far.at(name)], f"{bench.point}-remote") as m:
                work(m)
                return time.perf_counter() - start


def find_against(other):
    """Listing, against the driver ros3 of libhdf5 or against rclone."""
    def measure(bench):
        path = bench.data.file("remote_group.h5")
        others = {"ros3": lambda: 1 / in_h5py(bench, path, "walk", "ros3"), "rclone": lambda: 1 / over_rclone(bench, path, list_all)}
        return bench.interleave({"h5fs": lambda: 1 / cold(bench, path, Limits(), list_all), "libhdf5": others[other]})
    return measure


def middle(name):
    def measure(bench):
        path = bench.data.file(name)

        def read(m):
            with open(m.at("data"), "rb", buffering=0) as f:
                place = os.fstat(f.fileno()).st_size // 2
                assert os.pread(f.fileno(), 4096, place) == numpy.arange(place // 4, place // 4 + 1024, dtype="<i4").tobytes()
        return bench.interleave({"h5fs": lambda: 1 / cold(bench, path, Limits(trips=6), read)})
    return measure


def whole(name, dataset, most_requests=None, options="", slow=1, parallel=PARALLEL):
    """All of a dataset, against curl with the same extents, `parallel` at once. slow: how many times as slow the server is in all; if it is,
    processors are no limit for anybody, and what waits for what can be seen on a machine that has other things to do."""
    def measure(bench):
        path = bench.data.file(name)
        with h5py.File(path) as f:
            d = f[dataset]
            size, stored = d.size * d.dtype.itemsize, d.id.get_storage_size()
            if d.chunks:
                infos = [d.id.get_chunk_info(i) for i in range(d.id.get_num_chunks())]
                extents = joined([(i.byte_offset, i.size) for i in infos])
            else:
                begin = d.id.get_offset()
                extents = [(at, min(at + PIECE, begin + size)) for at in range(begin, begin + size, PIECE)]

        def by_curl():
            with served(path, slow=slow) as (_, url):
                return size / curl(url, extents, parallel)

        def in_mount():
            limits = Limits(most_requests, bytes=1.3 * stored + (8 << 20))
            return size / cold(bench, path, limits, lambda m: run("cat", m.at(dataset), stdout=subprocess.DEVNULL), options, slow)

        sides = {"h5fs": in_mount, "limit": by_curl}
        if slow == 1:
            sides["libhdf5"] = lambda: size / in_h5py(bench, path, "remote", "fsspec", dataset)
        return bench.interleave(sides)
    return measure


def again(bench):
    """A second mount, all of whose bytes are in the disk cache."""
    path = bench.data.file("remote_group.h5")

    def once():
        with tempfile.TemporaryDirectory() as cache, served(path) as (server, url):
            with mounted(bench, url, f"disk_cache={cache}") as m:
                list_all(m)
            server.forget()
            start = time.perf_counter()
            with mounted(bench, url, f"disk_cache={cache}") as m:
                list_all(m)
                seconds = time.perf_counter() - start
            Limits(requests=1).check(server)
            return 1 / seconds
    return bench.interleave({"h5fs": once})
