#include "base/lookup3.h"
#include "base/writer.h"
#include "fault_io.h"
#include "journal_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- bytes ---- */

START_TEST(record_round_trip)
{
	struct h5_journal_record r;
	uint8_t *data;
	size_t size;

	scene_usual_record();
	memset(scene.record.id, 7, sizeof scene.record.id);
	scene.record.sequence = 3;
	ck_assert_int_eq(h5_journal_record_size(&scene.record, &size), 0);
	data = malloc(size + 1);
	ck_assert_int_eq(h5_journal_record_encode(&scene.record, data, size), 0);
	ck_assert_uint_eq(h5_journal_record_length(data, size), size);
	/* what is no record leaves nothing to release, whatever stood there */
	memset(&r, 0xa5, sizeof r);
	ck_assert_int_eq(h5_journal_record_decode(data, size - 1, &r), -ENODATA);
	ck_assert_ptr_null(r.patches);
	ck_assert_ptr_null(r.extents);
	ck_assert_ptr_null(r.objects);
	ck_assert_uint_eq(r.patch_count + r.extent_count + r.object_count, 0);
	memset(&r, 0xa5, sizeof r);
	ck_assert_int_eq(h5_journal_record_decode(data, size + 1, &r), 0);
	ck_assert_mem_eq(r.id, scene.record.id, sizeof r.id);
	ck_assert_uint_eq(r.sequence, 3);
	ck_assert_uint_eq(r.size, scene.record.size);
	ck_assert_uint_eq(r.patch_count, 6);
	ck_assert_uint_eq(r.extent_count, 2);
	ck_assert_uint_eq(r.object_count, 2);
	for (unsigned i = 0; i < r.patch_count; i++) {
		ck_assert_uint_eq(r.patches[i].offset, scene.patches[i].offset);
		ck_assert_uint_eq(r.patches[i].size, scene.patches[i].size);
		ck_assert_int_eq(r.patches[i].guard, scene.patches[i].guard);
		ck_assert_mem_eq(r.patches[i].before, scene.patches[i].before, r.patches[i].size);
		if (!r.patches[i].guard)
			ck_assert_mem_eq(r.patches[i].after, scene.patches[i].after, r.patches[i].size);
	}
	ck_assert_mem_eq(r.extents, scene.extents, 2 * sizeof *scene.extents);
	ck_assert_mem_eq(r.objects, scene.objects, sizeof scene.objects);
	h5_journal_record_release(&r);
	h5_journal_record_release(&r);
	free(data);
}
END_TEST

/* The hashes of doc/writing.md, written anew: of up to one piece. */
static uint64_t expected_hash(unsigned version, const uint8_t *p, size_t n)
{
	const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t lanes[8], hash = n;

	if (version == 1)
		return (uint64_t)h5_lookup3(p, n, 0xffffffff) << 32 | h5_lookup3(p, n, 0);
	for (unsigned i = 0; i < 8; i++)
		lanes[i] = ((uint64_t)(i + 1) << 29) * factor;
	for (size_t at = 0; at < (n + 63) / 64 * 64; at += 8) {
		uint64_t word = 0, *lane = &lanes[at / 8 % 8];

		for (size_t i = 0; i < 8 && at + i < n; i++)
			word |= (uint64_t)p[at + i] << 8 * i;
		word ^= *lane;
		*lane = (word << 29 | word >> 35) * factor;
	}
	for (unsigned i = 0; i < 8; i++) {
		hash ^= lanes[i];
		hash = (hash << 29 | hash >> 35) * factor;
	}
	hash = (hash ^ hash >> 32) * factor;
	return hash ^ hash >> 29;
}

enum { JOURNAL_BYTES = 512 + 146 };

/* A journal built field by field. */
static void build_journal(unsigned version, const uint8_t *id, uint8_t bytes[JOURNAL_BYTES])
{
	struct h5_writer w = h5_writer_init(bytes, JOURNAL_BYTES, 8, 8);

	h5_write_bytes(&w, "h5fs-jnl", 8);
	h5_write_u32(&w, version);
	h5_write_u32(&w, 1);
	h5_write_bytes(&w, id, 16);
	h5_write_u64(&w, expected_hash(version, bytes, 32));
	h5_write_fill(&w, 0, 512 - 40);
	h5_write_bytes(&w, version == 1 ? "h5fs-rec" : "h5fs-rc2", 8);
	h5_write_u64(&w, 0);
	h5_write_u64(&w, 146);
	h5_write_bytes(&w, id, 16);
	h5_write_u64(&w, 9);
	h5_write_u64(&w, SCENE_SIZE);
	h5_write_u32(&w, 2);
	h5_write_u32(&w, 1);
	h5_write_u32(&w, 1);
	h5_write_u32(&w, 0);
	h5_write_u64(&w, 4000);
	h5_write_u64(&w, 3);
	h5_write_u64(&w, expected_hash(version, scene.before + 4000, 3));
	h5_write_u64(&w, 77);
	h5_write_u64(&w, 100);
	h5_write_u32(&w, 2);
	h5_write_u32(&w, 0);
	h5_write_bytes(&w, scene.before + 100, 2);
	h5_write_u8(&w, (uint8_t)~scene.before[100]);
	h5_write_u8(&w, (uint8_t)~scene.before[101]);
	h5_write_u64(&w, 99);
	h5_write_u32(&w, 6);
	h5_write_u32(&w, 1);
	h5_write_bytes(&w, scene.before + 99, 6);
	ck_assert_int_eq(h5_writer_check(&w, "test"), 0);
	ck_assert_uint_eq(h5_writer_at(&w), JOURNAL_BYTES);
	h5_uint_to(bytes + 512 + 8, expected_hash(version, bytes + 528, 130), 8);
}

START_TEST(bytes_of_a_journal)
{
	static const uint8_t id[16] = {'0', '1', '2', '3', '4', '5', '6', '7',
				       '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};
	uint8_t expected[JOURNAL_BYTES] = {0}, data[JOURNAL_BYTES];
	struct h5_journal_header header = {.swmr = true};
	size_t size;

	memcpy(header.id, id, 16);
	build_journal(2, id, expected);
	scene_add_patch(100, 2);
	scene_add_guard(99, 6);
	scene_add_extent(4000, 3);
	scene.objects[0] = 77;
	scene.record.object_count = 1;
	scene.record.size = SCENE_SIZE;
	scene.record.sequence = 9;
	memcpy(scene.record.id, id, 16);
	h5_journal_header_encode(&header, data);
	ck_assert_int_eq(h5_journal_record_size(&scene.record, &size), 0);
	ck_assert_uint_eq(size, 146);
	ck_assert_int_eq(h5_journal_record_encode(&scene.record, data + 512, size), 0);
	ck_assert_mem_eq(data, expected, sizeof data);
}
END_TEST

START_TEST(whose_it_is)
{
	const struct h5_journal_file file = {.inode = 12345678901, .born = 1700000000, .nanoseconds = 999};
	const struct h5_journal_file other = {.inode = 12345678901, .born = 1700000000, .nanoseconds = 998};
	const struct h5_journal_header header = {.id = "0123456789abcde", .swmr = true, .file = file};
	struct h5_journal_file timeless = {.inode = 12345678901};
	struct h5_journal_header decoded;
	uint8_t data[H5_JOURNAL_HEADER];

	h5_journal_header_encode(&header, data);
	ck_assert_int_eq(h5_journal_header_decode(data, sizeof data, &decoded), 0);
	ck_assert(decoded.swmr && h5_journal_same_file(&decoded.file, &file));
	ck_assert(!h5_journal_same_file(&decoded.file, &other));
	ck_assert(!h5_journal_same_file(&timeless, &timeless));
	/* What is damaged, or missing as in older journals, is not known; the rest holds. */
	for (size_t at = 40; at < 72; at++) {
		data[at] ^= 0x20;
		ck_assert_int_eq(h5_journal_header_decode(data, sizeof data, &decoded), 0);
		data[at] ^= 0x20;
		ck_assert(decoded.swmr && !decoded.file.inode);
		ck_assert_int_eq(h5_journal_header_decode(data, at, &decoded), 0);
		ck_assert(decoded.swmr && !decoded.file.inode);
	}
	memset(data + 40, 0, sizeof data - 40);
	ck_assert_int_eq(h5_journal_header_decode(data, sizeof data, &decoded), 0);
	ck_assert(decoded.swmr && !decoded.file.inode);
}
END_TEST

/* The same inode and time; a file whose time is not known is no other one, nor is one without an inode. */
START_TEST(the_same_file)
{
	static const struct h5_journal_file files[] = {{5, 7, 9}, {6, 7, 9}, {5, 8, 9}, {5, 7, 8}, {5, 0, 9},
						       {5, 7, 0}, {5, 0, 0}, {0, 7, 9}, {0, 0, 0}};
	enum { KNOWN = 6, ALL = sizeof files / sizeof *files };

	for (unsigned i = 0; i < ALL; i++)
		for (unsigned k = 0; k < ALL; k++)
			ck_assert(h5_journal_same_file(&files[i], &files[k]) == (i == k && i < KNOWN));
	ck_assert(h5_journal_is_zero(NULL, 0));
	for (size_t n = 1; n < 20; n++) {
		uint8_t bytes[20] = {0};

		bytes[n] = 1; /* behind them */
		ck_assert(h5_journal_is_zero(bytes, n));
		for (size_t i = 0; i < n; i++) {
			bytes[i] = 1;
			ck_assert(!h5_journal_is_zero(bytes, n));
			bytes[i] = 0;
		}
		memset(bytes, 1, sizeof bytes);
		ck_assert(!h5_journal_is_zero(bytes, n));
	}
}
END_TEST

/* Begins of headers. */
START_TEST(headers_cut_short)
{
	struct h5_journal_header header = {.id = "0123456789abcde"}, decoded;
	uint8_t data[H5_JOURNAL_HEADER];

	h5_journal_header_encode(&header, data);
	for (size_t n = 0; n < 8; n++)
		ck_assert_int_eq(h5_journal_header_decode(data, n, &decoded), n ? -EUCLEAN : -ENODATA);
	for (size_t n = 8; n < 40; n++)
		ck_assert_int_eq(h5_journal_header_decode(data, n, &decoded), -ENODATA);
	ck_assert_int_eq(h5_journal_header_decode(data, 40, &decoded), 0);
	for (uint32_t version = 0; version < 5; version++) {
		h5_uint_to(data + 8, version, 4);
		ck_assert_int_eq(h5_journal_header_decode(data, sizeof data, &decoded),
				 version == 2		   ? 0
				 : !version || version > 2 ? -ENOTSUP
							   : -ENODATA);
	}
}
END_TEST

static int check_head(uint8_t *head, uint64_t length, uint64_t patches, uint64_t extents, uint64_t objects)
{
	h5_uint_to(head + 16, length, 8);
	h5_uint_to(head + 56, patches, 4);
	h5_uint_to(head + 60, extents, 4);
	h5_uint_to(head + 64, objects, 4);
	return h5_journal_record_check(head, 1000, 900);
}

/* What a file of 1000 bytes, of which 900 are there, can have changed. */
START_TEST(the_longest_record)
{
	uint8_t head[H5_JOURNAL_RECORD_MIN] = {0};
	const uint64_t most = 72 + 3 * 24 + 4 * 8 + 2 * (16 + 65535) + 2 * 1000;

	h5_uint_to(head + 48, 900, 8);
	ck_assert_int_eq(check_head(head, most, 2, 3, 4), 0);
	ck_assert_int_eq(check_head(head, most + 1, 2, 3, 4), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text, "journal: longer than the file allows");
	ck_assert_int_eq(check_head(head, 72, 1000, 1000, 1000), 0);
	ck_assert_int_eq(check_head(head, 72, 1001, 0, 0), -EUCLEAN);
	ck_assert_int_eq(check_head(head, 72, 0, 1001, 0), -EUCLEAN);
	ck_assert_int_eq(check_head(head, 72, 0, 0, 1001), -EUCLEAN);
	ck_assert_str_eq(h5_error_last()->text, "journal: more parts than the file has bytes");
	/* The file was cut since. */
	h5_uint_to(head + 48, 901, 8);
	ck_assert_int_eq(check_head(head, most + 1, 2, 3, 4), 0);
}
END_TEST

/* Parts of which there are more than bytes, or fewer. */
START_TEST(parts_and_bytes)
{
	static const uint8_t id[16] = {1};
	static const struct {
		unsigned at;
		uint32_t number;
	} changes[] = {{56, 0x7fffffff}, {60, 0x7fffffff}, {64, 0x7fffffff}, {56, 1},
		       {60, 0},		 {64, 0},	   {64, 2}};
	uint8_t data[JOURNAL_BYTES] = {0};
	struct h5_journal_record record;

	build_journal(2, id, data);
	for (size_t n = 0; n < 146; n++) {
		ck_assert_int_eq(h5_journal_record_decode(data + 512, n, &record), -ENODATA);
		ck_assert_uint_eq(h5_journal_record_length(data + 512, n), n < 72 ? 0 : 146);
		ck_assert_uint_eq(h5_journal_record_version(data + 512, n), n < 72 ? 0 : 2);
	}
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		build_journal(2, id, data);
		h5_uint_to(data + 512 + changes[i].at, changes[i].number, 4);
		h5_uint_to(data + 512 + 8, expected_hash(2, data + 528, 130), 8);
		ck_assert_int_eq(h5_journal_record_decode(data + 512, 146, &record), -EUCLEAN);
		ck_assert_str_eq(h5_error_last()->text,
				 i < 3 ? "journal: more parts than bytes"
				       : "journal: its parts are not what its length says");
	}
	build_journal(2, id, data);
	for (uint64_t length = 70; length < 74; length++) {
		h5_uint_to(data + 512 + 16, length, 8);
		ck_assert_uint_eq(h5_journal_record_length(data + 512, 146), length < 72 ? 0 : length);
	}
	h5_uint_to(data + 512 + 16, H5_JOURNAL_RECORD_MAX, 8);
	ck_assert_uint_eq(h5_journal_record_length(data + 512, 146), H5_JOURNAL_RECORD_MAX);
	h5_uint_to(data + 512 + 16, H5_JOURNAL_RECORD_MAX + 1, 8);
	ck_assert_uint_eq(h5_journal_record_length(data + 512, 146), 0);
}
END_TEST

/* What a version has written, all later ones must heal by. */
START_TEST(journals_of_each_version)
{
	static const uint8_t id[16] = {'0', '1', '2', '3', '4', '5', '6', '7',
				       '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};

	for (unsigned version = 1; version <= 2; version++) {
		uint8_t data[JOURNAL_BYTES] = {0};
		struct h5_journal_header header = {0};
		struct h5_journal_record record;

		build_journal(version, id, data);
		ck_assert_int_eq(h5_journal_header_decode(data, 512, &header), 0);
		ck_assert_mem_eq(header.id, id, 16);
		ck_assert(header.swmr);
		ck_assert_int_eq(h5_journal_record_decode(data + 512, sizeof data - 512, &record), 0);
		ck_assert_uint_eq(record.version, version);
		ck_assert_uint_eq(record.patch_count, 2);
		ck_assert_uint_eq(record.extents[0].hash,
				  h5_journal_hash_next(version, 0, scene.before + 4000, 3));
		h5_journal_record_release(&record);
		data[512 + 100] ^= 1;
		ck_assert_int_eq(h5_journal_record_decode(data + 512, sizeof data - 512, &record), -ENODATA);
	}
}
END_TEST

START_TEST(hash_by_pieces)
{
	uint64_t hash = h5_journal_hash_next(H5_JOURNAL_VERSION, 0, scene.before, H5_JOURNAL_PIECE);

	hash = h5_journal_hash_next(H5_JOURNAL_VERSION, hash, scene.before + H5_JOURNAL_PIECE, 100);
	ck_assert_uint_eq(h5_journal_hash(scene.before, H5_JOURNAL_PIECE + 100), hash);
	ck_assert_uint_ne(h5_journal_hash(scene.before, H5_JOURNAL_PIECE + 101), hash);
	scene.before[5] ^= 1;
	ck_assert_uint_ne(h5_journal_hash(scene.before, H5_JOURNAL_PIECE + 100), hash);
	/* Both halves see the first piece. */
	ck_assert_uint_ne((uint32_t)h5_journal_hash(scene.before, H5_JOURNAL_PIECE + 100), (uint32_t)hash);
	ck_assert_uint_ne(h5_journal_hash(scene.before, H5_JOURNAL_PIECE + 100) >> 32, hash >> 32);
}
END_TEST

/* What nobody may write is also not believed. */
START_TEST(nonsense_is_refused)
{
	size_t size;

	scene_add_patch(100, 10);
	scene_add_patch(200, 10);
	scene_add_guard(90, 200);
	scene_add_extent(1000, 10);
	scene_add_extent(1010, 10);
	ck_assert_int_eq(h5_journal_record_size(&scene.record, &size), 0);
	scene.patches[1].offset = 109;
	ck_assert_int_eq(h5_journal_record_size(&scene.record, &size), -EUCLEAN);
	scene.patches[1].offset = scene.record.size - 9;
	ck_assert_int_eq(h5_journal_record_size(&scene.record, &size), -EUCLEAN);
	scene.patches[1].offset = UINT64_MAX - 5;
	ck_assert_int_eq(h5_journal_record_size(&scene.record, &size), -EUCLEAN);
	scene.patches[1].offset = 200;
	scene.patches[2].offset = scene.record.size - 199;
	ck_assert_int_eq(h5_journal_record_size(&scene.record, &size), -EUCLEAN);
	scene.patches[2].offset = 90;
	scene.extents[1].offset = 1009;
	ck_assert_int_eq(h5_journal_record_size(&scene.record, &size), -EUCLEAN);
	scene.extents[1].offset = 5000;
	scene.extents[1].size = UINT64_MAX;
	ck_assert_int_eq(h5_journal_record_size(&scene.record, &size), -EUCLEAN);
	scene.extents[1].size = 1;
	ck_assert_int_eq(h5_journal_record_size(&scene.record, &size), 0);
	scene.patches[0].size = 1 << 29;
	ck_assert_int_eq(h5_journal_record_size(&scene.record, &size), -EFBIG);
}
END_TEST

/* ---- life ---- */

START_TEST(one_record_over_the_other)
{
	struct h5_recovered recovered;
	struct stat st;

	scene_usual_record();
	scene_write_journal(false);
	ck_assert_int_eq(fstatat(scene.dirfd, SCENE_JOURNAL, &st, 0), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0644);
	/* A shorter one, and only one patch. */
	scene.record.patch_count = 2;
	scene.record.extent_count = 0;
	ck_assert_int_eq(h5_journal_write(scene.journal, &scene.record), 0);
	ck_assert_uint_eq(scene.record.sequence, 2);
	scene_crash();
	ck_assert_int_eq(scene_recover(true, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_REPLAYED);
	memcpy(scene.after + 1500, scene.before + 1500, 100);
	memcpy(scene.after + 4200, scene.before + 4200, 40);
	scene_check_file(scene.after);
	h5_recovered_release(&recovered);
}
END_TEST

START_TEST(a_record_larger_than_the_journal)
{
	scene_add_patch(0, 100000);
	scene_write_journal(false);
	scene_crash();
	scene_expect(H5_RECOVERY_REPLAYED);
	scene_check_file(scene.after);
}
END_TEST

START_TEST(closed_and_cleared)
{
	struct h5_recovered recovered;

	scene_usual_record();
	scene_write_journal(false);
	ck_assert_int_eq(h5_journal_clear(scene.journal), 0);
	scene_crash();
	scene_expect(H5_RECOVERY_NONE);
	scene_write_journal(false);
	h5_journal_close(scene.journal, true);
	scene.journal = NULL;
	ck_assert(!scene_exists(SCENE_JOURNAL));
	ck_assert_int_eq(scene_recover(true, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_NONE);
	h5_journal_close(NULL, true);
}
END_TEST

START_TEST(only_where_there_is_none)
{
	struct h5_journal *journal;

	scene_put(SCENE_JOURNAL, "", 0);
	ck_assert_int_eq(h5_journal_create(&scene.place, false, &journal), -EEXIST);
	ck_assert(scene_exists(SCENE_JOURNAL));
	scene.place.name = "no such directory/" SCENE_JOURNAL;
	ck_assert_int_eq(h5_journal_create(&scene.place, false, &journal), -ENOENT);
	scene.place.name = "another";
	scene.place.beside = -1; /* no folder for a link that leads to it */
	scene.place.pointer = scene.place.path = "link";
	ck_assert_int_eq(h5_journal_create(&scene.place, false, &journal), -EBADF);
	ck_assert(!scene_exists("another"));
}
END_TEST

START_TEST(marks_of_its_own)
{
	struct h5_recovered recovered;

	/* Before any commit, after one, and after it was cleared. */
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(h5_journal_create(&scene.place, true, &scene.journal), 0);
		if (i)
			ck_assert_int_eq(h5_journal_write(scene.journal, &scene.record), 0);
		if (i == 2)
			ck_assert_int_eq(h5_journal_clear(scene.journal), 0);
		scene_crash();
		ck_assert_int_eq(scene_recover(true, &recovered), 0);
		ck_assert_int_eq(recovered.what, H5_RECOVERY_NONE);
		ck_assert(recovered.swmr);
		/* It is needed until the marks are gone. */
		ck_assert(scene_exists(SCENE_JOURNAL));
		ck_assert_int_eq(h5_journal_remove(&scene.place), 0);
		ck_assert(!scene_exists(SCENE_JOURNAL));
	}
	scene_usual_record();
	scene_write_journal(true);
	scene_crash();
	ck_assert_int_eq(scene_recover(true, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_REPLAYED);
	ck_assert(recovered.swmr);
	scene_check_file(scene.after);
	ck_assert_int_eq(scene_recover(true, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_NONE);
	ck_assert(recovered.swmr);
	/* The marks are cleared, in what a patch had written, and again before the journal is gone. */
	scene.after[40] ^= 1;
	scene_put("a.h5", scene.after, SCENE_SIZE);
	ck_assert_int_eq(scene_recover(true, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_NONE);
	ck_assert(recovered.swmr);
	ck_assert_int_eq(h5_journal_remove(&scene.place), 0);
	scene.after[40] ^= 1;
	scene_put("a.h5", scene.after, SCENE_SIZE);
	scene_write_journal(true);
	scene_crash();
	ck_assert_int_eq(scene_recover(true, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_NONE);
	scene.after[40] ^= 1;
	scene_put("a.h5", scene.after, SCENE_SIZE);
	ck_assert_int_eq(scene_recover(true, &recovered), 0);
	ck_assert_int_eq(recovered.what, H5_RECOVERY_NONE);
	ck_assert(recovered.swmr);
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
	scene.place.owner = 12345;
	scene.place.mode = 0640;
	ck_assert_int_eq(h5_journal_create(&scene.place, false, &scene.journal), 0);
	ck_assert_int_eq(fstatat(scene.dirfd, SCENE_JOURNAL, &st, 0), 0);
	ck_assert_uint_eq(st.st_uid, 12345);
	ck_assert_int_eq(st.st_mode & 0777, 0640);
}
END_TEST

/* The longest name of a file whose journal still has a name, and a folder for journals that is not there. */
START_TEST(where_no_journal_can_be)
{
	enum { LONGEST = NAME_MAX - (sizeof SCENE_JOURNAL - sizeof "a.h5") };
	char path[LONGEST + 3] = "/";
	struct h5_journal_home home;
	struct h5_io *io;

	scene_put("a.h5", scene.before, SCENE_SIZE);
	io = scene_open(false);
	h5_journal_home_init(&home);
	memset(path + 1, 'n', LONGEST);
	SUCCEEDS(h5_journal_home_open(&home, io, path, scene.dirfd, NULL));
	ck_assert_uint_eq(strlen(home.place.name), NAME_MAX);
	h5_journal_home_release(&home);
	path[LONGEST + 1] = 'n';
	ck_assert_int_eq(h5_journal_home_open(&home, io, path, scene.dirfd, NULL), -ENAMETOOLONG);
	h5_journal_home_release(&home);
	ck_assert_int_eq(h5_journal_home_open(&home, io, "/a.h5", scene.dirfd, "/none"), -ENOENT);
	ck_assert_int_eq(home.place.dirfd, -1);
	h5_journal_home_release(&home);
	h5_io_close(io);
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

	scene.place.wrap = fault_io_wrap;
	scene.place.wrap_arg = &fault;
	scene_put("a.h5", scene.before, SCENE_SIZE);
	rc = h5_journal_create(&scene.place, false, &scene.journal);
	if (rc) {
		ck_assert_int_eq(rc, -ENOSPC);
		ck_assert(!scene_exists(SCENE_JOURNAL));
		return true;
	}
	for (int i = 0; i < 2 && !rc; i++)
		rc = h5_journal_write(scene.journal, &scene.record);
	written = !rc;
	if (!rc)
		rc = h5_journal_clear(scene.journal);
	h5_journal_close(scene.journal, !rc);
	scene.journal = NULL;
	scene.place.wrap = NULL;
	if (!rc) {
		ck_assert(!scene_exists(SCENE_JOURNAL));
		return fault.calls >= n;
	}
	ck_assert_int_eq(rc, -ENOSPC);
	ck_assert_int_eq(scene_recover(true, &recovered), 0);
	/* A record that failed is taken back. Where that fails too, or the clearing did, it may be replayed.
	 */
	ck_assert(recovered.what == H5_RECOVERY_NONE || lasting || written);
	scene_check_file(recovered.what == H5_RECOVERY_REPLAYED ? scene.after : scene.before);
	return true;
}

START_TEST(failing_life)
{
	unsigned long n;

	scene_usual_record();
	for (int lasting = 0; lasting < 2; lasting++) {
		for (n = 1; fail_life(n, lasting); n++)
			;
		ck_assert_uint_ge(n, 9);
	}
}
END_TEST

SCENE_MAIN("journal", record_round_trip, bytes_of_a_journal, journals_of_each_version, whose_it_is,
	   the_same_file, headers_cut_short, the_longest_record, parts_and_bytes, hash_by_pieces,
	   nonsense_is_refused, one_record_over_the_other, a_record_larger_than_the_journal,
	   closed_and_cleared, only_where_there_is_none, marks_of_its_own, owner_of_a_new_journal,
	   where_no_journal_can_be, failing_life)
