/* What the superblock extension says of the file, and any change makes wrong: each commit sets it right.
 *
 * A metadata cache image (store/cache_image.h): the first commit writes its blocks where they belong, and
 * syncs them with all else that is new. While its message is there, nobody reads them there, so a kill or a
 * power cut does no harm, and no journal is needed. Then, before all cells but that of the superblock, the
 * message goes.
 *
 * Managers of free space: change/free_managers.h.
 */
#ifndef H5_CHANGE_EXTENSION_WRITE_H
#define H5_CHANGE_EXTENSION_WRITE_H

struct h5_tx;

/* For a transaction that begins: sets its `extension_change`, if the file has such things. -EUCLEAN: blocks
 * of the image, or free space, where none can be. */
int h5_extension_write_prepare(struct h5_tx *tx);

#endif
