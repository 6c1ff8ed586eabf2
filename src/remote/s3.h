/* Object stores with the interface of S3: where an object is. Pure functions. */
#ifndef H5_REMOTE_S3_H
#define H5_REMOTE_S3_H

#include "remote/grant.h"

#include <stdbool.h>

struct h5_s3 {
	char region[H5_REGION];
	char *endpoint; /* owned: URL of the store; NULL: Amazon's */
};

/* The URL for HTTP of s3://BUCKET/KEY; the caller frees it. NULL: no memory. At Amazon, the bucket is a part
 * of the host's name, unless a certificate would not fit that; elsewhere the begin of the path. */
char *h5_s3_url(const struct h5_s3 *s3, const char *url);
/* The URL for HTTP of a page of ListObjectsV2 (Amazon's API reference of S3). It lists, in the bucket of
 * s3://BUCKET/PREFIX, the keys that begin with PREFIX and `below`, up to their next slash. `token`: the page
 * before has named it; NULL: the first page. The caller frees it. NULL: no memory. */
char *h5_s3_listing_url(const struct h5_s3 *s3, const char *url, const char *below, const char *token);
/* The URL of Amazon's token server (STS) of that region; the caller frees it. NULL: no memory. */
char *h5_s3_token_url(const char *region);
/* True: `url` is in the same bucket of Amazon's store as `home`, which h5_s3_url() has made, at whatever
 * server of it; so it may see signatures for that bucket. Both by HTTPS. */
bool h5_s3_is_same_bucket(const char *home, const char *url);

#endif
