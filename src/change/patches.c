/* The pending patches: a list by ascending address, without overlaps. While a unit of change is open, a patch
 * that was there before it is never changed: a copy takes its place, and it is put aside. */
#include "base/checked.h"
#include "base/error.h"
#include "change/commit.h"
#include "change/private.h"
#include "store/file_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The first patch that ends behind the address. */
static size_t first_behind(const struct h5_tx *tx, uint64_t address)
{
	size_t low = 0, high = tx->patch_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (tx->patches[middle]->address + tx->patches[middle]->n <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void patch_free(struct h5_tx *tx, struct h5_tx_patch *patch)
{
	if (!patch->before)
		tx->held -= patch->n;
	free(patch->after);
	free(patch);
}

/* A patch whose bytes are not set yet. */
static struct h5_tx_patch *patch_new(struct h5_tx *tx, uint64_t address, size_t n, bool fresh)
{
	struct h5_tx_patch *patch = calloc(1, sizeof *patch);

	if (!patch || !(patch->after = malloc(fresh ? n : 2 * n))) {
		free(patch);
		h5_fail(-ENOMEM, address, "out of memory");
		return NULL;
	}
	patch->address = address;
	patch->n = n;
	patch->unit = tx->unit.depth ? tx->unit.number : 0;
	if (fresh)
		tx->held += n;
	else
		patch->before = patch->after + n;
	return patch;
}

/* A patch over the bytes as they are in the file, or over nothing. */
static int patch_read(struct h5_tx *tx, uint64_t address, size_t n, bool fresh, struct h5_tx_patch **out)
{
	struct h5_tx_patch *patch = patch_new(tx, address, n, fresh);
	int rc = 0;

	if (!patch)
		return -ENOMEM;
	if (!fresh) {
		rc = h5_io_read(h5_file_io(tx->file), tx->space.base + address, patch->before, n);
		if (!rc)
			memcpy(patch->after, patch->before, n);
	}
	if (rc)
		patch_free(tx, patch);
	else
		*out = patch;
	return rc;
}

/* True: a unit is open, and may have to go back to this patch. */
static bool is_older_than_unit(const struct h5_tx *tx, const struct h5_tx_patch *patch)
{
	return tx->unit.depth && patch->unit != tx->unit.number;
}

/* What was taken out of the list. */
static void retire(struct h5_tx *tx, struct h5_tx_patch *patch)
{
	if (is_older_than_unit(tx, patch)) {
		patch->next = tx->unit.aside;
		tx->unit.aside = patch;
	} else {
		patch_free(tx, patch);
	}
}

/* Makes patch i one that can be changed. `whole`: all of its bytes will be. */
static int make_own(struct h5_tx *tx, size_t i, bool whole)
{
	struct h5_tx_patch *old = tx->patches[i], *copy;

	if (!is_older_than_unit(tx, old))
		return 0;
	copy = patch_new(tx, old->address, old->n, !old->before);
	if (!copy)
		return -ENOMEM;
	if (!whole)
		memcpy(copy->after, old->after, old->n);
	if (old->before)
		memcpy(copy->before, old->before, old->n);
	copy->stage = old->stage;
	copy->order = old->order;
	tx->patches[i] = copy;
	retire(tx, old);
	return 0;
}

/* Takes `n` patches from i on out of the list. */
static void remove_patches(struct h5_tx *tx, size_t i, size_t n)
{
	if (!n)
		return;
	for (size_t j = i; j < i + n; j++)
		retire(tx, tx->patches[j]);
	memmove(tx->patches + i, tx->patches + i + n, (tx->patch_count - i - n) * sizeof *tx->patches);
	tx->patch_count -= n;
}

static int make_room(struct h5_tx *tx)
{
	size_t capacity = 2 * tx->patch_capacity + 16;
	struct h5_tx_patch **patches;

	if (tx->patch_count < tx->patch_capacity)
		return 0;
	patches = realloc(tx->patches, capacity * sizeof *patches);
	if (!patches)
		return h5_fail(-ENOMEM, H5_UNDEF, "out of memory");
	tx->patches = patches;
	tx->patch_capacity = capacity;
	return 0;
}

/* There is room. */
static void insert(struct h5_tx *tx, size_t i, struct h5_tx_patch *patch)
{
	assert(tx->patch_count < tx->patch_capacity);
	memmove(tx->patches + i + 1, tx->patches + i, (tx->patch_count - i) * sizeof *tx->patches);
	tx->patches[i] = patch;
	tx->patch_count++;
}

static void overlay(const struct h5_tx_patch *patch, uint64_t address, uint8_t *buf, size_t n)
{
	uint64_t begin = patch->address > address ? patch->address : address;
	uint64_t end = h5_min(patch->address + patch->n, address + n);

	if (begin < end)
		memcpy(buf + (begin - address), patch->after + (begin - patch->address),
		       (size_t)(end - begin));
}

static bool covers(const struct h5_tx *tx, size_t i, uint64_t address, uint64_t n)
{
	return i < tx->patch_count && tx->patches[i]->address <= address &&
	       tx->patches[i]->address + tx->patches[i]->n >= address + n;
}

/* Patch i has all these bytes already, as when rows are appended. */
static int overwrite(struct h5_tx *tx, size_t i, uint64_t address, const void *data, size_t n, unsigned stage)
{
	struct h5_tx_patch *patch;
	int rc = make_own(tx, i, n == tx->patches[i]->n);

	if (rc)
		return rc;
	patch = tx->patches[i];
	memcpy(patch->after + (address - patch->address), data, n);
	patch->stage = stage > patch->stage ? stage : patch->stage;
	return 0;
}

int h5_tx_add_patch(struct h5_tx *tx, uint64_t address, const void *data, size_t n, unsigned stage,
		    bool fresh)
{
	size_t i = first_behind(tx, address), overlaps = 0;
	uint64_t begin = address, end = address + n;
	struct h5_tx_patch *patch = NULL;
	int rc;

	if (covers(tx, i, address, n))
		return overwrite(tx, i, address, data, n, stage);
	for (; i + overlaps < tx->patch_count && tx->patches[i + overlaps]->address < end; overlaps++) {
		const struct h5_tx_patch *other = tx->patches[i + overlaps];

		if (other->address < begin)
			begin = other->address;
		if (other->address + other->n > end)
			end = other->address + other->n;
	}
	rc = make_room(tx);
	if (!rc)
		rc = patch_read(tx, begin, (size_t)(end - begin), fresh, &patch);
	if (rc)
		return rc;
	patch->stage = stage;
	for (size_t j = i; j < i + overlaps; j++) {
		overlay(tx->patches[j], begin, patch->after, patch->n);
		patch->stage = tx->patches[j]->stage > patch->stage ? tx->patches[j]->stage : patch->stage;
	}
	memcpy(patch->after + (address - begin), data, n);
	patch->order = tx->next_order++;
	remove_patches(tx, i, overlaps);
	insert(tx, i, patch);
	return 0;
}

void h5_tx_drop_patches(struct h5_tx *tx, uint64_t address, uint64_t n)
{
	size_t i = first_behind(tx, address), inside = 0;
	uint64_t end = address + n;

	while (i < tx->patch_count && tx->patches[i]->address < address)
		i++;
	while (i + inside < tx->patch_count &&
	       tx->patches[i + inside]->address + tx->patches[i + inside]->n <= end)
		inside++;
	remove_patches(tx, i, inside);
}

void h5_tx_drop_all(struct h5_tx *tx)
{
	remove_patches(tx, 0, tx->patch_count);
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
	size_t kept = 0;

	for (size_t i = 0; i < tx->patch_count; i++) {
		if (tx->patches[i]->unit == tx->unit.number)
			patch_free(tx, tx->patches[i]);
		else
			tx->patches[kept++] = tx->patches[i];
	}
	tx->patch_count = kept;
	/* There is room for what was there before. */
	for (struct h5_tx_patch *patch = tx->unit.aside, *next; patch; patch = next) {
		next = patch->next;
		insert(tx, first_behind(tx, patch->address), patch);
	}
	tx->unit.aside = NULL;
}

bool h5_tx_holds(const struct h5_tx *tx, uint64_t address, size_t n)
{
	return covers(tx, first_behind(tx, address), address, n);
}

void h5_tx_apply(const struct h5_tx *tx, uint64_t address, uint8_t *buf, size_t n)
{
	for (size_t i = first_behind(tx, address);
	     i < tx->patch_count && tx->patches[i]->address < address + n; i++)
		overlay(tx->patches[i], address, buf, n);
}

/* New metadata that may be written now. What a unit has put into new space that was there before it has to
 * wait for the unit's end; what it has allocated nobody refers to if it fails. */
static bool can_flush(const struct h5_tx *tx, const struct h5_tx_patch *patch)
{
	if (patch->before)
		return false;
	return !tx->unit.depth || patch->unit != tx->unit.number ||
	       h5_extents_covers(&tx->unit.allocated, patch->address, patch->n);
}

int h5_tx_flush(struct h5_tx *tx)
{
	size_t kept = 0, i = 0;
	int rc = 0;

	if (!tx->held)
		return 0;
	for (; i < tx->patch_count && !rc; i++) {
		struct h5_tx_patch *patch = tx->patches[i];
		bool meant = can_flush(tx, patch);

		if (meant)
			rc = h5_io_write(h5_file_io(tx->file), tx->space.base + patch->address, patch->after,
					 patch->n);
		if (!meant || rc)
			tx->patches[kept++] = patch;
		else
			patch_free(tx, patch);
	}
	memmove(tx->patches + kept, tx->patches + i, (tx->patch_count - i) * sizeof *tx->patches);
	tx->patch_count -= i - kept;
	return rc;
}
