#include "dataset/chunk_cache.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/wait.h"
#include "dataset/private.h"
#include "dataset/structured.h"
#include "store/file_set.h"
#include "store/pipeline.h"

#include <stdlib.h>

enum {
	LONG = 1 << 17, /* bytes that take a while to decode */
	RESERVED_LEAST = 1 << 20,
	AHEAD_LEAST = 2 << 20, /* bytes that are decoded ahead, if the budget has them */
	AHEAD_SHARE = 4,       /* a fourth of the cache of chunks may be decoded ahead */
	SHUFFLED_ROW = 256,    /* least bytes of a row in chunks that may stay shuffled */
};

void h5_chunk_grid(const struct h5_dataset *dataset, struct h5_grid *grid)
{
	const struct h5_chunk_layout *layout = &dataset->layout.chunked;

	h5_grid_init(grid, layout->rank, dataset->space.dims, layout->dims, dataset->type->size);
}

static bool is_structured(const struct h5_dataset *dataset)
{
	return h5_structured_marks(dataset);
}

bool h5_chunks_are_decoded(const struct h5_dataset *dataset)
{
	return dataset->index && (dataset->pipeline.count || is_structured(dataset));
}

uint64_t h5_chunks_band(const struct h5_dataset *dataset)
{
	struct h5_grid grid;
	uint64_t band;

	h5_chunk_grid(dataset, &grid);
	return h5_mul(grid.chunk[0], grid.stride[0], &band) ? band : UINT64_MAX;
}

uint64_t h5_chunks_ahead_budget(const struct h5_dataset *dataset)
{
	return h5_file_set_chunk_budget(h5_file_set_of(dataset->file)) / AHEAD_SHARE;
}

uint64_t h5_chunks_window(const struct h5_dataset *dataset)
{
	return h5_min(h5_max(h5_chunks_band(dataset), AHEAD_LEAST), h5_chunks_ahead_budget(dataset));
}

/* True: the chunk reaches beyond the dataset. If the layout has unfiltered_edges, such chunks are stored
 * without filters. */
static bool is_partial(const struct h5_grid *grid, const uint64_t *scaled)
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

int h5_chunk_locate(const struct h5_dataset *dataset, const struct h5_grid *grid,
		    struct h5_chunk_cursor *cursor, const uint64_t *scaled, struct h5_chunk_wanted *wanted,
		    enum h5_chunk_state *state)
{
	struct h5_chunk *chunk = &wanted->chunk;
	bool whole;
	int rc;

	*state = H5_CHUNK_NOT_STORED;
	if (!dataset->index)
		return 0;
	rc = h5_chunk_index_lookup(dataset->index, cursor, scaled, chunk);
	if (rc || chunk->address == H5_UNDEF)
		return rc;
	wanted->dataset = dataset;
	whole = !dataset->layout.chunked.unfiltered_edges || !is_partial(grid, scaled);
	*state = H5_CHUNK_TO_DECODE;
	wanted->filtered = whole;
	if (is_structured(dataset))
		return 0;
	wanted->filtered = whole && h5_chunk_is_filtered(&dataset->pipeline, chunk->filter_mask);
	if (wanted->filtered)
		return 0;
	chunk->size = h5_min(chunk->size, dataset->chunk_size);
	*state = H5_CHUNK_AS_IT_IS;
	return 0;
}

static struct h5_lru *cache_of(const struct h5_chunk_wanted *wanted)
{
	return h5_file_set_chunks(h5_file_set_of(wanted->dataset->file));
}

struct decoded {
	uint8_t *data; /* owned */
	size_t size;   /* this and the next: as in struct h5_chunk_decoded */
	uint32_t element_size;
};

static void decoded_free(void *value)
{
	struct decoded *chunk = value;

	free(chunk->data);
	free(chunk);
}

/* Readers copy one row of the chunk after the other. If rows are short, unshuffling each of them costs more
 * than unshuffling the whole chunk once. */
static bool may_stay_shuffled(const struct h5_dataset *dataset)
{
	const struct h5_chunk_layout *layout = &dataset->layout.chunked;

	return layout->rank && layout->dims[layout->rank - 1] * layout->element_size >= SHUFFLED_ROW;
}

/* Reads and decodes the chunk, into at most `room` bytes. */
static int decode(const struct h5_chunk_wanted *wanted, uint64_t room, struct h5_pipeline_data *data)
{
	const struct h5_dataset *dataset = wanted->dataset;

	if (is_structured(dataset)) {
		data->size = (size_t)dataset->chunk_size;
		data->element_size = 1;
		return h5_structured_read(dataset, &wanted->chunk, wanted->filtered, &data->bytes);
	}
	return h5_pipeline_read_chunk(dataset->file, wanted->filtered ? &dataset->pipeline : NULL,
				      wanted->chunk.filter_mask, wanted->chunk.address, wanted->chunk.size,
				      dataset->chunk_size, room, data);
}

/* The most memory that decode() takes. */
static uint64_t need(const struct h5_chunk_wanted *wanted, uint64_t room)
{
	const struct h5_dataset *dataset = wanted->dataset;

	if (is_structured(dataset))
		return h5_structured_need(dataset, &wanted->chunk);
	return h5_pipeline_need(wanted->filtered ? &dataset->pipeline : NULL, wanted->chunk.size, room);
}

/* decode(), while the memory that it takes counts against the budget of the cache. */
static int decode_counted(const struct h5_chunk_wanted *wanted, uint64_t size, struct h5_pipeline_data *data)
{
	struct h5_lru *cache = cache_of(wanted);
	/* On a machine of 32 bits no budget is larger than SIZE_MAX. */
	size_t room = (size_t)h5_min(need(wanted, size), SIZE_MAX);
	int rc;

	if (h5_max(size, wanted->chunk.size) >= LONG)
		h5_wait_begins();
	/* Small chunks are not worth counting: few are decoded at a time. */
	if (room < RESERVED_LEAST)
		return decode(wanted, size, data);
	rc = h5_lru_reserve(cache, room);
	if (rc)
		return rc;
	rc = decode(wanted, size, data);
	h5_lru_unreserve(cache, room);
	return rc;
}

/* A few chunks decode to more bytes than a chunk has. They are decoded again, with more room. */
static int read_chunk(const struct h5_chunk_wanted *wanted, struct h5_pipeline_data *data)
{
	struct h5_file *file = wanted->dataset->file;
	uint64_t room = wanted->dataset->chunk_size;
	int rc = decode_counted(wanted, room, data);

	while (rc == -EOVERFLOW && (room = h5_pipeline_more_room(file, room)))
		rc = decode_counted(wanted, room, data);
	if (rc == -EOVERFLOW) {
		struct h5_error cause = *h5_error_last();

		rc = h5_fail(-EUCLEAN, cause.address, "%s", cause.text);
	}
	return rc;
}

int h5_chunk_read(const struct h5_chunk_wanted *wanted, uint8_t **data, size_t *size)
{
	struct h5_pipeline_data got = {0};
	int rc = read_chunk(wanted, &got);

	*data = got.bytes;
	*size = got.size;
	return rc;
}

int h5_chunk_check_size(const struct h5_chunk_wanted *wanted, uint64_t size, uint64_t needed)
{
	if (size >= needed)
		return 0;
	return h5_fail(-EUCLEAN, wanted->chunk.address, "chunk: %ju bytes are stored of %ju", (uintmax_t)size,
		       (uintmax_t)wanted->dataset->chunk_size);
}

static int load(void *arg, void **value, size_t *cost)
{
	const struct h5_chunk_wanted *wanted = arg;
	struct h5_pipeline_data data = {.may_stay_shuffled = may_stay_shuffled(wanted->dataset)};
	struct decoded *chunk = calloc(1, sizeof *chunk);
	int rc;

	if (!chunk)
		return h5_fail(-ENOMEM, wanted->chunk.address, "chunk: out of memory");
	rc = read_chunk(wanted, &data);
	if (rc) {
		free(chunk);
		return rc;
	}
	chunk->data = data.bytes;
	chunk->size = data.size;
	chunk->element_size = data.element_size;
	*value = chunk;
	*cost = sizeof *chunk + data.size + (size_t)h5_structured_marks(wanted->dataset);
	return 0;
}

/* The owner is the number of the file when the dataset was read, so what was decoded before a change is not
 * found after it. */
static struct h5_lru_key key_of(const struct h5_chunk_wanted *wanted)
{
	static const struct h5_lru_kind kind = {"chunk", decoded_free};

	return (struct h5_lru_key){.kind = &kind,
				   .owner = wanted->dataset->number,
				   .address = wanted->chunk.address,
				   .variant = wanted->dataset->address};
}

static void refer(struct h5_chunk_decoded *decoded)
{
	const struct decoded *chunk = h5_lru_value(decoded->ref);

	decoded->data = chunk->data;
	decoded->size = chunk->size;
	decoded->element_size = chunk->element_size;
}

bool h5_chunk_find(const struct h5_chunk_wanted *wanted, struct h5_chunk_decoded *decoded)
{
	struct h5_lru_key key = key_of(wanted);

	if (!h5_lru_find(cache_of(wanted), &key, &decoded->ref))
		return false;
	refer(decoded);
	return true;
}

bool h5_chunk_is_under_way(const struct h5_chunk_wanted *wanted)
{
	struct h5_lru_key key = key_of(wanted);

	return h5_lru_has(cache_of(wanted), &key);
}

bool h5_chunk_plan(const struct h5_chunk_wanted *wanted)
{
	struct h5_lru_key key = key_of(wanted);

	return h5_lru_plan(cache_of(wanted), &key);
}

/* Checked before a thread waits for that much memory. */
static int check_size(const struct h5_chunk_wanted *wanted)
{
	return h5_pipeline_check_size(wanted->dataset->file,
				      wanted->filtered ? wanted->dataset->pipeline.count : 0,
				      wanted->chunk.address, wanted->dataset->chunk_size);
}

int h5_chunk_load_ahead(const struct h5_chunk_wanted *wanted)
{
	struct h5_chunk_wanted copy = *wanted;
	struct h5_lru_key key = key_of(wanted);
	int rc = check_size(wanted);

	return rc ? rc : h5_lru_load_ahead(cache_of(wanted), &key, load, &copy);
}

int h5_chunk_get(const struct h5_chunk_wanted *wanted, bool wait, struct h5_chunk_decoded *decoded)
{
	struct h5_chunk_wanted copy = *wanted;
	struct h5_lru_key key = key_of(wanted);
	int rc = check_size(wanted);

	if (rc)
		return rc;
	rc = wait ? h5_lru_get(cache_of(wanted), &key, load, &copy, &decoded->ref)
		  : h5_lru_try(cache_of(wanted), &key, load, &copy, &decoded->ref);
	if (!rc)
		refer(decoded);
	return rc;
}

void h5_chunk_put(const struct h5_chunk_wanted *wanted, struct h5_chunk_decoded *decoded, uint64_t taken,
		  uint64_t all)
{
	h5_lru_put_used(cache_of(wanted), decoded->ref, taken, all);
	decoded->ref = NULL;
}
