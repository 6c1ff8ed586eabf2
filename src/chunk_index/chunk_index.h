/* Chunk indexes: from a chunk's place in the dataset to its place in the file. One implementation a file
 * behind one ops table; specification VII and IV.A.2.i. */
#ifndef H5_CHUNK_INDEX_CHUNK_INDEX_H
#define H5_CHUNK_INDEX_CHUNK_INDEX_H

#include "format/dataspace.h"
#include "format/layout.h"
#include "store/file.h"

/* Where one chunk lies. */
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

/* All is copied. `filtered`: the dataset has a filter pipeline. `chunk_size`: bytes of an unfiltered chunk.
 * Reads nothing but, where there is one, the index header. */
int h5_chunk_index_open(struct h5_file *file, uint8_t layout_version, const struct h5_chunk_layout *layout,
			const struct h5_dataspace *space, bool filtered, uint64_t chunk_size,
			struct h5_chunk_index **index);
void h5_chunk_index_close(struct h5_chunk_index *index); /* NULL is fine */

/* What a lookup leaves for the next one nearby: a reference to the block that it ended in, and which chunks
 * that block answers for, so that these are found without a lock. {0} is an empty one. It is one thread's,
 * and is released before its index changes or closes: whoever has one keeps it for one request. */
struct h5_chunk_cursor {
	struct h5_lru_entry *ref;
	const void *block; /* of ref, as the index has it; NULL: no chunk of the range is stored */
	bool held; /* there is a range: from low up to high, in the coordinates that the index sorts by */
	uint64_t low[H5_RANK_MAX], high[H5_RANK_MAX];
	size_t next; /* in a node of a B-tree: the entry after the last one that was found */
};

/* May run twice. */
void h5_chunk_cursor_release(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor);

/* `scaled`: rank chunk coordinates (element coordinate / chunk dimension), inside the dataspace. `cursor`:
 * NULL for none. */
int h5_chunk_index_lookup(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor,
			  const uint64_t *scaled, struct h5_chunk *chunk);

/* Whether the chunk is stored; if not, no chunk from it up to *next, in row-major order, is. *next, which
 * comes after it, may be one that isn't stored, or none of the dataspace. */
int h5_chunk_index_gap(const struct h5_chunk_index *index, struct h5_chunk_cursor *cursor,
		       const uint64_t *scaled, bool *stored, uint64_t *next);

/* Visits every stored chunk, in the index' order; a result other than 0 ends the walk and is returned. */
typedef int h5_chunk_visit(void *arg, const struct h5_chunk *chunk);
int h5_chunk_index_walk(const struct h5_chunk_index *index, h5_chunk_visit *visit, void *arg);

/* ---- changes, in the transaction of change/transaction.h ----
 *
 * Each is a unit of change: one that fails leaves the index as it was.
 * An index that is changed belongs to the writer of its dataset alone; readers open their own. After a
 * change, whoever holds it looks at h5_chunk_index_layout(): where that differs from what the layout message
 * says, the message is to be rewritten (the index moved or came to be; the single chunk's place stands
 * there). */

/* 0, or -ENOTSUP: this index, as it is in this file, cannot be changed; the detail says why. */
int h5_chunk_index_can_change(const struct h5_chunk_index *index);
/* The chunk lies there from now on; address H5_UNDEF: it is not stored any more. Makes the index where there
 * is none yet. `scaled` may lie beyond the dataspace as it is, but not beyond its maximum. Space of the chunk
 * itself, the old one's too, is the caller's affair. */
int h5_chunk_index_set(struct h5_chunk_index *index, const uint64_t *scaled, const struct h5_chunk *chunk);
/* Removes all chunks with scaled[0] >= first, and visits each. If a visit gives another result than 0, that
 * is returned, and nothing is removed. */
int h5_chunk_index_trim(struct h5_chunk_index *index, uint64_t first, h5_chunk_visit *visit, void *arg);
/* The dataset's dimensions are these now. */
void h5_chunk_index_resize(struct h5_chunk_index *index, const uint64_t *dims);
const struct h5_chunk_layout *h5_chunk_index_layout(const struct h5_chunk_index *index);

#endif
