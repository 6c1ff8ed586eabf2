/* Messages of an object header that move together. */
#ifndef H5_CHANGE_OBJECT_HEADER_SPAN_H
#define H5_CHANGE_OBJECT_HEADER_SPAN_H

#include "store/object_header.h"

/* Finds the shortest row of neighbours in the chunk, the message among them, in whose place a message with at
 * least `least` bytes of data fits, since a continuation message is larger than some others. Two neighbours
 * are enough.
 *
 * *span is the message that would fit: its address and size; its data are those that are there now. -ENOTSUP:
 * there are no such neighbours. The chunk is of a version 2 header. */
int h5_header_span(struct h5_file *file, const struct h5_object_header *prefix,
		   const struct h5_header_chunk *chunk, const struct h5_message *message, unsigned least,
		   struct h5_message *span);

#endif
