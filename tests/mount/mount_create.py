#!/usr/bin/python3
"""-o create makes the file, whole or not at all; a file that is there is mounted."""
import ctypes
import os
import signal
import struct
import subprocess

import h5py
import netCDF4

import judges
from mountlib import H5FS, Mount, MountCase, main, read, refusal, write


# Numbers of system calls.
CALLS = {
    "x86_64": {"write": 1, "fsync": 74, "renameat2": 316},
    "aarch64": {"write": 64, "fsync": 82, "renameat2": 276},
}
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER = 22, 38, 2


def die_at(number):
    """From now on this process is killed when it makes that system call."""
    instructions = ((0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x80000000), (0x06, 0, 0, 0x7fff0000))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *i) for i in instructions))
    program = struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(code))
    libc = ctypes.CDLL(None)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, FILTER, program):
        raise OSError("no filter of system calls")


class Create(MountCase):
    def leftovers(self):
        return sorted(os.listdir(self.folder))

    def test_a_new_file(self):
        for option, version in ("create", 3), ("create=v18", 2):
            with self.subTest(option):
                path = self.file(f"new{version}.h5")
                with Mount(path, options=option) as m:
                    self.assertEqual(os.listdir(m.path), [])
                    self.assertEqual(os.getxattr(m.path, "h5fs.superblock"), b"%d" % version)
                    self.assertEqual(h5_mode(path), 0o666 & ~umask())
                    os.setxattr(m.path, "user.note", b"text")
                with judges.File(path) as f:
                    self.assertEqual(len(f), 0)
                    self.assertEqual(f.attrs["note"], "text")
                with h5py.File(path, "r+") as f:
                    for name in "zebra", "ant", "mouse":
                        f[name] = [1, 2]
                    for i in range(20):
                        f.create_group(f"g{i}")
                    for i in range(20):
                        del f[f"g{i}"]
                with Mount(path, options="order=creation") as m:
                    self.assertEqual(os.listdir(m.path), ["zebra", "ant", "mouse"])
                self.assertEqual(subprocess.run([H5FS, "--check", path], capture_output=True, check=False).returncode, 0)

    def test_groups_know_the_order_of_their_links(self):
        """In dense storage, too, and without an index by it. netCDF's library writes only into such groups."""
        path, names = self.file("order.h5"), [f"v{i * 37 % 30:02}" for i in range(30)]
        with Mount(path, options="create") as m:
            os.mkdir(m.at("g"))
            for name in names:
                write(m.at(f"g/{name}"), b"bytes")
        with netCDF4.Dataset(path, "a") as f:
            self.assertEqual(list(f["g"].variables), names)
            f["g"].createDimension("t", 2)
            f["g"].createVariable("added", "f4", ("t",))[:] = [1, 2]
        with Mount(path, options="order=creation") as m:
            self.assertEqual([name for name in os.listdir(m.at("g")) if name in names + ["added"]], names + ["added"])
            self.assertEqual(read(m.at("g/added")), struct.pack("<2f", 1, 2))
        self.assertEqual(subprocess.run([H5FS, "--check", path], capture_output=True, check=False).returncode, 0)

    def test_a_file_that_is_there_is_mounted(self):
        path = self.file("there.h5")
        with h5py.File(path, "w") as f:
            f["d"] = [1]
        inode = os.stat(path).st_ino
        with Mount(path, options="create=v18") as m:
            self.assertEqual(os.listdir(m.path), ["d"])
            self.assertEqual(os.getxattr(m.path, "h5fs.superblock"), b"0")
        self.assertEqual(os.stat(path).st_ino, inode)
        write(self.file("text"), b"no HDF5 file")
        self.assertEqual(refusal(self.file("text"), options="create")[0], 3)
        self.assertEqual(read(self.file("text")), b"no HDF5 file")

    def test_what_cannot_be_made(self):
        os.symlink("nowhere.h5", self.file("dangling.h5"))
        os.mkdir(self.file("folder.h5"))
        before = self.leftovers()
        for name, code in ("dangling.h5", 3), ("folder.h5", 3), ("no/folder.h5", 3), ("n" * 256, 3):
            with self.subTest(name):
                status, said = refusal(self.file(name), options="create")
                self.assertEqual(status, code, said)
                self.assertEqual(self.leftovers(), before)
        self.assertEqual(refusal(self.file("a.h5"), options="create=v19")[0], 2)
        self.assertEqual(refusal(self.file("a.h5"), options="rw")[0], 3)
        self.assertEqual(self.leftovers(), before)

    def test_no_room(self):
        os.mkdir(self.file("m"))
        command = f"ulimit -f 0; exec {H5FS} -o create {self.file('a.h5')} {self.file('m')}"
        run = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 3, run.stderr)
        self.assertIn("File too large", run.stderr)
        self.assertEqual(self.leftovers(), ["m"])

    def test_killed(self):
        """The file is there as a whole, or not at all; the next mount makes it."""
        for name, number in CALLS[os.uname().machine].items():
            with self.subTest(name):
                path, point = self.file(f"{name}.h5"), self.file(f"m-{name}")
                os.mkdir(point)
                run = subprocess.run([H5FS, "-o", "create", path, point], capture_output=True, preexec_fn=lambda number=number: die_at(number))
                self.assertIn(run.returncode, (-signal.SIGSYS, 128 + signal.SIGSYS))
                self.assertFalse(os.path.exists(path))
                self.assertEqual(len([other for other in os.listdir(self.folder) if other.startswith(f"{name}.h5.h5fs-new-")]), 1)
                with Mount(path, options="create") as m:
                    os.mkdir(m.at("group"))
                with judges.File(path) as f:
                    self.assertEqual(list(f), ["group"])

    def test_filters(self):
        path = self.file("filters.h5")
        for options in "create,filters=shuffle,deflate(4)", "filters=fletcher32,create", "create,filters=":
            with Mount(path, options=options):
                pass
        for options in "create,filters=shuffle,deflate(10)", "create,filters=nothing", "create,shuffle", "create,filters=zfp":
            with self.subTest(options):
                self.assertEqual(refusal(path, options=options)[0], 2)


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def h5_mode(path):
    return os.stat(path).st_mode & 0o777


main()
