#include "format/structured_chunk.h"

#include "base/error.h"

#include <string.h>

enum { SELECTION_LEAST = 16 }; /* bytes of section 0, filtered or not */

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
