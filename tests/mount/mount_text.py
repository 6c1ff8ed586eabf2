#!/usr/bin/python3
"""Text datasets are written, a line an element, and libhdf5 reads the elements."""
import errno
import json
import os
import random
import subprocess
import time

import h5py
import numpy

import judges
from mountlib import Mount, MountCase, main, read, write
from textlib import EVERY, EVERY_TYPE, bad_lines, line, of, random_text_kind

EVENT = numpy.dtype([("station", h5py.string_dtype()), ("days", h5py.vlen_dtype("<i4")), ("level", "<f4"), ("u", "<u8")])
KINDS = int(os.environ.get("TEXT_KINDS", 40))
BAD = int(os.environ.get("TEXT_BAD", 1000))


def strings(f, name, shape=(0,), **how):
    return f.create_dataset(name, shape, h5py.string_dtype(), maxshape=(None, *shape[1:]), **how)


def append(path, data):
    """One write; returns how many bytes of it were taken."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        return os.write(fd, data)
    finally:
        os.close(fd)


def has(path, text, seconds=10):
    """A last line without a newline counts soon after the last close has returned."""
    end = time.monotonic() + seconds
    while read(path) != text and time.monotonic() < end:
        os.sched_yield()
    return read(path) == text


class TextCase(MountCase):
    def make(self, name="t.h5", **how):
        path = self.file(name)
        with h5py.File(path, "w", **how) as f:
            strings(f, "log")
            strings(f, "gzip", chunks=(7,), compression="gzip")
            strings(f, "table", (0, 3), chunks=(4, 2))
            f.create_dataset("events", (0,), EVENT, maxshape=(None,), chunks=(5,))
            f.create_dataset("limited", (0,), h5py.string_dtype(), maxshape=(3,))
            f.create_dataset("refs", (0,), h5py.ref_dtype, maxshape=(None,))
            f["scalar"] = "one"
        return path


class Appending(TextCase):
    def test_a_line_is_an_element(self):
        for how in ({}, {"libver": "latest"}, {"libver": ("earliest", "v108")}):
            with self.subTest(**how):
                path = self.make(**how)
                with Mount(path, options="rw") as m:
                    self.assertEqual(os.stat(m.at("log")).st_mode & 0o777, 0o644)
                    script = "echo hello >> log; seq 100 >> gzip; printf 'a\\nb\\nc\\n' | tee -a table > /dev/null; " \
                        "echo '{\"days\":[3,17],\"station\":\"Oslo\"}' | jq -c . | tee -a events > /dev/null; echo '\"/log\"' >> refs"
                    subprocess.run(["sh", "-ec", script], cwd=m.at(), check=True)
                    subprocess.run(["awk", 'BEGIN { for (i = 0; i < 3000; i++) print "line " i >> "log" }'], cwd=m.at(), check=True)
                    self.assertEqual(read(m.at("log")), b"hello\n" + b"".join(b"line %d\n" % i for i in range(3000)))
                    self.assertEqual(read(m.at("events")), b'{"station":"Oslo","days":[3,17],"level":0,"u":0}\n')
                    self.assertEqual(os.stat(m.at("events")).st_size, len(read(m.at("events"))))
                with judges.File(path) as f:
                    self.assertEqual(f["log"].shape, (3001,))
                    self.assertEqual([f["log"][0], f["log"][3000]], [b"hello", b"line 2999"])
                    self.assertEqual(list(f["gzip"]), [b"%d" % i for i in range(1, 101)])
                    self.assertEqual(f["table"][:].tolist(), [[b"a", b"b", b"c"]])
                    self.assertEqual(of(f["events"][0]), [b"Oslo", [3, 17], 0.0, 0])
                    self.assertEqual(f[f["refs"][0]].name, "/log")

    def test_a_last_line_without_an_end(self):
        path = self.make()
        with Mount(path, "-f", options="rw") as m:
            fd = os.open(m.at("log"), os.O_WRONLY | os.O_APPEND)
            os.write(fd, b"first\nsec")
            os.fsync(fd)
            self.assertEqual(read(m.at("log")), b"first\n")
            write_to = os.dup(fd)
            os.close(fd)
            append(m.at("log"), b"other\n")
            os.write(write_to, b"ond")
            os.close(write_to)
            self.assertTrue(has(m.at("log"), b"first\nother\nsecond\n"))
            fd = os.open(m.at("events"), os.O_WRONLY | os.O_APPEND)
            os.write(fd, b'{"u":1}')
            os.fsync(fd)
            os.close(fd)
            self.assertTrue(has(m.at("events"), b'{"station":"","days":[],"level":0,"u":1}\n'))
            fd = os.open(m.at("events"), os.O_WRONLY | os.O_APPEND)
            os.write(fd, b'{"u":1')
            self.assertErrno(errno.EINVAL, os.fsync, fd)
            self.assertErrno(errno.EINVAL, os.close, fd)
            self.assertIn("refused: line 2: JSON", m.said())
        with judges.File(path) as f:
            self.assertEqual(list(f["log"]), [b"first", b"other", b"second"])
            self.assertEqual(f["events"].shape, (1,))

    def test_rows_of_lines(self):
        path = self.make()
        with Mount(path, options="rw") as m:
            fds = [os.open(m.at("table"), os.O_WRONLY | os.O_APPEND) for _ in range(2)]
            for i in range(30):
                os.write(fds[i % 2], b"%d-%d" % (i % 2, i))
                os.write(fds[i % 2], b"\n")
            for fd in fds:
                os.close(fd)
            fd = os.open(m.at("table"), os.O_WRONLY | os.O_APPEND)
            os.write(fd, b"x\ny\n")
            self.assertErrno(errno.EINVAL, os.close, fd)
            text = read(m.at("table"))
        rows = [text.split()[i:i + 3] for i in range(0, 30, 3)]
        self.assertEqual(len(text.split()), 30)
        for row in rows:
            self.assertEqual(len({field[:1] for field in row}), 1)
        with judges.File(path) as f:
            self.assertEqual(f["table"][:].tolist(), rows)

    def test_what_does_not_fit(self):
        path = self.make()
        with Mount(path, options="rw") as m:
            self.assertEqual(append(m.at("limited"), b"a\nb\nc\nd\n"), 6)
            self.assertErrno(errno.EFBIG, append, m.at("limited"), b"d\n")
            self.assertErrno(errno.EFBIG, append, m.at("scalar"), b"two\n")
            append(m.at("log"), b"one\n")
            fd = os.open(m.at("log"), os.O_WRONLY)
            for offset in (0, 1, 3, 5, 100):
                self.assertErrno(errno.EOPNOTSUPP, os.pwrite, fd, b"x\n", offset)
            self.assertEqual(os.pwrite(fd, b"two\n", 4), 4)
            self.assertEqual(os.pwrite(fd, b"three\n", 8), 6)
            self.assertErrno(errno.EOPNOTSUPP, os.ftruncate, fd, 3)
            os.ftruncate(fd, 14)
            os.close(fd)
            self.assertEqual(read(m.at("log")), b"one\ntwo\nthree\n")
        with Mount(self.make("swmr.h5", libver="latest"), options="rw,swmr") as m:
            self.assertErrno(errno.EPERM, append, m.at("log"), b"x\n")
        with judges.File(path) as f:
            self.assertEqual(list(f["limited"]), [b"a", b"b", b"c"])

    def test_good_lines_before_a_bad_one(self):
        path = self.make()
        with Mount(path, "-f", options="rw") as m:
            good, bad = b'{"u":1}\n{"u":2}\n', b'{"u":-1}\n{"u":3}\n'
            fd = os.open(m.at("events"), os.O_WRONLY | os.O_APPEND)
            self.assertEqual(os.write(fd, good + bad), len(good))
            self.assertErrno(errno.EINVAL, os.write, fd, bad)
            self.assertEqual(os.write(fd, b'{"u":'), 5)
            self.assertErrno(errno.EINVAL, os.write, fd, b'"x"}\n')
            # nothing of that line stays
            self.assertEqual(os.write(fd, b'{"u":4}\n'), 8)
            os.close(fd)
            self.assertEqual([json.loads(text)["u"] for text in read(m.at("events")).splitlines()], [1, 2, 4])
            fd = os.open(m.at("table"), os.O_WRONLY | os.O_APPEND)
            self.assertEqual(os.write(fd, b"a\nb\nx\0\nc\n"), 4)
            self.assertErrno(errno.EINVAL, os.write, fd, b"x\0\n")
            self.assertEqual(os.write(fd, b"c\n"), 2)
            os.close(fd)
            self.assertIn('refused: line 3: member "u": the number is out of range', m.said())
        judges.agree(path)


class Bad(TextCase):
    def test_bad_lines(self):
        path, rng = self.file("bad.h5"), random.Random(1)
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("every", (0,), EVERY_TYPE, maxshape=(None,))
            strings(f, "log")
        lines = bad_lines(rng, BAD)
        good = json.dumps({name: value for name, (_, value, _) in EVERY.items()}).encode() + b"\n"
        with Mount(path, "-f", options="rw") as m:
            self.assertEqual(append(m.at("every"), good), len(good))
            shown = read(m.at("every"))
            fd = os.open(m.at("every"), os.O_WRONLY | os.O_APPEND)
            log = open(m.log, errors="replace")
            for text, member in lines:
                with self.subTest(text=text[:200], member=member):
                    self.assertErrno(errno.EINVAL, os.write, fd, text + b"\n")
                    said = log.read()
                    self.assertRegex(said, "^[^\n]*/every, address [0-9]*: refused: line 2: [^\n]*\n$")
                    if member:
                        self.assertTrue("JSON, byte" in said or f'member "{member}": ' in said, said)
            self.assertEqual(append(m.at("every"), good), len(good))
            self.assertErrno(errno.EINVAL, append, m.at("log"), b"a\0b\n")
            os.close(fd)
            self.assertEqual(read(m.at("every")), 2 * shown)
            log.close()
        with judges.File(path) as f:
            self.assertEqual((f["every"].shape, f["log"].shape), ((2,), (0,)))


class Contents(TextCase):
    def test_random_contents_of_every_class(self):
        rng = random.Random(int(os.environ.get("TEXT_SEED", 1)))
        path, kinds = self.file("random.h5"), [random_text_kind(rng) for _ in range(KINDS)]
        values = []
        with h5py.File(path, "w", libver="latest") as f:
            for i, kind in enumerate(kinds):
                f.create_dataset(f"d{i}", (0,), kind.dtype, maxshape=(None,), chunks=(rng.choice([1, 3, 10]),),
                                 compression=rng.choice([None, "gzip"]))
        with Mount(path, options="rw") as m:
            for i, kind in enumerate(kinds):
                is_lines = os.getxattr(m.at(f"d{i}"), "h5fs.format") == b"lines"
                values.append([kind.make(rng) for _ in range(rng.randint(0, 25))])
                text = b"".join(v.encode() + b"\n" if is_lines else line(rng, v) for v in values[i])
                with open(m.at(f"d{i}"), "ab", 0) as out:
                    while text:  # in pieces of any size
                        text = text[out.write(text[:rng.choice([1, 7, 100, 10000])]):]
        with judges.File(path) as f:
            for i, kind in enumerate(kinds):
                with self.subTest(i=i, dtype=kind.dtype):
                    self.assertEqual([of(v) for v in f[f"d{i}"][:]], [kind.model(v) for v in values[i]])


if __name__ == "__main__":
    main()
