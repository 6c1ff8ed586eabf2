/* The free space that a file records. Specification III.H. */
#ifndef H5_OBJECT_FILE_SPACE_H
#define H5_OBJECT_FILE_SPACE_H

#include "base/extents.h"
#include "object/damage.h"
#include "store/free_sections.h"

/* Bytes that the file's persistent free-space managers hold, as H5Fget_freespace counts them. -ENODATA: the
 * file does not record its free space. */
int h5_file_space_free(struct h5_file *file, uint64_t *bytes);

/* Verifies all free-space managers of the file, each with its section list; notes what is damaged. */
int h5_file_space_check(struct h5_file *file, struct h5_damage *damage);
/* The same for one manager, of the file or of a fractal heap, whose header is at the address. */
int h5_free_space_check(struct h5_file *file, uint64_t address, struct h5_damage *damage);
/* h5_free_sections_each(); a file that does not record its free space has none. */
int h5_file_space_sections(struct h5_file *file, h5_free_section_visit *visit, void *arg);
/* Visits the space of all free-space managers of the file, with their section lists. */
int h5_file_space_extents(struct h5_file *file, h5_extent_visit *visit, void *arg);

#endif
