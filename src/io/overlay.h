/* Patches, and an io that reads like another one with patches laid over it: the cells of the next commit, a
 * journal that may not be replayed into the file, the image of a metadata cache.
 *
 * There is no lock. Either the patches stay as they are after opening, or the writer that changes them keeps
 * all readers out meanwhile (doc/locking.md, "A mount for writing"). */
#ifndef H5_IO_OVERLAY_H
#define H5_IO_OVERLAY_H

#include "io/io.h"

/* The bytes that stand at an offset. offset + n does not overflow. */
struct h5_patch {
	uint64_t offset;
	size_t n;	      /* > 0 */
	const uint8_t *bytes; /* n of them; borrowed */
};

/* By ascending offset, without overlaps. All zero: none. */
struct h5_patches {
	struct h5_patch **list; /* the array is owned, the patches are not */
	size_t count, capacity;
};

void h5_patches_release(struct h5_patches *patches); /* may run twice */
/* Makes room for n more. */
int h5_patches_reserve(struct h5_patches *patches, size_t n);
/* Puts the patch before the i-th one. There must be room, and it must belong there. */
void h5_patches_insert(struct h5_patches *patches, size_t i, struct h5_patch *patch);
/* Takes n patches out of the list, from the i-th one on. */
void h5_patches_remove(struct h5_patches *patches, size_t i, size_t n);
/* Index of the first patch that ends behind the offset; count: none. */
size_t h5_patches_find(const struct h5_patches *patches, uint64_t offset);
/* True: one patch has all n bytes at the offset. */
bool h5_patches_cover(const struct h5_patches *patches, uint64_t offset, size_t n);
/* Lays the patches over n bytes that were read from the offset. */
void h5_patches_apply(const struct h5_patches *patches, uint64_t offset, void *buf, size_t n);

/* What an io with patches embeds as its first member, in place of struct h5_io. Its table of operations has
 * the functions below, and a `close` of its own that calls h5_overlay_release(). */
struct h5_overlay {
	struct h5_io io;
	struct h5_io *beneath; /* owned */
	struct h5_patches patches;
	bool endless; /* reads behind the end of the io beneath give zeros: these bytes are yet to be written
		       */
};

int h5_overlay_read(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got);
int h5_overlay_readv(struct h5_io *io, uint64_t offset, const struct iovec *buffers, unsigned count,
		     size_t *got);
uint64_t h5_overlay_want(struct h5_io *io, const struct h5_io_range *ranges, size_t count,
			 enum h5_wanted when);
int h5_overlay_stat(struct h5_io *io, struct h5_io_stat *st);
int h5_overlay_unlock(struct h5_io *io);
/* Closes the io beneath, and forgets the patches. */
void h5_overlay_release(struct h5_overlay *overlay);

#endif
