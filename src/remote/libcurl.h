/* The library that speaks HTTP, loaded when it is needed. */
#ifndef H5_REMOTE_LIBCURL_H
#define H5_REMOTE_LIBCURL_H

/* Must have succeeded before any function of <curl/curl.h> is called. -ENOTSUP: the library is not there, or
 * lacks a function. */
int h5_libcurl_load(void);

#endif
