#!/usr/bin/python3
"""Adding rows to datasets through a mount: by shells and tools, whole rows and incomplete ones, and what is in the file when."""
import errno
import mmap
import multiprocessing
import os
import shutil
import signal
import subprocess
import time

import h5py
import numpy

import judges
from libhdf5 import call, hid
from mountlib import Mount, WriteCase, main, read

APPEND = os.O_WRONLY | os.O_APPEND
PAIR = numpy.dtype("<i4")  # rows of ("pairs") are two of these: 8 bytes


def appender(path, number, count):
    """A process that writes rows in pieces that are no rows."""
    fd = os.open(path, APPEND)
    data = b"".join(b"%04d%04d" % (number, i) for i in range(count))
    for at in range(0, len(data), 5):
        os.write(fd, data[at:at + 5])
    os.close(fd)


def follow(path, kind, data, begun, stop, seen):
    """Reads a file again and again while it grows to `data`, and once more afterwards. Tells how often it has read, and what was wrong."""
    fd = os.open(path, os.O_RDONLY)
    at = count = 0
    wrong = []
    begun.wait()
    ended = False
    while not ended:
        ended = stop.is_set()
        if kind == "mmap":
            size = os.fstat(fd).st_size
            if not size:
                continue
            with mmap.mmap(fd, size, prot=mmap.PROT_READ) as m:
                found = m[:]
        else:
            found = os.pread(fd, len(data), at)
        count += 1
        if found != data[at:at + len(found)]:
            wrong.append(f"{kind}: {len(found)} bytes at {at}: ...{found[-40:].hex()}")
        if kind == "tail":
            at = max(0, at + len(found) - 50)
    os.close(fd)
    seen.put((count, wrong[:3]))


class AppendCase(WriteCase):
    def make(self, libver="latest"):
        path = self.file(f"append-{libver}.h5")
        with h5py.File(path, "w", libver=libver) as f:
            f.create_dataset("text", (0,), "u1", maxshape=(None,), chunks=(16,))
            f.create_dataset("deflated", (3,), "u1", maxshape=(None,), chunks=(16,), compression="gzip", shuffle=True)
            f.create_dataset("pairs", (0, 2), PAIR, maxshape=(None, 2), chunks=(4, 2))
            f.create_dataset("squares", (1, 3, 3), ">i2", maxshape=(None, 3, 3), chunks=(2, 2, 2), compression="gzip", fillvalue=-1)
            f.create_dataset("filled", (2, 2), PAIR, maxshape=(None, 2), chunks=(4, 2), fillvalue=7)
            f.create_dataset("bounded", (2,), PAIR, maxshape=(5,), chunks=(2,))
            f.create_dataset("wide", (2, 2), PAIR, maxshape=(2, None), chunks=(2, 2))
            f["fixed"] = numpy.arange(4, dtype=PAIR)
            f["deflated"][...] = numpy.frombuffer(b"one", "u1")
            f["wide"][...] = 5
        return path

    def u1(self, data):
        return numpy.frombuffer(data, "u1")

    def pairs(self, data):
        return numpy.frombuffer(data, PAIR).reshape(-1, 2)


class Shells(AppendCase):
    """What users type."""

    def test_append(self):
        for libver in ("earliest", "latest"):
            for shell in ("bash", "dash"):
                with self.subTest(libver=libver, shell=shell):
                    path = self.make(libver)
                    with Mount(path, options="rw") as m:
                        self.shell('for i in 1 2 3 4 5 6 7 8 9; do echo "line $i" >> "$1"; echo "$i" >> "$2"; done',
                                   m.at("text"), m.at("deflated"), shell=shell)
                        text = b"".join(b"line %d\n" % i for i in range(1, 10))
                        self.assertEqual(read(m.at("text")), text)
                    self.assertStored(path, text=self.u1(text), deflated=self.u1(b"one1\n2\n3\n4\n5\n6\n7\n8\n9\n"))

    def test_chunks_that_become_complete(self):
        """Where partial chunks are not filtered, those that are complete are."""
        path = self.file("edges.h5")
        with h5py.File(path, "w", libver="latest") as f:
            how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            how.set_chunk((100,))
            how.set_deflate(1)
            call("H5Pset_chunk_opts", hid(how.id), 2)
            h5py.h5d.create(f.id, b"d", h5py.h5t.STD_I64LE, h5py.h5s.create_simple((0,), (h5py.h5s.UNLIMITED,)), how)
        with Mount(path, options="rw") as m:
            for rows in 40, 40, 40, 100, 1, 79, 30:
                self.shell(f'head -c {8 * rows} /dev/zero >> "$1"', m.at("d"))
        with h5py.File(path) as f:
            sizes = [f["d"].id.get_chunk_info(i).size for i in range(4)]
        self.assertLess(max(sizes[:3]), 100)
        self.assertEqual(sizes[3], 800)
        self.assertStored(path, d=numpy.zeros(330, "<i8"))

    def test_a_descriptor_that_is_shared(self):
        for shell in ("bash", "dash"):
            with self.subTest(shell=shell):
                path = self.make()
                with Mount(path, options="rw") as m:
                    # The first piece of a row is the shell's, the second its child's.
                    self.shell('exec 3>>"$1"; printf abc >&3; (printf de >&3); sh -c "printf fghABCDEFG >&3"; '
                               'printf H >&3; exec 3>&-', m.at("pairs"), shell=shell)
                    self.assertEqual(read(m.at("pairs")), b"abcdefghABCDEFGH")
                self.assertStored(path, pairs=self.pairs(b"abcdefghABCDEFGH"))

    def test_tools(self):
        path = self.make()
        rows = os.urandom(16)
        with open(self.file("rows"), "wb") as f:
            f.write(rows)
        with Mount(path, options="rw") as m:
            pairs, source = m.at("pairs"), self.file("rows")
            self.shell('cat "$2" >> "$1"; tee -a "$1" < "$2" > /dev/null; '
                       'dd if="$2" of="$1" bs=3 oflag=append conv=notrunc status=none; '
                       'dd if="$2" of="$1" bs=8 oflag=seek_bytes seek=48 conv=notrunc,fsync status=none; '
                       'tail -c +9 "$2" >> "$1"', pairs, source)
            self.assertEqual(read(pairs), 4 * rows + rows[8:])
        self.assertStored(path, pairs=self.pairs(4 * rows + rows[8:]))

    def test_a_pipe_into_a_group_of_commands(self):
        path = self.make()
        with Mount(path, options="rw") as m:
            self.shell('{ printf "%s" aaaabbbb; printf "%s" ccccdddd; seq -w 1000 1001 | tr -d "\\n"; } >> "$1"', m.at("pairs"))
        self.assertStored(path, pairs=self.pairs(b"aaaabbbbccccdddd10001001"))

    def test_many_bytes_at_once(self):
        path = self.make()
        data = os.urandom(300_000) + bytes(200_003)  # of chunks of 16 bytes
        with open(self.file("data"), "wb") as f:
            f.write(data)
        with Mount(path, options="rw") as m:
            self.shell('cat "$2" >> "$1"', m.at("deflated"), self.file("data"))
            self.assertEqual(read(m.at("deflated")), b"one" + data)
        with judges.File(path) as f:
            self.assertEqual(f["deflated"][...].tobytes(), b"one" + data)

    def test_rows_of_several_chunks(self):
        path = self.make()
        rows = numpy.arange(10 * 9, dtype=">i2").reshape(10, 3, 3)
        expected = numpy.concatenate([numpy.full((1, 3, 3), -1, ">i2"), rows]).astype(">i2")
        with Mount(path, options="rw") as m:
            for part in (rows[:1], rows[1:4], rows[4:]):
                with open(m.at("squares"), "ab", buffering=0) as f:
                    for at in range(0, part.nbytes, 7):
                        f.write(part.tobytes()[at:at + 7])
            self.assertEqual(read(m.at("squares")), expected.tobytes())
        self.assertStored(path, squares=expected)


class Rows(AppendCase):
    """Whole rows and incomplete ones."""

    def test_an_incomplete_row_belongs_to_its_handle(self):
        path = self.make()
        with Mount(path, "-f", options="rw") as m:
            pairs = m.at("pairs")
            first, second = m.open("pairs", APPEND), m.open("pairs", APPEND)
            self.assertEqual(os.write(first, b"aaaaaaaabbb"), 11)
            self.assertEqual(os.stat(pairs).st_size, 8)
            self.assertEqual(os.fstat(first).st_size, 8)
            os.write(second, b"cccc")
            self.assertEqual(os.stat(pairs).st_size, 8)
            self.assertErrno(errno.EINVAL, os.fsync, first)
            os.write(second, b"ccccdddddddde")
            self.assertEqual(read(pairs), b"aaaaaaaaccccccccdddddddd")
            os.write(first, b"bbbbb")
            self.assertEqual(read(pairs), b"aaaaaaaaccccccccddddddddbbbbbbbb")
            os.fsync(first)
            os.close(first)
            self.assertErrno(errno.EINVAL, os.close, second)
            self.assertEqual(os.stat(pairs).st_size, 32)
            m.unmount()
            self.assertEqual(m.wait(), 0)
            self.assertRegex(m.said(), "incomplete row was dropped: 1 of 8 bytes")
        self.assertStored(path, pairs=self.pairs(b"aaaaaaaaccccccccddddddddbbbbbbbb"))

    def test_each_close_of_a_duplicate_tells(self):
        path = self.make()
        with Mount(path, options="rw") as m:
            fd = m.open("pairs", APPEND)
            copies = [os.dup(fd), os.dup(fd), os.dup(fd)]
            os.write(fd, b"aaaaaaaabb")
            for copy in copies[:2]:
                self.assertErrno(errno.EINVAL, os.close, copy)
            os.write(copies[2], b"bbbbbb")
            os.close(copies[2])
            os.close(fd)
        self.assertStored(path, pairs=self.pairs(b"aaaaaaaabbbbbbbb"))

    def test_whole_rows_are_in_the_file_though_close_fails(self):
        path = self.make()
        with Mount(path, options="rw") as m:
            fd = m.open("pairs", APPEND)
            os.write(fd, b"aaaaaaaabbb")
            self.assertErrno(errno.EINVAL, os.close, os.dup(fd))
            m.kill()
        self.assertStored(path, pairs=self.pairs(b"aaaaaaaa"))

    def test_processes_at_once(self):
        """Four that append, and one that reads: it sees whole rows, of each process all up to some. (Behind the size that
        it has asked for it may see zeros for a moment: the kernel takes the bytes of an incomplete row for the file's.)"""
        path = self.make()
        with Mount(path, options="rw") as m:
            processes = [multiprocessing.Process(target=appender, args=(m.at("pairs"), i, 200)) for i in range(4)]
            for process in processes:
                process.start()
            while any(process.is_alive() for process in processes):
                with open(m.at("pairs"), "rb", buffering=0) as f:
                    size = os.fstat(f.fileno()).st_size
                    self.assertEqual(size % 8, 0)
                    self.check_rows(f.read()[:size])
            self.assertEqual([process.exitcode for process in processes], [0] * 4)
            data = read(m.at("pairs"))
        self.assertEqual(self.check_rows(data), [200] * 4)
        self.assertStored(path, pairs=self.pairs(data))

    def check_rows(self, data):
        """How many there are of each process."""
        rows = [(int(data[i:i + 4]), int(data[i + 4:i + 8])) for i in range(0, len(data), 8)]
        counts = []
        for number in range(4):
            of = [i for n, i in rows if n == number]
            self.assertEqual(of, list(range(len(of))), number)
            counts.append(len(of))
        return counts

    def test_an_append_goes_to_the_end_whatever_the_offset(self):
        path = self.make()
        with Mount(path, options="rw") as m:
            one, other = m.open("text", os.O_RDWR | os.O_APPEND), m.open("text", APPEND)
            os.write(one, b"one ")
            os.lseek(other, 0, os.SEEK_SET)
            os.write(other, b"two ")
            os.pwrite(one, b"three ", 1)
            os.write(other, b"four")
            self.assertEqual(os.pread(one, 100, 0), b"one two three four")
        self.assertStored(path, text=self.u1(b"one two three four"))

    def test_positional_writes_at_the_end(self):
        path = self.make()
        with Mount(path, options="rw") as m:
            fd = m.open("pairs", os.O_WRONLY)
            self.assertEqual(os.pwrite(fd, b"aaaaaaaabb", 0), 10)
            self.assertEqual(os.stat(m.at("pairs")).st_size, 8)
            # Continues the row, overwrites a byte of it, and what the dataset has.
            self.assertEqual(os.pwrite(fd, b"bb", 10), 2)
            self.assertEqual(os.pwrite(fd, b"B", 9), 1)
            self.assertEqual(os.pwrite(fd, b"A", 7), 1)
            self.assertEqual(os.pwrite(fd, b"bbbbcccc", 12), 8)
            self.assertEqual(os.pwrite(fd, b"XYcc", 15), 4)
            self.assertEqual(read(m.at("pairs")), b"aaaaaaaAbBbbbbbX")
            self.assertEqual(os.pwrite(fd, b"....", 20), 4)
            os.close(fd)
        self.assertStored(path, pairs=self.pairs(b"aaaaaaaAbBbbbbbXYccc...."))

    def test_a_start_past_the_end_grows_with_the_fill_value(self):
        fill = numpy.int32(7).tobytes()
        for offset, data in ((40, b"aaaaaaaa"), (44, b"aaaa"), (43, b"aaaaa"), (17, b"aaaaaaa"), (20, b"aaaabbbbcccc")):
            with self.subTest(offset=offset):
                path = self.make()
                expected = (fill * 20)[:offset] + data
                with Mount(path, options="rw") as m:
                    fd = m.open("filled", os.O_WRONLY)
                    os.pwrite(fd, numpy.full(4, 7, PAIR).tobytes(), 0)
                    self.assertEqual(os.pwrite(fd, data, offset), len(data))
                    self.assertEqual(read(m.at("filled")), expected)
                    os.close(fd)
                self.assertStored(path, filled=self.pairs(expected))

    def test_a_gap_behind_an_incomplete_row(self):
        path = self.make()
        fill = numpy.int32(7).tobytes()
        with Mount(path, options="rw") as m:
            fd = m.open("filled", os.O_RDWR)
            self.assertEqual(os.pwrite(fd, b"abc", 16), 3)
            self.assertEqual(os.pwrite(fd, b"ff", 22), 2)
            self.assertEqual(os.pread(fd, 100, 16), b"abc" + fill[3:] + fill[:2] + b"ff")
            self.assertEqual(os.pwrite(fd, b"g", 24), 1)
            self.assertEqual(os.pwrite(fd, b"12345678", 40), 8)
            expected = b"abc" + fill[3:] + fill[:2] + b"ffg" + fill[1:] + 3 * fill + b"12345678"
            self.assertEqual(os.pread(fd, 100, 16), expected)
            os.close(fd)
        self.assertStored(path, filled=self.pairs(4 * fill + expected))

    def test_a_positional_row_is_written_where_it_belongs(self):
        path = self.make()
        with Mount(path, options="rw") as m:
            pairs = m.at("pairs")
            fd, other = m.open("pairs", os.O_WRONLY), m.open("pairs", APPEND)
            os.pwrite(fd, b"abc", 0)
            os.write(other, b"11111111" b"22222222")
            self.assertEqual(read(pairs), b"1111111122222222")
            # A second row of the same descriptor can't be begun, only be written as a whole.
            self.assertErrno(errno.EINVAL, os.pwrite, fd, b"xx", 16)
            self.assertEqual(os.pwrite(fd, b"33333333xx", 16), 8)
            os.pwrite(fd, b"defgh", 3)
            self.assertEqual(read(pairs), b"abcdefgh2222222233333333")
            os.close(fd)
        self.assertStored(path, pairs=self.pairs(b"abcdefgh2222222233333333"))

    def test_an_incomplete_row_and_a_dataset_that_was_cut(self):
        path = self.make()
        with Mount(path, options="rw") as m:
            pairs = m.at("pairs")
            appending, writing = m.open("pairs", APPEND), m.open("pairs", os.O_WRONLY)
            os.write(appending, 3 * b"11111111" + b"abc")
            os.pwrite(writing, b"xyz", 24)
            os.truncate(pairs, 8)
            os.write(appending, b"defgh")
            self.assertEqual(read(pairs), b"11111111abcdefgh")
            os.pwrite(writing, b"XYZ..", 27)
            self.assertEqual(read(pairs), b"11111111abcdefgh" + bytes(8) + b"xyzXYZ..")
            os.close(appending)
            os.close(writing)
        self.assertStored(path, pairs=self.pairs(b"11111111abcdefgh" + bytes(8) + b"xyzXYZ.."))


class Limits(AppendCase):
    def test_a_fixed_maximum(self):
        for flags in (APPEND, os.O_WRONLY):
            with self.subTest(flags=flags):
                path = self.make()
                with Mount(path, options="rw") as m:
                    fd = m.open("bounded", flags)
                    os.lseek(fd, 0, os.SEEK_END)
                    self.assertEqual(os.write(fd, b"aaaabbbbccccddddeeee"), 12)
                    self.assertErrno(errno.EFBIG, os.write, fd, b"ddddeeee")
                    self.assertErrno(errno.EFBIG, os.write, fd, b"d")
                    self.assertErrno(errno.EFBIG, os.pwrite, fd, b"d", 1000)
                    os.close(fd)
                    self.assertEqual(os.stat(m.at("bounded")).st_size, 20)
                self.assertStored(path, bounded=numpy.frombuffer(bytes(8) + b"aaaabbbbcccc", PAIR))

    def test_two_incomplete_rows_and_room_for_one(self):
        path = self.make()
        with Mount(path, options="rw") as m:
            one, other = (m.open("bounded", APPEND) for _ in range(2))
            os.write(one, b"aaaabbbbc")
            os.write(other, b"d")
            os.write(one, b"ccc")
            self.assertErrno(errno.EFBIG, os.write, other, b"ddd")
            self.assertErrno(errno.EINVAL, os.close, other)
            os.close(one)
        self.assertStored(path, bounded=numpy.frombuffer(bytes(8) + b"aaaabbbbcccc", PAIR))

    def test_what_cannot_grow(self):
        path = self.make()
        before = {}
        with h5py.File(path, "r") as f:
            before = {name: f[name][...] for name in ("fixed", "wide")}
        with Mount(path, "-f", options="rw") as m:
            for name in before:
                with self.subTest(name=name):
                    fd = m.open(name, APPEND)
                    self.assertErrno(errno.EFBIG, os.write, fd, 16 * b"x")
                    os.close(fd)
            self.assertRegex(m.said(), "dimension 1 grows if h5fs.shape is set")
        self.assertStored(path, **before)

    def test_a_write_across_the_end_of_what_cannot_grow(self):
        path = self.make()
        with Mount(path, options="rw") as m:
            fd = m.open("fixed", os.O_WRONLY)
            self.assertEqual(os.pwrite(fd, b"abcdefgh", 12), 4)
            os.close(fd)
        expected = numpy.arange(4, dtype=PAIR)
        expected[3:] = numpy.frombuffer(b"abcd", PAIR)
        self.assertStored(path, fixed=expected)


class Seen(AppendCase):
    """What readers of the mount see, and when the file has it."""

    def test_size_and_time_at_once(self):
        path = self.make()
        os.utime(path, (1_000_000_000, 1_000_000_000))
        with Mount(path, options="rw") as m:
            fd = m.open("deflated", APPEND)
            before = time.time_ns()
            times = [os.stat(m.at("deflated")).st_mtime_ns]
            for i in range(5):
                os.write(fd, b"x")
                st = os.stat(m.at("deflated"))
                self.assertEqual(st.st_size, 4 + i)
                self.assertEqual(st.st_mtime_ns, st.st_ctime_ns)
                times.append(st.st_mtime_ns)
            self.assertEqual(times, sorted(set(times)))
            self.assertGreaterEqual(times[1], before)
            os.close(fd)
            self.assertGreaterEqual(os.stat(m.at("deflated")).st_mtime_ns, times[-1])
            # Nothing of this is in the file so soon.
            before = time.time_ns()
            os.truncate(m.at("filled"), 80)
            self.assertGreaterEqual(os.stat(m.at("filled")).st_mtime_ns, before)
            self.assertGreaterEqual(os.stat(m.at("filled")).st_ctime_ns, before)

    def test_an_open_reader_follows(self):
        path = self.make()
        with Mount(path, options="rw") as m:
            with open(m.at("deflated"), "rb", buffering=0) as reader, open(m.at("deflated"), "ab", buffering=0) as writer:
                self.assertEqual(reader.read(), b"one")
                for i in range(20):
                    writer.write(b"%05d" % i)
                    self.assertEqual(reader.read(), b"%05d" % i)
                writer.write(b"x")
            self.assertEqual(os.getxattr(m.at("deflated"), "h5fs.shape"), b"104")

    def check_followers(self, m, kinds, data, grow):
        begun, stop, seen = multiprocessing.Barrier(len(kinds) + 1), multiprocessing.Event(), multiprocessing.Queue()
        readers = [multiprocessing.Process(target=follow, args=(m.at("log"), kind, data, begun, stop, seen)) for kind in kinds]
        for reader in readers:
            reader.start()
        begun.wait()
        at = 0
        for i in range(8000):
            if at + 7 + i % 40 > len(data):
                break
            grow(at, at + 7 + i % 40)
            at += 7 + i % 40
        stop.set()
        for reader in readers:
            reader.join()
        self.assertEqual([reader.exitcode for reader in readers], [0] * len(readers))
        for _ in readers:
            count, wrong = seen.get()
            self.assertGreater(count, 0)
            self.assertEqual(wrong, [])

    def make_log(self, fill):
        path = self.file(f"log-{fill}.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("log", (0,), "u1", maxshape=(None,), chunks=(8192,), fillvalue=fill)
        return path

    def test_who_follows_sees_no_zeros(self):
        """The kernel clears the rest of a page that a file ends in; nobody may see that as the file's."""
        data = bytes(1 + i % 251 for i in range(60_000))
        with Mount(self.make_log(0), options="rw") as m:
            fd = m.open("log", APPEND)
            self.check_followers(m, ("tail", "tail", "tail", "whole", "mmap"), data,
                                 lambda begin, end: os.write(fd, data[begin:end]))

    def test_who_follows_a_file_that_is_stretched(self):
        """No mmap: fstat() may tell of a size before the kernel lets pages of it be mapped."""
        data = bytes([7]) * 15_000
        with Mount(self.make_log(7), options="rw") as m:
            self.check_followers(m, ("tail", "tail", "whole"), data, lambda _, end: os.truncate(m.at("log"), end))

    def test_an_appender_that_reads(self):
        """Through the page cache: what the kernel took for the end is not left in it."""
        path = self.make()
        with Mount(path, options="rw") as m:
            one, other = (m.open("pairs", os.O_RDWR | os.O_APPEND) for _ in range(2))
            expected = b""
            for i in range(50):
                os.write(one, b"%04d" % i)
                os.write(other, b"%04d----" % i)
                expected += b"%04d----" % i
                self.assertEqual(os.pread(one, 10_000, 0), expected)
                os.write(one, b"++++")
                expected += b"%04d++++" % i
                self.assertEqual(os.pread(other, 10_000, 0), expected)
            os.close(one)
            os.close(other)
        self.assertStored(path, pairs=self.pairs(expected))

    def test_close_and_fsync_are_durable(self):
        for end in (os.close, os.fsync, os.fdatasync):
            with self.subTest(end=end.__name__):
                path = self.make()
                with Mount(path, options="rw") as m:
                    fd = m.open("deflated", APPEND)
                    os.write(fd, 100 * b"row")
                    end(fd)
                    m.kill()
                with judges.File(path) as f:
                    self.assertEqual(f["deflated"][...].tobytes(), b"one" + 100 * b"row")

    def test_sync_is_fsync(self):
        path = self.make()
        with Mount(path, options="rw,sync=fsync") as m:
            begin = time.monotonic()
            self.shell('echo one >> "$1"', m.at("text"))
            shutil.copy(path, self.file("closed.h5"))
            if time.monotonic() - begin > 4:
                self.skipTest("too slow to see what is not committed yet")
            fd = m.open("text", APPEND)
            os.write(fd, b"two\n")
            os.fsync(fd)
            shutil.copy(path, self.file("synced.h5"))
            self.shell('echo three >> "$1"', m.at("text"))
        for name, expected in (("closed.h5", b""), ("synced.h5", b"one\ntwo\n")):
            with judges.File(self.file(name)) as f:
                self.assertEqual(f["text"][...].tobytes(), expected, name)
        self.assertStored(path, text=self.u1(b"one\ntwo\nthree\n"))

    def test_what_nobody_syncs_is_committed_soon(self):
        path = self.make()
        with Mount(path, options="rw") as m:
            fd = m.open("deflated", APPEND)
            os.write(fd, b"row")
            end, found = time.monotonic() + 60, b""
            while found != b"onerow" and time.monotonic() < end:
                time.sleep(0.1)
                shutil.copy(path, self.file("copy.h5"))
                with h5py.File(self.file("copy.h5"), "r") as f:
                    found = f["deflated"][...].tobytes()
            self.assertEqual(found, b"onerow")
            os.close(fd)

    def test_signals_commit(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(signal=number):
                path = self.make()
                with Mount(path, options="rw,sync=fsync") as m:
                    fd = m.open("deflated", APPEND)
                    os.write(fd, b"row")
                    os.kill(m.daemon, number)
                    self.assertEqual(m.wait(), 0)
                    self.assertFalse(os.path.exists(path + ".h5fs-journal"))
                self.assertStored(path, deflated=self.u1(b"onerow"))

    def test_a_close_with_nothing_to_commit_does_nothing(self):
        path = self.make()
        with Mount(path, options="rw") as m:
            before = os.stat(path)
            for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, APPEND):
                fd = os.open(m.at("deflated"), flags)
                os.fsync(fd)
                os.close(fd)
            after = os.stat(path)
            self.assertEqual((before.st_mtime_ns, before.st_ctime_ns, before.st_size),
                             (after.st_mtime_ns, after.st_ctime_ns, after.st_size))

    def test_after_a_crash_the_next_mount_writes_on(self):
        path = self.make()
        for i in range(3):
            with Mount(path, options="rw") as m:
                self.shell('echo "$2" >> "$1"', m.at("deflated"), str(i))
                fd = m.open("deflated", APPEND)
                os.write(fd, b"lost or not")
                m.kill()
            with judges.File(path) as f:
                self.assertEqual(f["deflated"][...].tobytes()[:3], b"one")
            with Mount(path, options="rw") as m:
                os.truncate(m.at("deflated"), 3 + 2 * (i + 1))
        self.assertStored(path, deflated=self.u1(b"one0\n1\n2\n"))

    def test_recover(self):
        path = self.make()
        command = [os.environ.get("H5FS", "src/h5fs"), "--recover"]
        with Mount(path, options="rw") as m:
            self.shell('echo row >> "$1"', m.at("text"))
            run = subprocess.run([*command, path], capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 5, run.stderr)
            m.kill()
        for _ in range(2):
            run = subprocess.run([*command, path], capture_output=True, text=True, check=False)
            self.assertEqual((run.returncode, run.stderr, run.stdout.count("\n")), (0, "", 1))
        self.assertStored(path, text=self.u1(b"row\n"))
        run = subprocess.run([*command, self.file("none.h5")], capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stderr.count("\n")), (3, 1))


if __name__ == "__main__":
    main()
