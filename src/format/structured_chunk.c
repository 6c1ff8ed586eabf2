#include "format/structured_chunk.h"

#include "base/checked.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

enum {
	SELECTION_LEAST = 16, /* bytes of section 0, filtered or not */
	PREFIX_SIZE = 7,      /* bytes of section 0 before the dataspace message */
	COORDINATE_SIZE = 4,  /* bytes of a coordinate in the blocks that are written */
	BLOCKS_OVERHEAD = 24, /* bytes of a selection of blocks before the coordinates */
	CHECKSUM_SIZE = 4,
};

/* The metadata of a chunk, o being the offset size.
 *
 *   size  field
 *      o  offset of section 1; that of section 0 is 0
 *         filtered only:
 *    2*o  sizes of the sections before the filters
 *    2*4  filter masks of the sections
 *
 * RFC version 16 has the masks first. */
static void decode(struct h5_reader r, unsigned offset_size, bool filtered, bool masks_first,
		   uint64_t chunk_size, struct h5_section *sections)
{
	memset(sections, 0, H5_SECTIONS * sizeof *sections);
	for (unsigned i = 0; i < H5_SECTIONS && filtered && masks_first; i++)
		sections[i].filter_mask = h5_read_u32(&r);
	for (unsigned i = 1; i < H5_SECTIONS; i++)
		sections[i].offset = h5_read_uint(&r, offset_size);
	for (unsigned i = 0; i < H5_SECTIONS; i++) {
		uint64_t end = i + 1 < H5_SECTIONS ? sections[i + 1].offset : chunk_size;

		sections[i].stored = end - sections[i].offset;
		sections[i].size = filtered ? h5_read_uint(&r, offset_size) : sections[i].stored;
	}
	for (unsigned i = 0; i < H5_SECTIONS && filtered && !masks_first; i++)
		sections[i].filter_mask = h5_read_u32(&r);
}

/* True: the sections lie in the chunk, sections without filters have kept their size, and section 0 has a
 * selection's least size. If a mask was taken for its size, it has less. */
static bool are_possible(const struct h5_section *sections, const struct h5_pipeline *pipelines,
			 uint64_t chunk_size)
{
	for (unsigned i = 0; i < H5_SECTIONS; i++) {
		uint64_t filters = pipelines ? (UINT64_C(1) << pipelines[i].count) - 1 : 0;

		if (sections[i].offset > chunk_size || sections[i].stored > chunk_size - sections[i].offset)
			return false;
		if (sections[i].filter_mask & ~filters)
			return false;
		if (sections[i].filter_mask == filters && sections[i].size != sections[i].stored)
			return false;
	}
	return sections[0].stored >= SELECTION_LEAST;
}

int h5_sections_decode(const struct h5_chunk_layout *layout, const uint8_t *metadata,
		       const struct h5_pipeline *pipelines, uint64_t chunk_size, uint64_t address,
		       struct h5_section *sections)
{
	struct h5_reader r =
		h5_reader_init(metadata, h5_chunk_metadata_size(layout, pipelines), H5_UNDEF, 8, 8);

	/* Filter masks come before or after the rest. Nothing in the chunk says which. So the order that
	 * goes with the form of the layout message is tried first; if its sections are impossible, the other
	 * order is tried. */
	for (unsigned i = 0; i < 2; i++) {
		decode(r, layout->structured.offset_size, pipelines, layout->structured.early != i,
		       chunk_size, sections);
		if (are_possible(sections, pipelines, chunk_size))
			return 0;
	}
	return h5_fail(-EUCLEAN, address, "structured chunk: offsets of sections in %ju bytes",
		       (uintmax_t)chunk_size);
}

static int check_extent(const struct h5_reader *r, const struct h5_chunk_layout *layout,
			const struct h5_dataspace *space)
{
	bool same = space->rank == layout->rank;

	for (unsigned i = 0; i < layout->rank && same; i++)
		same = space->dims[i] == layout->dims[i];
	return same ? 0 : h5_fail(-EUCLEAN, r->address, "structured chunk: a selection for other dimensions");
}

static int check_selection(const struct h5_reader *r, const struct h5_chunk_layout *layout,
			   const struct h5_selection *selection)
{
	bool inside = true;

	if (selection->rank && selection->rank != layout->rank)
		return h5_fail(-EUCLEAN, r->address, "structured chunk: a selection of rank %u, not %u",
			       selection->rank, layout->rank);
	if (selection->kind != H5_SELECT_POINTS)
		return 0;
	for (uint64_t i = 0; i < selection->count && inside; i++)
		for (unsigned j = 0; j < layout->rank; j++)
			inside &= selection->coordinates[i * layout->rank + j] < layout->dims[j];
	return inside ? 0 : h5_fail(-EUCLEAN, r->address, "structured chunk: points outside");
}

/* Section 0.
 *
 *   offset  size  field
 *        0     1  1
 *        1     1  version 0
 *        2     1  size of lengths in the dataspace message
 *        3     4  bytes of the dataspace message n
 *        7     n  dataspace message: the chunk's dimensions
 *      7+n        selection
 *              4  checksum                                 */
int h5_defined_elements_decode(struct h5_reader *r, const struct h5_chunk_layout *layout,
			       struct h5_selection *selection)
{
	struct h5_reader whole = *r, message;
	struct h5_dataspace space;
	unsigned kind, version;
	int rc;

	h5_reader_skip(&whole, h5_reader_left(r) < 4 ? 0 : h5_reader_left(r) - 4);
	rc = h5_reader_checksum(&whole, "structured chunk");
	if (rc)
		return rc;
	kind = h5_read_u8(r);
	version = h5_read_u8(r);
	r->size_of_lengths = h5_read_u8(r);
	message = h5_reader_sub(r, h5_read_u32(r));
	rc = h5_reader_check(r, "structured chunk");
	if (rc)
		return rc;
	if (kind != 1 || version)
		return h5_fail(-ENOTSUP, r->address,
			       "structured chunk: a selection of kind %u, version %u is not supported", kind,
			       version);
	if (r->size_of_lengths != 2 && r->size_of_lengths != 4 && r->size_of_lengths != 8)
		return h5_fail(-EUCLEAN, r->address, "structured chunk: lengths of %u bytes",
			       r->size_of_lengths);
	rc = h5_dataspace_decode(&message, &space);
	if (!rc)
		rc = check_extent(r, layout, &space);
	if (!rc)
		rc = h5_selection_decode(r, selection);
	if (rc)
		return rc;
	rc = check_selection(r, layout, selection);
	if (!rc && h5_reader_left(r) != 4)
		rc = h5_fail(-EUCLEAN, r->address, "structured chunk: something behind the selection");
	if (rc)
		h5_selection_release(selection);
	return rc;
}

int h5_sections_encode(const struct h5_chunk_layout *layout, bool filtered, const struct h5_section *sections,
		       uint8_t *metadata)
{
	unsigned offset_size = layout->structured.offset_size;
	struct h5_writer w = h5_writer_init(metadata, H5_CHUNK_METADATA_MAX, 8, 8);

	for (unsigned i = 0; i < H5_SECTIONS; i++)
		if (offset_size < 8 && (sections[i].offset | sections[i].size) >> 8 * offset_size)
			return h5_fail(-EOVERFLOW, H5_UNDEF,
				       "structured chunk: %ju bytes do not fit in %u bytes",
				       (uintmax_t)h5_max(sections[i].offset, sections[i].size), offset_size);
	for (unsigned i = 0; i < H5_SECTIONS && filtered && layout->structured.early; i++)
		h5_write_u32(&w, sections[i].filter_mask);
	for (unsigned i = 1; i < H5_SECTIONS; i++)
		h5_write_uint(&w, sections[i].offset, offset_size);
	for (unsigned i = 0; i < H5_SECTIONS && filtered; i++)
		h5_write_uint(&w, sections[i].size, offset_size);
	for (unsigned i = 0; i < H5_SECTIONS && filtered && !layout->structured.early; i++)
		h5_write_u32(&w, sections[i].filter_mask);
	return h5_writer_check(&w, "structured chunk");
}

/* ---- encoding section 0 ---- */

/* The defined elements as blocks. */
struct blocks {
	const struct h5_chunk_layout *layout;
	const uint8_t *defined;
	uint64_t stride[H5_RANK_MAX]; /* elements from one index to the next */
	uint64_t elements;	      /* of the chunk */
	uint64_t first[H5_RANK_MAX], last[H5_RANK_MAX];
	uint64_t count;
	struct h5_writer *w; /* NULL: they are only counted */
};

static void write_block(struct blocks *b)
{
	if (!b->w) {
		b->count++;
		return;
	}
	for (unsigned i = 0; i < b->layout->rank; i++)
		h5_write_u32(b->w, (uint32_t)b->first[i]);
	for (unsigned i = 0; i < b->layout->rank; i++)
		h5_write_u32(b->w, (uint32_t)b->last[i]);
}

/* Finds the blocks of the elements from `begin` on, as many as one index of dimension d - 1 has. Neighbours
 * along dimension d in which the same elements are defined share their blocks. */
static void find_blocks(struct blocks *b, unsigned d, uint64_t begin)
{
	const uint64_t n = b->layout->dims[d], stride = b->stride[d];

	for (uint64_t i = 0, end; i < n; i = end) {
		const uint8_t *at = b->defined + begin + i * stride;

		end = i + 1;
		while (end < n && !memcmp(at, at + (end - i) * stride, (size_t)stride))
			end++;
		b->first[d] = i;
		b->last[d] = end - 1;
		if (d + 1 < b->layout->rank)
			find_blocks(b, d + 1, begin + i * stride);
		else if (*at)
			write_block(b);
	}
}

static void blocks_init(struct blocks *b, const struct h5_chunk_layout *layout, const uint8_t *defined)
{
	*b = (struct blocks){.layout = layout, .defined = defined, .elements = 1};
	for (unsigned i = layout->rank; i-- > 0;) {
		b->stride[i] = b->elements;
		b->elements *= layout->dims[i];
	}
}

/* All, or a hyperslab of version 1, whose blocks do not overlap. */
static void write_selection(struct h5_writer *w, struct blocks *b, bool all, uint64_t bytes)
{
	h5_write_u32(w, all ? H5_SELECT_ALL : H5_SELECT_HYPERSLAB);
	h5_write_u32(w, 1);
	h5_write_u32(w, 0);
	if (all) {
		h5_write_u32(w, 0);
		return;
	}
	h5_write_u32(w, (uint32_t)(8 + bytes));
	h5_write_u32(w, b->layout->rank);
	h5_write_u32(w, (uint32_t)b->count);
	b->w = w;
	find_blocks(b, 0, 0);
}

/* Bytes of a dataspace message without maximum dimensions. */
static unsigned dataspace_size(uint8_t size_of_lengths, unsigned rank)
{
	return 4 + size_of_lengths * rank;
}

static int write_section(struct h5_writer *w, struct blocks *b, uint64_t bytes)
{
	struct h5_dataspace space = {.kind = H5_SPACE_SIMPLE, .rank = b->layout->rank};

	memcpy(space.dims, b->layout->dims, sizeof space.dims);
	memcpy(space.max, b->layout->dims, sizeof space.max);
	h5_write_u8(w, 1);
	h5_write_u8(w, 0);
	h5_write_u8(w, w->size_of_lengths);
	h5_write_u32(w, dataspace_size(w->size_of_lengths, space.rank));
	h5_dataspace_encode(w, &space);
	write_selection(w, b, !bytes, bytes);
	h5_write_checksum(w);
	return h5_writer_check(w, "structured chunk");
}

int h5_defined_elements_encode(const struct h5_chunk_layout *layout, uint8_t size_of_lengths,
			       const uint8_t *defined, uint8_t **data, size_t *size)
{
	uint64_t bytes = 0;
	struct h5_writer w;
	struct blocks b;
	size_t room;
	int rc;

	blocks_init(&b, layout, defined);
	for (unsigned i = 0; i < layout->rank; i++)
		if (layout->dims[i] > UINT32_MAX)
			return h5_fail(-EFBIG, H5_UNDEF, "structured chunk: a dimension of 2^32 and more");
	if (memchr(defined, 0, (size_t)b.elements)) {
		find_blocks(&b, 0, 0);
		bytes = b.count * 2 * layout->rank * COORDINATE_SIZE;
		if (bytes / COORDINATE_SIZE > H5_SELECTION_COORDINATES_MAX)
			return h5_fail(-EFBIG, H5_UNDEF, "structured chunk: %ju blocks of defined elements",
				       (uintmax_t)b.count);
	}
	room = PREFIX_SIZE + dataspace_size(size_of_lengths, layout->rank) + BLOCKS_OVERHEAD + (size_t)bytes +
	       CHECKSUM_SIZE;
	*data = malloc(room);
	if (!*data)
		return h5_fail(-ENOMEM, H5_UNDEF, "structured chunk: out of memory");
	w = h5_writer_init(*data, room, 8, size_of_lengths);
	rc = write_section(&w, &b, bytes);
	*size = h5_writer_at(&w);
	if (rc)
		free(*data);
	return rc;
}
