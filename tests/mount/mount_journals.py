#!/usr/bin/python3
"""Journals that are found: unfit ones, those of a file that was renamed or has several names, and those in a folder that an option named."""
import glob
import os
import re
import socket
import struct
import subprocess
import unittest

import h5py
import numpy

import judges
from mountlib import H5FS, Mount, MountCase, main, read, refusal, write
from terminal import ERASE, on_terminal

NOBODY = 65534
ROWS = struct.pack("<3q", 1, 2, 3)
HEADER = 512


class Case(MountCase):
    def setUp(self):
        super().setUp()
        os.makedirs(self.file("in"))
        os.mkdir(self.file("journals"))
        self.path = self.file("in/a.h5")
        with h5py.File(self.path, "w", libver="latest") as f:
            f.create_dataset("rows", (0,), "<i8", maxshape=(None,), chunks=(8,))
            f["d"] = numpy.arange(10)

    def crash(self, *, rename=None, options="rw"):
        """A power cut in the last commit of a mount: its journal is there, and the file is as it was before the commit's cells.
        The file may be renamed while it is mounted."""
        path = self.path
        with Mount(path, options=options) as m:
            with open(m.at("rows"), "ab") as f:
                f.write(ROWS)
            if rename:
                os.rename(path, self.file(rename))
                path = self.file(rename)
            m.kill()
        journal, = (name for name in self.journals() if not os.path.islink(name))
        record = read(journal)[HEADER:]
        self.assertEqual(record[:8], b"h5fs-rc2")
        patches, extents, objects = struct.unpack_from("<3I", record, 56)
        at = 72 + 24 * extents + 8 * objects
        with open(path, "r+b") as f:
            for _ in range(patches):
                offset, size, flags = struct.unpack_from("<QII", record, at)
                at += 16
                f.seek(offset)
                if flags & 1:
                    at += size
                else:
                    f.write(record[at:at + size])
                    at += 2 * size
        with h5py.File(path) as f:
            self.assertEqual(f["rows"].shape, (0,))
        return path

    def journals(self):
        return glob.glob(self.file("*", "*.h5fs-journal*"))

    def assertRecovered(self, path, options=None):
        """A mount for reading shows the commit and leaves everything as it is; one for writing completes it and tidies up.
        What the former said."""
        before = {name: read(name) for name in [path, *self.journals()] if os.path.exists(name)}
        with Mount(path, options=options) as m:
            self.assertEqual(read(m.at("rows")), ROWS)
            said = m.said()
        self.assertEqual({name: read(name) for name in before}, before)
        with Mount(path, options="rw" + (f",{options}" if options else "")) as m:
            self.assertEqual(read(m.at("rows")), ROWS)
        self.assertEqual(self.journals(), [])
        with h5py.File(path) as f:
            self.assertEqual(f["rows"][:].tolist(), [1, 2, 3])
        return said


class Unfit(Case):
    def check(self, put):
        """Not heeded by who reads, with a line about it; refused to who writes."""
        journal = self.path + ".h5fs-journal"
        put(journal)
        for command in ("--list", "--check"):
            run = subprocess.run([H5FS, command, self.path], capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual((run.returncode, run.stderr.count("\n")), (0, 1), run.stderr)
        for options in (None, "locking=no"):
            with Mount(self.path, options=options) as m:
                self.assertEqual(len(read(m.at("d"))), 80)
                self.assertRegex(m.said(), r"^h5fs: \S+/a\.h5: its journal is not heeded: it is shown as it is \(journal: .*\)\n$")
        status, said = refusal(self.path, options="rw")
        self.assertNotEqual(status, 0)
        self.assertRegex(said, r"^h5fs: \S+/a\.h5: .*journal: .*\n$")
        self.assertTrue(os.path.lexists(journal))

    def test_fifo(self):
        self.check(os.mkfifo)

    def test_socket(self):
        with socket.socket(socket.AF_UNIX) as s:
            self.check(s.bind)

    def test_folder(self):
        self.check(os.mkdir)

    def test_symbolic_links(self):
        write(self.file("journals/x"), b"")
        self.check(lambda journal: os.symlink(self.file("journals/x"), journal))

    def test_one_that_leads_nowhere(self):
        self.check(lambda journal: os.symlink("/nowhere/at/all", journal))

    def test_one_that_leads_to_itself(self):
        self.check(lambda journal: os.symlink(os.path.basename(journal), journal))

    def test_several_names(self):
        write(self.file("journals/x"), b"")
        self.check(lambda journal: os.link(self.file("journals/x"), journal))

    def test_no_journal(self):
        self.check(lambda journal: write(journal, b"a diary" * 1000))

    def test_a_later_version(self):
        self.crash()
        journal, = self.journals()
        data = bytearray(read(journal))
        data[8] = 99
        self.check(lambda journal: write(journal, data))

    @unittest.skipIf(os.geteuid(), "to give files away takes root")
    def test_foreign(self):
        self.crash()

        def give_away(journal):
            os.chown(journal, NOBODY, NOBODY)
        self.check(give_away)

    @unittest.skipIf(os.geteuid(), "to take rights away takes root")
    def test_one_that_cannot_be_read(self):
        """By somebody else than its owner."""
        self.crash()
        journal, = self.journals()
        os.chmod(journal, 0o600)
        os.chmod(self.folder, 0o755)
        run = subprocess.run([H5FS, "--list", self.path], capture_output=True, text=True, check=False, user=NOBODY, group=NOBODY, extra_groups=[])
        self.assertEqual((run.returncode, run.stderr.count("\n")), (0, 1), run.stderr)
        self.assertIn("not heeded", run.stderr)


def birth_is_known(path):
    """Whether this file system tells when a file was made."""
    return subprocess.run(["stat", "-c", "%W", path], capture_output=True, text=True, check=True).stdout.strip() not in ("0", "-")


class Renamed(Case):
    def setUp(self):
        super().setUp()
        if not birth_is_known(self.path):
            self.skipTest(f"the file system of {self.folder} does not tell when a file was made")

    def test_beside(self):
        path = self.crash(rename="in/b.h5")
        self.assertEqual(self.journals(), [self.path + ".h5fs-journal"])
        self.assertRegex(self.assertRecovered(path), r"completed from its journal .*another name, a\.h5\.h5fs-journal")

    def test_recover(self):
        path = self.crash(rename="in/b.h5")
        status, out, said = on_terminal("--recover", path)
        self.assertEqual(status, 0)
        self.assertIn("completed from its journal", out)
        self.assertRegex(said, rf"^({re.escape(ERASE)}0 bytes of [0-9]+ bytes  .*)+{re.escape(ERASE)}$")  # how far it is
        self.assertEqual(self.journals(), [])
        with h5py.File(path) as f:
            self.assertEqual(f["rows"][:].tolist(), [1, 2, 3])

    def test_in_a_folder_for_journals(self):
        """The file may be in another folder, too."""
        options = f"journal={self.file('journals')}"
        os.mkdir(self.file("away"))
        self.assertRecovered(self.crash(rename="in/b.h5", options="rw," + options), options)
        self.path = self.file("in/b.h5")
        with h5py.File(self.path, "r+") as f:
            f["rows"].resize((0,))
        path = self.crash(rename="away/b.h5", options="rw," + options)
        os.unlink(self.path + ".h5fs-journal")
        self.assertRecovered(path, options)

    def test_marks(self):
        """Those of a killed swmr mount are still its own."""
        with Mount(self.path, options="rw,swmr") as m:
            with open(m.at("rows"), "ab") as f:
                f.write(ROWS)
            os.rename(self.path, self.file("in/b.h5"))
            m.kill()
        with Mount(self.file("in/b.h5"), options="rw") as m:
            self.assertEqual(read(m.at("rows")), ROWS)
        self.assertEqual(self.journals(), [])

    def test_another_file(self):
        """A copy is another file, and so is one that has the name by now, or the inode number: its journal stays where it is."""
        path = self.crash(rename="in/b.h5")
        journal, = self.journals()
        data = read(journal)
        write(self.file("in/copy.h5"), read(path))
        for options in (None, "rw"):
            with Mount(self.file("in/copy.h5"), options=options) as m:
                self.assertEqual((read(m.at("rows")), m.said()), (b"", ""))
        changed = bytearray(data)
        changed[48] ^= 1  # when the file was made: its hash is wrong now
        write(journal, changed)
        with Mount(path) as m:
            self.assertEqual((read(m.at("rows")), m.said()), (b"", ""))
        write(journal, data)
        self.assertRecovered(path)

    def test_in_use(self):
        """The file is renamed, and its mount lives on."""
        with Mount(self.path, options="rw") as m:
            with open(m.at("rows"), "ab") as f:
                f.write(ROWS)
            path = self.file("in/b.h5")
            os.rename(self.path, path)
            status, said = refusal(path, options="rw,locking=no")
            self.assertEqual((status, said.count("\n")), (5, 1), said)
            self.assertEqual(self.journals(), [self.path + ".h5fs-journal"])
        self.assertEqual(self.journals(), [])

    def test_hostile_neighbours(self):
        """What else has such a name is passed over, and hangs nobody."""
        path = self.crash(rename="in/b.h5")
        os.mkfifo(self.file("in/0.h5fs-journal"))
        os.mkdir(self.file("in/1.h5fs-journal"))
        os.symlink("/dev/zero", self.file("in/2.h5fs-journal"))
        write(self.file("in/3.h5fs-journal"), b"")
        write(self.file("in/4.h5fs-journal"), b"h5fs-jnl" * 100)
        with Mount(path, options="rw") as m:
            self.assertEqual(read(m.at("rows")), ROWS)
        self.assertEqual(sorted(os.listdir(self.file("in"))), [f"{i}.h5fs-journal" for i in range(5)] + ["b.h5"])


class SeveralNames(Case):
    """Hard links to the file: whoever opens it, by whichever name, finds the journal."""

    def setUp(self):
        super().setUp()
        if not birth_is_known(self.path):
            self.skipTest(f"the file system of {self.folder} does not tell when a file was made")
        self.other = self.file("in/b.h5")
        os.link(self.path, self.other)

    def assertRefused(self, path, options="rw"):
        before = read(path)
        status, said = refusal(path, options=options)
        self.assertEqual((status, said.count("\n")), (9, 1), said)
        self.assertIn("the file has several names", said)
        self.assertEqual(read(path), before)

    def test_by_the_other_name(self):
        self.crash()
        self.assertRegex(self.assertRecovered(self.other), r"completed from its journal .*another name, a\.h5\.h5fs-journal")
        judges.agree(self.path)

    def test_by_the_same_name(self):
        self.crash()
        self.assertRecovered(self.path)

    def test_a_replay_is_written_to_by_the_other_name(self):
        """Each mount goes on where the one before was killed."""
        for n, name in enumerate([self.other, self.path, self.other], 1):
            with Mount(name, options="rw") as m:
                with open(m.at("rows"), "ab") as f:
                    f.write(ROWS)
                self.assertEqual(read(m.at("rows")), n * ROWS)
                m.kill()
        self.assertEqual(len(self.journals()), 1)
        with Mount(self.path, options="rw") as m:
            self.assertEqual(read(m.at("rows")), 3 * ROWS)
        self.assertEqual(self.journals(), [])
        judges.agree(self.other)

    def test_recover(self):
        self.crash()
        self.assertEqual(on_terminal("--recover", self.other)[0], 0)
        self.assertEqual(self.journals(), [])
        with h5py.File(self.path) as f:
            self.assertEqual(f["rows"][:].tolist(), [1, 2, 3])

    def test_both_at_once(self):
        with Mount(self.path, options="rw"):
            for options in "rw", "rw,locking=no":
                self.assertEqual(refusal(self.other, options=options)[0], 5)

    def test_a_name_in_another_folder(self):
        os.mkdir(self.file("away"))
        os.link(self.path, self.file("away/a.h5"))
        for path in self.path, self.file("away/a.h5"):
            self.assertRefused(path)
        with Mount(self.path, options="rw,force") as m:
            self.assertEqual(read(m.at("rows")), b"")

    def test_a_folder_for_journals(self):
        self.assertRefused(self.path, f"rw,journal={self.file('journals')}")

    def test_what_is_in_the_place_of_the_other_journal(self):
        """By that name the journal would not be looked for under others."""
        write(self.other + ".h5fs-journal", b"")
        self.assertRefused(self.path)

    def test_a_name_too_long_for_a_journal(self):
        os.rename(self.other, self.file("in", 250 * "b"))
        self.assertRefused(self.path)


class Elsewhere(Case):
    """-o journal=DIR that was given once, and then left out, or the other way round."""

    def setUp(self):
        super().setUp()
        self.option = f"journal={self.file('journals')}"
        self.pointer = self.path + ".h5fs-journal"

    def test_while_mounted(self):
        for options in ("rw", "rw,sandbox=no", "rw,swmr"):
            with Mount(self.path, options=f"{options},{self.option}") as m:
                with open(m.at("rows"), "ab") as f:
                    f.write(ROWS)
                journal, = glob.glob(self.file("journals/*"))
                self.assertEqual(os.readlink(self.pointer), os.path.realpath(journal))
            self.assertEqual(self.journals(), [])

    def test_left_out_later(self):
        self.crash(options="rw," + self.option)
        with Mount(self.path) as m:
            self.assertEqual(read(m.at("rows")), b"")
            self.assertRegex(m.said(), rf"not heeded.*with -o {self.option}\)\n$")
        status, said = refusal(self.path, options="rw")
        self.assertEqual((status, said.count("\n")), (3, 1))
        self.assertIn(f"with -o {self.option}\n", said)
        self.assertEqual(self.assertRecovered(self.path, self.option).count("\n"), 1)

    def test_given_later(self):
        self.crash()
        with Mount(self.path, options=self.option) as m:
            self.assertIn("another one, a.h5.h5fs-journal", m.said())
        status, said = refusal(self.path, options="rw," + self.option)
        self.assertEqual((status, said.count("\n")), (8, 1))
        self.assertIn("another one, a.h5.h5fs-journal", said)
        self.assertRecovered(self.path)

    def test_a_link_of_somebody_else_stays(self):
        os.symlink("/nowhere", self.pointer)
        self.assertIn("another one", refusal(self.path, options="rw," + self.option)[1])
        self.assertEqual(os.readlink(self.pointer), "/nowhere")
        self.assertEqual(os.listdir(self.file("journals")), [])

    @unittest.skipIf(os.geteuid(), "to make a folder that cannot be written takes root")
    def test_a_folder_that_cannot_be_written(self):
        """Nothing can be left there; the journal does its work all the same."""
        if subprocess.run(["chattr", "+i", self.file("in")], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest(f"the file system of {self.folder} has no immutable folders")
        try:
            with Mount(self.path, options="rw," + self.option) as m:
                with open(m.at("rows"), "ab") as f:
                    f.write(ROWS)
                self.assertFalse(os.path.lexists(self.pointer))
        finally:
            subprocess.run(["chattr", "-i", self.file("in")], check=True)
        self.assertEqual(self.journals(), [])

    def test_in_the_mount_itself(self):
        """The folder is the one beneath the mount."""
        point = self.file("in/mnt")
        os.mkdir(point)
        with Mount(self.path, point=point, options=f"rw,nonempty,journal={point}") as m:
            with open(m.at("rows"), "ab") as f:
                f.write(ROWS)
            self.assertEqual(os.listdir(point), ["d", "rows"])
        self.assertEqual(os.listdir(point), [])
        self.assertEqual(self.journals(), [])


if __name__ == "__main__":
    main()
