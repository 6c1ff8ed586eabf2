#!/usr/bin/python3
"""What a crash, or a call that fails, leaves of a file of the split driver that is written: rows in one member, all that refers to them in
the other. The calls are recorded without FUSE (tests/lib/vfs_shell.c). A power cut leaves of each member what it likes. libhdf5 reads the
members that a crash leaves."""
import os
import random
import unittest

from crashlib import RESIZE, SEED, SYNC, Crashes, Record, Shell, fault_step
from mountlib import main
from pieceslib import PiecesCrash, newer

RAW = 2**63 - 1  # where the second member begins


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


class CrashSplit(PiecesCrash):
    states, kills_recovered = 30, 3
    crashes = Members
    driver = {"driver": "split"}
    kinds = "rows", "rows", "gzip", "gzip", "mkdir", "set", "put", "unlink", "commit", "cut"
    ends = *PiecesCrash.ends, (["release"], True)

    def first(self, stem):
        return self.file(f"{stem}-m.h5")

    def library_name(self, path):
        return path.removesuffix("-m.h5")

    def names(self, path):
        return [path, path[:-4] + "r.h5"]

    def get(self, path):
        members = []
        for name in self.names(path):
            with open(name, "rb") as f:
                members.append(f.read())
        return members

    def put_members(self, path, image):
        for name, member in zip(self.names(path), image):
            with open(name, "wb") as f:
                f.write(member)

    def other_request(self, what, i, chance, model):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        made = [name for name in model if name.startswith("group/put")]
        if what == "put":
            data = chance.randbytes(chance.choice((10, 9000)))
            yield ["put", f"group/put{i}", flags, data.hex()], False
            model[f"group/put{i}"] = data
        elif what == "unlink" and made:
            yield ["commit"], True
            del model[made[-1]]
            yield ["unlink", made[-1]], False
        elif what == "cut":  # the raw data's member ends with them
            yield ["put", f"group/cut{i}", flags, "61" * 90_000], False
            model[f"group/cut{i}"] = b"a" * 90_000
            yield ["commit"], True
            del model[f"group/cut{i}"]
            yield ["unlink", f"group/cut{i}"], False
            yield ["commit"], True
            yield ["release"], True

    def test_crashes(self):
        for libver in "earliest", "latest":
            chance = random.Random(f"{libver} {SEED}")
            with self.subTest(libver=libver):
                path, before, first, history = self.run_requests(libver, chance)
                self.replay(path, before, Record(self.file("record")), history, first, chance)
                self.assertGreater(self.counts["power cut, then recovery"], 0)
                self.clear()

    def test_each_call_fails(self):
        step = fault_step(5)
        for libver in "earliest", "latest":
            n = 1
            while self.one_fault(n, libver)[0]:
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
        self.check_sound(path)
        found = self.contents()
        self.assertIn("group/c", found)
        self.assertEqual("group/a" in found, "group/b" not in found)  # both changes of the commit, or neither
        self.clear()
        return fired

    def test_each_allocation_fails(self):
        step = fault_step(1)
        for what in "commit", "release":
            n = 1
            while self.one_allocation(n, what):
                n += step
            self.assertGreater(n, 3, what)

    @unittest.skipUnless(newer(), "no newer libhdf5")
    def test_newer_libraries_read_it(self):
        for libver in "earliest", "latest":
            path, *_ = self.run_requests(libver, random.Random(SEED))
            self.agree_newer(path)
            self.clear()


if __name__ == "__main__":
    main()
