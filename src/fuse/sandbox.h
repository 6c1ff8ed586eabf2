/* Takes rights away from the daemon once it has mounted, so that a hostile file which gets control of it
 * cannot use them. No new privileges, Landlock for files, seccomp for system calls; each if the kernel has
 * it. doc/security.md says what that promises. */
#ifndef H5_FUSE_SANDBOX_H
#define H5_FUSE_SANDBOX_H

#include <stdbool.h>
#include <stdio.h>

struct h5_sandbox {
	/* Folders in which files may be opened by name, as descriptors (O_PATH is enough); -1: none. */
	int readable;  /* files beneath the folder */
	int listed;    /* directories beneath the folder may be listed, and attributes be read */
	int writable;  /* existing files beneath the folder */
	int journals;  /* files in the folder may be removed, and the folder may be synced */
	int pointers;  /* as `journals`, for the symbolic link that leads to the journal */
	int changed;   /* files beneath the folder may be written, made, renamed and removed */
	int machine;   /* descriptions of processors and memory, which libfuse reads as it starts io_uring */
	int made;      /* anything may be made beneath the folder, which was opened for reading */
	bool terminal; /* the size of a terminal may be asked for */
	bool io_uring; /* requests come through io_uring; only for the second step */
};

/* Two steps. Parts that the kernel lacks are left out. If the kernel refuses a part, a line in the log says
 * so.
 * h5_sandbox_enter_files() takes new privileges and files away from this thread and from those that it starts
 * later; other threads may not run yet. h5_sandbox_enter_calls() takes system calls away from all threads. */
void h5_sandbox_enter_files(const struct h5_sandbox *sandbox);
void h5_sandbox_enter_calls(const struct h5_sandbox *sandbox);
/* Confines the process that fetches what is behind a URL (remote/fetcher.h): it may connect to servers, read
 * what that takes, and `more`, which ends with NULL, and make, change and remove files in the folder of its
 * disk cache; -1: it has none. */
void h5_sandbox_enter_fetcher(const char *const *more, int folder);
/* Prints a line that says which parts this kernel has. */
void h5_sandbox_describe(FILE *out);

#endif
