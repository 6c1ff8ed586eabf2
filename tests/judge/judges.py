"""The versions of libhdf5 that judge what h5fs has written: the one that this Python has, and each that contrib/judges has made.

    judges.agree(path)          each opens the file, walks and reads it all, adds to a copy of it, and reads that
    with judges.File(path) as f:    the same, and then h5py.File(path), for what the test itself has to look at

What this machine's own libhdf5 reads, or can do, the others must read as the same bytes and be able to do. What the bytes should be,
the test says, by what it does with the h5py.File.

With H5FS_JUDGE=none in the environment nobody judges; the h5py.File is as it is without.

There is a process for each, which stays as long as the test program. A file must be at rest: mounted for writing by nobody."""
import atexit
import json
import os
import select
import subprocess
import tempfile

import h5py

import judge_walk

HERE = os.path.dirname(os.path.abspath(__file__))
JUDGES = os.path.join(HERE, "..", "..", "contrib", "judges")
ALL = os.environ.get("H5FS_JUDGE") == "all"  # make judge-newer: ask about every file
NONE = os.environ.get("H5FS_JUDGE") == "none"
FIRST, SOME = 5, 20
SECONDS = 120  # for one file; one that takes longer has got stuck


class Died(AssertionError):
    pass


class Judge:
    def __init__(self, name, *before):
        """before: what comes before the program on the command line."""
        self.name, self.before, self.process = name, before, None

    def start(self):
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([*self.before, "/usr/bin/python3", os.path.join(HERE, "judge_walk.py")],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)

    def ask(self, path, append):
        if not self.process:
            self.start()
        # As this process sees it: what has been mounted since the judge began is not in the judge's own sight.
        seen = f"/proc/{os.getpid()}/root{os.path.abspath(path)}"
        print(json.dumps({"path": seen, "append": append}), file=self.process.stdin, flush=True)
        if not select.select([self.process.stdout], [], [], SECONDS)[0]:
            self.process.kill()
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.log.seek(0)
        said = self.log.read()
        self.end()
        raise Died(f"{self.name}'s libhdf5 died, or got stuck, over {path}: {said[-2000:]}")

    def end(self):
        if self.process:
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait()
            self.log.close()
            self.process = None


class Bench:
    """The judges that are there; found when they are first asked."""

    def __init__(self):
        self.asked, self.own, self.newer = 0, Judge("this machine"), None

    def open(self):
        names = subprocess.run([JUDGES, "list"], capture_output=True, text=True, check=True).stdout.split()
        self.newer = [Judge(name, JUDGES, "run", name) for name in names]
        for judge in self.own, *self.newer:
            atexit.register(judge.end)

    def is_asked(self):
        """In `make check` about the first few files of a program and about some of the others."""
        if NONE:
            return False
        self.asked += 1
        if self.newer is None:
            self.open()
        return self.newer and (ALL or self.asked <= FIRST or self.asked % SOME == 0)


bench = Bench()


def differences(own, others):
    """What the others refuse, or read otherwise, of what this machine's libhdf5 has read."""
    return [f"{key or 'the file'}: {others.get(key, 'not there')}, not {value}" for key, value in own.items()
            if not str(value).startswith((judge_walk.REFUSED, judge_walk.UNJUDGED))
            and others.get(key, "not there") not in (value, judge_walk.UNJUDGED)]


def agree(path, append=True):
    """append: the file may be changed by libhdf5, too."""
    if not bench.is_asked():
        return
    try:
        own = bench.own.ask(path, append)
    except Died:
        # Some changes are too much for libhdf5 1.10.8, in its own files too. The others must survive them.
        own = bench.own.ask(path, False)
    for judge in bench.newer:
        wrong = differences(own, judge.ask(path, append))
        if wrong:
            raise AssertionError(f"{judge.name}'s libhdf5, of {path}: " + "; ".join(wrong[:5]))


class File(h5py.File):
    """The file, for reading, when all judges agree about it."""

    def __init__(self, path, append=True):
        agree(path, append)
        super().__init__(path, "r")
