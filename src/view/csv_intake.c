/* A table in CSV becomes a dataset. Its text streams into the file; when it is whole, it is read twice: to
 * find the types of the columns, and to write their values.
 *
 * The first row names the columns. If the names are the numbers 0, 1, 2, ..., the table is an array of two
 * dimensions; if the only one is `value`, an array of one; so what the view of an array shows becomes such an
 * array again. Else the columns are the members of a compound, and one without a name is called by its
 * number. A column of whole numbers becomes 64-bit integers, one of numbers 64-bit floats, for which an empty
 * field is NaN, and any other one strings of a fixed length. */
#include "view/intake.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/interrupt.h"
#include "format/datatype_make.h"
#include "object/value_parse.h"
#include "view/csv_columns.h"
#include "view/csv_read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	STREAM_CHUNK = 256 << 10,
	PIECE = 1 << 20,	/* bytes that are read, and elements that are written, at once */
	NUMBER_MAX = 400,	/* bytes of a number */
	ELEMENT_MAX = 16 << 20, /* of a row */
	COLUMNS_MAX = 1 << 20,
	MEMBERS_MAX = 8192, /* no object header holds more */
};

enum form { MEMBERS, VALUES, GRID };

struct column {
	char *name;	 /* owned */
	bool has_values; /* fields that are not empty */
	bool is_text, is_float;
	bool has_gaps;	 /* empty fields */
	uint32_t length; /* most bytes of a field */
	const struct h5_datatype *type;
	uint32_t offset; /* in the row */
};

struct table {
	struct h5_intake *intake;
	struct column *columns;
	size_t count;
	uint64_t rows;
	enum form form;
	struct h5_value_context context;

	bool is_scalar; /* the dataset that is there is one, and stays one */

	struct h5_datatype *made;	  /* owned */
	const struct h5_datatype *type;	  /* of the elements */
	size_t row;			  /* bytes */
	struct h5_dataset_writer *writer; /* NULL: fields are only looked at */
	uint8_t *piece;
	size_t filled;
	uint64_t written;
};

static int refuse(const struct table *t, const char *what)
{
	return h5_fail(-EINVAL, t->intake->dataset, "csv: row %ju: %s", (uintmax_t)t->rows + 1, what);
}

static int no_memory(const struct table *t)
{
	return h5_fail(-ENOMEM, t->intake->dataset, "csv: out of memory");
}

/* ---- the text ---- */

static int take(struct h5_intake *intake, const uint8_t *data, size_t n)
{
	struct h5_datatype *type;
	int rc = 0;

	if (!intake->writer) {
		type = h5_datatype_make_integer(1, false, H5_ORDER_LE);
		if (!type)
			return h5_fail(-ENOMEM, intake->dataset, "csv: out of memory");
		rc = h5_intake_open_stream(
			intake, &(struct h5_new_dataset){
					.type = type,
					.space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .max = {H5_UNLIMITED}},
					.layout = H5_LAYOUT_CHUNKED,
					.chunk = {STREAM_CHUNK},
					.time = (uint32_t)time(NULL)});
		h5_datatype_free(type);
	}
	if (!rc)
		rc = h5_dataset_writer_ready(intake->writer);
	return rc ? rc : h5_dataset_writer_append(intake->writer, data, n);
}

static int read_pieces(const struct h5_dataset *text, struct h5_csv_reader *reader, char *piece)
{
	int rc = 0;

	for (uint64_t at = 0; at < text->size && !rc; at += PIECE) {
		size_t n = (size_t)h5_min(PIECE, text->size - at), skipped = 0;

		rc = h5_dataset_read(text, at, piece, n);
		if (!rc && !at && n >= 3 && !memcmp(piece, "\xef\xbb\xbf", 3))
			skipped = 3; /* the mark of UTF-8 that some programs write */
		if (!rc)
			rc = h5_csv_read(reader, piece + skipped, n - skipped);
	}
	return rc ? rc : h5_csv_end(reader);
}

/* Calls `row` for each row of the text, the first one included. */
static int read_rows(struct table *t, int (*row)(void *arg, const struct h5_csv_row *row))
{
	struct h5_csv_reader reader = {.row = row, .arg = t};
	const struct h5_dataset *text;
	struct h5_lru_entry *ref;
	char *piece = malloc(PIECE);
	int rc = piece ? h5_dataset_get(t->intake->file, t->intake->stream, &ref, &text) : no_memory(t);

	t->rows = 0;
	if (!rc) {
		rc = read_pieces(text, &reader, piece);
		h5_file_put(t->intake->file, ref);
	}
	h5_csv_release(&reader);
	free(piece);
	return rc;
}

/* The bytes of the field of that number. */
static const char *field(const struct h5_csv_row *row, size_t i, size_t *n)
{
	const size_t begin = i ? row->end[i - 1] : 0;

	*n = row->end[i] - begin;
	return row->text + begin;
}

/* ---- numbers ---- */

static void trim(const char **text, size_t *n)
{
	while (*n && (**text == ' ' || **text == '\t'))
		++*text, --*n;
	while (*n && ((*text)[*n - 1] == ' ' || (*text)[*n - 1] == '\t'))
		--*n;
}

/* False: the text is no number. *whole: it is one of 64 bits. */
static bool read_number(const char *text, size_t n, bool *whole, int64_t *integer, double *real)
{
	char copy[NUMBER_MAX + 1], *end;

	trim(&text, &n);
	if (!n || n > NUMBER_MAX || memchr(text, 'x', n) || memchr(text, 'X', n) || memchr(text, '(', n))
		return false;
	memcpy(copy, text, n);
	copy[n] = 0;
	errno = 0;
	*integer = strtoll(copy, &end, 10);
	*whole = !*end && !errno;
	if (*whole)
		return true;
	*real = strtod(copy, &end);
	return end == copy + n;
}

/* ---- the columns ---- */

static int name_columns(struct table *t, const struct h5_csv_row *row)
{
	if (row->count > COLUMNS_MAX)
		return refuse(t, "too many columns");
	t->columns = calloc(row->count, sizeof *t->columns);
	if (!t->columns)
		return no_memory(t);
	for (; t->count < row->count; t->count++) {
		size_t n;
		const char *name = field(row, t->count, &n);
		char number[24];

		if (memchr(name, 0, n) || !h5_is_utf8(name, n))
			return refuse(t, "a name with a NUL byte, or that is not UTF-8");
		snprintf(number, sizeof number, "%zu", t->count);
		t->columns[t->count].name = n ? strndup(name, n) : strdup(number);
		if (!t->columns[t->count].name)
			return no_memory(t);
	}
	return 0;
}

static int measure_field(const struct table *t, struct column *c, const char *text, size_t n)
{
	bool whole = true;
	int64_t integer;
	double real;

	if (memchr(text, 0, n) || !h5_is_utf8(text, n))
		return refuse(t, "a field with a NUL byte, or that is not UTF-8");
	c->length = (uint32_t)h5_max(c->length, n);
	c->has_values |= n;
	c->has_gaps |= !n;
	if (n && !c->is_text) {
		c->is_text = !read_number(text, n, &whole, &integer, &real);
		c->is_float |= !whole;
	}
	return 0;
}

static int measure(void *arg, const struct h5_csv_row *row)
{
	struct table *t = arg;
	int rc = 0;

	if (!t->columns)
		return name_columns(t, row);
	if (row->count != t->count)
		return h5_fail(-EINVAL, t->intake->dataset, "csv: row %ju has %zu fields, the head %zu",
			       (uintmax_t)t->rows + 1, row->count, t->count);
	for (size_t i = 0; i < t->count && !rc; i++) {
		size_t n;
		const char *text = field(row, i, &n);

		rc = measure_field(t, &t->columns[i], text, n);
	}
	t->rows++;
	return rc ? rc : h5_interrupt_check();
}

static enum form find_form(const struct table *t)
{
	char number[24];

	if (t->count == 1 && !strcmp(t->columns[0].name, "value"))
		return VALUES;
	for (size_t i = 0; i < t->count; i++) {
		snprintf(number, sizeof number, "%zu", i);
		if (strcmp(t->columns[i].name, number) != 0)
			return MEMBERS;
	}
	return GRID;
}

/* ---- the type ---- */

static struct h5_datatype *make_type(const struct column *c)
{
	if (c->is_text || !c->has_values)
		return h5_datatype_make_string((uint32_t)h5_max(c->length, 1), H5_PAD_NULLPAD,
					       H5_CHARSET_UTF8);
	if (c->is_float || c->has_gaps)
		return h5_datatype_make_float(8, H5_ORDER_LE);
	return h5_datatype_make_integer(8, true, H5_ORDER_LE);
}

/* The type of all columns of an array. */
static int make_common(struct table *t)
{
	struct column all = {0};

	for (size_t i = 0; i < t->count; i++) {
		all.has_values |= t->columns[i].has_values;
		all.is_text |= t->columns[i].is_text;
		all.is_float |= t->columns[i].is_float;
		all.has_gaps |= t->columns[i].has_gaps;
		all.length = (uint32_t)h5_max(all.length, t->columns[i].length);
	}
	t->made = make_type(&all);
	return t->made ? 0 : no_memory(t);
}

static int make_compound(struct table *t)
{
	uint32_t offset = 0;

	if (t->count > MEMBERS_MAX)
		return h5_fail(-E2BIG, t->intake->dataset, "csv: no datatype has %zu members", t->count);
	t->made = h5_datatype_make_compound(1, (unsigned)t->count);
	if (!t->made)
		return no_memory(t);
	for (size_t i = 0; i < t->count; i++) {
		struct h5_datatype *type = make_type(&t->columns[i]);
		int rc;

		if (!type)
			return no_memory(t);
		for (size_t k = 0; k < i; k++)
			if (!strcmp(t->columns[i].name, t->columns[k].name)) {
				h5_datatype_free(type);
				return h5_fail(-EINVAL, t->intake->dataset,
					       "csv: two columns have the name %.60s", t->columns[i].name);
			}
		t->made->size = offset + type->size;
		if (t->made->size > ELEMENT_MAX) {
			h5_datatype_free(type);
			return h5_fail(-EFBIG, t->intake->dataset, "csv: rows of over %d bytes", ELEMENT_MAX);
		}
		rc = h5_datatype_add_member(t->made, t->columns[i].name, offset, type);
		if (rc)
			return rc;
		offset = t->made->size;
	}
	return 0;
}

static void place_members(struct table *t)
{
	struct column *c = t->columns;

	for (unsigned i = 0; i < t->type->compound.count; i++) {
		const struct h5_member *m = &t->type->compound.members[i];
		struct h5_csv_columns columns = h5_csv_columns_of(m);

		for (uint32_t k = 0; k < columns.count; k++, c++) {
			c->type = columns.type;
			c->offset = (uint32_t)m->offset + k * columns.type->size;
		}
	}
}

/* Where the columns are in a row of elements of that type. */
static int place_columns(struct table *t, const struct h5_datatype *type)
{
	uint64_t row = type->size;

	t->type = type;
	if (t->form != MEMBERS && (!h5_mul(row, t->count, &row) || row > ELEMENT_MAX))
		return h5_fail(-EFBIG, t->intake->dataset, "csv: rows of over %d bytes", ELEMENT_MAX);
	t->row = (size_t)row;
	if (t->form == MEMBERS)
		place_members(t);
	for (size_t i = 0; i < t->count && t->form != MEMBERS; i++) {
		t->columns[i].type = type;
		t->columns[i].offset = (uint32_t)(i * type->size);
	}
	return 0;
}

static int choose_type(struct table *t)
{
	int rc = t->form == MEMBERS ? make_compound(t) : make_common(t);

	return rc ? rc : place_columns(t, t->made);
}

/* ---- the values ---- */

static int write_field(const struct table *t, const struct column *c, const char *text, size_t n,
		       uint8_t *element)
{
	static const struct h5_dataspace scalar = {.kind = H5_SPACE_SCALAR, .elements = 1};
	const struct h5_value_parser parser = {.context = &t->context};
	bool whole = false;
	int64_t integer = 0;
	double real = NAN;

	if (!t->made)
		return h5_value_parse(&parser, c->type, &scalar, text, n, NULL, element);
	if (c->type->class == H5_CLASS_STRING) {
		memcpy(element, text, n);
		return 0;
	}
	if (n && read_number(text, n, &whole, &integer, &real) && whole)
		real = (double)integer;
	if (c->type->class == H5_CLASS_FLOAT)
		memcpy(&integer, &real, sizeof integer);
	for (unsigned i = 0; i < sizeof integer; i++)
		element[i] = (uint8_t)((uint64_t)integer >> (8 * i));
	return 0;
}

static int flush(struct table *t)
{
	int rc = t->filled && t->writer
			 ? h5_intake_write(t->intake, t->writer, t->written, t->piece, t->filled)
			 : 0;

	t->written += t->filled;
	t->filled = 0;
	return rc;
}

static int write_row(void *arg, const struct h5_csv_row *row)
{
	struct table *t = arg;
	uint8_t *element = t->piece + t->filled;
	int rc = 0;

	if (!t->rows++)
		return 0; /* the head */
	memset(element, 0, t->row);
	for (size_t i = 0; i < t->count && !rc; i++) {
		size_t n;
		const char *text = field(row, i, &n);

		rc = write_field(t, &t->columns[i], text, n, element + t->columns[i].offset);
	}
	t->filled += t->row;
	if (!rc && t->filled + t->row > h5_max(PIECE, t->row))
		rc = flush(t);
	return rc ? rc : h5_interrupt_check();
}

static int write_rows(struct table *t)
{
	int rc;

	t->filled = 0;
	t->written = 0;
	t->piece = malloc(h5_max(PIECE, t->row));
	if (!t->piece)
		return no_memory(t);
	rc = read_rows(t, write_row);
	if (!rc)
		rc = flush(t);
	free(t->piece);
	t->piece = NULL;
	return rc;
}

static int make_dataset(struct table *t, uint64_t rows)
{
	struct h5_new_dataset how = {.type = t->type, .time = (uint32_t)time(NULL)};
	int rc;

	how.space = (struct h5_dataspace){.kind = H5_SPACE_SIMPLE, .rank = t->form == GRID ? 2 : 1};
	how.space.dims[0] = how.space.max[0] = rows;
	how.space.dims[1] = how.space.max[1] = t->form == GRID ? t->count : 0;
	if (t->is_scalar)
		how.space = (struct h5_dataspace){.kind = H5_SPACE_SCALAR, .elements = 1};
	h5_intake_choose(t->intake, &how);
	rc = h5_intake_define(t->intake, &how);
	if (!rc)
		rc = h5_dataset_writer_get(t->intake->file, t->intake->dataset, false, &t->writer);
	if (rc)
		return rc;
	rc = write_rows(t);
	if (!rc)
		rc = h5_dataset_writer_settle(t->writer);
	h5_dataset_writer_put(t->writer);
	t->writer = NULL;
	return rc;
}

/* ---- the dataset that is there ---- */

static bool has_members(const struct table *t, const struct h5_datatype *type)
{
	const struct column *c = t->columns;
	struct h5_buf name;
	bool same = h5_csv_columns_count(type) == t->count;

	h5_buf_init(&name, H5_CSV_ROW_MAX);
	for (unsigned i = 0; i < type->compound.count && same; i++) {
		const struct h5_member *m = &type->compound.members[i];

		for (uint32_t k = 0; k < h5_csv_columns_of(m).count && same; k++, c++) {
			name.size = 0;
			h5_csv_column_name(m, k, &name);
			same = !name.err && strlen(c->name) == name.size &&
			       !memcmp(c->name, name.data, name.size);
		}
	}
	h5_buf_release(&name);
	return same;
}

static bool has_columns(const struct table *t, const struct h5_dataset *target)
{
	const struct h5_dataspace *space = &target->space;

	if (t->form == GRID)
		return space->rank == 2 && space->dims[1] == t->count;
	if (space->rank != 1 && !(space->kind == H5_SPACE_SCALAR && t->rows == 1))
		return false;
	if (t->form == VALUES)
		return true;
	return target->type->class == H5_CLASS_COMPOUND && has_members(t, target->type);
}

/* Keeps the type of the target if all fields are values of it. *kept: they are. */
static int try_target(struct table *t, const struct h5_dataset *target, bool *kept)
{
	const uint64_t rows = t->rows;
	int rc;

	*kept = false;
	if (!has_columns(t, target) || !h5_datatype_is_fixed(target->type))
		return 0;
	rc = place_columns(t, target->type);
	if (!rc)
		rc = write_rows(t);
	*kept = !rc;
	t->is_scalar = *kept && target->space.kind == H5_SPACE_SCALAR;
	t->rows = rows;
	return rc == -EINVAL || rc == -ENOTSUP || rc == -EFBIG ? 0 : rc;
}

/* ---- the whole ---- */

static int make_typed(struct table *t)
{
	const uint64_t rows = t->rows;
	const struct h5_dataset *target;
	struct h5_lru_entry *ref = NULL;
	bool kept = false;
	int rc = 0;

	if (t->intake->target != H5_UNDEF) {
		rc = h5_dataset_get(t->intake->file, t->intake->target, &ref, &target);
		if (!rc)
			rc = try_target(t, target, &kept);
	}
	if (!rc && !kept)
		rc = choose_type(t);
	if (!rc)
		rc = make_dataset(t, rows);
	h5_file_put(t->intake->file, ref);
	return rc;
}

static int finish(struct h5_intake *intake)
{
	struct table t = {.intake = intake, .context = {.file = intake->file}};
	int rc = intake->writer ? h5_dataset_writer_ready(intake->writer)
				: h5_fail(-EINVAL, intake->dataset, "csv: there is no head");

	if (!rc)
		rc = h5_dataset_writer_settle(intake->writer);
	if (!rc)
		rc = read_rows(&t, measure);
	if (!rc && !t.count)
		rc = h5_fail(-EINVAL, intake->dataset, "csv: there is no head");
	t.form = find_form(&t);
	if (!rc)
		rc = make_typed(&t);
	for (size_t i = 0; i < t.count; i++)
		free(t.columns[i].name);
	free(t.columns);
	h5_datatype_free(t.made);
	return rc;
}

const struct h5_intake_ops h5_intake_csv = {take, finish, NULL, .may_grow = true};
