#!/usr/bin/python3
"""What the kernel asks for, and what it knows already, as libfuse's debug output tells it; what it is told of attributes, readahead and descriptors."""
import ctypes
import errno
import os
import re
import shutil

import h5py
import numpy

from mountlib import H5FS, Mount, MountCase, main, read, write

# These come later than the call that they belong to, or only from some programs.
UNTIMELY = {"RELEASE", "RELEASEDIR", "FORGET", "BATCH_FORGET", "IOCTL", "INTERRUPT"}


class Case(MountCase):
    def setUp(self):
        super().setUp()
        self.path = self.file("x.h5")
        with h5py.File(self.path, "w", libver="latest") as f:
            f["d"] = numpy.arange(4)
            f["other"] = 1
            f.create_dataset("rows", (1,), maxshape=(None,), chunks=(8,))
            f["g/a"] = 1
            f["g/b"] = 2
        os.utime(self.path, (10 ** 9, 10 ** 9))
        os.mkdir(self.file("folder"))
        shutil.copy2(self.path, self.file("folder", "x.h5"))

    def mount(self, path, options):
        return Mount(path, "-f", options=f"{options},debug")

    def asked(self, m, function, *arguments):
        """The requests of a call, in their order."""
        before = len(m.said())
        function(*arguments)
        return [name for name in re.findall(r"opcode: (\w+)", m.said()[before:]) if name not in UNTIMELY]

    def open(self, path, flags=os.O_RDONLY):
        os.close(os.open(path, flags))


class Asked(Case):
    def test_a_file_that_nobody_changes(self):
        """All is kept, and nothing is opened or closed but the first file and directory."""
        with self.mount(self.path, "ro") as m:
            self.assertEqual(self.asked(m, read, m.at("d"))[:2], ["LOOKUP", "OPEN"])
            self.assertIn("OPENDIR", self.asked(m, os.listdir, m.at("g")))
            for function, name in (read, "d"), (os.stat, "d"), (os.stat, "g"), (os.listdir, "g"), (os.stat, "g/a"), (self.open, "d"):
                self.assertEqual(self.asked(m, function, m.at(name)), [], (function, name))
            self.assertEqual(self.asked(m, self.open, m.at("other")), ["LOOKUP"])
            self.assertEqual(self.asked(m, os.path.exists, m.at("none")), ["LOOKUP"])
            self.assertEqual(self.asked(m, os.path.exists, m.at("none")), [])
            self.assertNotIn("OPENDIR", self.asked(m, os.listdir, m.path))

    def test_a_file_that_others_may_change(self):
        """Nothing is kept. A file that is only read needs no flush."""
        with self.mount(self.path, "locking=no") as m:
            for _ in range(2):
                self.assertTrue({"LOOKUP", "OPEN", "READ"} <= set(self.asked(m, read, m.at("d"))))
                self.assertIn("LOOKUP", self.asked(m, os.stat, m.at("d")))
                self.assertIn("GETATTR", self.asked(m, os.stat, m.at("d")))
                self.assertIn("GETATTR", self.asked(m, os.stat, m.at("g")))
                self.assertIn("LOOKUP", self.asked(m, os.path.exists, m.at("none")))
                self.assertTrue({"OPENDIR", "READDIR"} <= set(self.asked(m, os.listdir, m.at("g"))))
                self.assertNotIn("FLUSH", self.asked(m, self.open, m.at("d")))

    def test_a_file_that_is_written(self):
        """Names and directories are kept, sizes and times of files are not."""
        with self.mount(self.path, "rw") as m:
            os.listdir(m.at("g"))
            os.listdir(m.at("g"))
            for name in "d", "g":
                os.stat(m.at(name))
            for _ in range(2):
                self.assertEqual(self.asked(m, os.stat, m.at("d")), ["GETATTR"])
                self.assertEqual(self.asked(m, os.stat, m.at("g")), [])
                self.assertEqual(self.asked(m, os.listdir, m.at("g")), ["OPENDIR"])
                self.assertEqual(self.asked(m, self.open, m.at("d")), ["OPEN"])
                self.assertEqual(self.asked(m, self.open, m.at("d"), os.O_RDWR), ["OPEN", "FLUSH"])
                self.assertEqual(self.asked(m, self.open, m.at("d"), os.O_WRONLY), ["OPEN", "FLUSH"])
            self.assertEqual(self.asked(m, os.path.exists, m.at("none")), ["LOOKUP"])
            self.assertEqual(self.asked(m, os.path.exists, m.at("none")), [])
            self.assertIn("FLUSH", self.asked(m, self.open, m.at("rows"), os.O_RDONLY | os.O_TRUNC))

    def test_views_of_a_file_that_is_written(self):
        """Directories that change without a request about them are asked for anew."""
        with self.mount(self.path, "rw") as m:
            for _ in range(3):
                requests = self.asked(m, os.listdir, m.at(".h5fs/json"))
            self.assertIn("READDIR", requests)
            self.assertIn("GETATTR", self.asked(m, os.stat, m.at(".h5fs/json")))

    def test_a_folder(self):
        """A listing has no attributes, for which files would be opened."""
        for options in "ro", "rw":
            with self.subTest(options), self.mount(self.file("folder"), options) as m:
                for _ in range(2):
                    for place in m.path, m.at("x.h5/g"):
                        requests = self.asked(m, os.listdir, place)
                        self.assertIn("READDIR", requests)
                        self.assertNotIn("READDIRPLUS", requests)
                    requests = self.asked(m, self.open, m.at("x.h5/d"))
                    self.assertIn("OPEN", requests)
                    self.assertNotIn("FLUSH", requests)
                    self.assertIn("LOOKUP", self.asked(m, os.path.exists, m.at("none")))
                if options == "rw":
                    self.assertIn("FLUSH", self.asked(m, self.open, m.at("x.h5/d"), os.O_WRONLY))


class Readahead(Case):
    def test_it_is_raised_when_the_first_file_is_opened(self):
        """To 2 MiB, unless it is more; what an administrator sets later stays. (All are multiples of any page size.)"""
        for path, name in (self.path, "d"), (self.file("folder"), "x.h5/d"):
            for before, after in (None, 2048), (1984, 2048), (2048, 2048), (2112, 2112), (64_000, 64_000), (0, 2048):
                with self.subTest(path=path, before=before), Mount(path, options="rw") as m:
                    device = os.stat(m.path).st_dev
                    place = f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb"
                    if not os.access(place, os.W_OK):
                        self.skipTest(f"{place} cannot be written")
                    if before is not None:
                        write(place, b"%d" % before)
                    os.listdir(m.path)
                    kept = int(read(place))
                    self.assertEqual(kept, before if before is not None else kept)
                    self.open(m.at(name))
                    self.assertEqual(int(read(place)), after)
                    write(place, b"64")
                    self.open(m.at(name))
                    self.assertEqual(int(read(place)), 64)


class Attributes(Case):
    def test_values_and_lists_fit_or_not(self):
        """As for getxattr(2): size 0 asks for the length, and one byte too few is ERANGE."""
        libc = ctypes.CDLL(None, use_errno=True)
        for path, place in (self.path, "d"), (self.file("folder"), "x.h5/d"), (self.file("folder"), "x.h5"):
            with self.subTest(path=path, place=place), Mount(path, options="rw") as m:
                file = os.fsencode(m.at(place))
                os.setxattr(file, "user.text", b"seven b")
                names = os.listxattr(file)
                self.assertIn("user.text", names)
                for length, call in ((7, lambda buf, size: libc.getxattr(file, b"user.text", buf, ctypes.c_size_t(size))),
                                     (sum(len(os.fsencode(name)) + 1 for name in names), lambda buf, size: libc.listxattr(file, buf, ctypes.c_size_t(size)))):
                    buf = ctypes.create_string_buffer(length + 10)
                    for size in 0, length, length + 1, length + 10:
                        self.assertEqual(call(buf, size), length)
                    for size in 1, length - 1:
                        self.assertEqual((call(buf, size), ctypes.get_errno()), (-1, errno.ERANGE))

    def test_of_a_folder(self):
        """A folder has those of the folder, and takes none."""
        with Mount(self.file("folder"), options="rw") as m:
            self.assertEqual(int(os.getxattr(m.path, "h5fs.pid")), m.daemon)
            for call in (lambda: os.setxattr(m.path, "user.a", b"x"), lambda: os.removexattr(m.path, "user.a"), lambda: os.setxattr(m.at("x.h5"), "trusted.a", b"x"),
                         lambda: os.removexattr(m.at("x.h5"), "trusted.a")):
                with self.assertRaises(OSError) as caught:
                    call()
                self.assertIn(caught.exception.errno, (errno.EROFS, errno.EOPNOTSUPP))
            self.assertErrno(errno.ENODATA, os.getxattr, m.at("x.h5"), "trusted.a")
            self.assertErrno(errno.EOPNOTSUPP, os.setxattr, m.at("x.h5"), "trusted.a", b"x")
            self.assertErrno(errno.EOPNOTSUPP, os.removexattr, m.at("x.h5"), "trusted.a")


class Descriptors(Case):
    def test_as_many_as_may_be(self):
        for path in self.path, self.file("folder"):
            with self.subTest(path), Mount(path, "--nofile=200:1000", H5FS, program="prlimit") as m, open(f"/proc/{m.daemon}/limits") as f:
                self.assertRegex(f.read(), r"(?m)^Max open files +1000 +1000 ")


if __name__ == "__main__":
    main()
