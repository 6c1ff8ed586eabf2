/* Links or attributes that are messages of their object's header become dense (object/named_message.h). */
#ifndef H5_OBJECT_NAMED_CONVERT_H
#define H5_OBJECT_NAMED_CONVERT_H

#include "object/named_message_write.h"

static inline enum h5_message_type h5_named_info_type(enum h5_named_kind kind)
{
	return kind == H5_NAMED_LINK ? H5_MSG_LINK_INFO : H5_MSG_ATTRIBUTE_INFO;
}

static inline enum h5_message_type h5_named_message_type(enum h5_named_kind kind)
{
	return kind == H5_NAMED_LINK ? H5_MSG_LINK : H5_MSG_ATTRIBUTE;
}

/* Writes the body of the info message, *size of the n bytes. */
int h5_named_info_encode(struct h5_file *file, enum h5_named_kind kind, const struct h5_named_info *info,
			 uint8_t *body, size_t n, size_t *size);

/* True: the object's messages should become dense with this one, which comes in the place of `old` (NULL: one
 * more comes). */
bool h5_named_wants_dense(struct h5_file *file, const struct h5_object *object, const struct h5_message *old,
			  const struct h5_new_named *message);
/* Makes the object's messages dense, in a unit: `message`, whose order of creation is `order`, comes in the
 * same step, and `old` goes (NULL: none). `info` is what the info message is to say but for the storage. */
int h5_named_make_dense(struct h5_file *file, uint64_t object, const struct h5_named_info *info,
			const struct h5_message *old, const struct h5_new_named *message, int64_t order);

#endif
