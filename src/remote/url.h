/* URLs of files, and what follows from them. All are pure functions over text. */
#ifndef H5_REMOTE_URL_H
#define H5_REMOTE_URL_H

#include <stdbool.h>

/* True: it begins as the URL of a remote file does (http://, https://, s3://), and is no path. */
bool h5_url_is_remote(const char *text);
/* True: it is s3://BUCKET/KEY. */
bool h5_url_is_bucket(const char *url);
/* 0: it names a server and a file. -EINVAL with detail; a user or a password in it is refused, since command
 * lines and logs can be read by others. */
int h5_url_check(const char *url);
/* Without the query and the fragment, which may be secret; the caller frees it. NULL: no memory. */
char *h5_url_shown(const char *url);
/* All but unreserved bytes and slashes are percent-encoded, since signatures cover the path as it is sent;
 * the caller frees it. NULL: no memory. */
char *h5_url_encode(const char *path);
/* The URL, for HTTP, of a file beside that one, without its query; the caller frees it. `name`: relative,
 * with the bytes of the file's path; it must not lead out of the folder. NULL: it does, or no memory. */
char *h5_url_beside(const char *url, const char *name);
/* True: both have the same scheme, host and port. They must be http or https. */
bool h5_url_same_origin(const char *a, const char *b);
/* True: a redirect may lead from one to the other: to http or https, but not from https to http. */
bool h5_url_may_lead(const char *from, const char *to);

#endif
