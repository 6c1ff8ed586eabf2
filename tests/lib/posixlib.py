"""What tests of the calls that POSIX has about files share: calls that Python lacks, and a case whose facts are asked in a plain folder
and in mounts of files of several styles."""
import contextlib
import ctypes
import errno
import os
import stat
import struct
import subprocess
import tempfile
import time

import h5py

import judges
from mountlib import H5FS, Mount, MountCase, write

STYLES = {"earliest": dict(libver="earliest"), "latest": dict(libver="latest", track_order=True), "create": None}

NOREPLACE, EXCHANGE = 1, 2  # of renameat2(2)
KEEP_SIZE, PUNCH_HOLE = 1, 2  # of fallocate(2)
AT_FDCWD, AT_SYMLINK_FOLLOW, AT_EMPTY_PATH = -100, 0x400, 0x1000
NAME_MAX, PATH_MAX = 255, 4096
BAD_ADDRESS = ctypes.c_void_p(-4096)
CLOCK_REALTIME_COARSE = 5  # what file systems stamp with

libc = ctypes.CDLL(None, use_errno=True)
libc.opendir.restype = libc.readdir64.restype = ctypes.c_void_p
libc.telldir.restype = ctypes.c_long


def call(name, *arguments):
    """A function of the C library; OSError if it returns -1."""
    rc = getattr(libc, name)(*(os.fsencode(a) if isinstance(a, str) else a for a in arguments))
    if rc == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
    return rc


def rename_how(old, new, flags):
    call("renameat2", AT_FDCWD, old, AT_FDCWD, new, flags)


def fallocate(fd, mode, offset, size):
    call("fallocate64", fd, mode, ctypes.c_int64(offset), ctypes.c_int64(size))


class Stream:
    """An open directory, entry by entry."""

    def __init__(self, path):
        self.stream = ctypes.c_void_p(libc.opendir(os.fsencode(path)))
        if not self.stream:
            raise OSError(ctypes.get_errno(), path)

    def read(self):
        """Number, type and name of the next entry; None at the end."""
        entry = libc.readdir64(self.stream)
        if not entry:
            return None
        number, _, _, letter = struct.unpack("=QqHB", ctypes.string_at(entry, 19))
        return number, letter, os.fsdecode(ctypes.string_at(entry + 19))

    def rest(self):
        return list(iter(self.read, None))

    def tell(self):
        return libc.telldir(self.stream)

    def seek(self, place):
        libc.seekdir(self.stream, ctypes.c_long(place))

    def rewind(self):
        libc.rewinddir(self.stream)

    def close(self):
        libc.closedir(self.stream)


def tick():
    """Returns when file systems stamp with a later time than before."""
    before = time.clock_gettime_ns(CLOCK_REALTIME_COARSE)
    while time.clock_gettime_ns(CLOCK_REALTIME_COARSE) == before:
        pass


def kind(path):
    """The letter that `ls -l` has for what stands under a name; None: nothing."""
    with contextlib.suppress(FileNotFoundError):
        return stat.filemode(os.lstat(path).st_mode)[0]
    return None


def make(letter, path):
    """Makes a directory, a symlink or a file."""
    if letter == "d":
        os.mkdir(path)
    elif letter == "l":
        os.symlink("nowhere", path)
    else:
        with open(path, "xb") as f:
            f.write(b"contents")


def remove(path):
    (os.rmdir if kind(path) == "d" else os.unlink)(path)


class Facts(MountCase):
    """Each method fact_...() is asked in an empty folder, which is the working directory (`self.here`)."""
    mounted = False  # what doc/h5fs.1 says otherwise holds then

    def setUp(self):
        super().setUp()
        start = os.open(".", os.O_RDONLY)
        self.addCleanup(os.close, start)
        self.addCleanup(os.fchdir, start)

    def assertError(self, number, function, *arguments):
        """`number`: an errno, or several that POSIX allows; 0: none."""
        got = 0
        try:
            function(*arguments)
        except OSError as failed:
            got = failed.errno
        numbers = number if isinstance(number, tuple) else (number,)
        said = f"{errno.errorcode.get(got)} is not of {[errno.errorcode.get(n) for n in numbers]}: {arguments}"
        self.assertIn(got, numbers, said)

    def assertStamped(self, action, changed=(), ctime=(), kept=()):
        """The action changes both times of some names, of others only the ctime, of others none. A name that
        the action changes is a pair."""
        how = {path: letters for letters, paths in (("mc", changed), ("c", ctime), ("", kept)) for path in paths}
        paths = {path: path if isinstance(path, tuple) else (path, path) for path in how}
        before = {path: os.lstat(old) for path, (old, _) in paths.items()}
        tick()
        result = action()
        for path, (_, new) in paths.items():
            now = os.lstat(new)
            for letter, field in ("m", "st_mtime_ns"), ("c", "st_ctime_ns"):
                check = self.assertGreater if letter in how[path] else self.assertEqual
                check(getattr(now, field), getattr(before[path], field), f"{field} of {path}")
        return result

    def close_all(self, root):
        """The descriptors that a fact has left open."""
        for fd in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/self/fd/{fd}").startswith(root):
                    os.close(int(fd))

    def facts(self):
        return [name for name in dir(self) if name.startswith("fact_")]

    def ask(self, root, elsewhere):
        """`elsewhere`: a folder of another file system."""
        self.elsewhere = elsewhere
        write(os.path.join(elsewhere, "there"), b"")
        for name in self.facts():
            self.here = os.path.join(root, name)
            if not os.path.isdir(self.here):
                os.mkdir(self.here)
            os.chdir(self.here)
            with self.subTest(name, mounted=self.mounted):
                getattr(self, name)()
            os.chdir(root)
            self.close_all(root)
            subprocess.run(["rm", "-rf", name], check=True)
            self.assertIsNone(kind(name), name)
        os.chdir("/")

    def ask_plain_folder(self):
        os.mkdir(self.file("plain"))
        with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
            self.ask(self.file("plain"), elsewhere)

    def ask_mount(self, style):
        self.mounted = True
        path, how = self.file(f"{style}.h5"), STYLES[style]
        if how:
            with h5py.File(path, "w", **how) as f:
                f["kept"] = b"kept"
                for name in self.facts():
                    f.create_group(name)
        kept = ["kept"] if how else []
        os.mkdir(self.file(style))
        with Mount(path, options="rw" if how else "create") as m:
            self.ask(m.path, self.file(style))
            self.assertEqual(os.listdir(m.path), kept)
        with judges.File(path) as f:
            self.assertEqual(list(f), kept)
        checked = subprocess.run([H5FS, "--check", path], capture_output=True, text=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout)
