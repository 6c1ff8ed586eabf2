#!/usr/bin/python3
"""What a crash, or a call that fails, leaves of a family of files that is written: rows across the ends of members, new members, new objects,
attributes. The calls are recorded without FUSE (tests/lib/vfs_shell.c), as those of one file; each that crosses the end of a member is two.
libhdf5 reads the members that a crash leaves."""
import glob
import os
import random
import unittest

from crashlib import SEED, Record, fault_step, split
from mountlib import main
from pieceslib import PiecesCrash, newer


class CrashFamily(PiecesCrash):
    states = 25

    def use(self, piece):
        self.piece, self.driver = piece, {"driver": "family", "memb_size": piece}

    def first(self, stem):
        return self.file(f"{stem}_00000.h5")

    def library_name(self, path):
        return path.replace("00000", "%05d")

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

    def test_crashes(self):
        for piece, libver in (5003, "earliest"), (8192, "latest"), (4100, "latest"):
            chance = random.Random(f"{piece} {SEED}")
            with self.subTest(piece=piece, libver=libver):
                self.use(piece)
                path, before, first, history = self.run_requests(libver, chance)
                self.assertGreater(len(glob.glob(self.file("f_?????.h5"))), len(before) // piece + 2)
                record, counts = Record(self.file("record")), [0]
                parts = [split(event, piece) for event in record.events]
                for part in parts:
                    counts.append(counts[-1] + len(part))
                if piece % 4096:
                    self.assertGreater(counts[-1], len(parts))
                record.events = [event for part in parts for event in part]
                self.replay(path, before, record, [(counts[calls], *more) for calls, *more in history], first, chance)
                self.assertGreater(self.counts["power cut, then recovery"], 0)
                self.clear()

    def test_each_call_fails(self):
        self.use(5003)
        n, step, fired = 1, fault_step(5), True
        while fired:
            fired, (acknowledged, found, wanted) = self.one_fault(n, "earliest")
            self.assertTrue(acknowledged <= found <= wanted)
            n += step
        self.assertGreater(n, 10 + step)

    @unittest.skipUnless(newer(), "no newer libhdf5")
    def test_newer_libraries_read_it(self):
        for piece, libver in (5003, "earliest"), (8192, "latest"):
            self.use(piece)
            path, *_ = self.run_requests(libver, random.Random(SEED))
            self.agree_newer(path)
            self.clear()


if __name__ == "__main__":
    main()
