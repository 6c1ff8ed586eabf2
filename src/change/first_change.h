/* What the superblock extension says that would be wrong after any change: the first commit takes it back.
 *
 * A metadata cache image (store/cache_image.h): its blocks are written where they belong, and synced with the
 * new bytes of the commit. While its message is there, nobody reads them there, so a kill or a power cut does
 * no harm, and no journal is needed. Then, before all other cells, the message goes.
 */
#ifndef H5_CHANGE_FIRST_CHANGE_H
#define H5_CHANGE_FIRST_CHANGE_H

struct h5_tx;

/* For a transaction that begins: sets its `first_change`, if the file has such things. -EUCLEAN: the blocks
 * of the image lie where no such blocks can be. */
int h5_first_change_prepare(struct h5_tx *tx);

#endif
