/* What the file of a node contains. */
#include "vfs/content.h"

#include "vfs/objects.h"
#include "vfs/paths.h"
#include "vfs/times.h"

#include <assert.h>

/* A number for the elements of the object as they are now. Each change has a later time than those before. */
static uint64_t own_state(const struct h5_vfs *vfs, const struct h5_node *node, uint64_t state)
{
	struct timespec changed = vfs->all_changed;

	if (!vfs->options.writable || node->entity.file != vfs->file || !node->shown)
		return state;
	h5_times_raise(&changed, &node->shown->changed.contents);
	return (uint64_t)changed.tv_sec * 1000000000 + (uint64_t)changed.tv_nsec;
}

struct h5_view h5_content_view(struct h5_vfs *vfs, const struct h5_node *node)
{
	return (struct h5_view){.ops = node->entity.view,
				.file = node->entity.file,
				.address = node->entity.address,
				.part = node->entity.target,
				.tree = &vfs->tree,
				.colours = vfs->options.colours,
				.zarr_decoded = vfs->options.zarr_decoded,
				.context = h5_paths_context(vfs, node->entity.file),
				.state = h5_state(vfs, node->entity.file)};
}

int h5_content_begin(struct h5_vfs *vfs, const struct h5_node *node, const struct h5_object *known,
		     struct h5_view *view)
{
	assert(h5_is_locked(vfs));
	*view = h5_content_view(vfs, node);
	view->own_state = own_state(vfs, node, view->state);
	return h5_view_begin(view, known);
}

int h5_content_open(struct h5_vfs *vfs, const struct h5_node *node, struct h5_view *view)
{
	int rc = h5_content_begin(vfs, node, NULL, view);

	return rc ? rc : h5_view_open(view, true);
}
