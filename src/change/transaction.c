#include "change/transaction.h"

#include "base/checked.h"
#include "base/error.h"
#include "change/private.h"

#include <assert.h>

enum { HELD_MAX = 8 << 20 }; /* bytes of new metadata that are held in memory */

bool h5_tx_is_writable(const struct h5_file *file)
{
	const struct h5_tx *tx = h5_tx_find(file);

	return tx && !tx->failed;
}

bool h5_tx_is_swmr(const struct h5_file *file)
{
	const struct h5_tx *tx = h5_tx_find(file);

	return tx && tx->space.keeps;
}

/* ---- changes ---- */

/* Checks that the bytes lie inside the file. */
static int check_inside(const struct h5_tx *tx, uint64_t address, size_t n)
{
	uint64_t end;

	if (!h5_add(address, n, &end) || end > tx->space.end)
		return h5_fail(-EUCLEAN, address, "a write beyond the end of the file");
	return 0;
}

static void changed(struct h5_file *file, struct h5_tx *tx, uint64_t address, size_t n)
{
	tx->written = true;
	h5_file_extend(file, address + n);
	h5_tx_forget(file, address);
}

int h5_tx_write(struct h5_file *file, uint64_t address, const void *data, size_t n)
{
	struct h5_tx *tx;
	int rc = h5_tx_of(file, &tx);

	if (!rc)
		rc = check_inside(tx, address, n);
	/* While the last commit needs its journal, bytes that this has hashed must not change. */
	if (!rc && tx->unsynced && h5_extents_touches(&tx->covered, address, n))
		rc = h5_tx_make_certain(tx);
	if (!rc) {
		h5_tx_unhash(tx, address, n);
		rc = h5_io_write(h5_tx_medium(tx), tx->space.base + address, data, n);
	}
	if (!rc && h5_extents_touches(&tx->space.fresh, address, n)) {
		h5_tx_cover(file, address, n);
		if (h5_extents_covers(&tx->raw, address, n))
			h5_tx_hash(tx, address, data, n);
	}
	/* Even if it failed, it may have changed a part. */
	if (tx && !tx->failed)
		changed(file, tx, address, rc ? 0 : n);
	return rc;
}

void h5_tx_cover(struct h5_file *file, uint64_t address, uint64_t n)
{
	struct h5_tx *tx = h5_tx_find(file);

	/* Without memory the journal lacks a hash: it guards less, and is correct all the same. */
	if (!tx || tx->failed || !n)
		return;
	h5_extents_drop(&tx->covered, address, n);
	h5_extents_add(&tx->raw, address, n);
}

void h5_tx_uncover(struct h5_file *file, uint64_t address, uint64_t n)
{
	struct h5_tx *tx = h5_tx_find(file);

	if (!tx || !n)
		return;
	h5_tx_unhash(tx, address, n);
	h5_extents_drop(&tx->raw, address, n);
}

int h5_tx_put(struct h5_file *file, uint64_t address, const void *data, size_t n)
{
	struct h5_tx *tx;
	int rc = h5_tx_of(file, &tx);

	if (!rc)
		rc = check_inside(tx, address, n);
	if (!rc && !h5_tx_is_new(file, address))
		rc = h5_fail(-EUCLEAN, address, "metadata would be written over what is committed");
	if (!rc && tx->held > HELD_MAX)
		rc = h5_tx_flush(tx);
	if (!rc)
		rc = h5_extents_add(&tx->blocks, address, n);
	if (!rc)
		rc = h5_tx_add_patch(tx, address, data, n, 0, true);
	if (!rc)
		changed(file, tx, address, n);
	return rc;
}

bool h5_tx_is_safe(const struct h5_file *file, uint64_t address, size_t n)
{
	const struct h5_tx *tx = h5_tx_find(file);
	uint64_t at = tx->space.base + address;

	return h5_tx_is_new(file, address) || at / H5_CELL == (at + n - 1) / H5_CELL;
}

int h5_tx_patch(struct h5_file *file, uint64_t address, const void *data, size_t n, unsigned stage)
{
	struct h5_tx *tx;
	int rc = h5_tx_of(file, &tx);

	if (rc)
		return rc;
	if (h5_tx_is_new(file, address))
		return h5_tx_put(file, address, data, n);
	rc = check_inside(tx, address, n);
	if (!rc)
		rc = h5_tx_add_patch(tx, address, data, n, stage, false);
	if (!rc)
		h5_tx_forget(file, address);
	return rc;
}

int h5_tx_store(struct h5_file *file, uint64_t *address, const void *data, size_t n, unsigned stage)
{
	/* Invariant 1: only cells in place. */
	if (*address != H5_UNDEF && h5_tx_is_safe(file, *address, n))
		return h5_tx_patch(file, *address, data, n, stage);
	return h5_tx_shadow(file, address, data, n);
}

int h5_tx_shadow(struct h5_file *file, uint64_t *address, const void *data, size_t n)
{
	uint64_t old = *address, new = old;
	int rc = 0;

	if (old != H5_UNDEF && h5_tx_is_new(file, old))
		return h5_tx_put(file, old, data, n);
	rc = h5_tx_allocate(file, H5_ALLOCATE_METADATA, n, &new);
	if (rc)
		return rc;
	rc = h5_tx_put(file, new, data, n);
	if (rc) {
		h5_tx_free(file, new, n);
		return rc;
	}
	if (old != H5_UNDEF)
		h5_tx_free(file, old, n);
	*address = new;
	return 0;
}

int h5_tx_touch(struct h5_file *file, uint64_t object_header)
{
	struct h5_tx *tx;
	int rc = h5_tx_of(file, &tx);

	return rc ? rc : h5_extents_add(&tx->objects, object_header, 1);
}

/* ---- going back ---- */

void h5_tx_abandon(struct h5_file *file)
{
	struct h5_tx *tx = h5_tx_find(file);

	if (!tx || tx->failed)
		return;
	assert(!tx->unit.depth);
	for (const struct h5_tx_participant *p = tx->participants; p; p = p->next)
		assert(!p->uncommitted);
	h5_tx_roll_back(tx);
	/* The disk may be full, so space that nothing needs is given back. If that fails, the file stays
	 * longer. */
	(void)h5_io_resize(h5_tx_medium(tx), tx->space.base + tx->space.end);
}
