/* Bytes of the file that were read in one piece, for structures that lie side by side.
 *
 * A window is only an aid: where it does not hold what is sought, or what it holds makes no sense, the file
 * is read. It belongs to one request, since nobody tells it of changes. */
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

/* To be called before structures of about `each` bytes are read, the first of them next; n > 0. Unless it
 * holds the first one, it is moved to that and those behind it that lie close; their addresses shall ascend.
 */
void h5_window_move(struct h5_window *window, const uint64_t *addresses, size_t n, size_t each);
/* What it holds from the address on, *n bytes, borrowed until it is moved; NULL: nothing, or the file has
 * changed. The window may be NULL. */
const uint8_t *h5_window_at(const struct h5_window *window, uint64_t address, size_t *n);

#endif
