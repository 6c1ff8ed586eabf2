/* Walks over a tree: what ends them, what they leave out, and the longest paths. */
#include "base/error.h"
#include "fault_alloc.h"
#include "offline/walk.h"
#include "scratch.h"
#include "vfs/private.h"
#include "vfs_scene.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { PATH_MOST = 1 << 20 };

/* What a walk does and what it has found. */
struct trip {
	unsigned visits_left, leaves_left; /* the last of so many returns -ECANCELED; 0: none does */
	bool stay;			   /* enter no directory */
	unsigned visited, left, failed, entered;
	int code;	     /* of the last failure */
	size_t longest;	     /* name that was visited */
	char places[20][80]; /* paths of the first visits; as many bytes as there is room for */
};

static struct vfs_scene scene;

/* ---- whether the walk is still wanted ---- */

static unsigned checks_left; /* the last of so many says that it is not, and all behind it; 0: it is */
static bool is_unwanted;

int __wrap_h5_interrupt_check(void);
int __wrap_h5_interrupt_check(void)
{
	is_unwanted = is_unwanted || (checks_left && !--checks_left);
	return is_unwanted ? h5_fail(-EINTR, H5_UNDEF, "interrupted") : 0;
}

/* ---- walks ---- */

static int visit(struct h5_walk *walk, const char *name, const struct h5_vfs_entry *entry, bool *enter)
{
	struct trip *trip = walk->arg;
	size_t n = strlen(name);

	ck_assert_uint_ge(walk->path.size, n);
	ck_assert_mem_eq((const char *)walk->path.data + walk->path.size - n, name, n);
	ck_assert_int_eq(*enter, S_ISDIR(entry->st.st_mode));
	*enter = *enter && !trip->stay && strcmp(name, ".h5fs");
	trip->entered += *enter;
	trip->longest = n > trip->longest ? n : trip->longest;
	if (trip->visited < 20)
		snprintf(trip->places[trip->visited], 80, "%.*s", (int)walk->path.size,
			 (const char *)walk->path.data);
	trip->visited++;
	return trip->visits_left && !--trip->visits_left ? -ECANCELED : 0;
}

static int leave(struct h5_walk *walk, const struct h5_vfs_entry *entry)
{
	struct trip *trip = walk->arg;

	ck_assert(S_ISDIR(entry->st.st_mode));
	trip->left++;
	return trip->leaves_left && !--trip->leaves_left ? -ECANCELED : 0;
}

static void failed(struct h5_walk *walk, int code)
{
	struct trip *trip = walk->arg;

	trip->failed++;
	trip->code = code;
}

static int go(struct trip *trip, const char *path)
{
	static const struct h5_walk_ops ops = {.visit = visit, .leave = leave, .failed = failed};
	struct h5_walk walk = {.vfs = scene.vfs, .ops = &ops, .arg = trip};
	int rc;

	fault_alloc_count(true);
	rc = h5_walk_run(&walk, h5_vfs_root(scene.vfs), path);
	fault_alloc_count(false);
	ck_assert_ptr_null(scene.vfs->dirs);
	return rc;
}

static void setup(void)
{
	vfs_scene_open_to_read(&scene, "read_faults/new.h5");
}

static void teardown(void)
{
	vfs_scene_close(&scene);
}

START_TEST(all_is_visited)
{
	struct trip trip = {0}, top = {.stay = true};
	bool found = false;

	ck_assert_int_eq(go(&top, "/"), 0);
	ck_assert_uint_eq(top.left, 0);
	ck_assert_int_eq(go(&trip, "/"), 0);
	ck_assert_uint_gt(trip.visited, top.visited);
	ck_assert_uint_eq(trip.left, trip.entered);
	ck_assert_uint_gt(trip.left, 2);
	ck_assert_uint_eq(trip.failed, 0);
	for (unsigned i = 0; i < 20; i++)
		found = found || !strcmp(trip.places[i], "/deep/er/target");
	ck_assert(found);
}
END_TEST

/* An operation ends it, at each place. */
START_TEST(what_ends_a_walk)
{
	struct trip all = {0};

	ck_assert_int_eq(go(&all, "/"), 0);
	for (unsigned n = 1; n <= all.visited; n++) {
		struct trip trip = {.visits_left = n};

		ck_assert_int_eq(go(&trip, "/"), -ECANCELED);
		ck_assert_uint_eq(trip.visited, n);
	}
	for (unsigned n = 1; n <= all.left; n++) {
		struct trip trip = {.leaves_left = n};

		ck_assert_int_eq(go(&trip, "/"), -ECANCELED);
		ck_assert_uint_eq(trip.left, n);
	}
	ck_assert_uint_eq(all.failed, 0);
}
END_TEST

/* It ends at the next entry, and this is told. */
START_TEST(a_walk_that_nobody_wants)
{
	for (unsigned n = 1; !checks_left; n++) {
		struct trip trip = {0};
		int rc;

		checks_left = n;
		is_unwanted = false;
		rc = go(&trip, "/");
		ck_assert_int_eq(rc, is_unwanted ? -EINTR : 0);
		ck_assert_int_eq(trip.code, rc);
	}
	checks_left = 0;
	is_unwanted = false;
}
END_TEST

/* A name that does not fit is told and left out. */
START_TEST(the_longest_paths)
{
	struct trip all = {.stay = true};
	char *path = malloc(PATH_MOST + 2);

	ck_assert_int_eq(go(&all, "/"), 0);
	for (size_t room = 0; room <= all.longest; room++) {
		struct trip trip = {.stay = true};
		size_t n = PATH_MOST - 1 - room; /* the slash before the name */

		memset(path, 'x', n);
		path[n] = 0;
		ck_assert_int_eq(go(&trip, path), 0);
		ck_assert_uint_eq(trip.visited + trip.failed, all.visited);
		ck_assert_uint_le(trip.longest, room);
		ck_assert_int_eq(!trip.failed, room == all.longest);
		ck_assert(!trip.failed || trip.code == -ENAMETOOLONG);
		ck_assert(room || !trip.visited);
	}
	for (unsigned more = 0; more < 2; more++) {
		struct trip trip = {0};

		memset(path, 'x', PATH_MOST + more);
		path[PATH_MOST + more] = 0;
		ck_assert_int_eq(go(&trip, path) != 0, more);
		ck_assert_uint_eq(trip.visited, 0);
		ck_assert_uint_gt(trip.failed, 0);
	}
	free(path);
}
END_TEST

/* Each allocation fails once: what is not visited is told. */
START_TEST(no_memory)
{
	struct trip all = {0};
	bool hit = true;

	ck_assert_int_eq(go(&all, "/"), 0);
	for (unsigned long n = 1; hit; n++) {
		struct trip trip = {0};
		int rc;

		vfs_scene_empty_caches(&scene);
		fault_alloc_arm(n);
		rc = go(&trip, "/");
		hit = fault_alloc_disarm();
		ck_assert_int_eq(rc, trip.failed ? -ENOMEM : 0);
		ck_assert(!rc || hit);
		ck_assert_msg(trip.failed || (!rc && trip.visited == all.visited), "%lu: %d", n, rc);
	}
}
END_TEST

/* The first directory is one of 10,000 levels, at most. */
START_TEST(the_deepest_tree)
{
	enum { GROUPS = 10000 };
	static const struct h5_walk_ops ops = {.visit = visit, .leave = leave, .failed = failed};
	struct trip trip = {0}, below = {0};
	struct h5_walk walk = {.vfs = scene.vfs, .ops = &ops, .arg = &below};
	struct h5_vfs_entry first;

	vfs_scene_close(&scene);
	vfs_scene_open_to_read(&scene, "check_deep.h5");
	ck_assert_int_eq(go(&trip, "/"), 0);
	ck_assert_uint_eq(trip.visited, GROUPS);
	ck_assert_uint_eq(trip.left, GROUPS);
	ck_assert_uint_eq(trip.failed, 1);
	ck_assert_int_eq(trip.code, -ELOOP);
	walk.vfs = scene.vfs;
	ck_assert_int_eq(h5_vfs_lookup(scene.vfs, h5_vfs_root(scene.vfs), "g", &first), 0);
	ck_assert_int_eq(h5_walk_run(&walk, first.node, "/g"), 0);
	ck_assert_uint_eq(below.visited, GROUPS - 1);
	ck_assert_uint_eq(below.left, GROUPS - 1);
	ck_assert_uint_eq(below.failed, 0);
	h5_vfs_forget(scene.vfs, first.node, 1);
}
END_TEST

UNIT_MAIN_AROUND("walk", setup, teardown, all_is_visited, what_ends_a_walk, a_walk_that_nobody_wants,
		 the_longest_paths, the_deepest_tree, no_memory)
