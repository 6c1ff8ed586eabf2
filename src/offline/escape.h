/* Text of a file on its way to a terminal. */
#ifndef H5_OFFLINE_ESCAPE_H
#define H5_OFFLINE_ESCAPE_H

#include "base/buf.h"

/* Appends it with backslashes and control characters as \NNN: a name must not be able to write lines of its
 * own, or to the terminal, as it likes. */
void h5_escape(struct h5_buf *out, const char *text, size_t size);

#endif
