#include "fault_call.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* The names that large files give them on machines where all files are large. */
ssize_t __real_pread64(int fd, void *buf, size_t n, off_t offset);
ssize_t __real_preadv64(int fd, const struct iovec *buffers, int count, off_t offset);
int __real_fstat64(int fd, struct stat *st);
int __real_open64(const char *path, int flags, ...);
int __real_openat64(int dirfd, const char *path, int flags, ...);
long __real_syscall(long number, ...);
ssize_t __wrap_pread64(int fd, void *buf, size_t n, off_t offset);
ssize_t __wrap_preadv64(int fd, const struct iovec *buffers, int count, off_t offset);
int __wrap_fstat64(int fd, struct stat *st);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_openat64(int dirfd, const char *path, int flags, ...);
long __wrap_syscall(long number, ...);

enum { YIELDS = 20 };

static atomic_int fault;
static atomic_bool all_behind;
static atomic_ulong calls, faulty;

void fault_call_arm(enum call_fault what, unsigned long n, bool lasting)
{
	atomic_store(&fault, what);
	atomic_store(&all_behind, lasting);
	atomic_store(&calls, 0);
	atomic_store(&faulty, n);
}

bool fault_call_disarm(void)
{
	unsigned long n = atomic_exchange(&faulty, 0);

	return n && atomic_load(&calls) >= n;
}

static bool has_fault(bool opens)
{
	unsigned long n = atomic_load(&faulty), call;

	if (!n || opens != (atomic_load(&fault) >= CALL_OPENS_NONE))
		return false;
	call = atomic_fetch_add(&calls, 1) + 1;
	return call == n || (call > n && atomic_load(&all_behind));
}

/* Of n bytes: those that are read; -1: none, and errno is set. */
static ssize_t bytes_of(size_t n)
{
	switch ((enum call_fault)atomic_load(&fault)) {
	case CALL_FAILS:
		errno = EIO;
		return -1;
	case CALL_INTERRUPTED:
		errno = EINTR;
		return -1;
	case CALL_SHORT:
		return (ssize_t)(n > 1 ? n / 2 : n);
	default:
		for (int i = 0; i < YIELDS; i++)
			sched_yield();
		return (ssize_t)n;
	}
}

ssize_t __wrap_pread64(int fd, void *buf, size_t n, off_t offset)
{
	ssize_t there = has_fault(false) ? bytes_of(n) : (ssize_t)n;

	return there < 0 ? -1 : __real_pread64(fd, buf, (size_t)there, offset);
}

ssize_t __wrap_preadv64(int fd, const struct iovec *buffers, int count, off_t offset)
{
	size_t n = 0;
	ssize_t there;

	if (!has_fault(false))
		return __real_preadv64(fd, buffers, count, offset);
	for (int i = 0; i < count; i++)
		n += buffers[i].iov_len;
	there = bytes_of(n);
	if (there < 0 || (size_t)there == n)
		return there < 0 ? -1 : __real_preadv64(fd, buffers, count, offset);
	/* Whole buffers, and then a part of one. */
	for (int i = 0; i < count; i++) {
		if (buffers[i].iov_len > (size_t)there) {
			ssize_t before = i ? __real_preadv64(fd, buffers, i, offset) : 0, part;

			if (before < 0)
				return before;
			part = __real_pread64(fd, buffers[i].iov_base, (size_t)there, offset + before);
			return part < 0 ? part : before + part;
		}
		there -= (ssize_t)buffers[i].iov_len;
	}
	return -1;
}

int __wrap_fstat64(int fd, struct stat *st)
{
	if (atomic_load(&fault) == CALL_FAILS && has_fault(false)) {
		errno = EIO;
		return -1;
	}
	return __real_fstat64(fd, st);
}

static bool opens_none(void)
{
	if (!has_fault(true))
		return false;
	errno = atomic_load(&fault) == CALL_OPENS_NONE ? EMFILE : ENOENT;
	return true;
}

static mode_t mode_of(int flags, va_list arguments)
{
	return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

int __wrap_open64(const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return opens_none() ? -1 : __real_open64(path, flags, mode);
}

int __wrap_openat64(int dirfd, const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return opens_none() ? -1 : __real_openat64(dirfd, path, flags, mode);
}

/* openat2 has no function of its own; nothing else is asked for like that. */
long __wrap_syscall(long number, ...)
{
	va_list arguments;
	long a[4];

	va_start(arguments, number);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(arguments, long);
	va_end(arguments);
	if (number == SYS_openat2 && opens_none())
		return -1;
	return __real_syscall(number, a[0], a[1], a[2], a[3]);
}
