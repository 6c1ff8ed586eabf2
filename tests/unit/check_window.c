/* Object headers that are read many at a time, as listings do it. */
#include "base/error.h"
#include "change/open.h"
#include "io/io.h"
#include "objects.h"
#include "store/object_header.h"

enum { OBJECTS_MAX = 4096, HEADER = 512 };

struct addresses {
	uint64_t at[OBJECTS_MAX];
	size_t n;
};

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void addresses_of(const char *name, struct addresses *a)
{
	struct expected e = expected_open(name);

	a->n = 0;
	while (expected_next(&e))
		if (a->n < OBJECTS_MAX)
			a->at[a->n++] = e.address;
	ck_assert_uint_gt(a->n, 1);
	qsort(a->at, a->n, sizeof *a->at, by_address);
}

static void reverse(struct addresses *a)
{
	for (size_t i = 0; i < a->n / 2; i++) {
		uint64_t first = a->at[i];

		a->at[i] = a->at[a->n - 1 - i];
		a->at[a->n - 1 - i] = first;
	}
}

static void assert_same(const struct h5_object *x, const struct h5_object *y)
{
	ck_assert_uint_eq(x->address, y->address);
	ck_assert_int_eq(x->kind, y->kind);
	ck_assert_uint_eq(x->references, y->references);
	ck_assert_uint_eq(x->count, y->count);
	for (unsigned i = 0; i < x->count; i++) {
		ck_assert_uint_eq(x->messages[i].type, y->messages[i].type);
		ck_assert_uint_eq(x->messages[i].address, y->messages[i].address);
		ck_assert_uint_eq(x->messages[i].size, y->messages[i].size);
		if (x->messages[i].size)
			ck_assert_mem_eq(x->messages[i].data, y->messages[i].data, x->messages[i].size);
	}
}

/* All objects through one window are what they are alone; the number of those that are damaged. */
static unsigned compare_all(struct h5_file *file, const struct addresses *a, size_t each)
{
	struct h5_window window;
	unsigned damaged = 0;

	h5_window_init(&window, file);
	for (size_t i = 0; i < a->n; i++) {
		const struct h5_object *alone;
		struct h5_lru_entry *ref;
		struct h5_object object;
		int rc, expected = h5_object_get(file, a->at[i], &ref, &alone);

		h5_window_move(&window, a->at + i, a->n - i, each);
		rc = h5_object_read(&window, a->at[i], &object);
		ck_assert_int_eq(rc, expected);
		if (!rc)
			assert_same(&object, alone);
		damaged += rc != 0;
		h5_object_release(&object);
		h5_object_release(&object);
		h5_file_put(file, ref);
	}
	h5_window_release(&window);
	h5_window_release(&window);
	return damaged;
}

/* In any order, and whatever is thought of the size of a header. */
START_TEST(objects_are_the_same)
{
	static const size_t sizes[] = {1, 16, HEADER, 5000, 1 << 16, 1 << 20};

	for (unsigned i = 0; i < OBJECTS_FILES; i++) {
		struct opened o = objects_open(objects_files[i]);
		struct addresses a;

		addresses_of(objects_files[i], &a);
		for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++)
			ck_assert_uint_eq(compare_all(o.file, &a, sizes[k]), 0);
		reverse(&a);
		ck_assert_uint_eq(compare_all(o.file, &a, HEADER), 0);
		a.at[a.n - 1] = a.at[0] + 1; /* overlaps */
		ck_assert_uint_eq(compare_all(o.file, &a, HEADER), 1);
		objects_close(&o);
	}
}
END_TEST

/* A damaged header is its own harm alone, and so is the end of the file within one. */
START_TEST(damaged_neighbours)
{
	static const char *const names[] = {"old", "latest"};

	for (unsigned i = 0; i < 2; i++) {
		struct opened o = objects_load(names[i]);
		struct addresses a;
		size_t whole = o.size;

		addresses_of(names[i], &a);
		for (size_t k = a.n / 2; k < a.n; k += a.n / 4 + 1)
			o.bytes[a.at[k]] ^= 0xff;
		a.at[a.n - 1] = o.size - 1;
		objects_serve(&o);
		ck_assert_uint_gt(compare_all(o.file, &a, HEADER), 1);
		ck_assert_uint_lt(compare_all(o.file, &a, HEADER), (unsigned)a.n / 2);
		h5_file_set_close(o.set);
		addresses_of(names[i], &a);
		o.size = a.at[a.n - 1] + 20;
		ck_assert_uint_lt(o.size, whole);
		if (!h5_file_set_open_memory(o.bytes, o.size, &objects_options, &o.set)) {
			o.file = h5_file_set_root(o.set);
			ck_assert_uint_gt(compare_all(o.file, &a, HEADER), 0);
		} else {
			o.set = NULL;
		}
		objects_close(&o);
	}
}
END_TEST

/* An h5_io that counts. */
struct counting {
	struct h5_io io;
	struct h5_io *inner;
};

static unsigned long reads;

static int count_read(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	reads++;
	return h5_io_read_some(((struct counting *)io)->inner, offset, buf, n, got);
}

static int count_stat(struct h5_io *io, struct h5_io_stat *st)
{
	return h5_io_stat(((struct counting *)io)->inner, st);
}

static void count_close(struct h5_io *io)
{
	h5_io_close(((struct counting *)io)->inner);
	free(io);
}

static const struct h5_io_ops counting_ops = {.read = count_read, .stat = count_stat, .close = count_close};

static struct h5_io *count_wrap(void *arg, struct h5_io *io)
{
	struct counting *c = calloc(1, sizeof *c);

	(void)arg;
	ck_assert_ptr_nonnull(c);
	c->io.ops = &counting_ops;
	c->inner = io;
	return &c->io;
}

/* Headers that lie side by side need few reads, even where something lies between them. */
START_TEST(reads_are_few)
{
	struct h5_file_set_options options = objects_options;
	struct h5_window window;
	struct addresses a;
	struct h5_file_set *set;
	struct h5_file *file;
	char path[512];

	options.wrap = count_wrap;
	objects_path("old", ".h5", path);
	ck_assert_int_eq(h5_open_file(path, &options, &set, NULL), 0);
	file = h5_file_set_root(set);
	addresses_of("old", &a);
	ck_assert_uint_gt(a.n, 400);
	h5_window_init(&window, file);
	reads = 0;
	for (size_t i = 0; i < a.n; i++) {
		struct h5_object object;

		h5_window_move(&window, a.at + i, a.n - i, HEADER);
		ck_assert_int_eq(h5_object_read(&window, a.at[i], &object), 0);
		h5_object_release(&object);
	}
	ck_assert_uint_lt(reads, a.n / 4);
	h5_window_release(&window);
	h5_file_set_close(set);
}
END_TEST

/* ---- how much is read ---- */

struct run {
	size_t each;	   /* bytes of a header */
	uint64_t at[4], n; /* headers lie so far behind the first one */
	size_t size;	   /* bytes that the window gets */
};

/* Headers up to 4096 bytes apart are read at once, but no more than 65536 bytes. */
static const struct run runs[] = {
	{100, {0}, 1, 0},
	{100, {0, 0}, 2, 100},
	{100, {0, 100 + 4096}, 2, 100 + 4096 + 100},
	{100, {0, 100 + 4097}, 2, 0},
	{5000, {0, 5000 + 4096}, 2, 5000 + 4096 + 5000},
	{5000, {0, 5000 + 4097}, 2, 0},
	{100, {0, 4000, 4100 + 4096}, 3, 4100 + 4096 + 100},
	{100, {0, 4000, 4100 + 4097}, 3, 4100},
	{30000, {0, 30000, 65536 - 30000}, 3, 65536},
	{30000, {0, 30000, 65536 - 29999}, 3, 60000},
	{100, {0, 200, 100, 300}, 4, 300},
	{65536, {0, 0}, 2, 65536},
	{65537, {0, 0}, 2, 0},
};

START_TEST(close_ones_are_read_at_once)
{
	const struct run *run = &runs[_i];
	struct opened o = objects_open("old");
	const uint64_t first = h5_file_end(o.file) - 70000;
	struct h5_window window;
	uint64_t at[4];

	for (unsigned i = 0; i < run->n; i++)
		at[i] = first + run->at[i];
	h5_window_init(&window, o.file);
	h5_window_move(&window, at, run->n, run->each);
	ck_assert_uint_eq(window.size, run->size);
	h5_window_release(&window);
	objects_close(&o);
}
END_TEST

/* What it holds up to the end of the file stays as long as it is enough; else it is emptied. */
START_TEST(a_window_at_the_end)
{
	struct opened o = objects_open("old");
	const uint64_t end = h5_file_end(o.file), two[] = {end - 600, end - 100}, far[] = {end - 60000};
	struct h5_window window;

	h5_window_init(&window, o.file);
	h5_window_move(&window, two, 2, 512);
	ck_assert_uint_eq(window.size, 600);
	h5_window_move(&window, two + 1, 1, 512);
	ck_assert_uint_eq(window.size, 600);
	h5_window_move(&window, far, 1, 512);
	ck_assert_uint_eq(window.size, 0);
	h5_window_move(&window, two, 2, 512);
	ck_assert_uint_eq(window.size, 600);
	h5_window_release(&window);
	ck_assert(!window.size && !window.bytes);
	objects_close(&o);
}
END_TEST

UNIT_MAIN_LOOPS("window", {objects_are_the_same, 1}, {damaged_neighbours, 1}, {reads_are_few, 1},
		{a_window_at_the_end, 1}, {close_ones_are_read_at_once, sizeof runs / sizeof *runs})
