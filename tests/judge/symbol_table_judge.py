"""Judges by libhdf5 what tests/unit/check_symbol_table_write.c has made of a file of tests/fixtures/symbol_table_write.py.

    symbol_table_judge.py same FILE MODEL       the group has the links of the model: a line for each, NUMBER KIND TARGET
    symbol_table_judge.py states FOLDER OLD NEW each FOLDER/state-*.h5 has, of each link, what one of the two models says

Each file is then changed further by libhdf5, in a copy."""
import glob
import os
import random
import shutil
import sys

import h5py

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures"))
from symbol_table_write import make_name, make_soft, set_link  # noqa: E402


def load(path):
    with open(path) as f:
        lines = [line.split() for line in f]
    return {make_name(int(number)): (kind, int(target)) for number, kind, target in lines}


def look_up(group, name, headers):
    """What the link is, found by its name."""
    links, name = group.id.links, name.encode()
    if not links.exists(name):
        return None
    info = links.get_info(name)
    if info.type == h5py.h5l.TYPE_HARD:
        return "h", headers[info.u]
    return "s", links.get_val(name).decode()


def wanted(link):
    return link and (("s", make_soft(link[1])) if link[0] == "s" else link)


def read_headers(f):
    return {h5py.h5o.get_info(f[f"t{t}"].id).addr: t for t in range(10)}


def check(path, models, names):
    """Each of the names is what one of the models says, in the listing and when it is looked up."""
    with h5py.File(path, "r") as f:
        group, headers, now = f["g"], read_headers(f), {}
        listing = list(group)
        assert listing == sorted(set(listing)), (path, "unsorted, or twice")
        for name in names:
            found = look_up(group, name, headers)
            assert found in [wanted(model.get(name)) for model in models], (path, name[:20], found)
            if found:
                now[name] = found
        assert sorted(now) == listing, (path, set(now) ^ set(listing))
    return now


def change_further(path, some, remove):
    """libhdf5 adds links, removes so many of the others, and copies the group."""
    copy = path + ".copy"
    shutil.copy(path, copy)
    rng = random.Random(path)
    with h5py.File(copy, "r+") as f:
        group = f["g"]
        names = set(group)
        added = [make_name(i) + "+" for i in rng.sample(range(10000), some)]
        for i, name in enumerate(added):
            set_link(group, name, "sh"[i % 2], i % 10)
        gone = rng.sample(sorted(names), min(len(names), remove))
        for name in gone:
            del group[name]
        names = names - set(gone) | set(added)
    with h5py.File(copy, "r+") as f:
        group = f["g"]
        assert list(group) == sorted(names), copy
        assert all(group.id.links.exists(name.encode()) for name in names), copy
        if len(names) < 3000:
            f.copy("g", "copy")
            assert list(f["copy"]) == sorted(names), copy
            del f["g"]
    os.unlink(copy)


def main(what, path, *models):
    models = [load(model) for model in models]
    names = sorted(set().union(*models))
    if what == "same":
        check(path, models, names + [make_name(i) + "?" for i in range(50)])
        change_further(path, 300, 900)
        return
    states = sorted(glob.glob(path + "/state-*.h5"))
    assert states
    gone, come = ([name for name in names if name in a and name not in b] for a, b in (models, models[::-1]))
    changed = [name for name in names if name in models[0] and name in models[1] and models[0][name] != models[1][name]]
    moves = len(gone) == len(changed) == 1 and not come and models[1][changed[0]] == models[0][gone[0]]
    for i, state in enumerate(states):
        now = check(state, models, names)
        # A link that got another name always has one.
        assert not len(gone) == len(come) == 1 or {*gone, *come} & set(now), state
        # Nor does it lack one when it takes the place of another.
        assert not moves or gone[0] in now or now[changed[0]] == wanted(models[1][changed[0]]), state
        # Until the commit is whole, pointers to siblings may be stale. libhdf5 uses them only when it removes links.
        if i % 3 == 0:
            change_further(state, 20, 0)
    change_further(states[0], 20, 60)
    change_further(states[-1], 20, 60)
    before, after = check(states[0], models, names), check(states[-1], models, names)
    assert before == {name: wanted(link) for name, link in models[0].items()}, "the first state"
    assert after == {name: wanted(link) for name, link in models[1].items()}, "the last state"


main(*sys.argv[1:])
