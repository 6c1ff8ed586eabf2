"""Judges by libhdf5 what tests/unit/check_global_heap_write.c has made of files of tests/fixtures/global_heap_write.py.

    global_heap_judge.py MODEL FILE...

MODEL has a line for each element, its bytes in hex: strings, then sequences. In each FILE an element has this value, or `old` if the
option --states comes first: then FILEs are what a kill may leave. Else libhdf5 adds values, and FILE is judged again."""

import sys

import h5py
import numpy as np

arguments = sys.argv[1:]
states = arguments[0] == "--states"
model, *files = arguments[states:]
lines = [bytes.fromhex(line) for line in open(model).read().split("\n")[:-1]]
COUNT = len(lines) // 2
strings = lines[:COUNT]
sequences = [np.frombuffer(line, "<i4") for line in lines[COUNT:]]


def judge(path):
    """True: all values are those of the model."""
    new = True
    with h5py.File(path, "r") as f:
        for i, (found, want) in enumerate(zip(f["strings"][...], strings)):
            found = found.encode() if isinstance(found, str) else found
            assert found == want or (states and found in (b"", b"old")), (path, i, found[:20], want[:20])
            new &= found == want
        for i, (found, want) in enumerate(zip(f["sequences"][...], sequences)):
            same = np.array_equal(found, want)
            assert same or (states and found.tolist() in ([], [1, 2, 3])), (path, i, found[:5], want[:5])
            new &= same
    return new


whole = [judge(path) for path in files]
if states:
    assert any(whole) and not all(whole), "no state between"
    sys.exit()
for path in files:
    with h5py.File(path, "r+") as f:
        for i in range(0, COUNT, 7):
            strings[i] = b"by libhdf5 %d" % i * (1 + i)
            f["strings"][i] = strings[i].decode()
            sequences[i] = np.arange(i, dtype="<i4")
            f["sequences"][i] = sequences[i]
        f.attrs["more"] = ["text"] * 500
    judge(path)
