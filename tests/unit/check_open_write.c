/* Which files are opened for writing, by what they state of themselves, and where their new space begins. */
#include "base/error.h"
#include "base/lookup3.h"
#include "change/open.h"
#include "change/transaction.h"
#include "format/superblock.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
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
	if (base) {
		state(2, 0, base - 1);
		ck_assert_int_eq(open_file(true, false, NULL), -EUCLEAN);
	}
	scratch_release(&scratch);
}
END_TEST

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
		state(cases[i].version, cases[i].flags, size - 100);
		change_bytes(size - 1, "", 1);
		SUCCEEDS(open_file(true, false, &at));
		/* A writer that has crashed had not stated the end yet. */
		ck_assert_uint_eq(at, size - base - (marked ? 0 : 100));
		change_bytes(size - 1, "", 1);
		state(cases[i].version, 0, size);
		ck_assert_int_eq(open_file(false, true, NULL), cases[i].version < 3 ? -ENOTSUP : 0);
	}
	scratch_release(&scratch);
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

/* Sets the page size in the file-space info message. */
static void set_page(uint64_t page)
{
	enum { PAGE_SIZE = 1 + 1 + 1 + 8 }; /* version, strategy, persist, threshold */
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
	h5_uint_to(bytes + (m->address - chunk.address) + PAGE_SIZE, page, 8);
	h5_uint_to(bytes + chunk.size - 4, h5_lookup3(bytes, (size_t)chunk.size - 4, 0), 4);
	h5_header_release(&header);
	scratch_close(&scratch);
	scratch.options.writable = true;
	change_bytes(base + chunk.address, bytes, (size_t)chunk.size);
	free(bytes);
}

START_TEST(sizes_of_pages)
{
	static const struct {
		uint64_t page;
		int rc;
	} cases[] = {{511, -EUCLEAN}, {512, 0}, {UINT64_C(1) << 30, 0}, {(UINT64_C(1) << 30) + 1, -EUCLEAN}};

	begin("crash_paged.h5");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t at = 0;
		int rc;

		set_page(cases[i].page);
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

UNIT_MAIN_LOOPS("open_write", {ends_of_the_file, 2}, {marks, 2}, {other_names, 2}, {sizes_of_pages, 1},
		{not_for_swmr, 3})
