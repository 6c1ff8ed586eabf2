/* Free space that a file keeps track of. Specification III.H. */
#ifndef H5_OBJECT_FILE_SPACE_H
#define H5_OBJECT_FILE_SPACE_H

#include "store/file.h"

/* Bytes that the file's persistent free-space managers hold, as H5Fget_freespace counts them. -ENODATA: the
 * file keeps no track. */
int h5_file_space_free(struct h5_file *file, uint64_t *bytes);

#endif
