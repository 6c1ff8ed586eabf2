/* What each request that reads begins with. On a mount for reading nothing of vfs/changes runs. */
#ifndef H5_VFS_READING_H
#define H5_VFS_READING_H

#include "base/room.h"
#include "vfs/private.h"

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
static inline bool h5_reading_next(struct h5_reading *reading, int *rc)
{
	struct h5_vfs *vfs = reading->vfs;

	if (reading->runs) {
		h5_account_end(&reading->account);
		h5_unlock(vfs);
		if (!h5_account_again(&reading->account, rc))
			return false;
	}
	/* Settling comes before the account begins, since it is done for all writers. */
	if (vfs->options.writable)
		h5_lock_to_read(vfs);
	h5_account_begin(&reading->account, vfs->room);
	reading->runs = true;
	return true;
}

#endif
