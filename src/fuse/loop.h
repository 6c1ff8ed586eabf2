/* The threads that serve requests. */
#ifndef H5_FUSE_LOOP_H
#define H5_FUSE_LOOP_H

#include "fuse/operations.h"

/* Serves until the session ends. 0: it was unmounted, or ended by a signal; else a negative errno. */
int h5_serve(struct fuse_session *session);
/* Lets another thread wait for requests from now on. To be called by work that may take longer than expected;
 * it is cheap. */
void h5_serve_others(void);
/* True: nobody waits for the answer to the request any more. `request` is a fuse_req_t that was not replied
 * to. */
bool h5_is_unwanted(void *request);

#endif
