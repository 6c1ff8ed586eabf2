#include "base/lower_bound.h"
#include "unit.h"

#include <stdint.h>

START_TEST(lower_bound_is_the_first_that_is_not_below)
{
	const unsigned sorted[] = {2, 4, 4, 4, 7, 9};
	const size_t n = sizeof sorted / sizeof *sorted;

	ck_assert_uint_eq(h5_lower_bound(i, n, sorted[i] < 1), 0);
	ck_assert_uint_eq(h5_lower_bound(i, n, sorted[i] < 4), 1);
	ck_assert_uint_eq(h5_lower_bound(i, n, sorted[i] <= 4), 4);
	ck_assert_uint_eq(h5_lower_bound(i, n, sorted[i] < 9), 5);
	ck_assert_uint_eq(h5_lower_bound(i, n, sorted[i] < 10), n);
	ck_assert_uint_eq(h5_lower_bound(i, 0, sorted[i] < 10), 0);
	ck_assert_uint_eq(h5_lower_bound(i, SIZE_MAX, i < SIZE_MAX - 1), SIZE_MAX - 1);
}
END_TEST

UNIT_MAIN("lower_bound", lower_bound_is_the_first_that_is_not_below)
