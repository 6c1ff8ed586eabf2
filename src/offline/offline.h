/* The commands that tell of a file without mounting it: what h5fs prints on standard output. */
#ifndef H5_OFFLINE_OFFLINE_H
#define H5_OFFLINE_OFFLINE_H

#include "store/file_set.h"

struct h5_vfs;

enum h5_offline_result {
	H5_OFFLINE_SOUND,
	H5_OFFLINE_UNKNOWN, /* some of it is valid, but nothing that this version can do */
	H5_OFFLINE_DAMAGED,
};

/* h5fs --check: a line for each finding and one with the sum, after `name`; a bar on standard error while it
 * lasts, where that is a terminal. */
int h5_offline_check(struct h5_file_set *set, const char *name, enum h5_offline_result *result);

/* h5fs --list: a line for each name of the tree that a mount would show. What cannot be read is said on
 * standard error. */
int h5_offline_list(struct h5_vfs *vfs, enum h5_offline_result *result);

#endif
