/* Allocating and giving up space, and the units of change. Changes are made at once, so that reads of the
 * file see them; a unit notes how to take them back. Only giving up space waits for its end, since a unit
 * that fails still needs the space. */
#include "base/error.h"
#include "change/private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum note_kind {
	NOTE_FREED,
	NOTE_DISCARDED,
	NOTE_FORGOTTEN, /* n is not used */
};

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

/* Its callers cannot fail, so without memory the unit fails. */
static void note(struct h5_tx_unit *unit, enum note_kind kind, uint64_t address, uint64_t n)
{
	if (unit->note_count == unit->note_capacity) {
		size_t capacity = 2 * unit->note_capacity + 16;
		struct h5_tx_note *notes = realloc(unit->notes, capacity * sizeof *notes);

		if (!notes) {
			unit->error = h5_fail(-ENOMEM, address, "out of memory");
			return;
		}
		unit->notes = notes;
		unit->note_capacity = capacity;
	}
	unit->notes[unit->note_count++] = (struct h5_tx_note){kind, address, n};
}

/* ---- caches ---- */

static void forget(const struct h5_file *file, uint64_t address)
{
	const struct h5_file_shared *shared = h5_file_shared(file);

	h5_lru_forget(shared->blocks, h5_file_number(file), address);
	h5_lru_forget(shared->chunks, h5_file_number(file), address);
}

void h5_tx_forget(struct h5_file *file, uint64_t address)
{
	struct h5_tx *tx = h5_tx_find(file);

	forget(file, address);
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
 * something else at once. True: the space is committed. */
static bool free_space(struct h5_tx *tx, uint64_t address, uint64_t n)
{
	bool committed;

	h5_extents_drop(&tx->blocks, address, n);
	h5_tx_unhash(tx, address, n);
	h5_extents_drop(&tx->raw, address, n);
	h5_extents_drop(&tx->covered, address, n);
	h5_space_free(&tx->space, address, n, &committed);
	return committed;
}

static void release(struct h5_tx *tx, enum note_kind kind, uint64_t address, uint64_t n)
{
	bool committed;

	forget(tx->file, address);
	h5_tx_drop_patches(tx, address, n);
	committed = free_space(tx, address, n);
	/* Without memory the journal lacks a hash: it guards less, and is correct all the same. */
	if (committed && kind == NOTE_FREED)
		h5_extents_add(&tx->superseded, address, n);
}

static void give_up(struct h5_file *file, enum note_kind kind, uint64_t address, uint64_t n)
{
	struct h5_tx *tx = h5_tx_find(file);

	if (!tx || tx->failed || !n)
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

int h5_unit_begin(struct h5_file *file)
{
	struct h5_tx *tx;
	int rc = h5_tx_of(file, &tx);

	if (!rc && !tx->unit.depth++)
		tx->unit.number++;
	return rc;
}

int h5_unit_save(struct h5_file *file, void *data, size_t n)
{
	struct h5_tx_unit *unit = &h5_tx_find(file)->unit;
	struct h5_tx_saved *saved;

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
	for (size_t i = 0; i < unit->allocated.count; i++)
		(void)free_space(tx, unit->allocated.list[i].address, unit->allocated.list[i].size);
	for (size_t i = 0; i < unit->note_count; i++)
		if (unit->notes[i].kind == NOTE_FORGOTTEN)
			forget(tx->file, unit->notes[i].address);
	/* An address that should be forgotten could not be noted: forget all. */
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
	free(unit->notes);
	h5_extents_release(&unit->allocated);
	*unit = (struct h5_tx_unit){.number = unit->number};
}

int h5_unit_end(struct h5_file *file, int rc)
{
	struct h5_tx *tx = h5_tx_find(file);

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
