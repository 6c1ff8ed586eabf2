/* The layouts behind dataset.c: one file each. */
#ifndef H5_DATASET_LAYOUTS_H
#define H5_DATASET_LAYOUTS_H

#include "dataset/boxes.h"
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
/* Bytes of memory that it takes at most. */
uint64_t h5_structured_need(const struct h5_dataset *dataset, const struct h5_chunk *chunk);

/* Chunks without filters are read and written where they lie if so many bytes that are worth a system call
 * lie together, or the chunk is large; the small ones with short runs, of which a sweep over the rows comes
 * back to each, are kept decoded. */
enum {
	H5_DIRECT_RUN = 1 << 10,
	H5_DIRECT_CHUNK = 1 << 20,
};

/* True: the chunk reaches beyond the dataset. Such chunks are stored unfiltered where the layout has
 * unfiltered_edges. */
bool h5_chunk_is_partial(const struct h5_grid *grid, const uint64_t *scaled);
/* True if not all filters of the pipeline were skipped. */
bool h5_chunk_is_filtered(const struct h5_pipeline *pipeline, uint32_t mask);

/* The bytes of a range that nothing is stored for. */
void h5_dataset_fill(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n);

#endif
