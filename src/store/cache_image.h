/* The metadata cache image of a file, laid over what is read from it. */
#ifndef H5_STORE_CACHE_IMAGE_H
#define H5_STORE_CACHE_IMAGE_H

#include "store/object_header.h"

struct h5_cache_image;

/* Reads the image that the superblock extension names; NULL where there is none. */
int h5_cache_image_open(struct h5_file *file, const struct h5_header *extension,
			struct h5_cache_image **image);
void h5_cache_image_close(struct h5_cache_image *image); /* NULL is fine */

/* Puts the image's bytes over those that were read from the address. */
void h5_cache_image_apply(const struct h5_cache_image *image, uint64_t address, uint8_t *buf, size_t n);

#endif
