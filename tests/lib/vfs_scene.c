#include "vfs_scene.h"
#include "change/open.h"
#include "scratch.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

unsigned vfs_scene_logged;

static void __attribute__((format(printf, 1, 2))) count_line(const char *format, ...)
{
	(void)format;
	vfs_scene_logged++;
}

static void copy_file(struct vfs_scene *scene, const char *fixture)
{
	const char *slash = strrchr(fixture, '/');
	char original[512];

	scene->in_place = false;
	scratch_fixture(fixture, original);
	snprintf(scene->path, sizeof scene->path, "%s/%s", scratch_folder(), slash ? slash + 1 : fixture);
	scratch_copy(original, scene->path);
}

static void open_mount(struct vfs_scene *scene, const struct h5_file_set_options *options)
{
	const struct h5_vfs_options vfs = {
		.writable = options->writable, .gather = 1 << 20, .file_fd = -1, .log = count_line};

	SUCCEEDS(h5_open_file(scene->path, options, &scene->set, NULL));
	SUCCEEDS(h5_vfs_open(scene->set, &vfs, &scene->vfs));
}

static void open_usual(struct vfs_scene *scene, bool writable)
{
	const struct h5_file_set_options options = {.block_cache = 8 << 20,
						    .chunk_cache = 8 << 20,
						    .external = H5_EXTERNAL_BENEATH,
						    .lock = H5_LOCK_ALWAYS,
						    .writable = writable,
						    .check = h5_vfs_check_object};

	open_mount(scene, &options);
}

void vfs_scene_open(struct vfs_scene *scene, const char *fixture)
{
	copy_file(scene, fixture);
	open_usual(scene, true);
}

void vfs_scene_open_as(struct vfs_scene *scene, const char *fixture,
		       const struct h5_file_set_options *options)
{
	copy_file(scene, fixture);
	open_mount(scene, options);
}

void vfs_scene_open_to_read(struct vfs_scene *scene, const char *fixture)
{
	copy_file(scene, fixture);
	open_usual(scene, false);
}

void vfs_scene_open_in_place(struct vfs_scene *scene, const char *fixture)
{
	scene->in_place = true;
	scratch_fixture(fixture, scene->path);
	open_usual(scene, false);
}

void vfs_scene_close(struct vfs_scene *scene)
{
	SUCCEEDS(h5_vfs_finish(scene->vfs));
	h5_vfs_close(scene->vfs);
	h5_file_set_close(scene->set);
	if (!scene->in_place)
		ck_assert_int_eq(unlink(scene->path), 0);
}

static void forget(struct vfs_scene *scene, struct h5_node *node)
{
	if (node != h5_vfs_root(scene->vfs))
		h5_vfs_forget(scene->vfs, node, 1);
}

int vfs_scene_find(struct vfs_scene *scene, const char *path, struct h5_node **node)
{
	char copy[1024], *rest = copy;
	int rc = 0;

	ck_assert_uint_lt(strlen(path), sizeof copy);
	strcpy(copy, path);
	*node = h5_vfs_root(scene->vfs);
	while (rest && !rc) {
		struct h5_vfs_entry entry;

		rc = h5_vfs_lookup(scene->vfs, *node, strsep(&rest, "/"), &entry);
		forget(scene, *node);
		*node = rc ? NULL : entry.node;
	}
	return rc;
}

int vfs_scene_set(struct vfs_scene *scene, const char *path, const char *name, const char *value)
{
	struct h5_node *node;
	int rc = vfs_scene_find(scene, path, &node);

	if (rc)
		return rc;
	rc = h5_vfs_setxattr(scene->vfs, node, name, value, strlen(value), 0);
	forget(scene, node);
	return rc;
}

void vfs_scene_empty_caches(struct vfs_scene *scene)
{
	struct h5_lru *const caches[] = {h5_file_set_blocks(scene->set), h5_file_set_chunks(scene->set)};

	for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
		h5_lru_press(caches[i], SIZE_MAX / 2);
		h5_lru_press(caches[i], 0);
	}
}
