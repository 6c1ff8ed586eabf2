/* Opens an HDF5 file: puts its pieces together, and lays the image of its metadata cache over it. */
#ifndef H5_STORE_FILE_OPEN_H
#define H5_STORE_FILE_OPEN_H

#include "store/file_private.h"
#include "store/folder.h"

/* Takes io over, also on failure. `shared` and the folder are borrowed: they outlive the file. `offset`:
 * where the superblock is; 0: it is searched.
 *
 * A file in several pieces is opened by its first one: the others are found beside `path` (relative to the
 * folder, or absolute). `pattern` is the name of all, with %d for their number; NULL: it follows from `path`.
 */
int h5_file_open(const struct h5_file_shared *shared, const struct h5_folder *folder, struct h5_io *io,
		 const char *path, const char *pattern, uint64_t offset, struct h5_file **file);

#endif
