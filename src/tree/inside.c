/* Requests to what is in an HDF5 file. */
#include "tree/file.h"
#include "tree/node.h"

#include <errno.h>

enum h5_tree_kind h5_tree_kind(const struct h5_tree_node *node)
{
	return node->kind;
}

int h5_tree_enter(struct h5_tree *tree, struct h5_tree_node *node, struct h5_tree_inside *in)
{
	struct h5_tree_file *file = node->file;
	struct h5_node *inside;
	int rc = file ? h5_tree_file_enter(tree, node, false) : -EROFS;

	if (rc)
		return rc;
	rc = h5_tree_node_resolve(tree, node, &inside);
	if (rc)
		h5_tree_file_leave(tree, file, false);
	else
		*in = (struct h5_tree_inside){.file = file, .vfs = file->vfs, .node = inside};
	return rc;
}

int h5_tree_enter_too(struct h5_tree *tree, struct h5_tree_node *node, const struct h5_tree_inside *in,
		      struct h5_node **inside)
{
	return node->file == in->file ? h5_tree_node_resolve(tree, node, inside) : -EXDEV;
}

void h5_tree_leave(struct h5_tree *tree, const struct h5_tree_inside *in)
{
	h5_tree_file_leave(tree, in->file, false);
}

void h5_tree_show(const struct h5_tree_node *node, struct stat *st)
{
	st->st_ino = h5_tree_ino_inside(node->file, st->st_ino);
}

int h5_tree_entry(struct h5_tree *tree, struct h5_tree_node *directory, const char *name,
		  const struct h5_vfs_entry *found, struct h5_tree_entry *entry)
{
	int rc = h5_tree_node_get_inside(tree, directory, name, found, &entry->node);

	if (rc)
		return rc;
	entry->generation = entry->node->generation;
	entry->st = found->st;
	h5_tree_show(entry->node, &entry->st);
	return 0;
}

/* If this fails, the kernel looks the name up all the same before it uses it. */
void h5_tree_note_name(struct h5_tree *tree, struct h5_tree_node *directory, const struct h5_tree_inside *in,
		       const char *name)
{
	struct h5_vfs_entry found;
	struct h5_tree_entry entry;
	struct h5_node *inside;

	if (!h5_tree_node_resolve(tree, directory, &inside) &&
	    !h5_vfs_lookup(in->vfs, inside, name, &found) &&
	    !h5_tree_entry(tree, directory, name, &found, &entry))
		h5_tree_forget(tree, entry.node, 1);
}
