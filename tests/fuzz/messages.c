/* One target for each message of an object header. An input is a byte that tells the sizes of addresses and
 * lengths, and the message. */
#include "base/error.h"
#include "format/btree1.h"
#include "format/cache_image.h"
#include "format/convert.h"
#include "format/dataspace.h"
#include "format/driver_info.h"
#include "format/external_files.h"
#include "format/fill_value.h"
#include "format/free_space.h"
#include "format/header_messages.h"
#include "format/layout.h"
#include "format/named_message.h"
#include "format/object_header.h"
#include "format/pipeline.h"
#include "format/shared_message.h"
#include "format/symbol_table.h"
#include "fuzz.h"
#include "object/value.h"
#include "object/value_parse.h"
#include "walk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The rest of the reader, as bytes of its own that may be written to, and a reader over them. */
static uint8_t *copy_of(const struct h5_reader *r, struct h5_reader *copy)
{
	size_t n = h5_reader_left(r);
	uint8_t *data = malloc(n ? n : 1);

	FUZZ_HOLDS(data);
	if (n)
		memcpy(data, r->p, n);
	*copy = h5_reader_init(data, n, r->address, r->size_of_offsets, r->size_of_lengths);
	return data;
}

static void run_dataspace(struct h5_reader *r)
{
	struct h5_dataspace space, again;
	struct h5_reader copy;
	size_t n = h5_reader_left(r);
	uint8_t *body = copy_of(r, &copy);

	if (!h5_dataspace_decode(r, &space)) {
		FUZZ_HOLDS(space.rank <= H5_RANK_MAX);
		/* What is written over it reads back. */
		FUZZ_HOLDS(!h5_dataspace_update(body, n, r->size_of_lengths, &space));
		FUZZ_HOLDS(!h5_dataspace_decode(&copy, &again));
		FUZZ_HOLDS(!memcmp(space.dims, again.dims, space.rank * sizeof *space.dims));
	}
	free(body);
}

static int no_path(void *arg, uint64_t address, struct h5_buf *path)
{
	(void)arg;
	if (address % 2)
		return -ENOENT;
	h5_buf_printf(path, "/%" PRIx64, address);
	return 0;
}

/* Nothing but a superblock. References need the size of its addresses. */
static struct h5_file *empty_file(void)
{
	static const uint8_t bytes[512] = {
		0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n', 2,	   8,	 8,    0,    0,	       0,	 0, 0,
		0,    0,   0,	0,   0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, [29] = 2, [36] = 48};
	const struct h5_file_set_options options = fuzz_set_options(false);
	static struct h5_file_set *set;

	if (!set)
		FUZZ_HOLDS(!h5_file_set_open_memory(bytes, sizeof bytes, &options, &set));
	return h5_file_set_root(set);
}

/* The text of a value is read, or refused: the bits of a damaged float may overlap, and names may be double.
 */
static void parse_value(const struct h5_value_context *context, const struct h5_datatype *type,
			const struct h5_buf *text)
{
	const struct h5_value_parser parser = {.context = context};
	uint8_t *data = text->err || !text->size ? NULL : calloc(type->size, 1);

	if (data)
		(void)h5_value_parse_json(&parser, type, text->data, text->size, NULL, data);
	free(data);
}

/* Values whose meaning needs nothing else in the file. */
static void use_values(const struct h5_datatype *type, struct h5_reader *r)
{
	const struct h5_value_context context = {.file = empty_file(), .object_path = no_path};
	const uint8_t *data = h5_read_bytes(r, type->size);
	struct h5_dataspace space = {
		.kind = H5_SPACE_SIMPLE, .rank = 1, .elements = 1, .dims = {1}, .max = {1}};
	struct h5_buf out;

	if (!data || !h5_datatype_is_fixed(type))
		return;
	if (type->class == H5_CLASS_ENUM)
		h5_datatype_enum_member(type, data);
	h5_buf_init(&out, 1 << 16);
	h5_value_json(&context, type, data, &out);
	parse_value(&context, type, &out);
	h5_value_text(&context, type, &space, data, &out);
	h5_buf_release(&out);
}

/* The message that we write means the same. */
static void encode_type(const struct h5_datatype *type, bool latest)
{
	struct h5_datatype *again;
	struct h5_reader r;
	struct h5_buf out;

	h5_buf_init(&out, UINT16_MAX);
	if (!h5_datatype_encode(type, latest, &out)) {
		r = h5_reader_init(out.data, out.size, 0, 8, 8);
		FUZZ_HOLDS(!h5_datatype_decode(&r, &again));
		FUZZ_HOLDS(!h5_reader_left(&r));
		FUZZ_HOLDS(!h5_convert_is_needed(type, again));
		h5_datatype_free(again);
	}
	h5_buf_release(&out);
}

static void run_datatype(struct h5_reader *r)
{
	struct h5_dataspace space = {
		.kind = H5_SPACE_SIMPLE, .rank = 1, .elements = 3, .dims = {3}, .max = {3}};
	struct h5_datatype *type;
	struct h5_buf out;

	if (h5_datatype_decode(r, &type))
		return;
	FUZZ_HOLDS(type->size && h5_datatype_cost(type));
	h5_buf_init(&out, 1 << 16);
	h5_datatype_ddl(type, true, &out);
	h5_datatype_ddl(type, false, &out);
	h5_datatype_numpy(type, &out);
	h5_datatype_numpy_shaped(type, &space, &out);
	h5_buf_release(&out);
	encode_type(type, false);
	encode_type(type, true);
	use_values(type, r);
	h5_datatype_free(type);
}

static void run_fill_value(struct h5_reader *r)
{
	struct h5_fill_value fill;

	if (!h5_fill_value_decode(r, &fill) && fill.defined)
		fuzz_touch(fill.value, fill.size);
}

static void run_fill_value_old(struct h5_reader *r)
{
	struct h5_fill_value fill;

	if (!h5_fill_value_old_decode(r, &fill) && fill.defined)
		fuzz_touch(fill.value, fill.size);
}

static void run_layout(struct h5_reader *r)
{
	struct h5_layout layout, again;
	struct h5_reader copy;
	size_t n = h5_reader_left(r);
	uint8_t *body = copy_of(r, &copy);

	if (!h5_layout_decode(r, &layout)) {
		if (layout.class == H5_LAYOUT_COMPACT)
			fuzz_touch(layout.compact.data, layout.compact.size);
		if (!h5_layout_update(body, n, r->size_of_offsets, r->size_of_lengths, &layout)) {
			FUZZ_HOLDS(!h5_layout_decode(&copy, &again));
			FUZZ_HOLDS(again.class == layout.class && again.version == layout.version);
		}
	}
	free(body);
}

static void run_pipeline(struct h5_reader *r)
{
	struct h5_pipeline pipeline;

	if (!h5_pipeline_decode(r, &pipeline)) {
		FUZZ_HOLDS(pipeline.count <= H5_FILTERS_MAX);
		for (unsigned i = 0; i < pipeline.count; i++) {
			const struct h5_filter_info *filter = &pipeline.filters[i];

			fuzz_touch(filter->values, filter->count * sizeof *filter->values);
			if (filter->name)
				fuzz_touch(filter->name, strlen(filter->name) + 1);
		}
	}
	h5_pipeline_release(&pipeline);
}

static void run_section_pipelines(struct h5_reader *r)
{
	struct h5_pipeline pipelines[H5_SECTIONS];

	/* The two forms take different versions. */
	for (unsigned early = 0; early < 2; early++) {
		struct h5_reader copy = *r;

		h5_section_pipelines_decode(&copy, early, H5_SECTIONS, pipelines);
		for (unsigned i = 0; i < H5_SECTIONS; i++)
			h5_pipeline_release(&pipelines[i]);
	}
}

static void run_attribute(struct h5_reader *r)
{
	struct h5_attribute_message attribute;

	if (h5_attribute_decode(r, &attribute))
		return;
	fuzz_touch(attribute.name, attribute.name_size);
	fuzz_touch(attribute.data.p, h5_reader_left(&attribute.data));
	if (!attribute.type_shared)
		run_datatype(&attribute.type);
	if (!attribute.space_shared)
		run_dataspace(&attribute.space);
}

static void run_link(struct h5_reader *r)
{
	struct h5_link link;

	if (h5_link_decode(r, &link))
		return;
	fuzz_touch(link.name, link.name_size);
	if (link.type == H5_LINK_SOFT || link.type == H5_LINK_EXTERNAL)
		fuzz_touch(link.target, link.target_size);
	if (link.type == H5_LINK_EXTERNAL)
		fuzz_touch(link.file, link.file_size);
}

static void run_external_files(struct h5_reader *r)
{
	struct h5_external_files files;

	if (!h5_external_files_decode(r, &files))
		fuzz_touch(files.slots, files.count * sizeof *files.slots);
	h5_external_files_release(&files);
}

/* Those whose result holds nothing that could be wrong. */
#define RUN(name, type)                                                                                      \
	static void run_##name(struct h5_reader *r)                                                          \
	{                                                                                                    \
		type decoded;                                                                                \
		h5_##name##_decode(r, &decoded);                                                             \
	}

RUN(link_info, struct h5_named_info)
RUN(attribute_info, struct h5_named_info)
RUN(shared_message, struct h5_shared_message)
RUN(shared_table_message, struct h5_shared_table_message)
RUN(continuation, struct h5_continuation)
RUN(symbol_table, struct h5_symbol_table)
RUN(mtime, int64_t)
RUN(mtime_old, int64_t)
RUN(btree1_k, struct h5_btree1_k)
RUN(driver_info_message, struct h5_driver_info)
RUN(reference_count, uint32_t)
RUN(file_space_info, struct h5_file_space_info)
RUN(cache_image_message, struct h5_cache_image_message)

static const struct message {
	unsigned type;
	const char *name;
	void (*run)(struct h5_reader *r);
} messages[] = {
	{H5_MSG_DATASPACE, "dataspace", run_dataspace},
	{H5_MSG_LINK_INFO, "link_info", run_link_info},
	{H5_MSG_DATATYPE, "datatype", run_datatype},
	{H5_MSG_FILL_VALUE_OLD, "fill_value_old", run_fill_value_old},
	{H5_MSG_FILL_VALUE, "fill_value", run_fill_value},
	{H5_MSG_LINK, "link", run_link},
	{H5_MSG_EXTERNAL_FILES, "external_files", run_external_files},
	{H5_MSG_LAYOUT, "layout", run_layout},
	{H5_MSG_PIPELINE, "pipeline", run_pipeline},
	{H5_MSG_ATTRIBUTE, "attribute", run_attribute},
	{H5_MSG_MTIME_OLD, "mtime_old", run_mtime_old},
	{H5_MSG_SHARED_TABLE, "shared_table_message", run_shared_table_message},
	{H5_MSG_CONTINUATION, "continuation", run_continuation},
	{H5_MSG_SYMBOL_TABLE, "symbol_table", run_symbol_table},
	{H5_MSG_MTIME, "mtime", run_mtime},
	{H5_MSG_BTREE_K, "btree1_k", run_btree1_k},
	{H5_MSG_DRIVER_INFO, "driver_info_message", run_driver_info_message},
	{H5_MSG_ATTRIBUTE_INFO, "attribute_info", run_attribute_info},
	{H5_MSG_REFERENCE_COUNT, "reference_count", run_reference_count},
	{H5_MSG_FILE_SPACE_INFO, "file_space_info", run_file_space_info},
	{H5_MSG_CACHE_IMAGE, "cache_image_message", run_cache_image_message},
	{H5_MSG_STRUCTURED_PIPELINE, "section_pipelines", run_section_pipelines},
	{UINT32_MAX, "shared_message", run_shared_message}, /* in place of one of any type */
};

enum { MESSAGES = sizeof messages / sizeof *messages };

void fuzz_message(unsigned type, struct h5_reader *r)
{
	for (unsigned i = 0; i < MESSAGES; i++)
		if (messages[i].type == type)
			messages[i].run(r);
}

struct h5_reader fuzz_reader(const uint8_t *data, size_t size)
{
	static const uint8_t sizes[] = {8, 4, 2, 8};
	uint8_t which = size ? data[0] : 0;

	return h5_reader_init(data + (size > 0), size - (size > 0), 0, sizes[which & 3],
			      sizes[which >> 2 & 3]);
}

static void run_message(const void *arg, const uint8_t *data, size_t size)
{
	const struct message *message = arg;
	struct h5_reader r = fuzz_reader(data, size);

	message->run(&r);
}

bool fuzz_message_at(unsigned n, struct fuzz_target *target)
{
	if (n >= MESSAGES)
		return false;
	snprintf(target->name, sizeof target->name, "message_%s", messages[n].name);
	target->run = run_message;
	target->arg = &messages[n];
	return true;
}
