/* The chunks that a writer of chunked data works on. */
#ifndef H5_DATASET_CHUNKED_STORE_H
#define H5_DATASET_CHUNKED_STORE_H

#include "base/hash_table.h"
#include "dataset/boxes.h"
#include "dataset/writing.h"

enum { H5_CHUNK_RUN_MAX = 512 };

/* A chunk that the writer has looked up: where it lies in the file, and its bytes if writes to it gather in
 * memory. */
struct h5_known_chunk {
	struct h5_chunk stored;
	uint8_t *data;	     /* owned: the chunk, decoded (chunk_cache.h); NULL: it is not in memory */
	uint64_t begin, end; /* bytes of data that the file lacks; begin == end: none */
	UT_hash_handle hh;
	uint64_t scaled[]; /* rank of them, the key */
};

/* The state of a writer of chunked data. */
struct h5_chunked_writer {
	struct h5_chunk_index *index;	   /* owned */
	struct h5_grid grid;		   /* dims[0] includes rows that are just being added */
	struct h5_known_chunk *known;	   /* in the order in which they were added */
	struct h5_known_chunk *last_known; /* borrowed: the one that was found last; may be NULL */
	size_t known_bytes;		   /* of memory that all of `known` takes */
	bool encodes;	  /* chunks are not stored as they are: there are filters, or they are structured */
	bool edges;	  /* partial chunks are stored without their filters */
	bool trimmed;	  /* the index has no chunks behind the last row */
	bool keeps;	  /* the index cannot remove chunks: they are cleared */
	uint64_t unclean; /* the number of rows before the dataset shrank, as long as some may still be
			     stored; 0: none are */
	uint64_t visible; /* if killed, the file has at least so many rows, and at most `settled` */
};

static inline struct h5_chunked_writer *h5_chunked_of(const struct h5_dataset_writer *writer)
{
	return writer->state;
}

/* Opens the index of this layout as the one that the writer changes. */
int h5_chunked_open_index(struct h5_dataset_writer *writer, const struct h5_chunk_layout *layout);
/* An index that keeps its chunks has no space if the dataset was made without rows. So all chunks that there
 * may ever be get their space at once. */
int h5_chunked_allocate_all(struct h5_dataset_writer *writer);

/* Whole chunks without filters that lie side by side both in the file and in the caller's memory, for one
 * write. */
struct h5_chunk_run {
	uint64_t address;
	const uint8_t *data; /* borrowed */
	unsigned count;
	struct h5_known_chunk *known[H5_CHUNK_RUN_MAX]; /* borrowed: none may be released meanwhile */
};

/* Adds a chunk and its bytes, which are written when the run ends. May end the run and begin a new one. */
int h5_chunk_run_add(struct h5_dataset_writer *writer, struct h5_chunk_run *run, struct h5_known_chunk *known,
		     const uint8_t *data);
/* Writes the run, and empties it. If that fails, perhaps only its first chunks are stored. */
int h5_chunk_run_end(struct h5_dataset_writer *writer, struct h5_chunk_run *run);
/* Empties the run without writing it. */
void h5_chunk_run_drop(struct h5_dataset_writer *writer, struct h5_chunk_run *run);

/* Of struct h5_write_ops. */
int h5_chunked_can_reshape(const struct h5_dataset_writer *writer);
int h5_chunked_uncover(struct h5_dataset_writer *writer, const uint64_t *now, const uint64_t *dims);

/* Clears what `has_outer` of the writer tells of. */
int h5_chunked_cut(struct h5_dataset_writer *writer);

/* struct h5_write_ops.peek */
int h5_chunked_peek(struct h5_dataset_writer *writer, uint8_t *data, size_t n);

/* Looks the chunk up, unless it is known already; borrowed until chunks are released. */
int h5_chunked_know(struct h5_dataset_writer *writer, const uint64_t *scaled, struct h5_known_chunk **known);
/* Reads the chunk into memory. `whole`: only makes room for it, since all of it that lies inside the dataset
 * will be overwritten. */
int h5_chunked_hold(struct h5_dataset_writer *writer, struct h5_known_chunk *known, bool whole);
/* True: the chunk is stored without filters, and without some of its bytes that lie outside of the dataset.
 * It must be moved to space for all its bytes (h5_chunked_widen()) before it is written. */
bool h5_chunked_is_short(const struct h5_dataset_writer *writer, const struct h5_known_chunk *known);
/* Moves the chunk to new space, which is large enough for all of its bytes. `whole` as above. */
int h5_chunked_widen(struct h5_dataset_writer *writer, struct h5_known_chunk *known, bool whole);
/* To be called after changing these bytes in memory. */
void h5_chunked_mark(struct h5_dataset_writer *writer, struct h5_known_chunk *known, uint64_t begin,
		     uint64_t end);
/* Stores the chunk in new space: chunk->size bytes; NULL: the fill value. */
int h5_chunked_move(struct h5_dataset_writer *writer, struct h5_known_chunk *known, struct h5_chunk *chunk,
		    const uint8_t *bytes);
/* Sets where the chunk is stored from now on, and gives up its old space. */
int h5_chunked_publish(struct h5_dataset_writer *writer, struct h5_known_chunk *known,
		       const struct h5_chunk *chunk);
/* The chunk is not stored any more: it reads as the fill value. */
int h5_chunked_remove(struct h5_dataset_writer *writer, struct h5_known_chunk *known);
/* To be called after writing these bytes of a stored chunk without filters: the journal hashes those of them
 * that no dataspace has had yet. */
void h5_chunked_cover(struct h5_dataset_writer *writer, const struct h5_known_chunk *known, uint64_t begin,
		      uint64_t end);
/* Stores the bytes that the file lacks. `all`: of all chunks; else only of chunks that end before, or with,
 * the last row of the dataset. */
int h5_chunked_store(struct h5_dataset_writer *writer, bool all);
/* Stores these chunks, and forgets them. */
int h5_chunked_release(struct h5_dataset_writer *writer, bool all);
/* True: too many chunks are in memory. */
bool h5_chunked_is_full(const struct h5_dataset_writer *writer);
/* If so, releases some. */
int h5_chunked_limit(struct h5_dataset_writer *writer);
/* Forgets chunks that begin at this row or later, even if they are not stored. */
void h5_chunked_drop(struct h5_dataset_writer *writer, uint64_t row);

#endif
