#!/usr/bin/python3
"""Files of the split driver that are mounted for writing: random changes against a model, by both this mount and libhdf5; which
member grows and is cut; kills; what refuses to be written."""
import ctypes
import errno
import fcntl
import glob
import json
import os
import random
import shutil
import struct
import subprocess

import h5py
import numpy

from mountlib import H5FS, Mount, Strace, main, patch, read, write
from pieceslib import JUDGES, WIDTH, PiecesCase, newer, rows

RAW = 2**63 - 1  # where raw data begin in a file of the split driver
LOOK = """
import h5py, json, sys
def text(value):
    return value.decode() if isinstance(value, bytes) else value if isinstance(value, str) else value.tolist()
def look(f):
    found = {}
    def see(name, o):
        found[name] = o[()].tobytes().hex() if isinstance(o, h5py.Dataset) else ""
        found.update((name + "@" + key, text(value)) for key, value in o.attrs.items())
    f.visititems(see)
    return found
"""
exec(LOOK)  # both this process and newer libraries look so


class SplitWrite(PiecesCase):
    def access(self, multi):
        fapl = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
        hdf5 = next(line.split()[-1] for line in open("/proc/self/maps") if "libhdf5" in line and "_hl" not in line)
        library, nothing = ctypes.CDLL(hdf5), (None, None, None, None, 0)
        if multi:
            self.assertGreaterEqual(library.H5Pset_fapl_multi(ctypes.c_int64(fapl.id), *nothing), 0)
        else:
            self.assertGreaterEqual(library.H5Pset_fapl_split(ctypes.c_int64(fapl.id), b"-m.h5", 0, b"-r.h5", 0), 0)
        return fapl

    def make(self, libver="earliest", empty=False, multi=False):
        fapl = self.access(multi)
        if libver == "latest":
            fapl.set_libver_bounds(h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST)
        with h5py.File(h5py.h5f.create(self.file("s").encode(), fapl=fapl)) as f:
            if not empty:
                f.create_dataset("rows", data=rows(0, 5), maxshape=(None, WIDTH), chunks=(8, WIDTH))
                f["group/old"] = numpy.arange(3)
        return self.file("s-s.h5" if multi else "s-m.h5")

    def open(self, mode="r"):
        return h5py.File(self.file("s"), mode, driver="split")

    def check(self, first):
        run = subprocess.run([H5FS, "--check", first], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout)
        self.assertNotIn("not certain", run.stdout)
        return run.stdout

    def look(self):
        with self.open() as f:
            return look(f)

    def judge(self, first, expected):
        """libhdf5, a newer one, and h5fs find the same."""
        self.assertEqual(self.look(), expected)
        self.check(first)
        for name in newer():
            code = LOOK + "with h5py.File(sys.argv[1], 'r', driver='split') as f: print(json.dumps(look(f)))"
            run = subprocess.run([JUDGES, "run", name, "/usr/bin/python3", "-c", code, self.file("s")], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(json.loads(run.stdout), expected, name)

    def change(self, m, chance, model, count):
        """Random requests, in the mount and in the model."""
        for i in range(count):
            what = chance.choice(("append", "append", "append", "make", "remove", "mkdir", "set", "set", "unset", "sync"))
            files = sorted(name for name in model if name.startswith("group/f") and "@" not in name)
            if what == "append":
                begin = len(model["rows"]) // (8 * WIDTH)
                end = begin + chance.choice((1, 7, 200))
                self.append(m, begin, end)
                model["rows"] += rows(begin, end).tobytes().hex()
            elif what == "make":
                name, data = f"group/f{chance.randrange(10**9)}", chance.randbytes(chance.choice((1, 100, 5000, 70_000)))
                write(m.at(name), data)
                model[name] = data.hex()
            elif what == "remove" and files:
                name = chance.choice(files)
                os.remove(m.at(name))
                for key in [key for key in model if key.split("@")[0] == name]:
                    del model[key]
            elif what == "mkdir":
                name = f"group/d{chance.randrange(10**9)}"
                os.mkdir(m.at(name))
                model[name] = ""
            elif what == "set":
                name, key = chance.choice(files + ["group", "rows"]), f"a{chance.randrange(5)}"
                text = f"{i} " + "z" * chance.choice((0, 30, 3000))
                os.setxattr(m.at(name), "user." + key, text.encode())
                model[f"{name}@{key}"] = text
            elif what == "unset":
                keys = sorted(key for key in model if "@a" in key)
                if keys:
                    name, key = (chosen := chance.choice(keys)).split("@")
                    os.removexattr(m.at(name), "user." + key)
                    del model[chosen]
            elif what == "sync":
                with open(m.at("rows"), "rb") as f:
                    os.fsync(f.fileno())

    def test_random_changes(self):
        for libver in "earliest", "latest":
            with self.subTest(libver=libver):
                chance = random.Random(libver)
                first = self.make(libver)
                model = self.look()
                for turn in range(4):
                    with Mount(first, options="rw,sync=fsync" if turn % 2 else "rw") as m:
                        self.change(m, chance, model, 40)
                        self.assertEqual(m.said(), "")
                    self.assertEqual(glob.glob(self.file("*journal")), [])
                    self.judge(first, model)
                    # libhdf5 goes on, in what h5fs has left
                    with self.open("r+") as f:
                        data = numpy.arange(turn * 1000 + 7, dtype="<i8")
                        f[f"group/f{turn}"] = data
                        f[f"group/f{turn}"].attrs["words"] = "by libhdf5"
                        model[f"group/f{turn}"] = data.tobytes().hex()
                        model[f"group/f{turn}@words"] = "by libhdf5"
                        for name in [name for name in model if name.startswith("group/f") and "@" not in name][:1]:
                            del f[name]
                            for key in [key for key in model if key.split("@")[0] == name]:
                                del model[key]
                    self.judge(first, model)
                for old in glob.glob(self.file("s-*")):
                    os.remove(old)

    def sizes(self):
        return [os.path.getsize(self.file(f"s-{letter}.h5")) for letter in "mr"]

    def test_each_member_grows_and_is_cut(self):
        for libver in "earliest", "latest":
            first = self.make(libver)
            before = self.sizes()
            with Mount(first, options="rw") as m:
                self.append(m, 5, 5000)
                write(m.at("large"), b"x" * 300_000)
            metadata, raw = self.sizes()
            self.assertGreater(raw, before[1] + 300_000 + 5000 * 36)
            self.assertLess(metadata, before[0] + 100_000)
            with Mount(first, options="rw") as m:
                os.remove(m.at("large"))
                for i in range(300):
                    os.makedirs(m.at("d", str(i)))
            self.assertGreater(self.sizes()[0], before[0] + 20_000)
            self.assertLess(self.sizes()[1], raw - 290_000)
            with Mount(first, options="rw") as m:
                shutil.rmtree(m.at("d"))
            self.check(first)
            blocks = os.stat(first).st_blocks
            run = subprocess.run([H5FS, "--reclaim", first], capture_output=True, text=True)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assertLess(os.stat(first).st_blocks * 512, blocks * 512 - 30_000)  # holes
            self.check(first)
            with self.open() as f:
                self.assertEqual(sorted(f), ["group", "rows"])
                numpy.testing.assert_array_equal(f["rows"], rows(0, 5000))
            run = subprocess.run(["h5dump", "-f", "split", "-d", "group/old", self.file("s")], capture_output=True, text=True)
            self.assertIn("0, 1, 2", run.stdout)
            for old in glob.glob(self.file("s-*")):
                os.remove(old)

    def test_no_raw_data(self):
        """libhdf5 reads a global heap only where raw data could be."""
        for libver in "earliest", "latest":
            first = self.make(libver, empty=True)
            self.assertEqual(self.sizes()[1], 0)
            with Mount(first, options="rw") as m:
                os.mkdir(m.at("group"))
                os.setxattr(m.at("group"), "user.words", b"of any length")
            with self.open() as f:
                self.assertEqual(f["group"].attrs["words"], "of any length")
            with self.open("r+") as f:
                f["group"].attrs.create("more", ["e", "fg"], dtype=h5py.string_dtype())
            with Mount(first, options="rw") as m:
                os.removexattr(m.at("group"), "user.words")
                os.mkdir(m.at("group", "inner"))
            self.check(first)
            run = subprocess.run([H5FS, "--reclaim", first], capture_output=True, text=True)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            with self.open() as f:
                self.assertEqual(list(f["group"].attrs["more"]), ["e", "fg"])
                self.assertIn("inner", f["group"])
            for old in glob.glob(self.file("s-*")):
                os.remove(old)

    def test_reclaim(self):
        for libver in "earliest", "latest":
            first = self.make(libver)
            with self.open("r+") as f:
                f["gone"] = numpy.full(500_000, 7, "u1")
                for i in range(100):
                    f.create_group(f"gone{i}")
            with self.open("r+") as f:
                f["last"] = 1
            with self.open("r+") as f:
                for name in [name for name in f if name.startswith("gone")]:
                    del f[name]
            with self.open() as f:
                self.assertGreaterEqual(f["last"].id.get_offset(), RAW)
            self.assertRegex(self.check(first), r"\d+ bytes")
            blocks = os.stat(self.file("s-r.h5")).st_blocks
            run = subprocess.run([H5FS, "--reclaim", first], capture_output=True, text=True)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assertLess(os.stat(self.file("s-r.h5")).st_blocks, blocks - 800)
            self.check(first)
            with self.open() as f:
                self.assertEqual(sorted(f), ["group", "last", "rows"])
                self.assertEqual(f["last"][()], 1)
                numpy.testing.assert_array_equal(f["rows"], rows(0, 5))
            for old in glob.glob(self.file("s-*")):
                os.remove(old)

    def test_kill(self):
        for libver in "earliest", "latest":
            first = self.make(libver)
            with Mount(first, options="rw") as m:
                self.append(m, 5, 3000)
                os.mkdir(m.at("made"))
                os.sync()
                self.append(m, 3000, 3500)
                m.kill()
            self.assertTrue(os.path.exists(first + ".h5fs-journal"))
            with self.open() as f:
                self.assertIn("made", f)
            with Mount(first) as m:  # for reading
                self.assertIn("made", os.listdir(m.path))
            with Mount(first, options="rw") as m:
                self.append(m, os.path.getsize(m.at("rows")) // 36, 4000)
            with self.open() as f:
                numpy.testing.assert_array_equal(f["rows"], rows(0, 4000))
                self.assertIn("made", f)
            for old in glob.glob(self.file("s-*")):
                os.remove(old)

    def test_a_member_that_was_cut_makes_the_journal_stale(self):
        first = self.make()
        with Mount(first, options="rw") as m:
            self.append(m, 5, 3000)
            os.sync()
            m.kill()
        before, journal = read(first), read(first + ".h5fs-journal")
        with self.open("r+"):
            pass
        os.truncate(self.file("s-r.h5"), 100)
        write(first + ".h5fs-journal", journal)
        with Mount(first) as m:
            self.assertIn("rows", os.listdir(m.path))
        self.assertEqual(len(read(first)), len(before))

    def test_nothing_changes_without_a_change(self):
        for libver in "earliest", "latest":
            for empty in False, True:
                first = self.make(libver, empty)
                before = {name: read(name) for name in glob.glob(self.file("*"))}
                with Mount(first, options="rw") as m:
                    os.listdir(m.path)
                self.assertEqual({name: read(name) for name in glob.glob(self.file("*"))}, before)
                for old in glob.glob(self.file("s-*")):
                    os.remove(old)

    def test_refused_members(self):
        first = self.make()
        raw = self.file("s-r.h5")
        content = read(raw)
        os.remove(raw)
        self.assertRefused(first, "s-r.h5")  # a member is missing
        os.mkdir(raw)
        self.assertRefused(first, "s-r.h5")  # or no file
        os.rmdir(raw)
        os.symlink("/etc/passwd", raw)
        self.assertRefused(first, "s-r.h5")
        os.remove(raw)
        os.link(first, raw)
        self.assertRefused(first, "one file|locked")
        os.remove(raw)
        write(raw, content)
        with open(raw, "rb") as f:
            fcntl.flock(f, fcntl.LOCK_SH)
            self.assertRefused(first, "s-r.h5: locked")
        with Mount(first, options="rw"):
            with open(raw, "rb") as f, self.assertRaises(BlockingIOError):
                fcntl.flock(f, fcntl.LOCK_SH | fcntl.LOCK_NB)
        write(raw, content[:-1])
        self.assertRefused(first, "truncated")
        write(raw, content)
        self.assertRefused(first, "swmr|needs version", "rw,swmr")
        os.rename(first, self.file("s.h5"))
        self.assertRefused(self.file("s.h5"), "%s-r.h5")  # the name of the other one follows from that of the first

    def test_the_multi_driver(self):
        for libver in "earliest", "latest":
            first = self.make(libver, multi=True)
            self.assertRefused(first, "metadata are in several members")
            with Mount(first) as m:
                self.assertEqual(read(m.at("rows")), rows(0, 5).tobytes())

    def test_a_user_block(self):
        fcpl = h5py.h5p.create(h5py.h5p.FILE_CREATE)
        fcpl.set_userblock(512)
        with h5py.File(h5py.h5f.create(self.file("s").encode(), fapl=self.access(False), fcpl=fcpl)) as f:
            f["x"] = 1
        self.assertRefused(self.file("s-m.h5"), "user block")

    def test_hostile_ends(self):
        """Of a file that lies about where its members begin and end."""
        first = self.make()
        content = read(first)
        at = content.index(b"NCSAmult") + 8 + 8
        self.assertEqual(struct.unpack_from("<Q", content, at + 16), (RAW,))
        for offset, value, words in ((8, 2**63, "reach into each other"), (8, 2**64 - 1, "reach into each other"), (8, 10**6, "truncated"),
                                     (24, 2**64 - 1, "reach into"), (24, 2**40, "truncated"), (16, 1024, "reach into each other")):
            with self.subTest(offset=offset, value=value):
                write(first, content[:at + offset] + struct.pack("<Q", value) + content[at + offset + 8:])
                self.assertRefused(first, words)
                if offset != 16:
                    with Mount(first) as m:
                        self.assertIn("group", os.listdir(m.path))
        write(first, content)

    def test_the_end_of_a_member(self):
        """No allocation reaches into the next member."""
        first = self.make()
        content = read(first)
        with self.open() as f:
            addresses = RAW, f["rows"].id.get_chunk_info(0).byte_offset, f["group/old"].id.get_offset()
        self.assertGreaterEqual(min(addresses), RAW)
        # The raw data's member begins nearer, and so do all addresses that lead there.
        near = len(content) + 8192
        for address in sorted(set(addresses)):
            self.assertIn(struct.pack("<Q", address), content)
            content = content.replace(struct.pack("<Q", address), struct.pack("<Q", address - RAW + near))
        write(first, content)
        model = self.look()
        names = []
        with Mount(first, options="rw") as m:
            with self.assertRaises(OSError) as caught:
                for i in range(1000):
                    os.mkdir(m.at(f"d{i}"))
                    with open(m.at("rows"), "rb") as f:
                        os.fsync(f.fileno())
                    names.append(f"d{i}")
            self.assertEqual(caught.exception.errno, errno.ENOSPC)
            self.append(m, 5, 8)  # which takes no metadata
        self.assertGreater(len(names), 3)
        self.assertLess(os.path.getsize(first), near)
        found = self.look()
        self.assertEqual(bytes.fromhex(found["rows"]), rows(0, 8).tobytes())
        self.assertLessEqual(set(names), set(found))
        self.assertEqual(model["group/old"], found["group/old"])
        self.check(first)

    def test_without_other_files(self):
        """The names and rights that pieces must have where a file must not choose what is written."""
        first = self.make()
        with Mount(first, options="rw,external=none") as m:
            self.append(m, 5, 50)
        with self.open() as f:
            numpy.testing.assert_array_equal(f["rows"], rows(0, 50))
        os.chmod(self.file("s-r.h5"), 0o600)
        self.assertRefused(first, "s-r.h5", "rw,external=none")
        os.chmod(self.file("s-r.h5"), 0o644)
        patch(first, b"%s-r.h5", b"%s-q.h5")
        shutil.copy(self.file("s-r.h5"), self.file("s-q.h5"))
        self.assertRefused(first, "s-q.h5", "rw,external=none")

    def test_every_member_is_synced(self):
        first = self.make()
        with Mount(first, options="rw,sync=fsync") as m:
            with open(m.at("rows"), "ab", buffering=0) as f:
                f.write(rows(5, 3000).tobytes())
                with Strace(m.daemon, self.file("log"), "-y", "-e", "trace=fsync,fdatasync,pwrite64,pwritev,pwritev2") as s:
                    os.fsync(f.fileno())
        calls = [line for line in s.text().splitlines() if "h5" in line]
        syncs = [i for i, line in enumerate(calls) if "sync(" in line]
        raw = [i for i in syncs if "s-r.h5>" in calls[i]]
        cells = [i for i, line in enumerate(calls) if "pwrite" in line and "s-m.h5>" in line]
        self.assertTrue(raw and cells, calls)
        self.assertLess(raw[0], cells[-1], calls)  # the superblock, and what refers to the rows, come after them


if __name__ == "__main__":
    main()
