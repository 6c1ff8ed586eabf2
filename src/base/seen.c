#include "base/seen.h"

#include "base/hash_table.h"

#include <errno.h>
#include <stdlib.h>

struct h5_seen_number {
	uint64_t number;
	UT_hash_handle hh;
};

int h5_seen_add(struct h5_seen *seen, uint64_t number)
{
	struct h5_seen_number *entry;

	if (h5_seen_has(seen, number))
		return -EEXIST;
	if (seen->count < sizeof seen->few / sizeof *seen->few) {
		seen->few[seen->count++] = number;
		return 0;
	}
	entry = calloc(1, sizeof *entry);
	if (!entry)
		return -ENOMEM;
	entry->number = number;
	HASH_ADD(hh, seen->numbers, number, sizeof entry->number, entry);
	if (!entry->hh.tbl) {
		free(entry);
		return -ENOMEM;
	}
	return 0;
}

bool h5_seen_has(const struct h5_seen *seen, uint64_t number)
{
	struct h5_seen_number *entry;

	for (unsigned i = 0; i < seen->count; i++)
		if (seen->few[i] == number)
			return true;
	HASH_FIND(hh, seen->numbers, &number, sizeof number, entry);
	return entry;
}

void h5_seen_release(struct h5_seen *seen)
{
	struct h5_seen_number *entry, *next;

	seen->count = 0;
	HASH_ITER(hh, seen->numbers, entry, next)
	{
		HASH_DEL(seen->numbers, entry);
		free(entry);
	}
}
