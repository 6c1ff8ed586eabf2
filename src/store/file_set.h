/* The files of one mount: the mounted one, and those that its external links and virtual datasets name. They
 * share the caches, and one rule about which files may be opened. */
#ifndef H5_STORE_FILE_SET_H
#define H5_STORE_FILE_SET_H

#include "base/lru.h"
#include "base/pool.h"
#include "base/room.h"
#include "io/remote.h"
#include "store/file.h"
#include "store/folder.h"
#include "store/onion.h"

#include <stdbool.h>

struct h5_file_set_options {
	/* Of the superblock of the mounted file; 0: the superblock is searched (specification II.A). */
	uint64_t offset;
	size_t block_cache; /* bytes of decoded metadata blocks */
	size_t chunk_cache; /* bytes of decoded chunks */
	size_t max_chunk;   /* bytes of a decoded chunk; a larger one is refused. 0: H5_MAX_CHUNK */
	unsigned workers;   /* threads that help to decode and encode chunks */
	enum h5_external external;
	enum h5_lock_mode lock;
	unsigned wait; /* seconds to wait at opening if another program holds the lock; 0: not at all */
	/* The file is behind a URL, and this brings it; NULL: it is a local file. Borrowed: the set closes
	 * first. */
	struct h5_remote *remote;
	/* Which revision of the mounted file is shown, if has_revision; else the newest, if it has any. */
	uint64_t revision;
	bool has_revision;
	/* With `remote`: which file of the URL's folder is mounted; NULL: that of the URL itself. Borrowed as
	 * long as the set is open. And the version that it is opened as, as h5_io_open_remote_version(). */
	const char *remote_name;
	uint64_t remote_version;
	/* The rest is for h5_open_file() and the mounted file alone. */
	bool writable;
	/* With `writable`: other programs read the file meanwhile; on a mount for reading: another program
	 * may write the file meanwhile. */
	bool swmr;
	/* With `writable`: unused space is given back, and nothing else changes. So a file may keep track of
	 * its free space. */
	bool reclaims;
	/* Writes a file that is marked as being written, or has names by which its journal would not be
	 * found. */
	bool force;
	const char *journal; /* directory of the journal; NULL: the file's own. Borrowed */
	/* Checks an object that a stale journal names, by the address of its header. NULL: none is checked.
	 */
	int (*check)(struct h5_file *file, uint64_t object);
	/* Puts an h5_io around the mounted file's and the journal's, for tests that record and fail their
	 * calls; NULL: none. */
	struct h5_io *(*wrap)(void *arg, struct h5_io *io);
	void *wrap_arg;
	/* As that of struct h5_journal_place (change/journal.h). */
	void (*recovery_progress)(void *arg, uint64_t done, uint64_t total);
	void *recovery_arg;
};

/* Makes a set around the file at the path, without opening that: h5_open_file() in change/open.h does all. */
int h5_file_set_new(const char *path, const struct h5_file_set_options *options, struct h5_file_set **set);
/* The same around the file at the absolute path, whose folder is open: a descriptor, borrowed; O_PATH is
 * enough. No name is looked up. */
int h5_file_set_new_in(int folder, const char *path, const struct h5_file_set_options *options,
		       struct h5_file_set **set);
/* The real path of the mounted file, or its URL; borrowed. NULL: bytes in memory. */
const char *h5_file_set_path(const struct h5_file_set *set);
/* *io is the mounted file, a local one, or its first piece, and becomes the whole of it; on failure it may be
 * closed, and NULL. At most once, before h5_file_set_start(). */
int h5_file_set_join(struct h5_file_set *set, struct h5_io **io);
/* Opens the mounted file, whose bytes are in io, or the revision of it that is to be shown. Takes io over,
 * also on failure. Once. */
int h5_file_set_start(struct h5_file_set *set, struct h5_io *io);
/* A set around bytes in memory, without other files; for tests and fuzzing. The bytes are borrowed. */
int h5_file_set_open_memory(const void *data, size_t size, const struct h5_file_set_options *options,
			    struct h5_file_set **set);
/* Closes all files. No block may be referenced. NULL is fine. */
void h5_file_set_close(struct h5_file_set *set);

/* The budgets of the caches are for so many sets together, of which each gets the same part; at first for
 * one.
 */
void h5_file_set_share(struct h5_file_set *set, unsigned sharers);

/* The folder of the mounted file: an O_PATH descriptor, borrowed; -1: there is none. */
int h5_file_set_directory(const struct h5_file_set *set);

/* What it was opened with. */
const struct h5_file_set_options *h5_file_set_options(const struct h5_file_set *set);

/* A set begins with what its files share. */
static inline const struct h5_file_shared *h5_file_set_shared(const struct h5_file_set *set)
{
	return (const struct h5_file_shared *)set;
}

/* The mounted file; borrowed. NULL: it is not open yet. */
static inline struct h5_file *h5_file_set_root(const struct h5_file_set *set)
{
	return h5_file_set_shared(set)->root;
}

static inline struct h5_lru *h5_file_set_blocks(const struct h5_file_set *set)
{
	return h5_file_set_shared(set)->blocks;
}

static inline struct h5_lru *h5_file_set_chunks(const struct h5_file_set *set)
{
	return h5_file_set_shared(set)->chunks;
}

static inline struct h5_pool *h5_file_set_pool(const struct h5_file_set *set)
{
	return h5_file_set_shared(set)->pool;
}

/* The memory that requests may hold: as much as both caches together, which make way for it. */
static inline struct h5_room *h5_file_set_room(const struct h5_file_set *set)
{
	return h5_file_set_shared(set)->room;
}

/* Any thread may add to them. */
static inline struct h5_statistics *h5_file_set_statistics(const struct h5_file_set *set)
{
	return h5_file_set_shared(set)->statistics;
}

size_t h5_file_set_chunk_budget(const struct h5_file_set *set);

/* Milliseconds that a request may work: `seconds`, and more for what the files store. A few bytes of a file
 * can ask for hours; but bytes that are read, and understood, take time in proportion to their number. 0:
 * any, if `seconds` is 0. */
uint64_t h5_file_set_work(struct h5_file_set *set, unsigned seconds);

/* h5_file_refresh() for all files; true: one has changed. */
bool h5_file_set_refresh(struct h5_file_set *set);

/* The HDF5 file that `from` calls `name`, opened on its first use and kept until the set closes; borrowed.
 * -ENOENT: not there; -EACCES: the rule forbids it; -EBUSY: locked by a program that writes it; else as
 * h5_file_set_start(). */
int h5_file_set_find(struct h5_file_set *set, struct h5_file *from, const char *name, struct h5_file **file);
/* The revisions of the mounted file; borrowed. NULL: it has none. */
const struct h5_onion *h5_file_set_revisions(const struct h5_file_set *set);
/* A revision of the mounted file, as a file of its own, opened on its first use and kept until the set
 * closes; borrowed. -ENOENT: there is none of that number. */
int h5_file_set_find_revision(struct h5_file_set *set, uint64_t revision, struct h5_file **file);
/* The number of the one that is the mounted file. */
uint64_t h5_file_set_shown_revision(const struct h5_file_set *set);
/* Verifies what the history says of a revision. */
int h5_file_set_check_revision(struct h5_file_set *set, uint64_t revision);

/* A raw file that `from` calls `name`, by the same rule; the caller closes it. -EPERM: an HDF5 file of the
 * set is not written as a raw one. */
int h5_file_set_open_raw(struct h5_file_set *set, struct h5_file *from, const char *name, bool writable,
			 struct h5_io **io);

#endif
