/* Reading many runs of bytes that lie near each other: neighbours in the file are read together, wherever
 * their bytes go. */
#ifndef H5_DATASET_RUNS_H
#define H5_DATASET_RUNS_H

#include "store/file.h"

/* Runs that follow one another in the file and have not been read yet. */
struct h5_runs {
	struct h5_file *file; /* borrowed */
	uint64_t address;     /* of the first */
	size_t size;	      /* bytes of all */
	unsigned count;
	struct iovec buffers[H5_IO_BUFFERS];
};

void h5_runs_init(struct h5_runs *runs, struct h5_file *file);
/* n bytes at the address are wanted in buf; they are there after h5_runs_flush(). */
int h5_runs_add(struct h5_runs *runs, uint64_t address, void *buf, size_t n);
int h5_runs_flush(struct h5_runs *runs);

#endif
