#include "remote/url.h"

#include "base/error.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SECURE "https://"
#define PLAIN  "http://"
#define BUCKET "s3://"
#define AZURE  ".core.windows.net"

enum { HOST = 256 }; /* bytes of a host's name, its NUL included */

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

bool h5_url_is_prefix(const char *url)
{
	const char *bucket = behind(url, BUCKET);

	return bucket && (!strchr(bucket, '/') || bucket[strlen(bucket) - 1] == '/');
}

/* Stores have only such. */
static bool is_bucket_name(const char *name, size_t n)
{
	bool dots = true;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)name[i];

		if (c >= 0x80 || !(isalnum(c) || strchr("-._", c)))
			return false;
		dots &= c == '.';
	}
	return !dots;
}

int h5_url_check(const char *url)
{
	const char *host = behind_scheme(url);
	size_t n = host ? strcspn(host, "/?#") : 0;

	for (const char *p = url; *p; p++)
		if (iscntrl((unsigned char)*p) || (*p == ' ' && !h5_url_is_bucket(url)))
			return h5_fail(-EINVAL, H5_UNDEF, "a URL has no blanks: write %%20");
	if (!n || (h5_url_is_bucket(url) && !is_bucket_name(host, n)))
		return h5_fail(-EINVAL, H5_UNDEF, "the URL names no %s",
			       h5_url_is_bucket(url) ? "bucket" : "server");
	if (memchr(host, '@', n))
		return h5_fail(-EINVAL, H5_UNDEF,
			       "no user and no password in a URL, which others can see: use ~/.netrc");
	if (h5_url_is_prefix(url))
		return strpbrk(url, "?#") ? h5_fail(-EINVAL, H5_UNDEF, "a prefix has no ? and no #") : 0;
	if (host[n] != '/' || !host[n + 1])
		return h5_fail(-EINVAL, H5_UNDEF, "the URL names no file");
	return 0;
}

/* The query may be a secret, and asprintf() would leave copies of it in memory that it gives back. */
char *h5_url_complete(const char *url)
{
	size_t n = strlen(url);
	char *out = malloc(n + 2);

	if (!out)
		return NULL;
	memcpy(out, url, n + 1);
	if (h5_url_is_prefix(url) && out[n - 1] != '/')
		strcpy(out + n, "/");
	return out;
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

/* Encodes all but letters, digits and the bytes of `kept`. */
static char *encode(const char *text, const char *kept)
{
	char *out = malloc(3 * strlen(text) + 1), *p = out;

	for (; out && *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < 0x80 && (isalnum(c) || strchr(kept, c)))
			*p++ = (char)c;
		else
			p += sprintf(p, "%%%02X", c);
	}
	if (out)
		*p = 0;
	return out;
}

char *h5_url_encode(const char *path)
{
	return encode(path, "-._~/");
}

char *h5_url_encode_value(const char *text)
{
	return encode(text, "-._~");
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
	bool user; /* a user is named */
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
	o.user = at;
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

bool h5_url_is_secure(const char *url)
{
	return origin_of(url).secure;
}

/* The host without its port, and an IPv6 address without its brackets. "": it has none, or a long one. */
static void take_host(const char *url, char host[HOST])
{
	struct origin o = origin_of(url);
	bool bracket = o.host && o.n && *o.host == '[';
	const char *end = o.host ? memchr(o.host, bracket ? ']' : ':', o.n) : NULL;
	size_t n = end ? (size_t)(end - o.host) : o.n;

	if (!o.host || n - bracket >= HOST || (bracket && !end))
		n = bracket;
	memcpy(host, o.host ? o.host + bracket : "", n - bracket);
	host[n - bracket] = 0;
}

bool h5_url_is_near(const char *url)
{
	struct in6_addr six;
	struct in_addr four;
	char host[HOST];

	take_host(url, host);
	return !strcasecmp(host, "localhost") ||
	       (inet_pton(AF_INET, host, &four) == 1 && ntohl(four.s_addr) >> 24 == 127) ||
	       (inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six));
}

bool h5_url_gives_credentials(const char *url)
{
	static const char *const agents[] = {"169.254.170.2", "169.254.170.23", "fd00:ec2::23"};
	char host[HOST];

	take_host(url, host);
	for (size_t i = 0; i < sizeof agents / sizeof *agents; i++)
		if (!strcasecmp(host, agents[i]))
			return true;
	return *host && (h5_url_is_secure(url) || h5_url_is_near(url));
}

char *h5_url_moved(const char *url, const char *to)
{
	const char *path = behind_scheme(url), *host = behind_scheme(to);
	char *out;

	path += strcspn(path, "/?#");
	host += strcspn(host, "/?#");
	return asprintf(&out, "%.*s%s", (int)(host - to), to, path) < 0 ? NULL : out;
}

bool h5_url_may_lead(const char *from, const char *to)
{
	struct origin x = origin_of(from), y = origin_of(to);

	return y.host && y.n && !y.user && (y.secure || !x.secure);
}

/* ---- identity ---- */

/* Parameters that sign a URL: of S3 (and its older form), Google's stores, CloudFront. A name that ends in a
 * minus stands for all that begin so. */
static const char *const signing[] = {"X-Amz-",	     "X-Goog-",	  "AWSAccessKeyId", "GoogleAccessId",
				      "Key-Pair-Id", "Signature", "Expires",	    "Policy"};
/* Those of Azure's stores, which are short: only if the host is one. */
static const char *const shared[] = {"sv",    "ss",    "srt", "sp",  "se",  "st",  "spr", "sig",
				     "skoid", "sktid", "skt", "ske", "sks", "skv", "sr",  "sip"};

static bool is_one_of(const char *name, size_t n, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t m = strlen(list[i]);

		if (!strncasecmp(name, list[i], m) && (n == m || (n > m && list[i][m - 1] == '-')))
			return true;
	}
	return false;
}

static bool is_azure(const char *url)
{
	struct origin o = origin_of(url);
	size_t m = strlen(AZURE);

	return o.host && o.n > m && !strncasecmp(o.host + o.n - m, AZURE, m);
}

static bool signs(const char *name, size_t n, bool azure)
{
	return is_one_of(name, n, signing, sizeof signing / sizeof *signing) ||
	       (azure && is_one_of(name, n, shared, sizeof shared / sizeof *shared));
}

char *h5_url_identity(const char *url)
{
	size_t n = strcspn(url, "#"), path = strcspn(url, "?#");
	bool azure = is_azure(url);
	char *out = malloc(n + 1), *p = out, separator = '?';
	const char *at = url + path, *end = url + n;

	if (!out)
		return NULL;
	p = mempcpy(p, url, path);
	for (size_t m; at < end; at += m) {
		m = 1 + strcspn(at + 1, "&#"); /* with the ? or & before it */
		if (signs(at + 1, strcspn(at + 1, "=&#"), azure))
			continue;
		*p++ = separator;
		p = mempcpy(p, at + 1, m - 1);
		separator = '&';
	}
	*p = 0;
	return out;
}
