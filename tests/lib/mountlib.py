"""What the whole-mount tests share: a mount as a context manager, and a test case with a temp folder of its own.

A mounted h5fs is a daemon, whose exit status only its parent learns. So this process makes itself the reaper of
the processes below it: when the command that was started has exited, the daemon becomes its child."""
import atexit
import contextlib
import ctypes
import glob
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

import numpy

import judges

H5FS = os.environ.get("H5FS", "src/h5fs")
READY_SECONDS = 60  # until the command returns
MOUNT_SECONDS = 240  # a mount that lasts longer is stuck: its daemon is killed, so that no test can hang
EXIT_SECONDS = 60
PR_SET_CHILD_SUBREAPER = 36

# Lines "PID SECONDS": kill it then, or "PID": no more. It goes on when the test has ended, but not for nothing.
WATCHDOG = """
import os, select, time
ends, asked = {}, b""
while asked is not None or ends:
    left = max(0, min(ends.values()) - time.monotonic()) if ends else None
    if select.select([] if asked is None else [0], [], [], left)[0]:
        said = os.read(0, 4096)
        *lines, asked = (asked + said).split(b"\\n") if said else [None]
        for pid, *seconds in map(bytes.split, lines):
            ends.pop(pid, None)
            if seconds:
                ends[pid] = time.monotonic() + float(seconds[0])
    for pid in [pid for pid, end in ends.items() if end <= time.monotonic()]:
        del ends[pid]
        os.kill(int(pid), 9)
"""


def of_threads(pid, name):
    """What the file of that name says of each thread of a process; one that ends meanwhile is left out."""
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/{name}"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(path) as f:
            found.append(f.read())
    return found


def own_children(pid="self"):
    """Process ids of the children of all threads of this process, but for the watchdog, or of another one."""
    return {int(child) for text in of_threads(pid, "children") for child in text.split()} - {watchdog.pid}


def mounted(path):
    """Whether a file system is mounted at path."""
    path = os.path.realpath(path).replace(" ", "\\040")
    with open("/proc/self/mountinfo") as f:
        return any(line.split()[4] == path for line in f)


class Watchdog:
    """A process, one for all mounts of a test program, that kills daemons which are stuck."""

    def __init__(self):
        self.process = self.pid = None

    def tell(self, *what):
        if not self.process:
            self.process = subprocess.Popen([sys.executable, "-S", "-c", WATCHDOG], stdin=subprocess.PIPE)
            self.pid = self.process.pid
            atexit.register(self.process.communicate)
        os.write(self.process.stdin.fileno(), (" ".join(map(str, what)) + "\n").encode())


watchdog = Watchdog()


def reap(pid, seconds):
    """The exit status of a child (negative: the signal that ended it), None where it is still there after that time."""
    fd = os.pidfd_open(pid)
    try:
        if not select.select([fd], [], [], seconds)[0]:
            return None
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        os.close(fd)


class MountFailed(Exception):
    def __init__(self, status, said):
        super().__init__(f"h5fs exit status {status}: {said.strip()}")
        self.status = status
        self.said = said


class Mount:
    """`with Mount(file) as m:` mounts; `m.path` is the mount point, `m.at("a", "b")` a path below it.

    Leaving the block unmounts with fusermount3 and raises AssertionError unless the daemon exits with 0 and without
    a sanitizer's report. A refused mount raises MountFailed. With the argument "-f", `m.said()` is also what the
    daemon logs."""

    def __init__(self, file, *arguments, options=None, env=None, point=None, program=H5FS, folder=None, named=True):
        """point: the mount point, which h5fs may make. named: the command names it. folder: where it is started."""
        self.command = [program, *arguments] + (["-o", options] if options else [])
        self.cwd = folder
        self.named = named
        self.file = file
        self.env = dict(os.environ, **(env or {}))
        self.point = point
        self.daemon = self.status = self.watched = None
        self.opened = []

    def at(self, *parts):
        return os.path.join(self.path, *parts)

    def open(self, name, flags):
        """A descriptor that does not outlive the mount."""
        self.opened.append(os.open(self.at(name), flags))
        return self.opened[-1]

    def close_all(self):
        """What self.open() has opened and the test has not closed."""
        for fd in set(self.opened):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/self/fd/{fd}").startswith(self.path):
                    os.close(fd)

    def said(self):
        """All that the command and its daemon have written to stdout and stderr."""
        with open(self.log, errors="replace") as f:
            return f.read()

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="h5fs-mount-")
        self.log = os.path.join(self.folder, "log")
        self.path = self.point or os.path.join(self.folder, "mnt")
        if not self.point:
            os.mkdir(self.path)
        # The daemon has no standard error. (UndefinedBehaviorSanitizer knows no log_path: its exit status must do.)
        for name in "ASAN_OPTIONS", "TSAN_OPTIONS":
            self.env[name] = ":".join(filter(None, (self.env.get(name), f"log_path={self.folder}/sanitizer")))
        try:
            self.start()
        except BaseException:
            self.end()
            raise
        return self

    def start(self):
        before = own_children()
        with open(self.log, "wb") as log:
            run = subprocess.Popen([*self.command, self.file, *([self.path] if self.named else [])],
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env, cwd=self.cwd)
        status = self.wait_for_mount(run) if "-f" in self.command else self.wait_for_command(run)
        daemons = own_children() - before
        if len(daemons) == 1:
            self.daemon = daemons.pop()
            self.watched = self.daemon
            watchdog.tell(self.watched, MOUNT_SECONDS)
        reports = self.sanitizer_reports()
        if reports:
            raise AssertionError(reports)
        if status:
            raise MountFailed(status, self.said())
        if self.daemon is None:
            raise AssertionError(f"the command exited with 0 and left {len(daemons)} processes: {self.said()}")

    @staticmethod
    def wait_for_command(run):
        try:
            return run.wait(READY_SECONDS)
        except subprocess.TimeoutExpired:
            run.kill()
            return run.wait()

    def wait_for_mount(self, run):
        """The daemon itself, in the foreground."""
        end = time.monotonic() + READY_SECONDS
        while not mounted(self.path):
            if run.poll() is not None:
                return run.returncode or "nothing was mounted"
            if time.monotonic() > end:
                run.kill()
                return run.wait()
            time.sleep(0.01)
        run.returncode = 0  # who reaps it is self.wait()
        return 0

    def kill(self):
        """Ends the daemon as a crash would. The process that it leaves behind, which is ours then, unmounts."""
        unmounters = own_children(self.daemon)
        os.kill(self.daemon, signal.SIGKILL)
        if self.wait() != -signal.SIGKILL:
            raise AssertionError(f"the daemon had ended with {self.status}")
        self.status = 0
        for pid in unmounters:
            if reap(pid, EXIT_SECONDS) != 0:
                raise AssertionError("what should unmount has failed")
        if mounted(self.path):
            raise AssertionError("the mount of a dead daemon is still there")

    def unmount(self):
        subprocess.run(["fusermount3", "-u", self.path], check=True)

    def wait(self):
        """The exit status of the daemon, which somebody else must end."""
        self.status = reap(self.daemon, EXIT_SECONDS)
        if self.status is None:
            raise AssertionError(f"the daemon is still there {EXIT_SECONDS} s after it should have ended")
        self.daemon = None
        return self.status

    def sanitizer_reports(self):
        text = ""
        for name in glob.glob(os.path.join(self.folder, "sanitizer.*")):
            with open(name, errors="replace") as f:
                text += f.read()
        return text

    def end(self):
        """Leaves nothing behind, whatever has happened; what was wrong with the daemon, "" for nothing."""
        self.close_all()
        if mounted(self.path):
            subprocess.run(["fusermount3", "-uz", self.path], check=False)
        if self.daemon is not None:
            self.status = reap(self.daemon, EXIT_SECONDS)
            if self.status is None:
                os.kill(self.daemon, signal.SIGKILL)
                os.waitpid(self.daemon, 0)
                self.status = f"no answer {EXIT_SECONDS} s after the unmount"
        if self.watched:
            watchdog.tell(self.watched)
        wrong = self.sanitizer_reports()
        if self.status:
            wrong += f"the daemon ended with {self.status}; h5fs -f may tell more. It said: {self.said()!r}"
        shutil.rmtree(self.folder)
        return wrong

    def __exit__(self, kind, *_):
        self.close_all()
        try:
            if kind is None and mounted(self.path):
                self.unmount()
        finally:
            wrong = self.end()
        if wrong:
            raise AssertionError(wrong)


class Strace:
    """`with Strace(pid, log, argument...) as s:` what the process and its threads ask of the kernel inside the block, by
    strace: `s.text()` afterwards."""

    def __init__(self, pid, log, *arguments):
        self.command = ["strace", "-f", "-p", str(pid), "-o", log, *arguments]
        self.log = log

    def __enter__(self):
        self.strace = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True)
        line = self.strace.stderr.readline()
        if "attached" not in line:
            raise AssertionError(f"strace: {line}")
        return self

    def __exit__(self, *_):
        self.strace.send_signal(signal.SIGINT)
        self.strace.communicate()

    def text(self):
        with open(self.log, errors="surrogateescape") as f:
            return f.read()


def refusal(file, *arguments, point=None, **options):
    """Exit status and message of a mount that must not come about."""
    try:
        with Mount(file, *arguments, point=point, **options):
            pass
    except MountFailed as failed:
        return failed.status, failed.said
    raise AssertionError(f"{file} was mounted")


class MountCase(unittest.TestCase):
    """A test with a temp folder: self.file("x.h5") is a path in it."""
    maxDiff = 4000

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="h5fs-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def file(self, *names):
        return os.path.join(self.folder, *names)

    def disk(self, kind="tmpfs", options="size=1M"):
        """A folder with a small file system of its own, until the test ends."""
        if os.geteuid():
            self.skipTest("only root mounts file systems")
        path = self.file("disk")
        os.mkdir(path)
        subprocess.run(["mount", "-t", kind, "-o", options, "none", path], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", path], check=True)
        return path

    def let_all_mount(self):
        """/dev/fuse is as udev would have made it, until the test ends."""
        if os.stat("/dev/fuse").st_mode & 0o006 != 0o006:
            os.mknod(self.file("fuse"), stat.S_IFCHR | 0o666, os.stat("/dev/fuse").st_rdev)
            os.chmod(self.file("fuse"), 0o666)
            subprocess.run(["mount", "--bind", self.file("fuse"), "/dev/fuse"], check=True)
            self.addCleanup(subprocess.run, ["umount", "-l", "/dev/fuse"], check=True)

    def assertErrno(self, number, function, *arguments):
        with self.assertRaises(OSError) as caught:
            function(*arguments)
        self.assertEqual(os.strerror(caught.exception.errno), os.strerror(number))


class WriteCase(MountCase):
    """What the tests of writing share: judging a file when its mount has ended."""

    def assertStored(self, path, **expected):
        """Each libhdf5 that judges, h5dump, and a new mount find these arrays.
        A journal that a killed mount has left is gone after the next one for writing."""
        with judges.File(path) as f:
            for name, array in expected.items():
                numpy.testing.assert_array_equal(f[name][...], array, name)
        for name, array in expected.items():
            if numpy.size(array):
                self.assertEqual(self.dump(path, name), numpy.asarray(array).tobytes(), name)
        with Mount(path) as m:
            for name, array in expected.items():
                self.assertEqual(read(m.at(name)), numpy.asarray(array).tobytes(), name)
        if glob.glob(path + ".h5fs-journal*"):
            with Mount(path, options="rw"):
                pass
            self.assertEqual(glob.glob(path + ".h5fs-journal*"), [])

    def dump(self, path, name):
        """The bytes of a dataset as h5dump stores them."""
        out = self.file("dump.bin")
        run = subprocess.run(["h5dump", "-d", name, "-b", "FILE", "-o", out, path], capture_output=True, text=True,
                             check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        data = read(out)
        os.unlink(out)
        return data

    def shell(self, script, *arguments, shell="bash"):
        """Runs a script, with $1, $2, ... as arguments; it must succeed."""
        run = subprocess.run([shell, "-euc", script, shell, *arguments], capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""), script)
        return run.stdout


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def patch(path, old, new, count=1):
    """Replaces bytes of a file by as many others; `old` must stand there exactly `count` times."""
    data = read(path)
    if len(old) != len(new) or data.count(old) != count:
        raise ValueError(f"{old!r} stands {data.count(old)} times in {path}, not {count}")
    write(path, data.replace(old, new))


def tree(top):
    """All that the mount shows: names, contents, attributes."""
    found = {}
    for folder, _, files in os.walk(top):
        for path in [folder] + [os.path.join(folder, name) for name in files]:
            attributes = {name: os.getxattr(path, name) for name in os.listxattr(path)}
            found[os.path.relpath(path, top)] = attributes, None if os.path.isdir(path) else read(path)
    return found


def lookup3(data, initial=0):
    """Bob Jenkins' lookup3; with the initial value 0 the checksum of the format's metadata."""
    mask = 0xffffffff

    def rot(x, k):
        return (x << k | x >> 32 - k) & mask

    a = b = c = 0xdeadbeef + len(data) + initial & mask
    at = 0
    while len(data) - at > 12:
        a, b, c = (x + int.from_bytes(data[at + 4 * i:at + 4 * i + 4], "little") & mask for i, x in enumerate((a, b, c)))
        for k in (4, 6, 8, 16, 19, 4):
            a = (a - c & mask) ^ rot(c, k)
            c = c + b & mask
            a, b, c = b, c, a
        at += 12
    if at == len(data):
        return c
    tail = data[at:].ljust(12, b"\0")
    a, b, c = (x + int.from_bytes(tail[4 * i:4 * i + 4], "little") & mask for i, x in enumerate((a, b, c)))
    for k in (14, 11, 25, 16, 4, 14, 24):
        c = (c ^ b) - rot(b, k) & mask
        a, b, c = b, c, a
    return b


class Result(unittest.TextTestResult):
    """Remembers which tests failed, a test with several failing parts once."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.failed = set()

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.failed.add(test.id())

    def addError(self, test, err):
        super().addError(test, err)
        self.failed.add(test.id())

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.failed.add(test.id())


def become_reaper():
    """To be called once, before the first mount."""
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError("PR_SET_CHILD_SUBREAPER failed")
    # Both unwind the mounts; and the daemon shall not inherit an ignored SIGINT from a shell's background job.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    signal.signal(signal.SIGINT, signal.default_int_handler)


def main():
    """Runs the tests of the calling program; the last line has the form of libcheck's."""
    become_reaper()
    if not os.path.exists("/dev/fuse"):
        print("there is no /dev/fuse", file=sys.stderr)
        sys.exit(1)
    runner = unittest.TextTestRunner(sys.stderr, verbosity=2, resultclass=Result)
    program = unittest.main("__main__", testRunner=runner, exit=False)
    result = program.result
    failed, skipped = len(result.failed), len(result.skipped)
    # If a class is skipped as a whole, none of its tests has begun.
    checks = result.testsRun - sum(isinstance(test, unittest.TestCase) for test, _ in result.skipped)
    print(f"{100 * (checks - failed) // max(1, checks)}%: Checks: {checks}, Failures: {failed}, Errors: 0, Skipped: {skipped}")
    sys.exit(77 if skipped and not checks else bool(failed) or not checks)
