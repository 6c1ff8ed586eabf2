#!/usr/bin/python3
"""Families of files that are mounted for writing: rows across the ends of members, new members and objects; what refuses to be written."""
import errno
import fcntl
import glob
import os
import subprocess

import h5py
import numpy

from mountlib import H5FS, Mount, main, read, write
from pieceslib import WIDTH, PiecesCase, rows

NAME, SIZE = "family_%05d.h5", 10_007


class MembersWrite(PiecesCase):
    def make(self, libver="earliest", size=SIZE, **options):
        with h5py.File(self.file(NAME), "w", driver="family", memb_size=size, libver=libver, **options) as f:
            f.create_dataset("rows", data=rows(0, 5), maxshape=(None, WIDTH), chunks=(8, WIDTH))
            f["group/old"] = numpy.arange(3)
        return self.file(NAME % 0)

    def open(self, size=SIZE):
        return h5py.File(self.file(NAME), driver="family", memb_size=size)

    def sizes(self):
        return [os.path.getsize(name) for name in sorted(glob.glob(self.file("family_?????.h5")))]

    def test_everything(self):
        for libver, size, name in ("earliest", SIZE, NAME % 0), ("latest", 8192, NAME), ("latest", 4096, NAME % 0):
            with self.subTest(libver=libver, size=size):
                first = self.make(libver, size)
                os.chmod(first, 0o640)
                with Mount(self.file(name), options="rw") as m:
                    self.append(m, 5, 2000)
                    os.mkdir(m.at("group", "new"))
                    os.setxattr(m.at("group", "new"), "user.text", b"words")
                    os.rename(m.at("group", "old"), m.at("moved"))
                    self.assertEqual(m.said(), "")
                sizes = self.sizes()
                self.assertGreater(len(sizes), 5)
                self.assertEqual(set(sizes[:-1]), {size})
                self.assertEqual(os.stat(self.file(NAME % (len(sizes) - 1))).st_mode & 0o777, 0o640)
                with self.open(size) as f:
                    self.assertEqual(sorted(f), ["group", "moved", "rows"])
                    numpy.testing.assert_array_equal(f["rows"], rows(0, 2000))
                    self.assertEqual(f["group/new"].attrs["text"], "words")
                    self.assertEqual(f["moved"][:].tolist(), [0, 1, 2])
                self.assertEqual(subprocess.run([H5FS, "--check", first], capture_output=True).returncode, 0)
                said = subprocess.run(["h5dump", "-f", "family", "-d", "moved", self.file(NAME)], capture_output=True, text=True).stdout
                self.assertIn("0, 1, 2", said)
                for old in glob.glob(self.file("family*")):
                    os.remove(old)

    def test_what_is_removed_is_given_back(self):
        first = self.make()
        with Mount(first, options="rw") as m:
            write(m.at("large"), b"x" * 100_000)
        long = self.sizes()
        self.assertGreater(len(long), 10)
        with Mount(first, options="rw") as m:
            os.remove(m.at("large"))
        sizes = self.sizes()
        used = [size for size in sizes if size]
        self.assertLess(len(used), 5)
        self.assertLessEqual(set(used[:-1]), {SIZE})
        self.assertEqual(sizes[len(used):], [0] * (len(long) - len(used)))  # members behind the end stay, as libhdf5 leaves them
        with self.open() as f:
            self.assertEqual(f["group/old"][:].tolist(), [0, 1, 2])
        with Mount(first, options="rw") as m:  # and are used again
            write(m.at("more"), b"x" * 60_000)
        with self.open() as f:
            self.assertEqual(sorted(f), ["group", "more", "rows"])
            self.assertEqual(f["more"][()].tobytes(), b"x" * 60_000)

    def test_reclaim(self):
        for libver in "earliest", "latest":
            first = self.make(libver)
            with h5py.File(self.file(NAME), "r+", driver="family", memb_size=SIZE) as f:
                f["gone"] = numpy.full(50_000, 7, "u1")
            with h5py.File(self.file(NAME), "r+", driver="family", memb_size=SIZE) as f:
                at = f["gone"].id.get_offset()
                f["last"] = 1
            with h5py.File(self.file(NAME), "r+", driver="family", memb_size=SIZE) as f:
                del f["gone"]
            run = subprocess.run([H5FS, "--check", first], capture_output=True, text=True)
            self.assertRegex(run.stdout, r"\d+ bytes", run.stdout)
            self.assertNotIn("not certain", run.stdout)
            run = subprocess.run([H5FS, "--reclaim", first], capture_output=True, text=True)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            if any(self.sizes()[at // SIZE + 1:]):
                with open(self.file(NAME % (at // SIZE + 1)), "rb") as f:
                    self.assertEqual(f.read(), bytes(SIZE))
            with self.open() as f:
                self.assertEqual(sorted(f), ["group", "last", "rows"])
                numpy.testing.assert_array_equal(f["rows"], rows(0, 5))
            for old in glob.glob(self.file("family*")):
                os.remove(old)

    def test_kill(self):
        first = self.make()
        with Mount(first, options="rw") as m:
            self.append(m, 5, 3000)
            os.mkdir(m.at("made"))
            os.sync()
            self.append(m, 3000, 3500)
            m.kill()
        self.assertTrue(os.path.exists(first + ".h5fs-journal"))
        with Mount(first) as m:  # for reading
            self.assertIn("made", os.listdir(m.path))
        with Mount(first, options="rw") as m:
            self.append(m, os.path.getsize(m.at("rows")) // 36, 4000)
        with self.open() as f:
            numpy.testing.assert_array_equal(f["rows"], rows(0, 4000))
            self.assertIn("made", f)

    def test_a_journal_elsewhere(self):
        journals = self.file("journals")
        os.mkdir(journals)
        for libver in "earliest", "latest":
            first = self.make(libver)
            with Mount(first, options=f"rw,journal={journals}") as m:
                self.append(m, 5, 3000)
                os.mkdir(m.at("made"))
                os.sync()
                self.append(m, 3000, 3500)
                m.kill()
            self.assertEqual(len(os.listdir(journals)), 1)
            before = {name: read(name) for name in glob.glob(self.file("*.h5")) + glob.glob(self.file("journals", "*"))}
            for options in None, f"journal={journals}":
                with Mount(first, options=options) as m:
                    self.assertIn("made", os.listdir(m.path))
                    self.assertEqual(read(m.at("rows"))[:36 * 3000], rows(0, 3000).tobytes())
            self.assertEqual({name: read(name) for name in before}, before)
            with Mount(first, options=f"rw,journal={journals}") as m:
                self.append(m, os.path.getsize(m.at("rows")) // 36, 4000)
            self.assertEqual((os.listdir(journals), glob.glob(self.file("*journal"))), ([], []))
            with self.open() as f:
                numpy.testing.assert_array_equal(f["rows"], rows(0, 4000))
                self.assertIn("made", f)
            self.assertEqual(subprocess.run([H5FS, "--check", first], capture_output=True).returncode, 0)
            for old in glob.glob(self.file("family*")):
                os.remove(old)

    def test_in_a_folder(self):
        """Its first member is the directory of all; what begins as no HDF5 file does is shown as it is."""
        os.makedirs(self.file("top", "sub"))
        for name in ("top", "family_%05d.h5"), ("top", "sub", "other%d.h5"):
            with h5py.File(self.file(*name), "w", driver="family", memb_size=SIZE) as f:
                f.create_dataset("rows", data=rows(0, 5), maxshape=(None, WIDTH), chunks=(8, WIDTH))
        with Mount(self.file("top"), options="rw") as m:
            for first in ("family_00000.h5",), ("sub", "other0.h5"):
                with open(m.at(*first, "rows"), "ab", buffering=0) as f:
                    f.write(rows(5, 2000).tobytes())
                os.mkdir(m.at(*first, "made"))
                os.sync()
                self.assertEqual(read(m.at(*first, "rows")), rows(0, 2000).tobytes())
            self.assertEqual(read(m.at("family_00001.h5")), read(self.file("top", "family_00001.h5")))
            self.assertTrue(os.path.isfile(m.at("sub", "other3.h5")))
            self.assertErrno(errno.EROFS, open, m.at("family_00001.h5"), "r+b")
        for name, count in (("family_%05d.h5", "family_?????.h5"), (os.path.join("sub", "other%d.h5"), os.path.join("sub", "other*.h5"))):
            self.assertGreater(len(glob.glob(self.file("top", count))), 5)
            with h5py.File(self.file("top", name), driver="family", memb_size=SIZE) as f:
                numpy.testing.assert_array_equal(f["rows"], rows(0, 2000))
                self.assertIn("made", f)
        self.assertEqual(glob.glob(self.file("top", "**", "*journal"), recursive=True), [])

    def test_free_space_that_is_kept_track_of(self):
        """It is used, and what is left is told; libhdf5 uses that."""
        first = self.make("latest", fs_strategy="fsm", fs_persist=True)
        with h5py.File(self.file(NAME), "r+", driver="family", memb_size=SIZE, libver="latest") as f:
            f["gone"] = numpy.full(100_000, 7, "u1")
            f["last"] = numpy.arange(5000)
        with h5py.File(self.file(NAME), "r+", driver="family", memb_size=SIZE, libver="latest") as f:
            del f["gone"]
        size = sum(self.sizes())
        with Mount(first, options="rw") as m:
            write(m.at("new"), b"x" * 60_000)
            self.append(m, 5, 300)
            os.remove(m.at("group", "old"))
        self.assertLess(sum(self.sizes()), size + 20_000)
        with self.open() as f:
            told = f.id.get_freespace()
            self.assertEqual(f["new"][()].tobytes(), b"x" * 60_000)
            self.assertEqual(f["last"][:].tolist(), list(range(5000)))
            numpy.testing.assert_array_equal(f["rows"], rows(0, 300))
        run = subprocess.run([H5FS, "--check", first], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertGreater(told, 20_000)
        self.assertEqual(told, int(run.stdout.split("nothing refers to ")[1].split()[0]))
        size = sum(self.sizes())
        with h5py.File(self.file(NAME), "r+", driver="family", memb_size=SIZE, libver="latest") as f:
            f["more"] = numpy.full(20_000, 5, "u1")
        self.assertLess(sum(self.sizes()), size + 10_000)
        with self.open() as f:
            self.assertTrue((f["more"][:] == 5).all())
            numpy.testing.assert_array_equal(f["rows"], rows(0, 300))

    def test_refused(self):
        first = self.make()
        with Mount(first, options="rw") as m:
            self.append(m, 5, 1000)
        third = self.file(NAME % 2)
        content = read(third)
        os.remove(third)
        self.assertRefused(first, "family_00002.h5")  # a member is missing
        os.mkdir(third)
        self.assertRefused(first, "family_00002.h5")  # or cannot be written
        os.rmdir(third)
        write(third, content)
        with open(third, "rb") as f:
            fcntl.flock(f, fcntl.LOCK_SH)
            self.assertRefused(first, "family_00002.h5: locked")
        with Mount(first, options="rw"):
            with open(third, "rb") as f, self.assertRaises(BlockingIOError):
                fcntl.flock(f, fcntl.LOCK_SH | fcntl.LOCK_NB)
        self.assertRefused(self.make(size=4000), "members of 4000 bytes")

    def test_a_name_that_is_taken(self):
        first = self.make()
        with h5py.File(self.file(NAME % len(self.sizes())), "w") as f:
            f["other"] = 1
        other = self.file(NAME % (len(self.sizes()) - 1))
        content = read(other)
        with Mount(first, options="rw") as m:
            self.assertErrno(errno.EEXIST, self.append, m, 5, 5000)
        self.assertEqual(read(other), content)
        with Mount(first) as m:
            self.assertEqual(read(m.at("rows"))[:5 * 36], rows(0, 5).tobytes())


if __name__ == "__main__":
    main()
