/* Whatever is done to a file, space that was given up is free: nothing gets lost. */
#include "crash_workloads.h"
#include "scratch.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- datasets ---- */

static struct space_account account;
static bool has_begun;

static void look(struct crash_run *run)
{
	char copy[600];

	/* Readers may need what was given up. Of a file with a cache image it is not known what is unused. */
	if (run->swmr || !strncmp(run->name, "image", 5))
		return;
	snprintf(copy, sizeof copy, "%s.copy", run->path);
	scratch_copy(run->path, copy);
	if (!has_begun)
		space_account_begin(&account, copy);
	else
		space_account_check(&account, copy, run->file, run->name);
	unlink(copy);
	has_begun = true;
}

START_TEST(datasets)
{
	struct crash_run run;

	crash_run_init(&run, (unsigned)_i, 1, scratch_folder(), look);
	crash_run_release(&run);
	space_account_release(&account);
}
END_TEST

int main(void)
{
	const struct unit_test tests[] = {{datasets, (int)crash_workload_count()}};

	return unit_run("space account", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
