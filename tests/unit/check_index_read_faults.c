/* Each read and each allocation of what is asked of a chunk index, or changed in it, fails once, and each
 * time that it asks whether it is still wanted, it is not: that is the error, the index is as it was, and
 * what was asked for can be asked for again. */
#include "base/error.h"
#include "base/interrupt.h"
#include "chunk_index/private.h"
#include "fault_alloc.h"
#include "index_target.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ASKED = 8 };

/* Of the chunks with these first coordinates; a rank of more has the same number as the others, if they fit.
 */
struct scene {
	struct target t;
	struct fault_io fault;
	char sound[192];	/* the path of a copy of the file */
	const uint64_t *chunks; /* by their first coordinates */
};

/* What was found. */
struct found {
	uint64_t count, sum;
};

static void add(struct found *found, uint64_t number)
{
	found->count++;
	found->sum = found->sum * 31 + number;
}

static void scaled_of(const struct scene *s, uint64_t n, uint64_t scaled[H5_RANK_MAX])
{
	memset(scaled, 0, H5_RANK_MAX * sizeof *scaled);
	scaled[0] = n;
	if (s->t.space.rank > 1)
		scaled[1] = n % 5;
}

static int set(const struct scene *s, uint64_t n, uint64_t address)
{
	const struct h5_chunk chunk = {.address = address, .size = 1, .filter_mask = s->t.filter_mask};
	uint64_t scaled[H5_RANK_MAX];

	scaled_of(s, n, scaled);
	return h5_chunk_index_set(s->t.index, scaled, &chunk);
}

/* ---- what is asked for ---- */

static int add_chunk(void *arg, const struct h5_chunk *chunk)
{
	add(arg, chunk->address + 7 * chunk->size);
	return 0;
}

static int add_extent(void *arg, uint64_t address, uint64_t n)
{
	add(arg, address + 7 * n);
	return 0;
}

static int walk(struct scene *s, struct found *found)
{
	return h5_chunk_index_walk(s->t.index, add_chunk, found);
}

static int visit_extents(struct scene *s, struct found *found)
{
	const struct h5_extent_visits visits = {add_extent, add_extent, found};

	return h5_chunk_index_extents(s->t.index, &visits);
}

static int look_up(struct scene *s, struct found *found)
{
	struct h5_chunk_cursor cursor = {0};
	int rc = 0;

	for (unsigned i = 0; i < ASKED && !rc; i++) {
		uint64_t scaled[H5_RANK_MAX];
		struct h5_chunk chunk;

		scaled_of(s, s->chunks[i], scaled);
		rc = h5_chunk_index_lookup(s->t.index, i % 2 ? NULL : &cursor, scaled, &chunk);
		add(found, chunk.address);
	}
	h5_chunk_cursor_release(s->t.index, &cursor);
	return rc;
}

static int seek(struct scene *s, struct found *found)
{
	struct h5_chunk_cursor cursor = {0};
	int rc = 0;

	for (unsigned i = 0; i < ASKED && !rc; i++) {
		uint64_t scaled[H5_RANK_MAX], next[H5_RANK_MAX] = {0};
		bool stored;

		scaled_of(s, s->chunks[i] + 1, scaled);
		rc = h5_chunk_index_gap(s->t.index, &cursor, scaled, &stored, next);
		add(found, stored ? 1 : next[0]);
	}
	h5_chunk_cursor_release(s->t.index, &cursor);
	return rc;
}

/* ---- what is changed ---- */

static int move_first(struct scene *s, struct found *found)
{
	(void)found;
	return set(s, s->chunks[0], 3000);
}

static int move_last(struct scene *s, struct found *found)
{
	(void)found;
	return set(s, s->chunks[ASKED - 2], 3008);
}

static int insert(struct scene *s, struct found *found)
{
	(void)found;
	return set(s, s->chunks[ASKED - 1], 3016);
}

static int remove_one(struct scene *s, struct found *found)
{
	(void)found;
	return set(s, s->chunks[ASKED / 2], H5_UNDEF);
}

static int trim(struct scene *s, struct found *found)
{
	return h5_chunk_index_trim(s->t.index, s->chunks[1] + 1, add_chunk, found);
}

static const struct {
	int (*ask)(struct scene *s, struct found *found);
	bool changes;
	int added; /* chunks; a trim takes those out that it visits */
} questions[] = {{walk, false, 0},  {visit_extents, false, 0}, {look_up, false, 0},
		 {seek, false, 0},  {move_first, true, 0},     {move_last, true, 0},
		 {insert, true, 1}, {remove_one, true, -1},    {trim, true, 0}};
enum { QUESTIONS = sizeof questions / sizeof *questions };

/* Nothing is in memory. */
static void open_sound(struct scene *s)
{
	scratch_copy(s->sound, s->t.scratch.path);
	target_open(&s->t);
}

static struct found contents_of(struct scene *s)
{
	struct found found = {0};

	SUCCEEDS(walk(s, &found));
	return found;
}

static void check_found(const struct found *now, const struct found *expected)
{
	ck_assert_uint_eq(now->count, expected->count);
	ck_assert_uint_eq(now->sum, expected->sum);
}

/* What fails. */
enum kind { READ, ALLOCATION, WANT, KINDS };

static const char *const kind_names[] = {"read", "allocation", "want"};
static const int errors[] = {-EIO, -ENOMEM, -EINTR};

static unsigned long wants_left; /* 0: the request is wanted */

static bool is_unwanted(void *arg)
{
	(void)arg;
	return wants_left && !--wants_left;
}

static void arm(struct scene *s, enum kind kind, unsigned long n)
{
	const struct h5_interrupt long_ago = {.ask = is_unwanted};

	if (kind == READ)
		fault_io_arm(&s->fault, n);
	else if (kind == ALLOCATION)
		fault_alloc_arm(n);
	wants_left = kind == WANT ? n : 0;
	h5_interrupt_set(&long_ago);
}

static bool disarm(struct scene *s, enum kind kind)
{
	h5_interrupt_begin(NULL, NULL);
	return kind == READ	    ? fault_io_disarm(&s->fault)
	       : kind == ALLOCATION ? fault_alloc_disarm()
				    : !wants_left;
}

static int ask(struct scene *s, unsigned question, struct found *found)
{
	int rc;

	fault_alloc_count(true);
	rc = questions[question].ask(s, found);
	fault_alloc_count(false);
	return rc;
}

/* The n-th of the kind fails; false: there are fewer. */
static bool fail_one(struct scene *s, unsigned question, enum kind kind, unsigned long n,
		     const struct found *answer, const struct found *before, const struct found *after)
{
	const int error = errors[kind];
	struct h5_chunk_layout layout;
	struct found found = {0};
	bool fired;
	int rc;

	open_sound(s);
	layout = *h5_chunk_index_layout(s->t.index);
	arm(s, kind, n);
	rc = ask(s, question, &found);
	fired = disarm(s, kind);
	ck_assert_msg(!rc || (fired && rc == error && h5_error_last()->code == error),
		      "question %u, %s %lu: %d %s", question, kind_names[kind], n, rc, h5_error_last()->text);
	/* Space that is given up may be lost; and what is only kept in the cache need not be. */
	ck_assert(rc || !fired || kind == ALLOCATION || (kind == READ && questions[question].changes));
	if (rc) {
		ck_assert_mem_eq(h5_chunk_index_layout(s->t.index), &layout, sizeof layout);
		found = contents_of(s);
		check_found(&found, before);
		memset(&found, 0, sizeof found);
		SUCCEEDS(questions[question].ask(s, &found));
	}
	check_found(&found, answer);
	if (questions[question].changes) {
		SUCCEEDS(target_commit(&s->t));
		target_close(&s->t);
		target_open(&s->t);
	}
	found = contents_of(s);
	check_found(&found, after);
	target_close(&s->t);
	return fired;
}

static void fail_each(struct scene *s, unsigned question, unsigned long stride)
{
	struct found answer = {0}, before, after;

	open_sound(s);
	before = contents_of(s);
	ck_assert_uint_gt(before.count, 0);
	SUCCEEDS(questions[question].ask(s, &answer));
	after = contents_of(s);
	ck_assert_uint_eq(after.count + (questions[question].ask == trim ? answer.count : 0),
			  before.count + (uint64_t)questions[question].added);
	target_close(&s->t);
	for (enum kind kind = 0; kind < KINDS; kind++) {
		unsigned long n = 1;

		while (fail_one(s, question, kind, n, &answer, &before, &after))
			n += stride;
		ck_assert(n > 1 || kind == WANT);
	}
}

START_TEST(each_step_can_fail)
{
	static const struct {
		const char *file, *name;
		uint64_t chunks[ASKED]; /* all but the last one are there, */
		uint64_t filled;	/* and so many from the first on */
		unsigned long stride;
		bool moves; /* with the first change, for its header lies across a page */
	} cases[] = {{"btree1_write-2.h5", "1f", {0, 1, 20, 21, 25, 30, 39, 40}, 40, 1, false},
		     {"btree2_write-empty.h5", "filtered", {0, 10, 20, 30, 40, 50, 149, 150}, 150, 1, false},
		     /* in the index block, in data blocks of it, in others, and in pages */
		     {"chunk_index_write-plain.h5",
		      "a",
		      {0, 5, 30, 300, 1000, 20000, 131500, 132500},
		      0,
		      1,
		      false},
		     {"chunk_index_write-crossing-sparse.h5",
		      "a",
		      {0, 5, 30, 300, 1000, 20000, 131500, 132500},
		      0,
		      1,
		      true},
		     /* many blocks */
		     {"chunk_index_write-crossing.h5",
		      "a",
		      {0, 5, 30, 300, 1000, 20000, 131500, 140000},
		      0,
		      397,
		      true},
		     {"fixed_array_write-block.h5", "a", {0, 5, 30, 100, 200, 300, 400, 999}, 0, 1, false},
		     {"fixed_array_write-paged.h5", "a", {0, 5, 30, 100, 200, 300, 1500, 3000}, 0, 1, false},
		     {"fixed_array_write-crossing-paged.h5",
		      "a",
		      {0, 5, 30, 300, 1000, 2000, 2099, 4999},
		      0,
		      1,
		      true}};
	struct scene s = {.fault = {.error = -EIO, .reads = true}, .chunks = cases[_i].chunks};

	target_init(&s.t, cases[_i].file, cases[_i].name, &s.fault);
	for (uint64_t n = 0; n < cases[_i].filled; n++)
		SUCCEEDS(set(&s, n, 800 + 8 * n));
	for (unsigned i = 0; i + 1 < ASKED && !cases[_i].moves; i++)
		SUCCEEDS(set(&s, s.chunks[i], 2800 + 8 * i));
	SUCCEEDS(target_commit(&s.t));
	target_close(&s.t);
	snprintf(s.sound, sizeof s.sound, "%s.sound", s.t.scratch.path);
	scratch_copy(s.t.scratch.path, s.sound);
	for (unsigned question = 0; question < QUESTIONS; question++)
		fail_each(&s, question, cases[_i].stride);
	unlink(s.sound);
	target_release(&s.t);
}
END_TEST

/* ---- what a kill must not tear ---- */

enum { PAGE_CHUNKS = 32, PAGE = PAGE_CHUNKS * 8 + 4, PAGES = 1100 };

/* A page that lies across two pages of the file, even if only its checksum does, does not change in place,
 * also when memory is short. */
START_TEST(a_page_across_two_cells)
{
	uint64_t inside = H5_UNDEF, edge = H5_UNDEF, before;
	struct target t;
	bool fired = true;

	target_init(&t, "fixed_array_write-block.h5", "a", NULL);
	t.layout.chunked.fixed_array.page_bits = 5;
	t.layout.chunked.dims[0] = 1;
	t.space.dims[0] = t.space.max[0] = PAGES * PAGE_CHUNKS;
	SUCCEEDS(target_open_index(&t));
	for (uint64_t page = 0; page < PAGES; page++)
		SUCCEEDS(target_set(&t, page * PAGE_CHUNKS));
	SUCCEEDS(h5_tx_commit(t.file));
	before = t.index->fixed_array.data_block;
	for (uint64_t page = 0; page < PAGES; page++) {
		uint64_t begin = before + t.index->fixed_array.block_size + page * PAGE,
			 cell = begin / H5_CELL;

		if ((begin + PAGE - 1) / H5_CELL == cell)
			inside = page;
		else if ((begin + PAGE - 8 - 1) / H5_CELL == cell)
			edge = page;
	}
	ck_assert(inside != H5_UNDEF && edge != H5_UNDEF);
	SUCCEEDS(target_set(&t, inside * PAGE_CHUNKS + 1));
	ck_assert_uint_eq(t.index->fixed_array.data_block, before);
	t.raw_left = 10;
	for (unsigned n = 1; fired; n++) {
		int rc;

		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = target_set(&t, edge * PAGE_CHUNKS + 1);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert(!rc || (fired && rc == -ENOMEM));
		ck_assert_int_eq(t.index->fixed_array.data_block == before, rc != 0);
		if (!rc)
			break;
	}
	for (uint64_t page = 0; page < PAGES; page++) {
		target_assert_stored(&t, page * PAGE_CHUNKS, page * PAGE_CHUNKS + 1);
		if (page == inside || page == edge)
			target_assert_stored(&t, page * PAGE_CHUNKS + 1, page * PAGE_CHUNKS + 2);
	}
	ck_assert_uint_eq(target_count(&t), PAGES + 2);
	target_release(&t);
}
END_TEST

UNIT_MAIN_LOOPS("index_read_faults", {each_step_can_fail, 8}, {a_page_across_two_cells, 1})
