#!/usr/bin/python3
"""What a crash leaves of names at any instant. Random requests that make, move and remove names are done without FUSE (tests/lib/vfs_shell.c),
and all calls that write are recorded. Then the files are made up that a kill or a power cut may leave, and libhdf5 walks each: every link leads
to a sound object; what the last acknowledged commit had, and nothing has changed since, is there; an object that had a name all the time has
one; and there is no name that was never there.

tests/lib/crashlib.py has the variables that say how much is looked at."""
import os
import random
import unittest
from collections import Counter

import h5py

import crashlib

REQUESTS = 80
RENAMES = 12  # between two commits
MOVES = 3  # sets of them, with a commit before each
MOVE_RUNS = {"symbol tables": (2, 19, 26), "superblock 2": (36,), "latest": (0, 6), "tracked": (0,)}  # of chance: most were wrong once
NOREPLACE, EXCHANGE = 1, 2
EXCHANGE_NAME = ".h5fs-exchange-"  # of an object that changes its name with another one, so that it always has one
ROOT = 0
UNKNOWN = -1  # the identity of an object that has none yet
STYLES = {
    "symbol tables": dict(libver="earliest"),
    "superblock 2": dict(libver=("v108", "v108")),
    "latest": dict(libver="latest"),
    "tracked": dict(libver="latest", track_order=True),
}


class Model:
    """Links: (identity of the group, name) to (kind, identity or target). All objects have an attribute `id`, which tells who they are."""

    def __init__(self):
        self.links, self.groups, self.known, self.last = {}, {ROOT}, {ROOT}, ROOT

    def copy(self):
        other = Model()
        other.links, other.groups, other.known, other.last = dict(self.links), set(self.groups), set(self.known), self.last
        return other

    def new(self, parent, name, is_group):
        self.last += 1
        if is_group:
            self.groups.add(self.last)
        self.links[parent, name] = "hard", self.last
        return self.last

    def children(self, group):
        return [name for parent, name in self.links if parent == group]

    def path_of(self, group):
        """Groups have one name each."""
        path = []
        while group != ROOT:
            group, name = next(key for key, to in self.links.items() if to == ("hard", group))
            path.insert(0, name)
        return "/".join(path)

    def is_below(self, group, top):
        while group not in (top, ROOT):
            group = next(parent for (parent, _), to in self.links.items() if to == ("hard", group))
        return group == top


def make(path, options, counts=(("few", 3), ("more", 12), ("many", 50))):
    """The file, and the model of it. counts: groups, and how many links each has."""
    model = Model()

    def fill(group, identity, count):
        for i in range(count):
            name = f"{'long ' * (i % 4)}name {i}"
            group[name] = h5py.Empty("u1") if i % 2 else [i]
            group[name].attrs["id"] = model.new(identity, name, False)

    with h5py.File(path, "w", **options) as f:
        f.attrs["id"] = ROOT
        for name, count in counts:
            group = f.create_group(name)
            group.attrs["id"] = model.new(ROOT, name, True)
            fill(group, model.last, count)
        fill(f, ROOT, 4)
    model.known = set(range(model.last + 1))
    return model


class Program:
    """Random requests, with what they do to the model. Each request is [word, ...] and the error that is expected."""

    def __init__(self, model, chance):
        self.model, self.chance = model, chance

    def name(self):
        return "n%d%s" % (self.chance.randrange(60), "x" * self.chance.choice((0, 0, 3, 40, 150)))

    def entry(self, *kinds):
        """A link whose object is of the kinds, and has a path."""
        of = {"group": lambda to: to[0] == "hard" and to[1] in self.model.groups,
              "dataset": lambda to: to[0] == "hard" and to[1] not in self.model.groups, "soft": lambda to: to[0] == "soft"}
        return self.chance.choice([None] + [key for key, to in self.model.links.items() if any(of[kind](to) for kind in kinds)])

    def path(self, key):
        return os.path.join(self.model.path_of(key[0]), key[1])

    def place(self):
        """A name that is free, most often."""
        return self.chance.choice(sorted(self.model.groups)), self.name()

    def mkdir(self):
        key = self.place()
        path = self.path(key)
        if key in self.model.links:
            return [(["mkdir", path], 17)]
        self.model.new(*key, True)
        return [(["mkdir", path], 0)]

    def mark(self):
        """Gives a group that is new an identity."""
        new = sorted(self.model.groups - self.model.known)
        if not new:
            return self.mkdir()
        identity = self.chance.choice(new)
        self.model.known.add(identity)
        return [(["set", self.model.path_of(identity), "user.id", str(identity)], 0)]

    def remove_links(self):
        """A group whose last name went is no more."""
        self.model.groups &= {ROOT} | {to[1] for to in self.model.links.values()}

    def rmdir(self):
        key = self.entry("group")
        if not key:
            return []
        path, group = self.path(key), self.model.links[key][1]
        if self.model.children(group):
            return [(["rmdir", path], 39)]
        del self.model.links[key]
        self.remove_links()
        return [(["rmdir", path], 0)]

    def unlink(self):
        key = self.entry("dataset", "soft")
        if not key:
            return []
        path = self.path(key)
        del self.model.links[key]
        return [(["unlink", path], 0)]

    def link(self):
        key, new = self.entry("dataset"), self.place()
        if not key:
            return []
        words = ["link", self.path(key), self.path(new)]
        if new in self.model.links:
            return [(words, 17)]
        self.model.links[new] = self.model.links[key]
        return [(words, 0)]

    def symlink(self):
        new, to = self.place(), self.entry("group", "dataset", "soft")
        target = "/" + (self.path(to) if to else self.name())
        relative = os.path.relpath(target, "/" + self.model.path_of(new[0]))
        words = ["symlink", relative, self.path(new)]
        if not relative.startswith(".."):
            target = relative
        if new in self.model.links:
            return [(words, 17)]
        self.model.links[new] = "soft", target
        return [(words, 0)]

    def rename(self):
        key = self.entry("group", "dataset", "soft")
        if not key:
            return []
        new = self.place() if self.chance.randrange(3) else self.entry("group", "dataset", "soft") or self.place()
        flags = self.chance.choice((0, 0, 0, NOREPLACE, EXCHANGE))
        words = ["rename", self.path(key), self.path(new), str(flags)]
        links, what, there = self.model.links, self.model.links[key], self.model.links.get(new)
        is_group = what[0] == "hard" and what[1] in self.model.groups
        over_group = there and there[0] == "hard" and there[1] in self.model.groups
        if flags == EXCHANGE and not there:
            return [(words, 2)]
        if flags == NOREPLACE and there:
            return [(words, 17)]
        if is_group and self.model.is_below(new[0], what[1]):
            return [(words, None)]  # EINVAL, or another where several fit
        if flags == EXCHANGE:
            if over_group and self.model.is_below(key[0], there[1]):
                return [(words, None)]
            links[key], links[new] = there, what
            return [(words, 0)]
        if there and key != new and there != what:
            if bool(is_group) != bool(over_group):
                return [(words, 21 if over_group else 20)]
            if over_group and self.model.children(there[1]):
                return [(words, 39)]
        if there == what and what[0] == "hard":
            return [(words, 0)]  # two names of one object: nothing is to be done
        del links[key]
        links[new] = what
        self.remove_links()
        return [(words, 0)]

    def commit(self):
        return [(["commit"], 0)]

    def end(self):
        """All groups that are new get an identity."""
        while self.model.groups - self.model.known:
            yield from self.mark()
        yield from self.commit()

    def requests(self):
        kinds = [self.mkdir, self.mark, self.mark, self.rmdir, self.unlink, self.link, self.symlink,
                 self.rename, self.rename, self.rename, self.rename, self.commit]
        for _ in range(REQUESTS):
            yield from self.chance.choice(kinds)()
        yield from self.end()


class Renames(Program):
    """Many names of one group change, and some of them back, or to what others were called; meanwhile others go, and new ones come."""

    def requests(self):
        links, group = self.model.links, next(to[1] for (parent, name), to in self.model.links.items() if name == "all")
        yield from self.commit()
        for turn in range(2):
            for name in self.chance.sample(sorted(self.model.children(group)), RENAMES):
                new = self.chance.choice((f"x_{name}", f"{name}_x", f"{turn}{self.chance.randrange(400)}"))
                if (group, name) not in links or (group, new) in links:
                    continue
                links[group, new] = links.pop((group, name))
                yield ["rename", self.path((group, name)), self.path((group, new)), "0"], 0
                if not self.chance.randrange(8):
                    key = self.chance.choice([key for key, to in links.items() if key[0] == group and to[1] not in self.model.groups])
                    yield ["unlink", self.path(key)], 0
                    del links[key]
                if not self.chance.randrange(8):
                    yield ["mkdir", self.path((group, f"made {turn} {name}"))], 0
                    self.model.new(group, f"made {turn} {name}", True)
            yield from self.commit()
        yield from self.end()


class Moves(Program):
    """Objects move to groups in which new files are being written, which no commit names."""

    def requests(self):
        group = {name: to[1] for (parent, name), to in self.model.links.items() if parent == ROOT}
        for i in range(4):
            yield from self.commit()
            for target in self.chance.sample(("few", "more"), 2):
                yield ["create", f"{target}/moved {i} new", f"{2 * i + (target == 'few')}"], 0
                name = self.chance.choice(sorted(self.model.children(group["many"])))
                self.model.links[group[target], f"moved {i}"] = self.model.links.pop((group["many"], name))
                yield ["rename", f"many/{name}", f"{target}/moved {i}", "0"], 0
        yield from self.commit()
        for i in range(4):
            for target in "few", "more":
                yield ["unlink", f"{target}/moved {i} new"], 0
        yield from self.commit()


class MovesAway(Program):
    """Objects move out of groups that get other names and attributes before and after that: what has their names may be in new space then."""

    def make(self, group, identity):
        for _ in range(self.chance.choice((1, 1, 6))):
            name = f"{self.chance.choice(('zz', 'a', 'n'))} {self.model.last}"
            yield ["mkdir", f"{group}/{name}"], 0
            self.model.new(identity, name, True)

    def requests(self):
        links = self.model.links
        group = {name: to[1] for (parent, name), to in links.items() if parent == ROOT}
        for _ in range(MOVES):
            yield from self.commit()
            for n in range(self.chance.randrange(3, 14)):
                kind, where = self.chance.randrange(4), self.chance.choice(("few", "more", "many"))
                if kind == 0:
                    yield ["set", where, f"user.{n}", "x" * self.chance.randrange(400)], 0
                elif kind == 1:
                    yield from self.make(where, group[where])
                elif where != "more" and (names := sorted(name for name in self.model.children(group[where]) if "name" in name)):
                    name = self.chance.choice(names)
                    links[group["more"], f"{where} {name}"] = links.pop((group[where], name))
                    yield ["rename", f"{where}/{name}", f"more/{where} {name}", "0"], 0
        yield from self.commit()
        yield from self.end()


class LateNames(Program):
    """Objects move out of groups in which datasets get their names that the last commit knows already: of files that are written slowly."""

    def requests(self):
        links = self.model.links
        group = {name: to[1] for (parent, name), to in links.items() if parent == ROOT}
        for i in range(4):
            names = self.chance.sample(("few", "more", "many"), 2)
            for n, name in enumerate(names):
                yield ["create", f".h5fs/csv/{name}/late {i}.csv", n, os.O_WRONLY], 0
                yield ["text", n, "text|line|"], 0
            yield from self.commit()
            for n, name in enumerate(names):
                moved = self.chance.choice(sorted(self.model.children(group[name])))
                to = names[1 - n]
                links[group[to], f"{i} {name} {moved}"] = links.pop((group[name], moved))
                words = ["rename", f"{name}/{moved}", f"{to}/{i} {name} {moved}", "0"], 0
                links[group[name], f"late {i}"] = "hard", UNKNOWN
                late = ["close", n], 0
                yield from self.chance.sample((words, late), 2)
        yield from self.commit()


class Found:
    """What libhdf5 finds in an image."""

    def __init__(self, image):
        self.links, self.counts, self.names = {}, {}, {}
        file = h5py.h5f.open_file_image(bytes(image))
        with h5py.File(file) as f:
            self.root = f
            self.walk(f, ROOT, set())
        del self.root

    def identity(self, thing):
        return int(thing.attrs["id"]) if "id" in thing.attrs else UNKNOWN

    def walk(self, group, identity, walked):
        address = h5py.h5o.get_info(group.id).addr
        if address in walked:
            return
        walked.add(address)
        for name in group:
            link = group.get(name, getlink=True)
            if isinstance(link, h5py.SoftLink):
                self.links[identity, name] = "soft", link.path
                continue
            thing = group[name]
            who = self.identity(thing)
            self.links[identity, name] = "hard", who
            info = h5py.h5o.get_info(thing.id)
            self.counts[who] = info.rc
            self.names.setdefault(info.addr, []).append((identity, name))
            if isinstance(thing, h5py.Group):
                self.walk(thing, who, walked)
            elif thing.shape:
                assert len(thing[...]) == 1


def wrong(found, models):
    """What the file has that it must not have after a crash between these states, or lacks."""
    known = set.intersection(*(m.known for m in models))
    # Who may be found without a name of its own.
    def shown(to):
        return to if to[0] == "soft" or to[1] in known else ("hard", UNKNOWN)

    allowed = {(key, form) for m in models for key, to in m.links.items() for form in (to, shown(to))}
    for key, to in found.links.items():
        if key[0] != UNKNOWN and (key, to) not in allowed and not key[1].startswith(EXCHANGE_NAME):
            yield f"{key}: {to} was never there"
    required = set.intersection(*(set(m.links.items()) for m in models))
    for key, to in required:
        if key[0] in known and found.links.get(key) not in (to, shown(to)):
            yield f"{key}: {to} is missing"
    there = {to[1] for to in found.links.values() if to[0] == "hard"}
    always = set.intersection(*({to[1] for to in m.links.values() if to[0] == "hard"} for m in models))
    for who in always & known - there:
        yield f"object {who} has no name"
    for who in always & known & there:
        least = min(sum(to == ("hard", who) for to in m.links.values()) for m in models)
        if found.counts[who] < least:
            yield f"object {who} has {least} names, and counts {found.counts[who]}"


class CrashNames(crashlib.CrashCase):
    def record(self, path, program):
        """Does what the program says. Returns the record, and for each request the number of calls after it, and the model."""
        shell = crashlib.Shell(path, self.file("record"))
        self.addCleanup(shell.stop)
        history = []
        for words, expected in program.requests():
            error, calls, _, _ = shell.ask(*words)
            if expected is None:
                self.assertNotEqual(error, 0, words)
            else:
                self.assertEqual(error, expected, words)
            history.append((calls, words == ["commit"], program.model.copy()))
        self.assertEqual(shell.end(), 0)
        return crashlib.Record(self.file("record")), history

    def run_program(self, kind, seed, *how):
        """Its file, itself, and what replay() wants to know of its run."""
        chance, path = random.Random(seed), self.file("data.h5")
        model = make(path, *how)
        with open(path, "rb") as f:
            before = f.read()
        program = kind(model.copy(), chance)
        return path, program, (before, *self.record(path, program), model, chance)

    def replay_in_each_style(self, kind, word):
        for style, options in STYLES.items():
            with self.subTest(style):
                path, _, run = self.run_program(kind, f"{style} {crashlib.SEED} {word}", options)
                self.replay(path, *run)

    def test_moves_beside_new_files(self):
        self.states = 30
        self.replay_in_each_style(Moves, "moves")

    def test_names_of_what_is_known_already(self):
        self.states = 20
        self.replay_in_each_style(LateNames, "late")

    def test_moves_out_of_changed_groups(self):
        self.states = 0
        self.kills_recovered = self.cuts_recovered = 60
        for style, options in STYLES.items():
            for run in MOVE_RUNS[style]:
                with self.subTest(style, run=run):
                    path, _, what = self.run_program(MovesAway, f"{style} {crashlib.SEED} away {run}", options,
                                                    [("few", 6), ("more", 12), ("many", 20)])
                    self.replay(path, *what)

    def test_many_renames(self):
        """No name of a large group that changes needs a commit of its own, and no object is without a name."""
        self.states = 6  # each is large
        for style, options in STYLES.items():
            with self.subTest(style):
                path, program, run = self.run_program(Renames, f"{style} {crashlib.SEED} renames", options, [("all", 280)])
                self.assertEqual({calls for calls, _, _ in run[2]}, {calls for calls, is_commit, _ in run[2] if is_commit})
                with open(path, "rb") as f:
                    self.assertEqual(sorted(Found(f.read()).links.items() ^ program.model.links.items()), [])
                self.replay(path, *run)

    def look(self, image, models):
        for what in wrong(Found(image), models):
            self.fail(what)

    def test_all_styles(self):
        for style, options in STYLES.items():
            with self.subTest(style):
                path, program, run = self.run_program(Program, f"{style} {crashlib.SEED}", options)
                with open(path, "rb") as f:
                    after = f.read()
                found = Found(after)
                self.assertEqual(sorted(found.links.items() ^ program.model.links.items()), [])
                self.assertEqual(found.counts, Counter(to[1] for to in found.links.values() if to[0] == "hard"))
                self.replay(path, *run)


if __name__ == "__main__":
    unittest.main(verbosity=2)
