/* Reads CSV (RFC 4180) as it comes, piece by piece. Lines end with LF, CRLF or CR; lines without a byte are
 * passed over. A field may be quoted; so it may have commas, ends of lines, and quotes, which are doubled. */
#ifndef H5_VIEW_CSV_READ_H
#define H5_VIEW_CSV_READ_H

#include "base/buf.h"

enum { H5_CSV_ROW_MAX = 64 << 20 }; /* most bytes of a row */

struct h5_csv_row {
	const char *text;  /* the fields, one behind the other, without their quotes */
	const size_t *end; /* of each field in the text */
	size_t count;	   /* fields, at least one */
};

struct h5_csv_reader {
	/* Called for each row. A result other than 0 ends reading. */
	int (*row)(void *arg, const struct h5_csv_row *row);
	void *arg;

	enum { H5_CSV_BEGIN, H5_CSV_PLAIN, H5_CSV_QUOTED, H5_CSV_UNQUOTED } state; /* of the field */
	bool is_after_cr; /* a line feed belongs to the end of the line before */
	uint64_t lines;	  /* that have ended */
	struct h5_buf text;
	size_t *end;
	size_t count, capacity;
	struct h5_charge charge;
};

/* Takes the next n bytes. -EINVAL: there is text behind the quote that ends a field; -EFBIG: a row is too
 * long; or what `row` has returned. */
int h5_csv_read(struct h5_csv_reader *reader, const char *data, size_t n);
/* The text ends here: the last line may lack its end. -EINVAL: it ends inside of quotes. */
int h5_csv_end(struct h5_csv_reader *reader);
void h5_csv_release(struct h5_csv_reader *reader); /* may run twice */

#endif
