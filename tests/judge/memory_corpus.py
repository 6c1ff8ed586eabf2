#!/usr/bin/python3
"""Walks and reads the mount of each file of a corpus with small caches, and holds the daemon's memory against them.

    memory_corpus.py CORPUS [STEP]

Of the files, one in STEP is mounted. A daemon may take its cache budgets and 64 MiB. H5FS in the environment names the binary. The last line is
`N passed, N failed, N skipped`."""
import os
import re
import sys

from mountlib import Mount, MountFailed, become_reaper

MEGABYTE = 1 << 20
CACHES = {"cache": 32 * MEGABYTE, "index_cache": 8 * MEGABYTE}
LIMIT = sum(CACHES.values()) + 64 * MEGABYTE
PIECE = MEGABYTE
READ_MAX = 32 * MEGABYTE  # of one file, in pieces all over it
NAMES_MAX = 20000


def peak(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"VmHWM:\s+(\d+) kB", f.read())[1]) << 10


def attempt(function, *args):
    """Damaged objects may fail; what matters here is memory."""
    try:
        return function(*args)
    except OSError:
        return None


def read(path, size):
    pieces = min(size, READ_MAX) // PIECE + 1
    with open(path, "rb", buffering=0) as f:
        for i in range(pieces):
            f.seek(i * (size // pieces))
            f.read(PIECE)


def touch(path):
    for name in attempt(lambda: os.listxattr(path, follow_symlinks=False)) or ():
        attempt(lambda: os.getxattr(path, name, follow_symlinks=False))
    st = attempt(os.lstat, path)
    if st and os.path.isfile(path) and not os.path.islink(path):
        attempt(read, path, st.st_size)


def walk(top):
    names = 0
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            touch(os.path.join(folder, name))
            names += 1
            if names >= NAMES_MAX:
                return


def main():
    corpus, step = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    become_reaper()
    count = {"passed": 0, "failed": 0, "skipped": 0}
    highest = 0
    for file in sorted(os.path.join(folder, name) for folder, _, names in os.walk(corpus) for name in names)[::step]:
        try:
            with Mount(file, options=",".join(f"{k}={v}" for k, v in CACHES.items())) as m:
                walk(os.fsencode(m.path))
                used = peak(m.daemon)
        except MountFailed as e:  # such files are another test's matter
            count["skipped"] += 1
            print(f"skip {os.path.relpath(file, corpus)}: refused: {e.said.strip()[-100:]}", flush=True)
            continue
        highest = max(highest, used)
        count["failed" if used > LIMIT else "passed"] += 1
        if used > LIMIT:
            print(f"FAIL {os.path.relpath(file, corpus)}: {used >> 20} MiB of {LIMIT >> 20}", flush=True)
    print(f"the most was {highest >> 20} MiB")
    print(", ".join(f"{n} {verdict}" for verdict, n in count.items()))
    return bool(count["failed"])


if __name__ == "__main__":
    sys.exit(main())
