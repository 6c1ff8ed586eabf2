/* The calls that a program makes, as words in their order. */
#ifndef H5_TESTS_TRACE_H
#define H5_TESTS_TRACE_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char trace[2048];

/* Adds words. */
static __attribute__((format(printf, 1, 2))) void note(const char *format, ...)
{
	size_t n = strlen(trace);
	va_list args;

	if (n)
		trace[n++] = ' ';
	va_start(args, format);
	vsnprintf(trace + n, sizeof trace - n, format, args);
	va_end(args);
}

#endif
