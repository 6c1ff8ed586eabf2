#!/usr/bin/python3
"""What a mount for writing must not change: each kind of request, at each kind of place that refuses it. The errno is the
one that the manual has, and afterwards every byte of the files is as it was."""
import ctypes
import errno
import os
import re
import struct

import h5py
import judges
from mountlib import Mount, MountCase, lookup3, main, read, refusal, write

OLD, NEW = dict(libver="earliest"), dict(libver="latest")
NOREPLACE, EXCHANGE = 1, 2
NONE, PERM, ROFS, XDEV = 0, errno.EPERM, errno.EROFS, errno.EXDEV
CLEAN, NOTSUP, NOENT = errno.EUCLEAN, errno.ENOTSUP, errno.ENOENT

libc = ctypes.CDLL(None, use_errno=True)


def check(status):
    if status:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def rename(old, new, flags):
    check(libc.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), flags))


def with_file(path, flags, function):
    fd = os.open(path, flags)
    try:
        function(fd)
    finally:
        os.close(fd)


def punch(fd):
    check(libc.fallocate(fd, 3, ctypes.c_long(0), ctypes.c_long(8)))


def result(function, *arguments):
    """The errno of a call; 0: it has succeeded."""
    try:
        function(*arguments)
    except OSError as e:
        return e.errno
    return 0


# ---- requests. `at`: a directory; `ok`: one that works, which has the same in it ----

IN_DIRECTORY = {
    "mkdir": lambda at, ok: os.mkdir(at + "/new"),
    "create": lambda at, ok: write(at + "/new", b"x"),
    "symlink": lambda at, ok: os.symlink("d", at + "/new"),
    "link into": lambda at, ok: os.link(ok + "/d", at + "/new"),
    "rename into": lambda at, ok: os.rename(ok + "/d", at + "/new"),
    "rename onto": lambda at, ok: os.rename(ok + "/d", at + "/d"),
}
OF_ENTRIES = {
    "unlink": lambda at, ok: os.unlink(at + "/d"),
    "rmdir": lambda at, ok: os.rmdir(at + "/g"),
    "link inside": lambda at, ok: os.link(at + "/d", at + "/new"),
    "rename inside": lambda at, ok: rename(at + "/d", at + "/new", NOREPLACE),
    "rename a directory": lambda at, ok: os.rename(at + "/g", at + "/new"),
    "exchange inside": lambda at, ok: rename(at + "/d", at + "/g", EXCHANGE),
}
ACROSS = {
    "link out of": lambda at, ok: os.link(at + "/d", ok + "/new"),
    "rename out of": lambda at, ok: os.rename(at + "/d", ok + "/new"),
    "exchange": lambda at, ok: rename(at + "/d", ok + "/d", EXCHANGE),
}
ATTRIBUTES = {
    "set a new attribute": lambda at, ok: os.setxattr(at, "user.new", b"5"),
    "set an attribute": lambda at, ok: os.setxattr(at, "user.a", b"7"),
    "set raw": lambda at, ok: os.setxattr(at, "h5fs.raw.a", bytes(8)),
    "convert": lambda at, ok: os.setxattr(at, "h5fs.type.a", b"<f8"),
    "remove an attribute": lambda at, ok: os.removexattr(at, "user.a"),
    "comment": lambda at, ok: os.setxattr(at, "h5fs.comment", b"words"),
}
CONTENTS = {
    "append": lambda at, ok: with_file(at, os.O_WRONLY | os.O_APPEND, lambda fd: os.write(fd, bytes(4))),
    "overwrite": lambda at, ok: with_file(at, os.O_RDWR, lambda fd: os.pwrite(fd, b"1234", 0)),
    "open with O_TRUNC": lambda at, ok: with_file(at, os.O_WRONLY | os.O_TRUNC, os.fsync),
    "truncate": lambda at, ok: os.truncate(at, 4),
    "punch": lambda at, ok: with_file(at, os.O_RDWR, punch),
    "shape": lambda at, ok: os.setxattr(at, "h5fs.shape", b"1"),
    "declare": lambda at, ok: os.setxattr(at, "h5fs.dtype", b"<f4"),
}
NAMES = {**IN_DIRECTORY, **OF_ENTRIES, **ACROSS}
LINKED = {"link": lambda at, ok: os.link(at, ok + "/new")}  # an object gets a further name
# These succeed wherever an object can be reached, and change nothing.
NOTHING = {"chmod": lambda at, ok: os.chmod(at, 0o700), "utime": lambda at, ok: os.utime(at, (1, 2))}


def fill(group):
    group.create_dataset("d", (2,), "<i4", maxshape=(None,), chunks=(8,), data=[1, 2])
    group.create_group("g")
    group["soft"] = h5py.SoftLink("d")
    for path in "", "d", "g":
        (group[path] if path else group).attrs["a"] = 1
        (group[path] if path else group).attrs["list"] = [1, 2]


def make(path, how, links=0, attributes=0):
    """Two groups with the same in them: "ok" works, "at" is to be damaged, or has many links or attributes."""
    with h5py.File(path, "w", **how) as f:
        fill(f.create_group("ok"))
        fill(f.create_group("at"))
        for i in range(links):
            f["at"][f"more{i}"] = h5py.SoftLink("nowhere")
        for i in range(attributes):
            f["at"].attrs[f"more{i}"] = i
    return path


def address_of(path, name):
    with h5py.File(path) as f:
        return h5py.h5o.get_info(f[name].id).addr


def flip(path, at):
    data = bytearray(read(path))
    data[at] ^= 0xFF
    write(path, bytes(data))


def flip_last(path, signature, number=1):
    """Damages the last structure of that signature, or that many before the end."""
    data = read(path)
    at = len(data)
    for _ in range(number):
        at = data.rindex(signature, 0, at)
    flip(path, at)


def change_header(path, name, change):
    """Calls change() for a version 2 header, with the file's bytes, where the bodies of messages are by their type, and how many
    bytes come before each. Makes the checksums anew."""
    data, at = bytearray(read(path)), address_of(path, name)
    step = 6 if data[at + 5] & 4 else 4
    p = at + 6 + (16 if data[at + 5] & 0x20 else 0) + (4 if data[at + 5] & 0x10 else 0)
    n = 1 << (data[at + 5] & 3)
    chunks, places = [(at, p + n, p + n + int.from_bytes(data[p:p + n], "little"))], {}
    for _, p, end in chunks:
        while p + step <= end:
            kind, body = data[p], p + step
            places[kind] = body
            p = body + int.from_bytes(data[p + 1:p + 3], "little")
            if kind == 0x10:
                begin, size = struct.unpack_from("<QQ", data, body)
                chunks.append((begin, begin + 4, begin + size - 4))
    change(data, places, step)
    for begin, _, end in chunks:
        data[end:end + 4] = lookup3(bytes(data[begin:end])).to_bytes(4, "little")
    write(path, bytes(data))


def make_unknown(path, name, flags):
    """The comment in a version 2 header becomes a message of a type that nobody knows."""
    def change(data, places, step):
        head = places[0x0D] - step
        data[head], data[head + 3] = 0x70, flags
    with h5py.File(path, "r+") as f:
        h5py.h5o.set_comment(f[name].id, b"nobody knows this")
    change_header(path, name, change)


def make_wrong(path, name, kind):
    """The message of that type has a version that there is not."""
    def change(data, places, _):
        data[places[kind]] = 9
    change_header(path, name, change)


class Unchanged(MountCase):
    def refuse(self, m, at, table, expected):
        """Each request of the table gives the errno that is expected of it, or of the others."""
        for name, request in table.items():
            number = expected.get(name, expected["others"]) if isinstance(expected, dict) else expected
            with self.subTest(at=at, request=name):
                got = result(request, m.at(at), m.at("ok"))
                self.assertEqual(errno.errorcode.get(got, got), errno.errorcode.get(number, number))

    def try_all(self, paths, options, cases):
        """Tries what the cases have (a place, requests, what is expected of them) and compares the files."""
        before = [read(path) for path in paths]
        with Mount(paths[0], options=options) as m:
            for at, table, expected in cases:
                self.refuse(m, at, table, expected)
        for path, data in zip(paths, before):
            self.assertTrue(read(path) == data, f"{path} has changed")
        self.assertEqual([name for name in os.listdir(self.folder) if "journal" in name], [])

    def test_damaged_links(self):
        """All that names are needed for is refused; the group's attributes are not."""
        cases = [("at", NAMES, CLEAN), ("at/d", {**ATTRIBUTES, **CONTENTS}, CLEAN), ("at", NOTHING, NONE)]
        for signature in b"FRHP", b"FHDB", b"BTHD", b"BTLF":
            with self.subTest(damaged=signature):
                path = make(self.file("f.h5"), NEW, links=20)
                flip_last(path, signature)
                self.try_all([path], "rw", cases)
        # Behind the group's B-tree and heap come those of the group in it, which is empty and so has no node.
        for signature, number in (b"TREE\0", 2), (b"HEAP", 2), (b"SNOD", 1):
            with self.subTest(damaged=signature):
                path = make(self.file("f.h5"), OLD)
                flip_last(path, signature, number)
                self.try_all([path], "rw", cases)

    def test_damaged_attributes(self):
        expected = {"others": CLEAN}
        attributes = {name: request for name, request in ATTRIBUTES.items() if name != "comment"}
        for signature in b"FRHP", b"FHDB", b"BTHD", b"BTLF":
            with self.subTest(damaged=signature):
                path = make(self.file("f.h5"), NEW, attributes=20)
                flip_last(path, signature)
                self.try_all([path], "rw", [("at", attributes, expected), ("at", NOTHING, NONE)])

    def test_damaged_info_messages(self):
        """What tells of the links, or of the attributes, is damaged."""
        names = {name: request for name, request in NAMES.items() if name != "link out of"}
        for links in 0, 20:
            path = make(self.file("f.h5"), NEW, links=links)
            make_wrong(path, "at", 0x02)
            self.try_all([path], "rw", [("at", names, CLEAN), ("at", NOTHING, NONE)])
        path = make(self.file("f.h5"), NEW, attributes=20)
        make_wrong(path, "at", 0x15)
        attributes = {name: request for name, request in ATTRIBUTES.items() if name != "comment"}
        self.try_all([path], "rw", [("at", attributes, CLEAN), ("at", NOTHING, NONE)])

    def test_damaged_headers(self):
        """What has a damaged header of version 2 is of no kind, and no directory to the kernel."""
        path = make(self.file("f.h5"), NEW)
        flip(path, address_of(path, "at") + 20)
        self.try_all([path], "rw", [("at", NAMES, errno.ENOTDIR), ("at", ATTRIBUTES, CLEAN), ("at", CONTENTS, {"others": CLEAN}),
                                    ("at", LINKED, CLEAN), ("at", NOTHING, NONE)])
        path = make(self.file("f.h5"), OLD)
        flip(path, address_of(path, "at"))
        self.try_all([path], "rw", [("at", {**NAMES, **ATTRIBUTES}, CLEAN), ("at", NOTHING, NONE)])
        for how in OLD, NEW:
            path = make(self.file("f.h5"), how)
            flip(path, address_of(path, "at/d") + (0 if how is OLD else 20))
            self.try_all([path], "rw", [("at/d", {**ATTRIBUTES, **CONTENTS}, CLEAN), ("at/d", NOTHING, NONE), ("at/d", LINKED, CLEAN)])

    def test_other_files(self):
        for how in OLD, NEW:
            paths = [make(self.file("f.h5"), how), make(self.file("other.h5"), how)]
            with h5py.File(paths[0], "r+") as f:
                del f["at"]
                f["at"] = h5py.ExternalLink("other.h5", "/at")
            across = dict.fromkeys(["rename into", "rename onto", *ACROSS], XDEV)
            self.try_all(paths, "rw", [("at", NAMES, {"others": ROFS, **across}), ("at", ATTRIBUTES, ROFS), ("at/d", ATTRIBUTES, ROFS),
                                       ("at/d", CONTENTS, {"others": PERM, "shape": ROFS, "declare": ROFS}),
                                       ("at", NOTHING, NONE), ("at/d", NOTHING, NONE)])

    def test_mounts_for_reading_and_with_swmr_readers(self):
        path = make(self.file("f.h5"), NEW)
        everything = {**ATTRIBUTES, **CONTENTS}
        self.try_all([path], "ro", [("at", {**NAMES, **ATTRIBUTES, **NOTHING}, ROFS), ("at/d", {**everything, **NOTHING}, ROFS)])
        others = {name: CONTENTS[name] for name in ("shape", "declare", "punch")}
        self.try_all([path], "rw,swmr", [("at", {**NAMES, **ATTRIBUTES}, PERM), ("at/d", {**ATTRIBUTES, **others}, PERM),
                                         ("at", NOTHING, NONE)])

    def test_messages_that_nobody_knows(self):
        """Flag 7: the object is not opened at all; flag 3: not to be changed; flag 0: it may be; flag 4: then it has flag 5, too."""
        changes = {
            "set an attribute": lambda path: os.setxattr(path, "user.a", b"7"),
            "many attributes": lambda path: [os.setxattr(path, f"user.a{i}", b"7") for i in range(12)],
            "append": lambda path: with_file(path, os.O_WRONLY | os.O_APPEND, lambda fd: os.write(fd, bytes(400))),
            "link": lambda path: os.link(path, path + "2"),
        }
        for name, change in changes.items():
            for flags, marked in (0, 0), (0x10, 0x30), (0x30, 0x30):
                with self.subTest(request=name, flags=flags):
                    path = make(self.file("f.h5"), NEW)
                    make_unknown(path, "at/d", flags)
                    with Mount(path, options="rw") as m:
                        change(m.at("at/d"))
                    data = read(path)
                    found = [data[at.start() - step:][:4] for at in re.finditer(b"nobody knows this", data) for step in (4, 6)]
                    self.assertIn(bytes([0x70, 18, 0, marked]), found)
                    judges.agree(path)
        for flags, declared in (0x80, NOTSUP), (0x08, errno.EBUSY):
            with self.subTest(flags=flags):
                path = make(self.file("f.h5"), NEW)
                make_unknown(path, "at/d", flags)
                self.try_all([path], "rw", [("at/d", {**ATTRIBUTES, **CONTENTS, **LINKED, "unlink": lambda at, ok: os.unlink(at)},
                                              {"others": NOTSUP, "declare": declared}), ("at/d", NOTHING, NONE)])


    def test_contents_elsewhere(self):
        """Virtual datasets, and external files in a mount that may not write them, keep their contents. Names and attributes change."""
        for how in OLD, NEW:
            path, raw = make(self.file("f.h5"), how), self.file("raw")
            write(raw, bytes(8))
            with h5py.File(path, "r+", **how) as f:
                f["at"].create_dataset("raw", (2,), "<i4", external=[(raw, 0, 8)])
                layout = h5py.VirtualLayout((2,), "<i4")
                layout[:] = h5py.VirtualSource(f["ok/d"])
                f["at"].create_virtual_dataset("virtual", layout)
            expected = {"others": PERM, "declare": NOTSUP, **dict.fromkeys(NOTHING, NONE)}
            self.try_all([path, raw], "rw", [("at/virtual", {**CONTENTS, **NOTHING}, expected),
                                             ("at/raw", {**CONTENTS, **NOTHING}, {**expected, "shape": NOTSUP})])

    def test_user_block(self):
        """Neither the block nor what is behind it."""
        path = make(self.file("f.h5"), dict(NEW, userblock_size=1024), links=20)
        write(path, bytes(range(256)) * 4 + read(path)[1024:])
        flip_last(path, b"FRHP")
        self.try_all([path], "rw", [("at", NAMES, CLEAN), ("at/d", {**ATTRIBUTES, **CONTENTS}, CLEAN), ("at", NOTHING, NONE)])

    def test_family(self):
        """Of members that are too small to be written."""
        with h5py.File(self.file("f%d.h5"), "w", driver="family", memb_size=2048, **NEW) as f:
            fill(f.create_group("ok"))
            fill(f.create_group("at"))
        paths = [self.file(name) for name in sorted(os.listdir(self.folder)) if name.startswith("f")]
        self.assertGreater(len(paths), 1)
        before = [read(path) for path in paths]
        self.assertEqual(refusal(paths[0], options="rw")[0], 6)
        self.assertEqual([read(path) for path in paths], before)
        self.try_all(paths, "ro", [("at", {**NAMES, **ATTRIBUTES, **NOTHING}, ROFS), ("at/d", {**ATTRIBUTES, **CONTENTS, **NOTHING}, ROFS)])

    def test_objects_behind_the_end(self):
        """As libhdf5 has it, they are no part of the file: what is new may lie there, so a mount for writing shows none of them."""
        path = self.file("short.h5")
        with h5py.File(path, "w", libver=("v108", "v108")) as f:
            f["first"] = [1]
            f.create_group("g")["last"] = [2]
            end = h5py.h5o.get_info(f["g"].id).addr
        data = bytearray(read(path))
        data[28:36] = end.to_bytes(8, "little")
        data[44:48] = lookup3(bytes(data[:44])).to_bytes(4, "little")
        write(path, bytes(data))
        with Mount(path) as m:
            self.assertEqual(sorted(os.listdir(m.at("g"))), ["last"])
        with Mount(path, options="rw") as m:
            self.assertEqual(result(read, m.at("g")), CLEAN)
            self.assertEqual(result(os.mkdir, m.at("g", "new")), errno.ENOTDIR)
            self.assertEqual(os.getxattr(m.at("first"), "h5fs.shape"), b"1")
        self.assertEqual(read(path), bytes(data))

    def test_marked_as_being_written(self):
        path = make(self.file("f.h5"), NEW)
        data = bytearray(read(path))
        data[11] = 1
        data[44:48] = lookup3(bytes(data[:44])).to_bytes(4, "little")
        write(path, bytes(data))
        self.assertEqual(refusal(path, options="rw")[0], 9)
        self.try_all([path], "ro", [("at", {**NAMES, **ATTRIBUTES, **NOTHING}, ROFS), ("at/d", {**ATTRIBUTES, **CONTENTS, **NOTHING}, ROFS)])


main()
