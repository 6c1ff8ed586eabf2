#!/usr/bin/python3
"""What a crash, or a call that fails, leaves of a file that has two names: it was written by one of them, and the next mount, by the other
one, finds the journal and completes the commit. The calls are recorded without FUSE (tests/lib/vfs_shell.c)."""
import os
import random
import subprocess
import unittest

from crashlib import SECTOR, SEED, SHELL, Record, fault_step
from mountlib import main, read
from pieceslib import PiecesCrash


class CrashLinks(PiecesCrash):
    states, kills_recovered, cuts_recovered = 30, 3, 2
    driver = {}

    def setUp(self):
        super().setUp()
        self.other = self.file("other.h5")
        with open(self.other, "wb"):
            pass
        if subprocess.run(["stat", "-c", "%W", self.other], capture_output=True, text=True, check=True).stdout.strip() in ("0", "-"):
            raise unittest.SkipTest(f"the file system of {self.folder} does not tell when a file was made")
        os.remove(self.other)

    def first(self, stem):
        return self.file(f"{stem}.h5")

    def library_name(self, path):
        return path

    def make(self, libver):
        path = super().make(libver)
        os.link(path, self.other)
        return path

    def get(self, path):
        return read(path)

    def put_members(self, path, image):
        with open(path, "wb") as f:  # it stays the same file, if it is there
            f.write(image)

    def put(self, path, images):
        """A journal that is zeros is on its way to be removed; while it is there, the file is written by its own name alone."""
        super().put(path, images)
        if not any(images[1][:SECTOR]):
            os.remove(path + ".h5fs-journal")

    def recover(self, path, label, *record):
        run = subprocess.run([SHELL, self.other, *record], input="", capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""), label)
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith("journal")], [], label)

    def test_crashes(self):
        for libver in "earliest", "latest":
            chance = random.Random(f"{libver} {SEED}")
            self.clear()
            with self.subTest(libver=libver):
                path, before, first, history = self.run_requests(libver, chance)
                self.assertTrue(os.path.samefile(path, self.other))
                self.replay(path, before, Record(self.file("record")), history, first, chance)
                self.assertTrue(os.path.samefile(path, self.other))
                self.assertGreater(self.counts["power cut, then recovery"], 0)

    def test_each_call_fails(self):
        n, step = 1, fault_step(7)
        while self.one_fault(n, "latest")[0]:
            n += step
        self.assertGreater(n, 10)


if __name__ == "__main__":
    main()
