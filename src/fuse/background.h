/* The daemon's way to the background. The command that the user has started waits until the mount can be
 * used, then exits with 0; where it cannot come about, with the daemon's exit status. */
#ifndef H5_FUSE_BACKGROUND_H
#define H5_FUSE_BACKGROUND_H

struct h5_background {
	int ready; /* written to when the mount can be used; -1: in the foreground */
	int null;  /* /dev/null */
};

/* Returns in the daemon alone, still with the terminal's descriptors: 0 or a negative errno. No thread may
 * run yet. */
int h5_background_begin(struct h5_background *b);
/* Leaves the folder and the terminal's descriptors. From here on nobody sees what is written to standard
 * error. */
void h5_background_detach(struct h5_background *b);
/* Leaves the session of the command and with it the terminal, and lets the command exit. Not before: an
 * automounter's mount point is open only to processes of the command's process group until then. */
void h5_background_ready(struct h5_background *b);

#endif
