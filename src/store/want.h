/* Tells a file that is far away what will be read of it. */
#ifndef H5_STORE_WANT_H
#define H5_STORE_WANT_H

#include "store/file.h"

/* Ranges of a file's addresses. All zero but the file: none. It is a hint: what there is no memory for is
 * left out. */
struct h5_want {
	struct h5_file *file;	  /* borrowed */
	struct h5_io_range *list; /* owned */
	size_t count, capacity;
};

enum {
	H5_WANT_MAX = 1 << 12, /* ranges; the rest is left out */
	/* Nodes of an index of chunks that come before they are read. They lie among the chunks that they
	 * lead to, so they come with these, and those of a whole index would be too much. */
	H5_WANT_NODES = 8,
	H5_WANT_NODES_MOST = 64, /* for a reader that has come far */
};

void h5_want_add(struct h5_want *want, uint64_t address, uint64_t n);
void h5_want_tell(const struct h5_want *want, enum h5_wanted when);
/* The same, and forgets them. */
void h5_want_send(struct h5_want *want, enum h5_wanted when);
/* The begins of two structures that are read one after the other come together. */
void h5_want_both(struct h5_file *file, uint64_t first, uint64_t second);
void h5_want_release(struct h5_want *want); /* may run twice */

#endif
