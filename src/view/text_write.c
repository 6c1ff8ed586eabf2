/* Writing a dataset as text: a line is an element, and whole rows of lines are added at its end.
 *
 * What is less than a row stays with the open file as text (struct h5_view_input), so that lines of several
 * programs never mix within a row, and the file holds no data of elements that may never come. Each of these
 * lines was read once, so that one which is no element is refused when it is written. */
#include "view/views.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "object/value_heap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	BATCH_BYTES = 1 << 18,	 /* of elements that are added together, unless a row is larger */
	PENDING_MAX = 256 << 20, /* most bytes of text of an incomplete row */
	PENDING_LEAST = 4096,	 /* bytes that are allocated */
	PENDING_KEPT = 1 << 20,	 /* most bytes that stay allocated */
	CHECKED = 256,
};

/* Elements that are being read from lines. */
struct batch {
	struct h5_view_input *in;
	const struct h5_line_form *form;
	const struct h5_datatype *type;
	const uint8_t *fill; /* NULL: zeros */
	bool fill_owns;	     /* the fill value owns objects of the heap */
	/* The element of the dataset in whose place a new one comes, for types with references that can only
	 * stay as they are; NULL: none is needed. */
	uint8_t *old; /* owned */
	struct h5_value_parser parser;
	size_t row;	   /* elements */
	size_t most;	   /* elements; whole rows */
	size_t count;	   /* elements that were read */
	uint8_t *elements; /* NULL: the lines are only checked */
	uint8_t few[1024]; /* memory of the elements, if they are few; else `elements` is owned */
};

/* ---- where lines go ---- */

static uint64_t size_of(const struct h5_view_input *in)
{
	return in->replacement ? h5_replacement_size(in->replacement) : h5_dataset_writer_size(in->writer);
}

/* Elements that are added together; 0: none can be added. New contents of a dataset that keeps its size have
 * any number of them until they are complete. */
static size_t row_of(const struct h5_view_input *in)
{
	const struct h5_dataset *dataset = h5_dataset_writer_dataset(in->writer);

	if (in->replacement && !h5_replacement_grows(in->replacement))
		return 1;
	return (size_t)(h5_dataset_writer_row(in->writer) / dataset->type->size);
}

/* Rows that can be added. */
static uint64_t room(const struct h5_view_input *in)
{
	const uint64_t row = h5_dataset_writer_row(in->writer);

	if (in->replacement && !h5_replacement_grows(in->replacement))
		return (h5_replacement_whole(in->replacement) - size_of(in)) /
		       h5_dataset_writer_dataset(in->writer)->type->size;
	return row ? h5_dataset_writer_max_rows(in->writer) - size_of(in) / row : 0;
}

static int append(struct h5_view_input *in, const void *data, size_t n)
{
	return in->replacement ? h5_replacement_append(in->replacement, data, n)
			       : h5_dataset_writer_append(in->writer, data, n);
}

static struct h5_heap_batch *heap_of(struct h5_view_input *in)
{
	return in->replacement ? h5_replacement_heap(in->replacement) : h5_dataset_writer_heap(in->writer);
}

/* ---- one line ---- */

/* Takes data that nobody needs. */
static int put_nowhere(struct h5_heap_sink *sink, const void *data, size_t n, uint64_t *address,
		       uint32_t *index)
{
	(void)sink;
	(void)data;
	(void)n;
	*address = *index = 1;
	return 0;
}

static struct h5_heap_sink nowhere = {put_nowhere};

/* True: values of the type may be references to regions or attributes. The depth is that of the type, which
 * is bounded. */
static bool has_regions(const struct h5_datatype *t)
{
	bool has = t->class == H5_CLASS_REFERENCE && t->reference.kind != H5_REF_OBJECT;

	if (t->class == H5_CLASS_ARRAY)
		return has_regions(t->array.base);
	if (t->class == H5_CLASS_VLEN)
		return !t->vlen.is_string && has_regions(t->vlen.base);
	for (unsigned i = 0; t->class == H5_CLASS_COMPOUND && i < t->compound.count && !has; i++)
		has = has_regions(t->compound.members[i].type);
	return has;
}

/* Reads the old element in the place of the new one after `before` others. *old NULL: there is none. */
static int read_old(const struct batch *b, size_t before, const uint8_t **old)
{
	const uint64_t i = size_of(b->in) / b->type->size + before;
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	int rc = h5_dataset_get(b->in->file, b->in->address, &ref, &dataset);

	if (rc)
		return rc;
	if (i < dataset->size / b->type->size) {
		rc = h5_dataset_read(dataset, i * b->type->size, b->old, b->type->size);
		*old = b->old;
	}
	h5_file_put(b->in->file, ref);
	return rc;
}

/* Reads a line as the element at `data`: after `before` lines that are not in the dataset yet. */
static int read_line(const struct batch *b, size_t before, const char *text, size_t n, uint8_t *data)
{
	const uint8_t *old = NULL;
	size_t size = b->type->size;
	int rc = b->old ? read_old(b, before, &old) : 0;

	if (rc)
		return rc;
	if (n >= H5_TEXT_PIECE_MAX)
		return h5_fail(-EFBIG, H5_UNDEF, "a line of %zu bytes", n);
	if (b->fill)
		memcpy(data, b->fill, size);
	else
		memset(data, 0, size);
	rc = b->form->parse(&b->parser, b->type, text, n, old, data);
	if (!rc && b->fill_owns)
		rc = h5_value_heap_own(b->parser.heap, b->in->file, b->type, b->fill, data);
	if (!rc && old)
		rc = h5_value_heap_own(b->parser.heap, b->in->file, b->type, old, data);
	return rc;
}

/* The error of a line: after `before` lines that are not in the dataset yet. */
static int fail_line(const struct batch *b, size_t before, int rc)
{
	return h5_fail_in(rc, "line %ju", (uintmax_t)(size_of(b->in) / b->type->size + before + 1));
}

/* ---- batches ---- */

/* For as many elements as n bytes of text may be; 0: the lines are only checked. */
static int begin(struct batch *b, struct h5_view_input *in, const struct h5_line_form *form, size_t n)
{
	const struct h5_dataset *dataset = h5_dataset_writer_dataset(in->writer);
	struct h5_heap_batch *heap = heap_of(in);
	uint64_t bytes;

	b->in = in;
	b->form = form;
	b->type = dataset->type;
	b->old = b->elements = NULL;
	b->count = b->most = 0;
	b->fill = h5_dataset_writer_fill_value(in->writer);
	b->fill_owns = b->fill && h5_value_heap_is_owner(in->file, b->type, b->fill);
	b->parser = (struct h5_value_parser){.context = &in->context,
					     .heap = n ? &heap->sink : &nowhere,
					     .object_address = in->object_address,
					     .arg = in->arg};
	b->row = row_of(in);
	if (b->type->size > H5_ELEMENT_MOST)
		return h5_fail(-EFBIG, in->address, "an element of %u bytes", b->type->size);
	if (in->replacement && has_regions(b->type)) {
		b->old = malloc(b->type->size);
		if (!b->old)
			return h5_fail(-ENOMEM, in->address, "no memory for an element");
	}
	if (!n || !b->row)
		return 0;
	b->most = (size_t)h5_min(n, BATCH_BYTES / b->type->size);
	b->most = h5_max(b->most - b->most % b->row, b->row);
	if (!h5_mul(b->most, b->type->size, &bytes) || bytes > SIZE_MAX / 2)
		return h5_fail(-EFBIG, in->address, "a row of %zu elements", b->row);
	b->elements = bytes <= sizeof b->few ? b->few : malloc((size_t)bytes);
	return b->elements ? 0 : h5_fail(-ENOMEM, in->address, "no memory for a row of lines");
}

static void end(struct batch *b)
{
	if (b->elements != b->few)
		free(b->elements);
	free(b->old);
}

/* Reads rows of lines and adds them to the dataset, as many as the batch takes: *rows of them, which are
 * *used bytes. A line that is no element, or not all there, ends it without an error if there is a whole row
 * before it; else *rows is 0. */
static int add_rows(struct batch *b, const char *text, size_t n, size_t *rows, size_t *used)
{
	struct h5_heap_batch *heap = heap_of(b->in);
	const struct h5_heap_mark begin_mark = h5_heap_batch_mark(heap);
	struct h5_heap_mark mark = begin_mark; /* of the row that has begun */
	const char *at = text, *newline;
	size_t in_row = 0; /* lines of it */
	int rc = 0;

	*rows = *used = b->count = 0;
	while (b->count < b->most && (newline = memchr(at, '\n', n - (size_t)(at - text)))) {
		if (!in_row)
			mark = h5_heap_batch_mark(heap);
		rc = read_line(b, b->count, at, (size_t)(newline - at),
			       b->elements + b->count * b->type->size);
		if (rc)
			break;
		at = newline + 1;
		b->count++;
		if (++in_row < b->row)
			continue;
		in_row = 0;
		++*rows;
		*used = (size_t)(at - text);
	}
	if (rc || in_row)
		h5_heap_batch_back(heap, &mark);
	if (!*rows)
		return rc ? fail_line(b, b->count, rc) : 0;
	rc = append(b->in, b->elements, *rows * b->row * b->type->size);
	if (rc) {
		h5_heap_batch_back(heap, &begin_mark);
		*rows = *used = 0;
	}
	return rc;
}

/* ---- the incomplete row ---- */

static int pend(struct h5_view_input *in, const char *text, size_t n)
{
	size_t capacity = in->capacity ? in->capacity : PENDING_LEAST;
	uint8_t *data;

	if (n > PENDING_MAX - in->filled)
		return h5_fail(-EFBIG, in->address, "an incomplete row of more than %d bytes of text",
			       PENDING_MAX);
	while (capacity < in->filled + n)
		capacity *= 2;
	if (capacity != in->capacity) {
		data = realloc(in->data, capacity);
		if (!data)
			return h5_fail(-ENOMEM, in->address, "no memory for an incomplete row");
		in->data = data;
		in->capacity = capacity;
	}
	memcpy(in->data + in->filled, text, n);
	in->filled += n;
	return 0;
}

static void drop_row(struct h5_view_input *in)
{
	in->filled = in->lines = in->line = 0;
	if (in->capacity > PENDING_KEPT)
		h5_view_input_release(in);
}

/* Reads the line that is complete now, without keeping what it holds. One that is no element goes. */
static int check_line(struct h5_view_input *in, const struct h5_line_form *form, size_t n)
{
	struct batch b;
	uint8_t *element;
	int rc = begin(&b, in, form, 0);

	element = rc ? NULL : malloc(b.type->size);
	if (!rc && !element)
		rc = h5_fail(-ENOMEM, in->address, "no memory for an element");
	if (!rc)
		rc = read_line(&b, in->lines, (const char *)in->data + in->line, n, element);
	free(element);
	end(&b);
	return rc ? fail_line(&b, in->lines, rc) : 0;
}

/* Adds the row that is complete. On failure its last line goes. */
static int put_row(struct h5_view_input *in, const struct h5_line_form *form)
{
	size_t rows, used;
	struct batch b;
	int rc = begin(&b, in, form, 1);

	if (!rc)
		rc = add_rows(&b, (const char *)in->data, in->filled, &rows, &used);
	end(&b);
	assert(rc || rows == 1);
	if (!rc)
		drop_row(in);
	return rc;
}

/* Takes the bytes up to the end of the line that is incomplete, or all. The line counts once it is complete.
 * If it cannot be taken, the file goes on with the next line: nothing of this one stays. */
static int take_line(struct h5_view_input *in, const struct h5_line_form *form, const char *text, size_t n,
		     size_t *done)
{
	const size_t row = row_of(in);
	const char *newline = memchr(text, '\n', n);
	size_t part = newline ? (size_t)(newline - text) + 1 : n, before = in->filled;
	int rc = pend(in, text, part);

	*done = 0;
	if (!rc && newline)
		rc = in->lines + 1 < row ? check_line(in, form, in->filled - 1 - in->line)
					 : put_row(in, form);
	if (rc) {
		in->filled = rc == -EINVAL ? in->line : before;
		return rc;
	}
	*done = part;
	if (newline && in->filled) {
		in->line = in->filled;
		in->lines++;
	}
	return 0;
}

/* ---- requests ---- */

static int refuse(struct h5_view_input *in)
{
	/* It becomes too long, so it cannot take the place of the old contents any more. */
	if (in->replacement && !h5_replacement_grows(in->replacement))
		return h5_replacement_write(in->replacement, h5_replacement_whole(in->replacement), "", 1);
	return h5_view_input_refuse(in);
}

/* Writes whole rows of lines, if nothing is incomplete. */
static int write_rows(struct h5_view_input *in, const struct h5_line_form *form, const char *text, size_t n,
		      size_t *done)
{
	size_t rows = 1, used;
	struct batch b;
	int rc = begin(&b, in, form, n);

	for (*done = 0; !rc && rows && *done < n; *done += used) {
		uint64_t left = room(in);

		b.most = (size_t)h5_min(b.most, left * b.row);
		rc = *done ? h5_interrupt_check() : 0;
		if (!rc && !left)
			rc = refuse(in);
		used = 0;
		if (!rc)
			rc = add_rows(&b, text + *done, n - *done, &rows, &used);
	}
	end(&b);
	/* The lines of the row before the bad one are taken, one by one. */
	return rc == -EINVAL && b.row > 1 ? 0 : rc;
}

int h5_view_text_write(const struct h5_line_form *form, struct h5_view_input *in, const void *data, size_t n,
		       size_t *written)
{
	const char *text = data;
	size_t done;
	int rc = in->replacement ? h5_replacement_check_lost(in->replacement) : 0;

	*written = 0;
	while (!rc && *written < n) {
		done = 0;
		if (!in->filled)
			rc = write_rows(in, form, text + *written, n - *written, &done);
		*written += done;
		if (rc || *written == n)
			break;
		if (!room(in))
			return refuse(in);
		rc = take_line(in, form, text + *written, n - *written, &done);
		*written += done;
	}
	return rc;
}

/* New contents of a dataset that keeps its size, with a last line that is incomplete. */
static int check_count(const struct h5_view_input *in)
{
	const size_t size = h5_dataset_writer_dataset(in->writer)->type->size;
	const uint64_t lines = size_of(in) / size + (in->filled > in->line),
		       wanted = h5_replacement_whole(in->replacement) / size;

	return lines == wanted ? 0
			       : h5_fail(-EINVAL, in->address, "%ju lines for %ju elements", (uintmax_t)lines,
					 (uintmax_t)wanted);
}

/* The last line without its newline: 0: it may end so. */
static int check_last(struct h5_view_input *in, const struct h5_line_form *form)
{
	const size_t row = row_of(in);
	int rc = in->filled > in->line ? check_line(in, form, in->filled - in->line) : 0;

	if (!rc && in->replacement && !h5_replacement_grows(in->replacement))
		return check_count(in);
	if (!rc && row && in->lines + (in->filled > in->line) < row)
		rc = h5_fail(-EINVAL, in->address, "the last row is incomplete: %zu lines of %zu",
			     in->lines + (in->filled > in->line), row);
	return rc;
}

int h5_view_text_check(const struct h5_line_form *form, struct h5_view_input *in)
{
	int rc = in->filled ? h5_dataset_writer_ready(in->writer) : 0;

	if (!rc && in->replacement)
		rc = h5_replacement_check_lost(in->replacement);
	return rc || !in->filled ? rc : check_last(in, form);
}

int h5_view_text_finish(const struct h5_line_form *form, struct h5_view_input *in)
{
	size_t done;
	int rc = h5_view_text_check(form, in);

	if (rc || !in->filled)
		return rc;
	return in->filled > in->line ? take_line(in, form, "\n", 1, &done) : 0;
}
