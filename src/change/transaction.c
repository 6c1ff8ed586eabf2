/* Changes that wait for the commit (commit.c). The numbers of invariants are those of doc/writing.md. */
#include "change/transaction.h"

#include "base/checked.h"
#include "base/error.h"
#include "change/private.h"
#include "store/object_header.h"

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

/* Checks that the bytes lie inside the file. */
static int check_inside(const struct h5_tx *tx, uint64_t address, uint64_t n)
{
	if (!h5_space_has(&tx->space, address, n))
		return h5_fail(-EUCLEAN, address, "a write beyond the end of the file");
	if (n && address < h5_superblock_size(&tx->superblock))
		return h5_fail(-EUCLEAN, address, "a write over the superblock");
	return 0;
}

static void changed(struct h5_file *file, struct h5_tx *tx, uint64_t address, size_t n)
{
	tx->written = true;
	h5_file_extend(file, address + n);
	h5_tx_forget(file, address);
}

/* What comes before raw data are written. */
static int begin_write(struct h5_file *file, uint64_t address, uint64_t n, struct h5_tx **out)
{
	struct h5_tx *tx;
	int rc = h5_tx_of(file, &tx);

	*out = tx;
	if (!rc)
		rc = check_inside(tx, address, n);
	/* While the last commit needs its journal, bytes that this has hashed must not change. */
	if (!rc && tx->unsynced && h5_extents_touches(&tx->covered, address, n) &&
	    (rc = h5_tx_make_certain(tx)))
		h5_tx_fail(tx);
	if (!rc)
		h5_tx_unhash(tx, address, n);
	return rc;
}

int h5_tx_write(struct h5_file *file, uint64_t address, const void *data, size_t n)
{
	struct h5_tx *tx;
	int rc = begin_write(file, address, n, &tx);

	if (rc)
		return rc;
	rc = h5_io_write(h5_tx_medium(tx), tx->space.base + address, data, n);
	if (!rc && h5_extents_touches(&tx->space.fresh, address, n)) {
		h5_tx_cover(file, address, n);
		if (h5_extents_covers(&tx->raw, address, n))
			h5_tx_hash(tx, address, data, n);
	}
	/* A write that has failed may have changed a part. */
	changed(file, tx, address, rc ? 0 : n);
	return rc;
}

bool h5_tx_punch(struct h5_file *file, uint64_t address, uint64_t n)
{
	struct h5_tx *tx;
	int rc = begin_write(file, address, n, &tx);

	if (rc || tx->solid)
		return false;
	rc = h5_io_punch(h5_tx_medium(tx), tx->space.base + address, n);
	changed(file, tx, address, 0);
	return !rc;
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

/* The bytes of a block that is new. */
static int put(struct h5_file *file, uint64_t address, const void *data, size_t n)
{
	struct h5_tx *tx;
	int rc = h5_tx_of(file, &tx);

	if (!rc)
		rc = check_inside(tx, address, n);
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

int h5_tx_put(struct h5_file *file, uint64_t address, const void *data, size_t n)
{
	if (h5_tx_is_writable(file) && !h5_tx_is_new(file, address))
		return h5_fail(-EUCLEAN, address, "metadata would be written over what is committed");
	return put(file, address, data, n);
}

size_t h5_tx_left_in_cell(const struct h5_file *file, uint64_t address)
{
	const struct h5_space *space = &h5_tx_find(file)->space;

	return (size_t)h5_io_left_in_block(&space->pieces, space->base + address, H5_CELL);
}

static bool is_one_cell(const struct h5_file *file, uint64_t address, size_t n)
{
	return n <= h5_tx_left_in_cell(file, address);
}

bool h5_tx_is_safe(const struct h5_file *file, uint64_t address, size_t n)
{
	return is_one_cell(file, address, n) || h5_tx_is_new(file, address);
}

bool h5_tx_is_changed(const struct h5_file *file, uint64_t address, size_t n)
{
	const struct h5_tx *tx = h5_tx_find(file);
	uint64_t offset = tx->space.base + address;
	size_t i = h5_patches_find(&tx->overlay.patches, offset);

	return h5_tx_is_new(file, address) ||
	       (i < h5_tx_patch_count(tx) && h5_tx_patch_at(tx, i)->over.offset < offset + n);
}

int h5_tx_read_committed(struct h5_file *file, uint64_t address, void *data, size_t n)
{
	const struct h5_tx *tx = h5_tx_find(file);
	if (!h5_space_had(&tx->space, address, n))
		return h5_fail(-EUCLEAN, address, "beyond the end of the file");
	return h5_io_read(h5_tx_medium(tx), tx->space.base + address, data, n);
}

/* The bytes of a block that is not. */
static int patch(struct h5_file *file, uint64_t address, const void *data, size_t n, unsigned stage)
{
	struct h5_tx *tx;
	int rc = h5_tx_of(file, &tx);

	if (!rc)
		rc = check_inside(tx, address, n);
	if (!rc)
		rc = h5_tx_add_patch(tx, address, data, n, stage, false);
	if (!rc)
		h5_tx_forget(file, address);
	return rc;
}

int h5_tx_patch(struct h5_file *file, uint64_t address, const void *data, size_t n, unsigned stage)
{
	return h5_tx_is_new(file, address) ? put(file, address, data, n)
					   : patch(file, address, data, n, stage);
}

static int move(struct h5_file *file, uint64_t *address, const void *data, size_t n)
{
	uint64_t old = *address, new;
	int rc = h5_tx_allocate(file, H5_ALLOCATE_METADATA, n, &new);

	if (rc)
		return rc;
	rc = put(file, new, data, n);
	if (rc) {
		h5_tx_free(file, new, n);
		return rc;
	}
	if (old != H5_UNDEF)
		h5_tx_free(file, old, n);
	*address = new;
	return 0;
}

int h5_tx_shadow(struct h5_file *file, uint64_t *address, const void *data, size_t n)
{
	if (*address != H5_UNDEF && h5_tx_is_new(file, *address))
		return put(file, *address, data, n);
	return move(file, address, data, n);
}

int h5_tx_store(struct h5_file *file, uint64_t *address, const void *data, size_t n, unsigned stage)
{
	if (*address != H5_UNDEF && h5_tx_is_new(file, *address))
		return put(file, *address, data, n);
	/* Invariant 1: only cells in place. */
	if (*address != H5_UNDEF && is_one_cell(file, *address, n))
		return patch(file, *address, data, n, stage);
	return move(file, address, data, n);
}

int h5_tx_touch(struct h5_file *file, uint64_t object_header)
{
	struct h5_tx *tx;
	int rc = h5_tx_of(file, &tx);

	if (rc || h5_tx_is_new(file, object_header))
		return rc;
	tx->unit.object = object_header;
	if (h5_extents_has(&tx->objects, object_header))
		return 0;
	rc = h5_header_may_change(file, object_header);
	return rc ? rc : h5_extents_add(&tx->objects, object_header, 1);
}
