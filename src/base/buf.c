#include "base/buf.h"

#include "base/array.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void h5_buf_init(struct h5_buf *b, size_t limit)
{
	*b = (struct h5_buf){.limit = limit};
}

void h5_buf_release(struct h5_buf *b)
{
	free(b->data);
	h5_charge_release(&b->charge);
	*b = (struct h5_buf){.limit = b->limit};
}

char *h5_buf_take(struct h5_buf *b)
{
	char *data = b->data;

	b->data = NULL;
	h5_buf_release(b);
	return data;
}

/* Makes room for n more bytes. */
static bool reserve(struct h5_buf *b, size_t n)
{
	if (b->err)
		return false;
	b->err = n > b->limit - b->size ? -E2BIG
					: h5_array_reserve(&b->data, &b->capacity, b->size + n, &b->charge);
	return !b->err;
}

void h5_buf_add(struct h5_buf *b, const void *data, size_t n)
{
	if (n && reserve(b, n)) {
		memcpy(b->data + b->size, data, n);
		b->size += n;
	}
}

void h5_buf_byte(struct h5_buf *b, char c)
{
	h5_buf_add(b, &c, 1);
}

void h5_buf_text(struct h5_buf *b, const char *text)
{
	h5_buf_add(b, text, strlen(text));
}

void h5_buf_printf(struct h5_buf *b, const char *format, ...)
{
	char small[256], *large = NULL;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(small, sizeof small, format, args);
	va_end(args);
	/* If it is negative, it is too large, and the other call fails, too. */
	if ((size_t)n < sizeof small) {
		h5_buf_add(b, small, (size_t)n);
		return;
	}
	va_start(args, format);
	n = vasprintf(&large, format, args);
	va_end(args);
	if (n < 0) {
		b->err = b->err ? b->err : -ENOMEM;
		return;
	}
	h5_buf_add(b, large, (size_t)n);
	free(large);
}
