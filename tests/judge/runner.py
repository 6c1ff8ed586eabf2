"""Runs commands that judge files for a test program. Those of Python run in a process that is forked from this one, which has h5py
already; the others are programs.

A question is a message on the socket that is standard input: "ID\\0FOLDER\\0COMMAND", the command as one gives it to a shell. The answer
is the ID and an exit status, as tests/lib/python_runner.c wants them. What commands print goes where the output of this process goes.
It ends when nobody has the socket's other end any more.

With a FOLDER, the other versions of libhdf5 judge and this machine's own does not: for each that contrib/judges has made, a process like
this one, started with the argument --copy, runs the command. What it changes in the folder does not stay."""
import ast
import atexit
import contextlib
import ctypes
import gc
import glob
import importlib
import os
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import traceback
import types

import h5py  # so that no command has to
import numpy

LONGEST = 1 << 16  # bytes of a question
PYTHON = "/usr/bin/python3"
ALL = os.environ.get("H5FS_JUDGE") == "all"  # make judge-newer
FIRST, SOME_FIRST, SOME = 16, 4, 64  # in `make check` the other versions hear one in four of the first questions, one in 64 later
JUDGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "contrib", "judges")


codes = {}  # of the scripts that have been run, by their paths


def is_python(command):
    return command.startswith(PYTHON + " ")


def prepare(command):
    """Compiles the script of a command, and loads the modules that it begins with, before the process for it is forked: the next one has
    them, too."""
    path = shlex.split(command)[1]
    if path == "-c" or path in codes:
        return
    with open(path, "rb") as f:
        tree = ast.parse(f.read(), path)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    for node in tree.body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in [node.module] if isinstance(node, ast.ImportFrom) else names:
            with contextlib.suppress(ImportError):  # the script finds it elsewhere, or says so itself
                importlib.import_module(name)
    del sys.path[0]
    codes[path] = compile(tree, path, "exec")
    gc.freeze()


def run(arguments):
    """As `python3 ARGUMENT...`, in a process that ends then."""
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    if arguments[0] == "-c":
        code = compile(arguments[1], "<string>", "exec")
        sys.path[0], sys.argv = "", ["-c", *arguments[2:]]
    else:
        main.__file__, code = arguments[0], codes[arguments[0]]
        sys.path[0], sys.argv = os.path.dirname(os.path.abspath(arguments[0])), arguments
    exec(code, main.__dict__)


def run_and_end(arguments):
    """Python's own way to end a process goes through all memory, which costs more than most judges."""
    status = 1
    try:
        run(arguments)
        status = 0
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            status = end.code or 0
        else:
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def words_of(command):
    """As a shell has them; of patterns only those that are absolute paths mean files."""
    words = [sorted(glob.glob(word)) or [word] if word.startswith("/") and "*" in word else [word] for word in shlex.split(command)]
    return [word for some in words for word in some]


def put_copy_over(folder):
    """From here on, this process and those that it starts have a copy in the folder's place."""
    libc = ctypes.CDLL(None, use_errno=True)
    below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    os.unshare(os.CLONE_NEWNS)
    if libc.mount(b"tmpfs", folder.encode(), b"tmpfs", ctypes.c_ulong(0), None):
        raise OSError(ctypes.get_errno(), f"mount {folder}")
    shutil.copytree(f"/proc/self/fd/{below}", folder, symlinks=True, dirs_exist_ok=True)
    os.close(below)


class Other:
    """A version of libhdf5 that is not this machine's own."""

    def __init__(self, name):
        self.name = name
        self.socket, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with end:
            subprocess.Popen([JUDGES, "run", name, PYTHON, os.path.abspath(__file__), "--copy"], stdin=end)

    def ask(self, question):
        """The command's exit status, or that there is nobody to ask."""
        try:
            self.socket.send(question)
            answer = self.socket.recv(LONGEST)
        except ConnectionError:
            answer = b""
        status = struct.unpack("<qi", answer)[1] if answer else -1
        if status:
            print(f"judged so by {self.name}", flush=True)
        return status


class Others:
    """They start when they are first asked."""

    def __init__(self):
        self.all, self.asked = None, 0

    def ask(self, question):
        self.asked += 1
        if not ALL and self.asked % (SOME_FIRST if self.asked <= FIRST else SOME) != 1:
            return 0
        if self.all is None:
            names = subprocess.run([JUDGES, "list"], stdout=subprocess.PIPE, check=True, text=True).stdout.split()
            self.all = [Other(name) for name in names]
        return next(filter(None, (other.ask(question) for other in self.all)), 0)


def serve(asker, others):
    """What this process, forked from the one that serves, has to run; None: it has served, and nobody asks any more."""
    while question := asker.recv(LONGEST):
        number, folder, command = question.split(b"\0", 2)
        if folder and others:
            status = others.ask(question)
        else:
            if is_python(command.decode()):
                prepare(command.decode())
            pid = os.fork()
            if not pid:
                os.dup2(os.open(os.devnull, os.O_RDONLY), asker.detach())
                return folder.decode(), command.decode()
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        asker.send(struct.pack("<qi", int(number), status))
    return None


is_other = sys.argv[1:] == ["--copy"]
todo = serve(socket.socket(fileno=0), None if is_other else Others())
if todo:
    folder, command = todo
    if folder:
        put_copy_over(folder)
    if is_python(command):
        run_and_end(words_of(command)[1:])
    else:
        os.execl("/bin/sh", "sh", "-c", command)
