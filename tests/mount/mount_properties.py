#!/usr/bin/python3
"""Extended attributes at their limits: long names, values that fill them, references to what lies deep."""
import errno
import json
import os
import struct

import h5py
import numpy

from mountlib import Mount, MountCase, main, read, write


class Properties(MountCase):
    def test_info_without_what_does_not_fit(self):
        """A type whose text is over 64 KiB, and one whose two texts together are."""
        path = self.file("wide.h5")
        with h5py.File(path, "w", libver="latest") as f:
            for name, members in (("wide", 1700), ("half", 900)):
                f.create_dataset(name, (2,), numpy.dtype([(f"member {i:014}", "<i4") for i in range(members)]))
        with Mount(path) as m:
            info = {name: json.loads(os.getxattr(m.at(name), "h5fs.info")) for name in ("wide", "half")}
            for name, there in info.items():
                with self.subTest(name=name):
                    self.assertEqual(there["class"], "dataset")
                    self.assertEqual(there["shape"], "2")
                    self.assertEqual(there["format"], "raw")
                    self.assertEqual(str(there["address"]), os.getxattr(m.at(name), "h5fs.address").decode())
            self.assertErrno(errno.E2BIG, os.getxattr, m.at("wide"), "h5fs.type")
            self.assertNotIn("type", info["wide"])
            self.assertEqual(info["half"]["dtype"], os.getxattr(m.at("half"), "h5fs.dtype").decode())

    def test_comment(self):
        path = self.file("comment.h5")
        with h5py.File(path, "w") as f:
            f["d"] = 1
            h5py.h5o.set_comment(f["d"].id, b"made by hand")
        with Mount(path) as m:
            self.assertEqual(os.getxattr(m.at("d"), "h5fs.comment"), b"made by hand")
            self.assertEqual(json.loads(os.getxattr(m.at("d"), "h5fs.info"))["comment"], "made by hand")
            self.assertErrno(errno.ENODATA, os.getxattr, m.path, "h5fs.comment")

    def test_free_space(self):
        """As libhdf5 counts it, for the strategies that keep it in the file."""
        for strategy in ("fsm", "page"):
            path = self.file(f"{strategy}.h5")
            with h5py.File(path, "w", libver="latest", fs_strategy=strategy, fs_persist=True, fs_threshold=1) as f:
                for i in range(20):
                    f[f"d{i}"] = numpy.arange(1000 + 100 * i)
            with h5py.File(path, "r+", libver="latest") as f:
                for i in range(0, 20, 2):
                    del f[f"d{i}"]
            with h5py.File(path, "r") as f:
                free = f.id.get_freespace()
            self.assertGreater(free, 50000)
            with Mount(path) as m, self.subTest(strategy=strategy):
                self.assertEqual(int(os.getxattr(m.path, "h5fs.free")), free)
                self.assertErrno(errno.ENODATA, os.getxattr, m.at("d1"), "h5fs.free")
        path = self.file("none.h5")
        with h5py.File(path, "w") as f:
            f["d"] = 1
        with Mount(path) as m:
            self.assertErrno(errno.ENODATA, os.getxattr, m.path, "h5fs.free")

    def test_values_are_the_same_after_a_list(self):
        """A list keeps the texts that it has made: values come from these, and take no look at the file."""
        path = self.file("many.h5")
        with h5py.File(path, "w", libver="latest") as f:
            for i in range(300):
                f.attrs[f"number {i}"] = i
                f.attrs[f"text {i}"] = "x" * i
            f.attrs["long name " * 40] = "cut"
            f.attrs.create("large", numpy.zeros(40000, "<i4"))
            f.attrs.create("many", numpy.full(2000, 1234567890, "<i4"))
        for options in ("xattr=text", "xattr=raw"):
            with Mount(path, options=options) as m, self.subTest(options=options):
                some = ["user.number 7", "user.text 0", "user.text 299", "user.many"]
                before = {name: os.getxattr(m.path, name) for name in some}
                names = os.listxattr(m.path)
                hits = json.loads(os.getxattr(m.path, "h5fs.stats"))["index_cache"]["hits"]
                values = {name: os.getxattr(m.path, name) for name in names if "~" not in name}
                again = json.loads(os.getxattr(m.path, "h5fs.stats"))["index_cache"]["hits"]
                self.assertEqual(before, {name: values[name] for name in some})
                self.assertEqual((len(names), len(values)), (602, 601))
                self.assertNotIn("user.large", names)
                self.assertLess(again - hits, 10)
                cut, = (name for name in names if "~" in name)
                if options == "xattr=text":
                    self.assertEqual(os.getxattr(m.path, cut), b"cut")
                self.assertErrno(errno.ENODATA, os.getxattr, m.path, "user.number 300")

    def test_type_and_bytes_of_an_attribute_with_a_long_name(self):
        path = self.file("long.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f.attrs.create("n" * 300, 7, dtype="<i4")
            f.attrs.create("n" * 240, 8, dtype=">i4")
        with Mount(path) as m:
            short, long = sorted((name.partition(".")[2] for name in os.listxattr(m.path)), key=lambda name: "%~" in name)
            for name, value, dtype, stored in ((short, b"8", b">i4", ">i"), (long, b"7", b"<i4", "<i")):
                self.assertEqual(os.getxattr(m.path, f"user.{name}"), value)
                self.assertEqual(os.getxattr(m.path, f"h5fs.type.{name}"), dtype)
                self.assertEqual(os.getxattr(m.path, f"h5fs.raw.{name}"), struct.pack(stored, int(value)))
            self.assertErrno(errno.ENODATA, os.getxattr, m.path, f"user.{long[:-1]}g")

    def test_references_to_what_lies_deep(self):
        """What a path can lead to is shown; what none can is null."""
        path = self.file("deep.h5")
        with h5py.File(path, "w", libver="latest") as f:
            group = f
            for depth in range(1, 2101):
                group = group.create_group("d")
                if depth in (300, 2040, 2100):
                    f.attrs[f"{depth}"] = group.ref
        with Mount(path) as m:
            self.assertEqual(os.getxattr(m.path, "user.300").decode(), "/d" * 300)
            self.assertEqual(os.getxattr(m.path, "user.2040").decode(), "/d" * 2040)
            self.assertEqual(os.getxattr(m.path, "user.2100").decode(), "null")

    def test_datasets_of_references_are_paths(self):
        """An address means nothing outside of the file. Of every rank, alone, in a compound, in an array."""
        path = self.file("references.h5")
        record = numpy.dtype([("n", "<i4"), ("to", h5py.ref_dtype)])
        with h5py.File(path, "w", libver="earliest") as f:
            group = f.create_group("cells/a.b")
            group["a%2Fb"] = 1
            group["gone"] = 2
            shown = [group["a%2Fb"].ref, f.ref, h5py.Reference(), group["gone"].ref]
            f.create_dataset("cell", (2, 2), h5py.ref_dtype)[...] = numpy.array(shown, object).reshape(2, 2)
            f.create_dataset("chunked", (4,), h5py.ref_dtype, chunks=(3,), maxshape=(None,), compression=1)[...] = shown
            f.create_dataset("scalar", (), h5py.ref_dtype)[()] = group.ref
            f.create_dataset("records", (2,), record)[...] = numpy.array([(1, f.ref), (2, group.ref)], record)
            pair = h5py.h5t.array_create(h5py.h5t.STD_REF_OBJ, (2,))
            h5py.h5d.create(f.id, b"pairs", pair, h5py.h5s.create_simple((2,)))
            del group["gone"]
        cells = ["/cells/a.b/a%252Fb", "/", None, None]
        lines = {"cell": cells, "chunked": cells, "scalar": ["/cells/a.b"],
                 "records": [{"n": 1, "to": "/"}, {"n": 2, "to": "/cells/a.b"}], "pairs": [[None, None]] * 2}
        for options in ("ro", "rw"):
            with Mount(path, options=options) as m:
                for name, values in lines.items():
                    with self.subTest(name=name, options=options):
                        text = read(m.at(name)).decode()
                        self.assertEqual([json.loads(line) for line in text.splitlines()], values)
                        self.assertEqual(os.stat(m.at(name)).st_size, len(text))
                        self.assertEqual(oct(os.stat(m.at(name)).st_mode), "0o100644" if options == "rw" else "0o100444")
                        self.assertEqual(os.getxattr(m.at(name), "h5fs.format"), b"jsonl")
                        self.assertEqual(json.loads(os.getxattr(m.at(name), "h5fs.info"))["format"], "jsonl")

    def test_a_text_too_large_to_be_a_file(self):
        path = self.file("large.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("d", (1 << 60,), h5py.string_dtype(), chunks=(1 << 16,))
        with Mount(path) as m:
            self.assertEqual(os.stat(m.at("d")).st_mode & 0o777, 0o444)
            self.assertEqual(os.getxattr(m.at("d"), "h5fs.shape"), b"1152921504606846976")
            self.assertErrno(errno.EOVERFLOW, read, m.at("d"))

    def test_an_object_that_counts_no_links(self):
        """Its reference count is damaged; that a name leads to it is a link."""
        path = self.file("count.h5")
        with h5py.File(path, "w", libver="earliest") as f:
            f["d"] = [1, 2]
            address = h5py.h5o.get_info(f["d"].id).addr
        content = bytearray(read(path))
        self.assertEqual(struct.unpack_from("<BxHI", content, address)[::2], (1, 1))  # version, references
        struct.pack_into("<I", content, address + 4, 0)
        write(path, content)
        with Mount(path) as m:
            self.assertEqual(os.stat(m.at("d")).st_nlink, 1)
            self.assertEqual(len(read(m.at("d"))), 16)


if __name__ == "__main__":
    main()
