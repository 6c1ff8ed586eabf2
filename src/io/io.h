/* Where the bytes of a file live: a local file, or memory (tests, fuzzing). */
#ifndef H5_IO_IO_H
#define H5_IO_IO_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct h5_io;

struct h5_io_stat {
	uint64_t size;		/* bytes */
	uint64_t device, inode; /* together the identity of a local file; 0, 0 for memory */
	struct timespec mtime, ctime;
};

struct h5_io_ops {
	/* All n bytes at offset, or -EIO (a read beyond the end is one), with detail. Safe from several
	 * threads. */
	int (*read)(struct h5_io *io, uint64_t offset, void *buf, size_t n);
	int (*stat)(struct h5_io *io, struct h5_io_stat *st);
	void (*close)(struct h5_io *io);
};

/* Implementations embed it as their first member. */
struct h5_io {
	const struct h5_io_ops *ops;
};

static inline int h5_io_read(struct h5_io *io, uint64_t offset, void *buf, size_t n)
{
	return io->ops->read(io, offset, buf, n);
}

static inline int h5_io_stat(struct h5_io *io, struct h5_io_stat *st)
{
	return io->ops->stat(io, st);
}

/* NULL is fine. */
static inline void h5_io_close(struct h5_io *io)
{
	if (io)
		io->ops->close(io);
}

/* The advisory lock that libhdf5 takes too (flock). */
enum h5_lock_mode {
	H5_LOCK_NONE,
	H5_LOCK_SHARED,
	H5_LOCK_BEST_EFFORT, /* shared; a file system without flock is forgiven */
};

/* A regular file, read-only. -EWOULDBLOCK where somebody holds the lock for writing, -EISDIR, -ENOENT, ...
 * The second one takes an open descriptor over, also when it fails. */
int h5_io_open_local(const char *path, enum h5_lock_mode lock, struct h5_io **io);
int h5_io_open_fd(int fd, enum h5_lock_mode lock, struct h5_io **io);

/* The bytes are borrowed: they must outlive the h5_io. */
int h5_io_open_memory(const void *data, size_t size, struct h5_io **io);

#endif
