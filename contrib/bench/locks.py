"""What locks cost the daemon, by the number of workers and of readers. `make bench-locks` runs it.

Each line is one mount, on which some processes at once each read a part of a dataset. It has the locks that were taken for each chunk, the
share of them that was not to be had at once, and how busy the daemon and its readers kept the processors: if a lock kept a processor waiting,
it would be less busy. All processors of the machine are used; `taskset` before the command leaves it fewer."""
import argparse
import os
import resource
import struct

from data import Data
from processes import Mount, seconds

COUNTS, THREADS = struct.Struct("<2Q48x"), 256  # as in locks.c
DATASETS = {  # file, raw data, chunks
    "deflate, 256x256": ("deflate-farray.h5", "field.raw", 1024),
    "deflate, 20x20x20": ("cube.h5", "cube.raw", 8000),
    "no filter, 16 elements": ("tiny.h5", "tiny.raw", 2_000_000),
}
WORKERS, READERS = (1, 2, 4, 8, 16), (1, 2, 4, 8, 16)


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as f:
        words = f.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def readers_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def counts(path):
    with open(path, "rb") as f:
        return [sum(column) for column in zip(*COUNTS.iter_unpack(f.read()))]


def measure(h5fs, library, folder, path, workers, readers, reader):
    """(locks, of them waited for, processor seconds of the daemon, of the readers, seconds)"""
    file = os.path.join(folder, "locks")
    with open(file, "wb") as f:
        f.truncate(COUNTS.size * THREADS)
    command = ["env", f"LD_PRELOAD={library}", f"LOCKS_FILE={file}", h5fs, "-f", "-o", f"workers={workers}", path]
    with Mount(command, os.path.join(folder, "mnt-locks")) as m:
        before, daemon, other = counts(file), processor_seconds(m.daemon.pid), readers_seconds()
        took = seconds(reader, "whole", m.at("data"), readers)
        other = readers_seconds() - other
        daemon = processor_seconds(m.daemon.pid) - daemon
        taken, waited = (b - a for a, b in zip(before, counts(file)))
    return taken, waited, daemon, other, took


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("h5fs")
    parser.add_argument("folder", help="for data and mounts, as BENCH_DIR")
    parser.add_argument("programs", help="the folder of the compiled programs")
    arguments = parser.parse_args()
    folder, programs = os.path.abspath(arguments.folder), os.path.abspath(arguments.programs)
    data = Data(folder, 1, os.path.join(programs, "libhdf5"))
    library, reader = (os.path.join(programs, name) for name in ("locks.so", "files"))
    cores = len(os.sched_getaffinity(0))
    print("| chunks | workers | readers | seconds | of the daemon's processors | processors busy | locks a chunk | waited for |\n|" + " --- |" * 8)
    for title, (name, raw, chunks) in DATASETS.items():
        path, size = data.file(name), os.path.getsize(data.file(raw))
        for workers, readers in sorted({(w, 1) for w in WORKERS} | {(cores, r) for r in READERS} | {(max(WORKERS), max(READERS))}):
            taken, waited, daemon, other, took = measure(os.path.abspath(arguments.h5fs), library, folder, path, workers, readers, reader)
            busy = (daemon + other) / took / cores
            print(f"| {title} | {workers} | {readers} | {took:.2f} | {daemon:.2f} | {100 * busy:.0f} % | {taken / chunks:.2f} | {100 * waited / taken:.2f} % |",
                  flush=True)


main()
