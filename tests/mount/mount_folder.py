#!/usr/bin/python3
"""The mount of a folder: each HDF5 file in it is a directory with what its own mount shows, and other files are as they are.
Files are opened when somebody looks, closed when nobody does, and one that cannot be opened is an entry with an errno."""
import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import time
import unittest

import h5py
import numpy

import injectlib
from mountfacts import attempt, facts_of_tree
from mountlib import H5FS, Mount, MountCase, Strace, main, read, refusal, write

SOON = 60  # seconds
SIGNATURE = b"\x89HDF\r\n\x1a\n"


def shown_parts():
    """The line of h5fs -V about the sandbox."""
    return subprocess.run([H5FS, "-V"], capture_output=True, text=True, check=True).stdout.splitlines()[-1]


def make(path, number=1):
    with h5py.File(path, "w") as f:
        f["a/b/x"] = numpy.arange(number, number + 10, dtype="<i8")
        f["a/chunked"] = f.create_dataset("c", data=numpy.arange(10000), chunks=(100,), compression="gzip")
        f["a/log"] = ["one", "two", "three"]
        f["soft"] = h5py.SoftLink("/a/b")
        f["up"] = h5py.SoftLink("../c")
        f["a"].attrs["number"] = number
        f["hard"] = f["a/b"]
    return path


def numbers(number):
    return numpy.arange(number, number + 10, dtype="<i8").tobytes()


def processor_time(pid):
    """Nanoseconds that all its threads have had."""
    return sum(int(read(f"/proc/{pid}/task/{thread}/schedstat").split()[0]) for thread in os.listdir(f"/proc/{pid}/task"))


class Case(MountCase):
    def setUp(self):
        super().setUp()
        self.top = self.file("top")
        os.mkdir(self.top)

    def at(self, *names):
        return os.path.join(self.top, *names)

    def mount(self, options=None, *arguments):
        return Mount(self.top, *arguments, options=options)

    def stats(self, m):
        return json.loads(os.getxattr(m.path, "h5fs.stats"))

    def await_closed(self, m):
        """Until the mount has closed what nobody uses."""
        end = time.monotonic() + SOON
        while self.stats(m)["open_files"]:
            self.assertLess(time.monotonic(), end)
            os.sched_yield()


class Trees(Case):
    def assertSame(self, m, name):
        with Mount(self.at(name)) as own:
            want = facts_of_tree(own.path)
        self.assertGreater(len(want), 1)
        self.assertEqual(facts_of_tree(m.at(name)), want)

    def test_each_file_is_what_its_own_mount_shows(self):
        os.makedirs(self.at("sub/deep"))
        for number, name in enumerate(["one.h5", "sub/two.hdf5", "sub/deep/THREE.H5", "four.nc"]):
            make(self.at(name), number)
        with h5py.File(self.at("links.h5"), "w", userblock_size=1024) as f:
            f["beside"] = h5py.ExternalLink("one.h5", "/a")
            f["beneath"] = h5py.ExternalLink("sub/two.hdf5", "/a/b/x")
            f["above"] = h5py.ExternalLink("../links.h5", "/")
            f["nowhere"] = h5py.SoftLink("/not/there")
            f["self"] = f["/"]
        with self.mount() as m:
            for name in "one.h5", "sub/two.hdf5", "sub/deep/THREE.H5", "four.nc", "links.h5":
                with self.subTest(name):
                    self.assertSame(m, name)
            self.assertEqual(read(m.at("one.h5/soft/x")), numbers(0))
            self.assertEqual(read(m.at("one.h5/.h5fs/attrs/a/number")), b"0")
            url = json.loads(read(m.at("sub/two.hdf5/.h5fs/kerchunk.json")))["refs"]["c/0"][0]
            self.assertEqual(url, "file://" + os.path.realpath(self.at("sub/two.hdf5")))

    def test_inode_numbers_of_two_files_differ(self):
        for name in "1.h5", "2.h5":
            make(self.at(name))
        with self.mount() as m:
            inodes = [os.lstat(m.at(name, path)).st_ino for name in ("1.h5", "2.h5") for path in ("a", "a/b/x", "c", "soft", "")]
            self.assertEqual(len(set(inodes)), len(inodes))
            self.assertEqual(os.stat(m.at("1.h5/c")).st_ino, os.stat(m.at("1.h5/a/chunked")).st_ino)
            with os.scandir(m.path) as entries:
                self.assertEqual([e.is_dir() for e in entries], [True, True])
            with os.scandir(m.path) as entries:
                self.assertEqual({e.name: e.inode() for e in entries}, {n: os.stat(m.at(n)).st_ino for n in ("1.h5", "2.h5")})
            with os.scandir(m.at("1.h5")) as entries:
                self.assertEqual({e.name: e.inode() for e in entries},
                                 {n: os.lstat(m.at("1.h5", n)).st_ino for n in ("a", "c", "hard", "soft", "up")})

    def test_other_files_are_passed_through_for_reading(self):
        os.mkdir(self.at("sub"), 0o750)
        write(self.at("text"), b"hello\n" * 100000)
        write(self.at("sub/old.mat"), b"MATLAB 5.0")
        write(self.at("empty.h5"), b"")
        make(self.at("named.data"))
        os.chmod(self.at("text"), 0o4641)
        os.chown(self.at("text"), 12, 34)
        os.utime(self.at("text"), ns=(1, 2))
        os.link(self.at("text"), self.at("sub/again"))
        os.mkfifo(self.at("fifo.h5"))
        with open(self.at("holes"), "wb") as f:
            f.truncate(1 << 20)
        with self.mount() as m:
            self.assertEqual(sorted(os.listdir(m.path)), ["empty.h5", "fifo.h5", "holes", "named.data", "sub", "text"])
            with os.scandir(m.path) as entries:
                self.assertEqual({e.name for e in entries if e.is_file()}, {"empty.h5", "holes", "named.data", "text"})
            for name in "text", "sub/old.mat", "empty.h5", "named.data", "sub/again", "holes":
                self.assertEqual(read(m.at(name)), read(self.at(name)), name)
            st = os.stat(m.at("text"))
            self.assertEqual((stat.filemode(st.st_mode), st.st_uid, st.st_gid, st.st_mtime_ns, st.st_size, st.st_nlink),
                             ("-r--r----x", 12, 34, 2, 600000, 2))
            self.assertEqual(os.stat(m.at("sub/again")).st_ino, st.st_ino)
            self.assertEqual(stat.filemode(os.stat(m.at("sub")).st_mode), "dr-xr-x---")
            self.assertTrue(stat.S_ISFIFO(os.stat(m.at("fifo.h5")).st_mode))
            self.assertEqual(os.listxattr(m.at("text")), [])
            with open(m.at("holes"), "rb", buffering=0) as f:
                self.assertEqual(os.lseek(f.fileno(), 0, os.SEEK_HOLE), 0)
                self.assertErrno(errno.ENXIO, os.lseek, f.fileno(), 0, os.SEEK_DATA)
            for number, change in enumerate([lambda: write(m.at("new"), b""), lambda: write(m.at("text"), b""),
                                             lambda: os.unlink(m.at("text")), lambda: os.mkdir(m.at("d"))]):
                with self.subTest(number):
                    self.assertErrno(errno.EROFS, change)

    def test_extended_attributes_of_other_files(self):
        os.mkdir(self.at("sub"))
        for name in "text", "sub/inner", "none", "old":
            write(self.at(name), b"x")
        os.symlink("text", self.at("link"))
        os.mkfifo(self.at("fifo"))
        make(self.at("x.h5"))
        values = {"user.empty": b"", "user.bytes": bytes(range(256)), "user.\u00e9": b"long" * 500}
        for name in "text", "sub", "sub/inner", ".", "x.h5":
            for key, value in values.items():
                os.setxattr(self.at(name), key, value)
        if not os.geteuid():
            os.setxattr(self.at("text"), "trusted.hidden", b"1")
            os.setxattr(self.at("text"), "security.hidden", b"1")
        os.setxattr(self.at("old"), "user.version", b"1")
        with self.mount() as m:
            for name in "text", "sub", "sub/inner", "", "link":
                self.assertEqual({key: os.getxattr(m.at(name), key) for key in os.listxattr(m.at(name))}, values, name)
            for name in "none", "fifo", "x.h5/a":
                self.assertEqual([key for key in os.listxattr(m.at(name)) if key in values], [], name)
            self.assertEqual(os.listxattr(m.at("link"), follow_symlinks=False), [])
            # An HDF5 file has those of its root group.
            self.assertNotIn("user.empty", os.listxattr(m.at("x.h5")))
            for name, key in ("none", "user.empty"), ("fifo", "user.empty"), ("text", "trusted.hidden"), ("text", "security.hidden"), ("text", "h5fs.stats"):
                self.assertErrno(errno.ENODATA, os.getxattr, m.at(name), key)
            self.assertErrno(errno.EROFS, os.setxattr, m.at("text"), "user.empty", b"1")
            subprocess.run(["cp", "-a", m.at("sub"), m.at("text"), self.folder], check=True)
            for name in "text", "sub", "sub/inner":
                copy = self.file(name)
                self.assertEqual({key: os.getxattr(copy, key) for key in os.listxattr(copy) if key.startswith("user.")}, values, name)
            # A file that was replaced, or whose place a link has taken, while it is open.
            fds = [m.open("old", os.O_RDONLY), m.open("sub/inner", os.O_RDONLY)]
            write(self.at("new"), b"y")
            os.setxattr(self.at("new"), "user.version", b"2")
            os.rename(self.at("new"), self.at("old"))
            self.assertEqual((os.getxattr(fds[0], "user.version"), os.getxattr(m.at("old"), "user.version")), (b"1", b"2"))
            os.rename(self.at("sub"), self.file("outside"))
            os.symlink(self.file("outside"), self.at("sub"))
            os.setxattr(self.file("outside/inner"), "user.empty", b"secret")
            self.assertErrno(errno.EACCES, os.getxattr, m.at("sub/inner"), "user.empty")
            for fd in fds:
                os.close(fd)

    def test_patterns(self):
        for name in "run 1.h5", "b.NEXUS", "c.dat":
            make(self.at(name))
        with self.mount("match=run?[0-9].*:*.nexus") as m:
            self.assertEqual({n: os.path.isdir(m.at(n)) for n in os.listdir(m.path)}, {"run 1.h5": True, "b.NEXUS": True, "c.dat": False})

    def test_owners_and_modes(self):
        os.chown(make(self.at("x.h5")), 12, 34)
        os.chmod(self.at("x.h5"), 0o640)
        def seen(m):
            return [(stat.filemode(st.st_mode), st.st_uid, st.st_gid) for st in map(os.stat, [m.at("x.h5"), m.at("x.h5/a/b/x")])]
        with self.mount() as m:
            self.assertEqual(seen(m), [("dr-xr-x---", 12, 34), ("-r--r--r--", 12, 34)])
        with self.mount("uid=7,gid=8,fmask=004,dmask=010") as m:
            self.assertEqual(seen(m), [("dr-xr-----", 7, 8), ("-r--r-----", 7, 8)])


class Names(Case):
    """Symbolic links, mounts in the folder, and folders that are moved meanwhile lead nowhere else."""

    def test_symbolic_links(self):
        os.makedirs(self.at("sub"))
        make(self.at("sub/x.h5"))
        make(self.file("outside.h5"))
        targets = {"in.h5": "sub/x.h5", "sub/up.h5": "../sub/./x.h5", "loop": "loop", "sub/out": "../../outside.h5",
                   "out.h5": self.file("outside.h5"), "back": "../top/sub", "absolute": self.at("sub/x.h5")}
        for name, target in targets.items():
            os.symlink(target, self.at(name))
        inside = {"in.h5", "sub/up.h5", "loop"}
        with self.mount() as m:
            self.assertEqual({n: attempt(os.readlink, m.at(n)) for n in targets},
                             {n: t if n in inside else errno.EACCES for n, t in targets.items()})
            self.assertTrue(all(os.path.islink(m.at(n)) for n in targets))
            self.assertEqual(read(m.at("in.h5/a/b/x")), numbers(1))
            self.assertEqual(read(m.at("sub/up.h5/a/b/x")), numbers(1))
            self.assertErrno(errno.EACCES, os.stat, m.at("out.h5"))
        with self.mount("external=any") as m:
            self.assertEqual({n: os.readlink(m.at(n)) for n in targets}, targets)

    def test_a_folder_that_becomes_another_one(self):
        """Or a link. Neither a directory that is open nor a name that is looked up leads the daemon out, or shows what was
        never there."""
        os.makedirs(self.file("secret"))
        for number, put in enumerate([lambda sub: os.symlink(self.file("secret"), sub), lambda sub: os.symlink("gone", sub),
                                      lambda sub: shutil.copytree(self.file("secret"), sub)]):
            shutil.rmtree(self.top)
            os.makedirs(self.at("sub"))
            for folder in self.at("sub"), self.file("secret"):
                make(os.path.join(folder, "x.h5"))
                write(os.path.join(folder, "text"), b"text of " + os.path.basename(folder).encode())
            with self.subTest(number), self.mount() as m:
                sub, listed, text = m.open("sub", os.O_RDONLY), m.open("sub", os.O_PATH), m.open("sub/text", os.O_PATH)
                self.assertEqual(read(m.at("sub/text")), b"text of sub")
                entries = os.scandir(sub)  # reads no name yet
                os.rename(self.at("sub"), self.at("gone"))
                put(self.at("sub"))
                for name in "text", "x.h5", "x.h5/a":
                    self.assertEqual(attempt(os.stat, name, dir_fd=sub), errno.ESTALE, name)
                self.assertEqual(attempt(os.fstat, text), errno.ESTALE)
                for fd in sub, text:
                    self.assertEqual(attempt(os.listxattr, f"/proc/self/fd/{fd}"), errno.ESTALE)
                    self.assertEqual(attempt(os.getxattr, f"/proc/self/fd/{fd}", "user.a"), errno.ESTALE)
                self.assertEqual(attempt(os.listdir, f"/proc/self/fd/{listed}"), errno.ESTALE)
                self.assertEqual(attempt(next, entries, None), errno.ESTALE)
                entries.close()
                self.assertEqual(attempt(read, m.at("sub/text")), [errno.EACCES, b"text of sub", b"text of secret"][number])
                self.assertEqual(read(m.at("gone/text")), b"text of sub")

    @unittest.skipUnless(injectlib.available() and shown_parts().startswith("sandbox: no new privileges, Landlock ("), "no sandbox")
    def test_the_sandbox_allows_the_folder_and_nothing_else(self):
        """What a daemon that was taken over could open."""
        make(self.at("x.h5"))
        make(self.file("outside.h5"))
        os.mkdir(self.at("sub"))
        folder = os.O_RDONLY | os.O_DIRECTORY
        tries = [(self.at("x.h5"), os.O_RDONLY, 0, 0), (self.at("sub"), folder, 0, 0), (self.top, folder, 0, 0),
                 (self.file("outside.h5"), os.O_RDONLY, errno.EACCES, 0), ("/etc/passwd", os.O_RDONLY, errno.EACCES, 0),
                 (self.folder, folder, errno.EACCES, errno.EACCES), ("/", folder, errno.EACCES, errno.EACCES),
                 (self.at("x.h5"), os.O_RDWR, errno.EPERM, errno.EPERM), (self.at("new"), os.O_RDWR | os.O_CREAT, errno.EPERM, errno.EPERM)]
        for options, column in (None, 2), ("external=any", 3):
            with self.mount(options) as m:
                read(m.at("x.h5/c"))
                with injectlib.Injector(m.daemon) as inside:
                    for name, flags, *want in tries:
                        got = inside.call("openat", -100, os.fsencode(name), flags, 0o600)
                        self.assertEqual(max(0, -got), want[column - 2], (options, name, flags))
                        if got >= 0:
                            inside.call("close", got)
                self.assertEqual(read(m.at("x.h5/a/b/x")), numbers(1))

    def test_mounts_in_the_folder(self):
        """This one, and another file system, cannot be looked into: no request waits for itself."""
        make(self.at("x.h5"))
        os.mkdir(self.at("other"))
        subprocess.run(["mount", "-t", "tmpfs", "none", self.at("other")], check=True)
        self.addCleanup(subprocess.run, ["umount", self.at("other")], check=True)
        write(self.at("other/x"), b"")
        os.mkdir(self.at("m"))
        for arguments in [], ["-s"]:
            with self.subTest(arguments), Mount(self.top, *arguments, point=self.at("m")) as m:
                self.assertEqual(sorted(os.listdir(m.path)), ["m", "other", "x.h5"])
                self.assertErrno(errno.EACCES, os.stat, m.at("m"))
                self.assertErrno(errno.EACCES, os.stat, m.at("other/x"))
                self.assertEqual(read(m.at("x.h5/a/b/x")), numbers(1))


class Many(Case):
    def test_a_listing_opens_no_file(self):
        """However many there are: it takes time in proportion, and asks the file system for nothing but names."""
        spent = []
        for count in 20000, 100000:
            shutil.rmtree(self.top)
            os.mkdir(self.top)
            for i in range(count):
                os.close(os.open(self.at(f"{i}.h5"), os.O_CREAT))
            with self.mount() as m, Strace(m.daemon, self.file("trace"), "-e", "trace=openat2,openat,statx,fstat") as trace:
                begin = processor_time(m.daemon)
                self.assertEqual(len(os.listdir(m.path)), count)
                spent.append(processor_time(m.daemon) - begin)
            self.assertLess(trace.text().count("open"), 50)
            self.assertNotIn(".h5", trace.text())
        self.assertLess(spent[1], 15 * spent[0])

    def test_files_are_closed_when_nobody_uses_them(self):
        names = [f"{i}.h5" for i in range(10)]
        for i, name in enumerate(names):
            make(self.at(name), i)
        with self.mount("open_files=3") as m:
            self.assertEqual(self.stats(m)["opened"], 0)
            for i, name in enumerate(names):
                self.assertEqual(read(m.at(name, "a/b/x")), numbers(i))
                self.assertLessEqual(self.stats(m)["open_files"], 3)
            self.await_closed(m)
            self.assertEqual(self.stats(m)["opened"], 10)
            with h5py.File(self.at(names[0]), "r+"):
                pass  # nobody has it locked any more

    def test_open_files_share_the_caches(self):
        """Each has the same part of them, which grows when others are closed."""
        with h5py.File(self.at("0.h5"), "w") as f:
            f.create_dataset("d", data=numpy.arange(1 << 20, dtype="<i8"), chunks=(1 << 15,), compression="gzip")
        for i in 1, 2, 3:
            make(self.at(f"{i}.h5"), i)

        def cached(m):
            """Bytes, after all of the file was read, with pieces that leave the chunks in the cache."""
            for _ in range(2):
                for at in range(0, 1 << 23, 1 << 18):
                    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                    self.assertEqual(len(os.pread(fd, 8, at + 8)), 8)
            return json.loads(os.getxattr(m.at("0.h5"), "h5fs.stats"))["chunk_cache"]["bytes"]

        with self.mount("cache=8M") as m:
            fd = m.open("0.h5/d", os.O_RDONLY)
            self.assertGreater(cached(m), 6 << 20)
            held = [m.open(f"{i}.h5/a/b/x", os.O_RDONLY) for i in (1, 2, 3)]
            self.assertLessEqual(json.loads(os.getxattr(m.at("0.h5"), "h5fs.stats"))["chunk_cache"]["bytes"], 2 << 20)
            self.assertLessEqual(cached(m), 2 << 20)
            for other in held:
                os.close(other)
            end = time.monotonic() + SOON
            while self.stats(m)["open_files"] > 1:
                self.assertLess(time.monotonic(), end)
                os.sched_yield()
            self.assertGreater(cached(m), 6 << 20)

    def test_as_many_files_as_may_be_are_open(self):
        for i in range(3):
            make(self.at(f"{i}.h5"), i)
        with self.mount("open_files=2") as m:
            held = [m.open(f"{i}.h5/a/b/x", os.O_RDONLY) for i in range(2)]
            self.assertErrno(errno.ENFILE, os.listdir, m.at("2.h5"))
            self.assertEqual(os.pread(held[0], 100, 0), numbers(0))
            self.assertEqual(read(m.at("1.h5/a/b/x")), numbers(1))
            os.close(held[0])
            self.assertEqual(read(m.at("2.h5/a/b/x")), numbers(2))
            m.open("2.h5/a/b", os.O_RDONLY)
            self.assertErrno(errno.ENFILE, read, m.at("0.h5/a/b/x"))

    def test_readers_of_more_files_than_may_be_open(self):
        """They wait for each other's requests, and none fails, but for the files that are replaced meanwhile."""
        for i in range(6):
            make(self.at(f"{i}.h5"), i)
        script = """
import errno, os, sys
top, first, may_fail = sys.argv[1], int(sys.argv[2]), {int(e) for e in sys.argv[3:]}
for i in range(40):
    file = f"{top}/{(i + first) % 6}.h5"
    try:
        os.stat(file + "/a/b/x")
        os.getxattr(file + "/a", "user.number")
        if may_fail:
            os.listdir(file + "/a")
            with open(file + "/a/b/x", "rb") as f:
                assert len(f.read()) == 80
    except OSError as e:
        if e.errno not in may_fail:
            raise
"""
        def start(m, *may_fail):
            return [subprocess.Popen([sys.executable, "-S", "-c", script, m.path, str(i), *map(str, may_fail)]) for i in range(6)]

        with self.mount("open_files=1") as m:
            self.assertEqual([r.wait(SOON) for r in start(m)], [0] * 6)
        with self.mount("open_files=3") as m:
            readers = start(m, errno.ESTALE, errno.ENOENT, errno.ENFILE)
            for i in range(20):
                os.rename(make(self.file("new.h5"), i), self.at(f"{i % 6}.h5"))
            self.assertEqual([r.wait(SOON) for r in readers], [0] * 6)

    def test_what_the_kernel_knows_outlives_a_closing(self):
        """Of directories, files and links in them; also in groups a thousand deep."""
        make(self.at("x.h5"))
        make(self.at("y.h5"))
        with h5py.File(self.at("deep.h5"), "w") as f:
            g = f
            for _ in range(1000):
                g = g.create_group("g")
            g["x"] = 7
        with self.mount("open_files=1") as m:
            files = [m.open(n, os.O_PATH | os.O_NOFOLLOW) for n in ("x.h5", "x.h5/a/b", "x.h5/a/b/x", "x.h5/soft", "x.h5/.h5fs/attrs/a/number")]
            deep = os.open(m.path, os.O_PATH)
            for name in ["deep.h5", *["g"] * 1000]:
                below = os.open(name, os.O_PATH, dir_fd=deep)
                os.close(deep)
                deep = below
            m.opened.append(deep)
            before = [os.fstat(fd) for fd in files]
            for _ in range(2):
                read(m.at("y.h5/c"))
                self.assertEqual([os.fstat(fd).st_ino for fd in files], [st.st_ino for st in before])
                self.assertEqual(read(f"/proc/self/fd/{files[2]}"), numbers(1))
                self.assertEqual(os.listdir(f"/proc/self/fd/{files[1]}"), ["x"])
                self.assertEqual(os.readlink("", dir_fd=files[3]), "a/b")
                self.assertEqual(os.stat("x", dir_fd=deep).st_size, 8)


class Changes(Case):
    def test_a_file_that_is_replaced(self):
        """By a rename, or in place; it appears, and goes. Whoever has it open keeps it."""
        make(self.at("x.h5"), 1)
        with self.mount() as m:
            opened, directory = m.open("x.h5/a/b/x", os.O_RDONLY), m.open("x.h5/a/b", os.O_PATH)
            before = os.stat(m.at("x.h5")).st_ino
            os.rename(make(self.file("new.h5"), 2), self.at("x.h5"))
            self.assertEqual(read(m.at("x.h5/a/b/x")), numbers(2))
            self.assertNotEqual(os.stat(m.at("x.h5")).st_ino, before)
            self.assertEqual(os.pread(opened, 100, 0), numbers(1))
            self.assertEqual(os.listdir(m.path), ["x.h5"])
            os.close(opened)
            self.await_closed(m)
            self.assertEqual(attempt(os.stat, "x", dir_fd=directory), errno.ESTALE)
            os.rename(self.at("x.h5"), self.at("y.h5"))
            self.assertErrno(errno.ENOENT, os.stat, m.at("x.h5"))
            self.assertEqual(read(m.at("y.h5/a/b/x")), numbers(2))
            write(self.at("y.h5"), b"no HDF5 file any more")
            self.assertEqual(read(m.at("y.h5")), b"no HDF5 file any more")
            with open(self.at("y.h5"), "r+b") as f, open(make(self.file("third.h5"), 3), "rb") as new:
                shutil.copyfileobj(new, f)
            self.assertEqual(read(m.at("y.h5/a/b/x")), numbers(3))
            os.unlink(self.at("y.h5"))
            self.assertEqual(os.listdir(m.path), [])

    def test_a_plain_file_that_is_replaced_or_removed(self):
        """Whoever has it open keeps it; a name that was only looked up is stale."""
        write(self.at("text"), b"before")
        with self.mount() as m:
            fd, looked = m.open("text", os.O_RDONLY), m.open("text", os.O_PATH)
            write(self.file("new"), b"afterwards")
            os.rename(self.file("new"), self.at("text"))
            self.assertEqual(read(m.at("text")), b"afterwards")
            os.unlink(self.at("text"))
            self.assertErrno(errno.ENOENT, read, m.at("text"))
            self.assertEqual((os.fstat(fd).st_size, os.fstat(fd).st_nlink, os.pread(fd, 100, 0)), (6, 0, b"before"))
            os.close(fd)
            self.assertErrno(errno.ESTALE, os.fstat, looked)
            write(self.at("log"), b"one\n")
            with open(m.at("log"), "rb", buffering=0) as f:
                self.assertEqual(f.read(100), b"one\n")
                with open(self.at("log"), "ab") as more:
                    more.write(b"two\n")
                self.assertEqual(f.read(100), b"two\n")

    def test_a_file_that_was_changed_while_it_was_closed(self):
        make(self.at("x.h5"), 1)
        with self.mount() as m:
            self.assertEqual(read(m.at("x.h5/a/b/x")), numbers(1))
            same, other, gone = (m.open(f"x.h5/{name}", os.O_PATH) for name in ("a/b", "a/log", "c"))
            self.await_closed(m)
            with h5py.File(self.at("x.h5"), "r+") as f:
                f["a/b/x"][...] = numpy.arange(5, 15)
                f["new"] = 1
                f["kept"] = f["a/log"]
                del f["c"], f["a/log"]
                f["a/log"] = "another dataset"
            self.assertEqual(read(m.at("x.h5/a/b/x")), numbers(5))
            self.assertEqual(os.listdir(f"/proc/self/fd/{same}"), ["x"])
            self.assertEqual([attempt(os.fstat, fd) for fd in (other, gone)], [errno.ESTALE] * 2)
            self.assertEqual(read(m.at("x.h5/a/log")), b"another dataset\n")
            self.assertEqual(sorted(os.listdir(m.at("x.h5"))), ["a", "hard", "kept", "new", "soft", "up"])

    def test_a_busy_file_is_an_entry(self):
        """One that h5py writes: its name is there, and looking into it is EBUSY. The mount locks files, too."""
        make(self.at("x.h5"), 1)
        make(self.at("y.h5"), 2)
        with self.mount("wait=0") as m:
            with h5py.File(self.at("x.h5"), "r+"):
                self.assertTrue(os.path.isdir(m.at("x.h5")))
                self.assertErrno(errno.EBUSY, os.listdir, m.at("x.h5"))
                self.assertErrno(errno.EBUSY, os.stat, m.at("x.h5/a"))
                self.assertErrno(errno.EBUSY, os.listxattr, m.at("x.h5"))
                self.assertEqual(read(m.at("y.h5/a/b/x")), numbers(2))
            fd = m.open("x.h5/a/b/x", os.O_RDONLY)
            with self.assertRaises(OSError):
                h5py.File(self.at("x.h5"), "r+")
            os.close(fd)

    def test_a_file_that_h5fs_writes(self):
        """It is busy, and afterwards its journal is heeded as its own mount heeds it."""
        path = make(self.at("x.h5"))
        with self.mount("wait=0") as m:
            with Mount(path, options="rw") as own:
                write(own.at("new"), b"data")
                self.assertErrno(errno.EBUSY, os.listdir, m.at("x.h5"))
                fd = own.open("new", os.O_RDWR)
                os.fsync(fd)
                os.close(fd)
                own.kill()
            self.assertEqual(sorted(os.listdir(self.top)), ["x.h5", "x.h5.h5fs-journal"])
            with Mount(path) as own:
                want = facts_of_tree(own.path)
            self.assertIn("new", want)
            self.assertEqual(facts_of_tree(m.at("x.h5")), want)

    def test_damaged_files_are_entries(self):
        make(self.at("good.h5"))
        whole = read(self.at("good.h5"))
        files = {"short.h5": whole[:50], "signature.h5": SIGNATURE, "version.h5": SIGNATURE + b"\x63" + whole[9:],
                 "zeros.h5": whole[:96].ljust(len(whole), b"\0")}
        for name, data in files.items():
            write(self.at(name), data)
        with self.mount(None, "-f") as m:
            for name in files:
                with self.subTest(name):
                    status, said = refusal(self.at(name))
                    self.assertIn(status, (3, 4, 6), said)
                    self.assertTrue(os.path.isdir(m.at(name)))
                    want = {3: {errno.EINVAL, errno.EUCLEAN}, 4: {errno.EUCLEAN}, 6: {errno.ENOTSUP}}[status]
                    self.assertIn(attempt(os.listdir, m.at(name)), want)
            self.assertEqual(read(m.at("good.h5/a/b/x")), numbers(1))
            self.assertIn("version.h5", m.said())
            m.unmount()
            self.assertEqual(m.wait(), 0)

    def test_files_without_permission_are_entries(self):
        """For an ordinary user, who may read some."""
        program = shutil.copy(H5FS, self.file("h5fs"))
        os.chmod(self.folder, 0o755)
        for name, mode in ("open.h5", 0o644), ("shut.h5", 0o600), ("text", 0o600):
            make(self.at(name)) if name != "text" else write(self.at(name), b"")
            os.chmod(self.at(name), mode)
        os.mkdir(self.file("m"))
        os.chown(self.file("m"), 65534, 65534)
        as_user = "setpriv --reuid 65534 --regid 65534 --clear-groups"
        device = f"""
set -e
mknod -m 666 {self.folder}/fuse c 10 229
mount --bind {self.folder}/fuse /dev/fuse
exec {as_user} sh -c "$@"
"""
        script = """
set -e
"$1" "$2" "$3"
ls "$3"
test -d "$3/shut.h5"
od -A n -t d8 -N 8 "$3/open.h5/a/b/x"
cat "$3/text" && exit 1
ls "$3/shut.h5" && exit 1
stat "$3/shut.h5/a" && exit 1
"$1" -u "$3"
"""
        run = subprocess.run(["unshare", "-m", "sh", "-c", device, "sh", script, "sh", program, self.top, self.file("m")],
                             capture_output=True, text=True, timeout=SOON, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout.split(), ["open.h5", "shut.h5", "text", "1"])
        self.assertEqual(run.stderr.count("Permission denied"), 3, run.stderr)

    def test_a_damaged_object_leaves_its_neighbours_alone(self):
        make(self.at("x.h5"))
        data = read(self.at("x.h5"))
        write(self.at("x.h5"), data.replace(b"TREE", b"EERT"))
        with self.mount() as m, Mount(self.at("x.h5")) as own:
            self.assertEqual(facts_of_tree(m.at("x.h5")), facts_of_tree(own.path))


class Commands(Case):
    def test_what_a_folder_does_not_take(self):
        make(self.at("x.h5"))
        for options, status, why in (("rw,swmr", 3, "one file"), ("create", 3, "one file"),
                                     ("subdir=/a", 3, "one file"), ("journal=/tmp", 3, "one file")):
            with self.subTest(options):
                got, said = refusal(self.top, options=options)
                self.assertEqual(got, status, said)
                self.assertIn(why, said)
        for options in "match=*", "open_files=3":
            got, said = refusal(self.at("x.h5"), options=options)
            self.assertEqual((got, "mount of a folder" in said), (3, True), said)
        self.assertEqual(refusal(self.top, options="open_files=0")[0], 2)

    def test_the_commands_know_the_mount(self):
        make(self.at("x.h5"))
        with self.mount() as m:
            self.assertEqual(int(os.getxattr(m.path, "h5fs.pid")), m.daemon)
            again = subprocess.run([H5FS, self.top, m.path], capture_output=True, text=True, check=False)
            self.assertEqual((again.returncode, "already mounted" in again.stderr), (7, True), again.stderr)
            self.assertEqual(os.statvfs(m.path).f_blocks, os.statvfs(self.top).f_blocks)
            subprocess.run([H5FS, "-u", m.path], check=True)
            self.assertEqual(m.wait(), 0)

    def test_it_ends_while_files_are_open(self):
        make(self.at("x.h5"))
        with self.mount() as m:
            fds = [m.open("x.h5/a/b/x", os.O_RDONLY), m.open("x.h5/a", os.O_RDONLY), m.open("", os.O_RDONLY)]
            os.listdir(fds[1])
            subprocess.run(["kill", str(m.daemon)], check=True)
            self.assertEqual(m.wait(), 0)


if __name__ == "__main__":
    main()
