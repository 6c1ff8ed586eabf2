"""What libhdf5 says of a group whose links were changed, for tests/unit/check_group_write.c.

    group_judge.py FILE MODEL           the group has exactly the links of the model; then libhdf5 goes on with it
    group_judge.py states FOLDER OLD NEW    each FOLDER/state-*.h5 has of each link what the old or the new model says, and no link that is in
                                            both of them, perhaps under different names, is missing; and libhdf5 goes on with some

The link "moved" of the root is one of them, too, named "/moved". A model begins with "counts 1" if the number of references to each
target is 1,000,000 and those in the group: then it is never less. Each other line is a link: its name in hexadecimal, its kind, the
number of its target, its order of creation or -."""
import glob
import os
import shutil
import sys

import h5py

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures"))
import group_write

KINDS = {h5py.h5l.TYPE_HARD: "h", h5py.h5l.TYPE_SOFT: "s", h5py.h5l.TYPE_EXTERNAL: "x"}


def read_model(path):
    with open(path) as lines:
        parts = [line.split() for line in lines][1:]
    return {bytes.fromhex(name): (kind, int(target), order) for name, kind, target, order in parts}


def target_of(file, group, name, info):
    if info.type == h5py.h5l.TYPE_HARD:
        token = h5py.h5o.get_info(group, name).addr
        return next(t for t in range(10) if h5py.h5o.get_info(file.id, b"t%d" % t).addr == token)
    value = group.links.get_val(name)
    if info.type == h5py.h5l.TYPE_EXTERNAL:
        assert value[0] == b"other.h5", value
        value = value[1]
    serial = int(value[3:].split(b"x")[0])
    assert value == group_write.make_path(serial), (name, value[:50])
    return serial


def is_counted(path):
    with open(path) as lines:
        return next(lines) == "counts 1\n"


def names_by(group, index):
    names = []
    group.links.iterate(lambda name: names.append(name), idx_type=index)
    return names


def read_links(file, check_order=None):
    group = file["g"].id
    names = names_by(group, h5py.h5.INDEX_NAME)
    assert len(set(names)) == len(names) == group.get_num_objs()
    for i in range(len(file["g"].attrs)):
        assert file["g"].attrs["a%d" % i].tolist() == [i] * (3000 + i)
    found = {}
    for name in names:
        info = group.links.get_info(name)
        found[name] = (KINDS[info.type], target_of(file, group, name, info))
    if file.id.links.exists(b"moved"):
        info = file.id.links.get_info(b"moved")
        found[b"/moved"] = (KINDS[info.type], target_of(file, file["/"].id, b"moved", info))
    if check_order and all(order != "-" for _, _, order in check_order.values()) and check_order:
        expected = sorted(check_order, key=lambda name: int(check_order[name][2]))
        assert names_by(group, h5py.h5.INDEX_CRT_ORDER) == expected, "order of creation"
    return found


def go_on(path, found):
    """libhdf5 adds, removes and renames."""
    found = {name: link for name, link in found.items() if name != b"/moved"}
    with h5py.File(path, "r+") as file:
        group = file["g"]
        if b"moved" in file.id:
            file.id.unlink(b"moved")
        assert "outside" not in list(file) or file.get("outside", getlink=True).filename == "other.h5"
        file["theirs"] = 5
        for i in range(15):
            name = b"theirs%d" % i
            kind, target = "hs"[i % 2], i % 10
            group_write.set_link(group, name, kind, target)
            found[name] = kind, target
        for n, name in enumerate(sorted(found)):
            if n % 3 == 0:
                group.id.unlink(name)
                del found[name]
            elif n % 3 == 1:
                group.id.links.move(name, group.id, name + b"~")
                found[name + b"~"] = found.pop(name)
    with h5py.File(path, "r") as file:
        assert read_links(file) == found, "after libhdf5's changes"
        assert file["theirs"][()] == 5
    with h5py.File(path, "r+") as file:
        for name in found:
            file["g"].id.unlink(name)
    with h5py.File(path, "r") as file:
        assert not read_links(file)


def judge(path, model):
    with h5py.File(path, "r") as file:
        found = read_links(file, model)
    expected = {name: (kind, target) for name, (kind, target, _) in model.items()}
    assert found == expected, set(found.items()) ^ set(expected.items())
    copy = path + ".copy"
    shutil.copy(path, copy)
    go_on(copy, found)
    os.unlink(copy)


def judge_state(path, old, new, counted, further):
    with h5py.File(path, "r") as file:
        found = read_links(file)
        for t in range(10 if counted else 0):
            assert h5py.h5o.get_info(file.id, b"t%d" % t).rc >= 1000000 + list(found.values()).count(("h", t)), (path, t)
    for name in set(old) | set(new) | set(found):
        assert found.get(name) in ((old.get(name) or (None,))[:2] if name in old else None,
                                   new[name][:2] if name in new else None), (path, name, found.get(name))
    stay = {link[:2] for link in old.values()} & {link[:2] for link in new.values()}
    assert stay <= set(found.values()), (path, stay - set(found.values()))
    if further:
        go_on(path, found)


if __name__ == "__main__":
    if sys.argv[1] == "states":
        states = sorted(glob.glob(sys.argv[2] + "/state-*.h5"))
        assert states
        for i, state in enumerate(states):
            judge_state(state, read_model(sys.argv[3]), read_model(sys.argv[4]), is_counted(sys.argv[3]), i % 3 == 1)
    else:
        judge(sys.argv[1], read_model(sys.argv[2]))
