/* Heads of responses, and URLs. */
#include "edge.h"
#include "fault_alloc.h"
#include "remote/response.h"
#include "remote/url.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The lines of a text, as libcurl hands them over. */
static bool take(struct h5_response *r, const char *text)
{
	bool good = true;

	memset(r, 0, sizeof *r);
	while (*text && good) {
		size_t n = strcspn(text, "\n") + 1;

		good = h5_response_line(r, text, n);
		text += n;
	}
	return good;
}

START_TEST(a_head_has_what_counts)
{
	struct h5_response r;

	ck_assert(take(&r,
		       "HTTP/1.1 103 Early\r\nETag: \"no\"\r\n\r\n"
		       "HTTP/1.1 206 Partial Content\r\ncontent-range:bytes 5-9/20\r\nContent-Length: 5 \r\n"
		       "ETag: \"a\"\r\nLast-Modified: today\r\nContent-Encoding: identity\r\n\r\n"));
	ck_assert(r.ranged && !r.whole && !r.malformed && !r.encoded && r.measured);
	ck_assert_uint_eq(r.status, 206);
	ck_assert(r.first == 5 && r.last == 9 && r.size == 20 && r.length == 5);
	ck_assert_str_eq(r.tag, "\"a\"");
	ck_assert_str_eq(r.modified, "today");
	/* Of some fields, the last one counts. */
	ck_assert(take(&r, "HTTP/1.1 206 x\r\nLast-Modified: yesterday\r\nLast-Modified: today\r\n"
			   "x-amz-bucket-region: eu-west-1\r\nx-amz-bucket-region: eu\r\n"));
	ck_assert_str_eq(r.modified, "today");
	ck_assert_str_eq(r.region, "eu");
	ck_assert(take(&r, "HTTP/1.1 416 x\r\nContent-Range: bytes */7\r\n"));
	ck_assert(r.whole && !r.ranged && r.size == 7);
}
END_TEST

START_TEST(trailers_change_nothing)
{
	struct h5_response r;

	ck_assert(take(&r, "HTTP/1.1 206 x\r\nContent-Range: bytes 0-9/10\r\nETag: \"a\"\r\n\r\n"
			   "ETag: \"b\"\r\nContent-Range: bytes 0-9/99\r\nHTTP/1.1 404 "
			   "x\r\nContent-Encoding: gzip\r\n"));
	ck_assert(r.status == 206 && r.size == 10 && !r.malformed && !r.encoded);
	ck_assert_str_eq(r.tag, "\"a\"");
}
END_TEST

START_TEST(nonsense_is_seen)
{
	static const char *const malformed[] = {
		"Content-Range: bytes 0-9/10\r\nContent-Range: bytes 0-9/11\r\n",
		"Content-Range: bytes */1\r\nContent-Range: bytes 0-0/1\r\n",
		"Content-Range: bytes 9-0/10\r\n",
		"Content-Range: bytes 0-10/10\r\n",
		"Content-Range: bytes 0-9/18446744073709551616\r\n",
		"Content-Range: bytes 0-9/9223372036854775808\r\n",
		"Content-Range: bytes -1-9/10\r\n",
		"Content-Range: bytes 0-9/*\r\n",
		"Content-Length: -1\r\n",
		"Content-Length: 1\r\nContent-Length: 2\r\n",
		"Content-Length: 1, 2\r\n",
		"ETag: \"a\"\r\nETag: \"b\"\r\n",
	};
	struct h5_response r;
	char head[128];

	for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
		snprintf(head, sizeof head, "HTTP/1.1 206 x\r\n%s", malformed[i]);
		ck_assert_msg(take(&r, head) && r.malformed, "%s", malformed[i]);
	}
	ck_assert(take(&r, "HTTP/1.1 206 x\r\nContent-Encoding: identity, gzip\r\n") && r.encoded);
	ck_assert(take(&r, "HTTP/1.1 206 x\r\nETag: \"a b\"\r\nETag: none\r\n") && !*r.tag && !r.malformed);
	ck_assert(!h5_response_line(&r, "X: a\0b\r\n", 8));
	memset(&r, 0, sizeof r);
	for (size_t n = 0; n + 8 <= H5_RESPONSE_HEAD; n += 8)
		ck_assert(h5_response_line(&r, "X: yz.\r\n", 8));
	ck_assert(!h5_response_line(&r, "X: yz.\r\n", 8));
}
END_TEST

/* Each at its limit, and with what may stand there twice. */
START_TEST(fields_at_their_limits)
{
	static const struct {
		const char *fields;
		bool malformed;
	} cases[] = {
		{"Content-Range: bytes 5-5/20\r\n", false},
		{"Content-Range: bytes 0-19/20\r\n", false},
		{"Content-Range: bytes 0-20/20\r\n", true},
		{"Content-Range: bytes 6-5/20\r\n", true},
		{"Content-Range: bytes 0-9/9223372036854775807\r\n", false},
		{"Content-Range: bytes 9223372036854775807-9223372036854775807/9223372036854775807\r\n",
		 true},
		{"Content-Range: 0-9/10\r\n", true},
		{"Content-Range: items 0-9/10\r\n", true},
		{"Content-Range: bytes 0+9/10\r\n", true},
		{"Content-Range: bytes 0-/10\r\n", true},
		{"Content-Range: bytes 0-9:10\r\n", true},
		{"Content-Range: bytes 0-9/10 x\r\n", true},
		{"Content-Range: bytes 0-9/\r\n", true},
		{"Content-Range: bytes */\r\n", true},
		{"Content-Range: bytes */7x\r\n", true},
		{"Content-Range: bytes 0-9\r\n", true},
		{"Content-Range: bytes 0-9/99999999999999999999\r\n", true},
		{"Content-Range: bytes 1-9/20\r\nContent-Range: bytes 1-9/20\r\n", false},
		{"Content-Range: bytes 1-9/20\r\nContent-Range: bytes 2-9/20\r\n", true},
		{"Content-Range: bytes 1-9/20\r\nContent-Range: bytes 1-8/20\r\n", true},
		{"Content-Range: bytes */7\r\nContent-Range: bytes */7\r\n", false},
		{"Content-Range: bytes */7\r\nContent-Range: bytes */8\r\n", true},
		{"Content-Length: 5\r\nContent-Length: 5\r\n", false},
		{"Content-Length: 18446744073709551615\r\n", false},
		{"Content-Length: 18446744073709551616\r\n", true},
		{"Content-Length: 99999999999999999999\r\n", true},
		{"Content-Length: \r\n", true},
		{"Content-Length: 5x\r\n", true},
		{"Content-Length: /\r\n", true},
		{"Content-Length: :\r\n", true},
		{"ETag: \"a\"\r\nETag: \"a\"\r\n", false},
		{"ETag: \"a\"\r\nETag: \"ab\"\r\n", true},
		{"ETag: \"ab\"\r\nETag: \"a\"\r\n", true},
		{"x-amz-version-id: a\r\nx-amz-version-id: a\r\n", false},
		{"x-amz-version-id: a\r\nx-amz-version-id: b\r\n", true},
		/* What was wrong stays so. */
		{"Content-Length: x\r\nETag: \"a\"\r\n", true},
	};
	struct h5_response r;
	char head[256];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(head, sizeof head, "HTTP/1.1 206 x\r\n%s", cases[i].fields);
		ck_assert_msg(take(&r, head) && r.malformed == cases[i].malformed, "%s", cases[i].fields);
	}
	ck_assert(take(&r, "HTTP/1.1 206 x\r\nContent-Range: bytes 1-19/20\r\n\r\n"));
	ck_assert(r.first == 1 && r.last == 19 && r.size == 20);
	ck_assert(take(&r, "HTTP/1.1 206 x\r\nContent-Length: 18446744073709551615\r\n\r\n"));
	ck_assert_uint_eq(r.length, UINT64_MAX);
}
END_TEST

static bool is_encoded(const char *fields)
{
	struct h5_response r;
	char head[256];

	snprintf(head, sizeof head, "HTTP/1.1 206 x\r\n%s\r\n", fields);
	ck_assert(take(&r, head) && !r.malformed);
	return r.encoded;
}

START_TEST(codings)
{
	ck_assert(!is_encoded("") && !is_encoded("Content-Encoding: \r\n"));
	ck_assert(!is_encoded("Content-Encoding: identity\r\n") && is_encoded("Content-Encoding: gzip\r\n"));
	ck_assert(is_encoded("Content-Encoding: identityx\r\n"));
	ck_assert(is_encoded("Content-Encoding: gzip\r\nContent-Encoding: identity\r\n"));
	ck_assert(is_encoded("Content-Encoding: identity\r\nContent-Encoding: gzip\r\n"));
}
END_TEST

START_TEST(status_lines)
{
	static const struct {
		const char *line;
		unsigned status; /* 0: it makes no sense */
	} cases[] = {{"HTTP/1.1 100 x\r\n", 100},
		     {"HTTP/1.1 999 x\r\n", 999},
		     {"HTTP/1.1 99 x\r\n", 0},
		     {"HTTP/1.1 1000 x\r\n", 0},
		     {"HTTP/1.1  206\r\n", 206},
		     {"HTTP/1.1\r\n", 0},
		     {"HTTP/1.1 \r\n", 0},
		     {"HTTP/1.1 OK\r\n", 0},
		     {"http/2 200\r\n", 200},
		     /* More than a number can be: 200 and 2^64. */
		     {"HTTP/1.1 18446744073709551816 x\r\n", 0}};
	struct h5_response r;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_assert_msg(take(&r, cases[i].line) && r.status == cases[i].status, "%s", cases[i].line);
		ck_assert_int_eq(r.malformed, !cases[i].status);
	}
	/* What follows is the head of the answer, or trailers of it. */
	ck_assert(take(&r, "HTTP/1.1 199 x\r\n\r\nETag: \"a\"\r\n"));
	ck_assert_str_eq(r.tag, "\"a\"");
	ck_assert(take(&r, "HTTP/1.1 200 x\r\n\r\nETag: \"a\"\r\n"));
	ck_assert_str_eq(r.tag, "");
	/* All heads count together. */
	memset(&r, 0, sizeof r);
	for (size_t n = 0; n + 16 <= H5_RESPONSE_HEAD; n += 16)
		ck_assert(h5_response_line(&r, "HTTP/1.1 100 x\r\n", 16));
	ck_assert_uint_eq(r.seen, H5_RESPONSE_HEAD);
	ck_assert(!h5_response_line(&r, "\r", 1));
}
END_TEST

/* The field with a text of n bytes: two of them are `ends`, between which there are letters. */
static void take_long(struct h5_response *r, const char *field, const char *ends, size_t n)
{
	char head[2048];
	size_t at = (size_t)sprintf(head, "HTTP/1.1 200 x\r\n%s: ", field);

	head[at] = ends[0];
	memset(head + at + 1, 'a', n - 2);
	head[at + n - 1] = ends[1];
	strcpy(head + at + n, "\r\n");
	ck_assert(take(r, head) && !r->malformed);
}

/* A text that is too long, or has bytes that may not stand there, counts as none. */
START_TEST(texts_at_their_limits)
{
	static const struct {
		const char *field, *tag;
	} tags[] = {{"W/\"a\"", "W/\"a\""},
		    {"\"\"", "\"\""},
		    {"\"!~\x80\"", "\"!~\x80\""},
		    {"\"", ""},
		    {"W/\"", ""},
		    {"", ""},
		    {"\"a", ""},
		    {"a\"", ""},
		    {"\"a\"b\"", ""},
		    {"\"a\x7f\"", ""},
		    {"\"a\x1f\"", ""}};
	struct h5_response r;
	char head[64];

	for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
		snprintf(head, sizeof head, "HTTP/1.1 200 x\r\nETag: %s\r\n", tags[i].field);
		ck_assert(take(&r, head) && !r.malformed);
		ck_assert_str_eq(r.tag, tags[i].tag);
		snprintf(head, sizeof head, "HTTP/1.1 200 x\r\nx-amz-version-id: %s\r\n", tags[i].field);
		ck_assert(take(&r, head) && !r.malformed);
		/* A version needs no quotes. */
		ck_assert_str_eq(r.version, strpbrk(tags[i].field, "\x7f\x1f") ? "" : tags[i].field);
	}
	take_long(&r, "ETag", "\"\"", H5_RESPONSE_TAG - 1);
	ck_assert_uint_eq(strlen(r.tag), H5_RESPONSE_TAG - 1);
	take_long(&r, "ETag", "\"\"", H5_RESPONSE_TAG);
	ck_assert_str_eq(r.tag, "");
	take_long(&r, "x-amz-version-id", "aa", H5_RESPONSE_VERSION - 1);
	ck_assert_uint_eq(strlen(r.version), H5_RESPONSE_VERSION - 1);
	take_long(&r, "x-amz-version-id", "aa", H5_RESPONSE_VERSION);
	ck_assert_str_eq(r.version, "");
	take_long(&r, "Last-Modified", "aa", sizeof r.modified - 1);
	ck_assert_uint_eq(strlen(r.modified), sizeof r.modified - 1);
	take_long(&r, "Last-Modified", "aa", sizeof r.modified);
	ck_assert_str_eq(r.modified, "");
	take_long(&r, "x-amz-bucket-region", "aa", H5_REGION - 1);
	ck_assert_uint_eq(strlen(r.region), H5_REGION - 1);
	take_long(&r, "x-amz-bucket-region", "aa", H5_REGION);
	ck_assert_str_eq(r.region, "");
	ck_assert(take(&r, "HTTP/1.1 301 x\r\nx-amz-bucket-region: evil.org/\r\n") && !*r.region);
	ck_assert(h5_response_is_strong("\"a\"") && !h5_response_is_strong("W/\"a\"") &&
		  !h5_response_is_strong(""));
}
END_TEST

/* No line is read behind its end, wherever that is. */
START_TEST(lines_end_anywhere)
{
	static const char *const lines[] = {"HTTP/1.1 206 Partial Content",
					    "Content-Range: bytes 5-9/20",
					    "Content-Range: bytes */20",
					    "Content-Length: 5",
					    "ETag: W/\"a\"",
					    "Last-Modified: today",
					    "Cache-Control: a,no-store,b",
					    "Content-Encoding: identity, gzip",
					    "x-amz-version-id: 17",
					    "x-amz-bucket-region: eu-west-1"};
	struct edge edge = edge_init(64);

	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		for (size_t n = 0; n <= strlen(lines[i]); n++) {
			struct h5_response r = {.status = 206};

			ck_assert(h5_response_line(&r, edge_put(&edge, lines[i], n), n));
		}
	edge_release(&edge);
}
END_TEST

START_TEST(a_url_names_a_server_and_a_file)
{
	static const struct {
		const char *url;
		bool good, remote, bucket;
	} cases[] = {
		{"http://h/a", true, true, false},
		{"HTTPS://h:81/a/b?c=d#e", true, true, false},
		{"https://[::1]/a", true, true, false},
		{"http://h/a@b", true, true, false},
		{"http://h/a b", false, true, false},
		{"http://h/a\nb", false, true, false},
		{"http://h/a\x7f", false, true, false},
		{"http://h", false, true, false},
		{"http://h/", false, true, false},
		{"http://h?a", false, true, false},
		{"http:///a", false, true, false},
		{"http://me@h/a", false, true, false},
		{"http://me:pw@h/a", false, true, false},
		{"ftp://h/a", false, false, false},
		{"http:/h/a", false, false, false},
		{"/http://h/a", false, false, false},
		{"s3://bucket/key", true, true, true},
		{"s3://b/a key", true, true, true},
		{"S3://My.bucket-1_x/k/e/y", true, true, true},
		{"s3://b/a\tkey", false, true, true},
		{"s3://b", true, true, true},
		{"s3://b/", true, true, true},
		{"s3://b/a//", true, true, true},
		{"s3://b/a?b/", false, true, true},
		{"s3://b/a#/", false, true, true},
		{"s3:///", false, true, true},
		{"s3://", false, true, true},
		{"s3:///k", false, true, true},
		{"s3://b@h/k", false, true, true},
		{"s3://b:1/k", false, true, true},
		{"s3://b%2fc/k", false, true, true},
		{"s3://b c/k", false, true, true},
		{"s3://b\xc3\xa9/k", false, true, true},
		{"s3://./k", false, true, true},
		{"s3://../k", false, true, true},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_assert_msg(h5_url_check(cases[i].url) == (cases[i].good ? 0 : -EINVAL), "%s",
			      cases[i].url);
		ck_assert_msg(h5_url_is_remote(cases[i].url) == cases[i].remote, "%s", cases[i].url);
		ck_assert_msg(h5_url_is_bucket(cases[i].url) == cases[i].bucket, "%s", cases[i].url);
		ck_assert(!h5_url_is_prefix(cases[i].url) || cases[i].bucket);
	}
	ck_assert(h5_url_is_prefix("s3://b") && h5_url_is_prefix("S3://b/") &&
		  h5_url_is_prefix("s3://b/a/b/"));
	ck_assert(!h5_url_is_prefix("s3://b/a") && !h5_url_is_prefix("https://h/a/") &&
		  !h5_url_is_prefix("b/"));
}
END_TEST

START_TEST(secrets_are_not_shown)
{
	static const char *const cases[][3] = {
		{"http://h/a?secret#b", "http://h/a", "http%3A//h/a%3Fsecret%23b"},
		{"http://h/a#b?c", "http://h/a", "http%3A//h/a%23b%3Fc"},
		{"s3://b/k", "s3://b/k", "s3%3A//b/k"},
		{"a-._~Z09 +%\xc3\xa9", "a-._~Z09 +%\xc3\xa9", "a-._~Z09%20%2B%25%C3%A9"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *shown = h5_url_shown(cases[i][0]), *encoded = h5_url_encode(cases[i][0]);

		ck_assert_pstr_eq(shown, cases[i][1]);
		ck_assert_pstr_eq(encoded, cases[i][2]);
		free(shown);
		free(encoded);
	}
}
END_TEST

START_TEST(a_redirect_leads_to_web_servers_alone)
{
	static const struct {
		const char *from, *to;
		bool may, same;
	} cases[] = {
		{"http://h/a", "http://h/b", true, true},
		{"http://h/a", "HTTP://H:80?b", true, true},
		{"https://h/a", "https://h:443/b", true, true},
		{"http://h/a", "https://h/a", true, false},
		{"https://h/a", "http://h/a", false, false},
		{"http://h/a", "http://h:81/a", true, false},
		{"http://h/a", "http://h.other/a", true, false},
		{"http://h/a", "http://other#@h/a", true, false},
		{"http://h/a", "http://me:pw@h/a", false, true},
		{"http://h/a", "http:///a", false, false},
		{"http://h/a", "file:///etc/passwd", false, false},
		{"http://h/a", "ftp://h/a", false, false},
		{"http://h/a", "/a", false, false},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_assert_msg(h5_url_may_lead(cases[i].from, cases[i].to) == cases[i].may, "%s", cases[i].to);
		ck_assert_msg(h5_url_same_origin(cases[i].from, cases[i].to) == cases[i].same, "%s",
			      cases[i].to);
	}
}
END_TEST

START_TEST(a_file_beside_is_beneath_the_folder)
{
	static const struct {
		const char *url, *name, *beside;
	} cases[] = {
		{"http://h/a/b.h5?q", "c/d e.h5", "http://h/a/c/d%20e.h5"},
		{"http://h/b.h5#/x", "%2e%2e", "http://h/%252e%252e"},
		{"http://h/a//b.h5", "x?y#z\\..", "http://h/a//x%3Fy%23z%5C.."},
		{"http://h/a/b.h5", "../c", NULL},
		{"http://h/a/b.h5", "c/..", NULL},
		{"http://h/a/b.h5", "./c", NULL},
		{"http://h/a/b.h5", "/c", NULL},
		{"http://h/a/b.h5", "c//d", NULL},
		{"http://h/a/b.h5", "", NULL},
		{"http://h/a/b.h5", "c/", NULL},
		{"http://h/a/b.h5", "c/../d", NULL},
		{"http://h/a/b.h5", ".", NULL},
		{"http://h/a/b.h5", "a/.b/..c/.../de/f", "http://h/a/a/.b/..c/.../de/f"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *beside = h5_url_beside(cases[i].url, cases[i].name);

		ck_assert_pstr_eq(beside, cases[i].beside);
		free(beside);
	}
}
END_TEST

/* What is made is of the length that was reserved: of 1000 bytes free() sees one too many. */
START_TEST(long_urls)
{
	char text[1001], *made[3];

	memset(text, '%', 1000);
	text[1000] = 0;
	for (int i = 0; i < 10; i++) {
		char url[1100];

		made[0] = h5_url_encode_value(text);
		ck_assert_uint_eq(strlen(made[0]), 3000);
		memcpy(url, "s3://", 5);
		memset(url + 5, 'a', 995);
		url[999] = 0;
		made[1] = h5_url_complete(url);
		ck_assert_uint_eq(strlen(made[1]), 1000);
		ck_assert(h5_url_is_prefix(made[1]));
		url[999] = 'a';
		url[1000] = 0;
		made[2] = h5_url_identity(url);
		ck_assert_str_eq(made[2], url);
		for (int k = 0; k < 3; k++)
			free(made[k]);
	}
}
END_TEST

START_TEST(complete_urls)
{
	static const char *const cases[][2] = {{"s3://b", "s3://b/"},
					       {"s3://b/", "s3://b/"},
					       {"s3://b/a/", "s3://b/a/"},
					       {"s3://b/a", "s3://b/a"},
					       {"http://h/a?q", "http://h/a?q"}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *got = h5_url_complete(cases[i][0]);

		ck_assert_str_eq(got, cases[i][1]);
		free(got);
		fault_alloc_arm(1);
		fault_alloc_count(true);
		got = h5_url_complete(cases[i][0]);
		fault_alloc_count(false);
		ck_assert(fault_alloc_disarm());
		ck_assert_ptr_null(got);
	}
}
END_TEST

UNIT_MAIN("remote", a_head_has_what_counts, trailers_change_nothing, nonsense_is_seen, fields_at_their_limits,
	  codings, status_lines, texts_at_their_limits, lines_end_anywhere, a_url_names_a_server_and_a_file,
	  secrets_are_not_shown, a_redirect_leads_to_web_servers_alone, a_file_beside_is_beneath_the_folder,
	  long_urls, complete_urls)
