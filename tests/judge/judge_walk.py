"""What one version of libhdf5 finds in a file that h5fs has written, and whether it can go on writing there.

As a program it is a judge of another release (contrib/judges): each line of standard input is a question, {"path": ..., "append": ...},
each line of standard output its answer. tests/judge/judges.py asks, and compares.

An answer has an entry for each thing that was looked at: a digest, or what libhdf5 said where it refused. It is meant to come out the same with
every h5py and numpy."""
import hashlib
import json
import os
import shutil
import subprocess
import sys

import h5py
import numpy

WHOLE = 1 << 23  # bytes of a dataset that are read; of a larger one the first and the last rows
A_CHUNK = 2048  # bytes that take as long as a chunk
CHUNK = 1 << 25  # bytes of a chunk; larger ones are left alone
ELEMENTS = 1 << 15  # of a dataset whose elements are Python's objects: these take much longer
SMALL = 1 << 27  # bytes of a file that is copied as it is; larger ones have holes
OBJECTS = 3000   # that are looked at
REFUSED, UNJUDGED = "refused: ", "not judged"


def digest(*parts):
    h = hashlib.sha1()
    for part in parts:
        h.update(part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogateescape"))
        h.update(b"\0")
    return h.hexdigest()[:16]


def plain(value):
    """What a value consists of, in bytes. Of a compound each member by itself: what lies between them means nothing."""
    if isinstance(value, h5py.Empty):
        return b"empty"
    if isinstance(value, (h5py.Reference, h5py.RegionReference)):
        return b"reference" if value else b"null reference"
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, bytes):
        return value
    a = numpy.asarray(value)
    if a.dtype.names:
        return b"{" + b",".join(plain(a[name]) for name in a.dtype.names) + b"}"
    if a.dtype.hasobject:
        return b"[" + b",".join(plain(one) for one in a.ravel()) + b"]"
    return str(a.shape).encode() + a.tobytes()


def is_changeable(d):
    """Its chunks can be written by libhdf5 alone: the others' elements belong to other files."""
    plist = d.id.get_create_plist()
    return (plist.get_layout() == h5py.h5d.CHUNKED and plist.get_external_count() == 0
            and all(h5py.h5z.filter_avail(plist.get_filter(i)[0]) for i in range(plist.get_nfilters())))


def is_misread(d):
    """libhdf5 1.14 refuses what the scale-offset filter of other versions has stored."""
    plist = d.id.get_create_plist()
    return (h5py.version.hdf5_version_tuple[:2] == (1, 14)
            and any(plist.get_filter(i)[0] == h5py.h5z.FILTER_SCALEOFFSET for i in range(plist.get_nfilters())))


def row_bytes(d):
    """What a row costs: its bytes, and a part of those of each chunk in it, which takes time however small it is."""
    n, chunks = d.dtype.itemsize * (WHOLE // ELEMENTS if d.dtype.hasobject else 1), 1
    for i, one in enumerate(d.shape[1:], 1):
        n *= one
        chunks *= -(-one // d.chunks[i]) if d.chunks else 1
    return n + (-(-chunks * A_CHUNK // d.chunks[0]) if d.chunks else 0)


def chunk_bytes(d):
    n = d.dtype.itemsize
    for one in d.chunks or ():
        n *= one
    return n


def read_whole(d):
    if not d.shape:
        return plain(d[()])
    row = row_bytes(d)
    if row * d.shape[0] <= WHOLE:
        return plain(d[...])
    if row > WHOLE or chunk_bytes(d) > CHUNK:
        return b"too large"
    rows = max(1, (1 << 16) // row)
    return plain(d[:rows]) + plain(d[-rows:])


def target_of(link):
    """What a link says."""
    if isinstance(link, h5py.ExternalLink):
        return f"external {link.filename} {link.path}"
    return f"soft {link.path}" if isinstance(link, h5py.SoftLink) else "hard"


class Walk:
    """All objects of a file by their hard links, with what they hold; `found` has the answer."""

    def __init__(self, path):
        self.found, self.addresses, self.datasets = {}, set(), []
        with h5py.File(path, "r") as f:
            todo = ["/"]
            while todo and len(self.addresses) < OBJECTS:
                self.note(todo.pop(), f, todo)

    def tried(self, key, function, *arguments):
        try:
            self.found[key] = function(*arguments)
        except Exception as e:
            self.found[key] = f"{REFUSED}{type(e).__name__}: {e}"

    def note(self, path, file, todo):
        self.tried(path, self.look, path, file, todo)

    def look(self, path, file, todo):
        o = file[path]
        info = h5py.h5o.get_info(o.id)
        if info.addr in self.addresses:
            return "again"
        self.addresses.add(info.addr)
        for name in o.attrs:
            self.tried(f"{path}@{name}", lambda: digest(plain(o.attrs[name])))
        if isinstance(o, h5py.Group):
            names = sorted(o)
            links = [o.get(name, getlink=True) for name in names]
            todo += [f"{path.rstrip('/')}/{name}" for name, link in zip(names, links) if isinstance(link, h5py.HardLink)]
            targets = [target_of(link) for link in links]
            return digest("group", info.rc, len(o.attrs), *names, *targets)
        if not isinstance(o, h5py.Dataset):
            return digest("datatype", info.rc, len(o.attrs))
        if is_misread(o):
            for what in "data", "rows", "attribute", "grown", "data again":
                self.found[f"{path} {what}"] = UNJUDGED
        else:
            self.datasets.append(path)
            self.tried(path + " data", lambda: digest(read_whole(o)))
        return digest("dataset", info.rc, len(o.attrs), o.shape, o.maxshape, o.chunks)


def copy(path):
    """A copy beside the file, so that what is named relative to it is found."""
    there = f"{path}.{os.getpid()}.judged"
    if os.path.getsize(path) <= SMALL:
        shutil.copyfile(path, there)
    else:
        subprocess.run(["cp", "--sparse=always", path, there], check=True)
    return there


def add_rows(d):
    """Two rows and half a chunk more, as far as there may be; how many there were and are, None: there are no more."""
    if not d.shape or not d.chunks or d.dtype.hasobject or chunk_bytes(d) > CHUNK or not is_changeable(d):
        return None
    before, most = d.shape[0], d.maxshape[0]
    rows = before + 2 + d.chunks[0] // 2
    if most is not None:
        rows = min(most, rows)
    if rows == before or not 0 < (rows - before) * row_bytes(d) <= WHOLE:
        return None
    new = numpy.zeros((rows - before, *d.shape[1:]), f"V{d.dtype.itemsize}")
    d.resize(rows, 0)
    space = d.id.get_space()
    space.select_hyperslab((before, *(0 for _ in d.shape[1:])), new.shape)
    d.id.write(h5py.h5s.create_simple(new.shape), space, new, d.id.get_type())
    return before, rows


def append(path, walk):
    """libhdf5 adds rows, attributes and a group to a copy, which it then reads again: an entry for each."""
    there = copy(path)
    try:
        grown = {}
        with h5py.File(there, "r+") as f:
            for name in walk.datasets:
                walk.tried(f"{name} rows", lambda: grown.setdefault(name, add_rows(f[name])) and "added")
                walk.tried(f"{name} attribute", lambda: f[name].attrs.create("judged", numpy.arange(8)))
            walk.tried("/ group", lambda: f.create_group("judged/group").attrs.create("x", b"y" * 100))
        again = Walk(there)
        with h5py.File(there, "r") as f:
            for name, rows in grown.items():
                if rows:
                    walk.tried(f"{name} grown", lambda: (f[name].shape[0] == rows[1]
                               and not any(f[name][rows[0]:].tobytes()) and "read"))
        for name in walk.datasets:
            if not grown.get(name):
                walk.found[f"{name} data again"] = again.found.get(f"{name} data")
    finally:
        os.unlink(there)


def answer(path, appends):
    try:
        walk = Walk(path)
    except Exception as e:
        return {"": f"{REFUSED}{type(e).__name__}: {e}"}
    if appends:
        walk.tried("copy", append, path, walk)
    return walk.found


def main():
    for line in sys.stdin:
        question = json.loads(line)
        print(json.dumps(answer(question["path"], question["append"])), flush=True)


if __name__ == "__main__":
    main()
