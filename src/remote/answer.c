/* What the answer of a server means. */
#include "base/checked.h"
#include "remote/private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the request, if the file has so many. */
static uint64_t wanted(const struct h5_transfer *t)
{
	return h5_transfer_opens(t) ? h5_min(t->request.n, t->response.size) : t->until;
}

static bool differ(const char *a, const char *b)
{
	return *a && *b && strcmp(a, b);
}

/* True: the answer is of another file than the one that was opened. If both have strong tags, these tell: the
 * dates of several servers may differ. */
static bool is_other(const struct h5_transfer *t)
{
	const struct h5_response *r = &t->response;
	const struct h5_source *s = t->source;

	if (!s->known)
		return false;
	if (h5_response_is_strong(r->tag) && h5_response_is_strong(s->tag))
		return strcmp(r->tag, s->tag);
	return (r->ranged && r->size != s->size) || differ(r->tag, s->tag) ||
	       differ(r->modified, s->modified);
}

/* True: the body is what was asked for, or the begin of it. */
static bool fits(const struct h5_transfer *t)
{
	const struct h5_response *r = &t->response;
	uint64_t left = wanted(t) - t->got;

	if (t->source->known && r->size != t->source->size)
		return false;
	return r->ranged && !r->encoded && !is_other(t) && r->first == t->request.offset + t->got &&
	       r->last - r->first < left && (!r->measured || r->length == r->last - r->first + 1);
}

uint64_t h5_answer_room(const struct h5_transfer *t)
{
	return t->source->lists ? H5_REMOTE_LISTING
				: t->fetcher->options.whole - (t->fetcher->whole - t->whole_capacity);
}

/* True: a whole file of that length may come. */
static bool may_be_whole(const struct h5_transfer *t)
{
	uint64_t most = h5_answer_room(t);

	return h5_transfer_opens(t) && most && !t->response.encoded &&
	       (!t->response.measured || t->response.length <= most);
}

void h5_answer_head(struct h5_transfer *t)
{
	const struct h5_response *r = &t->response;

	if (r->status == 206 && !t->source->lists)
		t->body = !r->malformed && fits(t) ? H5_BODY_CELLS : H5_BODY_REFUSE;
	else if (r->status == 200)
		t->body = !r->malformed && may_be_whole(t) ? H5_BODY_WHOLE : H5_BODY_REFUSE;
	else
		t->body = H5_BODY_DISCARD;
}

/* ---- judging ---- */

/* Readers of an open file get -EIO: what it was that failed says nothing about what they asked for. */
static void refuse(const struct h5_transfer *t, struct h5_verdict *v, int code, enum h5_remote_reason reason,
		   const char *text)
{
	v->code = h5_transfer_opens(t) ? code : -EIO;
	v->reason = reason;
	snprintf(v->text, sizeof v->text, "%.*s", H5_REMOTE_TEXT - 1, text);
}

static void changed(struct h5_verdict *v)
{
	v->code = -ESTALE;
	v->reason = H5_REMOTE_CHANGED;
	snprintf(v->text, sizeof v->text, "the file has changed since it was mounted");
}

static void again(struct h5_verdict *v, const char *text)
{
	v->what = H5_AGAIN;
	v->reason = H5_REMOTE_NETWORK;
	snprintf(v->text, sizeof v->text, "%.*s", H5_REMOTE_TEXT - 1, text);
}

static bool is_about_certificates(CURLcode result)
{
	return result == CURLE_PEER_FAILED_VERIFICATION || result == CURLE_SSL_CERTPROBLEM ||
	       result == CURLE_SSL_CACERT_BADFILE || result == CURLE_SSL_ISSUER_ERROR ||
	       result == CURLE_SSL_INVALIDCERTSTATUS || result == CURLE_SSL_PINNEDPUBKEYNOTMATCH;
}

/* What libcurl says of a connection. */
static const char *words(const struct h5_transfer *t, CURLcode result)
{
	return *t->error ? t->error : curl_easy_strerror(result);
}

/* What is asked for are bytes of the file. */
static void judge_encoded(const struct h5_transfer *t, struct h5_verdict *v)
{
	static const char text[] = "the server sends the file encoded (Content-Encoding)";

	if (h5_transfer_opens(t))
		refuse(t, v, -EOPNOTSUPP, H5_REMOTE_NO_RANGES, text);
	else
		again(v, text);
}

static void judge_part(const struct h5_transfer *t, CURLcode result, struct h5_verdict *v)
{
	if (is_other(t))
		changed(v);
	else if (t->body == H5_BODY_REFUSE)
		again(v, "the server has sent another range than it was asked for");
	else if (t->got == wanted(t))
		v->what = H5_DONE;
	else
		again(v, result ? words(t, result) : "the answer was too short");
}

static void judge_whole(const struct h5_transfer *t, CURLcode result, struct h5_verdict *v)
{
	if (!h5_transfer_opens(t))
		again(v, "the server has ignored the range");
	else if (t->body == H5_BODY_REFUSE && t->source->lists)
		refuse(t, v, -EIO, H5_REMOTE_NETWORK, "a page of the listing is longer than it may be");
	else if (t->body == H5_BODY_REFUSE && !t->fetcher->options.whole)
		refuse(t, v, -EOPNOTSUPP, H5_REMOTE_NO_RANGES,
		       "the server gives no ranges of the file (remote_whole=SIZE reads a small one whole)");
	else if (t->body == H5_BODY_REFUSE)
		refuse(t, v, -EOPNOTSUPP, H5_REMOTE_NO_RANGES,
		       "the server gives no ranges of the file, which is larger than remote_whole= has room "
		       "for");
	else if (result)
		again(v, words(t, result));
	else
		v->what = H5_DONE;
}

/* An empty file has no range. */
static void judge_no_range(const struct h5_transfer *t, struct h5_verdict *v)
{
	if (!h5_transfer_opens(t))
		changed(v);
	else if (t->response.whole && !t->response.size)
		v->what = H5_DONE;
	else
		refuse(t, v, -EOPNOTSUPP, H5_REMOTE_NO_RANGES, "the server refuses the range (HTTP 416)");
}

/* What the object store says of the error, if the transfer has its words. */
static void read_error(const struct h5_transfer *t, struct h5_store_error *error)
{
	h5_store_error_read(t->said, (size_t)h5_min(t->discarded, t->fetcher->is_s3 ? sizeof t->said : 0),
			    error);
}

static bool is_expired(const struct h5_store_error *error)
{
	return !strcmp(error->code, "ExpiredToken") || !strcmp(error->code, "ExpiredTokenException") ||
	       !strcmp(error->code, "TokenRefreshRequired");
}

/* The object is there, but must be asked for in another way. */
static bool judge_place(const struct h5_transfer *t, const struct h5_store_error *error, struct h5_verdict *v)
{
	unsigned status = t->response.status;
	const char *region = *t->response.region ? t->response.region : error->region;

	if (!t->fetcher->is_s3 || !t->own || is_expired(error))
		return false;
	if ((status == 301 || status == 307 || status == 400) && *region && strcmp(region, t->region)) {
		v->what = H5_MOVED;
		strcpy(v->region, region);
		return true;
	}
	if (!t->versioned || (status != 400 && status != 403 && status != 404 && status != 501))
		return false;
	v->what = H5_UNNAMED;
	return true;
}

static void judge_status(const struct h5_transfer *t, struct h5_verdict *v)
{
	unsigned status = t->response.status;
	struct h5_store_error error;
	char text[128];

	read_error(t, &error);
	if (judge_place(t, &error, v))
		return;
	snprintf(text, sizeof text, "HTTP %u%s%s", status, *error.code ? ": " : "", error.code);
	if (status == 401 || status == 403 || status == 407 || is_expired(&error)) {
		snprintf(text, sizeof text, "no permission (HTTP %u%s%s)", status, *error.code ? ": " : "",
			 error.code);
		refuse(t, v, -EACCES, H5_REMOTE_FORBIDDEN, text);
		if (t->own && !t->renewed && is_expired(&error))
			v->what = H5_EXPIRED;
	} else if (status == 404 || status == 410) {
		snprintf(text, sizeof text, "not found (HTTP %u)", status);
		refuse(t, v, -ENOENT, H5_REMOTE_NOT_FOUND, text);
	} else if (h5_disk_is_confirmed(t)) {
		v->what = H5_DONE;
	} else if (status == 304 && t->offered) {
		again(v, "the server says of another file that it has not changed");
	} else if (status == 412 && t->source->known) {
		changed(v);
	} else if (status == 408 || status == 429 || status >= 500) {
		again(v, text);
	} else if (status / 100 == 3 && status != 304) {
		v->what = H5_ELSEWHERE;
	} else {
		refuse(t, v, -EIO, H5_REMOTE_NETWORK, text);
	}
}

void h5_answer_judge(const struct h5_transfer *t, CURLcode result, struct h5_verdict *v)
{
	const struct h5_response *r = &t->response;

	*v = (struct h5_verdict){.what = H5_REFUSED, .code = -EIO};
	if (is_about_certificates(result))
		refuse(t, v, -EIO, H5_REMOTE_CERTIFICATE, words(t, result));
	else if (r->seen > H5_RESPONSE_HEAD)
		refuse(t, v, -EIO, H5_REMOTE_NETWORK, "the server's header is too long");
	else if (!r->status)
		again(v, result ? words(t, result) : "no answer");
	else if (r->encoded && r->status / 100 == 2)
		judge_encoded(t, v);
	else if (r->status == 206 && !t->source->lists)
		judge_part(t, result, v);
	else if (r->status == 200)
		judge_whole(t, result, v);
	else if (r->status == 416 && !t->source->lists)
		judge_no_range(t, v);
	else
		judge_status(t, v);
}

/* ---- learning ---- */

static void learn_whole(struct h5_transfer *t)
{
	struct h5_source *source = t->source;

	source->size = t->whole_size;
	/* An empty file has no bytes, but counts as being here. */
	source->whole = t->whole;
	source->room = source->lists ? 0 : t->whole_capacity;
	t->whole = NULL;
	for (t->got = 0; t->got < h5_min(t->request.n, source->size);) {
		uint64_t part = h5_min(H5_REMOTE_CELL, source->size - t->got);
		size_t cell = t->cells[t->got / H5_REMOTE_CELL];

		memcpy(t->fetcher->end.memory + cell * H5_REMOTE_CELL, source->whole + t->got, (size_t)part);
		t->got += part;
	}
}

/* The file is the one whose first bytes the disk cache had. */
static void learn_confirmed(struct h5_transfer *t)
{
	const struct h5_disk_header *header = &t->offered->header;
	struct h5_source *source = t->source;

	source->size = header->size;
	source->mtime = header->mtime;
	memcpy(source->tag, header->tag, sizeof source->tag);
	t->got = h5_min(t->request.n, header->size);
}

void h5_answer_learn(struct h5_transfer *t)
{
	struct h5_source *source = t->source;
	curl_off_t time = -1;

	if (!h5_transfer_opens(t))
		return;
	memcpy(source->tag, t->response.tag, sizeof source->tag);
	memcpy(source->modified, t->response.modified, sizeof source->modified);
	if (t->fetcher->is_s3 && t->own)
		memcpy(source->version, t->response.version, sizeof source->version);
	curl_easy_getinfo(t->easy, CURLINFO_FILETIME_T, &time);
	source->mtime = time > 0 ? time : 0;
	if (h5_disk_is_confirmed(t))
		learn_confirmed(t);
	else if (t->body == H5_BODY_WHOLE)
		learn_whole(t);
	else
		source->size = t->response.size;
	source->known = true;
}
