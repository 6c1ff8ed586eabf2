/* Listings of a folder, and of directories in its files, that fail: nobody must take a part of the names for
 * all of them. */
#include "fault_alloc.h"
#include "scratch.h"
#include "tree_scene.h"

#include <stdio.h>
#include <string.h>

enum { MORE = 3 * H5_TREE_NAMES };

static int error_at_end;

int __wrap_h5_vfs_dir_error(const struct h5_dir *dir);

int __wrap_h5_vfs_dir_error(const struct h5_dir *dir)
{
	ck_assert_ptr_nonnull(dir);
	return error_at_end;
}

/* How many names there are from the position on, or why they cannot be read. */
static int count_names(struct h5_tree_dir *dir, uint64_t at)
{
	struct h5_tree_name names[H5_TREE_NAMES];
	size_t got;
	int all = 0, rc;

	do {
		rc = h5_tree_readdir(dir, at, names, &got);
		if (rc)
			return rc;
		all += (int)got;
		at = got ? names[got - 1].next : at;
	} while (got);
	return all;
}

/* What a listing that has failed knows is whole names. */
static void check_names(struct h5_tree_dir *dir, struct h5_tree_node *parent)
{
	struct h5_tree_name names[H5_TREE_NAMES];
	size_t got;

	for (uint64_t at = 1; at < MORE; at = names[got - 1].next) {
		SUCCEEDS(h5_tree_readdir(dir, at, names, &got));
		if (!got)
			return;
		for (size_t i = 0; i < got; i++)
			folder_forget(folder_find(parent, names[i].name));
	}
}

/* A folder of which not all can be remembered is not listed. It is read anew from its begin. */
START_TEST(names_without_memory)
{
	struct h5_tree_node *f = folder_find(h5_tree_root(folder.tree), "f");
	struct h5_tree_dir *dir;
	unsigned refused = 0;
	bool failed = true;

	for (unsigned i = 1; i < MORE; i++) {
		char name[64];

		snprintf(name, sizeof name, "f/a file with a long name, so that they take room, %u", i);
		folder_make_file(name, "x", 0, 1);
	}
	SUCCEEDS(h5_tree_opendir(folder.tree, f, &dir));
	h5_tree_closedir(dir);
	for (unsigned long n = 1; failed; n++) {
		int all;

		SUCCEEDS(h5_tree_opendir(folder.tree, f, &dir));
		fault_alloc_arm(n);
		fault_alloc_count(true);
		all = count_names(dir, 0);
		fault_alloc_count(false);
		failed = fault_alloc_disarm();
		ck_assert_msg(all == MORE || (failed && all == -ENOMEM), "%lu: %d", n, all);
		refused += all < 0;
		check_names(dir, f);
		ck_assert_int_eq(count_names(dir, 0), MORE);
		ck_assert_int_eq(count_names(dir, MORE - 10), 10);
		h5_tree_closedir(dir);
	}
	ck_assert_uint_gt(refused, 3);
	fault_alloc_arm(1);
	fault_alloc_count(true);
	ck_assert_int_eq(h5_tree_opendir(folder.tree, f, &dir), -ENOMEM);
	fault_alloc_count(false);
	ck_assert(fault_alloc_disarm());
	ck_assert_ptr_null(folder.tree->dirs);
	folder_forget(f);
}
END_TEST

/* The error comes after the names that could be read. */
START_TEST(damaged_directories)
{
	struct h5_tree_node *file = folder_find(h5_tree_root(folder.tree), "a.h5");
	struct h5_tree_name names[H5_TREE_NAMES];
	struct h5_tree_dir *dir;
	size_t got;
	int all;

	SUCCEEDS(h5_tree_opendir(folder.tree, file, &dir));
	all = count_names(dir, 0);
	ck_assert_int_gt(all, 2);
	error_at_end = -EUCLEAN;
	SUCCEEDS(h5_tree_readdir(dir, 0, names, &got));
	ck_assert_int_eq((int)got, all);
	ck_assert_int_eq(h5_tree_readdir(dir, names[got - 1].next, names, &got), -EUCLEAN);
	ck_assert_uint_eq(got, 0);
	ck_assert_int_eq(count_names(dir, 0), -EUCLEAN);
	error_at_end = 0;
	ck_assert_int_eq(count_names(dir, 0), all);
	h5_tree_closedir(dir);
	folder_forget(file);
}
END_TEST

UNIT_MAIN_AROUND("tree_listing", folder_begin, folder_end, names_without_memory, damaged_directories)
