/* Small chunks that lie side by side along the last dimension are decoded together. In the cache they are one
 * value, whose rows are as long as all of them: then a read need not look for each chunk, and copies long
 * rows instead of short ones. */
#ifndef H5_DATASET_CHUNK_ROW_H
#define H5_DATASET_CHUNK_ROW_H

#include "dataset/boxes.h"
#include "dataset/dataset.h"

/* A reference to a decoded row of chunks. */
struct h5_chunk_row {
	struct h5_lru_entry *ref;
	const uint8_t *data; /* valid until the reference is put */
};

/* Sets the grid to the dimensions of the dataset and its rows of chunks. False: its chunks are decoded one by
 * one. */
bool h5_chunk_rows_grid(const struct h5_dataset *dataset, struct h5_grid *grid);
/* The number of the row with the coordinates, in row-major order. */
uint64_t h5_chunk_row_number(const struct h5_grid *grid, const uint64_t *scaled);

/* These are as those for a chunk (dataset/chunk_cache.h). One damaged chunk makes h5_chunk_row_get() fail. */
bool h5_chunk_row_find(const struct h5_dataset *dataset, uint64_t number, struct h5_chunk_row *row);
int h5_chunk_row_get(const struct h5_dataset *dataset, uint64_t number, bool wait, struct h5_chunk_row *row);
bool h5_chunk_row_is_under_way(const struct h5_dataset *dataset, uint64_t number);
bool h5_chunk_row_plan(const struct h5_dataset *dataset, uint64_t number);
int h5_chunk_row_load_ahead(const struct h5_dataset *dataset, uint64_t number);
void h5_chunk_row_put(const struct h5_dataset *dataset, struct h5_chunk_row *row, uint64_t taken,
		      uint64_t all);

#endif
