/* Metadata cache image: blocks of metadata that libhdf5 had in its cache when it closed the file, written in
 * one piece. They replace the blocks at their addresses. Not in the specification: see libhdf5's H5C image
 * format.
 */
#ifndef H5_FORMAT_CACHE_IMAGE_H
#define H5_FORMAT_CACHE_IMAGE_H

#include "base/reader.h"

#include <stdint.h>

/* Metadata cache image message (0x0018), in the superblock extension. */
struct h5_cache_image_message {
	uint64_t address; /* H5_UNDEF: there is none */
	uint64_t size;
};

int h5_cache_image_message_decode(struct h5_reader *r, struct h5_cache_image_message *message);

/* Decodes the prefix of the image: the number of entries. Then the reader is at the first one. Also verifies
 * the checksum at the end of the block. */
int h5_cache_image_decode(struct h5_reader *r, uint32_t *entries);

struct h5_cache_image_entry {
	uint64_t address; /* of the block in the file */
	uint64_t size;
	const uint8_t *data; /* borrowed from the image */
};

int h5_cache_image_entry_decode(struct h5_reader *r, struct h5_cache_image_entry *entry);

#endif
