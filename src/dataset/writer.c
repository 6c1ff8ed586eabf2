#include "dataset/writer.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "change/object_header_edit.h"
#include "change/transaction.h"
#include "dataset/write_private.h"
#include "store/object_header.h"
#include "store/pipeline.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
	FILL_PIECE = 1 << 16, /* bytes that are written at once */
	WRITERS_MAX = 64,     /* of a file; those in use may be more */
};

static int refuse_class(struct h5_dataset_writer *w)
{
	return h5_fail(-EPERM, w->address, "dataset: %s data are not written in this mount",
		       w->dataset->external		      ? "external"
		       : w->layout.class == H5_LAYOUT_VIRTUAL ? "virtual"
							      : "sparse");
}

/* Bytes of compact data whose message may be too small to be moved by itself. */
enum { COMPACT_SMALL = 16 };

bool h5_dataset_can_be_written(const struct h5_dataset *dataset, bool external)
{
	switch (dataset->layout.class) {
	case H5_LAYOUT_COMPACT:
		return !dataset->shared_layout &&
		       (dataset->layout.compact.size >= COMPACT_SMALL ||
			!h5_header_can_replace(dataset->file, dataset->address, H5_MSG_LAYOUT));
	case H5_LAYOUT_CONTIGUOUS:
		if (dataset->external)
			return external;
		return dataset->layout.contiguous.address != H5_UNDEF || !dataset->shared_layout;
	case H5_LAYOUT_CHUNKED:
		if (dataset->layout.chunked.index == H5_INDEX_BTREE1 && h5_tx_is_swmr(dataset->file))
			return false;
		return !dataset->shared_space && !dataset->shared_layout &&
		       !h5_pipeline_can_encode(&dataset->pipeline);
	default:
		return false;
	}
}

static int choose_ops(struct h5_dataset_writer *w)
{
	static const struct h5_write_ops *const layouts[] = {
		[H5_LAYOUT_COMPACT] = &h5_write_compact, [H5_LAYOUT_CONTIGUOUS] = &h5_write_contiguous,
		[H5_LAYOUT_CHUNKED] = &h5_write_chunked, [H5_LAYOUT_VIRTUAL] = NULL,
		[H5_LAYOUT_STRUCTURED] = NULL,
	};

	w->ops = layouts[w->layout.class];
	if (w->dataset->external)
		w->ops = w->may_write_external ? &h5_write_external : NULL;
	return w->ops ? 0 : refuse_class(w);
}

/* Bytes of a row. */
static int set_row(struct h5_dataset_writer *w)
{
	const struct h5_dataspace *space = &w->dataset->space;

	if (w->dataset->size == UINT64_MAX)
		return h5_fail(-EOVERFLOW, w->address, "dataset: more than 2^63-1 bytes");
	if (!space->rank)
		return 0;
	if (!h5_product(space->dims + 1, space->rank - 1, &w->row) ||
	    !h5_mul(w->row, w->dataset->type->size, &w->row) || w->row > INT64_MAX)
		return h5_fail(-EOVERFLOW, w->address, "dataset: rows of more than 2^63-1 bytes");
	w->rows = w->settled = space->dims[0];
	return 0;
}

/* ---- opening and closing ---- */

static struct h5_dataset_writer *writer_of(struct h5_tx_participant *participant)
{
	return (struct h5_dataset_writer *)participant;
}

/* Forgets all that is known of the dataset. */
static void clear(struct h5_dataset_writer *w)
{
	if (w->ops && w->ops->close)
		w->ops->close(w);
	if (w->ref)
		h5_file_put(w->file, w->ref);
	*w = (struct h5_dataset_writer){.participant = w->participant,
					.file = w->file,
					.address = w->address,
					.may_write_external = w->may_write_external,
					.users = w->users};
}

static int prepare(struct h5_dataset_writer *w)
{
	int rc;

	w->layout = w->dataset->layout;
	if (!h5_datatype_is_fixed(w->dataset->type))
		return h5_fail(-EPERM, w->address, "dataset: its elements are shown as text");
	rc = choose_ops(w);
	if (!rc)
		rc = set_row(w);
	if (!rc && w->ops->open)
		rc = w->ops->open(w);
	return rc;
}

int h5_dataset_writer_ready(struct h5_dataset_writer *w)
{
	int rc;

	if (w->ref)
		return 0;
	rc = h5_dataset_get(w->file, w->address, &w->ref, &w->dataset);
	if (!rc)
		rc = prepare(w);
	if (rc)
		clear(w);
	return rc;
}

static int settle_participant(struct h5_tx_participant *participant)
{
	return h5_dataset_writer_settle(writer_of(participant));
}

static void drop_participant(struct h5_tx_participant *participant)
{
	clear(writer_of(participant));
}

static const struct h5_tx_participant_ops participant_ops = {settle_participant, drop_participant};

static bool is_writer(const struct h5_tx_participant *participant)
{
	return participant->ops == &participant_ops;
}

static int make_writer(struct h5_file *file, uint64_t address, bool external, struct h5_dataset_writer **out)
{
	struct h5_dataset_writer *w = calloc(1, sizeof *w);
	int rc;

	if (!w)
		return h5_fail(-ENOMEM, address, "out of memory");
	w->participant.ops = &participant_ops;
	w->participant.address = w->address = address;
	w->file = file;
	w->may_write_external = external;
	rc = h5_dataset_writer_ready(w);
	if (rc) {
		free(w);
		return rc;
	}
	h5_tx_join(file, &w->participant);
	*out = w;
	return 0;
}

void h5_dataset_writer_close(struct h5_dataset_writer *w)
{
	if (!w)
		return;
	h5_tx_leave(w->file, &w->participant);
	free(w);
}

/* Closes writers that have no user until there is room for one more. */
static void make_room(struct h5_file *file)
{
	struct h5_tx_participant *p, *next;
	unsigned count = 0;

	DL_COUNT(h5_tx_participants(file), p, count);
	DL_FOREACH_SAFE(h5_tx_participants(file), p, next)
	{
		if (count < WRITERS_MAX)
			break;
		if (!is_writer(p) || writer_of(p)->users || p->uncommitted)
			continue;
		h5_dataset_writer_close(writer_of(p));
		count--;
	}
}

int h5_dataset_writer_get(struct h5_file *file, uint64_t address, bool external,
			  struct h5_dataset_writer **out)
{
	struct h5_tx_participant *p;
	int rc;

	if (!h5_tx_is_writable(file))
		return h5_fail(-EROFS, address, "the file is open for reading only");
	DL_SEARCH_SCALAR(h5_tx_participants(file), p, address, address);
	if (p && is_writer(p)) {
		*out = writer_of(p);
		rc = h5_dataset_writer_ready(*out);
	} else {
		make_room(file);
		rc = make_writer(file, address, external, out);
	}
	if (!rc)
		(*out)->users++;
	return rc;
}

void h5_dataset_writer_put(struct h5_dataset_writer *w)
{
	assert(w->users);
	w->users--;
}

void h5_dataset_writers_close(struct h5_file *file)
{
	struct h5_tx_participant *p, *next;

	DL_FOREACH_SAFE(h5_tx_participants(file), p, next)
	if (is_writer(p))
		h5_dataset_writer_close(writer_of(p));
}

bool h5_dataset_writer_is_uncommitted(const struct h5_dataset_writer *w)
{
	return w->participant.uncommitted;
}

int h5_dataset_writer_failure(const struct h5_dataset_writer *w)
{
	return w->participant.failure;
}

uint64_t h5_dataset_writer_size(const struct h5_dataset_writer *w)
{
	return w->dataset->space.rank ? w->rows * w->row : w->dataset->size;
}

uint64_t h5_dataset_writer_row(const struct h5_dataset_writer *w)
{
	return w->row;
}

bool h5_dataset_writer_can_resize(const struct h5_dataset_writer *w)
{
	return w->row && w->layout.class == H5_LAYOUT_CHUNKED;
}

uint64_t h5_dataset_writer_max_rows(const struct h5_dataset_writer *w)
{
	uint64_t max = w->dataset->space.max[0];

	if (!h5_dataset_writer_can_resize(w) || max < w->rows)
		return w->rows;
	return h5_min(max, INT64_MAX / w->row);
}

/* Tells the transaction what the writer holds after a change that has come to `rc`, which it returns. */
static int report(struct h5_dataset_writer *w, int rc)
{
	h5_tx_report(w->file, &w->participant, h5_dataset_writer_is_dirty(w), h5_dataset_writer_held(w));
	return rc;
}

int h5_dataset_writer_write(struct h5_dataset_writer *w, uint64_t offset, const void *data, size_t n)
{
	uint64_t size = h5_dataset_writer_size(w);

	if (offset > size || n > size - offset)
		return h5_fail(-EINVAL, w->address, "dataset: written beyond its end");
	return n ? report(w, w->ops->write(w, offset, data, n)) : 0;
}

int h5_dataset_writer_append(struct h5_dataset_writer *w, const void *data, size_t n)
{
	if (!w->row || n % w->row)
		return h5_fail(-EINVAL, w->address, "dataset: %zu bytes are no whole rows", n);
	if (n / w->row > h5_dataset_writer_max_rows(w) - w->rows)
		return h5_fail(-EFBIG, w->address, "dataset: more rows than its maximum");
	return n ? report(w, h5_chunked_grow(w, w->rows + n / w->row, data)) : 0;
}

int h5_dataset_writer_resize(struct h5_dataset_writer *w, uint64_t rows)
{
	if (rows == w->rows)
		return 0;
	if (!h5_dataset_writer_can_resize(w))
		return h5_fail(-EPERM, w->address, "dataset: its size cannot change");
	if (rows > h5_dataset_writer_max_rows(w))
		return h5_fail(-EFBIG, w->address, "dataset: more rows than its maximum");
	return report(w, rows > w->rows ? h5_chunked_grow(w, rows, NULL) : h5_chunked_shrink(w, rows));
}

/* ---- settling ---- */

static int update_layout(const struct h5_dataset_writer *w, uint8_t *body, size_t n)
{
	const struct h5_superblock *sb = h5_file_superblock(w->file);

	return h5_layout_update(body, n, sb->size_of_offsets, sb->size_of_lengths, &w->layout);
}

static int update_space(const struct h5_dataset_writer *w, uint8_t *body, size_t n)
{
	struct h5_dataspace space = w->dataset->space;

	space.dims[0] = w->rows;
	return h5_dataspace_update(body, n, h5_file_superblock(w->file)->size_of_lengths, &space);
}

/* Brings a message of the object header up to date. */
static int replace(struct h5_dataset_writer *w, enum h5_message_type type,
		   int (*update)(const struct h5_dataset_writer *w, uint8_t *body, size_t n))
{
	const struct h5_object *object;
	const struct h5_message *message;
	struct h5_lru_entry *ref;
	uint8_t *body = NULL;
	size_t n = 0;
	int rc = h5_object_get(w->file, w->address, &ref, &object);

	if (rc)
		return rc;
	message = h5_object_find(object, type);
	if (!message)
		rc = h5_fail(-EUCLEAN, w->address, "dataset: a message of its header is gone");
	else if (!(body = malloc(message->size + 1)))
		rc = h5_fail(-ENOMEM, w->address, "out of memory");
	if (!rc) {
		n = message->size;
		memcpy(body, message->data, n);
		rc = update(w, body, n);
	}
	h5_file_put(w->file, ref);
	if (!rc)
		rc = h5_tx_touch(w->file, w->address);
	if (!rc)
		rc = h5_header_replace(w->file, w->address, type, body, n);
	free(body);
	h5_tx_forget(w->file, w->address);
	return rc;
}

bool h5_dataset_writer_is_dirty(const struct h5_dataset_writer *w)
{
	return w->dirty || w->layout_changed || w->index_changed || w->rows != w->settled ||
	       (w->layout.class == H5_LAYOUT_CHUNKED && w->chunked.unclean);
}

/* The dataspace comes last: where something before it fails, it uncovers nothing that is not there. */
int h5_dataset_writer_settle(struct h5_dataset_writer *w)
{
	int rc = 0;

	if (!h5_dataset_writer_is_dirty(w))
		return 0;
	if (w->ops->flush)
		rc = w->ops->flush(w);
	if (!rc && w->layout_changed) {
		rc = replace(w, H5_MSG_LAYOUT, update_layout);
		w->layout_changed = rc;
	}
	if (!rc && w->rows != w->settled) {
		rc = replace(w, H5_MSG_DATASPACE, update_space);
		if (!rc)
			w->settled = w->rows;
	}
	if (w->index_changed) {
		h5_tx_forget(w->file, w->address);
		w->index_changed = rc;
	}
	return report(w, rc);
}

size_t h5_dataset_writer_held(const struct h5_dataset_writer *w)
{
	return w->layout.class == H5_LAYOUT_CHUNKED ? w->dirty * (size_t)w->dataset->chunk_size : 0;
}

int h5_write_needs(struct h5_dataset_writer *w, enum h5_message_type type)
{
	int rc = h5_header_can_replace(w->file, w->address, type);
	struct h5_error cause = *h5_error_last();

	return rc == -ENOTSUP ? h5_fail(-EPERM, cause.address, "%s", cause.text) : rc;
}

int h5_write_fill_value(struct h5_dataset_writer *w, uint64_t address, uint64_t offset, uint64_t n)
{
	uint8_t *piece = malloc(FILL_PIECE);
	int rc = piece ? 0 : h5_fail(-ENOMEM, address, "out of memory");

	for (uint64_t done = 0; done < n && !rc; done += h5_min(n - done, FILL_PIECE)) {
		size_t part = (size_t)h5_min(n - done, FILL_PIECE);

		h5_dataset_fill(w->dataset, offset + done, piece, part);
		rc = h5_interrupt_check();
		if (!rc)
			rc = h5_tx_write(w->file, address + done, piece, part);
	}
	free(piece);
	return rc;
}
