#!/usr/bin/python3
"""What POSIX and Linux say of the calls about directories, links and names, as tests/mount/mount_posix.py."""
import errno
import os

import posixlib
from mountlib import main, read, write
from posixlib import AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_FOLLOW, EXCHANGE, NAME_MAX, NOREPLACE, PATH_MAX, STYLES, Stream, call, kind, make, remove, rename_how


class Names(posixlib.Facts):
    def test_plain_folder(self):
        self.ask_plain_folder()

    def test_mounts(self):
        for style in STYLES:
            with self.subTest(style=style):
                self.ask_mount(style)

    # ---- directories ----

    def fact_mkdir(self):
        self.assertStamped(lambda: os.mkdir("dir"), changed=["."])
        write("file", b"")
        os.symlink("nowhere", "link")
        os.symlink("dir", "to-dir")
        for name in "dir", "file", "link", "to-dir", ".", "..", "dir/", "to-dir/", "dir/.", "dir/..":
            self.assertError(errno.EEXIST, os.mkdir, name)
        os.mkdir("slashes///")
        self.assertEqual((os.listdir("slashes"), kind("slashes")), ([], "d"))
        self.assertError((errno.ENOENT, errno.EEXIST), os.mkdir, "link/")
        self.assertError(errno.ENOENT, os.mkdir, "no/.")
        self.assertEqual(os.stat("dir/..").st_ino, os.stat(".").st_ino)
        self.assertStamped(lambda: os.mkdir("dir/sub"), changed=["dir"], kept=["."])

    def fact_rmdir(self):
        os.makedirs("dir/sub")
        write("file", b"")
        os.symlink("dir", "link")
        for number, name in ((errno.ENOTEMPTY, "dir"), (errno.ENOTDIR, "file"), (errno.ENOTDIR, "link"), (errno.ENOTDIR, "link/"), (errno.EINVAL, "dir/."),
                             (errno.ENOTEMPTY, "dir/sub/.."), (errno.ENOENT, "no")):
            with self.subTest(name):
                self.assertStamped(lambda: self.assertError(number, os.rmdir, name), kept=[".", "dir"])
        self.assertStamped(lambda: os.rmdir("dir/sub/"), changed=["dir"], kept=["."])
        for letter in "-dl":
            make(letter, "dir/x")
            self.assertError((errno.ENOTEMPTY, errno.EEXIST), os.rmdir, "dir")
            remove("dir/x")
        self.assertStamped(lambda: os.rmdir("dir"), changed=["."])
        self.assertIsNone(kind("dir"))

    def fact_removed_directories(self):
        """One that is open, or somebody's working directory."""
        os.mkdir("dir")
        above = os.open(".", os.O_RDONLY)
        fd = os.open("dir", os.O_RDONLY)
        os.chdir("dir")
        os.rmdir("../dir")
        self.assertEqual((os.listdir(fd), os.listdir("."), os.fstat(fd).st_nlink), ([], [], 0))
        for function, *arguments in ((os.mkdir, "x"), (write, "x", b""), (os.symlink, "x", "y"), (os.stat, "x"), (os.link, "../file", "x"), (os.rename, "../file", "x")):
            self.assertError(errno.ENOENT, function, *arguments)
        self.assertError(errno.ENOENT, lambda: os.mkdir("x", dir_fd=fd))
        os.fchdir(above)
        os.mkdir("dir")
        self.assertNotEqual(os.stat("dir").st_ino, os.fstat(fd).st_ino)
        write("dir/x", b"")
        self.assertEqual(os.listdir(fd), [])
        os.close(fd)
        os.close(above)

    def fact_relative_to_descriptors(self):
        os.makedirs("a/sub")
        os.mkdir("b")
        a, b = os.open("a", os.O_RDONLY), os.open("b", os.O_RDONLY)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=a))
        os.mkdir("dir", dir_fd=a)
        os.symlink("file", "link", dir_fd=a)
        os.link("file", "again", src_dir_fd=a, dst_dir_fd=b)
        os.rename("a", "moved")
        os.rename("file", "file", src_dir_fd=a, dst_dir_fd=b)
        self.assertEqual((sorted(os.listdir("moved")), sorted(os.listdir(b))), (["dir", "link", "sub"], ["again", "file"]))
        os.unlink("again", dir_fd=b)
        os.rmdir("dir", dir_fd=a)
        self.assertEqual(os.stat("../b/file", dir_fd=a).st_nlink, 1)
        os.close(a)
        os.close(b)

    def fact_listings(self):
        """Type and number of each entry; places in it; what is made and removed meanwhile."""
        os.mkdir("dir")
        for letter, name in ("d", "dir/d"), ("l", "dir/l"), ("-", "dir/-"):
            make(letter, name)
        expected = {"d": 4, "-": 8, "l": 10}
        stream = Stream("dir")
        entries = {name: (number, letter) for number, letter, name in stream.rest()}
        self.assertEqual(set(entries), {".", "..", *expected})
        for name, letter in expected.items():
            self.assertEqual(entries[name], (os.lstat(f"dir/{name}").st_ino, letter))
        self.assertEqual(entries["."], (os.lstat("dir").st_ino, 4))
        self.assertEqual(entries[".."], (os.lstat(".").st_ino, 4))
        self.assertIsNone(stream.read())
        stream.rewind()
        os.mkdir("dir/new")
        stream.rewind()
        self.assertIn("new", [name for _, _, name in stream.rest()])
        stream.close()

    def fact_places_in_listings(self):
        os.mkdir("dir")
        names = {f"file{i:04}" for i in range(700)}
        for name in names:
            os.close(os.open(f"dir/{name}", os.O_CREAT | os.O_WRONLY))
        stream = Stream("dir")
        first, places = [], []
        while True:
            places.append(stream.tell())
            entry = stream.read()
            if not entry:
                break
            first.append(entry)
        self.assertEqual({name for *_, name in first}, names | {".", ".."})
        self.assertEqual(len(first), len(names) + 2)
        for i in 0, 1, 2, 3, 350, 699, 701, 702, 5:
            stream.seek(places[i])
            self.assertEqual(stream.rest(), first[i:])
        stream.close()

    def fact_listings_during_changes(self):
        """Names that are there all the time are listed once; `rm` finds all."""
        os.mkdir("dir")
        stay = {f"stay{i}" for i in range(300)}
        go = [f"go{i}" for i in range(300)]
        for name in stay | set(go):
            os.close(os.open(f"dir/{name}", os.O_CREAT | os.O_WRONLY))
        stream = Stream("dir")
        seen = [stream.read()[2] for _ in range(100)]
        for i, name in enumerate(go):
            os.unlink(f"dir/{name}")
            os.mkdir(f"dir/come{i}")
        seen += [name for *_, name in stream.rest()]
        stream.close()
        self.assertEqual(sorted(name for name in seen if name in stay), sorted(stay))
        self.assertEqual(len(seen), len(set(seen)))
        self.assertLessEqual(set(seen), stay | set(go) | {".", ".."} | {f"come{i}" for i in range(300)})
        stream = Stream("dir")
        for entry in iter(stream.read, None):
            if entry[2] not in (".", ".."):
                remove(f"dir/{entry[2]}")
        stream.close()
        self.assertEqual(os.listdir("dir"), [])
        os.rmdir("dir")

    # ---- unlink, link ----

    def fact_unlink(self):
        for letter in "-l":
            make(letter, "x")
            self.assertStamped(lambda: os.unlink("x"), changed=["."])
            self.assertIsNone(kind("x"))
        os.mkdir("dir")
        write("file", b"")
        os.symlink("dir", "link")
        for number, name in (errno.EISDIR, "dir"), (errno.ENOTDIR, "file/"), (errno.ENOTDIR, "link/"), (errno.ENOENT, "no"), (errno.EISDIR, "dir/"):
            self.assertStamped(lambda: self.assertError((number, errno.EISDIR, errno.EPERM) if "dir" in name else number, os.unlink, name), kept=[".", "dir"])
        self.assertError((errno.EISDIR, errno.EPERM), os.unlink, ".")
        os.unlink("link")
        self.assertEqual(kind("dir"), "d")
        os.link("file", "again")
        self.assertStamped(lambda: os.unlink("file"), ctime=["again"])
        self.assertEqual(os.stat("again").st_nlink, 1)

    def fact_unlinked_files(self):
        fd = os.open("file", os.O_CREAT | os.O_RDWR)
        os.write(fd, b"contents")
        number = os.fstat(fd).st_ino
        os.unlink("file")
        self.assertEqual((os.fstat(fd).st_nlink, os.fstat(fd).st_size, os.fstat(fd).st_ino), (0, 8, number))
        self.assertEqual(os.pread(fd, 100, 0), b"contents")
        os.pwrite(fd, b"more" * 30_000, 4)
        os.ftruncate(fd, 100_000)
        os.fsync(fd)
        os.fchmod(fd, 0o644)
        os.utime(fd)
        self.assertEqual(os.pread(fd, 200_000, 0), (b"cont" + b"more" * 30_000)[:100_000])
        self.assertError(errno.ENOENT, call, "linkat", fd, "", AT_FDCWD, "again", AT_EMPTY_PATH)
        self.assertError(errno.ENOENT, call, "linkat", AT_FDCWD, f"/proc/self/fd/{fd}", AT_FDCWD, "again", AT_SYMLINK_FOLLOW)
        second = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
        self.assertEqual(os.pread(second, 4, 0), b"cont")
        write("file", b"another")
        self.assertNotEqual(os.stat("file").st_ino, number)
        self.assertEqual((os.pread(second, 4, 0), read("file")), (b"cont", b"another"))
        os.setxattr(fd, "user.note", b"5")
        self.assertEqual(os.getxattr(second, "user.note"), b"5")
        os.close(fd)
        os.close(second)

    def fact_link(self):
        write("file", b"contents")
        st = os.lstat("file")
        for i, (old, new) in enumerate((("file", "second"), ("second", "third"))):
            self.assertStamped(lambda: os.link(old, new), changed=["."], ctime=["file"])
            for name in ("file", "second", "third")[:i + 2]:
                now = os.lstat(name)
                self.assertEqual((now.st_ino, now.st_nlink, now.st_size), (st.st_ino, i + 2, 8))
        os.truncate("third", 3)
        self.assertEqual(read("file"), b"con")
        fd = os.open("second", os.O_RDONLY)
        call("linkat", AT_FDCWD, f"/proc/self/fd/{fd}", AT_FDCWD, "fourth", AT_SYMLINK_FOLLOW)
        self.assertEqual(os.fstat(fd).st_nlink, 4)
        os.close(fd)
        for left, name in enumerate(("fourth", "file", "third")):
            os.unlink(name)
            self.assertEqual((os.stat("second").st_nlink, kind(name)), (3 - left, None))

    def fact_link_errors(self):
        write("file", b"")
        os.mkdir("dir")
        os.symlink("file", "link")
        for letter in "-dl":
            make(letter, "there")
            self.assertStamped(lambda: self.assertError(errno.EEXIST, os.link, "file", "there"), kept=[".", "file"])
            remove("there")
        self.assertError(errno.EPERM, os.link, "dir", "x")
        self.assertError(errno.EPERM, os.link, ".", "x")
        self.assertError(errno.ENOENT, os.link, "no", "x")
        self.assertError(errno.ENOENT, os.link, "file", "x/")
        self.assertError(errno.EXDEV, os.link, "file", os.path.join(self.elsewhere, "x"))
        self.assertError(errno.EXDEV, os.link, "/proc/self/status", "x")
        call("linkat", AT_FDCWD, "link", AT_FDCWD, "x", AT_SYMLINK_FOLLOW)
        self.assertEqual((kind("x"), os.stat("file").st_nlink), ("-", 2))
        if self.mounted:  # a soft link is no object
            self.assertError(errno.EPERM, lambda: os.link("link", "y", follow_symlinks=False))
        else:
            os.link("link", "y", follow_symlinks=False)
            self.assertEqual(kind("y"), "l")

    # ---- symlink ----

    def fact_symlink(self):
        os.mkdir("dir")
        for target in "nowhere", "dir", "dir/x", "n" * NAME_MAX, "/".join(["n" * 100] * 10), "caf\u00e9 \\ %a":
            with self.subTest(target[:20]):
                self.assertStamped(lambda: os.symlink(target, "link"), changed=["."])
                st = os.lstat("link")
                self.assertEqual((os.readlink("link"), st.st_size, st.st_nlink, kind("link")), (target, len(os.fsencode(target)), 1, "l"))
                os.unlink("link")
        os.symlink("dir", "link")
        write("link/file", b"through")
        self.assertEqual((read("dir/file"), os.path.samefile("link", "dir"), os.listdir("link/")), (b"through", True, ["file"]))
        os.makedirs("dir/deep/er")
        for target, where in (("../file", "dir/deep/back"), ("../../file", "dir/deep/er/back"), ("..", "dir/up"), ("../file", "dir/out")):
            os.symlink(target, where)
            self.assertEqual(os.readlink(where), target)
        self.assertEqual((read("link/deep/back"), read("dir/deep/er/back"), os.path.samefile("dir/up", ".")), (b"through", b"through", True))
        write("file", b"")
        for name in "link", "dir", "file":
            self.assertStamped(lambda: self.assertError(errno.EEXIST, os.symlink, "x", name), kept=["."])
        self.assertError(errno.ENOENT, os.symlink, "", "x")
        self.assertError(errno.ENAMETOOLONG, os.symlink, "n" * PATH_MAX, "x")
        self.assertError(errno.EINVAL, os.readlink, "file")
        self.assertError(errno.EINVAL, os.readlink, "dir")
        self.assertError(errno.ENOTDIR, os.rmdir, "link")

    # ---- rename ----

    def fact_rename(self):
        os.mkdir("dir")
        for letter in "-dl":
            make(letter, "x")
            before = os.lstat("x")
            self.assertStamped(lambda: os.rename("x", "y"), changed=["."])
            self.assertEqual((kind("x"), kind("y")), (None, letter))
            self.assertStamped(lambda: os.rename("y", "dir/z"), changed=[".", "dir"])
            now = os.lstat("dir/z")
            self.assertEqual((now.st_size, now.st_nlink), (before.st_size, before.st_nlink))
            if letter != "l" or not self.mounted:
                self.assertEqual(now.st_ino, before.st_ino)
            self.assertError(errno.ENOENT, os.rename, "x", "y")
            remove("dir/z")

    def fact_rename_stamps(self):
        for letter in "-d" if self.mounted else "-dl":  # in a mount a symlink has the times of its file
            make(letter, "x")
            self.assertStamped(lambda: os.rename("x", "y"), ctime=[("x", "y")])
            remove("y")

    def fact_rename_over(self):
        for old, new, number in (("-", "-", 0), ("-", "l", 0), ("l", "-", 0), ("l", "l", 0), ("d", "d", 0), ("-", "d", errno.EISDIR), ("l", "d", errno.EISDIR),
                                 ("d", "-", errno.ENOTDIR), ("d", "l", errno.ENOTDIR)):
            make(old, "old")
            make(new, "new")
            self.assertStamped(lambda: self.assertError(number, os.rename, "old", "new"), **{"kept" if number else "changed": ["."]})
            self.assertEqual((kind("old"), kind("new")), (old, new) if number else (None, old))
            for name in filter(kind, ("old", "new")):
                remove(name)
        os.makedirs("full")
        os.mkdir("dir")
        for letter in "-dl":
            make(letter, "full/x")
            self.assertError((errno.ENOTEMPTY, errno.EEXIST), os.rename, "dir", "full")
            remove("full/x")
        write("full/x", b"moved")
        os.rename("full", "dir")
        self.assertEqual((kind("full"), read("dir/x")), (None, b"moved"))

    def fact_rename_over_open_files(self):
        write("old", b"old contents")
        write("new", b"new")
        os.link("new", "third")
        old, new = os.open("old", os.O_RDWR), os.open("new", os.O_RDWR)
        self.assertStamped(lambda: os.rename("old", "new"), ctime=["third"])
        self.assertEqual((os.fstat(new).st_nlink, os.fstat(old).st_nlink, read("third")), (1, 1, b"new"))
        os.unlink("third")
        self.assertEqual((os.fstat(new).st_nlink, os.pread(new, 9, 0)), (0, b"new"))
        os.pwrite(new, b"NEW", 0)
        os.pwrite(old, b"OLD", 0)
        self.assertEqual((os.pread(new, 9, 0), read("new")), (b"NEW", b"OLD contents"))
        self.assertEqual(os.stat("new").st_ino, os.fstat(old).st_ino)
        os.close(old)
        os.close(new)
        # Two names of one file: nothing happens.
        os.link("new", "again")
        os.rename("new", "again")
        self.assertEqual((kind("new"), kind("again"), os.stat("new").st_nlink), ("-", "-", 2))
        os.rename("new", "new")
        self.assertEqual(read("new"), b"OLD contents")

    def fact_rename_of_directories(self):
        os.makedirs("a/b/c")
        os.mkdir("other")
        for new in "a/b", "a/b/c", "a/b/c/d", "a/x":
            self.assertStamped(lambda: self.assertError((errno.EINVAL, errno.ENOTEMPTY) if kind(new) else errno.EINVAL, os.rename, "a", new), kept=[".", "a"])
        self.assertError((errno.ENOTEMPTY, errno.EEXIST), os.rename, "a/b/c", "a")
        for old, new in ("a/.", "x"), ("a/..", "x"), (".", "x"), ("..", "x"), ("other", "a/."), ("other", "a/.."), ("other", "."):
            self.assertError((errno.EBUSY, errno.EINVAL, errno.ENOTEMPTY), os.rename, old, new)
        fd = os.open("a/b", os.O_RDONLY)
        os.rename("a/b", "other/moved/")
        write("other/moved/file", b"here")
        self.assertEqual(sorted(os.listdir(fd)), ["c", "file"])
        self.assertEqual(os.stat("..", dir_fd=fd).st_ino, os.stat("other").st_ino)
        self.assertEqual(os.stat("other/moved/..").st_ino, os.stat("other").st_ino)
        os.chdir("other/moved/c")
        self.assertEqual(read("../file"), b"here")
        os.rename("../../moved", "../../../again")
        self.assertEqual((read("../file"), os.stat("../..").st_ino), (b"here", os.stat(self.here).st_ino))
        self.assertEqual(os.getcwd(), os.path.join(self.here, "again/c"))
        os.chdir(self.here)
        os.close(fd)

    def fact_rename_with_slashes(self):
        write("file", b"")
        os.mkdir("dir")
        os.symlink("dir", "link")
        self.assertError(errno.ENOTDIR, os.rename, "file", "new/")
        self.assertError(errno.ENOTDIR, os.rename, "file/", "new")
        self.assertError((errno.ENOTDIR, errno.EISDIR), os.rename, "file", "dir/")
        self.assertError(errno.ENOTDIR, os.rename, "link/", "new")
        os.rename("dir/", "new/")
        self.assertEqual((kind("dir"), kind("new"), kind("link")), (None, "d", "l"))

    def fact_rename_how(self):
        write("a", b"a")
        write("b", b"b")
        os.makedirs("dir/sub")
        how = rename_how
        self.assertStamped(lambda: self.assertError(errno.EEXIST, how, "a", "b", NOREPLACE), kept=[".", "a", "b"])
        how("a", "c", NOREPLACE)
        self.assertError(errno.ENOENT, how, "c", "a", EXCHANGE)
        self.assertError(errno.EINVAL, how, "c", "b", EXCHANGE | NOREPLACE)
        self.assertError(errno.EINVAL, how, "c", "b", 1 << 20)
        numbers = os.stat("c").st_ino, os.stat("b").st_ino
        self.assertStamped(lambda: how("c", "b", EXCHANGE), changed=["."])
        self.assertEqual((read("b"), read("c"), os.stat("b").st_ino, os.stat("c").st_ino), (b"a", b"b", *numbers))
        how("b", "dir", EXCHANGE)
        self.assertEqual((kind("b"), kind("dir"), os.listdir("b")), ("d", "-", ["sub"]))
        self.assertError(errno.EINVAL, how, "b", "b/sub", EXCHANGE)
        how("dir", "b/sub", EXCHANGE)
        self.assertEqual((kind("dir"), read("b/sub")), ("d", b"a"))

    def fact_other_file_systems(self):
        make("-", "file")
        make("d", "dir")
        for name in "file", "dir":
            self.assertError(errno.EXDEV, os.rename, name, os.path.join(self.elsewhere, "x"))
        self.assertError(errno.EXDEV, os.rename, os.path.join(self.elsewhere, "there"), "x")


if __name__ == "__main__":
    main()
