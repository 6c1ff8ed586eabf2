#include "vfs/objects.h"

#include "base/error.h"
#include "dataset/removal.h"
#include "vfs/open_file.h"
#include "vfs/times.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REMOVED_MAX = 1 << 16 }; /* most addresses of removed objects that are remembered */

/* An address where objects were that have been removed in this mount. */
struct h5_removed {
	uint64_t address;
	uint64_t count;
	UT_hash_handle hh;
};

int h5_objects_refuse(const struct h5_node *node)
{
	const struct h5_object *object;
	struct h5_lru_entry *ref;
	int rc;

	if (node->entity.kind != H5_NODE_DAMAGED)
		return -EPERM;
	rc = h5_object_get(node->entity.file, node->entity.address, &ref, &object);
	if (rc)
		return rc;
	h5_file_put(node->entity.file, ref);
	return h5_fail(-EUCLEAN, node->entity.address, "object header: of no known kind of object");
}

/* ---- addresses that are used again ---- */

static void forget_removed(struct h5_vfs *vfs)
{
	struct h5_removed *removed, *next;

	HASH_ITER(hh, vfs->removed, removed, next)
	{
		HASH_DEL(vfs->removed, removed);
		free(removed);
	}
}

/* If there is no memory, all objects get other numbers. */
static void count_removed(struct h5_vfs *vfs, uint64_t address)
{
	struct h5_removed *removed;

	HASH_FIND(hh, vfs->removed, &address, sizeof address, removed);
	if (!removed && HASH_COUNT(vfs->removed) < REMOVED_MAX && (removed = calloc(1, sizeof *removed))) {
		removed->address = address;
		HASH_ADD(hh, vfs->removed, address, sizeof removed->address, removed);
		if (!removed->hh.tbl) {
			free(removed);
			removed = NULL;
		}
	}
	if (removed) {
		removed->count++;
		return;
	}
	forget_removed(vfs);
	vfs->lives++;
}

uint64_t h5_objects_life(const struct h5_vfs *vfs, uint64_t address)
{
	const struct h5_removed *removed;

	HASH_FIND(hh, vfs->removed, &address, sizeof address, removed);
	return vfs->lives << 32 | (removed ? removed->count : 0);
}

/* ---- nodes ---- */

static struct h5_shown *find(const struct h5_vfs *vfs, uint64_t address)
{
	struct h5_shown *shown;

	HASH_FIND(hh, vfs->shown, &address, sizeof address, shown);
	return shown;
}

static void drop(struct h5_vfs *vfs, struct h5_shown *shown)
{
	HASH_DEL(vfs->shown, shown);
	free(shown);
}

static struct h5_shown *add(struct h5_vfs *vfs, uint64_t address)
{
	struct h5_shown *shown = calloc(1, sizeof *shown);

	if (!shown)
		return NULL;
	shown->address = address;
	shown->changed = h5_times_take(vfs, address);
	shown->made_in = h5_tx_is_new(vfs->file, address) ? h5_objects_transaction(vfs) : 0;
	HASH_ADD(hh, vfs->shown, address, sizeof shown->address, shown);
	if (!shown->hh.tbl) {
		free(shown);
		return NULL;
	}
	return shown;
}

int h5_objects_join(struct h5_vfs *vfs, struct h5_node *node)
{
	struct h5_shown *shown;

	if (node->entity.file != vfs->file)
		return 0;
	shown = find(vfs, node->entity.address);
	if (shown && !shown->nodes)
		return -ESTALE;
	if (!shown)
		shown = add(vfs, node->entity.address);
	if (!shown)
		return -ENOMEM;
	DL_PREPEND2(shown->nodes, node, prev_shown, next_shown);
	node->shown = shown;
	return 0;
}

bool h5_objects_leave(struct h5_vfs *vfs, struct h5_node *node)
{
	struct h5_shown *shown = node->shown;

	assert(shown);
	DL_DELETE2(shown->nodes, node, prev_shown, next_shown);
	node->shown = NULL;
	if (shown->nodes)
		return false;
	if (!shown->is_nameless) {
		h5_times_keep(vfs, shown->address, &shown->changed);
		drop(vfs, shown);
		return false;
	}
	count_removed(vfs, shown->address);
	LL_PREPEND(vfs->unused, shown);
	return true;
}

/* ---- numbers of links ---- */

int h5_objects_count_links(struct h5_vfs *vfs, const struct h5_node *directory, const struct h5_object *group,
			   uint64_t *links)
{
	struct h5_shown *shown = directory->shown;
	bool known = false;
	int rc;

	pthread_mutex_lock(&vfs->lock);
	if (shown && shown->is_counted) {
		known = true;
		*links = shown->links;
	}
	pthread_mutex_unlock(&vfs->lock);
	if (known)
		return 0;
	rc = h5_group_count(directory->entity.file, group, links);
	if (rc || !shown)
		return rc;
	pthread_mutex_lock(&vfs->lock);
	shown->is_counted = true;
	shown->links = *links;
	pthread_mutex_unlock(&vfs->lock);
	return 0;
}

void h5_objects_add_links(struct h5_vfs *vfs, const struct h5_node *directory, int by)
{
	pthread_mutex_lock(&vfs->lock);
	if (directory->shown)
		directory->shown->links += (uint64_t)by;
	pthread_mutex_unlock(&vfs->lock);
}

/* ---- changes that are lost ---- */

void h5_objects_lose(struct h5_vfs *vfs, uint64_t transaction, int failure)
{
	struct h5_shown *shown, *next;
	struct h5_handle *h;

	pthread_mutex_lock(&vfs->lock);
	HASH_ITER(hh, vfs->shown, shown, next)
	if (shown->changed_in == transaction)
		shown->lost = failure;
	/* If the object itself is lost, no node shows it any more. */
	DL_FOREACH(vfs->handles, h)
	if (h->node->shown && h->node->shown->changed_in == transaction && !h->lost)
		h->lost = failure;
	pthread_mutex_unlock(&vfs->lock);
}

int h5_objects_tell_loss(const struct h5_node *node, int rc)
{
	int lost = node->shown ? node->shown->lost : 0;

	if (node->shown)
		node->shown->lost = 0;
	if (rc || !lost)
		return rc;
	return h5_fail(lost, node->entity.address, "what was changed could not be stored, and is lost");
}

/* ---- times ---- */

static void stamp(struct h5_changed *changed, const struct timespec *now, bool contents)
{
	changed->any = *now;
	if (contents)
		changed->contents = *now;
}

void h5_objects_stamp(struct h5_vfs *vfs, uint64_t address, bool contents)
{
	struct h5_changed changed;
	struct h5_shown *shown;

	pthread_mutex_lock(&vfs->lock);
	shown = find(vfs, address);
	if (shown) {
		stamp(&shown->changed, &vfs->changed, contents);
		shown->changed_in = h5_objects_transaction(vfs);
	} else {
		changed = h5_times_take(vfs, address);
		stamp(&changed, &vfs->changed, contents);
		h5_times_keep(vfs, address, &changed);
	}
	pthread_mutex_unlock(&vfs->lock);
}

/* ---- open files ---- */

bool h5_objects_is_written(struct h5_vfs *vfs, uint64_t address)
{
	const struct h5_shown *shown;
	const struct h5_node *node = NULL;

	pthread_mutex_lock(&vfs->lock);
	shown = find(vfs, address);
	if (shown)
		DL_FOREACH2(shown->nodes, node, next_shown)
	if (node->writing)
		break;
	pthread_mutex_unlock(&vfs->lock);
	return node;
}

/* ---- objects without names ---- */

bool h5_objects_unname(struct h5_vfs *vfs, uint64_t address)
{
	struct h5_shown *shown;

	pthread_mutex_lock(&vfs->lock);
	shown = find(vfs, address);
	if (shown) {
		shown->is_nameless = true;
		shown->nameless_since = h5_objects_transaction(vfs);
	} else {
		count_removed(vfs, address);
	}
	pthread_mutex_unlock(&vfs->lock);
	return shown;
}

/* The next object that is to be removed, behind `before`; NULL: the first one. */
static struct h5_shown *next_unused(struct h5_vfs *vfs, const struct h5_shown *before)
{
	struct h5_shown *shown;

	pthread_mutex_lock(&vfs->lock);
	shown = before ? before->next : vfs->unused;
	pthread_mutex_unlock(&vfs->lock);
	return shown;
}

static void drop_unused(struct h5_vfs *vfs, struct h5_shown *shown)
{
	pthread_mutex_lock(&vfs->lock);
	LL_DELETE(vfs->unused, shown);
	drop(vfs, shown);
	pthread_mutex_unlock(&vfs->lock);
}

bool h5_objects_remove_later(struct h5_vfs *vfs, uint64_t address, int failure)
{
	struct h5_shown *shown = NULL;

	if (failure != -ENOMEM && failure != -EIO && failure != -ENOSPC)
		return false;
	pthread_mutex_lock(&vfs->lock);
	shown = find(vfs, address);
	if (!shown && (shown = add(vfs, address))) {
		shown->is_nameless = true;
		shown->nameless_since = h5_objects_transaction(vfs);
		LL_PREPEND(vfs->unused, shown);
	}
	if (shown)
		shown->failure = failure;
	pthread_mutex_unlock(&vfs->lock);
	return shown;
}

void h5_objects_log_lost(const struct h5_vfs *vfs, uint64_t address, int rc)
{
	if (vfs->options.log)
		vfs->options.log("%s: address %" PRIu64 ": the space of a removed object is lost: %s",
				 vfs->options.file ? vfs->options.file : "", address, strerror(-rc));
}

void h5_objects_sweep(struct h5_vfs *vfs)
{
	struct h5_shown *shown = next_unused(vfs, NULL), *next;

	for (; shown; shown = next) {
		int rc = h5_object_remove(vfs->file, shown->address);

		next = next_unused(vfs, shown);
		if (rc && h5_objects_remove_later(vfs, shown->address, rc))
			continue;
		if (rc)
			h5_objects_log_lost(vfs, shown->address, rc);
		drop_unused(vfs, shown);
	}
}

void h5_objects_end(struct h5_vfs *vfs)
{
	struct h5_shown *shown, *next;

	pthread_mutex_lock(&vfs->lock);
	HASH_ITER(hh, vfs->shown, shown, next)
	while (shown->is_nameless && shown->nodes)
		h5_objects_leave(vfs, shown->nodes);
	pthread_mutex_unlock(&vfs->lock);
}

void h5_objects_rename_all(struct h5_vfs *vfs, uint64_t transaction)
{
	struct h5_shown *shown, *next;

	pthread_mutex_lock(&vfs->lock);
	HASH_ITER(hh, vfs->shown, shown, next)
	{
		shown->is_counted = false;
		if (!shown->is_nameless || shown->nameless_since != transaction)
			continue;
		shown->is_nameless = false;
		if (shown->nodes)
			continue;
		LL_DELETE(vfs->unused, shown);
		drop(vfs, shown);
	}
	pthread_mutex_unlock(&vfs->lock);
}

void h5_objects_free(struct h5_vfs *vfs)
{
	struct h5_shown *shown, *next;

	LL_FOREACH(vfs->unused, shown)
	if (shown->failure)
		h5_objects_log_lost(vfs, shown->address, shown->failure);
	HASH_ITER(hh, vfs->shown, shown, next)
	drop(vfs, shown);
	forget_removed(vfs);
}
