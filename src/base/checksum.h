/* What is asked wherever a checksum or a hash of the file is compared. */
#ifndef H5_BASE_CHECKSUM_H
#define H5_BASE_CHECKSUM_H

#include <stdbool.h>
#include <stdint.h>

/* True: they are the same. Alone in its object file, so that the fuzz targets, which would get nowhere
 * without, bring one of their own that takes every checksum for right (tests/fuzz/checksum.c). */
bool h5_checksum_matches(uint64_t stored, uint64_t computed);

#endif
