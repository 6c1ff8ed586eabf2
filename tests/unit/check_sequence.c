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

UNIT_MAIN("sequence", the_window_is_filled_up_in_steps, a_reader_that_begins_in_the_middle,
	  a_file_that_is_near, a_file_that_is_no_dataset)
