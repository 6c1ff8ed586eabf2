#!/usr/bin/python3
"""Files in several pieces (family, split and multi drivers), mounted by the name of the first."""
import ctypes
import errno
import glob
import os
import resource
import shutil
import unittest

import h5py
import numpy

from mountlib import Mount, MountCase, main, patch, read, refusal, tree, write

FOUND = os.path.join(os.environ.get("H5FS_CONFORMANCE", ""), "found", "hostile")


def fill(f):
    f["numbers"] = numpy.arange(25_000, dtype="<i4")
    f.create_dataset("group/chunked", data=numpy.arange(700, dtype="<f8"), chunks=(50,), compression="gzip")
    f["group/words"] = ["one", "two", "three"]
    f["group"].attrs["text"] = "words"
    f["group"].attrs["number"] = 7
    for i in range(50):
        f[f"group/inner/{i:03d}"] = i


def tree_but(top, name):
    """The files of the tree that can be read; for `name`, nothing is tried."""
    found = {}
    for folder, _, files in os.walk(top):
        for path in (os.path.join(folder, file) for file in files):
            relative = os.path.relpath(path, top)
            try:
                if relative != name:
                    found[relative] = {key: os.getxattr(path, key) for key in os.listxattr(path)}, read(path)
            except OSError:
                pass
    return found


class MembersCase(MountCase):
    def setUp(self):
        super().setUp()
        with h5py.File(self.file("plain.h5"), "w") as f:
            fill(f)
        with Mount(self.file("plain.h5")) as m:
            self.expected = tree(m.path)
        self.assertEqual(len(self.expected), 56)

    def family(self, name="family_%05d.h5", size=3000, **options):
        with h5py.File(self.file(name), "w", driver="family", memb_size=size, **options) as f:
            fill(f)
        self.assertGreater(len(glob.glob(self.file("family*"))), 3)
        return self.file(name % 0)

    def multi(self, name):
        fapl = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
        hdf5 = next(line.split()[-1] for line in open("/proc/self/maps") if "libhdf5" in line and "_hl" not in line)
        nothing = None, None, None, None, 0
        self.assertGreaterEqual(ctypes.CDLL(hdf5).H5Pset_fapl_multi(ctypes.c_int64(fapl.id), *nothing), 0)
        with h5py.File(h5py.h5f.create(self.file(name).encode(), fapl=fapl)) as f:
            fill(f)
        return self.file(name + "-s.h5")

    def assertShown(self, file, **options):
        before = {name: (read(name), os.stat(name).st_mtime_ns) for name in glob.glob(self.file("*")) if os.path.isfile(name)}
        with Mount(file, **options) as m:
            self.assertEqual(tree(m.path), self.expected)
            self.assertEqual(m.said(), "")
        for name, (content, mtime) in before.items():
            self.assertEqual(read(name), content)
            self.assertEqual(os.stat(name).st_mtime_ns, mtime)


class Members(MembersCase):
    def test_family(self):
        for libver in "earliest", "latest":
            for size in 300, 10_000:
                with self.subTest(libver=libver, size=size):
                    self.assertShown(self.family(size=size, libver=libver))
                    for name in glob.glob(self.file("family*")):
                        os.remove(name)

    def test_more_members_than_descriptors(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < 4000:
            self.skipTest(f"no more than {hard} descriptors")
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (4000, hard))
        first = self.family(size=100)
        self.assertGreater(len(os.listdir(self.folder)), 1050)
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
        self.assertShown(first)

    def test_pattern(self):
        self.family()
        self.assertShown(self.file("family_%05d.h5"))

    def test_a_file_whose_name_is_a_pattern(self):
        os.rename(self.file("plain.h5"), self.file("100%d.h5"))
        self.assertShown(self.file("100%d.h5"))

    def test_split(self):
        for libver in "earliest", "latest":
            with h5py.File(self.file(libver), "w", driver="split", libver=libver) as f:
                fill(f)
            self.assertShown(self.file(libver + "-m.h5"))

    def test_multi(self):
        self.assertShown(self.multi("multi"))

    def test_the_newest_time(self):
        first = self.family()
        for name in glob.glob(self.file("family*")):
            os.utime(name, (10**9, 10**9))
        os.utime(self.file("family_00002.h5"), (10**9, 10**9 + 5))
        with Mount(first) as m:
            self.assertEqual(os.stat(m.at("numbers")).st_mtime, 10**9 + 5)

    def test_whatever_other_files_are_opened(self):
        first = self.family()
        for rule in "none", "any":
            self.assertShown(first, options="external=" + rule)

    def test_a_member_is_missing(self):
        first = self.family(size=4000)
        with h5py.File(self.file("family_%05d.h5"), driver="family", memb_size=4000) as f:
            at = f["numbers"].id.get_offset()
        gone = (at + 6000) // 4000
        os.remove(self.file(f"family_{gone:05d}.h5"))
        with Mount(first) as m:
            self.assertEqual(m.said().count("\n"), 1)
            self.assertIn(f"family_{gone:05d}.h5", m.said())
            shown = tree_but(m.path, "numbers")
            self.assertErrno(errno.EIO, read, m.at("numbers"))
            with open(m.at("numbers"), "rb", buffering=0) as f:
                there = gone * 4000 - at
                self.assertEqual(f.read(100), self.expected["numbers"][1][:100])
                self.assertErrno(errno.EIO, os.pread, f.fileno(), 4096, there // 4096 * 4096)
        self.assertEqual({name: value for name, value in self.expected.items() if name in shown}, shown)
        self.assertGreater(len(shown), 5)

    def test_the_raw_data_are_missing(self):
        with h5py.File(self.file("split"), "w", driver="split") as f:
            fill(f)
        os.remove(self.file("split-r.h5"))
        with Mount(self.file("split-m.h5")) as m:
            self.assertIn("split-r.h5", m.said())
            self.assertEqual(len(os.listdir(m.at("group", "inner"))), 50)
            self.assertEqual(os.getxattr(m.at("group"), "user.number"), b"7")
            with self.assertRaises(OSError):
                read(m.at("numbers"))

    def test_refused(self):
        first = self.family()
        second = self.file("family_00001.h5")
        status, said = refusal(second)
        self.assertRegex(said, "not an HDF5 file")
        content = bytearray(read(first))
        self.assertEqual(content[104:112], b"NCSAfami")
        content[112:120] = bytes(8)
        write(first, content)
        status, said = refusal(first)
        self.assertEqual((status, said.count("\n")), (4, 1))
        self.assertRegex(said, "members of 0 bytes")

    def test_by_an_external_link(self):
        first = os.path.basename(self.family())
        os.mkdir(self.file("sub"))
        for name in glob.glob(self.file("family*")):
            os.rename(name, self.file("sub", os.path.basename(name)))
        with h5py.File(self.file("main.h5"), "w") as f:
            f["link"] = h5py.ExternalLink("sub/" + first, "/")
        with Mount(self.file("main.h5")) as m:
            self.assertEqual(tree(m.at("link")), self.expected)


def without_others():
    """Ways to say that a mount opens no other files."""
    return ("external=none", "allow_other") if os.geteuid() == 0 else ("external=none",)


class Guarded(MembersCase):
    """Pieces that a hostile file may name, in mounts that open no other files."""
    SECRET = bytes(range(65, 65 + 48))

    def put(self, name, mode=0o600, owner=0, data=SECRET * 100):
        write(self.file(name), data)
        os.chmod(self.file(name), mode)
        if not os.geteuid():
            os.chown(self.file(name), owner, owner)

    def assertHidden(self, file, names, options=None):
        """No byte of the secret comes through."""
        for option in (options,) if options else without_others():
            with self.subTest(file=file, option=option), Mount(self.file(file), options=option) as m:
                for name in names:
                    try:
                        data = read(m.at(name))
                    except OSError as e:
                        self.assertIn(e.errno, (errno.EIO, errno.EUCLEAN))
                        continue
                    self.assertNotIn(data[:48], self.SECRET * 3)
                self.assertEqual(m.said().count("\n"), 1, m.said())

    @unittest.skipUnless(os.path.isdir(FOUND), "H5FS_CONFORMANCE names no folder with found files")
    def test_found(self):
        shutil.copy(os.path.join(FOUND, "multi-driver-external-none.h5"), self.file("a.h5"))
        self.put("secret.key", data=self.SECRET)
        self.assertHidden("a.h5", ["leak"])
        # The test would see it.
        with Mount(self.file("a.h5"), options="external=beneath") as m:
            self.assertEqual(read(m.at("leak")), self.SECRET)

    def split(self, name, old, new):
        """A file of the split driver that calls its second piece otherwise."""
        with h5py.File(self.file(name), "w", driver="split") as f:
            f["leak"] = numpy.zeros(48, "u1")
        patch(self.file(name + "-m.h5"), old, new)
        os.unlink(self.file(name + "-r.h5"))

    def test_names_that_the_file_chooses(self):
        for i, (new, secret) in enumerate(((b"%s.key\0", "{}.key"), (b"./%s.k\0", None), (b"kkk.key", "kkk.key"), (b"%s-r.h4", "{}-r.h4"))):
            name = f"f{i}"
            self.split(name, b"%s-r.h5", new)
            if secret:
                self.put(secret.format(name), mode=0o644)
            self.assertHidden(name + "-m.h5", ["leak"])

    @unittest.skipIf(os.geteuid(), "to give files away takes root")
    def test_names_of_the_driver_but_other_rights(self):
        self.split("f", b"%s-r.h5", b"%s-r.h5")
        for mode, owner, hidden in ((0o600, 0, True), (0o644, 1, True), (0o640, 0, True), (0o644, 0, False)):
            self.put("f-r.h5", mode, owner)
            if hidden:
                self.assertHidden("f-m.h5", ["leak"])
                continue
            with Mount(self.file("f-m.h5"), options="external=none") as m:
                self.assertIn(read(m.at("leak")), self.SECRET * 3)
                self.assertEqual(m.said(), "")

    def test_family(self):
        first = self.family(size=4000)
        with h5py.File(self.file("family_%05d.h5"), driver="family", memb_size=4000) as f:
            member = (f["numbers"].id.get_offset() + 6000) // 4000
        name = self.file(f"family_{member:05d}.h5")
        content = read(name)
        # Another one's rights, or a file of its own.
        os.chmod(name, 0o600)
        write(name, self.SECRET * 100)
        self.assertHidden(os.path.basename(first), ["numbers"])
        os.chmod(name, 0o644)
        write(name, b"\x89HDF\r\n\x1a\n" + self.SECRET * 100)
        self.assertHidden(os.path.basename(first), ["numbers"])
        # Whoever names all of them means all of them.
        write(name, content)
        os.chmod(name, 0o600)
        for option in without_others():
            self.assertShown(self.file("family_%05d.h5"), options=option)


if __name__ == "__main__":
    main()
