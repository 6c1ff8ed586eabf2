#!/usr/bin/python3
"""SIGKILL of the daemon in the middle of appends, on ext4 and on xfs: what was acknowledged is in the file, whole, and libhdf5
opens it as it lies there. H5FS_KILLS says how often on each file system (100)."""
import os
import random
import subprocess
import threading

import h5py
import numpy

import judges
from mountlib import Mount, MountCase, main

KILLS = int(os.environ.get("H5FS_KILLS", "100"))
FRESH = 25  # kills until a new file is begun
WIDTH = 9


def rows(begin, end):
    return (numpy.arange(begin, end)[:, None] * 3 + numpy.arange(WIDTH)[None, :]).astype("<i4")


def big_header(group, name, **how):
    """A dataset whose attributes make its object header larger than 8 KiB."""
    space = h5py.h5s.create_simple((0, WIDTH), (h5py.h5s.UNLIMITED, WIDTH))
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk(how["chunks"])
    dcpl.set_attr_phase_change(1000, 900)
    if how.get("compression"):
        dcpl.set_deflate(4)
    h5py.h5d.create(group.id, name.encode(), h5py.h5t.STD_I32LE, space, dcpl=dcpl)
    for i in range(14):
        group[name].attrs[f"comment {i}"] = numpy.full(700, i, "u1")


def make(path, libver):
    with h5py.File(path, "w", libver=libver) as f:
        unlimited = dict(shape=(0, WIDTH), dtype="<i4", maxshape=(None, WIDTH))
        f.create_dataset("plain", chunks=(1, WIDTH), **unlimited)
        f.create_dataset("deflate", chunks=(4, 5), compression="gzip", **unlimited)
        f.create_dataset("two", shape=(0, WIDTH), dtype="<i4", maxshape=(None, None), chunks=(3, 4), compression="lzf")
        f.create_dataset("fixed", shape=(0, WIDTH), dtype="<i4", maxshape=(100_000, WIDTH), chunks=(2, WIDTH))
        big_header(f, "big", chunks=(2, WIDTH))
        big_header(f, "big_deflate", chunks=(6, WIDTH), compression="gzip")
    with h5py.File(path) as f:
        return list(f)


class Writer(threading.Thread):
    """Appends to all datasets until the mount is gone; what close() has returned for is acknowledged."""

    def __init__(self, mount, names, seed):
        super().__init__()
        self.mount, self.random = mount, random.Random(seed)
        # What the journal of the mount before has brought is there now.
        self.acknowledged = {name: os.stat(mount.at(name)).st_size // (4 * WIDTH) for name in names}
        self.tried = dict(self.acknowledged)
        self.progress = threading.Semaphore(0)

    def run(self):
        try:
            while True:
                name = self.random.choice(list(self.acknowledged))
                n = self.acknowledged[name]
                fd = os.open(self.mount.at(name), os.O_WRONLY | os.O_APPEND)
                try:
                    for _ in range(self.random.randint(1, 3)):
                        step = self.random.randint(1, 6)
                        self.tried[name] = n + step
                        os.write(fd, rows(n, n + step).tobytes())
                        n += step
                        self.progress.release()
                    if self.random.random() < .2:
                        os.fsync(fd)
                finally:
                    os.close(fd)
                self.acknowledged[name] = n
        except OSError:
            pass
        finally:
            self.progress.release()


class Kill(MountCase):
    def check(self, path, acknowledged, tried):
        """As libhdf5 sees the file, without repair."""
        with judges.File(path) as f:
            for name in acknowledged:
                values = f[name][()]
                n = len(values)
                self.assertLessEqual(acknowledged[name], n, name)
                self.assertLessEqual(n, tried[name], name)
                self.assertTrue((values == rows(0, n)).all(), f"{name}: {n} rows")

    def run_on(self, mkfs, megabytes):
        image, folder = self.file("image"), self.file("fs")
        os.mkdir(folder)
        with open(image, "wb") as f:
            f.truncate(megabytes << 20)
        subprocess.run([*mkfs, image], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["mount", "-o", "loop", image, folder], check=True)
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        path = os.path.join(folder, "file.h5")
        for i in range(KILLS):
            chooser = random.Random(f"{mkfs[0]} {i}")
            if i % FRESH == 0:
                for name in os.listdir(folder):
                    if name.startswith("file.h5"):
                        os.remove(os.path.join(folder, name))
                names = make(path, ["earliest", "latest", ("v108", "v110")][i // FRESH % 3])
                acknowledged = tried = dict.fromkeys(names, 0)
            m = Mount(path, options="rw")
            try:
                m.__enter__()
                writer = Writer(m, names, i)
                for name, n in writer.acknowledged.items():
                    self.assertTrue(acknowledged[name] <= n <= tried[name], f"{name} after kill {i - 1}")
                writer.start()
                for _ in range(chooser.randint(1, 30)):
                    writer.progress.acquire()
                m.kill()
                writer.join()
            finally:
                wrong = m.end()
            self.assertEqual(wrong, "")
            acknowledged, tried = writer.acknowledged, writer.tried
            with self.subTest(kill=i, seed=f"{mkfs[0]} {i}"):
                if chooser.random() < .5:
                    # As it lies there: libhdf5 knows nothing of the journal.
                    self.check(path, acknowledged, tried)
                    continue
                with Mount(path) as reading:
                    for name in names:
                        with open(reading.at(name), "rb") as f:
                            content = f.read()
                        n = len(content) // (4 * WIDTH)
                        self.assertTrue(acknowledged[name] <= n <= tried[name], name)
                        self.assertEqual(content, rows(0, n).tobytes(), name)

    def test_ext4(self):
        self.run_on(["mkfs.ext4", "-q"], 64)

    def test_xfs(self):
        self.run_on(["mkfs.xfs", "-q"], 320)


if __name__ == "__main__":
    main()
