/* Filter 32008, bitshuffle: in blocks of elements, bit 0 of all elements comes first, then bit 1, and so on;
 * each block may be compressed.
 *
 * values: version (two numbers), size of an element, elements per block (0: default_block()), compression (0
 * none, 2 LZ4, 3 Zstandard), level. Blocks hold a multiple of eight elements; the last one is shorter, and up
 * to seven elements after it stay as they are. Compressed, all numbers big endian:
 *
 *   0   8  bytes of all elements
 *   8   4  bytes of a decoded block
 *   12     for each block:
 *            0  4  bytes stored
 *            4     these bytes      */
#include "base/checked.h"
#include "base/error.h"
#include "base/reader.h"
#include "base/writer.h"
#include "filter/filters.h"
#include "filter/planes.h"

#include <assert.h>
#include <string.h>

enum {
	HEADER = 12,
	LZ4 = 2,
	ZSTD = 3,
	BLOCK_BYTES = 8192, /* bytes of a block, if the parameters do not tell its size */
	BLOCK_MIN = 128,    /* least elements of such a block */
};

/* Transposes 8 x 8 bits: bit i of byte k becomes bit k of byte i. */
static uint64_t transpose(uint64_t v)
{
	uint64_t t = (v ^ v >> 7) & 0x00AA00AA00AA00AA;

	v ^= t ^ t << 7;
	t = (v ^ v >> 14) & 0x0000CCCC0000CCCC;
	v ^= t ^ t << 14;
	t = (v ^ v >> 28) & 0x00000000F0F0F0F0;
	return v ^ t ^ t << 28;
}

/* Reads eight bytes, which lie `step` bytes apart. */
static uint64_t gather(const uint8_t *p, size_t step)
{
	uint64_t v = 0;

	for (unsigned k = 0; k < 8; k++)
		v |= (uint64_t)p[k * step] << 8 * k;
	return v;
}

static void scatter(uint8_t *p, size_t step, uint64_t v)
{
	for (unsigned k = 0; k < 8; k++)
		p[k * step] = (uint8_t)(v >> 8 * k);
}

typedef uint64_t pair __attribute__((vector_size(16)));

/* Does what transpose() does, with both halves of each vector. */
static inline void transpose_all(h5_bytes *v)
{
	H5_UNROLL
	for (unsigned i = 0; i < 8; i++) {
		pair w = (pair)v[i], t = (w ^ w >> 7) & 0x00AA00AA00AA00AA;

		w ^= t ^ t << 7;
		t = (w ^ w >> 14) & 0x0000CCCC0000CCCC;
		w ^= t ^ t << 14;
		t = (w ^ w >> 28) & 0x00000000F0F0F0F0;
		v[i] = (h5_bytes)(w ^ t ^ t << 28);
	}
}

enum {
	ROW = 16, /* bytes of each row that are transposed at once */
	/* On big-endian machines transpose_all() would do something else. */
	VECTORS = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
};

/* Makes a plane of n elements, a multiple of eight, from its eight rows of bits; the next function does the
 * reverse. */
static void plane_from_rows(const uint8_t *rows, size_t n, uint8_t *plane)
{
	size_t step = n / 8, i = 0;
	h5_bytes v[8];

	for (; VECTORS && step - i >= ROW; i += ROW) {
		H5_UNROLL
		for (unsigned k = 0; k < 8; k++)
			memcpy(&v[k], rows + k * step + i, ROW);
		H5_UNROLL
		for (unsigned turn = 0; turn < 3; turn++)
			h5_zip(v, 8);
		transpose_all(v);
		memcpy(plane + 8 * i, v, sizeof v);
	}
	for (; i < step; i++)
		scatter(plane + 8 * i, 1, transpose(gather(rows + i, step)));
}

static void plane_to_rows(const uint8_t *plane, size_t n, uint8_t *rows)
{
	size_t step = n / 8, i = 0;
	h5_bytes v[8];

	for (; VECTORS && step - i >= ROW; i += ROW) {
		memcpy(v, plane + 8 * i, sizeof v);
		transpose_all(v);
		H5_UNROLL
		for (unsigned turn = 0; turn < 4; turn++)
			h5_zip(v, 8);
		H5_UNROLL
		for (unsigned k = 0; k < 8; k++)
			memcpy(rows + k * step + i, &v[k], ROW);
	}
	for (; i < step; i++)
		scatter(rows + i, step, transpose(gather(plane + 8 * i, 1)));
}

struct bitshuffle {
	size_t element_size, block; /* bytes */
	uint64_t eight;		    /* bytes of eight elements; a block has a multiple of these */
	h5_filter_block *expand;    /* NULL: not compressed */
	h5_filter_pack *pack;
	int level;
	struct h5_filter_buf bits;   /* a block that was compressed */
	struct h5_filter_buf planes; /* a block between elements and bits */
};

/* A block of n elements, a multiple of eight. */
static void unshuffle(struct bitshuffle *b, const uint8_t *in, size_t n, uint8_t *out)
{
	for (size_t at = 0; at < n * b->element_size; at += n)
		plane_from_rows(in + at, n, b->planes.data + at);
	h5_planes_merge(b->planes.data, n, n, b->element_size, out);
}

static void shuffle(struct bitshuffle *b, const uint8_t *in, size_t n, uint8_t *out)
{
	h5_planes_split(in, n, b->element_size, b->planes.data);
	for (size_t at = 0; at < n * b->element_size; at += n)
		plane_to_rows(b->planes.data + at, n, out + at);
}

/* Gives the next block of n bytes, uncompressed but shuffled; valid until the next call. */
static int next_block(struct bitshuffle *b, struct h5_reader *r, size_t n, const uint8_t **block)
{
	size_t stored = b->expand ? __builtin_bswap32(h5_read_u32(r)) : n;
	int rc;

	*block = h5_read_bytes(r, stored);
	rc = h5_reader_check(r, "bitshuffle block");
	if (rc || !b->expand)
		return rc;
	rc = b->expand(*block, stored, b->bits.data, n);
	*block = b->bits.data;
	return rc;
}

static int expand(struct bitshuffle *b, struct h5_reader *r, struct h5_filter_buf *out, size_t size)
{
	const uint8_t *block;
	int rc;

	while (size - out->size >= b->eight) {
		size_t n = (size_t)(h5_min(b->block, size - out->size) / b->eight * 8);

		rc = next_block(b, r, n * b->element_size, &block);
		if (rc)
			return rc;
		unshuffle(b, block, n, out->data + out->size);
		out->size += n * b->element_size;
	}
	block = h5_read_bytes(r, size - out->size);
	rc = h5_reader_check(r, "bitshuffle");
	if (rc)
		return rc;
	memcpy(out->data + out->size, block, size - out->size);
	out->size = size;
	return 0;
}

/* Bytes of a block, as the parameters say. */
static uint64_t default_block(uint64_t element_size, uint64_t elements)
{
	if (!elements) {
		elements = BLOCK_BYTES / element_size / 8 * 8;
		if (elements < BLOCK_MIN)
			elements = BLOCK_MIN;
	}
	return elements * element_size;
}

static int init(struct bitshuffle *b, const uint32_t *values, unsigned count)
{
	static const struct {
		h5_filter_block *expand;
		h5_filter_pack *pack;
	} compressions[] = {[LZ4] = {h5_lz4_block, h5_lz4_pack}, [ZSTD] = {h5_zstd_block, h5_zstd_pack}};
	uint32_t compression = count > 4 ? values[4] : 0;

	if (count < 3 || !values[2])
		return h5_fail(-EUCLEAN, H5_UNDEF, "bitshuffle: no element size");
	b->element_size = values[2];
	b->eight = 8 * (uint64_t)values[2];
	if (!compression)
		return 0;
	b->level = count > 5 ? (int)values[5] : 0;
	if (compression < sizeof compressions / sizeof *compressions) {
		b->expand = compressions[compression].expand;
		b->pack = compressions[compression].pack;
	}
	if (!b->expand)
		return h5_fail(-ENOTSUP, H5_UNDEF,
			       "filter 32008 (bitshuffle): compression %u (%s) is not available", compression,
			       compression == LZ4    ? "lz4"
			       : compression == ZSTD ? "zstd"
						     : "unknown");
	return 0;
}

int h5_bitshuffle_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in,
			 struct h5_filter_buf *out, size_t limit)
{
	struct h5_reader r = h5_reader_init(in->data, in->size, H5_UNDEF, 8, 8);
	struct bitshuffle b = {0};
	uint64_t size = in->size, block;
	int rc = init(&b, values, count);

	if (rc)
		return rc;
	block = default_block(b.element_size, count > 3 ? values[3] : 0);
	if (b.expand) {
		size = __builtin_bswap64(h5_read_u64(&r));
		block = __builtin_bswap32(h5_read_u32(&r));
		rc = h5_reader_check(&r, "bitshuffle header");
		if (rc)
			return rc;
	}
	if (!block || block % b.eight)
		return h5_fail(-EUCLEAN, H5_UNDEF, "bitshuffle: %llu bytes in blocks of %llu",
			       (unsigned long long)size, (unsigned long long)block);
	if (size > limit)
		return h5_filter_too_long("bitshuffle", limit);
	b.block = (size_t)h5_min(block, size);
	rc = h5_filter_buf_reserve(out, (size_t)size);
	if (!rc)
		rc = h5_filter_buf_reserve(&b.planes, b.block);
	if (!rc && b.expand)
		rc = h5_filter_buf_reserve(&b.bits, b.block);
	if (!rc)
		rc = expand(&b, &r, out, (size_t)size);
	h5_filter_buf_release(&b.bits);
	h5_filter_buf_release(&b.planes);
	return rc;
}

static int pack_block(struct bitshuffle *b, const uint8_t *data, size_t n, struct h5_filter_buf *out)
{
	size_t begin;
	int rc;

	if (!b->pack) {
		shuffle(b, data, n, out->data + out->size);
		out->size += n * b->element_size;
		return 0;
	}
	shuffle(b, data, n, b->bits.data);
	/* The caller has seen to it for the first block; each has left more of the room that it had asked
	 * for. */
	assert(out->capacity - out->size >= 4);
	begin = out->size += 4;
	rc = b->pack(b->bits.data, n * b->element_size, b->level, out);
	if (!rc)
		h5_uint_to(out->data + begin - 4, __builtin_bswap32((uint32_t)(out->size - begin)), 4);
	return rc;
}

static int pack(struct bitshuffle *b, const uint8_t *data, size_t size, struct h5_filter_buf *out)
{
	size_t at = 0;
	int rc = 0;

	if (b->pack) {
		h5_uint_to(out->data, __builtin_bswap64(size), 8);
		h5_uint_to(out->data + 8, __builtin_bswap32((uint32_t)b->block), 4);
		out->size = HEADER;
	}
	while (size - at >= b->eight && !rc) {
		size_t n = (size_t)(h5_min(b->block, size - at) / b->eight * 8);

		rc = pack_block(b, data + at, n, out);
		at += n * b->element_size;
	}
	if (!rc)
		rc = h5_filter_buf_grow(out, size - at);
	if (!rc) {
		memcpy(out->data + out->size, data + at, size - at);
		out->size += size - at;
	}
	return rc;
}

int h5_bitshuffle_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
			 struct h5_filter_buf *out)
{
	struct bitshuffle b = {0};
	uint64_t block;
	int rc = init(&b, values, count);

	if (rc)
		return rc;
	block = default_block(b.element_size, count > 3 ? values[3] : 0);
	if (size % b.element_size || block > UINT32_MAX || block % b.eight)
		return h5_fail(-ENOTSUP, H5_UNDEF,
			       "bitshuffle: %zu bytes in blocks of %llu, elements of %zu bytes", size,
			       (unsigned long long)block, b.element_size);
	b.block = (size_t)block;
	rc = h5_filter_buf_reserve(out, HEADER + size);
	if (!rc)
		rc = h5_filter_buf_reserve(&b.planes, (size_t)h5_min(block, size));
	if (!rc && b.pack)
		rc = h5_filter_buf_reserve(&b.bits, (size_t)h5_min(block, size));
	if (!rc)
		rc = pack(&b, data, size, out);
	h5_filter_buf_release(&b.bits);
	h5_filter_buf_release(&b.planes);
	return rc;
}
