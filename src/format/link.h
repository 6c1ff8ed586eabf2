/* Link message. Specification IV.A.2.g. */
#ifndef H5_FORMAT_LINK_H
#define H5_FORMAT_LINK_H

#include "base/reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum h5_link_type { H5_LINK_HARD = 0, H5_LINK_SOFT = 1, H5_LINK_EXTERNAL = 64 }; /* 65 to 255: user-defined */

/* Texts are borrowed from the message, without NUL. */
struct h5_link_message {
	uint8_t type; /* enum h5_link_type, or a user-defined class */
	bool has_order;
	int64_t order;
	const char *name;
	size_t name_size;
	uint64_t address;   /* hard */
	const char *target; /* soft: the path; external: the path in the other file */
	size_t target_size;
	const char *file; /* external */
	size_t file_size;
};

int h5_link_decode(struct h5_reader *r, struct h5_link_message *link);

#endif
