/* SHA-256 (FIPS 180-4), by libmd: nobody finds the data of a hash, nor other data with the same one. */
#ifndef H5_BASE_SHA256_H
#define H5_BASE_SHA256_H

#include <sha2.h>
#include <stddef.h>
#include <stdint.h>

enum { H5_SHA256 = SHA256_DIGEST_LENGTH }; /* bytes */

static inline void h5_sha256(const void *data, size_t n, uint8_t hash[H5_SHA256])
{
	SHA2_CTX context;

	SHA256Init(&context);
	SHA256Update(&context, data, n);
	SHA256Final(hash, &context);
}

#endif
