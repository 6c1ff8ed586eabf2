/* Lists of filters as text: `shuffle,deflate(4)`, as h5fs.filters shows them. */
#ifndef H5_OBJECT_FILTER_LIST_H
#define H5_OBJECT_FILTER_LIST_H

#include "base/buf.h"
#include "format/pipeline.h"

/* The filters that a new dataset shall have, in the order of writing. */
struct h5_filter_list {
	unsigned count;
	struct {
		uint16_t id;
		bool has_level;
		uint32_t level; /* of those filters that have one, in the text behind the name */
	} filters[H5_FILTERS_MAX];
};

void h5_filter_list_print(const struct h5_pipeline *pipeline, struct h5_buf *out);
/* Reads the n bytes of the text; without any there are no filters. -EINVAL: it is no such list; -ENOTSUP: a
 * filter is not known, or not built in. */
int h5_filter_list_parse(const char *text, size_t n, struct h5_filter_list *list);
/* The list by which a pipeline can be made again, for elements or chunks of another size. */
void h5_filter_list_of(const struct h5_pipeline *pipeline, struct h5_filter_list *list);
/* Makes the pipeline of a new dataset; the caller releases it, h5_pipeline_release(). -ENOTSUP: a filter
 * cannot be given to new datasets; -EINVAL: it has no such level. */
int h5_filter_list_make(const struct h5_filter_list *list, uint32_t element_size, uint64_t chunk_size,
			struct h5_pipeline *pipeline);

#endif
