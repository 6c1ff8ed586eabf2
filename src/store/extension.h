/* The superblock extension: the object header of the file itself. Specification II.C. */
#ifndef H5_STORE_EXTENSION_H
#define H5_STORE_EXTENSION_H

#include "base/extents.h"
#include "format/btree1.h"
#include "format/cache_image.h"
#include "format/driver_info.h"
#include "format/free_space.h"
#include "format/shared_message.h"
#include "store/object_header.h"

/* ---- while the file is opened: past the cache, since its pieces may not all be there yet ---- */

/* Loads the extension; h5_header_release() on success. That of a file without one is an empty header. */
int h5_extension_load(struct h5_file *file, struct h5_header *extension);
/* Decode one message. -ENODATA: the extension has none. */
int h5_extension_driver_info(struct h5_file *file, const struct h5_header *extension,
			     struct h5_driver_info *driver, uint64_t *address);
int h5_extension_cache_image(struct h5_file *file, const struct h5_header *extension,
			     struct h5_cache_image_message *image);

/* ---- later: through the cache ---- */

/* Decode one message. -ENODATA: there is none, or no extension. */
int h5_extension_btree_k(struct h5_file *file, struct h5_btree1_k *k);
int h5_extension_file_space(struct h5_file *file, struct h5_file_space_info *info);
int h5_extension_shared_table(struct h5_file *file, struct h5_shared_table_message *table);

/* h5_header_check() of the extension; 0 also if there is none. */
int h5_extension_check(struct h5_file *file);
/* Visits the space of the extension's header. */
int h5_extension_extents(struct h5_file *file, h5_extent_visit *visit, void *arg);

#endif
