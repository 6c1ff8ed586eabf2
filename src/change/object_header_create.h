/* Makes object headers, and gives up their space. */
#ifndef H5_CHANGE_OBJECT_HEADER_CREATE_H
#define H5_CHANGE_OBJECT_HEADER_CREATE_H

#include "change/object_header_insert.h"

struct h5_new_header {
	bool times;    /* the header has times, all of which are `time` */
	uint32_t time; /* seconds since 1970 */
	/* Attributes know their order of creation; dense storage has an index by it. The attribute info
	 * message, which comes with the first attribute, says the same, or libhdf5 refuses the object. */
	bool tracks_order, indexes_order;
	size_t room; /* bytes for later messages; fewer if the header would be larger than a page */
};

/* Makes a version 2 header with the messages, in their order, in new space. Nothing refers to it yet. As long
 * as it fits into one page it is in one piece; else its largest messages are in blocks of their own, so that
 * later changes of the others are cells.
 *
 * -E2BIG: a message of over 65,535 bytes. On failure nothing has changed. */
int h5_header_create(struct h5_file *file, const struct h5_new_message *messages, size_t count,
		     const struct h5_new_header *how, uint64_t *address);

#endif
