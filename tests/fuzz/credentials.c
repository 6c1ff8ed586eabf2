/* What object stores answer, and what gives credentials for them: answers of servers, and profiles. An input
 * is the text. */
#include "fuzz.h"
#include "remote/grant.h"
#include "remote/listing.h"
#include "remote/profile.h"
#include "remote/s3.h"
#include "remote/url.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is granted may stand in a header line; what is not granted is nothing. */
static void is_sound(struct h5_grant *grant, int rc)
{
	if (rc) {
		FUZZ_HOLDS(!grant->key && !grant->secret && !grant->token);
		return;
	}
	FUZZ_HOLDS(grant->expires >= 0 && h5_grant_is_text(grant->key) && h5_grant_is_text(grant->secret));
	FUZZ_HOLDS(!grant->token || h5_grant_is_text(grant->token));
	h5_grant_release(grant);
}

static void run_grant(const void *arg, const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct h5_store_error error;
	struct h5_grant grant;

	(void)arg;
	is_sound(&grant, h5_grant_read_sts(text, size, &grant));
	is_sound(&grant, h5_grant_read_json(text, size, &grant));
	h5_store_error_read(text, size, &error);
	FUZZ_HOLDS(!*error.region || h5_grant_is_region(error.region));
	FUZZ_HOLDS(strlen(error.code) < sizeof error.code);
}

static bool are_same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* A text that is read again says nothing new. */
static void run_profile(const void *arg, const uint8_t *data, size_t size)
{
	struct h5_profile once = {0}, twice = {0};

	(void)arg;
	FUZZ_HOLDS(!h5_profile_read(&once, (const char *)data, size, "x"));
	FUZZ_HOLDS(!h5_profile_read(&twice, (const char *)data, size, "x"));
	FUZZ_HOLDS(!h5_profile_read(&twice, (const char *)data, size, "x"));
	FUZZ_HOLDS(once.found == twice.found && !once.key == !once.secret);
	FUZZ_HOLDS(are_same(once.key, twice.key) && are_same(once.secret, twice.secret) &&
		   are_same(once.token, twice.token) && are_same(once.role, twice.role));
	h5_profile_release(&once);
	h5_profile_release(&twice);
}

/* A place that a signature may go to is on a server by HTTPS, also after a region that a store has named. */
static void run_place(const void *arg, const uint8_t *data, size_t size)
{
	static const char home[] = "https://bucket.s3.us-east-1.amazonaws.com/key";
	char *url = strndup((const char *)data, size), *at;
	struct h5_s3 s3 = {0};

	(void)arg;
	FUZZ_HOLDS(url);
	if (h5_s3_is_same_bucket(home, url)) {
		const char *host = strstr(url, ".amazonaws.");

		FUZZ_HOLDS(h5_url_is_secure(url) && host && !memchr(url + 8, '/', (size_t)(host - url - 8)));
		FUZZ_HOLDS(!memchr(url, '@', strcspn(url + 8, "/") + 8));
	}
	if (h5_url_gives_credentials(url))
		FUZZ_HOLDS(h5_url_is_remote(url) && !h5_url_is_bucket(url));
	if (h5_grant_is_region(url)) {
		strcpy(s3.region, url);
		at = h5_s3_url(&s3, "s3://bucket/key");
		FUZZ_HOLDS(at && h5_url_is_secure(at) && strstr(at, "/key") &&
			   strcspn(at + 8, "/") + 12 == strlen(at));
		free(at);
	}
	free(url);
}

static bool check_item(void *arg, const struct h5_listing_item *item)
{
	size_t n = strlen(item->name), *count = arg;

	FUZZ_HOLDS(n && n <= H5_LISTING_NAME && !strchr(item->name, '/'));
	FUZZ_HOLDS(strcmp(item->name, ".") && strcmp(item->name, ".."));
	FUZZ_HOLDS(item->is_folder ? !item->version && !item->size
				   : item->version && item->size <= INT64_MAX);
	++*count;
	return true;
}

/* Each item is a name of a file, and takes some bytes of the page; a page that goes on says how. */
static void run_listing(const void *arg, const uint8_t *data, size_t size)
{
	static const char *const prefixes[] = {"", "p/", "a/b/"};

	(void)arg;
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
		size_t count = 0;
		struct h5_listing_page page = {.take = check_item, .arg = &count};
		int rc = h5_listing_read((const char *)data, size, prefixes[i], &page);

		FUZZ_HOLDS(!rc || rc == -EINVAL);
		FUZZ_HOLDS(!page.next || (!rc && *page.next));
		FUZZ_HOLDS(count <= size / 16 && (rc || !count || page.is_used));
		free(page.next);
	}
}

bool fuzz_credential_at(unsigned n, struct fuzz_target *target)
{
	static const struct fuzz_target targets[] = {{.name = "grant", .run = run_grant},
						     {.name = "profile", .run = run_profile},
						     {.name = "place", .run = run_place},
						     {.name = "listing", .run = run_listing}};

	if (n >= sizeof targets / sizeof *targets)
		return false;
	*target = targets[n];
	return true;
}
