#!/usr/bin/python3
"""The views csv, lines, png and svg: tables with many columns, and pages of what has more dimensions."""
import csv
import errno
import itertools
import os
import re
import subprocess
from xml.etree import ElementTree

import h5py
import numpy
from PIL import Image

from mountlib import H5FS, Mount, main, read
from viewlib import ViewCase, tree

MANY = 1 << 14  # the most columns of one member


def table(path):
    """The first row, and the others."""
    with open(path, newline="", encoding="utf8") as f:
        rows = list(csv.reader(f))
    return rows[0], rows[1:]


class Columns(ViewCase):
    """Members that are arrays take a column for each element."""

    KIND = numpy.dtype([("id", "<u2"), ("a,b", "<f4", (3, 2)), ("word", "S3", 2), ("pair", [("x", "i1"), ("y", "i1")], 2), ("end", "i1")])

    def make(self):
        path = self.file("columns.h5")
        pick = numpy.random.default_rng(5)
        rows = numpy.frombuffer(pick.bytes(self.KIND.itemsize * 50), self.KIND).copy()
        rows["a,b"] = pick.normal(size=(50, 3, 2))
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
        names = ["id", *(f"a,b[{i}][{k}]" for i in range(3) for k in range(2)), "word[0]", "word[1]", "pair[0]", "pair[1]", "end"]
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


class Pages(ViewCase):
    """A dataset of more dimensions is a directory of tables, and of pictures."""

    def make(self):
        path = self.file("pages.h5")
        pick = numpy.random.default_rng(7)
        data = {"movie": pick.integers(0, 255, (12, 5, 7), "u1"), "run/deep": pick.integers(0, 255, (2, 3, 4, 6), "u1"),
                "colours": pick.integers(0, 255, (3, 2, 4, 3), "u1"), "alpha": pick.integers(0, 255, (2, 2, 5, 4), "u1"),
                "chunked": pick.integers(0, 255, (9, 20, 30), "u1")}
        with h5py.File(path, "w", libver="latest") as f:
            for name, array in data.items():
                f.create_dataset(name, data=array, chunks=(4, 7, 11) if name == "chunked" else None,
                                 compression="gzip" if name == "chunked" else None)
            f["movie"].attrs["units"] = "K"
            f["long"] = numpy.zeros((10001, 1, 2), "u1")
            f["picture"] = data["colours"][0]
            f["words"] = numpy.array([[["a", "b,c"]], [["", "d"]]], h5py.string_dtype())
            f["run/soft"] = h5py.SoftLink("deep")
            f["run/up"] = h5py.SoftLink("/movie")
            f["hard"] = f["movie"]
            f["x.png/inner"] = data["movie"][:2]
            f.create_group("movie.png")
        return path, data

    def pages(self, array, last):
        """Paths of pages without suffixes, and what they show."""
        dims = array.shape[:array.ndim - last]
        widths = [max(4, len(str(dim - 1))) for dim in dims]
        for index in itertools.product(*map(range, dims)):
            yield "/".join(f"{i:0{width}}" for i, width in zip(index, widths)), array[index]

    def test_pictures(self):
        path, data = self.make()
        with Mount(path) as m:
            for name, array in data.items():
                pages = dict(self.pages(array, 3 if name in ("colours", "alpha") else 2))
                self.assertEqual({n for n in tree(m.at(".h5fs/png", name)) if not n.endswith("/")}, {f"{n}.png" for n in pages})
                for page, wanted in pages.items():
                    file = m.at(".h5fs/png", name, f"{page}.png")
                    with Image.open(file) as image:
                        numpy.testing.assert_array_equal(numpy.asarray(image), wanted)
                    self.assertRanges(file, read(file))
            with Image.open(m.at(".h5fs/png/picture.png")) as image:
                numpy.testing.assert_array_equal(numpy.asarray(image), data["colours"][0])
            self.assertEqual(sorted(os.listdir(m.at(".h5fs/png/run/deep"))), ["0000", "0001"])
            self.assertEqual(sorted(os.listdir(m.at(".h5fs/png/long")))[::10000], ["00000.png", "10000.png"])

    def test_tables(self):
        path, data = self.make()
        with Mount(path) as m:
            for name, array in data.items():
                pages = dict(self.pages(array, 2))
                self.assertEqual({n for n in tree(m.at(".h5fs/csv", name)) if not n.endswith("/")}, {f"{n}.csv" for n in pages})
                for page, wanted in pages.items():
                    file = m.at(".h5fs/csv", name, f"{page}.csv")
                    head, rows = table(file)
                    self.assertEqual(head, [str(i) for i in range(wanted.shape[1])])
                    self.assertEqual(rows, [[str(v) for v in row] for row in wanted])
                    self.assertRanges(file, read(file))
            self.assertEqual([table(m.at(f".h5fs/csv/words/000{i}.csv"))[1] for i in range(2)], [[["a", "b,c"]], [["", "d"]]])

    def test_names(self):
        path, _ = self.make()
        with Mount(path) as m:
            self.assertEqual(sorted(os.listdir(m.at(".h5fs/png"))), sorted(
                ["movie", "hard", "run", "colours", "alpha", "chunked", "long", "picture.png", "x%2Epng", "movie%2Epng"]))
            self.assertEqual(os.readlink(m.at(".h5fs/png/run/soft")), "deep")
            self.assertEqual(os.readlink(m.at(".h5fs/csv/run/up")), "../movie")
            self.assertEqual(read(m.at(".h5fs/png/run/up/0007.png")), read(m.at(".h5fs/png/hard/0007.png")))
            self.assertEqual([os.listdir(m.at(".h5fs", name)) for name in ("png/x%2Epng", "csv/x.png")], [["inner"]] * 2)
            for name in ("movie.png", "movie/0012.png", "movie/7.png", "movie/00007.png", "movie/0007", "movie/0007.csv", "movie/0007.png.png",
                         "movie/-001.png", "movie/.png", "movie/0x01.png", "movie/99999999999999999999.png", "run/deep/0002", "run/deep/0000.png",
                         "run/deep/0001/0003.png", "run/deep/0001/0002", "run/0001", "movie/ 007.png"):
                self.assertFalse(os.path.exists(m.at(".h5fs/png", name)), name)
            self.assertErrno(errno.ENOTDIR, os.stat, m.at(".h5fs/png/movie/0000.png/0000.png"))
            self.assertEqual(os.getxattr(m.at(".h5fs/png/movie/0003.png"), "user.units"), b"K")
            self.assertEqual(os.getxattr(m.at(".h5fs/png/movie"), "h5fs.shape"), b"12,5,7")
            numbers = {os.stat(m.at(".h5fs", view, "movie", f"{i:04}.{view}")).st_ino for view in ("csv", "png") for i in range(12)}
            self.assertEqual(len(numbers), 24)

    def test_hostile_shapes(self):
        """Look-ups do not list, and listings go on from anywhere."""
        path = self.file("hostile.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("many", (1 << 40, 4, 5), "u1", chunks=(1 << 10, 4, 5), fillvalue=3)
            f.create_dataset("not stored", (3, 100, 60), "u1", chunks=(1, 50, 60), fillvalue=7)
            f.create_dataset("overflow", (1 << 40, 1 << 20, 1 << 20), "u1", chunks=(1, 1 << 8, 1 << 8))
            f.create_dataset("no pages", (0, 4, 5), "f4")
            f.create_dataset("no rows", (3, 0, 5), "f4")
            f.create_dataset("huge and empty", (1 << 40, 1 << 40, 0, 5), "f4", chunks=(1, 1, 1, 5), maxshape=(None, None, None, 5))
            f.create_dataset("too long", (1 << 62, 1, 1), "u1", chunks=(1, 1, 1))
            f.create_dataset("too wide", (2, 1, 1 << 33), "u1", chunks=(1, 1, 1))
        with Mount(path) as m:
            last = f"{(1 << 40) - 1:013}"
            with Image.open(m.at(".h5fs/png/many", last + ".png")) as image:
                self.assertEqual(numpy.asarray(image).tolist(), [[3] * 5] * 4)
            self.assertEqual(table(m.at(".h5fs/csv/many", last + ".csv"))[1], [["3"] * 5] * 4)
            self.assertFalse(os.path.exists(m.at(".h5fs/png/many", f"{1 << 40:013}.png")))
            self.assertEqual(table(m.at(".h5fs/csv/not stored/0001.csv"))[1], [["7"] * 60] * 100)
            with os.scandir(m.at(".h5fs/png/many")) as entries:
                self.assertEqual([e.name for e in itertools.islice(entries, 3000)], [f"{i:013}.png" for i in range(3000)])
            for view in "png", "csv":
                self.assertErrno(errno.EOVERFLOW, read, m.at(f".h5fs/{view}/overflow/{last}.{view}"))
                self.assertEqual(os.listdir(m.at(f".h5fs/{view}/no pages")), [])
                self.assertEqual(len(os.listdir(m.at(f".h5fs/{view}/no rows"))), 3)
                self.assertFalse(os.path.exists(m.at(f".h5fs/{view}/too long")))
                self.assertTrue(os.path.exists(m.at(f".h5fs/{view}/huge and empty/{last}/{last}.{view}")))
            self.assertEqual(read(m.at(".h5fs/png/no rows/0002.png")), b"")
            self.assertEqual(table(m.at(".h5fs/csv/no rows/0002.csv")), (["0", "1", "2", "3", "4"], []))
            self.assertEqual(read(m.at(f".h5fs/png/huge and empty/{last}/{last}.png")), b"")
            self.assertErrno(errno.EOVERFLOW, read, m.at(".h5fs/png/too wide/0001.png"))
            self.assertFalse(os.path.exists(m.at(".h5fs/csv/too wide")))

    def test_digits(self):
        """As many as the last page needs."""
        path = self.file("digits.h5")
        counts = {9999: 4, 10000: 4, 10001: 5, 99999: 5, 100000: 5, 100001: 6, 100011: 6}
        with h5py.File(path, "w", libver="latest") as f:
            for count in counts:
                f.create_dataset(str(count), (count, 1, 1), "u1", chunks=(1000, 1, 1))
        with Mount(path) as m:
            for count, digits in counts.items():
                for page in 0, count - 1:
                    self.assertTrue(os.path.exists(m.at(f".h5fs/png/{count}/{page:0{digits}}.png")), (count, page))
                self.assertFalse(os.path.exists(m.at(f".h5fs/png/{count}/{count:0{digits}}.png")), count)

    def test_pages_are_not_written(self):
        path, data = self.make()
        with Mount(path, options="rw") as m:
            page = m.at(".h5fs/csv/movie/0003.csv")
            self.assertEqual(os.stat(page).st_mode & 0o777, 0o444)
            self.assertEqual(os.stat(m.at(".h5fs/csv/movie")).st_mode & 0o777, 0o555)
            for flags in os.O_WRONLY, os.O_WRONLY | os.O_TRUNC, os.O_RDWR:
                self.assertErrno(errno.EPERM, os.open, page, flags)
            for name in "0012.csv", "new.csv", ".tmp", "0003.csv~", "x":
                self.assertErrno(errno.EPERM, os.open, m.at(".h5fs/csv/movie", name), os.O_WRONLY | os.O_CREAT)
            for name in page, m.at(".h5fs/png/movie/0003.png"), m.at(".h5fs/png/movie"):
                self.assertErrno(errno.EPERM, os.rename, name, name + "x")
            self.assertErrno(errno.EISDIR, os.rename, m.at(".h5fs/csv/movie"), m.at(".h5fs/csv/moviex"))
            self.assertErrno(errno.EPERM, os.rename, page, m.at(".h5fs/csv/0003.csv"))
            self.assertErrno(errno.EPERM, os.unlink, page)
            self.assertErrno(errno.EPERM, os.rmdir, m.at(".h5fs/csv/movie"))
            self.assertErrno(errno.EPERM, os.mkdir, m.at(".h5fs/csv/movie/new"))
            # What is written to the dataset shows.
            kept = m.open(".h5fs/csv/movie/0003.csv", os.O_RDONLY)
            before = read(m.at(".h5fs/csv/movie/0004.csv"))
            with open(m.at("movie"), "r+b", buffering=0) as f:
                f.seek(3 * 35)
                f.write(bytes(range(35)))
            self.assertEqual(table(page)[1], [[str(7 * i + k) for k in range(7)] for i in range(5)])
            self.assertEqual(os.pread(kept, 1 << 16, 0), read(page))
            self.assertEqual(read(m.at(".h5fs/csv/movie/0004.csv")), before)
            with Image.open(m.at(".h5fs/png/movie/0003.png")) as image:
                self.assertEqual(numpy.asarray(image).tobytes(), bytes(range(35)))
            # The dataset gets another rank.
            numpy.save(m.at(".h5fs/npy/movie.npy"), data["movie"][0])
            self.assertFalse(os.path.exists(page))
            self.assertEqual(table(m.at(".h5fs/csv/movie.csv"))[1], [[str(v) for v in row] for row in data["movie"][0]])


class Colours(ViewCase):
    """Floats are scaled without the extremes, NaN is transparent, and an option chooses the colours."""

    def make(self):
        pick = numpy.random.default_rng(11)
        data = {"field": pick.normal(size=(300, 400)), "small": pick.normal(size=(40, 50)).astype("<f4"), "dots": numpy.zeros((30, 30)),
                "ints": pick.integers(-500, 500, (20, 30), "<i2"), "bytes": numpy.arange(256, dtype="u1").reshape(16, 16),
                "mask": pick.integers(0, 2, (9, 10)).astype(bool), "rgb": pick.random((6, 7, 3)), "stripes": numpy.zeros((512, 1024))}
        data["field"][7, 9], data["field"][0, :3] = 1e30, numpy.nan
        data["small"][0, :3] = numpy.nan, numpy.inf, -numpy.inf
        data["dots"][3, 4] = 1
        data["rgb"][0, 0, 0] = numpy.nan
        data["stripes"][:, 1::2] = numpy.arange(512)
        path = self.file("colours.h5")
        with h5py.File(path, "w", libver="latest") as f:
            for name, array in data.items():
                f[name] = array
            f["stack"] = numpy.stack([data["small"], 4 * data["small"]])
        return path, data

    def samples(self, m, name):
        with Image.open(m.at(f".h5fs/png/{name}.png")) as image:
            return numpy.asarray(image).astype(int), image.info.get("transparency")

    def test_extremes_do_not_darken(self):
        path, data = self.make()
        with Mount(path) as m:
            found, clear = self.samples(m, "field")
            self.assertEqual(clear, 0)
            numpy.testing.assert_array_equal(found == 0, numpy.isnan(data["field"]))
            for end in 1, 65535:
                self.assertAlmostEqual((found == end).mean(), 0.02, delta=0.003)
            # In order, and linear between the ends.
            low, high = numpy.percentile(data["field"][numpy.isfinite(data["field"])], (2, 98))
            wanted = 1 + numpy.clip((data["field"] - low) / (high - low), 0, 1) * 65534
            self.assertLess(numpy.nanmax(numpy.abs(numpy.where(found, found, numpy.nan) - wanted)), 2500)
            found, clear = self.samples(m, "small")
            self.assertEqual((found[0, :3].tolist(), clear), ([0, 65535, 1], 0))
            # Those that are kept are of all columns.
            found, _ = self.samples(m, "stripes")
            self.assertAlmostEqual((found == 65535).mean(), 0.02, delta=0.003)
            # Nearly all are the same: then the extremes are what there is to see.
            self.assertEqual(numpy.unique(self.samples(m, "dots")[0]).tolist(), [1, 65535])
            # Each page for itself.
            numpy.testing.assert_array_equal(self.samples(m, "stack/0001")[0], self.samples(m, "small")[0])

    def palette(self, colours, least):
        x = numpy.clip((numpy.arange(256) - least) / (255 - least), 0, 1)
        if colours == "heat":
            parts = [3 * x, 3 * x - 1, 3 * x - 2]
        else:
            turn, size = 2 * numpy.pi * (0.5 / 3 + 1 - 1.5 * x), x * (1 - x) / 2
            parts = [x + size * (a * numpy.cos(turn) + b * numpy.sin(turn))
                     for a, b in ((-0.14861, 1.78277), (-0.29227, -0.90649), (1.97294, 0))]
        return numpy.clip(numpy.stack(parts, 1), 0, 1) * 255

    def test_the_option(self):
        path, data = self.make()
        with Mount(path) as m:
            grey = {name: self.samples(m, name)[0] for name in data}
        for colours in "heat", "helix":
            with Mount(path, options=f"colours={colours}") as m:
                for name, array in data.items():
                    file = m.at(f".h5fs/png/{name}.png")
                    self.assertRanges(file, read(file))
                    found, clear = self.samples(m, name)
                    if name == "rgb":
                        numpy.testing.assert_array_equal(found, grey["rgb"])
                        continue
                    least, wanted = array.dtype.kind == "f", grey[name]
                    if least:
                        wanted = numpy.where(wanted, 1 + (wanted - 1) / 65534 * 254, 0)
                    elif wanted.max() > 255:
                        wanted = wanted / 65535 * 255
                    self.assertLessEqual(numpy.abs(found - wanted).max(), 0.51, name)
                    with Image.open(file) as image:
                        self.assertEqual(image.mode, "P")
                        table = numpy.array(image.getpalette()).reshape(-1, 3)
                        shown = numpy.asarray(image.convert("RGBA"))
                    self.assertLess(numpy.abs(table - self.palette(colours, int(least)))[int(least):].max(), 1.01)
                    self.assertEqual(table[[int(least), 255]].tolist(), [[0] * 3, [255] * 3])
                    numpy.testing.assert_array_equal(shown[:, :, 3] == 0, least & (found == 0))
        brightness = self.palette("helix", 0) @ (0.30, 0.59, 0.11)
        self.assertLess(numpy.abs(brightness - numpy.arange(256)).max(), 6)
        said = self.refused(path, "colours=pink")
        self.assertIn("must be grey, heat or helix", said)

    def refused(self, path, options):
        done = subprocess.run([H5FS, path, "-o", options, os.path.dirname(path)], capture_output=True, check=False, text=True)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr


SVG = "{http://www.w3.org/2000/svg}"
BINS = 850


class Plot:
    """What a plot shows, in the units of its axes, which the ticks tell."""

    def __init__(self, data):
        self.root = ElementTree.fromstring(data)
        children = list(self.root)
        grid = [(e.get("d"), float(children[i + 1].text)) for i, e in enumerate(children) if e.get("stroke") == "#ddd"]
        self.ticks = [[(float(d[1:].split(",")[0]), v) for d, v in grid if "V" in d],
                      [(float(d[1:].split(",")[1].split("H")[0]), v) for d, v in grid if "H" in d]]
        self.lines = [self.points(e.get("d")) for e in children if e.get("stroke-linecap")]
        texts = [e for e in children if e.tag == SVG + "text"]
        self.title = self.root.find(SVG + "title").text
        self.names = [e.text for e in texts if e.get("paint-order")]
        self.x, self.y = [e.text for e in texts[-2:]]
        self.texts = [e.text for e in texts]

    def axis(self, ticks, pixels):
        (a, low), (b, high) = ticks[0], ticks[-1]
        return low + (numpy.array(pixels) - a) / (b - a) * (high - low)

    def points(self, d):
        """A list of stretches without a gap: x and y of points, in the units of the axes."""
        stretches = [re.findall(r"([-0-9.]+),([-0-9.]+)", part.split("m")[0]) for part in d.split("M")[1:]]
        return [numpy.stack([self.axis(self.ticks[i], [float(p[i]) for p in stretch]) for i in range(2)], 1) for stretch in stretches]


class Plots(ViewCase):
    def open(self, m, name):
        file = m.at(f".h5fs/svg/{name}.svg")
        whole = read(file)
        self.assertRanges(file, whole)
        return Plot(whole)

    def make(self):
        pick = numpy.random.default_rng(13)
        data = {"walk": numpy.cumsum(pick.normal(size=500000)).astype("<f4"), "exact": numpy.array([1, 5, numpy.nan, 2, 3, numpy.inf, 4]),
                "hours": numpy.linspace(3, 27, 2000), "levels": pick.normal(size=2000)}
        data["levels"][500:900] = numpy.nan
        path = self.file("plots.h5")
        rows = numpy.zeros(40, [("time", "<f8"), ("word", "S3"), ("a<b", ">i2"), ("v", "<f4", (2, 2)), ("on", "?"), ("w", "u1", 5)])
        rows["time"], rows["a<b"], rows["v"][:, 1, 0] = numpy.arange(40) / 4, -numpy.arange(40), 17
        with h5py.File(path, "w", libver="latest") as f:
            for name, array in data.items():
                f.create_dataset(name, data=array, chunks=True, compression="gzip")
            f["rows"] = rows
            f["hours"].make_scale()
            f["hours"].attrs["units"] = "hours since 1970"
            f["levels"].attrs.update({"units": "m", "long_name": "sea level"})
            f["levels"].dims[0].attach_scale(f["hours"])
            f["group/inner"] = pick.integers(0, 9, 20)
            f["nothing"], f["same"], f["no numbers"] = numpy.zeros(0), numpy.full(9, -7), numpy.full(4, numpy.nan)
            f["one"], f["mask"], f["huge"] = [3], [True, False], [1.7e308, -1.7e308, 5, 6]
            f["tiny"], f["close"] = [0, 5e-324], 1e15 + numpy.arange(8)
            f["scalar"], f["grid"], f["word"], f["words"] = 1, numpy.zeros((2, 2)), "w", ["a", "b"]
            f["text rows"] = numpy.zeros(2, [("s", "S3")])
            # Scales that are none.
            f["short"] = numpy.arange(3)
            f["letters"] = numpy.array([b"a", b"b"])
            for name in "short", "letters":
                f[name].make_scale()
                f[f"by {name}"] = [5, 6]
                f[f"by {name}"].dims[0].attach_scale(f[name])
            f["hostile & <name>"] = [1, 2]
            f["hostile & <name>"].attrs["units"] = b"]]>&<script>\x01\x1b\xff\xef\xbf\xbf\xed\xa0\x80\n\"'"
            f["hostile & <name>"].attrs["long_name"] = "\u00e4\U0001f600" * 400
        return path, data

    def test_many_points(self):
        """Of each bin the extremes are there, and nothing else is."""
        path, data = self.make()
        walk = data["walk"]
        with Mount(path) as m:
            plot = self.open(m, "walk")
        (line,), = plot.lines
        self.assertLessEqual(len(line), 4 * BINS)
        span = walk.max() - walk.min()
        numpy.testing.assert_allclose([line[:, 1].min(), line[:, 1].max()], [walk.min(), walk.max()], atol=span / 4000)
        edges = -(-numpy.arange(BINS + 1) * len(walk) // BINS)
        bins = numpy.clip(numpy.searchsorted(edges, line[:, 0], "right") - 1, 0, BINS - 1)
        lows, highs = (numpy.array([f(walk[a:b]) for a, b in zip(edges[:-1], edges[1:])]) for f in (numpy.min, numpy.max))
        for b in range(2, BINS - 2):  # x is rounded to a tenth of a bin, so a point may seem to be in the next one
            near = line[(bins >= b - 1) & (bins <= b + 1), 1]
            for wanted in lows[b], highs[b]:
                self.assertLess(numpy.abs(near - wanted).min(), span / 4000)
            self.assertGreater(near.min(), lows[b - 2:b + 3].min() - span / 4000)
            self.assertLess(near.max(), highs[b - 2:b + 3].max() + span / 4000)

    def test_few_points(self):
        path, _ = self.make()
        with Mount(path) as m:
            plot = self.open(m, "exact")
            self.assertEqual([numpy.round(part, 2).tolist() for part in plot.lines[0]], [[[0, 1], [1, 5]], [[3, 2], [4, 3]], [[6, 4]]])
            self.assertEqual((plot.title, plot.x, plot.y, plot.names), ("/exact", "element", "exact", []))
            self.assertEqual([v for _, v in plot.ticks[0]], list(range(7)))
            self.assertEqual((self.open(m, "group/inner").title, self.open(m, "group/inner").y), ("/group/inner", "inner"))

    def test_scale_and_labels(self):
        path, data = self.make()
        with Mount(path) as m:
            plot = self.open(m, "levels")
            self.assertEqual((plot.x, plot.y), ("hours (hours since 1970)", "sea level (m)"))
            before, after = plot.lines[0]
            numpy.testing.assert_allclose([before[0, 0], before[-1, 0], after[0, 0], after[-1, 0]], data["hours"][[0, 499, 900, 1999]], atol=0.02)
            numpy.testing.assert_allclose([before[0, 1], after[-1, 1]], data["levels"][[0, 1999]], atol=0.02)
            for name in "by short", "by letters", "hours":
                self.assertEqual(self.open(m, name).x, "element")

    def test_tables(self):
        path, _ = self.make()
        with Mount(path) as m:
            plot = self.open(m, "rows")
            self.assertEqual(plot.names, ["time", "a<b", "v[0][0]", "v[0][1]", "v[1][0]", "v[1][1]", "on", "w[0]"])
            self.assertIn("and more", plot.texts)
            for i, wanted in (0, numpy.arange(40) / 4), (1, -numpy.arange(40)), (4, numpy.full(40, 17)):
                numpy.testing.assert_allclose(plot.lines[i][0], numpy.stack([numpy.arange(40), wanted], 1), atol=0.2)

    def test_layout(self):
        """All is in the picture, and no text lies on another one."""
        path, _ = self.make()
        with Mount(path) as m:
            root = self.open(m, "rows").root
        width, height = float(root.get("width")), float(root.get("height"))
        self.assertEqual(root.get("viewBox"), f"0 0 {width:g} {height:g}")
        self.assertEqual([float(root.find(SVG + "rect").get(name)) for name in ("width", "height")], [width, height])
        children = list(root)
        (frame,) = [e.get("d") for e in children if e.get("stroke") == "black"]
        left, top, bottom, right = map(float, re.fullmatch(r"M(\d+),(\d+)V(\d+)H(\d+)", frame).groups())
        self.assertTrue(0 < left < right < width and 0 < top < bottom < height)
        for i, e in enumerate(children):
            if e.get("stroke") == "#ddd":
                label = children[i + 1]
                x, y = float(label.get("x")), float(label.get("y"))
                if "V" in e.get("d"):
                    at, begin, end = map(float, re.split("[,V]", e.get("d")[1:]))
                    self.assertEqual((begin, end, x, label.get("text-anchor")), (top, bottom, at, "middle"))
                    self.assertTrue(bottom + 13 <= y <= bottom + 25)
                else:
                    begin, at, end = map(float, re.split("[,H]", e.get("d")[1:]))
                    self.assertEqual((begin, end, label.get("text-anchor")), (left, right, "end"))
                    self.assertTrue(left - 12 <= x < left and at + 2 <= y <= at + 7)
        texts = [e for e in children if e.tag == SVG + "text"]
        title, (x, y) = texts[0], texts[-2:]
        for text in title, x:
            self.assertEqual((float(text.get("x")), text.get("text-anchor")), ((left + right) // 2, "middle"))
        self.assertTrue(16 <= float(title.get("y")) < top)
        self.assertTrue(bottom + 18 + 13 <= float(x.get("y")) < height - 5)
        self.assertEqual(y.get("transform"), f"translate(18,{(top + bottom) // 2:g}) rotate(-90)")
        names = [e for e in texts if e.get("paint-order") or e.text == "and more"]
        places = numpy.array([(float(e.get("x")), float(e.get("y"))) for e in names])
        self.assertEqual(len(places), 9)
        self.assertEqual(len(set(places[:, 0])), 1)
        self.assertTrue(right - 20 < places[0, 0] < right and top + 13 < places[0, 1] < top + 30)
        self.assertEqual(set(numpy.diff(places[:, 1])), {17})
        colours = [e.get("stroke") for e in children if e.get("stroke-linecap")]
        self.assertEqual([e.get("fill") for e in names[:-1]], colours)
        self.assertEqual(len(set(colours)), 8)
        for e in children:
            if e.get("stroke-linecap"):
                for x, y in re.findall(r"[ML]([-0-9.]+),([-0-9.]+)", e.get("d")):
                    self.assertTrue(left <= float(x) <= right and top + 8 < float(y) < bottom - 8)

    def test_ticks_are_round(self):
        path, _ = self.make()
        with Mount(path) as m:
            for name in os.listdir(m.at(".h5fs/svg")):
                if name == "group":
                    continue
                for ticks in self.open(m, name[:-4]).ticks:
                    steps = numpy.diff([v for _, v in ticks])
                    self.assertLessEqual(len(ticks), 25)
                    if len(steps):
                        self.assertAlmostEqual(steps.max() / steps.min(), 1, places=3)
                        digit = steps[0] / 10.0 ** numpy.floor(numpy.log10(steps[0] * 1.0001))
                        self.assertIn(round(digit, 3), (1, 2, 5), name)

    def test_steps_of_ticks(self):
        """Of 1, 2 and 5 the next one above a ninth of the range."""
        path = self.file("steps.h5")
        steps = {9: 1, 10: 2, 18: 2, 19: 5, 45: 5, 46: 10, 50: 10, 90: 10, 91: 20, 495: 100}
        with h5py.File(path, "w", libver="latest") as f:
            for last in steps:
                f[str(last)] = numpy.zeros(last + 1, "i1")
        with Mount(path) as m:
            for last, step in steps.items():
                self.assertEqual([v for _, v in self.open(m, str(last)).ticks[0]], list(range(0, last + 1, step)))

    def test_unusual_numbers(self):
        path, _ = self.make()
        with Mount(path) as m:
            for name, points in ("nothing", 0), ("no numbers", 0), ("one", 1), ("same", 9), ("huge", 2), ("tiny", 2), ("close", 8), ("mask", 2):
                self.assertEqual(sum(len(part) for part in self.open(m, name).lines[0]), points, name)
            self.assertEqual(sorted(n for n in os.listdir(m.at(".h5fs/svg")) if n.startswith(("sc", "gr", "wo", "te"))), ["group"])

    def test_hostile_texts(self):
        path, _ = self.make()
        with Mount(path) as m:
            plot = self.open(m, "hostile & <name>")
            self.assertEqual((plot.title, plot.y), ("/hostile & <name>", "\u00e4\U0001f600" * 27 + "\u00e4\u2026"))
        with h5py.File(path, "r+") as f:
            del f["hostile & <name>"].attrs["long_name"]
        with Mount(path) as m:
            self.assertEqual(self.open(m, "hostile & <name>").y, "hostile & <name> (]]>&<script>" + "\ufffd" * 7 + " \"')")

    def test_hostile_shapes(self):
        path = self.file("hostile.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("long", (1 << 50,), "<i4", chunks=(1 << 16,))
            f.create_dataset("slow", (1 << 35,), "<f8", chunks=(1 << 16,))
            f.create_dataset("sparse", (1 << 22,), "<i4", chunks=(1 << 16,))[1 << 20] = 7
        with Mount(path, options="max_work=1") as m:
            self.assertErrno(errno.EOVERFLOW, read, m.at(".h5fs/svg/long.svg"))
            self.assertErrno(errno.EFBIG, read, m.at(".h5fs/svg/slow.svg"))
            (line,), = self.open(m, "sparse").lines
            self.assertAlmostEqual(line[:, 1].max(), 7, places=1)

    def test_what_is_written_shows(self):
        path, _ = self.make()
        with Mount(path, options="rw") as m:
            kept = m.open(".h5fs/svg/one.svg", os.O_RDONLY)
            self.assertEqual(os.stat(m.at(".h5fs/svg/one.svg")).st_mode & 0o777, 0o444)
            with open(m.at("one"), "r+b", buffering=0) as f:
                f.write(numpy.int64(50).tobytes())
            os.setxattr(m.at("one"), "user.units", b"mm")
            plot = self.open(m, "one")
            self.assertEqual((round(plot.lines[0][0][0, 1]), plot.y), (50, "one (mm)"))
            self.assertEqual(os.pread(kept, 1 << 16, 0), read(m.at(".h5fs/svg/one.svg")))
            self.assertErrno(errno.EPERM, os.open, m.at(".h5fs/svg/one.svg"), os.O_WRONLY)


if __name__ == "__main__":
    main()
