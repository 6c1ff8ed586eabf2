#include "format/layout.h"

#include "base/checked.h"
#include "base/error.h"

#include <assert.h>
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
	layout->changing = h5_reader_at(r);
	if (layout->class != H5_LAYOUT_COMPACT)
		address = h5_read_offset(r);
	if (layout->class == H5_LAYOUT_CHUNKED) {
		layout->chunked.index = H5_INDEX_BTREE1;
		layout->chunked.address = address;
		rc = check_rank(r, dimensionality);
		return rc ? rc : decode_dims(r, dimensionality, 4, &layout->chunked);
	}
	/* These fields are too narrow for large datasets; the dataspace has the true dimensions. */
	h5_reader_skip(r, 4 * (size_t)dimensionality);
	switch (layout->class) {
	case H5_LAYOUT_COMPACT:
		layout->compact.size = h5_read_u32(r);
		layout->changing = h5_reader_at(r);
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
static int decode_chunked_v3(struct h5_reader *r, struct h5_layout *layout)
{
	struct h5_chunk_layout *chunk = &layout->chunked;
	unsigned dimensionality = h5_read_u8(r);
	int rc = check_rank(r, dimensionality);

	if (rc)
		return rc;
	chunk->index = H5_INDEX_BTREE1;
	layout->changing = h5_reader_at(r);
	chunk->address = h5_read_offset(r);
	return decode_dims(r, dimensionality, 4, chunk);
}

/* The begin of chunks in versions 4 and 5: flags, dimensionality n, bytes of a dimension size, and the sizes.
 */
static int decode_chunk_shape(struct h5_reader *r, struct h5_chunk_layout *chunk)
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
	chunk->unfiltered_edges = flags & FLAG_UNFILTERED_EDGES;
	chunk->single.filtered = flags & FLAG_SINGLE_FILTERED;
	return rc;
}

/* The creation parameters of the indexes that have a header. */
static int decode_parameters(struct h5_reader *r, struct h5_chunk_layout *chunk)
{
	switch (chunk->index) {
	case H5_INDEX_FIXED_ARRAY:
		chunk->fixed_array.page_bits = h5_read_u8(r);
		break;
	case H5_INDEX_EXTENSIBLE_ARRAY:
		chunk->extensible_array.max_bits = h5_read_u8(r);
		chunk->extensible_array.index_elements = h5_read_u8(r);
		chunk->extensible_array.min_pointers = h5_read_u8(r);
		chunk->extensible_array.min_elements = h5_read_u8(r);
		chunk->extensible_array.page_bits = h5_read_u8(r);
		break;
	case H5_INDEX_BTREE2:
		chunk->btree2.node_size = h5_read_u32(r);
		chunk->btree2.split_percent = h5_read_u8(r);
		chunk->btree2.merge_percent = h5_read_u8(r);
		break;
	default:
		return h5_fail(-EUCLEAN, r->address, "data layout: chunk index type %u", chunk->index);
	}
	return 0;
}

/* Chunks in versions 4 and 5, after the class.
 *
 *   offset  size  field
 *        2     1  flags: bit 0 partial edge chunks are not filtered, bit 1 single chunk with filter
 *        3     1  dimensionality n, with the element
 *        4     1  e, bytes of a dimension size
 *        5   e*n  dimension sizes, the last the element size
 *              1  chunk index type
 *                 what belongs to the type, fields of 1 byte unless stated:
 *                   1 single chunk, flag bit 1: size of the filtered chunk L, filter mask 4
 *                   3 fixed array: page bits
 *                   4 extensible array: max bits, index elements, min pointers, min elements, page bits
 *                   5 version 2 B-tree: node size 4, split percent, merge percent
 *              O  address                                                                                 */
static int decode_chunked_v4(struct h5_reader *r, struct h5_layout *layout)
{
	struct h5_chunk_layout *chunk = &layout->chunked;
	int rc = decode_chunk_shape(r, chunk);

	if (rc)
		return rc;
	chunk->index = h5_read_u8(r);
	layout->changing = h5_reader_at(r);
	if (chunk->index == H5_INDEX_SINGLE && chunk->single.filtered) {
		chunk->single.size = h5_read_length(r);
		chunk->single.filter_mask = h5_read_u32(r);
	} else if (chunk->index != H5_INDEX_SINGLE && chunk->index != H5_INDEX_IMPLICIT) {
		rc = decode_parameters(r, chunk);
		layout->changing = h5_reader_at(r);
	}
	chunk->address = h5_read_offset(r);
	return rc ? rc : h5_reader_check(r, "data layout");
}

unsigned h5_chunk_metadata_size(const struct h5_chunk_layout *chunk, bool filtered)
{
	unsigned offsets = (H5_SECTIONS - 1) * chunk->structured.offset_size;

	return filtered ? offsets + H5_SECTIONS * (chunk->structured.offset_size + 4u) : offsets;
}

/* The description of the sections of all chunks. Only that of sparse data of fixed size is known.
 *
 *   size  field
 *      1  offset size
 *      1  number of sections
 *      1  number of sections with metadata m, which carry checksums
 *      m  their numbers                                              */
static bool decode_sections(struct h5_reader *r, struct h5_chunk_layout *chunk)
{
	unsigned sections, checked, first;

	chunk->structured.offset_size = h5_read_u8(r);
	sections = h5_read_u8(r);
	checked = h5_read_u8(r);
	first = h5_read_u8(r);
	return !r->err && chunk->structured.offset_size >= 1 && chunk->structured.offset_size <= 8 &&
	       sections == H5_SECTIONS && checked == 1 && first == 0;
}

/* The single chunk: its size (`width` bytes), its metadata, its address O. */
static void decode_single(struct h5_reader *r, unsigned width, struct h5_chunk_layout *chunk)
{
	unsigned n = h5_chunk_metadata_size(chunk, chunk->single.filtered);
	const uint8_t *metadata;

	chunk->single.size_width = (uint8_t)width;
	chunk->single.size = h5_read_uint(r, width);
	metadata = h5_read_bytes(r, n);
	if (metadata)
		memcpy(chunk->single.metadata, metadata, n);
	chunk->address = h5_read_offset(r);
}

/* Bytes of the field for the single chunk's size: one more than the size of an unfiltered chunk needs, or
 * eight. If there are eight, the upper ones are zero. If not, a section's offset begins there, which is zero
 * only if the chunk is not stored, and then the address behind it says so. */
static unsigned single_width(struct h5_reader r, const struct h5_chunk_layout *chunk, unsigned narrow)
{
	size_t metadata = h5_chunk_metadata_size(chunk, chunk->single.filtered);
	size_t rest = metadata + r.size_of_offsets;

	assert(narrow <= 8);
	if (h5_reader_left(&r) < 8 + rest)
		return narrow;
	h5_reader_skip(&r, narrow);
	if (h5_read_uint(&r, 8 - narrow))
		return narrow;
	h5_reader_skip(&r, narrow + metadata - 8);
	return h5_read_offset(&r) == H5_UNDEF ? narrow : 8;
}

/* In RFC version 16 the description of the sections comes after the single chunk, but is needed to know where
 * that ends. */
static bool decode_single_early(struct h5_reader *r, struct h5_chunk_layout *chunk, unsigned narrow)
{
	for (unsigned i = 0; i < 4; i++) {
		struct h5_reader at = *r;
		unsigned offset_size = i % 2 ? 4 : 8;

		chunk->structured.offset_size = (uint8_t)offset_size;
		decode_single(&at, i / 2 ? 8 : narrow, chunk);
		if (decode_sections(&at, chunk) && chunk->structured.offset_size == offset_size) {
			*r = at;
			return true;
		}
	}
	return false;
}

/* Structured chunks, version 5, after the class.
 *
 *   offset  size  field
 *        2     1  version of these properties, 0
 *        3     2  structured chunk type: sparse, as 0 or as bit 0
 *        5        as chunks above: flags, dimensionality, bytes of a size, sizes
 *                 description of the sections, above; in RFC version 16 behind the address
 *              1  chunk index type
 *                 what belongs to the type; single chunk: its size and metadata
 *              O  address
 *
 * The first byte of the description is 8, which no index type is. */
static int decode_structured(struct h5_reader *r, struct h5_layout *layout)
{
	struct h5_chunk_layout *chunk = &layout->chunked;
	unsigned version = h5_read_u8(r), type = h5_read_u16(r), narrow;
	uint64_t bytes;
	int rc;

	if (version)
		return h5_fail(-ENOTSUP, r->address,
			       "data layout: version %u of structured chunks is not supported", version);
	rc = decode_chunk_shape(r, chunk);
	if (rc)
		return rc;
	if (!h5_product(chunk->dims, chunk->rank, &bytes) || !h5_mul(bytes, chunk->element_size, &bytes))
		return h5_fail(-EUCLEAN, r->address, "data layout: chunks of more than 2^64 bytes");
	narrow = (unsigned)h5_min(8, h5_limit_size(bytes) + 1);
	chunk->address = H5_UNDEF;
	chunk->structured.sparse = type < 2;
	chunk->structured.early = h5_reader_left(r) && *r->p != 8;
	if (!chunk->structured.early && chunk->structured.sparse)
		chunk->structured.sparse = decode_sections(r, chunk);
	if (!chunk->structured.sparse)
		return h5_reader_check(r, "data layout");
	chunk->index = h5_read_u8(r);
	layout->changing = h5_reader_at(r);
	if (chunk->index != H5_INDEX_SINGLE) {
		rc = decode_parameters(r, chunk);
		layout->changing = h5_reader_at(r);
		chunk->address = h5_read_offset(r);
		if (!rc && chunk->structured.early)
			chunk->structured.sparse = decode_sections(r, chunk);
	} else if (chunk->structured.early) {
		chunk->structured.sparse = decode_single_early(r, chunk, narrow);
	} else {
		decode_single(r, single_width(*r, chunk, narrow), chunk);
	}
	return rc ? rc : h5_reader_check(r, "data layout");
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
		layout->changing = h5_reader_at(r);
		layout->compact.data = h5_read_bytes(r, layout->compact.size);
		break;
	case H5_LAYOUT_CONTIGUOUS:
		layout->changing = h5_reader_at(r);
		layout->contiguous.address = h5_read_offset(r);
		layout->contiguous.size = h5_read_length(r);
		break;
	case H5_LAYOUT_CHUNKED:
		return layout->version == 3 ? decode_chunked_v3(r, layout) : decode_chunked_v4(r, layout);
	case H5_LAYOUT_VIRTUAL:
		if (layout->version == 3)
			return h5_fail(-EUCLEAN, r->address, "data layout: virtual in version 3");
		layout->virtual.heap = h5_read_offset(r);
		layout->virtual.index = h5_read_u32(r);
		break;
	case H5_LAYOUT_STRUCTURED:
		if (layout->version < 5)
			return h5_fail(-EUCLEAN, r->address, "data layout: structured chunks in version %u",
				       layout->version);
		return decode_structured(r, layout);
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

static void encode_chunked_v3(struct h5_writer *w, const struct h5_chunk_layout *chunk)
{
	w->err |= chunk->index != H5_INDEX_BTREE1;
	h5_write_u8(w, (uint8_t)(chunk->rank + 1));
	h5_write_offset(w, chunk->address);
	for (unsigned i = 0; i < chunk->rank; i++) {
		w->err |= chunk->dims[i] > UINT32_MAX;
		h5_write_u32(w, (uint32_t)chunk->dims[i]);
	}
	h5_write_u32(w, chunk->element_size);
}

/* The creation parameters of the index. */
static void encode_parameters(struct h5_writer *w, const struct h5_chunk_layout *chunk)
{
	switch (chunk->index) {
	case H5_INDEX_SINGLE:
		if (chunk->single.filtered) {
			h5_write_length(w, chunk->single.size);
			h5_write_u32(w, chunk->single.filter_mask);
		}
		break;
	case H5_INDEX_IMPLICIT:
		break;
	case H5_INDEX_FIXED_ARRAY:
		h5_write_u8(w, chunk->fixed_array.page_bits);
		break;
	case H5_INDEX_EXTENSIBLE_ARRAY:
		h5_write_u8(w, chunk->extensible_array.max_bits);
		h5_write_u8(w, chunk->extensible_array.index_elements);
		h5_write_u8(w, chunk->extensible_array.min_pointers);
		h5_write_u8(w, chunk->extensible_array.min_elements);
		h5_write_u8(w, chunk->extensible_array.page_bits);
		break;
	case H5_INDEX_BTREE2:
		h5_write_u32(w, chunk->btree2.node_size);
		h5_write_u8(w, chunk->btree2.split_percent);
		h5_write_u8(w, chunk->btree2.merge_percent);
		break;
	default:
		w->err = true;
	}
}

static void encode_chunked_v4(struct h5_writer *w, const struct h5_chunk_layout *chunk)
{
	bool filtered = chunk->index == H5_INDEX_SINGLE && chunk->single.filtered;
	uint64_t largest = chunk->element_size;
	unsigned width;

	for (unsigned i = 0; i < chunk->rank; i++)
		largest = h5_max(largest, chunk->dims[i]);
	width = h5_limit_size(largest);
	h5_write_u8(w, (uint8_t)((chunk->unfiltered_edges ? FLAG_UNFILTERED_EDGES : 0) |
				 (filtered ? FLAG_SINGLE_FILTERED : 0)));
	h5_write_u8(w, (uint8_t)(chunk->rank + 1));
	h5_write_u8(w, (uint8_t)width);
	for (unsigned i = 0; i < chunk->rank; i++)
		h5_write_uint(w, chunk->dims[i], width);
	h5_write_uint(w, chunk->element_size, width);
	h5_write_u8(w, (uint8_t)chunk->index);
	encode_parameters(w, chunk);
	h5_write_offset(w, chunk->address);
}

void h5_layout_encode(struct h5_writer *w, const struct h5_layout *layout)
{
	w->err |= layout->version < 3 || layout->version > 4;
	h5_write_u8(w, layout->version);
	h5_write_u8(w, (uint8_t)layout->class);
	switch (layout->class) {
	case H5_LAYOUT_COMPACT:
		w->err |= layout->compact.size > UINT16_MAX;
		h5_write_u16(w, (uint16_t)layout->compact.size);
		h5_write_bytes(w, layout->compact.data, layout->compact.size);
		break;
	case H5_LAYOUT_CONTIGUOUS:
		h5_write_offset(w, layout->contiguous.address);
		h5_write_length(w, layout->contiguous.size);
		break;
	case H5_LAYOUT_CHUNKED:
		if (layout->version == 3)
			encode_chunked_v3(w, &layout->chunked);
		else
			encode_chunked_v4(w, &layout->chunked);
		break;
	default:
		w->err = true;
	}
}

/* What decode_single() reads before the address. */
static void encode_single(struct h5_writer *w, const struct h5_chunk_layout *chunk)
{
	unsigned width = chunk->single.size_width;

	w->err |= width < 8 && chunk->single.size >> 8 * width;
	h5_write_uint(w, chunk->single.size, width);
	h5_write_bytes(w, chunk->single.metadata, h5_chunk_metadata_size(chunk, chunk->single.filtered));
}

/* True: they differ in nothing but the fields that h5_layout_update() writes. */
static bool is_same_shape(const struct h5_layout *a, const struct h5_layout *b)
{
	if (a->version != b->version || a->class != b->class || a->changing != b->changing)
		return false;
	if (a->class == H5_LAYOUT_COMPACT)
		return a->compact.size == b->compact.size;
	if (a->class != H5_LAYOUT_CHUNKED && a->class != H5_LAYOUT_STRUCTURED)
		return true;
	return a->chunked.index == b->chunked.index &&
	       a->chunked.single.filtered == b->chunked.single.filtered &&
	       a->chunked.single.size_width == b->chunked.single.size_width &&
	       a->chunked.structured.offset_size == b->chunked.structured.offset_size;
}

int h5_layout_update(uint8_t *body, size_t n, uint8_t size_of_offsets, uint8_t size_of_lengths,
		     const struct h5_layout *layout)
{
	struct h5_reader r = h5_reader_init(body, n, H5_UNDEF, size_of_offsets, size_of_lengths);
	struct h5_writer w;
	struct h5_layout old;
	int rc = h5_layout_decode(&r, &old);

	if (rc)
		return rc;
	if (!is_same_shape(&old, layout))
		return h5_fail(-ENOTSUP, H5_UNDEF, "data layout: a change of its form is not supported");
	w = h5_writer_init(body + old.changing, n - old.changing, size_of_offsets, size_of_lengths);
	switch (layout->class) {
	case H5_LAYOUT_COMPACT:
		h5_write_bytes(&w, layout->compact.data, layout->compact.size);
		break;
	case H5_LAYOUT_CONTIGUOUS:
		h5_write_offset(&w, layout->contiguous.address);
		break;
	case H5_LAYOUT_CHUNKED:
		if (layout->chunked.index == H5_INDEX_SINGLE && layout->chunked.single.filtered) {
			h5_write_length(&w, layout->chunked.single.size);
			h5_write_u32(&w, layout->chunked.single.filter_mask);
		}
		h5_write_offset(&w, layout->chunked.address);
		break;
	case H5_LAYOUT_STRUCTURED:
		if (!layout->chunked.structured.sparse)
			return h5_fail(-ENOTSUP, H5_UNDEF, "data layout: unknown structured chunks");
		if (layout->chunked.index == H5_INDEX_SINGLE)
			encode_single(&w, &layout->chunked);
		h5_write_offset(&w, layout->chunked.address);
		break;
	default:
		return h5_fail(-ENOTSUP, H5_UNDEF, "data layout: changing class %u is not supported",
			       layout->class);
	}
	return h5_writer_check(&w, "data layout");
}
