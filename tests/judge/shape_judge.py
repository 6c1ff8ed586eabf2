"""shape_judge.py last|any FILE...

libhdf5 reads each dataset of the files that tests/unit/check_shape.c has made: it has the last one of the shapes, or any, or one that is between
two, and the elements that belong in it. Exits with 1 and says what is wrong."""
import sys

import h5py
import numpy as np

SHAPES = (12, 13), (12, 7), (15, 20), (9, 30), (0, 4), (20, 9), (8, 8)


def resized(array, shape):
    new = np.full(shape, ord("f"), "u1")
    both = tuple(slice(0, min(pair)) for pair in zip(array.shape, shape))
    new[both] = array[both]
    return new


STATES = [np.arange(12 * 13, dtype="u1").reshape(12, 13)]
for shape in SHAPES[1:]:
    STATES.append(resized(STATES[-1], tuple(min(pair) for pair in zip(STATES[-1].shape, shape))))
    STATES.append(resized(STATES[-1], shape))
if sys.argv[1] == "last":
    STATES = STATES[-1:]
for path in sys.argv[2:]:
    with h5py.File(path, "r") as f:
        assert len(f) == 7, path
        for name, d in f.items():
            found = d[...]
            assert any(np.array_equal(found, state) for state in STATES), f"{path}: {name} {d.shape}: {found}"
