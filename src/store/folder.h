/* The folder of the mounted file, and the rule about which other files may be opened. */
#ifndef H5_STORE_FOLDER_H
#define H5_STORE_FOLDER_H

#include "io/remote.h"

/* Which other files links and datasets may lead to (doc/h5fs.1, external). */
enum h5_external {
	H5_EXTERNAL_NONE,    /* none */
	H5_EXTERNAL_BENEATH, /* files beneath the directory of the mounted file */
	H5_EXTERNAL_ANY,     /* files anywhere */
};

struct h5_folder {
	/* The mounted file is behind a URL, and brought by this; NULL: it is not. Borrowed. */
	struct h5_remote *remote;
	/* The name of the mounted file beneath the folder of the URL; NULL: it is in that. Borrowed. */
	const char *beside;
	char *path; /* its real path, owned; NULL: the mounted file is in memory, and there are no others */
	int fd;	    /* O_PATH, owned; -1: none, if `path` is NULL */
	enum h5_external external;
	enum h5_lock_mode lock; /* of HDF5 files */
};

/* Opens the folder at the path. */
int h5_folder_open(struct h5_folder *folder, const char *path);
/* The same for one that is open: a descriptor, borrowed. */
int h5_folder_open_at(struct h5_folder *folder, int fd, const char *path);
void h5_folder_close(struct h5_folder *folder); /* may run twice */

/* Opens the file that an HDF5 file calls `name`: a descriptor or a negative errno, with detail. `beside`: the
 * folder of that HDF5 file, relative to this one, with a slash at its end, or empty. As in libhdf5, an
 * absolute name is tried as it is, then its last component beside the HDF5 file; a relative one beside that
 * file only. `path`, of `size` bytes, becomes the path of the file that was opened: relative to the folder,
 * or absolute. -ENOENT: it is not there; -EACCES: the rule forbids it. */
int h5_folder_open_named(const struct h5_folder *folder, const char *beside, const char *name, bool writable,
			 char *path, size_t size);

/* The same of a folder that is behind a URL: *io becomes the file. Names lead to files beneath the folder
 * alone. */
int h5_folder_open_remote(const struct h5_folder *folder, const char *beside, const char *name, char *path,
			  size_t size, struct h5_io **io);

/* Opens a piece of a file in several pieces, and locks it. The path is relative to the folder,
 * or absolute. Since it belongs to a file that is open already, H5_EXTERNAL_NONE is as H5_EXTERNAL_BENEATH
 * here.
 */
int h5_folder_open_member(const struct h5_folder *folder, const char *path, bool writable, struct h5_io **io);
/* The same for the file of that name beside `path`. `first`: it must have the owner of this one and the
 * permissions to read, so whoever may read that may read it (-EACCES); NULL: any. */
int h5_folder_open_beside(const struct h5_folder *folder, const char *path, const char *name,
			  struct h5_io *first, bool writable, struct h5_io **io);
/* Makes an empty piece in the folder, with the owner and the permissions of the first one, and locks it.
 * -EEXIST: something has that name. */
int h5_folder_make_member(const struct h5_folder *folder, const char *name, struct h5_io *first,
			  struct h5_io **io);

#endif
