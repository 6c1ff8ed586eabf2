/* The shape of a dataset, in all dimensions. */
#ifndef H5_DATASET_RESHAPE_H
#define H5_DATASET_RESHAPE_H

#include "dataset/writer.h"

/* Sets all dimensions, as many as the dataset has, as libhdf5's H5Dset_extent(). Elements that are in both
 * shapes stay, all others become the fill value. It commits if a dimension becomes smaller: first the new
 * shape, then without what has gone; if that fails, the new shape stays. One dimension that becomes smaller
 * and another that becomes larger are two changes. -EINVAL: more than the maximum, or than 2^63-1 bytes;
 * -EPERM: the shape cannot change; -ENOTSUP: this version cannot change another dimension than 0, since
 * chunks at the edges are not filtered; or the fill value of new elements has data of variable length. */
int h5_dataset_reshape(struct h5_dataset_writer *writer, const uint64_t *dims);

#endif
