/* The tree of an object store's prefix: how often the store is asked, where the test is the link. */
#include "base/buf.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "fault_alloc.h"
#include "io/remote_link.h"
#include "remote/listing.h"
#include "tree/object.h"
#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define TAG "\"1\""

/* A bucket whose pages the test makes, and a clock that it sets. */
static struct {
	const char *const *keys; /* in ascending order; NULL at the end */
	unsigned page;		 /* names of a page */
	unsigned empty;		 /* pages without a name come first, */
	bool late;		 /* or behind the first one that has some */
	const char *tag;	 /* of all objects; NULL: TAG */
	unsigned requests;
	unsigned fails; /* the last of so many requests fails; 0: none does */
	unsigned takes; /* seconds, each request */
	time_t time;
} pages;

int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	if (!pages.keys)
		return __real_clock_gettime(clock, t);
	*t = (struct timespec){.tv_sec = pages.time};
	return 0;
}

/* Adds what the key is in a listing of the names behind `n` bytes of it. */
static void add_key(FILE *page, const char *key, size_t n)
{
	const char *slash = strchr(key + n, '/');

	if (slash)
		fprintf(page, "<CommonPrefixes><Prefix>run/%.*s</Prefix></CommonPrefixes>",
			(int)(slash - key) + 1, key);
	else
		fprintf(page,
			"<Contents><Key>run/%s</Key><Size>%zu</Size><ETag>%s</ETag>"
			"<LastModified>2001-09-09T01:46:40.000Z</LastModified></Contents>",
			key, strlen(key), pages.tag ? pages.tag : TAG);
}

/* Both are the same item. */
static bool is_one_item(const char *a, const char *b, size_t n)
{
	const char *slash = strchr(a + n, '/');

	return slash && !strncmp(a, b, (size_t)(slash - a) + 1);
}

int __wrap_h5_remote_list(struct h5_remote *link, const char *below, const char *token, char **page,
			  size_t *got);
int __wrap_h5_remote_list(struct h5_remote *link, const char *below, const char *token, char **page,
			  size_t *got)
{
	unsigned number = token ? (unsigned)atoi(token) : 0, first, item = 0, shown = 0;
	const char *before = NULL;
	size_t n = strlen(below);
	bool more = false, counts;
	FILE *out;

	(void)link;
	pages.requests++;
	pages.time += pages.takes;
	if (pages.fails && !--pages.fails)
		return h5_fail(-EIO, H5_UNDEF, "no answer");
	counts = fault_alloc_count(false); /* what the page takes is no matter */
	out = open_memstream(page, got);
	fprintf(out, "<ListBucketResult>");
	if (pages.late && !number)
		first = 0;
	else
		first = number >= pages.empty + pages.late ? (number - pages.empty) * pages.page : UINT_MAX;
	for (const char *const *key = pages.keys; *key; key++) {
		if (strncmp(*key, below, n) != 0 || (before && is_one_item(before, *key, n)))
			continue;
		before = *key;
		if (item++ >= first && shown++ < pages.page)
			add_key(out, *key, n);
		more = more || item > first + pages.page;
	}
	more = more || number < pages.empty + pages.late;
	if (more)
		fprintf(out, "<NextContinuationToken>%u</NextContinuationToken>", number + 1);
	fprintf(out, "<IsTruncated>%s</IsTruncated></ListBucketResult>", more ? "true" : "false");
	fclose(out);
	fault_alloc_count(counts);
	return 0;
}

static struct h5_bucket *open_bucket(const char *const *keys_of_it, unsigned page)
{
	static char url[] = "s3://bucket/run/";
	static struct h5_remote link = {.url = url};
	struct h5_bucket *bucket;

	pages.keys = keys_of_it;
	pages.page = page;
	pages.requests = 0;
	pages.time = 1000;
	ck_assert_int_eq(h5_bucket_open(&link, &bucket), 0);
	return bucket;
}

static void close_bucket(struct h5_bucket *bucket)
{
	h5_bucket_close(bucket);
	memset(&pages, 0, sizeof pages);
}

/* Looks for a name, which takes so many requests. */
static struct h5_bucket_entry find(struct h5_bucket *bucket, const char *below, const char *name, bool anew,
				   int code, unsigned requests)
{
	struct h5_bucket_entry entry = {0};
	unsigned before = pages.requests;
	int rc = h5_bucket_find(bucket, below, name, anew, &entry);

	ck_assert_msg(rc == code, "%s%s: %d", below, name, rc);
	ck_assert_msg(pages.requests - before == requests, "%s%s: %u requests", below, name,
		      pages.requests - before);
	ck_assert_ptr_null(entry.name);
	return entry;
}

/* Lists a folder, which takes so many requests. */
static void check_list(struct h5_bucket *bucket, const char *below, const char *expected, unsigned requests)
{
	const struct h5_bucket_entry *entries;
	struct h5_bucket_folder *folder;
	unsigned before = pages.requests;
	char text[256] = "";
	size_t count;

	ck_assert_int_eq(h5_bucket_list(bucket, below, &folder), 0);
	ck_assert_msg(pages.requests - before == requests, "%s: %u requests", below, pages.requests - before);
	entries = h5_bucket_entries(folder, &count);
	for (size_t i = 0; i < count; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s ", entries[i].name,
			 entries[i].is_folder ? "/" : "");
	h5_bucket_put(bucket, folder);
	ck_assert_str_eq(text, expected);
}

static const char *const few[] = {"a", "b/c", "d", NULL};

/* As long as a listing is believed nobody asks. Then names are asked for one by one, until it would have been
 * less work to list. */
START_TEST(listings_are_believed)
{
	struct h5_bucket *bucket = open_bucket(few, 2);

	ck_assert_uint_eq(pages.requests, 2);
	pages.time += H5_BUCKET_KEEP - 1;
	for (unsigned i = 0; i < 5; i++)
		ck_assert_uint_eq(find(bucket, "", "a", false, 0, 0).size, 1);
	find(bucket, "", "c", false, -ENOENT, 0);
	check_list(bucket, "", "a b/ d ", 0);
	pages.time++;
	find(bucket, "", "a", false, 0, 2);
	find(bucket, "", "a", false, 0, 0);
	close_bucket(bucket);
	bucket = open_bucket(few, 2);
	pages.time += H5_BUCKET_KEEP;
	find(bucket, "", "a", false, 0, 1);
	find(bucket, "", "d", false, 0, 1);
	pages.fails = 1;
	find(bucket, "", "d", false, -EIO, 1);
	find(bucket, "", "d", false, 0, 2);
	find(bucket, "", "d", false, 0, 0);
	pages.time += H5_BUCKET_KEEP;
	check_list(bucket, "", "a b/ d ", 2);
	/* What must be as it is now is asked for, and the listing is not believed any more. */
	find(bucket, "", "d", true, 0, 1);
	find(bucket, "", "d", false, 0, 1);
	find(bucket, "", "d", false, 0, 1);
	check_list(bucket, "", "a b/ d ", 2);
	close_bucket(bucket);
}
END_TEST

/* One that takes long is believed as long. */
START_TEST(listings_that_take_long)
{
	for (unsigned takes = 1; takes < 6; takes++) {
		const unsigned believed = takes > H5_BUCKET_KEEP ? takes : H5_BUCKET_KEEP;
		struct h5_bucket *bucket;

		pages.takes = takes;
		bucket = open_bucket(few, 9);
		pages.time += believed - 1;
		check_list(bucket, "", "a b/ d ", 0);
		pages.time++;
		check_list(bucket, "", "a b/ d ", 1);
		close_bucket(bucket);
	}
}
END_TEST

/* The eight newest listings are kept; one that is in use stays. */
START_TEST(listings_are_given_up)
{
	static const char *const folders[] = {"0/x", "1/x", "2/x", "3/x", "4/x",
					      "5/x", "6/x", "7/x", "8/x", NULL};
	struct h5_bucket *bucket = open_bucket(folders, 20);
	struct h5_bucket_folder *used;
	size_t count = 0;
	char below[] = "0/";

	ck_assert_int_eq(h5_bucket_list(bucket, "", &used), 0);
	for (unsigned i = 0; i < 7; i++) {
		below[0] = (char)('0' + i);
		check_list(bucket, below, "x ", 1);
	}
	check_list(bucket, "0/", "x ", 0);
	check_list(bucket, "", "0/ 1/ 2/ 3/ 4/ 5/ 6/ 7/ 8/ ", 0);
	check_list(bucket, "7/", "x ", 1);
	for (unsigned i = 0; i < 8; i++) {
		below[0] = (char)('0' + i);
		check_list(bucket, below, "x ", 0);
	}
	ck_assert_str_eq(h5_bucket_entries(used, &count)[8].name, "8");
	ck_assert_uint_eq(count, 9);
	h5_bucket_put(bucket, used);
	check_list(bucket, "", "0/ 1/ 2/ 3/ 4/ 5/ 6/ 7/ 8/ ", 1);
	check_list(bucket, "1/", "x ", 0);
	check_list(bucket, "0/", "x ", 1);
	/* Its successor comes while it is used. */
	ck_assert_int_eq(h5_bucket_list(bucket, "0/", &used), 0);
	pages.time += H5_BUCKET_KEEP;
	check_list(bucket, "0/", "x ", 1);
	ck_assert_str_eq(h5_bucket_entries(used, &count)->name, "x");
	h5_bucket_put(bucket, used);
	check_list(bucket, "0/", "x ", 0);
	close_bucket(bucket);
}
END_TEST

/* A folder may stand behind the first page of what begins with its name. It hides an object. */
START_TEST(names_that_begin_alike)
{
	static const char *const both[] = {"a", "a+1", "a-2", "a-3", "a/x", "ab", NULL};
	static const char *const object[] = {"a", "a+1", "a-2", "a-3", "ab", NULL};
	static const char *const folder[] = {"a+1", "a-2", "a-3", "a/x", "ab", NULL};
	static const char *const other_order[] = {"a/x", "a", "a+1", "a-2", NULL};
	static const char *const none[] = {"a+1", "a-2", "a-3", "ab", "b", NULL};
	struct h5_bucket *bucket;

	bucket = open_bucket(other_order, 9);
	check_list(bucket, "", "a/ a+1 a-2 ", 0);
	ck_assert(find(bucket, "", "a", true, 0, 1).is_folder);
	close_bucket(bucket);
	for (unsigned page = 1; page < 7; page++) {
		struct h5_bucket_entry entry;

		bucket = open_bucket(both, page);
		check_list(bucket, "", "a/ a+1 a-2 a-3 ab ", 0);
		entry = find(bucket, "", "a", true, 0, page < 5 ? 2 : 1);
		ck_assert(entry.is_folder && !entry.size && !entry.version);
		close_bucket(bucket);

		bucket = open_bucket(object, page);
		entry = find(bucket, "", "a", true, 0, page < 5 ? 2 : 1);
		ck_assert(!entry.is_folder && entry.size == 1 && entry.version == h5_listing_version(TAG));
		close_bucket(bucket);

		bucket = open_bucket(folder, page);
		entry = find(bucket, "", "a", true, 0, page < 4 ? 2 : 1);
		ck_assert(entry.is_folder);
		close_bucket(bucket);

		bucket = open_bucket(none, page);
		find(bucket, "", "a", true, -ENOENT, page < 4 ? 2 : 1);
		pages.fails = 1;
		find(bucket, "", "a", true, -EIO, 1);
		if (page < 4) {
			pages.fails = 2;
			find(bucket, "", "a", true, -EIO, 2);
		}
		close_bucket(bucket);
	}
}
END_TEST

/* What ends a listing. */
START_TEST(listings_that_fail)
{
	enum { EMPTY_PAGES = 1000 };
	static const char *const nothing[] = {NULL};
	static char root[] = "s3://bucket/", run[] = "s3://bucket/run/";
	struct h5_remote link = {.url = run};
	struct h5_bucket_folder *listed;
	struct h5_bucket *bucket = open_bucket(few, 1);

	for (unsigned fails = 1; fails <= 3; fails++) {
		pages.time += H5_BUCKET_KEEP;
		pages.fails = fails;
		pages.requests = 0;
		ck_assert_int_eq(h5_bucket_list(bucket, "", &listed), -EIO);
		ck_assert_uint_eq(pages.requests, fails);
	}
	check_list(bucket, "", "a b/ d ", 3);
	ck_assert_int_eq(h5_bucket_list(bucket, "x/", &listed), -ENOENT);
	for (unsigned more = 0; more < 2; more++) {
		pages.time += H5_BUCKET_KEEP;
		pages.empty = EMPTY_PAGES + more;
		pages.requests = 0;
		ck_assert_int_eq(h5_bucket_list(bucket, "b/", &listed), more ? -EIO : 0);
		ck_assert_uint_eq(pages.requests, EMPTY_PAGES + 1);
		if (!more)
			h5_bucket_put(bucket, listed);
	}
	pages.late = true;
	for (unsigned more = 0; more < 2; more++) {
		pages.time += H5_BUCKET_KEEP;
		pages.empty = EMPTY_PAGES + more;
		ck_assert_int_eq(h5_bucket_list(bucket, "", &listed), more ? -EIO : 0);
		if (!more)
			h5_bucket_put(bucket, listed);
	}
	h5_bucket_close(bucket);
	pages.late = false;
	/* There is a folder without a key only if the whole bucket is mounted. */
	pages.empty = 0;
	pages.keys = nothing;
	ck_assert_int_eq(h5_bucket_open(&link, &bucket), -ENOENT);
	link.url = root;
	ck_assert_int_eq(h5_bucket_open(&link, &bucket), 0);
	check_list(bucket, "", "", 0);
	close_bucket(bucket);
}
END_TEST

static bool is_unwanted(void *arg)
{
	(void)arg;
	return true;
}

START_TEST(listings_that_nobody_wants)
{
	struct h5_bucket *bucket = open_bucket(few, 1);
	struct h5_bucket_folder *listed;

	pages.time += H5_BUCKET_KEEP;
	pages.takes = 10;
	pages.requests = 0;
	h5_interrupt_begin(is_unwanted, NULL);
	ck_assert_int_eq(h5_bucket_list(bucket, "", &listed), -EINTR);
	h5_interrupt_begin(NULL, NULL);
	ck_assert_uint_eq(pages.requests, 1);
	close_bucket(bucket);
}
END_TEST

/* ---- a tree of such a bucket ---- */

/* The version that the store named when the object was opened; 0: it was not asked. */
static uint64_t tag_of_opened;
uint64_t __wrap_h5_remote_tag(struct h5_remote *link, const char *name, uint64_t version);
uint64_t __wrap_h5_remote_tag(struct h5_remote *link, const char *name, uint64_t version)
{
	(void)link;
	(void)version;
	ck_assert_str_eq(name, "b/c");
	return tag_of_opened;
}

static struct h5_tree *open_tree(void)
{
	static char url[] = "s3://bucket/run/";
	static struct h5_remote link = {.url = url};
	struct h5_tree_options options = {.match = H5_TREE_MATCH,
					  .open_files = 2,
					  .vfs = {.url = url, .file_fd = -1, .uid = 12, .gid = 34}};
	struct h5_tree *tree;

	pages.keys = few;
	pages.page = 9;
	pages.requests = 0;
	pages.time = 1000;
	options.set.remote = &link;
	ck_assert_int_eq(h5_tree_open(NULL, &options, &tree), 0);
	return tree;
}

static void close_tree(struct h5_tree *tree)
{
	h5_tree_close(tree);
	memset(&pages, 0, sizeof pages);
}

static struct h5_tree_node *look_up(struct h5_tree *tree, struct h5_tree_node *parent, const char *name)
{
	struct h5_tree_entry entry;

	ck_assert_int_eq(h5_tree_lookup(tree, parent, name, &entry), 0);
	return entry.node;
}

/* Names are looked up in the listing that there is. */
START_TEST(names_of_a_tree)
{
	struct h5_tree *tree = open_tree();
	struct h5_tree_node *root = h5_tree_root(tree);
	struct h5_tree_entry entry;

	ck_assert_uint_eq(pages.requests, 1);
	for (unsigned i = 0; i < 3; i++) {
		struct h5_tree_node *folder = look_up(tree, root, "b"), *object = look_up(tree, root, "a");

		ck_assert_int_eq(h5_tree_kind(folder), H5_TREE_FOLDER);
		ck_assert_int_eq(h5_tree_kind(object), H5_TREE_PLAIN);
		ck_assert_int_eq(h5_tree_lookup(tree, root, "c", &entry), -ENOENT);
		h5_tree_forget(tree, folder, 1);
		h5_tree_forget(tree, object, 1);
	}
	ck_assert_uint_eq(pages.requests, 1);
	close_tree(tree);
}
END_TEST

/* What an object and a folder of a store have for programs. */
START_TEST(entries_of_a_tree)
{
	static const char *const names[] = {"a", "b"};
	struct h5_tree *tree = open_tree();
	struct h5_tree_node *root = h5_tree_root(tree);
	ino_t objects[2];
	struct statvfs fs;
	struct h5_tree_entry other;
	struct h5_buf out;

	h5_buf_init(&out, 1 << 12);
	for (unsigned i = 0; i < 2; i++) {
		struct h5_tree_entry entry;
		struct stat st;

		ck_assert_int_eq(h5_tree_lookup(tree, root, names[i], &entry), 0);
		ck_assert_int_eq(h5_tree_getattr(tree, entry.node, &st), 0);
		ck_assert_uint_eq(st.st_ino, entry.st.st_ino);
		ck_assert_uint_ne(st.st_ino, entry.node->inode);
		objects[i] = st.st_ino;
		ck_assert_uint_eq(st.st_mode, i ? S_IFDIR | 0555 : S_IFREG | 0444);
		ck_assert_uint_eq(st.st_uid, 12);
		ck_assert_uint_eq(st.st_gid, 34);
		ck_assert_int_eq(st.st_blksize, 1 << 17);
		ck_assert_int_eq(h5_tree_readlink(tree, entry.node, &out), -EINVAL);
		ck_assert_int_eq(h5_tree_listxattr(tree, entry.node, &out), 0);
		ck_assert_int_eq(h5_tree_getxattr(tree, entry.node, "user.a", &out), -ENODATA);
		ck_assert_int_eq(entry.st.st_mtim.tv_sec, i ? 0 : 1000000000);
		ck_assert_int_eq(st.st_mtim.tv_sec, i ? 0 : 1000000000);
		ck_assert_double_eq(h5_tree_keep(tree, entry.node), H5_BUCKET_KEEP);
		h5_tree_forget(tree, entry.node, 1);
	}
	ck_assert_uint_eq(out.size, 0);
	/* Objects of one version have numbers of their own. */
	ck_assert_int_eq(h5_tree_lookup(tree, root, "d", &other), 0);
	ck_assert_uint_ne(other.st.st_ino, objects[0]);
	ck_assert_uint_eq(other.node->device, h5_listing_version(TAG));
	h5_tree_forget(tree, other.node, 1);
	ck_assert_int_eq(h5_tree_getxattr(tree, root, "h5fs.stats", &out), 0);
	h5_buf_byte(&out, 0);
	ck_assert_ptr_nonnull(strstr(out.data, "\"nodes\":1,\"remote\":{\"requests\":0,"));
	h5_buf_release(&out);
	ck_assert_int_eq(h5_tree_statfs(tree, &fs), 0);
	ck_assert_uint_eq(fs.f_bsize, 1 << 17);
	ck_assert_uint_eq(fs.f_frsize, 512);
	ck_assert_uint_eq(fs.f_namemax, NAME_MAX);
	ck_assert_uint_eq(fs.f_blocks, 0);
	ck_assert_int_eq(h5_tree_folder(tree), -1);
	ck_assert_double_eq(h5_tree_keep(tree, &(struct h5_tree_node){.kind = H5_TREE_INSIDE}), 0);
	close_tree(tree);
}
END_TEST

/* The fetcher takes no key that is so long. The file is not there then, and none that tells an error later.
 */
START_TEST(an_object_with_a_long_key)
{
	static char key[H5_REMOTE_NAME + 40], folder_name[H5_REMOTE_NAME];
	static const char *const one[] = {key, NULL};

	for (size_t n = H5_REMOTE_NAME - 8; n < H5_REMOTE_NAME - 1; n++) {
		struct h5_tree *tree = open_tree();
		struct h5_tree_found found = {.kind = H5_TREE_FOLDER};
		struct h5_tree_node *folder;
		struct h5_tree_entry entry;

		memset(folder_name, 'x', n);
		folder_name[n] = 0;
		snprintf(key, sizeof key, "%s/.h5.bag", folder_name);
		pages.keys = one;
		ck_assert_int_eq(h5_tree_node_get(tree, h5_tree_root(tree), folder_name, &found, &folder), 0);
		strcat(folder_name, "/");
		check_list(tree->bucket, folder_name, ".h5.bag ", 1);
		ck_assert_int_eq(h5_tree_lookup(tree, folder, ".h5.bag", &entry), -ENAMETOOLONG);
		h5_tree_forget(tree, folder, 1);
		close_tree(tree);
	}
}
END_TEST

/* If the store names the version otherwise than in the listing, it lists the object once more, which tells
 * whether it was replaced. */
START_TEST(an_object_that_was_opened)
{
	static const char *const none[] = {"a", "d", NULL};
	static const uint64_t other = 12345;
	struct h5_tree *tree = open_tree();
	struct h5_tree_node *folder = look_up(tree, h5_tree_root(tree), "b"),
			    *object = look_up(tree, folder, "c");
	unsigned failures = 0;
	bool fired = true;

	ck_assert_uint_eq(object->device, h5_listing_version(TAG));
	pages.requests = 0;
	tag_of_opened = 0;
	ck_assert_int_eq(h5_tree_object_check(tree, object), 0);
	tag_of_opened = object->device;
	ck_assert_int_eq(h5_tree_object_check(tree, object), 0);
	ck_assert_uint_eq(pages.requests, 0);
	/* Though there is a listing that may be believed. */
	tag_of_opened = other;
	for (unsigned i = 1; i < 3; i++) {
		struct h5_bucket_folder *listed;

		ck_assert_int_eq(h5_bucket_list(tree->bucket, "b/", &listed), 0);
		h5_bucket_put(tree->bucket, listed);
		pages.requests = 0;
		ck_assert_int_eq(h5_tree_object_check(tree, object), 0);
		ck_assert_uint_eq(pages.requests, 1);
	}
	for (unsigned long n = 1; fired; n++) {
		int rc;

		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_tree_object_check(tree, object);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		ck_assert(!rc || (fired && rc == -ENOMEM));
		failures += rc != 0;
	}
	ck_assert_uint_gt(failures, 2);
	pages.fails = 1;
	ck_assert_int_eq(h5_tree_object_check(tree, object), -EIO);
	pages.tag = "\"2\"";
	ck_assert_int_eq(h5_tree_object_check(tree, object), -ESTALE);
	ck_assert_str_eq(h5_error_last()->text, "the object was replaced");
	pages.tag = NULL;
	ck_assert_int_eq(h5_tree_object_check(tree, object), 0);
	pages.keys = none;
	ck_assert_int_eq(h5_tree_object_check(tree, object), -ESTALE);
	h5_tree_forget(tree, object, 1);
	h5_tree_forget(tree, folder, 1);
	close_tree(tree);
}
END_TEST

UNIT_MAIN_LOOPS("bucket", {listings_are_believed, 1}, {listings_that_take_long, 1},
		{listings_are_given_up, 1}, {names_that_begin_alike, 1}, {listings_that_fail, 1},
		{listings_that_nobody_wants, 1}, {names_of_a_tree, 1}, {entries_of_a_tree, 1},
		{an_object_with_a_long_key, 1}, {an_object_that_was_opened, 1})
