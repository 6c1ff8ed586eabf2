/* Decoding structured chunks, and encoding them.
 *
 * A decoded chunk is chunk_size bytes of elements, and behind them its *marks*: a byte for each element, 1 if
 * it is defined, else 0. Elements that are not defined have the fill value. */
#ifndef H5_DATASET_STRUCTURED_H
#define H5_DATASET_STRUCTURED_H

#include "dataset/dataset.h"

/* Bytes of the marks of a chunk; 0: the dataset is not structured. */
static inline uint64_t h5_structured_marks(const struct h5_dataset *dataset)
{
	const struct h5_chunk_layout *layout = &dataset->layout.chunked;

	return dataset->layout.class == H5_LAYOUT_STRUCTURED && layout->structured.sparse
		       ? dataset->chunk_size / layout->element_size
		       : 0;
}

/* Reads and decodes a structured chunk; *data is the caller's, free(). `filtered`: the filters of its
 * sections were applied. */
int h5_structured_read(const struct h5_dataset *dataset, const struct h5_chunk *chunk, bool filtered,
		       uint8_t **data);
/* The most memory that this takes, in bytes. */
uint64_t h5_structured_need(const struct h5_dataset *dataset, const struct h5_chunk *chunk);

/* Marks the elements of a decoded chunk that have any of n bytes from `begin` as defined. Does nothing if the
 * dataset is not structured. */
void h5_structured_define(const struct h5_dataset *dataset, uint8_t *data, uint64_t begin, uint64_t n);
/* Marks the elements all of whose bytes are among these as not defined. True: one was. */
bool h5_structured_erase(const struct h5_dataset *dataset, uint8_t *data, uint64_t begin, uint64_t n);
/* How many of n bytes, 1 or more, from `begin` of a decoded chunk belong to elements that are defined, or
 * that are not, as the first one is. */
uint64_t h5_structured_run(const struct h5_dataset *dataset, const uint8_t *data, uint64_t begin, uint64_t n,
			   bool *defined);

/* 0: the dataset is not structured, or its chunks can be encoded. -ENOTSUP: they cannot; the detail says why.
 */
int h5_structured_can_encode(const struct h5_dataset *dataset);
/* Encodes a decoded chunk: *out has the bytes, the caller's, free(); *chunk gets its size and metadata. Size
 * 0, and *out NULL: no element is defined, so there is nothing to store. `raw`: no filter is applied. */
int h5_structured_encode(const struct h5_dataset *dataset, const uint8_t *data, bool raw,
			 struct h5_chunk *chunk, uint8_t **out);

#endif
