/* Arrays of the views npy and zarr: headers, types that stay, and bytes of chunks that lie across an edge. */
#include "change/transaction.h"
#include "config.h"
#include "dataset/create.h"
#include "dataset/writer.h"
#include "format/datatype_make.h"
#include "scratch.h"
#include "view/intake.h"
#include "view/npy_header.h"
#include "view/strings.h"
#include "view/zarr_array.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

static void begin(struct scratch *scratch)
{
	scratch_init(scratch, "header_create-latest.h5");
	scratch_open(scratch);
}

static void finish(struct scratch *scratch)
{
	SUCCEEDS(h5_tx_commit(scratch->file));
	h5_dataset_writers_close(scratch->file);
	scratch_release(scratch);
}

/* ---- headers of NPY ---- */

static void check_header(const char *text, size_t n, unsigned version)
{
	const size_t before = version == 1 ? 10 : 12;
	struct h5_buf dictionary, head;
	size_t size;

	h5_buf_init(&dictionary, SIZE_MAX);
	h5_buf_add(&dictionary, text, n);
	h5_npy_header_make(&dictionary, &head);
	ck_assert_int_eq(head.err, 0);
	ck_assert_uint_eq(head.size % 64, 0);
	ck_assert_msg(head.size > before + n && head.size <= before + n + 64, "%zu: %zu", n, head.size);
	ck_assert_int_eq(head.data[6], (int)version);
	ck_assert_int_eq(head.data[7], 0);
	SUCCEEDS(h5_npy_header_size((const uint8_t *)head.data, head.size, &size));
	ck_assert_uint_eq(size, head.size);
	ck_assert(!n || !memcmp(head.data + before, text, n));
	for (size_t i = before + n; i < size - 1; i++)
		ck_assert_int_eq(head.data[i], ' ');
	ck_assert_int_eq(head.data[size - 1], '\n');
	h5_buf_release(&head);
	h5_buf_release(&dictionary);
}

/* No more spaces than are needed, and the lowest version. */
START_TEST(headers_end_at_a_multiple_of_64)
{
	const size_t most = UINT16_MAX - 64;
	char *text = malloc(most + 1);

	memset(text, 127, most + 1);
	for (size_t n = 0; n < 200; n++)
		check_header(text, n, 1);
	check_header(text, most, 1);
	check_header(text, most + 1, 2);
	text[0] = (char)128;
	check_header(text, 100, 3);
	text[0] = 'x';
	text[99] = (char)255;
	check_header(text, 100, 3);
	free(text);
}
END_TEST

/* ---- the type of a dataset that an NPY file replaces ---- */

enum place { ALONE, IN_ARRAY, FIRST, LAST, IN_ARRAY_OF_MEMBER };

static struct h5_datatype *type_with(enum place place, enum h5_string_padding padding)
{
	struct h5_datatype *type = h5_datatype_make_string(4, padding, H5_CHARSET_UTF8), *whole;

	if (place == ALONE)
		return type;
	if (place == IN_ARRAY || place == IN_ARRAY_OF_MEMBER)
		type = h5_datatype_make_array(1, (uint64_t[]){1}, type);
	if (place == IN_ARRAY)
		return type;
	whole = h5_datatype_make_compound(5, 2);
	if (place == FIRST)
		SUCCEEDS(h5_datatype_add_member(whole, "s", 0, type));
	SUCCEEDS(h5_datatype_add_member(whole, "n", place == FIRST ? 4 : 0,
					h5_datatype_make_integer(1, false, H5_ORDER_LE)));
	if (place != FIRST)
		SUCCEEDS(h5_datatype_add_member(whole, "s", 1, type));
	return whole;
}

static const struct h5_datatype *string_in(const struct h5_datatype *type)
{
	if (type->class == H5_CLASS_COMPOUND)
		type = type->compound.members[type->compound.members[0].type->size == 1].type;
	return type->class == H5_CLASS_ARRAY ? type->array.base : type;
}

static void replace(struct scratch *scratch, enum place place, enum h5_string_padding padding)
{
	static const char *const files[] = {
		"{'descr': '|S4', 'fortran_order': False, 'shape': (1,)}",
		"{'descr': '|S4', 'fortran_order': False, 'shape': (1, 1)}",
		"{'descr': [('s', '|S4'), ('n', '|u1')], 'fortran_order': False, 'shape': (1,)}",
		"{'descr': [('n', '|u1'), ('s', '|S4')], 'fortran_order': False, 'shape': (1,)}",
		"{'descr': [('n', '|u1'), ('s', '|S4', (1,))], 'fortran_order': False, 'shape': (1,)}"};
	struct h5_new_dataset how = {.type = type_with(place, padding),
				     .space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .dims = {1}, .max = {1}},
				     .layout = H5_LAYOUT_CONTIGUOUS};
	struct h5_intake intake = {.ops = &h5_intake_npy, .file = scratch->file, .gather = 1 << 20};
	const struct h5_dataset *dataset;
	const struct h5_datatype *string;
	struct h5_lru_entry *ref;
	char head[10] = "\x93NUMPY\1\0";

	SUCCEEDS(h5_dataset_create(scratch->file, &how, &intake.target));
	h5_datatype_free((struct h5_datatype *)(uintptr_t)how.type);
	head[8] = (char)strlen(files[place]);
	SUCCEEDS(h5_intake_begin(&intake));
	SUCCEEDS(h5_intake_take(&intake, head, sizeof head));
	SUCCEEDS(h5_intake_take(&intake, files[place], strlen(files[place])));
	SUCCEEDS(h5_intake_take(&intake, "abcde", place == ALONE || place == IN_ARRAY ? 4 : 5));
	SUCCEEDS(h5_intake_finish(&intake));
	SUCCEEDS(h5_dataset_get(scratch->file, intake.dataset, &ref, &dataset));
	string = string_in(dataset->type);
	ck_assert_int_eq(string->class, H5_CLASS_STRING);
	/* What NumPy writes makes strings of ASCII that are padded with zeros. */
	ck_assert_msg(string->string.padding == (padding == H5_PAD_SPACEPAD ? H5_PAD_NULLPAD : padding),
		      "place %d, padding %d: %d", (int)place, (int)padding, (int)string->string.padding);
	ck_assert_int_eq(string->string.charset,
			 padding == H5_PAD_SPACEPAD ? H5_CHARSET_ASCII : H5_CHARSET_UTF8);
	h5_file_put(scratch->file, ref);
	h5_intake_end(&intake);
}

/* With spaces behind them strings would end in NULs and spaces. */
START_TEST(strings_with_spaces_do_not_stay)
{
	static const enum h5_string_padding all[] = {H5_PAD_NULLTERM, H5_PAD_NULLPAD, H5_PAD_SPACEPAD};
	struct scratch scratch;

	begin(&scratch);
	for (enum place place = ALONE; place <= IN_ARRAY_OF_MEMBER; place++)
		for (unsigned i = 0; i < 3; i++)
			replace(&scratch, place, all[i]);
	finish(&scratch);
}
END_TEST

/* Those that NumPy pads in the same way have none. */
START_TEST(types_with_padding)
{
	for (enum place place = ALONE; place <= IN_ARRAY_OF_MEMBER; place++)
		for (enum h5_string_padding padding = H5_PAD_NULLTERM; padding <= H5_PAD_SPACEPAD;
		     padding++) {
			struct h5_datatype *type = type_with(place, padding);

			ck_assert_int_eq(h5_strings_have_padding(type), padding != H5_PAD_NULLPAD);
			/* NULs that end them have no room. */
			((struct h5_datatype *)(uintptr_t)string_in(type))->size = 1;
			ck_assert_int_eq(h5_strings_have_padding(type), padding == H5_PAD_SPACEPAD);
			h5_datatype_free(type);
		}
}
END_TEST

/* ---- how what comes in is laid out ---- */

/* It can grow, if it has a dimension and there are chunks for it. */
START_TEST(layouts)
{
	static const struct {
		unsigned rank;
		uint64_t dims[2];
		enum h5_layout_class layout;
		uint64_t most;
		unsigned filters;
	} all[] = {{0, {0}, H5_LAYOUT_CONTIGUOUS, 0, 0},
		   {1, {5}, H5_LAYOUT_CHUNKED, H5_UNLIMITED, 1},
		   {1, {0}, H5_LAYOUT_CHUNKED, H5_UNLIMITED, 1},
		   {2, {5, 3}, H5_LAYOUT_CHUNKED, H5_UNLIMITED, 1},
		   {2, {5, 0}, H5_LAYOUT_CONTIGUOUS, 5, 0}};
	const struct h5_intake intake = {.filters = {.count = 1, .filters = {{.id = 1}}}};
	struct h5_datatype *type = h5_datatype_make_integer(1, false, H5_ORDER_LE);

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		struct h5_new_dataset how = {.type = type,
					     .space = {.kind = H5_SPACE_SIMPLE, .rank = all[i].rank},
					     .layout = H5_LAYOUT_COMPACT};

		memcpy(how.space.dims, all[i].dims, sizeof all[i].dims);
		memcpy(how.space.max, all[i].dims, sizeof all[i].dims);
		h5_intake_choose(&intake, &how);
		ck_assert_msg(how.layout == all[i].layout && how.space.max[0] == all[i].most &&
				      how.filters.count == all[i].filters,
			      "%zu: %d, %ju, %u", i, (int)how.layout, (uintmax_t)how.space.max[0],
			      how.filters.count);
		ck_assert(how.layout != H5_LAYOUT_CHUNKED ||
			  (how.chunk[0] && how.filters.filters[0].id == 1));
	}
	h5_datatype_free(type);
}
END_TEST

/* ---- chunks of Zarr ---- */

/* In all dimensions that there may be: what lies behind the arrays of them is no dimension. */
START_TEST(cut_chunks_of_many_dimensions)
{
	struct h5_dataset dataset = {.space = {.kind = H5_SPACE_SIMPLE, .rank = H5_RANK_MAX, .elements = 1}};
	struct h5_zarr_array array = {.dataset = &dataset, .rank = H5_RANK_MAX, .is_extended = true};

	for (unsigned d = 0; d < H5_RANK_MAX; d++) {
		dataset.space.dims[d] = dataset.space.max[d] = 1;
		array.shape[d] = array.chunk[d] = array.grid[d] = 1;
	}
	dataset.space.dims[1] = dataset.space.max[1] = array.shape[1] = array.grid[1] = 2;
	dataset.space.max[0] = 3;
	array.shape[0] = 200;
	array.chunk[0] = 100;
	array.grid[0] = 2;
	ck_assert_uint_eq(h5_zarr_array_cut_chunks(&array), 2);
	array.shape[H5_RANK_MAX - 1] = 2;
	array.chunk[H5_RANK_MAX - 1] = 2;
	ck_assert_uint_eq(h5_zarr_array_cut_chunks(&array), 4);
}
END_TEST

enum { SIZE = 3, ROWS = 5, COLUMNS = 4 };

static const uint8_t fill[SIZE] = {201, 202, 203};

/* Any bytes of any chunk of rows, of which the last one has rows behind the dataset's end. */
static void check_chunks(struct h5_zarr_array *a, uint64_t rows, const uint8_t data[ROWS * COLUMNS * SIZE])
{
	const size_t size = rows * COLUMNS * SIZE;
	uint8_t expected[ROWS * COLUMNS * SIZE], got[ROWS * COLUMNS * SIZE];

	a->chunk[0] = rows;
	a->grid[0] = a->chunks = (ROWS + rows - 1) / rows;
	a->chunk_bytes = size;
	for (uint64_t number = 0; number < a->chunks; number++) {
		struct h5_zarr_chunk chunk;

		for (size_t i = 0; i < size; i++)
			expected[i] = number * size + i < ROWS * COLUMNS * SIZE ? data[number * size + i]
										: fill[i % SIZE];
		SUCCEEDS(h5_zarr_chunk_find(a, NULL, number, &chunk));
		ck_assert_int_eq(chunk.source, H5_ZARR_ROWS);
		ck_assert_uint_eq(chunk.size, size);
		for (size_t at = 0; at < size; at++)
			for (size_t n = 1; n <= size - at; n++) {
				memset(got, 0, sizeof got);
				SUCCEEDS(h5_zarr_chunk_read(a, &chunk, at, got, n));
				ck_assert_msg(!memcmp(got, expected + at, n),
					      "rows %ju, chunk %ju, %zu bytes at %zu", (uintmax_t)rows,
					      (uintmax_t)number, n, at);
			}
	}
}

START_TEST(rows_behind_the_end_are_the_fill_value)
{
	struct h5_new_dataset how = {.type = h5_datatype_make_opaque(SIZE, ""),
				     .space = {.kind = H5_SPACE_SIMPLE,
					       .rank = 2,
					       .dims = {ROWS, COLUMNS},
					       .max = {ROWS, COLUMNS}},
				     .layout = H5_LAYOUT_CONTIGUOUS,
				     .fill = fill};
	uint8_t data[ROWS * COLUMNS * SIZE];
	struct h5_dataset_writer *writer;
	const struct h5_dataset *dataset;
	struct h5_zarr_array array;
	struct h5_lru_entry *ref;
	struct scratch scratch;
	uint64_t address;

	for (unsigned i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(1 + i);
	begin(&scratch);
	SUCCEEDS(h5_dataset_create(scratch.file, &how, &address));
	h5_datatype_free((struct h5_datatype *)(uintptr_t)how.type);
	SUCCEEDS(h5_dataset_writer_get(scratch.file, address, false, &writer));
	SUCCEEDS(h5_dataset_writer_write(writer, 0, data, sizeof data));
	SUCCEEDS(h5_dataset_writer_settle(writer));
	h5_dataset_writer_put(writer);
	SUCCEEDS(h5_tx_commit(scratch.file));
	SUCCEEDS(h5_dataset_get(scratch.file, address, &ref, &dataset));
	SUCCEEDS(h5_zarr_array_init(&array, H5_ZARR_V2, dataset));
	ck_assert_uint_eq(array.chunks, 1);
	for (uint64_t rows = 1; rows <= ROWS; rows++)
		check_chunks(&array, rows, data);
	h5_file_put(scratch.file, ref);
	finish(&scratch);
}
END_TEST

/* ---- how arrays are cut into chunks ---- */

static const struct h5_layout_ops contiguous = {.name = "contiguous"},
				  chunked = {.name = "chunked", .has_chunks = true};

/* An array of opaque elements, which are not stored. No chunks: it is contiguous. The type is the array's. */
struct paper {
	struct h5_dataset dataset;
	struct h5_zarr_array array;
};

static void draw(struct paper *p, unsigned size, unsigned rank, const uint64_t *shape, const uint64_t *chunk)
{
	*p = (struct paper){.dataset = {.ops = chunk ? &chunked : &contiguous,
					.type = h5_datatype_make_opaque(size, ""),
					.space = {.kind = H5_SPACE_SIMPLE, .rank = rank},
					.size = 1}};
	memcpy(p->dataset.space.dims, shape, rank * sizeof *shape);
	memcpy(p->dataset.space.max, shape, rank * sizeof *shape);
	if (chunk)
		memcpy(p->dataset.layout.chunked.dims, chunk, rank * sizeof *chunk);
	SUCCEEDS(h5_zarr_array_init(&p->array, H5_ZARR_V2, &p->dataset));
}

static void assert_chunks(const struct paper *p, const uint64_t *chunk, const char *what, size_t i)
{
	const struct h5_zarr_array *a = &p->array;
	uint64_t chunks = 1, bytes = p->dataset.type->size;

	for (unsigned d = 0; d < a->rank; d++) {
		ck_assert_msg(a->chunk[d] == chunk[d], "%s %zu, dimension %u: %ju, not %ju", what, i, d,
			      (uintmax_t)a->chunk[d], (uintmax_t)chunk[d]);
		ck_assert_uint_eq(a->grid[d], (a->shape[d] + chunk[d] - 1) / chunk[d]);
		chunks *= a->grid[d];
		bytes *= chunk[d];
	}
	ck_assert_uint_eq(a->chunks, chunks);
	ck_assert_uint_eq(a->chunk_bytes, bytes);
}

static void erase(struct paper *p)
{
	h5_datatype_free(p->dataset.type);
}

enum { MIB = 1 << 20 };

/* About 1 MiB of what is not chunked: whole rows, if one fits, and at least an element. */
START_TEST(chunks_of_rows)
{
	static const struct {
		unsigned size, rank;
		uint64_t shape[3], chunk[3];
	} all[] = {{1, 1, {10}, {10}},
		   {1, 1, {MIB}, {MIB}},
		   {1, 1, {MIB + 1}, {MIB}},
		   {3, 1, {MIB}, {MIB / 3}},
		   {MIB, 1, {3}, {1}},
		   {2 * MIB, 1, {3}, {1}},
		   {1, 2, {3, MIB / 2}, {2, MIB / 2}},
		   {1, 2, {3, MIB / 2 + 1}, {1, MIB / 2 + 1}},
		   {4, 2, {3, MIB}, {1, MIB / 4}},
		   {1, 3, {2, 3, MIB / 2}, {1, 2, MIB / 2}},
		   {1, 3, {2, 2, MIB / 2}, {1, 2, MIB / 2}},
		   {1, 3, {2, 2, MIB / 4}, {2, 2, MIB / 4}},
		   {1, 3, {5, 1, MIB + 1}, {1, 1, MIB}},
		   {1, 2, {0, 4}, {1, 4}},
		   {1, 2, {4, 0}, {4, 1}}};
	struct paper p;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		draw(&p, all[i].size, all[i].rank, all[i].shape, NULL);
		ck_assert(!p.array.is_chunked && !p.array.is_passed);
		assert_chunks(&p, all[i].chunk, "array", i);
		erase(&p);
	}
}
END_TEST

/* What is decoded has chunks of whole rows of about 1 MiB, each of which has whole chunks of the dataset. */
START_TEST(small_chunks_are_joined)
{
	static const struct {
		unsigned size, rank;
		uint64_t shape[3], stored[3], chunk[3];
	} all[] = {{1, 1, {10}, {3}, {10}},
		   {1, 1, {MIB}, {65535}, {MIB}},
		   {1, 1, {2 * MIB}, {1000}, {1048000}},
		   {1, 2, {4, 4}, {1, 4}, {4, 4}},
		   {2, 2, {4, 4}, {5, 5}, {4, 4}},
		   {1, 2, {4096, 4096}, {7, 1000}, {252, 4096}},
		   {1, 2, {4096, 4096}, {300, 100}, {300, 4096}},
		   {1, 2, {257, 4096}, {300, 100}, {257, 4096}},
		   {1, 3, {10, 4096, 4096}, {1, 16, 16}, {1, 256, 4096}},
		   {1, 3, {10, 4096, 4096}, {1, 1, 16}, {1, 256, 4096}},
		   {1, 2, {4, 8 * MIB}, {1, 1000}, {1, 1048000}},
		   {1, 2, {100, MIB}, {8, 100}, {8, MIB}},
		   {1, 2, {MIB, MIB}, {1, 100}, {1, MIB}}};
	struct paper p;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		draw(&p, all[i].size, all[i].rank, all[i].shape, all[i].stored);
		ck_assert(p.array.is_chunked);
		assert_chunks(&p, all[i].stored, "stored", i);
		h5_zarr_array_decode(&p.array);
		h5_zarr_array_join(&p.array);
		ck_assert_msg(!p.array.is_chunked, "array %zu", i);
		assert_chunks(&p, all[i].chunk, "joined", i);
		erase(&p);
	}
}
END_TEST

START_TEST(chunks_that_stay)
{
	static const struct {
		unsigned rank;
		uint64_t shape[3], stored[3];
	} all[] = {{1, {MIB}, {65536}},		 /* they are large enough */
		   {2, {100, MIB}, {9, 100}},	 /* a row of them is too long */
		   {2, {4, 8 * MIB}, {2, 1000}}, /* cut before a row of them ends */
		   {3, {10, 4096, 4096}, {2, 16, 16}},
		   {2, {MIB + 1, MIB}, {1, 100}}}; /* too many */
	static const uint64_t shape[] = {10}, stored[] = {3};
	struct h5_zarr_array before;
	struct paper p;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		draw(&p, 1, all[i].rank, all[i].shape, all[i].stored);
		h5_zarr_array_decode(&p.array);
		before = p.array;
		h5_zarr_array_join(&p.array);
		ck_assert_msg(!memcmp(&before, &p.array, sizeof before), "array %zu", i);
		erase(&p);
	}
	/* Those that are passed on as they are stored, or extended, and chunks of rows. */
	for (int i = 0; i < 3; i++) {
		draw(&p, 1, 1, shape, stored);
		p.array.is_passed = i == 0;
		p.array.is_extended = i == 1;
		p.array.is_chunked = i != 2;
		before = p.array;
		h5_zarr_array_join(&p.array);
		ck_assert_msg(!memcmp(&before, &p.array, sizeof before), "state %d", i);
		erase(&p);
	}
}
END_TEST

/* All chunks are of the same size: the last one may reach far behind the elements. */
START_TEST(chunks_that_reach_behind_the_room)
{
	static const struct {
		unsigned size, rank;
		uint64_t shape[3], chunk[3], end;
	} all[] = {{1, 1, {10}, {10}, 10},
		   {1, 1, {MIB + 1}, {MIB}, 2 * MIB},
		   {1, 2, {3, MIB / 2}, {2, MIB / 2}, 2 * MIB},
		   {4, 2, {3, MIB / 8}, {2, MIB / 8}, 2 * MIB},
		   {1, 2, {2, MIB + 1}, {1, MIB}, 3 * MIB + 1},
		   {2, 2, {2, MIB / 2 + 1}, {1, MIB / 2}, 3 * MIB + 2},
		   {1, 3, {2, 3, MIB / 2}, {1, 2, MIB / 2}, (2 + 3) * MIB / 2 + MIB},
		   {1, 3, {2, 2, MIB + 1}, {1, 1, MIB}, (1 + 2) * (MIB + 1) + MIB + MIB}};
	struct paper p;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		draw(&p, all[i].size, all[i].rank, all[i].shape, NULL);
		h5_zarr_array_fit(&p.array, all[i].end);
		assert_chunks(&p, all[i].chunk, "fitting", i);
		h5_zarr_array_fit(&p.array, all[i].end - 1);
		assert_chunks(&p, all[i].shape, "one chunk", i);
		ck_assert_uint_eq(p.array.chunks, 1);
		erase(&p);
	}
}
END_TEST

/* Without a look at what is stored. */
START_TEST(arrays_that_are_complete)
{
	static const uint64_t shape[] = {MIB + 1}, chunk[] = {1};
	struct paper p;
	bool complete = false;

	draw(&p, 1, 1, shape, NULL);
	p.dataset.layout.class = H5_LAYOUT_COMPACT;
	p.dataset.layout.contiguous.address = H5_UNDEF;
	SUCCEEDS(h5_zarr_is_complete(&p.array, &complete));
	ck_assert(complete);
	p.dataset.layout.class = H5_LAYOUT_CONTIGUOUS;
	SUCCEEDS(h5_zarr_is_complete(&p.array, &complete));
	ck_assert(!complete);
	p.dataset.external = true;
	SUCCEEDS(h5_zarr_is_complete(&p.array, &complete));
	ck_assert(complete);
	p.dataset.external = false;
	p.dataset.layout.contiguous.address = 5;
	SUCCEEDS(h5_zarr_is_complete(&p.array, &complete));
	ck_assert(complete);
	erase(&p);
	/* So many are not looked at. */
	draw(&p, 1, 1, shape, chunk);
	p.array.is_filled = true;
	SUCCEEDS(h5_zarr_is_complete(&p.array, &complete));
	ck_assert(!complete);
	p.array.chunks--;
	SUCCEEDS(h5_zarr_is_complete(&p.array, &complete));
	ck_assert(complete);
	erase(&p);
}
END_TEST

/* Stored chunks are passed on if readers of Zarr know what was done with them. */
START_TEST(filters_that_zarr_has)
{
	enum { DEFLATE = 1, SHUFFLE, FLETCHER32, BZIP2 = 307, BLOSC = 32001, ZSTD = 32015, OTHER = 40000 };
	static uint32_t four[] = {4}, zero[] = {0}, five[] = {5}, blosc[7] = {[6] = 5},
			blosc_later[7] = {[6] = 6};
	static const struct {
		struct h5_filter_info filters[3];
		bool is_passed, has_checksum;
		unsigned codecs;
	} all[] = {{{{0}}, true, false, 0},
		   {{{.id = DEFLATE}}, true, false, 1},
		   {{{.id = BZIP2}}, true, false, 1},
		   {{{.id = ZSTD}}, true, false, 1},
		   {{{.id = OTHER}}, false, false, 0},
		   {{{.id = FLETCHER32}}, true, true, 0},
		   {{{.id = DEFLATE}, {.id = FLETCHER32}}, true, true, 1},
		   {{{.id = FLETCHER32}, {.id = DEFLATE}}, false, false, 0},
		   {{{.id = OTHER}, {.id = DEFLATE}}, false, false, 0},
		   {{{.id = OTHER}, {.id = FLETCHER32}}, false, false, 0},
		   {{{.id = DEFLATE}, {.id = OTHER}}, false, false, 0},
		   {{{.id = SHUFFLE, .count = 1, .values = four}}, true, false, 1},
		   {{{.id = SHUFFLE, .count = 1, .values = four}, {.id = ZSTD}, {.id = FLETCHER32}},
		    true,
		    true,
		    2},
		   {{{.id = SHUFFLE, .count = 1, .values = zero}}, false, false, 0},
		   {{{.id = SHUFFLE, .count = 1, .values = five}}, false, false, 0},
		   {{{.id = SHUFFLE}}, false, false, 0},
		   {{{.id = DEFLATE}, {.id = SHUFFLE, .count = 1, .values = four}}, false, false, 0},
		   {{{.id = BLOSC, .count = 7, .values = blosc}}, true, false, 1},
		   {{{.id = BLOSC, .count = 7, .values = blosc_later}}, false, false, 0},
		   {{{.id = BLOSC, .count = 6, .values = blosc_later}}, true, false, 1}};
	static const uint64_t shape[] = {24}, chunk[] = {12};
	struct paper p;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		struct h5_pipeline *pipeline = &p.dataset.pipeline;

		draw(&p, 1, 1, shape, chunk);
		memcpy(pipeline->filters, all[i].filters, sizeof all[i].filters);
		while (pipeline->count < 3 && pipeline->filters[pipeline->count].id)
			pipeline->count++;
		SUCCEEDS(h5_zarr_array_init(&p.array, H5_ZARR_V2, &p.dataset));
		ck_assert_msg(p.array.is_passed == all[i].is_passed &&
				      p.array.has_checksum == all[i].has_checksum &&
				      p.array.codecs == all[i].codecs,
			      "pipeline %zu: %d, %d, %u", i, p.array.is_passed, p.array.has_checksum,
			      p.array.codecs);
		erase(&p);
	}
}
END_TEST

/* ---- stored chunks ---- */

enum { CHUNK = 1024 };

/* The first chunk cannot be compressed, the second one can be; the third one is not stored. */
static uint64_t make_chunks(struct scratch *at, const char *filters, uint8_t data[3 * CHUNK])
{
	struct h5_new_dataset how = {
		.type = h5_datatype_make_integer(1, false, H5_ORDER_LE),
		.space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .dims = {3 * CHUNK}, .max = {3 * CHUNK}},
		.layout = H5_LAYOUT_CHUNKED,
		.chunk = {CHUNK}};
	struct h5_dataset_writer *writer;
	uint32_t random = 1;
	uint64_t address;

	for (unsigned i = 0; i < CHUNK; i++) {
		random = random * 1103515245 + 12345;
		data[i] = (uint8_t)(random >> 16);
		data[CHUNK + i] = 5;
		data[2 * CHUNK + i] = 0;
	}
	SUCCEEDS(h5_filter_list_parse(filters, strlen(filters), &how.filters));
	SUCCEEDS(h5_dataset_create(at->file, &how, &address));
	h5_datatype_free((struct h5_datatype *)(uintptr_t)how.type);
	SUCCEEDS(h5_dataset_writer_get(at->file, address, false, &writer));
	SUCCEEDS(h5_dataset_writer_write(writer, 0, data, (size_t)2 * CHUNK));
	SUCCEEDS(h5_dataset_writer_settle(writer));
	h5_dataset_writer_put(writer);
	SUCCEEDS(h5_tx_commit(at->file));
	return address;
}

/* The chunk has these elements, compressed or as they are. */
static void check_chunk(const struct h5_zarr_array *a, uint64_t number, enum h5_zarr_source source,
			const uint8_t expected[CHUNK])
{
	struct h5_zarr_chunk chunk;
	struct h5_buf out;
	uint8_t stored[2 * CHUNK], plain[CHUNK + 1];
	unsigned long n = sizeof plain;

	h5_buf_init(&out, (size_t)2 * CHUNK);
	SUCCEEDS(h5_zarr_chunk_find(a, NULL, number, &chunk));
	ck_assert_msg(chunk.source == source, "chunk %ju: %d", (uintmax_t)number, (int)chunk.source);
	if (source == H5_ZARR_MADE) {
		ck_assert_uint_eq(chunk.size, 0);
		SUCCEEDS(h5_zarr_chunk_make(a, &chunk, &out));
	} else {
		ck_assert_uint_le(chunk.size, sizeof stored);
		SUCCEEDS(h5_zarr_chunk_read(a, &chunk, 0, stored, (size_t)chunk.size));
		h5_buf_add(&out, stored, (size_t)chunk.size);
	}
	if (a->codecs && a->dataset->pipeline.filters[0].id != 1) {
		/* What Blosc cannot make smaller stands behind its header. */
		ck_assert(number || out.size == 16 + CHUNK);
		ck_assert(out.data[4] == 0 && out.data[5] == CHUNK >> 8);
		ck_assert(number || !memcmp(out.data + 16, expected, CHUNK));
	} else if (a->codecs) {
		ck_assert_int_eq(uncompress(plain, &n, (const uint8_t *)out.data, out.size), Z_OK);
		ck_assert_uint_eq(n, CHUNK);
		ck_assert_mem_eq(plain, expected, CHUNK);
	} else {
		ck_assert_uint_eq(out.size, CHUNK);
		ck_assert_mem_eq(out.data, expected, CHUNK);
	}
	h5_buf_release(&out);
}

/* The array shows all chunks with the filter, also one for which that has no gain, so that it was stored as
 * it is. A checksum is never shown. */
START_TEST(chunks_have_all_filters)
{
	static const struct {
		const char *filters;
		enum h5_zarr_source sources[3];
	} all[] = {{"", {H5_ZARR_STORED, H5_ZARR_STORED, H5_ZARR_FILL}},
		   {"deflate(6)", {H5_ZARR_STORED, H5_ZARR_STORED, H5_ZARR_MADE}},
#ifdef HAVE_BLOSC
		   {"blosc", {H5_ZARR_MADE, H5_ZARR_STORED, H5_ZARR_MADE}},
#endif
		   {"fletcher32", {H5_ZARR_STORED, H5_ZARR_STORED, H5_ZARR_FILL}},
		   {"fletcher32,deflate(6)", {H5_ZARR_CHUNK, H5_ZARR_CHUNK, H5_ZARR_FILL}}};
	struct scratch scratch;

	begin(&scratch);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		const struct h5_dataset *dataset;
		struct h5_zarr_array array;
		uint8_t data[3 * CHUNK];
		struct h5_lru_entry *ref;
		struct h5_zarr_chunk chunk;
		bool complete;

		SUCCEEDS(h5_dataset_get(scratch.file, make_chunks(&scratch, all[i].filters, data), &ref,
					&dataset));
		SUCCEEDS(h5_zarr_array_init(&array, H5_ZARR_V2, dataset));
		ck_assert_int_eq(h5_zarr_chunk_find(&array, NULL, 2, &chunk), -ENOENT);
		SUCCEEDS(h5_zarr_is_complete(&array, &complete));
		ck_assert(!complete);
		array.is_filled = true;
		SUCCEEDS(h5_zarr_is_complete(&array, &complete));
		ck_assert(complete);
		for (unsigned k = 0; k < 3; k++)
			check_chunk(&array, k, all[i].sources[k], data + (size_t)k * CHUNK);
		h5_file_put(scratch.file, ref);
	}
	finish(&scratch);
}
END_TEST

UNIT_MAIN("view arrays", headers_end_at_a_multiple_of_64, strings_with_spaces_do_not_stay, types_with_padding,
	  layouts, cut_chunks_of_many_dimensions, rows_behind_the_end_are_the_fill_value, chunks_of_rows,
	  small_chunks_are_joined, chunks_that_stay, chunks_that_reach_behind_the_room, filters_that_zarr_has,
	  chunks_have_all_filters, arrays_that_are_complete)
