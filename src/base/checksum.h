/* Compares checksums and hashes of the file. */
#ifndef H5_BASE_CHECKSUM_H
#define H5_BASE_CHECKSUM_H

#include <stdbool.h>
#include <stdint.h>

/* True: they are the same. It is alone in its object file, so that fuzz targets can link another one that
 * takes every checksum for right (tests/fuzz/checksum.c): otherwise their inputs would all fail here. */
bool h5_checksum_matches(uint64_t stored, uint64_t computed);

#endif
