/* Changes of the mounted file, and the lock around each request. */
#ifndef H5_VFS_CHANGES_H
#define H5_VFS_CHANGES_H

#include "base/room.h"
#include "vfs/node.h"

/* A request that reads. It runs with the shared lock, after all writers have been settled. If there is too
 * little memory for it (base/room.h), it waits, holding nothing, and then runs once more, alone:
 *
 *   struct h5_reading reading = {.vfs = vfs};
 *
 *   while (h5_reading_next(&reading, &rc))
 *           rc = ...
 */
struct h5_reading {
	struct h5_vfs *vfs;
	struct h5_account account;
	bool runs;
};

/* True: the request is to run; the thread has the lock. False: it has run, with the result *rc. */
bool h5_reading_next(struct h5_reading *reading, int *rc);
/* A request that changes something has the exclusive lock; only on a mount for writing. */
void h5_lock_to_write(struct h5_vfs *vfs);
void h5_unlock(struct h5_vfs *vfs);

/* A number for the contents of the file as they are now; another one after each change. */
uint64_t h5_state(const struct h5_vfs *vfs, const struct h5_file *file);

/* True: the dataset can be written in this mount, as far as that is known without its index. */
bool h5_is_writable(const struct h5_vfs *vfs, const struct h5_dataset *dataset);

/* Remembers a virtual dataset, so that it is decoded again after each change: that may be one of a source. */
int h5_changes_follow(struct h5_vfs *vfs, const struct h5_node *node);
/* Forgets all writers and virtual datasets. */
void h5_changes_free(struct h5_vfs *vfs);

#endif
