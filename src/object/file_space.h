/* Free space that a file keeps track of. Specification III.H. */
#ifndef H5_OBJECT_FILE_SPACE_H
#define H5_OBJECT_FILE_SPACE_H

#include "object/damage.h"
#include "store/file.h"

/* Bytes that the file's persistent free-space managers hold, as H5Fget_freespace counts them. -ENODATA: the
 * file keeps no track. */
int h5_file_space_free(struct h5_file *file, uint64_t *bytes);

/* Verifies the managers that the file has, each with its section list; notes what is damaged. */
int h5_file_space_check(struct h5_file *file, struct h5_damage *damage);
/* The same for one manager, whose header is at the address: of the file, or of a fractal heap. */
int h5_free_space_check(struct h5_file *file, uint64_t address, struct h5_damage *damage);

#endif
