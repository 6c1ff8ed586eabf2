/* Ranges of bytes in small datasets of all shapes of chunks, byte by byte: each is in one part, in the chunk
 * and at the place that its indexes say. */
#include "base/interrupt.h"
#include "dataset/boxes.h"
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 4096, RANKS = 3 };

/* The place of a byte of the dataset: its chunk, and its offset there. */
struct place {
	uint64_t scaled[RANKS], in_chunk;
};

struct scene {
	struct h5_grid grid;
	unsigned rank;
	uint64_t size; /* of the dataset */
	uint64_t chunk_bytes;
	struct place places[BYTES_MAX];
};

/* The places of all bytes, by counting the indexes. */
static void set_places(struct scene *s, const uint64_t *dims, const uint64_t *chunk, uint32_t element)
{
	uint64_t at[RANKS] = {0};

	s->size = 0;
	s->chunk_bytes = element;
	for (unsigned i = 0; i < s->rank; i++)
		s->chunk_bytes *= chunk[i];
	for (;;) {
		uint64_t place = 0;
		unsigned i;

		for (i = 0; i < s->rank; i++)
			place = place * chunk[i] + at[i] % chunk[i];
		for (uint64_t byte = 0; byte < element; byte++) {
			struct place *p = &s->places[s->size++];

			for (i = 0; i < s->rank; i++)
				p->scaled[i] = at[i] / chunk[i];
			p->in_chunk = place * element + byte;
		}
		for (i = s->rank; i-- > 0; at[i] = 0)
			if (++at[i] < dims[i])
				break;
		if (i >= s->rank)
			return;
	}
}

static bool same_chunk(const struct scene *s, const uint64_t *a, const uint64_t *b)
{
	return !memcmp(a, b, s->rank * sizeof *a);
}

/* The bytes of a chunk that are inside the dataset, and how many the chunk must have for them. */
static uint64_t bytes_inside(const struct scene *s, const uint64_t *scaled, uint64_t *needed)
{
	uint64_t n = 0;

	*needed = 0;
	for (uint64_t i = 0; i < s->size; i++)
		if (same_chunk(s, s->places[i].scaled, scaled)) {
			n++;
			*needed = s->places[i].in_chunk >= *needed ? s->places[i].in_chunk + 1 : *needed;
		}
	return n;
}

/* What the part has, by the runs: marks the bytes. */
static void check_runs(const struct scene *s, const struct h5_part *part, uint8_t *seen, uint8_t *in_chunk)
{
	struct h5_run_iterator runs, one;
	struct h5_part_rows rows;
	struct h5_part_run last = {0};

	h5_run_begin(&runs, part);
	h5_run_begin(&one, part);
	while (h5_run_next_rows(&runs, &rows))
		for (uint64_t k = 0; k < rows.count; k++) {
			struct h5_part_run run = rows.first;

			run.in_chunk += k * rows.chunk_step;
			run.in_dataset += k * rows.dataset_step;
			ck_assert(h5_run_next(&one));
			ck_assert(one.run.in_chunk == run.in_chunk && one.run.in_dataset == run.in_dataset);
			ck_assert(one.run.n == run.n && run.n);
			/* Otherwise they would be one run. */
			ck_assert(!last.n || run.in_chunk != last.in_chunk + last.n ||
				  run.in_dataset != last.in_dataset + last.n);
			last = run;
			for (size_t i = 0; i < run.n; i++) {
				const struct place *p = &s->places[run.in_dataset + i];

				ck_assert_uint_lt(run.in_dataset + i, s->size);
				ck_assert(same_chunk(s, p->scaled, part->scaled));
				ck_assert_uint_eq(p->in_chunk, run.in_chunk + i);
				seen[run.in_dataset + i]++;
				in_chunk[run.in_chunk + i] = 1;
			}
		}
	ck_assert(!h5_run_next(&one));
}

static void check_part(const struct scene *s, const struct h5_part *part, uint8_t *seen)
{
	uint8_t in_chunk[BYTES_MAX + 1] = {0};
	uint64_t needed, n = 0, first = 0, stretch = 0, inside = bytes_inside(s, part->scaled, &needed);

	check_runs(s, part, seen, in_chunk);
	for (uint64_t i = 0; i < s->chunk_bytes; i++)
		n += in_chunk[i];
	while (!in_chunk[first])
		first++;
	while (in_chunk[first + stretch])
		stretch++;
	ck_assert_uint_eq(h5_part_size(part), n);
	ck_assert_uint_eq(h5_part_chunk_size(part), inside);
	ck_assert(h5_part_is_whole(part) == (n == inside));
	ck_assert_uint_eq(h5_part_stretch(part), stretch);
	ck_assert_uint_eq(h5_grid_needed(part->grid, part->scaled), needed);
}

/* True: there are bytes on both sides of an edge between chunks in a dimension before the last. */
static bool passes(const struct scene *s, uint64_t begin, uint64_t end)
{
	for (uint64_t i = begin; i < end; i++)
		if (memcmp(s->places[i].scaled, s->places[begin].scaled, (s->rank - 1) * sizeof(uint64_t)))
			return true;
	return false;
}

static void check_range(const struct scene *s, uint64_t offset, uint64_t n)
{
	uint64_t begin = offset, end = offset, left = 0;
	uint8_t seen[BYTES_MAX] = {0};
	struct h5_part_iterator parts;
	unsigned boxes = 0;

	h5_part_begin(&parts, &s->grid, offset, n);
	while (h5_part_next(&parts) > 0) {
		if (!left) {
			begin = end;
			left = h5_part_box_size(&parts);
			end = begin + left;
			boxes++;
		}
		ck_assert_uint_eq(h5_part_box_size(&parts), end - begin);
		ck_assert(h5_part_box_passes(&parts) == passes(s, begin, end));
		ck_assert_uint_ge(left, h5_part_size(&parts.part));
		left -= h5_part_size(&parts.part);
		check_part(s, &parts.part, seen);
	}
	ck_assert(!left && end == offset + n);
	ck_assert_uint_le(boxes, 2 * (s->rank + 1));
	for (uint64_t i = 0; i < s->size; i++)
		ck_assert_uint_eq(seen[i], i >= offset && i - offset < n);
}

static void scene_init(struct scene *s, unsigned rank, const uint64_t *dims, const uint64_t *chunk,
		       uint32_t element)
{
	s->rank = rank;
	h5_grid_init(&s->grid, rank, dims, chunk, element);
	set_places(s, dims, chunk, element);
}

START_TEST(each_range)
{
	static const struct {
		unsigned rank;
		uint64_t dims[RANKS], chunk[RANKS];
		uint32_t element;
	} shapes[] = {
		{1, {7}, {3}, 2},
		{1, {6}, {6}, 3},
		{1, {3}, {8}, 1},
		{2, {5, 4}, {2, 3}, 1},
		{2, {4, 6}, {2, 6}, 1},
		{2, {3, 4}, {5, 2}, 2},
		{2, {4, 3}, {2, 5}, 1},
		{2, {1, 9}, {1, 4}, 2},
		{3, {3, 2, 4}, {2, 2, 2}, 1},
		{3, {2, 3, 4}, {1, 2, 4}, 1},
		{3, {3, 3, 3}, {2, 2, 2}, 1},
		{3, {2, 2, 3}, {3, 1, 3}, 2},
	};
	static struct scene s;

	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		scene_init(&s, shapes[i].rank, shapes[i].dims, shapes[i].chunk, shapes[i].element);
		for (uint64_t offset = 0; offset <= s.size; offset++)
			for (uint64_t n = 0; n <= s.size - offset; n++)
				check_range(&s, offset, n);
	}
}
END_TEST

START_TEST(chunks_outside)
{
	const uint64_t dims[] = {5, 4}, chunk[] = {2, 2}, inside[] = {2, 1}, below[] = {3, 0},
		       beside[] = {0, 2};
	struct h5_grid grid;

	h5_grid_init(&grid, 2, dims, chunk, 3);
	ck_assert_uint_eq(h5_grid_needed(&grid, inside), 6);
	ck_assert_uint_eq(h5_grid_needed(&grid, below), 0);
	ck_assert_uint_eq(h5_grid_needed(&grid, beside), 0);
}
END_TEST

static bool asked(void *arg)
{
	++*(unsigned *)arg;
	return true;
}

/* Many parts can be interrupted: once in 1024. */
START_TEST(many_parts)
{
	const uint64_t dims[] = {3000}, chunk[] = {1};
	struct h5_part_iterator parts;
	struct h5_interrupt request;
	unsigned asks = 0, n = 0;
	struct h5_grid grid;
	int rc;

	h5_grid_init(&grid, 1, dims, chunk, 1);
	h5_part_begin(&parts, &grid, 0, 1023);
	/* A request that has been under way for long. */
	h5_interrupt_begin(asked, &asks);
	h5_interrupt_get(&request);
	request.begin.tv_sec -= 10;
	h5_interrupt_set(&request);
	while ((rc = h5_part_next(&parts)) > 0)
		n++;
	ck_assert(!rc && n == 1023 && !asks);
	h5_part_begin(&parts, &grid, 0, 3000);
	for (n = 0; (rc = h5_part_next(&parts)) > 0;)
		n++;
	h5_interrupt_begin(NULL, NULL);
	ck_assert_int_eq(rc, -EINTR);
	ck_assert(n == 1023 && asks == 1);
	/* A walk that nothing interrupts gets all parts. */
	h5_part_begin(&parts, &grid, 0, 3000);
	for (n = 0; (rc = h5_part_next(&parts)) > 0;)
		n++;
	ck_assert(!rc && n == 3000);
}
END_TEST

UNIT_MAIN("boxes", each_range, chunks_outside, many_parts)
