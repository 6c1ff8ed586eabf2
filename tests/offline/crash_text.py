#!/usr/bin/python3
"""What a crash, or a call that fails, leaves of text, of attributes, and of files below .h5fs, that are written. Lines are written without FUSE
(tests/lib/vfs_shell.c), and all calls that write are recorded. After each crash libhdf5 reads each dataset: its elements are those of one
state between the last acknowledged commit and now; no pointer is torn, no value is another's, and none is one that was freed."""
import io
import json
import os
import random
import re
import subprocess

import h5py
import numpy

from crashlib import H5FS, SEED, CrashCase, Record, Shell, fault_step
from textlib import of
from mountlib import main

EVENT = numpy.dtype([("station", h5py.string_dtype()), ("days", h5py.vlen_dtype("<i4")), ("n", "<u2")])
STYLES = {"earliest": dict(libver="earliest"), "superblock 2": dict(libver=("v108", "v108")), "latest": dict(libver="latest")}
READ, WRITE_ONLY, APPEND, TRUNCATE = os.O_RDONLY, os.O_WRONLY, os.O_WRONLY | os.O_APPEND, os.O_WRONLY | os.O_TRUNC
ATTRIBUTES = [(where, f"a{i}") for where in ("", "log", "fixed", "gzip") for i in range(3)]
LINES, EVENTS, KEEPING = ("log", "gzip", "paged"), ("events",), ("fixed", "scalar")
ARRAYS, TABLES = [f"array {i}" for i in range(4)], [f"table {i}" for i in range(3)]  # the first of them is there
REQUESTS = int(os.environ.get("H5FS_CRASH_REQUESTS", 60))


def make(path, options):
    with h5py.File(path, "w", **options) as f:
        text = h5py.string_dtype()
        f.create_dataset("log", (0,), text, maxshape=(None,), chunks=(64,))
        f.create_dataset("gzip", (2,), text, maxshape=(None,), chunks=(5,), compression="gzip")[...] = ["of libhdf5", "x" * 5000]
        f.create_dataset("paged", (300,), text, maxshape=(None,), chunks=(100,))[...] = [f"line {i}" for i in range(300)]
        f.create_dataset("events", (1,), EVENT, maxshape=(None,), chunks=(3,))[0] = ("Oslo", numpy.arange(3), 7)
        f.create_dataset("fixed", (3,), text)[...] = ["a", "b", "c"]
        f["scalar"] = "one"
        f.create_dataset("numbers", (9,), "<i4", maxshape=(None,), chunks=(4,))[...] = numpy.arange(9)
        f.create_dataset(ARRAYS[0], data=numpy.arange(40.0).reshape(10, 4), maxshape=(None, 4), chunks=(3, 4), compression="gzip")
        f.create_dataset(TABLES[0], data=numpy.array([(1, b"a")], [("n", "<i8"), ("word", "S3")]), maxshape=(None,), chunks=(8,))
        for i in range(9):  # so many are in dense storage, but for the earliest format
            f["gzip"].attrs[f"n{i}"] = i
        f["log"].attrs["a0"], f["fixed"].attrs["a1"] = "of libhdf5", "of libhdf5, too"


def whole(array):
    return str(array.dtype), array.shape, array.tolist()


def contents(f):
    """Of each dataset its elements, of some also their type and shape; of each attribute its text."""
    found = {f"@{key}": value for key, value in f.attrs.items()}
    for name in f:
        found[name] = whole(f[name][...]) if name in ARRAYS + TABLES else [of(v) for v in numpy.ravel(f[name][()])]
        found.update((f"{name}@{key}", value) for key, value in f[name].attrs.items())
    return found


def copy(model):
    return {name: list(value) if isinstance(value, list) else value for name, value in model.items()}


class Program:
    """Random requests; `model`: what readers see."""

    def __init__(self, model, chance, longest=60_000):
        self.longest = longest  # text of an attribute
        self.model, self.chance, self.files, self.count, self.fits = model, chance, {}, 0, True

    def line(self, name):
        """A line, and its element."""
        self.count += 1
        text = f"{self.count} " + "y" * self.chance.choice((0, 3, 20, 20, 300, 5000))
        if name not in EVENTS:
            return text, text.encode()
        days = [self.chance.randrange(-99, 99) for _ in range(self.chance.choice((0, 1, 30)))]
        value = {"days": days, "station": text, "n": self.count}
        return json.dumps(value), [text.encode(), days, self.count]

    def write(self):
        number = self.chance.choice(sorted(self.files)) if self.files else None
        if number is None:
            return
        name, new = self.files[number]
        pairs = [self.line(name) for _ in range(self.chance.choice((1, 1, 2, 10, 40)))]
        if name in KEEPING:  # these take no more lines
            pairs = pairs[:len(self.model[name]) - len(new)] if new is not None else []
        if not pairs:
            return
        (self.model[name] if new is None else new).extend(element for _, element in pairs)
        yield ["text", number, "".join(text + "|" for text, _ in pairs)], False

    def set(self):
        where, name = self.chance.choice(ATTRIBUTES)
        self.count += 1
        text = self.model[f"{where}@{name}"] = f"{self.count} " + "z" * self.chance.choice((0, 20, 300, 5000))
        yield ["set", where, f"user.{name}", text], False

    def remove(self):
        there = [(where, name) for where, name in ATTRIBUTES if f"{where}@{name}" in self.model]
        if not there:
            return
        where, name = self.chance.choice(there)
        del self.model[f"{where}@{name}"]
        yield ["remove", where, f"user.{name}"], False

    def shrink(self):
        name = self.chance.choice(LINES + EVENTS)
        if self.model[name]:
            del self.model[name][self.chance.randrange(len(self.model[name])):]
            yield ["set", name, "h5fs.shape", len(self.model[name])], False

    def open(self):
        number = next(n for n in range(1, 9) if n not in self.files)
        name = self.chance.choice(LINES + EVENTS)
        if len(self.files) < 4:
            self.files[number] = name, None
            yield ["open", name, number, APPEND], False

    def rewrite(self):
        """New lines for a dataset; they take the place of the old ones when that is asked for."""
        number = next(n for n in range(1, 9) if n not in self.files)
        name = self.chance.choice(LINES + EVENTS + KEEPING)
        if len(self.files) < 4 and name not in [name for name, new in self.files.values() if new is not None]:
            self.files[number] = name, []
            yield ["open", name, number, TRUNCATE], False

    def switch(self, number):
        """A rewriting ends. Whether the number of lines is right."""
        name, new = self.files[number]
        if new is None:
            return True
        if name in KEEPING and len(new) != len(self.model[name]):
            return False
        self.model[name][:] = new
        self.files[number] = name, None
        return True

    def end(self, word, number=None):
        number = number or self.chance.choice(sorted(self.files)) if self.files else None
        if number is None:
            return
        self.fits = self.switch(number)
        yield [word, number], word == "fsync" and self.fits
        self.fits = True
        if word == "close":
            del self.files[number]

    def put(self, path, data, flags=TRUNCATE):
        """A program writes a whole file."""
        yield ["put", path, flags, data.hex()], False

    def array(self):
        name = self.chance.choice(ARRAYS)
        shape = [self.chance.choice((1, 3, 30)), 4][:self.chance.choice((0, 1, 2, 2))]
        array = numpy.array(numpy.random.default_rng(self.chance.randrange(1 << 30)).integers(0, 99, shape),
                            self.chance.choice(("<f8", "<f8", ">i2", "<c16")), order=self.chance.choice("CF"))
        out = io.BytesIO()
        numpy.lib.format.write_array(out, array)
        self.model[name] = whole(array)
        yield from self.put(f".h5fs/npy/{name}.npy", out.getvalue())

    def table(self):
        name = self.chance.choice(TABLES)
        rows = [(i, self.chance.choice((b"a", b"bcd"))) for i in range(self.chance.choice((1, 5, 50)))]
        if self.chance.randrange(2):  # the type that is there, if it is
            rows[0] = (-1, b"bcd")
        size = max(len(word) for _, word in rows)
        if name in self.model and "S3" in self.model[name][0]:
            size = 3
        self.model[name] = whole(numpy.array(rows, [("n", "<i8"), ("word", f"S{size}")]))
        yield from self.put(f".h5fs/csv/{name}.csv", b"n,word\n" + b"".join(b"%d,%s\n" % row for row in rows))

    def attribute(self):
        name, key = self.chance.choice(("log", "events")), self.chance.choice(("a0", "a", "b"))
        self.count += 1
        text = f"{self.count} " + "z" * self.chance.choice((0, 9, 300, self.longest))
        self.model[f"{name}@{key}"] = text
        yield from self.put(f".h5fs/attrs/{name}/{key}", text.encode())

    def numbers(self):
        flags = self.chance.choice((APPEND, TRUNCATE))
        values = [self.chance.randrange(1 << 31) for _ in range(self.chance.choice((1, 3, 300)))]
        self.model["numbers"] = (self.model["numbers"] if flags == APPEND else []) + values
        yield from self.put(".h5fs/lines/numbers", b"".join(b"%d\n" % v for v in values), flags)

    def commit(self):
        yield ["commit"], True

    def requests(self):
        for _ in range(REQUESTS):
            make = self.chance.choice([self.open, self.rewrite, self.write, self.write, self.write, self.commit, self.array, self.table,
                                       self.numbers, self.attribute, self.set, self.set, self.remove, self.shrink,
                                       lambda: self.end("fsync"), lambda: self.end("close")])
            yield from make()
        for number in sorted(self.files):
            yield from self.end("close", number)
        yield from self.commit()


class CrashText(CrashCase):
    states = 40

    def look(self, image, models):
        file = h5py.h5f.open_file_image(bytes(image))
        with h5py.File(file) as f:
            found = contents(f)
        for name in {name for model in models for name in model} | set(found):
            if not any(found.get(name) == model.get(name) for model in models):
                raise AssertionError(f"{name} is {str(found.get(name))[:300]}, of {[str(model.get(name))[:100] for model in models]}")

    def start(self, style):
        path = self.file("f.h5")
        make(path, STYLES[style])
        with h5py.File(path) as f:
            model = contents(f)
        return path, model

    def check_lost(self, path):
        """Of all that was replaced and removed, only little could not be freed: what no cell can take out of its collection."""
        said = subprocess.run([H5FS, "--check", path], capture_output=True, text=True, check=True).stdout
        lost = re.search(r"values in the global heap, of (\d+) bytes", said)
        self.assertLess(int(lost.group(1)) if lost else 0, 40000, said)

    def test_crashes(self):
        for style in STYLES:
            chance = random.Random(f"{style} {SEED}")
            with self.subTest(style):
                path, model = self.start(style)
                before = open(path, "rb").read()
                first = copy(model)
                shell, history = Shell(path, self.file("record")), []
                program = Program(model, chance, 60_000 if style == "earliest" else 70_000)
                for words, durable in program.requests():
                    error, calls, _, _ = shell.ask(*words)
                    self.assertEqual(error, 0 if program.fits else 22, words)
                    history.append((calls, durable, copy(model)))
                self.assertEqual(shell.end(), 0)
                with open(path, "rb") as f:
                    self.look(f.read(), [model])
                self.check_lost(path)
                self.replay(path, before, Record(self.file("record")), history, first, chance)

    def begin_program(self):
        path, model = self.start("latest")
        program = Program(model, random.Random(SEED))
        shell = Shell(path)
        for number, name in (1, "log"), (2, "events"):
            self.assertEqual(shell.ask("open", name, number, APPEND)[0], 0)
            program.files[number] = name, None
        self.assertEqual(shell.ask("open", "gzip", 3, TRUNCATE)[0], 0)
        program.files[3] = "gzip", []
        self.old = list(model["gzip"])
        return path, model, program, shell

    def end_program(self, program, shell):
        """The new lines of `gzip` take the place of the old ones. The exit status."""
        self.new = program.files[3][1]
        error, _, self.fired, _ = shell.ask("fsync", 3)
        if not error:
            program.switch(3)
        shell.ask("close", 3)
        return shell.end()

    def check_whole(self, path, model, some):
        """libhdf5 reads elements that were written, in their order; all of them, unless some may be lost."""
        with h5py.File(path) as f:
            for name, elements in contents(f).items():
                if name not in LINES + EVENTS:
                    self.assertEqual(elements, model[name])
                    continue
                if name == "gzip" and some:
                    self.assertIn(elements, (self.old, self.new))
                    continue
                self.assertTrue(all(v in model[name] for v in elements), name)
                if not some:
                    self.assertEqual([v for i, v in enumerate(elements) if v not in elements[:i]], model[name], name)

    def one_fault(self, n):
        """The n-th call to write, resize or sync fails. Whether it came to that."""
        path, model, program, shell = self.begin_program()
        shell.ask("fail", n, 5)
        fired = False
        for i in range(12):
            for words, _ in program.write() if i % 6 != 5 else program.commit():
                error, _, now, _ = shell.ask(*words)
                fired |= now
                self.assertTrue(fired or not error, words)
        status = self.end_program(program, shell)
        fired |= self.fired or status != 0
        if status:  # the next mount heals what the journal has
            self.recover(path, n)
        self.check_whole(path, model, fired)
        return fired

    def test_each_call_fails(self):
        n, step = 1, fault_step(5)
        while self.one_fault(n):
            n += step
        self.assertGreater(n, 10)

    def test_each_allocation_fails(self):
        """A write that finds no memory is sent again until it is done; lines before the one that failed may be there twice."""
        path, model, program, shell = self.begin_program()
        failures = 0
        for i in range(8):
            for words, _ in program.write() if i % 4 != 3 else program.commit():
                n, fired = 1, True
                while fired:
                    shell.ask("fail-memory", n if words[0] == "text" else 0)
                    error, _, fired, _ = shell.ask(*words)
                    self.assertTrue(fired or not error, (words, error))
                    failures += error != 0
                    n += 1 if n < 40 else 1 + n // 8
                    if not error:
                        break
        self.assertGreater(failures, 10)
        self.assertEqual(self.end_program(program, shell), 0)
        self.check_whole(path, model, False)


if __name__ == "__main__":
    main()
