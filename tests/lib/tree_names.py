"""Steps of tree_player.py that make, move and remove names."""
import errno
import os

from tree_calls import EXCHANGE, NOREPLACE, rename
from tree_model import Thing
from tree_steps import LARGEST, Steps
from tree_values import NEW_VALUES


class NameSteps(Steps):
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
            if flags == EXCHANGE:
                return errno.EINVAL
            return errno.ENOTEMPTY if self.is_group(source) else (errno.ENOTEMPTY, errno.EISDIR)
        onto_itself = back[-1] == chain[-1] and path[-1] == new[-1]  # perhaps by another name of the group
        if onto_itself or target is None or flags == EXCHANGE:
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
        if len(thing.data) == most:
            return False  # it keeps its size, as for O_TRUNC
        return thing.can_resize and thing.row and not len(data) % thing.row and (most is None or len(data) <= most)

    def move(self, path, above, new, there, flags):
        links, new_links = self.thing(above).links, self.thing(there).links
        source, target = links.get(path[-1]), new_links.get(new[-1])
        self.say(path, new, flags)
        if self.is_precious(target):
            return
        if target and target[0] == "external" and source == target:
            return  # two names of one object, if it is there
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
