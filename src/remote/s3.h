/* Object stores with the interface of S3: where an object is, and who asks for it. */
#ifndef H5_REMOTE_S3_H
#define H5_REMOTE_S3_H

#include <stdbool.h>

/* All are owned. */
struct h5_s3 {
	char *key, *secret; /* NULL: requests are not signed */
	char *token;	    /* of a session; NULL: none */
	char *region;
	char *endpoint; /* NULL: that of Amazon */
};

/* Finds the credentials as the tools of AWS do: in the environment, else in the profile of AWS_PROFILE in
 * ~/.aws/credentials and ~/.aws/config. `endpoint`: of another store; NULL: the environment's, or none.
 * `anonymous`: none are wanted. -EACCES: there are none; -ENOTSUP: the profile would have to run a program.
 * *why says so. Run h5_s3_release() in any case. */
int h5_s3_find(struct h5_s3 *s3, const char *endpoint, bool anonymous, const char **why);
void h5_s3_release(struct h5_s3 *s3); /* may run twice */

/* The URL for HTTP of s3://BUCKET/KEY; the caller frees it. NULL: no memory. */
char *h5_s3_url(const struct h5_s3 *s3, const char *url);

#endif
