#include "io/io.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/wait.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

struct local {
	struct h5_io io;
	int fd;
	bool locked;
};

/* As preadv(2). If others depend on this thread, it takes what is in memory, and says so before it waits. */
static ssize_t read_some(const struct h5_io *io, uint64_t offset, const struct iovec *buffers, unsigned count)
{
	int fd = ((const struct local *)io)->fd;

	if (h5_wait_is_noticed()) {
		ssize_t n = preadv2(fd, buffers, (int)count, (off_t)offset, RWF_NOWAIT);

		if (n >= 0)
			return n;
		h5_wait_begins();
	}
	return preadv(fd, buffers, (int)count, (off_t)offset);
}

static int local_read(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	char *p = buf;

	*got = 0;
	if (offset > (uint64_t)INT64_MAX - n)
		return h5_fail(-EIO, offset, "read beyond the largest file offset");
	while (*got < n) {
		struct iovec rest = {p + *got, n - *got};
		ssize_t part = read_some(io, offset + *got, &rest, 1);

		if (part < 0 && errno == EINTR)
			continue;
		if (part < 0)
			return h5_fail(-EIO, offset, "reading %zu bytes: %s", n, strerror(errno));
		if (!part)
			break;
		*got += (size_t)part;
	}
	return 0;
}

/* The kernel may give less than was asked for; then the rest is read buffer by buffer. */
static int local_readv(struct h5_io *io, uint64_t offset, const struct iovec *buffers, unsigned count,
		       size_t *got)
{
	ssize_t n = offset <= INT64_MAX ? read_some(io, offset, buffers, count) : -1;
	size_t skip = n > 0 ? (size_t)n : 0;

	*got = 0;
	for (unsigned i = 0; i < count; i++) {
		size_t there = (size_t)h5_min(skip, buffers[i].iov_len), more;
		int rc;

		skip -= there;
		*got += there;
		rc = local_read(io, offset + *got, (char *)buffers[i].iov_base + there,
				buffers[i].iov_len - there, &more);
		if (rc)
			return rc;
		*got += more;
		if (there + more < buffers[i].iov_len)
			break;
	}
	return 0;
}

static int local_stat(struct h5_io *io, struct h5_io_stat *st)
{
	struct stat s;

	if (fstat(((struct local *)io)->fd, &s))
		return h5_fail(-EIO, H5_UNDEF, "fstat: %s", strerror(errno));
	*st = (struct h5_io_stat){.size = (uint64_t)s.st_size,
				  .stored = h5_min((uint64_t)s.st_size, 512 * (uint64_t)s.st_blocks),
				  .end = (uint64_t)s.st_size,
				  .device = s.st_dev,
				  .inode = s.st_ino,
				  .links = s.st_nlink,
				  .owner = s.st_uid,
				  .mode = s.st_mode & 0777,
				  .mtime = s.st_mtim,
				  .ctime = s.st_ctim,
				  .locked = ((struct local *)io)->locked};
	return 0;
}

static void local_close(struct h5_io *io)
{
	struct local *l = (struct local *)io;

	close(l->fd); /* drops the lock */
	free(l);
}

static int local_write(struct h5_io *io, uint64_t offset, const void *buf, size_t n)
{
	int fd = ((struct local *)io)->fd;
	const char *p = buf;
	size_t done = 0;

	if (offset > (uint64_t)INT64_MAX - n)
		return h5_fail(-EFBIG, offset, "write beyond the largest file offset");
	while (done < n) {
		ssize_t part = pwrite(fd, p + done, n - done, (off_t)(offset + done));

		if (part < 0 && errno == EINTR)
			continue;
		if (part < 0)
			return h5_fail(-errno, offset, "writing %zu bytes: %s", n, strerror(errno));
		done += (size_t)part;
	}
	return 0;
}

static int local_resize(struct h5_io *io, uint64_t size)
{
	if (size > INT64_MAX)
		return h5_fail(-EFBIG, size, "size beyond the largest file offset");
	if (ftruncate(((struct local *)io)->fd, (off_t)size))
		return h5_fail(-errno, size, "changing the size of the file: %s", strerror(errno));
	return 0;
}

static int local_sync(struct h5_io *io)
{
	h5_wait_begins();
	return fdatasync(((struct local *)io)->fd)
		       ? h5_fail(-errno, H5_UNDEF, "fdatasync: %s", strerror(errno))
		       : 0;
}

static int local_punch(struct h5_io *io, uint64_t offset, uint64_t n)
{
	int fd = ((struct local *)io)->fd;

	if (offset > INT64_MAX || n > INT64_MAX - offset)
		return h5_fail(-EFBIG, offset, "a hole beyond the largest file offset");
	while (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)n))
		if (errno != EINTR)
			return h5_fail(-errno, offset, "punching a hole of %ju bytes: %s", (uintmax_t)n,
				       strerror(errno));
	return 0;
}

static int local_unlock(struct h5_io *io)
{
	struct local *l = (struct local *)io;

	if (l->locked && flock(l->fd, LOCK_UN))
		return h5_fail(-errno, H5_UNDEF, "cannot unlock: %s", strerror(errno));
	l->locked = false;
	return 0;
}

static const struct h5_io_ops local_ops = {.read = local_read,
					   .readv = local_readv,
					   .stat = local_stat,
					   .write = local_write,
					   .resize = local_resize,
					   .sync = local_sync,
					   .punch = local_punch,
					   .unlock = local_unlock,
					   .close = local_close};
static const struct h5_io_ops read_only_ops = {.read = local_read,
					       .readv = local_readv,
					       .stat = local_stat,
					       .unlock = local_unlock,
					       .close = local_close};

static int take_lock(int fd, enum h5_lock_mode lock, bool writable, bool *locked)
{
	*locked = lock != H5_LOCK_NONE && !flock(fd, (writable ? LOCK_EX : LOCK_SH) | LOCK_NB);
	if (lock == H5_LOCK_NONE || *locked)
		return 0;
	if (errno == EWOULDBLOCK)
		return h5_fail(-EWOULDBLOCK, H5_UNDEF,
			       writable ? "locked by a program that reads or writes it"
					: "locked by a program that writes it");
	if (errno == ENOSYS && lock == H5_LOCK_BEST_EFFORT)
		return 0;
	return h5_fail(-errno, H5_UNDEF, "cannot lock: %s", strerror(errno));
}

int h5_io_open_fd(int fd, enum h5_lock_mode lock, bool writable, struct h5_io **io)
{
	struct local *l = NULL;
	struct stat st;
	bool locked;
	int rc;

	if (fstat(fd, &st))
		rc = h5_fail(-errno, H5_UNDEF, "%s", strerror(errno));
	else if (!S_ISREG(st.st_mode))
		rc = h5_fail(S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL, H5_UNDEF, "not a regular file");
	else
		rc = take_lock(fd, lock, writable, &locked);
	if (!rc && !(l = calloc(1, sizeof *l)))
		rc = -ENOMEM;
	if (rc) {
		close(fd);
		return rc;
	}
	l->io.ops = writable ? &local_ops : &read_only_ops;
	l->fd = fd;
	l->locked = locked;
	*io = &l->io;
	return 0;
}

int h5_io_open_local(const char *path, enum h5_lock_mode lock, bool writable, struct h5_io **io)
{
	/* O_NONBLOCK: opening a FIFO must not hang; it means nothing to a regular file. */
	int fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return h5_fail(-errno, H5_UNDEF, "%s", strerror(errno));
	return h5_io_open_fd(fd, lock, writable, io);
}
