#!/usr/bin/python3
"""names_judge.py FOLDER OLD: in each FOLDER/state-*.h5, which libhdf5 walks whole, every dataset of the file OLD has a name, and
no object counts fewer names than it has."""
import glob
import os
import sys

import h5py


def names_of(path):
    """The datasets' numbers, with how many names each has."""
    found, seen = {}, set()

    def walk(group):
        for name in group:
            item = group[name]
            info = h5py.h5o.get_info(item.id)
            if isinstance(item, h5py.Dataset):
                number = int(item[()])
                count = found.get(number, 0) + 1
                assert info.rc + 1 >= count, f"{path}: dataset {number} counts {info.rc} names, but has {count}"
                found[number] = count
            elif info.addr not in seen:
                seen.add(info.addr)
                walk(item)

    with h5py.File(path) as f:
        walk(f)
    return found


folder, old = sys.argv[1:]
expected = set(names_of(old))
states = sorted(glob.glob(os.path.join(folder, "state-*.h5")))
assert states, "no states"
for state in states:
    lost = expected - set(names_of(state))
    assert not lost, f"{state}: datasets {sorted(lost)} have no name"
