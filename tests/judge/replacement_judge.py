"""replacement_judge.py BYTES FILE...

libhdf5 reads each dataset of the files: all of its elements are one and the same of the BYTES. Exits with 1 and says what is wrong."""
import sys

import h5py
import numpy as np

for path in sys.argv[2:]:
    with h5py.File(path, "r") as f:
        assert len(f) == 8, path
        for name, d in f.items():
            found = np.unique(d[...])
            assert len(found) == 1 and chr(found[0]) in sys.argv[1], f"{path}: {name}: {found}"
