#include "change/space.h"
#include "change/transaction.h"
#include "scratch.h"

#include <fcntl.h>
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

/* ---- space ---- */

START_TEST(metadata_stays_inside_a_page)
{
	struct h5_space space = {.base = 512, .end = 4000 - 512, .limit = INT64_MAX};
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
	struct h5_space space = {.end = 10000, .committed_end = 10000, .limit = INT64_MAX};
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
	struct h5_space space = {.end = 10000, .committed_end = 10000, .limit = INT64_MAX, .keeps = true};
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
	struct h5_space space = {.end = 8192, .committed_end = 8192, .limit = INT64_MAX, .page = 4096};
	uint64_t raw, meta, large, other;
	bool committed;

	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_RAW, 100, &raw), 0);
	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_METADATA, 100, &meta), 0);
	ck_assert_uint_ne(raw / 4096, meta / 4096);
	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_RAW, 5000, &large), 0);
	ck_assert_uint_eq(large % 4096, 0);
	ck_assert_uint_eq(space.end % 4096, 0);
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
	struct h5_space space = {.end = 60000, .limit = 65535};
	uint64_t at;

	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_RAW, 6000, &at), -ENOSPC);
	ck_assert_int_eq(h5_space_allocate(&space, H5_ALLOCATE_RAW, UINT64_MAX, &at), -ENOSPC);
	ck_assert_uint_eq(space.end, 60000);
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

/* Against a map of bytes. */
START_TEST(extents_are_a_set)
{
	struct h5_extents set = {0};
	bool map[256] = {false}, has[256];
	uint32_t random = 1;

	for (int round = 0; round < 4000; round++) {
		unsigned at, n;
		bool add;

		random = random * 1664525 + 1013904223;
		at = random >> 8 & 0xff;
		n = (random >> 16 & 0x1f) % (256 - at);
		add = random >> 30 & 1;
		ck_assert_int_eq(add ? h5_extents_add(&set, at, n) : h5_extents_remove(&set, at, n), 0);
		memset(map + at, add, n);
		for (unsigned i = 0; i < 256; i++)
			has[i] = h5_extents_has(&set, i);
		ck_assert_mem_eq(has, map, sizeof map);
		for (size_t i = 1; i < set.count; i++)
			ck_assert_uint_gt(set.list[i].address,
					  set.list[i - 1].address + set.list[i - 1].size);
	}
	h5_extents_release(&set);
}
END_TEST

UNIT_MAIN("transaction", a_cell_waits_for_the_commit, patches_overlap, what_crosses_a_page_is_copied,
	  the_end_is_published, metadata_over_committed_bytes_is_refused, metadata_stays_inside_a_page,
	  space_is_used_again_when_nobody_wants_it, readers_along_keep_all_space, pages_of_the_file_space,
	  addresses_end, a_commit_settles_each_participant_once, extents_are_a_set)
