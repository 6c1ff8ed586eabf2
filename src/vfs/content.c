/* What the file of a node contains. */
#include "vfs/content.h"

#include "vfs/followers.h"
#include "vfs/paths.h"

#include <assert.h>

int h5_content_begin(struct h5_vfs *vfs, const struct h5_node *node, const struct h5_object *known,
		     struct h5_view *view)
{
	int rc;

	assert(h5_is_locked(vfs));
	*view = (struct h5_view){.ops = node->entity.view,
				 .file = node->entity.file,
				 .address = node->entity.address,
				 .attribute = node->entity.target,
				 .context = h5_paths_context(vfs, node->entity.file),
				 .state = h5_state(vfs, node->entity.file)};
	rc = h5_view_begin(view, known);
	if (!rc && view->dataset && h5_dataset_is_virtual(view->dataset))
		rc = h5_followers_add(vfs, node);
	return rc;
}

int h5_content_open(struct h5_vfs *vfs, const struct h5_node *node, struct h5_view *view)
{
	int rc = h5_content_begin(vfs, node, NULL, view);

	return rc ? rc : h5_view_open(view, true);
}
