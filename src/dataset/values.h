/* What the elements of a dataset own in the global heap. */
#ifndef H5_DATASET_VALUES_H
#define H5_DATASET_VALUES_H

#include "dataset/dataset.h"

/* Gives up the collections of the global heap all of whose objects belong to elements of the dataset, which
 * go away, in a unit of change. If elements are damaged, all of that stays, and its space is lost to the
 * file. What the fill value owns stays. */
int h5_dataset_give_up_values(const struct h5_dataset *dataset);

#endif
