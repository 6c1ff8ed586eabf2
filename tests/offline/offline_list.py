"""h5fs --list: a line for each name of the tree, with type, shape, storage and filters."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import h5py
import numpy

H5FS = os.environ.get("H5FS", "src/h5fs")


def list_file(path, *arguments, below=()):
    run = subprocess.run([H5FS, "--list", *arguments, path, *below], capture_output=True, text=True, timeout=60)
    return run.returncode, run.stdout.splitlines(), run.stderr


class List(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "x.h5")

    def test_tree(self):
        with h5py.File(self.path, "w") as f:
            f.create_dataset("run/image", data=numpy.zeros((64, 100), "<f4"), chunks=(16, 50), shuffle=True,
                             compression="gzip", compression_opts=4)
            stored = f["run/image"].id.get_storage_size()
            f["run/number"] = numpy.int16(7)
            f["run/words"] = numpy.array(["a", "bc"], dtype=h5py.string_dtype())
            f["type"] = numpy.dtype("<i8")
            f["link"] = h5py.SoftLink("/run/image")
            f["nothing"] = h5py.Empty("<u2")
            f["two\nlines\\"] = numpy.arange(3, dtype="<u1")
        status, lines, errors = list_file(self.path)
        self.assertEqual((status, errors), (0, ""))
        self.assertEqual(lines, [
            "/",
            "/link -> run/image",
            "/nothing  <u2  (null)  contiguous  0 bytes",
            "/run/",
            f"/run/image  <f4  (64,100)  chunked(16,50)  shuffle,deflate(4)  {stored} bytes of 25600"
            f"  ratio {25600 / stored:.2f}",
            "/run/number  <i2  contiguous  2 bytes",
            "/run/words  object  (2)  contiguous  32 bytes",
            "/two\\012lines\\134  |u1  (3)  contiguous  3 bytes",
            "/type  datatype",
        ])

    def test_creation_order(self):
        with h5py.File(self.path, "w", track_order=True, libver="latest") as f:
            for name in "zay":
                f.create_group(name)
        self.assertEqual(list_file(self.path)[1], ["/", "/a/", "/y/", "/z/"])
        self.assertEqual(list_file(self.path, "-o", "order=creation")[1], ["/", "/z/", "/a/", "/y/"])

    def test_damage_is_told_and_the_rest_listed(self):
        with h5py.File(self.path, "w", libver="latest") as f:
            for name in ("good", "ill", "well"):
                f[name] = 1
            address = h5py.h5o.get_info(f["ill"].id).addr
        with open(self.path, "r+b") as f:
            f.seek(address)
            f.write(b"XXXX")
        status, lines, errors = list_file(self.path)
        self.assertEqual(status, 4)
        self.assertRegex(errors, f"^/ill: object header: .* at address {address}\n$")
        self.assertEqual([line.split("  ")[0] for line in lines], ["/", "/good", "/ill", "/well"])

    def test_names_write_nothing_of_their_own(self):
        evil = "\x1b[31m\nFAKE /x\\\x9b"
        shown = r"\033[31m\012FAKE /x\134\302\233"
        with h5py.File(self.path, "w", libver="latest") as f:
            f["d" + evil.replace("/", "")] = 1
            f["soft"] = h5py.SoftLink("no" + evil)
            f["external"] = h5py.ExternalLink("no.h5", "/" + evil)
            f["damaged" + evil.replace("/", "")] = 1
            address = h5py.h5o.get_info(f["damaged" + evil.replace("/", "")].id).addr
        with open(self.path, "r+b") as f:
            f.seek(address)
            f.write(b"XXXX")
        status, lines, errors = list_file(self.path)
        self.assertEqual(status, 4)
        plain = shown.replace("/", "")
        self.assertEqual({line.split("  ")[0] for line in lines},
                         {"/", f"/d{plain}", f"/soft -> no{shown}", f"/external -> extlink:no.h5//{shown}", f"/damaged{plain}"})
        self.assertRegex(errors, "^" + re.escape(f"/damaged{plain}: object header: ") + f"[ -~]* at address {address}\n$")

    def test_groups_with_many_ways_to_them(self):
        """2^40 paths."""
        with h5py.File(self.path, "w") as f:
            for i in range(40, -1, -1):
                group = f.create_group(f"g{i:02}")
                for name in "ab" if i < 40 else ():
                    group[name] = f[f"g{i + 1:02}"]
        status, lines, errors = list_file(self.path)
        self.assertEqual((status, errors), (0, ""))
        self.assertEqual(lines[:2], ["/", "/g00/"])
        self.assertEqual(lines[41:44], ["/g00" + "/a" * 40 + "/", *(f"/g00{'/a' * i}/b/  as /g00{'/a' * i}/a" for i in (39, 38))])
        self.assertEqual(len(lines), 2 + 80 + 40)

    def test_text_that_would_never_end(self):
        with h5py.File(self.path, "w") as f:
            f.create_dataset("d", (10**12,), h5py.string_dtype(), chunks=(100_000,))
        self.assertEqual(list_file(self.path), (0, ["/", "/d  object  (1000000000000)  chunked(100000)  0 bytes"], ""))

    def test_part(self):
        with h5py.File(self.path, "w") as f:
            f["run/image"] = numpy.zeros(2, "u1")
            f["run/itself"] = f["run"]
            f["run/up"] = h5py.SoftLink("/other")
            f["other/number"] = 1
            f["link"] = h5py.SoftLink("run")
            f["loop"] = h5py.SoftLink("loop")
        run = ["/run/", "/run/image  |u1  (2)  contiguous  2 bytes", "/run/itself -> .", "/run/up -> ../other"]
        number = "/other/number  <i8  contiguous  8 bytes"
        for path, lines in {"run": run, "/run/": run, "link": run, "run/itself/.": run, "./other/../run/up/../run": run, "run/image": run[1:2],
                            "link/up": ["/other/", number], "link/itself/up/number": [number], "/..//other": ["/other/", number],
                            "/.h5fs/npy/other": ["/.h5fs/npy/other/", number.replace("/other", "/.h5fs/npy/other").replace("  <", ".npy  <") + " of 136  ratio 17.00"],
                            }.items():
            with self.subTest(path):
                self.assertEqual(list_file(self.path, below=[path]), (0, lines, ""))
        for path, why in {"none": "No such file or directory", "run/image/x": "Not a directory", "run/image/..": "Not a directory",
                          "loop": "Too many levels of symbolic links", "run/" + 300 * "x": None}.items():
            with self.subTest(path):
                status, lines, errors = list_file(self.path, below=[path])
                self.assertEqual((status, lines), (1, []))
                self.assertRegex(errors, f"^{path}: {why or '.*'}\n$")
        self.assertEqual(list_file(self.path, below=["a", "b"])[0], 2)

    def test_json(self):
        names = {"plain", "\x1b[31m\n\"\\", "宽", b"\xff\xfe".decode(errors="surrogateescape")}
        with h5py.File(self.path, "w") as f:
            for name in names:
                f[os.fsencode("run/" + name)] = numpy.arange(6, dtype=">i2").reshape(2, 3)
            f["run"].attrs["text\n"] = "lines\n  two"
            f["run"].attrs["list"] = [1.5, 2]
            f["twice"] = f["run"]
            f["link"] = h5py.SoftLink("/run/plain")
            f["type"] = numpy.dtype("<i8")
            f.create_dataset("chunked", (0, 4), "f8", maxshape=(None, 4), chunks=(5, 4), compression="gzip", fillvalue=2)
        status, lines, errors = list_file(self.path, "--json")
        self.assertEqual((status, errors), (0, ""))
        found = {entry.pop("path"): entry for entry in map(json.loads, lines)}
        self.assertEqual(set(found), {"/", "/run", "/twice", "/link", "/type", "/chunked"} | {"/run/" + name for name in names})
        self.assertEqual(found["/link"], {"class": "link", "target": "run/plain"})
        self.assertEqual(found["/twice"], {"class": "group", "as": "/run"})
        self.assertEqual(found["/run"]["attributes"], {"text\n": "lines\n  two", "list": [1.5, 2]})
        self.assertEqual((found["/type"]["class"], found["/type"]["dtype"]), ("datatype", "<i8"))
        self.assertEqual((found["/run/plain"]["dtype"], found["/run/plain"]["shape"]), (">i2", [2, 3]))
        # What the view says of an object is what is printed of it.
        for path in ("/chunked", "/run/plain", "/type", "/run"):
            view = subprocess.run([H5FS, "--cat", self.path, f".h5fs/json{path}.json"], capture_output=True, check=True).stdout
            self.assertEqual(found[path], json.loads(view))
            # In a line of its own, with a space behind each comma that ended one.
            joined = re.sub(r"\n *", "", re.sub(r",\n *", ", ", view.decode()))
            self.assertIn(f'{{"path": "{path}", {joined[1:]}', lines)
        chunked = found["/chunked"]
        self.assertEqual([chunked[name] for name in ("shape", "maxshape", "chunks", "fill")], [[0, 4], [None, 4], [5, 4], 2])
        part = list_file(self.path, "--json", below=["/run/"])[1]
        self.assertEqual(part[0], next(line for line in lines if line.startswith('{"path": "/run"')))
        self.assertEqual(len(part), 1 + len(names))
        # What stands for no object has a class only.
        for path, kind in ("/.h5fs", "directory"), ("/.h5fs/attrs/run/list", "file"):
            status, lines, errors = list_file(self.path, "--json", below=[path])
            self.assertEqual((status, json.loads(lines[0]), errors), (0, {"path": path, "class": kind}, ""))
        self.assertEqual(list_file(self.path, "--json", "--check")[0], 2)

    def test_json_of_damage(self):
        with h5py.File(self.path, "w", libver="latest") as f:
            for name in ("good", "ill"):
                f[name] = 1
            address = h5py.h5o.get_info(f["ill"].id).addr
        with open(self.path, "r+b") as f:
            f.seek(address)
            f.write(b"XXXX")
        status, lines, errors = list_file(self.path, "--json")
        self.assertEqual((status, len(lines)), (4, 3))
        self.assertRegex(errors, f"^/ill: object header: .* at address {address}\n$")
        entry = json.loads(lines[2])
        self.assertEqual(list(entry), ["path", "error"])
        self.assertIn(entry["error"], errors)

    def test_refusals(self):
        self.assertEqual(list_file(self.path)[0], 3)
        with open(self.path, "w") as f:
            f.write("text")
        self.assertEqual(list_file(self.path)[0], 3)
        self.assertEqual(list_file(self.path, "-o", "nonsense")[0], 2)


if __name__ == "__main__":
    unittest.main()
