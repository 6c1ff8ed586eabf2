/* The thread that commits a few seconds after a change, if nobody has asked for it before. */
#ifndef H5_FUSE_COMMIT_H
#define H5_FUSE_COMMIT_H

struct h5_vfs;
struct h5_committer;

/* To be called after all forks, which threads do not survive. */
int h5_committer_start(struct h5_vfs *vfs, struct h5_committer **committer);
/* Ends the thread. NULL is fine. */
void h5_committer_stop(struct h5_committer *committer);

#endif
