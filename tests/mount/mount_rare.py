#!/usr/bin/python3
"""Files of kinds that libraries don't write, through a mount: what tests/fixtures/expected.py says of them."""
import glob
import os

from mountlib import Mount, MountCase, main, read, refusal

DATA = os.environ.get("H5FS_TEST_DATA", "tests/data")


def unhex(text):
    return b"" if text == "-" else bytes.fromhex(text)


class Rare(MountCase):
    def check(self, m, kind, path, *fields):
        path = m.at(os.fsdecode(unhex(path)).lstrip("/"))
        if kind == "fails":
            self.assertErrno(int(fields[0]), read, path)
        elif kind in ("data", "lines", "paths"):
            self.assertEqual(read(path), unhex(fields[-1]))
            self.assertEqual(os.stat(path).st_size, len(unhex(fields[-1])))
        elif kind == "names":
            self.assertEqual(sorted(os.fsencode(n) for n in os.listdir(path)), unhex(fields[0]).split(b"\n")[:-1])
        elif kind == "soft":
            # all are absolute, and one level below the root
            self.assertEqual(os.fsencode(os.readlink(path)), b".." + unhex(fields[0]))
        else:
            name, value = unhex(fields[0]).decode(), unhex(fields[1])
            self.assertEqual(os.getxattr(path, f"user.{name}" if kind == "text" else f"h5fs.{name}"), value)

    def test_all_are_as_expected(self):
        lists = sorted(glob.glob(os.path.join(DATA, "rare_*.txt")))
        self.assertGreaterEqual(len(lists), 80)
        for name in lists:
            with open(name) as f:
                lines = [line.split() for line in f]
            file = name.removesuffix("txt") + "h5"
            if lines[0][0] == "refused":
                with self.subTest(file):
                    status, said = refusal(file)
                    self.assertTrue(status)
                    self.assertIn(os.path.basename(file), said)
                continue
            with Mount(file) as m:
                self.assertEqual(m.said(), "", file)
                for line in lines:
                    with self.subTest(file, line=" ".join(line)[:200]):
                        self.check(m, *line)


if __name__ == "__main__":
    main()
