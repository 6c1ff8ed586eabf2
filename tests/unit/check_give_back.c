/* Space is given back to the file system only while nothing is pending, and once the last commit is certain.
 */
#include "base/extents.h"
#include "base/writer.h"
#include "change/transaction.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGE = 1 << 16, END = 28 /* in a superblock of version 2 */ };

static struct scratch scratch;
static struct fault_io io;
static uint64_t kept, large; /* raw data; what was given up behind them */

/* Opens a file whose last commit has given up what lies at its end. */
static void begin(void)
{
	static const uint8_t bytes[LARGE];

	io = (struct fault_io){.error = -EIO};
	scratch_init(&scratch, "header_edit_v2.h5");
	scratch_wrap(&scratch, &io);
	scratch_open(&scratch);
	SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_RAW, 100, &kept));
	SUCCEEDS(h5_tx_write(scratch.file, kept, bytes, 100));
	SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_RAW, LARGE, &large));
	ck_assert_uint_eq(large, kept + 100);
	SUCCEEDS(h5_tx_write(scratch.file, large, bytes, LARGE));
	SUCCEEDS(h5_tx_commit(scratch.file));
	h5_tx_free(scratch.file, large, LARGE);
	SUCCEEDS(h5_tx_patch(scratch.file, kept, "k", 1, H5_STAGE_BLOCK));
	SUCCEEDS(h5_tx_commit(scratch.file));
}

static void end(void)
{
	scratch_release(&scratch);
	fault_io_release(&io);
}

/* The end that the superblock states; the file is as long. */
static uint64_t stated_end(void)
{
	int fd = open(scratch.path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	uint8_t bytes[8];

	ck_assert_int_eq(pread(fd, bytes, sizeof bytes, END), sizeof bytes);
	ck_assert_int_eq(fstat(fd, &st), 0);
	close(fd);
	ck_assert_uint_eq((uint64_t)st.st_size, h5_uint_from(bytes, sizeof bytes));
	return (uint64_t)st.st_size;
}

/* ---- what is pending ---- */

static void patch(void)
{
	SUCCEEDS(h5_tx_patch(scratch.file, kept, "x", 1, H5_STAGE_BLOCK));
}

/* The byte that is there. */
static void write_raw(void)
{
	SUCCEEDS(h5_tx_write(scratch.file, kept, "k", 1));
}

static void allocate(void)
{
	uint64_t at;

	SUCCEEDS(h5_tx_allocate(scratch.file, H5_ALLOCATE_RAW, 16, &at));
}

static void (*const pendings[])(void) = {patch, write_raw, allocate};
enum { PENDINGS = sizeof pendings / sizeof *pendings };

static int settle(struct h5_tx_participant *participant)
{
	(void)participant;
	return 0;
}

static void drop(struct h5_tx_participant *participant)
{
	(void)participant;
}

static const struct h5_tx_participant_ops ops = {settle, drop};

/* Nothing is written, cut or synced. The next commit has what is pending; after that space is given back. */
START_TEST(meanwhile)
{
	struct h5_tx_participant participant = {.ops = &ops};
	uint8_t byte;

	begin();
	h5_tx_join(scratch.file, &participant);
	if (_i < PENDINGS)
		pendings[_i]();
	else
		h5_tx_report(scratch.file, &participant, true, 0);
	io.record = true;
	SUCCEEDS(h5_tx_give_back(scratch.file, 1));
	ck_assert_uint_eq(io.count, 0);
	ck_assert_uint_eq(stated_end(), large + LARGE);
	if (_i < PENDINGS)
		SUCCEEDS(h5_tx_commit(scratch.file));
	h5_tx_report(scratch.file, &participant, false, 0);
	SUCCEEDS(h5_tx_give_back(scratch.file, LARGE + LARGE));
	ck_assert_uint_ge(stated_end(), large + LARGE);
	SUCCEEDS(h5_tx_give_back(scratch.file, 1));
	/* The space that an allocation has taken lies behind the unused space. */
	if (pendings[_i % PENDINGS] != allocate) {
		const size_t count = io.count;

		ck_assert_uint_eq(stated_end(), large);
		/* Then there is nothing to do. */
		SUCCEEDS(h5_tx_give_back(scratch.file, 0));
		ck_assert_uint_eq(io.count, count);
	}
	SUCCEEDS(h5_file_read(scratch.file, kept, &byte, 1));
	ck_assert_uint_eq(byte, _i ? 'k' : 'x');
	h5_tx_leave(scratch.file, &participant);
	end();
}
END_TEST

/* At the end of a mount, too, what is pending is lost, and the file stays as long as the last commit has it.
 * The next mount gives the space back. */
START_TEST(in_the_end)
{
	uint8_t byte;

	begin();
	if (_i < PENDINGS)
		pendings[_i]();
	scratch_close(&scratch);
	if (_i < PENDINGS) {
		ck_assert_uint_eq(stated_end(), large + LARGE);
		scratch_open(&scratch);
		SUCCEEDS(h5_file_read(scratch.file, kept, &byte, 1));
		ck_assert_uint_eq(byte, 'k');
	} else {
		ck_assert_uint_eq(stated_end(), large);
	}
	end();
}
END_TEST

/* The last commit may need its journal, and with that all space that it knows. */
START_TEST(after_a_sync_that_fails)
{
	uint8_t byte;

	begin();
	fault_io_arm(&io, 1);
	scratch_close(&scratch);
	ck_assert(fault_io_disarm(&io));
	ck_assert_uint_eq(stated_end(), large + LARGE);
	scratch_wrap(&scratch, NULL);
	scratch_open(&scratch);
	SUCCEEDS(h5_file_read(scratch.file, kept, &byte, 1));
	ck_assert_uint_eq(byte, 'k');
	end();
}
END_TEST

/* Space that nobody knew to be unused is given back. One call fails (a call that changes the file, or a
 * read), and so do all calls after it. If h5_tx_reclaim() returns 0, the file is as long as its superblock
 * states. The file can always be opened again. */
START_TEST(unused_space)
{
	struct h5_extents unused = {0};
	unsigned failed = 0;
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		int rc;

		begin();
		SUCCEEDS(h5_extents_add(&unused, kept, 100));
		io.lasting = true;
		io.reads = _i;
		fault_io_arm(&io, n);
		rc = h5_tx_reclaim(scratch.file, &unused);
		fired = fault_io_disarm(&io);
		ck_assert(!rc || (fired && rc == -EIO));
		if (!rc) {
			ck_assert(h5_tx_is_writable(scratch.file));
			ck_assert_uint_eq(stated_end(), kept);
		}
		failed += rc != 0;
		h5_extents_release(&unused);
		scratch_close(&scratch);
		scratch_open(&scratch);
		end();
	}
	ck_assert_uint_ge(failed, _i ? 1 : 4);
}
END_TEST

UNIT_MAIN_LOOPS("give back", {meanwhile, PENDINGS + 1}, {in_the_end, PENDINGS + 1},
		{after_a_sync_that_fails, 1}, {unused_space, 2})
