/* Runs of bytes that lie in the file as they are read, and the copying of short runs. */
#ifndef H5_DATASET_STORED_RUNS_H
#define H5_DATASET_STORED_RUNS_H

#include "dataset/boxes.h"
#include "store/file.h"

enum {
	H5_STORED_PIECES = 128, /* most pieces that are noted before they are read */
};

/* Runs of the same length that follow each other in the file. */
struct h5_stored_piece {
	uint64_t address;
	size_t count;
	size_t n;	/* bytes of each */
	uint8_t *buf;	/* borrowed: where the first one is read to */
	uint64_t apart; /* bytes from one to the next in `buf` */
};

/* Runs that are still to be read. One call reads all runs that lie side by side in the file, wherever their
 * buffers are. */
struct h5_stored_runs {
	struct h5_file *file; /* borrowed */
	unsigned count;
	struct h5_stored_piece pieces[H5_STORED_PIECES];
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
