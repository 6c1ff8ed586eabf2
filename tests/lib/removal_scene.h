/* What the tests of removed objects share: files whose objects can be removed, and what these use. */
#ifndef H5_TESTS_REMOVAL_SCENE_H
#define H5_TESTS_REMOVAL_SCENE_H

#include "base/extents.h"
#include "scratch.h"

static const unsigned removal_versions[] = {0, 2, 3}; /* of superblocks */
enum { REMOVAL_VERSIONS = sizeof removal_versions / sizeof *removal_versions, REMOVAL_OBJECTS_MAX = 64 };

/* An object. */
struct removable {
	char path[64];
	uint64_t bytes; /* that it has, as libhdf5 sees it */
};

struct removal_scene {
	struct scratch scratch;
	struct fault_io fault;
	struct removable objects[REMOVAL_OBJECTS_MAX];
	unsigned count, staying; /* the first ones go; the last ones stay */
};

/* Opens a copy of the fixture object_removal-PREFIXVERSION.h5, without its list of objects. */
void removal_open(struct removal_scene *s, const char *prefix, unsigned version);
/* Opens a copy of the fixture object_removal-VERSION.h5. */
void removal_begin(struct removal_scene *s, unsigned version);
void removal_end(struct removal_scene *s);

/* The address of an object. */
uint64_t removal_find(const struct removal_scene *s, const char *path);
/* Its number of names and uses. */
uint32_t removal_references(const struct removal_scene *s, const char *path);
/* Removes the link of that path. */
int removal_unlink(struct removal_scene *s, const char *path);
/* Removes an object with its only name. */
int removal_remove(struct removal_scene *s, const char *path);

/* Copies the table of shared messages, in a file without a list of objects, to where it crosses a page: so it
 * moves if it changes. Returns its address. */
uint64_t removal_put_table_across_pages(struct removal_scene *s);

/* Extents that were visited. */
struct removal_sum {
	uint64_t bytes;
	struct h5_extents *met; /* by this and other objects */
};

/* h5_extent_visit: adds an extent, none of whose bytes was met before. `arg`: a struct removal_sum. */
int removal_add_extent(void *arg, uint64_t address, uint64_t n);
/* h5_extent_visit: 77. */
int removal_stop(void *arg, uint64_t address, uint64_t n);
/* The space becomes free with the next commits: it can be allocated as a whole. */
void removal_assert_is_free(struct removal_scene *s, const struct h5_extents *space);

#endif
