#!/usr/bin/python3
"""Compares the chunk indexes of two datasets, byte by byte but for addresses.

    index_structure.py [--chunks | --values] FILE DATASET FILE DATASET

Prints the differences, and what is wrong in either index by itself: checksums, signatures, owners, siblings, blocks that
overlap each other or reach beyond the end of the file. Exit status 1 where there is anything to print. With --chunks
only the chunks are compared, not the blocks that list them: for trees, which may take several forms. With --values
the values are compared instead, as libhdf5 reads them; of many, which take it long, those in some windows."""
import ctypes
import itertools
import os
import sys
import zlib

import h5py
import numpy as np

for folder in "lib", "fixtures":
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", folder))
import mountlib  # noqa: E402
from libhdf5 import hdf5  # noqa: E402

UNDEF = -1
WINDOW = 700  # chunks
PIECE = 100  # rows of chunks that are read at once: more of them take libhdf5 longer each
CONTINUATION, DATASPACE, LAYOUT, PIPELINE = 0x10, 1, 8, 11


def lookup3(data):
    """By libhdf5, if it tells its function: it is a hundred times as fast."""
    try:
        function = hdf5.H5_checksum_lookup3
    except AttributeError:
        return mountlib.lookup3(data)
    function.restype = ctypes.c_uint32
    return function(data, ctypes.c_size_t(len(data)), ctypes.c_uint32(0))


def numbers(raw):
    """Of each row of bytes the number."""
    wide = np.zeros((len(raw), 8), "u1")
    wide[:, :raw.shape[1]] = raw
    return wide.view("<u8")[:, 0]


def limit_size(limit):
    """Bytes that hold a number up to the limit."""
    return max(1, (limit.bit_length() + 7) // 8)


class Reader:
    """Fields of a block, one after the other."""

    def __init__(self, index, what, at, size):
        self.index, self.what, self.begin, self.at, self.end = index, what, at, at, at + size
        if at < 0 or at + size > index.end:
            raise ValueError(f"{what} at {at}: {size} bytes reach beyond the end of the file, {index.end}")

    def bytes(self, n):
        self.at += n
        if self.at > self.end:
            raise ValueError(f"{self.what} at {self.begin}: truncated")
        return self.index.data[self.at - n:self.at]

    def number(self, n):
        return int.from_bytes(self.bytes(n), "little")

    def length(self):
        return self.number(self.index.lengths)

    def offset(self):
        raw = self.bytes(self.index.offsets)
        return UNDEF if raw == b"\xff" * len(raw) else int.from_bytes(raw, "little")

    def signature(self, text, version=0):
        found = self.bytes(4)
        if found != text:
            raise ValueError(f"{self.what} at {self.begin}: signature {found}")
        if version is not None and self.number(1) != version:
            raise ValueError(f"{self.what} at {self.begin}: version")

    def checksum(self):
        data = self.index.data[self.begin:self.at]
        if self.number(4) != lookup3(data):
            self.index.problem(f"{self.what} at {self.begin}: checksum")


class Index:
    """The chunk index of a dataset: `lines` says what it consists of, `chunks` lists offset (or number), size and filter
    mask, `problems` what is wrong. `blocks` has begin, end and name of what is stored, `runs` addresses and sizes of chunks."""

    def __init__(self, path, name):
        self.lines, self.chunks, self.problems, self.blocks, self.runs = [], [], [], [], []
        with open(path, "rb") as f:
            self.data = f.read()
        with h5py.File(path, "r") as f:
            at = h5py.h5o.get_info(f[name].id).addr
            self.chunk_bytes = f[name].dtype.itemsize
            for n in f[name].chunks:
                self.chunk_bytes *= n
        self.superblock()
        messages = dict(reversed(list(self.messages(at))))
        self.filtered = PIPELINE in messages
        self.dataspace(messages[DATASPACE])
        self.layout(messages[LAYOUT])
        self.overlaps()

    def problem(self, text):
        self.problems.append(text)

    def line(self, *words):
        self.lines.append(" ".join(map(str, words)))

    def block(self, what, at, size):
        """A reader of a block that is there once."""
        self.blocks.append((at, at + size, what))
        return Reader(self, what, at, size)

    def overlaps(self):
        names = [what for _, _, what in self.blocks]
        begins = np.concatenate([np.array([b[0] for b in self.blocks], "u8"), *(run[0] for run in self.runs)])
        ends = np.concatenate([np.array([b[1] for b in self.blocks], "u8"), *(run[0] + run[1] for run in self.runs)])
        order = np.argsort(begins, kind="stable")
        for i in np.flatnonzero(ends[order[:-1]] > begins[order[1:]])[:9]:
            a, b = order[i], order[i + 1]
            what = [names[k] if k < len(names) else "chunk" for k in (a, b)]
            self.problem(f"{what[0]} at {begins[a]} to {ends[a]} overlaps {what[1]} at {begins[b]} to {ends[b]}")

    # ---- down to the index ----

    def superblock(self):
        for base in itertools.chain([0], (512 << i for i in range(30))):
            if self.data[base:base + 8] == b"\x89HDF\r\n\x1a\n":
                break
        self.data = self.data[base:]
        if self.data[8] < 2:
            self.offsets, self.lengths = self.data[13], self.data[14]
            at = 24 + (4 if self.data[8] else 0)
            end = self.data[at + 2 * self.offsets:at + 3 * self.offsets]
        else:
            self.offsets, self.lengths = self.data[9], self.data[10]
            end = self.data[12 + 2 * self.offsets:12 + 3 * self.offsets]
        self.end = int.from_bytes(end, "little") - base
        if self.end > len(self.data):
            self.problem(f"the file has {len(self.data)} bytes, the superblock says {self.end}")

    def messages(self, at):
        """Type and body."""
        data, number = self.data, lambda at, n: int.from_bytes(self.data[at:at + n], "little")
        new = data[at:at + 4] == b"OHDR"
        if new:
            flags = data[at + 5]
            start = at + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
            width = 1 << (flags & 3)
            parts = [(start + width, start + width + number(start, width))]
        else:
            parts = [(at + 16, at + 16 + number(at + 8, 4))]
        for p, end in parts:
            while p + (4 if new else 8) <= end:
                kind, size = (data[p], number(p + 1, 2)) if new else (number(p, 2), number(p + 2, 2))
                body = p + (4 + (2 if flags & 4 else 0) if new else 8)
                if kind == CONTINUATION:
                    start, length = number(body, self.offsets), number(body + self.offsets, self.lengths)
                    parts.append((start + 4, start + length - 4) if new else (start, start + length))
                yield kind, data[body:body + size]
                p = body + size

    def dataspace(self, body):
        rank = body[1]
        at = 8 if body[0] == 1 else 4
        fields = [body[at + i * self.lengths:at + (i + 1) * self.lengths] for i in range(2 * rank)]
        self.dims = [int.from_bytes(f, "little") for f in fields[:rank]]
        self.rank = rank
        self.line("dimensions", *self.dims, "at most", *(f.hex() for f in fields[rank:] if body[2] & 1))

    def layout(self, body):
        o = self.offsets
        if body[0] == 3:
            self.width = 4
            address = body[3:3 + o]
            self.line("layout", body[:3].hex(), body[3 + o:].hex())
            walk = self.btree1
        else:
            dims_end = 5 + body[3] * body[4]
            kind, rest = body[dims_end], body[dims_end + 1:]
            self.width = self.lengths if body[0] > 4 else min(8, limit_size(self.chunk_bytes) + 1)
            n = {1: self.lengths + 4 if body[2] & 2 else 0, 2: 0, 3: 1, 4: 5, 5: 6}[kind]
            self.line("layout", body[:dims_end + 1].hex(), "" if kind == 1 else rest[:n].hex())
            address = rest[n:n + o]
            walk = {1: self.single, 2: self.implicit, 3: self.fixed_array, 4: self.extensible_array,
                    5: self.btree2}[kind]
            self.parameters = rest[:n]
        if address == b"\xff" * o:
            self.line("no index")
        else:
            walk(int.from_bytes(address, "little"))

    # ---- chunks ----

    def chunk(self, where, address, size, mask):
        self.chunks.append(f"chunk {where}: {size} bytes, mask {mask}")
        self.blocks.append((address, address + size, "chunk"))
        if address + size > self.end:
            self.problem(f"chunk {where} at {address} reaches beyond the end of the file")

    def element(self, r, size):
        """Address, size and filter mask."""
        address = r.offset()
        if not self.filtered:
            return address, self.chunk_bytes, 0
        return address, r.number(size - self.offsets - 4), r.number(4)

    def elements(self, r, size, first, n):
        """n of them; runs of equal ones take one line."""
        raw = np.frombuffer(r.bytes(n * size), "u1").reshape(n, size)
        addresses = numbers(raw[:, :self.offsets])
        unset = (raw[:, :self.offsets] == 0xff).all(axis=1)
        sizes, masks = np.full(n, self.chunk_bytes, "u8"), np.zeros(n, "u8")
        if self.filtered:
            sizes, masks = numbers(raw[:, self.offsets:size - 4]), numbers(raw[:, size - 4:])
        facts = np.stack([unset, sizes, masks])
        begins = np.flatnonzero(np.concatenate([[n > 0], (facts[:, 1:] != facts[:, :-1]).any(axis=0)]))
        for begin, end in zip(begins, [*begins[1:], n]):
            line = ("elements", first + begin, end - begin, "unset" if unset[begin] else "set", sizes[begin], masks[begin])
            self.line(*line)
            if not unset[begin]:
                self.chunks.append(" ".join(map(str, line)))
        stored = ~unset
        self.stored(first + np.flatnonzero(stored), addresses[stored], sizes[stored])

    def stored(self, numbers, addresses, sizes):
        """Chunks of these numbers, addresses and sizes."""
        self.runs.append((addresses, sizes))
        for i in np.flatnonzero(addresses + sizes > self.end)[:9]:
            self.problem(f"chunk {numbers[i]} at {addresses[i]} reaches beyond the end of the file")
        if (sizes == 1).all():
            inside = np.minimum(addresses, len(self.data) - 1).astype(int)
            self.line("values", zlib.crc32(np.frombuffer(self.data, "u1")[inside].tobytes()))

    def single(self, address):
        size, mask = self.chunk_bytes, 0
        if self.parameters:
            size = int.from_bytes(self.parameters[:self.lengths], "little")
            mask = int.from_bytes(self.parameters[self.lengths:], "little")
        self.chunk(0, address, size, mask)

    def implicit(self, address):
        self.chunk(0, address, self.chunk_bytes, 0)

    # ---- arrays ----

    def owner(self, r, client, header):
        if r.number(1) != client or r.offset() != header:
            self.problem(f"{r.what} at {r.begin}: it belongs to another header")

    @staticmethod
    def has_page(bitmap, page):
        return bitmap[page // 8] >> 7 - page % 8 & 1

    def page(self, at, size, first, n):
        r = Reader(self, "page", at, n * size + 4)
        self.elements(r, size, first, n)
        r.checksum()

    def fixed_array(self, address):
        r = self.block("fixed array header", address, 8 + self.lengths + self.offsets + 4)
        r.signature(b"FAHD")
        client, size, bits, total = r.number(1), r.number(1), r.number(1), r.length()
        data = r.offset()
        r.checksum()
        self.line(r.what, client, size, bits, total)
        if data == UNDEF:
            self.line("no data block")
            return
        each = 1 << bits
        pages = -(-total // each) if total > each else 0
        head = 6 + self.offsets + -(-pages // 8) + (4 if pages else 0)
        r = self.block("fixed array data block", data, head + total * size + 4 * (pages or 1))
        r.signature(b"FADB")
        self.owner(r, client, address)
        self.line(r.what)
        if not pages:
            self.elements(r, size, 0, total)
            r.checksum()
            return
        bitmap = r.bytes(-(-pages // 8))
        r.checksum()
        self.line("pages", bitmap.hex())
        for p in range(pages):
            if self.has_page(bitmap, p):
                self.page(data + head + p * (each * size + 4), size, p * each, min(each, total - p * each))

    def extensible_array(self, address):
        r = self.block("extensible array header", address, 12 + 6 * self.lengths + self.offsets + 4)
        r.signature(b"EAHD")
        client, size, bits, direct, least, pointers, page_bits = r.bytes(7)
        names = "super blocks", "bytes", "data blocks", "bytes", "max index set", "elements"
        self.line(r.what, client, size, bits, direct, least, pointers, page_bits)
        for name in names:
            self.line(name, r.length())
        root = r.offset()
        r.checksum()
        if root == UNDEF:
            self.line("no index block")
            return
        width, log = -(-bits // 8), (least.bit_length() - 1, pointers.bit_length() - 1)
        total, below = 1 + bits - log[0], 2 * log[1]
        addresses = 2 * (pointers - 1) + total - below
        r = self.block("index block", root, 6 + self.offsets + direct * size + addresses * self.offsets + 4)
        r.signature(b"EAIB")
        self.owner(r, client, address)
        self.line(r.what)
        self.elements(r, size, 0, direct)
        data = [r.offset() for _ in range(2 * (pointers - 1))]
        supers = [r.offset() for _ in range(total - below)]
        r.checksum()
        first = direct
        for s in range(total):
            blocks, each = 1 << s // 2, least << (s + 1) // 2
            pages = each >> page_bits if each > 1 << page_bits else 0
            bitmap = b""
            if s < below:
                here, data = data[:blocks], data[blocks:]
            elif supers[s - below] == UNDEF:
                first += blocks * each
                continue
            else:
                bits_size = blocks * -(-pages // 8)
                r = self.block("super block", supers[s - below],
                               6 + self.offsets + width + bits_size + blocks * self.offsets + 4)
                r.signature(b"EASB")
                self.owner(r, client, address)
                self.line(r.what, s, "offset", r.number(width))
                bitmap = r.bytes(bits_size)
                self.line("pages", bitmap.hex())
                here = [r.offset() for _ in range(blocks)]
                r.checksum()
            for i, at in enumerate(here):
                if at != UNDEF:
                    self.data_block(address, client, at, (s, i), width, size, first, each, pages, bitmap)
                first += each

    def data_block(self, header, client, at, number, width, size, first, each, pages, bitmap):
        head = 6 + self.offsets + width + (4 if pages else 0)
        r = self.block("data block", at, head + each * size + 4 * (pages or 1))
        r.signature(b"EADB")
        self.owner(r, client, header)
        self.line(r.what, *number, "offset", r.number(width))
        if not pages:
            self.elements(r, size, first, each)
            r.checksum()
            return
        r.checksum()
        n = each // pages
        for p in range(pages):
            if self.has_page(bitmap, number[1] * pages + p):
                self.page(at + head + p * (n * size + 4), size, first + p * n, n)

    # ---- trees ----

    def btree2(self, address):
        r = self.block("B-tree header", address, 22 + self.offsets + self.lengths)
        r.signature(b"BTHD")
        kind, node, record, depth = r.number(1), r.number(4), r.number(2), r.number(2)
        split, merge, root, records, total = r.number(1), r.number(1), r.offset(), r.number(2), r.length()
        r.checksum()
        self.line(r.what, kind, node, record, "depth", depth, split, merge, "root", records, "total", total)
        most, every, widths = [(node - 10) // record], [(node - 10) // record], [0]
        for _ in range(depth):
            pointer = self.offsets + limit_size(most[0]) + widths[-1]
            most.append((node - 10 - pointer) // (record + pointer))
            every.append(most[-1] + (most[-1] + 1) * every[-1])
            widths.append(limit_size(every[-1]))
        # the total of a leaf's parent is the leaf's own count, which stands there anyway
        self.tree2 = kind, node, record, limit_size(most[0]), widths
        self.last = None
        if root != UNDEF and self.node2(root, depth, records) != total:
            self.problem(f"B-tree header at {address}: it has another number of records")

    def node2(self, at, level, records):
        """Number of records below."""
        kind, size, record, count_size, widths = self.tree2
        r = self.block("inner node" if level else "leaf", at, size)
        r.signature(b"BTIN" if level else b"BTLF")
        if r.number(1) != kind:
            self.problem(f"{r.what} at {at}: type")
        self.line(r.what, "level", level, "records", records)
        found = [r.bytes(record) for _ in range(records)]
        children = [(r.offset(), r.number(count_size), r.number(widths[level - 1]) if level > 1 else None)
                    for _ in range(records + 1 if level else 0)]
        r.checksum()
        n = records
        for i in range(records + 1):
            if level:
                child, count, total = children[i]
                below = self.node2(child, level - 1, count)
                if total not in (None, below):
                    self.problem(f"{r.what} at {at}: child {i} has {below} records, not {total}")
                n += below
            if i < records:
                self.record2(found[i])
        return n

    def record2(self, record):
        r = Reader(self, "record", 0, 0)
        r.index, r.end = self.fake(record), len(record)
        address, size, mask = self.element(r, len(record) - 8 * self.rank)
        scaled = tuple(r.number(8) for _ in range(self.rank))
        if self.last is not None and scaled <= self.last:
            self.problem(f"records out of order: {self.last}, {scaled}")
        self.last = scaled
        self.line("record", scaled, size, mask)
        self.chunk(scaled, address, size, mask)

    def fake(self, data):
        """An index of which nothing but the bytes is looked at."""
        other = object.__new__(Index)
        other.data, other.offsets, other.lengths, other.end = data, self.offsets, self.lengths, len(data)
        return other

    def btree1(self, address):
        # The superblock's rank of nodes (version 1), else 32.
        self.k = int.from_bytes(self.data[24:26], "little") if self.data[8] == 1 else 32
        self.level_last, self.last = {}, None
        self.node1(address, None)
        for level, (at, right) in self.level_last.items():
            if right != UNDEF:
                self.problem(f"node at {at}, level {level}: it is the last one and has a right sibling")

    def node1(self, at, level):
        """First and last key of the node."""
        key = 8 + 8 * (self.rank + 1)
        r = self.block("B-tree node", at, 8 + 2 * self.offsets + 2 * self.k * (key + self.offsets) + key)
        r.signature(b"TREE", None)
        kind, found, entries = r.number(1), r.number(1), r.number(2)
        left, right = r.offset(), r.offset()
        if kind != 1 or (level is not None and found != level):
            self.problem(f"B-tree node at {at}: type {kind}, level {found}")
        self.line(r.what, "level", found, "entries", entries)
        before, linked = self.level_last.get(found, (UNDEF, at))
        if left != before or linked != at:
            self.problem(f"B-tree node at {at}: siblings")
        self.level_last[found] = at, right
        keys, children = [self.key1(r)], []
        for _ in range(entries):
            children.append(r.offset())
            keys.append(self.key1(r))
        for i, child in enumerate(children):
            size, mask, offsets = keys[i]
            if not found:
                if self.last is not None and offsets <= self.last:
                    self.problem(f"chunks out of order: {self.last}, {offsets}")
                self.last = offsets
                self.line("key", offsets, size, mask)
                self.chunk(offsets[:-1], child, size, mask)
                continue
            first, last = self.node1(child, found - 1)
            if first != keys[i][2] or last > keys[i + 1][2]:
                self.problem(f"B-tree node at {at}: keys {keys[i][2]} to {keys[i + 1][2]} around {first} to {last}")
        if keys[-1][2] <= keys[-2][2] if entries else False:
            self.problem(f"B-tree node at {at}: last key")
        return keys[0][2], keys[-1][2]

    def key1(self, r):
        return r.number(4), r.number(4), tuple(r.number(8) for _ in range(self.rank + 1))


def compare(a, b, chunks_only=False, most=20):
    """What differs, and what is wrong, in lines."""
    said = [f"first: {p}" for p in a.problems] + [f"second: {p}" for p in b.problems]
    one, two = (sorted(a.chunks), sorted(b.chunks)) if chunks_only else (a.lines, b.lines)
    pairs = itertools.zip_longest(one, two, fillvalue="nothing")
    said += [f"{x} | {y}" for x, y in pairs if x != y]
    return said[:most] + ([f"... {len(said) - most} more"] if len(said) > most else [])


def whole(d):
    if not d.chunks or not d.size:
        return d[()]
    rows = PIECE * d.chunks[0]
    return np.concatenate([d[b:b + rows] for b in range(0, d.shape[0], rows)])


def values(path, name):
    with h5py.File(path, "r") as f:
        d = f[name]
        if not d.chunks or d.ndim != 1 or d.size // d.chunks[0] < 20 * WINDOW:
            return whole(d)
        # The ends, what lies beside the first page, and some between.
        window = WINDOW * d.chunks[0]
        begins = [0, d.size - window, 131060 * d.chunks[0] - window // 2, *range(window, d.size - window, d.size // 8)]
        return np.concatenate([d[b:b + window] for b in begins])


def compare_values(a, b):
    return [] if np.array_equal(a, b) else [f"values: {a.ravel()[:20]} | {b.ravel()[:20]}"]


def main(arguments):
    names = [a for a in arguments if not a.startswith("--")]
    if "--values" in arguments:
        said = compare_values(values(*names[:2]), values(*names[2:]))
    else:
        said = compare(Index(*names[:2]), Index(*names[2:]), "--chunks" in arguments)
    print(*said, sep="\n", end="\n" if said else "")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
