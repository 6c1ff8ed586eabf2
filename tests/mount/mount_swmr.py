#!/usr/bin/python3
"""Readers along with a writer: `-o swmr` follows a libhdf5 SWMR writer, and SWMR readers of libhdf5 follow `-o rw,swmr`.

H5FS_FOLLOW_SECONDS says how long (30; `make soak`: an hour)."""
import os
import select
import subprocess
import sys
import time

import h5py
import numpy

import mountlib
import judges
from mountlib import Mount, MountCase, MountFailed, lookup3, main, read, write

SECONDS = int(os.environ.get("H5FS_FOLLOW_SECONDS", "30"))
mountlib.MOUNT_SECONDS = SECONDS + 240
WIDTH = 12

# Row i of every dataset is i, i + 1, ...: a wrong, stale or torn row shows.
DATASETS = {
    "earray": dict(maxshape=(None, WIDTH), chunks=(5, WIDTH)),
    "earray_deflate": dict(maxshape=(None, WIDTH), chunks=(7, 5), compression="gzip"),
    "btree2": dict(maxshape=(None, None), chunks=(4, 6)),
    "btree2_shuffle": dict(maxshape=(None, None), chunks=(16, WIDTH), compression="gzip", shuffle=True),
    "farray": dict(maxshape=(3_000_000, WIDTH), chunks=(64, WIDTH)),
}

WRITER = """
import sys, time, h5py, numpy
path, names, seconds, width = sys.argv[1], sys.argv[2].split(","), float(sys.argv[3]), int(sys.argv[4])
with h5py.File(path, "r+", libver="latest") as f:
    f.swmr_mode = True
    print("ready", flush=True)
    sys.stdin.readline()
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        step = 1 + n % 5
        for name in names:
            d = f[name]
            d.resize(n + step, 0)
            d[n:] = numpy.arange(n, n + step)[:, None] + numpy.arange(width)[None, :]
            d.flush()
        n += step
        time.sleep(0.002)
    print(n, flush=True)
"""

# Reads on until it is told to stop, then once more; prints the number of rows that each dataset had at the end.
READER = """
import select, sys, h5py, numpy
path, names, width = sys.argv[1], sys.argv[2].split(","), int(sys.argv[3])
with h5py.File(path, "r", libver="latest", swmr=True) as f:
    print("ready", flush=True)
    rows = dict.fromkeys(names, 0)
    last = False
    while not last:
        last = bool(select.select([sys.stdin], [], [], 0)[0])
        for name in names:
            d = f[name]
            d.id.refresh()
            n = d.shape[0]
            assert n >= rows[name], (name, n, rows[name])
            begin = max(0, rows[name] - 20)
            values = d[begin:n]
            expected = numpy.arange(begin, n)[:, None] + numpy.arange(width)[None, :]
            assert (values == expected).all(), (name, begin, n, values[(values != expected).any(axis=1)][:3])
            rows[name] = n
    print(*(rows[name] for name in names), flush=True)
"""


def rows(begin, end):
    return (numpy.arange(begin, end)[:, None] + numpy.arange(WIDTH)[None, :]).astype("<i4")


class Swmr(MountCase):
    def setUp(self):
        super().setUp()
        self.h5 = self.file("swmr.h5")
        with h5py.File(self.h5, "w", libver="latest") as f:
            for name, how in DATASETS.items():
                f.create_dataset(name, shape=(0, WIDTH), dtype="<i4", **how)

    def start(self, script, *arguments):
        process = subprocess.Popen([sys.executable, "-c", script, *map(str, arguments)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.stop, process)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    @staticmethod
    def stop(process):
        process.kill()
        process.wait()
        for pipe in filter(None, (process.stdin, process.stdout)):
            pipe.close()

    def test_following_a_libhdf5_writer(self):
        writer = self.start(WRITER, self.h5, ",".join(DATASETS), SECONDS / 2, WIDTH)
        seen = dict.fromkeys(DATASETS, 0)
        with Mount(self.h5, options="swmr") as m:
            writer.stdin.write("\n")
            writer.stdin.flush()
            done = False
            while not done:
                done = bool(select.select([writer.stdout], [], [], 0)[0])
                for name in DATASETS:
                    size = os.stat(m.at(name)).st_size
                    self.assertGreaterEqual(size, seen[name], name)
                    begin = max(0, seen[name] // (4 * WIDTH) - 20)
                    with open(m.at(name), "rb") as f:
                        f.seek(begin * 4 * WIDTH)
                        content = f.read(size - begin * 4 * WIDTH)
                    self.assertEqual(len(content), size - begin * 4 * WIDTH, name)
                    self.assertEqual(content, rows(begin, size // (4 * WIDTH)).tobytes(), f"{name}, rows from {begin}")
                    seen[name] = size
            total = int(writer.stdout.readline())
            self.assertEqual(seen, dict.fromkeys(DATASETS, total * 4 * WIDTH))

    def test_tail_prints_new_rows_within_a_second(self):
        writer = """
import sys, h5py, numpy
with h5py.File(sys.argv[1], "r+", libver="latest") as f:
    f.swmr_mode = True
    print("ready", flush=True)
    d = f["earray"]
    for n in map(int, sys.stdin):
        d.resize(n, 0)
        d[n - 1] = numpy.arange(n - 1, n - 1 + d.shape[1])
        d.flush()
        print("flushed", flush=True)
"""
        process = self.start(writer, self.h5)
        with Mount(self.h5, options="swmr") as m:
            tail = subprocess.Popen(["tail", "-c", "+1", "-s", "0.1", "-f", m.at("earray")], stdout=subprocess.PIPE)
            self.addCleanup(self.stop, tail)
            for n in range(1, 20):
                process.stdin.write(f"{n}\n")
                process.stdin.flush()
                self.assertEqual(process.stdout.readline(), "flushed\n")
                before = time.monotonic()
                row = b""
                while len(row) < 4 * WIDTH:
                    row += os.read(tail.stdout.fileno(), 4 * WIDTH - len(row))
                self.assertEqual(row, rows(n - 1, n).tobytes())
                self.assertLess(time.monotonic() - before, 1)
            tail.kill()
            tail.wait()

    def test_libhdf5_readers_along(self):
        with Mount(self.h5, options="rw,swmr") as m:
            readers = [self.start(READER, self.h5, ",".join(DATASETS), WIDTH) for _ in range(2)]
            end, n = time.monotonic() + SECONDS / 2, 0
            while time.monotonic() < end:
                step = 1 + n % 7
                for name in DATASETS:
                    with open(m.at(name), "ab") as f:
                        f.write(rows(n, n + step).tobytes())
                n += step
            for reader in readers:
                said, _ = reader.communicate("stop\n")
                self.assertEqual(reader.returncode, 0)
                self.assertEqual([int(word) for word in said.split()], [n] * len(DATASETS))
            second = Mount(self.h5, options="rw")
            with self.assertRaises(MountFailed):
                second.__enter__()
        self.assertEqual(os.listdir(os.path.dirname(self.h5)), [os.path.basename(self.h5)])
        judges.agree(self.h5)
        with h5py.File(self.h5, "r+") as f:  # no marks are left
            for name in DATASETS:
                self.assertTrue((f[name][()] == rows(0, n)).all(), name)

    def test_swmr_needs_a_new_superblock(self):
        old = self.file("old.h5")
        with h5py.File(old, "w", libver=("earliest", "v108")) as f:
            f.create_dataset("x", shape=(0,), maxshape=(None,), dtype="<i4")
        with self.assertRaises(MountFailed) as refused:
            Mount(old, options="rw,swmr").__enter__()
        self.assertIn("swmr", str(refused.exception))

    def test_a_version_1_tree_takes_no_rows(self):
        mixed = self.file("mixed.h5")
        with h5py.File(mixed, "w", libver=("v108", "v108")) as f:
            f.create_dataset("old", shape=(0,), maxshape=(None,), dtype="<i4")
        # libhdf5 gives no such dataset to a file with a superblock of version 3, but reads it there.
        content = bytearray(read(mixed))
        self.assertEqual(content[8], 2)
        content[8] = 3
        content[44:48] = lookup3(content[:44]).to_bytes(4, "little")
        write(mixed, content)
        with h5py.File(mixed, "r+", libver=("v110", "v110")) as f:
            f.create_dataset("new", shape=(0,), maxshape=(None,), dtype="<i4")
        with Mount(mixed, options="rw,swmr") as m:
            with self.assertRaises(OSError):
                os.open(m.at("old"), os.O_WRONLY)
            with open(m.at("new"), "ab") as f:
                f.write(b"\1\0\0\0")
        with Mount(mixed, options="rw") as m:
            with open(m.at("old"), "ab") as f:
                f.write(b"\1\0\0\0")

    def test_marks_of_a_killed_mount_are_its_own(self):
        with Mount(self.h5, options="rw,swmr") as m:
            with open(m.at("earray"), "ab") as f:
                f.write(rows(0, 3).tobytes())
            m.kill()
        with self.assertRaises(OSError):  # the marks stay until then
            h5py.File(self.h5, "r+")
        with Mount(self.h5, options="rw") as m:
            with open(m.at("earray"), "rb") as f:
                self.assertEqual(f.read(), rows(0, 3).tobytes())
        judges.agree(self.h5)
        with h5py.File(self.h5, "r+") as f:
            self.assertTrue((f["earray"][()] == rows(0, 3)).all())


if __name__ == "__main__":
    main()
