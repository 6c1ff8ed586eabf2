#include "format/layout.h"

#include "base/error.h"

#include <string.h>

enum {
	FLAG_UNFILTERED_EDGES = 1,
	FLAG_SINGLE_FILTERED = 2,
};

static int check_rank(const struct h5_reader *r, unsigned dimensionality)
{
	if (dimensionality < 2 || dimensionality > H5_RANK_MAX + 1)
		return h5_fail(-EUCLEAN, r->address, "data layout: chunks of %u dimensions", dimensionality);
	return 0;
}

/* The dimensions of a chunk and the element size after them, `width` bytes each. */
static int decode_dims(struct h5_reader *r, unsigned dimensionality, unsigned width,
		       struct h5_chunk_layout *chunk)
{
	uint64_t element_size;
	int rc;

	chunk->rank = dimensionality - 1;
	for (unsigned i = 0; i < chunk->rank; i++)
		chunk->dims[i] = h5_read_uint(r, width);
	element_size = h5_read_uint(r, width);
	rc = h5_reader_check(r, "data layout");
	if (rc)
		return rc;
	for (unsigned i = 0; i < chunk->rank; i++)
		if (!chunk->dims[i])
			return h5_fail(-EUCLEAN, r->address, "data layout: chunk dimension %u is 0", i);
	if (!element_size || element_size > UINT32_MAX)
		return h5_fail(-EUCLEAN, r->address, "data layout: element size is %llu",
			       (unsigned long long)element_size);
	chunk->element_size = (uint32_t)element_size;
	return 0;
}

/* Versions 1 and 2, after the version.
 *
 *   offset  size  field
 *        1     1  dimensionality n; of chunks with one more for the element
 *        2     1  layout class
 *        3     5  reserved
 *        8     O  address: of the data (contiguous), of the B-tree (chunked); not for compact
 *            4*n  dimension sizes; those of a chunk end with the element size
 *              4  size, and the data: compact only                                         */
static int decode_old(struct h5_reader *r, struct h5_layout *layout)
{
	unsigned dimensionality = h5_read_u8(r);
	uint64_t address = H5_UNDEF;
	int rc;

	layout->class = h5_read_u8(r);
	h5_reader_skip(r, 5);
	if (layout->class != H5_LAYOUT_COMPACT)
		address = h5_read_offset(r);
	if (layout->class == H5_LAYOUT_CHUNKED) {
		layout->chunked.index = H5_INDEX_BTREE1;
		layout->chunked.address = address;
		rc = check_rank(r, dimensionality);
		return rc ? rc : decode_dims(r, dimensionality, 4, &layout->chunked);
	}
	/* The dimensions are too narrow for large datasets: the dataspace has the true ones. */
	h5_reader_skip(r, 4 * (size_t)dimensionality);
	switch (layout->class) {
	case H5_LAYOUT_COMPACT:
		layout->compact.size = h5_read_u32(r);
		layout->compact.data = h5_read_bytes(r, layout->compact.size);
		break;
	case H5_LAYOUT_CONTIGUOUS:
		layout->contiguous.address = address;
		layout->contiguous.size = UINT64_MAX;
		break;
	default:
		return h5_fail(-EUCLEAN, r->address, "data layout: class %u in version %u", layout->class,
			       layout->version);
	}
	return h5_reader_check(r, "data layout");
}

/* Chunks in version 3, after the class.
 *
 *   offset  size  field
 *        2     1  dimensionality n, with the element
 *        3     O  address of the version 1 B-tree
 *            4*n  dimension sizes, the last the element size */
static int decode_chunked_v3(struct h5_reader *r, struct h5_chunk_layout *chunk)
{
	unsigned dimensionality = h5_read_u8(r);
	int rc = check_rank(r, dimensionality);

	if (rc)
		return rc;
	chunk->index = H5_INDEX_BTREE1;
	chunk->address = h5_read_offset(r);
	return decode_dims(r, dimensionality, 4, chunk);
}

/* Chunks in versions 4 and 5, after the class.
 *
 *   offset  size  field
 *        2     1  flags: bit 0 partial edge chunks are not filtered, bit 1 single chunk with filter
 *        3     1  dimensionality n, with the element
 *        4     1  e, bytes of a dimension size
 *        5   e*n  dimension sizes, the last the element size
 *              1  chunk index type
 *                 what belongs to the type:
 *                   1 single chunk, flag bit 1: size of the filtered chunk L, filter mask 4
 *                   3 fixed array: page bits 1
 *                   4 extensible array: max bits, index elements, min pointers, min elements, page bits: 1
 * each 5 version 2 B-tree: node size 4, split percent 1, merge percent 1 O  address */
static int decode_chunked_v4(struct h5_reader *r, struct h5_chunk_layout *chunk)
{
	uint8_t flags = h5_read_u8(r);
	unsigned dimensionality = h5_read_u8(r);
	unsigned width = h5_read_u8(r);
	int rc = h5_reader_check(r, "data layout");

	if (!rc)
		rc = check_rank(r, dimensionality);
	if (!rc && flags & ~(FLAG_UNFILTERED_EDGES | FLAG_SINGLE_FILTERED))
		rc = h5_fail(-ENOTSUP, r->address, "data layout: unknown chunk flags 0x%02x", flags);
	if (!rc && (width < 1 || width > 8))
		rc = h5_fail(-EUCLEAN, r->address, "data layout: dimension sizes of %u bytes", width);
	if (!rc)
		rc = decode_dims(r, dimensionality, width, chunk);
	if (rc)
		return rc;
	chunk->unfiltered_edges = flags & FLAG_UNFILTERED_EDGES;
	chunk->index = h5_read_u8(r);
	switch (chunk->index) {
	case H5_INDEX_SINGLE:
		if (flags & FLAG_SINGLE_FILTERED) {
			chunk->single.filtered = true;
			chunk->single.size = h5_read_length(r);
			chunk->single.filter_mask = h5_read_u32(r);
		}
		break;
	case H5_INDEX_IMPLICIT:
		break;
	case H5_INDEX_FIXED_ARRAY:
		h5_reader_skip(r, 1);
		break;
	case H5_INDEX_EXTENSIBLE_ARRAY:
		h5_reader_skip(r, 5);
		break;
	case H5_INDEX_BTREE2:
		h5_reader_skip(r, 6);
		break;
	default:
		return h5_fail(-EUCLEAN, r->address, "data layout: chunk index type %u", chunk->index);
	}
	chunk->address = h5_read_offset(r);
	return h5_reader_check(r, "data layout");
}

/* Versions 3 to 5.
 *
 *   offset  size  field
 *        0     1  version
 *        1     1  layout class
 *                 compact: size 2, data; contiguous: address O, size L; chunked: above;
 *                 virtual: address of the global heap collection O, index in it 4      */
static int decode_new(struct h5_reader *r, struct h5_layout *layout)
{
	layout->class = h5_read_u8(r);
	switch (layout->class) {
	case H5_LAYOUT_COMPACT:
		layout->compact.size = h5_read_u16(r);
		layout->compact.data = h5_read_bytes(r, layout->compact.size);
		break;
	case H5_LAYOUT_CONTIGUOUS:
		layout->contiguous.address = h5_read_offset(r);
		layout->contiguous.size = h5_read_length(r);
		break;
	case H5_LAYOUT_CHUNKED:
		return layout->version == 3 ? decode_chunked_v3(r, &layout->chunked)
					    : decode_chunked_v4(r, &layout->chunked);
	case H5_LAYOUT_VIRTUAL:
		if (layout->version == 3)
			return h5_fail(-EUCLEAN, r->address, "data layout: virtual in version 3");
		layout->virtual.heap = h5_read_offset(r);
		layout->virtual.index = h5_read_u32(r);
		break;
	case H5_LAYOUT_STRUCTURED:
		return h5_fail(-ENOTSUP, r->address, "data layout: structured chunks are not supported");
	default:
		return h5_fail(-EUCLEAN, r->address, "data layout: class %u", layout->class);
	}
	return h5_reader_check(r, "data layout");
}

int h5_layout_decode(struct h5_reader *r, struct h5_layout *layout)
{
	int rc;

	memset(layout, 0, sizeof *layout);
	layout->version = h5_read_u8(r);
	rc = h5_reader_check(r, "data layout");
	if (rc)
		return rc;
	if (layout->version < 1 || layout->version > 5)
		return h5_fail(-ENOTSUP, r->address, "data layout: version %u is not supported",
			       layout->version);
	return layout->version < 3 ? decode_old(r, layout) : decode_new(r, layout);
}
