/* Between writer.c and the layouts that can be written. */
#ifndef H5_DATASET_WRITING_H
#define H5_DATASET_WRITING_H

#include "change/transaction.h"
#include "dataset/private.h"
#include "dataset/writer.h"

struct h5_write_ops {
	/* As h5_dataset_can_be_written(). */
	bool (*is_possible)(const struct h5_dataset *dataset);
	/* Checks that this dataset can be written, and makes `state`. NULL: nothing to do. */
	int (*open)(struct h5_dataset_writer *writer);
	/* The range lies inside the dataset and isn't empty. */
	int (*write)(struct h5_dataset_writer *writer, uint64_t offset, const uint8_t *data, size_t n);
	/* Dimension 0 becomes larger, by whole rows as given, or (NULL) of the fill value; or it becomes
	 * smaller. Both NULL: it cannot change. */
	int (*grow)(struct h5_dataset_writer *writer, uint64_t rows, const uint8_t *data);
	int (*shrink)(struct h5_dataset_writer *writer, uint64_t rows);
	/* What is held in memory goes to the file. If the layout message must change, `layout` and
	 * `layout_changed` say so. NULL: nothing is held. */
	int (*flush)(struct h5_dataset_writer *writer);
	/* Frees `state`, which may be NULL. NULL: nothing to do. */
	void (*close)(struct h5_dataset_writer *writer);
};

struct h5_dataset_writer {
	struct h5_tx_participant participant; /* the first member */
	struct h5_file *file;		      /* borrowed */
	uint64_t address;		      /* of the object header */
	bool may_write_external;	      /* raw files */
	unsigned users;
	/* The rest is cleared by h5_tx_drop(): */
	struct h5_lru_entry *ref;	  /* NULL: it was */
	const struct h5_dataset *dataset; /* as it was opened: for type, fill value and pipeline */
	const struct h5_write_ops *ops;
	struct h5_layout layout; /* as the message shall be */
	bool layout_changed;	 /* it is not yet */
	bool index_changed;	 /* what readers know of the chunk index is stale */
	size_t dirty;		 /* things that `flush` has to do: chunks, external files */
	size_t held;		 /* bytes of memory that it lets go of */
	uint64_t row;		 /* bytes */
	uint64_t rows;		 /* dimension 0, as it is being written */
	uint64_t settled;	 /* as the dataspace message has it */
	void *state;		 /* the layout's */
};

/* ---- writing.c ---- */

/* -EPERM: this message of the object header cannot be replaced. */
int h5_write_needs(struct h5_dataset_writer *writer, enum h5_message_type type);
/* n bytes of the dataset at the offset, which nothing was stored for, are written to the address. */
int h5_write_fill_value(struct h5_dataset_writer *writer, uint64_t address, uint64_t offset, uint64_t n);

#endif
