/* Opens a chunk index: the table of all kinds, and what is checked of each. */
#include "base/checked.h"
#include "chunk_index/private.h"

#include <stdlib.h>
#include <string.h>

static const struct h5_chunk_index_ops *const implementations[] = {
	[H5_INDEX_BTREE1] = &h5_chunk_index_btree1,
	[H5_INDEX_SINGLE] = &h5_chunk_index_single,
	[H5_INDEX_IMPLICIT] = &h5_chunk_index_implicit,
	[H5_INDEX_FIXED_ARRAY] = &h5_chunk_index_fixed_array,
	[H5_INDEX_EXTENSIBLE_ARRAY] = &h5_chunk_index_extensible_array,
	[H5_INDEX_BTREE2] = &h5_chunk_index_btree2,
};

const char *h5_chunk_index_name(enum h5_index_type type)
{
	return implementations[type]->name;
}

bool h5_chunk_index_keeps(enum h5_index_type type)
{
	return implementations[type]->keeps;
}

bool h5_chunk_index_allows_swmr(enum h5_index_type type)
{
	return !implementations[type]->no_swmr;
}

static int check_layout(const struct h5_chunk_layout *layout, const struct h5_dataspace *space,
			uint64_t chunk_size)
{
	if ((size_t)layout->index >= sizeof implementations / sizeof *implementations)
		return h5_fail(-EUCLEAN, layout->address, "chunk index: type %u", layout->index);
	if (layout->rank != space->rank || !layout->rank || layout->rank > H5_RANK_MAX)
		return h5_fail(-EUCLEAN, layout->address,
			       "chunk index: chunks of rank %u in a dataset of rank %u", layout->rank,
			       space->rank);
	if (!chunk_size)
		return h5_fail(-EUCLEAN, layout->address, "chunk index: chunks of no bytes");
	for (unsigned i = 0; i < layout->rank; i++)
		if (!layout->dims[i])
			return h5_fail(-EUCLEAN, layout->address, "chunk index: chunk dimension %u is 0", i);
	return 0;
}

int h5_chunk_index_open(struct h5_file *file, uint8_t layout_version, const struct h5_chunk_layout *layout,
			const struct h5_dataspace *space, bool filtered, uint64_t chunk_size,
			struct h5_chunk_index **out)
{
	struct h5_chunk_index *index;
	int rc = check_layout(layout, space, chunk_size);

	if (rc)
		return rc;
	index = calloc(1, sizeof *index);
	if (!index)
		return h5_fail(-ENOMEM, layout->address, "chunk index: out of memory");
	index->ops = implementations[layout->index];
	index->file = file;
	index->layout = *layout;
	memcpy(index->dims, space->dims, sizeof index->dims);
	memcpy(index->max, space->max, sizeof index->max);
	index->filtered = filtered;
	index->chunk_size = chunk_size;
	/* In layout version 4, and for structured chunks, the size of a chunk has one byte more than its
	 * unfiltered size needs; for other chunks of version 5 it has the size of lengths. */
	index->size_width = layout_version > 4 && !layout->structured.offset_size
				    ? h5_file_superblock(file)->size_of_lengths
				    : (uint8_t)h5_min(8, h5_limit_size(chunk_size) + 1);
	index->metadata_size =
		(uint8_t)(layout->structured.offset_size ? h5_chunk_metadata_size(layout, filtered) : 0);
	if (layout->address != H5_UNDEF && index->ops->open)
		rc = index->ops->open(index);
	if (rc) {
		h5_chunk_index_close(index);
		return rc;
	}
	*out = index;
	return 0;
}

void h5_chunk_index_close(struct h5_chunk_index *index)
{
	free(index);
}
