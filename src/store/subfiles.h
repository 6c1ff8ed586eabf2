/* The subfiles of a file that libhdf5's subfiling driver wrote (format/subfiling.h), and its configuration:
 * found by their names, beside the stub. */
#ifndef H5_STORE_SUBFILES_H
#define H5_STORE_SUBFILES_H

#include "store/members.h"

/* Opens the subfiles of a stub, for reading. *io is the stub and becomes the whole file; on failure, and if
 * the file has no subfiles, it stays what it is. `info`: what the stub says; if it says nothing of a driver,
 * the file may be another one that was cut off, and has no subfiles if none are beside it. *said: what is
 * known of the driver together with the configuration.
 *
 * A copy of a stub has another inode number than the names of its subfiles. So if none have its number, those
 * of another one are taken, if all that are beside it have the same.
 *
 * The configuration is beside the stub, or in the folder that the stub names; the subfiles are beside the
 * stub, or in the folder that the configuration names.
 *
 * A subfile that cannot be opened is missing; -EWOULDBLOCK if one is locked by a writer; -EIO: all are
 * missing; -ENOTSUP: several sets, too many subfiles, or a URL. With H5_EXTERNAL_NONE only files of the
 * stub's owner and permissions are opened, and only beside it. */
int h5_subfiles_open(struct h5_members *members, const struct h5_driver_info *info,
		     struct h5_driver_info *said, struct h5_io **io);

#endif
