#include "dataset/replacement.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "dataset/removal.h"
#include "dataset/values.h"
#include "dataset/writing.h"

#include <stdlib.h>
#include <string.h>

struct h5_replacement {
	struct h5_dataset_writer *writer; /* apart; NULL: the contents have taken their place */
	uint64_t size;
	bool too_long; /* a write has gone beyond the dataset */
	bool spoiled;  /* h5_replacement_spoil() */
	bool grows;    /* the contents may have any number of rows */
	int failure;   /* of the last write; 0: none */
};

bool h5_dataset_keeps_size(const struct h5_dataset_writer *writer)
{
	const uint64_t size = h5_dataset_writer_size(writer);

	return size && (!h5_dataset_writer_can_resize(writer) ||
			h5_dataset_writer_max_rows(writer) <= size / h5_dataset_writer_row(writer));
}

static int begin(struct h5_file *file, uint64_t address, bool any_rows, struct h5_replacement **out)
{
	struct h5_replacement *r = calloc(1, sizeof *r);
	int rc = r ? 0 : h5_fail(-ENOMEM, address, "out of memory");

	if (!rc && h5_tx_is_swmr(file))
		rc = h5_fail(-EPERM, address, "SWMR readers cannot follow contents that are replaced");
	if (!rc)
		rc = h5_dataset_writer_make_apart(file, address, any_rows, &r->writer);
	if (rc) {
		free(r);
		return rc;
	}
	r->grows = any_rows && h5_dataset_writer_may_grow(r->writer);
	*out = r;
	return 0;
}

int h5_replacement_begin(struct h5_file *file, uint64_t address, struct h5_replacement **replacement)
{
	return begin(file, address, false, replacement);
}

int h5_replacement_begin_rows(struct h5_file *file, uint64_t address, struct h5_replacement **replacement)
{
	return begin(file, address, true, replacement);
}

bool h5_replacement_grows(const struct h5_replacement *r)
{
	return r->grows;
}

struct h5_heap_batch *h5_replacement_heap(struct h5_replacement *r)
{
	return h5_dataset_writer_heap(r->writer);
}

uint64_t h5_replacement_size(const struct h5_replacement *r)
{
	return r->size;
}

uint64_t h5_replacement_whole(const struct h5_replacement *r)
{
	return r->writer->ref ? h5_dataset_writer_size(r->writer) : 0;
}

const struct h5_tx_participant *h5_replacement_participant(const struct h5_replacement *r)
{
	return h5_dataset_writer_participant(r->writer);
}

/* ---- bytes ---- */

int h5_replacement_check_lost(const struct h5_replacement *r)
{
	if (r->writer->ref)
		return 0;
	return h5_fail(r->writer->lost, r->writer->address,
		       "what was written could not be stored, and is lost");
}

static int report(struct h5_replacement *r, int rc)
{
	h5_tx_report(r->writer->file, &r->writer->participant, h5_dataset_writer_is_dirty(r->writer),
		     h5_dataset_writer_held(r->writer));
	return rc;
}

/* True: what is not stored has the fill value. Else all bytes must be stored. */
static bool has_gaps(const struct h5_replacement *r)
{
	return r->writer->ops == &h5_write_chunked && !r->writer->dataset->early;
}

/* Bytes up to the offset get the fill value. They count as soon as the request has succeeded. */
static int extend(const struct h5_replacement *r, uint64_t to)
{
	return to <= r->size || has_gaps(r) ? 0 : h5_dataset_writer_fill(r->writer, r->size, to - r->size);
}

int h5_replacement_write(struct h5_replacement *r, uint64_t offset, const void *data, size_t n)
{
	int rc = h5_replacement_check_lost(r);

	if (rc || !n)
		return rc;
	if (offset > h5_replacement_whole(r) || n > h5_replacement_whole(r) - offset) {
		r->too_long = true;
		return h5_fail(-EFBIG, r->writer->address, "more bytes than the dataset has");
	}
	rc = extend(r, offset);
	if (!rc)
		rc = r->writer->ops->write(r->writer, offset, data, n);
	if (!rc)
		r->size = h5_max(r->size, offset + n);
	return report(r, rc);
}

int h5_replacement_append(struct h5_replacement *r, const void *data, size_t n)
{
	int rc = h5_replacement_check_lost(r);

	if (rc || !r->grows)
		return rc ? rc : h5_replacement_write(r, r->size, data, n);
	rc = h5_dataset_writer_append(r->writer, data, n);
	if (!rc)
		r->size += n;
	return rc;
}

void h5_replacement_spoil(struct h5_replacement *r)
{
	r->spoiled = true;
}

void h5_replacement_note(struct h5_replacement *r, int result)
{
	r->failure = result;
}

int h5_replacement_expect(struct h5_replacement *r, uint64_t size)
{
	const uint64_t row = h5_dataset_writer_row(r->writer);
	int rc = h5_replacement_check_lost(r);

	if (rc || size == h5_replacement_whole(r))
		return rc;
	if (!r->grows || size % row || size / row > h5_dataset_writer_max_rows(r->writer))
		return h5_fail(-EINVAL, r->writer->address,
			       "%ju bytes do not fit the type and shape of the dataset", (uintmax_t)size);
	return h5_dataset_writer_resize(r->writer, size / row);
}

int h5_replacement_resize(struct h5_replacement *r, uint64_t size)
{
	int rc = h5_replacement_check_lost(r);

	if (rc)
		return rc;
	if (size > h5_replacement_whole(r))
		return h5_fail(-EFBIG, r->writer->address, "more bytes than the dataset has");
	if (size > r->size)
		rc = extend(r, size);
	else if (has_gaps(r))
		rc = h5_dataset_writer_punch(r->writer, size, r->size - size);
	if (!rc)
		r->size = size;
	r->too_long &= size != 0;
	return report(r, rc);
}

/* The dataset with the new contents, as far as they are there: a copy, of which nothing is owned. */
static struct h5_dataset show(const struct h5_dataset_writer *writer)
{
	struct h5_dataset copy = *writer->dataset;

	copy.layout = writer->layout;
	if (writer->from_no_rows && copy.space.rank) {
		copy.space.dims[0] = writer->rows;
		copy.size = h5_dataset_writer_size(writer);
	}
	if (writer->ops->show)
		writer->ops->show(writer, &copy);
	return copy;
}

int h5_replacement_read(struct h5_replacement *r, uint64_t offset, void *data, size_t n, size_t *got)
{
	struct h5_dataset copy;
	int rc = h5_replacement_check_lost(r);

	*got = 0;
	if (!rc && h5_dataset_writer_is_dirty(r->writer))
		rc = h5_fail(-EIO, r->writer->address, "what was written is not stored yet");
	if (rc || offset >= r->size)
		return rc;
	copy = show(r->writer);
	rc = h5_dataset_read(&copy, offset, data, (size_t)h5_min(n, r->size - offset));
	*got = rc ? 0 : (size_t)h5_min(n, r->size - offset);
	return rc;
}

/* ---- the end ---- */

int h5_replacement_check(const struct h5_replacement *r)
{
	uint64_t whole = h5_replacement_whole(r);
	int rc = h5_replacement_check_lost(r);

	if (rc)
		return rc;
	if (r->size != whole || r->too_long)
		return h5_fail(-EINVAL, r->writer->address, "%s%ju bytes for a dataset of %ju",
			       r->too_long ? "more than " : "", (uintmax_t)(r->too_long ? whole : r->size),
			       (uintmax_t)whole);
	if (r->spoiled)
		return h5_fail(-EINVAL, r->writer->address, "a part of the new contents was refused");
	return r->failure ? h5_fail(r->failure, r->writer->address,
				    "a part of the new contents could not be written")
			  : 0;
}

/* True: what was written is what the dataset, as it is now, can have. */
static bool fits(const struct h5_replacement *r, const struct h5_dataset *is)
{
	const struct h5_dataset *was = r->writer->dataset;
	const unsigned fixed = r->grows; /* the first dimension that stays */

	return was->space.rank == is->space.rank && was->type->size == is->type->size &&
	       !memcmp(was->space.dims + fixed, is->space.dims + fixed,
		       (was->space.rank - fixed) * sizeof *was->space.dims) &&
	       was->layout.class == is->layout.class && was->chunk_size == is->chunk_size &&
	       (was->ops->write != &h5_write_chunked ||
		!memcmp(was->layout.chunked.dims, is->layout.chunked.dims, sizeof is->layout.chunked.dims));
}

static int give_up_old(const struct h5_replacement *r)
{
	const struct h5_dataset *old;
	struct h5_lru_entry *ref;
	int rc = h5_dataset_get(r->writer->file, r->writer->address, &ref, &old);

	if (rc)
		return rc;
	if (!fits(r, old))
		rc = h5_fail(-EINVAL, r->writer->address, "the dataset has got another shape meanwhile");
	if (!rc)
		rc = h5_dataset_give_up_values(old);
	if (!rc)
		rc = h5_dataset_give_up(old);
	h5_file_put(r->writer->file, ref);
	return rc;
}

/* In a unit: the object header leads to the new contents. */
static int switch_layout(struct h5_replacement *r)
{
	struct h5_dataset_writer *writer = r->writer;
	int rc = give_up_old(r);

	if (!rc)
		rc = h5_tx_touch(writer->file, writer->address);
	if (rc)
		return rc;
	if (r->grows) {
		rc = h5_dataset_writer_publish(writer);
	} else {
		writer->apart = false;
		writer->layout_changed = true;
		rc = h5_dataset_writer_settle(writer);
		writer->apart = true;
	}
	h5_tx_forget(writer->file, writer->address);
	return rc;
}

/* The other writer of the dataset knows only the old contents; what was written through it was settled. */
static void tell_other(struct h5_dataset_writer *other)
{
	h5_tx_drop(other->file, &other->participant);
	h5_tx_report(other->file, &other->participant, false, 0);
}

static void close(struct h5_replacement *r)
{
	/* Nothing of the file refers to what the writer has given up. */
	h5_tx_report(r->writer->file, &r->writer->participant, false, 0);
	h5_dataset_writer_close(r->writer);
	r->writer = NULL;
}

int h5_replacement_finish_with(struct h5_replacement *r, int (*also)(void *arg), void *arg)
{
	struct h5_dataset_writer *writer = r->writer;
	struct h5_dataset_writer *other = h5_dataset_writer_find(writer->file, writer->address);
	int rc = h5_replacement_check(r);

	if (!rc && other)
		rc = h5_dataset_writer_settle(other);
	if (!rc)
		rc = h5_dataset_writer_settle(writer);
	if (rc)
		return rc;
	h5_unit_begin(writer->file);
	rc = switch_layout(r);
	if (!rc && also)
		rc = also(arg);
	rc = h5_unit_end(writer->file, rc);
	if (rc)
		return report(r, rc);
	if (other)
		tell_other(other);
	close(r);
	return 0;
}

int h5_replacement_finish(struct h5_replacement *r)
{
	return h5_replacement_finish_with(r, NULL, NULL);
}

/* What gathers in memory need not be stored, unless what it owns is to be found. This must be done even if
 * the request was interrupted: nobody else knows of the space. */
static void give_up_new(struct h5_replacement *r)
{
	bool owns = !h5_datatype_is_fixed(r->writer->dataset->type);
	struct h5_interrupt request;
	struct h5_dataset copy;
	int rc;

	h5_interrupt_pause(&request);
	rc = owns ? h5_dataset_writer_settle(r->writer) : 0;
	copy = show(r->writer);
	if (owns && !rc) {
		copy.size = r->size;
		(void)h5_dataset_give_up_values(&copy);
	}
	(void)h5_dataset_give_up(&copy);
	h5_interrupt_set(&request);
}

void h5_replacement_end(struct h5_replacement *r)
{
	if (!r)
		return;
	if (r->writer && r->writer->ref && h5_tx_is_writable(r->writer->file))
		give_up_new(r);
	if (r->writer)
		close(r);
	free(r);
}
