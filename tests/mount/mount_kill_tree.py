#!/usr/bin/python3
"""SIGKILL of the daemon while several processes make, write, declare, name, change and remove files, groups and attributes: libhdf5 walks
the file as it lies there, and finds what fsync has returned for, and each other request done or not; so it is when the journal was used.

H5FS_KILLS says how often (40), H5FS_SEED chooses other requests."""
import ctypes
import errno
import os
import random
import signal
import subprocess
import time
import traceback

import h5py
import numpy as np

import judges
from contents_model import Model, Program, pattern, wrong
from mountlib import H5FS, Mount, MountCase, main, mounted

KILLS = int(os.environ.get("H5FS_KILLS", "40"))
SEED = os.environ.get("H5FS_SEED", "15")
WORKERS = 3
ROUNDS = 4  # kills of one file
REQUESTS_MAX = 5000
PUNCH_HOLE = 3  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
STYLES = {
    "symbol tables": dict(libver="earliest"),
    "superblock 2": dict(libver=("v108", "v108")),
    "latest": dict(libver="latest"),
    "tracked": dict(libver="latest", track_order=True),
    "made by a mount": None,
}
GONE = (errno.ENOTCONN, errno.ECONNABORTED, errno.ENODEV)  # there is no daemon
SECONDS = 30
libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64


def check(result):
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def ends(mount):
    """Requests that a kill interrupts may fail in other ways, too: the mount itself is gone soon, and with it all paths."""
    until = time.monotonic() + SECONDS
    while mounted(mount.path) and time.monotonic() < until:
        time.sleep(.01)
    return not mounted(mount.path)


class Folder:
    """Does requests in a folder of a mount, and counts those that are done."""

    def __init__(self, path, counter):
        self.path, self.counter, self.count, self.files = path, counter, 0, {}

    def at(self, path):
        return os.path.join(self.path, path) if path else self.path

    def ask(self, word, *words):
        getattr(self, word)(*words)
        self.count += 1
        os.pwrite(self.counter, self.count.to_bytes(8, "little"), 0)
        return 0, self.count, False, ""

    def create(self, path, number):
        self.files[number] = os.open(self.at(path), os.O_RDWR | os.O_CREAT | os.O_EXCL)

    def open(self, path, number, flags):
        self.files[number] = os.open(self.at(path), flags)

    def write(self, number, offset, n, seed):
        data = pattern(offset, n, seed)
        while data:
            written = os.pwrite(self.files[number], data, offset)
            data, offset = data[written:], offset + written

    def resize(self, number, size):
        os.ftruncate(self.files[number], size)

    def punch(self, number, offset, n):
        check(libc.fallocate(self.files[number], PUNCH_HOLE, offset, n))

    def close(self, number):
        os.close(self.files.pop(number))

    def fsync(self, number):
        os.fsync(self.files[number])

    def commit(self):
        fd = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def release(self):
        pass  # the daemon does it by itself

    def unlink(self, path):
        os.unlink(self.at(path))

    def mkdir(self, path):
        os.mkdir(self.at(path))

    def rmdir(self, path):
        os.rmdir(self.at(path))

    def link(self, path, new):
        os.link(self.at(path), self.at(new))

    def symlink(self, target, path):
        os.symlink(target, self.at(path))

    def rename(self, old, new, flags):
        check(libc.renameat2(-100, os.fsencode(self.at(old)), -100, os.fsencode(self.at(new)), flags))

    def set(self, path, name, value):
        os.setxattr(self.at(path), name, value.encode())

    def remove(self, path, name):
        os.removexattr(self.at(path), name)


class Ended(Exception):
    pass


class Dry:
    """Does the first requests without a mount, up to the one that the kill has interrupted."""

    def __init__(self, count):
        self.most, self.count = count + 1, 0

    def ask(self, *words):
        if self.count == self.most:
            raise Ended
        self.count += 1
        return 0, self.count, False, ""


class Worker:
    """A process that works in a folder of its own."""

    def __init__(self, name, model, seed, counter):
        self.name, self.model, self.seed, self.counter = name, model, seed, os.open(counter, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self.pid = None

    def program(self, shell):
        return Program(self.model.copy(), shell, random.Random(self.seed), REQUESTS_MAX, close_commits=True)

    def start(self, mount, log):
        self.pid = os.fork()
        if self.pid:
            return
        status = 1
        try:
            self.program(Folder(mount.at(self.name), self.counter)).run()
        except OSError as error:
            status = 0 if error.errno in GONE or ends(mount) else 1
            if status:
                self.tell(log)
        except BaseException:
            self.tell(log)
        finally:
            os._exit(status)

    def tell(self, log):
        with open(log, "a") as f:
            f.write(f"{self.name}, {self.seed}, request {self.count()}:\n{traceback.format_exc()}")

    def count(self):
        return int.from_bytes(os.pread(self.counter, 8, 0), "little")

    def wait(self):
        """The exit status."""
        pid, self.pid = self.pid, None
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def models(self):
        """The states between which the kill was."""
        count, models = self.count(), [self.model]
        program = self.program(Dry(count))
        try:
            program.run()
        except Ended:
            pass
        for calls, durable, model in program.history:
            models = [model] if durable and calls <= count else models + [model]
        return models


def make_folder(f):
    data = np.arange(30 * 20, dtype="<i4").reshape(30, 20)
    f["contiguous"] = np.arange(1000)
    f["scalar"] = 5
    for name, filters in ("", {}), ("-filtered", dict(compression=4, shuffle=True)):
        f.create_dataset("fixed" + name, data=data, chunks=(7, 9), **filters)
        f.create_dataset("growing" + name, data=data, chunks=(3, 20), maxshape=(None, 20), **filters)
        f.create_dataset("tree" + name, data=data, chunks=(3, 20), maxshape=(None, None), **filters)
    for name, links in ("empty", 0), ("seven", 7), ("many", 40):
        group = f.create_group(name)
        for i in range(links):
            group["link %u" % i] = h5py.SoftLink("/" + "x" * i)
        for i in range(links // 3):
            group.attrs[f"a{i}"] = "text %u" % i if i % 3 else np.int64(i)


class KillTree(MountCase):
    def make(self, path, options):
        if options is None:
            with Mount(path, options="rw,create"):
                pass
        with h5py.File(path, "r+" if options is None else "w", **(options or {})) as f:
            for i in range(WORKERS):
                make_folder(f.create_group(f"w{i}"))

    def whole(self, path, models, label):
        """libhdf5 finds the states."""
        with open(path, "rb") as f:
            image = f.read()
        for name, states in models.items():
            for what in wrong(Model.of(image, name), states):
                self.fail(f"{label}: {name}: {what}")

    def kill_once(self, path, kill, chance):
        """Workers begin with what is there, and the daemon is killed. The states that each may have left."""
        with open(path, "rb") as f:
            image = f.read()
        workers = [Worker(f"w{i}", Model.of(image, f"w{i}"), f"{SEED} {kill} {i}", self.file(f"count{i}")) for i in range(WORKERS)]
        mount, log = Mount(path, options="rw"), self.file("errors")
        mount.__enter__()
        try:
            for worker in workers:
                worker.start(mount, log)
            goal, until = chance.randrange(1, 160), time.monotonic() + SECONDS
            while sum(worker.count() for worker in workers) < goal and time.monotonic() < until:
                time.sleep(.001)
            mount.kill()
            statuses = [worker.wait() for worker in workers]
        finally:
            for worker in workers:
                if worker.pid:
                    os.kill(worker.pid, signal.SIGKILL)
                    worker.wait()
            said = mount.end()
        self.assertEqual(said, "")
        if any(statuses):
            with open(log) as f:
                self.fail(f.read())
        models = {worker.name: worker.models() for worker in workers}
        for worker in workers:
            os.close(worker.counter)
        return models

    def kill_and_check(self, path, kill, chance):
        models = self.kill_once(path, kill, chance)
        self.whole(path, models, "as it lies there")
        with Mount(path, options="rw"):
            pass  # may complete the commit by its journal
        self.whole(path, models, "after recovery")
        run = subprocess.run([H5FS, "--check", path], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        judges.agree(path)
        return path

    def test_kills(self):
        path = None
        for kill in range(KILLS):
            style = list(STYLES)[kill // ROUNDS % len(STYLES)]
            chance = random.Random(f"{SEED} {kill}")
            if path and kill % ROUNDS == 0:
                os.unlink(path)
                path = None
            with self.subTest(kill=kill, seed=SEED, style=style):
                # After a failure the next kill has a new file.
                now, path = path, None
                if not now:
                    now = self.file(f"tree{kill}.h5")
                    self.make(now, STYLES[style])
                path = self.kill_and_check(now, kill, chance)


if __name__ == "__main__":
    main()
