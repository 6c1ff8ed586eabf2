#!/usr/bin/python3
"""Automounters: autofs mounts when somebody looks, and nobody of h5fs waits for the mount that it is about to answer."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import time

import h5py

from mountlib import H5FS, MountCase, main, mounted, own_children, read, reap

SECONDS = 10  # after which something hangs


def wait_until(what):
    end = time.monotonic() + SECONDS
    while not what():
        if time.monotonic() > end:
            raise AssertionError("it does not come about")
        time.sleep(0.01)


class Case(MountCase):
    def setUp(self):
        super().setUp()
        self.path = self.file("data.h5")
        with h5py.File(self.path, "w") as f:
            f["group/data"] = range(3)


class Autofs(Case):
    """Debian's automount in a mount namespace of its own, where /sbin has mount.fuse.h5fs: as if it were installed."""

    def setUp(self):
        super().setUp()
        with open("/proc/filesystems") as f:
            if "autofs" not in f.read().split():
                self.skipTest("this kernel has no autofs file system")
        if not shutil.which("automount"):
            self.skipTest("there is no automount: contrib/install-deps test")
        os.mkdir(self.file("sbin"))
        os.symlink(os.path.realpath(H5FS), self.file("sbin", "mount.fuse.h5fs"))
        entry = f"-fstype=fuse.h5fs,ro,allow_other :{self.path}\n"
        self.write("indirect", f"a {entry}")
        self.write("direct", f"{self.file('place')} {entry}")
        self.write("bad", f"a -fstype=fuse.h5fs,ro :{__file__}\n")
        os.mkdir(self.file("auto"))
        os.mkdir(self.file("none"))
        self.write("master", f"{self.file('auto')} file:{self.file('indirect')}\n"
                             f"{self.file('none')} file:{self.file('bad')}\n/- file:{self.file('direct')}\n")

    def write(self, name, text):
        with open(self.file(name), "w") as f:
            f.write(text)

    def mounts(self, kind):
        """Where something of that kind is mounted; the namespace also has what others had mounted."""
        with open(f"/proc/{self.automount.pid}/mountinfo") as f:
            return {line.split()[4] for line in f if f" {self.folder}/" in line and f" - {kind} " in line}

    @contextlib.contextmanager
    def started(self):
        script = f"""set -e
            mount -t overlay -o lowerdir={self.file('sbin')}:/usr/sbin none /usr/sbin
            mount -t tmpfs none /run
            exec automount -f -C -p /run/pid {self.file('master')}"""
        before = own_children()
        with open(self.file("log"), "wb") as log:
            # A process group of its own: those that belong to it mount nothing by looking.
            self.automount = subprocess.Popen(["unshare", "-m", "--propagation", "slave", "sh", "-c", script], stdin=subprocess.DEVNULL,
                                              stdout=log, stderr=log, start_new_session=True)
        try:
            wait_until(lambda: len(self.mounts("autofs")) == 3 or self.automount.poll() is not None)
            self.assertIsNone(self.automount.poll(), read(self.file("log")))
            yield
            self.automount.terminate()  # it unmounts all
            self.assertEqual(self.automount.wait(SECONDS), 0, read(self.file("log")))
            for pid in own_children() - before:
                self.assertEqual(reap(pid, SECONDS), 0)
        finally:
            for pid in own_children() - before:
                os.kill(pid, signal.SIGKILL)
                if pid != self.automount.pid:
                    os.waitpid(pid, 0)
            self.automount.wait()

    def inside(self, command, *names):
        """What a command says of a path, in the namespace of the automounter: for others the kernel mounts nothing."""
        run = subprocess.run(["nsenter", "-m", "-t", str(self.automount.pid), command, self.file(*names)],
                             capture_output=True, timeout=SECONDS)
        return run.returncode, run.stdout

    def test_it_mounts_when_somebody_looks(self):
        """An indirect map, and a direct one, which is what systemd's automount units are."""
        with self.started():
            for names in ("auto", "a"), ("place",):
                self.assertNotIn(self.file(*names), self.mounts("fuse.h5fs"))
                self.assertEqual(self.inside("ls", *names), (0, b"group\n"))
                self.assertIn(self.file(*names), self.mounts("fuse.h5fs"))
                self.assertEqual(len(self.inside("cat", *names, "group", "data")[1]), 24)

    def test_it_mounts_anew(self):
        """After it has unmounted what nobody used, and after the daemon was killed."""
        with self.started():
            self.assertEqual(self.inside("ls", "auto", "a")[0], 0)
            before = own_children()
            self.automount.send_signal(signal.SIGUSR1)  # do so now
            wait_until(lambda: not self.mounts("fuse.h5fs"))
            daemon, = before - {self.automount.pid}
            self.assertEqual(reap(daemon, SECONDS), 0)
            self.assertEqual(self.inside("ls", "auto", "a")[0], 0)
            # The unmounter of the one before may still be there.
            daemon, = (pid for pid in own_children() - {self.automount.pid} if own_children(pid))
            unmounter, = own_children(daemon)
            os.kill(daemon, signal.SIGKILL)
            self.assertEqual(reap(daemon, SECONDS), -signal.SIGKILL)
            self.assertEqual(reap(unmounter, SECONDS), 0)
            self.assertEqual(self.mounts("fuse.h5fs"), set())
            self.assertEqual(self.inside("ls", "auto", "a"), (0, b"group\n"))

    def test_one_that_cannot_be_mounted(self):
        with self.started():
            self.assertNotEqual(self.inside("ls", "none", "a")[0], 0)


class Paths(Case):
    """The cause, whatever the kernel: a process that has left the command's group names the mount point no more."""

    def test_nobody_outside_of_the_group_asks_for_the_mount_point(self):
        point = self.file("mountpoint")
        log = self.file("strace")
        os.mkdir(point)
        with open(log, "w"):
            pass
        before = own_children()
        env = dict(os.environ, ASAN_OPTIONS="detect_leaks=0")  # which is not possible in a traced process
        strace = subprocess.Popen(["strace", "-f", "-o", log, "-e", "trace=%file,%process,setsid,mount,umount2", H5FS, self.path, point],
                                  stdin=subprocess.DEVNULL, env=env)
        try:
            wait_until(lambda: b"setsid" in read(log) and b" exit_group(" in read(log))
            self.assertEqual(os.listdir(point), ["group"])
            subprocess.run(["fusermount3", "-u", point], check=True)
            self.assertEqual(strace.wait(SECONDS), 0)
        finally:
            for pid in own_children() - before:
                os.kill(pid, signal.SIGKILL)  # what strace had started goes on, and is ours
                os.waitpid(pid, 0)
            strace.returncode = strace.returncode or 0
            if mounted(point):
                subprocess.run(["fusermount3", "-uz", point], check=False)
        lines = read(log).decode(errors="replace").splitlines()
        left = [i for i, line in enumerate(lines) if "setsid(" in line]
        self.assertEqual(len(left), 2, "daemon and unmounter")
        self.assertTrue(any(re.search(rf"mount\(.*{point}", line) for line in lines[:left[0]]))
        self.assertEqual([line for line in lines[left[0]:] if point in line], [])
        # And the group is left before the command exits, or the terminal would end the daemon.
        self.assertLess(left[1], next(i for i, line in enumerate(lines) if " exit_group(0)" in line))


if __name__ == "__main__":
    main()
