/* The ends of the members of a multi file, as its driver information states them, in the superblock extension
 * or in a block of its own. libhdf5 reads nothing behind them. */
#ifndef H5_CHANGE_MEMBER_ENDS_H
#define H5_CHANGE_MEMBER_ENDS_H

struct h5_tx;

/* Checks that the ends can change safely. Does nothing if the file is not a multi file. */
int h5_member_ends_prepare(struct h5_tx *tx);
/* In a unit: states the ends as they are now. */
int h5_member_ends_write(struct h5_tx *tx);

#endif
