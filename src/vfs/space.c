/* Space that files of the mount take and give back. */
#include "change/transaction.h"
#include "vfs/changes.h"
#include "vfs/private.h"

enum { WASTE_LEAST = 1 << 16 }; /* bytes of unused space that are worth some syncs */

int h5_vfs_give_back(struct h5_vfs *vfs)
{
	int rc;

	if (!vfs->options.writable)
		return 0;
	h5_lock_to_write(vfs);
	rc = h5_tx_give_back(vfs->file, WASTE_LEAST);
	h5_unlock(vfs);
	return rc;
}
