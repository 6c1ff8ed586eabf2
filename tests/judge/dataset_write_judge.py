"""dataset_write_judge.py FILE LIST

libhdf5 compares the datasets of FILE (tests/fixtures/dataset_write.py) with NAME.model beside it, and then changes them
itself: what a growing dataset uncovers must be the fill value, and all chunks can be written.
"""
import os
import sys

import h5py
import numpy as np

path, listing = sys.argv[1:]
folder = os.path.dirname(path)
os.chdir(folder)  # external files are named relative to it


def datasets():
    name = os.path.basename(path)[:-3]
    with open(listing) as lines:
        for line in lines:
            file, dataset, _, error, _, row, most, size, fill = line.split()
            if file == name and not int(error):
                yield dataset, int(row), int(most), int(size), bytes.fromhex(fill)


def raw_of(d, size):
    raw = np.zeros(d.shape, f"V{size}")
    if d.size:
        d.id.read(h5py.h5s.ALL, h5py.h5s.ALL, raw, d.id.get_type())
    return raw.tobytes()


def compare(d, size, expected, what):
    found = raw_of(d, size)
    assert len(found) == len(expected), f"{d.name} {what}: {len(found)} bytes, not {len(expected)}"
    for i, (a, b) in enumerate(zip(found, expected)):
        assert a == b, f"{d.name} {what}: byte {i} of {len(found)}, shape {d.shape}: {a}, not {b}"


def model(name):
    with open(os.path.join(folder, name + ".model"), "rb") as f:
        return f.read()


def any_skipped(d):
    """Chunks for which filters were skipped. Where libhdf5 stores such a one anew, in as many bytes as before, it leaves
    the filter mask as it was, and the chunk is damaged: so it is spared that."""
    return any(d.id.get_chunk_info(i).filter_mask for i in range(d.id.get_num_chunks()))


def main():
    with h5py.File(path, "r") as f:
        for name, _, _, size, _ in datasets():
            compare(f[name], size, model(name), "as written")
    with h5py.File(path, "r+") as f:
        for name, row, most, size, fill in datasets():
            d, expected = f[name], model(name)
            if not most or not row:
                continue
            rows = d.shape[0] + 2 * d.chunks[0] + 1
            if d.chunks[0] > 1000:
                rows = d.shape[0] + 100
            if most > 0:
                rows = min(rows, most)
            d.resize(rows, 0)
            expected += fill * ((rows * row - len(expected)) // size)
            compare(d, size, expected, "grown")
            if any_skipped(d):
                d.resize(0, 0)
                d.resize(rows, 0)
            data = np.frombuffer(os.urandom(len(expected)), f"V{size}").reshape(d.shape)
            d.id.write(h5py.h5s.ALL, h5py.h5s.ALL, data, d.id.get_type())
            d.resize(rows // 2, 0)
            with open(os.path.join(folder, name + ".model"), "wb") as out:
                out.write(data.tobytes()[:rows // 2 * row])
    with h5py.File(path, "r") as f:
        for name, _, _, size, _ in datasets():
            compare(f[name], size, model(name), "as libhdf5 left it")


main()
