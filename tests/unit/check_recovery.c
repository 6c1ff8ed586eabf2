#include "base/writer.h"
#include "fault_alloc.h"
#include "fault_io.h"
#include "journal_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what is found ---- */

static size_t load_journal(uint8_t *data, size_t n)
{
	uint8_t record[8];
	size_t got = scene_get(SCENE_JOURNAL, data, n);

	memcpy(record, data + 512 + 16, 8);
	ck_assert_uint_gt(got, 512);
	return 512 + (size_t)record[0] + 256u * record[1];
}

START_TEST(torn)
{
	static uint8_t old[1 << 16], new[1 << 16], mixed[1 << 16];
	struct h5_recovered recovered;
	size_t used;

	scene_usual_record();
	scene_write_journal(false);
	scene_get(SCENE_JOURNAL, old, sizeof old);
	scene.record.extent_count = 1;
	ck_assert_int_eq(h5_journal_write(scene.journal, &scene.record), 0);
	used = load_journal(new, sizeof new);
	scene_crash();
	ck_assert_uint_gt(used, 2048);
	for (size_t at = 0; at < used; at += 512) {
		/* The file ends there; the old record or nothing stands behind; the sector alone is missing.
		 */
		for (int kind = 0; kind < 4; kind++) {
			memcpy(mixed, new, sizeof mixed);
			if (kind == 1 && at >= 512)
				memcpy(mixed + at, old + at, sizeof mixed - at);
			else if (kind == 2)
				memset(mixed + at, 0, sizeof mixed - at);
			else if (kind == 3)
				memset(mixed + at, 0, 512);
			scene_put(SCENE_JOURNAL, mixed, kind ? sizeof mixed : at);
			ck_assert_int_eq(scene_recover(false, &recovered), 0);
			/* All old, which is whole and can be replayed. */
			if (kind == 1 && at <= 512)
				ck_assert_int_eq(recovered.what, H5_RECOVERY_REPLAYED);
			else
				ck_assert_int_eq(recovered.what, H5_RECOVERY_NONE);
		}
	}
	scene_put(SCENE_JOURNAL, new, used / 512 * 512);
	scene_expect(H5_RECOVERY_NONE);
}
END_TEST

START_TEST(every_byte_flipped)
{
	static uint8_t data[1 << 16];
	struct h5_recovered recovered;
	size_t used;

	scene_usual_record();
	scene_write_journal(false);
	used = load_journal(data, sizeof data);
	scene_crash();
	for (size_t at = 0; at < used; at++) {
		int rc;

		if (at == 40)
			at = 512; /* the zeros */
		data[at] ^= 0x10;
		scene_put(SCENE_JOURNAL, data, sizeof data);
		rc = scene_recover(false, &recovered);
		data[at] ^= 0x10;
		ck_assert_msg(rc == 0 || at < 12, "byte %zu: %d", at, rc);
		ck_assert_msg(recovered.what == H5_RECOVERY_NONE, "byte %zu: %d", at, recovered.what);
	}
	scene_put(SCENE_JOURNAL, data, sizeof data);
	scene_expect(H5_RECOVERY_REPLAYED);
	scene_check_file(scene.after);
}
END_TEST

START_TEST(from_a_later_version_or_no_journal)
{
	struct h5_journal_header header = {.swmr = false};
	struct h5_recovered recovered;
	uint8_t data[512];

	h5_journal_header_encode(&header, data);
	data[8] = 3;
	scene_put(SCENE_JOURNAL, data, sizeof data);
	ck_assert_int_eq(scene_recover(true, &recovered), -ENOTSUP);
	ck_assert(scene_exists(SCENE_JOURNAL));
	scene_put(SCENE_JOURNAL, "my diary", 8);
	ck_assert_int_eq(scene_recover(true, &recovered), -EUCLEAN);
	ck_assert(scene_exists(SCENE_JOURNAL));
	scene_put(SCENE_JOURNAL, "", 0);
	scene_expect(H5_RECOVERY_NONE);
	memset(data, 0, sizeof data);
	scene_put(SCENE_JOURNAL, data, sizeof data);
	scene_expect(H5_RECOVERY_NONE);
	/* The file was made, and that was all. */
	h5_journal_header_encode(&header, data);
	scene_put(SCENE_JOURNAL, data, 100);
	scene_expect(H5_RECOVERY_NONE);
}
END_TEST

/* All states in which a power cut may leave the patches: each sector's part of each old or new. */
START_TEST(replayed_from_every_state)
{
	unsigned parts = 0, last;
	struct {
		uint64_t offset;
		size_t size;
	} part[32];

	scene_usual_record();
	for (unsigned i = 0; i < scene.record.patch_count; i++)
		for (uint64_t at = scene.patches[i].offset, end = at + scene.patches[i].size;
		     !scene.patches[i].guard && at < end;) {
			uint64_t next = at / 512 * 512 + 512 < end ? at / 512 * 512 + 512 : end;

			part[parts].offset = at;
			part[parts++].size = next - at;
			at = next;
		}
	ck_assert_uint_eq(parts, 9);
	last = (1u << parts) - 1;
	for (unsigned state = 0; state <= last; state++) {
		static uint8_t data[SCENE_SIZE];

		memcpy(data, scene.before, SCENE_SIZE);
		for (unsigned i = 0; i < parts; i++)
			if (state >> i & 1)
				memcpy(data + part[i].offset, scene.after + part[i].offset, part[i].size);
		scene_put("a.h5", data, SCENE_SIZE);
		scene_write_journal(false);
		scene_crash();
		scene_expect(state == last ? H5_RECOVERY_NONE : H5_RECOVERY_REPLAYED);
		scene_check_file(scene.after);
	}
}
END_TEST

/* How much is done, in bytes of the extents. */
struct told {
	uint64_t done, total;
	unsigned calls;
};

static void tell(void *arg, uint64_t done, uint64_t total)
{
	struct told *told = arg;

	ck_assert(told->calls || !done);
	ck_assert_uint_ge(done, told->done);
	*told = (struct told){done, total, told->calls + 1};
}

START_TEST(progress)
{
	struct h5_recovered recovered;
	struct told told = {0};

	scene_usual_record();
	scene_write_journal(false);
	scene_crash();
	scene.place.progress = tell;
	scene.place.progress_arg = &told;
	ck_assert_int_eq(scene_recover(true, &recovered), 0);
	ck_assert_uint_ge(told.calls, 3);
	ck_assert_uint_eq(told.done, 200001);
	ck_assert_uint_eq(told.total, 200001);
	/* Nothing is left to be done. */
	told = (struct told){0};
	ck_assert_int_eq(scene_recover(true, &recovered), 0);
	ck_assert_uint_eq(told.calls, 0);
}
END_TEST

START_TEST(overlay_reads)
{
	static uint8_t data[SCENE_SIZE + 10];
	struct h5_recovered recovered;
	struct h5_io *overlay;
	struct h5_io_stat st;
	size_t got;

	scene_usual_record();
	scene_write_journal(false);
	scene_crash();
	ck_assert_int_eq(h5_journal_recover(&scene.place, scene_open(false), false, &overlay, &recovered), 0);
	ck_assert_ptr_nonnull(overlay);
	ck_assert_int_eq(h5_io_stat(overlay, &st), 0);
	ck_assert_uint_eq(st.size, SCENE_SIZE);
	ck_assert_ptr_null(overlay->ops->write);
	for (size_t n = 1; n <= 2000; n = n * 3 + 1)
		for (uint64_t at = 0; at + n < 12000; at += n < 10 ? n : n / 7) {
			ck_assert_int_eq(h5_io_read(overlay, at, data, n), 0);
			ck_assert(!memcmp(data, scene.after + at, n));
		}
	ck_assert_int_eq(h5_io_read_some(overlay, 0, data, sizeof data, &got), 0);
	ck_assert_uint_eq(got, SCENE_SIZE);
	ck_assert(!memcmp(data, scene.after, SCENE_SIZE));
	scene_check_file(scene.before);
	/* Nobody replays it away from under its readers; others may read along. */
	ck_assert_int_eq(scene_recover(false, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_REPLAYED);
	h5_io_unlock(overlay);
	ck_assert_int_eq(scene_recover(true, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_BUSY);
	h5_io_close(overlay);
	scene_expect(H5_RECOVERY_REPLAYED);
}
END_TEST

/* ---- another program has written since ---- */

static void foreign(uint64_t offset, enum h5_recovery what)
{
	static uint8_t data[SCENE_SIZE];

	memcpy(data, scene.before, SCENE_SIZE);
	memcpy(data + 40, scene.after + 40, 8); /* one patch was made */
	data[offset] ^= 0x55;
	scene_put("a.h5", data, SCENE_SIZE);
	scene_write_journal(false);
	scene_crash();
	scene_expect(what);
	if (what == H5_RECOVERY_STALE) {
		struct h5_recovered recovered;

		ck_assert_int_eq(scene_recover(true, &recovered), 0);
		ck_assert_uint_eq(recovered.object_count, 2);
		ck_assert_mem_eq(recovered.objects, scene.objects, sizeof scene.objects);
		ck_assert_int_eq(h5_journal_set_aside(&scene.place, &recovered), 0);
		h5_recovered_release(&recovered);
		h5_recovered_release(&recovered);
		ck_assert(!scene_exists(SCENE_JOURNAL));
		scene_check_file(data);
	}
}

START_TEST(foreign_writes)
{
	scene_usual_record();
	/* In a patch, at its ends and in the middle sector. */
	foreign(8000, H5_RECOVERY_STALE);
	foreign(8800, H5_RECOVERY_STALE);
	foreign(9499, H5_RECOVERY_STALE);
	foreign(45, H5_RECOVERY_STALE);
	foreign(4239, H5_RECOVERY_STALE);
	/* In a guard, around the patches in it and in another sector. */
	foreign(4100, H5_RECOVERY_STALE);
	foreign(4210, H5_RECOVERY_STALE);
	foreign(4799, H5_RECOVERY_STALE);
	/* In what the commit has superseded or made. */
	foreign(12288, H5_RECOVERY_STALE);
	foreign(20000, H5_RECOVERY_STALE);
	foreign(20000 + 65536, H5_RECOVERY_STALE);
	foreign(219999, H5_RECOVERY_STALE);
	/* Beside all of these. */
	foreign(48, H5_RECOVERY_REPLAYED);
	foreign(4099, H5_RECOVERY_REPLAYED);
	foreign(4800, H5_RECOVERY_REPLAYED);
	foreign(220000, H5_RECOVERY_REPLAYED);
}
END_TEST

START_TEST(cut_file)
{
	struct h5_recovered recovered;

	scene_usual_record();
	scene_write_journal(false);
	scene_crash();
	scene_put("a.h5", scene.before, scene.record.size - 1);
	for (int write = 0; write < 2; write++) {
		ck_assert_int_eq(scene_recover(write, &recovered), 0);
		ck_assert_int_eq(recovered.what, H5_RECOVERY_STALE);
		h5_recovered_release(&recovered);
	}
	scene_put("a.h5", scene.before, 0);
	ck_assert_int_eq(scene_recover(true, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_STALE);
	h5_recovered_release(&recovered);
	scene_put("a.h5", scene.before, scene.record.size);
	ck_assert_int_eq(scene_recover(true, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_REPLAYED);
}
END_TEST

/* ---- hostile ---- */

/* A journal of the record as it is, whatever sense that makes; `at`: of four bytes of it that become
 * `value`. */
static void forge(size_t at, uint32_t value)
{
	static uint8_t data[1 << 18];
	struct h5_journal_header header = {.swmr = true};
	size_t size = H5_JOURNAL_RECORD_MIN + 24 * scene.record.extent_count + 8 * scene.record.object_count;

	for (unsigned i = 0; i < scene.record.patch_count; i++)
		size += 16 + scene.patches[i].size * (scene.patches[i].guard ? 1 : 2);
	h5_journal_header_encode(&header, data);
	memcpy(scene.record.id, header.id, 16);
	ck_assert_int_eq(h5_journal_record_encode(&scene.record, data + 512, size), 0);
	if (at)
		h5_uint_to(data + 512 + at, value, 4);
	h5_uint_to(data + 512 + 8, h5_journal_hash(data + 512 + 16, size - 16), 8);
	scene_put(SCENE_JOURNAL, data, 512 + size);
}

START_TEST(forged_records)
{
	struct h5_recovered recovered;

	scene_usual_record();
	forge(0, 0);
	ck_assert_int_eq(scene_recover(false, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_REPLAYED);
	/* Counts of patches, extents, objects. */
	for (size_t at = 56; at < 68; at += 4)
		for (int i = 0; i < 4; i++) {
			forge(at, (const uint32_t[]){1, 7, 0x20000000, 0xffffffff}[i]);
			scene_expect(H5_RECOVERY_STALE);
		}
	/* A length that isn't: neither in the file nor in the address space. */
	forge(16, 0x7fffffff);
	ck_assert_int_eq(scene_recover(false, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_NONE);
	forge(20, 0x7fffffff);
	ck_assert_int_eq(scene_recover(false, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_NONE);
	forge(16, 3);
	ck_assert_int_eq(scene_recover(false, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_NONE);
	/* Size of the file. */
	forge(48, 0x7fffffff);
	scene_expect(H5_RECOVERY_STALE);
	forge(52, 0xffffffff);
	scene_expect(H5_RECOVERY_STALE);
	/* An extent far away, and of many bytes. */
	forge(76, 0xffffffff);
	scene_expect(H5_RECOVERY_STALE);
	forge(84, 0xffffffff);
	scene_expect(H5_RECOVERY_STALE);
	/* The first patch: offset, size. */
	forge(72 + 48 + 16 + 4, 0xffffffff);
	scene_expect(H5_RECOVERY_STALE);
	forge(72 + 48 + 16 + 8, 0xffffffff);
	scene_expect(H5_RECOVERY_STALE);
	/* Patches over each other. */
	scene.patches[1].offset = 8100;
	forge(0, 0);
	scene_expect(H5_RECOVERY_STALE);
	ck_assert_int_eq(scene_recover(true, &recovered), 0);
	ck_assert(!recovered.swmr);
	h5_recovered_release(&recovered);
}
END_TEST

/* The hash of a record that makes no sense tells whether it was written completely, however long it is. */
START_TEST(long_forged_records)
{
	static uint8_t data[1 << 18];
	struct h5_recovered recovered;
	size_t n;

	scene_add_patch(100000, 90000);
	forge(0, 0);
	ck_assert_int_eq(scene_recover(false, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_REPLAYED);
	forge(56, 0xffffffff);
	scene_expect(H5_RECOVERY_STALE);
	n = scene_get(SCENE_JOURNAL, data, sizeof data);
	ck_assert_uint_gt(n, H5_JOURNAL_SECTOR + 2 * H5_JOURNAL_PIECE);
	/* A byte of each piece. */
	for (unsigned i = 0; i < 3; i++) {
		const size_t at = n - 1 - i * (size_t)H5_JOURNAL_PIECE;

		data[at] ^= 1;
		scene_put(SCENE_JOURNAL, data, n);
		ck_assert_int_eq(scene_recover(false, &recovered), 0);
		ck_assert_int_eq(recovered.what, H5_RECOVERY_NONE);
		data[at] ^= 1;
	}
}
END_TEST

START_TEST(somebody_elses)
{
	struct h5_recovered recovered;

	scene_usual_record();
	scene_write_journal(false);
	scene_crash();
	ck_assert_int_eq(linkat(scene.dirfd, SCENE_JOURNAL, scene.dirfd, "other", 0), 0);
	for (int write = 0; write < 2; write++)
		ck_assert_int_eq(scene_recover(write, &recovered), -EPERM);
	unlinkat(scene.dirfd, SCENE_JOURNAL, 0);
	ck_assert_int_eq(symlinkat("other", scene.dirfd, SCENE_JOURNAL), 0);
	for (int write = 0; write < 2; write++)
		ck_assert_int_eq(scene_recover(write, &recovered), -ELOOP);
	unlinkat(scene.dirfd, SCENE_JOURNAL, 0);
	ck_assert_int_eq(mkfifoat(scene.dirfd, SCENE_JOURNAL, 0600), 0);
	for (int write = 0; write < 2; write++)
		ck_assert_int_eq(scene_recover(write, &recovered), -EPERM);
	unlinkat(scene.dirfd, SCENE_JOURNAL, 0);
	ck_assert_int_eq(mkdirat(scene.dirfd, SCENE_JOURNAL, 0700), 0);
	ck_assert_int_eq(scene_recover(false, &recovered), -EPERM);
	ck_assert_int_eq(scene_recover(true, &recovered), -EISDIR);
	unlinkat(scene.dirfd, SCENE_JOURNAL, AT_REMOVEDIR);
	ck_assert_int_eq(renameat(scene.dirfd, "other", scene.dirfd, SCENE_JOURNAL), 0);
	scene_check_file(scene.before);
	if (geteuid() == 0) {
		ck_assert_int_eq(fchownat(scene.dirfd, SCENE_JOURNAL, 12345, 12345, 0), 0);
		for (int write = 0; write < 2; write++)
			ck_assert_int_eq(scene_recover(write, &recovered), -EPERM);
		scene.place.owner = 12345;
	} else {
		puts("only root can give files away: a journal of somebody else was not tried");
	}
	scene_expect(H5_RECOVERY_REPLAYED);
}
END_TEST

START_TEST(held)
{
	scene_usual_record();
	scene_write_journal(false);
	scene_expect(H5_RECOVERY_BUSY);
	scene_check_file(scene.before);
	scene_crash();
	scene_expect(H5_RECOVERY_REPLAYED);
}
END_TEST

START_TEST(failing_replay)
{
	unsigned long n;
	int rc = -EIO;

	scene_usual_record();
	for (n = 1; rc; n++) {
		struct fault_io fault = {.fail = n, .error = -EIO};
		struct h5_io *io, *overlay;
		struct h5_recovered recovered;

		scene_put("a.h5", scene.before, SCENE_SIZE);
		scene_write_journal(false);
		scene_crash();
		scene.place.wrap = fault_io_wrap;
		scene.place.wrap_arg = &fault;
		io = fault_io_wrap(&fault, scene_open(true));
		rc = h5_journal_recover(&scene.place, io, true, &overlay, &recovered);
		h5_io_close(io);
		scene.place.wrap = NULL;
		if (rc) {
			/* Once more, from wherever it stopped. */
			ck_assert_int_eq(rc, -EIO);
			ck_assert(scene_exists(SCENE_JOURNAL));
			ck_assert_int_eq(scene_recover(true, &recovered), 0);
		} else {
			ck_assert_int_eq(recovered.what, H5_RECOVERY_REPLAYED);
		}
		scene_check_file(scene.after);
		ck_assert(!scene_exists(SCENE_JOURNAL));
	}
	/* 5 patches, a sync, the zeros, a sync */
	ck_assert_uint_eq(n, 10);
}
END_TEST

/* The journal goes only when what it would do is on the medium. */
START_TEST(order_of_recovery)
{
	struct fault_io fault = {.record = true};
	struct h5_io *io, *overlay;
	struct h5_recovered recovered;

	scene_usual_record();
	scene_write_journal(false);
	scene_crash();
	scene_put("a.h5", scene.after, SCENE_SIZE);
	io = fault_io_wrap(&fault, scene_open(true));
	ck_assert_int_eq(h5_journal_recover(&scene.place, io, true, &overlay, &recovered), 0);
	h5_io_close(io);
	ck_assert(!scene_exists(SCENE_JOURNAL));
	ck_assert_uint_eq(fault.count, 1);
	ck_assert_int_eq(fault.events[0].kind, FAULT_SYNC);
	ck_assert_uint_eq(fault.events[0].file, 0);
	fault_io_release(&fault);

	scene_put("a.h5", scene.before, SCENE_SIZE);
	scene_write_journal(false);
	scene_crash();
	scene.place.wrap = fault_io_wrap;
	scene.place.wrap_arg = &fault;
	fault.files = 0;
	io = fault_io_wrap(&fault, scene_open(true));
	ck_assert_int_eq(h5_journal_recover(&scene.place, io, true, &overlay, &recovered), 0);
	h5_io_close(io);
	ck_assert_uint_eq(fault.count, 8);
	for (unsigned i = 0; i < 5; i++) {
		ck_assert_int_eq(fault.events[i].kind, FAULT_WRITE);
		ck_assert_uint_eq(fault.events[i].offset, scene.patches[i].offset);
	}
	for (unsigned i = 5; i < 8; i++) {
		ck_assert_int_eq(fault.events[i].kind, i == 6 ? FAULT_WRITE : FAULT_SYNC);
		ck_assert_uint_eq(fault.events[i].file, i > 5);
	}
	fault_io_release(&fault);
}
END_TEST

/* Each allocation fails once: the file and its journal stay for the next attempt, or all is replayed. */
START_TEST(memory_is_short)
{
	static uint8_t data[1 << 16];
	struct h5_recovered recovered;
	unsigned failed = 0;
	bool fired = true;
	size_t used;

	scene_usual_record();
	scene_write_journal(false);
	used = load_journal(data, sizeof data);
	scene_crash();
	for (unsigned long n = 1; fired; n++) {
		struct h5_io *io, *overlay;
		int rc;

		scene_put("a.h5", scene.before, SCENE_SIZE);
		scene_put(SCENE_JOURNAL, data, used);
		io = scene_open(true);
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_journal_recover(&scene.place, io, true, &overlay, &recovered);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		h5_io_close(overlay ? overlay : io);
		ck_assert_msg(rc ? fired && rc == -ENOMEM : recovered.what == H5_RECOVERY_REPLAYED,
			      "%lu: %d, %d", n, rc, (int)recovered.what);
		failed += rc != 0;
		if (rc) {
			ck_assert(scene_exists(SCENE_JOURNAL));
			ck_assert_int_eq(scene_recover(true, &recovered), 0);
			ck_assert_int_eq(recovered.what, H5_RECOVERY_REPLAYED);
		}
		scene_check_file(scene.after);
	}
	ck_assert_uint_gt(failed, 2);
}
END_TEST

/* Each allocation, or each read of the file and its journal, fails once, whatever the journal is: then
 * nothing has changed, and the next attempt comes to what it is. */
static void fail_one_by_one(int kind, bool reads, bool write)
{
	static const enum h5_recovery what[] = {H5_RECOVERY_REPLAYED, H5_RECOVERY_STALE, H5_RECOVERY_STALE};
	static uint8_t file[SCENE_SIZE], now[SCENE_SIZE], journal[1 << 16];
	struct h5_recovered recovered;
	unsigned failed = 0;
	bool fired = true;
	size_t used;

	scene_usual_record();
	memcpy(file, scene.before, SCENE_SIZE);
	if (kind == 2) {
		forge(56, 0x20000000); /* more patches than there can be */
	} else {
		file[8800] ^= kind ? 0x55 : 0;
		scene_write_journal(false);
		scene_crash();
	}
	used = scene_get(SCENE_JOURNAL, journal, sizeof journal);
	for (unsigned long n = 1; fired; n++) {
		struct fault_io fault = {.reads = true, .fail = reads ? n : 0, .error = -EIO};
		struct h5_io *io, *overlay;
		int rc;

		scene_put("a.h5", file, SCENE_SIZE);
		scene_put(SCENE_JOURNAL, journal, used);
		scene.place.wrap = reads ? fault_io_wrap : NULL;
		scene.place.wrap_arg = &fault;
		io = scene_open(write);
		if (reads)
			io = fault_io_wrap(&fault, io);
		fault_alloc_arm(reads ? 0 : n);
		fault_alloc_count(true);
		rc = h5_journal_recover(&scene.place, io, write, &overlay, &recovered);
		fault_alloc_count(false);
		fired = reads ? fault.calls >= n : fault_alloc_disarm();
		scene.place.wrap = NULL;
		h5_io_close(overlay ? overlay : io);
		ck_assert_msg(rc ? fired && rc == (reads ? -EIO : -ENOMEM) : recovered.what == what[kind],
			      "%d, %lu: %d, %d", kind, n, rc, (int)recovered.what);
		ck_assert(!reads || !rc == !fired);
		failed += rc != 0;
		if (rc) {
			ck_assert_ptr_null(recovered.objects);
			ck_assert(scene_exists(SCENE_JOURNAL));
			ck_assert_uint_eq(scene_get("a.h5", now, sizeof now), SCENE_SIZE);
			ck_assert_mem_eq(now, file, SCENE_SIZE);
		}
		h5_recovered_release(&recovered);
	}
	ck_assert_uint_ge(failed, 2);
}

START_TEST(looking_fails)
{
	for (int i = 0; i < 3 * 2 * 2; i++) {
		fail_one_by_one(i / 4, i % 2, i / 2 % 2);
		scene_teardown();
		scene_setup();
	}
}
END_TEST

/* A commit without its journal would be one that a crash can cut in half. */
START_TEST(memory_is_short_for_the_journal)
{
	unsigned failed = 0;
	bool fired = true;

	scene_usual_record();
	scene_write_journal(false);
	for (unsigned long n = 1; fired; n++) {
		int rc;

		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_journal_write(scene.journal, &scene.record);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert_int_eq(rc, fired ? -ENOMEM : 0);
		failed += fired;
	}
	ck_assert_uint_gt(failed, 0);
	scene_crash();
	scene_expect(H5_RECOVERY_REPLAYED);
	scene_check_file(scene.after);
}
END_TEST

SCENE_MAIN("recovery", torn, every_byte_flipped, from_a_later_version_or_no_journal,
	   replayed_from_every_state, progress, overlay_reads, foreign_writes, cut_file, forged_records,
	   long_forged_records, somebody_elses, held, failing_replay, order_of_recovery, memory_is_short,
	   looking_fails, memory_is_short_for_the_journal)
