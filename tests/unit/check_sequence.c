/* What h5fs asks for in advance while a program reads a file in order. The test stands in for the file that
 * is far away, and remembers what it is asked for. */
#include "change/open.h"
#include "dataset/private.h"
#include "scratch.h"
#include "vfs/sequence.h"

#include <stdlib.h>

enum { SIZE = 2000 }; /* bytes of what is read */

struct far {
	struct h5_io io;
	struct h5_io *inner;
	uint64_t window;
	struct h5_io_range asked; /* last; of no bytes: nothing since it was looked at */
};

static int far_read(struct h5_io *io, uint64_t offset, void *buf, size_t n, size_t *got)
{
	return h5_io_read_some(((struct far *)io)->inner, offset, buf, n, got);
}

static int far_stat(struct h5_io *io, struct h5_io_stat *st)
{
	return h5_io_stat(((struct far *)io)->inner, st);
}

static uint64_t far_want(struct h5_io *io, const struct h5_io_range *ranges, size_t count,
			 enum h5_wanted when)
{
	struct far *far = (struct far *)io;

	ck_assert(!count || (count == 1 && !far->asked.n && when == H5_WANTED_SOON));
	if (count)
		far->asked = *ranges;
	return far->window;
}

static void far_close(struct h5_io *io)
{
	h5_io_close(((struct far *)io)->inner);
}

static struct h5_io *wrap(void *arg, struct h5_io *io)
{
	static const struct h5_io_ops ops = {
		.read = far_read, .stat = far_stat, .want = far_want, .close = far_close};
	struct far *far = arg;

	far->io.ops = &ops;
	far->inner = io;
	return &far->io;
}

struct scene {
	struct far far;
	struct h5_file_set *set;
	struct h5_dataset dataset; /* contiguous, from the begin of the file */
	struct h5_sequences sequences;
};

static void begin(struct scene *s, uint64_t window)
{
	struct h5_file_set_options options = {.block_cache = 1 << 20,
					      .chunk_cache = 1 << 20,
					      .lock = H5_LOCK_NONE,
					      .wrap = wrap,
					      .wrap_arg = &s->far};
	char path[512];

	*s = (struct scene){0};
	scratch_fixture("write_faults.h5", path);
	SUCCEEDS(h5_open_file(path, &options, &s->set, NULL));
	s->dataset.ops = &h5_layout_contiguous;
	s->dataset.file = h5_file_set_root(s->set);
	s->dataset.layout.contiguous.size = s->dataset.size = SIZE;
	/* Opening the file may have asked for something. */
	s->far.asked.n = 0;
	s->far.window = window;
}

static void end(struct scene *s)
{
	h5_file_set_close(s->set);
}

/* A read of n bytes makes the daemon ask for that range; of no bytes: for nothing. */
static void reads(struct scene *s, uint64_t offset, size_t n, uint64_t asked, uint64_t asked_n)
{
	h5_sequences_read(&s->sequences, &s->dataset, offset, n);
	ck_assert_uint_eq(s->far.asked.n, asked_n);
	if (asked_n)
		ck_assert_uint_eq(s->far.asked.offset, asked);
	s->far.asked.n = 0;
}

START_TEST(the_window_is_filled_up_in_steps)
{
	struct scene s;

	begin(&s, 800);
	reads(&s, 0, 100, 100, 800);
	/* Less than an eighth of the window is missing. */
	reads(&s, 100, 50, 0, 0);
	reads(&s, 150, 49, 0, 0);
	reads(&s, 199, 1, 900, 100);
	reads(&s, 200, 1000, 1200, 800);
	reads(&s, 1200, 800, 0, 0);
	end(&s);
}
END_TEST

/* The first read alone asks for nothing, unless it is at the begin. */
START_TEST(a_reader_that_begins_in_the_middle)
{
	struct scene s;

	begin(&s, 800);
	reads(&s, 500, 100, 0, 0);
	reads(&s, 600, 100, 700, 800);
	end(&s);
}
END_TEST

START_TEST(a_file_that_is_near)
{
	struct scene s;

	begin(&s, 0);
	for (unsigned i = 0; i < 10; i++)
		reads(&s, 100 * i, 100, 0, 0);
	end(&s);
}
END_TEST

START_TEST(a_file_that_is_no_dataset)
{
	struct h5_sequences sequences = {0};
	struct h5_io_range range;

	ck_assert(!h5_sequences_want(&sequences, SIZE, 800, 0, 100, &range));
	ck_assert(h5_sequences_want(&sequences, SIZE, 800, 100, 100, &range));
	ck_assert_uint_eq(range.offset, 200);
	ck_assert_uint_eq(range.n, 800);
	ck_assert(h5_sequences_want(&sequences, SIZE, 800, 200, 950, &range));
	ck_assert_uint_eq(range.offset, 1150);
	ck_assert_uint_eq(range.n, 800);
	/* The rest, though it is small. */
	ck_assert(h5_sequences_want(&sequences, SIZE, 800, 1150, 100, &range));
	ck_assert_uint_eq(range.offset, 1950);
	ck_assert_uint_eq(range.n, SIZE - 1950);
	ck_assert(!h5_sequences_want(&sequences, SIZE, 800, 1250, 100, &range));
	ck_assert(!h5_sequences_want(&sequences, SIZE, 0, 1900, 100, &range));
}
END_TEST

/* The bytes that are asked for grow with what was read: from 1 MiB on, after some reads from 4 MiB, and then
 * 32 times as much. */
START_TEST(the_window_grows)
{
	const uint64_t mib = 1 << 20, size = UINT64_C(1) << 40, most = 1 << 30;
	struct h5_sequences one = {0};
	struct h5_io_range range;

	ck_assert(!h5_sequences_want(&one, size, most, 0, 1000, &range));
	ck_assert(h5_sequences_want(&one, size, most, 1000, 1000, &range));
	ck_assert_uint_eq(range.offset, 2000);
	ck_assert_uint_eq(range.n, mib);
	/* Less than an eighth of it is missing. */
	ck_assert(!h5_sequences_want(&one, size, most, 2000, 1000, &range));
	one.each[0].in_order = 2;
	ck_assert(h5_sequences_want(&one, size, most, 3000, 1000, &range));
	ck_assert_uint_eq(range.offset, 2000 + mib);
	ck_assert_uint_eq(range.n, 3 * mib + 2000);
	ck_assert(h5_sequences_want(&one, size, most, 4000, mib, &range));
	ck_assert_uint_eq(range.offset, 4000 + 4 * mib);
	ck_assert_uint_eq(range.n, 29 * mib + UINT64_C(32) * 4000);
	ck_assert(h5_sequences_want(&one, size, 40 * mib, 4000 + mib, 9 * mib, &range));
	ck_assert_uint_eq(range.n, 17 * mib - UINT64_C(32) * 4000);
}
END_TEST

/* ---- which of the sequences a read belongs to ---- */

enum { MIB = 1 << 20, HUGE_FILE = 1 << 30 };

static struct h5_sequences all;

static bool read_at(uint64_t size, uint64_t offset, size_t n)
{
	struct h5_io_range range;

	return h5_sequences_want(&all, size, 1000, offset, n, &range);
}

static unsigned sequences(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 4; i++)
		n += all.each[i].read_to != 0;
	return n;
}

/* Two reads are in order if there are at most 4 MiB between them. */
START_TEST(gaps)
{
	for (unsigned more = 0; more < 2; more++) {
		all = (struct h5_sequences){0};
		ck_assert(!read_at(HUGE_FILE, 100 * MIB, 100));
		ck_assert(!read_at(HUGE_FILE, 100 * MIB + 100, 100));
		ck_assert(read_at(HUGE_FILE, 104 * MIB + 200 + more, 100) == !more);
		ck_assert_uint_eq(sequences(), 1 + more);
		all = (struct h5_sequences){0};
		ck_assert(!read_at(HUGE_FILE, 100 * MIB, 10 * MIB));
		ck_assert(!read_at(HUGE_FILE, 99 * MIB, 100)); /* before where it began */
		ck_assert_uint_eq(sequences(), 2);
		all = (struct h5_sequences){0};
		ck_assert(!read_at(HUGE_FILE, 100 * MIB, 4 * MIB));
		ck_assert(!read_at(HUGE_FILE, 100 * MIB - more, 100));
		ck_assert_uint_eq(sequences(), 1 + more);
	}
}
END_TEST

/* Reads behind the front belong to it, but not before its begin, not if it has come to the end, and no more
 * than 16 before it goes on. */
START_TEST(late_reads)
{
	for (unsigned round = 0; round < 2; round++) {
		all = (struct h5_sequences){0};
		ck_assert(!read_at(HUGE_FILE, 50 * MIB, 50 * MIB));
		for (unsigned i = 0; i < 10; i++)
			read_at(HUGE_FILE, (50 + i) * MIB, 100);
		ck_assert_uint_eq(sequences(), 1);
		/* The front goes on, or it does not: then it is read where it is. */
		read_at(HUGE_FILE, 100 * MIB - !round, 1);
		for (unsigned i = 0; i < (round ? 16 : 6); i++)
			read_at(HUGE_FILE, 60 * MIB, 100);
		ck_assert_uint_eq(sequences(), 1);
		read_at(HUGE_FILE, 60 * MIB, 100);
		ck_assert_uint_eq(sequences(), 2);
	}
	all = (struct h5_sequences){0};
	read_at(HUGE_FILE, 50 * MIB, 50 * MIB);
	read_at(HUGE_FILE, 50 * MIB - 1, 100);
	ck_assert_uint_eq(sequences(), 2);
	all = (struct h5_sequences){0};
	read_at(100 * MIB, 50 * MIB, 50 * MIB);
	read_at(100 * MIB, 60 * MIB, 100);
	ck_assert_uint_eq(sequences(), 2);
}
END_TEST

/* A new one takes the place of the one that was used longest ago. */
START_TEST(the_oldest_goes)
{
	all = (struct h5_sequences){0};
	for (unsigned i = 1; i <= 4; i++)
		read_at(HUGE_FILE, i * 100 * MIB, 100);
	ck_assert_uint_eq(sequences(), 4);
	read_at(HUGE_FILE, 100 * MIB + 100, 100);
	read_at(HUGE_FILE, 300 * MIB + 100, 100);
	read_at(HUGE_FILE, 500 * MIB, 100);
	read_at(HUGE_FILE, 600 * MIB, 100);
	/* The first and the third are still there. */
	ck_assert(read_at(HUGE_FILE, 100 * MIB + 200, 100));
	ck_assert(read_at(HUGE_FILE, 300 * MIB + 200, 100));
	ck_assert(!read_at(HUGE_FILE, 200 * MIB + 100, 100));
	ck_assert(!read_at(HUGE_FILE, 400 * MIB + 100, 100));
}
END_TEST

UNIT_MAIN("sequence", the_window_is_filled_up_in_steps, a_reader_that_begins_in_the_middle,
	  a_file_that_is_near, a_file_that_is_no_dataset, the_window_grows, gaps, late_reads, the_oldest_goes)
