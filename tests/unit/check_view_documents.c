/* What the views json and ddl say of objects, to the last byte. */
#include "change/object_header_create.h"
#include "dataset/create.h"
#include "empty_scene.h"
#include "format/datatype_make.h"
#include "object/attribute_write.h"
#include "view/views.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text of the view; free(). */
static char *show(const struct h5_view_ops *ops, uint64_t address)
{
	static uint64_t state;
	struct h5_view_tree tree = {.file = scratch.file, .root = h5_file_superblock(scratch.file)->root};
	struct h5_view v = {.ops = ops,
			    .file = scratch.file,
			    .address = address,
			    .tree = &tree,
			    .context = {.file = scratch.file},
			    .state = ++state};
	char *text;

	SUCCEEDS(h5_tx_commit(scratch.file));
	SUCCEEDS(h5_view_begin(&v, NULL));
	SUCCEEDS(h5_view_open(&v, true));
	text = calloc(1, (size_t)v.size + 1);
	SUCCEEDS(h5_view_read(&v, 0, text, (size_t)v.size));
	ck_assert_uint_eq(strlen(text), v.size);
	h5_view_release(&v);
	return text;
}

/* The document has this before the address. */
static void check_json(uint64_t address, const char *expected)
{
	char *text = show(&h5_view_json, address), end[100];
	size_t n;

	snprintf(end, sizeof end, ",\n  \"address\": %ju,\n  \"mtime\": 7\n}\n", (uintmax_t)address);
	n = strlen(text) - strlen(end);
	ck_assert_uint_gt(strlen(text), strlen(end));
	ck_assert_str_eq(text + n, end);
	text[n] = 0;
	ck_assert_str_eq(text, expected);
	free(text);
}

static uint64_t make(struct h5_new_dataset how, struct h5_datatype *type, const char *filters)
{
	uint64_t address;

	how.type = type;
	how.time = 7;
	SUCCEEDS(h5_filter_list_parse(filters, strlen(filters), &how.filters));
	SUCCEEDS(h5_dataset_create(scratch.file, &how, &address));
	h5_datatype_free(type);
	return address;
}

static void give(uint64_t address, const char *name, struct h5_datatype *type,
		 const struct h5_dataspace *space, const void *data)
{
	SUCCEEDS(h5_attribute_create(scratch.file, address, name, type, space, data));
	h5_datatype_free(type);
}

static struct h5_datatype *pair(void)
{
	struct h5_datatype *type = h5_datatype_make_compound(3, 2);

	SUCCEEDS(h5_datatype_add_member(type, "a", 0, h5_datatype_make_integer(1, false, H5_ORDER_LE)));
	SUCCEEDS(h5_datatype_add_member(type, "b", 1, h5_datatype_make_integer(2, true, H5_ORDER_BE)));
	return type;
}

START_TEST(datasets)
{
	const uint8_t fill[] = {1, 0xff, 0xfe};
	uint64_t address;

	address = make((struct h5_new_dataset){.space = {.kind = H5_SPACE_SIMPLE,
							 .rank = 2,
							 .dims = {3, 4},
							 .max = {H5_UNLIMITED, 4}},
					       .layout = H5_LAYOUT_CHUNKED,
					       .chunk = {2, 4}},
		       h5_datatype_make_integer(2, true, H5_ORDER_LE), "shuffle,deflate(3)");
	check_json(address, "{\n"
			    "  \"class\": \"dataset\",\n"
			    "  \"dtype\": \"<i2\",\n"
			    "  \"type\": \"H5T_STD_I16LE\",\n"
			    "  \"shape\": [3, 4],\n"
			    "  \"maxshape\": [null, 4],\n"
			    "  \"size\": 24,\n"
			    "  \"layout\": \"chunked\",\n"
			    "  \"chunks\": [2, 4],\n"
			    "  \"index\": \"earray\",\n"
			    "  \"filters\": [{\"id\": 2, \"name\": \"shuffle\", \"values\": [2]}, "
			    "{\"id\": 1, \"name\": \"deflate\", \"values\": [3]}],\n"
			    "  \"storage\": 0,\n"
			    "  \"attributes\": {}");
	address = make((struct h5_new_dataset){.space = {.kind = H5_SPACE_SCALAR},
					       .layout = H5_LAYOUT_CONTIGUOUS,
					       .fill = fill},
		       pair(), "");
	check_json(address,
		   "{\n"
		   "  \"class\": \"dataset\",\n"
		   "  \"dtype\": [[\"a\",\"|u1\"],[\"b\",\">i2\"]],\n"
		   "  \"type\": \"H5T_COMPOUND { H5T_STD_U8LE \\\"a\\\"; H5T_STD_I16BE \\\"b\\\"; }\",\n"
		   "  \"shape\": [],\n"
		   "  \"maxshape\": [],\n"
		   "  \"size\": 3,\n"
		   "  \"layout\": \"contiguous\",\n"
		   "  \"fill\": {\"a\":1,\"b\":-2},\n"
		   "  \"storage\": 0,\n"
		   "  \"attributes\": {}");
	address = make(
		(struct h5_new_dataset){.space = {.kind = H5_SPACE_NULL}, .layout = H5_LAYOUT_CONTIGUOUS},
		h5_datatype_make_float(8, H5_ORDER_LE), "");
	check_json(address, "{\n"
			    "  \"class\": \"dataset\",\n"
			    "  \"dtype\": \"<f8\",\n"
			    "  \"type\": \"H5T_IEEE_F64LE\",\n"
			    "  \"shape\": null,\n"
			    "  \"maxshape\": null,\n"
			    "  \"size\": 0,\n"
			    "  \"layout\": \"contiguous\",\n"
			    "  \"storage\": 0,\n"
			    "  \"attributes\": {}");
}
END_TEST

/* Of a value that cannot be read there is the type alone, and it is told. */
START_TEST(attributes)
{
	static const struct h5_dataspace scalar = {.kind = H5_SPACE_SCALAR, .elements = 1},
					 two = {.kind = H5_SPACE_SIMPLE,
						.rank = 1,
						.elements = 2,
						.dims = {2},
						.max = {2}},
					 null = {.kind = H5_SPACE_NULL};
	/* Texts of 3 bytes, where no heap is. */
	static const uint8_t bad[32] = {3, [4] = 9, [12] = 1, [16] = 3, [20] = 9, [28] = 1};
	static const uint8_t numbers[] = {5, 6};
	const uint64_t address = make(
		(struct h5_new_dataset){.space = {.kind = H5_SPACE_NULL}, .layout = H5_LAYOUT_CONTIGUOUS},
		h5_datatype_make_integer(1, false, H5_ORDER_LE), "");
	char *text;

	give(address, "one", h5_datatype_make_integer(1, false, H5_ORDER_LE), &scalar, numbers);
	give(address, "two", h5_datatype_make_integer(1, false, H5_ORDER_LE), &two, numbers);
	give(address, "none", h5_datatype_make_integer(1, false, H5_ORDER_LE), &null, NULL);
	text = show(&h5_view_json, address);
	ck_assert_msg(strstr(text, "\n"
				   "  \"attributes\": {\n"
				   "    \"none\": null,\n"
				   "    \"one\": 5,\n"
				   "    \"two\": [5,6]\n"
				   "  },\n"
				   "  \"attribute_types\": {\n"
				   "    \"none\": \"|u1\",\n"
				   "    \"one\": \"|u1\",\n"
				   "    \"two\": \"(2,)|u1\"\n"
				   "  },\n"
				   "  \"address\": "),
		      "%s", text);
	free(text);
	give(address, "bad", h5_datatype_make_vlen_string(8, H5_CHARSET_UTF8), &scalar, bad);
	give(address, "worse", h5_datatype_make_vlen_string(8, H5_CHARSET_UTF8), &two, bad);
	text = show(&h5_view_json, address);
	ck_assert_msg(strstr(text, "\n"
				   "  \"attributes\": {\n"
				   "    \"bad\": null,\n"
				   "    \"none\": null,\n"),
		      "%s", text);
	ck_assert_msg(strstr(text, "\n"
				   "    \"worse\": \"(2,)vlen str\"\n"
				   "  },\n"
				   "  \"omitted\": [\n"
				   "    \"bad\",\n"
				   "    \"worse\"\n"
				   "  ],\n"
				   "  \"address\": "),
		      "%s", text);
	free(text);
}
END_TEST

/* A file of its own for each. */
START_TEST(values_of_attributes)
{
	static const struct h5_dataspace two = {
		.kind = H5_SPACE_SIMPLE, .rank = 1, .elements = 2, .dims = {2}, .max = {2}};
	static const uint8_t numbers[] = {5, 6};
	struct h5_view v = {.ops = &h5_view_attrs,
			    .file = scratch.file,
			    .part = "two",
			    .context = {.file = scratch.file},
			    .state = 1};
	char text[6] = "";

	v.address = make(
		(struct h5_new_dataset){.space = {.kind = H5_SPACE_NULL}, .layout = H5_LAYOUT_CONTIGUOUS},
		h5_datatype_make_integer(1, false, H5_ORDER_LE), "");
	give(v.address, "two", h5_datatype_make_integer(1, false, H5_ORDER_LE), &two, numbers);
	SUCCEEDS(h5_tx_commit(scratch.file));
	SUCCEEDS(h5_view_begin(&v, NULL));
	SUCCEEDS(h5_view_open(&v, true));
	ck_assert_uint_eq(v.size, 5);
	SUCCEEDS(h5_view_read(&v, 0, text, 5));
	ck_assert_str_eq(text, "[5,6]");
	SUCCEEDS(h5_view_read(&v, 3, text, 2));
	ck_assert_str_eq(text, "6],6]");
	h5_view_release(&v);
	h5_view_release(&v); /* nothing is left of it */
	ck_assert_ptr_null(v.own);
}
END_TEST

START_TEST(committed_datatypes)
{
	const struct h5_new_header how = {.times = true, .time = 7};
	struct h5_new_message message = {.type = H5_MSG_DATATYPE};
	struct h5_datatype *type = pair();
	struct h5_buf body;
	uint64_t address;
	char *text;

	h5_buf_init(&body, 1000);
	SUCCEEDS(h5_datatype_encode(type, true, &body));
	h5_datatype_free(type);
	message.body = (const uint8_t *)body.data;
	message.size = body.size;
	SUCCEEDS(h5_header_create(scratch.file, &message, 1, &how, &address));
	h5_buf_release(&body);
	text = show(&h5_view_ddl, address);
	ck_assert_str_eq(text, "H5T_COMPOUND {\n"
			       "   H5T_STD_U8LE \"a\";\n"
			       "   H5T_STD_I16BE \"b\";\n"
			       "}\n");
	free(text);
	check_json(address,
		   "{\n"
		   "  \"class\": \"datatype\",\n"
		   "  \"dtype\": [[\"a\",\"|u1\"],[\"b\",\">i2\"]],\n"
		   "  \"type\": \"H5T_COMPOUND { H5T_STD_U8LE \\\"a\\\"; H5T_STD_I16BE \\\"b\\\"; }\",\n"
		   "  \"attributes\": {}");
}
END_TEST

START_TEST(groups)
{
	static const char begin[] = "{\n  \"class\": \"group\",\n  \"attributes\": {},\n  \"address\": ";
	char *text = show(&h5_view_json, h5_file_superblock(scratch.file)->root);

	ck_assert_msg(!strncmp(text, begin, strlen(begin)), "%s", text);
	free(text);
}
END_TEST

UNIT_MAIN_AROUND("view documents", setup, teardown, datasets, attributes, values_of_attributes,
		 committed_datatypes, groups)
