#include "base/array.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "object/group.h"
#include "object/path.h"
#include "view/zarr.h"

#include <limits.h>
#include <stdlib.h>

/* A group on the way from the root. */
struct h5_zarr_level {
	struct h5_file *file; /* borrowed */
	uint64_t address;
	struct h5_lru_entry *ref; /* of the group's object */
	/* A pointer, since the walk may not move when the levels do. Owned. */
	struct h5_link_walk *links;
	size_t path_size;
};

void h5_zarr_tree_begin(struct h5_zarr_tree *tree, const struct h5_view *view)
{
	*tree = (struct h5_zarr_tree){.view = view};
	h5_buf_init(&tree->path, PATH_MAX);
}

static void pop(struct h5_zarr_tree *tree)
{
	struct h5_zarr_level *level = &tree->levels[--tree->depth];

	h5_link_end(level->links);
	h5_file_put(level->file, level->ref);
	free(level->links);
}

void h5_zarr_tree_end(struct h5_zarr_tree *tree)
{
	while (tree->depth)
		pop(tree);
	free(tree->levels);
	tree->levels = NULL;
	h5_view_release(&tree->object);
	h5_buf_release(&tree->path);
}

/* Goes into the present object, which is a group. */
static int push(struct h5_zarr_tree *tree)
{
	struct h5_view *o = &tree->object;
	struct h5_zarr_level level = {.file = o->file, .address = o->address, .path_size = tree->path.size};
	const struct h5_object *group;
	int rc = h5_array_reserve(&tree->levels, &tree->capacity, tree->depth + 1, NULL);

	if (!rc && !(level.links = calloc(1, sizeof *level.links)))
		rc = -ENOMEM;
	if (!rc)
		rc = h5_object_get(o->file, o->address, &level.ref, &group);
	if (rc) {
		free(level.links);
		return rc;
	}
	tree->levels[tree->depth++] = level;
	/* Its error comes with the first step, too. */
	return h5_link_begin(level.links, o->file, group, H5_NAMES_SORTED);
}

/* True: the object is one of the groups on the way to it. */
static bool is_above(const struct h5_zarr_tree *tree, const struct h5_file *file, uint64_t address)
{
	for (size_t i = 0; i < tree->depth; i++)
		if (tree->levels[i].file == file && tree->levels[i].address == address)
			return true;
	return false;
}

struct h5_view h5_zarr_view(const struct h5_view *root, struct h5_file *file, uint64_t address)
{
	struct h5_view v = {.ops = root->ops,
			    .file = file,
			    .address = address,
			    .context = {.file = file, .arg = root->context.arg},
			    .tree = root->tree,
			    .zarr_decoded = root->zarr_decoded,
			    .state = root->state};

	/* Paths are known of the mounted file alone. */
	if (file == root->file)
		v.context.object_path = root->context.object_path;
	else
		v.state ^= h5_file_number(root->file) << 32 ^ h5_file_number(file) << 32;
	return v;
}

/* Makes an object the present one. -ENOENT: it is not shown. */
static int show(struct h5_zarr_tree *tree, struct h5_file *file, uint64_t address)
{
	int rc;

	tree->object = h5_zarr_view(tree->view, file, address);
	rc = h5_view_begin(&tree->object, NULL);
	if (rc == -ENOENT && tree->dimensions && tree->object.dataset)
		rc = 0;
	if (rc)
		h5_view_release(&tree->object);
	return h5_is_passing(rc) ? rc : rc ? -ENOENT : 0;
}

/* Appends the name of the link to the path of its group. */
static int set_path(struct h5_zarr_tree *tree, const struct h5_link *link)
{
	char name[256];
	int rc;

	tree->path.size = tree->levels[tree->depth - 1].path_size;
	if (tree->path.size)
		h5_buf_byte(&tree->path, '/');
	h5_buf_add(&tree->path, name,
		   tree->view->tree->name(tree->view->ops, link->name, link->name_size, name));
	rc = tree->path.err;
	tree->path.err = 0;
	return rc == -E2BIG ? -ENOENT : rc;
}

/* Follows the next link of the innermost group. -ENOENT: it leads to nothing that is shown; 0: there are no
 * more links. */
static int follow(struct h5_zarr_tree *tree)
{
	struct h5_zarr_level *level = &tree->levels[tree->depth - 1];
	const struct h5_link *link;
	struct h5_file *file;
	uint64_t address;
	int rc = h5_link_next(level->links, &link);

	if (rc <= 0)
		return h5_is_passing(rc) || rc == -EFBIG ? rc : 0;
	rc = h5_path_of_link(level->file, level->address, link, &file, &address);
	if (!rc && is_above(tree, file, address))
		rc = -ENOENT;
	if (!rc)
		rc = set_path(tree, link);
	if (!rc)
		rc = show(tree, file, address);
	return !rc ? 1 : h5_is_passing(rc) ? rc : -ENOENT;
}

static int step(struct h5_zarr_tree *tree)
{
	int rc = h5_interrupt_check();

	if (!rc && !tree->has_begun) {
		tree->has_begun = true;
		rc = show(tree, tree->view->file, tree->view->address);
		return rc ? rc : 1;
	}
	if (!rc)
		rc = follow(tree);
	if (!rc)
		pop(tree);
	return rc;
}

int h5_zarr_tree_next(struct h5_zarr_tree *tree)
{
	bool is_group = tree->object.file && !tree->object.dataset;
	int rc = is_group ? push(tree) : 0;

	h5_view_release(&tree->object);
	tree->object = (struct h5_view){0};
	/* A damaged group shows what can be read of it. */
	if (rc && (h5_is_passing(rc) || rc == -EFBIG))
		return rc;
	do
		rc = tree->has_begun && !tree->depth ? 0 : step(tree);
	while (rc == -ENOENT || (!rc && tree->depth));
	return rc;
}
