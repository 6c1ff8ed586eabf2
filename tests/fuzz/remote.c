/* Targets for what the daemon and the fetcher say to each other. Each side gets what the other would send if
 * it were hostile. */
#include "config.h"

#include "fuzz.h"
#include "server.h"

#include "base/checked.h"
#include "io/remote_link.h"
#include "remote/response.h"
#include "remote/url.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The next n bytes of an input, or zeros if it is at its end. */
static uint64_t take(struct h5_reader *r, size_t n)
{
	uint64_t value = 0;

	for (size_t i = 0; i < n; i++)
		value |= (h5_reader_left(r) ? (uint64_t)h5_read_u8(r) : 0) << 8 * i;
	return value;
}

/* ---- the daemon, with a fetcher that is hostile ---- */

enum { OPERATIONS_MAX = 60, RANGES_MAX = 8, REPLIES_MAX = 400 };

/* A thread that answers as the input tells. */
struct liar {
	struct h5_remote_end end;
	struct h5_reader script;
	uint64_t size;			/* of each file */
	uint64_t told[H5_REMOTE_FILES]; /* what the daemon has been told it is */
	atomic_bool mixed;		/* it was told of bytes that are not there */
	unsigned kept, left;
	struct h5_remote_reply replies[H5_REMOTE_UNDER_WAY];
};

/* The first bytes of each cell tell which one it is. */
static uint64_t mark_of(uint64_t offset)
{
	return offset * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

/* What the daemon asks for is what a fetcher serves. */
static void check_request(const struct liar *l, const struct h5_remote_message *message, size_t size)
{
	const struct h5_remote_request *q = &message->request;

	FUZZ_HOLDS(size == sizeof *q + q->cells * sizeof *message->cells + q->name);
	if (q->what == H5_REMOTE_CLOSE) {
		FUZZ_HOLDS(q->file < H5_REMOTE_FILES && !q->n && !q->offset && !q->cells && !q->name);
		return;
	}
	FUZZ_HOLDS(q->n && q->n <= H5_REMOTE_PART && q->file < H5_REMOTE_FILES &&
		   !(q->offset % H5_REMOTE_CELL));
	FUZZ_HOLDS((q->n + H5_REMOTE_CELL - 1) / H5_REMOTE_CELL == q->cells &&
		   q->cells <= H5_REMOTE_PART_CELLS);
	if (q->what == H5_REMOTE_READ)
		FUZZ_HOLDS(q->offset < l->told[q->file] && q->n <= l->told[q->file] - q->offset);
	else
		FUZZ_HOLDS((q->what == H5_REMOTE_OPEN || q->what == H5_REMOTE_LIST) && !q->offset &&
			   q->name < H5_REMOTE_NAME);
	for (uint32_t i = 0; i < q->cells; i++)
		FUZZ_HOLDS(message->cells[i] < l->end.cells);
}

static void bring(const struct liar *l, const struct h5_remote_message *message)
{
	for (uint32_t i = 0; i < message->request.cells; i++) {
		uint64_t mark = mark_of(message->request.offset + (uint64_t)i * H5_REMOTE_CELL);

		memcpy(l->end.memory + (size_t)message->cells[i] * H5_REMOTE_CELL, &mark, sizeof mark);
	}
}

/* One that holds, unless the input wants it otherwise. */
static struct h5_remote_reply reply_to(struct liar *l, const struct h5_remote_request *q)
{
	struct h5_remote_reply reply = {.id = q->id,
					.size = l->size,
					.got = q->what == H5_REMOTE_READ ? q->n : h5_min(q->n, l->size)};
	uint8_t lie = (uint8_t)take(&l->script, 1);

	if (lie & 1)
		reply.code = (int32_t)take(&l->script, 2) - 4200;
	if (lie & 2) {
		reply.id ^= (uint32_t)take(&l->script, 1);
		l->mixed |= reply.id != q->id;
	}
	if (lie & 4)
		reply.got = take(&l->script, 8);
	if (lie & 8)
		reply.size = take(&l->script, 8);
	if (lie & 16)
		reply.reason = (uint32_t)take(&l->script, 4);
	if (lie & 32)
		memset(reply.text, (int)take(&l->script, 1), sizeof reply.text);
	if (q->what != H5_REMOTE_READ)
		l->told[q->file] = reply.size;
	return reply;
}

static void answer(struct liar *l, const struct h5_remote_message *message)
{
	struct h5_remote_reply reply = reply_to(l, &message->request);
	uint8_t when = (uint8_t)take(&l->script, 1);

	bring(l, message);
	if (when & 1 && l->kept < H5_REMOTE_UNDER_WAY) {
		l->replies[l->kept++] = reply;
		return;
	}
	for (unsigned i = 0; i <= (when >> 6 == 3); i++) /* now and then the same twice */
		(void)!send(l->end.fd, &reply, sizeof reply - (when >> 4 == 7), MSG_NOSIGNAL);
}

/* Those that were kept come in the opposite order, once nothing more is asked. */
static void answer_late(struct liar *l)
{
	while (l->kept)
		(void)!send(l->end.fd, &l->replies[--l->kept], sizeof *l->replies, MSG_NOSIGNAL);
}

static void *lie(void *arg)
{
	struct liar *l = arg;
	struct pollfd asked = {.fd = l->end.fd, .events = POLLIN};
	struct h5_remote_message message;
	ssize_t n;

	while (l->left--) {
		if (!poll(&asked, 1, l->kept ? 1 : -1)) {
			answer_late(l);
			continue;
		}
		n = read(l->end.fd, &message, sizeof message);
		if (n <= 0)
			break;
		check_request(l, &message, (size_t)n);
		if (message.request.what != H5_REMOTE_CLOSE)
			answer(l, &message);
	}
	shutdown(l->end.fd, SHUT_RDWR);
	return NULL;
}

static void read_some(struct h5_reader *r, const struct liar *l, struct h5_io *io, uint64_t size)
{
	static uint8_t buffer[160 << 10];
	uint64_t offset = take(r, 4) * take(r, 2) * take(r, 2), mark;
	size_t n = (size_t)(take(r, 3) % sizeof buffer), got = 0;

	if (h5_io_read_some(io, offset, buffer, n, &got))
		return;
	FUZZ_HOLDS(got <= n && (offset >= size || got == h5_min(n, size - offset)));
	fuzz_touch(buffer, got);
	if (offset % H5_REMOTE_CELL || got < sizeof mark)
		return;
	mark = mark_of(offset);
	FUZZ_HOLDS(l->mixed || !memcmp(buffer, &mark, sizeof mark));
}

/* Ranges as a damaged file would have them, as far as the contract of h5_io_want() goes. */
static void want_some(struct h5_reader *r, struct h5_io *io, uint64_t size)
{
	struct h5_io_range ranges[RANGES_MAX];
	uint64_t at = take(r, 4) * take(r, 2) * take(r, 2);
	size_t count = take(r, 1) % (RANGES_MAX + 1), kept = 0;

	for (size_t i = 0; i < count && at < size; i++) {
		uint64_t n = h5_min(take(r, 3) * take(r, 2), size - at);

		if (n)
			ranges[kept++] = (struct h5_io_range){at, n};
		at += h5_min(take(r, 3) * take(r, 1), size - at);
	}
	h5_io_want(io, ranges, kept, take(r, 1) & 1);
}

static void list_some(struct h5_remote *link, const char *below)
{
	char *page;
	size_t n;

	if (h5_remote_list(link, below, *below ? "token" : NULL, &page, &n))
		return;
	fuzz_touch(page, n);
	free(page);
}

static void use(struct h5_reader *r, const struct liar *l, struct h5_remote *link)
{
	static const char *const names[] = {"", "a", "b/c", "x.h5"};
	struct h5_remote_statistics statistics;
	struct h5_io *io = NULL;

	for (unsigned i = 0; i < OPERATIONS_MAX && h5_reader_left(r); i++) {
		uint8_t what = h5_read_u8(r);
		struct h5_io_stat st;

		if (!io && h5_io_open_remote(link, names[what / 4 % 4], &io))
			continue;
		h5_io_stat(io, &st);
		if (what % 4 == 1)
			want_some(r, io, st.size);
		else if (what % 4 == 2)
			h5_remote_statistics(link, &statistics);
		else if (what % 64 == 3)
			list_some(link, names[what / 64]);
		else
			read_some(r, l, io, st.size);
		if (what >= 192) {
			h5_io_close(io);
			io = NULL;
		}
	}
	if (io)
		h5_io_close(io);
}

/* The size of the files (8 bytes), that of the fetcher's script (2), the script, and what the daemon does. */
static void run_replies(const void *arg, const uint8_t *data, size_t size)
{
	static struct liar liar;
	struct h5_reader r = h5_reader_init(data, size, 0, 8, 8);
	struct h5_remote *link;
	pthread_t thread;
	size_t script;

	(void)arg;
	memset(&liar, 0, sizeof liar);
	liar.size = take(&r, 8);
	liar.left = REPLIES_MAX;
	script = (size_t)h5_min(take(&r, 2), h5_reader_left(&r));
	liar.script = h5_reader_init(data + (size - h5_reader_left(&r)), script, 0, 8, 8);
	h5_reader_skip(&r, script);
	FUZZ_HOLDS(!h5_remote_new("http://host/folder/x.h5", 0, 32, &link, &liar.end));
	FUZZ_HOLDS(!pthread_create(&thread, NULL, lie, &liar));
	use(&r, &liar, link);
	shutdown(liar.end.fd, SHUT_RDWR); /* ends the thread before the memory that both share goes */
	pthread_join(thread, NULL);
	h5_remote_close(link);
	close(liar.end.fd);
}

/* ---- the fetcher, with a daemon that is hostile ---- */

#ifdef HAVE_LIBCURL

#include "idle_fetcher.h"

#define LISTING "http://host/folder/?"

enum { CELLS = 48, FILES = 6, MESSAGES_MAX = 64, WHOLE = 100000 };

/* Cells of numbers that follow from the first one. */
static void number_cells(struct h5_reader *r, struct h5_remote_message *message, uint32_t count)
{
	uint32_t first = (uint32_t)take(r, 1), step = (uint32_t)take(r, 1);

	for (uint32_t i = 0; i < count && i < H5_REMOTE_PART_CELLS; i++)
		message->cells[i] = first + i * step;
}

/* A request with numbers of any size, which then fit each other, unless the input wants it otherwise. */
static size_t make_message(struct h5_reader *r, struct h5_remote_message *message)
{
	struct h5_remote_request *q = &message->request;
	uint8_t how = (uint8_t)take(r, 1);
	uint64_t offset = take(r, how & 1 ? 8 : 2), n = take(r, how & 2 ? 8 : 3);
	uint64_t count = how & 4 ? take(r, 4) : (n + H5_REMOTE_CELL - 1) / H5_REMOTE_CELL;
	uint32_t name = (uint32_t)take(r, how & 8 ? 4 : 1), there;
	size_t size;

	*q = (struct h5_remote_request){.what = (uint32_t)take(r, 1) % 5,
					.id = (uint32_t)take(r, 1),
					.file = (uint32_t)take(r, how & 16 ? 4 : 1) %
						(how & 16 ? UINT32_MAX : FILES),
					.cells = (uint32_t)count,
					.name = name,
					.offset = how & 1 ? offset : offset * H5_REMOTE_CELL,
					.n = n};
	number_cells(r, message, q->cells);
	there = (uint32_t)h5_min(count, H5_REMOTE_PART_CELLS);
	for (uint32_t i = 0; i < name && i < H5_REMOTE_NAME; i++)
		((char *)(message->cells + there))[i] = (char)take(r, 1);
	size = sizeof *q + there * sizeof *message->cells + h5_min(name, H5_REMOTE_NAME);
	return how & 32 ? size ^ take(r, 1) : size;
}

/* What it would do is within its memory and its file, and beneath the folder of its URL. */
static void check_transfer(const struct h5_fetcher *f, const struct h5_transfer *t)
{
	static const char folder[] = "http://host/folder/";

	if (t->state == H5_TRANSFER_FREE)
		return;
	FUZZ_HOLDS(t->state == H5_TRANSFER_QUEUED);
	FUZZ_HOLDS(t->request.n <= (uint64_t)t->request.cells * H5_REMOTE_CELL);
	for (uint32_t i = 0; i < t->request.cells; i++)
		FUZZ_HOLDS(t->cells[i] < f->end.cells);
	if (t->request.what == H5_REMOTE_READ)
		FUZZ_HOLDS(t->source->known && t->request.offset + t->request.n <= t->source->size);
	if (t->request.what == H5_REMOTE_LIST) {
		FUZZ_HOLDS(t->source->lists && !strncmp(t->source->url, LISTING, strlen(LISTING)));
		FUZZ_HOLDS(strstr(t->source->url, "&prefix=below%2F") && !strchr(t->source->url, '#'));
		return;
	}
	FUZZ_HOLDS(!strncmp(t->source->url, folder, strlen(folder)));
	FUZZ_HOLDS(!strstr(t->source->url + strlen(folder), "/../") && !strchr(t->source->url, '#'));
}

static void serve(struct h5_fetcher *f, struct h5_reader *r)
{
	struct h5_remote_message message;
	struct h5_remote_reply reply;
	unsigned asked = 0;
	int ends[2];

	FUZZ_HOLDS(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends));
	while (h5_reader_left(r) && asked < MESSAGES_MAX) {
		size_t size = h5_min(make_message(r, &message), sizeof message);

		if (!size || send(ends[1], &message, size, MSG_NOSIGNAL) < 0)
			break;
		asked++;
	}
	shutdown(ends[1], SHUT_WR);
	f->end.fd = ends[0];
	h5_fetcher_serve(f); /* until there is no message left; it starts no transfer */
	while (read(ends[1], &reply, sizeof reply) == sizeof reply) {
		FUZZ_HOLDS(asked--);
		FUZZ_HOLDS(reply.code <= 0 && memchr(reply.text, 0, sizeof reply.text));
	}
	close(ends[0]);
	close(ends[1]);
}

static void run_requests(const void *arg, const uint8_t *data, size_t size)
{
	struct h5_reader r = h5_reader_init(data, size, 0, 8, 8);
	struct h5_fetcher *f = idle_fetcher_new(CELLS, take(&r, 8), WHOLE);

	(void)arg;
	FUZZ_HOLDS(f);
	f->is_s3 = true;
	f->options.url = "s3://folder/below/";
	f->s3.endpoint = "http://host";
	serve(f, &r);
	for (size_t i = 0; i < H5_REMOTE_UNDER_WAY; i++)
		check_transfer(f, &f->transfers[i]);
	idle_fetcher_free(f);
}

/* ---- URLs, of which libcurl is the judge ---- */

/* A part of a URL as libcurl understands it; NULL: it refuses the URL, or has no such part. */
static char *part_of(const char *url, CURLUPart part)
{
	CURLU *u = curl_url();
	char *value = NULL;

	if (!u || curl_url_set(u, CURLUPART_URL, url, 0) || curl_url_get(u, part, &value, CURLU_DEFAULT_PORT))
		value = NULL;
	curl_url_cleanup(u);
	return value;
}

static bool is_same(const char *a, const char *b, CURLUPart part)
{
	char *x = part_of(a, part), *y = part_of(b, part);
	bool same = !x || !y || !strcasecmp(x, y);

	curl_free(x);
	curl_free(y);
	return same;
}

/* A lead from one URL to another one is to a web server, and what is the same server for us is so for
 * libcurl. */
static void check_leads(const char *from, const char *to)
{
	char *scheme = part_of(to, CURLUPART_SCHEME);

	if (scheme && h5_url_may_lead(from, to))
		FUZZ_HOLDS(!strcmp(scheme, "https") ||
			   (!strcmp(scheme, "http") && strncasecmp(from, "https://", 8)));
	curl_free(scheme);
	if (!h5_url_same_origin(from, to))
		return;
	FUZZ_HOLDS(is_same(from, to, CURLUPART_SCHEME) && is_same(from, to, CURLUPART_HOST));
	FUZZ_HOLDS(is_same(from, to, CURLUPART_PORT));
}

/* A file beside another one is on the same server, and beneath the same folder. */
static void check_beside(const char *url, const char *name)
{
	char *beside = h5_url_check(url) || h5_url_is_bucket(url) ? NULL : h5_url_beside(url, name);
	char *folder = beside ? h5_url_beside(url, "a") : NULL, *path = NULL, *inside = NULL;

	if (folder) {
		FUZZ_HOLDS(h5_url_same_origin(url, beside) && !strpbrk(beside, "?#"));
		path = part_of(folder, CURLUPART_PATH);
		inside = part_of(beside, CURLUPART_PATH);
	}
	if (path && inside)
		FUZZ_HOLDS(!strncmp(path, inside, strlen(path) - 1) && strlen(inside) >= strlen(path));
	curl_free(path);
	curl_free(inside);
	free(folder);
	free(beside);
}

/* Three lines: a URL, another one, a name. */
static void run_url(const void *arg, const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size), *rest = text;
	const char *from = strsep(&rest, "\n"), *to = rest ? strsep(&rest, "\n") : "", *shown;
	struct h5_s3 s3 = {.region = "r"};
	char *object;

	(void)arg;
	FUZZ_HOLDS(text);
	check_leads(from, to);
	check_beside(from, rest ? rest : "");
	FUZZ_HOLDS((shown = h5_url_shown(from)) && !strpbrk(shown, "?#"));
	object = !h5_url_check(from) && h5_url_is_bucket(from) ? h5_s3_url(&s3, from) : NULL;
	if (object)
		FUZZ_HOLDS(!strncmp(object, "https://", 8) && !strpbrk(object, "?# "));
	free(object);
	free((char *)shown);
	free(text);
}

#endif

/* ---- heads of responses ---- */

static void run_head(const void *arg, const uint8_t *data, size_t size)
{
	struct h5_response r = {0};
	const char *text = (const char *)data, *end = text + size;

	(void)arg;
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((newline ? newline + 1 : end) - text);

		if (!h5_response_line(&r, text, n))
			break;
		text += n;
		FUZZ_HOLDS(r.status < 1000 && !(r.ranged && r.whole) && r.seen <= H5_RESPONSE_HEAD);
		FUZZ_HOLDS(!r.ranged || (r.first <= r.last && r.last < r.size && r.size <= INT64_MAX));
		FUZZ_HOLDS(!*r.tag || strlen(r.tag) > 1);
		FUZZ_HOLDS(!strpbrk(r.tag, "\r\n") && strlen(r.modified) < sizeof r.modified);
	}
}

bool fuzz_remote_at(unsigned n, struct fuzz_target *target)
{
	static const struct fuzz_target targets[] = {
		{.name = "remote_replies", .run = run_replies},	  {.name = "remote_head", .run = run_head},
#ifdef HAVE_LIBCURL
		{.name = "remote_requests", .run = run_requests}, {.name = "remote_url", .run = run_url},
		{.name = "remote_server", .run = fuzz_server},
#endif
	};

	if (n >= sizeof targets / sizeof *targets)
		return false;
	*target = targets[n];
	return true;
}
