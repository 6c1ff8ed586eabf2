/* Chunked data.
 *
 * A range of bytes is cut into boxes: from its start the largest box of whole rows (or planes, ...) that it
 * holds, and so on, at most two for each dimension. Each box is read chunk by chunk, and from each chunk
 * those runs of bytes that lie together both in the chunk and in the dataset. The bytes of an element count
 * as one more dimension, so that a range may begin and end inside of one. */
#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "dataset/layouts.h"
#include "store/file_set.h"
#include "store/pipeline.h"

#include <stdlib.h>
#include <string.h>

enum {
	DIMS_MAX = H5_RANK_MAX + 1,
	/* Chunks without filters are read run by run where a run is worth a system call, or the chunk is
	 * large; the small ones with short runs, of which a sweep over the rows comes back to each, are kept
	 * decoded. */
	DIRECT_RUN = 1 << 10,
	DIRECT_CHUNK = 1 << 20,
};

struct box {
	uint64_t first[DIMS_MAX], count[DIMS_MAX];
};

struct request {
	const struct h5_dataset *dataset;
	unsigned dims_count; /* rank + 1 */
	uint64_t dims[DIMS_MAX], chunk[DIMS_MAX];
	uint64_t stride[DIMS_MAX], chunk_stride[DIMS_MAX]; /* bytes from one index to the next */
	struct box box;
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

/* True if filters may have run on the chunk when it was written. */
static bool may_be_filtered(const struct request *q, const uint64_t *scaled)
{
	const struct h5_dataset *dataset = q->dataset;

	if (dataset->layout.chunked.unfiltered_edges)
		for (unsigned i = 0; i < dataset->layout.chunked.rank; i++)
			if (q->dims[i] - scaled[i] * q->chunk[i] < q->chunk[i])
				return false;
	return true;
}

/* True if not all filters of the pipeline were skipped. */
static bool is_filtered(const struct h5_pipeline *pipeline, uint32_t mask)
{
	uint64_t all = (UINT64_C(1) << pipeline->count) - 1;

	return (mask & all) != all;
}

/* Finds the chunk, which is wanted in runs of so many bytes. */
static int source_open(const struct request *q, const uint64_t *scaled, uint64_t run, struct source *source)
{
	const struct h5_dataset *dataset = q->dataset;
	struct h5_chunk chunk = {.address = H5_UNDEF};
	bool filtered;
	int rc = 0;

	memset(source, 0, sizeof *source);
	if (dataset->index)
		rc = h5_chunk_index_lookup(dataset->index, scaled, &chunk);
	if (rc || chunk.address == H5_UNDEF)
		return rc;
	source->stored = true;
	source->address = chunk.address;
	filtered = may_be_filtered(q, scaled);
	if (dataset->layout.class == H5_LAYOUT_STRUCTURED)
		return get_decoded(dataset, &chunk, filtered, source);
	if (filtered && is_filtered(&dataset->pipeline, chunk.filter_mask))
		return get_decoded(dataset, &chunk, true, source);
	if (chunk.size < dataset->chunk_size)
		return h5_fail(-EUCLEAN, chunk.address, "chunk: %llu bytes are stored of %llu",
			       (unsigned long long)chunk.size, (unsigned long long)dataset->chunk_size);
	chunk.size = dataset->chunk_size;
	if (run < DIRECT_RUN && dataset->chunk_size <= DIRECT_CHUNK)
		return get_decoded(dataset, &chunk, false, source);
	return 0;
}

/* n bytes at the offset `from` of the chunk are those at the offset `to` of the dataset. */
static int copy_run(const struct request *q, const struct source *source, uint64_t from, uint64_t to,
		    size_t n)
{
	uint8_t *buf = q->buf + (to - q->offset);
	uint64_t address;

	if (!source->stored) {
		h5_dataset_fill(q->dataset, to, buf, n);
		return 0;
	}
	if (source->data) {
		memcpy(buf, source->data + from, n);
		return 0;
	}
	if (!h5_add(source->address, from, &address))
		return h5_fail(-EUCLEAN, source->address, "chunk: it reaches beyond any file");
	return h5_file_read(q->dataset->file, address, buf, n);
}

bool h5_box_step(uint64_t *at, const uint64_t *first, const uint64_t *count, unsigned n)
{
	while (n--) {
		if (++at[n] - first[n] < count[n])
			return true;
		at[n] = first[n];
	}
	return false;
}

/* What the box and the chunk have in common, as a box. */
static void intersect(const struct request *q, const uint64_t *scaled, struct box *part)
{
	*part = q->box;
	for (unsigned i = 0; i + 1 < q->dims_count; i++) {
		uint64_t origin = scaled[i] * q->chunk[i];
		uint64_t end = origin + h5_min(q->chunk[i], q->dims[i] - origin);

		if (part->first[i] < origin) {
			part->count[i] -= origin - part->first[i];
			part->first[i] = origin;
		}
		part->count[i] = h5_min(part->count[i], end - part->first[i]);
	}
}

static int read_chunk(const struct request *q, const uint64_t *scaled)
{
	struct box part;
	struct source source;
	uint64_t at[DIMS_MAX], run;
	unsigned outer = q->dims_count - 1; /* dimensions that are walked; the others make up a run */
	int rc;

	intersect(q, scaled, &part);
	while (outer && part.count[outer] == q->dims[outer] && part.count[outer] == q->chunk[outer])
		outer--;
	run = part.count[outer] * q->stride[outer];
	rc = source_open(q, scaled, run, &source);
	if (rc)
		return rc;
	memcpy(at, part.first, sizeof at);
	do {
		uint64_t from = 0, to = 0;

		for (unsigned i = 0; i < q->dims_count; i++) {
			uint64_t origin = i + 1 < q->dims_count ? scaled[i] * q->chunk[i] : 0;

			from += (at[i] - origin) * q->chunk_stride[i];
			to += at[i] * q->stride[i];
		}
		rc = copy_run(q, &source, from, to, (size_t)run);
	} while (!rc && h5_box_step(at, part.first, part.count, outer));
	source_release(q->dataset, &source);
	return rc;
}

static int read_box(const struct request *q)
{
	uint64_t first[DIMS_MAX], count[DIMS_MAX], scaled[DIMS_MAX];
	unsigned rank = q->dims_count - 1;
	int rc;

	for (unsigned i = 0; i < rank; i++) {
		first[i] = scaled[i] = q->box.first[i] / q->chunk[i];
		count[i] = (q->box.first[i] + q->box.count[i] - 1) / q->chunk[i] - first[i] + 1;
	}
	do {
		rc = read_chunk(q, scaled);
	} while (!rc && h5_box_step(scaled, first, count, rank));
	return rc;
}

/* Puts the largest box that begins at the offset and has at most n bytes into q->box; its bytes. */
static uint64_t cut_box(struct request *q, uint64_t offset, uint64_t n)
{
	unsigned whole = 0; /* this dimension's indexes are taken whole */
	uint64_t rest = offset;

	while (rest % q->stride[whole] || q->stride[whole] > n) {
		q->box.first[whole] = rest / q->stride[whole];
		q->box.count[whole] = 1;
		rest %= q->stride[whole];
		whole++;
	}
	q->box.first[whole] = rest / q->stride[whole];
	q->box.count[whole] = h5_min(n / q->stride[whole], q->dims[whole] - q->box.first[whole]);
	for (unsigned i = whole + 1; i < q->dims_count; i++) {
		q->box.first[i] = 0;
		q->box.count[i] = q->dims[i];
	}
	return q->box.count[whole] * q->stride[whole];
}

static int chunked_read(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n)
{
	const struct h5_chunk_layout *layout = &dataset->layout.chunked;
	struct request q = {.dataset = dataset, .dims_count = layout->rank + 1, .offset = offset, .buf = buf};
	int rc = 0;

	memcpy(q.dims, dataset->space.dims, layout->rank * sizeof *q.dims);
	memcpy(q.chunk, layout->dims, layout->rank * sizeof *q.chunk);
	q.dims[layout->rank] = q.chunk[layout->rank] = dataset->type->size;
	q.stride[layout->rank] = q.chunk_stride[layout->rank] = 1;
	for (unsigned i = layout->rank; i-- > 0;) {
		q.stride[i] = q.stride[i + 1] * q.dims[i + 1];
		q.chunk_stride[i] = q.chunk_stride[i + 1] * q.chunk[i + 1];
	}
	while (n && !rc) {
		uint64_t bytes = cut_box(&q, offset, n);

		rc = read_box(&q);
		offset += bytes;
		n -= (size_t)bytes;
	}
	return rc;
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
