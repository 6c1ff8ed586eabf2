#include "fault_alloc.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED 1
#endif

static atomic_bool counting;
static atomic_ulong allocations, failing;

void fault_alloc_arm(unsigned long n)
{
	atomic_store(&allocations, 0);
	atomic_store(&failing, n);
}

bool fault_alloc_disarm(void)
{
	unsigned long n = atomic_exchange(&failing, 0);

	return n && atomic_load(&allocations) >= n;
}

bool fault_alloc_count(bool count)
{
	return atomic_exchange(&counting, count);
}

bool fault_alloc_is_everywhere(void)
{
#ifdef SANITIZED
	return false;
#else
	return true;
#endif
}

static bool fails(void)
{
	unsigned long n;

	if (!atomic_load(&counting) || !(n = atomic_load(&failing)) ||
	    atomic_fetch_add(&allocations, 1) + 1 != n)
		return false;
	errno = ENOMEM;
	return true;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_reallocarray(void *p, size_t n, size_t size);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);
int __real_vasprintf(char **s, const char *format, va_list arguments) __attribute__((format(printf, 2, 0)));
int __wrap_vasprintf(char **s, const char *format, va_list arguments) __attribute__((format(printf, 2, 0)));
int __wrap_asprintf(char **s, const char *format, ...) __attribute__((format(printf, 2, 3)));

#ifdef SANITIZED

static bool wrapped_fails(void)
{
	return fails();
}

#else

/* All in the process come here, the wrapped ones behind their wrappers. */
static bool wrapped_fails(void)
{
	return false;
}

/* libblosc uses what it allocates without a look at it, and libsnappy does not catch what C++ throws: nothing
 * fails there. */
static bool fails_for(const void *caller)
{
	Dl_info info;

	return fails() && !(dladdr(caller, &info) && info.dli_fname &&
			    (strstr(info.dli_fname, "libblosc") || strstr(info.dli_fname, "libstdc++")));
}

#define FAILS() fails_for(__builtin_return_address(0))

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t alignment, size_t n);

void *malloc(size_t n)
{
	return FAILS() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	return FAILS() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	return FAILS() ? NULL : __libc_realloc(p, n);
}

void *memalign(size_t alignment, size_t n)
{
	return FAILS() ? NULL : __libc_memalign(alignment, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
	return FAILS() ? NULL : __libc_memalign(alignment, n);
}

int posix_memalign(void **p, size_t alignment, size_t n)
{
	void *memory = FAILS() ? NULL : __libc_memalign(alignment, n);

	if (!memory)
		return ENOMEM;
	*p = memory;
	return 0;
}

#endif

void *__wrap_malloc(size_t n)
{
	return wrapped_fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return wrapped_fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return wrapped_fails() ? NULL : __real_realloc(p, n);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return wrapped_fails() ? NULL : __real_reallocarray(p, n, size);
}

char *__wrap_strdup(const char *s)
{
	return wrapped_fails() ? NULL : __real_strdup(s);
}

char *__wrap_strndup(const char *s, size_t n)
{
	return wrapped_fails() ? NULL : __real_strndup(s, n);
}

int __wrap_vasprintf(char **s, const char *format, va_list arguments)
{
	return wrapped_fails() ? -1 : __real_vasprintf(s, format, arguments);
}

int __wrap_asprintf(char **s, const char *format, ...)
{
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = __wrap_vasprintf(s, format, arguments);
	va_end(arguments);
	return n;
}
