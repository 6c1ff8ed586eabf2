/* Plain files: datasets of bytes that the mount has made and whose type nobody has declared. Nobody says how
 * large their chunks shall be, so that follows from their size. All of it with the exclusive lock. */
#ifndef H5_VFS_PLAIN_H
#define H5_VFS_PLAIN_H

#include "dataset/writer.h"
#include "vfs/private.h"

enum { H5_PLAIN_CHUNK = 4096 }; /* bytes of a chunk of a file that has just been made */

/* The object at the address is a plain file. Without memory its chunks stay as they are. */
void h5_plain_add(struct h5_vfs *vfs, uint64_t address);
/* It is one no more. */
void h5_plain_remove(struct h5_vfs *vfs, uint64_t address);
bool h5_plain_find(const struct h5_vfs *vfs, uint64_t address);
static inline bool h5_plain_has(const struct h5_vfs *vfs, uint64_t address)
{
	return vfs->plain && h5_plain_find(vfs, address); /* most mounts make no files */
}
void h5_plain_free(struct h5_vfs *vfs);

/* When a plain file is moved onto a dataset, the kernel takes the new name for one of the file, for as long
 * as it would have kept the old one. So it must not keep that: before the move it looks the name up anew.
 *
 * To be called before the move, with the name of the file. -ESTALE: the kernel may have the name. It looks
 * the name up and asks again, and then this is 0. */
int h5_plain_release_name(struct h5_vfs *vfs, uint64_t address, const struct h5_node *directory,
			  const char *name);
/* True: the object is a plain file, and the kernel must not keep names of it. */
bool h5_plain_is_released(const struct h5_vfs *vfs, uint64_t address);

/* To be called before the writer's dataset grows to so many bytes: if it is a plain file with many small
 * chunks, it gets larger ones. */
int h5_plain_grow(struct h5_vfs *vfs, struct h5_dataset_writer *writer, uint64_t size);
/* To be called when the dataset is perhaps complete: if it is a small plain file, its chunk takes no more
 * space than it needs. What was written to a plain file is settled. */
int h5_plain_fit(struct h5_vfs *vfs, struct h5_dataset_writer *writer);

#endif
