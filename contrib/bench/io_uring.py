#!/usr/bin/python3
"""Requests through io_uring against reads of /dev/fuse: io_uring.py H5FS FOLDER [ROUNDS].

As root, with a libfuse that has it; the kernel's switch is on meanwhile. Each round mounts a file once in each way, one after the other,
and runs the same three programs. It prints the median time of each, and the median, the least and the greatest quotient of a round."""
import os
import statistics
import subprocess
import sys
import time

import h5py
import numpy

SWITCH = "/sys/module/fuse/parameters/enable_uring"
DATASETS, GROUPS, ATTRIBUTES, BIG = 10_000, 2_000, 8, 1 << 30
PROGRAMS = {
    f"cat of {DATASETS:,} datasets of 160 bytes": "find {}/small -type f -print0 | xargs -0 cat",
    f"getfattr -R -d, {GROUPS:,} groups of {ATTRIBUTES} attributes": "getfattr -R -d {}/attributes",
    f"dd bs=1M of {BIG >> 30} GiB, contiguous": "dd if={}/big bs=1M status=none",
}


def make(path):
    with h5py.File(path, "w", libver="latest") as f:
        for i in range(DATASETS):
            f[f"small/{i}"] = numpy.arange(20, dtype="<f8")
        for i in range(GROUPS):
            group = f.create_group(f"attributes/{i}")
            for j in range(ATTRIBUTES):
                group.attrs[f"a{j}"] = j
        f["big"] = numpy.zeros(BIG, "u1")


def seconds(command):
    begin = time.perf_counter()
    subprocess.run(["sh", "-c", command], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main():
    h5fs, folder, rounds = sys.argv[1], sys.argv[2], int((sys.argv[3:] or [7])[0])
    path, point = os.path.join(folder, "data.h5"), os.path.join(folder, "mnt")
    os.makedirs(point, exist_ok=True)
    if not os.path.exists(path):
        make(path)
    with open(SWITCH) as f:
        before = f.read()
    with open(SWITCH, "w") as f:
        f.write("Y")
    times = {name: {"no": [], "yes": []} for name in PROGRAMS}
    try:
        for i in range(rounds):
            for how in ("no", "yes") if i % 2 else ("yes", "no"):
                subprocess.run([h5fs, "-o", f"io_uring={how}", path, point], check=True)
                try:
                    for name, command in PROGRAMS.items():
                        times[name][how].append(seconds(command.format(point)))
                finally:
                    subprocess.run([h5fs, "-u", point], check=True)
    finally:
        with open(SWITCH, "w") as f:
            f.write(before)
    print("| program | without | with io_uring | with : without | of a round |\n| --- | --- | --- | --- | --- |")
    for name, found in times.items():
        quotients = [y / n for y, n in zip(found["yes"], found["no"])]
        print(f"| {name} | {statistics.median(found['no']):.3f} s | {statistics.median(found['yes']):.3f} s | {statistics.median(quotients):.2f} | "
              f"{min(quotients):.2f} to {max(quotients):.2f} |")


main()
