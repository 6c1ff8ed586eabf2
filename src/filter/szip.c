/* Filter 4, szip: the extended Rice code of CCSDS 121.0-B, in scanlines.
 *
 * values: options, pixels per block, bits per pixel, pixels per scanline. The chunk: number of decoded bytes
 * (u32), then the code. Each scanline is coded up to a multiple of the block. Pixels of 32 and 64 bits are
 * split before coding: first the first byte of each, then the second, and so on; the pixels of the code are
 * these bytes. */
#include "base/checked.h"
#include "base/error.h"
#include "base/reader.h"
#include "base/writer.h"
#include "filter/filters.h"

#include <libaec.h>
#include <stdbool.h>
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
	unsigned pixel_bytes; /* bytes of a decoded pixel */
};

enum { HEADER = 4 };

static int init(struct szip *s, const uint32_t *values, unsigned count)
{
	if (count < 4)
		return h5_fail(-EUCLEAN, H5_UNDEF, "szip: %u parameters", count);
	*s = (struct szip){values[0], values[1], values[2], values[3], 1, values[2], 4};
	/* Refuses scanlines shorter than a block, since most of them would be padding: 31 bytes for one. */
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

static struct aec_stream stream(const struct szip *s)
{
	return (struct aec_stream){
		.bits_per_sample = s->pixel_bits,
		.block_size = s->per_block,
		.rsi = (s->per_scanline + s->per_block - 1) / s->per_block,
		.flags = (s->options & OPTION_MSB ? AEC_DATA_MSB : 0u) |
			 (s->options & OPTION_NN ? AEC_DATA_PREPROCESS : 0u),
	};
}

/* Decodes `size` bytes of whole scanlines, of which at least `needed` must be there. */
static int decode_scanlines(const struct szip *s, const struct h5_reader *r, uint8_t *lines, size_t size,
			    size_t needed)
{
	struct aec_stream aec = stream(s);
	int status;

	aec.next_in = r->p;
	aec.avail_in = h5_reader_left(r);
	aec.next_out = lines;
	aec.avail_out = size;
	status = aec_decode_init(&aec);
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

/* Puts n decoded bytes, from byte `at` of the code on, back to their places before the pixels were split. */
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

int h5_szip_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in,
		   struct h5_filter_buf *out, size_t limit)
{
	struct h5_reader r = h5_reader_init(in->data, in->size, H5_UNDEF, 8, 8);
	size_t size = h5_read_u32(&r);
	struct szip s = {0};
	int rc = h5_reader_check(&r, "szip");

	if (!rc)
		rc = init(&s, values, count);
	if (rc)
		return rc;
	if (size % (s.planes * s.pixel_bytes))
		return h5_fail(-EUCLEAN, H5_UNDEF, "szip: %zu bytes are no whole pixels", size);
	if (size > limit)
		return h5_filter_too_long("szip", limit);
	rc = h5_filter_buf_reserve(out, size);
	if (rc)
		return rc;
	out->size = size;
	return expand(&s, &r, out);
}

/* The reverse of merge(): n bytes of the code from byte `at` on, out of pixels of `size` bytes in all. */
static void split(const struct szip *s, const uint8_t *data, size_t size, size_t at, size_t n, uint8_t *line)
{
	size_t each = size / s->planes;

	while (n) {
		size_t run = (size_t)h5_min(n, each - at % each);
		const uint8_t *p = data + at % each * s->planes + at / each;

		for (size_t i = 0; i < run; i++)
			line[i] = p[i * s->planes];
		line += run;
		at += run;
		n -= run;
	}
}

/* True: no pixel has bits beyond those that are coded. */
static bool fits(const struct szip *s, const uint8_t *data, size_t size)
{
	uint64_t allowed = (UINT64_C(1) << s->pixel_bits) - 1;
	uint8_t seen[4] = {0};

	for (size_t i = 0; i < size; i++)
		seen[i % s->pixel_bytes] |= data[i];
	for (unsigned i = 0; i < s->pixel_bytes; i++) {
		unsigned shift = 8 * (s->options & OPTION_MSB ? s->pixel_bytes - 1 - i : i);

		if (seen[i] & ~(allowed >> shift))
			return false;
	}
	return true;
}

/* Pads a scanline of n bytes to whole blocks with the pixels that take the fewest bits: copies of its last
 * pixel, or zeros if no differences are coded. */
static void pad(const struct szip *s, uint8_t *line, size_t n, size_t coded)
{
	if (s->options & OPTION_NN)
		for (; n < coded; n++)
			line[n] = line[n - s->pixel_bytes];
	memset(line + n, 0, coded - n);
}

static int pack_lines(const struct szip *s, struct aec_stream *aec, const uint8_t *data, size_t size,
		      uint8_t *coded_line, size_t coded)
{
	size_t line = (size_t)s->per_scanline * s->pixel_bytes;
	int status = AEC_OK;

	for (size_t at = 0; at < size && status == AEC_OK; at += line) {
		size_t n = (size_t)h5_min(line, size - at);

		split(s, data, size, at, n, coded_line);
		pad(s, coded_line, n, coded);
		aec->next_in = coded_line;
		aec->avail_in = coded;
		status = aec_encode(aec, n < size - at ? AEC_NO_FLUSH : AEC_FLUSH);
		/* It takes all input if there is room. */
		if (status == AEC_OK && aec->avail_in)
			status = AEC_STREAM_ERROR;
	}
	return status;
}

static int pack(const struct szip *s, const uint8_t *data, size_t size, struct h5_filter_buf *out)
{
	struct aec_stream aec = stream(s);
	size_t coded = (size_t)aec.rsi * s->per_block * s->pixel_bytes;
	uint8_t *line = malloc(coded);
	int status = AEC_MEM_ERROR, end;

	aec.flags |= AEC_NOT_ENFORCE; /* libhdf5 also allows blocks of other sizes than the standard does */
	aec.next_out = out->data + HEADER;
	aec.avail_out = out->capacity - HEADER;
	if (line)
		status = aec_encode_init(&aec);
	if (status == AEC_OK) {
		status = pack_lines(s, &aec, data, size, line, coded);
		end = aec_encode_end(&aec);
		if (status == AEC_OK)
			status = end;
	}
	free(line);
	if (status == AEC_MEM_ERROR)
		return h5_fail(-ENOMEM, H5_UNDEF, "szip: out of memory");
	if (status != AEC_OK)
		return h5_fail(-ENOTSUP, H5_UNDEF, "szip: cannot encode %zu bytes: %d", size, status);
	out->size = HEADER + aec.total_out;
	return 0;
}

int h5_szip_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
		   struct h5_filter_buf *out)
{
	struct szip s = {0};
	uint64_t lines, line;
	uint64_t coded;
	int rc = init(&s, values, count);

	if (rc || !size)
		return rc;
	if (size > UINT32_MAX || size % (s.planes * s.pixel_bytes) || !fits(&s, data, size))
		return h5_fail(-ENOTSUP, H5_UNDEF, "szip: %zu bytes are no pixels of %u bits", size, s.bits);
	line = (size_t)s.per_scanline * s.pixel_bytes;
	lines = (size + line - 1) / line;
	coded = (uint64_t)lines * stream(&s).rsi * s.per_block * s.pixel_bytes;
	/* At worst a block is stored as it is, after at most 5 bits. Each block has at least two bytes. */
	rc = h5_filter_buf_reserve(out, HEADER + (size_t)(coded + coded / 2) + 64);
	if (rc)
		return rc;
	h5_uint_to(out->data, size, HEADER);
	return pack(&s, data, size, out);
}
