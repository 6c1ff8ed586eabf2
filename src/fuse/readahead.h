/* Sets how far the kernel reads ahead of a reader. With its default of 128 KiB it makes one request of that
 * size at a time, which is too little to keep several processors at work. */
#ifndef H5_FUSE_READAHEAD_H
#define H5_FUSE_READAHEAD_H

#include "fuse/mountpoint.h"

/* Opens the setting of the mounted file system. -1: only root may change it. */
int h5_readahead_open(const struct h5_mounted *mounted);
/* Raises it and closes the descriptor; -1 is fine. To be called after the answer to FUSE_INIT, which sets it,
 * too. */
void h5_readahead_raise(int fd);

#endif
