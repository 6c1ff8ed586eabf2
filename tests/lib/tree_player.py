"""Changes a mounted file at random, as a model (tree_model.py) says that it can be changed.

    player = Player(model, dice, folder)    folder: where it is mounted
    player.play(20)                         so many operations; raises Wrong

Each operation is a system call or two; its errno and what it returns must be what the model says."""
import ctypes
import errno
import json
import os

import numpy

import tree_model
from tree_model import Thing, error_of, escape, named

NOREPLACE, EXCHANGE = 1, 2
PUNCH = 3  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
TRACE = os.environ.get("H5FS_TREE_TRACE")  # a file to which all operations go
LARGEST = 40_000  # bytes that a dataset grows to

libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64

TYPES = ["<i4", ">f8", "S5", "<u2", "|u1", '[["a","<i4"],["b","<f8",[3]]]']
DTYPES = ["int32", ">f8", "|S5", "uint16", "uint8", "[('a', '<i4'), ('b', '<f8', (3,))]"]
SIZES = [4, 8, 5, 2, 1, 28]


class Wrong(AssertionError):
    pass


def check(result):
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def rename(old, new, flags=0):
    check(libc.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), flags))


def punch(path, offset, n):
    fd = os.open(path, os.O_RDWR)
    try:
        check(libc.fallocate(fd, PUNCH, offset, n))
    finally:
        os.close(fd)


def fsync(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def numbers(values, dtype="<i8"):
    array = numpy.array(values, dtype)
    return ("numbers", array.dtype.str, array.shape, array.tobytes())


NEW_VALUES = [("5", numbers(5)), ("-70000", numbers(-70000)), ("0.5", numbers(.5, "<f8")), ("[1,2,3]", numbers([1, 2, 3])),
              ("[[0.5,1.5],[2.5,3.5]]", numbers([[.5, 1.5], [2.5, 3.5]], "<f8"))]
NEW_VALUES += [(text, ("text", text)) for text in ("", "a text", "é", "007", "1.50", " 5", "longer " * 40, "long " * 900, "x" * 40_000)]

TYPED = {"<f4": numbers(0, "<f4"), "(3,)<i4": numbers([0] * 3, "<i4"), "S10": ("bytes", b""), "S30000": ("bytes", b""), "vlen str": ("text", ""),
         "<f8": numbers(0, "<f8"), "<i2": numbers(0, "<i2"), "(2,)>i8": numbers([0] * 2, ">i8")}


class Player:
    WEIGHTS = {"mkdir": 4, "rmdir": 3, "create": 8, "unlink": 5, "rename": 8, "exchange": 2, "link": 3, "symlink": 3,
               "save": 4, "set_attribute": 10, "remove_attribute": 4, "set_type": 3, "set_raw": 2, "append": 6,
               "overwrite": 4, "beyond": 2, "truncate": 3, "cut": 2, "punch": 2, "set_shape": 2, "declare": 4, "hold": 3,
               "use_held": 5, "change_held": 4, "drop_held": 2, "many": 1, "clear": 1, "sync": 2, "look": 4, "comment": 1}

    def __init__(self, model, dice, folder, top=(), own=None, precious=()):
        """top: the path of the group below which it stays; own: what it may change, None: everything;
        precious: what loses no name."""
        self.model, self.dice, self.folder, self.top, self.own = model, dice, folder, tuple(top), own
        self.precious = precious
        self.held, self.said = [], []
        self.made = set()

    # ---- what there is ----

    def at(self, path):
        return os.path.join(self.folder, *map(escape, path))

    def thing(self, number):
        return self.model.things[number]

    def is_own(self, number):
        return self.own is None or number in self.own or number in self.made

    def is_group(self, link):
        return link and link[0] == "hard" and self.thing(link[1]).kind == "group"

    def groups(self):
        yield self.top, self.model.follow(self.top)
        for path, _, link in self.model.names(self.top):
            if self.is_group(link) and self.is_own(link[1]):
                yield path, link[1]

    def existing(self, wanted=lambda link: True):
        """(path, number of the group above, link) of any group, or None."""
        found = {}
        for one in self.model.names(self.top):
            if wanted(one[2]) and (len(one[0]) == len(self.top) + 1 or self.is_own(one[1])):
                found.setdefault(one[0][:-1], []).append(one)
        # Groups of many links shall not be all that changes.
        weights = [min(len(names), 20) for names in found.values()]
        return self.dice.choice(self.dice.choices(list(found.values()), weights)[0]) if found else None

    def new_name(self):
        n = self.dice.randrange(1 << 24)
        return self.dice.choice([f"n{n}", f"n{n}", f"name {n}", f"é{n}", f"{n} a longer name of a link" * 3, f"%{n}%25", f".{n}"])

    def a_place(self):
        """A path that is there or not, and the group above."""
        if self.dice.random() < .5:
            one = self.existing()
            if one:
                return one[0], one[1]
        path, number = self.dice.choice(list(self.groups()))
        return (*path, self.new_name()), number

    def new_place(self):
        path, number = self.dice.choice(list(self.groups()))
        name = self.new_name()
        while name in self.thing(number).links:
            name = self.new_name()
        return (*path, name), number

    def dataset(self, wanted=lambda thing: True):
        """(path, number, thing) of one whose contents may change, or None."""
        one = self.existing(lambda link: link[0] == "hard" and self.thing(link[1]).kind == "dataset"
                            and not self.thing(link[1]).opaque and self.is_own(link[1]) and wanted(self.thing(link[1])))
        return one and (one[0], one[2][1], self.thing(one[2][1]))

    def object(self):
        """(path, thing) of anything that has attributes."""
        one = self.existing(lambda link: link[0] == "hard" and self.is_own(link[1]))
        if self.dice.random() < .1 or not one:
            return self.top, self.thing(self.model.follow(self.top))
        return one[0], self.thing(one[2][1])

    def new(self, thing):
        number = self.model.new(thing)
        self.made.add(number)
        return number

    # ---- playing ----

    def expect(self, expected, function, *arguments):
        """Runs a call; returns whether it succeeded."""
        found = error_of(function, *arguments)
        if found not in (expected if isinstance(expected, tuple) else (expected,)):
            raise Wrong(f"{named(found)}, not {named(expected)}")
        return not found

    def equal(self, found, expected, what):
        if found != expected:
            raise Wrong(f"{what}: {tree_model.short(found)}, not {tree_model.short(expected)}")

    def say(self, *what):
        self.said.append(" ".join(os.path.join("/", *w) if isinstance(w, tuple) else str(w) for w in what))
        if TRACE:
            with open(TRACE, "a") as f:
                print(os.getpid(), self.said[-1], file=f)

    def step(self):
        kind = self.dice.choices(list(self.WEIGHTS), list(self.WEIGHTS.values()))[0]
        self.say(kind)
        getattr(self, kind)()

    def play(self, steps):
        try:
            for _ in range(steps):
                self.step()
            while self.held:
                self.drop_held()
        except Exception as e:
            raise Wrong(f"{type(e).__name__} {e}, after\n" + "\n".join(self.said[-40:])) from e
        finally:
            for fd, _ in self.held:
                os.close(fd)
            self.held = []

    # ---- names ----

    def mkdir(self):
        path, above = self.a_place()
        self.say(path)
        links = self.thing(above).links
        if self.expect(errno.EEXIST if path[-1] in links else 0, os.mkdir, self.at(path)):
            links[path[-1]] = ("hard", self.new(Thing("group")))

    def many(self):
        """So many names that a group may need another storage for them; or attributes of an object."""
        path, number = self.dice.choice(list(self.groups()))
        n = self.dice.randrange(5, 30)
        self.say(path, n)
        if self.dice.random() < .5:
            path, thing = self.object()
            for i in range(n):
                text, value = NEW_VALUES[i % len(NEW_VALUES)]
                if f"m{i}" not in thing.attributes:
                    os.setxattr(self.at(path), f"user.m{i}", text.encode())
                    thing.attributes[f"m{i}"] = value
            return
        for _ in range(n):
            name = self.new_name()
            if name in self.thing(number).links:
                continue
            kind = self.dice.choice(["group", "dataset", "soft"])
            link = ("soft", "nothing") if kind == "soft" else ("hard", self.new(Thing(kind, plain=True, fresh=True)))
            if kind == "group":
                os.mkdir(self.at((*path, name)))
            elif kind == "dataset":
                os.close(os.open(self.at((*path, name)), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
            else:
                os.symlink("nothing", self.at((*path, name)))
            self.thing(number).links[name] = link

    def clear(self):
        """A group loses all that can be removed from it, and an object all of its attributes."""
        path, thing = self.object()
        self.say(path)
        for name in list(thing.attributes):
            os.removexattr(self.at(path), f"user.{name}")
        thing.attributes, thing.types = {}, {}
        path, number = self.dice.choice(list(self.groups()))
        self.say(path)
        for name, link in list(self.thing(number).links.items()):
            if not self.is_precious(link) and not self.is_group(link):
                os.unlink(self.at((*path, name)))
                del self.thing(number).links[name]

    def rmdir(self):
        path, above = self.a_place()
        self.say(path)
        link = self.thing(above).links.get(path[-1])
        expected = 0
        if self.is_precious(link):
            return
        if not link:
            expected = errno.ENOENT
        elif not self.is_group(link):
            expected = errno.ENOTDIR
        elif self.thing(link[1]).links:
            expected = errno.ENOTEMPTY
        if self.expect(expected, os.rmdir, self.at(path)):
            del self.thing(above).links[path[-1]]

    def unlink(self):
        path, above = self.a_place()
        self.say(path)
        link = self.thing(above).links.get(path[-1])
        if self.is_precious(link):
            return
        expected = errno.ENOENT if not link else errno.EISDIR if self.is_group(link) else 0
        if self.expect(expected, os.unlink, self.at(path)):
            del self.thing(above).links[path[-1]]

    def is_precious(self, link):
        return link and link[0] == "hard" and link[1] in self.precious

    def bytes(self, n):
        return self.dice.randbytes(n) if self.dice.random() < .4 else (self.dice.randbytes(self.dice.randint(1, 9)) * n)[:n]

    def some_bytes(self):
        return self.bytes(int(10 ** self.dice.uniform(0, 4.3)))

    def create(self):
        path, above = self.a_place()
        data = self.some_bytes() if self.dice.random() < .7 else b""
        self.say(path, len(data))
        links = self.thing(above).links
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR
        if path[-1] in links:
            self.expect(errno.EEXIST, os.open, self.at(path), flags)
            return
        fd = os.open(self.at(path), flags, 0o644)
        number = self.new(Thing("dataset", plain=True, fresh=True, data=b""))
        links[path[-1]] = ("hard", number)
        self.held.append((fd, number))
        if data:
            self.equal(os.write(fd, data), len(data), "written")
            self.thing(number).fresh = False
            self.thing(number).set_size(len(data))
            self.thing(number).data = data
        if self.dice.random() < .7:
            self.held.pop()
            os.close(fd)

    def link(self):
        one = self.existing(lambda link: link[0] == "hard" and self.is_own(link[1]))
        if not one:
            return
        new, above = self.a_place()
        self.say(one[0], new)
        expected = errno.EPERM if self.is_group(one[2]) else errno.EEXIST if new[-1] in self.thing(above).links else 0
        if self.is_group(one[2]) and new[-1] in self.thing(above).links:
            expected = (errno.EPERM, errno.EEXIST)
        if self.expect(expected, os.link, self.at(one[0]), self.at(new)):
            self.thing(above).links[new[-1]] = one[2]

    def stored_target(self, target, above):
        """The soft link that a symlink in the directory becomes; None: it leads out of the tree."""
        if ".." not in target.split("/"):
            return ("soft", target)
        path = list(above)
        for part in target.split("/"):
            if part != "..":
                path.append(part)
            elif not path:
                return None
            else:
                path.pop()
        return ("soft", "/" + "/".join(path))

    def symlink(self):
        path, above = self.a_place()
        target = self.dice.choice(["nothing", "data/rows", "../alias", "../../data/x", "../../../../../../../up",
                                   "extlink:other.h5//a/b", "extlink:beside.h5//there", "/absolute"])
        self.say(path, target)
        links, external = self.thing(above).links, target.startswith("extlink:")
        stored = ("external", *target[8:].split("//")) if external else self.stored_target(target, path[:-1])
        expected = 0 if stored and target[0] != "/" else errno.EPERM
        if self.expect(errno.EEXIST if path[-1] in links else expected, os.symlink, target, self.at(path)):
            links[path[-1]] = (*stored[:-1], "/" + stored[-1]) if external else stored

    def replaced(self, source, target):
        """The errno of one name taking another's place."""
        if self.is_group(source) != self.is_group(target):
            return errno.ENOTDIR if self.is_group(source) else errno.EISDIR
        if self.is_group(target) and self.thing(target[1]).links:
            return errno.ENOTEMPTY
        return 0

    def renamed(self, path, source, new, target, flags):
        """The errno of a rename."""
        if source is None or (target is None and flags == EXCHANGE):
            return errno.ENOENT
        if target is not None and flags == NOREPLACE:
            return errno.EEXIST
        chain = [self.model.follow(new[:i]) for i in range(len(new))]
        back = [self.model.follow(path[:i]) for i in range(len(path))]
        if self.is_group(source) and source[1] in chain:
            # By another name of the group, the kernel compares the kinds first.
            return errno.EINVAL if not target or self.is_group(target) else (errno.EINVAL, errno.ENOTDIR)
        if self.is_group(target) and target[1] in back:
            return errno.EINVAL if flags == EXCHANGE else errno.ENOTEMPTY
        if path == new or target is None or flags == EXCHANGE:
            return 0
        if source[0] == "hard" and source == target and not self.is_group(source):
            return 0
        return self.replaced(source, target)

    def only_contents(self, source, target, flags):
        """A plain file onto another dataset."""
        if flags or not target or source[0] != "hard" or target[0] != "hard" or source == target:
            return False
        return self.thing(source[1]).plain and self.thing(target[1]).kind == "dataset" and not self.thing(target[1]).plain

    def contents_fit(self, data, thing):
        if len(data) == len(thing.data):
            return True
        most = thing.max_size()
        return thing.can_resize and thing.row and not len(data) % thing.row and (most is None or len(data) <= most)

    def move(self, path, above, new, there, flags):
        links, new_links = self.thing(above).links, self.thing(there).links
        source, target = links.get(path[-1]), new_links.get(new[-1])
        self.say(path, new, flags)
        if self.is_precious(target):
            return
        expected = self.renamed(path, source, new, target, flags)
        contents = not expected and self.only_contents(source, target, flags)
        if contents:
            thing = self.thing(target[1])
            if thing.opaque or not self.is_own(target[1]):
                return
            if not self.contents_fit(self.thing(source[1]).data, thing):
                expected = errno.EINVAL
        if not self.expect(expected, rename, self.at(path), self.at(new), flags) or path == new:
            return
        if contents:
            thing.set_size(len(self.thing(source[1]).data))
            thing.data = self.thing(source[1]).data
            thing.fresh = False
            del links[path[-1]]
        elif flags == EXCHANGE:
            links[path[-1]], new_links[new[-1]] = target, source
        elif not (target and source[0] == "hard" and source == target):
            del links[path[-1]]
            new_links[new[-1]] = source

    def rename(self):
        flags = self.dice.choice([0, 0, 0, NOREPLACE])
        self.move(*self.a_place(), *(self.a_place() if self.dice.random() < .7 else self.new_place()), flags)

    def exchange(self):
        self.move(*self.a_place(), *self.a_place(), EXCHANGE)

    def save(self):
        """As editors do it: a new file takes the place of an old one."""
        old = self.dataset()
        if not old:
            return
        path, _, thing = old
        place, above = self.new_place()
        size = len(thing.data)
        if thing.can_resize and thing.row and self.dice.random() < .6:
            most = thing.max_size()
            size = min(self.dice.randrange(1 + LARGEST // thing.row) * thing.row, LARGEST if most is None else most)
        if self.dice.random() < .1:
            size += 1
        data = self.bytes(size)
        with open(self.at(place), "xb") as f:
            f.write(data)
        number = self.new(Thing("dataset", plain=True, fresh=not data, shape=(size,), data=data))
        self.thing(above).links[place[-1]] = ("hard", number)
        self.move(place, above, path, self.model.follow(path[:-1]), 0)

    # ---- attributes ----

    def set_attribute(self):
        path, thing = self.object()
        names = list(thing.attributes)
        name = self.dice.choice(names) if names and self.dice.random() < .4 else f"k{self.dice.randrange(40)}"
        flags = self.dice.choice([0, 0, 0, os.XATTR_CREATE, os.XATTR_REPLACE])
        self.say(path, name, flags)
        old = thing.attributes.get(name)
        if old is None:
            text, value = self.dice.choice(NEW_VALUES)
            expected = errno.ENODATA if flags == os.XATTR_REPLACE else 0
        else:
            text, value = self.new_text(old)
            expected = errno.EEXIST if flags == os.XATTR_CREATE else 0 if value else errno.EINVAL
            if text is None:
                return
        self.say(text[:50])
        if self.expect(expected, os.setxattr, self.at(path), f"user.{name}", text.encode(), flags):
            thing.attributes[name] = value

    def new_text(self, old):
        """A text for an attribute that is there, and the value that it becomes: None if it cannot; (None, None): unknown."""
        if old[0] == "text":
            text = self.dice.choice(["", "other", "longer text " * 30, "7"])
            return text, ("text", text)
        if old[0] == "bytes":
            text = "x" * self.dice.randrange(len(old[1]) + 1)
            return text, ("bytes", text.encode())
        if old[0] != "numbers" or numpy.dtype(old[1]).kind not in "iuf":
            return None, None
        if self.dice.random() < .2:
            return self.dice.choice(["x", "[1,2,3,4,5,6,7]", "{}"]), None
        values = numpy.array([self.dice.randrange(100) for _ in range(int(numpy.prod(old[2], dtype=int)))], old[1]).reshape(old[2])
        return str(values.tolist()).replace(" ", ""), numbers(values, old[1])

    def remove_attribute(self):
        path, thing = self.object()
        name = self.dice.choice(list(thing.attributes)) if thing.attributes and self.dice.random() < .9 else "none"
        self.say(path, name)
        expected = 0 if name in thing.attributes else errno.ENODATA
        if self.expect(expected, os.removexattr, self.at(path), f"user.{name}"):
            del thing.attributes[name]
            thing.types.pop(name, None)

    def set_type(self):
        path, thing = self.object()
        names = [name for name, value in thing.attributes.items() if value[0] in ("text", "bytes", "numbers")]
        name = self.dice.choice(names) if names and self.dice.random() < .6 else f"t{self.dice.randrange(20)}"
        text = self.dice.choice(list(TYPED))
        self.say(path, name, text)
        old = thing.attributes.get(name)
        value = TYPED[text] if old is None else self.converted(old, TYPED[text], int(text[1:]) if text[0] == "S" else 0)
        # Whether something is lost depends on how numbers are printed; if not, the value must be this one.
        expected = 0 if old is None else (0, errno.EINVAL) if value else errno.EINVAL
        if old is not None and old[0] == "text" and TYPED[text][0] == "text":
            expected = 0
        if self.expect(expected, os.setxattr, self.at(path), f"h5fs.type.{name}", text.encode()):
            thing.attributes[name] = value
            thing.types.pop(name, None)

    @staticmethod
    def converted(old, new, size):
        """The old value in the new type, for strings of so many bytes; None: it cannot be."""
        if old[0] != "numbers":
            text = old[1] if old[0] == "text" else old[1].decode()
            if new[0] == "text":
                return ("text", text)
            if new[0] == "bytes":
                return ("bytes", text.encode()) if len(text.encode()) <= size else None
            try:
                return None if new[2] or (text != text.strip()) else numbers(float(text), new[1])
            except (ValueError, OverflowError):
                return None
        if numpy.dtype(old[1]).kind not in "iuf":
            return None
        values = numpy.frombuffer(old[3], old[1]).reshape(old[2])
        if new[0] != "numbers":
            text = json.dumps(tree_model.whole(old), separators=(",", ":"))
            return ("text", text) if new[0] == "text" else ("bytes", text.encode()) if len(text) <= size else None
        if old[2] != new[2]:
            return None
        with numpy.errstate(all="ignore"):
            there = values.astype(new[1])
        return numbers(there, new[1]) if there.tolist() == values.tolist() else None

    def set_raw(self):
        path, thing = self.object()
        names = [name for name, value in thing.attributes.items() if value[0] == "numbers" and numpy.dtype(value[1]).kind in "iu"]
        name = self.dice.choice(names) if names and self.dice.random() < .9 else "none"
        value = thing.attributes.get(name)
        data = self.bytes(len(value[3]) + (self.dice.random() < .2)) if value else b"x"
        self.say(path, name, len(data))
        expected = errno.ENODATA if not value else errno.EINVAL if len(data) != len(value[3]) else 0
        if self.expect(expected, os.setxattr, self.at(path), f"h5fs.raw.{name}", data):
            thing.attributes[name] = (*value[:3], data)

    def comment(self):
        path, _ = self.object()
        text = "comment " * self.dice.randrange(9)
        self.say(path, len(text))
        os.setxattr(self.at(path), "h5fs.comment", text.encode())
        self.equal(os.getxattr(self.at(path), "h5fs.comment"), text.encode(), "comment")

    # ---- contents ----

    def put(self, thing, at, data):
        """What a write does to the model."""
        if data:
            thing.fresh = False
        if at + len(data) > len(thing.data):
            thing.set_size(at + len(data))
        thing.data = thing.data[:at] + data + thing.data[at + len(data):]

    def some_rows(self, thing):
        most = thing.max_size()
        room = max(0, (LARGEST if most is None else most) - len(thing.data)) // thing.row
        return min(room, self.dice.choice([1, 1, 2, 3, self.dice.randrange(60)]))

    def growing(self):
        return self.dataset(lambda thing: thing.can_resize and thing.row)

    def append(self):
        one = self.growing()
        if not one:
            return
        path, _, thing = one
        data = self.bytes(self.some_rows(thing) * thing.row)
        self.say(path, len(data))
        fd = os.open(self.at(path), os.O_WRONLY | os.O_APPEND)
        try:
            if data:
                self.equal(os.write(fd, data), len(data), "appended")
                self.put(thing, len(thing.data), data)
            if self.dice.random() < .1:
                os.fsync(fd)
        finally:
            os.close(fd)

    def write_at(self, path, thing, at, data):
        self.say(path, at, len(data))
        fd = os.open(self.at(path), os.O_RDWR)
        try:
            if data:
                self.equal(os.pwrite(fd, data, at), len(data), "written")
                self.put(thing, at, data)
        finally:
            os.close(fd)

    def inside(self, thing):
        """Offset and bytes of a part."""
        at = self.dice.randrange(len(thing.data))
        return at, self.dice.choice([1, self.dice.randint(1, len(thing.data) - at), len(thing.data) - at])

    def overwrite(self):
        one = self.dataset(lambda thing: thing.data)
        if one:
            at, n = self.inside(one[2])
            self.write_at(one[0], one[2], at, self.bytes(n))

    def beyond(self):
        one = self.growing()
        if not one:
            return
        path, _, thing = one
        rows = self.some_rows(thing)
        if rows:
            gap = self.dice.randrange(rows)
            self.write_at(path, thing, len(thing.data) + gap * thing.row, self.bytes((rows - gap) * thing.row))

    def truncate(self):
        one = self.dataset()
        if not one:
            return
        path, _, thing = one
        if not thing.can_resize or not thing.row:
            size = len(thing.data) + self.dice.choice([0, 1])
            expected = 0 if size == len(thing.data) else errno.EPERM
        else:
            most = thing.max_size()
            size = self.dice.randrange(2 + (LARGEST if most is None else min(most, LARGEST)) // thing.row) * thing.row
            expected = 0
            if most is not None and size > most:
                return
            if thing.row > 1 and self.dice.random() < .2:
                size, expected = size + 1, errno.EINVAL
        self.say(path, size)
        if self.expect(expected, os.truncate, self.at(path), size) and size != len(thing.data):
            thing.set_size(size)
            thing.fresh = thing.fresh and thing.plain

    def cut(self):
        one = self.growing()
        if not one:
            return
        path, _, thing = one
        data = self.bytes(self.dice.choice([0, 1, 5]) * thing.row)
        if thing.max_size() is not None:
            data = data[:thing.max_size()]
        self.say(path, len(data))
        with open(self.at(path), "wb") as f:
            f.write(data)
        thing.set_size(0)
        self.put(thing, 0, data)

    def punch(self):
        one = self.dataset(lambda thing: thing.data)
        if not one:
            return
        path, _, thing = one
        at, n = self.inside(thing)
        self.say(path, at, n)
        punch(self.at(path), at, n)
        filled = (thing.fill * (len(thing.data) // len(thing.fill) + 1))[at:at + n]
        thing.data = thing.data[:at] + filled + thing.data[at + n:]

    def set_shape(self):
        one = self.dataset(lambda thing: thing.can_resize and thing.row and not thing.plain)
        if not one:
            return
        path, _, thing = one
        most = thing.max_size()
        rows = self.dice.randrange(2 + (LARGEST if most is None else most) // thing.row)
        shape = ",".join(map(str, (rows, *thing.shape[1:])))
        self.say(path, shape)
        expected = 0 if most is None or rows * thing.row <= most else errno.EINVAL
        # A dataset in which nothing is stored is declared anew, so it must have one name, and may get other chunks.
        if thing.data == (thing.fill * (len(thing.data) // len(thing.fill) + 1))[:len(thing.data)]:
            if expected:
                return
            expected = (0, errno.EBUSY)
        if self.expect(expected, os.setxattr, self.at(path), "h5fs.shape", shape.encode()):
            if len(thing.data) != rows * thing.row:
                thing.set_size(rows * thing.row)
            if isinstance(expected, tuple):
                thing.chunks = None

    def declare(self):
        one = self.dataset(lambda thing: thing.plain and thing.fresh)
        if not one:
            return
        path, number, thing = one
        i = self.dice.randrange(len(TYPES))
        rank = self.dice.choice([0, 1, 1, 1, 2, 3])
        shape = tuple(self.dice.randrange(1, 5) for _ in range(rank))
        said = {"dtype": TYPES[i], "shape": ",".join(map(str, shape))}
        new = Thing("dataset", thing.attributes, thing.types, dtype=DTYPES[i], itemsize=SIZES[i], shape=shape)
        new.maxshape = (None, *shape[1:]) if rank else ()
        if rank and self.dice.random() < .4:
            new.maxshape = tuple(self.dice.choice([n, n + 3]) for n in shape)
            said["maxshape"] = ",".join(map(str, new.maxshape))
        if rank and self.dice.random() < .4:
            new.chunks = tuple(self.dice.randint(1, n) for n in shape)
            said["chunks"] = ",".join(map(str, new.chunks))
        new.filters = []
        if rank and self.dice.random() < .4:
            said["filters"], new.filters = self.dice.choice([("deflate(4)", [1]), ("shuffle,deflate(4)", [2, 1]), ("fletcher32", [3])])
        elif new.maxshape == shape and "chunks" not in said:
            said["filters"] = ""  # else it has those of the mount
        else:
            new.filters = None
        new.is_chunked = bool(rank) and (new.maxshape != shape or "chunks" in said or bool(said.get("filters")))
        if not new.is_chunked:
            new.chunks = None
        if TYPES[i] == "<i4" and self.dice.random() < .5:
            said["fill"], new.fill = "-7", numpy.array(-7, "<i4").tobytes()
        else:
            new.fill = bytes(SIZES[i])
        elements = int(numpy.prod(shape, dtype=int))
        new.data = new.fill * elements
        order = list(said)
        self.dice.shuffle(order)
        if "maxshape" in said and order.index("maxshape") < order.index("shape"):
            order = list(said)
        self.say(path, said)
        expected = errno.EBUSY if self.model.counts([n for _, n in self.held])[number] > 1 else 0
        for key in order:
            self.expect(expected, os.setxattr, self.at(path), f"h5fs.{key}", said[key].encode())
        if not expected:
            self.model.things[number] = new

    # ---- handles ----

    def hold(self):
        one = self.dataset()
        if one and len(self.held) < 4:
            self.say(one[0])
            self.held.append((os.open(self.at(one[0]), os.O_RDWR), one[1]))

    def use_held(self):
        if not self.held:
            return
        fd, number = self.dice.choice(self.held)
        thing = self.thing(number)
        counts = self.model.counts([n for _, n in self.held])
        self.say(f"fd {fd} object {number}")
        if self.own is None:
            self.equal(os.fstat(fd).st_nlink, counts.get(number, 0), "names")
        self.equal(os.fstat(fd).st_size, len(thing.data), "size")
        self.equal(os.pread(fd, len(thing.data) + 1, 0), thing.data, "contents")
        if thing.data and self.dice.random() < .5:
            at, n = self.inside(thing)
            data = self.bytes(n)
            self.say(at, n)
            self.equal(os.pwrite(fd, data, at), n, "written")
            self.put(thing, at, data)
        elif thing.can_resize and thing.row:
            data = self.bytes(self.some_rows(thing) * thing.row)
            self.say(len(thing.data), len(data))
            if data:
                self.equal(os.pwrite(fd, data, len(thing.data)), len(data), "appended")
                self.put(thing, len(thing.data), data)

    def change_held(self):
        """By its descriptor, which works if the file has no name any more."""
        if not self.held:
            return
        fd, number = self.dice.choice(self.held)
        thing = self.thing(number)
        kind = self.dice.choice(["cut", "set", "remove", "sync"])
        name = f"k{self.dice.randrange(40)}"
        self.say(kind, f"fd {fd} object {number}", name)
        if kind == "sync":
            os.fsync(fd)
        elif kind == "cut" and thing.can_resize and thing.row:
            rows = self.some_rows(thing)
            self.say(rows)
            os.ftruncate(fd, rows * thing.row)
            if rows * thing.row != len(thing.data):
                thing.set_size(rows * thing.row)
                thing.fresh = thing.fresh and thing.plain
        elif kind == "remove":
            if self.expect(0 if name in thing.attributes else errno.ENODATA, os.removexattr, fd, f"user.{name}"):
                del thing.attributes[name]
                thing.types.pop(name, None)
        elif kind == "set" and name not in thing.attributes:
            text, thing.attributes[name] = self.dice.choice(NEW_VALUES)
            os.setxattr(fd, f"user.{name}", text.encode())

    def drop_held(self):
        if self.held:
            fd, number = self.held.pop(self.dice.randrange(len(self.held)))
            self.say(f"close fd {fd} object {number}")
            os.close(fd)

    def sync(self):
        path = self.dice.choice(list(self.groups()))[0]
        one = self.dataset()
        if one and self.dice.random() < .5:
            path = one[0]
        self.say(path)
        fsync(self.at(path))

    def look(self):
        one = self.dataset()
        if not one:
            return
        path, number, thing = one
        self.say(path)
        with open(self.at(path), "rb") as f:
            self.equal(f.read(), thing.data, "contents")
        if self.own is None:
            counts = self.model.counts([n for _, n in self.held])
            self.equal(os.stat(self.at(path)).st_nlink, counts[number], "names")
        expected = "" if thing.shape == () else ",".join(map(str, thing.shape))
        self.equal(os.getxattr(self.at(path), "h5fs.shape").decode(), expected, "shape")
