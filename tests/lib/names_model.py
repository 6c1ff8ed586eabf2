"""The model of a tree of names beside a mount: what a mount shows of it, what libhdf5 finds, and what tests of names share."""
import ctypes
import os
import subprocess

import h5py
import numpy

from mountlib import H5FS, MountCase, read

STYLES = {
    "earliest": dict(libver="earliest"),
    "v108": dict(libver=("earliest", "v108")),
    "latest": dict(libver="latest"),
    "ordered": dict(libver="latest", track_order=True),
}
NOREPLACE, EXCHANGE = 1, 2

libc = ctypes.CDLL(None, use_errno=True)


def rename(old, new, flags=0):
    if libc.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), flags):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def fsync(folder):
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def result(function, *arguments):
    """The errno of a call; 0: it has succeeded."""
    try:
        function(*arguments)
    except OSError as e:
        return e.errno
    return 0


# ---- the model: a directory is a dict, a dataset its number, a symlink what is stored ----


class Soft(str):
    """A soft link's path."""


class External(str):
    """The text of an external link."""


def shown(target, folder):
    """How a mount shows a soft link in a directory of that path."""
    if isinstance(target, External) or not target.startswith("/"):
        return str(target)
    return os.path.relpath(target, "/" + folder)


def find(tree, path):
    """The directory above, and the last name; (None, name) if there is none."""
    *above, name = path
    for part in above:
        tree = tree.get(part) if isinstance(tree, dict) else None
    return (tree if isinstance(tree, dict) else None), name


def count_names(tree, counts=None):
    counts = {} if counts is None else counts
    for value in tree.values():
        if isinstance(value, dict):
            count_names(value, counts)
        elif isinstance(value, int):
            counts[value] = counts.get(value, 0) + 1
    return counts


def of_mount(path):
    """The tree as a mount shows it, with the counts of names; symlinks as they read."""
    counts = {}

    def walk(folder):
        tree = {}
        for entry in os.scandir(folder):
            st = entry.stat(follow_symlinks=False)
            if entry.is_symlink():
                tree[entry.name] = os.readlink(entry.path)
            elif entry.is_dir():
                tree[entry.name] = walk(entry.path)
            else:
                number = int(numpy.frombuffer(read(entry.path), "<i4")[0])
                tree[entry.name] = number
                counts.setdefault(number, set()).add(st.st_nlink)
        if len(tree) != os.stat(folder).st_size:
            raise AssertionError(f"{folder} tells of {os.stat(folder).st_size} links and has {len(tree)}")
        return tree

    return walk(path), {number: seen.pop() for number, seen in counts.items() if len(seen) == 1}


def as_shown(tree, folder=""):
    return {name: as_shown(value, f"{folder}/{name}") if isinstance(value, dict) else
            shown(value, folder) if isinstance(value, str) else value for name, value in tree.items()}


def of_file(path):
    """The tree as libhdf5 finds it, and the counts of names."""
    counts = {}

    def walk(group):
        tree = {}
        for name in group:
            link = group.get(name, getlink=True)
            if isinstance(link, h5py.SoftLink):
                tree[name] = Soft(link.path)
            elif isinstance(link, h5py.ExternalLink):
                tree[name] = External(f"extlink:{link.filename}//{link.path.lstrip('/')}")
            else:
                child = group[name]
                if isinstance(child, h5py.Group):
                    tree[name] = walk(child)
                else:
                    number = int(child[0])
                    tree[name] = number
                    counts[number] = h5py.h5o.get_info(child.id).rc
        return tree

    with h5py.File(path) as f:
        return walk(f), counts


def make(path, datasets=12, **how):
    """A file with numbered datasets in three groups; the tree."""
    tree = {"a": {}, "b": {"c": {}}, "empty": {}}
    with h5py.File(path, "w", **how) as f:
        for name in "a", "b/c", "empty":
            f.create_group(name)
        for i in range(datasets):
            where, group = [("", tree), ("a/", tree["a"]), ("b/c/", tree["b"]["c"])][i % 3]
            f.create_dataset(f"{where}d{i}", data=numpy.full(20, i, "<i4"), maxshape=(None,) if i % 2 else None)
            group[f"d{i}"] = i
    return tree


class NamesCase(MountCase):
    def assertTree(self, found, tree, counts):
        """found: tree and counts of names"""
        self.assertEqual(found[0], tree)
        self.assertEqual(found[1], counts)

    def assertChecked(self, path):
        run = subprocess.run([H5FS, "--check", path], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def shell(self, script, folder):
        run = subprocess.run(["bash", "-euc", script], cwd=folder, capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""), script)
        return run.stdout
