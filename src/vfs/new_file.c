/* Requests that make files: each is a dataset of bytes. */
#include "base/error.h"
#include "change/transaction.h"
#include "dataset/create.h"
#include "format/datatype_make.h"
#include "vfs/changes.h"
#include "vfs/name_change.h"
#include "vfs/plain.h"

#include <fcntl.h>
#include <time.h>

static int make_file(const struct h5_naming *name, struct h5_node **node)
{
	struct h5_vfs *vfs = name->vfs;
	struct h5_datatype *type = h5_datatype_make_integer(1, false, H5_ORDER_LE);
	const struct h5_new_dataset how = {
		.type = type,
		.space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .max = {H5_UNLIMITED}},
		.layout = H5_LAYOUT_CHUNKED,
		.chunk = {H5_PLAIN_CHUNK},
		.filters = vfs->options.filters,
		.time = (uint32_t)time(NULL),
	};
	uint64_t address;
	int rc = type ? h5_dataset_create(vfs->file, &how, &address)
		      : h5_fail(-ENOMEM, name->directory->entity.address, "a new file: out of memory");

	h5_datatype_free(type);
	if (!rc)
		rc = h5_naming_insert_object(name, address, H5_NODE_DATASET, node);
	if (!rc)
		h5_plain_add(vfs, address);
	return rc;
}

int h5_vfs_mknod(struct h5_vfs *vfs, struct h5_node *parent, const char *text, struct h5_vfs_entry *entry)
{
	return h5_naming_make(vfs, parent, text, make_file, entry);
}

int h5_vfs_create(struct h5_vfs *vfs, struct h5_node *parent, const char *text, int flags,
		  struct h5_vfs_entry *entry, struct h5_handle **handle)
{
	int rc = h5_vfs_mknod(vfs, parent, text, entry);

	/* Another request was faster. */
	if (rc == -EEXIST && !(flags & O_EXCL))
		rc = h5_vfs_lookup(vfs, parent, text, entry);
	else if (!rc)
		flags &= ~O_TRUNC;
	if (rc)
		return rc;
	rc = h5_vfs_open_file(vfs, entry->node, flags, handle);
	if (rc)
		h5_vfs_forget(vfs, entry->node, 1);
	return rc;
}
