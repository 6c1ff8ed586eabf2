#!/usr/bin/python3
"""Structures that no writer makes: one hostile object a class, an error for it, and its neighbour as before."""
import errno
import json
import os
import re
import struct

import h5py

import bad_structures
import h5bytes as b
from h5bytes import UNDEF, File
from h5heap import dense_group
from mountlib import H5FS, Mount, MountCase, main, read, write

MEMORY_MAX = 1 << 30
GOOD = bad_structures.GOOD
with open(H5FS, "rb") as binary:
    SANITIZED = b"__asan_init" in binary.read()


class Hostile(MountCase):
    def make(self, file, found, links=(), **more):
        """The path of a file with these objects, by name, and a good one."""
        names = {**found, "good": bad_structures.good(file)}
        root = file.group([file.link(n if isinstance(n, bytes) else n.encode(), a) for n, a in names.items()] + list(links))
        path = self.file("hostile.h5")
        write(path, file.finish(root, **more))
        return path

    def assertGood(self, m):
        self.assertEqual(read(m.at("good")), GOOD)
        with open(f"/proc/{m.daemon}/status") as f:
            peak = int(re.search(r"VmHWM:\s+(\d+)", f.read())[1]) << 10
        if not SANITIZED:
            self.assertLess(peak, MEMORY_MAX)


class Headers(Hostile):
    def test_what_is_refused(self):
        """tests/unit/check_bad_structures.c sees it sooner; here it takes little memory, too."""
        file = File()
        found = bad_structures.refused(file)
        with Mount(self.make(file, found), options="max_work=1") as m:
            for name in found:
                with self.subTest(name=name):
                    os.lstat(m.at(name))
                    self.assertErrno(errno.EUCLEAN, read, m.at(name))
            self.assertGood(m)

    def test_a_long_chain(self):
        file = File()
        messages = [(b.DATASPACE, file.dataspace((3,))), (b.DATATYPE, b.integer(1)), (b.LAYOUT, struct.pack("<BBH", 3, 0, 3) + b"abc")]
        path = self.make(file, {"long": file.header2(*[[m] for m in messages], *[[]] * 3000)})
        with Mount(path) as m:
            self.assertEqual(read(m.at("long")), b"abc")
            self.assertGood(m)

    def test_names(self):
        """Such names are shown, escaped, and lead to their objects."""
        file = File()
        names = [b"", b".", b"..", b"/", b"a/b", b"../up", b"x\0y", b"\0", b"%", b"n" * 300, b"\n", b"\xff\xfe"]
        data = {n: struct.pack("<B", i) for i, n in enumerate(names)}
        found = {n: bad_structures.dataset(file, (1,), layout=struct.pack("<BBH", 3, 0, 1) + d) for n, d in data.items()}
        with Mount(self.make(file, found)) as m:
            shown = set(os.listdir(m.path.encode())) - {b"good"}
            self.assertEqual(len(shown), len(names))
            self.assertEqual({read(os.path.join(m.path.encode(), n)) for n in shown}, set(data.values()))
            self.assertGood(m)


class Shapes(Hostile):
    @staticmethod
    def read_some(path):
        """The size may be too large to read all."""
        with open(path, "rb", buffering=0) as f:
            return f.read(10)

    def test_dimensions(self):
        file = File()
        none = {"zero": (0,), "zeros": (0, 1 << 63), "between": (1 << 63, 0, 1 << 63)}
        found = {n: bad_structures.dataset(file, d) for n, d in none.items()}
        many = {"product": (1 << 32, 1 << 32), "rank32": (1 << 40,) * 32, "one": (UNDEF - 1,), "half": (1 << 63,)}
        found.update({n: bad_structures.dataset(file, d) for n, d in many.items()})
        text = {"lines": (1 << 62,), "lines32": (1 << 40,) * 32}
        found.update({n: bad_structures.dataset(file, d, file.vlen_string()) for n, d in text.items()})
        with Mount(self.make(file, found), options="max_work=1") as m:
            for name in none:
                self.assertEqual(read(m.at(name)), b"")
            for name in many:
                self.assertErrno(errno.EOVERFLOW, self.read_some, m.at(name))
            for name in text:
                with self.assertRaises(OSError) as caught:
                    self.read_some(m.at(name))
                self.assertIn(caught.exception.errno, (errno.EOVERFLOW, errno.EFBIG))
            for name, dims in {**none, **many, **text}.items():
                self.assertEqual(os.getxattr(m.at(name), "h5fs.shape").decode(), ",".join(map(str, dims)))
            self.assertGood(m)



    def test_holes(self):
        """Chunks that an index of one has not, more than anybody can count."""
        file = File()
        layout = file.chunked4(4, b.SINGLE, b"", file.put(b"x"), (1,), 1)
        with Mount(self.make(file, {"holes": bad_structures.dataset(file, (1 << 60,), layout=layout)})) as m:
            fd = m.open("holes", os.O_RDONLY)
            self.assertEqual(os.fstat(fd).st_size, 1 << 60)
            with self.assertRaises(OSError) as caught:
                os.lseek(fd, 1 << 20, os.SEEK_DATA)
            self.assertEqual(caught.exception.errno, errno.ENXIO)
            self.assertGreaterEqual(os.lseek(fd, 0, os.SEEK_HOLE), 0)
            self.assertEqual(os.pread(fd, 100, 1 << 59), bytes(100))
            self.assertGood(m)


class Groups(Hostile):
    def test_one_node_many_times(self):
        """A tree all of whose children are one node, and one that is its own child."""
        file = File()
        one = bad_structures.dataset(file, (1,))
        heap, at = file.local_heap([b"a"])
        node = file.put((b"SNOD\1\0\1\0" + file.symbol(at[b"a"], one)).ljust(8 + 8 * 40, b"\0"))
        tree = file.btree1(0, [file.length(at[b"a"])] * 33, [node] * 32, 16)
        circle = file.btree1(0, [file.length(at[b"a"])] * 2, [len(file.data) + -len(file.data) % 8], 16)
        file.data[circle + 5] = 1  # its level
        groups = {}
        for name, root in ("many", tree), ("circle", circle):
            groups[name] = file.header1([(b.SYMBOL_TABLE, file.offset(root) + file.offset(heap))])
        with Mount(self.make(file, groups)) as m:
            for name in groups:
                names = []
                with self.assertRaises(OSError) as caught:
                    for entry in os.scandir(m.at(name)):
                        names.append(entry.name)
                self.assertEqual(caught.exception.errno, errno.EUCLEAN)
                self.assertLessEqual(len(names), 1)
            self.assertGood(m)

    def test_numbers_of_links(self):
        """What a header says of how many there are is told, and used for nothing else."""
        file = File()
        one = bad_structures.dataset(file, (1,))
        group, _ = dense_group(file, [(n, file.link(n, one)) for n in (b"a", b"b")])
        at = file.data.index(b"BTHD")
        block = bytes(file.data[at:at + 26]) + file.length(1 << 60)
        file.replace(at, b.summed(block))
        with Mount(self.make(file, {"g": group})) as m:
            self.assertEqual(sorted(os.listdir(m.at("g"))), ["a", "b"])
            self.assertGood(m)

    def test_a_group_in_itself(self):
        file = File()
        here = file.put(b"")
        self.assertEqual(file.group([file.link(b"again", here)]), here)
        with Mount(self.make(file, {"g": here})) as m:
            depth = sum(1 for _ in os.walk(m.at("g"), followlinks=False))
            self.assertLess(depth, 3)
            self.assertGood(m)


class Attributes(Hostile):
    @staticmethod
    def header1(file, messages):
        """An object header without a checksum, which takes long to make."""
        body = bytearray()  # bytes would be copied for each message
        for kind, data in messages:
            data += bytes(-len(data) % 8)
            body += struct.pack("<HHB3x", kind, len(data), 0) + data
        return file.put(struct.pack("<BBHIII", 1, 0, len(messages), 1, len(body), 0) + body)

    def test_much_for_each(self):
        """Of a type with thousands of members, which is stored once."""
        file = File()
        members = [(b"%x" % i, 0, b.datatype(3, 1, 0, b"", 3)) for i in range(2000)]
        shared = b"\3\2" + file.offset(self.header1(file, [(b.DATATYPE, b.compound(8, members, 3))]))
        group = [(b.LINK_INFO, file.link_info()), (b.GROUP_INFO, b"\0\0")]
        group += [(b.ATTRIBUTE, b.attribute(b"%x" % i, shared, file.dataspace(None), b"", 3, 1)) for i in range(60_000)]
        with Mount(self.make(file, {"g": self.header1(file, group)}), options="max_work=1") as m:
            self.assertErrno(errno.EFBIG, read, m.at(".h5fs/json/g.json"))
            self.assertErrno(errno.EFBIG, os.listxattr, m.at("g"))
            self.assertGood(m)
        # The same of a request that opens the file, for which it has another one closed.
        os.mkdir(self.file("folder"))
        os.rename(self.file("hostile.h5"), self.file("folder", "hostile.h5"))
        with h5py.File(self.file("folder", "good.h5"), "w") as f:
            f["good"] = 1
        with Mount(self.file("folder"), options="rw,open_files=1,max_work=1") as m:
            fd = m.open("hostile.h5/g", os.O_PATH)
            self.assertEqual(len(read(m.at("good.h5/good"))), 8)
            self.assertErrno(errno.EFBIG, os.listxattr, f"/proc/self/fd/{fd}")
            self.assertEqual(len(read(m.at("good.h5/good"))), 8)


class Virtual(Hostile):
    def mappings(self, file, count, blocks):
        """A virtual dataset over the one named s: each mapping selects these blocks of both."""
        rank = len(blocks[0]) // 2
        selection = struct.pack("<IIBBII", 2, 3, 0, 2, rank, 0)[:-4] + struct.pack("<H", len(blocks))
        selection += b"".join(struct.pack(f"<{2 * rank}H", *block) for block in blocks)
        mappings = b.summed(bytes([0]) + file.length(count) + (b".\0s\0" + 2 * selection) * count)
        block = struct.pack("<HHI", 1, 0, 0) + file.length(len(mappings)) + mappings + bytes(-len(mappings) % 8)
        heap = file.put(b"GCOL\1\0\0\0" + file.length(16 + len(block)) + block)
        return bytes([4, 3]) + file.offset(heap) + struct.pack("<I", 1)

    def test_blocks_that_overlap(self):
        """They are many more where they are cut to what does not."""
        n, file = 600, File()
        dims = (2 * n + 1, 1, 2 * n + 1)
        layout = self.mappings(file, 12, [(i, 0, 2 * i, 2 * n - i, 0, 2 * i) for i in range(n)])
        with Mount(self.make(file, {"d": bad_structures.dataset(file, dims, layout=layout), "s": bad_structures.dataset(file, dims)})) as m:
            self.assertErrno(errno.EFBIG, read, m.at("d"))
            self.assertEqual(len(read(m.at("s"))), dims[0] * dims[2])
            self.assertGood(m)
            with open(f"/proc/{m.daemon}/status") as f:
                peak = int(re.search(r"VmHWM:\s+(\d+)", f.read())[1]) << 10
            if not SANITIZED:
                self.assertLess(peak, MEMORY_MAX // 4)


class Elsewhere(MountCase):
    """Files that lead to each other, and to nowhere."""

    def test_virtual_circles(self):
        own, other = self.file("own.h5"), self.file("other.h5")
        for path, to in (own, "other.h5"), (other, "own.h5"):
            with h5py.File(path, "w", libver="latest") as f:
                f["good"] = 1
                for name, source, dataset in (("own", ".", "own"), ("grows", ".", "grows"), ("across", to, "across")):
                    grows = (None,) if name == "grows" else None
                    layout = h5py.VirtualLayout((4,), "<i4", grows)
                    virtual = h5py.VirtualSource(source, dataset, (4,), maxshape=grows)
                    layout[:] = virtual[:]
                    f.create_virtual_dataset(name, layout, fillvalue=7)
        with Mount(own) as m:
            for name in "own", "grows", "across":
                with self.subTest(name=name):
                    os.stat(m.at(name))
                    try:
                        self.assertEqual(set(struct.unpack("<4i", read(m.at(name)))), {7})
                    except OSError as e:
                        self.assertIn(e.errno, (errno.ELOOP, errno.EUCLEAN))
            self.assertEqual(len(read(m.at("good"))), 8)

    def test_a_virtual_source_without_a_layout(self):
        """The dataset has as many rows as it says itself, and cannot be read."""
        path, source = self.file("virtual.h5"), self.file("source.h5")
        with h5py.File(source, "w", libver="earliest") as f:
            f.create_dataset("s", (9,), "u1", chunks=(5,), maxshape=(None,), fillvalue=3)
            header = h5py.h5o.get_info(f["s"].id).addr
        with h5py.File(path, "w", libver="latest") as f:
            f["good"] = 1
            layout = h5py.VirtualLayout((5,), "u1", (None,))
            layout[:h5py.h5s.UNLIMITED] = h5py.VirtualSource("source.h5", "s", (9,), maxshape=(None,))[:h5py.h5s.UNLIMITED]
            f.create_virtual_dataset("d", layout, fillvalue=7)
        with Mount(path) as m:
            self.assertEqual(read(m.at("d")), bytes([3] * 9))
        content = bytearray(read(source))
        at = header + 16
        while (message := struct.unpack_from("<HH", content, at))[0] != b.LAYOUT:
            at += 8 + message[1]
        for place, value, error in (at + 8, 99, errno.ENOTSUP), (at, 0, errno.EUCLEAN):  # a version that nobody knows, no message
            content[place] = value
            write(source, content)
            with Mount(path) as m:
                self.assertEqual(os.getxattr(m.at("d"), "h5fs.shape"), b"5")
                self.assertErrno(error, read, m.at("d"))
                self.assertEqual(len(read(m.at("good"))), 8)

    def test_many_mappings(self):
        """Each of which has to be looked for, and is not there."""
        path = self.file("many.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f["good"] = 1
            f["deep"] = h5py.SoftLink("/" + "deep/" * 10_000)
            layout = h5py.VirtualLayout((20_000,), "u1")
            for i in range(0, 20_000, 10):
                layout[i] = h5py.VirtualSource(".", "deep/deep", (1,))[0]
            f.create_virtual_dataset("d", layout, fillvalue=7)
        with Mount(path, options="max_work=1") as m:
            try:
                self.assertEqual(set(read(m.at("d"))), {7})
            except OSError as e:
                self.assertIn(e.errno, (errno.EFBIG, errno.ELOOP))
            self.assertEqual(len(read(m.at("good"))), 8)

    def test_external_links(self):
        for name, to in ("a", "b"), ("b", "a"):
            with h5py.File(self.file(name + ".h5"), "w") as f:
                f["good"] = 1
                f["there"] = h5py.ExternalLink(to + ".h5", "/there")
                f["root"] = h5py.ExternalLink(to + ".h5", "/")
                f["own"] = h5py.ExternalLink(name + ".h5", "/own")
        with Mount(self.file("a.h5")) as m:
            self.assertIn("good", os.listdir(m.path))
            for name in "there", "own":
                with self.subTest(name=name):
                    self.assertRaises(OSError, read, m.at(name))
            self.assertLess(sum(1 for _ in os.walk(m.path)), 100)
            self.assertEqual(len(read(m.at("good"))), 8)

    def test_references(self):
        path = self.file("references.h5")
        with h5py.File(path, "w") as f:
            f["good"] = 1
            f.attrs.create("refs", [f["good"].ref] * 5, dtype=h5py.ref_dtype)
            good = h5py.h5o.get_info(f["good"].id).addr
        content = bytearray(read(path))
        at = content.index(struct.pack("<5Q", *[good] * 5))
        struct.pack_into("<5Q", content, at, good, 1, 1 << 63, UNDEF - 1, 0)
        write(path, content)
        with Mount(path) as m:
            self.assertEqual(json.loads(os.getxattr(m.path, "user.refs")), ["/good", None, None, None, None])
            self.assertEqual(len(read(m.at("good"))), 8)

    def test_regions(self):
        """Of more blocks than anybody has time for, in a few bytes."""
        path = self.file("regions.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f["good"] = 1
            space = f.create_dataset("space", (1 << 20,) * 3, "u1", chunks=(1, 1, 1 << 10))
            region = space.regionref[::4, ::4, ::4]
            f.create_dataset("regions", (1,), h5py.regionref_dtype)[0] = region
            f.attrs.create("region", region, dtype=h5py.regionref_dtype)
        with Mount(path, options="max_work=1") as m:
            self.assertErrno(errno.EFBIG, read, m.at("regions"))
            self.assertNotIn("user.region", os.listxattr(m.path))
            self.assertErrno(errno.E2BIG, os.getxattr, m.path, "user.region")
            self.assertEqual(len(read(m.at("good"))), 8)


if __name__ == "__main__":
    main()
