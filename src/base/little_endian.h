/* Little-endian numbers anywhere in memory, of sizes that are known when this is compiled; others:
 * h5_uint_from(). */
#ifndef H5_BASE_LITTLE_ENDIAN_H
#define H5_BASE_LITTLE_ENDIAN_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t h5_le16(const void *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof v);
	return le16toh(v);
}

static inline uint32_t h5_le32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof v);
	return le32toh(v);
}

static inline uint64_t h5_le64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
	return le64toh(v);
}

#endif
