/* All that is known of an object, as one JSON document: what its file in the view json says. */
#include "vfs/private.h"

#include "base/checked.h"
#include "base/error.h"
#include "vfs/paths.h"
#include "vfs/reading.h"
#include "view/views.h"

enum { PIECE = 1 << 14 };

static int describe(struct h5_vfs *vfs, const struct h5_node *node, struct h5_buf *out)
{
	struct h5_view view = {.ops = &h5_view_json,
			       .file = node->entity.file,
			       .address = node->entity.address,
			       .context = h5_paths_context(vfs, node->entity.file),
			       .state = h5_state(vfs, node->entity.file)};
	char piece[PIECE];
	int rc = h5_view_begin(&view, NULL);

	if (!rc)
		rc = h5_view_open(&view, true);
	for (uint64_t at = 0; !rc && at < view.size;) {
		size_t n = (size_t)h5_min(view.size - at, sizeof piece);

		rc = h5_view_read(&view, at, piece, n);
		if (!rc)
			h5_buf_add(out, piece, n);
		rc = rc ? rc : out->err;
		at += n;
	}
	h5_view_release(&view);
	return rc;
}

int h5_vfs_describe(struct h5_vfs *vfs, const struct h5_node *node, struct h5_buf *out)
{
	struct h5_reading reading = {.vfs = vfs};
	size_t before = out->size;
	int rc;

	/* `.h5fs` is no object, nor are symbolic links and attributes. */
	if (!node->entity.file || node->entity.target)
		return -ENODATA;
	while (h5_reading_next(&reading, &rc)) {
		out->size = before;
		out->err = 0;
		rc = describe(vfs, node, out);
	}
	return rc;
}
