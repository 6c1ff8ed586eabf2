#!/usr/bin/python3
"""What listing and stat may cost: they touch neither elements nor chunk indexes that they do not need."""
import errno
import os
import signal
import struct
import subprocess
import threading

import h5py
import numpy

from mountlib import Mount, MountCase, main, read, write

DATASETS, ELEMENTS = 1000, 1000
ELEMENT_BYTES = 16  # of a variable-length string in its dataset: length, heap collection, index


def bytes_read(pid):
    """Bytes that all read calls of a process have returned."""
    with open(f"/proc/{pid}/io") as f:
        return int(f.readline().split()[1])


def create_endless(f, name):
    """2^36 references that are stored, so that they have to be looked at one by one, though they take no space on the disk."""
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    creation.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    h5py.h5d.create(f.id, name.encode(), h5py.h5t.STD_REF_OBJ, h5py.h5s.create_simple((1 << 36,)), creation)


class Lazy(MountCase):
    def test_listing_reads_no_text(self):
        path = self.file("text.h5")
        with h5py.File(path, "w") as f:
            values = numpy.array([b"x"] * ELEMENTS, dtype=object)
            for i in range(DATASETS):
                f.create_dataset(f"text {i:04}", data=values, dtype=h5py.string_dtype())
        with Mount(path) as m:
            begin = bytes_read(m.daemon)
            said = subprocess.run(["ls", m.path], capture_output=True, text=True, check=True).stdout
            entries = {entry.name: entry.is_file(follow_symlinks=False) for entry in os.scandir(m.path)}
            listed = bytes_read(m.daemon) - begin
            self.assertEqual(said.splitlines(), [f"text {i:04}" for i in range(DATASETS)])
            self.assertEqual(entries, {f"text {i:04}": True for i in range(DATASETS)})
            elements = DATASETS * ELEMENTS * ELEMENT_BYTES
            self.assertLess(listed, elements / 4)
            # That this measures something: sizes need the length of each element.
            for name in entries:
                self.assertEqual(os.stat(m.at(name)).st_size, 2 * ELEMENTS)
            self.assertGreater(bytes_read(m.daemon) - begin, elements)

    def test_files_are_not_opened(self):
        """If nobody changes the file, the kernel reads without opening: one question for each kind of request, and then none."""
        path, count = self.file("small.h5"), 20
        with h5py.File(path, "w") as f:
            for i in range(count):
                f[f"d{i}"] = numpy.arange(i, i + 20)
            f.create_dataset("text", data=["a", "bc"], dtype=h5py.string_dtype())
            f.create_dataset("empty", (0,), "<i4")

        def asked(m, what):
            return m.said().count(f"opcode: {what} ")

        for options, most in ("", 1), ("rw", None), ("locking=no", None):
            with self.subTest(options=options), Mount(path, "-f", "-d", options=options) as m:
                for i in range(count):
                    self.assertEqual(read(m.at(f"d{i}")), numpy.arange(i, i + 20).tobytes())
                self.assertEqual(read(m.at("text")), b"a\nbc\n")
                self.assertEqual(read(m.at("empty")), b"")
                fd = m.open("d3", os.O_RDONLY)
                os.fsync(fd)
                self.assertEqual(os.lseek(fd, 0, os.SEEK_HOLE), 160)
                self.assertEqual(os.pread(fd, 16, 152), (22).to_bytes(8, "little"))
                for _ in range(3):
                    self.assertEqual(sorted(os.listdir(m.path)), sorted(["text", "empty", *(f"d{i}" for i in range(count))]))
                for what in "OPEN", "FLUSH", "RELEASE", "OPENDIR", "RELEASEDIR":
                    if most is not None:
                        self.assertLessEqual(asked(m, what), most, what)
                if most is None:
                    self.assertEqual(asked(m, "OPEN"), count + 3)
                    self.assertEqual(asked(m, "OPENDIR"), 3)
                reads = asked(m, "READ")
                self.assertEqual(read(m.at("d3")), numpy.arange(3, 23).tobytes())
                self.assertEqual(asked(m, "READ") > reads, most is None)

    def test_a_text_is_measured_once(self):
        """Even where the index into it is not kept: here nothing is, neither by the kernel nor by the cache."""
        path = self.file("text.h5")
        with h5py.File(path, "w") as f:
            f.create_dataset("d", data=numpy.array([b"x"] * ELEMENTS, dtype=object), dtype=h5py.string_dtype())
            f.create_dataset("none", (0,), dtype=h5py.string_dtype())
        os.utime(path, (1, 1))  # a file that was just written may change once more in the same tick
        with Mount(path, options="index_cache=0,locking=no") as m:
            def cost(name, size):
                begin = bytes_read(m.daemon)
                self.assertEqual(os.stat(m.at(name)).st_size, size)
                return bytes_read(m.daemon) - begin

            first = cost("d", 2 * ELEMENTS)
            self.assertGreater(first, ELEMENTS * ELEMENT_BYTES)
            # Or the kernel may forget the file when memory is short, and the daemon with it.
            kept = os.open(m.at("d"), os.O_PATH)
            try:
                for _ in range(3):
                    cost("none", 0)
                    self.assertLess(cost("d", 2 * ELEMENTS), first - ELEMENTS * ELEMENT_BYTES / 2)
            finally:
                os.close(kept)

    def test_stat_of_raw_data_walks_no_index(self):
        """Each chunk index is damaged: only what uses it fails."""
        path = self.file("raw.h5")
        with h5py.File(path, "w") as f:
            f.create_dataset("d", data=numpy.arange(1000, dtype="<i4"), chunks=(10,))
            f["d"].attrs["a"] = 5
        content = read(path)
        self.assertGreater(content.count(b"TREE\x01"), 0)
        write(path, content.replace(b"TREE\x01", b"EERT\x01"))
        with Mount(path) as m:
            st = os.stat(m.at("d"))
            self.assertEqual(st.st_size, 4000)
            self.assertGreater(st.st_blocks, 0)
            self.assertEqual(os.getxattr(m.at("d"), "user.a"), b"5")
            self.assertEqual(os.getxattr(m.at("d"), "h5fs.shape"), b"1000")
            self.assertIn(b'"chunks"', os.getxattr(m.at("d"), "h5fs.info"))
            with open(m.at("d"), "rb", buffering=0) as f:
                self.assertErrno(errno.EUCLEAN, f.read, 10)
            self.assertErrno(errno.EUCLEAN, os.getxattr, m.at("d"), "h5fs.storage")

    def test_a_small_read_of_many_chunks_reads_little(self):
        """Ten million chunks are declared and a thousand there: an element needs its path in the index."""
        path = self.file("many.h5")
        with h5py.File(path, "w", libver="latest") as f:
            d = f.create_dataset("d", (10_000_000,), "<i4", chunks=(1,), maxshape=(None,), fillvalue=3)
            d[9_999_000:] = numpy.arange(1000)
            d[0] = 42
        with Mount(path) as m, open(m.at("d"), "rb", buffering=0) as f:
            begin = bytes_read(m.daemon)
            self.assertEqual(struct.unpack("<i", os.pread(f.fileno(), 4, 4 * 9_999_500)), (500,))
            self.assertLess(bytes_read(m.daemon) - begin, 4 << 20)
            self.assertEqual(struct.unpack("<3i", os.pread(f.fileno(), 12, 0)), (42, 3, 3))

    def test_work_that_nobody_waits_for_ends(self):
        """The text of 2^36 references would take an hour to measure."""
        path = self.file("endless.h5")
        with h5py.File(path, "w", libver="latest") as f:
            create_endless(f, "d")
            f["e"] = 1
        with Mount(path, options="max_work=0") as m:
            self.assertEqual({entry.name: entry.is_file() for entry in os.scandir(m.path)}, {"d": True, "e": True})
            # More of them than libfuse has threads by default: one must stay to hear of the interrupts.
            waiting = [subprocess.Popen(["stat", m.at("d")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(12)]
            for i, process in enumerate(waiting):
                with self.assertRaises(subprocess.TimeoutExpired):
                    process.wait(0.2 if i else 2)
                process.send_signal(signal.SIGINT)
            for process in waiting:
                self.assertEqual(process.wait(20), -signal.SIGINT)
            self.assertEqual(os.stat(m.at("e")).st_size, 8)

    def test_unmounting_waits_for_no_work(self):
        path = self.file("endless.h5")
        with h5py.File(path, "w", libver="latest") as f:
            create_endless(f, "d")
        with Mount(path, options="max_work=0") as m:
            waiting = subprocess.Popen(["stat", m.at("d")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with self.assertRaises(subprocess.TimeoutExpired):
                waiting.wait(2)
            os.kill(m.daemon, signal.SIGTERM)
            self.assertEqual(m.wait(), 0)
            self.assertEqual(waiting.wait(20), 1)


    def test_a_write_that_waits_keeps_nobody_unheard(self):
        """Small writes are served by the thread that hears of requests: not while another request holds them up."""
        path = self.file("waits.h5")
        with h5py.File(path, "w", libver="latest") as f:
            create_endless(f, "d")
            f.create_dataset("n", (0,), "u1", maxshape=(None,), chunks=(100,))
        with Mount(path, options="rw,max_work=0") as m:
            fd = m.open("n", os.O_WRONLY)
            os.write(fd, b"1")
            stat = subprocess.Popen(["stat", m.at("d")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with self.assertRaises(subprocess.TimeoutExpired):
                stat.wait(1)
            writer = threading.Thread(target=os.write, args=(fd, b"2"))
            writer.start()
            with self.assertRaises(subprocess.TimeoutExpired):
                stat.wait(1)
            stat.send_signal(signal.SIGINT)
            self.assertEqual(stat.wait(30), -signal.SIGINT)
            writer.join(30)
            self.assertFalse(writer.is_alive())
            os.close(fd)
            self.assertEqual(read(m.at("n")), b"12")


if __name__ == "__main__":
    main()
