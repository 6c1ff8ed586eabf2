/* Filter 6, scale-offset: numbers less their minimum, in as many bits as the largest needs; floating-point
 * ones are first multiplied by a power of ten and rounded.
 *
 * values:  0  scale type: 0 decimal scale of floating point, 2 integer
 *          1  scale factor: the power of ten; integer: bits, 0 let the filter choose
 *          2  number of elements
 *          3  class: 0 integer, 1 floating point
 *          4  size of an element
 *          5  1 for signed ones
 *          6  byte order: 0 little, 1 big endian
 *          7  1 where there is a fill value
 *          8  fill value, least significant part first
 *
 * data:    offset  size  field
 *               0     4  bits of a packed number b
 *               4     1  size of the minimum s
 *               5     s  minimum, an integer or the bits of a float
 *              21        numbers of b bits, from the most significant bit on; whole elements where b is all
 *
 * All ones stand for the fill value. */
#include "base/checked.h"
#include "base/error.h"
#include "base/reader.h"
#include "filter/bits.h"
#include "filter/filters.h"

#include <string.h>

enum {
	V_SCALE_TYPE,
	V_SCALE_FACTOR,
	V_ELEMENTS,
	V_CLASS,
	V_SIZE,
	V_SIGN,
	V_ORDER,
	V_HAS_FILL,
	V_FILL,
	HEADER = 21,
};

struct unpack {
	uint32_t elements, size, bits;
	bool big_endian, is_float, has_fill;
	uint64_t minimum, fill; /* as bits */
	double scale;		/* 10^scale factor */
};

static int bad(const char *what)
{
	return h5_fail(-EUCLEAN, H5_UNDEF, "scaleoffset: %s", what);
}

static double power_of_ten(int32_t exponent)
{
	/* More is infinite anyway. */
	int n = exponent < -400 ? 400 : exponent > 400 ? 400 : exponent < 0 ? -exponent : exponent;
	long double power = 1;

	while (n--)
		power *= 10;
	return (double)(exponent < 0 ? 1 / power : power);
}

/* The number of the packed one, in the element's own bits. */
static uint64_t restore(const struct unpack *u, uint64_t packed)
{
	uint64_t v;

	if (u->has_fill && packed == (UINT64_C(1) << u->bits) - 1)
		return u->fill;
	if (!u->is_float)
		return packed + u->minimum;
	if (u->size == sizeof(float)) {
		uint32_t bits = (uint32_t)u->minimum;
		float minimum, f;

		memcpy(&minimum, &bits, sizeof minimum);
		f = (float)(int32_t)packed / (float)u->scale + minimum;
		memcpy(&bits, &f, sizeof bits);
		v = bits;
	} else {
		double minimum, f;

		memcpy(&minimum, &u->minimum, sizeof minimum);
		f = (double)(int64_t)packed / u->scale + minimum;
		memcpy(&v, &f, sizeof v);
	}
	return v;
}

static void store(const struct unpack *u, uint8_t *out, uint64_t v)
{
	for (uint32_t i = 0; i < u->size; i++, v >>= 8)
		out[u->big_endian ? u->size - 1 - i : i] = (uint8_t)v;
}

static int unpack_all(const struct unpack *u, const uint8_t *data, size_t size, uint8_t *out)
{
	struct h5_bits bits = h5_bits_init(data, size);
	uint64_t all;

	if (!h5_mul(u->elements, u->bits, &all) || all > 8 * (uint64_t)size)
		return bad("truncated");
	for (uint32_t i = 0; i < u->elements; i++) {
		uint64_t v = h5_bits_read(&bits, u->bits);

		if (u->bits < 8 * u->size)
			v = restore(u, v);
		else /* whole elements in the order of the machine, little-endian */
			v = h5_uint_from(data + (size_t)i * u->size, u->size);
		store(u, out + (size_t)i * u->size, v);
	}
	return 0;
}

static int read_header(struct unpack *u, const struct h5_filter_buf *buf)
{
	unsigned minimum_size;

	if (buf->size < HEADER)
		return bad("truncated");
	u->bits = (uint32_t)h5_uint_from(buf->data, 4);
	minimum_size = (unsigned)h5_min(buf->data[4], 8);
	u->minimum = h5_uint_from(buf->data + 5, minimum_size);
	return u->bits > 8 * u->size ? bad("more bits than a number has") : 0;
}

static int read_values(struct unpack *u, const uint32_t *values, unsigned count)
{
	if (count < V_FILL)
		return bad("parameters are missing");
	u->elements = values[V_ELEMENTS];
	u->size = values[V_SIZE];
	u->big_endian = values[V_ORDER];
	u->is_float = values[V_CLASS];
	u->has_fill = values[V_HAS_FILL] == 1;
	u->scale = power_of_ten((int32_t)values[V_SCALE_FACTOR]);
	for (unsigned i = V_FILL; i < count && i < V_FILL + 2; i++)
		u->fill |= (uint64_t)values[i] << (32 * (i - V_FILL));
	if (u->size != 4 && u->size != 8 && (u->is_float || (u->size != 1 && u->size != 2)))
		return bad("bad element size");
	if (u->is_float != !values[V_SCALE_TYPE])
		return h5_fail(-ENOTSUP, H5_UNDEF, "scaleoffset: scale type %u is not supported",
			       values[V_SCALE_TYPE]);
	return 0;
}

int h5_scaleoffset_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit)
{
	struct h5_filter_buf out = {0};
	struct unpack u = {0};
	int rc = read_values(&u, values, count);

	if (rc)
		return rc;
	if (!u.is_float && values[V_SCALE_FACTOR] == 8 * u.size) /* left as it was */
		return buf->size > limit ? bad("more bytes come out than may") : 0;
	rc = read_header(&u, buf);
	if (!rc && (uint64_t)u.elements * u.size > limit)
		rc = bad("more bytes come out than may");
	if (rc)
		return rc;
	out.size = (size_t)u.elements * u.size;
	rc = h5_filter_buf_reserve(&out, out.size);
	if (!rc)
		rc = unpack_all(&u, buf->data + HEADER, buf->size - HEADER, out.data);
	if (rc) {
		h5_filter_buf_release(&out);
		return rc;
	}
	h5_filter_buf_release(buf);
	*buf = out;
	return 0;
}
