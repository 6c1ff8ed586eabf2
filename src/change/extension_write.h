/* Some messages of the superblock extension become wrong when the file changes. Each commit sets them right.
 *
 * A metadata cache image (store/cache_image.h): the first commit writes the blocks of the image to their
 * addresses, and syncs them together with the new blocks. Until the message of the image is removed, programs
 * read the blocks from the image, so a kill in between does no harm. The commit then removes the message. It
 * changes that cell first, after only the superblock: cells that change later may lie outside of the image,
 * and refer to blocks that programs would still read from it.
 *
 * change/free_managers.h says how the managers of free space change. change/member_ends.h says how the ends
 * of members change, which some files state outside of the extension.
 */
#ifndef H5_CHANGE_EXTENSION_WRITE_H
#define H5_CHANGE_EXTENSION_WRITE_H

#include <stdbool.h>

struct h5_tx;

/* For a transaction that begins: sets its `extension_change` if the extension has such messages. One that
 * only reclaims space (`reclaims`) changes nothing but the ends. -EUCLEAN: the image has a block, or a
 * manager has free space, at an address that cannot be right. */
int h5_extension_write_prepare(struct h5_tx *tx, bool reclaims);

#endif
