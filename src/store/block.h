/* The bytes of a block of metadata, for the loaders of struct h5_block_type. */
#ifndef H5_STORE_BLOCK_H
#define H5_STORE_BLOCK_H

#include "store/file.h"

/* A larger block is refused (-ENOTSUP): far beyond what writers make, and memory that a sparse file can't
 * make us take. */
#define H5_BLOCK_MAX ((size_t)256 << 20)

/* Allocates `head` bytes of zeros and n bytes after them, and reads the n bytes at the address there. *memory
 * is the caller's, free(). -EUCLEAN, before anything is allocated, where the block reaches beyond the end of
 * the file. `what` names the block in errors. */
int h5_block_read(struct h5_file *file, uint64_t address, size_t head, size_t n, const char *what,
		  void **memory);

#endif
