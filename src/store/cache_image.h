/* The metadata cache image of a file: blocks of metadata that libhdf5 has written in one piece, and not where
 * they belong. If the file is to be changed, change/extension_write.h brings them there. */
#ifndef H5_STORE_CACHE_IMAGE_H
#define H5_STORE_CACHE_IMAGE_H

#include "store/object_header.h"

/* Lays the image that the superblock extension names over what is read of the file, if there is one. */
int h5_cache_image_lay_over(struct h5_file *file, const struct h5_header *extension);

#endif
