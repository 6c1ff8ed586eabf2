#!/usr/bin/python3
"""What a crash, or a call that fails, leaves of a file of the split driver that is written: rows in one member, all that refers to them in
the other. The calls are recorded without FUSE (tests/lib/vfs_shell.c). A power cut leaves of each member what it likes. libhdf5 reads the
members that a crash leaves."""
import glob
import os
import random
import subprocess
import unittest

import h5py
import numpy

from crashlib import RESIZE, SEED, SYNC, CrashCase, Crashes, Record, Shell
from mountlib import main

WIDTH = 36
JUDGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../contrib/judges")
READ = """
import h5py, sys
with h5py.File(sys.argv[1], "r", driver="split") as f:
    f.visititems(lambda name, o: (dict(o.attrs), o[()] if isinstance(o, h5py.Dataset) else None) and None)
"""
RAW = 2**63 - 1  # where the second member begins


def pattern_bytes(begin, end):
    """What the shell's `write` writes with seed 1."""
    at = numpy.arange(begin, end)
    return ((1 + 7 * at + 13 * (at // 256)) % 256).astype("u1").tobytes()


def newer():
    return subprocess.run([JUDGES, "list"], capture_output=True, text=True, check=True).stdout.split()


class Members:
    """The states of both members, and of the journal."""

    def __init__(self, before, journal=b"", piece=0):
        self.parts = [Crashes(before[0], journal), Crashes(before[1])]

    def add(self, event):
        kind, file, offset, data = event
        if file:
            self.parts[0].add(event)
        elif kind == SYNC:
            for part in self.parts:
                part.add(event)
        else:
            i = offset - (kind == RESIZE) >= RAW
            if not i and offset + len(data) > RAW:
                raise AssertionError("a call reaches into the next member")
            self.parts[i].add((kind, file, offset - RAW * i, data))

    @property
    def images(self):
        return [[part.images[0] for part in self.parts], self.parts[0].images[1]]

    def cut(self, chance):
        (metadata, journal), (raw, _) = (part.cut(chance) for part in self.parts)
        return [[metadata, raw], journal]


class CrashSplit(CrashCase):
    states, kills_recovered = 30, 3
    crashes = Members

    def make(self, libver):
        with h5py.File(self.file("f"), "w", driver="split", libver=libver) as f:
            f.create_dataset("rows", (0, WIDTH), "u1", maxshape=(None, WIDTH), chunks=(7, WIDTH))
            f.create_dataset("gzip", (0, WIDTH), "u1", maxshape=(None, WIDTH), chunks=(40, WIDTH), compression="gzip")
            f.create_group("group")
        return self.file("f-m.h5")

    def names(self, path):
        return [path, path[:-4] + "r.h5"]

    def get(self, path):
        members = []
        for name in self.names(path):
            with open(name, "rb") as f:
                members.append(f.read())
        return members

    def put_members(self, path, images):
        for name, image in zip(self.names(path), images):
            with open(name, "wb") as f:
                f.write(image)

    def put(self, path, images):
        self.put_members(path, images[0])
        with open(path + ".h5fs-journal", "wb") as f:
            f.write(images[1])

    def agree(self, path):
        for name in newer() if os.environ.get("H5FS_JUDGE") == "all" else ():
            subprocess.run([JUDGES, "run", name, "/usr/bin/python3", "-c", READ, path[:-5]], check=True)

    def contents(self, name):
        with h5py.File(name, "r", driver="split") as f:
            found = {name: f[name][()].tobytes() for name in ("rows", "gzip")}
            found.update((f"group/{name}", f["group"][name][()].tobytes() if isinstance(f["group"][name], h5py.Dataset) else "")
                         for name in f["group"])
            found.update((f"group@{name}", value) for name, value in f["group"].attrs.items())
        return found

    def look(self, image, models):
        self.put_members(self.file("look-m.h5"), image)
        found = self.contents(self.file("look"))
        for name in {name for model in models for name in model} | set(found):
            if not any(found.get(name) == model.get(name) for model in models):
                raise AssertionError(f"{name} is {str(found.get(name))[:200]}, of {[str(model.get(name))[:100] for model in models]}")

    def requests(self, chance, model, count=40):
        """Each with whether all before is durable then."""
        yield ["open", "rows", 1, os.O_WRONLY], False
        yield ["open", "gzip", 2, os.O_WRONLY], False
        made = []
        for i in range(count):
            what = chance.choice(("rows", "rows", "gzip", "gzip", "mkdir", "set", "put", "unlink", "commit", "cut"))
            if what in ("rows", "gzip"):
                begin = len(model[what])
                end = begin + WIDTH * chance.choice((1, 9, 80))
                model[what] += pattern_bytes(begin, end)
                yield ["write", 1 if what == "rows" else 2, begin, end - begin, 1], False
            elif what == "mkdir":
                model[f"group/{i}"] = ""
                yield ["mkdir", f"group/{i}"], False
            elif what == "put":
                data = chance.randbytes(chance.choice((10, 9000)))
                made.append(f"group/{i}")
                yield ["put", made[-1], os.O_WRONLY | os.O_CREAT | os.O_EXCL, data.hex()], False
                model[made[-1]] = data
            elif what == "unlink" and made:
                name = made.pop()
                yield ["commit"], True
                del model[name]
                yield ["unlink", name], False
            elif what == "set":
                text = model[f"group@a{i % 3}"] = f"{i} " + "z" * chance.choice((0, 30, 3000))
                yield ["set", "group", f"user.a{i % 3}", text], False
            elif what == "cut":  # the raw data's member ends with them
                yield ["put", f"group/cut{i}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, "61" * 90_000], False
                model[f"group/cut{i}"] = b"a" * 90_000
                yield ["commit"], True
                del model[f"group/cut{i}"]
                yield ["unlink", f"group/cut{i}"], False
                yield ["commit"], True
                yield ["release"], True
            elif what == "commit":
                yield ["commit"], True
        yield ["close", 1], False
        yield ["close", 2], False
        yield ["commit"], True
        yield ["release"], True

    def run_requests(self, libver, chance):
        path = self.make(libver)
        before, model = self.get(path), self.contents(self.file("f"))
        first, history = dict(model), []
        shell = Shell(path, self.file("record"))
        for words, durable in self.requests(chance, model):
            error, calls, _, _ = shell.ask(*words)
            self.assertEqual(error, 0, words)
            history.append((calls, durable, dict(model)))
        self.assertEqual(shell.end(), 0)
        self.look(self.get(path), [model])
        return path, before, first, history

    def test_crashes(self):
        for libver in "earliest", "latest":
            chance = random.Random(f"{libver} {SEED}")
            with self.subTest(libver=libver):
                path, before, first, history = self.run_requests(libver, chance)
                self.replay(path, before, Record(self.file("record")), history, first, chance)
                self.assertGreater(self.counts["power cut, then recovery"], 0)
                for name in glob.glob(self.file("*")):
                    os.remove(name)

    def one_fault(self, n, libver):
        """The n-th call to write, resize or sync fails. Whether it came to that."""
        path = self.make(libver)
        model = self.contents(self.file("f"))
        models, fired, shell = [dict(model)], False, Shell(path)
        shell.ask("fail", n, 5)
        for words, durable in self.requests(random.Random(SEED), model, 12):
            if fired and words[0] not in ("close", "commit"):
                break
            error, _, now, _ = shell.ask(*words)
            fired |= now
            self.assertTrue(fired or not error, words)
            models = [dict(model)] if durable and not fired else models + [dict(model)]
        status = shell.end()
        fired |= status != 0
        if status:  # the next mount heals what the journal has
            self.recover(path, n)
        found = self.contents(self.file("f"))
        for name in ("rows", "gzip"):  # nothing that was acknowledged is lost, and nothing is wrong
            self.assertTrue(model[name].startswith(found[name]), name)
            self.assertGreaterEqual(len(found[name]), len(models[0][name]))
        run = subprocess.run([os.environ.get("H5FS", "src/h5fs"), "--check", path], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout)
        for name in glob.glob(self.file("*")):
            os.remove(name)
        return fired

    def test_each_call_fails(self):
        for libver in "earliest", "latest":
            n, step = 1, int(os.environ.get("H5FS_FAULT_STEP", 5))
            while self.one_fault(n, libver):
                n += step
            self.assertGreater(n, 10)

    def one_allocation(self, n, what):
        """The n-th allocation of a commit, or of giving space back, fails. Whether it came to that."""
        path = self.make("latest")
        shell = Shell(path)
        for words in ["put", "group/a", os.O_WRONLY | os.O_CREAT, "61" * 70_000], ["commit"], ["mkdir", "group/b"], ["unlink", "group/a"]:
            self.assertEqual(shell.ask(*words)[0], 0, words)
        if what == "release":
            self.assertEqual(shell.ask("commit")[0], 0)
        shell.ask("fail-memory", n)
        _, _, fired, _ = shell.ask(what)
        for words in ["mkdir", "group/c"], ["commit"]:  # memory is there again
            self.assertEqual(shell.ask(*words)[0], 0, (n, words))
        self.assertEqual(shell.end(), 0)
        run = subprocess.run([os.environ.get("H5FS", "src/h5fs"), "--check", path], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout)
        found = self.contents(self.file("f"))
        self.assertIn("group/c", found)
        self.assertEqual("group/a" in found, "group/b" not in found)  # both changes of the commit, or neither
        for name in glob.glob(self.file("*")):
            os.remove(name)
        return fired

    def test_each_allocation_fails(self):
        for what in "commit", "release":
            n = 1
            while self.one_allocation(n, what):
                n += 1
            self.assertGreater(n, 3, what)

    @unittest.skipUnless(newer(), "no newer libhdf5")
    def test_newer_libraries_read_it(self):
        for libver in "earliest", "latest":
            self.run_requests(libver, random.Random(SEED))
            for name in newer():
                subprocess.run([JUDGES, "run", name, "/usr/bin/python3", "-c", READ, self.file("f")], check=True)
            for name in glob.glob(self.file("*")):
                os.remove(name)


if __name__ == "__main__":
    main()
