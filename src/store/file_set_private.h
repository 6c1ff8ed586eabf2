/* Between file.c and file_set.c. */
#ifndef H5_STORE_FILE_SET_PRIVATE_H
#define H5_STORE_FILE_SET_PRIVATE_H

#include "store/file_set.h"

/* Numbers the files of a set, and what becomes of them: 0, 1, ... */
uint64_t h5_file_set_next_number(struct h5_file_set *set);

#endif
