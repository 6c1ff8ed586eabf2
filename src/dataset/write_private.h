/* Between writer.c and the layouts. */
#ifndef H5_DATASET_WRITE_PRIVATE_H
#define H5_DATASET_WRITE_PRIVATE_H

#include "change/transaction.h"
#include "dataset/boxes.h"
#include "dataset/layouts.h"
#include "dataset/places.h"
#include "dataset/writer.h"
#include "io/io.h"

enum { H5_CHUNK_RUN_MAX = 512 };

struct h5_write_ops {
	/* Checks that this dataset can be written, and prepares it. */
	int (*open)(struct h5_dataset_writer *w);
	/* The range lies inside the dataset and isn't empty. */
	int (*write)(struct h5_dataset_writer *w, uint64_t offset, const uint8_t *data, size_t n);
	/* What is held in memory goes to the file; where the layout message must change, layout and
	 * layout_changed say so. NULL: nothing is held. */
	int (*flush)(struct h5_dataset_writer *w);
	void (*close)(struct h5_dataset_writer *w); /* may be NULL */
};

extern const struct h5_write_ops h5_write_compact, h5_write_contiguous, h5_write_chunked, h5_write_external;

struct h5_chunked_writer {
	struct h5_chunk_index *index;
	struct h5_grid grid; /* dims[0]: those rows that are being written too */
	struct h5_places places;
	bool filters;
	bool edges;	  /* partial chunks are stored without their filters */
	bool trimmed;	  /* the index has no chunks behind the last row */
	bool keeps;	  /* or cannot remove chunks: they are cleared instead */
	uint64_t unclean; /* rows that there were before it shrank, while some of them may be stored; 0: none
			     are */
	uint64_t visible; /* the least rows that the file may have, if we are killed; the most: `settled` */
};

struct h5_dataset_writer {
	struct h5_tx_participant participant; /* the first member */
	struct h5_file *file;		      /* borrowed */
	uint64_t address;		      /* of the object header */
	bool may_write_external;	      /* raw files */
	unsigned users;
	/* The rest is gone after h5_tx_drop(): */
	struct h5_lru_entry *ref;	  /* NULL: so it is */
	const struct h5_dataset *dataset; /* as it was opened: for type, fill value and pipeline */
	const struct h5_write_ops *ops;
	struct h5_layout layout; /* as the message shall be */
	bool layout_changed;	 /* it is not yet */
	bool index_changed;	 /* what readers know of the chunk index is stale */
	size_t dirty;		 /* what flush() has to do: chunks, external files */
	uint64_t row;		 /* bytes */
	uint64_t rows;		 /* dimension 0, as it is being written */
	uint64_t settled;	 /* as the dataspace message has it */
	union {
		struct h5_chunked_writer chunked;
		uint8_t *compact;	 /* owned */
		struct h5_io **external; /* owned: the raw files of the slots that were written since the last
					    flush, others NULL */
	};
};

/* -EPERM: this message of the object header cannot be replaced. */
int h5_write_needs(struct h5_dataset_writer *w, enum h5_message_type type);
/* n bytes of the dataset at the offset, written to the address as what nothing was stored for. */
int h5_write_fill_value(struct h5_dataset_writer *w, uint64_t address, uint64_t offset, uint64_t n);

/* ---- chunked: write_run.c ---- */

/* Whole chunks without filters, side by side in the file and in the caller's memory, that go there with one
 * write. */
struct h5_chunk_run {
	uint64_t address;
	const uint8_t *data; /* borrowed */
	unsigned count;
	struct h5_place *places[H5_CHUNK_RUN_MAX]; /* borrowed: none may be released meanwhile */
};

/* The chunk's bytes become these. They are in the file when the run has been ended. */
int h5_chunk_run_add(struct h5_dataset_writer *w, struct h5_chunk_run *run, struct h5_place *place,
		     const uint8_t *data);
/* Writes the run, which is empty then. After a failure none of its chunks is newly stored. */
int h5_chunk_run_end(struct h5_dataset_writer *w, struct h5_chunk_run *run);
/* Empties the run, nothing of it is written. */
void h5_chunk_run_drop(struct h5_dataset_writer *w, struct h5_chunk_run *run);

/* ---- chunked: write_chunk.c ---- */

/* Where the chunk lies; borrowed until chunks are released. */
int h5_chunked_place(struct h5_dataset_writer *w, const uint64_t *scaled, struct h5_place **place);
/* Gets the chunk's bytes into memory; `whole`: all that lies inside the dataset will be overwritten. */
int h5_chunked_hold(struct h5_dataset_writer *w, struct h5_place *place, bool whole);
/* True: it is stored without filters, and without some of the bytes that lie outside of the dataset. It must
 * be widened before it is written. */
bool h5_chunked_is_short(const struct h5_dataset_writer *w, const struct h5_place *place);
/* The chunk gets new space for all of its bytes. `whole` as above. */
int h5_chunked_widen(struct h5_dataset_writer *w, struct h5_place *place, bool whole);
/* These of its bytes in memory have changed. */
void h5_chunked_mark(struct h5_dataset_writer *w, struct h5_place *place, uint64_t begin, uint64_t end);
/* The chunk lies in new space from now on: chunk->size bytes, NULL: the fill value. */
int h5_chunked_move(struct h5_dataset_writer *w, struct h5_place *place, struct h5_chunk *chunk,
		    const uint8_t *bytes);
/* To be called after writing these bytes of a stored chunk without filters: the journal covers those of them
 * that no dataspace has had yet. */
void h5_chunked_cover(struct h5_dataset_writer *w, const struct h5_place *place, uint64_t begin,
		      uint64_t end);
/* The chunk lies there from now on; its old space is given up. */
int h5_chunked_publish(struct h5_dataset_writer *w, struct h5_place *place, const struct h5_chunk *chunk);
/* What the file does not have of chunks goes there: of all, or of those that end before the last row. */
int h5_chunked_store(struct h5_dataset_writer *w, bool all);
/* Stores the chunks and lets go of them: all, or those that end before the last row. */
int h5_chunked_release(struct h5_dataset_writer *w, bool all);
/* True: too many are in memory. */
bool h5_chunked_is_full(const struct h5_dataset_writer *w);
/* Then: the same. */
int h5_chunked_limit(struct h5_dataset_writer *w);
/* Forgets chunks that begin at the row or behind it, whatever the file has of them. */
void h5_chunked_drop(struct h5_dataset_writer *w, uint64_t row);

/* ---- chunked: write_chunked.c ---- */

/* n bytes at the offset, inside the dimensions of the grid. */
int h5_chunked_write(struct h5_dataset_writer *w, uint64_t offset, const uint8_t *data, size_t n);
/* The rows from `first` to before `end` become the fill value where something is stored for them. */
int h5_chunked_clear(struct h5_dataset_writer *w, uint64_t first, uint64_t end);
/* The same, where space is allocated for all chunks of these rows: chunks that are not stored yet will be. */
int h5_chunked_fill(struct h5_dataset_writer *w, uint64_t first, uint64_t end);
/* The chunks of these rows will be stored anew: whether they are filtered has changed. */
int h5_chunked_store_again(struct h5_dataset_writer *w, uint64_t first, uint64_t end);

/* ---- chunked: write_rows.c ---- */

/* Dimension 0 becomes larger: whole rows, as given, or (NULL) as the fill value. */
int h5_chunked_grow(struct h5_dataset_writer *w, uint64_t rows, const uint8_t *data);
/* What is stored behind the last row after it shrank becomes the fill value, or is not stored any more. */
int h5_chunked_clean(struct h5_dataset_writer *w);
/* Dimension 0 becomes smaller: commits, before and afterwards. */
int h5_chunked_shrink(struct h5_dataset_writer *w, uint64_t rows);

#endif
