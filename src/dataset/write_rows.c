/* Dimension 0 of chunked data. The numbers of invariants are those of doc/writing.md. */
#include "base/buf.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "change/transaction.h"
#include "dataset/write_private.h"

#include <string.h>

/* The first row of the next chunk, or `most`, where that comes first. */
static uint64_t chunk_end(const struct h5_chunked_writer *c, uint64_t row, uint64_t most)
{
	uint64_t rest = row % c->grid.chunk[0];

	return row + h5_min(rest ? c->grid.chunk[0] - rest : 0, most - row);
}

/* Where rows from `first` on may be stored though they are not in the dataset: to the end of the last chunk,
 * or everywhere. */
static uint64_t stale_end(const struct h5_chunked_writer *c, uint64_t first, uint64_t most)
{
	return c->keeps ? most : chunk_end(c, first, most);
}

static void set_rows(struct h5_dataset_writer *w, uint64_t rows)
{
	w->chunked.grid.dims[0] = rows;
	h5_chunk_index_resize(w->chunked.index, w->chunked.grid.dims);
}

/* Extents of chunks that were removed. */
struct removed {
	uint64_t address, size;
};

static int add_removed(void *arg, const struct h5_chunk *chunk)
{
	struct removed one = {chunk->address, chunk->size}, last;
	struct h5_buf *list = arg;

	/* Most lie side by side. */
	if (list->size) {
		memcpy(&last, list->data + list->size - sizeof last, sizeof last);
		if (last.address + last.size == one.address) {
			last.size += one.size;
			memcpy(list->data + list->size - sizeof last, &last, sizeof last);
			return 0;
		}
	}
	/* Without memory for it, the space is lost. */
	h5_buf_add(list, &one, sizeof one);
	return 0;
}

static int ignore_removed(void *arg, const struct h5_chunk *chunk)
{
	(void)arg;
	(void)chunk;
	return 0;
}

/* Removes the chunks behind the last row. `discard`: what becomes of their space; NULL: it is lost, since who
 * left them there may have freed it. */
static int trim(struct h5_dataset_writer *w, void (*discard)(struct h5_file *, uint64_t, uint64_t))
{
	struct h5_chunked_writer *c = &w->chunked;
	uint64_t first = w->rows / c->grid.chunk[0] + (w->rows % c->grid.chunk[0] != 0);
	struct h5_buf list;
	int rc;

	if (c->keeps)
		return 0;
	w->index_changed = true;
	h5_buf_init(&list, SIZE_MAX);
	rc = h5_chunk_index_trim(c->index, first, discard ? add_removed : ignore_removed, &list);
	for (size_t i = 0; !rc && i < list.size; i += sizeof(struct removed)) {
		struct removed one;

		memcpy(&one, list.data + i, sizeof one);
		discard(w->file, one.address, one.size);
	}
	h5_buf_release(&list);
	c->keeps = rc == -ENOTSUP;
	if (c->keeps)
		rc = 0;
	c->trimmed = !rc;
	return rc;
}

/* After growing from w->rows has failed: nothing of it stays. Where that fails too, the next growth sees to
 * it. */
static void undo_growth(struct h5_dataset_writer *w)
{
	struct h5_chunked_writer *c = &w->chunked;
	uint64_t end = stale_end(c, w->rows, c->grid.dims[0]);
	struct h5_error cause = *h5_error_last();

	/* Nobody waits for this, but it must not stay undone. */
	h5_interrupt_begin(NULL, NULL);
	(void)h5_chunked_clear(w, w->rows, end);
	h5_chunked_drop(w, end);
	set_rows(w, w->rows);
	(void)trim(w, h5_tx_free);
	(void)h5_fail(cause.code, cause.address, "%s", cause.text);
}

static int grow(struct h5_dataset_writer *w, uint64_t rows, const uint8_t *data)
{
	struct h5_chunked_writer *c = &w->chunked;
	int rc = c->trimmed ? 0 : trim(w, NULL);

	if (rc)
		return rc;
	set_rows(w, rows);
	/* Invariant 2: stale rows are overwritten, or become the fill value, before they are uncovered. */
	if (data)
		rc = h5_chunked_write(w, w->rows * w->row, data, (size_t)((rows - w->rows) * w->row));
	else if (w->dataset->early)
		rc = h5_chunked_fill(w, w->rows, rows);
	else
		rc = h5_chunked_clear(w, w->rows, stale_end(c, w->rows, rows));
	if (rc)
		undo_growth(w);
	else
		w->rows = rows;
	return rc;
}

static int commit(struct h5_dataset_writer *w)
{
	int rc = h5_tx_is_writable(w->file) ? h5_tx_commit(w->file) : -EROFS;

	if (!rc)
		rc = w->participant.failure;
	if (!rc)
		w->chunked.visible = w->settled;
	return rc;
}

int h5_chunked_grow(struct h5_dataset_writer *w, uint64_t rows, const uint8_t *data)
{
	struct h5_chunked_writer *c = &w->chunked;
	uint64_t first = w->rows - w->rows % c->grid.chunk[0], end = chunk_end(c, w->rows, rows);
	bool completed = c->edges && first < w->settled && end - first == c->grid.chunk[0];
	int rc = grow(w, rows, data);

	/* The last chunks had to stay raw, but not for ever. That the rows are there does not hang on it. */
	if (!rc && completed && !commit(w))
		(void)h5_chunked_store_again(w, first, end);
	return rc;
}

/* Stores chunks that become partial raw, while they are not yet. */
static int unfilter_last(struct h5_dataset_writer *w, uint64_t rows)
{
	struct h5_chunked_writer *c = &w->chunked;
	uint64_t first = rows - rows % c->grid.chunk[0];
	int rc;

	if (!c->edges || first == rows)
		return 0;
	c->grid.dims[0] = rows;
	rc = h5_chunked_store_again(w, first, rows);
	if (!rc)
		rc = h5_chunked_release(w, true);
	c->grid.dims[0] = w->rows;
	return rc;
}

int h5_chunked_clean(struct h5_dataset_writer *w)
{
	struct h5_chunked_writer *c = &w->chunked;
	int rc = h5_tx_touch(w->file, w->address);

	if (!rc)
		rc = trim(w, h5_tx_discard);
	if (!rc && c->unclean > w->rows) {
		c->grid.dims[0] = c->unclean;
		rc = h5_chunked_clear(w, w->rows, stale_end(c, w->rows, c->unclean));
		if (!rc)
			rc = h5_chunked_release(w, true);
		c->grid.dims[0] = w->rows;
	}
	if (!rc)
		c->unclean = 0;
	return rc;
}

int h5_chunked_shrink(struct h5_dataset_writer *w, uint64_t rows)
{
	struct h5_chunked_writer *c = &w->chunked;
	uint64_t before = w->rows;
	int rc = commit(w);

	if (!rc)
		rc = unfilter_last(w, rows);
	if (!rc)
		rc = h5_chunked_release(w, true);
	if (rc)
		return rc;
	w->rows = rows;
	set_rows(w, rows);
	rc = commit(w);
	if (rc) {
		w->rows = before;
		set_rows(w, before);
		return rc;
	}
	/* The rows are gone. Where the rest fails, it is tried again whenever the dataset is settled. */
	c->unclean = before;
	h5_interrupt_begin(NULL, NULL);
	if (h5_chunked_clean(w) || commit(w))
		c->trimmed = false;
	return 0;
}
