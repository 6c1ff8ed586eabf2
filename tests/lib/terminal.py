"""Runs h5fs at a terminal."""
import fcntl
import os
import pty
import struct
import subprocess
import termios

H5FS = os.environ.get("H5FS", "src/h5fs")
ERASE = "\r\x1b[K"


def on_terminal(*arguments, columns=80):
    """Exit status, standard output, and what a terminal gets as standard error."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    said = b""
    with subprocess.Popen([H5FS, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=its) as run:
        os.close(its)
        with open(ours, "rb", buffering=0) as terminal:
            try:
                while piece := terminal.read(1 << 16):
                    said += piece
            except OSError:  # nobody has the other end any more
                pass
        out = run.stdout.read().decode()
    return run.returncode, out, said.decode()
