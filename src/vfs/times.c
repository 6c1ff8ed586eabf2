#include "vfs/times.h"

#include <stdlib.h>

enum { KEPT_MAX = 1 << 16 }; /* times that are kept, about 120 bytes each */

struct h5_kept_time {
	uint64_t address;
	struct h5_changed changed;
	UT_hash_handle hh; /* in the order in which they were kept */
};

static void drop(struct h5_vfs *vfs, struct h5_kept_time *kept)
{
	HASH_DEL(vfs->kept_times, kept);
	free(kept);
}

static bool add(struct h5_vfs *vfs, uint64_t address, const struct h5_changed *changed)
{
	struct h5_kept_time *kept = calloc(1, sizeof *kept);

	if (!kept)
		return false;
	kept->address = address;
	kept->changed = *changed;
	HASH_ADD(hh, vfs->kept_times, address, sizeof kept->address, kept);
	if (kept->hh.tbl)
		return true;
	free(kept);
	return false;
}

void h5_times_keep(struct h5_vfs *vfs, uint64_t address, const struct h5_changed *changed)
{
	if (!changed->any.tv_sec)
		return;
	if (HASH_COUNT(vfs->kept_times) >= KEPT_MAX) {
		h5_times_raise(&vfs->forgotten_time, &vfs->kept_times->changed.any);
		drop(vfs, vfs->kept_times);
	}
	if (!add(vfs, address, changed))
		h5_times_raise(&vfs->forgotten_time, &changed->any);
}

struct h5_changed h5_times_take(struct h5_vfs *vfs, uint64_t address)
{
	struct h5_changed changed = {vfs->forgotten_time, vfs->forgotten_time};
	struct h5_kept_time *kept;

	HASH_FIND(hh, vfs->kept_times, &address, sizeof address, kept);
	if (kept) {
		changed = kept->changed;
		drop(vfs, kept);
	}
	return changed;
}

void h5_times_free(struct h5_vfs *vfs)
{
	struct h5_kept_time *kept, *next;

	HASH_ITER(hh, vfs->kept_times, kept, next)
	drop(vfs, kept);
}
