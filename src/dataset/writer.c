#include "dataset/writer.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "change/object_header_rewrite.h"
#include "change/transaction.h"
#include "dataset/values.h"
#include "dataset/writing.h"
#include "object/own_message.h"
#include "object/value_heap.h"
#include "store/followers.h"
#include "store/object_header.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
	WRITERS_MAX = 64, /* of a file; more only if more are in use */
	FILL_PIECE = 1 << 16,
};

bool h5_dataset_has_writer(const struct h5_dataset *dataset, bool external)
{
	return dataset->ops->write && (external || !dataset->external);
}

bool h5_dataset_can_be_written(const struct h5_dataset *dataset, bool external)
{
	const struct h5_write_ops *ops = dataset->ops->write;

	assert(dataset->is_whole);
	return h5_dataset_has_writer(dataset, external) && (!ops->is_possible || ops->is_possible(dataset));
}

/* Sets the size of a row, and the number of rows. */
static int set_row(struct h5_dataset_writer *writer)
{
	const struct h5_dataspace *space = &writer->dataset->space;

	if (writer->dataset->size == UINT64_MAX)
		return h5_fail(-EOVERFLOW, writer->address, "dataset: more than 2^63-1 bytes");
	if (!space->rank)
		return 0;
	if (!h5_product(space->dims + 1, space->rank - 1, &writer->row) ||
	    !h5_mul(writer->row, writer->dataset->type->size, &writer->row) || writer->row > INT64_MAX)
		return h5_fail(-EOVERFLOW, writer->address, "dataset: rows of more than 2^63-1 bytes");
	writer->rows = writer->settled = space->dims[0];
	return 0;
}

/* ---- opening and closing ---- */

static struct h5_dataset_writer *writer_of(struct h5_tx_participant *participant)
{
	return (struct h5_dataset_writer *)participant;
}

/* Forgets all that is known of the dataset. */
static void clear(struct h5_dataset_writer *writer)
{
	const size_t kept = offsetof(struct h5_dataset_writer, ref);

	if (writer->ops && writer->ops->close)
		writer->ops->close(writer);
	if (writer->ref)
		h5_file_put(writer->file, writer->ref);
	h5_heap_batch_release(&writer->heap);
	free(writer->added);
	free(writer->own_fill);
	memset((uint8_t *)writer + kept, 0, sizeof *writer - kept);
}

/* Nothing is stored yet, so the layout leads nowhere. */
static void detach(struct h5_layout *layout)
{
	if (layout->class == H5_LAYOUT_CONTIGUOUS) {
		layout->contiguous.address = H5_UNDEF;
	} else if (layout->class == H5_LAYOUT_CHUNKED || layout->class == H5_LAYOUT_STRUCTURED) {
		layout->chunked.address = H5_UNDEF;
		layout->chunked.single.size = 0;
		layout->chunked.single.filter_mask = 0;
		memset(layout->chunked.single.metadata, 0, sizeof layout->chunked.single.metadata);
	}
}

/* Of elements that do not stand alone as bytes. */
static int prepare_heap(struct h5_dataset_writer *writer)
{
	const struct h5_dataset *dataset = writer->dataset;

	h5_heap_batch_init(&writer->heap, writer->file);
	writer->gathers = !writer->apart;
	if (h5_tx_is_swmr(writer->file))
		return h5_fail(-EPERM, writer->address, "dataset: SWMR readers cannot follow its values");
	if (!dataset->fill || !h5_value_heap_is_owner(writer->file, dataset->type, dataset->fill))
		return 0;
	writer->own_fill = malloc(dataset->type->size);
	if (!writer->own_fill)
		return h5_fail(-ENOMEM, writer->address, "dataset: out of memory");
	memcpy(writer->own_fill, dataset->fill, dataset->type->size);
	h5_value_heap_disown(writer->file, dataset->type, writer->own_fill);
	writer->own = *dataset;
	writer->own.fill = writer->own_fill;
	writer->dataset = &writer->own;
	return 0;
}

static int prepare(struct h5_dataset_writer *writer)
{
	int rc = 0;

	writer->layout = writer->dataset->layout;
	if (writer->apart)
		detach(&writer->layout);
	writer->fill = writer->dataset->fill;
	if (!h5_datatype_is_fixed(writer->dataset->type))
		rc = prepare_heap(writer);
	if (rc)
		return rc;
	if (!h5_dataset_has_writer(writer->dataset, writer->may_write_external))
		return h5_fail(-EPERM, writer->address, "dataset: %s data are not written in this mount",
			       h5_dataset_layout_name(writer->dataset));
	writer->ops = writer->dataset->ops->write;
	rc = set_row(writer);
	if (!rc && writer->from_no_rows && h5_dataset_writer_may_grow(writer))
		writer->rows = writer->settled = 0;
	if (!rc && writer->ops->open)
		rc = writer->ops->open(writer);
	return rc;
}

int h5_dataset_writer_ready(struct h5_dataset_writer *writer)
{
	int rc;

	if (writer->ref)
		return 0;
	rc = h5_dataset_get(writer->file, writer->address, &writer->ref, &writer->dataset);
	if (!rc)
		rc = prepare(writer);
	if (rc)
		clear(writer);
	return rc;
}

static int settle_participant(struct h5_tx_participant *participant)
{
	return h5_dataset_writer_settle(writer_of(participant));
}

static void drop_participant(struct h5_tx_participant *participant)
{
	struct h5_dataset_writer *writer = writer_of(participant);

	if (writer->apart)
		writer->lost = participant->failure ? participant->failure : -EIO;
	if (writer->is_cut && !participant->uncommitted)
		writer->has_outer = false;
	clear(writer);
}

static const struct h5_tx_participant_ops participant_ops = {settle_participant, drop_participant};

static bool is_writer(const struct h5_tx_participant *participant)
{
	return participant->ops == &participant_ops;
}

enum place { IN_PLACE, APART, APART_FROM_NO_ROWS };

static int make_writer(struct h5_file *file, uint64_t address, bool external, enum place place,
		       struct h5_dataset_writer **out)
{
	struct h5_dataset_writer *writer = calloc(1, sizeof *writer);
	int rc;

	if (!writer)
		return h5_fail(-ENOMEM, address, "out of memory");
	writer->participant.ops = &participant_ops;
	writer->participant.address = writer->address = address;
	writer->file = file;
	writer->may_write_external = external;
	writer->apart = place != IN_PLACE;
	writer->from_no_rows = place == APART_FROM_NO_ROWS;
	rc = h5_header_may_change(file, address);
	if (!rc)
		rc = h5_dataset_writer_ready(writer);
	if (rc) {
		free(writer);
		return rc;
	}
	h5_tx_join(file, &writer->participant);
	*out = writer;
	return 0;
}

int h5_dataset_writer_make_apart(struct h5_file *file, uint64_t address, bool from_no_rows,
				 struct h5_dataset_writer **writer)
{
	return make_writer(file, address, false, from_no_rows ? APART_FROM_NO_ROWS : APART, writer);
}

struct h5_dataset_writer *h5_dataset_writer_find(struct h5_file *file, uint64_t address)
{
	struct h5_tx_participant *p;

	DL_FOREACH(h5_tx_participants(file), p)
	if (p->address == address && is_writer(p) && !writer_of(p)->apart)
		return writer_of(p);
	return NULL;
}

void h5_dataset_writer_drop(struct h5_file *file, uint64_t address)
{
	struct h5_dataset_writer *writer = h5_dataset_writer_find(file, address);

	if (writer)
		h5_tx_drop(file, &writer->participant);
}

void h5_dataset_writer_close(struct h5_dataset_writer *writer)
{
	if (!writer)
		return;
	h5_tx_leave(writer->file, &writer->participant);
	free(writer);
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
		if (!is_writer(p) || writer_of(p)->users || writer_of(p)->apart || p->uncommitted)
			continue;
		h5_dataset_writer_close(writer_of(p));
		count--;
	}
}

int h5_dataset_writer_get(struct h5_file *file, uint64_t address, bool external,
			  struct h5_dataset_writer **out)
{
	int rc;

	if (!h5_tx_is_writable(file))
		return h5_fail(-EROFS, address, "the file is open for reading only");
	*out = h5_dataset_writer_find(file, address);
	if (*out) {
		rc = h5_dataset_writer_ready(*out);
	} else {
		make_room(file);
		rc = make_writer(file, address, external, IN_PLACE, out);
	}
	if (!rc)
		(*out)->users++;
	return rc;
}

void h5_dataset_writer_put(struct h5_dataset_writer *writer)
{
	assert(writer->users);
	writer->users--;
}

void h5_dataset_writer_put_soon(struct h5_dataset_writer *writer)
{
	h5_dataset_writer_put(writer);
	if (!writer->users && !writer->participant.dirty)
		h5_dataset_writer_close(writer);
}

void h5_dataset_writer_forget(struct h5_file *file, uint64_t address)
{
	struct h5_dataset_writer *writer = h5_dataset_writer_find(file, address);
	struct h5_interrupt request;

	if (!writer)
		return;
	/* Chunks in new space that no index has yet would be lost to the file; and if the request is
	 * interrupted, the dataset stays, and needs what only the writer has. */
	h5_interrupt_pause(&request);
	(void)h5_dataset_writer_settle(writer);
	h5_interrupt_set(&request);
	if (writer->users)
		h5_tx_drop(file, &writer->participant);
	else
		h5_dataset_writer_close(writer);
}

void h5_dataset_writers_close(struct h5_file *file)
{
	struct h5_tx_participant *p, *next;

	DL_FOREACH_SAFE(h5_tx_participants(file), p, next)
	{
		assert(!is_writer(p) || !writer_of(p)->users);
		if (is_writer(p))
			h5_dataset_writer_close(writer_of(p));
	}
}

const struct h5_tx_participant *h5_dataset_writer_participant(const struct h5_dataset_writer *writer)
{
	return &writer->participant;
}

const struct h5_dataset *h5_dataset_writer_dataset(const struct h5_dataset_writer *writer)
{
	assert(writer->ref);
	return writer->dataset;
}

const uint8_t *h5_dataset_writer_fill_value(const struct h5_dataset_writer *writer)
{
	assert(writer->ref);
	return writer->fill;
}

struct h5_heap_batch *h5_dataset_writer_heap(struct h5_dataset_writer *writer)
{
	return &writer->heap;
}

uint64_t h5_dataset_writer_size(const struct h5_dataset_writer *writer)
{
	return writer->dataset->space.rank ? writer->rows * writer->row + writer->added_size
					   : writer->dataset->size;
}

uint64_t h5_dataset_writer_row(const struct h5_dataset_writer *writer)
{
	return writer->row;
}

bool h5_dataset_writer_can_resize(const struct h5_dataset_writer *writer)
{
	return writer->row && writer->ops->grow && writer->dataset->space.has_max;
}

uint64_t h5_dataset_writer_max_rows(const struct h5_dataset_writer *writer)
{
	uint64_t max = writer->dataset->space.max[0];

	if (!h5_dataset_writer_can_resize(writer) || max < writer->rows)
		return writer->rows;
	return h5_min(max, INT64_MAX / writer->row);
}

bool h5_dataset_writer_may_grow(const struct h5_dataset_writer *writer)
{
	return h5_dataset_writer_can_resize(writer) &&
	       h5_dataset_writer_max_rows(writer) > writer->dataset->space.dims[0];
}

/* Tells the transaction what the writer holds after a change with this result, which it returns. */
static int report(struct h5_dataset_writer *writer, int rc)
{
	h5_tx_report(writer->file, &writer->participant, h5_dataset_writer_is_dirty(writer),
		     h5_dataset_writer_held(writer));
	return rc;
}

int h5_dataset_writer_write(struct h5_dataset_writer *writer, uint64_t offset, const void *data, size_t n)
{
	uint64_t size = h5_dataset_writer_size(writer);
	int rc;

	assert(writer->ref);
	if (offset > size || n > size - offset)
		return h5_fail(-EINVAL, writer->address, "dataset: written beyond its end");
	if (!n)
		return 0;
	rc = h5_added_rows_put(writer);
	return report(writer, rc ? rc : writer->ops->write(writer, offset, data, n));
}

int h5_dataset_writer_fill(struct h5_dataset_writer *writer, uint64_t offset, uint64_t n)
{
	uint8_t *piece = malloc(FILL_PIECE);
	int rc = piece ? 0 : h5_fail(-ENOMEM, writer->address, "out of memory");

	for (uint64_t done = 0, part; done < n && !rc; done += part) {
		part = h5_min(n - done, FILL_PIECE);
		h5_dataset_fill(writer->dataset, offset + done, piece, (size_t)part);
		rc = h5_interrupt_check();
		if (!rc)
			rc = writer->ops->write(writer, offset + done, piece, (size_t)part);
	}
	free(piece);
	return rc;
}

int h5_dataset_writer_punch(struct h5_dataset_writer *writer, uint64_t offset, uint64_t n)
{
	uint64_t size = h5_dataset_writer_size(writer);
	int rc;

	assert(writer->ref);
	if (offset > size || n > size - offset)
		return h5_fail(-EINVAL, writer->address, "dataset: written beyond its end");
	if (!n)
		return 0;
	rc = h5_added_rows_put(writer);
	if (rc)
		return report(writer, rc);
	return report(writer, writer->ops->punch ? writer->ops->punch(writer, offset, n)
						 : h5_dataset_writer_fill(writer, offset, n));
}

int h5_dataset_writer_append(struct h5_dataset_writer *writer, const void *data, size_t n)
{
	assert(writer->ref);
	if (!writer->row || n % writer->row)
		return h5_fail(-EINVAL, writer->address, "dataset: %zu bytes are no whole rows", n);
	if ((writer->added_size + n) / writer->row > h5_dataset_writer_max_rows(writer) - writer->rows)
		return h5_fail(-EFBIG, writer->address, "dataset: more rows than its maximum");
	if (!n)
		return 0;
	return report(writer, writer->gathers
				      ? h5_added_rows_append(writer, data, n)
				      : writer->ops->grow(writer, writer->rows + n / writer->row, data));
}

int h5_dataset_writer_check_growth(const struct h5_dataset_writer *writer)
{
	if (!writer->own_fill)
		return 0;
	return h5_fail(-ENOTSUP, writer->address,
		       "dataset: its fill value has data of variable length, which elements cannot share");
}

int h5_dataset_writer_shrink(struct h5_dataset_writer *writer, const uint64_t *dims, h5_shrink *shrink)
{
	struct h5_heap_dead dead;
	int rc;

	if (h5_datatype_is_fixed(writer->dataset->type))
		return shrink(writer, dims);
	h5_heap_dead_init(&dead, writer->file);
	rc = h5_dataset_writer_settle(writer);
	if (!rc)
		rc = h5_dataset_find_outside(writer->file, writer->address, dims, &dead);
	if (!rc)
		rc = shrink(writer, dims);
	/* If elements were not cleared, they may come back when another program makes the dataset larger. The
	 * dataset has shrunk even if this fails: then the space is lost to the file. */
	if (!rc && !h5_dataset_writer_is_to_cut(writer) && !h5_dataset_writer_is_dirty(writer))
		(void)h5_heap_dead_give_up(&dead, h5_tx_free_extent, writer->file);
	h5_heap_dead_release(&dead);
	return rc;
}

static int shrink_rows(struct h5_dataset_writer *writer, const uint64_t *dims)
{
	return writer->ops->shrink(writer, dims[0]);
}

static int shrink(struct h5_dataset_writer *writer, uint64_t rows)
{
	uint64_t dims[H5_RANK_MAX];

	memcpy(dims, writer->dataset->space.dims, sizeof dims);
	dims[0] = rows;
	return h5_dataset_writer_shrink(writer, dims, shrink_rows);
}

int h5_dataset_writer_resize(struct h5_dataset_writer *writer, uint64_t rows)
{
	int rc = h5_added_rows_put(writer);

	assert(writer->ref);
	if (rc || rows == writer->rows)
		return rc ? report(writer, rc) : 0;
	if (!h5_dataset_writer_can_resize(writer))
		return h5_fail(-EPERM, writer->address, "dataset: its size cannot change");
	if (rows > h5_dataset_writer_max_rows(writer))
		return h5_fail(-EFBIG, writer->address, "dataset: more rows than its maximum");
	if (rows > writer->rows)
		rc = h5_dataset_writer_check_growth(writer);
	if (rc)
		return rc;
	return report(writer,
		      rows > writer->rows ? writer->ops->grow(writer, rows, NULL) : shrink(writer, rows));
}

int h5_dataset_writer_peek(struct h5_dataset_writer *writer, void *data, size_t n)
{
	int rc = h5_added_rows_put(writer);

	assert(writer->ref && n == h5_dataset_writer_size(writer));
	if (rc)
		return rc;
	return writer->ops->peek ? writer->ops->peek(writer, data, n) : -ENODATA;
}

/* ---- settling ---- */

static int update_layout(const void *arg, uint8_t *body, size_t n)
{
	const struct h5_dataset_writer *writer = arg;
	const struct h5_superblock *sb = h5_file_superblock(writer->file);

	return h5_layout_update(body, n, sb->size_of_offsets, sb->size_of_lengths, &writer->layout);
}

static int update_space(const void *arg, uint8_t *body, size_t n)
{
	const struct h5_dataset_writer *writer = arg;
	struct h5_dataspace space = writer->dataset->space;

	space.dims[0] = writer->rows;
	return h5_dataspace_update(body, n, h5_file_superblock(writer->file)->size_of_lengths, &space);
}

int h5_dataset_writer_publish(struct h5_dataset_writer *writer)
{
	const struct h5_header_update updates[] = {{H5_MSG_LAYOUT, update_layout, writer},
						   {H5_MSG_DATASPACE, update_space, writer}};

	int rc = 0;

	assert(writer->apart && !h5_dataset_writer_is_dirty(writer));
	for (unsigned i = 0; i < 2 && !rc; i++)
		rc = h5_own_message(writer->file, writer->address, updates[i].type);
	return rc ? rc
		  : h5_header_update_together(writer->file, writer->address, updates, 2, H5_STAGE_OBJECT);
}

bool h5_dataset_writer_is_dirty(const struct h5_dataset_writer *writer)
{
	if (writer->apart)
		return writer->dirty || writer->heap.count || writer->index_changed;
	return writer->dirty || writer->heap.count || writer->added_size || writer->layout_changed ||
	       writer->index_changed || writer->rows != writer->settled ||
	       (writer->ref && h5_dataset_writer_is_to_cut(writer));
}

/* The dataspace comes last: if something else fails, no row becomes visible that is not stored. */
int h5_dataset_writer_settle(struct h5_dataset_writer *writer)
{
	int rc = 0;

	/* If it cannot be opened, the elements are cleared later. */
	if (h5_dataset_writer_is_to_cut(writer))
		(void)h5_dataset_writer_ready(writer);
	if (!h5_dataset_writer_is_dirty(writer))
		return 0;
	if (writer->heap.count)
		rc = h5_heap_batch_flush(&writer->heap);
	if (!rc)
		rc = h5_added_rows_put(writer);
	if (!rc && writer->ops->flush)
		rc = writer->ops->flush(writer);
	if (writer->apart) {
		writer->index_changed &= rc != 0;
		return report(writer, rc);
	}
	if (!rc && writer->layout_changed) {
		rc = h5_own_message_update(writer->file, writer->address, H5_MSG_LAYOUT, update_layout,
					   writer);
		writer->layout_changed = rc;
	}
	if (!rc && writer->rows != writer->settled) {
		rc = h5_own_message_update(writer->file, writer->address, H5_MSG_DATASPACE, update_space,
					   writer);
		if (!rc)
			writer->settled = writer->rows;
	}
	if (writer->index_changed) {
		h5_tx_forget(writer->file, writer->address);
		writer->index_changed = rc;
	}
	assert(rc || (!writer->layout_changed && writer->rows == writer->settled));
	h5_followers_forget(h5_file_shared(writer->file)->followers);
	return report(writer, rc);
}

size_t h5_dataset_writer_held(const struct h5_dataset_writer *writer)
{
	return writer->held + writer->heap.held + writer->added_size;
}
