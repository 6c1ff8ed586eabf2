/* A local file as an h5_io: its lock, the largest offsets, and calls of the system that fail or do a part. */
#include "base/checked.h"
#include "base/error.h"
#include "io/io.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- flock() ---- */

static int flock_error; /* an errno that all calls fail with; 0: they do not */

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
int __wrap_flock(int fd, int operation)
{
	if (!flock_error)
		return __real_flock(fd, operation);
	errno = flock_error;
	return -1;
}

/* ---- pwrite() ---- */

static unsigned writes_in_pieces; /* calls that are interrupted and give only two bytes, in turn */

ssize_t __real_pwrite64(int fd, const void *buf, size_t n, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *buf, size_t n, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *buf, size_t n, off_t offset)
{
	if (!writes_in_pieces)
		return __real_pwrite64(fd, buf, n, offset);
	if (writes_in_pieces-- % 2)
		return __real_pwrite64(fd, buf, n < 2 ? n : 2, offset);
	errno = EINTR;
	return -1;
}

/* ---- preadv() ---- */

/* Calls that are interrupted and give only `piece` bytes, in turn. */
static unsigned reads_in_pieces;
static size_t piece;

ssize_t __real_preadv64(int fd, const struct iovec *buffers, int count, off_t offset);
ssize_t __wrap_preadv64(int fd, const struct iovec *buffers, int count, off_t offset);
ssize_t __wrap_preadv64(int fd, const struct iovec *buffers, int count, off_t offset)
{
	struct iovec part[2] = {buffers[0], buffers[count > 1]};

	if (!reads_in_pieces)
		return __real_preadv64(fd, buffers, count, offset);
	if (reads_in_pieces-- % 2) {
		part[0].iov_len = h5_min(part[0].iov_len, piece);
		part[1].iov_len = h5_min(part[1].iov_len, piece - part[0].iov_len);
		return __real_preadv64(fd, part, count > 1 ? 2 : 1, offset);
	}
	errno = EINTR;
	return -1;
}

/* ---- files ---- */

static int make_file(void)
{
	int fd = memfd_create("io", MFD_CLOEXEC);

	ck_assert_int_eq(pwrite(fd, "0123456789", 10, 0), 10);
	return fd;
}

static struct h5_io *open_file(int fd, enum h5_lock_mode lock, bool writable)
{
	struct h5_io *io;

	ck_assert_int_eq(h5_io_open_fd(fd, lock, writable, &io), 0);
	return io;
}

/* Another open file of the same bytes. */
static int open_again(int fd)
{
	char path[40];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return open(path, O_RDWR | O_CLOEXEC);
}

/* From now on all that the descriptor is asked for fails but fstat(). */
static void spoil(int fd)
{
	int nothing = open("/", O_PATH | O_CLOEXEC);

	ck_assert_int_eq(dup2(nothing, fd), fd);
	close(nothing);
}

static bool is_locked(struct h5_io *io)
{
	struct h5_io_stat st;

	ck_assert_int_eq(h5_io_stat(io, &st), 0);
	return st.locked;
}

/* ---- locks ---- */

/* Readers share the file, a writer has it alone, until the lock is given up. */
START_TEST(a_lock_lasts_until_it_is_given_up)
{
	for (unsigned writable = 0; writable < 2; writable++) {
		int fd = make_file(), other = open_again(fd);
		struct h5_io *io = open_file(fd, H5_LOCK_ALWAYS, writable);

		ck_assert(is_locked(io));
		ck_assert_int_eq(flock(other, LOCK_SH | LOCK_NB), writable ? -1 : 0);
		ck_assert_int_eq(flock(other, LOCK_UN), 0);
		ck_assert_int_eq(flock(other, LOCK_EX | LOCK_NB), -1);
		ck_assert_int_eq(h5_io_unlock(io), 0);
		ck_assert(!is_locked(io));
		ck_assert_int_eq(flock(other, LOCK_EX | LOCK_NB), 0);
		ck_assert_int_eq(h5_io_unlock(io), 0);
		h5_io_close(io);
		close(other);
	}
}
END_TEST

START_TEST(a_lock_that_cannot_be_given_up)
{
	int fd = make_file();
	struct h5_io *io = open_file(fd, H5_LOCK_ALWAYS, false);

	spoil(fd);
	ck_assert_int_eq(h5_io_unlock(io), -EBADF);
	ck_assert(is_locked(io));
	h5_io_close(io);

	/* Without one nothing is asked for. */
	fd = make_file();
	io = open_file(fd, H5_LOCK_NONE, false);
	spoil(fd);
	ck_assert_int_eq(h5_io_unlock(io), 0);
	h5_io_close(io);
}
END_TEST

START_TEST(a_lock_of_another)
{
	static const struct {
		int other; /* its lock */
		enum h5_lock_mode lock;
		bool writable;
		int rc;
	} cases[] = {
		{LOCK_EX, H5_LOCK_ALWAYS, false, -EWOULDBLOCK},
		{LOCK_EX, H5_LOCK_BEST_EFFORT, false, -EWOULDBLOCK},
		{LOCK_EX, H5_LOCK_NONE, false, 0},
		{LOCK_SH, H5_LOCK_ALWAYS, false, 0},
		{LOCK_SH, H5_LOCK_ALWAYS, true, -EWOULDBLOCK},
		{LOCK_SH, H5_LOCK_BEST_EFFORT, true, -EWOULDBLOCK},
		{LOCK_SH, H5_LOCK_NONE, true, 0},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int fd = make_file(), other = open_again(fd);
		unsigned before = unit_descriptors();
		struct h5_io *io;

		ck_assert_int_eq(flock(other, cases[i].other | LOCK_NB), 0);
		ck_assert_int_eq(h5_io_open_fd(fd, cases[i].lock, cases[i].writable, &io), cases[i].rc);
		if (!cases[i].rc) {
			ck_assert_int_eq(is_locked(io), cases[i].lock != H5_LOCK_NONE);
			h5_io_close(io);
		}
		/* The descriptor is closed either way. */
		ck_assert_uint_eq(unit_descriptors(), before - 1);
		close(other);
	}
}
END_TEST

/* A file system that has none. */
START_TEST(no_locks)
{
	static const struct {
		int error;
		enum h5_lock_mode lock;
		int rc;
	} cases[] = {
		{ENOSYS, H5_LOCK_ALWAYS, -ENOSYS},
		{ENOSYS, H5_LOCK_BEST_EFFORT, 0},
		{ENOSYS, H5_LOCK_NONE, 0},
		{ENOLCK, H5_LOCK_ALWAYS, -ENOLCK},
		{ENOLCK, H5_LOCK_BEST_EFFORT, -ENOLCK},
		{ENOLCK, H5_LOCK_NONE, 0},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_io *io;

		flock_error = cases[i].error;
		ck_assert_int_eq(h5_io_open_fd(make_file(), cases[i].lock, false, &io), cases[i].rc);
		if (!cases[i].rc) {
			ck_assert(!is_locked(io));
			h5_io_close(io);
		}
		flock_error = 0;
	}
}
END_TEST

/* ---- what cannot be opened ---- */

START_TEST(what_is_no_file)
{
	unsigned before = unit_descriptors();
	struct h5_io *io;
	int ends[2];

	ck_assert_int_eq(h5_io_open_fd(-1, H5_LOCK_NONE, false, &io), -EBADF);
	ck_assert_int_eq(h5_io_open_fd(open("/", O_RDONLY), H5_LOCK_NONE, false, &io), -EISDIR);
	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(h5_io_open_fd(ends[0], H5_LOCK_NONE, false, &io), -EINVAL);
	close(ends[1]);
	ck_assert_int_eq(h5_io_open_local("/no/file", H5_LOCK_NONE, false, &io), -ENOENT);
	ck_assert_int_eq(h5_io_open_local("/", H5_LOCK_NONE, true, &io), -EISDIR);
	ck_assert_uint_eq(unit_descriptors(), before);
}
END_TEST

/* ---- the largest offsets ---- */

START_TEST(offsets_beyond_the_largest)
{
	const uint64_t largest = INT64_MAX;
	int fd = make_file();
	struct h5_io *io = open_file(fd, H5_LOCK_NONE, true);
	char buf[8];
	size_t got;

	ck_assert_int_eq(h5_io_read_some(io, largest - 8, buf, 8, &got), 0);
	ck_assert_uint_eq(got, 0);
	ck_assert_int_eq(h5_io_read_some(io, largest - 7, buf, 8, &got), -EIO);
	ck_assert_int_eq(h5_io_read_some(io, UINT64_MAX, buf, 8, &got), -EIO);
	ck_assert_uint_eq(got, 0);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t at = (const uint64_t[]){largest - 7, largest + 1, UINT64_MAX}[i];

		ck_assert_int_eq(h5_io_write(io, at, buf, 8), -EFBIG);
		ck_assert_msg(strstr(h5_error_last()->text, "beyond"), "%s", h5_error_last()->text);
		ck_assert_int_eq(h5_io_punch(io, at, 8), -EFBIG);
		ck_assert_msg(strstr(h5_error_last()->text, "beyond"), "%s", h5_error_last()->text);
	}
	ck_assert_int_eq(h5_io_punch(io, 0, largest), 0);
	ck_assert_int_eq(h5_io_resize(io, largest + 1), -EFBIG);
	ck_assert_int_eq(h5_io_resize(io, UINT64_MAX), -EFBIG);
	h5_io_close(io);
}
END_TEST

START_TEST(several_buffers)
{
	char a[4] = "", b[4] = "", c[8] = "";
	const struct iovec buffers[] = {{a, 4}, {b, 4}, {c, 8}};
	struct h5_io *io = open_file(make_file(), H5_LOCK_NONE, false);
	size_t got;

	ck_assert_int_eq(h5_io_readv(io, 0, buffers, 3, &got), 0);
	ck_assert_uint_eq(got, 10); /* up to the end of the file */
	ck_assert_mem_eq(a, "0123", 4);
	ck_assert_mem_eq(b, "4567", 4);
	ck_assert_mem_eq(c, "89\0", 3);
	ck_assert_int_eq(h5_io_readv(io, 10, buffers, 3, &got), 0);
	ck_assert_uint_eq(got, 0);
	ck_assert_int_eq(h5_io_readv(io, UINT64_MAX, buffers, 3, &got), -EIO);
	h5_io_close(io);
}
END_TEST

/* Of what is asked for the kernel gives less at a time, or it is interrupted: all of it comes. */
START_TEST(a_read_in_pieces)
{
	static const struct {
		size_t piece;
		unsigned calls;
	} cases[] = {{2, 7}, {2, 6}, {5, 3}, {5, 2}, {6, 3}, {7, 1}, {8, 1}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char a[5] = "", b[3] = "", c[1] = "";
		const struct iovec buffers[] = {{a, 5}, {b, 3}, {c, 1}};
		struct h5_io *io = open_file(make_file(), H5_LOCK_NONE, false);
		size_t got;

		piece = cases[i].piece;
		reads_in_pieces = cases[i].calls;
		ck_assert_int_eq(h5_io_readv(io, 1, buffers, 3, &got), 0);
		ck_assert_uint_eq(reads_in_pieces, 0);
		ck_assert_uint_eq(got, 9);
		ck_assert_mem_eq(a, "12345", 5);
		ck_assert_mem_eq(b, "678", 3);
		ck_assert_int_eq(c[0], '9');
		piece = 2;
		reads_in_pieces = 3;
		ck_assert_int_eq(h5_io_read(io, 2, a, 3), 0);
		ck_assert_uint_eq(reads_in_pieces, 0);
		ck_assert_mem_eq(a, "234", 3);
		h5_io_close(io);
	}
}
END_TEST

START_TEST(a_write_in_pieces)
{
	int fd = make_file();
	struct h5_io *io = open_file(fd, H5_LOCK_NONE, true);
	char buf[11] = "";

	writes_in_pieces = 6;
	ck_assert_int_eq(h5_io_write(io, 1, "abcdefgh", 8), 0);
	ck_assert_uint_eq(writes_in_pieces, 0);
	ck_assert_int_eq(h5_io_read(io, 0, buf, 10), 0);
	ck_assert_str_eq(buf, "0abcdefgh9");
	h5_io_close(io);
}
END_TEST

/* ---- calls that fail ---- */

START_TEST(calls_that_fail)
{
	const struct iovec buffers[] = {{(char[4]){0}, 4}, {(char[4]){0}, 4}};
	int fd = make_file();
	struct h5_io *io = open_file(fd, H5_LOCK_NONE, true);
	char buf[4];
	size_t got;

	spoil(fd);
	ck_assert_int_eq(h5_io_read_some(io, 0, buf, 4, &got), -EIO);
	ck_assert_int_eq(h5_io_readv(io, 0, buffers, 2, &got), -EIO);
	ck_assert_int_eq(h5_io_write(io, 0, buf, 4), -EBADF);
	ck_assert_int_eq(h5_io_resize(io, 4), -EBADF);
	ck_assert_int_eq(h5_io_sync(io), -EBADF);
	ck_assert_int_eq(h5_io_punch(io, 0, 4), -EBADF);
	h5_io_close(io);
}
END_TEST

UNIT_MAIN("local", a_lock_lasts_until_it_is_given_up, a_lock_that_cannot_be_given_up, a_lock_of_another,
	  no_locks, what_is_no_file, offsets_beyond_the_largest, several_buffers, a_read_in_pieces,
	  a_write_in_pieces, calls_that_fail)
