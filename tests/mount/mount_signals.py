#!/usr/bin/python3
"""How a mount begins and ends: ready when the command returns, ended cleanly by unmounting and by signals."""
import contextlib
import errno
import fcntl
import os
import signal
import subprocess
import time

import h5py

from mountlib import H5FS, Mount, MountCase, main, mounted, read, reap, refusal


class Life(MountCase):
    def setUp(self):
        super().setUp()
        self.path = self.file("life.h5")
        with h5py.File(self.path, "w") as f:
            f["group/data"] = range(1000)

    def fingerprint(self):
        st = os.stat(self.path)
        return st.st_mtime_ns, st.st_ctime_ns, st.st_size, read(self.path)

    def check_end(self, end):
        before = self.fingerprint()
        with Mount(self.path) as m:
            self.assertEqual(len(read(m.at("group/data"))), 8000)
            end(m)
            self.assertEqual(m.wait(), 0)
            self.assertFalse(mounted(m.path))
            self.assertEqual(os.listdir(m.path), [])
        self.assertEqual(self.fingerprint(), before)
        with open(self.path, "rb") as f:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_fusermount(self):
        self.check_end(Mount.unmount)

    def test_sigterm(self):
        self.check_end(lambda m: os.kill(m.daemon, signal.SIGTERM))

    def test_sigint(self):
        self.check_end(lambda m: os.kill(m.daemon, signal.SIGINT))

    def test_sigterm_twice(self):
        def end(m):
            os.kill(m.daemon, signal.SIGTERM)
            os.kill(m.daemon, signal.SIGTERM)
        self.check_end(end)

    def test_unmount_while_busy_is_refused(self):
        with Mount(self.path) as m:
            with open(m.at("group/data"), "rb") as f:
                run = subprocess.run(["fusermount3", "-u", m.path], capture_output=True, text=True, check=False)
                self.assertNotEqual(run.returncode, 0)
                self.assertEqual(len(f.read()), 8000)

    def test_sigterm_while_busy(self):
        """Open files and folders do not keep the daemon: they fail from then on."""
        with Mount(self.path) as m:
            opened = [os.open(m.at(name), os.O_RDONLY) for name in ("group/data", "group")]
            self.assertEqual(len(os.pread(opened[0], 10, 0)), 10)
            os.kill(m.daemon, signal.SIGTERM)
            self.assertEqual(m.wait(), 0)
            self.assertRaises(OSError, os.listdir, opened[1])
            for fd in opened:
                with contextlib.suppress(OSError):  # of what close() tells the lost daemon
                    os.close(fd)

    def test_ready_when_the_command_returns(self):
        for _ in range(40):
            with Mount(self.path) as m:
                self.assertEqual(os.listdir(m.path), ["group"])

    def test_the_daemon_has_left_the_terminal_and_the_folder(self):
        with Mount(self.path) as m:
            self.assertEqual(os.getsid(m.daemon), m.daemon)
            self.assertEqual(os.readlink(f"/proc/{m.daemon}/cwd"), "/")
            self.assertEqual(os.readlink(f"/proc/{m.daemon}/fd/0"), "/dev/null")

    def test_relative_paths(self):
        os.mkdir(self.file("mnt"))
        here = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, here)
        for end in (Mount.unmount, lambda m: os.kill(m.daemon, signal.SIGTERM)):
            with Mount("life.h5", point="mnt") as m:
                self.assertEqual(os.listdir("mnt/group"), ["data"])
                end(m)
                self.assertEqual(m.wait(), 0)
                self.assertFalse(mounted("mnt"))

    def test_foreground(self):
        point = self.file("mnt")
        os.mkdir(point)
        with open(self.file("log"), "w+") as log:
            run = subprocess.Popen([H5FS, "-f", self.path, point], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            try:
                end = time.monotonic() + 60
                while not mounted(point) and run.poll() is None and time.monotonic() < end:
                    time.sleep(0.01)
                self.assertEqual(os.listdir(point), ["group"])
                run.send_signal(signal.SIGTERM)
                self.assertEqual(reap(run.pid, 60), 0)
                self.assertFalse(mounted(point))
            finally:
                if mounted(point):
                    subprocess.run(["fusermount3", "-uz", point], check=False)
                run.kill()
                run.poll()

    def test_signals_of_the_parent_do_not_matter(self):
        """What the program that starts it ignores or blocks, as nohup does."""
        for setting in "--ignore-signal", "--block-signal":
            for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
                for options in "ro", "rw":
                    with self.subTest(setting=setting, signal=number, options=options):
                        with Mount(self.path, f"{setting}=HUP,INT,TERM,CHLD,USR1,PIPE,XFSZ", H5FS, program="env", options=options) as m:
                            os.kill(m.daemon, number)
                            self.assertEqual(m.wait(), 0)
                            self.assertFalse(mounted(m.path))

    def test_the_status_of_one_that_fails_while_sigchld_is_ignored(self):
        self.assertEqual(refusal(self.file("absent.h5"), "--ignore-signal=CHLD", H5FS, program="env")[0], 3)

    def test_statistics_if_sigusr1_was_ignored(self):
        log = self.file("log")
        with Mount(self.path, "--ignore-signal=USR1", H5FS, program="env", options=f"log={log}") as m:
            os.kill(m.daemon, signal.SIGUSR1)
            end = time.monotonic() + 60
            while b"statistics" not in read(log) and time.monotonic() < end:
                time.sleep(0.01)
            self.assertIn(b"statistics", read(log))

    def test_nohup_in_the_foreground(self):
        """There the terminal's signals stay ignored, and SIGTERM ends it."""
        with Mount(self.path, "--ignore-signal=HUP,INT", H5FS, "-f", program="env", options="rw") as m:
            for number in signal.SIGHUP, signal.SIGINT:
                os.kill(m.daemon, number)
                self.assertEqual(len(read(m.at("group/data"))), 8000)
            os.kill(m.daemon, signal.SIGTERM)
            self.assertEqual(m.wait(), 0)

    def test_a_limit_of_file_sizes_gives_an_error(self):
        """Not SIGXFSZ, which would end the daemon."""
        with h5py.File(self.path, "a") as f:
            f.create_dataset("rows", (0,), "u1", maxshape=(None,), chunks=(4096,))
        limit = 1 << 20
        with Mount(self.path, f"--fsize={limit}", H5FS, program="prlimit", options="rw") as m:
            fd = m.open("rows", os.O_WRONLY | os.O_APPEND)
            with self.assertRaises(OSError) as caught:
                for _ in range(40):
                    os.write(fd, bytes(limit // 20))
                    os.fsync(fd)
            self.assertEqual(caught.exception.errno, errno.EFBIG)
            self.assertIsNone(reap(m.daemon, 0))
            m.close_all()
            m.unmount()
            self.assertIn(m.wait(), (0, 10))  # it has told of what is lost, or tells now
            m.status = 0

    def test_help_and_version(self):
        for option, expected in (("-h", "usage"), ("-V", "h5fs")):
            run = subprocess.run([H5FS, option], capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn(expected, run.stdout.lower())
        for wrong in ([], ["-x", self.path, self.folder], [self.path, self.folder, "more"]):
            run = subprocess.run([H5FS, *wrong], capture_output=True, text=True, check=False)
            self.assertNotEqual(run.returncode, 0, wrong)
            self.assertNotEqual(run.stderr, "", wrong)


if __name__ == "__main__":
    main()
