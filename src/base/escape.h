/* Escapes text from a file, so that names and messages cannot steer the terminal that shows them. */
#ifndef H5_BASE_ESCAPE_H
#define H5_BASE_ESCAPE_H

#include "base/buf.h"

#include <stdbool.h>

/* True: all of the text is UTF-8. */
bool h5_is_utf8(const char *text, size_t size);

/* Control characters (C0, DEL, C1), the backslash, and bytes that are not UTF-8 are shown in octal, byte by
 * byte
 * (\ooo); all others as they are. */

/* Appends all of the text, escaped. */
void h5_escape(struct h5_buf *out, const char *text, size_t size);
/* The same into `room` bytes, ended by a NUL. Text that does not fit is left out. */
void h5_escape_into(char *out, size_t room, const char *text, size_t size);

#endif
