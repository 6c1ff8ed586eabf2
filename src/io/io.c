#include "io/io.h"

#include "base/error.h"

int h5_io_read(struct h5_io *io, uint64_t offset, void *buf, size_t n)
{
	size_t got;
	int rc = h5_io_read_some(io, offset, buf, n, &got);

	if (rc || got == n)
		return rc;
	return h5_fail(-EUCLEAN, offset, "%zu bytes reach beyond the end of the file, or of a piece of it",
		       n);
}
