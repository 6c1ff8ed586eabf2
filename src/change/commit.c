/* The commit. The numbers of invariants are those of doc/writing.md. */
#include "base/checked.h"
#include "base/error.h"
#include "change/private.h"
#include "store/statistics.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Raw data of earlier commits that a record hashes once more, at most. */
enum { COVERED_BYTES = 1 << 16, COVERED_COUNT = 256 };

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
	/* In older versions the flags mean nothing. */
	if (sb.version < 3 || sb.consistency == tx->superblock.consistency)
		return 0;
	rc = superblock_bytes(tx, &sb, data, &offset, &n);
	if (!rc)
		rc = h5_io_write(h5_tx_medium(tx), tx->space.base + offset, data + offset, n);
	if (!rc)
		rc = h5_io_sync(h5_tx_medium(tx));
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
	size_t count = h5_tx_patch_count(tx);
	struct h5_tx_patch **order = malloc(count * sizeof *order);

	if (!order)
		return NULL;
	for (size_t i = 0; i < count; i++)
		order[i] = h5_tx_patch_at(tx, i);
	qsort(order, count, sizeof *order, compare_order);
	return order;
}

/* The last commit no longer needs its journal. */
static void is_certain(struct h5_tx *tx)
{
	uint64_t bytes = 0;

	tx->unsynced = false;
	/* A copy of the file from some commits ago may by chance look like the begin of the next commit.
	 * Hashes of what the commits since have written tell them apart. If that is much, they are left out.
	 */
	for (size_t i = 0; i < tx->covered.count; i++)
		bytes += tx->covered.list[i].size;
	if (bytes > COVERED_BYTES || tx->covered.count > COVERED_COUNT)
		h5_extents_release(&tx->covered);
	h5_space_cooled(&tx->space);
}

/* Syncs new data, new metadata blocks, the size of the file, and the cells of the commit before. */
static int sync_new(struct h5_tx *tx)
{
	struct h5_io_stat st;
	int rc = h5_tx_flush(tx);

	if (!rc)
		rc = h5_file_stat(tx->file, &st);
	if (!rc && st.size < tx->space.base + tx->space.end)
		rc = h5_io_resize(h5_tx_medium(tx), tx->space.base + tx->space.end);
	if (rc)
		return rc;
	h5_file_extend(tx->file, tx->space.end);
	rc = h5_io_sync(h5_tx_medium(tx));
	if (rc) {
		/* The kernel may have thrown away what it could not write, so another sync proves nothing. */
		tx->failed = true;
		return rc;
	}
	is_certain(tx);
	return 0;
}

void h5_tx_roll_back(struct h5_tx *tx)
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
	h5_file_renumber(tx->file);
}

int h5_tx_make_certain(struct h5_tx *tx)
{
	int rc = h5_io_sync(h5_tx_medium(tx));

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
	tx->superblock.end = tx->space.base + tx->space.end;
	h5_tx_drop_all(tx);
	h5_extents_release(&tx->blocks);
	h5_extents_move(&tx->covered, &tx->raw);
	h5_extents_release(&tx->raw);
	h5_tx_forget_hashes(tx);
	h5_extents_release(&tx->superseded);
	h5_extents_release(&tx->objects);
	h5_space_committed(&tx->space, all);
	set_committed(tx);
	tx->written = false;
}

bool h5_tx_is_pending(const struct h5_file *file)
{
	const struct h5_tx *tx = h5_tx_find(file);

	return tx && !tx->failed && (h5_tx_patch_count(tx) || tx->written);
}

int h5_tx_commit(struct h5_file *file)
{
	struct h5_tx *tx = h5_tx_find(file);
	struct h5_tx_patch **order = NULL;
	bool all;
	int rc;

	if (!tx || tx->failed)
		return 0;
	assert(!tx->unit.depth);
	all = !h5_tx_settle(file);
	assert(!tx->unit.depth);
	if (!h5_tx_is_pending(file)) {
		set_committed(tx);
		return 0;
	}
	rc = sync_new(tx);
	if (tx->failed)
		h5_tx_roll_back(tx);
	/* If only elements were overwritten, the sync was all. */
	if (!rc && (h5_tx_patch_count(tx) || tx->space.end != tx->space.committed_end)) {
		rc = write_record(tx, &order);
		if (!rc)
			rc = write_cells(tx, order);
		free(order);
	}
	if (!rc)
		committed(tx, all);
	return rc;
}

int h5_tx_finish(struct h5_tx *tx)
{
	int rc = 0;

	if (tx->unsynced && tx->failed)
		return -EIO; /* a sync has failed, so the success of another one means nothing */
	if (tx->unsynced) {
		rc = h5_io_sync(h5_tx_medium(tx));
		if (!rc)
			rc = h5_journal_clear(tx->journal);
		tx->unsynced = rc;
	}
	if (rc || !tx->marked)
		return rc;
	return h5_tx_mark(tx, 0);
}
