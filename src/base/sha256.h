/* SHA-256 (FIPS 180-4): a hash from which nobody finds the data, nor other data with the same hash. */
#ifndef H5_BASE_SHA256_H
#define H5_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { H5_SHA256 = 32 }; /* bytes */

void h5_sha256(const void *data, size_t n, uint8_t hash[H5_SHA256]);

#endif
