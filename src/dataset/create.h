/* Makes datasets. */
#ifndef H5_DATASET_CREATE_H
#define H5_DATASET_CREATE_H

#include "format/dataspace.h"
#include "format/datatype.h"
#include "format/layout.h"
#include "object/filter_list.h"
#include "store/file.h"

/* All of it is borrowed. */
struct h5_new_dataset {
	const struct h5_datatype *type;
	struct h5_dataspace space;	/* `elements` need not be set */
	enum h5_layout_class layout;	/* compact, contiguous or chunked */
	uint64_t chunk[H5_RANK_MAX];	/* chunked: elements of a chunk along each dimension */
	struct h5_filter_list filters;	/* chunked */
	const uint8_t *fill;		/* one element; NULL: the default, zeros */
	const struct h5_layout *stored; /* where its elements are already; NULL: nothing is stored */
	uint32_t time;			/* of the object, seconds since 1970 */
};

/* Makes the object header of a dataset, in which nothing is stored: it reads as the fill value. (A compact
 * one holds that.) Nothing leads to it yet. The header is in the style of the file: with superblock 3 layout
 * version 4 and the chunk index that libhdf5 chooses, else layout version 3 and a version 1 B-tree.
 * Allocation is late, or by chunk; so there are no implicit indexes.
 *
 * -EINVAL: there can be no such dataset; -ENOTSUP: a filter is missing. On failure nothing has changed. */
int h5_dataset_create(struct h5_file *file, const struct h5_new_dataset *how, uint64_t *address);

/* Makes a dataset, in which nothing is stored and which has no index, what h5_dataset_create() would have
 * made; but its times stay. The decoded dataset is no longer valid, so its writer is dropped before
 * (h5_tx_drop()). -ENOTSUP also: its header has a form in which that is not possible. */
int h5_dataset_define(struct h5_file *file, uint64_t address, const struct h5_new_dataset *how);

/* Chooses how many elements a chunk has along each dimension: whole rows of 64 KiB or more together, up to
 * 1 MiB; parts of rows that are larger. False: no chunks are possible, since the dataspace has no dimensions
 * or a maximum of 0. */
bool h5_dataset_choose_chunks(const struct h5_dataspace *space, uint32_t element_size, uint64_t *chunk);

#endif
