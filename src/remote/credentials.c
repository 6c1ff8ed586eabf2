#include "remote/credentials.h"

#include "base/checked.h"
#include "remote/handle.h"
#include "remote/text.h"
#include "remote/url.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	SAID_MOST = 64 << 10,  /* bytes of an answer */
	TOKEN_MOST = 32 << 10, /* bytes of a file with a token */
	TRIES = 3,
	PAUSE = 200, /* milliseconds before the second try; twice as many before the third */
	HOLD = 5000, /* milliseconds after a failure, in which nobody is asked again */
	NEAR = 1000, /* milliseconds in which a metadata service answers */
	AHEAD = 300, /* seconds before the end that new ones are asked for, if they last for long */
};

#define METADATA "/latest/meta-data/iam/security-credentials/"

static bool are_there(const struct h5_credentials *c)
{
	return c->now.key && !c->refused && (!c->now.expires || time(NULL) < c->now.expires);
}

/* ---- what comes out ---- */

/* True: nobody is there who would know more. */
static bool is_nobody(const struct h5_credentials *c, long status)
{
	return c->identity.from == H5_FROM_INSTANCE && c->step != H5_STEP_ROLE && !c->now.key &&
	       (!status || status == 404);
}

static void clear(struct h5_credentials *c)
{
	h5_text_forget(&c->session);
	h5_text_forget(&c->name);
	h5_grant_release(&c->base);
	if (c->said)
		explicit_bzero(c->said, SAID_MOST);
	curl_slist_free_all(c->fields);
	c->fields = NULL;
	c->state = H5_CREDENTIALS_IDLE;
}

static void fail(struct h5_credentials *c, int code, const char *text, uint64_t now)
{
	clear(c);
	c->code = code;
	c->reason = code == -EACCES   ? H5_REMOTE_FORBIDDEN
		    : code == -ENOMEM ? H5_REMOTE_OTHER
				      : H5_REMOTE_NETWORK;
	c->due = now + HOLD;
	snprintf(c->text, sizeof c->text, "%s", text);
}

/* When to ask for new ones: AHEAD of the end, but not in the first half of their life. If they have ended
 * when they come, the clock of this machine is wrong, and only the store can tell. */
static void plan(struct h5_credentials *c)
{
	int64_t left = c->now.expires - time(NULL);

	if (c->now.expires && left <= 0)
		c->now.expires = 0;
	c->renew = c->now.expires ? c->now.expires - (left / 2 < AHEAD ? left / 2 : AHEAD) : INT64_MAX;
}

static void settle(struct h5_credentials *c, const struct h5_grant *grant, uint64_t now)
{
	clear(c);
	h5_grant_release(&c->now);
	c->now = *grant;
	c->generation++;
	c->refused = c->proved = false;
	c->granted = now;
	c->code = 0;
	plan(c);
}

/* ---- asking ---- */

static size_t take_body(char *data, size_t size, size_t count, void *arg)
{
	struct h5_credentials *c = arg;
	size_t n = size * count;

	if (n > SAID_MOST - c->size)
		return 0;
	memcpy(c->said + c->size, data, n);
	c->size += n;
	return n;
}

/* The form of a request for a role; the caller overwrites and frees it. */
static char *make_form(const char *action, const char *const values[][2], size_t n)
{
	char *form = NULL, *longer, *value;

	if (asprintf(&form, "Action=%s&Version=2011-06-15", action) < 0)
		return NULL;
	for (size_t i = 0; i < n && form; i++) {
		if (!values[i][1])
			continue;
		value = h5_url_encode_value(values[i][1]);
		if (!value || asprintf(&longer, "%s&%s=%s", form, values[i][0], value) < 0)
			longer = NULL;
		h5_text_forget(&form);
		h5_text_forget(&value);
		form = longer;
	}
	return form;
}

static bool set_form(struct h5_credentials *c, char *form)
{
	bool good = form && !curl_easy_setopt(c->easy, CURLOPT_URL, c->identity.sts) &&
		    !curl_easy_setopt(c->easy, CURLOPT_COPYPOSTFIELDS, form);

	h5_text_forget(&form);
	return good;
}

static bool set_token_form(struct h5_credentials *c)
{
	const struct h5_identity *i = &c->identity;
	char *token = h5_identity_read_file(i->file, TOKEN_MOST);
	const char *const values[][2] = {
		{"RoleArn", i->role}, {"RoleSessionName", i->session}, {"WebIdentityToken", token}};
	bool good = token && *token && set_form(c, make_form("AssumeRoleWithWebIdentity", values, 3));

	h5_text_forget(&token);
	return good;
}

static bool set_role_form(struct h5_credentials *c)
{
	const struct h5_identity *i = &c->identity;
	const char *const values[][2] = {
		{"RoleArn", i->role}, {"RoleSessionName", i->session}, {"ExternalId", i->external}};

	return set_form(c, make_form("AssumeRole", values, 3)) &&
	       h5_handle_sign(c->easy, &c->fields, i->from == H5_FROM_KEYS ? &i->keys : &c->base,
			      i->sts_region, "sts");
}

/* What a metadata service is asked, without a proxy: it is at this machine. */
static bool set_near(struct h5_credentials *c, const char *path, const char *name)
{
	char *url = NULL;
	bool good;

	if (asprintf(&url, "%s%s%s", c->identity.url, path, name) < 0)
		return false;
	good = !curl_easy_setopt(c->easy, CURLOPT_URL, url) &&
	       !curl_easy_setopt(c->easy, CURLOPT_PROXY, "") &&
	       !curl_easy_setopt(c->easy, CURLOPT_TIMEOUT_MS, (long)NEAR * (1 + c->tries));
	free(url);
	return good;
}

static bool set_session(struct h5_credentials *c)
{
	return set_near(c, "/latest/api/token", "") &&
	       h5_handle_add(&c->fields, "X-aws-ec2-metadata-token-ttl-seconds: 21600") &&
	       !curl_easy_setopt(c->easy, CURLOPT_CUSTOMREQUEST, "PUT");
}

static bool set_keys(struct h5_credentials *c)
{
	const struct h5_identity *i = &c->identity;
	char *token;
	bool good;

	if (i->from == H5_FROM_INSTANCE)
		return set_near(c, METADATA, c->step == H5_STEP_KEYS ? c->name : "") &&
		       h5_handle_add(&c->fields, "X-aws-ec2-metadata-token: %s", c->session);
	if (!set_near(c, "", ""))
		return false;
	if (!i->file && !i->token)
		return true;
	token = i->file ? h5_identity_read_file(i->file, TOKEN_MOST) : strdup(i->token);
	/* Blanks are allowed in it ("Bearer ..."), but no end of a line. */
	good = token && *token && !strpbrk(token, "\r\n") &&
	       h5_handle_add(&c->fields, "Authorization: %s", token);
	h5_text_forget(&token);
	return good;
}

static bool set_up(struct h5_credentials *c)
{
	curl_slist_free_all(c->fields);
	c->fields = NULL;
	c->size = 0;
	if (!c->said && !(c->said = malloc(SAID_MOST)))
		return false;
	if (!h5_handle_renew(&c->easy, c->certificates))
		return false;
	curl_easy_setopt(c->easy, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(c->easy, CURLOPT_WRITEDATA, c);
	curl_easy_setopt(c->easy, CURLOPT_TIMEOUT_MS, (long)c->timeout * 1000);
	switch (c->step) {
	case H5_STEP_SESSION:
		return set_session(c);
	case H5_STEP_TOKEN:
		return set_token_form(c);
	case H5_STEP_ROLE:
		return set_role_form(c);
	default:
		return set_keys(c);
	}
}

static void ask(struct h5_credentials *c, uint64_t now)
{
	if (!set_up(c) || curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, c->fields) ||
	    curl_multi_add_handle(c->multi, c->easy))
		fail(c, -EACCES, "the credentials cannot be asked for: their token file cannot be read", now);
	else
		c->state = H5_CREDENTIALS_ASKING;
}

static void go_on(struct h5_credentials *c, enum h5_credentials_step step, uint64_t now)
{
	c->step = step;
	c->tries = 0;
	ask(c, now);
}

/* Another program may have written newer keys. */
static void read_files(struct h5_credentials *c, uint64_t now)
{
	struct h5_grant grant;

	if (h5_identity_read_files(&c->identity, &grant))
		fail(c, -EACCES, "the profile has no credentials any more", now);
	else if (c->now.key && !strcmp(grant.key, c->now.key) && !strcmp(grant.secret, c->now.secret) &&
		 (!grant.token || !c->now.token || !strcmp(grant.token, c->now.token)))
		fail(c, -EACCES, "the credentials of the profile have expired", now);
	else
		settle(c, &grant, now);
	if (c->code)
		h5_grant_release(&grant);
}

static void begin(struct h5_credentials *c, uint64_t now)
{
	const struct h5_identity *i = &c->identity;

	switch (i->from) {
	case H5_FROM_FILES:
		read_files(c, now);
		break;
	case H5_FROM_KEYS:
		go_on(c, H5_STEP_ROLE, now);
		break;
	case H5_FROM_TOKEN:
		go_on(c, H5_STEP_TOKEN, now);
		break;
	case H5_FROM_INSTANCE:
		go_on(c, H5_STEP_SESSION, now);
		break;
	default:
		go_on(c, H5_STEP_KEYS, now);
	}
}

/* ---- answers ---- */

/* The first line of an answer; the caller frees it. -EINVAL: it may not stand in a header line or a path;
 * -ENOMEM. */
static int take_line(const struct h5_credentials *c, char **out)
{
	const char *end = memchr(c->said, '\n', c->size);
	char *line = strndup(c->said, end ? (size_t)(end - c->said) : c->size);
	int rc = !line ? -ENOMEM : h5_grant_is_text(line) ? 0 : -EINVAL;

	if (!rc)
		*out = c->step == H5_STEP_NAME ? h5_url_encode_value(line) : strdup(line);
	if (!rc && !*out)
		rc = -ENOMEM;
	h5_text_forget(&line);
	return rc;
}

/* -EINVAL: it makes no sense; -ENOMEM. */
static int take_grant(struct h5_credentials *c, uint64_t now)
{
	bool sts = c->step == H5_STEP_TOKEN || c->step == H5_STEP_ROLE;
	struct h5_grant grant;
	int rc = (sts ? h5_grant_read_sts : h5_grant_read_json)(c->said, c->size, &grant);

	if (rc)
		return rc;
	if (sts || !c->identity.becomes) {
		settle(c, &grant, now);
		return 0;
	}
	h5_grant_release(&c->base);
	c->base = grant;
	go_on(c, H5_STEP_ROLE, now);
	return 0;
}

static int take_answer(struct h5_credentials *c, uint64_t now)
{
	bool first = c->step == H5_STEP_SESSION;
	int rc;

	if (!first && c->step != H5_STEP_NAME)
		return take_grant(c, now);
	rc = take_line(c, first ? &c->session : &c->name);
	if (rc)
		return rc;
	go_on(c, first ? H5_STEP_NAME : H5_STEP_KEYS, now);
	return 0;
}

static const char *server_of(const struct h5_credentials *c)
{
	if (c->step == H5_STEP_TOKEN || c->step == H5_STEP_ROLE)
		return "the token server (STS)";
	return c->identity.from == H5_FROM_CONTAINER ? "the container's server of credentials"
						     : "the metadata service";
}

/* Tries again, or gives up. `taken`: what became of an answer. */
static void repeat(struct h5_credentials *c, CURLcode result, long status, int taken, uint64_t now)
{
	struct h5_store_error error;
	char text[H5_REMOTE_TEXT];

	if (is_nobody(c, status)) {
		fail(c, -EACCES, "no credentials were found: see the environment, ~/.aws, or s3_anonymous",
		     now);
		return;
	}
	if ((!status || status == 200 || status == 408 || status == 429 || status >= 500) &&
	    ++c->tries < TRIES) {
		c->state = H5_CREDENTIALS_RESTING;
		c->due = now + ((uint64_t)PAUSE << (c->tries - 1));
		return;
	}
	h5_store_error_read(c->said, c->size, &error);
	if (status && status != 200)
		snprintf(text, sizeof text, "%s gives no credentials (HTTP %ld%s%s)", server_of(c), status,
			 *error.code ? ": " : "", error.code);
	else
		snprintf(text, sizeof text, "%s gives no credentials: %s", server_of(c),
			 taken == -ENOMEM ? "no memory for its answer"
			 : status	  ? "its answer makes no sense"
					  : curl_easy_strerror(result));
	fail(c, status / 100 == 4 ? -EACCES : taken == -ENOMEM ? taken : -EIO, text, now);
}

bool h5_credentials_end(struct h5_credentials *c, CURL *easy, CURLcode result, uint64_t now)
{
	long status = 0;
	int taken;

	if (!c->easy || easy != c->easy)
		return false;
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	taken = result || status != 200 ? 0 : take_answer(c, now);
	if (result || status != 200 || taken)
		repeat(c, result, result ? 0 : status, taken, now);
	return true;
}

/* ---- for the transfers ---- */

/* True: there are none but those that the user has given. */
static bool are_given(const struct h5_credentials *c)
{
	return c->identity.from == H5_FROM_NOBODY ||
	       (c->identity.from == H5_FROM_KEYS && !c->identity.becomes);
}

/* The first ones, if they need not be asked for. */
static void take_given(struct h5_credentials *c)
{
	c->now = c->identity.keys;
	c->identity.keys = (struct h5_grant){0};
	c->renew = INT64_MAX;
}

enum h5_credentials_answer h5_credentials_want(struct h5_credentials *c, uint64_t now)
{
	bool held = now < c->due;

	if (!c->now.key && c->identity.keys.key && !c->identity.becomes)
		take_given(c);
	if (are_given(c))
		return H5_CREDENTIALS_GOOD;
	if (c->state == H5_CREDENTIALS_RESTING && !held)
		ask(c, now);
	else if (c->state == H5_CREDENTIALS_IDLE && !held && (!are_there(c) || time(NULL) >= c->renew))
		begin(c, now);
	if (are_there(c))
		return H5_CREDENTIALS_GOOD;
	return c->state == H5_CREDENTIALS_IDLE ? H5_CREDENTIALS_NONE : H5_CREDENTIALS_WAIT;
}

void h5_credentials_prove(struct h5_credentials *c, unsigned generation)
{
	c->proved |= generation == c->generation;
}

bool h5_credentials_refuse(struct h5_credentials *c, unsigned generation, uint64_t now)
{
	if (are_given(c))
		return false;
	if (generation != c->generation)
		return true;
	if (generation && !c->proved && now < c->granted + HOLD)
		return false;
	c->refused = true;
	return true;
}
