/* Chunk indexes: from the coordinates of a chunk to its address in the file. Specification VII and
 * IV.A.2.i. */
#ifndef H5_CHUNK_INDEX_CHUNK_INDEX_H
#define H5_CHUNK_INDEX_CHUNK_INDEX_H

#include "base/extents.h"
#include "format/dataspace.h"
#include "format/layout.h"
#include "store/file.h"

/* A chunk in the file. */
struct h5_chunk {
	uint64_t address; /* H5_UNDEF: not stored, reads as the fill value */
	uint64_t size;	  /* stored bytes */
	uint32_t filter_mask;
	uint8_t metadata[H5_CHUNK_METADATA_MAX]; /* structured: encoded; format/structured_chunk.h */
};

/* In one word: btree1, single, implicit, farray, earray or btree2. */
const char *h5_chunk_index_name(enum h5_index_type type);

/* True: all chunks have their space as long as the index exists; none moves, none is removed. */
bool h5_chunk_index_keeps(enum h5_index_type type);
/* True: an index that changes can be read by other programs meanwhile (SWMR). */
bool h5_chunk_index_allows_swmr(enum h5_index_type type);

struct h5_chunk_index; /* immutable once open: calls from several threads need no lock */

/* All arguments are copied. `filtered`: the dataset has a filter pipeline. `chunk_size`: bytes of an
 * unfiltered chunk. Reads the header of the index if it has one, nothing else. */
int h5_chunk_index_open(struct h5_file *file, uint8_t layout_version, const struct h5_chunk_layout *layout,
			const struct h5_dataspace *space, bool filtered, uint64_t chunk_size,
			struct h5_chunk_index **index);
void h5_chunk_index_close(struct h5_chunk_index *index); /* NULL is fine */

/* What a lookup keeps for the next one nearby: a reference to the block that it ended in, and the range of
 * chunks that this block answers for, so that they are found without a lock. {0} is an empty cursor. It
 * belongs to one thread and one request, and must be released before its index changes or closes. */
struct h5_chunk_cursor {
	struct h5_lru_entry *ref;
	const void *block; /* the block of `ref`; NULL: no chunk of the range is stored */
	/* The cursor has a range, from `low` to before `high`, in the coordinates that the index sorts by. */
	bool moves; /* it has left another block: what comes next will be read, too */
	bool held;
	unsigned reach; /* set by the caller: so many blocks that follow will be read, if there are; 0: it
			 * depends on `moves` */
	uint64_t low[H5_RANK_MAX], high[H5_RANK_MAX];
	size_t next; /* in a node of a B-tree: the entry after the one that was found last */
};

/* Makes it empty. For small reads, which need not set all of its bytes. */
void h5_chunk_cursor_init(struct h5_chunk_cursor *cursor);
/* May run twice. */
void h5_chunk_cursor_release(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor);

/* `scaled`: the coordinates of the chunk, rank of them (coordinate of an element / chunk dimension), inside
 * the dataspace. `cursor` may be NULL. */
int h5_chunk_index_lookup(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor,
			  const uint64_t *scaled, struct h5_chunk *chunk);

/* Tells if the chunk is stored. If not, sets *next to a chunk after it, in row-major order, so that none
 * between them is stored. *next itself need not be stored, or be in the dataspace. */
int h5_chunk_index_gap(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor,
		       const uint64_t *scaled, bool *stored, uint64_t *next);

/* Visits every stored chunk, in the order of the index. A result other than 0 ends the walk and is
 * returned. */
typedef int h5_chunk_visit(void *arg, const struct h5_chunk *chunk);
int h5_chunk_index_walk(const struct h5_chunk_index *index, h5_chunk_visit *visit, void *arg);

/* Visits all space of the index and its chunks, also of chunks that are not in the dataspace. Each block is
 * read first. */
int h5_chunk_index_extents(const struct h5_chunk_index *index, const struct h5_extent_visits *visits);

/* ---- changes, in the transaction of change/transaction.h ----
 *
 * Each is a unit of change: one that fails leaves the index as it was. An index that changes belongs to the
 * writer of its dataset alone; readers open their own. After a change the writer compares
 * h5_chunk_index_layout() with the layout message, and rewrites the message if they differ: the index was
 * made or has moved, or the single chunk, whose address is in the message. */

/* 0, or -ENOTSUP: this index, as it is in this file, cannot be changed; the detail says why. */
int h5_chunk_index_can_change(const struct h5_chunk_index *index);
/* Sets where the chunk is stored; address H5_UNDEF: it is not any more. Makes the index if there is none yet.
 * `scaled` may lie beyond the dataspace, but not beyond its maximum. The caller allocates and frees the space
 * of chunks. */
int h5_chunk_index_set(struct h5_chunk_index *index, const uint64_t *scaled, const struct h5_chunk *chunk);
/* Removes all chunks with scaled[0] >= first, and visits each. If a visit returns anything but 0, that is
 * returned, and nothing is removed. */
int h5_chunk_index_trim(struct h5_chunk_index *index, uint64_t first, h5_chunk_visit *visit, void *arg);
/* To be called when the dimensions of the dataset have changed. */
void h5_chunk_index_resize(struct h5_chunk_index *index, const uint64_t *dims);
const struct h5_chunk_layout *h5_chunk_index_layout(const struct h5_chunk_index *index);

#endif
