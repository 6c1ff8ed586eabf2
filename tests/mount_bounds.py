#!/usr/bin/python3
"""Small files that ask for much memory, much time, or the attention of a terminal: what they get is bounded."""
import errno
import os
import re
import resource
import struct
import subprocess
import time
import unittest

import h5py
import numpy

from mountlib import H5FS, Mount, MountCase, main, patch, read

HOSTILE = os.path.join(os.environ.get("H5FS_CONFORMANCE", ""), "found", "hostile")
MIB = 1 << 20
with open(H5FS, "rb") as binary:
    SANITIZED = b"__asan_init" in binary.read() or b"__tsan_init" in binary.read()  # its memory is another one


def hostile(name):
    """The path of a file that was found to do harm; the test is skipped where the collection is not installed."""
    path = os.path.join(HOSTILE, name)
    if not os.path.exists(path):
        raise unittest.SkipTest(f"no {path}")
    return path


def command(*arguments, seconds=60):
    """Exit status, standard output and error of h5fs, the seconds of processor time and the most memory it took."""
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.Popen([H5FS, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, said = run.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        run.kill()
        out, said = run.communicate()
        raise AssertionError(f"h5fs {' '.join(arguments)} took over {seconds} s: {said!r}") from None
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return run.returncode, out, said, end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime


class Terminal(MountCase):
    """What a file says reaches the log, and so a terminal, only as characters that are shown."""

    def assertHarmless(self, said):
        self.assertNotRegex(said, rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|(?<![\xc2-\xf4\x80-\xbf])[\x80-\x9f]")

    def test_names_in_the_log(self):
        for command_name in "--list", "--check":
            said = command(command_name, hostile("log-c1-control.h5"))[2]
            self.assertHarmless(said)
            self.assertIn(rb"\302\23331mEVIL" if command_name == "--list" else b"", said)

    def test_names_that_are_no_text(self):
        path = self.file("names.h5")
        with h5py.File(path, "w") as f:
            f.create_dataset("d", data=numpy.zeros(8), chunks=(8,), compression="gzip")
        patch(path, struct.pack("<HH", 1, 8) + b"\1\0\1\0deflate\0", struct.pack("<HH", 511, 8) + b"\0\0\1\0\x9bm\xc2\x9b\x1b[m\0")
        with Mount(path, "-f") as m:
            self.assertErrno(errno.ENOTSUP, read, m.at("d"))
            with open(m.log, "rb") as f:
                said = f.read()
            self.assertHarmless(said)
            self.assertIn(rb"\233m\302\233\033[m", said)


if __name__ == "__main__":
    main()
