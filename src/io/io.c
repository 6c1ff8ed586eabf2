#include "io/io.h"

#include "base/error.h"

#include <assert.h>
#include <string.h>

int h5_io_fail_short(uint64_t offset, size_t n)
{
	return h5_fail(-EUCLEAN, offset, "%zu bytes reach beyond the end of the file, or of a piece of it",
		       n);
}

int h5_io_read_each(struct h5_io *io, uint64_t offset, const struct iovec *buffers, unsigned count,
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

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

void h5_io_stat_join(struct h5_io_stat *st, const struct h5_io_stat *piece)
{
	st->locked &= piece->locked;
	if (is_later(&piece->mtime, &st->mtime))
		st->mtime = piece->mtime;
	if (is_later(&piece->ctime, &st->ctime))
		st->ctime = piece->ctime;
}

uint64_t h5_io_left_in_block(const struct h5_io_pieces *pieces, uint64_t offset, uint64_t block)
{
	uint64_t begin = 0, end = UINT64_MAX, left;

	if (pieces->size) {
		begin = offset - offset % pieces->size;
		end = pieces->size > UINT64_MAX - begin ? UINT64_MAX : begin + pieces->size;
	}
	for (unsigned i = 0; i < pieces->count; i++) {
		if (pieces->start[i] > offset) {
			end = pieces->start[i];
			break;
		}
		begin = pieces->start[i];
	}
	left = block - (offset - begin) % block;
	return left < end - offset ? left : end - offset;
}

bool h5_io_begins_with(struct h5_io *io, const void *bytes, size_t n)
{
	char found[8];
	size_t got;

	assert(n <= sizeof found);
	return !h5_io_read_some(io, 0, found, n, &got) && got == n && !memcmp(found, bytes, n);
}
