#include "change/space.h"
#include "change/transaction.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct scratch scratch;

/* A copy of one of the fixtures' files, to write to. */
static struct h5_file *begin(const char *fixture)
{
	scratch_init(&scratch, fixture);
	scratch_open(&scratch);
	return scratch.file;
}

/* Bytes as they are in the file. */
static void file_bytes(uint64_t offset, void *buf, size_t n)
{
	int fd = open(scratch.path, O_RDONLY);

	ck_assert_int_eq(pread(fd, buf, n, (off_t)offset), (ssize_t)n);
	close(fd);
}

static off_t file_size(void)
{
	struct stat st;

	ck_assert_int_eq(stat(scratch.path, &st), 0);
	return st.st_size;
}

START_TEST(a_cell_waits_for_the_commit)
{
	uint8_t before[16], now[16], changed[16];
	struct h5_file *file;
	uint64_t address = 64;

	file = begin("dataset_latest.h5");
	ck_assert(!h5_tx_is_pending(file));
	ck_assert_int_eq(h5_file_read(file, address, before, sizeof before), 0);
	memset(changed, 0x5a, sizeof changed);
	ck_assert_int_eq(h5_tx_store(file, &address, changed, sizeof changed, H5_STAGE_BLOCK), 0);
	ck_assert_uint_eq(address, 64);
	ck_assert_int_eq(h5_file_read(file, address, now, sizeof now), 0);
	ck_assert_mem_eq(now, changed, sizeof now);
	file_bytes(address, now, sizeof now);
	ck_assert_mem_eq(now, before, sizeof now);
	ck_assert(h5_tx_is_pending(file));
	ck_assert_int_eq(h5_tx_commit(file), 0);
	file_bytes(address, now, sizeof now);
	ck_assert_mem_eq(now, changed, sizeof now);
	ck_assert(!h5_tx_is_pending(file));
	scratch_release(&scratch);
}
END_TEST

/* Overlapping patches become one; reads of any range see them. */
START_TEST(patches_overlap)
{
	uint8_t expected[64], now[64], bytes[32];
	struct h5_file *file;

	file = begin("dataset_latest.h5");
	ck_assert_int_eq(h5_file_read(file, 100, expected, sizeof expected), 0);
	for (unsigned i = 0; i < 40; i++) {
		unsigned at = i * 37 % 48, n = 1 + i * 11 % 16;

		memset(bytes, (int)i, n);
		memset(expected + at, (int)i, n);
		ck_assert_int_eq(h5_tx_patch(file, 100 + at, bytes, n, H5_STAGE_BLOCK + i), 0);
		ck_assert_int_eq(h5_file_read(file, 100, now, sizeof now), 0);
		ck_assert_mem_eq(now, expected, sizeof now);
		ck_assert_int_eq(h5_file_read(file, 100 + at + n / 2, now, 3), 0);
		ck_assert_mem_eq(now, expected + at + n / 2, 3);
	}
	ck_assert_int_eq(h5_tx_commit(file), 0);
	file_bytes(100, now, sizeof now);
	ck_assert_mem_eq(now, expected, sizeof now);
	scratch_release(&scratch);
}
END_TEST

START_TEST(what_crosses_a_page_is_copied)
{
	uint8_t bytes[64], now[64], before[64];
	uint64_t address = 4096 - 8, moved = address;
	struct h5_file *file;

	file = begin("dataset_latest.h5");
	file_bytes(address, before, sizeof before);
	ck_assert(!h5_tx_is_safe(file, address, sizeof bytes));
	memset(bytes, 1, sizeof bytes);
	ck_assert_int_eq(h5_tx_store(file, &moved, bytes, sizeof bytes, H5_STAGE_BLOCK), 0);
	ck_assert_uint_ne(moved, address);
	ck_assert(h5_tx_is_new(file, moved));
	/* New space is changed in place. */
	memset(bytes, 2, sizeof bytes);
	address = moved;
	ck_assert_int_eq(h5_tx_shadow(file, &moved, bytes, sizeof bytes), 0);
	ck_assert_uint_eq(moved, address);
	ck_assert_int_eq(h5_file_read(file, moved, now, sizeof now), 0);
	ck_assert_mem_eq(now, bytes, sizeof now);
	ck_assert_int_eq(h5_tx_commit(file), 0);
	file_bytes(moved, now, sizeof now);
	ck_assert_mem_eq(now, bytes, sizeof now);
	ck_assert(!h5_tx_is_new(file, moved));
	file_bytes(4096 - 8, now, sizeof now);
	ck_assert_mem_eq(now, before, sizeof now);
	/* Committed, it is shadowed again. */
	ck_assert_int_eq(h5_tx_shadow(file, &moved, bytes, sizeof bytes), 0);
	ck_assert_uint_ne(moved, address);
	scratch_release(&scratch);
}
END_TEST

START_TEST(the_end_is_published)
{
	struct h5_file *file;
	uint8_t byte = 1;
	uint64_t address;
	off_t size;

	for (int i = 0; i < 2; i++) {
		file = begin(i ? "dataset_latest.h5" : "dataset_early.h5");
		size = file_size();
		ck_assert_int_eq(h5_tx_allocate(file, H5_ALLOCATE_RAW, 100000, &address), 0);
		ck_assert_uint_ge(address, (uint64_t)size);
		ck_assert_int_eq(h5_tx_write(file, address, &byte, 1), 0);
		ck_assert_int_eq(h5_tx_commit(file), 0);
		ck_assert_int_ge(file_size(), size + 100000);
		scratch_close(&scratch);
		scratch_judge("h5dump -H %s >/dev/null", scratch.path);
		/* The next one goes on behind it. */
		scratch_open(&scratch);
		file = scratch.file;
		ck_assert_int_eq(h5_tx_allocate(file, H5_ALLOCATE_RAW, 1, &address), 0);
		ck_assert_uint_ge(address, (uint64_t)size + 100000);
		scratch_release(&scratch);
	}
}
END_TEST

START_TEST(metadata_over_committed_bytes_is_refused)
{
	struct h5_file *file;
	uint8_t byte = 1;

	file = begin("dataset_latest.h5");
	ck_assert_int_eq(h5_tx_put(file, 100, &byte, 1), -EUCLEAN);
	ck_assert_int_eq(h5_tx_write(file, (uint64_t)file_size(), &byte, 1), -EUCLEAN);
	scratch_release(&scratch);
}
END_TEST

START_TEST(a_unit_that_failed_leaves_the_end)
{
	struct h5_file *file = begin("dataset_latest.h5");
	uint8_t bytes[1000] = {0};
	off_t size = file_size();
	uint64_t address;

	h5_unit_begin(file);
	ck_assert_int_eq(h5_tx_allocate(file, H5_ALLOCATE_METADATA, sizeof bytes, &address), 0);
	ck_assert_int_eq(h5_tx_put(file, address, bytes, sizeof bytes), 0);
	ck_assert_int_eq(h5_unit_end(file, -ENOSPC), -ENOSPC);
	ck_assert_int_eq(h5_tx_commit(file), 0);
	ck_assert_int_eq(file_size(), size);
	ck_assert_int_eq(h5_tx_allocate(file, H5_ALLOCATE_METADATA, 8, &address), 0);
	ck_assert_uint_lt(address, (uint64_t)size + 8);
	scratch_release(&scratch);
}
END_TEST

/* Damaged files lead to it. */
START_TEST(the_superblock_is_neither_written_nor_given_up)
{
	uint64_t taken[3] = {0}, address;
	struct h5_file *file;
	uint8_t byte = 1;

	file = begin("dataset_latest.h5");
	for (uint64_t at = 0; at < 48; at += 47) {
		ck_assert_int_eq(h5_tx_write(file, at, &byte, 1), -EUCLEAN);
		ck_assert_int_eq(h5_tx_patch(file, at, &byte, 1, 0), -EUCLEAN);
		h5_tx_discard(file, at, 100);
		h5_tx_free(file, at, 100);
	}
	ck_assert_int_eq(h5_tx_write(file, 48, &byte, 1), 0);
	/* What a commit gives up is free after the next one. */
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(h5_tx_allocate(file, H5_ALLOCATE_RAW, 10, &taken[i]), 0);
		ck_assert_int_eq(h5_tx_write(file, taken[i], taken, 10), 0);
		ck_assert_int_eq(h5_tx_commit(file), 0);
	}
	ck_assert_int_eq(h5_tx_allocate(file, H5_ALLOCATE_RAW, 10, &address), 0);
	ck_assert_uint_ge(address, taken[0]);
	scratch_release(&scratch);
}
END_TEST

/* ---- space ---- */

START_TEST(metadata_stays_inside_a_page)
{
	struct h5_space space = {.base = 512, .areas = {{.end = 4000 - 512, .limit = INT64_MAX}}};
	uint64_t at;

	for (unsigned n = 1; n < H5_CELL; n += 333) {
		ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_METADATA, n, &at), 0);
		ck_assert_uint_eq((at + 512) / H5_CELL, (at + 512 + n - 1) / H5_CELL);
		ck_assert_uint_eq(at % 8, 0);
	}
	h5_space_release(&space);
}
END_TEST

START_TEST(space_is_used_again_when_nobody_wants_it)
{
	struct h5_space space = {.areas = {{.end = 10000, .committed_end = 10000, .limit = INT64_MAX}}};
	uint64_t a, b, c;
	bool committed;

	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_RAW, 1000, &a), 0);
	h5_space_free(&space, a, 1000, &committed);
	ck_assert(!committed);
	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_RAW, 1000, &b), 0);
	ck_assert_uint_eq(a, b);
	h5_space_committed(&space, true);
	h5_space_free(&space, b, 1000, &committed);
	ck_assert(committed);
	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_RAW, 1000, &c), 0);
	ck_assert_uint_ne(c, b);
	h5_space_committed(&space, true);
	/* A recovery may still go back to the commit before. */
	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_RAW, 1000, &c), 0);
	ck_assert_uint_ne(c, b);
	h5_space_cooled(&space);
	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_RAW, 1000, &c), 0);
	ck_assert_uint_eq(c, b);
	h5_space_release(&space);
}
END_TEST

START_TEST(readers_along_keep_all_space)
{
	struct h5_space space = {.areas = {{.end = 10000, .committed_end = 10000, .limit = INT64_MAX}},
				 .keeps = true};
	uint64_t a, b;
	bool committed;

	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_RAW, 1000, &a), 0);
	h5_space_committed(&space, true);
	h5_space_free(&space, a, 1000, &committed);
	h5_space_committed(&space, true);
	h5_space_cooled(&space);
	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_RAW, 1000, &b), 0);
	ck_assert_uint_ne(a, b);
	h5_space_release(&space);
}
END_TEST

/* Paged files: small raw data and small metadata in pages of their own, large ones from a page's start on. */
START_TEST(pages_of_the_file_space)
{
	struct h5_space space = {.areas = {{.end = 8192, .committed_end = 8192, .limit = INT64_MAX}},
				 .page = 4096};
	uint64_t raw, meta, large, other;
	bool committed;

	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_RAW, 100, &raw), 0);
	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_METADATA, 100, &meta), 0);
	ck_assert_uint_ne(raw / 4096, meta / 4096);
	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_RAW, 5000, &large), 0);
	ck_assert_uint_eq(large % 4096, 0);
	ck_assert_uint_eq(space.areas[0].end % 4096, 0);
	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_RAW, 100, &other), 0);
	ck_assert_uint_eq(other / 4096, raw / 4096);
	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_METADATA, 100, &other), 0);
	ck_assert_uint_eq(other / 4096, meta / 4096);
	h5_space_free(&space, meta, 100, &committed);
	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_RAW, 100, &other), 0);
	ck_assert_uint_ne(other, meta);
	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_METADATA, 100, &other), 0);
	ck_assert_uint_eq(other, meta);
	h5_space_release(&space);
}
END_TEST

START_TEST(addresses_end)
{
	struct h5_space space = {.areas = {{.end = 60000, .limit = 65535}}};
	uint64_t at;

	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_RAW, 6000, &at), -ENOSPC);
	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_RAW, UINT64_MAX, &at), -ENOSPC);
	ck_assert_uint_eq(space.areas[0].end, 60000);
	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_RAW, 5000, &at), 0);
	h5_space_release(&space);
}
END_TEST

/* Changes a byte of the file when it is settled, unless it shall fail. */
struct member {
	struct h5_tx_participant participant; /* the first member */
	int fails;
	unsigned settled, dropped;
};

static int settle_member(struct h5_tx_participant *participant)
{
	struct member *m = (struct member *)participant;
	uint64_t address = participant->address;
	int rc = m->fails ? m->fails : h5_tx_store(scratch.file, &address, &m->settled, 1, H5_STAGE_OBJECT);

	m->settled++;
	h5_tx_report(scratch.file, participant, rc, rc ? 100 : 0);
	return rc;
}

static void drop_member(struct h5_tx_participant *participant)
{
	((struct member *)participant)->dropped++;
}

static const struct h5_tx_participant_ops member_ops = {settle_member, drop_member};

/* ---- giving space back ---- */

/* What was in one page of the file space is free, also if it was given up in parts. */
START_TEST(parts_of_a_page_become_whole)
{
	struct h5_space space = {.areas = {{.end = 8192, .committed_end = 8192, .limit = INT64_MAX}},
				 .page = 4096};
	uint64_t at[8], large;
	bool committed;

	for (unsigned i = 0; i < 8; i++)
		ck_assert_int_eq(h5_space_allocate(&space, i < 4 ? H5_ALLOCATE_METADATA : H5_ALLOCATE_RAW,
						   1024, &at[i]),
				 0);
	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_RAW, 5000, &large), 0);
	h5_space_committed(&space, true);
	ck_assert_uint_eq(h5_space_least_end(&space, space.areas), space.areas[0].end);
	for (unsigned i = 0; i < 8; i++)
		h5_space_free(&space, at[i ^ 5], 1024, &committed);
	h5_space_free(&space, large, 5000, &committed);
	/* A file's own page, in the parts that others have allocated. */
	h5_space_free(&space, 4096 + 500, 4096 - 500, &committed);
	h5_space_committed(&space, true);
	h5_space_cooled(&space);
	ck_assert_uint_eq(h5_space_least_end(&space, space.areas), 8192);
	h5_space_free(&space, 4096, 500, &committed);
	h5_space_committed(&space, true);
	h5_space_cooled(&space);
	ck_assert_uint_eq(h5_space_least_end(&space, space.areas), 4096);
	h5_space_cut(&space, space.areas, 4096);
	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_METADATA, 100, &at[0]), 0);
	ck_assert_uint_eq(at[0], 4096);
	h5_space_rollback(&space);
	ck_assert_uint_eq(space.areas[0].end, 4096);
	h5_space_release(&space);
}
END_TEST

/* Gaps that are too small for anything keep neither the end nor a page. */
START_TEST(gaps_go_with_their_neighbours)
{
	struct h5_space space = {.areas = {{.end = 1001, .committed_end = 1001, .limit = INT64_MAX}}};
	struct h5_extents pages = {0};
	struct h5_extent first;
	uint64_t at[20];
	bool committed;

	for (unsigned i = 0; i < 20; i++)
		ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_METADATA, 1004, &at[i]), 0);
	h5_space_committed(&space, true);
	for (unsigned i = 0; i < 19; i++)
		h5_space_free(&space, at[i], 1004, &committed);
	h5_space_committed(&space, true);
	h5_space_cooled(&space);
	ck_assert_uint_eq(h5_space_least_end(&space, space.areas), space.areas[0].end);
	ck_assert_int_eq(h5_space_find_pages(&space, &pages), 0);
	ck_assert_uint_eq(pages.count, 1);
	first = *h5_extents_last(&pages);
	ck_assert_uint_eq(first.address, H5_CELL);
	ck_assert_uint_eq(first.size % H5_CELL, 0);
	ck_assert_uint_ge(first.size, 3 * H5_CELL);
	/* Holes are punched once. */
	h5_space_punched(&space, first.address, first.size);
	h5_extents_release(&pages);
	ck_assert_int_eq(h5_space_find_pages(&space, &pages), 0);
	ck_assert_uint_eq(pages.count, 0);
	h5_extents_release(&pages);
	h5_space_free(&space, at[19], 1004, &committed);
	h5_space_committed(&space, true);
	ck_assert_uint_eq(h5_space_least_end(&space, space.areas), space.areas[0].end);
	h5_space_cooled(&space);
	ck_assert_uint_eq(h5_space_least_end(&space, space.areas), 1001);
	h5_space_release(&space);
}
END_TEST

static blkcnt_t file_blocks(void)
{
	struct stat st;

	ck_assert_int_eq(stat(scratch.path, &st), 0);
	return st.st_blocks;
}

/* Commits raw data in so many pieces of 64 KiB, side by side. */
static void add_pieces(struct h5_file *file, uint64_t *pieces, unsigned count)
{
	static uint8_t data[1 << 16];

	memset(data, 0x5a, sizeof data);
	for (unsigned i = 0; i < count; i++) {
		SUCCEEDS(h5_tx_allocate(file, H5_ALLOCATE_RAW, sizeof data, &pieces[i]));
		SUCCEEDS(h5_tx_write(file, pieces[i], data, sizeof data));
	}
	SUCCEEDS(h5_tx_commit(file));
}

static void free_piece(struct h5_file *file, uint64_t piece)
{
	uint8_t byte;

	h5_tx_free(file, piece, 1 << 16);
	/* Something to commit. */
	SUCCEEDS(h5_file_read(file, 64, &byte, 1));
	SUCCEEDS(h5_tx_patch(file, 64, &byte, 1, H5_STAGE_BLOCK));
	SUCCEEDS(h5_tx_commit(file));
}

START_TEST(space_goes_back_to_the_file_system)
{
	struct h5_file *file = begin("dataset_latest.h5");
	off_t size = file_size();
	uint64_t pieces[8], again;
	blkcnt_t blocks;

	add_pieces(file, pieces, 8);
	blocks = file_blocks();
	free_piece(file, pieces[3]);
	ck_assert_int_eq(file_blocks(), blocks);
	SUCCEEDS(h5_tx_give_back(file, 1 << 20)); /* not worth it */
	ck_assert_int_eq(file_blocks(), blocks);
	SUCCEEDS(h5_tx_give_back(file, 1 << 16));
	ck_assert_int_le(file_blocks(), blocks - ((1 << 16) - 2 * H5_CELL) / 512);
	/* The end goes when nothing is behind it. */
	free_piece(file, pieces[6]);
	SUCCEEDS(h5_tx_give_back(file, 1));
	ck_assert_int_ge(file_size(), (off_t)(pieces[7] + (1 << 16)));
	free_piece(file, pieces[7]);
	SUCCEEDS(h5_tx_give_back(file, 1));
	ck_assert_uint_eq((uint64_t)file_size(), pieces[6]);
	ck_assert_uint_eq(h5_file_end(file), pieces[6]);
	/* What was given back is used again, and lost again if it is not committed. */
	SUCCEEDS(h5_tx_allocate(file, H5_ALLOCATE_RAW, 1 << 16, &again));
	ck_assert_uint_eq(again, pieces[3]);
	SUCCEEDS(h5_tx_allocate(file, H5_ALLOCATE_RAW, 1 << 16, &again));
	ck_assert_uint_eq(again, pieces[6]);
	h5_tx_abandon(file);
	ck_assert_uint_eq((uint64_t)file_size(), pieces[6]);
	for (unsigned i = 0; i < 6; i++)
		if (i != 3)
			free_piece(file, pieces[i]);
	scratch_close(&scratch);
	ck_assert_int_eq(file_size(), size);
	scratch_judge("h5dump -H %s >/dev/null", scratch.path);
	scratch_release(&scratch);
}
END_TEST

/* The file gives up space that no commit has used. The superblock never counted it, so it stays as it is. */
START_TEST(an_end_that_was_not_committed)
{
	struct fault_io record = {0};
	uint64_t address;
	uint8_t byte = 1;
	off_t size;

	scratch_init(&scratch, "dataset_latest.h5");
	scratch_wrap(&scratch, &record);
	scratch_open(&scratch);
	size = file_size();
	SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_RAW, 1 << 16, &address));
	SUCCEEDS(h5_tx_write(scratch.file, address + (1 << 16) - 1, &byte, 1));
	ck_assert_int_gt(file_size(), size);
	h5_tx_free(scratch.file, address, 1 << 16);
	/* Nothing is pending any more, but that something was written. */
	h5_tx_abandon(scratch.file);
	ck_assert_int_eq(file_size(), size);
	SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_RAW, 1 << 16, &address));
	h5_tx_free(scratch.file, address, 1 << 16);
	record.record = true;
	SUCCEEDS(h5_tx_give_back(scratch.file, 1));
	record.record = false;
	for (size_t i = 0; i < record.count; i++)
		ck_assert(record.events[i].file || record.events[i].kind != FAULT_WRITE);
	SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_RAW, 1, &address));
	ck_assert_uint_eq(address, (uint64_t)size);
	h5_tx_abandon(scratch.file);
	scratch_release(&scratch);
	fault_io_release(&record);
}
END_TEST

/* A hole can be made only inside the file, behind the superblock; one that fails is no failure of the file.
 */
START_TEST(holes_that_cannot_be_made)
{
	struct fault_io fault = {.error = -EOPNOTSUPP};
	struct h5_file *file;
	uint64_t piece;

	scratch_init(&scratch, "dataset_latest.h5");
	scratch_wrap(&scratch, &fault);
	scratch_open(&scratch);
	file = scratch.file;
	add_pieces(file, &piece, 1);
	ck_assert(h5_tx_punch(file, piece, 1 << 16));
	ck_assert(!h5_tx_punch(file, piece, (1 << 16) + 1));
	ck_assert(!h5_tx_punch(file, 0, 8));
	ck_assert(h5_tx_punch(file, piece, 1 << 16));
	fault_io_arm(&fault, 1);
	ck_assert(!h5_tx_punch(file, piece, 1 << 16));
	ck_assert(fault_io_disarm(&fault));
	ck_assert(h5_tx_punch(file, piece, 1 << 16));
	scratch_release(&scratch);
	fault_io_release(&fault);
}
END_TEST

/* After the first hole that cannot be made, no other one is tried until the next time. */
START_TEST(holes_after_one_that_fails)
{
	static const int errors[] = {-EIO, -EOPNOTSUPP, -ENOSYS, -EPERM};
	struct fault_io fault = {0};
	blkcnt_t blocks, fewer;
	uint64_t pieces[5];
	struct h5_file *file;

	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		scratch_init(&scratch, "dataset_latest.h5");
		scratch_wrap(&scratch, &fault);
		scratch_open(&scratch);
		file = scratch.file;
		add_pieces(file, pieces, 5);
		free_piece(file, pieces[0]);
		free_piece(file, pieces[2]);
		SUCCEEDS(h5_tx_give_back(file, UINT64_MAX)); /* not worth it */
		blocks = file_blocks();
		/* Behind what makes the last commit certain: a sync, and the journal's write and sync. */
		fault.error = errors[i];
		fault_io_arm(&fault, 4);
		SUCCEEDS(h5_tx_give_back(file, 1));
		ck_assert_uint_eq(fault.calls, 4);
		ck_assert(fault_io_disarm(&fault));
		ck_assert(h5_tx_is_writable(file));
		ck_assert_int_eq(file_blocks(), blocks);
		SUCCEEDS(h5_tx_give_back(file, 1));
		fewer = file_blocks();
		/* A file system that cannot do it is not asked again. */
		ck_assert_int_eq(fewer < blocks - 200, i == 0);
		ck_assert(i == 0 || fewer == blocks);
		scratch_release(&scratch);
		fault_io_release(&fault);
	}
}
END_TEST

/* What was committed is read, whatever changes; nothing behind it. */
START_TEST(what_was_committed)
{
	uint8_t before[8], now[8], changed[8];
	struct h5_file *file = begin("dataset_latest.h5");
	const uint64_t end = (uint64_t)file_size();
	uint64_t address;

	memset(changed, 0x77, sizeof changed);
	SUCCEEDS(h5_file_read(file, end - 8, before, 8));
	SUCCEEDS(h5_tx_patch(file, end - 8, changed, 8, H5_STAGE_BLOCK));
	SUCCEEDS(h5_tx_allocate(file, H5_ALLOCATE_METADATA, 64, &address));
	ck_assert_uint_ge(address, end);
	memset(now, 0, sizeof now);
	SUCCEEDS(h5_tx_put(file, address, now, 8));
	SUCCEEDS(h5_tx_read_committed(file, end - 8, now, 8));
	ck_assert_mem_eq(now, before, 8);
	ck_assert_int_eq(h5_tx_read_committed(file, end - 7, now, 8), -EUCLEAN);
	ck_assert_int_eq(h5_tx_read_committed(file, address, now, 1), -EUCLEAN);
	ck_assert_int_eq(h5_tx_read_committed(file, UINT64_MAX, now, 8), -EUCLEAN);
	SUCCEEDS(h5_tx_commit(file));
	SUCCEEDS(h5_tx_read_committed(file, end - 8, now, 8));
	ck_assert_mem_eq(now, changed, 8);
	SUCCEEDS(h5_tx_read_committed(file, address, now, 8));
	scratch_release(&scratch);
}
END_TEST

/* Space that something may still refer to stays as it is. */
START_TEST(space_that_is_kept_is_not_given_back)
{
	struct member bad = {{.ops = &member_ops, .address = 80}, -ENOSPC, 0, 0};
	struct h5_file *file = begin("dataset_latest.h5");
	uint64_t pieces[2];
	blkcnt_t blocks;

	add_pieces(file, pieces, 2);
	blocks = file_blocks();
	h5_tx_join(file, &bad.participant);
	h5_tx_report(file, &bad.participant, true, 20);
	free_piece(file, pieces[0]);
	free_piece(file, pieces[1]);
	SUCCEEDS(h5_tx_give_back(file, 1));
	ck_assert_int_eq(file_blocks(), blocks);
	h5_tx_drop(file, &bad.participant);
	SUCCEEDS(h5_tx_give_back(file, 1));
	h5_tx_leave(file, &bad.participant);
	scratch_close(&scratch);
	ck_assert_int_eq(file_blocks(), blocks);
	scratch_release(&scratch);
}
END_TEST

static void load(uint8_t **data, size_t *n)
{
	int fd = open(scratch.path, O_RDONLY);

	*n = (size_t)file_size();
	*data = malloc(*n + 1);
	ck_assert_ptr_nonnull(*data);
	ck_assert_int_eq(read(fd, *data, *n), (ssize_t)*n);
	close(fd);
}

/* Each call fails in its turn. What libhdf5 sees is the same, whether the file became smaller or not. A hole
 * or a cut that fails is no failure. */
START_TEST(giving_back_fails)
{
	unsigned long failures = 0, n = 1;

	for (bool fired = true; fired; n++) {
		struct fault_io fault = {.error = -EIO};
		uint64_t pieces[4];
		struct h5_file *file;
		size_t size;
		uint8_t *data;
		int rc;

		scratch_init(&scratch, "dataset_latest.h5");
		scratch_wrap(&scratch, &fault);
		scratch_open(&scratch);
		file = scratch.file;
		add_pieces(file, pieces, 4);
		free_piece(file, pieces[0]);
		free_piece(file, pieces[3]);
		fault_io_arm(&fault, n);
		rc = h5_tx_give_back(file, 1);
		fired = fault_io_disarm(&fault);
		failures += rc != 0;
		ck_assert(rc ? rc == -EIO && !h5_tx_is_writable(file) : h5_tx_is_writable(file));
		if (!rc)
			free_piece(file, pieces[2]);
		scratch_close(&scratch);
		load(&data, &size);
		ck_assert_uint_ge(size, pieces[rc ? 3 : 2]);
		for (uint64_t i = pieces[1]; i < pieces[1] + (1 << 16); i++)
			ck_assert_msg(data[i] == 0x5a, "byte %ju after call %lu", (uintmax_t)i, n);
		free(data);
		scratch_judge("h5dump -H %s >/dev/null", scratch.path);
		scratch_release(&scratch);
		fault_io_release(&fault);
	}
	/* Two syncs and the journal; the superblock and its sync; the cut and the hole do not count. */
	ck_assert_uint_eq(n - 2, 7);
	ck_assert_uint_eq(failures, 5);
}
END_TEST

/* Each call of a commit fails once. If that is when cells are written, the file takes no more changes, and
 * its journal stays; the next mount finds all of the commit. */
START_TEST(a_commit_that_breaks_off)
{
	static const uint64_t cells[] = {64, 2000, 3000};
	enum { CELLS = sizeof cells / sizeof *cells };
	static const uint8_t block[64] = "new";
	unsigned long broken = 0, n = 1;
	unsigned ends = 0; /* failures after which the file takes no more changes */

	for (bool fired = true; fired; n++) {
		struct fault_io fault = {.error = -EIO};
		uint8_t before[CELLS], now, there[sizeof block];
		uint64_t new;
		unsigned changed = 0;
		char journal[200];
		bool writable;
		int rc;

		scratch_init(&scratch, "dataset_latest.h5");
		scratch_wrap(&scratch, &fault);
		scratch_open(&scratch);
		snprintf(journal, sizeof journal, "%s.h5fs-journal", scratch.path);
		for (unsigned i = 0; i < CELLS; i++) {
			SUCCEEDS(h5_file_read(scratch.file, cells[i], &before[i], 1));
			now = before[i] ^ 0x5a;
			SUCCEEDS(h5_tx_patch(scratch.file, cells[i], &now, 1, H5_STAGE_BLOCK + i));
		}
		SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_METADATA, sizeof block, &new));
		SUCCEEDS(h5_tx_put(scratch.file, new, block, sizeof block));
		fault_io_arm(&fault, n);
		rc = h5_tx_commit(scratch.file);
		fired = fault_io_disarm(&fault);
		ck_assert_int_eq(rc, fired ? -EIO : 0);
		writable = h5_tx_is_writable(scratch.file);
		ends += !writable;
		scratch_close(&scratch);
		/* The first one is the sync of what is new, before the journal. */
		ck_assert_int_eq(access(journal, F_OK) == 0, !writable && ends > 1);
		scratch_wrap(&scratch, NULL);
		scratch_open(&scratch);
		for (unsigned i = 0; i < CELLS; i++) {
			SUCCEEDS(h5_file_read(scratch.file, cells[i], &now, 1));
			ck_assert(now == before[i] || now == (before[i] ^ 0x5a));
			changed += now != before[i];
		}
		ck_assert_uint_eq(changed, rc && (writable || ends == 1) ? 0 : CELLS);
		if (changed) {
			SUCCEEDS(h5_file_read(scratch.file, new, there, sizeof there));
			ck_assert_mem_eq(there, block, sizeof block);
		}
		broken += !writable && ends > 1;
		scratch_release(&scratch);
		fault_io_release(&fault);
	}
	ck_assert_uint_eq(broken, CELLS + 1); /* and the end in the superblock */
}
END_TEST

struct around {
	unsigned before, after;
	bool made;
};

static void note_before(void *arg)
{
	struct around *around = arg;

	ck_assert_uint_eq(around->before++, around->after);
}

static void note_after(void *arg, bool made)
{
	struct around *around = arg;

	ck_assert_uint_eq(around->before, ++around->after);
	around->made = made;
}

/* A function can be called before and after each commit. It learns whether the commit was made. */
START_TEST(commits_are_told)
{
	struct fault_io fault = {.error = -EIO};
	struct around noted = {0};
	const struct h5_tx_around around = {note_before, note_after, &noted};
	uint8_t byte = 1;

	scratch_init(&scratch, "dataset_latest.h5");
	scratch_wrap(&scratch, &fault);
	scratch_open(&scratch);
	h5_tx_set_around(scratch.file, &around);
	SUCCEEDS(h5_tx_commit(scratch.file));
	ck_assert(noted.after == 1 && noted.made);
	SUCCEEDS(h5_tx_patch(scratch.file, 64, &byte, 1, H5_STAGE_BLOCK));
	fault_io_arm(&fault, 2); /* the record of the journal */
	ck_assert_int_eq(h5_tx_commit(scratch.file), -EIO);
	ck_assert(fault_io_disarm(&fault));
	ck_assert(noted.after == 2 && !noted.made);
	ck_assert(h5_tx_is_writable(scratch.file));
	SUCCEEDS(h5_tx_commit(scratch.file));
	ck_assert(noted.after == 3 && noted.made);
	h5_tx_set_around(scratch.file, NULL);
	SUCCEEDS(h5_tx_commit(scratch.file));
	ck_assert_uint_eq(noted.before, 3);
	scratch_release(&scratch);
	fault_io_release(&fault);
}
END_TEST

/* One that cannot be settled does not keep the other from its commit. */
START_TEST(a_commit_settles_each_participant_once)
{
	struct member good = {{.ops = &member_ops, .address = 64}, 0, 0, 0};
	struct member bad = {{.ops = &member_ops, .address = 80}, -ENOSPC, 0, 0};
	struct h5_file *file = begin("dataset_latest.h5");

	h5_tx_join(file, &good.participant);
	h5_tx_join(file, &bad.participant);
	ck_assert_ptr_eq(h5_tx_participants(file), &good.participant);
	ck_assert_ptr_eq(good.participant.next, &bad.participant);
	h5_tx_report(file, &good.participant, true, 20);
	h5_tx_report(file, &bad.participant, true, 100);
	ck_assert(h5_tx_is_unsettled(file));
	ck_assert_uint_eq(h5_tx_held(file), 120);
	ck_assert_int_eq(h5_tx_commit(file), 0);
	ck_assert_uint_eq(good.settled, 1);
	ck_assert_uint_eq(bad.settled, 1);
	ck_assert(!good.participant.failure && !good.participant.uncommitted);
	ck_assert(bad.participant.failure == -ENOSPC && bad.participant.uncommitted);
	ck_assert_uint_eq(h5_tx_held(file), 100);
	h5_tx_drop(file, &bad.participant);
	ck_assert(bad.dropped == 1 && !bad.participant.uncommitted);
	ck_assert(!h5_tx_is_unsettled(file) && !h5_tx_held(file));
	h5_tx_leave(file, &good.participant);
	h5_tx_leave(file, &bad.participant);
	ck_assert_ptr_null(h5_tx_participants(file));
	scratch_release(&scratch);
}
END_TEST

UNIT_MAIN("transaction", holes_after_one_that_fails, what_was_committed, a_cell_waits_for_the_commit,
	  patches_overlap, what_crosses_a_page_is_copied, the_end_is_published,
	  metadata_over_committed_bytes_is_refused, a_unit_that_failed_leaves_the_end,
	  the_superblock_is_neither_written_nor_given_up, metadata_stays_inside_a_page,
	  space_is_used_again_when_nobody_wants_it, readers_along_keep_all_space, pages_of_the_file_space,
	  addresses_end, parts_of_a_page_become_whole, gaps_go_with_their_neighbours,
	  space_goes_back_to_the_file_system, an_end_that_was_not_committed, holes_that_cannot_be_made,
	  space_that_is_kept_is_not_given_back, giving_back_fails, a_commit_that_breaks_off, commits_are_told,
	  a_commit_settles_each_participant_once)
