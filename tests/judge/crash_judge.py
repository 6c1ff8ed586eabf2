"""crash_judge.py: libhdf5's view of files that tests/unit/crash_replay.c makes up.

Commands come on standard input, numbers little-endian:

    W  u32 datasets, u32 length, name of the workload
    D  u32 columns, u32 row that is looked at first, u32 length, name of the next dataset
    S  u32 dataset, u32 state, u8 overwritten, u64 rows, values from the first row on: what the dataset is from this state on
    B  u64 size, u32 pieces, pieces of u64 offset, u32 length, bytes: changes of the image since the last time
    C  u32 first, u32 last, u32 length, label: each dataset must be in one of these states
    F  u8 kind, u32 first, u32 last, u32 length, path: writes the image there and lets libhdf5 change it, in rows that all of
       these states have; answers a line, ok or why not
    V  u32 length, label: what libhdf5 had changed must be in the image

An image that is wrong is told on standard error, and written to $H5FS_CRASH_IMAGE; the exit status says if there was one."""
import bisect
import os
import struct
import sys

import h5py
import numpy as np

WORD = np.dtype("<u4")
COMPLAINTS_MAX = 20
stdin = sys.stdin.buffer
complaints = checks = 0


def take(format):
    return struct.unpack(format, stdin.read(struct.calcsize(format)))


def text():
    return stdin.read(take("<I")[0]).decode()


class Dataset:
    def __init__(self, name, columns, first):
        self.name, self.columns, self.first = name.encode(), columns, first
        self.numbers, self.contents, self.overwritten = [], [], []

    def add(self, state, overwritten, content):
        self.numbers.append(state)
        self.contents.append(content)
        self.overwritten.append(overwritten)

    def between(self, first, last):
        """Indexes of the contents that it may have in these states."""
        return range(bisect.bisect_right(self.numbers, first) - 1, bisect.bisect_right(self.numbers, last))

    def problem(self, found, first, last):
        """None if what was found is one of the states; overwritten bytes may be of any of them."""
        allowed = self.between(first, last)
        if any(self.contents[i] == found for i in reversed(allowed)):
            return None
        sizes = {len(self.contents[i]) for i in allowed}
        row = 4 * self.columns
        if len(found) not in sizes:
            return f"{self.first + len(found) // row} rows, not {sorted(self.first + size // row for size in sizes)}"
        found = np.frombuffer(found, "u1")
        good = np.zeros(len(found), bool)
        for i in allowed:
            content = np.frombuffer(self.contents[i], "u1")
            n = min(len(content), len(found))
            good[:n] |= content[:n] == found[:n]
        if good.all() and any(self.overwritten[i] for i in allowed[1:]):
            return None
        bad = np.flatnonzero(~good)
        if not len(bad):
            return "rows of several states"
        at = bad[0] // 4
        return f"row {self.first + at // self.columns} of {self.first + len(found) // row}: {found.view(WORD)[at]:#x}, {len(bad)} bytes are wrong"


def read(file, dataset):
    d = h5py.h5d.open(file, dataset.name)
    count, columns = d.shape[0] - dataset.first, d.shape[1]
    values = np.empty((max(count, 0), columns), WORD)
    if values.size:
        space = d.get_space()
        if dataset.first:
            space.select_hyperslab((dataset.first, 0), values.shape)
        d.read(h5py.h5s.create_simple(values.shape), space, values, d.get_type())
    return values


def complain(label, what):
    global complaints
    complaints += 1
    if complaints == 1 and "H5FS_CRASH_IMAGE" in os.environ:
        with open(os.environ["H5FS_CRASH_IMAGE"], "wb") as f:
            f.write(image)
    if complaints <= COMPLAINTS_MAX:
        print(f"libhdf5 {h5py.version.hdf5_version}: {workload}: {label}: {what}", file=sys.stderr, flush=True)


def is_unreadable():
    """The superblock extension leads to a metadata cache image: libhdf5 2.2 as Debian builds it ends with a failed assertion then."""
    extension, = struct.unpack_from("<Q", image, 20)
    return workload.startswith("image") and h5py.version.hdf5_version_tuple >= (2,) and b"\x18\x11\0" in image[extension:extension + 64]


def check(label, first, last):
    name = b""
    if is_unreadable():
        return
    try:
        file = h5py.h5f.open_file_image(bytes(image))
        for d in datasets:
            name = d.name
            what = d.problem(read(file, d).tobytes(), first, last)
            if what:
                complain(label, f"{name.decode()}: {what}")
        file.close()
    except Exception as e:
        complain(label, f"{name.decode()}: {type(e).__name__}: {e}")


def change(kind, first, last, path):
    """'o' overwrites a row in the middle of each dataset, 'a' appends more rows than it ever had, 'n' only opens for writing.
    Returns what must be there then."""
    with open(path, "wb") as f:
        f.write(image)
    with h5py.File(path, "r+") as f:
        changed = []
        for d in datasets:
            h = f[d.name]
            rows = min(len(d.contents[i]) for i in d.between(first, last)) // 4 // d.columns
            if kind == "o" and rows:
                at, row = d.first + rows // 2, np.full(d.columns, 0xABCDEF01, WORD)
                h[at] = row
                changed.append((d, at, row))
            elif kind == "a" and h.maxshape[0] is None:
                at, row = d.first + max(map(len, d.contents)) // 4 // d.columns, np.full(d.columns, 0x12345678, WORD)
                h.resize(at + 1, 0)
                h[at] = row
                changed.append((d, at, row))
        return changed


def verify(label):
    try:
        file = h5py.h5f.open_file_image(bytes(image))
        for d, at, row in changed:
            values = read(file, d)
            if at - d.first >= len(values) or (values[at - d.first] != row).any():
                complain(label, f"{d.name.decode()}: row {at}, which libhdf5 wrote, was thrown away")
        file.close()
    except Exception as e:
        complain(label, f"{type(e).__name__}: {e}")


workload, image, datasets, changed = "", bytearray(), [], []
while command := stdin.read(1):
    if command == b"W":
        workload, image, datasets = text(), bytearray(), []
    elif command == b"D":
        columns, first = take("<II")
        datasets.append(Dataset(text(), columns, first))
    elif command == b"S":
        number, state, overwritten, rows = take("<IIBQ")
        datasets[number].add(state, overwritten, stdin.read(4 * (rows - datasets[number].first) * datasets[number].columns))
    elif command == b"B":
        size, pieces = take("<QI")
        del image[size:]
        image.extend(bytes(size - len(image)))
        for _ in range(pieces):
            offset, n = take("<QI")
            image[offset:offset + n] = stdin.read(n)
    elif command == b"C":
        first, last = take("<II")
        check(text(), first, last)
        checks += 1
    elif command == b"F":
        kind, first, last = take("<cII")
        path = text()
        try:
            changed, answer = change(kind.decode(), first, last, path), "ok"
        except Exception as e:
            changed, answer = [], str(e).replace("\n", " ") or "?"
        print(answer, flush=True)
    elif command == b"V":
        verify(text())
        checks += 1
    else:
        sys.exit(f"no such command: {command}")
print(f"libhdf5 {h5py.version.hdf5_version}: {checks} files looked at, {complaints} wrong", file=sys.stderr)
sys.exit(bool(complaints))
