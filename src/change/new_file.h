/* Makes HDF5 files. */
#ifndef H5_CHANGE_NEW_FILE_H
#define H5_CHANGE_NEW_FILE_H

#include <stdint.h>

/* Makes a file with an empty root group, which tracks the order of creation of its links: netCDF-C writes
 * only such files. It has no index by that order, which would make each new link and each removal half as
 * expensive again. `superblock`: its version, 2 or 3. `time`: of the group, seconds since 1970.
 *
 * The file is there as a whole and synced, or not at all. A kill may leave a part of it beside it, as
 * NAME.h5fs-new-PID. -EEXIST: there is something of that name, which stays as it is; else as open(2) and
 * write(2). */
int h5_new_file_make(const char *path, uint8_t superblock, uint32_t time);

#endif
