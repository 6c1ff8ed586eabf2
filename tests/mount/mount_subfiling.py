#!/usr/bin/python3
"""Files of the subfiling driver: a stub, and the bytes in stripes in subfiles beside it."""
import errno
import fcntl
import glob
import os
import shutil
import subprocess
import tempfile
import unittest

import h5py
import numpy

from mountlib import H5FS, Mount, MountCase, main, read, refusal, tree, write
from object_server import ObjectServer
from remotelib import SAID
from subfiles import configuration, driver_info, spread, stub_of, with_driver_info


def fill(f):
    f["numbers"] = numpy.arange(25_000, dtype="<i4")
    f.create_dataset("group/chunked", data=numpy.arange(700, dtype="<f8"), chunks=(50,), compression="gzip")
    f["group/words"] = ["one", "two", "three"]
    f["group"].attrs["text"] = "words"
    for i in range(30):
        f[f"group/inner/{i:03d}"] = i


def run(*arguments):
    done = subprocess.run([H5FS, *arguments], capture_output=True, text=True, errors="surrogateescape", timeout=60)
    return done.returncode, done.stdout, done.stderr


class SubfilingCase(MountCase):
    @classmethod
    def setUpClass(cls):
        cls.whole, cls.expected = {}, None
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "f")
            for libver in "latest", "earliest":
                with h5py.File(path, "w", libver=libver) as f:
                    fill(f)
                    cls.at = f["numbers"].id.get_offset()
                cls.whole[libver] = read(path)
            with Mount(path) as m:
                cls.expected = tree(m.path)
        assert len(cls.expected) == 36

    def setUp(self):
        super().setUp()
        self.stub = self.file("f.h5")

    def content(self, stripe, count, **options):
        """With driver information."""
        return with_driver_info(self.whole["earliest"], driver_info(stripe, count, **options))

    def put(self, stripe=1000, count=3, **options):
        """The paths of the subfiles."""
        return spread(self.content(stripe, count), self.stub, stripe, count, **options)

    def gone(self, stripe, count):
        """The subfile that has the byte 60,000 of the data, and where its stripe begins in these."""
        place = (self.at + 60_000) // stripe
        return place % count, place * stripe - self.at

    def remove(self):
        for name in glob.glob(glob.escape(self.stub) + "*"):
            os.remove(name)

    def config(self):
        (name,) = glob.glob(glob.escape(self.stub) + "*.config")
        return name

    def assertShown(self, file=None, **options):
        before = {name: (read(name), os.stat(name).st_mtime_ns) for name in glob.glob(self.file("*")) if os.path.isfile(name)}
        with Mount(file or self.stub, **options) as m:
            self.assertEqual(tree(m.path), self.expected)
            self.assertEqual(m.said(), "")
        for name, (content, mtime) in before.items():
            self.assertEqual((read(name), os.stat(name).st_mtime_ns), (content, mtime))

    def assertRefused(self, text, status, **options):
        """By a command, or by a mount with these options."""
        found, said = refusal(self.stub, **options) if options else run("--list", self.stub)[::2]
        self.assertRegex(said, text)
        self.assertEqual((found, said.count("\n")), (status, 1), said)


class Subfiling(SubfilingCase):
    def test_stripes(self):
        for stripe, count in (1, 2), (512, 11), (100_000, 2), (1000, 1):
            with self.subTest(stripe=stripe, count=count):
                self.put(stripe, count)
                self.assertShown()
                self.remove()

    def test_a_stub_without_driver_information(self):
        for libver, old in ("earliest", True), ("latest", False):
            with self.subTest(libver=libver, old=old):
                spread(self.whole[libver], self.stub, 700, 4, old=old)
                self.assertShown()
                self.remove()
        # Without the information and without a configuration nobody knows the stripes.
        spread(self.whole["earliest"], self.stub, 700, 4, config=False)
        self.assertRefused("stripes", 4)

    def test_without_a_configuration(self):
        self.put(config=False)
        self.assertShown()

    def test_a_superblock_that_is_newer_than_the_stub(self):
        self.put()
        content = bytearray(read(self.stub))
        content[40:48] = (1 << 40).to_bytes(8, "little")  # the end of the file
        with open(self.stub, "r+b") as f:
            f.write(content)
        self.assertShown()

    def test_user_block(self):
        with h5py.File(self.file("block"), "w", libver="latest", userblock_size=1024) as f:
            fill(f)
        content = read(self.file("block"))
        spread(content, self.stub, 300, 3, stub=bytes(1024) + content[1024 : 1024 + 48])
        self.assertShown()

    def test_a_copy(self):
        """Its inode number is not the one in the names."""
        self.put(number=17)
        self.assertShown()
        # Its own are taken, if there are any.
        for name in glob.glob(self.stub + ".subfile_17*"):
            shutil.copy(name, name.replace("_17", f"_{os.stat(self.stub).st_ino}"))
            write(name, b"others")
        self.assertShown()
        # Of two others, none.
        for name in glob.glob(self.stub + f".subfile_{os.stat(self.stub).st_ino}*"):
            os.rename(name, name.replace(f"_{os.stat(self.stub).st_ino}", "_18"))
        self.assertRefused("several sets", 6)

    def test_names_that_are_not_of_the_set(self):
        self.put(number=17)
        for name in ".subfile_", ".subfile_x.config", ".subfile_18.configs", ".subfile_18_1_of_", ".subfile_18_1", ".subfile_18_1_of_3x", ".subfile_99999999999999999999.config", "x.subfile_18.config":
            write(self.stub + name, b"x")
        self.assertShown()

    def test_all_in_one(self):
        """Joined files, and the only subfile of a file, are plain HDF5 files."""
        write(self.stub, self.content(1000, 3))
        self.assertShown()
        self.remove()
        (only,) = self.put(1000, 1)
        self.assertShown(only)

    def test_a_subfile_is_not_the_file(self):
        first, *_ = self.put()
        status, said = refusal(first)
        self.assertEqual(status, 6)
        self.assertRegex(said, "one of the subfiles of a file: f.h5 stands for all")

    def test_times_are_the_newest(self):
        paths = self.put()
        for name in (*paths, self.stub):
            os.utime(name, (10**9, 10**9))
        os.utime(paths[1], (10**9, 10**9 + 5))
        with Mount(self.stub) as m:
            self.assertEqual(os.stat(m.at("numbers")).st_mtime, 10**9 + 5)

    def test_writing_is_refused(self):
        self.put()
        self.assertRefused("a file of the subfiling driver is not supported", 6, options="rw")
        self.assertShown()

    def test_locks(self):
        paths = self.put()
        with open(paths[2], "rb") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            self.assertRefused(os.path.basename(paths[2]), 5)
            fcntl.flock(f, fcntl.LOCK_UN)
            with Mount(self.stub):
                for name in (*paths, self.stub):
                    with open(name, "rb") as other:
                        self.assertErrno(errno.EWOULDBLOCK, fcntl.flock, other, fcntl.LOCK_EX | fcntl.LOCK_NB)

    @unittest.skipIf("libcurl none" in SAID, "built without libcurl")
    def test_behind_a_url(self):
        self.put()
        with ObjectServer(self.folder) as server:
            status, said = refusal(server.url("f.h5"))
        self.assertEqual(status, 6)
        self.assertRegex(said, "behind a URL its subfiles are not read")

    def test_by_an_external_link(self):
        self.put()
        with h5py.File(self.file("main.h5"), "w") as f:
            f["link"] = h5py.ExternalLink("f.h5", "/")
        with Mount(self.file("main.h5")) as m:
            self.assertEqual(tree(m.at("link")), self.expected)

    def test_in_a_folder(self):
        os.mkdir(self.file("folder"))
        self.stub = self.file("folder", "f.h5")
        self.put(number=17)
        with Mount(self.file("folder")) as m:
            self.assertEqual(tree(m.at("f.h5")), self.expected)
            self.assertEqual(len(os.listdir(m.path)), 5)

    def test_commands(self):
        self.put()
        write(self.file("plain.h5"), self.content(1000, 3))
        for command in ("--list",), ("--cat", "numbers"), ("--check",):
            option, *rest = command
            status, out, said = run(option, self.stub, *rest)
            self.assertEqual((status, out.replace("f.h5", "plain.h5"), said), run(option, self.file("plain.h5"), *rest))
            self.assertEqual(status, 0)
        status, _, said = run("--recover", self.stub)
        self.assertEqual(status, 6)
        self.assertRegex(said, "writing a file of the subfiling driver is not supported")
        self.assertShown()

    def test_check_tells_what_is_missing(self):
        paths = self.put(20_000, 10)
        gone = paths[self.gone(20_000, 10)[0]]
        os.remove(gone)
        status, out, said = run("--check", self.stub)
        self.assertEqual(status, 4)
        self.assertRegex(out + said, f"missing: {os.path.basename(gone)}")


class Damage(SubfilingCase):
    def test_a_subfile_is_missing(self):
        paths = self.put(20_000, 10)
        i, begin = self.gone(20_000, 10)
        os.remove(paths[i])
        with Mount(self.stub) as m:
            self.assertEqual(m.said().count("\n"), 1)
            self.assertRegex(m.said(), f"missing: {os.path.basename(paths[i])};")
            self.assertErrno(errno.EIO, read, m.at("numbers"))
            with open(m.at("numbers"), "rb", buffering=0) as f:
                first = begin // 4096 * 4096
                self.assertEqual(f.read(4096), self.expected["numbers"][1][:4096])
                self.assertErrno(errno.EIO, os.pread, f.fileno(), 4096, first + 4096)
                self.assertErrno(errno.EIO, os.pread, f.fileno(), 4096, first)
            self.assertEqual(read(m.at("group", "words")), self.expected["group/words"][1])

    def test_a_subfile_is_short(self):
        paths = self.put(20_000, 10)
        i, begin = self.gone(20_000, 10)
        os.truncate(paths[i], 10_000)
        with Mount(self.stub) as m:
            with open(m.at("numbers"), "rb", buffering=0) as f:
                with self.assertRaises(OSError):
                    os.pread(f.fileno(), 4096, (begin + 10_000) // 4096 * 4096)
                self.assertEqual(f.read(4096), self.expected["numbers"][1][:4096])

    def test_the_last_are_short(self):
        paths = spread(self.whole["earliest"], self.stub, 100_000, 2)
        os.truncate(paths[1], 0)
        with Mount(self.stub) as m:
            self.assertEqual(m.said().count("\n"), 1)
            self.assertRegex(m.said(), "truncated: 100000 bytes of")

    def test_the_superblock_is_missing(self):
        paths = self.put()
        os.remove(paths[0])
        self.assertRefused(os.path.basename(paths[0]) + " is missing", 4)

    def test_all_are_missing(self):
        paths = self.put()
        for name in paths:
            os.remove(name)
        self.assertRefused("subfiles .* are missing", 4)
        os.remove(self.config())
        self.assertRefused("without its subfiles .* beside it", 4)

    def test_odd_configurations(self):
        spread(self.whole["latest"], self.stub, 1000, 3)
        good = read(self.config())
        for old, new, text, status in (
            (b"stripe_size=1000", b"stripe_size=0", "stripe_size is 0", 4),
            (b"stripe_size=1000", b"stripe_size=-1", "stripe_size is no number", 4),
            (b"stripe_size=1000", b"stripe_size=9223372036854775808", "stripe_size is no number", 4),
            (b"stripe_size=1000", b"stripe_size=", "stripe_size is 0", 4),
            (b"stripe_size=1000", b"", "stripe_size is missing", 4),
            (b"subfile_count=3", b"subfile_count=0", "subfile_count is 0", 4),
            (b"subfile_count=3", b"subfile_count=999999999", "more than 4096 subfiles", 6),
            (b"subfile_count=3", b"subfile_count=4", "", 4),
            (b"subfile_dir=/", b"subfile_dir=\0/", "subfile_dir is no path", 4),
            (b"subfile_dir=/", b"subfile_dir=" + b"/" * 5000, "subfile_dir is no path", 4),
            (good, b"", "stripe_size is missing", 4),
            (good, bytes(range(256)) * 1000, "stripe_size is missing", 4),
        ):
            with self.subTest(new=new[:40]):
                write(self.config(), good.replace(old, new))
                if new == b"subfile_count=4":  # names of others
                    self.assertRefused("subfiles .* are missing", 4)
                else:
                    self.assertRefused(text, status)
        # A stripe that no file fills.
        write(self.config(), good.replace(b"stripe_size=1000", b"stripe_size=4611686018427387904"))
        self.assertNotEqual(run("--check", self.stub)[0], 0)
        write(self.config(), good)
        self.assertShown()

    def test_a_configuration_that_contradicts_the_file(self):
        self.put()
        good = read(self.config())
        for old, new in (b"stripe_size=1000", b"stripe_size=999"), (b"subfile_count=3", b"subfile_count=2"):
            write(self.config(), good.replace(old, new))
            self.assertRefused("it contradicts the driver information of the file", 4)

    def test_odd_driver_information(self):
        for change, text, status in (
            ({"magic": 1}, "magic number 0x1", 4),
            ({"version": 2}, "version 2 of subfiling", 6),
            ({"stripe": 0}, "stripes of 0 bytes", 4),
            ({"stripe": -5}, "stripes of -5 bytes", 4),
            ({"count": 0}, "0 subfiles", 4),
            ({"count": -1}, "-1 subfiles", 4),
            ({"count": 1 << 40}, "without its subfiles", 4),
        ):
            with self.subTest(change=change):
                information = driver_info(**{"stripe": 1000, "count": 3, **change})
                write(self.stub, stub_of(with_driver_info(self.whole["earliest"], information)))
                self.assertRefused(text, status)
        write(self.stub, stub_of(with_driver_info(self.whole["earliest"], driver_info(1000, 3)[:30])))
        self.assertRefused("driver information", 4)

    def test_information_of_other_subfiles(self):
        """What the subfiles hold says that they are cut otherwise."""
        spread(self.content(2000, 3), self.stub, 1000, 3)
        write(self.stub, stub_of(self.content(1000, 3)))
        self.assertRefused("not that of these subfiles", 4)


class Elsewhere(SubfilingCase):
    """Subfiles in another folder: `external` says whether they are opened."""

    def test_beneath(self):
        os.mkdir(self.file("sub"))
        self.put(folder=self.file("sub"))
        self.assertShown()
        self.assertShown(options="external=any")
        self.assertRefused("are missing", 4, options="external=none")
        # By a path of their own.
        number = os.stat(self.stub).st_ino
        write(self.config(), configuration(self.stub, number, 1000, 3, "sub"))
        self.assertShown()
        for path in "..", "/", "../" + os.path.basename(self.folder) + "/../sub", "sub\0":
            write(self.config(), configuration(self.stub, number, 1000, 3, path))
            self.assertRefused("are missing|is no path", 4)

    def test_outside(self):
        os.mkdir(self.file("here"))
        os.mkdir(self.file("there"))
        self.stub = self.file("here", "f.h5")
        paths = self.put(folder=self.file("there"))
        for options in None, "external=none":
            self.assertRefused("are missing", 4, options=options)
        self.assertShown(options="external=any")
        # A link leads no farther.
        for name in paths:
            os.symlink(name, self.file("here", os.path.basename(name)))
        self.assertRefused("are missing", 4, options="external=beneath")

    def put_configuration(self, folder, name=None):
        """The stub names the folder of the configuration, which says that the subfiles are in another."""
        os.makedirs(self.file("there", "sub"), exist_ok=True)
        os.makedirs(self.file(folder), exist_ok=True)
        self.remove()
        content = self.content(1000, 3, folder=name or self.file(folder).encode())
        paths = spread(content, self.stub, 1000, 3, folder=self.file("there", "sub"))
        config = self.config()
        os.rename(config, self.file(folder, os.path.basename(config)))
        return paths, self.file(folder, os.path.basename(config))

    def test_a_configuration_elsewhere(self):
        for name in None, b"there", b"./there/sub/..":
            self.put_configuration("there", name)
            self.assertShown()
            self.assertShown(options="external=any")
            self.assertRefused("without its subfiles .* or their configuration in ", 4, options="external=none")
        # One beside it counts first.
        paths, config = self.put_configuration("there")
        shutil.copy(config, self.file(os.path.basename(config)))
        write(config, b"nonsense")
        self.assertShown()
        os.remove(self.config())
        self.assertRefused("stripe_size is missing", 4)
        # The stub says all, and its subfiles are beside it.
        os.remove(config)
        for path in paths:
            os.rename(path, self.file(os.path.basename(path)))
        self.assertShown()

    def test_a_configuration_outside(self):
        os.mkdir(self.file("here"))
        self.stub = self.file("here", "f.h5")
        for name in None, b"../there":
            self.put_configuration("there", name)
            for options in None, "external=none":
                self.assertRefused("without its subfiles .* or their configuration in ", 4, options=options)
            self.assertShown(options="external=any")
        for name in b"/", b"\1", b"x" * 4095, b"/dev/null":
            self.put_configuration("there", name)
            self.assertRefused("without its subfiles", 4, options="external=any")
        for name in b"x\0y", b"x" * 4096:
            self.put_configuration("there", name)
            self.assertRefused("driver information", 4)

    def test_guarded(self):
        paths = self.put()
        self.assertShown(options="external=none")
        os.chmod(paths[1], 0o600)
        with Mount(self.stub, options="external=none") as m:
            self.assertIn(os.path.basename(paths[1]), m.said())
        self.assertShown()
        os.chmod(paths[1], 0o644)
        os.chmod(self.config(), 0o600)
        self.assertShown(options="external=none")  # the stub says all

    def test_rights_that_the_driver_gives(self):
        """Its subfiles are never writable for the group; a stub and its configuration may be."""
        self.put()
        for name in self.stub, self.config():
            os.chmod(name, 0o664)
        self.assertShown(options="external=none")


if __name__ == "__main__":
    main()
