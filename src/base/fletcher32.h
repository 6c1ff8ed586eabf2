/* Fletcher's checksum (RFC 1146's algorithm on 16-bit words, big-endian, sums begin with 0): of a filter, and
 * of the files of the onion driver. */
#ifndef H5_BASE_FLETCHER32_H
#define H5_BASE_FLETCHER32_H

#include <stddef.h>
#include <stdint.h>

uint32_t h5_fletcher32(const void *data, size_t n);

/* The same of bytes that come in pieces. {0} before the first. */
struct h5_fletcher32 {
	uint64_t first, second;
};

/* Each piece but the last has an even number of bytes. */
void h5_fletcher32_add(struct h5_fletcher32 *sum, const void *data, size_t n);
uint32_t h5_fletcher32_end(const struct h5_fletcher32 *sum);

#endif
