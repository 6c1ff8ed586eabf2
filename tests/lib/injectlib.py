"""System calls made by another process, as a program would that has taken it over: by ptrace(2), on x86-64 as root."""
import ctypes
import os
import re
import signal
import struct

PTRACE_CONT, PTRACE_SINGLESTEP, PTRACE_GETREGS, PTRACE_SETREGS, PTRACE_ATTACH, PTRACE_DETACH = 7, 9, 12, 13, 16, 17
WALL = 0x40000000  # of waitpid(2): threads too
REGISTERS = ("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi", "orig_rax",
             "rip", "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs")
ARGUMENTS = ("rdi", "rsi", "rdx", "r10", "r8", "r9")
ROOM = 8192  # below the stack pointer, beyond the red zone

# x86-64
NUMBERS = {"openat": 257, "openat2": 437, "close": 3, "socket": 41, "connect": 42, "bind": 49, "execve": 59, "clone": 56, "fork": 57,
           "vfork": 58, "clone3": 435, "kill": 62, "tgkill": 234, "ptrace": 101, "mount": 165, "umount2": 166, "unlinkat": 263,
           "renameat2": 316, "linkat": 265, "symlinkat": 266, "mkdirat": 258, "fchmodat": 268, "fchownat": 260, "mmap": 9, "mprotect": 10,
           "setuid": 105, "unshare": 272, "setns": 308, "bpf": 321, "init_module": 175, "io_uring_setup": 425, "getpid": 39,
           "process_vm_readv": 310, "process_vm_writev": 311, "pidfd_open": 434, "keyctl": 250, "reboot": 169, "prctl": 157,
           "truncate": 76, "open": 2, "creat": 85, "memfd_create": 319, "userfaultfd": 323, "perf_event_open": 298, "fcntl": 72, "sendto": 44,
           "sendmsg": 46, "sendmmsg": 307, "socketpair": 53, "ioctl": 16, "madvise": 28, "rt_sigqueueinfo": 129, "pidfd_send_signal": 424,
           "timer_create": 222, "tkill": 200, "prlimit64": 302, "fallocate": 285, "seccomp": 317, "io_uring_enter": 426}

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = (ctypes.c_ulong, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_void_p)
libc.ptrace.restype = ctypes.c_long


class Registers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in REGISTERS]


def ptrace(request, pid, data=None):
    if libc.ptrace(request, pid, None, data) == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"ptrace {request}: {os.strerror(number)}")


def available():
    return os.uname().machine == "x86_64" and os.geteuid() == 0


class Injector:
    """`with Injector(pid) as inside: inside.call("openat", -100, b"/etc/passwd", 0)` gives what the kernel says: a negative
    errno, or more. An argument of bytes is put into the memory of the process, ended by a NUL."""

    def __init__(self, pid):
        self.pid = pid

    def __enter__(self):
        self.instruction = self.find_syscall()
        ptrace(PTRACE_ATTACH, self.pid)
        self.wait_for(signal.SIGSTOP)
        self.saved = Registers()
        ptrace(PTRACE_GETREGS, self.pid, ctypes.byref(self.saved))
        self.memory = open(f"/proc/{self.pid}/mem", "r+b", buffering=0)
        return self

    def __exit__(self, *_):
        self.memory.close()
        ptrace(PTRACE_SETREGS, self.pid, ctypes.byref(self.saved))
        ptrace(PTRACE_DETACH, self.pid)

    def wait_for(self, number):
        while True:
            _, status = os.waitpid(self.pid, WALL)
            if not os.WIFSTOPPED(status):
                raise AssertionError(f"the process has ended: {status}")
            if os.WSTOPSIG(status) == number:
                return
            ptrace(PTRACE_CONT, self.pid, os.WSTOPSIG(status))

    def find_syscall(self):
        """The address of an instruction `syscall`."""
        with open(f"/proc/{self.pid}/maps") as maps, open(f"/proc/{self.pid}/mem", "rb", buffering=0) as memory:
            for line in maps:
                found = re.match(r"(\w+)-(\w+) r-xp .*libc\.so", line)
                if found:
                    begin, end = (int(x, 16) for x in found.groups())
                    memory.seek(begin)
                    return begin + memory.read(end - begin).index(b"\x0f\x05")
        raise AssertionError("the process has no C library")

    def call(self, name, *arguments):
        registers = Registers.from_buffer_copy(self.saved)
        place = self.saved.rsp - ROOM
        values = []
        for argument in arguments:
            if isinstance(argument, bytes):
                data = argument + b"\0"
                self.memory.seek(place)
                self.memory.write(data)
                argument, place = place, place + (len(data) + 15) // 16 * 16
            values.append(argument & 0xffffffffffffffff)
        for register, value in zip(ARGUMENTS, values + [0] * (6 - len(values))):
            setattr(registers, register, value)
        registers.rax, registers.orig_rax, registers.rip = NUMBERS[name], 0xffffffffffffffff, self.instruction
        ptrace(PTRACE_SETREGS, self.pid, ctypes.byref(registers))
        ptrace(PTRACE_SINGLESTEP, self.pid)
        self.wait_for(signal.SIGTRAP)
        ptrace(PTRACE_GETREGS, self.pid, ctypes.byref(registers))
        return struct.unpack("q", struct.pack("Q", registers.rax))[0]
