#!/usr/bin/python3
"""Changing what is there through a mount: overwriting, truncating, tools that copy; and what a mount for writing refuses."""
import errno
import fcntl
import mmap
import os
import re
import shutil
import stat
import subprocess
import unittest

import h5py
import numpy

import judges
from mountlib import H5FS, Mount, WriteCase, main, read, refusal

INT = numpy.dtype("<i4")
WRITE = os.O_WRONLY


class ChangeCase(WriteCase):
    def make(self, libver="latest"):
        path = self.file(f"write-{libver}.h5")
        with h5py.File(path, "w", libver=libver) as f:
            for name, options in (("contiguous", {}), ("chunked", {"chunks": (7, 3)}),
                                  ("deflated", {"chunks": (7, 3), "compression": "gzip", "shuffle": True, "fletcher32": True}),
                                  ("growing", {"chunks": (7, 3), "maxshape": (None, 10), "fillvalue": 9}),
                                  ("bounded", {"chunks": (7, 3), "maxshape": (25, 10), "compression": "gzip"})):
                f.create_dataset(name, data=numpy.arange(200).reshape(20, 10), dtype=INT, **options)
            f["scalar"] = numpy.array(1.5, "<f8")
            f["big"] = numpy.arange(10, dtype=">f8")
            compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            compact.set_layout(h5py.h5d.COMPACT)
            space = h5py.h5s.create_simple((8,))
            h5py.h5d.create(f.id, b"compact", h5py.h5t.STD_I32LE, space, compact).write(
                h5py.h5s.ALL, h5py.h5s.ALL, numpy.arange(8, dtype=INT))
            f.create_dataset("late", (5, 3), INT, fillvalue=4)
            f["none"] = numpy.zeros((5, 0), INT)
            f.create_dataset("empty", (0, 4), INT, maxshape=(None, 4), chunks=(2, 4))
            f["strings"] = numpy.array(["one", "two"], dtype=object)
            f["null"] = h5py.Empty(INT)
            f["type"] = INT
            f["group/inner"] = 1
            f["link"] = h5py.SoftLink("scalar")
            layout = h5py.VirtualLayout((20, 10), INT)
            layout[:, :] = h5py.VirtualSource(".", "contiguous", (20, 10))
            if libver == "latest":
                f.create_virtual_dataset("virtual", layout)
            f.create_dataset("raw", (4,), INT, external=[(self.file("raw.bin"), 0, 16)])
            f["raw"][...] = numpy.arange(4)
            f["scalar"].attrs["unit"] = "m"
        return path

    def values(self, path, *names):
        with h5py.File(path, "r") as f:
            return {name: f[name][...] for name in names}


class Overwrite(ChangeCase):
    def test_ranges(self):
        """Inside, across chunks, at both ends, all of it; while others look."""
        for libver in ("earliest", "latest"):
            path = self.make(libver)
            names = ("contiguous", "chunked", "deflated", "growing", "bounded", "compact", "late", "big", "scalar")
            expected = {name: bytearray(v.tobytes()) for name, v in self.values(path, *names).items()}
            shapes = {name: (v.dtype, v.shape) for name, v in self.values(path, *names).items()}
            with Mount(path, options="rw") as m:
                for name, data in expected.items():
                    fd, reader = m.open(name, WRITE), m.open(name, os.O_RDONLY)
                    for begin, end in ((0, 1), (len(data) - 1, len(data)), (3, 7), (len(data) // 3, len(data) // 2 + 1), (0, len(data))):
                        data[begin:end] = os.urandom(end - begin)
                        self.assertEqual(os.pwrite(fd, data[begin:end], begin), end - begin)
                        self.assertEqual(os.pread(reader, 10_000, 0), data, (libver, name, begin, end))
                    self.assertEqual(os.stat(m.at(name)).st_size, len(data))
                    os.close(fd)
            self.assertStored(path, **{name: numpy.frombuffer(bytes(data), shapes[name][0]).reshape(shapes[name][1])
                                       for name, data in expected.items()})

    def test_dd(self):
        path = self.make()
        with open(self.file("in"), "wb") as f:
            f.write(b"abcdefghijkl")
        with Mount(path, options="rw") as m:
            for name in ("contiguous", "deflated"):
                self.shell('dd if="$2" of="$1" bs=4 seek=17 conv=notrunc status=none', m.at(name), self.file("in"))
        expected = numpy.arange(200, dtype=INT)
        expected[17:20] = numpy.frombuffer(b"abcdefghijkl", INT)
        expected = expected.reshape(20, 10)
        self.assertStored(path, contiguous=expected, deflated=expected)

    def test_shell_reads_and_writes(self):
        path = self.make()
        with Mount(path, options="rw") as m:
            self.shell('exec 3<>"$1"; printf abcd >&3; head -c 4 <&3 >/dev/null; printf efgh >&3; exec 3>&-', m.at("compact"))
        expected = numpy.arange(8, dtype=INT)
        expected[0], expected[2] = (numpy.frombuffer(text, INT)[0] for text in (b"abcd", b"efgh"))
        # head takes 4 bytes or a whole block of them, as its pipe does; so only the first is sure.
        with judges.File(path) as f:
            self.assertEqual(f["compact"][0], expected[0])

    def test_mapped(self):
        path = self.make()
        expected = numpy.arange(200, dtype=INT).reshape(20, 10)
        with Mount(path, options="rw") as m:
            for name in ("chunked", "deflated", "contiguous"):
                array = numpy.memmap(m.at(name), INT, "r+", shape=(20, 10))
                self.assertEqual(array[3, 4], 34)
                array[3:9, 2:8] = -5
                array.flush()
                self.assertEqual(read(m.at(name)), array.tobytes())
                del array
        expected[3:9, 2:8] = -5
        self.assertStored(path, chunked=expected, deflated=expected, contiguous=expected)

    def test_a_mapped_page_goes_no_further_than_the_end(self):
        """The kernel takes an incomplete row of somebody else for a part of the page."""
        path = self.make()
        with Mount(path, options="rw") as m:
            fd, other = m.open("growing", os.O_RDWR), m.open("growing", os.O_RDWR)
            with mmap.mmap(fd, 800) as mapped:
                self.assertEqual(mapped[4], 1)  # the page is there
                os.pwrite(other, b"abc", 800)
                mapped[796:800] = b"wxyz"
                mapped.flush()
            os.fsync(fd)
            self.assertEqual(os.stat(m.at("growing")).st_size, 800)
            os.pwrite(other, 37 * b"d", 803)
            os.close(fd)
            os.close(other)
            self.assertEqual(read(m.at("growing"))[796:], b"wxyzabc" + 37 * b"d")

    def test_a_mapped_reader_sees_writes(self):
        path = self.make()
        with Mount(path, options="rw") as m:
            fd, reader = m.open("deflated", WRITE), m.open("deflated", os.O_RDONLY)
            for i in range(5):
                os.pwrite(fd, bytes([i] * 8), 8)
                self.assertEqual(os.pread(reader, 8, 8), bytes([i] * 8))
                with mmap.mmap(m.open("deflated", os.O_RDONLY), 0, prot=mmap.PROT_READ) as mapped:
                    self.assertEqual(mapped[8:16], bytes([i] * 8))

    def test_what_reads_after_writing_uses(self):
        """What was decoded before is not found again: attributes of the object, data of a virtual dataset, and its text."""
        path = self.make()
        with Mount(path, options="rw") as m:
            virtual, text = read(m.at("virtual")), m.at(".h5fs", "csv", "virtual.csv")
            self.assertEqual(read(m.at("contiguous")), virtual)
            before = read(text)
            with open(m.at("contiguous"), "r+b") as f:
                f.seek(16)
                f.write(b"seen")
            self.assertEqual(read(m.at("virtual")), virtual[:16] + b"seen" + virtual[20:])
            self.assertEqual(read(text), before.replace(b"\n0,1,2,3,4,", b"\n0,1,2,3,%d," % int.from_bytes(b"seen", "little")))
            self.assertEqual(os.getxattr(m.at("late"), "h5fs.storage"), b"0")
            with open(m.at("late"), "r+b") as f:
                f.write(b"late")
            self.assertEqual(os.getxattr(m.at("late"), "h5fs.storage"), b"60")
            os.truncate(m.at("growing"), 400)
            self.assertEqual(os.getxattr(m.at("growing"), "h5fs.shape"), b"10,10")


    def test_a_virtual_dataset_follows_its_sources(self):
        path = self.make()
        with h5py.File(path, "a", libver="latest") as f:
            for name, followed in (b"follower", b"growing"), (b"follower's", b"follower"):
                source = h5py.h5s.create_simple((20, 10), (h5py.h5s.UNLIMITED, 10))
                space = h5py.h5s.create_simple((20, 10), (h5py.h5s.UNLIMITED, 10))
                for each in (source, space):
                    each.select_hyperslab((0, 0), (h5py.h5s.UNLIMITED, 1), (1, 10), (1, 10))
                create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                create.set_virtual(space, b".", followed, source)
                h5py.h5d.create(f.id, name, h5py.h5t.STD_I32LE, h5py.h5s.create_simple((0, 10), (h5py.h5s.UNLIMITED, 10)), create)
        for name in "follower", "follower's":
            self.assertFollows(path, name)

    def assertFollows(self, path, name):
        """The virtual dataset is all that anybody looks at."""
        with Mount(path, options="rw") as m:
            expected = read(m.at("growing"))
            self.assertEqual(read(m.at(name)), expected)
            for row in (b"a", b"b"):
                with open(m.at("growing"), "ab") as f:
                    f.write(40 * row)
                expected += 40 * row
                self.assertEqual(read(m.at(name)), expected)
            with open(m.at("growing"), "ab", buffering=0) as f:
                f.write(40 * b"c")
                # Whoever looks now sees the row only when the next reader has come.
                self.assertErrno(errno.EPERM, os.open, m.at(name), os.O_RDWR)
                self.assertEqual(read(m.at(name)), expected + 40 * b"c")
            os.truncate(m.at("growing"), 80)
            self.assertEqual(read(m.at(name)), expected[:80])


class Truncate(ChangeCase):
    def test_rows(self):
        for libver in ("earliest", "latest"):
            path = self.make(libver)
            expected = numpy.arange(200, dtype=INT).reshape(20, 10)
            with Mount(path, options="rw") as m:
                for rows in (13, 14, 2, 5, 0, 20, 31):
                    for name in ("growing", "bounded"):
                        if name == "bounded" and rows > 25:
                            self.assertErrno(errno.EFBIG, os.truncate, m.at(name), rows * 40)
                        else:
                            os.truncate(m.at(name), rows * 40)
                            self.assertEqual(os.stat(m.at(name)).st_size, rows * 40)
                    expected = numpy.concatenate([expected[:rows], numpy.full((max(0, rows - len(expected)), 10), 9, INT)])
                    self.assertEqual(read(m.at("growing")), expected.tobytes())
            self.assertStored(path, growing=expected, bounded=numpy.zeros((20, 10), INT))

    def test_no_whole_rows(self):
        path = self.make()
        with Mount(path, options="rw") as m:
            for size in (1, 39, 41, 399, 799, 801):
                for name in ("growing", "bounded"):
                    self.assertErrno(errno.EINVAL, os.truncate, m.at(name), size)
            self.assertErrno(errno.EINVAL, os.ftruncate, m.open("growing", WRITE), 4)
        self.assertStored(path, **self.values(path, "growing", "bounded"))

    def test_to_the_present_size(self):
        path = self.make()
        before = os.stat(path).st_mtime_ns
        with Mount(path, options="rw") as m:
            for name in ("contiguous", "chunked", "growing", "compact", "scalar", "none", "empty"):
                size = os.stat(m.at(name)).st_size
                os.truncate(m.at(name), size)
                fd = m.open(name, WRITE)
                os.ftruncate(fd, size)
                os.close(fd)
                self.assertEqual(os.stat(m.at(name)).st_size, size)
            self.assertEqual(os.stat(path).st_mtime_ns, before)

    def test_what_cannot_change_its_size(self):
        path = self.make()
        names = ("contiguous", "compact", "scalar", "big", "late")
        before = self.values(path, *names)
        with Mount(path, options="rw") as m:
            for name in names:
                with self.subTest(name=name):
                    for size in (0, 1, 40, 4000):
                        self.assertErrno(errno.EPERM, os.truncate, m.at(name), size)
            self.assertErrno(errno.EPERM, os.truncate, m.at("none"), 4)
        self.assertStored(path, **before)

    def test_opening_cuts(self):
        path = self.make()
        with Mount(path, options="rw") as m:
            self.shell(': > "$1"; printf "%s" 0123456789012345 > "$2"', m.at("growing"), m.at("empty"))
            self.assertEqual(os.stat(m.at("growing")).st_size, 0)
            # As it is closed it is committed, though nothing was written.
            fd = os.open(m.at("bounded"), os.O_RDONLY | os.O_TRUNC)
            os.close(fd)
            m.kill()
        self.assertStored(path, growing=numpy.zeros((0, 10), INT), bounded=numpy.zeros((0, 10), INT),
                          empty=numpy.frombuffer(b"0123456789012345", INT).reshape(1, 4))

    def test_a_truncated_descriptor_commits_as_it_closes(self):
        path = self.make()
        with Mount(path, options="rw") as m:
            fd = os.open(m.at("growing"), os.O_RDWR)
            os.ftruncate(fd, 880)
            os.close(fd)
            m.kill()
        self.assertStored(path, growing=numpy.concatenate([numpy.arange(200, dtype=INT), numpy.full(20, 9, INT)]).reshape(22, 10))


class Tools(ChangeCase):
    def source(self, rows):
        array = numpy.random.default_rng(rows).integers(-1000, 1000, (rows, 10)).astype(INT)
        with open(self.file("source"), "wb") as f:
            f.write(array.tobytes())
        return array

    def test_cp(self):
        path = self.make()
        array = self.source(32)
        with Mount(path, options="rw") as m:
            self.shell('cp "$2" "$1"; cat "$2" > "$3"', m.at("growing"), self.file("source"), m.at("empty"))
            run = subprocess.run(["cp", self.file("source"), m.at("contiguous")], capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 1)
            self.assertIn(os.strerror(errno.EFBIG), run.stderr)
            # cat, too, hears that its last bytes are no row.
            run = subprocess.run(["sh", "-c", 'head -c 39 "$1" > "$2"', "sh", self.file("source"), m.at("growing")], check=False)
            self.assertNotEqual(run.returncode, 0)
            self.shell('cp "$2" "$1"', m.at("growing"), self.file("source"))
        self.assertStored(path, growing=array, contiguous=numpy.arange(200, dtype=INT).reshape(20, 10),
                          empty=array.reshape(80, 4))

    @unittest.skipUnless(shutil.which("rsync"), "rsync is not installed")
    def test_rsync_in_place(self):
        for rows in (20, 40, 7):
            for how in ("--whole-file", "--no-whole-file"):
                path = self.make()
                with self.subTest(rows=rows, how=how), Mount(path, options="rw") as m:
                    array = self.source(rows)
                    for name in ("growing", "contiguous") if rows == 20 else ("growing",):
                        self.shell('rsync --inplace --checksum "$1" "$2" "$3"', how, self.file("source"), m.at(name))
                        self.assertEqual(read(m.at(name)), array.tobytes())
                self.assertStored(path, growing=array)

    def test_numpy(self):
        path = self.make()
        array = self.source(12)
        with Mount(path, options="rw") as m:
            with open(m.at("growing"), "wb") as f:
                array.tofile(f)
            with open(m.at("growing"), "ab") as f:
                array.tofile(f)
        self.assertStored(path, growing=numpy.concatenate([array, array]))

    def test_times(self):
        path = self.make()
        with Mount(path, options="rw") as m:
            before = os.stat(m.at("contiguous")).st_mtime_ns
            self.shell('touch "$1"; touch -d 2001-01-01 "$1"', m.at("contiguous"))
            os.utime(m.at("group"), (1, 2))
            self.assertEqual(os.stat(m.at("contiguous")).st_mtime_ns, before)


class Refused(ChangeCase):
    def test_what_is_no_regular_file(self):
        path = self.make()
        before = read(path)
        with Mount(path, options="rw") as m:
            self.assertErrno(errno.EPERM, os.mkfifo, m.at("new"))
            self.assertErrno(errno.EPERM, os.mknod, m.at("group/new"), stat.S_IFSOCK)
            self.assertEqual(os.getxattr(m.at("scalar"), "user.unit"), b"m")
            self.assertErrno(errno.EISDIR, os.open, m.at("group"), WRITE)
        self.assertEqual(read(path), before)

    def test_owner_and_mode(self):
        """They are the mount's. To set them does nothing, but with allow_other nobody shall rely on it."""
        path = self.make()
        before = read(path)
        for options, number in (("rw", 0), ("rw,allow_other", errno.EPERM)):
            with Mount(path, options=options) as m:
                for name in ("contiguous", "group", "strings"):
                    here, was = m.at(name), os.stat(m.at(name))
                    other = was.st_mode ^ 0o200
                    for function, arguments in ((os.chmod, (here, stat.S_IMODE(other))), (os.chown, (here, was.st_uid + 1, -1)),
                                                (os.chown, (here, -1, was.st_gid + 1))):
                        with self.subTest(name=name, options=options, function=function.__name__):
                            if number:
                                self.assertErrno(number, function, *arguments)
                            else:
                                function(*arguments)
                    os.chmod(here, stat.S_IMODE(was.st_mode))
                    os.chown(here, was.st_uid, was.st_gid)
                    os.utime(here, (1, 1))
                    now = os.stat(here)
                    self.assertEqual((now.st_mode, now.st_uid, now.st_gid), (was.st_mode, was.st_uid, was.st_gid))
        with Mount(path) as m:
            for function, arguments in ((os.chmod, (0o600,)), (os.chown, (1, 1)), (os.utime, ())):
                self.assertErrno(errno.EROFS, function, m.at("contiguous"), *arguments)
        self.assertEqual(read(path), before)

    def test_what_cannot_be_written(self):
        path = self.make()
        with h5py.File(self.file("other.h5"), "w") as f:
            f["data"] = numpy.arange(3)
        with h5py.File(path, "a") as f:
            f["other"] = h5py.ExternalLink("other.h5", "data")
        files = ("type", "virtual", "raw", "other", "null")
        with Mount(path, options="rw") as m:
            for name in files:
                with self.subTest(name=name):
                    self.assertEqual(oct(os.stat(m.at(name)).st_mode), oct(stat.S_IFREG | 0o444))
                    for flags in (WRITE, os.O_RDWR, os.O_WRONLY | os.O_APPEND, os.O_RDONLY | os.O_TRUNC):
                        self.assertErrno(errno.EPERM, os.open, m.at(name), flags)
                    self.assertErrno(errno.EPERM, os.truncate, m.at(name), 0)

    def test_external_write(self):
        path = self.make()
        with Mount(path, options="rw,external-write") as m:
            self.assertEqual(oct(os.stat(m.at("raw")).st_mode), oct(stat.S_IFREG | 0o644))
            fd = m.open("raw", os.O_RDWR)
            os.pwrite(fd, b"abcd", 4)
            self.assertEqual(os.pread(fd, 100, 0), bytes(4) + b"abcd" + numpy.array([2, 3], INT).tobytes())
            os.close(fd)
        self.assertEqual(read(self.file("raw.bin"))[4:8], b"abcd")

    def test_modes(self):
        path = self.make()
        for options, file, folder in (("rw", 0o644, 0o755), ("rw,fmask=066,dmask=077", 0o600, 0o700), ("ro", 0o444, 0o555),
                                      ("rw,ro", 0o444, 0o555)):
            with self.subTest(options=options), Mount(path, options=options) as m:
                for name in ("contiguous", "growing", "compact", "deflated"):
                    self.assertEqual(oct(stat.S_IMODE(os.stat(m.at(name)).st_mode)), oct(file))
                for name in ("", "group"):
                    self.assertEqual(oct(stat.S_IMODE(os.stat(m.at(name)).st_mode)), oct(folder))

    def test_a_mount_for_reading(self):
        path = self.make()
        before = read(path)
        with Mount(path) as m:
            for function, arguments in ((os.open, (m.at("growing"), WRITE)), (os.truncate, (m.at("growing"), 0)),
                                        (os.mkdir, (m.at("new"),)), (os.utime, (m.at("growing"),)),
                                        (os.setxattr, (m.at("growing"), "user.a", b"")), (os.chmod, (m.at("growing"), 0))):
                self.assertErrno(errno.EROFS, function, *arguments)
        self.assertEqual(read(path), before)

    def test_a_filter_that_cannot_encode(self):
        path = self.make()
        with h5py.File(path, "a") as f:
            create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            create.set_chunk((4,))
            create.set_filter(32900, h5py.h5z.FLAG_OPTIONAL, (1,))
            h5py.h5d.create(f.id, b"strange", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((8,)), create)
        with Mount(path, "-f", options="rw") as m:
            self.assertErrno(errno.ENOTSUP, os.open, m.at("strange"), WRITE)
            self.assertRegex(m.said(), "32900")


class Mounts(ChangeCase):
    """Which mounts for writing there are."""

    def test_one_at_a_time(self):
        path = self.make()
        with Mount(path, options="rw"):
            for options in ("rw", "ro"):
                self.assertEqual(refusal(path, options=options)[0], 5)
            with self.assertRaises(OSError):
                h5py.File(path, "r")
        with Mount(path):
            self.assertEqual(refusal(path, options="rw")[0], 5)

    def test_the_lock_outlives_the_fork(self):
        path = self.make()
        with Mount(path, options="rw"), open(path, "rb") as f:
            self.assertErrno(errno.EWOULDBLOCK, fcntl.flock, f, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def test_several_names(self):
        path = self.make()
        os.mkdir(self.file("elsewhere"))
        os.link(path, self.file("elsewhere/name.h5"))
        status, said = refusal(path, options="rw")
        self.assertEqual((status, said.count("\n")), (9, 1), said)
        with Mount(path, options="rw,force") as m:
            self.shell(': > "$1"', m.at("growing"))
        self.assertStored(path, growing=numpy.zeros((0, 10), INT))

    def test_marks_of_a_crash(self):
        path = self.make()
        shutil.copy(path, self.file("sound.h5"))
        # A libhdf5 that was killed as it wrote leaves its mark.
        code = ("import h5py, os, sys; f = h5py.File(sys.argv[1], 'r+', libver='latest'); f['growing'][0] = 1; "
                "f.flush(); os._exit(0)")
        subprocess.run(["/usr/bin/python3", "-c", code, path], check=True)
        status, said = refusal(path, options="rw")
        self.assertEqual((status, said.count("\n")), (9, 1), said)
        with Mount(path, "-f") as m:
            self.assertRegex(m.said(), "marked as open for writing")
        with Mount(path, options="rw,force") as m:
            self.shell(': > "$1"', m.at("growing"))

    def test_where_the_journal_is(self):
        path = self.make()
        os.mkdir(self.file("journals"))
        with Mount(path, options=f"rw,journal={self.file('journals')}") as m:
            self.shell(': > "$1"', m.at("growing"))
            [name] = os.listdir(self.file("journals"))
            self.assertRegex(name, re.escape(os.path.basename(path)) + r"\.[0-9a-f]{16}\.h5fs-journal")
            # Another file of the same name has one of its own.
            os.mkdir(self.file("other"))
            shutil.copy(path, self.file("other", os.path.basename(path)))
            with Mount(self.file("other", os.path.basename(path)), options=f"rw,journal={self.file('journals')}"):
                self.assertEqual(len(os.listdir(self.file("journals"))), 2)
        self.assertEqual(os.listdir(self.file("journals")), [])
        status, said = refusal(path, options=f"rw,journal={self.file('nowhere')}")
        self.assertEqual((status, said.count("\n")), (8, 1), said)
        self.assertStored(path, growing=numpy.zeros((0, 10), INT))

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_no_right_to_write(self):
        path = self.make()
        os.chmod(path, 0o444)
        self.assertEqual(refusal(path, options="rw")[0], 8)
        os.chmod(path, 0o644)
        os.chmod(self.folder, 0o555)
        try:
            self.assertEqual(refusal(path, options="rw")[0], 8)
        finally:
            os.chmod(self.folder, 0o755)

    def test_options(self):
        path = self.make()
        for option in ("sync=never", "journal", "sync"):
            self.assertEqual(refusal(path, options=f"rw,{option}")[0], 2, option)
        run = subprocess.run([H5FS, "-h"], capture_output=True, text=True, check=True)
        for option in ("rw", "swmr", "force", "external-write", "sync=", "journal=", "--recover"):
            self.assertIn(option, run.stdout)

    def test_free_space(self):
        path = self.make()
        with Mount(path, options="rw") as m:
            mine, below = os.statvfs(m.path), os.statvfs(path)
            self.assertAlmostEqual(mine.f_bavail * mine.f_frsize / (below.f_bavail * below.f_frsize), 1, 1)
            self.assertFalse(mine.f_flag & os.ST_RDONLY)
        with Mount(path) as m:
            self.assertEqual(os.statvfs(m.path).f_bavail, 0)
            self.assertTrue(os.statvfs(m.path).f_flag & os.ST_RDONLY)

    def test_many_datasets(self):
        path = self.make()
        with h5py.File(path, "a") as f:
            for i in range(200):
                f.create_dataset(f"many/{i:03}", (0,), "u1", maxshape=(None,), chunks=(8,), compression="gzip")
        with Mount(path, options="rw") as m:
            for turn in "abc":
                self.shell('cd "$1"; for name in *; do printf "%s" "$2$name" >> $name; done', m.at("many"), turn)
            for i in range(200):
                self.assertEqual(read(m.at(f"many/{i:03}")), b"a%03db%03dc%03d" % (i, i, i))
        with judges.File(path) as f:
            for i in range(200):
                self.assertEqual(f[f"many/{i:03}"][...].tobytes(), b"a%03db%03dc%03d" % (i, i, i))


class Space(ChangeCase):
    def test_a_full_disk(self):
        path = shutil.copy(self.make(), os.path.join(self.disk(), "small.h5"))
        with Mount(path, options="rw") as m:
            fd, written = m.open("growing", os.O_WRONLY | os.O_APPEND), 0
            with self.assertRaises(OSError) as caught:
                while True:
                    written += os.write(fd, os.urandom(40_000))
                    os.fsync(fd)
            self.assertEqual(caught.exception.errno, errno.ENOSPC)
            self.assertGreater(written, 0)
            # Others are read as ever, and what was acknowledged is there.
            self.assertEqual(len(read(m.at("contiguous"))), 800)
            m.close_all()
            m.unmount()
            m.wait()
            m.status = 0  # the last rows are lost
        with judges.File(path) as f:
            numpy.testing.assert_array_equal(f["growing"][:20], numpy.arange(200, dtype=INT).reshape(20, 10))
            self.assertGreaterEqual(len(f["growing"]), 20 + (written - 40_000) // 40)


if __name__ == "__main__":
    main()
