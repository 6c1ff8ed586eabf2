/* Opens an HDF5 file: puts its pieces together, and lays the image of its metadata cache over it. */
#ifndef H5_STORE_FILE_OPEN_H
#define H5_STORE_FILE_OPEN_H

#include "format/driver_info.h"
#include "store/file_private.h"
#include "store/folder.h"
#include "store/object_header.h"

/* Names a file. Of a file in several pieces, `path` is the first one; the others are found beside it. */
struct h5_file_place {
	const struct h5_folder *folder; /* borrowed: it outlives the file */
	const char *path;		/* relative to the folder, or absolute */
	/* The name of all pieces, with %d for their number; NULL: it follows from `path`. */
	const char *pattern;
	uint64_t offset; /* of the superblock; 0: it is searched */
};

/* What the file says of its driver, and the address of its information. If it says nothing, there is none.
 * `extension`: h5_extension_load(). */
int h5_file_driver_info(struct h5_file *file, const struct h5_header *extension,
			struct h5_driver_info *driver, uint64_t *address);

struct h5_joined; /* how the pieces of a file were joined */

/* Puts the pieces of the file together before it is opened, so that what a journal says of it can be looked
 * at. *io is the first piece and becomes the whole file; on failure it may be closed, and NULL. *joined: free
 * it after the file was opened; NULL: the file is one. `writable`: *io is open for writing. */
int h5_file_join(const struct h5_file_shared *shared, const struct h5_file_place *place, bool writable,
		 struct h5_io **io, struct h5_joined **joined);
void h5_joined_free(struct h5_joined *joined); /* NULL is fine */

/* Takes io over, also on failure. `shared` is borrowed: it outlives the file. `joined`: what h5_file_join()
 * gave for this io; NULL: it is the first piece. */
int h5_file_open(const struct h5_file_shared *shared, const struct h5_file_place *place, struct h5_io *io,
		 const struct h5_joined *joined, struct h5_file **file);

#endif
