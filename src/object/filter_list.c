#include "object/filter_list.h"

#include "base/error.h"
#include "filter/client_values.h"
#include "filter/filter.h"
#include "store/pipeline.h"

#include <stdlib.h>
#include <string.h>

enum {
	DEFLATE = 1,
	CHECKED = 4096, /* elements of a chunk by which a list is checked */
	NBIT_NUMBER = 1,
	NBIT_ARRAY = 2,
	NBIT_COMPOUND = 3,
	NBIT_OTHER = 4,
	DEPTH_MAX = 32,
};

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
		h5_filter_parameters_of(f->id, f->values, f->count, &list->filters[i].parameters);
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

/* Reads `(5:shuffle:zstd)`, all of the n bytes. */
static int parse_parameters(uint16_t id, const char *text, size_t n, struct h5_filter_parameters *parameters)
{
	if (n < 3 || text[n - 1] != ')')
		return h5_fail(-EINVAL, H5_UNDEF, "filters: %.*s is no parameter", (int)n, text);
	text++;
	n -= 2;
	for (unsigned i = 0;; i++) {
		const char *colon = memchr(text, ':', n);
		size_t length = colon ? (size_t)(colon - text) : n;
		uint32_t value;
		int rc = h5_filter_parameter(id, i, text, length, &value);

		if (rc)
			return rc;
		parameters->values[i] = value;
		parameters->count = i + 1;
		if (!colon)
			return 0;
		text += length + 1;
		n -= length + 1;
	}
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
	list->filters[i].parameters.count = 0;
	list->count++;
	return bracket ? parse_parameters(ops->id, bracket, n - name, &list->filters[i].parameters) : 0;
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
	rc = h5_filter_list_make(list, NULL, &pipeline);
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

/* The filter n-bit's description of a type. Values that do not fit are counted, too, so that the filter
 * refuses the type. */
struct description {
	unsigned count;
	bool is_full;
	uint32_t values[H5_CLIENT_VALUES_MAX];
};

static int add(struct description *d, const uint32_t *values, unsigned n)
{
	for (unsigned i = 0; i < n && d->count + i < H5_CLIENT_VALUES_MAX; i++)
		d->values[d->count + i] = values[i];
	d->count += n;
	return d->count < UINT16_MAX ? 0 : h5_fail(-EINVAL, H5_UNDEF, "filters: a type of too many parts");
}

/* Adds the description of a type (filter/nbit.c). */
static int describe(const struct h5_datatype *type, struct description *d, unsigned depth)
{
	int rc = depth > DEPTH_MAX ? h5_fail(-EINVAL, H5_UNDEF, "filters: too deep a type for nbit") : 0;

	if (rc)
		return rc;
	switch (type->class) {
	case H5_CLASS_INTEGER:
	case H5_CLASS_FLOAT:
		d->is_full &= type->precision == 8 * type->size;
		return add(d,
			   (uint32_t[]){NBIT_NUMBER, type->size, type->order != H5_ORDER_LE, type->precision,
					type->bit_offset},
			   5);
	case H5_CLASS_ARRAY:
		rc = add(d, (uint32_t[]){NBIT_ARRAY, type->size}, 2);
		return rc ? rc : describe(type->array.base, d, depth + 1);
	case H5_CLASS_COMPOUND:
		rc = add(d, (uint32_t[]){NBIT_COMPOUND, type->size, type->compound.count}, 3);
		for (unsigned i = 0; i < type->compound.count && !rc; i++) {
			const struct h5_member *member = &type->compound.members[i];

			rc = add(d, (uint32_t[]){(uint32_t)member->offset}, 1);
			if (!rc)
				rc = describe(member->type, d, depth + 1);
		}
		return rc;
	default:
		return add(d, (uint32_t[]){NBIT_OTHER, type->size}, 2);
	}
}

/* What the values of filters need to know. */
static int set_use(const struct h5_filtered *what, struct h5_filter_use *use, struct description *d)
{
	const struct h5_datatype *type = what->type;
	uint64_t elements = 1;

	for (unsigned i = 0; i < what->rank; i++)
		elements *= what->chunk[i];
	*use = (struct h5_filter_use){.element_size = type->size,
				      .chunk_size = elements * type->size,
				      .line = what->rank ? what->chunk[what->rank - 1] : 1,
				      .is_signed = type->is_signed,
				      .is_big_endian = type->order == H5_ORDER_BE,
				      .bits = type->bit_offset ? 8 * type->size : type->precision,
				      .fill = what->fill,
				      .description = d->values};
	if (type->class == H5_CLASS_INTEGER)
		use->numbers = H5_FILTER_INTEGERS;
	else if (type->class == H5_CLASS_FLOAT && type->order != H5_ORDER_VAX)
		use->numbers = H5_FILTER_FLOATS;
	return describe(type, d, 0);
}

/* `what` may be NULL: then the list is only checked, for integers. */
int h5_filter_list_make(const struct h5_filter_list *list, const struct h5_filtered *what,
			struct h5_pipeline *pipeline)
{
	static const struct h5_datatype integers = {
		.class = H5_CLASS_INTEGER, .size = 8, .precision = 64, .order = H5_ORDER_LE};
	const struct h5_filtered usual = {.type = &integers, .rank = 1, .chunk = (uint64_t[]){CHECKED}};
	struct description description = {.is_full = true};
	struct h5_client_values values;
	struct h5_filter_use use;
	int rc = set_use(what ? what : &usual, &use, &description);

	memset(pipeline, 0, sizeof *pipeline);
	use.described = description.count;
	use.is_full = description.is_full;
	for (unsigned i = 0; i < list->count && !rc; i++) {
		use.parameters = list->filters[i].parameters;
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
