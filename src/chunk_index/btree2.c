#include "chunk_index/private.h"

/* The version 2 B-tree of chunks, specification VII.E and III.A.2, record types 10 and 11: a data block
 * element, then the scaled offsets, 8 bytes each; 12 and 13: the metadata of structured chunks behind them.
 */

static int open_index(struct h5_chunk_index *index)
{
	bool structured = index->layout.structured.offset_size;
	enum h5_btree2_type type = index->filtered ? H5_BTREE2_CHUNK_FILTERED : H5_BTREE2_CHUNK;
	unsigned record_size;
	int rc;

	if (structured)
		type = index->filtered ? H5_BTREE2_STRUCTURED_CHUNK_FILTERED : H5_BTREE2_STRUCTURED_CHUNK;
	index->scaled_size = (uint16_t)(8 * index->layout.rank);
	record_size = h5_chunk_element_size(index);
	rc = h5_btree2_open(index->file, index->layout.address, type, structured ? 0 : record_size,
			    &index->btree2);
	if (!rc && structured)
		return h5_chunk_element_fit(index, index->btree2.record_size);
	/* A longer record has its Chunk Size in another width. */
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

	(void)rc; /* records have the size that was asked for */
	h5_reader_skip(&record, h5_chunk_prefix_size(sought->index));
	for (unsigned i = 0; i < sought->index->layout.rank; i++) {
		uint64_t scaled = h5_read_u64(&record);

		if (sought->scaled[i] != scaled)
			return sought->scaled[i] < scaled ? -1 : 1;
	}
	return 0;
}

static int lookup(const struct h5_chunk_index *index, const uint64_t *scaled, struct h5_chunk *chunk)
{
	struct sought sought = {index, scaled};
	uint8_t record[8 + 8 + 4 + 8 * H5_RANK_MAX + H5_CHUNK_METADATA_MAX];
	int rc = h5_btree2_find(&index->btree2, compare, &sought, record);

	if (!rc)
		h5_chunk_element_at(index, record, 0, chunk);
	return rc == -ENOENT ? 0 : rc;
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

static int walk(const struct h5_chunk_index *index, h5_chunk_visit *visit, void *arg)
{
	struct visitor visitor = {index, visit, arg};

	return h5_btree2_iterate(&index->btree2, visit_record, &visitor);
}

const struct h5_chunk_index_ops h5_chunk_index_btree2 = {.open = open_index, .lookup = lookup, .walk = walk};
