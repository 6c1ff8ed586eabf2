/* Objects: a decoded object header with all its continuation blocks, and its messages. Specification IV.A. */
#ifndef H5_OBJECT_OBJECT_H
#define H5_OBJECT_OBJECT_H

#include "format/object_header.h"
#include "store/file.h"
#include "store/object_header.h"

#include <stdbool.h>
#include <stdint.h>

/* What an object is, from its messages as libhdf5 tells it: symbol table or link info: group; dataspace and
 * datatype: dataset; datatype alone: committed datatype. */
enum h5_object_kind { H5_OBJECT_UNKNOWN, H5_OBJECT_GROUP, H5_OBJECT_DATASET, H5_OBJECT_DATATYPE };

struct h5_object {
	uint64_t address;
	uint8_t version; /* of the header: 1 or 2 */
	enum h5_object_kind kind;
	uint32_t references; /* hard links */
	bool has_mtime;
	int64_t mtime; /* seconds since 1970 */
	unsigned count;
	const struct h5_message *messages;
	struct h5_header header; /* what owns the messages */
};

/* A reference to the decoded header, through the block cache; h5_file_put() gives it back. */
int h5_object_get(struct h5_file *file, uint64_t address, struct h5_lru_entry **ref,
		  const struct h5_object **object);

/* The object without the cache, for those who look at many, once each: a listing. On success the caller's,
 * h5_object_release(). A failure may be the window's fault: h5_object_get() tells what is wrong. */
int h5_object_read(const struct h5_window *window, uint64_t address, struct h5_object *object);
void h5_object_release(struct h5_object *object); /* may run twice */

/* First message of the type, NULL: none. */
const struct h5_message *h5_object_find(const struct h5_object *object, enum h5_message_type type);
/* Over the message as the header holds it; object/message.h resolves shared ones. */
static inline struct h5_reader h5_message_reader(const struct h5_file *file, const struct h5_message *message)
{
	return h5_file_reader(file, message->data, message->size, message->address);
}

#endif
