/* Between file.c and file_set.c. */
#ifndef H5_STORE_FILE_SET_PRIVATE_H
#define H5_STORE_FILE_SET_PRIVATE_H

#include "store/file_set.h"

/* Numbers the files of a set, and what becomes of them: 0, 1, ... */
uint64_t h5_file_set_next_number(struct h5_file_set *set);

/* Where the superblock of the file that is being opened is; 0: it is not known. */
uint64_t h5_file_set_offset(const struct h5_file_set *set);

/* True: a writer without a lock may add to the files while they are read. */
bool h5_file_set_follows(const struct h5_file_set *set);

/* A member of a file in several pieces, with the set's lock; path as in h5_file_open(). It is a part of a
 * file that was opened, so where no other files are, it still may lie beneath the set's directory. */
int h5_file_set_open_member(const struct h5_file_set *set, const char *path, struct h5_io **io);

#endif
