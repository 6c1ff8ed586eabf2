#!/usr/bin/python3
"""What a crash, or a call that fails, leaves of objects that share messages with others, while they change, get messages of their own, and
go. After each crash libhdf5 reads all datasets and attributes: each is of one state between the last acknowledged commit and now; and no
index counts fewer uses of a message than there are."""
import os
import random
import re
import shutil
import subprocess

import h5py
import numpy

from crashlib import H5FS, SEED, CrashCase, Record, Shell, apply
from mountlib import main
from shared_tables import FILES, ROWS, add_growing, make, records

REQUESTS = int(os.environ.get("H5FS_CRASH_REQUESTS", 30))
APPEND = os.O_WRONLY | os.O_APPEND
STYLES = "one list", "B-trees"


def pattern(first, n, seed):
    return numpy.array([(seed + 7 * i + 13 * (i // 256)) & 255 for i in range(first, first + n)], "u1")


def contents(f):
    found = {name: (f[name].shape, f[name][...].tolist()) for name in f if isinstance(f[name], h5py.Dataset)}
    for name in f:
        found.update((f"{name}@{key}", numpy.ravel(f[name].attrs[key]).tolist()) for key in f[name].attrs)
    return found


class Program:
    """Random requests; `model`: what readers see."""

    def __init__(self, model, chance):
        self.model, self.chance, self.count = model, chance, 0

    def of(self, names):
        return self.chance.choice([name for name in names if name in self.model] or [None])

    def append(self):
        name = self.of(ROWS)
        if name:
            (rows,), old = self.model[name]
            n, self.count = self.chance.choice((1, 3, 9)), self.count + 1
            new = old + pattern(4 * rows, 4 * n, self.count).view("<i4").tolist()
            yield ("open", name, 1, APPEND), False
            self.model[name] = (rows + n,), new
            yield ("write", 1, 4 * rows, 4 * n, self.count), False
            yield ("close", 1), False

    def shape(self):
        if "plane" in self.model:
            (rows, columns), old = self.model["plane"]
            shape = self.chance.choice(((self.chance.choice((2, 4, 7)), columns), (rows, self.chance.choice((2, 5)))))
            new = numpy.zeros(shape, int)
            keep = min(rows, shape[0]), min(columns, shape[1])
            new[:keep[0], :keep[1]] = numpy.array(old)[:keep[0], :keep[1]]
            self.model["plane"] = shape, new.tolist()
            yield ("set", "plane", "h5fs.shape", "%d,%d" % shape), False

    def attribute(self):
        return self.of([key for key in self.model if key.endswith(("@same", "@own", "@half")) or key.startswith("many@")])

    def set(self):
        key = self.attribute()
        if key:
            self.count += 1
            self.model[key] = [self.count % 100] * len(self.model[key])
            name, attribute = key.split("@")
            value = str(self.model[key]) if len(self.model[key]) > 1 else str(self.model[key][0])
            yield ("set", name, f"user.{attribute}", value.replace(" ", "")), False

    def remove(self):
        key = self.attribute()
        if key:
            del self.model[key]
            name, attribute = key.split("@")
            yield ("remove", name, f"user.{attribute}"), False

    def unlink(self):
        name = self.of(["alone", *(f"d{i}" for i in range(6)), *ROWS[2:]])
        if name:
            for key in [key for key in self.model if key.split("@")[0] == name]:
                del self.model[key]
            yield ("unlink", name), False

    def commit(self):
        yield ("commit",), True

    def requests(self):
        for _ in range(REQUESTS):
            make_some = self.chance.choice([self.append, self.append, self.shape, self.set, self.set, self.remove, self.unlink, self.commit])
            yield from make_some()
        yield from self.commit()


class CrashShared(CrashCase):
    states = 15
    appends = False  # libhdf5 damages the header of a dataset whose shape is shared when it changes that

    def look(self, image, models):
        with h5py.File(h5py.h5f.open_file_image(bytes(image))) as f:
            found = contents(f)
        for name in {name for model in models for name in model} | set(found):
            if not any(found.get(name) == model.get(name) for model in models):
                raise AssertionError(f"{name} is {str(found.get(name))[:300]}, of {[str(model.get(name))[:100] for model in models]}")
        path = self.file("image.h5")
        with open(path, "wb") as f:
            f.write(image)
        said = subprocess.run([H5FS, "--check", path], capture_output=True, text=True, check=False).stdout
        if re.search(r"counts \d+ uses, but there are \d+$", said, re.M):
            raise AssertionError(said)

    def check_counts(self, before, events):
        """After a kill between any two calls, the table of shared messages and its trees count the same."""
        image, path = bytearray(before), self.file("counts.h5")
        for i, event in enumerate(events):
            if not event[1]:  # the file, not its journal
                apply(image, event)
                with open(path, "wb") as f:
                    f.write(image)
                try:
                    records(path)
                except AssertionError as error:
                    self.fail(f"killed after call {i}: {error}")

    def start(self, style):
        path, pristine = self.file("f.h5"), self.file(f"{style}.h5")
        if not os.path.exists(pristine):
            make(pristine, *FILES[style], 6)
            with h5py.File(pristine, "r+", libver="latest") as f:
                add_growing(f)
        shutil.copy(pristine, path)
        with h5py.File(path) as f:
            return path, contents(f)

    def test_crashes(self):
        for style in STYLES:
            chance = random.Random(f"{style} {SEED}")
            with self.subTest(style):
                path, model = self.start(style)
                with open(path, "rb") as f:
                    before = f.read()
                first, shell, history = dict(model), Shell(path, self.file("record")), []
                for words, durable in Program(model, chance).requests():
                    self.assertEqual(shell.ask(*words)[0], 0, words)
                    history.append((shell.ask("digest")[1], durable, dict(model)))
                self.assertEqual(shell.end(), 0)
                with open(path, "rb") as f:
                    self.look(f.read(), [model])
                record = Record(self.file("record"))
                self.check_counts(before, record.events)
                self.replay(path, before, record, history, first, chance)

    def one_fault(self, style, fault, n):
        """The n-th call of each request fails, and it is made again; then all is committed. Whether one has failed."""
        path, model = self.start(style)
        shell, fired = Shell(path), False
        program = Program(model, random.Random(f"{style} {SEED}"))
        for make_some in program.append, program.set, program.remove, program.unlink, program.shape, program.set:
            for words, _ in make_some():
                shell.ask(fault, n)
                error, _, now, _ = shell.ask(*words)
                fired |= now
                self.assertTrue(now or not error, words)
                if error:
                    error, _, _, _ = shell.ask(*words)
                    self.assertEqual(error, 0, words)
            self.assertEqual(shell.ask("commit")[0], 0)
        self.assertEqual(shell.end(), 0)
        with open(path, "rb") as f:
            self.look(f.read(), [model])
        run = subprocess.run([H5FS, "--check", path], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertNotIn("uses, but there are", run.stdout)
        return fired

    def test_each_allocation_and_read_fails(self):
        for style, fault in ("one list", "fail-memory"), ("B-trees", "fail-memory"), ("one list", "fail-read"), ("B-trees", "fail-read"):
            with self.subTest(style=style, fault=fault):
                n = 1
                while self.one_fault(style, fault, n):
                    n += 1 + n // 2
                self.assertGreater(n, 3)


if __name__ == "__main__":
    main()
