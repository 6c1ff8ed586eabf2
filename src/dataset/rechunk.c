#include "dataset/rechunk.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "change/transaction.h"
#include "dataset/create.h"
#include "dataset/removal.h"
#include "dataset/writing.h"

#include <stdlib.h>
#include <string.h>

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

/* ---- the change ---- */

/* The dataset, and its elements in memory. */
struct rechunking {
	struct h5_file *file;
	uint64_t address;
	struct h5_tx_participant *writer; /* NULL: there is none */
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	uint64_t rows;	/* of dimension 0 */
	uint8_t *data;	/* owned */
	size_t n;	/* bytes */
	bool is_stored; /* the file has them, too */
};

/* fill: one element of so many bytes; NULL: zeros. */
static bool is_filled(const uint8_t *data, size_t n, const uint8_t *fill, size_t element)
{
	if (!fill)
		return !data[0] && !memcmp(data, data + 1, n - 1);
	return !memcmp(data, fill, element) && !memcmp(data, data + element, n - element);
}

/* Writes the elements, `bytes` of them at a time, which is a row of chunks. A row of nothing but fill values
 * is not written, and stays a hole. */
static int write_chunks(struct h5_dataset_writer *writer, const struct h5_new_dataset *how,
			const struct rechunking *r, size_t bytes)
{
	int rc = 0;

	for (size_t at = 0, n; !rc && at < r->n; at += n) {
		n = h5_min(r->n - at, bytes);
		if (!is_filled(r->data + at, n, how->fill, how->type->size))
			rc = h5_dataset_writer_write(writer, at, r->data + at, n);
	}
	return rc ? rc : h5_dataset_writer_settle(writer);
}

static int write_elements(const struct rechunking *r, const struct h5_new_dataset *how)
{
	struct h5_dataset_writer *writer;
	uint64_t row;
	int rc;

	if (!r->n)
		return 0;
	rc = h5_dataset_writer_get(r->file, r->address, false, &writer);
	if (rc)
		return rc;
	row = h5_dataset_writer_row(writer);
	rc = write_chunks(writer, how, r, (size_t)(h5_min(how->chunk[0], r->n / row) * row));
	h5_dataset_writer_put(writer);
	return rc;
}

/* In a unit. */
static int store_anew(const struct rechunking *r, const uint64_t *chunk)
{
	struct h5_new_dataset how;
	int rc = h5_dataset_give_up(r->dataset);

	h5_dataset_describe(r->dataset, &how);
	how.space.dims[0] = r->rows;
	memcpy(how.chunk, chunk, how.space.rank * sizeof *chunk);
	if (!rc)
		rc = h5_dataset_define(r->file, r->address, &how);
	return rc ? rc : write_elements(r, &how);
}

static int allocate(struct rechunking *r, uint64_t n)
{
	r->data = n < SIZE_MAX ? malloc((size_t)n + 1) : NULL;
	r->n = (size_t)n;
	return r->data ? 0
		       : h5_fail(-ENOMEM, r->address, "dataset: no memory for its %ju bytes", (uintmax_t)n);
}

/* Elements that only the writer's memory holds need not be stored twice. */
static int take_from_writer(struct rechunking *r)
{
	struct h5_dataset_writer *writer;
	int rc = h5_dataset_writer_get(r->file, r->address, false, &writer);

	if (rc)
		return rc;
	r->rows = h5_dataset_writer_size(writer) / h5_max(h5_dataset_writer_row(writer), 1);
	rc = allocate(r, h5_dataset_writer_size(writer));
	if (!rc)
		rc = h5_dataset_writer_peek(writer, r->data, r->n);
	h5_dataset_writer_put(writer);
	return rc;
}

static int take_from_file(struct rechunking *r)
{
	int rc = r->writer && r->writer->dirty ? r->writer->ops->settle(r->writer) : 0;

	free(r->data);
	r->data = NULL;
	h5_file_put(r->file, r->ref);
	r->ref = NULL;
	if (!rc)
		rc = h5_dataset_get(r->file, r->address, &r->ref, &r->dataset);
	if (!rc)
		rc = allocate(r, r->dataset->size);
	if (!rc)
		rc = h5_dataset_read(r->dataset, 0, r->data, r->n);
	r->is_stored = true;
	r->rows = r->dataset ? r->dataset->space.dims[0] : 0;
	return rc;
}

/* The writer forgets what it knows of the dataset. */
static void drop(struct rechunking *r)
{
	if (r->writer)
		h5_tx_drop(r->file, r->writer);
}

/* After a failure, perhaps since the request was interrupted, which must not stop this. Without memory the
 * elements are lost, as the caller's error tells. */
static void give_back(struct rechunking *r)
{
	struct h5_dataset_writer *writer;
	struct h5_interrupt request;

	drop(r);
	if (r->is_stored)
		return;
	h5_interrupt_pause(&request);
	if (!h5_dataset_writer_get(r->file, r->address, false, &writer)) {
		(void)h5_dataset_writer_append(writer, r->data, r->n);
		h5_dataset_writer_put(writer);
	}
	h5_interrupt_set(&request);
}

static int rechunk(struct rechunking *r, const uint64_t *chunk)
{
	int rc = -ENODATA;

	if (!h5_dataset_chunks(r->dataset))
		return h5_fail(-EINVAL, r->address, "dataset: it has no chunks");
	if (r->writer && r->writer->dirty && !r->dataset->size)
		rc = take_from_writer(r);
	if (rc == -ENODATA)
		rc = take_from_file(r);
	if (rc)
		return rc;
	h5_unit_begin(r->file);
	/* What the writer holds is not given up: it is in our memory, and nothing of it was stored. */
	if (r->writer && !r->is_stored)
		h5_tx_report(r->file, r->writer, false, 0);
	drop(r);
	rc = h5_unit_end(r->file, store_anew(r, chunk));
	/* What the writer knows of its index is not true if the unit has failed. */
	if (rc)
		give_back(r);
	return rc;
}

int h5_dataset_rechunk(struct h5_file *file, uint64_t address, const uint64_t *chunk)
{
	struct rechunking r = {.file = file, .address = address};
	struct h5_dataset_writer *writer = h5_dataset_writer_find(file, address);
	int rc = h5_dataset_get(file, address, &r.ref, &r.dataset);

	if (writer)
		r.writer = &writer->participant;
	if (!rc)
		rc = rechunk(&r, chunk);
	h5_file_put(file, r.ref);
	free(r.data);
	return rc;
}
