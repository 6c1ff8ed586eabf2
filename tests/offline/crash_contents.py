#!/usr/bin/python3
"""What a crash leaves of contents at any instant. Files are made, written, declared, cut, punched, replaced and removed, datasets of all
layouts and indexes and groups of all storage forms go, attributes come, change and go, and their space is used again, without FUSE
(tests/lib/vfs_shell.c). Then the files are made up that a kill or a power cut may leave, and libhdf5 reads each as a whole: every object
and attribute that the last acknowledged commit had, and that nothing has changed since, is there as it was; what has changed is as before
or as after.

tests/lib/crashlib.py has the variables that say how much is looked at."""
import os
import random
import subprocess
import unittest

import h5py
import numpy as np

import crashlib
from contents_model import Model, Program, wrong

REQUESTS = int(os.environ.get("H5FS_CRASH_REQUESTS", "130"))
UNLIMITED = h5py.h5s.UNLIMITED
STYLES = {
    "symbol tables": dict(libver="earliest"),
    "superblock 2": dict(libver=("v108", "v108")),
    "latest": dict(libver="latest"),
    "tracked": dict(libver="latest", track_order=True),
}


def low_level(f, name, shape, chunks=None, maxshape=None, early=False, compact=False):
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if chunks:
        how.set_chunk(chunks)
    if early:
        how.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    if compact:
        how.set_layout(h5py.h5d.COMPACT)
    d = h5py.Dataset(h5py.h5d.create(f.id, name.encode(), h5py.h5t.STD_I32LE, h5py.h5s.create_simple(shape, maxshape), how))
    d[...] = 7


def make_datasets(f):
    data = np.arange(30 * 20, dtype="<i4").reshape(30, 20)
    f["scalar"] = 5
    low_level(f, "compact", (8,), compact=True)
    f["contiguous"] = np.arange(1000)
    f.create_dataset("nothing", (10,), "<i4")
    f["texts"] = np.array(["some", "text of more bytes"], dtype=h5py.string_dtype())
    f["type"] = np.dtype("<i4")
    f.create_dataset("typed", (9,), f["type"], data=np.arange(9))
    for name, filters in ("", {}), ("-filtered", dict(compression=4, shuffle=True)):
        f.create_dataset("single" + name, data=data, chunks=data.shape, **filters)
        f.create_dataset("fixed" + name, data=data, chunks=(7, 9), **filters)
        f.create_dataset("paged" + name, (1300,), "u1", chunks=(1,), **filters)[1000:1100] = 1
        f.create_dataset("growing" + name, data=data, chunks=(3, 20), maxshape=(None, 20), **filters)
        f.create_dataset("tree" + name, data=data, chunks=(3, 20), maxshape=(None, None), **filters)
        f.create_dataset("super" + name, (1200,), "u1", chunks=(1,), maxshape=(None,), **filters)[::5] = 1
        f.create_dataset("large tree" + name, (300, 3), "<i4", chunks=(1, 2), maxshape=(None, None), data=np.arange(900).reshape(300, 3), **filters)
    f.create_dataset("super-paged", (140_000,), "u1", chunks=(1,), maxshape=(None,))[139_990:] = 1
    low_level(f, "implicit", (20, 30), (7, 8), early=True)
    low_level(f, "early", (20, 30), (7, 8), (UNLIMITED, 30), early=True)


def make_groups(f, **options):
    for name, links in ("empty", 0), ("small", 3), ("seven", 7), ("eight", 8), ("many", 60):
        g = f.create_group(name, **options)
        for i in range(links):
            g["link of some length %u" % i] = h5py.SoftLink("/" + "x" * (i % 50))
    for i in range(7):
        f["seven"].create_dataset(f"data {i}", data=np.arange(i + 1, dtype="u1"), maxshape=(None,), chunks=(16,))


def make_attributes(f, dense, **options):
    for name, count in ("few", 3), ("eight", 8), ("more", 40):
        g = f.create_group(name + " attributes", **options)
        for i in range(count):
            g.attrs[f"a{i}"] = "text %u" % i if i % 3 else np.int64(i)
        g.attrs["array"] = np.arange(20)
        g.attrs.create("typed", 5, dtype=f["type"])
    if dense:
        for i in range(3):
            f["more attributes"].attrs["huge %u" % i] = np.arange(9000 + i)
    d = f.create_dataset("with attributes", data=np.arange(10), chunks=(2,), maxshape=(None,))
    for i in range(12):
        d.attrs[f"a{i}"] = "text %u" % i


def make(path, options):
    """The file, and the model of it."""
    track = {key: value for key, value in options.items() if key == "track_order"}
    with h5py.File(path, "w", **options) as f:
        make_datasets(f)
        make_groups(f, **track)
        make_attributes(f, "earliest" not in options["libver"], **track)
    with open(path, "rb") as f:
        return Model.of(f.read())


class CrashContents(crashlib.CrashCase):
    states = 16

    def look(self, image, models):
        for what in wrong(Model.of(image), models):
            self.fail(what)

    def test_reclaim(self):
        """Giving unused space back changes nothing that can be read, whenever it ends."""
        for style, options in STYLES.items():
            chance = random.Random(f"{style} {crashlib.SEED} reclaim")
            with self.subTest(style, seed=crashlib.SEED):
                path = self.file("data.h5")
                make(path, options)
                with h5py.File(path, "r+") as f:
                    for name in "fixed", "many", "more attributes", "super", "large tree-filtered":
                        del f[name]
                with open(path, "rb") as f:
                    before = f.read()
                model, record = Model.of(before), self.file("record")
                run = subprocess.run([crashlib.SHELL, "--reclaim", path, record], capture_output=True, text=True, check=False)
                self.assertEqual((run.returncode, run.stderr), (0, ""))
                record = crashlib.Record(record)
                self.assertTrue(any(event[0] == crashlib.PUNCH for event in record.events))
                self.replay(path, before, record, [], model, chance)

    def test_all_styles(self):
        done = {}
        for style, options in STYLES.items():
            chance = random.Random(f"{style} {crashlib.SEED}")
            with self.subTest(style, seed=crashlib.SEED):
                path = self.file("data.h5")
                model = make(path, options)
                with open(path, "rb") as f:
                    before = f.read()
                shell = crashlib.Shell(path, self.file("record"))
                self.addCleanup(shell.stop)
                program = Program(model.copy(), shell, chance, REQUESTS)
                program.run()
                self.assertEqual(shell.end(), 0)
                for word, count in program.done.items():
                    done[word] = done.get(word, 0) + count
                with open(path, "rb") as f:
                    self.check(f.read(), [program.model], "at the end")
                record = crashlib.Record(self.file("record"))
                self.replay(path, before, record, program.history, model, chance)
        print(done, self.counts)
        # Nothing is left out by chance.
        self.assertLessEqual({"create", "write", "resize", "punch", "unlink", "rmdir", "rename", "set", "remove", "fsync"}, set(done))


if __name__ == "__main__":
    unittest.main(verbosity=2)
