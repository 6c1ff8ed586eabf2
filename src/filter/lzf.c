/* Filter 32000, h5py's LZF: runs of literal bytes, and references to bytes that were decoded before.
 *
 *   000xxxxx                    x + 1 literal bytes follow
 *   nnnooooo oooooooo           n 1 to 6: copy n + 2 bytes from o + 1 bytes back
 *   111ooooo nnnnnnnn oooooooo  copy n + 9 bytes                                 */
#include "base/checked.h"
#include "base/error.h"
#include "base/reader.h"
#include "filter/filters.h"

#include <stdbool.h>
#include <string.h>

enum {
	EXPANSION_MAX = 88, /* most bytes decoded from one byte: 264 from three */
	RUN_MAX = 32,	    /* most literal bytes after one control byte */
	MATCH_MIN = 3,
	MATCH_MAX = 264,
	BACK_MAX = 8192,
	HASH_BITS = 13,
	STEP = 8, /* bytes that are copied at once */
};

/* Copies n bytes from `back` bytes before `to`; both may overlap. If there is room behind them, it writes up
 * to STEP - 1 bytes more. */
static void copy_back(uint8_t *to, size_t back, size_t n, size_t room)
{
	const uint8_t *from = to - back;
	uint8_t step[STEP];
	size_t i = 0;

	if (back >= STEP && room >= n + STEP) {
		for (; i < n; i += STEP) {
			memcpy(step, from + i, STEP);
			memcpy(to + i, step, STEP);
		}
		return;
	}
	for (; i < n; i++)
		to[i] = from[i];
}

static int expand(const uint8_t *p, const uint8_t *end, struct h5_filter_buf *out, size_t limit)
{
	while (p < end) {
		size_t control = *p++, n = control >> 5, back = (control & 31) << 8;
		size_t room = limit - out->size;
		uint8_t *to = out->data + out->size;

		if (!n) {
			n = control + 1;
			if (n > (size_t)(end - p))
				return -EUCLEAN;
			if (n > room)
				return -EOVERFLOW;
			/* A constant size, so that the compiler makes one copy of it. */
			if ((size_t)(end - p) >= RUN_MAX && room >= RUN_MAX)
				memcpy(to, p, RUN_MAX);
			else
				memcpy(to, p, n);
			out->size += n;
			p += n;
			continue;
		}
		if (n == 7 && p < end)
			n += *p++;
		if (p == end)
			return -EUCLEAN;
		back += *p++ + (size_t)1;
		n += 2;
		if (back > out->size)
			return -EUCLEAN;
		if (n > room)
			return -EOVERFLOW;
		copy_back(to, back, n, room);
		out->size += n;
	}
	return 0;
}

int h5_lzf_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in, struct h5_filter_buf *out,
		  size_t limit)
{
	int rc;

	(void)values; /* versions, and the size of the chunk */
	(void)count;
	limit = (size_t)h5_min(limit, EXPANSION_MAX * ((uint64_t)in->size + 1));
	rc = h5_filter_buf_reserve(out, limit);
	if (rc)
		return rc;
	rc = expand(in->data, in->data + in->size, out, limit);
	return rc == -EOVERFLOW ? h5_filter_too_long("lzf", limit)
	       : rc		? h5_fail(rc, H5_UNDEF, "lzf: bad data")
				: 0;
}

/* Writes runs of literal bytes. */
static void put_literals(struct h5_filter_buf *out, const uint8_t *p, size_t n)
{
	while (n) {
		size_t run = (size_t)h5_min(n, RUN_MAX);

		out->data[out->size] = (uint8_t)(run - 1);
		memcpy(out->data + out->size + 1, p, run);
		out->size += 1 + run;
		p += run;
		n -= run;
	}
}

static void put_reference(struct h5_filter_buf *out, size_t back, size_t n)
{
	uint8_t *p = out->data + out->size;

	back--;
	n -= 2;
	*p++ = (uint8_t)(h5_min(n, 7) << 5 | back >> 8);
	if (n >= 7)
		*p++ = (uint8_t)(n - 7);
	*p++ = (uint8_t)back;
	out->size = (size_t)(p - out->data);
}

static size_t match_length(const uint8_t *a, const uint8_t *b, size_t most)
{
	size_t n = 0;

	while (n < most && a[n] == b[n])
		n++;
	return n;
}

static unsigned hash(const uint8_t *p)
{
	return (uint32_t)h5_uint_from(p, MATCH_MIN) * 2654435761u >> (32 - HASH_BITS);
}

/* Greedy: takes the last position with the same hash, if the bytes match. */
static void pack(const uint8_t *data, size_t size, struct h5_filter_buf *out)
{
	uint32_t seen[1 << HASH_BITS] = {0}; /* 1 + the last position with that hash */
	size_t at = 0, literals = 0;

	while (at + MATCH_MIN <= size) {
		uint32_t *last = &seen[hash(data + at)];
		size_t back = at + 1 - *last, n = 0;

		if (*last && back <= BACK_MAX)
			n = match_length(data + at - back, data + at, (size_t)h5_min(size - at, MATCH_MAX));
		*last = (uint32_t)at + 1;
		if (n < MATCH_MIN) {
			at++;
			continue;
		}
		put_literals(out, data + literals, at - literals);
		put_reference(out, back, n);
		at += n;
		literals = at;
	}
	put_literals(out, data + literals, size - literals);
}

int h5_lzf_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
		  struct h5_filter_buf *out)
{
	int rc;

	(void)values;
	(void)count;
	if (size >= UINT32_MAX)
		return h5_fail(-ENOTSUP, H5_UNDEF, "lzf: %zu bytes in one chunk", size);
	/* The shortest match takes fewer bytes than it stands for, which makes up for the control byte of the
	 * run before it. */
	rc = h5_filter_buf_reserve(out, size + size / RUN_MAX + 1);
	if (!rc)
		pack(data, size, out);
	return rc;
}
