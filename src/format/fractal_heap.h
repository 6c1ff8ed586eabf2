/* Fractal heap: header, doubling table, direct and indirect blocks, heap IDs. Specification III.G.
 *
 * The heap's address space is cut into rows of `width` blocks. Rows 0 and 1 have blocks of the starting size,
 * each further row blocks of twice the size of the row before. Blocks up to the maximum direct size hold
 * objects; a larger one is an indirect block, which has a doubling table of its own for its part of the
 * address space. */
#ifndef H5_FORMAT_FRACTAL_HEAP_H
#define H5_FORMAT_FRACTAL_HEAP_H

#include "base/reader.h"
#include "base/writer.h"
#include "format/pipeline.h"

#include <stdbool.h>
#include <stdint.h>

enum { H5_FRACTAL_HEAP_DIRECT_MAX = 1 << 28 }; /* bytes; a larger maximum direct block size is refused */

struct h5_fractal_heap {
	uint16_t id_size;
	bool huge_wrapped;    /* keys of huge objects have been used up once */
	bool checksums;	      /* of direct blocks */
	uint32_t managed_max; /* largest managed object */
	uint64_t huge_last;   /* the last key that a huge object was given */
	uint64_t huge_btree;  /* H5_UNDEF: none */
	/* In direct blocks, those of all rows of the root, also where no block is allocated. */
	uint64_t free;
	uint64_t free_space; /* free-space manager; H5_UNDEF: none */
	uint64_t managed;    /* bytes of the address space that the root spans */
	uint64_t allocated;  /* bytes of direct blocks */
	uint64_t iterator;   /* offset in the address space at which the next direct block begins */
	uint64_t objects;    /* managed ones */
	uint64_t huge_bytes, huge_objects;
	uint64_t tiny_bytes, tiny_objects;
	uint16_t width;	     /* of the doubling table; a power of two */
	uint64_t start_size; /* bytes of the first blocks; a power of two */
	uint64_t direct_max; /* bytes of the largest direct block; a power of two */
	uint16_t heap_bits;  /* log2 of the address space */
	uint16_t
		start_rows; /* of the first root indirect block; 0: all that the address space has room for */
	uint64_t root;	    /* H5_UNDEF: no managed objects */
	uint16_t root_rows; /* of the root indirect block; 0: the root is a direct block */
	bool filtered;
	struct h5_pipeline pipeline; /* filtered */
	uint64_t root_stored;	     /* filtered direct root: stored bytes and filter mask */
	uint32_t root_mask;
	/* computed */
	unsigned row_bits;    /* log2 of start_size x width, the size of row 0 */
	unsigned direct_rows; /* rows of direct blocks in an indirect block */
	unsigned rows_max;    /* most rows that the address space has room for */
	bool huge_in_id;      /* IDs of huge objects hold their addresses, else keys of huge_btree */
	unsigned offset_size, length_size; /* bytes in IDs of managed objects */
};

/* Bytes of the header up to and with the I/O filters' encoded length. From these the size of all of it
 * follows. */
enum { H5_FRACTAL_HEAP_PREFIX = 9 };
int h5_fractal_heap_size(struct h5_reader *prefix, size_t *size);
/* The result is to be released by h5_fractal_heap_release(), also after an error. */
int h5_fractal_heap_decode(struct h5_reader *r, struct h5_fractal_heap *heap);
void h5_fractal_heap_release(struct h5_fractal_heap *heap); /* may run twice */

/* Bytes of a header without filters. */
size_t h5_fractal_heap_header_size(unsigned size_of_offsets, unsigned size_of_lengths);
/* Checks a new heap's fields up to `filtered`, and computes those after them. */
int h5_fractal_heap_compute(struct h5_fractal_heap *heap, unsigned size_of_offsets, unsigned size_of_lengths,
			    uint64_t address);
/* Encodes the header of a heap without filters. */
int h5_fractal_heap_encode(struct h5_writer *w, const struct h5_fractal_heap *heap);

/* Size of a block in the row. */
uint64_t h5_fractal_heap_row_size(const struct h5_fractal_heap *heap, unsigned row);
/* Rows of an indirect block that spans `size` bytes of the address space; 0: no such block. */
unsigned h5_fractal_heap_rows(const struct h5_fractal_heap *heap, uint64_t size);

struct h5_fractal_heap_slot {
	unsigned row, column;
	uint64_t begin; /* of the block, from the begin of the doubling table */
	uint64_t size;	/* of the block */
};

/* Finds the block of the doubling table in which an offset lies. */
struct h5_fractal_heap_slot h5_fractal_heap_locate(const struct h5_fractal_heap *heap, uint64_t offset);

/* Bytes before the objects of a direct block. */
size_t h5_fractal_heap_direct_prefix(const struct h5_fractal_heap *heap, uint8_t size_of_offsets);
/* Verifies a direct block of the heap; `offset` is its offset in the heap's address space. Sets the checksum
 * field inside the block to zero. */
int h5_fractal_heap_direct_check(struct h5_reader *r, uint8_t *block, const struct h5_fractal_heap *heap,
				 uint64_t header, uint64_t offset);

struct h5_fractal_heap_entry {
	uint64_t address; /* H5_UNDEF: no block */
	uint64_t stored;  /* filtered direct blocks: stored bytes, filter mask */
	uint32_t mask;
};

/* Writes the prefix of a direct block, all of whose bytes are the writer's, and its checksum if it has one.
 */
int h5_fractal_heap_direct_encode(struct h5_writer *w, const struct h5_fractal_heap *heap, uint64_t header,
				  uint64_t offset);

/* Bytes of an indirect block with that many rows. */
size_t h5_fractal_heap_indirect_size(const struct h5_fractal_heap *heap, unsigned rows,
				     uint8_t size_of_offsets, uint8_t size_of_lengths);
/* Fills rows x width entries. */
int h5_fractal_heap_indirect_decode(struct h5_reader *r, const struct h5_fractal_heap *heap, uint64_t header,
				    uint64_t offset, unsigned rows, struct h5_fractal_heap_entry *entries);

/* The same of a heap without filters. */
int h5_fractal_heap_indirect_encode(struct h5_writer *w, const struct h5_fractal_heap *heap, uint64_t header,
				    uint64_t offset, unsigned rows,
				    const struct h5_fractal_heap_entry *entries);

enum h5_fractal_heap_id_type { H5_HEAP_ID_MANAGED = 0, H5_HEAP_ID_HUGE = 1, H5_HEAP_ID_TINY = 2 };

struct h5_fractal_heap_id {
	enum h5_fractal_heap_id_type type;
	bool direct;	      /* huge: address and size are in the ID, else the B-tree has them under `key` */
	uint64_t key;	      /* huge, not direct */
	uint64_t offset;      /* managed */
	uint64_t address;     /* huge, direct */
	uint64_t size;	      /* stored bytes */
	uint32_t mask;	      /* huge, direct, filtered */
	uint64_t memory_size; /* huge, direct: unfiltered bytes */
	const uint8_t *data;  /* tiny: in the ID */
};

/* `r` holds the ID. */
int h5_fractal_heap_id_decode(struct h5_reader *r, const struct h5_fractal_heap *heap,
			      struct h5_fractal_heap_id *id);
/* Writes all id_size bytes of the ID of a managed or huge object in a heap without filters. */
int h5_fractal_heap_id_encode(struct h5_writer *w, const struct h5_fractal_heap *heap,
			      const struct h5_fractal_heap_id *id);

#endif
