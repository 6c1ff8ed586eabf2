/* Pending patches: what a commit will write.
 *
 * Reads of the file see them at once. While a unit of change is open, a patch from before it is never
 * changed: a copy takes its place, and the patch is put aside until the unit ends. */
#include "base/checked.h"
#include "base/error.h"
#include "base/zalloc.h"
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
	struct h5_tx_patch *patch = h5_zalloc(sizeof *patch);

	if (!patch || !(patch->after = malloc(fresh ? n : 2 * n))) {
		free(patch);
		h5_fail(-ENOMEM, offset - tx->space.base, "out of memory");
		return NULL;
	}
	patch->over = (struct h5_patch){offset, n, patch->after};
	patch->unit = tx->unit.depth ? tx->unit.number : 0;
	patch->object = tx->unit.object;
	if (fresh)
		tx->held += n;
	else
		patch->before = patch->after + n;
	return patch;
}

/* Makes a patch whose bytes are those of the file, or (`fresh`) are not set yet. */
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

/* Makes patch i one that may be changed: itself, or a copy. */
static int make_own(struct h5_tx *tx, size_t i)
{
	struct h5_tx_patch *old = h5_tx_patch_at(tx, i), *copy;
	size_t n = old->over.n;

	if (!is_older_than_unit(tx, old))
		return 0;
	copy = patch_new(tx, old->over.offset, n, !old->before);
	if (!copy)
		return -ENOMEM;
	memcpy(copy->after, old->after, n);
	if (old->before)
		memcpy(copy->before, old->before, n);
	copy->stage = old->stage;
	copy->order = old->order;
	copy->object = old->object;
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
	int rc = make_own(tx, i);

	if (rc)
		return rc;
	patch = h5_tx_patch_at(tx, i);
	memcpy(patch->after + (offset - patch->over.offset), data, n);
	patch->stage = stage > patch->stage ? stage : patch->stage;
	patch->object = tx->unit.object;
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

/* True: what shows at the stage must wait for the names in other groups. Indexes are no names. */
static bool is_early(unsigned stage)
{
	return stage >= H5_STAGE_OBJECT && stage < H5_STAGE_UNNAME;
}

/* The stage, or the latest that the open unit allows. */
static unsigned hastened(const struct h5_tx *tx, unsigned stage)
{
	return tx->unit.latest && stage > tx->unit.latest ? tx->unit.latest : stage;
}

int h5_tx_add_patch(struct h5_tx *tx, uint64_t address, const void *data, size_t n, unsigned stage,
		    bool fresh)
{
	struct h5_patches *patches = &tx->overlay.patches;
	uint64_t offset = tx->space.base + address;
	size_t i = h5_patches_find(patches, offset), overlaps;
	struct h5_tx_patch *patch;
	int rc;

	/* If it was raw data, the next record must not hash it: its cells come after the record. */
	if (!fresh)
		h5_extents_drop(&tx->covered, address, n);
	stage = hastened(tx, stage);
	if (is_early(stage) && h5_extents_has(&tx->left, tx->unit.object))
		stage = H5_STAGE_UNNAME;
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

static int delay(struct h5_tx *tx, size_t i, unsigned stage)
{
	int rc = make_own(tx, i);

	if (!rc)
		h5_tx_patch_at(tx, i)->stage = stage;
	return rc;
}

int h5_tx_delay_patches(struct h5_tx *tx, uint64_t group)
{
	int rc = 0;

	for (size_t i = 0; i < h5_tx_patch_count(tx) && !rc; i++)
		if (h5_tx_patch_at(tx, i)->object == group && is_early(h5_tx_patch_at(tx, i)->stage))
			rc = delay(tx, i, H5_STAGE_UNNAME);
	return rc;
}

int h5_tx_delay(struct h5_file *file, uint64_t address, uint64_t n, unsigned stage)
{
	struct h5_tx *tx = h5_tx_find(file);
	uint64_t offset = tx->space.base + address;
	size_t i = h5_patches_find(&tx->overlay.patches, offset);
	int rc = 0;

	stage = hastened(tx, stage);
	for (; i < h5_tx_patch_count(tx) && h5_tx_patch_at(tx, i)->over.offset < offset + n && !rc; i++)
		if (h5_tx_patch_at(tx, i)->stage < stage)
			rc = delay(tx, i, stage);
	return rc;
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

void h5_tx_ignore(struct h5_file *file, uint64_t address, uint64_t n)
{
	h5_tx_drop_patches(h5_tx_find(file), address, n);
}

void h5_tx_drop_all(struct h5_tx *tx)
{
	remove_patches(tx, 0, h5_tx_patch_count(tx));
	h5_extents_release(&tx->left);
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
	/* The patches put aside fit, since the list had room for them before the unit. */
	for (struct h5_tx_patch *patch = tx->unit.aside, *next; patch; patch = next) {
		next = patch->next;
		h5_patches_insert(patches, h5_patches_find(patches, patch->over.offset), &patch->over);
	}
	tx->unit.aside = NULL;
}

/* True: the patch is a new block that may be written now. A block that the open unit has changed must wait
 * for the end of the unit, since a failing unit restores what was there before. Not so in space that the unit
 * has allocated: if it fails, nothing refers to that space. */
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

bool h5_tx_changes_before(const struct h5_file *file, uint64_t address, uint64_t n, unsigned stage)
{
	const struct h5_tx *tx = h5_tx_find(file);
	uint64_t offset = tx->space.base + address;
	size_t i = h5_patches_find(&tx->overlay.patches, offset);

	for (; i < h5_tx_patch_count(tx) && h5_tx_patch_at(tx, i)->over.offset < offset + n; i++)
		if (h5_tx_patch_at(tx, i)->stage < stage)
			return true;
	return false;
}

unsigned h5_tx_latest_stage(const struct h5_file *file, uint64_t address, uint64_t n)
{
	const struct h5_tx *tx = h5_tx_find(file);
	uint64_t offset = tx->space.base + address;
	size_t i = h5_patches_find(&tx->overlay.patches, offset);
	unsigned latest = 0;

	for (; i < h5_tx_patch_count(tx) && h5_tx_patch_at(tx, i)->over.offset < offset + n; i++)
		if (h5_tx_patch_at(tx, i)->stage > latest)
			latest = h5_tx_patch_at(tx, i)->stage;
	return latest;
}
