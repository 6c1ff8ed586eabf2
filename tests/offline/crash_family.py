#!/usr/bin/python3
"""What a crash, or a call that fails, leaves of a family of files that is written: rows across the ends of members, new members, new objects,
attributes. The calls are recorded without FUSE (tests/lib/vfs_shell.c), as those of one file; each that crosses the end of a member is two.
libhdf5 reads the members that a crash leaves."""
import glob
import os
import random
import subprocess
import unittest

import h5py
import numpy

from crashlib import SEED, CrashCase, Record, Shell, split
from mountlib import main

NAME, WIDTH = "f_%05d.h5", 36
JUDGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../contrib/judges")
READ = """
import h5py, sys
with h5py.File(sys.argv[1], driver="family", memb_size=int(sys.argv[2])) as f:
    f.visititems(lambda name, o: (dict(o.attrs), o[()] if isinstance(o, h5py.Dataset) else None) and None)
"""


def pattern_bytes(begin, end):
    """What the shell's `write` writes with seed 1."""
    at = numpy.arange(begin, end)
    return ((1 + 7 * at + 13 * (at // 256)) % 256).astype("u1").tobytes()


def newer():
    return subprocess.run([JUDGES, "list"], capture_output=True, text=True, check=True).stdout.split()


class CrashFamily(CrashCase):
    states = 25

    def make(self, piece, libver):
        self.piece = piece
        with h5py.File(self.file(NAME), "w", driver="family", memb_size=piece, libver=libver) as f:
            f.create_dataset("rows", (0, WIDTH), "u1", maxshape=(None, WIDTH), chunks=(7, WIDTH))
            f.create_dataset("gzip", (0, WIDTH), "u1", maxshape=(None, WIDTH), chunks=(40, WIDTH), compression="gzip")
            f.create_group("group")
        return self.file(NAME % 0)

    def get(self, path):
        members = []
        for name in sorted(glob.glob(path.replace("00000.h5", "?????.h5"))):
            with open(name, "rb") as f:
                members.append(f.read())
        full = [m for m in members if m]
        self.assertEqual({len(m) for m in full[:-1]} - {self.piece}, set())
        self.assertEqual(full, members[:len(full)])  # empty ones stand in the end
        return b"".join(members)

    def put_members(self, path, image):
        for name in glob.glob(path.replace("00000.h5", "*")):
            os.remove(name)
        for i in range(max(1, -(-len(image) // self.piece))):
            with open(path.replace("00000", f"{i:05d}"), "wb") as f:
                f.write(image[i * self.piece:(i + 1) * self.piece])

    def put(self, path, images):
        self.put_members(path, images[0])
        with open(path + ".h5fs-journal", "wb") as f:
            f.write(images[1])

    def agree(self, path):
        for name in newer() if os.environ.get("H5FS_JUDGE") == "all" else ():
            subprocess.run([JUDGES, "run", name, "/usr/bin/python3", "-c", READ, path.replace("00000", "%05d"), str(self.piece)], check=True)

    def contents(self, pattern):
        with h5py.File(pattern, driver="family", memb_size=self.piece) as f:
            found = {name: f[name][()].tobytes() for name in ("rows", "gzip")}
            found.update((f"group/{name}", "") for name in f["group"])
            found.update((f"group@{name}", value) for name, value in f["group"].attrs.items())
        return found

    def look(self, image, models):
        self.put_members(self.file("look_00000.h5"), image)
        found = self.contents(self.file("look_%05d.h5"))
        for name in {name for model in models for name in model} | set(found):
            if not any(found.get(name) == model.get(name) for model in models):
                raise AssertionError(f"{name} is {str(found.get(name))[:200]}, of {[str(model.get(name))[:100] for model in models]}")

    def requests(self, chance, model, count=40):
        """Each with whether all before is durable then."""
        yield ["open", "rows", 1, os.O_WRONLY], False
        yield ["open", "gzip", 2, os.O_WRONLY], False
        for i in range(count):
            what = chance.choice(("rows", "rows", "gzip", "gzip", "mkdir", "set", "commit"))
            if what in ("rows", "gzip"):
                begin = len(model[what])
                end = begin + WIDTH * chance.choice((1, 9, 80))
                model[what] += pattern_bytes(begin, end)
                yield ["write", 1 if what == "rows" else 2, begin, end - begin, 1], False
            elif what == "mkdir":
                model[f"group/{i}"] = ""
                yield ["mkdir", f"group/{i}"], False
            elif what == "set":
                text = model[f"group@a{i % 3}"] = f"{i} " + "z" * chance.choice((0, 30, 3000))
                yield ["set", "group", f"user.a{i % 3}", text], False
            else:
                yield ["commit"], True
        yield ["close", 1], False
        yield ["close", 2], False
        yield ["commit"], True

    def run_requests(self, piece, libver, chance):
        path = self.make(piece, libver)
        before, model = self.get(path), self.contents(self.file(NAME))
        first, history = dict(model), []
        shell = Shell(path, self.file("record"))
        for words, durable in self.requests(chance, model):
            error, calls, _, _ = shell.ask(*words)
            self.assertEqual(error, 0, words)
            history.append((calls, durable, dict(model)))
        self.assertEqual(shell.end(), 0)
        self.assertGreater(len(glob.glob(self.file("f_?????.h5"))), len(before) // piece + 2)
        self.look(self.get(path), [model])
        return path, before, first, history

    def test_crashes(self):
        for piece, libver in (5003, "earliest"), (8192, "latest"), (4100, "latest"):
            chance = random.Random(f"{piece} {SEED}")
            with self.subTest(piece=piece, libver=libver):
                path, before, first, history = self.run_requests(piece, libver, chance)
                record, counts = Record(self.file("record")), [0]
                parts = [split(event, piece) for event in record.events]
                for part in parts:
                    counts.append(counts[-1] + len(part))
                if piece % 4096:
                    self.assertGreater(counts[-1], len(parts))
                record.events = [event for part in parts for event in part]
                self.replay(path, before, record, [(counts[calls], *more) for calls, *more in history], first, chance)
                self.assertGreater(self.counts["power cut, then recovery"], 0)
                for name in glob.glob(self.file("*")):
                    os.remove(name)

    def one_fault(self, n):
        """The n-th call to write, resize or sync fails. Whether it came to that."""
        path = self.make(5003, "earliest")
        model = self.contents(self.file(NAME))
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
        found = self.contents(self.file(NAME))
        for name in ("rows", "gzip"):  # nothing that was acknowledged is lost, and nothing is wrong
            self.assertTrue(model[name].startswith(found[name]), name)
            self.assertGreaterEqual(len(found[name]), len(models[0][name]))
        self.assertTrue(set(models[0]) <= set(found) <= set(model))
        for name in glob.glob(self.file("*")):
            os.remove(name)
        return fired

    def test_each_call_fails(self):
        n, step = 1, int(os.environ.get("H5FS_FAULT_STEP", 5))
        while self.one_fault(n):
            n += step
        self.assertGreater(n, 10)

    @unittest.skipUnless(newer(), "no newer libhdf5")
    def test_newer_libraries_read_it(self):
        for piece, libver in (5003, "earliest"), (8192, "latest"):
            path, *_ = self.run_requests(piece, libver, random.Random(SEED))
            for name in newer():
                subprocess.run([JUDGES, "run", name, "/usr/bin/python3", "-c", READ, self.file(NAME), str(piece)], check=True)
            for name in glob.glob(self.file("*")):
                os.remove(name)


if __name__ == "__main__":
    main()
