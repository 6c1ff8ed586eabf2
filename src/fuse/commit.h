/* The thread that commits what was written and not yet asked to be durable. */
#ifndef H5_FUSE_COMMIT_H
#define H5_FUSE_COMMIT_H

struct h5_vfs;
struct h5_committer;

/* To be called in the process that serves: threads don't survive a fork. */
int h5_committer_start(struct h5_vfs *vfs, struct h5_committer **committer);
/* Something was changed: it is committed a few seconds later at the latest. */
void h5_committer_want(struct h5_committer *committer);
/* Ends the thread. NULL is fine. */
void h5_committer_stop(struct h5_committer *committer);

#endif
