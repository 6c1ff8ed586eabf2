/* A profile of the tools of AWS: a section of ~/.aws/credentials or ~/.aws/config. Pure functions over text.
 */
#ifndef H5_REMOTE_PROFILE_H
#define H5_REMOTE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>

/* All texts are owned; NULL: it says nothing of that. */
struct h5_profile {
	bool found;		    /* there is such a section */
	char *key, *secret, *token; /* keys that it has itself */
	char *region, *endpoint;
	char *role;			   /* role_arn: what to become */
	char *source;			   /* source_profile: whose keys ask for the role */
	char *provider;			   /* credential_source: where these keys come from instead */
	char *identity;			   /* web_identity_token_file: what asks for the role instead */
	char *session, *external, *device; /* role_session_name, external_id, mfa_serial */
	char *runs;			   /* credential_process: a program */
	char *signs_on;			   /* sso_session, sso_start_url or login_session: a browser */
};

/* Takes what the lines NAME = VALUE of the section [NAME] or [profile NAME] say, unless it is known already.
 * Indented lines belong to what stands before, and mean nothing here. Key, secret and token are taken
 * together, from a text that has both key and secret. -ENOMEM. */
int h5_profile_read(struct h5_profile *profile, const char *text, size_t n, const char *name);
/* Overwrites and frees; may run twice. */
void h5_profile_release(struct h5_profile *profile);

#endif
