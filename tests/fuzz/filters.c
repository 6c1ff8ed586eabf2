/* One target for each filter. An input is a byte that tells whether to decode or to encode and decode again,
 * the number of client data values and these, how many bytes may come out (3 bytes), and the bytes that go
 * in. */
#include "base/error.h"
#include "filter/filter.h"
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES_MAX = 64, LIMIT_MAX = 1 << 22 };

/* A buffer with no room behind its bytes, for AddressSanitizer to see who looks there. */
static struct h5_filter_buf exact(const uint8_t *data, size_t n)
{
	struct h5_filter_buf buf = {.data = malloc(n ? n : 1), .size = n, .capacity = n};

	FUZZ_HOLDS(buf.data);
	if (n)
		memcpy(buf.data, data, n);
	return buf;
}

/* 0, and *in is the decoded bytes; else it is empty. */
static int decode(const struct h5_filter_ops *filter, const uint32_t *values, unsigned count,
		  struct h5_filter_buf *in, size_t limit)
{
	bool in_place = filter->decodes_in_place && filter->decodes_in_place(values, count);
	struct h5_filter_buf out = {0};
	size_t before = in->size;
	int rc = filter->decode(values, count, in, &out, limit);

	if (!rc && in_place) {
		FUZZ_HOLDS(in->size <= before && in->size <= limit && !out.data);
	} else {
		h5_filter_buf_release(in);
		*in = out;
		FUZZ_HOLDS(rc || (out.size <= limit && out.size <= out.capacity));
		FUZZ_HOLDS(out.capacity <= 2 * limit + 64);
	}
	fuzz_touch(in->data, in->size);
	if (rc)
		h5_filter_buf_release(in);
	return rc;
}

static void encode_and_decode(const struct h5_filter_ops *filter, const uint32_t *values, unsigned count,
			      const uint8_t *data, size_t n)
{
	struct h5_filter_buf out = {0}, chunk;

	if (!filter->encode(values, count, data, n, &out)) {
		chunk = exact(out.data, out.size);
		FUZZ_HOLDS(!decode(filter, values, count, &chunk, n));
		FUZZ_HOLDS(chunk.size == n);
		FUZZ_HOLDS(fuzz_is_lossy(filter) || !memcmp(chunk.data, data, n));
		h5_filter_buf_release(&chunk);
	}
	h5_filter_buf_release(&out);
}

static void run_filter(const void *arg, const uint8_t *data, size_t size)
{
	const struct h5_filter_ops *filter = arg;
	struct h5_reader r = h5_reader_init(data, size, H5_UNDEF, 8, 8);
	bool encodes = h5_read_u8(&r) % 2;
	unsigned count = h5_read_u8(&r) % (VALUES_MAX + 1);
	uint32_t *values = malloc((count + 1) * sizeof *values);
	struct h5_filter_buf in;
	size_t limit;

	FUZZ_HOLDS(values);
	for (unsigned i = 0; i < count; i++)
		values[i] = h5_read_u32(&r);
	limit = (size_t)h5_read_uint(&r, 3) % LIMIT_MAX;
	if (encodes && filter->encode) {
		/* Without bytes it would only be asked whether the values will do. */
		if (h5_reader_left(&r))
			encode_and_decode(filter, values, count, r.p, h5_reader_left(&r));
	} else {
		in = exact(r.p, h5_reader_left(&r));
		decode(filter, values, count, &in, limit);
		h5_filter_buf_release(&in);
	}
	free(values);
}

bool fuzz_filter_at(unsigned n, struct fuzz_target *target)
{
	/* Those that are built in. */
	for (const struct h5_filter_ops *ops = h5_filters; ops->name; ops++) {
		if (!ops->decode || n--)
			continue;
		snprintf(target->name, sizeof target->name, "filter_%s", ops->name);
		target->run = run_filter;
		target->arg = ops;
		return true;
	}
	return false;
}
