/* Small messages about an object as a whole: modification times and reference count.
 * Specification IV.A.2.o, IV.A.2.s, IV.A.2.w. */
#ifndef H5_FORMAT_HEADER_MESSAGES_H
#define H5_FORMAT_HEADER_MESSAGES_H

#include "base/reader.h"

#include <stdint.h>

/* Seconds since 1970. */
int h5_mtime_decode(struct h5_reader *r, int64_t *seconds);
int h5_mtime_old_decode(struct h5_reader *r, int64_t *seconds);

int h5_reference_count_decode(struct h5_reader *r, uint32_t *references);

#endif
