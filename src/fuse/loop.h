/* The threads that serve requests. */
#ifndef H5_FUSE_LOOP_H
#define H5_FUSE_LOOP_H

#include "fuse/options.h"

/* Serves until the session ends: 0 when it was unmounted, or ended by a signal; else a negative errno. */
int h5_serve(struct fuse_session *session);
/* Whoever works on a request that may take longer than it looked: from now on another thread hears of other
 * requests. Cheap. */
void h5_serve_others(void);

#endif
