/* When the mount has changed objects that no node shows now. The file has one time, which changes with each
 * commit; but editors, `make` and others take a file with a later time for one that somebody has changed. So
 * each object has times of its own: those of its last change by the mount (struct h5_shown), or, before that,
 * the ones that the file had when it was mounted. All with vfs->lock. */
#ifndef H5_VFS_TIMES_H
#define H5_VFS_TIMES_H

#include "vfs/private.h"

struct h5_changed {
	struct timespec contents; /* elements of a dataset, links of a group */
	struct timespec any;	  /* these, names or attributes; never earlier */
};

/* The last node of the object has gone. */
void h5_times_keep(struct h5_vfs *vfs, uint64_t address, const struct h5_changed *changed);
/* The object has a node again. If its times were forgotten, it gets later ones; 0: it was not changed. */
struct h5_changed h5_times_take(struct h5_vfs *vfs, uint64_t address);
void h5_times_free(struct h5_vfs *vfs);

static inline bool h5_times_is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

/* Makes the time at least that. */
static inline void h5_times_raise(struct timespec *time, const struct timespec *least)
{
	if (h5_times_is_later(least, time))
		*time = *least;
}

static inline void h5_times_set(struct stat *st, const struct timespec *time)
{
	st->st_atim = st->st_mtim = st->st_ctim = *time;
}

#endif
