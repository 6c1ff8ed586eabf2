/* Extended attributes (MAPPING section 4): those of the object, and those that h5fs adds. */
#include "vfs/private.h"

#include <string.h>

/* The file of a view has the attributes of the object that it shows. */
static bool has_attributes(const struct h5_node *node)
{
	return node->kind != H5_NODE_VIEWS && !node->target;
}

/* The part of the name after the prefix; NULL: it has another one. */
static const char *after(const char *name, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(name, prefix, n) ? NULL : name + n;
}

static int get(struct h5_vfs *vfs, struct h5_node *node, const char *name, struct h5_buf *out)
{
	const char *rest;

	if (!has_attributes(node))
		return -ENODATA;
	out->limit = H5_XATTR_MAX;
	rest = after(name, "user.");
	if (rest)
		return h5_attributes_get(vfs, node, rest, H5_ATTRIBUTE_LISTED, out);
	rest = after(name, "h5fs.raw.");
	if (rest)
		return h5_attributes_get(vfs, node, rest, H5_ATTRIBUTE_RAW, out);
	rest = after(name, "h5fs.type.");
	if (rest)
		return h5_attributes_get(vfs, node, rest, H5_ATTRIBUTE_TYPE, out);
	rest = after(name, "h5fs.");
	return rest ? h5_property_get(vfs, node, rest, out) : -ENODATA;
}

int h5_vfs_getxattr(struct h5_vfs *vfs, struct h5_node *node, const char *name, struct h5_buf *out)
{
	struct h5_reading reading = {.vfs = vfs};
	size_t before = out->size;
	int rc;

	while (h5_reading_next(&reading, &rc)) {
		out->size = before;
		out->err = 0;
		rc = get(vfs, node, name, out);
	}
	return rc;
}

int h5_vfs_listxattr(struct h5_vfs *vfs, struct h5_node *node, struct h5_buf *out)
{
	struct h5_reading reading = {.vfs = vfs};
	size_t before = out->size;
	int rc;

	while (h5_reading_next(&reading, &rc)) {
		out->size = before;
		out->err = 0;
		rc = has_attributes(node) ? h5_attributes_list(vfs, node, out) : 0;
	}
	return rc;
}
