/* Sets of extents. */
#include "base/extents.h"

#include "fault_alloc.h"
#include "unit.h"

#include <errno.h>
#include <string.h>

enum { MAP = 2048 };

/* The set has the bytes of the map, in extents that do not touch. */
static void assert_extents(const struct h5_extents *set, const bool map[MAP])
{
	bool has[MAP] = {false};
	uint64_t end = 0;
	size_t count = 0;

	h5_extents_each(e, set)
	{
		ck_assert(e->size && (e->address > end || !count));
		end = e->address + e->size;
		ck_assert_uint_le(end, MAP);
		memset(has + e->address, true, e->size);
		count++;
	}
	ck_assert_mem_eq(has, map, sizeof has);
	ck_assert_uint_eq(set->count, count);
	ck_assert_uint_eq(count ? h5_extents_last(set)->address + h5_extents_last(set)->size : 0, end);
	for (unsigned i = 0; i < MAP; i++) {
		const struct h5_extent *e = h5_extents_from(set, i);

		ck_assert_int_eq(h5_extents_has(set, i), map[i]);
		while (e && e->size < i % 7)
			e = h5_extents_from(set, e->address + e->size);
		ck_assert_ptr_eq(h5_extents_large_from(set, i, i % 7), e);
	}
}

/* Against a map of bytes: sets of many extents, and of few. */
START_TEST(extents_are_a_set)
{
	struct h5_extents set = {0};
	bool map[MAP] = {false};
	uint32_t random = 1;

	for (int round = 0; round < 30000; round++) {
		unsigned at, n, most = round / 3000 % 2 ? 2 : 200;
		bool add;

		random = random * 1664525 + 1013904223;
		at = random >> 8 & (MAP - 1);
		n = (random >> 20 & 0x3ff) % most;
		n = n < MAP - at ? n : MAP - at;
		add = random >> 30 & 1;
		if (round % 3 == 2 && !add)
			h5_extents_drop(&set, at, n);
		else
			ck_assert_int_eq(add ? h5_extents_add(&set, at, n) : h5_extents_remove(&set, at, n),
					 0);
		memset(map + at, add, n);
		if (round % 10 == 0)
			assert_extents(&set, map);
	}
	h5_extents_release(&set);
}
END_TEST

/* ---- while memory is short ---- */

enum {
	TAKEN = 12,
	APART = 20
}; /* an extent has TAKEN bytes; the next one begins APART bytes behind its begin */

/* What of the extents is there. */
static void check_extents(const struct h5_extents *set, unsigned count, unsigned changed, unsigned from,
			  unsigned to)
{
	for (unsigned i = 0; i < count; i++)
		for (unsigned k = 0; k < APART; k++)
			ck_assert_int_eq(h5_extents_has(set, i * APART + k),
					 k < TAKEN && (i != changed || k < from || k >= to));
}

/* Each set is changed in its middle. If that cannot be done, nothing has changed; of bytes that are dropped
 * all the same, some that are beside them may go, too. */
START_TEST(extents_while_memory_is_short)
{
	unsigned failed = 0;

	for (unsigned count = 1; count < 700; count += 1 + count / 30) {
		const unsigned i = count / 2;
		struct h5_extents set = {0};
		bool fired = true;

		for (unsigned k = 0; k < count; k++)
			ck_assert_int_eq(0, h5_extents_add(&set, k * APART, TAKEN));
		for (unsigned n = 1; fired; n++) {
			int rc;

			fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = h5_extents_remove(&set, i * APART + 3, 2);
			fault_alloc_count(false);
			fired = fault_alloc_disarm();
			ck_assert_int_eq(rc, fired ? -ENOMEM : 0);
			check_extents(&set, count, i, 3, fired ? 3 : 5);
			if (!fired)
				break;
			failed++;
			fault_alloc_arm(n);
			fault_alloc_count(true);
			h5_extents_drop(&set, i * APART + 3, 2);
			fault_alloc_count(false);
			ck_assert(fault_alloc_disarm());
			/* The smaller rest has gone. */
			check_extents(&set, count, i, 0, 5);
			ck_assert_int_eq(0, h5_extents_add(&set, i * APART, 5));
			fault_alloc_arm(n);
			fault_alloc_count(true);
			h5_extents_drop(&set, i * APART + 8, 2);
			fault_alloc_count(false);
			ck_assert(fault_alloc_disarm());
			check_extents(&set, count, i, 8, TAKEN);
			ck_assert_int_eq(0, h5_extents_add(&set, i * APART + 8, TAKEN - 8));
			check_extents(&set, count, i, 0, 0);
		}
		h5_extents_release(&set);
	}
	ck_assert_uint_gt(failed, 0);
}
END_TEST

START_TEST(extents_that_cannot_be_added)
{
	struct h5_extents set = {0};
	unsigned failed = 0;

	for (unsigned k = 0; k < 500; k++) {
		bool fired = true;

		for (unsigned n = 1; fired; n++) {
			int rc;

			fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = h5_extents_add(&set, k * APART, TAKEN);
			fault_alloc_count(false);
			fired = fault_alloc_disarm();
			ck_assert_int_eq(rc, fired ? -ENOMEM : 0);
			ck_assert_uint_eq(set.count, fired ? k : k + 1);
			failed += fired;
		}
	}
	ck_assert_uint_gt(failed, 1);
	check_extents(&set, 500, 0, 0, 0);
	h5_extents_release(&set);
}
END_TEST

/* Without memory extents cannot be added to others, but they can take the place of none. */
START_TEST(extents_that_move)
{
	enum { COUNT = 150 };

	for (unsigned before = 0; before < 2; before++) {
		struct h5_extents from = {0}, to = {0};

		for (unsigned k = 0; k < COUNT; k++)
			ck_assert_int_eq(0, h5_extents_add(&from, k * APART, TAKEN));
		/* The set is empty, or has one extent left. */
		ck_assert_int_eq(0, h5_extents_add(&to, 3, 4));
		h5_extents_drop(&to, 3, before ? 2 : 4);
		ck_assert_uint_eq(to.count, before);
		fault_alloc_arm(before ? 0 : 1);
		fault_alloc_count(true);
		h5_extents_move(&to, &from);
		fault_alloc_count(false);
		ck_assert(!fault_alloc_disarm());
		ck_assert_uint_eq(from.count, 0);
		ck_assert_ptr_null(h5_extents_from(&from, 0));
		ck_assert_uint_eq(to.count, COUNT);
		check_extents(&to, COUNT, 0, 0, 0);
		h5_extents_release(&from);
		h5_extents_release(&to);
	}
}
END_TEST

UNIT_MAIN("extents", extents_are_a_set, extents_while_memory_is_short, extents_that_cannot_be_added,
	  extents_that_move)
