"""What libhdf5 does with a file between two mounts: the same kind of changes as tree_player.py, through h5py."""
import h5py
import numpy

from tree_model import Thing
from tree_steps import Steps
from tree_values import numbers


def is_filled(thing):
    """Perhaps nothing was ever stored."""
    return thing.data == (thing.fill * (len(thing.data) // len(thing.fill) + 1))[:len(thing.data)]


class LibraryPlayer(Steps):
    """LibraryPlayer(model, dice, file): file is an h5py.File that is open for writing."""
    WEIGHTS = {"make_group": 3, "make_dataset": 3, "delete": 5, "move_link": 4, "link": 2, "soft_link": 2, "set_attribute": 5,
               "remove_attribute": 3, "append": 4, "overwrite": 2, "resize": 2}

    @property
    def file(self):
        return self.folder

    @staticmethod
    def at(path):
        return "/" + "/".join(path)

    def add(self, path, above, link):
        self.thing(above).links[path[-1]] = link

    def make_group(self):
        path, above = self.new_place()
        self.say(path)
        self.file.create_group(self.at(path))
        self.add(path, above, ("hard", self.new(Thing("group"))))

    def make_dataset(self):
        path, above = self.new_place()
        data = numpy.arange(self.dice.randrange(1, 50), dtype="<i4")
        chunks = (8,) if self.dice.random() < .5 else None
        self.say(path, len(data))
        self.file.create_dataset(self.at(path), data=data, chunks=chunks, maxshape=(None,) if chunks else None)
        thing = Thing("dataset", dtype="int32", itemsize=4, shape=data.shape, maxshape=(None,) if chunks else data.shape,
                      chunks=chunks, filters=[], is_chunked=bool(chunks), fill=bytes(4), data=data.tobytes())
        self.add(path, above, ("hard", self.new(thing)))

    def delete(self):
        one = self.existing(lambda link: not self.is_precious(link) and not (self.is_group(link) and self.thing(link[1]).links))
        if one:
            self.say(one[0])
            del self.file[self.at(one[0])]
            del self.thing(one[1]).links[one[0][-1]]

    def move_link(self):
        one = self.existing(lambda link: not self.is_group(link))
        if not one:
            return
        path, above = self.new_place()
        self.say(one[0], path)
        self.file.move(self.at(one[0]), self.at(path))
        del self.thing(one[1]).links[one[0][-1]]
        self.add(path, above, one[2])

    def link(self):
        one = self.existing(lambda link: link[0] == "hard" and not self.is_group(link))
        if one:
            path, above = self.new_place()
            self.say(one[0], path)
            self.file[self.at(path)] = self.file[self.at(one[0])]
            self.add(path, above, one[2])

    def soft_link(self):
        path, above = self.new_place()
        self.say(path)
        self.file[self.at(path)] = h5py.SoftLink("/somewhere/else")
        self.add(path, above, ("soft", "/somewhere/else"))

    def set_attribute(self):
        path, thing = self.object()
        name = f"theirs{self.dice.randrange(30)}"
        value = self.dice.choice([7, 1.5, "text " * self.dice.randrange(300)])
        self.say(path, name, value)
        self.file[self.at(path)].attrs[name] = value
        thing.attributes[name] = ("text", value) if isinstance(value, str) else numbers(value, "<i8" if value == 7 else "<f8")
        thing.types.pop(name, None)

    def remove_attribute(self):
        path, thing = self.object()
        if thing.attributes:
            name = self.dice.choice(list(thing.attributes))
            self.say(path, name)
            del self.file[self.at(path)].attrs[name]
            del thing.attributes[name]
            thing.types.pop(name, None)

    def change(self, path, thing, shape, at, data):
        """Resizes the dataset, and writes whole rows."""
        d = self.file[self.at(path)]
        if shape != thing.shape:
            d.resize(shape)
            thing.set_size(shape[0] * thing.row)
        if data:
            rows = numpy.frombuffer(data, f"V{thing.itemsize}").reshape(-1, *thing.shape[1:])
            space = d.id.get_space()
            space.select_hyperslab((at, *(0 for _ in thing.shape[1:])), rows.shape)
            d.id.write(h5py.h5s.create_simple(rows.shape), space, rows, d.id.get_type())
            self.put(thing, at * thing.row, data)

    def append(self):
        one = self.growing()
        if one:
            path, _, thing = one
            rows = self.some_rows(thing)
            self.say(path, rows)
            self.change(path, thing, (thing.shape[0] + rows, *thing.shape[1:]), thing.shape[0], self.bytes(rows * thing.row))

    def overwrite(self):
        # libhdf5 leaves what was in the file before around the first row of a contiguous dataset.
        one = self.dataset(lambda thing: thing.data and thing.shape and thing.row and (thing.is_chunked or not is_filled(thing)))
        if one:
            path, _, thing = one
            at = self.dice.randrange(thing.shape[0])
            self.say(path, at)
            self.change(path, thing, thing.shape, at, self.bytes(thing.row))

    def resize(self):
        one = self.growing()
        if one:
            path, _, thing = one
            rows = self.dice.randrange(thing.shape[0] + 1)
            self.say(path, rows)
            self.change(path, thing, (rows, *thing.shape[1:]), 0, b"")
