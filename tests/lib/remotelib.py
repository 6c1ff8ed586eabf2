"""What the tests of files behind URLs share."""
import contextlib
import os
import re
import subprocess
import time
import unittest

import h5py
import numpy

from mountlib import H5FS, MountCase, own_children, read
from object_server import ObjectServer

MIB = 1 << 20
SAID = subprocess.run([H5FS, "-V"], capture_output=True, text=True, check=True).stdout
KEPT = re.search(r"sandbox: no new privileges, Landlock .*, seccomp\n", SAID)
AGAIN = "remote_tries=3,remote_timeout=1"
SECRET = "a-secret-that-nobody-else-may-see"


def name_of(pid):
    return read(f"/proc/{pid}/comm").decode().strip()


def fetcher_of(daemon):
    fetcher, = (pid for pid in own_children(daemon) if name_of(pid) == "h5fs-fetcher")
    return fetcher


@unittest.skipIf("libcurl none" in SAID, "built without libcurl")
class Case(MountCase):
    """x.h5 behind a server. The raw data are far from the metadata, and each block of 1 MiB is asked for by itself."""

    def setUp(self):
        super().setUp()
        self.started = []
        self.addCleanup(self.end_started)
        os.mkdir(self.file("served"))
        self.path = self.file("served", "x.h5")
        rng = numpy.random.default_rng(1)
        self.big = rng.integers(0, 1 << 60, MIB, "<i8")
        self.rows = rng.integers(0, 100, (400, 300), "<i4")
        with h5py.File(self.path, "w", libver="latest") as f:
            f["group/small"] = numpy.arange(1000)
            f["group"].attrs["answer"] = 42
            f["big"] = self.big
            f.create_dataset("rows", data=self.rows, chunks=(50, 50), compression="gzip")

    @contextlib.contextmanager
    def serve(self, **options):
        with ObjectServer(self.file("served"), **options) as server:
            yield server
        self.assertEqual(server.wrong, [])

    def block(self, m, number, n=1000):
        """The first bytes of a block of `big`, and whether they are right."""
        with open(m.at("big"), "rb") as f:
            data = os.pread(f.fileno(), n, number * MIB)
        self.assertEqual(data, self.big.tobytes()[number * MIB:number * MIB + n])

    def await_requests(self, server, n):
        end = time.monotonic() + 30
        while server.count.requests < n and time.monotonic() < end:
            time.sleep(.01)
        self.assertGreaterEqual(server.count.requests, n)

    def start(self, *command, **options):
        """A process that does not outlive the test."""
        self.started.append(subprocess.Popen(command, **options))
        return self.started[-1]

    def end_started(self):
        for process in self.started:
            process.kill()
            process.wait()

    def command(self, *arguments):
        return subprocess.run([H5FS, *arguments], capture_output=True, text=True, check=False)
