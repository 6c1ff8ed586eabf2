#!/usr/bin/python3
"""The sandbox: what the daemon can do once it has mounted, asked from inside by system calls that are put into it; and
what it opens, seen by strace, while files are walked that name others. H5FS_CONFORMANCE names a folder of many."""
import contextlib
import ctypes
import errno
import fcntl
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import unittest

import h5py
import numpy

from injectlib import Injector, available
from mountlib import H5FS, Mount, MountCase, Strace, main, of_threads, own_children, read, refusal

CORPUS = os.environ.get("H5FS_CONFORMANCE", "")
AT_FDCWD = -100
SAID = subprocess.run([H5FS, "-V"], capture_output=True, text=True, check=True).stdout
KEPT = "sandbox: no new privileges, Landlock (version " in SAID and SAID.endswith(", seccomp\n")
REASON = "no full sandbox here: " + SAID.splitlines()[-1]
MUCH = 1 << 20  # bytes of a dataset


def confinement(pid):
    """(no_new_privs, the mode of seccomp) of each thread."""
    return [tuple(int(re.search(rf"^{name}:\s+(\d+)$", text, re.M)[1]) for name in ("NoNewPrivs", "Seccomp"))
            for text in of_threads(pid, "status")]


def walk(path):
    """Asks for all that there is; what fails, fails."""
    for folder, folders, files in os.walk(path):
        for name in folders + files:
            place = os.path.join(folder, name)
            with contextlib.suppress(OSError):
                for attribute in os.listxattr(place) + ["h5fs.info"]:
                    os.getxattr(place, attribute)
            with contextlib.suppress(OSError), open(place, "rb") as f:
                f.read(MUCH)
                f.seek(-1, os.SEEK_END)
                f.read()


class Case(MountCase):
    """in/main.h5 is mounted; in/sub/other.h5 lies beneath, out.h5 outside."""

    def setUp(self):
        super().setUp()
        os.makedirs(self.file("in/sub"))
        self.path = self.file("in/main.h5")
        for name in ("in/sub/other.h5", "out.h5"):
            with h5py.File(self.file(name), "w") as f:
                f["d"] = [1, 2]
        for name in ("in/beneath.raw", "outside.raw", "secret"):
            with open(self.file(name), "wb") as f:
                f.write(bytes(64))
        os.symlink(self.file("out.h5"), self.file("in/sub/way-out.h5"))
        os.symlink("..", self.file("in/up"))
        with h5py.File(self.path, "w", libver="latest") as f:
            f["d"] = numpy.arange(10_000)
            f.create_dataset("rows", (0,), "<i8", maxshape=(None,), chunks=(8,))
            for i, name in enumerate(self.names()):
                f[f"link {i}"] = h5py.ExternalLink(name, "/d")
                f.create_dataset(f"raw {i}", (8,), "<i8", external=[(name, 0, 64)])
                layout = h5py.VirtualLayout((2,), "<i8")
                # libhdf5 2.2 aborts over a source, of whatever file, that has another number of elements than was said.
                layout[:] = h5py.VirtualSource(name, "d", (10_000 if name == "." else 2,), "<i8")[:2]
                f.create_virtual_dataset(f"virtual {i}", layout)

    def names(self):
        """Other files, as a hostile file may call them."""
        return ["sub/other.h5", "beneath.raw", "../out.h5", self.file("out.h5"), "sub/way-out.h5", "up/out.h5", "sub/../../out.h5",
                "../outside.raw", self.file("outside.raw"), "/etc/passwd", "../../../../../../../../etc/passwd", "/proc/self/mem",
                "/proc/self/root/etc/passwd", "/dev/fuse", "/dev/zero", "/proc/self/fd/0", "//etc//passwd", "."]


@unittest.skipIf("sandbox: none" in SAID, REASON)
class Described(unittest.TestCase):
    def test_parts(self):
        """All that this kernel has, asked here, too; the other tests trust in what is said."""
        CREATE_RULESET, VERSION = 444, 1
        version = ctypes.CDLL(None).syscall(CREATE_RULESET, None, ctypes.c_size_t(0), VERSION)
        landlock = f"Landlock (version {version})" if version > 0 else "no Landlock in this kernel"
        filters = os.path.exists("/proc/sys/kernel/seccomp/actions_avail") and os.uname().machine in ("x86_64", "aarch64", "riscv64")
        self.assertEqual(SAID.splitlines()[-1], f"sandbox: no new privileges, {landlock}, {'seccomp' if filters else 'no seccomp here'}")


@unittest.skipUnless(KEPT, REASON)
class Confined(Case):
    def test_every_thread(self):
        for arguments, options in (((), None), (("-s",), None), ((), "rw"), ((), "external=none"), ((), "external=any")):
            with self.subTest(arguments=arguments, options=options), Mount(self.path, *arguments, options=options) as m:
                walk(m.path)
                self.assertEqual(set(confinement(m.daemon)), {(1, 2)})

    def test_off(self):
        with Mount(self.path, options="sandbox=no") as m:
            walk(m.path)
            self.assertEqual(set(confinement(m.daemon)), {(0, 0)})

    def test_neither(self):
        self.assertEqual(refusal(self.path, options="sandbox=maybe")[0], 2)

    def test_kernels_that_lack_it(self):
        """They give what they have."""
        lacks = {"landlock_create_ruleset:error=EOPNOTSUPP": "no new privileges, no Landlock in this kernel, seccomp",
                 "landlock_create_ruleset:error=ENOSYS": "no new privileges, no Landlock in this kernel, seccomp",
                 "seccomp:error=ENOSYS": ", no seccomp here"}
        for lack, said in lacks.items():
            with self.subTest(lack):
                strace = ["strace", "-f", "-o", self.file("trace"), "-e", f"inject={lack}", H5FS]
                run = subprocess.run([*strace, "-V"], capture_output=True, text=True, check=True)
                self.assertTrue(run.stdout.splitlines()[-1].endswith(said), run.stdout)
                run = subprocess.run([*strace, "--list", self.path], capture_output=True, text=True, check=True)
                self.assertEqual(run.stderr, "")

    def test_the_one_outside_has_nothing(self):
        with Mount(self.path) as m:
            pid, = own_children(m.daemon)
            self.assertEqual([mode for _, mode in confinement(pid)], [0])
            files = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
            self.assertEqual({name for name in files if not name.startswith("socket:")}, {"/dev/null"})


@unittest.skipUnless(KEPT, REASON)
@unittest.skipUnless(available(), "system calls are put into x86-64 processes only, by root")
class Refused(Case):
    """What a daemon that was taken over could do."""

    def check(self, options, expected):
        with Mount(self.path, options=options) as m:
            with Injector(m.daemon) as inside:
                for wanted, name, *arguments in expected:
                    got = inside.call(name, *arguments)
                    if wanted is None:
                        self.assertGreaterEqual(got, 0, (options, name, arguments))
                        if name.startswith("open"):
                            inside.call("close", got)
                    else:
                        self.assertEqual(got, -wanted, (options, name, arguments, os.strerror(-got) if got < 0 else ""))
            self.assertEqual(len(read(m.at("d"))), 80_000)  # it still serves

    def open2(self, name, flags):
        return "openat2", AT_FDCWD, os.fsencode(name), struct.pack("3Q", flags, 0o600 if flags & os.O_CREAT else 0, 0), 24

    def open(self, name, flags=os.O_RDONLY):
        return "openat", AT_FDCWD, os.fsencode(name), flags, 0o600

    def outside(self):
        return ["/etc/passwd", "/proc/self/mem", "/proc/self/environ", "/dev/null", "/dev/fuse", self.file("out.h5"),
                self.file("secret"), self.file("in/sub/way-out.h5"), self.file("in/up/out.h5"), self.file("in/../out.h5"),
                "/proc/self/fd/0"]

    def test_nothing_is_forbidden_without(self):
        """These tests would see it."""
        victim = self.file("victim")
        with open(victim, "w"):
            pass
        self.check("sandbox=no", [(None, *self.open(name)) for name in self.outside()] + [
            (None, "unlinkat", AT_FDCWD, os.fsencode(victim), 0),
            (None, "socket", socket.AF_INET, socket.SOCK_STREAM, 0),
            (None, "kill", os.getpid(), 0),
            (None, "fcntl", 0, fcntl.F_SETOWN, os.getpid()),
            (None, "mmap", 0, 4096, 7, 0x22, -1, 0)])
        self.assertFalse(os.path.exists(victim))

    def test_files(self):
        inside, raw = self.file("in/sub/other.h5"), self.file("in/beneath.raw")
        new, journal = self.file("in/new"), self.path + ".h5fs-journal"
        write = os.O_WRONLY
        no_access = [(errno.EACCES, *self.open(name)) for name in self.outside()] + [
            (errno.EACCES, *self.open2(name, os.O_RDONLY)) for name in self.outside()]
        no_writing = [(errno.EPERM, *self.open(name, write)) for name in (self.path, raw, self.file("secret"))] + [
            (errno.EPERM, *self.open(new, os.O_RDONLY | os.O_CREAT)), (errno.EPERM, *self.open(raw, os.O_RDONLY | os.O_TRUNC)),
            (errno.EACCES, *self.open2(raw, write)), (errno.EACCES, *self.open2(new, write | os.O_CREAT)),
            (errno.ENOSYS, "unlinkat", AT_FDCWD, os.fsencode(raw), 0)]
        no_opening = [(errno.ENOSYS, *how(name, os.O_RDONLY)) for name in (inside, "/etc/passwd") for how in (self.open, self.open2)]
        self.check(None, no_access + no_writing + [(None, *self.open(inside)), (None, *self.open2(inside, os.O_RDONLY)),
                                                   (errno.EACCES, *self.open(self.file("in"), os.O_RDONLY | os.O_DIRECTORY))])
        self.check("external=none", no_opening)
        self.check("external=any", no_writing + [(None, *self.open(name)) for name in (inside, "/etc/passwd", self.file("out.h5"))])
        # The journal is there when the sandbox begins: it is only removed.
        self.check("rw", no_access + [
            (None, *self.open(inside)), (None, *self.open(self.file("in"), os.O_RDONLY | os.O_DIRECTORY)),
            (errno.EACCES, *self.open2(raw, write)), (errno.EACCES, *self.open2(new, write | os.O_CREAT)),
            (errno.EACCES, *self.open2(journal, write)), (errno.EPERM, *self.open(journal, write)),
            (errno.EACCES, "unlinkat", AT_FDCWD, os.fsencode(self.file("secret")), 0),
            (errno.EACCES, *self.open(self.folder, os.O_RDONLY | os.O_DIRECTORY))])
        self.check("rw,external-write", no_access + [
            (None, *self.open(raw, write)), (errno.EACCES, *self.open(new, write | os.O_CREAT)),
            (errno.EACCES, *self.open(self.file("secret"), write))])
        self.check("rw,external=none", [(errno.EACCES, *self.open(name)) for name in [inside, *self.outside()]])
        self.assertEqual(read(self.file("secret")), bytes(64))

    def test_calls(self):
        pid = os.getpid()
        forbidden = [
            ("execve", b"/bin/true", 0, 0), ("fork",), ("vfork",), ("clone3", bytes(64), 64), ("kill", pid, 0), ("ptrace", 16, pid, 0, 0),
            ("mount", b"none", os.fsencode(self.folder), b"tmpfs", 0, 0), ("umount2", os.fsencode(self.folder), 0), ("unshare", 0x10000000),
            ("setns", 0, 0), ("bpf", 0, 0, 0), ("init_module", 0, 0, b""), ("io_uring_setup", 1, bytes(128)), ("setuid", 0),
            ("process_vm_readv", pid, 0, 0, 0, 0, 0), ("process_vm_writev", pid, 0, 0, 0, 0, 0), ("pidfd_open", pid, 0), ("keyctl", 0, 0),
            ("reboot", 0, 0, 0, 0), ("open", b"/etc/passwd", 0), ("creat", os.fsencode(self.file("in/new")), 0o600),
            ("truncate", os.fsencode(self.file("in/beneath.raw")), 0), ("memfd_create", b"x", 0), ("userfaultfd", 0),
            ("perf_event_open", 0, 0, 0, 0, 0), ("bind", 0, 0, 0), ("fchmodat", AT_FDCWD, os.fsencode(self.path), 0o777),
            ("fchownat", AT_FDCWD, os.fsencode(self.path), 0, 0, 0), ("mkdirat", AT_FDCWD, os.fsencode(self.file("in/d")), 0o700),
            ("symlinkat", b"x", AT_FDCWD, os.fsencode(self.file("in/l"))),
            ("linkat", AT_FDCWD, os.fsencode(self.path), AT_FDCWD, os.fsencode(self.file("in/l")), 0),
            ("renameat2", AT_FDCWD, os.fsencode(self.path), AT_FDCWD, os.fsencode(self.file("in/l")), 0),
            # No socket is made or connected; the log is written by the process outside.
            ("socket", socket.AF_INET, socket.SOCK_STREAM, 0), ("socket", socket.AF_UNIX, socket.SOCK_DGRAM, 0),
            ("socketpair", socket.AF_UNIX, socket.SOCK_DGRAM, 0, bytes(8)), ("connect", 0, bytes(110), 110),
            ("sendmsg", 0, bytes(64), 0), ("sendmmsg", 0, bytes(64), 1, 0), ("ioctl", 0, 0x5412, b"x"), ("rt_sigqueueinfo", pid, 10, bytes(128)),
            ("pidfd_send_signal", 0, 10, 0, 0), ("timer_create", 0, bytes(64), bytes(8)), ("tkill", pid, 0), ("prlimit64", pid, 0, 0, 0)]
        CLONE_NEWNS, CLONE_THREAD, F_SETFL, F_NOTIFY, MADV_HWPOISON = 0x20000, 0x10000, 4, 1026, 100
        arguments = [
            # Signals to others by descriptors that they own.
            *(("fcntl", 0, command, value) for command, value in (
                (fcntl.F_SETOWN, pid), (fcntl.F_SETSIG, signal.SIGKILL), (F_SETFL, os.O_ASYNC), (15, bytes(8)), (fcntl.F_SETLEASE, fcntl.F_RDLCK),
                (F_NOTIFY, 1), (fcntl.F_SETLK, bytes(32)))),
            ("sendto", 0, b"x", 1, 0, bytes(110), 110), ("madvise", 0, 4096, MADV_HWPOISON),
            ("clone", CLONE_THREAD | CLONE_NEWNS, 0, 0, 0, 0),
            ("clone", signal.SIGCHLD, 0, 0, 0, 0), ("tgkill", pid, pid, 0), ("mmap", 0, 4096, 7, 0x22, -1, 0), ("mprotect", 0, 4096, 5), ("prctl", 24, 0)]
        for options in (None, "rw,external=any,external-write"):
            self.check(options, [(errno.ENOSYS, *call) for call in forbidden] + [(errno.EPERM, *call) for call in arguments]
                       + [(None, "getpid")])

    def test_arguments_that_are_allowed(self):
        """What the C library and libfuse need of calls that may do harm with others."""
        F_GETPIPE_SZ, MADV_GUARD_INSTALL, MADV_GUARD_REMOVE, PR_SET_NAME, PUNCH, KEEP_SIZE = 1032, 102, 103, 15, 2, 1
        with Mount(self.path, options="rw") as m:
            with Injector(m.daemon) as inside:
                place = inside.call("mmap", 0, 1 << 21, 3, 0x22, -1, 0)
                self.assertGreater(place, 0)
                for advice in 4, 8, 14, 15, 3:  # MADV_DONTNEED, FREE, HUGEPAGE, NOHUGEPAGE, WILLNEED
                    self.assertIn(inside.call("madvise", place, 4096, advice), (0, -errno.EINVAL, -errno.EBADF), advice)
                for advice in MADV_GUARD_INSTALL, MADV_GUARD_REMOVE:  # newer than some kernels
                    self.assertIn(inside.call("madvise", place, 4096, advice), (0, -errno.EINVAL), advice)
                self.assertEqual(inside.call("mprotect", place, 4096, 1), 0)
                for command in fcntl.F_GETFD, fcntl.F_GETFL:
                    self.assertGreaterEqual(inside.call("fcntl", 0, command), 0)
                self.assertEqual(inside.call("fcntl", 0, fcntl.F_SETFD, 0), 0)
                fd = inside.call("fcntl", 0, fcntl.F_DUPFD_CLOEXEC, 50)
                self.assertGreaterEqual(fd, 50)
                self.assertEqual(inside.call("fcntl", fd, F_GETPIPE_SZ), -errno.EBADF)  # it is no pipe
                self.assertEqual(inside.call("close", fd), 0)
                self.assertEqual(inside.call("tgkill", m.daemon, m.daemon, 0), 0)
                self.assertEqual(inside.call("prctl", PR_SET_NAME, b"h5fs"), 0)
                self.assertEqual(inside.call("fallocate", -1, PUNCH | KEEP_SIZE, 0, 1), -errno.EBADF)
                for mode in 0, KEEP_SIZE, 0x10 | KEEP_SIZE:
                    self.assertEqual(inside.call("fallocate", -1, mode, 0, 1), -errno.EPERM)
                self.assertEqual(inside.call("sendto", -1, b"x", 1, 0, 0, 0), -errno.EBADF)
                self.assertEqual(inside.call("seccomp", 1, 0, 0), -errno.ENOSYS)
                self.assertEqual(inside.call("io_uring_enter", -1, 0, 0, 0, 0, 0), -errno.ENOSYS)


class Opened(Case):
    """By strace, so with whatever sandbox there is."""

    def opened(self, file, options, allowed):
        with Mount(file, options=options) as m:
            with Strace(m.daemon, self.file("trace"), "-y", "-z", "-e",
                        "trace=open,openat,openat2,creat,execve,connect,unlinkat,mkdirat,renameat2") as trace:
                walk(m.path)
        text = trace.text()
        self.assertNotRegex(text, r"(execve|connect|unlinkat|mkdirat|renameat2|creat)\(")
        # With -y, 5</path> is what the descriptor is of.
        found = [os.fsdecode(path.encode("latin-1").decode("unicode_escape").encode("latin-1"))
                 for path in re.findall(r"\)\s+= \d+<(.*)>$", text, re.M)]
        for path in found:
            self.assertTrue(allowed(path), f"{file} -o {options}: {path} was opened")
        self.assertEqual(len(found), len(re.findall(r"^\d+ .*open", text, re.M)) - len(re.findall("unfinished", text)), text)
        return set(found)

    def test_hostile_names(self):
        folder = os.path.realpath(self.file("in"))

        def beneath(path):
            return path == folder or path.startswith(folder + "/")

        # The rule holds without the sandbox too.
        for sandbox in ("sandbox=yes", "sandbox=no"):
            self.assertEqual(self.opened(self.path, f"external=none,{sandbox}", lambda _: False), set())
            # The name `.` opens the folder where Landlock does not forbid it; it is no file.
            self.assertEqual(self.opened(self.path, sandbox, beneath) - {folder},
                             {self.file("in/sub/other.h5"), self.file("in/beneath.raw")})
        # Here they are found: with this rule, the test sees what it should not with others.
        self.assertLessEqual({"/etc/passwd", self.file("out.h5"), self.file("outside.raw")},
                             self.opened(self.path, "external=any", lambda _: True))

    @unittest.skipUnless(KEPT, REASON)
    def test_commands_without_a_mount(self):
        """They are confined, too, once the file is open."""
        for command, *target in ("--check",), ("--list",), ("--extract", self.file("copy")):
            subprocess.run(["strace", "-f", "-y", "-z", "-o", self.file("trace"), "-e", "trace=open,openat,openat2,seccomp", H5FS,
                            command, self.path, *target], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            text = read(self.file("trace")).decode()
            self.assertIn("seccomp(SECCOMP_SET_MODE_FILTER", text)
            after = text.partition("seccomp(SECCOMP_SET_MODE_FILTER")[2]
            for path in re.findall(r"\)\s+= \d+<(.*)>$", after, re.M):
                self.assertTrue(path.startswith((self.file("in/"), self.file("copy"))), path)
        self.assertGreater(len(os.listdir(self.file("copy"))), 0)

    @unittest.skipUnless(CORPUS, "H5FS_CONFORMANCE names no folder")
    def test_corpus(self):
        """Files of others that name files, as the truth about them says."""
        kinds = ('"kind":"external"', '"layout":"external"', '"layout":"virtual"')
        truth, corpus, files = os.path.join(CORPUS, "truth"), os.path.join(CORPUS, "corpus"), []
        for folder, _, names in os.walk(truth):
            for name in names:
                text = read(os.path.join(folder, name)).decode(errors="replace")
                path = os.path.join(corpus, os.path.relpath(os.path.join(folder, name.removesuffix(".json")), truth))
                if any(kind in text for kind in kinds) and os.path.exists(path):
                    files.append(path)
        if not files:
            self.skipTest(f"{CORPUS} has no such file")
        seen = set()
        for path in sorted(files):
            folder = os.path.realpath(os.path.dirname(path))
            with self.subTest(path):
                seen |= self.opened(path, None, lambda opened, folder=folder: opened.startswith(folder + "/"))
        self.assertGreater(len(seen), 10)


@unittest.skipUnless(KEPT, REASON)
class Rules(Case):
    """What Landlock is told, seen by strace: rights in hexadecimal, as the kernel's headers have them, and the folders."""
    READ, LIST, WRITE_EXTERNAL, JOURNAL, CHANGE, MAKE = 0x4, 0x8, 0x6, 0x28, 0x412e, 0x71aa

    def strace(self, *more):
        return ["strace", "-f", "-qq", "-y", "-X", "raw", "-o", self.file("trace"), "-e", "trace=/^landlock_", *more]

    def rules(self):
        """What is handled of files, the size of that, and what is allowed where; None: nothing is entered."""
        text = read(self.file("trace")).decode()
        made = re.findall(r"landlock_create_ruleset\(\{handled_access_fs=(\w+)[^}]*\}, (\d+), 0\) = \d", text)
        rules = {(int(access, 16), place) for access, place in re.findall(r"allowed_access=(\w+), parent_fd=\d+<(.*?)>\}, 0\) = 0", text)}
        if not made:
            return None
        self.assertEqual((len(made), len(re.findall(r"landlock_restrict_self\(.*, 0\) += 0", text))), (1, 1), text)
        self.assertEqual(len(re.findall("add_rule", text)), len(rules), text)
        return int(made[0][0], 16), int(made[0][1]), rules

    def of_mount(self, path, options):
        with Mount(path, *self.strace(H5FS, "-f")[1:], program="strace", options=options):
            pass
        return self.rules()[2]

    def test_versions(self):
        """Each version forbids more. The first one has no right for hard links between directories, which --extract needs."""
        files = {1: 0x1fff, 2: 0x3fff, 3: 0x7fff, 4: 0x7fff, 5: 0xffff, 6: 0xffff, 7: 0xffff}
        newest = int(re.search(r"Landlock \(version (\d+)\)", SAID)[1])
        for version in range(min(newest, 7) + 1):
            fault = f"inject=landlock_create_ruleset:retval={version}:when=1..2"
            size, beneath = 8 if version < 4 else 16 if version < 6 else 24, os.path.realpath(self.file("in"))
            run = subprocess.run(self.strace("-e", fault, H5FS, "--list", self.path), capture_output=True, text=True, check=True)
            self.assertEqual((run.stderr, self.rules()), ("", version and (files[version], size, {(self.READ, beneath)}) or None), version)
            run = subprocess.run(self.strace("-e", fault, H5FS, "--extract", self.path, "/d", self.file(f"new{version}")), capture_output=True, text=True, check=True)
            self.assertEqual((run.stderr, self.rules()), ("", None if version < 2 else (
                files[version], size, {(self.READ, beneath), (self.MAKE & files[version], self.file(f"new{version}"))})), version)

    def test_mounts(self):
        beneath, journals, folder = os.path.realpath(self.file("in")), self.file("journals"), self.file("folder")
        os.mkdir(journals)
        os.mkdir(folder)
        journal = {(self.READ, beneath), (self.JOURNAL, beneath)}
        with h5py.File(os.path.join(beneath, "family%d.h5"), "w", driver="family", memb_size=1 << 20) as f:
            f["d"] = 1
        os.rename(self.path, os.path.join(folder, "x.h5"))
        shutil.copy(os.path.join(folder, "x.h5"), self.path)
        for path, options, expected in (
                (self.path, "ro", {(self.READ, beneath)}), (self.path, "external=none", set()), (self.path, "external=any", {(self.READ, "/")}),
                (self.path, "rw", journal), (self.path, f"rw,journal={journals}", journal | {(self.JOURNAL, journals)}),
                (self.path, "rw,external=none", {(self.JOURNAL, beneath)}), (self.path, "rw,external-write", journal | {(self.WRITE_EXTERNAL, beneath)}),
                (self.path, "rw,external-write,external=any", {(self.READ, "/"), (self.WRITE_EXTERNAL, "/"), (self.JOURNAL, beneath)}),
                (os.path.join(beneath, "family0.h5"), "rw", journal | {(self.CHANGE, beneath)}), (os.path.join(beneath, "family0.h5"), "ro", {(self.READ, beneath)}),
                (folder, "ro", {(self.READ, folder), (self.LIST, folder)}), (folder, "external=any", {(self.READ, "/"), (self.LIST, folder)}),
                (folder, "rw", {(self.READ, folder), (self.LIST, folder), (self.CHANGE, folder)}),
                (folder, "rw,external=any,external-write", {(self.READ, "/"), (self.LIST, folder), (self.CHANGE, folder), (self.WRITE_EXTERNAL, "/")})):
            with self.subTest(path=path, options=options):
                self.assertEqual(self.of_mount(path, options), expected)

    def test_fetcher(self):
        """It reads what names and certificates need, and what the user has named; it writes the disk cache."""
        if "libcurl none" in SAID:
            self.skipTest("no libcurl")
        home, cache, certificates = self.file("home"), self.file("cache"), self.file("certificates")
        os.mkdir(home)
        os.mkdir(cache, 0o700)
        for name in certificates, os.path.join(home, ".netrc"):
            with open(name, "w"):
                pass
        expected = {(self.READ | (self.LIST if os.path.isdir(name) else 0), os.path.realpath(name))
                    for name in ("/etc", "/usr", "/lib", "/lib64", "/run", "/dev/null", "/dev/urandom") if os.path.exists(name)}
        for netrc in True, False:
            subprocess.run(self.strace(H5FS, "--list", "-o", f"remote_tries=1,disk_cache={cache}", "http://127.0.0.1:1/x.h5"), check=False, stderr=subprocess.DEVNULL,
                           env={"PATH": os.environ["PATH"], "CURL_CA_BUNDLE": certificates, "HOME": home if netrc else self.file("no home")})
            more = {(self.CHANGE, cache), (self.READ, certificates)} | ({(self.READ, os.path.join(home, ".netrc"))} if netrc else set())
            self.assertEqual(self.rules()[2], expected | more)

    def test_what_the_kernel_does_not_grant(self):
        """It is told, and the rest is done."""
        os.mkdir(self.file("journals"))
        for fault, said in (("landlock_restrict_self:error=EPERM", "Landlock: Operation not permitted"),
                            ("landlock_create_ruleset:error=EMFILE:when=3", "Landlock: Too many open files"), ("prctl:error=EINVAL:when=1", "no new privileges: Invalid argument"), *(
                                (f"landlock_add_rule:error=EBADF:when={i}", "Landlock: Bad file descriptor") for i in range(1, 5))):
            with self.subTest(fault):
                with Mount(self.path, "-f", "-qq", "-o", self.file("trace"), "-e", f"trace={fault.partition(':')[0]}", "-e", f"inject={fault}", H5FS, "-f",
                           program="strace", options=f"rw,external-write,journal={self.file('journals')}") as m:
                    self.assertEqual(len(read(m.at("d"))), 80_000)
                    self.assertEqual(m.said(), f"h5fs: sandbox: {said}\n")
                self.assertIn(b"(INJECTED)", read(self.file("trace")))


class Works(Case):
    """What needs a right that the sandbox leaves."""

    def test_other_files(self):
        two = struct.pack("<2q", 1, 2)
        with Mount(self.path) as m:
            self.assertEqual([read(m.at(f"{kind} 0")) for kind in ("link", "virtual")], [two, two])
            self.assertEqual(read(m.at("raw 1")), bytes(64))
        with Mount(self.path, options="external=any") as m:
            self.assertEqual([read(m.at(f"{kind} {i}")) for kind in ("link", "virtual") for i in (0, 2, 3, 4, 5, 6)], [two] * 12)

    def test_writing(self):
        os.mkdir(self.file("journals"))
        for options in ("rw", f"rw,journal={self.file('journals')}", "rw,external=none", "rw,external=any", "rw,swmr"):
            for end in (Mount.unmount, lambda m: os.kill(m.daemon, signal.SIGTERM)):
                with self.subTest(options=options), Mount(self.path, options=options) as m:
                    before = os.stat(m.at("rows")).st_size
                    with open(m.at("rows"), "ab") as f:
                        f.write(struct.pack("<3q", 1, 2, 3))
                    self.assertEqual(os.stat(m.at("rows")).st_size, before + 24)
                    end(m)
                    self.assertEqual(m.wait(), 0)
                self.assertEqual(os.listdir(self.file("journals")), [])
                self.assertEqual(sorted(os.listdir(self.file("in"))), ["beneath.raw", "main.h5", "sub", "up"])
        # Newer versions of libhdf5 refuse the virtual datasets whose sources are no HDF5 files.
        with h5py.File(self.path) as f:
            self.assertEqual(f["rows"][:].tolist(), [1, 2, 3] * 10)

    def test_external_raw_files(self):
        for options, number in (("rw,external-write", 1), ("rw,external-write,external=any", 7)):
            with self.subTest(options=options), Mount(self.path, options=options) as m:
                with open(m.at(f"raw {number}"), "r+b") as f:
                    f.write(b"written")
        for name in ("in/beneath.raw", "outside.raw"):
            self.assertEqual(read(self.file(name))[:8], b"written\0")

    @unittest.skipIf(os.geteuid() or os.path.lexists("/dev/log"), "a system log of one's own takes root, and that there is none")
    def test_system_log(self):
        """Also when it comes late, and again."""
        path = self.file("damaged.h5")
        with h5py.File(path, "w") as f:
            for name in "abc":
                f.create_group(name)["x"] = 1
            places = [h5py.h5o.get_info(f[name].id).addr for name in "abc"]
        with open(path, "r+b") as f:
            for place in places:
                f.seek(place)
                f.write(b"\xff")
        with Mount(path) as m:
            for name in "abc":
                with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
                    log.settimeout(60)
                    log.bind("/dev/log")
                    try:
                        self.assertErrno(errno.EUCLEAN, os.listdir, m.at(name))
                        line = ""
                        while f"h5fs[{m.daemon}]" not in line:  # other mounts of the machine may write, too
                            line = log.recv(2000).decode()
                        self.assertRegex(line, r" at address \d+")
                    finally:
                        os.unlink("/dev/log")


if __name__ == "__main__":
    main()
