/* Filter 5, n-bit: only the significant bits of each number are kept, packed from the most significant one
 * on.
 *
 * values: their count, 1 where nothing was packed, number of elements, then a description of the element's
 * type:
 *
 *   1 number    size, byte order (0 little, 1 big endian), precision, bit offset
 *   2 array     size, description of the base type
 *   3 compound  size, number of members, for each: offset, description
 *   4 any other size; all bits are kept                                          */
#include "base/checked.h"
#include "base/error.h"
#include "filter/bits.h"
#include "filter/filters.h"

#include <string.h>

enum { NUMBER = 1, ARRAY = 2, COMPOUND = 3, OTHER = 4, DEPTH_MAX = 64 };

struct unpack {
	const uint32_t *values;
	unsigned count, at; /* the next value of the description */
	struct h5_bits bits;
};

static int bad(const char *what)
{
	return h5_fail(-EUCLEAN, H5_UNDEF, "nbit: %s", what);
}

static uint32_t next(struct unpack *u)
{
	return u->at < u->count ? u->values[u->at++] : 0;
}

static int unpack_number(struct unpack *u, uint8_t *out, uint32_t size)
{
	uint32_t big_endian = next(u), precision = next(u), offset = next(u);
	uint64_t at = (uint64_t)precision + offset;

	if (!precision || at > 8 * (uint64_t)size)
		return bad("bad precision");
	while (at > offset) {
		unsigned take = (unsigned)h5_min(at % 8 ? at % 8 : 8, at - offset);
		uint64_t byte;

		at -= take;
		byte = big_endian ? size - 1 - at / 8 : at / 8;
		out[byte] |= (uint8_t)(h5_bits_read(&u->bits, take) << (at % 8));
	}
	return 0;
}

static int unpack_type(struct unpack *u, uint8_t *out, uint64_t room, unsigned depth);

static int unpack_array(struct unpack *u, uint8_t *out, uint32_t size, unsigned depth)
{
	unsigned begin = u->at;
	uint32_t base = begin + 1 < u->count ? u->values[begin + 1] : 0;
	int rc = 0;

	/* The base type stands there once for all elements. */
	if (!base || size % base)
		return bad("bad array");
	for (uint32_t i = 0; i < size && !rc; i += base) {
		u->at = begin;
		rc = unpack_type(u, out + i, base, depth + 1);
	}
	return rc;
}

static int unpack_compound(struct unpack *u, uint8_t *out, uint32_t size, unsigned depth)
{
	uint32_t members = next(u);
	int rc = 0;

	if (!members || members > u->count)
		return bad("bad compound");
	for (uint32_t i = 0; i < members && !rc; i++) {
		uint32_t offset = next(u);

		rc = offset < size ? unpack_type(u, out + offset, size - offset, depth + 1)
				   : bad("member outside its compound");
	}
	return rc;
}

/* One element into zeros. */
static int unpack_type(struct unpack *u, uint8_t *out, uint64_t room, unsigned depth)
{
	uint32_t class = next(u), size = next(u);

	if (depth > DEPTH_MAX)
		return bad("too deep a type");
	if (!size || size > room)
		return bad("bad type");
	/* Every number takes bits: this bounds the work, whatever the description says. */
	if (u->bits.at >= u->bits.size)
		return bad("truncated");
	switch (class) {
	case NUMBER:
		return unpack_number(u, out, size);
	case ARRAY:
		return unpack_array(u, out, size, depth);
	case COMPOUND:
		return unpack_compound(u, out, size, depth);
	case OTHER:
		for (uint32_t i = 0; i < size; i++)
			out[i] = (uint8_t)h5_bits_read(&u->bits, 8);
		return 0;
	default:
		return bad("unknown type");
	}
}

static int unpack_all(struct unpack *u, struct h5_filter_buf *out, uint32_t elements, uint32_t size)
{
	int rc = 0;

	memset(out->data, 0, out->size);
	for (uint32_t i = 0; i < elements && !rc; i++) {
		u->at = 3;
		rc = unpack_type(u, out->data + (size_t)i * size, size, 0);
	}
	if (!rc && u->bits.at + (u->bits.left < 8) > u->bits.size)
		rc = bad("truncated");
	return rc;
}

int h5_nbit_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit)
{
	struct h5_filter_buf out = {0};
	struct unpack u = {.values = values, .count = count, .bits = h5_bits_init(buf->data, buf->size)};
	int rc;

	if (count < 2)
		return bad("parameters are missing");
	if (values[1]) {
		if (buf->size > limit)
			return bad("more bytes come out than may");
		return 0;
	}
	if (count < 5)
		return bad("parameters are missing");
	if ((uint64_t)values[2] * values[4] > limit)
		return bad("more bytes come out than may");
	out.size = (size_t)values[2] * values[4];
	rc = h5_filter_buf_reserve(&out, out.size);
	if (!rc)
		rc = unpack_all(&u, &out, values[2], values[4]);
	if (rc) {
		h5_filter_buf_release(&out);
		return rc;
	}
	h5_filter_buf_release(buf);
	*buf = out;
	return 0;
}
