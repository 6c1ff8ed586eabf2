/* The directory `.h5fs/revisions` of a file that has revisions (onion driver): a directory for each, named by
 * its number, with the tree that a mount of that revision has. A revision is a file of its own, which is
 * opened when a program looks it up, not when it is listed. */
#include "base/error.h"
#include "object/path.h"
#include "vfs/directory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool h5_revisions_are_there(const struct h5_vfs *vfs)
{
	return h5_file_set_revisions(vfs->set);
}

/* False: no revision has that name. */
static bool number_of(const char *name, uint64_t *revision)
{
	char again[24];

	*revision = strtoull(name, NULL, 10);
	snprintf(again, sizeof again, "%" PRIu64, *revision);
	return !strcmp(name, again);
}

/* Finds the group that the mount shows, in the revision. */
static int find_root(const struct h5_vfs *vfs, struct h5_file *file, uint64_t *address)
{
	const char *path = vfs->options.subdir ? vfs->options.subdir : "";
	struct h5_file *found_in = file;
	uint64_t root = h5_file_superblock(file)->root;
	int rc;

	*address = root;
	if (!*vfs->prefix)
		return 0;
	rc = h5_path_find(file, root, path, strlen(path), &found_in, address);
	return !rc && found_in != file ? -ENOENT : rc;
}

int h5_revisions_find(struct h5_vfs *vfs, const char *name, struct h5_entity *entity)
{
	uint64_t revision, address;
	struct h5_file *file;
	int rc = number_of(name, &revision) ? h5_file_set_find_revision(vfs->set, revision, &file) : -ENOENT;

	if (!rc)
		rc = find_root(vfs, file, &address);
	if (rc)
		return rc;
	*entity = (struct h5_entity){.file = file, .address = address};
	rc = h5_entity_kind(file, address, &entity->kind);
	return !rc && entity->kind != H5_NODE_DIRECTORY && entity->kind != H5_NODE_DAMAGED ? -ENOENT : rc;
}

int h5_revisions_list(struct h5_vfs *vfs, struct h5_dir_list *list)
{
	const struct h5_onion *onion = h5_file_set_revisions(vfs->set);
	int rc = 0;

	for (uint64_t i = h5_onion_first(onion); i <= h5_onion_newest(onion) && !rc; i++) {
		struct h5_entity entity = {.kind = H5_NODE_DIRECTORY, .address = H5_UNDEF};
		char name[24];

		snprintf(name, sizeof name, "%" PRIu64, i);
		rc = h5_dir_list_add(list, name, &entity);
	}
	return rc;
}
