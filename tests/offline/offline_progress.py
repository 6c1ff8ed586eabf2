"""Long commands show on a terminal how far they are, and nowhere else."""
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest
import zlib

import h5py
import numpy

from terminal import ERASE, on_terminal

H5FS = os.environ.get("H5FS", "src/h5fs")


class Progress(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="h5fs-progress-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "x.h5")
        with h5py.File(self.path, "w") as f:
            f.create_dataset("a" * 40 + "/" + "\x1b[31m宽" * 40, data=numpy.arange(4000), chunks=(100,), compression="gzip")
            f["numbers"] = [1, 2, 3]
        self.commands = [("--check", self.path), ("--reclaim", self.path), ("--extract", self.path), ("--kerchunk", self.path),
                         ("--cat", self.path, "/numbers")]

    def whole(self, command):
        """The command, which may need a new folder."""
        return (*command, tempfile.mkdtemp(dir=self.folder)) if command[0] == "--extract" else command

    def test_terminal(self):
        """A line that is erased in the end, and never wider than the terminal."""
        for command in self.commands:
            for columns in (80, 200, 20, 1):
                with self.subTest(command, columns=columns):
                    status, out, said = on_terminal(*self.whole(command), columns=columns)
                    self.assertEqual((status, out.count("\x1b")), (0, 0))
                    lines = said.split(ERASE)
                    self.assertEqual((lines[0], lines[-1]), ("", ""))
                    self.assertGreater(len(lines), 2)
                    for line in lines:
                        self.assertNotRegex(line, "[\x00-\x1f]")
                        self.assertLess(sum(2 if char > "\u07ff" else 1 for char in line), columns)
                    if columns >= 80:
                        self.assertRegex(lines[1], r"^[0-9.]+ (bytes|KiB)( of [0-9.]+ (bytes|[KM]iB))?  /")

    def test_five_a_second(self):
        """The line is drawn at most five times a second, however many objects there are."""
        with h5py.File(self.path, "a") as f:
            for i in range(3000):
                f[f"many/{i}"] = i
        begin = time.monotonic()
        said = on_terminal("--check", self.path)[2]
        self.assertLessEqual(said.count(ERASE), 5 * (time.monotonic() - begin) + 2)

    def test_what_is_done_counts(self):
        """Also that of the files before."""
        count, chunk = 20, numpy.random.default_rng(1).integers(0, 50, 1 << 20, "u1").tobytes()
        stored = zlib.compress(chunk, 1)
        with h5py.File(self.path, "w", libver="latest") as f:
            for i in range(count):
                d = f.create_dataset(f"{i:02}", (16 << 20,), "u1", chunks=(1 << 20,), compression=1)
                for k in range(16):
                    d.id.write_direct_chunk((k << 20,), stored)
        said = on_terminal(*self.whole(("--extract", self.path)), columns=80)[2]
        units = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
        done = [float(n) * units[unit] for n, unit in re.findall(f"{re.escape(ERASE)}([0-9.]+) ([a-zA-Z]+) of ", said)]
        self.assertEqual(done, sorted(done))
        self.assertGreater(done[-1], 3 * 16 * len(stored), said)
        self.assertLessEqual(done[-1], 1.01 * os.path.getsize(self.path))

    def test_findings_have_lines_of_their_own(self):
        with h5py.File(self.path, "a") as f:
            f["ill"] = numpy.arange(3)
            address = h5py.h5o.get_info(f["ill"].id).addr
        with open(self.path, "r+b") as f:
            f.seek(address)
            f.write(b"XXXX")
        status, out, said = on_terminal("--check", self.path)
        self.assertEqual((status, re.findall("(?m)^/ill: ", out), said.split(ERASE)[-1]), (4, ["/ill: "], ""))

    def test_silence(self):
        for command in self.commands:
            with self.subTest(command):
                self.assertEqual(on_terminal("-q", *self.whole(command))[::2], (0, ""))
                self.assertEqual(on_terminal("-o", "quiet", *self.whole(command))[::2], (0, ""))
                run = subprocess.run([H5FS, *self.whole(command)], capture_output=True, text=True, check=True)
                self.assertEqual(run.stderr, "")


if __name__ == "__main__":
    unittest.main()
