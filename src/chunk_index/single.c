#include "chunk_index/private.h"

#include <string.h>

/* The single chunk index, specification VII.A: the layout message has the chunk itself. */

static int open_index(struct h5_chunk_index *index)
{
	/* Without the flag there is no metadata for filters. */
	if (index->layout.structured.offset_size && index->layout.single.filtered != index->filtered)
		return h5_fail(-EUCLEAN, index->layout.address,
			       "single chunk index: it is for %sfiltered chunks",
			       index->filtered ? "un" : "");
	return 0;
}

static int lookup(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor, const uint64_t *scaled,
		  struct h5_chunk *chunk)
{
	const struct h5_chunk_layout *layout = &index->layout;

	(void)cursor;
	for (unsigned i = 0; i < layout->rank; i++)
		if (scaled[i])
			return 0;
	chunk->address = layout->address;
	chunk->size = layout->single.filtered || layout->structured.offset_size ? layout->single.size
										: index->chunk_size;
	memcpy(chunk->metadata, layout->single.metadata, sizeof chunk->metadata);
	chunk->filter_mask = layout->single.filtered ? layout->single.filter_mask : 0;
	return 0;
}

/* There is no chunk after the first. */
static void gap(const struct h5_chunk_index *index, const struct h5_chunk_cursor *cursor,
		const uint64_t *scaled, uint64_t *next)
{
	(void)cursor;
	(void)scaled;
	memset(next, 0xff, index->layout.rank * sizeof *next);
}

static int walk(const struct h5_chunk_index *index, h5_chunk_visit *visit, h5_extent_visit *block, void *arg)
{
	const uint64_t first[H5_RANK_MAX] = {0};
	struct h5_chunk chunk;
	int rc = lookup(index, NULL, first, &chunk);

	(void)block;
	return rc ? rc : visit(arg, &chunk);
}

/* The layout message has the address: the caller rewrites it. */
static int set(struct h5_chunk_index *index, const uint64_t *scaled, const struct h5_chunk *chunk)
{
	const struct h5_chunk stored = chunk->address == H5_UNDEF ? h5_chunk_absent() : *chunk;
	struct h5_chunk_layout *layout = &index->layout;

	for (unsigned i = 0; i < layout->rank; i++)
		if (scaled[i])
			return h5_fail(-EFBIG, layout->address, "single chunk index: a second chunk");
	if (layout->single.filtered != index->filtered)
		return h5_fail(-ENOTSUP, layout->address, "single chunk index: it is for %sfiltered chunks",
			       index->filtered ? "un" : "");
	layout->address = stored.address;
	if (layout->single.filtered || layout->structured.offset_size) {
		layout->single.size = stored.size;
		layout->single.filter_mask = stored.filter_mask;
		memcpy(layout->single.metadata, stored.metadata, sizeof layout->single.metadata);
	}
	return 0;
}

static int trim(struct h5_chunk_index *index, uint64_t first, h5_chunk_visit *visit, void *arg)
{
	const uint64_t origin[H5_RANK_MAX] = {0};
	const struct h5_chunk none = h5_chunk_absent();
	struct h5_chunk chunk;
	int rc;

	if (first)
		return 0;
	rc = lookup(index, NULL, origin, &chunk);
	if (!rc)
		rc = set(index, origin, &none);
	return rc ? rc : visit(arg, &chunk);
}

const struct h5_chunk_index_ops h5_chunk_index_single = {
	.name = "single",
	.open = open_index,
	.lookup = lookup,
	.gap = gap,
	.walk = walk,
	.set = set,
	.trim = trim,
};
