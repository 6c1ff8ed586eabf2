/* Small messages about an object as a whole: modification times, reference count, properties of a group.
 * Specification IV.A.2.k, IV.A.2.o, IV.A.2.s, IV.A.2.w. */
#ifndef H5_FORMAT_HEADER_MESSAGES_H
#define H5_FORMAT_HEADER_MESSAGES_H

#include "base/reader.h"
#include "base/writer.h"

#include <stdbool.h>
#include <stdint.h>

/* Seconds since 1970. */
int h5_mtime_decode(struct h5_reader *r, int64_t *seconds);
int h5_mtime_old_decode(struct h5_reader *r, int64_t *seconds);

enum { H5_REFERENCE_COUNT_SIZE = 5 };

int h5_reference_count_decode(struct h5_reader *r, uint32_t *references);
void h5_reference_count_encode(struct h5_writer *w, uint32_t references);

/* A group's own numbers, instead of the defaults. */
struct h5_group_info {
	bool has_limits;		 /* the next two are stored; else they are 8 and 6 */
	uint16_t max_compact, min_dense; /* links: most as messages, least in dense storage */
	bool has_estimates;		 /* the next two are stored; else they are 4 and 8 */
	uint16_t entries, name_size;	 /* expected: number of links, bytes of a name */
};

enum { H5_GROUP_INFO_MAX = 10 }; /* most bytes of the message */

int h5_group_info_decode(struct h5_reader *r, struct h5_group_info *info);
void h5_group_info_encode(struct h5_writer *w, const struct h5_group_info *info);

#endif
