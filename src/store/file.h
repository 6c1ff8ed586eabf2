/* The open HDF5 file: superblock, bounds, and the cache of decoded blocks. file_open.h opens it.
 *
 * Addresses are those of the format: relative to the base address. */
#ifndef H5_STORE_FILE_H
#define H5_STORE_FILE_H

#include "base/lru.h"
#include "base/reader.h"
#include "format/superblock.h"
#include "io/io.h"

#include <stdatomic.h>
#include <stdbool.h>

struct h5_file;
struct h5_file_set;
struct h5_pool;
struct h5_room;
struct h5_statistics;

/* The largest decoded chunk, in bytes: by default, and as an option. A filter has all of it in memory. */
#define H5_MAX_CHUNK	   ((size_t)256 << 20)
#define H5_MAX_CHUNK_LIMIT ((size_t)1 << 30)

/* What the files of a set share. All is borrowed, and stays as it is while a file is open. */
struct h5_file_shared {
	struct h5_file_set *set;
	struct h5_file *root; /* the mounted file */
	struct h5_lru *blocks, *chunks;
	struct h5_pool *pool;
	struct h5_room *room;
	struct h5_statistics *statistics;
	size_t max_chunk;		/* bytes of a decoded chunk; a larger one is refused */
	atomic_uint_fast64_t *numbers;	/* the next one for h5_file_number() */
	struct h5_followers *followers; /* NULL: no file is written */
	bool follows; /* another program may add to the files meanwhile, without a lock (swmr) */
};

/* A kind of decoded blocks: one static const for each, beside its loader. */
struct h5_block_type {
	struct h5_lru_kind kind; /* name as in the specification, release for the decoded value */
	/* Reads and decodes the block at the address. `arg` comes from the caller of h5_file_block(). *value
	 * is the cache's then; *cost: its bytes of memory. */
	int (*load)(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost);
};

void h5_file_close(struct h5_file *file); /* NULL is fine */

/* True: all addresses are those of one file: it is not in pieces, and has no cache image. */
bool h5_file_is_plain(const struct h5_file *file);
/* True: it is in several pieces (family or multi driver), all of which are there, and has no cache image. */
bool h5_file_is_family(const struct h5_file *file);
const struct h5_superblock *h5_file_superblock(const struct h5_file *file);
const struct h5_file_shared *h5_file_shared(const struct h5_file *file);
static inline struct h5_file_set *h5_file_set_of(const struct h5_file *file)
{
	return h5_file_shared(file)->set;
}
/* Stands for the file in cache keys. It changes if the file may have changed as a whole. */
uint64_t h5_file_number(const struct h5_file *file);
int h5_file_stat(struct h5_file *file, struct h5_io_stat *st);
/* Device and inode, of its first piece; those of a file in memory are 0. */
void h5_file_identity(const struct h5_file *file, uint64_t *device, uint64_t *inode);
/* For a file that other programs may write meanwhile. True: its size or mtime has changed, or the mtime was
 * too new to tell when it was last looked at; all that is cached of the file is forgotten. */
bool h5_file_refresh(struct h5_file *file);
/* A range of addresses with an end of its own: the whole file, or one for each member of the multi driver. */
struct h5_file_area {
	uint64_t start, end; /* as the file states them, or as a writer has moved the end since */
	bool raw;	     /* raw data go there */
	unsigned member;     /* its number in the driver information */
};

enum {
	H5_FILE_AREAS_MAX = H5_IO_MEMBERS_MAX,
	/* Bytes that a member of the multi driver has at least, so that it has an end: libhdf5 reads a global
	 * heap only where raw data could be as well. */
	H5_FILE_AREA_LEAST = 8,
};

/* Ascending; returns how many there are. Metadata go to the first. The superblock states an end. */
unsigned h5_file_areas(const struct h5_file *file, struct h5_file_area areas[H5_FILE_AREAS_MAX]);
/* Bytes of the file from its base address on, in all its pieces: a bound for any walk over its blocks. */
uint64_t h5_file_size(const struct h5_file *file);
/* Where its addresses end: the same as its size, unless there are gaps between its pieces. */
uint64_t h5_file_end(const struct h5_file *file);
/* Which pieces of the file are not there, in words; NULL: none. Borrowed. */
const char *h5_file_missing(const struct h5_file *file);

/* Reads all n bytes at the address; -EUCLEAN: the file ends before. */
int h5_file_read(struct h5_file *file, uint64_t address, void *buf, size_t n);
/* The same, into several buffers one after the other, at most H5_IO_BUFFERS; they hold n bytes together. */
int h5_file_readv(struct h5_file *file, uint64_t address, const struct iovec *buffers, unsigned count,
		  size_t n);
/* Reads as many of `n` bytes as lie inside the file: *got of them. For structures of unknown length. */
int h5_file_read_some(struct h5_file *file, uint64_t address, void *buf, size_t n, size_t *got);
/* Bytes from the address on that wait in memory for a commit, as far as they were changed together. To read
 * no more than these takes no I/O. */
size_t h5_file_pending(const struct h5_file *file, uint64_t address);

/* These ranges of addresses, in ascending order, will be read (h5_io_want()): it may make them come. What
 * lies beyond the end of the file is left out. */
void h5_file_want(struct h5_file *file, struct h5_io_range *ranges, size_t count, enum h5_wanted when);
/* True: the file is far away, so h5_file_want() is worth the work. */
bool h5_file_is_far(const struct h5_file *file);
/* Bytes that one reader in order may want at once; 0: the file is not far away. */
uint64_t h5_file_window(const struct h5_file *file);

/* A reader with this file's sizes over a block that was read from `address`. */
struct h5_reader h5_file_reader(const struct h5_file *file, const void *data, size_t n, uint64_t address);

/* ---- the cache of decoded blocks ---- */

/* A reference to the decoded block, from the cache or loaded; h5_file_put() gives it back.
 *
 * `variant` must hold whatever the decoded form depends on beside the address (the rank of a chunk B-tree,
 * the address of the header that describes a data block), or the caller must check the value's shape: a
 * hostile file may point at one block from two places. */
int h5_file_block(struct h5_file *file, const struct h5_block_type *type, uint64_t address, uint64_t variant,
		  const void *arg, struct h5_lru_entry **ref);
/* Gives the cache the decoded block that a change has just written and forgotten (h5_tx_forget()), so that it
 * is not read again. The cache owns the value from now on. */
void h5_file_add_block(struct h5_file *file, const struct h5_block_type *type, uint64_t address,
		       uint64_t variant, void *value, size_t cost);
/* ref NULL is fine. */
void h5_file_put(struct h5_file *file, struct h5_lru_entry *ref);

#endif
