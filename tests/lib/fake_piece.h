/* A piece of a file that is what the test says, and fails when it says so. */
#ifndef H5_TESTS_FAKE_PIECE_H
#define H5_TESTS_FAKE_PIECE_H

#include "io/io.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct fake {
	struct h5_io io;
	struct h5_io_stat st;
	int read, stat, write, resize, sync, unlock; /* errors; 0: it succeeds */
	unsigned unlocks, writes, stats;
	unsigned failing_stat; /* number of the stat that fails, from 1 on; 0: none */
};

static inline int fake_read(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	const struct fake *fake = (struct fake *)io;

	*got = offset < fake->st.size ? n < fake->st.size - offset ? n : (size_t)(fake->st.size - offset) : 0;
	memset(buf, 'f', *got);
	return fake->read;
}

static inline int fake_stat(struct h5_io *io, struct h5_io_stat *st)
{
	struct fake *fake = (struct fake *)io;

	*st = fake->st;
	return ++fake->stats == fake->failing_stat ? -EIO : fake->stat;
}

static inline int fake_write(struct h5_io *io, uint64_t offset, const void *buf, size_t n)
{
	(void)offset;
	(void)buf;
	(void)n;
	((struct fake *)io)->writes++;
	return ((struct fake *)io)->write;
}

static inline int fake_resize(struct h5_io *io, uint64_t size)
{
	((struct fake *)io)->st.size = size;
	return ((struct fake *)io)->resize;
}

static inline int fake_sync(struct h5_io *io)
{
	return ((struct fake *)io)->sync;
}

static inline int fake_unlock(struct h5_io *io)
{
	((struct fake *)io)->unlocks++;
	return ((struct fake *)io)->unlock;
}

/* The test owns it. */
static inline void fake_close(struct h5_io *io)
{
	(void)io;
}

static const struct h5_io_ops fake_ops = {.read = fake_read,
					  .stat = fake_stat,
					  .write = fake_write,
					  .resize = fake_resize,
					  .sync = fake_sync,
					  .unlock = fake_unlock,
					  .close = fake_close};

#endif
