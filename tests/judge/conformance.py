#!/usr/bin/python3
"""Runs check.py over a whole corpus and weighs its answer against a list of exceptions.

    conformance.py FOLDER EXCEPTIONS [HALF]

FOLDER holds check.py, corpus and truth. With HALF, 0 or 1, every other file is checked. A line of EXCEPTIONS is
`FILE: CAUSE: REASON`: differences of that cause in that file are known not to be h5fs' fault. An exception that is no
longer needed fails, and so do more of them than one file in a hundred. H5FS in the environment names the binary. The last line is `N passed, N failed, N skipped`."""
import json
import os
import subprocess
import sys
import tempfile


def read_exceptions(name):
    """{file: {cause: reason}}"""
    found = {}
    with open(name) as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                file, cause, reason = line.rstrip("\n").split(": ", 2)
                found.setdefault(file, {})[cause] = reason
    return found


def files(truth):
    """What there is truth about, in order."""
    return sorted(os.path.relpath(os.path.join(folder, name), truth)[:-len(".json")]
                  for folder, _, names in os.walk(truth) for name in names if name.endswith(".json"))


def check(folder, names):
    """The answer of check.py for each file."""
    truth = os.path.join(folder, "truth")
    with tempfile.NamedTemporaryFile("r") as answers, tempfile.NamedTemporaryFile("w") as listed:
        listed.writelines(name + "\n" for name in names)
        listed.flush()
        subprocess.run([sys.executable, os.path.join(folder, "check.py"), "--h5fs", os.environ["H5FS"], "--json", answers.name,
                        "--corpus", os.path.join(folder, "corpus"), "--truth", truth, "--list", listed.name],
                       stdout=subprocess.DEVNULL, check=False)
        return json.load(answers)


def main():
    folder, name, *half = sys.argv[1:]
    exceptions = read_exceptions(name)
    names = files(os.path.join(folder, "truth"))
    answers = check(folder, names[int(half[0])::2] if half else names)
    failures = []
    for answer in answers:
        known = exceptions.get(answer["file"], {})
        causes = {cause for cause, *_ in answer["diffs"]}
        failures += [f"{answer['file']}: {path or '-'}: {cause}: expected {want}, got {got}"
                     for cause, path, want, got in answer["diffs"] if cause not in known][:3]
        failures += [f"{answer['file']}: {cause}: an exception that is not needed" for cause in sorted(known.keys() - causes)]
    if len(exceptions) * 100 > len(names):
        failures.append(f"{len(exceptions)} exceptions for {len(names)} files")
    for line in failures:
        print("FAIL", line[:400].encode("ascii", "backslashreplace").decode())
    failed = len({line.split(": ")[0] for line in failures})
    skipped = sum(answer["skipped"] for answer in answers)
    print(f"{len(answers) - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
