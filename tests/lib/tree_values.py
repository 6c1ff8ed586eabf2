"""Steps of tree_player.py that set and remove attributes."""
import errno
import json
import os

import numpy

import tree_model
from tree_steps import Steps


def numbers(values, dtype="<i8"):
    array = numpy.array(values, dtype)
    return ("numbers", array.dtype.str, array.shape, array.tobytes())


NEW_VALUES = [("5", numbers(5)), ("-70000", numbers(-70000)), ("0.5", numbers(.5, "<f8")), ("[1,2,3]", numbers([1, 2, 3])),
              ("[[0.5,1.5],[2.5,3.5]]", numbers([[.5, 1.5], [2.5, 3.5]], "<f8"))]
NEW_VALUES += [(text, ("text", text)) for text in ("", "a text", "é", "007", "1.50", " 5", "longer " * 40, "long " * 900, "x" * 40_000)]

TYPED = {"<f4": numbers(0, "<f4"), "(3,)<i4": numbers([0] * 3, "<i4"), "S10": ("bytes", b""), "S30000": ("bytes", b""), "vlen str": ("text", ""),
         "<f8": numbers(0, "<f8"), "<i2": numbers(0, "<i2"), "(2,)>i8": numbers([0] * 2, ">i8")}


class AttributeSteps(Steps):
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
                values = numpy.array(json.loads(text), float)
            except (ValueError, TypeError):
                return None
            return numbers(values, new[1]) if values.shape == new[2] else None
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
