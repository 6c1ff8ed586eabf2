#!/usr/bin/python3
"""Datasets that keep their size are opened with O_TRUNC, as shells and cp do: new contents take the place of the old ones all at once, or
nothing changes."""
import errno
import os
import shutil
import signal
import subprocess
import unittest

import h5py
import numpy

import judges
from mountlib import H5FS, Mount, WriteCase, main, read, write

CUT = os.O_WRONLY | os.O_TRUNC
SHAPE = (60, 50)
TOTAL = 60 * 50 * 4
UNLIMITED = h5py.h5s.UNLIMITED


def low_level(f, name, shape=SHAPE, chunks=None, maxshape=None, early=False, compact=False, edges=False):
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if chunks:
        how.set_chunk(chunks)
    if early:
        how.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    if compact:
        how.set_layout(h5py.h5d.COMPACT)
    d = h5py.Dataset(h5py.h5d.create(f.id, name.encode(), h5py.h5t.STD_I32LE, h5py.h5s.create_simple(shape, maxshape), how))
    d[...] = 7


def make(path, libver):
    """A dataset of each layout and index, with filters and without."""
    data = numpy.arange(SHAPE[0] * SHAPE[1], dtype="<i4").reshape(SHAPE)
    with h5py.File(path, "w", libver=libver) as f:
        low_level(f, "contiguous")
        f.create_dataset("late", SHAPE, "<i4", fillvalue=3)
        low_level(f, "compact", compact=True)
        f["scalar"] = numpy.float64(5)
        low_level(f, "implicit", chunks=(7, 9), early=True)
        for name, filters in ("", {}), ("-filtered", {"compression": 4, "shuffle": True, "fillvalue": -1}):
            f.create_dataset("single" + name, data=data, chunks=SHAPE, **filters)
            f.create_dataset("fixed" + name, data=data, chunks=(7, 9), **filters)
            f.create_dataset("columns" + name, data=data, chunks=(7, 9), maxshape=(60, None), **filters)
            f.create_dataset("both" + name, data=data, chunks=(7, 9), maxshape=(60, None), fletcher32=True, **filters)
        f["contiguous"].attrs["units"] = "km"
        f["other"] = f["contiguous"]
        return [name for name in f if name != "other"]


class Contents(WriteCase):
    def setUp(self):
        super().setUp()
        self.dice = numpy.random.default_rng(15)

    def random(self, n):
        return self.dice.integers(0, 256, n, "u1").tobytes()

    def assertContents(self, path, expected):
        with judges.File(path) as f:
            for name, data in expected.items():
                self.assertEqual(f[name][...].tobytes(), data, name)
        done = subprocess.run([H5FS, "--check", path], capture_output=True, text=True, check=False)
        self.assertIn("no damage", done.stdout)

    def test_all_layouts(self):
        for libver in "earliest", "latest":
            path = self.file(f"{libver}.h5")
            names = make(path, libver)
            expected = {}
            with Mount(path, "-f", options="rw") as m:
                for name in names:
                    with self.subTest(libver=libver, name=name):
                        self.one(m, name)
                        expected[name] = read(m.at(name))
            self.assertContents(path, expected)
            self.assertLess(os.stat(path).st_blocks * 512, 600_000)

    def one(self, m, name):
        at = m.at(name)
        old = read(at)
        new, size = self.random(len(old)), len(old)
        for data, number in ((new[:-1], 0), (b"", 0), (new + b"x", errno.EFBIG)):
            fd = os.open(at, CUT)
            self.assertEqual(os.stat(at).st_size, size)
            if number:
                self.assertErrno(number, os.write, fd, data)
            else:
                os.write(fd, data)
            self.assertErrno(errno.EINVAL, os.fsync, fd)
            self.assertErrno(errno.EINVAL, os.close, fd)
            self.assertEqual(read(at), old)
        fd, reader = os.open(at, os.O_RDWR | os.O_TRUNC), os.open(at, os.O_RDONLY)
        os.write(fd, new[:size // 2])
        self.assertEqual((os.pread(fd, size, 0), os.pread(reader, size, 0)), (new[:size // 2], old))
        self.assertErrno(errno.EINVAL, os.fsync, fd)
        os.write(fd, new[size // 2:])
        self.assertEqual((os.pread(fd, size, 0), os.pread(reader, size, 0)), (new, old))
        os.fsync(fd)
        self.assertEqual((os.pread(fd, size, 0), os.pread(reader, size, 0)), (new, new))
        # From then on the descriptor is one as any other.
        os.pwrite(fd, b"in place"[:size], 0)
        os.close(fd)
        os.close(reader)
        self.assertEqual(read(at), (b"in place" + new[8:]))
        write(at, new)
        self.assertEqual(read(at), new)

    def test_as_files_have_it(self):
        """Gaps read as the fill value, appends go to the end, ftruncate() sets the size of the new contents."""
        path = self.file("file.h5")
        make(path, "latest")
        with Mount(path, options="rw") as m:
            for name, fill in ("late", 3), ("fixed-filtered", -1), ("fixed", 0), ("contiguous", 0), ("implicit", 0), ("compact", 0):
                with self.subTest(name=name):
                    whole = numpy.full(SHAPE, fill, "<i4").tobytes()
                    fd = os.open(m.at(name), os.O_RDWR | os.O_TRUNC | os.O_APPEND)
                    for piece in b"one", b"two", b"three":
                        os.write(fd, piece)
                    os.ftruncate(fd, 6)
                    os.ftruncate(fd, 1000)
                    self.assertErrno(errno.EFBIG, os.ftruncate, fd, TOTAL + 1)
                    os.write(fd, b"end")
                    self.assertEqual(os.pread(fd, TOTAL, 0), b"onetwo" + whole[6:1000] + b"end")
                    os.ftruncate(fd, 0)
                    os.ftruncate(fd, TOTAL)
                    os.close(fd)
                    self.assertEqual(read(m.at(name)), whole)
                    with open(m.at(name), "wb") as f:
                        f.seek(TOTAL - 4)
                        f.write(b"last")
                    self.assertEqual(read(m.at(name)), whole[:-4] + b"last")
            # By descriptor, as sort(1) does it; by name nothing can follow.
            for name in "contiguous", "scalar":
                old = read(m.at(name))
                fd = os.open(m.at(name), os.O_WRONLY)
                os.write(fd, b"x" * 8)
                os.ftruncate(fd, 0)
                os.pwrite(fd, b"y" * len(old), 0)
                self.assertEqual(read(m.at(name))[:8], b"x" * 8)
                os.close(fd)
                self.assertEqual(read(m.at(name)), b"y" * len(old))
                self.assertErrno(errno.EPERM, os.truncate, m.at(name), 0)

    def test_several_descriptors(self):
        """What is written in place meanwhile belongs to the old contents. Of two that replace the last one counts."""
        path = self.file("several.h5")
        make(path, "latest")
        expected = {}
        with Mount(path, options="rw") as m:
            for name in "contiguous", "fixed-filtered", "compact":
                old, one, two = read(m.at(name)), self.random(TOTAL), self.random(TOTAL)
                first, second, third = os.open(m.at(name), CUT), os.open(m.at(name), CUT), os.open(m.at(name), os.O_RDWR)
                os.write(first, one)
                os.pwrite(third, b"in place", 100)
                os.write(second, two)
                os.fsync(third)
                self.assertEqual(read(m.at(name)), old[:100] + b"in place" + old[108:])
                os.close(first)
                self.assertEqual(os.pread(third, TOTAL, 0), one)
                os.pwrite(third, b"in place", 100)
                self.assertEqual(read(m.at(name)), one[:100] + b"in place" + one[108:])
                os.close(second)
                self.assertEqual(os.pread(third, TOTAL, 0), two)
                os.close(third)
                expected[name] = two
            # The object has no name any more, or another shape than when the new contents began.
            fd = os.open(m.at("late"), CUT)
            os.unlink(m.at("late"))
            os.write(fd, one)
            os.close(fd)
            fd = os.open(m.at("fixed"), CUT)
            os.write(fd, one)
            os.truncate(m.at("fixed"), TOTAL // 2)
            self.assertErrno(errno.EINVAL, os.close, fd)
            self.assertEqual(os.stat(m.at("fixed")).st_size, TOTAL // 2)
        self.assertContents(path, expected)

    def test_the_log_says_why(self):
        path = self.file("log.h5")
        make(path, "latest")
        log = self.file("log")
        with Mount(path, options=f"rw,log={log}") as m:
            fd = os.open(m.at("fixed"), CUT)
            os.write(fd, b"12345")
            self.assertErrno(errno.EINVAL, os.close, fd)
        self.check_log(log)
        # The daemon ends before the program closes it.
        os.unlink(log)
        with Mount(path, options=f"rw,log={log}") as m:
            fd = os.open(m.at("fixed"), CUT)
            os.write(fd, b"12345")
            os.kill(m.daemon, signal.SIGTERM)
            self.assertEqual(m.wait(), 0)
            self.assertErrno(errno.ENOTCONN, os.close, fd)
        self.check_log(log)

    def check_log(self, log):
        self.assertRegex(read(log).decode(), r"/fixed, address \d+: new contents were dropped, the old ones stay: 5 bytes for a dataset of 12000")

    def test_refused(self):
        path = self.file("refused.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f["data"] = numpy.arange(10)
            layout = h5py.VirtualLayout((10,), "<i8")
            layout[:] = h5py.VirtualSource(".", "data", (10,))
            f.create_virtual_dataset("virtual", layout)
            f.create_dataset("raw", (4,), "<i4", external=[(self.file("raw.bin"), 0, 16)])[...] = 5
        for options in "rw", "rw,external-write", "rw,swmr":
            with Mount(path, options=options) as m:
                for name in ["virtual", "raw"] + ["data"] * ("swmr" in options):
                    self.assertErrno(errno.EPERM, os.open, m.at(name), CUT)

    def test_killed(self):
        """Before fsync the old contents are there, after it the new ones; the rest is space that nothing refers to."""
        for style in "earliest", "latest":
            for name in "contiguous", "fixed-filtered", "compact":
                path = self.file("killed.h5")
                make(path, style)
                with Mount(path, options="rw") as m:
                    old, new = read(m.at(name)), self.random(TOTAL)
                    fd = os.open(m.at(name), CUT)
                    os.write(fd, new)
                    done = os.open(m.at("scalar"), os.O_WRONLY)
                    os.write(done, b"01234567")
                    os.fsync(done)
                    os.close(done)
                    copy = self.file("before.h5")
                    shutil.copy(path, copy)
                    os.fsync(fd)
                    m.kill()
                self.assertContents(copy, {name: old, "scalar": b"01234567"})
                self.assertContents(path, {name: new, "scalar": b"01234567"})

    def test_space(self):
        """The old space is used again, and what was dropped is given up."""
        path = self.file("space.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f["one"] = numpy.zeros(1 << 20, "u1")
            f.create_dataset("two", data=numpy.zeros(1 << 20, "u1"), chunks=(1 << 14,))
        for _ in range(4):
            with Mount(path, options="rw") as m:
                for name in "one", "two":
                    for _ in range(3):
                        write(m.at(name), self.random(1 << 20))
                        fd = os.open(m.at(name), CUT)
                        os.write(fd, self.random(1 << 19))
                        other = os.open(m.at(name), os.O_RDONLY)
                        os.fsync(other)
                        os.close(other)
                        self.assertErrno(errno.EINVAL, os.close, fd)
        self.assertLess(os.stat(path).st_blocks * 512, 5 << 19)


class Programs(WriteCase):
    """Programs write their files in many ways."""

    def setUp(self):
        super().setUp()
        self.path = self.file("programs.h5")
        self.lines = b"".join(b"line %05d\n" % i for i in range(2000))
        with h5py.File(self.path, "w") as f:
            f["text"] = numpy.frombuffer(self.lines, "u1")
            f.create_dataset("filtered", data=numpy.frombuffer(self.lines, "u1"), chunks=(1000,), compression=1)
        self.back = b"".join(reversed(self.lines.splitlines(True)))
        write(self.file("back"), self.back)
        write(self.file("forth"), self.lines)

    def run_all(self, scripts):
        with Mount(self.path, options="rw") as m:
            for script in scripts:
                for name in "text", "filtered":
                    with self.subTest(script=script, name=name):
                        write(m.at(name), self.lines)
                        self.shell(script, m.at(name), self.file("back"))
                        self.assertEqual(read(m.at(name)), self.back)
        with judges.File(self.path) as f:
            for name in "text", "filtered":
                self.assertEqual(bytes(f[name][...]), self.back)

    def test_shell(self):
        self.run_all(['cp "$2" "$1"', 'cat "$2" > "$1"', 'dd if="$2" of="$1" bs=777 status=none', 'tee "$1" < "$2" > /dev/null',
                      'dd if="$2" of="$1" conv=fsync status=none', 'dd if="$2" of="$1" conv=notrunc status=none', 'sort -r -o "$1" "$1"',
                      'sort -r "$2" -o "$1"', 'cp --sparse=always "$2" "$1"', '{ head -c 100 "$2"; tail -c +101 "$2"; } | cat > "$1"',
                      'install -m 644 "$2" "$(dirname "$1")/new"; mv "$(dirname "$1")/new" "$1"', 'truncate -r "$1" "$1"; tac "$1" | cat > "$1.tmp"; mv "$1.tmp" "$1"'])

    def test_errors_are_heard(self):
        with Mount(self.path, options="rw") as m:
            for script in ('head -c 100 "$2" > "$1"', 'cp /dev/null "$1"', 'dd if="$2" of="$1" bs=100 count=3 status=none',
                           'cat "$2" "$2" > "$1"', 'head -c 7 "$2" > "$1.tmp"; mv "$1.tmp" "$1"'):
                for name in "text", "filtered":
                    done = subprocess.run(["sh", "-c", script, "sh", m.at(name), self.file("back")], capture_output=True, check=False)
                    self.assertNotEqual(done.returncode, 0, script)
                    self.assertEqual(read(m.at(name)), self.lines)

    @unittest.skipUnless(shutil.which("rsync"), "rsync is not installed")
    def test_rsync(self):
        self.run_all(['rsync -I --inplace "$2" "$1"', 'rsync -I "$2" "$1"', 'rsync -I --inplace --no-whole-file "$2" "$1"'])

    @unittest.skipUnless(shutil.which("vim"), "vim is not installed")
    def test_vim(self):
        self.run_all([f'vim -u NONE -es -N -c "set backupcopy={how}" -c "g/^/m0" -c wq "$1"' for how in ("yes", "no", "auto")])


main()
