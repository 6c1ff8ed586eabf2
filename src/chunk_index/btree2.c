#include "base/checked.h"
#include "change/btree2_write.h"
#include "chunk_index/private.h"

#include <string.h>

/* The version 2 B-tree of chunks, specification VII.E and III.A.2, record types 10 and 11: a data block
 * element, then the scaled offsets, 8 bytes each; 12 and 13: the metadata of structured chunks behind them.
 */

enum { RECORD_MAX = 8 + 8 + 4 + 8 * H5_RANK_MAX + H5_CHUNK_METADATA_MAX };

static enum h5_btree2_type record_type(const struct h5_chunk_index *index)
{
	if (index->layout.structured.offset_size)
		return index->filtered ? H5_BTREE2_STRUCTURED_CHUNK_FILTERED : H5_BTREE2_STRUCTURED_CHUNK;
	return index->filtered ? H5_BTREE2_CHUNK_FILTERED : H5_BTREE2_CHUNK;
}

static int open_index(struct h5_chunk_index *index)
{
	bool structured = index->layout.structured.offset_size;
	unsigned record_size;
	int rc;

	index->scaled_size = (uint16_t)(8 * index->layout.rank);
	record_size = h5_chunk_element_size(index);
	rc = h5_btree2_open(index->file, index->layout.address, record_type(index),
			    structured ? 0 : record_size, &index->btree2);
	if (!rc && structured)
		return h5_chunk_element_fit(index, index->btree2.record_size);
	/* With another size of the record, Chunk Size has another width, too. */
	if (!rc && index->btree2.record_size != record_size)
		rc = h5_fail(-EUCLEAN, index->layout.address, "chunk index: records of %u bytes, not %u",
			     index->btree2.record_size, record_size);
	return rc;
}

struct sought {
	const struct h5_chunk_index *index;
	const uint64_t *scaled;
};

static int compare(void *arg, struct h5_reader record, int *rc)
{
	const struct sought *sought = arg;

	(void)rc; /* cannot fail: the size of records was checked */
	h5_reader_skip(&record, h5_chunk_prefix_size(sought->index));
	for (unsigned i = 0; i < sought->index->layout.rank; i++) {
		uint64_t scaled = h5_read_u64(&record);

		if (sought->scaled[i] != scaled)
			return h5_compare(sought->scaled[i], scaled);
	}
	return 0;
}

static void scaled_of(const struct h5_chunk_index *index, const uint8_t *record, uint64_t *scaled)
{
	record += h5_chunk_prefix_size(index);
	for (unsigned i = 0; i < index->layout.rank; i++)
		scaled[i] = h5_uint_from(record + 8 * i, 8);
}

/* Steps to the next coordinates in row-major order of 64-bit numbers. */
static void step(uint64_t *scaled, unsigned rank)
{
	while (rank-- > 0 && !++scaled[rank])
		;
}

/* Finds the leaf that answers for the chunk. If the record is in an inner node, the cursor gets that node,
 * for this chunk alone. */
static int seek(const struct h5_chunk_index *index, const uint64_t *scaled, struct h5_chunk_cursor *cursor)
{
	const size_t size = index->layout.rank * sizeof *scaled;
	uint8_t before[RECORD_MAX], after[RECORD_MAX];
	struct h5_btree2_end end = {.before = before, .after = after, .walks = h5_chunk_cursor_reach(cursor)};
	struct sought sought = {index, scaled};
	int rc = h5_btree2_seek(&index->btree2, compare, &sought, &end);

	if (rc)
		return rc;
	cursor->ref = end.ref;
	cursor->block = end.ref ? end.node : NULL;
	memset(cursor->low, 0, size);
	memset(cursor->high, 0xff, size);
	if (end.ref && end.node->level) {
		memcpy(cursor->low, scaled, size);
		memcpy(cursor->high, scaled, size);
		step(cursor->high, index->layout.rank);
		return 0;
	}
	if (end.has_before) {
		scaled_of(index, before, cursor->low);
		step(cursor->low, index->layout.rank);
	}
	if (end.has_after)
		scaled_of(index, after, cursor->high);
	return 0;
}

static int lookup(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor, const uint64_t *scaled,
		  struct h5_chunk *chunk)
{
	struct sought sought = {index, scaled};
	const struct h5_btree2_node *node;
	size_t i;
	bool equal;
	int rc = 0;

	if (!h5_chunk_cursor_enter(index, cursor, scaled, index->layout.rank))
		rc = h5_chunk_cursor_hold(index, cursor, seek(index, scaled, cursor));
	node = cursor->block;
	if (rc || !node)
		return rc;
	i = cursor->next;
	equal = i < node->count && !compare(&sought, h5_btree2_record_at(&index->btree2, node, i), &rc);
	if (!equal)
		rc = h5_btree2_lower_bound(&index->btree2, node, compare, &sought, &i, &equal);
	if (!rc && equal) {
		h5_chunk_element_at(index, node->records, i, chunk);
		cursor->next = i + 1;
	}
	return rc;
}

static void gap(const struct h5_chunk_index *index, const struct h5_chunk_cursor *cursor,
		const uint64_t *scaled, uint64_t *next)
{
	const unsigned rank = index->layout.rank;
	const struct h5_btree2_node *leaf = cursor->block;
	struct sought sought = {index, scaled};
	size_t i;
	bool equal;

	memcpy(next, cursor->high, rank * sizeof *next);
	if (leaf && !h5_btree2_lower_bound(&index->btree2, leaf, compare, &sought, &i, &equal) &&
	    i < leaf->count)
		scaled_of(index, leaf->records + i * index->btree2.record_size, next);
}

struct visitor {
	const struct h5_chunk_index *index;
	h5_chunk_visit *visit;
	void *arg;
};

static int visit_record(void *arg, struct h5_reader record)
{
	const struct visitor *visitor = arg;

	return h5_chunk_elements_walk(visitor->index, record.p, 1, visitor->visit, visitor->arg);
}

static int walk(const struct h5_chunk_index *index, h5_chunk_visit *visit, h5_extent_visit *block, void *arg)
{
	struct visitor visitor = {index, visit, arg};
	int rc = h5_btree2_iterate(&index->btree2, visit_record, &visitor);

	return rc || !block ? rc : h5_btree2_extents(&index->btree2, block, arg);
}

/* ---- changes ---- */

static int create(struct h5_chunk_index *index)
{
	struct h5_btree2_parameters parameters = {
		.type = record_type(index),
		.node_size = index->layout.btree2.node_size,
		.split_percent = index->layout.btree2.split_percent,
		.merge_percent = index->layout.btree2.merge_percent,
	};

	index->scaled_size = (uint16_t)(8 * index->layout.rank);
	parameters.record_size = (uint16_t)h5_chunk_element_size(index);
	return h5_btree2_create(index->file, &parameters, &index->btree2);
}

static int encode(const struct h5_chunk_index *index, const uint64_t *scaled, const struct h5_chunk *chunk,
		  uint8_t *record)
{
	const struct h5_superblock *superblock = h5_file_superblock(index->file);
	struct h5_writer w =
		h5_writer_init(record, RECORD_MAX, superblock->size_of_offsets, superblock->size_of_lengths);

	return h5_chunk_element_encode(index, &w, chunk, scaled);
}

static int set(struct h5_chunk_index *index, const uint64_t *scaled, const struct h5_chunk *chunk)
{
	struct sought sought = {index, scaled};
	uint8_t record[RECORD_MAX];
	int rc = 0;

	if (chunk->address == H5_UNDEF) {
		rc = h5_btree2_remove(&index->btree2, compare, &sought);
	} else {
		if (index->layout.address == H5_UNDEF)
			rc = create(index); /* which sets the size of records */
		if (!rc)
			rc = encode(index, scaled, chunk, record);
		if (!rc)
			rc = h5_btree2_set(&index->btree2, compare, &sought, record);
	}
	if (index->btree2.file)
		index->layout.address = index->btree2.address;
	return rc;
}

static int trim(struct h5_chunk_index *index, uint64_t first, h5_chunk_visit *visit, void *arg)
{
	const uint64_t scaled[H5_RANK_MAX] = {first};
	struct sought sought = {index, scaled};
	struct visitor visitor = {index, visit, arg};
	int rc = h5_btree2_trim(&index->btree2, compare, &sought, visit_record, &visitor);

	index->layout.address = index->btree2.address;
	return rc;
}

const struct h5_chunk_index_ops h5_chunk_index_btree2 = {
	.name = "btree2",
	.open = open_index,
	.lookup = lookup,
	.gap = gap,
	.walk = walk,
	.set = set,
	.trim = trim,
};
