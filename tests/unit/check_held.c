/* Contents of files that the kernel reads without opening them: they are shared, stay for the next read, and
 * are few. */
#include "base/error.h"
#include "scratch.h"
#include "vfs/open_file.h"
#include "vfs/private.h"
#include "vfs_scene.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { GROUPED = 14, SMALL_MAX = 16, LARGE_MAX = 4 };

static const char *const others[] = {
	"contiguous", "few", "twice", "deep/er/target", "appendable", "chunked", "compact",
};
enum { SMALL = GROUPED + sizeof others / sizeof *others };

static const char *const large[] = {
	"lines",
	"records",
	".h5fs/json/chunked.json",
	".h5fs/csv/appendable.csv",
	".h5fs/attrs/few/text",
	".h5fs/json/twice.json",
	".h5fs/json/contiguous.json",
	".h5fs/json/appendable.json",
};
enum { LARGE = sizeof large / sizeof *large };

static struct h5_node *find(struct vfs_scene *scene, const char *path)
{
	struct h5_node *node;

	SUCCEEDS(vfs_scene_find(scene, path, &node));
	return node;
}

static struct h5_node *find_small(struct vfs_scene *scene, unsigned i)
{
	char path[32];

	if (i >= GROUPED)
		return find(scene, others[i - GROUPED]);
	snprintf(path, sizeof path, "group/g%03u", 3 * i);
	return find(scene, path);
}

static struct h5_handle *hold(struct vfs_scene *scene, struct h5_node *node)
{
	struct h5_handle *handle;

	SUCCEEDS(h5_vfs_hold_file(scene->vfs, node, &handle));
	return handle;
}

static size_t read_some(struct h5_handle *handle)
{
	char bytes[64];
	size_t got;

	SUCCEEDS(h5_vfs_read(handle, 0, bytes, sizeof bytes, &got));
	return got;
}

static unsigned count(const struct vfs_scene *scene)
{
	const struct h5_handle *h;
	unsigned n = 0;

	DL_FOREACH(scene->vfs->held, h)
	n++;
	return n;
}

START_TEST(they_are_shared_and_stay)
{
	struct vfs_scene scene;
	struct h5_node *node;
	struct h5_handle *first;

	vfs_scene_open_to_read(&scene, "read_faults/new.h5");
	node = find(&scene, "lines");
	first = hold(&scene, node);
	ck_assert_ptr_eq(hold(&scene, node), first);
	ck_assert_uint_gt(read_some(first), 0);
	h5_vfs_release_file(first);
	h5_vfs_release_file(first);
	ck_assert_ptr_eq(hold(&scene, node), first);
	h5_vfs_release_file(first);
	/* The kernel may forget the node; it is the same one when it comes back. */
	h5_vfs_forget(scene.vfs, node, 1);
	ck_assert_ptr_eq(find(&scene, "lines"), node);
	h5_vfs_forget(scene.vfs, node, 1);
	vfs_scene_close(&scene);
}
END_TEST

START_TEST(few_of_them_stay)
{
	struct vfs_scene scene;
	struct h5_handle *used;
	struct h5_node *node;

	vfs_scene_open_to_read(&scene, "read_faults/new.h5");
	node = find(&scene, "regions");
	used = hold(&scene, node);
	for (unsigned i = 0; i < SMALL; i++) {
		struct h5_node *small = find_small(&scene, i);
		struct h5_handle *handle = hold(&scene, small);

		ck_assert_uint_gt(read_some(handle), 0);
		h5_vfs_release_file(handle);
		h5_vfs_forget(scene.vfs, small, 1);
	}
	ck_assert_uint_eq(count(&scene), SMALL_MAX + 1);
	for (unsigned i = 0; i < LARGE; i++) {
		struct h5_node *text = find(&scene, large[i]);
		struct h5_handle *handle = hold(&scene, text);

		ck_assert_uint_gt(read_some(handle), 0);
		h5_vfs_release_file(handle);
		h5_vfs_forget(scene.vfs, text, 1);
	}
	/* The one that is in use is beside them. */
	ck_assert_uint_eq(count(&scene), SMALL_MAX + LARGE_MAX + 1);
	ck_assert_ptr_eq(hold(&scene, node), used);
	ck_assert_uint_gt(read_some(used), 0);
	h5_vfs_release_file(used);
	h5_vfs_release_file(used);
	ck_assert_uint_eq(count(&scene), SMALL_MAX + LARGE_MAX);
	h5_vfs_forget(scene.vfs, node, 1);
	vfs_scene_close(&scene);
}
END_TEST

START_TEST(what_cannot_be_read_fails_each_time)
{
	struct vfs_scene scene;
	struct h5_handle *handle;

	vfs_scene_open_to_read(&scene, "read_faults/new.h5");
	for (unsigned i = 0; i < 2; i++) {
		struct h5_node *group = find(&scene, "group");

		ck_assert_int_eq(h5_vfs_hold_file(scene.vfs, group, &handle), -EISDIR);
		ck_assert_uint_eq(count(&scene), 0);
		h5_vfs_forget(scene.vfs, group, 1);
	}
	vfs_scene_close(&scene);
}
END_TEST

/* ---- directories ---- */

static struct h5_dir *take_dir(struct vfs_scene *scene, struct h5_node *node)
{
	struct h5_dir *dir;

	SUCCEEDS(h5_vfs_take_dir(scene->vfs, node, &dir));
	return dir;
}

/* A request has a list for itself. What was returned is taken again, and few of these stay. */
START_TEST(lists_of_directories)
{
	enum { MANY = 12, IDLE_MAX = 8 };
	struct h5_dir *dirs[MANY], *other;
	struct vfs_scene scene;
	struct h5_node *root, *group;

	vfs_scene_open_to_read(&scene, "read_faults/new.h5");
	root = find(&scene, "deep");
	group = find(&scene, "group");
	dirs[0] = take_dir(&scene, group);
	ck_assert_uint_gt(h5_vfs_dir_count(dirs[0]), 3);
	dirs[1] = take_dir(&scene, group);
	ck_assert_ptr_ne(dirs[0], dirs[1]);
	other = take_dir(&scene, root);
	ck_assert_uint_eq(h5_vfs_dir_count(other), 1);
	h5_vfs_return_dir(dirs[0]);
	h5_vfs_return_dir(other);
	ck_assert_ptr_eq(take_dir(&scene, group), dirs[0]);
	ck_assert_ptr_eq(take_dir(&scene, root), other);
	h5_vfs_closedir(other);
	ck_assert_ptr_null(scene.vfs->idle_dirs);
	for (unsigned i = 2; i < MANY; i++)
		dirs[i] = take_dir(&scene, group);
	/* The kernel may forget the directory meanwhile. */
	h5_vfs_forget(scene.vfs, root, 1);
	h5_vfs_forget(scene.vfs, group, 1);
	for (unsigned i = 0; i < MANY; i++)
		h5_vfs_return_dir(dirs[i]);
	ck_assert_uint_eq(scene.vfs->idle_dir_count, IDLE_MAX);
	ck_assert_ptr_null(scene.vfs->dirs);
	group = find(&scene, "group");
	/* the last one that was returned */
	ck_assert_ptr_eq(take_dir(&scene, group), dirs[MANY - 1]);
	h5_vfs_return_dir(dirs[MANY - 1]);
	h5_vfs_forget(scene.vfs, group, 1);
	vfs_scene_close(&scene);
}
END_TEST

/* ---- several threads ---- */

struct crowd {
	struct vfs_scene *scene;
	struct h5_node *nodes[SMALL + LARGE];
};

static void *read_all(void *arg)
{
	const struct crowd *crowd = arg;

	for (unsigned round = 0; round < 50; round++)
		for (unsigned i = 0; i < SMALL + LARGE; i++) {
			struct h5_handle *handle = hold(crowd->scene, crowd->nodes[i]);

			ck_assert_uint_gt(read_some(handle), 0);
			h5_vfs_release_file(handle);
		}
	return NULL;
}

START_TEST(threads_share_them)
{
	struct vfs_scene scene;
	struct crowd crowd = {.scene = &scene};
	pthread_t threads[4];

	vfs_scene_open_to_read(&scene, "read_faults/new.h5");
	for (unsigned i = 0; i < SMALL + LARGE; i++)
		crowd.nodes[i] = i < SMALL ? find_small(&scene, i) : find(&scene, large[i - SMALL]);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, read_all, &crowd), 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_le(count(&scene), SMALL_MAX + LARGE_MAX);
	for (unsigned i = 0; i < SMALL + LARGE; i++)
		h5_vfs_forget(scene.vfs, crowd.nodes[i], 1);
	vfs_scene_close(&scene);
}
END_TEST

UNIT_MAIN("held", they_are_shared_and_stay, few_of_them_stay, what_cannot_be_read_fails_each_time,
	  lists_of_directories, threads_share_them)
