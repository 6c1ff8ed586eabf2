#include "fault_system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FAULTS = 4, TEXT = 4096 };

static struct fault {
	const char *call;
	unsigned n, count, calls;
	int error;
} faults[FAULTS];
static unsigned armed;
static char calls[TEXT];

void fault_system_arm(const char *call, unsigned n, unsigned count, int error)
{
	faults[armed++] = (struct fault){call, n, count, 0, error};
	*calls = 0;
}

void fault_system_disarm(void)
{
	armed = 0;
	*calls = 0;
}

const char *fault_system_calls(void)
{
	return calls;
}

/* The fault of this call; NULL: none. */
static const struct fault *fault_of(const char *call)
{
	size_t n = strlen(calls);

	snprintf(calls + n, sizeof calls - n, "%s ", call);
	for (unsigned i = 0; i < armed; i++)
		if (!strcmp(faults[i].call, call) && ++faults[i].calls >= faults[i].n &&
		    faults[i].calls - faults[i].n < faults[i].count)
			return &faults[i];
	return NULL;
}

static bool fails(const char *call)
{
	const struct fault *fault = fault_of(call);

	if (fault)
		errno = fault->error;
	return fault;
}

#define WRAP(result, name, parameters, arguments)                                                            \
	result __real_##name parameters;                                                                     \
	result __wrap_##name parameters;                                                                     \
	result __wrap_##name parameters                                                                      \
	{                                                                                                    \
		return fails(#name) ? -1 : __real_##name arguments;                                          \
	}

WRAP(int, fsync, (int fd), (fd))
WRAP(int, link, (const char *from, const char *to), (from, to))
WRAP(int, unlink, (const char *path), (path))
WRAP(int, unlinkat, (int dirfd, const char *path, int flags), (dirfd, path, flags))
WRAP(int, renameat, (int from_dir, const char *from, int to_dir, const char *to),
     (from_dir, from, to_dir, to))
WRAP(int, renameat2, (int from_dir, const char *from, int to_dir, const char *to, unsigned flags),
     (from_dir, from, to_dir, to, flags))
WRAP(int, symlinkat, (const char *target, int dirfd, const char *path), (target, dirfd, path))
WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(int, fchown, (int fd, uid_t owner, gid_t group), (fd, owner, group))
WRAP(int, fstat64, (int fd, struct stat *st), (fd, st))
WRAP(int, fstatat64, (int dirfd, const char *path, struct stat *st, int flags), (dirfd, path, st, flags))
WRAP(ssize_t, readlinkat, (int dirfd, const char *path, char *target, size_t n), (dirfd, path, target, n))
WRAP(ssize_t, getrandom, (void *buf, size_t n, unsigned flags), (buf, n, flags))

static unsigned names; /* that are still to come before those of a folder */

void fault_system_add_names(unsigned count)
{
	names = count;
}

struct dirent *__real_readdir64(DIR *dir);
struct dirent *__wrap_readdir64(DIR *dir);
struct dirent *__wrap_readdir64(DIR *dir)
{
	static struct dirent none = {.d_name = "none"};

	if (names) {
		names--;
		return &none;
	}
	return fails("readdir64") ? NULL : __real_readdir64(dir);
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	const struct fault *fault = fault_of("close");
	int rc = __real_close(fd);

	if (!fault)
		return rc;
	errno = fault->error;
	return -1;
}

ssize_t __real_write(int fd, const void *buf, size_t n);
ssize_t __wrap_write(int fd, const void *buf, size_t n);
ssize_t __wrap_write(int fd, const void *buf, size_t n)
{
	const struct fault *fault = fault_of("write");

	if (fault && !fault->error)
		return __real_write(fd, buf, 1);
	if (!fault)
		return __real_write(fd, buf, n);
	errno = fault->error;
	return -1;
}

int __real_statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *st);
int __wrap_statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *st);
int __wrap_statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *st)
{
	const struct fault *fault = fault_of("statx");
	int rc = fault && fault->error ? -1 : __real_statx(dirfd, path, flags, mask, st);

	if (fault && fault->error)
		errno = fault->error;
	else if (fault)
		st->stx_mask &= ~STATX_BTIME;
	return rc;
}

/* The mode that follows the flags, if these make a file. */
static mode_t mode_of(int flags, va_list arguments)
{
	return flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
}

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return fails("open64") ? -1 : __real_open64(path, flags, mode);
}

int __real_openat64(int dirfd, const char *path, int flags, ...);
int __wrap_openat64(int dirfd, const char *path, int flags, ...);
int __wrap_openat64(int dirfd, const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return fails("openat64") ? -1 : __real_openat64(dirfd, path, flags, mode);
}

/* For commands whose argument is a number. */
int __real_fcntl64(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, ...)
{
	va_list arguments;
	int n;

	va_start(arguments, command);
	n = va_arg(arguments, int);
	va_end(arguments);
	return fails("fcntl64") ? -1 : __real_fcntl64(fd, command, n);
}
