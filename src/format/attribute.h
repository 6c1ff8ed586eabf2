/* Attribute message, versions 1 to 3. Specification IV.A.2.m. */
#ifndef H5_FORMAT_ATTRIBUTE_H
#define H5_FORMAT_ATTRIBUTE_H

#include "base/reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The parts of a message. If only the name is whole, the readers of the other parts have their error set.
 */
struct h5_attribute_message {
	const char *name; /* borrowed from the message, without NUL */
	size_t name_size;
	bool type_shared, space_shared; /* the part holds a shared message */
	struct h5_reader type, space;
	struct h5_reader data; /* and whatever follows */
};

/* Fails only if the name cannot be read. */
int h5_attribute_decode(struct h5_reader *r, struct h5_attribute_message *attribute);

#endif
