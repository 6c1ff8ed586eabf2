/* Requests that copy contents of more than they hold at once: all of them arrive, or none. */
#include "base/error.h"
#include "request_scene.h"
#include "vfs/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	SIZE = 5 << 19,	     /* two and a half pieces */
	LINE = 9973,	     /* bytes of a line, so that lines are cut by the ends of pieces */
	LINES = SIZE / LINE, /* in a text */
};

static char *contents; /* SIZE bytes, each four another number; or the text */
static size_t text_size;

static void begin(void)
{
	request_begin();
	contents = malloc(SIZE);
	ck_assert_ptr_nonnull(contents);
	for (int32_t i = 0; i < SIZE / 4; i++)
		memcpy(contents + 4 * i, &i, 4);
}

static void end(void)
{
	free(contents);
	request_end();
}

/* Makes the text: each line begins with its number. */
static void begin_text(void)
{
	memset(contents, 't', SIZE);
	for (unsigned i = 0; i < LINES; i++) {
		int n = snprintf(contents + i * LINE, LINE, "%u", i);

		contents[i * LINE + (unsigned)n] = ' ';
		contents[(i + 1) * LINE - 1] = '\n';
	}
	text_size = (size_t)LINES * LINE;
}

/* Reads a file that has less than `most` bytes; free(). */
static char *read_all(const char *path, size_t most, size_t *got)
{
	struct h5_node *node = request_find(path);
	struct h5_handle *handle;
	char *bytes = malloc(most);

	ck_assert_ptr_nonnull(bytes);
	SUCCEEDS(h5_vfs_open_file(scene.vfs, node, O_RDONLY, &handle));
	SUCCEEDS(h5_vfs_read(handle, 0, bytes, most, got));
	ck_assert_uint_lt(*got, most);
	h5_vfs_close_file(handle);
	request_forget(node);
	return bytes;
}

static void check_contents(const char *path, size_t n)
{
	size_t got;
	char *bytes = read_all(path, SIZE + 1, &got);

	ck_assert_uint_eq(got, n);
	ck_assert(!memcmp(bytes, contents, n));
	free(bytes);
}

static int ask_rename(const char *from, const char *to)
{
	return request_ask(&(struct request){"rename", from, to, .error = 0});
}

static void check_gone(const char *path)
{
	ck_assert_int_eq(request_ask(&(struct request){"lookup", path, .error = 0}), -ENOENT);
}

/* ---- a plain file takes the place of a dataset ---- */

static struct timespec time_of(const char *path)
{
	struct h5_node *node = request_find(path);
	struct stat st;

	SUCCEEDS(h5_vfs_getattr(scene.vfs, node, &st));
	request_forget(node);
	return st.st_mtim;
}

START_TEST(bytes)
{
	const uint64_t address = request_address("data");
	struct timespec before, after;

	ASK("mknod", "plain");
	request_write("plain", O_WRONLY, contents, SIZE);
	before = time_of("data");
	ASK("rename", "plain", "data");
	after = time_of("data");
	ck_assert(after.tv_sec > before.tv_sec ||
		  (after.tv_sec == before.tv_sec && after.tv_nsec > before.tv_nsec));
	check_gone("plain");
	ck_assert_uint_eq(request_address("data"), address);
	check_contents("data", SIZE);
}
END_TEST

static void make_words(void)
{
	ASK("mknod", "words");
	ASK("set", "words", "h5fs.info", "{\"dtype\":\"vlen str\",\"shape\":\"0\",\"maxshape\":\"inf\"}");
	request_write("words", O_WRONLY, "one\ntwo\n", 8);
}

START_TEST(lines)
{
	uint64_t address;

	make_words();
	address = request_address("words");
	begin_text();
	ASK("mknod", "plain");
	request_write("plain", O_WRONLY, contents, text_size);
	ASK("rename", "plain", "words");
	check_gone("plain");
	ck_assert_uint_eq(request_address("words"), address);
	check_contents("words", text_size);
}
END_TEST

/* The lines before one that is no value are taken by the call that writes them; the next one tells why the
 * rest is not. None of them stays, wherever that line is. */
START_TEST(lines_of_which_one_is_no_value)
{
	static const unsigned bad[] = {0, 1, LINES / 2, LINES - 1};

	make_words();
	begin_text();
	ASK("mknod", "plain");
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		contents[bad[i] * LINE + 100] = 0;
		request_write("plain", O_WRONLY, contents, text_size);
		ck_assert_int_eq(ask_rename("plain", "words"), -EINVAL);
		request_check_bytes("words", "one\ntwo\n", 8);
		check_contents("plain", text_size);
		contents[bad[i] * LINE + 100] = 't';
	}
}
END_TEST

/* ---- a view's file takes the place of another one ---- */

START_TEST(arrays)
{
	const uint64_t address = request_address("data");

	ASK("mknod", "big");
	ASK("set", "big", "h5fs.info", "{\"dtype\":\"<i4\",\"shape\":\"0\",\"maxshape\":\"inf\"}");
	request_write("big", O_WRONLY, contents, SIZE);
	ASK("rename", ".h5fs/npy/big.npy", ".h5fs/npy/data.npy");
	check_gone("big");
	ck_assert_uint_eq(request_address("data"), address);
	check_contents("data", SIZE);
}
END_TEST

START_TEST(values_of_which_one_is_none)
{
	static const char good[] = "1\0002\0003\0004", bad[] = "1\0002\0x\0004";

	ASK("mknod", "words");
	ASK("set", "words", "h5fs.info", "{\"dtype\":\"S2\",\"shape\":\"4\",\"maxshape\":\"inf\"}");
	request_write("words", O_WRONLY, bad, sizeof bad);
	request_check_bytes(".h5fs/lines/words", "1\n2\nx\n4\n", 8);
	ck_assert_int_eq(ask_rename(".h5fs/lines/words", ".h5fs/lines/data"), -EINVAL);
	request_check_bytes("data", request_elements, sizeof request_elements);
	request_check_bytes("words", bad, sizeof bad);
	request_write("words", O_WRONLY, good, sizeof good);
	ASK("rename", ".h5fs/lines/words", ".h5fs/lines/data");
	request_check_bytes(".h5fs/lines/data", "1\n2\n3\n4\n", 8);
	check_gone("words");
}
END_TEST

/* ---- what is said of an object ---- */

START_TEST(descriptions)
{
	static const char *const names[] = {"user.a", "user.b", "user.c"};
	char value[16001] = "";
	struct h5_node *node;
	struct h5_buf said;
	size_t got;
	char *json;

	for (unsigned i = 0; i < 3; i++) {
		memset(value, 'a' + (int)i, sizeof value - 1);
		ASK("set", "data", names[i], value);
	}
	node = request_find("data");
	h5_buf_init(&said, 1 << 20);
	SUCCEEDS(h5_vfs_describe(scene.vfs, node, &said));
	for (unsigned i = 0; i < 3; i++) {
		memset(value, 'a' + (int)i, sizeof value - 1);
		ck_assert_ptr_nonnull(memmem(said.data, said.size, value, sizeof value - 1));
	}
	json = read_all(".h5fs/json/data.json", 1 << 20, &got);
	ck_assert_uint_eq(said.size, got);
	ck_assert(!memcmp(said.data, json, got));
	free(json);
	h5_buf_release(&said);
	request_forget(node);
}
END_TEST

/* ---- attributes ---- */

/* A file beside those of a view becomes an attribute. If not all of it can be read, the attribute stays. */
START_TEST(attributes_of_which_a_part_is_read)
{
	static const char text[] = ".h5fs/attrs/data/text", beside[] = ".h5fs/attrs/data/text~";
	unsigned refused = 0, copied = 0;
	bool failed = true, all;

	for (unsigned long n = 1; failed; n++) {
		int rc;

		ASK("set", "data", "user.text", "words");
		ASK("create", beside, .flags = O_WRONLY, .value = "other words");
		request_fault.n = n;
		request_fault.reads = false;
		rc = ask_rename(beside, text);
		failed = request_fault.fired;
		if (rc) {
			ck_assert(failed && rc == -ENOMEM);
			/* All was copied if what fails is to remove the file. */
			all = request_size(text) == 11;
			request_check_bytes(text, all ? "other words" : "words", all ? 11 : 5);
			copied += all;
			refused += !all;
			request_check_bytes(beside, "other words", 11);
			ASK("unlink", beside);
		} else {
			request_check_bytes(text, "other words", 11);
			check_gone(beside);
		}
	}
	ck_assert(refused > 10 && copied > 0);
}
END_TEST

UNIT_MAIN_AROUND("request_pieces", begin, end, bytes, lines, lines_of_which_one_is_no_value, arrays,
		 values_of_which_one_is_none, descriptions, attributes_of_which_a_part_is_read)
