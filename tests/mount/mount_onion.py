#!/usr/bin/python3
"""Files whose revisions libhdf5's onion driver keeps: FILE and FILE.onion."""
import errno
import io
import json
import os
import subprocess
import unittest

import h5py
import numpy

import onion
from mountlib import H5FS, Mount, MountCase, main, patch, read, refusal, tree, write

HERE = os.path.dirname(os.path.abspath(__file__))
JUDGES = os.path.join(HERE, "..", "..", "contrib", "judges")

# Run by the newest libhdf5: makes files with its onion driver, and prints what it reads in each revision.
WITH_LIBHDF5 = """
import ctypes, json, os, sys
import h5py, numpy

lib = ctypes.CDLL(next(line.split()[-1] for line in open("/proc/self/maps") if "libhdf5" in line and "_hl" not in line))

class Info(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint8), ("backing", ctypes.c_int64), ("page_size", ctypes.c_uint32), ("target", ctypes.c_int),
                ("revision", ctypes.c_uint64), ("force", ctypes.c_uint8), ("flags", ctypes.c_uint8), ("comment", ctypes.c_char * 256)]

def file(opener, name, *flags, page=4096, aligned=0, revision=2**64 - 1):
    fapl, backing = (h5py.h5p.create(h5py.h5p.FILE_ACCESS) for _ in range(2))
    info = Info(1, backing.id, page, 0, revision, 0, aligned, b"some words")
    assert lib.H5Pset_fapl_onion(ctypes.c_int64(fapl.id), ctypes.byref(info)) >= 0
    return h5py.File(opener(name.encode(), *flags, fapl=fapl))

os.chdir(sys.argv[1])
found = {}
for page in 32, 1024, 4096:
    for aligned in 0, 1:
        for made in 0, 1:
            name = f"o{page}-{aligned}-{made}.h5"
            if made:
                with file(h5py.h5f.create, name, page=page, aligned=aligned) as f:
                    f["x"] = numpy.arange(10000)
            else:
                with h5py.File(name, "w") as f:
                    f["x"] = numpy.arange(10000)
            for i in range(3):
                with file(h5py.h5f.open, name, h5py.h5f.ACC_RDWR, page=page, aligned=aligned) as f:
                    f[f"new{i}"] = numpy.arange(3000) + i
                    f["x"][i::7] = 100 + i
            for revision in range(made, 4 + made):
                with file(h5py.h5f.open, name, h5py.h5f.ACC_RDONLY, page=page, revision=revision) as f:
                    found.setdefault(name, {})[revision] = {key: f[key][()].tobytes().hex() for key in f}
print(json.dumps(found))
"""


def versions():
    """A file as bytes, after each of some changes."""
    memory, found = io.BytesIO(), []

    def change(mode, what):
        with h5py.File(memory, mode) as f:
            what(f)
        found.append(memory.getvalue())

    def first(f):
        f["numbers"] = numpy.arange(3000, dtype="<i4")
        f.create_dataset("group/chunked", data=numpy.arange(700, dtype="<f8"), chunks=(50,), compression="gzip", maxshape=(None,))
        f["group"].attrs["text"] = "words"
        f["group/words"] = ["one", "two"]

    def second(f):
        f["numbers"][100:2000:3] = -1
        f["more"] = numpy.arange(20_000, dtype="<i8")

    def third(f):
        f["group/chunked"].resize((900,))
        f["group/chunked"][650:] = 5
        f["group"].attrs["text"] = "other words"
        del f["numbers"]

    def fourth(f):
        f["more"][:5] = 0

    change("w", first)
    for what in second, third, fourth:
        change("r+", what)
    return found


class OnionCase(MountCase):
    def setUp(self):
        super().setUp()
        self.versions = versions()

    def make(self, name="f.h5", origin=True, **options):
        """A file whose revision N is version N."""
        made = onion.Onion(self.versions[0] if origin else None, **options)
        for version in self.versions[1:] if origin else self.versions:
            made.add(version)
        made.write(self.file(name))
        return made

    def trees(self):
        found = []
        for version in self.versions:
            write(self.file("plain.h5"), version)
            with Mount(self.file("plain.h5")) as m:
                found.append(tree(m.path))
        self.assertEqual(len({str(t) for t in found}), 4)
        return found


class Revisions(OnionCase):
    def assertShown(self, expected, first):
        path = self.file("f.h5")
        before = {name: (read(name), os.stat(name).st_mtime_ns) for name in (path, path + ".onion")}
        with Mount(path) as m:
            revisions = m.at(".h5fs", "revisions")
            self.assertEqual(tree(m.path), expected[-1])
            self.assertEqual(sorted(os.listdir(revisions), key=int), [str(first + i) for i in range(len(expected))])
            for i, one in enumerate(expected):
                self.assertEqual(tree(os.path.join(revisions, str(first + i))), one)
                self.assertEqual(os.stat(os.path.join(revisions, str(first + i))).st_ino,
                                 next(e.inode() for e in os.scandir(revisions) if e.name == str(first + i)))
            for name in "01", "+1", "-1", " 1", "1x", "99", str(2**64 + first), "x":
                self.assertErrno(errno.ENOENT, os.stat, os.path.join(revisions, name, "."))
            self.assertIn("revisions", os.listdir(m.at(".h5fs")))
            self.assertEqual(m.said(), "")
        for name, (content, mtime) in before.items():
            self.assertEqual(read(name), content)
            self.assertEqual(os.stat(name).st_mtime_ns, mtime)

    def test_all(self):
        expected = self.trees()
        for size, aligned in (2, False), (512, True), (4096, False), (1 << 20, False):
            for origin in True, False:
                with self.subTest(size=size, aligned=aligned, origin=origin):
                    self.make(size=size, aligned=aligned, origin=origin)
                    self.assertShown(expected, 0 if origin else 1)

    def test_a_group_that_lay_in_another_file(self):
        """The group that is mounted was reached by an external link in revision 0: it has no such group of its own."""
        with h5py.File(self.file("other.h5"), "w") as f:
            f["there/numbers"] = [1, 2, 3]
        memory = io.BytesIO()
        with h5py.File(memory, "w") as f:
            f["group"] = h5py.ExternalLink("other.h5", "/there")
        made = onion.Onion(memory.getvalue())
        with h5py.File(memory, "r+") as f:
            del f["group"]
            f["group/words"] = ["one"]
        made.add(memory.getvalue())
        made.write(self.file("f.h5"))
        with Mount(self.file("f.h5"), options="subdir=/group") as m:
            self.assertEqual(os.listdir(m.at(".h5fs", "revisions", "1")), ["words"])
            self.assertErrno(errno.ENOENT, os.stat, m.at(".h5fs", "revisions", "0", "."))

    def test_one_is_chosen(self):
        expected = self.trees()
        self.make()
        for i, one in enumerate(expected):
            with Mount(self.file("f.h5"), options=f"revision={i}") as m:
                self.assertEqual(tree(m.path), one)
                self.assertEqual(len(os.listdir(m.at(".h5fs", "revisions"))), 4)
                self.assertEqual(tree(m.at(".h5fs", "revisions", "2")), expected[2])
        with Mount(self.file("f.h5"), options="subdir=/group") as m:
            self.assertEqual(os.listdir(m.at(".h5fs", "revisions", "1")), ["chunked", "words"])
        status, said = refusal(self.file("f.h5"), options="revision=4")
        self.assertIn("no revision 4: the file has 0 to 3", said)
        status, said = refusal(self.file("plain.h5"), options="revision=0")
        self.assertIn("no revisions", said)
        self.make(origin=False)
        status, said = refusal(self.file("f.h5"), options="revision=0")
        self.assertIn("no revision 0: the file has 1 to 4", said)

    def test_time(self):
        """A revision has the time at which it was finished."""
        made = onion.Onion(self.versions[0])
        made.add(self.versions[1])
        made.add(self.versions[2], time=b"20250101T000000\0")
        made.add(self.versions[3], time=b"no time at all!!")
        made.write(self.file("f.h5"))
        os.utime(self.file("f.h5"), (10**9, 10**9))
        os.utime(self.file("f.h5.onion"), (2 * 10**9, 2 * 10**9))
        with Mount(self.file("f.h5")) as m:
            times = [os.stat(m.at(".h5fs", "revisions", str(i), "group")).st_mtime for i in range(4)]
        self.assertEqual(times, [10**9, 1709210096, 1735689600, 2 * 10**9])

    def test_links(self):
        with h5py.File(self.file("f.h5"), "w") as f:
            f["a/x"] = 1
            f["soft"] = h5py.SoftLink("/a/x")
            f["up"] = h5py.SoftLink("/a/../../..")
            f["itself"] = h5py.ExternalLink("f.h5", "/a")
            f["cycle"] = f["/"]
        first = read(self.file("f.h5"))
        with h5py.File(self.file("f.h5"), "r+") as f:
            f["a/x"][()] = 2
        made = onion.Onion(first)
        made.add(read(self.file("f.h5")))
        made.write(self.file("f.h5"))
        with Mount(self.file("f.h5")) as m:
            for at, value in ((m.path, 2), (m.at(".h5fs", "revisions", "1"), 2), (m.at(".h5fs", "revisions", "0"), 1)):
                for path in "a/x", "soft", "itself/x":
                    self.assertEqual(read(os.path.join(at, path)), value.to_bytes(8, "little"))
                self.assertEqual(os.readlink(os.path.join(at, "cycle")), ".")
            self.assertEqual(os.stat(m.at("itself")).st_ino, os.stat(m.at("a")).st_ino)

    def test_a_page_twice(self):
        """libhdf5 leaves pages of earlier revisions in an index: what lies behind the others counts."""
        with h5py.File(io.BytesIO(self.versions[1])) as f:
            at = f["numbers"].id.get_offset() // 512 * 512 + 1024
        made = onion.Onion(self.versions[0])
        made.add(self.versions[0][:at] + bytes(512) + self.versions[0][at + 512:])
        older = made.index[at]
        made.add(self.versions[1])
        pages = sorted([*made.index.items(), (at, older), (at, older - 40)])
        self.assertEqual([address for address, _ in pages].count(at), 3)
        for order in pages, sorted(pages, key=lambda p: (p[0], -p[1])):
            made.add_record(onion.record(2, len(self.versions[1]), order))
            made.write(self.file("f.h5"))
            with Mount(self.file("f.h5")) as m:
                self.assertEqual(tree(m.path), tree(m.at(".h5fs", "revisions", "2")))

    def test_a_gap(self):
        """What a revision adds without writing it is zeros, whatever FILE has got behind its end since."""
        made = onion.Onion(self.versions[0])
        made.add(self.versions[0] + bytes(5000))
        self.assertEqual(made.index, {})
        made.write(self.file("f.h5"))
        with open(self.file("f.h5"), "ab") as f:
            f.write(b"x" * 10_000)
        with Mount(self.file("f.h5")) as m:
            write(self.file("plain.h5"), self.versions[0] + bytes(5000))
            with Mount(self.file("plain.h5")) as plain:
                self.assertEqual(tree(m.path), tree(plain.path))
                self.assertEqual(os.statvfs(m.path).f_blocks, os.statvfs(plain.path).f_blocks)

    def test_commands(self):
        self.make()
        path = self.file("f.h5")

        def run(*args):
            return subprocess.run([H5FS, *args], capture_output=True, encoding="latin-1")

        self.assertEqual(run("--list", path).stdout.count("more"), 1)
        self.assertEqual(run("--list", "-o", "revision=0", path).stdout.count("more"), 0)
        self.assertEqual(run("--cat", path, ".h5fs/revisions/0/numbers").stdout, run("--cat", "-o", "revision=0", path, "numbers").stdout)
        done = run("--check", path)
        self.assertEqual(done.returncode, 0)
        self.assertIn("this is revision 3; of other revisions the records were verified", done.stdout)
        self.assertIn("this is revision 1;", run("--check", "-o", "revision=1", path).stdout)
        self.assertNotEqual(run("--reclaim", path).returncode, 0)

    def test_a_folder(self):
        self.make("sub.h5")
        self.make("made.h5", origin=False)
        with Mount(self.folder, point=self.file("point")) as m:
            self.assertEqual(os.listdir(m.at("sub.h5")), ["group", "more"])
            self.assertEqual(os.listdir(m.at("made.h5")), ["group", "more"])
            self.assertIn("numbers", os.listdir(m.at("sub.h5", ".h5fs", "revisions", "1")))
        status, said = refusal(self.folder, point=self.file("point"), options="revision=1")
        self.assertIn("revision are for the mount of one file", said)

    def test_not_written(self):
        self.make()
        contents = read(self.file("f.h5")), read(self.file("f.h5.onion"))
        for options in "rw", "rw,revision=0", "rw,revision=3", "rw,force":
            status, said = refusal(self.file("f.h5"), options=options)
            self.assertEqual(said.count("\n"), 1)
            self.assertIn("writing a file that has revisions (onion driver) is not supported", said)
        self.assertEqual((read(self.file("f.h5")), read(self.file("f.h5.onion"))), contents)

    def test_being_written(self):
        made = self.make()
        made.finish(flags=1)
        made.write(self.file("f.h5"))
        with Mount(self.file("f.h5")) as m:
            self.assertIn("those before are shown", m.said())
            self.assertEqual(os.listdir(m.path), ["group", "more"])
        # A file that is being made has none before.
        write(self.file("f.h5"), b"ONIONEOF")
        write(self.file("f.h5.onion"), onion.header(0, 20, flags=1))
        status, said = refusal(self.file("f.h5"))
        self.assertIn("no revision 0", said)

    def test_other_files_of_that_name(self):
        for content in b"", b"OHD", b"something else":
            write(self.file("f.h5"), self.versions[0])
            write(self.file("f.h5.onion"), content)
            with Mount(self.file("f.h5"), options="rw") as m:
                self.assertNotIn("revisions", os.listdir(m.at(".h5fs")))
        os.remove(self.file("f.h5.onion"))
        os.mkdir(self.file("f.h5.onion"))
        with Mount(self.file("f.h5")) as m:
            self.assertEqual(os.listdir(m.path), ["group", "numbers"])
        write(self.file("stub.h5"), b"ONIONEOF")
        status, said = refusal(self.file("stub.h5"))
        self.assertIn("without its revisions", said)

    def test_elsewhere(self):
        """A link leads out of the folder."""
        self.make("sub.h5")
        os.mkdir(self.file("inner"))
        os.rename(self.file("sub.h5"), self.file("inner", "f.h5"))
        os.symlink("../sub.h5.onion", self.file("inner", "f.h5.onion"))
        status, said = refusal(self.file("inner", "f.h5"))
        self.assertIn("f.h5.onion", said)

    @unittest.skipIf(os.geteuid(), "to give files away takes root")
    def test_rights(self):
        self.make()
        with Mount(self.file("f.h5"), options="external=none") as m:
            self.assertEqual(os.listdir(m.path), ["group", "more"])
        for change in lambda p: os.chmod(p, 0o600), lambda p: os.chown(p, 1, 1):
            self.make()
            change(self.file("f.h5.onion"))
            for option in "external=none", "allow_other":
                status, said = refusal(self.file("f.h5"), options=option)
                self.assertIn("another owner or with other permissions", said)
            os.remove(self.file("f.h5.onion"))

    def test_many(self):
        made = onion.Onion(self.versions[0])
        made.add(self.versions[1])
        made.places *= 2000
        made.finish()
        made.write(self.file("f.h5"))
        with Mount(self.file("f.h5")) as m:
            self.assertEqual(len(os.listdir(m.at(".h5fs", "revisions"))), 2001)
            opened = 0
            for i in range(600):
                try:
                    opened += os.listdir(m.at(".h5fs", "revisions", str(1999 - i))) == ["group", "more", "numbers"]
                except OSError as e:
                    self.assertEqual(e.errno, errno.ENFILE)
            self.assertEqual(opened, 511)
            self.assertEqual(os.listdir(m.path), ["group", "more", "numbers"])
        made.places *= 40
        made.finish()
        made.write(self.file("f.h5"))
        status, said = refusal(self.file("f.h5"))
        self.assertIn("more than 65536 revisions", said)


class Hostile(OnionCase):
    def one(self):
        made = onion.Onion(self.versions[0])
        made.add(self.versions[1])
        return made

    def assertRefused(self, made, words, status=4):
        made.write(self.file("f.h5"))
        got, said = refusal(self.file("f.h5"))
        self.assertEqual((got, said.count("\n")), (status, 1), said)
        self.assertRegex(said, words)

    def assertBad(self, data, words):
        """The newest record is bad: revisions before it are shown."""
        made = self.one()
        made.add_record(data)
        self.assertRefused(made, "revision 2: .*" + words)
        with Mount(self.file("f.h5"), "-f", options="revision=1") as m:
            self.assertErrno(errno.EUCLEAN, os.stat, m.at(".h5fs", "revisions", "2"))
            self.assertEqual(sorted(os.listdir(m.at(".h5fs", "revisions"))), ["0", "1", "2"])
            self.assertIn("numbers", os.listdir(m.at(".h5fs", "revisions", "0")))
            self.assertRegex(m.said(), words)
        done = subprocess.run([H5FS, "--check", "-o", "revision=1", self.file("f.h5")], capture_output=True, text=True)
        self.assertRegex(done.stdout, r"^\(revisions\): .*" + words)
        self.assertRegex(done.stdout, r"\b1 damaged")
        self.assertEqual(done.returncode, 4)

    def test_records(self):
        end, sound = len(self.versions[1]), self.one()
        pages = sorted(sound.index.items())

        def record(pages=pages, end=end, **fields):
            return onion.record(1, end, pages, **fields)

        wrong = bytearray(record())
        wrong[-1] ^= 1
        self.assertBad(bytes(wrong), "record of a revision: wrong checksum")
        wrong = bytearray(record()[:-4])
        wrong[onion.RECORD + onion.PAGE + 3] ^= 1
        self.assertBad(onion.summed(bytes(wrong)), "index of a revision: wrong checksum")
        self.assertBad(record(pages[::-1]), "not sorted")
        self.assertBad(record([(1, 512)]), "a page begins at 1")
        self.assertBad(record([(0, 1 << 40)]), "beyond the end")
        self.assertBad(record([(0, 2**64 - 256)]), "beyond the end")
        self.assertBad(record([(2**64 - 512, 512)]), "a page at")
        self.assertBad(record(end=1 << 63), "a file of 9223372036854775808 bytes")
        self.assertBad(record(count=len(pages) + 1), "pages in")
        self.assertBad(record(count=2**64 // 20), "pages in")
        self.assertBad(record(count=2**64 - 1), "pages in")
        self.assertBad(record(comment=b"xy", comment_size=2**32 - 1), "pages in")
        self.assertBad(record(size=0), "pages of 0 bytes")
        self.assertBad(record(size=768), "pages of 768 bytes")
        self.assertBad(record()[:30], "beyond the end|pages in|truncated")
        self.assertBad(b"OWHS" + record()[4:], "no signature")

    def test_places(self):
        for place, words in (((0, 100), "no signature"), ((1 << 40, 100), "beyond the end"), ((2**64 - 10, 100), "beyond the end"),
                             ((40, 2**64 - 40), "beyond the end"), ((40, 0), "no signature|pages in")):
            made = self.one()
            made.places.append(place)
            made.finish()
            self.assertRefused(made, words)

    def test_history(self):
        made = self.one()
        at = len(made.data)
        for body, size, words in ((onion.history(made.places, count=2), None, "2 revisions in"),
                                  (onion.history(made.places, count=2**64 // 20 + 1), None, "revisions in"),
                                  (onion.history(made.places, count=2**64 - 1), None, "revisions in"),
                                  (onion.history(made.places)[:-1] + b"x", None, "history: wrong checksum"),
                                  (onion.history(made.places)[:20] + b"x" + onion.history(made.places)[21:], None, "place of a record: wrong"),
                                  (b"XXXX" + onion.history(made.places)[4:], None, "no signature"),
                                  (onion.history(made.places), 2**64 - 1, "beyond the end"),
                                  (onion.history(made.places), 7, "revisions in")):
            made.data[at:] = body
            made.data[:40] = onion.header(at, len(body) if size is None else size, origin=len(self.versions[0]))
            self.assertRefused(made, words)

    def test_header(self):
        made = self.one()
        for header, words, status in ((onion.header(2**64 - 5, 60, origin=len(self.versions[0])), "beyond the end", 4),
                                      (onion.header(0, 60, origin=len(self.versions[0])), "no signature", 4),
                                      (onion.header(500, 60, origin=len(self.versions[0]) + 1), "when its history began", 4),
                                      (onion.header(500, 60, origin=2**64 - 1), "when its history began", 4),
                                      (onion.header(500, 60)[:-1] + b"x", "header of an onion file: wrong checksum", 4),
                                      (onion.header(500, 60, version=2), "version 2", 6)):
            made.data[:40] = header
            self.assertRefused(made, words, status)
        write(self.file("f.h5.onion"), b"OHDH")
        status, said = refusal(self.file("f.h5"))
        self.assertEqual(status, 4)

    def test_a_revision_of_nonsense(self):
        """The record is sound, but what it makes of the file is not."""
        made = self.one()
        made.add(b"nonsense" + self.versions[1][8:])
        made.write(self.file("f.h5"))
        status, said = refusal(self.file("f.h5"))
        self.assertIn("not an HDF5 file", said)
        with Mount(self.file("f.h5"), "-f", options="revision=1") as m:
            with self.assertRaises(OSError):
                os.stat(m.at(".h5fs", "revisions", "2"))
            self.assertEqual(len(os.listdir(m.at(".h5fs", "revisions"))), 3)
            self.assertEqual(len(os.listdir(m.at(".h5fs", "revisions", "1"))), 3)

    def test_many_pieces(self):
        """All open revisions together have a bound; one that could not be opened does not count."""
        made = self.one()
        made.add_record(onion.record(1, 100_000, [(4 * i, 40) for i in range(25_000)], size=2))
        made.write(self.file("f.h5"))
        with Mount(self.file("f.h5"), options="revision=0") as m:
            for _ in range((1 << 22) // 25_000 + 1):
                self.assertErrno(errno.EINVAL, os.stat, m.at(".h5fs", "revisions", "2"))
            self.assertEqual(len(os.listdir(m.at(".h5fs", "revisions", "1"))), 3)

    def test_an_endless_file(self):
        """A revision that says that it is larger than any disk."""
        made = self.one()
        made.add_record(onion.record(1, 2**63 - 1, sorted(made.index.items())))
        made.write(self.file("f.h5"))
        with Mount(self.file("f.h5")) as m:
            self.assertEqual(tree(m.path), tree(m.at(".h5fs", "revisions", "1")))


class Libhdf5(MountCase):
    def test_what_it_has_written(self):
        if subprocess.run([JUDGES, "list"], capture_output=True, text=True).stdout.split()[:1] != ["sid"]:
            self.skipTest("no newer libhdf5: contrib/judges make sid")
        write(self.file("make.py"), WITH_LIBHDF5.encode())
        done = subprocess.run([JUDGES, "run", "sid", "/usr/bin/python3", self.file("make.py"), self.folder], stdout=subprocess.PIPE, check=True)
        found = json.loads(done.stdout)
        self.assertEqual(len(found), 12)
        for name, revisions in found.items():
            with self.subTest(name=name), Mount(self.file(name)) as m:
                shown = {revision: {key: read(m.at(".h5fs", "revisions", revision, key)).hex() for key in os.listdir(m.at(".h5fs", "revisions", revision))}
                         for revision in os.listdir(m.at(".h5fs", "revisions"))}
                self.assertEqual(shown, revisions)
                self.assertEqual(sorted(os.listdir(m.path)), sorted(revisions[max(revisions)]))


if __name__ == "__main__":
    main()
