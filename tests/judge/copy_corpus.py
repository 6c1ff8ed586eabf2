#!/usr/bin/python3
"""Copies the mount of each file of a corpus by rsync -aHX, cp -a and h5fs --extract, and compares the trees.

    copy_corpus.py CORPUS LIST

H5FS in the environment names the binary. The last line is `N passed, N failed, N skipped`."""
import os
import sys

from copytree import copy_differences, xattr_folder
from mountlib import Mount, MountFailed, become_reaper

MEGABYTE = 1 << 20
LARGEST = 256 * MEGABYTE  # of a dataset: declared sizes can be endless, copies are not


def largest(top):
    return max((os.lstat(os.path.join(folder, name)).st_size for folder, _, files in os.walk(top) for name in files),
               default=0)


def copy_of(file, parent):
    """'passed', 'skipped', or what differs."""
    try:
        with Mount(file) as m:
            if largest(os.fsencode(m.path)) > LARGEST:
                return "skipped"
            differences = copy_differences(m.path, file, parent)
            return "\n    ".join(differences[:5]) or "passed"
    except (MountFailed, AssertionError, OSError) as e:
        return str(e)


def main():
    corpus, names = sys.argv[1:3]
    parent = xattr_folder()
    if not parent:
        print("no file system here takes user xattrs of 60,000 bytes\n0 passed, 0 failed, 1 skipped")
        return 0
    become_reaper()
    count = {"passed": 0, "failed": 0, "skipped": 0}
    with open(names) as f:
        files = f.read().split("\n")
    for name in filter(None, files):
        verdict = copy_of(os.path.join(corpus, name), parent)
        count[verdict if verdict in count else "failed"] += 1
        if verdict != "passed":
            print(f"{'skip' if verdict == 'skipped' else 'FAIL'} {name}: {verdict}".encode("ascii", "backslashreplace").decode(),
                  flush=True)
    print(", ".join(f"{n} {verdict}" for verdict, n in count.items()))
    return bool(count["failed"])


if __name__ == "__main__":
    sys.exit(main())
