/* The daemon goes to the background. The command that the user has started waits until the mount can be used,
 * and exits with 0. If mounting fails, it exits with the daemon's status. */
#ifndef H5_FUSE_BACKGROUND_H
#define H5_FUSE_BACKGROUND_H

struct h5_background {
	int ready; /* written to when the mount can be used; -1: in the foreground */
	int null;  /* /dev/null */
};

/* Forks; returns only in the daemon, which still has the terminal's descriptors. 0 or a negative errno. No
 * thread may run yet. */
int h5_background_begin(struct h5_background *b);
/* Leaves the folder and the terminal's descriptors. From now on text on standard error is lost. */
void h5_background_detach(struct h5_background *b);
/* Leaves the command's session, and so the terminal, and lets the command exit. Not earlier, since until then
 * an automounter lets only the command's process group through to its mount point. */
void h5_background_ready(struct h5_background *b);

#endif
