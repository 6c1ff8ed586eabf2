/* Whole files: one that is only read, from memory, and one that is written, too. */
#include "base/interrupt.h"
#include "fuzz.h"
#include "walk.h"
#include "write.h"

#include <stdio.h>

/* The last byte of the file also chooses options. */
static void run_read(const void *arg, const uint8_t *data, size_t size)
{
	uint8_t choice = size ? data[size - 1] : 0;
	const struct h5_file_set_options options = fuzz_set_options(choice & 1);
	const struct h5_vfs_options vfs_options = {.order_by_creation = choice & 2,
						   .raw_attributes = choice & 4};
	struct fuzz_budget budget = FUZZ_BUDGET;
	struct fuzz_walk walk = {.budget = &budget, .honest = fuzz_looks_honest(data, size)};
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

static const struct fuzz_target targets[] = {
	{"file_read", run_read, NULL},
	{"file_write", fuzz_write, NULL},
};

bool fuzz_file_at(unsigned n, struct fuzz_target *target)
{
	if (n >= sizeof targets / sizeof *targets)
		return false;
	*target = targets[n];
	return true;
}
