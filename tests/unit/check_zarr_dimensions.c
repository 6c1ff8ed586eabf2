/* Names and lengths of a Zarr array's dimensions, and the scale of a plot, by attributes that are as they
 * should be, and by ones that are not. */
#include "change/transaction.h"
#include "dataset/create.h"
#include "dataset/writer.h"
#include "format/datatype_make.h"
#include "object/attribute_write.h"
#include "object/group_write.h"
#include "object/heap_batch.h"
#include "scratch.h"
#include "view/plot.h"
#include "view/views.h"
#include "view/zarr.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED_MOST = 8, LISTS_MOST = H5_RANK_MAX + 1, USERS_MOST = 4 };

static struct scratch scratch;
static struct {
	uint64_t address;
	const char *name;
} named[NAMED_MOST];
static size_t named_count;

static void setup(void)
{
	scratch_init(&scratch, "header_create-latest.h5");
	scratch_open(&scratch);
	named_count = 0;
}

static void teardown(void)
{
	SUCCEEDS(h5_tx_commit(scratch.file));
	h5_dataset_writers_close(scratch.file);
	scratch_release(&scratch);
}

/* ---- objects ---- */

/* A dataset in the root group. */
static uint64_t make_as(const char *name, const struct h5_new_dataset *how)
{
	struct h5_link link = {.name = name, .name_size = strlen(name)};
	struct h5_new_dataset made = *how;
	struct h5_datatype *type = h5_datatype_make_integer(1, false, H5_ORDER_LE);

	made.type = type;
	SUCCEEDS(h5_dataset_create(scratch.file, &made, &link.address));
	h5_datatype_free(type);
	SUCCEEDS(h5_group_insert(scratch.file, h5_file_superblock(scratch.file)->root, &link));
	ck_assert_uint_lt(named_count, NAMED_MOST);
	named[named_count].address = link.address;
	named[named_count++].name = name;
	return link.address;
}

static uint64_t make(const char *name, unsigned rank, uint64_t rows, uint64_t columns)
{
	return make_as(name,
		       &(struct h5_new_dataset){.space = {.kind = rank ? H5_SPACE_SIMPLE : H5_SPACE_SCALAR,
							  .rank = rank,
							  .elements = 1,
							  .dims = {rows, columns},
							  .max = {rows, columns}},
						.layout = H5_LAYOUT_CONTIGUOUS});
}

static uint64_t make_unlimited(const char *name, uint64_t rows)
{
	return make_as(
		name,
		&(struct h5_new_dataset){
			.space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .dims = {rows}, .max = {H5_UNLIMITED}},
			.layout = H5_LAYOUT_CHUNKED,
			.chunk = {4}});
}

/* Gives the object an attribute with so many elements, in place of the one it has. The type is released. */
static void give(uint64_t address, const char *name, struct h5_datatype *type, uint64_t count,
		 const void *data)
{
	const struct h5_dataspace space = {
		.kind = H5_SPACE_SIMPLE, .rank = 1, .elements = count, .dims = {count}, .max = {count}};
	int rc = h5_attribute_remove(scratch.file, address, name);

	ck_assert(!rc || rc == -ENODATA);
	SUCCEEDS(h5_attribute_create(scratch.file, address, name, type, &space, data));
	h5_datatype_free(type);
}

static void give_text(uint64_t address, const char *name, const char *text)
{
	give(address, name,
	     h5_datatype_make_string((uint32_t)strlen(text) + 1, H5_PAD_NULLTERM, H5_CHARSET_ASCII), 1, text);
}

static void give_number(uint64_t address, const char *name, int32_t number)
{
	give(address, name, h5_datatype_make_integer(4, true, H5_ORDER_LE), 1, &number);
}

static struct h5_datatype *reference_type(void)
{
	struct h5_datatype *type = calloc(1, sizeof *type);

	type->class = H5_CLASS_REFERENCE;
	type->size = 8;
	type->reference.kind = H5_REF_OBJECT;
	return type;
}

static struct h5_datatype *list_type(void)
{
	struct h5_datatype *type = h5_datatype_make_vlen_string(8, H5_CHARSET_ASCII);

	h5_datatype_free((struct h5_datatype *)(uintptr_t)type->vlen.base);
	type->vlen.base = reference_type();
	type->vlen.is_string = false;
	return type;
}

/* Gives the dataset lists of two references each; H5_UNDEF: to nothing. */
static void give_lists(uint64_t address, uint64_t count, uint64_t lists[][2])
{
	struct h5_heap_batch heap;
	uint8_t data[LISTS_MOST][16] = {{0}};

	h5_heap_batch_init(&heap, scratch.file);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t at;
		uint32_t index;

		SUCCEEDS(heap.sink.put(&heap.sink, lists[i], 16, &at, &index));
		data[i][0] = 2;
		memcpy(data[i] + 4, &at, 8);
		memcpy(data[i] + 12, &index, 4);
	}
	SUCCEEDS(h5_heap_batch_flush(&heap));
	h5_heap_batch_release(&heap);
	give(address, "DIMENSION_LIST", list_type(), count, data);
}

/* Gives the scale a list of the datasets that use it, each with the number of the dimension. Such a list has
 * two members. */
static void give_users_as(unsigned members, uint64_t address, uint64_t count, uint64_t users[][2])
{
	struct h5_datatype *type = h5_datatype_make_compound(16, members);
	uint8_t data[USERS_MOST][16] = {0};

	SUCCEEDS(h5_datatype_add_member(type, "dataset", 0, reference_type()));
	if (members > 1)
		SUCCEEDS(h5_datatype_add_member(type, "dimension", 8,
						h5_datatype_make_integer(4, true, H5_ORDER_LE)));
	if (members > 2)
		SUCCEEDS(h5_datatype_add_member(type, "more", 12,
						h5_datatype_make_integer(4, true, H5_ORDER_LE)));
	for (uint64_t i = 0; i < count; i++) {
		memcpy(data[i], &users[i][0], 8);
		memcpy(data[i] + 8, &users[i][1], 4);
	}
	give(address, "REFERENCE_LIST", type, count, data);
}

static void give_users(uint64_t address, uint64_t count, uint64_t users[][2])
{
	give_users_as(2, address, count, users);
}

/* ---- names ---- */

static int path_of(void *arg, uint64_t address, struct h5_buf *path)
{
	(void)arg;
	for (size_t i = 0; i < named_count; i++)
		if (named[i].address == address) {
			h5_buf_printf(path, "way/to/%s", named[i].name);
			return 0;
		}
	return -ENOENT;
}

static size_t file_name(const struct h5_view_ops *view, const char *name, size_t size, char out[256])
{
	(void)view;
	memcpy(out, name, size);
	return size;
}

static struct h5_view view_of(uint64_t address)
{
	static struct h5_view_tree tree;
	static uint64_t state;

	tree = (struct h5_view_tree){
		.file = scratch.file, .root = h5_file_superblock(scratch.file)->root, .name = file_name};
	return (struct h5_view){.ops = &h5_view_zarr,
				.file = scratch.file,
				.address = address,
				.tree = &tree,
				.context = {.file = scratch.file, .object_path = path_of},
				.state = ++state};
}

static void check_names(uint64_t address, const char *expected)
{
	struct h5_view v = view_of(address);
	struct h5_zarr_array array;
	struct h5_buf out;

	SUCCEEDS(h5_tx_commit(scratch.file));
	h5_buf_init(&out, 1000);
	SUCCEEDS(h5_view_begin(&v, NULL));
	SUCCEEDS(h5_view_complete(&v));
	SUCCEEDS(h5_zarr_array_get(&v, H5_ZARR_V2, &array));
	SUCCEEDS(h5_zarr_add_dimensions(&v, &array, &out));
	h5_buf_byte(&out, 0);
	ck_assert_str_eq(out.data, expected);
	h5_buf_release(&out);
	h5_view_release(&v);
}

/* The first scale that is one, and as long as the dimension. */
START_TEST(names_by_scales)
{
	const uint64_t x = make("x", 1, 3, 0), y = make("y", 1, 2, 0), d = make("d", 2, 3, 2);
	const uint64_t root = h5_file_superblock(scratch.file)->root;

	check_names(d, "[\"phony_dim_3\",\"phony_dim_2\"]");
	give_lists(d, 2, (uint64_t[][2]){{x, y}, {y, x}});
	check_names(d, "[\"x\",\"y\"]");
	give_lists(d, 2, (uint64_t[][2]){{y, x}, {x, y}});
	check_names(d, "[\"x\",\"y\"]");
	give_lists(d, 2, (uint64_t[][2]){{H5_UNDEF, x}, {0, y}});
	check_names(d, "[\"x\",\"y\"]");
	give_lists(d, 2, (uint64_t[][2]){{root, x}, {UINT64_C(1) << 40, y}});
	check_names(d, "[\"x\",\"y\"]");
	give_lists(d, 2, (uint64_t[][2]){{y, y}, {x, x}});
	check_names(d, "[\"phony_dim_3\",\"phony_dim_2\"]");
	give_lists(d, 2, (uint64_t[][2]){{y, y}, {y, y}});
	check_names(d, "[\"phony_dim_3\",\"y\"]");
}
END_TEST

/* Not of references, or not of as many elements as there are dimensions. */
START_TEST(lists_of_another_form)
{
	const uint64_t x = make("x", 1, 3, 0), d = make("d", 2, 3, 3);
	const int32_t numbers[] = {1, 2};

	give_lists(d, 1, (uint64_t[][2]){{x, x}});
	check_names(d, "[\"phony_dim_3\",\"phony_dim_3_1\"]");
	give(d, "DIMENSION_LIST", h5_datatype_make_integer(4, true, H5_ORDER_LE), 2, numbers);
	check_names(d, "[\"phony_dim_3\",\"phony_dim_3_1\"]");
}
END_TEST

/* A scalar has no length, not even 0. */
START_TEST(a_scalar_is_no_scale)
{
	const uint64_t s = make("s", 0, 0, 0), x = make("x", 1, 0, 0), d = make("d", 1, 0, 0);

	give_lists(d, 1, (uint64_t[][2]){{s, x}});
	check_names(d, "[\"x\"]");
}
END_TEST

/* A scale has its own name: what says that it is one is a whole word. */
START_TEST(scales_are_known_by_a_word)
{
	const uint64_t x = make("x", 1, 3, 0);
	const int32_t number = 1;

	give_text(x, "CLASS", "DIMENSION_SCALE");
	check_names(x, "[\"x\"]");
	give_text(x, "CLASS", "DIMENSION_SCALES");
	check_names(x, "[\"phony_dim_3\"]");
	give_text(x, "CLASS", "DIMENSION_SCAL");
	check_names(x, "[\"phony_dim_3\"]");
	give(x, "CLASS", h5_datatype_make_string(16, H5_PAD_NULLTERM, H5_CHARSET_ASCII), 0, "");
	check_names(x, "[\"phony_dim_3\"]");
	give(x, "CLASS", h5_datatype_make_integer(4, true, H5_ORDER_LE), 1, &number);
	check_names(x, "[\"phony_dim_3\"]");
}
END_TEST

/* A scale of more dimensions has their numbers; a dimension without a variable counts, too. */
START_TEST(names_by_numbers)
{
	const uint64_t a = make("a", 1, 2, 0), b = make("b", 1, 3, 0), x = make("x", 1, 3, 0),
		       y = make("y", 1, 3, 0), d = make("d", 2, 3, 3);
	const int32_t numbers[] = {7, 8};
	const double wrong[] = {7, 8};
	struct h5_view v;

	give_text(d, "CLASS", "DIMENSION_SCALE");
	check_names(d, "[\"phony_dim_3\",\"phony_dim_3_1\"]");
	give_number(a, "_Netcdf4Dimid", 7); /* of another length */
	give_number(x, "_Netcdf4Dimid", 7);
	give_number(y, "_Netcdf4Dimid", 8);
	give_number(b, "_Netcdf4Dimid", 0);
	give(d, "_Netcdf4Coordinates", h5_datatype_make_integer(4, true, H5_ORDER_LE), 2, numbers);
	check_names(d, "[\"x\",\"y\"]");
	give_text(x, "NAME", "This is a netCDF dimension but not a netCDF variable         3");
	check_names(d, "[\"x\",\"y\"]");
	v = view_of(x);
	ck_assert_int_eq(h5_view_begin(&v, NULL), -ENOENT); /* it is no array of its own */
	h5_view_release(&v);
	/* There is no second number, whatever lies behind the first. */
	give(d, "_Netcdf4Coordinates", h5_datatype_make_integer(4, true, H5_ORDER_LE), 1, numbers);
	check_names(d, "[\"x\",\"phony_dim_3_1\"]");
	give(d, "_Netcdf4Coordinates", h5_datatype_make_float(8, H5_ORDER_LE), 2, wrong);
	check_names(d, "[\"phony_dim_3\",\"phony_dim_3_1\"]");
}
END_TEST

/* ---- lengths ---- */

static void check_length(uint64_t scale, uint64_t expected)
{
	const struct h5_view v = view_of(scale);
	uint64_t length;

	SUCCEEDS(h5_tx_commit(scratch.file));
	SUCCEEDS(h5_zarr_dimension_length(&v, scale, &length));
	ck_assert_uint_eq(length, expected);
}

/* A dataset counts if both lists say so, whatever the others are. */
START_TEST(an_unlimited_scale_is_as_long_as_its_users)
{
	const uint64_t t = make_unlimited("t", 2), other = make("other", 1, 9, 0),
		       fixed = make("fixed", 1, 2, 0), u = make("u", 2, 9, 5), w = make("w", 2, 7, 9),
		       root = h5_file_superblock(scratch.file)->root;
	const int32_t numbers[] = {1, 2};

	check_length(t, 2);
	give_users(t, 1, (uint64_t[][2]){{u, 1}});
	check_length(t, 2);
	give_lists(u, 2, (uint64_t[][2]){{other, other}, {other, t}});
	check_length(t, 5);
	give_lists(w, 2, (uint64_t[][2]){{t, other}, {other, other}});
	give_users(t, 2, (uint64_t[][2]){{u, 1}, {w, 0}});
	check_length(t, 7);
	give_users(t, 2, (uint64_t[][2]){{w, 0}, {u, 1}});
	check_length(t, 7);
	give_users(t, 4, (uint64_t[][2]){{UINT64_C(1) << 40, 0}, {root, 0}, {0, 0}, {u, 1}});
	check_length(t, 5);
	/* Other dimensions of them, and ones that they do not have. */
	give_users(t, 4, (uint64_t[][2]){{u, 0}, {w, 1}, {u, 2}, {w, UINT32_MAX}});
	check_length(t, 2);
	give(t, "REFERENCE_LIST", h5_datatype_make_integer(4, true, H5_ORDER_LE), 2, numbers);
	check_length(t, 2);
	/* The list has another type. */
	for (unsigned members = 1; members <= 3; members++) {
		give_users_as(members, t, 1, (uint64_t[][2]){{u, 1}});
		check_length(t, members == 2 ? 5 : 2);
	}
	/* A scale that is not unlimited is as long as it says. */
	give_lists(u, 2, (uint64_t[][2]){{other, other}, {other, fixed}});
	give_users(fixed, 1, (uint64_t[][2]){{u, 1}});
	check_length(fixed, 2);
}
END_TEST

/* A list may have more elements than the dataset has dimensions, or than any has. */
START_TEST(a_list_has_more_elements_than_dimensions)
{
	const uint64_t t = make_unlimited("t", 2), u = make_unlimited("u", 9);
	uint64_t lists[H5_RANK_MAX + 1][2];

	for (unsigned i = 0; i <= H5_RANK_MAX; i++)
		lists[i][0] = lists[i][1] = t;
	give_lists(u, H5_RANK_MAX + 1, lists);
	give_users(t, 2, (uint64_t[][2]){{u, 1}, {u, H5_RANK_MAX}});
	check_length(t, 2);
	give_users(t, 2, (uint64_t[][2]){{u, 1}, {u, 0}});
	check_length(t, 9);
}
END_TEST

/* ---- plots ---- */

/* The scale that the plot has; 0: none. */
static void check_scale(uint64_t address, uint64_t expected, double low, double high)
{
	struct h5_view v = view_of(address);
	struct h5_plot plot;

	v.ops = &h5_view_svg;
	SUCCEEDS(h5_tx_commit(scratch.file));
	SUCCEEDS(h5_view_begin(&v, NULL));
	SUCCEEDS(h5_view_complete(&v));
	SUCCEEDS(h5_plot_make(&v, &plot));
	ck_assert_uint_eq(plot.scale_address, expected);
	ck_assert_int_eq(plot.scale != NULL, expected != 0);
	ck_assert_double_eq(plot.x.low, low);
	ck_assert_double_eq(plot.x.high, high);
	h5_plot_release(scratch.file, &plot);
	h5_view_release(&v);
}

/* The first one that has a number for each element. */
START_TEST(a_plot_has_a_scale)
{
	const uint64_t d = make("d", 1, 3, 0), s = make("s", 0, 0, 0), y = make("y", 1, 2, 0),
		       z = make("z", 2, 3, 1), x = make("x", 1, 3, 0), w = make("w", 1, 3, 0);
	struct h5_dataset_writer *writer;
	const int32_t number = 1;

	SUCCEEDS(h5_dataset_writer_get(scratch.file, x, false, &writer));
	SUCCEEDS(h5_dataset_writer_write(writer, 0, "\6\5\11", 3));
	SUCCEEDS(h5_dataset_writer_settle(writer));
	h5_dataset_writer_put(writer);
	check_scale(d, 0, 0, 2);
	give_lists(d, 1, (uint64_t[][2]){{x, w}});
	check_scale(d, x, 5, 9);
	give_lists(d, 1, (uint64_t[][2]){{w, x}});
	check_scale(d, w, 0, 0);
	give_lists(d, 1, (uint64_t[][2]){{s, x}});
	check_scale(d, x, 5, 9);
	give_lists(d, 1, (uint64_t[][2]){{y, x}});
	check_scale(d, x, 5, 9);
	give_lists(d, 1, (uint64_t[][2]){{z, x}});
	check_scale(d, x, 5, 9);
	give_lists(d, 1, (uint64_t[][2]){{d, x}});
	check_scale(d, x, 5, 9);
	give_lists(d, 1, (uint64_t[][2]){{H5_UNDEF, x}});
	check_scale(d, x, 5, 9);
	give_lists(d, 1, (uint64_t[][2]){{UINT64_C(1) << 40, x}});
	check_scale(d, x, 5, 9);
	give_lists(d, 1, (uint64_t[][2]){{y, z}});
	check_scale(d, 0, 0, 2);
	give_lists(d, 2, (uint64_t[][2]){{x, x}, {x, x}});
	check_scale(d, 0, 0, 2);
	give(d, "DIMENSION_LIST", h5_datatype_make_integer(4, true, H5_ORDER_LE), 1, &number);
	check_scale(d, 0, 0, 2);
}
END_TEST

UNIT_MAIN_AROUND("Zarr dimensions", setup, teardown, names_by_scales, lists_of_another_form,
		 a_scalar_is_no_scale, scales_are_known_by_a_word, names_by_numbers,
		 an_unlimited_scale_is_as_long_as_its_users, a_list_has_more_elements_than_dimensions,
		 a_plot_has_a_scale)
