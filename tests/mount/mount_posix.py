#!/usr/bin/python3
"""What POSIX and Linux say of each call about files and names: the same assertions hold in a plain folder and in mounts of files of
several styles, but for what doc/h5fs.1 says otherwise (`self.mounted`).

pjdfstest (https://github.com/pjd/pjdfstest) asks the same in subtests that it numbers in groups. Nothing of it is in here, but these facts are:

    chmod       01-04 06 10       the path; 00 07 11 12 need modes. So do 05 of all groups and 06 or 07 of most.
    chown       01-04 06 10       the path; 00 07 need owners
    ftruncate   00-04 07 09 11-14 but for modes in 00; 05 06 need them; 11 (a file that is executed) only in the plain folder, since
                                  a mount lets nobody execute
    link        00-05 08-11 14 16 17   00 and 11 but for owners; 06 07 need modes; 05 (EMLINK): 2^32 - 1 names are too many for a test
    mkdir       00-04 07 09 10 12 but for modes and owners in 00
    mkfifo      01-04 07-09 12    in a mount these are refused with EPERM, after what is wrong with the path
    mknod       01-04 07 08 10 11 likewise; regular files are made
    open        00-04 12-17 20-25 00 but for modes and owners; 17 and 24 (FIFOs, sockets) only in the plain folder
    posix_fallocate 00
    rename      00-03 11-20 22-24 but for owners in 00; 04 05 09 10 21 need modes or owners
    rmdir       00-06 12-15
    symlink     00-04 07 08 10 12 but for modes in 00
    truncate    00-04 07 09 11-14
    unlink      00-04 07 08 12-14
    utimensat   00-05 08 09       where they are to be set, times stay in a mount; 06 07 need modes or owners; 03 (times of birth) is not Linux's

Not asked: chflags, flags of inodes (link 12 13, mkdir 08, ... of all groups) and NFSv4's rights (granular), which Linux or h5fs does not
have; ENOSPC (link 15, mkdir 11, mkfifo 11, mknod 09, open 19, symlink 11), which tests/mount/mount_space.py asks."""
import ctypes
import errno
import fcntl
import mmap
import os
import socket
import stat
import subprocess
import sys

import h5py

import posixlib
from mountlib import Mount, main, read, write
from posixlib import AT_FDCWD, AT_SYMLINK_FOLLOW, BAD_ADDRESS, KEEP_SIZE, NAME_MAX, PUNCH_HOLE, STYLES, call, fallocate, kind, make, remove

# Calls that take the name of what is there, by whether they follow a symlink.
LOOKS = {
    "open": (True, lambda path: os.close(os.open(path, os.O_RDONLY))), "open for writing": (True, lambda path: os.close(os.open(path, os.O_WRONLY))),
    "stat": (True, os.stat), "lstat": (False, os.lstat), "chmod": (True, lambda path: os.chmod(path, 0o644)),
    "chown": (True, lambda path: os.chown(path, -1, -1)), "lchown": (False, lambda path: os.lchown(path, -1, -1)),
    "truncate": (True, lambda path: os.truncate(path, 5)), "utime": (True, os.utime), "statvfs": (True, os.statvfs),
    "access": (True, lambda path: call("access", path, os.F_OK)), "rename from": (False, lambda path: os.rename(path, os.path.join(FREE, "renamed"))),
    "link from": (False, lambda path: os.link(path, os.path.join(FREE, "linked"), follow_symlinks=False)),
    "getxattr": (True, lambda path: os.listxattr(path)), "setxattr": (True, lambda path: os.setxattr(path, "user.a", b"1")),
    "unlink": (False, os.unlink), "rmdir": (False, os.rmdir), "readlink": (False, os.readlink), "listdir": (True, os.listdir),
}
FREE = "free"  # a folder for what should not come about
# Calls that make a name.
MAKES = {
    "create": lambda path: os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL)), "mkdir": os.mkdir,
    "symlink": lambda path: os.symlink("nowhere", path), "link to": lambda path: os.link("file", path),
    "rename to": lambda path: os.rename("source", path), "mknod": lambda path: os.mknod(path, stat.S_IFREG | 0o644),
    "mkfifo": os.mkfifo,
}


class Files(posixlib.Facts):
    def test_plain_folder(self):
        self.ask_plain_folder()

    def test_mounts(self):
        for style in STYLES:
            with self.subTest(style=style):
                self.ask_mount(style)

    def test_mount_for_reading(self):
        path = self.file("read.h5")
        with h5py.File(path, "w") as f:
            f["file"] = b"contents"
            f.create_group("dir/sub")
            f["source"] = 1
            f["link"] = h5py.SoftLink("file")
        before = read(path)
        with Mount(path) as m:
            os.chdir(m.path)
            try:
                self.ask_read_only()
            finally:
                os.chdir("/")
        self.assertEqual(read(path), before)

    def ask_read_only(self):
        for function in MAKES.values():
            self.assertError(errno.EROFS, function, "new")
            self.assertError((errno.EEXIST, errno.EROFS), function, "dir/sub")
        for name in "open for writing", "chmod", "chown", "truncate", "utime", "setxattr", "unlink":
            self.assertError(errno.EROFS, LOOKS[name][1], "file")
        for name in "rmdir", "chmod", "utime", "setxattr":
            self.assertError(errno.EROFS, LOOKS[name][1], "dir/sub")
        self.assertError(errno.EROFS, os.unlink, "link")
        self.assertError(errno.EROFS, os.removexattr, "file", "user.x")
        for flags in os.O_RDWR, os.O_RDONLY | os.O_TRUNC, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_APPEND:
            self.assertError(errno.EROFS, os.open, "file", flags)
        self.assertError(errno.EEXIST, os.open, "file", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        os.close(os.open("file", os.O_RDONLY | os.O_CREAT))
        self.assertTrue(os.statvfs(".").f_flag & os.ST_RDONLY)

    # ---- paths ----

    def fact_components_of_paths(self):
        os.mkdir(FREE)
        for path in "file", "source":
            write(path, b"contents")
        os.symlink("loop2", "loop1")
        os.symlink("loop1", "loop2")
        long = "n" * (NAME_MAX + 1)
        for name, function in [(name, f) for name, (_, f) in LOOKS.items()] + list(MAKES.items()):
            for path, number in (("file/x", errno.ENOTDIR), ("no/x", errno.ENOENT), ("", errno.ENOENT), ("loop1/x", errno.ELOOP), (long, errno.ENAMETOOLONG),
                                 (f"{FREE}/{long}", errno.ENAMETOOLONG), (long + "/x", errno.ENAMETOOLONG), ("./" * 2048 + "x", errno.ENAMETOOLONG)):
                with self.subTest(name, path=path[:40]):
                    self.assertError(number, function, path)
        for name, (follows, function) in LOOKS.items():
            with self.subTest(name):
                self.assertError(errno.ENOENT, function, "no")
                if follows:
                    self.assertError(errno.ELOOP, function, "loop1")
                # A slash behind the name asks for a directory.
                self.assertError(errno.ENOTDIR, function, "file/")
        self.assertEqual(os.listdir(FREE), [])
        self.assertEqual(sorted(os.listdir()), ["file", FREE, "loop1", "loop2", "source"])

    def fact_longest_names(self):
        write("file", b"contents")
        for path in "n" * NAME_MAX, "\u00e9" * 127, "./" * 2047 + "x":
            for name, function in MAKES.items():
                with self.subTest(name):
                    write("source", b"")
                    if name == "mkfifo" and self.mounted:
                        self.assertError(errno.EPERM, function, path)
                        continue
                    function(path)
                    self.assertError(errno.EEXIST, os.mkdir, path)
                    if name not in ("symlink", "mkfifo"):
                        self.assertError(0, os.stat, path)
                    remove(path)
                    self.assertError(errno.ENOENT, os.lstat, path)

    def fact_odd_names(self):
        names = [b"a%sb" % bytes([c]) for c in range(1, 256) if c not in b"/"] + [b"...", b".a", b"-", b" ", b"%a", b"100%"]
        for name in names:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        self.assertEqual(sorted(os.listdir(b".")), sorted(names))
        for name in names:
            os.unlink(name)

    def fact_bad_addresses(self):
        write("file", b"contents")
        fd = os.open("file", os.O_RDWR)
        bad = BAD_ADDRESS
        for name, *arguments in (
                ("open", bad, os.O_RDONLY), ("open", bad, os.O_CREAT | os.O_WRONLY, 0o644), ("mkdir", bad, 0o755), ("rmdir", bad), ("unlink", bad),
                ("symlink", bad, "l"), ("symlink", "t", bad), ("link", bad, "l"), ("link", "file", bad), ("rename", bad, "l"), ("rename", "file", bad),
                ("truncate", bad, 0), ("chmod", bad, 0o644), ("chown", bad, -1, -1), ("mkfifo", bad, 0o644), ("mknod", bad, stat.S_IFREG | 0o644, 0),
                ("utimensat", AT_FDCWD, bad, None, 0), ("readlink", bad, ctypes.create_string_buffer(9), 9), ("access", bad, 0),
                ("read", fd, bad, 4), ("write", fd, bad, 4), ("pread", fd, bad, 4, 0), ("pwrite", fd, bad, 4, 0)):
            with self.subTest(name):
                self.assertError(errno.EFAULT, call, name, *arguments)
        self.assertEqual(read("file"), b"contents")
        self.assertEqual(os.listdir(), ["file"])

    def fact_deep_folders(self):
        """Paths can be longer than PATH_MAX if one goes there step by step."""
        above = os.open(".", os.O_RDONLY)
        for _ in range(60):
            os.mkdir("n" * 100)
            os.chdir("n" * 100)
        write("file", b"deep")
        self.assertEqual(read("file"), b"deep")
        os.fchdir(above)
        os.close(above)
        subprocess.run(["rm", "-r", "n" * 100], check=True)

    # ---- open ----

    def fact_open_creates(self):
        os.close(self.assertStamped(lambda: os.open("file", os.O_CREAT | os.O_WRONLY, 0o644), changed=["."]))
        st = os.lstat("file")
        self.assertEqual((stat.S_IFMT(st.st_mode), st.st_size, st.st_nlink), (stat.S_IFREG, 0, 1))
        self.assertGreaterEqual(st.st_mtime_ns, os.lstat(".").st_mtime_ns - 10 ** 9)
        # A name that is there stays what it is.
        os.close(self.assertStamped(lambda: os.open("file", os.O_CREAT | os.O_RDONLY), kept=[".", "file"]))
        os.mkdir("dir")
        os.symlink("nowhere", "link")
        for name in "file", "dir", "link":
            self.assertError(errno.EEXIST, os.open, name, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        fd = os.open("link", os.O_CREAT | os.O_RDWR)
        os.write(fd, b"through")
        os.close(fd)
        self.assertEqual((read("nowhere"), kind("link")), (b"through", "l"))
        # What the mode forbids to others does not bind the descriptor that made the file.
        fd = os.open("new", os.O_CREAT | os.O_RDWR, 0)
        self.assertEqual((os.write(fd, b"mode 0"), os.pread(fd, 9, 0)), (6, b"mode 0"))
        os.close(fd)

    def fact_open_truncates(self):
        write("file", b"contents")
        os.close(self.assertStamped(lambda: os.open("file", os.O_WRONLY | os.O_TRUNC), changed=["file"], kept=["."]))
        self.assertEqual(os.stat("file").st_size, 0)

    def fact_open_of_directories(self):
        os.mkdir("dir")
        write("file", b"")
        os.symlink("dir", "link")
        os.symlink("file", "to-file")
        for flags in os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC, os.O_WRONLY | os.O_TRUNC, os.O_RDONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT:
            self.assertError(errno.EISDIR, os.open, "dir", flags)
        self.assertError(errno.EISDIR, os.open, "new/", os.O_CREAT | os.O_WRONLY)
        self.assertError(errno.ENOTDIR, os.open, "file", os.O_DIRECTORY)
        self.assertError(errno.ENOTDIR, os.open, "to-file", os.O_DIRECTORY)
        self.assertError(errno.ENOTDIR, os.open, "link", os.O_DIRECTORY | os.O_NOFOLLOW)
        self.assertError(errno.ELOOP, os.open, "link", os.O_NOFOLLOW)
        self.assertError(errno.ELOOP, os.open, "to-file", os.O_NOFOLLOW | os.O_WRONLY)
        self.assertError(errno.ELOOP, os.open, "to-file", os.O_NOFOLLOW | os.O_CREAT | os.O_WRONLY)
        fd = os.open("link/", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        self.assertError(errno.EISDIR, os.read, fd, 1)
        self.assertError((errno.EBADF, errno.EINVAL), os.write, fd, b"x")
        self.assertError((errno.EBADF, errno.EINVAL), os.ftruncate, fd, 0)
        os.close(fd)
        fd = os.open("to-file", os.O_PATH | os.O_NOFOLLOW)
        self.assertEqual((stat.S_IFMT(os.fstat(fd).st_mode), os.readlink("", dir_fd=fd)), (stat.S_IFLNK, "file"))
        self.assertError(errno.EBADF, os.read, fd, 1)
        os.close(fd)

    def fact_open_modes(self):
        write("file", b"contents")
        reads, writes = os.open("file", os.O_RDONLY), os.open("file", os.O_WRONLY)
        for number, function, *arguments in ((errno.EBADF, os.write, reads, b"x"), (errno.EBADF, os.read, writes, 1), (errno.EINVAL, os.ftruncate, reads, 1),
                                             (errno.EBADF, os.pwrite, reads, b"x", 0), (errno.EBADF, fallocate, reads, 0, 0, 1),
                                             (errno.EINVAL, os.pread, reads, 1, -1), (errno.EINVAL, os.lseek, reads, -1, os.SEEK_SET),
                                             (errno.EINVAL, os.lseek, reads, 0, 99)):
            self.assertError(number, function, *arguments)
        os.close(reads)
        os.close(writes)
        self.assertError((0, errno.EINVAL), lambda: os.close(os.open("file", os.O_ACCMODE)))
        self.assertEqual(read("file"), b"contents")

    def fact_appending(self):
        one, two = (os.open("log", os.O_CREAT | os.O_APPEND | os.O_RDWR) for _ in range(2))
        plain = os.open("log", os.O_WRONLY)
        os.write(one, b"one ")
        os.write(two, b"two ")
        os.lseek(one, 0, os.SEEK_SET)
        os.write(one, b"three ")
        self.assertEqual(os.lseek(one, 0, os.SEEK_CUR), len("one two three "))
        os.pwrite(two, b"four ", 0)  # Linux appends here, too
        os.pwrite(plain, b"ONE", 0)
        os.ftruncate(two, os.fstat(one).st_size - 1)
        os.write(one, b".")
        self.assertEqual(os.pread(one, 100, 0), b"ONE two three four.")
        flags = fcntl.fcntl(plain, fcntl.F_GETFL)
        fcntl.fcntl(plain, fcntl.F_SETFL, flags | os.O_APPEND)
        os.write(plain, b" five")
        self.assertEqual(read("log"), b"ONE two three four. five")

    def fact_files_without_names(self):
        """O_TMPFILE: where it is refused, programs make a name and remove it."""
        if self.mounted:
            self.assertError(errno.EOPNOTSUPP, os.open, ".", os.O_TMPFILE | os.O_RDWR)
            return
        fd = os.open(".", os.O_TMPFILE | os.O_RDWR)
        call("linkat", AT_FDCWD, f"/proc/self/fd/{fd}", AT_FDCWD, "named", AT_SYMLINK_FOLLOW)
        os.close(fd)

    # ---- contents ----

    def fact_contents(self):
        fd = os.open("file", os.O_CREAT | os.O_RDWR)
        self.assertEqual((os.read(fd, 5), os.pread(fd, 5, 1000)), (b"", b""))
        self.assertStamped(lambda: os.pwrite(fd, b"end", 100_000), changed=["file"], kept=["."])
        self.assertStamped(lambda: os.pread(fd, 100_003, 0), kept=["file"])
        self.assertEqual(os.pread(fd, 1 << 20, 99_998), b"\0\0end")
        self.assertEqual(os.pread(fd, 10, 100_003), b"")
        self.assertEqual(os.write(fd, b""), 0)
        self.assertEqual(os.preadv(fd, [bytearray(1), bytearray(5)], 99_999), 4)
        self.assertEqual(os.pwritev(fd, [b"be", b"gin"], 0), 5)
        self.assertEqual(os.lseek(fd, 0, os.SEEK_END), 100_003)
        self.assertEqual(os.lseek(fd, 10, os.SEEK_END), 100_013)
        self.assertError(errno.ENXIO, os.lseek, fd, 100_003, os.SEEK_DATA)
        self.assertEqual(os.lseek(fd, 100_000, os.SEEK_HOLE), 100_003)
        self.assertEqual(os.lseek(fd, 2, os.SEEK_DATA), 2)
        other = os.open("copy", os.O_CREAT | os.O_RDWR)
        self.assertEqual(os.copy_file_range(fd, other, 5, 0, 3), 5)
        self.assertEqual(os.sendfile(other, fd, 100_000, 3), 3)
        self.assertEqual(read("copy"), b"endbegin")

    def fact_truncation(self):
        write("file", b"contents")
        fd = os.open("file", os.O_RDWR)
        for function, of in (os.truncate, "file"), (os.ftruncate, fd):
            for size in 1_000_000, 123, 4096, 0, 70_000, 5:
                self.assertStamped(lambda: function(of, size), changed=["file"], kept=["."])
                self.assertEqual(os.stat("file").st_size, size)
            self.assertEqual(read("file"), bytes(5))
            write("file", b"contents")
            function(of, 4)
            function(of, 8)
            self.assertEqual(read("file"), b"cont\0\0\0\0")
            self.assertError(errno.EINVAL, function, of, -1)
            self.assertError((0, errno.EFBIG, errno.EINVAL), function, of, (1 << 63) - 1)
            self.assertIn(os.stat("file").st_size, (8, (1 << 63) - 1))
            function(of, 8)
            self.assertEqual(os.stat("file").st_size, 8)
        os.mkdir("dir")
        self.assertError(errno.EISDIR, os.truncate, "dir", 0)
        os.symlink("file", "link")
        os.truncate("link", 2)
        self.assertEqual(read("file"), b"co")

    def fact_large_files(self):
        """Beyond 2 GiB and 4 GiB; what is not written takes no space."""
        fd = os.open("file", os.O_CREAT | os.O_RDWR)
        places = (1 << 31) - 2, (1 << 32) - 2, (1 << 33) + 1
        for at in places:
            self.assertEqual(os.pwrite(fd, b"here", at), 4)
        self.assertEqual(os.fstat(fd).st_size, places[-1] + 4)
        for at in places:
            self.assertEqual(os.pread(fd, 6, at - 1)[:5], b"\0here")
        self.assertLess(os.fstat(fd).st_blocks * 512, 10 << 20)
        # In a mount a file that is open for reading and writing may be mapped, so all of it counts as data.
        os.close(fd)
        fd = os.open("file", os.O_RDONLY)
        self.assertTrue(1 << 30 < os.lseek(fd, 0, os.SEEK_DATA) <= places[0])

    def fact_mapped_files(self):
        write("file", b"contents")
        fd = os.open("file", os.O_RDWR)
        with mmap.mmap(fd, 0) as mapped:
            self.assertEqual(mapped[:], b"contents")
            mapped[:3] = b"CON"
            mapped.flush()
            self.assertEqual(os.pread(fd, 100, 0), b"CONtents")
            os.pwrite(fd, b"TENTS", 3)
            self.assertEqual(mapped[:], b"CONTENTS")
            os.unlink("file")
            self.assertEqual(mapped[:], b"CONTENTS")
            mapped[0:1] = b"c"
            mapped.flush()
            self.assertEqual(os.pread(fd, 100, 0), b"cONTENTS")
        os.close(fd)

    def fact_allocation(self):
        fd = os.open("file", os.O_CREAT | os.O_RDWR)
        os.pwrite(fd, b"x" * 200_000, 0)
        fallocate(fd, PUNCH_HOLE | KEEP_SIZE, 4000, 100_000)
        self.assertEqual(os.pread(fd, 200_000, 0), b"x" * 4000 + bytes(100_000) + b"x" * 96_000)
        self.assertStamped(lambda: fallocate(fd, PUNCH_HOLE | KEEP_SIZE, 150_000, 1000), changed=["file"])
        fallocate(fd, PUNCH_HOLE | KEEP_SIZE, 199_000, 1 << 20)
        self.assertEqual(os.fstat(fd).st_size, 200_000)
        self.assertError(errno.EINVAL, fallocate, fd, PUNCH_HOLE | KEEP_SIZE, 0, 0)
        self.assertError(errno.EINVAL, fallocate, fd, PUNCH_HOLE | KEEP_SIZE, -1, 10)
        self.assertError(errno.EOPNOTSUPP, fallocate, fd, PUNCH_HOLE, 0, 10)
        if self.mounted:
            self.assertError(errno.EOPNOTSUPP, fallocate, fd, 0, 0, 300_000)
            self.assertEqual(os.fstat(fd).st_size, 200_000)
        # The C library does it with writes if the file system does not do it.
        os.posix_fallocate(fd, 100, 50)
        os.posix_fallocate(fd, 200_000, 50_001)
        self.assertEqual(os.fstat(fd).st_size, 250_001)
        self.assertError(errno.EINVAL, os.posix_fallocate, fd, 0, 0)
        self.assertError(errno.EINVAL, os.posix_fallocate, fd, -1, 10)
        self.assertEqual(os.pread(fd, 200, 0), b"x" * 200)

    def fact_executed_files(self):
        if self.mounted:
            subprocess.run(["cp", "-p", "/bin/true", "program"], check=True)
            self.assertError(errno.EACCES, os.execv, os.path.abspath("program"), ["program"])
            return
        subprocess.run(["cp", "/bin/cat", "program"], check=True)
        with subprocess.Popen(["./program"], stdin=subprocess.PIPE) as running:
            self.assertError(errno.ETXTBSY, os.open, "program", os.O_WRONLY)
            self.assertError(errno.ETXTBSY, os.truncate, "program", 1)
            running.stdin.close()

    def fact_locks(self):
        write("file", b"")
        one, two = os.open("file", os.O_RDWR), os.open("file", os.O_RDWR)
        fcntl.flock(one, fcntl.LOCK_EX)
        self.assertError(errno.EAGAIN, fcntl.flock, two, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(one, fcntl.LOCK_UN)
        fcntl.flock(two, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.lockf(one, fcntl.LOCK_EX, 10, 5)
        question = "import fcntl, sys; fcntl.lockf(open('file', 'rb+'), fcntl.LOCK_EX | fcntl.LOCK_NB, 10, int(sys.argv[1]))"
        for at, locked in (0, True), (20, False):
            asked = subprocess.run([sys.executable, "-c", question, str(at)], capture_output=True, text=True, check=False)
            self.assertEqual("BlockingIOError" in asked.stderr, locked, asked.stderr)
        os.close(one)
        os.close(two)

    # ---- nodes that are no files, properties ----

    def fact_special_files(self):
        make("d", "dir")
        for function, *more in (os.mkfifo,), (os.mknod, stat.S_IFIFO), (os.mknod, stat.S_IFSOCK), (os.mknod, stat.S_IFCHR, os.makedev(1, 3)), \
                (os.mknod, stat.S_IFBLK, os.makedev(240, 0)):
            if self.mounted:
                self.assertStamped(lambda: self.assertError(errno.EPERM, function, "x", *more), kept=["."])
            else:
                self.assertStamped(lambda: function("x", *more), changed=["."])
                os.unlink("x")
            self.assertError(errno.EEXIST, function, "dir", *more)
        with socket.socket(socket.AF_UNIX) as s:
            self.assertError(errno.EPERM if self.mounted else 0, s.bind, "socket")
        if not self.mounted:
            self.assertError(errno.ENXIO, os.open, "socket", os.O_RDONLY)
            os.mkfifo("fifo")
            self.assertError(errno.ENXIO, os.open, "fifo", os.O_WRONLY | os.O_NONBLOCK)
        self.assertStamped(lambda: os.mknod("file", stat.S_IFREG), changed=["."])
        write("file", b"contents")
        self.assertEqual(read("file"), b"contents")

    def fact_properties(self):
        for letter in "-d":
            make(letter, "x")
            os.chmod("x", 0o700)
            os.chown("x", os.getuid(), os.getgid())
            self.assertEqual(stat.S_IMODE(os.stat("x").st_mode), {"-": 0o644, "d": 0o755}[letter] if self.mounted else 0o700)
            os.utime("x", ns=(1_500_000_000_123_456_789, 1_600_000_000_987_654_321))
            if not self.mounted:
                self.assertEqual((os.stat("x").st_atime_ns, os.stat("x").st_mtime_ns), (1_500_000_000_123_456_789, 1_600_000_000_987_654_321))
            os.utime("x", ns=(10 ** 9, 4_294_967_296 * 10 ** 9))
            self.assertError(errno.EINVAL, call, "utimensat", AT_FDCWD, "x", (ctypes.c_long * 4)(0, 2 * 10 ** 9, 0, 0), 0)
            self.assertStamped(lambda: os.setxattr("x", "user.note", b"5"), ctime=["x"])
            remove("x")
        os.symlink("nowhere", "link")
        os.utime("link", follow_symlinks=False)
        self.assertError(errno.ENOENT, os.utime, "link")
        now = os.statvfs(".")
        self.assertEqual(now.f_namemax, NAME_MAX)
        self.assertTrue(now.f_bsize > 0 and now.f_frsize > 0 and now.f_bavail <= now.f_bfree <= now.f_blocks)

    def fact_numbers_of_names(self):
        """A directory may count its subdirectories, or have 1, which says that it does not."""
        os.mkdir("dir")
        for subdirectories in range(3):
            self.assertIn(os.stat("dir").st_nlink, (1,) if self.mounted else (1, 2 + subdirectories))
            os.mkdir(f"dir/{subdirectories}")


if __name__ == "__main__":
    main()
