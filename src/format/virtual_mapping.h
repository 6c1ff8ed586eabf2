/* Mappings of a virtual dataset, as its global heap block stores them. Specification III.F; version 1 of the
 * block: libhdf5 2.0 and later. */
#ifndef H5_FORMAT_VIRTUAL_MAPPING_H
#define H5_FORMAT_VIRTUAL_MAPPING_H

#include "base/reader.h"
#include "format/selection.h"

#include <stdint.h>

struct h5_virtual_mapping {
	const char *file, *dataset; /* of the source; NUL-terminated, borrowed from the block's bytes */
	struct h5_selection source, virtual;
};

struct h5_virtual_block {
	struct h5_reader reader;
	uint8_t version;
	uint64_t count, at; /* number of mappings, and of those that were decoded */
	/* version 1: the names of decoded mappings, since later mappings may share them */
	const char **files, **datasets;
};

/* `r` holds the heap object and lives as long as the block. */
int h5_virtual_block_open(struct h5_reader *r, struct h5_virtual_block *block);
void h5_virtual_block_release(struct h5_virtual_block *block); /* may run twice */

/* The next mapping, to be released: 1; 0 after the last. */
int h5_virtual_block_next(struct h5_virtual_block *block, struct h5_virtual_mapping *mapping);
void h5_virtual_mapping_release(struct h5_virtual_mapping *mapping); /* may run twice */

#endif
