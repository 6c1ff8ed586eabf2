/* What all mounts ask the kernel for, and a feature that older versions of libfuse do not know. */
#ifndef H5_FUSE_NEGOTIATE_H
#define H5_FUSE_NEGOTIATE_H

#include "fuse/operations.h"

/* Since Linux 6.6, files that are read directly (FOPEN_DIRECT_IO) can be mapped shared if the file system
 * asks for it. libfuse asks since 3.17. For an older one, these functions change its answer to FUSE_INIT, the
 * first request. If the kernel agrees, they call h5_vfs_set_maps_direct(). */

/* To be called between fuse_session_mount() and the first request, which it answers with an older libfuse.
 * Nothing else may use the session meanwhile. */
int h5_negotiate_start(struct h5_mount *m);

/* To be called in libfuse's init, where features are chosen. */
void h5_negotiate(struct h5_mount *m, struct fuse_conn_info *connection);

#endif
