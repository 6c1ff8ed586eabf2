/* Deals with a journal that a kill or a power cut has left: rules 1 to 5 of doc/writing.md, "The journal". */
#include "base/checked.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/reader.h"
#include "change/journal_private.h"
#include "io/overlay.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	HASHED_FROM = 16,	 /* offset in a record at which the hashed bytes begin */
	NONSENSE_MOST = 1 << 26, /* most bytes of a senseless record whose hash is still looked at */
};

/* A journal with the record that is in it. */
struct found {
	struct h5_io *io; /* of the journal; locked */
	struct h5_journal_header header;
	uint8_t *data; /* the record's bytes */
	struct h5_journal_record record;
	struct h5_patch *cells;	   /* owned: the record's patches that are no guards */
	struct h5_patches patches; /* `cells`, to lay over the file */
	const struct h5_journal_place *place;
	uint64_t read, total; /* bytes of extents, for place->progress */
};

static void found_release(struct found *found)
{
	h5_journal_record_release(&found->record);
	h5_io_close(found->io);
	free(found->data);
	free(found->cells);
	h5_patches_release(&found->patches);
	*found = (struct found){0};
}

/* ---- reading it ---- */

static int by_offset(const void *a, const void *b)
{
	const struct h5_patch *x = a, *y = b;

	return h5_compare(x->offset, y->offset);
}

static int sort_cells(struct found *found)
{
	const struct h5_journal_record *record = &found->record;
	size_t count = 0;

	found->cells = malloc(((size_t)record->patch_count + 1) * sizeof *found->cells);
	if (!found->cells || h5_patches_reserve(&found->patches, record->patch_count))
		return h5_fail(-ENOMEM, H5_UNDEF, "journal: out of memory");
	for (unsigned i = 0; i < record->patch_count; i++) {
		const struct h5_journal_patch *cell = &record->patches[i];

		if (!cell->guard && cell->size)
			found->cells[count++] = (struct h5_patch){cell->offset, cell->size, cell->after};
	}
	qsort(found->cells, count, sizeof *found->cells, by_offset);
	for (size_t i = 0; i < count; i++)
		h5_patches_insert(&found->patches, i, &found->cells[i]);
	return 0;
}

/* Reads a record into memory of zeros. Zeros are not copied, so that memory pages stay unused: the journal
 * may be one large hole. */
static int read_stored(struct h5_io *io, uint8_t *data, size_t length, size_t *got)
{
	uint8_t *piece = malloc(H5_JOURNAL_PIECE);
	size_t n, there = 0;
	int rc = piece ? 0 : h5_fail(-ENOMEM, H5_UNDEF, "journal: out of memory");

	for (*got = 0; *got < length && !rc; *got += there) {
		n = (size_t)h5_min(length - *got, H5_JOURNAL_PIECE);
		rc = h5_io_read_some(io, H5_JOURNAL_HEADER + *got, piece, n, &there);
		if (rc || !there)
			break;
		if (!h5_journal_is_zero(piece, there))
			memcpy(data + *got, piece, there);
	}
	free(piece);
	return rc;
}

/* Judges a record that makes no sense, by its hash: -EUCLEAN, it was written like that; -ENODATA, it was not
 * written completely. It is read piece by piece; one that is long is -EUCLEAN at once. */
static int judge_nonsense(struct h5_io *io, const uint8_t *head, size_t length)
{
	unsigned version = h5_journal_record_version(head, H5_JOURNAL_RECORD_MIN);
	uint8_t *piece = length <= NONSENSE_MOST ? malloc(H5_JOURNAL_PIECE) : NULL;
	uint64_t hash = 0;
	int rc = 0;

	if (!piece)
		return length <= NONSENSE_MOST ? h5_fail(-ENOMEM, H5_UNDEF, "journal: out of memory")
					       : -EUCLEAN;
	for (size_t at = HASHED_FROM, n; at < length && !rc; at += n) {
		n = (size_t)h5_min(length - at, H5_JOURNAL_PIECE);
		rc = h5_io_read(io, H5_JOURNAL_HEADER + at, piece, n);
		hash = rc ? 0 : h5_journal_hash_next(version, hash, piece, n);
	}
	free(piece);
	if (rc)
		return rc;
	return h5_checksum_matches(h5_uint_from(head + 8, 8), hash) ? -EUCLEAN : -ENODATA;
}

/* Rule 2. -ENODATA: it is empty, or was not written completely. */
static int read_record(struct found *found, struct h5_io *file)
{
	uint8_t head[H5_JOURNAL_HEADER + H5_JOURNAL_RECORD_MIN];
	struct h5_io_stat st, file_st;
	size_t got, length;
	int rc = h5_io_read_some(found->io, 0, head, sizeof head, &got);

	if (!rc)
		rc = h5_journal_header_decode(head, (size_t)h5_min(got, H5_JOURNAL_HEADER), &found->header);
	if (rc)
		return rc;
	if (got < sizeof head)
		return -ENODATA;
	length = h5_journal_record_length(head + H5_JOURNAL_HEADER, H5_JOURNAL_RECORD_MIN);
	rc = h5_io_stat(found->io, &st);
	if (rc)
		return rc;
	/* The record may claim any length. */
	if (!length || length > st.size - H5_JOURNAL_HEADER)
		return -ENODATA;
	/* calloc(): the kernel gives only those pages that are written to. */
	found->data = calloc(1, length);
	if (!found->data)
		return h5_fail(-ENOMEM, H5_UNDEF, "journal: out of memory");
	rc = h5_io_stat(file, &file_st);
	if (!rc)
		rc = h5_journal_record_check(head + H5_JOURNAL_HEADER, file_st.size, file_st.end);
	if (rc == -EUCLEAN)
		return judge_nonsense(found->io, head + H5_JOURNAL_HEADER, length);
	if (!rc)
		rc = read_stored(found->io, found->data, length, &got);
	if (!rc)
		rc = h5_journal_record_decode(found->data, got, &found->record);
	if (!rc && memcmp(found->record.id, found->header.id, sizeof found->header.id))
		rc = -ENODATA;
	return rc ? rc : sort_cells(found);
}

/* ---- judging it ---- */

/* Compares a sector's part of a cell. *applied becomes false if it is not new, *known if it is neither old
 * nor new. */
static void compare_cell(const uint8_t *found, const uint8_t *before, const uint8_t *after, size_t n,
			 bool *applied, bool *known)
{
	if (!memcmp(found, after, n))
		return;
	*applied = false;
	*known &= !memcmp(found, before, n);
}

/* Compares a sector's part of a guard with the recorded bytes, except for the cells in it. */
static void compare_guard(const struct h5_patches *cells, uint64_t offset, uint8_t *found,
			  const uint8_t *before, size_t n, bool *known)
{
	uint8_t expected[H5_JOURNAL_SECTOR];

	memcpy(expected, before, n);
	h5_patches_apply(cells, offset, expected, n);
	h5_patches_apply(cells, offset, found, n);
	*known &= !memcmp(found, expected, n);
}

/* Reads n bytes of the file. *known becomes false if it lacks some: a member was cut. */
static int read_file(struct h5_io *io, uint64_t offset, void *buf, size_t n, bool *known)
{
	size_t got;
	int rc = h5_io_read_some(io, offset, buf, n, &got);

	*known &= rc || got == n;
	return rc;
}

/* Compares a cell or guard sector by sector. */
static int compare_patch(const struct found *found, struct h5_io *io, const struct h5_io_pieces *pieces,
			 const struct h5_journal_patch *patch, bool *applied, bool *known)
{
	uint8_t buf[H5_JOURNAL_SECTOR] = {0};

	for (size_t at = 0, n; at < patch->size; at += n) {
		uint64_t offset = patch->offset + at;
		int rc;

		n = (size_t)h5_min(patch->size - at, h5_io_left_in_block(pieces, offset, H5_JOURNAL_SECTOR));
		rc = read_file(io, offset, buf, n, known);
		if (rc)
			return rc;
		if (patch->guard)
			compare_guard(&found->patches, offset, buf, patch->before + at, n, known);
		else
			compare_cell(buf, patch->before + at, patch->after + at, n, applied, known);
	}
	return 0;
}

/* Extents take the time: a record names all that was written outside of it. */
static void begin_progress(struct found *found)
{
	const struct h5_journal_record *record = &found->record;

	for (unsigned i = 0; i < record->extent_count; i++)
		if (!h5_add(found->total, record->extents[i].size, &found->total))
			found->total = UINT64_MAX;
}

static void show_progress(struct found *found, uint64_t n)
{
	found->read += n;
	if (found->place->progress)
		found->place->progress(found->place->progress_arg, found->read, found->total);
}

static int compare_extent(struct found *found, struct h5_io *io, const struct h5_journal_extent *extent,
			  uint8_t *buf, bool *known)
{
	const unsigned version = found->record.version;
	uint64_t hash = extent->size ? 0 : h5_journal_hash_next(version, 0, buf, 0);

	for (uint64_t at = 0; at < extent->size && *known;) {
		size_t n = (size_t)h5_min(extent->size - at, H5_JOURNAL_PIECE);
		int rc = read_file(io, extent->offset + at, buf, n, known);

		if (rc)
			return rc;
		hash = h5_journal_hash_next(version, hash, buf, n);
		at += n;
		show_progress(found, n);
	}
	*known &= hash == extent->hash;
	return 0;
}

/* Rules 3 and 4: *applied, nothing is left to do; *known, it may be replayed. */
static int judge(struct found *found, struct h5_io *io, bool *applied, bool *known)
{
	const struct h5_journal_record *record = &found->record;
	uint8_t *buf = malloc(H5_JOURNAL_PIECE);
	struct h5_io_stat st;
	int rc = buf ? h5_io_stat(io, &st) : h5_fail(-ENOMEM, H5_UNDEF, "journal: out of memory");

	*applied = *known = true;
	begin_progress(found);
	show_progress(found, 0);
	/* All that the record tells of lies before its end of the file. */
	if (!rc && st.end < record->size)
		*applied = *known = false;
	for (unsigned i = 0; i < record->patch_count && !rc && *known; i++)
		if (!record->patches[i].guard)
			rc = compare_patch(found, io, &st.pieces, &record->patches[i], applied, known);
	for (unsigned i = 0; i < record->patch_count && !rc && *known && !*applied; i++)
		if (record->patches[i].guard)
			rc = compare_patch(found, io, &st.pieces, &record->patches[i], applied, known);
	for (unsigned i = 0; i < record->extent_count && !rc && *known && !*applied; i++)
		rc = compare_extent(found, io, &record->extents[i], buf, known);
	free(buf);
	return rc;
}

/* ---- replay ---- */

/* All cells are in the file: syncs the file, then zeroes the record. The header of the journal may still be
 * needed.
 */
static int finish(const struct found *found, struct h5_io *io)
{
	static const uint8_t zeros[H5_JOURNAL_SECTOR];
	int rc = h5_io_sync(io);

	if (!rc)
		rc = h5_io_write(found->io, H5_JOURNAL_HEADER, zeros, sizeof zeros);
	return rc ? rc : h5_io_sync(found->io);
}

/* Writes all cells into the file. If that is interrupted, the next mount does it again. */
static int replay(const struct found *found, struct h5_io *io)
{
	const struct h5_journal_record *record = &found->record;
	int rc = 0;

	for (unsigned i = 0; i < record->patch_count && !rc; i++)
		if (!record->patches[i].guard)
			rc = h5_io_write(io, record->patches[i].offset, record->patches[i].after,
					 record->patches[i].size);
	return rc ? rc : finish(found, io);
}

/* A file as if its journal had been replayed. */
struct replayed {
	struct h5_overlay overlay;
	struct found found;
};

static void replayed_close(struct h5_io *io)
{
	struct replayed *replayed = (struct replayed *)io;

	h5_overlay_release(&replayed->overlay);
	found_release(&replayed->found);
	free(replayed);
}

static const struct h5_io_ops replayed_ops = {.read = h5_overlay_read,
					      .readv = h5_overlay_readv,
					      .stat = h5_overlay_stat,
					      .unlock = h5_overlay_unlock,
					      .close = replayed_close};

/* Takes over what was found. */
static int open_replayed(struct found *found, struct h5_io *file, struct h5_io **io)
{
	struct replayed *replayed = calloc(1, sizeof *replayed);

	if (!replayed)
		return h5_fail(-ENOMEM, H5_UNDEF, "journal: out of memory");
	replayed->overlay =
		(struct h5_overlay){.io.ops = &replayed_ops, .beneath = file, .patches = found->patches};
	found->patches = (struct h5_patches){0};
	replayed->found = *found;
	*found = (struct found){0};
	*io = &replayed->overlay.io;
	return 0;
}

/* ---- all of it ---- */

/* Rule 5: the journal is stale. */
static int tell_stale(const struct found *found, struct h5_recovered *recovered)
{
	const struct h5_journal_record *record = &found->record;

	recovered->what = H5_RECOVERY_STALE;
	recovered->objects = malloc(((size_t)record->object_count + 1) * sizeof *record->objects);
	if (!recovered->objects)
		return h5_fail(-ENOMEM, H5_UNDEF, "journal: out of memory");
	if (record->object_count)
		memcpy(recovered->objects, record->objects, record->object_count * sizeof *record->objects);
	recovered->object_count = record->object_count;
	return 0;
}

/* Replays the record; or notes that it is stale; or, if the file already has its changes, only syncs the file
 * and clears the record (with `write`). */
static int deal_with(struct found *found, struct h5_io *io, bool write, struct h5_io **overlay,
		     struct h5_recovered *recovered)
{
	bool applied, known;
	int rc = judge(found, io, &applied, &known);

	if (rc)
		return rc;
	/* Perhaps the changes are only in the kernel's memory yet, so the file is synced. */
	if (applied)
		return write ? finish(found, io) : 0;
	if (!known)
		return tell_stale(found, recovered);
	rc = write ? replay(found, io) : open_replayed(found, io, overlay);
	if (!rc)
		recovered->what = H5_RECOVERY_REPLAYED;
	return rc;
}

int h5_journal_recover(const struct h5_journal_place *place, struct h5_io *io, bool write,
		       struct h5_io **overlay, struct h5_recovered *recovered)
{
	struct found found = {.place = place};
	int rc = h5_journal_open(place, false, write, &found.io);

	*recovered = (struct h5_recovered){.what = H5_RECOVERY_NONE};
	*overlay = NULL;
	if (rc == -ENOENT)
		return 0;
	if (rc == -EWOULDBLOCK) {
		recovered->what = H5_RECOVERY_BUSY;
		return 0;
	}
	if (rc)
		return rc;
	rc = read_record(&found, io);
	memcpy(recovered->id, found.header.id, sizeof recovered->id);
	recovered->swmr = found.header.swmr;
	if (!rc)
		rc = deal_with(&found, io, write, overlay, recovered);
	else if (rc == -ENODATA)
		rc = 0;
	else if (rc == -EUCLEAN && found.data)
		rc = tell_stale(&found, recovered);
	/* If another program has written since, it has cleared our marks, or the marks are its own. */
	recovered->swmr &= recovered->what != H5_RECOVERY_STALE;
	if (!rc && write && recovered->what != H5_RECOVERY_STALE && !recovered->swmr)
		rc = h5_journal_remove(place);
	if (rc)
		h5_recovered_release(recovered);
	found_release(&found);
	return rc;
}

void h5_recovered_release(struct h5_recovered *recovered)
{
	free(recovered->objects);
	recovered->objects = NULL;
	recovered->object_count = 0;
}

int h5_journal_set_aside(const struct h5_journal_place *place, const struct h5_recovered *recovered)
{
	char name[NAME_MAX + 1], id[2 * sizeof recovered->id + 1];

	for (size_t i = 0; i < sizeof recovered->id; i++)
		snprintf(id + 2 * i, 3, "%02x", recovered->id[i]);
	if ((size_t)snprintf(name, sizeof name, "%s.stale-%s", place->name, id) >= sizeof name)
		return h5_fail(-ENAMETOOLONG, H5_UNDEF, "journal: its name is too long to be set aside");
	if (renameat(place->dirfd, place->name, place->dirfd, name))
		return h5_fail(-errno, H5_UNDEF, "journal: renaming it to %s: %s", name, strerror(errno));
	return h5_journal_sync_directory(place->dirfd);
}
