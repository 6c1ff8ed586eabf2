/* What the file of a node contains: an object in a view. */
#include "vfs/private.h"

#include "vfs/changes.h"
#include "vfs/content.h"
#include "vfs/paths.h"

#include <assert.h>

int h5_content_begin(struct h5_vfs *vfs, const struct h5_node *node, const struct h5_object *known,
		     struct h5_view *view)
{
	int rc;

	assert(h5_is_locked(vfs));
	*view = (struct h5_view){.ops = node->view,
				 .file = node->file,
				 .address = node->address,
				 .attribute = node->target,
				 .context = h5_paths_context(vfs, node->file),
				 .state = h5_state(vfs, node->file)};
	rc = h5_view_begin(view, known);
	if (!rc && view->dataset && h5_dataset_is_virtual(view->dataset))
		rc = h5_changes_follow(vfs, node);
	return rc;
}

int h5_content_open(struct h5_vfs *vfs, const struct h5_node *node, struct h5_view *view)
{
	int rc = h5_content_begin(vfs, node, NULL, view);

	return rc ? rc : h5_view_open(view, true);
}
