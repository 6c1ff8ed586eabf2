/* Links and attributes in dense storage, changed at random beside a model in memory, and by libhdf5 as the
 * reader and next writer (tests/judge/dense_judge.py). */
#include "crash_image.h"
#include "dense_model.h"

#include <stdio.h>
#include <string.h>

static const char *const groups[] = {
	"links-unordered-0",	   "links-tracked-0",	    "links-unordered-10",
	"links-tracked-10",	   "links-unordered-60",    "links-tracked-60",
	"attributes-unordered-10", "attributes-tracked-10", "attributes-unordered-60",
	"attributes-tracked-60",
};

enum { GROUPS = sizeof groups / sizeof *groups };

START_TEST(random_changes)
{
	struct dense *d = dense_begin(groups[_i], 150, NULL);

	dense_create(d);
	dense_check(d);
	dense_shake(d, 30, 80);
	dense_check(d);
	dense_judge(d, 0);
	for (unsigned round = 0; round < 12; round++) {
		dense_shake(d, 40, round % 3 ? 80 : 40);
		SUCCEEDS(dense_commit(d));
	}
	dense_check(d);
	dense_judge(d, 1 + (unsigned)_i);
	dense_check(d);
	for (unsigned i = 0; i < d->limit; i++)
		if (d->messages[i].exists)
			SUCCEEDS(dense_remove(d, i));
	dense_judge(d, 0);
	if (_i % 4 < 2) {
		SUCCEEDS(h5_dense_free(d->file, &d->info, d->kind));
		dense_create(d);
	}
	dense_shake(d, 60, 90);
	dense_check(d);
	dense_judge(d, 20 + (unsigned)_i);
	dense_end(d);
}
END_TEST

UNIT_MAIN_LOOPS("dense_write", {random_changes, GROUPS})
