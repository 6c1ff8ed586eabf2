/* Lists of filters as text: `shuffle,deflate(4)`, as h5fs.filters shows them. */
#ifndef H5_OBJECT_FILTER_LIST_H
#define H5_OBJECT_FILTER_LIST_H

#include "base/buf.h"
#include "filter/client_values.h"
#include "format/datatype.h"
#include "format/pipeline.h"

/* The filters that a new dataset shall have, in the order of writing. */
struct h5_filter_list {
	unsigned count;
	struct {
		uint16_t id;
		struct h5_filter_parameters parameters; /* in brackets behind the name, with colons between */
	} filters[H5_FILTERS_MAX];
};

void h5_filter_list_print(const struct h5_pipeline *pipeline, struct h5_buf *out);
/* Reads the n bytes of the text; without any there are no filters. -EINVAL: it is no such list; -ENOTSUP: a
 * filter is not known, or not built in. */
int h5_filter_list_parse(const char *text, size_t n, struct h5_filter_list *list);
/* The list by which a pipeline can be made again, for elements or chunks of another size. */
void h5_filter_list_of(const struct h5_pipeline *pipeline, struct h5_filter_list *list);
/* What the filters are for. All of it is borrowed. */
struct h5_filtered {
	const struct h5_datatype *type;
	unsigned rank;
	const uint64_t *chunk; /* elements along each dimension; fewer than 4 GiB together */
	const uint8_t *fill;   /* one element; NULL: zeros */
};

/* Makes the pipeline of a new dataset; the caller releases it, h5_pipeline_release(). `what` NULL: only to
 * see if there can be such a list. -ENOTSUP: a filter cannot be given to new datasets; -EINVAL: not to this
 * one. */
int h5_filter_list_make(const struct h5_filter_list *list, const struct h5_filtered *what,
			struct h5_pipeline *pipeline);

#endif
