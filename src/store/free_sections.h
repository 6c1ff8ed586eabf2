/* The free space that a file records: its free-space managers and the sections that they list. Specification
 * III.H. */
#ifndef H5_STORE_FREE_SECTIONS_H
#define H5_STORE_FREE_SECTIONS_H

#include "format/free_space.h"
#include "store/file.h"

/* Decodes the header of a manager, of the file or of a fractal heap. It is not cached, since it is read once.
 */
int h5_free_manager_header(struct h5_file *file, uint64_t address, struct h5_free_space_header *header);

/* Reads the section list of the manager at the address, and verifies it, but not the sections in it.
 * *r: over the list, for h5_free_space_walk_begin(). *data is the caller's to free. */
int h5_free_list_open(struct h5_file *file, uint64_t address, const struct h5_free_space_header *header,
		      void **data, struct h5_reader *r);

/* `manager`: its number among those of the file, one of enum h5_file_manager. */
typedef int h5_free_section_visit(void *arg, unsigned manager, const struct h5_free_section *section);
/* Visits the sections of the file's managers, which `info` leads to. A result other than 0 ends the visits
 * and is returned. -EUCLEAN: a manager is damaged, or none of a file. */
int h5_free_sections_each(struct h5_file *file, const struct h5_file_space_info *info,
			  h5_free_section_visit *visit, void *arg);

#endif
