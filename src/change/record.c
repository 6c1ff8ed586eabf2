/* Makes the record that a commit writes into the journal. */
#include "base/checked.h"
#include "base/error.h"
#include "change/private.h"
#include "store/object_header.h"

#include <assert.h>
#include <stdlib.h>

enum {
	HASH_AT_ONCE = 1 << 16, /* so many bytes, or more, are hashed when they are written */
	HASH_PIECE = 1 << 18,	/* bytes of a hash, at most */
	CELLS_MAX = 16 << 20,	/* cells of the commit before are guarded if they have no more bytes */
};

/* A record of the journal while it is put together; all arrays are owned. */
struct record {
	struct h5_journal_record r;
	struct h5_journal_patch *patches;
	struct h5_journal_extent *extents;
	size_t capacity; /* of extents */
	uint64_t *objects;
	uint8_t **guarded; /* bytes of the guards; owned */
	size_t guard_count, guard_capacity;
};

static void record_release(struct record *record)
{
	for (size_t i = 0; i < record->guard_count; i++)
		free(record->guarded[i]);
	free(record->guarded);
	free(record->patches);
	free(record->extents);
	free(record->objects);
}

/* ---- hashes ---- */

static bool make_room(struct h5_tx *tx)
{
	size_t capacity = 2 * tx->hashed_capacity + 16;
	struct h5_hashed *hashed;

	if (tx->hashed_count < tx->hashed_capacity)
		return true;
	hashed = realloc(tx->hashed, capacity * sizeof *hashed);
	if (!hashed)
		return false;
	tx->hashed = hashed;
	tx->hashed_capacity = capacity;
	return true;
}

void h5_tx_hash(struct h5_tx *tx, uint64_t address, const uint8_t *data, size_t n)
{
	size_t piece;

	/* Without memory for it, the commit reads the data. */
	for (size_t at = 0; n - at >= HASH_AT_ONCE && make_room(tx); at += piece) {
		piece = (size_t)h5_min(n - at, HASH_PIECE);
		if (h5_extents_add(&tx->hashed_space, address + at, piece))
			return;
		tx->hashed[tx->hashed_count++] =
			(struct h5_hashed){address + at, piece, h5_journal_hash(data + at, piece)};
	}
}

void h5_tx_unhash(struct h5_tx *tx, uint64_t address, uint64_t n)
{
	size_t kept = 0;

	if (!h5_extents_touches(&tx->hashed_space, address, n))
		return;
	h5_extents_release(&tx->hashed_space);
	for (size_t i = 0; i < tx->hashed_count; i++) {
		struct h5_hashed one = tx->hashed[i];

		if (one.address < address + n && address < one.address + one.n)
			continue;
		if (!h5_extents_add(&tx->hashed_space, one.address, one.n))
			tx->hashed[kept++] = one;
	}
	tx->hashed_count = kept;
}

void h5_tx_forget_hashes(struct h5_tx *tx)
{
	tx->hashed_count = 0;
	h5_extents_release(&tx->hashed_space);
}

static int add_extent(struct record *record, uint64_t offset, uint64_t n, uint64_t hash)
{
	if (record->r.extent_count == record->capacity) {
		size_t capacity = 2 * record->capacity + 16;
		struct h5_journal_extent *extents = realloc(record->extents, capacity * sizeof *extents);

		if (!extents)
			return h5_fail(-ENOMEM, H5_UNDEF, "out of memory");
		record->extents = extents;
		record->capacity = capacity;
	}
	record->extents[record->r.extent_count++] = (struct h5_journal_extent){offset, n, hash};
	return 0;
}

/* Adds the hash of the bytes as they are in the file. */
static int add_hash(struct h5_tx *tx, struct record *record, uint64_t address, size_t n, uint8_t *buf)
{
	uint64_t offset = tx->space.base + address;
	int rc = h5_io_read(h5_tx_medium(tx), offset, buf, n);

	return rc ? rc : add_extent(record, offset, n, h5_journal_hash(buf, n));
}

static int add_hashes(struct h5_tx *tx, struct record *record, const struct h5_extents *extents)
{
	uint8_t *buf = extents->count ? malloc(HASH_PIECE) : NULL;
	int rc = extents->count && !buf ? h5_fail(-ENOMEM, H5_UNDEF, "out of memory") : 0;

	for (size_t i = 0; i < extents->count; i++) {
		uint64_t left = extents->list[i].size, address = extents->list[i].address;

		while (left && !rc) {
			size_t n = (size_t)h5_min(left, HASH_PIECE);

			rc = add_hash(tx, record, address, n, buf);
			address += n;
			left -= n;
		}
	}
	free(buf);
	return rc;
}

/* Adds hashes of new raw data: those that are known, and of the rest as it is in the file. */
static int add_raw(struct h5_tx *tx, struct record *record)
{
	struct h5_extents rest = {0};
	int rc = 0;

	for (size_t i = 0; i < tx->raw.count && !rc; i++)
		rc = h5_extents_add(&rest, tx->raw.list[i].address, tx->raw.list[i].size);
	for (size_t i = 0; i < tx->hashed_count && !rc; i++) {
		const struct h5_hashed *one = &tx->hashed[i];

		rc = h5_extents_remove(&rest, one->address, one->n);
		if (!rc)
			rc = add_extent(record, tx->space.base + one->address, one->n, one->hash);
	}
	if (!rc)
		rc = add_hashes(tx, record, &rest);
	h5_extents_release(&rest);
	return rc;
}

/* Adds a guard: the bytes as they are in the file. */
static int add_guard(struct h5_tx *tx, struct record *record, uint64_t address, size_t n)
{
	struct h5_journal_record *r = &record->r;
	uint8_t *bytes = malloc(n);
	int rc;

	if (!bytes)
		return h5_fail(-ENOMEM, address, "out of memory");
	assert(record->guard_count < record->guard_capacity);
	record->guarded[record->guard_count++] = bytes;
	rc = h5_io_read(h5_tx_medium(tx), tx->space.base + address, bytes, n);
	if (!rc)
		record->patches[r->patch_count++] =
			(struct h5_journal_patch){.offset = tx->space.base + address,
						  .size = (uint32_t)n,
						  .guard = true,
						  .before = bytes};
	return rc;
}

/* Guards a message that another program would change with the rows. */
static int add_message(struct h5_tx *tx, struct record *record, const struct h5_message *m)
{
	return m && m->size ? add_guard(tx, record, m->address, m->size) : 0;
}

static int add_guards(struct h5_tx *tx, struct record *record, uint64_t object)
{
	struct h5_header header = {0};
	int rc = h5_header_load(tx->file, object, &header);

	if (!rc)
		rc = add_message(tx, record, h5_header_find(&header, H5_MSG_DATASPACE));
	if (!rc)
		rc = add_message(tx, record, h5_header_find(&header, H5_MSG_LAYOUT));
	h5_header_release(&header);
	return rc;
}

/* Guards what the commit before has changed. So this record is not replayed into a copy of the file from
 * before that commit, even if that has all the old bytes of this one. */
static int add_cells(struct h5_tx *tx, struct record *record)
{
	uint64_t bytes = 0;
	int rc = 0;

	for (size_t i = 0; i < tx->cells.count; i++)
		bytes += tx->cells.list[i].size;
	for (size_t i = 0; i < tx->cells.count && bytes <= CELLS_MAX && !rc; i++)
		rc = add_guard(tx, record, tx->cells.list[i].address, (size_t)tx->cells.list[i].size);
	return rc;
}

static int make_record(struct h5_tx *tx, struct h5_tx_patch *const *order, struct record *record)
{
	struct h5_journal_record *r = &record->r;
	size_t count = h5_tx_patch_count(tx), guards = 2 * tx->objects.count + tx->cells.count;
	int rc = 0;

	record->patches = calloc(count + guards, sizeof *record->patches);
	record->guarded = calloc(guards + 1, sizeof *record->guarded);
	record->guard_capacity = guards;
	record->objects = calloc(tx->objects.count + 1, sizeof *record->objects);
	if (!record->patches || !record->objects || !record->guarded)
		return h5_fail(-ENOMEM, H5_UNDEF, "out of memory");
	for (size_t i = 0; i < count; i++)
		record->patches[i] = (struct h5_journal_patch){.offset = order[i]->over.offset,
							       .size = (uint32_t)order[i]->over.n,
							       .before = order[i]->before,
							       .after = order[i]->after};
	for (size_t i = 0; i < tx->objects.count; i++)
		record->objects[i] = tx->objects.list[i].address;
	r->size = tx->space.base + tx->space.end;
	r->patch_count = (unsigned)count;
	r->object_count = (unsigned)tx->objects.count;
	r->patches = record->patches;
	r->objects = record->objects;
	for (size_t i = 0; i < tx->objects.count && !rc; i++)
		rc = add_guards(tx, record, record->objects[i]);
	return rc ? rc : add_cells(tx, record);
}

int h5_tx_journal(struct h5_tx *tx, struct h5_tx_patch *const *order)
{
	struct record record = {0};
	int rc = make_record(tx, order, &record);

	if (!rc)
		rc = add_hashes(tx, &record, &tx->blocks);
	if (!rc)
		rc = add_raw(tx, &record);
	if (!rc)
		rc = add_hashes(tx, &record, &tx->covered);
	if (!rc)
		rc = add_hashes(tx, &record, &tx->superseded);
	record.r.extents = record.extents;
	if (!rc)
		rc = h5_journal_write(tx->journal, &record.r);
	record_release(&record);
	return rc;
}
