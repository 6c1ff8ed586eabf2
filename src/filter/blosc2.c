/* Filter 32026: Blosc2. A chunk is a contiguous frame of c-blosc2 (README_CFRAME_FORMAT.rst there) with one
 * chunk of Blosc2 in it.
 *
 * Only that chunk is given to the library, after its header has been checked: the library's own readers of
 * frames open files and start programs, if a frame says so.
 *
 *   offset  size  field of a frame; numbers of these fields are big-endian, as in MessagePack
 *        1     9  0xa8, "b2frame", 0
 *       11     4  bytes of this header
 *       16     8  bytes of the frame
 *       25     1  bits 0-3: version
 *       26     1  0: contiguous
 *       30     8  bytes of all chunks when they are decoded
 *       39     8  bytes of all chunks as stored behind this header
 *       48     4  bytes of an element
 *       58     4  bytes of a chunk when it is decoded
 *       91     3  0xde, number of metalayers
 *       94        each: 0xa0 + n, n bytes of name, 0xd2, 4 bytes: offset of its contents in the frame
 *
 * Behind the stored chunks is a chunk of Blosc2 with their offsets, of 8 bytes each, then the trailer.
 *
 * Chunks of several dimensions are arrays of Blosc2 ("b2nd"): blocks, in row-major order, of elements, in
 * row-major order. Blocks at the edges are padded. The contents of that metalayer, with a rank of n:
 *
 *        0     5  0xc6, bytes of what follows
 *        5     3  0x97, version, rank
 *        8        0x90 + n, n times 0xd3, 8 bytes: shape
 *                 0x90 + n, n times 0xd2, 4 bytes: shape of a chunk
 *                 the same for a block; the rest is not needed
 *
 * values: version of the filter, then 0 or bytes of a block, bytes of an element, of a chunk; then, if there
 * are more, the level, the filter (0 none, 1 shuffle, 2 bitshuffle, 3 delta, 4 cut mantissas), the
 * compressor, the rank, and the shape of a chunk. */
#include "base/checked.h"
#include "base/error.h"
#include "base/reader.h"
#include "filter/filters.h"

#include <blosc2.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	V_ELEMENT_SIZE = 2,
	V_LEVEL = 4,
	V_FILTER,
	V_COMPRESSOR,
	V_RANK,
	V_SHAPE,
	F_HEADER = 11,
	F_SIZE = 16,
	F_VERSION = 25,
	F_TYPE = 26,
	F_COMPRESSOR = 27,
	F_DECODED = 30,
	F_STORED = 39,
	F_ELEMENT_SIZE = 48,
	F_BLOCK = 53,
	F_CHUNK = 58,
	F_FILTER = 76,
	F_COMPRESSOR_TOO = 77,
	F_INDEX_SIZE = 89,
	F_METALAYERS = 92,
	F_NAMES = 94,
	F_END = 97,	 /* without metalayers */
	RANK_MAX = 15,	 /* more need another kind of list */
	PADDING_MAX = 8, /* most times that padding makes a chunk larger */
	C_FLAGS = 2,	 /* of a chunk of Blosc2 */
	C_FILTERS = 16,
	C_FLAGS2 = 31,
	LAZY = 8, /* in C_FLAGS2 */
	CODEC_USER_DEFINED = 6,
	PIPELINE = 6,			 /* filters in a chunk's header */
	ARRAY_MAX = 160 + RANK_MAX * 19, /* most bytes of the header of an array's frame */
	BLOCK_MAX = 536866816,
};

struct frame {
	const uint8_t *data;
	size_t size;
	uint64_t header, decoded, stored;
	uint32_t element_size; /* 1 if elements have more than 255 bytes */
	unsigned rank;	       /* 0: no array */
	size_t element;	       /* bytes of an element of the array */
	uint64_t shape[RANK_MAX], chunk[RANK_MAX], block[RANK_MAX];
};

static uint64_t big_endian(const uint8_t *p, unsigned n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}

static int damaged(const char *what)
{
	return h5_fail(-EUCLEAN, H5_UNDEF, "blosc2: %s", what);
}

/* The frame's bytes from `at` on, if there are n of them. */
static const uint8_t *part(const struct frame *f, uint64_t at, uint64_t n)
{
	return at <= f->size && n <= f->size - at ? f->data + at : NULL;
}

/* n numbers, each behind a byte `kind`. */
static int read_shape(const struct frame *f, uint64_t *at, unsigned kind, unsigned size, uint64_t *shape)
{
	const uint8_t *p = part(f, *at, 1 + f->rank * (1u + size));

	if (!p || *p++ != 0x90 + f->rank)
		return damaged("bad shape");
	for (unsigned i = 0; i < f->rank; i++, p += size) {
		if (*p++ != kind)
			return damaged("bad shape");
		shape[i] = big_endian(p, size);
	}
	*at += 1 + f->rank * (1u + size);
	return 0;
}

static int read_array(struct frame *f, uint64_t at)
{
	const uint8_t *p = part(f, at, 8);
	int rc;

	if (!p || p[0] != 0xc6 || (p[5] & 0xf0) != 0x90)
		return damaged("bad description of an array");
	f->rank = p[7];
	if (!f->rank || f->rank > RANK_MAX)
		return h5_fail(-ENOTSUP, H5_UNDEF, "blosc2: %u dimensions", f->rank);
	at += 8;
	rc = read_shape(f, &at, 0xd3, 8, f->shape);
	if (!rc)
		rc = read_shape(f, &at, 0xd2, 4, f->chunk);
	return rc ? rc : read_shape(f, &at, 0xd2, 4, f->block);
}

/* Looks for the metalayer "b2nd". */
static int read_metalayers(struct frame *f)
{
	unsigned n = (unsigned)big_endian(f->data + F_METALAYERS, 2);
	uint64_t at = F_NAMES;

	for (unsigned i = 0; i < n; i++) {
		const uint8_t *p = part(f, at, 1);
		unsigned name = p ? *p & 0x1f : 0;

		p = p ? part(f, at + 1, name + 5) : NULL;
		if (!p || p[name] != 0xd2)
			return damaged("bad metalayers");
		if (name == 4 && !memcmp(p, "b2nd", 4))
			return read_array(f, big_endian(p + 5, 4));
		at += 1 + name + 5;
	}
	return 0;
}

static int read_frame(const struct h5_filter_buf *in, struct frame *f)
{
	const uint8_t *p = in->data;

	memset(f, 0, sizeof *f);
	if (in->size < F_NAMES || memcmp(p + 1,
					 "\xa8"
					 "b2frame",
					 9))
		return damaged("not a frame");
	f->data = p;
	f->header = big_endian(p + F_HEADER, 4);
	f->size = (size_t)h5_min(big_endian(p + F_SIZE, 8), in->size);
	f->decoded = big_endian(p + F_DECODED, 8);
	f->stored = big_endian(p + F_STORED, 8);
	f->element_size = (uint32_t)big_endian(p + F_ELEMENT_SIZE, 4);
	if ((p[F_VERSION] & 15) != 2 || p[F_TYPE])
		return h5_fail(-ENOTSUP, H5_UNDEF, "blosc2: a frame of version %u, type %u",
			       p[F_VERSION] & 15, p[F_TYPE]);
	if (f->size < F_NAMES || f->header < F_NAMES || f->header > f->size ||
	    f->stored > f->size - f->header || !f->decoded || f->decoded > BLOSC2_MAX_BUFFERSIZE)
		return damaged("bad sizes of a frame");
	if (f->decoded > big_endian(p + F_CHUNK, 4))
		return h5_fail(-ENOTSUP, H5_UNDEF, "blosc2: a frame of several chunks");
	return read_metalayers(f);
}

/* Checks that the library may decode the chunk of Blosc2 in the n bytes at p, and that it has `size` bytes
 * then. */
static int check_chunk(const uint8_t *p, uint64_t n, uint64_t size)
{
	unsigned codec = p[C_FLAGS] >> 5;
	int32_t nbytes, cbytes, blocksize;

	if (blosc2_cbuffer_sizes(p, &nbytes, &cbytes, &blocksize) < 0 || cbytes < 0 || (uint64_t)cbytes > n ||
	    nbytes < 0 || (uint64_t)nbytes != size || p[C_FLAGS2] & LAZY)
		return damaged("bad sizes of a chunk");
	/* Of others the library would look for a program that knows them. */
	if (codec >= CODEC_USER_DEFINED)
		return h5_fail(-ENOTSUP, H5_UNDEF, "filter 32026 (blosc2): compressor %u is not available",
			       p[C_FILTERS + PIPELINE]);
	for (unsigned i = 0; i < PIPELINE; i++)
		if (p[C_FILTERS + i] > BLOSC_TRUNC_PREC)
			return h5_fail(-ENOTSUP, H5_UNDEF,
				       "filter 32026 (blosc2): its filter %u is not available",
				       p[C_FILTERS + i]);
	return 0;
}

/* Decodes a chunk of Blosc2, which is in the n bytes at p, to exactly `size` bytes. */
static int decode_chunk(const uint8_t *p, uint64_t n, uint8_t *to, size_t size)
{
	blosc2_context *context;
	int rc, got;

	if (!p || n < BLOSC_EXTENDED_HEADER_LENGTH)
		return damaged("no chunk");
	rc = check_chunk(p, n, size);
	if (rc)
		return rc;
	/* Without threads of its own: chunks are decoded side by side already. */
	context = blosc2_create_dctx(BLOSC2_DPARAMS_DEFAULTS);
	if (!context)
		return h5_fail(-ENOMEM, H5_UNDEF, "blosc2: out of memory");
	got = blosc2_decompress_ctx(context, p, (int32_t)h5_min(n, INT32_MAX), to, (int32_t)size);
	blosc2_free_ctx(context);
	return got >= 0 && (size_t)got == size ? 0 : damaged("bad data");
}

/* Fills in a chunk of one value: it is not stored, but its offset tells the value. */
static int fill(const struct frame *f, uint64_t offset, uint8_t *to, size_t size)
{
	static const float nan4 = NAN;
	static const double nan8 = NAN;
	const void *nan = f->element_size == sizeof nan4 ? (const void *)&nan4 : &nan8;

	switch (offset >> 56 & BLOSC2_SPECIAL_MASK) {
	case BLOSC2_SPECIAL_ZERO:
	case BLOSC2_SPECIAL_UNINIT:
		memset(to, 0, size);
		return 0;
	case BLOSC2_SPECIAL_NAN:
		if ((f->element_size != sizeof nan4 && f->element_size != sizeof nan8) ||
		    size % f->element_size)
			return damaged("NaN of another size");
		for (size_t at = 0; at < size; at += f->element_size)
			memcpy(to + at, nan, f->element_size);
		return 0;
	default:
		return damaged("bad offset");
	}
}

/* Decodes the frame's chunk, with its padding, to f->decoded bytes. */
static int decode_frame(const struct frame *f, uint8_t *to)
{
	uint64_t behind = f->header + f->stored, offset;
	uint8_t stored_offset[8];
	int rc = decode_chunk(part(f, behind, 0), f->size - behind, stored_offset, sizeof stored_offset);

	if (rc)
		return rc;
	offset = h5_uint_from(stored_offset, sizeof stored_offset);
	if (offset >> 63)
		return fill(f, offset, to, (size_t)f->decoded);
	if (offset > f->stored)
		return damaged("bad offset");
	return decode_chunk(f->data + f->header + offset, f->stored - offset, to, (size_t)f->decoded);
}

/* Copies the elements of the block at `begin` that lie inside the shape to their places in the array. */
static void copy_block(const struct frame *f, const uint64_t *begin, const uint8_t *block, uint8_t *array)
{
	unsigned last = f->rank - 1;
	uint64_t at[RANK_MAX] = {0}, run;

	for (unsigned i = 0; i <= last; i++)
		if (begin[i] >= f->shape[i])
			return;
	run = h5_min(f->block[last], f->shape[last] - begin[last]);
	for (;;) {
		uint64_t from = 0, to = 0;
		unsigned i;

		for (i = 0; i <= last; i++) {
			from = from * f->block[i] + at[i];
			to = to * f->shape[i] + begin[i] + at[i];
		}
		memcpy(array + to * f->element, block + from * f->element, run * f->element);
		for (i = last; i-- > 0; at[i] = 0)
			if (++at[i] < h5_min(f->block[i], f->shape[i] - begin[i]))
				break;
		if (i > last)
			return;
	}
}

static void copy_blocks(const struct frame *f, const uint8_t *blocks, uint64_t block_size, uint8_t *array)
{
	uint64_t begin[RANK_MAX] = {0};
	unsigned i;

	do {
		copy_block(f, begin, blocks, array);
		blocks += block_size;
		for (i = f->rank; i-- > 0; begin[i] = 0)
			if ((begin[i] += f->block[i]) < f->chunk[i])
				break;
	} while (i < f->rank);
}

/* The sizes, in bytes, of the array and of a block, if the frame's chunk is its only one, with all padding.
 */
static int check_array(struct frame *f, uint64_t *array_size, uint64_t *block_size)
{
	uint64_t padded[RANK_MAX], all;

	for (unsigned i = 0; i < f->rank; i++) {
		if (!f->shape[i] || !f->block[i] || f->shape[i] > f->chunk[i] || f->block[i] > f->chunk[i])
			return damaged("bad shape");
		padded[i] = (f->chunk[i] + f->block[i] - 1) / f->block[i] * f->block[i];
	}
	if (!h5_product(padded, f->rank, &all) || all > f->decoded || f->decoded % all ||
	    !h5_product(f->shape, f->rank, array_size) || !h5_product(f->block, f->rank, block_size))
		return damaged("bad shape");
	f->element = (size_t)(f->decoded / all);
	/* The array with its padding is larger. */
	*array_size *= f->element;
	*block_size *= f->element;
	return 0;
}

static int decode_array(struct frame *f, struct h5_filter_buf *out, size_t limit)
{
	struct h5_filter_buf blocks = {0};
	uint64_t size = 0, block_size = 0;
	int rc = check_array(f, &size, &block_size);

	if (rc)
		return rc;
	if (size > limit || f->decoded / PADDING_MAX > limit)
		return h5_filter_too_long("blosc2", limit);
	rc = h5_filter_buf_reserve(out, (size_t)size);
	if (!rc)
		rc = h5_filter_buf_reserve(&blocks, (size_t)f->decoded);
	if (!rc)
		rc = decode_frame(f, blocks.data);
	if (!rc) {
		copy_blocks(f, blocks.data, block_size, out->data);
		out->size = (size_t)size;
	}
	h5_filter_buf_release(&blocks);
	return rc;
}

int h5_blosc2_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in,
		     struct h5_filter_buf *out, size_t limit)
{
	struct frame f;
	int rc = read_frame(in, &f);

	(void)values; /* the frame has all that is needed */
	(void)count;
	if (rc)
		return rc;
	if (f.rank)
		return decode_array(&f, out, limit);
	if (f.decoded > limit)
		return h5_filter_too_long("blosc2", limit);
	rc = h5_filter_buf_reserve(out, (size_t)f.decoded);
	if (!rc)
		rc = decode_frame(&f, out->data);
	if (!rc)
		out->size = (size_t)f.decoded;
	return rc;
}

/* ---- encoding ---- */

static void put(uint8_t *p, unsigned n, uint64_t v)
{
	for (; n--; v >>= 8)
		p[n] = (uint8_t)v;
}

/* A list of numbers, each behind a byte `kind`. Returns its end. */
static uint8_t *put_shape(uint8_t *p, const uint32_t *shape, unsigned rank, unsigned kind, unsigned size)
{
	*p++ = (uint8_t)(0x90 + rank);
	for (unsigned i = 0; i < rank; i++, p += size) {
		*p++ = (uint8_t)kind;
		put(p, size, shape[i]);
	}
	return p;
}

/* The header of a frame, but for the sizes; an array of that rank in one block, or none. Returns its size. */
static size_t put_header(uint8_t *header, const uint32_t *shape, unsigned rank, const blosc2_cparams *how)
{
	static const uint8_t usual[F_END] = {
		0x9e, 0xa8, 'b',  '2',	'f',  'r', 'a',	 'm',  'e',  0, 0xd2, 0,    0, 0, 0,	0xcf, 0,    0,
		0,    0,    0,	  0,	0,    0,   0xa4, 0x12, 0,    0, 3,    0xd3, 0, 0, 0,	0,    0,    0,
		0,    0,    0xd3, 0,	0,    0,   0,	 0,    0,    0, 0,    0xd2, 0, 0, 0,	0,    0xd2, 0,
		0,    0,    0,	  0xd2, 0,    0,   0,	 0,    0xd1, 0, 0,    0xd1, 0, 1, 0xc2, 0xd8, 6,    0,
		0,    0,    0,	  0,	0,    0,   0,	 0,    0,    0, 0,    0,    0, 0, 0,	0x93, 0xcd, 0,
		7,    0xde, 0,	  0,	0xdc, 0,   0,
	};
	uint8_t *p = header + F_NAMES, *contents;
	int n;

	memcpy(header, usual, sizeof usual);
	header[F_COMPRESSOR] = (uint8_t)(how->clevel << 4 | how->compcode);
	header[F_FILTER] = how->filters[PIPELINE - 1];
	header[F_COMPRESSOR_TOO] = how->compcode;
	put(header + F_ELEMENT_SIZE, 4, (uint32_t)how->typesize);
	if (!rank)
		return F_END;
	put(header + F_METALAYERS, 2, 1);
	memcpy(p,
	       "\xa4"
	       "b2nd\xd2",
	       6);
	put(header + F_INDEX_SIZE, 2, 7 + 10);
	contents = p + 10 + 3;
	put(p + 6, 4, (uint64_t)(contents - header));
	memcpy(p + 10, "\xdc\0\1", 3);
	contents[0] = 0xc6;
	contents[5] = 0x97;
	contents[6] = 0;
	contents[7] = (uint8_t)rank;
	p = put_shape(contents + 8, shape, rank, 0xd3, 8);
	p = put_shape(p, shape, rank, 0xd2, 4);
	p = put_shape(p, shape, rank, 0xd2, 4);
	/* The type, in NumPy's way: bytes. */
	p[0] = 0;
	p[1] = 0xdb;
	n = sprintf((char *)p + 6, "|V%d", how->typesize);
	put(p + 2, 4, (uint32_t)n);
	p += 6 + n;
	put(contents + 1, 4, (uint64_t)(p - contents - 5));
	return (size_t)(p - header);
}

/* The chunk of offsets, of which there is one, 0, and the trailer of a frame without more. */
static const uint8_t frame_end[] = {
	5, 1, 7,    8, 8, 0, 0,	 0,    8, 0, 0, 0, 40, 0, 0, 0,	   0, 0,    0,	  0, 0, 1,    0, 0, 0,
	0, 0, 0,    0, 0, 0, 0,	 0,    0, 0, 0, 0, 0,  0, 0, 0x94, 1, 0x93, 0xcd, 0, 6, 0xde, 0, 0, 0xdc,
	0, 0, 0xce, 0, 0, 0, 35, 0xd8, 0, 0, 0, 0, 0,  0, 0, 0,	   0, 0,    0,	  0, 0, 0,    0, 0, 0,
};

/* Encodes behind the header, and sets the sizes in it. */
static int put_chunk(struct h5_filter_buf *out, size_t header, blosc2_cparams how, const uint8_t *data,
		     size_t size)
{
	blosc2_context *context = blosc2_create_cctx(how);
	int32_t nbytes, stored, block;
	int got;

	if (!context)
		return h5_fail(-ENOMEM, H5_UNDEF, "blosc2: out of memory");
	got = blosc2_compress_ctx(context, data, (int32_t)size, out->data + header,
				  (int32_t)(size + BLOSC2_MAX_OVERHEAD));
	blosc2_free_ctx(context);
	/* This is enough room for a copy, so it cannot fail for want of room. */
	if (got <= 0 || blosc2_cbuffer_sizes(out->data + header, &nbytes, &stored, &block) < 0)
		return h5_fail(-ENOMEM, H5_UNDEF, "blosc2: out of memory");
	memcpy(out->data + header + got, frame_end, sizeof frame_end);
	out->size = header + (size_t)got + sizeof frame_end;
	put(out->data + F_HEADER, 4, header);
	put(out->data + F_SIZE, 8, out->size);
	put(out->data + F_DECODED, 8, size);
	put(out->data + F_STORED, 8, (uint32_t)got);
	put(out->data + F_BLOCK, 4, (uint32_t)block);
	put(out->data + F_CHUNK, 4, size);
	return 0;
}

/* The rank of an array with these bytes; 0: other programs take the chunk for bytes. */
static unsigned array_rank(const uint32_t *values, unsigned count, uint32_t element_size, size_t size)
{
	unsigned rank = h5_filter_value(values, count, V_RANK, 0);
	uint64_t all = element_size;

	if (rank < 2 || rank > RANK_MAX || count < V_SHAPE + rank || size > BLOCK_MAX ||
	    element_size > BLOSC_MAX_TYPESIZE)
		return 0;
	for (unsigned i = 0; i < rank; i++)
		if (!h5_mul(all, values[V_SHAPE + i], &all))
			return 0;
	return all == size ? rank : 0;
}

int h5_blosc2_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
		     struct h5_filter_buf *out)
{
	uint32_t element_size = h5_filter_value(values, count, V_ELEMENT_SIZE, 0);
	uint32_t level = h5_filter_value(values, count, V_LEVEL, 5);
	uint32_t filter = h5_filter_value(values, count, V_FILTER, BLOSC_SHUFFLE);
	uint32_t code = h5_filter_value(values, count, V_COMPRESSOR, BLOSC_BLOSCLZ);
	const char *compressor = NULL;
	blosc2_cparams how = BLOSC2_CPARAMS_DEFAULTS;
	unsigned rank;
	int rc;

	if (code > BLOSC_ZSTD || blosc2_compcode_to_compname((int)code, &compressor) < 0)
		return h5_fail(-ENOTSUP, H5_UNDEF,
			       "filter 32026 (blosc2): compressor %u (%s) is not available", code,
			       compressor ? compressor : "unknown");
	if (!element_size || level > 9 || filter > BLOSC_BITSHUFFLE || size > BLOSC2_MAX_BUFFERSIZE)
		return h5_fail(-ENOTSUP, H5_UNDEF, "blosc2: %zu bytes, elements of %u, level %u, filter %u",
			       size, element_size, level, filter);
	if (!size)
		return 0;
	/* The library cannot decode a part of an element. */
	how.typesize = element_size > BLOSC_MAX_TYPESIZE || size % element_size ? 1 : (int32_t)element_size;
	how.clevel = (uint8_t)level;
	how.compcode = (uint8_t)code;
	how.nthreads = 1;
	memset(how.filters, 0, sizeof how.filters);
	how.filters[PIPELINE - 1] = (uint8_t)filter;
	rank = array_rank(values, count, element_size, size);
	if (rank)
		how.blocksize = (int32_t)size;
	rc = h5_filter_buf_reserve(out, ARRAY_MAX + size + BLOSC2_MAX_OVERHEAD + sizeof frame_end);
	if (rc)
		return rc;
	return put_chunk(out, put_header(out->data, values + V_SHAPE, rank, &how), how, data, size);
}
