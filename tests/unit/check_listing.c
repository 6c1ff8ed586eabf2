/* Pages that an object store lists a prefix in, and how they are asked for: pure functions over text. */
#include "remote/listing.h"
#include "remote/s3.h"
#include "unit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE(more, items)                                                                                    \
	"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult xmlns=\"http://s3/\"><Name>b</Name>"  \
	"<KeyCount>2</KeyCount><IsTruncated>" more "</IsTruncated>" items "</ListBucketResult>"
#define LAST(items)    PAGE("false", items)
#define ENCODED(items) LAST("<EncodingType>url</EncodingType>" items)
#define OBJECT(key)    "<Contents><Key>" key "</Key><Size>5</Size></Contents>"
#define FOLDER(key)    "<CommonPrefixes><Prefix>" key "</Prefix></CommonPrefixes>"

/* The items as "NAME=SIZE@TIME;", and "NAME/;" of folders. */
static bool note(void *arg, const struct h5_listing_item *item)
{
	char *out = arg;

	out += strlen(out);
	if (item->is_folder)
		sprintf(out, "%s/;", item->name);
	else
		sprintf(out, "%s=%" PRIu64 "@%" PRId64 ";", item->name, item->size, item->modified);
	ck_assert(item->is_folder == !item->version);
	return strcmp(item->name, "memory") != 0;
}

/* Reads a page of keys that begin with "p/". `expected`: NULL: it is none. */
static void is_page(const char *text, const char *expected, const char *next, bool is_used)
{
	char out[2048] = "";
	struct h5_listing_page page = {.take = note, .arg = out, .next = out, .is_used = true};
	int rc = h5_listing_read(text, strlen(text), "p/", &page);

	ck_assert_msg(rc == (expected ? 0 : -EINVAL), "%d: %s", rc, text);
	if (expected) {
		ck_assert_str_eq(out, expected);
		ck_assert_int_eq(page.is_used, is_used);
	}
	ck_assert(!page.next == !next);
	if (next)
		ck_assert_str_eq(page.next, next);
	free(page.next);
}

START_TEST(objects_and_folders)
{
	is_page(LAST(""), "", NULL, false);
	is_page(LAST("<Contents/><CommonPrefixes/>"), "", NULL, false);
	is_page(LAST(OBJECT("p/a") FOLDER("p/b/")), "a=5@0;b/;", NULL, true);
	is_page(LAST(FOLDER("p/b/") "<Contents><ETag>&quot;1&quot;</ETag><Size>9223372036854775807</Size>"
				    "<Key>p/a</Key><StorageClass>X</StorageClass>"
				    "<LastModified>2001-09-09T01:46:40.000Z</LastModified></Contents>"),
		"b/;a=9223372036854775807@1000000000;", NULL, true);
	/* The elements of an object come in any order. */
	is_page(LAST("<Contents><Size>7</Size><Key>p/a</Key></Contents>"), "a=7@0;", NULL, true);
	is_page(LAST("<Contents><LastModified>1970-01-01T00:01:00Z</LastModified><Size>7</Size><Key>p/a</"
		     "Key></Contents>"),
		"a=7@60;", NULL, true);
	is_page(LAST("<CommonPrefixes><Prefix>p/a/</Prefix></CommonPrefixes>"
		     "<CommonPrefixes><Prefix>p/b/</Prefix></CommonPrefixes>" OBJECT("p/c") OBJECT("p/d")),
		"a/;b/;c=5@0;d=5@0;", NULL, true);
	is_page(PAGE("true", "<NextContinuationToken>1/+=&amp;</NextContinuationToken>" OBJECT("p/a")),
		"a=5@0;", "1/+=&", true);
	/* A token that is no use. */
	is_page(LAST("<NextContinuationToken>1</NextContinuationToken>"), "", NULL, false);
}
END_TEST

START_TEST(encoded_keys)
{
	is_page(ENCODED(OBJECT("p%2Fa+b%2B%25%c3%A9") FOLDER("p/%3C+%0A/")), "a b+%\xc3\xa9=5@0;< \n/;", NULL,
		true);
	/* The page may say so behind the keys. */
	is_page(LAST(OBJECT("p/%41") "<EncodingType>url</EncodingType>"), "A=5@0;", NULL, true);
	is_page(LAST(OBJECT("p/%41+")), "%41+=5@0;", NULL, true);
	is_page(ENCODED(OBJECT("p/%4")), NULL, NULL, false);
	is_page(ENCODED(OBJECT("p/%")), NULL, NULL, false);
	is_page(ENCODED(OBJECT("p/%zz")), NULL, NULL, false);
	is_page(LAST("<EncodingType>base64</EncodingType>"), NULL, NULL, false);
}
END_TEST

START_TEST(keys_that_are_no_names)
{
	char text[1024], name[300];

	is_page(LAST(OBJECT("p/")), "", NULL, true);
	is_page(LAST(OBJECT("p/.") OBJECT("p/..") OBJECT("p/...") FOLDER("p/./") FOLDER("p/../")), "...=5@0;",
		NULL, true);
	is_page(LAST(FOLDER("p//") OBJECT("p/x/y")), "", NULL, true);
	is_page(ENCODED(OBJECT("p/%00") OBJECT("p/a%00b") OBJECT("p%00/a") FOLDER("p/c%00d/") OBJECT("p/e")),
		"e=5@0;", NULL, true);
	for (size_t n = 255; n <= 256; n++) {
		memset(name, 'n', n);
		name[n] = 0;
		snprintf(text, sizeof text, LAST(OBJECT("p/%s")), name);
		strcpy(name + n, "=5@0;");
		is_page(text, n == 255 ? name : "", NULL, true);
	}
}
END_TEST

START_TEST(what_is_no_page)
{
	static const char *const texts[] = {
		"",
		"<ListBucketResult/>",
		"<Error><Code>NoSuchBucket</Code></Error>",
		PAGE("", ""),
		PAGE("TRUE", ""),
		PAGE("true", ""),
		PAGE("true", "<NextContinuationToken/>"),
		PAGE("true", "<NextContinuationToken>1</NextContinuationToken><NextContinuationToken>2</"
			     "NextContinuationToken>"),
		LAST("<IsTruncated>false</IsTruncated>"),
		LAST(OBJECT("a")),
		LAST(OBJECT("q/a")),
		LAST(OBJECT("p")),
		LAST(FOLDER("p/a")),
		LAST(FOLDER("p/a/b/")),
		LAST(FOLDER("p/")),
		LAST("<Contents><Key>p/a</Key></Contents>"),
		LAST("<Contents><Size>1</Size></Contents>"),
		LAST("<Contents><Size>1</Size></Contents><Contents><Key>p/a</Key></Contents>"),
		LAST("<Contents><Key>p/a</Key><Key>p/b</Key><Size>1</Size></Contents>"),
		LAST("<Contents><Key>p/a</Key><Size></Size></Contents>"),
		LAST("<Contents><Key>p/a</Key><Size>-1</Size></Contents>"),
		LAST("<Contents><Key>p/a</Key><Size>1x</Size></Contents>"),
		LAST("<Contents><Key>p/a</Key><Size>9223372036854775808</Size></Contents>"),
		LAST("<Contents><Key>p/a</Key><Size>99999999999999999999999</Size></Contents>"),
		LAST("<Contents><Key>p/a</Key><Size>1</Size><LastModified>today</LastModified></Contents>"),
		LAST("<!DOCTYPE a>"),
		LAST("<Contents>"),
	};
	char out[64] = "";
	struct h5_listing_page page = {.take = note, .arg = out};
	const char *memory = LAST(OBJECT("p/memory"));

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		is_page(texts[i], NULL, NULL, false);
	ck_assert_int_eq(h5_listing_read(memory, strlen(memory), "p/", &page), -ENOMEM);
}
END_TEST

static bool take_version(void *arg, const struct h5_listing_item *item)
{
	*(uint64_t *)arg = item->version;
	return true;
}

/* Of an object with such elements. */
static uint64_t version_of(const char *elements)
{
	uint64_t version = 0;
	struct h5_listing_page page = {.take = take_version, .arg = &version};
	char text[512];

	snprintf(text, sizeof text, LAST("<Contents><Key>p/a</Key>%s</Contents>"), elements);
	ck_assert(!h5_listing_read(text, strlen(text), "p/", &page));
	return version;
}

START_TEST(versions)
{
	ck_assert(!h5_listing_version("") && !h5_listing_version("\"\"") && h5_listing_version("a"));
	ck_assert(h5_listing_version("\"a\"") == h5_listing_version("a"));
	ck_assert(h5_listing_version("W/\"a\"") == h5_listing_version("a"));
	ck_assert(h5_listing_version("\"b\"") != h5_listing_version("a"));
	ck_assert(h5_listing_version("\"a") != h5_listing_version("a"));
	ck_assert(h5_listing_version("\"ab") != h5_listing_version("a"));
	ck_assert(h5_listing_version("ab\"") != h5_listing_version("b"));
	ck_assert(h5_listing_version("\"") != h5_listing_version(""));
	ck_assert(h5_listing_version("Wab") != h5_listing_version("b"));
	ck_assert(h5_listing_version("a/b") != h5_listing_version("b"));
	ck_assert(version_of("<Size>1</Size><ETag>&quot;a&quot;</ETag>") == h5_listing_version("a"));
	/* Without an ETag, size and time tell. */
	ck_assert(version_of("<Size>1</Size>") != version_of("<Size>2</Size>"));
	ck_assert(version_of("<Size>1</Size><LastModified>2001-09-09T01:46:40Z</LastModified>") !=
		  version_of("<Size>1</Size><LastModified>2001-09-09T01:46:40.1Z</LastModified>"));
}
END_TEST

static void is_url(const char *endpoint, const char *url, const char *below, const char *token,
		   const char *expected)
{
	const struct h5_s3 s3 = {.region = "eu-west-1", .endpoint = (char *)endpoint};
	char *out = h5_s3_listing_url(&s3, url, below, token);

	ck_assert_str_eq(out, expected);
	free(out);
}

START_TEST(urls_of_pages)
{
	is_url(NULL, "s3://bucket/", "", NULL,
	       "https://bucket.s3.eu-west-1.amazonaws.com/"
	       "?delimiter=%2F&encoding-type=url&list-type=2&prefix=");
	is_url("http://h:1/", "s3://bucket/a b/", "c+d/", "t/=",
	       "http://h:1/bucket/?continuation-token=t%2F%3D&delimiter=%2F&encoding-type=url&list-type=2&"
	       "prefix=a%20b%2Fc%2Bd%2F");
	is_url("http://h", "s3://bucket/p/", "&prefix=x#", NULL,
	       "http://h/bucket/?delimiter=%2F&encoding-type=url&list-type=2&prefix=p%2F%26prefix%3Dx%23");
}
END_TEST

UNIT_MAIN("listing", objects_and_folders, encoded_keys, keys_that_are_no_names, what_is_no_page, versions,
	  urls_of_pages)
