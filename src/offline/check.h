/* h5fs --check: verifies all that a file holds and that its format lets one verify: checksums, bounds,
 * cycles, that each index agrees with what it indexes, links, attributes, variable-length values, every chunk
 * through its filters, the file's own space. Reads only, and follows no link into another file. */
#ifndef H5_OFFLINE_CHECK_H
#define H5_OFFLINE_CHECK_H

#include "base/error.h"
#include "store/file_set.h"

struct h5_check {
	/* Something is damaged, or cannot be verified (error->code is -ENOTSUP, or -EFBIG). `path`: of the
	 * object, by links from the root group; of the file's own structures a word in parentheses. Both are
	 * borrowed during the call. */
	void (*found)(void *arg, const char *path, const struct h5_error *error);
	/* Now and then: where the check is, and the stored bytes of the chunks that it has verified. NULL:
	 * nobody wants to know. */
	void (*progress)(void *arg, const char *path, uint64_t bytes);
	void *arg;
	/* results */
	uint64_t objects, chunks, bytes;
	uint64_t damaged, unknown; /* findings of either kind */
};

/* 0, also where something is damaged; else why the check could not be finished (-ENOMEM, -EINTR). */
int h5_check_file(struct h5_file *file, struct h5_check *check);

#endif
