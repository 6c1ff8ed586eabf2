#!/usr/bin/python3
"""Rows that arrive in pieces while others read: a reader sees whole rows, and the bytes that somebody wrote."""
import mmap
import multiprocessing
import os
import time

import h5py

from mountlib import Mount, WriteCase, main, read

APPEND = os.O_WRONLY | os.O_APPEND
COLUMNS = 7
ROW = 4 * COLUMNS
SECONDS = 1.5  # that each race lasts


def row_of(number):
    return bytes([0x11 * number]) * ROW


def append(path, number, end, flags, wrong):
    """A process that writes each row in two pieces; one that may read looks at its own rows, too."""
    row = row_of(number)
    fd = os.open(path, flags)
    count = 0
    while time.monotonic() < end:
        os.write(fd, row[:10])
        if flags & os.O_ACCMODE == os.O_RDWR:
            judge(os.pread(fd, 1 << 20, 0), wrong)
        os.write(fd, row[10:])
        count += 1
        if not count % 20:
            os.close(fd)
            fd = os.open(path, flags)
    os.close(fd)


def tell(wrong, what):
    """The first finding is enough: a queue that nobody empties would keep its writer from ending."""
    if wrong.empty():
        wrong.put(what)


def judge(data, wrong):
    if len(data) % ROW:
        tell(wrong, f"{len(data)} bytes, the last ones {data[-(len(data) % ROW):].hex()}")
    for at in range(0, len(data) - len(data) % ROW, ROW):
        if data[at:at + ROW] != row_of(data[at] // 0x11) or not data[at]:
            tell(wrong, f"row {at // ROW} of {len(data) // ROW}: {data[at:at + ROW].hex()}")
            break


class PartialRows(WriteCase):
    def make(self):
        path = self.file("rows.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("d", (0, COLUMNS), "<i4", maxshape=(None, COLUMNS), chunks=(16, COLUMNS))
        return path

    def race(self, m, flags, look):
        """Calls look(wrong) while others append; gives how often."""
        wrong = multiprocessing.Queue()
        end = time.monotonic() + SECONDS
        writers = [multiprocessing.Process(target=append, args=(m.at("d"), 1 + i, end, flags, wrong)) for i in range(3)]
        for writer in writers:
            writer.start()
        count = 0
        while time.monotonic() < end:
            look(wrong)
            count += 1
        for writer in writers:
            writer.join()
        self.assertEqual([writer.exitcode for writer in writers], [0] * len(writers))
        self.assertTrue(wrong.empty(), wrong.empty() or wrong.get())
        self.assertGreater(count, 10)

    def test_who_opens_it_anew(self):
        with Mount(self.make(), options="rw") as m:
            self.race(m, APPEND, lambda wrong: judge(read(m.at("d")), wrong))
            judged = multiprocessing.Queue()
            judge(read(m.at("d")), judged)
            self.assertTrue(judged.empty())

    def test_who_has_had_it_open_before(self):
        with Mount(self.make(), options="rw") as m:
            fd = m.open("d", os.O_RDONLY)
            seen = bytearray()

            def follow(wrong):
                while piece := os.read(fd, 1 << 16):
                    seen.extend(piece)
                if len(seen) % ROW:
                    tell(wrong, f"an end within a row: {len(seen)} bytes")

            self.race(m, APPEND, follow)
            while piece := os.read(fd, 1 << 16):
                seen.extend(piece)
            self.assertEqual(bytes(seen), read(m.at("d")))
            self.assertGreater(len(seen), 100 * ROW)

    def test_who_reads_and_writes(self):
        with Mount(self.make(), options="rw") as m:
            self.race(m, os.O_RDWR | os.O_APPEND, lambda wrong: judge(read(m.at("d")), wrong))

    def test_a_pending_row_is_nobodys(self):
        """Neither through pages that are read nor by the size that is told."""
        with Mount(self.make(), options="rw") as m:
            reader, writer, other = m.open("d", os.O_RDONLY), m.open("d", APPEND), m.open("d", APPEND)
            os.write(writer, row_of(1))
            self.assertEqual(os.read(reader, 4096), row_of(1))
            os.write(writer, row_of(2)[:10])
            os.write(other, row_of(3)[:20])
            self.assertEqual((os.read(reader, 4096), os.fstat(reader).st_size, os.lseek(reader, 0, os.SEEK_END)), (b"", ROW, ROW))
            os.write(other, row_of(3)[20:])
            self.assertEqual(os.pread(reader, 4096, 0), row_of(1) + row_of(3))
            os.write(writer, row_of(2)[10:])
            self.assertEqual(os.pread(reader, 4096, 0), row_of(1) + row_of(3) + row_of(2))

    def test_it_can_be_mapped_if_nobody_writes_it(self):
        with Mount(self.make(), options="rw") as m:
            with open(m.at("d"), "ab") as f:
                f.write(row_of(1) + row_of(2))
            for flags, prot in ((os.O_RDONLY, mmap.PROT_READ), (os.O_RDWR, mmap.PROT_READ | mmap.PROT_WRITE)):
                fd = os.open(m.at("d"), flags)
                with mmap.mmap(fd, 2 * ROW, prot=prot) as mapped:
                    self.assertEqual(mapped[:], row_of(1) + row_of(2))
                os.close(fd)


if __name__ == "__main__":
    main()
