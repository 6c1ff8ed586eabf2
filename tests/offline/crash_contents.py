#!/usr/bin/python3
"""What a crash leaves of contents at any instant. Files are made, written, declared, cut, punched, replaced and removed, datasets of all
layouts and indexes and groups of all storage forms go, attributes come, change and go, and their space is used again, without FUSE
(tests/lib/vfs_shell.c). Then the files are made up that a kill or a power cut may leave, and libhdf5 reads each as a whole: every object
and attribute that the last acknowledged commit had, and that nothing has changed since, is there as it was; what has changed is as before
or as after.

tests/lib/crashlib.py has the variables that say how much is looked at."""
import os
import random
import unittest

import h5py
import numpy as np

import crashlib

REQUESTS = int(os.environ.get("H5FS_CRASH_REQUESTS", "130"))
EXCHANGE_NAME = ".h5fs-exchange-"
EXCHANGE = 2
FILES = 6  # open at once
SIZES = (0, 1, 100, 700, 3000, 9000, 40_000, 100_000)
LARGE = 130_000  # chunks; of such a dataset only the end is looked at
UNLIMITED = h5py.h5s.UNLIMITED
EINVAL, EPERM, EBUSY, ENOTSUP = 22, 1, 16, 95
STYLES = {
    "symbol tables": dict(libver="earliest"),
    "superblock 2": dict(libver=("v108", "v108")),
    "latest": dict(libver="latest"),
    "tracked": dict(libver="latest", track_order=True),
}

# ---- the files ----


def low_level(f, name, shape, chunks=None, maxshape=None, early=False, compact=False):
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if chunks:
        how.set_chunk(chunks)
    if early:
        how.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    if compact:
        how.set_layout(h5py.h5d.COMPACT)
    d = h5py.Dataset(h5py.h5d.create(f.id, name.encode(), h5py.h5t.STD_I32LE, h5py.h5s.create_simple(shape, maxshape), how))
    d[...] = 7


def make_datasets(f):
    data = np.arange(30 * 20, dtype="<i4").reshape(30, 20)
    f["scalar"] = 5
    low_level(f, "compact", (8,), compact=True)
    f["contiguous"] = np.arange(1000)
    f.create_dataset("nothing", (10,), "<i4")
    f["texts"] = np.array(["some", "text of more bytes"], dtype=h5py.string_dtype())
    f["type"] = np.dtype("<i4")
    f.create_dataset("typed", (9,), f["type"], data=np.arange(9))
    for name, filters in ("", {}), ("-filtered", dict(compression=4, shuffle=True)):
        f.create_dataset("single" + name, data=data, chunks=data.shape, **filters)
        f.create_dataset("fixed" + name, data=data, chunks=(7, 9), **filters)
        f.create_dataset("paged" + name, (1300,), "u1", chunks=(1,), **filters)[1000:1100] = 1
        f.create_dataset("growing" + name, data=data, chunks=(3, 20), maxshape=(None, 20), **filters)
        f.create_dataset("tree" + name, data=data, chunks=(3, 20), maxshape=(None, None), **filters)
        f.create_dataset("super" + name, (1200,), "u1", chunks=(1,), maxshape=(None,), **filters)[::5] = 1
        f.create_dataset("large tree" + name, (300, 3), "<i4", chunks=(1, 2), maxshape=(None, None), data=np.arange(900).reshape(300, 3), **filters)
    f.create_dataset("super-paged", (140_000,), "u1", chunks=(1,), maxshape=(None,))[139_990:] = 1
    low_level(f, "implicit", (20, 30), (7, 8), early=True)
    low_level(f, "early", (20, 30), (7, 8), (UNLIMITED, 30), early=True)


def make_groups(f, **options):
    for name, links in ("empty", 0), ("small", 3), ("seven", 7), ("eight", 8), ("many", 60):
        g = f.create_group(name, **options)
        for i in range(links):
            g["link of some length %u" % i] = h5py.SoftLink("/" + "x" * (i % 50))
    for i in range(7):
        f["seven"].create_dataset(f"data {i}", data=np.arange(i + 1, dtype="u1"), maxshape=(None,), chunks=(16,))


def make_attributes(f, dense, **options):
    for name, count in ("few", 3), ("eight", 8), ("more", 40):
        g = f.create_group(name + " attributes", **options)
        for i in range(count):
            g.attrs[f"a{i}"] = "text %u" % i if i % 3 else np.int64(i)
        g.attrs["array"] = np.arange(20)
        g.attrs.create("typed", 5, dtype=f["type"])
    if dense:
        for i in range(3):
            f["more attributes"].attrs["huge %u" % i] = np.arange(9000 + i)
    d = f.create_dataset("with attributes", data=np.arange(10), chunks=(2,), maxshape=(None,))
    for i in range(12):
        d.attrs[f"a{i}"] = "text %u" % i


def make(path, options):
    """The file, and the model of it."""
    track = {key: value for key, value in options.items() if key == "track_order"}
    with h5py.File(path, "w", **options) as f:
        make_datasets(f)
        make_groups(f, **track)
        make_attributes(f, options["libver"] != "earliest", **track)
    with open(path, "rb") as f:
        return Model.of(f.read())


# ---- what there is ----


def canonical(value):
    if isinstance(value, (int, float, np.integer, np.floating)):
        return str(float(value))
    return value if isinstance(value, str) else (str(value.dtype), value.tobytes()) if hasattr(value, "dtype") else repr(value)


def bytes_of(d):
    if d.size > LARGE and d.chunks == (1,):
        return d[-2000:].tobytes()
    if h5py.check_string_dtype(d.dtype):
        return repr(d[...].tolist()).encode()
    return d[...].tobytes()


class Object:
    """What is known of an object. It is never changed: another one takes its place."""

    def __init__(self, number, kind, data=None, attributes=None, row=0, rows_max=0, plain=False, over=0):
        self.number, self.kind, self.data, self.attributes = number, kind, data, attributes or {}
        self.row = row  # bytes that dimension 0 grows by; 0: it cannot
        self.rows_max = rows_max
        self.plain, self.over = plain, over  # how often bytes were overwritten

    def but(self, **changes):
        new = Object.__new__(Object)
        new.__dict__.update(self.__dict__, **changes)
        return new


class Model:
    """Links: path to the number of an object, or a soft link's target."""

    def __init__(self):
        self.links, self.objects, self.last = {}, {}, 0

    def copy(self):
        other = Model()
        other.links, other.objects, other.last = dict(self.links), dict(self.objects), self.last
        return other

    def add(self, path, **what):
        self.last += 1
        self.objects[self.last] = Object(self.last, **what)
        self.links[path] = self.last
        return self.last

    @classmethod
    def of(cls, image):
        """All that libhdf5 finds in an image."""
        model, seen = cls(), {}
        with h5py.File(h5py.h5f.open_file_image(bytes(image))) as f:
            model.walk(f, "", seen)
            model.objects[0] = Object(0, "group", attributes=cls.attributes(f))
        return model

    @staticmethod
    def attributes(thing):
        return {name: canonical(value) for name, value in thing.attrs.items()} if len(thing.attrs) else {}

    def walk(self, group, prefix, seen):
        for name in group:
            path = prefix + name
            link = group.get(name, getlink=True)
            if isinstance(link, h5py.SoftLink):
                self.links[path] = link.path
                continue
            thing = group[name]
            address = h5py.h5o.get_info(thing.id).addr
            if address in seen:
                self.links[path] = seen[address]
                continue
            if isinstance(thing, h5py.Group):
                seen[address] = self.add(path, kind="group", attributes=self.attributes(thing))
                self.walk(thing, path + "/", seen)
            elif isinstance(thing, h5py.Dataset):
                row, most = 0, 0
                if thing.maxshape and thing.chunks and thing.maxshape[0] is None:
                    row = int(np.prod(thing.shape[1:])) * thing.dtype.itemsize
                seen[address] = self.add(path, kind="data", data=bytes_of(thing), attributes=self.attributes(thing), row=row, rows_max=most)
            else:
                seen[address] = self.add(path, kind="type", attributes=self.attributes(thing))

    def children(self, group):
        return [path for path in self.links if path.startswith(group + "/")] if group else list(self.links)

    def of_kind(self, kind):
        return [path for path, to in self.links.items() if not isinstance(to, str) and self.objects[to].kind == kind]

    def change(self, number, **changes):
        self.objects[number] = self.objects[number].but(**changes)


def mixed(found, states):
    """Each byte is of one of the states."""
    if len(found) not in {len(s.data) for s in states}:
        return False
    found = np.frombuffer(found, "u1")
    good = np.zeros(len(found), bool)
    for state in states:
        data = np.frombuffer(state.data, "u1")[:len(found)]
        good[:len(data)] |= data == found[:len(data)]
    return good.all()


def wrong_object(found, states):
    """Why the object is none of the states of one object; None: it is."""
    if found.kind != states[0].kind:
        return f"a {found.kind}"
    if found.kind == "data" and all(found.data != s.data for s in states):
        if len({s.over for s in states}) == 1 or not mixed(found.data, states):
            return f"{len(found.data)} bytes, of {sorted({len(s.data) for s in states})}, are none of the states"
    for name in {*found.attributes, *(name for s in states for name in s.attributes)}:
        values = [s.attributes.get(name) for s in states]
        if found.attributes.get(name) not in values:
            return f"attribute {name}: {str(found.attributes.get(name))[:80]} is none of {str(values)[:200]}"
    return None


def wrong(found, models):
    """What the file has that it must not have after a crash between these states, or lacks."""
    for path, to in found.links.items():
        if path.split("/")[0].startswith(EXCHANGE_NAME) or EXCHANGE_NAME in path:
            continue
        allowed = {m.links.get(path) for m in models} - {None}
        if isinstance(to, str):
            if to not in allowed:
                yield f"{path}: -> {to} was never there"
            continue
        numbers = {n for n in allowed if not isinstance(n, str)}
        if not numbers:
            yield f"{path} was never there"
            continue
        reasons = [wrong_object(found.objects[to], [m.objects[n] for m in models if n in m.objects]) for n in numbers]
        if None not in reasons:
            yield f"{path}: {reasons}"
    for path in set.intersection(*(set(m.links) for m in models)) - set(found.links):
        yield f"{path} is missing"
    reason = wrong_object(found.objects[0], [m.objects[0] for m in models])
    if reason:
        yield f"the root group: {reason}"


# ---- requests ----


def pattern(offset, n, seed):
    at = np.arange(offset, offset + n, dtype="u8")
    return (seed + 7 * at + 13 * (at // 256)).astype("u1").tobytes()


class Program:
    """Random requests, with what they do to the model."""

    def __init__(self, model, shell, chance):
        self.model, self.shell, self.chance = model, shell, chance
        self.files = {}  # number of a file to that of its object
        self.history, self.done, self.refused = [], {}, {}
        self.used = set()

    def ask(self, words, effect=lambda: None, errors=(), durable=False):
        """errors: those that are right, after which nothing has changed."""
        error, calls, _, _ = self.shell.ask(*words)
        if error not in (0, *errors):
            raise AssertionError(f"{words}: error {error}")
        counts = self.refused if error else self.done
        counts[words[0]] = counts.get(words[0], 0) + 1
        if not error:
            effect()
        self.history.append((calls, durable and not error, self.model.copy()))
        return not error

    def new_path(self):
        groups = [""] + [path + "/" for path in self.model.of_kind("group")]
        while True:
            path = self.chance.choice(groups) + "n%d%s" % (self.chance.randrange(1000), "x" * self.chance.choice((0, 0, 3, 40, 150)))
            if path not in self.model.links:
                return path

    def choose(self, paths):
        return self.chance.choice(paths) if paths else None

    def object_of(self, path):
        return self.model.objects[self.model.links[path]]

    # files

    def create(self):
        free = set(range(FILES)) - set(self.files)
        if not free:
            return self.close()
        number, path = min(free), self.new_path()

        def effect():
            self.files[number] = self.model.add(path, kind="data", data=b"", row=1, plain=True)
        if self.ask(["create", path, number], effect):
            size = self.chance.choice(SIZES)
            at = 0
            while at < size:
                n = min(size - at, self.chance.choice((size, 1000, 30_000)))
                self.write_at(number, at, n)
                at += n
            if self.chance.randrange(3):
                self.close(number)
        return None

    def write_at(self, number, offset, n):
        which, seed = self.files[number], self.chance.randrange(256)

        def effect():
            o = self.model.objects[which]
            data = o.data[:offset] + bytes(max(0, offset - len(o.data))) + pattern(offset, n, seed)
            self.model.change(which, data=data + o.data[len(data):], over=o.over + (offset < len(o.data)))
        self.ask(["write", number, offset, n, seed], effect)

    def written(self, path):
        """Can it be written, as raw bytes?"""
        o = self.object_of(path)
        return o.data is not None and path not in ("texts", "super-paged") and o.kind == "data" and not path.startswith("early")

    def open(self):
        free = set(range(FILES)) - set(self.files)
        path = self.choose([p for p in self.model.of_kind("data") if self.written(p)])
        if not free or not path:
            return self.close()
        number = min(free)

        def effect():
            self.files[number] = self.model.links[path]
        self.ask(["open", path, number, os.O_RDWR], effect)
        return self.write()

    def write(self):
        number = self.choose(sorted(self.files))
        if number is None:
            return
        o = self.model.objects[self.files[number]]
        if o.row and self.chance.randrange(2):
            self.write_at(number, len(o.data), o.row * self.chance.choice((1, 2, 5, 50)))
        elif o.data:
            offset = self.chance.randrange(len(o.data))
            self.write_at(number, offset, min(len(o.data) - offset, self.chance.choice((1, 40, 3000))))

    def resize(self):
        number = self.choose(sorted(self.files))
        if number is None:
            return
        which = self.files[number]
        o = self.model.objects[which]
        if not o.row:
            return
        size = self.chance.randrange(len(o.data) // o.row + 3) * o.row * self.chance.choice((0, 1, 1, 1))

        def effect():
            self.model.change(which, data=o.data[:size] + bytes(max(0, size - len(o.data))))
        self.ask(["resize", number, size], effect)

    def punch(self):
        number = self.choose(sorted(self.files))
        if number is None:
            return
        which = self.files[number]
        o = self.model.objects[which]
        if not o.data:
            return
        offset = self.chance.choice((0, self.chance.randrange(len(o.data))))
        n = min(self.chance.choice((1, 300, 5000, 1 << 20)), len(o.data) - offset)

        def effect():
            self.model.change(which, data=o.data[:offset] + bytes(n) + o.data[offset + n:], over=o.over + 1)
        self.ask(["punch", number, offset, n], effect)

    def close(self, number=None):
        number = self.choose(sorted(self.files)) if number is None else number
        if number is None:
            return
        self.ask(["close", number])
        del self.files[number]

    def fsync(self):
        number = self.choose(sorted(self.files))
        if number is not None:
            self.ask(["fsync", number], durable=True)

    # names

    def unlink(self, path=None):
        path = path or self.choose([p for p, to in self.model.links.items() if isinstance(to, str) or self.model.objects[to].kind != "group"])
        if path:
            self.ask(["unlink", path], lambda: self.model.links.pop(path))

    def remove_tree(self):
        """A group with all that is in it."""
        group = self.choose(self.model.of_kind("group"))
        if not group:
            return
        for path in sorted(self.model.children(group), reverse=True):
            if not isinstance(self.model.links[path], str) and self.object_of(path).kind == "group":
                self.ask(["rmdir", path], lambda path=path: self.model.links.pop(path))
            else:
                self.unlink(path)
        self.ask(["rmdir", group], lambda: self.model.links.pop(group))

    def mkdir(self):
        path = self.new_path()
        self.ask(["mkdir", path], lambda: self.model.add(path, kind="group"))

    def link(self):
        path, new = self.choose(self.model.of_kind("data")), self.new_path()

        def effect():
            self.model.links[new] = self.model.links[path]
        if path:
            self.ask(["link", path, new], effect)

    def symlink(self):
        path = self.new_path()

        def effect():
            self.model.links[path] = "target"
        self.ask(["symlink", "target", path], effect)

    def move(self, old, new):
        for path in [old] + self.model.children(old):
            self.model.links[new + path[len(old):]] = self.model.links.pop(path)

    def rename(self):
        old, new = self.choose(sorted(self.model.links)), self.new_path()
        if old and not new.startswith(old + "/"):
            self.ask(["rename", old, new, 0], lambda: self.move(old, new))

    def exchange(self):
        one, other = (self.choose(self.model.of_kind("data")) for _ in range(2))

        def effect():
            links = self.model.links
            links[one], links[other] = links[other], links[one]
        if one and one != other:
            self.ask(["rename", one, other, EXCHANGE], effect)

    def replace(self):
        """A plain file is moved onto a dataset, whose contents it becomes, or onto another plain file."""
        path = self.choose([p for p in self.model.of_kind("data") if self.object_of(p).plain and self.model.links[p] not in self.files.values()])
        target = self.choose([p for p in self.model.of_kind("data") if self.written(p)])
        if not path or path == target or ("super" in target and len(self.object_of(path).data) > 3000) or self.model.links[path] == self.model.links[target]:
            return
        data, o = self.object_of(path).data, self.object_of(target)

        def effect():
            which = self.model.links.pop(path)
            if o.plain:
                self.model.links[target] = which
            else:
                self.model.change(o.number, data=data, over=o.over + 1)
        self.ask(["rename", path, target, 0], effect, [EINVAL])

    # attributes

    def owner(self):
        return self.chance.choice([""] + self.model.of_kind("group") + self.model.of_kind("data") + self.model.of_kind("type"))

    def number_of(self, path):
        return self.model.links[path] if path else 0

    def set(self):
        path = self.owner()
        which = self.number_of(path)
        name = "b%d" % self.chance.randrange(12)
        old = self.model.objects[which].attributes.get(name)
        text = isinstance(old, str) and not old[:1].isdigit() if old is not None else self.chance.randrange(2)
        value = "t" * self.chance.choice((1, 10, 300, 3000, 30_000)) + str(self.chance.randrange(100)) if text else str(self.chance.randrange(10 ** 9))

        def effect():
            attributes = self.model.objects[which].attributes
            self.model.change(which, attributes={**attributes, name: value if text else str(float(value))})
        self.ask(["set", path, "user." + name, value], effect)

    def convert(self):
        path = self.owner()
        which = self.number_of(path)
        name = self.choose([name for name, value in self.model.objects[which].attributes.items() if name[0] == "b" and isinstance(value, str)])
        if name:
            text = not self.model.objects[which].attributes[name][:1].isdigit()
            self.ask(["set", path, "h5fs.type." + name, "vlen str" if text else self.chance.choice(("<f8", "<i8"))])

    def remove(self):
        path = self.owner()
        which = self.number_of(path)
        attributes = dict(self.model.objects[which].attributes)
        name = self.choose(sorted(attributes))
        if name:
            del attributes[name]
            self.ask(["remove", path, "user." + name.replace("/", "%2F")], lambda: self.model.change(which, attributes=attributes))

    def remove_all(self):
        path = self.owner()
        for name in list(self.model.objects[self.number_of(path)].attributes):
            attributes = dict(self.model.objects[self.number_of(path)].attributes)
            del attributes[name]
            self.ask(["remove", path, "user." + name], lambda: self.model.change(self.number_of(path), attributes=attributes))

    # shapes and types

    def declare(self):
        free = set(range(FILES)) - set(self.files)
        if not free:
            return self.close()
        number, path = min(free), self.new_path()

        def effect():
            self.files[number] = self.model.add(path, kind="data", data=b"", row=1, plain=True)
        self.ask(["create", path, number], effect)
        which = self.files[number]
        filters = self.chance.choice(('"filters":"shuffle,deflate(4)",', ""))
        shape, size = self.chance.choice((('"shape":"0,5","chunks":"2,5"', 0), ('"shape":"0,5"', 0), ('"shape":"4,5","maxshape":"4,5"', 80),
                                          ('"shape":"4,5","maxshape":"4,5","chunks":"3,2"', 80), ('"shape":"4,5","maxshape":"inf,inf","chunks":"3,2"', 80)))

        def declared():
            fixed = size and "inf" not in shape
            self.model.change(which, data=bytes(size), row=0 if fixed else 20, plain=False)
        self.ask(["set", path, "h5fs.info", '{"dtype":"<i4",%s%s}' % (filters, shape)], declared)
        self.ask(["set", path, "h5fs.comment", "a comment"])
        self.write_at(number, 0, size or 60)
        return None

    def shape(self):
        path = self.choose([p for p in self.model.of_kind("data") if self.object_of(p).row == 20 and self.object_of(p).data])
        if not path:
            return
        which, rows = self.model.links[path], self.chance.randrange(8)

        def effect():
            data = self.model.objects[which].data
            self.model.change(which, data=data[:20 * rows] + bytes(max(0, 20 * rows - len(data))))
        self.ask(["set", path, "h5fs.shape", f"{rows},5"], effect)

    def commit(self):
        self.ask(["commit"], durable=True)

    def release(self):
        self.ask(["release"])

    def run(self):
        kinds = [self.create] * 4 + [self.open] * 3 + [self.write] * 3 + [self.resize] * 2 + [self.punch, self.close, self.fsync] + [self.unlink] * 5 + \
            [self.remove_tree, self.mkdir, self.link, self.symlink, self.rename, self.rename, self.exchange, self.replace, self.replace] + \
            [self.set] * 5 + [self.convert, self.remove, self.remove, self.remove_all, self.declare, self.declare, self.shape] + \
            [self.commit] * 3 + [self.release]
        while len(self.history) < REQUESTS:
            self.chance.choice(kinds)()
        while self.files:
            self.close()
        self.commit()


class CrashContents(crashlib.CrashCase):
    states = 16

    def look(self, image, models):
        for what in wrong(Model.of(image), models):
            self.fail(what)

    def test_all_styles(self):
        done = {}
        for style, options in STYLES.items():
            chance = random.Random(f"{style} {crashlib.SEED}")
            with self.subTest(style, seed=crashlib.SEED):
                path = self.file("data.h5")
                model = make(path, options)
                with open(path, "rb") as f:
                    before = f.read()
                shell = crashlib.Shell(path, self.file("record"))
                program = Program(model.copy(), shell, chance)
                program.run()
                self.assertEqual(shell.end(), 0)
                for word, count in program.done.items():
                    done[word] = done.get(word, 0) + count
                with open(path, "rb") as f:
                    self.check(f.read(), [program.model], "at the end")
                record = crashlib.Record(self.file("record"))
                self.replay(path, before, record, program.history, model, chance)
        print(done, self.counts)
        # Nothing is left out by chance.
        self.assertLessEqual({"create", "write", "resize", "punch", "unlink", "rmdir", "rename", "set", "remove", "fsync"}, set(done))


if __name__ == "__main__":
    unittest.main(verbosity=2)
