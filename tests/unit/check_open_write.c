/* Which files are opened for writing, by what they state of themselves, and where their new space begins. */
#include "base/error.h"
#include "base/lookup3.h"
#include "base/writer.h"
#include "change/open.h"
#include "change/transaction.h"
#include "crash_image.h"
#include "fault_alloc.h"
#include "format/driver_info.h"
#include "format/superblock.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERSION = 8, FLAGS = 11, END = 28, CHECKED = 44 }; /* in a superblock of version 2 or 3 */

static struct scratch scratch;
static uint8_t superblock[CHECKED + 4];
static uint64_t base, size;

static void change_bytes(uint64_t offset, const void *bytes, size_t n)
{
	int fd = open(scratch.path, O_RDWR | O_CLOEXEC);

	ck_assert_int_eq(pwrite(fd, bytes, n, (off_t)offset), (ssize_t)n);
	close(fd);
}

static void begin(const char *fixture)
{
	struct stat st;
	int fd;

	scratch_init(&scratch, fixture);
	scratch_open(&scratch);
	base = h5_file_superblock(scratch.file)->base;
	scratch_close(&scratch);
	fd = open(scratch.path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(pread(fd, superblock, sizeof superblock, (off_t)base), sizeof superblock);
	ck_assert_int_eq(fstat(fd, &st), 0);
	size = (uint64_t)st.st_size;
	close(fd);
}

/* The superblock states this. */
static void state(uint8_t version, uint8_t flags, uint64_t end)
{
	superblock[VERSION] = version;
	superblock[FLAGS] = flags;
	h5_uint_to(superblock + END, end, 8);
	h5_uint_to(superblock + CHECKED, h5_lookup3(superblock, CHECKED, 0), 4);
	change_bytes(base, superblock, sizeof superblock);
}

/* Opens the file; if that works, *at is where the next raw data go. */
static int open_file(bool force, bool swmr, uint64_t *at)
{
	int rc;

	scratch.options.force = force;
	scratch.options.swmr = swmr;
	rc = h5_open_file(scratch.path, &scratch.options, &scratch.set, NULL);
	if (rc)
		return rc;
	scratch.file = h5_file_set_root(scratch.set);
	if (at)
		SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_RAW, 1, at));
	scratch_close(&scratch);
	return 0;
}

static const char *const fixtures[] = {"header_edit_v2.h5", "header_edit_block.h5"};

/* With and without a user block. */
START_TEST(ends_of_the_file)
{
	uint64_t at;

	begin(fixtures[_i]);
	state(2, 0, size);
	SUCCEEDS(open_file(false, false, &at));
	ck_assert_uint_eq(at, size - base);
	/* What lies behind the end is no part of the file. */
	state(2, 0, size - 100);
	SUCCEEDS(open_file(false, false, &at));
	ck_assert_uint_eq(at, size - base - 100);
	change_bytes(size - 1, "", 1);
	state(2, 0, size + 1);
	ck_assert_int_eq(open_file(true, false, NULL), -EUCLEAN);
	state(2, 0, H5_UNDEF);
	ck_assert_int_eq(open_file(true, false, NULL), -EUCLEAN);
	/* The superblock lies before the end. */
	state(2, 0, base + sizeof superblock);
	SUCCEEDS(open_file(false, false, NULL));
	state(2, 0, base + sizeof superblock - 1);
	ck_assert_int_eq(open_file(true, false, NULL), -EUCLEAN);
	state(2, 0, base);
	ck_assert_int_eq(open_file(true, false, NULL), -EUCLEAN);
	if (base) {
		state(2, 0, base - 1);
		ck_assert_int_eq(open_file(true, false, NULL), -EUCLEAN);
	}
	scratch_release(&scratch);
}
END_TEST

enum { NARROW = 12 + 4 * 2 /* bytes that the checksum of a superblock with addresses of two bytes covers */ };

/* Changes the superblock of a file with such addresses: its base address, its end, its flags. */
static void change_narrow(int fd, uint16_t at, uint16_t end, uint8_t flags)
{
	uint8_t narrow[NARROW + 4];

	ck_assert_int_eq(pread(fd, narrow, sizeof narrow, at), sizeof narrow);
	narrow[FLAGS] = flags;
	h5_uint_to(narrow + 12, at, 2);
	h5_uint_to(narrow + 16, end, 2);
	h5_uint_to(narrow + NARROW, h5_lookup3(narrow, NARROW, 0), 4);
	ck_assert_int_eq(pwrite(fd, narrow, sizeof narrow, at), sizeof narrow);
}

/* Moves all of the file behind a user block. */
static void add_user_block(int fd, uint16_t block)
{
	static uint8_t bytes[1 << 16];
	ssize_t n = pread(fd, bytes, sizeof bytes - block, 0);

	ck_assert_int_gt(n, 0);
	ck_assert_int_eq(pwrite(fd, bytes, (size_t)n, block), n);
	memset(bytes, 0, block);
	ck_assert_int_eq(pwrite(fd, bytes, block, 0), block);
	change_narrow(fd, block, (uint16_t)(block + n), 0);
}

/* Addresses of two bytes. The last one means that there is none, so the file ends before it. */
START_TEST(ends_of_addresses)
{
	enum { LAST = 0xFFFE };
	const uint16_t block = _i ? 512 : 0;
	uint64_t at, refused_at;
	int fd;

	scratch_init(&scratch, "object_narrow.h5");
	fd = open(scratch.path, O_RDWR | O_CLOEXEC);
	if (block)
		add_user_block(fd, block);
	scratch_open(&scratch);
	ck_assert_uint_eq(h5_file_superblock(scratch.file)->size_of_offsets, 2);
	ck_assert_uint_eq(h5_file_superblock(scratch.file)->base, block);
	SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_RAW, 1, &at));
	ck_assert_int_eq(h5_tx_allocate(scratch.file, H5_ALLOCATE_RAW, LAST - block - at, &refused_at),
			 -ENOSPC);
	SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_RAW, LAST - block - at - 1, &at));
	SUCCEEDS(h5_tx_put(scratch.file, at, "here", 4));
	SUCCEEDS(h5_tx_commit(scratch.file));
	scratch_close(&scratch);
	scratch_open(&scratch);
	ck_assert_uint_eq(h5_file_end(scratch.file), LAST - block);
	scratch_close(&scratch);
	/* A program that has crashed has written more than it could. */
	for (unsigned more = 0; more < 2; more++) {
		ck_assert_int_eq(ftruncate(fd, LAST + more), 0);
		change_narrow(fd, block, LAST, H5_FLAG_WRITING);
		ck_assert_int_eq(open_file(true, false, NULL), more ? -ENOSPC : 0);
	}
	close(fd);
	scratch_release(&scratch);
}
END_TEST

static uint8_t flags_now(void)
{
	int fd = open(scratch.path, O_RDONLY | O_CLOEXEC);
	uint8_t flags;

	ck_assert_int_eq(pread(fd, &flags, 1, (off_t)base + FLAGS), 1);
	close(fd);
	return flags;
}

/* Where the next raw data go after changes were given up; what was there before stays. */
static uint64_t allocate_after_failure(void)
{
	uint64_t at;
	uint8_t byte;

	change_bytes(size - 1, "z", 1);
	scratch.options.force = true;
	scratch_open(&scratch);
	SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_RAW, 1, &at));
	h5_tx_abandon(scratch.file);
	SUCCEEDS(h5_file_read(scratch.file, size - base - 1, &byte, 1));
	ck_assert_uint_eq(byte, 'z');
	SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_RAW, 1, &at));
	scratch_close(&scratch);
	return at;
}

/* Marks of who writes the file mean something in version 3 alone. */
START_TEST(marks)
{
	static const struct {
		uint8_t version, flags;
		int rc;
	} cases[] = {{3, 0, 0},
		     {3, H5_FLAG_WRITING, -EBUSY},
		     {3, H5_FLAG_SWMR, -EBUSY},
		     {3, H5_FLAG_WRITING | H5_FLAG_SWMR, -EBUSY},
		     {2, H5_FLAG_WRITING | H5_FLAG_SWMR, 0}};
	uint64_t at;

	begin(fixtures[_i]);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const bool marked = cases[i].rc;

		state(cases[i].version, cases[i].flags, size - 100);
		ck_assert_int_eq(open_file(false, false, NULL), cases[i].rc);
		ck_assert_uint_eq(flags_now(), cases[i].flags);
		state(cases[i].version, cases[i].flags, size - 100);
		change_bytes(size - 1, "", 1);
		SUCCEEDS(open_file(true, false, &at));
		/* A writer that has crashed had not stated the end yet. */
		ck_assert_uint_eq(at, size - base - (marked ? 0 : 100));
		if (marked) {
			state(cases[i].version, cases[i].flags, size - 100);
			ck_assert_uint_eq(allocate_after_failure(), at);
		}
		change_bytes(size - 1, "", 1);
		state(cases[i].version, 0, size);
		ck_assert_int_eq(open_file(false, true, NULL), cases[i].version < 3 ? -ENOTSUP : 0);
	}
	scratch_release(&scratch);
}
END_TEST

/* Marks of ours stay until the end, whatever else is written into the superblock, and go then. The end that
 * it states stays the last commit's. */
START_TEST(marks_of_ours)
{
	uint64_t last = 0;
	uint8_t end[8];
	int fd;

	begin(fixtures[_i]);
	state(3, 0, size);
	scratch.options.swmr = true;
	scratch_open(&scratch);
	/* Readers may open it. */
	fd = open(scratch.path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(flock(fd, LOCK_SH | LOCK_NB), 0);
	close(fd);
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_eq(flags_now(), H5_FLAG_WRITING | H5_FLAG_SWMR);
		SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_RAW, 1000, &last));
		SUCCEEDS(h5_tx_write(scratch.file, last, "a", 1));
		SUCCEEDS(h5_tx_commit(scratch.file));
	}
	ck_assert_uint_eq(flags_now(), H5_FLAG_WRITING | H5_FLAG_SWMR);
	scratch_close(&scratch);
	ck_assert_uint_eq(flags_now(), 0);
	fd = open(scratch.path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(pread(fd, end, sizeof end, (off_t)base + END), sizeof end);
	close(fd);
	ck_assert_uint_eq(h5_uint_from(end, sizeof end), base + last + 1000);
	scratch_release(&scratch);
}
END_TEST

/* If the last commit cannot become certain, they stay, with the journal. By both the next mount knows what
 * has happened. */
START_TEST(marks_of_ours_that_stay)
{
	struct fault_io fault = {.error = -EIO};
	char left[200];
	uint64_t at;
	uint8_t byte;

	begin(fixtures[_i]);
	state(3, 0, size);
	snprintf(left, sizeof left, "%s.h5fs-journal", scratch.path);
	scratch.options.swmr = true;
	scratch_wrap(&scratch, &fault);
	scratch_open(&scratch);
	SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_RAW, 1000, &at));
	SUCCEEDS(h5_tx_write(scratch.file, at, "a", 1));
	SUCCEEDS(h5_tx_commit(scratch.file));
	fault_io_arm(&fault, 1);
	scratch_close(&scratch);
	ck_assert(fault_io_disarm(&fault));
	ck_assert_uint_eq(flags_now(), H5_FLAG_WRITING | H5_FLAG_SWMR);
	ck_assert_int_eq(access(left, F_OK), 0);
	scratch_wrap(&scratch, NULL);
	scratch_open(&scratch);
	SUCCEEDS(h5_file_read(scratch.file, at, &byte, 1));
	ck_assert_uint_eq(byte, 'a');
	scratch_close(&scratch);
	ck_assert_uint_eq(flags_now(), 0);
	ck_assert_int_ne(access(left, F_OK), 0);
	scratch_release(&scratch);
	fault_io_release(&fault);
}
END_TEST

/* The last commit is certain before its journal goes, though nothing else is to be done in the end. */
START_TEST(the_end_is_synced)
{
	struct fault_io record = {0};
	unsigned syncs = 0;
	uint64_t at;

	begin(fixtures[_i]);
	scratch_wrap(&scratch, &record);
	scratch_open(&scratch);
	SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_RAW, 8, &at));
	SUCCEEDS(h5_tx_write(scratch.file, at, "original", 8));
	SUCCEEDS(h5_tx_commit(scratch.file));
	SUCCEEDS(h5_tx_patch(scratch.file, at, "ours", 4, H5_STAGE_BLOCK));
	SUCCEEDS(h5_tx_commit(scratch.file));
	record.record = true;
	scratch_close(&scratch);
	for (size_t i = 0; i < record.count; i++)
		syncs += !record.events[i].file && record.events[i].kind == FAULT_SYNC;
	ck_assert_uint_eq(syncs, 1);
	scratch_release(&scratch);
	fault_io_release(&record);
}
END_TEST

/* By another name, from another folder, the journal would not be found. */
START_TEST(other_names)
{
	char other[200];

	begin(fixtures[_i]);
	snprintf(other, sizeof other, "%s/other", scratch_folder());
	ck_assert_int_eq(link(scratch.path, other), 0);
	ck_assert_int_eq(open_file(false, false, NULL), -EMLINK);
	SUCCEEDS(open_file(true, false, NULL));
	ck_assert_int_eq(unlink(other), 0);
	SUCCEEDS(open_file(false, false, NULL));
	scratch_release(&scratch);
}
END_TEST

/* Sets n bytes of the file-space info message. */
static void set_info(size_t at, const void *data, size_t n)
{
	struct h5_header header;
	const struct h5_message *m;
	struct h5_header_chunk chunk;
	uint8_t *bytes;

	scratch.options.writable = false;
	scratch_open(&scratch);
	SUCCEEDS(h5_header_load(scratch.file, h5_file_superblock(scratch.file)->extension, &header));
	m = h5_header_find(&header, H5_MSG_FILE_SPACE_INFO);
	ck_assert_ptr_nonnull(m);
	ck_assert_uint_eq(header.chunk_count, 1);
	chunk = *header.chunks;
	bytes = malloc((size_t)chunk.size);
	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, chunk.bytes, (size_t)chunk.size);
	ck_assert_uint_le(at + n, m->size);
	memcpy(bytes + (m->address - chunk.address) + at, data, n);
	h5_uint_to(bytes + chunk.size - 4, h5_lookup3(bytes, (size_t)chunk.size - 4, 0), 4);
	h5_header_release(&header);
	scratch_close(&scratch);
	scratch.options.writable = true;
	change_bytes(base + chunk.address, bytes, (size_t)chunk.size);
	free(bytes);
}

START_TEST(sizes_of_pages)
{
	enum { PAGE_SIZE = 1 + 1 + 1 + 8 }; /* version, strategy, persist, threshold */
	static const struct {
		uint64_t page;
		int rc;
	} cases[] = {{511, -EUCLEAN}, {512, 0}, {UINT64_C(1) << 30, 0}, {(UINT64_C(1) << 30) + 1, -EUCLEAN}};

	begin("crash_paged.h5");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t at = 0;
		uint8_t page[8];
		int rc;

		h5_uint_to(page, cases[i].page, 8);
		set_info(PAGE_SIZE, page, 8);
		rc = open_file(false, false, &at);
		ck_assert_msg(rc == cases[i].rc, "%zu: %d %s", i, rc, h5_error_last()->text);
		ck_assert_uint_eq(at % cases[i].page, 0);
		ck_assert(rc || (at >= size && at - size < cases[i].page));
	}
	scratch_release(&scratch);
}
END_TEST

/* SWMR readers know nothing of what these files have. */
START_TEST(not_for_swmr)
{
	static const char *const names[] = {"crash_persist.h5", "crash_persist_paged.h5", "crash_image.h5"};

	begin(names[_i]);
	state(3, 0, size);
	ck_assert_int_eq(open_file(false, true, NULL), -ENOTSUP);
	SUCCEEDS(open_file(false, false, NULL));
	scratch_release(&scratch);
}
END_TEST

/* ---- the split driver ---- */

enum {
	OLD_END = 40, /* in a superblock of version 0 */
	OLD_DRIVER = 48,
	OLD_SIZE = 96,
	DRIVER_HEAD = 16,  /* before the information in its block; the size of that is at offset 4 */
	MEMBER_START = 24, /* of the second member, in the information; its end is behind it */
	EXTENSION = 20,	   /* in a superblock of version 2 or 3 */
	SECTOR = 512,
};

/* Copies of both members; the path is that of the first, which has the metadata. */
static void begin_split(const char *name)
{
	static const char *const parts[] = {"r", "m"};
	char from[512], fixture[64];

	scratch_init(&scratch, "crash_multi.h5"); /* for a folder */
	for (unsigned i = 0; i < 2; i++) {
		snprintf(fixture, sizeof fixture, "members/%s-%s.h5", name, parts[i]);
		scratch_fixture(fixture, from);
		snprintf(scratch.path, sizeof scratch.path, "%s/%s-%s.h5", scratch.folder, name, parts[i]);
		scratch_copy(from, scratch.path);
	}
	base = 0;
}

static void read_bytes(uint64_t offset, void *bytes, size_t n)
{
	int fd = open(scratch.path, O_RDONLY | O_CLOEXEC);

	ck_assert_int_eq(pread(fd, bytes, n, (off_t)offset), (ssize_t)n);
	close(fd);
}

/* Opening is refused like that. */
static void refused(bool swmr, int code, const char *text)
{
	int rc = open_file(false, swmr, NULL);

	ck_assert_msg(rc == code && strstr(h5_error_last()->text, text), "%d: %s, not %s", rc,
		      h5_error_last()->text, text);
}

/* Moves the driver information block. */
static void move_block(uint64_t to, const uint8_t *block, size_t n)
{
	uint8_t address[8];

	change_bytes(to, block, n);
	h5_uint_to(address, to, 8);
	change_bytes(OLD_DRIVER, address, 8);
}

/* Without the superblock's extension, the ends of the members lie in a block of their own. */
START_TEST(blocks_of_driver_information)
{
	const uint64_t start = UINT64_C(0x9000000000000000);
	const size_t ends = h5_driver_info_ends_size(2);
	uint8_t block[256], bytes[16];
	uint64_t at, first;
	size_t n;

	begin_split("split_earliest");
	read_bytes(OLD_DRIVER, bytes, 8);
	at = h5_uint_from(bytes, 8);
	read_bytes(at, block, DRIVER_HEAD);
	n = DRIVER_HEAD + (size_t)h5_uint_from(block + 4, 4);
	ck_assert_uint_le(n, sizeof block);
	read_bytes(at, block, n);
	/* A power cut may leave half of what lies in two sectors. */
	for (unsigned more = 0; more < 2; more++) {
		move_block(2 * SECTOR - ends - DRIVER_HEAD + more, block, n);
		if (more)
			refused(false, -ENOTSUP, "across the edge of a sector");
		else
			SUCCEEDS(open_file(false, false, NULL));
	}
	/* In the last bytes of the superblock, where libhdf5 has a copy of what the root group's header says.
	 */
	move_block(OLD_SIZE - 8 - DRIVER_HEAD, block, n);
	refused(false, -EUCLEAN, "driver information: not that of these files");
	scratch_release(&scratch);
	/* A member that begins in the last half of all addresses. */
	begin_split("split_earliest");
	read_bytes(at + DRIVER_HEAD + MEMBER_START, bytes, 8);
	first = h5_uint_from(bytes, 8);
	SUCCEEDS(open_file(false, false, &at));
	ck_assert_uint_gt(at, first);
	read_bytes(OLD_DRIVER, bytes, 8);
	h5_uint_to(bytes + 8, start, 8);
	change_bytes(h5_uint_from(bytes, 8) + DRIVER_HEAD + MEMBER_START, bytes + 8, 8);
	first = at - first;
	SUCCEEDS(open_file(false, false, &at));
	ck_assert_uint_eq(at - start, first);
	scratch_release(&scratch);
}
END_TEST

/* A file whose members reach into each other is not written: a block could be in two of them. */
START_TEST(members_that_reach_into_each_other)
{
	static const char words[] = "whose members reach into each other";
	uint8_t bytes[16], members[32]; /* begin and end of both */
	uint64_t at;

	begin_split("split_earliest");
	read_bytes(OLD_DRIVER, bytes, 8);
	at = h5_uint_from(bytes, 8) + DRIVER_HEAD + MEMBER_START - 16;
	read_bytes(at, members, sizeof members);
	SUCCEEDS(open_file(false, false, NULL));
	/* The end of the first one is the begin of the second. */
	memcpy(bytes, members + 16, 8);
	change_bytes(at + 8, bytes, 8);
	refused(false, -ENOTSUP, words);
	/* The end of the second takes more than 64 bits. */
	change_bytes(at, members, sizeof members);
	memset(bytes, 0xff, 8);
	change_bytes(at + 24, bytes, 8);
	refused(false, -ENOTSUP, words);
	change_bytes(at, members, sizeof members);
	SUCCEEDS(open_file(false, false, NULL));
	scratch_release(&scratch);
}
END_TEST

/* A message of an object header. */
static void add_message(struct h5_writer *w, enum h5_message_type type, const uint8_t *body, size_t n)
{
	h5_write_u8(w, (uint8_t)type);
	h5_write_u16(w, (uint16_t)n);
	h5_write_u8(w, 0);
	h5_write_bytes(w, body, n);
}

/* The superblock gets an extension at the address, with the driver information and another message; 0:
 * without that. */
static void extend(uint64_t at, uint8_t version, const uint8_t *info, size_t n, enum h5_message_type type,
		   const uint8_t *body, size_t body_size)
{
	uint8_t header[512], address[8];
	struct h5_writer w = h5_writer_init(header, sizeof header, 8, 8);
	const size_t messages = 4 + n + (body_size ? 4 + body_size : 0);

	h5_write_bytes(&w, "OHDR", 4);
	h5_write_u8(&w, 2);
	h5_write_u8(&w, 1); /* two bytes of the size */
	h5_write_u16(&w, (uint16_t)messages);
	add_message(&w, H5_MSG_DRIVER_INFO, info, n);
	if (body_size)
		add_message(&w, type, body, body_size);
	h5_write_checksum(&w);
	ck_assert(!w.err);
	change_bytes(at, header, h5_writer_at(&w));
	read_bytes(0, superblock, sizeof superblock);
	h5_uint_to(address, at, 8);
	memcpy(superblock + EXTENSION, address, 8);
	state(version, 0, h5_uint_from(superblock + END, 8));
}

START_TEST(what_members_cannot_have)
{
	enum { AT = 2 * SECTOR, IMAGE = 3 * SECTOR, INFO = 29, WITH_MANAGERS = INFO + 8 * 12 };
	uint8_t *info, space[WITH_MANAGERS], image[22], message[17] = {0};
	struct h5_writer w = h5_writer_init(image, sizeof image, 8, 8);
	size_t n;

	begin_split("split_latest");
	scratch.options.writable = false;
	scratch_open(&scratch);
	info = scratch_message(&scratch, h5_file_superblock(scratch.file)->extension, H5_MSG_DRIVER_INFO, &n);
	scratch_close(&scratch);
	scratch.options.writable = true;
	extend(AT, 3, info, n, 0, NULL, 0);
	SUCCEEDS(open_file(false, false, NULL));
	refused(true, -ENOTSUP, "of the split or multi driver: swmr is not supported");
	extend(AT - 4, 3, info, n, 0, NULL, 0);
	refused(false, -ENOTSUP, "across the edge of a sector");
	/* Version, strategy, persistent, threshold, page size, threshold of the page end, end, managers. */
	memset(space, 0xff, sizeof space);
	memcpy(space, (const uint8_t[]){1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0}, 21);
	extend(AT, 3, info, n, H5_MSG_FILE_SPACE_INFO, space, INFO);
	refused(false, -ENOTSUP, "with file space pages: writing is not supported");
	memcpy(space, (const uint8_t[]){1, 0, 1}, 3);
	extend(AT, 3, info, n, H5_MSG_FILE_SPACE_INFO, space, WITH_MANAGERS);
	refused(false, -ENOTSUP, "with managers of its free space: writing is not supported");
	h5_write_bytes(&w, "MDCI", 4);
	h5_write_u16(&w, 0); /* version, flags */
	h5_write_length(&w, sizeof image);
	h5_write_u32(&w, 0); /* entries */
	h5_write_checksum(&w);
	ck_assert(!w.err);
	change_bytes(IMAGE, image, sizeof image);
	h5_uint_to(message + 1, IMAGE, 8);
	h5_uint_to(message + 9, sizeof image, 8);
	extend(AT, 3, info, n, H5_MSG_CACHE_IMAGE, message, sizeof message);
	refused(false, -ENOTSUP, "with a metadata cache image: writing is not supported");
	free(info);
	scratch_release(&scratch);
}
END_TEST

/* Each read fails once when members are opened for writing. */
START_TEST(members_that_cannot_be_read)
{
	struct fault_io fault = {.reads = true, .error = -EIO};
	bool fired = true;
	unsigned long n = 1;

	begin_split(_i ? "split_latest" : "split_earliest");
	scratch_wrap(&scratch, &fault);
	for (; fired; n++) {
		int rc;

		fault_io_arm(&fault, n);
		rc = open_file(false, false, NULL);
		fired = fault_io_disarm(&fault);
		ck_assert_msg(rc == (fired ? -EIO : 0), "%lu: %d", n, rc);
	}
	ck_assert_uint_gt(n, 4);
	scratch_release(&scratch);
	fault_io_release(&fault);
}
END_TEST

/* ---- old file space info ---- */

/* Version 0 of the message has no place for what a writer must state. */
START_TEST(an_old_file_space_info)
{
	enum { OLD_INFO = 1 + 1 + 8, MANAGERS = 6 * 8 };
	uint8_t body[OLD_INFO + MANAGERS] = {0, 1, 1};

	memset(body + OLD_INFO, 0xff, MANAGERS);
	begin("crash_persist.h5");
	set_info(0, body, sizeof body);
	refused(false, -ENOTSUP, "file space info of version 0");
	scratch.options.reclaims = true;
	SUCCEEDS(open_file(false, false, NULL));
	scratch_release(&scratch);
}
END_TEST

/* ---- journals ---- */

static char journal[200];

static int checked, check_result; /* objects; what is said of them */

static int check_object(struct h5_file *file, uint64_t object)
{
	ck_assert_uint_eq(object, h5_file_superblock(file)->root);
	checked++;
	return check_result ? h5_fail(check_result, object, "it is damaged") : 0;
}

/* Commits a change of the root group, whose journal a kill leaves. Returns the address of "ours" in the file.
 */
static uint64_t leave_journal(void)
{
	struct crash_image file = {0}, left = {0};
	uint64_t at;

	scratch.options.writable = true;
	scratch_open(&scratch);
	SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_RAW, 8, &at));
	SUCCEEDS(h5_tx_write(scratch.file, at, "original", 8));
	SUCCEEDS(h5_tx_commit(scratch.file));
	SUCCEEDS(h5_tx_patch(scratch.file, at, "ours", 4, H5_STAGE_BLOCK));
	SUCCEEDS(h5_tx_touch(scratch.file, h5_file_superblock(scratch.file)->root));
	SUCCEEDS(h5_tx_commit(scratch.file));
	crash_image_load(&file, scratch.path);
	crash_image_load(&left, journal);
	scratch_close(&scratch);
	crash_image_save(&file, scratch.path);
	crash_image_save(&left, journal);
	free(file.data);
	free(left.data);
	return at;
}

/* If another program has written the file since, the objects that the journal names are checked; it is set
 * aside only if they are sound. */
START_TEST(a_stale_journal)
{
	uint64_t at;

	begin("header_edit_v2.h5");
	snprintf(journal, sizeof journal, "%s.h5fs-journal", scratch.path);
	at = leave_journal();
	change_bytes(at, "else", 4);
	scratch.options.check = check_object;
	check_result = -EUCLEAN;
	checked = 0;
	ck_assert_int_eq(open_file(false, false, NULL), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text, "an object that a stale journal names: it is damaged");
	ck_assert_int_eq(access(journal, F_OK), 0);
	ck_assert_int_eq(checked, 1);
	check_result = 0;
	SUCCEEDS(open_file(false, false, NULL));
	ck_assert_int_eq(checked, 2);
	ck_assert_int_ne(access(journal, F_OK), 0);
	SUCCEEDS(open_file(false, false, NULL));
	ck_assert_int_eq(checked, 2);
	scratch_release(&scratch);
}
END_TEST

/* Opens the file for reading while each allocation fails once. The user is told what was found instead of a
 * journal; without memory for that, the file is not opened. */
static void open_without_memory(enum h5_recovery what, const char *warning)
{
	unsigned failed = 0;
	bool fired = true;

	scratch.options.writable = false;
	for (unsigned long n = 1; fired; n++) {
		struct h5_opened opened = {.journal_directory = -1};
		int rc;

		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_open_file(scratch.path, &scratch.options, &scratch.set, &opened);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert_msg(!rc || (fired && rc == -ENOMEM), "%lu: %d", n, rc);
		failed += rc != 0;
		if (rc)
			continue;
		ck_assert_int_eq(opened.recovered.what, what);
		ck_assert_ptr_nonnull(opened.warning);
		ck_assert_msg(!!strstr(opened.warning, warning), "%s", opened.warning);
		h5_opened_release(&opened);
		scratch_close(&scratch);
	}
	ck_assert_uint_gt(failed, 5);
	ck_assert_int_eq(access(journal, F_OK), 0);
}

START_TEST(warnings_without_memory)
{
	char other[200];
	FILE *diary;

	begin("header_edit_v2.h5");
	snprintf(journal, sizeof journal, "%s.h5fs-journal", scratch.path);
	diary = fopen(journal, "w");
	ck_assert_ptr_nonnull(diary);
	fputs("my diary", diary);
	fclose(diary);
	open_without_memory(H5_RECOVERY_UNFIT, "journal: this is none");
	ck_assert_int_eq(unlink(journal), 0);
	/* The file was renamed after a kill. */
	leave_journal();
	snprintf(other, sizeof other, "%s/renamed.h5", scratch.folder);
	ck_assert_int_eq(rename(scratch.path, other), 0);
	strcpy(scratch.path, other);
	open_without_memory(H5_RECOVERY_NONE, "its journal was found under another name, header_edit_v2.h5.");
	scratch_release(&scratch);
}
END_TEST

/* ---- descriptors ---- */

static unsigned open_descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* The end of a mount closes the file, its folder and the journal. */
START_TEST(nothing_stays_open)
{
	begin("header_edit_v2.h5");
	for (int writable = 0; writable < 2; writable++) {
		const unsigned before = open_descriptors();
		struct h5_opened opened;

		scratch.options.writable = writable;
		SUCCEEDS(h5_open_file(scratch.path, &scratch.options, &scratch.set, &opened));
		ck_assert_uint_gt(open_descriptors(), before);
		h5_opened_release(&opened);
		h5_opened_release(&opened);
		scratch_close(&scratch);
		ck_assert_uint_eq(open_descriptors(), before);
	}
	scratch_release(&scratch);
}
END_TEST

/* ---- failures ---- */

static blkcnt_t blocks(void)
{
	struct stat st;

	ck_assert_int_eq(stat(scratch.path, &st), 0);
	return st.st_blocks;
}

/* A file with much free space, which it keeps track of, is opened for writing while each allocation fails
 * once, or each read. If it is not opened, none of its bytes change, and none of its space is given back. */
START_TEST(opening_fails)
{
	enum { MUCH = 1 << 16 };
	static const uint8_t bytes[MUCH];
	struct crash_image before = {0};
	const blkcnt_t least = MUCH / 512;
	unsigned long failed = 0;
	uint64_t at, behind;

	begin("crash_persist.h5");
	scratch_open(&scratch);
	SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_RAW, MUCH, &at));
	SUCCEEDS(h5_tx_write(scratch.file, at, bytes, MUCH));
	SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_RAW, MUCH, &behind));
	SUCCEEDS(h5_tx_write(scratch.file, behind, bytes, MUCH));
	SUCCEEDS(h5_tx_commit(scratch.file));
	h5_tx_free(scratch.file, at, MUCH);
	SUCCEEDS(h5_tx_write(scratch.file, behind, "1", 1));
	SUCCEEDS(h5_tx_commit(scratch.file));
	scratch_close(&scratch);
	crash_image_load(&before, scratch.path);
	for (int memory = 0; memory < 2; memory++) {
		struct fault_io fault = {.reads = true, .error = -EIO};
		bool fired = true;

		scratch_wrap(&scratch, memory ? NULL : &fault);
		for (unsigned long n = 1; fired; n++) {
			struct crash_image after = {0};
			int rc;

			/* The hole that the last mount has made has room again. */
			crash_image_save(&before, scratch.path);
			ck_assert_int_gt(blocks(), 2 * least);
			if (memory)
				fault_alloc_arm(n);
			else
				fault_io_arm(&fault, n);
			fault_alloc_count(memory);
			rc = h5_open_file(scratch.path, &scratch.options, &scratch.set, NULL);
			fault_alloc_count(false);
			fired = memory ? fault_alloc_disarm() : fault_io_disarm(&fault);
			if (!rc) {
				scratch_close(&scratch);
				ck_assert_int_lt(blocks(), 2 * least);
				continue;
			}
			ck_assert(fired && rc == (memory ? -ENOMEM : -EIO));
			ck_assert_int_gt(blocks(), 2 * least);
			crash_image_load(&after, scratch.path);
			ck_assert_uint_eq(after.size, before.size);
			ck_assert_mem_eq(after.data, before.data, before.size);
			free(after.data);
			failed++;
		}
		fault_io_release(&fault);
	}
	ck_assert_uint_gt(failed, 20);
	free(before.data);
	scratch_release(&scratch);
}
END_TEST

UNIT_MAIN_LOOPS("open_write", {opening_fails, 1}, {nothing_stays_open, 1}, {ends_of_the_file, 2},
		{ends_of_addresses, 2}, {marks, 2}, {marks_of_ours, 2}, {marks_of_ours_that_stay, 2},
		{the_end_is_synced, 2}, {other_names, 2}, {sizes_of_pages, 1}, {not_for_swmr, 3},
		{blocks_of_driver_information, 1}, {members_that_reach_into_each_other, 1},
		{what_members_cannot_have, 1}, {members_that_cannot_be_read, 2}, {an_old_file_space_info, 1},
		{a_stale_journal, 1}, {warnings_without_memory, 1})
