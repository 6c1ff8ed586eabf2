"""The data of the benchmark: made once, kept between runs. Each file has one dataset, `data`; FILE.raw has its bytes."""
import math
import os
import shutil

import h5py
import numpy

import remote
import small
from processes import run

CHUNK = 256  # x 256 elements
RANDOM_READ = 4096
GROUP = 1000  # objects in each
ROW = 1024  # bytes, of what is appended
LINE = 20  # bytes of a line of text

KINDS = {  # libver, maxshape
    "farray": ("latest", lambda n: None),
    "earray": ("latest", lambda n: (None, n)),
    "btree2": ("latest", lambda n: (None, None)),
    "btree1": ("earliest", lambda n: None),
}


class Data:
    def __init__(self, folder, scale, libhdf5):
        self.folder = os.path.join(folder, "data", f"{scale:g}")
        self.scale = scale
        self.libhdf5 = libhdf5
        self.side = max(4, round(32 * math.sqrt(scale))) * CHUNK  # 8192 x 8192 float32: 256 MiB
        self.objects = max(GROUP, round(90 * scale) * GROUP)
        self.tiny_chunks = max(2048, round(2e6 * scale))
        self.many_chunks = max(4096, round(1e7 * scale))
        self.column = max(500_000, round(40e6 * scale))
        self.remote_bytes = max(16 << 20, round(scale * (1 << 30)))
        self.rows = max(256, round(50_000 * scale))
        self.lines = max(50_000, round(1e6 * scale))
        self.small_files = max(100, round(100 * scale) * 100)
        self.synced_rows = max(20, round(1000 * scale))
        os.makedirs(self.folder, exist_ok=True)

    def file(self, name):
        """The path of a file, which is made by the method of that name if it is not there yet."""
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            base, _, rest = name.partition("-")
            maker = getattr(self, "make_" + base.replace(".", "_"))
            maker(path + ".part", *([rest.removesuffix(".h5")] if rest else []))
            os.rename(path + ".part", path)
        return path

    def field(self):
        """Measured values, so to say: smooth, with noise."""
        noise = numpy.random.default_rng(5)
        x = numpy.arange(self.side, dtype="f4") / 300
        for i in range(0, self.side, CHUNK):
            y = numpy.arange(i, i + CHUNK, dtype="f4")[:, None] / 200
            yield 20 * numpy.sin(x) * numpy.cos(y) + 0.05 * noise.standard_normal((CHUNK, self.side), dtype="f4")

    def make_field_npy(self, path):
        with open(path, "wb") as f:
            numpy.save(f, numpy.fromfile(self.file("field.raw"), "<f4").reshape(self.side, self.side))

    def make_field_raw(self, path):
        with open(path, "wb") as f:
            for band in self.field():
                f.write(band.astype("<f4").tobytes())

    def write_integers(self, path, name, chunks, **options):
        """The integers of NAME.raw, which has its shape from cube() or slabs()."""
        shape = getattr(self, name)()
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("data", data=numpy.memmap(self.file(name + ".raw"), "<i2", "r", shape=shape), chunks=chunks, **options)

    def make_integers(self, path, shape):
        """Counts, so to say: smooth, with noise."""
        noise = numpy.random.default_rng(8)
        plane = 3000 + 2000 * numpy.sin(numpy.arange(shape[2]) / 90) * numpy.cos(numpy.arange(shape[1])[:, None] / 70)
        with open(path, "wb") as f:
            for i in range(shape[0]):
                f.write((plane + 5 * i + noise.normal(0, 8, shape[1:])).astype("<i2").tobytes())

    def cube(self):
        return (20 * max(1, round(20 * self.scale ** (1 / 3))),) * 3

    def slabs(self):
        return max(1, round(8 * self.scale)) * 8, 1030, 1030

    def make_cube_raw(self, path):
        self.make_integers(path, self.cube())

    def make_cube_h5(self, path):
        self.write_integers(path, "cube", (20, 20, 20), compression=4, shuffle=True)

    def make_slabs_raw(self, path):
        self.make_integers(path, self.slabs())

    def make_slabs_h5(self, path):
        self.write_integers(path, "slabs", (8, 103, 103))

    def make_small(self, path):
        rng = numpy.random.default_rng(3)
        for i in range(self.small_files):
            folder = os.path.join(path, str(i // 100))
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, f"file{i}"), "wb") as f:
                f.write(rng.bytes(1024))

    def make_lines_txt(self, path):
        """All lines are of one length."""
        with open(path, "w") as f:
            f.writelines(f"line {i:{LINE - 6}}\n" for i in range(self.lines))

    def raw_field(self):
        return numpy.memmap(self.file("field.raw"), "<f4", "r", shape=(self.side, self.side))

    def create(self, path, libver="latest", **options):
        file = h5py.File(path, "w", libver=libver)
        return file, file.create_dataset("data", (self.side, self.side), "<f4", **options)

    def write_field(self, path, **options):
        field = self.raw_field()
        file, dataset = self.create(path, **options)
        with file:
            for i in range(0, self.side, CHUNK):
                dataset[i:i + CHUNK] = field[i:i + CHUNK]

    def make_contiguous_h5(self, path):
        self.write_field(path)

    def make_chunks_h5(self, path):
        self.write_field(path, chunks=(CHUNK, CHUNK))

    def make_lzf_h5(self, path):
        self.write_field(path, chunks=(CHUNK, CHUNK), compression="lzf", shuffle=True)

    def make_deflate(self, path, kind):
        """The chunks are the same with each index; they are compressed once."""
        libver, maxshape = KINDS[kind]
        options = {"chunks": (CHUNK, CHUNK), "compression": 4, "shuffle": True}
        if kind == "farray":
            self.write_field(path, **options)
            return
        file, dataset = self.create(path, libver, maxshape=maxshape(self.side), **options)
        with file, h5py.File(self.file("deflate-farray.h5")) as source:
            for i in range(0, self.side, CHUNK):
                for j in range(0, self.side, CHUNK):
                    mask, chunk = source["data"].id.read_direct_chunk((i, j))
                    dataset.id.write_direct_chunk((i, j), chunk, mask)

    def make_tiny_h5(self, path):
        run(self.libhdf5, "make", path, 16 * self.tiny_chunks, 16, "all")

    def make_tiny_raw(self, path):
        numpy.arange(16 * self.tiny_chunks, dtype="<i4").tofile(path)

    def make_many_h5(self, path):
        run(self.libhdf5, "make", path, 4 * self.many_chunks, 4, "middle")

    def make_tree_h5(self, path):
        """Datasets of ten numbers in groups, in the format that h5py writes by default."""
        values = numpy.arange(10, dtype="<f4")
        with h5py.File(path, "w") as f:
            space = h5py.h5s.create_simple((10,))
            kind = h5py.h5t.IEEE_F32LE
            for i in range(self.objects // GROUP):
                group = f.create_group(f"group{i:03}").id
                for j in range(GROUP):
                    h5py.h5d.create(group, b"dataset%03d" % j, kind, space).write(space, space, values)

    def make_small_datasets_h5(self, path):
        small.make_datasets(path, self.small_files)

    def make_small_attributes_h5(self, path):
        small.make_attributes(path, self.small_files // 5)

    def make_remote_group_h5(self, path):
        remote.make_group(path, GROUP)

    def make_remote_btree1_h5(self, path):
        remote.make_btree1(path, self.tiny_chunks)

    def make_remote_contiguous_h5(self, path):
        remote.make_contiguous(path, self.remote_bytes)

    def make_remote_columns_h5(self, path):
        remote.make_columns(path, self.column)

    def make_tree_squashfs(self, path):
        top = self.file("tree")
        run("mksquashfs", top, path, "-no-progress", "-quiet", "-noappend")
        shutil.rmtree(top)

    def make_tree(self, path):
        content = numpy.arange(10, dtype="<f4").tobytes()
        for i in range(self.objects // GROUP):
            os.makedirs(f"{path}/group{i:03}")
            for j in range(GROUP):
                with open(f"{path}/group{i:03}/dataset{j:03}", "wb") as f:
                    f.write(content)

    def offsets(self, name, numbers):
        path = os.path.join(self.folder, name)
        numpy.savetxt(path, numbers, "%d")
        return path

    def chunk_places(self, path):
        """A list of where the chunks of a dataset lie in its file, in its order, and the bytes of a chunk."""
        with h5py.File(path) as f:
            dataset = f["data"].id
            size = math.prod(f["data"].chunks) * f["data"].dtype.itemsize
            chunks = [dataset.get_chunk_info(i) for i in range(dataset.get_num_chunks())]
        return self.offsets(os.path.basename(path) + ".chunks", [(c.byte_offset, c.size) for c in chunks]), size

    @staticmethod
    def is_deflated(path):
        with h5py.File(path) as f:
            return f["data"].compression == "gzip"

    def random_offsets(self, count):
        """Anywhere in the field, aligned as reads of programs are."""
        places = numpy.random.default_rng(6).integers(0, self.side * self.side * 4 // RANDOM_READ, count)
        return self.offsets(f"random-{count}.txt", places * RANDOM_READ)

    def first_touch_offsets(self):
        """One place in each run of chunks that a read spans, in random order: no chunk is needed twice."""
        wide = RANDOM_READ // 4
        random = numpy.random.default_rng(7)
        places = [((i + random.integers(CHUNK)) * self.side + j) * 4
                  for i in range(0, self.side, CHUNK) for j in range(0, self.side // wide * wide, wide)]
        return self.offsets("first-touch.txt", random.permutation(places))

    def empty(self, path, deflated):
        """A new file for rows to be appended to."""
        filters = {"compression": 4, "shuffle": True} if deflated else {}
        with h5py.File(path, "w", libver="latest") as f:
            f.create_dataset("data", (0, ROW // 4), "<f4", maxshape=(None, ROW // 4), chunks=(CHUNK, ROW // 4), **filters)
