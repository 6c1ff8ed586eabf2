#!/usr/bin/python3
"""What the command line takes and refuses, word for word: names, numbers, sizes, words, lists; what follows from them."""
import fcntl
import json
import os
import re
import signal
import subprocess
import time

import h5py
import numpy

from mountlib import H5FS, Mount, MountCase, main, mounted, reap

MORE = " (h5fs -h tells more)"
SOON = 60


class Case(MountCase):
    def setUp(self):
        super().setUp()
        self.path = self.file("x.h5")
        with h5py.File(self.path, "w") as f:
            f.create_dataset("d", data=numpy.arange(4, dtype="u1"))
            f["group/inside"] = 1

    def h5fs(self, *arguments, program=H5FS, name=None, env=None):
        """Exit status, standard output and standard error."""
        run = subprocess.run([name or program, *arguments], executable=program, capture_output=True, text=True, cwd=self.folder, timeout=SOON,
                             env={**os.environ, **(env or {})})
        return run.returncode, run.stdout, run.stderr

    def refused(self, said, *arguments, status=2, **how):
        self.assertEqual(self.h5fs(*arguments, **how), (status, "", f"h5fs: {said}\n"), arguments)

    def taken(self, options):
        """By a command that looks at the file."""
        status, out, said = self.h5fs("--list", "-o", options, self.path)
        self.assertEqual((status, [line.split()[0] for line in out.splitlines()], said), (0, ["/", "/d", "/group/", "/group/inside"], ""), options)


class Names(Case):
    def test_missing(self):
        for said, *arguments in (
                ("the HDF5 file is missing: h5fs [options] FILE [MOUNTPOINT]",), ("the HDF5 file is missing: h5fs [options] FILE [MOUNTPOINT]", "--check"),
                ("the mount point is missing: h5fs -u MOUNTPOINT", "-u"),
                ("the mount point is missing: h5fs -o remount,ro FILE MOUNTPOINT", "-o", "remount", "x.h5"),
                ("the path is missing: h5fs --cat FILE PATH", "--cat", "x.h5"),
                ("the directory is missing: h5fs --extract FILE [PATH] DIR", "--extract", "x.h5"),
                ("--json: only with --list", "--json", "--check", "x.h5"), ("--json: only with --list", "--json", "x.h5", "m")):
            self.refused(said + MORE, *arguments)

    def test_too_many(self):
        for *arguments, last in (("-u", "m", "n"), ("x.h5", "m", "n"), ("-o", "remount", "x.h5", "m", "n"), ("--check", "x.h5", "n"), ("--kerchunk", "x.h5", "n"),
                                 ("--list", "x.h5", "/", "n"), ("--cat", "x.h5", "d", "n"), ("--reclaim", "x.h5", "n"), ("--recover", "x.h5", "n"),
                                 ("--extract", "x.h5", "/", "new", "n"), ("--check", "a", "b", "c", "n")):
            self.refused(f"too many arguments: {last}" if arguments[:2] != ["--check", "a"] else "too many arguments: n", *arguments, last)
        self.assertEqual(sorted(os.listdir(self.folder)), ["x.h5"])

    def test_of_an_extraction(self):
        """Two: the file and the new directory; three: what of it, too."""
        self.assertEqual(self.h5fs("--extract", "x.h5", "all"), (0, "", ""))
        self.assertEqual(self.h5fs("--extract", "x.h5", "/group", "part"), (0, "", ""))
        self.assertEqual((sorted(os.listdir(self.file("all"))), os.listdir(self.file("part"))), (["d", "group"], ["inside"]))

    def test_that_programs_have(self):
        """Called as mount.TYPE, it is mount(8)'s helper: its status is 32, and -f mounts nothing."""
        missing = "the HDF5 file is missing: h5fs [options] FILE [MOUNTPOINT]" + MORE
        for name, status in (("mount.h5fs", 32), ("/sbin/mount.fuse.h5fs", 32), ("mounth5fs", 2), ("mount", 2), ("/mount.d/h5fs", 2), ("a.mount.h5fs", 2)):
            self.refused(missing, name=name, status=status)
        for arguments in (["-f"], ["-n", "-f", "-v"], ["-f", "-t", "h5fs"], ["-N", "none", "-f"], ["-s", "-f", "-o", "nonsense"]):
            self.assertEqual(self.h5fs("x.h5", "m", *arguments, name="mount.h5fs"), (0, "", ""), arguments)
        self.refused("unknown option -o nonsense" + MORE, "x.h5", "m", "-f", "-o", "nonsense", name="mount.h5fs", status=32)
        self.refused("unknown option -N" + MORE, "x.h5", "m", "-N")
        self.assertEqual(os.listdir(self.folder), ["x.h5"])

    def test_urls(self):
        url = "https://host.invalid/x.h5"
        for arguments, said in ((("--list", "s3://bucket/"), "a prefix can only be mounted: the URL names no object" + MORE),
                                (("--check", "s3://bucket"), "a prefix can only be mounted: the URL names no object" + MORE),
                                (("-o", "swmr", url, "m"), "-o swmr: not for a file behind a URL"),
                                (("-o", "http_header=secret", url, "m"), "-o http_header=: must be @FILE, a file of header lines"),
                                (("-o", "http_header=@", url, "m"), "-o http_header=: must be @FILE, a file of header lines"),
                                (("-o", "http_header=@lines", "x.h5", "m"), "-o http_header=@lines: only for a file behind a URL"),
                                (("-o", "s3_endpoint=host", url, "m"), "-o s3_endpoint=host: must be a URL, https://HOST"),
                                (("-o", "s3_endpoint=s3://b/k", url, "m"), "-o s3_endpoint=s3://b/k: must be a URL, https://HOST"),
                                (("-o", "disk_cache=c", "x.h5", "m"), "-o disk_cache=c: only for a file behind a URL"),
                                (("-o", "disk_cache_size=1M", url, "m"), "-o disk_cache_size: only with disk_cache=DIR")):
            self.refused(said, *arguments)
        for options in "rw", "rw,swmr", "create":
            self.refused(f"{url}: cannot be written: a file behind a URL can only be read", "-o", options, url, "m", status=8)
        self.refused("s3://bucket/: cannot be written: what lies behind a URL can only be read", "-o", "rw", "s3://bucket", "m", status=8)
        self.taken("s3_endpoint=https://host.invalid")

    def test_what_only_one_kind_of_mount_takes(self):
        os.mkdir(self.file("folder"))
        for option in "subdir=/g", "journal=.", "create", "revision=0":
            self.refused("folder: subdir, journal, create and revision are for the mount of one file", "-o", option, "folder", "m", status=3)
        self.refused("folder: rw with swmr is for the mount of one file", "-o", "rw,swmr", "folder", "m", status=3)
        for option in "match=*", "open_files=1", "open_files=4096":
            self.refused("x.h5: match and open_files are for the mount of a folder", "-o", option, "x.h5", "m", status=3)


class Values(Case):
    def test_words(self):
        for option, allowed in (("sync", "close or fsync"), ("create", "v18"), ("external", "none, beneath or any"), ("locking", "yes, no or best-effort"),
                                ("order", "name or creation"), ("xattr", "text or raw"), ("colours", "grey, heat or helix"), ("sandbox", "yes or no"),
                                ("zarr_chunks", "stored or decoded")):
            words = re.split(", | or ", allowed)
            for word in "", "x", words[0][:-1], words[-1] + "x":
                if word not in words:
                    self.refused(f"-o {option}={word}: must be {allowed}", "-o", f"{option}={word}", "x.h5", "m")

    def test_numbers(self):
        number = "a number from {} to {}".format
        for option, least, most in (("uid", 0, 4294967294), ("gid", 0, 4294967294), ("revision", 0, (1 << 63) - 1), ("offset", 0, (1 << 63) - 1),
                                    ("open_files", 1, 4096), ("timeout", 0, (1 << 31) - 1), ("wait", 0, (1 << 31) - 1), ("remote_tries", 1, 100),
                                    ("remote_timeout", 1, 32767), ("max_work", 0, 65535), ("workers", 0, 64)):
            wrong = ["", "x", "1x", "+1", "-1", " 1", "0x1", "1.0", str(most + 1), "18446744073709551616"] + (["0"] if least else [])
            for text in wrong:
                self.refused(f"-o {option}={text}: must be {number(least, most)}", "-o", f"{option}={text}", "x.h5", "m")
            if option not in ("revision", "offset", "open_files"):
                for value in least, most:
                    self.taken(f"{option}={value}")
        for option in "fmask", "dmask":
            for text in "1000", "8", "0o7", "-1", "":
                self.refused(f"-o {option}={text}: must be an octal number from 0 to 0777", "-o", f"{option}={text}", "x.h5", "m")
            for text in "777", "0", "0777":
                self.taken(f"{option}={text}")

    def test_sizes(self):
        for text in "", "x", "K", "1T", "1KK", "1Kx", "1 K", "-1", "+1", "1.5M", "18446744073709551616", "17179869184G", "18446744073709551615K":
            self.refused(f"-o cache={text}: must be a size such as 64M", "-o", f"cache={text}", "x.h5", "m")
        for text in "18446744073709551615", "17179869183G", "0", "1k", "1m", "1g", "1K", "1M", "1G":
            self.taken(f"cache={text}")
        for option, least, most in (("max_chunk", 1, 1), ("remote_whole", 0, 1)):
            for text in (["0"] if least else []) + ["1073741825", "1048577K", "1025M", "2G"]:
                self.refused(f"-o {option}={text}: must be a size from {least} to {most}G", "-o", f"{option}={text}", "x.h5", "m")
            for text in str(least), "1073741824", "1048576K", "1024M", "1G":
                self.taken(f"{option}={text}")

    def test_what_a_size_is(self):
        """In bytes, and in units of 1024."""
        with h5py.File(self.file("chunks.h5"), "w") as f:
            f.create_dataset("k", data=numpy.zeros(1024, "u1"), chunks=(1024,), compression=1)
            f.create_dataset("m", data=numpy.zeros(1 << 20, "u1"), chunks=(1 << 20,), compression=1)
        for name, options in (("k", {"1024": True, "1023": False, "1K": True, "1k": True, "1M": True}),
                              ("m", {"1048576": True, "1048575": False, "1024K": True, "1023K": False, "1M": True, "1m": True, "1G": True})):
            for size, is_enough in options.items():
                status, _, _ = self.h5fs("--cat", "-o", f"max_chunk={size}", "chunks.h5", name)
                self.assertEqual(status == 0, is_enough, (name, size))

    def test_the_last_one_counts(self):
        self.taken("xattr=x,xattr=raw")
        self.refused("-o xattr=x: must be text or raw", "-o", "xattr=raw", "-o", "xattr=x", "x.h5", "m")

    def test_lists_of_filters(self):
        for options in "filters=", "filters=shuffle,deflate(4)", "filters=shuffle,deflate(4),fletcher32,ro", "filters=shuffle,,ro", "filters=nothing,filters=lzf":
            self.taken(options)
        for options, said in (("filters=shuffle,ro,deflate(4)", "unknown option -o deflate(4)" + MORE), ("ro,shuffle", "unknown option -o shuffle" + MORE),
                              ("filters=shuffle,nothing", "unknown option -o nothing" + MORE), ("filters=shuffle,cache=1M,lzf", "unknown option -o lzf" + MORE),
                              ("filters", "unknown option -o filters" + MORE), ("ro=1", "unknown option -o ro=1" + MORE), ("-q=1", "unknown option -q=1" + MORE)):
            self.refused(said, "-o", options, "x.h5", "m")
        status, _, said = self.h5fs("-o", "filters=nothing", "x.h5", "m")
        self.assertEqual((status, said.count("\n")), (2, 1))
        self.assertTrue(said.startswith("h5fs: -o filters=nothing: "), said)

    def test_locks(self):
        """The option counts before the environment. A command that only looks takes the lock of a reader, whatever the options say."""
        wait = "wait=0"
        with open(self.path) as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            for value, option, status in ((None, None, 5), ("FALSE", None, 0), ("false", None, 0), ("0", None, 0), ("00", None, 5), ("1", None, 5), ("", None, 5),
                                          ("TRUE", None, 5), ("BEST_EFFORT", None, 5), ("FALSE", "yes", 5), ("TRUE", "no", 0), (None, "best-effort", 5)):
                env = {} if value is None else {"HDF5_USE_FILE_LOCKING": value}
                options = wait + (f",locking={option}" if option else "")
                self.assertEqual(self.h5fs("--list", "-o", options, "x.h5", env=env)[0], status, (value, option))
            fcntl.flock(f, fcntl.LOCK_SH)
            for command in "--list", "--check", "--kerchunk":
                self.assertEqual(self.h5fs(command, "-o", f"rw,{wait}", "x.h5")[::2], (0, ""), command)
            for command in "--recover", "--reclaim":
                self.assertEqual(self.h5fs(command, "-o", wait, "x.h5")[0], 5, command)
        self.assertEqual(self.h5fs("--reclaim", "-o", "swmr", "x.h5")[0], 0)


class Caches(Case):
    def test_budgets(self):
        """By default a part of the memory, within bounds, and a quarter of that."""
        usual = min(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 32 + (64 << 20), 640 << 20)
        for options, chunks, index in ((None, usual, usual // 4), ("cache=3M", 3 << 20, usual // 4), ("index_cache=5K", usual, 5 << 10), ("cache=0,index_cache=0", 0, 0)):
            with self.subTest(options), Mount(self.path, options=options) as m:
                stats = json.loads(os.getxattr(m.path, "h5fs.stats"))
                self.assertEqual((stats["chunk_cache"]["limit"], stats["index_cache"]["limit"]), (chunks, index))


class Help(Case):
    def test_options_in_two_lists(self):
        """Those of the command, then those of mounts, each once."""
        status, text, said = self.h5fs("-h")
        self.assertEqual((status, said), (0, ""))
        self.assertEqual(self.h5fs("--help"), (0, text, ""))
        head, _, rest = text.partition("\n\n")
        first, _, second = rest.partition("    -o OPTION[,OPTION...]  mount options\n\n")
        self.assertTrue(head.startswith(f"usage: {H5FS} [options] FILE [MOUNTPOINT]\n"), head)
        for part, begins in ((first.rstrip("\n"), "-"), (second.rstrip("\n"), "")):
            lines = part.split("\n")
            self.assertGreater(len(lines), 10)
            for line in lines:
                self.assertRegex(line, rf"^    {begins}[-a-zA-Z0-9][-a-zA-Z0-9_, ]*(=\S+)? +[^ ].*$")
                self.assertTrue(begins or line[4] != "-", line)
        self.assertIn("    -h, --help             this text\n", first)
        self.assertIn("    xattr=FORM             of attributes: text, raw\n", second)
        self.assertNotIn("--debug", text)

    def test_help_needs_no_file(self):
        for option in "-h", "-V":
            self.assertEqual(self.h5fs(option, "--check")[0], 0)


class Foreground(Case):
    def run_in_foreground(self, *arguments):
        """What a mount says that the command itself serves."""
        point = self.file("m")
        os.mkdir(point)
        with open(self.file("log"), "w+") as log:
            run = subprocess.Popen([H5FS, *arguments, self.path, point], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            end = time.monotonic() + SOON
            try:
                while not mounted(point) and run.poll() is None and time.monotonic() < end:
                    time.sleep(0.01)
                self.assertEqual(sorted(os.listdir(point)), ["d", "group"])
                self.assertEqual(int(os.getxattr(point, "h5fs.pid")), run.pid)
                run.send_signal(signal.SIGTERM)
                self.assertEqual(reap(run.pid, SOON), 0)
            finally:
                if mounted(point):
                    subprocess.run(["umount", "-l", point], check=False)
                run.kill()
                run.poll()
            log.seek(0)
            return log.read()

    def test_debug_output(self):
        """-d does not go into the background, and libfuse tells each request."""
        self.assertRegex(self.run_in_foreground("-d"), r"opcode: (READDIR|OPENDIR)")

    def test_without_debug_output(self):
        self.assertEqual(self.run_in_foreground("-f"), "")

    def test_background(self):
        with Mount(self.path) as m:
            self.assertEqual(int(os.getxattr(m.path, "h5fs.pid")), m.daemon)
            self.assertEqual(re.findall(r"(?m)^Tgid:\s+(\d+)", open(f"/proc/{m.daemon}/status").read()), [str(m.daemon)])


if __name__ == "__main__":
    main()
