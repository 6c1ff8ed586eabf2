/* A file by itself: where its superblock is, what can be read and wanted, and when it has changed. */
#include "base/error.h"
#include "base/little_endian.h"
#include "base/lru.h"
#include "base/room.h"
#include "store/block.h"
#include "store/btree1.h"
#include "store/file.h"
#include "store/file_private.h"
#include "store/free_sections.h"
#include "store/statistics.h"
#include "store/want.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 16384, RANGES = 80 };

/* ---- the clock ---- */

static struct timespec now;
static bool has_clock;

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	if (!has_clock)
		return __real_clock_gettime(clock, time);
	*time = now;
	return 0;
}

/* ---- an io in the test's hands ---- */

static struct {
	uint8_t bytes[SIZE];
	struct h5_io_stat st;
	int stat_error, read_error;
	struct h5_io_range wanted[RANGES];
	size_t wants; /* ranges */
	enum h5_wanted when;
	uint64_t window;
	unsigned closed, finished;
	size_t taken; /* by the request that reads */
} source;

static int read_source(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	(void)io;
	if (h5_account_get())
		source.taken = h5_account_get()->taken;
	if (source.read_error)
		return h5_fail(source.read_error, offset, "fails");
	*got = offset < source.st.size ? n : 0;
	if (*got > source.st.size - offset)
		*got = (size_t)(source.st.size - offset);
	memcpy(buf, source.bytes + offset, *got);
	return 0;
}

static int stat_source(struct h5_io *io, struct h5_io_stat *st)
{
	(void)io;
	*st = source.st;
	return source.stat_error;
}

static uint64_t want_source(struct h5_io *io, const struct h5_io_range *ranges, size_t count,
			    enum h5_wanted when)
{
	(void)io;
	for (size_t i = 0; i < count; i++) {
		if (source.wants < RANGES)
			source.wanted[source.wants] = ranges[i];
		source.wants++;
	}
	source.when = when;
	return source.window;
}

static void finish_source(struct h5_io *io)
{
	(void)io;
	source.finished++;
}

static void close_source(struct h5_io *io)
{
	(void)io;
	source.closed++;
}

static const struct h5_io_ops ops = {.read = read_source,
				     .want = want_source,
				     .stat = stat_source,
				     .finish = finish_source,
				     .close = close_source};
static struct h5_io io = {.ops = &ops};
static struct h5_statistics statistics;
static atomic_uint_fast64_t numbers;
static struct h5_file_shared shared = {.statistics = &statistics, .numbers = &numbers};

/* A superblock at the offset, which states these. */
static void put_superblock(size_t at, uint64_t base, uint64_t end)
{
	const struct h5_superblock sb = {.version = 2,
					 .size_of_offsets = 8,
					 .size_of_lengths = 8,
					 .base = base,
					 .extension = H5_UNDEF,
					 .end = end,
					 .driver_info = H5_UNDEF,
					 .root = 48};
	struct h5_writer w = h5_writer_init(source.bytes + at, H5_SUPERBLOCK_NEW, 8, 8);

	h5_superblock_encode(&w, &sb);
}

static void begin(void)
{
	memset(&source, 0, sizeof source);
	statistics = (struct h5_statistics){0};
	for (size_t i = 0; i < SIZE; i++)
		source.bytes[i] = (uint8_t)(i * 7 + i / 256);
	source.st = (struct h5_io_stat){
		.size = SIZE, .end = SIZE, .device = 3, .inode = 4, .mtime = {.tv_sec = 100}};
	now = (struct timespec){.tv_sec = 1000};
	shared.follows = false;
}

static struct h5_file *open_at(size_t at)
{
	struct h5_file *file;

	put_superblock(at, at, SIZE);
	has_clock = true;
	ck_assert_int_eq(h5_file_new(&shared, &io, 0, &file), 0);
	has_clock = false;
	ck_assert_uint_eq(h5_file_superblock(file)->base, at);
	return file;
}

static bool refresh(struct h5_file *file)
{
	bool changed;

	has_clock = true;
	changed = h5_file_refresh(file);
	has_clock = false;
	return changed;
}

/* ---- the superblock ---- */

START_TEST(places_of_superblocks)
{
	static const struct {
		size_t at, size;
		uint64_t offset; /* that is given; 0: it is looked for */
		bool found;
	} cases[] = {
		{0, SIZE, 0, true},	   {512, SIZE, 0, true},     {1024, SIZE, 0, true},
		{2048, SIZE, 0, true},	   {4096, SIZE, 0, true},    {256, SIZE, 0, false},
		{513, SIZE, 0, false},	   {1536, SIZE, 0, false},   {512, 560, 0, true},
		{512, 559, 0, false},	   {512, 520, 0, false},     {512, 519, 0, false},
		{512, SIZE, 512, true},	   {1024, SIZE, 512, false}, {1536, SIZE, 1536, true},
		{1000, SIZE, 1000, true},  {0, SIZE, 512, false},    {1000, 1048, 1000, true},
		{1000, 1007, 1000, false}, {0, 48, 0, true},	     {0, 47, 0, false},
		{0, 8, 0, false},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_file *file;
		int rc;

		begin();
		put_superblock(cases[i].at, cases[i].at, SIZE);
		source.st.size = source.st.end = cases[i].size;
		rc = h5_file_new(&shared, &io, cases[i].offset, &file);
		ck_assert_msg(!rc == cases[i].found, "%zu: %d", i, rc);
		ck_assert_uint_eq(source.closed, rc != 0);
		if (rc)
			continue;
		ck_assert_uint_eq(h5_file_superblock(file)->base, cases[i].at);
		ck_assert_uint_eq(h5_file_size(file), cases[i].size - cases[i].at);
		ck_assert_uint_eq(h5_file_end(file), cases[i].size - cases[i].at);
		h5_file_close(file);
		ck_assert_uint_eq(source.closed, 1);
	}
}
END_TEST

/* The base is where the superblock stands. The end that it states moves along. */
START_TEST(bases_that_moved)
{
	static const struct {
		uint64_t base, end, found;
	} cases[] = {{512, 600, 600},
		     {0, 600, 1112},
		     {512, 512, 512},
		     {1024, 2000, 1488},
		     {1024, 1000, 1000},
		     {512, H5_UNDEF, H5_UNDEF},
		     {0, INT64_MAX, (uint64_t)INT64_MAX + 512},
		     {0, H5_UNDEF - 513, H5_UNDEF - 1},
		     {0, H5_UNDEF - 511, H5_UNDEF},
		     {0, H5_UNDEF - 1, H5_UNDEF}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_file *file;

		begin();
		put_superblock(512, cases[i].base, cases[i].end);
		ck_assert_int_eq(h5_file_new(&shared, &io, 0, &file), 0);
		ck_assert_uint_eq(h5_file_superblock(file)->base, 512);
		ck_assert_msg(h5_file_superblock(file)->end == cases[i].found, "%zu: %ju", i,
			      (uintmax_t)h5_file_superblock(file)->end);
		h5_file_close(file);
	}
}
END_TEST

START_TEST(what_is_no_file)
{
	static const struct {
		const char *begin;
		uint64_t offset;
		const char *text;
	} cases[] = {{"OHDH", 0, "the revisions of one (onion driver)"},
		     {"ONIONEOF", 0, "no HDF5 file without its revisions"},
		     {"text", 0, "not an HDF5 file (no signature)"},
		     {"text", 512, "not an HDF5 file (no signature)"}};
	struct h5_file *file;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin();
		memcpy(source.bytes, cases[i].begin, strlen(cases[i].begin));
		ck_assert_int_eq(h5_file_new(&shared, &io, cases[i].offset, &file), -EINVAL);
		ck_assert_msg(strstr(h5_error_last()->text, cases[i].text), "%s", h5_error_last()->text);
		ck_assert_uint_eq(h5_error_last()->address, cases[i].offset ? cases[i].offset : H5_UNDEF);
		ck_assert_uint_eq(source.closed, 1);
	}
	/* One that ends within its superblock, if only behind the signature. */
	for (uint64_t size = 7; size < 10; size++) {
		begin();
		memcpy(source.bytes, H5_SIGNATURE "\0", 9); /* version 0 */
		source.st.size = source.st.end = size;
		ck_assert_int_eq(h5_file_new(&shared, &io, 0, &file), size < 8 ? -EINVAL : -EUCLEAN);
		ck_assert_uint_eq(source.closed, 1);
	}
	begin();
	source.stat_error = -EIO;
	ck_assert_int_eq(h5_file_new(&shared, &io, 0, &file), -EIO);
	ck_assert_uint_eq(source.closed, 1);
	begin();
	source.read_error = -EIO;
	ck_assert_int_eq(h5_file_new(&shared, &io, 0, &file), -EIO);
	ck_assert_uint_eq(source.closed, 1);
}
END_TEST

/* ---- reading ---- */

START_TEST(reads)
{
	struct h5_file *file;
	uint8_t got[64];
	size_t n;

	begin();
	file = open_at(512);
	statistics = (struct h5_statistics){0};
	ck_assert_int_eq(h5_file_read(file, 1000, got, 10), 0);
	ck_assert_mem_eq(got, source.bytes + 1512, 10);
	ck_assert_uint_eq(statistics.reads, 1);
	ck_assert_uint_eq(statistics.bytes, 10);
	ck_assert_int_eq(h5_file_read(file, SIZE, got, 0), 0);
	ck_assert_uint_eq(statistics.reads, 1);
	ck_assert_int_eq(h5_file_read(file, SIZE - 512 - 5, got, 5), 0);
	ck_assert_mem_eq(got, source.bytes + SIZE - 5, 5);
	ck_assert_int_eq(h5_file_read(file, SIZE - 512 - 5, got, 6), -EUCLEAN);
	ck_assert_uint_eq(h5_error_last()->address, SIZE - 512 - 5);
	ck_assert_int_eq(h5_file_read(file, SIZE - 512, got, 1), -EUCLEAN);
	ck_assert_int_eq(h5_file_read(file, UINT64_MAX - 2, got, 6), -EUCLEAN);
	ck_assert_int_eq(h5_file_read_some(file, SIZE - 512 - 5, got, 9, &n), 0);
	ck_assert_uint_eq(n, 5);
	ck_assert_int_eq(h5_file_read_some(file, SIZE - 512, got, 9, &n), -EUCLEAN);
	ck_assert_uint_eq(statistics.reads, 3);
	ck_assert_uint_eq(statistics.bytes, 20);
	/* The file has become shorter. */
	source.st.size = SIZE - 3;
	ck_assert_int_eq(h5_file_read(file, SIZE - 512 - 5, got, 2), 0);
	ck_assert_int_eq(h5_file_read(file, SIZE - 512 - 5, got, 3), -EUCLEAN);
	ck_assert_int_eq(h5_file_read_some(file, SIZE - 512 - 5, got, 3, &n), 0);
	ck_assert_uint_eq(n, 2);
	source.read_error = -EIO;
	statistics = (struct h5_statistics){0};
	ck_assert_int_eq(h5_file_read(file, 0, got, 1), -EIO);
	ck_assert_int_eq(h5_file_read_some(file, 0, got, 1, &n), -EIO);
	ck_assert_uint_eq(statistics.reads, 0);
	h5_file_finish(file);
	ck_assert_uint_eq(source.finished, 1);
	ck_assert_ptr_eq(h5_file_leave_io(file), &io);
	ck_assert_uint_eq(source.closed, 0);
}
END_TEST

/* A file that another program makes longer is looked at again before anything is beyond its end. */
static int load_byte(struct h5_file *file, uint64_t address, const void *arg, void **value, size_t *cost)
{
	(void)arg;
	*value = malloc(1);
	*cost = 1;
	return h5_file_read(file, address, *value, 1);
}

START_TEST(files_that_grow)
{
	static const struct h5_block_type byte = {{"byte", free}, load_byte};
	struct h5_lru_entry *ref;
	struct h5_file *file;
	uint8_t got[4];
	size_t n;

	for (int follows = 0; follows < 2; follows++) {
		begin();
		ck_assert_int_eq(h5_lru_open(1 << 20, &shared.blocks), 0);
		source.st.size = source.st.end = 4000;
		file = open_at(512);
		shared.follows = follows;
		source.st.size = source.st.end = 4001;
		ck_assert_int_eq(h5_file_block(file, &byte, 4000 - 512, 0, NULL, &ref),
				 follows ? 0 : -EUCLEAN);
		h5_file_put(file, ref);
		ck_assert_int_eq(h5_file_block(file, &byte, 4001 - 512, 0, NULL, &ref), -EUCLEAN);
		source.st.size = source.st.end = 4002;
		ck_assert_int_eq(h5_file_read(file, 3998 - 512, got, 4), follows ? 0 : -EUCLEAN);
		source.st.size = source.st.end = 4004;
		ck_assert_int_eq(h5_file_read(file, 4000 - 512, got, 4), follows ? 0 : -EUCLEAN);
		source.st.size = source.st.end = 4008;
		ck_assert_int_eq(h5_file_read_some(file, 4004 - 512, got, 4, &n), follows ? 0 : -EUCLEAN);
		ck_assert_uint_eq(h5_file_end(file), (follows ? 4008 : 4000) - 512);
		/* Never shorter. */
		source.st.size = source.st.end = 4001;
		ck_assert_int_eq(h5_file_read(file, 4008 - 512, got, 4), -EUCLEAN);
		ck_assert_uint_eq(h5_file_end(file), (follows ? 4008 : 4000) - 512);
		source.st.size = source.st.end = 100;
		ck_assert_int_eq(h5_file_read(file, 4008 - 512, got, 4), -EUCLEAN);
		ck_assert_uint_eq(h5_file_end(file), (follows ? 4008 : 4000) - 512);
		source.stat_error = -EIO;
		source.st.end = SIZE;
		ck_assert_int_eq(h5_file_read(file, 4008 - 512, got, 4), -EUCLEAN);
		h5_file_close(file);
		h5_lru_close(shared.blocks);
		shared.blocks = NULL;
	}
}
END_TEST

START_TEST(what_is_wanted)
{
	struct h5_file *file;
	struct h5_io_range ranges[] = {{0, 10},		{20, 0},  {100, SIZE}, {SIZE - 512 - 1, 1},
				       {SIZE - 512, 1}, {SIZE, 5}},
			   none[] = {{0, 0}, {SIZE, 1}};
	struct h5_want want;

	begin();
	file = open_at(512);
	ck_assert(!h5_file_is_far(file));
	source.window = 77;
	ck_assert(h5_file_is_far(file));
	ck_assert_uint_eq(h5_file_window(file), 77);
	ck_assert_uint_eq(source.wants, 0);
	ck_assert_int_eq(source.when, H5_WANTED_SOON);
	h5_file_want(file, ranges, 6, H5_WANTED_AMONG);
	ck_assert_uint_eq(source.wants, 3);
	ck_assert_int_eq(source.when, H5_WANTED_AMONG);
	ck_assert(source.wanted[0].offset == 512 && source.wanted[0].n == 10);
	ck_assert(source.wanted[1].offset == 612 && source.wanted[1].n == SIZE - 612);
	ck_assert(source.wanted[2].offset == SIZE - 1 && source.wanted[2].n == 1);
	source.when = H5_WANTED_SOON;
	source.wants = 0;
	h5_file_want(file, none, 2, H5_WANTED_NOW);
	ck_assert_int_eq(source.when, H5_WANTED_SOON); /* nothing is said */
	/* A list is told in order, and then it is empty. */
	want = (struct h5_want){.file = file};
	h5_want_add(&want, 300, 3);
	h5_want_add(&want, 100, 1);
	h5_want_add(&want, 200, 2);
	h5_want_tell(&want, H5_WANTED_NOW);
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(source.wants, 3);
		for (unsigned k = 0; k < 3; k++)
			ck_assert(source.wanted[k].offset == 512 + 100 * (k + 1) &&
				  source.wanted[k].n == k + 1);
		ck_assert_int_eq(source.when, i ? H5_WANTED_AROUND : H5_WANTED_NOW);
		ck_assert_uint_eq(want.count, i ? 0 : 3);
		source.wants = 0;
		h5_want_send(&want, H5_WANTED_AROUND);
	}
	ck_assert_uint_eq(source.wants, 0);
	ck_assert(!want.list && !want.capacity);
	for (unsigned i = 0; i < H5_WANT_MAX + 10; i++)
		h5_want_add(&want, i, 1);
	ck_assert_uint_eq(want.count, H5_WANT_MAX);
	h5_want_release(&want);
	ck_assert(!want.list && !want.count && !want.capacity);
	source.wants = 0;
	h5_want_both(file, 2000, 1000);
	ck_assert_uint_eq(source.wants, 2);
	ck_assert(source.wanted[0].offset == 1512 && source.wanted[1].offset == 2512);
	ck_assert_uint_eq(source.wanted[0].n, source.wanted[1].n);
	ck_assert_uint_gt(source.wanted[0].n, 0);
	source.wants = 0;
	source.window = 0;
	h5_want_both(file, 2000, 1000);
	ck_assert_uint_eq(source.wants, 0);
	h5_file_close(file);
}
END_TEST

/* ---- trees that are far away ---- */

/* A node of a group's tree, with two children, the addresses of which grow by `step`. */
static void put_node(size_t at, unsigned level, uint64_t child, uint64_t step)
{
	struct h5_writer w = h5_writer_init(source.bytes + 512 + at, 64, 8, 8);

	h5_write_bytes(&w, "TREE", 4);
	h5_write_u8(&w, 0);
	h5_write_u8(&w, (uint8_t)level);
	h5_write_u16(&w, 2);
	h5_write_u64(&w, H5_UNDEF);
	h5_write_u64(&w, H5_UNDEF);
	for (uint64_t i = 0; i < 2; i++) {
		h5_write_u64(&w, i);
		h5_write_u64(&w, child + i * step);
	}
	h5_write_u64(&w, 2);
}

enum {
	GROUP_NODE = 24 + 33 * 8 + 32 * 8,
	CHUNK_NODE = 24 + 65 * 24 + 64 * 8,
	SYMBOLS = 1024
}; /* bytes by default; of rank 1 */

static void is_wanted(size_t i, uint64_t address, uint64_t n)
{
	ck_assert_msg(source.wanted[i].offset == 512 + address && source.wanted[i].n == n, "%zu: %ju, %ju", i,
		      (uintmax_t)source.wanted[i].offset, (uintmax_t)source.wanted[i].n);
}

/* Level by level, each of which comes together. */
START_TEST(all_nodes_of_a_group)
{
	struct h5_file *file;

	begin();
	ck_assert_int_eq(h5_lru_open(1 << 20, &shared.blocks), 0);
	file = open_at(512);
	put_node(1000, 2, 2000, 600);
	put_node(2000, 1, 3600, (uint64_t)-600);
	put_node(2600, 1, 4200, 600);
	put_node(3600, 0, 9000, 100);
	put_node(3000, 0, 8000, 100);
	put_node(4200, 0, 7000, 100);
	put_node(4800, 0, 6000, 100);
	for (size_t i = 0; i < 8; i++) /* these are symbol table nodes, whatever they look like */
		put_node(6000 + i / 2 * 1000 + i % 2 * 100, 0, 10000, 100);
	h5_btree1_want_all(file, 1000);
	ck_assert_uint_eq(source.wants, 0); /* it is near */
	source.window = 1;
	h5_btree1_want_all(file, 1000);
	ck_assert_uint_eq(source.wants, 2 + 4 + 8);
	is_wanted(0, 2000, GROUP_NODE);
	is_wanted(1, 2600, GROUP_NODE);
	for (size_t i = 0; i < 4; i++)
		is_wanted(2 + i, 3000 + 600 * i, GROUP_NODE);
	for (size_t i = 0; i < 8; i++)
		is_wanted(6 + i, 6000 + i / 2 * 1000 + i % 2 * 100, SYMBOLS);
	/* A node cannot be read, so nobody knows what lies beneath it. */
	source.bytes[512 + 2600] = 'x';
	h5_file_renumber(file);
	source.wants = 0;
	h5_btree1_want_all(file, 1000);
	ck_assert_uint_eq(source.wants, 2 + 2 + 4);
	is_wanted(2, 3000, GROUP_NODE);
	is_wanted(3, 3600, GROUP_NODE);
	is_wanted(4, 8000, SYMBOLS);
	is_wanted(7, 9100, SYMBOLS);
	source.bytes[512 + 1000] = 'x';
	h5_file_renumber(file);
	source.wants = 0;
	h5_btree1_want_all(file, 1000);
	ck_assert_uint_eq(source.wants, 0);
	h5_file_close(file);
	h5_lru_close(shared.blocks);
	shared.blocks = NULL;
}
END_TEST

START_TEST(some_children_of_a_node)
{
	uint64_t children[70];
	struct h5_btree1_node node = {.type = H5_BTREE1_GROUP, .level = 1, .count = 70, .children = children};
	struct h5_file *file;

	begin();
	file = open_at(512);
	for (unsigned i = 0; i < 70; i++)
		children[i] = 100 * i + 100;
	h5_btree1_want(file, &node, 0, 0, 5);
	ck_assert_uint_eq(source.wants, 0); /* it is near */
	source.window = 1;
	h5_btree1_want(file, &node, 0, 2, 3);
	ck_assert_uint_eq(source.wants, 3);
	ck_assert_int_eq(source.when, H5_WANTED_AROUND);
	for (unsigned i = 0; i < 3; i++)
		is_wanted(i, children[2 + i], GROUP_NODE);
	source.wants = 0;
	node.level = 0;
	h5_btree1_want(file, &node, 0, 68, 5);
	ck_assert_uint_eq(source.wants, 2);
	is_wanted(1, children[69], SYMBOLS);
	/* Nodes lie among the chunks; a whole index is wanted for itself. The chunks are wanted elsewhere. */
	node.type = H5_BTREE1_CHUNK;
	source.wants = 0;
	h5_btree1_want(file, &node, 1, 0, 5);
	ck_assert_uint_eq(source.wants, 0);
	node.level = 1;
	for (unsigned most = H5_WANT_NODES_MOST; most <= H5_WANT_NODES_MOST + 1; most++) {
		source.wants = 0;
		h5_btree1_want(file, &node, 1, 0, most);
		ck_assert_uint_eq(source.wants, most);
		is_wanted(0, 100, CHUNK_NODE);
		ck_assert_int_eq(source.when, most == H5_WANT_NODES_MOST ? H5_WANTED_AMONG : H5_WANTED_NOW);
	}
	h5_file_close(file);
}
END_TEST

/* ---- free space ---- */

enum { MANAGER = 1000, LIST = 2000 };

/* A manager of two sections, which is of a file or a heap; without a list if `list` is H5_UNDEF. */
static void put_manager(uint8_t client, uint64_t list)
{
	const struct h5_free_section sections[] = {{5000, 16}, {6000, 32}};
	struct h5_free_space_header header = {.client = client,
					      .total = 48,
					      .sections = 2,
					      .serialized = 2,
					      .address_bits = 32,
					      .section_max = 1 << 20,
					      .list = list};
	struct h5_writer w = h5_writer_init(source.bytes + 512 + MANAGER, 200, 8, 8);

	header.list_size = header.list_room = h5_free_space_list_size(&header, sections, 8);
	ck_assert_int_eq(h5_free_space_header_encode(&w, &header), 0);
	w = h5_writer_init(source.bytes + 512 + LIST, header.list_size, 8, 8);
	ck_assert_int_eq(h5_free_space_list_encode(&w, &header, MANAGER, sections, H5_SECTION_SIMPLE), 0);
}

struct visits {
	unsigned count, until; /* the visit of this number, from 1, ends it */
	struct h5_free_section sections[4];
	unsigned managers[4];
};

static int visit(void *arg, unsigned manager, const struct h5_free_section *section)
{
	struct visits *v = arg;

	ck_assert_uint_lt(v->count, 4);
	v->managers[v->count] = manager;
	v->sections[v->count++] = *section;
	return v->count == v->until ? 7 : 0;
}

START_TEST(free_sections)
{
	struct h5_file_space_info info = {.count = 3, .managers = {H5_UNDEF, MANAGER, MANAGER, MANAGER}};
	struct visits v = {0};
	struct h5_file *file;

	begin();
	file = open_at(512);
	put_manager(H5_FREE_SPACE_FILE, LIST);
	ck_assert_int_eq(h5_free_sections_each(file, &info, visit, &v), 0);
	ck_assert_uint_eq(v.count, 4);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_uint_eq(v.managers[i], 1 + i / 2);
		ck_assert_uint_eq(v.sections[i].offset, i % 2 ? 6000 : 5000);
		ck_assert_uint_eq(v.sections[i].size, i % 2 ? 32 : 16);
	}
	for (unsigned until = 1; until < 4; until++) {
		v = (struct visits){.until = until};
		ck_assert_int_eq(h5_free_sections_each(file, &info, visit, &v), 7);
		ck_assert_uint_eq(v.count, until);
	}
	v = (struct visits){0};
	source.bytes[512 + LIST + 30] ^= 1;
	ck_assert_int_eq(h5_free_sections_each(file, &info, visit, &v), -EUCLEAN);
	put_manager(H5_FREE_SPACE_HEAP, LIST);
	ck_assert_int_eq(h5_free_sections_each(file, &info, visit, &v), -EUCLEAN);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "it is none of a file"));
	put_manager(H5_FREE_SPACE_FILE, H5_UNDEF);
	ck_assert_int_eq(h5_free_sections_each(file, &info, visit, &v), 0);
	source.bytes[512 + MANAGER] ^= 1;
	ck_assert_int_eq(h5_free_sections_each(file, &info, visit, &v), -EUCLEAN);
	ck_assert_uint_eq(v.count, 0);
	h5_file_close(file);
}
END_TEST

/* ---- changes ---- */

/* The times of a change are those of the file system, which may be a little late. */
START_TEST(changes_of_others)
{
	struct h5_overlay changes = {.io = {.ops = &ops}};
	struct h5_file *file;
	uint64_t number;

	begin();
	file = open_at(512);
	number = h5_file_number(file);
	ck_assert(!refresh(file));
	ck_assert_uint_eq(h5_file_number(file), number);
	source.st.mtime.tv_nsec = 1;
	ck_assert(refresh(file));
	ck_assert_uint_ne(h5_file_number(file), number);
	ck_assert(!refresh(file));
	source.st.mtime.tv_sec = 101;
	ck_assert(refresh(file) && !refresh(file));
	source.st.size = source.st.end = 4000;
	ck_assert(refresh(file) && !refresh(file));
	ck_assert_uint_eq(h5_file_size(file), 4000 - 512);
	ck_assert_uint_eq(h5_file_end(file), 4000 - 512);
	/* What cannot be looked at, or has lost its superblock, is as it was. */
	source.stat_error = -EIO;
	source.st.size = 5000;
	ck_assert(!refresh(file));
	source.stat_error = 0;
	source.st.size = 511;
	ck_assert(!refresh(file));
	ck_assert_uint_eq(h5_file_size(file), 4000 - 512);
	source.st.size = source.st.end = 512;
	ck_assert(refresh(file));
	ck_assert_uint_eq(h5_file_size(file), 0);
	source.st.size = source.st.end = SIZE;
	refresh(file);
	/* Within 20 ms of the change there may have been another one. */
	for (int i = 0; i < 6; i++) {
		static const struct {
			int64_t sec;
			long nsec;
			bool again;
		} looks[] = {{2000, 0, true},	      {2000, 19999999, true}, {2000, 20000000, false},
			     {1999, 999999999, true}, {2001, 0, false},	      {2003, 0, false}};

		source.st.mtime = (struct timespec){.tv_sec = 2000, .tv_nsec = i};
		now = (struct timespec){.tv_sec = looks[i].sec, .tv_nsec = looks[i].nsec + i};
		if (now.tv_nsec > 999999999)
			now.tv_nsec = 999999999;
		ck_assert(refresh(file));
		now.tv_sec = 5000;
		ck_assert_msg(refresh(file) == looks[i].again, "%d", i);
		ck_assert(!refresh(file));
	}
	/* The second goes on. */
	source.st.mtime = (struct timespec){.tv_sec = 3000, .tv_nsec = 990000000};
	now = (struct timespec){.tv_sec = 3001, .tv_nsec = 9999999};
	ck_assert(refresh(file));
	now.tv_sec = 6000;
	ck_assert(refresh(file) && !refresh(file));
	source.st.mtime = (struct timespec){.tv_sec = 3000, .tv_nsec = 990000001};
	now = (struct timespec){.tv_sec = 3001, .tv_nsec = 10000001};
	ck_assert(refresh(file) && !refresh(file));
	/* What we change ourselves nobody else does. */
	h5_file_lay_over(file, &changes);
	source.st.size++;
	ck_assert(!refresh(file));
	h5_file_close(file);
}
END_TEST

START_TEST(what_a_file_is)
{
	struct h5_file *file;
	uint64_t device, inode, number;
	struct h5_io_stat st;

	begin();
	file = open_at(0);
	number = h5_file_number(file);
	source.stat_error = -EIO;
	ck_assert_int_eq(h5_file_stat(file, &st), -EIO);
	source.stat_error = 0;
	ck_assert_int_eq(h5_file_stat(file, &st), 0);
	ck_assert_uint_eq(st.size, SIZE);
	h5_file_identity(file, &device, &inode);
	ck_assert(device == 3 && inode == 4);
	ck_assert(h5_file_is_plain(file) && !h5_file_is_family(file));
	ck_assert_int_eq(h5_file_can_change(file), -EROFS);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "open for reading"));
	h5_file_set_in_pieces(file);
	ck_assert(!h5_file_is_plain(file) && h5_file_is_family(file));
	h5_file_renumber(file);
	ck_assert_uint_ne(h5_file_number(file), number);
	h5_file_set_missing(file, strdup("a"));
	ck_assert(!h5_file_is_plain(file) && !h5_file_is_family(file));
	ck_assert_str_eq(h5_file_missing(file), "a");
	h5_file_fix(file, "such a file");
	ck_assert_int_eq(h5_file_can_change(file), -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(h5_error_last()->text, "writing such a file is not supported"));
	h5_file_close(file);
	begin();
	file = open_at(0);
	h5_file_fix(file, "such a file");
	ck_assert(!h5_file_is_plain(file) && !h5_file_is_family(file));
	h5_file_set_in_pieces(file);
	ck_assert(!h5_file_is_family(file));
	h5_file_close(file);
	begin();
	file = open_at(0);
	h5_file_set_missing(file, strdup("a"));
	ck_assert(!h5_file_is_plain(file));
	h5_file_close(file);
}
END_TEST

/* The pieces of a file are no file if nothing is known of them, whatever their bytes are. */
START_TEST(pieces_of_which_nothing_is_known)
{
	struct h5_file *file;

	begin();
	file = open_at(0);
	memset(source.bytes, 0, 8);
	ck_assert_int_eq(h5_file_read_whole(file, &io), -EINVAL);
	ck_assert_int_eq(h5_file_read_through(file, &io), 0);
	source.stat_error = -EIO;
	ck_assert_int_eq(h5_file_read_whole(file, &io), -EIO);
	ck_assert_int_eq(h5_file_read_through(file, &io), -EIO);
	h5_file_close(file);
}
END_TEST

/* The K of B-trees are in the superblock extension, too: if that cannot be read, no node is known. */
START_TEST(an_extension_that_cannot_be_read)
{
	struct h5_superblock sb = {.version = 2,
				   .size_of_offsets = 8,
				   .size_of_lengths = 8,
				   .extension = 5000,
				   .end = SIZE,
				   .driver_info = H5_UNDEF,
				   .root = 48};
	struct h5_writer w;
	struct h5_file *file;
	unsigned k;

	for (int i = 0; i < 2; i++) {
		begin();
		ck_assert_int_eq(h5_lru_open(1 << 20, &shared.blocks), 0);
		w = h5_writer_init(source.bytes, H5_SUPERBLOCK_NEW, 8, 8);
		h5_superblock_encode(&w, &sb);
		ck_assert_int_eq(h5_file_new(&shared, &io, 0, &file), 0);
		source.read_error = i ? -EIO : 0;
		ck_assert_int_eq(h5_btree1_node_k(file, H5_BTREE1_GROUP, &k), i ? -EIO : -EUCLEAN);
		ck_assert_int_eq(h5_symbol_node_k(file, &k), i ? -EIO : -EUCLEAN);
		/* Children of nodes have no known size: none is wanted. */
		source.read_error = 0;
		put_node(1000 - 512, 2, 2000, 600);
		put_node(2000 - 512, 1, 3600, 600);
		source.window = 1;
		h5_btree1_want_all(file, 1000);
		ck_assert_uint_eq(source.wants, 0);
		h5_file_close(file);
		h5_lru_close(shared.blocks);
		shared.blocks = NULL;
	}
	h5_file_close(NULL);
}
END_TEST

/* A block has a size that it may have. */
START_TEST(large_blocks)
{
	struct h5_file *file;
	void *memory;

	begin();
	file = open_at(0);
	ck_assert_int_eq(h5_block_read(file, SIZE, 0, 1, "a block", &memory), -EUCLEAN);
	ck_assert_int_eq(h5_block_read(file, SIZE - 1, 0, 2, "a block", &memory), -EUCLEAN);
	ck_assert_int_eq(h5_block_read(file, SIZE - 1, 0, 1, "a block", &memory), 0);
	ck_assert_int_eq(*(uint8_t *)memory, source.bytes[SIZE - 1]);
	free(memory);
	h5_file_extend(file, UINT64_C(1) << 40);
	source.read_error = -EIO;
	ck_assert_int_eq(h5_block_read(file, 100, 0, H5_BLOCK_MAX, "a block", &memory), -EIO);
	ck_assert_int_eq(h5_block_read(file, 100, 0, H5_BLOCK_MAX + 1, "a block", &memory), -ENOTSUP);
	ck_assert_str_eq(h5_error_last()->text, "a block: a block of 268435457 bytes is not supported");
	ck_assert_uint_eq(h5_error_last()->address, 100);
	h5_file_close(file);
}
END_TEST

/* The request holds the memory while the block is read, and afterwards no more, whatever has become of it. */
START_TEST(blocks_take_room_while_they_are_read)
{
	struct h5_account account = {0};
	struct h5_room *room;
	struct h5_file *file;
	void *memory;

	begin();
	file = open_at(0);
	ck_assert_int_eq(h5_room_open(1 << 20, NULL, NULL, &room), 0);
	h5_account_begin(&account, room);
	for (unsigned i = 0; i < 2; i++) {
		source.read_error = i ? -EIO : 0;
		source.taken = 0;
		ck_assert_int_eq(h5_block_read(file, 0, 0, SIZE, "a block", &memory), source.read_error);
		if (!i)
			free(memory);
		ck_assert_uint_eq(source.taken, SIZE);
		ck_assert_uint_eq(account.taken, 0);
	}
	h5_account_end(&account);
	h5_room_close(room);
	/* Without room it is not read. */
	ck_assert_int_eq(h5_room_open(SIZE - 1, NULL, NULL, &room), 0);
	h5_account_begin(&account, room);
	source.read_error = -EIO;
	ck_assert_int_eq(h5_block_read(file, 0, 0, SIZE, "a block", &memory), -EFBIG);
	h5_account_end(&account);
	h5_room_close(room);
	h5_file_close(file);
}
END_TEST

/* ---- ends ---- */

START_TEST(ends)
{
	const struct h5_file_area three[] = {{.start = 0, .end = 1000},
					     {.start = 2000, .end = 2500, .raw = true, .member = 2},
					     {.start = 5000, .end = 5600, .member = 1}};
	struct h5_file_area areas[H5_FILE_AREAS_MAX];
	struct h5_file *file;
	uint8_t got[9];
	size_t n;

	begin();
	file = open_at(512);
	ck_assert_uint_eq(h5_file_areas(file, areas), 1);
	ck_assert(areas[0].start == 0 && areas[0].end == SIZE - 512 && areas[0].raw);
	h5_file_extend(file, SIZE);
	ck_assert(h5_file_end(file) == SIZE && h5_file_size(file) == SIZE);
	h5_file_extend(file, SIZE - 1);
	ck_assert(h5_file_end(file) == SIZE && h5_file_size(file) == SIZE);
	h5_file_cut(file, 3000);
	ck_assert(h5_file_end(file) == 3000 && h5_file_size(file) == 3000);
	/* The file ends at 3000, though more bytes are stored. */
	ck_assert_int_eq(h5_file_read_some(file, 2995, got, 9, &n), 0);
	ck_assert_uint_eq(n, 5);
	h5_file_close(file);
	/* Members of the multi driver have their own. */
	begin();
	source.st.size = 2100;
	source.st.end = 5600;
	file = open_at(0);
	h5_file_set_areas(file, three, 3);
	ck_assert_uint_eq(h5_file_areas(file, areas), 3);
	ck_assert_mem_eq(areas, three, sizeof three);
	h5_file_extend(file, 1200); /* of the first, */
	ck_assert(h5_file_end(file) == 5600 && h5_file_size(file) == 2300);
	h5_file_extend(file, 1100);
	ck_assert(h5_file_end(file) == 5600 && h5_file_size(file) == 2300);
	h5_file_extend(file, 2501); /* of the second, */
	ck_assert(h5_file_end(file) == 5600 && h5_file_size(file) == 2301);
	h5_file_extend(file, 5000); /* still of the second, */
	ck_assert(h5_file_end(file) == 5600 && h5_file_size(file) == 2301 + 2499);
	h5_file_extend(file, 5700); /* of the last */
	ck_assert(h5_file_end(file) == 5700 && h5_file_size(file) == 4900);
	h5_file_areas(file, areas);
	ck_assert(areas[0].end == 1200 && areas[1].end == 5000 && areas[2].end == 5700);
	h5_file_cut(file, 2100);
	ck_assert(h5_file_end(file) == 5700 && h5_file_size(file) == 2000);
	h5_file_cut(file, 5000); /* the end of the second is where the third begins */
	ck_assert(h5_file_end(file) == 5700 && h5_file_size(file) == 2000);
	h5_file_cut(file, 2200);
	h5_file_cut(file, 5001);
	ck_assert_uint_eq(h5_file_end(file), 5001);
	h5_file_cut(file, 1);
	ck_assert_uint_eq(h5_file_end(file), 5001);
	h5_file_areas(file, areas);
	ck_assert(areas[0].end == 1 && areas[1].end == 2200 && areas[2].end == 5001);
	h5_file_close(file);
}
END_TEST

UNIT_MAIN("file", places_of_superblocks, bases_that_moved, what_is_no_file, reads, files_that_grow,
	  what_is_wanted, all_nodes_of_a_group, some_children_of_a_node, free_sections, changes_of_others,
	  what_a_file_is, pieces_of_which_nothing_is_known, an_extension_that_cannot_be_read, large_blocks,
	  blocks_take_room_while_they_are_read, ends)
