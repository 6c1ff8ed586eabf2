/* The lock of a mount for writing, around each request. */
#ifndef H5_VFS_LOCK_H
#define H5_VFS_LOCK_H

#include "base/room.h"
#include "vfs/vfs.h"

/* Around a request that reads; first settles what was written, so that it sees it. Such a request runs once
 * more, alone, if there was no room for what it takes (base/room.h):
 *
 *   struct h5_account account = {0};
 *
 *   do {
 *           h5_reading_begin(vfs, &account);
 *           rc = ...
 *   } while (h5_reading_again(vfs, &account, &rc));
 */
void h5_reading_begin(struct h5_vfs *vfs, struct h5_account *account);
bool h5_reading_again(struct h5_vfs *vfs, struct h5_account *account, int *rc);
/* Around one that changes something; only on a mount for writing. */
void h5_lock_to_write(struct h5_vfs *vfs);
void h5_unlock(struct h5_vfs *vfs);

/* For assertions: false if the lock is free, or only shared, on a mount for writing. */
bool h5_is_locked(struct h5_vfs *vfs);
bool h5_is_locked_to_write(struct h5_vfs *vfs);

#endif
