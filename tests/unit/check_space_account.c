/* Changes of datasets lose no space: after each commit all that was given up is free. */
#include "crash_workloads.h"
#include "scratch.h"

#include <string.h>

static struct space_account account;
static bool has_begun;

static void look(struct crash_run *run)
{
	/* Readers may still need space that was given up. A check cannot tell what is unused in a file with a
	 * cache image. */
	if (run->swmr || !strncmp(run->name, "image", 5))
		return;
	if (!has_begun)
		scratch_begin_account(&account, run->path);
	else
		scratch_check_account(&account, run->path, run->file, run->name);
	has_begun = true;
}

START_TEST(datasets)
{
	struct crash_run run;

	has_begun = false;
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
