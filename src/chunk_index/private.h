/* Between the files of this folder, lowest first: cursor.c, numbering.c and element.c are what the
 * implementations share; then one implementation a file, but for the larger ones; chunk_index.c has the table
 * of them. */
#ifndef H5_CHUNK_INDEX_PRIVATE_H
#define H5_CHUNK_INDEX_PRIVATE_H

#include "base/error.h"
#include "base/interrupt.h"
#include "base/writer.h"
#include "chunk_index/chunk_index.h"
#include "format/extensible_array.h"
#include "format/fixed_array.h"
#include "store/btree2.h"

struct h5_chunk_index_ops {
	const char *name;
	bool keeps;   /* h5_chunk_index_keeps() */
	bool no_swmr; /* its changes are not for readers who read along */
	/* Reads the header and checks it, where there is one. May be NULL. */
	int (*open)(struct h5_chunk_index *index);
	/* *chunk is an absent one before. */
	int (*lookup)(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor,
		      const uint64_t *scaled, struct h5_chunk *chunk);
	/* As h5_chunk_index_gap(), after a lookup that has found the chunk not stored. *next stands behind
	 * the chunk; NULL, or nothing done: no more is known. */
	void (*gap)(const struct h5_chunk_index *index, const struct h5_chunk_cursor *cursor,
		    const uint64_t *scaled, uint64_t *next);
	int (*walk)(const struct h5_chunk_index *index, h5_chunk_visit *visit, void *arg);
	/* As the functions of chunk_index.h, inside a unit of change, which restores the struct too. If
	 * layout.address is undefined, the index does not exist and `open` has not run: then `set` makes it,
	 * and `trim` is not called. A chunk that `set` removes is stored. NULL: this index does not change.
	 */
	int (*set)(struct h5_chunk_index *index, const uint64_t *scaled, const struct h5_chunk *chunk);
	int (*trim)(struct h5_chunk_index *index, uint64_t first, h5_chunk_visit *visit, void *arg);
};

extern const struct h5_chunk_index_ops h5_chunk_index_btree1, h5_chunk_index_single, h5_chunk_index_implicit,
	h5_chunk_index_fixed_array, h5_chunk_index_extensible_array, h5_chunk_index_btree2;

/* <0, 0, >0: the first n of the coordinates a come before, are, come after those of b. */
static inline int h5_chunk_compare(const uint64_t *a, const uint64_t *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

struct h5_chunk_index {
	const struct h5_chunk_index_ops *ops; /* not called where the layout has no address */
	struct h5_file *file;		      /* borrowed */
	struct h5_chunk_layout layout;
	uint64_t dims[H5_RANK_MAX]; /* of the dataset */
	uint64_t max[H5_RANK_MAX];  /* its maximum dimensions, H5_UNLIMITED */
	uint8_t layout_version;
	bool filtered;
	uint64_t chunk_size;   /* bytes, unfiltered */
	uint8_t size_width;    /* bytes of the Chunk Size in a filtered or structured element */
	uint8_t metadata_size; /* bytes of the metadata in a structured element */
	uint16_t scaled_size;  /* bytes of the scaled offsets in a record of the version 2 B-tree */

	/* Where chunks are numbered: chunks that one step along a dimension passes, and the number of all. */
	uint64_t step[H5_RANK_MAX];
	uint64_t along[H5_RANK_MAX]; /* how many there can be along a dimension; 0: they are not numbered */
	uint64_t count;
	unsigned slowest; /* dimension that was moved to the front */
	union {
		struct h5_fixed_array_header fixed_array;
		struct h5_extensible_array_header extensible_array;
		struct h5_btree2 btree2;
	};
};

/* ---- cursor.c ---- */

/* Finds the block that answers for a chunk, and puts it in the cursor, which is empty, with the range. */
typedef int h5_chunk_seek(const struct h5_chunk_index *index, const uint64_t *key,
			  struct h5_chunk_cursor *cursor);
bool h5_chunk_cursor_covers(const struct h5_chunk_cursor *cursor, const uint64_t *key, unsigned n);
/* Has the cursor answer for the chunk: it does already, or seeks. `key`: the n coordinates that the index
 * sorts by. */
int h5_chunk_cursor_move(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor,
			 const uint64_t *key, unsigned n, h5_chunk_seek *seek);
/* ---- numbering.c ---- */

/* Numbers the chunks in row-major order of the maximum dimensions, dimension `slowest` moved to the front (0:
 * as they are); that one alone may be unlimited, and `count` with it. */
int h5_chunk_index_number(struct h5_chunk_index *index, unsigned slowest);
/* A chunk's number. False if it lies beyond the maximum dimensions, or its number takes more than 64 bits. */
bool h5_chunk_index_number_of(const struct h5_chunk_index *index, const uint64_t *scaled, uint64_t *number);

/* ---- element.c ---- */

/* Bytes that a chunk takes in an index, specification VII.C, Data Block Element:
 *
 *   size  field
 *      O  address
 *         filtered: chunk size, filter mask 4; structured, filtered or not: chunk size
 *         version 2 B-tree: scaled offsets
 *         structured: metadata                                                         */
unsigned h5_chunk_element_size(const struct h5_chunk_index *index);
/* Bytes of it before the scaled offsets and the metadata. */
unsigned h5_chunk_prefix_size(const struct h5_chunk_index *index);
/* Takes the width of the chunk size from the size of an element of structured chunks. */
int h5_chunk_element_fit(struct h5_chunk_index *index, unsigned size);
/* Checks what an array's header says of its elements. */
int h5_chunk_element_check(struct h5_chunk_index *index, unsigned client, unsigned size, const char *what);
void h5_chunk_element_decode(const struct h5_chunk_index *index, struct h5_reader *r, struct h5_chunk *chunk);
/* The address, and for filtered chunks size and filter mask; the scaled offsets of a B-tree record are the
 * caller's to write. -EOVERFLOW: the size does not fit. Not for structured chunks. */
int h5_chunk_element_encode(const struct h5_chunk_index *index, struct h5_writer *w,
			    const struct h5_chunk *chunk);
/* Element i of many, encoded. */
int h5_chunk_element_put(const struct h5_chunk_index *index, uint8_t *elements, uint64_t i,
			 const struct h5_chunk *chunk);
/* n elements of chunks that are not stored. */
void h5_chunk_elements_clear(const struct h5_chunk_index *index, uint8_t *elements, uint64_t n);
/* Element i of many. */
void h5_chunk_element_at(const struct h5_chunk_index *index, const uint8_t *elements, uint64_t i,
			 struct h5_chunk *chunk);
/* Visits those of n elements that are stored. */
int h5_chunk_elements_walk(const struct h5_chunk_index *index, const uint8_t *elements, uint64_t n,
			   h5_chunk_visit *visit, void *arg);
/* Address i of many, as blocks list their children. */
uint64_t h5_chunk_address_at(const struct h5_chunk_index *index, const uint8_t *addresses, uint64_t i);
void h5_chunk_address_put(const struct h5_chunk_index *index, uint8_t *addresses, uint64_t i,
			  uint64_t address);

/* The `gap` of an array whose cursor has elements by number. */
void h5_chunk_elements_gap(const struct h5_chunk_index *index, const struct h5_chunk_cursor *cursor,
			   const uint64_t *scaled, uint64_t *next);

/* A page: `size` bytes of elements and a checksum, through the cache. `elements` is valid until *ref is put.
 */
int h5_chunk_page_get(const struct h5_chunk_index *index, uint64_t address, uint64_t size,
		      struct h5_lru_entry **ref, const uint8_t **elements);

/* Takes the bytes of a block off those that a walk over a file of this size can still meet: blocks do not
 * overlap, so a walk that wants more goes over some of them again. */
static inline int h5_chunk_index_spend(const struct h5_chunk_index *index, uint64_t *left, uint64_t bytes)
{
	if (bytes > *left)
		return h5_fail(-EUCLEAN, index->layout.address,
			       "chunk index: more blocks than the file can hold");
	*left -= bytes;
	return h5_interrupt_check();
}

static inline struct h5_chunk h5_chunk_absent(void)
{
	return (struct h5_chunk){.address = H5_UNDEF};
}

#endif
