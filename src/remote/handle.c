#include "config.h"

#include "remote/handle.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool h5_handle_renew(CURL **easy, const char *certificates)
{
	if (*easy)
		curl_easy_reset(*easy);
	else if (!(*easy = curl_easy_init()))
		return false;
	curl_easy_setopt(*easy, CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(*easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	curl_easy_setopt(*easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	/* A connection for each request: what one gives is often less than there is. */
	curl_easy_setopt(*easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(*easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	if (certificates && curl_easy_setopt(*easy, CURLOPT_CAINFO, certificates))
		return false;
	return !curl_easy_setopt(*easy, CURLOPT_USERAGENT, "h5fs/" PACKAGE_VERSION);
}

bool h5_handle_add(struct curl_slist **fields, const char *format, ...)
{
	struct curl_slist *longer = NULL;
	char *field = NULL;
	va_list list;
	int n;

	va_start(list, format);
	n = vasprintf(&field, format, list);
	va_end(list);
	if (n >= 0) {
		longer = curl_slist_append(*fields, field);
		explicit_bzero(field, (size_t)n);
		free(field);
	}
	if (longer)
		*fields = longer;
	return longer;
}

bool h5_handle_sign(CURL *easy, struct curl_slist **fields, const struct h5_grant *grant, const char *region,
		    const char *service)
{
	char provider[32 + H5_REGION];

	snprintf(provider, sizeof provider, "aws:amz:%s:%s", region, service);
	if (grant->token && !h5_handle_add(fields, "x-amz-security-token: %s", grant->token))
		return false;
	return !curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, provider) &&
	       !curl_easy_setopt(easy, CURLOPT_USERNAME, grant->key) &&
	       !curl_easy_setopt(easy, CURLOPT_PASSWORD, grant->secret);
}
