#!/usr/bin/python3
"""Space of a file that is written: pages of paged files, user blocks, narrow addresses, space that is used again, and a full disk."""
import contextlib
import errno
import os
import shutil
import subprocess
import sys

import h5py
import numpy

import judges
from cache_image import create_with_image, wipe_image_entries
from mountlib import Mount, MountCase, lookup3, main, read, refusal, write

H5FS = os.environ.get("H5FS", "src/h5fs")


def rows(begin, end):
    return numpy.arange(4 * begin, 4 * end, dtype="<i4").reshape(-1, 4)


def create(path, fcpl, libver=("latest", "latest")):
    """A file with creation properties that h5py has no arguments for."""
    fapl = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    names = {"earliest": h5py.h5f.LIBVER_EARLIEST, "latest": h5py.h5f.LIBVER_LATEST}
    fapl.set_libver_bounds(*(names[name] for name in libver))
    return h5py.File(h5py.h5f.create(path.encode(), h5py.h5f.ACC_TRUNC, fcpl, fapl))


def add_datasets(f):
    f.create_dataset("compressed", (0, 4), "<i4", maxshape=(None, 4), chunks=(3, 4), compression="gzip")
    f.create_dataset("two", (0, 4), "<i4", maxshape=(None, None), chunks=(300, 4))
    f.create_dataset("late", (100, 4), "<i4")
    f.create_dataset("large", (0,), "u1", maxshape=(None,), chunks=(100_000,))


class Space(MountCase):
    def append_and_judge(self, path, **options):
        """Many small commits; then libhdf5 reads all, and goes on to change the file itself."""
        n = 0
        with Mount(path, options="rw", **options) as m:
            for i in range(60):
                for name in ("compressed", "two"):
                    with open(m.at(name), "ab") as f:
                        f.write(rows(n, n + 5).tobytes())
                n += 5
                with open(m.at("large"), "ab") as f:
                    f.write(bytes([i]) * 3000)
            with open(m.at("late"), "r+b") as f:
                f.write(rows(0, 100).tobytes())
        for _ in range(2):
            judges.agree(path)
            with h5py.File(path, "r+") as f:
                for name in ("compressed", "two"):
                    self.assertTrue((f[name][:n] == rows(0, n)).all(), name)
                self.assertTrue((f["late"][()] == rows(0, 100)).all())
                self.assertTrue((f["large"][()] == numpy.repeat(numpy.arange(60, dtype="u1"), 3000)).all())
                f["compressed"].resize(n + 10, 0)
                f["compressed"][n:] = 7
                f.require_dataset("more", (5000,), "<i8")[()] = numpy.arange(5000)
                f.attrs["note"] = "libhdf5 was here"
        with Mount(path, options="rw") as m:
            with open(m.at("compressed"), "ab") as f:
                f.write(rows(n + 10, n + 12).tobytes())
        with judges.File(path) as f:
            self.assertTrue((f["compressed"][n:n + 10] == 7).all())
            self.assertTrue((f["compressed"][n + 10:] == rows(n + 10, n + 12)).all())
            self.assertTrue((f["more"][()] == numpy.arange(5000)).all())

    def test_paged_files(self):
        for size in (512, 1024, 4096, 65536):
            with self.subTest(page=size):
                path = self.file(f"paged{size}.h5")
                with h5py.File(path, "w", libver="latest", fs_strategy="page", fs_page_size=size) as f:
                    add_datasets(f)
                self.append_and_judge(path)
                self.assertEqual(os.stat(path).st_size % size, 0)

    def keeping_track(self, **options):
        """A file that keeps track of its free space, of which it has much."""
        path = self.file("persist.h5")
        with h5py.File(path, "w", libver="latest", fs_persist=True, **options) as f:
            f["first"] = numpy.arange(1000)
            f["gone"] = numpy.zeros(1_000_000, "u1")
            f["last"] = numpy.zeros(10_000, "u1")
            add_datasets(f)
        with h5py.File(path, "r+", libver="latest") as f:
            del f["gone"]
        return path

    def free_space(self, path):
        """What the file says, and what nothing refers to."""
        with h5py.File(path) as f:
            told = f.id.get_freespace()
        done = subprocess.run([H5FS, "--check", path], capture_output=True, text=True, check=True)
        return told, int(done.stdout.split("nothing refers to ")[1].split()[0])

    def test_free_space_that_is_kept_track_of(self):
        """It is used, and what is left is told; libhdf5 uses that."""
        for options in (dict(fs_strategy="fsm"), dict(fs_strategy="fsm", userblock_size=1024), dict(fs_strategy="fsm", fs_threshold=100),
                        dict(fs_strategy="page", fs_page_size=4096), dict(fs_strategy="page", fs_page_size=512)):
            with self.subTest(**options):
                path = self.keeping_track(**options)
                before, size = read(path), os.stat(path).st_size
                with Mount(path, options="rw") as m:
                    os.listdir(m.at())
                self.assertEqual(read(path), before)
                with Mount(path, options="rw") as m:
                    with open(m.at("new"), "wb") as f:
                        f.write(bytes(range(250)) * 2400)
                    os.unlink(m.at("first"))
                self.assertLess(os.stat(path).st_size, size + 30_000)
                told, unused = self.free_space(path)
                self.assertGreater(told, 350_000)
                self.assertLessEqual(told, unused)
                if "fs_threshold" not in options and options["fs_strategy"] == "fsm":
                    self.assertEqual(told, unused)
                size = os.stat(path).st_size
                judges.agree(path)
                copy = shutil.copy(path, self.file("copy.h5"))
                with h5py.File(copy, "r+", libver="latest") as f:
                    f["more"] = numpy.full(300_000, 7, "u1")
                with judges.File(copy) as f:
                    self.assertEqual(f["new"][()].tobytes(), bytes(range(250)) * 2400)
                    self.assertTrue((f["more"][()] == 7).all())
                self.assertLess(os.stat(copy).st_size, size + 30_000)
                self.append_and_judge(path)

    def test_free_space_after_a_kill(self):
        """The file has no managers then, and the space is lost until it is reclaimed; libhdf5 goes on without it."""
        for options in dict(fs_strategy="fsm"), dict(fs_strategy="page", fs_page_size=4096):
            with self.subTest(**options):
                path = self.keeping_track(**options)
                size = os.stat(path).st_size
                with Mount(path, options="rw") as m:
                    with open(m.at("large"), "ab") as f:
                        f.write(bytes([5]) * 2_000_000)
                        os.fsync(f.fileno())
                    m.kill()
                self.assertGreater(os.stat(path).st_size, size)
                copy = shutil.copy(path, self.file("copy.h5"))
                # libhdf5 1.10 cuts off all that is behind the end which the message has.
                with h5py.File(copy, "r+", libver="latest") as f:
                    self.assertEqual(f.id.get_freespace(), 0)
                    f["more"] = numpy.arange(1000)
                    del f["first"]
                with judges.File(copy) as f:
                    self.assertTrue((f["large"][()] == 5).all())
                with Mount(path, options="rw") as m:
                    os.mkdir(m.at("group"))
                with judges.File(path) as f:
                    self.assertTrue((f["large"][()] == 5).all())

    def is_refused(self, path, data, block, n, at, address, why):
        """If the block of n bytes has this address at its byte `at`, the file is not written."""
        with self.subTest(block=block, address=address):
            changed = bytearray(data)
            changed[block + at:block + at + 8] = address.to_bytes(8, "little")
            changed[block + n - 4:block + n] = lookup3(bytes(changed[block:block + n - 4])).to_bytes(4, "little")
            write(path, bytes(changed))
            status, said = refusal(path, options="rw")
            self.assertEqual(status, 4, said)
            self.assertIn(why, said)
            self.assertEqual(read(path), bytes(changed))

    def test_free_space_that_cannot_be(self):
        """A section over the superblock, behind the end, or over another one: nothing is changed."""
        path = self.keeping_track(fs_strategy="fsm")
        data = read(path)
        at = data.index(b"FSSE")
        for list_at in at, data.index(b"FSSE", at + 1):
            header = int.from_bytes(data[list_at + 5:list_at + 13], "little")
            n = int.from_bytes(data[header + 62:header + 70], "little")  # bytes of the list
            for address in 8, len(data) - 1, 2 ** 62:
                self.is_refused(path, data, list_at, n, 13 + 9, address, "cannot be free")

    def test_free_space_with_swmr_readers(self):
        status, said = refusal(self.keeping_track(fs_strategy="fsm"), options="rw,swmr")
        self.assertEqual(status, 6)
        self.assertIn("free space", said)

    def image(self, name, user_block=0):
        """A file whose metadata are in a cache image alone."""
        path = self.file(name)
        fcpl = h5py.h5p.create(h5py.h5p.FILE_CREATE)
        fcpl.set_userblock(user_block)
        with create_with_image(path, fcpl) as f:
            add_datasets(f)
        if not user_block:
            self.assertGreater(wipe_image_entries(path), 3)
        return path

    def test_metadata_cache_image(self):
        """The first change drops it; a mount that changes nothing leaves it as it is."""
        for user_block in 0, 512:
            path = self.image("image.h5", user_block)
            before = read(path)
            with Mount(path, options="rw") as m:
                self.assertEqual(sorted(os.listdir(m.at())), ["compressed", "large", "late", "two"])
                self.assertEqual(os.getxattr(m.at("two"), "h5fs.shape"), b"0,4")
            self.assertEqual(read(path), before)
            self.append_and_judge(path)
            # libhdf5 has found no image: it would have read old blocks of it.
            with Mount(path, options="rw") as m:
                os.mkdir(m.at("group"))
            with judges.File(path) as f:
                self.assertIn("group", f)

    def test_metadata_cache_image_that_is_refused(self):
        path = self.image("image.h5")
        status, said = refusal(path, options="rw,swmr")
        self.assertEqual(status, 6)
        self.assertIn("cache image", said)
        # A block that lies over the image itself, or the end of the file.
        data = read(path)
        image = data.index(b"MDCI")
        n = int.from_bytes(data[image + 6:image + 14], "little")
        for address in image - 4, image + 100, len(data) - 4:
            self.is_refused(path, data, image, n, 18 + 14, address, "cache image")

    def test_user_blocks(self):
        for size in (512, 4096):
            for libver in ("earliest", "latest"):
                with self.subTest(size=size, libver=libver):
                    path = self.file(f"user{size}{libver}.h5")
                    with h5py.File(path, "w", libver=libver, userblock_size=size) as f:
                        add_datasets(f)
                    with open(path, "r+b") as f:
                        f.write(b"mine " * 100)
                    self.append_and_judge(path)
                    with open(path, "rb") as f:
                        self.assertEqual(f.read(500), b"mine " * 100)

    def test_narrow_addresses(self):
        for offsets, lengths in ((4, 4), (4, 8), (8, 4)):
            for libver in (("earliest", "latest"), ("latest", "latest")):
                if lengths == 4 and libver[0] == "latest":
                    continue  # libhdf5 does not open its own extensible arrays there: it looks for an unlimited dimension of 8 bytes
                with self.subTest(offsets=offsets, lengths=lengths, libver=libver):
                    path = self.file(f"narrow{offsets}{lengths}{libver[0]}.h5")
                    fcpl = h5py.h5p.create(h5py.h5p.FILE_CREATE)
                    fcpl.set_sizes(offsets, lengths)
                    with create(path, fcpl, libver) as f:
                        add_datasets(f)
                    self.append_and_judge(path)

    def test_space_is_used_again(self):
        """Each commit moves the compressed last chunk; the file grows by what is in it."""
        path = self.file("again.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("d", (0,), "u1", maxshape=(None,), chunks=(100_000,), compression=1)
        content = numpy.random.default_rng(1).integers(0, 256, 90_000, "u1").tobytes()
        with Mount(path, options="rw") as m:
            with open(m.at("d"), "ab", buffering=0) as f:
                for at in range(0, len(content), 1000):
                    f.write(content[at:at + 1000])
                    os.fsync(f.fileno())
        self.assertLess(os.stat(path).st_size, 6 * len(content))
        with judges.File(path) as f:
            self.assertTrue(f["d"][()].tobytes() == content)

    def test_space_of_neighbours(self):
        """Chunks that lie side by side in the pages of a paged file are given up one by one, and together."""
        size, chunks = 256, 200
        random = numpy.random.default_rng(1)

        def draw(n):
            return random.integers(0, 1 << 31, n, "<i4")

        for paged in (dict(fs_strategy="page", fs_page_size=4096), {}):
            with self.subTest(**paged):
                path = self.file(f"neighbours{len(paged)}.h5")
                values = draw(size * chunks)
                with h5py.File(path, "w", libver="latest", **paged) as f:
                    # What LZF cannot make smaller fills the pages to their edges.
                    f.create_dataset("d", data=values, maxshape=(None,), chunks=(size,), compression="lzf")
                with Mount(path, options="rw") as m, open(m.at("d"), "r+b", buffering=0) as f:
                    for _ in range(40):
                        first, n = random.integers(0, chunks - 12), random.integers(1, 12)
                        new = draw(size * n)
                        values[first * size:(first + n) * size] = new
                        os.pwrite(f.fileno(), new.tobytes(), first * size * 4)
                        os.fsync(f.fileno())
                with judges.File(path) as f:
                    self.assertTrue((f["d"][()] == values).all())

    def test_what_a_commit_for_another_gives_up(self):
        """A shrinking dataset commits; what another one has given up, but not yet left, stays for a kill to fall back on."""
        path = self.file("others.h5")
        old = numpy.arange(3_000_000, dtype="<i4") // 50
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("one", data=old, chunks=old.shape, compression=1)
            f.create_dataset("edge", (0,), "<i4", maxshape=(None,), chunks=(1000,))
            f.create_dataset("shrinks", data=numpy.arange(100), maxshape=(None,), chunks=(7,))
        with Mount(path, options="rw") as m:
            files = {name: os.open(m.at(name), os.O_RDWR) for name in ("one", "edge", "shrinks")}
            os.pwrite(files["one"], b"\1\2\3\4", 0)
            for i in range(6):
                os.ftruncate(files["shrinks"], 8 * (90 - i))
                os.pwrite(files["edge"], numpy.full(100_000, i, "<i4").tobytes(), i * 400_000)
            m.kill()
            for fd in files.values():
                with contextlib.suppress(OSError):  # nobody is there
                    os.close(fd)
        with judges.File(path) as f:
            self.assertTrue((f["one"][1:] == old[1:]).all())

    def test_behind_the_end_of_a_killed_swmr_writer(self):
        path = self.file("swmr.h5")
        writer = """
import h5py, os, signal, sys
f = h5py.File(sys.argv[1], "w", libver="latest")
d = f.create_dataset("d", (0,), "<i4", maxshape=(None,), chunks=(100,))
f.create_dataset("e", (0,), "<i4", maxshape=(None,), chunks=(100,))
f.swmr_mode = True
for i in range(50):
    d.resize((i + 1) * 100, 0)
    d[i * 100:] = i + 1
    d.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""
        self.assertEqual(subprocess.run([sys.executable, "-c", writer, path]).returncode, -9)
        self.assertEqual(refusal(path, options="rw")[0], 9)
        with Mount(path, options="rw,force") as m:
            with open(m.at("e"), "ab") as f:
                f.write(numpy.full(3000, 77, "<i4").tobytes())
        judges.agree(path)
        with h5py.File(path, "r+") as f:
            self.assertTrue((f["d"][()] == numpy.repeat(numpy.arange(50) + 1, 100)).all())
            self.assertTrue((f["e"][()] == 77).all())

    def test_a_full_disk(self):
        image, folder = self.file("image"), self.file("fs")
        os.mkdir(folder)
        with open(image, "wb") as f:
            f.truncate(8 << 20)
        subprocess.run(["mkfs.ext4", "-q", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, folder], check=True)
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        path = os.path.join(folder, "full.h5")
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("d", (0, 4), "<i4", maxshape=(None, 4), chunks=(100, 4))
            f.create_dataset("z", (0, 4), "<i4", maxshape=(None, 4), chunks=(100, 4), compression=1)
        with open(os.path.join(folder, "ballast"), "wb") as f:
            f.write(bytes(2 << 20))
        counts = {}
        with Mount(path, options="rw") as m:
            for name in ("d", "z"):
                n, failed = 0, None
                while not failed:
                    try:
                        with open(m.at(name), "ab", buffering=0) as f:
                            while True:
                                n += f.write(rows(n, n + 2000).tobytes()) // 16
                                os.fsync(f.fileno())
                    except OSError as error:
                        failed = error
                self.assertEqual(failed.errno, errno.ENOSPC)
                copy = os.path.join(folder, "..", "copy.h5")  # as at the last commit
                shutil.copy(path, copy)
                with judges.File(copy) as f:
                    self.assertTrue(n - 2000 <= len(f[name]) <= n)
                    self.assertTrue((f[name][()] == rows(0, len(f[name]))).all())
                    counts[name] = len(f[name])
                self.assertEqual(os.stat(m.at(name)).st_size, 16 * counts[name])
            # When there is room, more goes there. What was refused is gone.
            os.remove(os.path.join(folder, "ballast"))
            for name, n in counts.items():
                with open(m.at(name), "ab", buffering=0) as f:
                    f.write(rows(n, n + 1000).tobytes())
                with open(m.at(name), "rb") as f:
                    self.assertTrue(f.read() == rows(0, n + 1000).tobytes(), name)
        with judges.File(path) as f:
            for name, n in counts.items():
                self.assertTrue((f[name][()] == rows(0, n + 1000)).all(), name)

    def test_a_truncated_file_is_not_written(self):
        path = self.file("cut.h5")
        with h5py.File(path, "w") as f:
            f["x"] = numpy.arange(1000)
        os.truncate(path, os.stat(path).st_size - 100)
        status, said = refusal(path, options="rw")
        self.assertEqual(status, 4)
        self.assertIn("truncated", said)

    def test_a_tail_that_nobody_knows(self):
        path = self.file("tail.h5")
        with h5py.File(path, "w", libver="latest") as f:
            add_datasets(f)
        with open(path, "ab") as f:
            f.write(b"x" * 10_000)
        self.append_and_judge(path)


if __name__ == "__main__":
    main()
