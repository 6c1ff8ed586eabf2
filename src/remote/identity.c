#include "remote/identity.h"

#include "remote/profile.h"
#include "remote/text.h"
#include "remote/url.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define SESSION	  "h5fs"
#define CONTAINER "http://169.254.170.2"
#define INSTANCE  "http://169.254.169.254"
#define INSTANCE6 "http://[fd00:ec2::254]"

enum { FILE_MOST = 1 << 20 };

/* ---- files ---- */

char *h5_identity_read_file(const char *path, size_t most)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *text = NULL;
	struct stat st;
	size_t size = 0;
	ssize_t n = 1;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		text = calloc(1, most + 2);
	while (text && size <= most && (n = read(fd, text + size, most + 1 - size)) > 0)
		size += (size_t)n;
	close(fd);
	if (text && (n < 0 || size > most || memchr(text, 0, size)))
		h5_text_forget(&text);
	while (text && size && h5_text_is_blank(text[size - 1]))
		text[--size] = 0;
	if (text)
		memmove(text, text + strspn(text, " \t\r\n"), size + 1 - strspn(text, " \t\r\n"));
	return text;
}

/* What both files say of a profile. */
static int read_profile(const struct h5_identity *identity, const char *name, struct h5_profile *profile)
{
	int rc = 0;

	*profile = (struct h5_profile){0};
	for (size_t i = 0; i < 2 && !rc; i++) {
		char *text = identity->files[i] ? h5_identity_read_file(identity->files[i], FILE_MOST) : NULL;

		if (text)
			rc = h5_profile_read(profile, text, strlen(text), name);
		h5_text_forget(&text);
	}
	return rc;
}

int h5_identity_read_files(const struct h5_identity *identity, struct h5_grant *grant)
{
	struct h5_profile profile;
	int rc = read_profile(identity, identity->profile, &profile);

	*grant = (struct h5_grant){0};
	if (!rc)
		rc = h5_grant_set(grant, profile.key, profile.secret, profile.token);
	h5_profile_release(&profile);
	return rc;
}

/* ---- what the environment says ---- */

/* A variable that is set to something; NULL: none. */
static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static const char *either(const char *a, const char *b)
{
	return a ? a : b;
}

/* Keeps a copy; NULL is none. False: no memory. */
static bool keep(char **to, const char *value)
{
	h5_text_forget(to);
	*to = value ? strdup(value) : NULL;
	return *to || !value;
}

/* The file of that variable, or beneath the home directory. */
static bool find_files(struct h5_identity *identity)
{
	static const char *const files[][2] = {{"AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"},
					       {"AWS_CONFIG_FILE", ".aws/config"}};
	const char *home = variable("HOME");

	for (size_t i = 0; i < 2; i++) {
		const char *given = variable(files[i][0]);

		if (given && !keep(&identity->files[i], given))
			return false;
		if (!given && home && asprintf(&identity->files[i], "%s/%s", home, files[i][1]) < 0)
			return false;
	}
	return keep(&identity->profile, either(variable("AWS_PROFILE"), "default"));
}

/* NULL is fine. */
static bool is_url(const char *text)
{
	return !text || (h5_url_is_remote(text) && !h5_url_is_bucket(text));
}

/* Where the store and the token server are. */
static int find_servers(struct h5_identity *identity, struct h5_s3 *s3, const char *endpoint,
			const struct h5_profile *profile, const char **why)
{
	const char *region = either(variable("AWS_REGION"), variable("AWS_DEFAULT_REGION"));
	const char *common = either(variable("AWS_ENDPOINT_URL"), profile->endpoint);
	const char *sts = either(variable("AWS_ENDPOINT_URL_STS"), common);

	region = either(region, either(profile->region, "us-east-1"));
	endpoint = either(endpoint, either(variable("AWS_ENDPOINT_URL_S3"), common));
	if (!h5_grant_is_region(region) || !is_url(endpoint) || !is_url(sts)) {
		*why = "a region or a URL that is set for the tools of AWS makes no sense";
		return -EINVAL;
	}
	strcpy(s3->region, region);
	strcpy(identity->sts_region, region);
	identity->sts = sts ? strdup(sts) : h5_s3_token_url(region);
	return identity->sts && keep(&s3->endpoint, endpoint) ? 0 : -ENOMEM;
}

/* ---- who asks ---- */

static int take_keys(struct h5_identity *identity, const char *key, const char *secret, const char *token,
		     const char **why)
{
	int rc = h5_grant_set(&identity->keys, key, secret, token);

	identity->from = H5_FROM_KEYS;
	if (rc == -EINVAL)
		*why = "the credentials of an object store are of printable bytes without blanks";
	return rc;
}

/* Bearers of secrets go by HTTPS, or nowhere else than to this machine. */
static int check_token_server(const struct h5_identity *identity, const char **why)
{
	if (h5_url_is_secure(identity->sts) || h5_url_is_near(identity->sts))
		return 0;
	*why = "the token server (AWS_ENDPOINT_URL_STS) must be asked by https";
	return -EINVAL;
}

static int take_token(struct h5_identity *identity, const char *file, const char *role, const char *session,
		      const char **why)
{
	identity->from = H5_FROM_TOKEN;
	if (!keep(&identity->file, file) || !keep(&identity->role, role) ||
	    !keep(&identity->session, either(session, SESSION)))
		return -ENOMEM;
	return check_token_server(identity, why);
}

/* AWS_CONTAINER_*. The server is one of those that the tools of AWS ask, since it is shown a secret. */
static int take_container(struct h5_identity *identity, const char **why)
{
	const char *relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
	const char *file = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");

	identity->from = H5_FROM_CONTAINER;
	if (relative && asprintf(&identity->url, CONTAINER "%s", relative) < 0)
		return -ENOMEM;
	if (!relative && !keep(&identity->url, variable("AWS_CONTAINER_CREDENTIALS_FULL_URI")))
		return -ENOMEM;
	if (!keep(&identity->file, file) ||
	    !keep(&identity->token, file ? NULL : variable("AWS_CONTAINER_AUTHORIZATION_TOKEN")))
		return -ENOMEM;
	if ((relative && *relative == '/') || (!relative && h5_url_gives_credentials(identity->url)))
		return 0;
	*why = "the server of AWS_CONTAINER_CREDENTIALS_*_URI is neither this machine, nor a container's, "
	       "nor https";
	return -EINVAL;
}

static bool has_container(void)
{
	return variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") ||
	       variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
}

static bool has_instance(void)
{
	const char *off = variable("AWS_EC2_METADATA_DISABLED");

	return !off || strcasecmp(off, "true");
}

static int take_instance(struct h5_identity *identity, const char **why)
{
	const char *url = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
	const char *mode = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");

	identity->from = H5_FROM_INSTANCE;
	url = either(url, mode && !strcasecmp(mode, "ipv6") ? INSTANCE6 : INSTANCE);
	if (!is_url(url)) {
		*why = "AWS_EC2_METADATA_SERVICE_ENDPOINT is no URL";
		return -EINVAL;
	}
	identity->url = strndup(url, strlen(url) - (url[strlen(url) - 1] == '/'));
	return identity->url ? 0 : -ENOMEM;
}

/* The keys of another profile ask for the role. */
static int take_source(struct h5_identity *identity, const char *source, const char **why)
{
	struct h5_profile profile;
	int rc = read_profile(identity, source, &profile);

	if (!rc && profile.key && (!profile.role || !strcmp(source, identity->profile))) {
		rc = take_keys(identity, profile.key, profile.secret, profile.token, why);
	} else if (!rc) {
		*why = "the profile of source_profile has no keys of its own";
		rc = -ENOTSUP;
	}
	h5_profile_release(&profile);
	return rc;
}

/* A profile with role_arn. */
static int take_role(struct h5_identity *identity, const struct h5_profile *profile, const char **why)
{
	const char *provider = either(profile->provider, "");
	int rc = -ENOTSUP;

	if (profile->identity)
		return take_token(identity, profile->identity, profile->role, profile->session, why);
	*why = "the profile has role_arn, but nothing that h5fs can ask for the role with";
	if (profile->device)
		*why = "the profile asks for a code of a device (mfa_serial), which h5fs cannot do";
	else if (profile->source)
		rc = take_source(identity, profile->source, why);
	else if (!strcmp(provider, "EcsContainer") && has_container())
		rc = take_container(identity, why);
	else if (!strcmp(provider, "Ec2InstanceMetadata") && has_instance())
		rc = take_instance(identity, why);
	if (rc)
		return rc;
	identity->becomes = true;
	if (!keep(&identity->role, profile->role) || !keep(&identity->external, profile->external) ||
	    !keep(&identity->session, either(profile->session, SESSION)))
		return -ENOMEM;
	return check_token_server(identity, why);
}

/* Keys with a token are for a while: another program will write newer ones. */
static int take_profile(struct h5_identity *identity, const struct h5_profile *profile, const char **why)
{
	int rc = take_keys(identity, profile->key, profile->secret, profile->token, why);

	if (!rc && profile->token)
		identity->from = H5_FROM_FILES;
	return rc;
}

static int find_nothing(const struct h5_profile *profile, const char **why)
{
	*why = "no credentials were found: see the environment, ~/.aws, or s3_anonymous";
	if (profile->runs)
		*why = "the profile's credentials come from a program (credential_process), which is not run";
	else if (profile->signs_on)
		*why = "the profile's credentials come from a single sign-on (sso): export them into the "
		       "environment";
	return profile->runs || profile->signs_on ? -ENOTSUP : -EACCES;
}

static int find_who(struct h5_identity *identity, const struct h5_profile *profile, const char **why)
{
	const char *key = variable("AWS_ACCESS_KEY_ID"), *secret = variable("AWS_SECRET_ACCESS_KEY");
	const char *file = variable("AWS_WEB_IDENTITY_TOKEN_FILE"), *role = variable("AWS_ROLE_ARN");

	if (key && secret)
		return take_keys(identity, key, secret, variable("AWS_SESSION_TOKEN"), why);
	if (!profile->found && variable("AWS_PROFILE")) {
		*why = "there is no profile as AWS_PROFILE has it";
		return -EINVAL;
	}
	if (profile->role)
		return take_role(identity, profile, why);
	if (profile->key)
		return take_profile(identity, profile, why);
	if (file && role)
		return take_token(identity, file, role, variable("AWS_ROLE_SESSION_NAME"), why);
	if (profile->runs || profile->signs_on)
		return find_nothing(profile, why);
	if (has_container())
		return take_container(identity, why);
	if (has_instance())
		return take_instance(identity, why);
	return find_nothing(profile, why);
}

int h5_identity_find(struct h5_identity *identity, struct h5_s3 *s3, const char *endpoint, bool anonymous,
		     const char **why)
{
	struct h5_profile profile = {0};
	int rc;

	*identity = (struct h5_identity){0};
	*s3 = (struct h5_s3){0};
	rc = find_files(identity) ? read_profile(identity, identity->profile, &profile) : -ENOMEM;
	if (!rc)
		rc = find_servers(identity, s3, endpoint, &profile, why);
	if (!rc && !anonymous)
		rc = find_who(identity, &profile, why);
	if (rc == -ENOMEM)
		*why = "no memory";
	h5_profile_release(&profile);
	return rc;
}
