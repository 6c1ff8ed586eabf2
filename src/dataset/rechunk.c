#include "dataset/rechunk.h"

#include "base/array.h"
#include "base/error.h"
#include "change/transaction.h"
#include "dataset/create.h"
#include "dataset/writer.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* ---- what is there ---- */

void h5_dataset_describe(const struct h5_dataset *dataset, struct h5_new_dataset *how)
{
	*how = (struct h5_new_dataset){.type = dataset->type,
				       .space = dataset->space,
				       .layout = dataset->layout.class,
				       .fill = dataset->fill_defined ? dataset->fill : NULL};
	if (how->layout == H5_LAYOUT_CHUNKED) {
		memcpy(how->chunk, dataset->layout.chunked.dims, sizeof how->chunk);
		h5_filter_list_of(&dataset->pipeline, &how->filters);
	}
}

/* The space of chunks and index. */
struct pieces {
	struct h5_extent *list; /* owned */
	size_t count, capacity;
};

static int note_piece(void *arg, uint64_t address, uint64_t n)
{
	struct pieces *pieces = arg;
	int rc = h5_array_reserve(&pieces->list, &pieces->capacity, pieces->count + 1, NULL);

	if (!rc)
		pieces->list[pieces->count++] = (struct h5_extent){address, n};
	return rc;
}

static int give_up_space(const struct h5_dataset *dataset)
{
	struct pieces pieces = {NULL};
	const struct h5_extent_visits visits = {note_piece, note_piece, &pieces};
	int rc = dataset->ops->extents ? dataset->ops->extents(dataset, &visits) : 0;

	for (size_t i = 0; i < pieces.count && !rc; i++)
		h5_tx_free(dataset->file, pieces.list[i].address, pieces.list[i].size);
	free(pieces.list);
	return rc;
}

/* ---- the change ---- */

static int write_elements(struct h5_file *file, uint64_t address, const uint8_t *data, size_t n)
{
	struct h5_dataset_writer *writer;
	int rc;

	if (!n)
		return 0;
	rc = h5_dataset_writer_get(file, address, false, &writer);
	if (rc)
		return rc;
	rc = h5_dataset_writer_write(writer, 0, data, n);
	if (!rc)
		rc = h5_dataset_writer_settle(writer);
	h5_dataset_writer_put(writer);
	return rc;
}

/* In a unit. */
static int store_anew(const struct h5_dataset *dataset, const uint64_t *chunk, const uint8_t *data, size_t n)
{
	struct h5_new_dataset how;
	int rc = give_up_space(dataset);

	h5_dataset_describe(dataset, &how);
	memcpy(how.chunk, chunk, dataset->space.rank * sizeof *chunk);
	if (!rc)
		rc = h5_dataset_define(dataset->file, dataset->address, &how);
	return rc ? rc : write_elements(dataset->file, dataset->address, data, n);
}

static struct h5_tx_participant *writer_of(const struct h5_file *file, uint64_t address)
{
	struct h5_tx_participant *writer;

	DL_SEARCH_SCALAR(h5_tx_participants(file), writer, address, address);
	return writer;
}

/* Its writer forgets what it knows of the dataset. */
static void drop(struct h5_file *file, uint64_t address)
{
	struct h5_tx_participant *writer = writer_of(file, address);

	if (writer)
		h5_tx_drop(file, writer);
}

static int rechunk(const struct h5_dataset *dataset, const uint64_t *chunk)
{
	struct h5_file *file = dataset->file;
	const uint64_t address = dataset->address, size = dataset->size;
	uint8_t *data = size < SIZE_MAX ? malloc((size_t)size + 1) : NULL;
	int rc = 0;

	if (!data)
		rc = h5_fail(-ENOMEM, address, "dataset: no memory for its %ju bytes", (uintmax_t)size);
	if (!rc)
		rc = h5_dataset_read(dataset, 0, data, (size_t)size);
	if (!rc)
		drop(file, address);
	if (!rc)
		rc = h5_unit_begin(file);
	if (!rc) {
		rc = h5_unit_end(file, store_anew(dataset, chunk, data, (size_t)size));
		/* What the writer knows of its index is not true if the unit has failed. */
		if (rc)
			drop(file, address);
	}
	free(data);
	return rc;
}

int h5_dataset_rechunk(struct h5_file *file, uint64_t address, const uint64_t *chunk)
{
	const struct h5_dataset *dataset;
	struct h5_tx_participant *writer = writer_of(file, address);
	struct h5_lru_entry *ref;
	int rc = writer && writer->dirty ? writer->ops->settle(writer) : 0;

	if (!rc)
		rc = h5_dataset_get(file, address, &ref, &dataset);
	if (rc)
		return rc;
	if (h5_dataset_chunks(dataset))
		rc = rechunk(dataset, chunk);
	else
		rc = h5_fail(-EINVAL, address, "dataset: it has no chunks");
	h5_file_put(file, ref);
	return rc;
}
