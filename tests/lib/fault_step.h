/* How many of the calls that a test makes fail one after the other. */
#ifndef H5_TESTS_FAULT_STEP_H
#define H5_TESTS_FAULT_STEP_H

#include "unit.h"

/* One in so many; the environment's H5FS_FAULT_STEP comes before what is usual in the test. */
static inline unsigned long fault_step(unsigned long usual)
{
	const char *text = getenv("H5FS_FAULT_STEP");
	unsigned long step = text ? strtoul(text, NULL, 10) : usual;

	ck_assert_uint_gt(step, 0);
	return step;
}

#endif
