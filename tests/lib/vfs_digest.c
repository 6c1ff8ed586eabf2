#include "vfs_digest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

enum { DEPTH = 32, PIECE = 1 << 16 };

struct digest {
	struct h5_vfs *vfs;
	uint64_t hash;
};

/* FNV-1a. */
static void add(struct digest *d, const void *data, size_t n)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < n; i++)
		d->hash = (d->hash ^ p[i]) * UINT64_C(0x100000001b3);
}

static void add_number(struct digest *d, uint64_t v)
{
	add(d, &v, sizeof v);
}

static int add_attribute(struct digest *d, struct h5_node *node, const char *name)
{
	struct h5_buf value;
	int rc;

	h5_buf_init(&value, 1 << 17);
	rc = h5_vfs_getxattr(d->vfs, node, name, &value);
	/* One that has no text has none whatever happens. */
	add_number(d, (uint64_t)(rc == -ENOMEM || rc == -EIO ? 0 : rc));
	add(d, value.data, value.size);
	h5_buf_release(&value);
	return rc == -ENOMEM || rc == -EIO ? rc : 0;
}

static int add_attributes(struct digest *d, struct h5_node *node)
{
	static const char *const properties[] = {"h5fs.dtype", "h5fs.shape", "h5fs.maxshape", "h5fs.filters",
						 "h5fs.comment"};
	struct h5_buf names;
	int rc;

	h5_buf_init(&names, 1 << 20);
	rc = h5_vfs_listxattr(d->vfs, node, &names);
	add(d, names.data, names.size);
	for (size_t at = 0; !rc && at < names.size; at += strlen(names.data + at) + 1)
		rc = add_attribute(d, node, names.data + at);
	for (unsigned i = 0; !rc && i < sizeof properties / sizeof *properties; i++)
		rc = add_attribute(d, node, properties[i]);
	h5_buf_release(&names);
	return rc;
}

static int add_contents(struct digest *d, struct h5_node *node)
{
	static uint8_t piece[PIECE];
	struct h5_handle *handle;
	uint64_t offset = 0;
	size_t got = 1;
	int rc = h5_vfs_open_file(d->vfs, node, O_RDONLY, &handle);

	if (rc)
		return rc;
	while (!rc && got) {
		rc = h5_vfs_read(handle, offset, piece, sizeof piece, &got);
		if (!rc)
			add(d, piece, got);
		offset += got;
	}
	h5_vfs_close_file(handle);
	return rc;
}

static int add_directory(struct digest *d, struct h5_node *node, unsigned depth);

static int add_entry(struct digest *d, struct h5_node *parent, const char *name, unsigned depth)
{
	struct h5_vfs_entry entry;
	const char *target;
	int rc = h5_vfs_lookup(d->vfs, parent, name, &entry);

	if (rc)
		return rc;
	add(d, name, strlen(name) + 1);
	rc = h5_vfs_getattr(d->vfs, entry.node, &entry.st);
	if (!rc) {
		add_number(d, entry.st.st_mode);
		add_number(d, entry.st.st_nlink);
		add_number(d, (uint64_t)entry.st.st_size);
	}
	if (!rc && S_ISLNK(entry.st.st_mode)) {
		rc = h5_vfs_readlink(entry.node, &target);
		if (!rc)
			add(d, target, strlen(target) + 1);
	} else if (!rc && S_ISREG(entry.st.st_mode)) {
		rc = add_contents(d, entry.node);
	} else if (!rc) {
		rc = add_directory(d, entry.node, depth + 1);
	}
	if (!rc && !S_ISLNK(entry.st.st_mode))
		rc = add_attributes(d, entry.node);
	h5_vfs_forget(d->vfs, entry.node, 1);
	return rc;
}

static int add_directory(struct digest *d, struct h5_node *node, unsigned depth)
{
	struct h5_dir *dir;
	int rc = depth < DEPTH ? h5_vfs_opendir(d->vfs, node, &dir) : -ELOOP;

	if (rc)
		return rc;
	for (size_t i = 0; !rc && i < h5_vfs_dir_count(dir); i++)
		if (strcmp(h5_vfs_dir_name(dir, i), ".h5fs"))
			rc = add_entry(d, node, h5_vfs_dir_name(dir, i), depth);
	if (!rc)
		rc = h5_vfs_dir_error(dir);
	h5_vfs_closedir(dir);
	return rc;
}

int vfs_digest(struct h5_vfs *vfs, uint64_t *digest)
{
	struct digest d = {vfs, UINT64_C(0xcbf29ce484222325)};
	int rc = add_directory(&d, h5_vfs_root(vfs), 0);

	if (!rc)
		rc = add_attributes(&d, h5_vfs_root(vfs));
	*digest = d.hash;
	return rc;
}
