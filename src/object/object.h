/* Objects: the decoded object header with its messages, those of all continuation blocks included.
 * Specification IV.A. */
#ifndef H5_OBJECT_OBJECT_H
#define H5_OBJECT_OBJECT_H

#include "format/object_header.h"
#include "store/file.h"
#include "store/object_header.h"

#include <stdbool.h>
#include <stdint.h>

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

/* A reference to the decoded header, through the block cache; h5_file_put() gives it back. */
int h5_object_get(struct h5_file *file, uint64_t address, struct h5_lru_entry **ref,
		  const struct h5_object **object);

/* Reads the object without the cache, for a listing, which looks at each of many objects once. On success
 * h5_object_release(). After a failure, which may be that of the window, h5_object_get() tells what is wrong.
 */
int h5_object_read(const struct h5_window *window, uint64_t address, struct h5_object *object);
void h5_object_release(struct h5_object *object); /* may run twice */

/* The first message of the type; NULL: there is none. */
const struct h5_message *h5_object_find(const struct h5_object *object, enum h5_message_type type);
/* Reads the message as it is in the header. If it may be shared, use object/message.h. */
static inline struct h5_reader h5_message_reader(const struct h5_file *file, const struct h5_message *message)
{
	return h5_file_reader(file, message->data, message->size, message->address);
}

#endif
