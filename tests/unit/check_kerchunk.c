/* The file kerchunk.json of small trees: what it refers to, what stands in it, and what is left out. */
#include "base/checked.h"
#include "dataset/create.h"
#include "empty_scene.h"
#include "format/datatype_make.h"
#include "object/group_write.h"
#include "view/views.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20 };

#define HEAD "{\"version\":1,\"refs\":{\".zgroup\":\"{\\\"zarr_format\\\":2}\""
#define URL  "file:///x.h5"

/* ---- objects ---- */

/* A dataset in the root group. Its type is released. Data NULL: nothing is stored. */
static void make(const char *name, struct h5_datatype *type, uint64_t n, uint64_t chunk, const void *fill,
		 const void *data)
{
	struct h5_new_dataset how = {
		.type = type,
		.space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .elements = n, .dims = {n}, .max = {n}},
		.layout = chunk ? H5_LAYOUT_CHUNKED : H5_LAYOUT_CONTIGUOUS,
		.chunk = {chunk},
		.fill = fill};
	struct h5_link link = {.name = name, .name_size = strlen(name)};
	struct h5_dataset_writer *writer;

	SUCCEEDS(h5_dataset_create(scratch.file, &how, &link.address));
	if (data) {
		SUCCEEDS(h5_dataset_writer_get(scratch.file, link.address, false, &writer));
		SUCCEEDS(h5_dataset_writer_write(writer, 0, data, n * type->size));
		SUCCEEDS(h5_dataset_writer_settle(writer));
		h5_dataset_writer_put(writer);
	}
	SUCCEEDS(h5_group_insert(scratch.file, h5_file_superblock(scratch.file)->root, &link));
	SUCCEEDS(h5_tx_commit(scratch.file));
	h5_datatype_free(type);
}

static struct h5_datatype *bytes(void)
{
	return h5_datatype_make_integer(1, false, H5_ORDER_LE);
}

/* ---- the text ---- */

static char logged[500];

static void log_line(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(logged, sizeof logged, format, args);
	va_end(args);
}

static size_t file_name(const struct h5_view_ops *view, const char *name, size_t size, char out[256])
{
	(void)view;
	memcpy(out, name, size);
	return size;
}

static struct h5_view_tree tree;

static void open_view(struct h5_view *v)
{
	static uint64_t state;

	*logged = 0;
	tree = (struct h5_view_tree){.file = scratch.file,
				     .root = h5_file_superblock(scratch.file)->root,
				     .name = file_name,
				     .url = URL,
				     .log = log_line};
	*v = (struct h5_view){.ops = &h5_view_kerchunk,
			      .file = scratch.file,
			      .address = tree.root,
			      .tree = &tree,
			      .context = {.file = scratch.file},
			      .state = ++state};
	SUCCEEDS(h5_view_begin(v, NULL));
	SUCCEEDS(h5_view_open(v, true));
}

/* All of it; free(). */
static char *read_text(struct h5_view *v)
{
	char *text = malloc((size_t)v->size + 1);

	SUCCEEDS(h5_view_read(v, 0, text, (size_t)v->size));
	text[v->size] = 0;
	ck_assert_uint_eq(strlen(text), v->size);
	ck_assert(!strncmp(text, HEAD, strlen(HEAD)));
	ck_assert_str_eq(text + v->size - 3, "}}\n");
	return text;
}

static char *show(void)
{
	struct h5_view v;
	char *text;

	open_view(&v);
	text = read_text(&v);
	h5_view_release(&v);
	return text;
}

/* Returns the begin of the key's value, or NULL if the text has no such key. */
static const char *value_of(const char *text, const char *key)
{
	char quoted[100];
	const char *at;

	snprintf(quoted, sizeof quoted, ",\"%s\":", key);
	at = strstr(text, quoted);
	return at ? at + strlen(quoted) : NULL;
}

static void is_reference(const char *text, const char *key, uint64_t *address, uint64_t size)
{
	const char *value = value_of(text, key);
	unsigned long long at, n;
	int end = 0;

	ck_assert_msg(value, "%s", key);
	ck_assert_int_eq(sscanf(value, "[\"" URL "\",%llu,%llu]%n", &at, &n, &end), 2);
	ck_assert(end && value[end] && strchr(",}", value[end]));
	ck_assert_msg(n == size, "%s: %llu bytes", key, n);
	*address = at;
}

static void is_inside(const char *text, const char *key, const char *base64)
{
	const char *value = value_of(text, key);

	ck_assert_msg(value && !strncmp(value, "\"base64:", 8) && !strncmp(value + 8, base64, strlen(base64)),
		      "%s: %.40s", key, value ? value : "");
}

/* ---- tests ---- */

/* Parts of the text are made from the middle on. */
START_TEST(any_range)
{
	enum { N = 5000, RANGES = 300, LONGEST = 2000 };
	uint8_t data[N], part[LONGEST];
	unsigned random = 1;
	struct h5_view v;
	char *text;
	size_t n;

	for (unsigned i = 0; i < N; i++)
		data[i] = (uint8_t)(i * 7);
	make("before", bytes(), 3, 0, NULL, "abc");
	make("many", bytes(), N, 1, NULL, data);
	make("more", bytes(), 3, 0, NULL, "def");
	open_view(&v);
	text = read_text(&v);
	n = (size_t)v.size;
	ck_assert_uint_gt(n, 150000);
	ck_assert(strstr(text, "before/0") < strstr(text, "many/0") &&
		  strstr(text, "many/4999") < strstr(text, "more/0"));
	for (unsigned i = 0; i < RANGES; i++) {
		size_t at, size;

		random = random * 1103515245 + 12345;
		at = i < 3 ? i : (random >> 4) % n;
		random = random * 1103515245 + 12345;
		size = h5_min(1 + (random >> 8) % LONGEST, n - at);
		SUCCEEDS(h5_view_read(&v, at, part, size));
		ck_assert_msg(!memcmp(part, text + at, size), "%zu bytes at %zu", size, at);
	}
	SUCCEEDS(h5_view_read(&v, n - 1, part, 1));
	ck_assert_int_eq(part[0], '\n');
	/* The references lead to the bytes of the elements. */
	for (unsigned i = 0; i < N; i += 499) {
		uint64_t address;
		char key[20];

		snprintf(key, sizeof key, "many/%u", i);
		is_reference(text, key, &address, 1);
		SUCCEEDS(h5_file_read(scratch.file, address, part, 1));
		ck_assert_int_eq(part[0], data[i]);
	}
	h5_view_release(&v);
	free(text);
}
END_TEST

/* What readers cannot take from the file stands in the text up to 1 MiB. */
START_TEST(small_arrays_are_inside)
{
	char *text;

	make("fits", h5_datatype_make_string(MIB, H5_PAD_SPACEPAD, H5_CHARSET_ASCII), 1, 0, NULL, NULL);
	make("not", h5_datatype_make_string(MIB + 1, H5_PAD_SPACEPAD, H5_CHARSET_ASCII), 1, 0, NULL, NULL);
	text = show();
	is_inside(text, "fits/0", "AAAA");
	ck_assert_ptr_nonnull(value_of(text, "fits/.zarray"));
	ck_assert_ptr_null(strstr(text, "\"not/"));
	ck_assert_str_eq(logged,
			 "kerchunk.json: not is left out: its chunks are not stored as Zarr has them");
	free(text);
}
END_TEST

/* So do chunks that are not stored, if the fill value does not mark what is missing. */
START_TEST(fill_values_are_inside)
{
	static const uint8_t fill = 5;
	char *text;

	make("all", bytes(), MIB, MIB / 4, &fill, NULL);
	make("none", bytes(), MIB + 1, MIB / 4, &fill, NULL);
	text = show();
	for (char key[] = "all/0"; key[4] < '4'; key[4]++)
		is_inside(text, key, "BQUFBQUF");
	ck_assert_ptr_null(value_of(text, "all/4"));
	ck_assert_ptr_nonnull(value_of(text, "none/.zarray"));
	ck_assert_ptr_null(value_of(text, "none/0"));
	ck_assert_ptr_null(value_of(text, "none/4"));
	ck_assert_str_eq(logged, "");
	free(text);
}
END_TEST

/* The last chunk may reach into what follows, but not behind the end of the file. */
START_TEST(chunks_end_in_the_file)
{
	uint8_t *data = calloc(1, MIB + 1);
	uint64_t first, second;
	char *text;

	make("first", bytes(), MIB + 1, 0, NULL, data);
	make("last", bytes(), MIB + 1, 0, NULL, data);
	text = show();
	is_reference(text, "first/0", &first, MIB);
	is_reference(text, "first/1", &second, MIB);
	ck_assert_uint_eq(second, first + MIB);
	is_reference(text, "last/0", &second, MIB + 1);
	ck_assert_ptr_null(value_of(text, "last/1"));
	ck_assert_uint_gt(second, first);
	free(text);
	free(data);
}
END_TEST

/* Nothing stays in the text of an array of which a part cannot be read. */
START_TEST(damaged_arrays_are_left_out)
{
	/* A text of 3 bytes, where no heap is. */
	static const uint8_t bad[16] = {3, [4] = 9, [12] = 1};
	uint64_t address;
	char *text;

	make("a", bytes(), 3, 0, NULL, "abc");
	make("broken", h5_datatype_make_vlen_string(8, H5_CHARSET_UTF8), 1, 0, NULL, bad);
	make("c", bytes(), 3, 0, NULL, "def");
	text = show();
	ck_assert_ptr_null(strstr(text, "broken"));
	ck_assert_msg(!strncmp(logged, "kerchunk.json: broken is left out: ", 35), "%s", logged);
	is_reference(text, "a/0", &address, 3);
	is_reference(text, "c/0", &address, 3);
	free(text);
}
END_TEST

UNIT_MAIN_AROUND("kerchunk", setup, teardown, any_range, damaged_arrays_are_left_out, small_arrays_are_inside,
		 fill_values_are_inside, chunks_end_in_the_file)
