#include "remote/response.h"

#include "base/checked.h"
#include "remote/text.h"

#include <string.h>
#include <strings.h>

static bool skip(struct h5_text *t, const char *word)
{
	size_t n = strlen(word);

	if (t->n < n || strncasecmp(t->p, word, n))
		return false;
	t->p += n;
	t->n -= n;
	return true;
}

static bool take_number(struct h5_text *t, uint64_t *number)
{
	size_t digits = 0;

	*number = 0;
	for (; t->n && *t->p >= '0' && *t->p <= '9'; t->p++, t->n--, digits++)
		if (!h5_mul(*number, 10, number) || !h5_add(*number, (uint64_t)(*t->p - '0'), number))
			return false;
	return digits;
}

static void copy(char *out, struct h5_text t)
{
	memcpy(out, t.p, t.n);
	out[t.n] = 0;
}

/* "bytes FIRST-LAST/SIZE", or, with a 416, "bytes STAR/SIZE" (RFC 9110, 14.4). */
static bool take_range(struct h5_response *r, struct h5_text t)
{
	uint64_t first = 0, last = 0, size;
	bool whole;

	if (!skip(&t, "bytes "))
		return false;
	whole = skip(&t, "*");
	if (!whole && (!take_number(&t, &first) || !skip(&t, "-") || !take_number(&t, &last)))
		return false;
	if (!skip(&t, "/") || !take_number(&t, &size) || t.n || size > INT64_MAX)
		return false;
	if (!whole && (first > last || last >= size))
		return false;
	if ((r->ranged || r->whole) &&
	    (r->whole != whole || r->first != first || r->last != last || r->size != size))
		return false;
	r->whole = whole;
	r->ranged = !whole;
	r->first = first;
	r->last = last;
	r->size = size;
	return true;
}

static bool take_length(struct h5_response *r, struct h5_text t)
{
	uint64_t length;

	if (!take_number(&t, &length) || t.n || (r->measured && r->length != length))
		return false;
	r->measured = true;
	r->length = length;
	return true;
}

/* True: the bytes may stand in a field of a request. */
static bool is_printable(struct h5_text t)
{
	for (size_t i = 0; i < t.n; i++)
		if ((unsigned char)t.p[i] <= ' ' || t.p[i] == 0x7f)
			return false;
	return true;
}

static bool take_tag(struct h5_response *r, struct h5_text t)
{
	struct h5_text inner = t;

	skip(&inner, "W/");
	if (inner.n < 2 || inner.p[0] != '"' || inner.p[inner.n - 1] != '"' || t.n >= sizeof r->tag ||
	    !is_printable(t) || memchr(inner.p + 1, '"', inner.n - 2))
		return true; /* as if there were none */
	if (*r->tag && (strlen(r->tag) != t.n || memcmp(r->tag, t.p, t.n)))
		return false;
	copy(r->tag, t);
	return true;
}

static bool take_version(struct h5_response *r, struct h5_text t)
{
	if (!t.n || t.n >= sizeof r->version || !is_printable(t))
		return true; /* as if there were none */
	if (*r->version && !h5_text_is(t, r->version))
		return false;
	copy(r->version, t);
	return true;
}

static void take_region(struct h5_response *r, struct h5_text t)
{
	if (t.n >= sizeof r->region)
		return;
	copy(r->region, t);
	if (!h5_grant_is_region(r->region))
		*r->region = 0;
}

static void take_modified(struct h5_response *r, struct h5_text t)
{
	if (t.n >= sizeof r->modified)
		return;
	copy(r->modified, t);
}

/* A list of directives, some with a value behind "=" (RFC 9111, 5.2). */
static void take_control(struct h5_response *r, struct h5_text t)
{
	while (t.n) {
		const char *comma = memchr(t.p, ',', t.n);
		struct h5_text word = {t.p, comma ? (size_t)(comma - t.p) : t.n};

		t.p += word.n + !!comma;
		t.n -= word.n + !!comma;
		word = h5_text_trim(word);
		r->private |= skip(&word, "no-store") && !word.n;
	}
}

/* A list of codings; "identity" is none. */
static bool is_coding(struct h5_text t)
{
	return t.n && !(skip(&t, "identity") && !t.n);
}

/* "HTTP/1.1 206 Partial Content" */
static void begin(struct h5_response *r, struct h5_text t)
{
	uint64_t status = 0;

	*r = (struct h5_response){.seen = r->seen};
	while (t.n && *t.p != ' ') {
		t.p++;
		t.n--;
	}
	t = h5_text_trim(t);
	r->malformed = !take_number(&t, &status) || status < 100 || status > 999;
	r->status = r->malformed ? 0 : (unsigned)status;
}

bool h5_response_line(struct h5_response *r, const char *line, size_t n)
{
	struct h5_text t = {line, n};
	bool sound = true;

	r->seen += n;
	if (r->seen > H5_RESPONSE_HEAD || memchr(line, 0, n))
		return false;
	if (r->ended && r->status >= 200)
		return true;
	if (skip(&t, "HTTP/"))
		begin(r, t);
	else if (!h5_text_trim(t).n)
		r->ended = true;
	else if (skip(&t, "Content-Range:"))
		sound = take_range(r, h5_text_trim(t));
	else if (skip(&t, "Content-Length:"))
		sound = take_length(r, h5_text_trim(t));
	else if (skip(&t, "Content-Encoding:"))
		r->encoded |= is_coding(h5_text_trim(t));
	else if (skip(&t, "ETag:"))
		sound = take_tag(r, h5_text_trim(t));
	else if (skip(&t, "Last-Modified:"))
		take_modified(r, h5_text_trim(t));
	else if (skip(&t, "Cache-Control:"))
		take_control(r, t);
	else if (skip(&t, "x-amz-version-id:"))
		sound = take_version(r, h5_text_trim(t));
	else if (skip(&t, "x-amz-bucket-region:"))
		take_region(r, h5_text_trim(t));
	r->malformed |= !sound;
	return true;
}

bool h5_response_is_strong(const char *tag)
{
	return *tag == '"';
}
