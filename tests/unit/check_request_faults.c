/* Requests that change a file, each allocation and each call to read of which fails once: all is done, or
 * nothing. */
#include "base/error.h"
#include "request_scene.h"
#include "vfs/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

/* Requests that come before, and the one that fails. */
struct failing {
	struct request before[3], request;
};

#define BACKUP                                                                                               \
	{                                                                                                    \
		{"rename", "data", "data~", .error = 0}, {"mknod", "data", .error = 0},                      \
		{                                                                                            \
			"open", "data", .flags = O_WRONLY, .value = "12345678"                               \
		}                                                                                            \
	}

static const struct failing failing[] = {
	{.request = {"mkdir", "group/x", .error = 0}},
	{.request = {"mknod", "group/x", .error = 0}},
	{.request = {"create", "group/x", .flags = O_RDWR}},
	{.request = {"create", "group/x", .flags = O_RDONLY}},
	{.request = {"create", "fixed", .flags = O_RDWR}},
	{.request = {"create", ".h5fs/npy/data.npy", .flags = O_WRONLY | O_EXCL, .error = -EEXIST}},
	{.request = {"create", ".h5fs/attrs/data/text", .flags = O_WRONLY | O_EXCL, .error = -EEXIST}},
	{.request = {"unlink", "group/file", .error = 0}},
	{.request = {"unlink", "data", .error = 0}},
	{.request = {"unlink", "soft", .error = 0}},
	{.request = {"rmdir", "empty", .error = 0}},
	{.request = {"link", "group/x", "data", .error = 0}},
	{.request = {"symlink", "group/x", "../data", .error = 0}},
	{.request = {"symlink", "group/x", "file", .error = 0}},
	{.request = {"symlink", "group/x", "extlink:other.h5//file", .error = 0}},
	{.request = {"rename", "data", "x", .error = 0}},
	{.request = {"rename", "data", "group/x", .error = 0}},
	{.request = {"rename", "group", "empty/x", .error = 0}},
	{.request = {"rename", "data", "fixed", .error = 0}},
	{.request = {"rename", "soft", "data", .error = 0}},
	{.request = {"rename", "group/sub", "empty", .error = 0}},
	{.request = {"rename", "data", "group/file", .flags = EXCHANGE}},
	{.request = {"rename", "soft", "group", .flags = EXCHANGE}},
	{.before = {{"open", "new", .flags = O_WRONLY, .value = "12345678"}},
	 .request = {"rename", "new", "data", .error = 0}},
	/* A plain file onto a dataset, which gets its contents. */
	{.before = {{"mknod", "plain", .error = 0},
		    {"open", "plain", .flags = O_WRONLY, .value = "123456781234567812345678"}},
	 .request = {"rename", "plain", "fixed", .error = 0}},
	{.before = {{"mknod", "group/plain", .error = 0},
		    {"open", "group/plain", .flags = O_WRONLY, .value = "12345678"}},
	 .request = {"rename", "group/plain", "data", .error = 0}},
	{.before = {{"mknod", ".h5fs~", .error = 0}}, .request = {"unlink", ".h5fs~", .error = 0}},
	{.before = BACKUP, .request = {"unlink", "data~", .error = 0}},
	{.request = {"set", "data", "user.new", "5", .error = 0}},
	{.request = {"set", "data", "user.new", "words", .error = 0}},
	{.request = {"set", "data", "user.new", "[1,2,3]", .error = 0}},
	{.request = {"set", "data", "user.number", "7", .error = 0}},
	{.request = {"set", "data", "user.text", "other words", .error = 0}},
	{.request = {"set", "data", "h5fs.raw.new", "x", .error = -ENODATA}},
	{.request = {"set", "data", "h5fs.type.number", "<f8", .error = 0}},
	{.request = {"set", "data", "h5fs.type.new", "(3,)<f8", .error = 0}},
	{.request = {"remove", "data", "user.number", .error = 0}},
	{.request = {"set", "data", "h5fs.comment", "words", .error = 0}},
	{.before = {{"set", "data", "h5fs.comment", "some", .error = 0}},
	 .request = {"set", "data", "h5fs.comment", "words", .error = 0}},
	{.request = {"set", "new", "h5fs.info", "{\"dtype\":\"<i4\",\"shape\":5,\"fill\":\"7\"}",
		     .error = 0}},
	{.request = {"set", "declared", "h5fs.fill", "7", .error = 0}},
	{.request = {"set", "declared", "h5fs.shape", "3,4", .error = 0}},
	{.request = {"set", "data", "h5fs.shape", "5", .error = 0}},
	{.request = {"set", "data", "h5fs.shape", "9", .error = 0}},
	{.request = {"open", "fixed", .flags = O_WRONLY | O_TRUNC, .value = "123456781234567812345678"}},
	{.request = {"open", "data", .flags = O_WRONLY | O_TRUNC}},
	{.request = {"truncate", "data", .size = 4}},
	{.request = {"truncate", "data", .size = 40}},
	{.request = {"unlink", ".h5fs/attrs/data/text", .error = 0}},
	{.request = {"create", ".h5fs/attrs/data/new", .flags = O_WRONLY, .value = "some words\n"}},
	{.request = {"open", ".h5fs/attrs/data/text", .flags = O_WRONLY | O_TRUNC, .value = "some words\n"}},
	{.request = {"create", ".h5fs/npy/new.npy", .flags = O_WRONLY, .value = request_npy,
		     .size = sizeof request_npy}},
	{.request = {"open", ".h5fs/npy/data.npy", .flags = O_WRONLY | O_TRUNC, .value = request_npy,
		     .size = sizeof request_npy}},
	{.request = {"open", ".h5fs/npy/fixed.npy", .flags = O_WRONLY | O_TRUNC, .value = request_npy,
		     .size = sizeof request_npy}},
	{.request = {"rename", ".h5fs/npy/data.npy", ".h5fs/npy/x.npy", .error = 0}},
	{.request = {"rename", ".h5fs/npy/fixed.npy", ".h5fs/npy/data.npy", .error = 0}},
	{.before = {{"rename", "data", "group/sub/deep", .error = 0}},
	 .request = {"rename", ".h5fs/npy/group/sub/deep.npy", ".h5fs/npy/empty/x.npy", .error = 0}},
};

static char pristine[512];

static void keep_pristine(void)
{
	snprintf(pristine, sizeof pristine, "%s/pristine.h5", scratch_folder());
	request_close();
	scratch_copy(scene.path, pristine);
	request_open(scene.path, true, NULL);
}

static void start_again(const struct failing *f)
{
	h5_vfs_close(scene.vfs);
	h5_file_set_close(scene.set);
	scratch_copy(pristine, scene.path);
	request_open(scene.path, true, NULL);
	for (unsigned i = 0; i < 3 && f->before[i].what; i++)
		ck_assert_int_eq(request_ask(&f->before[i]), 0);
	SUCCEEDS(h5_vfs_commit(scene.vfs));
}

/* Each allocation fails once, or each call to read: then the request has done all, or nothing. */
static void fail_each(const struct failing *f, bool reads)
{
	const struct request *r = &f->request;
	uint64_t before, after;
	unsigned long n = 0;
	bool failed = true;
	int rc;

	start_again(f);
	rc = request_ask(r);
	ck_assert_msg(rc == r->error, "%s %s: %s: %s", r->what, r->path, strerror(-rc),
		      h5_error_last()->text);
	after = request_digest();
	start_again(f);
	before = request_digest();
	while (failed) {
		ck_assert_uint_lt(++n, 10000);
		request_fault.n = n;
		request_fault.reads = reads;
		rc = request_ask(r);
		failed = request_fault.fired;
		if (rc && rc != r->error) {
			ck_assert_msg(failed && rc == (reads ? -EIO : -ENOMEM), "%s %s, %lu: %s", r->what,
				      r->path, n, strerror(-rc));
			ck_assert_msg(request_digest() == before,
				      "%s %s, %lu: it is neither done nor as before", r->what, r->path, n);
		} else {
			ck_assert_msg(rc == r->error, "%s %s, %lu: it has succeeded", r->what, r->path, n);
			/* What has failed may be done by the next commit. */
			if (request_digest() != after)
				SUCCEEDS(h5_vfs_commit(scene.vfs));
			ck_assert_msg(request_digest() == after, "%s %s, %lu: it is not done", r->what,
				      r->path, n);
			if (failed)
				start_again(f);
		}
	}
	ck_assert_msg(n > 1, "%s %s %s", r->what, r->path, r->second);
	request_close();
	request_open(scene.path, true, NULL);
	ck_assert_msg(request_digest() == after, "%s %s: the file has another state", r->what, r->path);
}

START_TEST(failures)
{
	keep_pristine();
	for (size_t i = 0; i < sizeof failing / sizeof *failing; i++)
		fail_each(&failing[i], _i);
}
END_TEST

/* If writes may gather nothing in memory, all is done as well. */
START_TEST(nothing_is_gathered)
{
	keep_pristine();
	for (size_t i = 0; i < sizeof failing / sizeof *failing; i++) {
		const struct request *r = &failing[i].request;
		uint64_t after;

		start_again(&failing[i]);
		ck_assert_int_eq(request_ask(r), r->error);
		after = request_digest();
		start_again(&failing[i]);
		scene.vfs->options.gather = 0;
		ck_assert_int_eq(request_ask(r), r->error);
		ck_assert_msg(request_digest() == after, "%s %s", r->what, r->path);
	}
}
END_TEST

static const struct failing packed = {
	.before = {{"mknod", "packed", .error = 0},
		   {"set", "packed", "h5fs.info",
		    "{\"dtype\":\"u1\",\"shape\":\"4000\",\"chunks\":\"1000\",\"filters\":\"deflate(1)\"}",
		    .error = 0}}};

/* What was written to a dataset goes to the file before a change, since there is too much of it in memory. If
 * that fails, the change comes all the same, and the loss is told where it belongs. False: there are not so
 * many allocations. */
static bool settle_and_fail(unsigned long n)
{
	struct h5_node *node, *root;
	struct h5_vfs_entry entry;
	struct h5_handle *handle;
	char bytes[4000] = "";
	uint64_t stale;
	size_t written, got;
	bool failed;
	int rc;

	start_again(&packed);
	root = h5_vfs_root(scene.vfs);
	node = request_find("packed");
	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, O_RDWR, &handle));
	SUCCEEDS(h5_vfs_write(handle, 10, "bytes", 5, H5_WRITE_AT, &written, &stale));
	scene.vfs->options.gather = 0;
	request_fault.n = n;
	request_fault.reads = false;
	request_fault_begin();
	rc = h5_vfs_mkdir(scene.vfs, root, "x", &entry);
	request_fault_end();
	failed = request_fault.fired;
	ck_assert(!rc || (failed && rc == -ENOMEM));
	if (!rc)
		h5_vfs_forget(scene.vfs, entry.node, 1);
	rc = request_ask(&(struct request){"mkdir", "x", .error = 0});
	ck_assert(!rc || rc == -EEXIST);
	rc = h5_vfs_fsync(handle);
	ck_assert(!rc || (failed && rc == -ENOMEM));
	SUCCEEDS(h5_vfs_read(handle, 0, bytes, sizeof bytes, &got));
	ck_assert_uint_eq(got, sizeof bytes);
	/* Either they are there, or this has been told. */
	ck_assert(!memcmp(bytes + 10, rc ? "\0\0\0\0\0" : "bytes", 5));
	SUCCEEDS(h5_vfs_fsync(handle));
	h5_vfs_close_file(handle);
	request_forget(node);
	return failed;
}

START_TEST(changes_while_others_are_lost)
{
	unsigned long n = 1;

	keep_pristine();
	while (settle_and_fail(n))
		n++;
	ck_assert_uint_gt(n, 20);
}
END_TEST

static unsigned kept; /* commits that have failed and left the file as it was */

/* The commit fails: all is as before the request, which can be done again. */
static void lose(const struct failing *f)
{
	const struct request *r = &f->request;
	uint64_t before, after;
	int rc;

	if (r->error || r->flags == EXCHANGE) /* which commits */
		return;
	start_again(f);
	ck_assert_int_eq(request_ask(r), 0);
	after = request_digest();
	start_again(f);
	before = request_digest();
	ck_assert_int_eq(request_ask(r), 0);
	if (request_digest() == before)
		return; /* it has only opened a file */
	fault_io_arm(&request_io, 1);
	rc = h5_vfs_commit(scene.vfs);
	if (!fault_io_disarm(&request_io))
		return; /* the request has committed, since its dataset has become shorter */
	ck_assert_int_eq(rc, -ENOSPC);
	if (!h5_tx_is_writable(scene.vfs->file))
		return; /* the next mount has to read the journal */
	ck_assert_msg(request_digest() == before, "%s %s: it is not lost", r->what, r->path);
	kept++;
	ck_assert_msg(!request_ask(r), "%s %s: it cannot be done again", r->what, r->path);
	ck_assert_msg(request_digest() == after, "%s %s: it is not done again", r->what, r->path);
	request_close();
	request_open(scene.path, true, NULL);
	ck_assert_msg(request_digest() == after, "%s %s: the file has another state", r->what, r->path);
}

START_TEST(losses)
{
	keep_pristine();
	for (size_t i = 0; i < sizeof failing / sizeof *failing; i++)
		lose(&failing[i]);
	ck_assert_uint_gt(kept, 20);
}
END_TEST

static bool has_help_name(void)
{
	struct h5_dir *dir;
	bool has = false;

	SUCCEEDS(h5_vfs_opendir(scene.vfs, h5_vfs_root(scene.vfs), &dir));
	for (size_t i = 0; i < h5_vfs_dir_count(dir); i++)
		has |= !strncmp(h5_vfs_dir_name(dir, i), ".h5fs-exchange", 14);
	h5_vfs_closedir(dir);
	return has;
}

/* An exchange commits, and with it what was written to another dataset, for which memory is short: whether it
 * is done or not, no name is left that it has made. False: there are not so many allocations. */
static bool exchange_and_fail(unsigned long n)
{
	struct h5_node *root, *node;
	struct h5_handle *handle;
	uint64_t stale;
	size_t written;
	bool failed;
	int rc;

	start_again(&packed);
	root = h5_vfs_root(scene.vfs);
	node = request_find("packed");
	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, O_WRONLY, &handle));
	SUCCEEDS(h5_vfs_write(handle, 10, "bytes", 5, H5_WRITE_AT, &written, &stale));
	request_fault.n = n;
	request_fault.reads = false;
	request_fault_begin();
	rc = h5_vfs_rename(scene.vfs, root, "data", root, "new", EXCHANGE);
	request_fault_end();
	failed = request_fault.fired;
	ck_assert(!rc || (failed && rc == -ENOMEM));
	(void)h5_vfs_fsync(handle); /* tells of the loss */
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	ck_assert_msg(!has_help_name(), "%lu: a help name is left", n);
	ck_assert_uint_eq(request_size("data"), rc ? sizeof request_elements : 0);
	ck_assert_uint_eq(request_size("new"), rc ? 0 : sizeof request_elements);
	h5_vfs_close_file(handle);
	request_forget(node);
	return failed;
}

START_TEST(exchanges_while_others_are_lost)
{
	unsigned long n = 1;

	keep_pristine();
	while (exchange_and_fail(n))
		n++;
	ck_assert_uint_gt(n, 20);
}
/* What a link leads to while calls fail: an error, or the target that it always has. */
static void look_up_and_fail(const char *name, const char *target, bool reads)
{
	unsigned long n = 0;
	bool failed = true;

	while (failed) {
		struct h5_vfs_entry entry;
		const char *text;
		int rc;

		ck_assert_uint_lt(++n, 1000);
		request_fault.n = n;
		request_fault.reads = reads;
		request_fault_begin();
		rc = h5_vfs_lookup(scene.vfs, h5_vfs_root(scene.vfs), name, &entry);
		request_fault_end();
		failed = request_fault.fired;
		ck_assert_msg(!rc || (failed && rc == (reads ? -EIO : -ENOMEM)), "%s, %lu: %s", name, n,
			      strerror(-rc));
		if (rc)
			continue;
		SUCCEEDS(h5_vfs_readlink(entry.node, &text));
		ck_assert_str_eq(text, target);
		h5_vfs_forget(scene.vfs, entry.node, 1);
	}
	ck_assert_uint_gt(n, 1);
}

START_TEST(targets_while_calls_fail)
{
	/* The second one could lead to what is in the root. */
	static const char *const links[][2] = {
		{"extlink:gone.h5//a/b", "extlink:gone.h5//a/b"},
		{"extlink:none.h5//../a", "extlink:none.h5/%2E%2E/a"},
		{"group/file", "group/file"},
	};

	ASK("mkdir", "extlink:none.h5");
	for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
		const struct request symlink = {"symlink", "odd", links[i][0], .error = 0};

		ck_assert_msg(!request_ask(&symlink), "%s: %s", links[i][0], h5_error_last()->text);
		SUCCEEDS(h5_vfs_commit(scene.vfs));
		look_up_and_fail("odd", links[i][1], _i);
		ASK("unlink", "odd");
	}
}
END_TEST

int main(void)
{
	const struct unit_test tests[] = {{failures, 2},
					  {nothing_is_gathered, 1},
					  {losses, 1},
					  {changes_while_others_are_lost, 1},
					  {exchanges_while_others_are_lost, 1},
					  {targets_while_calls_fail, 2}};

	return unit_run("request_faults", request_begin, request_end, tests, sizeof tests / sizeof *tests);
}
