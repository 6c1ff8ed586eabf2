/* The parts of the chunked layout: reading, holes, verifying, writing. chunked.c puts them together. */
#ifndef H5_DATASET_CHUNKED_H
#define H5_DATASET_CHUNKED_H

#include "dataset/private.h"
#include "dataset/writing.h"

/* Operations of the layout. */
int h5_chunked_read(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n);
int h5_chunked_seek(const struct h5_dataset *dataset, uint64_t offset, bool hole, uint64_t *found);
int h5_chunked_check(const struct h5_dataset *dataset, struct h5_damage *damage, h5_check_done *done,
		     void *arg);
extern const struct h5_write_ops h5_write_chunked;

#endif
