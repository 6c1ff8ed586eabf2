/* Lookups with a cursor find what those without one find, and ask the cache for less. */
#include "change/open.h"
#include "chunk_index_account.h"

enum { WINDOW = 2500 }; /* chunks; more than any block of an index has */

struct walker {
	struct opened o;
	struct fixture f;
	uint64_t counts[H5_RANK_MAX]; /* chunks along each dimension */
	uint64_t n;		      /* of all */
	struct h5_chunk_cursor cursor;
};

static bool open_next(FILE *text, struct walker *w)
{
	struct h5_file_set *set;

	memset(w, 0, sizeof *w);
	if (!read_fixture(text, &w->f))
		return false;
	ck_assert_int_eq(h5_open_file(data_path(w->f.file), &options, &set, NULL), 0);
	ck_assert_msg(!open_index(&w->o, set, &w->f), "%s: %s", w->f.name, h5_error_last()->text);
	w->n = 1;
	for (unsigned d = 0; d < w->f.space.rank; d++) {
		const uint64_t chunk = w->o.layout.chunked.dims[d];

		w->counts[d] = (w->f.space.dims[d] + chunk - 1) / chunk;
		w->n *= w->counts[d];
	}
	return true;
}

static void close_this(struct walker *w)
{
	h5_chunk_cursor_release(w->o.index, &w->cursor);
	h5_chunk_cursor_release(w->o.index, &w->cursor);
	close_index(&w->o);
	free(w->f.chunks);
}

static void scaled_of(const struct walker *w, uint64_t n, uint64_t *scaled)
{
	for (unsigned d = w->f.space.rank; d-- > 0; n /= w->counts[d])
		scaled[d] = n % w->counts[d];
}

static void look(struct walker *w, struct h5_chunk_cursor *cursor, uint64_t n, struct h5_chunk *chunk)
{
	uint64_t scaled[H5_RANK_MAX];

	scaled_of(w, n, scaled);
	ck_assert_msg(!h5_chunk_index_lookup(w->o.index, cursor, scaled, chunk), "%s: %s", w->f.name,
		      h5_error_last()->text);
}

static void compare(struct walker *w, uint64_t n)
{
	struct h5_chunk with, without;

	look(w, &w->cursor, n, &with);
	look(w, NULL, n, &without);
	ck_assert_msg(with.address == without.address && with.size == without.size &&
			      with.filter_mask == without.filter_mask,
		      "%s %s chunk %ju: at %ju, not %ju", w->f.file, w->f.name, (uintmax_t)n,
		      (uintmax_t)with.address, (uintmax_t)without.address);
}

static uint64_t random_below(uint64_t n)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 20) % n;
}

/* Places where to begin: all of a small index; of a large one some, first and last among them. */
static uint64_t next_window(const struct walker *w, uint64_t from)
{
	uint64_t step = w->n > 100000 ? w->n / 40 : WINDOW;

	return from + WINDOW < w->n && from + step + WINDOW > w->n ? w->n - WINDOW : from + step;
}

static void in_order(struct walker *w)
{
	for (uint64_t from = 0; from < w->n; from = next_window(w, from))
		for (uint64_t n = from; n < w->n && n < from + WINDOW; n++)
			compare(w, n);
}

static void in_reverse(struct walker *w)
{
	for (uint64_t from = 0; from < w->n; from = next_window(w, from))
		for (uint64_t n = h5_min(from + WINDOW, w->n); n-- > from;)
			compare(w, n);
}

static void in_strides(struct walker *w)
{
	static const uint64_t strides[] = {2, 7, 64, 83, 997, 1023, 1024, 1025};

	for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
		for (uint64_t n = 0, k = 0; n < w->n && k < WINDOW; n += strides[i], k++)
			compare(w, n);
}

static void at_random(struct walker *w)
{
	for (unsigned i = 0; w->n && i < WINDOW; i++) {
		uint64_t n = random_below(w->n);

		compare(w, n);
		compare(w, n ? n - 1 : n);
		compare(w, h5_min(n + random_below(3), w->n - 1));
	}
}

static void (*const orders[])(struct walker *) = {in_order, in_reverse, in_strides, at_random};

START_TEST(the_same_as_without)
{
	unsigned seen[H5_INDEX_BTREE2 + 1] = {0};
	FILE *text = open_account();
	struct walker w;

	while (open_next(text, &w)) {
		orders[_i](&w);
		seen[w.o.layout.chunked.index]++;
		close_this(&w);
	}
	fclose(text);
	for (unsigned i = 0; i <= H5_INDEX_BTREE2; i++)
		ck_assert_uint_gt(seen[i], 0);
}
END_TEST

/* A cursor that was released answers for nothing. */
START_TEST(released_after_each_lookup)
{
	unsigned seen[H5_INDEX_BTREE2 + 1] = {0};
	FILE *text = open_account();
	struct walker w;

	while (open_next(text, &w)) {
		for (uint64_t n = 0; n < w.n && n < 50; n++) {
			struct h5_chunk chunk;

			compare(&w, n);
			h5_chunk_cursor_release(w.o.index, &w.cursor);
			compare(&w, n);
			look(&w, NULL, n, &chunk);
			seen[w.o.layout.chunked.index] += chunk.address != H5_UNDEF;
		}
		close_this(&w);
	}
	fclose(text);
	for (unsigned i = 0; i <= H5_INDEX_BTREE2; i++)
		ck_assert_uint_gt(seen[i], 0);
}
END_TEST

/* ---- what it costs ---- */

static uint64_t asked(const struct walker *w)
{
	struct h5_lru_stats stats;

	h5_lru_stats(h5_file_set_blocks(w->o.set), &stats);
	return stats.hits + stats.misses;
}

/* Requests to the cache by lookups of the chunks from `first` up to `end`. */
static uint64_t cost(struct walker *w, struct h5_chunk_cursor *cursor, uint64_t first, uint64_t end)
{
	uint64_t before = asked(w);
	struct h5_chunk chunk;

	for (uint64_t n = first; n < end; n++)
		look(w, cursor, n, &chunk);
	return asked(w) - before;
}

START_TEST(neighbours_ask_once_a_block)
{
	unsigned seen[H5_INDEX_BTREE2 + 1] = {0};
	FILE *text = open_account();
	struct walker w;

	while (open_next(text, &w)) {
		uint64_t n = h5_min(w.n, 20000), without = cost(&w, NULL, 0, n);
		uint64_t with = cost(&w, &w.cursor, 0, n);

		/* rows of chunks that an array doesn't number one after the other */
		if (n >= 1000 && without)
			ck_assert_msg(with < without / 10, "%s: %ju, %ju", w.f.name, (uintmax_t)with,
				      (uintmax_t)without);
		seen[w.o.layout.chunked.index] += n >= 1000 && without;
		close_this(&w);
	}
	fclose(text);
	ck_assert_uint_gt(seen[H5_INDEX_BTREE1], 0);
	ck_assert_uint_gt(seen[H5_INDEX_FIXED_ARRAY], 0);
	ck_assert_uint_gt(seen[H5_INDEX_EXTENSIBLE_ARRAY], 0);
	ck_assert_uint_gt(seen[H5_INDEX_BTREE2], 0);
}
END_TEST

/* Runs of chunks without storage: one descent each. */
START_TEST(what_is_absent_costs_one_descent)
{
	static const struct {
		const char *file, *name;
		uint64_t first, end, descents, blocks;
	} cases[] = {
		/* pages of 1024, of which 0, 3 and 4 have chunks */
		{"chunk_index-new.h5", "fixed-paged-sparse", 1030, 3072, 2, 2},
		{"chunk_index-new.h5", "fixed-empty", 0, 23, 0, 0},
		/* chunks 100, 101 and 3000: four super blocks between them, the index block, and a data block
		 */
		{"chunk_index-new.h5", "one-unlimited-sparse", 112, 2500, 10, 3},
		{"chunk_index-new.h5", "one-unlimited-sparse", 3001, 4000, 1, 4},
		{"chunk_index-old.h5", "one-unlimited-sparse", 102, 3000, 1, 1},
		{"chunk_index-old.h5", "one-unlimited-sparse", 3001, 4000, 1, 1},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		FILE *text = open_account();
		bool found = false;
		struct walker w;

		while (!found && open_next(text, &w)) {
			found = !strcmp(w.f.file, cases[i].file) && !strcmp(w.f.name, cases[i].name);
			if (found) {
				uint64_t c = cost(&w, &w.cursor, cases[i].first, cases[i].end);

				ck_assert_msg(c <= cases[i].descents * cases[i].blocks, "%s from %ju: %ju",
					      w.f.name, (uintmax_t)cases[i].first, (uintmax_t)c);
			}
			close_this(&w);
		}
		ck_assert(found);
		fclose(text);
	}
}
END_TEST

/* The maximum dimensions give chunks their numbers: a search passes over numbers that lie beyond them. */
START_TEST(no_chunk_is_beyond_the_maximum)
{
	unsigned seen[2] = {0};
	FILE *text = open_account();
	struct walker w;

	while (open_next(text, &w)) {
		const struct h5_chunk_layout *layout = &w.o.layout.chunked;
		const unsigned rank = w.f.space.rank;
		const bool numbers = layout->index == H5_INDEX_FIXED_ARRAY ||
				     layout->index == H5_INDEX_EXTENSIBLE_ARRAY ||
				     layout->index == H5_INDEX_IMPLICIT;

		for (unsigned d = 0; d < rank && numbers && layout->address != H5_UNDEF; d++) {
			const uint64_t max = w.f.space.max[d];
			uint64_t scaled[H5_RANK_MAX] = {0}, next[H5_RANK_MAX];
			bool stored;

			if (max == H5_UNLIMITED || !max)
				continue;
			for (unsigned i = d + 1; i < rank; i++)
				scaled[i] = 5;
			scaled[d] = (max - 1) / layout->dims[d] + 1;
			ck_assert_int_eq(h5_chunk_index_gap(w.o.index, &w.cursor, scaled, &stored, next), 0);
			ck_assert(!stored);
			for (unsigned i = 0; i < rank; i++)
				ck_assert_msg(next[i] == (!d ? UINT64_MAX : i + 1 == d), "%s: %u %u: %ju",
					      w.f.name, d, i, (uintmax_t)next[i]);
			seen[d != 0]++;
		}
		close_this(&w);
	}
	fclose(text);
	ck_assert(seen[0] && seen[1]);
}
END_TEST

UNIT_MAIN_LOOPS("chunk_index_cursor", {the_same_as_without, sizeof orders / sizeof *orders},
		{released_after_each_lookup, 1}, {neighbours_ask_once_a_block, 1},
		{what_is_absent_costs_one_descent, 1}, {no_chunk_is_beyond_the_maximum, 1})
