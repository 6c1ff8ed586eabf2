#!/usr/bin/python3
"""A file that another program has locked is waited for: two seconds, or as long as -o wait= says."""
import concurrent.futures
import ctypes
import fcntl
import os
import select
import shutil
import signal
import subprocess
import time

import h5py
import numpy

from mountlib import H5FS, Mount, MountCase, main, mounted, own_children, reap

LONG = "wait=100"  # seconds: each test gives the lock back when it has seen somebody wait for it
IN_CLOSE = 0x18
IN_CLOEXEC = os.O_CLOEXEC


class Tries:
    """Tells of each try to open a file, which ends with a close as long as the file is locked."""

    def __init__(self, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(IN_CLOEXEC)
        if libc.inotify_add_watch(self.fd, path.encode(), IN_CLOSE) < 0:
            raise OSError(ctypes.get_errno(), "inotify")

    def wait(self):
        if not select.select([self.fd], [], [], 60)[0]:
            raise AssertionError("nobody has tried to open the file")
        os.read(self.fd, 4096)

    def close(self):
        os.close(self.fd)


class Case(MountCase):
    def setUp(self):
        super().setUp()
        self.path = self.file("data.h5")
        self.point = self.file("mnt")
        self.before = own_children()
        with h5py.File(self.path, "w", libver="latest") as f:
            f.create_dataset("rows", (0,), "<i8", maxshape=(None,), chunks=(8,))
        self.addCleanup(self.end)

    def end(self):
        if mounted(self.point):
            subprocess.run(["fusermount3", "-uz", self.point], check=False)
        for pid in own_children() - self.before:
            reap(pid, 60)

    def lock(self, path=None):
        f = open(path or self.path, "rb")
        self.addCleanup(f.close)
        fcntl.flock(f, fcntl.LOCK_EX)
        return f

    def start(self, *arguments):
        run = subprocess.Popen([H5FS, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               start_new_session=True)
        self.addCleanup(run.stderr.close)
        return run

    def tries(self, path=None):
        tries = Tries(path or self.path)
        self.addCleanup(tries.close)
        return tries

    def check_waits(self, *arguments, path=None):
        """The command ends with success, but not before the lock is given back."""
        lock, tries = self.lock(path), self.tries(path)
        run = self.start(*arguments)
        for _ in range(3):
            tries.wait()
        self.assertIsNone(run.poll())
        lock.close()
        self.assertEqual(run.wait(60), 0, run.stderr.read())


class Waits(Case):
    def test_for_the_daemon_before(self):
        """fusermount3 returns before that daemon has let go of the file."""
        for i in range(20):
            subprocess.run([H5FS, "-o", "rw", self.path, self.point], check=True)
            with open(os.path.join(self.point, "rows"), "ab") as f:
                f.write(i.to_bytes(8, "little"))
            subprocess.run(["fusermount3", "-u", self.point], check=True)
        for pid in own_children() - self.before:
            self.assertEqual(reap(pid, 60), 0)
        with h5py.File(self.path) as f:
            self.assertEqual(list(f["rows"]), list(range(20)))

    def test_until_the_lock_is_given_back(self):
        for options in "ro", "rw":
            with self.subTest(options):
                self.check_waits("-o", f"{options},{LONG}", self.path, self.point)
                self.assertEqual(os.listdir(self.point), ["rows"])
                self.end()

    def test_somebody_else_mounts_there_meanwhile(self):
        other = self.file("other.h5")
        with h5py.File(other, "w") as f:
            f["other"] = 1
        lock, tries = self.lock(), self.tries()
        run = self.start("-o", LONG, self.path, self.point)
        tries.wait()
        self.assertEqual(subprocess.run([H5FS, other, self.point], check=False).returncode, 0)
        lock.close()
        self.assertEqual(run.wait(60), 7)
        self.assertIn(b"already mounted", run.stderr.read())
        self.assertEqual(os.listdir(self.point), ["other"])

    def test_without_a_mount(self):
        for command in "--check", "--list", "--recover":
            with self.subTest(command):
                self.check_waits(command, "-o", LONG, self.path)

    def test_for_a_piece(self):
        with h5py.File(self.file("f%d.h5"), "w", driver="family", memb_size=4096) as f:
            f["d"] = numpy.arange(4096)
        self.check_waits("-o", LONG, self.file("f0.h5"), self.point, path=self.file("f1.h5"))
        with open(os.path.join(self.point, "d"), "rb") as f:
            self.assertEqual(f.read(), numpy.arange(4096).tobytes())

    def test_for_a_journal(self):
        """A mount with swmr has given the lock of the file itself up."""
        with Mount(self.path, options="rw,swmr") as m:
            tries = self.tries()
            run = self.start("-o", f"rw,{LONG}", self.path, self.point)
            for _ in range(3):
                tries.wait()
            self.assertIsNone(run.poll())
            m.unmount()
            self.assertEqual(m.wait(), 0)
            self.assertEqual(run.wait(60), 0, run.stderr.read())
            self.assertEqual(os.listdir(self.point), ["rows"])

    def test_other_requests_go_on(self):
        folder = self.file("folder")
        os.mkdir(folder)
        path = os.path.join(folder, "data.h5")
        shutil.copy(self.path, path)
        with open(os.path.join(folder, "plain"), "w") as f:
            f.write("text")
        with Mount(folder, options=LONG) as m, concurrent.futures.ThreadPoolExecutor(1) as pool:
            lock, tries = self.lock(path), self.tries(path)
            listing = pool.submit(os.listdir, m.at("data.h5"))
            try:
                tries.wait()
                run = subprocess.run(["cat", m.at("plain")], capture_output=True, timeout=60, check=True)
                self.assertEqual((run.stdout, listing.done()), (b"text", False))
            finally:
                lock.close()
            self.assertEqual(listing.result(60), ["rows"])


class Ends(Case):
    def test_after_its_time(self):
        self.lock()
        ways = ([], ["-f"], ["--recover"])
        for options, seconds, said, ways in (("wait=0", 0, "locked", ways), ("wait=1", 1, "waited for 1 s", ways),
                                             ("rw", 2, "waited for 2 s", ways[:1])):
            for arguments in ways:
                with self.subTest(options=options, arguments=arguments):
                    begin = time.monotonic()
                    run = self.start(*arguments, "-o", options, self.path, *([] if "--recover" in arguments else [self.point]))
                    self.assertEqual(run.wait(60), 5)
                    self.assertGreaterEqual(time.monotonic() - begin, seconds)
                    line, = run.stderr.read().decode().splitlines()
                    self.assertIn(said, line)
                    self.assertIn("locked by a program", line)
                    self.assertFalse(os.path.exists(self.point))

    def test_by_ctrl_c(self):
        """At once, and nothing stays behind."""
        for arguments in ["-o", f"rw,{LONG}"], ["-f", "-o", LONG]:
            with self.subTest(arguments):
                lock, tries = self.lock(), self.tries()
                run = self.start(*arguments, self.path, self.point)
                tries.wait()
                os.killpg(run.pid, signal.SIGINT)
                self.assertEqual(run.wait(60), -signal.SIGINT)
                for pid in own_children() - self.before:
                    self.assertEqual(reap(pid, 60), -signal.SIGINT)
                self.assertFalse(os.path.exists(self.point))
                lock.close()


if __name__ == "__main__":
    main()
