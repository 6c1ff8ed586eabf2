"""Files in several pieces that are written: what is the same for all drivers."""
import glob
import json
import os
import random
import subprocess

import h5py
import numpy

from crashlib import SEED, CrashCase, Shell
from mountlib import H5FS, MountCase, read, refusal

JUDGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../contrib/judges")
WIDTH = 9  # numbers of a row that PiecesCase.append() appends
ROW = 36  # bytes of a row in PiecesCrash
READ = """
import h5py, json, sys
with h5py.File(sys.argv[1], "r", **json.loads(sys.argv[2])) as f:
    f.visititems(lambda name, o: (dict(o.attrs), o[()] if isinstance(o, h5py.Dataset) else None) and None)
"""


def newer():
    """The newer versions of libhdf5 that may judge."""
    return subprocess.run([JUDGES, "list"], capture_output=True, text=True, check=True).stdout.split()


def rows(begin, end):
    return (numpy.arange(begin, end)[:, None] * 3 + numpy.arange(WIDTH)[None, :]).astype("<i4")


class PiecesCase(MountCase):
    def append(self, m, begin, end):
        with open(m.at("rows"), "ab", buffering=0) as f:
            f.write(rows(begin, end).tobytes())

    def assertRefused(self, first, words, options="rw"):
        """It cannot be mounted, and all files stay as they are."""
        before = {name: read(name) for name in filter(os.path.isfile, glob.glob(self.file("*")))}
        _, said = refusal(first, options=options)
        self.assertRegex(said, words)
        self.assertEqual({name: read(name) for name in filter(os.path.isfile, glob.glob(self.file("*")))}, before)
        self.assertEqual(glob.glob(self.file("*journal")), [])


def pattern_bytes(begin, end):
    """What the shell's `write` writes with seed 1."""
    at = numpy.arange(begin, end)
    return ((1 + 7 * at + 13 * (at // 256)) % 256).astype("u1").tobytes()


class PiecesCrash(CrashCase):
    """Requests, and what a crash or a call that fails leaves of them. The class of a driver has `driver`, which are h5py's arguments, and

    first(stem)                 the path of the first piece
    library_name(path)          by which libhdf5 opens the file of that first piece
    get(path)                   what the pieces hold, as `crashes` has it
    put_members(path, image)    the opposite
    """
    kinds = ("rows", "rows", "gzip", "gzip", "mkdir", "set", "commit")  # of requests
    ends = (["close", 1], False), (["close", 2], False), (["commit"], True)

    def make(self, libver):
        with h5py.File(self.library_name(self.first("f")), "w", libver=libver, **self.driver) as f:
            f.create_dataset("rows", (0, ROW), "u1", maxshape=(None, ROW), chunks=(7, ROW))
            f.create_dataset("gzip", (0, ROW), "u1", maxshape=(None, ROW), chunks=(40, ROW), compression="gzip")
            f.create_group("group")
        return self.first("f")

    def clear(self):
        for name in glob.glob(self.file("*")):
            os.remove(name)

    def put(self, path, images):
        self.put_members(path, images[0])
        with open(path + ".h5fs-journal", "wb") as f:
            f.write(images[1])

    def agree_newer(self, path):
        for name in newer():
            subprocess.run([JUDGES, "run", name, "/usr/bin/python3", "-c", READ, self.library_name(path), json.dumps(self.driver)], check=True)

    def agree(self, path):
        if os.environ.get("H5FS_JUDGE") == "all":
            self.agree_newer(path)

    def contents(self, stem="f"):
        with h5py.File(self.library_name(self.first(stem)), "r", **self.driver) as f:
            found = {name: f[name][()].tobytes() for name in ("rows", "gzip")}
            found.update((f"group/{name}", o[()].tobytes() if isinstance(o, h5py.Dataset) else "") for name, o in f["group"].items())
            found.update((f"group@{name}", value) for name, value in f["group"].attrs.items())
        return found

    def look(self, image, models):
        self.put_members(self.first("look"), image)
        found = self.contents("look")
        for name in {name for model in models for name in model} | set(found):
            if not any(found.get(name) == model.get(name) for model in models):
                raise AssertionError(f"{name} is {str(found.get(name))[:200]}, of {[str(model.get(name))[:100] for model in models]}")

    def other_request(self, what, i, chance, model):
        """Those of kinds that only one driver has."""
        raise NotImplementedError(what)

    def requests(self, chance, model, count=40):
        """Each with whether all before is durable then."""
        yield ["open", "rows", 1, os.O_WRONLY], False
        yield ["open", "gzip", 2, os.O_WRONLY], False
        for i in range(count):
            what = chance.choice(self.kinds)
            if what in ("rows", "gzip"):
                begin = len(model[what])
                end = begin + ROW * chance.choice((1, 9, 80))
                model[what] += pattern_bytes(begin, end)
                yield ["write", 1 if what == "rows" else 2, begin, end - begin, 1], False
            elif what == "mkdir":
                model[f"group/{i}"] = ""
                yield ["mkdir", f"group/{i}"], False
            elif what == "set":
                text = model[f"group@a{i % 3}"] = f"{i} " + "z" * chance.choice((0, 30, 3000))
                yield ["set", "group", f"user.a{i % 3}", text], False
            elif what == "commit":
                yield ["commit"], True
            else:
                yield from self.other_request(what, i, chance, model)
        yield from self.ends

    def run_requests(self, libver, chance):
        path = self.make(libver)
        before, model = self.get(path), self.contents()
        first, history = dict(model), []
        shell = Shell(path, self.file("record"))
        for words, durable in self.requests(chance, model):
            error, calls, _, _ = shell.ask(*words)
            self.assertEqual(error, 0, words)
            history.append((calls, durable, dict(model)))
        self.assertEqual(shell.end(), 0)
        self.look(self.get(path), [model])
        return path, before, first, history

    def check_sound(self, path):
        run = subprocess.run([H5FS, "--check", path], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout)

    def one_fault(self, n, libver):
        """The n-th call to write, resize or sync fails. Returns whether it came to that, and the names at first, found and in the end."""
        path = self.make(libver)
        model = self.contents()
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
        found = self.contents()
        for name in ("rows", "gzip"):  # nothing that was acknowledged is lost, and nothing is wrong
            self.assertTrue(model[name].startswith(found[name]), name)
            self.assertGreaterEqual(len(found[name]), len(models[0][name]))
        self.check_sound(path)
        self.clear()
        return fired, (set(models[0]), set(found), set(model))
