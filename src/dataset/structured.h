/* Decoding structured chunks. */
#ifndef H5_DATASET_STRUCTURED_H
#define H5_DATASET_STRUCTURED_H

#include "dataset/dataset.h"

/* Reads and decodes a structured chunk: *data has chunk_size bytes, and is the caller's, free(). `filtered`:
 * the filters of its sections were applied. */
int h5_structured_read(const struct h5_dataset *dataset, const struct h5_chunk *chunk, bool filtered,
		       uint8_t **data);
/* The most memory that this takes, in bytes. */
uint64_t h5_structured_need(const struct h5_dataset *dataset, const struct h5_chunk *chunk);

#endif
