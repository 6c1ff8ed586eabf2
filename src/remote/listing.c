#include "remote/listing.h"

#include "base/hex.h"
#include "base/siphash.h"
#include "remote/grant.h"
#include "remote/xml.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOT "ListBucketResult/"

/* One element Contents or CommonPrefixes, as far as it has been read. All texts are owned. */
struct element {
	size_t number; /* of the element in the page; 0: none */
	bool is_folder;
	char *key, *size, *tag, *modified;
};

struct parser {
	const char *prefix;
	struct h5_listing_page *page;
	struct element now;
	char *token, *truncated, *encoding; /* owned; NULL: not seen */
	/* Keys are encoded if the page says so, which it may do behind them. So the page is read twice: the
	 * first time for what it says of itself. */
	bool takes_items; /* the second time */
	int code;
};

uint64_t h5_listing_version(const char *tag)
{
	static const uint8_t key[H5_SIPHASH_KEY] = "h5fs version";
	struct h5_text t;
	uint64_t version;

	if (tag[0] == 'W' && tag[1] == '/')
		tag += 2;
	t = (struct h5_text){tag, strlen(tag)};
	if (t.n >= 2 && t.p[0] == '"' && t.p[t.n - 1] == '"')
		t = (struct h5_text){t.p + 1, t.n - 2};
	if (!t.n)
		return 0;
	version = h5_siphash(key, t.p, t.n);
	return version ? version : 1;
}

/* ---- keys ---- */

/* Decodes in place, as values of forms are. False: it is not encoded so. *nul: there is an encoded NUL, so
 * the text ends too early. */
static bool decode(char *text, bool *nul)
{
	char *out = text;

	*nul = false;
	for (const char *p = text; *p; p++) {
		int c = *p == '+' ? ' ' : *p;

		if (c == '%') {
			c = h5_hex_byte(p + 1);
			if (c < 0)
				return false;
			*nul |= !c;
			p += 2;
		}
		*out++ = (char)c;
	}
	*out = 0;
	return true;
}

static bool is_name(const char *name)
{
	size_t n = strlen(name);

	return n && n <= H5_LISTING_NAME && !strchr(name, '/') && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0;
}

/* ---- elements ---- */

static void forget(struct element *e)
{
	free(e->key);
	free(e->size);
	free(e->tag);
	free(e->modified);
	*e = (struct element){0};
}

static bool take_size(const char *text, uint64_t *size)
{
	char *end;

	if (!text || !isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*size = strtoull(text, &end, 10);
	return !*end && !errno && *size <= INT64_MAX;
}

/* Without a tag, another size or time counts as another version. */
static uint64_t version_of(const struct element *e)
{
	uint64_t version = e->tag ? h5_listing_version(e->tag) : 0;
	char text[128];

	if (version)
		return version;
	snprintf(text, sizeof text, "%s %s", e->size, e->modified ? e->modified : "");
	return h5_listing_version(text);
}

/* The element has ended: its item is given to the caller. False: it is no page, or p->code. */
static bool end_element(struct parser *p)
{
	struct element *e = &p->now;
	size_t n = strlen(p->prefix);
	struct h5_listing_item item = {.is_folder = e->is_folder};
	bool nul = false;

	if (!e->number)
		return true;
	if (!e->key || (p->encoding && !decode(e->key, &nul)))
		return false;
	if (strncmp(e->key, p->prefix, n) != 0)
		return nul; /* the NUL may be in the prefix */
	p->page->is_used = true;
	item.name = e->key + n;
	if (e->is_folder && !nul) {
		char *slash = strchr(e->key + n, '/');

		if (!slash || slash[1])
			return false;
		*slash = 0;
	}
	if (!e->is_folder) {
		if (!take_size(e->size, &item.size) ||
		    (e->modified && !h5_grant_time(e->modified, &item.modified)))
			return false;
		item.version = version_of(e);
	}
	if (!nul && is_name(item.name) && !p->page->take(p->page->arg, &item))
		p->code = -ENOMEM;
	return !p->code;
}

/* Copies a text. False: there was one before, or p->code. */
static bool keep(struct parser *p, char **to, const char *text)
{
	if (*to)
		return false;
	*to = strdup(text);
	if (!*to)
		p->code = -ENOMEM;
	return *to;
}

/* If the leaf is in another element than the one before, that one has ended. */
static bool begin_element(struct parser *p, const struct h5_xml_leaf *leaf, bool is_folder)
{
	if (p->now.number == leaf->around)
		return true;
	if (!end_element(p))
		return false;
	forget(&p->now);
	p->now = (struct element){.number = leaf->around, .is_folder = is_folder};
	return true;
}

static bool take_item(struct parser *p, const struct h5_xml_leaf *leaf)
{
	const struct {
		const char *path;
		bool is_folder;
		char **to;
	} texts[] = {{ROOT "Contents/Key", false, &p->now.key},
		     {ROOT "Contents/Size", false, &p->now.size},
		     {ROOT "Contents/ETag", false, &p->now.tag},
		     {ROOT "Contents/LastModified", false, &p->now.modified},
		     {ROOT "CommonPrefixes/Prefix", true, &p->now.key}};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (h5_xml_is(leaf, texts[i].path))
			return begin_element(p, leaf, texts[i].is_folder) && keep(p, texts[i].to, leaf->text);
	return true;
}

static bool take_leaf(void *arg, const struct h5_xml_leaf *leaf)
{
	struct parser *p = arg;

	if (p->takes_items)
		return take_item(p, leaf);
	if (h5_xml_is(leaf, ROOT "IsTruncated"))
		return keep(p, &p->truncated, leaf->text);
	if (h5_xml_is(leaf, ROOT "NextContinuationToken"))
		return keep(p, &p->token, leaf->text);
	if (h5_xml_is(leaf, ROOT "EncodingType"))
		return keep(p, &p->encoding, leaf->text);
	return true;
}

/* Checks what a page says of itself. */
static int check_page(struct parser *p)
{
	bool more;

	if (!p->truncated || (p->encoding && strcmp(p->encoding, "url") != 0))
		return -EINVAL;
	more = !strcmp(p->truncated, "true");
	if ((!more && strcmp(p->truncated, "false") != 0) || (more && (!p->token || !*p->token)))
		return -EINVAL;
	if (!more) {
		free(p->token);
		p->token = NULL;
	}
	return 0;
}

int h5_listing_read(const char *text, size_t n, const char *prefix, struct h5_listing_page *page)
{
	struct parser p = {.prefix = prefix, .page = page};
	int rc = h5_xml_read(text, n, take_leaf, &p);

	page->next = NULL;
	page->is_used = false;
	if (!rc)
		rc = check_page(&p);
	p.takes_items = true;
	if (!rc)
		rc = h5_xml_read(text, n, take_leaf, &p);
	if (!rc && !end_element(&p))
		rc = -EINVAL;
	rc = p.code ? p.code : rc;
	if (!rc) {
		page->next = p.token;
		p.token = NULL;
	}
	forget(&p.now);
	free(p.token);
	free(p.truncated);
	free(p.encoding);
	return rc;
}
