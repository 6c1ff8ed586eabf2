/* The commands that look at a file without mounting it. They print on standard output. */
#ifndef H5_OFFLINE_OFFLINE_H
#define H5_OFFLINE_OFFLINE_H

#include "store/file_set.h"

#include <stdbool.h>

struct h5_progress;
struct h5_target;
struct h5_vfs;

enum h5_offline_result {
	H5_OFFLINE_SOUND,
	H5_OFFLINE_UNKNOWN, /* no damage was found, but this version cannot verify all of it */
	H5_OFFLINE_DAMAGED,
	H5_OFFLINE_FAILED,    /* something that was asked for could not be done; standard error tells what */
	H5_OFFLINE_NO_OUTPUT, /* standard output takes no more */
};

/* h5fs --check: prints a line for each finding and one with the sum, after `name`. `progress`: where it
 * shows how far it is; NULL: nowhere. */
int h5_offline_check(struct h5_file_set *set, const char *name, struct h5_progress *progress,
		     enum h5_offline_result *result);

/* h5fs --reclaim: checks the file, which is open for writing, and gives space that nothing refers to back to
 * the file system, if all of the file could be verified. Prints findings, and one line with the result. */
int h5_offline_reclaim(struct h5_file_set *set, const char *name, struct h5_progress *progress,
		       enum h5_offline_result *result);

/* h5fs --list: prints a line for each name of the tree that a mount would show, from the path on. `json`:
 * each line is a JSON object. Standard error tells what cannot be read. */
int h5_offline_list(struct h5_vfs *vfs, const char *path, bool json, enum h5_offline_result *result);

/* h5fs --cat: writes the bytes of the file at the path. H5_OFFLINE_FAILED, H5_OFFLINE_NO_OUTPUT: the return
 * value says why, and h5_error_last() more. `name`: what `progress` calls the work. */
int h5_offline_cat(struct h5_vfs *vfs, const char *path, const char *name, struct h5_progress *progress,
		   enum h5_offline_result *result);

/* h5fs --extract: copies the path and all below into the target, which becomes the directory of that path, or
 * gets the file. What cannot be copied is told on standard error. 0: H5_OFFLINE_SOUND, or H5_OFFLINE_FAILED
 * if something is missing. -ENOSPC, -EDQUOT, -EROFS: the target takes no more; -EINTR: a signal came. */
int h5_offline_extract(struct h5_vfs *vfs, const char *path, struct h5_target *target,
		       struct h5_progress *progress, enum h5_offline_result *result);

#endif
