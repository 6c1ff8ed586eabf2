#include "remote/s3.h"

#include "remote/text.h"
#include "remote/url.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEME "s3://"
#define SECURE "https://"

/* Where Amazon's servers of a region are. Regions that begin otherwise are in the first one. */
static const struct {
	const char *region, *domain;
} domains[] = {
	{"", ".amazonaws.com"},		 {"cn-", ".amazonaws.com.cn"},	 {"eusc-", ".amazonaws.eu"},
	{"us-iso-", ".c2s.ic.gov"},	 {"us-isob-", ".sc2s.sgov.gov"}, {"eu-isoe-", ".cloud.adc-e.uk"},
	{"us-isof-", ".csp.hci.ic.gov"},
};
enum { DOMAINS = sizeof domains / sizeof *domains };

static const char *domain_of(const char *region)
{
	for (size_t i = 1; i < DOMAINS; i++)
		if (!strncmp(region, domains[i].region, strlen(domains[i].region)))
			return domains[i].domain;
	return domains[0].domain;
}

/* True: a label of a host's name, of lower case. */
static bool is_label(struct h5_text t)
{
	for (size_t i = 0; i < t.n; i++)
		if (!islower((unsigned char)t.p[i]) && !isdigit((unsigned char)t.p[i]) && t.p[i] != '-')
			return false;
	return t.n;
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
	else if (is_label((struct h5_text){bucket, (size_t)n}))
		rc = asprintf(&out, SECURE "%.*s.s3.%s%s/%s", n, bucket, s3->region, domain_of(s3->region),
			      key);
	else
		rc = asprintf(&out, SECURE "s3.%s%s/%.*s/%s", s3->region, domain_of(s3->region), n, bucket,
			      key);
	free(key);
	return rc < 0 ? NULL : out;
}

/* The parameters are in their order, as a signature wants them. */
char *h5_s3_listing_url(const struct h5_s3 *s3, const char *url, const char *below, const char *token)
{
	const char *key = strchr(url + strlen(SCHEME), '/') + 1;
	char *bucket = strndup(url, (size_t)(key - url)), *whole = NULL, *out = NULL;
	char *root = bucket ? h5_s3_url(s3, bucket) : NULL, *page = h5_url_encode_value(token ? token : "");
	char *prefix = NULL;

	if (root && page && asprintf(&whole, "%s%s", key, below) < 0)
		whole = NULL;
	if (whole)
		prefix = h5_url_encode_value(whole);
	if (prefix && asprintf(&out, "%s?%s%s%sdelimiter=%%2F&encoding-type=url&list-type=2&prefix=%s", root,
			       token ? "continuation-token=" : "", page, token ? "&" : "", prefix) < 0)
		out = NULL;
	free(bucket);
	free(root);
	free(page);
	free(whole);
	free(prefix);
	return out;
}

char *h5_s3_token_url(const char *region)
{
	char *out;

	return asprintf(&out, SECURE "sts.%s%s/", region, domain_of(region)) < 0 ? NULL : out;
}

/* ---- is it the same bucket? ---- */

/* Takes `begin` off the text. */
static bool skip(struct h5_text *t, const char *begin, size_t n)
{
	if (t->n < n || memcmp(t->p, begin, n))
		return false;
	t->p += n;
	t->n -= n;
	return true;
}

/* "s3.REGION.DOMAIN", or "s3-ANYTHING.DOMAIN": hosts that Amazon alone can give a name to. */
static bool is_server(struct h5_text host)
{
	if (!skip(&host, "s3.", 3) && !skip(&host, "s3-", 3))
		return false;
	for (size_t i = 0; i < DOMAINS; i++) {
		size_t n = strlen(domains[i].domain);
		struct h5_text label = {host.p, host.n - n};

		if (host.n > n && !memcmp(host.p + host.n - n, domains[i].domain, n) && is_label(label))
			return true;
	}
	return false;
}

/* The host, and the bucket in front of it or in the path. */
static bool take_apart(const char *url, struct h5_text *bucket)
{
	struct h5_text host;
	size_t n;

	if (strncmp(url, SECURE, strlen(SECURE)))
		return false;
	host.p = url + strlen(SECURE);
	host.n = strcspn(host.p, "/?#");
	if (is_server(host) && host.p[host.n] == '/') {
		bucket->p = host.p + host.n + 1;
		bucket->n = strcspn(bucket->p, "/?#");
		return bucket->n;
	}
	n = strcspn(host.p, ".");
	*bucket = (struct h5_text){host.p, n};
	return n && n < host.n && is_server((struct h5_text){host.p + n + 1, host.n - n - 1});
}

bool h5_s3_is_same_bucket(const char *home, const char *url)
{
	struct h5_text a, b;

	return take_apart(home, &a) && take_apart(url, &b) && a.n == b.n && !memcmp(a.p, b.p, a.n);
}
