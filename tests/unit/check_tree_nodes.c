/* The nodes that lead into the files of a folder: they outlive the opening of a file, and change their names.
 */
#include "scratch.h"
#include "tree_scene.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* The file closes; the nodes are found again by the names that were looked up last. */
START_TEST(nodes_outlive_the_opening)
{
	struct h5_tree_node *nodes[FILES], *group, *data, *third, *other;
	struct h5_tree_inside in, second;
	struct h5_node *inside;

	folder_find_files(nodes);
	group = folder_find(nodes[0], "group");
	ck_assert(group->inside && group->opening == nodes[0]->file->opening);
	ck_assert_uint_eq(group->inside->references, 1);
	data = folder_find(group, "data");
	folder_check_path(data, "a.h5/group/data");
	third = folder_find(group, "third");
	ck_assert_ptr_eq(third, data);
	folder_check_path(data, "a.h5/group/third");
	other = folder_find(nodes[1], "again");
	/* A name that the mount itself gave. */
	SUCCEEDS(h5_tree_enter(folder.tree, nodes[0], &in));
	h5_tree_note_name(folder.tree, nodes[0], &in, "none");
	folder_check_path(data, "a.h5/group/third");
	h5_tree_note_name(folder.tree, nodes[0], &in, "again");
	folder_check_path(data, "a.h5/again");
	ck_assert_uint_eq(data->references, 2);
	ck_assert_int_eq(h5_tree_enter_too(folder.tree, other, &in, &inside), -EXDEV);
	ck_assert_int_eq(h5_tree_enter_too(folder.tree, data, &in, &inside), 0);
	h5_tree_leave(folder.tree, &in);
	ck_assert_int_eq(h5_tree_enter(folder.tree, h5_tree_root(folder.tree), &in), -EROFS);
	SUCCEEDS(folder_use(nodes[2]));
	ck_assert_str_eq(folder.closed, "b"); /* the request above was a.h5's */
	SUCCEEDS(folder_use(nodes[1]));
	ck_assert_str_eq(folder.closed, "ba");
	ck_assert_uint_ne(data->opening, nodes[0]->file->opening);
	SUCCEEDS(h5_tree_enter(folder.tree, data, &in));
	ck_assert_uint_eq(h5_vfs_id(in.node), h5_vfs_id(data->inside));
	/* From now on it is known in this opening, too. */
	ck_assert(in.node == data->inside && data->opening == nodes[0]->file->opening);
	ck_assert_uint_eq(data->inside->references, 1);
	SUCCEEDS(h5_tree_enter(folder.tree, group, &second));
	ck_assert_ptr_ne(in.node, second.node);
	h5_tree_leave(folder.tree, &second);
	h5_tree_leave(folder.tree, &in);
	ck_assert_ptr_eq(folder_find(group, "data"), data);
	for (unsigned i = 0; i < 3; i++)
		folder_forget(data);
	folder_forget(group);
	folder_forget(other);
	folder_forget_files(nodes);
}
END_TEST

/* A group may have itself in a group of its own. It keeps the name above. Nobody forgets the root. */
START_TEST(names_that_lead_up)
{
	struct h5_tree_node *root = h5_tree_root(folder.tree), *file = folder_find(root, "a.h5"),
			    *group = folder_find(file, "group"), *inner = folder_find(group, "inner");
	struct h5_tree_inside in;
	struct h5_tree_entry entry;
	struct h5_vfs_entry found;

	SUCCEEDS(h5_tree_enter(folder.tree, file, &in));
	SUCCEEDS(h5_vfs_lookup(in.vfs, in.node, "group", &found));
	SUCCEEDS(h5_tree_entry(folder.tree, inner, "up", &found, &entry));
	h5_tree_leave(folder.tree, &in);
	ck_assert_ptr_eq(entry.node, group);
	ck_assert_ptr_eq(group->parent, file);
	folder_check_path(inner, "a.h5/group/inner");
	ck_assert_uint_eq(inner->references, 1);
	folder_forget(group);
	folder_forget(inner);
	folder_forget(group);
	folder_forget(file);
	h5_tree_forget(folder.tree, root, 100);
	folder_check_path(root, "");
	ck_assert_uint_gt(root->references, 0);
	folder_forget(folder_find(root, "f"));
}
END_TEST

/* The file has changed while it was closed. */
START_TEST(nodes_of_what_is_gone)
{
	static const char *const names[] = {"group", "again", "soft"};
	struct h5_tree_node *nodes[FILES], *inside[3], *below, *unused;
	struct h5_tree_handle *handle;
	struct h5_tree_dir *dir;
	char from[512], path[200];

	folder_find_files(nodes);
	for (unsigned i = 0; i < 3; i++)
		inside[i] = folder_find(nodes[0], names[i]);
	below = folder_find(inside[0], "inner");
	unused = folder_find(nodes[0], "empty");
	SUCCEEDS(folder_use(nodes[1]));
	SUCCEEDS(folder_use(nodes[2]));
	ck_assert_str_eq(folder.closed, "a");
	folder_forget(unused);
	scratch_fixture("check_links.h5", from);
	snprintf(path, sizeof path, "%s/a.h5", folder.path);
	scratch_copy(from, path);
	SUCCEEDS(folder_use(nodes[0]));
	ck_assert_int_eq(folder_use(inside[1]), -ESTALE); /* there is no such name */
	ck_assert_int_eq(folder_use(inside[2]), -ESTALE);
	ck_assert_int_eq(folder_use(below), -ESTALE);
	ck_assert_int_eq(h5_tree_opendir(folder.tree, inside[1], &dir), -ESTALE);
	ck_assert_int_eq(h5_tree_open_file(folder.tree, inside[1], O_RDONLY, &handle), -ESTALE);
	ck_assert_uint_eq(nodes[0]->file->uses, 0);
	ck_assert_uint_eq(nodes[0]->file->held, 0);
	folder_forget(below);
	for (unsigned i = 0; i < 3; i++)
		folder_forget(inside[i]);
	folder_forget_files(nodes);
}
END_TEST

/* Nobody knows the file any more while it is open; the name leads to another node then. */
START_TEST(files_that_are_forgotten)
{
	struct h5_tree_node *nodes[FILES];
	struct h5_tree_file *file;

	folder_find_files(nodes);
	SUCCEEDS(folder_use(nodes[0]));
	file = nodes[0]->file;
	folder_forget(nodes[0]);
	ck_assert(file->is_orphan);
	nodes[0] = folder_find(h5_tree_root(folder.tree), "a.h5");
	ck_assert_ptr_ne(nodes[0]->file, file);
	SUCCEEDS(folder_use(nodes[0]));
	ck_assert_uint_eq(folder.tree->open_count, 2);
	SUCCEEDS(folder_use(nodes[1]));
	ck_assert_str_eq(folder.closed, "a");
	ck_assert_int_eq(nodes[0]->file->state, H5_TREE_OPEN);
	folder_forget_files(nodes);
}
END_TEST

/* What is asked of a node is the error, if its file does not open again. */
START_TEST(nodes_of_a_file_that_does_not_open)
{
	struct h5_tree_node *nodes[FILES], *group, *data;
	struct h5_tree_handle *handle;
	struct h5_tree_inside in;
	struct h5_tree_dir *dir;

	folder_find_files(nodes);
	group = folder_find(nodes[0], "group");
	data = folder_find(nodes[0], "again");
	SUCCEEDS(folder_use(nodes[1]));
	SUCCEEDS(folder_use(nodes[2]));
	ck_assert_str_eq(folder.closed, "a");
	folder.refuses = -EPERM;
	ck_assert_int_eq(h5_tree_open_file(folder.tree, data, O_RDONLY, &handle), -EPERM);
	ck_assert_int_eq(h5_tree_opendir(folder.tree, group, &dir), -EPERM);
	ck_assert_int_eq(h5_tree_enter(folder.tree, group, &in), -EPERM);
	ck_assert_ptr_null(folder.tree->handles);
	ck_assert_ptr_null(folder.tree->dirs);
	folder.refuses = 0;
	SUCCEEDS(h5_tree_open_file(folder.tree, data, O_RDONLY, &handle));
	SUCCEEDS(h5_tree_opendir(folder.tree, group, &dir));
	ck_assert_uint_eq(nodes[0]->file->held, 2);
	h5_tree_close_file(handle);
	h5_tree_closedir(dir);
	folder_forget(data);
	folder_forget(group);
	folder_forget_files(nodes);
}
END_TEST

/* A name of the folder leads to the same node until something else has the name. */
START_TEST(nodes_that_are_replaced)
{
	static const char long_name[] =
		"a folder with a name that is longer than what comes before it in a key";
	struct h5_tree_node *root = h5_tree_root(folder.tree), *before, *after;
	const char *const names[] = {"f", long_name};

	scratch_run("mkdir '%s/%s'", folder.path, long_name);
	for (unsigned i = 0; i < 2; i++) {
		const unsigned count = HASH_COUNT(folder.tree->nodes);

		before = folder_find(root, names[i]);
		ck_assert_ptr_eq(folder_find(root, names[i]), before);
		ck_assert_uint_eq(before->references, 2);
		ck_assert_uint_eq(HASH_COUNT(folder.tree->nodes), count + 1);
		scratch_run("cd '%s'; mv '%s' g; mkdir '%s'", folder.path, names[i], names[i]);
		after = folder_find(root, names[i]);
		ck_assert_ptr_ne(after, before);
		ck_assert(before->is_detached && !after->is_detached && folder.tree->detached == before);
		ck_assert_uint_ne(after->generation, before->generation);
		ck_assert_ptr_eq(folder_find(root, names[i]), after);
		folder_forget(before);
		ck_assert_ptr_eq(folder.tree->detached, before);
		folder_forget(before);
		ck_assert_ptr_null(folder.tree->detached);
		ck_assert_uint_eq(HASH_COUNT(folder.tree->nodes), count + 1);
		ck_assert_ptr_eq(folder_find(root, names[i]), after);
		for (unsigned j = 0; j < 3; j++)
			folder_forget(after);
		ck_assert_uint_eq(HASH_COUNT(folder.tree->nodes), count);
		scratch_run("rm -r '%s/g'", folder.path);
	}
}
END_TEST

/* What cannot be opened in a file leaves that as it was. */
START_TEST(what_cannot_be_opened)
{
	struct h5_tree_node *file = folder_find(h5_tree_root(folder.tree), "a.h5"),
			    *group = folder_find(file, "group"), *data = folder_find(file, "again"),
			    *soft = folder_find(file, "soft");
	struct h5_tree_handle *handle;
	struct h5_tree_dir *dir;

	ck_assert_int_eq(h5_tree_open_file(folder.tree, group, O_RDONLY, &handle), -EISDIR);
	ck_assert_int_eq(h5_tree_open_file(folder.tree, data, O_WRONLY, &handle), -EROFS);
	ck_assert_int_eq(h5_tree_open_file(folder.tree, soft, O_RDONLY, &handle), -ELOOP);
	ck_assert_int_eq(h5_tree_opendir(folder.tree, data, &dir), -ENOTDIR);
	ck_assert(!file->file->uses && !file->file->held);
	ck_assert(!folder.tree->handles && !folder.tree->dirs);
	folder_forget(soft);
	folder_forget(data);
	folder_forget(group);
	folder_forget(file);
}
END_TEST

UNIT_MAIN_AROUND("tree_nodes", folder_begin, folder_end, nodes_outlive_the_opening, names_that_lead_up,
		 nodes_of_what_is_gone, files_that_are_forgotten, nodes_of_a_file_that_does_not_open,
		 nodes_that_are_replaced, what_cannot_be_opened)
