/* In whose name an object store is asked: what the environment and the files of the tools of AWS say of it.
 * remote/credentials.h gets the credentials themselves. */
#ifndef H5_REMOTE_IDENTITY_H
#define H5_REMOTE_IDENTITY_H

#include "remote/grant.h"
#include "remote/s3.h"

#include <stdbool.h>
#include <stddef.h>

/* Where credentials come from. */
enum h5_identity_from {
	H5_FROM_NOBODY,	   /* requests are not signed */
	H5_FROM_KEYS,	   /* `keys` */
	H5_FROM_FILES,	   /* `keys`, for a while; the files of the profile will have newer ones */
	H5_FROM_TOKEN,	   /* the token in `file` lets us have `role` */
	H5_FROM_CONTAINER, /* the server at `url` */
	H5_FROM_INSTANCE,  /* the metadata service of the machine at `url`: IMDSv2 */
};

/* All texts are owned. */
struct h5_identity {
	enum h5_identity_from from;
	struct h5_grant keys;
	bool becomes; /* with these credentials, those of `role` are asked for */
	char *role, *session, *external;
	char *file;  /* of the token; H5_FROM_CONTAINER: of what to show to the server; NULL: none */
	char *token; /* H5_FROM_CONTAINER: what to show to the server, if there is no file; NULL: nothing */
	char *url;
	char *sts; /* URL of the token server, which gives roles */
	char sts_region[H5_REGION];
	char *profile, *files[2]; /* where the profile is; NULL: nowhere */
};

/* Finds out, in the order of the tools of AWS: the environment, the profile of AWS_PROFILE, a web identity,
 * the container, the machine. `endpoint`: of another store than Amazon's; NULL: the environment's or the
 * profile's, or none. `anonymous`: nobody asks. -EACCES: nothing is found; -ENOTSUP: what is found would have
 * to run a program or to ask the user; -EINVAL: it makes no sense. *why says so. What *identity owns stays
 * for the life of the fetcher. */
int h5_identity_find(struct h5_identity *identity, struct h5_s3 *s3, const char *endpoint, bool anonymous,
		     const char **why);
/* Of H5_FROM_FILES: the keys that the files have now. -EINVAL: they have none; -ENOMEM. Then *grant is
 * empty. */
int h5_identity_read_files(const struct h5_identity *identity, struct h5_grant *grant);

/* The text of a regular file without the blanks around it, of up to `most` bytes; the caller overwrites and
 * frees it. NULL: there is none. */
char *h5_identity_read_file(const char *path, size_t most);

#endif
