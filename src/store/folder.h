/* The folder of the mounted file, and which other files may be opened from there. */
#ifndef H5_STORE_FOLDER_H
#define H5_STORE_FOLDER_H

#include "io/io.h"

/* MAPPING.md, section 2, external links. */
enum h5_external {
	H5_EXTERNAL_NONE,    /* never */
	H5_EXTERNAL_BENEATH, /* beneath the directory of the mounted file */
	H5_EXTERNAL_ANY,     /* everywhere */
};

struct h5_folder {
	char *path; /* its real path, owned; NULL: there are no other files around bytes in memory */
	int fd;	    /* O_PATH, owned; -1 then */
	enum h5_external external;
	enum h5_lock_mode lock; /* of HDF5 files */
};

/* Opens the folder at the path. On failure it is as one without other files. */
int h5_folder_open(struct h5_folder *folder, const char *path);
void h5_folder_close(struct h5_folder *folder); /* may run twice */

/* Opens the file that an HDF5 file calls `name`, by the rule for external files: a descriptor or a negative
 * errno, with detail. `beside`: the folder of that HDF5 file, relative to this one, with a slash at its end
 * or empty. In libhdf5's order: an absolute name as it is, then its last component beside the file; a
 * relative one beside the file. `path` (of `size` bytes) becomes that under which it was found, relative to
 * the folder, or absolute. -ENOENT: it is not there; -EACCES: the rule forbids it. */
int h5_folder_open_named(const struct h5_folder *folder, const char *beside, const char *name, bool writable,
			 char *path, size_t size);

/* Opens a member of a file in several pieces, for reading, with the lock of the mode; the path is relative to
 * the folder, or absolute. It belongs to a file that was opened, so it may lie beneath the folder even if no
 * external files are opened. */
int h5_folder_open_member(const struct h5_folder *folder, const char *path, struct h5_io **io);

#endif
