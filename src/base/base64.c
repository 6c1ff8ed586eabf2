#include "base/base64.h"

#include <string.h>

void h5_base64(struct h5_buf *out, const uint8_t *data, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t at = 0; at < n && !out->err; at += 3) {
		const uint8_t *p = data + at;
		uint32_t v = (uint32_t)p[0] << 16;
		char four[4];

		if (n - at > 1)
			v |= (uint32_t)p[1] << 8;
		if (n - at > 2)
			v |= p[2];
		for (unsigned i = 0; i < 4; i++)
			four[i] = digits[v >> (18 - 6 * i) & 63];
		if (n - at < 3)
			memset(four + 1 + (n - at), '=', 3 - (n - at));
		h5_buf_add(out, four, 4);
	}
}
