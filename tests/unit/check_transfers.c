/* What comes of a request of the daemon, answer by answer: the test is the network, and the clock. */
#include "config.h"

#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef HAVE_LIBCURL

#include "fake_curl.h"
#include "idle_fetcher.h"
#include "remote/listing.h"
#include "scratch.h"

enum {
	CELL = H5_REMOTE_CELL,
	SIZE = 3 * CELL - 100, /* of the file */
	N = 2 * CELL,
	CELLS = 8,
	WHOLE = 60000, /* remote_whole= */
	TRIES = 4,
	STEPS = 16,
	START = 1000000000,
	NOTHING_TO_DO = 60 * 1000,
};

#define OWN "http://host/folder/x.h5"

/* An HTTP request that is expected, and its answer. */
struct step {
	const char *url;       /* NULL: OWN */
	const char *range;     /* NULL: any */
	const char *fields[4]; /* header lines, or what none may begin with, after a "!" */
	int64_t at;	       /* milliseconds from the begin on; 0: any */
	const char *head;      /* NULL: there is none */
	const char *body;      /* NULL: bytes of the file: */
	size_t from, n, piece;
	CURLcode result;
	long retry, time;
	const char *redirect;
};

struct expected {
	int code;
	enum h5_remote_reason reason;
	const char *text; /* of the error */
	unsigned repeated;
	uint64_t got, size;
	const char *tag; /* the version is of this one; NULL: any */
};

static struct scene {
	struct h5_fetcher *f;
	int ends[2];
	const struct step *steps;
	size_t count, next;
	unsigned waits;
	size_t used; /* sources of the fetcher */
	struct h5_remote_request request;
	struct h5_remote_reply reply;
	unsigned replies;
} scene;

static uint8_t content[WHOLE + 1];

#define FAILED(number, why, words, again)                                                                    \
	{                                                                                                    \
		.code = (number), .reason = (why), .text = words, .repeated = (again)                        \
	}

/* ---- the network ---- */

static void check_request(CURL *easy, const struct step *step)
{
	ck_assert_str_eq(fake_curl_text(easy, CURLOPT_URL), step->url ? step->url : OWN);
	if (step->range)
		ck_assert_pstr_eq(fake_curl_text(easy, CURLOPT_RANGE), *step->range ? step->range : NULL);
	for (size_t i = 0; i < 4 && step->fields[i]; i++) {
		const char *field = step->fields[i];

		if (*field == '!')
			ck_assert_pstr_eq(fake_curl_field(easy, field + 1), NULL);
		else
			ck_assert_pstr_eq(fake_curl_field(easy, field), field);
	}
	if (step->at)
		ck_assert_int_eq(fake_curl.now - START, step->at);
}

static bool answer(void *arg, CURL *easy, struct fake_answer *a)
{
	const struct step *step = &scene.steps[scene.next];

	(void)arg;
	ck_assert_msg(scene.next < scene.count, "one more request: %s", fake_curl_text(easy, CURLOPT_URL));
	check_request(easy, step);
	*a = (struct fake_answer){.head = step->head,
				  .body = step->body ? step->body : (const char *)content + step->from,
				  .size = step->body ? strlen(step->body) : step->n,
				  .piece = step->piece,
				  .result = step->result,
				  .retry_after = step->retry,
				  .time = step->time,
				  .redirect = step->redirect};
	scene.next++;
	return true;
}

static bool is_idle(void)
{
	for (size_t i = 0; i < H5_REMOTE_UNDER_WAY; i++)
		if (scene.f->transfers[i].state != H5_TRANSFER_FREE)
			return false;
	return true;
}

static void sleep_for(void *arg, int milliseconds)
{
	(void)arg;
	ck_assert_uint_lt(++scene.waits, 100);
	/* The fetcher serves again, so what is open stays so when it ends. */
	if (is_idle()) {
		shutdown(scene.ends[1], SHUT_WR);
		scene.used = scene.f->sources_used;
		scene.f->sources_used = 0;
	}
	fake_curl.now += milliseconds;
}

/* ---- the daemon ---- */

/* File 0 is open, file 1 is here as a whole. */
static void begin(void)
{
	memset(&scene, 0, sizeof scene);
	for (size_t i = 0; i < sizeof content; i++)
		content[i] = (uint8_t)(i * 7 + i / 256);
	scene.f = idle_fetcher_new(CELLS, SIZE, CELL);
	ck_assert_ptr_nonnull(scene.f);
	strcpy(scene.f->sources[0].tag, "\"a\"");
	scene.f->options.whole = WHOLE;
	scene.f->options.tries = TRIES;
	scene.f->options.timeout = 30;
	scene.f->options.connections = 2;
	fake_curl = (struct fake_curl){.ask = answer, .wait = sleep_for, .now = START, .chance = 50};
}

static void end(void)
{
	idle_fetcher_free(scene.f);
}

static int serve(void)
{
	int status;

	fake_curl_set_clock(true);
	status = h5_fetcher_serve(scene.f);
	fake_curl_set_clock(false);
	scene.f->sources_used = scene.used;
	return status;
}

static void send_request(const struct h5_remote_request *request, const char *name)
{
	static struct h5_remote_message message;
	size_t size;

	message.request = *request;
	message.request.cells = (uint32_t)((request->n + CELL - 1) / CELL);
	message.request.name = (uint32_t)strlen(name);
	/* Not in their order. */
	for (uint32_t i = 0; i < message.request.cells; i++)
		message.cells[i] = CELLS - 1 - i;
	memcpy(message.cells + message.request.cells, name, strlen(name));
	size = sizeof *request + message.request.cells * sizeof *message.cells + message.request.name;
	ck_assert_int_eq(send(scene.ends[1], &message, size, MSG_NOSIGNAL), (ssize_t)size);
}

/* Makes the request: no more than the steps may come of it. */
static const struct h5_remote_reply *try(struct h5_remote_request request, const struct step *steps,
					 size_t count)
{
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, scene.ends),
			 0);
	scene.f->end.fd = scene.ends[0];
	scene.steps = steps;
	scene.count = count;
	scene.next = scene.waits = 0;
	send_request(&request, "");
	ck_assert_int_eq(serve(), EXIT_SUCCESS);
	ck_assert_int_eq(read(scene.ends[1], &scene.reply, sizeof scene.reply), sizeof scene.reply);
	ck_assert_int_eq(recv(scene.ends[1], &(char){0}, 1, 0), -1); /* there is no other one */
	close(scene.ends[0]);
	close(scene.ends[1]);
	ck_assert_uint_eq(scene.reply.id, request.id);
	return &scene.reply;
}

/* All of the steps must come of it. */
static const struct h5_remote_reply *ask(struct h5_remote_request request, const struct step *steps,
					 size_t count)
{
	try(request, steps, count);
	ck_assert_uint_eq(scene.next, count);
	return &scene.reply;
}

/* The bytes of the request that the reply says to be there are those of the file. */
static void check_cells(const struct h5_remote_request *request, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		size_t cell = CELLS - 1 - (size_t)(i / CELL);

		ck_assert_msg(scene.f->end.memory[cell * CELL + i % CELL] == content[request->offset + i],
			      "byte %ju", (uintmax_t)i);
	}
}

static void check_reply(const struct h5_remote_reply *reply, const struct expected *e, const char *of)
{
	ck_assert_msg(reply->code == e->code && reply->reason == e->reason, "%s: %d, %u, %s", of, reply->code,
		      reply->reason, reply->text);
	ck_assert_msg(!strcmp(reply->text, e->text ? e->text : ""), "%s: %s", of, reply->text);
	ck_assert_msg(reply->repeated == e->repeated, "%s: %u", of, reply->repeated);
	if (!e->code) {
		ck_assert_msg(reply->got == e->got && reply->size == e->size, "%s: %ju of %ju", of,
			      (uintmax_t)reply->got, (uintmax_t)reply->size);
		ck_assert(!e->tag || reply->version == h5_listing_version(e->tag));
	}
}

/* ---- opening a file ---- */

static const struct h5_remote_request opening = {.what = H5_REMOTE_OPEN, .id = 7, .file = 2, .n = N};

#define HEAD(status) "HTTP/1.1 " status " x\r\n"
#define TAG(tag)     "ETag: \"" tag "\"\r\n"
#define LINE(field)  field "\r\n"
#define END	     "\r\n"
#define RANGE(range) "Content-Range: bytes " range "\r\n"
#define PART	     HEAD("206") RANGE("0-32767/49052") TAG("a") END
#define MINE	     "http://host/folder/x.h5?secret"
#define TRIED(...)                                                                                           \
	{.url = MINE, __VA_ARGS__}, {.url = MINE, __VA_ARGS__}, {.url = MINE, __VA_ARGS__},                  \
	{                                                                                                    \
		.url = MINE, __VA_ARGS__                                                                     \
	}
#define TRIED_TEXT ", after 4 tries"

struct scenario {
	const char *name;
	struct step steps[STEPS];
	struct expected expected;
};

static void run(const struct scenario *s, const struct h5_remote_request *request)
{
	size_t count = 0;

	while (count < STEPS && (s->steps[count].head || s->steps[count].result))
		count++;
	check_reply(ask(*request, s->steps, count), &s->expected, s->name);
	if (!s->expected.code)
		check_cells(request, s->expected.got);
}

static const struct scenario openings[] = {
	{"a range",
	 {{.url = MINE,
	   .range = "0-32767",
	   .fields = {"!If-", "!x-amz"},
	   .head = PART,
	   .n = N,
	   .piece = 1000}},
	 {.got = N, .size = SIZE, .tag = "a"}},
	{"a file that is shorter than what is asked for",
	 {{.url = MINE, .head = HEAD("206") RANGE("0-99/100") END, .n = 100}},
	 {.got = 100, .size = 100, .tag = ""}},
	{"a range with its length",
	 {{.url = MINE,
	   .head = HEAD("206") RANGE("0-32767/49052") LINE("Content-Length: 32768") END,
	   .n = N}},
	 {.got = N, .size = SIZE}},
	{"a whole file",
	 {{.url = MINE, .head = HEAD("200") TAG("w") END, .n = SIZE, .piece = 9999}},
	 {.got = N, .size = SIZE, .tag = "w"}},
	{"a whole file of less than a cell",
	 {{.url = MINE, .head = HEAD("200") END, .n = 5}},
	 {.got = 5, .size = 5}},
	{"an empty file", {{.url = MINE, .head = HEAD("416") RANGE("*/0") END, .body = "none"}}, {.size = 0}},
	{"a range that is refused",
	 {{.url = MINE, .head = HEAD("416") RANGE("*/5") END}},
	 FAILED(-EOPNOTSUPP, H5_REMOTE_NO_RANGES, "the server refuses the range (HTTP 416)", 0)},
	{"a range that is refused without a word",
	 {{.url = MINE, .head = HEAD("416") END}},
	 FAILED(-EOPNOTSUPP, H5_REMOTE_NO_RANGES, "the server refuses the range (HTTP 416)", 0)},
	{"an encoded part",
	 {{.url = MINE,
	   .head = HEAD("206") RANGE("0-32767/49052") LINE("Content-Encoding: gzip") END,
	   .n = N}},
	 FAILED(-EOPNOTSUPP, H5_REMOTE_NO_RANGES, "the server sends the file encoded (Content-Encoding)", 0)},
	{"an encoded file",
	 {{.url = MINE, .head = HEAD("200") LINE("Content-Encoding: gzip") END, .n = SIZE}},
	 FAILED(-EOPNOTSUPP, H5_REMOTE_NO_RANGES, "the server sends the file encoded (Content-Encoding)", 0)},
	{"another encoded answer",
	 {{.url = MINE, .head = HEAD("299") LINE("Content-Encoding: gzip") END}},
	 FAILED(-EOPNOTSUPP, H5_REMOTE_NO_RANGES, "the server sends the file encoded (Content-Encoding)", 0)},
	{"an encoded error",
	 {{.url = MINE, .head = HEAD("404") LINE("Content-Encoding: gzip") END, .body = "x"}},
	 FAILED(-ENOENT, H5_REMOTE_NOT_FOUND, "not found (HTTP 404)", 0)},
	{"404",
	 {{.url = MINE, .head = HEAD("404") END}},
	 FAILED(-ENOENT, H5_REMOTE_NOT_FOUND, "not found (HTTP 404)", 0)},
	{"410",
	 {{.url = MINE, .head = HEAD("410") END}},
	 FAILED(-ENOENT, H5_REMOTE_NOT_FOUND, "not found (HTTP 410)", 0)},
	{"401",
	 {{.url = MINE, .head = HEAD("401") END}},
	 FAILED(-EACCES, H5_REMOTE_FORBIDDEN, "no permission (HTTP 401)", 0)},
	{"403",
	 {{.url = MINE, .head = HEAD("403") END}},
	 FAILED(-EACCES, H5_REMOTE_FORBIDDEN, "no permission (HTTP 403)", 0)},
	{"407",
	 {{.url = MINE, .head = HEAD("407") END}},
	 FAILED(-EACCES, H5_REMOTE_FORBIDDEN, "no permission (HTTP 407)", 0)},
	{"400", {{.url = MINE, .head = HEAD("400") END}}, FAILED(-EIO, H5_REMOTE_NETWORK, "HTTP 400", 0)},
	{"412", {{.url = MINE, .head = HEAD("412") END}}, FAILED(-EIO, H5_REMOTE_NETWORK, "HTTP 412", 0)},
	{"304", {{.url = MINE, .head = HEAD("304") END}}, FAILED(-EIO, H5_REMOTE_NETWORK, "HTTP 304", 0)},
	{"204", {{.url = MINE, .head = HEAD("204") END}}, FAILED(-EIO, H5_REMOTE_NETWORK, "HTTP 204", 0)},
	{"499", {{.url = MINE, .head = HEAD("499") END}}, FAILED(-EIO, H5_REMOTE_NETWORK, "HTTP 499", 0)},
	/* What a server says of an error is nothing to an HTTP server. */
	{"words",
	 {{.url = MINE, .head = HEAD("400") END, .body = "<Error><Code>ExpiredToken</Code></Error>"}},
	 FAILED(-EIO, H5_REMOTE_NETWORK, "HTTP 400", 0)},
	{"408", {TRIED(.head = HEAD("408") END)}, FAILED(-EIO, H5_REMOTE_NETWORK, "HTTP 408" TRIED_TEXT, 3)},
	{"429", {TRIED(.head = HEAD("429") END)}, FAILED(-EIO, H5_REMOTE_NETWORK, "HTTP 429" TRIED_TEXT, 3)},
	{"500", {TRIED(.head = HEAD("500") END)}, FAILED(-EIO, H5_REMOTE_NETWORK, "HTTP 500" TRIED_TEXT, 3)},
	{"no answer",
	 {TRIED(.result = CURLE_GOT_NOTHING)},
	 FAILED(-EIO, H5_REMOTE_NETWORK, "error 52" TRIED_TEXT, 3)},
	{"a status that makes no sense",
	 {TRIED(.head = "HTTP/1.1 OK\r\n" END)},
	 FAILED(-EIO, H5_REMOTE_NETWORK, "no answer" TRIED_TEXT, 3)},
	/* Nobody is there: fewer tries will do. */
	{"no connection",
	 {{.url = MINE, .result = CURLE_COULDNT_CONNECT},
	  {.url = MINE, .at = 100, .result = CURLE_COULDNT_CONNECT},
	  {.url = MINE, .at = 250, .result = CURLE_COULDNT_CONNECT}},
	 FAILED(-EIO, H5_REMOTE_NETWORK, "error 7, after 3 tries", 2)},
	{"no such host",
	 {{.url = MINE, .result = CURLE_COULDNT_RESOLVE_HOST},
	  {.url = MINE, .result = CURLE_COULDNT_RESOLVE_HOST},
	  {.url = MINE, .result = CURLE_COULDNT_RESOLVE_HOST}},
	 FAILED(-EIO, H5_REMOTE_NETWORK, "error 6, after 3 tries", 2)},
	/* Pauses become longer, up to 10 s, of which the half at least goes by. */
	{"it goes at last",
	 {{.url = MINE, .at = 0, .head = HEAD("503") END},
	  {.url = MINE, .at = 100, .head = HEAD("503") END},
	  {.url = MINE, .at = 250, .head = HEAD("503") END},
	  {.url = MINE, .at = 500, .head = PART, .n = N}},
	 {.got = N, .size = SIZE, .repeated = 3}},
	{"the server asks for time",
	 {{.url = MINE, .retry = 120, .head = HEAD("503") END},
	  {.url = MINE, .at = 120000, .retry = 1, .head = HEAD("503") END},
	  {.url = MINE, .at = 121000, .head = PART, .n = N}},
	 {.got = N, .size = SIZE, .repeated = 2}},
	{"for too much of it",
	 {{.url = MINE, .retry = 121, .head = HEAD("503") END}},
	 FAILED(-EIO, H5_REMOTE_NETWORK, "HTTP 503", 0)},
	/* Each try begins anew, since the file may be another one. */
	{"a part of a part",
	 {{.url = MINE, .head = PART, .n = 20000, .result = CURLE_PARTIAL_FILE},
	  {.url = MINE, .range = "0-32767", .head = HEAD("206") RANGE("0-32767/49052") TAG("b") END, .n = N}},
	 {.got = N, .size = SIZE, .repeated = 1, .tag = "b"}},
	{"parts that are too short",
	 {TRIED(.head = PART, .n = N - 1)},
	 FAILED(-EIO, H5_REMOTE_NETWORK, "the answer was too short" TRIED_TEXT, 3)},
	{"parts that are cut",
	 {TRIED(.head = PART, .n = N - 1, .result = CURLE_PARTIAL_FILE)},
	 FAILED(-EIO, H5_REMOTE_NETWORK, "error 18" TRIED_TEXT, 3)},
	{"a whole file that is cut",
	 {TRIED(.head = HEAD("200") END, .n = 5, .result = CURLE_PARTIAL_FILE)},
	 FAILED(-EIO, H5_REMOTE_NETWORK, "error 18" TRIED_TEXT, 3)},
#define OTHER_RANGE "the server has sent another range than it was asked for" TRIED_TEXT
	{"parts that are too long",
	 {TRIED(.head = PART, .n = N + 1)},
	 FAILED(-EIO, H5_REMOTE_NETWORK, OTHER_RANGE, 3)},
	{"parts that are longer than they say",
	 {TRIED(.head = HEAD("206") RANGE("0-9/10") END, .n = 11, .piece = 5)},
	 FAILED(-EIO, H5_REMOTE_NETWORK, OTHER_RANGE, 3)},
	{"parts that are longer than the file",
	 {TRIED(.head = HEAD("206") RANGE("0-9/10") END, .n = 11)},
	 FAILED(-EIO, H5_REMOTE_NETWORK, "the answer was too short" TRIED_TEXT, 3)},
	{"parts that begin elsewhere",
	 {TRIED(.head = HEAD("206") RANGE("1-32767/49052") END, .n = N - 1)},
	 FAILED(-EIO, H5_REMOTE_NETWORK, OTHER_RANGE, 3)},
	{"parts that end elsewhere",
	 {TRIED(.head = HEAD("206") RANGE("0-32768/49052") END, .n = N)},
	 FAILED(-EIO, H5_REMOTE_NETWORK, OTHER_RANGE, 3)},
	{"parts of another length",
	 {TRIED(.head = HEAD("206") RANGE("0-32767/49052") LINE("Content-Length: 32767") END, .n = N)},
	 FAILED(-EIO, H5_REMOTE_NETWORK, OTHER_RANGE, 3)},
	{"parts without their range",
	 {TRIED(.head = HEAD("206") END, .n = N)},
	 FAILED(-EIO, H5_REMOTE_NETWORK, OTHER_RANGE, 3)},
	{"parts whose head makes no sense",
	 {TRIED(.head = HEAD("206") RANGE("0-32767/49052") LINE("Content-Length: x") END, .n = N)},
	 FAILED(-EIO, H5_REMOTE_NETWORK, OTHER_RANGE, 3)},
/* Certificates. */
#define CERTIFICATE(number, words)                                                                           \
	{                                                                                                    \
		"a certificate: " words, {{.url = MINE, .result = number}},                                  \
			FAILED(-EIO, H5_REMOTE_CERTIFICATE, "error " words, 0)                               \
	}
	CERTIFICATE(CURLE_PEER_FAILED_VERIFICATION, "60"),
	CERTIFICATE(CURLE_SSL_CERTPROBLEM, "58"),
	CERTIFICATE(CURLE_SSL_CACERT_BADFILE, "77"),
	CERTIFICATE(CURLE_SSL_ISSUER_ERROR, "83"),
	CERTIFICATE(CURLE_SSL_INVALIDCERTSTATUS, "91"),
	CERTIFICATE(CURLE_SSL_PINNEDPUBKEYNOTMATCH, "90"),
	{"another error of encryption",
	 {TRIED(.result = CURLE_SSL_CONNECT_ERROR)},
	 FAILED(-EIO, H5_REMOTE_NETWORK, "error 35" TRIED_TEXT, 3)},
/* Redirects. */
#define LEADS(to) .head = HEAD("302") END, .redirect = (to)
	{"a redirect",
	 {{.url = MINE, .fields = {"X-Mine: 1"}, LEADS("http://host/other?a")},
	  {.url = "http://host/other?a", .fields = {"X-Mine: 1"}, LEADS("https://other/x")},
	  {.url = "https://other/x", .range = "0-32767", .fields = {"!X-Mine"}, .head = PART, .n = N}},
	 {.got = N, .size = SIZE}},
	{"a redirect to nowhere",
	 {{.url = MINE, .head = HEAD("302") END}},
	 FAILED(-EIO, H5_REMOTE_NETWORK, "a redirect that is not followed: a loop, or not to HTTP(S)", 0)},
	{"a redirect to a file",
	 {{.url = MINE, LEADS("file:///etc/passwd")}},
	 FAILED(-EIO, H5_REMOTE_NETWORK, "a redirect that is not followed: a loop, or not to HTTP(S)", 0)},
	{"a redirect out of HTTPS",
	 {{.url = MINE, LEADS("https://other/x")}, {.url = "https://other/x", LEADS("http://host/x")}},
	 FAILED(-EIO, H5_REMOTE_NETWORK, "a redirect that is not followed: a loop, or not to HTTP(S)", 0)},
#define ROUND                                                                                                \
	{                                                                                                    \
		.url = "http://h/", LEADS("http://h/")                                                       \
	}
	{"ten redirects",
	 {{.url = MINE, LEADS("http://h/")},
	  ROUND,
	  ROUND,
	  ROUND,
	  ROUND,
	  ROUND,
	  ROUND,
	  ROUND,
	  ROUND,
	  ROUND,
	  {.url = "http://h/", .head = PART, .n = N}},
	 {.got = N, .size = SIZE}},
	{"eleven redirects",
	 {{.url = MINE, LEADS("http://h/")},
	  ROUND,
	  ROUND,
	  ROUND,
	  ROUND,
	  ROUND,
	  ROUND,
	  ROUND,
	  ROUND,
	  ROUND,
	  ROUND},
	 FAILED(-EIO, H5_REMOTE_NETWORK, "a redirect that is not followed: a loop, or not to HTTP(S)", 0)},
	/* A try that failed has its redirects anew. From where nobody is, the way begins anew. */
	{"redirects after a failure",
	 {{.url = MINE, LEADS("http://h/")},
	  ROUND,
	  ROUND,
	  ROUND,
	  ROUND,
	  ROUND,
	  {.url = "http://h/", .head = HEAD("500") END},
	  ROUND,
	  ROUND,
	  ROUND,
	  ROUND,
	  ROUND,
	  {.url = "http://h/", .head = PART, .n = N}},
	 {.got = N, .size = SIZE, .repeated = 1}},
	{"a place that is gone",
	 {{.url = MINE, LEADS("http://h/")},
	  {.url = "http://h/", .result = CURLE_COULDNT_CONNECT},
	  {.url = MINE, .head = PART, .n = N}},
	 {.got = N, .size = SIZE, .repeated = 1}},
	{"a place that has failed",
	 {{.url = MINE, LEADS("http://h/")},
	  {.url = "http://h/", .head = HEAD("500") END},
	  {.url = "http://h/", .head = PART, .n = N}},
	 {.got = N, .size = SIZE, .repeated = 1}},
};

START_TEST(files_are_opened)
{
	const struct scenario *s = &openings[_i];
	struct curl_slist *fields;

	begin();
	fields = curl_slist_append(NULL, "X-Mine: 1");
	scene.f->fields = fields;
	run(s, &opening);
	ck_assert_int_eq(scene.f->sources[2].known, !s->expected.code);
	/* Memory of whole files counts as long as there are such. */
	ck_assert_uint_eq(scene.f->whole, scene.f->sources[2].room);
	ck_assert(!scene.f->sources[2].url == !!s->expected.code);
	curl_slist_free_all(fields);
	end();
}
END_TEST

/* ---- whole files ---- */

static void close_file(uint32_t file)
{
	const struct h5_remote_request closing = {.what = H5_REMOTE_CLOSE, .file = file};

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, scene.ends),
			 0);
	scene.f->end.fd = scene.ends[0];
	scene.waits = 0;
	send_request(&closing, "");
	ck_assert_int_eq(serve(), EXIT_SUCCESS);
	ck_assert_int_eq(scene.waits, 1);
	close(scene.ends[0]);
	close(scene.ends[1]);
}

#define TOO_LARGE                                                                                            \
	FAILED(-EOPNOTSUPP, H5_REMOTE_NO_RANGES,                                                             \
	       "the server gives no ranges of the file, which is larger than remote_whole= has room for", 0)

/* remote_whole= is for all files together; of a length that is told, no more than the head is read. */
START_TEST(whole_files)
{
	static const struct scenario all[] = {
		{"too much",
		 {{.url = MINE, .head = HEAD("200") END, .n = WHOLE + 1, .piece = 7000}},
		 TOO_LARGE},
		{"a length that is too much",
		 {{.url = MINE, .head = HEAD("200") LINE("Content-Length: 60001") END, .n = 1}},
		 TOO_LARGE},
		{"half",
		 {{.url = MINE, .head = HEAD("200") LINE("Content-Length: 20000") END, .n = 20000}},
		 {.got = 20000, .size = 20000}},
	};
	static const struct scenario more[] = {
		{"what is left",
		 {{.url = MINE, .head = HEAD("200") END, .n = 40000, .piece = 7000}},
		 {.got = N, .size = 40000}},
		{"nothing is left", {{.url = MINE, .head = HEAD("200") END, .n = 1}}, TOO_LARGE},
	};
	static const struct scenario last = {
		"all",
		{{.url = MINE, .head = HEAD("200") LINE("Content-Length: 60000") END, .n = WHOLE}},
		{.got = N, .size = WHOLE}};
	static const struct scenario none = {
		"none",
		{{.url = MINE, .head = HEAD("200") END, .n = 1}},
		FAILED(-EOPNOTSUPP, H5_REMOTE_NO_RANGES,
		       "the server gives no ranges of the file (remote_whole=SIZE reads a small one whole)",
		       0)};
	struct h5_remote_request request = opening;

	begin();
	for (size_t i = 0; i < 3; i++)
		run(&all[i], &request);
	for (size_t i = 0; i < 2; i++) {
		request.file++;
		run(&more[i], &request);
	}
	ck_assert_uint_eq(scene.f->whole, WHOLE);
	/* From what is here, nobody is asked. */
	request = (struct h5_remote_request){
		.what = H5_REMOTE_READ, .id = 8, .file = 3, .offset = CELL, .n = CELL + 5};
	check_reply(ask(request, NULL, 0), &(struct expected){.got = CELL + 5, .size = 40000}, "here");
	check_cells(&request, CELL + 5);
	close_file(2);
	ck_assert_uint_eq(scene.f->whole, 40000);
	close_file(3);
	ck_assert_uint_eq(scene.f->whole, 0);
	run(&last, &opening);
	close_file(2);
	scene.f->options.whole = 0;
	run(&none, &opening);
	end();
}
END_TEST

/* ---- reading ---- */

static const struct h5_remote_request reading = {
	.what = H5_REMOTE_READ, .id = 9, .file = 0, .offset = CELL, .n = N - 100};

#define REST	RANGE("16384-49051/49052")
#define CHANGED FAILED(-ESTALE, H5_REMOTE_CHANGED, "the file has changed since it was mounted", 0)

/* `tag`, `modified`: of the file when it was opened; NULL: a strong tag, and none. */
static const struct {
	struct scenario scenario;
	const char *tag, *modified, *target;
} readings[] = {
	{.scenario = {"a range",
		      {{.range = "16384-49051",
			.fields = {"If-Match: \"a\"", "!If-None"},
			.head = HEAD("206") REST TAG("a") END,
			.from = CELL,
			.n = N - 100}},
		      {.got = N - 100, .size = SIZE}}},
	/* What came is not asked for again. */
	{.scenario = {"a range in parts",
		      {{.head = HEAD("206") REST END, .from = CELL, .n = 20000, .result = CURLE_PARTIAL_FILE},
		       {.range = "36384-49051",
			.head = HEAD("206") RANGE("36384-49051/49052") END,
			.from = 36384,
			.n = 5},
		       {.range = "36389-49051",
			.head = HEAD("206") RANGE("36389-40000/49052") END,
			.from = 36389,
			.n = 3612},
		       {.range = "40001-49051",
			.head = HEAD("206") RANGE("40001-49051/49052") END,
			.from = 40001,
			.n = 9051}},
		      {.got = N - 100, .size = SIZE, .repeated = 3}}},
	{.scenario = {"another tag",
		      {{.head = HEAD("206") REST TAG("b") END, .from = CELL, .n = N - 100}},
		      CHANGED}},
	{.scenario = {"the same tag at another time",
		      {{.head = HEAD("206") REST TAG("a") LINE("Last-Modified: later") END,
			.from = CELL,
			.n = N - 100}},
		      {.got = N - 100, .size = SIZE}},
	 .modified = "then"},
	{.scenario =
		 {"another time",
		  {{.head = HEAD("206") REST LINE("Last-Modified: later") END, .from = CELL, .n = N - 100}},
		  CHANGED},
	 .modified = "then"},
	{.scenario = {"no time",
		      {{.head = HEAD("206") REST END, .from = CELL, .n = N - 100}},
		      {.got = N - 100, .size = SIZE}},
	 .modified = "then"},
	{.scenario =
		 {"a time for the first time",
		  {{.head = HEAD("206") REST LINE("Last-Modified: later") END, .from = CELL, .n = N - 100}},
		  {.got = N - 100, .size = SIZE}}},
	{.scenario = {"another weak tag",
		      {{.fields = {"!If-Match"},
			.head = HEAD("206") REST LINE("ETag: W/\"b\"") END,
			.from = CELL,
			.n = N - 100}},
		      CHANGED},
	 .tag = "W/\"a\""},
	{.scenario = {"a tag that became weak",
		      {{.head = HEAD("206") REST LINE("ETag: W/\"a\"") END, .from = CELL, .n = N - 100}},
		      CHANGED}},
	{.scenario = {"a tag that became strong",
		      {{.head = HEAD("206") REST TAG("a") END, .from = CELL, .n = N - 100}},
		      CHANGED},
	 .tag = "W/\"a\""},
	{.scenario = {"the same weak tag",
		      {{.head = HEAD("206") REST LINE("ETag: W/\"a\"") END, .from = CELL, .n = N - 100}},
		      {.got = N - 100, .size = SIZE}},
	 .tag = "W/\"a\""},
	{.scenario = {"no tag",
		      {{.head = HEAD("206") REST END, .from = CELL, .n = N - 100}},
		      {.got = N - 100, .size = SIZE}}},
	{.scenario = {"a tag for the first time",
		      {{.fields = {"!If-Match"},
			.head = HEAD("206") REST TAG("a") END,
			.from = CELL,
			.n = N - 100}},
		      {.got = N - 100, .size = SIZE}},
	 .tag = ""},
	{.scenario = {"another size",
		      {{.head = HEAD("206") RANGE("16384-49051/49053") END, .from = CELL, .n = N - 100}},
		      CHANGED}},
	{.scenario = {"412", {{.head = HEAD("412") END}}, CHANGED}},
	{.scenario = {"416", {{.head = HEAD("416") RANGE("*/16384") END}}, CHANGED}},
#define SAME_TAG TAG("a")
	{.scenario =
		 {"another size with the same tag",
		  {{.head = HEAD("206") RANGE("16384-49051/49053") TAG("a") END, .from = CELL, .n = N - 100},
		   {.head = HEAD("206") REST TAG("a") END, .from = CELL, .n = N - 100}},
		  {.got = N - 100, .size = SIZE, .repeated = 1}}},
	{.scenario = {"a whole file",
		      {{.head = HEAD("200") END, .n = SIZE},
		       {.head = HEAD("206") REST END, .from = CELL, .n = N - 100}},
		      {.got = N - 100, .size = SIZE, .repeated = 1}}},
	{.scenario = {"whole files",
		      {{.head = HEAD("200") END, .n = 1},
		       {.head = HEAD("200") END, .n = 1},
		       {.head = HEAD("200") END, .n = 1},
		       {.head = HEAD("200") END, .n = 1}},
		      FAILED(-EIO, H5_REMOTE_NETWORK, "the server has ignored the range" TRIED_TEXT, 3)}},
	{.scenario =
		 {"an encoded part",
		  {{.head = HEAD("206") REST LINE("Content-Encoding: gzip") END, .from = CELL, .n = N - 100},
		   {.head = HEAD("206") REST END, .from = CELL, .n = N - 100}},
		  {.got = N - 100, .size = SIZE, .repeated = 1}}},
	/* Of readers, nobody hears what else it could mean. */
	{.scenario = {"404",
		      {{.head = HEAD("404") END}},
		      FAILED(-EIO, H5_REMOTE_NOT_FOUND, "not found (HTTP 404)", 0)}},
	{.scenario = {"403",
		      {{.head = HEAD("403") END}},
		      FAILED(-EIO, H5_REMOTE_FORBIDDEN, "no permission (HTTP 403)", 0)}},
	{.scenario = {"304", {{.head = HEAD("304") END}}, FAILED(-EIO, H5_REMOTE_NETWORK, "HTTP 304", 0)}},
	{.scenario = {"no connection",
		      {{.result = CURLE_COULDNT_CONNECT},
		       {.result = CURLE_COULDNT_CONNECT},
		       {.result = CURLE_COULDNT_CONNECT},
		       {.result = CURLE_COULDNT_CONNECT}},
		      FAILED(-EIO, H5_REMOTE_NETWORK, "error 7" TRIED_TEXT, 3)}},
	/* A place that was remembered. */
	{.scenario = {"elsewhere",
		      {{.url = "http://h/x",
			.fields = {"If-Match: \"a\"", "!X-Mine"},
			.head = HEAD("206") REST TAG("a") END,
			.from = CELL,
			.n = N - 100}},
		      {.got = N - 100, .size = SIZE}},
	 .target = "http://h/x"},
	{.scenario = {"no more elsewhere",
		      {{.url = "http://h/x", .head = HEAD("403") END},
		       {.fields = {"X-Mine: 1"},
			.at = 0,
			.head = HEAD("206") REST TAG("a") END,
			.from = CELL,
			.n = N - 100}},
		      {.got = N - 100, .size = SIZE, .repeated = 1}},
	 .target = "http://h/x"},
	{.scenario = {"nowhere",
		      {{.url = "http://h/x", .head = HEAD("403") END}, {.head = HEAD("404") END}},
		      FAILED(-EIO, H5_REMOTE_NOT_FOUND, "not found (HTTP 404)", 1)},
	 .target = "http://h/x"},
	{.scenario = {"changed elsewhere", {{.url = "http://h/x", .head = HEAD("412") END}}, CHANGED},
	 .target = "http://h/x"},
};

START_TEST(files_are_read)
{
	struct h5_source *source;
	struct curl_slist *fields;

	begin();
	source = &scene.f->sources[0];
	fields = curl_slist_append(NULL, "X-Mine: 1");
	scene.f->fields = fields;
	strcpy(source->tag, readings[_i].tag ? readings[_i].tag : "\"a\"");
	strcpy(source->modified, readings[_i].modified ? readings[_i].modified : "");
	source->target = readings[_i].target ? strdup(readings[_i].target) : NULL;
	/* No redirect has led there. */
	free(scene.f->url);
	scene.f->url = strdup(OWN);
	run(&readings[_i].scenario, &reading);
	ck_assert(source->known);
	ck_assert_uint_eq(source->size, SIZE);
	curl_slist_free_all(fields);
	end();
}
END_TEST

/* What goes on must end where the request does. */
START_TEST(the_rest_of_a_request)
{
	const struct h5_remote_request request = {.what = H5_REMOTE_READ, .id = 9, .file = 0, .n = CELL};
	const struct step first = {.range = "0-16383",
				   .head = HEAD("206") RANGE("0-16383/49052") END,
				   .n = 10000,
				   .result = CURLE_PARTIAL_FILE},
			  more = {.range = "10000-16383",
				  .head = HEAD("206") RANGE("10000-16384/49052") END,
				  .from = 10000,
				  .n = CELL - 10000},
			  rest = {.range = "10000-16383",
				  .head = HEAD("206") RANGE("10000-16383/49052") END,
				  .from = 10000,
				  .n = CELL - 10000};

	begin();
	check_reply(ask(request, (struct step[]){first, more, rest}, 3),
		    &(struct expected){.got = CELL, .size = SIZE, .repeated = 2}, "more than the rest");
	check_cells(&request, CELL);
	end();
}
END_TEST

/* What has failed just now is tried once; if nothing came in time, not even that. */
START_TEST(after_a_failure)
{
	static const struct step silent = {.result = CURLE_OPERATION_TIMEDOUT},
				 refused = {.result = CURLE_RECV_ERROR},
				 good = {.head = HEAD("206") REST END, .from = CELL, .n = N - 100};
	const struct step tries[] = {silent, silent, silent, silent};
	const struct expected failed = FAILED(-EIO, H5_REMOTE_NETWORK, "error 28" TRIED_TEXT, 3),
			      at_once = FAILED(-EIO, H5_REMOTE_NETWORK, "no answer in time", 0),
			      once = FAILED(-EIO, H5_REMOTE_NETWORK, "error 28", 0),
			      other = FAILED(-EIO, H5_REMOTE_NETWORK, "error 56", 0);

	begin();
	check_reply(ask(reading, tries, 4), &failed, "first");
	fake_curl.now -= NOTHING_TO_DO; /* as if nothing had been waited for */
	check_reply(ask(reading, NULL, 0), &at_once, "at once");
	fake_curl.now -= NOTHING_TO_DO;
	fake_curl.now += 999;
	check_reply(ask(reading, NULL, 0), &at_once, "999 ms later");
	fake_curl.now -= NOTHING_TO_DO;
	fake_curl.now += 1;
	check_reply(ask(reading, &silent, 1), &once, "a second later");
	fake_curl.now -= NOTHING_TO_DO;
	fake_curl.now += 1000;
	check_reply(ask(reading, &refused, 1), &other, "another failure");
	fake_curl.now -= NOTHING_TO_DO;
	check_reply(ask(reading, &refused, 1), &other, "which is no silence");
	fake_curl.now -= NOTHING_TO_DO;
	fake_curl.now += 9999;
	check_reply(ask(reading, &refused, 1), &other, "9999 ms later");
	fake_curl.now -= NOTHING_TO_DO;
	fake_curl.now += 10000;
	check_reply(ask(reading, (struct step[]){refused, good}, 2),
		    &(struct expected){.got = N - 100, .size = SIZE, .repeated = 1}, "10 s later");
	fake_curl.now -= NOTHING_TO_DO;
	check_reply(ask(reading, tries, 4), &failed, "forgotten by success");
	end();
}
END_TEST

/* A head is read up to its limit, the body of an error up to another. */
START_TEST(long_answers)
{
	static char head[H5_RESPONSE_HEAD + 64], body[(64 << 10) + 2];
	struct step steps[] = {{.url = MINE, .head = head},
			       {.url = MINE, .head = HEAD("302") END, .body = body, .redirect = "http://h/"},
			       {.url = "http://h/", .head = HEAD("404") END}};
	size_t n = (size_t)sprintf(head, HEAD("404"));

	while (n < H5_RESPONSE_HEAD - 20)
		n += (size_t)sprintf(head + n, "X: y\r\n");
	n += (size_t)sprintf(head + n, "%*s\r\n", (int)(H5_RESPONSE_HEAD - n - 2), "X: y");
	begin();
	check_reply(ask(opening, steps, 1),
		    &(struct expected)FAILED(-ENOENT, H5_REMOTE_NOT_FOUND, "not found (HTTP 404)", 0),
		    "the longest head");
	strcpy(head + n, "\r\n");
	check_reply(ask(opening, steps, 1),
		    &(struct expected)FAILED(-EIO, H5_REMOTE_NETWORK, "the server's header is too long", 0),
		    "a longer one");
	/* The body does not matter. */
	memset(body, 'x', sizeof body - 1);
	check_reply(ask(opening, steps + 1, 2),
		    &(struct expected)FAILED(-ENOENT, H5_REMOTE_NOT_FOUND, "not found (HTTP 404)", 0),
		    "a long body");
	end();
}
END_TEST

/* Each request has its limits. */
START_TEST(settings)
{
	static const struct step steps[] = {{.url = MINE, .head = PART, .n = N}};
	CURL *easy;

	begin();
	ask(opening, steps, 1);
	easy = scene.f->transfers[0].easy;
	ck_assert_str_eq(fake_curl_text(easy, CURLOPT_USERAGENT), "h5fs/" PACKAGE_VERSION);
	ck_assert_int_eq(fake_curl_number(easy, CURLOPT_NOSIGNAL), 1);
	ck_assert_int_eq(fake_curl_number(easy, CURLOPT_HTTP_VERSION), CURL_HTTP_VERSION_1_1);
	ck_assert_int_eq(fake_curl_number(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS), 1);
	ck_assert_int_eq(fake_curl_number(easy, CURLOPT_BUFFERSIZE), 512 << 10);
	ck_assert_int_eq(fake_curl_number(easy, CURLOPT_FILETIME), 1);
	ck_assert_int_eq(fake_curl_number(easy, CURLOPT_CONNECTTIMEOUT), 30);
	ck_assert_int_eq(fake_curl_number(easy, CURLOPT_LOW_SPEED_TIME), 30);
	ck_assert_int_eq(fake_curl_number(easy, CURLOPT_LOW_SPEED_LIMIT), CELL / 30);
	ck_assert_int_eq(fake_curl_number(easy, CURLOPT_NETRC), CURL_NETRC_OPTIONAL);
	ck_assert_int_eq(fake_curl_number(easy, CURLOPT_PATH_AS_IS), 0);
	ck_assert_pstr_eq(fake_curl_text(easy, CURLOPT_CAINFO), NULL);
	scene.f->certificates = (char[]){"/certificates"};
	close_file(2);
	ask(opening,
	    (struct step[]){{.url = MINE, LEADS("http://h/")},
			    {.url = "http://h/", .time = 77, .head = PART, .n = N}},
	    2);
	ck_assert_str_eq(fake_curl_text(easy, CURLOPT_CAINFO), "/certificates");
	ck_assert_int_eq(fake_curl_number(easy, CURLOPT_NETRC), 0);
	ck_assert_int_eq(scene.reply.mtime, 77);
	ck_assert_uint_eq(scene.reply.requests, 2);
	ck_assert_uint_eq(scene.reply.received, N);
	close_file(2);
	ask(opening,
	    (struct step[]){{.url = MINE, .head = HEAD("500") END, .body = "oh"},
			    {.url = MINE, .time = -1, .head = PART, .n = N}},
	    2);
	ck_assert_int_eq(scene.reply.mtime, 0);
	ck_assert_uint_eq(scene.reply.received, N + 2);
	end();
}
END_TEST

/* ---- object stores ---- */

#define AT(region)	"https://bucket.s3." region ".amazonaws.com/k"
#define HERE		AT("here")
#define IN(region)	LINE("x-amz-bucket-region: " region)
#define SAYS(code)	"<Error><Code>" code "</Code></Error>"
#define SAYS_IN(region) "<Error><Code>X</Code><Region>" region "</Region></Error>"
#define SIGNED		"x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static void begin_store(void)
{
	static char key[] = "K", secret[] = "S", token[] = "T";

	begin();
	free(scene.f->url);
	scene.f->is_s3 = true;
	scene.f->options.url = "s3://bucket/k";
	strcpy(scene.f->s3.region, "here");
	scene.f->url = strdup(HERE);
	scene.f->credentials.now = (struct h5_grant){.key = key, .secret = secret, .token = token};
	free(scene.f->sources[0].url);
	scene.f->sources[0].url = strdup(HERE);
}

static const struct scenario stores[] = {
	{"an object",
	 {{.url = HERE,
	   .range = "0-32767",
	   .fields = {SIGNED, "x-amz-security-token: T"},
	   .head = PART,
	   .n = N}},
	 {.got = N, .size = SIZE}},
	{"another region",
	 {{.url = HERE, .head = HEAD("301") IN("there") END},
	  {.url = AT("there"), .fields = {SIGNED}, .head = PART, .n = N}},
	 {.got = N, .size = SIZE}},
	{"another region for a while",
	 {{.url = HERE, .head = HEAD("307") IN("there") END}, {.url = AT("there"), .head = PART, .n = N}},
	 {.got = N, .size = SIZE}},
	{"another region in the body",
	 {{.url = HERE, .head = HEAD("400") END, .body = SAYS_IN("there"), .piece = 10},
	  {.url = AT("there"), .head = PART, .n = N}},
	 {.got = N, .size = SIZE}},
	{"the head goes before the body",
	 {{.url = HERE, .head = HEAD("400") IN("far") END, .body = SAYS_IN("there")},
	  {.url = AT("far"), .head = PART, .n = N}},
	 {.got = N, .size = SIZE}},
	{"this region",
	 {{.url = HERE, .head = HEAD("400") IN("here") END, .body = SAYS("Bad")}},
	 FAILED(-EIO, H5_REMOTE_NETWORK, "HTTP 400: Bad", 0)},
	{"a region with a refusal",
	 {{.url = HERE, .head = HEAD("403") IN("there") END, .body = SAYS("Denied")}},
	 FAILED(-EACCES, H5_REMOTE_FORBIDDEN, "no permission (HTTP 403: Denied)", 0)},
	{"a region with an error",
	 {{.url = HERE, .head = HEAD("404") IN("there") END, .body = SAYS("NoSuchKey")}},
	 FAILED(-ENOENT, H5_REMOTE_NOT_FOUND, "not found (HTTP 404)", 0)},
#define BACK                                                                                                 \
	{.url = AT("there"), .head = HEAD("301") IN("here") END},                                            \
	{                                                                                                    \
		.url = HERE, .head = HEAD("301") IN("there") END                                             \
	}
	{"ten regions",
	 {{.url = HERE, .head = HEAD("301") IN("there") END},
	  BACK,
	  BACK,
	  BACK,
	  BACK,
	  {.url = AT("there"), .head = HEAD("301") IN("here") END},
	  {.url = HERE, .head = PART, .n = N}},
	 {.got = N, .size = SIZE}},
	{"eleven regions",
	 {{.url = HERE, .head = HEAD("301") IN("there") END}, BACK, BACK, BACK, BACK, BACK},
	 FAILED(-EIO, H5_REMOTE_NETWORK, "the store names one region after another", 0)},
	{"another server of the store",
	 {{.url = HERE, LEADS(AT("there"))}, {.url = AT("there"), .fields = {SIGNED}, .head = PART, .n = N}},
	 {.got = N, .size = SIZE}},
	{"another server",
	 {{.url = HERE, LEADS("https://other/k")},
	  {.url = "https://other/k", .fields = {"!x-amz"}, .head = PART, .n = N}},
	 {.got = N, .size = SIZE}},
	{"another server that knows regions",
	 {{.url = HERE, LEADS("https://other/k")},
	  {.url = "https://other/k", .head = HEAD("400") IN("there") END}},
	 FAILED(-EIO, H5_REMOTE_NETWORK, "HTTP 400", 0)},
	/* Nobody has newer credentials. */
	{"ExpiredToken",
	 {{.url = HERE, .head = HEAD("400") IN("there") END, .body = SAYS("ExpiredToken")}},
	 FAILED(-EACCES, H5_REMOTE_FORBIDDEN, "no permission (HTTP 400: ExpiredToken)", 0)},
	{"ExpiredTokenException",
	 {{.url = HERE, .head = HEAD("400") END, .body = SAYS("ExpiredTokenException")}},
	 FAILED(-EACCES, H5_REMOTE_FORBIDDEN, "no permission (HTTP 400: ExpiredTokenException)", 0)},
	{"TokenRefreshRequired",
	 {{.url = HERE, .head = HEAD("400") END, .body = SAYS("TokenRefreshRequired")}},
	 FAILED(-EACCES, H5_REMOTE_FORBIDDEN, "no permission (HTTP 400: TokenRefreshRequired)", 0)},
	{"a slow store",
	 {{.url = HERE, .head = HEAD("503") END, .body = SAYS("SlowDown")},
	  {.url = HERE, .head = PART, .n = N}},
	 {.got = N, .size = SIZE, .repeated = 1}},
};

START_TEST(objects_are_opened)
{
	begin_store();
	run(&stores[_i], &opening);
	ck_assert_str_eq(scene.f->sources[2].version, "");
	end();
}
END_TEST

START_TEST(objects_are_signed_for)
{
	static const struct step moved[] = {{.url = HERE, .head = HEAD("301") IN("there") END},
					    {.url = AT("there"), .head = PART, .n = N}};
	CURL *easy;

	begin_store();
	ask(opening, moved, 2);
	easy = scene.f->transfers[0].easy;
	ck_assert_str_eq(fake_curl_text(easy, CURLOPT_AWS_SIGV4), "aws:amz:there:s3");
	ck_assert_str_eq(fake_curl_text(easy, CURLOPT_USERNAME), "K");
	ck_assert_str_eq(fake_curl_text(easy, CURLOPT_PASSWORD), "S");
	ck_assert_int_eq(fake_curl_number(easy, CURLOPT_PATH_AS_IS), 1);
	ck_assert_int_eq(fake_curl_number(easy, CURLOPT_NETRC), 0);
	/* All files are there. */
	ck_assert_str_eq(scene.f->sources[0].url, AT("there"));
	/* Nobody asks. */
	close_file(2);
	scene.f->credentials.now = (struct h5_grant){0};
	ask(opening, (struct step[]){{.url = AT("there"), .fields = {"!x-amz"}, .head = PART, .n = N}}, 1);
	easy = scene.f->transfers[0].easy;
	ck_assert_pstr_eq(fake_curl_text(easy, CURLOPT_AWS_SIGV4), NULL);
	end();
}
END_TEST

/* The version that was opened is asked for, unless there is no right to. */
START_TEST(versions)
{
	static const char *const refusals[] = {HEAD("400") END, HEAD("403") END, HEAD("404") END,
					       HEAD("501") END};
	const struct step open_it = {.url = HERE,
				     .head = HEAD("206") RANGE("0-32767/49052") TAG("a")
					     LINE("x-amz-version-id: v/1") END,
				     .n = N},
			  named = {.url = HERE "?versionId=v%2F1",
				   .fields = {"If-Match: \"a\""},
				   .head = HEAD("206") REST TAG("a") END,
				   .from = CELL,
				   .n = N - 100},
			  plain = {.url = HERE,
				   .fields = {"If-Match: \"a\""},
				   .head = HEAD("206") REST TAG("a") END,
				   .from = CELL,
				   .n = N - 100};
	const struct expected good = {.got = N - 100, .size = SIZE};
	struct h5_remote_request request = reading;

	for (size_t i = 0; i < 4; i++) {
		struct step refused = {.url = named.url, .head = refusals[i]};

		begin_store();
		ask(opening, &open_it, 1);
		request.file = 2;
		check_reply(ask(request, &named, 1), &good, "named");
		check_reply(ask(request, (struct step[]){refused, plain}, 2), &good, "not named");
		/* No more. */
		check_reply(ask(request, &plain, 1), &good, "plain");
		end();
	}
	begin_store();
	ask(opening, &open_it, 1);
	check_reply(ask(request, (struct step[]){{.url = named.url, .head = HEAD("402") END}}, 1),
		    &(struct expected)FAILED(-EIO, H5_REMOTE_NETWORK, "HTTP 402", 0), "402");
	/* If it is refused without its name, too, it still has one. */
	check_reply(ask(request,
			(struct step[]){{.url = named.url, .head = HEAD("404") END},
					{.url = HERE, .head = HEAD("404") END}},
			2),
		    &(struct expected)FAILED(-EIO, H5_REMOTE_NOT_FOUND, "not found (HTTP 404)", 0), "404");
	check_reply(ask(request, &named, 1), &good, "named");
	end();
}
END_TEST

static const struct h5_remote_request listing = {.what = H5_REMOTE_LIST, .id = 3, .file = 2, .n = N};
#define PAGE "https://bucket.s3.here.amazonaws.com/?delimiter=%2F&encoding-type=url&list-type=2&prefix=k"

static const struct scenario pages[] = {
	{"a page",
	 {{.url = PAGE, .range = "", .fields = {SIGNED}, .head = HEAD("200") END, .n = 40000, .piece = 9000}},
	 {.got = N, .size = 40000}},
	{"a part", {{.url = PAGE, .head = PART, .n = N}}, FAILED(-EIO, H5_REMOTE_NETWORK, "HTTP 206", 0)},
	{"no range",
	 {{.url = PAGE, .head = HEAD("416") RANGE("*/0") END}},
	 FAILED(-EIO, H5_REMOTE_NETWORK, "HTTP 416", 0)},
	{"an encoded page",
	 {{.url = PAGE, .head = HEAD("200") LINE("Content-Encoding: gzip") END, .n = 1}},
	 FAILED(-EOPNOTSUPP, H5_REMOTE_NO_RANGES, "the server sends the file encoded (Content-Encoding)", 0)},
	{"a page that is too long",
	 {{.url = PAGE, .head = HEAD("200") LINE("Content-Length: 8388609") END, .n = 1}},
	 FAILED(-EIO, H5_REMOTE_NETWORK, "a page of the listing is longer than it may be", 0)},
	{"a page of the longest length",
	 {{.url = PAGE, .head = HEAD("200") LINE("Content-Length: 8388608") END, .n = 1}},
	 {.got = 1, .size = 1}},
};

START_TEST(pages_are_listed)
{
	begin_store();
	scene.f->options.whole = 0; /* it is not of pages */
	run(&pages[_i], &listing);
	ck_assert_uint_eq(scene.f->whole, 0);
	ck_assert_uint_eq(scene.f->pages, !pages[_i].expected.code);
	end();
}
END_TEST

START_TEST(pages_at_once)
{
	static const struct step step = {.url = PAGE, .head = HEAD("200") END, .n = 10};
	const struct expected good = {.got = 10, .size = 10},
			      bad = FAILED(-ENFILE, H5_REMOTE_OTHER, "too many listings at once", 0);
	struct h5_remote_request request = listing;

	begin_store();
	for (; request.file < 2 + 64; request.file++)
		check_reply(ask(request, &step, 1), &good, "a page");
	check_reply(ask(request, NULL, 0), &bad, "one more");
	close_file(5);
	request.file = 5;
	check_reply(ask(request, &step, 1), &good, "another one");
	end();
}
END_TEST

/* ---- the disk cache ---- */

/* Another process, which finds what is there. */
static void begin_again(void)
{
	char path[128];

	begin();
	snprintf(path, sizeof path, "%s/cache", scratch_folder());
	h5_disk_begin(scene.f, h5_disk_folder_open(path));
	ck_assert_int_ge(scene.f->disk.fd, 0);
	scene.f->disk.budget = 1 << 30;
}

static void begin_disk(void)
{
	scratch_run("rm -rf %s/cache", scratch_folder());
	begin_again();
}

static void end_disk(void)
{
	h5_source_forget(scene.f, &scene.f->sources[2]);
	ck_assert_uint_eq(scene.f->disk.open, 0);
	close(scene.f->disk.fd);
	free(scene.f->scratch);
	end();
}

/* Reads bytes of the file that is open: how many of them were on the disk. `steps`: NULL: all. */
static uint64_t read_file(uint64_t offset, uint64_t n, const struct step *step)
{
	const struct h5_remote_request request = {
		.what = H5_REMOTE_READ, .id = 9, .file = 2, .offset = offset, .n = n};

	memset(scene.f->end.memory, 0, (size_t)CELLS * CELL);
	check_reply(ask(request, step, !!step), &(struct expected){.got = n, .size = SIZE}, "read");
	check_cells(&request, n);
	return scene.reply.from_disk;
}

/* Opens it with its first n bytes. */
static uint64_t open_file(uint64_t n, const struct step *steps, size_t count, const struct expected *expected)
{
	struct h5_remote_request request = opening;

	request.n = n;
	memset(scene.f->end.memory, 0, (size_t)CELLS * CELL);
	check_reply(ask(request, steps, count), expected, "open");
	check_cells(&request, expected->got);
	return scene.reply.from_disk;
}

#define OFFER "If-None-Match: \"a\""
#define FIRST HEAD("206") RANGE("0-16383/49052") TAG("a")

static const struct step fetched = {.url = MINE,
				    .fields = {"!If-"},
				    .time = 99,
				    .head = FIRST END,
				    .n = CELL,
				    .piece = 1000},
			 confirmed = {.url = MINE,
				      .range = "0-16383",
				      .fields = {OFFER, "!If-Match"},
				      .head = HEAD("304") TAG("a") END},
			 last_block = {.url = MINE,
				       .range = "32768-49051",
				       .fields = {"If-Match: \"a\"", "!If-None"},
				       .head = HEAD("206") RANGE("32768-49051/49052") TAG("a") END,
				       .from = N,
				       .n = CELL - 100},
			 middle = {.url = MINE,
				   .range = "16384-32767",
				   .head = HEAD("206") RANGE("16384-32767/49052") TAG("a") END,
				   .from = CELL,
				   .n = CELL};
static const struct expected one_cell = {.got = CELL, .size = SIZE, .tag = "a"};

/* What was fetched is on the disk from then on, also for the next process; the server confirms it. */
START_TEST(bytes_on_disk)
{
	begin_disk();
	ck_assert_uint_eq(open_file(CELL, &fetched, 1, &one_cell), 0);
	ck_assert_uint_eq(read_file(N, CELL - 100, &last_block), 0);
	ck_assert_uint_eq(read_file(0, SIZE, &middle), SIZE - CELL);
	ck_assert_uint_eq(scene.reply.received, CELL);
	ck_assert_uint_eq(read_file(0, SIZE, NULL), SIZE);
	ck_assert_uint_eq(scene.reply.requests, 0);
	close_file(2);
	ck_assert_uint_eq(scene.f->disk.open, 0);
	ck_assert_uint_eq(open_file(CELL, &confirmed, 1, &one_cell), CELL);
	ck_assert_int_eq(scene.reply.mtime, 99);
	ck_assert_uint_eq(scene.reply.received, 0);
	ck_assert_uint_eq(read_file(CELL, N - 100, NULL), N - 100);
	end_disk();
	begin_again();
	ck_assert_uint_eq(
		open_file(CELL, (struct step[]){{.url = MINE, .fields = {OFFER}, .head = HEAD("304") END}}, 1,
			  &one_cell),
		CELL);
	ck_assert_uint_eq(read_file(0, SIZE, NULL), SIZE);
	end_disk();
	/* Its end is not a whole block. */
	begin_again();
	ck_assert_uint_eq(
		open_file(4 * CELL,
			  (struct step[]){{.url = MINE, .fields = {OFFER}, .head = HEAD("304") END}}, 1,
			  &(struct expected){.got = SIZE, .size = SIZE, .tag = "a"}),
		SIZE);
	end_disk();
}
END_TEST

/* Only if all of what is asked for is there, and only once, the server is asked whether it is the present
 * version. */
START_TEST(offers)
{
	static const struct step whole = {
		.url = MINE, .range = "0-32767", .fields = {"!If-"}, .head = PART, .n = N};
	const struct step lies[] = {{.url = MINE, .fields = {OFFER}, .head = HEAD("304") TAG("b") END},
				    fetched},
			  newer = {.url = MINE,
				   .fields = {OFFER},
				   .head = HEAD("206") RANGE("0-16383/49052") TAG("b") END,
				   .n = CELL},
			  again[] = {{.url = MINE, .fields = {OFFER}, .head = HEAD("500") END}, confirmed},
			  refused = {.url = MINE, .fields = {OFFER}, .head = HEAD("404") END};

	begin_disk();
	open_file(CELL, &fetched, 1, &one_cell);
	close_file(2);
	ck_assert_uint_eq(open_file(N, &whole, 1, &(struct expected){.got = N, .size = SIZE, .tag = "a"}), 0);
	close_file(2);
	ck_assert_uint_eq(open_file(CELL, lies, 2,
				    &(struct expected){.got = CELL, .size = SIZE, .tag = "a", .repeated = 1}),
			  0);
	close_file(2);
	ck_assert_uint_eq(open_file(CELL, again, 2,
				    &(struct expected){.got = CELL, .size = SIZE, .tag = "a", .repeated = 1}),
			  CELL);
	close_file(2);
	open_file(CELL, &refused, 1,
		  &(struct expected)FAILED(-ENOENT, H5_REMOTE_NOT_FOUND, "not found (HTTP 404)", 0));
	ck_assert_uint_eq(scene.f->disk.open, 0);
	ck_assert_uint_eq(
		open_file(CELL, &newer, 1, &(struct expected){.got = CELL, .size = SIZE, .tag = "b"}), 0);
	ck_assert_uint_eq(read_file(0, CELL, NULL), CELL);
	/* Of the older version nothing counts. */
	ck_assert_uint_eq(
		read_file(CELL, CELL,
			  (struct step[]){{.url = MINE,
					   .fields = {"If-Match: \"b\""},
					   .head = HEAD("206") RANGE("16384-32767/49052") TAG("b") END,
					   .from = CELL,
					   .n = CELL}}),
		0);
	end_disk();
}
END_TEST

/* What may not be stored is not, nor what the server could not confirm. */
START_TEST(what_is_not_kept)
{
	static const struct step all[] = {
		{.url = MINE, .head = FIRST LINE("Cache-Control: no-store") END, .n = CELL},
		{.url = MINE,
		 .head = HEAD("206") RANGE("0-16383/49052") LINE("ETag: W/\"a\"") END,
		 .n = CELL},
		{.url = MINE, .head = HEAD("206") RANGE("0-16383/49052") END, .n = CELL},
		{.url = MINE, .head = HEAD("200") TAG("a") END, .n = SIZE}};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		begin_disk();
		open_file(CELL, &all[i], 1, &(struct expected){.got = CELL, .size = SIZE});
		ck_assert_ptr_null(scene.f->sources[2].disk);
		close_file(2);
		open_file(CELL, &fetched, 1, &one_cell); /* nothing is offered */
		end_disk();
	}
	/* An answer that does not tell its tag may be of another version. */
	begin_disk();
	open_file(CELL, &fetched, 1, &one_cell);
	ck_assert_uint_eq(read_file(CELL, CELL,
				    (struct step[]){{.url = MINE,
						     .head = HEAD("206") RANGE("16384-32767/49052") END,
						     .from = CELL,
						     .n = CELL}}),
			  0);
	ck_assert_uint_eq(read_file(CELL, CELL, &middle), 0);
	ck_assert_uint_eq(read_file(CELL, CELL, NULL), CELL);
	/* Nothing is stored any more, but what is there can be read. */
	scene.f->disk.stopped = true;
	ck_assert_uint_eq(read_file(N, CELL - 100, &last_block), 0);
	ck_assert_uint_eq(read_file(N, CELL - 100, &last_block), 0);
	ck_assert_uint_eq(read_file(0, N, NULL), N);
	end_disk();
	/* Without a disk cache. */
	begin();
	h5_disk_begin(scene.f, -1);
	open_file(CELL, &fetched, 1, &one_cell);
	ck_assert_ptr_null(scene.f->sources[2].disk);
	ck_assert_uint_eq(read_file(N, CELL - 100, &last_block), 0);
	end();
}
END_TEST

/* A block that is damaged is fetched, and the log hears of it once. */
START_TEST(damaged_blocks)
{
	static const struct step start = {
		.url = MINE, .range = "0-16383", .fields = {"!If-None"}, .head = FIRST END, .n = CELL};
	const struct h5_disk_file *file;
	uint8_t byte;

	begin_disk();
	open_file(CELL, &fetched, 1, &one_cell);
	read_file(CELL, CELL, &middle);
	file = scene.f->sources[2].disk;
	ck_assert_int_eq(pread(file->fd, &byte, 1, (off_t)h5_disk_offset(SIZE, 1) + 77), 1);
	byte ^= 1;
	ck_assert_int_eq(pwrite(file->fd, &byte, 1, (off_t)h5_disk_offset(SIZE, 1) + 77), 1);
	/* The block before it is sound. */
	ck_assert_uint_eq(read_file(0, CELL, NULL), CELL);
	{
		const struct h5_remote_request request = {
			.what = H5_REMOTE_READ, .id = 9, .file = 2, .offset = CELL, .n = CELL};

		ask(request, &middle, 1);
		ck_assert_int_eq(scene.reply.code, 0);
		ck_assert_uint_eq(scene.reply.from_disk, 0);
		ck_assert_ptr_nonnull(strstr(scene.reply.text, "block 1 is damaged: thrown away"));
		check_cells(&request, CELL);
	}
	/* A new file has taken its place. */
	ck_assert_uint_eq(read_file(CELL, CELL, NULL), CELL);
	ck_assert_uint_eq(read_file(0, CELL, &start), 0);
	/* If it is to be offered. */
	file = scene.f->sources[2].disk;
	ck_assert_int_eq(pwrite(file->fd, &byte, 1, (off_t)h5_disk_offset(SIZE, 0) + 5), 1);
	close_file(2);
	{
		struct h5_remote_request request = opening;

		request.n = CELL;
		ask(request, &fetched, 1);
		ck_assert_int_eq(scene.reply.code, 0);
		ck_assert_uint_eq(scene.reply.from_disk, 0);
		ck_assert_ptr_nonnull(strstr(scene.reply.text, "block 0 is damaged: thrown away"));
	}
	ck_assert_uint_eq(read_file(0, CELL, NULL), CELL);
	end_disk();
}
END_TEST

/* What is kept is of the place that redirects lead to, but a signature makes no other place. */
START_TEST(places_on_disk)
{
#define FROM(place, ...)                                                                                     \
	{                                                                                                    \
		.url = (place), .head = FIRST END, .n = CELL, __VA_ARGS__                                    \
	}
	static const struct step
		first[] = {{.url = MINE, .fields = {"!If-"}, LEADS("http://a/x?Signature=1&Expires=1")},
			   FROM("http://a/x?Signature=1&Expires=1", .fields = {"!If-"})},
		second[] = {{.url = MINE, .fields = {"!If-"}, LEADS("http://a/x?Signature=2&Expires=2")},
			    {.url = "http://a/x?Signature=2&Expires=2",
			     .fields = {OFFER},
			     .head = HEAD("304") END}},
		third[] = {{.url = MINE, .fields = {"!If-"}, LEADS("http://b/x")},
			   FROM("http://b/x", .fields = {"!If-"})},
		gone[] = {{.url = "http://b/x", .head = HEAD("403") END},
			  {.url = MINE, LEADS("http://b/x?Signature=3")},
			  {.url = "http://b/x?Signature=3",
			   .head = HEAD("206") RANGE("16384-32767/49052") TAG("a") END,
			   .from = CELL,
			   .n = CELL}},
		moved[] = {{.url = "http://b/x?Signature=3", .head = HEAD("403") END},
			   {.url = MINE, LEADS("http://c/x")},
			   {.url = "http://c/x",
			    .head = HEAD("206") RANGE("32768-49051/49052") TAG("a") END,
			    .from = N,
			    .n = CELL - 100}};
	const struct h5_remote_request
		request = {.what = H5_REMOTE_READ, .id = 9, .file = 2, .offset = CELL, .n = CELL},
		last = {.what = H5_REMOTE_READ, .id = 9, .file = 2, .offset = N, .n = CELL - 100};

	begin_disk();
	ck_assert_uint_eq(open_file(CELL, first, 2, &one_cell), 0);
	close_file(2);
	ck_assert_uint_eq(open_file(CELL, second, 2, &one_cell), CELL);
	close_file(2);
	ck_assert_uint_eq(open_file(CELL, third, 2, &one_cell), 0);
	ask(request, gone, 3);
	ck_assert_int_eq(scene.reply.code, 0);
	ck_assert_ptr_nonnull(scene.f->sources[2].disk);
	ck_assert_uint_eq(read_file(CELL, CELL, NULL), CELL);
	ask(last, moved, 3);
	ck_assert_int_eq(scene.reply.code, 0);
	ck_assert_ptr_null(scene.f->sources[2].disk);
	end_disk();
}
END_TEST

/* Without memory for a request there is an error, and the fetcher goes on. */
START_TEST(memory_is_short)
{
	static const struct step step = {
		.url = MINE, .range = "0-32767", .fields = {"X-Mine: 1"}, .head = PART, .n = N};
	const struct expected good = {.got = N, .size = SIZE},
			      bad = FAILED(-ENOMEM, H5_REMOTE_OTHER, "no memory for a request", 0);
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		struct curl_slist *fields;

		begin();
		fields = curl_slist_append(NULL, "X-Mine: 1");
		scene.f->fields = fields;
		scene.f->certificates = (char[]){"/certificates"};
		fake_curl_arm(n);
		try(opening, &step, 1);
		fired = fake_curl_disarm();
		check_reply(&scene.reply, fired ? &bad : &good, "while memory is short");
		ck_assert_uint_eq(scene.next, !fired);
		if (fired)
			check_reply(ask(opening, &step, 1), &good, "then");
		end();
		curl_slist_free_all(fields);
	}
}
END_TEST

UNIT_MAIN_LOOPS("transfers", {files_are_opened, sizeof openings / sizeof *openings}, {whole_files, 1},
		{files_are_read, sizeof readings / sizeof *readings}, {the_rest_of_a_request, 1},
		{after_a_failure, 1}, {long_answers, 1}, {settings, 1},
		{objects_are_opened, sizeof stores / sizeof *stores}, {objects_are_signed_for, 1},
		{versions, 1}, {pages_are_listed, sizeof pages / sizeof *pages}, {pages_at_once, 1},
		{bytes_on_disk, 1}, {offers, 1}, {what_is_not_kept, 1}, {damaged_blocks, 1},
		{places_on_disk, 1}, {memory_is_short, 1})

#else

#include <stdio.h>

int main(void)
{
	puts("there is no libcurl, and so no fetcher");
	return 77;
}

#endif
