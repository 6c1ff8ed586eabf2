"""Random values of every class, as JSON, as NumPy has them, and as h5py reads them.

    kind = random_kind(rng, depth)      a Kind
    value = kind.make(rng)              a Python value that json.dumps() makes a line of
    kind.dtype                          for h5py
    kind.model(value)                   what of(...) gives for what h5py reads"""
import json
import math
import os
import struct

import h5py
import numpy

TEXTS = ["", "a", "Oslo", "Ærø – 東京", "tab\tand \"quotes\"", "\\ / \x01 \x7f", "x" * 300, "🚀"]


def strings(f, name, shape=(0,), **how):
    return f.create_dataset(name, shape, h5py.string_dtype(), maxshape=(None, *shape[1:]), **how)


def append(path, data):
    """One write; returns how many bytes of it were taken."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        return os.write(fd, data)
    finally:
        os.close(fd)


def of(value):
    """What h5py has read, as lists, numbers, bytes."""
    if isinstance(value, (numpy.void, numpy.record)) and value.dtype.names:
        return [of(value[name]) for name in value.dtype.names]
    if isinstance(value, numpy.void):
        return bytes(value)
    if isinstance(value, numpy.ndarray):
        return [of(v) for v in value]
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, numpy.generic):
        value = value.item()
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return value


class Kind:
    """`make`: a random value as JSON has it; `model`: the same as of() has it; `missing`: of() of a member that is not there."""
    def __init__(self, dtype, make, model, missing, fixed=True):
        self.dtype, self.make, self.model, self.missing, self.fixed = dtype, make, model, missing, fixed


def integer(rng, orders="<>"):
    size, order = rng.choice([1, 2, 4, 8]), rng.choice(orders)
    if rng.random() < 0.5:
        low, high, letter = -1 << 8 * size - 1, (1 << 8 * size - 1) - 1, "i"
    else:
        low, high, letter = 0, (1 << 8 * size) - 1, "u"
    return Kind(numpy.dtype(f"{order}{letter}{size}"), lambda r: r.choice([low, high, 0, r.randint(low, high)]), lambda v: v, 0)


def real(rng, orders="<>"):
    size, order = rng.choice([2, 4, 8]), rng.choice(orders)
    form = {2: "<e", 4: "<f", 8: "<d"}[size]

    def make(r):
        if r.random() < 0.2:
            return r.choice(["NaN", "Infinity", "-Infinity", 0, -1, 100])
        value = struct.unpack(form, r.randbytes(size))[0]
        return value if math.isfinite(value) else 0.5

    def model(v):
        return "NaN" if v == "NaN" else math.inf if v == "Infinity" else -math.inf if v == "-Infinity" else float(v)
    return Kind(numpy.dtype(f"{order}f{size}"), make, model, 0.0)


def fixed_string(rng):
    size = rng.randint(1, 12)
    # h5py writes S<n> padded with NULs, so n bytes fit
    return Kind(numpy.dtype(f"S{size}"), lambda r: "".join(r.choice("abcZ 09") for _ in range(r.randint(0, size))).rstrip("\0"),
                lambda v: v.encode(), b"")


def opaque(rng):
    size = rng.randint(1, 9)
    return Kind(numpy.dtype(f"V{size}"), lambda r: r.randbytes(size).hex(), bytes.fromhex, bytes(size))


def enumeration(rng):
    names = {"red": 0, "green": 7, "blue": 3}
    return Kind(h5py.enum_dtype(names, basetype=rng.choice(["<i2", ">u4", "i1"])), lambda r: r.choice([*names, 5]),
                lambda v: names.get(v, v), 0)


def boolean(rng):
    return Kind(numpy.dtype(bool), lambda r: r.choice(["TRUE", "FALSE"]), lambda v: v == "TRUE", False)


def complex_number(rng):
    return Kind(numpy.dtype(rng.choice(["<c8", "<c16"])), lambda r: {"r": r.randint(-99, 99) / 4, "i": r.randint(-99, 99) / 4},
                lambda v: complex(v["r"], v["i"]), 0j)


def string(rng):
    return Kind(h5py.string_dtype(rng.choice(["utf-8", "ascii"])), lambda r: r.choice(TEXTS), lambda v: v.encode(), b"", False)


def sequence(rng, depth):
    base = rng.choice([integer, real])(rng, "<")  # h5py reads sequences of the other order as if they were of this one
    return Kind(h5py.vlen_dtype(base.dtype), lambda r: [base.make(r) for _ in range(r.choice([0, 1, 2, 40]))],
                lambda v: [base.model(x) for x in v], [], False)


def array(rng, depth):
    base = random_kind(rng, depth + 1, [integer, real, fixed_string, boolean])
    n = rng.randint(1, 4)
    return Kind(numpy.dtype((base.dtype, (n,))), lambda r: [base.make(r) for _ in range(n)],
                lambda v: [base.model(x) for x in v], [base.missing] * n)


def compound(rng, depth):
    names = rng.sample(["a", "station", "Ærø", "with space", "q\"uote", "z"], rng.randint(1, 5))
    members = [(name, random_kind(rng, depth + 1)) for name in names]

    def make(r):
        return {name: kind.make(r) for name, kind in r.sample(members, r.randint(0, len(members)) if r.random() < 0.3 else len(members))}
    return Kind(numpy.dtype([(name, kind.dtype) for name, kind in members]), make,
                lambda v: [kind.model(v[name]) if name in v else kind.missing for name, kind in members],
                [kind.missing for _, kind in members], all(kind.fixed for _, kind in members))


SIMPLE = [integer, real, fixed_string, opaque, enumeration, boolean, complex_number, string]


def random_kind(rng, depth=0, among=None):
    make = rng.choice(among or SIMPLE + ([sequence, array, compound] if depth < 3 else []))
    return make(rng, depth) if make in (sequence, array, compound) else make(rng)


def random_text_kind(rng):
    """One that is shown as text."""
    while True:
        kind = random_kind(rng, 0, [string, sequence, compound, compound, compound])
        if not kind.fixed:
            return kind


def line(rng, value):
    """The line, as different programs would write it."""
    ascii, dense = rng.random() < 0.5, rng.random() < 0.5
    text = json.dumps(value, ensure_ascii=ascii, separators=(",", ":") if dense else None)
    return text.encode() + b"\n"


# ---- lines that are refused ----

# A compound with a member of each class; what each member takes, and values that it does not.
EVERY = {
    "i1": (numpy.dtype("i1"), 1, ["128", "-129", "1.5", '"1"', "[1]", "{}", "true", "null", "1e3", "0x10", "+1", "01", "1.", ".5", "-", "NaN"]),
    "u8": (numpy.dtype(">u8"), 2, ["-1", "18446744073709551616", "1e20", "0.1", '""', "1e-1", "99999999999999999999999999"]),
    "f4": (numpy.dtype("<f4"), 0.5, ["1e39", '"nan"', '"inf"', '"1"', "[]", "Infinity", "-Infinity", "1e", "null", '"0x"', '"0x1"']),
    "f8": (numpy.dtype("<f8"), 0.5, ["1e400", "-1e400", '"+Infinity"', "1,5", "--1", "{}"]),
    "s3": (numpy.dtype("S3"), "abc", ['"abcd"', "3", "null", '["a"]', r'"a\u0000"', '"\u00e4\u00e4"', r'"\ud800"', r'"\u12"', r'"\x"', '"a', '"\t"']),
    "text": (h5py.string_dtype(), "text", ["1", "null", "[]", r'"a\u0000b"', r'"\udbff"', r'"\ud800\ud800"', r'"\ude00"', '"a\x01"', r'"\u00g0"', '"\\']),
    "color": (h5py.enum_dtype({"red": 1, "green": 7}, basetype="i2"), "red", ['"blue"', '""', '"RED"', "32768", "[1]", "true", "1.5"]),
    "flag": (numpy.dtype(bool), "TRUE", ["true", "false", '"true"', "128", "null"]),
    "bytes": (numpy.dtype("V2"), "00ff", ['"00f"', '"00ff0"', '"00fg"', '""', "0", '"0x00"', '"00 ff"']),
    "z": (numpy.dtype("<c16"), {"r": 0, "i": 1}, ["[0]", "[0,1,2]", "1", '["0","1"]', '{"re":0}', "{\"r\":\"x\"}"]),
    "pair": (numpy.dtype(("<i2", (2,))), [1, 2], ["[1]", "[1,2,3]", "[]", "1", "[1,[2]]", '[1,"2"]', "[1,32768]", "[1,]", "[,1]", "[1 2]"]),
    "days": (h5py.vlen_dtype("u1"), [1, 2], ["[256]", "[-1]", "[1,null]", "1", '"1"', "{}", "[[1]]", "[1", "[1,2,]", "[1.25]"]),
    "inner": (numpy.dtype([("a", "i1"), ("t", h5py.string_dtype())]), {"a": 1, "t": "x"},
              ['{"a":128}', '{"b":1}', "[1,2]", '{"a":1,"a":2}', '{"t":1}', '{"a":1,}', '{a:1}', "{'a':1}", '{"a" 1}', '{"a":}', '{"A":1}']),
    "ref": (h5py.ref_dtype, None, ['"/nowhere"', '"every"', '""', "1", "true", "[]", '{"object":"/every"}', '"/every/x"', '"/every\\u0000"']),
    "region": (h5py.regionref_dtype, None, ['"/every"', '{"object":"/every","blocks":[[[0],[0]]]}', "{}", "[]", "0"]),
}
EVERY_TYPE = numpy.dtype([(name, dtype) for name, (dtype, _, _) in EVERY.items()])


def bad_lines(rng, count):
    """Lines that are no element of EVERY_TYPE, each with the member that is wrong, or None."""
    good = {name: value for name, (_, value, _) in EVERY.items()}
    whole = json.dumps(good)
    lines = [(text, None) for text in (b"", b" ", b"1", b"[]", b"null", b'"x"', b"true", b"{}{}", b"{} 1", b"{},", b"{", b"}", b'{"', b"\xff", b"// x",
                                       b"\xef\xbb\xbf{}", b"nan", b"{}\0", b"\0", b"{\0}", b"[" * 2000, b'{"i1":1,"i1":1}', whole.encode() * 2,
                                       b'{"none":1}', b'{"I1":1}', b'{"":1}', b'{"i1 ":1}', b'{"i1\\u0000":1}')]
    for name, (_, _, values) in EVERY.items():
        for value in values:
            for alone in True, False:
                members = {name: 0} if alone else dict(rng.sample(sorted(good.items()), rng.randint(2, len(good))), **{name: 0})
                text = ",".join(f"{json.dumps(key)}:{value if key == name else json.dumps(good[key])}" for key in members)
                lines.append(("{%s}" % text).encode() and (("{%s}" % text).encode("utf-8", "surrogateescape"), name))
    while len(lines) < count:
        kind = rng.randrange(3)
        if kind == 0:  # cut
            lines.append((whole[:rng.randrange(len(whole))].encode(), None))
        elif kind == 1:  # unknown
            name = "x" * rng.randint(1, 300) + str(len(lines))
            lines.append((json.dumps(dict(good, **{name: 1})).encode(), None))
        else:  # a byte too much, where none may be
            at = rng.choice([i for i, c in enumerate(whole) if c in "{}[]:,"])
            lines.append(((whole[:at] + rng.choice("{}[]:,;x'") + whole[at:]).encode(), None))
    return lines
