/* Credentials that a server grants for a while, and what a server says if it refuses. Pure functions over the
 * bodies of answers, which may be hostile. */
#ifndef H5_REMOTE_GRANT_H
#define H5_REMOTE_GRANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All texts are owned, and of printable bytes without blanks, so that they may stand in a header line. */
struct h5_grant {
	char *key, *secret;
	char *token;	 /* of a session; NULL: none */
	int64_t expires; /* seconds since 1970; 0: never */
};

/* Keeps copies of the texts. -EINVAL: key or secret is missing, or a text may not stand in a header line;
 * -ENOMEM. Then *grant is empty. */
int h5_grant_set(struct h5_grant *grant, const char *key, const char *secret, const char *token);
/* The answer of AWS STS to AssumeRole and AssumeRoleWithWebIdentity (its API reference, version 2011-06-15).
 * -EINVAL: it is none; -ENOMEM. Then *grant is empty. */
int h5_grant_read_sts(const char *text, size_t n, struct h5_grant *grant);
/* The JSON that containers and instances are answered with: AccessKeyId, SecretAccessKey, Token, Expiration.
 * Errors as above. */
int h5_grant_read_json(const char *text, size_t n, struct h5_grant *grant);
/* Overwrites and frees; may run twice. */
void h5_grant_release(struct h5_grant *grant);

/* Seconds since 1970 of "2026-11-23T10:00:00Z", or with a fraction or an offset (RFC 3339). False: it is no
 * such time. */
bool h5_grant_time(const char *text, int64_t *seconds);
/* True: bytes that may stand in a header line, without blanks, and one at least. */
bool h5_grant_is_text(const char *text);

enum { H5_REGION = 33 }; /* bytes of a region's name, its NUL included */

/* True: letters, digits, hyphens and underscores, which lead to no other host if they stand in a name. */
bool h5_grant_is_region(const char *text);

/* What an object store or a token server says about an error. Texts that make no sense are empty. */
struct h5_store_error {
	char code[64];		/* letters, digits and dots: "ExpiredToken" */
	char region[H5_REGION]; /* where the bucket is */
};

/* An answer that is no such XML leaves the texts empty. */
void h5_store_error_read(const char *text, size_t n, struct h5_store_error *error);

#endif
