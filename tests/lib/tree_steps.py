"""What all who change a file beside a model (tree_model.py) have in common: how they choose what to change."""
import os

from tree_model import error_of, escape, leads_back, named, short

TRACE = os.environ.get("H5FS_TREE_TRACE")  # a file to which all operations go
LARGEST = 40_000  # bytes that a dataset grows to


class Wrong(AssertionError):
    pass


class Steps:
    """Has the steps of a subclass: methods with its WEIGHTS."""
    WEIGHTS = {}

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
        return self.model.is_group(link)

    def groups(self):
        yield self.top, self.model.follow(self.top)
        for path, _, below in self.model.places(self.top):
            for name, number in below:
                if self.is_own(number):
                    yield (*path, name), number

    def existing(self, wanted=lambda link: True):
        """(path, number of the group above, link) of any group, or None."""
        found, of_group = [], {}
        for path, chain, _ in self.model.places(self.top):
            number = chain[-1]
            if path != self.top and not self.is_own(number):
                continue
            if number not in of_group:
                of_group[number] = [(name, link) for name, link in self.thing(number).links.items() if wanted(link)]
            names = [(name, link) for name, link in of_group[number] if not leads_back(link, chain)]
            if names:
                found.append((path, number, names))
        if not found:
            return None
        # Groups of many links shall not be all that changes.
        path, number, names = self.dice.choices(found, [min(len(names), 20) for _, _, names in found])[0]
        name, link = self.dice.choice(names)
        return (*path, name), number, link

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

    def is_precious(self, link):
        return link and link[0] == "hard" and link[1] in self.precious

    def bytes(self, n):
        return self.dice.randbytes(n) if self.dice.random() < .4 else (self.dice.randbytes(self.dice.randint(1, 9)) * n)[:n]

    def some_bytes(self):
        return self.bytes(int(10 ** self.dice.uniform(0, 4.3)))

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

    def inside(self, thing):
        """Offset and bytes of a part."""
        at = self.dice.randrange(len(thing.data))
        return at, self.dice.choice([1, self.dice.randint(1, len(thing.data) - at), len(thing.data) - at])

    # ---- playing ----

    def expect(self, expected, function, *arguments):
        """Runs a call; returns whether it succeeded."""
        found = error_of(function, *arguments)
        if found not in (expected if isinstance(expected, tuple) else (expected,)):
            raise Wrong(f"{named(found)}, not {named(expected)}")
        return not found

    def equal(self, found, expected, what):
        if found != expected:
            raise Wrong(f"{what}: {short(found)}, not {short(expected)}")

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
