"""The messages of dense_write*.h5: for the fixtures and the judge. tests/lib/dense_model.c knows the same."""
import numpy as np


PERIODS = [bytes(97 + (j * 7 + first) % 26 for j in range(26)) for first in range(26)]


def content(number, version, size):
    """Of a link the path that it leads to, of an attribute its bytes."""
    return (PERIODS[(version * 13 + number * 5) % 26] * (size // 26 + 1))[:size]


def set_one(group, kind, number, name, version, size):
    if kind == "links":
        import h5py
        group[name] = h5py.SoftLink(content(number, version, size).decode())
    else:
        group.attrs.create(name, np.frombuffer(content(number, version, size), "u1"))
