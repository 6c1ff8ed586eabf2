"""Measures h5fs against libhdf5 and against the limits of the machine; prints one table. See doc/performance.md."""
import argparse
import os
import platform
import signal
import sys
import time
import traceback
from statistics import median

import h5py

from data import Data
from rows import ROWS, Bench

HEADINGS = ["row", "h5fs", "libhdf5", "limit", "h5fs : libhdf5", "h5fs : limit", "h5fs : other", "must reach", "", "note"]
SIDES = "libhdf5", "limit"


def value(speeds, unit):
    """The median of speeds as the row's unit has it."""
    if not speeds:
        return "-"
    speed = median(speeds)
    amount = {"GB/s": speed / 1e9, "MB/s": speed / 1e6, "rows/s": speed, "reads/s": speed, "files/s": speed, "datasets/s": speed, "attributes/s": speed}.get(unit)
    if amount is None:
        amount = {"s": 1, "ms": 1000, "MiB": 1}[unit] / speed
    return f"{amount:,.{0 if amount >= 1000 else 1 if amount >= 100 else 2}f} {unit}"


def ratio(speeds, side):
    """The median of the rounds: a machine that is slower for a while is so for both."""
    return median(a / b for a, b in zip(speeds["h5fs"], speeds[side])) if side in speeds else None


def verdict(row, speeds):
    """What the row must reach, and whether it does."""
    if not row.need:
        return "-", ""
    what, least = row.need
    if what == "ms":
        return f"{least} ms", "ok" if 1000 / median(speeds["h5fs"]) <= least else "below"
    return f"{least:.3g} x {what}", "ok" if ratio(speeds, what) >= least else "below"


def cells(row, speeds):
    ratios = [ratio(speeds, side) for side in (*SIDES, "other")]
    return [row.title, *(value(speeds.get(side), row.unit) for side in ("h5fs", *SIDES)),
            *("-" if r is None else f"{r:.2f}" for r in ratios), *verdict(row, speeds), row.names]


def without_other(lines):
    """The table without the column of the other h5fs."""
    at = HEADINGS.index("h5fs : other")
    return [line[:at] + line[at + 1:] for line in lines]


def layout(lines):
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]


def markdown(lines):
    rule = ["---"] * len(lines[0])
    return "".join("| " + " | ".join(line) + " |\n" for line in [lines[0], rule, *lines[1:]])


def machine():
    with open("/proc/cpuinfo") as f:
        model = next((line.split(": ")[1].strip() for line in f if line.startswith("model name")), platform.machine())
    return (f"{os.cpu_count()} cores of {model}, Linux {platform.release()}, libhdf5 {h5py.version.hdf5_version}, "
            f"h5py {h5py.version.version}")


def chosen(words):
    """A word is a key, or else a part of some."""
    keys = {row.key for row in ROWS}
    return [row for row in ROWS
            if not words or any(word == row.key if word in keys else word in row.key for word in words)]


def measure_all(bench, wanted, lines):
    """Adds a line for each row; how many have failed."""
    failed = 0
    for row in wanted:
        start = time.perf_counter()
        try:
            lines.append(cells(row, row.measure(bench)))
        except Exception:
            traceback.print_exc()
            lines.append([row.title, "failed"] + [""] * (len(HEADINGS) - 2))
            failed += 1
        print(f"{row.key}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", required=True, help="for data, mounts and scratch files")
    parser.add_argument("--scale", type=float, default=1, help="of the data; below 1 the numbers mean nothing")
    parser.add_argument("--rows", default="", help="keys, or parts of keys, of the rows that are measured")
    parser.add_argument("--h5fs", default="src/h5fs")
    parser.add_argument("--other", default="", help="another h5fs, such as that of an older commit, to be compared with it")
    parser.add_argument("--programs", required=True, help="the folder of the compiled programs")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = os.path.abspath(arguments.folder)
    programs = os.path.abspath(arguments.programs)
    data = Data(folder, arguments.scale, os.path.join(programs, "libhdf5"))
    wanted = chosen(arguments.rows.split())
    if not wanted:
        sys.exit("no such row; there are: " + " ".join(row.key for row in ROWS))
    lines, failed = [HEADINGS], True
    try:
        failed = measure_all(Bench(folder, data, os.path.abspath(arguments.h5fs),
                                   arguments.other and os.path.abspath(arguments.other), programs), wanted, lines)
    finally:  # what there is, where the run is interrupted
        if not arguments.other:
            lines = without_other(lines)
        print(machine())
        print("\n".join(layout(lines)), flush=True)
        with open(os.path.join(folder, "table.md"), "w") as f:
            f.write(f"{machine()}.\n\n{markdown(lines)}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
