#!/usr/bin/python3
"""Files with what libhdf5 2 has brought: the mount shows what libhdf5 2.2 reads (tests/judge/newest_files.py), which reads what a mount has
written to them."""
import bisect
import json
import math
import os
import shutil
import subprocess
import tempfile
import unittest

import judges
from mountlib import H5FS, Mount, MountCase, main, read

NEWEST = "sid"  # contrib/judges: the newest libhdf5
SCRIPT = os.path.join(judges.HERE, "newest_files.py")
GIB = 1 << 30
# Run by that libhdf5: what is in datasets, or in seven bytes of them.
READ = """
import h5py, json, os, sys
os.chdir(sys.argv[1])
found = {}
for file, name, at in json.loads(sys.argv[2]):
    with h5py.File(file) as f:
        found[name] = (f[name][()] if at is None else f[name][at:at + 7]).tobytes().hex()
print(json.dumps(found))
"""


def numbers(values):
    """The values as libhdf5's script has written them, each in its shortest form."""
    return [[float(part) for part in v] if isinstance(v, list) else float(v) for v in values]


def same(value, expected, all_values):
    """value: a number of JSON, which reads back to the expected one if it is rounded to the nearest value of the type."""
    if isinstance(expected, list):
        return len(value) == len(expected) and all(same(v, e, all_values) for v, e in zip(value, expected))
    value = float(value)
    if not math.isfinite(expected) or not expected:
        return repr(value) == repr(expected)
    at = bisect.bisect_left(all_values, value)
    return abs(value - expected) == min(abs(value - v) for v in all_values[max(at - 1, 0):at + 1])


class Newest(MountCase):
    @classmethod
    def setUpClass(cls):
        if NEWEST not in subprocess.run([judges.JUDGES, "list"], capture_output=True, text=True, check=True).stdout.split():
            raise unittest.SkipTest(f"no judge {NEWEST}: contrib/judges make {NEWEST}")
        cls.made = tempfile.mkdtemp(prefix="h5fs-test-")
        cls.addClassCleanup(shutil.rmtree, cls.made)
        subprocess.run([judges.JUDGES, "run", NEWEST, "/usr/bin/python3", SCRIPT, cls.made], check=True)
        with open(os.path.join(cls.made, "expected.json")) as f:
            cls.expected = json.load(f)

    def copy(self, file):
        """One that is written; it stays sparse."""
        subprocess.run(["cp", "--sparse=always", os.path.join(self.made, file), self.file(file)], check=True)
        return self.file(file)

    def values_are(self, texts, expected):
        expected = numbers(expected)
        flat = [part for v in expected for part in (v if isinstance(v, list) else [v])]
        table = sorted(v for v in set(flat) if math.isfinite(v))
        self.assertEqual(len(texts), len(expected))
        for i, (text, value) in enumerate(zip(texts, expected)):
            self.assertTrue(same(text, value, table), f"element {i}: {text}, not {value}")

    def object_is(self, m, name, expected):
        name, _, attribute = name.partition("@")
        path = m.at(name)
        if attribute:
            self.assertEqual(os.getxattr(path, f"h5fs.raw.{attribute}").hex(), expected["bytes"])
            self.values_are(json.loads(os.getxattr(path, f"user.{attribute}")), expected["values"])
            return
        self.assertEqual(os.getxattr(path, "h5fs.shape").decode(), expected["shape"])
        if "index" in expected:
            self.assertEqual(os.getxattr(path, "h5fs.index").decode(), expected["index"])
        if "bytes" in expected:
            self.assertEqual(read(path).hex(), expected["bytes"])
        for at, stored in expected.get("at", {}).items():
            with open(path, "rb") as f:
                f.seek(int(at))
                self.assertEqual(f.read(len(stored) // 2).hex(), stored, f"at {at}")
        if "values" in expected:
            self.values_are(read(m.at(".h5fs/lines", name)).decode().splitlines(), expected["values"])

    def test_all(self):
        for file, objects in self.expected.items():
            path = os.path.join(self.made, file)
            self.assertLess(os.stat(path).st_blocks * 512, 1 << 20, "a sparse file")
            with Mount(path) as m:
                for name, expected in objects.items():
                    with self.subTest(file=file, name=name):
                        self.object_is(m, name, expected)
            checked = subprocess.run([H5FS, "--check", path], capture_output=True, text=True)
            self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
            said = subprocess.run([H5FS, "--list", path], capture_output=True, text=True)
            self.assertEqual((said.returncode, said.stderr), (0, ""))

    def they_read(self, *what):
        run = subprocess.run([judges.JUDGES, "run", NEWEST, "/usr/bin/python3", "-c", READ, self.folder, json.dumps(what)],
                             stdout=subprocess.PIPE, check=True)
        return json.loads(run.stdout)

    def test_written(self):
        """Rows are added where there may be more, elsewhere some are overwritten; in chunks of layout version 5, too."""
        files = {"filtered.h5": {"earray": True, "btree2": True, "farray": False, "single": False}, "default.h5": {"group/rows": True},
                 "repacked.h5": {"group/rows": True}}
        wanted = {}
        for file, datasets in files.items():
            path = self.copy(file)
            with Mount(path, options="rw") as m:
                for name, grows in datasets.items():
                    old = bytes.fromhex(self.expected[file][name]["bytes"])
                    row = len(old) // int(self.expected[file][name]["shape"].split(",")[0])
                    new = bytes(i % 251 for i in range(9 * row))
                    with open(m.at(name), "r+b") as f:
                        f.seek(len(old) if grows else 3 * row)
                        f.write(new)
                    wanted[name] = old + new if grows else old[:3 * row] + new + old[12 * row:]
                    self.assertEqual(read(m.at(name)), wanted[name])
                self.assertEqual(m.said(), "")
            found = self.they_read(*((file, name, None) for name in datasets))
            self.assertEqual(found, {name: wanted[name].hex() for name in datasets}, file)
            checked = subprocess.run([H5FS, "--check", path], capture_output=True, text=True)
            self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_written_to_huge_chunks(self):
        """No chunk is read for it as a whole, nor made so large on the disk."""
        path, at = self.copy("huge.h5"), (4 * GIB - 1, 5 * GIB - 3, 9 * GIB)
        with Mount(path, options="rw") as m:
            fd = m.open("bytes", os.O_WRONLY)
            for i, offset in enumerate(at):
                os.pwrite(fd, bytes(range(10 * i + 10, 10 * i + 17)), offset)
            os.close(fd)
        for i, offset in enumerate(at):
            self.assertEqual(self.they_read(("huge.h5", "bytes", offset))["bytes"], bytes(range(10 * i + 10, 10 * i + 17)).hex())
        self.assertLess(os.stat(path).st_blocks * 512, 1 << 20)


if __name__ == "__main__":
    main()
