#!/usr/bin/python3
"""Links of every kind: hard ones that make cycles, soft ones, external ones and the rule that confines them."""
import contextlib
import errno
import os
import subprocess
import unittest

import h5py

from mountlib import Mount, MountCase, lookup3, main, read, write

FOUND = os.path.join(os.environ.get("H5FS_CONFORMANCE", ""), "found", "hostile")

ONE = (1).to_bytes(8, "little")


def data(group, name, value=1):
    group.create_dataset(name, data=value, dtype="<i8")


class HardLinks(MountCase):
    def test_groups_that_contain_themselves(self):
        path = self.file("cycle.h5")
        with h5py.File(path, "w") as f:
            b = f.create_group("a/b")
            data(b, "d")
            b["self"] = b
            b["up"] = f["a"]
            b["root"] = f["/"]
            f["a/down"] = b  # a second place, not an ancestor
        with Mount(path) as m:
            self.assertEqual(os.readlink(m.at("a/b/self")), ".")
            self.assertEqual(os.readlink(m.at("a/b/up")), "..")
            self.assertEqual(os.readlink(m.at("a/b/root")), "../..")
            self.assertEqual(os.readlink(m.at("a/down/up")), "..")
            self.assertEqual(os.readlink(m.at("a/down/self")), ".")
            for way in ("a/b/self/d", "a/b/up/b/d", "a/b/root/a/b/d", "a/down/d", "a/down/up/down/self/d"):
                self.assertEqual(read(m.at(way)), ONE, way)
            found = sorted(os.path.relpath(os.path.join(folder, name), m.path)
                           for folder, folders, files in os.walk(m.path) for name in folders + files)
            self.assertEqual(found, ["a", "a/b", "a/b/d", "a/b/root", "a/b/self", "a/b/up",
                                     "a/down", "a/down/d", "a/down/root", "a/down/self", "a/down/up"])

    def test_dots_are_the_directories_that_they_name(self):
        path = self.file("dots.h5")
        with h5py.File(path, "w") as f:
            f.create_group("a/b")
        with Mount(path) as m:
            for folder, parent in (("", ""), ("a", ""), ("a/b", "a")):
                said = subprocess.run(["ls", "-aif", m.at(folder)], capture_output=True, text=True, check=True).stdout
                numbers = {line.split()[1]: int(line.split()[0]) for line in said.splitlines()}
                self.assertEqual(numbers["."], os.stat(m.at(folder)).st_ino, folder)
                if folder:
                    self.assertEqual(numbers[".."], os.stat(m.at(parent)).st_ino, folder)

    def test_two_groups_that_contain_each_other(self):
        path = self.file("pair.h5")
        with h5py.File(path, "w") as f:
            f.create_group("a")["b"] = f.create_group("b")
            f["b"]["a"] = f["a"]
        with Mount(path) as m:
            self.assertEqual(os.readlink(m.at("a/b/a")), "..")
            self.assertEqual(os.readlink(m.at("b/a/b")), "..")
            self.assertTrue(os.path.isdir(m.at("a/b")) and not os.path.islink(m.at("a/b")))

    def test_one_group_in_two_places(self):
        path = self.file("shared.h5")
        with h5py.File(path, "w") as f:
            g = f.create_group("p/g")
            f.create_group("q/deep")["g"] = g
            data(g, "x")
            data(f, "top", 2)
            g["soft"] = h5py.SoftLink("/top")
        with Mount(path) as m:
            one, two = m.at("p/g"), m.at("q/deep/g")
            self.assertEqual(os.stat(one).st_ino, os.stat(two).st_ino)
            for folder in (one, two):
                self.assertEqual(sorted(os.listdir(folder)), ["soft", "x"])
            # Both stay what and where they are, however often they are looked at in turns.
            for _ in range(20):
                for folder in (one, two):
                    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
                    self.assertEqual(os.readlink(f"/proc/self/fd/{here}"), folder)
                    os.close(here)
            self.assertEqual(os.readlink(m.at("p/g/soft")), "../../top")
            self.assertEqual(os.readlink(m.at("q/deep/g/soft")), "../../../top")
            for folder in (one, two):
                self.assertEqual(read(os.path.join(folder, "soft")), (2).to_bytes(8, "little"))

    def test_one_dataset_in_two_places(self):
        for libver in ("earliest", "latest"):
            path = self.file(f"{libver}.h5")
            with h5py.File(path, "w", libver=libver) as f:
                data(f, "one")
                f.create_group("g")["two"] = f["one"]
                f["g/three"] = f["one"]
                data(f, "alone")
                f["type"] = f["one"].dtype
                f["g/type"] = f["type"]
            with self.subTest(libver=libver), Mount(path) as m:
                names = ("one", "g/two", "g/three")
                self.assertEqual(len({os.stat(m.at(name)).st_ino for name in names}), 1)
                self.assertEqual([os.stat(m.at(name)).st_nlink for name in names], [3, 3, 3])
                self.assertEqual(os.stat(m.at("alone")).st_nlink, 1)
                self.assertNotEqual(os.stat(m.at("alone")).st_ino, os.stat(m.at("one")).st_ino)
                self.assertEqual(os.stat(m.at("type")).st_ino, os.stat(m.at("g/type")).st_ino)
                self.assertEqual(os.stat(m.at("type")).st_nlink, 2)
                in_listing = {entry.name: entry.inode() for entry in os.scandir(m.at("g"))}
                self.assertEqual(in_listing["two"], os.stat(m.at("one")).st_ino)

    def test_inode_numbers_are_the_same_in_the_next_mount(self):
        path = self.file("again.h5")
        with h5py.File(path, "w") as f:
            data(f, "a/b/c")
            data(f, "d")

        def numbers(order):
            with Mount(path) as m:
                return {name: os.stat(m.at(name)).st_ino for name in order}
        names = [".", "a", "a/b", "a/b/c", "d"]
        self.assertEqual(numbers(names), numbers(names[::-1]))


class SoftLinks(MountCase):
    def test_targets(self):
        """Each as doc/h5fs.1 has it: absolute targets become relative, components are escaped, none leaves the mount."""
        targets = {"up": ("/a/d", "../a/d"), "relative": ("../a/d", "%2E%2E/a/d"), "down": ("sub/d", "sub/d"),
                   "doubled": ("//a//d///", "../a/d"), "root": ("/", ".."), "nowhere": ("/no/such", "../no/such"),
                   "beside": ("nothing", "nothing"), "percent": ("%2E", "%252E"), "blank": ("a%20b", "a%20b"), "dots": ("a/../b", "a/%2E%2E/b"),
                   "latin": (b"\xe9", b"\xe9".decode("utf-8", "surrogateescape"))}
        for libver in ("earliest", "latest"):
            path = self.file(f"{libver}.h5")
            with h5py.File(path, "w", libver=libver) as f:
                data(f, "a/d")
                x = f.create_group("x")
                data(x, "sub/d")
                data(x, "%2E")
                data(x, "a%20b")
                for name, (target, _) in targets.items():
                    target = target if isinstance(target, bytes) else target.encode()
                    x.id.links.create_soft(name.encode(), target)
            with self.subTest(libver=libver), Mount(path) as m:
                for name, (_, shown) in targets.items():
                    self.assertEqual(os.readlink(m.at("x", name)), shown, name)
                for name in ("up", "down", "doubled", "percent", "blank"):
                    self.assertEqual(read(m.at("x", name)), ONE, name)
                self.assertTrue(os.path.samefile(m.at("x/root"), m.path))
                for name in ("relative", "nowhere", "beside", "dots", "latin"):
                    self.assertFalse(os.path.exists(m.at("x", name)), name)

    def test_dots_in_a_target_stay_where_they_are(self):
        """`.` is the group itself in HDF5 as in POSIX."""
        path = self.file("dot.h5")
        with h5py.File(path, "w") as f:
            data(f, "x/d")
            f["x/a"] = h5py.SoftLink("./d")
            f["x/b"] = h5py.SoftLink("/x/./d")
        with Mount(path) as m:
            self.assertEqual([read(m.at("x/a")), read(m.at("x/b"))], [ONE, ONE])

    def test_the_shortest_way(self):
        """A target is relative to its folder by the shortest way, so that what `ln -s` has made reads back."""
        targets = {"/a/b/x": "x", "/a/b": ".", "/a": "..", "/": "../..", "/a/x": "../x", "/a/bb/x": "../bb/x", "/aa/b/x": "../../aa/b/x",
                   "/b/x": "../../b/x", "/a/b/c/x": "c/x", "//a//b//c/": "c", "/a/%2E/x": "../%252E/x", "/a/.../x": "../.../x"}
        path = self.file("ways.h5")
        with h5py.File(path, "w") as f:
            g = f.create_group("a/b")
            g.create_group("..")["link"] = h5py.SoftLink("/a/b/../x")
            for i, target in enumerate(targets):
                g[str(i)] = h5py.SoftLink(target)
            f["again"] = f["a"]
        for subdir, here in ("/", "a/b"), ("/a", "b"):
            with self.subTest(subdir), Mount(path, options=f"subdir={subdir}") as m:
                shown = {target: os.readlink(m.at(here, str(i))) for i, target in enumerate(targets) if target.startswith(subdir) and subdir != "/a" or target.startswith("/a/")}
                self.assertEqual(shown, {target: targets[target] for target in shown})
                self.assertEqual(os.readlink(m.at(here, "%2E%2E/link")), "x")
                if subdir == "/":
                    self.assertEqual(os.readlink(m.at("again/b/0")), "../../a/b/x")

    def test_a_soft_link_to_itself(self):
        path = self.file("loop.h5")
        with h5py.File(path, "w") as f:
            f["me"] = h5py.SoftLink("/me")
            f["ping"] = h5py.SoftLink("pong")
            f["pong"] = h5py.SoftLink("ping")
        with Mount(path) as m:
            self.assertEqual(os.readlink(m.at("me")), "me")
            self.assertFalse(os.path.exists(m.at("ping")))
            self.assertEqual(sorted(os.listdir(m.path)), ["me", "ping", "pong"])

    def test_a_target_longer_than_a_symlink_can_be(self):
        """It exists nowhere, and its neighbours do."""
        path = self.file("long.h5")
        longest = 2047 * "a/" + "b"  # 4095 bytes
        with h5py.File(path, "w") as f:
            data(f, "a")
            f["longest"] = h5py.SoftLink(longest)
            f["longer"] = h5py.SoftLink(longest + "c")
            f["outside"] = h5py.ExternalLink("no.h5", longest)
            data(f, "z")
        with Mount(path) as m:
            kinds = {entry.name: entry.is_symlink() for entry in os.scandir(m.path)}
            self.assertEqual(kinds, {"a": False, "longer": True, "longest": True, "outside": True, "z": False})
            self.assertEqual(os.readlink(m.at("longest")), longest)
            for name in ("longer", "outside"):
                self.assertEqual(os.readlink(m.at(name)), "toolong:")
                self.assertFalse(os.path.exists(m.at(name)))


class ExternalLinks(MountCase):
    """in/main.h5 is mounted; in/sub/other.h5 lies beneath, out.h5 outside."""

    def setUp(self):
        super().setUp()
        os.makedirs(self.file("in/sub"))
        os.mkdir(self.file("in/inner"))
        for name in ("in/sub/other.h5", "in/beside.h5", "in/inner/beside.h5", "out.h5"):
            with h5py.File(self.file(name), "w") as f:
                data(f, "d")
                g = f.create_group("g")
                data(g, "e", 2)
                g["soft"] = h5py.SoftLink("/d")
                g["lost"] = h5py.SoftLink("/no/such")
                g["self"] = g
                g["back"] = h5py.ExternalLink(self.file("in/main.h5"), "/")
        os.symlink("../../out.h5", self.file("in/sub/way-out.h5"))
        self.links = {
            "file": ("sub/other.h5", "/d"),
            "relative": ("sub/other.h5", "d"),
            "group": ("sub/other.h5", "/g"),
            "root": ("sub/other.h5", "/"),
            "absolute": (self.file("in/beside.h5"), "/d"),
            "moved": ("/no/such/folder/beside.h5", "/d"),
            "through": ("sub/../beside.h5", "/d"),
            "missing": ("missing.h5", "/g/d"),
            "nothing": ("sub/other.h5", "/no/such"),
            "outside": ("../out.h5", "/d"),
            "outside-absolute": (self.file("out.h5"), "/d"),
            "way-out": ("sub/way-out.h5", "/d"),
            "self": ("main.h5", "/x"),
            "not-hdf5": ("sub", "/d"),
        }
        with h5py.File(self.file("in/main.h5"), "w") as f:
            x = f.create_group("x")
            for name, (file, target) in self.links.items():
                x[name] = h5py.ExternalLink(file, target)

    def dangling(self, m, *names):
        for name in names:
            file, target = self.links[name]
            self.assertEqual(os.readlink(m.at("x", name)), f"extlink:{file}//{target.lstrip('/')}", name)
            self.assertFalse(os.path.exists(m.at("x", name)))

    def test_beneath(self):
        with Mount(self.file("in/main.h5")) as m:
            for name in ("file", "relative", "absolute", "moved", "group/soft", "root/d", "root/g/soft"):
                self.assertEqual(read(m.at("x", name)), ONE, name)
                self.assertFalse(os.path.islink(m.at("x", name)), name)
            self.assertEqual(read(m.at("x/group/e")), (2).to_bytes(8, "little"))
            self.dangling(m, "missing", "nothing", "outside", "outside-absolute", "way-out", "not-hdf5")

    def test_damaged_target(self):
        with h5py.File(self.file("in/sub/other.h5"), "r") as f:
            root = h5py.h5o.get_info(f.id).addr
        with open(self.file("in/sub/other.h5"), "r+b") as f:
            f.seek(root)
            f.write(b"\xff")
        with Mount(self.file("in/main.h5")) as m:
            self.dangling(m, "file", "group", "root")
            self.assertEqual(read(m.at("x/through")), ONE)

    def test_a_name_that_a_dangling_target_leads_to(self):
        """A link called `extlink:..` must not become a step on a way out of the mount."""
        path = self.file("in/trap.h5")
        with h5py.File(path, "w") as f:
            f.create_group("extlink:..")
            f.create_group("g/extlink:a")
            f["out"] = h5py.ExternalLink("../../../../..", "/etc")
            f["g/out"] = h5py.ExternalLink("a/../../../../../..", "/etc")
        with Mount(path) as m:
            for name in ("out", "g/out"):
                target = os.readlink(m.at(name))
                self.assertNotIn("..", target.split("/"))
                self.assertFalse(os.path.exists(m.at(name)), target)

    def climb(self, top):
        """Lists everything, attributes and all, so that the kernel knows each name; then every symlink, followed step by step
        as the kernel does it, stays in the mount."""
        subprocess.run(["ls", "-lR", top], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        seen = 0
        for folder, folders, files in os.walk(top):
            for name in folders + files:
                path = os.path.join(folder, name)
                with contextlib.suppress(OSError):
                    target = os.readlink(path)
                    seen += 1
                    self.assertFalse(target.startswith("/"), path)
                    self.assertTrue((os.path.realpath(path) + "/").startswith(os.path.realpath(top) + "/"), f"{path} -> {target}")
        return seen

    @unittest.skipUnless(os.path.isdir(FOUND), "H5FS_CONFORMANCE names no folder with found files")
    def test_an_index_that_hides_a_name(self):
        with Mount(os.path.join(FOUND, "symlink-escape-bad-index.h5")) as m:
            self.assertGreater(self.climb(m.path), 5)
            self.assertErrno(errno.ENOENT, os.stat, m.at("g/e"))
            for name in ("e", "etc"):
                self.assertNotIn("..", os.readlink(m.at("g", name)).split("/"))

    def test_indexes_that_hide_names(self):
        """The first component of a dangling target exists, but no look-up finds it. Behind it, symbolic links would make steps
        lead out that look harmless."""
        for libver in ("earliest", "latest"):
            path = self.file(f"in/{libver}.h5")
            with h5py.File(path, "w", libver=libver) as f:
                for g in (f, f.create_group("g")):
                    for i in range(20):
                        g[f"filler {i:02d}"] = h5py.SoftLink("/nowhere")
                    g.create_group("extlinkAx")["a"] = h5py.SoftLink("/")
                    for i, name in enumerate(("x/../../../../../../../../../..", "x/a/..", "x/a/./..", "x/./..", "x/..")):
                        g[f"out {i}"] = h5py.ExternalLink(name, "/etc/passwd")
                        g[f"two {i}"] = h5py.ExternalLink("x", "a/" + name[2:] + "/etc")
            # A name that hashes, and sorts, elsewhere.
            data = bytearray(read(path))
            self.assertEqual(self.rename_in_heaps(data), 2)
            write(path, data)
            with self.subTest(libver=libver), Mount(path) as m:
                self.assertIn("extlink:x", os.listdir(m.path))
                self.assertGreater(self.climb(m.path), 20)

    def rename_in_heaps(self, data):
        """Renames the link in fractal heap blocks, with their checksums; the number of blocks."""
        count, at = 0, -1
        while (at := data.find(b"FHDB", at + 1)) >= 0:
            heap = int.from_bytes(data[at + 5:at + 13], "little")
            size = int.from_bytes(data[heap + 112:heap + 120], "little")  # of a block; 8-byte sizes, no filters
            place = at + 13 + (int.from_bytes(data[heap + 128:heap + 130], "little") + 7) // 8  # behind the block's offset
            block = data[at:at + size].replace(b"extlinkAx", b"extlink:x")
            if block == data[at:at + size]:
                continue
            block[place - at:place - at + 4] = bytes(4)
            block[place - at:place - at + 4] = lookup3(bytes(block)).to_bytes(4, "little")
            data[at:at + size] = block
            count += 1
        return count

    def test_links_within_the_other_file(self):
        with Mount(self.file("in/main.h5")) as m:
            self.assertEqual(sorted(os.listdir(m.at("x/group"))), ["back", "e", "lost", "self", "soft"])
            self.assertEqual(os.readlink(m.at("x/group/self")), ".")
            self.assertTrue(os.path.islink(m.at("x/group/lost")))
            self.assertFalse(os.path.exists(m.at("x/group/lost")))

    def test_an_external_link_to_an_ancestor(self):
        with Mount(self.file("in/main.h5")) as m:
            self.assertEqual(os.readlink(m.at("x/self")), ".")
            self.assertEqual(os.readlink(m.at("x/group/back")), "../..")
            count = sum(1 for _ in os.walk(m.path))
            self.assertLess(count, 20)

    def test_inodes_of_two_files_differ(self):
        """Objects at one address of several files are several objects; one object through two links is one."""
        with Mount(self.file("in/main.h5")) as m:
            inode = {name: os.stat(m.at("x", name)).st_ino for name in ("file", "relative", "root/d", "absolute", "moved")}
            self.assertEqual(inode["file"], inode["relative"])
            self.assertEqual(inode["file"], inode["root/d"])
            self.assertEqual(inode["absolute"], inode["moved"])
            self.assertNotEqual(inode["file"], inode["absolute"])

    def test_none(self):
        with Mount(self.file("in/main.h5"), options="external=none") as m:
            self.dangling(m, *(name for name in self.links if name != "self"))

    def test_any(self):
        with Mount(self.file("in/main.h5"), options="external=any") as m:
            for name in ("file", "absolute", "through", "outside", "outside-absolute", "way-out"):
                self.assertEqual(read(m.at("x", name)), ONE, name)
            self.dangling(m, "missing", "nothing")

    def test_a_name_with_a_component_that_leads_up_but_stays_beneath(self):
        with Mount(self.file("in/main.h5")) as m:
            self.assertEqual(read(m.at("x/through")), ONE)


class UserDefinedLinks(MountCase):
    def test_class_number(self):
        """A link of a class that nobody registered: an external link in a version 1 header (no checksum), patched."""
        path = self.file("user.h5")
        with h5py.File(path, "w", libver="earliest") as f:
            f.create_group("g")["user_link"] = h5py.ExternalLink("file.h5", "/d")
            data(f, "g/d")
        content = bytearray(read(path))
        kind = content.index(b"user_link") - 2  # then comes the length of the name, then the name
        self.assertEqual(content[kind:kind + 2], b"\x40\x09")
        content[kind] = 187
        with open(path, "wb") as f:
            f.write(content)
        with Mount(path) as m:
            self.assertEqual(os.readlink(m.at("g/user_link")), "udlink:187")
            self.assertEqual(sorted(os.listdir(m.at("g"))), ["d", "user_link"])
            self.assertEqual(read(m.at("g/d")), ONE)


if __name__ == "__main__":
    main()
