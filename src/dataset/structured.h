/* What becomes of the stored bytes of a structured chunk. */
#ifndef H5_DATASET_STRUCTURED_H
#define H5_DATASET_STRUCTURED_H

#include "dataset/dataset.h"

/* The chunk, chunk_size bytes (*data is the caller's, free()), made of what a structured chunk stores. Its
 * filters are undone where they ran: `filtered`. */
int h5_structured_read(const struct h5_dataset *dataset, const struct h5_chunk *chunk, bool filtered,
		       uint8_t **data);
/* Bytes of memory that it takes at most. */
uint64_t h5_structured_need(const struct h5_dataset *dataset, const struct h5_chunk *chunk);

#endif
