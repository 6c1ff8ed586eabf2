/* The thread that watches over a mount: logs its statistics when SIGUSR1 asks for them, and has it unmounted
 * when nobody has used it for a while. */
#ifndef H5_FUSE_WATCH_H
#define H5_FUSE_WATCH_H

#include "fuse/operations.h"
#include "fuse/unmounter.h"

struct h5_watch;

/* `idle`: seconds without a request, 0: for ever. The unmounter is borrowed. */
int h5_watch_start(struct h5_mount *mount, struct h5_unmounter *unmounter, unsigned idle,
		   struct h5_watch **watch);
/* The mount is in use now. */
void h5_watch_request(struct h5_mount *mount);
void h5_watch_stop(struct h5_watch *watch); /* NULL is fine */

#endif
