/* Chunked data: chunk by chunk, and run by run. */
#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "dataset/boxes.h"
#include "dataset/layouts.h"
#include "store/file_set.h"
#include "store/pipeline.h"

#include <stdlib.h>
#include <string.h>

struct request {
	const struct h5_dataset *dataset;
	struct h5_grid grid;
	uint64_t offset; /* in the dataset, of buf */
	uint8_t *buf;
};

/* The bytes of one chunk: none, decoded, or in the file. */
struct source {
	bool stored;
	const uint8_t *data; /* NULL: in the file */
	uint64_t address;
	struct h5_lru_entry *ref; /* of data */
};

struct part_request {
	const struct request *request;
	struct source source;
};

struct decoded {
	uint64_t size;
	uint8_t *data;
};

static void decoded_free(void *value)
{
	struct decoded *chunk = value;

	free(chunk->data);
	free(chunk);
}

struct decode_request {
	const struct h5_dataset *dataset;
	const struct h5_chunk *chunk;
	bool filtered;
};

/* The bytes of a chunk as they were before they were stored. */
static int read_whole(const struct decode_request *q, uint8_t **data)
{
	const struct h5_dataset *dataset = q->dataset;

	if (dataset->layout.class == H5_LAYOUT_STRUCTURED)
		return h5_structured_read(dataset, q->chunk, q->filtered, data);
	return h5_pipeline_read(dataset->file, q->filtered ? &dataset->pipeline : NULL, q->chunk->filter_mask,
				q->chunk->address, q->chunk->size, (size_t)dataset->chunk_size, data);
}

static int decode_chunk(void *arg, void **value, size_t *cost)
{
	const struct decode_request *q = arg;
	struct decoded *chunk = calloc(1, sizeof *chunk);
	int rc;

	if (!chunk)
		return h5_fail(-ENOMEM, q->chunk->address, "chunk: out of memory");
	rc = read_whole(q, &chunk->data);
	if (rc) {
		free(chunk);
		return rc;
	}
	chunk->size = q->dataset->chunk_size;
	*value = chunk;
	*cost = sizeof *chunk + (size_t)chunk->size;
	return 0;
}

/* A reference to the decoded chunk, from the cache of chunks or loaded. */
static int get_decoded(const struct h5_dataset *dataset, const struct h5_chunk *chunk, bool filtered,
		       struct source *source)
{
	static const struct h5_lru_kind kind = {"chunk", decoded_free};
	const struct h5_lru_key key = {.kind = &kind,
				       .owner = h5_file_number(dataset->file),
				       .address = chunk->address,
				       .variant = dataset->address};
	struct decode_request q = {dataset, chunk, filtered};
	const struct decoded *decoded;
	int rc;

	if (dataset->chunk_size > SIZE_MAX / 4)
		return h5_fail(-ENOTSUP, chunk->address, "chunk: %llu bytes",
			       (unsigned long long)dataset->chunk_size);
	rc = h5_lru_get(h5_file_set_chunks(h5_file_set_of(dataset->file)), &key, decode_chunk, &q,
			&source->ref);
	if (rc)
		return rc;
	decoded = h5_lru_value(source->ref);
	source->data = decoded->data;
	return 0;
}

static void source_release(const struct h5_dataset *dataset, struct source *source)
{
	h5_lru_put(h5_file_set_chunks(h5_file_set_of(dataset->file)), source->ref);
	source->ref = NULL;
}

bool h5_chunk_is_partial(const struct h5_grid *grid, const uint64_t *scaled)
{
	for (unsigned i = 0; i + 1 < grid->dims_count; i++)
		if (grid->dims[i] - scaled[i] * grid->chunk[i] < grid->chunk[i])
			return true;
	return false;
}

bool h5_chunk_is_filtered(const struct h5_pipeline *pipeline, uint32_t mask)
{
	uint64_t all = (UINT64_C(1) << pipeline->count) - 1;

	return (mask & all) != all;
}

/* Finds the chunk, which is wanted in runs of so many bytes. */
static int source_open(const struct request *q, const struct h5_part *part, struct source *source)
{
	const struct h5_dataset *dataset = q->dataset;
	struct h5_chunk chunk = {.address = H5_UNDEF};
	bool filtered;
	int rc = 0;

	memset(source, 0, sizeof *source);
	if (dataset->index)
		rc = h5_chunk_index_lookup(dataset->index, NULL, part->scaled, &chunk);
	if (rc || chunk.address == H5_UNDEF)
		return rc;
	source->stored = true;
	source->address = chunk.address;
	filtered = !dataset->layout.chunked.unfiltered_edges || !h5_chunk_is_partial(&q->grid, part->scaled);
	if (dataset->layout.class == H5_LAYOUT_STRUCTURED)
		return get_decoded(dataset, &chunk, filtered, source);
	if (filtered && h5_chunk_is_filtered(&dataset->pipeline, chunk.filter_mask))
		return get_decoded(dataset, &chunk, true, source);
	if (chunk.size < dataset->chunk_size)
		return h5_fail(-EUCLEAN, chunk.address, "chunk: %llu bytes are stored of %llu",
			       (unsigned long long)chunk.size, (unsigned long long)dataset->chunk_size);
	chunk.size = dataset->chunk_size;
	if (part->run < H5_DIRECT_RUN && dataset->chunk_size <= H5_DIRECT_CHUNK)
		return get_decoded(dataset, &chunk, false, source);
	return 0;
}

static int read_run(void *arg, uint64_t from, uint64_t to, size_t n)
{
	const struct part_request *p = arg;
	uint8_t *buf = p->request->buf + (to - p->request->offset);
	uint64_t address;

	if (!p->source.stored) {
		h5_dataset_fill(p->request->dataset, to, buf, n);
		return 0;
	}
	if (p->source.data) {
		memcpy(buf, p->source.data + from, n);
		return 0;
	}
	if (!h5_add(p->source.address, from, &address))
		return h5_fail(-EUCLEAN, p->source.address, "chunk: it reaches beyond any file");
	return h5_file_read(p->request->dataset->file, address, buf, n);
}

static int read_part(void *arg, const struct h5_part *part)
{
	struct part_request p = {.request = arg};
	int rc = source_open(p.request, part, &p.source);

	if (rc)
		return rc;
	rc = h5_part_walk(part, read_run, &p);
	source_release(p.request->dataset, &p.source);
	return rc;
}

static int chunked_read(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n)
{
	const struct h5_chunk_layout *layout = &dataset->layout.chunked;
	struct request q = {.dataset = dataset, .offset = offset, .buf = buf};

	h5_grid_init(&q.grid, layout->rank, dataset->space.dims, layout->dims, dataset->type->size);
	return h5_grid_walk(&q.grid, offset, n, read_part, &q);
}

static int chunked_open(struct h5_dataset *dataset)
{
	const struct h5_chunk_layout *layout = &dataset->layout.chunked;

	if (dataset->space.rank != layout->rank)
		return h5_fail(-EUCLEAN, dataset->address, "dataset: chunks of rank %u, dataspace of rank %u",
			       layout->rank, dataset->space.rank);
	if (dataset->type->size != layout->element_size)
		return h5_fail(-EUCLEAN, dataset->address,
			       "dataset: chunks of %u-byte elements, datatype of %u bytes",
			       layout->element_size, dataset->type->size);
	if (!h5_product(layout->dims, layout->rank, &dataset->chunk_size) ||
	    !h5_mul(dataset->chunk_size, layout->element_size, &dataset->chunk_size))
		return h5_fail(-EUCLEAN, dataset->address, "dataset: chunks of more than 2^64 bytes");
	if (layout->address == H5_UNDEF)
		return 0;
	return h5_chunk_index_open(dataset->file, dataset->layout.version, layout, &dataset->space,
				   dataset->pipeline.count || dataset->section_pipelines, dataset->chunk_size,
				   &dataset->index);
}

static int add_stored(void *arg, const struct h5_chunk *chunk)
{
	uint64_t *bytes = arg;

	if (!h5_add(*bytes, chunk->size, bytes))
		return h5_fail(-EUCLEAN, chunk->address, "chunks: more than 2^64 bytes are stored");
	return h5_interrupt_check();
}

static int chunked_storage(const struct h5_dataset *dataset, uint64_t *bytes)
{
	*bytes = 0;
	return dataset->index ? h5_chunk_index_walk(dataset->index, add_stored, bytes) : 0;
}

const struct h5_layout_ops h5_layout_chunked = {chunked_open, chunked_read, chunked_storage};
