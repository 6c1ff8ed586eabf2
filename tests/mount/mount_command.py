#!/usr/bin/python3
"""The command line: mount points that are made and named, what is mounted of a file, the log, statistics by signal, the end
of an idle mount, and mount(8)'s way to call."""
import fcntl
import json
import os
import re
import select
import shutil
import signal
import subprocess
import time

import h5py
import numpy

from mountlib import H5FS, EXIT_SECONDS, Mount, MountCase, MountFailed, main, mounted, read

SOON = 30  # seconds that anything here may take


def until(condition, seconds=SOON):
    """Waits for what another process does; what it gives at last."""
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        select.select([], [], [], 0.02)
    return found


class Command(MountCase):
    def make(self, name="data.h5", **how):
        path = self.at(name)
        with h5py.File(path, "w", **how) as f:
            f["run/first/values"] = numpy.arange(10, dtype="<i4")
            f["run/notes"] = "text"
            f["other"] = numpy.arange(3)
        return path

    def at(self, *names):
        return os.path.join(self.folder, *names)

    def refusal(self, *arguments, cwd=None, program=H5FS):
        """Exit status and lines of a command that must not mount."""
        run = subprocess.run([program, *arguments], capture_output=True, text=True, cwd=cwd or self.folder, timeout=SOON)
        self.assertNotEqual(run.returncode, 0)
        self.assertEqual(run.stdout, "")
        return run.returncode, run.stderr.splitlines()


class MountPoints(Command):
    def test_one_that_is_missing_is_made_and_goes(self):
        point = self.at("made")
        with Mount(self.make(), point=point) as m:
            self.assertEqual(sorted(os.listdir(point)), ["other", "run"])
            m.unmount()
            self.assertEqual(m.wait(), 0)
            self.assertFalse(os.path.exists(point))

    def test_one_that_was_there_stays(self):
        point = self.at("there")
        os.mkdir(point)
        with Mount(self.make(), point=point) as m:
            m.unmount()
            self.assertEqual(m.wait(), 0)
        self.assertEqual(os.listdir(point), [])

    def test_it_goes_in_the_foreground_and_without_the_sandbox(self):
        for arguments in ("-f", "-o", "sandbox=no"), ("-o", "sandbox=no"), ("-f",), ("-f", "-s"):
            with self.subTest(arguments):
                point = self.at("made")
                with Mount(self.make(), *arguments, point=point) as m:
                    os.kill(m.daemon, signal.SIGTERM)
                    self.assertEqual(m.wait(), 0)
                self.assertFalse(os.path.exists(point))

    def test_it_goes_when_the_daemon_is_killed(self):
        point = self.at("made")
        with Mount(self.make(), point=point) as m:
            m.kill()
            self.assertFalse(os.path.exists(point))

    def test_named_after_the_file_in_the_current_folder(self):
        self.make("data.v2.h5")
        os.mkdir(self.at("here"))
        with Mount("../data.v2.h5", point=self.at("here", "data.v2"), folder=self.at("here"), named=False) as m:
            self.assertEqual(sorted(os.listdir(m.path)), ["other", "run"])
        self.assertEqual(os.listdir(self.at("here")), [])

    def test_no_name_follows(self):
        self.make("data")
        self.make(".h5")
        for name in "data", ".h5":
            status, (line,) = self.refusal(name)
            self.assertEqual(status, 7)
            self.assertIn("no mount point follows", line)

    def test_refused_mounts_leave_nothing(self):
        with open(self.at("text.h5"), "w") as f:
            f.write("no HDF5")
        for arguments in (["text.h5"], ["text.h5", "made"], ["absent.h5", "made"], ["-f", "text.h5", "made"]):
            status, (line,) = self.refusal(*arguments)
            self.assertEqual(status, 3, line)
            self.assertEqual(os.listdir(self.folder), ["text.h5"])

    def test_no_place_for_it(self):
        self.make()
        status, (line,) = self.refusal("data.h5", "not/there")
        self.assertEqual(status, 7)
        self.assertIn("not/there: No such file or directory", line)
        status, (line,) = self.refusal("data.h5", "data.h5")
        self.assertEqual(status, 7)
        self.assertIn("is not a directory", line)

    def test_mounted_already(self):
        path = self.make()
        with h5py.File(self.at("empty.h5"), "w"):
            pass
        for name, options in (path, None), (path, "subdir=/run"), (self.at("empty.h5"), None):
            with self.subTest(name=name, options=options), Mount(name, point=self.at("m"), options=options) as m:
                names = os.listdir(m.path)
                status, (line,) = self.refusal(path, m.path)
                self.assertEqual(status, 7)
                self.assertTrue(line.endswith(f"already mounted; end it with: fusermount3 -u {m.path}"), line)
                self.assertEqual(os.listdir(m.path), names)

    def test_root_of_another_empty_file_system(self):
        point = self.at("m")
        os.mkdir(point)
        subprocess.run(["mount", "-t", "tmpfs", "none", point], check=True)
        # The end of a Mount unmounts all that is there.
        self.addCleanup(subprocess.run, ["umount", "-lq", point], check=False)
        with Mount(self.make(), point=point) as m:
            self.assertEqual(sorted(os.listdir(m.path)), ["other", "run"])

    def test_folder_of_a_mount(self):
        """It is no mount yet, and may become one where it is empty."""
        path = self.make()
        with h5py.File(path, "a") as f:
            f.create_group("empty")
        with Mount(path) as m, Mount(path, point=m.at("empty")) as inner:
            self.assertEqual(read(inner.at("run", "notes")), b"text\n")


class Parts(Command):
    def test_subdir(self):
        path = self.make()
        with h5py.File(path, "a") as f:
            f["run/inside"] = h5py.SoftLink("/run/first/values")
            f["run/itself"] = h5py.SoftLink("/run")
            f["run/first/outside"] = h5py.SoftLink("/other")
            f["run/nowhere"] = h5py.SoftLink("/absent")
            f["run/relative"] = h5py.SoftLink("first/values")
            f["running"] = 1
            f["run/neighbour"] = h5py.SoftLink("/running")
            f["run"].attrs["who"] = f["run/first"].ref
            f["run"].attrs["far"] = f["other"].ref
        values = numpy.arange(10, dtype="<i4").tobytes()
        for subdir in "/run", "run", "//run/./":
            with self.subTest(subdir), Mount(path, options=f"subdir={subdir}") as m:
                self.assertEqual(sorted(os.listdir(m.path)), ["first", "inside", "itself", "neighbour", "notes",
                                                              "nowhere", "relative"])
                self.assertEqual(os.readlink(m.at("inside")), "first/values")
                self.assertEqual(os.readlink(m.at("itself")), ".")
                self.assertEqual(read(m.at("inside")), values)
                self.assertEqual(read(m.at("relative")), values)
                # What lies outside has no place here: it is shown as what it is.
                self.assertFalse(os.path.islink(m.at("first", "outside")))
                self.assertEqual(read(m.at("first", "outside")), numpy.arange(3).tobytes())
                self.assertFalse(os.path.islink(m.at("neighbour")))
                self.assertTrue(os.path.islink(m.at("nowhere")) and not os.path.exists(m.at("nowhere")))
                self.assertEqual(os.getxattr(m.path, "user.who"), b"/first")
                self.assertEqual(os.getxattr(m.path, "user.far"), b"null")
        with Mount(path, options="subdir=/run/first") as m:
            self.assertEqual(read(m.at("values")), values)

    def test_subdir_written(self):
        path = self.make()
        with h5py.File(path, "a", libver="latest") as f:
            f.create_dataset("run/rows", data=numpy.zeros((1, 2), "u1"), maxshape=(None, 2))
        with Mount(path, options="rw,subdir=/run") as m, open(m.at("rows"), "ab") as f:
            f.write(b"ab")
        with h5py.File(path) as f:
            self.assertEqual(f["run/rows"][...].tolist(), [[0, 0], [97, 98]])

    def test_no_such_subdir(self):
        path = self.make()
        status, (line,) = self.refusal("-o", "subdir=/absent", path, "m")
        self.assertEqual(status, 3)
        self.assertIn("the file has no group /absent", line)
        status, (line,) = self.refusal("-o", "subdir=/other", path, "m")
        self.assertIn("/other is not a group", line)
        for command, *arguments in ("--list",), ("--cat", "x"), ("--kerchunk",), ("--extract", "copy"):
            with self.subTest(command):
                self.assertEqual(self.refusal(command, "-o", "subdir=/absent", path, *arguments), (3, [f"h5fs: {path}: the file has no group /absent"]))

    def test_offset(self):
        plain = self.make("plain.h5")
        with open(plain, "rb") as f:
            content = f.read()
        # Where the superblock is not searched, and behind another HDF5 file, which would be found.
        with open(self.at("odd.h5"), "wb") as f:
            f.write(bytes(1000) + content)
        with open(self.at("two.h5"), "wb") as f:
            f.write(content + bytes(-len(content) % 4096) + content)
        second = len(content) + -len(content) % 4096
        self.assertEqual(self.refusal("odd.h5", "m")[0], 3)
        for name, offset in ("odd.h5", 1000), ("two.h5", second):
            for word in "offset", "userblock":
                with Mount(self.at(name), options=f"{word}={offset}") as m:
                    self.assertEqual(read(m.at("run", "first", "values")), numpy.arange(10, dtype="<i4").tobytes())
        status, (line,) = self.refusal("-o", "offset=999", "odd.h5", "m")
        self.assertEqual(status, 3)
        self.assertIn("not an HDF5 file", line)
        run = subprocess.run([H5FS, "--list", "-o", "offset=1000", self.at("odd.h5")], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stdout.count("\n")), (0, 6), run.stderr)


class Names(Command):
    def test_one_too_long_for_a_journal(self):
        """It can be looked at all the same, and a writer of SWMR is not kept out."""
        path = self.make("n" * 252 + ".h5", libver="latest")
        for command in "--check", "--list", "--kerchunk":
            run = subprocess.run([H5FS, command, path], capture_output=True, text=True, timeout=SOON)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
        for options in None, "swmr":
            with Mount(path, options=options) as m:
                self.assertEqual(read(m.at("run", "notes")), b"text\n")
                if options:
                    with open(path) as f:
                        fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.mkdir(self.at("m"))
        for arguments in ["-o", "rw", path, "m"], ["--recover", path]:
            status, (line,) = self.refusal(*arguments)
            self.assertEqual(status, 3)
            self.assertIn("too long", line)


class Log(Command):
    def damaged(self):
        path = self.make(libver="latest")
        with h5py.File(path) as f:
            address = h5py.h5o.get_info(f["other"].id).addr
        with open(path, "r+b") as f:
            f.seek(address)
            f.write(b"XXXX")
        return path

    def look(self, m):
        """Has the daemon meet the damage."""
        with self.assertRaises(OSError):
            read(m.at("other"))
        self.assertEqual(read(m.at("run", "notes")), b"text\n")

    def test_file(self):
        path, log = self.damaged(), self.at("log")
        for arguments in (), ("-f",):
            with self.subTest(arguments), Mount(path, *arguments, options=f"log={log},verbose") as m:
                self.look(m)
                point = m.path
        with open(log) as f:
            lines = f.read().splitlines()
        self.assertEqual(len(lines), 6, lines)
        for i, line in enumerate(lines):
            self.assertRegex(line, r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z h5fs\[[0-9]+\]: ")
            self.assertIn((": mounted at ", ": object header", ": unmounted")[i % 3], line)
        self.assertIn(f"{path}: mounted at {point} for reading", lines[3])

    def test_killed_daemon_is_logged(self):
        log = self.at("log")
        with Mount(self.make(), options=f"log={log}") as m:
            m.kill()
        with open(log) as f:
            self.assertIn("the daemon has died: unmounted", f.read())

    def test_quiet(self):
        path = self.damaged()
        with open(path, "r+b") as f:
            f.truncate(os.path.getsize(path) - 1)
        for options, said in ("quiet", []), (None, ["truncated", "object header"]):
            with self.subTest(options), Mount(path, "-f", options=options) as m:
                self.look(m)
                lines = m.said().splitlines()
                self.assertEqual(len(lines), len(said), lines)
                for line, part in zip(lines, said):
                    self.assertIn(part, line)

    def test_place_that_is_none(self):
        status, (line,) = self.refusal("-o", "log=/absent/log", self.make(), "m")
        self.assertEqual(status, 2)
        self.assertIn("log=/absent/log: No such file or directory", line)

    def test_places_that_are_no_log(self):
        path, fifo, link = self.make(), self.at("fifo"), self.at("link")
        before = read(path)
        os.mkfifo(fifo)
        os.link(path, link)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        for log, reason in ((fifo, "neither a file nor a character device"), (path, "this is the HDF5 file"),
                            (link, "this is the HDF5 file")):
            status, (line,) = self.refusal("-o", f"log={log},verbose", path, "m")
            self.assertEqual((status, line), (2, f"h5fs: -o log={log}: {reason}"))
        os.close(reader)
        status, (line,) = self.refusal("-o", f"log={fifo},verbose", path, "m")
        self.assertEqual((status, line), (2, f"h5fs: -o log={fifo}: neither a file nor a character device"))
        self.assertEqual(read(path), before)
        with Mount(path, options="log=/dev/null,verbose") as m:
            self.assertEqual(read(m.at("run", "notes")), b"text\n")

    def test_statistics_by_signal(self):
        for arguments in ("-f",), ("-f", "-s"):
            with self.subTest(arguments), Mount(self.make(), *arguments) as m:
                values = read(m.at("run", "first", "values"))
                os.kill(m.daemon, signal.SIGUSR1)
                text = until(lambda: re.search(r"statistics: (\{.*\})\n", m.said()))
                self.assertEqual(json.loads(text[1])["served"]["read"], len(values))
                self.assertEqual(read(m.at("run", "first", "values")), values)

    def test_statistics_of_a_mount_for_writing(self):
        with Mount(self.make(), "-f", options="rw") as m:
            os.kill(m.daemon, signal.SIGUSR1)
            self.assertTrue(until(lambda: "statistics: {" in m.said()))


class Idle(Command):
    def test_it_ends(self):
        with Mount(self.make(), options="timeout=1", point=self.at("m")) as m:
            self.assertEqual(m.wait(), 0)
            self.assertFalse(mounted(m.path) or os.path.exists(m.path))

    def test_it_stays_while_it_is_in_use(self):
        with Mount(self.make(), "-f", options="timeout=1,verbose") as m:
            fd = m.open("other", os.O_RDONLY)
            # Past the second attempt: the kernel answers what is asked again.
            self.assertFalse(until(lambda: not mounted(m.path), 4))
            self.assertEqual(len(os.pread(fd, 100, 0)), 24)
            os.close(fd)
            self.assertEqual(m.wait(), 0)


class Desktop(Command):
    def test_mounts_beside_the_file(self):
        """Wherever the file manager is; the shell reads the line as the rules for such files have it."""
        os.mkdir(self.at("a folder"))
        name = "an odd $(name) 'of' \"it\""
        path, point = self.make(os.path.join("a folder", name + ".h5")), self.at("a folder", name)
        with open(os.path.join(os.path.dirname(__file__), "..", "..", "contrib", "desktop", "h5fs.desktop")) as f:
            line = re.search(r"(?m)^Exec=(.*)$", f.read())[1].replace(r"\\", "\\")
        words = subprocess.run(["sh", "-c", f"printf '%s\\0' {line}"], capture_output=True, text=True, check=True).stdout.split("\0")[:-1]
        self.assertIn("%f", words)
        command = [path if word == "%f" else word.replace("%%", "%") for word in words]
        os.symlink(os.path.realpath(H5FS), self.at("h5fs"))
        os.mkdir(self.at("elsewhere"))
        with Mount(command[-1], *command[1:-1], program=command[0], point=point, named=False, folder=self.at("elsewhere"),
                   env={"PATH": f"{self.folder}:{os.environ['PATH']}"}) as m:
            self.assertEqual(read(m.at("run", "notes")), b"text\n")
        self.assertEqual(os.listdir(self.at("elsewhere")), [])


class Helper(Command):
    """As mount(8) calls it, and mount(8) itself."""

    def helper(self):
        link = self.at("mount.fuse.h5fs")
        os.symlink(os.path.realpath(H5FS), link)
        return link

    def test_its_arguments(self):
        with Mount(self.make(), "-n", "-s", "-v", "-t", "fuse.h5fs", program=self.helper(),
                   options="ro,nosuid,nodev,noauto,user,_netdev,nofail,x-systemd.automount,subdir=/run") as m:
            self.assertEqual(sorted(os.listdir(m.path)), ["first", "notes"])

    def test_its_status(self):
        status, (line,) = self.refusal("absent.h5", "m", program=self.helper())
        self.assertEqual(status, 32)
        self.assertIn("absent.h5: No such file or directory", line)
        for arguments in ["-o", "nonsense", "absent.h5", "m"], [], ["-o", "workers=x", "absent.h5", "m"]:
            self.assertEqual(self.refusal(*arguments, program=self.at("mount.fuse.h5fs"))[0], 32)

    def test_mount_and_umount(self):
        """In a namespace of its own, where /sbin has the link: as if it were installed."""
        path, point = self.make(), self.at("m")
        os.mkdir(point)
        with open(self.at("odd.h5"), "wb") as f:
            f.write(bytes(1000) + read(path))
        script = f"""set -e
            mkdir {self.folder}/upper
            mount -t tmpfs none {self.folder}/upper
            mkdir {self.folder}/upper/u {self.folder}/upper/w
            mount -t overlay overlay -o lowerdir=/usr/sbin,upperdir={self.folder}/upper/u,workdir={self.folder}/upper/w /usr/sbin
            ln -sf {os.path.realpath(H5FS)} /usr/sbin/mount.fuse.h5fs
            mount -t fuse.h5fs -o ro {path} {point}
            ls {point}
            findmnt -n -o FSTYPE,SOURCE {point}
            umount {point}
            echo "{path} {point} fuse.h5fs ro,noauto,subdir=/run 0 0" >{self.folder}/fstab
            mount -T {self.folder}/fstab {point}
            ls {point}
            umount {point}
            mount -t fuse.h5fs -o ro,userblock=1000 {self.folder}/odd.h5 {point}
            ls {point}
            umount {point}
        """
        run = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout.split(), ["other", "run", "fuse.h5fs", path, "first", "notes", "other", "run"])


class Statuses(Command):
    """Those that no other test of this folder sees."""

    def test_locked_by_another_program(self):
        path = self.make()
        with open(path) as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            status, (line,) = self.refusal(path, "m")
            self.assertEqual(status, 5)
            self.assertIn(path, line)
            fcntl.flock(f, fcntl.LOCK_SH)
            self.assertEqual(self.refusal("-o", "rw", path, "m")[0], 5)

    def test_output_is_lost(self):
        path, damaged = self.make(), self.at("damaged.h5")
        with h5py.File(path) as f:
            address = h5py.h5o.get_info(f["run/notes"].id).addr
        shutil.copy(path, damaged)
        with open(damaged, "r+b") as f:
            f.seek(address)
            f.write(b"XXXX")
        before = read(path)
        for arguments, status in ((["--check", path], 12), (["--list", path], 12), (["--kerchunk", path], 12), (["--recover", path], 12), (["-V"], 12),
                                  (["-h"], 12), (["--check", damaged], 4)):
            for redirection, reason in ((">/dev/full", "No space left on device"), (">&-", "Bad file descriptor"),
                                        ("<&- >&-", "Bad file descriptor")):
                with self.subTest(arguments=arguments, redirection=redirection):
                    run = subprocess.run(["sh", "-c", f'exec "$0" "$@" {redirection}', H5FS, *arguments], capture_output=True,
                                         text=True, timeout=SOON)
                    self.assertEqual(run.returncode, status, run.stderr)
                    self.assertIn(f"h5fs: standard output: {reason}\n", run.stderr)
        self.assertEqual(read(path), before)

    def test_what_was_written_last_is_lost(self):
        disk = self.disk()
        path = os.path.join(disk, "data.h5")
        with h5py.File(path, "w", libver="v110") as f:
            f.create_dataset("rows", (0, 1000), "u1", maxshape=(None, 1000), chunks=(100, 1000))
        with Mount(path, "-f", options="rw,sync=fsync") as m:
            with open(m.at("rows"), "ab", buffering=0) as f:
                f.write(bytes(1000) * 50)
                with open(os.path.join(disk, "ballast"), "wb", buffering=0) as ballast, self.assertRaises(OSError):
                    while True:
                        ballast.write(bytes(1000))
            m.unmount()
            self.assertEqual(m.wait(), 10)
            self.assertRegex(m.said(), r"data.h5: what was written last is lost: writing \d+ bytes: No space left on device\n")
            m.status = 0
        with h5py.File(path) as f:
            self.assertEqual(f["rows"].shape, (0, 1000))


class Reasons(Command):
    """FUSE says why it refused, and the last line which mount that was. In a mount namespace of its own."""

    def why(self, script, *arguments):
        program, path, point = shutil.copy(H5FS, self.at("h5fs")), self.make(), self.at("m")
        os.chmod(self.folder, 0o755)
        os.makedirs(point, exist_ok=True)
        os.chown(point, 65534, 65534)
        as_user = "setpriv --reuid 65534 --regid 65534 --clear-groups"
        script = f"""set -e
            mknod -m 666 {self.folder}/fuse c 10 229
            mount --bind {self.folder}/fuse /dev/fuse
            {script}
            exec {as_user} {program} "$@" {path} {point}"""
        run = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", *arguments], capture_output=True, text=True, timeout=SOON)
        os.unlink(self.at("fuse"))
        self.assertEqual(run.returncode, 7, run.stderr)
        lines = run.stderr.splitlines()
        self.assertIn(f"h5fs: {point}: cannot mount", lines[-1])
        self.assertLessEqual(len(lines), 3)  # libfuse since 3.17 has a line of its own
        return run.stderr

    def test_option_that_is_not_allowed(self):
        for arguments in ["-o", "allow_other"], ["-f", "-o", "allow_other"]:
            self.assertIn("'user_allow_other' is set in /etc/fuse.conf", self.why("mount --bind /dev/null /etc/fuse.conf", *arguments))

    def test_fusermount3_cannot_run(self):
        said = self.why("mount --bind /dev/null $(command -v fusermount3)")
        self.assertIn("fusermount3: ", said)
        self.assertIn("install the package fuse3", said)

    def test_device(self):
        self.assertIn("/dev/fuse: Permission denied; you need", self.why("chmod 600 /dev/fuse"))
        self.assertIn("/dev/fuse: No such file or directory", self.why(
            f"mkdir {self.folder}/dev; mknod -m 666 {self.folder}/dev/null c 1 3; mount --bind {self.folder}/dev /dev"))


class Words(Command):
    def test_unknown_options(self):
        path = self.make()
        for arguments in (["-o", "nonsense"], ["-o", "cahce=1M"], ["--frobnicate"], ["-x"], ["-o", "timeout=soon"],
                          ["-o", "offset=-1"], ["-o", "execute"]):
            status, (line,) = self.refusal(*arguments, path, "m")
            self.assertEqual(status, 2, line)
            self.assertIn(arguments[-1].split("=")[0].lstrip("-"), line)
            if "must be" not in line:
                self.assertRegex(line, r"unknown option .* \(h5fs -h tells more\)$")

    def test_words_of_fstab(self):
        words = "defaults,async,atime,diratime,strictatime,lazytime,group,owner,silent,loud,suid,dev,exec"
        with Mount(self.make(), options=words) as m, open("/proc/self/mounts") as f:
            line, = (line for line in f if line.split()[1] == m.path)
            self.assertLessEqual({"nosuid", "nodev", "noexec"}, set(line.split()[3].split(",")))

    def test_empty_words(self):
        path = self.make()
        for options in "", ",", "ro,", ",ro", "ro,,subdir=/run":
            with Mount(path, "-o", options) as m:
                self.assertIn("first" if "subdir" in options else "run", os.listdir(m.path))

    def test_range_of_a_number(self):
        path = self.make()
        for option, allowed in (("workers=65", "a number from 0 to 64"), ("workers=x", "a number from 0 to 64"),
                                ("uid=4294967295", "a number from 0 to 4294967294"),
                                ("timeout=99999999999999999999", "a number from 0 to 2147483647"),
                                ("fmask=1000", "an octal number from 0 to 0777"), ("dmask=8", "an octal number from 0 to 0777")):
            self.assertEqual(self.refusal("-o", option, path, "m"), (2, [f"h5fs: -o {option}: must be {allowed}"]))

    def test_option_without_its_value(self):
        status, (line,) = self.refusal(self.make(), "-o")
        self.assertEqual(status, 2)
        self.assertRegex(line, r"^h5fs: missing argument after .-o. \(h5fs -h ")

    def test_missing_and_too_many_arguments(self):
        for arguments in ([], ["a.h5", "m", "n"], ["--check"], ["--list", "a.h5", "m", "n"], ["--kerchunk", "a.h5", "m"],
                          ["--recover", "a.h5", "m"]):
            status, (line,) = self.refusal(*arguments)
            self.assertEqual(status, 2, line)

    def test_every_option_is_documented_once(self):
        with open(os.path.join(os.path.dirname(__file__), "..", "..", "doc", "h5fs.1")) as f:
            manual = f.read()
        usage = subprocess.run([H5FS, "-h"], capture_output=True, text=True, check=True).stdout
        names = re.findall(r"(?m)^    ([a-z][a-z_-]*)(?:=\S+)? ", usage)
        self.assertGreater(len(names), 25)
        self.assertEqual(len(names), len(set(names)))
        for name in names:
            self.assertEqual(len(re.findall(rf"(?m)^\.It (?:.* )?Cm {name}(?= |$)", manual)), 1, name)

    def test_version_tells_of_libraries(self):
        text = subprocess.run([H5FS, "-V"], capture_output=True, text=True, check=True).stdout
        self.assertRegex(text, r"(?s)^h5fs [0-9.]+\nlibfuse 3[0-9.]+\nzlib [0-9.]+\nlibcurl .*\nfilters: .*deflate.*\nsandbox: ")
        self.assertEqual(text, subprocess.run([H5FS, "--version"], capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main()
