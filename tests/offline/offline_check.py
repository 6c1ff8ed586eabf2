"""h5fs --check: finds every byte that is changed in checksummed metadata and says which structure it is in; finds what has
no checksum but cannot be right; and says nothing of sound files."""
import os
import random
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

import h5py
import numpy

from mountlib import lookup3

H5FS = os.environ.get("H5FS", "src/h5fs")
DATA = os.environ["H5FS_TEST_DATA"]
DAMAGED, UNSUPPORTED = 4, 6
SEED = os.environ.get("H5FS_CHECK_SEED", "1")
EACH = 2  # changed bytes of a structure
OF_A_KIND = 1  # structures of a kind in one file: to find how long one is takes most of the time

# What the specification calls them, as far as an error must say it: where the signature is damaged, a block of a heap or
# of an extensible array cannot be told from its brothers.
NAMES = {
    b"OHDR": "object header", b"OCHK": "object header", b"FRHP": "fractal heap", b"FHDB": "fractal heap",
    b"FHIB": "fractal heap", b"BTHD": "version 2 B-tree header", b"BTIN": "version 2 B-tree node",
    b"BTLF": "version 2 B-tree node", b"FAHD": "fixed array header", b"FADB": "fixed array data block",
    b"EAHD": "extensible array header", b"EAIB": "extensible array index block",
    b"EASB": "extensible array super block", b"EADB": "extensible array data block",
    b"FSHD": "free-space manager", b"FSSE": "free-space section list", b"SMTB": "shared message table",
    b"SMLI": "shared message list", b"\x89HDF": "superblock",
}
LENGTHS = 256, 1024, 4096

FILES = ["rare_heaps_88_deflate", "rare_heaps_24", "object_shared", "rare_layout4_48", "rare_layout5_88",
         "rare_sohm_24_plain", "rare_library_24latest", "structured_extensible_now_filtered", "crash_bthd",
         "dataset_latest", "header_edit_block", "virtual_block_3"]


def prefix_hashes(data):
    """Bob Jenkins' lookup3 of data[:n] for each n from 1 on, side by side."""
    lengths = numpy.arange(1, len(data) + 1, dtype=numpy.uint64)
    padded = numpy.frombuffer(data + bytes(12 - len(data) % 12), "<u4").astype(numpy.uint64)
    low = numpy.uint64(0xFFFFFFFF)
    a = (lengths + numpy.uint64(0xDEADBEEF)) & low
    b, c = a.copy(), a.copy()

    def rot(x, k):
        return (x << numpy.uint64(k) | x >> numpy.uint64(32 - k)) & low

    def word(n, i, length):
        """The word i of the last block, which ends with the data."""
        left = numpy.clip(length.astype(numpy.int64) - (12 * n + 4 * i), 0, 4).astype(numpy.uint64)
        mask = (numpy.uint64(1) << (left * numpy.uint64(8))) - numpy.uint64(1)
        return padded[3 * n + i] & mask

    result = numpy.zeros(len(data), numpy.uint64)
    for n in range((len(data) + 11) // 12):
        last = (lengths > 12 * n) & (lengths <= 12 * n + 12)
        x, y, z = ((v[last] + word(n, i, lengths[last])) & low for i, v in enumerate((a, b, c)))
        for target, other, k in ("zy", "y", 14), ("xz", "z", 11), ("yx", "x", 25), ("zy", "y", 16), ("xz", "z", 4), \
                ("yx", "x", 14), ("zy", "y", 24):
            v = {"x": x, "y": y, "z": z}
            changed = ((v[target[0]] ^ v[target[1]]) - rot(v[other], k)) & low
            x, y, z = (changed if name == target[0] else v[name] for name in "xyz")
        result[last] = z
        a, b, c = ((v + padded[3 * n + i]) & low for i, v in enumerate((a, b, c)))
        a, c = (a - c & low) ^ rot(c, 4), (c + b) & low
        b, a = (b - a & low) ^ rot(a, 6), (a + c) & low
        c, b = (c - b & low) ^ rot(b, 8), (b + a) & low
        a, c = (a - c & low) ^ rot(c, 16), (c + b) & low
        b, a = (b - a & low) ^ rot(a, 19), (a + c) & low
        c, b = (c - b & low) ^ rot(b, 4), (b + a) & low
    return result.astype(numpy.uint32)


def block_length(piece, sizes):
    """The checksum of a direct block is in front, of the whole block with zeros in its place."""
    for place in range(5 + sizes + 1, 5 + sizes + 9):
        hashes = prefix_hashes(piece[:place] + bytes(4) + piece[place + 4:])
        stored, = struct.unpack_from("<I", piece, place)
        for n in (1 << k for k in range(6, len(piece).bit_length())):
            if hashes[n - 1] == stored:
                return n
    return None


def plain_length(piece):
    stored = numpy.lib.stride_tricks.sliding_window_view(numpy.frombuffer(piece, "u1"), 4)
    stored = numpy.ascontiguousarray(stored).view("<u4").ravel()
    equal = numpy.nonzero(prefix_hashes(piece)[7:len(piece) - 4] == stored[8:])[0]
    return int(equal[0]) + 8 + 4 if len(equal) else None


def length_of(content, at, sizes):
    """Bytes of the checksummed structure that begins there; None: the bytes only look like one."""
    for most in LENGTHS:
        piece = content[at:at + most]
        if len(piece) < 64:
            piece += bytes(64)
        n = block_length(piece, sizes) if content[at:at + 4] == b"FHDB" else plain_length(piece)
        if n:
            return n
    return None


def structures(content):
    """(signature, offset, length) of all, at most OF_A_KIND of a kind."""
    sizes = content[9] if content[8] >= 2 else content[13]
    count = {}
    if content[8] >= 2:
        yield b"\x89HDF", 0, 16 + 4 * sizes
    for m in re.finditer(b"|".join(s for s in NAMES if s != b"\x89HDF"), content):
        if count.get(m.group(), 0) == OF_A_KIND:
            continue
        n = length_of(content, m.start(), sizes)
        if n:
            count[m.group()] = count.get(m.group(), 0) + 1
            yield m.group(), m.start(), n


def check(path, *options):
    run = subprocess.run([H5FS, "--check", *options, path], capture_output=True, text=True, errors="surrogateescape", timeout=60)
    return run.returncode, run.stdout, run.stderr


class Check(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name="x.h5"):
        return os.path.join(self.folder, name)

    def assertSound(self, path):
        status, said, errors = check(path)
        self.assertEqual((status, errors), (0, ""), said)
        self.assertIn("no damage found", said)

    def test_every_changed_byte_of_checksummed_metadata(self):
        rng = random.Random(SEED)
        changed, kinds, files = 0, set(), 0
        for name in FILES + [self.make_free_space()]:
            source = name if os.path.isabs(name) else f"{DATA}/{name}.h5"
            with open(source, "rb") as f:
                content = f.read()
            self.assertSound(source)
            files += 1
            for signature, at, n in structures(content):
                if name not in FILES and signature not in (b"FSHD", b"FSSE"):
                    continue  # what was deleted there lies about
                kinds.add(signature)
                for place in {at, *rng.sample(range(at, at + n), min(EACH, n))}:
                    broken = bytearray(content)
                    broken[place] ^= rng.randrange(1, 256)
                    with open(self.path(), "wb") as f:
                        f.write(broken)
                    status, said, errors = check(self.path())
                    about = f"{source}, {signature} at {at}, byte {place - at} of {n}: {said}{errors}"
                    if place < 8:  # HDF5's signature: no HDF5 file any more
                        self.assertEqual(status, 3, about)
                        continue
                    self.assertIn(status, (DAMAGED, UNSUPPORTED), about)
                    self.assertIn(NAMES[signature], said + errors, about)
                    changed += 1
        self.assertGreaterEqual(files, 10)
        self.assertGreaterEqual(changed, 200)
        self.assertEqual(set(NAMES) - kinds, set())

    def make_free_space(self):
        """A file with persistent free-space managers."""
        path = self.path("free.h5")
        with h5py.File(path, "w", libver="v110", fs_strategy="fsm", fs_persist=True) as f:
            for i in range(20):
                f[f"d{i}"] = numpy.arange(1000 + i)
        with h5py.File(path, "a") as f:
            for i in range(0, 20, 3):
                del f[f"d{i}"]
        return path

    def test_changed_pages_of_chunk_indexes(self):
        """They have no signature, but a checksum each."""
        for name, row in ("crash_fa_pages", 1000), ("crash_ea_pages", 132_000):
            shutil.copy(f"{DATA}/{name}.h5", self.path())
            with h5py.File(self.path()) as f:
                stored, = (d.id.get_chunk_info_by_coord((row, 0)).byte_offset for d in f.values())
            self.assertSound(self.path())
            with open(self.path(), "r+b") as f:
                content = f.read()
                at = content.index(struct.pack("<Q", stored))
                f.seek(at + 1)
                f.write(bytes([content[at + 1] ^ 1]))
            status, said, errors = check(self.path())
            self.assertEqual(status, DAMAGED, said + errors)
            self.assertRegex(said, r"chunk index page: wrong checksum")

    def test_a_changed_cache_image(self):
        """It holds what the file would: without it there is no file."""
        with open(f"{DATA}/rare_image_library.h5", "rb") as f:
            content = f.read()
        for place in 5, 30, 200, 5000:
            at = content.index(b"MDCI") + place
            with open(self.path(), "wb") as f:
                f.write(content[:at] + bytes([content[at] ^ 1]) + content[at + 1:])
            status, said, errors = check(self.path())
            self.assertEqual((status, said), (DAMAGED, ""))
            self.assertIn("cache image: wrong checksum", errors)

    def test_space_that_is_recorded_as_free(self):
        """The next writer would overwrite what is in it."""
        with h5py.File(self.path(), "w", libver="latest", fs_strategy="fsm", fs_persist=True, fs_threshold=1) as f:
            f["data"], f["text"], f["gone"] = numpy.arange(100), "a value", numpy.arange(1000)
        with h5py.File(self.path(), "r+") as f:
            del f["gone"]
            address, place = h5py.h5o.get_info(f["data"].id).addr, f["data"].id.get_offset()
        self.assertSound(self.path())
        with open(self.path(), "rb") as f:
            content = bytearray(f.read())
        # The header of the file's manager leads to the list, which begins with a count, a size and the address of a section.
        header = next(m.start() for m in re.finditer(b"FSHD", content) if content[m.start() + 5] == 1)
        begin, size = struct.unpack_from("<QQ", content, header + 54)
        for at, said_of_it in ((place, f"space of the object at {address} is recorded as free"),
                               (content.index(b"GCOL"), "values in the global heap is recorded as free"),
                               (begin, "space of the file's own structures is recorded as free")):
            struct.pack_into("<Q", content, begin + 22, at)
            struct.pack_into("<I", content, begin + size - 4, lookup3(bytes(content[begin:begin + size - 4])))
            with open(self.path(), "wb") as f:
                f.write(content)
            status, said, errors = check(self.path())
            self.assertEqual((status, errors), (DAMAGED, ""), said)
            self.assertIn(said_of_it, said)

    def test_what_looks_like_values_at_the_end(self):
        """There is less of it than a collection begins with."""
        with h5py.File(self.path(), "w", libver="earliest") as f:
            f["data"] = numpy.arange(3)
        with open(self.path(), "rb") as f:
            content = bytearray(f.read())
        unused = re.search("nothing refers to .*", check(self.path())[1])[0]
        end, = struct.unpack_from("<Q", content, 40)
        for n in 4, 8, 15:
            struct.pack_into("<Q", content, 40, end + n)
            with open(self.path(), "wb") as f:
                f.write(content + b"GCOL\1".ljust(n, b"\0")[:n])
            status, said, errors = check(self.path())
            self.assertEqual((status, errors), (0, ""))
            self.assertIn(unused, said)

    def test_what_is_too_large_does_not_end_it(self):
        with h5py.File(self.path(), "w", libver="latest") as f:
            f.create_dataset("a", data=numpy.arange(1000), chunks=(1000,), compression=1)
            f.create_dataset("b", (3,), numpy.dtype([("text", h5py.string_dtype()), ("bytes", "V20000000")]))
            f.create_dataset("c", data=numpy.arange(20), chunks=(20,), fletcher32=True)
            place = f["c"].id.get_chunk_info(0).byte_offset
        for damaged, expected in (False, UNSUPPORTED), (True, DAMAGED):
            if damaged:
                with open(self.path(), "r+b") as f:
                    f.seek(place)
                    f.write(b"x")
            status, said, errors = check(self.path(), "-o", "max_chunk=4000")
            self.assertEqual((status, errors), (expected, ""))
            self.assertRegex(said, r"/a: a chunk of 8000 bytes; max_chunk is 4000 at address")
            self.assertRegex(said, r"/b: an element of 200000\d\d bytes at address")
            self.assertEqual("/c: " in said, damaged)
            self.assertIn("2 that this version cannot verify", said)

    def test_elements_that_are_not_stored(self):
        """A few bytes say that there are 10^12."""
        with h5py.File(self.path(), "w") as f:
            f.create_dataset("never", (10**12,), h5py.string_dtype())
            d = f.create_dataset("one", (10**12,), h5py.string_dtype(), chunks=(100,), fillvalue="")
            d[10**11] = "a word"
        self.assertSound(self.path())
        with open(self.path(), "rb") as f:
            content = f.read()
        with open(self.path(), "wb") as f:
            f.write(content.replace(b"GCOL", b"gcol"))
        status, said, errors = check(self.path())
        self.assertEqual((status, errors), (DAMAGED, ""))
        self.assertRegex(said, "/one: global heap")

    def test_files_that_are_not_whole(self):
        with h5py.File(self.path("member%d.h5"), "w", driver="family", memb_size=4096) as f:
            f["d"] = numpy.arange(10_000)
        self.assertSound(self.path("member0.h5"))
        os.unlink(self.path("member3.h5"))
        status, said, _ = check(self.path("member0.h5"))
        self.assertEqual(status, DAMAGED)
        self.assertRegex(said, r"\(superblock\): missing: .*member3\.h5")
        with h5py.File(self.path(), "w") as f:
            f["d"] = numpy.arange(10_000)
        size = os.path.getsize(self.path())
        os.truncate(self.path(), size - 1)
        status, said, _ = check(self.path())
        self.assertEqual(status, DAMAGED)
        self.assertIn(f"(superblock): truncated: {size - 1} bytes of {size}", said)
        for left in 30, 13, 9, 8:
            os.truncate(self.path(), left)
            self.assertRegex(check(self.path())[2], "superblock: truncated")

    def test_names_write_nothing_of_their_own(self):
        with h5py.File(self.path(), "w") as f:
            d = f.create_dataset("x\x1b[31m\nall: no damage\\", data=numpy.arange(10), chunks=(10,), fletcher32=True)
            place = d.id.get_chunk_info(0).byte_offset
        with open(self.path(), "r+b") as f:
            f.seek(place)
            f.write(b"x")
        status, said, errors = check(self.path())
        self.assertEqual((status, errors), (DAMAGED, ""))
        self.assertEqual(said.count("\n"), 2)
        self.assertTrue(said.startswith(r"/x\033[31m\012all: no damage\134: chunk: fletcher32"), said)

    def test_damage_that_no_checksum_guards(self):
        with h5py.File(self.path(), "w", libver="earliest") as f:
            f.create_dataset("d", data=numpy.arange(100), chunks=(10,), fletcher32=True)
            f["strings"] = numpy.array(["some", "words"], dtype=h5py.string_dtype())
            f["group/inner"] = 1
            f.attrs["list"] = numpy.array(["of", "words"], dtype=h5py.string_dtype())
            chunk = f["d"].id.get_chunk_info(3)
        self.assertSound(self.path())
        with open(self.path(), "rb") as f:
            content = f.read()
        for what, at, path, said in (
                ("a byte of a chunk", chunk.byte_offset + 5, "/d", "fletcher32"),
                ("a collection's signature", content.index(b"GCOL"), "/", "global heap"),
                ("a symbol table node", content.rindex(b"SNOD"), "/", "symbol table node"),
                ("a B-tree's level", content.rindex(b"TREE") + 5, "/", "B-tree"),
                ("a heap's signature", content.rindex(b"HEAP"), "/", "local heap")):
            broken = bytearray(content)
            broken[at] ^= 0x55
            with open(self.path("broken.h5"), "wb") as f:
                f.write(broken)
            with self.subTest(what):
                status, lines, _ = check(self.path("broken.h5"))
                self.assertEqual(status, DAMAGED, lines)
                self.assertRegex(lines, f"(?m)^{path}.*: .*{said}.* at address [0-9]+$")

    def test_counts_of_links(self):
        """A count that is too low is damage, since the object goes before its last name; one that is too high is told."""
        with h5py.File(self.path(), "w", libver="earliest") as f:
            f["group/d"] = numpy.arange(3)
            f["group/again"] = f["other"] = f["group/d"]
            f["type"] = numpy.dtype("<f4")
            f.create_dataset("typed", (2,), f["type"]).attrs.create("a", 1, dtype=f["type"])
            addresses = [h5py.h5o.get_info(f[name].id).addr for name in ("group/d", "type", "group", "/")]
            counts = [h5py.h5o.get_info(f[name].id).rc for name in ("group/d", "type", "group", "/")]
        self.assertEqual(counts, [3, 3, 1, 1])
        self.assertSound(self.path())
        with open(self.path(), "rb") as f:
            sound = f.read()
        for address, count in zip(addresses, counts):
            for wrong in 0, count - 1, count + 1, 1 << 31:
                with self.subTest(count=count, wrong=wrong), open(self.path(), "wb") as f:
                    f.write(sound)
                    f.seek(address + 4)
                    f.write(struct.pack("<I", wrong))
                    f.flush()
                    status, said, errors = check(self.path())
                    self.assertEqual((status, errors), (DAMAGED if wrong < count else 0, ""), said)
                    self.assertIn(f"object header: counts {wrong} links to it, but there are {count}", said)
                    self.assertIn(f"at address {address}", said)
                    self.assertEqual(", 1 counts that are too high;" in said, wrong > count)

    def test_index_that_does_not_find_its_links(self):
        with h5py.File(self.path(), "w", libver="latest") as f:
            for i in range(50):
                f[f"link {i}"] = h5py.SoftLink("/nowhere")
        self.assertSound(self.path())
        with open(self.path(), "rb") as f:
            content = bytearray(f.read())
        # The first record of the leaf gets another hash, and the leaf its right checksum.
        at = content.index(b"BTLF")
        n = length_of(bytes(content), at, 8)
        content[at + 6] ^= 0x01
        struct.pack_into("<I", content, at + n - 4, int(prefix_hashes(bytes(content[at:at + n - 4]))[-1]))
        with open(self.path(), "wb") as f:
            f.write(content)
        status, said, _ = check(self.path())
        self.assertEqual(status, DAMAGED, said)
        self.assertIn("/: group: the index does not find the link link ", said)

    def test_every_finding_is_told(self):
        with h5py.File(self.path(), "w") as f:
            f.create_dataset("a/d", data=numpy.arange(100), chunks=(10,), fletcher32=True)
            f.create_dataset("e", data=numpy.arange(100), chunks=(10,), fletcher32=True)
            chunks = [f[d].id.get_chunk_info(i).byte_offset for d in ("e", "a/d") for i in (1, 7)]
        with open(self.path(), "r+b") as f:
            for at in chunks:
                f.seek(at)
                f.write(b"\xff")
        status, said, _ = check(self.path())
        self.assertEqual(status, DAMAGED)
        lines = said.splitlines()
        self.assertEqual([line.split(": ")[0] for line in lines[:-1]], ["/e", "/e", "/a/d", "/a/d"])
        self.assertEqual([int(line.rsplit(" ", 1)[1]) for line in lines[:-1]], chunks)
        self.assertEqual(lines[-1], f"{self.path()}: 4 objects, 20 chunks decoded: 4 damaged; "
                         "how many bytes nothing refers to is not certain")

    def test_what_cannot_be_verified_is_no_damage(self):
        with h5py.File(self.path(), "w") as f:
            d = f.create_dataset("d", shape=(10,), chunks=(10,), dtype="i4", compression="gzip")
            d.id.write_direct_chunk((0,), bytes(40))
        with open(self.path(), "rb") as f:
            content = bytearray(f.read())
        at = content.index(b"deflate\0")
        struct.pack_into("<H", content, at - 8, 4321)
        with open(self.path(), "wb") as f:
            f.write(content)
        status, said, _ = check(self.path())
        self.assertEqual(status, UNSUPPORTED)
        self.assertRegex(said, "^/d: .*filter 4321.* at address")
        self.assertIn("no damage found, 1 that this version cannot verify", said)

    def test_no_hdf5_file(self):
        with open(self.path(), "w") as f:
            f.write("text")
        self.assertEqual(check(self.path())[0], 3)
        self.assertEqual(check(self.path("nothing"))[0], 3)
        run = subprocess.run([H5FS, "--check", self.path(), self.folder], capture_output=True, text=True)
        self.assertEqual(run.returncode, 2)

    def test_the_file_stays_as_it_is(self):
        with h5py.File(self.path(), "w") as f:
            f["d"] = 1
        def state():
            with open(self.path(), "rb") as f:
                return os.stat(self.path()).st_mtime_ns, f.read()

        before = state()
        self.assertSound(self.path())
        self.assertEqual(state(), before)


if __name__ == "__main__":
    unittest.main()
