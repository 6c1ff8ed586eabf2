"""Reads a dataset of structured chunks byte by byte, as the RFC and the specification describe it.

walk(path) finds the only dataset of the root group. As a program it walks all of them. What contradicts itself is a Contradiction: a checksum, an owner, a client, a version that
differs from that of the header, chunks that overlap or reach beyond the end of the file."""
import itertools
import struct
import sys
import zlib
from dataclasses import dataclass, field

from mountlib import lookup3

UNDEF = (1 << 64) - 1
SINGLE, FIXED, EXTENSIBLE, BTREE = 1, 3, 4, 5


class Contradiction(Exception):
    pass


def must(condition, what):
    if not condition:
        raise Contradiction(what)


def number(data):
    return int.from_bytes(data, "little")


class Reader:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, n):
        must(0 <= n <= len(self.data) - self.at, f"{n} bytes at {self.at} of {len(self.data)}")
        self.at += n
        return self.data[self.at - n:self.at]

    def uint(self, n):
        return number(self.take(n))

    def left(self):
        return len(self.data) - self.at


def sealed(data, at, n, signature, what):
    """n bytes whose last four are the checksum of the others; a reader behind the signature."""
    block = data[at:at + n]
    must(len(block) == n and block.startswith(signature), f"{what} at {at}")
    must(lookup3(block[:-4]) == number(block[-4:]), f"checksum of {what} at {at}")
    return Reader(block[:-4], len(signature))


def ceil(a, b):
    return -(-a // b)


# ---- object headers of version 2, and links in messages ----

def messages(data, address):
    r = Reader(data, address)
    must(r.take(4) == b"OHDR" and r.uint(1) == 2, f"object header at {address}")
    flags = r.uint(1)
    r.take((16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0))
    size = r.uint(1 << (flags & 3))
    blocks, found = [(r.at, size, address, r.at + size + 4 - address)], []
    while blocks:
        at, n, begin, whole = blocks.pop(0)
        sealed(data, begin, whole, b"O", "object header")
        part = Reader(data[:at + n], at)
        while part.left() >= 4 + (2 if flags & 4 else 0):
            kind, size = part.uint(1), part.uint(2)
            part.take(1 + (2 if flags & 4 else 0))
            body = part.take(size)
            if kind == 0x10:
                where, length = struct.unpack("<QQ", body)
                must(data[where:where + 4] == b"OCHK", "continuation block")
                blocks.append((where + 4, length - 8, where, length))
            elif kind:
                found.append((kind, body))
    return found


def links(data):
    """Addresses of the objects in the root group."""
    must(data[:8] == b"\x89HDF\r\n\x1a\n" and data[8] in (2, 3) and data[9] == data[10] == 8, "superblock")
    sealed(data, 0, 48, b"\x89", "superblock")
    must(number(data[28:36]) <= len(data), "end of file")
    found = []
    for kind, body in messages(data, number(data[36:44])):
        if kind == 6:
            r = Reader(body, 1)
            flags = r.uint(1)
            must(not flags & 8, "hard link")
            r.take((8 if flags & 4 else 0) + (1 if flags & 0x10 else 0))
            r.take(r.uint(1 << (flags & 3)))
            found.append(r.uint(8))
    return found


# ---- messages of the dataset ----

@dataclass
class Dataset:
    data: bytes
    dims: tuple = ()
    maxdims: tuple = ()
    chunk: tuple = ()
    element: int = 0
    filtered: bool = False
    unfiltered_edges: bool = False
    early: bool = False
    index: int = 0
    address: int = UNDEF
    parameters: bytes = b""
    offset_size: int = 0
    version: int = 0  # of the index
    statistics: tuple = ()  # of the extensible array: as its header says, and as it is
    pipelines: dict = field(default_factory=dict)  # section: [(id, values)]
    chunks: dict = field(default_factory=dict)  # scaled offsets: Chunk
    defined: dict = field(default_factory=dict)  # coordinates: bytes of the element


@dataclass
class Chunk:
    address: int
    size: int
    offset: int  # of section 1
    sizes: tuple  # of the sections without their filters
    masks: tuple
    selection: str = ""
    outside: list = field(default_factory=list)  # coordinates of elements that the dataset does not have


def read_space(d, body, lengths=8):
    r = Reader(body)
    version, rank, flags = r.uint(1), r.uint(1), r.uint(1)
    r.take({1: 5, 2: 1}[version])
    d.dims = tuple(r.uint(lengths) for _ in range(rank))
    d.maxdims = tuple(r.uint(lengths) for _ in range(rank)) if flags & 1 else d.dims


def read_layout(d, body):
    r = Reader(body)
    version, kind, properties, sparse, flags, rank, enc = struct.unpack("<BBBHBBB", r.take(8))
    must((version, kind, properties) == (5, 4, 0) and sparse in (0, 1) and not flags & ~3, "layout message")
    *d.chunk, d.element = (r.uint(enc) for _ in range(rank))
    d.chunk = tuple(d.chunk)
    d.unfiltered_edges, single_filtered = bool(flags & 1), bool(flags & 2)
    d.early = body[r.at] != 8
    if not d.early:
        d.offset_size, sections = r.uint(1), r.take(3)
        must(sections == b"\2\1\0", "sections")
    d.index = r.uint(1)
    n = {FIXED: 1, EXTENSIBLE: 5, BTREE: 6}.get(d.index, 0)
    d.parameters = r.take(n)
    if d.index == SINGLE:
        d.offset_size = body[-4] if d.early else d.offset_size
        metadata = d.offset_size * (3 if single_filtered else 1) + (8 if single_filtered else 0)
        width = r.left() - metadata - 8 - (4 if d.early else 0)  # the message is not padded
        must(0 < width <= 8, "size of the layout message")
        d.single = r.uint(width), r.take(metadata)
        d.single_filtered = single_filtered
    d.address = r.uint(8)
    if d.early:
        d.offset_size, sections = r.uint(1), r.take(3)
        must(sections == b"\2\1\0", "sections")


def read_pipelines(d, body, early):
    r = Reader(body)
    must(r.uint(1) in ((0, 3) if early else (1,)), "version of the pipelines")
    for _ in range(r.uint(1)):
        section, count, size = r.uint(1), r.uint(1), r.uint(2)
        part, filters = Reader(r.take(size)), []
        for _ in range(count):
            kind = part.uint(2)
            name = part.uint(2) if kind >= 256 else 0
            part.take(2)
            values = part.uint(2)
            part.take(name)
            filters.append((kind, [part.uint(4) for _ in range(values)]))
        must(not part.left(), "size of a filter list")
        d.pipelines[section] = filters
    d.filtered = any(d.pipelines.values())


# ---- indexes ----

def metadata_size(d):
    return d.offset_size * (3 if d.filtered else 1) + (8 if d.filtered else 0)


def read_metadata(d, address, size, metadata):
    r, masks, sizes = Reader(metadata), (0, 0), None
    if d.filtered and d.early:
        masks = r.uint(4), r.uint(4)
    offset = r.uint(d.offset_size)
    if d.filtered:
        sizes = r.uint(d.offset_size), r.uint(d.offset_size)
        if not d.early:
            masks = r.uint(4), r.uint(4)
    return Chunk(address, size, offset, sizes or (offset, size - offset), masks)


def read_record(d, record, scaled=0):
    """The chunk, or None; the scaled offsets."""
    r = Reader(record)
    address = r.uint(8)
    size = r.uint(len(record) - 8 - 8 * scaled - metadata_size(d))
    at = tuple(r.uint(8) for _ in range(scaled))
    metadata = r.take(metadata_size(d))
    if address == UNDEF:
        must(not any(record[8:]), "a record that is not set has only zeros behind its address")
        return None, at
    return read_metadata(d, address, size, metadata), at


def counts(d):
    return [UNDEF if m == UNDEF else ceil(m, c) for m, c in zip(d.maxdims, d.chunk)]


def scaled_of(d, n, slowest=0):
    order = [slowest, *(i for i in range(len(d.chunk)) if i != slowest)]
    along, scaled = counts(d), {}
    for i in reversed(order[1:]):
        n, scaled[i] = divmod(n, along[i])
    scaled[order[0]] = n
    return tuple(scaled[i] for i in range(len(d.chunk)))


def client(d):
    return 3 if d.filtered else 2


def begin(d, r, owner, what):
    """Behind the signature of a block."""
    must(r.uint(1) == d.version, f"version of {what}")
    must(r.uint(1) == client(d), f"client of {what}")
    must(r.uint(8) == owner, f"owner of {what}")


def records(data, size):
    return [data[i:i + size] for i in range(0, len(data), size)]


def fixed(d):
    r = sealed(d.data, d.address, 28, b"FAHD", "fixed array header")
    d.version, kind, size, bits = r.take(4)
    total, block = r.uint(8), r.uint(8)
    must(kind == client(d) and d.version < 2, "client of the fixed array")
    if d.parameters:
        must(bits == d.parameters[0], "page bits")
    product = 1
    for n in counts(d):
        product *= n
    must(total == product, "elements of the fixed array")
    if block == UNDEF:
        return
    page = 1 << bits
    if total <= page:
        r = sealed(d.data, block, 14 + total * size + 4, b"FADB", "fixed array block")
        begin(d, r, d.address, "fixed array block")
        found = records(r.take(total * size), size)
    else:
        pages = ceil(total, page)
        n = 14 + ceil(pages, 8) + 4
        r = sealed(d.data, block, n, b"FADB", "fixed array block")
        begin(d, r, d.address, "fixed array block")
        bitmap, found, at = r.take(ceil(pages, 8)), [], block + n
        for i in range(pages):
            count = min(page, total - i * page)
            if bitmap[i // 8] & 0x80 >> i % 8:
                found += records(sealed(d.data, at, count * size + 4, b"", "page").take(count * size), size)
            else:
                found += [None] * count
            at += count * size + 4
    for n, record in enumerate(found):
        add(d, scaled_of(d, n), record)


def add(d, scaled, record):
    chunk = record and read_record(d, record)[0]
    if chunk:
        d.chunks[scaled] = chunk


def extensible(d):
    r = sealed(d.data, d.address, 12 + 6 * 8 + 8 + 4, b"EAHD", "extensible array header")
    d.version, kind, size, bits, direct, least, pointers, page_bits = r.take(8)
    must(kind == client(d) and d.version < 2, "client of the extensible array")
    statistics = [r.uint(8) for _ in range(6)]
    root = r.uint(8)
    must((bits, direct, pointers, least, page_bits) == tuple(d.parameters), "parameters of the extensible array")
    if root == UNDEF:
        return
    slowest = d.maxdims.index(UNDEF)
    log = lambda n: n.bit_length() - 1
    supers, in_root = 1 + bits - log(least), 2 * log(pointers)
    block_count = 2 * (pointers - 1)
    r = sealed(d.data, root, 14 + direct * size + 8 * (block_count + supers - in_root) + 4, b"EAIB", "index block")
    begin(d, r, d.address, "index block")
    found, seen = records(r.take(direct * size), size), [0, 0, 0, 0]
    direct_blocks = [r.uint(8) for _ in range(block_count)]
    super_blocks = [r.uint(8) for _ in range(supers - in_root)]
    offset_size, numbered = ceil(bits, 8), direct
    listed = dict(enumerate(found))

    def data_block(address, elements, first, bitmap):
        pages = ceil(elements, 1 << page_bits) if elements > 1 << page_bits else 0
        n = 14 + offset_size + (0 if pages else elements * size) + 4
        r = sealed(d.data, address, n, b"EADB", "data block")
        begin(d, r, d.address, "data block")
        r.take(offset_size)
        seen[2] += 1
        seen[3] += n + pages * ((1 << page_bits) * size + 4)
        if not pages:
            listed.update(enumerate(records(r.take(elements * size), size), first))
        at = address + n
        for p in range(pages):
            count = 1 << page_bits
            if bitmap[p]:
                listed.update(enumerate(records(sealed(d.data, at, count * size + 4, b"", "page").take(count * size), size),
                                        first + p * count))
            at += count * size + 4

    for s in range(supers):
        blocks, elements = 1 << s // 2, least << (s + 1) // 2
        if s < in_root:
            addresses = [direct_blocks.pop(0) for _ in range(blocks)]
            bitmaps = [None] * blocks
        else:
            at = super_blocks.pop(0)
            if at == UNDEF:
                numbered += blocks * elements
                continue
            pages = elements >> page_bits if elements > 1 << page_bits else 0
            map_size = ceil(pages, 8) * blocks if pages else 0
            n = 14 + offset_size + map_size + 8 * blocks + 4
            r = sealed(d.data, at, n, b"EASB", "super block")
            begin(d, r, d.address, "super block")
            must(r.uint(offset_size) == numbered - direct, "offset of a super block")
            bits_ = r.take(map_size)
            bitmaps = [[bits_[(b * pages + p) // 8] & 0x80 >> (b * pages + p) % 8 for p in range(pages)] for b in range(blocks)]
            addresses = [r.uint(8) for _ in range(blocks)]
            seen[0] += 1
            seen[1] += n
        for b, at in enumerate(addresses):
            if at != UNDEF:
                data_block(at, elements, numbered, bitmaps[b])
            numbered += elements
    d.statistics = statistics[:4], seen
    for n, record in listed.items():
        add(d, scaled_of(d, n, slowest), record)


def btree(d):
    r = sealed(d.data, d.address, 38, b"BTHD", "B-tree header")
    d.version, kind = r.take(2)
    must(kind == 10 + client(d) and d.version < 2, "type of the B-tree")
    node_size, size, depth, split, merge, root, root_records, total = struct.unpack("<IHHBBQHQ", r.take(28))
    must(struct.pack("<IBB", node_size, split, merge) == d.parameters, "parameters of the B-tree")
    most = [(node_size - 10) // size]
    count_size, beneath, totals = (most[0].bit_length() + 7) // 8, most[0], [0]
    for level in range(1, depth + 1):
        pointer = 8 + count_size + totals[level - 1]
        most.append((node_size - 10 - pointer) // (size + pointer))
        beneath = most[level] + (most[level] + 1) * beneath
        totals.append((beneath.bit_length() + 7) // 8)
    met = []

    def node(address, level, count):
        pointer = 8 + count_size + (totals[level - 1] if level > 1 else 0) if level else 0
        n = 6 + count * size + (count + 1) * pointer * bool(level) + 4
        r = sealed(d.data, address, n, b"BTIN" if level else b"BTLF", "B-tree node")
        must(r.uint(1) <= d.version and r.uint(1) == kind, "version and type of a node")
        own = records(r.take(count * size), size)
        for i in range(count + 1):
            if level:
                below, its = r.uint(8), r.uint(count_size)
                r.take(totals[level - 1] if level > 1 else 0)
                node(below, level - 1, its)
            if i < count:
                met.append(read_record(d, own[i], len(d.chunk)))

    if root != UNDEF:
        node(root, depth, root_records)
    must(len(met) == total, "records of the B-tree")
    must(all(a[1] < b[1] for a, b in zip(met, met[1:])), "order of the B-tree")
    d.chunks = {scaled: chunk for chunk, scaled in met}


def single(d):
    must(d.single_filtered == d.filtered, "flag of the single chunk")
    size, metadata = d.single
    d.chunks = {(0,) * len(d.chunk): read_metadata(d, d.address, size, metadata)}


# ---- chunks ----

def unfilter(filters, mask, data):
    for i, (kind, values) in reversed(list(enumerate(filters))):
        if mask >> i & 1:
            continue
        if kind == 1:
            data = zlib.decompress(data)
        elif kind == 2:
            n = len(data) // values[0]
            data = b"".join(data[i:n * values[0]:n] for i in range(n)) + data[n * values[0]:]
        elif kind == 3:
            words = struct.unpack(f">{len(data[:-4]) // 2}H", data[:-4][:len(data[:-4]) // 2 * 2])
            one = two = 0
            for w in words:
                one = (one + w) % 65535
                two = (two + one) % 65535
            if len(data) % 2:
                one = (one + (data[-5] << 8)) % 65535
                two = (two + one) % 65535
            must({one or 65535, one} & {number(data[-4:]) & 0xffff} and {two or 65535, two} & {number(data[-4:]) >> 16}, "fletcher32")
            data = data[:-4]
        else:
            must(False, f"filter {kind}")
    return data


def select(r, chunk):
    """Its name; the coordinates in the order of the values."""
    kind, version = r.uint(4), r.uint(4)
    if kind in (0, 3):
        must(version == 1 and len(r.take(8)) == 8, "selection")
        return ("all", list(itertools.product(*map(range, chunk)))) if kind else ("none", [])
    width, regular = 4, False
    if kind == 1 and version == 1:
        r.take(8)
    elif kind == 2 and version == 1:
        r.take(4)
        length = r.uint(4)
        must(length == r.left(), "length of a selection")
    else:
        regular = kind == 2 and bool(r.uint(1))
        width = 8 if kind == 2 and version == 2 else r.uint(1)
        if kind == 2 and version == 2:
            r.take(4)
    must(r.uint(4) == len(chunk), "rank of a selection")
    read = lambda n: [r.uint(width) for _ in range(n)]
    if kind == 1:
        return f"points{version}", [tuple(read(len(chunk))) for _ in range(read(1)[0])]
    if regular:
        slabs = [read(4) for _ in chunk]
        return f"slabs{version}", list(itertools.product(*([s + i * stride + j for i in range(count) for j in range(block)]
                                                           for s, stride, count, block in slabs)))
    blocks = [(read(len(chunk)), read(len(chunk))) for _ in range(read(1)[0])]
    each = [c for first, last in blocks for c in itertools.product(*(range(a, b + 1) for a, b in zip(first, last)))]
    return f"blocks{version}", sorted(set(each))


def read_chunk(d, scaled, chunk):
    stored = d.data[chunk.address:chunk.address + chunk.size]
    must(len(stored) == chunk.size and chunk.offset <= chunk.size, "a chunk lies in the file")
    edge = any((s + 1) * c > n for s, c, n in zip(scaled, d.chunk, d.dims))
    parts = []
    for i, data in enumerate((stored[:chunk.offset], stored[chunk.offset:])):
        filters = d.pipelines.get(i, [])
        if not (d.unfiltered_edges and edge) and data:
            data = unfilter(filters, chunk.masks[i], data)
        must(len(data) == chunk.sizes[i], f"size of section {i}")
        parts.append(data)
    must(lookup3(parts[0][:-4]) == number(parts[0][-4:]), "checksum of section 0")
    r = Reader(parts[0][:-4])
    must(r.take(2) == b"\1\0", "begin of section 0")
    space, lengths = Dataset(b""), r.uint(1)
    read_space(space, r.take(r.uint(4)), lengths)
    must(space.dims == d.chunk, "extent of the selection")
    chunk.selection, where = select(r, d.chunk)
    must(not r.left(), "bytes behind the selection")
    must(all(0 <= i < n for c in where for i, n in zip(c, d.chunk)), "elements outside of the chunk")
    must(len(parts[1]) == len(where) * d.element, "bytes of section 1")
    for c, value in zip(where, records(parts[1], d.element)):
        at = tuple(s * n + i for s, n, i in zip(scaled, d.chunk, c))
        if all(i < n for i, n in zip(at, d.dims)):
            d.defined[at] = value
        else:
            chunk.outside.append(at)


def walk(path, address=None):
    with open(path, "rb") as f:
        d = Dataset(f.read())
    if address is None:
        address, = links(d.data)
    found = messages(d.data, address)
    for kind, body in found:
        if kind == 1:
            read_space(d, body)
        elif kind == 8:
            read_layout(d, body)
    for kind, body in found:
        if kind in (0x0b, 0x19):
            read_pipelines(d, body, kind == 0x0b)
    if d.address != UNDEF:
        {SINGLE: single, FIXED: fixed, EXTENSIBLE: extensible, BTREE: btree}[d.index](d)
    places = sorted((c.address, c.address + c.size) for c in d.chunks.values())
    must(all(a[1] <= b[0] for a, b in zip(places, places[1:])), "chunks overlap")
    for scaled, chunk in d.chunks.items():
        read_chunk(d, scaled, chunk)
    return d


def main(path):
    with open(path, "rb") as f:
        found = links(f.read())
    for address in found:
        walk(path, address)


if __name__ == "__main__":
    main(sys.argv[1])
