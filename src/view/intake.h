/* A file of a view that a program writes, from the first byte to the last. What it says becomes a dataset,
 * which nothing leads to before the file is whole; or it is a text in memory. */
#ifndef H5_VIEW_INTAKE_H
#define H5_VIEW_INTAKE_H

#include "base/buf.h"
#include "dataset/create.h"
#include "dataset/writer.h"

struct h5_intake {
	/* set by the caller, who sets all else to 0 */
	const struct h5_intake_ops *ops;
	struct h5_file *file;	       /* borrowed */
	size_t gather;		       /* bytes that writers may hold in memory */
	struct h5_filter_list filters; /* of a dataset that may have chunks */
	uint64_t target; /* the dataset that is going to have these contents; H5_UNDEF: a new one */

	uint64_t dataset; /* that is made */
	bool is_defined;  /* it is what the file has said */
	uint64_t taken;	  /* bytes of the file */
	int failure;	  /* why the file is refused; 0: it is not */

	/* for the operations */
	uint64_t stream;		  /* a dataset that takes bytes while they come; H5_UNDEF: none */
	struct h5_dataset_writer *writer; /* of that; NULL: none */
	void *state;			  /* owned; `release` */
	struct h5_buf text;		  /* of h5_intake_text, which makes no dataset */
};

struct h5_intake_ops {
	/* Takes the next n bytes, at least one. -EINVAL: they cannot be part of such a file; the detail says
	 * why. */
	int (*take)(struct h5_intake *intake, const uint8_t *data, size_t n);
	/* The file is whole, if it may end here: then the dataset has its contents. -EINVAL: it may not. Not
	 * of a text. */
	int (*finish)(struct h5_intake *intake);
	void (*release)(void *state); /* NULL: there is none */
	bool is_text;		      /* no dataset is made */
	bool may_grow;		      /* a whole file may get more bytes, and be finished again */
};

extern const struct h5_intake_ops h5_intake_csv, h5_intake_npy, h5_intake_text;

/* All of this outside of units.
 *
 * Makes a dataset without contents. h5_intake_end() on failure, too. */
int h5_intake_begin(struct h5_intake *intake);
/* Takes n bytes, unless something was refused before. */
int h5_intake_take(struct h5_intake *intake, const void *data, size_t n);
/* 0: the dataset is what the file says, and is settled. It may be another dataset than before. May run again
 * after a failure, or when more bytes were taken. */
int h5_intake_finish(struct h5_intake *intake);
/* Gives back what the intake holds. The dataset stays. May run twice. */
void h5_intake_end(struct h5_intake *intake);

/* ---- for the operations ---- */

/* Chooses layout, chunks, filters and maximum for type and shape, as a new dataset has them. */
void h5_intake_choose(const struct h5_intake *intake, struct h5_new_dataset *how);
/* Makes the dataset that. Elements are written to it afterwards. */
int h5_intake_define(struct h5_intake *intake, const struct h5_new_dataset *how);
/* Writes elements through the writer, in bounded memory. */
int h5_intake_write(const struct h5_intake *intake, struct h5_dataset_writer *writer, uint64_t offset,
		    const void *data, size_t n);
/* Makes a dataset that takes bytes while they come. */
int h5_intake_open_stream(struct h5_intake *intake, const struct h5_new_dataset *how);

#endif
