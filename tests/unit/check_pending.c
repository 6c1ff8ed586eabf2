/* Files that are being written while the file is committed, without their names. */
#include "crash_image.h"
#include "object/path.h"
#include "scratch.h"
#include "vfs/names.h"
#include "vfs/node.h"
#include "vfs/objects.h"
#include "vfs_scene.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATES_LEAST = 4 };

static struct h5_node *make_folder(struct vfs_scene *scene, const char *name)
{
	struct h5_vfs_entry entry;

	SUCCEEDS(h5_vfs_mkdir(scene->vfs, h5_vfs_root(scene->vfs), name, &entry));
	return entry.node;
}

static void make_file(struct vfs_scene *scene, struct h5_node *folder, const char *name)
{
	struct h5_vfs_entry entry;

	SUCCEEDS(h5_vfs_mknod(scene->vfs, folder, name, &entry));
	h5_vfs_forget(scene->vfs, entry.node, 1);
}

static bool has_path(struct h5_file *file, const char *path)
{
	struct h5_file *found;
	uint64_t address;
	int rc = h5_path_find(file, h5_file_superblock(file)->root, path, strlen(path), &found, &address);

	ck_assert(!rc || rc == -ENOENT);
	return !rc;
}

/* What another program would see now. */
static void check_state(const struct crash_image *image, const char *left_out, bool old, bool new)
{
	const struct h5_file_set_options options = {.block_cache = 1 << 20, .chunk_cache = 1 << 20};
	struct h5_file_set *set;
	struct h5_file *file;

	SUCCEEDS(h5_file_set_open_memory(image->data, image->size, &options, &set));
	file = h5_file_set_root(set);
	ck_assert(!has_path(file, left_out));
	ck_assert(has_path(file, "from/moved") || has_path(file, "to/moved"));
	ck_assert(!old || has_path(file, "from/moved"));
	ck_assert(!new || !has_path(file, "from/moved"));
	h5_file_set_close(set);
}

static void open_recorded(struct vfs_scene *scene, bool latest, struct fault_io *record)
{
	const struct h5_file_set_options options = {.block_cache = 8 << 20,
						    .chunk_cache = 8 << 20,
						    .lock = H5_LOCK_ALWAYS,
						    .writable = true,
						    .wrap = fault_io_wrap,
						    .wrap_arg = record};

	vfs_scene_open_as(scene, latest ? "read_faults/new.h5" : "read_faults/old.h5", &options);
}

/* After each write, from the image of the file before on. */
static void check_states(struct crash_image *image, const struct fault_io *record, const char *left_out)
{
	unsigned states = 0;

	check_state(image, left_out, true, false);
	for (size_t i = 0; i < record->count; i++) {
		if (record->events[i].file)
			continue;
		crash_image_apply(image, &record->events[i], record->events[i].size);
		check_state(image, left_out, false, false);
		states++;
	}
	check_state(image, left_out, false, true);
	ck_assert_uint_ge(states, STATES_LEAST);
}

/* Commits what has changed since crash_image_load(), and checks what a kill would leave of that. */
static void commit_recorded(struct vfs_scene *scene, struct crash_image *image, struct fault_io *record,
			    const char *left_out)
{
	SUCCEEDS(h5_vfs_commit(scene->vfs));
	record->record = false;
	check_states(image, record, left_out);
}

static void end_recorded(struct vfs_scene *scene, struct crash_image *image, struct fault_io *record)
{
	vfs_scene_close(scene);
	fault_io_release(record);
	free(image->data);
}

/* A file moves to the group of a new file, whose name the commit leaves out: at no instant has it no name. */
START_TEST(a_name_comes_before_the_old_one_goes)
{
	struct fault_io record = {0};
	struct crash_image image = {0};
	struct h5_node *from, *to;
	struct h5_handle *handle;
	struct h5_vfs_entry new;
	struct vfs_scene scene;
	char name[32], left_out[32];

	open_recorded(&scene, _i % 2, &record);
	from = make_folder(&scene, "from");
	to = make_folder(&scene, "to");
	make_file(&scene, from, "a name that goes");
	make_file(&scene, from, "moved");
	make_file(&scene, from, "a name that stays");
	/* So many names are in the order of their hashes. */
	for (unsigned i = 0; i < 20; i++) {
		snprintf(name, sizeof name, "other %u", i);
		make_file(&scene, to, name);
	}
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	crash_image_load(&image, scene.path);
	record.record = true;
	/* The removal changes the folder `from` before the rename changes the folder `to`. */
	SUCCEEDS(h5_vfs_unlink(scene.vfs, from, "a name that goes"));
	SUCCEEDS(h5_vfs_rename(scene.vfs, from, "moved", to, "moved", 0));
	snprintf(left_out, sizeof left_out, "to/new %d", _i / 2);
	SUCCEEDS(h5_vfs_create(scene.vfs, to, left_out + strlen("to/"), O_WRONLY, &new, &handle));
	commit_recorded(&scene, &image, &record, left_out);
	h5_vfs_close_file(handle);
	h5_vfs_forget(scene.vfs, new.node, 1);
	h5_vfs_forget(scene.vfs, from, 1);
	h5_vfs_forget(scene.vfs, to, 1);
	end_recorded(&scene, &image, &record);
}
END_TEST

/* The same with the new file in the group that is left, which has no other name then: its storage of names is
 * given up. */
START_TEST(the_last_name_that_a_commit_knows_goes)
{
	struct fault_io record = {0};
	struct crash_image image = {0};
	struct h5_node *from, *to;
	struct h5_handle *handle;
	struct h5_vfs_entry new;
	struct vfs_scene scene;
	char name[32];

	open_recorded(&scene, _i, &record);
	from = make_folder(&scene, "from");
	to = make_folder(&scene, "to");
	make_file(&scene, from, "moved");
	for (unsigned i = 0; i < 20; i++) {
		snprintf(name, sizeof name, "other %u", i);
		make_file(&scene, from, name);
	}
	for (unsigned i = 0; i < 20; i++) {
		snprintf(name, sizeof name, "other %u", i);
		SUCCEEDS(h5_vfs_unlink(scene.vfs, from, name));
	}
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	crash_image_load(&image, scene.path);
	record.record = true;
	SUCCEEDS(h5_vfs_create(scene.vfs, from, "new", O_WRONLY, &new, &handle));
	SUCCEEDS(h5_vfs_rename(scene.vfs, from, "moved", to, "moved", 0));
	commit_recorded(&scene, &image, &record, "from/new");
	h5_vfs_close_file(handle);
	h5_vfs_forget(scene.vfs, new.node, 1);
	h5_vfs_forget(scene.vfs, from, 1);
	h5_vfs_forget(scene.vfs, to, 1);
	end_recorded(&scene, &image, &record);
}
END_TEST

/* What another program would see now of a file with one name more. */
static bool check_count(const struct crash_image *image, uint64_t address)
{
	const struct h5_file_set_options options = {.block_cache = 1 << 20, .chunk_cache = 1 << 20};
	struct h5_file_set *set;
	struct h5_file *file;
	bool has;

	SUCCEEDS(h5_file_set_open_memory(image->data, image->size, &options, &set));
	file = h5_file_set_root(set);
	has = has_path(file, "to/hard");
	ck_assert_uint_ge(scratch_references(file, address), 1 + has);
	h5_file_set_close(set);
	return has;
}

/* A file gets another name in the group of a new file, whose name the commit leaves out: its count of names
 * is never too low. */
START_TEST(a_count_rises_before_the_name_comes)
{
	struct fault_io record = {0};
	struct crash_image image = {0};
	struct h5_vfs_entry file, hard, new;
	struct h5_handle *handle;
	struct vfs_scene scene;
	struct h5_node *to;
	uint64_t address;
	char name[32];

	open_recorded(&scene, _i % 2, &record);
	to = make_folder(&scene, "to");
	SUCCEEDS(h5_vfs_mknod(scene.vfs, h5_vfs_root(scene.vfs), "file", &file));
	address = file.node->entity.address;
	for (int i = 0; i < (_i / 2 % 2 ? 20 : 2); i++) {
		snprintf(name, sizeof name, "other %d", i);
		make_file(&scene, to, name);
	}
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	crash_image_load(&image, scene.path);
	record.record = true;
	SUCCEEDS(h5_vfs_link(scene.vfs, file.node, to, "hard", &hard));
	snprintf(name, sizeof name, "new %d", _i / 4);
	SUCCEEDS(h5_vfs_create(scene.vfs, to, name, O_WRONLY, &new, &handle));
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	record.record = false;
	ck_assert(!check_count(&image, address));
	for (size_t i = 0; i < record.count; i++) {
		if (record.events[i].file)
			continue;
		crash_image_apply(&image, &record.events[i], record.events[i].size);
		(void)check_count(&image, address);
	}
	ck_assert(check_count(&image, address));
	h5_vfs_close_file(handle);
	h5_vfs_forget(scene.vfs, new.node, 1);
	h5_vfs_forget(scene.vfs, hard.node, 1);
	h5_vfs_forget(scene.vfs, file.node, 1);
	h5_vfs_forget(scene.vfs, to, 1);
	end_recorded(&scene, &image, &record);
}
END_TEST

/* An object without names stays as long as somebody looks at it. Then a commit is called for, which removes
 * it.
 */
START_TEST(what_nobody_looks_at_is_removed)
{
	struct h5_vfs_entry file;
	struct vfs_scene scene;

	vfs_scene_open(&scene, "header_create-latest.h5");
	SUCCEEDS(h5_vfs_mknod(scene.vfs, h5_vfs_root(scene.vfs), "file", &file));
	SUCCEEDS(h5_vfs_unlink(scene.vfs, h5_vfs_root(scene.vfs), "file"));
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	scene.vfs->is_changed = false;
	ck_assert(!h5_objects_has_unused(scene.vfs));
	h5_vfs_forget(scene.vfs, file.node, 1);
	ck_assert(scene.vfs->is_changed);
	ck_assert(h5_objects_has_unused(scene.vfs));
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	ck_assert(!h5_objects_has_unused(scene.vfs));
	vfs_scene_close(&scene);
}
END_TEST

/* A group that names come to in one commit, and go from in the next, or the other way round, needs a commit
 * between the two. */
START_TEST(what_becomes_of_groups)
{
	static const enum h5_name_role orders[2][2] = {{H5_NAME_COMES, H5_NAME_GOES},
						       {H5_NAME_GOES, H5_NAME_COMES}};
	struct vfs_scene scene;

	vfs_scene_open(&scene, "header_create-latest.h5");
	for (unsigned i = 0; i < 2; i++) {
		const enum h5_name_role first = orders[i][0], second = orders[i][1];
		const uint64_t group = 1000 + i, other = 2000;

		ck_assert(!h5_names_need_commit(scene.vfs, group, first));
		SUCCEEDS(h5_names_add_role(scene.vfs, group, first));
		SUCCEEDS(h5_names_add_role(scene.vfs, group, first));
		ck_assert(!h5_names_need_commit(scene.vfs, group, first));
		ck_assert(h5_names_need_commit(scene.vfs, group, second));
		ck_assert(!h5_names_need_commit(scene.vfs, other, second));
		SUCCEEDS(h5_names_add_role(scene.vfs, group, second));
		ck_assert(h5_names_need_commit(scene.vfs, group, first));
		ck_assert(h5_names_need_commit(scene.vfs, group, second));
	}
	/* The commit has made all of that durable. */
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	ck_assert(!h5_names_need_commit(scene.vfs, 1000, H5_NAME_COMES));
	ck_assert(!h5_names_need_commit(scene.vfs, 1001, H5_NAME_GOES));
	vfs_scene_close(&scene);
}
END_TEST

UNIT_MAIN_LOOPS("pending", {what_becomes_of_groups, 1}, {what_nobody_looks_at_is_removed, 1},
		{a_name_comes_before_the_old_one_goes, 12}, {the_last_name_that_a_commit_knows_goes, 2},
		{a_count_rises_before_the_name_comes, 8})
