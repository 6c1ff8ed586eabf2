#include "chunk_index/chunk_index.h"

#include "base/checked.h"
#include "change/transaction.h"
#include "chunk_index/private.h"

#include <assert.h>
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
	index->layout_version = layout_version;
	index->filtered = filtered;
	index->chunk_size = chunk_size;
	/* In layout version 4 the size of a filtered chunk has one byte more than its unfiltered size needs;
	 * in version 5 it has the size of lengths. */
	index->size_width = layout_version > 4 ? h5_file_superblock(file)->size_of_lengths
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

int h5_chunk_index_lookup(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor,
			  const uint64_t *scaled, struct h5_chunk *chunk)
{
	struct h5_chunk_cursor own;
	int rc;

	*chunk = h5_chunk_absent();
	if (index->layout.address == H5_UNDEF)
		return 0;
	if (cursor)
		return index->ops->lookup(index, cursor, scaled, chunk);
	own.ref = NULL;
	own.block = NULL;
	own.held = false;
	own.next = 0;
	rc = index->ops->lookup(index, &own, scaled, chunk);
	h5_chunk_cursor_release(index, &own);
	return rc;
}

/* If the chunk lies beyond the maximum dimensions, as it may in a damaged file, sets *next to the next one
 * inside, and returns true. */
static bool pass_maximum(const struct h5_chunk_index *index, const uint64_t *scaled, uint64_t *next)
{
	const unsigned rank = index->layout.rank;
	unsigned i = 0;

	while (i < rank && (!index->along[i] || scaled[i] < index->along[i]))
		i++;
	if (i == rank)
		return false;
	if (!i) {
		memset(next, 0xff, rank * sizeof *next);
		return true;
	}
	memcpy(next, scaled, i * sizeof *next);
	memset(next + i, 0, (rank - i) * sizeof *next);
	next[i - 1]++;
	return true;
}

int h5_chunk_index_gap(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor,
		       const uint64_t *scaled, bool *stored, uint64_t *next)
{
	const unsigned rank = index->layout.rank;
	struct h5_chunk chunk;
	int rc = h5_chunk_index_lookup(index, cursor, scaled, &chunk);

	*stored = !rc && chunk.address != H5_UNDEF;
	if (rc || *stored)
		return rc;
	memcpy(next, scaled, rank * sizeof *next);
	next[rank - 1]++;
	if (index->layout.address == H5_UNDEF)
		memset(next, 0xff, rank * sizeof *next);
	else if (!pass_maximum(index, scaled, next) && index->ops->gap)
		index->ops->gap(index, cursor, scaled, next);
	if (h5_chunk_compare(next, scaled, rank) <= 0) { /* a damaged index */
		memcpy(next, scaled, rank * sizeof *next);
		next[rank - 1]++;
	}
	return 0;
}

int h5_chunk_index_can_change(const struct h5_chunk_index *index)
{
	if (!index->ops->set || index->layout.structured.offset_size)
		return h5_fail(-ENOTSUP, index->layout.address,
			       "chunk index: writing through an index of this kind is not supported");
	return 0;
}

/* Begins a unit of change that restores the index in memory if it fails. */
static int begin_change(struct h5_chunk_index *index)
{
	int rc = h5_unit_begin(index->file);

	if (rc)
		return rc;
	rc = h5_unit_save(index->file, index, sizeof *index);
	return rc ? h5_unit_end(index->file, rc) : 0;
}

int h5_chunk_index_set(struct h5_chunk_index *index, const uint64_t *scaled, const struct h5_chunk *chunk)
{
	int rc;

	assert(index->ops->set);
	if (chunk->address == H5_UNDEF) {
		struct h5_chunk stored;

		rc = h5_chunk_index_lookup(index, NULL, scaled, &stored);
		if (rc || stored.address == H5_UNDEF)
			return rc;
	}
	rc = begin_change(index);
	return rc ? rc : h5_unit_end(index->file, index->ops->set(index, scaled, chunk));
}

int h5_chunk_index_trim(struct h5_chunk_index *index, uint64_t first, h5_chunk_visit *visit, void *arg)
{
	int rc;

	assert(index->ops->trim);
	if (index->layout.address == H5_UNDEF)
		return 0;
	rc = begin_change(index);
	return rc ? rc : h5_unit_end(index->file, index->ops->trim(index, first, visit, arg));
}

void h5_chunk_index_resize(struct h5_chunk_index *index, const uint64_t *dims)
{
	memcpy(index->dims, dims, index->layout.rank * sizeof *dims);
}

const struct h5_chunk_layout *h5_chunk_index_layout(const struct h5_chunk_index *index)
{
	return &index->layout;
}

int h5_chunk_index_walk(const struct h5_chunk_index *index, h5_chunk_visit *visit, void *arg)
{
	return index->layout.address == H5_UNDEF ? 0 : index->ops->walk(index, visit, arg);
}
