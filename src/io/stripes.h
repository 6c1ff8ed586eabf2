/* A file whose bytes are spread over others in turn, a stripe to each (format/subfiling.h). */
#ifndef H5_IO_STRIPES_H
#define H5_IO_STRIPES_H

#include "io/io.h"

/* Makes one io of the subfiles: stripe s of the file is stripe s / count of subfile s % count. A subfile
 * without an io is missing: reading its bytes fails with -EIO. `start` of the subfiles is not used. The new
 * io has the identity of `stub`. On success it takes `stub` over, and what the subfiles hold. count and
 * stripe_size are at least 1, stripe_size at most INT64_MAX. */
int h5_io_open_stripes(struct h5_io *stub, const struct h5_io_member *subfiles, unsigned count,
		       uint64_t stripe_size, struct h5_io **io);

#endif
