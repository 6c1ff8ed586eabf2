/* The commit of a transaction, and what becomes of it if it fails. The numbers of invariants are those of
 * doc/writing.md. */
#include "base/checked.h"
#include "base/error.h"
#include "change/private.h"
#include "change/transaction.h"
#include "store/statistics.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Raw data of earlier commits that a record hashes once more, at most. */
enum { COVERED_BYTES = 1 << 16, COVERED_COUNT = 256 };

/* ---- the last commit ---- */

/* The last commit no longer needs its journal. */
static void is_certain(struct h5_tx *tx)
{
	uint64_t bytes = 0;

	tx->unsynced = false;
	/* A copy of the file that is some commits old may by chance look as the file does when the next
	 * commit begins. Hashes of what was written since tell them apart; if that is a lot, nothing older is
	 * hashed. */
	h5_extents_each(e, &tx->covered) bytes += e->size;
	if (bytes > COVERED_BYTES || tx->covered.count > COVERED_COUNT)
		h5_extents_release(&tx->covered);
	h5_space_cooled(&tx->space);
}

/* Invariant 5: forgets all pending changes. */
static void roll_back(struct h5_tx *tx)
{
	h5_tx_drop_all(tx);
	h5_tx_empty_unit(tx);
	h5_extents_release(&tx->blocks);
	h5_extents_release(&tx->raw);
	h5_tx_forget_hashes(tx);
	h5_extents_release(&tx->superseded);
	h5_extents_release(&tx->objects);
	h5_space_rollback(&tx->space);
	tx->written = false;
	tx->number++;
	h5_file_renumber(tx->file);
}

int h5_tx_make_certain(struct h5_tx *tx)
{
	int rc = h5_io_sync(h5_tx_medium(tx));

	if (!rc)
		rc = h5_journal_clear(tx->journal);
	if (!rc)
		is_certain(tx);
	return rc;
}

void h5_tx_fail(struct h5_tx *tx)
{
	tx->failed = true;
	roll_back(tx);
}

/* ---- the superblock ---- */

/* Encodes the superblock. Its n bytes at the offset change. */
static int superblock_bytes(struct h5_tx *tx, const struct h5_superblock *sb, uint8_t *data, size_t *offset,
			    size_t *n)
{
	size_t got;
	int rc = h5_io_read_some(h5_tx_medium(tx), tx->space.base, data, H5_SUPERBLOCK_MAX, &got);

	return rc ? rc : h5_superblock_update(data, got, sb, offset, n);
}

/* Makes the new end of the file a patch, which is written first. */
static int publish_end(struct h5_tx *tx)
{
	struct h5_superblock sb = tx->superblock;
	uint8_t data[H5_SUPERBLOCK_MAX];
	size_t offset, n;
	int rc;

	sb.end = tx->space.base + tx->space.areas[0].end;
	rc = superblock_bytes(tx, &sb, data, &offset, &n);
	return rc ? rc : h5_tx_add_patch(tx, offset, data + offset, n, H5_STAGE_SUPERBLOCK, false);
}

int h5_tx_write_superblock(struct h5_tx *tx, const struct h5_superblock *sb)
{
	uint8_t data[H5_SUPERBLOCK_MAX];
	size_t offset, n;
	int rc = superblock_bytes(tx, sb, data, &offset, &n);

	if (!rc)
		rc = h5_io_write(h5_tx_medium(tx), tx->space.base + offset, data + offset, n);
	if (!rc)
		rc = h5_io_sync(h5_tx_medium(tx));
	if (!rc)
		tx->superblock = *sb;
	return rc;
}

/* ---- the commit ---- */

static int compare_order(const void *a, const void *b)
{
	const struct h5_tx_patch *x = *(struct h5_tx_patch *const *)a, *y = *(struct h5_tx_patch *const *)b;

	if (x->stage != y->stage)
		return h5_compare(x->stage, y->stage);
	return h5_compare(x->order, y->order);
}

/* The patches in the order of the commit. */
static struct h5_tx_patch **in_order(const struct h5_tx *tx)
{
	size_t count = h5_tx_patch_count(tx);
	struct h5_tx_patch **order = malloc(count * sizeof *order);

	if (!order)
		return NULL;
	for (size_t i = 0; i < count; i++)
		order[i] = h5_tx_patch_at(tx, i);
	qsort(order, count, sizeof *order, compare_order);
	return order;
}

int h5_tx_set_sizes(struct h5_tx *tx)
{
	int rc = 0;

	h5_space_each_area(area, &tx->space) rc =
		rc ? rc : h5_io_resize(h5_tx_medium(tx), tx->space.base + area->end);
	return rc;
}

/* The file, or each of its members, becomes as long as what is allocated in it. A file that is longer stays
 * so. */
static int grow(struct h5_tx *tx)
{
	struct h5_io_stat st;
	int rc = h5_file_stat(tx->file, &st);

	if (!rc && (tx->space.pieces.count || st.size < tx->space.base + tx->space.areas[0].end))
		rc = h5_tx_set_sizes(tx);
	return rc;
}

/* Syncs new data, new metadata blocks, the size of the file, and the cells of the commit before. */
static int sync_new(struct h5_tx *tx)
{
	int rc = h5_tx_flush(tx);

	if (!rc)
		rc = grow(tx);
	if (rc)
		return rc;
	h5_space_each_area(area, &tx->space) h5_file_extend(tx->file, area->end);
	rc = h5_io_sync(h5_tx_medium(tx));
	if (rc) {
		/* The kernel may have thrown away what it could not write, so another sync proves nothing. */
		tx->failed = true;
		return rc;
	}
	is_certain(tx);
	return 0;
}

/* Makes the new end of the file a patch, and writes the record of the journal. *order becomes the cells in
 * the order of the commit, free(). */
static int write_record(struct h5_tx *tx, struct h5_tx_patch ***order)
{
	int rc = publish_end(tx);

	if (rc)
		return rc;
	assert(!tx->held); /* new blocks are written, so all patches are cells */
	*order = in_order(tx);
	return *order ? h5_tx_journal(tx, *order) : h5_fail(-ENOMEM, H5_UNDEF, "out of memory");
}

static void remember_cells(struct h5_tx *tx)
{
	h5_extents_release(&tx->cells);
	/* Without memory the next record guards less, and is correct all the same. */
	for (size_t i = 0; i < h5_tx_patch_count(tx); i++) {
		const struct h5_patch *cell = &h5_tx_patch_at(tx, i)->over;

		h5_extents_add(&tx->cells, cell->offset - tx->space.base, cell->n);
	}
}

/* If it fails in between, the journal stays: invariant 5. */
static int write_cells(struct h5_tx *tx, struct h5_tx_patch *const *order)
{
	int rc = 0;

	tx->applying = true;
	for (size_t i = 0; i < h5_tx_patch_count(tx) && !rc; i++) {
		const struct h5_tx_patch *cell = order[i];

		assert(!i || order[i - 1]->stage <= cell->stage);
		if (memcmp(cell->before, cell->after, cell->over.n))
			rc = h5_io_write(h5_tx_medium(tx), cell->over.offset, cell->after, cell->over.n);
	}
	if (rc) {
		tx->failed = true;
		return rc;
	}
	tx->applying = false;
	tx->unsynced = true;
	remember_cells(tx);
	return 0;
}

static void set_committed(struct h5_tx *tx)
{
	struct h5_tx_participant *participant;

	DL_FOREACH(tx->participants, participant)
	if (!participant->failure)
		participant->uncommitted = false;
}

/* `all`: all participants were settled, so nothing refers to what was given up. */
static void committed(struct h5_tx *tx, bool all)
{
	h5_count(&h5_file_shared(tx->file)->statistics->commits, 1);
	tx->superblock.end = tx->space.base + tx->space.areas[0].end;
	h5_tx_drop_all(tx);
	h5_extents_release(&tx->blocks);
	h5_extents_move(&tx->covered, &tx->raw);
	h5_extents_release(&tx->raw);
	h5_tx_forget_hashes(tx);
	h5_extents_release(&tx->superseded);
	h5_extents_release(&tx->objects);
	h5_space_committed(&tx->space, all);
	if (h5_file_image(tx->file))
		h5_file_drop_image(tx->file);
	tx->unmanaged = tx->persists && tx->extension_change;
	set_committed(tx);
	tx->written = false;
	tx->number++;
}

/* Space was given up, and nothing else has changed: so nothing has led to it. But the record of the last
 * commit may have hashes of it. */
static void release_unneeded(struct h5_tx *tx)
{
	h5_extents_release(&tx->superseded);
	h5_space_unneeded(&tx->space);
	if (!tx->unsynced)
		h5_space_cooled(&tx->space);
}

uint64_t h5_tx_number(const struct h5_file *file)
{
	return h5_tx_find(file)->number;
}

void h5_tx_cut(struct h5_tx *tx, struct h5_area *area, uint64_t end)
{
	h5_space_cut(&tx->space, area, end);
	/* If that fails, the file stays longer. */
	if (!h5_io_resize(h5_tx_medium(tx), tx->space.base + end))
		h5_file_cut(tx->file, end);
}

/* If all units have failed, their space is not in the file. */
static void take_end_back(struct h5_tx *tx)
{
	if (h5_tx_patch_count(tx) || tx->space.fresh.count)
		return;
	h5_space_each_area(area, &tx->space)
	{
		uint64_t end = h5_max(area->committed_end, area->least);

		if (area->end > end)
			h5_tx_cut(tx, area, end);
	}
}

/* The journal, and the cells. */
static int write_changes(struct h5_tx *tx)
{
	struct h5_tx_patch **order = NULL;
	int rc = write_record(tx, &order);

	if (!rc)
		rc = write_cells(tx, order);
	free(order);
	return rc;
}

static int commit(struct h5_tx *tx)
{
	bool all;
	int rc;

	assert(!tx->unit.depth);
	all = !h5_tx_settle(tx->file);
	assert(!tx->unit.depth);
	if (!h5_tx_is_pending(tx->file)) {
		set_committed(tx);
		if (all)
			release_unneeded(tx);
		return 0;
	}
	take_end_back(tx);
	rc = tx->extension_change ? tx->extension_change(tx) : 0;
	if (!rc)
		rc = sync_new(tx);
	if (tx->failed)
		roll_back(tx);
	/* If only elements were overwritten, the sync was all. */
	if (!rc && (h5_tx_patch_count(tx) || !h5_space_ends_as_committed(&tx->space)))
		rc = write_changes(tx);
	if (!rc)
		committed(tx, all);
	return rc;
}

int h5_tx_commit_ends(struct h5_tx *tx, const uint64_t *ends)
{
	struct h5_space *space = &tx->space;
	struct h5_area before[H5_FILE_AREAS_MAX];
	int rc;

	memcpy(before, space->areas, sizeof before);
	h5_space_each_area(area, space)
	{
		area->end = ends[area - space->areas];
		area->committed_end = h5_min(area->committed_end, area->end);
		area->least = h5_min(area->least, area->end);
	}
	rc = tx->extension_change(tx);
	if (!rc)
		rc = write_changes(tx);
	if (!rc) {
		committed(tx, true);
	} else if (!tx->applying) {
		memcpy(space->areas, before, sizeof before);
		roll_back(tx);
	}
	return rc;
}

void h5_tx_set_around(struct h5_file *file, const struct h5_tx_around *around)
{
	h5_tx_find(file)->around = around;
}

int h5_tx_commit(struct h5_file *file)
{
	struct h5_tx *tx = h5_tx_find(file);
	int rc;

	if (!tx || tx->failed)
		return 0;
	if (tx->around)
		tx->around->before(tx->around->arg);
	rc = commit(tx);
	if (tx->around)
		tx->around->after(tx->around->arg, !rc);
	return rc;
}

void h5_tx_abandon(struct h5_file *file)
{
	struct h5_tx *tx = h5_tx_find(file);

	assert(!tx->failed && !tx->unit.depth);
	for (const struct h5_tx_participant *p = tx->participants; p; p = p->next)
		assert(!p->uncommitted);
	roll_back(tx);
	/* The disk may be full, so space that nothing needs is given back. If that fails, the file stays
	 * longer. */
	(void)h5_tx_set_sizes(tx);
}
