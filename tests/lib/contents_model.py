"""Random requests that change contents, and what they do to a model of the file, for tests of crashes and kills."""
import os

import h5py
import numpy as np

EXCHANGE_NAME = ".h5fs-exchange-"
EXCHANGE = 2
FILES = 6  # open at once
SIZES = (0, 1, 100, 700, 3000, 9000, 40_000, 100_000)
LARGE = 130_000  # chunks; of such a dataset only the end is looked at

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

    def __init__(self, number, kind, data=None, attributes=None, row=0, plain=False, over=0):
        self.number, self.kind, self.data, self.attributes = number, kind, data, attributes or {}
        self.row = row  # bytes that dimension 0 grows by; 0: it cannot
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
    def of(cls, image, root="/"):
        """All that libhdf5 finds in a group of an image."""
        model, seen = cls(), {}
        with h5py.File(h5py.h5f.open_file_image(bytes(image))) as f:
            model.walk(f[root], "", seen)
            model.objects[0] = Object(0, "group", attributes=cls.attributes(f[root]))
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
                row = 0
                if thing.maxshape and thing.chunks and thing.maxshape[0] is None:
                    row = int(np.prod(thing.shape[1:])) * thing.dtype.itemsize
                seen[address] = self.add(path, kind="data", data=bytes_of(thing), attributes=self.attributes(thing), row=row)
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
    """Random requests, with what they do to the model: the same ones for the same model and chance."""

    def __init__(self, model, shell, chance, requests, close_commits=False):
        """shell: its ask() does a request; close_commits: to close a file commits it, unless it is plain."""
        self.close_commits = close_commits
        self.model, self.shell, self.chance, self.requests = model, shell, chance, requests
        self.files = {}  # number of a file to that of its object
        self.pending = set()  # new objects that are still being written: the HDF5 file has them later
        # Of each request: the number of calls after it, whether it has made all before it durable, and the model.
        self.history, self.done = [], {}

    def ask(self, words, effect=lambda: None, durable=False):
        error, calls, _, _ = self.shell.ask(*words)
        if error:
            raise AssertionError(f"{words}: error {error}")
        self.done[words[0]] = self.done.get(words[0], 0) + 1
        effect()
        self.pending &= set(self.files.values())
        self.note(calls, durable)

    def note(self, calls, durable):
        model = self.model.copy()
        model.links = {path: to for path, to in model.links.items() if to not in self.pending}
        self.history.append((calls, durable, model))

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
            self.pending.add(self.files[number])
        self.ask(["create", path, number], effect)
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

        def effect():
            which = self.files.pop(number)
            if self.close_commits and not self.model.objects[which].plain:
                self.pending.discard(which)
        self.ask(["close", number], effect)

    def fsync(self):
        number = self.choose(sorted(self.files))
        if number is not None:
            self.ask(["fsync", number], lambda: self.pending.discard(self.files[number]), durable=True)

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
            self.pending.discard(self.model.links[path])
        if path:
            self.ask(["link", path, new], effect)

    def symlink(self):
        path = self.new_path()

        def effect():
            self.model.links[path] = "target"
        self.ask(["symlink", "target", path], effect)

    def move(self, old, new):
        self.pending.discard(self.model.links[old])
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
            self.pending -= {links[one], links[other]}
        if one and one != other:
            if self.pending & {self.model.links[one], self.model.links[other]}:
                self.enter(one, other)
            self.ask(["rename", one, other, EXCHANGE], effect)

    def enter(self, *paths):
        """The next request has new files enter the HDF5 file before it does anything else."""
        self.pending -= {self.model.links[path] for path in paths}
        self.note(self.history[-1][0] if self.history else 0, False)

    def replace(self):
        """A plain file is moved onto a dataset, whose contents it becomes, or onto another plain file."""
        path = self.choose([p for p in self.model.of_kind("data") if self.object_of(p).plain and self.model.links[p] not in self.files.values()])
        target = self.choose([p for p in self.model.of_kind("data") if self.written(p)])
        if not path or path == target or ("super" in target and len(self.object_of(path).data) > 3000) or self.model.links[path] == self.model.links[target]:
            return
        data, o = self.object_of(path).data, self.object_of(target)
        if not o.plain and len(data) != len(o.data) and (not o.row or len(data) % o.row):
            return  # it does not fit

        def effect():
            which = self.model.links.pop(path)
            self.pending.discard(o.number)
            if o.plain:
                self.model.links[target] = which
            else:
                self.model.change(o.number, data=data, over=o.over + 1)
        self.ask(["rename", path, target, 0], effect)

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
            self.pending.add(self.files[number])
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
        while len(self.history) < self.requests:
            self.chance.choice(kinds)()
        while self.files:
            self.close()
        self.commit()
