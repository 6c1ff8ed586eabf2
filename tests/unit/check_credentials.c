/* How credentials are got and kept: what is asked whom, and what comes of the answers. The test is the
 * network, and the clock. */
#include "config.h"

#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef HAVE_LIBCURL

#include "fake_curl.h"
#include "fault_alloc.h"
#include "remote/credentials.h"

/* 1970-01-12T13:46:40Z */
enum { START = 1000000000, NOW = START / 1000, STEPS = 12, HOLD = 5000 };

/* A request that is expected, and its answer. */
struct step {
	const char *url;
	const char *fields[2]; /* header lines; "!": none begins with the rest */
	const char *form;      /* of a POST; NULL: it is none */
	long timeout;	       /* milliseconds; 0: any */
	int64_t at;	       /* milliseconds from the begin on */
	int status;	       /* 0: no answer */
	const char *body;
};

static struct {
	struct h5_credentials c;
	const struct step *steps;
	size_t next;
} scene;

/* ---- the network ---- */

static bool answer(void *arg, CURL *easy, struct fake_answer *a)
{
	static char head[32];
	const struct step *step = &scene.steps[scene.next++];

	(void)arg;
	ck_assert_msg(step->url, "one more request: %s", fake_curl_text(easy, CURLOPT_URL));
	ck_assert_str_eq(fake_curl_text(easy, CURLOPT_URL), step->url);
	ck_assert_pstr_eq(fake_curl_text(easy, CURLOPT_COPYPOSTFIELDS), step->form);
	for (size_t i = 0; i < 2 && step->fields[i]; i++)
		if (*step->fields[i] == '!')
			ck_assert_pstr_eq(fake_curl_field(easy, step->fields[i] + 1), NULL);
		else
			ck_assert_pstr_eq(fake_curl_field(easy, step->fields[i]), step->fields[i]);
	ck_assert_int_eq(fake_curl.now - START, step->at);
	if (step->timeout)
		ck_assert_int_eq(fake_curl_number(easy, CURLOPT_TIMEOUT_MS), step->timeout);
	snprintf(head, sizeof head, "HTTP/1.1 %d x\r\n\r\n", step->status);
	*a = (struct fake_answer){.result = step->status ? CURLE_OK : CURLE_COULDNT_CONNECT};
	if (step->status) {
		a->head = head;
		a->body = step->body;
		a->size = step->body ? strlen(step->body) : 0;
		a->piece = 100;
	}
	return true;
}

static void begin(enum h5_identity_from from)
{
	static char sts[] = "https://sts/", role[] = "arn:r", session[] = "h5fs", url[] = "http://near";

	memset(&scene, 0, sizeof scene);
	scene.c.identity = (struct h5_identity){
		.from = from, .role = role, .session = session, .url = url, .sts = sts, .sts_region = "here"};
	scene.c.multi = curl_multi_init();
	scene.c.timeout = 30;
	fake_curl = (struct fake_curl){.ask = answer, .now = START};
	fake_curl_set_clock(true);
}

static void end(void)
{
	fake_curl_set_clock(false);
	h5_grant_release(&scene.c.now);
	h5_grant_release(&scene.c.base);
	free(scene.c.said);
	curl_slist_free_all(scene.c.fields);
	curl_multi_cleanup(scene.c.multi);
}

/* ---- a transfer that wants them ---- */

static enum h5_credentials_answer want(void)
{
	return h5_credentials_want(&scene.c, (uint64_t)fake_curl.now);
}

/* What comes of it in the end, by as many requests as there are steps. */
static enum h5_credentials_answer ask(const struct step *steps)
{
	enum h5_credentials_answer known = want();
	int running, left;
	CURLMsg *message;
	size_t count = 0;

	while (steps && steps[count].url)
		count++;
	scene.steps = steps;
	scene.next = 0;
	while (scene.c.state != H5_CREDENTIALS_IDLE) {
		if (scene.c.state == H5_CREDENTIALS_RESTING) {
			fake_curl.now = (int64_t)scene.c.due - 1;
			known = want();
			ck_assert_int_eq(scene.c.state, H5_CREDENTIALS_RESTING);
			fake_curl.now++;
			known = want();
		}
		ck_assert_int_eq(scene.c.state, H5_CREDENTIALS_ASKING);
		ck_assert_int_eq(known, scene.c.now.key && !scene.c.refused &&
							(!scene.c.now.expires ||
							 scene.c.now.expires > fake_curl.now / 1000)
						? H5_CREDENTIALS_GOOD
						: H5_CREDENTIALS_WAIT);
		curl_multi_perform(scene.c.multi, &running);
		message = curl_multi_info_read(scene.c.multi, &left);
		ck_assert_ptr_nonnull(message);
		curl_multi_remove_handle(scene.c.multi, message->easy_handle);
		ck_assert(!h5_credentials_end(&scene.c, NULL, CURLE_OK, (uint64_t)fake_curl.now));
		ck_assert(h5_credentials_end(&scene.c, message->easy_handle, message->data.result,
					     (uint64_t)fake_curl.now));
		known = scene.c.state == H5_CREDENTIALS_ASKING ? known : want();
	}
	ck_assert_uint_eq(scene.next, count);
	/* The credentials forget what they needed only to ask. */
	ck_assert(!scene.c.session && !scene.c.name && !scene.c.base.key && !scene.c.fields);
	return want();
}

static void is_granted(const struct step *steps, const char *key, int64_t expires)
{
	unsigned before = scene.c.generation;

	ck_assert_int_eq(ask(steps), H5_CREDENTIALS_GOOD);
	ck_assert_pstr_eq(scene.c.now.key, key);
	ck_assert_int_eq(scene.c.now.expires, expires);
	ck_assert_uint_eq(scene.c.generation, before + !!steps);
	ck_assert_int_eq(scene.c.code, 0);
}

static void is_failure(const struct step *steps, int code, const char *text)
{
	ck_assert_int_eq(ask(steps), H5_CREDENTIALS_NONE);
	ck_assert_str_eq(scene.c.text, text);
	ck_assert_int_eq(scene.c.code, code);
	ck_assert_int_eq(scene.c.reason, code == -EACCES ? H5_REMOTE_FORBIDDEN : H5_REMOTE_NETWORK);
	ck_assert_uint_eq(scene.c.due, (uint64_t)fake_curl.now + HOLD);
}

#define JSON(key, end)                                                                                       \
	"{\"AccessKeyId\":\"" key "\",\"SecretAccessKey\":\"s\",\"Token\":\"t\",\"Expiration\":\"" end "\"}"
#define IN_AN_HOUR "1970-01-12T14:46:40Z"
#define ROLES	   "http://near/latest/meta-data/iam/security-credentials/"
#define SESSION(...)                                                                                         \
	{                                                                                                    \
		.url = "http://near/latest/api/token",                                                       \
		.fields = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"}, __VA_ARGS__                       \
	}
#define SESSION_GOOD SESSION(.timeout = 1000, .status = 200, .body = "tok\nmore")

/* ---- machines ---- */

START_TEST(a_machine)
{
	static const struct step good[] = {
		SESSION_GOOD,
		{.url = ROLES, .fields = {"X-aws-ec2-metadata-token: tok"}, .status = 200, .body = "a/b"},
		{.url = ROLES "a%2Fb",
		 .fields = {"X-aws-ec2-metadata-token: tok"},
		 .status = 200,
		 .body = JSON("k", IN_AN_HOUR)},
		{0}};

	begin(H5_FROM_INSTANCE);
	is_granted(good, "k", NOW + 3600);
	ck_assert_pstr_eq(scene.c.now.secret, "s");
	ck_assert_pstr_eq(scene.c.now.token, "t");
	ck_assert_int_eq(scene.c.renew, NOW + 3300);
	ck_assert_pstr_eq(fake_curl_text(scene.c.easy, CURLOPT_PROXY), "");
	ck_assert_pstr_eq(fake_curl_text(scene.c.easy, CURLOPT_CUSTOMREQUEST), NULL);
	ck_assert_uint_eq(scene.c.granted, START);
	end();
}
END_TEST

/* Nobody is there, or nobody who knows of credentials: that is not asked again. */
START_TEST(a_machine_without)
{
	static const char none[] = "no credentials were found: see the environment, ~/.aws, or s3_anonymous";
	static const struct step gone[] = {SESSION(.status = 0), {0}},
				 unknown[] = {SESSION(.status = 404), {0}},
				 roleless[] = {SESSION_GOOD, {.url = ROLES, .status = 404}, {0}},
				 keyless[] = {SESSION_GOOD,
					      {.url = ROLES, .status = 200, .body = "r"},
					      {.url = ROLES "r", .status = 404},
					      {0}};
	const struct step *const all[] = {gone, unknown, roleless, keyless};

	for (size_t i = 0; i < 4; i++) {
		begin(H5_FROM_INSTANCE);
		is_failure(all[i], -EACCES, none);
		/* For a while. */
		fake_curl.now += HOLD - 1;
		ck_assert_int_eq(want(), H5_CREDENTIALS_NONE);
		ck_assert_int_eq(scene.c.state, H5_CREDENTIALS_IDLE);
		fake_curl.now++;
		ck_assert_int_eq(want(), H5_CREDENTIALS_WAIT);
		ck_assert_int_eq(scene.c.state, H5_CREDENTIALS_ASKING);
		end();
	}
}
END_TEST

/* What may go by is tried again, with more patience each time. */
START_TEST(a_machine_that_fails)
{
	static const struct {
		int status;
		const char *body;
		int code;
		const char *text;
		bool again;
	} all[] = {
		{500, NULL, -EIO, "the metadata service gives no credentials (HTTP 500)", true},
		{599, NULL, -EIO, "the metadata service gives no credentials (HTTP 599)", true},
		{408, NULL, -EACCES, "the metadata service gives no credentials (HTTP 408)", true},
		{429, NULL, -EACCES, "the metadata service gives no credentials (HTTP 429)", true},
		{200, "", -EIO, "the metadata service gives no credentials: its answer makes no sense", true},
		{200, "a b", -EIO, "the metadata service gives no credentials: its answer makes no sense",
		 true},
		{403, NULL, -EACCES, "the metadata service gives no credentials (HTTP 403)", false},
		{400, "<Error><Code>Bad</Code></Error>", -EACCES,
		 "the metadata service gives no credentials (HTTP 400: Bad)", false},
		{499, NULL, -EACCES, "the metadata service gives no credentials (HTTP 499)", false},
		{301, NULL, -EIO, "the metadata service gives no credentials (HTTP 301)", false}};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		const struct step tries[] = {
			SESSION(.timeout = 1000, .status = all[i].status, .body = all[i].body),
			SESSION(.timeout = 2000, .at = 200, .status = all[i].status, .body = all[i].body),
			SESSION(.timeout = 3000, .at = 600, .status = all[i].status, .body = all[i].body),
			{0}};
		const struct step once[] = {tries[0], {0}};

		begin(H5_FROM_INSTANCE);
		is_failure(all[i].again ? tries : once, all[i].code, all[i].text);
		end();
	}
}
END_TEST

/* New ones are asked for before the end; if that fails, the old ones serve until then. */
START_TEST(before_the_end)
{
	static const struct step second[] = {SESSION(.timeout = 1000, .at = 3300000),
					     SESSION(.at = 3300200),
					     SESSION(.at = 3300600),
					     {0}},
				 third[] = {SESSION(.at = 3305600, .status = 200, .body = "u"),
					    {.url = ROLES, .at = 3305600, .status = 200, .body = "r"},
					    {.url = ROLES "r",
					     .at = 3305600,
					     .status = 200,
					     .body = JSON("l", "1970-01-12T14:51:40Z")},
					    {0}},
				 fourth[] = {SESSION(.at = 3900000),
					     SESSION(.at = 3900200),
					     SESSION(.at = 3900600),
					     {0}};

	begin(H5_FROM_INSTANCE);
	is_granted((struct step[]){SESSION_GOOD,
				   {.url = ROLES, .status = 200, .body = "r"},
				   {.url = ROLES "r", .status = 200, .body = JSON("k", IN_AN_HOUR)},
				   {0}},
		   "k", NOW + 3600);
	fake_curl.now += 3300000 - 1;
	is_granted(NULL, "k", NOW + 3600);
	fake_curl.now += 1;
	ck_assert_int_eq(ask(second), H5_CREDENTIALS_GOOD);
	ck_assert_int_eq(scene.c.code, -EIO);
	ck_assert_str_eq(scene.c.text, "the metadata service gives no credentials: error 7");
	fake_curl.now += HOLD - 1;
	ck_assert_int_eq(ask(NULL), H5_CREDENTIALS_GOOD);
	fake_curl.now += 1;
	is_granted(third, "l", NOW + 3900);
	/* 595 seconds are left: half of these. */
	ck_assert_int_eq(scene.c.renew, NOW + 3900 - 297);
	/* Nobody has asked until they had ended. */
	fake_curl.now = START + 3900000;
	is_failure(fourth, -EIO, "the metadata service gives no credentials: error 7");
	end();
}
END_TEST

static void is_renewed_at(const char *expiration, int64_t expires, int64_t renew)
{
	char body[256];
	const struct step steps[] = {{.url = "http://near", .status = 200, .body = body}, {0}};

	snprintf(body, sizeof body, JSON("k", "%s"), expiration);
	begin(H5_FROM_CONTAINER);
	is_granted(steps, "k", expires);
	ck_assert_int_eq(scene.c.renew, renew);
	end();
}

START_TEST(times)
{
	is_renewed_at("1970-01-12T13:56:42Z", NOW + 602, NOW + 302);
	is_renewed_at("1970-01-12T13:56:38Z", NOW + 598, NOW + 299);
	is_renewed_at("1970-01-12T13:46:41Z", NOW + 1, NOW + 1);
	/* The clock is wrong. */
	is_renewed_at("1970-01-12T13:46:40Z", 0, INT64_MAX);
	is_renewed_at("1970-01-12T13:46:39Z", 0, INT64_MAX);
}
END_TEST

/* ---- containers ---- */

static int write_token(const char *text, char name[40])
{
	int fd = memfd_create("token", MFD_CLOEXEC);

	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	snprintf(name, 40, "/proc/self/fd/%d", fd);
	return fd;
}

START_TEST(a_container)
{
	static const struct step bare[] = {{.url = "http://near",
					    .fields = {"!Authorization"},
					    .timeout = 1000,
					    .status = 200,
					    .body = JSON("k", IN_AN_HOUR)},
					   {0}},
				 shown[] = {{.url = "http://near",
					     .fields = {"Authorization: Bearer x"},
					     .status = 200,
					     .body = JSON("k", IN_AN_HOUR)},
					    {0}},
				 refused[] = {{.url = "http://near", .status = 403}, {0}};
	static const char unreadable[] =
		"the credentials cannot be asked for: their token file cannot be read";
	static const char *const wrong[] = {"a\nb", "a\rb", "", "\n"};
	char name[40];
	int fd = write_token(" Bearer x\n", name);

	begin(H5_FROM_CONTAINER);
	is_granted(bare, "k", NOW + 3600);
	ck_assert_pstr_eq(fake_curl_text(scene.c.easy, CURLOPT_PROXY), "");
	end();
	begin(H5_FROM_CONTAINER);
	scene.c.identity.token = (char[]){"Bearer x"};
	is_granted(shown, "k", NOW + 3600);
	end();
	begin(H5_FROM_CONTAINER);
	scene.c.identity.file = name;
	is_granted(shown, "k", NOW + 3600);
	end();
	close(fd);
	begin(H5_FROM_CONTAINER);
	scene.c.identity.file = name;
	is_failure(NULL, -EACCES, unreadable);
	end();
	for (size_t i = 0; i < 4; i++) {
		begin(H5_FROM_CONTAINER);
		scene.c.identity.token = (char *)wrong[i];
		is_failure(NULL, -EACCES, unreadable);
		end();
	}
	/* An answer without keys. */
	begin(H5_FROM_CONTAINER);
	is_failure((struct step[]){{.url = "http://near", .status = 200, .body = "{}"},
				   {.url = "http://near", .at = 200, .status = 200, .body = "{}"},
				   {.url = "http://near", .at = 600, .status = 200, .body = "{}"},
				   {0}},
		   -EIO,
		   "the container's server of credentials gives no credentials: its answer makes no sense");
	end();
	/* Others than machines never lack credentials. */
	begin(H5_FROM_CONTAINER);
	is_failure(refused, -EACCES, "the container's server of credentials gives no credentials (HTTP 403)");
	end();
	begin(H5_FROM_CONTAINER);
	is_failure((struct step[]){{.url = "http://near", .status = 404}, {0}}, -EACCES,
		   "the container's server of credentials gives no credentials (HTTP 404)");
	end();
}
END_TEST

/* An answer has a length that it may have. */
START_TEST(long_answers)
{
	static char text[(64 << 10) + 2];
	const struct step good[] = {{.url = "http://near", .status = 200, .body = text}, {0}},
			  bad[] = {{.url = "http://near", .status = 200, .body = text},
				   {.url = "http://near", .at = 200, .status = 200, .body = text},
				   {.url = "http://near", .at = 600, .status = 200, .body = text},
				   {0}};

	memset(text, ' ', 64 << 10);
	memcpy(text, JSON("k", IN_AN_HOUR), strlen(JSON("k", IN_AN_HOUR)));
	begin(H5_FROM_CONTAINER);
	is_granted(good, "k", NOW + 3600);
	end();
	text[64 << 10] = ' ';
	begin(H5_FROM_CONTAINER);
	is_failure(bad, -EIO, "the container's server of credentials gives no credentials: error 23");
	end();
}
END_TEST

/* ---- roles ---- */

#define STS(action, key)                                                                                     \
	"<" action "Response><" action "Result><Credentials><AccessKeyId>" key                               \
	"</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</"                                \
	"SessionToken><Expiration>" IN_AN_HOUR "</Expiration></Credentials></" action "Result></" action     \
	"Response>"
#define FORM(action, rest) "Action=" action "&Version=2011-06-15&RoleArn=arn%3Ar&RoleSessionName=h5fs" rest

START_TEST(a_token)
{
	static const struct step
		good[] = {{.url = "https://sts/",
			   .form = FORM("AssumeRoleWithWebIdentity", "&WebIdentityToken=a%2Bb%0Ac"),
			   .timeout = 30000,
			   .status = 200,
			   .body = STS("AssumeRoleWithWebIdentity", "k")},
			  {0}},
		refused[] = {
			{.url = "https://sts/",
			 .form = FORM("AssumeRoleWithWebIdentity", "&WebIdentityToken=a%2Bb%0Ac"),
			 .status = 403,
			 .body = "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>"},
			{0}};
	static const char unreadable[] =
		"the credentials cannot be asked for: their token file cannot be read";
	char name[40], empty[40];
	int fd = write_token("a+b\nc\n", name), none = write_token("", empty);

	begin(H5_FROM_TOKEN);
	scene.c.identity.file = name;
	is_granted(good, "k", NOW + 3600);
	ck_assert_pstr_eq(fake_curl_text(scene.c.easy, CURLOPT_PROXY), NULL);
	ck_assert_pstr_eq(fake_curl_text(scene.c.easy, CURLOPT_AWS_SIGV4), NULL);
	end();
	begin(H5_FROM_TOKEN);
	scene.c.identity.file = name;
	is_failure(refused, -EACCES, "the token server (STS) gives no credentials (HTTP 403: AccessDenied)");
	end();
	begin(H5_FROM_TOKEN);
	scene.c.identity.file = empty;
	is_failure(NULL, -EACCES, unreadable);
	close(fd);
	scene.c.identity.file = name;
	fake_curl.now += HOLD;
	is_failure(NULL, -EACCES, unreadable);
	end();
	close(none);
}
END_TEST

START_TEST(a_role)
{
	static const struct step
		outside[] = {{.url = "https://sts/",
			      .form = FORM("AssumeRole", "&ExternalId=x%20y"),
			      .status = 200,
			      .body = STS("AssumeRole", "k")},
			     {0}},
		inside[] = {{.url = "https://sts/",
			     .form = FORM("AssumeRole", ""),
			     .fields = {"x-amz-security-token: t"},
			     .status = 200,
			     .body = STS("AssumeRole", "k")},
			    {0}},
		of_machine[] = {SESSION_GOOD,
				{.url = ROLES, .status = 200, .body = "r"},
				{.url = ROLES "r", .status = 200, .body = JSON("base", IN_AN_HOUR)},
				{.url = "https://sts/",
				 .form = FORM("AssumeRole", ""),
				 .fields = {"x-amz-security-token: t", "!X-aws"},
				 .status = 200,
				 .body = STS("AssumeRole", "k")},
				{0}},
		missing[] = {{.url = "https://sts/", .form = FORM("AssumeRole", ""), .status = 404}, {0}};

	begin(H5_FROM_KEYS);
	scene.c.identity.becomes = true;
	scene.c.identity.external = (char[]){"x y"};
	scene.c.identity.keys = (struct h5_grant){.key = (char[]){"own"}, .secret = (char[]){"secret"}};
	is_granted(outside, "k", NOW + 3600);
	ck_assert_pstr_eq(fake_curl_text(scene.c.easy, CURLOPT_AWS_SIGV4), "aws:amz:here:sts");
	ck_assert_pstr_eq(fake_curl_text(scene.c.easy, CURLOPT_USERNAME), "own");
	ck_assert_pstr_eq(fake_curl_text(scene.c.easy, CURLOPT_PASSWORD), "secret");
	end();
	begin(H5_FROM_KEYS);
	scene.c.identity.becomes = true;
	scene.c.identity.keys = (struct h5_grant){
		.key = (char[]){"own"}, .secret = (char[]){"secret"}, .token = (char[]){"t"}};
	is_granted(inside, "k", NOW + 3600);
	end();
	begin(H5_FROM_INSTANCE);
	scene.c.identity.becomes = true;
	is_granted(of_machine, "k", NOW + 3600);
	ck_assert_pstr_eq(fake_curl_text(scene.c.easy, CURLOPT_USERNAME), "base");
	end();
	/* The token server is there even if it says 404. */
	begin(H5_FROM_KEYS);
	scene.c.identity.becomes = true;
	scene.c.identity.keys = (struct h5_grant){.key = (char[]){"own"}, .secret = (char[]){"secret"}};
	is_failure(missing, -EACCES, "the token server (STS) gives no credentials (HTTP 404)");
	end();
}
END_TEST

/* ---- credentials that the user gives ---- */

START_TEST(given_ones)
{
	begin(H5_FROM_NOBODY);
	ck_assert_int_eq(want(), H5_CREDENTIALS_GOOD);
	ck_assert_ptr_null(scene.c.now.key);
	ck_assert(!h5_credentials_refuse(&scene.c, 0, START));
	end();
	begin(H5_FROM_KEYS);
	ck_assert_int_eq(h5_grant_set(&scene.c.identity.keys, "k", "s", NULL), 0);
	is_granted(NULL, "k", 0);
	ck_assert_ptr_null(scene.c.identity.keys.key);
	ck_assert(!h5_credentials_refuse(&scene.c, 0, START));
	ck_assert_int_eq(want(), H5_CREDENTIALS_GOOD);
	end();
}
END_TEST

#define PROFILE(key, secret, rest) "[p]\naws_access_key_id=" key "\naws_secret_access_key=" secret "\n" rest

static void rewrite(int fd, const char *text)
{
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	ck_assert_int_eq(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
}

/* Another program writes newer ones into the files, as soon as the store has refused the old ones. */
START_TEST(files)
{
	static const char *const newer[] = {PROFILE("l", "s", "aws_session_token=t\n"),
					    PROFILE("k", "r", "aws_session_token=t\n"),
					    PROFILE("k", "s", "aws_session_token=u\n")};
	char name[40];
	int fd = write_token("", name);

	for (size_t i = 0; i < 3; i++) {
		begin(H5_FROM_FILES);
		scene.c.identity.files[0] = name;
		scene.c.identity.profile = (char[]){"p"};
		ck_assert_int_eq(h5_grant_set(&scene.c.identity.keys, "k", "s", "t"), 0);
		rewrite(fd, PROFILE("k", "s", "aws_session_token=t\n"));
		is_granted(NULL, "k", 0);
		ck_assert(h5_credentials_refuse(&scene.c, 0, START));
		is_failure(NULL, -EACCES, "the credentials of the profile have expired");
		fake_curl.now += HOLD - 1;
		rewrite(fd, newer[i]);
		ck_assert_int_eq(want(), H5_CREDENTIALS_NONE);
		fake_curl.now++;
		ck_assert_int_eq(want(), H5_CREDENTIALS_GOOD);
		ck_assert_uint_eq(scene.c.generation, 1);
		ck_assert_pstr_eq(scene.c.now.key, i ? "k" : "l");
		ck_assert_pstr_eq(scene.c.now.secret, i == 1 ? "r" : "s");
		ck_assert_pstr_eq(scene.c.now.token, i == 2 ? "u" : "t");
		/* The others have been refused in the meantime. */
		ck_assert(h5_credentials_refuse(&scene.c, 0, (uint64_t)fake_curl.now));
		ck_assert_int_eq(want(), H5_CREDENTIALS_GOOD);
		/* If the newer ones are refused at once, too, it is no matter of time. */
		ck_assert(!h5_credentials_refuse(&scene.c, 1, (uint64_t)fake_curl.now + HOLD - 1));
		ck_assert_int_eq(want(), H5_CREDENTIALS_GOOD);
		if (i == 1)
			h5_credentials_prove(&scene.c, 1);
		h5_credentials_prove(&scene.c, 0);
		ck_assert_int_eq(h5_credentials_refuse(&scene.c, 1, (uint64_t)fake_curl.now + HOLD - 1),
				 i == 1);
		ck_assert(h5_credentials_refuse(&scene.c, 1, (uint64_t)fake_curl.now + HOLD));
		rewrite(fd, "[q]\n");
		is_failure(NULL, -EACCES, "the profile has no credentials any more");
		end();
	}
	close(fd);
}
END_TEST

/* ---- memory ---- */

static void arm_libcurl(unsigned long n)
{
	fake_curl_arm(n);
}

static void arm_allocation(unsigned long n)
{
	fault_alloc_arm(n);
	fault_alloc_count(true);
}

static bool disarm_allocation(void)
{
	fault_alloc_count(false);
	return fault_alloc_disarm();
}

static const struct {
	void (*arm)(unsigned long n);
	bool (*disarm)(void);
} lacks[] = {{arm_libcurl, fake_curl_disarm}, {arm_allocation, disarm_allocation}};

/* Goes on until there are credentials, or none. */
static enum h5_credentials_answer get(void)
{
	enum h5_credentials_answer known;

	while ((known = want()) == H5_CREDENTIALS_WAIT) {
		int running, left;
		CURLMsg *message;

		if (scene.c.state == H5_CREDENTIALS_RESTING) {
			fake_curl.now = (int64_t)scene.c.due;
			continue;
		}
		curl_multi_perform(scene.c.multi, &running);
		message = curl_multi_info_read(scene.c.multi, &left);
		ck_assert_ptr_nonnull(message);
		curl_multi_remove_handle(scene.c.multi, message->easy_handle);
		h5_credentials_end(&scene.c, message->easy_handle, message->data.result,
				   (uint64_t)fake_curl.now);
	}
	return known;
}

/* Answers all that is asked, as often as it is asked. */
static bool answer_any(void *arg, CURL *easy, struct fake_answer *a)
{
	const struct step *step = arg;

	while (step->url && strcmp(step->url, fake_curl_text(easy, CURLOPT_URL)))
		step++;
	ck_assert_ptr_nonnull(step->url);
	ck_assert_pstr_eq(fake_curl_text(easy, CURLOPT_COPYPOSTFIELDS), step->form);
	for (size_t i = 0; i < 2 && step->fields[i]; i++)
		ck_assert_pstr_eq(fake_curl_field(easy, step->fields[i]), step->fields[i]);
	*a = (struct fake_answer){.head = "HTTP/1.1 200 x\r\n\r\n",
				  .body = step->body,
				  .size = strlen(step->body),
				  .piece = 100};
	return true;
}

/* Whatever lacks memory: there are credentials, or an error, and later there are. Nothing is asked for
 * otherwise than with memory. */
START_TEST(memory_is_short)
{
	static const struct {
		enum h5_identity_from from;
		bool becomes;
		const char *external, *token;
		struct step steps[5];
	} all[] = {
		{.from = H5_FROM_INSTANCE,
		 .becomes = true,
		 .steps = {SESSION(.body = "tok"),
			   {.url = ROLES, .fields = {"X-aws-ec2-metadata-token: tok"}, .body = "r"},
			   {.url = ROLES "r",
			    .fields = {"X-aws-ec2-metadata-token: tok"},
			    .body = JSON("base", IN_AN_HOUR)},
			   {.url = "https://sts/",
			    .form = FORM("AssumeRole", ""),
			    .fields = {"x-amz-security-token: t"},
			    .body = STS("AssumeRole", "k")}}},
		{.from = H5_FROM_CONTAINER,
		 .token = "Bearer x",
		 .steps = {{.url = "http://near",
			    .fields = {"Authorization: Bearer x"},
			    .body = JSON("k", IN_AN_HOUR)}}},
		{.from = H5_FROM_TOKEN,
		 .steps = {{.url = "https://sts/",
			    .form = FORM("AssumeRoleWithWebIdentity", "&WebIdentityToken=w"),
			    .body = STS("AssumeRoleWithWebIdentity", "k")}}},
		{.from = H5_FROM_KEYS,
		 .becomes = true,
		 .external = "x y",
		 .steps = {{.url = "https://sts/",
			    .form = FORM("AssumeRole", "&ExternalId=x%20y"),
			    .body = STS("AssumeRole", "k")}}},
	};
	char name[40];
	int fd = write_token("w", name);

	for (size_t i = 0; i < sizeof all / sizeof *all * 2; i++) {
		const size_t of = i / 2, lack = i % 2;
		bool fired = true;

		for (unsigned long n = 1; fired; n++) {
			enum h5_credentials_answer known;

			begin(all[of].from);
			fake_curl.ask = answer_any;
			fake_curl.arg = (void *)all[of].steps;
			scene.c.identity.becomes = all[of].becomes;
			scene.c.identity.external = (char *)all[of].external;
			scene.c.identity.token = (char *)all[of].token;
			scene.c.identity.file = all[of].from == H5_FROM_TOKEN ? name : NULL;
			if (all[of].from == H5_FROM_KEYS)
				scene.c.identity.keys =
					(struct h5_grant){.key = (char[]){"own"}, .secret = (char[]){"s"}};
			lacks[lack].arm(n);
			known = get();
			fired = lacks[lack].disarm();
			/* Some answers are asked for once more. */
			if (!fired || !lack)
				ck_assert_int_eq(known, fired ? H5_CREDENTIALS_NONE : H5_CREDENTIALS_GOOD);
			if (known == H5_CREDENTIALS_NONE) {
				ck_assert_int_eq(scene.c.code, -EACCES);
				fake_curl.now += HOLD;
				known = get();
			}
			ck_assert_int_eq(known, H5_CREDENTIALS_GOOD);
			ck_assert_str_eq(scene.c.now.key, "k");
			ck_assert_str_eq(scene.c.now.secret, "s");
			ck_assert_str_eq(scene.c.now.token, "t");
			ck_assert_int_eq(scene.c.code, 0);
			end();
		}
	}
	close(fd);
}
END_TEST

UNIT_MAIN("credentials", a_machine, a_machine_without, a_machine_that_fails, before_the_end, times,
	  a_container, long_answers, a_token, a_role, given_ones, files, memory_is_short)

#else

#include <stdio.h>

int main(void)
{
	puts("there is no libcurl, and so no fetcher");
	return 77;
}

#endif
