/* The chunks of new datasets whose user names none. */
#include "dataset/create.h"

#include "unit.h"

enum { INF = -1 };

static uint64_t extent(int n)
{
	return n == INF ? H5_UNLIMITED : (uint64_t)n;
}

START_TEST(chunks_are_chosen)
{
	static const struct {
		uint32_t element;
		int rank, dims[3], max[3], chunk[3];
	} cases[] = {{1, 1, {0}, {INF}, {65536}},
		     {4, 3, {0, 512, 512}, {INF, 512, 512}, {1, 512, 512}},
		     {8, 1, {5}, {100}, {100}},
		     {4, 2, {7, 10}, {INF, 10}, {1639, 10}},
		     {4, 2, {7, 1 << 20}, {INF, INF}, {1, 1 << 18}},
		     {4, 2, {7, 0}, {INF, INF}, {16, 1024}}};

	for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
		struct h5_dataspace space = {.kind = H5_SPACE_SIMPLE, .rank = (unsigned)cases[c].rank};
		uint64_t chunk[H5_RANK_MAX];

		for (unsigned i = 0; i < space.rank; i++) {
			space.dims[i] = extent(cases[c].dims[i]);
			space.max[i] = extent(cases[c].max[i]);
		}
		ck_assert(h5_dataset_choose_chunks(&space, cases[c].element, chunk));
		for (unsigned i = 0; i < space.rank; i++)
			ck_assert_uint_eq(chunk[i], extent(cases[c].chunk[i]));
	}
}
END_TEST

/* A dataset without dimensions, or without rows for ever, has no chunks. */
START_TEST(no_chunks_are_possible)
{
	static const struct h5_dataspace spaces[] = {
		{.kind = H5_SPACE_SCALAR, .max = {1}},
		{.kind = H5_SPACE_NULL},
		{.kind = H5_SPACE_SIMPLE, .rank = 1},
		{.kind = H5_SPACE_SIMPLE, .rank = 2, .dims = {0, 5}, .max = {0, H5_UNLIMITED}},
		{.kind = H5_SPACE_SIMPLE, .rank = 2, .max = {H5_UNLIMITED, 0}},
	};
	uint64_t chunk[H5_RANK_MAX];

	for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
		ck_assert(!h5_dataset_choose_chunks(&spaces[i], 4, chunk));
}
END_TEST

UNIT_MAIN("choose_chunks", chunks_are_chosen, no_chunks_are_possible)
