/* Link message. Specification IV.A.2.g. */
#ifndef H5_FORMAT_LINK_H
#define H5_FORMAT_LINK_H

#include "base/reader.h"
#include "format/object_header.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum h5_link_type { H5_LINK_HARD = 0, H5_LINK_SOFT = 1, H5_LINK_EXTERNAL = 64 }; /* 65 to 255: user-defined */

/* A link. Its texts have no NUL, and may hold any byte. */
struct h5_link {
	uint8_t type; /* enum h5_link_type, or a user-defined class */
	const char *name;
	size_t name_size;
	bool has_order;
	int64_t order;	    /* of creation */
	uint64_t address;   /* hard: of the object header */
	const char *target; /* soft: the path; external: the path in the other file */
	size_t target_size;
	const char *file; /* external */
	size_t file_size;
	/* hard: the kind of its object, if the entry of a symbol table tells it; else UNKNOWN */
	enum h5_object_kind cached_kind;
	void *owned; /* memory of the texts; NULL: they are borrowed */
};

/* The texts are borrowed from the message. */
int h5_link_decode(struct h5_reader *r, struct h5_link *link);

/* Makes a link with texts of its own. */
int h5_link_copy(const struct h5_link *from, struct h5_link *to);
void h5_link_release(struct h5_link *link); /* may run twice */

#endif
