#include "view/csv_read.h"

#include "base/array.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int refuse(const struct h5_csv_reader *r, const char *what)
{
	return h5_fail(-EINVAL, H5_UNDEF, "csv: line %" PRIu64 ": %s", r->lines + 1, what);
}

static int end_field(struct h5_csv_reader *r)
{
	int rc = h5_array_reserve(&r->end, &r->capacity, r->count + 1, &r->charge);

	if (rc)
		return rc;
	if (r->text.err)
		return h5_fail(r->text.err == -E2BIG ? -EFBIG : r->text.err, H5_UNDEF,
			       "csv: line %" PRIu64 ": the row is too long", r->lines + 1);
	r->end[r->count++] = r->text.size;
	r->state = H5_CSV_BEGIN;
	return 0;
}

static int end_row(struct h5_csv_reader *r)
{
	const bool is_empty = r->state == H5_CSV_BEGIN && !r->count;
	int rc = is_empty ? 0 : end_field(r);
	const struct h5_csv_row row = {r->text.data ? r->text.data : "", r->end, r->count};

	if (!rc && !is_empty)
		rc = r->row(r->arg, &row);
	r->lines++;
	r->text.size = 0;
	r->count = 0;
	return rc;
}

/* The bytes from p on that are part of a field as they are. */
static size_t plain_length(const struct h5_csv_reader *r, const char *p, size_t n)
{
	const char *special = r->state == H5_CSV_QUOTED ? "\"" : ",\r\n";
	size_t length = 0;

	while (length < n && (!p[length] || !strchr(special, p[length])))
		length++;
	return length;
}

/* A byte that is not plain. */
static int take_special(struct h5_csv_reader *r, char c)
{
	if (r->state == H5_CSV_QUOTED) {
		r->state = H5_CSV_UNQUOTED;
		return 0;
	}
	if (c == ',')
		return end_field(r);
	r->is_after_cr = c == '\r';
	return end_row(r);
}

/* Takes bytes at the begin of the text; returns how many. */
static int take_some(struct h5_csv_reader *r, const char *p, size_t n, size_t *taken)
{
	*taken = 1;
	if (r->is_after_cr && *p == '\n') {
		r->is_after_cr = false;
		return 0;
	}
	r->is_after_cr = false;
	if (*p == '"' && r->state == H5_CSV_BEGIN) {
		r->state = H5_CSV_QUOTED;
		return 0;
	}
	if (*p == '"' && r->state == H5_CSV_UNQUOTED) {
		h5_buf_byte(&r->text, '"');
		r->state = H5_CSV_QUOTED;
		return 0;
	}
	*taken = plain_length(r, p, n);
	if (!*taken) {
		*taken = 1;
		return take_special(r, *p);
	}
	if (r->state == H5_CSV_UNQUOTED)
		return refuse(r, "text behind a quote that ends a field");
	if (r->state == H5_CSV_BEGIN)
		r->state = H5_CSV_PLAIN;
	h5_buf_add(&r->text, p, *taken);
	return 0;
}

int h5_csv_read(struct h5_csv_reader *r, const char *data, size_t n)
{
	int rc = 0;

	if (!r->text.limit)
		h5_buf_init(&r->text, H5_CSV_ROW_MAX);
	for (size_t taken; n && !rc; data += taken, n -= taken)
		rc = take_some(r, data, n, &taken);
	return rc;
}

int h5_csv_end(struct h5_csv_reader *r)
{
	if (r->state == H5_CSV_QUOTED)
		return refuse(r, "a quote is open at the end");
	return r->state == H5_CSV_BEGIN && !r->count ? 0 : end_row(r);
}

void h5_csv_release(struct h5_csv_reader *r)
{
	h5_buf_release(&r->text);
	free(r->end);
	r->end = NULL;
	h5_charge_release(&r->charge);
}
