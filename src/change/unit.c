/* Space that changes take and give up, what is decoded of it, and the units of change that take all back if a
 * step fails.
 *
 * Changes are made at once, so that reads of the file see them; a unit notes how to take them back. Only
 * giving up space waits for the end of the unit, since a unit that fails still needs the space. */
#include "base/array.h"
#include "base/error.h"
#include "change/private.h"
#include "change/watch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum note_kind {
	NOTE_FREED,
	NOTE_DISCARDED,
	NOTE_FORGOTTEN, /* all values decoded at the address; n is not used */
};

enum { NOTES_KEPT = 256 }; /* room for so many of them is kept for the next unit */

struct h5_tx_note {
	enum note_kind kind;
	uint64_t address, n;
};

/* What bytes in memory were before. */
struct h5_tx_saved {
	struct h5_tx_saved *next;
	void *data; /* borrowed: where they belong */
	size_t n;
	uint8_t bytes[];
};

int h5_tx_of(struct h5_file *file, struct h5_tx **tx)
{
	*tx = h5_tx_find(file);
	if (!*tx || (*tx)->failed)
		return h5_fail(-EROFS, H5_UNDEF, "the file takes no changes");
	return 0;
}

/* ---- notes of a unit ---- */

/* Its callers cannot fail, so without memory the unit fails. */
static void note(struct h5_tx_unit *unit, enum note_kind kind, uint64_t address, uint64_t n)
{
	int rc = h5_array_reserve(&unit->notes, &unit->note_capacity, unit->note_count + 1, NULL);

	if (rc)
		unit->error = rc;
	else
		unit->notes[unit->note_count++] = (struct h5_tx_note){kind, address, n};
}

/* ---- caches ---- */

static void forget(const struct h5_file *file, uint64_t address, const struct h5_lru_kind *but)
{
	const struct h5_file_shared *shared = h5_file_shared(file);

	h5_lru_forget(shared->blocks, h5_file_number(file), address, but);
	h5_lru_forget(shared->chunks, h5_file_number(file), address, but);
}

void h5_tx_forget(struct h5_file *file, uint64_t address)
{
	h5_tx_forget_but(file, address, NULL);
}

void h5_tx_forget_but(struct h5_file *file, uint64_t address, const struct h5_block_type *type)
{
	struct h5_tx *tx = h5_tx_find(file);

	forget(file, address, type ? &type->kind : NULL);
	/* If the unit fails, what is decoded from now on is stale. */
	if (tx && tx->unit.depth)
		note(&tx->unit, NOTE_FORGOTTEN, address, 0);
}

/* ---- space ---- */

int h5_tx_allocate(struct h5_file *file, enum h5_allocation kind, uint64_t n, uint64_t *address)
{
	struct h5_tx *tx;
	bool committed;
	int rc = h5_tx_of(file, &tx);

	if (!rc)
		rc = h5_space_allocate(&tx->space, kind, n, address);
	if (rc || !tx->unit.depth)
		return rc;
	rc = h5_extents_add(&tx->unit.allocated, *address, n);
	if (rc)
		h5_space_free(&tx->space, *address, n, &committed);
	return rc;
}

bool h5_tx_is_new(const struct h5_file *file, uint64_t address)
{
	const struct h5_tx *tx = h5_tx_find(file);

	return tx && h5_extents_has(&tx->space.fresh, address);
}

/* Frees the space. The journal must not hash what was written there, since the space may be used for
 * something else at once. True: the space was not new, so the last commit may refer to it. */
static bool free_space(struct h5_tx *tx, uint64_t address, uint64_t n)
{
	bool committed;

	h5_extents_drop(&tx->blocks, address, n);
	h5_tx_unhash(tx, address, n);
	h5_extents_drop(&tx->raw, address, n);
	h5_extents_drop(&tx->covered, address, n);
	h5_extents_drop(&tx->objects, address, n);
	h5_space_free(&tx->space, address, n, &committed);
	return committed;
}

static void release(struct h5_tx *tx, enum note_kind kind, uint64_t address, uint64_t n)
{
	bool committed;

	forget(tx->file, address, NULL);
	h5_tx_tell_watches(tx->file, address, n);
	h5_tx_drop_patches(tx, address, n);
	committed = free_space(tx, address, n);
	/* Without memory the journal lacks a hash: it guards less, and is correct all the same. */
	if (committed && kind == NOTE_FREED)
		h5_extents_add(&tx->superseded, address, n);
}

static void give_up(struct h5_file *file, enum note_kind kind, uint64_t address, uint64_t n)
{
	struct h5_tx *tx = h5_tx_find(file);

	/* In a damaged file the superblock may seem to be a chunk. */
	if (!tx || tx->failed || !n || address < h5_superblock_size(&tx->superblock))
		return;
	if (tx->unit.depth)
		note(&tx->unit, kind, address, n);
	else
		release(tx, kind, address, n);
}

void h5_tx_free(struct h5_file *file, uint64_t address, uint64_t n)
{
	give_up(file, NOTE_FREED, address, n);
}

void h5_tx_discard(struct h5_file *file, uint64_t address, uint64_t n)
{
	give_up(file, NOTE_DISCARDED, address, n);
}

/* ---- units of change ---- */

void h5_unit_begin(struct h5_file *file)
{
	struct h5_tx *tx = h5_tx_find(file);

	if (tx && !tx->unit.depth++)
		tx->unit.number++;
}

int h5_unit_save(struct h5_file *file, void *data, size_t n)
{
	struct h5_tx_saved *saved;
	struct h5_tx_unit *unit;
	struct h5_tx *tx;
	int rc = h5_tx_of(file, &tx);

	if (rc)
		return rc;
	unit = &tx->unit;
	assert(unit->depth);
	saved = malloc(sizeof *saved + n);
	if (!saved)
		return h5_fail(-ENOMEM, H5_UNDEF, "out of memory");
	saved->next = unit->saved;
	saved->data = data;
	saved->n = n;
	memcpy(saved->bytes, data, n);
	unit->saved = saved;
	return 0;
}

void h5_unit_unsave(struct h5_file *file, const void *data, size_t n)
{
	struct h5_tx *tx = h5_tx_find(file);
	struct h5_tx_saved **next = tx ? &tx->unit.saved : NULL;

	while (next && *next) {
		struct h5_tx_saved *saved = *next;
		size_t at = (size_t)((const uint8_t *)saved->data - (const uint8_t *)data);

		if (at < n) {
			*next = saved->next;
			free(saved);
		} else {
			next = &saved->next;
		}
	}
}

void h5_unit_hasten(struct h5_file *file, unsigned stage)
{
	struct h5_tx *tx = h5_tx_find(file);

	if (!tx)
		return;
	assert(tx->unit.depth);
	tx->unit.latest = stage;
}

int h5_unit_leave(struct h5_file *file, uint64_t group)
{
	struct h5_tx *tx;
	int rc = h5_tx_of(file, &tx);

	if (rc)
		return rc;
	assert(tx->unit.depth);
	if (h5_extents_has(&tx->left, group))
		return 0;
	rc = h5_tx_delay_patches(tx, group);
	return rc ? rc : h5_extents_add(&tx->left, group, 1);
}

static void take_effect(struct h5_tx *tx)
{
	const struct h5_tx_unit *unit = &tx->unit;

	h5_tx_keep_patches(tx);
	for (size_t i = 0; i < unit->note_count; i++)
		if (unit->notes[i].kind != NOTE_FORGOTTEN)
			release(tx, unit->notes[i].kind, unit->notes[i].address, unit->notes[i].n);
}

/* Keeps the detail of the error, which tells why the unit failed. */
static void take_back(struct h5_tx *tx)
{
	const struct h5_tx_unit *unit = &tx->unit;
	struct h5_error cause = *h5_error_last();

	for (const struct h5_tx_saved *saved = unit->saved; saved; saved = saved->next)
		memcpy(saved->data, saved->bytes, saved->n);
	h5_tx_restore_patches(tx);
	h5_extents_each(e, &unit->allocated)(void) free_space(tx, e->address, e->size);
	for (size_t i = 0; i < unit->note_count; i++)
		if (unit->notes[i].kind == NOTE_FORGOTTEN)
			forget(tx->file, unit->notes[i].address, NULL);
	/* A note is missing, perhaps of an address to forget, so everything is forgotten. */
	if (unit->error)
		h5_file_renumber(tx->file);
	(void)h5_fail(cause.code, cause.address, "%s", cause.text);
}

void h5_tx_empty_unit(struct h5_tx *tx)
{
	struct h5_tx_unit *unit = &tx->unit;

	h5_tx_keep_patches(tx);
	h5_extents_release(&unit->allocated);
	unit->note_count = 0;
}

static void unit_release(struct h5_tx_unit *unit)
{
	struct h5_tx_saved *next;

	assert(!unit->depth && !unit->aside);
	for (struct h5_tx_saved *saved = unit->saved; saved; saved = next) {
		next = saved->next;
		free(saved);
	}
	h5_extents_release(&unit->allocated);
	if (unit->note_capacity > NOTES_KEPT) {
		free(unit->notes);
		*unit = (struct h5_tx_unit){.number = unit->number};
	} else {
		*unit = (struct h5_tx_unit){
			.number = unit->number, .notes = unit->notes, .note_capacity = unit->note_capacity};
	}
}

int h5_unit_end(struct h5_file *file, int rc)
{
	struct h5_tx *tx = h5_tx_find(file);

	if (!rc)
		rc = h5_tx_of(file, &tx);
	if (!tx)
		return rc;
	assert(tx->unit.depth);
	assert(rc || !tx->unit.failed);
	if (!rc)
		rc = tx->unit.error;
	tx->unit.failed = rc;
	if (--tx->unit.depth)
		return rc;
	if (rc)
		take_back(tx);
	else
		take_effect(tx);
	unit_release(&tx->unit);
	return rc;
}

bool h5_tx_is_pending(const struct h5_file *file)
{
	const struct h5_tx *tx = h5_tx_find(file);

	return tx && !tx->failed && (h5_tx_patch_count(tx) || tx->written);
}
