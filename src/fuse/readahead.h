/* How far the kernel reads ahead of a reader. Its default of 128 KiB makes requests of that size, one at a
 * time: too few to keep several processors at work. */
#ifndef H5_FUSE_READAHEAD_H
#define H5_FUSE_READAHEAD_H

#include "fuse/mountpoint.h"

/* A descriptor of the setting of the mounted file system; -1 if we may not change it: only root can. */
int h5_readahead_open(const struct h5_mounted *mounted);
/* Raises it, and closes the descriptor. To be called after the kernel has had the session's answer to INIT,
 * which sets it. -1 is fine. */
void h5_readahead_raise(int fd);

#endif
