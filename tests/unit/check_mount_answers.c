/* What a mount answers: contents that are being written, lists of names and of attributes, what stat() tells.
 */
#include "base/error.h"
#include "change/object_header_create.h"
#include "change/object_header_insert.h"
#include "change/transaction.h"
#include "fault_alloc.h"
#include "object/group_write.h"
#include "request_scene.h"
#include "vfs/growth.h"
#include "vfs/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

static struct h5_handle *open_at(const char *path, int flags)
{
	struct h5_node *node = request_find(path);
	struct h5_handle *handle;

	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, flags, &handle));
	request_forget(node);
	return handle;
}

static size_t get(const char *path, const char *name, char value[64])
{
	struct h5_node *node = request_find(path);
	struct h5_buf buf;
	size_t n;

	h5_buf_init(&buf, 64);
	SUCCEEDS(h5_vfs_getxattr(scene.vfs, node, name, &buf));
	n = buf.size;
	memcpy(value, buf.data, n);
	value[n] = 0;
	h5_buf_release(&buf);
	request_forget(node);
	return n;
}

/* ---- open files ---- */

static void write_at(struct h5_handle *handle, uint64_t offset, const char *text, enum h5_write_where where)
{
	uint64_t stale;
	size_t written;

	SUCCEEDS(h5_vfs_write(handle, offset, text, strlen(text), where, &written, &stale));
	ck_assert_uint_eq(written, strlen(text));
}

static void check_read(struct h5_handle *handle, const char *expected)
{
	char bytes[64];
	size_t got;

	SUCCEEDS(h5_vfs_read(handle, 0, bytes, sizeof bytes, &got));
	ck_assert_uint_eq(got, strlen(expected));
	ck_assert(!memcmp(bytes, expected, got));
}

static void check_seek(struct h5_handle *handle, uint64_t offset, bool hole, int rc, uint64_t expected)
{
	uint64_t found;

	ck_assert_int_eq(h5_vfs_seek(handle, offset, hole, &found), rc);
	if (!rc)
		ck_assert_uint_eq(found, expected);
}

/* A dataset that keeps its size gets new contents, which are whole when it is closed. Bytes of mapped pages
 * are only those that the file has. */
START_TEST(new_contents)
{
	struct h5_handle *handle = open_at("fixed", O_RDWR | O_TRUNC);

	write_at(handle, 0, "12345678", H5_WRITE_INSIDE);
	check_read(handle, "");
	write_at(handle, 0, "abcdefgh", H5_WRITE_AT);
	write_at(handle, 4, "ABCDEFGH", H5_WRITE_INSIDE);
	write_at(handle, 8, "ABCDEFGH", H5_WRITE_INSIDE);
	check_read(handle, "abcdABCD");
	write_at(handle, 1, "ijkl", H5_WRITE_APPEND);
	check_read(handle, "abcdABCDijkl");
	write_at(handle, 6, "xy", H5_WRITE_INSIDE);
	check_read(handle, "abcdABxyijkl");
	check_seek(handle, 3, false, 0, 3);
	check_seek(handle, 3, true, 0, 12);
	check_seek(handle, 12, false, -ENXIO, 0);
	check_seek(handle, 12, true, -ENXIO, 0);
	ck_assert_int_eq(h5_vfs_fallocate(handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4),
			 -EOPNOTSUPP);
	ck_assert_int_eq(h5_vfs_flush(handle), -EINVAL);
	request_check_bytes("fixed", request_elements, sizeof request_elements);
	write_at(handle, 12, "mnopqrstuvwx", H5_WRITE_AT);
	SUCCEEDS(h5_vfs_flush(handle));
	request_check_bytes("fixed", "abcdABxyijklmnopqrstuvwx", 24);
	/* From now on it writes what is there. */
	write_at(handle, 22, "1234", H5_WRITE_INSIDE);
	write_at(handle, 24, "1234", H5_WRITE_INSIDE);
	h5_vfs_close_file(handle);
	request_check_bytes("fixed", "abcdABxyijklmnopqrstuv12", 24);
}
END_TEST

/* The last line is none, and nobody hears of that: the old contents stay. */
START_TEST(new_text_that_is_not_whole)
{
	struct h5_handle *handle = open_at(".h5fs/lines/data", O_WRONLY | O_TRUNC);

	write_at(handle, 0, "7\nx", H5_WRITE_AT);
	h5_vfs_close_file(handle);
	request_check_bytes("data", request_elements, sizeof request_elements);
	handle = open_at(".h5fs/lines/data", O_WRONLY | O_TRUNC);
	write_at(handle, 0, "7\n8", H5_WRITE_AT);
	h5_vfs_close_file(handle);
	request_check_bytes("data", (const int32_t[]){7, 8}, 8);
}
END_TEST

START_TEST(mapped_pages_and_holes)
{
	const int punches = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	struct h5_handle *handle = open_at("data", O_RDWR);
	char expected[24];

	memcpy(expected, request_elements, 24);
	write_at(handle, 20, "12345678", H5_WRITE_INSIDE);
	memcpy(expected + 20, "1234", 4);
	request_check_bytes("data", expected, 24);
	ck_assert_int_eq(h5_vfs_fallocate(handle, FALLOC_FL_PUNCH_HOLE, 0, 4), -EOPNOTSUPP);
	ck_assert_int_eq(h5_vfs_fallocate(handle, 0, 0, 4), -EOPNOTSUPP);
	ck_assert_int_eq(h5_vfs_fallocate(handle, punches, 24, 4), 0);
	ck_assert_int_eq(h5_vfs_fallocate(handle, punches, 23, UINT64_MAX), 0);
	expected[23] = 0;
	ck_assert_int_eq(h5_vfs_fallocate(handle, punches, 4, 2), 0);
	memset(expected + 4, 0, 2);
	request_check_bytes("data", expected, 24);
	h5_vfs_close_file(handle);
}
END_TEST

/* Without O_EXCL, what another request has made meanwhile is opened. */
START_TEST(files_that_are_there)
{
	static const char *const paths[][2] = {
		{"", "data"}, {".h5fs/npy", "data.npy"}, {".h5fs/attrs/data", "text"}};
	const uint64_t before = request_digest();

	for (unsigned i = 0; i < 3; i++) {
		struct h5_node *directory = request_find(paths[i][0]), *node;
		struct h5_handle *handle;
		struct h5_vfs_entry entry;
		char path[64];

		SUCCEEDS(h5_vfs_create(scene.vfs, directory, paths[i][1], O_WRONLY, &entry, &handle));
		snprintf(path, sizeof path, "%s%s%s", paths[i][0], i ? "/" : "", paths[i][1]);
		node = request_find(path);
		ck_assert_ptr_eq(node, entry.node);
		ck_assert_ptr_eq(h5_vfs_handle_node(handle), node);
		request_forget(node);
		h5_vfs_close_file(handle);
		h5_vfs_forget(scene.vfs, entry.node, 1);
		request_forget(directory);
	}
	ck_assert_uint_eq(request_digest(), before);
}
END_TEST

static off_t size_of_file(void)
{
	struct stat st;

	SUCCEEDS(h5_vfs_commit(scene.vfs));
	ck_assert_int_eq(stat(scene.path, &st), 0);
	return st.st_size;
}

/* The file of a view that never becomes whole leaves nothing behind: its space is used again. */
START_TEST(files_that_do_not_become_whole)
{
	static char npy[40000];
	struct h5_node *directory = request_find(".h5fs/npy");
	off_t size = 0;

	memcpy(npy, request_npy, 128);
	memcpy(memmem(npy, 128, "(3,), }         ", 16), "(1000000,), }   ", 16);
	for (unsigned i = 0; i < 20; i++) {
		struct h5_handle *handle;
		struct h5_vfs_entry entry;
		uint64_t stale;
		size_t written;

		SUCCEEDS(h5_vfs_create(scene.vfs, directory, "x.npy", O_WRONLY, &entry, &handle));
		/* The name may go at any time, so the kernel does not keep it. */
		ck_assert(entry.passing);
		SUCCEEDS(h5_vfs_write(handle, 0, npy, sizeof npy, H5_WRITE_AT, &written, &stale));
		ck_assert_uint_eq(written, sizeof npy);
		ck_assert_int_eq(h5_vfs_flush(handle), -EINVAL);
		h5_vfs_close_file(handle);
		h5_vfs_forget(scene.vfs, entry.node, 1);
		if (i == 3)
			size = size_of_file();
	}
	ck_assert_int_le(size_of_file(), size);
	request_forget(directory);
}
END_TEST

/* True: the flush has committed what other requests have changed. */
static bool flush_commits(struct h5_handle *handle)
{
	bool commits;

	ASK("mkdir", "x");
	SUCCEEDS(h5_vfs_flush(handle));
	commits = !h5_tx_is_new(scene.vfs->file, request_address("x"));
	ASK("rmdir", "x");
	return commits;
}

/* The end of a file commits only what was changed through this handle since the last commit. */
START_TEST(a_flush_commits_once)
{
	const int punches = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	struct h5_handle *handle = open_at("data", O_RDWR), *other = open_at("data", O_RDWR);
	struct h5_node *data = request_find("data"), *fixed = request_find("fixed");
	uint64_t stale;

	scene.vfs->options.commit_at_close = true;
	ck_assert(!flush_commits(handle));
	write_at(handle, 0, "abcd", H5_WRITE_AT);
	ck_assert(!flush_commits(other));
	ck_assert(flush_commits(handle));
	ck_assert(!flush_commits(handle));
	SUCCEEDS(h5_vfs_fallocate(handle, punches, 4, 4));
	ck_assert(flush_commits(handle));
	ck_assert(!flush_commits(handle));
	SUCCEEDS(h5_vfs_truncate(scene.vfs, data, handle, 16, &stale));
	ck_assert(!flush_commits(other));
	ck_assert(flush_commits(handle));
	SUCCEEDS(h5_vfs_truncate(scene.vfs, data, NULL, 12, &stale));
	ck_assert(!flush_commits(handle));
	write_at(handle, 0, "abcd", H5_WRITE_AT);
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	ck_assert(!flush_commits(handle));
	h5_vfs_close_file(other);
	h5_vfs_close_file(handle);
	handle = open_at("data", O_WRONLY | O_TRUNC);
	ck_assert(flush_commits(handle));
	h5_vfs_close_file(handle);
	/* Its size stays, so it gets new contents. */
	handle = open_at("fixed", O_RDWR);
	SUCCEEDS(h5_vfs_truncate(scene.vfs, fixed, handle, 0, &stale));
	write_at(handle, 0, "abcdefghijklmnopqrstuvwx", H5_WRITE_AT);
	ck_assert(flush_commits(handle));
	ck_assert(!flush_commits(handle));
	h5_vfs_close_file(handle);
	request_check_bytes("fixed", "abcdefghijklmnopqrstuvwx", 24);
	request_forget(fixed);
	request_forget(data);
}
END_TEST

/* Closing a handle commits what was written through it, even if a later request of the handle to write new
 * text has failed. */
START_TEST(a_flush_commits_what_stays)
{
	struct h5_handle *handle;
	struct h5_node *node;
	unsigned refused = 0;
	bool failed = true;

	ASK("set", "new", "h5fs.info", "{\"dtype\":\"vlen str\",\"shape\":\"0\",\"maxshape\":\"inf\"}");
	scene.vfs->options.commit_at_close = true;
	node = request_find("new");
	for (unsigned long n = 1; failed; n++) {
		uint64_t stale;
		int rc;

		request_write("new", O_WRONLY | O_TRUNC, "one\n", 4);
		handle = open_at("new", O_WRONLY);
		write_at(handle, 0, "two\n", H5_WRITE_APPEND);
		fault_alloc_arm(n);
		fault_alloc_count(true);
		rc = h5_vfs_truncate(scene.vfs, node, handle, 0, &stale);
		fault_alloc_count(false);
		failed = fault_alloc_disarm();
		ck_assert(!rc || (failed && rc == -ENOMEM));
		if (rc) {
			refused++;
			ck_assert(flush_commits(handle));
			request_check_bytes("new", "one\ntwo\n", 8);
		}
		h5_vfs_close_file(handle);
	}
	ck_assert_uint_gt(refused, 0);
	request_check_bytes("new", "", 0);
	request_forget(node);
}
END_TEST

static uint64_t stale_after_write(struct h5_handle *handle, uint64_t offset, const char *text)
{
	uint64_t stale;
	size_t written;

	SUCCEEDS(h5_vfs_write(handle, offset, text, strlen(text), H5_WRITE_AT, &written, &stale));
	ck_assert_uint_eq(written, strlen(text));
	if (stale != H5_NOT_STALE)
		h5_vfs_tell_size(scene.vfs, h5_vfs_handle_node(handle));
	return stale;
}

static uint64_t stale_after_truncate(struct h5_handle *handle, uint64_t size)
{
	struct h5_node *node = h5_vfs_handle_node(handle);
	uint64_t stale;

	SUCCEEDS(h5_vfs_truncate(scene.vfs, node, handle, size, &stale));
	if (stale != H5_NOT_STALE)
		h5_vfs_tell_size(scene.vfs, node);
	return stale;
}

/* From where on the kernel has to drop what it has of a file that grows while another handle reads it. Of one
 * that can be mapped to be written, a write tells it, but not a truncation. */
START_TEST(sizes_that_are_stale)
{
	struct h5_handle *handle = open_at("data", O_WRONLY), *other;

	ck_assert_uint_eq(stale_after_write(handle, 24, "abcd"), H5_NOT_STALE);
	other = open_at("data", O_RDWR);
	ck_assert_uint_eq(stale_after_write(handle, 28, "abcd"), 28);
	ck_assert_uint_eq(stale_after_write(handle, 40, "abcd"), 32);
	ck_assert_uint_eq(stale_after_write(handle, 4, "abcd"), H5_NOT_STALE);
	ck_assert_uint_eq(stale_after_truncate(handle, 48), H5_NOT_STALE);
	h5_vfs_close_file(other);
	other = open_at("data", O_RDONLY);
	ck_assert_uint_eq(stale_after_truncate(handle, 52), 48);
	ck_assert_uint_eq(stale_after_truncate(handle, 52), H5_NOT_STALE);
	ck_assert_uint_eq(stale_after_truncate(handle, 48), H5_NOT_STALE);
	ck_assert_uint_eq(stale_after_write(handle, 48, "abcd"), 48);
	h5_vfs_close_file(other);
	ck_assert_uint_eq(stale_after_truncate(handle, 64), H5_NOT_STALE);
	h5_vfs_close_file(handle);
	/* text */
	ASK("set", "new", "h5fs.info", "{\"dtype\":\"vlen str\",\"shape\":\"0\"}");
	handle = open_at("new", O_WRONLY);
	ck_assert_uint_eq(stale_after_write(handle, 0, "one\n"), H5_NOT_STALE);
	other = open_at("new", O_RDWR);
	ck_assert_uint_eq(stale_after_write(handle, 4, "two\n"), 4);
	h5_vfs_close_file(other);
	h5_vfs_close_file(handle);
	request_check_bytes("new", "one\ntwo\n", 8);
}
END_TEST

static bool opens_direct(int flags)
{
	struct h5_handle *handle = open_at("data", flags);
	const bool direct = h5_vfs_is_direct(handle);

	h5_vfs_close_file(handle);
	return direct;
}

/* A file that is written is read without the kernel's pages; so is any file, if the kernel can map it all the
 * same. */
START_TEST(files_that_are_read_directly)
{
	struct h5_handle *handle;

	ck_assert(opens_direct(O_WRONLY));
	ck_assert(!opens_direct(O_RDONLY));
	ck_assert(!opens_direct(O_RDWR));
	handle = open_at("data", O_WRONLY);
	ck_assert(opens_direct(O_RDONLY));
	ck_assert(opens_direct(O_RDWR));
	h5_vfs_close_file(handle);
	ck_assert(!opens_direct(O_RDONLY));
	h5_vfs_set_maps_direct(scene.vfs);
	ck_assert(opens_direct(O_RDONLY));
	ck_assert(opens_direct(O_RDWR));
}
END_TEST

/* What a handle has begun to write is not declared to be something else. */
START_TEST(declared_while_it_is_written)
{
	static const struct request declares = {"set", "new", "h5fs.dtype", "<f8", .error = -EBUSY};
	struct h5_handle *idle, *handle;

	ASK("set", "new", "h5fs.info", "{\"dtype\":\"<i4\",\"shape\":\"0\"}");
	idle = open_at("new", O_RDONLY);
	handle = open_at("new", O_WRONLY);
	write_at(handle, 0, "ab", H5_WRITE_AT); /* a part of a row */
	ck_assert_int_eq(request_ask(&declares), -EBUSY);
	ck_assert_str_eq(h5_error_last()->text, "it has data");
	write_at(handle, 2, "cd", H5_WRITE_AT);
	h5_vfs_close_file(handle);
	request_check_bytes("new", "abcd", 4);
	ASK("create", "more", .flags = O_WRONLY, .value = "");
	ASK("set", "more", "h5fs.info",
	    "{\"dtype\":\"<i4\",\"shape\":\"2\",\"maxshape\":\"2\",\"fill\":\"7\"}");
	h5_vfs_close_file(idle);
	idle = open_at("more", O_RDONLY);
	handle = open_at("more", O_WRONLY | O_TRUNC);
	ck_assert_int_eq(request_ask(&(struct request){"set", "more", "h5fs.dtype", "<f8", .error = 0}),
			 -EBUSY);
	write_at(handle, 0, "abcdefgh", H5_WRITE_AT);
	SUCCEEDS(h5_vfs_flush(handle));
	h5_vfs_close_file(handle);
	h5_vfs_close_file(idle);
	request_check_bytes("more", "abcdefgh", 8);
}
END_TEST

/* Without memory for the object, nothing is told of it. */
START_TEST(stat_while_memory_is_short)
{
	static const struct {
		const char *path;
		off_t size;
	} cases[] = {{"group", 3}, {"data", 24}, {".h5fs/npy/data.npy", 128 + 24}, {".h5fs/attrs/data", 0}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_node *node = request_find(cases[i].path);
		bool failed = true;

		SUCCEEDS(h5_vfs_commit(scene.vfs));
		for (unsigned long n = 1; failed; n++) {
			struct stat st;
			int rc;

			vfs_scene_empty_caches(&scene);
			fault_alloc_arm(n);
			fault_alloc_count(true);
			rc = h5_vfs_getattr(scene.vfs, node, &st);
			fault_alloc_count(false);
			failed = fault_alloc_disarm();
			ck_assert_msg(rc ? failed && rc == -ENOMEM : st.st_size == cases[i].size,
				      "%s: allocation %lu: %s", cases[i].path, n, strerror(-rc));
			ck_assert(rc || !S_ISREG(st.st_mode) || st.st_nlink == 1);
		}
		request_forget(node);
	}
}
END_TEST

/* ---- objects ---- */

/* An object of no kind that is known is damaged; requests that change objects say so. */
START_TEST(an_object_of_no_kind)
{
	const struct h5_new_message comment = {.type = H5_MSG_COMMENT, .body = "odd", .size = 4};
	struct h5_link link = {.type = H5_LINK_HARD, .name = "odd", .name_size = 3};
	struct h5_file *file = scene.vfs->file;
	static const struct request refused[] = {
		{"set", "odd", "h5fs.shape", "4", .error = -EUCLEAN},
		{"link", "x", "odd", .error = -EUCLEAN},
		{"truncate", "odd", .size = 4, .error = -EUCLEAN},
		{"open", "odd", .flags = O_WRONLY, .error = -EUCLEAN},
		{"open", "odd", .flags = O_RDONLY, .error = -EUCLEAN},
	};

	h5_unit_begin(file);
	SUCCEEDS(h5_unit_end(file,
			     h5_header_create(file, &comment, 1, &(struct h5_new_header){0}, &link.address)));
	h5_unit_begin(file);
	SUCCEEDS(h5_unit_end(file, h5_group_insert(file, h5_file_superblock(file)->root, &link)));
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		ck_assert_msg(request_ask(&refused[i]) == refused[i].error, "%s %s: %s", refused[i].what,
			      refused[i].path, h5_error_last()->text);
	ck_assert_int_eq(h5_vfs_check_object(file, h5_file_superblock(file)->root), 0);
	ck_assert_int_eq(h5_vfs_check_object(file, request_address("data")), 0);
	ck_assert_int_eq(h5_vfs_check_object(file, 3), -EUCLEAN);
}
END_TEST

/* ---- lists of attributes ---- */

static size_t list(const char *path)
{
	struct h5_node *node = request_find(path);
	struct h5_buf names;
	size_t n;

	h5_buf_init(&names, 1 << 17);
	SUCCEEDS(h5_vfs_listxattr(scene.vfs, node, &names));
	n = names.size;
	h5_buf_release(&names);
	request_forget(node);
	return n;
}

/* A list has no more than 65,535 bytes. */
START_TEST(the_longest_list)
{
	struct h5_node *node = request_find("new");
	char name[300], value[65];

	for (unsigned i = 0; i < 256; i++) {
		snprintf(name, sizeof name, "user.%03u%0*d", i, i < 255 ? 247 : 246, 0);
		SUCCEEDS(h5_vfs_setxattr(scene.vfs, node, name, "5", 1, 0));
	}
	ck_assert_uint_eq(list("new"), 65535);
	get("new", "h5fs.unlisted", value);
	ck_assert_str_eq(value, "0");
	SUCCEEDS(h5_vfs_setxattr(scene.vfs, node, "user.z", "7", 1, 0));
	ck_assert_uint_eq(list("new"), 65535);
	get("new", "h5fs.unlisted", value);
	ck_assert_str_eq(value, "1");
	get("new", "user.z", value);
	ck_assert_str_eq(value, "7");
	request_forget(node);
}
END_TEST

/* ---- what stat() and look-ups tell ---- */

START_TEST(modes_and_sizes)
{
	static const struct {
		const char *path;
		mode_t mode;
		off_t size; /* -1: any */
		nlink_t links;
		blkcnt_t blocks;
	} cases[] = {
		{"", S_IFDIR | 0705, 10, 1, 0},
		{"group", S_IFDIR | 0705, 3, 1, 0},
		{"empty", S_IFDIR | 0705, 0, 1, 0},
		{"outside", S_IFDIR | 0705, 2, 1, 0},
		{"group/file", S_IFREG | 0640, 10, 2, 1},
		{"data", S_IFREG | 0640, 24, 1, 1},
		{"new", S_IFREG | 0640, 0, 1, 0},
		{"far", S_IFREG | 0440, 0, 1, 0},
		{"soft", S_IFLNK | 0777, 10, 1, 0},
		{".h5fs", S_IFDIR | 0505, 0, 1, 0},
		{".h5fs/csv", S_IFDIR | 0705, 10, 1, 0},
		{".h5fs/json", S_IFDIR | 0505, 10, 1, 0},
		{"declared", S_IFREG | 0640, 48, 1, 1}, /* of which nothing is stored */
		{".h5fs/npy/data.npy", S_IFREG | 0640, 128 + 24, 1, 1},
		{".h5fs/npy/far.npy", S_IFREG | 0440, -1, 1, -1},
		{".h5fs/npy/outside/file.npy", S_IFREG | 0440, -1, 1, -1},
		{".h5fs/lines/data", S_IFREG | 0640, 15, 1, 1},
		{".h5fs/json/data.json", S_IFREG | 0440, -1, 1, -1},
		{".h5fs/attrs/data/text", S_IFREG | 0640, 5, 1, 1},
	};

	ASK("set", "declared", "h5fs.shape", "3,4");
	scene.vfs->options.uid = 1234;
	scene.vfs->options.gid = 5678;
	scene.vfs->options.fmask = 0004;
	scene.vfs->options.dmask = 0070;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct h5_node *node = request_find(cases[i].path);
		struct stat st;

		SUCCEEDS(h5_vfs_getattr(scene.vfs, node, &st));
		ck_assert_msg(st.st_mode == cases[i].mode, "%s: %o", cases[i].path, st.st_mode);
		ck_assert_msg(cases[i].size < 0 || st.st_size == cases[i].size, "%s: %jd bytes",
			      cases[i].path, (intmax_t)st.st_size);
		ck_assert_msg(st.st_nlink == cases[i].links, "%s: %ju links", cases[i].path,
			      (uintmax_t)st.st_nlink);
		ck_assert_msg(cases[i].blocks < 0 || st.st_blocks == cases[i].blocks, "%s: %jd blocks",
			      cases[i].path, (intmax_t)st.st_blocks);
		ck_assert(st.st_uid == 1234 && st.st_gid == 5678 && st.st_blksize == 1 << 17);
		request_forget(node);
	}
}
END_TEST

/* A page of a table of three dimensions is a file of the view that takes tables, but takes nothing itself. */
START_TEST(pages_are_only_read)
{
	struct h5_node *directory, *page;
	struct h5_handle *handle;
	struct h5_dir *dir;
	char path[300];
	struct stat st;

	ASK("set", "declared", "h5fs.shape", "2,2,2");
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	directory = request_find(".h5fs/csv/declared");
	SUCCEEDS(h5_vfs_opendir(scene.vfs, directory, &dir));
	ck_assert_uint_eq(h5_vfs_dir_count(dir), 2);
	snprintf(path, sizeof path, ".h5fs/csv/declared/%s", h5_vfs_dir_name(dir, 0));
	h5_vfs_closedir(dir);
	request_forget(directory);
	page = request_find(path);
	SUCCEEDS(h5_vfs_getattr(scene.vfs, page, &st));
	ck_assert_uint_eq(st.st_mode, S_IFREG | 0444);
	ck_assert_int_eq(h5_vfs_open_file(scene.vfs, page, O_WRONLY, &handle), -EPERM);
	ck_assert_int_eq(h5_vfs_open_file(scene.vfs, page, O_WRONLY | O_TRUNC, &handle), -EPERM);
	request_forget(page);
}
END_TEST

static struct h5_vfs_entry look_up(const char *directory, const char *name)
{
	struct h5_node *parent = request_find(directory);
	struct h5_vfs_entry entry;

	SUCCEEDS(h5_vfs_lookup(scene.vfs, parent, name, &entry));
	request_forget(parent);
	return entry;
}

/* A size that takes work is found by stat() alone, and known from then on, until something changes. */
START_TEST(sizes_that_are_known)
{
	struct h5_vfs_entry entry = look_up(".h5fs/json", "data.json"), other;
	struct stat st;

	ck_assert(!entry.size_known);
	SUCCEEDS(h5_vfs_getattr(scene.vfs, entry.node, &st));
	other = look_up(".h5fs/json", "data.json");
	ck_assert(other.size_known);
	ck_assert_int_eq(other.st.st_size, st.st_size);
	h5_vfs_forget(scene.vfs, other.node, 1);
	ASK("set", "fixed", "user.number", "6");
	other = look_up(".h5fs/json", "data.json");
	ck_assert(!other.size_known);
	h5_vfs_forget(scene.vfs, other.node, 1);
	h5_vfs_forget(scene.vfs, entry.node, 1);
	entry = look_up("", "data");
	ck_assert(entry.size_known && !entry.made);
	ck_assert_int_eq(entry.st.st_size, 24);
	h5_vfs_forget(scene.vfs, entry.node, 1);
	entry = look_up("", "group");
	ck_assert(entry.size_known);
	h5_vfs_forget(scene.vfs, entry.node, 1);
	entry = look_up("", "soft");
	ck_assert(entry.size_known);
	h5_vfs_forget(scene.vfs, entry.node, 1);
}
END_TEST

/* Which names the kernel must not keep. */
START_TEST(names_that_pass)
{
	static const struct {
		const char *directory, *name;
		bool passing;
	} cases[] = {
		{"", "data", false},	     {"group", "sub", false}, {"", "soft", true},
		{".h5fs", "npy", true},	     {"", ".h5fs", true},     {".h5fs/npy", "data.npy", true},
		{"outside", "below", false},
	};
	struct h5_vfs_entry entry;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		entry = look_up(cases[i].directory, cases[i].name);
		ck_assert_msg(entry.passing == cases[i].passing, "%s", cases[i].name);
		h5_vfs_forget(scene.vfs, entry.node, 1);
	}
	SUCCEEDS(h5_vfs_mkdir(scene.vfs, scene.vfs->root, "x", &entry));
	ck_assert(entry.made && !entry.passing && !entry.size_known);
	h5_vfs_forget(scene.vfs, entry.node, 1);
}
END_TEST

/* ---- contents that are found only when they are read ---- */

/* The size is that of the whole picture, of which stat() decodes nothing. */
START_TEST(pictures)
{
	static const uint8_t pixels[6] = {0, 50, 100, 150, 200, 250};
	static const char head[] = "\x89PNG\r\n\x1a\n", end[] = "IEND\xae\x42\x60\x82";
	struct h5_handle *handle;
	char bytes[1000];
	struct stat st;
	size_t got;

	ASK("mknod", "picture");
	ASK("set", "picture", "h5fs.info", "{\"dtype\":\"|u1\",\"shape\":\"2,3\",\"maxshape\":\"2,3\"}");
	request_write("picture", O_WRONLY, pixels, sizeof pixels);
	handle = open_at(".h5fs/png/picture.png", O_RDONLY);
	SUCCEEDS(h5_vfs_getattr(scene.vfs, h5_vfs_handle_node(handle), &st));
	SUCCEEDS(h5_vfs_read(handle, 0, bytes, sizeof bytes, &got));
	ck_assert_int_eq((off_t)got, st.st_size);
	ck_assert(got < sizeof bytes && !memcmp(bytes, head, 8) && !memcmp(bytes + got - 8, end, 8));
	h5_vfs_close_file(handle);
}
END_TEST

/* Filters that nobody knows. The size is known all the same; opening the file tells. */
START_TEST(a_dataset_that_cannot_be_read)
{
	static const uint8_t bad[] = {9, 1};
	const struct h5_new_message message = {.type = H5_MSG_PIPELINE, .body = bad, .size = sizeof bad};
	struct h5_file *file = scene.vfs->file;
	const uint64_t address = request_address("fixed");
	struct h5_handle *handle;
	struct h5_node *node;
	struct stat st;

	h5_unit_begin(file);
	SUCCEEDS(h5_unit_end(file, h5_header_insert(file, address, &message)));
	request_close();
	request_open(scene.path, false, NULL);
	node = request_find("fixed");
	SUCCEEDS(h5_vfs_getattr(scene.vfs, node, &st));
	ck_assert(st.st_mode == (S_IFREG | 0444) && st.st_size == 24 && st.st_blocks == 1);
	ck_assert_int_eq(h5_vfs_open_file(scene.vfs, node, O_RDONLY, &handle), -ENOTSUP);
	request_forget(node);
}
END_TEST

/* ---- directories ---- */

/* The name that comes at the position, and the position after it. False: there are no more. */
static bool name_at(struct h5_dir *dir, uint64_t *position, char name[256])
{
	size_t first;

	SUCCEEDS(h5_vfs_dir_go(dir, *position, &first));
	if (first == h5_vfs_dir_count(dir))
		return false;
	snprintf(name, 256, "%s", h5_vfs_dir_name(dir, first));
	ck_assert_uint_gt(h5_vfs_dir_next(dir, first), *position);
	*position = h5_vfs_dir_next(dir, first);
	return true;
}

/* A directory with any number of entries has few of them in memory. A position leads to the same entry at any
 * time. */
START_TEST(long_directories)
{
	enum { PICTURES = 2500, AT_ONCE = 1024 };
	static uint64_t positions[PICTURES + 1];
	struct h5_vfs_entry entries[3];
	char name[256], expected[32];
	struct h5_node *node;
	struct h5_dir *dir;
	size_t got, first;

	ASK("mknod", "stack");
	ASK("set", "stack", "h5fs.shape", "2500,2,2");
	node = request_find(".h5fs/png/stack");
	SUCCEEDS(h5_vfs_opendir(scene.vfs, node, &dir));
	for (unsigned i = 0; i < PICTURES; i++) {
		positions[i + 1] = positions[i];
		ck_assert(name_at(dir, &positions[i + 1], name));
		snprintf(expected, sizeof expected, "%04u.png", i);
		ck_assert_str_eq(name, expected);
		ck_assert_uint_le(h5_vfs_dir_count(dir), AT_ONCE);
	}
	ck_assert(!name_at(dir, &positions[PICTURES], name));
	for (unsigned i = 0; i < PICTURES; i += i % 3 ? 611 : 500) {
		uint64_t position = positions[PICTURES - 1 - i];

		ck_assert(name_at(dir, &position, name));
		snprintf(expected, sizeof expected, "%04u.png", PICTURES - 1 - i);
		ck_assert_str_eq(name, expected);
		SUCCEEDS(h5_vfs_dir_go(dir, positions[PICTURES - 1 - i], &first));
		SUCCEEDS(h5_vfs_dir_read(dir, first, 1, true, entries, &got));
		ck_assert_uint_eq(got, 1);
		ck_assert(S_ISREG(entries[0].st.st_mode));
		h5_vfs_forget(scene.vfs, entries[0].node, 1);
	}
	SUCCEEDS(h5_vfs_dir_rewind(dir));
	ck_assert_uint_eq(h5_vfs_dir_count(dir), AT_ONCE);
	ck_assert_str_eq(h5_vfs_dir_name(dir, 0), "0000.png");
	ck_assert_int_eq(h5_vfs_dir_error(dir), 0);
	h5_vfs_closedir(dir);
	request_forget(node);
}
END_TEST

/* The list of another directory is made once, and again only if names have changed since. */
START_TEST(lists_that_are_read_again)
{
	struct h5_node *group = request_find("group");
	struct h5_dir *dir;
	size_t first;

	SUCCEEDS(h5_vfs_opendir(scene.vfs, group, &dir));
	ck_assert_uint_eq(h5_vfs_dir_count(dir), 3);
	ck_assert_uint_eq(h5_vfs_dir_self(dir), group->ino);
	ck_assert_uint_eq(h5_vfs_dir_parent(dir), scene.vfs->root->ino);
	SUCCEEDS(h5_vfs_dir_go(dir, 2, &first));
	ck_assert_uint_eq(first, 2);
	ck_assert_uint_eq(h5_vfs_dir_next(dir, 2), 3);
	SUCCEEDS(h5_vfs_dir_go(dir, 3, &first));
	ck_assert_uint_eq(first, 3);
	SUCCEEDS(h5_vfs_dir_go(dir, 4, &first));
	ck_assert_uint_eq(first, 3);
	ASK("unlink", "group/again");
	ck_assert_uint_eq(h5_vfs_dir_count(dir), 3);
	SUCCEEDS(h5_vfs_dir_rewind(dir));
	ck_assert_uint_eq(h5_vfs_dir_count(dir), 2);
	ASK("set", "data", "user.number", "6"); /* which is no name */
	SUCCEEDS(h5_vfs_dir_rewind(dir));
	ck_assert_uint_eq(h5_vfs_dir_count(dir), 2);
	h5_vfs_closedir(dir);
	SUCCEEDS(h5_vfs_opendir(scene.vfs, scene.vfs->root, &dir));
	ck_assert_uint_eq(h5_vfs_dir_parent(dir), scene.vfs->root->ino);
	h5_vfs_closedir(dir);
	request_forget(group);
}
END_TEST

/* ---- the file system ---- */

START_TEST(blocks)
{
	struct statvfs st, below;
	struct stat file;
	int fd;

	ck_assert_int_eq(h5_vfs_statfs(scene.vfs, &st), -EBADF);
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	fd = open(scratch_folder(), O_RDONLY | O_DIRECTORY);
	scene.vfs->options.file_fd = fd;
	SUCCEEDS(h5_vfs_statfs(scene.vfs, &st));
	ck_assert_int_eq(fstatvfs(fd, &below), 0);
	ck_assert_int_eq(stat(scene.path, &file), 0);
	ck_assert_uint_eq(st.f_bsize, 1 << 17);
	ck_assert_uint_eq(st.f_frsize, 512);
	ck_assert_uint_eq(st.f_namemax, 255);
	ck_assert_uint_eq(st.f_blocks - st.f_bfree, ((uint64_t)file.st_size + 511) / 512);
	ck_assert(st.f_bfree >= st.f_bavail && st.f_bfree % (below.f_frsize / 512) == 0);
	close(fd);
}
END_TEST

UNIT_MAIN_AROUND("mount_answers", request_begin, request_end, new_contents, new_text_that_is_not_whole,
		 mapped_pages_and_holes, files_that_are_there, files_that_do_not_become_whole,
		 a_flush_commits_once, a_flush_commits_what_stays, sizes_that_are_stale,
		 files_that_are_read_directly, declared_while_it_is_written, stat_while_memory_is_short,
		 an_object_of_no_kind, the_longest_list, modes_and_sizes, pages_are_only_read,
		 sizes_that_are_known, names_that_pass, pictures, a_dataset_that_cannot_be_read,
		 long_directories, lists_that_are_read_again, blocks)
