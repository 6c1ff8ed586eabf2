"""Changes that several processes make to the same names of a mounted file at once: no model can say what is there then, but
each call ends as POSIX allows, and no row that was appended is lost."""
import errno
import os
import struct

from tree_calls import EXCHANGE, NOREPLACE, fsync, punch, rename
from tree_model import named
from tree_steps import Wrong

FOLDERS = "", "a", "a/b", "c"
NAMES = [f"n{i}" for i in range(6)] + ["a", "b", "c"]
NO_WAY = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}


class Racer:
    """number: of the process; log: the path of a dataset of rows of two u4 that all append to."""
    KINDS = ("mkdir", "mkdir", "rmdir", "make", "make", "write", "append", "cut", "unlink", "rename", "rename", "rename", "exchange",
             "link", "symlink", "set_attribute", "remove_attribute", "convert", "punch", "look", "list", "log", "log", "sync")

    def __init__(self, number, dice, folder, log):
        self.number, self.dice, self.folder, self.log_path = number, dice, folder, log
        self.rows = 0

    def a_path(self):
        return os.path.join(self.folder, self.dice.choice(FOLDERS), self.dice.choice(NAMES))

    def play(self, steps):
        for _ in range(steps):
            self.step(self.dice.choice(self.KINDS))

    def step(self, kind):
        allowed = getattr(self, kind)
        path = self.a_path()
        try:
            allowed(path)
        except OSError as e:
            if e.errno not in NO_WAY | ERRNOS.get(kind, set()):
                raise Wrong(f"process {self.number}: {kind} {path}: {named(e.errno)}") from e

    # ---- operations ----

    def mkdir(self, path):
        os.mkdir(path)

    def rmdir(self, path):
        os.rmdir(path)

    def make(self, path):
        fd = os.open(path, os.O_CREAT | os.O_RDWR | self.dice.choice([0, os.O_EXCL, os.O_TRUNC]), 0o644)
        self.write_and_close(fd, self.dice.randbytes(self.dice.randrange(9000)))

    @staticmethod
    def write_and_close(fd, data):
        try:
            os.write(fd, data)
        finally:
            os.close(fd)

    def write(self, path):
        fd = os.open(path, os.O_RDWR)
        try:
            os.pwrite(fd, b"x" * self.dice.randrange(300), self.dice.randrange(5000))
            os.pread(fd, 100, self.dice.randrange(5000))
            os.fstat(fd)
        finally:
            os.close(fd)

    def append(self, path):
        self.write_and_close(os.open(path, os.O_WRONLY | os.O_APPEND), b"appended" * self.dice.randrange(50))

    def cut(self, path):
        os.truncate(path, self.dice.randrange(9000))

    def punch(self, path):
        punch(path, self.dice.randrange(5000), 1 + self.dice.randrange(5000))

    def unlink(self, path):
        os.unlink(path)

    def rename(self, path):
        rename(path, self.a_path(), self.dice.choice([0, 0, NOREPLACE]))

    def exchange(self, path):
        rename(path, self.a_path(), EXCHANGE)

    def link(self, path):
        os.link(path, self.a_path())

    def symlink(self, path):
        os.symlink(self.dice.choice(["absent", "n1", "a/n2"]), path)

    def set_attribute(self, path):
        os.setxattr(path, f"user.k{self.dice.randrange(12)}", b"text " * self.dice.randrange(200), self.dice.choice([0, 1, 2]))

    def remove_attribute(self, path):
        os.removexattr(path, f"user.k{self.dice.randrange(12)}")

    def convert(self, path):
        os.setxattr(path, f"h5fs.type.k{self.dice.randrange(12)}", self.dice.choice([b"vlen str", b"S900"]))

    def look(self, path):
        st = os.lstat(path)
        os.listxattr(path, follow_symlinks=False)
        if st.st_mode & 0o100000 == 0o100000 and not os.path.islink(path):
            with open(path, "rb") as f:
                f.read()

    def list(self, path):
        for entry in os.scandir(os.path.dirname(path)):
            try:
                entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                pass

    def log(self, _):
        n = self.dice.randrange(1, 40)
        data = b"".join(struct.pack("<II", self.number, self.rows + i) for i in range(n))
        fd = os.open(self.log_path, os.O_WRONLY | os.O_APPEND)
        self.write_and_close(fd, data)
        self.rows += n

    def sync(self, path):
        fsync(os.path.dirname(path))


AS_FILE = {errno.EISDIR}
ERRNOS = {
    "mkdir": {errno.EEXIST},
    "rmdir": {errno.ENOTEMPTY},
    "make": AS_FILE | {errno.EEXIST},
    "write": AS_FILE, "append": AS_FILE, "cut": AS_FILE, "punch": AS_FILE, "look": AS_FILE,
    "unlink": {errno.EISDIR},
    "rename": {errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST, errno.EINVAL},
    "exchange": {errno.EINVAL},
    "link": {errno.EEXIST, errno.EPERM},
    "symlink": {errno.EEXIST},
    "set_attribute": {errno.EEXIST, errno.ENODATA, errno.EINVAL},
    "remove_attribute": {errno.ENODATA},
    "convert": {errno.EINVAL},
}
