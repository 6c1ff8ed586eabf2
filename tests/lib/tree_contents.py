"""Steps of tree_player.py that write datasets, declare them, and keep them open."""
import errno
import os

import numpy

from tree_calls import fsync, punch
from tree_model import Thing
from tree_steps import LARGEST, Steps
from tree_values import NEW_VALUES

TYPES = ["<i4", ">f8", "S5", "<u2", "|u1", '[["a","<i4"],["b","<f8",[3]]]']
DTYPES = ["int32", ">f8", "|S5", "uint16", "uint8", "[('a', '<i4'), ('b', '<f8', (3,))]"]
SIZES = [4, 8, 5, 2, 1, 28]


class ContentSteps(Steps):
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
        one = self.dataset(lambda thing: thing.can_resize and thing.row and len(thing.data) != thing.max_size())
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

    def replace(self):
        """New contents for a dataset that keeps its size, all at once when it is closed."""
        one = self.dataset(lambda thing: thing.data and (not thing.can_resize or len(thing.data) == thing.max_size()))
        if not one:
            return
        path, number, thing = one
        if any(n == number for _, n in self.held):
            return
        data = self.bytes(len(thing.data) + (0 if thing.can_resize else self.dice.choice([0, 0, 0, 1, -1])))
        self.say(path, len(data), "of", len(thing.data))
        fd = os.open(self.at(path), os.O_WRONLY | os.O_TRUNC)
        written = 0
        while written < len(data):
            try:
                written += os.write(fd, data[written:])
            except OSError as e:
                self.equal(e.errno, errno.EFBIG, "written")
                break
        fits = len(data) == len(thing.data)
        if self.expect(0 if fits else errno.EINVAL, os.close, fd):
            self.put(thing, 0, data)

    def set_dimensions(self):
        """As H5Dset_extent."""
        one = self.dataset(lambda thing: thing.can_resize and len(thing.shape) > 1 and not thing.plain and thing.data)
        if not one:
            return
        path, _, thing = one
        if not thing.row or thing.data == thing.fill * (len(thing.data) // len(thing.fill)):
            return
        most = [12 if m is None else m for m in thing.maxshape]
        shape = tuple(self.dice.randint(1, max(1, m)) for m in most)
        self.say(path, str(shape))
        if self.expect(0, os.setxattr, self.at(path), "h5fs.shape", ",".join(map(str, shape)).encode()):
            element = f"V{thing.itemsize}"
            old = numpy.frombuffer(thing.data, element).reshape(thing.shape)
            new = numpy.frombuffer(thing.fill * int(numpy.prod(shape)), element).reshape(shape).copy()
            common = tuple(slice(0, min(a, b)) for a, b in zip(shape, thing.shape))
            new[common] = old[common]
            thing.shape, thing.data = shape, new.tobytes()

    def write_lines(self):
        """Lines for a dataset of strings, at its end or instead of all."""
        one = self.existing(lambda link: link[0] == "hard" and self.is_own(link[1]) and self.thing(link[1]).is_text())
        if not one:
            return
        thing, lines = self.thing(one[2][1]), [f"line {i}" * self.dice.randrange(4) for i in range(self.dice.randrange(1, 6))]
        anew = not thing.can_resize or self.dice.random() < .4
        if not thing.can_resize:
            lines = (lines * 9)[:max(1, int(numpy.prod(thing.shape, dtype=int)))]
        self.say(one[0], lines, "anew" if anew else "more")
        fd = os.open(self.at(one[0]), os.O_WRONLY | (os.O_TRUNC if anew else os.O_APPEND))
        text = "".join(f"{line}\n" for line in lines).encode()
        self.equal(os.write(fd, text), len(text), "written")
        os.close(fd)
        old = () if anew else thing.data[2:]
        thing.shape = (len(old) + len(lines),) if thing.can_resize else thing.shape
        thing.data = ("array", thing.shape, *old, *(("bytes", line.encode()) for line in lines))

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
        # A dataset in which nothing is stored is declared anew, so it must have one name. Chunks that nobody has said are chosen anew.
        if thing.data == (thing.fill * (len(thing.data) // len(thing.fill) + 1))[:len(thing.data)]:
            if expected:
                return
            expected = (0, errno.EBUSY)
        if self.expect(expected, os.setxattr, self.at(path), "h5fs.shape", shape.encode()):
            if len(thing.data) != rows * thing.row:
                thing.set_size(rows * thing.row)
            if isinstance(expected, tuple) and not thing.chunks:
                thing.is_chunked = os.getxattr(self.at(path), "h5fs.layout") == b"chunked"
                if not thing.is_chunked:
                    self.equal(thing.maxshape, thing.shape, "maximum of what has no chunks")

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
