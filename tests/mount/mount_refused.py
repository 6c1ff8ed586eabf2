#!/usr/bin/python3
"""What finds no room: close and fsync tell each who wrote it, and it is gone; what was committed reads on."""
import errno
import json
import os
import resource
import subprocess
import time

import h5py
import numpy

from mountlib import Mount, WriteCase, main, read

INT = numpy.dtype("<i4")
NOISE = numpy.random.default_rng(1).integers(0, 1 << 30, 40_000).astype(INT)
FIRST = numpy.arange(1000, dtype=INT)
APPEND = os.O_WRONLY | os.O_APPEND


def errno_of(function, *arguments):
    """0, or why it fails."""
    try:
        function(*arguments)
    except OSError as error:
        return error.errno
    return 0


class Refused(WriteCase):
    def make(self, folder=None):
        path = os.path.join(folder or self.folder, "full.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f["ballast"] = numpy.zeros(100_000, INT)  # so that the journal is not what finds no room
            for name, options in (("deflated", {"compression": "gzip"}), ("plain", {}), ("other", {"compression": "gzip"})):
                f.create_dataset(name, data=FIRST, maxshape=(None,), chunks=(64,), **options)
            f.create_dataset("late", (30_000,), INT)
            f.create_dataset("fixed", data=FIRST, chunks=(64,), compression="gzip")
        return path

    def content(self):
        return {"deflated": FIRST, "plain": FIRST, "other": FIRST, "fixed": FIRST, "late": numpy.zeros(30_000, INT)}

    def check(self, m, expected):
        for name, values in expected.items():
            self.assertEqual(os.stat(m.at(name)).st_size, values.nbytes, name)
            self.assertTrue(read(m.at(name)) == values.tobytes(), name)

    def limit(self, m, size):
        """The daemon's files cannot become larger; None: they can again."""
        hard = resource.prlimit(m.daemon, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(m.daemon, resource.RLIMIT_FSIZE, (hard if size is None else size, hard))

    def change(self, m, name, flags, values, at, end):
        """Writes until it fails, and ends with what tells; gives the errnos."""
        fd = os.open(m.at(name), flags)
        data, told = values.tobytes(), []
        while data:
            try:
                n = os.write(fd, data) if flags & os.O_APPEND else os.pwrite(fd, data, at)
                data, at = data[n:], at + n
            except OSError as error:
                told.append(error.errno)
                break
        told.append(errno_of(end, fd))
        if end != os.close:
            self.assertEqual(errno_of(os.close, fd), 0, "told twice")
        return {number for number in told if number}

    def test_a_full_disk(self):
        disk = self.disk()
        path, expected = self.make(disk), self.content()
        with Mount(path, "-f", options="rw") as m:
            expected["deflated"] = numpy.append(FIRST, NOISE[:10])
            self.assertEqual(self.change(m, "deflated", APPEND, NOISE[:10], 0, os.close), set())
            full = os.statvfs(disk)
            with open(os.path.join(disk, "ballast"), "wb") as f:
                f.write(bytes(full.f_bavail * full.f_bsize))
            for count in 3000, 40_000:
                for name in "deflated", "plain":
                    with self.subTest(name=name, count=count):
                        self.assertEqual(self.change(m, name, APPEND, NOISE[:count], 0, os.close), {errno.ENOSPC})
                        self.check(m, expected)
            self.assertIn("/deflated, address ", m.said())
            self.assertGreater(json.loads(os.getxattr(m.path, "h5fs.stats"))["dropped"]["refused_changes"], 0)
            os.unlink(os.path.join(disk, "ballast"))
            self.check(m, expected)
            self.assertEqual(self.change(m, "deflated", APPEND, NOISE[:3000], 0, os.close), set())
            expected["deflated"] = numpy.append(expected["deflated"], NOISE[:3000])
            self.check(m, expected)
        self.assertStored(path, **expected)

    def test_every_layout_and_kind_of_change(self):
        path, expected = self.make(), self.content()
        changes = (("deflated", APPEND, NOISE[:5000], 0), ("plain", APPEND, NOISE[:5000], 0), ("deflated", os.O_WRONLY, NOISE[:500], 0),
                   ("plain", os.O_RDWR, NOISE[:5000], FIRST.nbytes), ("late", os.O_WRONLY, NOISE[:10], 40),
                   ("fixed", os.O_WRONLY, NOISE[:900], 0))
        with Mount(path, options="rw") as m:
            size = os.stat(path).st_size
            for name, flags, values, at in changes:
                for end in os.close, os.fsync:
                    with self.subTest(name=name, flags=flags, end=end.__name__):
                        self.limit(m, size)
                        self.assertEqual(self.change(m, name, flags, values, at, end), {errno.EFBIG})
                        self.check(m, expected)
            self.limit(m, None)
            self.check(m, expected)
            for name, flags, values, at in changes:
                self.assertEqual(self.change(m, name, flags, values, at, os.close), set(), name)
            expected = {"deflated": numpy.concatenate([NOISE[:500], FIRST[500:], NOISE[:5000]]),
                        "plain": numpy.concatenate([FIRST, NOISE[:5000]]),
                        "other": FIRST, "fixed": numpy.append(NOISE[:900], FIRST[900:]), "late": numpy.zeros(30_000, INT)}
            expected["plain"] = numpy.concatenate([FIRST, NOISE[:5000]])
            expected["late"][10:20] = NOISE[:10]
            self.check(m, expected)
        self.assertStored(path, **expected)

    def test_each_who_wrote_is_told_once(self):
        path, expected = self.make(), self.content()
        with Mount(path, options="rw") as m:
            one, two = m.open("deflated", APPEND), m.open("deflated", APPEND)
            other, idle = m.open("other", APPEND), m.open("other", APPEND)
            early = m.open("other", APPEND)
            os.write(early, FIRST[:7].tobytes())
            os.fsync(early)
            expected["other"] = numpy.append(FIRST, FIRST[:7])
            self.limit(m, os.stat(path).st_size)
            for fd in one, two, other:
                os.write(fd, NOISE[:1000].tobytes())
            self.assertEqual(errno_of(os.fsync, one), errno.EFBIG)
            self.check(m, expected)
            self.assertEqual([errno_of(os.close, fd) for fd in (one, two, other, idle, early)], [0, errno.EFBIG, errno.EFBIG, 0, 0])
        self.assertStored(path, **expected)

    def test_who_reads_meanwhile_gets_what_was_committed(self):
        """A read brings what small writes have gathered to the file first."""
        path, expected = self.make(), self.content()
        with Mount(path, options="rw") as m:
            fd = m.open("deflated", APPEND)
            self.limit(m, os.stat(path).st_size)
            os.write(fd, NOISE[:1000].tobytes())
            os.write(fd, NOISE[:1].tobytes()[:3])
            self.check(m, expected)
            self.limit(m, None)
            self.assertEqual(errno_of(os.close, fd), errno.EFBIG)
            self.check(m, expected)
        self.assertStored(path, **expected)

    def test_nobody_asks(self):
        """The commit of every few seconds is refused: the next close tells."""
        path, expected = self.make(), self.content()
        with Mount(path, "-f", options="rw") as m:
            fd = m.open("deflated", APPEND)
            self.limit(m, os.stat(path).st_size)
            os.write(fd, NOISE[:1000].tobytes())
            end = time.monotonic() + 30
            while "is lost" not in m.said() and time.monotonic() < end:
                time.sleep(.1)
            self.assertIn("is lost", m.said())
            self.limit(m, None)
            self.assertEqual(errno_of(os.close, fd), errno.EFBIG)
            self.check(m, expected)
        self.assertStored(path, **expected)

    def test_growing_by_truncate(self):
        path, expected = self.make(), self.content()
        with Mount(path, options="rw") as m:
            fd = m.open("deflated", os.O_RDWR)
            self.limit(m, os.stat(path).st_size)
            os.ftruncate(fd, 4 * 2000)
            os.pwrite(fd, NOISE[:900].tobytes(), 4 * 1100)
            self.assertEqual(errno_of(os.close, fd), errno.EFBIG)
            self.check(m, expected)
        self.assertStored(path, **expected)


if __name__ == "__main__":
    main()
