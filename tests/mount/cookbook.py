#!/usr/bin/python3
"""The recipes of doc/cookbook.md, each run as it stands there."""
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy

import judges

H5FS = os.path.realpath(os.environ.get("H5FS", "src/h5fs"))
COOKBOOK = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "doc", "cookbook.md")


def make_file(path):
    """What the cookbook says that run.h5 has."""
    random = numpy.random.default_rng(1)
    with h5py.File(path, "w", libver="v110") as f:
        images = random.integers(0, 1000, (200, 64, 64)).astype("<u2")
        f.create_dataset("detector/images", data=images, chunks=(10, 64, 64), maxshape=(None, 64, 64), shuffle=True,
                         compression="gzip", fletcher32=True)
        f["detector/images"].attrs["units"] = "counts"
        f["flat"] = images.mean(axis=0)
        table = numpy.zeros(1000, [("time", "<f8"), ("current", "<i4")])
        table["time"], table["current"] = numpy.arange(1000) / 8, random.integers(0, 100, 1000)
        f.create_dataset("table", data=table, chunks=(256,), maxshape=(None,))
        f.create_dataset("notes", data=["started", "beam lost", "started"], dtype=h5py.string_dtype(), maxshape=(None,))


def recipes():
    """(where, language, text) of each block."""
    with open(COOKBOOK) as f:
        text = f.read()
    for m in re.finditer(r"(?ms)^```(\w+)\n(.*?)^```\n", text):
        title = re.findall(r"(?m)^## (.*)$", text[:m.start()])[-1]
        yield f"{title}, line {text.count(chr(10), 0, m.start()) + 1}", m[1], m[2]


class Cookbook(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="h5fs-cookbook-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.addCleanup(self.unmount)
        os.symlink(H5FS, os.path.join(self.folder, "h5fs"))
        self.env = dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}")
        make_file(os.path.join(self.folder, "run.h5"))
        shutil.copy(os.path.join(self.folder, "run.h5"), os.path.join(self.folder, "copy.h5"))

    def unmount(self):
        with open("/proc/self/mountinfo") as f:
            for point in [line.split()[4] for line in f]:
                if point.startswith(self.folder + "/"):
                    subprocess.run(["fusermount3", "-uz", point], check=False)

    def wait_for_daemons(self):
        """Until they have let the files go, and with them their mount points."""
        for name in "run.h5", "copy.h5":
            with open(os.path.join(self.folder, name)) as f:
                fcntl.flock(f, fcntl.LOCK_EX)

    def run_in_folder(self, *command):
        """What it has printed."""
        run = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, env=self.env, timeout=120)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run.stdout

    def test_recipes(self):
        count = 0
        for where, language, text in recipes():
            with self.subTest(where):
                if language == "sh":
                    self.run_in_folder("bash", "-e", "-c", text)
                else:
                    self.run_in_folder("h5fs", "run.h5", "mnt")
                    self.assertNotEqual(self.run_in_folder("/usr/bin/python3", "-c", text), "")
                    self.run_in_folder("fusermount3", "-u", "mnt")
                count += 1
            self.unmount()
            self.wait_for_daemons()
        self.assertGreater(count, 12)

    def test_they_do_what_they_say(self):
        said = {}
        for where, language, text in recipes():
            if where.startswith(("Find", "Tables")):
                said.setdefault(where.split(",")[0], "")
                said[where.split(",")[0]] += self.run_in_folder("bash", "-e", "-c", text)
                self.wait_for_daemons()
        self.assertEqual(said["Find"].split("\n")[0], "mnt/detector/images")
        self.assertIn("# file: mnt/detector/images\n", said["Find"])
        self.assertIn("beam lost\n", said["Find"])
        with judges.File(os.path.join(self.folder, "run.h5")) as f:
            self.assertIn(f"\n{f['table']['current'].sum()}\ncounts", said["Tables and text"])
        self.assertIn("2 started\n", said["Tables and text"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
