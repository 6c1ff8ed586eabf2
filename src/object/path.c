#include "object/path.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "object/group.h"

#include <stdlib.h>
#include <string.h>

/* The most soft and external links that one path may lead through; libhdf5 stops at 16 by default. */
enum { LINKS_MAX = 40 };

struct walk {
	struct h5_file *file;
	uint64_t address; /* the object reached so far */
	unsigned links;
};

static int follow_path(struct walk *walk, const char *path, size_t size);

static int follow_external(struct walk *walk, const char *name, size_t name_size, const char *path,
			   size_t size)
{
	char *file_name = strndup(name, name_size);
	int rc;

	if (!file_name)
		return -ENOMEM;
	rc = h5_file_set_find(h5_file_set_of(walk->file), walk->file, file_name, &walk->file);
	free(file_name);
	if (rc)
		return rc;
	walk->address = h5_file_superblock(walk->file)->root;
	return follow_path(walk, path, size);
}

static int follow_link(struct walk *walk, const struct h5_link *link)
{
	if (link->type == H5_LINK_HARD) {
		walk->address = link->address;
		return 0;
	}
	if (++walk->links > LINKS_MAX)
		return h5_fail(-ELOOP, H5_UNDEF, "path through more than %d links", LINKS_MAX);
	if (link->type == H5_LINK_SOFT)
		return follow_path(walk, link->target, link->target_size);
	if (link->type == H5_LINK_EXTERNAL)
		return follow_external(walk, link->file, link->file_size, link->target, link->target_size);
	return h5_fail(-ENOENT, H5_UNDEF, "user-defined link");
}

static int follow_name(struct walk *walk, const char *name, size_t size)
{
	const struct h5_object *group;
	struct h5_lru_entry *ref;
	struct h5_file *file = walk->file;
	struct h5_link link = {0};
	int rc = h5_interrupt_check();

	if (!rc)
		rc = h5_object_get(file, walk->address, &ref, &group);
	if (rc)
		return rc;
	rc = group->kind == H5_OBJECT_GROUP ? h5_group_lookup(file, group, name, size, &link) : -ENOENT;
	h5_file_put(file, ref);
	if (!rc)
		rc = follow_link(walk, &link);
	h5_link_release(&link);
	return rc;
}

static int follow_path(struct walk *walk, const char *path, size_t size)
{
	const char *end = path + size;
	int rc = 0;

	if (size && *path == '/')
		walk->address = h5_file_superblock(walk->file)->root;
	while (path < end && !rc) {
		const char *slash = memchr(path, '/', (size_t)(end - path));
		size_t n = (size_t)((slash ? slash : end) - path);

		if (n && !(n == 1 && *path == '.'))
			rc = follow_name(walk, path, n);
		path += n + (slash != NULL);
	}
	return rc;
}

int h5_path_find(struct h5_file *file, uint64_t group, const char *path, size_t size,
		 struct h5_file **found_in, uint64_t *address)
{
	struct walk walk = {.file = file, .address = group};
	int rc = follow_path(&walk, path, size);

	*found_in = walk.file;
	*address = walk.address;
	return rc;
}

int h5_path_find_external(struct h5_file *file, const char *name, size_t name_size, const char *path,
			  size_t size, struct h5_file **found_in, uint64_t *address)
{
	struct walk walk = {.file = file};
	int rc = follow_external(&walk, name, name_size, path, size);

	*found_in = walk.file;
	*address = walk.address;
	return rc;
}

int h5_path_of_link(struct h5_file *file, uint64_t group, const struct h5_link *link,
		    struct h5_file **found_in, uint64_t *address)
{
	*found_in = file;
	*address = link->address;
	switch (link->type) {
	case H5_LINK_HARD:
		return 0;
	case H5_LINK_SOFT:
		return h5_path_find(file, group, link->target, link->target_size, found_in, address);
	case H5_LINK_EXTERNAL:
		return h5_path_find_external(file, link->file, link->file_size, link->target,
					     link->target_size, found_in, address);
	default:
		return -ENOENT;
	}
}

bool h5_path_is_dead(int code)
{
	switch (code) {
	case -ENOENT:
	case -EACCES:
	case -ELOOP:
	case -ENAMETOOLONG:
	/* It is no HDF5 file, or no file at all. */
	case -EINVAL:
	case -EISDIR:
	case -EUCLEAN:
	case -ENOTSUP:
		return true;
	default:
		return false;
	}
}
