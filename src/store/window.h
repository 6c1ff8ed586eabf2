/* Bytes of the file that were read in one piece, for structures that lie side by side.
 *
 * It saves reads and nothing else: the caller reads the file if the window lacks a structure, or if what it
 * holds makes no sense. It lives no longer than a request, since it does not follow changes of the file. */
#ifndef H5_STORE_WINDOW_H
#define H5_STORE_WINDOW_H

#include "store/file.h"

struct h5_window {
	struct h5_file *file; /* borrowed */
	uint64_t number;      /* of the file, before it was read */
	uint64_t address;
	size_t size;	/* bytes that it holds; 0: none */
	uint8_t *bytes; /* owned */
};

void h5_window_init(struct h5_window *window, struct h5_file *file);
void h5_window_release(struct h5_window *window); /* may run twice */

/* Prepares for reading structures of about `each` bytes at n ascending addresses, n > 0. Unless the window
 * holds the first one, it is moved to that and to those close behind. */
void h5_window_move(struct h5_window *window, const uint64_t *addresses, size_t n, size_t each);
/* The *n bytes that it holds from the address on, borrowed until it is moved; NULL: none, or the file has
 * changed since. The window may be NULL. */
const uint8_t *h5_window_at(const struct h5_window *window, uint64_t address, size_t *n);

#endif
