#!/usr/bin/python3
"""h5fs -u, which waits until the file is closed; -o remount; what mount(8) asks for: the types h5fs and fuse.h5fs."""
import contextlib
import errno
import fcntl
import glob
import hashlib
import os
import shutil
import signal
import subprocess
import time

import h5py
import numpy

from mountlib import H5FS, Mount, MountCase, main, mounted, own_children, read, reap, refusal

SOON = 60
NOBODY = 65534
BUSY = "in use: a file of it is open, or a program is in a directory of it"


def h5fs(*arguments, program=H5FS, **options):
    """Exit status and standard error."""
    run = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=SOON, check=False, **options)
    return run.returncode, run.stderr


def wait_until(test):
    end = time.monotonic() + SOON
    while not test():
        if time.monotonic() > end:
            raise AssertionError("it takes too long")
        time.sleep(0.01)


class Case(MountCase):
    def setUp(self):
        super().setUp()
        self.path = self.file("x.h5")
        with h5py.File(self.path, "w") as f:
            f.create_dataset("rows", (0, 10), "u1", maxshape=(None, 10), chunks=(10, 10))
            f["group/data"] = numpy.arange(3)

    def assertClosed(self, m):
        """By now, and not only soon."""
        self.assertFalse(mounted(m.path))
        self.assertEqual(reap(m.daemon, 0), 0)
        m.daemon = None
        self.assertEqual(glob.glob(self.path + ".*"), [])
        with open(self.path, "rb") as f:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Unmount(Case):
    def test_closed(self):
        for options in None, "rw", "rw,sync=fsync":
            with self.subTest(options), Mount(self.path, options=options) as m:
                if options:
                    with open(m.at("rows"), "ab", buffering=0) as f:
                        f.write(bytes(30))
                    with open(m.at(options), "w") as f:
                        f.write("new")
                self.assertEqual(h5fs("-u", m.path), (0, ""))
                self.assertClosed(m)
        with h5py.File(self.path) as f:
            self.assertEqual((f["rows"].shape, bytes(f["rw,sync=fsync"][...])), ((6, 10), b"new"))

    def test_folder(self):
        """All files of it are closed, also one in which somebody has looked."""
        os.mkdir(self.file("folder"))
        self.path = shutil.move(self.path, self.file("folder", "x.h5"))
        with open(self.file("folder", "text"), "w") as f:
            f.write("text")
        with Mount(self.file("folder")) as m:
            self.assertEqual(read(m.at("x.h5/group/data")), numpy.arange(3).tobytes())
            for name in "x.h5/group/data", "text":
                with open(m.at(name), "rb"):
                    self.assertEqual(h5fs("-u", m.path)[0], 7)
            self.assertEqual(h5fs("-u", m.path), (0, ""))
            self.assertClosed(m)

    def test_by_another_path(self):
        os.mkdir(self.file("m"))
        os.symlink("m", self.file("link"))
        with Mount(self.path, point=self.file("m")) as m:
            self.assertEqual(h5fs("-u", "./link/../link/", cwd=self.folder), (0, ""))
            self.assertClosed(m)

    def test_no_mount_of_h5fs(self):
        with Mount(self.path) as m:
            for path, why in ((self.folder, "nothing is mounted there"), (m.at("group"), "nothing is mounted there"), ("/proc", "this is no mount of h5fs"),
                              (self.file("none"), "No such file or directory"), (self.path, "nothing is mounted there")):
                self.assertEqual(h5fs("-u", path), (7, f"h5fs: {path}: {why}\n"))
            self.assertTrue(mounted(m.path))
        self.assertEqual(h5fs("-u")[0], 2)
        self.assertEqual(h5fs("-u", self.folder, self.folder)[0], 2)

    def test_in_use(self):
        with Mount(self.path, options="rw") as m:
            for use in (lambda: open(m.at("rows"), "rb"), lambda: subprocess.Popen(["cat"], cwd=m.at("group"), stdin=subprocess.PIPE)):
                with use():
                    status, said = h5fs("-u", m.path)
                    self.assertEqual(status, 7)
                    if not os.geteuid():
                        self.assertEqual(said, f"h5fs: {m.path}: {BUSY}\n")
                    self.assertEqual(os.listdir(m.at("group")), ["data"])
            self.assertEqual(h5fs("-u", m.path), (0, ""))
            self.assertClosed(m)

    def test_no_room_to_commit(self):
        """This is told, as fsync() tells it."""
        disk = self.disk()
        path = shutil.copy(self.path, disk)
        with Mount(path, options="rw,sync=fsync") as m:
            with open(os.path.join(disk, "ballast"), "wb", buffering=0) as ballast, self.assertRaises(OSError):
                while True:
                    ballast.write(bytes(4096))
            for i in range(400):
                os.mkdir(m.at(f"made{i}"))
            self.assertEqual(h5fs("-u", m.path), (10, f"h5fs: {m.path}: what was changed last cannot be committed: No space left on device;"
                                                      " it stays mounted\n"))
            self.assertEqual(sorted(os.listdir(m.path)), ["group", "rows"])
            self.assertEqual(h5fs("-u", m.path), (0, ""))

    def test_two_places(self):
        if os.geteuid():
            self.skipTest("only root mounts file systems")
        place = self.file("place")
        os.mkdir(place)
        with Mount(self.path) as m:
            subprocess.run(["mount", "--bind", m.path, place], check=True)
            self.assertEqual(h5fs("-u", m.path), (7, f"h5fs: {m.path}: unmounted; it is still mounted at {place}, and the file open\n"))
            self.assertEqual(h5fs("-u", place), (0, ""))
            self.assertClosed(m)

    def test_dead_daemon(self):
        with Mount(self.path) as m:
            for pid in own_children(m.daemon):
                os.kill(pid, signal.SIGKILL)
            os.kill(m.daemon, signal.SIGKILL)
            m.wait()
            m.status = 0
            with self.assertRaises(OSError) as caught:
                os.listdir(m.path)
            self.assertEqual(caught.exception.errno, errno.ENOTCONN)
            self.assertEqual(h5fs("-u", m.path), (0, ""))
            self.assertFalse(mounted(m.path))
            for pid in own_children():
                reap(pid, 0)

    def test_daemon_that_is_slow(self):
        """It waits; and says so if that takes long."""
        with Mount(self.path) as m:
            os.kill(m.daemon, signal.SIGSTOP)
            try:
                with subprocess.Popen([H5FS, "-q", "-u", m.path]) as run:
                    self.assertRaises(subprocess.TimeoutExpired, run.wait, 0.2)
                    os.kill(m.daemon, signal.SIGCONT)
                    self.assertEqual(run.wait(SOON), 0)
            finally:
                os.kill(m.daemon, signal.SIGCONT)
            self.assertClosed(m)

    def test_pid(self):
        with Mount(self.path) as m:
            self.assertEqual(int(os.getxattr(m.path, "h5fs.pid")), m.daemon)
            self.assertErrno(errno.ENODATA, os.getxattr, m.at("group"), "h5fs.pid")

    def test_user(self):
        """One who is not root unmounts what is theirs, by fusermount3, which says why it does not."""
        if os.geteuid():
            self.skipTest("only root becomes another user")
        os.chmod(self.folder, 0o777)
        os.chmod(self.path, 0o644)
        point = self.file("m")
        os.mkdir(point)
        os.chown(point, NOBODY, NOBODY)
        script = """set -e
            cp "$0" h5fs
            mknod -m 666 fuse c 10 229
            mount --bind fuse /dev/fuse
            as() { id=$1; shift; setpriv --reuid "$id" --regid "$id" --clear-groups "$@" || echo "exit $?"; }
            as 65534 ./h5fs x.h5 m
            as 65533 ./h5fs -u m
            as 65534 sh -c 'exec 3<m; exec ./h5fs -u m'
            as 65534 sh -c 'exec 3<m; exec ./h5fs -q -u m'
            program=$(command -v fusermount3)
            mount --bind /dev/null "$program"
            as 65534 ./h5fs -u m
            umount "$program"
            as 65534 ./h5fs -u m
            mountpoint -q m || flock -xn x.h5 echo closed"""
        run = subprocess.run(["unshare", "-m", "sh", "-c", script, os.path.realpath(H5FS)], capture_output=True, text=True, cwd=self.folder,
                             timeout=SOON, check=False)
        os.unlink(self.file("fuse"))
        self.assertEqual((run.returncode, run.stdout), (0, "exit 7\n" * 4 + "closed\n"), run.stderr)
        self.assertRegex(run.stderr, r"^h5fs: m: Permission denied\nfusermount3: .*busy\n.*h5fs: m: cannot be unmounted, for the reason above\n"
                         r"h5fs: m: cannot be unmounted: Operation not permitted\nh5fs: m: cannot be unmounted, for the reason above\n$")


class Remount(Case):
    def setUp(self):
        super().setUp()
        if os.geteuid():
            self.skipTest("only root may remount")

    def digest(self):
        return hashlib.sha256(read(self.path)).hexdigest(), os.stat(self.path).st_mtime_ns

    def test_read_only(self):
        """From then on the file is whole, and nothing changes it; what was deleted is given back before."""
        with h5py.File(self.path, "a") as f:
            f["large"] = numpy.ones(1_000_000)
        with Mount(self.path, options="rw,sync=fsync") as m:
            with open(m.at("rows"), "ab", buffering=0) as f:
                f.write(bytes(30))
            os.mkdir(m.at("made"))
            os.unlink(m.at("large"))
            with open(m.at("rows"), "ab", buffering=0) as f:
                f.write(bytes(10))
                self.assertEqual(h5fs("-o", "remount,ro", self.path, m.path), (7, f"h5fs: {m.path}: in use: a file of it is open for writing\n"))
            self.assertEqual(h5fs("-o", "remount,ro", self.path, m.path), (0, ""))
            before = self.digest()
            self.assertLess(os.stat(self.path).st_blocks * 512, 1_000_000)
            for change in (lambda: os.mkdir(m.at("dir")), lambda: os.open(m.at("rows"), os.O_RDWR), lambda: os.unlink(m.at("rows")),
                           lambda: os.setxattr(m.path, "user.a", b"1"), lambda: os.truncate(m.at("rows"), 0)):
                self.assertErrno(errno.EROFS, change)
            with h5py.File(shutil.copy(self.path, self.file("copy.h5"))) as f:
                self.assertEqual((f["rows"].shape, sorted(f)), ((4, 10), ["group", "made", "rows"]))
            self.assertEqual(os.stat(m.at("rows")).st_size, 40)
            self.assertEqual(h5fs("-u", m.path), (0, ""))
            self.assertClosed(m)
            self.assertEqual(self.digest(), before)

    def test_writable_again(self):
        with Mount(self.path, options="rw") as m:
            for _ in range(2):
                self.assertEqual(h5fs("-o", "remount,ro", self.path, m.path), (0, ""))
                self.assertErrno(errno.EROFS, os.rmdir, m.at("group"))
                self.assertEqual(h5fs("-o", "remount,rw", self.path, m.path), (0, ""))
                with open(m.at("rows"), "ab", buffering=0) as f:
                    f.write(bytes(10))
            with open("/proc/self/mounts") as f:
                line, = (line for line in f if line.split()[1] == m.path)
            self.assertLessEqual({"rw", "nosuid", "nodev", "noexec"}, set(line.split()[3].split(",")))
            self.assertEqual(os.stat(m.at("rows")).st_size, 20)

    def test_by_the_kernel_alone(self):
        """As programs do it that know no helper: the daemon hears nothing, and a sync of the mount commits."""
        with Mount(self.path, options="rw,sync=fsync") as m:
            os.mkdir(m.at("made"))
            subprocess.run(["mount", "-i", "-o", "remount,ro", m.path], check=True)
            self.assertErrno(errno.EROFS, os.mkdir, m.at("dir"))
            subprocess.run(["sync", m.path], check=True)
            before = self.digest()
            with h5py.File(shutil.copy(self.path, self.file("copy.h5"))) as f:
                self.assertIn("made", f)
        self.assertEqual(self.digest(), before)

    def test_folder(self):
        with Mount(self.folder) as m:
            self.assertEqual(h5fs("-o", "remount,ro", self.folder, m.path), (0, ""))
            self.assertEqual(read(m.at("x.h5/group/data")), numpy.arange(3).tobytes())

    def test_refusals(self):
        with Mount(self.path) as m:
            self.assertEqual(h5fs("-o", "remount,rw", self.path, m.path),
                             (7, f"h5fs: {m.path}: was mounted for reading; unmount it, and mount it anew\n"))
            self.assertEqual(h5fs("-o", "remount,ro", self.path, m.path), (0, ""))
        self.assertEqual(h5fs("-o", "remount,ro", self.path, self.folder), (7, f"h5fs: {self.folder}: nothing is mounted there\n"))
        self.assertEqual(h5fs("-o", "remount,ro", self.path)[0], 2)


class ByMount(Case):
    """mount(8), in a mount namespace in which h5fs is installed."""

    @contextlib.contextmanager
    def installed(self):
        if os.geteuid():
            self.skipTest("only root makes mount namespaces")
        os.mkdir(self.file("sbin"))
        for name in "mount.h5fs", "mount.fuse.h5fs":
            os.symlink(os.path.realpath(H5FS), self.file("sbin", name))
        os.mkdir(self.file("m"))
        before = own_children()
        self.shell = subprocess.Popen(["unshare", "-m", "--propagation", "private", "sh", "-c", f"""set -e
            mount -t overlay -o lowerdir={self.file('sbin')}:/usr/sbin none /usr/sbin
            echo ready
            read -r end"""], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            self.assertEqual(self.shell.stdout.readline(), "ready\n")
            yield
        finally:
            if self.mounts():
                self.inside("umount", "-l", "m")
            self.shell.communicate("\n", SOON)
            statuses = [reap(pid, SOON) for pid in own_children() - before]
        self.assertEqual(set(statuses) - {0}, set())

    def inside(self, *command):
        run = subprocess.run(["nsenter", "-m", "-t", str(self.shell.pid), "sh", "-c", 'cd "$0" && exec "$@"', self.folder, *command],
                             capture_output=True, text=True, timeout=SOON)
        return run.returncode, run.stdout, run.stderr

    def mounts(self):
        """Type, source and options of what is mounted in the folder."""
        with open(f"/proc/{self.shell.pid}/mounts") as f:
            lines = [line.split() for line in f]
        return [(kind, source, set(options.split(",")) & {"ro", "rw"}) for source, place, kind, options, *_ in lines if place == self.file("m")]

    def test_types(self):
        with self.installed():
            for arguments in (["-t", "h5fs", "-o", "ro", self.path, "m"], ["-o", "nofail,_netdev,x-systemd.automount,noauto,user,ro", "x.h5", "m", "-t", "fuse.h5fs"],
                              ["-v", "-n", "-t", "h5fs", "-o", "ro,cache=3M", "x.h5", "m"], ["-s", "-t", "h5fs", "-o", "ro,no_such_option", "x.h5", "m"]):
                self.assertEqual(self.inside("mount", *arguments)[::2], (0, ""), arguments)
                self.assertEqual(self.mounts(), [("fuse.h5fs", self.path, {"ro"})])
                self.assertEqual(self.inside("ls", "m"), (0, "group\nrows\n", ""))
                self.assertEqual(self.inside("umount", "m"), (0, "", ""))
            status, _, said = self.inside("mount", "-t", "h5fs", "-o", "ro,no_such_option", "x.h5", "m")
            self.assertEqual(status, 32)
            self.assertIn("unknown option -o no_such_option", said)
            self.assertEqual(self.inside("mount", "-f", "-t", "h5fs", "-o", "ro", "x.h5", "m"), (0, "", ""))
            self.assertEqual(self.inside("mount", "-t", "h5fs", "none.h5", "m")[0], 32)
            self.assertEqual(self.mounts(), [])

    def test_folder(self):
        """By its type, by fstab, and mounted anew by what /proc tells of it."""
        folder, point = self.file("folder"), self.file("m")
        os.mkdir(folder)
        shutil.move(self.path, folder)
        with open(self.file("fstab"), "w") as f:
            f.write(f"{folder} {point} h5fs ro,nofail,match=*.h5 0 0\n")
        with self.installed():
            for arguments in (["-t", "h5fs", "-o", "ro", folder, "m"], ["-t", "fuse.h5fs", "-o", "ro,open_files=3", "folder", "m"],
                              ["-a", "-T", self.file("fstab")], ["-T", self.file("fstab"), point]):
                self.assertEqual(self.inside("mount", *arguments)[::2], (0, ""), arguments)
                self.assertEqual(self.mounts(), [("fuse.h5fs", folder, {"ro"})])
                self.assertEqual(self.inside("ls", "m/x.h5"), (0, "group\nrows\n", ""))
                self.assertEqual(self.inside("mount", "-o", "remount,ro", point), (0, "", ""))
                self.assertEqual(self.inside("cat", "m/x.h5/rows"), (0, "", ""))
                self.assertEqual(self.inside(os.path.realpath(H5FS), "-u", "m"), (0, "", ""))
                self.assertEqual(self.mounts(), [])

    def test_fstab(self):
        with open(self.file("fstab"), "w") as f:
            f.write(f"{self.path} {self.file('m')} h5fs rw,nofail,x-systemd.device-timeout=1 0 0\n")
        with self.installed():
            for _ in range(2):
                self.assertEqual(self.inside("mount", "-a", "-T", self.file("fstab"))[::2], (0, ""))
                self.assertEqual(self.mounts(), [("fuse.h5fs", self.path, {"rw"})])
            self.assertEqual(self.inside("mkdir", "m/made"), (0, "", ""))
            # By what /proc tells of the mount, and by fstab.
            self.assertEqual(self.inside("mount", "-o", "remount,ro", self.file("m")), (0, "", ""))
            self.assertEqual(self.mounts(), [("fuse.h5fs", self.path, {"ro"})])
            self.assertEqual(self.inside("mkdir", "m/more")[0], 1)
            self.assertEqual(self.inside("mount", "-T", self.file("fstab"), "-o", "remount", self.file("m")), (0, "", ""))
            self.assertEqual(self.mounts(), [("fuse.h5fs", self.path, {"rw"})])
            self.assertEqual(self.inside("mkdir", "m/more"), (0, "", ""))
            self.assertEqual(self.inside(os.path.realpath(H5FS), "-u", "m"), (0, "", ""))
            with h5py.File(self.path) as f:
                self.assertLessEqual({"made", "more"}, set(f))


if __name__ == "__main__":
    main()
