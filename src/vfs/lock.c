/* The lock of a mount for writing.
 *
 * Writers gather small writes in memory, where readers do not look. So before a request reads, all writers
 * are settled: what they hold goes into the transaction, through which all reads go. That is rare. */
#include "vfs/private.h"

#include "base/interrupt.h"
#include "change/transaction.h"
#include "vfs/changes.h"

static void about_to_wait(const struct h5_vfs *vfs)
{
	if (vfs->options.waits)
		vfs->options.waits();
}

void h5_lock_to_write(struct h5_vfs *vfs)
{
	if (pthread_rwlock_trywrlock(&vfs->write_lock)) {
		about_to_wait(vfs);
		pthread_rwlock_wrlock(&vfs->write_lock);
	}
	/* A change is as much work as its user has given, and it must not end half done. */
	h5_interrupt_bound(NULL);
}

static void lock_to_read(struct h5_vfs *vfs)
{
	if (!vfs->options.writable)
		return;
	if (pthread_rwlock_tryrdlock(&vfs->write_lock)) {
		about_to_wait(vfs);
		pthread_rwlock_rdlock(&vfs->write_lock);
	}
	/* If writing was given up, nothing can be settled any more. */
	if (!h5_tx_is_unsettled(h5_mounted_file(vfs)) || !h5_tx_is_writable(h5_mounted_file(vfs)))
		return;
	pthread_rwlock_unlock(&vfs->write_lock);
	h5_lock_to_write(vfs);
	if (h5_tx_settle(h5_mounted_file(vfs)))
		(void)h5_changes_commit(vfs, NULL);
}

void h5_unlock(struct h5_vfs *vfs)
{
	if (vfs->options.writable)
		pthread_rwlock_unlock(&vfs->write_lock);
}

bool h5_reading_next(struct h5_reading *reading, int *rc)
{
	struct h5_vfs *vfs = reading->vfs;

	if (reading->runs) {
		h5_account_end(&reading->account);
		h5_unlock(vfs);
		if (!h5_account_again(&reading->account, rc))
			return false;
	}
	/* Settling comes before the account begins, since it is done for all writers. */
	lock_to_read(vfs);
	h5_account_begin(&reading->account, h5_file_set_room(vfs->set));
	reading->runs = true;
	return true;
}
