"""h5fs.stats: what a mount has done, as JSON, on its root."""
import errno
import json
import os
import time

import h5py
import numpy

from mountlib import Mount, MountCase, main

ROWS, COLUMNS = 64, 100


def statistics(m):
    return json.loads(os.getxattr(m.path, "h5fs.stats"))


class Statistics(MountCase):
    def make(self, rows=ROWS):
        path = os.path.join(self.folder, "x.h5")
        data = numpy.arange(rows * COLUMNS, dtype="<i4").reshape(rows, COLUMNS)
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("d", data=data, chunks=(16, COLUMNS), maxshape=(None, COLUMNS), compression="gzip")
            f["plain"] = data
            stored = f["d"].id.get_storage_size()
        return path, data, stored

    def test_reading(self):
        path, data, stored = self.make()
        with Mount(path, options="cache=1M,index_cache=2M") as m:
            before = statistics(m)
            self.assertEqual(before["served"], {"read": 0, "written": 0})
            self.assertEqual(before["decoded"], {"chunks": 0, "bytes": 0, "seconds": 0})
            with open(m.at("d"), "rb") as f:
                self.assertEqual(f.read(), data.tobytes())
            after = statistics(m)
        self.assertEqual(after["served"], {"read": data.nbytes, "written": 0})
        self.assertEqual((after["decoded"]["chunks"], after["decoded"]["bytes"]), (ROWS // 16, data.nbytes))
        self.assertGreater(after["decoded"]["seconds"], 0)
        self.assertGreaterEqual(after["file"]["bytes"], stored)
        self.assertGreaterEqual(after["file"]["reads"], ROWS // 16)
        self.assertEqual((after["chunk_cache"]["limit"], after["index_cache"]["limit"]), (1 << 20, 2 << 20))
        self.assertEqual(after["chunk_cache"]["misses"], ROWS // 16)
        self.assertGreater(after["index_cache"]["hits"], before["index_cache"]["hits"])
        self.assertEqual((after["encoded"]["chunks"], after["commits"]), (0, 0))

    def test_writing(self):
        path, data, _ = self.make()
        with Mount(path, options="rw") as m:
            with open(m.at("d"), "ab") as f:
                f.write(data.tobytes())
            after = statistics(m)
        self.assertEqual(after["served"]["written"], data.nbytes)
        self.assertEqual((after["encoded"]["chunks"], after["encoded"]["bytes"]), (ROWS // 16, data.nbytes))
        self.assertEqual(after["commits"], 1)

    def test_rows_that_are_dropped(self):
        path, _, _ = self.make()
        with Mount(path, "-f", options="rw") as m:
            self.assertEqual(statistics(m)["dropped"], {"incomplete_rows": 0, "refused_changes": 0})
            for _ in range(3):
                fd = os.open(m.at("d"), os.O_WRONLY | os.O_APPEND)
                os.write(fd, b"part")
                self.assertErrno(errno.EINVAL, os.close, fd)
            end = time.monotonic() + 30
            while statistics(m)["dropped"]["incomplete_rows"] < 3 and time.monotonic() < end:
                time.sleep(.01)  # the kernel releases a file after close has returned
            self.assertEqual(statistics(m)["dropped"], {"incomplete_rows": 3, "refused_changes": 0})
            self.assertRegex(m.said(), f"{path}: /d, address [0-9]+: an incomplete row was dropped: 4 of {4 * COLUMNS} bytes")

    def test_only_the_root_has_them(self):
        path, _, _ = self.make()
        with Mount(path) as m:
            self.assertErrno(errno.ENODATA, os.getxattr, m.at("d"), "h5fs.stats")
            self.assertNotIn("h5fs.stats", os.listxattr(m.path))
            self.assertNotIn("stats", json.loads(os.getxattr(m.path, "h5fs.info")))


if __name__ == "__main__":
    main()
