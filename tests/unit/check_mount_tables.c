/* What requests leave in the tables of a mount, how large these become, and what a mount tells of itself. */
#include "base/error.h"
#include "change/transaction.h"
#include "fault_alloc.h"
#include "object/group_write.h"
#include "request_scene.h"
#include "vfs/growth.h"
#include "vfs/name.h"
#include "vfs/names.h"
#include "vfs/node_number.h"
#include "vfs/objects.h"
#include "vfs/paths.h"
#include "vfs/pending.h"
#include "vfs/private.h"
#include "vfs/times.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

enum { MOST = 1 << 16 }; /* of what the tables remember */

static unsigned logged;

static void __attribute__((format(printf, 1, 2))) count_line(const char *format, ...)
{
	(void)format;
	logged++;
}

static struct h5_handle *open_at(const char *path, int flags)
{
	struct h5_node *node = request_find(path);
	struct h5_handle *handle;

	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, flags, &handle));
	request_forget(node);
	return handle;
}

static size_t get(const char *path, const char *name, char value[64])
{
	struct h5_node *node = request_find(path);
	struct h5_buf buf;
	size_t n;

	h5_buf_init(&buf, 64);
	SUCCEEDS(h5_vfs_getxattr(scene.vfs, node, name, &buf));
	n = buf.size;
	memcpy(value, buf.data, n);
	value[n] = 0;
	h5_buf_release(&buf);
	request_forget(node);
	return n;
}

/* ---- times ---- */

static void check_time(const char *path, time_t seconds, long nanoseconds)
{
	struct h5_node *node = request_find(path);
	struct stat st;

	SUCCEEDS(h5_vfs_getattr(scene.vfs, node, &st));
	ck_assert_int_eq(st.st_ctim.tv_sec, seconds);
	ck_assert_int_eq(st.st_ctim.tv_nsec, nanoseconds);
	request_forget(node);
}

/* A change has a later time than the one before, though the clock has gone back. */
START_TEST(times_go_on)
{
	const time_t later = 4102444800; /* the year 2100 */

	scene.vfs->changed = (struct timespec){later, 5};
	ASK("set", "data", "user.number", "6");
	check_time("data", later, 6);
	scene.vfs->changed = (struct timespec){later, 999999998};
	ASK("set", "fixed", "user.number", "6");
	check_time("fixed", later, 999999999);
	ASK("set", "data", "user.number", "7");
	check_time("data", later + 1, 0);
	check_time("fixed", later, 999999999);
}
END_TEST

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

/* What a request changes: m the contents, c something else, - nothing. */
START_TEST(times_of_what_has_changed)
{
	static const char *const paths[] = {"", "group", "data", "fixed"};
	static const struct {
		struct request request;
		const char *changed; /* of the paths */
	} steps[] = {
		{{"set", "data", "user.number", "6", .error = 0}, "--c-"},
		{{"remove", "data", "user.text", .error = 0}, "--c-"},
		{{"set", "data", "h5fs.type.number", "<i8", .error = 0}, "--c-"},
		{{"open", "data", .flags = O_WRONLY, .value = "abcd"}, "--m-"},
		{{"truncate", "data", .size = 8}, "--m-"},
		{{"open", "data", .flags = O_RDONLY}, "----"},
		{{"open", "fixed", .flags = O_WRONLY | O_TRUNC, .value = "abcdabcdabcdabcdabcdabcd"}, "---m"},
		{{"set", "data", "h5fs.shape", "3", .error = 0}, "--m-"},
		{{"mkdir", "group/x", .error = 0}, "-m--"},
		{{"rmdir", "group/x", .error = 0}, "-m--"},
		{{"mknod", "x", .error = 0}, "m---"},
		{{"unlink", "x", .error = 0}, "m---"},
		{{"symlink", "group/x", "y", .error = 0}, "-m--"},
		{{"unlink", "group/x", .error = 0}, "-m--"},
		{{"link", "group/x", "data", .error = 0}, "-mc-"},
		{{"unlink", "group/x", .error = 0}, "-mc-"},
		{{"link", "group/x", "fixed", .error = 0}, "-m-c"},
		{{"rename", "group/x", "x", .error = 0}, "mm-c"},
		{{"rename", "x", "y", .error = 0}, "m--c"},
		{{"rename", "y", "data", .flags = EXCHANGE}, "m-cc"},
		{{"rename", "y", "data", .flags = EXCHANGE}, "m-cc"},
		{{"rename", "soft", "group/soft", .error = 0}, "mm--"},
	};
	const time_t later = 4102444800;

	scene.vfs->changed = (struct timespec){later, 0};
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		const struct timespec before = scene.vfs->changed;
		char changed[5] = "----";

		ck_assert_int_eq(request_ask(&steps[i].request), 0);
		for (unsigned j = 0; j < 4; j++) {
			struct h5_node *node = request_find(paths[j]);
			struct stat st;

			SUCCEEDS(h5_vfs_getattr(scene.vfs, node, &st));
			if (is_later(&st.st_ctim, &before))
				changed[j] = is_later(&st.st_mtim, &before) ? 'm' : 'c';
			else
				ck_assert(!is_later(&st.st_mtim, &before));
			request_forget(node);
		}
		ck_assert_msg(!strcmp(changed, steps[i].changed), "%zu: %s %s: %s, not %s", i,
			      steps[i].request.what, steps[i].request.path, changed, steps[i].changed);
	}
}
END_TEST

static struct h5_changed changed_at(time_t seconds)
{
	return (struct h5_changed){{seconds, 1}, {seconds, 2}};
}

static void check_taken(struct h5_vfs *vfs, uint64_t address, time_t contents, time_t any)
{
	const struct h5_changed changed = h5_times_take(vfs, address);

	ck_assert_int_eq(changed.contents.tv_sec, contents);
	ck_assert_int_eq(changed.any.tv_sec, any);
}

/* If no memory is found for a time, it is as if it were forgotten. */
START_TEST(times_that_are_kept_without_memory)
{
	bool failed = true;
	unsigned n = 0;

	while (failed) {
		struct h5_vfs vfs = {.kept_times = NULL};
		const struct h5_changed changed = changed_at(9);

		fault_alloc_arm(++n);
		fault_alloc_count(true);
		h5_times_keep(&vfs, 1, &changed);
		fault_alloc_count(false);
		failed = fault_alloc_disarm();
		check_taken(&vfs, 1, 9, 9);
		check_taken(&vfs, 2, failed ? 9 : 0, failed ? 9 : 0);
		h5_times_free(&vfs);
	}
	ck_assert_uint_gt(n, 3);
}
END_TEST

/* Of objects that no node shows, so many times are kept. What is forgotten was not later than the last of
 * them. */
START_TEST(times_that_are_kept)
{
	static struct h5_vfs vfs;
	struct h5_changed changed;

	for (unsigned i = 1; i <= MOST; i++) {
		changed = changed_at(i);
		h5_times_keep(&vfs, i, &changed);
	}
	check_taken(&vfs, MOST + 1, 0, 0);
	changed = changed_at(7);
	h5_times_keep(&vfs, MOST + 1, &changed);
	check_taken(&vfs, 1, 1, 1);
	check_taken(&vfs, MOST + 2, 1, 1);
	check_taken(&vfs, 2, 2, 2);
	check_taken(&vfs, 2, 1, 1);
	check_taken(&vfs, MOST + 1, 7, 7);
	changed = changed_at(0);
	h5_times_keep(&vfs, 3, &changed); /* it was not changed */
	check_taken(&vfs, 3, 3, 3);
	/* If memory is short, too. */
	changed = changed_at(9);
	fault_alloc_arm(1);
	fault_alloc_count(true);
	h5_times_keep(&vfs, MOST + 3, &changed);
	fault_alloc_count(false);
	ck_assert(fault_alloc_disarm());
	check_taken(&vfs, MOST + 3, 9, 9);
	check_taken(&vfs, 4, 4, 4);
	h5_times_free(&vfs);
	ck_assert_ptr_null(vfs.kept_times);
}
END_TEST

/* ---- addresses that are used again ---- */

START_TEST(lives)
{
	struct h5_vfs *vfs = scene.vfs;

	for (uint64_t i = 1; i <= MOST; i++)
		ck_assert(!h5_objects_unname(vfs, i << 32));
	ck_assert_uint_eq(h5_objects_life(vfs, UINT64_C(1) << 32), 1);
	ck_assert_uint_eq(h5_objects_life(vfs, 1), 0);
	ck_assert(!h5_objects_unname(vfs, UINT64_C(1) << 32));
	ck_assert_uint_eq(h5_objects_life(vfs, UINT64_C(1) << 32), 2);
	ck_assert_uint_eq(h5_objects_life(vfs, (uint64_t)MOST << 32), 1);
	/* One too many: all get other lives. */
	ck_assert(!h5_objects_unname(vfs, 1));
	ck_assert_uint_eq(h5_objects_life(vfs, 1), UINT64_C(1) << 32);
	ck_assert_uint_eq(h5_objects_life(vfs, UINT64_C(1) << 32), UINT64_C(1) << 32);
	ck_assert(!h5_objects_unname(vfs, 1));
	ck_assert_uint_eq(h5_objects_life(vfs, 1), (UINT64_C(1) << 32) + 1);
	fault_alloc_arm(1);
	fault_alloc_count(true);
	ck_assert(!h5_objects_unname(vfs, 2));
	fault_alloc_count(false);
	ck_assert(fault_alloc_disarm());
	ck_assert_uint_eq(h5_objects_life(vfs, 1), UINT64_C(2) << 32);
	ck_assert_uint_eq(h5_objects_life(vfs, 2), UINT64_C(2) << 32);
}
END_TEST

/* An object that nodes still show is not to be removed when one of them goes. */
START_TEST(objects_that_two_nodes_show)
{
	struct h5_node *data = request_find("data"), *view = request_find(".h5fs/npy/data.npy");

	ck_assert_ptr_eq(data->shown, view->shown);
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	scene.vfs->is_changed = false;
	request_forget(view);
	ck_assert(!scene.vfs->is_changed);
	ck_assert(data->shown->nodes == data && !data->next_shown);
	request_forget(data);
	ck_assert(!scene.vfs->is_changed);
}
END_TEST

/* ---- nodes that were forgotten ---- */

static int find_way(uint64_t id, const char *name)
{
	struct h5_step *steps;
	struct h5_node *from;
	int rc = h5_node_find_way(scene.vfs, id, &steps, &from);

	if (!rc) {
		ck_assert_ptr_eq(from, scene.vfs->root);
		ck_assert_str_eq(steps->name, name);
		ck_assert_ptr_null(steps->next);
	}
	h5_steps_free(steps);
	return rc;
}

START_TEST(numbers_that_are_remembered)
{
	struct h5_node node = {.name = "first", .from = H5_ROOT_ID};
	const uint64_t hashed = UINT64_C(1) << 63;

	for (uint64_t i = 1; i <= MOST; i++) {
		node.id = hashed | i;
		h5_number_remember(scene.vfs, &node);
		node.name = "another";
	}
	ck_assert_int_eq(find_way(hashed | 1, "first"), 0);
	ck_assert_int_eq(find_way(hashed | MOST, "another"), 0);
	/* It is not the oldest any more. */
	node.id = hashed | 1;
	node.name = "again";
	h5_number_remember(scene.vfs, &node);
	ck_assert_int_eq(find_way(hashed | 2, "another"), 0);
	node.id = hashed | (MOST + 1);
	h5_number_remember(scene.vfs, &node);
	ck_assert_int_eq(find_way(hashed | 2, ""), -ESTALE);
	ck_assert_int_eq(find_way(hashed | 3, "another"), 0);
	ck_assert_int_eq(find_way(hashed | 1, "again"), 0);
	/* What no name leads to is not remembered. */
	node.id = hashed | (MOST + 2);
	node.is_detached = true;
	h5_number_remember(scene.vfs, &node);
	ck_assert_int_eq(find_way(node.id, ""), -ESTALE);
	node.is_detached = false;
	node.name = NULL;
	h5_number_remember(scene.vfs, &node);
	ck_assert_int_eq(find_way(node.id, ""), -ESTALE);
	/* Without memory it is not known. */
	fault_alloc_arm(1);
	fault_alloc_count(true);
	ck_assert_int_eq(find_way(hashed | 3, ""), -ENOMEM);
	fault_alloc_count(false);
	ck_assert(fault_alloc_disarm());
}
END_TEST

/* So many names change in one transaction. */
START_TEST(names_that_are_noted)
{
	scene.vfs->changed_count = MOST - 1;
	ASK("mkdir", "x");
	ck_assert_uint_eq(scene.vfs->changed_count, MOST);
	ASK("mkdir", "y");
	ck_assert_uint_eq(scene.vfs->changed_count, 1);
}
END_TEST

/* A change of names is committed first only if a later one needs that. */
START_TEST(names_that_need_a_commit)
{
	uint64_t x;

	ASK("mkdir", "x");
	x = request_address("x");
	ASK("unlink", "group/again");
	ck_assert(h5_tx_is_new(scene.vfs->file, x));
	ASK("rename", "soft", "soft2");
	ck_assert(h5_tx_is_new(scene.vfs->file, x));
	/* A name comes where one has gone. */
	ASK("link", "group/new", "data");
	ck_assert(!h5_tx_is_new(scene.vfs->file, x));
}
END_TEST

static void count_call(void *arg)
{
	++*(unsigned *)arg;
}

/* The kernel is told names that it may know and that have changed, each once. */
START_TEST(names_that_are_told)
{
	struct h5_node *group = request_find("group");
	char name[H5_NAME_MAX + 1] = "";
	uint64_t directory = 0;
	unsigned calls = 0;

	h5_names_tell(scene.vfs, group, "none");
	ck_assert(!h5_vfs_take_stale_name(scene.vfs, &directory, name));
	h5_vfs_on_stale_names(scene.vfs, count_call, &calls);
	h5_names_tell(scene.vfs, group, "one");
	ck_assert_uint_eq(calls, 1);
	ck_assert(h5_vfs_take_stale_name(scene.vfs, &directory, name));
	ck_assert_uint_eq(directory, group->id);
	ck_assert_str_eq(name, "one");
	ck_assert(!h5_vfs_take_stale_name(scene.vfs, &directory, name));
	/* Without memory it keeps what it has. */
	fault_alloc_arm(1);
	fault_alloc_count(true);
	h5_names_tell(scene.vfs, group, "two");
	fault_alloc_count(false);
	ck_assert(fault_alloc_disarm());
	ck_assert(!h5_vfs_take_stale_name(scene.vfs, &directory, name));
	ck_assert_uint_eq(calls, 1);
	h5_vfs_on_stale_names(scene.vfs, NULL, NULL);
	request_forget(group);
}
END_TEST

/* A change of a name of which no note could be made, for want of memory. */
START_TEST(names_without_a_note)
{
	const uint64_t before = scene.vfs->name_changes;
	struct h5_buf path;

	h5_buf_init(&path, 100);
	SUCCEEDS(h5_vfs_find_path(scene.vfs, h5_vfs_root(scene.vfs), &path));
	h5_buf_release(&path);
	h5_lock_to_write(scene.vfs);
	h5_names_changed(scene.vfs, h5_vfs_root(scene.vfs), NULL);
	h5_unlock(scene.vfs);
	ck_assert_uint_eq(scene.vfs->name_changes, before + 1);
	ck_assert_ptr_null(scene.vfs->map);
	ck_assert_ptr_null(scene.vfs->changed_names);
	ck_assert_uint_eq(scene.vfs->changed_count, 0);
}
END_TEST

/* ---- sizes that the kernel is told ---- */

START_TEST(sizes_that_grow)
{
	struct h5_node *node = request_find("data");
	struct h5_handle *handle, *other;

	ck_assert_uint_eq(h5_growth_hide(scene.vfs, node, 100, 200, false), H5_NOT_STALE);
	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, O_WRONLY, &handle));
	ck_assert_uint_eq(h5_growth_hide(scene.vfs, node, 100, 200, false), H5_NOT_STALE);
	h5_vfs_close_file(handle);
	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, O_RDONLY, &handle));
	ck_assert_uint_eq(h5_vfs_size_limit(scene.vfs, node), UINT64_MAX);
	ck_assert_uint_eq(h5_growth_hide(scene.vfs, node, 100, 200, true), 100);
	ck_assert_uint_eq(h5_vfs_size_limit(scene.vfs, node), 100);
	/* It has grown twice before the kernel has dropped its pages. */
	ck_assert_uint_eq(h5_growth_hide(scene.vfs, node, 300, 50, false), 50);
	ck_assert_uint_eq(h5_vfs_size_limit(scene.vfs, node), 100);
	h5_vfs_tell_size(scene.vfs, node);
	ck_assert_uint_eq(h5_vfs_size_limit(scene.vfs, node), 100);
	h5_vfs_tell_size(scene.vfs, node);
	ck_assert_uint_eq(h5_vfs_size_limit(scene.vfs, node), UINT64_MAX);
	ck_assert_uint_eq(h5_growth_hide(scene.vfs, node, 300, 400, false), 300);
	ck_assert_uint_eq(h5_vfs_size_limit(scene.vfs, node), 300);
	h5_vfs_tell_size(scene.vfs, node);
	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, O_RDWR, &other));
	ck_assert_uint_eq(h5_growth_hide(scene.vfs, node, 100, 200, true), H5_NOT_STALE);
	h5_vfs_close_file(other);
	ck_assert_uint_eq(h5_growth_hide(scene.vfs, node, 100, 200, true), 100);
	h5_vfs_tell_size(scene.vfs, node);
	h5_vfs_close_file(handle);
	request_forget(node);
}
END_TEST

/* ---- new files whose names a commit leaves out ---- */

/* Another one has the name when it should come back, which nothing but a damaged file does: the new file has
 * lost its name, and goes when it is closed. */
START_TEST(a_name_that_cannot_come_back)
{
	struct h5_node *group = request_find("group");
	struct h5_link link = {.type = H5_LINK_HARD, .name = "new", .name_size = 3};
	struct h5_file *file = scene.vfs->file;
	struct h5_handle *handle;
	struct h5_vfs_entry entry;
	struct stat st;
	uint64_t stale;
	size_t written;

	logged = 0;
	scene.vfs->options.log = count_line;
	link.address = request_address("data");
	SUCCEEDS(h5_vfs_create(scene.vfs, group, "new", O_WRONLY, &entry, &handle));
	SUCCEEDS(h5_vfs_write(handle, 0, "bytes", 5, H5_WRITE_AT, &written, &stale));
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	ck_assert_uint_eq(logged, 0);
	h5_lock_to_write(scene.vfs);
	scene.vfs->around.before(scene.vfs->around.arg);
	h5_unit_begin(file);
	SUCCEEDS(h5_unit_end(file, h5_group_insert(file, group->entity.address, &link)));
	scene.vfs->around.after(scene.vfs->around.arg, false);
	h5_unlock(scene.vfs);
	ck_assert_uint_eq(logged, 1);
	ck_assert_ptr_null(scene.vfs->pending);
	SUCCEEDS(h5_vfs_getattr(scene.vfs, entry.node, &st));
	ck_assert_uint_eq(st.st_nlink, 0);
	request_check_bytes("group/new", request_elements, sizeof request_elements);
	h5_vfs_close_file(handle);
	h5_vfs_forget(scene.vfs, entry.node, 1);
	ck_assert_ptr_nonnull(scene.vfs->unused);
	h5_unit_begin(file);
	SUCCEEDS(h5_unit_end(file, h5_group_remove(file, group->entity.address, "new", 3)));
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	ck_assert_ptr_null(scene.vfs->unused);
	ck_assert_uint_eq(logged, 1);
	request_forget(group);
}
END_TEST

/* Memory is short while the name comes back: it comes all the same, or the next time. */
START_TEST(a_name_that_comes_back_without_memory)
{
	struct h5_node *group = request_find("group");
	struct h5_handle *handle;
	struct h5_vfs_entry entry;
	uint64_t stale;
	size_t written;
	unsigned n = 0;
	bool failed = true;

	logged = 0;
	scene.vfs->options.log = count_line;
	SUCCEEDS(h5_vfs_create(scene.vfs, group, "new", O_WRONLY, &entry, &handle));
	SUCCEEDS(h5_vfs_write(handle, 0, "bytes", 5, H5_WRITE_AT, &written, &stale));
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	for (n = 1; failed; n++) {
		h5_lock_to_write(scene.vfs);
		scene.vfs->around.before(scene.vfs->around.arg);
		vfs_scene_empty_caches(&scene);
		fault_alloc_arm(n);
		fault_alloc_count(true);
		scene.vfs->around.after(scene.vfs->around.arg, false);
		fault_alloc_count(false);
		failed = fault_alloc_disarm();
		h5_unlock(scene.vfs);
		ck_assert_ptr_nonnull(scene.vfs->pending);
		request_check_bytes("group/new", "bytes", 5);
	}
	ck_assert_uint_gt(n, 3);
	ck_assert_uint_eq(logged, 0);
	h5_vfs_close_file(handle);
	h5_vfs_forget(scene.vfs, entry.node, 1);
	request_forget(group);
	request_close();
	request_open(scene.path, true, NULL);
	request_check_bytes("group/new", "bytes", 5);
}
END_TEST

/* ---- help names of exchanges ---- */

static struct h5_help_name *add_help(uint64_t group, uint64_t object, const char *name)
{
	struct h5_help_name *help = calloc(1, sizeof *help);

	*help = (struct h5_help_name){.group = group, .object = object};
	snprintf(help->name, sizeof help->name, "%s", name);
	h5_lock_to_write(scene.vfs);
	h5_names_add_help(scene.vfs, help);
	h5_unlock(scene.vfs);
	return help;
}

/* What cannot be removed is tried again before the next commit. */
START_TEST(help_names_that_stay)
{
	const uint64_t root = h5_file_superblock(scene.vfs->file)->root, data = request_address("data");
	struct h5_help_name *stays;

	ASK("symlink", "help", "data");
	ASK("link", "name", "data");
	ck_assert_uint_eq(scratch_references(scene.vfs->file, data), 2);
	add_help(root, H5_UNDEF, "help");
	add_help(root, data, "none");
	stays = add_help(data, data, "help"); /* that is no group */
	add_help(root, H5_UNDEF, "soft");
	add_help(root, data, "name");
	for (unsigned i = 0; i < 2; i++) {
		ASK("mkdir", i ? "x" : "y");
		SUCCEEDS(h5_vfs_commit(scene.vfs));
		ck_assert_ptr_eq(scene.vfs->help_names, stays);
		ck_assert_ptr_null(stays->next);
		ck_assert_int_eq(request_ask(&(struct request){"lookup", "help", .error = 0}), -ENOENT);
		ck_assert_int_eq(request_ask(&(struct request){"lookup", "soft", .error = 0}), -ENOENT);
		ck_assert_int_eq(request_ask(&(struct request){"lookup", "name", .error = 0}), -ENOENT);
		ck_assert_uint_eq(scratch_references(scene.vfs->file, data), 1);
	}
	/* One that is gone is not removed again, if something has the name. */
	ASK("symlink", "help", "data");
	add_help(root, H5_UNDEF, "help");
	h5_lock_to_write(scene.vfs);
	h5_names_remove_help(scene.vfs);
	h5_unlock(scene.vfs);
	vfs_scene_empty_caches(&scene);
	ck_assert_int_eq(request_ask(&(struct request){"lookup", "help", .error = 0}), -ENOENT);
	ASK("symlink", "help", "fixed");
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	ASK("lookup", "help");
	request_check_bytes("data", request_elements, sizeof request_elements);
}
END_TEST

/* A damaged file has a second name of an object whose only name was removed: nothing can be done with it,
 * since the object goes with the next commit. */
START_TEST(an_object_that_is_going)
{
	struct h5_node *node = request_find("data");
	struct h5_file *file = scene.vfs->file;
	const uint64_t root = h5_file_superblock(file)->root;
	const struct h5_link link = {
		.type = H5_LINK_HARD, .address = node->entity.address, .name = "again", .name_size = 5};

	ASK("unlink", "data");
	h5_unit_begin(file);
	SUCCEEDS(h5_unit_end(file, h5_group_insert(file, root, &link)));
	request_forget(node);
	ck_assert_ptr_nonnull(scene.vfs->unused);
	ck_assert_int_eq(request_ask(&(struct request){"lookup", "again", .error = 0}), -ESTALE);
	ck_assert_int_eq(request_ask(&(struct request){"lookup", "again", .error = 0}), -ESTALE);
	h5_unit_begin(file);
	SUCCEEDS(h5_unit_end(file, h5_group_remove(file, root, "again", 5)));
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	ck_assert_ptr_null(scene.vfs->unused);
}
END_TEST

/* A commit has left its name out, and the next one fails: all sees it with what the first one has. */
START_TEST(a_new_file_in_a_commit_that_fails)
{
	struct h5_node *group = request_find("group");
	struct h5_handle *handle;
	struct h5_vfs_entry entry;
	uint64_t stale;
	size_t written;

	SUCCEEDS(h5_vfs_create(scene.vfs, group, "new", O_WRONLY, &entry, &handle));
	SUCCEEDS(h5_vfs_write(handle, 0, "bytes", 5, H5_WRITE_AT, &written, &stale));
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	ASK("mkdir", "x");
	ASK("mkdir", "empty/x");
	fault_io_arm(&request_io, 1);
	ck_assert_int_eq(h5_vfs_commit(scene.vfs), -ENOSPC);
	ck_assert(fault_io_disarm(&request_io));
	ck_assert(h5_tx_is_writable(scene.vfs->file));
	ck_assert_int_eq(request_ask(&(struct request){"lookup", "x", .error = 0}), -ENOENT);
	request_check_bytes("group/new", "bytes", 5);
	h5_vfs_close_file(handle);
	h5_vfs_forget(scene.vfs, entry.node, 1);
	request_forget(group);
	ck_assert_ptr_nonnull(scene.vfs->pending);
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	ck_assert_ptr_null(scene.vfs->pending);
	request_close();
	request_open(scene.path, true, NULL);
	request_check_bytes("group/new", "bytes", 5);
}
END_TEST

/* In a damaged file two new objects may be at one address: the last one counts. */
START_TEST(two_new_files_at_one_address)
{
	h5_lock_to_write(scene.vfs);
	h5_pending_add(scene.vfs, 1000, "a", 1, 2000);
	h5_pending_add(scene.vfs, 1000, "b", 1, 2000);
	ck_assert_ptr_nonnull(scene.vfs->pending);
	h5_pending_end(scene.vfs, 2000);
	ck_assert_ptr_null(scene.vfs->pending);
	/* Without memory it has its name from the next commit on. */
	fault_alloc_arm(1);
	fault_alloc_count(true);
	h5_pending_add(scene.vfs, 1000, "a", 1, 2000);
	fault_alloc_count(false);
	ck_assert(fault_alloc_disarm());
	ck_assert_ptr_null(scene.vfs->pending);
	h5_unlock(scene.vfs);
}
END_TEST

/* ---- commits that fail ---- */

static void fail_commit(void)
{
	fault_io_arm(&request_io, 1);
	ck_assert_int_eq(h5_vfs_commit(scene.vfs), -ENOSPC);
	ck_assert(fault_io_disarm(&request_io));
	ck_assert(h5_tx_is_writable(scene.vfs->file));
}

static nlink_t count_names(struct h5_node *node)
{
	struct stat st;

	SUCCEEDS(h5_vfs_getattr(scene.vfs, node, &st));
	return st.st_nlink;
}

/* The commit of a removal fails: the object has its name again, and is not removed later. */
START_TEST(removals_that_are_lost)
{
	struct h5_node *data = request_find("data"), *group = request_find("group");

	SUCCEEDS(h5_vfs_commit(scene.vfs));
	ck_assert_uint_eq(request_size("group"), 3);
	ASK("mkdir", "group/x");
	ASK("mkdir", "group/y");
	ck_assert_uint_eq(request_size("group"), 5);
	ASK("unlink", "data");
	ASK("unlink", "fixed");
	ck_assert_uint_eq(count_names(data), 0);
	fail_commit();
	ck_assert_uint_eq(request_size("group"), 3);
	ck_assert_uint_eq(count_names(data), 1);
	request_forget(data);
	request_forget(group);
	ck_assert_ptr_null(scene.vfs->unused);
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	request_close();
	request_open(scene.path, true, NULL);
	request_check_bytes("data", request_elements, sizeof request_elements);
	request_check_bytes("fixed", request_elements, sizeof request_elements);
}
END_TEST

/* An object that could not be removed yet, for want of memory, and whose removal is lost. */
START_TEST(late_removals_that_are_lost)
{
	const uint64_t data = request_address("data");
	struct h5_vfs *vfs = scene.vfs;

	SUCCEEDS(h5_vfs_commit(vfs));
	ASK("mkdir", "x");
	h5_lock_to_write(vfs);
	ck_assert(!h5_objects_remove_later(vfs, data, -EUCLEAN));
	ck_assert_ptr_null(vfs->unused);
	ck_assert(h5_objects_remove_later(vfs, data, -ENOMEM));
	ck_assert_ptr_nonnull(vfs->unused);
	h5_unlock(vfs);
	vfs_scene_empty_caches(&scene);
	fault_alloc_arm(1);
	fault_alloc_count(true);
	fail_commit();
	fault_alloc_count(false);
	ck_assert(fault_alloc_disarm());
	ck_assert_ptr_null(vfs->unused);
	SUCCEEDS(h5_vfs_commit(vfs));
	request_close();
	request_open(scene.path, true, NULL);
	request_check_bytes("data", request_elements, sizeof request_elements);
}
END_TEST

static void check_path(uint64_t address, const char *expected)
{
	struct h5_buf path;

	h5_buf_init(&path, PATH_MAX);
	SUCCEEDS(h5_paths_find_mounted(scene.vfs, address, &path));
	h5_buf_byte(&path, 0);
	ck_assert_str_eq(path.data, expected);
	h5_buf_release(&path);
}

/* A commit of names fails. Then the mount shows the old names, and forgets the changes. */
START_TEST(names_that_are_lost)
{
	const uint64_t data = request_address("data");
	struct h5_node *group = request_find("group");
	struct h5_dir *dir;

	SUCCEEDS(h5_vfs_commit(scene.vfs));
	SUCCEEDS(h5_vfs_opendir(scene.vfs, group, &dir));
	ck_assert_uint_eq(h5_vfs_dir_count(dir), 3);
	check_path(data, "/data");
	ASK("rename", "data", "x");
	ASK("mkdir", "group/x");
	SUCCEEDS(h5_vfs_dir_rewind(dir));
	ck_assert_uint_eq(h5_vfs_dir_count(dir), 4);
	check_path(data, "/x");
	ck_assert_ptr_nonnull(scene.vfs->roles);
	fail_commit();
	SUCCEEDS(h5_vfs_dir_rewind(dir));
	ck_assert_uint_eq(h5_vfs_dir_count(dir), 3);
	check_path(data, "/data");
	ck_assert_uint_eq(scene.vfs->changed_count, 0);
	ck_assert_ptr_null(scene.vfs->roles);
	h5_vfs_closedir(dir);
	request_forget(group);
}
END_TEST

/* The commit that should remove a help name fails: the next one removes it. */
START_TEST(help_names_that_come_back)
{
	const uint64_t root = h5_file_superblock(scene.vfs->file)->root;

	SUCCEEDS(h5_vfs_commit(scene.vfs));
	add_help(root, H5_UNDEF, "soft");
	fail_commit();
	ASK("lookup", "soft");
	ck_assert_ptr_nonnull(scene.vfs->help_names);
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	ck_assert_ptr_null(scene.vfs->help_names);
	ck_assert_int_eq(request_ask(&(struct request){"lookup", "soft", .error = 0}), -ENOENT);
}
END_TEST

/* A new file that a commit has left out gets another name, and so is to be in the next commit. If that fails,
 * later ones leave it out again until it is closed. */
START_TEST(new_files_that_are_linked)
{
	for (int fails = 0; fails < 2; fails++) {
		struct h5_handle *handle;
		struct h5_node *group = request_find("group");
		struct h5_vfs_entry entry;
		uint64_t stale;
		size_t written;

		SUCCEEDS(h5_vfs_create(scene.vfs, group, "new", O_WRONLY, &entry, &handle));
		SUCCEEDS(h5_vfs_write(handle, 0, "bytes", 5, H5_WRITE_AT, &written, &stale));
		SUCCEEDS(h5_vfs_commit(scene.vfs));
		ck_assert_ptr_nonnull(scene.vfs->pending);
		ASK("link", "linked", "group/new");
		if (fails)
			fail_commit();
		SUCCEEDS(h5_vfs_commit(scene.vfs));
		ck_assert_int_eq(scene.vfs->pending != NULL, fails);
		h5_vfs_close_file(handle);
		h5_vfs_forget(scene.vfs, entry.node, 1);
		request_forget(group);
		SUCCEEDS(h5_vfs_commit(scene.vfs));
		ck_assert_ptr_null(scene.vfs->pending);
		request_check_bytes("group/new", "bytes", 5);
		ck_assert_int_eq(request_ask(&(struct request){"lookup", "linked", .error = 0}),
				 fails ? -ENOENT : 0);
		ASK("unlink", "group/new");
		if (!fails)
			ASK("unlink", "linked");
	}
}
END_TEST

/* ---- chunks of plain files ---- */

/* The chunks of a file that gets such sizes, one after the other. */
START_TEST(chunks_of_plain_files)
{
	static const struct {
		uint64_t sizes[3]; /* 0: no more */
		const char *grown, *closed;
	} cases[] = {
		{{1}, "4096", "256"},
		{{256}, "4096", "256"},
		{{257}, "4096", "257"},
		{{3071}, "4096", "3071"},
		{{3072}, "4096", "4096"},
		{{4096}, "4096", "4096"},
		{{4097}, "4096", "4096"},
		{{65536}, "4096", "4096"},
		{{65536 + 15}, "4096", "4096"}, /* 16 chunks are not many */
		{{65536 + 16}, "65536", "65536"},
		{{1 << 20}, "65536", "65536"},
		{{(1 << 20) + 1}, "262144", "262144"},
		{{65536, 1 << 20, (1 << 20) + 15}, "65536", "65536"},
		{{65536, 1 << 20, (1 << 20) + 16}, "262144", "262144"},
	};
	char value[65];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_handle *handle;
		uint64_t stale;
		size_t written;

		ASK("mknod", "plain");
		handle = open_at("plain", O_WRONLY);
		for (unsigned j = 0; j < 3 && cases[i].sizes[j]; j++)
			SUCCEEDS(h5_vfs_write(handle, cases[i].sizes[j] - 1, "x", 1, H5_WRITE_AT, &written,
					      &stale));
		get("plain", "h5fs.chunks", value);
		ck_assert_msg(!strcmp(value, cases[i].grown), "%zu: %s", i, value);
		SUCCEEDS(h5_vfs_flush(handle));
		get("plain", "h5fs.chunks", value);
		ck_assert_msg(!strcmp(value, cases[i].closed), "%zu, closed: %s", i, value);
		h5_vfs_close_file(handle);
		ASK("unlink", "plain");
	}
}
END_TEST

UNIT_MAIN_AROUND("mount_tables", request_begin, request_end, times_go_on, times_of_what_has_changed,
		 times_that_are_kept, times_that_are_kept_without_memory, lives, objects_that_two_nodes_show,
		 numbers_that_are_remembered, names_that_are_noted, names_that_need_a_commit,
		 names_that_are_told, names_without_a_note, sizes_that_grow, a_name_that_cannot_come_back,
		 a_new_file_in_a_commit_that_fails, a_name_that_comes_back_without_memory,
		 help_names_that_stay, an_object_that_is_going, two_new_files_at_one_address,
		 names_that_are_lost, removals_that_are_lost, late_removals_that_are_lost,
		 help_names_that_come_back, new_files_that_are_linked, chunks_of_plain_files)
