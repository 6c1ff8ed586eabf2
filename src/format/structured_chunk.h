/* Structured chunks of sparse data: where the sections lie, and section 0, which selects the elements that
 * are stored. Section 1 has their values. Sources: see format/layout.h. */
#ifndef H5_FORMAT_STRUCTURED_CHUNK_H
#define H5_FORMAT_STRUCTURED_CHUNK_H

#include "format/layout.h"
#include "format/pipeline.h"
#include "format/selection.h"

/* One section of a chunk. */
struct h5_section {
	uint64_t offset; /* in the chunk */
	uint64_t stored; /* bytes */
	uint64_t size;	 /* bytes after decoding */
	uint32_t filter_mask;
};

/* Decodes the metadata of a chunk of `chunk_size` bytes. `pipelines`: one for each section, NULL: the dataset
 * has no filters. `address` is the chunk's, for errors. */
int h5_sections_decode(const struct h5_chunk_layout *layout, const uint8_t *metadata,
		       const struct h5_pipeline *pipelines, uint64_t chunk_size, uint64_t address,
		       struct h5_section *sections);

/* Decodes section 0 of a chunk, all that the reader has. The selection is of elements of the chunk. Its
 * points are checked to lie inside, its hyperslabs are not. */
int h5_defined_elements_decode(struct h5_reader *r, const struct h5_chunk_layout *layout,
			       struct h5_selection *selection);

#endif
