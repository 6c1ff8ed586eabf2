#!/usr/bin/python3
"""Which other files a mount opens: none through a mount of h5fs, none on another mount, and what cannot be asked for is an
error, not a file that is not there. H5FS_CONFORMANCE names a folder with files that were found to break this."""
import contextlib
import errno
import os
import shutil
import subprocess
import sys
import unittest

import h5py
import numpy

from mountlib import Mount, MountCase, Strace, main, read

FOUND = os.path.join(os.environ.get("H5FS_CONFORMANCE", ""), "found", "hostile")
HAS_FOUND = os.path.isdir(FOUND)
SECONDS = 30  # for what hangs if it goes wrong
TWO = (1).to_bytes(8, "little") + (2).to_bytes(8, "little")


READER = """
import os, sys
for path in sys.argv[1:]:
    try:
        if os.path.islink(path):
            print("link", os.readlink(path), flush=True)
        else:
            with open(path, "rb") as f:
                print("data", f.read().hex(), flush=True)
    except OSError as e:
        print("error", e.errno, flush=True)
"""


def add_names(f, names):
    """An external link, an external raw file and a virtual source for each."""
    for i, name in enumerate(names):
        f[f"link {i}"] = h5py.ExternalLink(name, "/d")
        f.create_dataset(f"raw {i}", (2,), "<i8", external=[(name, 0, 16)], fillvalue=7)
        layout = h5py.VirtualLayout((2,), "<i8")
        layout[:] = h5py.VirtualSource(name, "d", (2,), "<i8")
        f.create_virtual_dataset(f"virtual {i}", layout, fillvalue=7)


class Case(MountCase):
    def setUp(self):
        super().setUp()
        os.mkdir(self.file("in"))
        os.mkdir(self.file("in/sub"))
        self.path = self.file("in/run.h5")
        for name in ("in/other.h5", "in/sub/other.h5", "out.h5"):
            self.make(name)

    def make(self, name, names=()):
        with h5py.File(self.file(name), "w") as f:
            f.create_dataset("d", data=numpy.array([1, 2], "<i8"))
            f.create_group("g")
            add_names(f, names)

    def mount(self, *arguments):
        subprocess.run(["mount", *arguments], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", arguments[-1]], check=True)

    def look_all(self, m, names):
        """What a reader gets of each, in time: ("data", bytes), ("link", target) or ("error", errno)."""
        process = subprocess.Popen([sys.executable, "-S", "-c", READER, *map(m.at, names)], stdout=subprocess.PIPE, text=True)
        try:
            said = process.communicate(timeout=SECONDS)[0]
        except subprocess.TimeoutExpired:
            # The daemon waits for itself, and no signal ends that.
            subprocess.run(["umount", "-f", m.path], check=False)
            process.kill()
            said = process.communicate()[0]
            self.fail(f"{names[said.count(chr(10))]} hangs")
        found = []
        for line in said.splitlines():
            kind, _, what = line.partition(" ")
            found.append((kind, bytes.fromhex(what) if kind == "data" else int(what) if kind == "error" else what))
        return found

    def look(self, m, name):
        return self.look_all(m, [name])[0]

    def assertFound(self, m, count, kinds=("link",)):
        for kind in kinds:
            self.assertEqual(self.look_all(m, [f"{kind} {i}" for i in range(count)]), [("data", TWO)] * count, kind)

    def assertRefused(self, m, names):
        for name, (kind, what) in zip(names, self.look_all(m, [f"link {i}" for i in range(len(names))])):
            self.assertEqual((kind, what[:8]), ("link", "extlink:"), name)
        refusals = [("error", number) for number in (errno.EACCES, errno.EINVAL, errno.EISDIR)]
        for kind in ("raw", "virtual"):
            for name, found in zip(names, self.look_all(m, [f"{kind} {i}" for i in range(len(names))])):
                self.assertIn(found, refusals, (kind, name))


@unittest.skipIf(os.geteuid(), "to end a mount that hangs takes root")
class OwnMount(Case):
    @unittest.skipUnless(HAS_FOUND, "H5FS_CONFORMANCE names no folder with found files")
    def test_found(self):
        shutil.copy(os.path.join(FOUND, "default-mountpoint-hang.h5"), self.path)
        with Mount(self.path, point=self.file("in/run")) as m:
            self.assertEqual(self.look(m, "e"), ("link", "extlink:run/x//"))
            self.assertEqual(len(read(m.at("plain"))), 80)

    def test_every_way_in(self):
        """By name, by a symbolic link, by a bind mount, and through it on the way to somewhere else."""
        point, bound = self.file("in/run"), self.file("in/bound")
        os.mkdir(point)
        os.mkdir(bound)
        os.symlink("run", self.file("in/way"))
        os.symlink(point, self.file("in/absolute"))
        os.symlink("run/d", self.file("in/deep"))
        names = ["run/d", "./run/d", "sub/../run/d", f"{point}/d", f"{self.folder}/./in/sub/..//run/d", "way/d", "absolute/d", "deep",
                 "run", "run/", "run/g/../../other.h5", "way/../other.h5", "bound/d", f"{bound}/d", "run/.h5fs/npy/d.npy", "run/link 0"]
        self.make("in/run.h5", names)
        for options in ("external=beneath", "external=any", "external=any,rw", "external=any,sandbox=no"):
            with self.subTest(options=options), Mount(self.path, point=point, options=options) as m:
                subprocess.run(["mount", "--bind", point, bound], check=True)
                try:
                    # `way` is the folder with the mount; `..` behind it leads where the kernel says, which is not asked.
                    self.assertRefused(m, names)
                    self.assertEqual(self.look(m, "d"), ("data", TWO))
                finally:
                    subprocess.run(["umount", bound], check=True)

    def test_pieces_of_another_file(self):
        """They are opened by the same rule."""
        with h5py.File(self.file("in/s"), "w", driver="split") as f:
            f["d"] = numpy.arange(100)
        os.unlink(self.file("in/s-r.h5"))
        os.symlink("run/d", self.file("in/s-r.h5"))
        self.make("in/run.h5", ["s-m.h5"])
        for options in ("external=beneath", "external=any"):
            with self.subTest(options=options), Mount(self.path, point=self.file("in/run"), options=options) as m:
                self.assertIn(self.look(m, "link 0"), [("error", errno.EIO), ("error", errno.EUCLEAN)])
                self.assertEqual(self.look(m, "d"), ("data", TWO))

    def test_mounted_over_the_folder(self):
        """What lies beneath the mount is still found, and the mount itself is not entered."""
        folder = self.file("in")
        names = ["other.h5", f"{folder}/other.h5", "sub/other.h5"]
        self.make("in/run.h5", names + ["d"])
        for options in ("external=beneath", "external=any", "rw"):
            with self.subTest(options=options), Mount(self.path, point=folder, options="nonempty," + options) as m:
                self.assertFound(m, len(names))
                self.assertEqual(self.look(m, f"link {len(names)}"), ("link", "extlink:d//d"))
        self.assertEqual(sorted(os.listdir(folder)), ["other.h5", "run.h5", "sub"])

    def test_two_mounts_that_lead_to_each_other(self):
        one, two = self.file("in/run"), self.file("in/two")
        os.mkdir(one)
        os.mkdir(two)
        self.make("in/run.h5", ["two/link 0", f"{two}/d"])
        self.make("in/two.h5", ["run/link 0", f"{one}/d"])
        with Mount(self.path, point=one, options="external=any") as m, Mount(self.file("in/two.h5"), point=two, options="external=any") as n:
            for mount in (m, n):
                self.assertRefused(mount, [0, 1])


@unittest.skipIf(os.geteuid(), "to mount takes root")
class OtherMounts(Case):
    def test_bound_folder_and_file(self):
        """A rule that says beneath means the same mount, whatever device that is of."""
        os.makedirs(self.file("away"))
        for name in ("in/bound", "in/tmp"):
            os.mkdir(self.file(name))
        with open(self.file("in/file.h5"), "w"):
            pass
        self.make("away/other.h5")
        self.mount("--bind", self.file("away"), self.file("in/bound"))
        self.mount("--bind", self.file("away/other.h5"), self.file("in/file.h5"))
        self.mount("-t", "tmpfs", "none", self.file("in/tmp"))
        self.make("in/tmp/other.h5")
        names = ["bound/other.h5", "file.h5", "tmp/other.h5", "sub/../bound/other.h5"]
        self.make("in/run.h5", names)
        with Mount(self.path) as m:
            self.assertRefused(m, names)
        with Mount(self.path) as m, Strace(m.daemon, self.file("trace"), "-e", "trace=openat2", "-e", "inject=openat2:error=ENOSYS"):
            self.assertRefused(m, names)
        with Mount(self.path, options="external=any") as m:
            self.assertFound(m, len(names), ("link", "virtual"))


class Faults(Case):
    """openat2() that fails: seen by strace, which makes it."""

    def setUp(self):
        super().setUp()
        os.symlink("..", self.file("in/sub/up"))
        os.symlink("../../out.h5", self.file("in/sub/out.h5"))
        os.symlink(self.file("in/other.h5"), self.file("in/sub/absolute.h5"))
        os.symlink("circle", self.file("in/circle"))
        os.mkfifo(self.file("in/fifo"))
        os.mkdir(self.file("in/sub/deep"))
        os.symlink("../up/sub/./other.h5", self.file("in/sub/deep/long.h5"))
        self.good = ["other.h5", "sub/other.h5", "sub/up/other.h5", "sub//.././other.h5", "sub/deep/long.h5", "sub/up/sub/up/other.h5",
                     self.file("in/other.h5")]
        self.bad = ["../out.h5", "sub/out.h5", "sub/absolute.h5", self.file("out.h5"), "sub/../../out.h5", "sub/up/up/out.h5", "circle",
                    "missing.h5", "other.h5/", "other.h5/x", "fifo", "sub", "sub/", "..", "x" * 300, "/", "sub/deep/../../../out.h5"]
        self.make("in/run.h5", self.good + self.bad)

    def shown(self, fault=None, options=None):
        with contextlib.ExitStack() as stack:
            m = stack.enter_context(Mount(self.path, options=options))
            if fault:
                trace = stack.enter_context(Strace(m.daemon, self.file("trace"), "-e", "trace=openat2", "-e", f"inject=openat2:{fault}"))
            shown = {}
            for name in sorted(os.listdir(m.path)):
                if name not in ("d", "g"):
                    try:
                        shown[name] = os.readlink(m.at(name)) if os.path.islink(m.at(name)) else read(m.at(name))
                    except OSError as e:
                        shown[name] = e.errno
        if fault:
            self.assertIn("(INJECTED)", trace.text())
        return shown

    def test_without_openat2(self):
        """The same files are found and the same are refused, step by step."""
        expected = self.shown(options="sandbox=no")  # Landlock has a word of its own for folders
        for i, name in enumerate(self.good):
            self.assertEqual((expected[f"link {i}"], expected[f"virtual {i}"]), (TWO, TWO), name)
        for i, name in enumerate(self.bad, len(self.good)):
            self.assertIsInstance(expected[f"link {i}"], str, name)
            self.assertNotEqual(expected[f"virtual {i}"], TWO, name)
        for fault in ("error=ENOSYS", "error=EPERM", "error=EAGAIN", "error=EAGAIN:when=1..5"):
            with self.subTest(fault):
                shown = self.shown(fault, options="sandbox=no")
                self.assertEqual({name: (shown[name], expected[name]) for name in expected if shown[name] != expected[name]}, {})
        shown = self.shown("error=ENOSYS")  # the sandbox lets it do that
        self.assertEqual([shown[f"virtual {i}"] for i in range(len(self.good))], [TWO] * len(self.good))

    def test_other_faults_are_errors(self):
        """Neither fill values nor symbolic links that lead nowhere."""
        for fault in ("ESTALE", "ETIMEDOUT", "EIO", "EOVERFLOW", "EBUSY"):
            with self.subTest(fault):
                shown = self.shown(f"error={fault}")
                self.assertEqual(set(shown.values()), {errno.EIO}, shown)
        self.assertEqual(set(self.shown("error=EMFILE").values()), {errno.EMFILE})

    def test_a_locked_file_is_not_a_missing_one(self):
        with Mount(self.path) as m, h5py.File(self.file("in/other.h5"), "r+"):
            self.assertErrno(errno.EBUSY, os.lstat, m.at("link 0"))
            self.assertErrno(errno.EBUSY, read, m.at("virtual 0"))
            self.assertIn("link 0", os.listdir(m.path))
            self.assertEqual(read(m.at("link 1")), TWO)
        with Mount(self.path) as m:
            with h5py.File(self.file("in/other.h5"), "r+"):
                self.assertErrno(errno.EBUSY, os.lstat, m.at("link 0"))
            self.assertEqual(read(m.at("link 0")), TWO)


if __name__ == "__main__":
    main()
