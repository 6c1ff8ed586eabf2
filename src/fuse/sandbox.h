/* What is left of the daemon's rights once it has mounted: what a damaged or hostile file can make of it. No
 * new privileges, Landlock for files, seccomp for system calls; each where the kernel has it. doc/security.md
 * says what that promises. */
#ifndef H5_FUSE_SANDBOX_H
#define H5_FUSE_SANDBOX_H

#include <stdbool.h>
#include <stdio.h>

struct h5_sandbox {
	/* What may be opened by name from now on. Descriptors (O_PATH is enough) of folders; -1: none. */
	int readable; /* files beneath it */
	int writable; /* files beneath it, that are there */
	int journals; /* files in it may be removed, and it can be synced */
	int pointers; /* the same: where a symbolic link leads to the journal */
};

/* Enters it, for this thread and those that it starts: none may run yet. What the kernel lacks is left out;
 * where it refuses, 0 all the same, and a line in the log. */
void h5_sandbox_enter(const struct h5_sandbox *sandbox);
/* What would be in force here, a line. */
void h5_sandbox_describe(FILE *out);

#endif
