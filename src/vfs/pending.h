/* New files that are not whole yet. A new file enters the HDF5 file when it is synced, or when no open file
 * writes to it any more, or when it gets another name. Before that, its name is in the transaction, so
 * that all requests see it, but commits leave the name out: a kill leaves nothing of the file but space that
 * nothing refers to. All of it with the exclusive lock. */
#ifndef H5_VFS_PENDING_H
#define H5_VFS_PENDING_H

#include "vfs/private.h"

/* The link of that name in the group leads to the object, which is a new file. Without memory it is in the
 * HDF5 file from the next commit on. */
void h5_pending_add(struct h5_vfs *vfs, uint64_t group, const char *name, size_t name_size, uint64_t address);
/* The next commit has the name of the object, if it has one then. For any object of the mounted file. */
void h5_pending_end(struct h5_vfs *vfs, uint64_t address);
/* The same, unless an open file writes to the object. */
void h5_pending_closed(struct h5_vfs *vfs, uint64_t address);
/* All changes since the last commit were given up. */
void h5_pending_lose(struct h5_vfs *vfs);

/* The mount begins, and ends. */
void h5_pending_init(struct h5_vfs *vfs);
void h5_pending_free(struct h5_vfs *vfs);

#endif
