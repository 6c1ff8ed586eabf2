/* Between the files of this folder. Lowest first: dataset.c; the layouts, a table of operations each;
 * layouts.c, which lists them; writer.c. */
#ifndef H5_DATASET_PRIVATE_H
#define H5_DATASET_PRIVATE_H

#include "dataset/dataset.h"

struct h5_write_ops;

struct h5_layout_ops {
	const char *name;
	bool has_chunks;   /* h5_dataset_chunks() */
	bool is_virtual;   /* h5_dataset_is_virtual() */
	bool is_elsewhere; /* h5_dataset_is_elsewhere() */
	/* Completes and checks what was decoded from the messages. Reads at most the header of an index.
	 * NULL: nothing to do. */
	int (*open)(struct h5_dataset *dataset);
	/* As h5_dataset_read(); the range lies inside the dataset and isn't empty. */
	int (*read)(const struct h5_dataset *dataset, uint64_t offset, uint8_t *buf, size_t n);
	int (*storage)(const struct h5_dataset *dataset, uint64_t *bytes);
	bool storage_is_known; /* without a walk; it cannot fail */
	/* As h5_dataset_seek(), but whatever the fill value is. NULL: there are no holes. */
	int (*seek)(const struct h5_dataset *dataset, uint64_t offset, bool hole, uint64_t *found);
	/* Where a read that begins at this offset should end, so that it needs no more chunks or files than
	 * for its first byte. NULL: with that byte. */
	uint64_t (*window)(const struct h5_dataset *dataset, uint64_t offset);
	/* As h5_dataset_check(). NULL: there is nothing to verify. */
	int (*check)(const struct h5_dataset *dataset, struct h5_damage *damage, h5_check_done *done,
		     void *arg);
	const struct h5_write_ops *write; /* NULL: it cannot be written */
};

/* All layouts. */
struct h5_layouts {
	const struct h5_layout_ops *by_class[H5_LAYOUT_STRUCTURED + 1], *external;
};

extern const struct h5_layout_ops h5_layout_compact, h5_layout_contiguous, h5_layout_chunked,
	h5_layout_external, h5_layout_structured, h5_layout_virtual;

/* ---- dataset.c ---- */

/* h5_dataset_get() and h5_dataset_decode() by these layouts. */
int h5_dataset_get_by(const struct h5_layouts *layouts, struct h5_file *file, uint64_t address,
		      struct h5_lru_entry **ref, const struct h5_dataset **dataset);
int h5_dataset_decode_by(const struct h5_layouts *layouts, struct h5_file *file,
			 const struct h5_object *object, struct h5_dataset **dataset);

/* The `seek` of a dataset of which nothing is stored. */
int h5_dataset_seek_nothing(const struct h5_dataset *dataset, uint64_t offset, bool hole, uint64_t *found);

#endif
