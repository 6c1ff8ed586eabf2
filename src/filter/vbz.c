/* Filter 32020, VBZ of Oxford Nanopore: differences between neighbours, in few bytes if they are small.
 *
 * values: version 0 or 1; bytes of an integer, or 0; 1: differences, with the sign in bit 0; level of
 * Zstandard; 0: not compressed; if this value is missing: 1.
 *
 *   size  field
 *      4  number of decoded bytes, little-endian
 *         the data, in a Zstandard frame unless the level is 0
 *
 * If an integer has 0 bytes, the data are the bytes as they are. Else they are a key of 2 bits for each
 * number, the low bits of a byte first, padded to whole bytes, and then the numbers. Each number has 1 to 4
 * bytes, as its key says. In version 1, if integers have one byte, a number has 0, 1, 2 or 4 half bytes
 * instead, the low half of a byte first. */
#include "base/checked.h"
#include "base/error.h"
#include "base/reader.h"
#include "filter/filters.h"

#include <stdlib.h>
#include <string.h>

enum { V_VERSION, V_SIZE, V_DIFFERENCES, V_LEVEL, V_LEAST = V_LEVEL };
enum { HEADER = 4, LEVEL = 1, NUMBER_MAX = 4, PER_KEY_BYTE = 4 };

struct vbz {
	unsigned size; /* bytes of an integer; 0: the bytes are no integers */
	bool differences;
	bool halves; /* numbers are of half bytes */
	int level;
};

/* Numbers, read or written one after the other. */
struct stream {
	uint8_t *keys;
	uint8_t *at, *end; /* of the numbers; not const, as an encoder writes them */
	bool high;	   /* the low half of *at has been used */
};

static int init(struct vbz *v, const uint32_t *values, unsigned count)
{
	if (count < V_LEAST)
		return h5_fail(-EUCLEAN, H5_UNDEF, "vbz: %u parameters", count);
	if (values[V_VERSION] > 1)
		return h5_fail(-ENOTSUP, H5_UNDEF, "vbz: version %u", values[V_VERSION]);
	if (values[V_SIZE] > 4 || values[V_SIZE] == 3)
		return h5_fail(-EUCLEAN, H5_UNDEF, "vbz: integers of %u bytes", values[V_SIZE]);
	*v = (struct vbz){.size = values[V_SIZE],
			  .differences = values[V_DIFFERENCES],
			  .halves = values[V_VERSION] == 1 && values[V_SIZE] == 1,
			  .level = count > V_LEVEL ? (int)values[V_LEVEL] : LEVEL};
	return 0;
}

static size_t key_bytes(size_t count)
{
	return count / PER_KEY_BYTE + (count % PER_KEY_BYTE != 0);
}

static unsigned halves_of(unsigned key)
{
	return key == 3 ? 4 : key;
}

/* ---- decoding ---- */

static bool read_halves(struct stream *s, unsigned n, uint32_t *number)
{
	*number = 0;
	for (unsigned i = 0; i < n; i++) {
		if (s->at == s->end)
			return false;
		*number |= (uint32_t)(s->high ? *s->at >> 4 : *s->at & 15) << 4 * i;
		s->at += s->high;
		s->high = !s->high;
	}
	return true;
}

static bool read_bytes(struct stream *s, unsigned n, uint32_t *number)
{
	*number = 0;
	if (n > (size_t)(s->end - s->at))
		return false;
	for (unsigned i = 0; i < n; i++)
		*number |= (uint32_t)*s->at++ << 8 * i;
	return true;
}

static int decode_integers(const struct vbz *v, const struct h5_filter_buf *in, struct h5_filter_buf *out)
{
	size_t count = out->size / v->size, keys = key_bytes(count);
	struct stream s = {.keys = in->data};
	uint32_t value = 0, number;

	if (keys > in->size)
		return h5_fail(-EUCLEAN, H5_UNDEF, "vbz: the keys are truncated");
	s.at = in->data + keys;
	s.end = in->data + in->size;
	for (size_t i = 0; i < count; i++) {
		unsigned key = s.keys[i / PER_KEY_BYTE] >> 2 * (i % PER_KEY_BYTE) & 3;

		if (v->halves ? !read_halves(&s, halves_of(key), &number) : !read_bytes(&s, key + 1, &number))
			return h5_fail(-EUCLEAN, H5_UNDEF, "vbz: the numbers are truncated");
		value = v->differences ? value + (number >> 1 ^ -(number & 1)) : number;
		for (unsigned b = 0; b < v->size; b++)
			out->data[i * v->size + b] = (uint8_t)(value >> 8 * b);
	}
	if (s.at + s.high != s.end)
		return h5_fail(-EUCLEAN, H5_UNDEF, "vbz: bytes behind the last number");
	return 0;
}

/* Decodes the frame into *buf, which the caller releases, also after an error. */
static int unpack(const struct vbz *v, const uint8_t *data, size_t n, size_t size, struct h5_filter_buf *buf)
{
	uint64_t most = size;

	if (v->size)
		most = key_bytes(size / v->size) + (uint64_t)(size / v->size) * NUMBER_MAX;
	if (v->level)
		return h5_zstd_unpack(data, n, buf, (size_t)most);
	return h5_filter_buf_copy(buf, data, n);
}

int h5_vbz_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in, struct h5_filter_buf *out,
		  size_t limit)
{
	struct h5_reader r = h5_reader_init(in->data, in->size, H5_UNDEF, 8, 8);
	size_t size = h5_read_u32(&r);
	struct h5_filter_buf packed = {0};
	struct vbz v = {0};
	int rc = h5_reader_check(&r, "vbz");

	if (!rc)
		rc = init(&v, values, count);
	if (rc)
		return rc;
	if (v.size && size % v.size)
		return h5_fail(-EUCLEAN, H5_UNDEF, "vbz: %zu bytes are no integers of %u", size, v.size);
	if (size > limit)
		return h5_filter_too_long("vbz", limit);
	rc = h5_filter_buf_reserve(out, size);
	if (!rc)
		rc = unpack(&v, in->data + HEADER, in->size - HEADER, size, &packed);
	if (!rc && !v.size && packed.size != size)
		rc = h5_fail(-EUCLEAN, H5_UNDEF, "vbz: %zu bytes instead of %zu", packed.size, size);
	if (!rc) {
		out->size = size;
		if (v.size)
			rc = decode_integers(&v, &packed, out);
		else
			memcpy(out->data, packed.data, size);
	}
	h5_filter_buf_release(&packed);
	return rc == -EOVERFLOW ? h5_fail(-EUCLEAN, H5_UNDEF, "vbz: more numbers than %zu bytes hold", size)
				: rc;
}

/* ---- encoding ---- */

static unsigned write_halves(struct stream *s, uint32_t number)
{
	unsigned key = !number ? 0 : number < 1 << 4 ? 1 : number < 1 << 8 ? 2 : 3;

	for (unsigned i = 0; i < halves_of(key); i++) {
		uint8_t half = number >> 4 * i & 15;

		if (s->high)
			*s->at++ |= (uint8_t)(half << 4);
		else
			*s->at = half;
		s->high = !s->high;
	}
	return key;
}

static unsigned write_bytes(struct stream *s, uint32_t number)
{
	unsigned key = 0;

	do {
		*s->at++ = (uint8_t)number;
		number >>= 8;
		key++;
	} while (number);
	return key - 1;
}

/* Reads an integer, extended to 32 bits. */
static uint32_t load(const uint8_t *p, unsigned size)
{
	uint32_t value = 0;

	for (unsigned b = 0; b < size; b++)
		value |= (uint32_t)p[b] << 8 * b;
	if (size < 4 && value >> (8 * size - 1))
		value |= UINT32_MAX << 8 * size;
	return value;
}

/* *buf has room for the largest numbers. */
static void encode_integers(const struct vbz *v, const uint8_t *data, size_t count, struct h5_filter_buf *buf)
{
	struct stream s = {.keys = buf->data, .at = buf->data + key_bytes(count)};
	uint32_t before = 0;

	memset(s.keys, 0, key_bytes(count));
	for (size_t i = 0; i < count; i++) {
		uint32_t value = load(data + i * v->size, v->size), number = value;
		unsigned key;

		if (v->differences) {
			number = value - before;
			number = number << 1 ^ -(number >> 31);
			before = value;
		}
		key = v->halves ? write_halves(&s, number) : write_bytes(&s, number);
		s.keys[i / PER_KEY_BYTE] |= (uint8_t)(key << 2 * (i % PER_KEY_BYTE));
	}
	buf->size = (size_t)(s.at - buf->data) + s.high;
}

static int pack(const struct vbz *v, const uint8_t *data, size_t n, struct h5_filter_buf *out)
{
	int rc;

	if (v->level)
		return h5_zstd_pack(data, n, v->level, out);
	rc = h5_filter_buf_grow(out, n);
	if (!rc) {
		memcpy(out->data + out->size, data, n);
		out->size += n;
	}
	return rc;
}

int h5_vbz_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
		  struct h5_filter_buf *out)
{
	struct h5_filter_buf packed = {0};
	struct vbz v;
	int rc = init(&v, values, count);

	if (rc)
		return rc;
	if (size > UINT32_MAX || (v.size && size % v.size))
		return h5_fail(-ENOTSUP, H5_UNDEF, "vbz: %zu bytes as integers of %u", size, v.size);
	rc = h5_filter_buf_grow(out, HEADER + size);
	if (rc || !size)
		return rc;
	for (unsigned i = 0; i < HEADER; i++)
		out->data[i] = (uint8_t)(size >> 8 * i);
	out->size = HEADER;
	if (!v.size)
		return pack(&v, data, size, out);
	rc = h5_filter_buf_reserve(&packed, key_bytes(size / v.size) + size / v.size * NUMBER_MAX);
	if (!rc) {
		encode_integers(&v, data, size / v.size, &packed);
		rc = pack(&v, packed.data, packed.size, out);
	}
	h5_filter_buf_release(&packed);
	return rc;
}
