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

static int read_one_by_one(struct h5_io *io, uint64_t offset, const struct iovec *buffers, unsigned count,
			   size_t *got)
{
	*got = 0;
	for (unsigned i = 0; i < count; i++) {
		size_t part;
		int rc = h5_io_read_some(io, offset + *got, buffers[i].iov_base, buffers[i].iov_len, &part);

		if (rc)
			return rc;
		*got += part;
		if (part < buffers[i].iov_len)
			break;
	}
	return 0;
}

int h5_io_readv(struct h5_io *io, uint64_t offset, const struct iovec *buffers, unsigned count, size_t *got)
{
	if (count == 1)
		return h5_io_read_some(io, offset, buffers->iov_base, buffers->iov_len, got);
	return io->ops->readv ? io->ops->readv(io, offset, buffers, count, got)
			      : read_one_by_one(io, offset, buffers, count, got);
}
