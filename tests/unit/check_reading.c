/* How chunked data are read: how many reads it takes, by how many threads, and what is done ahead. */
#include "base/error.h"
#include "change/open.h"
#include "dataset/dataset.h"
#include "dataset/stored_runs.h"
#include "dataset/whole_chunk.h"
#include "fault_alloc.h"
#include "scratch.h"
#include "vfs_scene.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- a file whose reads are counted ---- */

struct counting {
	struct h5_io io;
	struct h5_io_ops ops;
	struct h5_io *inner;
	atomic_uint *reads;
};

/* A thread with `stops` waits in its reads, as long as the gate is shut. */
static _Thread_local bool stops;
static atomic_bool shut, reached;

static void pass_gate(void)
{
	reached = reached || stops;
	while (stops && shut)
		sched_yield();
}

static int count_read(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	struct counting *c = (struct counting *)io;

	pass_gate();
	(*c->reads)++;
	return h5_io_read_some(c->inner, offset, buf, n, got);
}

static int count_readv(struct h5_io *io, uint64_t offset, const struct iovec *buffers, unsigned count,
		       size_t *got)
{
	struct counting *c = (struct counting *)io;

	pass_gate();
	(*c->reads)++;
	return h5_io_readv(c->inner, offset, buffers, count, got);
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

static struct h5_io *count_calls(void *arg, struct h5_io *inner)
{
	struct counting *c = calloc(1, sizeof *c);

	c->ops = (struct h5_io_ops){
		.read = count_read, .readv = count_readv, .stat = count_stat, .close = count_close};
	c->io.ops = &c->ops;
	c->inner = inner;
	c->reads = arg;
	return &c->io;
}

/* An io that cannot read into several buffers. */
static struct h5_io *count_plain_calls(void *arg, struct h5_io *inner)
{
	struct counting *c = (struct counting *)count_calls(arg, inner);

	c->ops.readv = NULL;
	return &c->io;
}

/* ---- what the pool is told: the linker leads h5_pool_start() here ---- */

typedef void pool_done(void *arg);

void __real_h5_pool_start(struct h5_pool *pool, h5_pool_part *part, pool_done *done, void *arg, size_t n);
void __wrap_h5_pool_start(struct h5_pool *pool, h5_pool_part *part, pool_done *done, void *arg, size_t n);

static size_t parts;

void __wrap_h5_pool_start(struct h5_pool *pool, h5_pool_part *part, pool_done *done, void *arg, size_t n)
{
	parts += n;
	__real_h5_pool_start(pool, part, done, arg, n);
}

/* ---- who waits for what another thread decodes: the linker leads h5_lru_get() here ---- */

int __real_h5_lru_get(struct h5_lru *lru, const struct h5_lru_key *key, h5_lru_load *load, void *arg,
		      struct h5_lru_entry **entry);
int __wrap_h5_lru_get(struct h5_lru *lru, const struct h5_lru_key *key, h5_lru_load *load, void *arg,
		      struct h5_lru_entry **entry);

static struct h5_lru *watched; /* NULL: none */
static uint64_t misses_before; /* of `watched`, when a thread first had to wait */

int __wrap_h5_lru_get(struct h5_lru *lru, const struct h5_lru_key *key, h5_lru_load *load, void *arg,
		      struct h5_lru_entry **entry)
{
	if (watched && lru == watched && !stops && shut) {
		struct h5_lru_stats stats;

		h5_lru_stats(lru, &stats);
		misses_before = stats.misses;
		shut = false;
	}
	return __real_h5_lru_get(lru, key, load, arg, entry);
}

/* ---- a dataset ---- */

struct opened {
	struct h5_file_set *set;
	struct h5_lru_entry *ref;
	const struct h5_dataset *dataset;
	size_t size;
	atomic_uint reads;
};

static void open_path(struct opened *o, const char *path, const char *name,
		      const struct h5_file_set_options *with)
{
	struct h5_file_set_options options = *with;
	char list[512], found[64];
	unsigned long long address, size;
	FILE *f;

	scratch_fixture("reading.list", list);
	f = fopen(list, "r");
	ck_assert_ptr_nonnull(f);
	do {
		ck_assert_int_eq(fscanf(f, "%63s %llu %llu", found, &address, &size), 3);
	} while (strcmp(found, name));
	fclose(f);
	options.wrap_arg = &o->reads;
	o->size = size;
	SUCCEEDS(h5_open_file(path, &options, &o->set, NULL));
	SUCCEEDS(h5_dataset_get(h5_file_set_root(o->set), address, &o->ref, &o->dataset));
}

static void open_dataset(struct opened *o, const char *name, const struct h5_file_set_options *with)
{
	char path[512];

	scratch_fixture("reading.h5", path);
	open_path(o, path, name, with);
}

static void close_dataset(struct opened *o)
{
	h5_file_put(h5_file_set_root(o->set), o->ref);
	h5_file_set_close(o->set);
}

/* Reads and compares with what the fixture wrote. */
static void expect(struct opened *o, size_t offset, size_t n)
{
	uint8_t *buf = malloc(n);

	memset(buf, 0xa5, n);
	SUCCEEDS(h5_dataset_read(o->dataset, offset, buf, n));
	for (size_t i = 0; i < n; i++) {
		uint32_t value = (uint32_t)((offset + i) / 4 * 7 + 3);

		if (buf[i] != (uint8_t)(value >> 8 * ((offset + i) % 4)))
			ck_abort_msg("byte %zu", offset + i);
	}
	free(buf);
}

static struct h5_file_set_options with_workers(unsigned workers)
{
	return (struct h5_file_set_options){.block_cache = 1 << 20,
					    .chunk_cache = 16 << 20,
					    .lock = H5_LOCK_NONE,
					    .workers = workers,
					    .wrap = count_calls};
}

static struct h5_lru_stats chunks_of(const struct opened *o)
{
	struct h5_lru_stats stats;

	h5_lru_stats(h5_file_set_chunks(o->set), &stats);
	return stats;
}

/* A file that is far away, of which the most ranges are noted that were wanted together. */
static uint64_t note_want(struct h5_io *io, const struct h5_io_range *ranges, size_t count,
			  enum h5_wanted when)
{
	const struct counting *c = (struct counting *)io;

	(void)ranges;
	if (when == H5_WANTED_AMONG && count > *c->reads)
		*c->reads = (unsigned)count;
	return 1 << 20;
}

static int read_silently(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	return h5_io_read_some(((struct counting *)io)->inner, offset, buf, n, got);
}

static struct h5_io *note_wants(void *arg, struct h5_io *inner)
{
	struct counting *c = (struct counting *)count_calls(arg, inner);

	c->ops.read = read_silently;
	c->ops.readv = NULL;
	c->ops.want = note_want;
	return &c->io;
}

/* ---- tests ---- */

/* Few nodes come ahead of a reader that has just begun, more of one that wants many chunks at once. */
START_TEST(nodes_of_an_index_far_away)
{
	struct h5_file_set_options options = with_workers(0);
	struct opened o = {0};

	options.wrap = note_wants;
	open_dataset(&o, "tree", &options);
	h5_dataset_want(o.dataset, 0, 64, H5_WANTED_SOON);
	ck_assert_uint_eq(o.reads, 0);
	h5_dataset_want(o.dataset, 0, o.size / 16, H5_WANTED_SOON); /* 256 chunks */
	ck_assert_uint_eq(o.reads, 32);
	close_dataset(&o);
}
END_TEST

/* 4,096 chunks of 64 bytes, one behind the other in the file but for pages of the index. */
START_TEST(neighbours_are_read_together)
{
	struct h5_file_set_options options = with_workers(0);
	struct opened o = {0};
	unsigned before;

	open_dataset(&o, "tiny", &options);
	before = o.reads;
	expect(&o, 0, o.size);
	ck_assert_uint_le(o.reads - before, 8);
	before = o.reads;
	expect(&o, 128, 6400); /* the index is in the cache now */
	ck_assert_uint_le(o.reads - before, 2);
	ck_assert_uint_eq(chunks_of(&o).misses, 0);
	close_dataset(&o);
}
END_TEST

/* Rows of a band of chunks: a read for each chunk, not for each row of each. */
START_TEST(rows_of_a_chunk_are_read_together)
{
	struct h5_file_set_options options = with_workers(0);
	struct opened o = {0};
	unsigned before;

	open_dataset(&o, "plain", &options);
	expect(&o, 0, 4 * 1024); /* the index is in the cache now */
	before = o.reads;
	expect(&o, 3 * 1024, 40 * 1024);
	ck_assert_uint_eq(o.reads - before, 4);
	ck_assert_uint_eq(chunks_of(&o).misses, 0);
	close_dataset(&o);
	/* rows of 32 bytes in chunks of 8 KiB: 8 chunks across */
	open_dataset(&o, "narrow", &options);
	expect(&o, 0, 4);
	before = o.reads;
	expect(&o, 0, 64 * 256); /* 2 KiB of each */
	ck_assert_uint_eq(o.reads - before, 8);
	close_dataset(&o);
}
END_TEST

/* Short rows at the ends of a large read, and in the last rows of a band of chunks: their chunks do not come
 * whole. A small read is one of many that come back to the same chunk. */
START_TEST(ends_of_a_large_read)
{
	struct h5_file_set_options options = with_workers(0);
	struct opened o = {0};
	unsigned before;

	open_dataset(&o, "narrow", &options);
	expect(&o, 100, 256 * 100); /* the index is in the cache now */
	before = o.reads;
	expect(&o, 100, 256 * 100);
	ck_assert_uint_eq(o.reads - before, 8); /* with the rows beside them */
	expect(&o, 254 * 256 + 200, 256 * 100);
	ck_assert_uint_eq(chunks_of(&o).misses, 0);
	expect(&o, 256 * 10, 256 * 2);
	ck_assert_uint_eq(chunks_of(&o).misses, 8);
	expect(&o, 256 * 12, 256 * 2);
	ck_assert_uint_eq(chunks_of(&o).misses, 8);
	close_dataset(&o);
}
END_TEST

/* Rows of four chunks that are more than one call takes: 64 KiB of short ones, 256 longer ones. And pieces of
 * 200 chunks, of which 128 are noted; the chunks lie in two places. */
START_TEST(more_than_one_call_takes)
{
	static const struct {
		const char *name;
		unsigned reads;
	} cases[] = {{"tall", 8}, {"stout", 12}, {"long-rows", 8}, {"fence", 3}};
	struct h5_file_set_options options = with_workers(0);
	struct opened o = {0};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		unsigned before;

		open_dataset(&o, cases[i].name, &options);
		expect(&o, 0, 4);
		before = o.reads;
		expect(&o, 0, o.size);
		ck_assert_msg(o.reads - before == cases[i].reads, "%s: %u reads", cases[i].name,
			      o.reads - before);
		close_dataset(&o);
	}
}
END_TEST

/* Each copy has the bytes of its row, and nothing beside it is touched. */
START_TEST(rows_of_any_length)
{
	enum { ROWS = 3, MOST = 130, APART = 200 };
	uint8_t from[ROWS * MOST], to[ROWS * APART];

	for (size_t n = 1; n <= MOST; n++) {
		const struct h5_part_rows rows = {
			.first.n = n, .count = ROWS, .chunk_step = n, .dataset_step = APART};

		for (size_t i = 0; i < sizeof from; i++)
			from[i] = (uint8_t)(i * 7 + 1);
		memset(to, 0xa5, sizeof to);
		h5_copy_rows(&rows, from, to);
		for (size_t i = 0; i < sizeof to; i++) {
			size_t row = i / APART, at = i % APART;
			uint8_t wanted = at < n ? (uint8_t)((row * n + at) * 7 + 1) : 0xa5;

			ck_assert_msg(to[i] == wanted, "%zu bytes: byte %zu of row %zu", n, at, row);
		}
	}
}
END_TEST

START_TEST(an_io_without_readv_serves)
{
	static const char *const names[] = {"tiny",	 "plain", "narrow",  "tall", "stout",
					    "long-rows", "fence", "deflate", "many"};
	struct h5_file_set_options options = with_workers((unsigned)_i);
	struct opened o = {0};

	options.wrap = _i % 2 ? count_plain_calls : count_calls;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		open_dataset(&o, names[i], &options);
		expect(&o, 0, o.size);
		expect(&o, 1, o.size - 2);
		for (size_t at = 3; at < o.size; at += 33333)
			expect(&o, at, o.size - at < 33333 ? o.size - at : 33333);
		close_dataset(&o);
	}
}
END_TEST

/* Of what is behind the end of the file reading fails; what is before it, also in the same run, is there. */
START_TEST(a_file_cut_in_a_run)
{
	struct h5_file_set_options options = with_workers(2);
	struct opened o = {0};
	struct scratch s;
	uint64_t end;
	uint8_t *buf;

	scratch_init(&s, "reading.h5");
	open_path(&o, s.path, "plain", &options);
	expect(&o, 0, o.size);
	/* under us: the size that was seen at opening is not the file's any more */
	end = h5_file_size(h5_file_set_root(o.set));
	buf = malloc(o.size);
	for (uint64_t cut = end; cut > 1 << 16; cut -= cut / 5) {
		int rc;

		ck_assert_int_eq(truncate(s.path, (off_t)cut), 0);
		rc = h5_dataset_read(o.dataset, 0, buf, o.size);
		ck_assert(rc == 0 || rc == -EUCLEAN);
	}
	ck_assert_int_eq(truncate(s.path, 1 << 16), 0);
	ck_assert_int_eq(h5_dataset_read(o.dataset, 0, buf, o.size), -EUCLEAN);
	free(buf);
	close_dataset(&o);
	scratch_release(&s);
}
END_TEST

/* Who has read all of a chunk does not come back: it goes. One of which something is left stays. */
START_TEST(chunks_that_were_read_go)
{
	struct h5_file_set_options options = with_workers((unsigned)_i);
	struct opened o = {0};

	open_dataset(&o, "deflate", &options);
	expect(&o, 0, 100 * 1024); /* a band and a half of four chunks of 16 KiB, which are one value */
	ck_assert_uint_eq(chunks_of(&o).entries, 1);
	ck_assert_uint_eq(chunks_of(&o).misses, 2);
	expect(&o, 100 * 1024, 28 * 1024);
	ck_assert_uint_eq(chunks_of(&o).entries, 0);
	ck_assert_uint_eq(chunks_of(&o).misses, 2);
	close_dataset(&o);
	/* short reads: chunk by chunk */
	open_dataset(&o, "deflate", &options);
	for (size_t row = 0; row < 65; row++)
		expect(&o, row * 1024, 256);
	ck_assert_uint_eq(chunks_of(&o).entries, 1);
	ck_assert_uint_eq(chunks_of(&o).misses, 2);
	close_dataset(&o);
}
END_TEST

struct reader {
	struct opened *o;
	unsigned first;
	pthread_t thread;
};

static void *read_in_pieces(void *arg)
{
	enum { PIECE = 7000 };
	struct reader *r = arg;
	size_t pieces = r->o->size / PIECE;

	for (size_t i = 0; i < pieces; i++)
		expect(r->o, (i + r->first * pieces / 4) % pieces * PIECE, PIECE);
	return NULL;
}

START_TEST(readers_at_once)
{
	static const char *const names[] = {"deflate", "many", "plain"};
	struct h5_file_set_options options = with_workers(3);

	options.chunk_cache = _i % 2 ? 16 << 20 : 40000;
	for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
		struct opened o = {0};
		struct reader readers[4];

		open_dataset(&o, names[n], &options);
		for (unsigned i = 0; i < 4; i++) {
			readers[i] = (struct reader){.o = &o, .first = i};
			pthread_create(&readers[i].thread, NULL, read_in_pieces, &readers[i]);
		}
		for (unsigned i = 0; i < 4; i++)
			pthread_join(readers[i].thread, NULL);
		close_dataset(&o);
	}
}
END_TEST

static void *stop_in_first(void *arg)
{
	stops = true;
	expect(arg, 0, 1024);
	stops = false;
	return NULL;
}

/* Begins to read in another thread, which waits for the gate. */
static pthread_t stop_in_background(struct opened *o, void *(*read)(void *arg))
{
	pthread_t thread;

	watched = h5_file_set_chunks(o->set);
	reached = false;
	shut = true;
	ck_assert_int_eq(pthread_create(&thread, NULL, read, o), 0);
	while (!reached)
		sched_yield();
	return thread;
}

static void let_pass(pthread_t thread)
{
	shut = false;
	pthread_join(thread, NULL);
	watched = NULL;
}

/* What another thread is decoding comes last, and is waited for: nothing is decoded twice. */
START_TEST(what_others_decode_comes_last)
{
	static const char *const names[] = {"deflate", "large"}; /* rows of chunks, and chunks */
	static const size_t two[] = {128 * 1024, 2 * 128 * 1024};
	struct h5_file_set_options options = with_workers(0);
	struct opened o = {0};
	pthread_t thread;

	open_dataset(&o, names[_i], &options);
	expect(&o, o.size - 256, 256); /* the index is in the cache then */
	misses_before = 0;
	thread = stop_in_background(&o, stop_in_first);
	expect(&o, 0, two[_i]);
	let_pass(thread);
	/* The second one was decoded before the thread waited for the first one. */
	ck_assert_uint_eq(misses_before, 3);
	ck_assert_uint_eq(chunks_of(&o).misses, 3);
	close_dataset(&o);
}
END_TEST

/* A request for a whole chunk waits for the thread that decodes it. */
START_TEST(a_whole_chunk_is_waited_for)
{
	static const uint64_t first[2] = {0, 0};
	struct h5_file_set_options options = with_workers(0);
	struct h5_whole_chunk chunk;
	struct opened o = {0};
	pthread_t thread;
	uint8_t byte;

	open_dataset(&o, "large", &options);
	expect(&o, o.size - 256, 256); /* the index is in the cache then */
	thread = stop_in_background(&o, stop_in_first);
	SUCCEEDS(h5_whole_chunk_find(o.dataset, NULL, first, &chunk));
	SUCCEEDS(h5_whole_chunk_read(&chunk, 0, &byte, 1));
	ck_assert_uint_eq(byte, 3);
	let_pass(thread);
	close_dataset(&o);
}
END_TEST

static void *stop_in_all(void *arg)
{
	struct opened *o = arg;
	uint8_t data[5 * 7 * 4];

	stops = true;
	SUCCEEDS(h5_dataset_read(o->dataset, 0, data, sizeof data));
	stops = false;
	return NULL;
}

/* So does one who looks for holes in it. */
START_TEST(marks_are_waited_for)
{
	struct h5_file_set_options options = with_workers(0);
	char path[512], list[512], name[64];
	unsigned long long address, storage;
	struct opened o = {0};
	pthread_t thread;
	uint64_t found, again;
	FILE *f;

	scratch_fixture("structured_single_early_filtered.h5", path);
	scratch_fixture("structured.list", list);
	f = fopen(list, "r");
	ck_assert_ptr_nonnull(f);
	do {
		ck_assert_int_eq(fscanf(f, "%63s %llu %llu", name, &address, &storage), 3);
	} while (strcmp(name, "single_early_filtered"));
	fclose(f);
	options.wrap_arg = &o.reads;
	SUCCEEDS(h5_open_file(path, &options, &o.set, NULL));
	SUCCEEDS(h5_dataset_get(h5_file_set_root(o.set), address, &o.ref, &o.dataset));
	thread = stop_in_background(&o, stop_in_all);
	SUCCEEDS(h5_dataset_seek(o.dataset, 0, true, &found));
	let_pass(thread);
	ck_assert_uint_lt(found, o.dataset->size);
	SUCCEEDS(h5_dataset_seek(o.dataset, 0, true, &again));
	ck_assert_uint_eq(found, again);
	close_dataset(&o);
}
END_TEST

/* Chunks of a damaged file may begin at the same byte. A call ends before runs that are too many for it, even
 * if others from there are few. */
START_TEST(runs_from_the_same_byte)
{
	enum { MANY = 63, LONG = 1023, END = MANY * LONG, SHORT = 600, MUCH = 4000 };
	const struct h5_part_rows many = {
		.first.n = LONG, .count = MANY, .chunk_step = LONG, .dataset_step = LONG};
	const struct h5_part_rows too_many = {
		.first.n = SHORT, .count = 2, .chunk_step = SHORT, .dataset_step = SHORT};
	const struct h5_part_rows few = {.first.n = MUCH, .count = 1};
	static uint8_t bytes[END + MUCH], got[END + 2 * SHORT + MUCH];
	const struct h5_file_set_options options = {.block_cache = 1 << 20, .lock = H5_LOCK_NONE};
	struct h5_stored_runs runs;
	struct h5_file_set *set;
	char path[512];
	FILE *f;

	scratch_fixture("reading.h5", path);
	f = fopen(path, "rb");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fread(bytes, 1, sizeof bytes, f), sizeof bytes);
	fclose(f);
	SUCCEEDS(h5_open_file(path, &options, &set, NULL));
	h5_stored_runs_init(&runs, h5_file_set_root(set));
	SUCCEEDS(h5_stored_runs_add(&runs, 0, &many, got));
	SUCCEEDS(h5_stored_runs_add(&runs, END, &too_many, got + END));
	SUCCEEDS(h5_stored_runs_add(&runs, END, &few, got + END + 2 * SHORT));
	SUCCEEDS(h5_stored_runs_flush(&runs));
	ck_assert_mem_eq(got, bytes, END + 2 * SHORT);
	ck_assert_mem_eq(got + END + 2 * SHORT, bytes + END, MUCH);
	h5_stored_runs_release(&runs);
	h5_file_set_close(set);
}
END_TEST

/* What comes next is decoded without being asked for, once. */
START_TEST(what_comes_next_is_decoded_ahead)
{
	struct h5_file_set_options options = with_workers(2);
	struct opened o = {0};
	unsigned before;

	open_dataset(&o, "many", &options);
	ck_assert_uint_ge(h5_dataset_ahead(o.dataset), o.size);
	/* 32 chunks of 4000 bytes together, but the first of these not */
	h5_dataset_read_ahead(o.dataset, 128000, o.size - 128000);
	while (chunks_of(&o).entries < 9)
		sched_yield();
	before = o.reads;
	h5_dataset_read_ahead(o.dataset, 132000, o.size - 132000); /* all of it is there */
	expect(&o, 128000, o.size - 128000);
	ck_assert_uint_eq(o.reads, before);
	ck_assert_uint_eq(chunks_of(&o).misses, 9);
	close_dataset(&o);
	/* large chunks one by one */
	open_dataset(&o, "large", &options);
	h5_dataset_read_ahead(o.dataset, 16 * 8192, o.size - 16 * 8192);
	while (chunks_of(&o).entries < 3)
		sched_yield();
	before = o.reads;
	expect(&o, 16 * 8192, o.size - 16 * 8192);
	ck_assert_uint_eq(o.reads, before);
	ck_assert_uint_eq(chunks_of(&o).misses, 3);
	close_dataset(&o);
}
END_TEST

/* Bands end where chunks end, unless they are too large. */
START_TEST(ahead_ends_with_a_band)
{
	struct h5_file_set_options options = with_workers(2);
	struct opened o = {0};

	open_dataset(&o, "deflate", &options);
	ck_assert_uint_eq(h5_dataset_ahead_end(o.dataset, 1), 64 * 1024);
	ck_assert_uint_eq(h5_dataset_ahead_end(o.dataset, 64 * 1024), 64 * 1024);
	ck_assert_uint_eq(h5_dataset_ahead_end(o.dataset, 64 * 1024 + 1), 128 * 1024);
	ck_assert_uint_eq(h5_dataset_ahead_end(o.dataset, o.size + 1), o.size);
	close_dataset(&o);
	options.chunk_cache = 400000;
	open_dataset(&o, "wide", &options);
	ck_assert_uint_eq(h5_dataset_ahead_end(o.dataset, 12345), 12345);
	close_dataset(&o);
}
END_TEST

/* Rows of chunks that end with the dataset or before, and chunks that reach beyond it. */
START_TEST(chunks_at_edges)
{
	struct h5_file_set_options options = with_workers((unsigned)_i);
	static const size_t budgets[] = {16 << 20, 400000, 40000}, pieces[] = {179640, 30000, 20001, 10};
	struct opened o = {0};

	for (size_t b = 0; b < sizeof budgets / sizeof *budgets; b++)
		for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
			options.chunk_cache = budgets[b];
			open_dataset(&o, "edges", &options);
			for (size_t at = 0; at < o.size; at += pieces[p])
				expect(&o, at, o.size - at < pieces[p] ? o.size - at : pieces[p]);
			close_dataset(&o);
		}
}
END_TEST

/* Of a row of chunks some are stored. */
START_TEST(chunks_that_are_not_stored)
{
	struct h5_file_set_options options = with_workers((unsigned)_i);
	struct opened o = {0};
	int32_t values[10000];

	open_dataset(&o, "gaps", &options);
	ck_assert_uint_eq(o.size, sizeof values);
	SUCCEEDS(h5_dataset_read(o.dataset, 0, values, sizeof values));
	for (int i = 0; i < 10000; i++)
		ck_assert_int_eq(values[i], i / 100 >= 20 && i / 100 < 70 && i % 100 >= 20 && i % 100 < 70
						    ? 7 * i + 3
						    : 5);
	close_dataset(&o);
}
END_TEST

/* A damaged chunk takes those beside it along only if they are read as well. */
START_TEST(a_damaged_chunk_in_a_row)
{
	static const uint64_t second[] = {0, 1};
	struct h5_file_set_options options = with_workers((unsigned)_i);
	struct opened o = {0};
	struct h5_chunk chunk;
	struct scratch s;
	uint8_t buf[4096];
	FILE *f;

	scratch_init(&s, "reading.h5");
	open_path(&o, s.path, "deflate", &options);
	SUCCEEDS(h5_chunk_index_lookup(o.dataset->index, NULL, second, &chunk));
	f = fopen(s.path, "r+");
	ck_assert_int_eq(fseek(f, (long)chunk.address, SEEK_SET), 0);
	ck_assert_int_eq(fputs("no stream", f) < 0, 0);
	ck_assert_int_eq(fclose(f), 0);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(h5_dataset_read(o.dataset, 0, buf, sizeof buf), -EUCLEAN);
		/* half of the last row of the first four chunks, and rows of the next four */
		expect(&o, 63 * 1024 + 512, 2048);
		expect(&o, 512, 512);
		expect(&o, 0, 256);
		expect(&o, 64 * 1024, 64 * 1024);
	}
	close_dataset(&o);
	scratch_release(&s);
}
END_TEST

/* A quarter of the cache is the most that is filled ahead; nothing where nothing is to be decoded. */
START_TEST(not_too_much_is_decoded_ahead)
{
	struct h5_file_set_options options = with_workers(2);
	struct opened o = {0};

	options.chunk_cache = 400000;
	open_dataset(&o, "many", &options);
	ck_assert_uint_eq(h5_dataset_ahead(o.dataset), 100000);
	h5_dataset_read_ahead(o.dataset, 0, o.size);
	close_dataset(&o); /* while it may be under way */
	/* Rows of two chunks, of 4000 bytes each */
	options.chunk_cache = 4 * 128000;
	open_dataset(&o, "many", &options);
	parts = 0;
	h5_dataset_read_ahead(o.dataset, 0, o.size);
	ck_assert_uint_eq(parts, 16);
	close_dataset(&o);
	/* Three chunks of 128 KiB, or a byte less */
	for (unsigned i = 0; i < 2; i++) {
		options.chunk_cache = 4 * (3 * 128 * 1024 - i);
		open_dataset(&o, "large", &options);
		parts = 0;
		h5_dataset_read_ahead(o.dataset, 0, o.size);
		ck_assert_uint_eq(parts, 3 - i);
		close_dataset(&o);
	}
	options.chunk_cache = 400000;
	/* ten rows, unless they are too many */
	open_dataset(&o, "wide", &options);
	ck_assert_uint_eq(h5_dataset_ahead(o.dataset), 100000);
	close_dataset(&o);
	options.chunk_cache = 400 << 20;
	open_dataset(&o, "wide", &options);
	ck_assert_uint_eq(h5_dataset_ahead(o.dataset), 10 * 1000 * 1000 * 4);
	close_dataset(&o);
	options.workers = 0;
	open_dataset(&o, "many", &options);
	ck_assert_uint_eq(h5_dataset_ahead(o.dataset), 0);
	close_dataset(&o);
	options.workers = 2;
	open_dataset(&o, "tiny", &options);
	ck_assert_uint_eq(h5_dataset_ahead(o.dataset), 0);
	close_dataset(&o);
}
END_TEST

/* Memory is short while chunks are to be decoded ahead: fewer are, or none, and nothing is lost. */
START_TEST(no_memory_to_read_ahead)
{
	static const char *const names[] = {"large", "many"}; /* chunks, and rows of chunks */
	struct h5_file_set_options options = with_workers(2);
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		struct opened o = {0};

		open_dataset(&o, names[_i], &options);
		/* The index is in the cache then. */
		expect(&o, o.size - 256, 256);
		fault_alloc_arm(n);
		fault_alloc_count(true);
		h5_dataset_read_ahead(o.dataset, 0, o.size / 2);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		expect(&o, 0, o.size / 2);
		close_dataset(&o);
		ck_assert(fired || n > 2);
	}
}
END_TEST

/* Only a mount for reading decodes ahead: in one for writing, chunks may change before they are read. */
START_TEST(a_file_that_is_read_in_order)
{
	const struct h5_file_set_options options = {.block_cache = 1 << 20,
						    .chunk_cache = 16 << 20,
						    .lock = H5_LOCK_NONE,
						    .workers = 2,
						    .writable = _i,
						    .check = h5_vfs_check_object};
	struct vfs_scene scene;
	struct h5_node *node;
	struct h5_handle *handle;

	vfs_scene_open_as(&scene, "reading.h5", &options);
	SUCCEEDS(vfs_scene_find(&scene, "many", &node));
	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, O_RDONLY, &handle));
	parts = 0;
	for (uint64_t i = 0; i < 5; i++) {
		uint8_t bytes[4000];
		size_t got;

		SUCCEEDS(h5_vfs_read(handle, i * sizeof bytes, bytes, sizeof bytes, &got));
		ck_assert_uint_eq(got, sizeof bytes);
	}
	ck_assert_int_eq(parts > 0, !options.writable);
	h5_vfs_close_file(handle);
	h5_vfs_forget(scene.vfs, node, 1);
	vfs_scene_close(&scene);
}
END_TEST

UNIT_MAIN_LOOPS("reading", {neighbours_are_read_together, 1}, {rows_of_a_chunk_are_read_together, 1},
		{ends_of_a_large_read, 1}, {more_than_one_call_takes, 1}, {rows_of_any_length, 1},
		{an_io_without_readv_serves, 4}, {a_file_cut_in_a_run, 1}, {chunks_that_were_read_go, 3},
		{readers_at_once, 2}, {what_others_decode_comes_last, 2}, {a_whole_chunk_is_waited_for, 1},
		{marks_are_waited_for, 1}, {runs_from_the_same_byte, 1},
		{what_comes_next_is_decoded_ahead, 1}, {ahead_ends_with_a_band, 1}, {chunks_at_edges, 3},
		{chunks_that_are_not_stored, 2}, {a_damaged_chunk_in_a_row, 3},
		{not_too_much_is_decoded_ahead, 1}, {nodes_of_an_index_far_away, 1},
		{no_memory_to_read_ahead, 2}, {a_file_that_is_read_in_order, 2})
