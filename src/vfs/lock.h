/* The lock of a mount for writing, around each request. */
#ifndef H5_VFS_LOCK_H
#define H5_VFS_LOCK_H

#include "base/room.h"
#include "vfs/vfs.h"

/* A request that reads. It runs with the lock, after everything that was written has been settled, so that
 * it sees that. It runs once more, alone, if there was no room for what it takes (base/room.h):
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
/* Around one that changes something; only on a mount for writing. */
void h5_lock_to_write(struct h5_vfs *vfs);
void h5_unlock(struct h5_vfs *vfs);

/* For assertions: false if the lock is free, or only shared, on a mount for writing. */
bool h5_is_locked(struct h5_vfs *vfs);
bool h5_is_locked_to_write(struct h5_vfs *vfs);

#endif
