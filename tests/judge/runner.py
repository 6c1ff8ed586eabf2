"""Runs Python for a test program: each command in a process that is forked from this one, which has h5py already.

A question is a message on the socket that is standard input: "ID\\0COMMAND", the command as one gives it to a shell. The answer is the
ID and an exit status, as tests/lib/python_runner.c wants them. What commands print goes where the output of this process goes. It ends
when nobody has the socket's other end any more."""
import glob
import os
import shlex
import socket
import struct
import sys
import types

import h5py  # so that no command has to
import numpy

LONGEST = 1 << 16  # bytes of a question


def run(arguments):
    """As `python3 ARGUMENT...`; this process then ends as that one would."""
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    if arguments[0] == "-c":
        code = compile(arguments[1], "<string>", "exec")
        sys.path[0], sys.argv = "", ["-c", *arguments[2:]]
    else:
        main.__file__ = arguments[0]
        with open(arguments[0], "rb") as f:
            code = compile(f.read(), arguments[0], "exec")
        sys.path[0], sys.argv = os.path.dirname(os.path.abspath(arguments[0])), arguments
    exec(code, main.__dict__)


def words_of(command):
    """As a shell has them; of patterns only those that are absolute paths mean files."""
    words = [sorted(glob.glob(word)) or [word] if word.startswith("/") and "*" in word else [word] for word in shlex.split(command)]
    return [word for some in words for word in some]


def serve(asker):
    """What this process, forked from the one that serves, has to run; None: it has served, and nobody asks any more."""
    while question := asker.recv(LONGEST):
        number, command = question.split(b"\0", 1)
        pid = os.fork()
        if not pid:
            os.dup2(os.open(os.devnull, os.O_RDONLY), asker.detach())
            return words_of(command.decode())[1:]
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        asker.send(struct.pack("<qi", int(number), status))
    return None


todo = serve(socket.socket(fileno=0))
if todo:
    run(todo)
