/* The persistent managers of a file's free space. Specification III.H.
 *
 * The transaction reads the managers when it begins. The first commit removes them from the file: it makes
 * their addresses in the message undefined, and changes that cell first, after only the superblock. If the
 * mount is killed later, libhdf5 and h5fs find no managers, and the free space is lost until `h5fs --reclaim`
 * finds it. When the mount ends, another commit writes new managers.
 *
 * Beside their addresses the message has the end of the file. libhdf5 1.10 takes what lies behind it for
 * space of managers, and drops that. So each commit that makes the file longer sets it, after the end in the
 * superblock and before there is anything that leads behind the old end. */
#ifndef H5_CHANGE_FREE_MANAGERS_H
#define H5_CHANGE_FREE_MANAGERS_H

struct h5_tx;

/* Reads the free space of the managers, if the file has them, and sets tx->persists. -EUCLEAN: some of it
 * cannot be free. */
int h5_free_managers_read(struct h5_tx *tx);
/* In a unit of the commit: the file has no managers, and ends where the transaction says. */
int h5_free_managers_drop(struct h5_tx *tx);
/* At the end: if the file has lost its managers, it gets new ones. If that fails, the space is lost to the
 * file. */
void h5_free_managers_write(struct h5_tx *tx);

#endif
