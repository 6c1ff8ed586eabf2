/* Links and attributes in dense storage, changed at random beside a model in memory, and by libhdf5 as the
 * reader and next writer (tests/judge/dense_judge.py). */
#include "dense_model.h"
#include "object/fractal_heap_write.h"

#include <stdio.h>
#include <string.h>

static const char *const groups[] = {
	"links-unordered-0",	   "links-tracked-0",	    "links-unordered-10",
	"links-tracked-10",	   "links-unordered-60",    "links-tracked-60",
	"attributes-unordered-10", "attributes-tracked-10", "attributes-unordered-60",
	"attributes-tracked-60",
};

enum { GROUPS = sizeof groups / sizeof *groups };

START_TEST(random_changes)
{
	struct dense *d = dense_begin(groups[_i], 150, NULL);

	dense_create(d);
	dense_check(d);
	dense_shake(d, 30, 80);
	dense_check(d);
	dense_rest(d);
	dense_open(d);
	for (unsigned round = 0; round < 12; round++) {
		dense_shake(d, 40, round % 3 ? 80 : 40);
		SUCCEEDS(dense_commit(d));
	}
	dense_check(d);
	dense_judge(d, 1 + (unsigned)_i);
	dense_check(d);
	for (unsigned i = 0; i < d->limit; i++)
		if (d->messages[i].exists)
			SUCCEEDS(dense_remove(d, i));
	dense_rest(d);
	dense_open(d);
	if (_i % 4 < 2) {
		SUCCEEDS(h5_dense_free(d->file, &d->info, d->kind));
		dense_create(d);
	}
	dense_shake(d, 60, 90);
	dense_check(d);
	dense_judge(d, 20 + (unsigned)_i);
	dense_end(d);
}
END_TEST

/* ---- a large group ---- */

enum { LARGE = 200000 };

/* Looks, removes 50 links in order, adds 50, and looks again. */
static const char judge_large[] =
	"import sys, h5py\n"
	"path, name, first, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])\n"
	"def check():\n"
	"    g = h5py.File(path, 'r')[name]\n"
	"    names = []\n"
	"    g.id.links.iterate(names.append, idx_type=h5py.h5.INDEX_CRT_ORDER)\n"
	"    assert len(names) == len(g) == count, len(names)\n"
	"    assert sorted(names) == sorted(n.encode() for n in g), 'names'\n"
	"    for i in range(first, 200000, 997):\n"
	"        assert g.get('m%d' % i, getlink=True).path == 'abcdefghijklmnopqrst', i\n"
	"    g.file.close()\n"
	"check()\n"
	"with h5py.File(path, 'r+', libver='latest') as f:\n"
	"    for i in range(200):\n"
	"        f[name]['judge%d' % i] = h5py.SoftLink('abcdefghijklmnopqrst')\n"
	"    for i in range(first, first + 200):\n"
	"        del f[name]['m%d' % i]\n"
	"first += 200\n"
	"check()\n";

static void judge_large_group(struct dense *d, unsigned first, unsigned count)
{
	dense_rest(d);
	scratch_run("cp %s %s.copy", d->scratch.path, d->scratch.path);
	scratch_judge("/usr/bin/python3 -c \"%s\" %s.copy %s %u %u", judge_large, d->scratch.path, d->name,
		      first, count);
	dense_open(d);
}

/* Commits one change, and returns how many writes it took to the file, and their bytes. */
static void count_writes(struct dense *d, struct fault_io *record, size_t *bytes, unsigned *writes)
{
	fault_io_release(record);
	*record = (struct fault_io){.record = true, .files = record->files};
	SUCCEEDS(dense_commit(d));
	*bytes = 0;
	*writes = 0;
	for (size_t i = 0; i < record->count; i++)
		if (record->events[i].kind == FAULT_WRITE && !record->events[i].file) {
			++*writes;
			*bytes += record->events[i].size;
		}
}

START_TEST(a_large_group)
{
	struct fault_io record = {0};
	unsigned writes, first = 0;
	struct dense *d;
	size_t bytes;

	scratch_keep_no_accounts(); /* of 200,000 links they take long */
	d = dense_begin_in("dense_write-large.h5", "links-tracked-200000", 4000, &record);
	SUCCEEDS(dense_commit(d));
	for (unsigned i = 0; i < 4000; i += 1000) {
		const char *name = dense_name(i);

		SUCCEEDS(h5_dense_remove(d->file, &d->info, d->kind, name, strlen(name)));
		count_writes(d, &record, &bytes, &writes);
		ck_assert_uint_le(writes, 20);
		ck_assert_uint_le(bytes, 16 << 10);
		SUCCEEDS(dense_insert(d, i, 20));
		count_writes(d, &record, &bytes, &writes);
		ck_assert_uint_le(writes, 20);
		ck_assert_uint_le(bytes, 100 << 10); /* one direct block with a checksum */
	}
	for (; first < 4000; first++)
		if (first % 1000) {
			const char *name = dense_name(first);

			SUCCEEDS(h5_dense_remove(d->file, &d->info, d->kind, name, strlen(name)));
		}
	dense_rest(d);
	dense_open(d);
	for (unsigned i = 0; i < 4000; i++)
		if (i % 1000)
			SUCCEEDS(dense_insert(d, i, 20 + i % 3 * 900));
	for (unsigned i = 0; i < 4000; i += 3)
		SUCCEEDS(dense_replace(d, i, i % 2 ? 20 : 100));
	judge_large_group(d, 5000, LARGE);
	dense_end(d);
	fault_io_release(&record);
}
END_TEST

/* ---- a heap whose header is no cell ---- */

START_TEST(a_header_across_pages)
{
	for (unsigned what = 0; what < 3; what++) {
		struct dense *d =
			_i ? dense_begin_in("dense_write-crossing-attributes.h5", "attributes-unordered-60",
					    100, NULL)
			   : dense_begin_in("dense_write-crossing-links.h5", "links-tracked-60", 100, NULL);
		uint64_t heap = d->info.heap;

		ck_assert(!h5_fractal_heap_is_safe(d->file, heap));
		if (what == 0)
			SUCCEEDS(dense_insert(d, 70, 30));
		else if (what == 1)
			SUCCEEDS(dense_replace(d, 7, 30));
		else
			SUCCEEDS(dense_remove(d, 7));
		ck_assert_uint_ne(d->info.heap, heap);
		ck_assert(h5_fractal_heap_is_safe(d->file, d->info.heap));
		dense_check(d);
		dense_judge(d, 2 + what);
		dense_shake(d, 20, 60);
		dense_check(d);
		dense_end(d);
	}
}
END_TEST

/* ---- names with one hash ---- */

static int insert_named(struct dense *d, const char *name, int64_t order)
{
	uint8_t bytes[64];
	struct h5_writer w = h5_writer_init(bytes, sizeof bytes, 8, 8);

	h5_write_u8(&w, 1);
	h5_write_u8(&w, 0x0c);
	h5_write_u8(&w, H5_LINK_SOFT);
	h5_write_u64(&w, (uint64_t)order);
	h5_write_u8(&w, (uint8_t)strlen(name));
	h5_write_bytes(&w, name, strlen(name));
	h5_write_u16(&w, 1);
	h5_write_bytes(&w, "x", 1);
	d->next_order = order + 1;
	return h5_dense_insert(d->file, &d->info, d->kind, name, strlen(name), bytes, h5_writer_at(&w),
			       order);
}

START_TEST(equal_hashes)
{
	static const char judge[] = "import sys, h5py\n"
				    "with h5py.File(sys.argv[1], 'r+', libver='latest') as f:\n"
				    "    g = f['links-tracked-60']\n"
				    "    names = set(sys.argv[2:])\n"
				    "    assert {n for n in g if n[0] == 't'} == names, list(g)\n"
				    "    for n in ('t27017', 't93882'):\n"
				    "        assert (g.get(n, getlink=True) is not None) == (n in names), n\n"
				    "        if n not in names:\n"
				    "            g[n] = h5py.SoftLink('y')\n"
				    "            assert g.get(n, getlink=True).path == 'y'\n"
				    "    del g['t27017'], g['t93882']\n";
	static const char *const names[] = {"t27017", "t93882"};

	for (unsigned swapped = 0; swapped < 2; swapped++) {
		const char *first = names[swapped], *second = names[1 - swapped];
		struct dense *d = dense_begin("links-tracked-60", 100, NULL);

		SUCCEEDS(insert_named(d, first, 60));
		SUCCEEDS(insert_named(d, second, 61));
		ck_assert_int_eq(insert_named(d, first, 62), -EEXIST);
		dense_rest(d);
		scratch_run("cp %s %s.copy", d->scratch.path, d->scratch.path);
		scratch_judge("/usr/bin/python3 -c \"%s\" %s.copy %s %s", judge, d->scratch.path, first,
			      second);
		dense_open(d);
		SUCCEEDS(h5_dense_remove(d->file, &d->info, d->kind, first, strlen(first)));
		ck_assert_int_eq(h5_dense_remove(d->file, &d->info, d->kind, first, strlen(first)), -ENOENT);
		dense_rest(d);
		scratch_judge("/usr/bin/python3 -c \"%s\" %s %s", judge, d->scratch.path, second);
		dense_end(d);
	}
}
END_TEST

static uint64_t count_misses(const struct dense *d)
{
	struct h5_lru_stats stats;

	h5_lru_stats(h5_file_shared(d->file)->blocks, &stats);
	return stats.misses;
}

/* What a change has written is in the cache: the next ones in the same transaction read nothing of it again.
 */
START_TEST(changes_read_nothing_again)
{
	struct dense *d = dense_begin(groups[_i], 150, NULL);
	uint64_t misses;

	dense_create(d);
	for (unsigned i = 0; i < 60; i++)
		SUCCEEDS(dense_insert(d, i, 40));
	SUCCEEDS(dense_remove(d, 0));
	misses = count_misses(d);
	for (unsigned i = 1; i < 20; i++)
		SUCCEEDS(dense_remove(d, i));
	ck_assert_uint_lt(count_misses(d) - misses, 4); /* leaves that no change has met yet */
	dense_check(d);
	SUCCEEDS(dense_commit(d));
	dense_check(d);
	dense_rest(d);
	dense_end(d);
}
END_TEST

UNIT_MAIN_LOOPS_AROUND("dense_write", scratch_keep_accounts, NULL, {random_changes, GROUPS},
		       {a_large_group, 1}, {equal_hashes, 1}, {changes_read_nothing_again, 2},
		       {a_header_across_pages, 2})
