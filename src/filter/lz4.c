/* Filter 32004: LZ4 blocks, each on its own. values[0] is the size of a block; 0 or none: 1 GiB. All numbers
 * are big endian.
 *
 *   0   8  bytes of the decoded chunk
 *   8   4  bytes of a decoded block; the last one may have fewer
 *   12     for each block:
 *            0  4  bytes stored; if they are as many as decoded, the block is not compressed
 *            4     these bytes                                                              */
#include "base/checked.h"
#include "base/error.h"
#include "base/reader.h"
#include "base/writer.h"
#include "filter/filters.h"

#include <assert.h>
#include <lz4.h>
#include <string.h>

enum { HEADER = 12, BLOCK_DEFAULT = 1 << 30 };

int h5_lz4_block(const uint8_t *data, size_t n, uint8_t *out, size_t size)
{
	int got = -1;

	if (n <= INT32_MAX && size <= INT32_MAX)
		got = LZ4_decompress_safe((const char *)data, (char *)out, (int)n, (int)size);
	if (got < 0 || (size_t)got != size)
		return h5_fail(-EUCLEAN, H5_UNDEF, "lz4: bad block, of %zu bytes in %zu", size, n);
	return 0;
}

static int expand(struct h5_reader *r, struct h5_filter_buf *out, size_t size, size_t block_size)
{
	while (out->size < size) {
		size_t room = (size_t)h5_min(block_size, size - out->size);
		size_t stored = __builtin_bswap32(h5_read_u32(r));
		const uint8_t *data = h5_read_bytes(r, stored);
		int rc = h5_reader_check(r, "lz4 block");

		if (rc)
			return rc;
		if (stored == room)
			memcpy(out->data + out->size, data, room);
		else
			rc = h5_lz4_block(data, stored, out->data + out->size, room);
		if (rc)
			return rc;
		out->size += room;
	}
	return 0;
}

int h5_lz4_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in, struct h5_filter_buf *out,
		  size_t limit)
{
	struct h5_reader r = h5_reader_init(in->data, in->size, H5_UNDEF, 8, 8);
	uint64_t size = __builtin_bswap64(h5_read_u64(&r));
	uint32_t block_size = __builtin_bswap32(h5_read_u32(&r));
	int rc = h5_reader_check(&r, "lz4 header");

	(void)values; /* the block size */
	(void)count;
	if (rc)
		return rc;
	if (!block_size && size)
		return h5_fail(-EUCLEAN, H5_UNDEF, "lz4: %llu bytes in blocks of nothing",
			       (unsigned long long)size);
	if (size > limit)
		return h5_filter_too_long("lz4", limit);
	rc = h5_filter_buf_reserve(out, (size_t)size);
	if (!rc)
		rc = expand(&r, out, (size_t)size, block_size);
	return rc;
}

int h5_lz4_pack(const uint8_t *data, size_t n, int level, struct h5_filter_buf *out)
{
	int stored, rc;

	(void)level;
	if (n > LZ4_MAX_INPUT_SIZE)
		return h5_fail(-ENOTSUP, H5_UNDEF, "lz4: %zu bytes in one block", n);
	rc = h5_filter_buf_grow(out, (size_t)LZ4_compressBound((int)n));
	if (rc)
		return rc;
	stored = LZ4_compress_default((const char *)data, (char *)out->data + out->size, (int)n,
				      LZ4_compressBound((int)n));
	if (stored <= 0)
		return h5_fail(-ENOMEM, H5_UNDEF, "lz4: out of memory");
	out->size += (size_t)stored;
	return 0;
}

static int pack_block(const uint8_t *data, size_t n, struct h5_filter_buf *out)
{
	size_t begin;
	int rc;

	/* The caller has seen to it for the first block; each has left more of the room that it had asked
	 * for. */
	assert(out->capacity - out->size >= 4);
	begin = out->size += 4;
	rc = h5_lz4_pack(data, n, 0, out);
	if (rc)
		return rc;
	if (out->size - begin >= n) {
		memcpy(out->data + begin, data, n);
		out->size = begin + n;
	}
	h5_uint_to(out->data + begin - 4, __builtin_bswap32((uint32_t)(out->size - begin)), 4);
	return 0;
}

int h5_lz4_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
		  struct h5_filter_buf *out)
{
	size_t block = (size_t)h5_min(count && values[0] ? values[0] : BLOCK_DEFAULT, size);
	int rc = h5_filter_buf_reserve(out, HEADER + 4 + (size_t)LZ4_COMPRESSBOUND(block));

	if (rc)
		return rc;
	h5_uint_to(out->data, __builtin_bswap64(size), 8);
	h5_uint_to(out->data + 8, __builtin_bswap32((uint32_t)block), 4);
	out->size = HEADER;
	for (size_t at = 0; at < size && !rc; at += block)
		rc = pack_block(data + at, (size_t)h5_min(block, size - at), out);
	return rc;
}
