"""A model of the objects of an HDF5 file, as a mount may change them, and how a mount has to show it.

    model = Model.load(path)        what libhdf5 finds in the file (tests/judge/tree_walk.py)
    model.differences(walk(path))   how the file differs from the model: a list of texts
    model.shown_differences(folder) how the mount does

Objects have numbers; the root group's is 0. Names are those of the file. A dataset that the model cannot change is
`opaque`: it has names and attributes, and its contents stay."""
import copy
import dataclasses
import errno
import json
import math
import os

import numpy

import tree_files
import tree_walk

ROOT = 0
FACTS = "dtype", "itemsize", "shape", "maxshape", "chunks", "filters", "fill", "data"  # of a dataset
ESCAPES = {"2F", "00", "25", "2E"}


def escape(name):
    """A link's name as a file name, for names that are not too long."""
    if not name:
        return "%"
    out = ""
    for i, c in enumerate(name):
        alone = c == "." and (name in (".", "..")) or c == "%" and name == "%"
        read = c == "%" and (name[i + 1:i + 3] in ESCAPES or name[i + 1:i + 2] == "~")
        out += f"%{ord(c):02X}" if alone or read or c in "/\0" else c
    return out


def shows_target(text, link, folder):
    """Whether a symlink in the folder, a path as file names, says what a soft or external link leads to. An absolute target may be
    any relative way to the same place."""
    if link[0] == "external":
        return text == f"extlink:{link[1]}//{link[2].lstrip('/')}"
    target = "/".join(escape(part) for part in link[1].split("/") if part not in ("", "."))
    if link[1].startswith("/"):
        return not text.startswith("/") and os.path.normpath("/".join(["", *folder, text])) == "/" + target
    return text == (target or ".")


@dataclasses.dataclass
class Thing:
    kind: str
    attributes: dict = dataclasses.field(default_factory=dict)  # name: value as tree_walk has it, references as numbers
    types: dict = dataclasses.field(default_factory=dict)  # name of an attribute: number of its committed datatype
    links: dict = dataclasses.field(default_factory=dict)  # of a group: name: ("hard", number), ("soft", ...), ...
    # Of a dataset:
    type: int = None  # number of the committed datatype
    dtype: str = "uint8"
    itemsize: int = 1
    shape: tuple = (0,)
    maxshape: tuple = (None,)
    chunks: tuple = None  # None: of any size, if there are any
    filters: list = None  # None: any
    is_chunked: bool = True
    fill: bytes = b"\0"
    data: object = b""
    opaque: bool = False
    plain: bool = False  # a new file whose type was not declared
    fresh: bool = False  # nothing was ever stored in it

    @property
    def row(self):
        return math.prod(self.shape[1:]) * self.itemsize

    @property
    def can_resize(self):
        return self.is_chunked and bool(self.shape) and self.maxshape is not None

    def is_text(self):
        """Whether it is shown as lines."""
        return self.dtype == "text" and len(self.shape) == 1

    def max_size(self):
        most = self.maxshape[0] if self.can_resize else self.shape[0] if self.shape else 1
        return None if most is None else most * (self.row if self.shape else self.itemsize)

    def set_size(self, size):
        """Of a dataset of whole rows."""
        more = max(0, size - len(self.data))
        self.data = self.data[:size] + (self.fill * (more // len(self.fill) + 1))[:more]
        if self.shape and self.row:
            self.shape = (size // self.row, *self.shape[1:])


def leads_back(link, chain):
    return link[0] == "hard" and link[1] in chain


def renumbered(value, numbers):
    """A value with numbers instead of paths, or the other way round."""
    if value[0] == "reference":
        return ("reference", value[1] if value[1] is None else numbers.get(value[1], "gone"))
    if value[0] in ("members", "array"):
        return tuple(renumbered(v, numbers) if isinstance(v, tuple) and v and isinstance(v[0], str) else v for v in value)
    return value


def named_in(value):
    """The numbers of what the references in a value name."""
    if value[0] == "reference":
        yield value[1]
    elif value[0] in ("members", "array"):
        for v in value[1:]:
            if isinstance(v, tuple) and v and isinstance(v[0], str):
                yield from named_in(v)


def same(found, expected):
    """Where the model says that what a reference named is gone, it may name anything."""
    if expected[0] == "reference" and expected[1] == "gone":
        return found[0] == "reference"
    if expected[0] in ("members", "array"):
        return len(found) == len(expected) and all(
            same(a, b) if isinstance(b, tuple) and b and isinstance(b[0], str) else a == b for a, b in zip(found, expected))
    return found == expected


class Model:
    def __init__(self):
        self.things = {ROOT: Thing("group")}
        self.next = 1

    # ---- from a file ----

    @classmethod
    def load(cls, path):
        found = tree_walk.walk(path)
        model = cls()
        numbers = {where: i for i, where in enumerate(found)}
        numbers["gone"] = "gone"
        model.things = {numbers[where]: model.thing_of(facts, numbers) for where, facts in found.items()}
        model.next = len(numbers)
        wrong = model.differences(found)
        assert not wrong, wrong
        return model

    @staticmethod
    def thing_of(facts, numbers):
        thing = Thing(facts["kind"])
        thing.attributes = {name: renumbered(v, numbers) for name, v in facts["attributes"].items()}
        thing.types = {name: numbers[path] for name, path in facts["types"].items()}
        thing.links = {name: ("hard", numbers[link[1]]) if link[0] == "hard" else link
                       for name, link in facts.get("links", {}).items()}
        if facts["kind"] != "dataset":
            return thing
        thing.type = numbers[facts["type"]] if facts["type"] else None
        for key in FACTS:
            setattr(thing, key, facts[key])
        thing.is_chunked = bool(thing.chunks)
        thing.opaque = isinstance(thing.data, tuple)
        if thing.opaque:
            thing.data = renumbered(thing.data, numbers)
        return thing

    # ---- what there is ----

    def new(self, thing):
        self.things[self.next] = thing
        self.next += 1
        return self.next - 1

    def places(self, top=()):
        """All groups from one on, by each path that does not lead back: (path, numbers on the way and its own, [(name, number)] of the groups
        in it)."""
        inside = {}
        todo = [(tuple(top), [self.follow(top[:i]) for i in range(len(top) + 1)])]
        while todo:
            path, chain = todo.pop()
            number = chain[-1]
            if number not in inside:
                inside[number] = [(name, link[1]) for name, link in self.things[number].links.items() if self.is_group(link)]
            below = [(name, group) for name, group in inside[number] if group not in chain]
            yield path, chain, below
            todo += [((*path, name), [*chain, group]) for name, group in below]

    def names(self, top=()):
        """All names below a group but those that lead back: (path, number of the group above, link)."""
        for path, chain, _ in self.places(top):
            for name, link in self.things[chain[-1]].links.items():
                if not leads_back(link, chain):
                    yield (*path, name), chain[-1], link

    def is_group(self, link):
        return bool(link) and link[0] == "hard" and self.things[link[1]].kind == "group"

    def follow(self, path):
        number = ROOT
        for name in path:
            number = self.things[number].links[name][1]
        return number

    def paths(self):
        """{number: the first path}, in the order of tree_walk."""
        found = {ROOT: "/"}

        def walk(number):
            for name in sorted(self.things[number].links):
                link = self.things[number].links[name]
                if link[0] == "hard" and link[1] not in found:
                    found[link[1]] = found[number].rstrip("/") + "/" + name
                    if self.things[link[1]].kind == "group":
                        walk(link[1])

        walk(ROOT)
        return found

    def counts(self, open_things=()):
        """{number: how many names and uses}, of all things that have a name or are open."""
        counts = {ROOT: 1}
        alive = dict.fromkeys([*self.paths(), *open_things])
        for number in list(alive):
            thing = self.things[number]
            uses = [link[1] for link in thing.links.values() if link[0] == "hard"] + list(thing.types.values())
            for use in uses + ([thing.type] if thing.type is not None else []):
                counts[use] = counts.get(use, 0) + 1
        return counts

    def referred(self):
        """What references name."""
        return {number for path_of in self.paths() for thing in [self.things[path_of]]
                for value in [*thing.attributes.values(), thing.data if thing.opaque else ("empty",)]
                for number in named_in(value)}

    def refers_to_gone(self):
        paths = self.paths()
        return any(number is not None and number not in paths for number in self.referred())

    def has_types_of_several_names(self):
        names = [link[1] for _, _, link in self.names() if link[0] == "hard" and self.things[link[1]].kind == "datatype"]
        return len(names) > len(set(names))

    def has_nameless_types(self):
        paths = self.paths()
        return any(t not in paths for number in paths for t in self.things[number].types.values())

    def longest_path(self):
        """The length in bytes of the longest path."""
        return max(len(os.fsencode(f"{path}/{name}")) for number, path in self.paths().items() for name in ["", *self.things[number].links])

    def prune(self, keep=()):
        """Forgets what has no name."""
        paths = self.paths()
        used = {t for number in paths for t in [self.things[number].type, *self.things[number].types.values()]}
        self.things = {n: t for n, t in self.things.items() if n in paths or n in used or n in keep}

    def part(self, top):
        """A copy of the things below a group."""
        wanted = {self.follow(top)} | {link[1] for _, _, link in self.names(top) if link[0] == "hard"}
        return {number: self.things[number] for number in wanted}

    def own(self, top):
        """Which things below a group have all of their names there."""
        inside = {}
        for number in {self.follow(top)} | {link[1] for _, _, link in self.names(top) if link[0] == "hard"}:
            for link in self.things[number].links.values():
                if link[0] == "hard":
                    inside[link[1]] = inside.get(link[1], 0) + 1
        counts = self.counts()
        return {number for number, n in inside.items() if counts[number] == n}

    def copy(self):
        return copy.deepcopy(self)

    # ---- comparing with a file ----

    def expected(self):
        """As tree_walk.walk() should find it."""
        paths, counts = self.paths(), self.counts()
        named = {**paths, "gone": "gone"}
        found = {}
        for number, path in paths.items():
            thing = self.things[number]
            facts = found[path] = {"kind": thing.kind, "count": counts[number]}
            facts["attributes"] = {name: renumbered(v, named) for name, v in thing.attributes.items()}
            facts["types"] = {name: paths.get(n, "gone") for name, n in thing.types.items()}
            if thing.kind == "group":
                facts["links"] = {name: ("hard", paths[link[1]]) if link[0] == "hard" else link
                                  for name, link in thing.links.items()}
            elif thing.kind == "dataset":
                facts["type"] = None if thing.type is None else paths.get(thing.type, "gone")
                for key in FACTS:
                    facts[key] = getattr(thing, key)
                if isinstance(thing.data, tuple):
                    facts["data"] = renumbered(thing.data, named)
        return found

    def differences(self, found):
        expected = self.expected()
        wrong = [f"{path}: not there" for path in expected if path not in found]
        wrong += [f"{path}: there" for path in found if path not in expected]
        for path, facts in expected.items():
            wrong += [f"{path}: {key} {short(found[path].get(key))}, not {short(value)}" for key, value in facts.items()
                      if path in found and not is_fact(key, found[path].get(key), value)]
        return wrong

    # ---- comparing with a mount ----

    def shown_differences(self, folder, open_things=()):
        """How the tree that is mounted at the folder differs."""
        counts, numbers, wrong = self.counts(open_things), {}, []

        def walk(path, chain, at):
            thing, found = self.things[chain[-1]], {}
            for entry in os.scandir(at):
                found[entry.name] = entry
            expected = {escape(name): name for name in thing.links}
            wrong.extend(f"{at}: {name} is not there" for name in expected if name not in found)
            wrong.extend(f"{at}: {name} is there" for name in found if name not in expected)
            if os.stat(at).st_size != len(thing.links):
                wrong.append(f"{at}: tells of {os.stat(at).st_size} links, not {len(thing.links)}")
            wrong.extend(attribute_differences(at, thing))
            for name, entry in found.items():
                if name in expected:
                    look(path, chain, entry, thing.links[expected[name]])

        def look(path, chain, entry, link):
            if link[:2] == ("external", tree_files.NEIGHBOUR) and not entry.is_symlink():
                if read(entry.path) != b"of another file":
                    wrong.append(f"{entry.path}: is not the object of the other file")
                return
            if link[0] != "hard" or link[1] in chain:
                up = len(chain) - 1 - chain.index(link[1]) if link[0] == "hard" else 0
                text = os.readlink(entry.path) if entry.is_symlink() else None
                if text is None or not (text == ("/".join([".."] * up) or ".") if link[0] == "hard" else shows_target(text, link, path)):
                    wrong.append(f"{entry.path}: a symlink to {text}, not {link}")
                return
            thing, st = self.things[link[1]], os.lstat(entry.path)
            if entry.is_symlink() or entry.is_dir() != (thing.kind == "group"):
                wrong.append(f"{entry.path}: is no {thing.kind}")
                return
            if numbers.setdefault(link[1], st.st_ino) != st.st_ino:
                wrong.append(f"{entry.path}: the object has another number here")
            if thing.kind == "group":
                walk((*path, entry.name), [*chain, link[1]], entry.path)
                return
            # What a removed object refers to is counted until the object's last node has gone.
            if st.st_nlink < counts[link[1]] or (st.st_nlink > counts[link[1]] and thing.kind != "datatype"):
                wrong.append(f"{entry.path}: has {st.st_nlink} names, not {counts[link[1]]}")
            wrong.extend(attribute_differences(entry.path, thing))
            if thing.is_text() and read(entry.path) != b"".join(v[1] + b"\n" for v in thing.data[2:]):
                wrong.append(f"{entry.path}: other lines")
            if thing.kind == "dataset" and not thing.opaque:
                wrong.extend(content_differences(entry.path, thing, st))

        walk((), [ROOT], folder)
        if len(set(numbers.values())) != len(numbers):
            wrong.append("two objects have the same number")
        return wrong


def short(value):
    return repr(value)[:300]


def is_fact(key, found, expected):
    if key in ("chunks", "filters") and expected is None:
        return True
    if key == "attributes":
        return found.keys() == expected.keys() and all(same(found[name], expected[name]) for name in expected)
    if key == "data" and isinstance(expected, tuple):
        return same(found, expected)
    return found == expected


def whole(value):
    """The numbers of a value as they are printed: as few digits as their precision needs, no point if they are whole."""
    def plain(one):
        if isinstance(one, numpy.ndarray):
            return [plain(o) for o in one]
        return int(one) if one == int(one) else float(str(one))

    return plain(numpy.frombuffer(value[3], value[1]).astype(numpy.dtype(value[1]).newbyteorder("=")).reshape(value[2])[()])


def text_of(value):
    """An attribute as the mount shows it; None: the model does not know."""
    kind = value[0]
    if kind == "text":
        return value[1]
    if kind == "bytes":
        return value[1].decode(errors="surrogateescape")
    if kind == "empty":
        return ""
    if kind == "numbers":
        return json.dumps(whole(value)) if numpy.dtype(value[1]).kind in "iuf" else None
    return None


def attribute_differences(path, thing):
    found = {name[5:] for name in os.listxattr(path)}
    wrong = [f"{path}: attribute {name} is not there" for name in thing.attributes if name not in found]
    wrong += [f"{path}: attribute {name} is there" for name in found if name not in thing.attributes]
    for name, value in thing.attributes.items():
        text = text_of(value)
        if text is None or name not in found:
            continue
        got = os.getxattr(path, f"user.{name}").decode(errors="surrogateescape")
        if got != text if value[0] != "numbers" else json.loads(got) != json.loads(text):
            wrong.append(f"{path}: attribute {name} is {short(got)}, not {short(text)}")
    return wrong


def read(path):
    with open(path, "rb") as f:
        return f.read()


def content_differences(path, thing, st):
    data = read(path)
    if st.st_size != len(thing.data):
        return [f"{path}: tells of {st.st_size} bytes, not {len(thing.data)}"]
    if data == thing.data:
        return []
    at = next((i for i, (a, b) in enumerate(zip(data, thing.data)) if a != b), None)
    return [f"{path}: {len(data)} bytes, not {len(thing.data)}" if at is None else f"{path}: byte {at} of {len(data)} differs"]


def error_of(function, *arguments):
    """The errno of a call; 0: it has succeeded."""
    try:
        function(*arguments)
    except OSError as e:
        return e.errno
    return 0


def named(number):
    """Of one errno, or of several."""
    if isinstance(number, (tuple, list)):
        return " or ".join(named(n) for n in number)
    return errno.errorcode.get(number, "success")
