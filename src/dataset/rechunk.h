/* Gives a dataset chunks of another shape. */
#ifndef H5_DATASET_RECHUNK_H
#define H5_DATASET_RECHUNK_H

#include "dataset/dataset.h"

struct h5_new_dataset;

/* What h5_dataset_create() would make the dataset of, which is compact, contiguous or chunked. Parts of *how
 * are borrowed from the dataset. */
void h5_dataset_describe(const struct h5_dataset *dataset, struct h5_new_dataset *how);

/* Stores the elements of a chunked dataset in new chunks of this shape, in one unit of change. All of them
 * are in memory meanwhile, so the caller bounds their number. What its writer holds is settled before.
 * -EINVAL: no chunks can have this shape. On failure the dataset is as it was. */
int h5_dataset_rechunk(struct h5_file *file, uint64_t address, const uint64_t *chunk);

#endif
