#include "remote/s3.h"

#include "remote/url.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEME "s3://"

/* ---- where an object is ---- */

/* The bucket is a part of the host name, as Amazon prefers it, unless a certificate would not fit that. */
static bool is_host(const char *bucket, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!islower((unsigned char)bucket[i]) && !isdigit((unsigned char)bucket[i]) &&
		    bucket[i] != '-')
			return false;
	return true;
}

char *h5_s3_url(const struct h5_s3 *s3, const char *url)
{
	const char *bucket = url + strlen(SCHEME), *slash = strchr(bucket, '/');
	int n = (int)(slash - bucket), rc;
	char *key = h5_url_encode(slash + 1), *out = NULL;

	if (!key)
		return NULL;
	if (s3->endpoint)
		rc = asprintf(&out, "%.*s/%.*s/%s",
			      (int)(strlen(s3->endpoint) - (s3->endpoint[strlen(s3->endpoint) - 1] == '/')),
			      s3->endpoint, n, bucket, key);
	else if (is_host(bucket, (size_t)n))
		rc = asprintf(&out, "https://%.*s.s3.%s.amazonaws.com/%s", n, bucket, s3->region, key);
	else
		rc = asprintf(&out, "https://s3.%s.amazonaws.com/%.*s/%s", s3->region, n, bucket, key);
	free(key);
	return rc < 0 ? NULL : out;
}

/* ---- who asks ---- */

/* A variable that is set to something; NULL: none. */
static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/* Keeps the value, unless there is one already. */
static void keep(char **to, const char *value)
{
	if (!*to && value && *value)
		*to = strdup(value);
}

static char *trim(char *s)
{
	size_t n;

	s += strspn(s, " \t");
	n = strlen(s);
	while (n && isspace((unsigned char)s[n - 1]))
		s[--n] = 0;
	return s;
}

/* What a profile says. */
struct profile {
	struct h5_s3 s3;
	bool runs; /* its credentials come from a program */
};

static void take_setting(struct profile *profile, const char *name, const char *value)
{
	const struct {
		const char *name;
		char **to;
	} settings[] = {
		{"aws_access_key_id", &profile->s3.key},   {"aws_secret_access_key", &profile->s3.secret},
		{"aws_session_token", &profile->s3.token}, {"region", &profile->s3.region},
		{"endpoint_url", &profile->s3.endpoint},
	};

	profile->runs |= !strcmp(name, "credential_process");
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
		if (!strcmp(name, settings[i].name))
			keep(settings[i].to, value);
}

/* Lines NAME = VALUE of the section [PROFILE] or [profile PROFILE]. Indented lines belong to what stands
 * before, and mean nothing here. */
static void read_file(struct profile *profile, const char *path, const char *name)
{
	FILE *file = fopen(path, "re");
	bool ours = false;
	char *line = NULL;
	size_t capacity = 0;

	while (file && getline(&line, &capacity, file) >= 0) {
		char *text = trim(line), *equals = strchr(text, '=');

		if (*text == '[') {
			text[strcspn(text, "]")] = 0;
			text = trim(text + 1);
			text = trim(text + (strncmp(text, "profile ", 8) ? 0 : 8));
			ours = !strcmp(text, name);
		} else if (ours && equals && text == line && *text != '#') {
			*equals = 0;
			take_setting(profile, trim(text), trim(equals + 1));
		}
	}
	if (line)
		explicit_bzero(line, capacity);
	free(line);
	if (file)
		fclose(file);
}

/* The file of that variable, or beneath the home directory. */
static void read_files(struct profile *profile)
{
	static const char *const files[][2] = {{"AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"},
					       {"AWS_CONFIG_FILE", ".aws/config"}};
	const char *name = variable("AWS_PROFILE"), *home = variable("HOME");

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		const char *given = variable(files[i][0]);
		char *path = NULL;

		if (given)
			path = strdup(given);
		else if (!home || asprintf(&path, "%s/%s", home, files[i][1]) < 0)
			path = NULL;
		if (path)
			read_file(profile, path, name ? name : "default");
		free(path);
	}
}

static void take_environment(struct h5_s3 *s3)
{
	const char *key = variable("AWS_ACCESS_KEY_ID"), *secret = variable("AWS_SECRET_ACCESS_KEY");

	if (key && secret) {
		keep(&s3->key, key);
		keep(&s3->secret, secret);
		keep(&s3->token, variable("AWS_SESSION_TOKEN"));
	}
	keep(&s3->region, variable("AWS_REGION"));
	keep(&s3->region, variable("AWS_DEFAULT_REGION"));
	keep(&s3->endpoint, variable("AWS_ENDPOINT_URL_S3"));
	keep(&s3->endpoint, variable("AWS_ENDPOINT_URL"));
}

/* Forgets who asks, but not where. */
static void become_anonymous(struct h5_s3 *s3)
{
	char **const secrets[] = {&s3->key, &s3->secret, &s3->token};

	for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++) {
		if (*secrets[i])
			explicit_bzero(*secrets[i], strlen(*secrets[i]));
		free(*secrets[i]);
		*secrets[i] = NULL;
	}
}

/* Credentials are those of one place, never half of one and half of another. */
static void take_profile(struct h5_s3 *s3, struct profile *profile)
{
	if (!s3->key && profile->s3.key && profile->s3.secret) {
		keep(&s3->key, profile->s3.key);
		keep(&s3->secret, profile->s3.secret);
		keep(&s3->token, profile->s3.token);
	}
	keep(&s3->region, profile->s3.region);
	keep(&s3->region, "us-east-1");
	keep(&s3->endpoint, profile->s3.endpoint);
}

int h5_s3_find(struct h5_s3 *s3, const char *endpoint, bool anonymous, const char **why)
{
	struct profile profile = {0};

	*s3 = (struct h5_s3){0};
	keep(&s3->endpoint, endpoint);
	take_environment(s3);
	read_files(&profile);
	take_profile(s3, &profile);
	h5_s3_release(&profile.s3);
	if (anonymous)
		become_anonymous(s3);
	if (!s3->region)
		return -ENOMEM;
	if (anonymous || (s3->key && s3->secret))
		return 0;
	*why = profile.runs ? "the profile's credentials come from a program (credential_process), which is "
			      "not run"
			    : "no credentials were found: see the environment, ~/.aws, or s3_anonymous";
	return profile.runs ? -ENOTSUP : -EACCES;
}

void h5_s3_release(struct h5_s3 *s3)
{
	become_anonymous(s3);
	free(s3->region);
	free(s3->endpoint);
	s3->region = s3->endpoint = NULL;
}
