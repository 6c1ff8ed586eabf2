/* Pending cells and the commit. The numbers of invariants are those of doc/writing.md. */
#include "store/tx_commit.h"

#include "base/checked.h"
#include "base/error.h"
#include "store/file_private.h"
#include "store/file_set.h"
#include "store/statistics.h"
#include "store/tx_private.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
	COVERED_BYTES = 1 << 16,
	COVERED_COUNT = 256
}; /* of commits before that the journal hashes once more */

/* ---- pending patches ---- */

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

/* A patch over the bytes as they are in the file, or over nothing. */
static int patch_new(struct h5_tx *tx, uint64_t address, size_t n, bool fresh, struct h5_tx_patch **out)
{
	struct h5_tx_patch *patch = calloc(1, sizeof *patch);
	int rc = 0;

	if (!patch || !(patch->after = malloc(fresh ? n : 2 * n))) {
		free(patch);
		return h5_fail(-ENOMEM, address, "out of memory");
	}
	patch->address = address;
	patch->n = n;
	if (fresh) {
		tx->held += n;
	} else {
		patch->before = patch->after + n;
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

/* Takes `n` patches from i on out of the list. */
static void remove_patches(struct h5_tx *tx, size_t i, size_t n)
{
	if (!n)
		return;
	for (size_t j = i; j < i + n; j++)
		patch_free(tx, tx->patches[j]);
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

static void overlay(const struct h5_tx_patch *patch, uint64_t address, uint8_t *buf, size_t n)
{
	uint64_t begin = patch->address > address ? patch->address : address;
	uint64_t end = h5_min(patch->address + patch->n, address + n);

	if (begin < end)
		memcpy(buf + (begin - address), patch->after + (begin - patch->address),
		       (size_t)(end - begin));
}

int h5_tx_add_patch(struct h5_tx *tx, uint64_t address, const void *data, size_t n, unsigned stage,
		    bool fresh)
{
	size_t i = first_behind(tx, address), overlaps = 0;
	uint64_t begin = address, end = address + n;
	struct h5_tx_patch *patch = NULL;
	int rc;

	/* The same bytes once more, as appending makes them all the time. */
	if (i < tx->patch_count && tx->patches[i]->address <= address &&
	    tx->patches[i]->address + tx->patches[i]->n >= end) {
		patch = tx->patches[i];
		memcpy(patch->after + (address - patch->address), data, n);
		patch->stage = stage > patch->stage ? stage : patch->stage;
		return 0;
	}
	for (; i + overlaps < tx->patch_count && tx->patches[i + overlaps]->address < end; overlaps++) {
		const struct h5_tx_patch *other = tx->patches[i + overlaps];

		if (other->address < begin)
			begin = other->address;
		if (other->address + other->n > end)
			end = other->address + other->n;
	}
	rc = make_room(tx);
	if (!rc)
		rc = patch_new(tx, begin, (size_t)(end - begin), fresh, &patch);
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
	memmove(tx->patches + i + 1, tx->patches + i, (tx->patch_count - i) * sizeof *tx->patches);
	tx->patches[i] = patch;
	tx->patch_count++;
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

bool h5_tx_holds(const struct h5_tx *tx, uint64_t address, size_t n)
{
	size_t i = first_behind(tx, address);

	return i < tx->patch_count && tx->patches[i]->address <= address &&
	       tx->patches[i]->address + tx->patches[i]->n >= address + n;
}

void h5_tx_apply(const struct h5_tx *tx, uint64_t address, uint8_t *buf, size_t n)
{
	for (size_t i = first_behind(tx, address);
	     i < tx->patch_count && tx->patches[i]->address < address + n; i++)
		overlay(tx->patches[i], address, buf, n);
}

int h5_tx_flush(struct h5_tx *tx)
{
	size_t kept = 0, i = 0;
	int rc = 0;

	if (!tx->held)
		return 0;
	for (; i < tx->patch_count && !rc; i++) {
		struct h5_tx_patch *patch = tx->patches[i];

		if (!patch->before)
			rc = h5_io_write(h5_file_io(tx->file), tx->space.base + patch->address, patch->after,
					 patch->n);
		if (patch->before || rc)
			tx->patches[kept++] = patch;
		else
			patch_free(tx, patch);
	}
	memmove(tx->patches + kept, tx->patches + i, (tx->patch_count - i) * sizeof *tx->patches);
	tx->patch_count -= i - kept;
	return rc;
}

/* ---- the superblock ---- */

/* The superblock with this end and these marks. */
static int superblock_bytes(struct h5_tx *tx, const struct h5_superblock *sb, uint8_t *data, size_t *offset,
			    size_t *n)
{
	size_t got;
	int rc = h5_io_read_some(h5_file_io(tx->file), tx->space.base, data, H5_SUPERBLOCK_MAX, &got);

	return rc ? rc : h5_superblock_update(data, got, sb, offset, n);
}

/* Makes the new end of the file a patch, the first of all. */
static int publish_end(struct h5_tx *tx)
{
	struct h5_superblock sb = tx->superblock;
	uint8_t data[H5_SUPERBLOCK_MAX];
	size_t offset, n;
	int rc;

	sb.end = tx->space.base + tx->space.end;
	rc = superblock_bytes(tx, &sb, data, &offset, &n);
	return rc ? rc : h5_tx_add_patch(tx, offset, data + offset, n, H5_STAGE_SUPERBLOCK, false);
}

int h5_tx_mark(struct h5_tx *tx, uint32_t marks)
{
	struct h5_superblock sb = tx->superblock;
	uint8_t data[H5_SUPERBLOCK_MAX];
	size_t offset, n;
	int rc;

	sb.consistency = (sb.consistency & ~(uint32_t)(H5_FLAG_WRITING | H5_FLAG_SWMR)) | marks;
	/* What older versions say there means nothing. */
	if (sb.version < 3 || sb.consistency == tx->superblock.consistency)
		return 0;
	rc = superblock_bytes(tx, &sb, data, &offset, &n);
	if (!rc)
		rc = h5_io_write(h5_file_io(tx->file), tx->space.base + offset, data + offset, n);
	if (!rc)
		rc = h5_io_sync(h5_file_io(tx->file));
	if (!rc)
		tx->superblock.consistency = sb.consistency;
	return rc;
}

/* ---- the commit ---- */

static int compare_order(const void *a, const void *b)
{
	const struct h5_tx_patch *x = *(struct h5_tx_patch *const *)a, *y = *(struct h5_tx_patch *const *)b;

	if (x->stage != y->stage)
		return x->stage < y->stage ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/* The patches in the order of the commit. */
static struct h5_tx_patch **in_order(const struct h5_tx *tx)
{
	struct h5_tx_patch **order = malloc(tx->patch_count * sizeof *order);

	if (!order)
		return NULL;
	memcpy(order, tx->patches, tx->patch_count * sizeof *order);
	qsort(order, tx->patch_count, sizeof *order, compare_order);
	return order;
}

static int apply(struct h5_tx *tx, struct h5_tx_patch *const *order)
{
	int rc = 0;

	for (size_t i = 0; i < tx->patch_count && !rc; i++)
		if (memcmp(order[i]->before, order[i]->after, order[i]->n))
			rc = h5_io_write(h5_file_io(tx->file), tx->space.base + order[i]->address,
					 order[i]->after, order[i]->n);
	return rc;
}

/* The last commit needs its journal no more. */
static void is_certain(struct h5_tx *tx)
{
	uint64_t bytes = 0;

	tx->unsynced = false;
	/* A file that was copied some commits ago may by chance have what the next one begins with. Hashes of
	 * what these commits have written tell, as far as it is little. */
	for (size_t i = 0; i < tx->covered.count; i++)
		bytes += tx->covered.list[i].size;
	if (bytes > COVERED_BYTES || tx->covered.count > COVERED_COUNT)
		h5_extents_release(&tx->covered);
	h5_space_cooled(&tx->space);
}

/* New data, new metadata blocks and the size of the file are on the medium; and the cells of the commit
 * before. */
static int sync_new(struct h5_tx *tx)
{
	struct h5_io_stat st;
	int rc = h5_tx_flush(tx);

	if (!rc)
		rc = h5_file_stat(tx->file, &st);
	if (!rc && st.size < tx->space.base + tx->space.end)
		rc = h5_io_resize(h5_file_io(tx->file), tx->space.base + tx->space.end);
	if (rc)
		return rc;
	h5_file_extend(tx->file, tx->space.end);
	rc = h5_io_sync(h5_file_io(tx->file));
	if (rc) {
		/* What the kernel could not write it may have thrown away: writing again proves nothing. */
		tx->failed = true;
		return rc;
	}
	is_certain(tx);
	return 0;
}

void h5_tx_roll_back(struct h5_tx *tx)
{
	h5_tx_drop_all(tx);
	h5_extents_release(&tx->blocks);
	h5_extents_release(&tx->raw);
	h5_tx_forget_hashes(tx);
	h5_extents_release(&tx->superseded);
	h5_extents_release(&tx->objects);
	h5_space_rollback(&tx->space);
	tx->written = false;
	h5_file_renumber(tx->file);
}

int h5_tx_make_certain(struct h5_tx *tx)
{
	int rc = h5_io_sync(h5_file_io(tx->file));

	if (!rc)
		rc = h5_journal_clear(tx->journal);
	if (!rc) {
		is_certain(tx);
		return 0;
	}
	tx->failed = true;
	h5_tx_roll_back(tx);
	return rc;
}

/* True: all are settled. Who cannot be does not keep the others from their commit. */
static bool settle_all(struct h5_tx *tx)
{
	struct h5_tx_participant *p;
	bool all = true;

	DL_FOREACH(tx->participants, p)
	all &= !p->settle(p);
	return all;
}

static void remember_cells(struct h5_tx *tx)
{
	h5_extents_release(&tx->cells);
	/* Without memory the next record guards less, and is as right. */
	for (size_t i = 0; i < tx->patch_count; i++)
		h5_extents_add(&tx->cells, tx->patches[i]->address, tx->patches[i]->n);
}

/* `all`: nothing that was given up is still referred to. */
static void committed(struct h5_tx *tx, bool all)
{
	h5_count(&h5_file_set_statistics(h5_file_set_of(tx->file))->commits, 1);
	tx->space.committed_end = tx->space.end;
	tx->superblock.end = tx->space.base + tx->space.end;
	h5_tx_drop_all(tx);
	h5_extents_release(&tx->blocks);
	h5_extents_move(&tx->covered, &tx->raw);
	h5_extents_release(&tx->raw);
	h5_tx_forget_hashes(tx);
	h5_extents_release(&tx->superseded);
	h5_extents_release(&tx->objects);
	h5_space_committed(&tx->space, all);
	tx->written = false;
}

bool h5_tx_is_pending(const struct h5_file *file)
{
	const struct h5_tx *tx = h5_file_tx(file);

	return tx && !tx->failed && (tx->patch_count || tx->written);
}

int h5_tx_commit(struct h5_file *file)
{
	struct h5_tx *tx = h5_file_tx(file);
	struct h5_tx_patch **order = NULL;
	bool all;
	int rc;

	if (!tx || tx->failed)
		return 0;
	all = settle_all(tx);
	if (!h5_tx_is_pending(file))
		return 0;
	rc = sync_new(tx);
	/* Data over data: the sync was all. */
	if (!rc && !tx->patch_count && tx->space.end == tx->space.committed_end) {
		committed(tx, all);
		return 0;
	}
	if (!rc)
		rc = publish_end(tx);
	if (!rc && !(order = in_order(tx)))
		rc = h5_fail(-ENOMEM, H5_UNDEF, "out of memory");
	if (!rc)
		rc = h5_tx_journal(tx, order);
	if (rc && tx->failed)
		h5_tx_roll_back(tx);
	if (!rc) {
		tx->applying = true;
		rc = apply(tx, order);
		tx->failed = rc;
	}
	if (!rc) {
		tx->applying = false;
		tx->unsynced = true;
		remember_cells(tx);
		committed(tx, all);
	}
	free(order);
	return rc;
}

int h5_tx_finish(struct h5_tx *tx)
{
	int rc = 0;

	if (tx->unsynced && tx->failed)
		return -EIO; /* a sync has failed, so another one's success says nothing */
	if (tx->unsynced) {
		rc = h5_io_sync(h5_file_io(tx->file));
		if (!rc)
			rc = h5_journal_clear(tx->journal);
		tx->unsynced = rc;
	}
	if (rc || !tx->marked)
		return rc;
	return h5_tx_mark(tx, 0);
}
