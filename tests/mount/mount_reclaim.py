#!/usr/bin/python3
"""Space that is given up goes back to the file system: while mounted, at the end of a mount.

H5FS_MOUNTS: how many mounts add and remove data in the styles of file that differ little from others (20)."""
import errno
import os
import shutil
import time

import h5py
import numpy

import judges
from mountlib import Mount, MountCase, main

MIB = 1 << 20
MOUNTS = int(os.environ.get("H5FS_MOUNTS", "20"))  # where fifty would take too long


def used(path):
    """Bytes of a file that are no holes. (st_blocks also counts what the file system needs to find them, which depends on the room it has.)"""
    total = 0
    with open(path, "rb", 0) as f:
        end = os.fstat(f.fileno()).st_size
        hole = 0
        while hole < end:
            try:
                data = os.lseek(f.fileno(), hole, os.SEEK_DATA)
            except OSError as e:
                if e.errno != errno.ENXIO:
                    raise
                break
            hole = os.lseek(f.fileno(), data, os.SEEK_HOLE)
            total += hole - data
    return total


def await_used(path, most):
    """Waits until the file takes at most so many bytes on the disk: the committer is at work every few seconds."""
    until = time.monotonic() + 30
    while used(path) > most and time.monotonic() < until:
        time.sleep(0.1)
    return used(path)


def await_size(path, size):
    until = time.monotonic() + 30
    while os.stat(path).st_size > size and time.monotonic() < until:
        time.sleep(0.1)
    return os.stat(path).st_size


STYLES = {
    "latest": dict(libver="latest"),
    "earliest": dict(libver="earliest"),
    "paged": dict(libver="latest", fs_strategy="page", fs_page_size=4096),
    "user block": dict(libver="latest", userblock_size=512),
}


class Reclaim(MountCase):
    def create(self, name, **style):
        path = self.file(name)
        with h5py.File(path, "w", **style) as f:
            f.create_dataset("large", (0,), "u1", maxshape=(None,), chunks=(64 << 10,))
            f.create_dataset("packed", (0,), "u1", maxshape=(None,), chunks=(64 << 10,), compression=1)
            f.create_dataset("few", (0,), "u1", maxshape=(None,), chunks=(MIB,))
            f.create_dataset("small", (0,), "<i4", maxshape=(None,), chunks=(1000,))
        return path

    def test_while_mounted(self):
        """Chunks of a dataset that shrinks are holes soon, or, at the end of the file, are cut off."""
        for name in "latest", "paged":
            with self.subTest(style=name):
                path = self.create("mounted.h5", **STYLES[name])
                content = numpy.random.default_rng(1).integers(0, 256, 2 * MIB, "u1").tobytes()
                with Mount(path, options="rw") as m:
                    for dataset in "large", "packed", "small":
                        with open(m.at(dataset), "ab") as f:
                            f.write(content if dataset != "small" else bytes(4000))
                    before, size = used(path), os.stat(path).st_size
                    self.assertGreater(before, 4 * MIB)
                    os.truncate(m.at("large"), 100)
                    self.assertLess(await_used(path, before - 2 * MIB + (160 << 10)), before - 2 * MIB + (160 << 10))
                    self.assertEqual(os.stat(path).st_size, size)
                    # Used again where it was, and given back again.
                    with open(m.at("large"), "ab") as f:
                        f.write(content[100:])
                    self.assertLess(os.stat(path).st_size, size + (160 << 10))
                    with open(m.at("large"), "rb") as f:
                        self.assertEqual(f.read(), content)
                    for dataset in "large", "packed", "small":
                        os.truncate(m.at(dataset), 0)
                    self.assertLess(await_used(path, 128 << 10), 128 << 10)
                    # The end is cut off, though indexes lie before it.
                    with open(m.at("few"), "ab") as f:
                        for part in content[:MIB], content[MIB:], content[:MIB]:
                            size = os.stat(path).st_size
                            f.write(part)
                            f.flush()
                            os.fsync(f.fileno())
                    os.truncate(m.at("few"), 2 * MIB)
                    self.assertEqual(await_size(path, size), size)
                with judges.File(path) as f:
                    self.assertEqual([len(f[dataset]) for dataset in ("large", "packed", "small")], [0, 0, 0])
                    self.assertEqual(f["few"][()].tobytes(), content)
                with h5py.File(path, "r+") as f:
                    f["large"].resize((MIB,))
                    f["large"][:] = 7
                with judges.File(path) as f:
                    self.assertTrue((f["large"][:] == 7).all())

    def add_and_remove(self, m, content):
        """1 MiB in datasets that were there, and 1 MiB in new files and groups, with attributes."""
        for dataset in "large", "packed":
            with open(m.at(dataset), "ab") as f:
                f.write(content[:MIB // 2])
                os.fsync(f.fileno())
            os.truncate(m.at(dataset), 0)
        os.mkdir(m.at("group"))
        for i in range(12):
            name = m.at("group", f"file{i}")
            with open(name, "wb") as f:
                f.write(content[:MIB // 2 if i == 0 else MIB // 22])
                os.fsync(f.fileno())
            os.setxattr(name, "user.number", b"7")
        shutil.rmtree(m.at("group"))

    def add_and_remove_often(self, path, mounts):
        """After many mounts that add 2 MiB and remove it the file takes no more disk than after one. A few bytes of a page that is in use
        may be lost with each."""
        content = numpy.random.default_rng(2).integers(0, 256, MIB, "u1").tobytes()
        after = []
        for _ in range(mounts):
            with Mount(path, options="rw,sync=fsync") as m:
                self.add_and_remove(m, content)
            after.append((used(path), os.stat(path).st_size))
        self.assertLessEqual(after[-1][0], after[0][0] + 4096, after)
        self.assertLessEqual(after[-1][1], after[1][1] + 4096, after)
        judges.agree(path)

    def texts_come_and_go(self, m, round_):
        """1 MiB of lines in each of three datasets: one is removed, one cut to no rows, one to a few; and attributes of which some stay with
        another text."""
        lines = "".join(f"{round_} {i} " + "x" * (i % 200) + "\n" for i in range(9000))
        os.close(os.open(m.at("new"), os.O_CREAT | os.O_WRONLY))
        for name, value in ("dtype", b"vlen str"), ("maxshape", b"inf"), ("shape", b"0"):
            os.setxattr(m.at("new"), "h5fs." + name, value)
        for name in "new", "cut", "part":
            with open(m.at(name), "a") as f:
                f.write(lines)
                os.fsync(f.fileno())
        os.truncate(m.at("cut"), 0)
        os.setxattr(m.at("part"), "h5fs.shape", b"10")
        for path in "new", "group":
            for i in range(6):
                os.setxattr(m.at(path), f"user.a{i}", b"text of round %d " % round_ + b"y" * i)
            os.setxattr(m.at(path), "user.large", b"z" * 20000)
        os.unlink(m.at("new"))
        for i in range(2, 6):
            os.removexattr(m.at("group"), f"user.a{i}")
        os.setxattr(m.at("group"), "user.large", b"no more")
        os.setxattr(m.at("of libhdf5"), "user.text", b"round %d" % round_)
        return lines

    def test_values_in_the_heap(self):
        for name, style in STYLES.items():
            with self.subTest(style=name):
                path = self.file("texts.h5")
                with h5py.File(path, "w", **style) as f:
                    for dataset in "cut", "part", "again":
                        f.create_dataset(dataset, (0,), h5py.string_dtype(), maxshape=(None,), chunks=(500,))
                    f.create_group("group")
                    f.create_group("of libhdf5").attrs["text"] = "before"
                    f.attrs["kept"] = "stays"
                    # Two references to a region that share an object of the heap, as libhdf5 copies them.
                    f["numbers"] = numpy.arange(10)
                    f["group"].attrs["region"] = f["numbers"].regionref[2:4]
                    f.attrs["region"] = f["group"].attrs["region"]
                with Mount(path, options="rw") as m:
                    os.removexattr(m.at("group"), "user.region")
                after, mounts = [], MOUNTS if name == "latest" else 4
                for i in range(mounts):
                    with Mount(path, options="rw,sync=fsync") as m:
                        lines = self.texts_come_and_go(m, i)
                    after.append(used(path))
                # In the other styles some bytes of names and headers are lost, as above.
                self.assertLessEqual(after[-1], after[1] + 4096 + (0 if name == "latest" else 2048 * mounts), after)
                judges.agree(path)
                for i in range(4):
                    with Mount(path, options="rw,sync=fsync") as m, open(m.at("again"), "w") as f:
                        f.write(lines)
                self.assertLess(used(path) - after[-1], 2 * len(lines))
                with judges.File(path) as f:
                    self.assertEqual([len(f[dataset]) for dataset in ("cut", "part", "again")], [0, 10, 9000])
                    self.assertEqual(set(f["group"].attrs), {"a0", "a1", "large"})
                    self.assertEqual(f.attrs["kept"], "stays")
                    self.assertEqual(list(f["numbers"][f.attrs["region"]]), [2, 3])

    def test_what_no_commit_has_seen(self):
        """Files that are made and removed between two commits leave nothing on the disk."""
        for name, style in STYLES.items():
            for awaits in (True, False) if name == "latest" else (False,):
                path = self.create("unseen.h5", **style)
                with Mount(path, options="rw") as m, self.subTest(style=name, awaits=awaits):
                    with open(m.at("gone"), "wb") as f:
                        f.write(os.urandom(MIB))
                    with open(m.at("stays"), "wb") as f:
                        f.write(os.urandom(100))
                    os.unlink(m.at("gone"))
                    if awaits:
                        self.assertLess(await_used(path, 128 << 10), 128 << 10)
                with self.subTest(style=name, awaits=awaits):
                    self.assertLess(used(path), 128 << 10)

    def test_mounts_that_add_and_remove(self):
        for name, style in STYLES.items():
            with self.subTest(style=name):
                path = self.create("often.h5", **style)
                self.add_and_remove_often(path, 50 if name == "latest" else MOUNTS)
        with self.subTest("made by a mount"):
            path = self.file("made.h5")
            with Mount(path, options="rw,create") as m:
                for dataset in "large", "packed":
                    open(m.at(dataset), "wb").close()
            self.add_and_remove_often(path, MOUNTS)


if __name__ == "__main__":
    main()
