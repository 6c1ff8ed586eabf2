/* A dataset becomes what another one is. */
#ifndef H5_DATASET_TAKE_OVER_H
#define H5_DATASET_TAKE_OVER_H

#include "store/file.h"

/* The dataset at `to` gets type, shape, filters, fill value and elements of the one at `from`, in a unit of
 * change; its attributes, times and names stay. The elements are not copied: `from`, which
 * h5_dataset_create() has made, has none afterwards. Writers of both are settled before. Outside of units.
 * -EPERM: the elements of `to` are elsewhere; -ENOTSUP: its header has a form in which that is not possible.
 * On failure both are as they were. */
int h5_dataset_take_over(struct h5_file *file, uint64_t to, uint64_t from);

/* *alike: they have the same type, and the same shape but for dimension 0. -ENOMEM. */
struct h5_dataset;
int h5_dataset_is_alike(const struct h5_dataset *a, const struct h5_dataset *b, bool *alike);

#endif
