/* The layouts behind dataset.c: one file each. */
#ifndef H5_DATASET_LAYOUTS_H
#define H5_DATASET_LAYOUTS_H

#include "dataset/dataset.h"

struct h5_layout_ops {
	/* Completes and checks what the messages gave. NULL: nothing to do. Reads no more than an index
	 * header. */
	int (*open)(struct h5_dataset *dataset);
	/* As h5_dataset_read(); the range lies inside the dataset and isn't empty. */
	int (*read)(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n);
	int (*storage)(const struct h5_dataset *dataset, uint64_t *bytes);
};

extern const struct h5_layout_ops h5_layout_compact, h5_layout_contiguous, h5_layout_chunked,
	h5_layout_external, h5_layout_structured, h5_layout_virtual;

/* The chunk, chunk_size bytes (*data is the caller's, free()), made of what a structured chunk stores. Its
 * filters are undone where they ran: `filtered`. */
int h5_structured_read(const struct h5_dataset *dataset, const struct h5_chunk *chunk, bool filtered,
		       uint8_t **data);

/* Steps `at` to the next index of a box in row-major order over its first n dimensions; false after the last,
 * when it stands at the first again. */
bool h5_box_step(uint64_t *at, const uint64_t *first, const uint64_t *count, unsigned n);

/* The bytes of a range that nothing is stored for. */
void h5_dataset_fill(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n);

#endif
