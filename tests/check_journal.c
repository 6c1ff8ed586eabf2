#include "base/error.h"
#include "base/lookup3.h"
#include "base/writer.h"
#include "fault_io.h"
#include "store/journal.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "a.h5.h5fs-journal"

enum { SIZE = 300000 }; /* bytes of the file */

/* A commit to a file: what it was before, what it is afterwards, and the journal between these. */
struct scene {
	char dir[32];
	int dirfd;
	struct h5_journal_place place;
	uint8_t before[SIZE], after[SIZE];
	struct h5_journal_patch patches[8];
	struct h5_journal_extent extents[8];
	uint64_t objects[2];
	struct h5_journal_record record;
	struct h5_journal *journal; /* NULL: closed */
};

static struct scene s;

static void put(const char *name, const void *data, size_t n)
{
	int fd = openat(s.dirfd, name, O_CREAT | O_TRUNC | O_WRONLY, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, data, n), (ssize_t)n);
	close(fd);
}

static size_t get(const char *name, uint8_t *data, size_t n)
{
	int fd = openat(s.dirfd, name, O_RDONLY);
	ssize_t got;

	ck_assert_int_ge(fd, 0);
	got = read(fd, data, n);
	ck_assert_int_ge(got, 0);
	close(fd);
	return (size_t)got;
}

static bool exists(const char *name)
{
	return !faccessat(s.dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

static struct h5_io *open_file(bool writable)
{
	struct h5_io *io;
	int fd = openat(s.dirfd, "a.h5", writable ? O_RDWR : O_RDONLY);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(h5_io_open_fd(fd, H5_LOCK_ALWAYS, writable, &io), 0);
	return io;
}

static void add_patch(uint64_t offset, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++)
		s.after[offset + i] = (uint8_t)~s.before[offset + i];
	s.patches[s.record.patch_count++] = (struct h5_journal_patch){
		.offset = offset, .size = size, .before = s.before + offset, .after = s.after + offset};
}

static void add_guard(uint64_t offset, uint32_t size)
{
	s.patches[s.record.patch_count++] = (struct h5_journal_patch){
		.offset = offset, .size = size, .guard = true, .before = s.before + offset};
}

static void add_extent(uint64_t offset, uint64_t size)
{
	s.extents[s.record.extent_count++] =
		(struct h5_journal_extent){offset, size, h5_journal_hash(s.before + offset, size)};
}

static void setup(void)
{
	memset(&s, 0, sizeof s);
	strcpy(s.dir, "/tmp/h5fs-journal-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(s.dir));
	s.dirfd = open(s.dir, O_PATH | O_DIRECTORY);
	s.place = (struct h5_journal_place){
		.dirfd = s.dirfd, .name = NAME, .owner = geteuid(), .mode = S_IFREG | 0644};
	for (size_t i = 0; i < SIZE; i++)
		s.before[i] = s.after[i] = (uint8_t)(i * 2654435761u >> 13);
	s.record = (struct h5_journal_record){
		.size = SIZE - 1000, .patches = s.patches, .extents = s.extents, .objects = s.objects};
	put("a.h5", s.before, SIZE);
}

static void teardown(void)
{
	int fd = openat(s.dirfd, ".", O_RDONLY | O_DIRECTORY);
	DIR *dir = fdopendir(fd);

	h5_journal_close(s.journal, false);
	for (struct dirent *e; (e = readdir(dir));)
		unlinkat(s.dirfd, e->d_name, 0);
	closedir(dir);
	close(s.dirfd);
	rmdir(s.dir);
}

/* Patches that lie in one sector, cross one edge, cross several, and share a sector; a guard around two. */
static void usual_record(void)
{
	add_patch(8000, 1500);
	add_patch(40, 8);
	add_patch(1500, 100);
	add_patch(4200, 8);
	add_patch(4220, 20);
	add_guard(4100, 700);
	add_extent(12288, 1);
	add_extent(20000, 200000);
	s.objects[0] = 800;
	s.objects[1] = 123456;
	s.record.object_count = 2;
}

static void write_journal(bool swmr)
{
	ck_assert_int_eq(h5_journal_create(&s.place, swmr, &s.journal), 0);
	ck_assert_int_eq(h5_journal_write(s.journal, &s.record), 0);
}

/* The writer is no more. */
static void crash(void)
{
	h5_journal_close(s.journal, false);
	s.journal = NULL;
}

static void check_file(const uint8_t *expected)
{
	static uint8_t data[SIZE + 1];

	ck_assert_uint_eq(get("a.h5", data, sizeof data), SIZE);
	ck_assert(!memcmp(data, expected, SIZE));
}

static int recover(bool write, struct h5_recovered *recovered)
{
	struct h5_io *io = open_file(write), *overlay;
	int rc = h5_journal_recover(&s.place, io, write, &overlay, recovered);

	h5_io_close(overlay ? overlay : io);
	return rc;
}

/* Recovers, with writing and before without; both must come to this. */
static void expect(enum h5_recovery what)
{
	static uint8_t old[SIZE];
	struct h5_recovered recovered;

	get("a.h5", old, sizeof old);
	ck_assert_int_eq(recover(false, &recovered), 0);
	ck_assert_int_eq(recovered.what, what);
	h5_recovered_release(&recovered);
	check_file(old);
	ck_assert(exists(NAME));
	ck_assert_int_eq(recover(true, &recovered), 0);
	ck_assert_int_eq(recovered.what, what);
	if (what != H5_RECOVERY_REPLAYED)
		check_file(old);
	ck_assert_int_eq(exists(NAME), what == H5_RECOVERY_STALE || what == H5_RECOVERY_BUSY);
	h5_recovered_release(&recovered);
}

/* ---- bytes ---- */

START_TEST(record_round_trip)
{
	struct h5_journal_record r;
	uint8_t *data;
	size_t size;

	usual_record();
	memset(s.record.id, 7, sizeof s.record.id);
	s.record.sequence = 3;
	ck_assert_int_eq(h5_journal_record_size(&s.record, &size), 0);
	data = malloc(size + 1);
	ck_assert_int_eq(h5_journal_record_encode(&s.record, data, size), 0);
	ck_assert_uint_eq(h5_journal_record_length(data, size), size);
	ck_assert_int_eq(h5_journal_record_decode(data, size - 1, &r), -ENODATA);
	ck_assert_int_eq(h5_journal_record_decode(data, size + 1, &r), 0);
	ck_assert_mem_eq(r.id, s.record.id, sizeof r.id);
	ck_assert_uint_eq(r.sequence, 3);
	ck_assert_uint_eq(r.size, s.record.size);
	ck_assert_uint_eq(r.patch_count, 6);
	ck_assert_uint_eq(r.extent_count, 2);
	ck_assert_uint_eq(r.object_count, 2);
	for (unsigned i = 0; i < r.patch_count; i++) {
		ck_assert_uint_eq(r.patches[i].offset, s.patches[i].offset);
		ck_assert_uint_eq(r.patches[i].size, s.patches[i].size);
		ck_assert_int_eq(r.patches[i].guard, s.patches[i].guard);
		ck_assert_mem_eq(r.patches[i].before, s.patches[i].before, r.patches[i].size);
		if (!r.patches[i].guard)
			ck_assert_mem_eq(r.patches[i].after, s.patches[i].after, r.patches[i].size);
	}
	ck_assert_mem_eq(r.extents, s.extents, 2 * sizeof *s.extents);
	ck_assert_mem_eq(r.objects, s.objects, sizeof s.objects);
	h5_journal_record_release(&r);
	h5_journal_record_release(&r);
	free(data);
}
END_TEST

/* Built here field by field: what one version has written the next one must read. */
START_TEST(bytes_of_a_journal)
{
	static const uint8_t id[16] = "0123456789abcdef";
	uint8_t expected[512 + 146] = {0}, data[512 + 146];
	struct h5_journal_header header = {.swmr = true};
	struct h5_writer w = h5_writer_init(expected, sizeof expected, 8, 8);
	size_t size;

	memcpy(header.id, id, 16);
	h5_write_bytes(&w, "h5fs-jnl", 8);
	h5_write_u32(&w, 1);
	h5_write_u32(&w, 1);
	h5_write_bytes(&w, id, 16);
	h5_write_u32(&w, h5_lookup3(expected, 32, 0));
	h5_write_u32(&w, h5_lookup3(expected, 32, 0xffffffff));
	h5_write_fill(&w, 0, 512 - 40);
	h5_write_bytes(&w, "h5fs-rec", 8);
	h5_write_u64(&w, 0);
	h5_write_u64(&w, 146);
	h5_write_bytes(&w, id, 16);
	h5_write_u64(&w, 9);
	h5_write_u64(&w, SIZE);
	h5_write_u32(&w, 2);
	h5_write_u32(&w, 1);
	h5_write_u32(&w, 1);
	h5_write_u32(&w, 0);
	h5_write_u64(&w, 4000);
	h5_write_u64(&w, 3);
	h5_write_u64(&w, (uint64_t)h5_lookup3(s.before + 4000, 3, 0xffffffff) << 32 |
				 h5_lookup3(s.before + 4000, 3, 0));
	h5_write_u64(&w, 77);
	h5_write_u64(&w, 100);
	h5_write_u32(&w, 2);
	h5_write_u32(&w, 0);
	h5_write_bytes(&w, s.before + 100, 2);
	h5_write_u8(&w, (uint8_t)~s.before[100]);
	h5_write_u8(&w, (uint8_t)~s.before[101]);
	h5_write_u64(&w, 99);
	h5_write_u32(&w, 6);
	h5_write_u32(&w, 1);
	h5_write_bytes(&w, s.before + 99, 6);
	ck_assert_int_eq(h5_writer_check(&w, "test"), 0);
	ck_assert_uint_eq(h5_writer_at(&w), sizeof expected);
	h5_uint_to(expected + 512 + 8, h5_lookup3(expected + 528, 130, 0), 4);
	h5_uint_to(expected + 512 + 12, h5_lookup3(expected + 528, 130, 0xffffffff), 4);

	add_patch(100, 2);
	add_guard(99, 6);
	add_extent(4000, 3);
	s.objects[0] = 77;
	s.record.object_count = 1;
	s.record.size = SIZE;
	s.record.sequence = 9;
	memcpy(s.record.id, id, 16);
	h5_journal_header_encode(&header, data);
	ck_assert_int_eq(h5_journal_record_size(&s.record, &size), 0);
	ck_assert_uint_eq(size, 146);
	ck_assert_int_eq(h5_journal_record_encode(&s.record, data + 512, size), 0);
	ck_assert_mem_eq(data, expected, sizeof data);
}
END_TEST

START_TEST(hash_by_pieces)
{
	uint64_t hash = h5_journal_hash_next(0, s.before, H5_JOURNAL_PIECE);

	hash = h5_journal_hash_next(hash, s.before + H5_JOURNAL_PIECE, 100);
	ck_assert_uint_eq(h5_journal_hash(s.before, H5_JOURNAL_PIECE + 100), hash);
	ck_assert_uint_ne(h5_journal_hash(s.before, H5_JOURNAL_PIECE + 101), hash);
	s.before[5] ^= 1;
	ck_assert_uint_ne(h5_journal_hash(s.before, H5_JOURNAL_PIECE + 100), hash);
	/* Both halves see the first piece. */
	ck_assert_uint_ne((uint32_t)h5_journal_hash(s.before, H5_JOURNAL_PIECE + 100), (uint32_t)hash);
	ck_assert_uint_ne(h5_journal_hash(s.before, H5_JOURNAL_PIECE + 100) >> 32, hash >> 32);
}
END_TEST

/* What nobody may write is also not believed. */
START_TEST(nonsense_is_refused)
{
	size_t size;

	add_patch(100, 10);
	add_patch(200, 10);
	add_guard(90, 200);
	add_extent(1000, 10);
	add_extent(1010, 10);
	ck_assert_int_eq(h5_journal_record_size(&s.record, &size), 0);
	s.patches[1].offset = 109;
	ck_assert_int_eq(h5_journal_record_size(&s.record, &size), -EUCLEAN);
	s.patches[1].offset = s.record.size - 9;
	ck_assert_int_eq(h5_journal_record_size(&s.record, &size), -EUCLEAN);
	s.patches[1].offset = UINT64_MAX - 5;
	ck_assert_int_eq(h5_journal_record_size(&s.record, &size), -EUCLEAN);
	s.patches[1].offset = 200;
	s.patches[2].offset = s.record.size - 199;
	ck_assert_int_eq(h5_journal_record_size(&s.record, &size), -EUCLEAN);
	s.patches[2].offset = 90;
	s.extents[1].offset = 1009;
	ck_assert_int_eq(h5_journal_record_size(&s.record, &size), -EUCLEAN);
	s.extents[1].offset = 5000;
	s.extents[1].size = UINT64_MAX;
	ck_assert_int_eq(h5_journal_record_size(&s.record, &size), -EUCLEAN);
	s.extents[1].size = 1;
	ck_assert_int_eq(h5_journal_record_size(&s.record, &size), 0);
	s.patches[0].size = 1 << 29;
	ck_assert_int_eq(h5_journal_record_size(&s.record, &size), -EFBIG);
}
END_TEST

/* ---- life ---- */

START_TEST(one_record_over_the_other)
{
	struct h5_recovered recovered;
	struct stat st;

	usual_record();
	write_journal(false);
	ck_assert_int_eq(fstatat(s.dirfd, NAME, &st, 0), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0644);
	/* A shorter one, and only one patch. */
	s.record.patch_count = 2;
	s.record.extent_count = 0;
	ck_assert_int_eq(h5_journal_write(s.journal, &s.record), 0);
	ck_assert_uint_eq(s.record.sequence, 2);
	crash();
	ck_assert_int_eq(recover(true, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_REPLAYED);
	memcpy(s.after + 1500, s.before + 1500, 100);
	memcpy(s.after + 4200, s.before + 4200, 40);
	check_file(s.after);
	h5_recovered_release(&recovered);
}
END_TEST

START_TEST(a_record_larger_than_the_journal)
{
	add_patch(0, 100000);
	write_journal(false);
	crash();
	expect(H5_RECOVERY_REPLAYED);
	check_file(s.after);
}
END_TEST

START_TEST(closed_and_cleared)
{
	struct h5_recovered recovered;

	usual_record();
	write_journal(false);
	ck_assert_int_eq(h5_journal_clear(s.journal), 0);
	crash();
	expect(H5_RECOVERY_NONE);
	write_journal(false);
	h5_journal_close(s.journal, true);
	s.journal = NULL;
	ck_assert(!exists(NAME));
	ck_assert_int_eq(recover(true, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_NONE);
	h5_journal_close(NULL, true);
}
END_TEST

START_TEST(only_where_there_is_none)
{
	struct h5_journal *journal;

	put(NAME, "", 0);
	ck_assert_int_eq(h5_journal_create(&s.place, false, &journal), -EEXIST);
	ck_assert(exists(NAME));
	s.place.name = "no such directory/" NAME;
	ck_assert_int_eq(h5_journal_create(&s.place, false, &journal), -ENOENT);
}
END_TEST

START_TEST(marks_of_its_own)
{
	struct h5_recovered recovered;

	/* Before any commit, after one, and after it was cleared. */
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(h5_journal_create(&s.place, true, &s.journal), 0);
		if (i)
			ck_assert_int_eq(h5_journal_write(s.journal, &s.record), 0);
		if (i == 2)
			ck_assert_int_eq(h5_journal_clear(s.journal), 0);
		crash();
		ck_assert_int_eq(recover(true, &recovered), 0);
		ck_assert_int_eq(recovered.what, H5_RECOVERY_NONE);
		ck_assert(recovered.swmr);
		/* It is needed until the marks are gone. */
		ck_assert(exists(NAME));
		ck_assert_int_eq(h5_journal_remove(&s.place), 0);
		ck_assert(!exists(NAME));
	}
	usual_record();
	write_journal(true);
	crash();
	ck_assert_int_eq(recover(true, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_REPLAYED);
	ck_assert(recovered.swmr);
	check_file(s.after);
	ck_assert_int_eq(recover(true, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_NONE);
	ck_assert(recovered.swmr);
	/* The marks are cleared, in what a patch had written, and again before the journal is gone. */
	s.after[40] ^= 1;
	put("a.h5", s.after, SIZE);
	ck_assert_int_eq(recover(true, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_NONE);
	ck_assert(recovered.swmr);
	ck_assert_int_eq(h5_journal_remove(&s.place), 0);
	s.after[40] ^= 1;
	put("a.h5", s.after, SIZE);
	write_journal(true);
	crash();
	ck_assert_int_eq(recover(true, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_NONE);
	s.after[40] ^= 1;
	put("a.h5", s.after, SIZE);
	ck_assert_int_eq(recover(true, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_NONE);
	ck_assert(recovered.swmr);
}
END_TEST

/* ---- what is found ---- */

static size_t load_journal(uint8_t *data, size_t n)
{
	uint8_t record[8];
	size_t got = get(NAME, data, n);

	memcpy(record, data + 512 + 16, 8);
	ck_assert_uint_gt(got, 512);
	return 512 + (size_t)record[0] + 256u * record[1];
}

START_TEST(torn)
{
	static uint8_t old[1 << 16], new[1 << 16], mixed[1 << 16];
	struct h5_recovered recovered;
	size_t used;

	usual_record();
	write_journal(false);
	get(NAME, old, sizeof old);
	s.record.extent_count = 1;
	ck_assert_int_eq(h5_journal_write(s.journal, &s.record), 0);
	used = load_journal(new, sizeof new);
	crash();
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
			put(NAME, mixed, kind ? sizeof mixed : at);
			ck_assert_int_eq(recover(false, &recovered), 0);
			/* All old, which is whole and can be replayed. */
			if (kind == 1 && at <= 512)
				ck_assert_int_eq(recovered.what, H5_RECOVERY_REPLAYED);
			else
				ck_assert_int_eq(recovered.what, H5_RECOVERY_NONE);
		}
	}
	put(NAME, new, used / 512 * 512);
	expect(H5_RECOVERY_NONE);
}
END_TEST

START_TEST(every_byte_flipped)
{
	static uint8_t data[1 << 16];
	struct h5_recovered recovered;
	size_t used;

	usual_record();
	write_journal(false);
	used = load_journal(data, sizeof data);
	crash();
	for (size_t at = 0; at < used; at++) {
		int rc;

		if (at == 40)
			at = 512; /* the zeros */
		data[at] ^= 0x10;
		put(NAME, data, sizeof data);
		rc = recover(false, &recovered);
		data[at] ^= 0x10;
		ck_assert_msg(rc == 0 || at < 12, "byte %zu: %d", at, rc);
		ck_assert_msg(recovered.what == H5_RECOVERY_NONE, "byte %zu: %d", at, recovered.what);
	}
	put(NAME, data, sizeof data);
	expect(H5_RECOVERY_REPLAYED);
	check_file(s.after);
}
END_TEST

START_TEST(from_a_later_version_or_no_journal)
{
	struct h5_journal_header header = {.swmr = false};
	struct h5_recovered recovered;
	uint8_t data[512];

	h5_journal_header_encode(&header, data);
	data[8] = 2;
	put(NAME, data, sizeof data);
	ck_assert_int_eq(recover(true, &recovered), -ENOTSUP);
	ck_assert(exists(NAME));
	put(NAME, "my diary", 8);
	ck_assert_int_eq(recover(true, &recovered), -EUCLEAN);
	ck_assert(exists(NAME));
	put(NAME, "", 0);
	expect(H5_RECOVERY_NONE);
	memset(data, 0, sizeof data);
	put(NAME, data, sizeof data);
	expect(H5_RECOVERY_NONE);
	/* The file was made, and that was all. */
	h5_journal_header_encode(&header, data);
	put(NAME, data, 100);
	expect(H5_RECOVERY_NONE);
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

	usual_record();
	for (unsigned i = 0; i < s.record.patch_count; i++)
		for (uint64_t at = s.patches[i].offset, end = at + s.patches[i].size;
		     !s.patches[i].guard && at < end;) {
			uint64_t next = at / 512 * 512 + 512 < end ? at / 512 * 512 + 512 : end;

			part[parts].offset = at;
			part[parts++].size = next - at;
			at = next;
		}
	ck_assert_uint_eq(parts, 9);
	last = (1u << parts) - 1;
	for (unsigned state = 0; state <= last; state++) {
		static uint8_t data[SIZE];

		memcpy(data, s.before, SIZE);
		for (unsigned i = 0; i < parts; i++)
			if (state >> i & 1)
				memcpy(data + part[i].offset, s.after + part[i].offset, part[i].size);
		put("a.h5", data, SIZE);
		write_journal(false);
		crash();
		expect(state == last ? H5_RECOVERY_NONE : H5_RECOVERY_REPLAYED);
		check_file(s.after);
	}
}
END_TEST

START_TEST(overlay_reads)
{
	static uint8_t data[SIZE + 10];
	struct h5_recovered recovered;
	struct h5_io *overlay;
	struct h5_io_stat st;
	size_t got;

	usual_record();
	write_journal(false);
	crash();
	ck_assert_int_eq(h5_journal_recover(&s.place, open_file(false), false, &overlay, &recovered), 0);
	ck_assert_ptr_nonnull(overlay);
	ck_assert_int_eq(h5_io_stat(overlay, &st), 0);
	ck_assert_uint_eq(st.size, SIZE);
	ck_assert_ptr_null(overlay->ops->write);
	for (size_t n = 1; n <= 2000; n = n * 3 + 1)
		for (uint64_t at = 0; at + n < 12000; at += n < 10 ? n : n / 7) {
			ck_assert_int_eq(h5_io_read(overlay, at, data, n), 0);
			ck_assert(!memcmp(data, s.after + at, n));
		}
	ck_assert_int_eq(h5_io_read_some(overlay, 0, data, sizeof data, &got), 0);
	ck_assert_uint_eq(got, SIZE);
	ck_assert(!memcmp(data, s.after, SIZE));
	check_file(s.before);
	/* Nobody replays it away from under its readers; others may read along. */
	ck_assert_int_eq(recover(false, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_REPLAYED);
	h5_io_unlock(overlay);
	ck_assert_int_eq(recover(true, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_BUSY);
	h5_io_close(overlay);
	expect(H5_RECOVERY_REPLAYED);
}
END_TEST

/* ---- another program has written since ---- */

static void foreign(uint64_t offset, enum h5_recovery what)
{
	static uint8_t data[SIZE];

	memcpy(data, s.before, SIZE);
	memcpy(data + 40, s.after + 40, 8); /* one patch was made */
	data[offset] ^= 0x55;
	put("a.h5", data, SIZE);
	write_journal(false);
	crash();
	expect(what);
	if (what == H5_RECOVERY_STALE) {
		struct h5_recovered recovered;

		ck_assert_int_eq(recover(true, &recovered), 0);
		ck_assert_uint_eq(recovered.object_count, 2);
		ck_assert_mem_eq(recovered.objects, s.objects, sizeof s.objects);
		ck_assert_int_eq(h5_journal_set_aside(&s.place, &recovered), 0);
		h5_recovered_release(&recovered);
		h5_recovered_release(&recovered);
		ck_assert(!exists(NAME));
		check_file(data);
	}
}

START_TEST(foreign_writes)
{
	usual_record();
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

	usual_record();
	write_journal(false);
	crash();
	put("a.h5", s.before, s.record.size - 1);
	for (int write = 0; write < 2; write++) {
		ck_assert_int_eq(recover(write, &recovered), 0);
		ck_assert_int_eq(recovered.what, H5_RECOVERY_STALE);
		h5_recovered_release(&recovered);
	}
	put("a.h5", s.before, 0);
	ck_assert_int_eq(recover(true, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_STALE);
	h5_recovered_release(&recovered);
	put("a.h5", s.before, s.record.size);
	ck_assert_int_eq(recover(true, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_REPLAYED);
}
END_TEST

/* ---- hostile ---- */

/* A journal of the record as it is, whatever sense that makes; `at`: of four bytes of it that become
 * `value`. */
static void forge(size_t at, uint32_t value)
{
	static uint8_t data[1 << 16];
	struct h5_journal_header header = {.swmr = true};
	size_t size = H5_JOURNAL_RECORD_MIN + 24 * s.record.extent_count + 8 * s.record.object_count;

	for (unsigned i = 0; i < s.record.patch_count; i++)
		size += 16 + s.patches[i].size * (s.patches[i].guard ? 1 : 2);
	h5_journal_header_encode(&header, data);
	memcpy(s.record.id, header.id, 16);
	ck_assert_int_eq(h5_journal_record_encode(&s.record, data + 512, size), 0);
	if (at)
		h5_uint_to(data + 512 + at, value, 4);
	h5_uint_to(data + 512 + 8, h5_journal_hash(data + 512 + 16, size - 16), 8);
	put(NAME, data, 512 + size);
}

START_TEST(forged_records)
{
	struct h5_recovered recovered;

	usual_record();
	forge(0, 0);
	ck_assert_int_eq(recover(false, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_REPLAYED);
	/* Counts of patches, extents, objects. */
	for (size_t at = 56; at < 68; at += 4)
		for (int i = 0; i < 4; i++) {
			forge(at, (const uint32_t[]){1, 7, 0x20000000, 0xffffffff}[i]);
			expect(H5_RECOVERY_STALE);
		}
	/* A length that isn't: neither in the file nor in the address space. */
	forge(16, 0x7fffffff);
	ck_assert_int_eq(recover(false, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_NONE);
	forge(20, 0x7fffffff);
	ck_assert_int_eq(recover(false, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_NONE);
	forge(16, 3);
	ck_assert_int_eq(recover(false, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_NONE);
	/* Size of the file. */
	forge(48, 0x7fffffff);
	expect(H5_RECOVERY_STALE);
	forge(52, 0xffffffff);
	expect(H5_RECOVERY_STALE);
	/* An extent far away, and of many bytes. */
	forge(76, 0xffffffff);
	expect(H5_RECOVERY_STALE);
	forge(84, 0xffffffff);
	expect(H5_RECOVERY_STALE);
	/* The first patch: offset, size. */
	forge(72 + 48 + 16 + 4, 0xffffffff);
	expect(H5_RECOVERY_STALE);
	forge(72 + 48 + 16 + 8, 0xffffffff);
	expect(H5_RECOVERY_STALE);
	/* Patches over each other. */
	s.patches[1].offset = 8100;
	forge(0, 0);
	expect(H5_RECOVERY_STALE);
	ck_assert_int_eq(recover(true, &recovered), 0);
	ck_assert(!recovered.swmr);
	h5_recovered_release(&recovered);
}
END_TEST

START_TEST(somebody_elses)
{
	struct h5_recovered recovered;

	usual_record();
	write_journal(false);
	crash();
	ck_assert_int_eq(linkat(s.dirfd, NAME, s.dirfd, "other", 0), 0);
	for (int write = 0; write < 2; write++)
		ck_assert_int_eq(recover(write, &recovered), -EPERM);
	unlinkat(s.dirfd, NAME, 0);
	ck_assert_int_eq(symlinkat("other", s.dirfd, NAME), 0);
	for (int write = 0; write < 2; write++)
		ck_assert_int_eq(recover(write, &recovered), -ELOOP);
	unlinkat(s.dirfd, NAME, 0);
	ck_assert_int_eq(mkfifoat(s.dirfd, NAME, 0600), 0);
	for (int write = 0; write < 2; write++)
		ck_assert_int_eq(recover(write, &recovered), -EPERM);
	unlinkat(s.dirfd, NAME, 0);
	ck_assert_int_eq(mkdirat(s.dirfd, NAME, 0700), 0);
	ck_assert_int_eq(recover(false, &recovered), -EPERM);
	ck_assert_int_eq(recover(true, &recovered), -EISDIR);
	unlinkat(s.dirfd, NAME, AT_REMOVEDIR);
	ck_assert_int_eq(renameat(s.dirfd, "other", s.dirfd, NAME), 0);
	check_file(s.before);
	if (geteuid() == 0) {
		ck_assert_int_eq(fchownat(s.dirfd, NAME, 12345, 12345, 0), 0);
		for (int write = 0; write < 2; write++)
			ck_assert_int_eq(recover(write, &recovered), -EPERM);
		s.place.owner = 12345;
	} else {
		puts("only root can give files away: a journal of somebody else was not tried");
	}
	expect(H5_RECOVERY_REPLAYED);
}
END_TEST

/* What root writes of another one's file, that one can recover. */
START_TEST(owner_of_a_new_journal)
{
	struct stat st;

	if (geteuid() != 0) {
		puts("only root can give files away: skipped");
		return;
	}
	s.place.owner = 12345;
	s.place.mode = 0640;
	ck_assert_int_eq(h5_journal_create(&s.place, false, &s.journal), 0);
	ck_assert_int_eq(fstatat(s.dirfd, NAME, &st, 0), 0);
	ck_assert_uint_eq(st.st_uid, 12345);
	ck_assert_int_eq(st.st_mode & 0777, 0640);
}
END_TEST

START_TEST(held)
{
	usual_record();
	write_journal(false);
	expect(H5_RECOVERY_BUSY);
	check_file(s.before);
	crash();
	expect(H5_RECOVERY_REPLAYED);
}
END_TEST

/* ---- failing calls ---- */

/* Creates, writes twice, clears and closes with call `n` failing. True: it was made. */
static bool fail_life(unsigned long n, bool lasting)
{
	struct fault_io fault = {.fail = n, .lasting = lasting, .error = -ENOSPC};
	struct h5_recovered recovered;
	bool written;
	int rc;

	s.place.wrap = fault_io_wrap;
	s.place.wrap_arg = &fault;
	put("a.h5", s.before, SIZE);
	rc = h5_journal_create(&s.place, false, &s.journal);
	if (rc) {
		ck_assert_int_eq(rc, -ENOSPC);
		ck_assert(!exists(NAME));
		return true;
	}
	for (int i = 0; i < 2 && !rc; i++)
		rc = h5_journal_write(s.journal, &s.record);
	written = !rc;
	if (!rc)
		rc = h5_journal_clear(s.journal);
	h5_journal_close(s.journal, !rc);
	s.journal = NULL;
	s.place.wrap = NULL;
	if (!rc) {
		ck_assert(!exists(NAME));
		return fault.calls >= n;
	}
	ck_assert_int_eq(rc, -ENOSPC);
	ck_assert_int_eq(recover(true, &recovered), 0);
	/* A record that failed is taken back. Where that fails too, or the clearing did, it may be replayed.
	 */
	ck_assert(recovered.what == H5_RECOVERY_NONE || lasting || written);
	check_file(recovered.what == H5_RECOVERY_REPLAYED ? s.after : s.before);
	return true;
}

START_TEST(failing_life)
{
	unsigned long n;

	usual_record();
	for (int lasting = 0; lasting < 2; lasting++) {
		for (n = 1; fail_life(n, lasting); n++)
			;
		ck_assert_uint_ge(n, 9);
	}
}
END_TEST

START_TEST(failing_replay)
{
	unsigned long n;
	int rc = -EIO;

	usual_record();
	for (n = 1; rc; n++) {
		struct fault_io fault = {.fail = n, .error = -EIO};
		struct h5_io *io, *overlay;
		struct h5_recovered recovered;

		put("a.h5", s.before, SIZE);
		write_journal(false);
		crash();
		s.place.wrap = fault_io_wrap;
		s.place.wrap_arg = &fault;
		io = fault_io_wrap(&fault, open_file(true));
		rc = h5_journal_recover(&s.place, io, true, &overlay, &recovered);
		h5_io_close(io);
		s.place.wrap = NULL;
		if (rc) {
			/* Once more, from wherever it stopped. */
			ck_assert_int_eq(rc, -EIO);
			ck_assert(exists(NAME));
			ck_assert_int_eq(recover(true, &recovered), 0);
		} else {
			ck_assert_int_eq(recovered.what, H5_RECOVERY_REPLAYED);
		}
		check_file(s.after);
		ck_assert(!exists(NAME));
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

	usual_record();
	write_journal(false);
	crash();
	put("a.h5", s.after, SIZE);
	io = fault_io_wrap(&fault, open_file(true));
	ck_assert_int_eq(h5_journal_recover(&s.place, io, true, &overlay, &recovered), 0);
	h5_io_close(io);
	ck_assert(!exists(NAME));
	ck_assert_uint_eq(fault.count, 1);
	ck_assert_int_eq(fault.events[0].kind, FAULT_SYNC);
	ck_assert_uint_eq(fault.events[0].file, 0);
	fault_io_release(&fault);

	put("a.h5", s.before, SIZE);
	write_journal(false);
	crash();
	s.place.wrap = fault_io_wrap;
	s.place.wrap_arg = &fault;
	fault.files = 0;
	io = fault_io_wrap(&fault, open_file(true));
	ck_assert_int_eq(h5_journal_recover(&s.place, io, true, &overlay, &recovered), 0);
	h5_io_close(io);
	ck_assert_uint_eq(fault.count, 8);
	for (unsigned i = 0; i < 5; i++) {
		ck_assert_int_eq(fault.events[i].kind, FAULT_WRITE);
		ck_assert_uint_eq(fault.events[i].offset, s.patches[i].offset);
	}
	for (unsigned i = 5; i < 8; i++) {
		ck_assert_int_eq(fault.events[i].kind, i == 6 ? FAULT_WRITE : FAULT_SYNC);
		ck_assert_uint_eq(fault.events[i].file, i > 5);
	}
	fault_io_release(&fault);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {record_round_trip,
				      bytes_of_a_journal,
				      hash_by_pieces,
				      nonsense_is_refused,
				      one_record_over_the_other,
				      a_record_larger_than_the_journal,
				      closed_and_cleared,
				      only_where_there_is_none,
				      marks_of_its_own,
				      torn,
				      every_byte_flipped,
				      from_a_later_version_or_no_journal,
				      replayed_from_every_state,
				      overlay_reads,
				      foreign_writes,
				      cut_file,
				      forged_records,
				      somebody_elses,
				      owner_of_a_new_journal,
				      held,
				      failing_life,
				      failing_replay,
				      order_of_recovery};

	Suite *suite = suite_create("journal");
	TCase *all = tcase_create("journal");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(all, setup, teardown);
	tcase_set_timeout(all, 120);
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		tcase_add_test(all, tests[i]);
	suite_add_tcase(suite, all);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
