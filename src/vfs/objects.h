/* On a mount for writing: which nodes show an object of the mounted file, and what becomes of an object whose
 * last name was removed. It lives as long as a node shows it; then its space is given up. */
#ifndef H5_VFS_OBJECTS_H
#define H5_VFS_OBJECTS_H

#include "change/transaction.h"
#include "vfs/private.h"
#include "vfs/times.h"

/* An object of the mounted file that nodes show. */
struct h5_shown {
	uint64_t address;
	UT_hash_handle hh;     /* vfs->lock */
	struct h5_node *nodes; /* vfs->lock: all nodes that show it, linked by next_shown */
	/* vfs->write_lock: it has no name any more since the transaction of this number */
	bool is_nameless;
	uint64_t nameless_since;
	/* The transaction that has made the object; 0: it is older than its first node. */
	uint64_t made_in;
	/* vfs->lock: of a group, its number of links, which may take a walk over all of them to find */
	bool is_counted;
	uint64_t links;
	/* vfs->write_lock: the transaction that has changed its names, links or attributes last; why such
	 * changes were lost, until a reply tells. 0: none */
	uint64_t changed_in;
	int lost;
	struct h5_shown *next;	   /* vfs->lock: in vfs->unused */
	int failure;		   /* vfs->write_lock: of the last attempt to remove it; 0: none */
	struct h5_changed changed; /* vfs->write_lock: when the mount has changed it last; 0: not yet */
};

/* Numbers the transactions of the file, from 1 on. */
static inline uint64_t h5_objects_transaction(const struct h5_vfs *vfs)
{
	return h5_tx_number(vfs->file) + 1;
}

/* There is something to commit: h5_vfs_await_change(). */
static inline void h5_objects_await(struct h5_vfs *vfs)
{
	pthread_mutex_lock(&vfs->await_lock);
	if (!vfs->is_changed) {
		vfs->is_changed = true;
		pthread_cond_signal(&vfs->await_end);
	}
	pthread_mutex_unlock(&vfs->await_lock);
}

/* To be called for a new node, and before one is freed; both with vfs->lock. -ESTALE: the object waits to be
 * removed. */
int h5_objects_join(struct h5_vfs *vfs, struct h5_node *node);
/* Of a node that has joined. True: the object is to be removed, so the caller calls h5_objects_await()
 * without vfs->lock. */
bool h5_objects_leave(struct h5_vfs *vfs, struct h5_node *node);
/* A number for the object that is at the address now: another one than those of the objects that were there
 * before in this mount. With vfs->lock. */
uint64_t h5_objects_life(const struct h5_vfs *vfs, uint64_t address);

/* The number of links of the group that the node shows. With the lock. */
int h5_objects_count_links(struct h5_vfs *vfs, const struct h5_node *directory, const struct h5_object *group,
			   uint64_t *links);

/* The rest with the exclusive lock. */

/* The group that the node shows has got a link, or lost one: `by` is 1, -1 or 0. */
void h5_objects_add_links(struct h5_vfs *vfs, const struct h5_node *directory, int by);

/* The transaction of that number was given up: objects whose names, links or attributes it has changed,
 * and open files of these, remember the failure. */
void h5_objects_lose(struct h5_vfs *vfs, uint64_t transaction, int failure);
/* Returns `rc`, or, once, why changes of the node's object were lost. */
int h5_objects_tell_loss(const struct h5_node *node, int rc);
/* The mount has changed the object at the time vfs->changed; `contents`: those, too. */
void h5_objects_stamp(struct h5_vfs *vfs, uint64_t address, bool contents);

/* True: an open file may write to the object. */
bool h5_objects_is_written(struct h5_vfs *vfs, uint64_t address);
/* The object has lost its last name. False: no node shows it, so the caller removes it. */
bool h5_objects_unname(struct h5_vfs *vfs, uint64_t address);
/* Why a request that changes objects of another kind is refused: -EUCLEAN, ... if the node's object is
 * damaged, else -EPERM. */
int h5_objects_refuse(const struct h5_node *node);
/* True: there are objects that have neither names nor nodes. */
static inline bool h5_objects_has_unused(struct h5_vfs *vfs)
{
	bool has;

	pthread_mutex_lock(&vfs->lock);
	has = vfs->unused;
	pthread_mutex_unlock(&vfs->lock);
	return has;
}
/* Removes the objects that have neither names nor nodes. To be called before each commit. What fails for want
 * of memory, or by the device, is tried again. */
void h5_objects_sweep(struct h5_vfs *vfs);
/* An object without names could not be removed. False: it never can be. */
bool h5_objects_remove_later(struct h5_vfs *vfs, uint64_t address, int failure);
/* Says in the log that h5_object_remove() has failed. */
void h5_objects_log_lost(const struct h5_vfs *vfs, uint64_t address, int rc);
/* All nameless objects are removed by the next h5_objects_sweep(). To be called when nobody has any open. */
void h5_objects_end(struct h5_vfs *vfs);
/* The transaction of that number was given up, so objects that have lost their last name in it have it again,
 * and groups may have other numbers of links. */
void h5_objects_rename_all(struct h5_vfs *vfs, uint64_t transaction);
void h5_objects_free(struct h5_vfs *vfs);

/* With the lock. */
static inline bool h5_objects_is_nameless(const struct h5_node *node)
{
	return node->shown && node->shown->is_nameless;
}

#endif
