#include "base/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct h5_error last;

int h5_fail(int code, uint64_t address, const char *format, ...)
{
	char text[sizeof last.text]; /* the last text may be among the arguments */
	va_list args;

	last.code = code;
	last.address = address;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	strcpy(last.text, text);
	return code;
}

int h5_fail_in(int code, const char *format, ...)
{
	char outer[sizeof last.text], inner[sizeof last.text];
	va_list args;
	int n;

	if (last.code != code)
		return code;
	va_start(args, format);
	vsnprintf(outer, sizeof outer, format, args);
	va_end(args);
	memcpy(inner, last.text, sizeof inner);
	/* If the text is too long, its end is cut off. The outer context comes first, so it is kept. */
	n = snprintf(last.text, sizeof last.text, "%s: %s", outer, inner);
	assert(n >= 0); /* only a text beyond INT_MAX or of wide characters could fail */
	(void)n;
	return code;
}

const struct h5_error *h5_error_last(void)
{
	return &last;
}

void h5_error_clear(void)
{
	last.code = 0;
	last.address = H5_UNDEF;
	last.text[0] = 0;
}
