/* Makes, changes and removes attributes of an object (object/named_message_write.h, whose errors these
 * return). Specification IV.A.2.m. */
#ifndef H5_OBJECT_ATTRIBUTE_WRITE_H
#define H5_OBJECT_ATTRIBUTE_WRITE_H

#include "object/attribute.h"

/* Makes an attribute. `data`: all its elements. -EEXIST: there is one of that name. */
int h5_attribute_create(struct h5_file *file, uint64_t object, const char *name,
			const struct h5_datatype *type, const struct h5_dataspace *space, const void *data);
/* Gives the attribute new elements, n bytes in all; its type and shape stay. -ENODATA: there is no attribute
 * of that name. -EINVAL: it has another number of bytes. */
int h5_attribute_update(struct h5_file *file, uint64_t object, const char *name, const void *data, size_t n);
/* Gives the attribute another type and shape, too: all at once. -ENODATA: there is no attribute of that name.
 */
int h5_attribute_replace(struct h5_file *file, uint64_t object, const char *name,
			 const struct h5_datatype *type, const struct h5_dataspace *space, const void *data);
/* -ENODATA: there is no attribute of that name. The shared messages and committed datatypes that it used
 * are counted less. */
int h5_attribute_remove(struct h5_file *file, uint64_t object, const char *name);

#endif
