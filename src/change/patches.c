/* The pending patches. While a unit of change is open, a patch of before is never changed: a copy takes its
 * place, and the patch is put aside. */
#include "base/checked.h"
#include "base/error.h"
#include "change/private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint64_t end_of(const struct h5_tx_patch *patch)
{
	return patch->over.offset + patch->over.n;
}

static void patch_free(struct h5_tx *tx, struct h5_tx_patch *patch)
{
	if (!patch->before) {
		assert(tx->held >= patch->over.n);
		tx->held -= patch->over.n;
	}
	free(patch->after);
	free(patch);
}

/* A patch whose bytes are not set yet. */
static struct h5_tx_patch *patch_new(struct h5_tx *tx, uint64_t offset, size_t n, bool fresh)
{
	struct h5_tx_patch *patch = calloc(1, sizeof *patch);

	if (!patch || !(patch->after = malloc(fresh ? n : 2 * n))) {
		free(patch);
		h5_fail(-ENOMEM, offset - tx->space.base, "out of memory");
		return NULL;
	}
	patch->over = (struct h5_patch){offset, n, patch->after};
	patch->unit = tx->unit.depth ? tx->unit.number : 0;
	if (fresh)
		tx->held += n;
	else
		patch->before = patch->after + n;
	return patch;
}

/* A patch that begins as the bytes of the file, or (`fresh`) with any. */
static int patch_read(struct h5_tx *tx, uint64_t offset, size_t n, bool fresh, struct h5_tx_patch **out)
{
	struct h5_tx_patch *patch = patch_new(tx, offset, n, fresh);
	int rc = 0;

	if (!patch)
		return -ENOMEM;
	if (!fresh) {
		rc = h5_io_read(h5_tx_medium(tx), offset, patch->before, n);
		if (!rc)
			memcpy(patch->after, patch->before, n);
	}
	if (rc)
		patch_free(tx, patch);
	else
		*out = patch;
	return rc;
}

/* True: a unit is open, and must restore this patch if it fails. */
static bool is_older_than_unit(const struct h5_tx *tx, const struct h5_tx_patch *patch)
{
	return tx->unit.depth && patch->unit != tx->unit.number;
}

/* Frees a patch that was taken out of the list, or puts it aside for the open unit. */
static void retire(struct h5_tx *tx, struct h5_tx_patch *patch)
{
	if (is_older_than_unit(tx, patch)) {
		patch->next = tx->unit.aside;
		tx->unit.aside = patch;
	} else {
		patch_free(tx, patch);
	}
}

/* Makes patch i one that may be changed: itself, or a copy. `whole`: all of its bytes will change. */
static int make_own(struct h5_tx *tx, size_t i, bool whole)
{
	struct h5_tx_patch *old = h5_tx_patch_at(tx, i), *copy;
	size_t n = old->over.n;

	if (!is_older_than_unit(tx, old))
		return 0;
	copy = patch_new(tx, old->over.offset, n, !old->before);
	if (!copy)
		return -ENOMEM;
	if (!whole)
		memcpy(copy->after, old->after, n);
	if (old->before)
		memcpy(copy->before, old->before, n);
	copy->stage = old->stage;
	copy->order = old->order;
	tx->overlay.patches.list[i] = &copy->over;
	retire(tx, old);
	return 0;
}

/* Takes `n` patches from i on out of the list. */
static void remove_patches(struct h5_tx *tx, size_t i, size_t n)
{
	for (size_t j = i; j < i + n; j++)
		retire(tx, h5_tx_patch_at(tx, j));
	h5_patches_remove(&tx->overlay.patches, i, n);
}

/* Changes bytes that all are in patch i already. */
static int overwrite(struct h5_tx *tx, size_t i, uint64_t offset, const void *data, size_t n, unsigned stage)
{
	struct h5_tx_patch *patch;
	int rc = make_own(tx, i, n == h5_tx_patch_at(tx, i)->over.n);

	if (rc)
		return rc;
	patch = h5_tx_patch_at(tx, i);
	memcpy(patch->after + (offset - patch->over.offset), data, n);
	patch->stage = stage > patch->stage ? stage : patch->stage;
	return 0;
}

/* Makes a patch of these bytes, and of the patches from i on that they overlap, which are *overlaps. */
static int join(struct h5_tx *tx, size_t i, uint64_t offset, const void *data, size_t n, bool fresh,
		size_t *overlaps, struct h5_tx_patch **joined)
{
	uint64_t begin = offset, end = offset + n;
	size_t behind = i;
	int rc;

	for (; behind < h5_tx_patch_count(tx) && h5_tx_patch_at(tx, behind)->over.offset < end; behind++) {
		begin = h5_min(begin, h5_tx_patch_at(tx, behind)->over.offset);
		end = h5_max(end, end_of(h5_tx_patch_at(tx, behind)));
	}
	*overlaps = behind - i;
	rc = patch_read(tx, begin, (size_t)(end - begin), fresh, joined);
	if (rc)
		return rc;
	h5_patches_apply(&tx->overlay.patches, begin, (*joined)->after, (*joined)->over.n);
	memcpy((*joined)->after + (offset - begin), data, n);
	return 0;
}

int h5_tx_add_patch(struct h5_tx *tx, uint64_t address, const void *data, size_t n, unsigned stage,
		    bool fresh)
{
	struct h5_patches *patches = &tx->overlay.patches;
	uint64_t offset = tx->space.base + address;
	size_t i = h5_patches_find(patches, offset), overlaps;
	struct h5_tx_patch *patch;
	int rc;

	if (h5_patches_cover(patches, offset, n))
		return overwrite(tx, i, offset, data, n, stage);
	rc = h5_patches_reserve(patches, 1);
	if (!rc)
		rc = join(tx, i, offset, data, n, fresh, &overlaps, &patch);
	if (rc)
		return rc;
	patch->stage = stage;
	for (size_t j = i; j < i + overlaps; j++)
		if (h5_tx_patch_at(tx, j)->stage > patch->stage)
			patch->stage = h5_tx_patch_at(tx, j)->stage;
	patch->order = tx->next_order++;
	remove_patches(tx, i, overlaps);
	h5_patches_insert(patches, i, &patch->over);
	return 0;
}

void h5_tx_drop_patches(struct h5_tx *tx, uint64_t address, uint64_t n)
{
	uint64_t begin = tx->space.base + address, end = begin + n;
	size_t i = h5_patches_find(&tx->overlay.patches, begin), inside = 0;

	if (i < h5_tx_patch_count(tx) && h5_tx_patch_at(tx, i)->over.offset < begin)
		i++;
	while (i + inside < h5_tx_patch_count(tx) && end_of(h5_tx_patch_at(tx, i + inside)) <= end)
		inside++;
	remove_patches(tx, i, inside);
}

void h5_tx_drop_all(struct h5_tx *tx)
{
	remove_patches(tx, 0, h5_tx_patch_count(tx));
}

void h5_tx_keep_patches(struct h5_tx *tx)
{
	for (struct h5_tx_patch *patch = tx->unit.aside, *next; patch; patch = next) {
		next = patch->next;
		patch_free(tx, patch);
	}
	tx->unit.aside = NULL;
}

void h5_tx_restore_patches(struct h5_tx *tx)
{
	struct h5_patches *patches = &tx->overlay.patches;
	size_t kept = 0;

	for (size_t i = 0; i < patches->count; i++) {
		if (h5_tx_patch_at(tx, i)->unit == tx->unit.number)
			patch_free(tx, h5_tx_patch_at(tx, i));
		else
			patches->list[kept++] = patches->list[i];
	}
	patches->count = kept;
	/* They fit, since the list was as long before. */
	for (struct h5_tx_patch *patch = tx->unit.aside, *next; patch; patch = next) {
		next = patch->next;
		h5_patches_insert(patches, h5_patches_find(patches, patch->over.offset), &patch->over);
	}
	tx->unit.aside = NULL;
}

/* True: this is new metadata that may be written now. In space that was new before the open unit, its blocks
 * wait for its end. In space that it has allocated they need not: if it fails, nothing refers to that. */
static bool can_flush(const struct h5_tx *tx, const struct h5_tx_patch *patch)
{
	if (patch->before)
		return false;
	return !tx->unit.depth || patch->unit != tx->unit.number ||
	       h5_extents_covers(&tx->unit.allocated, patch->over.offset - tx->space.base, patch->over.n);
}

int h5_tx_flush(struct h5_tx *tx)
{
	struct h5_patches *patches = &tx->overlay.patches;
	size_t kept = 0, i = 0;
	int rc = 0;

	if (!tx->held)
		return 0;
	for (; i < patches->count && !rc; i++) {
		struct h5_tx_patch *patch = h5_tx_patch_at(tx, i);
		bool meant = can_flush(tx, patch);

		if (meant)
			rc = h5_io_write(h5_tx_medium(tx), patch->over.offset, patch->after, patch->over.n);
		if (!meant || rc)
			patches->list[kept++] = &patch->over;
		else
			patch_free(tx, patch);
	}
	h5_patches_remove(patches, kept, i - kept);
	return rc;
}
