/* Requests that make files: each is a dataset of bytes. */
#include "base/error.h"
#include "change/transaction.h"
#include "dataset/create.h"
#include "format/datatype_make.h"
#include "vfs/beside.h"
#include "vfs/changes.h"
#include "vfs/declare.h"
#include "vfs/handle.h"
#include "vfs/name_change.h"
#include "vfs/pending.h"
#include "vfs/plain.h"
#include "vfs/source.h"

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
	if (rc)
		return rc;
	h5_declared_forget(vfs, address);
	h5_plain_add(vfs, address);
	return 0;
}

int h5_vfs_mknod(struct h5_vfs *vfs, struct h5_node *parent, const char *text, struct h5_vfs_entry *entry)
{
	return h5_naming_make(vfs, parent, text, make_file, entry);
}

/* A handle of a new file. */
struct opening {
	struct h5_vfs *vfs;
	int flags;
	struct h5_handle *handle;
};

static int open_new(void *arg, struct h5_node *node)
{
	struct opening *o = arg;

	return h5_handle_open_new(o->vfs, node, o->flags, &o->handle);
}

/* The file is there and open, or neither. */
static int make_and_open(struct h5_naming *name, int flags, struct h5_vfs_entry *entry,
			 struct h5_handle **handle)
{
	struct opening o = {.vfs = name->vfs, .flags = flags};
	int rc = h5_naming_make_found(name, make_file, open_new, &o, entry);

	if (rc) {
		h5_handle_cancel(o.handle);
		return rc;
	}
	h5_handle_start(o.handle);
	h5_pending_add(name->vfs, name->directory->entity.address, name->link.name, name->link.name_size,
		       entry->node->entity.address);
	*handle = o.handle;
	return 0;
}

static int open_found(struct h5_vfs *vfs, struct h5_node *parent, const char *text, int flags,
		      struct h5_vfs_entry *entry, struct h5_handle **handle)
{
	int rc = h5_vfs_lookup(vfs, parent, text, entry);

	if (rc)
		return rc;
	rc = h5_vfs_open_file(vfs, entry->node, flags, handle);
	if (rc)
		h5_vfs_forget(vfs, entry->node, 1);
	return rc;
}

static int make_source(struct h5_vfs *vfs, struct h5_node *parent, const char *text, int flags,
		       struct h5_vfs_entry *entry, struct h5_handle **handle)
{
	int rc = h5_source_make(vfs, parent, text, entry);

	if (rc == -EEXIST && !(flags & O_EXCL))
		return open_found(vfs, parent, text, flags, entry, handle);
	if (rc)
		return rc;
	rc = h5_vfs_open_file(vfs, entry->node, flags, handle);
	if (!rc)
		return 0;
	h5_sources_drop(vfs, entry->node);
	h5_vfs_forget(vfs, entry->node, 1);
	return rc;
}

int h5_vfs_create(struct h5_vfs *vfs, struct h5_node *parent, const char *text, int flags,
		  struct h5_vfs_entry *entry, struct h5_handle **handle)
{
	char beside[H5_NAME_MAX + 1];
	struct h5_naming name;
	int rc;

	if (h5_beside_is_name(parent, text, flags)) {
		rc = h5_beside_name(parent, text, beside);
		return rc ? rc : h5_vfs_create(vfs, vfs->root, beside, flags, entry, handle);
	}
	if (h5_vfs_is_in_view(parent))
		return make_source(vfs, parent, text, flags, entry, handle);
	rc = h5_naming_begin(vfs, parent, text, &name, entry);

	/* Another request was faster. */
	if (rc == -EEXIST && !(flags & O_EXCL))
		return open_found(vfs, parent, text, flags, entry, handle);
	return rc ? rc : h5_naming_end(&name, make_and_open(&name, flags, entry, handle));
}
