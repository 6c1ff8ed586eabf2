/* The columns of a table in CSV whose elements are compounds: a column for each member, or if that is an
 * array, for each of its elements: `name[0]`, `name[1]`, and in more dimensions `name[0][1]`. */
#ifndef H5_VIEW_CSV_COLUMNS_H
#define H5_VIEW_CSV_COLUMNS_H

#include "base/buf.h"
#include "format/datatype.h"

/* Columns of one member. A larger array is one column. */
enum { H5_CSV_SPREAD_MAX = 1 << 14 };

/* What a member's columns are: so many values of the type, one behind the other. */
struct h5_csv_columns {
	const struct h5_datatype *type; /* borrowed from the member */
	uint32_t count;			/* at least 1 */
	bool is_spread;			/* the elements of an array */
};

struct h5_csv_columns h5_csv_columns_of(const struct h5_member *member);
/* The number of columns of all members. */
uint64_t h5_csv_columns_count(const struct h5_datatype *compound);
/* Appends the name of the member's column i. */
void h5_csv_column_name(const struct h5_member *member, uint32_t i, struct h5_buf *out);

#endif
