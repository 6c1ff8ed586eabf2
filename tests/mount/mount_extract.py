#!/usr/bin/python3
"""h5fs --cat and --extract: what they give is what a mount shows. mount_copy.py compares a whole tree with `cp -a`."""
import errno
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time

import h5py
import numpy

from copytree import describe, describe_tree, xattr_folder
from mountlib import H5FS, Mount, MountCase, main, patch, read
from object_server import ObjectServer

SOON = 60
NOBODY = 65534
SAID = subprocess.run([H5FS, "-V"], capture_output=True, text=True, check=True).stdout


def h5fs(*arguments, **options):
    """Exit status, standard output, standard error."""
    run = subprocess.run([H5FS, *arguments], capture_output=True, timeout=SOON, check=False, **options)
    return run.returncode, run.stdout, run.stderr.decode(errors="backslashreplace")


def holes(path):
    """Where the data of a file are."""
    with open(path, "rb") as f:
        size, found, at = os.fstat(f.fileno()).st_size, [], 0
        while at < size:
            try:
                begin = os.lseek(f.fileno(), at, os.SEEK_DATA)
            except OSError as e:
                if e.errno != errno.ENXIO:
                    raise
                break
            at = os.lseek(f.fileno(), begin, os.SEEK_HOLE)
            found.append((begin, at))
    return found


class Case(MountCase):
    def setUp(self):
        if not xattr_folder():
            self.skipTest("no file system here takes user xattrs of 60,000 bytes")
        self.folder = tempfile.mkdtemp(prefix="h5fs-test-", dir=xattr_folder())
        self.addCleanup(shutil.rmtree, self.folder)
        self.addCleanup(subprocess.run, ["chmod", "-R", "u+w", self.folder], check=True)  # of copies
        self.path = self.file("x.h5")
        self.target = self.file("copy")

    def extract(self, *arguments, target=None, **options):
        return h5fs("--extract", *arguments, target or self.target, **options)

    def assertExtracted(self, *arguments, said="", **options):
        status, out, errors = self.extract(*arguments, **options)
        self.assertEqual((status, out), (0, b""), errors)
        self.assertRegex(errors, f"^{said}$")


class Cat(Case):
    def test_every_file(self):
        """Of the tree and of all views."""
        with h5py.File(self.path, "w") as f:
            f.create_dataset("run/image", data=numpy.arange(600_000).reshape(600, 1000), chunks=(300, 500), compression="gzip")
            f.create_dataset("run/none", (0,), "f8", maxshape=(None,))
            f.create_dataset("run/filled", (3_000_000,), "u1", chunks=(1_000_000,), fillvalue=7)
            f["words"] = numpy.array(["a", "", "c\nd"], dtype=h5py.string_dtype())
            f["words"].attrs["unit"] = "m"
            f["link"] = h5py.SoftLink("/run/image")
        seen = 0
        with Mount(self.path) as m:
            for top in ("", ".h5fs"):
                for folder, _, names in os.walk(m.at(top)):
                    for path in (os.path.join(folder, name) for name in names):
                        status, out, errors = h5fs("--cat", self.path, os.path.relpath(path, m.path))
                        self.assertEqual((status, errors, out == read(path)), (0, "", True), path)
                        seen += 1
        self.assertGreater(seen, 15)

    def test_refusals(self):
        with h5py.File(self.path, "w", libver="latest") as f:
            f["group/d"] = 1
            data = f.create_dataset("damaged", data=numpy.arange(900_000), chunks=(300_000,), fletcher32=True)
            chunk = data.id.get_chunk_info(2)
        with open(self.path, "r+b") as f:
            f.seek(chunk.byte_offset)
            f.write(b"xxxx")
        for path, said in ("none", "No such file or directory"), ("group", "Is a directory"), ("group/d/", "Not a directory"):
            self.assertEqual(h5fs("--cat", self.path, path), (1, b"", f"h5fs: {self.path}: {path}: {said}\n"))
        status, out, errors = h5fs("--cat", self.path, "damaged")
        self.assertEqual(status, 1)
        self.assertIn("damaged: ", errors)
        self.assertTrue(numpy.arange(900_000).tobytes().startswith(out) and out)
        for arguments in ("--cat",), ("--cat", self.path), ("--cat", self.path, "a", "b"):
            self.assertEqual(h5fs(*arguments)[0], 2)
        with open("/dev/full", "wb") as full:
            run = subprocess.run([H5FS, "--cat", self.path, "group/d"], stdout=full, stderr=subprocess.PIPE, check=False)
        self.assertEqual((run.returncode, run.stderr.decode()), (12, "h5fs: standard output: No space left on device\n"))


class Parts(Case):
    def test_parts(self):
        """A group, a view, one file, by a link, with options: as `cp -a` copies that of the mount."""
        with h5py.File(self.path, "w") as f:
            f["top/group/a"] = numpy.arange(10)
            f["top/group/same"] = f["top/group/a"]
            f["top/group"].attrs["unit"] = "m"
            f["top/group/out"] = h5py.SoftLink("/elsewhere")
            f["top/group/inner/up"] = f["top/group"]
            f["elsewhere"] = f["top/group/a"]
            f["link"] = h5py.SoftLink("/top/group")
        os.utime(self.path, ns=(1_000_000_000_123_456_789,) * 2)
        for i, (path, options) in enumerate([("top/group", ""), ("/link/inner/../", ""), (".h5fs/csv/top", ""), ("group", "subdir=/top"),
                                             ("top", "fmask=077,dmask=027,uid=12,gid=34")]):
            copies = [self.file(f"{name}-{i}") for name in ("extract", "cp")]
            with self.subTest(path, options=options), Mount(self.path, options=options or None) as m:
                self.assertExtracted(*(["-o", options] if options else []), self.path, path, target=copies[0])
                subprocess.run(["cp", "-a", m.at(path.strip("/")) + "/.", copies[1]], check=True)
                trees = [describe_tree(copy) for copy in copies]
                self.assertEqual(*trees)
                for tree in trees:
                    self.assertGreater(len(tree), 3)
                owners = [[os.lstat(os.path.join(os.fsencode(copy), name))[4:6] for name in trees[0]] for copy in copies]
                self.assertEqual(*owners)

    def test_one_file(self):
        with h5py.File(self.path, "w") as f:
            f["group/a"] = numpy.arange(10)
            f["group/a"].attrs["unit"] = "m"
            f["group/link"] = h5py.SoftLink("a")
        for path, name in ("group/a", "a"), ("group/link", "link"), (".h5fs/npy/group/a.npy", "a.npy"):
            with Mount(self.path) as m:
                self.assertExtracted(self.path, path, target=self.file("to " + name))
                self.assertEqual(os.listdir(self.file("to " + name)), [name])
                self.assertEqual(describe(self.file("to " + name, name)), describe(os.path.realpath(m.at(path))))
        status, _, errors = self.extract(self.path, "none")
        self.assertEqual((status, errors), (1, "none: No such file or directory\n"))

    def test_holes(self):
        """Files of up to 8 TB that are almost all holes."""
        with h5py.File(self.path, "w") as f:
            d = f.create_dataset("d", (2**40,), "<i8", chunks=(2**13,))
            d[2**20:2**20 + 100] = 1
            d[2**39] = 2
            f.create_dataset("empty", (2**40,), "u1", chunks=(2**13,))
            f.create_dataset("late", (10**6,), "u1")
        self.assertExtracted(self.path)
        top = self.target
        with Mount(self.path) as m:
            for name in "d", "empty", "late":
                self.assertEqual(holes(os.path.join(top, name)), holes(m.at(name)), name)
                self.assertEqual(os.stat(os.path.join(top, name)).st_size, os.stat(m.at(name)).st_size)
        self.assertLess(os.stat(os.path.join(top, "d")).st_blocks, 1000)

    def test_url(self):
        if "libcurl none" in SAID:
            self.skipTest("built without libcurl")
        with h5py.File(self.path, "w") as f:
            f["group/a"] = numpy.arange(500_000)
            f["group/b"] = f["group/a"]
        with ObjectServer(self.folder) as server:
            self.assertEqual(h5fs("--cat", server.url("x.h5"), "group/a"), (0, numpy.arange(500_000).tobytes(), ""))
            self.assertExtracted(server.url("x.h5"))
            status, out, errors = h5fs("--list", "--json", server.url("x.h5"), "group/b")
            self.assertEqual((status, out.count(b"\n"), errors), (0, 1, ""))
        self.assertEqual(server.wrong, [])
        with Mount(self.path) as m:
            trees = [describe_tree(top) for top in (m.path, self.target)]
        for tree in trees:
            for entry in tree.values():
                entry["mtime"] //= 10**9  # a server tells no fractions
        self.assertEqual(*trees)


class Targets(Case):
    def test_new_or_empty(self):
        h5py.File(self.path, "w").close()
        os.mkdir(self.target)
        self.assertExtracted(self.path)
        os.chmod(self.target, 0o755)
        with open(self.file("copy", "other"), "w"):
            pass
        self.assertEqual(self.extract(self.path), (1, b"", f"h5fs: {self.target}: it must be new or empty\n"))
        self.assertEqual(os.listdir(self.target), ["other"])
        status, _, errors = self.extract(self.path, target=self.path)
        self.assertEqual((status, errors), (1, f"h5fs: {self.path}: cannot be opened: Not a directory\n"))
        self.assertEqual(self.extract(self.path, target=self.file("no", "such"))[0], 1)
        self.assertEqual(h5fs("--extract", self.path)[0], 2)
        self.assertEqual(h5fs("--extract", self.path, "a", "b", "c")[0], 2)

    def test_damage(self):
        """What cannot be read is told, and left out; all else is there."""
        with h5py.File(self.path, "w", libver="latest") as f:
            for name in ("a", "ill", "z"):
                f["group/" + name] = 1
            data = f.create_dataset("sum", data=numpy.arange(9), chunks=(3,), fletcher32=True)
            chunk = data.id.get_chunk_info(2)
            address = h5py.h5o.get_info(f["group/ill"].id).addr
        with open(self.path, "r+b") as f:
            for at in address, chunk.byte_offset:
                f.seek(at)
                f.write(b"XXXX")
        status, _, errors = self.extract(self.path)
        self.assertEqual(status, 1)
        self.assertRegex(errors, f"^/group/ill: .* at address {address}\n/sum: .* at address {chunk.byte_offset}\n$")
        self.assertEqual({name: sorted(os.listdir(self.file("copy", name))) for name in (".", "group")},
                         {".": ["group"], "group": ["a", "z"]})

    def test_hostile_names(self):
        outside = self.file("outside")
        os.mkdir(outside)
        names = [b"..", b".", b"a/b", b"/", b"..\\evil", b"\x1b[31m\n", b"\xff", *(b".h5fs-partial-%d" % i for i in range(3))]
        with h5py.File(self.path, "w") as f:
            for i, name in enumerate(names):
                f[self.harmless(name)] = i
            f["same1"] = h5py.SoftLink("outside")
            f["same2/evil"] = 7
            f["to"] = h5py.SoftLink("../../outside")
            f["root"] = h5py.SoftLink("/")
        for name in names:
            if self.harmless(name) != name:
                patch(self.path, b"\0" + self.harmless(name) + b"\0", b"\0" + name + b"\0")
        patch(self.path, b"same2\0", b"same1\0")
        status, _, errors = self.extract(self.path)
        self.assertEqual(os.listdir(outside), [])
        self.assertEqual((status, errors), (0, ""))  # of two links with one name the mount shows the first
        self.assertEqual(set(os.listdir(os.fsencode(self.target))) - {b"same1", b"to", b"root"},
                         {b"%2E%2E", b"%2E", b"a%2Fb", b"%2F", *names[4:]})
        for name in os.listdir(self.target):
            if os.path.islink(self.file("copy", name)):
                self.assertFalse(os.readlink(self.file("copy", name)).startswith("/"))
        self.assertEqual(sorted(os.listdir(self.folder)), ["copy", "outside", "x.h5"])

    @staticmethod
    def harmless(name):
        """One that the library makes, of the same size."""
        return name.replace(b"/", b"Q") if name.strip(b".") else b"q" * len(name)

    def test_full_disk(self):
        disk = self.disk()
        with h5py.File(self.path, "w") as f:
            for name in "abc":
                f[name] = numpy.zeros(600_000, "u1") + 1
        status, _, errors = self.extract(self.path, target=os.path.join(disk, "copy"))
        self.assertEqual(status, 1)
        self.assertEqual(errors, f"/b: cannot be written: No space left on device\nh5fs: {disk}/copy: No space left on device: what it has is not all\n")
        self.assertEqual(os.listdir(os.path.join(disk, "copy")), ["a"])
        self.assertEqual(os.path.getsize(os.path.join(disk, "copy", "a")), 600_000)

    def test_no_attributes(self):
        """The target has none: told once."""
        disk = self.disk("ramfs")
        with h5py.File(self.path, "w") as f:
            for name in "abc":
                f[name] = 1
                f[name].attrs["unit"] = f[name].attrs["other"] = "m"
        status, _, errors = self.extract(self.path, target=os.path.join(disk, "copy"))
        self.assertEqual((status, sorted(os.listdir(os.path.join(disk, "copy")))), (0, ["a", "b", "c"]))
        self.assertRegex(errors, "^/a: user.[a-z]*: Operation not supported; .*\nthe target takes no extended attributes: none were kept\n$")

    def test_target_that_lacks_something(self):
        """File systems without links, modes or flags, and calls that fail: what strace makes of them."""
        with h5py.File(self.path, "w") as f:
            f["group/a"] = numpy.arange(10)
            f["group/a"].attrs["unit"] = f["group"].attrs["unit"] = "m"
            f["b"] = f["c"] = f["group/a"]
            f["link"] = h5py.SoftLink("b")
        everything = {"b", "c", "group", "group/a", "link"}
        for inject, lacking, status, said in (
                ("renameat2:error=EINVAL", set(), 0, ""),
                ("fchmod,fchown,fchownat:error=EPERM", set(), 0, ""),
                ("linkat:error=EPERM", set(), 0, "/c: cannot be made as a hard link: Operation not permitted; it is a copy, and others are, too\n"),
                ("linkat:error=EMLINK", set(), 0, ""),
                ("symlinkat:error=EPERM", {"link"}, 1, "/link: cannot be made: Operation not permitted\n"),
                ("mkdirat:error=ENAMETOOLONG", {"group", "group/a"}, 1, "/group: cannot be made: File name too long\n"),
                ("pwrite64:error=EIO:when=1", {"b"}, 1, "/b: cannot be written: Input/output error\n"),
                ("ftruncate:error=EFBIG:when=1", {"b"}, 1, "/b: cannot be written: File too large\n"),
                ("fsetxattr:error=E2BIG", set(), 0, "/b: user.unit: Argument list too long; .*\n2 attributes could not be kept\n"),
                ("mkdirat:error=EROFS", everything - {"b", "c"}, 1,
                 "/group: cannot be made: Read-only file system\nh5fs: .*: Read-only file system: what it has is not all\n"),
        ):
            with self.subTest(inject):
                target = tempfile.mkdtemp(dir=self.folder)
                options = ":".join(filter(None, (os.environ.get("ASAN_OPTIONS"), "detect_leaks=0")))
                run = subprocess.run(["strace", "-f", "-o", "/dev/null", "-e", f"inject={inject}", H5FS, "--extract", self.path, target],
                                     capture_output=True, text=True, env=dict(os.environ, ASAN_OPTIONS=options), check=False, timeout=SOON)
                self.assertEqual(run.returncode, status, run.stderr)
                self.assertRegex(run.stderr, f"^{said}$")
                found = {os.path.relpath(os.path.join(folder, name), target) for folder, folders, files in os.walk(target)
                         for name in folders + files}
                self.assertEqual(found, everything - lacking)

    def test_without_rights(self):
        """A user other than root gets the same modes, in which nothing can be written."""
        if os.geteuid():
            self.skipTest("only root becomes another user")
        with h5py.File(self.path, "w") as f:
            f["group/inner/a"] = f["group/b"] = 1
            f["group"].attrs["unit"] = "m"
        os.chmod(self.folder, 0o777)
        program = self.file("h5fs")
        with open(program, "wb") as f:
            f.write(read(H5FS))
        os.chmod(program, 0o755)
        run = subprocess.run([program, "--extract", self.path, self.target], capture_output=True, text=True, user=NOBODY, group=NOBODY,
                             extra_groups=[], check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        modes = {name: oct(os.stat(self.file("copy", name)).st_mode) for name in (".", "group", "group/inner", "group/inner/a")}
        self.assertEqual(modes, {".": "0o40555", "group": "0o40555", "group/inner": "0o40555", "group/inner/a": "0o100444"})

    def test_interrupted(self):
        """A signal leaves no file that is not whole."""
        with h5py.File(self.path, "w") as f:
            f["a"] = 1
            f.create_dataset("long", (10**14,), "u1", chunks=(10**6,), fillvalue=3)
        with subprocess.Popen([H5FS, "--extract", self.path, self.target], stderr=subprocess.PIPE, text=True,
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as run:
            end = time.monotonic() + SOON
            partial = self.file("copy", ".h5fs-partial-0")
            while not (os.path.exists(partial) and os.stat(partial).st_size) and time.monotonic() < end:
                time.sleep(0.01)
            run.send_signal(signal.SIGINT)
            _, errors = run.communicate(timeout=SOON)
        self.assertEqual(run.returncode, -signal.SIGINT)
        self.assertEqual(errors, f"h5fs: {self.target}: interrupted: what it has is not all\n")
        self.assertEqual(os.listdir(self.target), ["a"])
        self.assertTrue(stat.S_ISREG(os.stat(self.file("copy", "a")).st_mode))


if __name__ == "__main__":
    main()
