#!/usr/bin/python3
"""System calls that fail while a mount begins or ends, by strace: the reason is told, and nothing is left of it."""
import errno
import fcntl
import os
import signal
import subprocess

import h5py

from mountlib import H5FS, Mount, MountCase, main, mounted, own_children, read

SOON = 60
NO_LEAKS = {"ASAN_OPTIONS": "detect_leaks=0"}  # which is not possible in a traced process


class Case(MountCase):
    def setUp(self):
        super().setUp()
        if os.geteuid():
            self.skipTest("only root mounts without fusermount3, which strace cannot look at")
        self.path, self.point, self.trace = self.file("x.h5"), self.file("m"), self.file("trace")
        with h5py.File(self.path, "w", libver="latest") as f:
            f["d"] = 1
        self.addCleanup(lambda: mounted(self.point) and subprocess.run(["umount", "-l", self.point], check=True))

    def h5fs(self, fault, *arguments, of=()):
        """Exit status and standard error while the call fails so; of: only where it is about these paths."""
        paths = [word for path in of for word in ("-P", path)]
        run = subprocess.run(["strace", "-f", "-qq", "-o", self.trace, *paths, "-e", f"trace={fault.partition(':')[0]}", "-e", f"inject={fault}",
                              H5FS, *arguments], capture_output=True, text=True, timeout=SOON, check=False, env={**os.environ, **NO_LEAKS})
        self.assertRegex(read(self.trace), rb"\(INJECTED\)|killed by", fault)
        said = [line for line in run.stderr.splitlines(keepends=True) if not line.startswith("strace: Requested path ")]
        return run.returncode, "".join(said)

    def fails(self, said, fault, *arguments, status=7, of=(), path=None):
        """A mount that must not come about."""
        path = path or self.path
        self.assertEqual(self.h5fs(fault, *arguments, path, self.point, of=of), (status, said and f"h5fs: {said}\n"), (fault, arguments))
        self.assertFalse(mounted(self.point))
        self.assertFalse(os.path.lexists(self.point))
        self.assertEqual([name for name in os.listdir(self.folder) if "journal" in name], [])
        with open(self.path, "rb") as f:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Begin(Case):
    def test_processes(self):
        full = "Too many open files"
        self.fails(f"{self.path}: pipe: {full}", "pipe2:error=EMFILE", status=3)
        self.fails(f"{self.path}: fork: Cannot allocate memory", "clone:error=ENOMEM:when=1", status=3)
        # Not the status of a locked file, which has the same number.
        self.fails(f"{self.path}: fork: Resource temporarily unavailable", "clone:error=EAGAIN:when=1", status=3)
        self.fails(f"{self.path}: /dev/null: {full}", "openat:error=EMFILE:when=2", status=3, of=["/dev/null"])
        self.fails(f"{self.path}: cannot start a process: {full}", "socketpair:error=EMFILE", "-f")
        self.fails(f"{self.path}: cannot start a process: Cannot allocate memory", "clone:error=ENOMEM:when=1", "-f")
        self.fails(f"{self.path}: cannot answer the kernel's first request: {full}", "socketpair:error=EMFILE:when=1", "-f", "-o", "rw")
        self.fails(f"{self.path}: cannot start a process: {full}", "socketpair:error=EMFILE:when=2", "-f", "-o", "rw")

    def test_threads(self):
        """In their order; the first call makes the process that unmounts."""
        os.mkdir(self.file("folder"))
        thread, server = "cannot start a thread", "the kernel's requests cannot be read"
        for path, options, reasons in ((self.path, "ro", (thread, server)), (self.path, "rw", (thread, thread, thread, server)),
                                       (self.file("folder"), "ro", (thread, thread, server)), (self.file("folder"), "rw", (thread, thread, thread, server))):
            for i, reason in enumerate(reasons):
                with self.subTest(path=path, options=options, thread=i):
                    self.fails(f"{path}: {reason}: Resource temporarily unavailable", f"clone,clone3:error=EAGAIN:when={i + 2}", "-f", "-o", options, path=path)

    def test_a_daemon_that_dies(self):
        """The command that waits for it tells how it has ended, also if a signal disturbs the wait."""
        self.fails("ended by signal 9", "flock:signal=KILL", status=128 + signal.SIGKILL)
        self.fails("ended by signal 14", "flock:signal=ALRM", status=128 + signal.SIGALRM)
        absent = self.file("absent.h5")
        self.fails(f"{absent}: No such file or directory", "wait4:error=EINTR:when=1", status=3, path=absent)
        self.fails(f"{absent}: No such file or directory", "wait4:error=ECHILD:when=1", status=1, path=absent)

    def test_the_mount_point(self):
        self.fails(f"{self.point}: Read-only file system", "mkdir:error=EROFS", "-f")
        os.mkdir(self.point)
        self.assertEqual(self.h5fs("openat:error=EMFILE", "-f", self.path, self.point, of=[self.point]), (7, f"h5fs: {self.point}: Too many open files\n"))
        self.assertEqual(self.h5fs("openat:error=ENOTCONN", "-f", self.path, self.point, of=[self.point]),
                         (11, f"h5fs: {self.point}: a stale mount, whose daemon is no more; end it with: fusermount3 -u {self.point}\n"))

    def test_the_file(self):
        """What its error means to the exit status, and that it is about writing."""
        for name, status, status_rw in (("ENOENT", 3, 3), ("EMFILE", 3, 3), ("EACCES", 3, 8), ("EPERM", 3, 8), ("EROFS", 3, 8), ("ENOSPC", 3, 8),
                                        ("EIO", 4, 4), ("EOPNOTSUPP", 6, 6), ("EBUSY", 9, 9), ("EMLINK", 9, 9)):
            why, fault = os.strerror(getattr(errno, name)), f"openat:error={name}"
            self.assertEqual(self.h5fs(fault, "--list", self.path, of=[self.path]), (status, f"h5fs: {self.path}: {why}\n"), fault)
            what = "cannot be written: " if status_rw == 8 else ""
            self.fails(f"{self.path}: {what}{why}", fault, "-f", "-o", "rw", status=status_rw, of=[self.path])

    def test_what_does_not_matter(self):
        os.mkdir(self.point)
        for fault, of, options, said in (("chdir:error=EACCES", (), "ro", "h5fs: /: Permission denied\n"), ("statx:error=EIO", ["-P", self.point], "ro", ""),
                                         ("openat:error=EMFILE:when=1", ["-P", "/dev/null"], "ro", ""), ("setrlimit,prlimit64:error=EPERM", (), "rw", ""),
                                         ("openat:error=EACCES", ["-P", self.point], "ro", "")):  # who may mount there, the kernel says
            with self.subTest(fault), Mount(self.path, "-f", "-qq", "-o", self.trace, *of, "-e", f"trace={fault.partition(':')[0]}", "-e", f"inject={fault}",
                                            H5FS, "-f", program="strace", point=self.point, options=options, env=NO_LEAKS) as m:
                self.assertEqual(read(m.at("d")), (1).to_bytes(8, "little"))
                self.assertEqual(m.said(), said)
            self.assertIn(b"(INJECTED)", read(self.trace))


class Unmounter(Case):
    """The process that unmounts for a daemon that has died; and signals to both."""

    def test_it_is_apart(self):
        """Ctrl-C does not reach it; it has a name, and none of the daemon's memory of signals."""
        for arguments in (), ("-f",):
            with self.subTest(arguments), Mount(self.path, *arguments, options="rw") as m:
                pid, = own_children(m.daemon)
                self.assertEqual(os.getsid(pid), pid)
                self.assertEqual(read(f"/proc/{pid}/comm"), b"h5fs-unmounter\n")
                status = dict(line.split(":\t", 1) for line in read(f"/proc/{pid}/status").decode().splitlines() if ":\t" in line)
                ignored, blocked, caught = (int(status[name], 16) for name in ("SigIgn", "SigBlk", "SigCgt"))
                self.assertEqual(blocked, 0)
                self.assertTrue(ignored >> signal.SIGUSR1 - 1 & 1)
                for number in signal.SIGHUP, signal.SIGINT, signal.SIGTERM:
                    self.assertTrue(caught >> number - 1 & 1, number)
                os.kill(pid, signal.SIGUSR1)
                m.kill()

    def test_signals_of_the_daemon(self):
        """That of statistics is waited for; two would end it, whose calls shall fail instead."""
        for options in "ro", "rw":
            with self.subTest(options), Mount(self.path, "--default-signal=QUIT", "--block-signal=WINCH,USR2", "--ignore-signal=USR1,CHLD", H5FS, program="env", options=options) as m:
                status = dict(line.split(":\t", 1) for line in read(f"/proc/{m.daemon}/status").decode().splitlines() if ":\t" in line)
                ignored, blocked = ({number for number in signal.Signals if int(status[name], 16) >> number - 1 & 1} for name in ("SigIgn", "SigBlk"))
                self.assertEqual(ignored, {signal.SIGPIPE, signal.SIGXFSZ})
                self.assertEqual(blocked - {signal.SIGHUP, signal.SIGINT, signal.SIGTERM}, {signal.SIGUSR1})
                self.assertEqual(len(blocked), 1 if options == "ro" else 4)

    def test_it_ends_with_the_daemon(self):
        for options in "ro", "rw":
            with self.subTest(options), Mount(self.path, options=options) as m:
                pid, = own_children(m.daemon)
                m.unmount()
                self.assertEqual(m.wait(), 0)
                self.assertFalse(os.path.exists(f"/proc/{pid}"))


class Requests(Case):
    def with_fault(self, fault, path, options="ro", of=()):
        """A mount whose daemon has the fault."""
        paths = [word for place in of for word in ("-P", place)]
        return Mount(path, "-f", "-qq", "-o", self.trace, *paths, "-e", f"trace={fault.partition(':')[0]}", "-e", f"inject={fault}", H5FS, "-f", program="strace",
                     point=self.point, options=options, env=NO_LEAKS)

    def test_errors_of_the_file_system_below(self):
        """They reach the program that has asked."""
        folder = self.file("folder")
        os.mkdir(folder)
        os.symlink("nowhere", os.path.join(folder, "link"))
        with open(os.path.join(folder, "text"), "w") as f:
            f.write("text")
        for path, options in (self.path, "rw"), (folder, "ro"):
            with self.with_fault("fstatfs:error=EIO", path, options):
                self.assertErrno(errno.EIO, os.statvfs, self.point)
        for fault, of, function in (("lseek:error=EIO", [os.path.join(folder, "text")], lambda fd: os.lseek(fd, 1, os.SEEK_DATA)),
                                    ("pread64:error=EIO", [os.path.join(folder, "text")], lambda fd: os.read(fd, 10))):
            with self.subTest(fault), self.with_fault(fault, folder, of=of), open(os.path.join(self.point, "text"), "rb", buffering=0) as f:
                self.assertErrno(errno.EIO, function, f.fileno())
        with self.with_fault("readlinkat:error=EIO", folder):
            self.assertErrno(errno.EIO, os.readlink, os.path.join(self.point, "link"))

    def test_which_are_logged(self):
        """Those of the file and its disk, and some others if there is more to say; once in a row. With -o quiet none is."""
        folder = self.file("folder")
        os.mkdir(folder)
        for name in "one", "two":
            with open(os.path.join(folder, name), "w") as f:
                f.write("text")
        of, about_the_file = [os.path.join(folder, name) for name in ("one", "two")], ["EUCLEAN", "EOPNOTSUPP", "EIO", "ENOMEM", "ENOSPC", "EDQUOT"]
        read_it, seek = ("pread64", lambda fd: os.read(fd, 10), "read: read: {why} at address 0"), ("lseek", lambda fd: os.lseek(fd, 1, os.SEEK_DATA), "lseek: {why}")
        for (call, function, said), logged, options in ((read_it, about_the_file + ["EFBIG", "EROFS", "EOVERFLOW"], "ro"), (seek, about_the_file, "ro"), (read_it, [], "quiet")):
            for name in about_the_file + ["EFBIG", "EROFS", "EOVERFLOW", "EACCES", "EPERM", "ENOENT", "EINVAL"] if options == "ro" else ["EIO"]:
                why = os.strerror(getattr(errno, name))
                with self.subTest(name, call=call), self.with_fault(f"{call}:error={name}", folder, options, of) as m:
                    for file in "one", "one", "two", "one":
                        with open(m.at(file), "rb", buffering=0) as f:
                            self.assertErrno(getattr(errno, name), function, f.fileno())
                    lines = [f"h5fs: {said.format(why=why)} ({file})\n" for file in ("one", "two", "one")]
                    self.assertEqual(m.said(), "".join(lines) if name in logged else "")


class Unmount(Case):
    def unmount(self, *how, of=(), arguments=("-u",)):
        """With a fault for each attempt, and what comes of it."""
        with Mount(self.path, point=self.point, options="rw") as m:
            for fault, paths, status, said, stays in how:
                of = [path.format(pid=m.daemon) for path in paths]
                self.assertEqual(self.h5fs(fault, *arguments, self.point, of=of), (status, said and f"h5fs: {said}\n"), fault)
                self.assertEqual(mounted(self.point), stays, fault)
                if stays:
                    self.assertEqual(read(m.at("d")), (1).to_bytes(8, "little"))
            if not stays:
                self.assertEqual(m.wait(), 0)

    def test_what_fails_first(self):
        """It stays mounted, and the reason is told."""
        point = self.point
        self.unmount(("openat:error=EMFILE", ["/proc/self/mountinfo"], 7, "/proc/self/mountinfo: Too many open files", True),
                     ("openat:error=EMFILE", [point], 7, f"{point}: Too many open files", True),
                     ("fsync:error=EIO", [], 10, f"{point}: what was changed last cannot be committed: Input/output error; it stays mounted", True),
                     ("umount2:error=EINVAL", [], 7, f"{point}: cannot be unmounted: Invalid argument", True),
                     ("umount2:error=EBUSY", [], 7, f"{point}: in use: a file of it is open, or a program is in a directory of it", True))

    def test_a_daemon_that_cannot_be_waited_for(self):
        said = f"{self.point}: unmounted; its daemon is out of sight, and may not have closed the file yet"
        for fault, paths in (("getxattr:error=EPERM", []), ("getxattr:error=ENOTCONN:when=2", []), ("pidfd_open:error=ENOSYS", []),
                             ("openat:error=EACCES", ["/proc/{pid}/comm"]), ("read:retval=0", ["/proc/{pid}/comm"])):
            with self.subTest(fault):
                self.unmount((fault, paths, 7, said, False))

    def test_the_wait(self):
        """Is told when it becomes long, and goes on after signals."""
        self.unmount(("poll:retval=0:when=1", [], 0, f"{self.point}: unmounted; waiting for its daemon to close the file", False))
        self.unmount(("poll:error=EINTR:when=1", [], 0, "", False))

    def test_a_daemon_that_has_died(self):
        """ENOTCONN says so: it is only unmounted. That may fail, too."""
        self.unmount(("getxattr:error=ENOTCONN", [], 0, "", False))

    def test_remount(self):
        point = self.point
        with Mount(self.path, point=point, options="rw"):
            for fault, paths, options, status, said in (
                    ("newfstatat:error=EIO", [point], "remount,rw", 7, f"{point}: Input/output error"),
                    ("mount:error=EPERM", [], "remount,rw", 7, f"{point}: Operation not permitted"),
                    ("mount:error=EPERM", [], "remount,ro", 7, f"{point}: Operation not permitted"),
                    ("mount:error=EBUSY", [], "remount,ro", 7, f"{point}: in use: a file of it is open for writing"),
                    ("fsync:error=ENOSPC", [], "remount,ro", 10, f"{point}: what was changed last cannot be committed: No space left on device; it stays mounted")):
                self.assertEqual(self.h5fs(fault, "-o", options, self.path, point, of=paths), (status, f"h5fs: {said}\n"), fault)


if __name__ == "__main__":
    main()
