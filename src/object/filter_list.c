#include "object/filter_list.h"

#include "base/error.h"
#include "filter/client_values.h"
#include "filter/filter.h"
#include "store/pipeline.h"

#include <stdlib.h>
#include <string.h>

enum { DEFLATE = 1 };

/* ---- from a pipeline ---- */

/* A name from the file. Characters that the list uses itself become underscores. */
static void add_name(struct h5_buf *out, const char *name)
{
	for (; *name; name++)
		h5_buf_byte(out, strchr(",() ", *name) || (unsigned char)*name < 0x20 ? '_' : *name);
}

void h5_filter_list_print(const struct h5_pipeline *pipeline, struct h5_buf *out)
{
	for (unsigned i = 0; i < pipeline->count; i++) {
		const struct h5_filter_info *f = &pipeline->filters[i];
		const struct h5_filter_ops *ops = h5_filter_find(f->id);

		if (i)
			h5_buf_byte(out, ',');
		if (ops)
			h5_buf_text(out, ops->name);
		else if (f->name && *f->name)
			add_name(out, f->name);
		else
			h5_buf_printf(out, "%u", f->id);
		if (f->id == DEFLATE && f->count)
			h5_buf_printf(out, "(%u)", f->values[0]);
	}
}

void h5_filter_list_of(const struct h5_pipeline *pipeline, struct h5_filter_list *list)
{
	*list = (struct h5_filter_list){.count = pipeline->count};
	for (unsigned i = 0; i < pipeline->count; i++) {
		const struct h5_filter_info *f = &pipeline->filters[i];

		list->filters[i].id = f->id;
		list->filters[i].has_level = h5_filter_has_level(f->id) && f->count;
		list->filters[i].level = list->filters[i].has_level ? f->values[0] : 0;
	}
}

/* ---- from text ---- */

/* The filter with the name of n bytes; NULL: there is none. */
static const struct h5_filter_ops *find_name(const char *name, size_t n)
{
	for (const struct h5_filter_ops *ops = h5_filters; ops->name; ops++)
		if (strlen(ops->name) == n && !memcmp(ops->name, name, n))
			return ops;
	return NULL;
}

/* Reads `(4)`, all of the n bytes. */
static bool parse_level(const char *text, size_t n, uint32_t *level)
{
	*level = 0;
	if (n < 3 || n > 6 || text[0] != '(' || text[n - 1] != ')')
		return false;
	for (size_t i = 1; i + 1 < n; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		*level = 10 * *level + (uint32_t)(text[i] - '0');
	}
	return true;
}

static int parse_one(const char *text, size_t n, struct h5_filter_list *list)
{
	const char *bracket = memchr(text, '(', n);
	size_t name = bracket ? (size_t)(bracket - text) : n;
	const struct h5_filter_ops *ops;
	unsigned i = list->count;

	if (!name)
		return h5_fail(-EINVAL, H5_UNDEF, "filters: a name is missing");
	if (i == H5_FILTERS_MAX)
		return h5_fail(-EINVAL, H5_UNDEF, "filters: more than %u", i);
	ops = find_name(text, name);
	if (!ops || !ops->encode)
		return h5_fail(-ENOTSUP, H5_UNDEF, "filters: %.*s is not available", (int)name, text);
	list->filters[i].id = ops->id;
	list->filters[i].has_level = bracket;
	if (bracket && !parse_level(bracket, n - name, &list->filters[i].level))
		return h5_fail(-EINVAL, H5_UNDEF, "filters: %.*s is no level", (int)(n - name), bracket);
	list->count++;
	return 0;
}

int h5_filter_list_parse(const char *text, size_t n, struct h5_filter_list *list)
{
	struct h5_pipeline pipeline;
	int rc = 0;

	*list = (struct h5_filter_list){.count = 0};
	while (n && !rc) {
		const char *comma = memchr(text, ',', n);
		size_t length = comma ? (size_t)(comma - text) : n;

		if (comma && length + 1 == n)
			return h5_fail(-EINVAL, H5_UNDEF, "filters: a name is missing");
		rc = parse_one(text, length, list);
		text += length + (comma ? 1 : 0);
		n -= length + (comma ? 1 : 0);
	}
	if (rc)
		return rc;
	rc = h5_filter_list_make(list, 1, 1, &pipeline);
	h5_pipeline_release(&pipeline);
	return rc;
}

/* ---- to a pipeline ---- */

static int make_filter(struct h5_filter_info *info, uint16_t id, const struct h5_client_values *values)
{
	const char *name = h5_filter_name(id);

	info->id = id;
	info->optional = values->optional;
	if (name)
		info->name = strdup(name);
	info->values = calloc(values->count + 1, sizeof *info->values);
	if ((name && !info->name) || !info->values)
		return h5_fail(-ENOMEM, H5_UNDEF, "filters: out of memory");
	memcpy(info->values, values->values, values->count * sizeof *info->values);
	info->count = values->count;
	return 0;
}

int h5_filter_list_make(const struct h5_filter_list *list, uint32_t element_size, uint64_t chunk_size,
			struct h5_pipeline *pipeline)
{
	int rc = 0;

	memset(pipeline, 0, sizeof *pipeline);
	for (unsigned i = 0; i < list->count && !rc; i++) {
		const struct h5_filter_use use = {.has_level = list->filters[i].has_level,
						  .level = list->filters[i].level,
						  .element_size = element_size,
						  .chunk_size = chunk_size};
		struct h5_client_values values;

		rc = h5_filter_values(list->filters[i].id, &use, &values);
		if (rc)
			break;
		pipeline->count++;
		rc = make_filter(&pipeline->filters[i], list->filters[i].id, &values);
	}
	if (!rc)
		rc = h5_pipeline_can_encode(pipeline);
	if (rc)
		h5_pipeline_release(pipeline);
	return rc;
}
