/* What the file of a node contains, and what stat() and statfs() tell of it. */
#include "vfs/private.h"

#include "base/checked.h"
#include "base/error.h"
#include "vfs/content.h"
#include "vfs/input.h"
#include "vfs/name.h"
#include "vfs/objects.h"
#include "vfs/paths.h"
#include "vfs/reading.h"
#include "vfs/times.h"

#include <assert.h>

enum { BLOCK = 512 }; /* the unit of st_blocks */

static void raise_times(struct stat *st, const struct timespec *least)
{
	h5_times_raise(&st->st_mtim, least);
	h5_times_raise(&st->st_ctim, least);
}

/* On a mount for writing. */
static void set_own_times(const struct h5_vfs *vfs, const struct h5_node *node, struct stat *st)
{
	/* Another program that writes the file, too, changes what it likes. */
	if (!vfs->may_change) {
		st->st_mtim = vfs->opened_mtime;
		st->st_ctim = vfs->opened_ctime;
	}
	raise_times(st, &vfs->all_changed);
	if (node->shown) {
		raise_times(st, &node->shown->changed.contents);
		h5_times_raise(&st->st_ctim, &node->shown->changed.any);
	}
}

static int stat_common(struct h5_vfs *vfs, const struct h5_node *node, struct h5_times *times,
		       struct stat *st)
{
	struct h5_file *file = node->entity.file ? node->entity.file : vfs->file;
	int rc = 0;

	*st = (struct stat){.st_ino = node->ino,
			    .st_uid = vfs->options.uid,
			    .st_gid = vfs->options.gid,
			    .st_nlink = 1,
			    .st_blksize = 1 << 17,
			    .st_mode = S_IFREG | (0444 & ~vfs->options.fmask)};
	if (times->file != file) {
		rc = h5_file_stat(file, &times->st);
		times->file = rc ? NULL : file;
	}
	st->st_mtim = times->st.mtime;
	st->st_ctim = times->st.ctime;
	if (file == vfs->file && vfs->options.writable)
		set_own_times(vfs, node, st);
	st->st_atim = st->st_mtim;
	return rc;
}

/* ---- stat ---- */

static void set_size(struct stat *st, uint64_t size, uint64_t stored)
{
	st->st_size = (off_t)h5_min(size, INT64_MAX);
	st->st_blocks = (blkcnt_t)(stored / BLOCK + (stored % BLOCK != 0));
	if (size && !st->st_blocks)
		st->st_blocks = 1; /* 0 would mean that all of it is a hole */
}

/* The size that was found before, if nothing has changed since. */
static bool recall_size(struct h5_vfs *vfs, const struct h5_node *node, uint64_t *size)
{
	bool known;

	pthread_mutex_lock(&vfs->lock);
	known = node->size.is_known && node->size.state == h5_state(vfs, node->entity.file);
	*size = known ? node->size.bytes : 0;
	pthread_mutex_unlock(&vfs->lock);
	return known;
}

void h5_stat_remember_size(struct h5_vfs *vfs, struct h5_node *node, const struct h5_known_size *size)
{
	if (!size->is_known)
		return;
	pthread_mutex_lock(&vfs->lock);
	node->size = *size;
	pthread_mutex_unlock(&vfs->lock);
}

/* True: opening the file, or reading it, tells of the error; its name must not fail. */
static bool is_told_later(int rc)
{
	return !h5_is_passing(rc);
}

/* The kernel asks for no byte of a file that is empty, and so would not learn that it cannot be read. */
static void set_unreadable(struct stat *st)
{
	set_size(st, 1, 1);
}

/* Sets the permission to write if the dataset of the view can be written. */
static int allow_writing(const struct h5_vfs *vfs, struct h5_view *view, struct stat *st)
{
	int rc;

	if (!vfs->options.writable || !view->dataset || !h5_is_writable(vfs, view->dataset))
		return 0;
	rc = h5_view_complete(view);
	if (!rc && h5_dataset_can_be_written(view->dataset, vfs->options.external_write))
		st->st_mode |= 0200 & ~vfs->options.fmask;
	return is_told_later(rc) ? 0 : rc;
}

/* Finds the size of the contents. Unless `work` is set, only if that takes no work on elements. */
static int find_size(struct h5_vfs *vfs, struct h5_node *node, struct h5_view *view, bool work,
		     uint64_t *size, bool *known)
{
	int rc;

	*known = recall_size(vfs, node, size);
	if (*known || !(work || view->ops->is_sized))
		return 0;
	*known = true;
	rc = h5_view_open(view, false);
	*size = view->size;
	if (!rc && !view->ops->is_sized)
		h5_stat_remember_size(
			vfs, node,
			&(struct h5_known_size){.is_known = true, .bytes = view->size, .state = view->state});
	return rc;
}

/* `object`: as `known` of h5_view_begin(). */
static int stat_contents(struct h5_vfs *vfs, struct h5_node *node, const struct h5_object *object,
			 const struct h5_times *times, bool work, struct stat *st, bool *size_known)
{
	struct h5_view view;
	uint64_t size = 0;
	int rc = h5_content_begin(vfs, node, object, &view);

	/* It may have changed with any of its sources. */
	if (!rc && vfs->options.writable && view.dataset && h5_dataset_is_virtual(view.dataset))
		raise_times(st, &vfs->changed);
	st->st_atim = st->st_mtim;
	if (!rc && (!node->entity.view || node->entity.view->write))
		rc = allow_writing(vfs, &view, st);
	/* An empty file is not read, so this is the only look at the rest of it. */
	if (!rc && view.dataset && !view.dataset->size)
		rc = h5_view_complete(&view);
	if (!rc)
		rc = find_size(vfs, node, &view, work, &size, size_known);
	if (!rc && *size_known)
		set_size(st, size,
			 /* A program that copies looks for holes only if fewer blocks are allocated than the
			    size needs. */
			 node->entity.view || !view.dataset
				 ? size
				 : h5_dataset_storage_most(view.dataset, size, times->st.stored));
	h5_view_release(&view);
	if (!rc || !is_told_later(rc))
		return rc;
	set_unreadable(st);
	return 0;
}

/* The contents of files below `.h5fs` are looked at only for their size, since that takes work. */
static int stat_view(struct h5_vfs *vfs, struct h5_node *node, const struct h5_times *times, bool work,
		     struct stat *st, bool *size_known)
{
	uint64_t size;

	*size_known = recall_size(vfs, node, &size);
	if ((!*size_known && work) || (vfs->options.writable && node->entity.view->write))
		return stat_contents(vfs, node, NULL, times, work, st, size_known);
	set_size(st, size, size);
	return 0;
}

static int stat_group(struct h5_vfs *vfs, const struct h5_node *node, const struct h5_object *object,
		      struct stat *st)
{
	uint64_t links;
	int rc = node->shown ? h5_objects_count_links(vfs, node, object, &links)
			     : h5_group_count(node->entity.file, object, &links);

	if (!rc)
		st->st_size = (off_t)h5_min(links, INT64_MAX);
	return is_told_later(rc) ? 0 : rc;
}

/* True: a program may write files there, or this one, as a whole. */
static bool is_taken(const struct h5_vfs *vfs, const struct h5_node *node)
{
	return vfs->options.writable && node->entity.file == vfs->file && node->entity.view->intake &&
	       !h5_node_is_part(node);
}

/* `known`: the node's object, if the caller has decoded it; else NULL. */
static int stat_node(struct h5_vfs *vfs, struct h5_node *node, const struct h5_object *known,
		     struct h5_times *times, bool work, struct stat *st, bool *size_known)
{
	const struct h5_object *object = known;
	struct h5_lru_entry *ref = NULL;
	int rc = node->entity.file && !known
			 ? h5_object_get(node->entity.file, node->entity.address, &ref, &object)
			 : 0;

	if (h5_is_passing(rc))
		return rc;
	rc = stat_common(vfs, node, times, st);
	*size_known = true;
	if (rc) {
		h5_file_put(node->entity.file, ref);
		return rc;
	}
	switch (node->entity.kind) {
	case H5_NODE_DIRECTORY:
		st->st_mode = S_IFDIR | ((vfs->options.writable ? 0755 : 0555) & ~vfs->options.dmask);
		if (node->entity.view && !is_taken(vfs, node))
			st->st_mode &= ~0222u;
		if (object && object->kind == H5_OBJECT_GROUP)
			rc = stat_group(vfs, node, object, st);
		if (object && vfs->options.writable)
			h5_node_share(vfs, node, object->references > 1);
		break;
	case H5_NODE_VIEWS:
	case H5_NODE_REVISIONS:
		st->st_mode = S_IFDIR | (0555 & ~vfs->options.dmask);
		break;
	case H5_NODE_VIEW:
		if (is_taken(vfs, node))
			st->st_mode |= 0200 & ~vfs->options.fmask;
		rc = stat_view(vfs, node, times, work, st, size_known);
		break;
	case H5_NODE_SYMLINK:
		st->st_mode = S_IFLNK | 0777;
		st->st_size = (off_t)strlen(node->entity.target);
		break;
	case H5_NODE_DATASET:
	case H5_NODE_DATATYPE:
		rc = stat_contents(vfs, node, object, times, work, st, size_known);
		break;
	case H5_NODE_DAMAGED:
		set_unreadable(st);
		break;
	}
	if (object && S_ISREG(st->st_mode) && !node->entity.target)
		st->st_nlink = object->references ? object->references : 1; /* at least one name leads here */
	if (h5_objects_is_nameless(node))
		st->st_nlink = 0;
	h5_file_put(node->entity.file, ref);
	return rc;
}

int h5_vfs_getattr(struct h5_vfs *vfs, struct h5_node *node, struct stat *st)
{
	struct h5_reading reading = {.vfs = vfs};
	bool size_known;
	int rc;

	while (h5_reading_next(&reading, &rc)) {
		struct h5_times times = {0};

		rc = stat_node(vfs, node, NULL, &times, true, st, &size_known);
	}
	return rc;
}

int h5_stat_entry(struct h5_vfs *vfs, const struct h5_object *known, struct h5_times *times,
		  struct h5_vfs_entry *entry)
{
	int rc = stat_node(vfs, entry->node, known, times, false, &entry->st, &entry->size_known);

	entry->passing = entry->made = false;
	if (rc)
		h5_vfs_forget(vfs, entry->node, 1);
	return rc;
}

int h5_vfs_statfs(struct h5_vfs *vfs, struct statvfs *st)
{
	struct h5_io_stat file;
	struct statvfs below;
	int rc = h5_file_stat(vfs->file, &file);

	*st = (struct statvfs){.f_bsize = 1 << 17, .f_frsize = BLOCK, .f_namemax = H5_NAME_MAX};
	if (!rc)
		st->f_blocks = file.size / BLOCK + (file.size % BLOCK != 0);
	if (!vfs->options.writable)
		return rc;
	if (!rc && fstatvfs(vfs->options.file_fd, &below))
		return -errno;
	if (!rc) {
		st->f_bavail = below.f_bavail * (below.f_frsize / BLOCK);
		st->f_bfree = below.f_bfree * (below.f_frsize / BLOCK);
		st->f_blocks += st->f_bfree;
	}
	return rc;
}
