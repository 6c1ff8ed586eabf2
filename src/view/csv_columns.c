#include "view/csv_columns.h"

struct h5_csv_columns h5_csv_columns_of(const struct h5_member *m)
{
	const struct h5_datatype *type = m->type;
	uint64_t count = 1;

	/* The product is at most the size of the member, which the decoder has checked. */
	for (; type->class == H5_CLASS_ARRAY; type = type->array.base)
		count *= type->array.count;
	if (type == m->type || !count || count > H5_CSV_SPREAD_MAX)
		return (struct h5_csv_columns){m->type, 1, false};
	return (struct h5_csv_columns){type, (uint32_t)count, true};
}

uint64_t h5_csv_columns_count(const struct h5_datatype *t)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < t->compound.count; i++)
		n += h5_csv_columns_of(&t->compound.members[i]).count;
	return n;
}

void h5_csv_column_name(const struct h5_member *m, uint32_t i, struct h5_buf *out)
{
	uint64_t each = h5_csv_columns_of(m).count;

	h5_buf_text(out, m->name);
	if (!h5_csv_columns_of(m).is_spread)
		return;
	for (const struct h5_datatype *t = m->type; t->class == H5_CLASS_ARRAY; t = t->array.base)
		for (unsigned d = 0; d < t->array.rank; d++) {
			each /= t->array.dims[d];
			h5_buf_printf(out, "[%u]", (unsigned)(i / each));
			i %= (uint32_t)each;
		}
}
