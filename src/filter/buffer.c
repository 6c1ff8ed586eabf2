#include "filter/buffer.h"

#include "base/error.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int h5_filter_too_long(const char *name, size_t limit)
{
	return h5_fail(-EOVERFLOW, H5_UNDEF, "%s: more than %zu bytes come out", name, limit);
}

int h5_filter_buf_reserve(struct h5_filter_buf *buf, size_t capacity)
{
	uint8_t *data;

	/* At least one byte, so that `data` is not NULL, not even for an empty result. */
	if (!capacity)
		capacity = 1;
	if (capacity <= buf->capacity)
		return 0;
	/* If it is empty, realloc() need not copy anything. */
	if (!buf->size)
		h5_filter_buf_release(buf);
	data = realloc(buf->data, capacity);
	if (!data)
		return h5_fail(-ENOMEM, H5_UNDEF, "no memory for a chunk of %zu bytes", capacity);
	buf->data = data;
	buf->capacity = capacity;
	return 0;
}

int h5_filter_buf_grow(struct h5_filter_buf *buf, size_t more)
{
	assert(buf->size <= buf->capacity);
	if (more <= buf->capacity - buf->size)
		return 0;
	return h5_filter_buf_reserve(buf, buf->size + buf->size / 2 + more);
}

int h5_filter_buf_copy(struct h5_filter_buf *buf, const uint8_t *data, size_t n)
{
	int rc;

	buf->size = 0;
	rc = h5_filter_buf_reserve(buf, n);
	if (!rc) {
		memcpy(buf->data, data, n);
		buf->size = n;
	}
	return rc;
}

void h5_filter_buf_release(struct h5_filter_buf *buf)
{
	free(buf->data);
	memset(buf, 0, sizeof *buf);
}

void h5_filter_to_order(uint8_t *data, size_t size, size_t each, bool big_endian)
{
	if (big_endian == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__))
		return;
	for (size_t at = 0; at + each <= size; at += each)
		for (size_t i = 0; i < each / 2; i++) {
			uint8_t byte = data[at + i];

			data[at + i] = data[at + each - 1 - i];
			data[at + each - 1 - i] = byte;
		}
}
