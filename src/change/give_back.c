/* Runs while no change is pending: space that nothing refers to goes back to the file system, and a
 * mount ends.
 *
 * The order is one that a kill or a power cut may end anywhere. First the last commit becomes certain, and
 * the journal is cleared: no replay needs the space then, nor finds another superblock than it knows. Then
 * the superblock gets the new end, and only after that was synced the file is cut: libhdf5 refuses a file
 * that is shorter than its superblock says. If members have ends of their own (multi driver), a commit
 * changes them all. */
#include "change/transaction.h"

#include "base/checked.h"
#include "change/private.h"

/* ---- the superblock ---- */

int h5_tx_mark(struct h5_tx *tx, uint32_t marks)
{
	struct h5_superblock sb = tx->superblock;

	sb.consistency = (sb.consistency & ~(uint32_t)(H5_FLAG_WRITING | H5_FLAG_SWMR)) | marks;
	/* In older versions the flags mean nothing. */
	if (sb.version < 3 || sb.consistency == tx->superblock.consistency)
		return 0;
	return h5_tx_write_superblock(tx, &sb);
}

/* ---- space ---- */

/* Cuts off what is free at the end of the file. If that fails, the file stays longer, and is sound. */
static int cut_end(struct h5_tx *tx)
{
	struct h5_area *area = tx->space.areas;
	uint64_t end = h5_space_least_end(&tx->space, area);
	struct h5_superblock sb = tx->superblock;
	int rc = 0;

	if (end >= area->end)
		return 0;
	sb.end = tx->space.base + end;
	if (end < area->committed_end)
		rc = h5_tx_write_superblock(tx, &sb);
	if (rc)
		return rc;
	h5_tx_cut(tx, area, end);
	h5_extents_drop(&tx->cells, end, UINT64_MAX - end);
	return 0;
}

/* The same with the ends of all members. These are stated in several places, so a commit changes them, which
 * becomes certain before the members are cut. */
static int cut_members(struct h5_tx *tx)
{
	struct h5_space *space = &tx->space;
	uint64_t ends[H5_FILE_AREAS_MAX];
	bool some = false;
	int rc;

	h5_space_each_area(area, space)
	{
		ends[area - space->areas] = h5_space_least_end(space, area);
		some |= ends[area - space->areas] < area->end;
	}
	if (!some)
		return 0;
	rc = h5_tx_commit_ends(tx, ends);
	if (rc)
		return tx->applying ? rc : 0;
	rc = h5_tx_make_certain(tx);
	if (rc)
		return rc;
	h5_space_each_area(area, space) h5_tx_cut(tx, area, area->end);
	return 0;
}

/* Punches holes into what is free elsewhere. A failure costs nothing but space. */
static void punch(struct h5_tx *tx)
{
	struct h5_extents pages = {0};
	int rc = tx->solid ? 0 : h5_space_find_pages(&tx->space, &pages);

	h5_extents_each(e, &pages)
	{
		if (rc)
			break;
		rc = h5_io_punch(h5_tx_medium(tx), tx->space.base + e->address, e->size);
		if (!rc)
			h5_space_punched(&tx->space, e->address, e->size);
		tx->solid = rc == -EOPNOTSUPP || rc == -ENOSYS || rc == -EPERM;
	}
	h5_extents_release(&pages);
}

static int give_back(struct h5_tx *tx)
{
	int rc = tx->space.pieces.count ? cut_members(tx) : cut_end(tx);

	if (rc)
		return rc;
	punch(tx);
	return 0;
}

/* Bytes that could perhaps be given back. */
static uint64_t waste(const struct h5_tx *tx)
{
	const struct h5_space *space = &tx->space;
	uint64_t bytes = h5_space_waste(space, !tx->solid);

	h5_extents_each(e, &space->cooling) bytes += e->size;
	/* Space that SWMR readers may need is no waste. */
	return space->keeps ? 0 : bytes;
}

int h5_tx_give_back(struct h5_file *file, uint64_t least)
{
	struct h5_tx *tx = h5_tx_find(file);
	int rc;

	if (!tx || tx->failed || tx->unsettled || h5_tx_is_pending(file) || tx->space.fresh.count ||
	    waste(tx) < h5_max(least, 1))
		return 0;
	rc = h5_tx_make_certain(tx);
	if (!rc)
		rc = give_back(tx);
	if (rc)
		h5_tx_fail(tx);
	return rc;
}

int h5_tx_reclaim(struct h5_file *file, const struct h5_extents *unused)
{
	struct h5_tx *tx;
	struct h5_io_stat st;
	int rc = h5_tx_of(file, &tx);

	if (rc)
		return rc;
	h5_extents_each(e, unused) h5_space_reclaim(&tx->space, e->address, e->size);
	rc = h5_tx_give_back(file, 1);
	if (!rc)
		rc = h5_file_stat(file, &st);
	if (!rc && !tx->space.fixed_end &&
	    (tx->space.pieces.count || st.size > tx->space.base + tx->space.areas[0].end))
		rc = h5_tx_set_sizes(tx);
	return rc;
}

/* ---- the end of a mount ---- */

int h5_tx_finish(struct h5_tx *tx)
{
	bool clean = !tx->failed && !h5_tx_patch_count(tx) && !tx->written && !tx->space.fresh.count &&
		     !tx->space.pieces.count;
	int rc = 0;

	if (tx->unsynced && tx->failed)
		return -EIO; /* a sync has failed, so the success of another one means nothing */
	if (tx->unsynced || (clean && waste(tx)))
		rc = h5_tx_make_certain(tx);
	/* If the end cannot be cut, the file is sound, and needs no journal. */
	if (!rc && clean && waste(tx))
		(void)give_back(tx);
	if (rc || !tx->marked)
		return rc;
	return h5_tx_mark(tx, 0);
}
