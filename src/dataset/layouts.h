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
	h5_layout_external, h5_layout_virtual;

/* The bytes of a range that nothing is stored for. */
void h5_dataset_fill(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n);

#endif
