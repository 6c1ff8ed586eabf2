/* Between file.c and what opens and changes a file. */
#ifndef H5_STORE_FILE_PRIVATE_H
#define H5_STORE_FILE_PRIVATE_H

#include "store/file.h"

#include <stdatomic.h>

struct h5_statistics;

/* What a file has from the set that it belongs to. */
struct h5_file_shared {
	struct h5_file_set *set;
	struct h5_lru *blocks;
	struct h5_statistics *statistics;
	atomic_uint_fast64_t *numbers; /* of the files, and what becomes of them: 0, 1, ... */
	bool follows; /* a writer without a lock may add to the file while it is read (swmr) */
};

/* A file whose superblock is in io, at the offset if that is not 0. Takes io over, also on failure; `shared`
 * is borrowed. */
int h5_file_new(const struct h5_file_shared *shared, struct h5_io *io, uint64_t offset,
		struct h5_file **file);
/* The file is read through `io` from now on, which has taken the io before over, also if this fails. `what`:
 * a word for what it is then, since it cannot be changed; borrowed, for ever. */
int h5_file_read_through(struct h5_file *file, struct h5_io *io, const char *what);
/* For h5_file_missing(). Takes the text over. */
void h5_file_set_missing(struct h5_file *file, char *missing);

/* What the file's own reads go to: offsets are absolute. Borrowed. */
struct h5_io *h5_file_io(const struct h5_file *file);
/* The file is read through `changes` from now on, which has taken the io before over, and is changed by its
 * owner alone. Once. */
void h5_file_lay_over(struct h5_file *file, struct h5_io *changes);
/* What was laid over like that; NULL: nothing. Borrowed. */
struct h5_io *h5_file_changes(const struct h5_file *file);
/* The file reaches at least up to this address now. */
void h5_file_extend(struct h5_file *file, uint64_t end);
/* Finds nothing again that was decoded before. */
void h5_file_renumber(struct h5_file *file);
/* -ENOTSUP: a file that no changes are made to: in pieces, with a cache image. */
int h5_file_can_change(const struct h5_file *file);

#endif
