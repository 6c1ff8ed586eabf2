/* The order in which a commit writes the superblock, its extension and the ends of members; and how these
 * ends are given back. */
#include "change/transaction.h"
#include "fault_alloc.h"
#include "format/datatype_make.h"
#include "format/driver_info.h"
#include "object/attribute.h"
#include "object/attribute_write.h"
#include "scratch.h"
#include "store/extension.h"
#include "store/file_open.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The number of the last write that touches the bytes. */
static size_t last_write(const struct fault_io *record, uint64_t begin, uint64_t n)
{
	for (size_t i = record->count; i-- > 0;) {
		const struct fault_event *e = &record->events[i];

		if (!e->file && e->kind == FAULT_WRITE && e->offset < begin + n &&
		    begin < e->offset + e->size)
			return i;
	}
	ck_abort_msg("nothing was written there");
}

START_TEST(the_extension_follows_the_superblock)
{
	static const char *const fixtures[] = {"crash_persist.h5", "crash_image.h5"};
	const struct h5_dataspace space = {.kind = H5_SPACE_SCALAR, .elements = 1};
	struct h5_datatype *type = h5_datatype_make_integer(1, true, H5_ORDER_LE);
	const struct h5_superblock *sb;
	struct fault_io record = {0};
	uint64_t chunk, address;
	struct scratch scratch;
	struct h5_header header;
	uint8_t block[64] = {1};
	size_t extension;

	scratch_init(&scratch, fixtures[_i]);
	scratch_wrap(&scratch, &record);
	scratch_open(&scratch);
	sb = h5_file_superblock(scratch.file);
	SUCCEEDS(h5_header_load(scratch.file, sb->extension, &header));
	chunk = header.chunks[0].size;
	h5_header_release(&header);
	SUCCEEDS(h5_attribute_create(scratch.file, sb->root, "a", type, &space, "1"));
	SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_METADATA, 1 << 20, &address));
	SUCCEEDS(h5_tx_put(scratch.file, address, block, sizeof block));
	record.record = true;
	SUCCEEDS(h5_tx_commit(scratch.file));
	record.record = false;
	extension = last_write(&record, sb->base + sb->extension, chunk);
	ck_assert_uint_lt(last_write(&record, sb->base, 48), extension);
	ck_assert_uint_lt(extension, last_write(&record, sb->base + sb->root, 256));
	scratch_release(&scratch);
	fault_io_release(&record);
	h5_datatype_free(type);
}
END_TEST

/* Each write of a commit that takes a cache image away fails once, or each allocation. If the commit
 * succeeds, there is no image any more, and all that was in it is in the file. */
START_TEST(an_image_that_does_not_go)
{
	const struct h5_dataspace space = {.kind = H5_SPACE_SCALAR, .elements = 1};
	const bool memory = _i;
	unsigned failed = 0;
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		struct h5_datatype *type = h5_datatype_make_integer(1, true, H5_ORDER_LE);
		struct h5_cache_image_message image;
		struct fault_io fault = {.error = -EIO};
		struct h5_attribute attribute;
		const struct h5_object *root;
		struct h5_lru_entry *ref;
		struct h5_header header;
		struct scratch s;
		int rc;

		scratch_init(&s, "crash_image.h5");
		scratch_wrap(&s, &fault);
		scratch_open(&s);
		SUCCEEDS(h5_attribute_create(s.file, h5_file_superblock(s.file)->root, "a", type, &space,
					     "1"));
		h5_datatype_free(type);
		if (memory)
			fault_alloc_arm(n);
		else
			fault_io_arm(&fault, n);
		fault_alloc_count(memory);
		rc = h5_tx_commit(s.file);
		fault_alloc_count(false);
		fired = memory ? fault_alloc_disarm() : fault_io_disarm(&fault);
		ck_assert_msg(rc ? fired && rc == (memory ? -ENOMEM : -EIO) : memory || !fired, "%lu: %d", n,
			      rc);
		failed += rc != 0;
		scratch_close(&s);
		scratch_wrap(&s, NULL);
		scratch_open(&s);
		SUCCEEDS(h5_extension_load(s.file, &header));
		ck_assert(rc || h5_extension_cache_image(s.file, &header, &image) == -ENODATA);
		h5_header_release(&header);
		SUCCEEDS(h5_object_get(s.file, h5_file_superblock(s.file)->root, &ref, &root));
		if (!rc) {
			SUCCEEDS(h5_attribute_lookup(s.file, root, "a", &attribute));
			h5_attribute_release(&attribute);
		}
		h5_file_put(s.file, ref);
		scratch_release(&s);
		fault_io_release(&fault);
	}
	ck_assert_uint_ge(failed, 5);
}
END_TEST

/* ---- the ends of members ---- */

/* A copy of both members of a split file. */
static void begin_split(struct scratch *s, const char *name, struct fault_io *record)
{
	static const char *const parts[] = {"r", "m"};
	char from[512], fixture[64];

	scratch_init(s, "crash_multi.h5"); /* for a folder */
	for (unsigned i = 0; i < 2; i++) {
		snprintf(fixture, sizeof fixture, "members/%s-%s.h5", name, parts[i]);
		scratch_fixture(fixture, from);
		snprintf(s->path, sizeof s->path, "%s/%s-%s.h5", s->folder, name, parts[i]);
		scratch_copy(from, s->path);
	}
	scratch_wrap(s, record);
	scratch_open(s);
}

/* The address of the ends of both members. */
static uint64_t ends_of(struct h5_file *file)
{
	struct h5_header extension = {0};
	struct h5_driver_info info;
	uint64_t address;

	SUCCEEDS(h5_extension_load(file, &extension));
	SUCCEEDS(h5_file_driver_info(file, &extension, &info, &address));
	ck_assert_uint_eq(info.members, 2);
	h5_header_release(&extension);
	return address;
}

/* They are there before anything leads to what lies before them; and without a change they are not written.
 */
START_TEST(ends_of_members)
{
	static const char *const splits[] = {"split_earliest", "split_latest"};
	const struct h5_dataspace space = {.kind = H5_SPACE_SCALAR, .elements = 1};
	struct h5_datatype *type = h5_datatype_make_integer(1, true, H5_ORDER_LE);
	const size_t n = h5_driver_info_ends_size(2);
	uint8_t block[64] = {1}, before[64], after[64];
	const struct h5_superblock *sb;
	struct fault_io record = {0};
	uint64_t ends, address, raw;
	struct scratch s;
	size_t written;

	begin_split(&s, splits[_i], &record);
	sb = h5_file_superblock(s.file);
	ck_assert_int_eq(sb->extension == H5_UNDEF, !_i);
	ends = ends_of(s.file);
	ck_assert_uint_le(n, sizeof before);
	SUCCEEDS(h5_file_read(s.file, ends, before, n));
	SUCCEEDS(h5_attribute_create(s.file, sb->root, "a", type, &space, "1"));
	SUCCEEDS(h5_tx_allocate(s.file, H5_ALLOCATE_METADATA, 1 << 16, &address));
	SUCCEEDS(h5_tx_put(s.file, address, block, sizeof block));
	SUCCEEDS(h5_tx_allocate(s.file, H5_ALLOCATE_RAW, 1 << 16, &raw));
	SUCCEEDS(h5_tx_write(s.file, raw, block, sizeof block));
	record.record = true;
	SUCCEEDS(h5_tx_commit(s.file));
	written = last_write(&record, sb->base + ends, n);
	ck_assert_uint_lt(last_write(&record, sb->base, 48), written);
	ck_assert_uint_lt(written, last_write(&record, sb->base + sb->root, 256));
	record.record = false;
	fault_io_release(&record);
	SUCCEEDS(h5_file_read(s.file, ends, after, n));
	ck_assert_mem_ne(before, after, n);
	/* A hole, and no end that moves. */
	h5_tx_free(s.file, address, 1 << 15);
	SUCCEEDS(h5_tx_commit(s.file));
	record = (struct fault_io){.record = true};
	address = h5_tx_number(s.file);
	SUCCEEDS(h5_tx_give_back(s.file, 1));
	ck_assert_uint_eq(h5_tx_number(s.file), address);
	for (size_t i = 0; i < record.count; i++)
		ck_assert(record.events[i].file || record.events[i].kind != FAULT_WRITE);
	scratch_release(&s);
	fault_io_release(&record);
	h5_datatype_free(type);
}
END_TEST

/* New space in both members. */
static void allocate_in_both(struct h5_file *file, uint64_t *metadata, uint64_t *raw)
{
	uint8_t block[64] = {1};

	SUCCEEDS(h5_tx_allocate(file, H5_ALLOCATE_METADATA, 1 << 16, metadata));
	SUCCEEDS(h5_tx_put(file, *metadata, block, sizeof block));
	SUCCEEDS(h5_tx_allocate(file, H5_ALLOCATE_RAW, 1 << 16, raw));
	SUCCEEDS(h5_tx_write(file, *raw, block, sizeof block));
}

/* Each read of a commit that moves the ends of members fails once; the next commit has all. */
START_TEST(reads_of_ends_that_fail)
{
	static const char *const splits[] = {"split_earliest", "split_latest"};
	const size_t n = h5_driver_info_ends_size(2);
	uint8_t before[64], after[64];
	unsigned long failed = 0;

	for (bool fired = true; fired;) {
		struct fault_io fault = {.reads = true, .error = -EIO};
		uint64_t metadata, raw, ends;
		struct scratch s;
		int rc;

		begin_split(&s, splits[_i], &fault);
		ends = ends_of(s.file);
		SUCCEEDS(h5_file_read(s.file, ends, before, n));
		allocate_in_both(s.file, &metadata, &raw);
		fault_io_arm(&fault, failed + 1);
		rc = h5_tx_commit(s.file);
		fired = fault_io_disarm(&fault);
		ck_assert_int_eq(rc, fired ? -EIO : 0);
		ck_assert(h5_tx_is_writable(s.file));
		if (fired)
			SUCCEEDS(h5_tx_commit(s.file));
		SUCCEEDS(h5_file_read(s.file, ends, after, n));
		ck_assert_mem_ne(before, after, n);
		failed += fired;
		scratch_release(&s);
		fault_io_release(&fault);
	}
	ck_assert_uint_ge(failed, 1);
}
END_TEST

/* Each call of giving back the ends of members fails once. If they cannot become certain, the file takes no
 * more changes; what was committed is there. If they are not given back, space before them is used again. */
START_TEST(members_that_cannot_be_cut)
{
	static const char *const splits[] = {"split_earliest", "split_latest"};
	unsigned long n = 1, failed = 0;

	for (bool fired = true; fired; n++) {
		struct fault_io fault = {.error = -EIO};
		uint64_t metadata, raw, gone, other, again, last;
		struct scratch s;
		uint8_t byte;
		int rc;

		begin_split(&s, splits[_i], &fault);
		allocate_in_both(s.file, &metadata, &raw);
		SUCCEEDS(h5_tx_allocate(s.file, H5_ALLOCATE_RAW, 1 << 16, &gone));
		SUCCEEDS(h5_tx_allocate(s.file, H5_ALLOCATE_RAW, 1 << 16, &other));
		SUCCEEDS(h5_tx_write(s.file, other, "z", 1));
		SUCCEEDS(h5_tx_commit(s.file));
		h5_tx_free(s.file, other, 1 << 16);
		SUCCEEDS(h5_tx_write(s.file, raw, "r", 1));
		SUCCEEDS(h5_tx_patch(s.file, metadata, "m", 1, H5_STAGE_BLOCK));
		SUCCEEDS(h5_tx_commit(s.file));
		h5_tx_free(s.file, gone, 1 << 16); /* since the last commit, and nothing else has changed */
		fault_io_arm(&fault, n);
		rc = h5_tx_give_back(s.file, 1);
		fired = fault_io_disarm(&fault);
		ck_assert(!rc || (fired && rc == -EIO));
		ck_assert_int_eq(h5_tx_is_writable(s.file), !rc);
		failed += rc != 0;
		if (!rc) {
			SUCCEEDS(h5_tx_allocate(s.file, H5_ALLOCATE_RAW, 1 << 16, &again));
			ck_assert(again >= gone);
			SUCCEEDS(h5_tx_allocate(s.file, H5_ALLOCATE_RAW, 1 << 16, &last));
			ck_assert(last >= again + (1 << 16));
			ck_assert(fired || (again == gone && last == other));
			SUCCEEDS(h5_tx_write(s.file, last + (1 << 16) - 1, "l", 1));
			SUCCEEDS(h5_tx_commit(s.file));
		}
		scratch_close(&s);
		scratch_wrap(&s, NULL);
		scratch_open(&s);
		SUCCEEDS(h5_file_read(s.file, raw, &byte, 1));
		ck_assert_uint_eq(byte, 'r');
		SUCCEEDS(h5_file_read(s.file, metadata, &byte, 1));
		ck_assert_uint_eq(byte, 'm');
		if (!rc) {
			SUCCEEDS(h5_file_read(s.file, last + (1 << 16) - 1, &byte, 1));
			ck_assert_uint_eq(byte, 'l');
		}
		scratch_release(&s);
		fault_io_release(&fault);
	}
	/* A sync, and a write and a sync of the journal, each of which must succeed, before the commit and
	 * behind it; its record, which may fail; its cell; the cuts and a hole, which may fail. */
	ck_assert_uint_eq(n - 2, 3 + 2 + 1 + 3 + 3);
	ck_assert_uint_eq(failed, 3 + 1 + 3);
}
END_TEST

UNIT_MAIN_LOOPS("extension in a commit", {the_extension_follows_the_superblock, 2},
		{an_image_that_does_not_go, 2}, {ends_of_members, 2}, {reads_of_ends_that_fail, 2},
		{members_that_cannot_be_cut, 2})
