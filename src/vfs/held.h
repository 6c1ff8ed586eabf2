/* Contents of files that the kernel reads without opening them. */
#ifndef H5_VFS_HELD_H
#define H5_VFS_HELD_H

#include "vfs/private.h"

/* Closes all. */
void h5_held_close(struct h5_vfs *vfs);

#endif
