/* Where the bytes of a file live: a local file, memory (tests, fuzzing), or several of these together. */
#ifndef H5_IO_IO_H
#define H5_IO_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct h5_io;

struct h5_io_stat {
	uint64_t size; /* bytes */
	uint64_t end;  /* where its addresses end: beyond `size` where members have gaps between them */
	uint64_t device, inode; /* together the identity of a local file; 0, 0 for memory */
	struct timespec mtime, ctime;
	bool locked; /* nobody writes it: the advisory lock is held, or it is memory */
};

struct h5_io_ops {
	/* The n bytes at offset, or as many (*got) as there are before the end of the file or of a piece of
	 * it; -EIO with detail. Safe from several threads. */
	int (*read)(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got);
	int (*stat)(struct h5_io *io, struct h5_io_stat *st);
	void (*close)(struct h5_io *io);
};

/* Implementations embed it as their first member. */
struct h5_io {
	const struct h5_io_ops *ops;
};

static inline int h5_io_read_some(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	return io->ops->read(io, offset, buf, n, got);
}

/* All n bytes at offset; -EUCLEAN where they are not there. */
int h5_io_read(struct h5_io *io, uint64_t offset, void *buf, size_t n);

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

/* A file in several pieces. Each stands for the addresses from `start` to the start of the next one. */
struct h5_io_member {
	struct h5_io *io; /* NULL: missing; reading its addresses is -EIO */
	uint64_t start;
	char *name; /* for errors */
};

/* One io over all of them, in ascending order; the first is there and starts at 0, and the identity is its.
 * On success it takes over what they hold. */
int h5_io_open_members(const struct h5_io_member *members, unsigned count, struct h5_io **io);
/* Closes and frees what they hold; may run twice. */
void h5_io_members_release(struct h5_io_member *members, unsigned count);

#endif
