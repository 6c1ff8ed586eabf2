/* The elements of a dataset as they are stored, one after the other.
 *
 * Writing: a dataset grows by whole rows, but a program writes any number of bytes. The bytes of an
 * incomplete row stay with the open file (struct h5_view_input), so that rows of several programs never mix.
 * The dataset gets them when the row is complete. Until then writes through the same open file can go on
 * after them, and overwrite them. */
#include "view/views.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/extents.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of an incomplete row. */
enum {
	ROW_LEAST = 4096,    /* least bytes that are allocated */
	ROW_KEPT = 1 << 20,  /* most bytes that stay allocated when the row is complete */
	GAP_MAX = 256 << 20, /* most bytes of the fill value that a write beyond the end may need */
};

static int raw_shows(const struct h5_view *v)
{
	return v->dataset && h5_datatype_is_fixed(v->dataset->type) ? 0 : -ENOENT;
}

static int raw_open(struct h5_view *v, bool reading)
{
	(void)reading;
	v->size = v->dataset->size;
	v->dataset_from = 0;
	return 0;
}

static int raw_seek(const struct h5_view *v, uint64_t offset, bool hole, uint64_t *found)
{
	return h5_dataset_seek(v->dataset, offset, hole, found);
}

/* ---- writing: the incomplete row ---- */

/* Allocates memory for the first n bytes of a row of `most` bytes. */
static int reserve(struct h5_view_input *in, size_t n, size_t most)
{
	size_t capacity = in->capacity ? in->capacity : (size_t)h5_min(ROW_LEAST, most);
	uint8_t *data;

	if (n <= in->capacity)
		return 0;
	if (n - in->filled > GAP_MAX)
		return h5_fail(-ENOMEM, H5_UNDEF, "an incomplete row with a gap of %zu bytes",
			       n - in->filled);
	while (capacity < n)
		capacity = capacity > most / 2 ? most : 2 * capacity;
	data = realloc(in->data, capacity);
	if (!data)
		return h5_fail(-ENOMEM, H5_UNDEF, "no memory for an incomplete row of %zu bytes", n);
	in->data = data;
	in->capacity = capacity;
	return 0;
}

/* Extends the incomplete row, which begins at offset `begin`, to `end` bytes by the fill value. */
static int fill_row(struct h5_view_input *in, uint64_t begin, size_t end)
{
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	int rc;

	if (end <= in->filled)
		return 0;
	rc = h5_dataset_get(in->file, in->address, &ref, &dataset);
	if (rc)
		return rc;
	h5_dataset_fill(dataset, begin + in->filled, in->data + in->filled, end - in->filled);
	if (h5_dataset_is_sparse(dataset))
		rc = h5_extents_add(&in->gaps, in->filled, end - in->filled);
	h5_file_put(in->file, ref);
	return rc;
}

/* Adds rows of the fill value up to the offset. */
static int grow_to(struct h5_view_input *in, uint64_t offset)
{
	struct h5_dataset_writer *writer = in->writer;

	return offset > h5_dataset_writer_size(writer)
		       ? h5_dataset_writer_resize(writer, offset / h5_dataset_writer_row(writer))
		       : 0;
}

/* Elements of sparse data that nobody has written are not defined. */
static int erase_gaps(struct h5_view_input *in, uint64_t begin)
{
	int rc = 0;

	h5_extents_each(e, &in->gaps)
	{
		rc = h5_dataset_writer_punch(in->writer, begin + e->address, e->size);
		if (rc)
			break;
	}
	return rc;
}

/* Gives the complete row to the dataset; overwrites the row that is there by now, if any. */
static int put_row(struct h5_view_input *in, uint64_t begin, size_t size)
{
	struct h5_dataset_writer *writer = in->writer;
	int rc = grow_to(in, begin);

	if (!rc)
		rc = begin < h5_dataset_writer_size(writer)
			     ? h5_dataset_writer_write(writer, begin, in->data, size)
			     : h5_dataset_writer_append(writer, in->data, size);
	if (!rc)
		rc = erase_gaps(in, begin);
	if (rc)
		return rc;
	in->filled = 0;
	h5_extents_release(&in->gaps);
	if (in->capacity > ROW_KEPT)
		h5_view_input_release(in);
	return 0;
}

/* Writes *done of the n bytes into the row that begins at `begin`, from its byte `skip` on. Bytes before that
 * which nobody has written become the fill value. On failure the row is no longer than it was, and *done does
 * not count. */
static int write_row(struct h5_view_input *in, uint64_t begin, size_t skip, const uint8_t *data, size_t n,
		     size_t *done)
{
	size_t size = (size_t)h5_dataset_writer_row(in->writer);
	int rc;

	n = (size_t)h5_min(n, size - skip);
	rc = reserve(in, skip + n, size);
	if (!rc)
		rc = fill_row(in, begin, skip);
	if (rc)
		return rc;
	memcpy(in->data + skip, data, n);
	h5_extents_drop(&in->gaps, skip, n);
	if (skip + n == size)
		rc = put_row(in, begin, size);
	else if (skip + n > in->filled)
		in->filled = skip + n;
	*done = n;
	return rc;
}

/* Completes the row by the fill value. */
static int fill_up(struct h5_view_input *in, uint64_t begin)
{
	size_t size = (size_t)h5_dataset_writer_row(in->writer);
	int rc = reserve(in, size, size);

	if (!rc)
		rc = fill_row(in, begin, size);
	return rc ? rc : put_row(in, begin, size);
}

/* ---- writing: growing ---- */

/* Where the incomplete row begins. */
static uint64_t row_begin(const struct h5_view_input *in)
{
	return in->floats ? h5_dataset_writer_size(in->writer) : in->offset;
}

/* Writes whole rows at the end or beyond it, as many as the maximum allows. */
static int append_rows(struct h5_view_input *in, uint64_t offset, const uint8_t *data, size_t n, size_t *done)
{
	struct h5_dataset_writer *writer = in->writer;
	uint64_t row = h5_dataset_writer_row(writer),
		 room = h5_dataset_writer_max_rows(writer) - offset / row;
	size_t whole = (size_t)(h5_min(n / row, room) * row);
	int rc = grow_to(in, offset);

	if (!rc)
		rc = h5_dataset_writer_append(writer, data, whole);
	*done = whole;
	return rc;
}

/* Writes at the end or beyond it, but not next to the bytes of the incomplete row. */
static int write_beyond(struct h5_view_input *in, uint64_t offset, const uint8_t *data, size_t n, bool append,
			size_t *done)
{
	struct h5_dataset_writer *writer = in->writer;
	uint64_t size = h5_dataset_writer_size(writer), row = h5_dataset_writer_row(writer), begin;
	bool follows = in->filled && row_begin(in) == size; /* the incomplete row is the next one */
	int rc;

	if (!row || offset / row >= h5_dataset_writer_max_rows(writer))
		return h5_view_input_refuse(in);
	begin = offset - offset % row;
	if (follows)
		return begin > size ? fill_up(in, size)
				    : write_row(in, size, (size_t)(offset - size), data, n, done);
	if (offset == begin && n >= row)
		return append_rows(in, offset, data, n, done);
	if (in->filled)
		return h5_fail(-EINVAL, in->address, "another row of this descriptor is incomplete");
	rc = grow_to(in, begin);
	if (rc)
		return rc;
	in->offset = begin;
	in->floats = append;
	return write_row(in, begin, (size_t)(offset - begin), data, n, done);
}

/* One step of a write: *done of the n bytes, or 0 if it has only completed another row. */
static int step(struct h5_view_input *in, uint64_t offset, const uint8_t *data, size_t n, bool append,
		size_t *done)
{
	struct h5_dataset_writer *writer = in->writer;
	uint64_t size = h5_dataset_writer_size(writer), begin = in->filled ? row_begin(in) : UINT64_MAX;

	assert(!in->filled || in->filled < h5_dataset_writer_row(writer));
	*done = 0;
	if (offset >= begin && offset - begin <= in->filled)
		return write_row(in, begin, (size_t)(offset - begin), data, n, done);
	if (offset >= size)
		return write_beyond(in, offset, data, n, append, done);
	n = (size_t)h5_min(n, size - offset);
	if (begin > offset)
		n = (size_t)h5_min(n, begin - offset);
	*done = n;
	return h5_dataset_writer_write(writer, offset, data, n);
}

/* The end of the file as it looks to this open file. */
static uint64_t end_of(const struct h5_view_input *in)
{
	uint64_t size = h5_dataset_writer_size(in->writer);

	return in->filled && row_begin(in) == size ? size + in->filled : size;
}

static int raw_write(struct h5_view_input *in, uint64_t offset, const void *data, size_t n, bool append,
		     size_t *written)
{
	int rc = 0;

	if (append)
		offset = end_of(in);
	for (*written = 0; !rc && *written < n;) {
		size_t done;

		rc = step(in, offset + *written, (const uint8_t *)data + *written, n - *written, append,
			  &done);
		*written += rc ? 0 : done;
	}
	return rc;
}

/* True: a file of so many bytes has all of the incomplete row. */
static bool raw_is_completed(const struct h5_view_input *in, uint64_t size)
{
	return in->filled && size >= h5_dataset_writer_row(in->writer) &&
	       row_begin(in) <= size - h5_dataset_writer_row(in->writer);
}

static int raw_complete(struct h5_view_input *in)
{
	return fill_up(in, row_begin(in));
}

const struct h5_view_ops h5_view_raw = {.name = "raw",
					.is_sized = true,
					.shows = raw_shows,
					.open = raw_open,
					.seek = raw_seek,
					.write = raw_write,
					.is_completed = raw_is_completed,
					.complete = raw_complete};
