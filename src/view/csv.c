/* A dataset of one or two dimensions, or of a single value, as CSV (RFC 4180, but with lines that end as they
 * do in Unix). One of more dimensions is a directory of tables, see pages.h.
 *
 * The first line names the columns: the members of a compound, see csv_columns.h; in two dimensions the
 * numbers of the columns; else `value`. A field is the text that an attribute of that value has: strings and
 * numbers as they are, arrays and compounds as JSON. It is quoted if it has to be, and if it is empty, since
 * many readers skip empty lines.
 *
 * A piece of the text is a field, or a compound with all of its fields, so rows may be of any length. */
#include "view/views.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "view/csv_columns.h"
#include "view/intake.h"
#include "view/pages.h"

#include <inttypes.h>
#include <string.h>

#define ELEMENTS_MAX (UINT64_C(1) << 36) /* to measure more would take a day */

enum {
	COLUMNS_MAX = 1 << 20,
	CHECKED = 64, /* number of columns of which one asks if the request is still wanted */
};

/* Dimensions before those of a table. */
static unsigned count_leading(const struct h5_dataset *d)
{
	return d->space.rank > 2 ? d->space.rank - 2 : 0;
}

static int csv_shows(const struct h5_view *v)
{
	const struct h5_dataspace *space = v->dataset ? &v->dataset->space : NULL;

	if (!space || space->kind == H5_SPACE_NULL ||
	    (space->rank > 1 && space->dims[space->rank - 1] > COLUMNS_MAX))
		return -ENOENT;
	return h5_pages_can_list(v->dataset, count_leading(v->dataset)) ? 0 : -ENOENT;
}

/* ---- pages ---- */

static bool csv_is_directory(const struct h5_view *v)
{
	return v->dataset && count_leading(v->dataset);
}

static int csv_find(const struct h5_view *v, const char *path, bool *is_directory, uint64_t *size)
{
	(void)size;
	return h5_pages_find(v, count_leading(v->dataset), path, is_directory);
}

static int csv_next(const struct h5_view *v, uint64_t *position, char name[256], bool *is_directory)
{
	return h5_pages_next(v, count_leading(v->dataset), position, name, is_directory);
}

static const struct h5_view_directory_ops pages = {
	.is_one = csv_is_directory, .find = csv_find, .next = csv_next};

/* ---- fields ---- */

/* Quotes the bytes of the buffer from `start` on. */
static void quote(struct h5_buf *out, size_t start)
{
	size_t quotes = 0, from = out->size, to;

	for (size_t i = start; i < out->size; i++)
		quotes += out->data[i] == '"';
	for (size_t i = 0; i < quotes + 2; i++)
		h5_buf_byte(out, '"');
	if (out->err)
		return;
	to = out->size - 1; /* before the quote that closes */
	while (from > start) {
		char c = out->data[--from];

		out->data[--to] = c;
		if (c == '"')
			out->data[--to] = c;
	}
	out->data[start] = '"';
}

/* Ends the field that begins at `start`: quotes it if it has to be. */
static void end_field(struct h5_buf *out, size_t start, bool last)
{
	bool plain = out->size > start;

	for (size_t i = start; plain && i < out->size; i++)
		plain = !strchr("\",\r\n", out->data[i]) || !out->data[i];
	if (!plain)
		quote(out, start);
	h5_buf_byte(out, last ? '\n' : ',');
}

static int add_field(const struct h5_text_source *source, const struct h5_datatype *type, const uint8_t *data,
		     bool last, struct h5_buf *out)
{
	static const struct h5_dataspace scalar = {.kind = H5_SPACE_SCALAR, .elements = 1};
	size_t start = out->size;
	int rc = h5_value_text(&source->context, type, &scalar, data, out);

	if (rc)
		return rc;
	if (type->class == H5_CLASS_INTEGER || type->class == H5_CLASS_FLOAT)
		h5_buf_byte(out, last ? '\n' : ',');
	else
		end_field(out, start, last);
	return out->err;
}

/* ---- pieces ---- */

static bool has_members(const struct h5_text_source *source)
{
	return source->space->rank < 2 && source->type->class == H5_CLASS_COMPOUND;
}

static uint64_t count_heads(const struct h5_text_source *source)
{
	return has_members(source)	 ? source->type->compound.count
	       : source->space->rank < 2 ? 1
					 : source->space->dims[1];
}

static int add_names(const struct h5_member *m, bool last, struct h5_buf *out)
{
	uint32_t count = h5_csv_columns_of(m).count;
	int rc = 0;

	for (uint32_t i = 0; i < count && !rc; i++) {
		size_t start = out->size;

		rc = i % CHECKED ? 0 : h5_interrupt_check();
		h5_csv_column_name(m, i, out);
		end_field(out, start, last && i + 1 == count);
		rc = rc ? rc : out->err;
	}
	return rc;
}

static int head(const struct h5_text_source *source, uint64_t i, struct h5_buf *out)
{
	bool last = i + 1 == count_heads(source);

	if (has_members(source))
		return add_names(&source->type->compound.members[i], last, out);
	if (source->space->rank < 2)
		h5_buf_text(out, "value");
	else
		h5_buf_printf(out, "%" PRIu64, i);
	end_field(out, 0, last);
	return out->err;
}

static int add_member(const struct h5_text_source *source, const struct h5_member *m, const uint8_t *element,
		      bool last, struct h5_buf *out)
{
	struct h5_csv_columns columns = h5_csv_columns_of(m);
	const uint8_t *data = element + m->offset;
	int rc = 0;

	for (uint32_t i = 0; i < columns.count && !rc; i++, data += columns.type->size) {
		rc = i % CHECKED ? 0 : h5_interrupt_check();
		if (!rc)
			rc = add_field(source, columns.type, data, last && i + 1 == columns.count, out);
	}
	return rc;
}

static int piece(const struct h5_text_source *source, uint64_t i, const uint8_t *element, struct h5_buf *out)
{
	const struct h5_datatype *type = source->type;
	int rc = 0;

	if (source->space->rank == 2)
		return add_field(source, type, element, (i + 1) % source->space->dims[1] == 0, out);
	if (!has_members(source))
		return add_field(source, type, element, true, out);
	for (unsigned k = 0; k < type->compound.count && !rc; k++)
		rc = add_member(source, &type->compound.members[k], element, k + 1 == type->compound.count,
				out);
	return rc;
}

static const struct h5_text_form form = {.id = 3, .heads = count_heads, .head = head, .piece = piece};

/* ---- the view ---- */

static int csv_open(struct h5_view *v, bool reading)
{
	struct h5_page *page = v->mine = malloc(sizeof *page);
	int rc = page ? h5_page_get(v, count_leading(v->dataset), page) : -ENOMEM;

	(void)reading;
	if (!rc && page->space.elements > ELEMENTS_MAX)
		rc = h5_fail(-EOVERFLOW, v->address, "more elements than a table may have");
	return rc ? rc : h5_view_text_open(v, &form, page, h5_datatype_has_references(v->dataset->type));
}

const struct h5_view_ops h5_view_csv = {.name = "csv",
					.suffix = ".csv",
					.directory = &pages,
					.shows = csv_shows,
					.open = csv_open,
					.read = h5_view_text_read,
					.release = h5_view_text_release,
					.intake = &h5_intake_csv};
