/* SipHash-2-4: a hash whose values nobody can predict without the key. Aumasson and Bernstein, "SipHash: a
 * fast short-input PRF" (2012). */
#ifndef H5_BASE_SIPHASH_H
#define H5_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

enum { H5_SIPHASH_KEY = 16 }; /* bytes */

uint64_t h5_siphash(const uint8_t key[H5_SIPHASH_KEY], const void *data, size_t n);

#endif
