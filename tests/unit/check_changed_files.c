/* Files that are open while the mounted file changes. What is asked for next opens the view anew, and each
 * call that reads or allocates for that fails once: it is the right error, or the same bytes as before the
 * change, and the next one succeeds. */
#include "fault_kinds.h"
#include "scratch.h"
#include "vfs_scene.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST = 1 << 16 };

/* One of each view. */
static const char *const paths[] = {
	"contiguous",
	"appendable",
	"lines",
	"records",
	"regions",
	"type",
	".h5fs/csv/appendable.csv",
	".h5fs/npy/appendable.npy",
	".h5fs/attrs/few/text",
	".h5fs/json/twice.json",
	".h5fs/lines/twice",
	".h5fs/png/picture.png",
	".h5fs/png/stack/0001.png",
	".h5fs/csv/stack/0002.csv",
	".h5fs/svg/measured.svg",
	".h5fs/zarr/words/0",
	".h5fs/zarr/words/.zattrs",
	".h5fs/zarr3/single/c/0/0",
};
enum { PATHS = sizeof paths / sizeof *paths };

/* ---- faults ---- */

static void arm(const struct fault *fault, unsigned long n)
{
	h5_error_clear();
	fault_alloc_count(true);
	fault->arm(n);
}

static bool disarm(const struct fault *fault)
{
	fault_alloc_count(false);
	return fault->disarm();
}

/* ---- reading ---- */

struct contents {
	uint8_t bytes[MOST];
	size_t size;
};

static int read_whole(struct h5_handle *handle, struct contents *contents)
{
	memset(contents, 0xa5, sizeof *contents);
	return h5_vfs_read(handle, 0, contents->bytes, MOST, &contents->size);
}

static bool are_same(const struct contents *a, const struct contents *b)
{
	return a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

/* A change of something else: what was opened before it is opened anew, but nothing of it is in the cache. */
static void change(struct vfs_scene *scene)
{
	SUCCEEDS(vfs_scene_set(scene, "twice", "user.changed", "1"));
	SUCCEEDS(vfs_scene_set(scene, "twice", "user.changed", "2"));
}

static void read_again(struct vfs_scene *scene, const char *path, const struct fault *fault)
{
	static struct contents first, now;
	struct h5_handle *handle;
	struct h5_node *node;
	bool fired = true;

	SUCCEEDS(vfs_scene_find(scene, path, &node));
	for (unsigned long n = 1; fired; n++) {
		int rc;

		SUCCEEDS(h5_vfs_open_file(scene->vfs, node, O_RDONLY, &handle));
		SUCCEEDS(read_whole(handle, &first));
		ck_assert_uint_gt(first.size, 0);
		change(scene);
		vfs_scene_empty_caches(scene);
		arm(fault, n);
		rc = read_whole(handle, &now);
		fired = disarm(fault);
		ck_assert_msg(rc ? fired && rc == fault->error : are_same(&first, &now), "%s, %lu: %d %s",
			      path, n, rc, h5_error_last()->text);
		SUCCEEDS(read_whole(handle, &now));
		ck_assert_msg(are_same(&first, &now), "%s, after %lu", path, n);
		h5_vfs_close_file(handle);
	}
	h5_vfs_forget(scene->vfs, node, 1);
}

START_TEST(views_are_read_again)
{
	struct vfs_scene scene;

	vfs_scene_open(&scene, "read_faults/new.h5");
	for (size_t i = 0; i < PATHS; i++)
		for (size_t j = 0; j < FAULTS; j++)
			read_again(&scene, paths[i], &faults[j]);
	vfs_scene_close(&scene);
}
END_TEST

/* ---- holes ---- */

static void seek_again(struct vfs_scene *scene, const char *path, const struct fault *fault, bool hole,
		       uint64_t expected)
{
	struct h5_handle *handle;
	struct h5_node *node;
	bool fired = true;

	SUCCEEDS(vfs_scene_find(scene, path, &node));
	for (unsigned long n = 1; fired; n++) {
		uint64_t found;
		int rc;

		SUCCEEDS(h5_vfs_open_file(scene->vfs, node, O_RDONLY, &handle));
		change(scene);
		vfs_scene_empty_caches(scene);
		arm(fault, n);
		rc = h5_vfs_seek(handle, 0, hole, &found);
		fired = disarm(fault);
		ck_assert_msg(rc ? fired && rc == fault->error : found == expected, "%s, %lu: %d %s", path, n,
			      rc, h5_error_last()->text);
		SUCCEEDS(h5_vfs_seek(handle, 0, hole, &found));
		ck_assert_uint_eq(found, expected);
		h5_vfs_close_file(handle);
	}
	h5_vfs_forget(scene->vfs, node, 1);
}

START_TEST(holes_are_looked_for_again)
{
	struct vfs_scene scene;

	vfs_scene_open(&scene, "read_faults/new.h5");
	for (size_t j = 0; j < FAULTS; j++) {
		/* 100000 rows of 40 bytes, of which 30000 to 39999 and 60000 to 79999 are stored. */
		seek_again(&scene, "sparse", &faults[j], false, 1200000);
		seek_again(&scene, "sparse", &faults[j], true, 0);
		seek_again(&scene, "contiguous", &faults[j], true, 9600);
	}
	vfs_scene_close(&scene);
}
END_TEST

/* New contents that are not whole have data up to their end. */
START_TEST(new_contents_have_no_holes)
{
	enum { NEW = 100 };
	static struct contents before, after;
	static const char data[NEW];
	struct h5_handle *handle;
	struct vfs_scene scene;
	struct h5_node *node;
	uint64_t stale, found = 0;
	size_t written;

	vfs_scene_open(&scene, "read_faults/new.h5");
	SUCCEEDS(vfs_scene_find(&scene, "contiguous", &node));
	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, O_RDWR, &handle));
	SUCCEEDS(read_whole(handle, &before));
	SUCCEEDS(h5_vfs_truncate(scene.vfs, node, handle, 0, &stale));
	ck_assert_int_eq(h5_vfs_seek(handle, 0, false, &found), -ENXIO);
	ck_assert_int_eq(h5_vfs_seek(handle, 0, true, &found), -ENXIO);
	SUCCEEDS(h5_vfs_write(handle, 0, data, NEW, H5_WRITE_AT, &written, &stale));
	for (uint64_t at = 0; at < NEW; at++) {
		SUCCEEDS(h5_vfs_seek(handle, at, false, &found));
		ck_assert_uint_eq(found, at);
		SUCCEEDS(h5_vfs_seek(handle, at, true, &found));
		ck_assert_uint_eq(found, NEW);
	}
	ck_assert_int_eq(h5_vfs_seek(handle, NEW, false, &found), -ENXIO);
	ck_assert_int_eq(h5_vfs_seek(handle, NEW, true, &found), -ENXIO);
	h5_vfs_close_file(handle);
	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, O_RDONLY, &handle));
	SUCCEEDS(read_whole(handle, &after));
	ck_assert(are_same(&before, &after));
	h5_vfs_close_file(handle);
	h5_vfs_forget(scene.vfs, node, 1);
	vfs_scene_close(&scene);
}
END_TEST

/* ---- opening to write ---- */

/* The first of a mount, which has no writer of the dataset yet, fails at the n-th call; then it writes.
 * False: there is no such call. */
static bool open_to_write(const char *path, const char *data, enum h5_write_where where,
			  const struct fault *fault, unsigned long n)
{
	struct h5_handle *handle;
	struct vfs_scene scene;
	struct h5_node *node;
	uint64_t stale;
	size_t written;
	bool fired;
	int rc;

	vfs_scene_open(&scene, "read_faults/new.h5");
	SUCCEEDS(vfs_scene_find(&scene, path, &node));
	vfs_scene_empty_caches(&scene);
	arm(fault, n);
	rc = h5_vfs_open_file(scene.vfs, node, O_RDWR, &handle);
	fired = disarm(fault);
	ck_assert_msg(!rc || (fired && rc == fault->error), "%s, %lu: %d %s", path, n, rc,
		      h5_error_last()->text);
	if (rc)
		SUCCEEDS(h5_vfs_open_file(scene.vfs, node, O_RDWR, &handle));
	SUCCEEDS(h5_vfs_write(handle, 0, data, 4, where, &written, &stale));
	ck_assert_uint_eq(written, 4);
	h5_vfs_close_file(handle);
	h5_vfs_forget(scene.vfs, node, 1);
	vfs_scene_close(&scene);
	return fired;
}

START_TEST(files_are_opened_to_write)
{
	static const struct {
		const char *path, *data;
		enum h5_write_where where;
	} files[] = {{"contiguous", "\1\2\3\4", H5_WRITE_AT},
		     {"appendable", "\1\2\3\4", H5_WRITE_AT},
		     {".h5fs/lines/many", "567\n", H5_WRITE_APPEND}};

	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		for (size_t j = 0; j < FAULTS; j++)
			for (unsigned long n = 1;
			     open_to_write(files[i].path, files[i].data, files[i].where, &faults[j], n); n++)
				;
}
END_TEST

/* Text is written only at its end, which has to be found. */
static void write_at_end(struct vfs_scene *scene, const char *path, const char *line,
			 const struct fault *fault)
{
	static struct contents before, after;
	const size_t more = strlen(line);
	struct h5_handle *handle;
	struct h5_node *node;
	bool fired = true;

	SUCCEEDS(vfs_scene_find(scene, path, &node));
	for (unsigned long n = 1; fired; n++) {
		uint64_t stale;
		size_t written;
		int rc;

		SUCCEEDS(h5_vfs_open_file(scene->vfs, node, O_RDWR, &handle));
		SUCCEEDS(read_whole(handle, &before));
		vfs_scene_empty_caches(scene);
		ck_assert_int_eq(
			h5_vfs_write(handle, before.size - 1, line, more, H5_WRITE_AT, &written, &stale),
			-EOPNOTSUPP);
		vfs_scene_empty_caches(scene);
		arm(fault, n);
		rc = h5_vfs_write(handle, before.size, line, more, H5_WRITE_AT, &written, &stale);
		fired = disarm(fault);
		ck_assert_msg(rc ? fired && rc == fault->error : written == more, "%s, %lu: %d %s", path, n,
			      rc, h5_error_last()->text);
		SUCCEEDS(read_whole(handle, &after));
		ck_assert_uint_eq(after.size, before.size + (rc ? 0 : more));
		ck_assert_mem_eq(after.bytes, before.bytes, before.size);
		if (!rc)
			ck_assert_mem_eq(after.bytes + before.size, line, more);
		h5_vfs_close_file(handle);
	}
	h5_vfs_forget(scene->vfs, node, 1);
}

START_TEST(text_is_written_at_its_end)
{
	struct vfs_scene scene;

	vfs_scene_open(&scene, "read_faults/new.h5");
	for (size_t j = 0; j < FAULTS; j++)
		write_at_end(&scene, ".h5fs/lines/many", "7\n", &faults[j]);
	vfs_scene_close(&scene);
}
END_TEST

/* ---- removing ---- */

/* What is left of an object whose name is gone goes later, of which nobody is told. */
static bool unlink_name(const char *name, const struct fault *fault, unsigned long n)
{
	struct vfs_scene scene;
	struct h5_node *node;
	bool fired;
	int rc;

	vfs_scene_logged = 0;
	vfs_scene_open(&scene, "read_faults/new.h5");
	vfs_scene_empty_caches(&scene);
	arm(fault, n);
	rc = h5_vfs_unlink(scene.vfs, h5_vfs_root(scene.vfs), name);
	fired = disarm(fault);
	ck_assert_msg(!rc || (fired && rc == fault->error), "%s, %lu: %d %s", name, n, rc,
		      h5_error_last()->text);
	ck_assert_int_eq(vfs_scene_find(&scene, name, &node), rc ? 0 : -ENOENT);
	if (rc)
		h5_vfs_forget(scene.vfs, node, 1);
	ck_assert_uint_eq(vfs_scene_logged, 0);
	vfs_scene_close(&scene);
	ck_assert_uint_eq(vfs_scene_logged, 0);
	return fired;
}

START_TEST(objects_go_later)
{
	for (size_t j = 0; j < FAULTS; j++)
		for (unsigned long n = 1; unlink_name("appendable", &faults[j], n); n++)
			;
}
END_TEST

/* ---- another program changes the file ---- */

static void find_path(struct vfs_scene *scene, const char *path)
{
	struct h5_node *node;
	struct h5_buf found;

	h5_buf_init(&found, MOST);
	SUCCEEDS(vfs_scene_find(scene, path + 1, &node));
	SUCCEEDS(h5_vfs_find_path(scene->vfs, node, &found));
	ck_assert_uint_eq(found.size, strlen(path));
	ck_assert_mem_eq(found.data, path, found.size);
	h5_vfs_forget(scene->vfs, node, 1);
	h5_buf_release(&found);
}

START_TEST(a_map_of_paths_is_made_anew)
{
	struct vfs_scene scene;
	struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};

	vfs_scene_open_to_read(&scene, "read_faults/new.h5");
	find_path(&scene, "/deep/er/target");
	h5_vfs_refresh(scene.vfs);
	find_path(&scene, "/deep/er/target");
	ck_assert_int_eq(utimensat(AT_FDCWD, scene.path, times, 0), 0);
	h5_vfs_refresh(scene.vfs);
	find_path(&scene, "/deep/er/target");
	vfs_scene_close(&scene);
}
END_TEST

/* Times of a mount for writing. */
struct sharing {
	enum h5_lock_mode lock;
	bool swmr, others; /* other programs may change what they like */
};
static const struct sharing sharings[] = {
	{H5_LOCK_ALWAYS, false, false}, {H5_LOCK_NONE, false, true}, {H5_LOCK_NONE, true, false}};

/* Of a file that nobody else changes, only changes through the mount count. */
START_TEST(times_are_those_of_other_programs)
{
	struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};

	for (size_t i = 0; i < sizeof sharings / sizeof *sharings; i++) {
		const struct h5_file_set_options options = {.block_cache = 8 << 20,
							    .chunk_cache = 8 << 20,
							    .lock = sharings[i].lock,
							    .swmr = sharings[i].swmr,
							    .writable = true};
		struct vfs_scene scene;
		struct stat st;

		vfs_scene_open_as(&scene, "read_faults/new.h5", &options);
		ck_assert_int_eq(utimensat(AT_FDCWD, scene.path, times, 0), 0);
		SUCCEEDS(h5_vfs_getattr(scene.vfs, h5_vfs_root(scene.vfs), &st));
		ck_assert_int_eq(st.st_mtim.tv_sec == 1, sharings[i].others);
		vfs_scene_close(&scene);
	}
}
END_TEST

UNIT_MAIN("changed files", views_are_read_again, holes_are_looked_for_again, new_contents_have_no_holes,
	  files_are_opened_to_write, text_is_written_at_its_end, objects_go_later,
	  a_map_of_paths_is_made_anew, times_are_those_of_other_programs)
