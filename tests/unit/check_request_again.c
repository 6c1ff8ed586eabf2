/* Requests that read while others hold the memory: they run once more, and answer the same as if there had
 * been enough at once. */
#include "base/error.h"
#include "base/room.h"
#include "request_scene.h"
#include "vfs/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { VALUE = 16000, NAMES = 50, LONG = 200, FEW = 5 };

/* ---- charges that are refused ---- */

static unsigned long charges_left; /* the last of so many is refused; 0: none is */

int __real_h5_charge_set(struct h5_charge *charge, size_t bytes);
int __wrap_h5_charge_set(struct h5_charge *charge, size_t bytes);
int __wrap_h5_charge_set(struct h5_charge *charge, size_t bytes)
{
	struct h5_account *account = h5_account_get();
	const bool grows = account && (charge->account != account->number || bytes > charge->bytes);

	if (!grows || !bytes || !charges_left || --charges_left)
		return __real_h5_charge_set(charge, bytes);
	account->refused = true;
	return h5_fail(-ENOMEM, H5_UNDEF, "no room beside other requests");
}

/* ---- requests, whose answers are added to *out ---- */

static struct h5_node *node, *deep;

static int ask_value(struct h5_buf *out)
{
	return h5_vfs_getxattr(scene.vfs, node, "user.long", out);
}

static int ask_bytes(struct h5_buf *out)
{
	return h5_vfs_getxattr(scene.vfs, node, "h5fs.raw.bytes", out);
}

static int ask_names(struct h5_buf *out)
{
	return h5_vfs_listxattr(scene.vfs, node, out);
}

static int ask_path(struct h5_buf *out)
{
	return h5_vfs_find_path(scene.vfs, deep, out);
}

static int ask_description(struct h5_buf *out)
{
	return h5_vfs_describe(scene.vfs, node, out);
}

static int ask_listing(struct h5_buf *out)
{
	struct h5_vfs_entry entry;
	struct h5_dir *dir;
	size_t got;
	int rc = h5_vfs_opendir(scene.vfs, h5_vfs_root(scene.vfs), &dir);

	if (rc)
		return rc;
	for (size_t i = 0; i < h5_vfs_dir_count(dir) && !rc; i++) {
		h5_buf_text(out, h5_vfs_dir_name(dir, i));
		rc = h5_vfs_dir_read(dir, i, 1, false, &entry, &got);
		if (!rc)
			h5_buf_printf(out, " %u\n", (unsigned)entry.st.st_mode);
	}
	rc = rc ? rc : h5_vfs_dir_error(dir);
	h5_vfs_closedir(dir);
	return rc;
}

static int read_file(const char *path, struct h5_buf *out)
{
	static char bytes[1 << 16];
	struct h5_node *file = request_find(path);
	struct h5_handle *handle;
	size_t got;
	int rc = h5_vfs_open_file(scene.vfs, file, O_RDONLY, &handle);

	if (!rc) {
		rc = h5_vfs_read(handle, 0, bytes, sizeof bytes, &got);
		if (!rc)
			h5_buf_add(out, bytes, got);
		h5_vfs_close_file(handle);
	}
	request_forget(file);
	return rc;
}

static int ask_data(struct h5_buf *out)
{
	return read_file("data", out);
}

static int ask_json(struct h5_buf *out)
{
	return read_file(".h5fs/json/data.json", out);
}

static int ask_text(struct h5_buf *out)
{
	return read_file(".h5fs/attrs/data/long", out);
}

static const struct {
	const char *name;
	int (*ask)(struct h5_buf *out);
	size_t least; /* bytes of the answer */
} requests[] = {
	{"value", ask_value, VALUE},
	{"bytes", ask_bytes, VALUE},
	{"names", ask_names, LONG *FEW},
	{"path", ask_path, LONG},
	{"description", ask_description, VALUE},
	{"listing", ask_listing, NAMES * 8},
	{"data", ask_data, 24},
	{"json", ask_json, VALUE},
	{"text", ask_text, VALUE},
};

/* ---- tests ---- */

static void begin(void)
{
	char value[VALUE + 1] = "", path[LONG + 1] = "", name[LONG + 10];

	request_begin();
	memset(value, 'v', VALUE);
	ASK("set", "data", "user.long", value);
	scene.vfs->options.raw_attributes = true;
	ASK("set", "data", "user.bytes", value);
	scene.vfs->options.raw_attributes = false;
	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(path, sizeof path, "group%u", i);
		ASK("mkdir", path);
	}
	for (unsigned i = 0; i < FEW; i++) {
		snprintf(name, sizeof name, "user.%0*u", LONG, i);
		ASK("set", "data", name, "5");
	}
	memset(path, 'd', LONG);
	ASK("mkdir", path);
	SUCCEEDS(h5_vfs_commit(scene.vfs));
	node = request_find("data");
	deep = request_find(path);
}

static void end(void)
{
	request_forget(deep);
	request_forget(node);
	request_end();
}

START_TEST(answers_are_the_same)
{
	struct h5_buf expected, answer;
	bool refused = true;
	unsigned times = 0;

	h5_buf_init(&expected, 1 << 20);
	h5_buf_init(&answer, 1 << 20);
	h5_buf_text(&expected, "before");
	SUCCEEDS(requests[_i].ask(&expected));
	ck_assert_uint_ge(expected.size, 6 + requests[_i].least);
	for (unsigned long n = 1; refused; n++) {
		answer.size = 0;
		answer.limit = 1 << 20;
		h5_buf_text(&answer, "before");
		/* Paths and listings are found anew, too. */
		ASK("mkdir", "x");
		ASK("rmdir", "x");
		vfs_scene_empty_caches(&scene);
		charges_left = n;
		ck_assert_msg(!requests[_i].ask(&answer), "%s, %lu: %s", requests[_i].name, n,
			      h5_error_last()->text);
		refused = !charges_left;
		charges_left = 0;
		times += refused;
		ck_assert_msg(answer.size == expected.size &&
				      !memcmp(answer.data, expected.data, answer.size),
			      "%s, %lu: %.*s", requests[_i].name, n, (int)answer.size, answer.data);
		h5_buf_release(&answer);
	}
	ck_assert_uint_gt(times, 0);
	h5_buf_release(&expected);
}
END_TEST

int main(void)
{
	const struct unit_test tests[] = {{answers_are_the_same, sizeof requests / sizeof *requests}};

	return unit_run("request_again", begin, end, tests, 1);
}
