#include "base/escape.h"

#include <stdbool.h>
#include <string.h>

enum { ESCAPED_MAX = 16 }; /* bytes of one escaped character */

/* Length of the UTF-8 sequence at p in bytes; 0: there is none. Unicode 15, table 3-7. */
static size_t utf8_length(const unsigned char *p, size_t left)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t n = *p < 0x80 ? 1 : *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 0;

	if (n > left)
		return 0;
	if (*p == 0xe0)
		low = 0xa0; /* else it would be too long a form, */
	else if (*p == 0xed)
		high = 0x9f; /* a surrogate, */
	else if (*p == 0xf0)
		low = 0x90;
	else if (*p == 0xf4)
		high = 0x8f; /* or beyond U+10FFFF */
	for (size_t i = 1; i < n; i++, low = 0x80, high = 0xbf)
		if (p[i] < low || p[i] > high)
			return 0;
	return n;
}

bool h5_is_utf8(const char *text, size_t size)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t n = 1;

	for (size_t at = 0; at < size && n; at += n)
		n = utf8_length(p + at, size - at);
	return n;
}

/* Some terminals obey C1 control characters, U+0080 to U+009F. */
static bool is_control(const unsigned char *p, size_t n)
{
	return (n == 1 && (*p < ' ' || *p == 0x7f || *p == '\\')) || (n == 2 && p[0] == 0xc2 && p[1] < 0xa0);
}

/* Writes what is shown for the character at text[*at], which must be there, to `out`, and moves *at behind
 * it. Returns the number of bytes written. */
static size_t escape_one(const char *text, size_t size, size_t *at, char out[ESCAPED_MAX])
{
	const unsigned char *p = (const unsigned char *)text + *at;
	size_t n = utf8_length(p, size - *at), length = n ? n : 1;
	char *to = out;

	*at += length;
	if (n && !is_control(p, n)) {
		memcpy(out, p, n);
		return n;
	}
	for (size_t i = 0; i < length; i++) {
		*to++ = '\\';
		*to++ = (char)('0' + (p[i] >> 6));
		*to++ = (char)('0' + (p[i] >> 3 & 7));
		*to++ = (char)('0' + (p[i] & 7));
	}
	return (size_t)(to - out);
}

void h5_escape(struct h5_buf *out, const char *text, size_t size)
{
	char one[ESCAPED_MAX];

	for (size_t at = 0; at < size;) {
		size_t n = escape_one(text, size, &at, one);

		h5_buf_add(out, one, n);
	}
}

void h5_escape_into(char *out, size_t room, const char *text, size_t size)
{
	char one[ESCAPED_MAX];
	size_t written = 0;

	for (size_t at = 0; at < size;) {
		size_t n = escape_one(text, size, &at, one);

		if (n >= room - written)
			break;
		memcpy(out + written, one, n);
		written += n;
	}
	out[written] = 0;
}
