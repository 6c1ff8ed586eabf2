/* The thread that logs statistics at SIGUSR1, and has the mount unmounted when nobody has used it for a
 * while. */
#ifndef H5_FUSE_WATCH_H
#define H5_FUSE_WATCH_H

#include "fuse/operations.h"
#include "fuse/unmounter.h"

struct h5_watch;

/* `idle`: seconds without a request after which it is unmounted; 0: never. The unmounter is borrowed. */
int h5_watch_start(struct h5_mount *mount, struct h5_unmounter *unmounter, unsigned idle,
		   struct h5_watch **watch);
void h5_watch_stop(struct h5_watch *watch); /* NULL is fine */

#endif
