/* Objects: the decoded object header with its messages, those of all continuation blocks included.
 * Specification IV.A. */
#ifndef H5_OBJECT_OBJECT_H
#define H5_OBJECT_OBJECT_H

#include "format/object_header.h"
#include "object/fractal_heap.h"
#include "store/file.h"
#include "store/object_header.h"

#include <stdbool.h>
#include <stdint.h>

struct h5_datatype;

struct h5_object {
	uint64_t address;
	uint8_t version; /* of the header: 1 or 2 */
	enum h5_object_kind kind;
	uint32_t references; /* hard links */
	bool has_mtime;
	int64_t mtime; /* seconds since 1970 */
	unsigned count;
	const struct h5_message *messages;
	struct h5_header header; /* owns the messages */
};

extern const struct h5_block_type h5_object_block;

/* A reference to the decoded header, through the block cache; h5_file_put() gives it back. */
static inline int h5_object_get(struct h5_file *file, uint64_t address, struct h5_lru_entry **ref,
				const struct h5_object **object)
{
	int rc = h5_file_block(file, &h5_object_block, address, 0, NULL, ref);

	*object = rc ? NULL : h5_lru_value(*ref);
	return rc;
}

/* Reads the object without the cache, for a listing, which looks at each of many objects once. On success
 * h5_object_release(). After a failure, which may be that of the window, h5_object_get() tells what is wrong.
 */
int h5_object_read(const struct h5_window *window, uint64_t address, struct h5_object *object);
void h5_object_release(struct h5_object *object); /* may run twice */

/* The first message of the type; NULL: there is none. */
static inline const struct h5_message *h5_object_find(const struct h5_object *object,
						      enum h5_message_type type)
{
	return h5_header_find(&object->header, type);
}

/* Reads the message as it is in the header. If it may be shared, use h5_message_open(). */
static inline struct h5_reader h5_message_reader(const struct h5_file *file, const struct h5_message *message)
{
	return h5_file_reader(file, message->data, message->size, message->address);
}

/* The body of a header message. It may be shared: then it lies in another object's header, or in the file's
 * heap of shared messages. Specification IV.A.2, "Shared message". */
struct h5_message_body {
	struct h5_reader reader;    /* over the body; borrowed until release */
	struct h5_lru_entry *ref;   /* the other header, NULL: none */
	struct h5_heap_object copy; /* from a heap; {0}: none */
};

/* Opens a shared message inside another one, such as the datatype of an attribute; `r` is over its shared
 * form. */
int h5_message_open_shared(struct h5_file *file, enum h5_message_type type, struct h5_reader *r,
			   struct h5_message_body *body);
static inline int h5_message_open(struct h5_file *file, const struct h5_message *message,
				  struct h5_message_body *body)
{
	struct h5_reader r = h5_message_reader(file, message);

	if (message->flags & H5_MSG_FLAG_SHARED)
		return h5_message_open_shared(file, message->type, &r, body);
	*body = (struct h5_message_body){.reader = r};
	return 0;
}

/* May run twice. */
static inline void h5_message_release(struct h5_file *file, struct h5_message_body *body)
{
	h5_file_put(file, body->ref);
	h5_heap_object_release(&body->copy);
	*body = (struct h5_message_body){0};
}

/* The type of a committed datatype or of a dataset; h5_datatype_free(). -ENODATA: it has none. */
int h5_object_datatype(struct h5_file *file, const struct h5_object *object, struct h5_datatype **type);

#endif
