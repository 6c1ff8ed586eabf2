#!/usr/bin/python3
"""What a crash leaves of datasets whose dimensions change, all of them, with every index of chunks: version 1 and 2 B-trees, fixed arrays,
and extensible arrays, in which the dimension without a maximum comes first though it is another one. Shapes change, elements are written and
erased, without FUSE (tests/lib/vfs_shell.c). After each crash libhdf5 reads all of them: each has a shape that it had since the last
acknowledged commit, or the part that two of these have in common, and in it the elements of then, but for those overwritten since."""
import os
import random

import h5py
import numpy

from contents_model import pattern
from crashlib import SEED, CrashCase, Record, Shell
from mountlib import main

REQUESTS = int(os.environ.get("H5FS_CRASH_REQUESTS", 60))
NONE = None
# Shape, maximum, chunks, and the filters of the second dataset of that kind.
KINDS = {
    "rows": ((5, 6), (NONE, 12), (2, 5), dict(compression=1)),
    "columns": ((3, 6), (3, NONE), (2, 4), dict(compression=1, shuffle=True)),
    "many": ((2, 30), (4, NONE), (2, 1), dict(fletcher32=True)),  # chunks, so that the array has all its levels
    "cube": ((3, 4, 2), (5, NONE, 3), (2, 3, 2), dict(compression=1)),
    "both": ((6, 5), (NONE, NONE), (2, 2), dict(fletcher32=True)),
    "fixed": ((5, 6), (9, 12), (2, 5), dict(compression=1)),
}
INDEXES = {"rows": b"EAHD", "columns": b"EAHD", "many": b"EAHD", "cube": b"EAHD", "both": b"BTHD", "fixed": b"FAHD"}


def common(one, other):
    return tuple(map(min, one, other))


def cut(array, shape):
    return array[tuple(map(slice, shape))]


def resized(array, shape):
    """As H5Dset_extent: what is in both shapes stays, the rest is the fill value."""
    new = numpy.zeros(shape, "u1")
    both = tuple(map(slice, common(array.shape, shape)))
    new[both] = array[both]
    return new


def states_of(arrays):
    """Those that a dataset goes through: a shape of which one side is larger and one smaller than before comes in two steps."""
    states = []
    for array in arrays:
        if states:
            least = common(states[-1].shape, array.shape)
            if least not in (states[-1].shape, array.shape):
                states.append(cut(states[-1], least))
        states.append(array)
    return states


def is_one_of(found, states):
    """Each element is that of a state with this shape, or of a later one, or of an earlier one since which it was never outside."""
    for k, state in enumerate(states):
        if state.shape != found.shape:
            continue
        good, inside = found == state, numpy.ones(found.shape, bool)
        for earlier in states[:k][::-1]:
            inside &= resized(numpy.ones(earlier.shape, "u1"), found.shape) == 1
            good |= inside & (resized(earlier, found.shape) == found)
        for later in states[k + 1:]:
            good |= (resized(numpy.ones(later.shape, "u1"), found.shape) == 1) & (resized(later, found.shape) == found)
        if good.all():
            return True
    return False


class Program:
    def __init__(self, model, chance):
        self.model, self.chance, self.count = model, chance, 0

    def shape(self):
        name = self.chance.choice(sorted(self.model))
        now, most = self.model[name].shape, KINDS[name.split("-")[0]][1]
        shape = list(now)
        for i in self.chance.sample(range(len(now)), self.chance.randint(1, len(now))):
            top = most[i] if most[i] is not None else now[i] + self.chance.choice((1, 8, 60) if name.startswith("many") else (1, 4, 9))
            shape[i] = self.chance.choice([0, 1, top, self.chance.randint(0, top), self.chance.randint(0, top), max(0, now[i] - 3)])
        self.model[name] = resized(self.model[name], tuple(shape))
        yield ("set", name, "h5fs.shape", ",".join(map(str, shape))), False

    def change(self):
        """Elements are written, or erased."""
        name = self.chance.choice(sorted(self.model))
        array = self.model[name].copy()
        if not array.size:
            return
        self.count += 1
        at = self.chance.randrange(array.size)
        n = min(array.size - at, self.chance.choice((1, 7, 40)))
        erases = not self.chance.randrange(4)
        array.reshape(-1)[at:at + n] = 0 if erases else numpy.frombuffer(pattern(at, n, self.count), "u1")
        yield ("open", name, 1, os.O_WRONLY), False
        self.model[name] = array
        yield ("punch", 1, at, n) if erases else ("write", 1, at, n, self.count), False
        yield ("close", 1), False

    def requests(self):
        for _ in range(REQUESTS):
            what = self.chance.randrange(9)
            if what < 4:
                yield from self.shape()
            elif what < 8:
                yield from self.change()
            else:
                yield ("commit",), True
        yield ("commit",), True


def contents(f):
    return {name: d[...] for name, d in f.items()}


class CrashShape(CrashCase):
    states = 40

    def look(self, image, models):
        with h5py.File(h5py.h5f.open_file_image(bytes(image))) as f:
            found = contents(f)
        self.assertEqual(set(found), set(models[0]))
        for name, array in found.items():
            if not is_one_of(array, states_of([model[name] for model in models])):
                raise AssertionError(f"{name} is {array.tolist()}, of {[(m[name].shape, m[name].tolist()) for m in models][-3:]}")

    def make(self, libver):
        path = self.file("f.h5")
        with h5py.File(path, "w", libver=libver) as f:
            for name, (shape, most, chunks, filters) in KINDS.items():
                data = (numpy.arange(numpy.prod(shape)) % 250 + 1).astype("u1").reshape(shape)
                for suffix, how in ("", {}), ("-filtered", filters):
                    f.create_dataset(name + suffix, data=data, maxshape=most, chunks=chunks, **how)
            return path, contents(f)

    def test_crashes(self):
        for libver in "earliest", "latest":
            chance = random.Random(f"{libver} {SEED}")
            with self.subTest(libver=libver, seed=SEED):
                path, model = self.make(libver)
                with open(path, "rb") as f:
                    before = f.read()
                if libver == "latest":
                    for signature in INDEXES.values():
                        self.assertIn(signature, before)
                first, history, shell = dict(model), [], Shell(path, self.file("record"))
                self.addCleanup(shell.stop)
                for words, durable in Program(model, chance).requests():
                    error, calls, _, _ = shell.ask(*words)
                    self.assertEqual(error, 0, words)
                    history.append((calls, durable, dict(model)))
                self.assertEqual(shell.end(), 0)
                with open(path, "rb") as f:
                    self.check(f.read(), [model], "in the end")
                self.replay(path, before, Record(self.file("record")), history, first, chance)
        print(self.counts)
        self.assertGreater(self.counts["power cut, then recovery"], 0)


if __name__ == "__main__":
    main()
