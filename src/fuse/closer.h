/* The thread that closes HDF5 files of a folder which nobody has used for some seconds. */
#ifndef H5_FUSE_CLOSER_H
#define H5_FUSE_CLOSER_H

struct h5_tree;
struct h5_closer;

/* To be called after all forks, which threads do not survive. */
int h5_closer_start(struct h5_tree *tree, struct h5_closer **closer);
/* Ends the thread. NULL is fine. */
void h5_closer_stop(struct h5_closer *closer);

#endif
