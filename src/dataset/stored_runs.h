/* Runs of bytes that lie in the file as they are read, and the copying of short runs. */
#ifndef H5_DATASET_STORED_RUNS_H
#define H5_DATASET_STORED_RUNS_H

#include "dataset/boxes.h"
#include "store/file.h"

/* Runs that lie side by side in the file, and that are still to be read. They are read with one call, though
 * their buffers lie anywhere. */
struct h5_stored_runs {
	struct h5_file *file; /* borrowed */
	uint64_t address;     /* of the first */
	size_t size;	      /* bytes of all */
	unsigned count;
	struct iovec buffers[H5_IO_BUFFERS];
	uint8_t *room; /* owned: for short runs, which are copied; NULL: not needed yet */
};

void h5_stored_runs_init(struct h5_stored_runs *runs, struct h5_file *file);
void h5_stored_runs_release(struct h5_stored_runs *runs);
/* Asks for the runs of a chunk at the address; they are in buf, at their distances in the dataset, after
 * h5_stored_runs_flush(). The address of their end fits 64 bits. */
int h5_stored_runs_add(struct h5_stored_runs *runs, uint64_t chunk, const struct h5_part_rows *rows,
		       uint8_t *buf);
int h5_stored_runs_flush(struct h5_stored_runs *runs);

/* Copies runs of a chunk, the first of which is at `from`. */
void h5_copy_rows(const struct h5_part_rows *rows, const uint8_t *from, uint8_t *to);

#endif
