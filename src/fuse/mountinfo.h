/* The list of mounts. Nothing looks at the places themselves, on which an automounter may be at work, or
 * whose daemon may not answer. */
#ifndef H5_FUSE_MOUNTINFO_H
#define H5_FUSE_MOUNTINFO_H

#include <stdint.h>

/* Tells the mount from others at the same place. */
struct h5_mounted {
	unsigned major, minor; /* device number of its file system; 0 and 0: unknown */
	uint64_t id;	       /* of the mount, as in /proc/self/mountinfo; 0: the kernel does not tell */
};

enum { H5_MOUNTINFO_TYPE = 64 };

/* Finds the top one of the mounts at the absolute path, and the type of its file system. -ENOENT: there is
 * none. */
int h5_mountinfo_top(const char *path, struct h5_mounted *top, char type[H5_MOUNTINFO_TYPE]);
/* A place where that file system is mounted; free(). NULL: there is none, or it is not known. */
char *h5_mountinfo_place(const struct h5_mounted *mounted);

#endif
