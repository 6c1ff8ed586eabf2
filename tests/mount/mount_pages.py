#!/usr/bin/python3
"""The views csv, lines, png and svg: tables with many columns, and pages of what has more dimensions."""
import csv

import h5py
import numpy

from mountlib import Mount, main, read
from viewlib import ViewCase

MANY = 1 << 14  # the most columns of one member


def table(path):
    """The first row, and the others."""
    with open(path, newline="", encoding="utf8") as f:
        rows = list(csv.reader(f))
    return rows[0], rows[1:]


class Columns(ViewCase):
    """Members that are arrays take a column for each element."""

    KIND = numpy.dtype([("id", "<u2"), ("a,b", "<f4", (2, 3)), ("word", "S3", 2), ("pair", [("x", "i1"), ("y", "i1")], 2), ("end", "i1")])

    def make(self):
        path = self.file("columns.h5")
        pick = numpy.random.default_rng(5)
        rows = numpy.frombuffer(pick.bytes(self.KIND.itemsize * 50), self.KIND).copy()
        rows["a,b"] = pick.normal(size=(50, 2, 3))
        rows["word"] = [[b"a,b", b""], [b"c", b'"']] * 25
        inner = h5py.h5t.array_create(h5py.h5t.STD_I16LE, (3,))
        nested = h5py.h5t.create(h5py.h5t.COMPOUND, 14)
        nested.insert(b"n", 0, h5py.h5t.array_create(inner, (2,)))
        nested.insert(b"last", 12, h5py.h5t.STD_I16LE)
        with h5py.File(path, "w", libver="latest") as f:
            f["rows"] = rows
            f["one row"] = rows[7]
            f["number"], f["word"], f["flag"] = 2.5, "so, so", True
            f["opaque"] = numpy.array([b"\x00\xff", b"\x12\xab"], "V2")
            f["one opaque"] = numpy.array(b"\x0a\x0b\x0c", "V3")
            f["most"] = numpy.zeros(1, [("v", "i1", MANY)])
            f["too many"] = numpy.zeros(1, [("v", "i1", MANY + 1)])
            f["arrays"] = numpy.arange(12, dtype="i4").reshape(4, 3).view([("v", "i4", 3)])[:, 0]["v"]
            d = h5py.h5d.create(f.id, b"nested", nested, h5py.h5s.create_simple((3,)))
            d.write(h5py.h5s.ALL, h5py.h5s.ALL, numpy.arange(21, dtype="<i2").view("V14"), nested)
        return path, rows

    def test_members_that_are_arrays(self):
        path, rows = self.make()
        names = ["id", *(f"a,b[{i}][{k}]" for i in range(2) for k in range(3)), "word[0]", "word[1]", "pair[0]", "pair[1]", "end"]
        with Mount(path) as m:
            for name, wanted in ("rows", rows), ("one row", rows[7:8]):
                head, found = table(m.at(f".h5fs/csv/{name}.csv"))
                self.assertEqual(head, names)
                numpy.testing.assert_array_equal(numpy.array([row[1:7] for row in found], "<f4"), wanted["a,b"].reshape(-1, 6))
                self.assertEqual([row[:1] + row[7:] for row in found],
                                 [[str(r["id"]), *(w.decode() for w in r["word"]),
                                   *(f'{{"x":{p["x"]},"y":{p["y"]}}}' for p in r["pair"]), str(r["end"])] for r in wanted])
            head, found = table(m.at(".h5fs/csv/nested.csv"))
            self.assertEqual(head, [*(f"n[{i}][{k}]" for i in range(2) for k in range(3)), "last"])
            self.assertEqual(found, [[str(7 * i + k) for k in range(7)] for i in range(3)])
            self.assertEqual(table(m.at(".h5fs/csv/most.csv")), ([f"v[{i}]" for i in range(MANY)], [["0"] * MANY]))
            head, found = table(m.at(".h5fs/csv/too many.csv"))
            self.assertEqual((head, found[0][0].count("0")), (["v"], MANY + 1))
            for name in "rows", "one row", "nested", "most":
                self.assertRanges(m.at(f".h5fs/csv/{name}.csv"), read(m.at(f".h5fs/csv/{name}.csv")))

    def test_single_values_and_opaque_bytes(self):
        path, _ = self.make()
        with Mount(path) as m:
            for name, wanted in ("number", "2.5"), ("word", "so, so"), ("flag", "TRUE"), ("one opaque", "0a0b0c"):
                self.assertEqual(table(m.at(f".h5fs/csv/{name}.csv")), (["value"], [[wanted]]))
            self.assertEqual(table(m.at(".h5fs/csv/opaque.csv")), (["value"], [["00ff"], ["12ab"]]))
            for name, wanted in ("number", b"2.5\n"), ("flag", b"TRUE\n"), ("opaque", b"00ff\n12ab\n"), ("one opaque", b"0a0b0c\n"):
                self.assertEqual(read(m.at(".h5fs/lines", name)), wanted)


if __name__ == "__main__":
    main()
