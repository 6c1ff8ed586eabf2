/* Base64: RFC 4648, section 4. */
#ifndef H5_BASE_BASE64_H
#define H5_BASE_BASE64_H

#include "base/buf.h"

/* Appends n bytes, with padding behind the last. Pieces whose n is a multiple of 3 may follow each other. */
void h5_base64(struct h5_buf *out, const uint8_t *data, size_t n);

#endif
