#!/usr/bin/python3
"""Compares what the mount of a folder shows of each file with what the file's own mount shows.

    folder_corpus.py FOLDER [-n COUNT] [--only PATTERN]

Of the files beneath FOLDER, COUNT (1000) are compared, spread evenly; of a large tree only the first entries. A file that has
no mount of its own must be a plain file, or a directory that tells an errno. H5FS in the environment names the binary.
The last line is `N equal, N refused, N different`."""
import argparse
import fnmatch
import os
import stat
import sys

from mountfacts import attempt, digest, facts_of_tree
from mountlib import MOUNT_SECONDS, Mount, MountFailed, become_reaper, watchdog

ENTRIES = 2000  # of a file


def files_of(folder, only):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names
                  if fnmatch.fnmatch(name, only) and not os.path.islink(os.path.join(at, name)))


def own_facts(path):
    """None: it has no mount of its own."""
    try:
        with Mount(path) as own:
            return facts_of_tree(own.path, ENTRIES)
    except MountFailed:
        return None


def difference(want, got):
    """The first one, in words; "": there is none."""
    if list(want) != list(got):
        return f"other names: {sorted(want.keys() ^ got.keys())[:3] or 'in another order'}"
    return next((f"{path!r}: {want[path]} is {got[path]}" for path in want if want[path] != got[path]), "")


def compare(m, folder, name):
    """(kind, why)"""
    shown = m.at(name)
    st = os.lstat(shown)
    if stat.S_ISREG(st.st_mode):
        return ("refused", "") if digest(shown) == digest(os.path.join(folder, name)) and own_facts(
            os.path.join(folder, name)) is None else ("different", "a plain file")
    want = own_facts(os.path.join(folder, name))
    if want is None:
        return ("refused", "") if isinstance(attempt(os.listdir, shown), int) else ("different", "it has no mount of its own")
    why = difference(want, facts_of_tree(shown, ENTRIES))
    return ("different", why) if why else ("equal", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("-n", type=int, default=1000)
    parser.add_argument("--only", default="*")
    a = parser.parse_args()
    become_reaper()
    files = files_of(a.folder, a.only)
    files = files[::max(1, len(files) // a.n)][:a.n]
    counts = dict.fromkeys(("equal", "refused", "different"), 0)
    with Mount(a.folder, options="match=*") as m:
        for name in files:
            watchdog.tell(m.watched, MOUNT_SECONDS)
            kind, why = compare(m, a.folder, name)
            counts[kind] += 1
            if why:
                print(f"FAIL {name}: {why}"[:400].encode("ascii", "backslashreplace").decode(), flush=True)
    print(", ".join(f"{n} {kind}" for kind, n in counts.items()))
    return bool(counts["different"])


if __name__ == "__main__":
    sys.exit(main())
