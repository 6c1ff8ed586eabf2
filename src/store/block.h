/* Reads blocks of metadata, for the loaders of struct h5_block_type (store/file.h). */
#ifndef H5_STORE_BLOCK_H
#define H5_STORE_BLOCK_H

#include "store/file.h"

/* A larger block is refused (-ENOTSUP). No writer makes one, but a sparse file could make us take the memory.
 */
#define H5_BLOCK_MAX ((size_t)256 << 20)

/* Allocates `head` bytes of zeros and n bytes after them, and reads the n bytes at the address there. *memory
 * is the caller's, free(). -EUCLEAN, before anything is allocated: the block reaches beyond the end of the
 * file. `what` names the block in errors. */
int h5_block_read(struct h5_file *file, uint64_t address, size_t head, uint64_t n, const char *what,
		  void **memory);

/* The same n bytes alone, and a reader over them. */
int h5_block_open(struct h5_file *file, uint64_t address, uint64_t n, const char *what, void **memory,
		  struct h5_reader *r);

/* A header of no more than H5_BLOCK_HEADER_MAX bytes. */
enum { H5_BLOCK_HEADER_MAX = 128 };

typedef int h5_block_decode(struct h5_reader *r, void *header);

/* Reads at most `max` bytes at the address, as far as the file has them, and decodes them. */
int h5_block_decode_header(struct h5_file *file, uint64_t address, size_t max, h5_block_decode *decode,
			   void *header);
/* The same as a loader of struct h5_block_type: *value is a new struct of `size` bytes, free(). */
int h5_block_load_header(struct h5_file *file, uint64_t address, size_t max, h5_block_decode *decode,
			 size_t size, void **value, size_t *cost);

#endif
