/* Links are inserted, changed, renamed and removed in groups of every storage, beside a model of them. */
#include "group_model.h"

static const char *const forms[] = {"old", "new", "tracked", "indexed", "v108"};
static const unsigned counts[] = {0, 7, 60};

enum { FORMS = sizeof forms / sizeof *forms, COUNTS = sizeof counts / sizeof *counts };

/* Changes, commits and looks, until libhdf5 looks. */
static void shake_and_judge(struct group_model *m, unsigned rounds, bool by_all)
{
	for (unsigned round = 0; round < rounds; round++) {
		group_shake(m, 40, round % 3 == 2 ? 20 : 60);
		group_check(m);
		group_model_commit(m);
		if (round % 2)
			group_model_reopen(m);
		group_check(m);
	}
	group_judge(m, by_all);
	group_check(m);
}

START_TEST(random_changes)
{
	struct group_model *m = group_model_begin(forms[_i / COUNTS], counts[_i % COUNTS], NULL);

	m->seed = (unsigned)_i;
	group_check(m);
	shake_and_judge(m, 6, _i % 4 == 0);
	group_shake(m, 200, 0);
	shake_and_judge(m, 1, false);
	group_model_end(m);
}
END_TEST

static const struct h5_new_group styles[] = {{false, false}, {true, false}, {true, true}};

/* The root is of the old style, or of the new one. */
START_TEST(new_groups)
{
	struct group_model *m = group_model_begin(_i % 2 ? "old" : "new", 0, NULL);

	group_model_renew(m, &styles[_i / 2]);
	group_check(m);
	if (_i % 4 == 1)
		group_model_commit(m);
	shake_and_judge(m, 6, _i % 3 == 0);
	group_model_end(m);
}
END_TEST

UNIT_MAIN_LOOPS("group_write", {random_changes, FORMS *COUNTS}, {new_groups, 6})
