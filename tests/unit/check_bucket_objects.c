/* The objects of a store as a tree, where the test is the fetcher, and the store: while memory is short,
 * which of them are HDF5 files, and how these are opened. */
#include "base/buf.h"
#include "base/checked.h"
#include "base/error.h"
#include "change/open.h"
#include "fault_alloc.h"
#include "io/remote_link.h"
#include "remote/listing.h"
#include "tree/object.h"
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The objects, by what their keys have behind the prefix. Each has its key as its bytes, but for s/N.h5,
 * which has zeros: the signature of an HDF5 file is behind N of them. */
static const char *const keys[] = {"a",	       "d/b",	       "d/e/f",	       "s/0.h5",
				   "s/512.h5", "s/1048576.h5", "s/2097152.h5", "text.h5/one.h5"};
enum { KEYS = sizeof keys / sizeof *keys, PAGE = 4096, SIGNATURE = 8, MOST = 32 };

#define TAG	  "\"1\""
#define OTHER_TAG "\"2\""

struct store {
	struct h5_remote *link;
	struct h5_remote_end end;
	struct h5_tree *tree;
	uint64_t offset; /* option of the tree */
	pthread_t server;
	char names[MOST][H5_REMOTE_NAME]; /* of files that were opened, by their numbers */
	const char *listed, *opened;	  /* tags of all objects, in the listing and when they are opened */
	int code;			  /* of replies to who reads */
	unsigned ahead;			  /* requests for what nobody waits for */
};

static size_t size_of(const char *key)
{
	return *key == 's' ? (size_t)atol(key + 2) + SIGNATURE : strlen(key);
}

/* A page of what begins with the text, up to the next slash. A folder may stand there several times. */
static size_t list_keys(const char *begin, const char *tag, char page[PAGE])
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
					      "<Contents><Key>run/%s</Key><Size>%zu</Size><ETag>%s"
					      "</ETag></Contents>",
					      keys[i], size_of(keys[i]), tag);
	}
	return at + (size_t)sprintf(page + at, "</ListBucketResult>");
}

/* Fills the cells of a request with an object's bytes. */
static void fill_cells(const struct store *s, const struct h5_remote_message *message, const char *key)
{
	for (uint32_t i = 0; i < message->request.cells; i++) {
		uint64_t begin = message->request.offset + (uint64_t)i * H5_REMOTE_CELL;
		char *cell = (char *)s->end.memory + (size_t)message->cells[i] * H5_REMOTE_CELL;

		memset(cell, 0, H5_REMOTE_CELL);
		if (*key != 's')
			memcpy(cell, key, strlen(key));
		else if (size_of(key) - SIGNATURE - begin < H5_REMOTE_CELL)
			memcpy(cell + (size_of(key) - SIGNATURE - begin), "\x89HDF\r\n\x1a\n", SIGNATURE);
	}
}

/* Answers until the link ends. */
static void *serve(void *arg)
{
	struct store *s = arg;
	struct h5_remote_message message;

	while (recv(s->end.fd, &message, sizeof message, 0) > 0) {
		const struct h5_remote_request *request = &message.request;
		struct h5_remote_reply reply = {.id = request->id, .requests = 1};
		char name[H5_REMOTE_NAME], *file;

		if (request->what == H5_REMOTE_CLOSE)
			continue;
		file = s->names[request->file];
		snprintf(name, sizeof name, "%.*s", (int)request->name,
			 (const char *)&message.cells[request->cells]);
		if (request->what == H5_REMOTE_LIST) {
			reply.size =
				list_keys(name, s->listed,
					  (char *)s->end.memory + (size_t)message.cells[0] * H5_REMOTE_CELL);
			reply.got = reply.size;
		} else {
			if (request->what == H5_REMOTE_OPEN)
				memcpy(file, name, sizeof name);
			fill_cells(s, &message, file);
			reply.size = size_of(file);
			reply.got = h5_min(request->n, reply.size - request->offset);
		}
		reply.received = reply.got;
		s->ahead += request->what == H5_REMOTE_READ && !request->urgent;
		reply.version = h5_listing_version(s->opened);
		if (request->what == H5_REMOTE_READ && s->code)
			reply = (struct h5_remote_reply){.id = request->id, .code = s->code};
		send(s->end.fd, &reply, sizeof reply, MSG_NOSIGNAL);
	}
	return NULL;
}

static int open_store(struct store *s)
{
	struct h5_tree_options options = {
		.match = H5_TREE_MATCH, .open_files = 2, .vfs = {.url = "s3://bucket/run/", .file_fd = -1}};

	options.set.remote = s->link;
	options.set.offset = s->offset;
	return h5_tree_open(NULL, &options, &s->tree);
}

static void begin(struct store *s)
{
	memset(s, 0, sizeof *s);
	s->listed = s->opened = TAG;
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
	{"", list, "a d s text.h5 "}, {"d", list, "b e "},	    {"d/e", list, "f "},
	{"a", tell, "100444 1"},      {"d", tell, "40555 0"},	    {"d/b", tell, "100444 3"},
	{"a", read_all, "a"},	      {"d/e/f", read_all, "d/e/f"}, {"text.h5/one.h5", tell, "100444 14"},
	{"s/0.h5", tell, "40555 0"},
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

/* A signature behind more than a mebibyte is not looked for, unless an option says where it is. */
START_TEST(signatures_of_objects)
{
	static const struct {
		const char *name;
		uint64_t offset; /* the option */
		enum h5_tree_kind kind;
	} cases[] = {{"512.h5", 0, H5_TREE_FILE},
		     {"1048576.h5", 0, H5_TREE_FILE},
		     {"2097152.h5", 0, H5_TREE_PLAIN},
		     {"2097152.h5", 2097152, H5_TREE_FILE},
		     {"1048576.h5", 2097152, H5_TREE_PLAIN},
		     {"1048576.h5", 1048576, H5_TREE_FILE}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_tree_entry folder, entry;
		struct store s;

		begin(&s);
		s.offset = cases[i].offset;
		ck_assert_int_eq(open_store(&s), 0);
		ck_assert_int_eq(h5_tree_lookup(s.tree, h5_tree_root(s.tree), "s", &folder), 0);
		ck_assert_int_eq(h5_tree_lookup(s.tree, folder.node, cases[i].name, &entry), 0);
		ck_assert_msg(h5_tree_kind(entry.node) == cases[i].kind, "%zu", i);
		h5_tree_forget(s.tree, entry.node, 1);
		h5_tree_forget(s.tree, folder.node, 1);
		end(&s);
	}
}
END_TEST

/* What a file is opened with. */
static struct {
	unsigned times;
	char path[100], name[100];
	uint64_t version;
	int code; /* what comes of it */
} opened;

int __wrap_h5_open_file(const char *path, const struct h5_file_set_options *options, struct h5_file_set **set,
			struct h5_opened *what);

int __wrap_h5_open_file(const char *path, const struct h5_file_set_options *options, struct h5_file_set **set,
			struct h5_opened *what)
{
	(void)what;
	*set = NULL;
	opened.times++;
	snprintf(opened.path, sizeof opened.path, "%s", path);
	snprintf(opened.name, sizeof opened.name, "%s", options->remote_name);
	opened.version = options->remote_version;
	return opened.code ? h5_fail(opened.code, H5_UNDEF, "why") : 0;
}

/* By its key, and as the version that was listed. */
START_TEST(an_object_that_is_a_file)
{
	struct h5_tree_entry folder, entry;
	struct h5_tree_inside in;
	struct store s;

	begin(&s);
	memset(&opened, 0, sizeof opened);
	opened.code = -EWOULDBLOCK;
	s.opened = OTHER_TAG; /* for the store it is the same version */
	ck_assert_int_eq(open_store(&s), 0);
	ck_assert_int_eq(h5_tree_lookup(s.tree, h5_tree_root(s.tree), "s", &folder), 0);
	ck_assert_int_eq(h5_tree_lookup(s.tree, folder.node, "0.h5", &entry), 0);
	for (unsigned i = 1; i < 3; i++) {
		ck_assert_int_eq(h5_tree_enter(s.tree, entry.node, &in), -EBUSY);
		ck_assert_str_eq(h5_error_last()->text, "why");
		ck_assert_uint_eq(opened.times, i);
		ck_assert_str_eq(opened.path, "s3://bucket/run/s/0.h5");
		ck_assert_str_eq(opened.name, "s/0.h5");
		ck_assert_uint_eq(opened.version, h5_listing_version(TAG));
		ck_assert_uint_eq(s.tree->open_count, 0);
		ck_assert_ptr_null(s.tree->open);
	}
	/* By now it is another one. */
	s.listed = OTHER_TAG;
	opened.code = 0;
	ck_assert_int_eq(h5_tree_enter(s.tree, entry.node, &in), -ESTALE);
	ck_assert_uint_eq(opened.times, 3);
	ck_assert_ptr_null(s.tree->open);
	h5_tree_forget(s.tree, entry.node, 1);
	h5_tree_forget(s.tree, folder.node, 1);
	end(&s);
}
END_TEST

/* An object that is no HDF5 file: what is read of it, and where it ends. */
START_TEST(an_object_that_is_read)
{
	enum { END = 2097152 + SIGNATURE };
	struct h5_tree_entry folder, entry;
	struct h5_tree_handle *handle;
	struct store s;
	char bytes[16];
	uint64_t found;
	size_t got;

	begin(&s);
	s.opened = OTHER_TAG;
	ck_assert_int_eq(open_store(&s), 0);
	ck_assert_int_eq(h5_tree_lookup(s.tree, h5_tree_root(s.tree), "s", &folder), 0);
	ck_assert_int_eq(h5_tree_lookup(s.tree, folder.node, "2097152.h5", &entry), 0);
	ck_assert_int_eq(h5_tree_open_file(s.tree, entry.node, 0, &handle), 0);
	s.code = -EACCES;
	ck_assert_int_eq(h5_tree_read(handle, END - 12, bytes, sizeof bytes, &got), -EACCES);
	s.code = 0;
	ck_assert_int_eq(h5_tree_read(handle, END - 12, bytes, sizeof bytes, &got), 0);
	ck_assert_uint_eq(got, 12);
	ck_assert_mem_eq(bytes, "\0\0\0\0\x89HDF\r\n\x1a\n", 12);
	ck_assert_int_eq(h5_tree_read(handle, END, bytes, sizeof bytes, &got), 0);
	ck_assert_uint_eq(got, 0);
	ck_assert_int_eq(h5_tree_seek(handle, END - 1, false, &found), 0);
	ck_assert_uint_eq(found, END - 1);
	ck_assert_int_eq(h5_tree_seek(handle, END - 1, true, &found), 0);
	ck_assert_uint_eq(found, END);
	ck_assert_int_eq(h5_tree_seek(handle, END, false, &found), -ENXIO);
	ck_assert_int_eq(h5_tree_seek(handle, END, true, &found), -ENXIO);
	h5_tree_close_file(handle);
	s.listed = OTHER_TAG;
	ck_assert_int_eq(h5_tree_open_file(s.tree, entry.node, 0, &handle), -ESTALE);
	ck_assert_ptr_null(s.tree->handles);
	h5_tree_forget(s.tree, entry.node, 1);
	h5_tree_forget(s.tree, folder.node, 1);
	end(&s);
}
END_TEST

/* What comes next is asked for, but of an object that is not read in order, or not read at all, nothing. */
START_TEST(an_object_that_is_read_in_order)
{
	enum { END = 2097152 + SIGNATURE, STEP = 128 << 10 };

	for (unsigned kind = 0; kind < 3; kind++) {
		struct h5_tree_entry folder, entry;
		struct h5_tree_handle *handle;
		struct store s;
		static char bytes[STEP];
		size_t got;

		begin(&s);
		ck_assert_int_eq(open_store(&s), 0);
		ck_assert_int_eq(h5_tree_lookup(s.tree, h5_tree_root(s.tree), "s", &folder), 0);
		ck_assert_int_eq(h5_tree_lookup(s.tree, folder.node, "2097152.h5", &entry), 0);
		ck_assert_int_eq(h5_tree_open_file(s.tree, entry.node, 0, &handle), 0);
		for (unsigned i = 0; i < 7 && kind; i++) {
			const uint64_t at = kind == 1 ? i * STEP : END + i;

			ck_assert_int_eq(h5_tree_read(handle, at, bytes, STEP, &got), 0);
			ck_assert_uint_eq(got, kind == 1 ? STEP : 0);
		}
		h5_tree_close_file(handle);
		h5_tree_forget(s.tree, entry.node, 1);
		h5_tree_forget(s.tree, folder.node, 1);
		end(&s);
		ck_assert_int_eq(s.ahead > 0, kind == 1);
	}
}
END_TEST

UNIT_MAIN_LOOPS("bucket_objects", {every_allocation_can_fail, QUESTIONS}, {signatures_of_objects, 1},
		{an_object_that_is_a_file, 1}, {an_object_that_is_read, 1},
		{an_object_that_is_read_in_order, 1})
