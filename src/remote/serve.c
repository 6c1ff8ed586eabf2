/* The loop of the fetcher: requests come, transfers run. */
#include "base/checked.h"
#include "remote/private.h"
#include "remote/url.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	LONG = 60 * 1000, /* milliseconds without anything to do */
	PAGES_MAX = 64,	  /* pages of listings that are here at once */
};

/* ---- requests ---- */

/* The source of a request; NULL: the daemon asks for what cannot be. */
static struct h5_source *source_of(struct h5_fetcher *f, const struct h5_remote_request *request)
{
	struct h5_source *source = request->file < H5_REMOTE_FILES ? &f->sources[request->file] : NULL;

	if (!source || request->offset % H5_REMOTE_CELL || !request->n)
		return NULL;
	if (request->what == H5_REMOTE_OPEN || request->what == H5_REMOTE_LIST)
		return source->url || request->offset ? NULL : source;
	if (request->what != H5_REMOTE_READ || !source->known || request->offset >= source->size ||
	    request->n > source->size - request->offset)
		return NULL;
	return source;
}

static bool is_sound(const struct h5_fetcher *f, const struct h5_remote_message *message, size_t size)
{
	const struct h5_remote_request *request = &message->request;

	if (size < sizeof *request || request->cells > H5_REMOTE_PART_CELLS ||
	    request->name >= H5_REMOTE_NAME ||
	    (request->name && request->what != H5_REMOTE_OPEN && request->what != H5_REMOTE_LIST) ||
	    size != sizeof *request + request->cells * sizeof *message->cells + request->name)
		return false;
	if (request->n > H5_REMOTE_PART ||
	    (request->n + H5_REMOTE_CELL - 1) / H5_REMOTE_CELL != request->cells)
		return false;
	for (uint32_t i = 0; i < request->cells; i++)
		if (message->cells[i] >= f->end.cells)
			return false;
	return true;
}

static struct h5_transfer *free_transfer(struct h5_fetcher *f)
{
	for (size_t i = 0; i < H5_REMOTE_UNDER_WAY; i++)
		if (f->transfers[i].state == H5_TRANSFER_FREE)
			return &f->transfers[i];
	return NULL;
}

static void begin_transfer(struct h5_transfer *t, struct h5_fetcher *f, struct h5_source *source,
			   const struct h5_remote_message *message)
{
	CURL *easy = t->easy;

	*t = (struct h5_transfer){.state = H5_TRANSFER_QUEUED,
				  .fetcher = f,
				  .source = source,
				  .request = message->request,
				  .until = message->request.n,
				  .unoffered = message->request.what == H5_REMOTE_LIST,
				  .easy = easy};
	memcpy(t->cells, message->cells, message->request.cells * sizeof *message->cells);
	f->sources_used = h5_max(f->sources_used, message->request.file + (size_t)1);
}

/* From a file that is here as a whole. */
static void copy_from_whole(struct h5_transfer *t)
{
	for (uint64_t at = 0; at < t->request.n; at += H5_REMOTE_CELL)
		memcpy(t->fetcher->end.memory + (size_t)t->cells[at / H5_REMOTE_CELL] * H5_REMOTE_CELL,
		       t->source->whole + t->request.offset + at,
		       (size_t)h5_min(H5_REMOTE_CELL, t->request.n - at));
	t->got = t->request.n;
	h5_transfer_reply(t, 0, H5_REMOTE_FINE, "");
}

/* The URL of the file that a message names; NULL: it must not be asked for. */
static char *url_of(const struct h5_fetcher *f, const struct h5_remote_message *message)
{
	const struct h5_remote_request *request = &message->request;
	char *name, *url;

	if (!request->name)
		return strdup(f->url);
	name = strndup((const char *)(message->cells + request->cells), request->name);
	url = name && !f->options.alone ? h5_url_beside(f->url, name) : NULL;
	free(name);
	return url;
}

/* The URL of the page of a listing that a message names; NULL: it must not be asked for. */
static char *url_of_page(const struct h5_fetcher *f, const struct h5_remote_message *message)
{
	const struct h5_remote_request *request = &message->request;
	char *name =
		f->is_s3 ? strndup((const char *)(message->cells + request->cells), request->name) : NULL;
	char *token = NULL, *url = NULL;
	size_t n = name ? strlen(name) + 1 : 0;

	if (name && n < request->name)
		token = strndup((const char *)(message->cells + request->cells) + n, request->name - n);
	if (name && (token || n >= request->name))
		url = h5_s3_listing_url(&f->s3, f->options.url, name, token);
	free(token);
	free(name);
	return url;
}

static void begin_page(struct h5_transfer *t, const struct h5_remote_message *message)
{
	struct h5_fetcher *f = t->fetcher;

	t->source->lists = true;
	if (++f->pages > PAGES_MAX)
		h5_transfer_reply(t, -ENFILE, H5_REMOTE_OTHER, "too many listings at once");
	else if (!(t->source->url = url_of_page(f, message)))
		h5_transfer_reply(t, -EACCES, H5_REMOTE_FORBIDDEN, "not a listing of the prefix");
}

/* False: the daemon must not close it. */
static bool close_source(struct h5_fetcher *f, const struct h5_remote_request *request)
{
	struct h5_source *source = request->file < H5_REMOTE_FILES ? &f->sources[request->file] : NULL;

	if (!source || !source->known || request->n || request->offset)
		return false;
	for (size_t i = 0; i < H5_REMOTE_UNDER_WAY; i++)
		if (f->transfers[i].state != H5_TRANSFER_FREE && f->transfers[i].source == source)
			return false;
	h5_source_forget(f, source);
	return true;
}

/* False: the daemon is not in its right mind. */
static bool take_request(struct h5_fetcher *f, const struct h5_remote_message *message, size_t size)
{
	bool sound = is_sound(f, message, size);
	struct h5_source *source = sound ? source_of(f, &message->request) : NULL;
	struct h5_transfer *t = free_transfer(f);

	if (sound && message->request.what == H5_REMOTE_CLOSE)
		return close_source(f, &message->request);

	if (!source || !t)
		return false;
	begin_transfer(t, f, source, message);
	if (f->setup) {
		h5_transfer_reply(t, f->setup, f->setup == -EACCES ? H5_REMOTE_FORBIDDEN : H5_REMOTE_OTHER,
				  f->setup_text);
	} else if (message->request.what == H5_REMOTE_LIST) {
		begin_page(t, message);
	} else if (message->request.what == H5_REMOTE_OPEN) {
		source->url = url_of(f, message);
		if (!source->url)
			h5_transfer_reply(t, -EACCES, H5_REMOTE_FORBIDDEN, "not a file beside the URL");
	} else if (source->whole) {
		copy_from_whole(t);
	} else {
		h5_disk_fill(t);
		if (t->got == t->request.n)
			h5_transfer_reply(t, 0, H5_REMOTE_FINE, "");
	}
	return true;
}

/* False: the daemon is gone. */
static bool take_requests(struct h5_fetcher *f)
{
	struct h5_remote_message message;
	ssize_t n;

	while ((n = read(f->end.fd, &message, sizeof message)) > 0)
		if (!take_request(f, &message, (size_t)n))
			return false;
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* ---- transfers ---- */

static unsigned count_running(const struct h5_fetcher *f)
{
	unsigned n = 0;

	for (size_t i = 0; i < H5_REMOTE_UNDER_WAY; i++)
		n += f->transfers[i].state == H5_TRANSFER_RUNNING;
	return n;
}

/* True: `a` goes before `b`. A reader waits for what is urgent; else the order is that of the requests. */
static bool goes_before(const struct h5_transfer *a, const struct h5_transfer *b)
{
	if (a->request.urgent != b->request.urgent)
		return a->request.urgent;
	return (int32_t)(a->request.id - b->request.id) < 0;
}

static struct h5_transfer *next_queued(struct h5_fetcher *f)
{
	struct h5_transfer *first = NULL;

	for (struct h5_transfer *t = f->transfers; t < f->transfers + H5_REMOTE_UNDER_WAY; t++)
		if (t->state == H5_TRANSFER_QUEUED && (!first || goes_before(t, first)))
			first = t;
	return first;
}

/* True: the request may be made now. While credentials are being got, requests wait, and those under way go
 * on. */
static bool may_start(struct h5_transfer *t, uint64_t now)
{
	struct h5_credentials *c = &t->fetcher->credentials;

	switch (h5_credentials_want(c, now)) {
	case H5_CREDENTIALS_GOOD:
		return true;
	case H5_CREDENTIALS_NONE:
		h5_transfer_reply(t, h5_transfer_opens(t) ? c->code : -EIO, c->reason, c->text);
		return false;
	default:
		return false;
	}
}

static void start_transfers(struct h5_fetcher *f)
{
	uint64_t now = h5_transfer_now();
	struct h5_transfer *t;

	for (t = f->transfers; t < f->transfers + H5_REMOTE_UNDER_WAY; t++)
		if (t->state == H5_TRANSFER_RESTING && t->due <= now)
			t->state = H5_TRANSFER_QUEUED;
	for (unsigned running = count_running(f); running < f->options.connections && (t = next_queued(f));)
		if (may_start(t, now)) {
			h5_transfer_start(t);
			running++;
		} else if (t->state == H5_TRANSFER_QUEUED) {
			return;
		}
}

static void end_transfers(struct h5_fetcher *f)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(f->multi, &left))) {
		CURLcode result = message->data.result;
		CURL *easy = message->easy_handle;
		char *t;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(easy, CURLINFO_PRIVATE, &t);
		curl_multi_remove_handle(f->multi, easy);
		if (h5_credentials_end(&f->credentials, easy, result, h5_transfer_now()))
			continue;
		h5_transfer_end((struct h5_transfer *)t, result);
	}
}

/* Milliseconds until a transfer, or a request for credentials that one waits for, is to be tried again. */
static int time_to_wait(const struct h5_fetcher *f)
{
	uint64_t now = h5_transfer_now(), until = now + LONG;
	const struct h5_credentials *c = &f->credentials;

	for (size_t i = 0; i < H5_REMOTE_UNDER_WAY; i++) {
		const struct h5_transfer *t = &f->transfers[i];

		if (t->state == H5_TRANSFER_RESTING)
			until = h5_min(until, t->due);
		if (t->state == H5_TRANSFER_QUEUED && c->state == H5_CREDENTIALS_RESTING)
			until = h5_min(until, c->due);
		if (t->state == H5_TRANSFER_QUEUED && c->state == H5_CREDENTIALS_IDLE &&
		    count_running(f) < f->options.connections)
			return 0;
	}
	return until > now ? (int)(until - now) : 0;
}

int h5_fetcher_serve(struct h5_fetcher *f)
{
	struct curl_waitfd link = {.fd = f->end.fd, .events = CURL_WAIT_POLLIN};
	int running;

	curl_multi_setopt(f->multi, CURLMOPT_MAXCONNECTS, (long)f->options.connections);
	while (!f->is_mute && take_requests(f)) {
		start_transfers(f);
		if (curl_multi_perform(f->multi, &running))
			return EXIT_FAILURE;
		end_transfers(f);
		if (curl_multi_poll(f->multi, &link, 1, time_to_wait(f), NULL))
			return EXIT_FAILURE;
	}
	for (size_t i = 0; i < f->sources_used; i++)
		h5_disk_close(&f->disk, f->sources[i].disk);
	return EXIT_SUCCESS;
}
