/* Filter 32013, zfp. values: versions, then zfp's own header (magic, array, mode) as it was in the writer's
 * memory. So the header of a big-endian writer is swapped, and the decoded numbers have the byte order of the
 * writer. */
#include "base/checked.h"
#include "base/error.h"
#include "filter/filters.h"

#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zfp.h>

enum {
	HEADER_WORDS = 6, /* ZFP_HEADER_MAX_BITS take five; one more to read ahead */
	READ_AHEAD = 16,  /* bytes beyond the decoded ones */
};

struct zfp {
	zfp_stream *stream;
	zfp_field *field;
	bool big_endian; /* the writer was */
};

static int no_memory(void)
{
	return h5_fail(-ENOMEM, H5_UNDEF, "zfp: out of memory");
}

/* Reads zfp's header, or the array after that, from n bytes. *got: what zfp returns; 0: they are bad. */
static int read_bits(struct zfp *z, uint8_t *data, size_t n, bool header, size_t *got)
{
	bitstream *bits = stream_open(data, n);

	if (!bits)
		return no_memory();
	zfp_stream_set_bit_stream(z->stream, bits);
	*got = header ? zfp_read_header(z->stream, z->field, ZFP_HEADER_FULL)
		      : zfp_decompress(z->stream, z->field);
	zfp_stream_set_bit_stream(z->stream, NULL);
	stream_close(bits);
	return 0;
}

static int read_header(struct zfp *z, const uint32_t *values, unsigned count)
{
	uint8_t bytes[HEADER_WORDS * 4] = {0};
	size_t got = 0;
	int rc;

	if (count < 2)
		return h5_fail(-EUCLEAN, H5_UNDEF, "zfp: no header");
	/* Its first word begins with "zfp". */
	z->big_endian = values[1] >> 24 == 'z';
	for (unsigned i = 0; i + 1 < count && i < HEADER_WORDS - 1; i++)
		for (unsigned k = 0; k < 4; k++)
			bytes[4 * i + k] = (uint8_t)(values[i + 1] >> 8 * (z->big_endian ? 3 - k : k));
	if (memcmp(bytes, "zfp", 3))
		return h5_fail(-EUCLEAN, H5_UNDEF, "zfp: bad header");
	if (bytes[3] != zfp_codec_version)
		return h5_fail(-ENOTSUP, H5_UNDEF, "filter 32013 (zfp): codec %u is not available, only %u",
			       bytes[3], zfp_codec_version);
	rc = read_bits(z, bytes, sizeof bytes, true, &got);
	return rc || got ? rc : h5_fail(-EUCLEAN, H5_UNDEF, "zfp: bad header");
}

/* Computes how many bytes hostile data can make zfp read, since it checks no bounds. */
static int bound(const struct zfp *z, size_t stored, size_t *bytes)
{
	size_t blocks = zfp_field_blocks(z->field);
	unsigned minimum, values = 1u << 2 * zfp_field_dimensionality(z->field);
	uint64_t worst, bits;

	zfp_stream_params(z->stream, &minimum, NULL, NULL, NULL);
	/* Each block is padded to its minimum. */
	if (!h5_mul(blocks, minimum, &bits) || bits / CHAR_BIT > stored)
		return h5_fail(-EUCLEAN, H5_UNDEF, "zfp: the data are truncated");
	/* Each bit plane takes at most one bit for each value and one at its end. Each value takes two bits
	 * when it first appears. And there are an exponent and a precision. */
	worst = (uint64_t)zfp_field_precision(z->field) * (values + 1) + 2 * values + 64;
	if (worst < minimum)
		worst = minimum;
	if (!h5_mul(blocks, worst, &bits) || bits / CHAR_BIT > SIZE_MAX - 2 * READ_AHEAD)
		return h5_fail(-EUCLEAN, H5_UNDEF, "zfp: too many blocks");
	*bytes = (size_t)(bits / CHAR_BIT) + READ_AHEAD;
	return 0;
}

static int expand(struct zfp *z, const struct h5_filter_buf *in, struct h5_filter_buf *out)
{
	size_t room = 0, got = 0;
	uint8_t *data;
	int rc = bound(z, in->size, &room);

	if (rc)
		return rc;
	if (room < in->size + READ_AHEAD)
		room = in->size + READ_AHEAD;
	room = room / 8 * 8;
	/* Zeros follow the stored bytes. Most of these pages are never touched. */
	data = calloc(room, 1);
	if (!data)
		return h5_fail(-ENOMEM, H5_UNDEF, "zfp: no memory for %zu bytes", room);
	memcpy(data, in->data, in->size);
	zfp_field_set_pointer(z->field, out->data);
	rc = read_bits(z, data, room, false, &got);
	assert(got <= room);
	free(data);
	if (rc)
		return rc;
	/* zfp's position is behind the last word that it needed. */
	if (!got || got > in->size + stream_word_bits / CHAR_BIT - 1)
		return h5_fail(-EUCLEAN, H5_UNDEF, "zfp: bad data, or truncated");
	h5_filter_to_order(out->data, out->size, zfp_type_size(zfp_field_type(z->field)), z->big_endian);
	return 0;
}

static int decode(struct zfp *z, const uint32_t *values, unsigned count, const struct h5_filter_buf *in,
		  struct h5_filter_buf *out, size_t limit)
{
	uint64_t size;
	int rc;

	if (!z->stream || !z->field)
		return no_memory();
	rc = read_header(z, values, count);
	if (rc)
		return rc;
	if (!h5_mul(zfp_field_size(z->field, NULL), zfp_type_size(zfp_field_type(z->field)), &size) ||
	    size > limit)
		return h5_filter_too_long("zfp", limit);
	rc = h5_filter_buf_reserve(out, (size_t)size);
	if (rc)
		return rc;
	out->size = (size_t)size;
	return expand(z, in, out);
}

int h5_zfp_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in, struct h5_filter_buf *out,
		  size_t limit)
{
	struct zfp z = {.stream = zfp_stream_open(NULL), .field = zfp_field_alloc()};
	int rc = decode(&z, values, count, in, out, limit);

	if (z.field)
		zfp_field_free(z.field);
	if (z.stream)
		zfp_stream_close(z.stream);
	return rc;
}
