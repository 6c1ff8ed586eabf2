#!/usr/bin/python3
"""Files of all styles are changed in mounts at random, by one process and by several, beside a model of their objects:
names, attributes, contents. After each mount the mount itself, libhdf5 and its tools find what the model says.

H5FS_TREE_SEQUENCES   how many sequences of operations
H5FS_TREE_SEED        of the first file; each file has its own, which a failure names ("random": another one every time)
H5FS_TREE_STYLES      the styles, with commas (all)
H5FS_TREE_KEEP        a folder to which the files are copied"""
import contextlib
import multiprocessing
import os
import random
import subprocess

import h5py

import judges
import tree_files
import tree_walk
from mountlib import H5FS, Mount, MountCase, main
from tree_library import LibraryPlayer
from tree_model import Model, Thing
from tree_player import Player, Wrong

SEQUENCES = int(os.environ.get("H5FS_TREE_SEQUENCES", "450"))
SEED = os.environ.get("H5FS_TREE_SEED", "1")
STYLES = os.environ.get("H5FS_TREE_STYLES", ",".join([*tree_files.STYLES, *tree_files.NEW_STYLES])).split(",")
KEEP = os.environ.get("H5FS_TREE_KEEP")
A_FILE = 50  # sequences
STEPS = 12  # operations of a sequence
MOUNTS = 3
WORKERS = 3


class Tree(MountCase):
    def make(self, style, seed):
        """The path of a file, what mounts it for writing, and the model."""
        path = self.file(f"{style} {seed}.h5")
        if style in tree_files.STYLES:
            return tree_files.make(style, path), "rw", Model.load(path)
        return path, tree_files.NEW_STYLES[style], Model()

    def assertNone(self, wrong):
        self.assertFalse(wrong, "\n".join(wrong[:20]))

    def run_command(self, *command):
        run = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        self.assertEqual(run.returncode, 0, f"{command}: {run.stdout[-1000:]}{run.stderr[-1000:]}")
        return run.stdout

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
            with Mount(path, "-f", options=options) as m, self.told(m):
                self.alone(model, dice, m.path, A_FILE // MOUNTS // 2)
                self.several(model, dice, m.path, A_FILE // MOUNTS // 2)
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

    def alone(self, model, dice, folder, sequences):
        for _ in range(sequences):
            Player(model, random.Random(dice.randrange(1 << 32)), folder, precious=self.precious).play(STEPS)
            model.prune()

    def theirs(self, model, dice, path):
        """libhdf5 goes on with the file."""
        with h5py.File(path, "r+", libver=dice.choice(["earliest", "latest"])) as f:
            LibraryPlayer(model, dice, f, precious=self.precious).play(STEPS)
        model.prune()
        self.assertNone(model.differences(tree_walk.walk(path)))

    # ---- several processes ----

    def several(self, model, dice, folder, sequences):
        """Each has a group of its own, below which it changes what has no names elsewhere."""
        tops = [(f"of worker {model.next} {i}",) for i in range(WORKERS)]
        for top in tops:
            os.mkdir(os.path.join(folder, *top))
            model.things[0].links[top[0]] = ("hard", model.new(Thing("group")))
        pipes = []
        for i, top in enumerate(tops):
            ours, theirs = multiprocessing.Pipe(False)
            seed = dice.randrange(1 << 32)
            pid = os.fork()
            if not pid:
                self.work(model, seed, folder, top, (i + 1) << 40, sequences // WORKERS, theirs)
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
            model.things.update(answer)
        # Numbers of the next time are larger.
        model.next = max(model.things) + 1
        model.prune()

    @staticmethod
    def work(model, seed, folder, top, first, sequences, pipe):
        try:
            own = model.own(top)
            model.next = first + model.next
            made = set()
            for _ in range(sequences):
                player = Player(model, random.Random(seed), folder, top, own | made)
                player.play(STEPS)
                made |= player.made
                seed += 1
            there = model.follow(top)
            pipe.send({n: t for n, t in model.part(top).items() if n in own or n in made or n == there})
        except Exception as e:
            pipe.send(f"{top}: {e}")
        finally:
            os._exit(0)

    # ---- judges ----

    def judge(self, path, model):
        with judges.File(path):
            pass
        said = self.run_command(H5FS, "--check", path)
        self.assertIn("no damage found", said)
        if not model.has_nameless_types():  # h5dump knows none for attributes
            self.run_command("h5dump", path)
        repacked = path + ".repacked"
        self.run_command("h5repack", path, repacked)
        if not model.refers_to_gone():
            self.run_command("h5diff", path, repacked)
        self.assertNone(model.differences(tree_walk.walk(repacked)))
        with Mount(repacked) as m:
            self.assertNone(model.shown_differences(m.path))


main()
