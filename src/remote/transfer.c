/* One transfer: its HTTP requests, and the reply to the daemon. */
#include "base/checked.h"
#include "remote/handle.h"
#include "remote/listing.h"
#include "remote/private.h"
#include "remote/url.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	REDIRECTS_MAX = 10,
	DISCARD_MAX = 64 << 10, /* bytes of an error's body; beyond that the connection is given up */
	BUFFER = 512 << 10,
	PAUSE_FIRST = 100, /* milliseconds before the second try */
	PAUSE_MOST = 10 * 1000,
	PAUSE_ASKED_MOST = 120 * 1000, /* that a server may ask for */
	CONNECT_TRIES = 3,	       /* of opening a file, if nobody answers */
	RECENT = 10 * 1000,	       /* milliseconds after a failure in which one try must do */
	AT_ONCE = 1000,		       /* after one in which nothing came: there is no try at all */
};

uint64_t h5_transfer_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- the end ---- */

void h5_source_forget(struct h5_fetcher *f, struct h5_source *source)
{
	f->whole -= source->room;
	f->pages -= source->lists;
	h5_disk_close(&f->disk, source->disk);
	free(source->whole);
	free(source->url);
	free(source->target);
	*source = (struct h5_source){0};
}

void h5_transfer_reply(struct h5_transfer *t, int code, enum h5_remote_reason reason, const char *text)
{
	char *note = t->fetcher->disk.note;
	struct h5_remote_reply reply = {.id = t->request.id,
					.code = code,
					.reason = reason,
					.requests = t->requests,
					.repeated = t->tries ? t->tries - 1 : 0,
					.received = t->received,
					.from_disk = code ? 0 : t->from_disk,
					.got = t->got,
					.size = t->source->size,
					.mtime = t->source->mtime,
					.version = code ? 0 : h5_listing_version(t->source->tag)};

	h5_disk_end(t);
	snprintf(reply.text, sizeof reply.text, "%s", code ? text : note);
	if (!code)
		*note = 0;
	if (t->whole && !t->source->lists)
		t->fetcher->whole -= t->whole_capacity;
	free(t->whole);
	curl_slist_free_all(t->fields);
	t->state = H5_TRANSFER_FREE;
	if (code && h5_transfer_opens(t))
		h5_source_forget(t->fetcher, t->source);
	/* There is always room for as many replies as there can be. If there is none nevertheless, or the
	 * daemon is gone, the loop ends: nobody shall wait for a reply that does not come. */
	while (!t->fetcher->is_mute &&
	       send(t->fetcher->end.fd, &reply, sizeof reply, MSG_NOSIGNAL) != sizeof reply)
		t->fetcher->is_mute = errno != EINTR;
}

/* ---- what libcurl calls ---- */

static size_t take_line(char *line, size_t size, size_t n, void *arg)
{
	struct h5_transfer *t = arg;

	return h5_response_line(&t->response, line, size * n) ? size * n : 0;
}

/* The byte at `got` of the request, and how many may follow it in the same cell. */
static uint8_t *place_of(const struct h5_transfer *t, size_t *room)
{
	uint64_t cell = t->got / H5_REMOTE_CELL, within = t->got % H5_REMOTE_CELL;

	*room = (size_t)h5_min(H5_REMOTE_CELL - within, t->until - t->got);
	return t->fetcher->end.memory + (size_t)t->cells[cell] * H5_REMOTE_CELL + within;
}

static bool take_bytes(struct h5_transfer *t, const char *data, size_t n)
{
	h5_disk_keep(t, data, (size_t)h5_min(n, t->until - t->got));
	while (n) {
		size_t room, part;
		uint8_t *place;

		/* If there is more than was asked for, or promised, what is not on the disk yet is not kept.
		 */
		if (t->got == t->until || t->request.offset + t->got > t->response.last) {
			t->kept_size = 0;
			return false;
		}
		place = place_of(t, &room);
		part = (size_t)h5_min(n, room);
		memcpy(place, data, part);
		t->got += part;
		data += part;
		n -= part;
	}
	return true;
}

static bool take_whole(struct h5_transfer *t, const char *data, size_t n)
{
	uint64_t size = t->whole_size + n, room = h5_answer_room(t);

	if (size > room)
		return false;
	if (size > t->whole_capacity) {
		uint64_t capacity = h5_min(h5_max(2 * t->whole_capacity, size), room);
		uint8_t *larger = realloc(t->whole, (size_t)capacity);

		if (!larger)
			return false;
		t->whole = larger;
		t->fetcher->whole += t->source->lists ? 0 : capacity - t->whole_capacity;
		t->whole_capacity = capacity;
	}
	memcpy(t->whole + t->whole_size, data, n);
	t->whole_size = size;
	return true;
}

/* Keeps the begin. */
static bool discard(struct h5_transfer *t, const char *data, size_t n)
{
	if (t->discarded < sizeof t->said)
		memcpy(t->said + t->discarded, data, h5_min(n, sizeof t->said - t->discarded));
	t->discarded += n;
	return t->discarded <= DISCARD_MAX;
}

static size_t take_body(char *data, size_t size, size_t count, void *arg)
{
	struct h5_transfer *t = arg;
	size_t n = size * count;
	bool good = false;

	t->received += n;
	if (t->body == H5_BODY_UNDECIDED)
		h5_answer_head(t);
	if (t->body == H5_BODY_CELLS)
		good = take_bytes(t, data, n);
	else if (t->body == H5_BODY_WHOLE)
		good = take_whole(t, data, n);
	else if (t->body == H5_BODY_DISCARD)
		good = discard(t, data, n);
	if (!good && t->body != H5_BODY_DISCARD)
		t->body = H5_BODY_REFUSE;
	return good ? n : 0;
}

/* ---- the HTTP request ---- */

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" /* the hash of no bytes */

/* Signs for the object store, unless it is asked by nobody. */
static bool sign(struct h5_transfer *t)
{
	const struct h5_credentials *c = &t->fetcher->credentials;

	t->generation = c->generation;
	return !c->now.key || (h5_handle_add(&t->fields, "x-amz-content-sha256: " EMPTY) &&
			       h5_handle_sign(t->easy, &t->fields, &c->now, t->fetcher->s3.region, "s3"));
}

/* Header lines of our own. Those that the user has given go to the server of the URL alone. */
static bool set_fields(struct h5_transfer *t)
{
	curl_slist_free_all(t->fields);
	t->fields = NULL;
	if (t->source->known && h5_response_is_strong(t->source->tag) &&
	    !h5_handle_add(&t->fields, "If-Match: %s", t->source->tag))
		return false;
	if (t->offered && !h5_handle_add(&t->fields, "If-None-Match: %s", t->offered->header.tag))
		return false;
	if (t->own && !sign(t))
		return false;
	for (const struct curl_slist *f = t->own ? t->fetcher->fields : NULL; f; f = f->next)
		if (!h5_handle_add(&t->fields, "%s", f->data))
			return false;
	return !curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->fields);
}

static void set_callbacks(struct h5_transfer *t)
{
	curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t);
	curl_easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->error);
	curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, take_line);
	curl_easy_setopt(t->easy, CURLOPT_HEADERDATA, t);
	curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
}

static void set_limits(CURL *easy, unsigned timeout)
{
#if LIBCURL_VERSION_NUM >= 0x075700
	/* A try that ends while a name is looked up does not wait for that: all others would, too. */
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
	curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)BUFFER);
	curl_easy_setopt(easy, CURLOPT_FILETIME, 1L);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)timeout);
	/* A server that trickles would else hold a reader for days. */
	curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, (long)h5_max(H5_REMOTE_CELL / timeout, 1));
	curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)timeout);
}

/* A server that does not answer may be elsewhere by now, so its name is looked up again. */
static void set_lookup(const struct h5_transfer *t)
{
	if (t->tries > 1 || t->source->failed)
		curl_easy_setopt(t->easy, CURLOPT_DNS_CACHE_TIMEOUT, 0L);
}

/* True: the URL's own server may see who asks; so may all servers of Amazon's store, for the same bucket. */
static bool is_own(const struct h5_fetcher *f, const char *url)
{
	return h5_url_same_origin(url, f->url) ||
	       (f->is_s3 && !f->s3.endpoint && h5_s3_is_same_bucket(f->url, url));
}

/* With the version of the object that was opened, if the store keeps versions. */
static bool set_url(struct h5_transfer *t, const char *url)
{
	char *version, *full = NULL;
	bool good;

	t->versioned = t->own && t->source->known && *t->source->version && !t->plain && !strchr(url, '?');
	if (!t->versioned)
		return !curl_easy_setopt(t->easy, CURLOPT_URL, url);
	version = h5_url_encode_value(t->source->version);
	good = version && asprintf(&full, "%s?versionId=%s", url, version) >= 0 &&
	       !curl_easy_setopt(t->easy, CURLOPT_URL, full);
	free(version);
	free(full);
	return good;
}

static bool set_up(struct h5_transfer *t)
{
	const struct h5_source *source = t->source;
	const char *url = source->target ? source->target : source->url;
	uint64_t first = t->request.offset + t->got, last = t->request.offset + t->until - 1;
	char range[64];

	if (!h5_handle_renew(&t->easy, t->fetcher->certificates))
		return false;
	t->own = is_own(t->fetcher, url);
	strcpy(t->region, t->fetcher->s3.region);
	snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, first, last);
	set_callbacks(t);
	set_limits(t->easy, t->fetcher->options.timeout);
	set_lookup(t);
	/* "." and ".." may stand in the name of an object. */
	curl_easy_setopt(t->easy, CURLOPT_PATH_AS_IS, (long)t->fetcher->is_s3);
	if (t->own && !t->fetcher->is_s3)
		curl_easy_setopt(t->easy, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
	if (!source->lists && curl_easy_setopt(t->easy, CURLOPT_RANGE, range))
		return false;
	return set_url(t, url) && set_fields(t);
}

/* True: others have waited in vain until now, so this one does not begin to. */
static bool is_hopeless(const struct h5_transfer *t)
{
	const struct h5_source *source = t->source;

	return !t->tries && source->failed && source->silent && h5_transfer_now() - source->failed < AT_ONCE;
}

void h5_transfer_start(struct h5_transfer *t)
{
	if (is_hopeless(t)) {
		h5_transfer_reply(t, -EIO, H5_REMOTE_NETWORK, "no answer in time");
		return;
	}
	/* What came of a file that is not known yet may be of another version. */
	if (!t->source->known) {
		t->got = 0;
		h5_disk_offer(t);
	}
	/* All came, and more: nothing of it is sure. */
	if (t->got == t->until)
		t->got = 0;
	t->response = (struct h5_response){0};
	t->body = H5_BODY_UNDECIDED;
	t->discarded = t->whole_size = 0;
	t->error[0] = 0;
	t->tries++;
	t->requests++;
	t->state = H5_TRANSFER_RUNNING;
	if (!set_up(t) || curl_multi_add_handle(t->fetcher->multi, t->easy))
		h5_transfer_reply(t, -ENOMEM, H5_REMOTE_OTHER, "no memory for a request");
}

/* ---- what comes next ---- */

/* The file's own URL is asked next. */
static void forget_target(struct h5_source *source)
{
	free(source->target);
	source->target = NULL;
}

/* Milliseconds before the next try: twice as many each time, and not the same for all. */
static uint64_t pause_before(const struct h5_transfer *t)
{
	uint64_t pause = h5_min((uint64_t)PAUSE_FIRST << h5_min(t->tries - 1, 10), PAUSE_MOST);
	uint32_t chance = 0;

	if (getrandom(&chance, sizeof chance, GRND_NONBLOCK) < 0)
		chance = t->request.id;
	return pause / 2 + chance % (pause / 2 + 1);
}

static bool is_alone(CURLcode result)
{
	return result == CURLE_COULDNT_CONNECT || result == CURLE_COULDNT_RESOLVE_HOST;
}

/* How often a request is tried. If the server or the network has failed just now, nobody waits for it as long
 * again. */
static unsigned tries_of(const struct h5_transfer *t, CURLcode result)
{
	unsigned most = t->fetcher->options.tries;
	uint64_t failed = t->source->failed;

	if (failed && h5_transfer_now() - failed < RECENT)
		return 1;
	return h5_transfer_opens(t) && is_alone(result) ? (unsigned)h5_min(CONNECT_TRIES, most) : most;
}

/* True: it is tried again, at the time that the server has asked for. */
static bool try_again(struct h5_transfer *t, CURLcode result)
{
	curl_off_t asked = 0;

	if (t->tries >= tries_of(t, result))
		return false;
	if (is_alone(result))
		forget_target(t->source); /* there may be another place by now */
	t->redirects = 0;
	curl_easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &asked);
	if (asked > PAUSE_ASKED_MOST / 1000)
		return false;
	t->due = h5_transfer_now() + h5_max(pause_before(t), asked > 0 ? (uint64_t)asked * 1000 : 0);
	t->state = H5_TRANSFER_RESTING;
	return true;
}

/* Not since it has failed: that is no try. */
static void ask_anew(struct h5_transfer *t)
{
	t->tries--;
	t->state = H5_TRANSFER_QUEUED;
}

/* Remembers where a redirect leads. False: it may not lead there. */
static bool go_elsewhere(struct h5_transfer *t)
{
	struct h5_source *source = t->source;
	char *to = NULL;

	if (curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &to) || !to || ++t->redirects > REDIRECTS_MAX ||
	    !h5_url_may_lead(source->target ? source->target : source->url, to))
		return false;
	to = strdup(to);
	if (!to)
		return false;
	free(source->target);
	source->target = to;
	h5_disk_move(t->fetcher, source);
	ask_anew(t);
	return true;
}

/* From now on the store is asked, and requests are signed, for that region. At Amazon, each has servers of
 * its own. False: no memory, and it is the old region that counts: files that have been moved meanwhile will
 * be told again. */
static bool change_region(struct h5_fetcher *f, const char *region)
{
	struct h5_s3 there = f->s3;
	char *url;

	strcpy(there.region, region);
	url = h5_s3_url(&there, f->options.url);
	if (!url)
		return false;
	for (size_t i = 0; i < f->sources_used; i++) {
		struct h5_source *source = &f->sources[i];
		char *moved = source->url ? h5_url_moved(source->url, url) : NULL;

		if (source->url && !moved) {
			free(url);
			return false;
		}
		free(source->url);
		source->url = moved;
	}
	free(f->url);
	f->url = url;
	f->s3 = there;
	return true;
}

/* The store has named the region; the host is never taken from an answer. */
static void go_to_region(struct h5_transfer *t, const char *region)
{
	if (++t->redirects > REDIRECTS_MAX) {
		h5_transfer_reply(t, -EIO, H5_REMOTE_NETWORK, "the store names one region after another");
	} else if (strcmp(region, t->fetcher->s3.region) && !change_region(t->fetcher, region)) {
		h5_transfer_reply(t, -ENOMEM, H5_REMOTE_OTHER, "no memory for a request");
	} else {
		forget_target(t->source);
		ask_anew(t);
	}
}

/* A version may be asked for only with a right of its own. Without that, If-Match keeps versions apart. */
static void go_without_version(struct h5_transfer *t)
{
	t->plain = true;
	ask_anew(t);
}

/* What an answer that was good says of the next requests. */
static void take_hints(struct h5_transfer *t)
{
	if (t->own)
		h5_credentials_prove(&t->fetcher->credentials, t->generation);
	if (t->plain)
		*t->source->version = 0;
}

/* A place that was remembered may have been a place for a while only. True: the file's own URL is asked
 * again.
 */
static bool go_back(struct h5_transfer *t)
{
	struct h5_source *source = t->source;

	if (!source->target || t->redirects)
		return false;
	forget_target(source);
	t->redirects++;
	t->state = H5_TRANSFER_QUEUED;
	return true;
}

/* True: it is tried again with newer credentials. */
static bool wait_for_newer(struct h5_transfer *t)
{
	if (!h5_credentials_refuse(&t->fetcher->credentials, t->generation, h5_transfer_now()))
		return false;
	t->renewed = true;
	ask_anew(t);
	return true;
}

static void reply_last(struct h5_transfer *t, CURLcode result, const struct h5_verdict *verdict)
{
	char text[H5_REMOTE_TEXT + 64];

	if (t->tries > 1)
		snprintf(text, sizeof text, "%s, after %u tries", verdict->text, t->tries);
	else
		snprintf(text, sizeof text, "%s", verdict->text);
	t->source->failed = h5_transfer_now();
	t->source->silent = result == CURLE_OPERATION_TIMEDOUT;
	h5_transfer_reply(t, verdict->code, verdict->reason, text);
}

void h5_transfer_end(struct h5_transfer *t, CURLcode result)
{
	struct h5_verdict verdict;

	if (t->body == H5_BODY_UNDECIDED)
		h5_answer_head(t);
	h5_answer_judge(t, result, &verdict);
	switch (verdict.what) {
	case H5_DONE:
		take_hints(t);
		h5_answer_learn(t);
		h5_disk_learn(t);
		if (t->request.what == H5_REMOTE_READ)
			t->got = t->request.n;
		t->source->failed = 0;
		h5_transfer_reply(t, 0, H5_REMOTE_FINE, "");
		break;
	case H5_AGAIN:
		if (!try_again(t, result))
			reply_last(t, result, &verdict);
		break;
	case H5_MOVED:
		go_to_region(t, verdict.region);
		break;
	case H5_UNNAMED:
		go_without_version(t);
		break;
	case H5_EXPIRED:
		if (!wait_for_newer(t))
			h5_transfer_reply(t, verdict.code, verdict.reason, verdict.text);
		break;
	case H5_ELSEWHERE:
		if (!go_elsewhere(t))
			h5_transfer_reply(t, -EIO, H5_REMOTE_NETWORK,
					  "a redirect that is not followed: a loop, or not to HTTP(S)");
		break;
	default:
		if (verdict.reason == H5_REMOTE_CHANGED || !go_back(t))
			h5_transfer_reply(t, verdict.code, verdict.reason, verdict.text);
	}
}
