#include "io/stripes.h"

#include "base/checked.h"
#include "base/error.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct stripes {
	struct h5_io io;
	struct h5_io *stub;   /* owned; the identity is its */
	uint64_t stripe_size; /* INT64_MAX if there is one subfile: it is the whole file */
	unsigned count;
	struct h5_io_member list[];
};

/* The buffers for bytes that follow each other in one subfile. */
struct batch {
	const struct h5_io_member *subfile;
	uint64_t at; /* of the first byte, in the subfile */
	struct iovec buffers[H5_IO_BUFFERS];
	unsigned count;
};

/* Reads into the buffers. *end becomes the place of the first byte that the subfile does not have, if it ends
 * before and that is less. */
static int read_batch(struct batch *batch, const char *begin, size_t *end)
{
	size_t got = 0;
	int rc = 0;

	if (batch->count)
		rc = h5_io_readv(batch->subfile->io, batch->at, batch->buffers, batch->count, &got);
	if (rc)
		return h5_fail_in(rc, "%s", batch->subfile->name);
	for (unsigned i = 0; i < batch->count; i++) {
		const struct iovec *buffer = &batch->buffers[i];

		if (got < buffer->iov_len) {
			size_t place = (size_t)((const char *)buffer->iov_base - begin) + got;

			*end = (size_t)h5_min(*end, place);
			break;
		}
		got -= buffer->iov_len;
	}
	batch->count = 0;
	return rc;
}

/* Reads the bytes of the range whose stripes are in the same subfile as the one at `first`, a place in the
 * range. They lie one after the other in the subfile, and apart in `buf`. */
static int read_subfile(const struct stripes *s, uint64_t offset, char *buf, size_t n, size_t first,
			size_t *end)
{
	struct batch batch = {.subfile = &s->list[(offset + first) / s->stripe_size % s->count]};
	uint64_t step; /* bytes of the other subfiles between two stripes */
	int rc = 0;

	if (!h5_mul(s->count - 1, s->stripe_size, &step))
		step = UINT64_MAX;
	if (!batch.subfile->io)
		return h5_fail(-EIO, offset + first, "%s is missing", batch.subfile->name);
	for (size_t place = first; place < n && !rc;) {
		uint64_t at = offset + place, within = at % s->stripe_size;
		size_t part = (size_t)h5_min(n - place, s->stripe_size - within);

		if (!batch.count)
			batch.at = at / s->stripe_size / s->count * s->stripe_size + within;
		batch.buffers[batch.count++] = (struct iovec){buf + place, part};
		if (batch.count == H5_IO_BUFFERS)
			rc = read_batch(&batch, buf, end);
		place += part;
		place = step < n - place ? place + (size_t)step : n;
	}
	return rc ? rc : read_batch(&batch, buf, end);
}

static int stripes_read(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	const struct stripes *s = (const struct stripes *)io;
	size_t place = 0;
	int rc = 0;

	*got = 0;
	if (offset > INT64_MAX)
		return 0;
	n = (size_t)h5_min(n, INT64_MAX - offset);
	*got = n;
	/* Begins in each subfile with its first stripe of the range. */
	for (unsigned i = 0; i < s->count && place < n && !rc; i++) {
		rc = read_subfile(s, offset, buf, n, place, got);
		place += (size_t)h5_min(n - place, s->stripe_size - (offset + place) % s->stripe_size);
	}
	return rc;
}

/* The end of the whole file's addresses if the subfile of this number has `size` bytes; at most INT64_MAX. */
static uint64_t end_by(const struct stripes *s, unsigned i, uint64_t size)
{
	uint64_t row, end;

	if (!size)
		return 0;
	row = (size - 1) / s->stripe_size;
	if (!h5_mul(row, s->count, &end) || !h5_add(end, i, &end) || !h5_mul(end, s->stripe_size, &end) ||
	    !h5_add(end, (size - 1) % s->stripe_size + 1, &end))
		return INT64_MAX;
	return h5_min(end, INT64_MAX);
}

static int stripes_stat(struct h5_io *io, struct h5_io_stat *st)
{
	const struct stripes *s = (const struct stripes *)io;
	int rc = h5_io_stat(s->stub, st);

	if (rc)
		return rc;
	st->stored = st->end = 0;
	for (unsigned i = 0; i < s->count; i++) {
		struct h5_io_stat one;

		if (!s->list[i].io)
			continue;
		rc = h5_io_stat(s->list[i].io, &one);
		if (rc)
			return rc;
		st->end = h5_max(st->end, end_by(s, i, one.size));
		if (!h5_add(st->stored, one.stored, &st->stored))
			st->stored = INT64_MAX;
		h5_io_stat_join(st, &one);
	}
	st->size = st->end;
	st->stored = h5_min(st->stored, st->size);
	return 0;
}

static void stripes_close(struct h5_io *io)
{
	struct stripes *s = (struct stripes *)io;

	h5_io_members_release(s->list, s->count);
	h5_io_close(s->stub);
	free(s);
}

static const struct h5_io_ops stripes_ops = {
	.read = stripes_read, .stat = stripes_stat, .close = stripes_close};

int h5_io_open_stripes(struct h5_io *stub, const struct h5_io_member *subfiles, unsigned count,
		       uint64_t stripe_size, struct h5_io **io)
{
	struct stripes *s = calloc(1, sizeof *s + count * sizeof *subfiles);

	assert(count && stripe_size && stripe_size <= INT64_MAX);
	if (!s)
		return -ENOMEM;
	s->io.ops = &stripes_ops;
	s->stub = stub;
	s->stripe_size = count > 1 ? stripe_size : INT64_MAX;
	s->count = count;
	memcpy(s->list, subfiles, count * sizeof *subfiles);
	*io = &s->io;
	return 0;
}
