/* How many of the calls that a test makes fail one after the other. */
#ifndef H5_TESTS_FAULT_STEP_H
#define H5_TESTS_FAULT_STEP_H

#include "unit.h"

/* One in so many: H5FS_FAULT_STEP in the environment, or else each. */
static inline unsigned long fault_step(void)
{
	const char *text = getenv("H5FS_FAULT_STEP");
	unsigned long step = text ? strtoul(text, NULL, 10) : 1;

	ck_assert_uint_gt(step, 0);
	return step;
}

#endif
