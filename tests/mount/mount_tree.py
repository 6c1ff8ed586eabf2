#!/usr/bin/python3
"""Files of all styles are changed in mounts at random, by one process and by several, beside a model of their objects:
names, attributes, contents. After each mount the mount itself, libhdf5 and its tools find what the model says.

H5FS_TREE_SEQUENCES   how many sequences of operations
H5FS_TREE_SEED        of the first file; each file has its own, which a failure names ("random": another one every time)
H5FS_TREE_STYLES      the styles, with commas (all)
H5FS_TREE_RACES       how many files several processes change at once without a model
H5FS_TREE_KEEP        a folder to which the files are copied"""
import contextlib
import multiprocessing
import os
import random
import shutil
import struct
import subprocess

import h5py

import judges
import tree_files
import tree_walk
from mountlib import H5FS, Mount, MountCase, main
from tree_calls import fsync
from tree_library import LibraryPlayer
from tree_model import Model, Thing
from tree_player import Player
from tree_racer import Racer
from tree_steps import Wrong

SEQUENCES = int(os.environ.get("H5FS_TREE_SEQUENCES", "2000"))
SEED = os.environ.get("H5FS_TREE_SEED", "1")
STYLES = os.environ.get("H5FS_TREE_STYLES", ",".join([*tree_files.STYLES, *tree_files.NEW_STYLES])).split(",")
KEEP = os.environ.get("H5FS_TREE_KEEP")
STEPS = 12  # operations of a sequence
MOUNTS = 3  # of a file
WORKERS = 3  # processes
ALONE, EACH = 30, 6  # sequences of a mount: of one process, and of each of several
A_FILE = MOUNTS * (ALONE + WORKERS * EACH) + MOUNTS - 1  # of a file, with those of libhdf5
OPTIONS = "", "", ",filters=shuffle,deflate(4)", ",sync=close", ",order=creation", ",cache=0,index_cache=0", ",workers=1"
RACES = int(os.environ.get("H5FS_TREE_RACES", "2"))
RACERS = 4
RACE_STEPS = 300
# libhdf5's tools give memory back to the system and get it again for each piece of data, which takes longer than all else they do.
KEEPS_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(1 << 28), "MALLOC_TOP_PAD_": str(1 << 24)}


class Tree(MountCase):
    def make(self, style, seed):
        """The path of a file, what mounts it for writing, and the model."""
        path = self.file(f"{style} {seed}.h5")
        tree_files.make_neighbour(self.file(tree_files.NEIGHBOUR))
        if style in tree_files.STYLES:
            return tree_files.make(style, path), "rw", Model.load(path)
        return path, tree_files.NEW_STYLES[style], Model()

    def assertNone(self, wrong):
        self.assertFalse(wrong, "\n".join(wrong[:20]))

    def run_command(self, *command):
        run = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, env={**os.environ, **KEEPS_MEMORY})
        self.assertEqual(run.returncode, 0, f"{command}: {run.stdout[-1000:]}{run.stderr[-1000:]}")
        return run.stdout

    def test_free_space_of_a_heap_at_the_end_of_the_file(self):
        """libhdf5 writes the list of it there, and nothing follows."""
        for libver in "v108", "latest":
            path = self.file(f"{libver}.h5")
            with h5py.File(path, "w", libver=(libver, libver)) as f:
                for i in range(9):
                    f[f"group/link {i}"] = h5py.SoftLink("nothing")
            with h5py.File(path, "r+", libver=(libver, libver)) as f:
                del f["group/link 0"]
            with open(path, "rb") as f:
                data = f.read()
            at, room = struct.unpack_from("<Q8xQ", data, data.index(b"FSHD") + 54)
            self.assertEqual(at + room, len(data))
            self.assertIn("no damage found", self.run_command(H5FS, "--check", path))
            with Mount(path, options="rw") as m:
                os.mkdir(m.at("group/new"))
                os.unlink(m.at("group/link 1"))
            with judges.File(path) as f:
                self.assertEqual(sorted(f["group"]), [*(f"link {i}" for i in range(2, 9)), "new"])

    def test_one_process_and_several(self):
        for i in range(-(-SEQUENCES // A_FILE)):
            seed = random.randrange(1 << 32) if SEED == "random" else int(SEED) + i
            style = STYLES[seed % len(STYLES)]
            with self.subTest(seed=seed, style=style):
                try:
                    self.one_file(style, seed)
                finally:
                    if KEEP:
                        subprocess.run(["cp", "-r", self.folder, KEEP], check=True)

    def one_file(self, style, seed):
        dice = random.Random(seed)
        path, options, model = self.make(style, seed)
        # h5diff fails where a reference names what is no longer there, so in half of the files that stays.
        self.precious = model.referred() if dice.random() < .5 else ()
        for number in range(MOUNTS):
            more = dice.choice(OPTIONS)
            with Mount(path, "-f", options=options + more) as m, self.told(m):
                self.alone(model, dice, m.path)
                self.several(model, dice, m.path)
                self.assertNone(model.shown_differences(m.path))
            for thing in model.things.values():
                thing.plain = False
            self.assertNone(model.differences(tree_walk.walk(path)))
            if number + 1 < MOUNTS:
                self.theirs(model, dice, path)
        with Mount(path) as m:
            self.assertNone(model.shown_differences(m.path))
        self.judge(path, model)

    @contextlib.contextmanager
    def told(self, m):
        """A failure tells what the daemon has logged."""
        try:
            yield
        except (AssertionError, OSError) as e:
            raise AssertionError(f"{e}\nThe daemon said: {m.said()[-3000:]}") from e

    def alone(self, model, dice, folder):
        for _ in range(ALONE):
            Player(model, random.Random(dice.randrange(1 << 32)), folder, precious=self.precious).play(STEPS)
            model.prune()

    def theirs(self, model, dice, path):
        """libhdf5 goes on with the file."""
        with h5py.File(path, "r+", libver=dice.choice(["earliest", "latest"])) as f:
            LibraryPlayer(model, dice, f, precious=self.precious).play(STEPS)
        model.prune()
        self.assertNone(model.differences(tree_walk.walk(path)))

    # ---- several processes ----

    def several(self, model, dice, folder):
        """Each has a group of its own, below which it changes what has no names elsewhere."""
        tops = [(f"of worker {model.next} {i}",) for i in range(WORKERS)]
        for top in tops:
            os.mkdir(os.path.join(folder, *top))
            model.things[0].links[top[0]] = ("hard", model.new(Thing("group")))
        seeds = [dice.randrange(1 << 32) for _ in tops]
        for changed in in_processes(lambda i: self.work(model, seeds[i], folder, tops[i], (i + 1) << 40), WORKERS):
            model.things.update(changed)
        # Numbers of the next time are larger.
        model.next = max(model.things) + 1
        model.prune()

    @staticmethod
    def work(model, seed, folder, top, first):
        """What one process does; returns the things that it has changed."""
        own = model.own(top)
        model.next = first + model.next
        made = set()
        for _ in range(EACH):
            player = Player(model, random.Random(seed), folder, top, own | made)
            player.play(STEPS)
            made |= player.made
            seed += 1
        there = model.follow(top)
        return {n: t for n, t in model.part(top).items() if n in own or n in made or n == there}

    # ---- several processes that change the same names ----

    def test_races(self):
        for seed in range(int(SEED) if SEED != "random" else random.randrange(1 << 32), 1 << 33)[:RACES]:
            style = STYLES[seed % len(STYLES)]
            with self.subTest(seed=seed, style=style):
                self.race(style, seed)

    def race(self, style, seed):
        path, options, _ = self.make(style, seed)
        with Mount(path, "-f", options=options) as m, self.told(m):
            log = m.at("log of races")
            open(log, "xb").close()
            os.setxattr(log, "h5fs.info", b'{"dtype":"<u4","shape":"0,2","maxshape":"inf,2"}')
            rows = in_processes(lambda i: race(i, seed, m.path, log), RACERS)
            fsync(m.path)
            # What fsync has returned for is in the file.
            shutil.copyfile(path, path + ".copy")
            self.assertNone(Model.load(path + ".copy").shown_differences(m.path))
        model = Model.load(path)
        with h5py.File(path) as f:
            found = f["log of races"][...]
        for i, n in enumerate(rows):
            self.assertEqual(found[found[:, 0] == i, 1].tolist(), list(range(n)), f"rows of process {i}")
        with Mount(path) as m:
            self.assertNone(model.shown_differences(m.path))
        self.judge(path, model)

    # ---- judges ----

    def judge(self, path, model):
        with judges.File(path):
            pass
        said = self.run_command(H5FS, "--check", path)
        self.assertIn("no damage found", said)
        # h5dump prints neither what is gone nor, of attributes, datatypes without names.
        if not model.refers_to_gone() and not model.has_nameless_types():
            self.run_command("h5dump", path)
        if model.longest_path() > 255:
            return  # h5repack of 1.10 has no more room
        repacked = path + ".repacked"
        self.run_command("h5repack", path, repacked)
        if model.has_types_of_several_names():
            return  # h5repack leaves one name
        if not model.refers_to_gone():
            self.run_command("h5diff", path, repacked)
        self.assertNone(model.differences(tree_walk.walk(repacked)))
        with Mount(repacked) as m:
            self.assertNone(model.shown_differences(m.path))


def race(number, seed, folder, log):
    """What one process does; returns how many rows it has appended."""
    racer = Racer(number, random.Random(f"{seed} {number}"), folder, log)
    racer.play(RACE_STEPS)
    return racer.rows


def in_processes(function, n):
    """function(0), ..., function(n - 1), each in a process of its own: what they return."""
    pipes = []
    for i in range(n):
        ours, theirs = multiprocessing.Pipe(False)
        pid = os.fork()
        if not pid:
            try:
                theirs.send(function(i))
            except Exception as e:
                theirs.send(f"process {i}: {e}")
            finally:
                os._exit(0)
        theirs.close()
        pipes.append((pid, ours))
    answers = []
    for pid, ours in pipes:
        try:
            answers.append(ours.recv())
        except EOFError:
            answers.append("a process has died")
        os.waitpid(pid, 0)
    for answer in answers:
        if isinstance(answer, str):
            raise Wrong(answer)
    return answers


main()
