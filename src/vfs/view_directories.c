/* Objects that are directories in a view, with files that the view names. A file, or a directory below that
 * of an object, is a node with the object's address and a path below its directory; a dataset's own directory
 * in a view of files has the empty path. */
#include "base/error.h"
#include "object/object.h"
#include "vfs/content.h"
#include "vfs/directory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_MOST = 1 << 12 };

/* The path below the directory of the object; NULL: no memory. */
static char *path_of(const struct h5_node *directory, const char *name)
{
	const char *before = directory->entity.target ? directory->entity.target : "";
	char *path;

	return asprintf(&path, "%s%s%s", before, *before ? "/" : "", name) < 0 ? NULL : path;
}

/* Takes the path over. */
static struct h5_entity entity_of(const struct h5_node *directory, char *path, bool is_directory)
{
	return (struct h5_entity){.kind = is_directory ? H5_NODE_DIRECTORY : H5_NODE_VIEW,
				  .file = directory->entity.file,
				  .address = directory->entity.address,
				  .target = path,
				  .view = directory->entity.view};
}

int h5_view_directory_find(struct h5_vfs *vfs, const struct h5_node *directory, const char *name,
			   struct h5_entity *entity, struct h5_known_size *size)
{
	struct h5_view v = h5_content_view(vfs, directory);
	char *path = path_of(directory, name);
	uint64_t found = H5_UNDEF;
	bool is_directory;
	int rc = path ? 0 : -ENOMEM;

	if (!rc && strlen(path) > PATH_MOST)
		rc = -ENOENT;
	if (!rc)
		rc = h5_view_begin(&v, NULL);
	if (!rc)
		rc = v.ops->directory->find(&v, path, &is_directory, &found);
	if (!rc && !is_directory && found != H5_UNDEF)
		*size = (struct h5_known_size){.is_known = true, .state = v.state, .bytes = found};
	h5_view_release(&v);
	if (rc)
		free(path);
	else
		*entity = entity_of(directory, path, is_directory);
	return rc;
}

static int list(const struct h5_view *v, const struct h5_node *directory, uint64_t *position, size_t most,
		struct h5_dir_list *out)
{
	char name[H5_NAME_MAX + 1];
	bool is_directory;
	int rc = 0;

	while (!rc && out->count < most &&
	       (rc = v->ops->directory->next(v, position, name, &is_directory)) > 0) {
		char *path = path_of(directory, name);
		struct h5_entity entity = entity_of(directory, path, is_directory);

		rc = path ? h5_dir_list_add(out, name, &entity) : -ENOMEM;
		/* Others have positions as every list has them. */
		if (!rc && v->dataset)
			out->items[out->count - 1].next = *position;
	}
	return rc;
}

int h5_view_directory_list(struct h5_vfs *vfs, const struct h5_node *directory, uint64_t *position,
			   size_t most, struct h5_dir_list *out)
{
	struct h5_view v = h5_content_view(vfs, directory);
	int rc = h5_view_begin(&v, NULL);

	if (!rc)
		rc = list(&v, directory, position, most, out);
	h5_view_release(&v);
	return rc;
}

int h5_view_directory_is_long(const struct h5_node *directory, bool *is_long)
{
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	int rc = h5_object_get(directory->entity.file, directory->entity.address, &ref, &object);

	if (rc)
		return rc;
	*is_long = object->kind != H5_OBJECT_GROUP;
	h5_file_put(directory->entity.file, ref);
	return 0;
}
