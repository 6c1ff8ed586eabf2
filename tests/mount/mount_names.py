#!/usr/bin/python3
"""Names: those that no directory can hold, the rule about '%', names that are too long, bytes that are not UTF-8."""
import os

import h5py
import numpy

from mountlib import Mount, MountCase, main, patch, read


def fnv1a(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return b"%016x" % value


def cut(kept, name):
    return kept + b"%~" + fnv1a(name)


LONG = b"n" * 256
LONG_ESCAPE_AT_CUT = b"n" * 198 + b"%2E" + b"x" * 100
LONG_BY_ESCAPES = b"n" * 249 + b"%2E%2F"
LONG_UTF8 = "\u00e9".encode() * 200

# Names that the API of libhdf5 can make, and what they become.
NAMES = {
    b"plain": b"plain",
    b"..": b"%2E%2E",
    b"...": b"...",
    b".hidden": b".hidden",
    b" ": b" ",
    b"a b\tc\nd": b"a b\tc\nd",
    b"back\\slash": b"back\\slash",
    b"%": b"%25",
    b"100%": b"100%",
    b"%%": b"%%",
    b"%4": b"%4",
    b"%4g": b"%4g",
    b"a%20b": b"a%20b",
    b"%41": b"%41",
    b"%%41": b"%%41",
    b"%2f": b"%2f",
    b"%2F%2f": b"%252F%2f",
    b"%2E": b"%252E",
    b"%2500": b"%252500",
    b"%00": b"%2500",
    b"%~": b"%25~",
    b"a%~0123456789abcdef": b"a%25~0123456789abcdef",
    b"\xff\xfe": b"\xff\xfe",
    b"caf\xe9": b"caf\xe9",
    "caf\u00e9".encode(): "caf\u00e9".encode(),
    b"n" * 255: b"n" * 255,
    LONG: cut(LONG[:200], LONG),
    b"m" + LONG: cut((b"m" + LONG)[:200], b"m" + LONG),
    LONG_ESCAPE_AT_CUT: cut(b"n" * 198, LONG_ESCAPE_AT_CUT),
    LONG_BY_ESCAPES: cut(b"n" * 200, LONG_BY_ESCAPES),
    LONG_UTF8: cut(LONG_UTF8[:200], LONG_UTF8),
}

# Names that it refuses: made under another name of the same length, alone in their group, then patched.
FORBIDDEN = {
    b"DOT1": (b".\0\0\0", b"%2E"),
    b"DOT2": (b"..\0\0", b"%2E%2E"),
    b"NONE": (b"\0\0\0\0", b"%"),
    b"a!slash!b": (b"a/slash/b", b"a%2Fslash%2Fb"),
    b"!root": (b"/root", b"%2Froot"),
    b"tail!": (b"tail/", b"tail%2F"),
    b"!41%2F": (b"/41%2F", b"%2F41%252F"),
}


def scalar(group, name, value):
    """A scalar int64 dataset under a name of any bytes."""
    space = h5py.h5s.create(h5py.h5s.SCALAR)
    data = h5py.h5d.create(group.id, None, h5py.h5t.STD_I64LE, space)
    data.write(h5py.h5s.ALL, h5py.h5s.ALL, numpy.array(value, "<i8"))
    h5py.h5o.link(data, group.id, name)


class Names(MountCase):
    def check(self, folder, expected):
        """`expected`: file name -> value of the dataset there."""
        self.assertEqual(sorted(os.listdir(folder)), sorted(expected))
        for name, value in expected.items():
            with self.subTest(name=name):
                self.assertEqual(read(os.path.join(folder, name)), value.to_bytes(8, "little"))

    def names_file(self, libver):
        path = self.file("names.h5")
        with h5py.File(path, "w", libver=libver) as f:
            for i, name in enumerate(NAMES):
                scalar(f, name, i)
        return path

    def test_escapes(self):
        """A symbol table, and (there are more than 8 links) a dense group."""
        for libver in ("earliest", "latest"):
            with self.subTest(libver=libver), Mount(self.names_file(libver)) as m:
                self.check(os.fsencode(m.path), {name: i for i, name in enumerate(NAMES.values())})

    def test_few_names_are_link_messages(self):
        path = self.file("compact.h5")
        some = [b"..", b"%41", b"%2E", b"%", b"\xff\xfe", LONG, LONG_ESCAPE_AT_CUT]
        with h5py.File(path, "w", libver="latest") as f:
            for i, name in enumerate(some):
                scalar(f, name, i)
        with Mount(path) as m:
            self.check(os.fsencode(m.path), {NAMES[name]: i for i, name in enumerate(some)})

    def test_one_name_each(self):
        """A file has one name: neither the unescaped one nor another spelling of the escape finds it."""
        path = self.file("aliases.h5")
        with h5py.File(path, "w") as f:
            for i, name in enumerate((b"A", b"..", b"%2F", LONG)):
                scalar(f, name, i)
        with Mount(path) as m:
            for alias in (b"%41", b"%2e%2e", b"%2E.", b"%2F", b"%252f", b"%25252F", b"%", b"%00", b"A%00",
                          cut(LONG[:200], LONG).upper(), cut(LONG[:199], LONG), cut(LONG[:200], b"other")):
                with self.subTest(alias=alias):
                    self.assertFalse(os.path.lexists(os.path.join(os.fsencode(m.path), alias)))

    def test_symbol_table_names_that_the_api_refuses(self):
        path = self.file("forbidden.h5")
        with h5py.File(path, "w", libver="earliest") as f:
            for i, name in enumerate(FORBIDDEN):
                scalar(f.create_group(f"g{i}"), name, i)
        for old, (new, _) in FORBIDDEN.items():
            patch(path, old + b"\0", new + b"\0")
        with Mount(path) as m:
            for i, (_, shown) in enumerate(FORBIDDEN.values()):
                with self.subTest(name=shown):
                    self.check(os.fsencode(m.at(f"g{i}")), {shown: i})

    def test_link_messages_that_the_api_refuses(self):
        """Link messages count their bytes, so that a name may hold NUL too. Version 1 headers have no checksum."""
        path = self.file("messages.h5")
        names = {b"a!b": (b"a/b", b"a%2Fb"), b"c!d": (b"c\0d", b"c%00d"), b"!!": (b"..", b"%2E%2E"),
                 b"?1": (b"%\0", b"%%00"), b"\x01": (b".", b"%2E")}
        with h5py.File(path, "w", libver="earliest") as f:
            for i, name in enumerate(names):
                plist = h5py.h5p.create(h5py.h5p.GROUP_CREATE)
                plist.set_link_creation_order(h5py.h5p.CRT_ORDER_TRACKED)  # makes it a group of link messages
                h5py.h5g.create(f.id, b"g%d" % i, gcpl=plist)
                scalar(f[f"g{i}"], name, i)
        for old, (new, _) in names.items():
            patch(path, bytes([0] * 8 + [len(old)]) + old, bytes([0] * 8 + [len(new)]) + new)
        with Mount(path) as m:
            for i, (_, shown) in enumerate(names.values()):
                with self.subTest(name=shown):
                    self.check(os.fsencode(m.at(f"g{i}")), {shown: i})

    def test_attribute_names_are_not_escaped(self):
        long = b"a" * 251
        names = {b"plain": b"plain", b"a/b": b"a/b", b".": b".", b"..": b"..", b"%41": b"%41", b"%": b"%",
                 b"\xff\xfe": b"\xff\xfe", b"a b": b"a b", b"a" * 250: b"a" * 250, long: cut(long[:195], long)}
        for libver in ("earliest", "latest"):
            path = self.file(f"{libver}.h5")
            with h5py.File(path, "w", libver=libver) as f:
                for i, name in enumerate(names):
                    space = h5py.h5s.create(h5py.h5s.SCALAR)
                    h5py.h5a.create(f.id, name, h5py.h5t.STD_I64LE, space).write(numpy.array(i, "<i8"))
            with self.subTest(libver=libver), Mount(path) as m:
                shown = [os.fsdecode(b"user." + name) for name in names.values()]
                self.assertEqual(sorted(os.listxattr(m.path)), sorted(shown))
                for i, name in enumerate(shown):
                    self.assertEqual(os.getxattr(m.path, name), b"%d" % i)

    def test_files_of_attributes_with_long_names(self):
        names = ["a" * 300, "a" * 299 + "b", "/" * 100, "a" * 255]
        for libver in ("earliest", "latest"):
            path = self.file(f"files-{libver}.h5")
            with h5py.File(path, "w", libver=libver) as f:
                d = f.create_dataset("d", data=0)
                for i, name in enumerate(names):
                    d.attrs[name] = i
            with self.subTest(libver=libver), Mount(path) as m:
                shown = {name: int(read(m.at(".h5fs/attrs/d", name))) for name in os.listdir(m.at(".h5fs/attrs/d"))}
                self.assertEqual(sorted(shown.values()), [0, 1, 2, 3])
                for i, name in enumerate(names[:3]):
                    kept, _, number = next(name for name in shown if shown[name] == i).partition("%~")
                    self.assertEqual(number.encode(), fnv1a(name.encode()))
                    # Another number is another attribute's.
                    self.assertFalse(os.path.exists(m.at(f".h5fs/attrs/d/{kept}%~{'0' * 16}")))


if __name__ == "__main__":
    main()
