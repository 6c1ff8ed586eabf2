/* Jenkins' lookup3 hash (hashlittle, 2006), the format's metadata checksum and hash of link names.
 * Source: file format specification, Appendix on checksums; Bob Jenkins' public description of lookup3. */
#ifndef H5_BASE_LOOKUP3_H
#define H5_BASE_LOOKUP3_H

#include <stddef.h>
#include <stdint.h>

uint32_t h5_lookup3(const void *data, size_t n, uint32_t initial);

#endif
