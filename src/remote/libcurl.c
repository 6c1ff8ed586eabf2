/* libcurl's functions, as far as the fetcher calls them. They are looked up in the library when the first URL
 * is to be read: libcurl brings thirty other libraries, and each start of h5fs would wait for them. */
#include "remote/libcurl.h"

#include "base/error.h"

#include <assert.h>
#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

/* Macros that check the types of arguments; here these are known by number only. */
#undef curl_easy_getinfo
#undef curl_easy_setopt
#undef curl_multi_setopt

static struct {
	__typeof__(curl_easy_getinfo) *easy_getinfo;
	__typeof__(curl_easy_init) *easy_init;
	__typeof__(curl_easy_reset) *easy_reset;
	__typeof__(curl_easy_setopt) *easy_setopt;
	__typeof__(curl_easy_strerror) *easy_strerror;
	__typeof__(curl_global_init) *global_init;
	__typeof__(curl_multi_add_handle) *multi_add_handle;
	__typeof__(curl_multi_info_read) *multi_info_read;
	__typeof__(curl_multi_init) *multi_init;
	__typeof__(curl_multi_perform) *multi_perform;
	__typeof__(curl_multi_poll) *multi_poll;
	__typeof__(curl_multi_remove_handle) *multi_remove_handle;
	__typeof__(curl_multi_setopt) *multi_setopt;
	__typeof__(curl_slist_append) *slist_append;
	__typeof__(curl_slist_free_all) *slist_free_all;
	__typeof__(curl_version_info) *version_info;
} found;

static const struct {
	const char *name;
	void *pointer; /* to the pointer above */
} functions[] = {
	{"curl_easy_getinfo", &found.easy_getinfo},
	{"curl_easy_init", &found.easy_init},
	{"curl_easy_reset", &found.easy_reset},
	{"curl_easy_setopt", &found.easy_setopt},
	{"curl_easy_strerror", &found.easy_strerror},
	{"curl_global_init", &found.global_init},
	{"curl_multi_add_handle", &found.multi_add_handle},
	{"curl_multi_info_read", &found.multi_info_read},
	{"curl_multi_init", &found.multi_init},
	{"curl_multi_perform", &found.multi_perform},
	{"curl_multi_poll", &found.multi_poll},
	{"curl_multi_remove_handle", &found.multi_remove_handle},
	{"curl_multi_setopt", &found.multi_setopt},
	{"curl_slist_append", &found.slist_append},
	{"curl_slist_free_all", &found.slist_free_all},
	{"curl_version_info", &found.version_info},
};

int h5_libcurl_load(void)
{
	void *library = dlopen("libcurl.so.4", RTLD_NOW), *function;

	if (!library) {
		h5_fail(-ENOTSUP, H5_UNDEF, "URLs need libcurl: %s", dlerror());
		library = dlopen("libcurl-gnutls.so.4", RTLD_NOW);
	}
	if (!library)
		return -ENOTSUP;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		function = dlsym(library, functions[i].name);
		if (!function)
			return h5_fail(-ENOTSUP, H5_UNDEF, "this libcurl is too old: %s", dlerror());
		memcpy(functions[i].pointer, &function, sizeof function);
	}
	return 0;
}

CURLcode curl_global_init(long flags)
{
	return found.global_init(flags);
}

curl_version_info_data *curl_version_info(CURLversion version)
{
	return found.version_info(version);
}

struct curl_slist *curl_slist_append(struct curl_slist *list, const char *text)
{
	return found.slist_append(list, text);
}

void curl_slist_free_all(struct curl_slist *list)
{
	found.slist_free_all(list);
}

/* ---- transfers ---- */

CURL *curl_easy_init(void)
{
	return found.easy_init();
}

void curl_easy_reset(CURL *easy)
{
	found.easy_reset(easy);
}

/* The number of an option has the type of its argument (curl.h, CURLOPTTYPE_*). The fetcher sets numbers,
 * pointers and functions. */
CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
	CURLcode code;
	va_list list;

	assert(option < CURLOPTTYPE_OFF_T);
	va_start(list, option);
	if (option < CURLOPTTYPE_OBJECTPOINT)
		code = found.easy_setopt(easy, option, va_arg(list, long));
	else if (option < CURLOPTTYPE_FUNCTIONPOINT)
		code = found.easy_setopt(easy, option, va_arg(list, void *));
	else
		code = found.easy_setopt(easy, option, va_arg(list, void (*)(void)));
	va_end(list);
	return code;
}

/* Each argument is the place that takes the answer. */
CURLcode curl_easy_getinfo(CURL *easy, CURLINFO info, ...)
{
	CURLcode code;
	va_list list;

	va_start(list, info);
	code = found.easy_getinfo(easy, info, va_arg(list, void *));
	va_end(list);
	return code;
}

const char *curl_easy_strerror(CURLcode code)
{
	return found.easy_strerror(code);
}

/* ---- many of them at once ---- */

CURLM *curl_multi_init(void)
{
	return found.multi_init();
}

/* For options that are numbers: the fetcher sets no other. */
CURLMcode curl_multi_setopt(CURLM *multi, CURLMoption option, ...)
{
	CURLMcode code = CURLM_UNKNOWN_OPTION;
	va_list list;

	va_start(list, option);
	if (option < CURLOPTTYPE_OBJECTPOINT)
		code = found.multi_setopt(multi, option, va_arg(list, long));
	va_end(list);
	return code;
}

CURLMcode curl_multi_add_handle(CURLM *multi, CURL *easy)
{
	return found.multi_add_handle(multi, easy);
}

CURLMcode curl_multi_remove_handle(CURLM *multi, CURL *easy)
{
	return found.multi_remove_handle(multi, easy);
}

CURLMcode curl_multi_perform(CURLM *multi, int *running)
{
	return found.multi_perform(multi, running);
}

CURLMcode curl_multi_poll(CURLM *multi, struct curl_waitfd *more, unsigned count, int milliseconds,
			  int *ready)
{
	return found.multi_poll(multi, more, count, milliseconds, ready);
}

CURLMsg *curl_multi_info_read(CURLM *multi, int *left)
{
	return found.multi_info_read(multi, left);
}
