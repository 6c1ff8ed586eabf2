/* Filter 6, scale-offset: numbers minus their minimum, in as many bits as the largest result needs.
 * Floating-point numbers are first multiplied by a power of ten and rounded.
 *
 * values:  0  scale type: 0 decimal scale of floating point, 2 integer
 *          1  scale factor: the power of ten; integer: bits, 0: the filter chooses
 *          2  number of elements
 *          3  class: 0 integer, 1 floating point
 *          4  size of an element
 *          5  1 for signed ones
 *          6  byte order: 0 little, 1 big endian
 *          7  1 if there is a fill value
 *          8  fill value, least significant part first
 *
 * data:    offset  size  field
 *               0     4  bits of a packed number b
 *               4     1  size of the minimum s
 *               5     s  minimum, an integer or the bits of a float
 *              21        numbers of b bits, the most significant bit first; if b is all bits, whole elements
 *
 * A number of all ones is the fill value. */
#include "base/checked.h"
#include "base/error.h"
#include "base/reader.h"
#include "base/writer.h"
#include "filter/bits.h"
#include "filter/filters.h"

#include <math.h>
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

struct scaleoffset {
	uint32_t elements, size, bits;
	bool big_endian, is_float, is_signed, has_fill;
	uint64_t minimum, fill; /* as bits */
	double scale;		/* 10^scale factor */
};

static int bad(const char *what)
{
	return h5_fail(-EUCLEAN, H5_UNDEF, "scaleoffset: %s", what);
}

static double power_of_ten(int32_t exponent)
{
	/* Larger powers are infinite anyway. */
	int n = exponent < -400 ? 400 : exponent > 400 ? 400 : exponent < 0 ? -exponent : exponent;
	long double power = 1;

	while (n--)
		power *= 10;
	return (double)(exponent < 0 ? 1 / power : power);
}

/* The packed number that means the fill value. */
static uint64_t all_ones(const struct scaleoffset *u)
{
	return (UINT64_C(1) << u->bits) - 1;
}

/* The bits of the element that has this packed number. */
static uint64_t restore(const struct scaleoffset *u, uint64_t packed)
{
	uint64_t v;

	if (u->has_fill && packed == all_ones(u))
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

static void store(const struct scaleoffset *u, uint8_t *out, uint64_t v)
{
	for (uint32_t i = 0; i < u->size; i++, v >>= 8)
		out[u->big_endian ? u->size - 1 - i : i] = (uint8_t)v;
}

static int unpack_all(const struct scaleoffset *u, const uint8_t *data, size_t size, uint8_t *out)
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

static int read_header(struct scaleoffset *u, const struct h5_filter_buf *buf)
{
	unsigned minimum_size;

	if (buf->size < HEADER)
		return bad("truncated");
	u->bits = (uint32_t)h5_uint_from(buf->data, 4);
	minimum_size = (unsigned)h5_min(buf->data[4], 8);
	u->minimum = h5_uint_from(buf->data + 5, minimum_size);
	return u->bits > 8 * u->size ? bad("more bits than a number has") : 0;
}

static int read_values(struct scaleoffset *u, const uint32_t *values, unsigned count)
{
	if (count < V_FILL)
		return bad("parameters are missing");
	u->elements = values[V_ELEMENTS];
	u->size = values[V_SIZE];
	u->big_endian = values[V_ORDER];
	u->is_float = values[V_CLASS];
	u->is_signed = values[V_SIGN];
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

int h5_scaleoffset_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in,
			  struct h5_filter_buf *out, size_t limit)
{
	struct scaleoffset u = {0};
	int rc = read_values(&u, values, count);

	if (rc)
		return rc;
	if (!u.is_float && values[V_SCALE_FACTOR] == 8 * u.size) /* stored as it is */
		return in->size > limit ? h5_filter_too_long("scaleoffset", limit)
					: h5_filter_buf_copy(out, in->data, in->size);
	rc = read_header(&u, in);
	if (!rc && (uint64_t)u.elements * u.size > limit)
		rc = h5_filter_too_long("scaleoffset", limit);
	if (rc)
		return rc;
	rc = h5_filter_buf_reserve(out, (size_t)u.elements * u.size);
	if (rc)
		return rc;
	out->size = (size_t)u.elements * u.size;
	return unpack_all(&u, in->data + HEADER, in->size - HEADER, out->data);
}

/* Reads an element's bits. A signed integer is extended to 64 bits. */
static uint64_t load(const struct scaleoffset *u, const uint8_t *p)
{
	uint64_t v = 0;

	for (uint32_t i = 0; i < u->size; i++)
		v = v << 8 | p[u->big_endian ? i : u->size - 1 - i];
	if (u->is_signed && !u->is_float && u->size < 8 && v >> (8 * u->size - 1))
		v |= UINT64_MAX << 8 * u->size;
	return v;
}

static double to_double(const struct scaleoffset *u, uint64_t v)
{
	uint32_t bits = (uint32_t)v;
	double d;
	float f;

	if (u->size == sizeof f) {
		memcpy(&f, &bits, sizeof f);
		return (double)f;
	}
	memcpy(&d, &v, sizeof d);
	return d;
}

static bool is_fill(const struct scaleoffset *u, uint64_t v)
{
	if (!u->has_fill)
		return false;
	/* A float counts as the fill value if rounding makes them equal. */
	return !((v ^ u->fill) << (64 - 8 * u->size)) ||
	       (u->is_float && fabs(to_double(u, v) - to_double(u, u->fill)) < 1 / u->scale);
}

static bool is_less(const struct scaleoffset *u, uint64_t a, uint64_t b)
{
	if (u->is_float)
		return to_double(u, a) < to_double(u, b);
	return u->is_signed ? (int64_t)a < (int64_t)b : a < b;
}

/* The packed number of the element: its distance from the minimum. UINT64_MAX: too far, or not a number. */
static uint64_t offset(const struct scaleoffset *u, uint64_t v)
{
	double steps;

	if (!u->is_float)
		return v - u->minimum;
	steps = (to_double(u, v) - to_double(u, u->minimum)) * u->scale + 0.5;
	return steps < (double)(UINT64_C(1) << (8 * u->size - 1)) ? (uint64_t)steps : UINT64_MAX;
}

/* Finds the minimum, and the largest offset from it; *most is 0 if all elements are fill values. */
static void measure(struct scaleoffset *u, const uint8_t *data, uint64_t *most)
{
	bool any = false;
	uint64_t maximum = 0;

	u->minimum = 0;
	for (uint32_t i = 0; i < u->elements; i++) {
		uint64_t v = load(u, data + (size_t)i * u->size);

		if (is_fill(u, v))
			continue;
		if (!any || is_less(u, v, u->minimum))
			u->minimum = v;
		if (!any || is_less(u, maximum, v))
			maximum = v;
		any = true;
		/* Comparisons would miss these. */
		if (u->is_float && !isfinite(to_double(u, v))) {
			*most = UINT64_MAX;
			return;
		}
	}
	*most = any ? offset(u, maximum) : 0;
}

/* The bits that are needed for offsets up to `most` and the number of all ones; if nothing is gained, those
 * of a whole element. */
static uint32_t bits_for(const struct scaleoffset *u, uint64_t most)
{
	uint32_t whole = 8 * u->size;

	if (most > UINT64_MAX - 2)
		return whole;
	most += u->has_fill;
	return most ? (uint32_t)h5_min(h5_log2(most) + 1, whole) : 0;
}

static void pack_all(const struct scaleoffset *u, const uint8_t *data, struct h5_filter_buf *out)
{
	struct h5_bits_writer bits = h5_bits_writer_init(out->data + HEADER, out->size - HEADER);

	for (uint32_t i = 0; i < u->elements; i++) {
		uint64_t v = load(u, data + (size_t)i * u->size);

		if (u->bits == 8 * u->size) /* in the order of the machine, little-endian */
			h5_uint_to(out->data + HEADER + (size_t)i * u->size, v, u->size);
		else
			h5_bits_write(&bits, is_fill(u, v) ? all_ones(u) : offset(u, v), u->bits);
	}
}

/* Chooses the number of bits. If the parameters ask for too few, it fails; libhdf5 would cut the numbers. */
static int choose_bits(struct scaleoffset *u, uint32_t asked, const uint8_t *data)
{
	uint64_t most = UINT64_MAX;

	if (!u->is_float || (u->size == sizeof(float) ? isnormal((float)u->scale) : isnormal(u->scale)))
		measure(u, data, &most);
	u->bits = bits_for(u, most);
	if (u->is_float || !asked)
		return 0;
	if (u->bits > asked)
		return h5_fail(-ENOTSUP, H5_UNDEF, "scaleoffset: the numbers take more than %u bits", asked);
	u->bits = asked;
	return 0;
}

int h5_scaleoffset_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
			  struct h5_filter_buf *out)
{
	struct scaleoffset u = {0};
	uint32_t asked;
	int rc = read_values(&u, values, count);

	if (rc)
		return rc;
	asked = (int32_t)values[V_SCALE_FACTOR] > 0 ? values[V_SCALE_FACTOR] : 0;
	if (!u.is_float && asked > 8 * u.size)
		return h5_fail(-ENOTSUP, H5_UNDEF, "scaleoffset: %u bits for numbers of %u", asked,
			       8 * u.size);
	if (!size)
		return 0;
	if ((uint64_t)u.elements * u.size != size)
		return bad("another number of elements than in a chunk");
	if (!u.is_float && asked == 8 * u.size)
		return h5_filter_buf_copy(out, data, size);
	rc = choose_bits(&u, asked, data);
	if (rc)
		return rc;
	/* Like libhdf5, one byte more than whole ones, even if that has no bits. */
	out->size = HEADER + size;
	if (u.bits < 8 * u.size)
		out->size = HEADER + (size_t)((uint64_t)u.elements * u.bits / 8) + 1;
	rc = h5_filter_buf_reserve(out, out->size);
	if (rc)
		return rc;
	memset(out->data, 0, out->size);
	h5_uint_to(out->data, u.bits, 4);
	out->data[4] = sizeof u.minimum;
	h5_uint_to(out->data + 5, u.minimum, sizeof u.minimum);
	pack_all(&u, data, out);
	return 0;
}
