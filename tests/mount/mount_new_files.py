#!/usr/bin/python3
"""New files in a mount are datasets of bytes, small ones small; the usual programs make them."""
import errno
import os
import random
import stat
import subprocess

import h5py
import numpy

import judges
from mountlib import H5FS, Mount, WriteCase, main, read, write

STYLES = {"earliest": dict(libver="earliest"), "latest": dict(libver="latest"), "v18": None, "v110": None}


class NewFiles(WriteCase):
    def style(self, name):
        """A file of this style, and the options to mount it."""
        path = self.file(f"{name}.h5")
        if STYLES[name]:
            h5py.File(path, "w", **STYLES[name]).close()
            return path, "rw"
        return path, "create=v18" if name == "v18" else "create"

    def assertBytes(self, path, expected):
        """Each judge finds the files: names and bytes."""
        with judges.File(path) as f:
            for name, data in expected.items():
                d = f[name]
                self.assertEqual((d.dtype, d.shape, d.maxshape), (numpy.uint8, (len(data),), (None,)), name)
                self.assertEqual(bytes(d[...]), data, name)
        self.assertEqual(subprocess.run([H5FS, "--check", path], capture_output=True, check=False).returncode, 0)

    def test_programs(self):
        data = random.Random(1).randbytes(3_000_000)
        source = self.file("source")
        os.makedirs(source + "/sub/deep")
        write(source + "/large", data)
        for i in range(30):
            write(f"{source}/sub/file {i}", data[i : i + i * i * 17])
        for name in STYLES:
            path, options = self.style(name)
            with self.subTest(name), Mount(path, options=options) as m:
                self.shell('cp -a "$1" "$2/cp"; diff -r "$1" "$2/cp"', source, m.path)
                self.shell('mkdir "$2/tar"; tar cf - -C "$1" . | tar xf - -C "$2/tar"; diff -r "$1" "$2/tar"', source, m.path)
                self.shell('rsync -aHX "$1/" "$2/rsync/"; diff -r "$1" "$2/rsync"', source, m.path)
                again = self.shell('rsync -aHX --size-only --stats "$1/" "$2/rsync/"', source, m.path)
                self.assertIn("Number of regular files transferred: 0", again)
                self.shell('cat "$1/large" > "$2/cat"; dd if="$1/large" of="$2/dd" bs=1000 status=none; cmp "$2/cat" "$2/dd"', source, m.path)
                self.shell('for i in $(seq 300); do echo "line $i" >> "$1/log"; done', m.path)
                self.shell('{ echo first; (seq 100000); } > "$1/two"', m.path)
                self.shell('echo gone > "$1/gone"; rm "$1/gone"; echo old > "$1/over"; echo new > "$1/over"', m.path)
                log = read(m.at("log"))
                two = read(m.at("two"))
            self.assertEqual(log, b"".join(b"line %d\n" % i for i in range(1, 301)))
            self.assertEqual(two, b"first\n" + b"".join(b"%d\n" % i for i in range(1, 100001)))
            self.assertBytes(path, {
                "cat": data, "dd": data, "log": log, "two": two, "over": b"new\n", "cp/large": data,
                **{f"rsync/sub/file {i}": data[i : i + i * i * 17] for i in range(30)}})

    def test_small_files_stay_small(self):
        # A node of libhdf5's oldest index of chunks alone has 2,096 bytes, and each dataset has one. Later it grows all the same.
        for name, most in ("v110", 2048), ("v18", 2048), ("earliest", 3400):
            path, options = self.style(name)
            with self.subTest(name), Mount(path, options=options) as m:
                for i in range(500):
                    write(m.at(f"file{i}"), b"%1024d" % i)
            self.assertLess(os.stat(path).st_size, most * 500)
            with Mount(path, options=options) as m:
                for i in range(0, 500, 100):
                    with open(m.at(f"file{i}"), "ab") as f:
                        f.write(b"%4096d" % i)
            self.assertBytes(path, {f"file{i}": b"%1024d" % i + b"%4096d" % i * (i % 100 == 0) for i in range(0, 500, 50)})

    def test_what_was_just_made_is_looked_at(self):
        """The kernel keeps what it was told of a new file for a moment, but no longer than that is true."""
        path, options = self.style("v110")
        with Mount(path, options=options) as m:
            for i in range(20):
                name = m.at(f"file{i}")
                before = os.stat(m.path).st_mtime_ns
                fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR)
                new = os.fstat(fd)
                self.assertEqual((new.st_size, new.st_nlink, stat.S_IMODE(new.st_mode)), (0, 1, 0o644))
                self.assertGreater(new.st_mtime_ns, before)
                os.setxattr(name, "h5fs.shape", b"%d" % (i + 1))
                self.assertEqual(os.fstat(fd).st_size, i + 1)
                other = os.open(name, os.O_WRONLY | os.O_APPEND)
                os.write(other, b"more")
                self.assertEqual(os.fstat(fd).st_size, i + 5)
                os.truncate(name, 2)
                os.link(name, name + "-too")
                os.rename(name, name + "-moved")
                now = os.fstat(fd)
                self.assertEqual((now.st_size, now.st_nlink), (2, 2))
                self.assertGreater(now.st_mtime_ns, new.st_mtime_ns)
                os.close(fd)
                os.close(other)

    def test_chunks_follow_from_the_size(self):
        path, options = self.style("v110")
        sizes = {0: 4096, 1: 256, 1000: 1000, 4096: 4096, 60_000: 4096, 200_000: 65536, 5_000_000: 262144}
        with Mount(path, options=options) as m:
            for size, chunk in sizes.items():
                for piece in 1 << 20, 7777, 100:
                    name = f"{size}-{piece}"
                    if size // piece > 10000:
                        continue
                    with open(m.at(name), "wb", buffering=0) as f:
                        for at in range(0, size, piece):
                            f.write(b"x" * min(piece, size - at))
                    self.assertEqual(int(os.getxattr(m.at(name), "h5fs.chunks")), chunk, name)
                    self.assertEqual(read(m.at(name)), b"x" * size)
            with open(m.at("1-100"), "ab") as f:
                f.write(b"y" * 1_000_000)
            self.assertEqual(int(os.getxattr(m.at("1-100"), "h5fs.chunks")), 65536)
            write(m.at("5000000-7777"), b"small")
            write(m.at("sparse"), b"begin")
            os.truncate(m.at("sparse"), 1 << 30)
            self.assertEqual(int(os.getxattr(m.at("sparse"), "h5fs.chunks")), 262144)
            self.assertLess(int(os.getxattr(m.at("sparse"), "h5fs.storage")), 1 << 20)
            os.truncate(m.at("sparse"), 5)
        self.assertBytes(path, {"1-100": b"x" + b"y" * 1_000_000, "5000000-7777": b"small", "60000-7777": b"x" * 60_000})

    def test_filters(self):
        path, options = self.style("v110")
        with Mount(path, options=options + ",filters=shuffle,deflate(9)") as m:
            write(m.at("text"), b"a text " * 100_000)
            write(m.at("small"), b"small")
            self.assertEqual(os.getxattr(m.at("text"), "h5fs.filters"), b"shuffle,deflate(9)")
        self.assertLess(os.stat(path).st_size, 50_000)
        self.assertBytes(path, {"text": b"a text " * 100_000, "small": b"small"})

    def test_flags_and_errors(self):
        for name in "earliest", "v110":
            path, options = self.style(name)
            with self.subTest(name), Mount(path, options=options) as m:
                at = m.at("f")
                fd = os.open(at, os.O_RDWR | os.O_CREAT | os.O_EXCL)
                self.assertErrno(errno.EEXIST, os.open, at, os.O_RDWR | os.O_CREAT | os.O_EXCL)
                os.pwrite(fd, b"abc", 5)
                self.assertEqual(os.pread(fd, 10, 0), b"\0\0\0\0\0abc")
                os.fsync(fd)
                os.ftruncate(fd, 3)
                os.ftruncate(fd, 6)
                os.setxattr(at, "user.note", b"5")
                os.fchmod(fd, 0o644)
                os.utime(at)
                self.assertEqual(os.fstat(fd).st_size, 6)
                os.close(fd)
                fd = os.open(at, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.write(fd, b"again")
                os.close(fd)
                os.mknod(m.at("node"), stat.S_IFREG | 0o644)
                self.assertEqual(os.stat(m.at("node")).st_size, 0)
                self.assertErrno(errno.EEXIST, os.mknod, m.at("node"), stat.S_IFREG)
                self.assertErrno(errno.EPERM, os.mkfifo, m.at("fifo"))
                self.assertErrno(errno.EINVAL, write, m.at("a%2Fb"), b"")
                self.assertErrno(errno.ENAMETOOLONG, write, m.at("n" * 256), b"")
                self.assertErrno(errno.ENOENT, write, m.at("no", "f"), b"")
                self.assertErrno(errno.EPERM, write, m.at(".h5fs", "json", "new.json"), b"")
                self.assertErrno(errno.EISDIR, write, m.path, b"")
                write(m.at("n" * 255), b"long")
                write(m.at("caf\u00e9 \\ 100%"), b"odd")
                self.assertEqual(sorted(os.listdir(m.path)), sorted(["f", "node", "n" * 255, "caf\u00e9 \\ 100%"]))
            self.assertBytes(path, {"f": b"again", "node": b"", "n" * 255: b"long", "caf\u00e9 \\ 100%": b"odd"})
            with Mount(path) as m:
                self.assertErrno(errno.EROFS, write, m.at("new"), b"")

    def test_unlinked_while_open(self):
        path, options = self.style("v110")
        with Mount(path, options=options) as m:
            with open(m.at("swap"), "wb+") as f:
                f.write(b"x" * 100_000)
                f.flush()
                os.unlink(m.at("swap"))
                self.assertEqual(os.listdir(m.path), [])
                f.seek(0)
                self.assertEqual(f.read(), b"x" * 100_000)
            write(m.at("after"), b"y" * 100_000)
        self.assertBytes(path, {"after": b"y" * 100_000})
        self.assertLess(os.stat(path).st_size, 350_000)

    def test_killed_while_written(self):
        """A commit leaves out what is neither synced nor closed; everybody in the mount sees it at once."""
        data = b"x" * 300_000
        for name in STYLES:
            path, options = self.style(name)
            m = Mount(path, options=options)
            m.__enter__()
            try:
                os.mkdir(m.at("folder"))
                files = {}
                for file in "made", "written", "synced", "closed", "renamed", "linked", "unlinked", "folder/written", "folder/duplicated":
                    files[file] = m.open(file, os.O_CREAT | os.O_RDWR)
                shell = subprocess.Popen(["sh", "-c", "{ echo half; echo; cat; } > by-a-shell; :"], cwd=m.path, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
                while not (os.path.exists(m.at("by-a-shell")) and os.stat(m.at("by-a-shell")).st_size == 6):
                    pass
                write(m.at("old"), b"old")
                for _ in range(2):
                    for file, fd in files.items():
                        if file != "made":
                            os.write(fd, data)
                        self.assertEqual(os.stat(m.at(file)).st_size, 0 if file == "made" else os.fstat(fd).st_size)
                    with open(m.at("other"), "ab") as f:
                        f.write(b"other")
                        os.fsync(f.fileno())
                os.close(os.dup(files["made"]))
                os.fsync(files["synced"])
                os.close(files["closed"])
                os.close(os.dup(files["folder/duplicated"]))
                os.rename(m.at("renamed"), m.at("old"))
                os.link(m.at("linked"), m.at("folder/link"))
                os.unlink(m.at("unlinked"))
                self.assertEqual(sorted(os.listdir(m.path)), ["by-a-shell", "closed", "folder", "linked", "made", "old", "other", "synced", "written"])
                self.assertEqual(sorted(os.listdir(m.at("folder"))), ["duplicated", "link", "written"])
                folder = os.open(m.path, os.O_RDONLY)
                os.fsync(folder)
                os.close(folder)
                self.assertEqual((read(m.at("folder/written")), read(m.at("old"))), (data * 2, data * 2))
                self.assertIn(b'"shape"', read(m.at(".h5fs/json/written.json")))
                with open(m.at("other"), "rb") as f:
                    os.fsync(f.fileno())
                m.kill()
                shell.communicate(b"")
            finally:
                self.assertEqual(m.end(), "")
            whole = {file: data * 2 for file in ("synced", "closed", "old", "linked", "folder/link")}
            with self.subTest(name):
                with judges.File(path) as f:
                    self.assertEqual((sorted(f), sorted(f["folder"])), (["closed", "folder", "linked", "old", "other", "synced"], ["link"]))
                    self.assertEqual({file: bytes(f[file][...]) == data for file, data in whole.items()}, dict.fromkeys(whole, True))
                with Mount(path, options=options) as m:
                    write(m.at("folder/written"), b"again")
                self.assertEqual(subprocess.run([H5FS, "--check", path], capture_output=True, check=False).returncode, 0)

    def test_written_across_commits(self):
        """Each commit takes the name out and brings it back: nothing of the file or of its folder changes with that."""
        for name in STYLES:
            path, options = self.style(name)
            with self.subTest(name), Mount(path, options=options) as m:
                expected = {f"file{i}": b"" for i in range(20)}
                files = {file: open(m.at(file), "wb", buffering=0) for file in expected}
                for i in range(40):
                    for file, f in files.items():
                        expected[file] += b"%d " % i * 100
                        f.write(b"%d " % i * 100)
                    if i % 10 == 5:
                        os.setxattr(m.at("file3"), "user.a", b"%d" % i)
                        os.rename(m.at(f"file{i}" if i < 20 else "file7"), m.at(f"file{i}" if i < 20 else "file7") + "'")
                        os.rename(m.at(f"file{i}" if i < 20 else "file7") + "'", m.at(f"file{i}" if i < 20 else "file7"))
                    write(m.at("synced"), b"%d" % i)
                    with open(m.at("synced"), "rb") as f:
                        os.fsync(f.fileno())
                    self.assertEqual(sorted(os.listdir(m.path)), sorted([*expected, "synced"]))
                for f in files.values():
                    f.close()
                self.assertEqual({file: read(m.at(file)) for file in expected}, expected)
            self.assertBytes(path, expected)

    def test_space_of_unlinked_files(self):
        """Whenever a file was synced, closed and unlinked: its space is the file system's again after the mount."""
        path, options = self.style("latest")
        size = os.stat(path).st_size
        for steps in ("unlink", "close"), ("close", "unlink"), ("fsync", "close", "unlink"), ("fsync", "unlink", "close"), ("unlink", "fsync", "close"):
            with self.subTest(steps=steps):
                with Mount(path, options=options) as m:
                    fd = m.open("file", os.O_CREAT | os.O_RDWR)
                    os.write(fd, b"x" * 1_000_000)
                    for step in steps:
                        os.unlink(m.at("file")) if step == "unlink" else getattr(os, step)(fd)
                self.assertLess(os.stat(path).st_size, size + 10_000)
        self.assertBytes(path, {})

    def test_a_hole_is_declared(self):
        """Nothing is stored by a change of the size through an open file, which ends with other chunks."""
        for filters in "", ",filters=shuffle,deflate(4)":
            path, options = self.style("v110")
            with Mount(path, options=options + filters) as m:
                for size in 1, 300, 3000, 100_000:
                    name = m.at(f"hole of {size}")
                    with open(name, "xb", buffering=0) as f:
                        os.ftruncate(f.fileno(), size)
                    self.assertEqual(os.getxattr(name, "h5fs.storage"), b"0", name)
                    os.setxattr(name, "h5fs.info", b'{"dtype":"<f8","shape":"2"}')
                    self.assertEqual(read(name), bytes(16))
            os.unlink(path)

    def test_declared(self):
        path, options = self.style("v110")
        with Mount(path, options=options) as m:
            os.mkdir(m.at("run"))
            self.shell("""touch "$1/run/image"
                setfattr -n h5fs.info -v '{"dtype":"<f4","shape":"0,512,512","filters":"shuffle,deflate(4)"}' "$1/run/image"
                head -c 2097152 /dev/zero >> "$1/run/image"
                ! head -c 100 /dev/zero >> "$1/run/image" 2>/dev/null""", m.path)
            self.assertEqual(os.getxattr(m.at("run/image"), "h5fs.shape"), b"2,512,512")
        with judges.File(path) as f:
            self.assertEqual(f["run/image"].shape, (2, 512, 512))
            self.assertEqual(f["run/image"].dtype, numpy.dtype("<f4"))

    def test_moved_onto_a_dataset(self):
        """The contents change; type, attributes and other names stay."""
        for libver in "earliest", "latest":
            path = self.file(f"onto-{libver}.h5")
            with h5py.File(path, "w", libver=libver) as f:
                f.create_dataset("rows", data=numpy.arange(10, dtype="<i4"), maxshape=(20,), chunks=(4,), compression="gzip")
                f["rows"].attrs["units"] = "km"
                f["other"] = f["rows"]
                f["fixed"] = numpy.arange(4, dtype="u1")
                f.create_dataset("text", data=numpy.frombuffer(b"b\na\nc\n", "u1"), maxshape=(None,))
                f["text"].attrs["note"] = "stays"
                f["words"] = ["a", "b"]
                f["soft"] = h5py.SoftLink("rows")
            with Mount(path, options="rw") as m:
                before = {name: os.stat(m.at(name)).st_ino for name in os.listdir(m.path)}
                for size, number in (81, errno.EINVAL), (84, errno.EINVAL), (60, 0), (0, 0), (8, 0), (80, 0), (8, errno.EINVAL):
                    write(m.at("new"), b"\1" * size)
                    if number:
                        self.assertErrno(number, os.rename, m.at("new"), m.at("rows"))
                        self.assertEqual(read(m.at("new")), b"\1" * size)
                        continue
                    os.rename(m.at("new"), m.at("rows"))
                    self.assertEqual(read(m.at("rows")), b"\1" * size)
                    self.assertEqual(read(m.at("other")), b"\1" * size)
                    self.assertEqual(os.stat(m.at("rows")).st_ino, before["rows"])
                    self.assertNotIn("new", os.listdir(m.path))
                write(m.at("new"), b"abcde")
                self.assertErrno(errno.EINVAL, os.rename, m.at("new"), m.at("fixed"))
                self.assertErrno(errno.EINVAL, os.rename, m.at("new"), m.at("words"))
                write(m.at("new"), b"abcd")
                os.rename(m.at("new"), m.at("fixed"))
                self.shell('sort -o "$1/text" "$1/text"; sed -i s/a/long/ "$1/text"', m.path)
                self.assertEqual(read(m.at("text")), b"long\nb\nc\n")
                write(m.at("new"), b"link")
                os.rename(m.at("new"), m.at("soft"))
                self.assertEqual(read(m.at("soft")), b"link")
                # The kernel has seen each of these names before it goes.
                write(m.at("new"), b"twin")
                os.link(m.at("new"), m.at("again"))
                for name, other in ("new", "fixed"), ("again", "text"):
                    inode = os.stat(m.at(other)).st_ino
                    self.assertEqual(read(m.at(name)), b"twin")
                    os.rename(m.at(name), m.at(other))
                    self.assertEqual((read(m.at(other)), os.stat(m.at(other)).st_ino), (b"twin", inode))
                write(m.at("text"), b"long\nb\nc\n")
                write(m.at("fixed"), b"abcd")
            with judges.File(path) as f:
                self.assertEqual(list(f["rows"][...]), [0x01010101] * 20)
                self.assertEqual(f["other"].attrs["units"], "km")
                self.assertEqual(bytes(f["fixed"][...]), b"abcd")
                self.assertEqual((bytes(f["text"][...]), f["text"].attrs["note"]), (b"long\nb\nc\n", "stays"))

    def test_killed(self):
        """At any instant libhdf5 walks the file whole; what fsync has returned for is there."""
        for seed in range(8):
            name = list(STYLES)[seed % 4]
            dice = random.Random(seed)
            path, options = self.style(name)
            synced, tried = {}, {}
            m = Mount(path, options=options)
            m.__enter__()
            try:
                for i in range(dice.randrange(5, 60)):
                    data = dice.randbytes(int(10 ** dice.uniform(0, 5.3)))
                    with open(m.at(f"f{i}"), "wb") as f:
                        tried[f"f{i}"] = data
                        f.write(data)
                        f.flush()
                        if dice.random() < 0.2:
                            os.fsync(f.fileno())
                            synced.update(tried)
                    if dice.random() < 0.1:
                        os.truncate(m.at(f"f{i}"), 0)
                        tried[f"f{i}"] = b""
                        synced.pop(f"f{i}", None)
                m.kill()
            finally:
                self.assertEqual(m.end(), "")
            with self.subTest(seed=seed), h5py.File(path, "r") as f:
                for key, d in f.items():
                    data = bytes(d[...])
                    self.assertTrue(key == "last" or tried[key].startswith(data) or not tried[key], key)
                self.assertEqual(synced, {key: bytes(f[key][...]) for key in synced})
            with Mount(path, options=options) as m:
                write(m.at("after"), b"after")
                self.assertEqual(synced, {key: read(m.at(key)) for key in synced})
            self.assertEqual(subprocess.run([H5FS, "--check", path], capture_output=True, check=False).returncode, 0)
            os.unlink(path)

    def test_random(self):
        """Files are written, cut and added to in any way, with commits and remounts; a model in memory."""
        for seed, name in enumerate(STYLES):
            dice = random.Random(seed)
            path, options = self.style(name)
            model = {}
            for _ in range(3):
                with Mount(path, options=options) as m:
                    for _ in range(60):
                        self.step(m, model, dice)
                    self.assertEqual({name: read(m.at(name)) for name in os.listdir(m.path)}, model)
            self.assertBytes(path, model)

    def step(self, m, model, dice):
        name = f"f{dice.randrange(12)}"
        at, data = m.at(name), dice.randbytes(int(10 ** dice.uniform(0, 5.5)))
        kind = dice.choice(("write", "append", "inside", "cut", "remove", "move"))
        if kind == "write":
            write(at, data)
            model[name] = data
        elif kind == "append":
            with open(at, "ab") as f:
                f.write(data)
                if dice.random() < 0.2:
                    f.flush()
                    os.fsync(f.fileno())
            model[name] = model.get(name, b"") + data
        elif name not in model:
            return
        elif kind == "inside":
            offset = dice.randrange(len(model[name]) + 1000)
            with open(at, "r+b") as f:
                f.seek(offset)
                f.write(data)
            old = model[name].ljust(offset, b"\0")
            model[name] = old[:offset] + data + old[offset + len(data) :]
        elif kind == "cut":
            size = dice.randrange(2 * len(model[name]) + 1)
            os.truncate(at, size)
            model[name] = model[name][:size].ljust(size, b"\0")
        elif kind == "remove":
            os.unlink(at)
            del model[name]
        else:
            other = f"f{dice.randrange(12)}"
            os.rename(at, m.at(other))
            model[other] = model.pop(name)


main()
