/* Filter 5, n-bit: only the significant bits of each number are stored, the most significant one first.
 *
 * values: their count, 1 if nothing was packed, number of elements, then a description of the element's
 * type:
 *
 *   1 number    size, byte order (0 little, 1 big endian), precision, bit offset
 *   2 array     size, description of the base type
 *   3 compound  size, number of members, for each: offset, description
 *   4 any other size; all bits are kept                                          */
#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "filter/bits.h"
#include "filter/filters.h"

#include <stdbool.h>
#include <string.h>

enum { V_UNPACKED = 1, V_ELEMENTS, V_CLASS, V_SIZE };
enum { NUMBER = 1, ARRAY = 2, COMPOUND = 3, OTHER = 4, DEPTH_MAX = 64, ASK_AFTER = 1 << 16 };

/* A walk along the elements that packs their bits from `in`, or unpacks them into `out`. */
struct walk {
	const uint32_t *values;
	unsigned count, at; /* the next value of the description */
	bool is_lost;	    /* libhdf5 would continue at another value */
	const uint8_t *in;  /* the elements; NULL: decoding */
	struct h5_bits_writer packed;
	uint8_t *out; /* zeros before */
	struct h5_bits bits;
	unsigned types; /* walked so far */
};

static int bad(const char *what)
{
	return h5_fail(-EUCLEAN, H5_UNDEF, "nbit: %s", what);
}

static uint32_t next(struct walk *w)
{
	return w->at < w->count ? w->values[w->at++] : 0;
}

/* Packs or unpacks n bits of one byte of the elements, from bit `shift` on. */
static void move(struct walk *w, uint64_t byte, unsigned shift, unsigned n)
{
	if (w->in)
		h5_bits_write(&w->packed, w->in[byte] >> shift, n);
	else
		w->out[byte] |= (uint8_t)(h5_bits_read(&w->bits, n) << shift);
}

static bool is_at_end(const struct walk *w)
{
	return w->in ? w->packed.at >= w->packed.size : w->bits.at >= w->bits.size;
}

/* True: it has read or written beyond the packed bits. */
static bool is_beyond_end(const struct walk *w)
{
	return w->in ? w->packed.at + (w->packed.left < 8) > w->packed.size
		     : w->bits.at + (w->bits.left < 8) > w->bits.size;
}

static int move_number(struct walk *w, uint64_t element, uint32_t size)
{
	uint32_t big_endian = next(w), precision = next(w), offset = next(w);
	uint64_t at = (uint64_t)precision + offset;

	if (!precision || at > 8 * (uint64_t)size)
		return bad("bad precision");
	while (at > offset) {
		unsigned take = (unsigned)h5_min(at % 8 ? at % 8 : 8, at - offset);

		at -= take;
		move(w, element + (big_endian ? size - 1 - at / 8 : at / 8), at % 8, take);
	}
	return 0;
}

static int move_type(struct walk *w, uint64_t element, uint64_t room, unsigned depth);

static int move_array(struct walk *w, uint64_t element, uint32_t size, unsigned depth)
{
	unsigned begin = w->at;
	uint32_t base = begin + 1 < w->count ? w->values[begin + 1] : 0;
	int rc = 0;

	/* The base type is described once for all elements. */
	if (!base || size % base)
		return bad("bad array");
	for (uint32_t i = 0; i < size && !rc; i += base) {
		w->at = begin;
		w->is_lost = false;
		rc = move_type(w, element + i, base, depth + 1);
	}
	/* libhdf5 does not pass over such a description. */
	w->is_lost = w->values[begin] == ARRAY || w->values[begin] == COMPOUND;
	return rc;
}

static int move_compound(struct walk *w, uint64_t element, uint32_t size, unsigned depth)
{
	uint32_t members = next(w);
	int rc = 0;

	if (!members || members > w->count)
		return bad("bad compound");
	for (uint32_t i = 0; i < members && !rc; i++) {
		uint32_t offset = next(w);

		if (w->in && w->is_lost)
			return h5_fail(
				-ENOTSUP, H5_UNDEF,
				"nbit: libhdf5 misreads members after an array of arrays or compounds");
		rc = offset < size ? move_type(w, element + offset, size - offset, depth + 1)
				   : bad("member outside its compound");
	}
	return rc;
}

static int move_type(struct walk *w, uint64_t element, uint64_t room, unsigned depth)
{
	uint32_t class = next(w), size = next(w);

	if (!(++w->types % ASK_AFTER)) {
		int rc = h5_interrupt_check();

		if (rc)
			return rc;
	}
	if (depth > DEPTH_MAX)
		return bad("too deep a type");
	if (!size || size > room)
		return bad("bad type");
	/* Each number takes bits. So this limits the work, whatever the description says. */
	if (is_at_end(w))
		return bad("truncated");
	switch (class) {
	case NUMBER:
		return move_number(w, element, size);
	case ARRAY:
		return move_array(w, element, size, depth);
	case COMPOUND:
		return move_compound(w, element, size, depth);
	case OTHER:
		for (uint32_t i = 0; i < size; i++)
			move(w, element + i, 0, 8);
		return 0;
	default:
		return bad("unknown type");
	}
}

static int move_all(struct walk *w)
{
	uint64_t elements = w->values[V_ELEMENTS], size = w->values[V_SIZE];
	int rc = 0;

	for (uint64_t i = 0; i < elements && !rc; i++) {
		w->at = V_CLASS;
		w->is_lost = false;
		rc = move_type(w, i * size, size, 0);
	}
	if (!rc && is_beyond_end(w))
		rc = bad("truncated");
	return rc;
}

static int check_values(const uint32_t *values, unsigned count)
{
	if (count < 2 || (!values[V_UNPACKED] && count <= V_SIZE))
		return bad("parameters are missing");
	return 0;
}

int h5_nbit_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in,
		   struct h5_filter_buf *out, size_t limit)
{
	struct walk w = {.values = values, .count = count, .bits = h5_bits_init(in->data, in->size)};
	size_t size;
	bool packed;
	int rc = check_values(values, count);

	if (rc)
		return rc;
	packed = !values[V_UNPACKED];
	if ((packed ? (uint64_t)values[V_ELEMENTS] * values[V_SIZE] : in->size) > limit)
		return h5_filter_too_long("nbit", limit);
	if (!packed)
		return h5_filter_buf_copy(out, in->data, in->size);
	size = (size_t)values[V_ELEMENTS] * values[V_SIZE];
	rc = h5_filter_buf_reserve(out, size);
	if (!rc) {
		memset(out->data, 0, size);
		out->size = size;
		w.out = out->data;
		rc = move_all(&w);
	}
	return rc;
}

int h5_nbit_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
		   struct h5_filter_buf *out)
{
	struct walk w = {.values = values, .count = count, .in = data};
	int rc = check_values(values, count);

	if (rc || !size)
		return rc;
	if (values[V_UNPACKED])
		return h5_filter_buf_copy(out, data, size);
	if ((uint64_t)values[V_ELEMENTS] * values[V_SIZE] != size)
		return bad("another number of elements than in a chunk");
	rc = h5_filter_buf_reserve(out, size + 1);
	if (rc)
		return rc;
	memset(out->data, 0, size + 1);
	w.packed = h5_bits_writer_init(out->data, size);
	rc = move_all(&w);
	/* Like libhdf5, it stores the byte after the last whole one even if that has no bits. */
	out->size = w.packed.at + 1;
	return rc;
}
