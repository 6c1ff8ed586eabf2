/* Reads many runs of bytes. Those that lie side by side in the file are read with one call, though their
 * buffers lie anywhere. */
#ifndef H5_DATASET_RUNS_H
#define H5_DATASET_RUNS_H

#include "store/file.h"

/* Runs that lie side by side in the file, and that are still to be read. */
struct h5_runs {
	struct h5_file *file; /* borrowed */
	uint64_t address;     /* of the first */
	size_t size;	      /* bytes of all */
	unsigned count;
	struct iovec buffers[H5_IO_BUFFERS];
};

void h5_runs_init(struct h5_runs *runs, struct h5_file *file);
/* Asks for n bytes at the address; they are in buf after h5_runs_flush(). */
int h5_runs_add(struct h5_runs *runs, uint64_t address, void *buf, size_t n);
int h5_runs_flush(struct h5_runs *runs);

#endif
