/* The daemon from its begin to its end: it opens the file, mounts it, serves, commits and unmounts. */
#ifndef H5_FUSE_DAEMON_H
#define H5_FUSE_DAEMON_H

#include "change/open.h"
#include "fuse/options.h"

/* Mounts the file and serves until the mount ends; returns the exit status. In the background only the daemon
 * returns: the command that the user has started exits inside. */
int h5_daemon_run(struct h5_options *options);

/* For commands that read a file without a mount, too: */

/* Lets malloc() keep the memory of chunks. */
void h5_daemon_keep_memory(void);
/* Enters the sandbox, unless the options say otherwise: only files other than those of the set may be opened,
 * as far as `external` allows. `made`: a folder beneath which anything may be made; -1: none. */
void h5_daemon_enter_sandbox(const struct h5_options *options, const struct h5_file_set *set,
			     const struct h5_opened *opened, int made);

#endif
