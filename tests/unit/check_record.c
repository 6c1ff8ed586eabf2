/* What a commit writes into its journal: the cells, what they were, what guards them, and hashes of all that
 * the commit has written before them. */
#include "base/extents.h"
#include "change/transaction.h"
#include "crash_image.h"
#include "format/journal.h"
#include "object/path.h"
#include "scratch.h"

#include <stdio.h>
#include <string.h>

enum {
	AT = 3000,		 /* of committed bytes that are cells, in no header */
	AT_ONCE = 1 << 16,	 /* bytes that are hashed when they are written */
	PIECE = 1 << 18,	 /* most bytes under one hash */
	COVERED_BYTES = 1 << 16, /* hashed once more by the next commit, at most */
	COVERED_COUNT = 256,
	CELLS_MAX = 16 << 20, /* bytes of cells that the next commit guards, at most */
};

struct scene {
	struct scratch scratch;
	struct fault_io fault; /* counts */
	struct h5_file *file;
	uint64_t base;
	uint64_t object;	   /* the header of a dataset */
	struct h5_extents hashed;  /* what the next record shall hash */
	struct crash_image before; /* the file before the commit */
	struct crash_image after, journal;
	struct h5_journal_record record;
};

static uint64_t find_object(const struct scene *s, const char *name)
{
	struct h5_file *file;
	uint64_t address;

	SUCCEEDS(h5_path_find(s->file, h5_file_superblock(s->file)->root, name, strlen(name), &file,
			      &address));
	return address;
}

static void begin(struct scene *s, const char *fixture)
{

	memset(s, 0, sizeof *s);
	scratch_init(&s->scratch, fixture);
	scratch_wrap(&s->scratch, &s->fault);
	scratch_open(&s->scratch);
	s->file = s->scratch.file;
	s->base = h5_file_superblock(s->file)->base;
	s->object = find_object(s, "b000");
}

static void forget_record(struct scene *s)
{
	h5_journal_record_release(&s->record);
	free(s->before.data);
	free(s->after.data);
	free(s->journal.data);
	memset(&s->record, 0, sizeof s->record);
	s->before = s->after = s->journal = (struct crash_image){0};
}

static void end(struct scene *s)
{
	forget_record(s);
	h5_extents_release(&s->hashed);
	scratch_release(&s->scratch);
	fault_io_release(&s->fault);
}

/* Commits, and reads the record. */
static void commit(struct scene *s)
{
	char path[200];

	crash_image_load(&s->before, s->scratch.path);
	SUCCEEDS(h5_tx_commit(s->file));
	crash_image_load(&s->after, s->scratch.path);
	snprintf(path, sizeof path, "%s.h5fs-journal", s->scratch.path);
	crash_image_load(&s->journal, path);
	SUCCEEDS(h5_journal_record_decode(s->journal.data + H5_JOURNAL_HEADER,
					  s->journal.size - H5_JOURNAL_HEADER, &s->record));
	ck_assert_uint_eq(s->record.size, s->after.size);
}

/* ---- changes ---- */

static void add(struct h5_extents *set, uint64_t address, uint64_t n)
{
	SUCCEEDS(h5_extents_add(set, address, n));
}

static void take(struct h5_extents *set, uint64_t address, uint64_t n)
{
	SUCCEEDS(h5_extents_remove(set, address, n));
}

static void overwrite(struct scene *s, uint64_t at, size_t n, unsigned seed)
{
	uint8_t *bytes = malloc(n);

	ck_assert_ptr_nonnull(bytes);
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 251 + seed);
	SUCCEEDS(h5_tx_write(s->file, at, bytes, n));
	free(bytes);
}

static uint64_t allocate(struct scene *s, enum h5_allocation kind, uint64_t n)
{
	uint64_t at;

	SUCCEEDS(h5_tx_allocate(s->file, kind, n, &at));
	return at;
}

/* New raw data. */
static uint64_t write_raw(struct scene *s, size_t n)
{
	uint64_t at = allocate(s, H5_ALLOCATE_RAW, n);

	overwrite(s, at, n, (unsigned)n);
	add(&s->hashed, at, n);
	return at;
}

static uint64_t put_block(struct scene *s, size_t n)
{
	uint64_t at = allocate(s, H5_ALLOCATE_METADATA, n);
	uint8_t bytes[H5_CELL];

	memset(bytes, (int)n, n);
	SUCCEEDS(h5_tx_put(s->file, at, bytes, n));
	add(&s->hashed, at, n);
	return at;
}

static void patch(struct scene *s, uint64_t at, size_t n, unsigned stage)
{
	uint8_t bytes[64];

	SUCCEEDS(h5_file_read(s->file, at, bytes, n));
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)~bytes[i];
	SUCCEEDS(h5_tx_patch(s->file, at, bytes, n, stage));
}

/* ---- the record ---- */

static unsigned count(const struct scene *s, bool guard)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->record.patch_count; i++)
		n += s->record.patches[i].guard == guard;
	return n;
}

/* Where a cell or a guard stands; -1: there is none. */
static int find(const struct scene *s, bool guard, uint64_t address, size_t n)
{
	for (unsigned i = 0; i < s->record.patch_count; i++)
		if (s->record.patches[i].guard == guard && s->record.patches[i].offset == s->base + address &&
		    s->record.patches[i].size == n)
			return (int)i;
	return -1;
}

static void check_patches(const struct scene *s)
{
	for (unsigned i = 0; i < s->record.patch_count; i++) {
		const struct h5_journal_patch *p = &s->record.patches[i];

		ck_assert_mem_eq(p->before, s->before.data + p->offset, p->size);
		if (!p->guard)
			ck_assert_mem_eq(p->after, s->after.data + p->offset, p->size);
	}
}

/* The hashes are those of what was to be hashed: each byte once, as it is in the file. */
static void check_hashes(const struct scene *s)
{
	struct h5_extents found = {0};
	uint64_t sum = 0, expected = 0;
	size_t i = 0;

	for (unsigned k = 0; k < s->record.extent_count; k++) {
		const struct h5_journal_extent *e = &s->record.extents[k];

		ck_assert_uint_le(e->size, PIECE);
		ck_assert_uint_eq(e->hash, h5_journal_hash(s->after.data + e->offset, e->size));
		add(&found, e->offset - s->base, e->size);
		sum += e->size;
	}
	h5_extents_each(e, &found) expected += e->size;
	ck_assert_uint_eq(sum, expected);
	ck_assert_uint_eq(found.count, s->hashed.count);
	h5_extents_each(e, &s->hashed)
	{
		ck_assert_msg(h5_extents_covers(&found, e->address, e->size), "%ju, %ju bytes",
			      (uintmax_t)e->address, (uintmax_t)e->size);
		expected -= e->size;
		i++;
	}
	ck_assert_uint_eq(expected, 0);
	h5_extents_release(&found);
}

static void check_record(struct scene *s)
{
	check_patches(s);
	check_hashes(s);
}

/* In a file with and one without a user block. */
static const char *const fixtures[] = {"header_edit_v2.h5", "header_edit_block.h5"};

/* Cells stand in the order of their stages, the superblock's first; the messages of objects are guards. */
START_TEST(cells_and_guards)
{
	static const char *const names[] = {"b000", "b001", "b002", "b003"};
	struct h5_header header;
	const struct h5_message *space, *layout;
	struct scene s;

	begin(&s, fixtures[_i]);
	patch(&s, AT, 16, H5_STAGE_UNNAME);
	patch(&s, AT + 100, 8, H5_STAGE_OBJECT);
	patch(&s, AT + 40, 8, H5_STAGE_OBJECT);
	SUCCEEDS(h5_tx_touch(s.file, s.object));
	put_block(&s, 100);
	commit(&s);
	check_record(&s);
	ck_assert_uint_eq(count(&s, false), 4);
	ck_assert_int_eq(find(&s, false, AT + 100, 8), 1);
	ck_assert_int_eq(find(&s, false, AT + 40, 8), 2);
	ck_assert_int_eq(find(&s, false, AT, 16), 3);
	ck_assert_uint_eq(s.record.object_count, 1);
	ck_assert_uint_eq(s.record.objects[0], s.object);
	SUCCEEDS(h5_header_load(s.file, s.object, &header));
	space = h5_header_find(&header, H5_MSG_DATASPACE);
	layout = h5_header_find(&header, H5_MSG_LAYOUT);
	ck_assert_uint_eq(count(&s, true), 2);
	ck_assert_int_ge(find(&s, true, space->address, space->size), 0);
	ck_assert_int_ge(find(&s, true, layout->address, layout->size), 0);
	h5_header_release(&header);
	forget_record(&s);
	h5_extents_release(&s.hashed);
	/* The next record guards the cells of this one, all of them, and the one behind it does not. */
	patch(&s, AT + 200, 4, H5_STAGE_OBJECT);
	commit(&s);
	ck_assert_uint_eq(s.record.object_count, 0);
	ck_assert_uint_eq(count(&s, true), 4);
	ck_assert_int_ge(find(&s, true, AT, 16), 0);
	ck_assert_int_ge(find(&s, true, AT + 40, 8), 0);
	ck_assert_int_ge(find(&s, true, AT + 100, 8), 0);
	check_record(&s);
	forget_record(&s);
	patch(&s, AT + 300, 4, H5_STAGE_OBJECT);
	for (unsigned i = 1; i < 4; i++)
		SUCCEEDS(h5_tx_touch(s.file, find_object(&s, names[i])));
	SUCCEEDS(h5_tx_touch(s.file, s.object));
	commit(&s);
	ck_assert_uint_eq(s.record.object_count, 4);
	ck_assert_uint_eq(count(&s, true), 2 + 4 * 2);
	ck_assert_int_ge(find(&s, true, AT + 200, 4), 0);
	check_record(&s);
	end(&s);
}
END_TEST

/* Raw data are hashed in pieces, some of them when they are written: all but what means nothing any more. */
START_TEST(raw_data)
{
	struct scene s;
	uint64_t at;

	begin(&s, fixtures[_i]);
	write_raw(&s, AT_ONCE);
	write_raw(&s, AT_ONCE - 1);
	write_raw(&s, 2 * PIECE + AT_ONCE);
	write_raw(&s, PIECE + AT_ONCE - 1);
	write_raw(&s, 1);
	put_block(&s, 300);
	put_block(&s, 16);
	/* A part is given up, and another one means nothing yet. */
	at = write_raw(&s, 3 * PIECE);
	h5_tx_free(s.file, at + PIECE - 100, 200);
	take(&s.hashed, at + PIECE - 100, 200);
	h5_tx_uncover(s.file, at + 3 * PIECE - 50, 50);
	take(&s.hashed, at + 3 * PIECE - 50, 50);
	at = write_raw(&s, 1000);
	h5_tx_uncover(s.file, at, 1);
	take(&s.hashed, at, 1);
	/* Written again: in the middle of a hash, at its ends, and at its edges outside. */
	at = write_raw(&s, 4 * AT_ONCE);
	overwrite(&s, at + 1000, 10, 1);
	at = write_raw(&s, AT_ONCE);
	overwrite(&s, at, 1, 77);
	at = write_raw(&s, AT_ONCE);
	overwrite(&s, at + AT_ONCE - 1, 1, 77);
	commit(&s);
	check_record(&s);
	end(&s);
}
END_TEST

/* What a commit has given up is hashed, too, but not what was discarded. */
START_TEST(what_is_given_up)
{
	uint64_t block, raw, kept;
	struct scene s;

	begin(&s, fixtures[_i]);
	block = put_block(&s, 200);
	raw = write_raw(&s, COVERED_BYTES + 1);
	kept = write_raw(&s, 300);
	commit(&s);
	check_record(&s);
	forget_record(&s);
	h5_extents_release(&s.hashed);
	/* So much raw data are not hashed once more. */
	h5_tx_free(s.file, block, 200);
	h5_tx_free(s.file, raw + 10, 100);
	h5_tx_discard(s.file, raw + 1000, 100);
	add(&s.hashed, block, 200);
	add(&s.hashed, raw + 10, 100);
	write_raw(&s, 50);
	/* Rows that were there, and of which nothing knew. */
	overwrite(&s, kept, 20, 9);
	h5_tx_cover(s.file, kept, 20);
	add(&s.hashed, kept, 20);
	commit(&s);
	check_record(&s);
	forget_record(&s);
	/* That was all: few raw data are hashed once more. */
	take(&s.hashed, block, 200);
	take(&s.hashed, raw + 10, 100);
	patch(&s, AT, 8, H5_STAGE_BLOCK);
	commit(&s);
	check_record(&s);
	end(&s);
}
END_TEST

/* A few raw data of the commit before are hashed once more, those that still are data. */
START_TEST(the_commit_before)
{
	static const struct {
		unsigned count;
		size_t n, more;
		bool hashed;
	} cases[] = {{1, 1000, 0, true},
		     {1, COVERED_BYTES, 0, true},
		     {1, COVERED_BYTES, 1, false},
		     {COVERED_COUNT, 8, 0, true},
		     {COVERED_COUNT + 1, 8, 0, false}};
	const char *fixture = fixtures[_i];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t at = 0, first = 0;
		struct scene s;

		begin(&s, fixture);
		for (unsigned k = 0; k < cases[i].count; k++) {
			allocate(&s, H5_ALLOCATE_RAW, 16); /* they lie apart */
			at = write_raw(&s, cases[i].n);
			first = first ? first : at;
		}
		if (cases[i].more) {
			allocate(&s, H5_ALLOCATE_RAW, 16);
			write_raw(&s, cases[i].more);
		}
		commit(&s);
		check_hashes(&s);
		if (!cases[i].hashed)
			h5_extents_release(&s.hashed);
		forget_record(&s);
		patch(&s, AT, 8, H5_STAGE_BLOCK);
		if (i == 0) {
			/* Given up, or part of a cell: not twice. */
			h5_tx_discard(s.file, first, 100);
			patch(&s, first + 200, 10, H5_STAGE_BLOCK);
			take(&s.hashed, first, 100);
			take(&s.hashed, first + 200, 10);
			overwrite(&s, first + 400, 20, 5);
			h5_tx_cover(s.file, first + 400, 20);
		}
		commit(&s);
		check_record(&s);
		end(&s);
	}
}
END_TEST

/* Of what was abandoned the next record says nothing. */
START_TEST(what_was_abandoned)
{
	uint64_t block;
	struct scene s;

	begin(&s, fixtures[_i]);
	block = put_block(&s, 200);
	commit(&s);
	forget_record(&s);
	patch(&s, AT, 16, H5_STAGE_UNNAME);
	SUCCEEDS(h5_tx_touch(s.file, s.object));
	write_raw(&s, 2 * AT_ONCE);
	write_raw(&s, 10);
	put_block(&s, 100);
	h5_tx_free(s.file, block, 200);
	h5_tx_abandon(s.file);
	ck_assert(!h5_tx_is_pending(s.file));
	h5_extents_release(&s.hashed);
	patch(&s, AT + 100, 8, H5_STAGE_OBJECT);
	commit(&s);
	check_record(&s);
	ck_assert_uint_eq(count(&s, false), 2);
	ck_assert_int_eq(find(&s, false, AT + 100, 8), 1);
	ck_assert_uint_eq(s.record.object_count, 0);
	ck_assert_uint_eq(s.after.size, s.base + block + 200);
	end(&s);
}
END_TEST

/* ---- effort ---- */

static unsigned long reads_of_commit(struct scene *s)
{
	s->fault.reads = true;
	s->fault.calls = 0;
	SUCCEEDS(h5_tx_commit(s->file));
	s->fault.reads = false;
	return s->fault.calls;
}

/* Raw data of many bytes are hashed while they are in memory, and their hash is known as long as they stay.
 */
START_TEST(not_read_again)
{
	static const struct {
		size_t n;
		unsigned long reads;
	} cases[] = {{1, 1}, {AT_ONCE - 1, 1}, {AT_ONCE, 0}, {PIECE, 0}, {2 * PIECE + AT_ONCE, 0}};
	unsigned long others = 0;
	struct scene s;
	uint64_t at;

	begin(&s, fixtures[_i]);
	for (size_t i = 0; i <= sizeof cases / sizeof *cases; i++) {
		/* So much is not hashed once more. */
		write_raw(&s, COVERED_BYTES + 1);
		SUCCEEDS(h5_tx_commit(s.file));
		if (i < sizeof cases / sizeof *cases) {
			unsigned long reads;

			write_raw(&s, cases[i].n);
			reads = reads_of_commit(&s);
			if (i == 0)
				others = reads - cases[0].reads;
			ck_assert_msg(reads == others + cases[i].reads, "%zu: %lu and %lu", i, others, reads);
			continue;
		}
		/* Of three neighbours the one in the middle stays. */
		at = allocate(&s, H5_ALLOCATE_RAW, 3 * AT_ONCE);
		for (unsigned k = 0; k < 3; k++)
			overwrite(&s, at + k * AT_ONCE, AT_ONCE, k);
		overwrite(&s, at + AT_ONCE - 1, 1, 1);
		overwrite(&s, at + 2 * AT_ONCE, 1, 1);
		ck_assert_uint_eq(reads_of_commit(&s), others + 2);
	}
	end(&s);
}
END_TEST

static unsigned count_syncs(struct scene *s)
{
	unsigned syncs = 0;

	for (size_t i = 0; i < s->fault.count; i++)
		syncs += s->fault.events[i].kind == FAULT_SYNC;
	fault_io_release(&s->fault);
	return syncs;
}

/* While the last record is needed, its bytes stay as they are: the first write over them waits until it is
 * not. */
START_TEST(one_sync_for_all_writes)
{
	uint64_t at, other;
	struct scene s;

	begin(&s, fixtures[_i]);
	at = write_raw(&s, 1000);
	other = write_raw(&s, COVERED_BYTES - 1000);
	SUCCEEDS(h5_tx_commit(s.file));
	s.fault.record = true;
	overwrite(&s, AT, 8, 1); /* that it says nothing of */
	ck_assert_uint_eq(count_syncs(&s), 0);
	overwrite(&s, at + 999, 1, 1);
	ck_assert_uint_eq(count_syncs(&s), 2); /* the file's, and the journal's */
	overwrite(&s, at, 1000, 2);
	overwrite(&s, other, 1000, 3);
	ck_assert_uint_eq(count_syncs(&s), 0);
	end(&s);
}
END_TEST

/* Cells of the commit before are guarded unless they have too many bytes. */
START_TEST(large_cells)
{
	for (size_t more = 0; more < 2; more++) {
		enum { SUPERBLOCK = 48 }; /* is a cell, too */
		const size_t n = CELLS_MAX - SUPERBLOCK + more;
		uint8_t *bytes = malloc(n);
		struct scene s;
		uint64_t at;

		ck_assert_ptr_nonnull(bytes);
		memset(bytes, 'x', n);
		begin(&s, fixtures[_i]);
		at = allocate(&s, H5_ALLOCATE_RAW, n);
		SUCCEEDS(h5_tx_write(s.file, at + n - 1, "y", 1));
		SUCCEEDS(h5_tx_commit(s.file));
		SUCCEEDS(h5_tx_patch(s.file, at, bytes, n, H5_STAGE_BLOCK));
		SUCCEEDS(h5_tx_commit(s.file));
		patch(&s, AT, 4, H5_STAGE_BLOCK);
		commit(&s);
		ck_assert_uint_eq(count(&s, true), more ? 0 : 2);
		ck_assert(more || find(&s, true, at, n) >= 0);
		check_record(&s);
		end(&s);
		free(bytes);
	}
}
END_TEST

UNIT_MAIN_LOOPS("record", {cells_and_guards, 2}, {large_cells, 1}, {raw_data, 2}, {what_is_given_up, 2},
		{the_commit_before, 2}, {what_was_abandoned, 2}, {not_read_again, 2},
		{one_sync_for_all_writes, 2})
