/* What all HTTP requests of the fetcher have in common. */
#ifndef H5_REMOTE_HANDLE_H
#define H5_REMOTE_HANDLE_H

#include "remote/grant.h"

#include <curl/curl.h>
#include <stdbool.h>

/* Makes *easy a new request, or makes it one if it is none yet. `certificates`: a file of authorities; NULL:
 * the system's. */
bool h5_handle_renew(CURL **easy, const char *certificates);
/* Adds a header line. */
bool h5_handle_add(struct curl_slist **fields, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Signs for a service of the region ("s3", "sts"), by AWS Signature Version 4. A line with the token of the
 * session, if there is one, becomes part of `fields`. */
bool h5_handle_sign(CURL *easy, struct curl_slist **fields, const struct h5_grant *grant, const char *region,
		    const char *service);

#endif
