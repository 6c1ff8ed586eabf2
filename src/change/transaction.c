#include "change/transaction.h"

#include "base/checked.h"
#include "base/error.h"
#include "change/commit.h"
#include "change/private.h"
#include "change/space.h"
#include "format/free_space.h"
#include "store/file_private.h"
#include "store/file_set.h"
#include "store/object_header.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { HELD_MAX = 8 << 20 }; /* bytes of new metadata in memory */

bool h5_tx_is_writable(const struct h5_file *file)
{
	const struct h5_tx *tx = h5_file_tx(file);

	return tx && !tx->failed;
}

bool h5_tx_is_swmr(const struct h5_file *file)
{
	const struct h5_tx *tx = h5_file_tx(file);

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
	/* While the journal stands for the last commit, what it has hashed must stay as it is. */
	if (!rc && tx->unsynced && h5_extents_touches(&tx->covered, address, n))
		rc = h5_tx_make_certain(tx);
	if (!rc) {
		h5_tx_unhash(tx, address, n);
		rc = h5_io_write(h5_file_io(file), tx->space.base + address, data, n);
	}
	if (!rc && h5_extents_touches(&tx->space.fresh, address, n)) {
		h5_tx_cover(file, address, n);
		if (h5_extents_covers(&tx->raw, address, n))
			h5_tx_hash(tx, address, data, n);
	}
	/* Where it failed, it may have changed a part. */
	if (tx && !tx->failed)
		changed(file, tx, address, rc ? 0 : n);
	return rc;
}

void h5_tx_cover(struct h5_file *file, uint64_t address, uint64_t n)
{
	struct h5_tx *tx = h5_file_tx(file);

	/* Without memory the journal misses a hash: it guards less, and is as right. */
	if (!tx || tx->failed || !n)
		return;
	h5_extents_remove(&tx->covered, address, n);
	h5_extents_add(&tx->raw, address, n);
}

void h5_tx_uncover(struct h5_file *file, uint64_t address, uint64_t n)
{
	struct h5_tx *tx = h5_file_tx(file);

	if (!tx || !n)
		return;
	h5_tx_unhash(tx, address, n);
	h5_extents_remove(&tx->raw, address, n);
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
	const struct h5_tx *tx = h5_file_tx(file);
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
	struct h5_tx *tx = h5_file_tx(file);

	if (!tx || tx->failed)
		return;
	assert(!tx->unit.depth);
	h5_tx_roll_back(tx);
	/* Space that is short is not kept for what nobody gets. The file may as well stay longer. */
	(void)h5_io_resize(h5_file_io(file), tx->space.base + tx->space.end);
}

/* ---- opening and closing ---- */

/* What older versions say there means nothing. */
static bool is_marked(const struct h5_superblock *sb)
{
	return sb->version >= 3 && sb->consistency & (H5_FLAG_WRITING | H5_FLAG_SWMR);
}

/* Invariant 6, for what the superblock and its extension say. */
static int check_superblock(struct h5_file *file, const struct h5_tx_options *options)
{
	const struct h5_superblock *sb = h5_file_superblock(file);

	if (sb->end == H5_UNDEF || sb->end < sb->base || sb->end - sb->base > h5_file_end(file))
		return h5_fail(-EUCLEAN, 0, "the file is truncated: it cannot be written");
	if (is_marked(sb) && !options->own_marks && !options->force)
		return h5_fail(-EBUSY, 0,
			       "marked as open for writing: a program writes it, or has crashed (-o force)");
	if (options->swmr && sb->version < 3)
		return h5_fail(-ENOTSUP, 0, "superblock version %u: swmr needs version 3", sb->version);
	return 0;
}

static int check_extension(struct h5_file *file, struct h5_space *space)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	struct h5_file_space_info info = {0};
	const struct h5_message *m;
	struct h5_header extension;
	int rc;

	if (sb->extension == H5_UNDEF)
		return 0;
	rc = h5_header_load(file, sb->extension, &extension);
	if (rc)
		return rc;
	m = h5_header_find(&extension, H5_MSG_FILE_SPACE_INFO);
	if (m) {
		struct h5_reader r = h5_file_reader(file, m->data, m->size, m->address);

		rc = h5_file_space_info_decode(&r, &info);
	}
	if (!rc && info.persist)
		rc = h5_fail(-ENOTSUP, m->address,
			     "the file keeps track of its free space: writing it is not supported");
	if (!rc && info.page_size && (info.page_size < 512 || info.page_size > (1 << 30)))
		rc = h5_fail(-EUCLEAN, m->address, "file space pages of %ju bytes",
			     (uintmax_t)info.page_size);
	space->page = info.page_size;
	h5_header_release(&extension);
	return rc;
}

static int space_init(struct h5_file *file, const struct h5_tx_options *options, struct h5_space *space)
{
	const struct h5_superblock *sb = h5_file_superblock(file);
	int rc = check_extension(file, space);

	space->base = sb->base;
	/* What lies behind the stored end nothing refers to; but a SWMR writer publishes its end when it
	 * closes the file. */
	space->committed_end = sb->end - sb->base;
	space->end = is_marked(sb) && !options->own_marks ? h5_file_end(file) : space->committed_end;
	space->least = space->end;
	space->limit = sb->size_of_offsets < 8 ? (UINT64_C(1) << 8 * sb->size_of_offsets) - 1 : INT64_MAX;
	space->limit -= sb->base;
	space->keeps = options->swmr;
	if (!rc && space->page)
		space->end += (space->page - space->end % space->page) % space->page;
	return rc;
}

/* Invariant 6, for the file as a file. */
static int check_file(struct h5_file *file, const struct h5_tx_options *options)
{
	struct h5_io_stat st;
	int rc = h5_file_can_change(file);

	if (!rc)
		rc = h5_file_stat(file, &st);
	if (!rc && st.links > 1 && !options->force)
		rc = h5_fail(-EMLINK, H5_UNDEF,
			     "the file has several names, and its journal but one (-o force)");
	return rc;
}

/* Marks of a mount that was killed go before its journal, which tells that they are ours. */
static int leave_marks_behind(struct h5_tx *tx, const struct h5_tx_options *options)
{
	int rc = h5_tx_mark(tx, 0);

	return rc || !options->own_marks ? rc : h5_journal_remove(&options->place);
}

int h5_tx_open(struct h5_file *file, const struct h5_tx_options *options)
{
	struct h5_tx *tx = calloc(1, sizeof *tx);
	int rc;

	if (!tx)
		return -ENOMEM;
	tx->file = file;
	tx->superblock = *h5_file_superblock(file);
	rc = check_file(file, options);
	if (!rc)
		rc = check_superblock(file, options);
	if (!rc)
		rc = space_init(file, options, &tx->space);
	if (!rc)
		rc = leave_marks_behind(tx, options);
	if (!rc)
		rc = h5_journal_create(&options->place, options->swmr, &tx->journal);
	tx->marked = !rc && options->swmr;
	if (tx->marked)
		rc = h5_tx_mark(tx, H5_FLAG_WRITING | H5_FLAG_SWMR);
	if (!rc && options->swmr)
		rc = h5_io_unlock(h5_file_io(file));
	if (rc) {
		tx->failed = true;
		h5_tx_close(tx);
		return rc;
	}
	h5_file_set_tx(file, tx);
	return 0;
}

void h5_tx_close(struct h5_tx *tx)
{
	bool done;

	if (!tx)
		return;
	assert(!tx->unit.depth);
	done = !tx->applying && !h5_tx_finish(tx);
	h5_journal_close(tx->journal, done);
	h5_tx_drop_all(tx);
	h5_space_release(&tx->space);
	h5_extents_release(&tx->blocks);
	h5_extents_release(&tx->raw);
	h5_extents_release(&tx->covered);
	h5_extents_release(&tx->cells);
	h5_extents_release(&tx->superseded);
	h5_extents_release(&tx->objects);
	free(tx->patches);
	h5_tx_forget_hashes(tx);
	free(tx->hashed);
	free(tx);
}
