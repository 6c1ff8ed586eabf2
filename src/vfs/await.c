/* Waiting for something to commit; h5_objects_await() says that there is. */
#include "vfs/private.h"

#include <time.h>

bool h5_vfs_await_change(struct h5_vfs *vfs, unsigned seconds)
{
	struct timespec until;
	bool changed;

	pthread_mutex_lock(&vfs->await_lock);
	while (!vfs->is_changed && !vfs->awaits_none)
		pthread_cond_wait(&vfs->await_end, &vfs->await_lock);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += seconds;
	while (!vfs->awaits_none && !pthread_cond_timedwait(&vfs->await_end, &vfs->await_lock, &until))
		;
	changed = !vfs->awaits_none;
	vfs->is_changed = false;
	pthread_mutex_unlock(&vfs->await_lock);
	return changed;
}

void h5_vfs_await_none(struct h5_vfs *vfs)
{
	pthread_mutex_lock(&vfs->await_lock);
	vfs->awaits_none = true;
	pthread_cond_signal(&vfs->await_end);
	pthread_mutex_unlock(&vfs->await_lock);
}
