/* The parts of a fractal heap, decoded: what reading (fractal_heap.c) and writing (fractal_heap_write.c)
 * share.
 */
#ifndef H5_OBJECT_FRACTAL_HEAP_PRIVATE_H
#define H5_OBJECT_FRACTAL_HEAP_PRIVATE_H

#include "format/fractal_heap.h"
#include "store/btree2.h"
#include "store/file.h"

/* A block is cached by its address and the heap's address. But decoding also depends on where the block
 * begins in the heap, and on its size or rows. So the cached block keeps these, and each look-up compares
 * them with what it expects. */
struct h5_heap_direct {
	uint64_t begin; /* in the heap's address space */
	uint64_t size;
	uint8_t *data; /* all of the block, with zeros for its checksum */
};

struct h5_heap_indirect {
	uint64_t begin;
	unsigned rows;
	struct h5_fractal_heap_entry entries[];
};

/* The block that is wanted. */
struct h5_heap_request {
	const struct h5_fractal_heap *heap;
	uint64_t header; /* address of the heap's header */
	uint64_t begin;
	unsigned rows; /* indirect */
	uint64_t size; /* direct */
	struct h5_fractal_heap_entry entry;
};

/* References through the cache, until h5_file_put(). -EUCLEAN: the block belongs to another place of the
 * heap. */
int h5_heap_header_get(struct h5_file *file, uint64_t address, struct h5_lru_entry **ref,
		       const struct h5_fractal_heap **heap);
/* Gives the cache a copy of the header that a change has written. */
void h5_heap_header_keep(struct h5_file *file, uint64_t address, const struct h5_fractal_heap *heap);
int h5_heap_indirect_get(struct h5_file *file, const struct h5_heap_request *request,
			 struct h5_lru_entry **ref, const struct h5_heap_indirect **block);
int h5_heap_direct_get(struct h5_file *file, const struct h5_heap_request *request, struct h5_lru_entry **ref,
		       const struct h5_heap_direct **block);

/* The request for the block of entry i of an indirect block. `rows` is 0 if it is a direct block, else less
 * than in the indirect block. */
int h5_heap_entry_request(const struct h5_heap_request *parent, const struct h5_fractal_heap_entry *entry,
			  size_t i, struct h5_heap_request *request);

/* Record type, and bytes of a record, of the tree of huge objects. */
enum h5_btree2_type h5_heap_huge_type(const struct h5_file *file, const struct h5_fractal_heap *heap,
				      unsigned *record_size);
int h5_heap_huge_open(struct h5_file *file, const struct h5_fractal_heap *heap, struct h5_btree2 *tree);
/* h5_btree2_compare by key; `arg` is a struct h5_fractal_heap_id. */
int h5_heap_huge_compare_key(void *arg, struct h5_reader record, int *rc);
/* Sets address, sizes and mask of the ID from the record. */
void h5_heap_huge_record(const struct h5_fractal_heap *heap, struct h5_reader record,
			 struct h5_fractal_heap_id *id);

#endif
