/* What servers that give credentials say, what profiles say, and where objects are: pure functions over text.
 */
#include "edge.h"
#include "fault_alloc.h"
#include "remote/grant.h"
#include "remote/profile.h"
#include "remote/s3.h"
#include "remote/url.h"
#include "remote/xml.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- XML ---- */

/* The leaves of a text as "PATH=TEXT;". */
static bool note(void *arg, const struct h5_xml_leaf *leaf)
{
	char *out = arg;

	for (unsigned i = 0; i < leaf->depth; i++)
		sprintf(out + strlen(out), "%s%.*s", i ? "/" : "", (int)leaf->names[i].n, leaf->names[i].p);
	sprintf(out + strlen(out), "=%s;", leaf->text);
	return strcmp(leaf->text, "refuse");
}

/* The text ends where memory does. */
static void is_xml(const char *text, const char *expected)
{
	struct edge edge = edge_init(strlen(text));
	char out[512] = "";

	ck_assert_msg(h5_xml_read(edge_put(&edge, text, strlen(text)), strlen(text), note, out) ==
			      (expected ? 0 : -EINVAL),
		      "%s", text);
	if (expected)
		ck_assert_str_eq(out, expected);
	edge_release(&edge);
}

START_TEST(xml)
{
	is_xml("<a>1</a>", "a=1;");
	is_xml("<?xml version=\"1.0\" encoding='UTF-8'?>\r\n<a x=\"1\" y = '>'>\n <b> 1 2 </b><c/>\n</a>\n",
	       "a/b=1 2;a/c=;");
	is_xml("<a>&lt;&amp;&gt;&quot;&apos;&#47;&#x2f;</a >", "a=<&>\"'//;");
	is_xml("<a><b><c>1</c></b><b/></a>", "a/b/c=1;a/b=;");
	is_xml("<a>\xc3\xa9</a>", "a=\xc3\xa9;");
	is_xml("<azAZ09_-.:\x80/>", "azAZ09_-.:\x80=;");
	is_xml("<a>&#0047;&#127;&#x4a;&#x7F;</a>", "a=/\x7fJ\x7f;");
	is_xml("<a>&#32;<b/>&#10;</a>", "a/b=;");
	is_xml("<a b='\"' c=\"'\"\td\n=\n'' />", "a=;");
	is_xml("<a>x</a>\n \t\r", "a=x;");
}
END_TEST

/* The numbers of the elements around the leaves. */
static bool note_around(void *arg, const struct h5_xml_leaf *leaf)
{
	sprintf((char *)arg + strlen(arg), "%s %zu;", leaf->text, leaf->around);
	return true;
}

START_TEST(elements_have_numbers)
{
	static const char *const texts[][2] = {
		{"<a>x</a>", "x 0;"},
		{"<a><b>x</b><b>y</b><c><d>z</d><d/></c><c><d>w</d></c><b>v</b></a>",
		 "x 1;y 1;z 4; 4;w 7;v 1;"},
	};

	for (size_t i = 0; i < 2; i++) {
		char out[100] = "";

		ck_assert_int_eq(h5_xml_read(texts[i][0], strlen(texts[i][0]), note_around, out), 0);
		ck_assert_str_eq(out, texts[i][1]);
	}
}
END_TEST

START_TEST(what_is_no_xml)
{
	static const char *const texts[] = {"",
					    "x",
					    "<a>",
					    "<a>1</b>",
					    "<a>1</a><b/>",
					    "<a>1</a>x",
					    "x<a/>",
					    "<a><b></a></b>",
					    "<a>x<b/></a>",
					    "<a><b/>x</a>",
					    "<a b>1</a>",
					    "<a b=1/>",
					    "<a b= >1</a>",
					    "<a></b></a>",
					    "<a b='<'/>",
					    "<a><!-- x --></a>",
					    "<!DOCTYPE a><a/>",
					    "<a><![CDATA[x]]></a>",
					    "<a>&nbsp;</a>",
					    "<a>&#300;</a>",
					    "<a>&#0;</a>",
					    "<a>&#xg;</a>",
					    "<a>&#1",
					    "<a>&",
					    "</a>",
					    "<>",
					    "< a/>",
					    "<a/",
					    "<a>refuse</a>",
					    "<?xml?>",
					    "<a><?xml?></a>",
					    "<a b='1'c='2'>1</a><",
					    "<a`/>",
					    "<a{/>",
					    "<a@/>",
					    "<a[/>",
					    "<a;/>",
					    "<a,/>",
					    "<a b='1\"/>",
					    "<a b='1",
					    "<a b=",
					    "<a b",
					    "<a ",
					    "<a ='1'/>",
					    "<a b='1' c/>",
					    "<a>1</a",
					    "<a>1</ab>",
					    "<ab>1</a>",
					    "<a>1</b>",
					    "<a>1</",
					    "<a><b></c></a>",
					    "<a>&#4a;</a>",
					    "<a>&#128;</a>",
					    "<a>&#00047;</a>",
					    "<a>&#;</a>",
					    "<a>&#x;</a>",
					    "<a>&#47</a>",
					    "<a>&amp</a>",
					    "<?xml version='1'><a/>",
					    "<?xml version=1?><a/>",
					    "<a>&#x2f;<b/></a>"};
	static const char whole[] =
		"<?xml version=\"1.0\" encoding='x'?> <a b = '1' c=\"2\"> <d>&lt;&#x2f;&#47;</d "
		"> <e/> <f g='' /></a>";
	char deep[8 * H5_XML_DEPTH + 16] = "";

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		is_xml(texts[i], NULL);
	/* Of a text that is cut anywhere, nothing is believed, and nothing is read behind its end. */
	for (size_t n = strlen(whole); n--;) {
		char part[sizeof whole];

		snprintf(part, sizeof part, "%.*s", (int)n, whole);
		is_xml(part, NULL);
	}
	for (unsigned i = 0; i < H5_XML_DEPTH; i++)
		strcat(deep, "<a>");
	for (unsigned i = 0; i < H5_XML_DEPTH; i++)
		strcat(deep, "</a>");
	ck_assert_int_eq(h5_xml_read(deep, strlen(deep), note, (char[512]){0}), 0);
	memmove(deep + 3, deep, strlen(deep) + 1);
	memcpy(deep, "<a>", 3);
	strcat(deep, "</a>");
	is_xml(deep, NULL);
	ck_assert_int_eq(h5_xml_read("<a>\0</a>", 8, note, (char[512]){0}), -EINVAL);
}
END_TEST

/* ---- answers ---- */

START_TEST(times)
{
	static const struct {
		const char *text;
		int64_t seconds;
	} good[] = {{"1970-01-01T00:00:01Z", 1},
		    {"2026-11-23T10:45:00Z", 1795430700},
		    {"2026-11-23T10:45:00.123456Z", 1795430700},
		    {"2026-11-23T12:15:00+01:30", 1795430700},
		    {"2026-11-23T09:45:00-01:00", 1795430700},
		    {"2028-02-29T00:00:00Z", 1835395200},
		    {"1970-01-01T00:00:00Z", 0},
		    {"1970-12-31T23:59:60Z", 31536000},
		    {"1970-01-02T00:00:00+23:59", 60},
		    {"1970-01-01T00:00:00-00:59", 3540},
		    {"1970-01-01T00:00:00.9-01:01", 3660}};
	static const char *const bad[] = {"",
					  "2026-11-23",
					  "2026-11-23T10:45:00",
					  "2026-13-23T10:45:00Z",
					  "2026-00-23T10:45:00Z",
					  "2026-11-00T10:45:00Z",
					  "2026-11-23T24:45:00Z",
					  "2026-11-23T10:60:00Z",
					  "2026-11-23T10:45:00.Z",
					  "2026-11-23T10:45:00Zx",
					  "2026-11-23T10:45:00+0130",
					  "2026-11-23T10:45:00+01:3",
					  "20261-1-23T10:45:00Z",
					  "2026-11-32T10:45:00Z",
					  "2026-11-23T10:45:61Z",
					  "2026-11-23T10:45:00+24:00",
					  "2026-11-23T10:45:00+00:60",
					  "2026-11-23T10:45:00.",
					  "2026-11-23T10:45:00,5Z",
					  "2026-11-23T10:45:00*01:00",
					  "2026-11-23T10:45:00+1:00",
					  "2026-11-23T10:45:00+01:00Z"};
	int64_t seconds;

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		ck_assert_msg(h5_grant_time(good[i].text, &seconds), "%s", good[i].text);
		ck_assert_int_eq(seconds, good[i].seconds);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		ck_assert_msg(!h5_grant_time(bad[i], &seconds), "%s", bad[i]);
	/* Nothing of it may be something else, or missing. */
	for (size_t i = 0; i < strlen(good[3].text); i++) {
		char text[32];

		strcpy(text, good[3].text);
		text[i] = 'x';
		ck_assert_msg(!h5_grant_time(text, &seconds), "%s", text);
		text[i] = 0;
		ck_assert_msg(!h5_grant_time(text, &seconds), "%s", text);
	}
}
END_TEST

START_TEST(texts_that_may_be_sent)
{
	static const struct {
		const char *text;
		bool is_text, is_region;
	} cases[] = {{"", false, false},
		     {"!~", true, false},
		     {"a b", false, false},
		     {"a\x7f", false, false},
		     {" a", false, false},
		     {"a\xc3\xa9", false, false},
		     {"eu-west-1", true, true},
		     {"a", true, true},
		     {"9", true, true},
		     {"_a_", true, true},
		     {"-a", true, false},
		     {"a-", true, false},
		     {"-", true, false},
		     {"a.b", true, false},
		     {"a/", true, false},
		     {"a-name-of-32-bytes-which-may-be-a", true, false},
		     {"a-name-of-32-bytes-which-may-be-", true, false},
		     {"a-name-of-32-bytes-which-may-b-a", true, true}};
	struct h5_grant grant;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_assert_msg(h5_grant_is_text(cases[i].text) == cases[i].is_text, "%s", cases[i].text);
		ck_assert_msg(h5_grant_is_region(cases[i].text) == cases[i].is_region, "%s", cases[i].text);
		/* Each text of a grant is such. */
		for (int k = 0; k < 3; k++) {
			const char *texts[] = {"k", "s", "t"};
			int rc = cases[i].is_text ? 0 : -EINVAL;

			texts[k] = cases[i].text;
			ck_assert_int_eq(h5_grant_set(&grant, texts[0], texts[1], texts[2]), rc);
			ck_assert(!grant.key == !!rc && !grant.secret == !!rc && !grant.token == !!rc);
			h5_grant_release(&grant);
		}
	}
	ck_assert_int_eq(h5_grant_set(&grant, NULL, "s", NULL), -EINVAL);
	ck_assert_int_eq(h5_grant_set(&grant, "k", NULL, NULL), -EINVAL);
}
END_TEST

static char sts[1024];

/* An answer of STS to an action, with four members. */
static const char *answer(const char *action, const char *members)
{
	snprintf(sts, sizeof sts,
		 "<%sResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><%sResult><Credentials>"
		 "%s</Credentials></%sResult></%sResponse>",
		 action, action, members, action, action);
	return sts;
}

#define KEY    "<AccessKeyId>ASIA</AccessKeyId>"
#define SECRET "<SecretAccessKey>s/+=</SecretAccessKey>"
#define TOKEN  "<SessionToken>t&#43;/=</SessionToken>"
#define END    "<Expiration>1970-01-01T00:01:00Z</Expiration>"

START_TEST(roles)
{
	static const char *const wrong[] = {KEY SECRET TOKEN,
					    KEY SECRET END,
					    KEY TOKEN END,
					    SECRET TOKEN END,
					    KEY KEY SECRET TOKEN END,
					    KEY SECRET TOKEN "<Expiration>now</Expiration>",
					    "<AccessKeyId>a\nb</AccessKeyId>" SECRET TOKEN END,
					    "<AccessKeyId></AccessKeyId>" SECRET TOKEN END,
					    KEY SECRET "<SessionToken>a b</SessionToken>" END,
					    KEY SECRET "<SessionToken>&#13;</SessionToken>" END};
	static const char *const actions[] = {"AssumeRole", "AssumeRoleWithWebIdentity"};
	struct h5_grant grant;

	for (size_t i = 0; i < 2; i++) {
		answer(actions[i], END KEY TOKEN SECRET);
		ck_assert_int_eq(h5_grant_read_sts(sts, strlen(sts), &grant), 0);
		ck_assert_str_eq(grant.key, "ASIA");
		ck_assert_str_eq(grant.secret, "s/+=");
		ck_assert_str_eq(grant.token, "t+/=");
		ck_assert_int_eq(grant.expires, 60);
		h5_grant_release(&grant);
		h5_grant_release(&grant);
		ck_assert(!grant.key && !grant.secret && !grant.token && !grant.expires);
		for (size_t n = strlen(sts); n--;)
			ck_assert_int_eq(h5_grant_read_sts(sts, n, &grant), -EINVAL);
	}
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		answer("AssumeRole", wrong[i]);
		ck_assert_int_eq(h5_grant_read_sts(sts, strlen(sts), &grant), -EINVAL);
		ck_assert_ptr_null(grant.key);
	}
	/* Other members, which the answers of the store have. */
	answer("AssumeRole",
	       KEY "<More>x</More>" SECRET TOKEN END "</Credentials><SourceIdentity>i</SourceIdentity>"
		   "<AssumedRoleUser><Arn>a</Arn></AssumedRoleUser><Credentials>");
	ck_assert_int_eq(h5_grant_read_sts(sts, strlen(sts), &grant), 0);
	ck_assert_str_eq(grant.key, "ASIA");
	h5_grant_release(&grant);
	/* What has ended at the beginning of time makes no sense. */
	answer("AssumeRole", KEY SECRET TOKEN "<Expiration>1970-01-01T00:00:00Z</Expiration>");
	ck_assert_int_eq(h5_grant_read_sts(sts, strlen(sts), &grant), -EINVAL);
	answer("AssumeRole", KEY SECRET TOKEN "<Expiration>1970-01-01T00:00:01Z</Expiration>");
	ck_assert_int_eq(h5_grant_read_sts(sts, strlen(sts), &grant), 0);
	ck_assert_int_eq(grant.expires, 1);
	h5_grant_release(&grant);
	answer("GetSessionToken", KEY SECRET TOKEN END);
	ck_assert_int_eq(h5_grant_read_sts(sts, strlen(sts), &grant), -EINVAL);
}
END_TEST

START_TEST(keys_of_machines)
{
	static const char *const wrong[] = {
		"",
		"[]",
		"null",
		"{}",
		"{\"AccessKeyId\":\"a\"}",
		"{\"AccessKeyId\":1,\"SecretAccessKey\":\"s\"}",
		"{\"AccessKeyId\":\"a\\u0000b\",\"SecretAccessKey\":\"s\"}",
		"{\"AccessKeyId\":\"a\\r\\nX: y\",\"SecretAccessKey\":\"s\"}",
		"{\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"s\",\"Expiration\":\"\"}",
		"{\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"s\",\"Token\":5}",
		"{\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"s\"} x"};
	static const char text[] =
		"{ \"Code\": \"Success\", \"AccessKeyId\": \"a\", \"SecretAccessKey\": \"s\\/\","
		" \"Token\": \"t\", \"Expiration\": \"1970-01-01T00:01:00Z\" }\n";
	static const char bare[] = "{\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"s\",\"Token\":null}";
	struct h5_grant grant;

	ck_assert_int_eq(h5_grant_read_json(text, strlen(text), &grant), 0);
	ck_assert_str_eq(grant.key, "a");
	ck_assert_str_eq(grant.secret, "s/");
	ck_assert_str_eq(grant.token, "t");
	ck_assert_int_eq(grant.expires, 60);
	h5_grant_release(&grant);
	ck_assert_int_eq(h5_grant_read_json(bare, strlen(bare), &grant), 0);
	ck_assert_ptr_null(grant.token);
	ck_assert_int_eq(grant.expires, 0);
	h5_grant_release(&grant);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		ck_assert_int_eq(h5_grant_read_json(wrong[i], strlen(wrong[i]), &grant), -EINVAL);
		ck_assert_ptr_null(grant.key);
	}
}
END_TEST

/* It is not the server's answer that is wrong then. */
START_TEST(memory_is_short)
{
	static const struct {
		int (*read)(const char *text, size_t n, struct h5_grant *grant);
		const char *text;
	} answers[] = {{h5_grant_read_json,
			"{\"AccessKeyId\": \"k\", \"SecretAccessKey\": \"s\", \"Token\": \"t\"}"},
		       {h5_grant_read_sts,
			"<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>k</AccessKeyId>"
			"<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>"
			"<Expiration>2026-11-25T00:00:00Z</Expiration></Credentials></AssumeRoleResult>"
			"</AssumeRoleResponse>"}};

	tzset(); /* it keeps what it allocates */
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		bool fired = true;

		for (unsigned long n = 1; fired; n++) {
			struct h5_grant grant;
			int rc;

			fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = answers[i].read(answers[i].text, strlen(answers[i].text), &grant);
			fault_alloc_count(false);
			fired = fault_alloc_disarm();
			ck_assert_int_eq(rc, fired ? -ENOMEM : 0);
			ck_assert(fired ? !grant.key && !grant.secret && !grant.token
					: !strcmp(grant.token, "t"));
			h5_grant_release(&grant);
		}
	}
}
END_TEST

static void is_error(const char *text, const char *code, const char *region)
{
	struct h5_store_error error;

	h5_store_error_read(text, strlen(text), &error);
	ck_assert_str_eq(error.code, code);
	ck_assert_str_eq(error.region, region);
}

START_TEST(errors)
{
	is_error("<?xml version=\"1.0\"?>\n<Error><Code>AuthorizationHeaderMalformed</Code><Message>a "
		 "'b'</Message>"
		 "<Region>eu-west-1</Region></Error>",
		 "AuthorizationHeaderMalformed", "eu-west-1");
	is_error("<ErrorResponse "
		 "xmlns='x'><Error><Type>Sender</Type><Code>ExpiredToken</Code></Error></ErrorResponse>",
		 "ExpiredToken", "");
	is_error("<Error><Code>a b</Code><Region>eu.example.org/</Region></Error>", "", "");
	is_error("<Error><Region>a-region-whose-name-is-too-long-by-far</Region></Error>", "", "");
	is_error("<Error><Code>AccessDenied</Code>", "", "");
	is_error("{\"Code\":\"x\"}", "", "");
	is_error("<Error><Code>a.9Z</Code></Error>", "a.9Z", "");
	is_error("<Error><Code>a-b</Code></Error>", "", "");
	is_error("<ErrorResponse><Code>a</Code></ErrorResponse>", "", "");
	for (size_t n = 63; n <= 64; n++) {
		char code[65] = "", text[128];

		memset(code, 'c', n);
		snprintf(text, sizeof text, "<Error><Code>%s</Code></Error>", code);
		is_error(text, n == 63 ? code : "", "");
	}
}
END_TEST

/* ---- profiles ---- */

static const char credentials[] =
	"# [lab]\n[default]\naws_access_key_id = none\n[lab] ; comment\r\n"
	"aws_access_key_id=key\r\n aws_secret_access_key = indented\n"
	"aws_secret_access_key =  s=/+ \n;region = x\n[half]\naws_access_key_id = half\n";
static const char config[] = "[profile\tlab ]\nregion = eu-west-1\naws_access_key_id = other\n"
			     "aws_secret_access_key = other\naws_session_token = other\n[profile half]\n"
			     "aws_access_key_id=k\naws_secret_access_key=s\nrole_arn = \nsso_start_url = "
			     "x\n[profilehalf]\nregion=x";

START_TEST(profiles)
{
	struct h5_profile p = {0};

	ck_assert_int_eq(h5_profile_read(&p, credentials, strlen(credentials), "lab"), 0);
	ck_assert_int_eq(h5_profile_read(&p, config, strlen(config), "lab"), 0);
	ck_assert(p.found);
	ck_assert_str_eq(p.key, "key");
	ck_assert_str_eq(p.secret, "s=/+");
	ck_assert_ptr_null(p.token); /* never one of another place */
	ck_assert_str_eq(p.region, "eu-west-1");
	h5_profile_release(&p);
	ck_assert_int_eq(h5_profile_read(&p, credentials, strlen(credentials), "half"), 0);
	ck_assert_ptr_null(p.key);
	ck_assert_int_eq(h5_profile_read(&p, config, strlen(config), "half"), 0);
	ck_assert_str_eq(p.key, "k");
	ck_assert_ptr_null(p.role);
	ck_assert_ptr_null(p.region);
	ck_assert_str_eq(p.signs_on, "x");
	h5_profile_release(&p);
	h5_profile_release(&p);
	ck_assert_int_eq(h5_profile_read(&p, config, strlen(config), "nobody"), 0);
	ck_assert(!p.found);
	ck_assert_int_eq(h5_profile_read(&p, "[", 1, ""), 0);
	ck_assert(!p.found);
	ck_assert_int_eq(h5_profile_read(&p, "[]\n=x\nregion", 12, ""), 0);
	h5_profile_release(&p);
}
END_TEST

/* Each line says something else; of two, the first counts, and one without a text does not. */
START_TEST(settings)
{
	static const char *const names[] = {"aws_access_key_id",
					    "aws_secret_access_key",
					    "aws_session_token",
					    "region",
					    "endpoint_url",
					    "role_arn",
					    "source_profile",
					    "credential_source",
					    "web_identity_token_file",
					    "role_session_name",
					    "external_id",
					    "mfa_serial",
					    "credential_process",
					    "sso_session",
					    "sso_start_url"};
	enum { NAMES = sizeof names / sizeof *names };

	for (size_t i = 0; i < NAMES; i++) {
		struct h5_profile p = {0};
		char text[512];
		int n = snprintf(
			text, sizeof text,
			"[a]\n%s=other\n[ profile  b ]\n%s=\n%s = v%zu\n%s=x\n%sx=y\n# %s=z\n[c]\n%s=other",
			names[i], names[i], names[i], i, names[i], names[i], names[i], names[i]);
		struct edge edge;
		char *all[NAMES];
		char expected[8];

		/* Keys are kept from a text that has both. */
		if (i < 3)
			n += snprintf(text + n, sizeof text - (size_t)n, "\n[b]\n%s=k\n%s=k",
				      names[(i + 1) % 3], names[(i + 2) % 3]);
		edge = edge_init((size_t)n);
		ck_assert_int_eq(h5_profile_read(&p, edge_put(&edge, text, (size_t)n), (size_t)n, "b"), 0);
		all[0] = p.key, all[1] = p.secret, all[2] = p.token, all[3] = p.region, all[4] = p.endpoint;
		all[5] = p.role, all[6] = p.source, all[7] = p.provider, all[8] = p.identity;
		all[9] = p.session, all[10] = p.external, all[11] = p.device, all[12] = p.runs;
		all[13] = all[14] = p.signs_on;
		snprintf(expected, sizeof expected, "v%zu", i);
		for (size_t k = 0; k < NAMES; k++)
			if (k == i || (i > 12 && k > 12))
				ck_assert_pstr_eq(all[k], expected);
			else if (i < 3 && k < 3)
				ck_assert_pstr_eq(all[k], "k");
			else
				ck_assert_ptr_null(all[k]);
		h5_profile_release(&p);
		ck_assert(!p.key && !p.found && !p.signs_on && !p.region);
		edge_release(&edge);
	}
}
END_TEST

/* ---- URLs ---- */

static void is_at(const char *region, const char *endpoint, const char *url, const char *expected)
{
	struct h5_s3 s3 = {.endpoint = (char *)endpoint};
	char *got;

	strcpy(s3.region, region);
	got = h5_s3_url(&s3, url);
	ck_assert_str_eq(got, expected);
	if (!endpoint)
		ck_assert(h5_s3_is_same_bucket(got, expected));
	free(got);
}

START_TEST(objects)
{
	is_at("eu-west-1", NULL, "s3://bucket/a b", "https://bucket.s3.eu-west-1.amazonaws.com/a%20b");
	is_at("eu-west-1", NULL, "s3://my.bucket/k", "https://s3.eu-west-1.amazonaws.com/my.bucket/k");
	is_at("eu-west-1", NULL, "s3://Bucket/k", "https://s3.eu-west-1.amazonaws.com/Bucket/k");
	is_at("cn-north-1", NULL, "s3://b/k", "https://b.s3.cn-north-1.amazonaws.com.cn/k");
	is_at("us-gov-west-1", NULL, "s3://b/k", "https://b.s3.us-gov-west-1.amazonaws.com/k");
	is_at("us-east-1", NULL, "s3://my-bucket-2/k", "https://my-bucket-2.s3.us-east-1.amazonaws.com/k");
	is_at("us-east-1", NULL, "s3://my_bucket/k", "https://s3.us-east-1.amazonaws.com/my_bucket/k");
	is_at("eusc-de-east-1", NULL, "s3://b/k", "https://b.s3.eusc-de-east-1.amazonaws.eu/k");
	is_at("us-iso-east-1", NULL, "s3://b/k", "https://b.s3.us-iso-east-1.c2s.ic.gov/k");
	is_at("us-isob-east-1", NULL, "s3://b/k", "https://b.s3.us-isob-east-1.sc2s.sgov.gov/k");
	is_at("eu-isoe-west-1", NULL, "s3://b/k", "https://b.s3.eu-isoe-west-1.cloud.adc-e.uk/k");
	is_at("us-isof-south-1", NULL, "s3://b/k", "https://b.s3.us-isof-south-1.csp.hci.ic.gov/k");
	is_at("x", "https://store:1", "s3://b/k/l", "https://store:1/b/k/l");
	is_at("x", "https://store:1/", "s3://my.bucket/k", "https://store:1/my.bucket/k");
}
END_TEST

START_TEST(same_bucket)
{
	static const char home[] = "https://bucket.s3.us-east-1.amazonaws.com/k",
			  dots[] = "https://s3.us-east-1.amazonaws.com/my.bucket/k";
	static const char *const same[] = {"https://bucket.s3.eu-west-1.amazonaws.com/k?rk=1",
					   "https://bucket.s3-gztb4pa9sq.amazonaws.com/k",
					   "https://s3.eu-west-1.amazonaws.com/bucket/k"};
	static const char *const other[] = {"http://bucket.s3.eu-west-1.amazonaws.com/k",
					    "https://bucket2.s3.eu-west-1.amazonaws.com/k",
					    "https://bucket.s3.eu-west-1.amazonaws.com.evil.org/k",
					    "https://bucket.s3.evil.org/k",
					    "https://bucket.s3-x.us-east-1.elb.amazonaws.com/k",
					    "https://s3.eu-west-1.amazonaws.com/other/k",
					    "https://bucket.s3.eu-west-1.amazonaws.com@evil.org/k",
					    "https://bucket.s3.eu-west-1.amazonaws.com:444/k",
					    "https://evil.org/bucket.s3.eu-west-1.amazonaws.com/k",
					    "https://x@bucket.s3.eu-west-1.amazonaws.com/k",
					    "https://bucket.s3..amazonaws.com/k",
					    "https://s3.eu-west-1.amazonaws.com/",
					    "s3://bucket/k",
					    "",
					    "https://bucket.s3.eu-west-1.amazonaws.com\\.evil.org/k"};

	static const char *const none[] = {
		"https://s3.eu-west-1.amazonaws.com/?x",       "https://s3.eu-west-1.amazonaws.com",
		"https://.s3.eu-west-1.amazonaws.com/k",       "https://bucket/k",
		"https://bucket.s4.eu-west-1.amazonaws.com/k", "https://bucket.s3.EU.amazonaws.com/k",
		"http://bucket.s3.eu-west-1.amazonaws.com/k",  "https://a/s3.x"};

	for (size_t i = 0; i < sizeof same / sizeof *same; i++)
		ck_assert_msg(h5_s3_is_same_bucket(home, same[i]), "%s", same[i]);
	for (size_t i = 0; i < sizeof other / sizeof *other; i++)
		ck_assert_msg(!h5_s3_is_same_bucket(home, other[i]), "%s", other[i]);
	/* What names no bucket is none, not even the same. */
	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		ck_assert_msg(!h5_s3_is_same_bucket(none[i], none[i]), "%s", none[i]);
	ck_assert(h5_s3_is_same_bucket(dots, "https://s3.eu-west-1.amazonaws.com/my.bucket/k"));
	ck_assert(!h5_s3_is_same_bucket(dots, "https://s3.eu-west-1.amazonaws.com/my.bucket2/k"));
}
END_TEST

START_TEST(who_may_give_credentials)
{
	static const char *const may[] = {"http://localhost:80/x",     "http://LOCALHOST",
					  "http://127.1.2.3/",	       "http://[::1]:99/x",
					  "https://anywhere.org/",     "http://169.254.170.2/",
					  "http://169.254.170.23:1/x", "http://[fd00:ec2::23]/x"};
	static const char *const not [] = {"http://192.0.2.1/",
					   "http://169.254.170.20/",
					   "http://127.0.0.1.x.org/",
					   "http://localhost.org/",
					   "http://[::2]/",
					   "http://127.0.0.1@x.org/",
					   "ftp://127.0.0.1/",
					   "http:///x",
					   "",
					   "http://[::1/",
					   "s3://127.0.0.1/x",
					   "https:///x",
					   "http://126.255.255.255/",
					   "http://128.0.0.0/",
					   "http://169.254.170.22/",
					   "http://[fd00:ec2::22]/x"};

	for (size_t i = 0; i < sizeof may / sizeof *may; i++)
		ck_assert_msg(h5_url_gives_credentials(may[i]), "%s", may[i]);
	for (size_t i = 0; i < sizeof not / sizeof *not ; i++)
		ck_assert_msg(!h5_url_gives_credentials(not [i]), "%s", not [i]);
	for (size_t n = 255; n <= 5000; n += n < 257 ? 1 : 4743) {
		char url[5100] = "https://";

		memset(url + 8, 'h', n);
		strcpy(url + 8 + n, "/x");
		ck_assert_int_eq(h5_url_gives_credentials(url), n == 255);
		/* An address in brackets has as many bytes. */
		url[8] = '[';
		strcpy(url + 8 + n + 1, "]/x");
		url[8 + n] = 'h';
		ck_assert_int_eq(h5_url_gives_credentials(url), n == 255);
	}
	ck_assert(!h5_url_is_near("https://anywhere.org/") && h5_url_is_near("https://localhost/"));
}
END_TEST

START_TEST(other_servers)
{
	static const char *const moved[][3] = {
		{"https://a.org/x/y?q", "http://b.org:1/z", "http://b.org:1/x/y?q"},
		{"https://a.org", "https://b.org", "https://b.org"},
		{"https://a.org/x", "https://b.org", "https://b.org/x"}};
	char *text = h5_url_encode_value("a/b+c~\xc3\xa9");

	ck_assert_str_eq(text, "a%2Fb%2Bc~%C3%A9");
	free(text);
	text = h5_s3_token_url("eu-west-1");
	ck_assert_str_eq(text, "https://sts.eu-west-1.amazonaws.com/");
	free(text);
	text = h5_s3_token_url("cn-north-1");
	ck_assert_str_eq(text, "https://sts.cn-north-1.amazonaws.com.cn/");
	free(text);
	for (size_t i = 0; i < 3; i++) {
		text = h5_url_moved(moved[i][0], moved[i][1]);
		ck_assert_str_eq(text, moved[i][2]);
		free(text);
	}
}
END_TEST

UNIT_MAIN("grants", xml, elements_have_numbers, what_is_no_xml, times, texts_that_may_be_sent, roles,
	  keys_of_machines, memory_is_short, errors, profiles, settings, objects, same_bucket,
	  who_may_give_credentials, other_servers)
