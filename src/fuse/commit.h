/* The thread that commits a few seconds after a change of a file, if nobody has asked for it before; and the
 * last commit. */
#ifndef H5_FUSE_COMMIT_H
#define H5_FUSE_COMMIT_H

struct h5_vfs;
struct h5_committer;

/* To be called after all forks, which threads do not survive. */
int h5_committer_start(struct h5_vfs *vfs, struct h5_committer **committer);
/* Ends the thread. NULL is fine. */
void h5_committer_stop(struct h5_committer *committer);
/* Commits what is left, when no requests come any more: h5_vfs_finish(). Logs a failure, with the name of the
 * file. */
int h5_commit_rest(struct h5_vfs *vfs, const char *file);

#endif
