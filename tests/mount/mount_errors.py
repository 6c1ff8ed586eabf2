#!/usr/bin/python3
"""What cannot be mounted or read: a message that says why, the right errno, and no harm to neighbours."""
import contextlib
import errno
import fcntl
import os
import re
import struct
import subprocess
import unittest

import h5py
import numpy

from mountlib import H5FS, Mount, MountCase, Strace, lookup3, main, mounted, patch, read, refusal, write

DEFLATE = struct.pack("<HHHH8s", 1, 8, 1, 1, b"deflate")  # its description in a version 1 pipeline message


class ErrorCase(MountCase):
    def assertRefused(self, file, reason, **options):
        point = self.file("mnt")
        os.makedirs(point, exist_ok=True)
        status, said = refusal(file, point=point, **options)
        self.assertGreater(status, 0)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertRegex(said, re.compile(reason, re.I))
        self.assertFalse(mounted(point))

    def sample(self, libver="earliest"):
        path = self.file("sample.h5")
        with h5py.File(path, "w", libver=libver) as f:
            f["d"] = range(100)
            f["g/e"] = 1
        return path


class Refused(ErrorCase):
    def test_not_hdf5(self):
        path = self.file("text.h5")
        write(path, b"Once upon a time\n" * 1000)
        self.assertRefused(path, "not an HDF5 file")

    def test_empty(self):
        path = self.file("empty.h5")
        write(path, b"")
        self.assertRefused(path, "not an HDF5 file")

    def test_missing(self):
        self.assertRefused(self.file("nothing.h5"), "no such file")

    def test_fifo(self):
        path = self.file("fifo.h5")
        os.mkfifo(path)
        self.assertRefused(path, "regular")

    def test_cut_inside_the_root(self):
        for libver, size in (("earliest", 100), ("latest", 60)):
            path = self.sample(libver)
            os.truncate(path, size)
            with self.subTest(libver=libver):
                self.assertRefused(path, "root group")

    def test_cut_inside_the_superblock(self):
        for size in (7, 8, 9, 40):
            path = self.sample("latest")
            os.truncate(path, size)
            with self.subTest(size=size):
                self.assertRefused(path, ".")

    def test_damaged_superblock(self):
        path = self.sample("latest")
        content = bytearray(read(path))
        content[30] ^= 1  # in the end-of-file address; the checksum tells
        write(path, content)
        self.assertRefused(path, "checksum")

    def test_damaged_root(self):
        path = self.sample("latest")
        patch(path, b"OHDR", b"OHDX", read(path).count(b"OHDR"))
        self.assertRefused(path, "object header")

    def test_damaged_root_of_version_1(self):
        path = self.sample()
        content = bytearray(read(path))
        root, = struct.unpack_from("<Q", content, 64)
        content[root] = 99  # the version
        write(path, content)
        self.assertRefused(path, "object header|version")

    def test_root_that_is_no_group(self):
        path = self.sample()
        with h5py.File(path) as f:
            address = h5py.h5o.get_info(f["d"].id).addr
        content = bytearray(read(path))
        struct.pack_into("<QI", content, 64, address, 0)
        content[72:96] = bytes(24)  # without the cached symbol table
        write(path, content)
        self.assertRefused(path, "root")

    def test_missing_mount_point(self):
        point = self.file("no-such-folder", "mnt")
        status, said = refusal(self.sample(), point=point)
        self.assertGreater(status, 0)
        self.assertRegex(said, "(?i)no such file")

    def test_a_file_as_mount_point(self):
        path = self.sample()
        status, said = refusal(path, point=path)
        self.assertGreater(status, 0)
        self.assertRegex(said, "(?i)not a directory|mount ?point")

    def test_options_that_do_not_exist(self):
        path = self.sample()
        for option in ("no_such_option", "external=perhaps", "locking=perhaps", "order=size", "xattr=no", "uid=x", "sync=never", "wait=x"):
            with self.subTest(option=option):
                self.assertRefused(path, re.escape(option.split("=")[0]), options=option)


class Unstarted(ErrorCase):
    @unittest.skipIf(os.geteuid(), "fusermount3 mounts for root alone under strace")
    def test_processes_and_threads(self):
        """One of those that a mount for writing begins with cannot be started: it says so, and nothing stays mounted."""
        path, point = self.sample(), self.file("mnt")
        os.mkdir(point)
        before = read(path)
        for number in range(1, 5):
            command = ["strace", "-o", self.file("trace"), "-e", "trace=clone,clone3", "-e", "inject=clone3:error=ENOSYS",
                       "-e", f"inject=clone:error=EAGAIN:when={number}", H5FS, "-f", "-o", "rw", path, point]
            with self.subTest(number):
                try:
                    run = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=20, check=False,
                                         env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
                finally:
                    if mounted(point):
                        subprocess.run(["fusermount3", "-u", point], check=False)
                        self.fail("it is mounted")
                self.assertEqual(run.returncode, 7, run.stderr)
                self.assertRegex(run.stderr, "^h5fs: .*: Resource temporarily unavailable\n$")
        self.assertEqual(read(path), before)


class Ended(ErrorCase):
    def test_a_connection_that_is_aborted(self):
        """The kernel says so at times in place of ENODEV, if the file system goes while a request is being read."""
        with Mount(self.sample(), "-f", options="rw", env={"ASAN_OPTIONS": "detect_leaks=0"}) as m:
            with Strace(m.daemon, self.file("trace"), "-P", "/dev/fuse", "-e", "trace=read", "-e", "inject=read:error=ECONNABORTED:when=1"):
                with contextlib.suppress(OSError):
                    os.stat(m.path)
                self.assertEqual(m.wait(), 0)
            self.assertNotIn("cannot be read", m.said())


class Locked(ErrorCase):
    def test_lock(self):
        path = self.sample()
        with open(path, "rb") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            self.assertRefused(path, "lock")
            self.assertRefused(path, "lock", env={"HDF5_USE_FILE_LOCKING": "TRUE"})
            self.assertRefused(path, "lock", env={"HDF5_USE_FILE_LOCKING": "BEST_EFFORT"})
            for allowed in ({"env": {"HDF5_USE_FILE_LOCKING": "FALSE"}}, {"env": {"HDF5_USE_FILE_LOCKING": "0"}},
                            {"options": "locking=no"}):
                with self.subTest(**allowed), Mount(path, **allowed) as m:
                    self.assertEqual(sorted(os.listdir(m.path)), ["d", "g"])

    def test_the_mount_locks_writers_out(self):
        path = self.sample()
        with open(path, "rb") as other:
            with Mount(path):
                fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
                self.assertErrno(errno.EWOULDBLOCK, fcntl.flock, other, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with self.assertRaises(OSError):
                    h5py.File(path, "r+")
                with h5py.File(path, "r") as f:
                    self.assertEqual(f["g/e"][()], 1)
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_readers_share(self):
        path = self.sample()
        with Mount(path) as one, Mount(path) as two, h5py.File(path, "r"):
            self.assertEqual(read(one.at("d")), read(two.at("d")))


class Damage(MountCase):
    """One damaged object: the errno of doc/h5fs.1, and its neighbours as before."""

    def damaged(self, change):
        path = self.file("damaged.h5")
        with h5py.File(path, "w", libver="earliest") as f:
            f.create_dataset("good", data=range(1000), chunks=(100,), compression="gzip")
            f.create_dataset("bad", data=range(1000), chunks=(100,), compression="gzip", track_times=True)
            f.create_dataset("group/inner", data=1)
            address = {name: h5py.h5o.get_info(f[name].id).addr for name in ("bad", "group")}
            expected = f["good"][()].tobytes()
        content = bytearray(read(path))
        change(content, address)
        write(path, content)
        return path, expected

    def check(self, change, number, name="bad"):
        path, expected = self.damaged(change)
        with Mount(path, "-f") as m:
            self.assertEqual(sorted(os.listdir(m.path)), ["bad", "good", "group"])
            if name == "group":
                self.assertErrno(number, os.listdir, m.at("group"))
            else:
                self.assertErrno(number, read, m.at("bad"))
            self.assertEqual(read(m.at("good")), expected)
            self.assertRegex(m.said(), rf"at address [0-9]+ \(/{name}\)")

    def test_missing_filter(self):
        def change(content, address):
            struct.pack_into("<H", content, content.index(DEFLATE, address["bad"]), 12345)
        self.check(change, errno.ENOTSUP)

    def test_object_header(self):
        def change(content, address):
            content[address["bad"]] = 99
        self.check(change, errno.EUCLEAN)

    def test_chunk_index(self):
        def change(content, address):
            at = content.index(DEFLATE, address["bad"])
            layout = content.index(b"\x03\x02\x02", address["bad"], at + 200)  # version, chunked, dimensionality
            btree, = struct.unpack_from("<Q", content, layout + 3)
            self.assertEqual(content[btree:btree + 5], b"TREE\x01")
            content[btree] ^= 1
        self.check(change, errno.EUCLEAN)

    def test_compressed_chunk(self):
        def change(content, address):
            layout = content.index(b"\x03\x02\x02", address["bad"])
            btree, = struct.unpack_from("<Q", content, layout + 3)
            chunk, = struct.unpack_from("<Q", content, btree + 24 + 24)
            content[chunk:chunk + 8] = b"\xff" * 8
        self.check(change, errno.EUCLEAN)

    def test_group(self):
        def change(content, address):
            content[address["group"]] = 99
        self.check(change, errno.EUCLEAN, "group")

    def test_a_listing_shows_what_is_left_and_fails_at_its_end(self):
        path = self.file("nodes.h5")
        with h5py.File(path, "w", libver="earliest") as f:
            for i in range(30):
                f[f"g/{i:02}"] = i
        content = bytearray(read(path))
        nodes = [at for at in range(0, len(content), 8) if content[at:at + 4] == b"SNOD"]
        content[nodes[1]] ^= 1  # one of the group's symbol table nodes
        write(path, content)
        with Mount(path) as m:
            names = []
            with self.assertRaises(OSError) as failed:
                for entry in os.scandir(m.at("g")):
                    names.append(entry.name)
            self.assertEqual(failed.exception.errno, errno.EUCLEAN)
            self.assertTrue(0 < len(names) < 30, names)
            for name in names:
                self.assertEqual(read(m.at("g", name)), struct.pack("<q", int(name)))

    def test_checksum_of_a_version_2_header(self):
        path = self.file("v2.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f["good"] = 1
            f["bad"] = 2
            address = h5py.h5o.get_info(f["bad"].id).addr
        content = bytearray(read(path))
        self.assertEqual(content[address:address + 4], b"OHDR")
        content[address + 12] ^= 1
        write(path, content)
        with Mount(path) as m:
            self.assertErrno(errno.EUCLEAN, read, m.at("bad"))
            self.assertEqual(read(m.at("good")), (1).to_bytes(8, "little"))

    def test_sizes_of_what_cannot_be_read(self):
        """The type and the shape tell them: the same in a listing, to a look-up and in stat(), on any mount."""
        path = self.file("sizes.h5")
        with h5py.File(path, "w", libver="earliest") as f:
            f.create_dataset("filter", (1000, 1), "<i4", chunks=(10, 1), compression="gzip", data=numpy.ones((1000, 1)))
            address = h5py.h5o.get_info(f["filter"].id).addr
        with h5py.File(path, "r+", libver="latest") as f:
            for name, maxshape in (("fixed", (1000, 1)), ("extensible", (None, 1)), ("btree2", (None, None))):
                f.create_dataset(name, (1000, 1), "<i4", maxshape=maxshape, chunks=(10, 1), data=numpy.ones((1000, 1)))
        content = bytearray(read(path))
        content[content.index(DEFLATE, address) - 7] = 99  # the number of filters
        for signature in (b"FAHD", b"EAHD", b"BTHD"):
            self.assertEqual(content.count(signature), 1, signature)
            content[content.index(signature)] ^= 1
        write(path, content)
        names = "btree2", "extensible", "filter", "fixed"
        with Mount(path) as m:
            listed = {entry.name: entry.stat() for entry in os.scandir(m.path) if entry.name in names}
            for name in names:
                self.assertErrno(errno.EUCLEAN, read, m.at(name))
        with Mount(path) as m:
            found = {name: os.stat(m.at(name)) for name in names}
        with Mount(path, options="rw") as m:
            asked = {name: os.stat(m.at(name)) for entry in os.scandir(m.path) if (name := entry.name) in names}
        for by in listed, found, asked:
            for name in names:
                self.assertEqual((by[name].st_size, by[name].st_mode & 0o222), (4000, 0), name)
                self.assertEqual(by[name].st_blocks, listed[name].st_blocks, name)

    def test_truncated(self):
        """What is still there is served."""
        path = self.file("truncated.h5")
        with h5py.File(path, "w") as f:
            f["first"] = numpy.arange(10_000)
            f["last"] = numpy.arange(10_000)
            cut = f["last"].id.get_offset() + 40_000
            expected = f["first"][()].tobytes()
        os.truncate(path, cut)
        with self.assertRaises(OSError):
            h5py.File(path, "r")
        with Mount(path) as m:
            self.assertEqual(read(m.at("first")), expected)
            self.assertEqual(os.path.getsize(m.at("last")), 80_000)
            self.assertErrno(errno.EUCLEAN, read, m.at("last"))
            with open(m.at("last"), "rb", buffering=0) as f:
                self.assertEqual(f.read(4096), expected[:4096])

    def test_superblock_marked_as_open_for_writing(self):
        """A mark that a crash left behind: mounted for reading, with a warning."""
        path = self.file("marked.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f["d"] = 1
        content = bytearray(read(path))
        content[11] |= 1
        struct.pack_into("<I", content, 44, lookup3(bytes(content[:44])))
        write(path, content)
        with self.assertRaises(OSError):
            h5py.File(path, "r")
        with Mount(path) as m:
            self.assertEqual(read(m.at("d")), (1).to_bytes(8, "little"))
            self.assertIn("writing", m.said())

    def test_a_file_that_a_swmr_writer_has_open(self):
        """That one holds no lock: what it adds is seen."""
        path = self.file("growing.h5")
        with h5py.File(path, "w", libver="latest") as f:
            d = f.create_dataset("d", (3,), "<i4", maxshape=(None,), chunks=(2,), data=[1, 2, 3])
            f.swmr_mode = True
            with Mount(path) as m:
                self.assertEqual(read(m.at("d")), struct.pack("<3i", 1, 2, 3))
                d.resize((5,))
                d[3:] = [4, 5]
                d.flush()
                self.assertEqual(os.path.getsize(m.at("d")), 20)
                self.assertEqual(read(m.at("d")), struct.pack("<5i", 1, 2, 3, 4, 5))

    def test_a_missing_attribute(self):
        path, _ = self.damaged(lambda *_: None)
        with Mount(path) as m:
            for name in ("user.none", "none", "security.capability", "system.posix_acl_access", "h5fs.none"):
                with self.subTest(name=name):
                    self.assertErrno(errno.ENODATA, os.getxattr, m.at("good"), name)

    def test_writing(self):
        path, _ = self.damaged(lambda *_: None)
        with Mount(path) as m:
            self.assertTrue(os.statvfs(m.path).f_flag & os.ST_RDONLY)
            self.assertErrno(errno.EROFS, os.open, m.at("good"), os.O_WRONLY)
            self.assertErrno(errno.EROFS, os.open, m.at("new"), os.O_WRONLY | os.O_CREAT)
            self.assertErrno(errno.EROFS, os.unlink, m.at("good"))
            self.assertErrno(errno.EROFS, os.mkdir, m.at("new"))
            self.assertErrno(errno.EROFS, os.rename, m.at("good"), m.at("new"))
            self.assertErrno(errno.EROFS, os.truncate, m.at("good"), 0)
            self.assertErrno(errno.EROFS, os.setxattr, m.at("good"), "user.a", b"1")


class Drivers(MountCase):
    """Files of drivers of libhdf5 that have no file for themselves: the message says what they are."""

    def test_an_onion(self):
        path = self.file("x.h5.onion")
        with open(path, "wb") as f:
            f.write(b"OHDH\1".ljust(40, b"\0"))
        status, said = refusal(path)
        self.assertTrue(status)
        self.assertIn("onion", said)


class Unnamed(MountCase):
    def test_a_registered_filter(self):
        """A plugin that was not asked for its name left none in the file: 32017 is SZ."""
        path = self.file("sz.h5")
        with h5py.File(path, "w") as f:
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_chunk((4,))
            plist.set_filter(32017, h5py.h5z.FLAG_OPTIONAL, (1,))
            d = h5py.h5d.create(f.id, b"d", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((4,)), plist)
            d.write_direct_chunk((0,), b"x" * 10)
        with Mount(path, "-f") as m:
            self.assertErrno(errno.ENOTSUP, read, m.at("d"))
            self.assertIn("filter 32017 (sz) is not available", m.said())


if __name__ == "__main__":
    main()
