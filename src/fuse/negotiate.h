/* What libfuse does not ask the kernel for, added to its answer to FUSE_INIT. */
#ifndef H5_FUSE_NEGOTIATE_H
#define H5_FUSE_NEGOTIATE_H

#include "fuse/operations.h"

/* Asks that files which are read directly (FOPEN_DIRECT_IO) can be mapped shared, which Linux 6.6 and later
 * grant, and calls h5_vfs_set_maps_direct() if so. To be called between fuse_session_mount() and the first
 * request. -ENOMEM */
int h5_negotiate_start(struct h5_mount *m);

#endif
