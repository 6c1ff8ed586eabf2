/* The tree of an object store's prefix while memory is short: the test is the fetcher, and the store. */
#include "base/buf.h"
#include "base/error.h"
#include "fault_alloc.h"
#include "io/remote.h"
#include "remote/listing.h"
#include "tree/tree.h"
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The objects, by what their keys have behind the prefix. Each has its key as its bytes. */
static const char *const keys[] = {"a", "d/b", "d/e/f"};
enum { KEYS = sizeof keys / sizeof *keys, PAGE = 4096 };

#define TAG "\"1\""

struct store {
	struct h5_remote *link;
	struct h5_remote_end end;
	struct h5_tree *tree;
	pthread_t server;
};

/* A page of what begins with the text, up to the next slash. A folder may stand there several times. */
static size_t list_keys(const char *begin, char page[PAGE])
{
	size_t n = strlen(begin), at = 0;

	at += (size_t)sprintf(page, "<ListBucketResult><IsTruncated>false</IsTruncated>");
	for (size_t i = 0; i < KEYS; i++) {
		const char *slash;

		if (strncmp(keys[i], begin, n))
			continue;
		slash = strchr(keys[i] + n, '/');
		if (slash)
			at += (size_t)sprintf(page + at,
					      "<CommonPrefixes><Prefix>run/%.*s</Prefix></CommonPrefixes>",
					      (int)(slash - keys[i]) + 1, keys[i]);
		else
			at += (size_t)sprintf(page + at,
					      "<Contents><Key>run/%s</Key><Size>%zu</Size><ETag>" TAG
					      "</ETag></Contents>",
					      keys[i], strlen(keys[i]));
	}
	return at + (size_t)sprintf(page + at, "</ListBucketResult>");
}

/* Answers until the link ends. */
static void *serve(void *arg)
{
	const struct store *s = arg;
	struct h5_remote_message message;

	while (recv(s->end.fd, &message, sizeof message, 0) > 0) {
		const struct h5_remote_request *request = &message.request;
		struct h5_remote_reply reply = {.id = request->id, .requests = 1};
		char name[H5_REMOTE_NAME], *data;

		if (request->what == H5_REMOTE_CLOSE)
			continue;
		snprintf(name, sizeof name, "%.*s", (int)request->name,
			 (const char *)&message.cells[request->cells]);
		data = (char *)s->end.memory + (size_t)message.cells[0] * H5_REMOTE_CELL;
		if (request->what == H5_REMOTE_LIST)
			reply.size = list_keys(name, data);
		else
			reply.size = (uint64_t)sprintf(data, "%s", name);
		reply.got = reply.received = reply.size;
		reply.version = h5_listing_version(TAG);
		send(s->end.fd, &reply, sizeof reply, MSG_NOSIGNAL);
	}
	return NULL;
}

static int open_store(struct store *s)
{
	struct h5_tree_options options = {
		.match = H5_TREE_MATCH, .open_files = 2, .vfs = {.url = "s3://bucket/run/", .file_fd = -1}};

	options.set.remote = s->link;
	return h5_tree_open(NULL, &options, &s->tree);
}

static void begin(struct store *s)
{
	memset(s, 0, sizeof *s);
	ck_assert_int_eq(h5_remote_new("s3://bucket/run/", 1 << 20, 4, &s->link, &s->end), 0);
	ck_assert_int_eq(pthread_create(&s->server, NULL, serve, s), 0);
}

static void end(struct store *s)
{
	h5_tree_close(s->tree);
	h5_remote_end(s->link);
	shutdown(s->end.fd, SHUT_RDWR);
	pthread_join(s->server, NULL);
	h5_remote_close(s->link);
	close(s->end.fd);
}

static int list(struct h5_tree *tree, struct h5_tree_node *node, struct h5_buf *out)
{
	struct h5_tree_name names[H5_TREE_NAMES];
	struct h5_tree_dir *dir;
	size_t got = 0;
	int rc = h5_tree_opendir(tree, node, &dir);

	if (rc)
		return rc;
	rc = h5_tree_readdir(dir, 0, names, &got);
	for (size_t i = 0; i < got && !rc; i++)
		h5_buf_printf(out, "%s ", names[i].name);
	h5_tree_closedir(dir);
	return rc;
}

static int read_all(struct h5_tree *tree, struct h5_tree_node *node, struct h5_buf *out)
{
	struct h5_tree_handle *handle;
	char bytes[16];
	size_t got = 0;
	int rc = h5_tree_open_file(tree, node, 0, &handle);

	if (rc)
		return rc;
	rc = h5_tree_read(handle, 0, bytes, sizeof bytes, &got);
	h5_tree_close_file(handle);
	h5_buf_add(out, bytes, got);
	return rc;
}

static int tell(struct h5_tree *tree, struct h5_tree_node *node, struct h5_buf *out)
{
	struct stat st;
	int rc = h5_tree_getattr(tree, node, &st);

	if (!rc)
		h5_buf_printf(out, "%o %jd", st.st_mode, (intmax_t)st.st_size);
	return rc;
}

static const struct {
	const char *path;
	int (*ask)(struct h5_tree *tree, struct h5_tree_node *node, struct h5_buf *out);
	const char *answer;
} questions[] = {
	{"", list, "a d "},	{"d", list, "b e "},	   {"d/e", list, "f "},	 {"a", tell, "100444 1"},
	{"d", tell, "40555 0"}, {"d/b", tell, "100444 3"}, {"a", read_all, "a"}, {"d/e/f", read_all, "d/e/f"},
};
enum { QUESTIONS = sizeof questions / sizeof *questions };

/* What comes of the question, from the root on. */
static int ask(struct store *s, unsigned question, struct h5_buf *out)
{
	struct h5_tree_node *node, *found[4];
	char path[64], *rest = path;
	size_t count = 0;
	int rc = s->tree ? 0 : open_store(s);

	if (rc)
		return rc;
	node = h5_tree_root(s->tree);
	snprintf(path, sizeof path, "%s", questions[question].path);
	while (rest && *rest && !rc) {
		struct h5_tree_entry entry;

		rc = h5_tree_lookup(s->tree, node, strsep(&rest, "/"), &entry);
		if (!rc)
			node = found[count++] = entry.node;
	}
	if (!rc)
		rc = questions[question].ask(s->tree, node, out);
	while (count)
		h5_tree_forget(s->tree, found[--count], 1);
	return rc ? rc : out->err;
}

static void check_answer(struct store *s, unsigned question, bool fails)
{
	struct h5_buf out;
	int rc;

	h5_buf_init(&out, 1 << 12);
	rc = ask(s, question, &out);
	ck_assert_msg(!rc || (fails && rc == -ENOMEM), "question %u: %d %s", question, rc,
		      h5_error_last()->text);
	if (!rc)
		ck_assert_msg(out.size == strlen(questions[question].answer) &&
				      !memcmp(out.data, questions[question].answer, out.size),
			      "question %u: %.*s", question, (int)out.size, out.data);
	h5_buf_release(&out);
}

START_TEST(every_allocation_can_fail)
{
	const unsigned question = (unsigned)_i;
	bool fired = true;

	for (unsigned long n = 1; fired; n++) {
		struct store s;

		begin(&s);
		fault_alloc_arm(n);
		fault_alloc_count(true);
		check_answer(&s, question, true);
		fault_alloc_count(false);
		fired = fault_alloc_disarm();
		check_answer(&s, question, false);
		end(&s);
	}
}
END_TEST

UNIT_MAIN_LOOPS("bucket", {every_allocation_can_fail, QUESTIONS})
