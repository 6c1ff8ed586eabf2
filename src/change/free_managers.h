/* The persistent managers of a file's free space. Specification III.H.
 *
 * While a file is mounted for writing, it has none: what they say is read when the transaction begins, and
 * the first commit makes their addresses undefined, before any other cell but that of the superblock. After a
 * kill libhdf5 and we find no managers, and the free space is lost until `h5fs --reclaim` finds it. At the
 * clean end new managers are written, in a commit of its own.
 *
 * Beside their addresses the message has the end of the file. libhdf5 1.10 takes what lies behind it for
 * space of managers, and drops that. So each commit that makes the file longer sets it, after the end in the
 * superblock and before there is anything that leads behind the old end. */
#ifndef H5_CHANGE_FREE_MANAGERS_H
#define H5_CHANGE_FREE_MANAGERS_H

struct h5_tx;

/* Reads what the managers say, if the file has them (tx->persists then). -EUCLEAN: space that cannot be free.
 */
int h5_free_managers_read(struct h5_tx *tx);
/* In a unit of the commit: the file has no managers, and ends where the transaction says. */
int h5_free_managers_drop(struct h5_tx *tx);
/* At the end: if the file has lost its managers, it gets new ones. If that fails, the space is lost to the
 * file. */
void h5_free_managers_write(struct h5_tx *tx);

#endif
