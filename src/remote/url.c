#include "remote/url.h"

#include "base/error.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SECURE "https://"
#define PLAIN  "http://"
#define BUCKET "s3://"

/* The text behind the prefix, in upper or lower case; NULL: the text begins otherwise. */
static const char *behind(const char *text, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncasecmp(text, prefix, n) ? NULL : text + n;
}

static const char *behind_scheme(const char *url)
{
	const char *rest = behind(url, SECURE);

	if (!rest)
		rest = behind(url, PLAIN);
	return rest ? rest : behind(url, BUCKET);
}

bool h5_url_is_remote(const char *text)
{
	return behind_scheme(text);
}

bool h5_url_is_bucket(const char *url)
{
	return behind(url, BUCKET);
}

int h5_url_check(const char *url)
{
	const char *host = behind_scheme(url);
	size_t n = host ? strcspn(host, "/?#") : 0;

	for (const char *p = url; *p; p++)
		if (iscntrl((unsigned char)*p) || (*p == ' ' && !h5_url_is_bucket(url)))
			return h5_fail(-EINVAL, H5_UNDEF, "a URL has no blanks: write %%20");
	if (!n)
		return h5_fail(-EINVAL, H5_UNDEF, "the URL names no %s",
			       behind(url, BUCKET) ? "bucket" : "server");
	if (memchr(host, '@', n))
		return h5_fail(-EINVAL, H5_UNDEF,
			       "no user and no password in a URL, which others can see: use ~/.netrc");
	if (host[n] != '/' || !host[n + 1])
		return h5_fail(-EINVAL, H5_UNDEF, "the URL names no file");
	return 0;
}

char *h5_url_shown(const char *url)
{
	return strndup(url, strcspn(url, "?#"));
}

/* True: no component leads up, and none is empty. */
static bool leads_down(const char *name)
{
	for (const char *p = name;; p++) {
		size_t n = strcspn(p, "/");

		if (!n || (n == 1 && *p == '.') || (n == 2 && !memcmp(p, "..", 2)))
			return false;
		p += n;
		if (!*p)
			return true;
	}
}

char *h5_url_encode(const char *path)
{
	char *out = malloc(3 * strlen(path) + 1), *p = out;

	for (; out && *path; path++) {
		unsigned char c = (unsigned char)*path;

		if (c < 0x80 && (isalnum(c) || strchr("-._~/", c)))
			*p++ = (char)c;
		else
			p += sprintf(p, "%%%02X", c);
	}
	if (out)
		*p = 0;
	return out;
}

char *h5_url_beside(const char *url, const char *name)
{
	size_t n = strcspn(url, "?#");
	char *path = leads_down(name) ? h5_url_encode(name) : NULL, *out = NULL;

	while (n && url[n - 1] != '/')
		n--;
	if (path && asprintf(&out, "%.*s%s", (int)n, url, path) < 0)
		out = NULL;
	free(path);
	return out;
}

/* ---- origins ---- */

struct origin {
	const char *host;
	size_t n; /* of the host with its port, if that is not the scheme's own */
	bool secure;
};

static struct origin origin_of(const char *url)
{
	const char *secure = behind(url, SECURE);
	struct origin o = {.host = secure ? secure : behind(url, PLAIN), .secure = secure};
	const char *own = secure ? ":443" : ":80";
	const char *at;

	if (!o.host)
		return o;
	o.n = strcspn(o.host, "/?#");
	at = memrchr(o.host, '@', o.n);
	if (at) {
		o.n -= (size_t)(at + 1 - o.host);
		o.host = at + 1;
	}
	if (o.n > strlen(own) && !memcmp(o.host + o.n - strlen(own), own, strlen(own)))
		o.n -= strlen(own);
	return o;
}

bool h5_url_same_origin(const char *a, const char *b)
{
	struct origin x = origin_of(a), y = origin_of(b);

	return x.host && y.host && x.secure == y.secure && x.n == y.n && !strncasecmp(x.host, y.host, x.n);
}

bool h5_url_may_lead(const char *from, const char *to)
{
	struct origin x = origin_of(from), y = origin_of(to);

	return y.host && y.n && (y.secure || !x.secure);
}
