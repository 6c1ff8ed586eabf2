/* Structured chunks of sparse data: where the sections lie, and section 0, which selects the elements that
 * are stored. Section 1 has their values. Sources: see format/layout.h. */
#ifndef H5_FORMAT_STRUCTURED_CHUNK_H
#define H5_FORMAT_STRUCTURED_CHUNK_H

#include "base/writer.h"
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

/* Encodes the metadata of a chunk, in the order that goes with the form of the layout message. */
int h5_sections_encode(const struct h5_chunk_layout *layout, bool filtered, const struct h5_section *sections,
		       uint8_t *metadata);

/* Decodes section 0 of a chunk, all that the reader has. The selection is of elements of the chunk. Its
 * points are checked to lie inside, its hyperslabs are not. */
int h5_defined_elements_decode(struct h5_reader *r, const struct h5_chunk_layout *layout,
			       struct h5_selection *selection);

/* Encodes section 0 of a chunk: `defined` has a byte for each element of the chunk, 1: it is defined. The
 * result is the caller's, free(). -EFBIG: more blocks than h5_defined_elements_decode() takes. */
int h5_defined_elements_encode(const struct h5_chunk_layout *layout, uint8_t size_of_lengths,
			       const uint8_t *defined, uint8_t **data, size_t *size);

#endif
