/* The sources of a virtual dataset, and the extent that it has by them. */
#ifndef H5_DATASET_VIRTUAL_SOURCE_H
#define H5_DATASET_VIRTUAL_SOURCE_H

#include "dataset/dataset.h"

/* How many virtual datasets may be sources of one another in a row. */
enum { H5_VIRTUAL_DEPTH = 16 };

/* Finds the dataset that a mapping of a virtual dataset in `file` names; `block` replaces %b in the names.
 * -ENOENT: there is none. */
int h5_virtual_find_source(struct h5_file *file, const char *file_name, const char *name, uint64_t block,
			   struct h5_file **found_in, uint64_t *address);

/* Sets the unlimited dimensions of the dataspace to what the sources have now: up to the last element that
 * any of them has, as libhdf5 does (H5D_VDS_LAST_AVAILABLE). If a source cannot be read, they are at least
 * the stored dimensions. */
int h5_virtual_extent(struct h5_file *file, const struct h5_layout *layout, struct h5_dataspace *space);

#endif
