/* A file of a view that a program writes, from the first byte to the last. What it says becomes a dataset,
 * which nothing leads to before the file is whole. */
#ifndef H5_VIEW_INTAKE_H
#define H5_VIEW_INTAKE_H

#include "base/buf.h"
#include "dataset/create.h"
#include "dataset/writer.h"
#include "view/npy_header.h"

struct h5_intake {
	/* set by the caller, who sets all else to 0 */
	const struct h5_intake_ops *ops;
	struct h5_file *file;	       /* borrowed */
	struct h5_filter_list filters; /* of a dataset that may have chunks */

	/* set by h5_intake_begin() */
	uint64_t dataset; /* where it is made; nothing is stored in it yet */

	/* for the operations */
	uint64_t taken; /* bytes of the file */
	int failure;	/* why the file is refused; 0: it is not */
	struct h5_buf head;
	struct h5_npy_header npy;
	uint64_t stream;		  /* the dataset that takes the elements in the order of the file */
	struct h5_dataset_writer *writer; /* of that; NULL: its type is not known yet */
};

struct h5_intake_ops {
	/* Takes the next n bytes. -EINVAL: they cannot be part of such a file; the detail says why. */
	int (*take)(struct h5_intake *intake, const uint8_t *data, size_t n);
	/* The file is whole, if it may end here: then the dataset has its contents. -EINVAL: it may not. */
	int (*finish)(struct h5_intake *intake);
};

extern const struct h5_intake_ops h5_intake_npy;

/* Makes a dataset without contents. All of this outside of units; h5_intake_end() also on failure. */
int h5_intake_begin(struct h5_intake *intake);
/* Takes n bytes, unless something was refused before. */
int h5_intake_take(struct h5_intake *intake, const void *data, size_t n);
/* 0: the dataset is what the file says, and is settled. May run again after a failure. */
int h5_intake_finish(struct h5_intake *intake);
/* Gives back what the intake holds. The dataset stays. May run twice. */
void h5_intake_end(struct h5_intake *intake);

#endif
