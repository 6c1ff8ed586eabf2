"""shape_judge.py last|any|ROWS,COLUMNS FILE...

libhdf5 reads each dataset of the files that tests/unit/check_shape.c has made: it has the last one of the shapes; any, or one that is between two;
or the first one cut to ROWS and COLUMNS; and the elements that belong in it. Where it is one shape, libhdf5 makes the datasets of a copy larger,
and finds the fill value there. Exits with 1 and says what is wrong."""
import shutil
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
elif sys.argv[1] != "any":
    STATES = [resized(STATES[0], tuple(map(int, sys.argv[1].split(","))))]
for path in sys.argv[2:]:
    with h5py.File(path, "r") as f:
        assert len(f) == 7, path
        for name, d in f.items():
            found = d[...]
            assert any(np.array_equal(found, state) for state in STATES), f"{path}: {name} {d.shape}: {found}"
    if sys.argv[1] != "any":
        with h5py.File(shutil.copy(path, path + ".larger"), "r+") as f:
            for name, d in f.items():
                larger = tuple(n + 22 if most is None else most for n, most in zip(d.shape, d.maxshape))
                d.resize(larger)
                assert np.array_equal(d[...], resized(STATES[0], larger)), f"{path}: {name} has something outside of its dimensions: {d[...]}"
