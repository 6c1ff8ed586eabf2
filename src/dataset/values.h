/* What elements and attributes own in the global heap. */
#ifndef H5_DATASET_VALUES_H
#define H5_DATASET_VALUES_H

#include "dataset/dataset.h"
#include "object/heap_dead.h"

/* These add what goes (object/heap_dead.h). If a part of it is damaged, takes longer than a request may, or
 * is an element of more than H5_ELEMENT_MOST bytes, nothing is added, and its space is lost to the file. */

/* What elements outside of the dimensions own, as many as the dataset has, all of which is settled. What the
 * fill value owns stays. */
int h5_dataset_find_outside(struct h5_file *file, uint64_t address, const uint64_t *dims,
			    struct h5_heap_dead *dead);
/* What an object owns: all elements of a dataset, its fill value and its mappings, and all attributes, except
 * for those in the file's heap of shared messages. It cannot be interrupted. */
int h5_object_find_values(struct h5_file *file, const struct h5_object *object, struct h5_heap_dead *dead);

/* Gives up what the elements of the dataset own, which go away, in a unit of change. What the fill value owns
 * stays. */
int h5_dataset_give_up_values(const struct h5_dataset *dataset);

#endif
