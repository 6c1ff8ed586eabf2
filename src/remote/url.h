/* URLs of files, and what follows from them. All are pure functions over text. */
#ifndef H5_REMOTE_URL_H
#define H5_REMOTE_URL_H

#include <stdbool.h>

/* True: it begins as the URL of a remote file does (http://, https://, s3://), and is no path. */
bool h5_url_is_remote(const char *text);
/* True: it is s3://BUCKET/KEY. */
bool h5_url_is_bucket(const char *url);
/* True: it is s3://BUCKET, or s3://BUCKET/PREFIX/: not an object, but all that lies below. */
bool h5_url_is_prefix(const char *url);
/* 0: it names a server and a file, or is a prefix. -EINVAL with detail; a user or a password in it is
 * refused, since command lines and logs can be read by others. */
int h5_url_check(const char *url);
/* A copy, with a slash behind a bucket that stands alone; the caller frees it. NULL: no memory. */
char *h5_url_complete(const char *url);
/* Without the query and the fragment, which may be secret; the caller frees it. NULL: no memory. */
char *h5_url_shown(const char *url);
/* All but unreserved bytes and slashes are percent-encoded, since signatures cover the path as it is sent;
 * the caller frees it. NULL: no memory. */
char *h5_url_encode(const char *path);
/* All but unreserved bytes are, as in the value of a query; the caller frees it. NULL: no memory. */
char *h5_url_encode_value(const char *text);
/* The URL, for HTTP, of a file beside that one, without its query; the caller frees it. `name`: relative,
 * with the bytes of the file's path; it must not lead out of the folder. NULL: it does, or no memory. */
char *h5_url_beside(const char *url, const char *name);
/* What tells the file from others, and is the same whenever it is asked for: the URL without its fragment,
 * and without the parameters of the query with which object stores sign URLs for a while; the caller frees
 * it. It may have secrets of other kinds. NULL: no memory. */
char *h5_url_identity(const char *url);
/* True: both have the same scheme, host and port. They must be http or https. */
bool h5_url_same_origin(const char *a, const char *b);
/* True: by HTTPS. */
bool h5_url_is_secure(const char *url);
/* True: its server is this machine: localhost, 127.0.0.0/8, ::1. */
bool h5_url_is_near(const char *url);
/* True: a server that gives credentials to containers may be there: by HTTPS anywhere, else at this machine,
 * or at the addresses of Amazon's agents. */
bool h5_url_gives_credentials(const char *url);
/* The path and the query of `url` at the server of `to`; the caller frees it. NULL: no memory. */
char *h5_url_moved(const char *url, const char *to);
/* True: a redirect may lead from one to the other: to http or https, but not from https to http, nor with a
 * user's name: servers give no credentials. */
bool h5_url_may_lead(const char *from, const char *to);

#endif
