/* Pictures, plots, text and other forms of datasets, while a call fails or a request is interrupted: that is
 * told, and nothing wrong is kept for the next reader. */
#include "base/buf.h"
#include "base/error.h"
#include "fault_kinds.h"
#include "scratch.h"
#include "store/block.h"
#include "vfs_scene.h"

#include <fcntl.h>
#include <string.h>

enum { PIECE = 7000, MOST = 1 << 20 };

/* The files of the mounts of these, one after the other. */
static const char *const fixtures[] = {"check_views.h5", "check_zarr.h5", "check_netcdf.h5"};
static const char *const files[] = {
	".h5fs/png/picture.png",	".h5fs/png/numbers.png",   ".h5fs/png/movie/0001.png",
	".h5fs/svg/line.svg",		".h5fs/svg/rows.svg",	   ".h5fs/lines/unwritten",
	".h5fs/csv/rows.csv",		".h5fs/csv/texts.csv",	   "texts",
	".h5fs/json/line.json",		".h5fs/json/.json",	   ".h5fs/npy/line.npy",
	".h5fs/npy/rows.npy",		".h5fs/kerchunk.json",	   ".h5fs/zarr/.zmetadata",
	".h5fs/zarr/line/.zarray",	".h5fs/zarr/line/.zattrs", ".h5fs/zarr/line/3",
	".h5fs/zarr/texts/4",		".h5fs/zarr3/zarr.json",   ".h5fs/zarr3/line/zarr.json",
	".h5fs/zarr3/texts/zarr.json",	".h5fs/zarr3/texts/c/4",   ".h5fs/zarr/rows/0",
	".h5fs/zarr/nc/values/.zattrs", ".h5fs/zarr/nc/values/1",  ".h5fs/json/nc/values.json",
	".h5fs/kerchunk.json",		".h5fs/zarr/.zmetadata",   ".h5fs/zarr/gap/1",
	".h5fs/zarr/odd/.zattrs",	".h5fs/zarr/x/.zattrs",	   "kind",
	".h5fs/npy/padded.npy",		".h5fs/zarr/padded/0",	   ".h5fs/kerchunk.json",
	".h5fs/zarr/short/.zarray",
};
enum { FILES = sizeof files / sizeof *files, FROM_SECOND = FILES - 10, FROM_THIRD = FILES - 2 };

static struct vfs_scene scene;
static struct h5_buf sound, found;

/* ---- calls that fail once ---- */

enum call { INTERRUPT, CHARGE, BLOCK, CALLS };

static unsigned long calls_left[CALLS]; /* the last of so many fails, and that one alone; 0: none does */
static bool call_failed;

static bool fails(enum call call)
{
	bool last = calls_left[call] == 1;

	calls_left[call] -= calls_left[call] > 0;
	call_failed |= last;
	return last;
}

static void arm_interrupt(unsigned long n)
{
	calls_left[INTERRUPT] = n;
}

static void arm_charge(unsigned long n)
{
	calls_left[CHARGE] = n;
}

static void arm_block(unsigned long n)
{
	calls_left[BLOCK] = n;
}

static bool disarm(void)
{
	bool failed = call_failed;

	memset(calls_left, 0, sizeof calls_left);
	call_failed = false;
	return failed;
}

int __wrap_h5_interrupt_check(void);
int __wrap_h5_interrupt_check(void)
{
	return fails(INTERRUPT) ? h5_fail(-EINTR, H5_UNDEF, "interrupted") : 0;
}

/* The request has had all the memory that it may have. */
int __real_h5_charge_set(struct h5_charge *charge, size_t bytes);
int __wrap_h5_charge_set(struct h5_charge *charge, size_t bytes);
int __wrap_h5_charge_set(struct h5_charge *charge, size_t bytes)
{
	return bytes && fails(CHARGE) ? -ENOMEM : __real_h5_charge_set(charge, bytes);
}

/* Also of what is in the cache. */
int __real_h5_file_block(struct h5_file *file, const struct h5_block_type *type, uint64_t address,
			 uint64_t variant, const void *arg, struct h5_lru_entry **ref);
int __wrap_h5_file_block(struct h5_file *file, const struct h5_block_type *type, uint64_t address,
			 uint64_t variant, const void *arg, struct h5_lru_entry **ref);
int __wrap_h5_file_block(struct h5_file *file, const struct h5_block_type *type, uint64_t address,
			 uint64_t variant, const void *arg, struct h5_lru_entry **ref)
{
	if (!fails(BLOCK))
		return __real_h5_file_block(file, type, address, variant, arg, ref);
	*ref = NULL;
	return h5_fail(-EIO, address, "cannot be read");
}

/* ---- reading ---- */

static int read_open(struct h5_handle *handle, struct h5_buf *out)
{
	static char piece[PIECE];
	uint64_t offset = 0;
	size_t got;
	int rc;

	do {
		rc = h5_vfs_read(handle, offset, piece, sizeof piece, &got);
		if (rc)
			break;
		h5_buf_add(out, piece, got);
		offset += got;
	} while (got);
	return rc;
}

static int read_file(struct h5_node *node, struct h5_buf *out)
{
	struct h5_handle *handle;
	int rc;

	out->size = 0;
	h5_error_clear();
	fault_alloc_count(true);
	rc = h5_vfs_open_file(scene.vfs, node, O_RDONLY, &handle);
	if (!rc) {
		rc = read_open(handle, out);
		h5_vfs_close_file(handle);
	}
	fault_alloc_count(false);
	return rc;
}

static bool is_sound(void)
{
	return found.size == sound.size && !memcmp(found.data, sound.data, sound.size);
}

static void setup(void)
{
	h5_buf_init(&sound, MOST);
	h5_buf_init(&found, MOST);
}

static void open_scene(unsigned fixture)
{
	vfs_scene_open_in_place(&scene, fixtures[fixture]);
}

/* Opens the mount that has the file, and reads it into `sound`. */
static struct h5_node *find_file(unsigned file)
{
	struct h5_node *node;

	open_scene(file < FROM_SECOND ? 0 : file < FROM_THIRD ? 1 : 2);
	SUCCEEDS(vfs_scene_find(&scene, files[file], &node));
	SUCCEEDS(read_file(node, &sound));
	ck_assert_uint_gt(sound.size, 0);
	return node;
}

static void teardown(void)
{
	vfs_scene_close(&scene);
	h5_buf_release(&sound);
	h5_buf_release(&found);
}

/* The n-th fault for each n that there is, but of those beyond 120 only some. `always`: it cannot go by
 * without an error. */
static void meet(unsigned file, const struct fault *fault, bool always)
{
	const char *const path = files[file];
	struct h5_node *node = find_file(file);
	bool fired = true;
	int rc;

	/* The test's own buffer does not grow in a call that may fail. */
	SUCCEEDS(read_file(node, &found));
	for (unsigned long n = 1; fired; n += n < 120 ? 1 : 19) {
		vfs_scene_empty_caches(&scene);
		fault->arm(n);
		rc = read_file(node, &found);
		fired = fault->disarm();
		ck_assert_msg(rc ? fired && rc == fault->error : is_sound() && !(fired && always),
			      "%s, %lu: %d %s", path, n, rc, h5_error_last()->text);
		SUCCEEDS(read_file(node, &found));
		ck_assert_msg(is_sound(), "%s, after %lu", path, n);
	}
	h5_vfs_forget(scene.vfs, node, 1);
}

START_TEST(calls_that_fail)
{
	meet((unsigned)_i % FILES, &faults[_i / FILES], false);
}
END_TEST

START_TEST(calls_of_our_own_fail)
{
	static const struct fault own[] = {
		{arm_interrupt, disarm, -EINTR}, {arm_charge, disarm, -ENOMEM}, {arm_block, disarm, -EIO}};

	const unsigned file = (unsigned)_i % FILES;

	/* In JSON, memory is asked for also for a list that turns out to be empty. */
	meet(file, &own[_i / FILES], _i < FILES || (_i < 2 * FILES && !strstr(files[file], "/json/")));
}
END_TEST

/* The caches are empty when an open file is read, so the read makes its contents again. */
START_TEST(reads_that_are_interrupted)
{
	struct h5_node *node = find_file((unsigned)_i);
	bool fired = true;

	for (unsigned long n = 1; fired; n += n < 120 ? 1 : 19) {
		struct h5_handle *handle;
		int rc;

		SUCCEEDS(h5_vfs_open_file(scene.vfs, node, O_RDONLY, &handle));
		vfs_scene_empty_caches(&scene);
		found.size = 0;
		arm_interrupt(n);
		rc = read_open(handle, &found);
		fired = disarm();
		h5_vfs_close_file(handle);
		ck_assert_msg(fired ? rc == -EINTR : !rc && is_sound(), "%s, %lu: %d", files[_i], n, rc);
	}
	h5_vfs_forget(scene.vfs, node, 1);
}
END_TEST

/* ---- what is told ---- */

#define BYTES(text) text, sizeof(text) - 1

START_TEST(files_say_what_is_so)
{
	static const struct {
		unsigned fixture;
		const char *path, *part; /* that is in the file */
		size_t n;
	} cases[] = {
		{2, ".h5fs/zarr/short/.zattrs", BYTES("\"_ARRAY_DIMENSIONS\":[\"time\"]")},
		{2, ".h5fs/zarr/short/.zarray", BYTES("\"shape\":[5],\"chunks\":[200000]")},
		{1, ".h5fs/zarr/odd/.zattrs", BYTES("\"_ARRAY_DIMENSIONS\":[\"x\"]")},
		{1, ".h5fs/zarr/empty/.zattrs", BYTES("\"_ARRAY_DIMENSIONS\":[\"phony_dim_3\"]")},
		{1, ".h5fs/zarr/integers/.zattrs", BYTES("\"_ARRAY_DIMENSIONS\":[\"phony_dim_3\"]")},
		{1, ".h5fs/zarr/plane/.zattrs",
		 BYTES("\"_ARRAY_DIMENSIONS\":[\"phony_dim_2\",\"phony_dim_3\"]")},
		{1, ".h5fs/zarr/edge/.zattrs",
		 BYTES("\"_ARRAY_DIMENSIONS\":[\"phony_dim_2\",\"phony_dim_3\"]")},
		{1, ".h5fs/zarr/real/.zattrs",
		 BYTES("\"_ARRAY_DIMENSIONS\":[\"phony_dim_2\",\"phony_dim_3\"]")},
		{1, ".h5fs/zarr/x/.zattrs", BYTES("\"wide\":[1.5,-0.0,2.0,Infinity,NaN,1e+22]")},
		{1, ".h5fs/zarr/texts/0",
		 BYTES("\3\0\0\0\x8\0\0\0a\xef\xbf\xbd\xef\xbf\xbd"
		       "b\2\0\0\0\xc3\xa9\0\0\0\0")},
		{1, ".h5fs/zarr/padded/0", BYTES("ab\0\0\0a bc\0\0\0\0\0\0")},
		{1, ".h5fs/json/strange.json",
		 BYTES("\"filters\": [{\"id\": 40000, \"name\": null, \"values\": [5, 6]}]")},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_node *node;

		if (!i || cases[i].fixture != cases[i - 1].fixture) {
			if (i)
				vfs_scene_close(&scene);
			open_scene(cases[i].fixture);
		}
		SUCCEEDS(vfs_scene_find(&scene, cases[i].path, &node));
		SUCCEEDS(read_file(node, &found));
		ck_assert_msg(memmem(found.data, found.size, cases[i].part, cases[i].n), "%s: %.*s",
			      cases[i].path, (int)found.size, found.data);
		h5_vfs_forget(scene.vfs, node, 1);
	}
}
END_TEST

/* Chunks of 3 and of 4 bytes, from which 4 are taken for a checksum. */
START_TEST(damaged_chunks_are_seen)
{
	static const char *const paths[] = {".h5fs/zarr/damaged/0", ".h5fs/zarr/damaged/1"};

	open_scene(1);
	for (unsigned i = 0; i < 2; i++) {
		struct h5_node *node;
		int rc;

		SUCCEEDS(vfs_scene_find(&scene, paths[i], &node));
		rc = read_file(node, &found);
		ck_assert_msg(rc == (i ? 0 : -EUCLEAN), "%u: %d %s", i, rc, h5_error_last()->text);
		ck_assert_uint_eq(found.size, 0);
		h5_vfs_forget(scene.vfs, node, 1);
	}
}
END_TEST

/* A name is to be removed, and looking for it fails: it may be there all the same. */
START_TEST(a_file_beside_those_of_a_view)
{
	struct h5_node *directory;
	unsigned failures = 0;
	bool fired = true;
	int rc;

	vfs_scene_open(&scene, fixtures[0]);
	SUCCEEDS(vfs_scene_find(&scene, ".h5fs/csv", &directory));
	for (unsigned long n = 1; fired; n++) {
		vfs_scene_empty_caches(&scene);
		arm_interrupt(n);
		rc = h5_vfs_unlink(scene.vfs, directory, "none~");
		fired = disarm();
		ck_assert_int_eq(rc, fired ? -EINTR : -ENOENT);
		failures += fired;
	}
	ck_assert_uint_gt(failures, 0);
	h5_vfs_forget(scene.vfs, directory, 1);
}
END_TEST

int main(void)
{
	const struct unit_test tests[] = {
		{calls_that_fail, FILES * FAULTS},   {calls_of_our_own_fail, FILES * 3},
		{reads_that_are_interrupted, FILES}, {files_say_what_is_so, 1},
		{damaged_chunks_are_seen, 1},	     {a_file_beside_those_of_a_view, 1}};

	return unit_run("views", setup, teardown, tests, sizeof tests / sizeof *tests);
}
