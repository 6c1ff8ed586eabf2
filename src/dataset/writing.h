/* Between writer.c and the layouts that can be written. */
#ifndef H5_DATASET_WRITING_H
#define H5_DATASET_WRITING_H

#include "change/transaction.h"
#include "dataset/private.h"
#include "dataset/writer.h"

struct h5_write_ops {
	/* As h5_dataset_can_be_written(). NULL: it always can. */
	bool (*is_possible)(const struct h5_dataset *dataset);
	/* Checks that this dataset can be written, and makes `state`. NULL: nothing to do. */
	int (*open)(struct h5_dataset_writer *writer);
	/* The range lies inside the dataset and isn't empty. */
	int (*write)(struct h5_dataset_writer *writer, uint64_t offset, const uint8_t *data, size_t n);
	/* Sets n bytes at the offset to the fill value, and gives up their space where that is possible.
	 * NULL: they are written. */
	int (*punch)(struct h5_dataset_writer *writer, uint64_t offset, uint64_t n);
	/* Makes dimension 0 larger, by whole rows of data, or (NULL) of the fill value; or smaller. Both
	 * NULL: it cannot change. */
	int (*grow)(struct h5_dataset_writer *writer, uint64_t rows, const uint8_t *data);
	int (*shrink)(struct h5_dataset_writer *writer, uint64_t rows);
	/* 0: other dimensions than the first can change, too. NULL: they cannot. */
	int (*can_reshape)(const struct h5_dataset_writer *writer);
	/* The dataset is to become larger: all that `dims` uncovers gets the fill value. */
	int (*uncover)(struct h5_dataset_writer *writer, const uint64_t *now, const uint64_t *dims);
	/* As h5_dataset_writer_peek(). NULL: nothing is ever held. */
	int (*peek)(struct h5_dataset_writer *writer, uint8_t *data, size_t n);
	/* Stores what is held in memory, and clears what `has_outer` tells of (`is_cut`). Sets `layout` and
	 * `layout_changed` if the layout message must change. NULL: nothing is ever held. */
	int (*flush)(struct h5_dataset_writer *writer);
	/* Sets those members of a copy of the dataset that say what the writer has stored and where, beside
	 * its layout. All is settled. NULL: nothing to do. */
	void (*show)(const struct h5_dataset_writer *writer, struct h5_dataset *copy);
	/* Frees `state`, which may be NULL. NULL: nothing to do. */
	void (*close)(struct h5_dataset_writer *writer);
};

struct h5_dataset_writer {
	struct h5_tx_participant participant; /* the first member */
	struct h5_file *file;		      /* borrowed */
	uint64_t address;		      /* of the object header */
	bool may_write_external;	      /* raw files */
	bool apart;			      /* h5_dataset_writer_make_apart() */
	bool from_no_rows;		      /* of a writer that is apart */
	int lost; /* of a writer that is apart: why it was dropped; 0: it was not */
	unsigned users;
	/* The dataset has become smaller: elements outside of its dimensions, but inside of `outer`, may
	 * still be stored in what is committed. */
	bool has_outer;
	uint64_t outer[H5_RANK_MAX];
	/* The rest is cleared by h5_tx_drop(): */
	struct h5_lru_entry *ref;	  /* NULL: it was called */
	const struct h5_dataset *dataset; /* as it was opened: for type, fill value and pipeline */
	/* Elements that do not stand alone as bytes: `dataset` is this copy, whose fill value owns nothing.
	 * Fill values of rows that no dataspace has yet must not share what the fill value owns. */
	struct h5_dataset own;
	uint8_t *own_fill;	   /* owned */
	const uint8_t *fill;	   /* the user's fill value; may be NULL */
	struct h5_heap_batch heap; /* what new elements own, and the file lacks */
	bool gathers;		   /* such elements gather in `added` */
	uint8_t *added;		   /* owned: whole rows of such elements, behind the others: added_rows.c */
	size_t added_size, added_capacity; /* bytes */
	bool is_cut; /* what `has_outer` tells of is cleared, but perhaps not committed */
	const struct h5_write_ops *ops;
	struct h5_layout layout; /* as the message is to be */
	bool layout_changed;	 /* the message is not so yet */
	bool index_changed;	 /* the chunk index that readers have opened is stale */
	size_t dirty;		 /* things that `flush` has to do: chunks, external files */
	size_t held;		 /* bytes of memory that `flush` frees */
	uint64_t row;		 /* bytes */
	uint64_t rows;		 /* dimension 0, as it is being written; without `added` */
	uint64_t settled;	 /* dimension 0 in the dataspace message */
	void *state;		 /* the layout's */
};

static inline bool h5_dataset_writer_is_to_cut(const struct h5_dataset_writer *writer)
{
	return writer->has_outer && !writer->is_cut;
}

/* ---- writer.c ---- */

/* A writer of the same dataset that begins with nothing stored and puts all into new space, to which its
 * `layout` leads. The layout message, and so everybody else, keeps what is there until `apart` is set to
 * false and the writer is settled, or h5_dataset_writer_publish() is called. With `from_no_rows` it has no
 * rows if the dataset may grow; else as many as that. Fails as h5_dataset_writer_get().
 * h5_dataset_writer_close() ends it, but does not give up its space. */
int h5_dataset_writer_make_apart(struct h5_file *file, uint64_t address, bool from_no_rows,
				 struct h5_dataset_writer **writer);
/* True: the dataset can have more rows than it had when it was opened. */
bool h5_dataset_writer_may_grow(const struct h5_dataset_writer *writer);
/* In a unit: the messages of layout and dataspace lead to what the writer, which is apart and settled, has.
 */
int h5_dataset_writer_publish(struct h5_dataset_writer *writer);
/* Writes the fill value through the layout, piece by piece. */
int h5_dataset_writer_fill(struct h5_dataset_writer *writer, uint64_t offset, uint64_t n);
/* Makes the dataset smaller by the function, and then gives up what the elements outside of the dimensions
 * own in the global heap. */
typedef int h5_shrink(struct h5_dataset_writer *writer, const uint64_t *dims);
int h5_dataset_writer_shrink(struct h5_dataset_writer *writer, const uint64_t *dims, h5_shrink *shrink);
/* 0: new elements can have the fill value. -ENOTSUP: they cannot, since they would share data of variable
 * length with it. */
int h5_dataset_writer_check_growth(const struct h5_dataset_writer *writer);

/* ---- added_rows.c ---- */

/* Adds whole rows, of n bytes, of a writer that gathers them. */
int h5_added_rows_append(struct h5_dataset_writer *writer, const void *data, size_t n);
/* The layout gets the rows that have gathered. On failure they stay. */
int h5_added_rows_put(struct h5_dataset_writer *writer);

/* ---- dataset.c ---- */

/* -EPERM: this message of the object header cannot be replaced. */
int h5_write_needs(struct h5_dataset_writer *writer, enum h5_message_type type);
/* Writes the fill value to the address, as the n bytes at the offset of the dataset. */
int h5_write_fill_value(struct h5_dataset_writer *writer, uint64_t address, uint64_t offset, uint64_t n);

#endif
