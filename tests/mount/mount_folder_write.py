#!/usr/bin/python3
"""The mount of a folder for writing: what can be changed in each of its HDF5 files, and that the folder itself cannot. Each file
has its own lock, transaction and journal; it commits before it closes, and when everything does."""
import errno
import json
import mmap
import os
import shutil
import signal
import subprocess
import threading
import time
import unittest

import h5py
import numpy

import injectlib
import judges
from mountfacts import attempt, facts_of_tree
from mountlib import H5FS, Mount, MountCase, main, read, write

SOON = 60  # seconds


def shown_parts():
    """The line of h5fs -V about the sandbox."""
    return subprocess.run([H5FS, "-V"], capture_output=True, text=True, check=True).stdout.splitlines()[-1]


def make(path, **options):
    with h5py.File(path, "w", **options) as f:
        f["a/b/x"] = numpy.arange(10, dtype="<i8")
        f.create_dataset("a/log", data=["one", "two", "three"], maxshape=(None,), chunks=(10,))
        f["hard"] = f["a/b/x"]
        f.create_dataset("rows", (4, 2), "<i4", maxshape=(None, 2), chunks=(4, 2), compression="gzip", fillvalue=7)
    return path


def row(number):
    return numpy.full(2, number, "<i4").tobytes()


class Case(MountCase):
    def setUp(self):
        super().setUp()
        self.top = self.file("top")
        os.mkdir(self.top)
        for name in "1.h5", "2.h5":
            make(self.at(name), libver="latest" if name == "1.h5" else None)

    def at(self, *names):
        return os.path.join(self.top, *names)

    def mount(self, options="rw", *arguments):
        return Mount(self.top, *arguments, options=options)

    def stats(self, m):
        return json.loads(os.getxattr(m.path, "h5fs.stats"))

    def await_true(self, what):
        end = time.monotonic() + SOON
        while not what():
            self.assertLess(time.monotonic(), end)
            os.sched_yield()

    def await_closed(self, m):
        """Until the mount has closed what nobody uses. Then no journal is there."""
        self.await_true(lambda: not self.stats(m)["open_files"])
        self.assertEqual([n for n in os.listdir(self.top) if n.endswith("journal")], [])

    def add(self, m, name, number):
        """Adds a row, and closes the dataset."""
        with open(m.at(name, "rows"), "ab", buffering=0) as f:
            f.write(row(number))

    def added(self, name):
        """What was added, by libhdf5."""
        with judges.File(self.at(name)) as f:
            return f["rows"][4:, 0].tolist()


class Changes(Case):
    def test_whatever_one_file_can(self):
        """By programs, in two files at once: h5py finds the same in both, and what it was told."""
        script = """
set -e
cd "$1"
printf 'some bytes' > new
cp new a/copy
printf '\\1\\0\\0\\0\\2\\0\\0\\0' >> rows
echo four >> a/log
setfattr -n user.unit -v km a/copy
setfattr -n user.gone -v 1 a
setfattr -x user.gone a
mkdir -p d/e
mv a/b d/e/moved
ln d/e/moved/x again
ln -s d/e link
mkdir full
cp -r a full
rm -r full
rm hard
printf 1234 | dd of=d/e/moved/x bs=4 seek=2 conv=notrunc status=none
printf '3\\n4\\n' > a/log
touch -d 2001-01-01 new
chmod 600 new
sync a/log
test "$(cat new)" = "some bytes"
test "$(stat -c %s rows)" = 40
"""
        for arguments in [], ["-s"]:
            with self.mount("rw", *arguments) as m:
                runs = [subprocess.Popen(["sh", "-c", script, "sh", m.at(name)]) for name in ("1.h5", "2.h5")]
                self.assertEqual([r.wait(SOON) for r in runs], [0, 0])
                self.assertEqual([sorted(os.listdir(m.at(n))) for n in ("1.h5", "2.h5")], [["a", "again", "d", "link", "new", "rows"]] * 2)
                shown = [facts_of_tree(m.at(n)) for n in ("1.h5", "2.h5")]
            for name, seen in zip(("1.h5", "2.h5"), shown):
                with judges.File(self.at(name)) as f:
                    self.assertEqual(f["new"][()].tobytes(), b"some bytes")
                    self.assertEqual((f["a/copy"][()].tobytes(), f["a/copy"].attrs["unit"]), (b"some bytes", "km"))
                    self.assertEqual((dict(f["a"].attrs), f["a/log"][()].tolist()), ({}, [b"3", b"4"]))
                    self.assertEqual(f["rows"][3:].tolist(), [[7, 7], [1, 2]])
                    self.assertEqual(f["d/e/moved/x"][1], int.from_bytes(b"1234" + bytes(4), "little"))
                    self.assertEqual(f["again"], f["d/e/moved/x"])
                    self.assertEqual(sorted(f), ["a", "again", "d", "link", "new", "rows"])
                with Mount(self.at(name)) as own:
                    self.assertEqual(set(facts_of_tree(own.path)), set(seen))
                make(self.at(name))

    def test_views_take_what_they_give(self):
        array = numpy.arange(12.).reshape(3, 4)
        with self.mount() as m:
            numpy.save(m.at("1.h5/.h5fs/npy/made.npy"), array)
            self.assertEqual(read(m.at("1.h5/made")), array.tobytes())
            write(m.at("2.h5/.h5fs/attrs/a/note"), b"text")
            self.assertEqual(os.getxattr(m.at("2.h5/a"), "user.note"), b"text")
        with judges.File(self.at("1.h5")) as f:
            self.assertEqual(f["made"][()].tolist(), array.tolist())
        with judges.File(self.at("2.h5")) as f:
            self.assertEqual(f["a"].attrs["note"], "text")

    def test_the_folder_is_read_only(self):
        """What is in it, and the HDF5 files as entries of it."""
        write(self.at("text"), b"text")
        os.mkdir(self.at("sub"))
        make(self.at("sub/3.h5"))
        with self.mount() as m:
            text = m.open("text", os.O_RDONLY)
            tries = [
                lambda: write(m.at("new"), b""), lambda: write(m.at("text"), b"x"), lambda: os.truncate(m.at("text"), 0),
                lambda: open(m.at("text"), "r+b"), lambda: os.mkdir(m.at("d")), lambda: os.symlink("text", m.at("l")),
                lambda: os.mkfifo(m.at("f")), lambda: os.unlink(m.at("text")), lambda: os.rmdir(m.at("sub")),
                lambda: os.rename(m.at("text"), m.at("t")), lambda: os.chmod(m.at("text"), 0o600), lambda: os.utime(m.at("text")),
                lambda: os.setxattr(m.at("text"), "user.a", b"1"), lambda: os.setxattr(m.at("sub"), "user.a", b"1"),
                lambda: os.link(m.at("text"), m.at("sub/t")), lambda: os.rmdir(m.at("1.h5")), lambda: os.rename(m.at("1.h5"), m.at("9.h5")),
                lambda: os.rename(m.at("sub/3.h5"), m.at("3.h5")),
                lambda: os.link(m.at("1.h5/rows"), m.at("rows")),
            ]
            for number, change in enumerate(tries):
                with self.subTest(number):
                    self.assertErrno(errno.EROFS, change)
            os.fsync(text)
            self.assertEqual(read(m.at("text")), b"text")
            self.assertFalse(os.access(m.at("text"), os.W_OK))
            os.utime(m.at("1.h5"))  # as in the root of its own mount
            os.chmod(m.at("1.h5"), 0o700)
            os.setxattr(m.at("1.h5"), "user.a", b"5")
        with judges.File(self.at("1.h5")) as f:
            self.assertEqual(f.attrs["a"], 5)

    def test_from_one_file_to_another(self):
        with self.mount() as m:
            self.assertErrno(errno.EXDEV, os.rename, m.at("1.h5/a"), m.at("2.h5/new"))
            self.assertErrno(errno.EXDEV, os.rename, m.at("1.h5/rows"), m.at("2.h5/rows"))
            self.assertErrno(errno.EXDEV, os.rename, m.at("1.h5/a"), m.at("a"))
            self.assertErrno(errno.EXDEV, os.link, m.at("1.h5/rows"), m.at("2.h5/new"))
            subprocess.run(["mv", m.at("1.h5/a/b"), m.at("2.h5/moved")], check=True)
        with judges.File(self.at("2.h5")) as f:
            self.assertEqual(f["moved/x"][()].tobytes(), numpy.arange(10, dtype="<i8").tobytes())
        with judges.File(self.at("1.h5")) as f:
            self.assertEqual(list(f["a"]), ["log"])

    def test_a_reader_sees_what_is_added(self):
        """Through a file that is open, and through mapped memory."""
        with h5py.File(self.at("1.h5"), "r+") as f:
            f.create_dataset("bytes", (5000,), "u1", maxshape=(None,), chunks=(1000,))
        with self.mount() as m:
            reader, writer = m.open("1.h5/bytes", os.O_RDONLY), m.open("1.h5/bytes", os.O_RDWR | os.O_APPEND)
            with mmap.mmap(reader, 5000, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE) as seen:
                self.assertEqual(seen[4999], 0)
                for i in range(1, 4):
                    os.write(writer, bytes([i]) * 1000)
                    self.assertEqual(os.fstat(reader).st_size, 5000 + 1000 * i)
                    self.assertEqual(os.pread(reader, 1000, 4000 + 1000 * i), bytes([i]) * 1000)
                os.truncate(m.at("1.h5/bytes"), 9000)
                os.truncate(m.at("1.h5/bytes"), 6000)
            with mmap.mmap(reader, 6000, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE) as seen:
                self.assertEqual((seen[4999], seen[5000], seen[5999]), (0, 1, 1))

    def test_names_outlive_a_closing(self):
        """Of what was renamed, exchanged, or has lost the name by which it was found, while a program is in it."""
        with self.mount() as m:
            os.makedirs(m.at("1.h5/one/in"))
            os.makedirs(m.at("1.h5/two"))
            within, one, two, x = (m.open("1.h5/" + n, os.O_PATH) for n in ("one/in", "one", "two", "a/b/x"))
            os.rename(m.at("1.h5/one"), m.at("1.h5/a/moved"))
            libc_exchange(m.at("1.h5/a/moved"), m.at("1.h5/two"))
            self.assertEqual(read(m.at("1.h5/hard")), read(f"/proc/self/fd/{x}"))
            os.unlink(m.at("1.h5/a/b/x"))
            os.listdir(m.at("1.h5"))
            os.stat(m.at("1.h5/hard"))
            self.await_closed(m)
            self.assertEqual(os.listdir(f"/proc/self/fd/{one}"), ["in"])
            self.assertEqual(os.listdir(f"/proc/self/fd/{within}"), [])
            os.mkdir(f"/proc/self/fd/{within}/deep")
            os.mkdir(f"/proc/self/fd/{two}/new")
            self.assertEqual(os.fstat(x).st_size, 80)
            self.assertEqual(os.listdir(m.at("1.h5/two/in")), ["deep"])
            self.assertEqual(os.listdir(m.at("1.h5/a/moved")), ["new"])

    def test_what_is_gone_after_a_closing(self):
        """Another program has removed it, while a program was in it."""
        with self.mount() as m:
            fds = {name: m.open("1.h5/" + name, os.O_PATH) for name in ("rows", "a/log", "a/b", "a/b/x")}
            self.await_closed(m)
            with h5py.File(self.at("1.h5"), "r+") as f:
                for name in "rows", "a/log", "a/b":
                    del f[name]
            for name, fd in fds.items():
                path = f"/proc/self/fd/{fd}"
                with self.subTest(name):
                    if name == "a/b":
                        self.assertErrno(errno.ESTALE, os.listdir, path)
                        self.assertErrno(errno.ESTALE, os.mkdir, path + "/new")
                    elif name == "a/b/x":
                        self.assertErrno(errno.ESTALE, os.truncate, path, 8)
                    for call, *arguments in (os.stat,), (os.getxattr, "h5fs.shape"), (os.setxattr, "user.a", b"1"):
                        self.assertErrno(errno.ESTALE, call, path, *arguments)
                    if name != "a/b":
                        for flags in os.O_RDONLY, os.O_WRONLY | os.O_APPEND:
                            self.assertErrno(errno.ESTALE, os.open, path, flags)
            self.assertEqual(sorted(os.listdir(m.at("1.h5"))), ["a", "hard"])


def libc_exchange(a, b):
    subprocess.run(["/usr/bin/python3", "-S", "-c", """
import ctypes, os, sys
if ctypes.CDLL(None, use_errno=True).renameat2(-100, os.fsencode(sys.argv[1]), -100, os.fsencode(sys.argv[2]), 2):
    sys.exit(os.strerror(ctypes.get_errno()))
""", a, b], check=True)


class Files(Case):
    def test_a_file_is_locked_and_closed_as_by_its_own_mount(self):
        with self.mount("rw,wait=0") as m:
            self.add(m, "1.h5", 1)
            self.assertIn("1.h5.h5fs-journal", os.listdir(self.top))
            for mode in "r", "r+":
                with self.assertRaises(OSError):
                    h5py.File(self.at("1.h5"), mode)
            os.mkdir(m.at("1.h5/committed"))  # no open file: only closing commits it
            self.await_closed(m)
            with judges.File(self.at("1.h5")) as f:
                self.assertIn("committed", f)
            with h5py.File(self.at("1.h5"), "r+") as f:
                f["by_h5py"] = 5
                self.assertErrno(errno.EBUSY, os.mkdir, m.at("1.h5/d"))
                self.assertErrno(errno.EBUSY, os.listdir, m.at("1.h5"))
                self.add(m, "2.h5", 2)
            self.add(m, "1.h5", 3)
            self.assertEqual(read(m.at("1.h5/by_h5py")), (5).to_bytes(8, "little"))
        self.assertEqual((self.added("1.h5"), self.added("2.h5")), ([1, 3], [2]))

    def test_a_file_that_is_still_open_is_found_again(self):
        """After the kernel forgot its node, or under a new name, unless a program has it open under the old one."""
        with self.mount("rw,wait=0") as m:
            nodes = self.stats(m)["nodes"]
            os.mkdir(m.at("1.h5/one"))
            os.rename(m.at("1.h5/one"), m.at("1.h5/a/first"))
            libc_exchange(m.at("1.h5/a/first"), m.at("1.h5/a/b"))

            def is_forgotten():
                write("/proc/sys/vm/drop_caches", b"2")
                return self.stats(m)["nodes"] == nodes
            self.await_true(is_forgotten)
            os.mkdir(m.at("1.h5/second"))
            os.rename(self.at("1.h5"), self.at("3.h5"))
            os.mkdir(m.at("3.h5/third"))
            with open(m.at("3.h5/rows"), "ab", buffering=0) as f:
                f.write(row(1))
                os.rename(self.at("3.h5"), self.at("4.h5"))
                for _ in range(2):
                    self.assertErrno(errno.EBUSY, os.mkdir, m.at("4.h5/d"))
                f.write(row(2))
            self.add(m, "4.h5", 3)
        self.assertEqual(self.added("4.h5"), [1, 2, 3])
        with judges.File(self.at("4.h5")) as f:
            self.assertLess({"a/b", "second", "third"}, set(f) | {"a/" + n for n in f["a"]})
            self.assertEqual((len(f["a/b"]), len(f["a/first"])), (0, 1))

    def test_files_that_cannot_be_written_are_entries(self):
        """As their own mount refuses them."""
        whole = read(self.at("1.h5"))
        write(self.at("damaged.h5"), whole[:48] + bytes(len(whole) - 48))
        with h5py.File(self.at("family%d.h5"), "w", driver="family", memb_size=2048):
            pass
        os.mkdir(self.file("other"))
        os.link(make(self.at("links.h5")), self.file("other/name.h5"))
        os.link(self.at("links.h5"), self.file("other/links.h5"))
        os.mkdir(self.at("taken.h5.h5fs-journal"))
        shutil.copy(self.at("2.h5"), self.at("taken.h5"))
        with self.mount() as m:
            got = {n: attempt(os.listdir, m.at(n)) for n in ("damaged.h5", "family0.h5", "links.h5", "taken.h5")}
            self.assertIn(got.pop("damaged.h5"), (errno.EUCLEAN, errno.EINVAL))
            self.assertEqual(got.pop("family0.h5"), errno.ENOTSUP)
            self.assertEqual(got.pop("links.h5"), errno.EMLINK)
            self.assertIn(got.pop("taken.h5"), (errno.EISDIR, errno.EPERM, errno.EEXIST))
            self.add(m, "1.h5", 1)
        self.assertEqual(self.added("1.h5"), [1])

    def test_more_files_are_written_than_may_be_open(self):
        """One that makes place commits first. Nothing is lost, however many programs write."""
        names = [f"{i}.h5" for i in range(1, 6)]
        for name in names[2:]:
            make(self.at(name))
        with self.mount("rw,open_files=2") as m:
            def work(name):
                for i in range(20):
                    while (failed := attempt(self.add, m, name, i)) is not None:
                        assert failed == errno.ENFILE, failed
            threads = [threading.Thread(target=work, args=(name,)) for name in names]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            self.assertLessEqual(self.stats(m)["open_files"], 2)
            self.assertGreater(self.stats(m)["opened"], 5)
        self.assertEqual([self.added(name) for name in names], [list(range(20))] * 5)

    def test_a_file_that_stays_open_is_committed_after_some_seconds(self):
        with self.mount() as m:
            for number, name in enumerate(("1.h5", "2.h5")):
                os.write(m.open(name + "/rows", os.O_WRONLY | os.O_APPEND), row(number))

            def committed(name):
                shutil.copy(self.at(name), self.file("copy.h5"))
                with h5py.File(self.file("copy.h5"), "r") as f:
                    return len(f["rows"]) == 5
            self.await_true(lambda: committed("1.h5") and committed("2.h5"))
            m.kill()

    def test_everything_is_committed(self):
        """By fsync of the folder, and at the end: by unmounting, by h5fs -u and by a signal."""
        def sync(m):
            fd = os.open(m.path, os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)
            m.kill()

        def terminate(m):
            os.kill(m.daemon, signal.SIGTERM)
            self.assertEqual(m.wait(), 0)

        def unmount(m):
            m.close_all()
            subprocess.run([H5FS, "-u", m.path], check=True)
            self.assertEqual(m.wait(), 0)

        def leave(m):
            m.close_all()

        for number, end in enumerate((sync, terminate, unmount, leave)):
            with self.subTest(end.__name__), self.mount("rw,sync=fsync") as m:
                for name in "1.h5", "2.h5":
                    os.write(m.open(name + "/rows", os.O_WRONLY | os.O_APPEND), row(number))
                end(m)
            self.assertEqual((self.added("1.h5"), self.added("2.h5")), ([*range(number + 1)],) * 2)

    def test_a_kill(self):
        """What close or fsync has returned for is there, and the next mount heeds both journals."""
        with self.mount() as m:
            for name in "1.h5", "2.h5":
                self.add(m, name, 1)
                fd = m.open(name + "/new", os.O_WRONLY | os.O_CREAT)
                os.write(fd, b"data")
                os.fsync(fd)
                os.mkdir(m.at(name, "lost"))
            m.kill()
        self.assertEqual(sorted(os.listdir(self.top)), ["1.h5", "1.h5.h5fs-journal", "2.h5", "2.h5.h5fs-journal"])
        with h5py.File(self.at("1.h5"), "r") as f:
            self.assertEqual(f["rows"][4:, 0].tolist(), [1])
        with self.mount() as m:
            for name in "1.h5", "2.h5":
                self.assertEqual(sorted(os.listdir(m.at(name))), ["a", "hard", "new", "rows"])
                self.assertEqual(read(m.at(name, "new")), b"data")
                self.add(m, name, 2)
            self.await_closed(m)
        self.assertEqual((self.added("1.h5"), self.added("2.h5")), ([1, 2],) * 2)

    def test_changes_that_a_closing_loses(self):
        """For want of space: the log, fsync and the exit status tell."""
        disk = self.disk()
        shutil.copy(self.at("1.h5"), disk)
        with Mount(disk, "-f", options="rw") as m:
            folder = m.open("", os.O_RDONLY)
            for i in range(100):
                os.mkdir(m.at(f"1.h5/{i}"))
            with open(os.path.join(disk, "filler"), "wb", buffering=0) as f:
                while attempt(f.write, bytes(4096)) != errno.ENOSPC:
                    pass
            self.await_true(lambda: not self.stats(m)["open_files"])
            self.assertErrno(errno.ENOSPC, os.fsync, folder)
            os.fsync(folder)
            self.assertIn("1.h5: what was written last is lost", m.said())
            os.unlink(os.path.join(disk, "filler"))
            self.assertEqual(sorted(os.listdir(m.at("1.h5"))), ["a", "hard", "rows"])
            m.close_all()
            m.unmount()
            self.assertEqual(m.wait(), 10)
            m.status = 0

    @unittest.skipUnless(injectlib.available() and shown_parts().startswith("sandbox: no new privileges, Landlock ("), "no sandbox")
    def test_the_sandbox_allows_what_writing_takes(self):
        """In the folder, and nothing outside of it."""
        make(self.file("outside.h5"))
        create = os.O_RDWR | os.O_CREAT
        tries = [(self.at("2.h5"), os.O_RDWR, 0), (self.at("made"), create, 0), (self.file("outside.h5"), os.O_RDONLY, errno.EACCES),
                 (self.file("outside.h5"), os.O_RDWR, errno.EACCES), (self.file("made"), create, errno.EACCES),
                 ("/etc/passwd", os.O_RDONLY, errno.EACCES)]
        with self.mount() as m:
            self.add(m, "1.h5", 1)
            with injectlib.Injector(m.daemon) as inside:
                for name, flags, want in tries:
                    got = inside.call("openat", -100, os.fsencode(name), flags, 0o600)
                    self.assertEqual(max(0, -got), want, (name, flags))
                    if got >= 0:
                        inside.call("close", got)
                self.assertLess(inside.call("mkdirat", -100, os.fsencode(self.at("d")), 0o700), 0)
                self.assertLess(inside.call("symlinkat", b"x", -100, os.fsencode(self.at("l"))), 0)
                self.assertEqual(inside.call("unlinkat", -100, os.fsencode(self.at("made")), 0), 0)
                self.assertEqual(inside.call("unlinkat", -100, os.fsencode(self.file("outside.h5")), 0), -errno.EACCES)


if __name__ == "__main__":
    main()
