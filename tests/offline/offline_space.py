#!/usr/bin/python3
"""No space is lost. Files that keep track of their free space are changed without FUSE (tests/lib/vfs_shell.c). In the end what nothing refers
to, as h5fs --check finds it, is what libhdf5 finds to be free.

H5FS_CRASH_SEED: another run of chance."""
import os
import random
import re
import shutil
import tempfile
import unittest

import h5py
import numpy

import contents_model
import crash_contents
import crash_names
import crash_text
import crashlib
import request_faults

PERSISTENT = dict(fs_strategy="fsm", fs_persist=True, fs_threshold=1)
STYLES = {name: dict(libver=(lowest, "latest"), **PERSISTENT) for name, lowest in
          {"symbol tables": "earliest", "superblock 2": "v108", "latest": "latest"}.items()}
STYLES["tracked"] = dict(STYLES["latest"], track_order=True)
HUGE = str(list(range(9000)))  # of an attribute: more than a block of a heap holds
GROWTH = 0.3  # the next call that fails comes so much later
PAGE = 4096
ROUNDS, OF_EACH = 25, 20  # files, and what each has of each kind
HEADERS = {b"EAHD": 72, b"FAHD": 28, b"BTHD": 38, b"FRHP": 142}  # signatures, and bytes


class Space(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="h5fs-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "data.h5")
        self.shell = crashlib.Shell()
        self.addCleanup(self.shell.stop)

    def ask(self, *words):
        self.assertEqual(self.shell.ask(*words)[0], 0, words[:2])

    def assertNoneLost(self, may_look_used=False):
        """may_look_used: what is free has bytes of values, which h5fs --check takes for values that may be in use."""
        said, (error, *_) = self.shell.ask_for_text("check", self.path)
        self.assertEqual(error, 0, said)
        found = re.search(r"nothing refers to (\d+) bytes", said)
        with h5py.File(self.path) as f:
            lost = (int(found[1]) if found else 0) - f.id.get_freespace()
        if may_look_used:
            self.assertLessEqual(lost, 0)
        else:
            self.assertEqual(lost, 0)

    def test_requests(self):
        pristine = os.path.join(self.folder, "pristine.h5")
        for style, options in STYLES.items():
            request_faults.make(pristine, options)
            for name, (before, request) in request_faults.NAMES.items():
                with self.subTest(style, request=name):
                    shutil.copy(pristine, self.path)
                    self.ask("mount", self.path)
                    for words in (*before, ("commit",), request):
                        self.ask(*words)
                    self.ask("unmount")
                    self.assertNoneLost()

    def fail_each(self, pristine, before, request, first):
        """The request fails at some of its reads, each time on a new copy of the file; how often it did."""
        n, failures, fired = first, 0, True
        while fired:
            shutil.copy(pristine, self.path)
            self.ask("mount", self.path)
            for words in (*before, ("commit",)):
                self.ask(*words)
            self.ask("fail-read", n)
            _, _, fired, _ = self.shell.ask(*request)
            self.ask("fail-read", 0)
            self.ask("commit")
            self.ask("unmount")
            self.assertNoneLost(may_look_used=True)
            failures += fired
            n += 1 + int(n * GROWTH)
        return failures

    def test_requests_that_fail(self):
        pristine, failures = os.path.join(self.folder, "pristine.h5"), 0
        for i, (style, options) in enumerate(STYLES.items()):
            request_faults.make(pristine, options)
            for j, (name, (before, request)) in enumerate(request_faults.NAMES.items()):
                if (i + j) % 2 == 0:
                    with self.subTest(style, request=name):
                        failures += self.fail_each(pristine, before, request, 1 + i // 2)
        self.assertGreater(failures, 500)

    def requests_of_all_kinds(self):
        """For each dataset and group that crash_contents makes."""
        with h5py.File(self.path) as f:
            for name, thing in f.items():
                if isinstance(thing, h5py.Group):
                    for link in thing:
                        yield ("unlink", f"{name}/{link}"),
                    if "huge 0" in thing.attrs:
                        yield ("set", name, "user.huge 0", HUGE), ("commit",), ("set", name, "user.large", HUGE)
                    for key in thing.attrs:
                        yield ("remove", name, f"user.{key}"), ("commit",), ("set", name, "user.new", "5"), ("remove", name, "user.new")
                    yield ("rmdir", name),
                elif isinstance(thing, h5py.Dataset):
                    if thing.chunks and thing.maxshape != thing.shape:
                        less = ",".join(str(n // 3) for n in thing.shape)
                        more = ",".join(str(n + 7 * (most is None)) for n, most in zip(thing.shape, thing.maxshape))
                        yield ("set", name, "h5fs.shape", less), ("commit",), ("set", name, "h5fs.shape", more)
                        yield ("open", name, 0, os.O_RDWR), ("write", 0, 0, thing.nbytes, 1), ("close", 0)
                    yield ("unlink", name),

    def test_all_kinds(self):
        """All that there is becomes smaller, and larger, and goes."""
        for style in "symbol tables", "tracked":
            with self.subTest(style):
                crash_contents.make(self.path, STYLES[style])
                for requests in list(self.requests_of_all_kinds()):
                    self.ask("mount", self.path)
                    for words in requests:
                        self.ask(*words)
                    self.ask("unmount")
                    self.assertNoneLost(may_look_used=True)

    def test_programs(self):
        for style, options in STYLES.items():
            for kind in (crash_names.Program, crash_names.Renames, crash_names.Moves, crash_names.MovesAway, crash_names.LateNames):
                with self.subTest(style, kind=kind.__name__):
                    counts = [("all", 280)] if kind is crash_names.Renames else [("few", 6), ("more", 12), ("many", 20)]
                    self.run_program(kind(crash_names.make(self.path, options, counts), random.Random(f"{style} {crashlib.SEED}")).requests)
                    self.assertNoneLost()
            with self.subTest(style, kind="contents"):
                model = crash_contents.make(self.path, options)
                self.ask("mount", self.path)
                contents_model.Program(model, self.shell, random.Random(f"{style} {crashlib.SEED}"), 130).run()
                self.ask("unmount")
                self.assertNoneLost(may_look_used=True)
            with self.subTest(style, kind="text"):
                crash_text.make(self.path, options)
                with h5py.File(self.path) as f:
                    model = crash_text.contents(f)
                self.run_program(crash_text.Program(model, random.Random(f"{style} {crashlib.SEED}")).requests)
                self.assertNoneLost(may_look_used=True)

    def run_program(self, requests):
        self.ask("mount", self.path)
        for words, *_ in requests():
            self.shell.ask(*words)
        self.ask("unmount")

    def test_what_cannot_change_in_place(self):
        """Headers that lie in two pages: what they belong to moves as a whole when it changes."""
        moved = []
        for style in "latest", "tracked":
            with self.subTest(style):
                chance = random.Random(style)
                for _ in range(ROUNDS):
                    with h5py.File(self.path, "w", **STYLES[style]) as f:
                        for i in range(OF_EACH):
                            self.make_some(f, i, chance)
                    crossing = self.headers_in_two_pages()
                    self.ask("mount", self.path)
                    for i in range(OF_EACH):
                        for words in self.change_some(i):
                            self.ask(*words)
                    self.ask("unmount")
                    self.assertNoneLost()
                    moved += [crossing[at] for at in crossing.keys() - self.headers_in_two_pages().keys()]
        self.assertEqual(set(moved), set(HEADERS))

    def make_some(self, f, i, chance):
        f.create_dataset(f"growing {i}", data=numpy.arange(30), maxshape=(None,), chunks=(1,))
        f.create_dataset(f"fixed {i}", (600,), "u1", chunks=(1,))[:9] = 1
        f.create_dataset(f"tree {i}", data=numpy.arange(9).reshape(3, 3), maxshape=(None, None), chunks=(1, 2))
        group = f.create_group(f"group {i}", track_order=False)
        for j in range(9 + chance.randrange(5)):
            group[f"link {j}"] = h5py.SoftLink("/" + "x" * chance.randrange(100))

    def change_some(self, i):
        yield "open", f"growing {i}", 0, os.O_RDWR
        yield "write", 0, 30 * 8, 8 * (1 + i % 90), 1
        yield "close", 0
        yield "open", f"fixed {i}", 0, os.O_RDWR
        yield "write", 0, 20, 3, 1
        yield "close", 0
        yield "set", f"tree {i}", "h5fs.shape", "4,4"
        yield "open", f"tree {i}", 0, os.O_RDWR
        yield "write", 0, 3 * 32, 32, 1
        yield "close", 0
        yield "mkdir", f"group {i}/new"
        yield ("commit",)

    def headers_in_two_pages(self):
        """{address: signature} of headers that lie in two pages."""
        with open(self.path, "rb") as f:
            data = f.read()
        return {m.start(): m[0] for m in re.finditer(b"|".join(HEADERS), data) if m.start() % PAGE > PAGE - HEADERS[m[0]]}


if __name__ == "__main__":
    unittest.main(verbosity=2)
