#!/usr/bin/python3
"""contrib/check-layers finds an #include that points upwards, and the shortest way around each circle of files."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("srcdir", "."))
CALLS = "void {name}(void);\nvoid {used}(void);\nvoid {name}(void) {{ {used}(); }}\n"


class Layers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="h5fs-layers.")
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)

    def put(self, file, text):
        path = self.root / "src" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if path.suffix == ".c":
            built = path.parent / f"libh5fs_a-{path.stem}.o"
            subprocess.run(["cc", "-c", "-o", built, path], check=True)

    def call(self, name, used):
        """A file of base/ with a function of its name, which calls another one."""
        self.put(f"base/{name}.c", CALLS.format(name=name, used=used))

    def check(self):
        """Exit status and lines."""
        done = subprocess.run([sys.executable, SOURCE / "contrib/check-layers", self.root, self.root],
                              stdout=subprocess.PIPE, text=True)
        return done.returncode, done.stdout.splitlines()

    def test_line(self):
        self.put("base/error.h", "")
        self.put("io/io.c", "void c(void);\nvoid c(void) {}\n")
        self.put("io/io.h", '#include "config.h"\n#include "base/error.h"\n#include "io/other.h"\n')
        self.call("a", "b")
        self.call("b", "c")
        self.assertEqual(self.check(), (0, []))

    def test_no_objects(self):
        self.put("base/error.h", "")
        self.assertEqual(self.check(), (1, ["no objects with symbols: run it in a build folder"]))

    def test_upward_include(self):
        self.call("a", "b")
        self.call("b", "c")
        self.put("base/error.h", '#include "stdio.h"\n#include "io/io.h"\n')
        self.put("io/io.h", '# include "format/reader.h"\n')
        self.put("odd/odd.h", "")
        self.assertEqual(self.check(), (1, [
            'src/base/error.h:1: "stdio.h" does not name its layer',
            'src/base/error.h:2: "io/io.h": base may not know io',
            'src/io/io.h:1: "format/reader.h": io may not know format',
            "src/odd/odd.h: a folder that is no layer",
        ]))

    def test_circle(self):
        self.call("a", "b")
        self.call("b", "c")
        self.call("c", "a")
        self.call("d", "c")
        self.assertEqual(self.check(), (1, [
            "a circle: base/a -> base/b -> base/c -> base/a",
            "    base/a -> base/b: b",
            "    base/b -> base/c: c",
            "    base/c -> base/a: a",
        ]))

    def test_shortest_way(self):
        self.call("a", "b")
        self.call("b", "c")
        self.put("base/c.c", CALLS.format(name="c", used="a") )
        self.put("base/a.c", "void a(void);\nvoid b(void);\nvoid c(void);\nvoid a(void) { b(); c(); }\n")
        self.assertEqual(self.check()[1][0], "a circle: base/a -> base/c -> base/a")

    def test_object_without_a_source(self):
        self.call("a", "b")
        self.call("b", "a")
        (self.root / "src/base/b.c").unlink()
        self.call("c", "a")
        self.assertEqual(self.check(), (0, []))


if __name__ == "__main__":
    unittest.main()
