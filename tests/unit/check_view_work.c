/* Views ask now and then whether what they make is still wanted: not for each element, and as long as they
 * work. */
#include "base/buf.h"
#include "base/interrupt.h"
#include "base/writer.h"
#include "dataset/create.h"
#include "empty_scene.h"
#include "format/datatype_make.h"
#include "view/pages.h"
#include "view/views.h"
#include "view/zarr_array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long questions;

int __wrap_h5_interrupt_check(void);
int __wrap_h5_interrupt_check(void)
{
	questions++;
	return 0;
}

/* A dataset of n elements, whose bytes are all the same. The type is released. */
static uint64_t make(struct h5_datatype *type, uint64_t n, int byte)
{
	struct h5_new_dataset how = {.type = type,
				     .space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .dims = {n}, .max = {n}},
				     .layout = H5_LAYOUT_CONTIGUOUS};
	struct h5_dataset_writer *writer;
	size_t size = n * type->size;
	uint8_t *data = malloc(size);
	uint64_t address;

	memset(data, byte, size);
	SUCCEEDS(h5_dataset_create(scratch.file, &how, &address));
	SUCCEEDS(h5_dataset_writer_get(scratch.file, address, false, &writer));
	SUCCEEDS(h5_dataset_writer_write(writer, 0, data, size));
	SUCCEEDS(h5_dataset_writer_settle(writer));
	h5_dataset_writer_put(writer);
	SUCCEEDS(h5_tx_commit(scratch.file));
	h5_datatype_free(type);
	free(data);
	return address;
}

static void assert_asked(unsigned long least, unsigned long most)
{
	ck_assert_msg(questions >= least && questions <= most, "%lu questions, not %lu to %lu", questions,
		      least, most);
	questions = 0;
}

/* Opens the view of the dataset; then reads all of it. */
static void begin(struct h5_view *v, const struct h5_view_ops *ops, uint64_t address)
{
	*v = (struct h5_view){.ops = ops,
			      .file = scratch.file,
			      .address = address,
			      .context = {.file = scratch.file},
			      .state = 1};
	SUCCEEDS(h5_view_begin(v, NULL));
	SUCCEEDS(h5_view_complete(v));
	questions = 0;
	SUCCEEDS(h5_view_open(v, true));
}

static void finish(struct h5_view *v)
{
	char *data = malloc((size_t)v->size);

	SUCCEEDS(h5_view_read(v, 0, data, (size_t)v->size));
	free(data);
	h5_view_release(v);
	h5_view_release(v); /* nothing is left of it */
	ck_assert(!v->own && !v->ref && !v->mine && !v->outline && !v->dataset_ref && !v->dataset &&
		  !v->object);
}

/* Each 1024 points, of up to 8192 that are read at once. */
START_TEST(plots)
{
	uint64_t address = make(h5_datatype_make_integer(1, false, H5_ORDER_LE), 20000, 7);
	struct h5_view v;

	begin(&v, &h5_view_svg, address);
	assert_asked(8 + 8 + 4, 60);
	h5_view_release(&v);
}
END_TEST

/* Each 64 columns, in the line of their names and in a row. */
START_TEST(columns)
{
	struct h5_datatype *type = h5_datatype_make_compound(6400, 1);
	struct h5_view v;

	SUCCEEDS(h5_datatype_add_member(
		type, "a", 0,
		h5_datatype_make_array(1, (uint64_t[]){6400},
				       h5_datatype_make_integer(1, false, H5_ORDER_LE))));
	begin(&v, &h5_view_csv, make(type, 1, 7));
	assert_asked(200, 220);
	finish(&v);
	assert_asked(200, 220);
}
END_TEST

/* Each 16 lines. */
START_TEST(lines)
{
	struct h5_view v;

	begin(&v, &h5_view_csv, make(h5_datatype_make_integer(1, false, H5_ORDER_LE), 16000, 7));
	assert_asked(1000, 1100);
	finish(&v);
	assert_asked(1000, 1100);
}
END_TEST

/* Of elements that are not stored, no text is made to measure it; what is read is the text of each element.
 */
START_TEST(gaps)
{
	enum {
		N = 200000,
		CHUNK = 10000,
		GAP = 70000,
		BEHIND = 150000,
		FILL = 54321,
		LINE = 12,
		SLAB = (1 << 18) / 4
	};
	const uint32_t fill = FILL;
	struct h5_new_dataset how = {.type = h5_datatype_make_integer(4, false, H5_ORDER_LE),
				     .space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .dims = {N}, .max = {N}},
				     .layout = H5_LAYOUT_CHUNKED,
				     .chunk = {CHUNK},
				     .fill = (const uint8_t *)&fill};
	static uint8_t elements[N * 4];
	static char expected[N * LINE], got[N * LINE];
	struct h5_dataset_writer *writer;
	struct h5_view v;
	uint64_t address;
	size_t n = (size_t)sprintf(expected, "value\n"), late = 0;

	for (uint32_t i = 0; i < N; i++) {
		bool stored = i < GAP || i >= BEHIND;

		if (i == BEHIND - 5)
			late = n;
		h5_uint_to(elements + (size_t)i * 4, i * 7, 4);
		n += (size_t)sprintf(expected + n, "%u\n", stored ? i * 7 : FILL);
	}
	SUCCEEDS(h5_dataset_create(scratch.file, &how, &address));
	h5_datatype_free((struct h5_datatype *)(uintptr_t)how.type);
	SUCCEEDS(h5_dataset_writer_get(scratch.file, address, false, &writer));
	SUCCEEDS(h5_dataset_writer_write(writer, 0, elements, (size_t)GAP * 4));
	SUCCEEDS(h5_dataset_writer_write(writer, (uint64_t)BEHIND * 4, elements + (size_t)BEHIND * 4,
					 (size_t)(N - BEHIND) * 4));
	SUCCEEDS(h5_dataset_writer_settle(writer));
	h5_dataset_writer_put(writer);
	SUCCEEDS(h5_tx_commit(scratch.file));
	begin(&v, &h5_view_csv, address);
	assert_asked((2 * SLAB + N - BEHIND) / 16, (2 * SLAB + N - BEHIND) / 16 + 100);
	ck_assert_uint_eq(v.size, n);
	SUCCEEDS(h5_view_read(&v, 0, got, n));
	ck_assert_mem_eq(got, expected, n);
	for (size_t at = 5; at + 50 < n; at += 9973) {
		SUCCEEDS(h5_view_read(&v, at, got, 50));
		ck_assert_mem_eq(got, expected + at, 50);
	}
	/* Nor is it made of those before, in the gap. */
	questions = 0;
	SUCCEEDS(h5_view_read(&v, late, got, 10));
	ck_assert_mem_eq(got, expected + late, 10);
	assert_asked(0, 10);
	h5_view_release(&v);
}
END_TEST

/* Makes the only chunk of a dataset in an array of Zarr. */
static void make_zarr_chunk(uint64_t address, struct h5_buf *out)
{
	const struct h5_dataset *dataset;
	struct h5_zarr_chunk chunk;
	struct h5_zarr_array array;
	struct h5_lru_entry *ref;

	SUCCEEDS(h5_dataset_get(scratch.file, address, &ref, &dataset));
	SUCCEEDS(h5_zarr_array_init(&array, H5_ZARR_V2, dataset));
	ck_assert_uint_eq(array.chunks, 1);
	SUCCEEDS(h5_zarr_chunk_find(&array, NULL, 0, &chunk));
	h5_buf_init(out, SIZE_MAX);
	questions = 0;
	SUCCEEDS(h5_zarr_chunk_make(&array, &chunk, out));
	h5_file_put(scratch.file, ref);
}

/* Each 4096 strings that are padded anew. */
START_TEST(padded_strings)
{
	struct h5_datatype *type = h5_datatype_make_string(4, H5_PAD_SPACEPAD, H5_CHARSET_ASCII);
	uint64_t address = make(type, 40960, ' ');
	struct h5_buf out;
	struct h5_view v;

	begin(&v, &h5_view_npy, address);
	questions = 0;
	finish(&v);
	assert_asked(10, 30);
	make_zarr_chunk(address, &out);
	assert_asked(10, 30);
	ck_assert_uint_eq(out.size, 40960 * 4);
	for (size_t i = 0; i < out.size; i++)
		ck_assert_int_eq(out.data[i], 0);
	h5_buf_release(&out);
}
END_TEST

/* What a view has before the elements is read in parts as they are. */
START_TEST(parts_of_a_head)
{
	enum { N = 300, PARTS = 9 };
	struct h5_view v;
	char all[1000], part[1000];
	size_t n;

	begin(&v, &h5_view_npy, make(h5_datatype_make_integer(1, false, H5_ORDER_LE), N, 7));
	n = (size_t)v.size;
	ck_assert_uint_eq(v.head.size, 128);
	ck_assert_uint_eq(v.dataset_from, 128);
	ck_assert_uint_eq(n, 128 + N);
	SUCCEEDS(h5_view_read(&v, 0, all, n));
	ck_assert_mem_eq(all, v.head.data, 128);
	for (size_t at = 128; at < n; at++)
		ck_assert_int_eq(all[at], 7);
	for (size_t at = 0; at < n; at += 3)
		for (size_t size = 1; size <= n - at; size += 1 + size / PARTS) {
			memset(part, 0, sizeof part);
			SUCCEEDS(h5_view_read(&v, at, part, size));
			ck_assert_mem_eq(part, all + at, size);
			ck_assert_int_eq(part[size], 0);
		}
	finish(&v);
}
END_TEST

/* Each 1024 strings of any length. */
START_TEST(strings)
{
	uint64_t address = make(h5_datatype_make_vlen_string(8, H5_CHARSET_UTF8), 10240, 0);
	struct h5_buf out;

	make_zarr_chunk(address, &out);
	assert_asked(10, 30);
	ck_assert_uint_eq(out.size, 4 + 10240 * 4);
	h5_buf_release(&out);
}
END_TEST

/* A dataset whose header is known already is decoded for the view alone. */
START_TEST(known_objects)
{
	uint64_t address = make(h5_datatype_make_integer(1, false, H5_ORDER_LE), 10, 7);
	struct h5_view v = {.ops = &h5_view_csv,
			    .file = scratch.file,
			    .address = address,
			    .context = {.file = scratch.file},
			    .state = 1};
	const struct h5_object *object;
	struct h5_lru_entry *ref;

	SUCCEEDS(h5_object_get(scratch.file, address, &ref, &object));
	SUCCEEDS(h5_view_begin(&v, object));
	ck_assert(v.outline && v.dataset == v.outline && !v.dataset_ref);
	h5_view_release(&v);
	h5_view_release(&v);
	ck_assert(!v.outline && !v.dataset);
	h5_file_put(scratch.file, ref);
}
END_TEST

/* What is kept of a text is good until the elements change, unless it has names of other objects. */
START_TEST(states_of_texts)
{
	struct h5_datatype *reference = h5_datatype_make_integer(8, false, H5_ORDER_LE);
	struct {
		const struct h5_view_ops *ops;
		uint64_t address, state;
	} all[] = {{&h5_view_csv, make(h5_datatype_make_integer(1, false, H5_ORDER_LE), 10, 7), 2},
		   {&h5_view_values, make(h5_datatype_make_integer(1, false, H5_ORDER_LE), 10, 7), 2},
		   {&h5_view_lines, make(h5_datatype_make_vlen_string(8, H5_CHARSET_UTF8), 10, 0), 2},
		   {&h5_view_csv, 0, 1}};

	reference->class = H5_CLASS_REFERENCE;
	reference->reference.kind = H5_REF_OBJECT;
	all[3].address = make(reference, 10, 0);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		struct h5_view v = {.ops = all[i].ops,
				    .file = scratch.file,
				    .address = all[i].address,
				    .context = {.file = scratch.file},
				    .state = 1,
				    .own_state = 2};

		SUCCEEDS(h5_view_begin(&v, NULL));
		SUCCEEDS(h5_view_open(&v, true));
		ck_assert_uint_eq(v.source.state, all[i].state);
		h5_view_release(&v);
	}
}
END_TEST

/* What is kept of a page is not taken for another one's, nor for that of another state of the file. */
START_TEST(states_of_pages)
{
	const struct h5_page first = {.first = 0}, second = {.first = 10}, third = {.first = 20};

	ck_assert_uint_eq(h5_page_state(&first, 7), 7);
	ck_assert_uint_ne(h5_page_state(&second, 7), 7);
	ck_assert_uint_ne(h5_page_state(&second, 7), h5_page_state(&third, 7));
	ck_assert_uint_ne(h5_page_state(&second, 7), h5_page_state(&second, 8));
}
END_TEST

UNIT_MAIN_AROUND("view work", setup, teardown, plots, columns, lines, gaps, padded_strings, parts_of_a_head,
		 strings, known_objects, states_of_texts, states_of_pages)
