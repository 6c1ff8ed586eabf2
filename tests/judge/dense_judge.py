"""libhdf5 reads links or attributes in dense storage, and goes on changing them: FILE GROUP EXPECTED [SEED]

EXPECTED has a line for each message, in the order of creation: name, number, version, size (tests/lib/dense_names.py).
With SEED it then adds and removes some, and reads them again."""
import os
import random
import sys

import h5py

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import dense_names


def names_by(group, kind, index):
    names = []
    if kind == "links":
        group.id.links.iterate(names.append, idx_type=index)
    else:
        h5py.h5a.iterate(group.id, lambda name, *_: names.append(name), index_type=index)
    return [name.decode() for name in names]


def read(group, kind, name):
    if kind == "links":
        return group.get(name, getlink=True).path.encode()
    return group.attrs[name].tobytes()


def check(path, name, model):
    kind, order, _ = name.split("-")
    with h5py.File(path) as file:
        group = file[name]
        assert sorted(names_by(group, kind, h5py.h5.INDEX_NAME)) == sorted(model), "names"
        if order == "tracked":
            assert names_by(group, kind, h5py.h5.INDEX_CRT_ORDER) == list(model), "order"
        for key, (number, version, size) in model.items():
            assert read(group, kind, key) == dense_names.content(number, version, size), key


def change(path, name, model, seed):
    kind = name.split("-")[0]
    choose = random.Random(seed)
    with h5py.File(path, "r+", libver="latest") as file:
        group = file[name]
        for step in range(60):
            if model and choose.random() < (0.2 if step < 30 else 0.6):
                key = choose.choice(list(model))
                del (group if kind == "links" else group.attrs)[key]
                del model[key]
            else:
                key, size = f"judge{step}", choose.choice([7, 30, 100, 700, 5000] if seed % 2 else [7, 30])
                dense_names.set_one(group, kind, 1000 + step, key, seed % 100, size)
                model[key] = 1000 + step, seed % 100, size


def load(expected):
    with open(expected) as lines:
        return {key: tuple(map(int, numbers)) for key, *numbers in map(str.split, lines)}


def main():
    path, name, expected, *seed = sys.argv[1:]
    model = load(expected)
    check(path, name, model)
    if seed:
        change(path, name, model, int(seed[0]))
        check(path, name, model)


if __name__ == "__main__":
    main()
