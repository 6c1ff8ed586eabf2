/* What comes of a request of the daemon, answer by answer: the test is the network, and the clock. */
#include "config.h"

#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef HAVE_LIBCURL

#include "transfer_scene.h"

/* ---- opening a file ---- */

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
	{"words of the last try",
	 {{.url = MINE, .result = CURLE_RECV_ERROR, .words = "first"},
	  {.url = MINE, .result = CURLE_RECV_ERROR},
	  {.url = MINE, .result = CURLE_RECV_ERROR},
	  {.url = MINE, .result = CURLE_RECV_ERROR, .words = "last"}},
	 FAILED(-EIO, H5_REMOTE_NETWORK, "last" TRIED_TEXT, 3)},
	{"no words of an earlier try",
	 {{.url = MINE, .result = CURLE_RECV_ERROR, .words = "first"},
	  {.url = MINE, .result = CURLE_RECV_ERROR},
	  {.url = MINE, .result = CURLE_RECV_ERROR},
	  {.url = MINE, .result = CURLE_RECV_ERROR}},
	 FAILED(-EIO, H5_REMOTE_NETWORK, "error 56" TRIED_TEXT, 3)},
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
		 {{.url = MINE,
		   .head = HEAD("200") LINE("Content-Length: 60001") END,
		   .n = 7001,
		   .piece = 7000}},
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
	static const struct scenario pieces = {
		"four pieces",
		{{.url = MINE, .head = HEAD("200") END, .n = 20000, .piece = 5000}},
		{.got = 20000, .size = 20000}};
	static const struct scenario none = {
		"none",
		{{.url = MINE, .head = HEAD("200") END, .n = 1}},
		FAILED(-EOPNOTSUPP, H5_REMOTE_NO_RANGES,
		       "the server gives no ranges of the file (remote_whole=SIZE reads a small one whole)",
		       0)};
	struct h5_remote_request request = opening;

	begin();
	for (size_t i = 0; i < 3; i++) {
		run(&all[i], &request);
		ck_assert_uint_eq(scene.reply.received, i == 1 ? 7000 : i ? 20000 : WHOLE + 1);
	}
	for (size_t i = 0; i < 2; i++) {
		request.file++;
		run(&more[i], &request);
	}
	ck_assert_uint_eq(scene.f->whole, WHOLE);
	/* From what is here, nobody is asked. */
	request = (struct h5_remote_request){
		.what = H5_REMOTE_READ, .id = 8, .file = 3, .offset = CELL, .n = CELL + 5};
	memset(scene.f->end.memory, 0, (size_t)CELLS * CELL);
	check_reply(ask(request, NULL, 0), &(struct expected){.got = CELL + 5, .size = 40000}, "here");
	check_cells(&request, CELL + 5);
	/* Cells have no bytes behind what was wanted. */
	for (size_t i = 5; i < CELL; i++)
		ck_assert_int_eq(scene.f->end.memory[(CELLS - 2) * CELL + i], 0);
	close_file(2);
	ck_assert_uint_eq(scene.f->whole, 40000);
	close_file(3);
	ck_assert_uint_eq(scene.f->whole, 0);
	/* No more is held than came. */
	run(&pieces, &opening);
	ck_assert_uint_eq(scene.f->whole, 20000);
	close_file(2);
	run(&last, &opening);
	close_file(2);
	scene.f->options.whole = 0;
	run(&none, &opening);
	end();
}
END_TEST

/* ---- reading ---- */

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
	{.scenario =
		 {"a range with its length",
		  {{.head = HEAD("206") REST LINE("Content-Length: 32668") END, .from = CELL, .n = N - 100}},
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
	{.scenario = {"the last byte alone",
		      {{.head = HEAD("206") REST END, .from = CELL, .n = N - 100, .piece = N - 101}},
		      {.got = N - 100, .size = SIZE}}},
#define LONGER                                                                                               \
	{                                                                                                    \
		.range = "16384-49051", .head = HEAD("206") REST END, .from = CELL, .n = N - 100 + 50        \
	}
	/* If all came, and more, all of it is asked for again. */
	{.scenario = {"a range and more",
		      {LONGER, LONGER, LONGER, LONGER},
		      FAILED(-EIO, H5_REMOTE_NETWORK, OTHER_RANGE, 3)}},
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

/* Only a server that has failed may be elsewhere by now. */
START_TEST(names_are_looked_up_again)
{
	static const struct step failing = {.result = CURLE_RECV_ERROR},
				 good = {.head = HEAD("206") REST END, .from = CELL, .n = N - 100};
	const struct {
		struct step steps[4];
		size_t count;
		bool again;
	} cases[] = {{{good}, 1, false}, {{failing, good}, 2, true},
		     {{good}, 1, false}, {{failing, failing, failing, failing}, 4, true},
		     {{good}, 1, true},	 {{good}, 1, false}};

	begin();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ask(reading, cases[i].steps, cases[i].count);
		ck_assert_msg(fake_curl_has(scene.f->transfers[0].easy, CURLOPT_DNS_CACHE_TIMEOUT) ==
				      cases[i].again,
			      "%zu", i);
	}
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

#define NO_MEMORY "no memory for a request"
#define NO_FILE	  "not a file beside the URL"

static void begin_fields(void)
{
	begin();
	scene.f->options.alone = false;
	scene.name = "a b";
	scene.name_size = 3;
}

START_TEST(memory_is_short_on_the_way)
{
	static const struct scenario
		elsewhere = {"a whole file elsewhere",
			     {{.url = MINE, LEADS("http://h/")},
			      {.url = "http://h/", .head = HEAD("200") END, .n = SIZE, .piece = 9000}},
			     {.got = N, .size = SIZE}},
		beside = {"a file beside",
			  {{.url = "http://host/folder/a%20b", .head = PART, .n = N}},
			  {.got = N, .size = SIZE}},
		open = {"an open file",
			{{.fields = {"If-Match: \"a\""},
			  .head = HEAD("206") REST END,
			  .from = CELL,
			  .n = N - 100}},
			{.got = N - 100, .size = SIZE}};

	run_short(&elsewhere, &opening, begin,
		  (const char *const[]){NO_MEMORY, NO_FILE,
					"a redirect that is not followed: a loop, or not to HTTP(S)",
					"the server gives no ranges of the file, which is larger than "
					"remote_whole= has room for",
					NULL});
	run_short(&beside, &opening, begin_fields, (const char *const[]){NO_MEMORY, NO_FILE, NULL});
	run_short(&open, &reading, begin, (const char *const[]){NO_MEMORY, NULL});
}
END_TEST

static bool is_never_answered(void *arg, CURL *easy, struct fake_answer *a)
{
	(void)arg;
	(void)a;
	ck_assert_str_eq(fake_curl_text(easy, CURLOPT_RANGE), "16384-49051");
	scene.next++;
	return false;
}

static void queue(struct h5_transfer *t, uint32_t id)
{
	t->state = H5_TRANSFER_QUEUED;
	t->fetcher = scene.f;
	t->source = &scene.f->sources[reading.file];
	t->request = reading;
	t->request.id = id;
	t->until = reading.n;
}

/* While the first request is under way, the daemon makes two more; later it goes away. */
static void ask_more_and_leave(void *arg, int milliseconds)
{
	(void)arg;
	ck_assert_int_eq(milliseconds, NOTHING_TO_DO);
	if (++scene.waits == 1) {
		queue(&scene.f->transfers[1], 3);
		queue(&scene.f->transfers[2], 2);
		return;
	}
	ck_assert_uint_eq(scene.waits, 2);
	shutdown(scene.ends[1], SHUT_WR);
}

/* All connections that there may be are used. With as many, the next request waits, and so does the fetcher.
 */
START_TEST(no_connection_is_left)
{
	struct h5_transfer *t;

	begin();
	t = scene.f->transfers;
	fake_curl.ask = is_never_answered;
	fake_curl.wait = ask_more_and_leave;
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, scene.ends),
			 0);
	scene.f->end.fd = scene.ends[0];
	ck_assert_uint_eq(scene.f->options.connections, 2);
	queue(&t[0], 4);
	fake_curl_set_clock(true);
	ck_assert_int_eq(h5_fetcher_serve(scene.f), EXIT_SUCCESS);
	fake_curl_set_clock(false);
	ck_assert_uint_eq(scene.next, 2);
	ck_assert_int_eq(t[0].state, H5_TRANSFER_RUNNING);
	ck_assert_int_eq(t[1].state, H5_TRANSFER_QUEUED);
	ck_assert_int_eq(t[2].state, H5_TRANSFER_RUNNING);
	curl_slist_free_all(t[0].fields);
	curl_slist_free_all(t[2].fields);
	close(scene.ends[0]);
	close(scene.ends[1]);
	end();
}
END_TEST

/* The kernel has no random bytes yet: then it is the number of the request that keeps tries apart. */
START_TEST(no_chance)
{
	static const struct step steps[] = {
		{.url = MINE, .head = HEAD("503") END},
		{.url = MINE, .at = 50 + 7, .head = HEAD("503") END},
		{.url = MINE, .at = 57 + 100 + 7, .head = PART, .n = N},
	};

	begin();
	fake_curl.no_chance = true;
	check_reply(ask(opening, steps, 3), &(struct expected){.got = N, .size = SIZE, .repeated = 2},
		    "no chance");
	end();
}
END_TEST

/* A pause is never longer than without chance, nor shorter than the half of that. */
START_TEST(much_chance)
{
	const struct {
		uint32_t chance;
		int64_t at;
	} cases[] = {{0, 50}, {50, 100}, {51, 50}, {1000, 50 + 31}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct step steps[] = {{.url = MINE, .head = HEAD("503") END},
					     {.url = MINE, .at = cases[i].at, .head = PART, .n = N}};

		begin();
		fake_curl.chance = cases[i].chance;
		check_reply(ask(opening, steps, 2), &(struct expected){.got = N, .size = SIZE, .repeated = 1},
			    "chance");
		end();
	}
}
END_TEST

/* Without libcurl there is no fetcher: it ends, and the daemon sees that. */
START_TEST(libcurl_fails)
{
	for (int polls = 0; polls < 2; polls++) {
		begin();
		ck_assert_int_eq(
			socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, scene.ends), 0);
		scene.f->end.fd = scene.ends[0];
		*(polls ? &fake_curl.poll : &fake_curl.perform) = CURLM_INTERNAL_ERROR;
		ck_assert_int_eq(h5_fetcher_serve(scene.f), EXIT_FAILURE);
		close(scene.ends[0]);
		close(scene.ends[1]);
		end();
	}
}
END_TEST

UNIT_MAIN_LOOPS("transfers", {files_are_opened, sizeof openings / sizeof *openings}, {whole_files, 1},
		{files_are_read, sizeof readings / sizeof *readings}, {the_rest_of_a_request, 1},
		{after_a_failure, 1}, {names_are_looked_up_again, 1}, {long_answers, 1}, {settings, 1},
		{memory_is_short, 1}, {memory_is_short_on_the_way, 1}, {no_connection_is_left, 1},
		{no_chance, 1}, {much_chance, 1}, {libcurl_fails, 1})

#else

#include <stdio.h>

int main(void)
{
	puts("there is no libcurl, and so no fetcher");
	return 77;
}

#endif
