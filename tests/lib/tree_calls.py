"""System calls that Python has no functions for."""
import ctypes
import os

NOREPLACE, EXCHANGE = 1, 2
PUNCH = 3  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE

libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64


def check(result):
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def rename(old, new, flags=0):
    check(libc.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), flags))


def punch(path, offset, n):
    fd = os.open(path, os.O_RDWR)
    try:
        check(libc.fallocate(fd, PUNCH, offset, n))
    finally:
        os.close(fd)


def fsync(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
