/* Text from a file in a form that a terminal only shows: names and messages must not steer it. */
#ifndef H5_BASE_ESCAPE_H
#define H5_BASE_ESCAPE_H

#include "base/buf.h"

enum { H5_ESCAPED_MAX = 16 }; /* bytes of one escaped character */

/* Takes one character of the `left` bytes (at least 1) at *text, moves *text behind it, and writes what is
 * shown for it to `out`; the number of bytes written. Control characters (C0, DEL, C1), the backslash, and
 * bytes that are not UTF-8 are shown as \ooo, in octal, byte by byte; all others as they are. */
size_t h5_escape_one(const char **text, size_t left, char out[H5_ESCAPED_MAX]);

/* Appends all of the text, escaped. */
void h5_escape(struct h5_buf *out, const char *text, size_t size);
/* The same into `room` bytes, with a NUL behind it; what does not fit is left out. */
void h5_escape_into(char *out, size_t room, const char *text, size_t size);

#endif
