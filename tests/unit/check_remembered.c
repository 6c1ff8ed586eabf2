/* What a mount for writing keeps in mind of nodes and commits: what it need not find again, what leads
 * nowhere any more, what it has to tell. */
#include "base/error.h"
#include "change/transaction.h"
#include "fault_io.h"
#include "object/group_write.h"
#include "request_scene.h"
#include "vfs/directory.h"
#include "vfs/objects.h"
#include "vfs/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

static struct stat stat_of(struct h5_node *node)
{
	struct stat st;

	SUCCEEDS(h5_vfs_getattr(scene.vfs, node, &st));
	return st;
}

static struct h5_vfs_entry look_up(struct h5_node *parent, const char *name)
{
	struct h5_vfs_entry entry;

	SUCCEEDS(h5_vfs_lookup(scene.vfs, parent, name, &entry));
	return entry;
}

/* ---- numbers of links ---- */

/* They are counted once, go with the changes, and are counted anew when changes were given up. */
START_TEST(numbers_of_links)
{
	struct h5_node *group = request_find("group");

	ck_assert_int_eq(stat_of(group).st_size, 3);
	group->shown->links = 77;
	ck_assert_int_eq(stat_of(group).st_size, 77);
	ASK("mkdir", "group/x");
	ck_assert_int_eq(stat_of(group).st_size, 78);
	ASK("unlink", "group/file");
	ck_assert_int_eq(stat_of(group).st_size, 77);
	ASK("rename", "group/x", "group/y");
	ck_assert_int_eq(stat_of(group).st_size, 77);
	h5_objects_rename_all(scene.vfs, 0);
	ck_assert_int_eq(stat_of(group).st_size, 3);
	request_forget(group);
}
END_TEST

/* ---- nodes that no name leads to ---- */

/* Makes the name of the root lead to another object, without a request. */
static void lead_elsewhere(const char *name, uint64_t address)
{
	const struct h5_link link = {
		.type = H5_LINK_HARD, .name = name, .name_size = strlen(name), .address = address};
	struct h5_file *file = scene.vfs->file;

	h5_unit_begin(file);
	SUCCEEDS(h5_group_remove(file, h5_file_superblock(file)->root, name, strlen(name)));
	SUCCEEDS(h5_unit_end(file, h5_group_insert(file, h5_file_superblock(file)->root, &link)));
}

START_TEST(a_name_that_leads_to_another_group)
{
	struct h5_node *group = request_find("group"), *root = h5_vfs_root(scene.vfs), *nodes[2];
	const uint64_t before = group->entity.address, empty = request_address("empty");

	lead_elsewhere("group", empty);
	for (unsigned i = 0; i < 2; i++) {
		nodes[i] = look_up(root, "group").node;
		ck_assert_uint_eq(nodes[i]->entity.address, empty);
	}
	ck_assert(nodes[0] == nodes[1] && nodes[0] != group);
	ck_assert(group->is_detached && !nodes[0]->is_detached);
	ck_assert_uint_ne(h5_vfs_id(group), h5_vfs_id(nodes[0]));
	lead_elsewhere("group", before);
	for (unsigned i = 0; i < 2; i++)
		request_forget(nodes[i]);
	request_forget(group);
	ASK("lookup", "group/sub");
}
END_TEST

/* Directories that are removed, or replaced. Their names lead to others then. */
START_TEST(directories_that_lose_their_names)
{
	struct h5_node *root = h5_vfs_root(scene.vfs), *empty = request_find("empty"), *moved, *again, *soft;

	ASK("rmdir", "empty");
	ck_assert(empty->is_detached);
	ASK("mkdir", "empty");
	again = request_find("empty");
	ck_assert_ptr_ne(again, empty);
	ASK("mkdir", "moved");
	moved = request_find("moved");
	ASK("rename", "moved", "empty");
	ck_assert(again->is_detached && !moved->is_detached);
	ck_assert_ptr_eq(look_up(root, "empty").node, moved);
	request_forget(moved);
	/* The target of a symbolic link depends on where it is. */
	soft = request_find("soft");
	ASK("rename", "soft", "soft2");
	ck_assert(soft->is_detached);
	request_forget(soft);
	/* Both change places. */
	soft = request_find("group");
	ASK("rename", "group", "empty", .flags = EXCHANGE);
	ck_assert(!soft->is_detached && !moved->is_detached);
	ck_assert_ptr_eq(look_up(root, "group").node, moved);
	ck_assert_ptr_eq(look_up(root, "empty").node, soft);
	request_forget(moved);
	request_forget(soft);
	request_forget(soft);
	request_forget(moved);
	request_forget(again);
	request_forget(empty);
}
END_TEST

/* What a directory has led to is not what its name leads to now: only that is renamed. */
START_TEST(directories_whose_names_lead_elsewhere)
{
	struct h5_node *root = h5_vfs_root(scene.vfs), *group = request_find("group"),
		       *empty = request_find("empty"), *data = request_find("data"), *found;
	const uint64_t address = data->entity.address;

	lead_elsewhere("group", address);
	ASK("rename", "group", "other");
	ck_assert(group->is_detached && group->parent == root);
	found = look_up(root, "other").node;
	ck_assert_ptr_eq(found, data);
	request_forget(found);
	lead_elsewhere("empty", address);
	ASK("rename", "fixed", "empty", .flags = EXCHANGE);
	ck_assert(empty->is_detached);
	found = look_up(root, "fixed").node;
	ck_assert_ptr_eq(found, data);
	request_forget(found);
	request_forget(group);
	request_forget(empty);
	request_forget(data);
}
END_TEST

/* The same of a dataset that gets its name back. */
START_TEST(a_backup_where_a_directory_was)
{
	const uint64_t address = request_address("data");
	struct h5_file *file = scene.vfs->file;
	struct h5_node *directory;

	ASK("mkdir", "data~");
	directory = request_find("data~");
	lead_elsewhere("data~", address);
	h5_unit_begin(file);
	SUCCEEDS(h5_unit_end(file, h5_group_remove(file, h5_file_superblock(file)->root, "data", 4)));
	ASK("create", "data", .flags = O_WRONLY, .value = "12345678");
	ASK("unlink", "data~");
	ck_assert_uint_eq(request_address("data"), address);
	request_check_bytes("data", "12345678", 8);
	ck_assert(directory->is_detached);
	request_forget(directory);
}
END_TEST

/* ---- numbers ---- */

/* What a number leads to is not new, and its name may be kept. */
START_TEST(look_ups_by_number)
{
	static const char *const paths[] = {"group", "data", "group/file", ""};

	for (unsigned i = 0; i < 4; i++) {
		struct h5_node *node = request_find(paths[i]);
		struct h5_vfs_entry entry = {.passing = true, .made = true};

		SUCCEEDS(h5_vfs_lookup_id(scene.vfs, h5_vfs_id(node), &entry));
		ck_assert(entry.node == node && !entry.passing && !entry.made && entry.size_known);
		request_forget(node);
		entry.passing = entry.made = true;
		if (i) /* others have several directories, or none */
			continue;
		SUCCEEDS(h5_vfs_lookup_parent(scene.vfs, h5_vfs_id(node), &entry));
		ck_assert(entry.node == h5_vfs_root(scene.vfs) && !entry.passing && !entry.made);
		request_forget(entry.node);
	}
}
END_TEST

/* They stay the same from mount to mount: splitmix64's own first number, for the seed 0, and what follows. */
START_TEST(numbers_of_names)
{
	static const struct {
		const char *name;
		uint64_t link, below_views;
	} cases[] = {{"", 0xa220a8397b1dcdaf, 0xe220a8397b1dcdaf},
		     {"a", 0xb43e69370ad4a4ee, 0xf43e69370ad4a4ee},
		     {"\xff", 0x9b81c4efd23cec85, 0xdb81c4efd23cec85}};
	const struct h5_entity link = {.kind = H5_NODE_SYMLINK}, views = {.kind = H5_NODE_VIEWS};
	const struct h5_node parent = {.ino = 0x9e3779b97f4a7c15};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_assert_uint_eq(h5_node_ino(scene.vfs, &parent, cases[i].name, &link), cases[i].link);
		ck_assert_uint_eq(h5_node_ino(scene.vfs, &parent, cases[i].name, &views),
				  cases[i].below_views);
	}
}
END_TEST

/* On a mount for reading the kernel may keep all names. */
START_TEST(names_that_are_only_read)
{
	static const char *const names[][2] = {
		{"", "data"}, {"", "soft"}, {"", ".h5fs"}, {".h5fs/npy", "data.npy"}, {"outside", "file"}};

	request_close();
	request_open(scene.path, false, NULL);
	for (unsigned i = 0; i < 5; i++) {
		struct h5_node *parent = request_find(names[i][0]);
		struct h5_vfs_entry entry = look_up(parent, names[i][1]);

		ck_assert_msg(!entry.passing, "%s", names[i][1]);
		ck_assert(!h5_vfs_is_passing(scene.vfs, parent));
		request_forget(entry.node);
		request_forget(parent);
	}
}
END_TEST

/* ---- commits ---- */

/* Names change without a commit, but where an object could be without a name for an instant. */
START_TEST(names_that_need_no_commit)
{
	static const struct {
		struct request request;
		bool commits;
	} steps[] = {
		{{"unlink", "soft", .error = 0}, false},
		{{"rename", "data", "x", .error = 0}, false},
		{{"rename", "fixed", "y", .error = 0}, false},
		{{"rmdir", "empty", .error = 0}, false},
		/* The group has lost names. */
		{{"rename", "group/file", "z", .error = 0}, true},
		{{"unlink", "group/again", .error = 0}, false},
		{{"mkdir", "group/new", .error = 0}, false},
	};

	SUCCEEDS(h5_vfs_commit(scene.vfs));
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		const uint64_t before = h5_objects_transaction(scene.vfs);

		ck_assert_int_eq(request_ask(&steps[i].request), 0);
		ck_assert_msg((h5_objects_transaction(scene.vfs) != before) == steps[i].commits, "%zu", i);
	}
}
END_TEST

/* A commit fails so that the mount takes no more changes: each sync says that what was written is not stored,
 * until the file is mounted anew. */
START_TEST(mounts_that_have_given_up)
{
	struct h5_node *node, *root;
	struct h5_handle *handle;
	unsigned long n = 0;
	uint64_t stale;
	size_t written;
	int rc;

	request_close();
	request_open(scene.path, true, NULL);
	root = h5_vfs_root(scene.vfs);
	node = request_find("data");
	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, O_WRONLY, &handle));
	/* Until the commit fails after it has begun to write cells. */
	do {
		SUCCEEDS(h5_vfs_write(handle, 0, "abcd", 4, H5_WRITE_APPEND, &written, &stale));
		fault_io_arm(&request_io, ++n);
		request_io.lasting = true;
		rc = h5_vfs_commit(scene.vfs);
		ck_assert(fault_io_disarm(&request_io));
	} while (h5_tx_is_writable(scene.vfs->file));
	ck_assert_int_eq(rc, -ENOSPC);
	request_io.lasting = false;
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(h5_vfs_commit(scene.vfs), -EROFS);
		ck_assert_int_eq(h5_vfs_fsync_directory(scene.vfs, root), -EROFS);
		ck_assert_int_eq(h5_vfs_fsync(handle), -EROFS);
		ck_assert_str_eq(h5_error_last()->text, "writing was given up after a failure");
	}
	ck_assert_int_eq(h5_vfs_write(handle, 0, "ABCD", 4, H5_WRITE_AT, &written, &stale), -EROFS);
	h5_vfs_close_file(handle);
	request_forget(node);
	h5_vfs_close(scene.vfs);
	h5_file_set_close(scene.set);
	request_open(scene.path, true, NULL);
	request_check_bytes("fixed", request_elements, sizeof request_elements);
	SUCCEEDS(h5_vfs_commit(scene.vfs));
}
END_TEST

static blkcnt_t blocks_of_file(void)
{
	struct stat st;

	ck_assert_int_eq(stat(scene.path, &st), 0);
	return st.st_blocks;
}

/* Writes the dataset and removes it again, in two commits. */
static void write_and_remove(const char *name, struct h5_node *directory)
{
	static char bytes[4 * H5_WASTE_LEAST];

	memset(bytes, 'b', sizeof bytes);
	ASK("mknod", name);
	request_write(name, O_WRONLY, bytes, sizeof bytes);
	SUCCEEDS(h5_vfs_fsync_directory(scene.vfs, directory));
	ASK("unlink", name);
	SUCCEEDS(h5_vfs_fsync_directory(scene.vfs, directory));
}

/* While a new file has not got its name yet, the transaction is empty for a moment alone: within the commit
 * that no request waits for. That gives space back then. */
START_TEST(space_beside_new_files)
{
	struct h5_node *group = request_find("group");
	struct h5_handle *handle;
	struct h5_vfs_entry entry;
	uint64_t stale;
	size_t written;

	SUCCEEDS(h5_vfs_create(scene.vfs, group, "new", O_WRONLY, &entry, &handle));
	SUCCEEDS(h5_vfs_write(handle, 0, "bytes", 5, H5_WRITE_AT, &written, &stale));
	for (unsigned i = 0; i < 2; i++) {
		const blkcnt_t half = 2 * H5_WASTE_LEAST / 512, before = blocks_of_file();

		write_and_remove("large", group);
		ck_assert_int_gt(blocks_of_file(), before + half);
		SUCCEEDS(h5_vfs_commit(scene.vfs));
		ck_assert_int_lt(blocks_of_file(), before + half);
	}
	ck_assert_ptr_nonnull(scene.vfs->pending);
	h5_vfs_close_file(handle);
	h5_vfs_forget(scene.vfs, entry.node, 1);
	request_forget(group);
}
END_TEST

/* Who asks for it is told if space cannot be given back, for then the mount takes no more changes. */
START_TEST(space_that_cannot_be_given_back)
{
	for (unsigned i = 0; i < 2; i++) {
		struct h5_node *group = request_find("group");

		write_and_remove("large", group);
		request_forget(group);
		fault_io_arm(&request_io, 1);
		request_io.lasting = true;
		ck_assert_int_eq(i ? h5_vfs_give_back(scene.vfs)
				   : h5_vfs_fsync_directory(scene.vfs, h5_vfs_root(scene.vfs)),
				 -ENOSPC);
		ck_assert(fault_io_disarm(&request_io));
		request_io.lasting = false;
		ck_assert(!h5_tx_is_writable(scene.vfs->file));
		h5_vfs_close(scene.vfs);
		h5_file_set_close(scene.set);
		request_open(scene.path, true, NULL);
		request_check_bytes("data", request_elements, sizeof request_elements);
	}
	SUCCEEDS(h5_vfs_give_back(scene.vfs));
}
END_TEST

/* A commit of names fails: no name leads any more to nodes that had got theirs since the one before. */
START_TEST(names_that_are_given_up)
{
	struct h5_node *empty, *group, *made, *again;

	SUCCEEDS(h5_vfs_commit(scene.vfs));
	ASK("mkdir", "made");
	made = request_find("made");
	group = request_find("group");
	empty = request_find("empty");
	ASK("rename", "empty", "moved");
	fault_io_arm(&request_io, 1);
	ck_assert_int_eq(h5_vfs_commit(scene.vfs), -ENOSPC);
	ck_assert(fault_io_disarm(&request_io) && h5_tx_is_writable(scene.vfs->file));
	ck_assert(made->is_detached && empty->is_detached && !group->is_detached);
	ck_assert(!made->shown && made->entity.address == H5_UNDEF);
	again = request_find("empty");
	ck_assert(again != empty && !again->is_detached);
	ASK("mkdir", "made");
	request_forget(again);
	request_forget(empty);
	request_forget(group);
	request_forget(made);
	ck_assert_uint_eq(request_size("made"), 0);
}
END_TEST

/* One that was made through a handle, and to which nothing was written, is not stored when that is closed. */
START_TEST(a_new_file_without_bytes)
{
	struct h5_node *root = h5_vfs_root(scene.vfs);
	struct h5_handle *handle;
	struct h5_vfs_entry entry;
	uint64_t before;

	scene.vfs->options.commit_at_close = true;
	SUCCEEDS(h5_vfs_create(scene.vfs, root, "x", O_WRONLY, &entry, &handle));
	ASK("set", "x", "h5fs.dtype", "<i4");
	before = h5_objects_transaction(scene.vfs);
	SUCCEEDS(h5_vfs_flush(handle));
	ck_assert_uint_eq(h5_objects_transaction(scene.vfs), before);
	h5_vfs_close_file(handle);
	h5_vfs_forget(scene.vfs, entry.node, 1);
}
END_TEST

/* A shell truncates a file of text and closes one of its descriptors. What nobody has written by the last
 * close is then stored as no text. */
START_TEST(a_text_that_is_emptied)
{
	struct h5_handle *handle;
	struct h5_node *node;

	ASK("set", "new", "h5fs.info", "{\"dtype\":\"vlen str\",\"shape\":\"0\",\"maxshape\":\"inf\"}");
	request_write("new", O_WRONLY | O_TRUNC, "one\n", 4);
	scene.vfs->options.commit_at_close = true;
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	node = request_find("new");
	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, O_WRONLY | O_TRUNC, &handle));
	SUCCEEDS(h5_vfs_flush(handle));
	request_check_bytes("new", "one\n", 4);
	h5_vfs_close_file(handle);
	ck_assert(!h5_tx_is_pending(scene.vfs->file));
	request_check_bytes("new", "", 0);
	request_forget(node);
}
END_TEST

/* ---- objects ---- */

/* The last node of an object without names takes it along: with the next commit, for which a thread waits. */
START_TEST(objects_that_nobody_knows)
{
	struct h5_node *data = request_find("data"), *fixed = request_find("fixed");

	ASK("unlink", "data");
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	scene.vfs->is_changed = false;
	request_forget(fixed);
	ck_assert(!scene.vfs->is_changed);
	ck_assert_ptr_null(scene.vfs->unused);
	request_forget(data);
	ck_assert(scene.vfs->is_changed);
	ck_assert_ptr_nonnull(scene.vfs->unused);
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	ck_assert_ptr_null(scene.vfs->unused);
}
END_TEST

/* A listing decodes each object once, and does not keep it. */
START_TEST(listings_of_objects)
{
	struct h5_vfs_entry entries[10];
	struct h5_lru_stats before, after;
	struct h5_node *node;
	struct h5_dir *dir;
	size_t got;

	request_close();
	request_open(scene.path, false, NULL);
	SUCCEEDS(h5_vfs_opendir(scene.vfs, h5_vfs_root(scene.vfs), &dir));
	ck_assert_uint_eq(h5_vfs_dir_count(dir), 10);
	h5_lru_stats(scene.vfs->blocks, &before);
	SUCCEEDS(h5_vfs_dir_read(dir, 0, 10, true, entries, &got));
	ck_assert_uint_eq(got, 10);
	h5_lru_stats(scene.vfs->blocks, &after);
	/* Two links lead to another file, which is opened. */
	ck_assert_uint_le(after.entries - before.entries, 4);
	for (size_t i = 0; i < got; i++) {
		node = request_find(h5_vfs_dir_name(dir, i));
		ck_assert_ptr_eq(node, entries[i].node);
		ck_assert_uint_eq(node->references, 2);
		request_forget(node);
		request_forget(node);
	}
	h5_vfs_closedir(dir);
}
END_TEST

static uint64_t looks_at_cache(void)
{
	struct h5_lru_stats stats;

	h5_lru_stats(scene.vfs->blocks, &stats);
	return stats.hits + stats.misses;
}

/* A list is made anew only if names have changed since it was made. */
START_TEST(lists_that_are_kept)
{
	static const char *const made[] = {"group/x", "group/y"};
	struct h5_node *group = request_find("group");
	struct h5_dir *dir;
	uint64_t before;

	ASK("mkdir", "x");
	SUCCEEDS(h5_vfs_opendir(scene.vfs, group, &dir));
	for (unsigned i = 0; i < 2; i++) {
		before = looks_at_cache();
		SUCCEEDS(h5_vfs_dir_rewind(dir));
		ck_assert_uint_eq(looks_at_cache(), before);
		ASK("mkdir", made[i]);
		before = looks_at_cache();
		SUCCEEDS(h5_vfs_dir_rewind(dir));
		ck_assert_uint_gt(looks_at_cache(), before);
		ck_assert_uint_eq(h5_vfs_dir_count(dir), 4 + i);
	}
	h5_vfs_closedir(dir);
	request_forget(group);
}
END_TEST

/* The kernel keeps no attributes of files that may be written. Of one that it knows a listing tells only what
 * it is. */
START_TEST(listings_of_files_that_are_known)
{
	struct h5_vfs_entry entries[10];
	struct h5_node *data = request_find("data");
	struct h5_dir *dir;
	size_t got;

	SUCCEEDS(h5_vfs_opendir(scene.vfs, h5_vfs_root(scene.vfs), &dir));
	SUCCEEDS(h5_vfs_dir_read(dir, 0, 10, true, entries, &got));
	ck_assert_uint_eq(got, 10);
	for (size_t i = 0; i < got; i++) {
		const bool known = !strcmp(h5_vfs_dir_name(dir, i), "data");

		ck_assert_msg(!entries[i].node == known, "%s", h5_vfs_dir_name(dir, i));
		if (!known) {
			h5_vfs_forget(scene.vfs, entries[i].node, 1);
			continue;
		}
		ck_assert_uint_eq(entries[i].st.st_ino, data->ino);
		ck_assert_uint_eq(entries[i].st.st_mode, S_IFREG);
	}
	h5_vfs_closedir(dir);
	ck_assert_uint_eq(data->references, 1);
	request_forget(data);
}
END_TEST

UNIT_MAIN_AROUND("remembered", request_begin, request_end, numbers_of_links,
		 a_name_that_leads_to_another_group, directories_that_lose_their_names,
		 directories_whose_names_lead_elsewhere, a_backup_where_a_directory_was, look_ups_by_number,
		 names_that_are_only_read, numbers_of_names, names_that_need_no_commit,
		 mounts_that_have_given_up, space_beside_new_files, objects_that_nobody_knows,
		 names_that_are_given_up, space_that_cannot_be_given_back, a_new_file_without_bytes,
		 a_text_that_is_emptied, listings_of_objects, lists_that_are_kept,
		 listings_of_files_that_are_known)
