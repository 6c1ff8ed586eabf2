#!/usr/bin/python3
"""Handles of files, as NFS servers keep them: they lead to the same object, however long ago the kernel has forgotten it, or
to ESTALE."""
import ctypes
import errno
import os
import shutil

import h5py
import numpy

from mountlib import Mount, MountCase, main, read, write

AT_EMPTY_PATH = 0x1000
AT_FDCWD = -100
HEAD = 8  # bytes of a handle before what the file system says: length and type
LIBC = ctypes.CDLL(None, use_errno=True)


def check(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def handle_of(path):
    """The handle of a path, as name_to_handle_at(2) gives it; a symlink is not followed."""
    handle = ctypes.create_string_buffer(HEAD + 128)
    handle[:4] = (128).to_bytes(4, "little")
    mount = ctypes.c_int()
    check(LIBC.name_to_handle_at(AT_FDCWD, os.fsencode(path), handle, ctypes.byref(mount), 0))
    return handle.raw[:HEAD + int.from_bytes(handle.raw[:4], "little")]


def forget():
    """Makes the kernel forget all inodes that nobody uses."""
    write("/proc/sys/vm/drop_caches", b"2")


class Case(MountCase):
    def setUp(self):
        super().setUp()
        self.path = self.file("data.h5")
        with h5py.File(self.path, "w") as f:
            f["one/two/three/data"] = numpy.arange(10)
            f["one/other"] = numpy.arange(20, 40)
            f["one/again"] = f["one/other"]
            f["one/two/self"] = h5py.SoftLink("/one/other")
            f["again"] = f["one/two"]
            f["type"] = numpy.dtype("<i4")
            f["one/other"].attrs["units"] = "m"
            f["far"] = h5py.ExternalLink("far.h5", "/folder")
            f["far_data"] = h5py.ExternalLink("far.h5", "/folder/data")
        with h5py.File(self.file("far.h5"), "w") as f:
            f["folder/data"] = numpy.arange(5)
        # Without a lock, a file that was written just now may be written again at once without a new time.
        for path in self.path, self.file("far.h5"):
            os.utime(path, (10 ** 9, 10 ** 9))

    def open(self, m, handle, flags=os.O_RDONLY):
        root = os.open(m.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fd = check(LIBC.open_by_handle_at(root, ctypes.create_string_buffer(handle, len(handle)), flags | os.O_CLOEXEC))
        finally:
            os.close(root)
        return fd

    def is_stale(self, m, handle, flags=os.O_PATH | os.O_NOFOLLOW):
        try:
            os.close(self.open(m, handle, flags))
        except OSError as error:
            if error.errno == errno.ESTALE:
                return True
            raise
        return False

    def all_handles(self, m, *tops):
        """Path, handle and inode number of all that there is below."""
        found = []
        for top in tops or ("",):
            for folder, folders, files in os.walk(m.at(top)):
                found += [os.path.join(folder, name) for name in folders + files] + ([folder] if top else [])
        return [(path, handle_of(path), os.lstat(path).st_ino) for path in found]

    def check_all(self, m, handles):
        for path, handle, ino in handles:
            with self.subTest(path):
                link = os.path.islink(path)
                forget()
                fd = self.open(m, handle, os.O_PATH | os.O_NOFOLLOW if link else os.O_RDONLY)
                self.assertEqual(os.fstat(fd).st_ino, ino)
                if link:
                    self.assertEqual(os.readlink("", dir_fd=fd), os.readlink(path))
                elif os.path.isdir(path):
                    # Connected with the root: the kernel has found all folders above, too.
                    self.assertEqual(os.readlink(f"/proc/self/fd/{fd}"), path)
                    self.assertEqual(os.listdir(fd), os.listdir(path))
                else:
                    self.assertEqual(os.read(fd, 1 << 20), read(path))
                os.close(fd)


class Found(Case):
    def test_the_tree(self):
        """Files, folders, hard links to either, symlinks, objects of other files."""
        for options in "ro", "rw", "ro,locking=no":
            with self.subTest(options), Mount(self.path, options=options) as m:
                handles = self.all_handles(m)
                self.assertEqual(len(handles), 15)
                self.check_all(m, handles)

    def test_the_views(self):
        with Mount(self.path) as m:
            handles = self.all_handles(m, ".h5fs")
            files = [h for h in handles if os.path.islink(h[0]) or not os.path.isdir(h[0])]
            self.assertGreater(len(files), 15)
            self.check_all(m, files)
            # To connect a folder with the root the kernel looks for `.h5fs` in the listing of the root, which does not have
            # it. So it finds folders only as long as it still knows that name.
            with self.assertRaises(OSError) as caught:
                for _ in range(100):
                    forget()
                    for path, handle, ino in set(handles) - set(files):
                        fd = self.open(m, handle)
                        self.assertEqual(os.fstat(fd).st_ino, ino)
                        os.close(fd)
            self.assertEqual(caught.exception.errno, errno.ESTALE)
            m.open(".h5fs", os.O_RDONLY)
            twins = {m.at(".h5fs", view, "one", "other") for view in ("attrs", "zarr", "zarr3")} | {m.at(".h5fs/zarr3/one/other/c")}
            self.check_all(m, [h for h in handles if h not in files and h[0] not in twins])

    def test_twins(self):
        """Two hard links to a group in one folder have one inode number, by which the kernel finds the first name. It does
        not take one for the other."""
        with h5py.File(self.path, "a") as f:
            f["one/two/twin"] = f["one/two/three"]
        with Mount(self.path) as m:
            for name in "twin", "three":
                handle = handle_of(m.at("one", "two", name))
                for _ in range(20):
                    forget()
                    try:
                        fd = self.open(m, handle)
                        found = os.readlink(f"/proc/self/fd/{fd}")
                        os.close(fd)
                        self.assertEqual(found, m.at("one", "two", name))
                    except OSError as error:
                        self.assertEqual((error.errno, name), (errno.ESTALE, "twin"))
                # Whoever looks the name up has it found.
                os.stat(m.at("one", "two", name))
                os.close(self.open(m, handle))

    def test_of_a_group_that_is_mounted(self):
        with Mount(self.path, options="subdir=/one") as m:
            self.check_all(m, self.all_handles(m))

    def test_hard_links_have_one_handle(self):
        with Mount(self.path) as m:
            self.assertEqual(handle_of(m.at("one", "other")), handle_of(m.at("one", "again")))
            self.assertNotEqual(handle_of(m.at("one", "other")), handle_of(m.at("type")))
            # A folder is in one place: two have two.
            self.assertNotEqual(handle_of(m.at("one", "two")), handle_of(m.at("again")))

    def test_handles_stay_the_same(self):
        with Mount(self.path) as m:
            before = self.all_handles(m)
            forget()
            self.assertEqual(self.all_handles(m), before)

    def test_writing(self):
        with h5py.File(self.path, "a") as f:
            f.create_dataset("rows", (0,), "u1", maxshape=(None,), chunks=(8,))
        with Mount(self.path, options="rw") as m:
            handle = handle_of(m.at("rows"))
            for i in range(3):
                forget()
                fd = self.open(m, handle, os.O_WRONLY | os.O_APPEND)
                self.assertEqual(os.write(fd, b"row"), 3)
                os.close(fd)
            self.assertEqual(read(m.at("rows")), b"rowrowrow")


class Many(Case):
    COUNT = 66000  # more than are remembered

    def test_the_first_ones_forgotten_are_stale_until_somebody_looks(self):
        with h5py.File(self.path, "a", libver="latest") as f:
            group = f.create_group("many").id
            for i in range(self.COUNT):
                group.links.create_hard(b"%d" % i, f.id, b"one")
        with Mount(self.path) as m:
            first = m.at("many", "0")
            handle, ino = handle_of(first), os.stat(first).st_ino
            # The kernel tells of what it forgets in its own time. A handle that is asked for too early is found, and then
            # is the last one that the kernel forgets: so all others must be looked up after it once more.
            for _ in range(20):
                forget()
                with os.scandir(m.at("many")) as entries:
                    self.assertEqual(sum(entry.stat().st_ino == ino for entry in entries), self.COUNT)
                forget()
                os.listdir(m.path)
                if self.is_stale(m, handle):
                    break
            else:
                self.fail("it is found without having been remembered")
            os.stat(first)
            self.assertFalse(self.is_stale(m, handle))


class Stale(Case):
    def check_stale(self, m, handles):
        for path, handle, _ in handles:
            with self.subTest(path):
                self.assertTrue(self.is_stale(m, handle))

    def test_handles_of_an_earlier_mount(self):
        point = self.file("mnt")
        os.mkdir(point)
        with Mount(self.path, point=point) as m:
            handles = self.all_handles(m) + self.all_handles(m, ".h5fs")
        with Mount(self.path, point=point) as m:
            self.check_stale(m, handles)
            self.all_handles(m)  # also when the kernel knows them
            self.check_stale(m, handles)

    def test_handles_that_were_made_up(self):
        """Of objects that the mount does not show."""
        with h5py.File(self.path) as f:
            outside = h5py.h5o.get_info(f["one/other"].id).addr
        with Mount(self.path, options="subdir=/one/two/three") as m:
            handle = handle_of(m.at("data"))
            number = int.from_bytes(handle[HEAD:HEAD + 8], "little")
            with h5py.File(self.path) as f:
                inside = h5py.h5o.get_info(f["one/two/three/data"].id).addr
            for made_up in number - inside + outside, 0, 2, number + 1, 1 << 62, 1 << 63, (1 << 64) - 1, number | 7 << 56, number | 63 << 56:
                with self.subTest(hex(made_up)):
                    self.assertTrue(self.is_stale(m, handle[:HEAD] + made_up.to_bytes(8, "little") + handle[HEAD + 8:]))

    def test_another_object_in_the_place(self):
        """Without a lock others may write the file anew: then an address may be that of another object."""
        with Mount(self.path, options="locking=no") as m:
            handles = self.all_handles(m)
            with h5py.File(self.file("new.h5"), "w") as f:
                f["one/two/three/data"] = numpy.arange(10)
                f["one/other"] = b"something else"
            shutil.copyfile(self.file("new.h5"), self.path)
            forget()
            self.check_stale(m, handles)


if __name__ == "__main__":
    main()
