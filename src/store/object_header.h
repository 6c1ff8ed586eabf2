/* An object header with all its continuation blocks. Specification IV.A.1. */
#ifndef H5_STORE_OBJECT_HEADER_H
#define H5_STORE_OBJECT_HEADER_H

#include "base/room.h"
#include "format/object_header.h"
#include "store/file.h"

/* A chunk of the header: chunk 0 with the prefix, or a continuation block. */
struct h5_header_chunk {
	uint64_t address, size; /* of all its bytes */
	uint8_t *bytes;		/* owned; NULL: not read yet */
	struct h5_message link; /* the continuation message that leads to it; chunk 0: no data */
};

struct h5_header {
	struct h5_object_header prefix;
	unsigned count;
	struct h5_message *messages;	/* in the order of the chunks; all but continuations and NIL
					   (specification IV.A.2.a) */
	size_t cost;			/* bytes of memory, beside this struct */
	struct h5_header_chunk *chunks; /* in the order of their continuation messages */
	unsigned chunk_count;
	bool is_fixed;		 /* not to be changed: h5_header_may_change() */
	bool is_to_mark;	 /* h5_message_is_to_mark() of some message */
	struct h5_charge charge; /* of the memory that this struct owns */
};

int h5_header_load(struct h5_file *file, uint64_t address, struct h5_header *header);
/* -ENOTSUP: a message of a type that is not known forbids to change the object; else as h5_header_load(). */
int h5_header_may_change(struct h5_file *file, uint64_t address);
void h5_header_release(struct h5_header *header); /* may run twice */

/* A reader over the messages of a chunk and the gap behind them. The chunk was read. */
struct h5_reader h5_header_chunk_messages(const struct h5_file *file, const struct h5_object_header *prefix,
					  const struct h5_header_chunk *chunk);

/* -EUCLEAN: some version of libhdf5 refuses such a header, or such a chunk, or damages it by changing it. We
 * can read it all the same. The header was loaded. */
int h5_header_check(const struct h5_file *file, const struct h5_header *header);
int h5_header_check_chunk(const struct h5_file *file, const struct h5_header *header,
			  const struct h5_header_chunk *chunk);

/* First message of the type, NULL: none. */
static inline const struct h5_message *h5_header_find(const struct h5_header *header,
						      enum h5_message_type type)
{
	for (unsigned i = 0; i < header->count; i++)
		if (header->messages[i].type == type)
			return &header->messages[i];
	return NULL;
}

/* ---- many headers ---- */

/* Bytes of the file that were read in one piece, for headers that lie side by side.
 *
 * It saves reads and nothing else: the file is read if the window lacks a header. It lives no longer than a
 * request, since it does not follow changes of the file. */
struct h5_window {
	struct h5_file *file; /* borrowed */
	uint64_t number;      /* number of the file (h5_file_number()) before the bytes were read */
	uint64_t address;
	size_t size;	/* bytes that the window holds; 0: none */
	uint8_t *bytes; /* owned */
};

void h5_window_init(struct h5_window *window, struct h5_file *file);
void h5_window_release(struct h5_window *window); /* may run twice */

/* Prepares for reading structures of about `each` bytes at n ascending addresses, n > 0. Unless the window
 * holds the first one, it is moved to that and to those close behind. */
void h5_window_move(struct h5_window *window, const uint64_t *addresses, size_t n, size_t each);

/* h5_header_load(), without reading what the window holds. */
int h5_header_load_near(const struct h5_window *window, uint64_t address, struct h5_header *header);

#endif
