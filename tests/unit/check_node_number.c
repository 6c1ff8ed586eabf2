/* The kernel's numbers for nodes, without a mount: each leads to its own node as long as the kernel has it,
 * whatever becomes of the name. And how many names a directory has. */
#include "fault_alloc.h"
#include "scratch.h"
#include "unit.h"
#include "vfs_scene.h"

#include <errno.h>
#include <stdio.h>

#define EXCHANGE 2

static struct vfs_scene scene;

static void begin(void)
{
	vfs_scene_open(&scene, "name_change-dense.h5");
}

/* ---- requests, whose allocations count ---- */

static int make(const char *name, struct h5_vfs_entry *entry)
{
	int rc;

	fault_alloc_count(true);
	rc = h5_vfs_mkdir(scene.vfs, h5_vfs_root(scene.vfs), name, entry);
	fault_alloc_count(false);
	return rc;
}

static int move(const char *from, const char *to, unsigned flags)
{
	struct h5_node *root = h5_vfs_root(scene.vfs);
	int rc;

	fault_alloc_count(true);
	rc = h5_vfs_rename(scene.vfs, root, from, root, to, flags);
	fault_alloc_count(false);
	return rc;
}

static int take_away(const char *name)
{
	return h5_vfs_rmdir(scene.vfs, h5_vfs_root(scene.vfs), name);
}

/* ---- what numbers lead to ---- */

/* The kernel has the node, and its number leads to it. */
static void check_node(const struct h5_vfs_entry *entry)
{
	ck_assert_ptr_eq(h5_vfs_node(scene.vfs, h5_vfs_id(entry->node)), entry->node);
}

/* The kernel forgets the node, whose number leads nowhere then. */
static void forget(const struct h5_vfs_entry *entry)
{
	uint64_t id = h5_vfs_id(entry->node);

	h5_vfs_forget(scene.vfs, entry->node, 1);
	ck_assert_ptr_null(h5_vfs_node(scene.vfs, id));
}

/* True: the name leads to the node of the entry. */
static bool leads_to(const char *name, const struct h5_vfs_entry *entry)
{
	struct h5_vfs_entry found;
	bool same;

	SUCCEEDS(h5_vfs_lookup(scene.vfs, h5_vfs_root(scene.vfs), name, &found));
	check_node(&found);
	same = found.node == entry->node;
	ck_assert(same == (h5_vfs_id(found.node) == h5_vfs_id(entry->node)));
	h5_vfs_forget(scene.vfs, found.node, 1);
	return same;
}

/* The kernel may have several directories that had the same name, one after the other. */
START_TEST(directories_of_one_name)
{
	enum { LAST = 4 };
	static const unsigned order[LAST + 1] = {0, 2, LAST, 3, 1};
	struct h5_vfs_entry made[LAST + 1];

	begin();
	for (unsigned i = 0; i <= LAST; i++) {
		SUCCEEDS(make("same", &made[i]));
		if (i < LAST)
			SUCCEEDS(take_away("same"));
	}
	for (unsigned i = 0; i <= LAST; i++) {
		for (unsigned j = i; j <= LAST; j++) {
			check_node(&made[order[j]]);
			ck_assert(leads_to("same", &made[order[j]]) == (order[j] == LAST));
		}
		forget(&made[order[i]]);
	}
	vfs_scene_close(&scene);
}
END_TEST

/* A directory that is renamed keeps its number. If memory is short, its new name may lead to another node. */
START_TEST(renamed_directories)
{
	struct h5_vfs_entry made, other, again;
	bool failed = true;

	begin();
	for (unsigned long n = 1; failed; n++) {
		SUCCEEDS(make("one", &made));
		SUCCEEDS(h5_vfs_commit(scene.vfs)); /* so no request has to commit first */
		fault_alloc_arm(n);
		move("one", "two", 0);
		failed = fault_alloc_disarm();
		check_node(&made);
		if (!failed)
			break;
		if (take_away("two") == -ENOENT) {
			ck_assert(leads_to("one", &made));
			SUCCEEDS(take_away("one"));
		}
		check_node(&made);
		forget(&made);
	}
	ck_assert(leads_to("two", &made));
	SUCCEEDS(make("one", &other));
	check_node(&made);
	check_node(&other);
	SUCCEEDS(move("one", "two", EXCHANGE));
	ck_assert(leads_to("one", &made) && leads_to("two", &other));
	SUCCEEDS(take_away("two"));
	SUCCEEDS(make("two", &again));
	check_node(&other);
	forget(&other);
	ck_assert(leads_to("one", &made) && leads_to("two", &again));
	forget(&again);
	forget(&made);
	vfs_scene_close(&scene);
}
END_TEST

/* Each allocation of the request fails once, until it is done. */
static void make_with_failures(const char *name, struct h5_vfs_entry *entry)
{
	int rc = -ENOMEM;

	for (unsigned long n = 1; rc; n++) {
		fault_alloc_arm(n);
		rc = make(name, entry);
		fault_alloc_disarm();
		ck_assert(!rc || rc == -ENOMEM);
	}
}

/* So many that the table of nodes grows, while memory is short. */
START_TEST(growing_table)
{
	enum { MANY = 200 };
	static struct h5_vfs_entry moved[MANY], made[MANY];

	begin();
	for (unsigned i = 0; i < MANY; i++) {
		char name[16], renamed[16];

		snprintf(name, sizeof name, "from%u", i);
		snprintf(renamed, sizeof renamed, "to%u", i);
		make_with_failures(name, &moved[i]);
		SUCCEEDS(move(name, renamed, 0));
		make_with_failures(name, &made[i]);
		ck_assert(leads_to(name, &made[i]) && leads_to(renamed, &moved[i]));
		SUCCEEDS(h5_vfs_commit(scene.vfs));
	}
	for (unsigned i = 0; i < MANY; i++) {
		for (unsigned j = i; j < MANY; j++) {
			check_node(&moved[j]);
			check_node(&made[j]);
		}
		forget(&moved[i]);
		forget(&made[i]);
	}
	vfs_scene_close(&scene);
}
END_TEST

/* A directory is as large as it has names, which are counted once and then added and taken away. */
START_TEST(sizes_of_directories)
{
	struct h5_vfs_entry d, inner[3];
	struct stat st, root;
	char name[] = "0";

	begin();
	SUCCEEDS(h5_vfs_getattr(scene.vfs, h5_vfs_root(scene.vfs), &root));
	SUCCEEDS(make("d", &d));
	SUCCEEDS(h5_vfs_getattr(scene.vfs, h5_vfs_root(scene.vfs), &st));
	ck_assert_int_eq(st.st_size, root.st_size + 1);
	for (int i = 0; i < 3; i++) {
		SUCCEEDS(h5_vfs_getattr(scene.vfs, d.node, &st));
		ck_assert_int_eq(st.st_size, i);
		name[0] = (char)('0' + i);
		SUCCEEDS(h5_vfs_mkdir(scene.vfs, d.node, name, &inner[i]));
	}
	for (int i = 2; i >= 0; i--) {
		SUCCEEDS(h5_vfs_getattr(scene.vfs, d.node, &st));
		ck_assert_int_eq(st.st_size, i + 1);
		name[0] = (char)('0' + i);
		SUCCEEDS(h5_vfs_rmdir(scene.vfs, d.node, name));
		h5_vfs_forget(scene.vfs, inner[i].node, 1);
	}
	SUCCEEDS(h5_vfs_getattr(scene.vfs, d.node, &st));
	ck_assert_int_eq(st.st_size, 0);
	h5_vfs_forget(scene.vfs, d.node, 1);
	vfs_scene_close(&scene);
}
END_TEST

UNIT_MAIN("node_number", sizes_of_directories, directories_of_one_name, renamed_directories, growing_table)
