#!/usr/bin/python3
"""Files with what libhdf5 2 has brought: the mount shows what libhdf5 2.2 reads (tests/judge/newest_files.py)."""
import bisect
import json
import math
import os
import subprocess

import judges
from mountlib import H5FS, Mount, MountCase, main, read

NEWEST = "sid"  # contrib/judges: the newest libhdf5
SCRIPT = os.path.join(judges.HERE, "newest_files.py")


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
    def setUp(self):
        super().setUp()
        if NEWEST not in subprocess.run([judges.JUDGES, "list"], capture_output=True, text=True, check=True).stdout.split():
            self.skipTest(f"no judge {NEWEST}: contrib/judges make {NEWEST}")
        subprocess.run([judges.JUDGES, "run", NEWEST, "/usr/bin/python3", SCRIPT, self.folder], check=True)
        with open(self.file("expected.json")) as f:
            self.expected = json.load(f)

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
            path = self.file(file)
            self.assertLess(os.stat(path).st_blocks * 512, 1 << 20, "a sparse file")
            with Mount(path) as m:
                for name, expected in objects.items():
                    with self.subTest(file=file, name=name):
                        self.object_is(m, name, expected)
            checked = subprocess.run([H5FS, "--check", path], capture_output=True, text=True)
            self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
            said = subprocess.run([H5FS, "--list", path], capture_output=True, text=True)
            self.assertEqual((said.returncode, said.stderr), (0, ""))


if __name__ == "__main__":
    main()
