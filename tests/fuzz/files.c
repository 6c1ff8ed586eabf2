/* Whole files: read, checked, recovered by a journal, and written. */
#include "base/interrupt.h"
#include "fuzz.h"
#include "offline/check.h"
#include "walk.h"
#include "write.h"

#include <string.h>

/* The last byte of the file also chooses options. */
static void run_read(const void *arg, const uint8_t *data, size_t size)
{
	uint8_t choice = size ? data[size - 1] : 0;
	const struct h5_file_set_options options = fuzz_set_options(choice & 1);
	const struct h5_vfs_options vfs_options = {.order_by_creation = choice & 2,
						   .raw_attributes = choice & 4};
	struct fuzz_budget budget = FUZZ_BUDGET;
	struct fuzz_walk walk = {
		.budget = &budget, .honest = fuzz_looks_honest(data, size), .views = choice & 8};
	struct h5_file_set *set;

	(void)arg;
	fuzz_wrong_checksums = 0;
	fuzz_request(&budget);
	if (h5_file_set_open_memory(data, size, &options, &set))
		return;
	fuzz_request(&budget);
	if (!h5_vfs_open(set, &vfs_options, &walk.vfs)) {
		fuzz_walk(&walk);
		h5_interrupt_begin(NULL, NULL);
		h5_vfs_close(walk.vfs);
	}
	h5_file_set_close(set);
}

static void hear(void *arg, const char *path, const struct h5_error *error)
{
	(void)arg;
	fuzz_touch(path, strlen(path));
	FUZZ_HOLDS(error->code);
}

/* What h5fs --check does. */
static void run_check(const void *arg, const uint8_t *data, size_t size)
{
	const struct h5_file_set_options options = fuzz_set_options(false);
	struct fuzz_budget budget = FUZZ_BUDGET;
	struct h5_check check = {.found = hear};
	struct h5_file_set *set;

	(void)arg;
	fuzz_request(&budget);
	if (h5_file_set_open_memory(data, size, &options, &set))
		return;
	fuzz_request(&budget);
	h5_check_file(h5_file_set_root(set), &check);
	h5_extents_release(&check.unused);
	h5_interrupt_begin(NULL, NULL);
	h5_file_set_close(set);
}

static const struct fuzz_target targets[] = {
	{"file_read", run_read, NULL, 0},
	{"file_check", run_check, NULL, 0},
	{"file_journal", fuzz_journal, NULL, 256},
	{"file_write", fuzz_write, NULL, FUZZ_OPERATIONS},
};

bool fuzz_file_at(unsigned n, struct fuzz_target *target)
{
	if (n >= sizeof targets / sizeof *targets)
		return false;
	*target = targets[n];
	return true;
}
