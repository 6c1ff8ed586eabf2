/* Growing byte buffer with a sticky error, for text and other output of unknown length.
 *
 * Its memory is charged to the request. An append that fails (no memory, or more than `limit` bytes) sets
 * `err`, and later ones do nothing. So callers check `err` once at the end, or now and then to stop early. */
#ifndef H5_BASE_BUF_H
#define H5_BASE_BUF_H

#include "base/room.h"

#include <stddef.h>
#include <stdint.h>

struct h5_buf {
	char *data; /* not NUL-terminated */
	size_t size, capacity;
	size_t limit; /* bytes that it may hold */
	int err;      /* 0; -ENOMEM; -EFBIG: over the budget of base/room.h; -E2BIG: over `limit` */
	struct h5_charge charge; /* of the capacity */
};

void h5_buf_init(struct h5_buf *b, size_t limit);
void h5_buf_release(struct h5_buf *b); /* may run twice */

/* Gives the bytes to the caller, who frees them. They are charged no more; the buffer is empty. */
char *h5_buf_take(struct h5_buf *b);

void h5_buf_add(struct h5_buf *b, const void *data, size_t n);
void h5_buf_byte(struct h5_buf *b, char c);
void h5_buf_text(struct h5_buf *b, const char *text);
void h5_buf_printf(struct h5_buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
