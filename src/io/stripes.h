/* A file whose bytes are spread over others in turn, a stripe to each (format/subfiling.h). */
#ifndef H5_IO_STRIPES_H
#define H5_IO_STRIPES_H

#include "io/io.h"

/* One io over the subfiles: the stripe number s is in the subfile s % count, at s / count stripes. One
 * without an io is missing: to read its bytes is -EIO. Their `start` means nothing. The identity is that of
 * `stub`. On success it takes `stub` over, and what the subfiles hold. count and stripe_size are at least 1,
 * stripe_size at most INT64_MAX. */
int h5_io_open_stripes(struct h5_io *stub, const struct h5_io_member *subfiles, unsigned count,
		       uint64_t stripe_size, struct h5_io **io);

#endif
