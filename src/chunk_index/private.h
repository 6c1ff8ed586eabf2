/* Between the files of this folder. Lowest first: chunk_index.c, what all indexes share; a file or a few for
 * each index, with a table of operations; open.c, which lists these. */
#ifndef H5_CHUNK_INDEX_PRIVATE_H
#define H5_CHUNK_INDEX_PRIVATE_H

#include "base/checked.h"
#include "base/error.h"
#include "base/extents.h"
#include "base/interrupt.h"
#include "base/writer.h"
#include "chunk_index/chunk_index.h"
#include "format/extensible_array.h"
#include "format/fixed_array.h"
#include "store/btree2.h"

struct h5_chunk_index_ops {
	const char *name;
	bool keeps;   /* h5_chunk_index_keeps() */
	bool no_swmr; /* SWMR readers cannot follow its changes */
	/* Reads the header, if the index has one, and checks the index. NULL: nothing to do.
	 */
	int (*open)(struct h5_chunk_index *index);
	/* Sets *chunk if the chunk is stored. Before the call it is one that is not. */
	int (*lookup)(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor,
		      const uint64_t *scaled, struct h5_chunk *chunk);
	/* As h5_chunk_index_gap(), after a lookup that did not find the chunk. Before the call *next is the
	 * chunk after it; it stays so if the index knows no better. May be NULL. */
	void (*gap)(const struct h5_chunk_index *index, const struct h5_chunk_cursor *cursor,
		    const uint64_t *scaled, uint64_t *next);
	/* Visits every stored chunk; and every block of the index, unless `block` is NULL. */
	int (*walk)(const struct h5_chunk_index *index, h5_chunk_visit *visit, h5_extent_visit *block,
		    void *arg);
	/* The bytes of all chunks, which lie one after the other, in the dataspace or not. NULL: `walk`
	 * visits all that have space. */
	uint64_t (*run)(const struct h5_chunk_index *index);
	/* As the functions of chunk_index.h, inside a unit of change, which restores the struct too. If
	 * layout.address is undefined, the index does not exist and `open` has not run: then `set` makes it,
	 * and `trim` is not called. A chunk that `set` removes is stored. */
	int (*set)(struct h5_chunk_index *index, const uint64_t *scaled, const struct h5_chunk *chunk);
	int (*trim)(struct h5_chunk_index *index, uint64_t first, h5_chunk_visit *visit, void *arg);
};

extern const struct h5_chunk_index_ops h5_chunk_index_btree1, h5_chunk_index_single, h5_chunk_index_implicit,
	h5_chunk_index_fixed_array, h5_chunk_index_extensible_array, h5_chunk_index_btree2;

/* <0, 0, >0: the first n coordinates of `a` come before, equal, come after those of `b`. */
static inline int h5_chunk_compare(const uint64_t *a, const uint64_t *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (a[i] != b[i])
			return h5_compare(a[i], b[i]);
	return 0;
}

struct h5_chunk_index {
	const struct h5_chunk_index_ops *ops; /* not called if the layout has no address */
	struct h5_file *file;		      /* borrowed */
	struct h5_chunk_layout layout;
	uint64_t dims[H5_RANK_MAX]; /* of the dataset */
	uint64_t max[H5_RANK_MAX];  /* maximum dimensions of the dataset, or H5_UNLIMITED */
	bool filtered;
	uint64_t chunk_size;   /* bytes, unfiltered */
	uint8_t size_width;    /* bytes of the Chunk Size in a filtered or structured element */
	uint8_t metadata_size; /* bytes of the metadata in a structured element */
	uint16_t scaled_size;  /* bytes of the scaled offsets in a record of the version 2 B-tree */

	/* If chunks are numbered: by how much the number grows from one chunk to the next along a dimension,
	 * and how many numbers there are. */
	uint64_t step[H5_RANK_MAX];
	uint64_t along[H5_RANK_MAX]; /* most chunks along a dimension; 0: chunks are not numbered */
	uint64_t count;
	unsigned slowest; /* dimension that was moved to the front */
	union {
		struct h5_fixed_array_header fixed_array;
		struct h5_extensible_array_header extensible_array;
		struct h5_btree2 btree2;
	};
};

/* ---- cursors ---- */

/* `key`: the n coordinates that the index sorts by. True: the cursor answers for the chunk. */
bool h5_chunk_cursor_covers(const struct h5_chunk_cursor *cursor, const uint64_t *key, unsigned n);
/* The same. If the cursor does not answer for the chunk, it is emptied: the caller seeks the block that does,
 * puts it and its range into the cursor, and calls h5_chunk_cursor_hold(). */
bool h5_chunk_cursor_enter(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor,
			   const uint64_t *key, unsigned n);
/* How many blocks that follow the one that is sought will be read soon; 0: it is not known that any will. */
unsigned h5_chunk_cursor_reach(const struct h5_chunk_cursor *cursor);
/* `rc`: the result of seeking, which it returns. After an error the cursor is empty. */
int h5_chunk_cursor_hold(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor, int rc);

/* ---- numbers ---- */

/* Numbers the chunks in row-major order of the maximum dimensions, with dimension `slowest` moved to the
 * front. Only that one may be unlimited; `count` is so, then. */
int h5_chunk_index_number(struct h5_chunk_index *index, unsigned slowest);
/* A chunk's number. False if it lies beyond the maximum dimensions, or its number takes more than 64 bits. */
bool h5_chunk_index_number_of(const struct h5_chunk_index *index, const uint64_t *scaled, uint64_t *number);

/* ---- elements ---- */

/* Bytes that a chunk takes in an index, specification VII.C, Data Block Element:
 *
 *   size  field
 *      O  address
 *         filtered: chunk size, filter mask 4; structured, filtered or not: chunk size
 *         version 2 B-tree: scaled offsets
 *         structured: metadata                                                         */
unsigned h5_chunk_element_size(const struct h5_chunk_index *index);
/* Bytes of an element before the scaled offsets and the metadata. */
unsigned h5_chunk_prefix_size(const struct h5_chunk_index *index);
/* Sets the width of the chunk size by the size of an element. For structured chunks. */
int h5_chunk_element_fit(struct h5_chunk_index *index, unsigned size);
/* Checks what the header of an array says about its elements. */
int h5_chunk_element_check(struct h5_chunk_index *index, unsigned client, unsigned size, const char *what);
/* The client ID that an array has in its header. */
unsigned h5_chunk_element_client(const struct h5_chunk_index *index);
/* `scaled`: for a record of the version 2 B-tree. -EOVERFLOW: the size does not fit. */
int h5_chunk_element_encode(const struct h5_chunk_index *index, struct h5_writer *w,
			    const struct h5_chunk *chunk, const uint64_t *scaled);
/* Encodes element i of many. */
int h5_chunk_element_put(const struct h5_chunk_index *index, uint8_t *elements, uint64_t i,
			 const struct h5_chunk *chunk);
/* Makes n elements those of chunks that are not stored. */
void h5_chunk_elements_clear(const struct h5_chunk_index *index, uint8_t *elements, uint64_t n);
/* Decodes element i of many. */
void h5_chunk_element_at(const struct h5_chunk_index *index, const uint8_t *elements, uint64_t i,
			 struct h5_chunk *chunk);
/* Visits those of n elements that are stored. */
int h5_chunk_elements_walk(const struct h5_chunk_index *index, const uint8_t *elements, uint64_t n,
			   h5_chunk_visit *visit, void *arg);
/* Address i of a list of them, as blocks have of their children. */
uint64_t h5_chunk_address_at(const struct h5_chunk_index *index, const uint8_t *addresses, uint64_t i);
void h5_chunk_address_put(const struct h5_chunk_index *index, uint8_t *addresses, uint64_t i,
			  uint64_t address);

/* The `gap` of an array: its cursor has elements by their number. */
void h5_chunk_elements_gap(const struct h5_chunk_index *index, const struct h5_chunk_cursor *cursor,
			   const uint64_t *scaled, uint64_t *next);

/* A page: `size` bytes of elements and a checksum, through the cache. `elements` is valid until *ref is put.
 */
int h5_chunk_page_get(const struct h5_chunk_index *index, uint64_t address, uint64_t size,
		      struct h5_lru_entry **ref, const uint8_t **elements);

/* Takes the bytes of a block off *left, which begins as the size of the file. Blocks do not overlap, so a
 * walk over more bytes than that is going in a circle. */
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
