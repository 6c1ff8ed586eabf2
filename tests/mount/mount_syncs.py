#!/usr/bin/python3
"""What a write costs in system calls: counted by strace."""
import os
import re
import signal
import subprocess

import h5py
import numpy

import judges
from mountlib import Mount, MountCase, Strace, main

DATASETS = {
    "plain": dict(chunks=(100, 4)),
    "deflate": dict(chunks=(10, 4), compression=4),
    "row_a_chunk": dict(chunks=(1, 4)),
    "two": dict(chunks=(7, 4), maxshape=(None, None)),
}


class Calls(Strace):
    """`with Calls(pid, log) as c:` counts c["fdatasync"], ... of the process and its threads inside the block."""

    def __init__(self, pid, log):
        super().__init__(pid, log, "-e", "trace=fsync,fdatasync,sync_file_range,msync,syncfs,pwrite64,pwritev,ftruncate")

    def __exit__(self, *_):
        super().__exit__()
        self.calls = re.findall(r"^\d+ +(\w+)\(", self.text(), re.M)

    def __getitem__(self, pattern):
        return sum(bool(re.fullmatch(pattern, call)) for call in self.calls)


class Syncs(MountCase):
    def setUp(self):
        super().setUp()
        self.path = self.file("syncs.h5")
        with h5py.File(self.path, "w", libver="latest") as f:
            for name, how in DATASETS.items():
                f.create_dataset(name, (0, 4), "<i4", **dict(dict(maxshape=(None, 4)), **how))
        with h5py.File(self.path, "r+", libver=("earliest", "latest")) as f:
            f.create_dataset("old", (0, 4), "<i4", maxshape=(None, 4), chunks=(3, 4))

    def test_one_row_costs_two_syncs(self):
        with Mount(self.path, options="rw") as m:
            for i in range(15):
                for name in (*DATASETS, "old"):
                    with self.subTest(name, row=i), Calls(m.daemon, self.file("calls")) as calls:
                        subprocess.run(["sh", "-c", 'printf "0123456789abcde%s" "$2" >> "$1"', "sh", m.at(name), "fghijklmnopqrst"[i]],
                                       check=True)
                    self.assertIn(calls["f(data)?sync|syncfs|msync|sync_file_range"], (1, 2), calls.calls)
        with judges.File(self.path) as f:
            expected = b"".join(b"0123456789abcde" + b"fghijklmnopqrst"[i:i + 1] for i in range(15))
            for name in (*DATASETS, "old"):
                self.assertEqual(f[name][()].tobytes(), expected)

    def test_nothing_costs_nothing(self):
        with Mount(self.path, options="rw") as m:
            with open(m.at("plain"), "ab") as f:
                f.write(bytes(16))
            with Calls(m.daemon, self.file("calls")) as calls:
                for name in (*DATASETS, "old"):
                    subprocess.run(["sh", "-c", ': >> "$1"; : < "$1"; cat "$1"', "sh", m.at(name)], check=True,
                                   stdout=subprocess.DEVNULL)
                    for flags in (os.O_RDWR, os.O_WRONLY):
                        fd = os.open(m.at(name), flags)
                        os.close(os.dup(fd))
                        os.fsync(fd)
                        os.close(fd)
            self.assertEqual(calls.calls, [])

    def test_small_writes_gather(self):
        """1,000 rows of one write each: neither a commit nor a system call each."""
        with Mount(self.path, options="rw") as m:
            for name in ("plain", "deflate"):
                with Calls(m.daemon, self.file("calls")) as calls:
                    with open(m.at(name), "ab", buffering=0) as f:
                        for i in range(1000):
                            f.write(numpy.full(4, i, "<i4").tobytes())
                    self.assertEqual(os.stat(m.at(name)).st_size, 16 * 1000)
                self.assertLessEqual(calls["f(data)?sync"], 4, name)  # 2, and the timer may come once between
                self.assertLess(calls["pwrite64"], 300, name)
        with judges.File(self.path) as f:
            for name in ("plain", "deflate"):
                self.assertTrue((f[name][()] == numpy.arange(1000)[:, None]).all())


if __name__ == "__main__":
    main()
