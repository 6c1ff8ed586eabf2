/* Heads of responses, and URLs. */
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
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *beside = h5_url_beside(cases[i].url, cases[i].name);

		ck_assert_pstr_eq(beside, cases[i].beside);
		free(beside);
	}
}
END_TEST

UNIT_MAIN("remote", a_head_has_what_counts, trailers_change_nothing, nonsense_is_seen,
	  a_url_names_a_server_and_a_file, secrets_are_not_shown, a_redirect_leads_to_web_servers_alone,
	  a_file_beside_is_beneath_the_folder)
