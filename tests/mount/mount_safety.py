#!/usr/bin/python3
"""What a mount does to those around it: its flags, where it goes, what becomes of it when its daemon dies, and of its daemon
when the file is cut or replaced."""
import contextlib
import errno
import fcntl
import os
import shutil
import signal
import subprocess

import h5py
import numpy

from mountlib import H5FS, Mount, MountCase, main, mounted, own_children, read, reap, refusal

NOBODY = 65534


class Case(MountCase):
    def setUp(self):
        super().setUp()
        self.path = self.file("file.h5")
        with h5py.File(self.path, "w", libver="latest") as f:
            f["d"] = numpy.arange(1000)
            f["other"] = h5py.ExternalLink("other.h5", "/d")
            f.create_dataset("rows", (0,), "<i8", maxshape=(None,), chunks=(8,))
            f.create_group("group")
            f["type"] = numpy.dtype("<i4")
        with h5py.File(self.file("other.h5"), "w") as f:
            f["d"] = 1
        self.point = self.file("mnt")
        os.mkdir(self.point)

    def refused(self, *arguments):
        """As refusal(), where something is mounted already, which stays."""
        run = subprocess.run([H5FS, *arguments, self.path, self.point], capture_output=True, text=True, check=False)
        self.assertNotEqual(run.returncode, 0)
        return run.returncode, run.stderr


def flags(path):
    with open("/proc/self/mounts") as f:
        return [set(line.split()[3].split(",")) for line in f if line.split()[1] == path]


class Flags(Case):
    def test_always(self):
        for options in ("ro", "rw"):
            with Mount(self.path, options=options) as m:
                self.assertLessEqual({options, "nosuid", "nodev", "noexec"}, flags(m.path)[0])
                self.assertNotIn("allow_other", flags(m.path)[0])

    def test_who_checks_modes(self):
        """The kernel, but in mounts for writing only if others may enter or if options change owners or modes."""
        for options, kernel in (("ro", True), ("rw", False), ("rw,allow_other", True), ("rw,fmask=022", True), ("rw,dmask=022", True),
                                ("rw,uid=1", True), ("rw,gid=1", True), (f"rw,uid={os.getuid()}", False)):
            with self.subTest(options=options), Mount(self.path, options=options) as m:
                self.assertEqual("default_permissions" in flags(m.path)[0], kernel)

    def test_access(self):
        """access(2) tells what modes do, to root too."""
        with Mount(self.path, options="rw") as m:
            for name, right, allowed in (("rows", os.R_OK | os.W_OK, True), ("type", os.R_OK, True), ("type", os.W_OK, False),
                                         ("d", os.X_OK, False), ("group", os.R_OK | os.W_OK | os.X_OK, True),
                                         (".h5fs/json", os.R_OK | os.X_OK, True), (".h5fs/json", os.W_OK, False)):
                with self.subTest(name=name, right=right):
                    self.assertEqual(os.access(m.at(name), right), allowed)
            self.assertErrno(errno.EPERM, os.open, m.at("type"), os.O_WRONLY)

    def test_removing_takes_one_request(self):
        with Mount(self.path, "-f", options="rw,debug") as m:
            for i in range(20):
                os.close(os.open(m.at("group", f"n{i}"), os.O_CREAT))
            names = os.listdir(m.at("group"))
            before = m.said().count("opcode: ")
            for name in names:
                os.unlink(m.at("group", name))
            said = m.said()
            self.assertEqual(said.count("opcode: UNLINK"), 20)
            requests = said.count("opcode: ") - before - said.count("FORGET")
            self.assertLess(requests, 25)

    def test_allow_other(self):
        for options, followed in (("allow_other", False), ("allow_other,external=beneath", True)):
            with self.subTest(options=options), Mount(self.path, options=options) as m:
                self.assertLessEqual({"allow_other", "default_permissions"}, flags(m.path)[0])
                self.assertEqual(os.path.exists(m.at("other")), followed)
                self.assertEqual(os.path.islink(m.at("other")), not followed)

    def test_others_are_kept_out(self):
        """By modes with allow_other, without it altogether."""
        os.chmod(self.folder, 0o755)
        for options, status in ((None, 1), ("allow_other", 0), ("allow_other,fmask=0007", 1), ("allow_other,dmask=0007", 1)):
            with self.subTest(options=options), Mount(self.path, options=options, point=self.point) as m:
                run = subprocess.run(["cat", m.at("d")], capture_output=True, check=False, user=NOBODY, group=NOBODY, extra_groups=[])
                self.assertEqual(run.returncode, status, run.stderr)


class Point(Case):
    def test_not_empty(self):
        hidden = os.path.join(self.point, "hidden")
        with open(hidden, "w"):
            pass
        status, said = refusal(self.path, point=self.point)
        self.assertEqual(status, 7)
        self.assertIn("not empty", said)
        self.assertIn("-o nonempty", said)
        with Mount(self.path, point=self.point, options="nonempty"):
            self.assertFalse(os.path.exists(hidden))
        self.assertTrue(os.path.exists(hidden))

    def test_hidden_names_count(self):
        os.mkdir(os.path.join(self.point, ".hidden"))
        self.assertEqual(refusal(self.path, point=self.point)[0], 7)

    def test_a_mount_over_a_mount(self):
        with Mount(self.path, point=self.point):
            self.assertEqual(self.refused()[0], 7)
            run = subprocess.run([H5FS, "-o", "nonempty", self.file("other.h5"), self.point], check=False)
            self.assertEqual(run.returncode, 0)
            self.assertEqual(os.listdir(self.point), ["d"])
            subprocess.run(["fusermount3", "-u", self.point], check=True)
            self.assertEqual(len(os.listdir(self.point)), 5)

    def test_stale(self):
        """A daemon and what should unmount for it, both killed."""
        with Mount(self.path, point=self.point) as m:
            unmounter, = own_children(m.daemon)
            os.kill(unmounter, signal.SIGKILL)
            os.kill(m.daemon, signal.SIGKILL)
            self.assertEqual(m.wait(), -signal.SIGKILL)
            m.status = 0
            self.assertErrno(errno.ENOTCONN, os.listdir, self.point)
            for arguments in ((), ("-o", "nonempty"), ("-f",)):
                status, said = self.refused(*arguments)
                self.assertEqual(status, 11)
                self.assertIn("stale mount", said)
                self.assertIn(f"fusermount3 -u {os.path.realpath(self.point)}", said)
            subprocess.run(["fusermount3", "-u", self.point], check=True)
        with Mount(self.path, point=self.point):
            pass


class End(Case):
    """However the daemon ends, nothing stays mounted or locked."""

    def reap_all(self, m, unmounter):
        status = m.wait()
        m.status = 0
        # Orphaned, it is ours, or it has been waited for.
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            self.assertEqual(reap(unmounter, 60), 0)
        self.assertFalse(mounted(m.path))
        self.assertEqual(os.listdir(m.path), [])
        with open(self.path, "rb") as f:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return status

    def test_crashes(self):
        for options in ("ro", "rw", "sandbox=no"):
            for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGXCPU):
                with self.subTest(options=options, signal=number), Mount(self.path, options=options) as m:
                    unmounter, = own_children(m.daemon)
                    os.kill(m.daemon, number)
                    status = self.reap_all(m, unmounter)
                    # Sanitizers report some, and exit.
                    self.assertTrue(status == -number or (number != signal.SIGKILL and status > 0), status)
                    for name in os.listdir(m.folder):
                        if name.startswith("sanitizer."):
                            os.unlink(os.path.join(m.folder, name))

    def test_crash_while_busy(self):
        """Who has files open there is told, and hinders nobody."""
        with Mount(self.path, point=self.point) as m:
            fds = [os.open(m.at(name), os.O_RDONLY) for name in ("d", ".")]
            unmounter, = own_children(m.daemon)
            os.kill(m.daemon, signal.SIGKILL)
            self.reap_all(m, unmounter)
            self.assertErrno(errno.ENOTCONN, os.listdir, fds[1])
            for fd in fds:
                with contextlib.suppress(OSError):
                    os.close(fd)

    def test_signals_to_the_one_outside(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(signal=number), Mount(self.path, options="rw") as m:
                with open(m.at("rows"), "ab") as f:
                    f.write(bytes(8))
                unmounter, = own_children(m.daemon)
                os.kill(unmounter, number)
                self.assertEqual(self.reap_all(m, unmounter), 0)

    def test_signals_to_both(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number), Mount(self.path) as m:
                unmounter, = own_children(m.daemon)
                os.kill(unmounter, number)
                os.kill(m.daemon, number)
                self.assertEqual(self.reap_all(m, unmounter), 0)

    def test_another_mount_is_left_alone(self):
        """What lies over a mount when its daemon dies, and what has taken its place."""
        with Mount(self.path, point=self.point) as below:
            unmounter, = own_children(below.daemon)
            with Mount(self.file("other.h5"), point=self.point, options="nonempty"):
                os.kill(below.daemon, signal.SIGKILL)
                self.assertEqual(below.wait(), -signal.SIGKILL)
                below.status = 0
                self.assertEqual(reap(unmounter, 60), 0)
                self.assertEqual(os.listdir(self.point), ["d"])
        with Mount(self.path, point=self.point) as first:
            os.kill(first.daemon, signal.SIGSTOP)
            subprocess.run(["fusermount3", "-uz", self.point], check=True)
            with Mount(self.file("other.h5"), point=self.point):
                os.kill(first.daemon, signal.SIGCONT)
                self.assertEqual(first.wait(), 0)
                self.assertEqual(os.listdir(self.point), ["d"])

    def test_odd_mount_points(self):
        for name in ("with blank", "tab\tand\nline", "back\\slash", "back\\040slash", "caf\u00e9"):
            point = self.file(name)
            os.mkdir(point)
            with self.subTest(name):
                run = subprocess.run([H5FS, self.path, point], check=False)
                self.assertEqual(run.returncode, 0)
                daemon, = (pid for pid in own_children() if point.encode() in read(f"/proc/{pid}/cmdline"))
                unmounter, = own_children(daemon)
                os.kill(daemon, signal.SIGKILL)
                self.assertEqual(reap(daemon, 60), -signal.SIGKILL)
                self.assertEqual(reap(unmounter, 60), 0)
                self.assertFalse(os.path.ismount(point))
                self.assertEqual(os.listdir(point), [])

    def test_of_a_user(self):
        """Who is not root mounts by fusermount3, so it is what unmounts."""
        self.let_all_mount()
        os.chmod(self.folder, 0o755)
        os.chmod(self.path, 0o666)
        os.chown(self.point, NOBODY, NOBODY)
        # Where the build is, a user may not look.
        program = shutil.copy(H5FS, self.file("h5fs"))
        as_user = dict(user=NOBODY, group=NOBODY, extra_groups=[])
        for end in (signal.SIGTERM, signal.SIGKILL):
            run = subprocess.run([program, self.path, self.point], check=False, **as_user)
            self.assertEqual(run.returncode, 0)
            self.assertTrue(mounted(self.point))
            daemon, = (pid for pid in own_children() if self.point.encode() in read(f"/proc/{pid}/cmdline"))
            unmounter, = own_children(daemon)
            self.assertEqual(os.stat(f"/proc/{daemon}").st_uid, NOBODY)
            listing = subprocess.run(["ls", self.point], capture_output=True, check=True, **as_user).stdout
            self.assertEqual(listing.split(), [b"d", b"group", b"other", b"rows", b"type"])
            os.kill(daemon, end)
            self.assertEqual(reap(daemon, 60), 0 if end == signal.SIGTERM else -end)
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                self.assertEqual(reap(unmounter, 60), 0)
            self.assertFalse(mounted(self.point))


class Begin(Case):
    def test_the_status_of_what_fails_late(self):
        """When it has gone to the background already, but not mounted."""
        for file, status in ((self.file("no.h5"), 3), (__file__, 3)):
            self.assertEqual(refusal(file)[0], status)
        with open(self.path, "rb") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            self.assertEqual(refusal(self.path)[0], 5)
            self.assertEqual(refusal(self.path, "-f")[0], 5)

    def test_version(self):
        said = subprocess.run([H5FS, "-V"], capture_output=True, text=True, check=True).stdout
        self.assertRegex(said, r"\nsandbox: (none, since |no new privileges, )")


class Changed(Case):
    """The file is no longer what it was: errors, not signals."""

    def setUp(self):
        super().setUp()
        with h5py.File(self.path, "a") as f:
            f["big"] = numpy.arange(1 << 20)
            f.create_dataset("chunks", data=numpy.arange(1 << 16), chunks=(1 << 10,), compression="gzip")
            for i in range(50):
                f[f"group/{i}/x"] = i

    def ask_all(self, m):
        """The errors of all that can be asked."""
        errors = set()
        for folder, folders, files in os.walk(m.path, onerror=lambda e: errors.add(e.errno)):
            for name in folders + files:
                place = os.path.join(folder, name)
                for ask in (os.stat, os.listxattr, lambda p: os.getxattr(p, "h5fs.info"), read if name in files else os.listdir):
                    try:
                        ask(place)
                    except OSError as e:
                        errors.add(e.errno)
        return errors

    def test_truncated(self):
        for size in (0, 7, 100, 2000, 1 << 16, 1 << 22):
            for options in (None, "locking=no", "rw", "rw,locking=no", "swmr"):
                copy = self.file("copy.h5")
                with open(copy, "wb") as f:
                    f.write(read(self.path))
                with self.subTest(size=size, options=options), Mount(copy, options=options) as m:
                    os.truncate(copy, size)
                    errors = self.ask_all(m)
                    self.assertTrue(errors)
                    self.assertLessEqual(errors, {errno.EUCLEAN, errno.EIO, errno.ENOENT})
                    # It is still there, and does what it can.
                    self.assertIsNone(reap(m.daemon, 0))
                    m.unmount()
                    # A commit that finds nothing to change is none.
                    self.assertEqual(m.wait(), 0)
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(copy + ".h5fs-journal")

    def test_replaced(self):
        """What is mounted is the file that was there."""
        new = self.file("new.h5")
        for options in (None, "locking=no", "rw", "swmr"):
            with self.subTest(options=options), Mount(self.path, options=options) as m:
                with open(new, "wb") as f:
                    f.write(b"something else")
                old = read(self.path)
                os.rename(new, self.path)
                self.assertEqual(self.ask_all(m), set())
                self.assertEqual(read(m.at("big")), numpy.arange(1 << 20).tobytes())
                self.assertEqual(read(self.path), b"something else")
                with open(new, "wb") as f:
                    f.write(old)
                m.unmount()
                self.assertEqual(m.wait(), 0)
                self.assertEqual(read(self.path), b"something else")
                os.rename(new, self.path)

    def test_overwritten(self):
        with Mount(self.path, options="locking=no") as m:
            with open(self.path, "r+b") as f:
                f.write(os.urandom(os.stat(self.path).st_size))
            self.assertLessEqual(self.ask_all(m), {errno.EUCLEAN, errno.EIO, errno.ENOENT, errno.ENOTSUP, errno.EFBIG, errno.ENOMEM})
            self.assertIsNone(reap(m.daemon, 0))


if __name__ == "__main__":
    main()
