/* A check of a whole file, of which a call fails, or that is interrupted: it tells so, and never takes space
 * for unused of which it does not know all uses. */
#include "offline/check.h"
#include "base/buf.h"
#include "change/open.h"
#include "fault_kinds.h"
#include "offline/check_private.h"
#include "scratch.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Together they have all that is verified: values, shared messages, dense storage, old groups, committed
 * datatypes, all chunk indexes, free-space managers. */
static const struct {
	const char *name;
	uint64_t lost, lost_bytes; /* values that nothing refers to */
	bool unknown;		   /* which space is used, since attributes are shared */
} files[] = {
	{.name = "check_shared.h5"},
	{.name = "check_values.h5", .lost = 1, .lost_bytes = 3},
	{.name = "dense_write-crossing-links.h5"},
	{.name = "group_write-old-7.h5"},
	{.name = "object_removal-types-2.h5"},
	{.name = "rare_library_24latest.h5"},
	{.name = "rare_types_new.h5"},
	{.name = "rare_types.h5"},
	{.name = "write_faults_persist.h5"},
	{.name = "rare_sohm_88_plain.h5", .unknown = true},
};
enum { FILES = sizeof files / sizeof *files, TEXT_MOST = 1 << 20 };

/* ---- what interrupts it ---- */

static unsigned long checks_left; /* the last of so many fails, and all behind it; 0: none does */
static int interrupts;		  /* how it fails */
static bool interrupted;

int __wrap_h5_interrupt_check(void);
int __wrap_h5_interrupt_check(void)
{
	interrupted = interrupted || (checks_left && !--checks_left);
	return interrupted ? h5_fail(interrupts, H5_UNDEF, "interrupted") : 0;
}

/* ---- checks ---- */

struct run {
	struct h5_check check;
	struct h5_buf said; /* all findings */
	uint64_t shown;	    /* calls of `progress` */
	int rc;
};

static void found(void *arg, const char *path, const struct h5_error *error)
{
	struct run *run = arg;
	bool counted = fault_alloc_count(false);

	h5_buf_printf(&run->said, "%s: %s at %ju\n", path, error->text, (uintmax_t)error->address);
	fault_alloc_count(counted);
}

static void show(void *arg, const char *path, uint64_t bytes)
{
	struct run *run = arg;

	ck_assert(*path == '/' || *path == '(');
	ck_assert_uint_eq(bytes, run->check.bytes);
	run->shown++;
}

/* In a folder of its own, where few names are looked at. */
static void copy_fixture(const char *name, char path[512])
{
	char original[512];

	scratch_fixture(name, original);
	snprintf(path, 512, "%s/%s", scratch_folder(), name);
	scratch_copy(original, path);
}

static struct h5_file_set *open_set(const char *path)
{
	const struct h5_file_set_options options = {
		.block_cache = 1 << 20, .chunk_cache = 1 << 20, .lock = H5_LOCK_NONE};
	struct h5_file_set *set;

	SUCCEEDS(h5_open_file(path, &options, &set, NULL));
	return set;
}

static void run(struct h5_file_set *set, struct run *run)
{
	/* A check overwrites the numbers that its caller has left there. */
	*run = (struct run){.check = {.found = found,
				      .progress = show,
				      .arg = run,
				      .objects = 1,
				      .chunks = 2,
				      .bytes = 3,
				      .damaged = 4,
				      .unknown = 5,
				      .excess = 6}};
	h5_buf_init(&run->said, TEXT_MOST);
	fault_alloc_count(true);
	run->rc = h5_check_file(h5_file_set_root(set), &run->check);
	fault_alloc_count(false);
}

static void release(struct run *run)
{
	h5_extents_release(&run->check.unused);
	h5_buf_release(&run->said);
}

static uint64_t bytes_of(const struct h5_extents *extents)
{
	uint64_t bytes = 0;

	h5_extents_each(e, extents) bytes += e->size;
	return bytes;
}

/* Both have found the same. */
static bool is_same(const struct run *a, const struct run *b)
{
	const struct h5_check *x = &a->check, *y = &b->check;

	return a->rc == b->rc && x->objects == y->objects && x->chunks == y->chunks && x->bytes == y->bytes &&
	       x->damaged == y->damaged && x->unknown == y->unknown && x->excess == y->excess &&
	       x->lost_values == y->lost_values && x->lost_bytes == y->lost_bytes &&
	       x->values_known == y->values_known && x->unused_known == y->unused_known &&
	       bytes_of(&x->unused) == bytes_of(&y->unused) && a->said.size == b->said.size &&
	       (!a->said.size || !memcmp(a->said.data, b->said.data, a->said.size));
}

/* Of a check that was not finished, or of which a call has failed: nobody knows what is unused. */
static void assert_uncertain(const struct run *r, const char *file, unsigned long n)
{
	const struct h5_check *c = &r->check;

	ck_assert_msg(!c->unused_known && !c->values_known && !c->unused.count, "%s, %lu: %d, %.*s", file, n,
		      r->rc, (int)r->said.size, r->said.data);
}

START_TEST(every_call_can_fail)
{
	const char *file = files[_i % FILES].name;
	const struct fault *fault = &faults[_i / FILES];
	struct h5_file_set *set;
	struct run sound, r;
	bool fired = true;
	char path[512];

	copy_fixture(file, path);
	set = open_set(path);
	run(set, &sound);
	h5_file_set_close(set);
	ck_assert_int_eq(sound.rc, 0);
	ck_assert_uint_eq(sound.check.damaged + sound.check.unknown + sound.check.excess, 0);
	ck_assert_int_eq(sound.check.unused_known, !files[_i % FILES].unknown);
	ck_assert_int_eq(sound.check.values_known, !files[_i % FILES].unknown);
	ck_assert_uint_ge(sound.shown, sound.check.objects + sound.check.chunks);
	if (sound.check.values_known && _i % FILES < 2) {
		ck_assert_uint_eq(sound.check.lost_values, files[_i % FILES].lost);
		ck_assert_uint_eq(sound.check.lost_bytes, files[_i % FILES].lost_bytes);
	}
	for (unsigned long n = 1; fired; n++) {
		set = open_set(path);
		fault->arm(n);
		run(set, &r);
		fired = fault->disarm();
		h5_file_set_close(set);
		if (!fired) {
			ck_assert_msg(is_same(&r, &sound), "%s, %lu", file, n);
		} else {
			assert_uncertain(&r, file, n);
			ck_assert_msg(r.rc == fault->error ||
					      (!r.rc && fault->error == -EIO && r.check.damaged),
				      "%s, %lu: %d %s", file, n, r.rc, h5_error_last()->text);
		}
		release(&r);
	}
	release(&sound);
}
END_TEST

/* A signal ends it. Too much work is told, and what is left is not verified. */
START_TEST(every_interruption)
{
	static const int codes[] = {-EINTR, -EFBIG};
	const char *file = files[_i % FILES].name;
	unsigned long unknown = 0;
	char path[512];

	copy_fixture(file, path);
	interrupts = codes[_i / FILES];
	interrupted = true;
	for (unsigned long n = 1; interrupted; n++) {
		struct h5_file_set *set;
		struct run r;

		checks_left = 0;
		interrupted = false;
		set = open_set(path);
		checks_left = n;
		run(set, &r);
		checks_left = 0;
		h5_file_set_close(set);
		if (interrupted)
			assert_uncertain(&r, file, n);
		ck_assert_msg(r.rc == (interrupted && interrupts == -EINTR ? -EINTR : 0), "%s, %lu: %d", file,
			      n, r.rc);
		ck_assert_uint_eq(r.check.damaged, 0);
		unknown += r.check.unknown;
		release(&r);
	}
	ck_assert_int_eq(unknown > 0, interrupts == -EFBIG);
}
END_TEST

/* ---- what findings are about ---- */

/* Reads fail one after the other: the structure is told that was read. */
START_TEST(reads_of_each_structure)
{
	static const char *const all[] = {"(superblock extension)",
					  "(shared messages)",
					  "(free space)",
					  "(space)",
					  "/",
					  "/d0",
					  "/d1",
					  "(space)"};
	size_t at = 0;
	bool fired = true;
	char path[512];

	scratch_fixture("write_faults_persist.h5", path);
	for (unsigned long n = 1; fired; n++) {
		struct h5_file_set *set = open_set(path);
		const char *end;
		struct run r;

		fault_arm_read(n);
		run(set, &r);
		fired = fault_call_disarm();
		h5_file_set_close(set);
		if (fired) {
			ck_assert_uint_gt(r.said.size, 0);
			end = memchr(r.said.data, ':', r.said.size);
			*(char *)(uintptr_t)end = 0;
			at += n > 1 && strcmp(r.said.data, all[at]) != 0;
			ck_assert_uint_lt(at, sizeof all / sizeof *all);
			ck_assert_str_eq(r.said.data, all[at]);
		}
		release(&r);
	}
	ck_assert_uint_eq(at, sizeof all / sizeof *all - 1);
}
END_TEST

/* Also of a file that does not begin with its superblock. */
START_TEST(files_that_are_cut)
{
	static const char *const all[] = {"check_shared.h5", "header_edit_block.h5"};

	for (int i = 0; i < 2; i++)
		for (off_t less = 0; less < 2; less++) {
			char path[512], expected[200];
			struct h5_file_set *set;
			struct stat st;
			struct run r;

			copy_fixture(all[i], path);
			ck_assert_int_eq(stat(path, &st), 0);
			ck_assert_int_eq(truncate(path, st.st_size - less), 0);
			set = open_set(path);
			run(set, &r);
			h5_file_set_close(set);
			snprintf(expected, sizeof expected,
				 "(superblock): truncated: %jd bytes of %jd at %ju\n",
				 (intmax_t)(st.st_size - less), (intmax_t)st.st_size, (uintmax_t)H5_UNDEF);
			ck_assert_int_eq(r.rc, 0);
			ck_assert_uint_eq(r.check.damaged > 0, less > 0);
			ck_assert(!less ? !r.said.size
					: r.said.size >= strlen(expected) &&
						  !memcmp(r.said.data, expected, strlen(expected)));
			release(&r);
		}
}
END_TEST

/* If the end is before the superblock, or unknown, the check does not tell what is unused. */
START_TEST(files_that_end_before_they_begin)
{
	enum { BASE = 1024, END_FIELD = 40 };
	static const uint64_t ends[] = {BASE - 1, H5_UNDEF};
	struct h5_file_set *set;
	char path[512];
	struct run r;

	copy_fixture("symbol_table_write-block.h5", path);
	for (int i = -1; i < 2; i++) {
		if (i >= 0) {
			int fd = open(path, O_WRONLY | O_CLOEXEC);

			ck_assert_int_eq(pwrite(fd, &ends[i], sizeof ends[i], BASE + END_FIELD),
					 sizeof ends[i]);
			close(fd);
		}
		set = open_set(path);
		run(set, &r);
		h5_file_set_close(set);
		ck_assert_int_eq(r.rc, 0);
		ck_assert_uint_eq(r.check.damaged, 0);
		ck_assert_int_eq(r.check.unused_known, i < 0);
		release(&r);
	}
}
END_TEST

/* Values of other objects lie where nothing is that an object says. */
START_TEST(collections_are_used)
{
	static const char *const all[] = {"check_values.h5", "rare_library_24latest.h5"};

	for (int i = 0; i < 2; i++) {
		struct h5_file_set *set;
		const uint8_t *found;
		uint8_t bytes[20000];
		char path[512];
		struct run r;
		FILE *file;
		size_t n;

		scratch_fixture(all[i], path);
		file = fopen(path, "r");
		ck_assert_ptr_nonnull(file);
		n = fread(bytes, 1, sizeof bytes, file);
		fclose(file);
		found = memmem(bytes, n, "GCOL", 4);
		ck_assert_ptr_nonnull(found);
		set = open_set(path);
		run(set, &r);
		h5_file_set_close(set);
		ck_assert(r.check.unused_known && r.check.unused.count);
		ck_assert(!h5_extents_touches(&r.check.unused, (uint64_t)(found - bytes), 4096));
		h5_extents_each(e, &r.check.unused) ck_assert_uint_le(e->address + e->size, n);
		release(&r);
	}
}
END_TEST

/* ---- counts of links ---- */

static void add_line(void *arg, const char *path, const struct h5_error *error)
{
	h5_buf_printf(arg, "%s: %s\n", path, error->text);
}

static void add_damage(void *arg, const struct h5_error *error)
{
	struct h5_checker *checker = arg;

	add_line(checker->check->arg, checker->path, error);
}

static void expect_next(struct h5_check_walk *walk, uint64_t address, const char *path)
{
	const char *found;
	uint64_t at;

	ck_assert(h5_check_next(walk, &at, &found));
	ck_assert_uint_eq(at, address);
	ck_assert_str_eq(found, path);
}

/* Of an object that was checked, and has as many links as it counts, the path is not kept: if there are more,
 * the next one is told. */
START_TEST(paths_of_wrong_counts)
{
	struct h5_buf said;
	struct h5_check check = {.found = add_line, .arg = &said};
	struct h5_checker checker = {.check = &check, .damage.heard = add_damage};
	struct h5_check_walk *walk = &checker.walk;
	const char *path;
	uint64_t address;

	h5_buf_init(&said, TEXT_MOST);
	checker.damage.arg = &checker;
	SUCCEEDS(h5_check_add(walk, 100, "/low"));
	SUCCEEDS(h5_check_add(walk, 200, "/two"));
	SUCCEEDS(h5_check_add(walk, 200, "/other"));
	SUCCEEDS(h5_check_add(walk, 300, "/unread"));
	SUCCEEDS(h5_check_add(walk, 400, "/high"));
	SUCCEEDS(h5_check_add(walk, 500, "/end"));
	expect_next(walk, 100, "/low");
	h5_check_set_count(walk, 1);
	expect_next(walk, 200, "/two");
	h5_check_set_count(walk, 1);
	expect_next(walk, 300, "/unread");
	expect_next(walk, 400, "/high");
	h5_check_set_count(walk, 3);
	expect_next(walk, 500, "/end");
	h5_check_set_count(walk, 1);
	SUCCEEDS(h5_check_add(walk, 100, "/end/late"));
	SUCCEEDS(h5_check_add(walk, 100, "/end/later"));
	SUCCEEDS(h5_check_add(walk, 300, "/end/late"));
	SUCCEEDS(h5_check_add(walk, 400, "/end/late"));
	ck_assert(!h5_check_next(walk, &address, &path));
	SUCCEEDS(h5_check_counts(&checker));
	h5_buf_byte(&said, 0);
	ck_assert_str_eq(said.data,
			 "/end/late: object header: counts 1 links to it, but there are 3\n"
			 "/two: object header: counts 1 links to it, but there are 2\n"
			 "/high: object header: counts 3 links to it, but there are 2, so its space will "
			 "not be given back\n");
	ck_assert_uint_eq(check.excess, 1);
	h5_check_walk_release(walk);
	h5_buf_release(&said);
}
END_TEST

/* ---- values ---- */

/* Nobody knows to what an element refers of which a part cannot be read. */
START_TEST(elements_that_cannot_be_read)
{
	/* One element, in an object at an address where no heap is. */
	static const uint8_t element[16] = {1, [4] = 200, [12] = 1};
	struct h5_datatype byte = {.class = H5_CLASS_INTEGER, .size = 1},
			   bytes = {.class = H5_CLASS_VLEN, .size = 16, .vlen.base = &byte},
			   lists = {.class = H5_CLASS_VLEN, .size = 16, .vlen.base = &bytes};
	struct h5_buf said;
	struct h5_check check = {.found = add_line, .arg = &said};
	struct h5_checker checker = {.check = &check, .path = "/x", .damage.heard = add_damage};
	struct h5_file_set *set;
	char path[512];

	h5_buf_init(&said, TEXT_MOST);
	scratch_fixture("check_shared.h5", path);
	set = open_set(path);
	checker.file = h5_file_set_root(set);
	checker.damage.arg = &checker;
	h5_check_values_init(&checker.values, checker.file);
	SUCCEEDS(h5_check_add_references(&checker, &byte, element));
	ck_assert_uint_eq(said.size, 0);
	/* A damaged object is reported, and the check still knows all references. */
	SUCCEEDS(h5_check_add_references(&checker, &bytes, element));
	ck_assert(said.size && h5_check_values_are_known(&checker.values));
	SUCCEEDS(h5_check_add_references(&checker, &lists, element));
	ck_assert(!h5_check_values_are_known(&checker.values));
	h5_check_values_release(&checker.values);
	h5_file_set_close(set);
	h5_buf_release(&said);
}
END_TEST

/* Values in elements that are read one after the other; their chunks have so many bytes. */
START_TEST(elements_in_pieces)
{
	struct h5_file_set *set;
	unsigned long long bytes;
	char path[512];
	struct run r;
	FILE *list;

	scratch_fixture("check_pieces.list", path);
	list = fopen(path, "r");
	ck_assert_ptr_nonnull(list);
	ck_assert_int_eq(fscanf(list, "%llu", &bytes), 1);
	fclose(list);
	scratch_fixture("check_pieces.h5", path);
	set = open_set(path);
	run(set, &r);
	h5_file_set_close(set);
	ck_assert_int_eq(r.rc, 0);
	ck_assert_uint_eq(r.check.damaged + r.check.unknown + r.check.excess, 0);
	ck_assert(r.check.values_known && r.check.unused_known);
	ck_assert_uint_eq(r.check.lost_values, 0);
	ck_assert_uint_eq(r.check.chunks, 6);
	ck_assert_uint_eq(r.check.bytes, bytes);
	release(&r);
}
END_TEST

UNIT_MAIN_LOOPS("check", {reads_of_each_structure, 1}, {files_that_are_cut, 1},
		{files_that_end_before_they_begin, 1}, {collections_are_used, 1},
		{every_call_can_fail, FILES *FAULTS}, {every_interruption, FILES * 2},
		{paths_of_wrong_counts, 1}, {elements_that_cannot_be_read, 1}, {elements_in_pieces, 1})
