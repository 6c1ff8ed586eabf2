#include "remote/profile.h"

#include "remote/text.h"

#include <errno.h>

enum { SETTINGS = 15 };

/* A name of a setting, and where it is kept. Those before `region` go together. */
struct setting {
	const char *name;
	char **to;
};

static void list_settings(struct h5_profile *p, struct setting settings[SETTINGS])
{
	const struct setting all[SETTINGS] = {
		{"aws_access_key_id", &p->key},
		{"aws_secret_access_key", &p->secret},
		{"aws_session_token", &p->token},
		{"region", &p->region},
		{"endpoint_url", &p->endpoint},
		{"role_arn", &p->role},
		{"source_profile", &p->source},
		{"credential_source", &p->provider},
		{"web_identity_token_file", &p->identity},
		{"role_session_name", &p->session},
		{"external_id", &p->external},
		{"mfa_serial", &p->device},
		{"credential_process", &p->runs},
		{"sso_session", &p->signs_on},
		{"sso_start_url", &p->signs_on},
	};

	memcpy(settings, all, sizeof all);
}

/* The line without its end; `rest` is what follows. */
static struct h5_text take_line(struct h5_text *rest)
{
	const char *end = memchr(rest->p, '\n', rest->n);
	struct h5_text line = {rest->p, end ? (size_t)(end - rest->p) : rest->n};

	rest->p += line.n + !!end;
	rest->n -= line.n + !!end;
	return line;
}

/* "[NAME]" or "[profile NAME]" */
static bool is_section(struct h5_text line, const char *name)
{
	static const char word[] = "profile";
	const char *end = memchr(line.p, ']', line.n);
	struct h5_text inner;

	if (!end)
		return false;
	inner = h5_text_trim((struct h5_text){line.p + 1, (size_t)(end - line.p) - 1});
	if (inner.n > sizeof word && !memcmp(inner.p, word, sizeof word - 1) &&
	    h5_text_is_blank(inner.p[sizeof word - 1])) {
		inner.p += sizeof word;
		inner.n -= sizeof word;
		inner = h5_text_trim(inner);
	}
	return h5_text_is(inner, name);
}

static int take_setting(struct h5_profile *profile, struct h5_text name, struct h5_text value)
{
	struct setting settings[SETTINGS];

	list_settings(profile, settings);
	for (size_t i = 0; i < SETTINGS; i++) {
		if (*settings[i].to || !value.n || !h5_text_is(name, settings[i].name))
			continue;
		*settings[i].to = strndup(value.p, value.n);
		return *settings[i].to ? 0 : -ENOMEM;
	}
	return 0;
}

static int read_sections(struct h5_profile *profile, struct h5_text rest, const char *name)
{
	bool ours = false;
	int rc = 0;

	while (rest.n && !rc) {
		struct h5_text line = take_line(&rest);
		const char *equals = memchr(line.p, '=', line.n);

		if (!line.n || h5_text_is_blank(*line.p) || *line.p == '#' || *line.p == ';')
			continue;
		if (*line.p == '[') {
			ours = is_section(line, name);
			profile->found |= ours;
		} else if (ours && equals) {
			struct h5_text left = {line.p, (size_t)(equals - line.p)},
				       right = {equals + 1, line.n - left.n - 1};

			rc = take_setting(profile, h5_text_trim(left), h5_text_trim(right));
		}
	}
	return rc;
}

/* Moves what `from` says to where nothing is said. */
static void merge(struct h5_profile *to, struct h5_profile *from)
{
	struct setting ours[SETTINGS], theirs[SETTINGS];
	size_t keys = 3;

	list_settings(to, ours);
	list_settings(from, theirs);
	to->found |= from->found;
	for (size_t i = to->key || !from->key || !from->secret ? keys : 0; i < SETTINGS; i++)
		if (!*ours[i].to) {
			*ours[i].to = *theirs[i].to;
			*theirs[i].to = NULL;
		}
}

int h5_profile_read(struct h5_profile *profile, const char *text, size_t n, const char *name)
{
	struct h5_profile said = {0};
	int rc = read_sections(&said, (struct h5_text){text, n}, name);

	if (!rc)
		merge(profile, &said);
	h5_profile_release(&said);
	return rc;
}

void h5_profile_release(struct h5_profile *profile)
{
	struct setting settings[SETTINGS];

	list_settings(profile, settings);
	for (size_t i = 0; i < SETTINGS; i++)
		h5_text_forget(settings[i].to);
	profile->found = false;
}
