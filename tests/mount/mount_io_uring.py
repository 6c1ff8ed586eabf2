#!/usr/bin/python3
"""-o io_uring=: what it may be, mounts that cannot have it, and requests that come through it, where the kernel and libfuse have it."""
import contextlib
import glob
import hashlib
import os
import re
import signal
import subprocess
import threading

import h5py
import numpy

from mountlib import Mount, MountCase, MountFailed, main, of_threads, refusal

SWITCH = "/sys/module/fuse/parameters/enable_uring"
NONE_IN_LIBFUSE = "built with a libfuse that has none"


def entries(pid):
    """How many replies and requests the process's rings have had: the sum of what the kernel has put into them."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        with contextlib.suppress(FileNotFoundError), open(path) as f:
            total += sum(map(int, re.findall(r"^CqTail:\s+(\d+)$", f.read(), re.MULTILINE)))
    return total


class IoUring(MountCase):
    def setUp(self):
        super().setUp()
        self.path = self.file("data.h5")
        self.values = numpy.random.default_rng(1).integers(0, 1 << 30, 1 << 20, dtype="<i4")
        with h5py.File(self.path, "w") as f:
            f["big"] = self.values
            for i in range(100):
                f[f"small/{i}"] = numpy.full(20, i, "<i4")
                f[f"small/{i}"].attrs["number"] = i

    def is_possible(self):
        """Skips the test and says why, where a mount cannot have it."""
        try:
            with Mount(self.path, options="io_uring=yes"):
                pass
        except MountFailed as failed:
            self.skipTest(failed.said.strip())

    def check(self, m):
        with open(m.at("big"), "rb") as f:
            self.assertEqual(hashlib.sha256(f.read()).digest(), hashlib.sha256(self.values.tobytes()).digest())
        for i in range(100):
            with open(m.at("small", str(i)), "rb") as f:
                self.assertEqual(f.read(), numpy.full(20, i, "<i4").tobytes())
            self.assertEqual(os.getxattr(m.at("small", str(i)), "user.number"), str(i).encode())

    def test_wrong_words(self):
        for word in "maybe", "", "YES":
            status, said = refusal(self.path, options=f"io_uring={word}")
            self.assertEqual(status, 2)
            self.assertIn("must be no, auto or yes", said)

    def test_mounts_without(self):
        """They read /dev/fuse, even if libfuse is told otherwise by the environment, and so do those that cannot have it."""
        for options in None, "io_uring=no", "io_uring=auto,rw", "io_uring=yes,io_uring=no":
            with self.subTest(options), Mount(self.path, options=options, env={"FUSE_URING_ENABLE": "1"}) as m:
                self.check(m)
                self.assertEqual(entries(m.daemon), 0)

    def test_auto(self):
        with Mount(self.path, options="io_uring=auto") as m:
            self.check(m)

    def test_refused(self):
        """One line says why it cannot be."""
        cases = [("only on a mount for reading", self.path, "rw"), ("not with -s", self.path, None, "-s")]
        for why, path, more, *arguments in cases:
            status, said = refusal(path, *arguments, options=",".join(filter(None, ("io_uring=yes", more))))
            self.assertEqual(status, 2)
            (line,) = said.splitlines()
            self.assertTrue(why in line or NONE_IN_LIBFUSE in line, line)

    def test_the_switch_is_off(self):
        with contextlib.suppress(FileNotFoundError), open(SWITCH) as f:
            if f.read().startswith("Y"):
                self.skipTest(f"{SWITCH} is Y")
        status, said = refusal(self.path, options="io_uring=yes")
        self.assertEqual(status, 2)
        (line,) = said.splitlines()
        self.assertTrue(SWITCH in line or NONE_IN_LIBFUSE in line, line)

    def test_requests_come_through_it(self):
        self.is_possible()
        for arguments in (), ("-f",):
            for options in "io_uring=yes", "io_uring=auto", "io_uring=yes,sandbox=no", "io_uring=yes,external=none":
                with self.subTest(options, arguments=arguments), Mount(self.path, *arguments, options=options) as m:
                    before = entries(m.daemon)
                    self.check(m)
                    self.assertGreater(entries(m.daemon), before + 200)  # a read and a value for each small dataset

    def test_a_folder(self):
        self.is_possible()
        with Mount(self.folder, options="io_uring=yes") as m:
            before = entries(m.daemon)
            with open(m.at("data.h5", "small", "7"), "rb") as f:
                self.assertEqual(f.read(), numpy.full(20, 7, "<i4").tobytes())
            self.assertGreater(entries(m.daemon), before)

    def test_all_threads_are_confined(self):
        self.is_possible()
        with Mount(self.path, options="io_uring=yes") as m:
            status = of_threads(m.daemon, "status")
            self.assertGreater(len(status), 2)
            for thread in status:
                self.assertRegex(thread, r"NoNewPrivs:\s+1\n")
                self.assertRegex(thread, r"Seccomp:\s+2\n")

    def test_signals_end_it(self):
        """Also while requests are under way."""
        self.is_possible()
        for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
            with self.subTest(number), Mount(self.path, options="io_uring=yes") as m:
                reader = subprocess.Popen(["sh", "-c", 'while cat "$1"; do :; done', "sh", m.at("big")], stdout=subprocess.PIPE,
                                          stderr=subprocess.DEVNULL)
                reader.stdout.read(1 << 20)
                os.kill(m.daemon, number)
                reader.communicate()
                self.assertEqual(m.wait(), 0)

    def test_many_readers(self):
        self.is_possible()
        with Mount(self.path, options="io_uring=yes,cache=1M") as m:
            failures = []

            def read():
                try:
                    for _ in range(3):
                        self.check(m)
                except Exception as error:
                    failures.append(error)

            readers = [threading.Thread(target=read) for _ in range(8)]
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()
            self.assertEqual(failures, [])


if __name__ == "__main__":
    main()
