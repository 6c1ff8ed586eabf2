#!/usr/bin/env python3
"""Cuts HDF5 files into inputs that fuzzing begins with: seeds.py FOLDER FILE...

Each target of tests/fuzz gets a folder. What stands where in an input is said in the sources of the targets. Structures
are found by their signatures, and messages in what looks like an object header: a seed that is none does no harm.
"""
import hashlib
import os
import signal
import sys

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "fixtures"))
import onion  # noqa: E402
import subfiles  # noqa: E402

FILE_MAX = 1 << 16  # bytes; larger files are only cut
BLOCK_MAX = 4096
LIBRARY_SECONDS = 10
PREFIX = {8: 0, 4: 1, 2: 2}
MESSAGES = {
    1: "dataspace", 2: "link_info", 3: "datatype", 4: "fill_value_old", 5: "fill_value", 6: "link", 7: "external_files",
    8: "layout", 11: "pipeline", 12: "attribute", 14: "mtime_old", 15: "shared_table_message", 16: "continuation",
    17: "symbol_table", 18: "mtime", 19: "btree1_k", 20: "driver_info_message", 21: "attribute_info",
    22: "reference_count", 23: "file_space_info", 24: "cache_image_message", 25: "section_pipelines",
}  # fmt: skip


class Seeds:
    def __init__(self, folder):
        self.folder = folder

    def add(self, target, data):
        folder = os.path.join(self.folder, target)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, hashlib.sha1(data).hexdigest()[:16]), "wb") as f:
            f.write(data)


class File:
    """The bytes of one file, and what the superblock says of them."""

    def __init__(self, data, seeds):
        self.data, self.seeds, self.at, self.o, self.l = data, seeds, 0, 8, 8
        for at in (0, 512, 1024, 2048):
            if data[at : at + 8] == b"\x89HDF\r\n\x1a\n":
                sizes = data[at + 13 : at + 15] if data[at + 8] < 2 else data[at + 9 : at + 11]
                if len(sizes) == 2 and set(sizes) <= set(PREFIX):
                    self.at, (self.o, self.l) = at, sizes
        self.sizes = bytes([PREFIX[self.o] | PREFIX[self.l] << 2])

    def add(self, target, *parts):
        self.seeds.add(target, self.sizes + b"".join(parts))

    def number(self, at, n):
        return int.from_bytes(self.data[at : at + n], "little")

    def piece(self, at, n=BLOCK_MAX):
        return self.data[at : at + min(n, BLOCK_MAX)]

    def find(self, signature):
        at = self.data.find(signature)
        while at >= 0:
            yield at
            at = self.data.find(signature, at + 1)

    def cut(self):
        self.add("superblock", self.at.to_bytes(8, "little"), self.piece(self.at, 200))
        for signature, cutter in CUTTERS.items():
            for at in list(self.find(signature))[:50]:
                cutter(self, at)
        self.cut_old_headers()

    def message(self, kind, body):
        if kind in MESSAGES:
            self.add("message_" + MESSAGES[kind], body)

    # Version 2 object headers.
    def messages(self, at, end, flags):
        step = 6 if flags & 4 else 4
        while at + step <= min(end, len(self.data)):
            size = self.number(at + 1, 2)
            body = self.data[at + step : at + step + size]
            if self.data[at + 3] & 2:
                self.add("message_shared_message", body)
            else:
                self.message(self.data[at], body)
            at += step + size

    def header(self, at):
        flags = self.number(at + 5, 1)
        p = at + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
        n = 1 << (flags & 3)
        end = p + n + self.number(p, n)
        self.add("object_header", self.piece(at, end + 4 - at))
        self.messages(p + n, min(end, at + BLOCK_MAX), flags)

    def continuation(self, at):
        for flags in (0, 4):
            self.add("continuation_block", bytes([flags]), self.piece(at, 400))

    # Version 1 object headers have no signature.
    def cut_old_headers(self):
        found = 0
        for at in range(self.at, len(self.data) - 24, 8):
            d = self.data[at : at + 16]
            if d[:2] != b"\1\0" or d[12:] != bytes(4) or not 0 < d[2] < 50 or d[3] or d[5:8] != bytes(3):
                continue
            found += 1
            if found > 50:
                return
            p, end = at + 16, min(at + 16 + self.number(at + 8, 4), len(self.data), at + BLOCK_MAX)
            self.add("object_header", self.data[at:end])
            while p + 8 <= end:
                size = self.number(p + 2, 2)
                if not self.data[p + 4] & 2:
                    self.message(self.number(p, 2), self.data[p + 8 : p + 8 + size])
                p += 8 + size

    def tree(self, at):
        if self.number(at + 4, 1):
            for rank in (1, 2, 3):
                self.add("btree1_chunk", bytes([rank]), self.piece(at, 1024))
        else:
            self.add("btree1_group", self.piece(at, 1024))

    def tree2(self, at):
        size, depth = self.number(at + 6, 4), self.number(at + 12, 2)
        root, records = self.number(at + 16, self.o), self.number(at + 16 + self.o, 2)
        header = self.data[at : at + 22 + self.o + self.l]
        self.add("btree2", bytes([depth]), records.to_bytes(2, "little"), header, self.piece(self.at + root, size))

    def symbols(self, at):
        self.add("symbol_node", self.piece(at, 1024))

    def local_heap(self, at):
        self.add("local_heap", self.piece(at, 32))

    def fractal_heap(self, at):
        header = self.data[at : at + 22 + 12 * self.l + 3 * self.o + 8]
        for first in (0, 0x10, 0x20, 0x2F):
            self.add("fractal_heap", bytes([0, 0]), header, bytes([first, 30, 0, 0, 0, 9, 0, 0]) + bytes(16))
        for what, signature in ((1, b"FHIB"), (2, b"FHDB")):
            for block in list(self.find(signature))[:2]:
                self.add("fractal_heap", bytes([what, 2]), header, self.piece(block, 1024))

    def global_heap(self, at):
        size = self.number(at + 8, self.l)
        self.add("global_heap", self.piece(at, size))
        p = at + 8 + self.l
        while p < at + min(size, BLOCK_MAX) and self.number(p, 2):
            n = self.number(p + 8, self.l)
            self.add("virtual_mapping", self.piece(p + 8 + self.l, n))
            p += 8 + self.l + (n + 7) // 8 * 8

    def fixed_array(self, at):
        header = self.data[at : at + 12 + self.l + self.o]
        block = self.number(at + 8 + self.l, self.o)
        self.add("fixed_array", header, self.piece(self.at + block, 2048))

    def extensible_array(self, at):
        header = self.data[at : at + 16 + 6 * self.l + self.o]
        for what, signature in ((0, b"EAIB"), (1, b"EASB"), (2, b"EADB")):
            for block in list(self.find(signature))[:2]:
                for number in (0, 1, 4, 5) if what else (0,):
                    self.add("extensible_array", bytes([what, number]), header, self.piece(block, 2048))

    def shared_table(self, at):
        for indexes in (1, 2, 5):
            self.add("shared_table", bytes([indexes]), self.piece(at, 400))

    def free_space(self, at):
        self.add("free_space", self.piece(at, 100))

    def cache_image(self, at):
        self.add("cache_image", self.piece(at))

    def driver_info(self, at):
        self.add("driver_info_block", self.piece(at - 8, 400))


CUTTERS = {
    b"OHDR": File.header, b"OCHK": File.continuation, b"TREE": File.tree, b"BTHD": File.tree2, b"SNOD": File.symbols,
    b"HEAP": File.local_heap, b"FRHP": File.fractal_heap, b"GCOL": File.global_heap, b"FAHD": File.fixed_array,
    b"EAHD": File.extensible_array, b"SMTB": File.shared_table, b"FSHD": File.free_space, b"MDCI": File.cache_image,
    b"NCSAfami": File.driver_info, b"NCSAmult": File.driver_info, b"Subfilin": File.driver_info,
}  # fmt: skip

# What is done to a file: operation, dataset, four parameters.
OPERATIONS = (
    bytes([0, 0, 3, 1, 7, 0, 4, 0, 0, 0, 0, 0, 2, 0, 100, 9, 1, 3, 7, 0, 0, 0, 0, 0]),
    bytes([3, 0, 64, 0, 0, 0, 1, 0, 20, 0, 5, 0, 6, 0, 0, 0, 0, 0, 3, 0, 200, 0, 0, 0]),
    bytes([1, 1, 31, 0, 2, 0, 5, 1, 0, 0, 0, 0, 2, 1, 0, 255, 0, 1, 3, 1, 0, 0, 0, 0]),
)

# What is done to its objects: request (tests/fuzz/requests.c), seven parameters; commits and remounts in between.
REQUESTS = (
    bytes([0, 0, 130, 0, 0, 0, 0, 0, 1, 0, 129, 0, 20, 7, 1, 0, 11, 1, 3, 4, 0, 0, 0, 0, 13, 1, 160, 5, 0, 0, 0, 0])
    + bytes([7, 0, 0, 0, 128, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0, 5, 0, 1, 0, 0, 0, 0, 0, 18, 0, 0, 0, 0, 0, 0, 0]),
    bytes([9, 2, 0, 128, 0, 0, 0, 0, 14, 0, 3, 0, 0, 0, 0, 0, 14, 1, 4, 0, 0, 0, 0, 0, 11, 2, 64, 12, 0, 0, 0, 0])
    + bytes([17, 1, 0, 0, 0, 0, 0, 0, 8, 0, 1, 0, 2, 2, 0, 0, 10, 0, 130, 2, 0, 0, 0, 0, 6, 0, 2, 0, 0, 0, 0, 0]),
    bytes([2, 1, 0, 3, 0, 0, 0, 0, 3, 0, 5, 3, 1, 40, 9, 0, 3, 0, 0, 0, 1, 9, 0, 0, 16, 2, 5, 1, 0, 0, 0, 0])
    + bytes([5, 0, 0, 0, 0, 0, 0, 0, 18, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 1, 0, 0, 0, 0, 5, 0, 1, 0, 0, 0, 0, 0]),
)


def add_file(seeds, data):
    seeds.add("file_read", data)
    seeds.add("file_check", data)
    # A commit that was torn before its only change.
    place = len(data) // 2
    patch = b"".join(n.to_bytes(8, "little") for n in (place, 4)) + data[place : place + 4] + b"\xff\xfe\xfd\xfc"
    journal = b"h5fs-jnl\1" + bytes(503) + journal_record(len(data), patch, 1)
    seeds.add("file_journal", data + journal + len(journal).to_bytes(2, "little") + data[-1:])
    for i, operations in enumerate(OPERATIONS):
        if i == data[-1] % 3:
            seeds.add("file_write", data + operations * 4)
    for requests in REQUESTS:
        seeds.add("file_requests", data + requests * 2)


def add_chunks(seeds, path):
    """The last filter of each dataset's pipeline, on its first chunks."""
    import h5py

    def visit(_, dataset):
        if not isinstance(dataset, h5py.Dataset) or not dataset.chunks or not dataset.size:
            return
        pipeline = dataset.id.get_create_plist()
        filters = pipeline.get_nfilters()
        for i in range(min(dataset.id.get_num_chunks(), 2) if filters else 0):
            number, _, values, _ = pipeline.get_filter(filters - 1)
            mask, chunk = dataset.id.read_direct_chunk(dataset.id.get_chunk_info(i).chunk_offset)
            size = dataset.dtype.itemsize
            for n in dataset.chunks:
                size *= n
            if mask or number not in FILTERS or len(chunk) > BLOCK_MAX or size >= 1 << 20:
                continue
            values = b"".join((v & 0xFFFFFFFF).to_bytes(4, "little") for v in values)
            values = bytes([len(values) // 4]) + values + (size + 4).to_bytes(3, "little")
            seeds.add("filter_" + FILTERS[number], b"\0" + values + chunk)
            seeds.add("filter_" + FILTERS[number], b"\1" + values + bytes(range(64)) * 4 + chunk[:64])

    try:
        with h5py.File(path, "r", locking=False) as f:
            f.visititems(visit)
    except Exception as e:  # damaged ones are among them, which h5py tells in many ways
        print(f"{path}: {e}", file=sys.stderr)


FILTERS = {
    1: "deflate", 2: "shuffle", 3: "fletcher32", 4: "szip", 5: "nbit", 6: "scaleoffset", 305: "lzo", 307: "bzip2",
    32000: "lzf", 32001: "blosc", 32003: "snappy", 32004: "lz4", 32008: "bitshuffle", 32013: "zfp", 32014: "fpzip", 32015: "zstd", 32018: "fcidecomp", 32019: "jpeg", 32020: "vbz", 32022: "bitgroom",
    32023: "granular-bitround", 32026: "blosc2", 32032: "bitround",
}  # fmt: skip


def add_listed(seeds, path):
    """Chunks of a fixture with a list: name, filter, client data; the bytes in NAME.in, and decoded in NAME.out."""
    folder = os.path.dirname(path)
    for line in open(path):
        case, number, *values = line.split()
        names = [os.path.join(folder, f"filter_{case}.{end}") for end in ("in", "out")]
        if not all(map(os.path.exists, names)) or int(number) not in FILTERS:
            continue
        stored, decoded = (open(name, "rb").read() for name in names)
        if len(stored) <= BLOCK_MAX:
            values = b"".join((int(v) & 0xFFFFFFFF).to_bytes(4, "little") for v in values)
            values = bytes([len(values) // 4]) + values + len(decoded).to_bytes(3, "little")
            seeds.add("filter_" + FILTERS[int(number)], b"\0" + values + stored)
            if len(decoded) <= BLOCK_MAX:
                seeds.add("filter_" + FILTERS[int(number)], b"\1" + values + decoded)


def add_selections(seeds):
    """libhdf5 encodes a dataspace with its selection as region references, mappings and sparse chunks have them."""
    import h5py

    def add(select):
        space = h5py.h5s.create_simple((10, 12), (10, h5py.h5s.UNLIMITED))
        select(space)
        for low in (h5py.h5f.LIBVER_EARLIEST, h5py.h5f.LIBVER_LATEST):
            access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
            access.set_libver_bounds(low, h5py.h5f.LIBVER_LATEST)
            code = space.encode()
            n = int.from_bytes(code[3:7], "little")
            seeds.add("selection", b"\0" + bytes([10, 12, 5, 5]) + code[7 + n :])
            seeds.add("defined_elements", b"\0" + bytes([1, 7, 0, 10, 12]) + code + bytes(4))

    add(lambda space: space.select_all())
    add(lambda space: space.select_none())
    add(lambda space: space.select_elements([(1, 2), (3, 4), (9, 11)]))
    add(lambda space: space.select_hyperslab((1, 1), (2, 3), (3, 4), (2, 2)))

    def irregular(space):
        space.select_hyperslab((0, 0), (1, 1), block=(2, 2))
        space.select_hyperslab((3, 3), (1, 1), block=(2, 5), op=h5py.h5s.SELECT_OR)

    add(irregular)


def add_small_files(seeds):
    """One dataset each that can be written, all of its metadata with checksums: what is written is compared then."""
    import h5py
    import numpy as np

    unlimited = h5py.h5s.UNLIMITED
    kinds = {
        "contiguous": {}, "single": {"chunks": (6, 2)}, "fixed": {"chunks": (2, 1), "maxshape": (40, 2)},
        "extensible": {"chunks": (2, 2), "maxshape": (None, 2)}, "tree": {"chunks": (2, 1), "maxshape": (None, None)},
        "compact": {"layout": h5py.h5d.COMPACT}, "implicit": {"chunks": (2, 2), "early": True},
    }  # fmt: skip
    for kind, options in kinds.items():
        for filtered in (False, True) if "chunks" in options and "early" not in options else (False,):
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_obj_track_times(False)
            if "chunks" in options:
                plist.set_chunk(options["chunks"])
            if "layout" in options:
                plist.set_layout(options["layout"])
            if "early" in options:
                plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            if filtered:
                plist.set_deflate(1)
            most = tuple(unlimited if n is None else n for n in options.get("maxshape", (6, 2)))
            path = os.path.join(seeds.folder, "small.h5")
            with h5py.File(path, "w", libver="latest") as f:
                space = h5py.h5s.create_simple((6, 2), most)
                dataset = h5py.h5d.create(f.id, b"d", h5py.h5t.STD_I16LE, space, plist)
                dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(12, dtype="<i2").reshape(6, 2))
            with open(path, "rb") as f:
                image = f.read()
            os.unlink(path)
            for operations in OPERATIONS:
                seeds.add("file_write", image + operations * 4)
            for requests in REQUESTS:
                seeds.add("file_requests", image + requests * 2)


def journal_record(size, parts, patches, extents=0, objects=0):
    number = int.to_bytes
    fixed = number(1, 8, "little") + number(size, 8, "little")
    fixed += b"".join(number(n, 4, "little") for n in (patches, extents, objects, 0))
    return b"h5fs-rec" + bytes(8) + number(72 + len(parts), 8, "little") + bytes(16) + fixed + parts


def add_journals(seeds):
    number = int.to_bytes
    patch = number(4096, 8, "little") + number(8, 4, "little") + bytes(4) + b"12345678" + b"abcdefgh"
    guard = number(0, 8, "little") + number(4, 4, "little") + b"\1\0\0\0" + b"1234"
    extent = number(8192, 8, "little") + number(100, 8, "little") + bytes(8)
    parts = extent + number(96, 8, "little") + patch + guard
    record = journal_record(65536, parts, 2, 1, 1)
    seeds.add("journal_record", b"\0" + record)
    seeds.add("journal_header", b"\0h5fs-jnl\1" + bytes(503))


def add_onions(seeds):
    content = bytes(range(256)) * 10
    for size, aligned, origin in (512, False, content), (16, True, None), (1024, False, content[:700]):
        made = onion.Onion(origin, size, aligned)
        for change in content, content[:600] + b"changed" + content[607:], content[:64] + bytes(900):
            made.add(change)
            data = bytes(made.data)
            seeds.add("file_onion", (origin or b"ONIONEOF") + data + len(data).to_bytes(2, "little"))


def add_subfiles(seeds):
    sizes = b"\0"  # as those of File.sizes: offsets and lengths of 8 bytes
    for stripe, count, folder in (512, 3, b""), (1, 16, b"/a/folder"), (1 << 40, 2, b"."), (100, 1 << 40, b"x" * 300):
        information = subfiles.driver_info(stripe, count, folder)
        seeds.add("driver_info_block", sizes + bytes(4) + len(information).to_bytes(4, "little") + b"Subfilin" + information)
        seeds.add("message_driver_info_message", sizes + b"\0Subfilin" + len(information).to_bytes(2, "little") + information)
        for old in False, True:
            seeds.add("file_subfiles", subfiles.configuration("/a/f.h5", 7, stripe, min(count, 17), folder.decode() or None, old))


def main():
    seeds = Seeds(sys.argv[1])
    for path in sys.argv[2:]:
        if path.endswith(".list"):
            add_listed(seeds, path)
            continue
        with open(path, "rb") as f:
            data = f.read(1 << 22)
        if not data:
            continue
        File(data, seeds).cut()
        if len(data) <= FILE_MAX:
            add_file(seeds, data)
        if path.endswith((".h5", ".hdf5")):
            # Some files end libhdf5, and the process with it; some it does not come back from.
            child = os.fork()
            if not child:
                signal.alarm(LIBRARY_SECONDS)
                add_chunks(seeds, path)
                os._exit(0)
            os.waitpid(child, 0)
    add_selections(seeds)
    add_small_files(seeds)
    add_journals(seeds)
    add_onions(seeds)
    add_subfiles(seeds)


main()
