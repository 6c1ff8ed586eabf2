/* The journal of a mount: writing it, and the record that a commit writes into it. */
#include "change/journal.h"

#include "base/array.h"
#include "base/checked.h"
#include "base/error.h"
#include "change/journal_private.h"
#include "change/private.h"
#include "store/object_header.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
	GROWTH = 1 << 16,	/* bytes by which a journal grows, so that most records need no new space */
	HASH_AT_ONCE = 1 << 16, /* least bytes that are hashed when they are written */
	HASH_PIECE = 1 << 18,	/* most bytes under one hash */
	CELLS_MAX = 16 << 20,	/* the cells of the commit before are guarded unless they have more bytes */
};

struct h5_journal {
	struct h5_io *io;
	int dirfd;  /* owned */
	char *name; /* in it; owned */
	/* Of the symbolic link that leads to it: `beside`, `pointer` and `path` are owned. */
	struct h5_journal_place link;
	struct h5_journal_header header;
	uint64_t sequence; /* of the last record */
	size_t size;	   /* bytes of the file */
};

static void journal_free(struct h5_journal *journal)
{
	h5_io_close(journal->io);
	if (journal->dirfd >= 0)
		close(journal->dirfd);
	free(journal->name);
	if (journal->link.pointer)
		close(journal->link.beside);
	free((char *)journal->link.pointer);
	free((char *)journal->link.path);
	free(journal);
}

/* Copies what is borrowed. */
static int keep_link(struct h5_journal *journal, const struct h5_journal_place *place)
{
	struct h5_journal_place *link = &journal->link;

	if (!place->pointer)
		return 0;
	link->beside = fcntl(place->beside, F_DUPFD_CLOEXEC, 0);
	if (link->beside < 0)
		return h5_fail(-errno, H5_UNDEF, "journal: %s", strerror(errno));
	link->pointer = strdup(place->pointer);
	link->path = strdup(place->path);
	if (link->pointer && link->path)
		return 0;
	if (!link->pointer)
		close(link->beside);
	return h5_fail(-ENOMEM, H5_UNDEF, "journal: out of memory");
}

/* Writes the header, and room for records. */
static int write_header(struct h5_journal *journal)
{
	uint8_t *data = calloc(1, GROWTH);
	int rc;

	if (!data)
		return h5_fail(-ENOMEM, H5_UNDEF, "journal: out of memory");
	h5_journal_header_encode(&journal->header, data);
	rc = h5_io_write(journal->io, 0, data, GROWTH);
	free(data);
	if (!rc)
		rc = h5_io_sync(journal->io);
	if (!rc)
		rc = h5_journal_sync_directory(journal->dirfd);
	journal->size = GROWTH;
	return h5_fail_in(rc, "journal");
}

int h5_journal_create(const struct h5_journal_place *place, bool swmr, struct h5_journal **out)
{
	struct h5_journal *journal = calloc(1, sizeof *journal);
	int rc = 0;

	if (!journal)
		return h5_fail(-ENOMEM, H5_UNDEF, "journal: out of memory");
	journal->header.swmr = swmr;
	journal->header.file = place->file;
	journal->dirfd = fcntl(place->dirfd, F_DUPFD_CLOEXEC, 0);
	if (journal->dirfd < 0 ||
	    getrandom(journal->header.id, sizeof journal->header.id, 0) != sizeof journal->header.id)
		rc = h5_fail(-errno, H5_UNDEF, "journal: %s", strerror(errno));
	else if (!(journal->name = strdup(place->name)))
		rc = h5_fail(-ENOMEM, H5_UNDEF, "journal: out of memory");
	else if (!(rc = keep_link(journal, place)))
		rc = h5_journal_open(place, true, true, &journal->io);
	if (!rc && (rc = write_header(journal)))
		unlinkat(place->dirfd, place->name, 0);
	if (!rc)
		h5_journal_point(place);
	if (rc) {
		journal_free(journal);
		return rc;
	}
	*out = journal;
	return 0;
}

int h5_journal_write(struct h5_journal *journal, struct h5_journal_record *record)
{
	uint8_t *data;
	size_t size, end;
	int rc;

	memcpy(record->id, journal->header.id, sizeof record->id);
	record->sequence = ++journal->sequence;
	rc = h5_journal_record_size(record, &size);
	if (rc)
		return rc;
	end = H5_JOURNAL_HEADER + size;
	if (end > journal->size)
		end = (end + GROWTH - 1) / GROWTH * GROWTH;
	data = calloc(1, end - H5_JOURNAL_HEADER);
	if (!data)
		return h5_fail(-ENOMEM, H5_UNDEF, "journal: out of memory");
	rc = h5_journal_record_encode(record, data, size);
	if (!rc)
		rc = h5_io_write(journal->io, H5_JOURNAL_HEADER, data, end - H5_JOURNAL_HEADER);
	if (!rc) {
		journal->size = end > journal->size ? end : journal->size;
		rc = h5_io_sync(journal->io);
	}
	free(data);
	/* This commit fails, so it must not be replayed. */
	if (rc)
		(void)h5_journal_clear(journal);
	return h5_fail_in(rc, "journal");
}

int h5_journal_clear(struct h5_journal *journal)
{
	static const uint8_t zeros[H5_JOURNAL_SECTOR];
	int rc = h5_io_write(journal->io, H5_JOURNAL_HEADER, zeros, sizeof zeros);

	return rc ? rc : h5_io_sync(journal->io);
}

void h5_journal_close(struct h5_journal *journal, bool done)
{
	static const uint8_t zeros[H5_JOURNAL_HEADER + H5_JOURNAL_SECTOR];

	if (!journal)
		return;
	if (done) {
		/* A zeroed journal means nothing, even if it has another name or comes back after a crash. */
		if (!h5_io_write(journal->io, 0, zeros, sizeof zeros))
			(void)h5_io_sync(journal->io);
		h5_journal_unpoint(&journal->link);
		unlinkat(journal->dirfd, journal->name, 0);
		(void)h5_journal_sync_directory(journal->dirfd);
	}
	journal_free(journal);
}

/* ---- the record of a commit ---- */

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

void h5_tx_hash(struct h5_tx *tx, uint64_t address, const uint8_t *data, size_t n)
{
	size_t piece;

	/* If there is no memory to note a hash, the commit reads the data and hashes them. */
	for (size_t at = 0; n - at >= HASH_AT_ONCE; at += piece) {
		if (h5_array_reserve(&tx->hashed, &tx->hashed_capacity, tx->hashed_count + 1, NULL))
			return;
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
	int rc = h5_array_reserve(&record->extents, &record->capacity, record->r.extent_count + 1, NULL);

	if (rc)
		return rc;
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

	h5_extents_each(e, extents)
	{
		uint64_t left = e->size, address = e->address;

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

/* Adds hashes of new raw data. Some are known since the data were written; the rest is read and hashed now.
 */
static int add_raw(struct h5_tx *tx, struct record *record)
{
	struct h5_extents rest = {0};
	int rc = 0;

	h5_extents_each(e, &tx->raw) rc = rc ? rc : h5_extents_add(&rest, e->address, e->size);
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

	h5_extents_each(e, &tx->cells) bytes += e->size;
	if (bytes > CELLS_MAX)
		return 0;
	h5_extents_each(e, &tx->cells) rc = rc ? rc : add_guard(tx, record, e->address, (size_t)e->size);
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
	h5_extents_each(e, &tx->objects) record->objects[r->object_count++] = e->address;
	r->size = tx->space.base + tx->space.areas[tx->space.others].end;
	r->patch_count = (unsigned)count;
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
