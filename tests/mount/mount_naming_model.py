#!/usr/bin/python3
"""Names are made, moved and removed in a mount at random, beside a model; libhdf5 finds what the model says, also after kills.
H5FS_SEED chooses other sequences, H5FS_NAME_STEPS their length."""
import errno
import os
import random
import threading
import time

import h5py

from mountlib import Mount, main
from names_model import (EXCHANGE, NOREPLACE, NamesCase, STYLES, Soft, as_shown,
                         count_names, find, fsync, make, of_file, of_mount, rename, result)

SEED = os.environ.get("H5FS_SEED", "15")
STEPS = int(os.environ.get("H5FS_NAME_STEPS", "120"))


class Model(NamesCase):
    """Random operations beside the model."""

    def setUp(self):
        super().setUp()
        self.numbers = 0
        self.touched = []  # paths that operations have named

    def folders(self, tree, path=()):
        yield path
        for name, value in tree.items():
            if isinstance(value, dict):
                yield from self.folders(value, (*path, name))

    def a_path(self, dice, tree):
        folder = dice.choice(list(self.folders(tree)))
        here, _ = find(tree, (*folder, ""))
        if here and dice.random() < .7:
            return (*folder, dice.choice(list(here)))
        self.numbers += 1
        return (*folder, dice.choice([f"n{self.numbers}", f"{self.numbers} a longer name of a link" * 3, "é" + str(self.numbers)]))

    def make_folder(self, tree, path):
        here, name = find(tree, path)
        if name in here:
            return errno.EEXIST
        here[name] = {}
        return 0

    def remove(self, tree, path, folder):
        here, name = find(tree, path)
        if name not in here:
            return errno.ENOENT
        if isinstance(here[name], dict) != folder:
            return errno.ENOTDIR if folder else errno.EISDIR
        if folder and here[name]:
            return errno.ENOTEMPTY
        del here[name]
        return 0

    def link(self, tree, path, new):
        here, name = find(tree, path)
        there, new_name = find(tree, new)
        if name not in here:
            return errno.ENOENT
        if new_name in there:
            return errno.EEXIST
        if not isinstance(here[name], int):
            return errno.EPERM
        there[new_name] = here[name]
        return 0

    def rename(self, tree, path, new, flags):
        here, name = find(tree, path)
        there, new_name = find(tree, new)
        source, target = here.get(name), there.get(new_name)
        if source is None or (target is None and flags == EXCHANGE):
            return errno.ENOENT
        if target is not None and flags == NOREPLACE:
            return errno.EEXIST
        if new[:len(path)] == path and new != path:
            return errno.EINVAL
        if path[:len(new)] == new and new != path:
            return errno.EINVAL if flags == EXCHANGE else errno.ENOTEMPTY
        if source is target or (isinstance(source, int) and source == target):
            return 0
        if flags == EXCHANGE:
            here[name], there[new_name] = target, source
            return 0
        if target is not None:
            if isinstance(source, dict) != isinstance(target, dict):
                return errno.ENOTDIR if isinstance(source, dict) else errno.EISDIR
            if isinstance(target, dict) and target:
                return errno.ENOTEMPTY
        del here[name]
        there[new_name] = source
        return 0

    def symlink(self, tree, path, target):
        here, name = find(tree, path)
        if name in here:
            return errno.EEXIST
        if target.startswith("../"):
            above = list(path[:-1])
            for part in target.split("/"):
                if part != "..":
                    above.append(part)
                elif above:
                    above.pop()
                else:
                    return errno.EPERM
            target = "/" + "/".join(above)
        here[name] = Soft(target)
        return 0

    def step(self, dice, m, tree, exchange=True):
        """One operation; what it was."""
        def at(path):
            return m.at(*path)

        path, new = self.a_path(dice, tree), self.a_path(dice, tree)
        kind = dice.choice(["mkdir", "mkdir", "rmdir", "unlink", "rename", "rename", "rename", "exchange", "link", "link", "symlink"])
        flags = 0
        self.touched += [path, new]
        if kind == "mkdir":
            found, expected = result(os.mkdir, at(path)), self.make_folder(tree, path)
        elif kind == "rmdir":
            found, expected = result(os.rmdir, at(path)), self.remove(tree, path, True)
        elif kind == "unlink":
            found, expected = result(os.unlink, at(path)), self.remove(tree, path, False)
        elif kind == "link":
            found, expected = result(lambda: os.link(at(path), at(new), follow_symlinks=False)), self.link(tree, path, new)
        elif kind == "symlink":
            target = dice.choice(["d0", "a/d1", "../d0", "../../a/x", "../../../../up"])
            found, expected = result(os.symlink, target, at(path)), self.symlink(tree, path, target)
        else:
            flags = EXCHANGE if kind == "exchange" and exchange and dice.random() < .5 else dice.choice([0, 0, NOREPLACE])
            found = result(rename, at(path), at(new), flags)
            expected = self.rename(tree, path, new, flags)
        self.assertEqual(errno.errorcode.get(found), errno.errorcode.get(expected), (kind, path, new, flags))
        return kind, path, new, expected

    def test_random(self):
        for style, how in STYLES.items():
            dice = random.Random(f"{SEED} {style}")
            path = self.file(f"{style}.h5")
            tree = make(path, 30, **how)
            for round in range(3):
                options = "rw,order=creation" if round == 1 else "rw"
                with Mount(path, options=options) as m, self.subTest(seed=SEED, style=style, round=round):
                    for i in range(STEPS // 3):
                        self.step(dice, m, tree)
                        if dice.random() < .05:
                            fsync(m.path)
                    self.assertTree(of_mount(m.path), as_shown(tree), count_names(tree))
                with self.subTest(seed=SEED, style=style, round=round):
                    self.assertTree(of_file(path), tree, count_names(tree))
            self.assertChecked(path)
            with Mount(path) as m, self.subTest(seed=SEED, style=style):
                self.assertTree(of_mount(m.path), as_shown(tree), count_names(tree))
            # libhdf5 goes on: it makes and removes names everywhere, and then removes all.
            with h5py.File(path, "r+") as f, self.subTest(seed=SEED, style=style):
                for folder in reversed(list(self.folders(tree))):
                    group = f["/" + "/".join(folder)]
                    for i in range(12):
                        group.create_group(f"judged{i}")
                    for name in list(group)[::2]:
                        del group[name]
                for name in list(f):
                    del f[name]

    def test_kills(self):
        """What was committed is there after a kill; what came later is there or not, and no dataset is lost."""
        for kill in range(8):
            style = list(STYLES)[kill % len(STYLES)]
            dice = random.Random(f"{SEED} {kill}")
            path = self.file(f"kill{kill}.h5")
            tree = make(path, 24, **STYLES[style])
            gone, synced = set(), [tree_copy(tree)]
            self.touched.clear()
            with Mount(path, options="rw") as m, self.subTest(seed=SEED, kill=kill, style=style):
                # Of this mount: the path is one of the folder below when the mount has ended.
                root = os.open(m.path, os.O_RDONLY)

                def work():
                    try:
                        for i in range(1000):
                            names = set(count_names(tree))
                            try:
                                self.step(dice, m, tree, exchange=False)
                            finally:
                                gone.update(names - set(count_names(tree)))
                            if i % 9 == 4:
                                os.fsync(root)
                                synced[0] = tree_copy(tree)
                                self.touched.clear()
                                gone.clear()
                    except (AssertionError, OSError):
                        pass

                worker = threading.Thread(target=work)
                worker.start()
                time.sleep(.02 + dice.random() * .25)
                m.kill()
                worker.join()
                os.close(root)
            with self.subTest(seed=SEED, kill=kill, style=style):
                # While a name moves, there is one more than the object counts.
                self.check_killed(*of_file(path), synced[0], gone, moving=1)
                with Mount(path, options="rw"):
                    pass  # may complete the commit by its journal
                found, counts = of_file(path)
                self.check_killed(found, counts, synced[0], gone)
                with Mount(path, options="rw") as m:
                    self.step(dice, m, found)
                self.assertTree(of_file(path), found, count_names(found))
                self.assertChecked(path)

    def test_kills_of_exchanges(self):
        """Two names change places at once or not at all, but a third name may be left."""
        for kill in range(4):
            path = self.file(f"exchange{kill}.h5")
            tree = make(path, **STYLES[list(STYLES)[kill]])
            with Mount(path, options="rw") as m:
                def work():
                    while not result(rename, m.at("a/d1"), m.at("b/c/d2"), EXCHANGE):
                        pass

                worker = threading.Thread(target=work)
                worker.start()
                time.sleep(.05 + .013 * kill)
                m.kill()
                worker.join()
            for round in range(2):
                with self.subTest(kill=kill, round=round):
                    found, counts = of_file(path)
                    there, here = found["a"].pop("d1"), found["b"]["c"].pop("d2")
                    if round:  # with its journal each commit is done or not
                        self.assertEqual({there, here}, {1, 2})
                    self.assertEqual(set(count_names(found)) | {there, here}, set(range(12)))
                    self.assertGreaterEqual(set(found["a"]) | set(found["b"]["c"]), (set(tree["a"]) | set(tree["b"]["c"])) - {"d1", "d2"})
                with Mount(path, options="rw"):
                    pass
            self.assertChecked(path)

    def check_killed(self, found, counts, synced, gone, moving=0):
        names = count_names(found)
        for number, n in names.items():
            self.assertGreaterEqual(counts[number] + moving, n)
        for number in set(count_names(synced)) - gone:
            self.assertIn(number, names)
        for folder in self.folders(synced):
            for name, value in find(synced, (*folder, ""))[0].items():
                path = (*folder, name)
                if any(path[:len(t)] == t for t in self.touched):
                    continue
                here = find(found, path)[0]
                self.assertIsNotNone(here, path)
                self.assertIn(name, here)
                if not isinstance(value, dict):
                    self.assertEqual(here[name], value)


def tree_copy(tree):
    return {name: tree_copy(value) if isinstance(value, dict) else value for name, value in tree.items()}


if __name__ == "__main__":
    main()
