/* Where the bytes of a file live: a local file, memory (for tests and fuzzing), or several of these together.
 * overlay.h lays other bytes over them. */
#ifndef H5_IO_IO_H
#define H5_IO_IO_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include <time.h>

enum {
	H5_IO_BUFFERS = 256,
	H5_IO_MEMBERS_MAX = 6, /* of struct h5_io_pieces */
};

struct h5_io;

/* How a file that can be written is divided into pieces. If it is one piece, all is 0. */
struct h5_io_pieces {
	uint64_t size;			   /* bytes of each member of a family but the last; 0: it is none */
	unsigned count;			   /* members of the multi driver; 0: it is none of that */
	uint64_t start[H5_IO_MEMBERS_MAX]; /* of these, ascending; the first is 0 */
};

struct h5_io_stat {
	uint64_t size;	 /* bytes */
	uint64_t stored; /* bytes that take room on the medium: holes don't */
	uint64_t end;	 /* where the file's addresses end: beyond `size` if there are gaps between members */
	uint64_t device, inode; /* together the identity of a local file; 0, 0 for memory */
	struct timespec mtime, ctime;
	uint64_t links; /* names of a local file; of several pieces, the most that one has */
	struct h5_io_pieces pieces;
	uint64_t owner; /* uid of the file's owner */
	unsigned mode;	/* the file's permissions */
	bool locked;	/* nobody writes the file: the advisory lock is held, or the file is memory */
};

struct h5_io_range {
	uint64_t offset, n; /* offset + n does not overflow */
};

enum h5_wanted {
	H5_WANTED_SOON,	  /* what comes next of what is being read */
	H5_WANTED_NOW,	  /* at once */
	H5_WANTED_AROUND, /* metadata: at once, and after it probably what lies around it */
	H5_WANTED_AMONG,  /* the same, among data that will be read as well: nodes of an index of chunks */
};

struct h5_io_ops {
	/* The n bytes at offset, or as many (*got) as there are before the end of the file or of a piece of
	 * it; -EIO with detail. Safe from several threads. */
	int (*read)(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got);
	/* The same, into several buffers, one after the other, at most H5_IO_BUFFERS. NULL: `read` is called
	 * for each. */
	int (*readv)(struct h5_io *io, uint64_t offset, const struct iovec *buffers, unsigned count,
		     size_t *got);
	/* These ranges, by ascending offset, will be read: the io may begin to bring them. It does what it
	 * can, and tells of no failure. Returns how many bytes it is good for that one reader in order wants
	 * before it reads them; also asked with no ranges. NULL, 0: none. */
	uint64_t (*want)(struct h5_io *io, const struct h5_io_range *ranges, size_t count,
			 enum h5_wanted when);
	int (*stat)(struct h5_io *io, struct h5_io_stat *st);
	/* All n bytes; the file grows if they reach beyond its end. -ENOSPC, -EDQUOT, -EFBIG, -EIO with
	 * detail. NULL, like `resize` and `sync`, if the bytes are only for reading. */
	int (*write)(struct h5_io *io, uint64_t offset, const void *buf, size_t n);
	/* Of members of the multi driver, the one that holds the byte before `size` ends there. */
	int (*resize)(struct h5_io *io, uint64_t size);
	/* All that was written before is on the medium, and the size with it. */
	int (*sync)(struct h5_io *io);
	/* The n bytes become zeros that take no room on the medium; the size stays. -EOPNOTSUPP: the file
	 * system cannot do that. NULL: no one can. */
	int (*punch)(struct h5_io *io, uint64_t offset, uint64_t n);
	/* Gives the advisory lock up. NULL: there is none. */
	int (*unlock)(struct h5_io *io);
	/* Ends the work of the io before `close`, while the file can still be read through it. NULL: there is
	 * nothing to do. */
	void (*finish)(struct h5_io *io);
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

/* The operation `readv` of those that have none. */
int h5_io_read_each(struct h5_io *io, uint64_t offset, const struct iovec *buffers, unsigned count,
		    size_t *got);

/* As many bytes as the buffers hold together, or as there are. */
static inline int h5_io_readv(struct h5_io *io, uint64_t offset, const struct iovec *buffers, unsigned count,
			      size_t *got)
{
	if (count == 1)
		return h5_io_read_some(io, offset, buffers->iov_base, buffers->iov_len, got);
	return io->ops->readv ? io->ops->readv(io, offset, buffers, count, got)
			      : h5_io_read_each(io, offset, buffers, count, got);
}

/* The error of h5_io_read(). */
int h5_io_fail_short(uint64_t offset, size_t n);

/* All n bytes at offset; -EUCLEAN: the file ends before. */
static inline int h5_io_read(struct h5_io *io, uint64_t offset, void *buf, size_t n)
{
	size_t got;
	int rc = h5_io_read_some(io, offset, buf, n, &got);

	return rc || got == n ? rc : h5_io_fail_short(offset, n);
}

static inline uint64_t h5_io_want(struct h5_io *io, const struct h5_io_range *ranges, size_t count,
				  enum h5_wanted when)
{
	return io->ops->want ? io->ops->want(io, ranges, count, when) : 0;
}

static inline int h5_io_stat(struct h5_io *io, struct h5_io_stat *st)
{
	return io->ops->stat(io, st);
}

/* Adds a piece to *st, which describes the pieces before it as one file: the file has the newest times of its
 * pieces, and is locked if all pieces are. */
void h5_io_stat_join(struct h5_io_stat *st, const struct h5_io_stat *piece);

/* True: these are its first bytes, at most 8. */
bool h5_io_begins_with(struct h5_io *io, const void *bytes, size_t n);

/* For those that were opened for writing. */
static inline int h5_io_write(struct h5_io *io, uint64_t offset, const void *buf, size_t n)
{
	return io->ops->write(io, offset, buf, n);
}

static inline int h5_io_resize(struct h5_io *io, uint64_t size)
{
	return io->ops->resize(io, size);
}

static inline int h5_io_sync(struct h5_io *io)
{
	return io->ops->sync(io);
}

static inline int h5_io_punch(struct h5_io *io, uint64_t offset, uint64_t n)
{
	return io->ops->punch ? io->ops->punch(io, offset, n) : -EOPNOTSUPP;
}

static inline int h5_io_unlock(struct h5_io *io)
{
	return io->ops->unlock(io);
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
	H5_LOCK_ALWAYS,	     /* a shared lock for reading, an exclusive one for writing */
	H5_LOCK_BEST_EFFORT, /* as H5_LOCK_ALWAYS, but a file system without flock is forgiven */
};

/* Opens a regular file. -EWOULDBLOCK: another program holds the lock; -EISDIR, -ENOENT, ...
 * The second one takes an open descriptor over, also if it fails; `writable`: it is open for writing. */
int h5_io_open_local(const char *path, enum h5_lock_mode lock, bool writable, struct h5_io **io);
int h5_io_open_fd(int fd, enum h5_lock_mode lock, bool writable, struct h5_io **io);

/* The bytes are borrowed: they must outlive the h5_io. */
int h5_io_open_memory(const void *data, size_t size, struct h5_io **io);

/* A piece of a file. It stands for the addresses from `start` to the start of the next piece. */
struct h5_io_member {
	struct h5_io *io; /* NULL: missing; reading its addresses is -EIO */
	uint64_t start;
	char *name; /* for errors */
};

/* One io over all of them, in ascending order; the first is there and starts at 0, and the identity is its.
 * On success it takes over what they hold. */
int h5_io_open_members(const struct h5_io_member *members, unsigned count, struct h5_io **io);
/* Members of one size, of which more are made when they are needed. */
struct h5_io_family {
	uint64_t size; /* bytes of each member but the last */
	unsigned most; /* members; more are -EFBIG */
	/* Makes the empty member of that number, open for writing, and durable in its folder. */
	int (*make)(void *arg, unsigned number, struct h5_io_member *member);
	void (*release)(void *arg); /* when the io closes */
	void *arg;
};

/* The same over the first members of a family, all of which are there and open for writing. On success it
 * takes `arg` over, too. A write is made whole or not at all only inside one member. */
int h5_io_open_family(const struct h5_io_member *members, unsigned count, const struct h5_io_family *family,
		      struct h5_io **io);
/* Members of the multi driver, at most H5_IO_MEMBERS_MAX, all of which are there and open for writing: the
 * same as h5_io_open_members(), and the io can be written. */
int h5_io_open_multi(const struct h5_io_member *members, unsigned count, struct h5_io **io);
/* Of these ios: true, one of the members is that file. */
bool h5_io_members_have(const struct h5_io *io, uint64_t device, uint64_t inode);

/* Bytes from the offset to the end of the block of `block` bytes that it is in, as the medium has them: a
 * block begins anew in each piece. */
uint64_t h5_io_left_in_block(const struct h5_io_pieces *pieces, uint64_t offset, uint64_t block);

/* Closes and frees what they hold; may run twice. */
void h5_io_members_release(struct h5_io_member *members, unsigned count);

#endif
