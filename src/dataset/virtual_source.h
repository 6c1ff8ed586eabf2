/* The sources of a virtual dataset, and what extent they give it. */
#ifndef H5_DATASET_VIRTUAL_SOURCE_H
#define H5_DATASET_VIRTUAL_SOURCE_H

#include "dataset/dataset.h"

/* Virtual datasets that may be sources of one another in a row. */
enum { H5_VIRTUAL_DEPTH = 16 };

/* The dataset that a mapping of a virtual dataset in `file` names, where its names count blocks (%b) the one
 * of that number. -ENOENT: there is none. */
int h5_virtual_find_source(struct h5_file *file, const char *file_name, const char *name, uint64_t block,
			   struct h5_file **found_in, uint64_t *address);

/* Sets the unlimited dimensions of the dataspace to what the sources now have, as libhdf5 shows it: up to the
 * last element that one has (H5D_VDS_LAST_AVAILABLE). Where a source is there but cannot be asked, the
 * stored dimensions are the least. */
int h5_virtual_extent(struct h5_file *file, const struct h5_layout *layout, struct h5_dataspace *space);

#endif
