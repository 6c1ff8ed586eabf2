/* Filter 4, szip: the extended Rice code of CCSDS 121.0-B, in scanlines.
 *
 * values: options, pixels per block, bits per pixel, pixels per scanline. The chunk: bytes that come out
 * (u32), then the code. Each scanline is coded up to a multiple of the block. Pixels of 32 and 64 bits are
 * split before coding: first the first byte of each, then the second, and so on; the pixels of the code are
 * these bytes. */
#include "base/checked.h"
#include "base/error.h"
#include "base/reader.h"
#include "filter/filters.h"

#include <libaec.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPTION_MSB = 16, /* most significant byte first */
	OPTION_NN = 32,	 /* differences to the pixel before are coded */
	PIXELS_PER_BLOCK_MAX = 32,
	PIXELS_PER_SCANLINE_MAX = 4096,
};

struct szip {
	uint32_t options, per_block, bits, per_scanline;
	unsigned planes;      /* bytes that a pixel was split into; 1: not split */
	unsigned pixel_bits;  /* of the code */
	unsigned pixel_bytes; /* bytes of such a pixel when decoded */
};

static int init(struct szip *s, const uint32_t *values, unsigned count)
{
	if (count < 4)
		return h5_fail(-EUCLEAN, H5_UNDEF, "szip: %u parameters", count);
	*s = (struct szip){values[0], values[1], values[2], values[3], 1, values[2], 4};
	/* A scanline shorter than a block would be mostly filling: 31 bytes for one. */
	if (!s->per_block || s->per_block % 2 || s->per_block > PIXELS_PER_BLOCK_MAX ||
	    s->per_scanline < s->per_block || s->per_scanline > PIXELS_PER_SCANLINE_MAX || !s->bits ||
	    (s->bits > 32 && s->bits != 64))
		return h5_fail(-EUCLEAN, H5_UNDEF, "szip: scanlines of %u pixels of %u bits in blocks of %u",
			       s->per_scanline, s->bits, s->per_block);
	if (s->bits == 32 || s->bits == 64) {
		s->planes = s->bits / 8;
		s->pixel_bits = 8;
	}
	if (s->pixel_bits <= 16)
		s->pixel_bytes = s->pixel_bits <= 8 ? 1 : 2;
	return 0;
}

/* Decodes `size` bytes of whole scanlines, of which at least `needed` must be there. */
static int decode_scanlines(const struct szip *s, const struct h5_reader *r, uint8_t *lines, size_t size,
			    size_t needed)
{
	struct aec_stream aec = {
		.next_in = r->p,
		.avail_in = h5_reader_left(r),
		.next_out = lines,
		.avail_out = size,
		.bits_per_sample = s->pixel_bits,
		.block_size = s->per_block,
		.rsi = (s->per_scanline + s->per_block - 1) / s->per_block,
		.flags = (s->options & OPTION_MSB ? AEC_DATA_MSB : 0u) |
			 (s->options & OPTION_NN ? AEC_DATA_PREPROCESS : 0u),
	};
	int status = aec_decode_init(&aec);

	if (status == AEC_OK) {
		status = aec_decode(&aec, AEC_FLUSH);
		aec_decode_end(&aec);
	}
	if (status == AEC_MEM_ERROR)
		return h5_fail(-ENOMEM, H5_UNDEF, "szip: out of memory");
	if (status != AEC_OK || aec.total_out < needed)
		return h5_fail(-EUCLEAN, H5_UNDEF, "szip: bad data, %zu of %zu bytes come out", aec.total_out,
			       needed);
	return 0;
}

/* Puts n decoded bytes, from byte `at` of the code on, to where they were before the pixels were split. */
static void merge(const struct szip *s, const uint8_t *data, size_t at, size_t n, struct h5_filter_buf *out)
{
	size_t each = out->size / s->planes;

	while (n) {
		size_t run = (size_t)h5_min(n, each - at % each);
		uint8_t *p = out->data + at % each * s->planes + at / each;

		for (size_t i = 0; i < run; i++)
			p[i * s->planes] = data[i];
		data += run;
		at += run;
		n -= run;
	}
}

static int expand(const struct szip *s, const struct h5_reader *r, struct h5_filter_buf *out)
{
	size_t line = (size_t)s->per_scanline * s->pixel_bytes;
	size_t blocks = (s->per_scanline + s->per_block - 1) / s->per_block;
	size_t coded = blocks * s->per_block * s->pixel_bytes;
	size_t lines = (out->size + line - 1) / line;
	uint64_t size;
	uint8_t *data;
	int rc;

	if (!lines)
		return 0;
	if (!h5_mul(lines, coded, &size) || size > SIZE_MAX)
		return h5_fail(-EUCLEAN, H5_UNDEF, "szip: %zu scanlines of %zu bytes", lines, coded);
	data = malloc((size_t)size);
	if (!data)
		return h5_fail(-ENOMEM, H5_UNDEF, "szip: no memory for %llu bytes", (unsigned long long)size);
	rc = decode_scanlines(s, r, data, (size_t)size, (lines - 1) * coded + out->size - (lines - 1) * line);
	for (size_t i = 0; i < lines && !rc; i++)
		merge(s, data + i * coded, i * line, (size_t)h5_min(line, out->size - i * line), out);
	free(data);
	return rc;
}

int h5_szip_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit)
{
	struct h5_reader r = h5_reader_init(buf->data, buf->size, H5_UNDEF, 8, 8);
	struct h5_filter_buf out = {0};
	size_t size = h5_read_u32(&r);
	struct szip s = {0};
	int rc = h5_reader_check(&r, "szip");

	if (!rc)
		rc = init(&s, values, count);
	if (rc)
		return rc;
	if (size > limit || size % (s.planes * s.pixel_bytes))
		return h5_fail(-EUCLEAN, H5_UNDEF, "szip: %zu bytes instead of at most %zu", size, limit);
	rc = h5_filter_buf_reserve(&out, size);
	out.size = size;
	if (!rc)
		rc = expand(&s, &r, &out);
	return h5_filter_buf_replace(buf, &out, rc);
}
