/* Filter 32000, h5py's LZF: runs of literal bytes and references to what came out before.
 *
 *   000xxxxx                    x + 1 literal bytes follow
 *   nnnooooo oooooooo           n 1 to 6: copy n + 2 bytes from o + 1 bytes back
 *   111ooooo nnnnnnnn oooooooo  copy n + 9 bytes                                 */
#include "base/checked.h"
#include "base/error.h"
#include "filter/filters.h"

#include <stdbool.h>
#include <string.h>

enum { EXPANSION_MAX = 88 }; /* bytes out of one byte in: 264 of three */

/* Copies n bytes from `back` bytes before the end of the output; the two may overlap. */
static bool copy_back(struct h5_filter_buf *out, size_t back, size_t n, size_t limit)
{
	if (back > out->size || n > limit - out->size)
		return false;
	for (size_t i = 0; i < n; i++, out->size++)
		out->data[out->size] = out->data[out->size - back];
	return true;
}

static bool expand(const uint8_t *p, const uint8_t *end, struct h5_filter_buf *out, size_t limit)
{
	while (p < end) {
		size_t control = *p++, n = control >> 5, back = (control & 31) << 8;

		if (!n) {
			n = control + 1;
			if (n > (size_t)(end - p) || n > limit - out->size)
				return false;
			memcpy(out->data + out->size, p, n);
			out->size += n;
			p += n;
			continue;
		}
		if (n == 7 && p < end)
			n += *p++;
		if (p == end)
			return false;
		back += *p++;
		if (!copy_back(out, back + 1, n + 2, limit))
			return false;
	}
	return true;
}

int h5_lzf_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *buf, size_t limit)
{
	struct h5_filter_buf out = {0};
	int rc;

	(void)values; /* versions, and the size of the chunk */
	(void)count;
	limit = (size_t)h5_min(limit, EXPANSION_MAX * ((uint64_t)buf->size + 1));
	rc = h5_filter_buf_reserve(&out, limit);
	if (!rc && !expand(buf->data, buf->data + buf->size, &out, limit))
		rc = h5_fail(-EUCLEAN, H5_UNDEF, "lzf: bad data, or more than %zu bytes come out", limit);
	if (rc) {
		h5_filter_buf_release(&out);
		return rc;
	}
	h5_filter_buf_release(buf);
	*buf = out;
	return 0;
}
