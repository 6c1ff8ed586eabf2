#include "fuse/names.h"

#include "base/interrupt.h"
#include "fuse/request.h"

#include <errno.h>
#include <stdio.h>

/* ---- names that are made, moved and removed ---- */

void h5_op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct h5_vfs_entry entry;
	struct h5_request r;
	int rc = h5_request_change(&r, req, parent);

	(void)mode;
	if (!rc)
		rc = h5_vfs_mkdir(r.in.vfs, r.in.node, name, &entry);
	h5_request_end_with_name(&r, "mkdir", rc, name, &entry);
}

void h5_op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	struct h5_vfs_entry entry;
	struct h5_request r;
	int rc = h5_request_change(&r, req, parent);

	if (!rc)
		rc = h5_vfs_symlink(r.in.vfs, target, r.in.node, name, &entry);
	h5_request_end_with_name(&r, "symlink", rc, name, &entry);
}

void h5_op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	struct h5_vfs_entry entry;
	struct h5_request r;
	struct h5_node *node;
	int rc = h5_request_change(&r, req, parent);

	if (!rc)
		rc = h5_request_enter_too(&r, ino, &node);
	if (!rc)
		rc = h5_vfs_link(r.in.vfs, node, r.in.node, name, &entry);
	h5_request_end_with_name(&r, "link", rc, name, &entry);
}

typedef int remove_name(struct h5_vfs *vfs, struct h5_node *directory, const char *name);

static void serve_removal(fuse_req_t req, fuse_ino_t parent, const char *name, const char *what,
			  remove_name *remove)
{
	struct h5_request r;
	int rc = h5_request_change(&r, req, parent);

	if (!rc)
		rc = remove(r.in.vfs, r.in.node, name);
	h5_request_end(&r, what, rc);
}

void h5_op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	serve_removal(req, parent, name, "unlink", h5_vfs_unlink);
}

void h5_op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	serve_removal(req, parent, name, "rmdir", h5_vfs_rmdir);
}

/* A node in a file of a folder is found again by its name when that has been closed. */
static void note_name(struct h5_request *r, fuse_ino_t directory, const char *name)
{
	if (r->place)
		h5_tree_note_name(r->m->tree, (struct h5_tree_node *)(uintptr_t)directory, &r->in, name);
}

void h5_op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
		  const char *new_name, unsigned flags)
{
	struct h5_request r;
	struct h5_node *new_node;
	int rc = h5_request_change(&r, req, parent);

	if (!rc)
		rc = h5_request_enter_too(&r, new_parent, &new_node);
	if (!rc)
		rc = h5_vfs_rename(r.in.vfs, r.in.node, name, new_node, new_name, flags);
	if (!rc)
		note_name(&r, new_parent, new_name);
	if (!rc && flags & RENAME_EXCHANGE)
		note_name(&r, parent, name);
	h5_request_end(&r, "rename", rc);
}

/* ---- files that are made ---- */

/* Only regular files: HDF5 has no place for others. */
void h5_op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
	struct h5_vfs_entry entry;
	struct h5_request r;
	int rc = h5_request_change(&r, req, parent);

	(void)device;
	if (!rc)
		rc = S_ISREG(mode) ? h5_vfs_mknod(r.in.vfs, r.in.node, name, &entry) : -EPERM;
	h5_request_end_with_name(&r, "mknod", rc, name, &entry);
}

/* Makes what the kernel calls an open file. */
static int make_handle(struct h5_request *r, const struct fuse_entry_param *e, struct h5_handle *handle,
		       struct fuse_file_info *fi)
{
	struct h5_tree_handle *of_folder;
	int rc = 0;

	fi->direct_io = h5_vfs_is_direct(handle);
	fi->fh = (uintptr_t)handle;
	if (r->place) {
		rc = h5_tree_take_handle(r->m->tree, (struct h5_tree_node *)(uintptr_t)e->ino, handle,
					 &of_folder);
		fi->fh = (uintptr_t)of_folder;
	}
	return rc;
}

static void close_handle(const struct h5_mount *m, const struct fuse_file_info *fi)
{
	if (m->tree)
		h5_tree_close_file((struct h5_tree_handle *)(uintptr_t)fi->fh);
	else
		h5_vfs_close_file((struct h5_handle *)(uintptr_t)fi->fh);
}

void h5_op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
	struct h5_handle *handle;
	struct fuse_entry_param e;
	struct h5_vfs_entry entry;
	struct h5_request r;
	int rc = h5_request_change(&r, req, parent);

	(void)mode;
	if (!rc)
		rc = h5_vfs_create(r.in.vfs, r.in.node, name, fi->flags, &entry, &handle);
	if (!rc) {
		rc = h5_request_name(&r, name, &entry, &e);
		if (rc)
			h5_vfs_close_file(handle);
	}
	if (!rc) {
		rc = make_handle(&r, &e, handle, fi);
		if (rc)
			h5_request_unname(&r, &e);
	}
	if (rc) {
		h5_request_end(&r, "create", rc);
		return;
	}
	if (fuse_reply_create(req, &e, fi)) {
		h5_interrupt_begin(NULL, NULL); /* the request has been answered */
		close_handle(r.m, fi);
		h5_request_unname(&r, &e);
	}
	h5_request_leave(&r);
}
