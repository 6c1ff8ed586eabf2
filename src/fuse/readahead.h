/* How far the kernel reads ahead of a reader. Its default of 128 KiB makes requests of that size, one at a
 * time: too few to keep several processors at work. */
#ifndef H5_FUSE_READAHEAD_H
#define H5_FUSE_READAHEAD_H

/* Raises it for the mount where we may: only root can. To be called after the kernel has had the session's
 * answer to INIT, which sets it. */
void h5_readahead_raise(const char *mountpoint);

#endif
