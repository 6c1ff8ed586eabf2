#include "offline/escape.h"

/* Bytes of the control character, or of the backslash, that stands there; 0: it is none. */
static size_t control(const unsigned char *p, size_t left)
{
	if (*p < ' ' || *p == 0x7f || *p == '\\')
		return 1;
	/* C1 control characters: some terminals obey them. */
	return left > 1 && p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0 ? 2 : 0;
}

void h5_escape(struct h5_buf *out, const char *text, size_t size)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + size;

	while (p < end) {
		size_t n = control(p, (size_t)(end - p));

		if (!n)
			h5_buf_byte(out, (char)*p++);
		for (; n; n--)
			h5_buf_printf(out, "\\%03o", *p++);
	}
}
