#!/usr/bin/python3
"""Requests that change the file whose allocations, reads, writes and syncs fail, or find no space, one after the other, without FUSE
(tests/lib/vfs_shell.c): a request that fails has done nothing, and the next one works; a commit that fails leaves the file as it was, or,
if its journal is needed, as the next mount makes it: before or after. No space is lost.

H5FS_FAULT_STEP=1: each call fails, of each request in each style of file; else some of them do."""
import io
import os
import re
import shutil
import tempfile
import unittest

import h5py
import numpy as np

import crashlib
import shared_tables

STEP = crashlib.fault_step(0)
ALL = STEP == 1
SCATTERED = 16384  # free bytes between others, more than without faults
CHUNKS = 8 * 65536  # the same, if the request makes datasets with chunks that are larger than their data
EIO, ENOMEM, ENOSPC, EROFS = 5, 12, 28, 30
NOREPLACE, EXCHANGE = 1, 2
EVENT = np.dtype([("station", h5py.string_dtype()), ("days", h5py.vlen_dtype("<i4"))])
OPEN = ("open", "data", 0, os.O_RDWR)
OPENED = (OPEN, ("hold", "data"), ("hold", "small"))
NEW = (("create", "small/new", 0), ("write", 0, 0, 9000, 3))
STYLES = {
    "symbol tables": dict(libver="earliest"),
    "superblock 2": dict(libver=("v108", "v108")),
    "latest": dict(libver="latest"),
    "tracked": dict(libver="latest", track_order=True),
    "shared messages": dict(shared="B-trees"),
    "shared messages in a list": dict(shared="one list"),
}

CUT, APPEND = os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_APPEND


def put(path, data, flags=CUT):
    """A program writes a whole file."""
    return "put", path, flags, data.hex()


def npy(array):
    out = io.BytesIO()
    np.lib.format.write_array(out, array)
    return out.getvalue()


EVENTS = b"".join(b'{"station":"%s","days":[%d,2,3]}\n' % (b"x" * (i * 7 % 300), i) for i in range(40))
TABLE = b"n,x,word\n" + b"".join(b"%d,%d.5,w%d\n" % (i, i, i * i) for i in range(300))
NUMBERS = b"[" + b",".join(b"%d" % i for i in range(7000)) + b"]"

# Requests that come before, and the request that fails.
NAMES = {
    "mkdir": ((), ("mkdir", "empty/x")),
    "mkdir, dense": ((), ("mkdir", "many/x" + "y" * 100)),
    "mkdir, becomes dense": ((), ("mkdir", "eight/x")),
    "mkdir in a new group": ((("mkdir", "x"),), ("mkdir", "x/y")),
    "rmdir": ((), ("rmdir", "empty")),
    "create": ((), ("create", "small/new", 0)),
    "unlink": ((), ("unlink", "data")),
    "unlink, filtered": ((), ("unlink", "filtered")),
    "unlink, one of two names": ((("link", "data", "small/hard"),), ("unlink", "data")),
    "unlink, many attributes": ((), ("unlink", "with many")),
    "unlink, open": ((OPEN,), ("unlink", "data")),
    "unlink, dense": ((), ("unlink", "many/link 7")),
    "rename": ((), ("rename", "data", "data 2", 0)),
    "rename, dense": ((), ("rename", "many/link 7", "many/new name", NOREPLACE)),
    "rename to another group": ((), ("rename", "data", "many/data", 0)),
    "rename of a group": ((), ("rename", "small", "many/small", 0)),
    "rename over": ((), ("rename", "data", "filtered", 0)),
    "rename over a group": ((), ("rename", "small", "empty", 0)),
    "exchange": ((), ("rename", "data", "filtered", EXCHANGE)),
    "exchange of groups": ((), ("rename", "small", "many", EXCHANGE)),
    "replace": ((*NEW, ("close", 0)), ("rename", "small/new", "data", 0)),
    "replace, filtered": ((("create", "small/new", 0), ("write", 0, 0, 4800, 3), ("close", 0)), ("rename", "small/new", "filtered", 0)),
    "link": ((), ("link", "data", "many/hard")),
    "symlink": ((), ("symlink", "target", "eight/soft")),
    "set, number": ((), ("set", "data", "user.new", "5")),
    "set, text": ((), ("set", "with few", "user.new", "a text")),
    "set, long text": ((), ("set", "with many", "user.new", "long " * 3000)),
    "set, becomes dense": ((), ("set", "with eight", "user.new", "[1,2,3]")),
    "set, other value": ((), ("set", "with few", "user.a1", "other text")),
    "set, dense": ((), ("set", "with many", "user.a3", "77")),
    "convert": ((), ("set", "with many", "h5fs.type.a3", "<f8")),
    "remove": ((), ("remove", "with few", "user.a1")),
    "remove, dense": ((), ("remove", "with many", "user.a3")),
    "declare": ((("create", "small/new", 0),), ("set", "small/new", "h5fs.info", '{"dtype":"<i4","shape":"0,5","filters":"deflate(4)"}')),
    "comment": ((), ("set", "data", "h5fs.comment", "some words")),
    "shape": ((), ("set", "filtered", "h5fs.shape", "100,10")),
    "resize": ((OPEN,), ("resize", 0, 100)),
    "resize, larger": ((OPEN,), ("resize", 0, 30_000)),
    "truncate": ((), ("open", "filtered", 0, os.O_RDWR | os.O_TRUNC)),
    "punch": ((OPEN,), ("punch", 0, 500, 6000)),
    "write": ((OPEN,), ("write", 0, 9000, 5000, 7)),
    "write to a new file": ((("create", "small/new", 0),), ("write", 0, 0, 90_000, 7)),
    "flush": (NEW, ("flush", 0)),
    "text, appended": ((), put("log", b"".join(b"line %d\n" % i for i in range(300)), APPEND)),
    "text, rewritten": ((), put("log", b"a new line\n" * 9)),
    "json, appended": ((), put("events", EVENTS, APPEND)),
    "json, rewritten": ((), put("events", EVENTS)),
    "text, moved onto": ((("create", "small/new", 0), ("text", 0, "a|b|c|"), ("close", 0)), ("rename", "small/new", "log", 0)),
    "text, its backup goes": ((("rename", "log", "log~", 0), ("create", "log", 0), ("text", 0, "a|b|c|"), ("close", 0)), ("unlink", "log~")),
    "npy, moved onto": (((("put", ".h5fs/npy/.new", os.O_RDWR, npy(np.arange(30)).hex())), ("commit",)), ("rename", ".h5fs/npy/.new", ".h5fs/npy/data.npy", 0)),
    "npy, new": ((), put(".h5fs/npy/small/new.npy", npy(np.arange(9000.0)))),
    "npy, new, in columns": ((), put(".h5fs/npy/small/new.npy", npy(np.asfortranarray(np.arange(9000).reshape(90, 100))))),
    "npy, new in a dense group": ((), put(".h5fs/npy/many/new.npy", npy(np.arange(30)))),
    "npy, other elements": ((), put(".h5fs/npy/filtered.npy", npy(np.ones((50, 10), "<i4")))),
    "npy, other type": ((), put(".h5fs/npy/filtered.npy", npy(np.ones((5, 7))))),
    "npy, in place of text": ((), put(".h5fs/npy/log.npy", npy(np.ones((5, 7))))),
    "csv, new": ((), put(".h5fs/csv/small/new.csv", TABLE)),
    "csv, other type": ((), put(".h5fs/csv/data.csv", TABLE)),
    "lines, appended": ((), put(".h5fs/lines/data", b"7\n" * 900, APPEND)),
    "lines, rewritten": ((), put(".h5fs/lines/with few", b"7\n8\n9\n")),
    "attribute, new": ((), put(".h5fs/attrs/data/new", NUMBERS)),
    "attribute, other text": ((), put(".h5fs/attrs/with few/a1", b"other text " * 3000)),
    "shape, more columns": ((), ("set", "columns", "h5fs.shape", "6,90")),
    "shape, fewer columns": ((), ("set", "columns", "h5fs.shape", "6,3")),
    "shape, more columns, filtered": ((), ("set", "columns-filtered", "h5fs.shape", "6,90")),
    "shape, fewer columns, filtered": ((), ("set", "columns-filtered", "h5fs.shape", "6,3")),
    "shape, fewer rows and more columns": ((), ("set", "plane", "h5fs.shape", "3,30")),
    "shape, of both fewer": ((), ("set", "plane", "h5fs.shape", "3,5")),
}
# Elements are written where they are, one chunk after the other; a file of a view changes before the name of the new one goes; a dataset
# becomes smaller before it becomes larger.
IN_PARTS = {"punch", "write", "write to a new file", "text, appended", "json, appended", "lines, appended", "npy, moved onto",
            "shape, fewer rows and more columns"}


def create(path, shared=None, **options):
    return shared_tables.create(path, *shared_tables.FILES[shared]) if shared else h5py.File(path, "w", **options)


def make(path, options):
    track = {key: value for key, value in options.items() if key == "track_order"}
    with create(path, **options) as f:
        for name, links in ("empty", 0), ("small", 3), ("eight", 8), ("many", 40):
            group = f.create_group(name, **track)
            for i in range(links):
                group[f"link {i}"] = h5py.SoftLink("/" + "x" * (i % 30))
        f.create_dataset("data", data=np.arange(9000).astype("u1"), maxshape=(None,), chunks=(1000,))
        f.create_dataset("filtered", data=np.arange(1200, dtype="<i4").reshape(120, 10), maxshape=(None, 10), chunks=(7, 10), compression=4)
        for name, how in ("columns", {}), ("columns-filtered", dict(fletcher32=True)):
            f.create_dataset(name, data=np.arange(120, dtype="u1").reshape(6, 20), maxshape=(6, None), chunks=(4, 1), **how)
        f.create_dataset("plane", data=np.arange(120, dtype="u1").reshape(6, 20), maxshape=(None, None), chunks=(4, 3))
        f.create_dataset("log", (3,), h5py.string_dtype(), maxshape=(None,), chunks=(16,))[...] = ["a", "b" * 300, "c"]
        f.create_dataset("events", (1,), EVENT, maxshape=(None,), chunks=(7,), compression=4)[0] = ("Oslo", np.arange(9))
        for name, count in ("with few", 3), ("with eight", 8), ("with many", 20):
            f.create_dataset(name, data=[1, 2, 3])
            for i in range(count):
                f[name].attrs[f"a{i}"] = "text %u" % i if i % 3 == 1 else i


class Faults(unittest.TestCase):
    performed = {}  # what requests do

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="h5fs-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.path, self.pristine = os.path.join(self.folder, "data.h5"), os.path.join(self.folder, "pristine.h5")
        self.shell, self.is_mounted = crashlib.Shell(), False
        self.addCleanup(lambda: self.assertEqual(self.shell.end(), 0))

    def copy(self):
        shutil.copy(self.pristine, self.path)
        if os.path.exists(self.path + ".h5fs-journal"):
            os.unlink(self.path + ".h5fs-journal")

    def kill(self):
        """What a failed test has left."""
        if self.is_mounted:
            self.shell.stop()
            self.shell, self.is_mounted = crashlib.Shell(), False

    def mount(self):
        self.assertEqual(self.shell.ask("mount", self.path)[0], 0, "mount")
        self.is_mounted = True

    def begin(self, before):
        """Mounts a new copy of the file, in which the first requests are done; what it shows."""
        self.copy()
        self.mount()
        for words in before:
            self.assertEqual(self.shell.ask(*words)[0], 0, words[:2])
        return self.digest()

    def digest(self):
        error, _, _, digest = self.shell.ask("digest")
        self.assertEqual(error, 0, "the tree cannot be read")
        return digest

    def end(self):
        """The error of what is written in the end."""
        error = self.shell.ask("unmount")[0]
        self.is_mounted = False
        return error

    def unused(self):
        """Checks the file; how many bytes nothing refers to, as far as that is certain."""
        said, (error, *_) = self.shell.ask_for_text("check", self.path)
        self.assertEqual(error, 0, said)
        found = re.search(r"nothing refers to (\d+) bytes", said)
        return int(found[1]) if found else 0

    def allowed(self, request, unused):
        """Bytes that nothing may refer to after faults, if without them there are so many."""
        return unused + (CHUNKS if ".h5fs" in str(request) else SCATTERED)

    def perform(self, before, request):
        """What is there before and after the request, and the unused bytes of the file then."""
        key = self.style, before, request
        if key not in self.performed:
            self.performed[key] = self.perform_once(before, request)
        return self.performed[key]

    def perform_once(self, before, request):
        first = self.begin(before)
        self.assertEqual(self.shell.ask(*request)[0], 0, request[:2])
        after = self.digest()
        self.assertEqual(self.shell.ask("commit")[0], 0)
        self.assertEqual(self.digest(), after)
        self.assertEqual(self.end(), 0)
        return first, after, self.unused()

    def fail_request(self, name, before, request, fault, error):
        """The request fails at each call, until it passes."""
        first, after, unused = self.perform(before, request)
        self.begin(before)
        n, failures, passed = self.first, 0, False
        while not passed:
            self.shell.ask(fault, n)
            result, _, fired, _ = self.shell.ask(*request)
            n += self.step(n)
            passed = not fired
            failures += fired
            if passed:
                self.assertEqual(result, 0)
            elif result:
                self.assertEqual(result, error, f"call {n}")
                # If a commit came first and has failed, what was done before is lost, too.
                if name not in IN_PARTS:
                    if self.digest() not in (first, self.base):
                        self.assertEqual(self.shell.ask("commit")[0], 0)
                    self.assertIn(self.digest(), (first, self.base), f"call {n}")
                    if self.digest() != first:
                        self.end()
                        self.begin(before)
                    elif request[0] == "put":  # the dataset that was begun goes with the next commit
                        self.assertEqual(self.shell.ask("commit")[0], 0)
            else:
                # Without what failed, or with another attempt at it by the next commit.
                if self.digest() != after:
                    self.assertEqual(self.shell.ask("commit")[0], 0)
                self.assertEqual(self.digest(), after, f"call {n}")
                self.assertEqual(self.end(), 0)
                self.assertLessEqual(self.unused(), self.allowed(request, unused), f"call {n}")
                self.begin(before)
        self.assertEqual(self.digest(), after)
        self.assertEqual(self.shell.ask("commit")[0], 0)
        self.assertEqual(self.end(), 0)
        self.assertLessEqual(self.unused(), self.allowed(request, unused))
        return failures

    def fail_commit(self, name, before, request, fault, error):
        """What writes fails, in the request or the commit."""
        first, after, _ = self.perform(before, request)
        n, passed, failures = self.first, False, 0
        while not passed:
            self.begin(before)
            self.shell.ask(fault, n, error)
            result, _, fired, _ = self.shell.ask(*request)
            committed = 0
            if not result:
                committed, _, fired, _ = self.shell.ask("commit")
            self.shell.ask("fail", 0)
            label = f"call {n}: {result}, {committed}"
            n += self.step(n)
            passed = not fired
            failures += fired
            if passed:
                self.assertEqual((result, committed), (0, 0))
            else:
                self.after_failure(name, request, result or committed, error, (self.base, first, after), label)
            self.end()
            found = self.settle(label)
            if not result and not committed:
                self.assertEqual(found, after, label)
            elif name not in IN_PARTS and not name.startswith("exchange"):  # these may leave a third name
                self.assertIn(found, (self.base, first, after), label)
        self.unused()
        return failures

    def after_failure(self, name, request, result, error, states, label):
        # A dataset that becomes shorter is committed at once: the request may have succeeded with the last commit that was made.
        self.assertIn(result, (error, EROFS, 0), label)
        if self.shell.ask("mkdir", "later")[0] == EROFS:
            return  # the journal is needed
        self.assertEqual(self.shell.ask("rmdir", "later")[0], 0, label)
        self.assertEqual(self.shell.ask("commit")[0], 0, label)
        if name not in IN_PARTS:
            self.assertIn(self.digest(), states, label)
        self.assertEqual(self.shell.ask("mkdir", "later")[0], 0, label)
        self.assertEqual(self.shell.ask("commit")[0], 0, label)
        self.assertEqual(self.shell.ask("rmdir", "later")[0], 0, label)
        self.assertEqual(self.shell.ask("commit")[0], 0, label)

    def settle(self, label):
        """The next mount finds a whole file; what it shows."""
        self.mount()
        digest = self.digest()
        self.assertEqual(self.end(), 0, label)
        self.unused()
        return digest

    def step(self, n):
        """To the next call that fails. Each style of file has others."""
        return 1 if ALL else max(STEP, 1 + int(n * self.rate))

    def run_all(self, function, rate, *faults):
        failures, self.rate = 0, rate
        for i, (style, options) in enumerate(STYLES.items()):
            self.first, self.style = 1 if ALL else 1 + i, style
            make(self.pristine, options)
            self.copy()
            self.mount()
            self.base = self.digest()
            self.end()
            for j, (name, (before, request)) in enumerate(NAMES.items()):
                for fault, error in faults if ALL else [faults[j // 4 % len(faults)]] * ((i + j) % 4 == 0):
                    with self.subTest(style=style, name=name, fault=fault, error=error):
                        failures += function(name, before, request, fault, error)
                    self.kill()
        self.assertGreater(failures, len(NAMES))

    def test_losses(self):
        """What is lost in a commit that nobody has asked for, the next fsync of what was changed tells, once."""
        for style, options in STYLES.items():
            make(self.pristine, options)
            for changes, of, others in (((("mkdir", "small/x"),), "small", ("many", "data")),
                                        ((("unlink", "many/link 3"), ("rename", "small/link 1", "empty/x", 0)), "empty", ("data", "with few")),
                                        ((("set", "data", "user.new", "a text"),), "data", ("small", "filtered"))):
                with self.subTest(style=style, changes=changes):
                    self.begin([("hold", path) for path in ("small", "many", "empty", "data", "filtered", "with few")])
                    first = self.digest()
                    for words in changes:
                        self.assertEqual(self.shell.ask(*words)[0], 0, words)
                    self.shell.ask("fail-all", 1, ENOSPC)
                    self.assertEqual(self.shell.ask("commit")[0], ENOSPC)
                    self.shell.ask("fail", 0)
                    self.assertEqual(self.digest(), first)
                    for path in others:
                        self.assertEqual(self.sync(path), 0, path)
                    self.assertEqual(self.sync(of), ENOSPC)
                    self.assertEqual(self.sync(of), 0)
                    for words in changes:
                        self.assertEqual(self.shell.ask(*words)[0], 0, words)
                    self.assertEqual(self.sync(of), 0)
                    self.assertEqual(self.end(), 0)
                self.kill()

    def sync(self, path):
        if self.shell.ask("open", path, 5, os.O_RDONLY)[0]:
            return self.shell.ask("fsync-directory", path)[0]
        error = self.shell.ask("fsync", 5)[0]
        self.shell.ask("close", 5)
        return error

    def test_fsync_of_what_is_lost(self):
        """The commit that fails is that of the fsync itself."""
        for path, before, expected in (("data", (("set", "data", "user.new", "a text"),), ENOSPC), ("data", (("mkdir", "small/x"),), 0)):
            make(self.pristine, STYLES["latest"])
            self.begin((*OPENED, *before))
            self.shell.ask("fail-all", 1, ENOSPC)
            first = self.shell.ask("fsync", 0)[0]
            self.shell.ask("fail", 0)
            self.assertEqual((first, self.shell.ask("fsync", 0)[0]), (expected, 0), before)
            self.shell.ask("close", 0)
            self.assertEqual(self.end(), 0)

    def test_a_new_file_that_is_lost(self):
        make(self.pristine, STYLES["latest"])
        for more in (), (("write", 0, 0, 100, 1),):
            self.begin((("hold", "small"), ("create", "small/new", 0), *more))
            self.shell.ask("fail-all", 1, ENOSPC)
            self.assertEqual(self.shell.ask("commit")[0], ENOSPC)
            self.shell.ask("fail", 0)
            self.assertEqual([self.shell.ask("fsync", 0)[0] for _ in range(2)], [ENOSPC, 0])
            self.assertEqual(self.sync("small"), ENOSPC)
            self.shell.ask("close", 0)
            self.assertEqual(self.end(), 0)
            self.begin((("hold", "small"), ("create", "small/new", 0), *more))
            self.shell.ask("fail-all", 1, ENOSPC)
            self.assertEqual(self.shell.ask("fsync", 0)[0], ENOSPC)
            self.shell.ask("fail", 0)
            self.assertEqual((self.shell.ask("fsync", 0)[0], self.sync("small")), (0, ENOSPC))
            self.assertEqual(self.end(), 0)

    def test_memory(self):
        self.run_all(self.fail_request, 0.5, ("fail-memory", ENOMEM))

    def test_reads(self):
        self.run_all(self.fail_request, 0.5, ("fail-read", EIO))

    def test_commits(self):
        self.run_all(self.fail_commit, 2, ("fail", EIO), ("fail-all", ENOSPC))


if __name__ == "__main__":
    unittest.main(verbosity=2)
