/* Changes of the mounted file, and the lock around each request (vfs/reading.h: of those that read). */
#ifndef H5_VFS_CHANGES_H
#define H5_VFS_CHANGES_H

#include "dataset/writer.h"
#include "vfs/node.h"

enum { H5_WASTE_LEAST = 1 << 16 }; /* bytes of unused space that are worth some syncs */

/* The shared lock, for requests that read, on a mount for writing. All writers are settled. */
void h5_lock_to_read(struct h5_vfs *vfs);
/* A request that changes something has the exclusive lock; only on a mount for writing. */
void h5_lock_to_write(struct h5_vfs *vfs);

/* Begins a change of the node's object, other than through the writer of a dataset: takes the exclusive lock.
 * -EROFS: the mount or the object is for reading; -EPERM: it cannot be changed. On failure there is nothing
 * to end. */
int h5_change_begin(struct h5_vfs *vfs, const struct h5_node *node);
/* The same for any change of the mounted file, which a request about the node makes. */
int h5_change_begin_in(struct h5_vfs *vfs, const struct h5_node *node);
/* The same question, without a lock: 0, -EROFS or -EPERM. */
int h5_change_check(const struct h5_vfs *vfs, const struct h5_node *node);
/* Begins a change by a request that has the exclusive lock; through the writer of a dataset, if any. Settles
 * all writers if they have gathered too much in memory. -EROFS: writing was given up. */
int h5_change_begin_through(struct h5_vfs *vfs, struct h5_dataset_writer *writer);
/* To be called after each such change, also if it failed. */
void h5_change_done(struct h5_vfs *vfs);
/* Makes all changes durable, inside a change. On failure they are lost; what was looked up before may be
 * gone. */
int h5_changes_commit(struct h5_vfs *vfs);
/* Makes all changes durable. If those of a dataset cannot be, they are lost: the dataset is again as the last
 * commit has left it, and its handles remember the failure. Returns the failure of the dataset `of`; if that
 * is NULL, of any dataset. With the exclusive lock. */
int h5_changes_commit_of(struct h5_vfs *vfs, const struct h5_dataset_writer *of);
/* Inside a change: it has changed the contents of the node's object, that is its elements or links. */
void h5_change_note(struct h5_vfs *vfs, const struct h5_node *node);
/* The same, of links or properties: if the change is lost, the next fsync of the object tells. */
void h5_change_note_object(struct h5_vfs *vfs, const struct h5_node *node);
/* Likewise of the object at the address: its contents, or only its names or attributes. */
void h5_change_note_contents(struct h5_vfs *vfs, uint64_t address);
void h5_change_note_status(struct h5_vfs *vfs, uint64_t address);
/* Ends it, also if it has failed. */
void h5_change_end(struct h5_vfs *vfs);

#endif
