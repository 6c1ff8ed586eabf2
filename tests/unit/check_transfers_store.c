/* What comes of a request of the daemon whose file is an object of a store. */
#include "config.h"

#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#ifdef HAVE_LIBCURL

#include "scratch.h"
#include "transfer_scene.h"

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

/* ---- newer credentials ---- */

/* The files of the profile, with the keys of that name. */
static void write_profile(const char *name)
{
	char path[200];
	FILE *file;

	snprintf(path, sizeof path, "%s/credentials", scratch_folder());
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fprintf(file,
		"[default]\naws_access_key_id = K%s\naws_secret_access_key = S%s\naws_session_token = T%s\n",
		name, name, name);
	fclose(file);
}

/* The keys are those of the profile, which another program writes anew. */
static void begin_profile(void)
{
	struct h5_identity *identity = &scene.f->credentials.identity;
	char path[200];

	begin_store();
	snprintf(path, sizeof path, "%s/credentials", scratch_folder());
	identity = &scene.f->credentials.identity;
	identity->from = H5_FROM_FILES;
	identity->profile = strdup("default");
	identity->files[0] = strdup(path);
	scene.f->credentials.now = (struct h5_grant){0};
	ck_assert_int_eq(h5_grant_set(&identity->keys, "K", "S", "T"), 0);
}

static void end_profile(void)
{
	free(scene.f->credentials.identity.profile);
	free(scene.f->credentials.identity.files[0]);
	h5_grant_release(&scene.f->credentials.now);
	end();
}

static const struct {
	const char *profile; /* that is there when the answer comes */
	struct scenario scenario;
} newer[] = {
	{"2",
	 {"newer keys",
	  {{.url = HERE,
	    .fields = {"x-amz-security-token: T"},
	    .head = HEAD("400") END,
	    .body = SAYS("ExpiredToken")},
	   {.url = HERE, .fields = {"x-amz-security-token: T2"}, .head = PART, .n = N}},
	  {.got = N, .size = SIZE}}},
	{"2",
	 {"newer keys that have expired, too",
	  {{.url = HERE, .head = HEAD("403") END, .body = SAYS("ExpiredToken")},
	   {.url = HERE,
	    .fields = {"x-amz-security-token: T2"},
	    .head = HEAD("403") END,
	    .body = SAYS("ExpiredToken")}},
	  FAILED(-EACCES, H5_REMOTE_FORBIDDEN, "no permission (HTTP 403: ExpiredToken)", 0)}},
	/* However long it takes: a request has newer keys once. */
	{"2",
	 {"newer keys that expire",
	  {{.url = HERE, .head = HEAD("400") END, .body = SAYS("ExpiredToken")},
	   {.url = HERE, .retry = 6, .head = HEAD("503") END},
	   {.url = HERE,
	    .at = 6000,
	    .fields = {"x-amz-security-token: T2"},
	    .head = HEAD("403") END,
	    .body = SAYS("ExpiredToken")}},
	  FAILED(-EACCES, H5_REMOTE_FORBIDDEN, "no permission (HTTP 403: ExpiredToken)", 1)}},
	{"",
	 {"the same keys",
	  {{.url = HERE, .head = HEAD("400") END, .body = SAYS("ExpiredToken")}},
	  FAILED(-EACCES, H5_REMOTE_FORBIDDEN, "the credentials of the profile have expired", 0)}},
	/* It is not for newer keys. */
	{"2",
	 {"no permission",
	  {{.url = HERE, .head = HEAD("403") END, .body = SAYS("AccessDenied")}},
	  FAILED(-EACCES, H5_REMOTE_FORBIDDEN, "no permission (HTTP 403: AccessDenied)", 0)}},
	{"2",
	 {"401",
	  {{.url = HERE, .head = HEAD("401") END}},
	  FAILED(-EACCES, H5_REMOTE_FORBIDDEN, "no permission (HTTP 401)", 0)}},
	{"2",
	 {"another server",
	  {{.url = HERE, LEADS("https://other/k")},
	   {.url = "https://other/k", .head = HEAD("400") END, .body = SAYS("ExpiredToken")}},
	  FAILED(-EACCES, H5_REMOTE_FORBIDDEN, "no permission (HTTP 400: ExpiredToken)", 0)}},
};

START_TEST(keys_of_a_profile)
{
	begin_profile();
	write_profile(newer[_i].profile);
	run(&newer[_i].scenario, &opening);
	end_profile();
}
END_TEST

/* Keys that have expired are asked for no more, if there are no newer ones; also if they came while the file
 * was open. */
START_TEST(newer_keys_that_expire)
{
	static const struct scenario expired = {
		"newer keys",
		{{.fields = {"x-amz-security-token: T2"},
		  .url = HERE,
		  .head = HEAD("400") END,
		  .body = SAYS("ExpiredToken")}},
		FAILED(-EIO, H5_REMOTE_FORBIDDEN, "the credentials of the profile have expired", 0)};

	begin_profile();
	write_profile("2");
	run(&newer[0].scenario, &opening);
	run(&expired, &reading);
	end_profile();
}
END_TEST

/* A request waits for keys until these are asked for again, and no longer; nor does it look again meanwhile.
 */
START_TEST(keys_that_are_waited_for)
{
	static char near[] = "http://near";
	static const struct step steps[] = {
		{.url = "http://near", .range = "", .result = CURLE_COULDNT_CONNECT},
		{.url = "http://near", .at = 200, .result = CURLE_COULDNT_CONNECT},
		{.url = "http://near",
		 .at = 600,
		 .head = HEAD("200") END,
		 .body = "{\"AccessKeyId\":\"L\",\"SecretAccessKey\":\"S\",\"Token\":\"T3\"}"},
		{.url = HERE, .at = 600, .fields = {"x-amz-security-token: T3"}, .head = PART, .n = N}};
	struct h5_credentials *c;

	begin_store();
	c = &scene.f->credentials;
	c->identity.from = H5_FROM_CONTAINER;
	c->identity.url = near;
	c->multi = scene.f->multi;
	c->now = (struct h5_grant){0};
	check_reply(ask(opening, steps, 4), &(struct expected){.got = N, .size = SIZE}, "keys");
	/* Twice until the next try, not at all for the request, and when all is done. */
	ck_assert_uint_eq(scene.waits, 4);
	h5_grant_release(&c->now);
	free(c->said);
	end();
}
END_TEST

/* ---- memory ---- */

static void begin_version(void)
{
	begin_store();
	strcpy(scene.f->sources[0].version, "v/1");
}

static void begin_listing(void)
{
	begin_store();
	scene.name = "/d/\0next";
	scene.name_size = 8;
}

/* Nothing of a change of the region stays if it cannot be finished. */
START_TEST(memory_is_short)
{
	static const struct scenario
		moved = {"another region",
			 {{.url = HERE, .head = HEAD("301") IN("there") END},
			  {.url = AT("there"), .head = PART, .n = N}},
			 {.got = N, .size = SIZE}},
		version = {"a version",
			   {{.url = HERE "?versionId=v%2F1",
			     .fields = {"If-Match: \"a\"", SIGNED, "x-amz-security-token: T"},
			     .head = HEAD("206") REST TAG("a") END,
			     .from = CELL,
			     .n = N - 100}},
			   {.got = N - 100, .size = SIZE}},
		page = {"a page behind another one",
			{{.url = "https://bucket.s3.here.amazonaws.com/?continuation-token=next&"
				 "delimiter=%2F&encoding-type=url&list-type=2&prefix=k%2Fd%2F",
			  .fields = {SIGNED, "x-amz-security-token: T"},
			  .head = HEAD("200") END,
			  .n = 40000,
			  .piece = 9000}},
			{.got = N, .size = 40000}};

	run_short(&moved, &opening, begin_store,
		  (const char *const[]){"no memory for a request", "not a file beside the URL", NULL});
	run_short(&version, &reading, begin_version, (const char *const[]){"no memory for a request", NULL});
	run_short(&page, &listing, begin_listing,
		  (const char *const[]){"no memory for a request", "not a listing of the prefix",
					"a page of the listing is longer than it may be", NULL});
}
END_TEST

UNIT_MAIN_LOOPS("transfers_store", {objects_are_opened, sizeof stores / sizeof *stores},
		{objects_are_signed_for, 1}, {versions, 1}, {pages_are_listed, sizeof pages / sizeof *pages},
		{pages_at_once, 1}, {keys_of_a_profile, sizeof newer / sizeof *newer},
		{newer_keys_that_expire, 1}, {keys_that_are_waited_for, 1}, {memory_is_short, 1})

#else

#include <stdio.h>

int main(void)
{
	puts("there is no libcurl, and so no fetcher");
	return 77;
}

#endif
