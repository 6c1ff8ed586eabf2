/* What libfuse does not ask the kernel for, added to its answer to FUSE_INIT. */
#ifndef H5_FUSE_NEGOTIATE_H
#define H5_FUSE_NEGOTIATE_H

#include "fuse/operations.h"

/* Files that are read directly (FOPEN_DIRECT_IO) can be mapped shared if the kernel is asked for it, since
 * Linux 6.6. libfuse asks since 3.17; these ask beneath an older one. If the kernel grants it they call
 * h5_vfs_set_maps_direct(). */

/* To be called between fuse_session_mount() and the first request. -ENOMEM */
int h5_negotiate_start(struct h5_mount *m);

/* To be called where libfuse lets us choose what the kernel is asked for. */
void h5_negotiate(struct h5_mount *m, struct fuse_conn_info *connection);

#endif
