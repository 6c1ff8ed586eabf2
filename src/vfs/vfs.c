/* Opening and closing of a mount, and questions about the whole of it. */
#include "vfs/private.h"

#include "base/error.h"
#include "base/thread.h"
#include "dataset/writer.h"
#include "object/path.h"
#include "vfs/declare.h"
#include "vfs/directory.h"
#include "vfs/handle.h"
#include "vfs/held.h"
#include "vfs/name.h"
#include "vfs/names.h"
#include "vfs/objects.h"
#include "vfs/paths.h"
#include "vfs/pending.h"
#include "vfs/plain.h"
#include "vfs/reading.h"
#include "vfs/times.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct h5_node *h5_vfs_root(struct h5_vfs *vfs)
{
	return vfs->root;
}

static void init_locks(struct h5_vfs *vfs)
{
	pthread_rwlockattr_t attributes;

	pthread_mutex_init(&vfs->lock, NULL);
	pthread_mutex_init(&vfs->map_lock, NULL);
	pthread_mutex_init(&vfs->await_lock, NULL);
	h5_thread_cond_init(&vfs->await_end);
	/* A thread that waits to write goes before new readers. */
	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&vfs->write_lock, &attributes);
	pthread_rwlockattr_destroy(&attributes);
}

/* Finds the group that becomes the root of the tree. */
static int find_root(struct h5_vfs *vfs, struct h5_entity *entity)
{
	struct h5_file *file = vfs->file, *found_in = file;
	const char *path = vfs->options.subdir ? vfs->options.subdir : "";
	struct h5_buf prefix;
	int rc;

	*entity = (struct h5_entity){
		.kind = H5_NODE_DIRECTORY, .file = file, .address = h5_file_superblock(file)->root};
	h5_buf_init(&prefix, PATH_MAX);
	h5_path_escape(&prefix, path, strlen(path));
	h5_buf_byte(&prefix, 0);
	if (prefix.err) {
		h5_buf_release(&prefix);
		return prefix.err;
	}
	vfs->prefix = h5_buf_take(&prefix);
	if (!*vfs->prefix)
		return 0;
	rc = h5_path_find(file, entity->address, path, strlen(path), &found_in, &entity->address);
	if (rc == -ENOENT || (!rc && found_in != file))
		rc = h5_fail(-ENOENT, H5_UNDEF, "the file has no group %s", path);
	return rc;
}

static int make_root(struct h5_vfs *vfs)
{
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	struct h5_entity entity;
	int rc = find_root(vfs, &entity);

	if (!rc)
		rc = h5_object_get(entity.file, entity.address, &ref, &object);
	if (rc)
		return rc == -ENOENT ? rc : h5_fail_in(rc, "root group");
	if (object->kind != H5_OBJECT_GROUP && *vfs->prefix)
		rc = h5_fail(-ENOTDIR, entity.address, "%s is not a group", vfs->options.subdir);
	else if (object->kind != H5_OBJECT_GROUP)
		rc = h5_fail(-EUCLEAN, entity.address, "the root object is not a group");
	h5_file_put(entity.file, ref);
	return rc ? rc : h5_node_get(vfs, NULL, "", &entity, &vfs->root);
}

static int init_ids(struct h5_vfs *vfs)
{
	struct h5_io_stat st;
	int rc = h5_file_stat(vfs->file, &st);

	if (rc)
		return rc;
	vfs->opened_mtime = st.mtime;
	vfs->opened_ctime = st.ctime;
	/* A writer in SWMR mode neither makes nor removes objects. */
	vfs->may_change = !st.locked && !h5_file_set_options(vfs->set)->swmr;
	return getrandom(vfs->secret, sizeof vfs->secret, 0) == sizeof vfs->secret
		       ? 0
		       : h5_fail(-EIO, H5_UNDEF, "no random numbers");
}

int h5_vfs_open(struct h5_file_set *set, const struct h5_vfs_options *options, struct h5_vfs **out)
{
	struct h5_vfs *vfs = calloc(1, sizeof *vfs);
	int rc;

	if (!vfs)
		return -ENOMEM;
	vfs->set = set;
	vfs->file = h5_file_set_root(set);
	vfs->blocks = h5_file_set_blocks(set);
	vfs->chunks = h5_file_set_chunks(set);
	vfs->room = h5_file_set_room(set);
	vfs->options = *options;
	h5_global_heap_writer_init(&vfs->heap, vfs->file);
	init_locks(vfs);
	if (options->writable)
		h5_pending_init(vfs);
	rc = init_ids(vfs);
	if (!rc)
		rc = make_root(vfs);
	if (!rc)
		vfs->tree = (struct h5_view_tree){.file = vfs->file,
						  .root = vfs->root->entity.address,
						  .name = h5_views_directory_name,
						  .url = options->url,
						  .log = options->log};
	if (rc) {
		h5_vfs_close(vfs);
		return rc;
	}
	*out = vfs;
	return 0;
}

int h5_vfs_finish(struct h5_vfs *vfs)
{
	if (!vfs->options.writable)
		return 0;
	h5_handles_close(vfs);
	h5_dirs_close(vfs);
	h5_objects_end(vfs);
	return h5_vfs_commit(vfs);
}

void h5_vfs_close(struct h5_vfs *vfs)
{
	if (!vfs)
		return;
	h5_handles_close(vfs);
	h5_held_close(vfs);
	h5_dataset_writers_close(vfs->file);
	h5_global_heap_writer_release(&vfs->heap);
	h5_declared_free(vfs);
	h5_plain_free(vfs);
	h5_pending_free(vfs);
	h5_dirs_close(vfs);
	h5_nodes_free(vfs);
	h5_names_free(vfs);
	h5_times_free(vfs);
	h5_paths_free(vfs->map);
	free(vfs->prefix);
	pthread_rwlock_destroy(&vfs->write_lock);
	pthread_cond_destroy(&vfs->await_end);
	h5_mutex_destroy(&vfs->await_lock);
	h5_mutex_destroy(&vfs->map_lock);
	h5_mutex_destroy(&vfs->lock);
	free(vfs);
}

uint64_t h5_vfs_work_limit(struct h5_vfs *vfs)
{
	return h5_file_set_work(vfs->set, vfs->options.max_work);
}

void h5_vfs_refresh(struct h5_vfs *vfs)
{
	if (!h5_file_set_refresh(vfs->set))
		return;
	pthread_mutex_lock(&vfs->map_lock);
	h5_paths_free(vfs->map);
	vfs->map = NULL;
	pthread_mutex_unlock(&vfs->map_lock);
}

int h5_vfs_find_path(struct h5_vfs *vfs, const struct h5_node *node, struct h5_buf *path)
{
	struct h5_reading reading = {.vfs = vfs};
	size_t before = path->size;
	int rc;

	if (!node->entity.file)
		return -ENOENT;
	while (h5_reading_next(&reading, &rc)) {
		path->size = before;
		path->err = 0;
		rc = h5_paths_find(vfs, node->entity.file, node->entity.address, path);
	}
	return rc;
}

int h5_vfs_check_object(struct h5_file *file, uint64_t address)
{
	const struct h5_dataset *dataset;
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	uint64_t bytes;
	bool is_dataset;
	int rc = h5_object_get(file, address, &ref, &object);

	if (rc)
		return rc;
	is_dataset = object->kind == H5_OBJECT_DATASET;
	h5_file_put(file, ref);
	if (!is_dataset)
		return 0;
	rc = h5_dataset_get(file, address, &ref, &dataset);
	if (rc)
		return rc;
	rc = h5_dataset_storage(dataset, &bytes);
	h5_file_put(file, ref);
	return rc;
}
