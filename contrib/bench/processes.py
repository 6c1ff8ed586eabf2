"""Daemons and programs that the benchmark starts: each is ended by its own process id, whatever happens."""
import contextlib
import ctypes
import os
import select
import signal
import subprocess
import threading
import time

END_SECONDS = 60
RUN_SECONDS = 600
PR_SET_PDEATHSIG = 1

libc = ctypes.CDLL(None)


def end_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def run(*command, stdout=subprocess.PIPE):
    """What a command prints. It must succeed."""
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=stdout, check=True, text=True,
                          preexec_fn=end_with_parent, timeout=RUN_SECONDS)
    return done.stdout


def seconds(*command):
    """What a program of the benchmark measures itself."""
    return float(run(*command))


def timed(*command):
    """From the start of a program that knows nothing of the benchmark to its end."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as program:
        timer = threading.Timer(RUN_SECONDS, program.kill)  # wait() with a limit would look every 50 ms
        timer.start()
        try:
            status = program.wait()
        except BaseException:
            program.kill()
            raise
        finally:
            timer.cancel()
        elapsed = time.perf_counter() - start
    if status:
        raise subprocess.CalledProcessError(status, command)
    return elapsed


def is_mounted(path):
    with open("/proc/self/mountinfo") as f:
        return any(line.split()[4] == path.replace(" ", "\\040") for line in f)


def unmount(path):
    """What a run that failed has left, even where it is in use."""
    if is_mounted(path):
        subprocess.run(["fusermount3", "-uz", path], check=True)


def readahead_file(path):
    device = os.stat(path).st_dev
    return f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb"


class Mount:
    """`with Mount([program, argument...], mountpoint)`: a daemon that stays in the foreground."""

    def __init__(self, command, point):
        self.command = [str(word) for word in command]
        self.path = os.path.realpath(point)
        self.peak = 0  # bytes of memory, known at the end

    def at(self, name):
        return os.path.join(self.path, name)

    def __enter__(self):
        unmount(self.path)
        os.makedirs(self.path, exist_ok=True)
        self.daemon = subprocess.Popen([*self.command, self.path], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, preexec_fn=end_with_parent)
        try:
            self.wait_until_mounted()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait_until_mounted(self):
        with open("/proc/self/mountinfo") as f:
            changed = select.poll()
            changed.register(f, select.POLLERR | select.POLLPRI)
            while not is_mounted(self.path):
                if self.daemon.poll() is not None:
                    raise RuntimeError(f"{self.command} exits with {self.daemon.returncode}")
                changed.poll(50)

    def readahead(self, kib=None):
        """The kernel's readahead of this mount in KiB; set first, where it is given and permitted."""
        with contextlib.suppress(PermissionError):
            if kib is not None:
                with open(readahead_file(self.path), "w") as f:
                    f.write(str(kib))
        with open(readahead_file(self.path)) as f:
            return int(f.read())

    def high_water(self):
        with open(f"/proc/{self.daemon.pid}/status") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM:"))

    def __exit__(self, *_):
        with contextlib.suppress(OSError, StopIteration):
            self.peak = self.high_water()
        if is_mounted(self.path) and subprocess.run(["fusermount3", "-u", self.path], check=False).returncode:
            unmount(self.path)
        try:
            self.daemon.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        finally:
            if self.daemon.poll() is None:
                self.daemon.kill()
                self.daemon.wait()
            unmount(self.path)
