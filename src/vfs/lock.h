/* The lock of a mount for writing, around each request. */
#ifndef H5_VFS_LOCK_H
#define H5_VFS_LOCK_H

#include "base/room.h"
#include "vfs/vfs.h"

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

#endif
