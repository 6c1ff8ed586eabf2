/* Programs that read a file in order: what comes next is asked for, or decoded, before they get there. */
#ifndef H5_VFS_SEQUENCE_H
#define H5_VFS_SEQUENCE_H

#include "dataset/dataset.h"
#include "io/io.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Reads in order: up to where, how many, and up to where chunks were decoded ahead; where they began; and, of
 * a file that is far away, up to where bytes were asked for ahead. Several threads may change these at once,
 * which costs only speed. {0}: they are about to begin at the begin of the file. */
struct h5_sequence {
	atomic_uint_fast64_t read_to, ahead, begin, wanted;
	atomic_uint in_order;
	atomic_uint late;	   /* reads since the last one that went further */
	atomic_uint_fast64_t used; /* number of the last read, among those of the file */
};

/* Those of an open file, which several programs may read. {0}: none. */
struct h5_sequences {
	atomic_uint_fast64_t reads; /* their number */
	struct h5_sequence each[4];
};

/* Notes that n bytes of the dataset are read at the offset. If that is in order, the chunks that come next
 * are decoded in the background. The background holds no lock, so this is not for mounts for writing. */
void h5_sequences_read(struct h5_sequences *sequences, const struct h5_dataset *dataset, uint64_t offset,
		       size_t n);

/* Notes that n bytes are read at the offset of a file of `size` bytes, which is no dataset. True: that is in
 * order, and the caller asks for the range, which comes next. `most`: bytes ahead of the reader, at most; 0:
 * the file is not far away. The first read asks for nothing, since many programs look only at the begin of a
 * file. */
bool h5_sequences_want(struct h5_sequences *sequences, uint64_t size, uint64_t most, uint64_t offset,
		       size_t n, struct h5_io_range *range);

#endif
