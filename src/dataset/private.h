/* Between the files of this folder. Lowest first: dataset.c; the layouts, a table of operations each;
 * layouts.c, which lists them; writer.c. */
#ifndef H5_DATASET_PRIVATE_H
#define H5_DATASET_PRIVATE_H

#include "dataset/dataset.h"

/* The layouts, for layouts.c. */
extern const struct h5_layout_ops h5_layout_compact, h5_layout_contiguous, h5_layout_chunked,
	h5_layout_external, h5_layout_structured, h5_layout_virtual;

/* ---- chunked_check.c, chunked_seek.c, chunked_rows.c: parts of the chunked layout ---- */

int h5_chunked_check(const struct h5_dataset *dataset, struct h5_damage *damage, h5_check_done *done,
		     void *arg);
int h5_chunked_seek(const struct h5_dataset *dataset, uint64_t offset, bool hole, uint64_t *found);
extern const struct h5_write_ops h5_write_chunked;

/* ---- dataset.c ---- */

/* The `seek` of a dataset of which nothing is stored. */
int h5_dataset_seek_nothing(const struct h5_dataset *dataset, uint64_t offset, bool hole, uint64_t *found);

#endif
