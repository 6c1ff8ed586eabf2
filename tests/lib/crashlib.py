"""What a crash leaves of a file at any instant, for tests whose requests are done without FUSE by tests/lib/vfs_shell.c, which records all
calls that write: the files are made up that a kill or a power cut may leave, and libhdf5 and h5fs look at each.

H5FS_CRASH_SEED: another run of chance. H5FS_CRASH_STATES: how many states of each run are looked at; 0: all. H5FS_CRASH_IMAGE: a file
for the first image that is wrong."""
import os
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

import judges

H5FS = os.environ.get("H5FS", "src/h5fs")
SHELL = os.environ.get("H5FS_VFS_SHELL", "tests/lib/vfs_shell")
SEED = int(os.environ.get("H5FS_CRASH_SEED", "1"))
STATES = os.environ.get("H5FS_CRASH_STATES")
PAGE, SECTOR = 4096, 512
WRITE, PUNCH, RESIZE, SYNC = range(4)  # enum fault_kind


def fault_step(usual):
    """Of the calls that a test makes fail one after the other, one in so many does."""
    return int(os.environ.get("H5FS_FAULT_STEP", usual))


class Shell:
    """A running vfs_shell."""

    def __init__(self, *arguments):
        self.run = subprocess.Popen([SHELL, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        """The error, the calls so far, whether a fault has happened, and the hash."""
        return self.ask_for_text(*words)[1]

    def ask_for_text(self, *words):
        """What the request prints, and the same four."""
        print("\t".join(map(str, words)), file=self.run.stdin, flush=True)
        text = ""
        for line in self.run.stdout:
            if answer := re.fullmatch(r"(\d+) (\d+) ([01]) ([0-9a-f]{16})\n", line):
                return text, (int(answer[1]), int(answer[2]), answer[3] == "1", answer[4])
            text += line
        raise AssertionError(f"the shell ended at {words}")

    def stop(self):
        """What a failed test has left."""
        if not self.run.stdin.closed:
            self.run.kill()
            self.end()

    def end(self):
        """The exit status."""
        self.run.stdin.close()
        self.run.stdout.close()
        return self.run.wait()


class Record:
    """The calls of a run."""

    def __init__(self, path):
        self.events = []
        with open(path, "rb") as f:
            data = f.read()
        at = 0
        while at < len(data):
            kind, file, offset, size = struct.unpack_from("<BBQQ", data, at)
            at += 18
            self.events.append((kind, file, offset, data[at:at + size]))
            at += size


def apply(image, event):
    kind, _, offset, data = event
    if kind in (WRITE, PUNCH):
        image.extend(bytes(max(0, offset + len(data) - len(image))))
        image[offset:offset + len(data)] = data
    elif kind == RESIZE:
        del image[offset:]
        image.extend(bytes(offset - len(image)))


def split(event, piece):
    """The call, as the calls that it makes to pieces of so many bytes; 0: there is one piece."""
    kind, file, offset, data = event
    if kind != WRITE or file or not piece:
        return [event]
    edges = [offset, *range((offset // piece + 1) * piece, offset + len(data), piece), offset + len(data)]
    return [(kind, file, a, data[a - offset:b - offset]) for a, b in zip(edges, edges[1:])]


def cut(durable, pending, chance, piece=0):
    """After a power cut: of what was written since the last sync any sectors. `piece`: bytes of each piece of the file."""
    image, lost = bytearray(durable), chance.randrange(4)
    for kind, file, offset, data in pending:
        if kind == RESIZE:
            apply(image, (kind, file, offset, data))
            continue
        fate = chance.randrange(3) if lost else 1
        at = offset
        while fate and at < offset + len(data):
            inside = at % piece if piece else at
            end = min(at + SECTOR - inside % SECTOR, offset + len(data), *[at + piece - inside] * (piece > 0))
            if fate == 1 or chance.randrange(2):
                apply(image, (WRITE, file, at, data[at - offset:end - offset]))
            at = end
    return image


class Crashes:
    """The states of a record, one after the other, of both files."""

    def __init__(self, before, journal=b"", piece=0):
        self.piece = piece
        self.images = [bytearray(before), bytearray(journal)]
        self.durable, self.pending = [bytes(before), bytes(journal)], [[], []]
        self.journal = 1  # which file it is

    def add(self, event):
        which = min(event[1], 1)
        if event[1] > self.journal:  # the one before was removed
            self.journal, self.images[1], self.durable[1], self.pending[1] = event[1], bytearray(), b"", []
        if event[0] in (WRITE, PUNCH, RESIZE):
            apply(self.images[which], event)
            self.pending[which].append(event)
        elif event[0] == SYNC:
            self.durable[which], self.pending[which] = bytes(self.images[which]), []

    def cut(self, chance):
        return [cut(self.durable[i], self.pending[i], chance, 0 if i else self.piece) for i in range(2)]


class CrashCase(unittest.TestCase):
    """What a test has besides: look(image, models), which raises AssertionError if the image is of none of the models' states, nor of one
    between them."""
    states = 60  # that are looked at
    appends = True  # libhdf5 may change the file, when it judges it
    kills_recovered, cuts_recovered, recoveries_cut = 8, 4, 6  # one of so many

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="h5fs-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.counts = {"kill": 0, "kill, then recovery": 0, "power cut, then recovery": 0, "recovery cut": 0}

    def file(self, name):
        return os.path.join(self.folder, name)

    piece = 0  # bytes of each piece of the file; 0: it is one
    crashes = Crashes  # what has the states

    def get(self, path):
        """The file's bytes."""
        with open(path, "rb") as f:
            return f.read()

    def agree(self, path):
        judges.agree(path, self.appends)

    def models(self, before, history, i):
        """The states between which the crash before call i is. history: of each request the number of calls after it, whether it has
        made all before it durable, and the model."""
        models = [before]
        for calls, is_commit, model in history:
            models.append(model)
            if calls > i:
                break
            if is_commit:
                models = [model]
        return models

    def check(self, image, models, label):
        try:
            self.look(image, models)
        except Exception as error:
            if "H5FS_CRASH_IMAGE" in os.environ:
                with open(os.environ["H5FS_CRASH_IMAGE"], "wb") as f:
                    f.write(image)
            raise AssertionError(f"{label}: {type(error).__name__}: {error}") from error

    def put(self, path, images):
        for name, image in zip((path, path + ".h5fs-journal"), images):
            with open(name, "wb") as f:
                f.write(image)

    def recover(self, path, label, *record):
        run = subprocess.run([SHELL, path, *record], input="", capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""), label)

    def check_file(self, path, images, models, label):
        """By h5fs, with the journal; by all judges."""
        self.put(path, images)
        self.recover(path, label)
        run = subprocess.run([H5FS, "--check", path], capture_output=True, text=True)
        if run.returncode and "H5FS_CRASH_IMAGE" in os.environ:
            shutil.copy(path, os.environ["H5FS_CRASH_IMAGE"])
        self.assertEqual(run.returncode, 0, f"{label}: {run.stdout}{run.stderr}")
        self.check(self.get(path), models, label + ", after recovery")
        self.agree(path)

    def check_recovery_cut(self, path, images, models, label, chance):
        """The recovery after a crash is cut itself."""
        self.put(path, images)
        record = self.file("recovery")
        self.recover(path, label, record)
        events = Record(record).events
        crashes = self.crashes(*images, piece=self.piece)
        for event in events[:chance.randrange(len(events) + 1)]:
            crashes.add(event)
        again = crashes.cut(chance) if chance.randrange(2) else crashes.images
        self.check_file(path, again, models, label + ", and again in its recovery")
        self.counts["recovery cut"] += 1

    def replay(self, path, before, record, history, model, chance):
        crashes = self.crashes(before, piece=self.piece)
        looked_at = set(range(len(record.events) + 1))
        states = self.states if STATES is None else int(STATES)
        if states:
            looked_at = set(chance.sample(sorted(looked_at), min(states, len(looked_at))))
        for i, event in enumerate(record.events + [None]):
            if i in looked_at:
                self.look_at(path, crashes, self.models(model, history, i), f"call {i} of {len(record.events)}", chance)
            if event:
                crashes.add(event)

    def look_at(self, path, crashes, models, where, chance):
        label = f"killed before {where}"
        self.check(crashes.images[0], models, label)
        self.counts["kill"] += 1
        if not chance.randrange(self.kills_recovered):
            self.check_file(path, crashes.images, models, label)
            self.counts["kill, then recovery"] += 1
        if not chance.randrange(self.cuts_recovered):
            images = crashes.cut(chance)
            self.check_file(path, images, models, f"power cut before {where}")
            self.counts["power cut, then recovery"] += 1
            if not chance.randrange(self.recoveries_cut):
                self.check_recovery_cut(path, images, models, f"power cut before {where}", chance)
