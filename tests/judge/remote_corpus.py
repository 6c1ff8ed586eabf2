#!/usr/bin/python3
"""check.py over a corpus that a web server has: the mounts are of URLs, the truth is the same.

    remote_corpus.py FOLDER [argument of check.py]...

FOLDER holds check.py, corpus and truth. H5FS in the environment names the binary. The last line is `N passed, N failed, N skipped`."""
import os
import shlex
import subprocess
import sys
import tempfile

from object_server import ObjectServer

# The file of the corpus becomes a URL, whatever else the command has.
WRAPPER = """#!/bin/sh
n=$#
while [ $n -gt 0 ]; do
	argument=$1
	shift
	case $argument in
	{corpus}/*) argument={url}$(printf %s "${{argument#{corpus}/}}" | sed 's/%/%25/g; s/ /%20/g; s/?/%3F/g; s/#/%23/g') ;;
	esac
	set -- "$@" "$argument"
	n=$((n - 1))
done
exec {program} "$@"
"""


def main():
    folder, *arguments = sys.argv[1:]
    corpus = os.path.realpath(os.path.join(folder, "corpus"))
    with ObjectServer(corpus) as server, tempfile.TemporaryDirectory() as work:
        program = os.path.join(work, "h5fs")
        with open(program, "w") as f:
            f.write(WRAPPER.format(corpus=shlex.quote(corpus), url=server.url(), program=shlex.quote(os.path.abspath(os.environ["H5FS"]))))
        os.chmod(program, 0o755)
        run = subprocess.run([sys.executable, os.path.join(folder, "check.py"), "--h5fs", program, "--corpus", corpus,
                              "--truth", os.path.join(folder, "truth"), *arguments], check=False)
        for line in server.wrong[:20]:
            print("FAIL", line)
        return run.returncode or bool(server.wrong)


if __name__ == "__main__":
    sys.exit(main())
