/* All targets together, and what they share. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool fuzz_target_at(unsigned n, struct fuzz_target *target)
{
	static bool (*const lists[])(unsigned, struct fuzz_target *) = {
		fuzz_message_at, fuzz_block_at,	     fuzz_filter_at, fuzz_file_at,
		fuzz_text_at,	 fuzz_credential_at, fuzz_remote_at};

	for (unsigned list = 0; list < sizeof lists / sizeof *lists; list++) {
		unsigned count = 0;

		memset(target, 0, sizeof *target);
		if (lists[list](n, target))
			return true;
		while (lists[list](count, target))
			count++;
		n -= count;
	}
	return false;
}

bool fuzz_target_find(const char *name, struct fuzz_target *target)
{
	for (unsigned i = 0; fuzz_target_at(i, target); i++)
		if (!strcmp(target->name, name))
			return true;
	return false;
}

void fuzz_broken(const char *file, int line, const char *condition)
{
	fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
	abort();
}

bool fuzz_is_lossy(const struct h5_filter_ops *filter)
{
	return !strcmp(filter->name, "nbit") || !strcmp(filter->name, "scaleoffset") ||
	       !strcmp(filter->name, "fcidecomp") || !strcmp(filter->name, "jpeg") ||
	       !strcmp(filter->name, "fpzip");
}

void fuzz_touch(const void *data, size_t n)
{
	const volatile uint8_t *p = data;

	for (size_t i = 0; i < n; i++)
		(void)p[i];
}
