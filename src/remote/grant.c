#include "remote/grant.h"

#include "base/json_read.h"
#include "remote/text.h"
#include "remote/xml.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>

bool h5_grant_is_text(const char *text)
{
	const char *p = text;

	while (*p > ' ' && *p < 0x7f)
		p++;
	return p > text && !*p;
}

bool h5_grant_is_region(const char *text)
{
	size_t n = 0;

	while (isalnum((unsigned char)text[n]) || text[n] == '-' || text[n] == '_')
		n++;
	return n && n < H5_REGION && !text[n] && *text != '-' && text[n - 1] != '-';
}

void h5_grant_release(struct h5_grant *grant)
{
	h5_text_forget(&grant->key);
	h5_text_forget(&grant->secret);
	h5_text_forget(&grant->token);
	grant->expires = 0;
}

int h5_grant_set(struct h5_grant *grant, const char *key, const char *secret, const char *token)
{
	*grant = (struct h5_grant){0};
	if (!key || !secret || !h5_grant_is_text(key) || !h5_grant_is_text(secret) ||
	    (token && !h5_grant_is_text(token)))
		return -EINVAL;
	grant->key = strdup(key);
	grant->secret = strdup(secret);
	grant->token = token ? strdup(token) : NULL;
	if (grant->key && grant->secret && (grant->token || !token))
		return 0;
	h5_grant_release(grant);
	return -ENOMEM;
}

/* ---- times ---- */

/* Two digits, up to `most`. */
static bool take_two(const char **p, int most, int *value)
{
	if (!isdigit((unsigned char)(*p)[0]) || !isdigit((unsigned char)(*p)[1]))
		return false;
	*value = ((*p)[0] - '0') * 10 + (*p)[1] - '0';
	*p += 2;
	return *value <= most;
}

static bool skip(const char **p, char c)
{
	bool is = **p == c;

	*p += is;
	return is;
}

/* "Z" or "+01:30". */
static bool take_offset(const char **p, int *seconds)
{
	bool east = **p == '+';
	int hours, minutes;

	*seconds = 0;
	if (skip(p, 'Z'))
		return true;
	if (!skip(p, '+') && !skip(p, '-'))
		return false;
	if (!take_two(p, 23, &hours) || !skip(p, ':') || !take_two(p, 59, &minutes))
		return false;
	*seconds = (hours * 60 + minutes) * (east ? 60 : -60);
	return true;
}

bool h5_grant_time(const char *text, int64_t *seconds)
{
	struct tm tm = {0};
	const char *p = text;
	int century, year, offset;

	if (!take_two(&p, 99, &century) || !take_two(&p, 99, &year) || !skip(&p, '-') ||
	    !take_two(&p, 12, &tm.tm_mon) || !skip(&p, '-') || !take_two(&p, 31, &tm.tm_mday) ||
	    !skip(&p, 'T') || !take_two(&p, 23, &tm.tm_hour) || !skip(&p, ':') ||
	    !take_two(&p, 59, &tm.tm_min) || !skip(&p, ':') || !take_two(&p, 60, &tm.tm_sec))
		return false;
	if (skip(&p, '.') && !isdigit((unsigned char)*p))
		return false;
	while (isdigit((unsigned char)*p))
		p++;
	if (!tm.tm_mon-- || !tm.tm_mday || !take_offset(&p, &offset) || *p)
		return false;
	tm.tm_year = century * 100 + year - 1900;
	*seconds = (int64_t)timegm(&tm) - offset;
	return true;
}

/* ---- answers ---- */

/* The texts of an answer; borrowed or owned, as its reader has it. */
struct texts {
	char *key, *secret, *token, *expires;
	int rc; /* -ENOMEM: of one there is no copy */
};

static int take_texts(const struct texts *texts, struct h5_grant *grant)
{
	int64_t expires = 0;
	int rc;

	*grant = (struct h5_grant){0};
	if (texts->expires && (!h5_grant_time(texts->expires, &expires) || expires <= 0))
		return -EINVAL;
	rc = h5_grant_set(grant, texts->key, texts->secret, texts->token);
	if (!rc)
		grant->expires = expires;
	return rc;
}

/* Both actions have the same Credentials within two elements of their own names. False: one stands twice, or
 * texts->rc. */
static bool take_sts(void *arg, const struct h5_xml_leaf *leaf)
{
	static const char *const actions[] = {"AssumeRole", "AssumeRoleWithWebIdentity"};
	struct texts *texts = arg;
	const struct {
		const char *name;
		char **to;
	} settings[] = {{"AccessKeyId", &texts->key},
			{"SecretAccessKey", &texts->secret},
			{"SessionToken", &texts->token},
			{"Expiration", &texts->expires}};
	char path[160];

	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < sizeof settings / sizeof *settings; k++) {
			snprintf(path, sizeof path, "%sResponse/%sResult/Credentials/%s", actions[i],
				 actions[i], settings[k].name);
			if (!h5_xml_is(leaf, path))
				continue;
			if (*settings[k].to)
				return false;
			*settings[k].to = strdup(leaf->text);
			texts->rc = *settings[k].to ? 0 : -ENOMEM;
			return !texts->rc;
		}
	return true;
}

int h5_grant_read_sts(const char *text, size_t n, struct h5_grant *grant)
{
	struct texts texts = {0};
	int rc = h5_xml_read(text, n, take_sts, &texts);

	if (texts.rc)
		rc = texts.rc;
	*grant = (struct h5_grant){0};
	/* What is granted here always ends, and is worth nothing without its token. */
	if (!rc)
		rc = texts.token && texts.expires ? take_texts(&texts, grant) : -EINVAL;
	h5_text_forget(&texts.key);
	h5_text_forget(&texts.secret);
	h5_text_forget(&texts.token);
	h5_text_forget(&texts.expires);
	return rc;
}

/* The text of a member; NULL: there is none. *good becomes false if it is no text. */
static char *member(const struct json_object *object, const char *name, bool *good)
{
	struct json_object *value = NULL;

	if (!json_object_object_get_ex(object, name, &value) || !value)
		return NULL;
	if (json_object_is_type(value, json_type_string) &&
	    strlen(json_object_get_string(value)) == (size_t)json_object_get_string_len(value))
		return (char *)json_object_get_string(value);
	*good = false;
	return NULL;
}

int h5_grant_read_json(const char *text, size_t n, struct h5_grant *grant)
{
	struct h5_json_document document;
	int rc = h5_json_read(text, n, &document);
	struct texts texts;
	bool good = true;

	*grant = (struct h5_grant){0};
	if (rc)
		return rc == -ENOMEM ? rc : -EINVAL;
	if (json_object_is_type(document.root, json_type_object)) {
		texts = (struct texts){.key = member(document.root, "AccessKeyId", &good),
				       .secret = member(document.root, "SecretAccessKey", &good),
				       .token = member(document.root, "Token", &good),
				       .expires = member(document.root, "Expiration", &good)};
		rc = good ? take_texts(&texts, grant) : -EINVAL;
	} else {
		rc = -EINVAL;
	}
	h5_json_document_release(&document);
	return rc;
}

/* ---- errors ---- */

static bool is_code(const char *text)
{
	for (const char *p = text; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '.')
			return false;
	return *text;
}

/* An error of S3, and of STS. */
static bool take_error(void *arg, const struct h5_xml_leaf *leaf)
{
	struct h5_store_error *error = arg;

	if ((h5_xml_is(leaf, "Error/Code") || h5_xml_is(leaf, "ErrorResponse/Error/Code")) &&
	    strlen(leaf->text) < sizeof error->code && is_code(leaf->text))
		strcpy(error->code, leaf->text);
	if (h5_xml_is(leaf, "Error/Region") && h5_grant_is_region(leaf->text))
		strcpy(error->region, leaf->text);
	return true;
}

void h5_store_error_read(const char *text, size_t n, struct h5_store_error *error)
{
	*error = (struct h5_store_error){0};
	if (h5_xml_read(text, n, take_error, error))
		*error = (struct h5_store_error){0};
}
