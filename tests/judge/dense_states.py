"""libhdf5 reads links or attributes in files that a kill has left between two states: FOLDER GROUP OLD NEW

OLD and NEW are as EXPECTED of dense_judge.py. In each FOLDER/state-*.h5 each message is as in one of them; those that
are the same in both are there. libhdf5 then changes some of the files."""
import glob
import sys

import h5py

import dense_judge


def state_of(path, name, old, new):
    kind = name.split("-")[0]
    with h5py.File(path) as file:
        group = file[name]
        names = dense_judge.names_by(group, kind, h5py.h5.INDEX_NAME)
        assert len(names) == len(set(names)), "names"
        if "tracked" in name:
            dense_judge.names_by(group, kind, h5py.h5.INDEX_CRT_ORDER)
        model = {}
        for key in names:
            contents = dense_judge.read(group, kind, key)
            found = [m[key] for m in (old, new) if key in m and contents == dense_judge.dense_names.content(*m[key])]
            assert found, (path, key, old.get(key), new.get(key), contents[:100])
            model[key] = found[0]
    missing = [key for key in old if old[key] == new.get(key) and key not in model]
    assert not missing, missing
    return model


def main():
    folder, name, old, new = sys.argv[1:]
    old, new = dense_judge.load(old), dense_judge.load(new)
    seen = []
    for number, path in enumerate(sorted(glob.glob(folder + "/state-*.h5"))):
        model = state_of(path, name, old, new)
        seen.append(dict(model))
        if number % 3:
            continue
        # The order of creation is not what the state tells.
        dense_judge.change(path, name, model, 7)
        assert state_of(path, name, model, model) == model, path
    assert old in seen and new in seen, (len(seen), "states")


main()
