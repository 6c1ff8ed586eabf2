/* h5fs --check: verifies all in a file that can be verified: checksums, bounds, cycles, that each index
 * agrees with what it indexes, links, attributes, variable-length values, each chunk through its filters, the
 * free space. It only reads, and follows no link into another file. */
#ifndef H5_OFFLINE_CHECK_H
#define H5_OFFLINE_CHECK_H

#include "base/error.h"
#include "base/extents.h"
#include "store/file_set.h"

struct h5_check {
	/* Something is damaged, or cannot be verified (error->code is -ENOTSUP or -EFBIG). `path`: that of
	 * the object, by links from the root group, or for structures of the file itself a word in
	 * parentheses. Both are borrowed during the call. */
	void (*found)(void *arg, const char *path, const struct h5_error *error);
	/* Called now and then: the object that is checked, and how many stored bytes of chunks were verified.
	 * NULL: it is not called. */
	void (*progress)(void *arg, const char *path, uint64_t bytes);
	void *arg;
	/* Receives the space, up to the end that the superblock states, that nothing refers to; owned by the
	 * caller, and empty before. */
	struct h5_extents unused;
	/* results */
	uint64_t objects, chunks, bytes;
	uint64_t damaged, unknown; /* findings of either kind */
	/* Counts of links that are too high, so that space stays in use: no damage. Only in files without
	 * other findings. (error->code is -EOVERFLOW.) */
	uint64_t excess;
	/* Values in the global heap that nothing refers to, and their bytes; known if all that refers to
	 * values was read. Collections that hold only these are in `unused`. */
	uint64_t lost_values, lost_bytes;
	bool values_known;
	/* False: something could not be read or verified, so more may be in use than was found, and `unused`
	 * is empty. */
	bool unused_known;
};

/* 0 also if something is damaged; else why the check could not be finished (-ENOMEM, -EINTR). */
int h5_check_file(struct h5_file *file, struct h5_check *check);

#endif
