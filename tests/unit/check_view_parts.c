/* What views have in common, asked directly: about what has changed meanwhile, is too large, or is not there.
 */
#include "dataset/create.h"
#include "empty_scene.h"
#include "format/datatype_make.h"
#include "view/document.h"
#include "view/pages.h"
#include "view/plot.h"
#include "view/views.h"
#include "view/zarr.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <zlib.h>

static void empty_caches(void)
{
	struct h5_lru *const caches[] = {h5_file_set_blocks(scratch.set), h5_file_set_chunks(scratch.set)};

	for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
		h5_lru_press(caches[i], SIZE_MAX / 2);
		h5_lru_press(caches[i], 0);
	}
}

/* The object is given back: its header may be large. */
static void open_view(struct h5_view *v)
{
	SUCCEEDS(h5_view_begin(v, NULL));
	SUCCEEDS(h5_view_complete(v));
	ck_assert_ptr_nonnull(v->object);
	SUCCEEDS(h5_view_open(v, true));
	ck_assert_ptr_null(v->object);
	ck_assert_ptr_null(v->object_ref);
}

/* A dataset of that type, which is released, with these elements; NULL: nothing is stored. */
static uint64_t make(struct h5_datatype *type, unsigned rank, const uint64_t *dims, uint64_t chunk,
		     const void *data)
{
	struct h5_new_dataset how = {.type = type,
				     .space = {.kind = H5_SPACE_SIMPLE, .rank = rank},
				     .layout = chunk ? H5_LAYOUT_CHUNKED : H5_LAYOUT_CONTIGUOUS};
	struct h5_dataset_writer *writer;
	uint64_t address;

	memcpy(how.space.dims, dims, rank * sizeof *dims);
	memcpy(how.space.max, dims, rank * sizeof *dims);
	for (unsigned i = 0; i < rank; i++)
		how.chunk[i] = chunk;
	SUCCEEDS(h5_dataset_create(scratch.file, &how, &address));
	if (data) {
		SUCCEEDS(h5_dataset_writer_get(scratch.file, address, false, &writer));
		SUCCEEDS(h5_dataset_writer_write(writer, 0, data, h5_dataset_writer_size(writer)));
		SUCCEEDS(h5_dataset_writer_settle(writer));
		h5_dataset_writer_put(writer);
	}
	h5_datatype_free(type);
	SUCCEEDS(h5_tx_commit(scratch.file));
	return address;
}

static struct h5_datatype *bytes_type(void)
{
	return h5_datatype_make_integer(1, false, H5_ORDER_LE);
}

static void said(int rc, int expected, const char *text)
{
	ck_assert_msg(rc == expected, "%d: %s", rc, h5_error_last()->text);
	ck_assert_str_eq(h5_error_last()->text, text);
}

/* ---- texts ---- */

static uint64_t lengths[4]; /* that are told of elements; of those behind them, that of the last one */

static uint64_t one_head(const struct h5_text_source *source)
{
	(void)source;
	return 1;
}

static int head(const struct h5_text_source *source, uint64_t i, struct h5_buf *out)
{
	(void)source;
	ck_assert_uint_eq(i, 0);
	h5_buf_text(out, "head\n");
	return 0;
}

/* A letter for each element: a, b, c, ... */
static int letter(const struct h5_text_source *source, uint64_t i, const uint8_t *element, struct h5_buf *out)
{
	(void)source;
	(void)element;
	h5_buf_byte(out, (char)('a' + i));
	h5_buf_byte(out, '\n');
	return 0;
}

/* The elements have the numbers of their lengths. */
static int length_of(const struct h5_text_source *source, const uint8_t *element, uint64_t *length)
{
	(void)source;
	*length = lengths[*element];
	return 0;
}

static const struct h5_text_form letters = {.id = 201, .heads = one_head, .head = head, .piece = letter},
				 measured = {.id = 202,
					     .heads = one_head,
					     .head = head,
					     .piece = letter,
					     .length = length_of};

START_TEST(a_text_with_another_length)
{
	static const uint8_t data[] = {0, 1, 2, 3};
	const struct h5_dataspace space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .elements = 4};
	struct h5_datatype *type = bytes_type();
	const struct h5_text_source source = {
		.form = &measured, .address = 7, .type = type, .space = &space, .data = data};
	struct h5_text *text;
	char got[20];

	for (size_t i = 0; i < 4; i++)
		lengths[i] = 2;
	SUCCEEDS(h5_text_open(&source, &text));
	ck_assert_uint_eq(h5_text_size(text), 5 + 8);
	SUCCEEDS(h5_text_read(&source, text, 0, got, 13));
	ck_assert_mem_eq(got, "head\na\nb\nc\nd\n", 13);
	h5_text_close(text);
	lengths[2] = 3;
	SUCCEEDS(h5_text_open(&source, &text));
	ck_assert_uint_eq(h5_text_size(text), 5 + 9);
	SUCCEEDS(h5_text_read(&source, text, 3, got, 6));
	ck_assert_mem_eq(got, "d\na\nb\n", 6);
	said(h5_text_read(&source, text, 3, got, 7), -EUCLEAN, "element 2: its length has changed");
	ck_assert_uint_eq(h5_error_last()->address, 7);
	SUCCEEDS(h5_text_read(&source, text, 5 + 7, got, 2));
	ck_assert_mem_eq(got, "d\n", 2);
	h5_text_close(text);
	h5_datatype_free(type);
}
END_TEST

/* Its elements may be fewer than before. */
START_TEST(a_text_with_fewer_elements)
{
	const uint64_t dim = 10;
	const uint64_t address = make(bytes_type(), 1, &dim, 0, "abcdefghij");
	const struct h5_dataspace fewer = {.kind = H5_SPACE_SIMPLE, .rank = 1, .elements = 5};
	struct h5_text_source source = {.form = &letters};
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	struct h5_text *text;
	char got[30];

	SUCCEEDS(h5_dataset_get(scratch.file, address, &ref, &dataset));
	source.address = address;
	source.dataset = dataset;
	source.type = dataset->type;
	source.space = &dataset->space;
	SUCCEEDS(h5_text_open(&source, &text));
	ck_assert_uint_eq(h5_text_size(text), 25);
	source.space = &fewer;
	SUCCEEDS(h5_text_read(&source, text, 0, got, 15));
	ck_assert_mem_eq(got, "head\na\nb\nc\nd\ne\n", 15);
	said(h5_text_read(&source, text, 0, got, 16), -EUCLEAN, "the text has changed");
	source.space = &dataset->space;
	SUCCEEDS(h5_text_read(&source, text, 0, got, 25));
	ck_assert_mem_eq(got + 15, "f\ng\nh\ni\nj\n", 10);
	h5_text_close(text);
	h5_file_put(scratch.file, ref);
}
END_TEST

/* As many bytes as a file may have, and one more; of elements that are stored, and of those that are not. */
START_TEST(texts_have_their_limit)
{
	static const uint8_t data[] = {0, 1};
	static const uint64_t dims[] = {(uint64_t)INT64_MAX - 5, UINT64_C(1) << 40};
	/* The last of these are 2^64 bytes. */
	static const uint64_t over[][2] = {{INT64_MAX - 5 - 1000, 1001},
					   {INT64_MAX - 5 - 999, 1000},
					   {INT64_MAX - 5, 1},
					   {UINT64_C(1) << 63, UINT64_C(1) << 63}};
	const struct h5_dataspace space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .elements = 2};
	struct h5_datatype *type = bytes_type();
	struct h5_text_source source = {
		.form = &measured, .address = 7, .type = type, .space = &space, .data = data};
	struct h5_text *text;

	lengths[0] = INT64_MAX - 5 - 1000;
	lengths[1] = 1000;
	SUCCEEDS(h5_text_open(&source, &text));
	ck_assert_uint_eq(h5_text_size(text), INT64_MAX);
	h5_text_close(text);
	for (unsigned i = 0; i < sizeof over / sizeof *over; i++) {
		lengths[0] = over[i][0];
		lengths[1] = over[i][1];
		said(h5_text_open(&source, &text), -EOVERFLOW, "text of more than 2^63-1 bytes");
	}
	h5_datatype_free(type);
	for (unsigned i = 0; i < 2; i++) {
		const uint64_t address = make(bytes_type(), 1, &dims[i], 1 << 30, NULL);
		const struct h5_dataset *dataset;
		struct h5_lru_entry *ref;

		SUCCEEDS(h5_dataset_get(scratch.file, address, &ref, &dataset));
		source = (struct h5_text_source){.form = &measured,
						 .address = address,
						 .type = dataset->type,
						 .space = &dataset->space,
						 .dataset = dataset};
		lengths[0] = i ? (1 << 23) - 1 : 1;
		SUCCEEDS(h5_text_open(&source, &text));
		ck_assert_uint_eq(h5_text_size(text), 5 + lengths[0] * dims[i]);
		h5_text_close(text);
		/* Also if their product, or the sum, has more than 64 bits. */
		for (unsigned bits = 1; bits < 64; bits++) {
			lengths[0] = (UINT64_C(1) << bits) - (bits < 4);
			if (i ? bits >= 23 : bits > 1)
				said(h5_text_open(&source, &text), -EOVERFLOW,
				     "text of more than 2^63-1 bytes");
		}
		h5_file_put(scratch.file, ref);
	}
}
END_TEST

/* ---- documents ---- */

static const char *document_text;

static int make_document(const struct h5_view *view, struct h5_buf *out)
{
	ck_assert_ptr_nonnull(view->file);
	h5_buf_text(out, document_text);
	return 0;
}

START_TEST(documents)
{
	static const struct h5_document kind = {H5_DOCUMENT_KIND("paper"), 10, make_document};
	const uint64_t dim = 1;
	struct h5_view v = {.file = scratch.file, .address = make(bytes_type(), 1, &dim, 0, "x"), .state = 5};
	char got[10];

	document_text = "0123456789a";
	said(h5_document_open(&v, &kind, 3), -ENOTSUP, "paper: its text is over 10 bytes");
	ck_assert_uint_eq(v.size, 0);
	document_text = "0123456789";
	SUCCEEDS(h5_document_open(&v, &kind, 3));
	ck_assert_uint_eq(v.size, 10);
	SUCCEEDS(h5_document_read(&v, &kind, 3, 2, got, 8));
	ck_assert_mem_eq(got, "23456789", 8);
	/* What is in the cache stays. */
	document_text = "abcdefghi";
	SUCCEEDS(h5_document_read(&v, &kind, 3, 2, got, 8));
	ck_assert_mem_eq(got, "23456789", 8);
	empty_caches();
	said(h5_document_read(&v, &kind, 3, 0, got, 1), -EUCLEAN, "its paper has changed");
	ck_assert_uint_eq(h5_error_last()->address, v.address);
	empty_caches();
	document_text = "abcdefghij";
	SUCCEEDS(h5_document_read(&v, &kind, 3, 0, got, 1));
	ck_assert_int_eq(got[0], 'a');
}
END_TEST

/* ---- pages ---- */

START_TEST(pages_that_are_not_there)
{
	static const char *const none[] = {"",
					   "1",
					   "0001",
					   "0001/0002",
					   "0001/0002.png/",
					   "0001/0003.png",
					   "0002/0000.png",
					   "0001/2.png",
					   "0001.0002.png",
					   "x",
					   "0001/0002.pngx"};
	struct h5_dataset dataset = {
		.space = {.kind = H5_SPACE_SIMPLE, .rank = 4, .dims = {2, 3, 4, 5}, .elements = 120},
		.size = 120};
	struct h5_view v = {.ops = &h5_view_png, .address = 9, .dataset = &dataset};
	uint64_t position = 0;
	struct h5_page page;
	char name[256];
	bool is_directory;

	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		v.part = none[i];
		said(h5_page_get(&v, 2, &page), -ENOENT, "no such page");
		ck_assert_uint_eq(h5_error_last()->address, 9);
	}
	v.part = NULL;
	said(h5_page_get(&v, 2, &page), -ENOENT, "no such page");
	v.part = "0001/0002.png";
	said(h5_page_get(&v, 0, &page), -ENOENT, "no such page");
	SUCCEEDS(h5_page_get(&v, 2, &page));
	ck_assert_uint_eq(page.first, 100);
	ck_assert_uint_eq(page.space.elements, 20);
	ck_assert_int_eq(h5_pages_next(&v, 2, &position, name, &is_directory), 0);
	v.part = "0002";
	ck_assert_int_eq(h5_pages_next(&v, 2, &position, name, &is_directory), -ENOENT);
	v.part = "0001";
	ck_assert_int_eq(h5_pages_next(&v, 2, &position, name, &is_directory), 1);
	ck_assert_str_eq(name, "0000.png");
	ck_assert(!is_directory);
	ck_assert_uint_eq(position, 1);
	/* A file of nothing begins nowhere. */
	dataset.space.dims[3] = dataset.space.elements = 0;
	v.part = "0001/0002.png";
	SUCCEEDS(h5_page_get(&v, 2, &page));
	ck_assert_uint_eq(page.first, 0);
}
END_TEST

/* ---- elements that are too large ---- */

static struct h5_datatype *spaces_type(uint32_t size)
{
	return h5_datatype_make_string(size, H5_PAD_SPACEPAD, H5_CHARSET_ASCII);
}

START_TEST(large_elements_have_no_plot)
{
	const uint64_t dim = 1, address = make(bytes_type(), 1, &dim, 0, "x");
	struct h5_datatype *type = h5_datatype_make_compound(H5_ELEMENT_MOST, 1);
	struct h5_dataset dataset = {.type = type, .space = {.kind = H5_SPACE_SIMPLE, .rank = 1}};
	struct h5_view v = {.file = scratch.file, .address = address, .dataset = &dataset};
	struct h5_lru_entry *ref;
	struct h5_plot plot;

	SUCCEEDS(h5_datatype_add_member(type, "x", 0, bytes_type()));
	SUCCEEDS(h5_object_get(scratch.file, address, &ref, &v.object));
	SUCCEEDS(h5_plot_make(&v, &plot));
	ck_assert_uint_eq(plot.count, 1);
	h5_plot_release(scratch.file, &plot);
	type->size++;
	said(h5_plot_make(&v, &plot), -EFBIG, "an element of 16777217 bytes");
	h5_plot_release(scratch.file, &plot);
	h5_file_put(scratch.file, ref);
	h5_datatype_free(type);
}
END_TEST

/* A string of four bytes, or an array of two of two, with a number on each side. */
static struct h5_datatype *padded_type(enum h5_string_padding padding, bool is_array)
{
	struct h5_datatype *type = h5_datatype_make_compound(6, 3),
			   *strings = h5_datatype_make_string(is_array ? 2 : 4, padding, H5_CHARSET_ASCII);

	if (is_array)
		strings = h5_datatype_make_array(1, (const uint64_t[]){2}, strings);
	SUCCEEDS(h5_datatype_add_member(type, "a", 0, bytes_type()));
	SUCCEEDS(h5_datatype_add_member(type, "s", 1, strings));
	SUCCEEDS(h5_datatype_add_member(type, "b", 5, bytes_type()));
	return type;
}

/* NumPy pads strings with zeros, wherever a read begins and ends. */
START_TEST(strings_get_another_padding)
{
	enum { SIZE = 18 };
	static const struct {
		enum h5_string_padding padding;
		bool is_array;
		const char *stored, *shown;
	} cases[] = {{H5_PAD_SPACEPAD, false, " x     y z   ab c ", " x\0\0\0  y z\0  ab c "},
		     {H5_PAD_SPACEPAD, true, " x     y z   ab c ", " x\0\0\0  y\0z\0  ab c "},
		     {H5_PAD_NULLTERM, false,
		      "0x\0yz12 \0 \0"
		      "34\0zzz5",
		      "0x\0\0\0"
		      "12 \0\0\0"
		      "34\0\0\0\0"
		      "5"},
		     {H5_PAD_NULLTERM, true,
		      "0x\0yz12 \0 \0"
		      "34\0zzz5",
		      "0x\0yz12 \0 \0"
		      "34\0\0zz5"},
		     {H5_PAD_NULLPAD, false,
		      "0x\0yz12 \0 \0"
		      "34\0zzz5",
		      "0x\0yz12 \0 \0"
		      "34\0zzz5"}};
	const uint64_t dim = 3;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_view v = {.ops = &h5_view_npy, .file = scratch.file};
		char got[SIZE];

		v.address =
			make(padded_type(cases[i].padding, cases[i].is_array), 1, &dim, 0, cases[i].stored);
		open_view(&v);
		ck_assert_uint_eq(v.size, v.head.size + SIZE);
		for (size_t at = 0; at < SIZE; at++)
			for (size_t n = 1; n <= SIZE - at; n++) {
				SUCCEEDS(h5_view_read(&v, v.head.size + at, got, n));
				ck_assert_msg(!memcmp(got, cases[i].shown + at, n), "%zu: %zu bytes at %zu",
					      i, n, at);
			}
		h5_view_release(&v);
	}
}
END_TEST

/* NumPy pads with zeros, so whole strings are read. */
START_TEST(large_strings_are_not_replaced)
{
	const uint64_t dim = 2;
	char got[3] = "???";

	for (uint32_t more = 0; more < 2; more++) {
		struct h5_view v = {.ops = &h5_view_npy, .file = scratch.file};

		v.address = make(spaces_type(H5_ELEMENT_MOST + more), 1, &dim, 0, NULL);
		open_view(&v);
		ck_assert_uint_eq(v.size, v.head.size + 2 * (H5_ELEMENT_MOST + more));
		if (more) {
			said(h5_view_read(&v, v.size - 3, got, 3), -EFBIG,
			     "npy: strings in an element of 16777217 bytes");
		} else {
			SUCCEEDS(h5_view_read(&v, v.size - 3, got, 3));
			ck_assert_mem_eq(got, "\0\0\0", 3);
		}
		h5_view_release(&v);
	}
}
END_TEST

/* ---- pictures and plots ---- */

/* The samples of the first numbers of a row of n. */
static void check_samples(struct h5_datatype *type, const void *numbers, uint64_t n, uint64_t first,
			  const uint8_t *expected)
{
	const uint64_t dims[] = {1, n};
	struct h5_view v = {.ops = &h5_view_png, .file = scratch.file, .state = 1};
	uint8_t got[20];

	v.address = make(type, 2, dims, 0, numbers);
	open_view(&v);
	/* Behind the length and type of IDAT, and the header of a stored block. */
	SUCCEEDS(h5_view_read(&v, v.head.size + 8 + 5, got, 1 + 2 * first));
	ck_assert_mem_eq(got, expected, 1 + 2 * first);
	h5_view_release(&v);
}

/* The finite numbers are all the same, or neighbours: there is nothing between black and white. */
START_TEST(pictures_without_tones)
{
	check_samples(h5_datatype_make_float(8, H5_ORDER_LE),
		      (const double[]){5, INFINITY, -INFINITY, NAN, 5}, 5, 5,
		      (const uint8_t[]){0, 0, 1, 0xff, 0xff, 0, 1, 0, 0, 0, 1});
	check_samples(h5_datatype_make_float(8, H5_ORDER_LE), (const double[]){5e-324, 0, 5e-324}, 3, 3,
		      (const uint8_t[]){0, 0xff, 0xff, 0, 1, 0xff, 0xff});
	/* Halves of these are all the same. */
	check_samples(h5_datatype_make_float(8, H5_ORDER_LE), (const double[]){1.5e-323, 2e-323, 2.5e-323}, 3,
		      3, (const uint8_t[]){0, 0, 1, 0xff, 0xff, 0xff, 0xff});
}
END_TEST

/* The least number is black, and the greatest white, wherever 0 is. */
START_TEST(pictures_of_integers)
{
	check_samples(h5_datatype_make_integer(2, false, H5_ORDER_LE), (const uint8_t[]){9, 0, 5, 0, 6, 0}, 3,
		      3, (const uint8_t[]){0, 0xff, 0xff, 0, 0, 0x40, 0});
	check_samples(h5_datatype_make_integer(2, true, H5_ORDER_LE),
		      (const uint8_t[]){0xfe, 0xff, 0xfa, 0xff, 0xfb, 0xff}, 3, 3,
		      (const uint8_t[]){0, 0xff, 0xff, 0, 0, 0x40, 0});
}
END_TEST

/* Two in a hundred are left out at each end: one of fifty, and of these no more. */
START_TEST(pictures_with_outliers)
{
	double numbers[51] = {-1e6, 1, 49, 1e6};

	for (unsigned i = 4; i < 51; i++)
		numbers[i] = i - 2;
	check_samples(h5_datatype_make_float(8, H5_ORDER_LE), numbers, 51, 4,
		      (const uint8_t[]){0, 0, 1, 0, 1, 0xff, 0xff, 0xff, 0xff});
}
END_TEST

/* The bytes of a picture that its chunks have, which are in order with their sums; free(). */
static uint8_t *unpack(const uint8_t *file, size_t size, unsigned long n)
{
	uint8_t *packed = malloc(size), *rows = malloc(n);
	unsigned long packed_size = 0, got = n;

	for (size_t at = 8; at < size;) {
		const uint32_t length = (uint32_t)file[at] << 24 | (uint32_t)file[at + 1] << 16 |
					(uint32_t)file[at + 2] << 8 | file[at + 3];
		const uint8_t *data = file + at + 8, *sum = data + length;

		ck_assert_uint_le(at + 12 + length, size);
		ck_assert_uint_eq(crc32(0, file + at + 4, length + 4),
				  (uint32_t)sum[0] << 24 | (uint32_t)sum[1] << 16 | (uint32_t)sum[2] << 8 |
					  sum[3]);
		if (!memcmp(file + at + 4, "IDAT", 4)) {
			memcpy(packed + packed_size, data, length);
			packed_size += length;
		}
		at += 12 + length;
	}
	ck_assert_int_eq(uncompress(rows, &got, packed, packed_size), Z_OK);
	ck_assert_uint_eq(got, n);
	free(packed);
	return rows;
}

/* In several blocks, with one sum. */
START_TEST(pictures_of_many_rows)
{
	enum { ROWS = 300, COLUMNS = 500 };
	const uint64_t dims[] = {ROWS, COLUMNS};
	struct h5_view v = {.ops = &h5_view_png, .file = scratch.file, .state = 1};
	uint8_t *numbers = malloc(ROWS * COLUMNS), *file, *rows;

	for (unsigned i = 0; i < ROWS * COLUMNS; i++)
		numbers[i] = (uint8_t)(i * 7 + i / 1000);
	v.address = make(h5_datatype_make_integer(1, false, H5_ORDER_LE), 2, dims, 0, numbers);
	open_view(&v);
	file = malloc((size_t)v.size);
	SUCCEEDS(h5_view_read(&v, 0, file, (size_t)v.size));
	rows = unpack(file, (size_t)v.size, ROWS * (1 + COLUMNS));
	for (size_t i = 0; i < ROWS; i++) {
		ck_assert_int_eq(rows[i * (1 + COLUMNS)], 0);
		ck_assert_mem_eq(rows + i * (1 + COLUMNS) + 1, numbers + i * COLUMNS, COLUMNS);
	}
	h5_view_release(&v);
	free(rows);
	free(file);
	free(numbers);
}
END_TEST

/* A lookup tells the size that the open page has. */
START_TEST(sizes_of_pages)
{
	const uint64_t dims[] = {2, 3, 7};
	struct h5_view v = {.ops = &h5_view_png, .file = scratch.file, .state = 1};
	uint64_t size = 0;
	bool is_directory;

	v.address = make(h5_datatype_make_integer(1, false, H5_ORDER_LE), 3, dims, 0, NULL);
	SUCCEEDS(h5_view_begin(&v, NULL));
	SUCCEEDS(h5_view_png.directory->find(&v, "0001.png", &is_directory, &size));
	ck_assert(!is_directory);
	h5_view_release(&v);
	v.part = "0001.png";
	open_view(&v);
	ck_assert_uint_eq(size, v.size);
	h5_view_release(&v);
}
END_TEST

START_TEST(colours_of_numbers)
{
	static const struct {
		enum h5_colours colours;
		double number;
		uint8_t colour[3];
	} cases[] = {{H5_COLOURS_GREY, 0, {0, 0, 0}},	      {H5_COLOURS_GREY, 0.2, {51, 51, 51}},
		     {H5_COLOURS_GREY, 1, {255, 255, 255}},   {H5_COLOURS_HEAT, 0, {0, 0, 0}},
		     {H5_COLOURS_HEAT, 0.2, {153, 0, 0}},     {H5_COLOURS_HEAT, 0.5, {255, 128, 0}},
		     {H5_COLOURS_HEAT, 0.8, {255, 255, 102}}, {H5_COLOURS_HEAT, 1, {255, 255, 255}},
		     {H5_COLOURS_HELIX, 0, {0, 0, 0}},	      {H5_COLOURS_HELIX, 1, {255, 255, 255}}};
	uint8_t colour[3];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		h5_colours_of(cases[i].colours, cases[i].number, colour);
		ck_assert_msg(!memcmp(colour, cases[i].colour, 3), "%zu: %u, %u, %u", i, colour[0], colour[1],
			      colour[2]);
	}
}
END_TEST

/* What cannot be read is left out. */
START_TEST(labels_of_nothing)
{
	const struct h5_view v = {.file = scratch.file};
	struct h5_buf out;

	h5_buf_init(&out, 100);
	SUCCEEDS(h5_plot_add_label(&v, 3, &out));
	ck_assert_uint_eq(out.size, 0);
	h5_buf_release(&out);
}
END_TEST

/* ---- Zarr ---- */

/* A dataset, begun as the view of that version. */
static void begin_zarr(struct h5_view *v, const struct h5_view_ops *ops, uint64_t address)
{
	static struct h5_view_tree tree;

	tree = (struct h5_view_tree){.file = scratch.file, .root = 96};
	*v = (struct h5_view){
		.ops = ops, .file = scratch.file, .address = address, .tree = &tree, .state = 1};
	SUCCEEDS(h5_view_begin(v, NULL));
}

START_TEST(names_of_chunks)
{
	static const struct {
		const char *path;
		int rc;	      /* of finding it */
		bool is_open; /* it is a file */
	} names[2][20] = {{{"0.0", 0, true},
			   {"1.1", 0, true},
			   {"0", -ENOENT, false},
			   {"0.", -ENOENT, false},
			   {"0.0.", -ENOENT, false},
			   {"0.0.0", -ENOENT, false},
			   {"0/0", -ENOENT, false},
			   {"0.2", -ENOENT, false},
			   {"2.0", -ENOENT, false},
			   {"00.0", -ENOENT, false},
			   {"0.18446744073709551616", -ENOENT, false},
			   {"c/0/0", -ENOENT, false},
			   {".0", -ENOENT, false},
			   {"", -ENOENT, false}},
			  {{"c/0/0", 0, true},
			   {"c/1/1", 0, true},
			   {"c", 0, false},
			   {"c/0", 0, false},
			   {"c/", -ENOENT, false},
			   {"c/0/", -ENOENT, false},
			   {"c/0/0/", -ENOENT, false},
			   {"c/0/0/0", -ENOENT, false},
			   {"c/0.0", -ENOENT, false},
			   {"c/2/0", -ENOENT, false},
			   {"c/0/2", -ENOENT, false},
			   {"c0/0", -ENOENT, false},
			   {"d/0/0", -ENOENT, false},
			   {"0.0", -ENOENT, false},
			   {"", -ENOENT, false}}};
	const uint64_t dims[] = {2, 2}, address = make(bytes_type(), 2, dims, 1, "abcd");

	for (unsigned three = 0; three < 2; three++)
		for (size_t i = 0; names[three][i].path; i++) {
			struct h5_view v;
			uint64_t size;
			bool is_directory;
			int rc;

			begin_zarr(&v, three ? &h5_view_zarr3 : &h5_view_zarr, address);
			SUCCEEDS(h5_view_complete(&v));
			rc = v.ops->directory->find(&v, names[three][i].path, &is_directory, &size);
			ck_assert_msg(rc == names[three][i].rc, "%s: %d", names[three][i].path, rc);
			ck_assert(rc || is_directory != names[three][i].is_open);
			v.part = names[three][i].path;
			rc = h5_view_open(&v, true);
			ck_assert_msg(rc == (names[three][i].is_open ? 0 : -ENOENT), "%s: %d",
				      names[three][i].path, rc);
			ck_assert_uint_eq(v.size, rc ? 0 : 1);
			h5_view_release(&v);
		}
}
END_TEST

/* Those of the dataset and those of its type. */
START_TEST(arrays_have_32_dimensions_at_most)
{
	static const struct h5_layout_ops layout = {.name = "contiguous"};
	static const uint64_t ones[] = {1, 1};
	struct h5_datatype *type = h5_datatype_make_array(2, ones, bytes_type());
	struct h5_dataset dataset = {.ops = &layout,
				     .type = type,
				     .space = {.kind = H5_SPACE_SIMPLE, .rank = 30, .elements = 1},
				     .size = 1};
	struct h5_zarr_array array;

	for (unsigned i = 0; i < H5_RANK_MAX; i++)
		dataset.space.dims[i] = 1;
	SUCCEEDS(h5_zarr_array_init(&array, H5_ZARR_V2, &dataset));
	ck_assert_uint_eq(array.rank, 32);
	dataset.space.rank = 31;
	ck_assert_int_eq(h5_zarr_array_init(&array, H5_ZARR_V2, &dataset), -ENOENT);
	h5_datatype_free(type);
}
END_TEST

/* An array stays as it is if it cannot be longer. */
START_TEST(arrays_that_cannot_be_longer)
{
	static uint64_t longer[H5_RANK_MAX];
	struct h5_datatype *type = bytes_type();
	struct h5_dataset dataset = {.type = type,
				     .space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .dims = {5}},
				     .pipeline = {.count = 1, .filters = {{.id = 40000}}}};
	struct h5_zarr_array a = {.dataset = &dataset,
				  .rank = 1,
				  .shape = {5},
				  .chunk = {1},
				  .grid = {5},
				  .chunks = 5,
				  .chunk_bytes = 1};

	longer[0] = 7;
	SUCCEEDS(h5_zarr_array_extend(&a, longer)); /* it is not chunked */
	ck_assert(a.shape[0] == 5 && !a.is_extended);
	a.is_chunked = true;
	longer[0] = H5_ZARR_CHUNKS_MAX + 1;
	SUCCEEDS(h5_zarr_array_extend(&a, longer));
	ck_assert(a.shape[0] == 5 && !a.is_extended && a.chunks == 5);
	longer[0] = 4;
	SUCCEEDS(h5_zarr_array_extend(&a, longer));
	ck_assert(a.shape[0] == 5 && !a.is_extended && a.chunks == 5);
	longer[0] = H5_ZARR_CHUNKS_MAX;
	SUCCEEDS(h5_zarr_array_extend(&a, longer));
	ck_assert(a.shape[0] == longer[0] && a.is_extended && a.chunks == longer[0]);
	/* Nobody can encode a chunk anew. That is wanted of one that is cut alone. */
	a.shape[0] = 5;
	a.is_extended = false;
	a.chunk[0] = 5;
	a.grid[0] = a.chunks = 1;
	a.codecs = 1;
	longer[0] = 7;
	SUCCEEDS(h5_zarr_array_extend(&a, longer));
	ck_assert(a.shape[0] == 7 && a.is_extended && a.chunks == 2);
	a.shape[0] = 5;
	a.is_extended = false;
	a.chunk[0] = 2;
	a.grid[0] = a.chunks = 3;
	SUCCEEDS(h5_zarr_array_extend(&a, longer));
	ck_assert(a.shape[0] == 5 && !a.is_extended && a.chunks == 3);
	a.codecs = 0;
	SUCCEEDS(h5_zarr_array_extend(&a, longer));
	ck_assert(a.shape[0] == 7 && a.is_extended && a.chunks == 4);
	h5_datatype_free(type);
}
END_TEST

START_TEST(chunks_beyond_any_file)
{
	struct h5_zarr_array array = {.rank = 1};
	struct h5_zarr_chunk chunk = {.source = H5_ZARR_STORED, .size = 10};
	uint8_t byte;

	chunk.stored.wanted.chunk.address = UINT64_MAX - 4;
	said(h5_zarr_chunk_read(&array, &chunk, 5, &byte, 1), -EUCLEAN, "chunk: it reaches beyond any file");
	ck_assert_uint_eq(h5_error_last()->address, UINT64_MAX - 4);
}
END_TEST

/* Another program that writes has made the dataset longer, or shorter, since the state was asked for. */
START_TEST(an_array_with_another_shape)
{
	const uint64_t dims[] = {4, 4}, address = make(bytes_type(), 2, dims, 2, "abcdefghijklmnop");
	struct h5_zarr_array array;
	struct h5_dataset other;
	struct h5_view v;

	begin_zarr(&v, &h5_view_zarr, address);
	SUCCEEDS(h5_view_complete(&v));
	SUCCEEDS(h5_zarr_array_get(&v, H5_ZARR_V2, &array));
	ck_assert_uint_eq(array.shape[1], 4);
	ck_assert_uint_eq(array.chunks, 4);
	other = *v.dataset;
	other.space.dims[1] = 7;
	v.dataset = &other;
	SUCCEEDS(h5_zarr_array_get(&v, H5_ZARR_V2, &array));
	ck_assert_ptr_eq(array.dataset, &other);
	ck_assert_uint_eq(array.shape[1], 7);
	ck_assert_uint_eq(array.chunks, 8);
	other.space.dims[1] = 4;
	other.space.rank = 1;
	SUCCEEDS(h5_zarr_array_get(&v, H5_ZARR_V2, &array));
	ck_assert_uint_eq(array.rank, 1);
	ck_assert_uint_eq(array.chunks, 2);
	h5_view_release(&v);
}
END_TEST

UNIT_MAIN_AROUND("view parts", setup, teardown, a_text_with_another_length, a_text_with_fewer_elements,
		 texts_have_their_limit, documents, pages_that_are_not_there, large_elements_have_no_plot,
		 strings_get_another_padding, large_strings_are_not_replaced, pictures_without_tones,
		 pictures_of_integers, pictures_with_outliers, colours_of_numbers, pictures_of_many_rows,
		 sizes_of_pages, labels_of_nothing, names_of_chunks, arrays_have_32_dimensions_at_most,
		 arrays_that_cannot_be_longer, chunks_beyond_any_file, an_array_with_another_shape)
